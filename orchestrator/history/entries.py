"""One entry of the history: what a completed workflow came to, small enough to keep for ever. Pure."""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foxrun import jsonio
from orchestrator.compare import verdict as v
from orchestrator.compare.verdict import Verdict

PREFIX = "history/"
PNL = "total_pnl_usd"
_LONGEST = 500
_TEXTS = ("name", "uid", "finished", "kind", "branch", "sha", "verdict", "step", "leaf", "message", "report")


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What one workflow came to. ``finished`` is UTC, as ``2026-11-29T19:30:00Z``; ``pnl_difference`` in dollars."""

    name: str
    uid: str
    finished: str
    verdict: str
    kind: str = ""
    branch: str = ""
    sha: str = ""
    seed: int | None = None
    mode: int | None = None
    step: str = ""
    leaf: str = ""
    pnl_difference: float | None = None
    message: str = ""
    report: str = ""

    @property
    def exit_code(self) -> int:
        """Of the verdict; one that this version does not know counts as infrastructure."""
        return v.EXIT_CODES.get(self.verdict, v.EXIT_CODES[v.INFRASTRUCTURE])


def entry_of(verdict: Verdict, *, name: str, uid: str, finished: str, kind: str, branch: str, sha: str) -> Entry:
    """The entry of a workflow's last verdict; what the arguments leave empty is taken from its runs."""
    run = verdict.runs[0] if verdict.runs else v.RunSummary(label="")
    first = verdict.first_divergence
    pnl = next((row.delta for row in verdict.outcome if row.key == PNL), None)
    return Entry(
        name=name,
        uid=uid,
        finished=finished,
        verdict=verdict.verdict,
        kind=kind,
        branch=branch or str((run.manifest.get("code") or {}).get("branch") or ""),
        sha=sha or run.commit,
        seed=run.seed,
        mode=run.mode,
        step=str(first.step) if first else "",
        leaf=first.leaf if first else "",
        pnl_difference=pnl,
        message=verdict.message[:_LONGEST],
    )


def to_text(entry: Entry) -> str:
    """The file of an entry: one line of JSON."""
    return jsonio.dumps(dataclasses.asdict(entry)) + "\n"


def from_text(data: bytes, name: str) -> Entry | None:
    """Read an entry back; None for what is none, since one damaged file must not hide all others."""
    try:
        value = jsonio.loads(data, name=name)
    except Exception:
        return None
    if not isinstance(value, Mapping):
        return None
    fields: dict[str, Any] = {key: str(value.get(key) or "") for key in _TEXTS}
    for key in ("seed", "mode"):
        fields[key] = value.get(key) if isinstance(value.get(key), int) else None
    pnl = value.get("pnl_difference")
    fields["pnl_difference"] = float(pnl) if isinstance(pnl, int | float) and not isinstance(pnl, bool) else None
    return Entry(**fields) if fields["name"] and fields["finished"] and fields["verdict"] else None


def newest_first(entries: Iterable[Entry]) -> list[Entry]:
    """In order of time, the newest first; those that ended in the same second by name."""
    return sorted(entries, key=lambda e: (e.finished, e.name, e.uid), reverse=True)


def chosen(
    entries: Iterable[Entry], *, branches: Sequence[str] = (), kinds: Sequence[str] = (), verdicts: Sequence[str] = ()
) -> list[Entry]:
    """Those that match: branches and kinds by pattern, verdicts by name; nothing given matches all."""

    def fits(text: str, patterns: Sequence[str]) -> bool:
        return not patterns or any(fnmatch.fnmatchcase(text, pattern) for pattern in patterns)

    return [e for e in entries if fits(e.branch, branches) and fits(e.kind, kinds) and fits(e.verdict, verdicts)]
