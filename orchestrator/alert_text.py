"""What an alert says: a short title, a text for people, and the facts as an object for programs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from orchestrator.compare.verdict import OutcomeRow, Verdict

PAYLOAD_VERSION = 1
TITLE_LENGTH = 120
LINE_LENGTH = 1500


@dataclass(frozen=True, kw_only=True)
class AlertContext:
    """What the alert is about. ``link`` leads to the report; empty texts are left out.

    ``kind`` is the workflow's (ci-gate, nightly, ...), ``origin`` the repository's address, ``started`` an RFC 3339
    time; ``author`` and ``message`` are the commit's. ``event`` is broken, mended or news; of mended, ``since`` is the
    commit that broke and ``commits`` how many were broken. ``undelivered`` are lines about channels that are dead.
    """

    workflow: str = ""
    kind: str = ""
    origin: str = ""
    started: str = ""
    author: str = ""
    message: str = ""
    event: str = ""
    since: str = ""
    commits: int = 0
    undelivered: tuple[str, ...] = ()
    sha: str = ""
    branch: str = ""
    seed: int | None = None
    mode: int | None = None
    link: str = ""


def title_of(verdict: Verdict, context: AlertContext) -> str:
    """One short line: the verdict, the step, and the workflow."""
    word = verdict.verdict.replace("_", " ")
    if context.event == "mended":
        now = f"{'has' if verdict.verdict == 'succeeded' else 'is'} {word}"
        return one_line(f"foxrun: mended: {context.kind or 'a run'} on {context.branch} {now}", TITLE_LENGTH)
    first = verdict.first_divergence
    where = f" at step {first.step}" if first else ""
    return one_line(f"foxrun: {word}{where}" + (f" in {context.workflow}" if context.workflow else ""), TITLE_LENGTH)


def body_of(verdict: Verdict, context: AlertContext) -> str:
    """Plain text for people: what, where, at what cost, from which run, where to read on, what to do next."""
    lines = [verdict.message]
    if context.event == "mended":
        many = f"{context.commits} commit{'' if context.commits == 1 else 's'}"
        lines.insert(0, f"{context.branch} is mended; it was broken for {many}, since {context.since[:12]}")
    if verdict.first_divergence:
        lines.append(verdict.first_divergence.line)
    if money := pnl_text(verdict):
        lines.append(f"P&L difference: {money}")
    run = [
        ("workflow", context.workflow),
        ("branch", context.branch),
        ("commit", context.sha[:12]),
        ("seed", "" if context.seed is None else str(context.seed)),
        ("mode", "" if context.mode is None else str(context.mode)),
    ]
    facts = ", ".join(f"{name} {text}" for name, text in run if text)
    lines += [facts] if facts else []
    lines += [f"report: {context.link}"] if context.link else []
    lines += [f"next: {verdict.next}"] if verdict.next and context.event != "mended" else []
    lines += [f"note: {line}" for line in context.undelivered]
    return "\n".join(one_line(line, LINE_LENGTH) for line in lines)


def payload(verdict: Verdict, context: AlertContext) -> dict[str, Any]:
    """The facts for programs: the object `foxrun` in a webhook's JSON. Keys are never left out; unknown is null."""
    first, money = verdict.first_divergence, _pnl(verdict)
    return {
        "version": PAYLOAD_VERSION,
        "verdict": verdict.verdict,
        "exit_code": verdict.exit_code,
        "message": verdict.message,
        "subject": verdict.subject,
        "step": first.step if first else None,
        "leaf": first.leaf if first else None,
        "first_divergence": first.line if first else None,
        "pnl_difference_usd": _finite(money.delta if money else None),
        "pnl_difference_percent": _finite(money.percent if money else None),
        "workflow": context.workflow or None,
        "sha": context.sha or None,
        "branch": context.branch or None,
        "seed": context.seed,
        "mode": context.mode,
        "report": context.link or None,
        "next": verdict.next or None,
        "event": context.event or None,
        "kind": context.kind or None,
        "repository": context.origin or None,
        "author": context.author or None,
        "commit_message": context.message or None,
        "broken_since": context.since or None,
        "undelivered": list(context.undelivered),
    }


def pnl_text(verdict: Verdict) -> str:
    """``-184,000.00 USD (-18.4 %)``; empty where no difference of money is known."""
    money = _pnl(verdict)
    if money is None or money.delta is None:
        return ""
    in_cents = money.delta == 0 or 0.005 <= abs(money.delta) < 1e15
    amount = f"{money.delta:+,.2f}" if in_cents else f"{money.delta:+.6g}"
    share = "" if money.percent is None else f" ({money.percent:+.4g} %)"
    return f"{amount} USD{share}"


def _pnl(verdict: Verdict) -> OutcomeRow | None:
    return next((row for row in verdict.outcome if row.key == "total_pnl_usd"), None)


def _finite(number: float | None) -> float | str | None:
    """Valid JSON has no NaN: non-finite values are the run contract's strings."""
    if number is None or math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def one_line(text: str, length: int) -> str:
    """The text on one line of at most ``length`` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= length else f"{flat[: length - 1]}…"
