"""What stands beside the rows: eval_summary.json, leaves.json, marked files, and files that are absent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from foxrun import jsonio
from foxrun.files import unpacked
from foxrun.problems import Problem
from foxrun.reader import Run
from foxrun.schema import BITS, DIAG, LEAVES, SUMMARY
from orchestrator.compare import verdict as v
from orchestrator.compare.divergence import (
    BITS as BY_BITS,
)
from orchestrator.compare.divergence import (
    FILE_STEP,
    SUMMARY_STEP,
    Differences,
    as_float,
    divergence,
    of_values,
    parted_value,
)
from orchestrator.compare.legs import Side
from orchestrator.compare.policy import Policy
from orchestrator.compare.scan import first_byte, rechunk
from orchestrator.compare.tolerance import MODE_0_KEY, mode_0_inside
from orchestrator.compare.values import REPEATED, canonical, compare_values, is_number


def outcome_rows(a: dict[str, Any] | None, b: dict[str, Any] | None) -> list[v.OutcomeRow]:
    """Every key of the two summaries, in A's order and then B's; per cent of |a| where a is not 0."""
    x, y = a or {}, b or {}
    rows = []
    for key in [*x, *(key for key in y if key not in x)]:
        one, other = canonical(x.get(key)), canonical(y.get(key))
        delta = percent = None
        if is_number(one) and is_number(other):
            first, second = as_float(one), as_float(other)
            if first is not None and second is not None:
                delta = second - first
                percent = 100 * delta / abs(first) if first else None
        rows.append(v.OutcomeRow(key=key, a=x.get(key), b=y.get(key), delta=delta, percent=percent))
    return rows


class Count:
    """A sum that is added to from elsewhere."""

    def __init__(self) -> None:
        self.total = 0

    def add(self, count: int) -> None:
        """So many more."""
        self.total += count


def _repeated(run: Run) -> list[str]:
    """Keys that the summary repeats: only the last of them could be compared."""
    names: list[str] = []
    stored = run.stored_name(SUMMARY)
    if stored is not None:
        with unpacked(run.source.open(stored), name=stored) as stream:
            jsonio.loads(stream.read(), name=f"{run.label}/{stored}", on_duplicate=names.append)
    return names


def compare_summaries(
    a: Run, b: Run, differ: bool, policy: Policy, differences: Differences, agreed: Count
) -> tuple[v.Divergence, list[v.PartedLeaf]] | None:
    """Count what differs in eval_summary.json; where it parts first and all that parts, outside the tolerance first."""
    if not a.summary or not b.summary or not differ:
        return None
    found = [d for d in compare_values(a.summary, b.summary, agreed.add) if not policy.ignores(d)]
    outside = []
    if not found:
        for name in _repeated(a) or _repeated(b):
            differences.add(v.Difference(file=SUMMARY, path=name, kind=REPEATED))
    for d in found:
        inside = policy.forgives(d)
        if policy.fast and d.name == MODE_0_KEY:
            inside = mode_0_inside(d.a, d.b)
        differences.add_value(SUMMARY, d.name, d, inside=inside)
        if not inside:
            outside.append(d)
    shown = outside or found
    if not shown:
        return None
    leaves = [parted_value(d.name, d, component="summary", kind="outcome") for d in shown]
    return of_values(SUMMARY_STEP, -1, shown[0].name, shown[0]), leaves


def compare_leaf_lists(a: Run, b: Run, differ: bool, differences: Differences) -> None:
    """What leaves.json names in one run alone, in another order, or otherwise."""
    if not differ:
        return
    of_a, of_b = ({leaf.name: leaf for leaf in run.leaves} for run in (a, b))
    for name in [*of_a, *(name for name in of_b if name not in of_a)]:
        if name not in of_a or name not in of_b:
            kind = "missing in A" if name not in of_a else "missing in B"
            differences.add(v.Difference(file=LEAVES, path=name, kind=kind))
        elif of_a[name] != of_b[name]:
            for key in ("component", "kind", "dtype", "shape"):
                x, y = getattr(of_a[name], key), getattr(of_b[name], key)
                if x != y:
                    differences.add(v.Difference(file=LEAVES, path=f"{name}.{key}", kind="changed", a=str(x), b=str(y)))
    common_a = [name for name in of_a if name in of_b]
    common_b = [name for name in of_b if name in of_a]
    if common_a != common_b:
        i = next(i for i, (x, y) in enumerate(zip(common_a, common_b, strict=True)) if x != y)
        differences.add(v.Difference(file=LEAVES, path=f"leaf {i}", kind="another order", a=common_a[i], b=common_b[i]))
    if [*of_a.values()] == [*of_b.values()]:
        for d in compare_values(_json(a, LEAVES), _json(b, LEAVES)):
            differences.add_value(LEAVES, d.name, d)


def _json(run: Run, name: str) -> Any:
    stored = run.stored_name(name)
    return (
        jsonio.loads(b"".join(run.blocks(stored)), name=stored, on_duplicate=lambda _: None) if stored == name else None
    )


def compare_other_files(a: Run, b: Run, parted: list[str], differences: Differences) -> v.Divergence | None:
    """Files that the manifest marks as compared, by bytes; the first of them, where nothing else says more."""
    first = None
    for name in parted:
        if name in (DIAG, BITS, LEAVES, SUMMARY) or name not in a.files or name not in b.files:
            continue
        place = _first_byte(a.blocks, b.blocks, name)
        differences.add(v.Difference(file=name, path=f"byte {place[0]}", kind="changed", a=place[1], b=place[2]))
        first = first or divergence(FILE_STEP, -1, name, place[1], place[2], BY_BITS)
    if first is None and differences.kept:
        d = differences.kept[0]
        texts = [d.a or ("missing" if d.kind == "missing in A" else "present")]
        texts.append(d.b or ("missing" if d.kind == "missing in B" else "present"))
        name = d.path if d.file == LEAVES else d.file
        first = divergence(FILE_STEP, -1, name, texts[0], texts[1], BY_BITS)
    return first


def _first_byte(a: Callable[[str, int], Any], b: Callable[[str, int], Any], name: str) -> tuple[int, str, str]:
    """(offset, A's byte, B's byte) of the first difference; `end` for a file that ends there."""
    size = 1 << 20
    blocks_a, blocks_b = rechunk(a(name, size), size), rechunk(b(name, size), size)
    offset = 0
    while True:
        x, y = next(blocks_a, b""), next(blocks_b, b"")
        if x != y:
            i = first_byte(x, y)
            return offset + i, f"{x[i]:02x}" if i < len(x) else "end", f"{y[i]:02x}" if i < len(y) else "end"
        if not x:
            return offset, "end", "end"
        offset += len(x)


def absent_files(
    sides: tuple[Side, Side], a: Run, b: Run, parted: list[str], differences: Differences, notes: list[str]
) -> Problem | None:
    """Compared files that one run lacks: a difference between finished runs, else a reason to call it incomplete."""
    for name in parted:
        there = (a.stored_name(name), b.stored_name(name))
        if all(there):
            if there[0] != there[1]:
                notes.append(f"A stores {there[0]}, B stores {there[1]}: their contents are compared")
            continue
        lacking = sides[0] if there[0] is None else sides[1]
        if not lacking.finished:
            what = "missing, and no manifest says that the run is finished"
            return Problem(f"{lacking.label}/{name}", None, what, "let it finish, or run it again")
        differences.add(v.Difference(file=name, path="", kind=f"missing in {lacking.letter}"))
    return None
