"""A verdict as plain lines of text: the verdict first, what supports it, and last what to do next."""

from __future__ import annotations

import math
import re
from typing import Any

from orchestrator.compare import verdict as v
from orchestrator.compare.values import show
from orchestrator.printable import printable

LEAVES_SHOWN = 20
POINTS_SHOWN = 8
NAMES_SHOWN = 10
DIFFERENCES_SHOWN = 10

NOT_BIT_EXACT = "The runs are NOT bit-exact: they differ inside the tolerance."


def lines_of(verdict: v.Verdict) -> list[str]:
    """All lines, without trailing newlines; fixed for a given verdict."""
    out = [f"{verdict.verdict}: {verdict.message}"]
    if verdict.verdict == v.WITHIN_TOLERANCE:
        out.append(NOT_BIT_EXACT)
    if verdict.first_divergence is not None:
        out.append(verdict.first_divergence.line)
    out += (
        _seeds(verdict)
        + _runs(verdict)
        + _tie_break(verdict)
        + _agreed(verdict)
        + _parts(verdict)
        + _manifests(verdict)
    )
    out += _parted(verdict) + _growth(verdict) + _outcome(verdict) + _differences(verdict)
    out += [f"note: {note}" for note in verdict.notes]
    out += _next(verdict.next)
    return [printable(line) for line in out]


def _next(text: str) -> list[str]:
    """What to do: each command on a line of its own, where it can be copied whole."""
    pieces = [piece for piece in re.split(r"(`[^`\n]+`)", text) if piece.strip(" ,;:.")]
    if len(pieces) < 2:
        return [f"next: {text.strip('`')}"] if text else []
    return ["next:", *(f"    {p.strip('`')}" if p[0] == "`" else f"  {p.strip(' ,;')}" for p in pieces)]


def count(number: int, one: str, many: str = "") -> str:
    """``1 row``, ``2 rows``."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def number(value: Any) -> str:
    """A value for people: floats to six digits, everything else as JSON would show it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if not math.isfinite(value):
            return {True: "NaN"}.get(math.isnan(value), "Infinity" if value > 0 else "-Infinity")
        return f"{value:,.2f}" if 1e5 <= abs(value) < 1e12 else f"{value:.6g}"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def dollars(value: float) -> str:
    """An amount with cents, or with what digits it has when it is less than a cent."""
    amount = f"{abs(value):,.2f}" if abs(value) >= 0.01 else f"{abs(value):.3g}"
    return f"{'-' if value < 0 else ''}${amount}"


def names(values: list[str], shown: int = NAMES_SHOWN) -> str:
    """Names with commas, the rest counted."""
    more = len(values) - shown
    return ", ".join(values[:shown]) + (f" and {more} more" if more > 0 else "")


def _table(rows: list[list[str]]) -> list[str]:
    if not rows:
        return []
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _tie_break(verdict: v.Verdict) -> list[str]:
    broken = verdict.tie_break
    if broken is None:
        return []
    out = [f"C: {broken.run.label} (the tie-break)"]
    for letter, word, first in (("A", broken.with_a, broken.first_with_a), ("B", broken.with_b, broken.first_with_b)):
        if word:
            where = first.removeprefix("FIRST_DIVERGENCE: ")
            out.append(f"  {letter} | C: {word}" + (f" ({where})" if where else ""))
    return out


def _seeds(verdict: v.Verdict) -> list[str]:
    rows = [["seed", "verdict", "step", "leaf", "P&L difference"]]
    for row in verdict.seeds:
        pnl = dollars(row.pnl_difference) if row.pnl_difference else "-"
        word = row.verdict + (" (the seed changes nothing)" if row.unused else "")
        rows.append([str(row.seed), word, row.step or "-", row.leaf or "-", pnl])
    return _table(rows) if verdict.seeds else []


def _runs(verdict: v.Verdict) -> list[str]:
    out = []
    for letter, run in zip("AB", verdict.runs[:2], strict=False):
        facts = [count(run.rows, "row")]
        facts += [f"seed {run.seed}"] if run.seed is not None else []
        facts += [f"mode {run.mode}"] if run.mode is not None else []
        facts += [f"commit {run.commit[:12]}"] if run.commit else []
        out.append(f"{letter}: {run.label} ({', '.join(facts)})")
    return out


def _agreed(verdict: v.Verdict) -> list[str]:
    agreed = verdict.agreed
    if agreed is None:
        return []
    counts = []
    if agreed.leaves and not agreed.values and not agreed.metrics:
        counts.append(f"{count(agreed.leaves, 'leaf', 'leaves')} x {count(agreed.rows, 'row')} by their hashes")
    elif agreed.leaves:
        counts.append(f"{count(agreed.values, 'fingerprint')} of {count(agreed.leaves, 'leaf', 'leaves')}")
    elif agreed.metrics:
        counts.append(count(agreed.metrics, "value"))
    if len(counts) == 0 or agreed.values or agreed.metrics:
        total = max((run.rows for run in verdict.runs), default=agreed.rows)
        counts.append(f"{agreed.rows:,} of {count(max(total, agreed.rows), 'row')} throughout")
    out = [f"agreed: {', '.join(counts)}"]
    if agreed.planted_flip is not None:
        flip = agreed.planted_flip
        found = "found" if flip.found else "NOT FOUND: the comparison cannot be trusted"
        where = f"row {flip.row}, {flip.leaf}" if flip.row >= 0 else flip.leaf
        out.append(f"planted flip in a copy ({where}): {found}")
    if agreed.never_changed:
        out.append(f"never changed during the run: {names(agreed.never_changed)}")
    if agreed.seed_independent:
        out.append(f"do not depend on the seed: {names(agreed.seed_independent)}")
    return out


def _parts(verdict: v.Verdict) -> list[str]:
    said: dict[str, list[str]] = {}
    for part in verdict.parts:
        how = f"exit code {part.exit_code}" if part.exit_code is not None else part.phase
        said.setdefault(": ".join([how, *[text for text in (part.reason, part.message) if text]]), []).append(part.name)
    return [f"failed: {' and '.join(who)}: {what}" for what, who in said.items()]


def _manifests(verdict: v.Verdict) -> list[str]:
    shown = [d for d in verdict.manifest_differences if d.matters]
    if not shown:
        return []
    rows = [[d.path, number(d.a), number(d.b)] for d in shown[:DIFFERENCES_SHOWN]]
    more = len(shown) - len(rows)
    return ["the manifests differ in:", *_table(rows), *([f"  and {more} more"] if more > 0 else [])]


def _parted(verdict: v.Verdict) -> list[str]:
    if not verdict.parted or verdict.first_divergence is None:
        return []
    texts = _texts_at(verdict, verdict.first_divergence.step)
    plain = verdict.subject == "metrics"
    rows = [["leaf", *([] if plain else ["component", "kind"]), "A", "B", "delta", "ulp"]]
    for leaf in verdict.parted[:LEAVES_SHOWN]:
        checksums = leaf.checksum_a is not None and leaf.checksum_b is not None
        checksums = checksums and (repr(leaf.checksum_a) != repr(leaf.checksum_b) or leaf.fingerprint_a is None)
        if checksums:
            values = [show(leaf.checksum_a), show(leaf.checksum_b)]
        elif leaf.fingerprint_a is not None:
            values = [leaf.fingerprint_a, leaf.fingerprint_b or "-"]
        else:
            values = texts.get(leaf.name, ["-", "-"])
        what = [] if plain else [leaf.component or "-", leaf.kind or "-"]
        apart = [number(leaf.delta), number(leaf.ulp)]
        if not checksums and leaf.fingerprint_a is not None:
            apart = ["bits", "-"]  # the checksums do not tell the values apart, so their difference says nothing
        rows.append([leaf.name, *what, *values, *apart])
    more = len(verdict.parted) - LEAVES_SHOWN
    order = "" if verdict.subject == "metrics" else ", in dataflow order"
    head = f"parted at step {verdict.first_divergence.step}{order}: {len(verdict.parted)}"
    return [head, *_table(rows), *([f"  and {more} more"] if more > 0 else [])]


def _texts_at(verdict: v.Verdict, step: int | str) -> dict[str, list[str]]:
    """What the differences say about one step: the values of a leaf that has neither checksum nor fingerprint."""
    prefix, found = f"step {step} (row ", {}
    for d in verdict.differences:
        if d.path.startswith(prefix):
            name = d.path.partition(") ")[2]
            found[name] = found[name.partition(".")[2] or name] = [d.a or "missing", d.b or "missing"]
        elif d.file == "eval_summary.json":
            found.setdefault(d.path, [d.a or "missing", d.b or "missing"])
    return found


def _growth(verdict: v.Verdict) -> list[str]:
    points = verdict.growth
    if len(points) < 2:
        return []
    if len(points) > POINTS_SHOWN:  # the first, the last, and between them steps spread evenly by position
        picked = sorted({round(i * (len(points) - 1) / (POINTS_SHOWN - 1)) for i in range(POINTS_SHOWN)})
        points = [points[i] for i in picked]
    rows = [["step", "parted", "largest difference", "relative"]]
    rows += [[str(p.step), str(p.leaves_parted), number(p.max_abs), number(p.max_rel)] for p in points]
    return ["growth:", *_table(rows)]


def _outcome(verdict: v.Verdict) -> list[str]:
    changed = [row for row in verdict.outcome if row.a != row.b or row.delta not in (0, None)]
    if not changed:
        return []
    rows = [["outcome", "A", "B", "delta", "%"]]
    rows += [[r.key, number(r.a), number(r.b), number(r.delta), number(r.percent)] for r in changed[:LEAVES_SHOWN]]
    return _table(rows)


def _differences(verdict: v.Verdict) -> list[str]:
    """Their number, and those that the table of parted leaves does not show."""
    if not verdict.differences:
        return []
    in_rows = ("bits.u64", "diag.jsonl", "rows", "header" if verdict.parted else "rows")
    others = [d for d in verdict.differences if d.file not in in_rows]
    out = [f"differences in all: {verdict.differences_total:,}"]
    for d in others[:DIFFERENCES_SHOWN]:
        values = f": {d.a} | {d.b}" if d.a or d.b else ""
        out.append(f"  {' '.join(text for text in (d.file, d.path, d.kind) if text)}{values}")
    return out
