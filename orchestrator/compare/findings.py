"""The verdict on two runs that were read: what agreed, or where they part and what that did to the outcome."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from foxrun.problems import Problem
from foxrun.reader import Run
from foxrun.schema import BITS, DIAG, LEAVES, SUMMARY
from orchestrator.compare import verdict as v
from orchestrator.compare.beside import (
    Count,
    absent_files,
    compare_leaf_lists,
    compare_other_files,
    compare_summaries,
    outcome_rows,
)
from orchestrator.compare.divergence import SUMMARY_STEP, Differences
from orchestrator.compare.legs import Side, summary_of
from orchestrator.compare.policy import Policy
from orchestrator.compare.scan import BLOCK, LeafWatch, finds_flip, plant_flip, rechunk, rows_per_block
from orchestrator.compare.text import dollars
from orchestrator.compare.tolerance import MODE_0_KEY
from orchestrator.compare.values import compare_values, count_values, planted

if TYPE_CHECKING:
    from orchestrator.compare.rows import RowComparison  # numpy, which an identical pair does not need

_ROWS_READ_FOR_A_FLIP = 1000


def identical_or_read(
    sides: tuple[Side, Side],
    a: Run,
    b: Run,
    watch: LeafWatch | None,
    lines: int,
    base: dict[str, Any],
    notes: list[str],
) -> v.Verdict:
    """The verdict when every compared byte agrees, and the files hold what they should."""
    problem = _rows_disagree(a, watch, lines) or _unreadable_rows(a)
    if problem is not None:
        return v.make(v.INCOMPLETE, f"{sides[0].label}: {problem}", next=problem.remedy, **base)
    values = count_values(a.summary) if a.summary else 0
    if watch is None:
        values += _count_rows(a)
    rows = watch.rows if watch is not None else lines
    agreed = v.Agreement(
        rows=rows,
        leaves=len(a.leaves) if watch is not None else 0,
        values=watch.rows * len(a.leaves) - watch.untaken if watch is not None else 0,
        metrics=values,
        never_changed=[a.leaves[i].name for i in watch.never_changed] if watch is not None else [],
        seed_independent=_seed_independent(sides, a, watch),
        planted_flip=_planted_flip(a),
    )
    return _agree(sides, agreed, watch, a, base, notes)


def _agree(
    sides: tuple[Side, Side],
    agreed: v.Agreement,
    watch: LeafWatch | None,
    a: Run,
    base: dict[str, Any],
    notes: list[str],
) -> v.Verdict:
    base["agreed"] = agreed
    if agreed.values == 0 and agreed.metrics == 0:
        message = "the runs hold no fingerprint and no value: nothing was compared"
        return v.make(v.INCOMPLETE, message, next="see the trainer's log, and run it again", **base)
    if agreed.planted_flip is None or not agreed.planted_flip.found:
        message = "a change planted in a copy was not found: this comparison proves nothing"
        return v.make(v.INCOMPLETE, message, next="report this as a bug of foxrun", **base)
    if watch is not None and watch.never_taken:
        names = [a.leaves[i].name for i in watch.never_taken]
        notes.append(f"no fingerprint was ever taken of {len(names)} leaves: {', '.join(names[:5])}")
    what = f"{agreed.rows:,} rows x {agreed.leaves:,} leaves" if agreed.leaves else f"{agreed.metrics:,} values"
    if not agreed.leaves:
        notes.append("the runs have no fingerprints: what they wrote agrees, what they did not write is not known")
    if not sides[0].finished and a.manifest is None:
        notes.append("no manifest says that these runs are finished")
    return v.make(v.IDENTICAL, f"every compared bit agrees: {what}", **base)


def _rows_disagree(run: Run, watch: LeafWatch | None, lines: int) -> Problem | None:
    stored = run.stored_name(DIAG)
    if watch is not None and stored == DIAG and lines != watch.rows:
        what = f"{DIAG} has {lines} rows, {BITS} has {watch.rows}"
        return Problem(DIAG, None, what, "run the trainer again, or copy the run directory again")
    return None


def _unreadable_rows(run: Run) -> Problem | None:
    """Equal bytes may be equally broken: without a manifest that vouches for them, every row is read once."""
    known = {entry.get("name") for entry in (run.manifest or {}).get("files", []) if isinstance(entry, dict)}
    stored = run.stored_name(DIAG)
    if stored is None or stored in known:
        return None
    for _ in run.rows():
        pass
    return next((problem for problem in run.problems if problem.fatal and problem.file == stored), None)


def _count_rows(run: Run) -> int:
    return sum(
        count_values(row.checksums) + count_values(row.metrics) for row in run.rows() if row.checksums or row.metrics
    )


def _seed_independent(sides: tuple[Side, Side], a: Run, watch: LeafWatch | None) -> list[str]:
    if watch is None or not _seeds_differ(sides):
        return []
    never_taken = set(watch.never_taken)
    return [leaf.name for i, leaf in enumerate(a.leaves) if i not in never_taken]


def _planted_flip(run: Run) -> v.PlantedFlip | None:
    """Plant a change in a copy of what the run holds, fingerprints before rows before the summary, and look for it."""
    if run.leaves and run.row_count:
        first = run.row_count // 2
        block = run.bits(first, min(run.row_count, first + 16))
        flip = plant_flip(block, len(run.leaves))
        if flip is not None:
            found = finds_flip(block, len(run.leaves), flip)
            return v.PlantedFlip(row=first + flip.row, leaf=run.leaves[flip.leaf].name, found=found)
    for row in run.rows():
        if (row.checksums or row.metrics) and row.index < _ROWS_READ_FOR_A_FLIP:
            value = {"checksums": row.checksums, "metrics": row.metrics}
            return planted_value(value, row.index)
    return planted_value(run.summary, -1) if run.summary else None


def planted_value(value: Any, row: int) -> v.PlantedFlip | None:
    """Change one value in a copy and compare as two runs are compared; None where there is no value to change."""
    changed = planted(value)
    if changed is None:
        return None
    found = [d.name for d in compare_values(value, changed[0])]
    return v.PlantedFlip(row=row, leaf=changed[1], found=found == [changed[1]])


def parted_runs(
    sides: tuple[Side, Side],
    a: Run,
    b: Run,
    parted: list[str],
    policy: Policy,
    base: dict[str, Any],
    notes: list[str],
) -> v.Verdict:
    """The verdict when some compared bytes differ and each file is as its own manifest says."""
    from orchestrator.compare.rows import RowComparison

    differences = Differences()
    absent = absent_files(sides, a, b, parted, differences, notes)
    if absent is not None:
        return v.make(v.INCOMPLETE, f"{absent}", next=absent.remedy, **base)
    rows = RowComparison(a, b, policy, differences)
    compare_leaf_lists(a, b, LEAVES in parted, differences)
    rows.run()
    for side, run, count in ((sides[0], a, rows.diag_rows[0]), (sides[1], b, rows.diag_rows[1])):
        if rows.has_bits and count and count != run.row_count:
            what = f"{DIAG} has {count} rows, {BITS} has {run.row_count}"
            return v.make(v.INCOMPLETE, f"{side.label}: {what}", next="run the trainer again", **base)
    watch = LeafWatch(len(a.leaves)) if rows.has_bits else None
    if watch is not None:
        width = 8 * len(a.leaves)
        for block in rechunk(a.blocks(BITS, BLOCK), rows_per_block(width) * width):
            watch.see(block)
    untouched = untouched_leaves(sides, rows) if rows.has_bits else []
    return parted_rows(sides, a, b, parted, rows, policy, watch, untouched, _planted_flip(a), base, notes)


def parted_rows(
    sides: tuple[Side, Side],
    a: Run,
    b: Run,
    parted: list[str],
    rows: RowComparison,
    policy: Policy,
    watch: LeafWatch | None,
    untouched: list[str],
    flip: v.PlantedFlip | None,
    base: dict[str, Any],
    notes: list[str],
) -> v.Verdict:
    """The verdict once the rows were compared: what else parts, and what all of it means."""
    differences = rows.differences
    first, leaves = rows.first, rows.parted
    base["outcome"] = outcome_rows(a.summary, b.summary)
    agreed_json = Count()
    summary_parts = compare_summaries(a, b, SUMMARY in parted, policy, differences, agreed_json)
    if first is None and summary_parts is not None:
        first, leaves = summary_parts
    other = compare_other_files(a, b, parted, differences)
    first = first or other
    base |= {
        "first_divergence": first,
        "parted": leaves,
        "growth": rows.growth.points() if rows.first is not None else [],
        "differences": differences.kept,
        "differences_total": differences.total,
        "agreed": v.Agreement(
            rows=rows.rows_agreed,
            leaves=len(rows.common) if rows.has_bits else 0,
            values=rows.values_agreed,
            metrics=rows.json_agreed + agreed_json.total,
            never_changed=[a.leaves[i].name for i in watch.never_changed] if watch is not None else [],
            seed_independent=untouched,
            planted_flip=flip,
        ),
    }
    return _judged(sides, a, b, rows, differences, policy, watch, base, notes)


def _judged(
    sides: tuple[Side, Side],
    a: Run,
    b: Run,
    rows: Any,
    differences: Differences,
    policy: Policy,
    watch: LeafWatch | None,
    base: dict[str, Any],
    notes: list[str],
) -> v.Verdict:
    if differences.total == 0:
        notes.append(
            "some files differ in ignored keys, or in how the same values are written (key order, blanks, digits)"
            if policy.ignore
            else "some files differ only in how the same values are written: key order, blanks, digits"
        )
        return _agree(sides, base.pop("agreed"), watch, a, base, notes)
    short = _unfinished_short(sides, a, b, rows)
    if short is not None:
        return v.make(v.INCOMPLETE, f"{short}", next=short.remedy, **base)
    if differences.outside == 0:
        if policy.fast:
            message = f"mode 0 promises nothing, and {MODE_0_KEY} differs by less than a dollar and less than 0.1 %"
        else:
            message = f"{differences.total:,} differences, each inside its tolerance"
        return v.make(v.WITHIN_TOLERANCE, message, **base)
    if policy.tolerance.rtol is not None:
        notes.append(
            "--rtol forgives a leaf only by its checksum, and nothing else; --tolerance FILE covers other keys"
        )
    first = base["first_divergence"]
    message = f"the runs part at step {first.step} in leaf {first.leaf}" if first else "the leaves differ"
    if first and first.step == SUMMARY_STEP:
        message = f"the rows agree, the summary parts: {first.leaf} {first.run_a} | {first.run_b}"
    message += _pnl(base["outcome"])
    return v.make(v.DRIFT, message, next=_what_next(sides, first), **base)


def _what_next(sides: tuple[Side, Side], first: v.Divergence | None) -> str:
    """Of one tree: whether the trainer parts from itself in as many steps. Of two: what changed between them."""
    compare = v.command("foxrun", "compare", sides[0].label, sides[1].label, "--report", "report.html")
    all_of_it = f"{compare} shows every leaf and the growth"
    runs = [summary_of(side) for side in sides]
    commits = [run.commit for run in runs if re.fullmatch("[0-9a-f]{40}", run.commit)]
    if runs[0].tree != runs[1].tree:
        changed = v.command("git", "diff", *(commit[:12] for commit in commits))
        return f"{changed} shows what changed; {all_of_it}" if len(set(commits)) == 2 else all_of_it
    words = ["foxrun", "check"]
    words += ["--sha", commits[0][:12]] if len(commits) == 2 and commits[0] == commits[1] else []
    for name in ("seed", "mode"):
        value = getattr(runs[0], name)
        words += [f"--{name}", str(value)] if value is not None and value == getattr(runs[1], name) else []
    words += ["--steps", str(first.row + 2)] if first is not None and isinstance(first.step, int) else []
    located = v.command("foxrun", "localize", sides[0].label, sides[1].label)
    itself = f"{v.command(*words)} {v.SAME_PARAMETERS} tells whether the trainer parts from itself"
    return f"{located} runs it again and finds the operation, the cause and a remedy; {itself}; {all_of_it}"


def _pnl(outcome: list[v.OutcomeRow]) -> str:
    """The effect on the P&L, as the end of a sentence."""
    for row in outcome:
        if row.key == MODE_0_KEY and row.delta is not None:
            if row.delta == 0:
                return "; the P&L is the same"
            percent = f" ({row.percent:+.3g} %)" if row.percent is not None else ""
            return f"; P&L differs by {dollars(row.delta)}{percent}"
    return ""


def _unfinished_short(sides: tuple[Side, Side], a: Run, b: Run, rows: Any) -> Problem | None:
    """The shorter of two runs, when nothing says that it is finished: killed, or still running."""
    counts = (a.row_count, b.row_count) if rows.has_bits else (rows.diag_rows[0], rows.diag_rows[1])
    if counts[0] == counts[1]:
        return None
    lacking = sides[0] if counts[0] < counts[1] else sides[1]
    if lacking.finished:
        return None
    what = f"ends after {min(counts)} of {max(counts)} rows, and no manifest says that it is finished"
    return Problem(lacking.label, None, what, "let it finish, or run it again")


def _seeds_differ(sides: tuple[Side, Side]) -> bool:
    seeds = [side.manifest.get("seed") for side in sides]
    return None not in seeds and seeds[0] != seeds[1]


def untouched_leaves(sides: tuple[Side, Side], rows: Any) -> list[str]:
    """Leaves that agree in every row though the seeds differ: they do not depend on the seed."""
    if not _seeds_differ(sides):
        return []
    return [leaf.name for leaf, parted in zip(rows.common, rows.ever_parted, strict=True) if not parted]
