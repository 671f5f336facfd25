"""A verdict as an entry of a dated record of root causes, in Markdown: what parted, and the evidence. Pure."""

from __future__ import annotations

import re

from orchestrator.compare import verdict as v
from orchestrator.compare.text import dollars
from orchestrator.compare.verdict import Verdict

_VERSIONS = ("gpu_name", "cpu_model", "torch", "cuda", "cudnn", "driver", "python")
_PNL = "total_pnl_usd"
_LEAVES = 5


def note(verdict: Verdict, *, date: str) -> str:
    """The entry: a heading with the date, then facts; what nobody knows yet is left to fill in, and says so."""
    first = verdict.first_divergence
    where = f" at step {first.step} in `{_code(first.leaf)}`" if first else ""
    lines = [f"## {date}: {verdict.verdict.replace('_', ' ')}{where}", "", _plain(verdict.message) + ".", ""]
    if first:
        lines += ["    " + _line(first.line), ""]
    lines += [f"- {text}" for text in _facts(verdict)]
    lines += ["- Cause: not known yet", "- Remedy: none verified yet", ""]
    return "\n".join(lines)


def _facts(verdict: Verdict) -> list[str]:
    found = []
    pnl = next((row for row in verdict.outcome if row.key == _PNL and row.delta), None)
    if pnl is not None and pnl.delta is not None:
        found.append(f"Effect on P&L: {dollars(pnl.delta)}")
    if verdict.parted:
        names = ", ".join(f"`{_code(leaf.name)}`" for leaf in verdict.parted[:_LEAVES])
        more = len(verdict.parted) - _LEAVES
        found.append(f"Parted in that step: {names}" + (f" and {more} more" if more > 0 else ""))
    for part in verdict.parts:
        found.append(f"Part that failed: {_plain(part.name)}, {_plain(part.message or part.reason or part.phase)}")
    for letter, run in zip("AB", verdict.runs, strict=False):
        facts = [f"seed {run.seed}"] if run.seed is not None else []
        facts += [f"mode {run.mode}"] if run.mode is not None else []
        facts += [f"commit {run.commit[:12]}"] if run.commit else []
        found.append(f"Run {letter}: {', '.join([*facts, f'{run.rows} rows'])}")
    environment = (verdict.runs[0].manifest.get("environment") or {}) if verdict.runs else {}
    versions = [f"{name} {_plain(str(environment[name]))}" for name in _VERSIONS if environment.get(name)]
    if versions:
        found.append("Machine: " + ", ".join(versions))
    found += [f"Note: {_plain(text)}" for text in verdict.notes]
    if verdict.next and verdict.exit_code != v.EXIT_CODES[v.IDENTICAL]:
        found.append(f"Next: {_line(verdict.next)}")
    return found


def _line(text: str) -> str:
    return " ".join(text.split())


def _plain(text: str) -> str:
    """Text of others as text: no Markdown of theirs, no line of theirs."""
    return re.sub(r"([\\`*_\[\]<>#|!])", r"\\\1", _line(text))


def _code(text: str) -> str:
    return _line(text).replace("`", "'")
