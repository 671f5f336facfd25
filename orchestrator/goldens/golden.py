"""A golden: the last step's fingerprints and checksums of one configuration on one kind of hardware, as a text file.

One leaf a line, so that a reviewer reads in a diff which leaves changed and why: every recording keeps its reason.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foxrun import jsonio
from foxrun.files import write_atomic
from foxrun.problems import ContractError
from orchestrator.goldens import ENDING

VERSION = 1
# A golden of 50 steps holds for the first 50 of any longer run.
_LENGTH = ("steps", "eval_steps")
# Shown by `explain` beside the key: what else decides bits, and is not worth a golden of its own.
CONTEXT = ("python", "cuda", "cudnn", "cublas", "triton", "driver", "sm_count", "cpu_model", "cpu_capability", "libc")
_LEAF = ("name", "component", "kind", "fingerprint", "checksum", "after")


@dataclass(frozen=True, kw_only=True)
class Key:
    """What a golden is kept by. Two runs of one key that finished must have the same bits."""

    hardware: str
    torch: str
    mode: int
    seed: int
    config_sha256: str
    inputs: tuple[str, ...]

    def fields(self) -> dict[str, Any]:
        """Name -> value, in the order in which people read them."""
        return {
            "hardware": self.hardware,
            "torch": self.torch,
            "mode": self.mode,
            "seed": self.seed,
            "config_sha256": self.config_sha256,
            "inputs": list(self.inputs),
        }

    def file_name(self) -> str:
        """``HARDWARE/torch-VERSION-modeM-seedS-XXXXXXXX.golden.json``; the last part is of config and inputs."""
        both = hashlib.sha256("\n".join([self.config_sha256, *self.inputs]).encode()).hexdigest()
        return f"{slug(self.hardware)}/torch-{slug(self.torch)}-mode{self.mode}-seed{self.seed}-{both[:8]}{ENDING}"


@dataclass(frozen=True, kw_only=True)
class GoldenLeaf:
    """One leaf at the last step: 16 hex digits (empty: not taken), checksum; ``after``: as the next step reads it."""

    name: str
    component: str
    kind: str
    fingerprint: str
    checksum: float | None
    after: str


@dataclass(frozen=True, kw_only=True)
class Recording:
    """When and why the bits of this golden were taken as right."""

    date: str
    commit: str
    tree: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Golden:
    """One golden file."""

    key: Key
    steps: int
    rows_sha256: str
    config: Mapping[str, Any]
    environment: Mapping[str, Any]
    leaves: tuple[GoldenLeaf, ...]
    recordings: tuple[Recording, ...] = field(default=())


def key_of(manifest: Mapping[str, Any]) -> Key:
    """The key of a run. Raises ContractError when its manifest lacks what a golden is kept by."""
    environment = _mapping(manifest.get("environment"))
    missing = [name for name in ("seed", "mode") if not isinstance(manifest.get(name), int)]
    if not isinstance(manifest.get("config"), Mapping):
        missing.append("config")
    if missing:
        raise ContractError(
            f"its manifest has no {', '.join(missing)}, by which goldens are kept",
            file="run_manifest.json",
            remedy="docs/run-contract.md says what a manifest holds",
        )
    inputs = manifest.get("inputs")
    return Key(
        hardware=hardware_of(environment),
        torch=str(environment.get("torch") or "none"),
        mode=manifest["mode"],
        seed=manifest["seed"],
        config_sha256=hashlib.sha256(jsonio.canonical(config_of(manifest)).encode()).hexdigest(),
        inputs=tuple(str(i.get("sha256", "")) for i in inputs if isinstance(i, Mapping))
        if isinstance(inputs, list)
        else (),
    )


def hardware_of(environment: Mapping[str, Any]) -> str:
    """The GPU's model, else the CPU's with the instruction set that torch chose on it."""
    if environment.get("gpu_name"):
        return str(environment["gpu_name"])
    model = " ".join(str(environment.get("cpu_model") or "unknown CPU").split())
    return f"{model} {environment.get('cpu_capability') or ''}".strip()


def config_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that a golden's key stands for: all but the length of the run."""
    return {k: v for k, v in _mapping(manifest.get("config")).items() if k not in _LENGTH}


def to_text(golden: Golden) -> str:
    """The file: JSON, one parameter, one recording and one leaf a line."""

    def block(pairs: Sequence[str], opening: str, closing: str) -> str:
        return opening + "\n" + ",\n".join(f"  {pair}" for pair in pairs) + "\n " + closing

    def compact(value: Any) -> str:
        return jsonio.dumps(value)

    named = [f'"{name}": {compact(value)}' for name, value in golden.key.fields().items()]
    parts = [
        f'"golden": {VERSION}',
        *named,
        f'"steps": {golden.steps}',
        f'"rows_sha256": {compact(golden.rows_sha256)}',
        '"recordings": ' + block([compact(vars(r)) for r in golden.recordings], "[", "]"),
        '"config": ' + block([f"{json.dumps(k)}: {compact(v)}" for k, v in sorted(golden.config.items())], "{", "}"),
        '"environment": ' + compact(dict(golden.environment)),
        '"leaf_columns": ' + compact(list(_LEAF)),
        '"leaves": ' + block([compact([getattr(leaf, c) for c in _LEAF]) for leaf in golden.leaves], "[", "]"),
    ]
    return "{\n " + ",\n ".join(parts) + "\n}\n"


def from_text(text: str, name: str) -> Golden:
    """Read a golden back. Raises ContractError that names the file and what is wrong."""
    value = jsonio.loads(text, name=name)
    try:
        if value["golden"] != VERSION:
            raise ContractError(
                f"is a golden of version {value['golden']}, this foxrun reads {VERSION}",
                file=name,
                remedy="install the foxrun that wrote it, or record it anew",
            )
        if type(value["steps"]) is not int or value["steps"] < 1:
            raise ValueError(f"steps is {value['steps']!r}, and a golden has one or more")
        return Golden(
            key=Key(
                hardware=str(value["hardware"]),
                torch=str(value["torch"]),
                mode=int(value["mode"]),
                seed=int(value["seed"]),
                config_sha256=str(value["config_sha256"]),
                inputs=tuple(str(item) for item in value["inputs"]),
            ),
            steps=value["steps"],
            rows_sha256=str(value["rows_sha256"]),
            config=dict(value["config"]),
            environment=dict(value["environment"]),
            leaves=tuple(_leaf(row) for row in value["leaves"]),
            recordings=tuple(Recording(**{k: str(v) for k, v in r.items()}) for r in value["recordings"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ContractError(
            f"is no golden: {type(error).__name__} {error}",
            file=name,
            remedy="take it from git again, or delete it and record it anew",
        ) from None


def read(file: Path) -> Golden:
    """The golden in a file. Raises ContractError."""
    try:
        return from_text(file.read_text("utf-8"), str(file))
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ContractError(f"cannot be read: {why}", file=str(file), remedy="check the file") from None


def readable(files: Sequence[Path]) -> tuple[list[tuple[Path, Golden]], list[ContractError]]:
    """Each golden that can be read, and why the others cannot: a damaged one hides nobody else's."""
    found, damaged = [], []
    for file in files:
        try:
            found.append((file, read(file)))
        except ContractError as error:
            damaged.append(error)
    return found, damaged


def write(folder: Path, golden: Golden) -> Path:
    """Write a golden to its place below ``folder``, all at once; returns the file."""
    file = folder / golden.key.file_name()
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(file, to_text(golden))
    return file


def all_of(folder: Path) -> list[Path]:
    """The golden files below ``folder``, in order of their paths."""
    return sorted(folder.rglob(f"*{ENDING}")) if folder.is_dir() else []


def slug(text: str) -> str:
    """A legal, readable file name of any text."""
    return re.sub(r"[^A-Za-z0-9.+]+", "-", text).strip("-.") or "unknown"


def _leaf(row: Any) -> GoldenLeaf:
    name, component, kind, fingerprint, checksum, after = row
    return GoldenLeaf(
        name=str(name),
        component=str(component),
        kind=str(kind),
        fingerprint=str(fingerprint),
        checksum=None if checksum is None else float(checksum),
        after=str(after),
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
