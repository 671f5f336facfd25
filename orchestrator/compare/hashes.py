"""Two runs of which one lies far away: what their manifests alone prove.

Where both runs are complete, equal sha256 in the two manifests stand for equal bytes. What cannot be decided so gives
None: then blocks are asked (blocks.py), or everything is read. --verify never comes here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from foxrun.reader import Run
from foxrun.schema import BITS, DIAG, LEAVES, SUMMARY
from orchestrator.compare import verdict as v
from orchestrator.compare.legs import Side, owes_summary
from orchestrator.compare.policy import Options
from orchestrator.compare.runs import comparability, compared_files, entry_of, first_damaged, incomplete

ROWS = (DIAG, BITS)
_LEAST_SUMMARY = 8  # bytes: `{"a":1}` and a line end; less holds nothing


def agree_by_hashes(sides: tuple[Side, Side], options: Options, base: dict[str, Any]) -> v.Verdict | None:
    """The verdict on a pair whose compared files all have equal hashes in two sound manifests; None for any other."""
    a, b = sides[0].run, sides[1].run
    if a is None or b is None:
        return None
    names = compared_files(a, b)
    if not all(vouches(side, names) for side in sides) or not same_hashes(a, b, names):
        return None
    notes: list[str] = []
    base["notes"] = notes
    stopped = comparability(sides, options, base, notes)
    if stopped is not None:
        return stopped
    for side in sides:
        if not side.remote:  # what is here costs nothing to read
            for name in names:
                found = first_damaged((side,), name)
                if found is not None:
                    return incomplete(*found, base)
    manifest = sides[0].manifest
    rows, leaves = int(manifest["rows"]), int(manifest["leaf_count"])
    far = [side for side in sides if side.remote]
    size = sum((side.run.files if side.run else {}).get(name, 0) for side in far for name in names)
    notes.append(
        f"by the manifests' hashes: {len(names)} files, {size:,} bytes, were not read; --verify reads everything, "
        "and names leaves that never change"
    )
    flip = _planted_flip(a, b, names)
    base["agreed"] = v.Agreement(rows=rows, leaves=leaves, planted_flip=flip)
    if not flip.found:
        message = "a change planted in a copy was not found: this comparison proves nothing"
        return v.make(v.INCOMPLETE, message, next="report this as a bug of foxrun", **base)
    what = f"{rows:,} rows x {leaves:,} leaves" if leaves else f"{rows:,} rows"
    return v.make(v.IDENTICAL, f"every compared file has the same sha256: {what}", **base)


def vouches(side: Side, names: Sequence[str]) -> bool:
    """Whether a run is complete and its manifest names all that is compared, with the size that it has."""
    run, manifest = side.run, side.manifest
    if run is None or not run.complete or not _count(manifest.get("rows")) or not _count(manifest.get("leaf_count")):
        return False
    for name in names:
        stored = run.stored_name(name)
        if stored is not None and (entry_of(run, stored) or (None,))[0] != run.files[stored]:
            return False
    leaves = manifest["leaf_count"]
    if leaves and run.files.get(BITS) != 8 * leaves * manifest["rows"]:
        return False
    if bool(leaves) != (LEAVES in run.files):
        return False
    summary = run.files.get(run.stored_name(SUMMARY) or "", 0)
    if owes_summary(manifest) and summary < _LEAST_SUMMARY:
        return False
    return summary >= _LEAST_SUMMARY or run.files.get(run.stored_name(DIAG) or "", 0) > 0


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def same_hashes(a: Run, b: Run, names: Sequence[str], flipped: str = "") -> bool:
    """Whether every file has one size and sha256 in both manifests, and one in each block; `flipped` for A's first."""
    for i, name in enumerate(names):
        stored = a.stored_name(name) or name
        one, other = entry_of(a, stored), entry_of(b, stored)
        if one is not None and flipped and i == 0:
            one = (one[0], flipped)
        if one is None or one != other:
            return False
    # A manifest whose blocks say otherwise than its files contradicts itself: then the bytes are asked.
    return all(blocks_json(a, name) == blocks_json(b, name) for name in ROWS if name in names)


def blocks_json(run: Run, name: str) -> Any:
    """What the manifest says about the blocks of a file; None where it says nothing."""
    return ((run.manifest or {}).get("blocks") or {}).get(name)


def _planted_flip(a: Run, b: Run, names: Sequence[str]) -> v.PlantedFlip:
    """One bit of A's first hash flipped in a copy: is it seen?"""
    stored = a.stored_name(names[0]) or names[0]
    known = entry_of(a, stored)
    assert known is not None  # the manifest names every compared file
    flipped = f"{int(known[1], 16) ^ 1 << 100:064x}"
    return v.PlantedFlip(row=-1, leaf=f"sha256 of {stored}", found=not same_hashes(a, b, names, flipped))
