"""docs/causes.md's tables, from the tables that the program itself uses."""

from __future__ import annotations

from foxrun.tracing.switches import SWITCHES
from orchestrator.localize.cause_table import KINDS
from orchestrator.localize.causes import DECISIVE, PLAIN, PROBES, RULE, STRONG, WEAK


def causes() -> str:
    """One section a cause: what it is, what is asked, remedies, the change of code, where it was met."""
    out = []
    for kind in KINDS:
        questions = [(test.__doc__ or "").strip().rstrip(".") for test in kind.tests]
        out += [f"### {kind.name}", "", f"**{kind.title}.** {kind.what}", "", "Asked:", ""]
        out += [f"- {question}" for question in dict.fromkeys(questions) if question]
        if kind.remedies:
            out += ["", f"Tried: {', '.join(f'`{name}`' for name in kind.remedies)}."]
        if kind.change:
            change = kind.change.replace(": {where}", "").replace("{leaf}", "the leaf")
            out += ["", f"In the code: {change}."]
        if kind.reports:
            out += ["", "See: " + ", ".join(f"<{url}>" for url in kind.reports) + "."]
        out.append("")
    return "\n".join(out).strip()


def switches() -> str:
    """One row a remedy that can be switched on."""
    rows = ["| remedy | what it does | for good, in the code | proves a cure |", "|---|---|---|---|"]
    for name, switch in SWITCHES.items():
        proves = "no: it may hide the cause" if switch.hides or name in PROBES else "yes"
        cells = (f"`{name}`", switch.does, f"`{switch.code}`", proves)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows)


def rule() -> str:
    """How a confidence comes about."""
    weights = f"weights: {WEAK} weak, {PLAIN} plain, {STRONG} strong, {DECISIVE} decisive"
    return "\n".join(f"- {part.strip()}" for part in [*RULE.split(";"), weights])
