"""A run against its golden: equal bits, or the first leaf in dataflow order that is another one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foxrun.run import Run
from orchestrator.compare import verdict as v
from orchestrator.compare.divergence import divergence, of_leaf
from orchestrator.compare.text import names
from orchestrator.compare.verdict import FieldDifference, PartedLeaf, RunSummary, Verdict
from orchestrator.goldens.golden import Golden, GoldenLeaf, Key, all_of, key_of, read, readable
from orchestrator.goldens.taking import golden_of

SUBJECT = "golden"
# How much a field says when no golden fits: the nearest golden is the one that differs in the least of them.
_WEIGHTS = {"hardware": 8, "torch": 4, "config_sha256": 4, "inputs": 2, "mode": 2, "seed": 1}


@dataclass(frozen=True, kw_only=True)
class Nearest:
    """The golden that comes nearest to a key that has none, and the fields in which it differs."""

    file: Path
    golden: Golden
    fields: tuple[str, ...]


def find(folder: Path, key: Key) -> tuple[Path, Golden] | None:
    """The golden of this key. Raises ContractError for a file that is no golden."""
    file = folder / key.file_name()
    if not file.is_file():
        return None
    golden = read(file)
    return (file, golden) if golden.key == key else None


def nearest(folder: Path, key: Key) -> Nearest | None:
    """The golden that differs in the least; None where there is none at all."""
    found = []
    for file, golden in readable(all_of(folder))[0]:
        differing = tuple(k for k, value in key.fields().items() if golden.key.fields()[k] != value)
        found.append((sum(_WEIGHTS[name] for name in differing), str(file), file, golden, differing))
    if not found:
        return None
    _, _, file, golden, differing = min(found, key=lambda item: item[:2])
    return Nearest(file=file, golden=golden, fields=differing)


def check(run: Run, folder: Path) -> Verdict:
    """``identical``, ``drift``, or ``incomparable`` where no golden is recorded for what the run is.

    Raises:
        ContractError: the run is too short or has no fingerprints, or a golden cannot be read.
    """
    key = key_of(run.manifest or {})
    found = find(folder, key)
    if found is None:
        return _none(run, folder, key)
    file, golden = found
    now = golden_of(run, golden.steps)
    runs = [_summary(str(file), golden), _summary(run.label, now, run)]
    environment = list(_context(golden, now))
    if [leaf.name for leaf in now.leaves] != [leaf.name for leaf in golden.leaves]:
        return _other_leaves(golden, now, runs, environment, file)
    parted = list(_parted(golden.leaves, now.leaves))
    if not parted and now.rows_sha256 == golden.rows_sha256:
        return v.make(
            v.IDENTICAL,
            f"{len(golden.leaves)} leaves at step {golden.steps - 1}, and all rows before, are those of the golden",
            subject=SUBJECT,
            runs=runs,
            manifest_differences=environment,
        )
    where = golden.steps - 1
    if parted:
        first = of_leaf(where, where, parted[0])
        message = f"{len(parted)} of {len(golden.leaves)} leaves are not those of the golden, first {parted[0].name}"
    else:
        first = divergence(where, where, "rows", golden.rows_sha256[:16], now.rows_sha256[:16], "bits")
        message = f"step {where} is that of the golden, and a row before it is not"
    changed = f"; since then other: {names([d.path for d in environment])}" if environment else ""
    recorded = golden.recordings[-1] if golden.recordings else None
    since = recorded.commit if recorded and recorded.commit else "COMMIT"
    return v.make(
        v.DRIFT,
        message + changed,
        subject=SUBJECT,
        runs=runs,
        first_divergence=first,
        parted=parted,
        manifest_differences=environment,
        next=(
            f"{v.command('foxrun', 'golden', 'bisect', since[:12], 'HEAD')} names the commit; "
            f"where the new bits are meant, {v.command('foxrun', 'golden', 'record', '--reason', 'why')}"
        ),
    )


def _none(run: Run, folder: Path, key: Key) -> Verdict:
    near = nearest(folder, key)
    what = f"mode {key.mode}, seed {key.seed} on {key.hardware} with torch {key.torch}"
    other = f"; the nearest differs in {', '.join(near.fields)}" if near else ""
    return v.make(
        v.INCOMPARABLE,
        f"no golden is recorded for this configuration ({what}){other}",
        subject=SUBJECT,
        runs=[RunSummary(label=run.label, rows=run.row_count, seed=key.seed, mode=key.mode)],
        next=v.command("foxrun", "golden", "record", "--reason", "why"),
    )


def _parted(golden: Iterable[GoldenLeaf], now: Iterable[GoldenLeaf]) -> Iterable[PartedLeaf]:
    """Leaves in dataflow order that are other ones, at the step or after it."""
    for a, b in zip(golden, now, strict=True):
        # A run that ended with the golden's last step has no row after it.
        later = bool(a.after and b.after and a.after != b.after)
        if a.fingerprint == b.fingerprint and not later:
            continue
        same = a.fingerprint == b.fingerprint
        checksums = (None, None) if same else (a.checksum, b.checksum)
        yield PartedLeaf(
            name=a.name,
            component=a.component,
            kind=a.kind,
            checksum_a=checksums[0],
            checksum_b=checksums[1],
            fingerprint_a=(a.after if same else a.fingerprint) or None,
            fingerprint_b=(b.after if same else b.fingerprint) or None,
            delta=None if checksums[0] is None or checksums[1] is None else checksums[1] - checksums[0],
        )


def _other_leaves(
    golden: Golden, now: Golden, runs: list[RunSummary], environment: list[FieldDifference], file: Path
) -> Verdict:
    before, after = [leaf.name for leaf in golden.leaves], [leaf.name for leaf in now.leaves]
    gone = [name for name in before if name not in set(after)]
    new = [name for name in after if name not in set(before)]
    what = [f"without {names(gone)}"] if gone else []
    what += [f"with {names(new)}"] if new else []
    first = (gone or new or after)[0]
    return v.make(
        v.DRIFT,
        f"the leaves are others than the golden's: {' and '.join(what) or 'in another order'}",
        subject=SUBJECT,
        runs=runs,
        first_divergence=divergence(
            "file", 0, first, "present" if gone else "missing", "missing" if gone else "present", "bits"
        ),
        manifest_differences=environment,
        next=f"where that is meant, {v.command('foxrun', 'golden', 'record', '--reason', 'why')} ({file.name})",
    )


def _context(golden: Golden, now: Golden) -> Iterable[FieldDifference]:
    for name in dict.fromkeys([*golden.environment, *now.environment]):
        a, b = golden.environment.get(name), now.environment.get(name)
        if a != b:
            yield FieldDifference(path=f"environment.{name}", a=a, b=b, matters=False)


def _summary(label: str, golden: Golden, run: Run | None = None) -> RunSummary:
    code: dict[str, Any] = {}
    if run is not None and run.manifest is not None:
        code = run.manifest.get("code") or {}
    recorded = golden.recordings[-1] if golden.recordings else None
    return RunSummary(
        label=label,
        run_id=run.run_id if run else "",
        commit=recorded.commit if recorded else str(code.get("commit_asked") or ""),
        tree=recorded.tree if recorded else str(code.get("tree_run") or ""),
        seed=golden.key.seed,
        mode=golden.key.mode,
        rows=golden.steps,
    )
