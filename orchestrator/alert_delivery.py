"""The outbox: a message stays in the state until its channel has taken it, over quiet hours and dead channels.

Whoever delivers claims what is due, sends, and takes out what was taken; a claim that its owner did not live to settle
runs out. So each message is sent once, or, when somebody was killed in between, twice, and never not at all.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from orchestrator import alerts
from orchestrator.alert_episodes import State, Wanted
from orchestrator.alert_state import AlertState
from orchestrator.alerts import Message
from orchestrator.compare.text import count

ATTEMPTS, BACKOFF_S, DEADLINE_S = 20, 1.0, 100.0  # a channel that fails for a minute still gets its message at once
ATTEMPTS_OF_THE_DEAD = 2  # a channel that failed all that time before is only knocked at
CLAIM_S = DEADLINE_S + 30
KEPT = timedelta(days=7)
QUEUED_KEPT, DELIVERIES_KEPT = 50, 200  # messages a channel, lines for people
Clock = Callable[[], datetime]


def now_utc() -> datetime:
    """The time."""
    return datetime.now(UTC)


def queue(state: State, message: Message, want: Wanted, *, workflow: str, now: datetime) -> None:
    """Put a message at the end of a channel's queue."""
    entry = {
        "id": secrets.token_hex(8), "channel": want.channel, "event": want.event, "workflow": workflow,
        "title": message.title, "body": message.body, "fields": message.fields, "good": message.good,
        "created": _text(now), "due": _text(want.due), "attempts": 0, "error": "", "claimed": "",
    }  # fmt: skip
    state["outbox"].append(entry)
    mine = [item for item in state["outbox"] if item["channel"] == want.channel]
    for item in mine[:-QUEUED_KEPT]:
        _drop(state, item, f"more than {QUEUED_KEPT} messages wait", now)


def deliver(
    store: AlertState, channels: Mapping[str, str], *, clock: Clock = now_utc, attempts: int = ATTEMPTS,
    backoff_s: float = BACKOFF_S, deadline_s: float = DEADLINE_S,
) -> list[str]:  # fmt: skip
    """Send all that is due and say what became of it, a line each, without secrets.

    Args:
        store: whose outbox it is.
        channels: name -> URL of those that there are.
        clock: the time.
        attempts, backoff_s, deadline_s: as of ``alerts.send_all``.
    """
    token = secrets.token_hex(8)
    claimed = store.change(lambda state: _claim(state, channels, token, clock()))
    if not claimed:
        return []
    queues: dict[str, list[dict[str, Any]]] = {}  # by URL: two names may stand for one
    for entry in claimed:
        queues.setdefault(channels[entry["channel"]], []).append(entry)
    dead = {url for url, entries in queues.items() if any(entry["attempts"] for entry in entries)}
    outcome: dict[str, alerts.AlertFailure | None] = {}
    for urls, tries in ((set(queues) - dead, attempts), (dead, min(attempts, ATTEMPTS_OF_THE_DEAD))):
        messages = {url: [_message(entry) for entry in queues[url]] for url in queues if url in urls}
        sent = alerts.send_all(messages, attempts=tries, backoff_s=backoff_s, deadline_s=deadline_s)
        for url, results in sent.items():
            outcome |= {entry["id"]: result for entry, result in zip(queues[url], results, strict=True)}
    store.change(lambda state: _settle(state, outcome, clock()))
    return list(_told(claimed, outcome))


def undelivered(state: State, now: datetime) -> list[str]:
    """A line for each channel that did not take what was due."""
    lines = []
    for name in dict.fromkeys(entry["channel"] for entry in state["outbox"]):
        failed = [e for e in state["outbox"] if e["channel"] == name and e["attempts"] and _time(e["due"]) <= now]
        if failed:
            many = count(len(failed), "message")
            lines.append(f"channel {name} has not taken {many} since {failed[0]['created']}: {failed[-1]['error']}")
    return lines


def story(state: State, workflow: str) -> list[str]:
    """What became of the messages of one workflow, for people: a line a channel."""
    lines = {d["channel"]: d["text"] for d in state["deliveries"] if d["workflow"] == workflow}
    for entry in state["outbox"]:
        if entry["workflow"] == workflow:
            why = (
                f"not delivered: {entry['error']}; goes on trying" if entry["attempts"] else f"waits for {entry['due']}"
            )
            lines[entry["channel"]] = why
    return [f"{channel}: {text}" for channel, text in lines.items()]


def next_due(state: State) -> datetime | None:
    """When the next message may be sent that has not been tried yet."""
    return min((_time(entry["due"]) for entry in state["outbox"]), default=None)


def _claim(state: State, channels: Mapping[str, str], token: str, now: datetime) -> list[dict[str, Any]]:
    for entry in list(state["outbox"]):
        if now - _time(entry["created"]) > KEPT and now - _time(entry["due"]) > KEPT:
            _drop(state, entry, f"given up after {KEPT.days} days: {entry['error'] or 'no such channel any more'}", now)
    held: set[str] = set()
    waiting: set[str] = set()
    claimed = []
    for entry in state["outbox"]:
        name = entry["channel"]
        taken = entry["claimed"] and _time(entry["claimed"].partition(" ")[0]) > now
        if name not in channels or taken:
            held.add(name)  # what comes later waits until it is known what became of this
        elif _time(entry["due"]) > now or (name in waiting and entry["event"] == "mended"):
            waiting.add(name)  # good news never overtakes the bad; something worse may
        elif name not in held:
            entry["claimed"] = f"{_text(now + timedelta(seconds=CLAIM_S))} {token}"
            claimed.append(dict(entry))
    return claimed


def _settle(state: State, outcome: Mapping[str, alerts.AlertFailure | None], now: datetime) -> None:
    for entry in list(state["outbox"]):
        if entry["id"] not in outcome:
            continue
        failure = outcome[entry["id"]]
        entry["claimed"] = ""
        if failure is None:
            state["outbox"].remove(entry)
            _note(state, entry, f"told at {_text(now)}")
        else:
            entry["attempts"] += max(1, failure.attempts)
            entry["error"] = failure.reason


def _told(claimed: Sequence[Mapping[str, Any]], outcome: Mapping[str, alerts.AlertFailure | None]) -> Iterator[str]:
    for name in dict.fromkeys(entry["channel"] for entry in claimed):
        results = [outcome[entry["id"]] for entry in claimed if entry["channel"] == name]
        failed = [failure for failure in results if failure is not None]
        if told := len(results) - len(failed):
            yield f"alert sent to {name}" + (f" ({count(told, 'message')})" if told > 1 else "")
        if failed:
            yield str(failed[0])
            yield f"{name}: {count(len(failed), 'message')} kept, to be sent when it answers"


def _drop(state: State, entry: dict[str, Any], why: str, now: datetime) -> None:
    state["outbox"].remove(entry)
    _note(state, entry, f"dropped at {_text(now)}: {why}")


def _note(state: State, entry: Mapping[str, Any], text: str) -> None:
    state["deliveries"].append({"workflow": entry["workflow"], "channel": entry["channel"], "text": text})
    del state["deliveries"][:-DELIVERIES_KEPT]


def _message(entry: Mapping[str, Any]) -> Message:
    return Message(title=entry["title"], body=entry["body"], fields=dict(entry["fields"]), good=bool(entry["good"]))


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
