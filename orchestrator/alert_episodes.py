"""When a branch is told of: once when it breaks, once when it is mended, however many commits lie between. Pure.

The state is one JSON object: `episodes` (what is broken, and who was told), `settled` (the newest good run of each),
`outbox` (messages not delivered yet, in order), `deliveries` (the last ones, for people).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orchestrator.alert_rules import GOOD, Rule

VERSION = 1
State = dict[str, Any]
# Of a branch that is not pushed to any more, nobody asks; these bound the state, which must fit in 1 MiB on a cluster.
EPISODES_KEPT, SETTLED_KEPT = 500, 500
BROKEN, UNKNOWN = "broken", "unknown"
# What is not known of the bits (the cluster failed, files are missing) is told, and does not hide what is known later.
_OF_CODE = {3: BROKEN, 4: BROKEN, 5: BROKEN}


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """A run that ended. ``started``: when its workflow was created, RFC 3339 in UTC; runs are ordered by it."""

    origin: str
    branch: str
    kind: str
    workflow: str
    sha: str
    started: str
    verdict: str
    exit_code: int


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A message to one channel: ``event`` is broken, mended or news; ``due`` when it may be sent, in UTC."""

    channel: str
    event: str
    due: datetime
    since: str = ""  # of mended: the commit that broke
    commits: int = 1  # of mended: runs that were broken


def empty() -> State:
    """The state before the first run."""
    return {"version": VERSION, "episodes": {}, "settled": {}, "outbox": [], "deliveries": []}


def wanted(
    state: State, run: RunFacts, rules: Sequence[Rule], channels: Collection[str], now: datetime
) -> tuple[list[Wanted], str]:
    """Who is to be told of a run, and why nobody else is; ``state`` is changed to remember it.

    Args:
        state: as of ``empty``; changed in place.
        run: what ended.
        rules: who hears of what.
        channels: the names of those that there are, in order.
        now: in UTC.
    """
    covering = [rule for rule in rules if rule.covers(run.branch, run.kind)]
    matching = [rule for rule in covering if run.verdict in rule.verdicts]
    due = _due(matching, channels, now)
    if not run.branch:  # nothing to remember it by
        return [Wanted(channel=c, event="news" if run.verdict in GOOD else "broken", due=d) for c, d in due.items()], ""
    key = json.dumps([run.origin, run.branch, run.kind], ensure_ascii=False)
    if run.verdict in GOOD:
        return _good(state, key, run, covering, due, channels, now)
    return _bad(state, key, run, matching, due)


def _bad(
    state: State, key: str, run: RunFacts, matching: Sequence[Rule], due: dict[str, datetime]
) -> tuple[list[Wanted], str]:
    episode = state["episodes"].get(key)
    if episode is None and run.started < state["settled"].get(key, ""):
        return [], f"a newer run of {run.branch} is good already"
    if episode is None:
        episode = {"sha": run.sha, "workflow": run.workflow, "started": run.started, "commits": [], "told": {}}
        state["episodes"][key] = episode
        _bound(state["episodes"], EPISODES_KEPT, lambda item: str(item["started"]))
    if run.sha not in episode["commits"]:
        episode["commits"] = [*episode["commits"], run.sha][-1000:]
    episode["last"] = max(run.started, str(episode.get("last", "")))
    episode["verdict"] = run.verdict
    told, what = episode["told"], _OF_CODE.get(run.exit_code, UNKNOWN)
    always = {c for rule in matching if rule.repeat for c in (rule.channels or due)}
    out = []
    for channel, moment in due.items():
        news = channel not in told or (told[channel] == UNKNOWN and what == BROKEN)
        if news or channel in always:
            told[channel] = what if news else told[channel]
            out.append(Wanted(channel=channel, event="broken", due=moment))
    why = "" if out or not due else f"{run.branch} is broken since {episode['sha'][:12]}, which was told"
    return out, why


def _good(
    state: State, key: str, run: RunFacts, covering: Sequence[Rule], due: dict[str, datetime],
    channels: Collection[str], now: datetime,
) -> tuple[list[Wanted], str]:  # fmt: skip
    state["settled"][key] = max(run.started, state["settled"].get(key, ""))
    _bound(state["settled"], SETTLED_KEPT, str)
    news = {c: Wanted(channel=c, event="news", due=moment) for c, moment in due.items()}
    episode = state["episodes"].get(key)
    if episode is None:
        return list(news.values()), ""
    if run.started < str(episode["last"]):
        return list(news.values()), f"a newer run of {run.branch} is broken"
    del state["episodes"][key]
    after = {
        channel: moment
        for channel, moment in _due([r for r in covering if r.mended], channels, now).items()
        if channel in episode["told"]
    }
    mended = {
        c: Wanted(channel=c, event="mended", due=moment, since=str(episode["sha"]), commits=len(episode["commits"]))
        for c, moment in after.items()
    }
    return list({**news, **mended}.values()), ""


def _due(rules: Sequence[Rule], channels: Collection[str], now: datetime) -> dict[str, datetime]:
    """When each channel that the rules name may be told: the soonest that any of them says."""
    found: dict[str, datetime] = {}
    for rule in rules:
        for channel in rule.channels or channels:
            found[channel] = min(rule.due(now), found.get(channel, rule.due(now)))
    return found


def _bound(items: dict[str, Any], most: int, age: Any) -> None:
    while len(items) > most:
        del items[min(items, key=lambda key: (age(items[key]), key))]
