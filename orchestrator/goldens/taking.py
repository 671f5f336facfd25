"""The golden that a run gives: its last training step's leaves, and the state that the step after it reads."""

from __future__ import annotations

import hashlib
import itertools
import struct

from foxrun.problems import ContractError
from foxrun.run import Run
from orchestrator.goldens.golden import CONTEXT, Golden, GoldenLeaf, config_of, key_of

_AT_ONCE = 4096


def steps_of(run: Run) -> int:
    """Training steps of a run. Raises ContractError when its manifest does not say."""
    steps = ((run.manifest or {}).get("config") or {}).get("steps")
    if not isinstance(steps, int) or steps < 1:
        raise ContractError(
            "its manifest does not say how many training steps it has (config.steps)",
            file=run.label,
            remedy="docs/run-contract.md says what a manifest holds",
        )
    return steps


def golden_of(run: Run, steps: int) -> Golden:
    """The golden of a run's first ``steps`` steps, without recordings.

    Raises:
        ContractError: the run is shorter, has no fingerprints, or is incomplete.
    """
    if run.manifest is None:
        raise ContractError(
            "has no manifest, so nobody knows what it ran", file=run.label, remedy="take a complete run"
        )
    width = len(run.leaves)
    if not width:
        raise ContractError(
            "has no fingerprints (leaves.json, bits.u64)",
            file=run.label,
            remedy="mode 0 takes none: record in mode 1 or 3; another trainer writes them by foxrun.RunWriter",
        )
    if run.row_count < steps:
        raise ContractError(
            f"has {run.row_count} rows, the golden needs {steps}", file=run.label, remedy="run it to its end"
        )
    digest = hashlib.sha256()
    for first in range(0, steps, _AT_ONCE):
        digest.update(run.bits(first, min(first + _AT_ONCE, steps)))
    last = _row(run.bits(steps - 1, steps), width)
    after = _row(run.bits(steps, steps + 1), width) if run.row_count > steps else (0,) * width
    row = next(itertools.islice(run.rows(), steps - 1, None), None)
    checksums = row.checksums if row is not None else {}
    environment = run.manifest.get("environment") or {}
    return Golden(
        key=key_of(run.manifest),
        steps=steps,
        rows_sha256=digest.hexdigest(),
        config=config_of(run.manifest),
        environment={name: environment[name] for name in CONTEXT if environment.get(name)},
        leaves=tuple(
            GoldenLeaf(
                name=leaf.name,
                component=leaf.component,
                kind=leaf.kind,
                fingerprint=_hex(value),
                checksum=_number(checksums.get(leaf.name)),
                # Only what crosses steps: the row after the last training step may belong to evaluation or to nothing.
                after=_hex(later) if leaf.kind in ("weight", "moment") else "",
            )
            for leaf, value, later in zip(run.leaves, last, after, strict=True)
        ),
    )


def _row(data: bytes, width: int) -> tuple[int, ...]:
    return struct.unpack(f"<{width}Q", data)


def _hex(value: int) -> str:
    return f"{value:016x}" if value else ""


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
