"""Two runs: fit to compare? comparable? equal in every compared byte? If not: damaged, or parted, and where?

The order is SPEC section 3's precedence: a failed job explains a missing file, a damaged file explains a difference.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

from foxrun.problems import ContractError, Problem
from foxrun.reader import Run
from foxrun.schema import BITS, DIAG, LEAVES, MANIFEST, SUMMARY
from orchestrator.compare import verdict as v
from orchestrator.compare.comparable import asked_differently, manifest_differences, reason
from orchestrator.compare.legs import Side, failed_job, summary_of, unfit
from orchestrator.compare.policy import Options, Policy
from orchestrator.compare.scan import BLOCK, LeafWatch, LineCount, first_difference, rows_per_block
from orchestrator.compare.tolerance import MODE_0_KEY

CONTRACT_FILES = (DIAG, BITS, LEAVES, SUMMARY)
_NEVER_COMPARED = (MANIFEST, "timing.jsonl")


def compare_runs(side_a: Side, side_b: Side, options: Options | None = None) -> v.Verdict:
    """The verdict on two sides, each a run or the reason why there is none. Raises nothing that a run's files cause."""
    options = options or Options()
    sides = (side_a, side_b)
    base: dict[str, Any] = {"runs": [summary_of(side) for side in sides]}
    failed = _failed_jobs(sides, base)
    if failed is not None:
        return failed
    remote = any(side.remote for side in sides) and not options.verify
    if remote:
        from orchestrator.compare.hashes import agree_by_hashes

        agreed = agree_by_hashes(sides, options, base)
        if agreed is not None:
            return agreed
    for side in sides:
        problem = unfit(side)
        if problem is not None:
            return incomplete(side, problem, base)
    a, b = side_a.run, side_b.run
    assert a is not None and b is not None  # unfit otherwise
    notes: list[str] = []
    base["notes"] = notes
    stopped = comparability(sides, options, base, notes)
    if stopped is not None:
        return stopped
    try:
        if remote:
            from orchestrator.compare.blocks import part_by_blocks

            parted = part_by_blocks(sides, a, b, options, base, notes)
            if parted is not None:
                return parted
        return _compared(sides, a, b, options, base, notes)
    except ContractError as error:
        side = side_b if error.file.startswith(side_b.label) and side_a.label != side_b.label else side_a
        return incomplete(side, error.problem(), base)


def _without_the_others_manifest(sides: tuple[Side, Side]) -> Side | None:
    """The side that lacks a manifest where the other has one: a trainer that writes manifests writes them last."""
    lacking = [side for side in sides if not side.manifest]
    return lacking[0] if len(lacking) == 1 else None


def _failed_jobs(sides: tuple[Side, Side], base: dict[str, Any]) -> v.Verdict | None:
    """The verdict when a leg failed; of two the one that finished first comes first: it is often the cause."""
    failed = [found for side in sides if (found := failed_job(side)) is not None]
    if not failed:
        return None
    failed.sort(key=lambda item: item[1].finished or "9999")  # unknown times last; the sort keeps A before B
    kind = v.INFRASTRUCTURE if any(kind == v.INFRASTRUCTURE for kind, _ in failed) else v.JOB_FAILED
    parts = [part for _, part in failed]
    first = parts[0]
    message = f"{first.name} {first.phase.lower()}: {first.message}"
    if len(parts) > 1:
        message += f"; then {parts[1].name} {parts[1].phase.lower()}: {parts[1].message}"
    following = "see the trainer's log, mend it, and run it again"
    if any(side.status for side in sides):
        following = "read its log with `foxrun logs`; then mend the trainer, and submit again"
    if kind == v.INFRASTRUCTURE:
        following = "`foxrun retry` runs what failed again"
    return v.make(kind, message, next=following, parts=parts, **base)


def incomplete(side: Side, problem: Problem, base: dict[str, Any]) -> v.Verdict:
    """The verdict `incomplete`, for what is wrong with a side."""
    where = problem.file if problem.line is None else f"{problem.file}, line {problem.line}"
    if not where.startswith(side.label):
        where = f"{side.label}: {where}" if where else side.label
    return v.make(v.INCOMPLETE, f"{where}: {problem.what}", next=problem.remedy, **base)


def comparability(
    sides: tuple[Side, Side], options: Options, base: dict[str, Any], notes: list[str]
) -> v.Verdict | None:
    """The verdict `incomparable`, or None with notes."""
    for side in sides:
        if not side.manifest:
            notes.append(f"{side.letter} has no manifest: comparability not checked")
        assert side.run is not None
        notes.extend(f"{side.letter}: {problem}" for problem in side.run.problems if not problem.fatal)
        other = asked_differently(side.manifest)
        if other is not None and not options.force:
            message = f"{side.label} ran tree {other[1][:12]}, not {other[0][:12]} as asked"
            return v.make(v.INCOMPARABLE, message, next="run it again on a clean checkout of that commit", **base)
        if other is not None:
            notes.append(f"forced: {side.letter} ran tree {other[1][:12]}, not {other[0][:12]} as asked")
    manifest_a, manifest_b = sides[0].manifest, sides[1].manifest
    if not manifest_a or not manifest_b:
        return None
    base["manifest_differences"] = manifest_differences(manifest_a, manifest_b, options.allow)
    why = reason(base["manifest_differences"])
    if why and not options.force:
        words = ("foxrun", "compare", sides[0].label, sides[1].label)
        forced = v.command(*words, "--force")
        following = f"compare runs that agree in these, or see where they part all the same: {forced}"
        if why == "code.tree_run":
            following = f"see whether the other code changes any bit: {v.command(*words, '--allow', 'tree')}"
        return v.make(
            v.INCOMPARABLE,
            f"the runs differ in {why}: differences between them would prove nothing",
            next=following,
            **base,
        )
    if why:
        notes.append(f"forced: the runs differ in {why}, so a difference proves nothing")
    return None


def compared_files(a: Run, b: Run) -> list[str]:
    """Names of the files to compare: the contract's own and those that a manifest marks, in a fixed order."""
    marked = {
        str(entry.get("name"))
        for run in (a, b)
        for entry in (run.manifest or {}).get("files", [])
        if isinstance(entry, dict) and entry.get("compared") is True
    }
    own = [name for name in CONTRACT_FILES if a.stored_name(name) or b.stored_name(name)]
    plain = {name + ending for name in own for ending in ("", ".zst", ".gz")}
    return own + sorted(marked - plain - set(_NEVER_COMPARED))


def _compared(
    sides: tuple[Side, Side], a: Run, b: Run, options: Options, base: dict[str, Any], notes: list[str]
) -> v.Verdict:
    names = compared_files(a, b)
    verification = _Verification(sides) if options.verify else None
    hashed = options.verify and all(side.manifest for side in sides)
    watch = LeafWatch(len(a.leaves)) if a.leaves and a.row_count else None
    lines = LineCount()
    try:
        parted = _parted(a, b, names, watch, lines, hashed)
    finally:
        damaged = verification.join(notes) if verification is not None else None
    if damaged is not None:
        return incomplete(*damaged, base)
    from orchestrator.compare.findings import identical_or_read, parted_runs

    if not parted:
        lone = None if options.force else _without_the_others_manifest(sides)
        if lone is not None:
            what = "missing, though the other run has one: it was killed before it finished, or the file was lost"
            remedy = "see its log and run it again; --force compares what is there"
            return incomplete(lone, Problem(MANIFEST, None, what, remedy), base)
        return identical_or_read(sides, a, b, watch, lines.count, base, notes)
    for name in parted:
        damaged = first_damaged(sides, name)
        if damaged is not None:
            return incomplete(*damaged, base)
    return parted_runs(sides, a, b, parted, policy_of(sides, a, b, options), base, notes)


def policy_of(sides: tuple[Side, Side], a: Run, b: Run, options: Options) -> Policy:
    """The rules that a parted pair is judged by."""
    fast = all(side.manifest.get("mode") == 0 for side in sides)
    fast = fast and any(MODE_0_KEY in (run.summary or {}) for run in (a, b))  # else its rule has nothing to judge by
    return Policy(tolerance=options.tolerance, ignore=options.ignore, fast=fast and not options.tolerance)


def _parted(a: Run, b: Run, names: list[str], watch: LeafWatch | None, lines: LineCount, hashed: bool) -> list[str]:
    """The compared files whose stored bytes differ; `watch` and `lines` see what agrees of A's."""
    parted = []
    for name in names:
        tap: Callable[[bytes], None] = _nothing
        size = BLOCK
        if name == BITS and watch is not None:
            width = 8 * len(a.leaves)
            tap, size = watch.see, rows_per_block(width) * width
        elif name == DIAG:
            tap = lines.see
        if not _same(a, b, name, size, tap, hashed):
            parted.append(name)
    return parted


def _nothing(_: bytes) -> None:
    return


def _same(a: Run, b: Run, name: str, size: int, tap: Callable[[bytes], None], hashed: bool) -> bool:
    """Whether a compared file has the same stored bytes in both runs; `tap` sees A's blocks as far as they agree.

    `hashed`: both runs were found to be as their manifests say, so that equal hashes stand for equal bytes.
    """
    stored = a.stored_name(name) or name
    if stored not in a.files or stored not in b.files or a.files[stored] != b.files[stored]:
        return False
    if hashed and (known := entry_of(a, stored)) is not None and known == entry_of(b, stored):
        for block in a.blocks(stored, size) if name in (BITS, DIAG) else ():
            tap(block)
        return True
    return first_difference(a.blocks(stored, size), b.blocks(stored, size), size, tap) is None


def entry_of(run: Run, stored: str) -> tuple[int, str] | None:
    """(size, sha256) that the run's own manifest gives for a file."""
    for entry in (run.manifest or {}).get("files", []):
        if isinstance(entry, dict) and entry.get("name") == stored:
            return int(entry["size"]), str(entry["sha256"])
    return None


def first_damaged(sides: Sequence[Side], name: str) -> tuple[Side, Problem] | None:
    """The side whose file is not as its own manifest says."""
    for side in sides:
        run = side.run
        stored = run.stored_name(name) if run is not None else None
        known = entry_of(run, stored) if run is not None and stored is not None else None
        if run is None or stored is None or known is None:
            continue
        digest = hashlib.sha256()
        for block in run.blocks(stored):
            digest.update(block)
        if digest.hexdigest() != known[1]:
            what = (
                f"its sha256 is {digest.hexdigest()[:16]}..., its own manifest says {known[1][:16]}...: damaged later"
            )
            return side, Problem(stored, None, what, "copy the run directory again, or run the trainer again")
    return None


class _Verification:
    """Hashes every file of both runs against their manifests, a thread a run (hashlib frees the GIL)."""

    def __init__(self, sides: tuple[Side, Side]) -> None:
        self._sides = sides
        self._found: dict[str, list[Problem]] = {}
        self._threads = [threading.Thread(target=self._verify, args=(side,)) for side in sides]
        for thread in self._threads:
            thread.start()

    def _verify(self, side: Side) -> None:
        if side.run is not None and side.manifest:
            self._found[side.letter] = side.run.verify()

    def join(self, notes: list[str]) -> tuple[Side, Problem] | None:
        """Wait for both; the first side with a file that is not as its manifest says."""
        for thread in self._threads:
            thread.join()
        for side in self._sides:
            if side.letter not in self._found:
                notes.append(f"{side.letter} has no manifest: there are no hashes to verify")
            elif self._found[side.letter]:
                return side, self._found[side.letter][0]
        if len(self._found) == len(self._sides):
            notes.append("every file was verified against the sha256 in its run's manifest")
        return None
