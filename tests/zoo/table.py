"""The zoo's score as text and as Markdown. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from tests.zoo.score import QUESTIONS, Mark


def line(mark: Mark) -> str:
    """One specimen as it ends."""
    if not mark.kind:
        state = "quiet" if mark.right["quiet"] else "ALARM"
        return f"{mark.id:34} {state:46} {mark.seconds:6.0f} s  {_why(mark)}"
    answers = " ".join(f"{q if mark.right[q] else '-':9}" for q in QUESTIONS)
    return f"{mark.id:34} {answers} {mark.seconds:5.0f} s  {_why(mark)}"


def _why(mark: Mark) -> str:
    wrong = [f"{q}: {mark.said[q]}" for q in mark.said if not mark.right.get(q, False)]
    return "; ".join(([mark.trouble] if mark.trouble else []) + wrong)


def rows(marks: Sequence[Mark]) -> list[list[str]]:
    """One row a kind, and the total last: kind, count, right answers of each question."""
    kinds = sorted({m.kind for m in marks if m.kind})
    groups = [(kind, [m for m in marks if m.kind == kind]) for kind in kinds]
    groups.append(("all", [m for m in marks if m.kind]))
    return [
        [kind, str(len(group)), *(f"{sum(m.right[q] for m in group)}" for q in QUESTIONS)] for kind, group in groups
    ]


def summary(marks: Sequence[Mark]) -> list[str]:
    """Shares, alarms and times, a line each."""
    culprits = [m for m in marks if m.kind]
    clean = [m for m in marks if not m.kind]
    result = []
    if culprits:
        shares = [f"{q} {100 * sum(m.right[q] for m in culprits) / len(culprits):.0f} %" for q in QUESTIONS]
        times = [m.seconds for m in culprits]
        result.append(f"{len(culprits)} culprits: {', '.join(shares)}")
        result.append(f"time of one: median {statistics.median(times):.0f} s, longest {max(times):.0f} s")
    if clean:
        alarms = [m.id for m in clean if not m.right["quiet"] and not m.trouble]
        broken = [m.id for m in clean if m.trouble]
        result.append(f"{len(clean)} clean trainers: {len(alarms)} false alarms{_names(alarms)}")
        if broken:
            result.append(f"without an answer: {', '.join(broken)}")
    return result


def _names(names: Sequence[str]) -> str:
    return f" ({', '.join(names)})" if names else ""


def text(marks: Sequence[Mark]) -> str:
    """The table per kind and the summary."""
    head = ["kind", "of", *QUESTIONS]
    body = [head, *rows(marks)] if any(m.kind for m in marks) else []
    lines = [f"{row[0]:24}" + "".join(f"{cell:>11}" for cell in row[1:]) for row in body]
    return "\n".join([*lines, *summary(marks)])


def markdown(marks: Sequence[Mark], machine: str) -> str:
    """The same for docs/zoo.md, with each specimen's own line."""
    out = [f"Measured on {machine}.", "", *(f"- {item}" for item in summary(marks)), ""]
    out += [f"| kind | of | {' | '.join(QUESTIONS)} |", "|---|---|" + "---|" * len(QUESTIONS)]
    out += ["| " + " | ".join(row) + " |" for row in rows(marks)]
    out += ["", f"| specimen | kind | {' | '.join(QUESTIONS)} | seconds |", "|---|---|" + "---|" * (len(QUESTIONS) + 1)]
    for m in marks:
        if m.kind:
            answers = " | ".join("yes" if m.right[q] else "no" for q in QUESTIONS)
            out.append(f"| {m.id} | {m.kind} | {answers} | {m.seconds:.0f} |")
    return "\n".join(out) + "\n"
