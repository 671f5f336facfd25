"""What is said on a host: a status in one line, and a comment whose layout and readers no foreign text can touch. Pure.

Foreign text (branch, author, message, leaf, reasons) stands inside <code>, where neither host makes mentions, links or
references of it, with every character that Markdown or HTML might read as a numeric reference, which neither does.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from orchestrator.alert_text import AlertContext, one_line, pnl_text
from orchestrator.compare.verdict import Verdict
from orchestrator.hosts.base import ERROR, FAILURE, SUCCESS
from orchestrator.printable import printable

_PLAIN = re.compile(r"[^A-Za-z0-9 ,=+%()\u00a1-\u2027\u202f-\u2065\u206a-\ud7ff\ue000-\uffff\U00010000-\U0010ffff-]")
_CELL, _SENTENCE = 400, 2000  # characters that are shown of a name, of a sentence
_MARKS = {SUCCESS: "✅", FAILURE: "❌", ERROR: "⚠️"}


def state_of(verdict: Verdict) -> str:
    """success; failure of the code; error where it could not be found out."""
    return SUCCESS if verdict.exit_code == 0 else FAILURE if verdict.exit_code in (3, 4, 5) else ERROR


def description(verdict: Verdict, limit: int) -> str:
    """The verdict in one line of at most ``limit`` characters, the most important first."""
    first, money = verdict.first_divergence, pnl_text(verdict)
    text = verdict.verdict.replace("_", " ")
    if first is None:
        text += f": {verdict.message}"
    else:
        text += f" at step {first.step} in {first.leaf}" + (f"; P&L {money}" if money else "")
    return one_line(printable(text), limit)


def marker(kind: str) -> str:
    """What a comment begins with and is found again by; no reader sees it."""
    return f"<!-- foxrun {re.sub(r'[^a-z0-9-]+', '-', kind.lower())} -->"


def comment(verdict: Verdict, context: AlertContext, *, limit: int) -> str:
    """The comment in Markdown that GitHub and GitLab both read; of at most ``limit`` characters."""
    first, money = verdict.first_divergence, pnl_text(verdict)
    kind = context.kind or verdict.subject
    rows = [("verdict", f"**{verdict.verdict.replace('_', ' ')}** (exit code {verdict.exit_code})")]
    if first is not None:
        rows.append(("first divergence", f"step {code(str(first.step))}, leaf {code(first.leaf)}"))
    if money:
        rows.append(("P&L difference", code(money)))
    of = [("", context.sha[:12]), ("on", context.branch), ("by", context.author)]
    told = " ".join(f"{word} {code(text)}".strip() for word, text in of if text)
    if told:
        rows.append(("commit", told + (f": {code(context.message)}" if context.message else "")))
    run = [
        ("", code(context.workflow) if context.workflow else ""),
        ("seed", "" if context.seed is None else str(context.seed)),
        ("mode", "" if context.mode is None else str(context.mode)),
    ]
    if any(text for _, text in run):
        rows.append(("workflow", ", ".join(f"{word} {text}".strip() for word, text in run if text)))
    if link := link_of(context.link):
        rows.append(("more", f"<{link}>"))
    if verdict.next:
        rows.append(("next", commands(verdict.next)))
    lines = [
        marker(kind),
        f"### {_MARKS[state_of(verdict)]} foxrun {kind if re.fullmatch('[a-z0-9-]+', kind) else 'run'}",
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {text} |" for name, text in rows),
        "",
        code(verdict.message, _SENTENCE),
    ]
    if first is not None:
        lines += ["", code(first.line, _SENTENCE)]
    text = "\n".join(lines) + "\n"
    # Each piece is bounded, so this is never met with either host's own limit.
    return text if len(text) <= limit else "\n".join(lines[:5] + lines[5:6]) + "\n"


def code(text: str, length: int = _CELL) -> str:
    """Foreign text as data: on one line, cut, and with no character left that could mean anything."""
    return f"<code>{_PLAIN.sub(_reference, one_line(printable(text), length))}</code>" if text.strip() else ""


def commands(text: str) -> str:
    """A sentence with commands in backquotes; the words around them are foreign as well, since they may name leaves."""
    pieces = [piece for piece in re.split(r"`([^`]*)`", text.replace("\n", " ")) if piece.strip(" ,;.:")]
    return "<br>".join(code(piece.strip(" ,;"), _SENTENCE) for piece in pieces)


def link_of(text: str) -> str:
    """An address that a browser opens, as it may stand in angle brackets; empty for anything else."""
    plain = re.fullmatch(r"https?://[^\s<>|\\`\x00-\x20\x7f-\U0010ffff]{1,1900}", text)
    return text if plain and urlsplit(text).hostname and "@" not in urlsplit(text).netloc else ""


def _reference(match: re.Match[str]) -> str:
    return f"&#{ord(match[0])};"
