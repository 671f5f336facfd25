"""Sequences of events beside each other: passing over what one alone has, the same in another order, host events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from orchestrator.localize.trace import Event

BRACKETS = ("module", "backward", "optimizer", "step")
LOOK_AHEAD = 400
RESYNC, RESYNC_RUN = 12, 16


def without_hosts(events: Iterable[Event], hosts: list[Event]) -> Iterator[Event]:
    """Events of operations alone; host events go to ``hosts``, brackets nowhere."""
    for event in events:
        if event.kind == "host" and not event.brings_data:
            hosts.append(event)
        elif event.kind not in BRACKETS:
            yield event


def resync(left: Sequence[Event], i: int, right: Sequence[Event], j: int) -> tuple[int, int] | None:
    """How many events of each side to pass over until a run of equal ones follows; None when there is no such run."""
    for far in range(1, RESYNC):
        for step_a in range(far + 1):
            for step_b in (far,) if step_a < far else range(far + 1):
                a = left[i + step_a : i + step_a + RESYNC_RUN]
                b = right[j + step_b : j + step_b + RESYNC_RUN]
                passed = [*left[i : i + step_a], *right[j : j + step_b]]
                if any(e.kind in ("draw", "seed", "kernel") for e in passed):
                    continue
                if len(a) == len(b) == RESYNC_RUN and all(_alike(x, y) for x, y in zip(a, b, strict=True)):
                    return step_a, step_b
    return None


FAR, KEYS_RUN = 4000, 3


def by_keys(left: Sequence[Event], i: int, right: Sequence[Event], j: int) -> tuple[int, int] | None:
    """How many events of one side to pass over until both do the same again, whatever the values; None for never."""
    for far in range(1, FAR):
        for step_a, step_b in ((0, far), (far, 0)):
            a, b = left[i + step_a : i + step_a + KEYS_RUN], right[j + step_b : j + step_b + KEYS_RUN]
            if len(a) == len(b) == KEYS_RUN and all(x.key == y.key for x, y in zip(a, b, strict=True)):
                return step_a, step_b
        if i + far >= len(left) and j + far >= len(right):
            return None
    return None


def run_alone(left: Sequence[Event], i: int, right: Sequence[Event], j: int) -> Event | None:
    """What one twin alone runs from here, before both do the same again: the first draw in it, else what the second
    twin begins with; None where there is none, or where the first twin runs it."""
    step = by_keys(left, i, right, j)
    if step is None:
        return None
    stretch = [*left[i : i + step[0]], *right[j : j + step[1]]]
    # What the other twin draws at the same line soon afterwards is drawn by both.
    others = {(e.name, e.where) for e in (right[j : j + len(stretch)] if step[0] else left[i : i + len(stretch)])}
    drawn = next((e for e in stretch if e.kind == "draw" and (e.name, e.where) not in others), None)
    return drawn or (right[j] if step[0] == 0 else None)


def _alike(x: Event, y: Event) -> bool:
    return x.key == y.key and _ins(x) == _ins(y) and prints(x.outs) == prints(y.outs)


def same_in_another_order(a: Sequence[Event], b: Sequence[Event]) -> int:
    """The length of the shortest stretch from here that both twins run, in another order; 0 when there is none."""
    balance: Counter[tuple[str, str, str]] = Counter()
    for length, (x, y) in enumerate(zip(a, b, strict=False), start=1):
        for event, sign in ((x, 1), (y, -1)):
            token = (event.kind, event.name, event.shapes)
            balance[token] += sign
            if not balance[token]:
                del balance[token]
        if not balance and length > 1:
            return length
    return 0


def turns_differ(left: Sequence[Event], right: Sequence[Event]) -> bool:
    """Whether threads take turns in another way."""
    return [e.thread for e in left] != [e.thread for e in right]


def host_differences(a: Sequence[Event], b: Sequence[Event]) -> list[tuple[Event, Event]]:
    """Host events of which the twins got different answers, matched by name and line, then by their turn there."""
    turns: dict[tuple[str, str], list[Event]] = {}
    for event in b:
        turns.setdefault((event.name, event.where), []).append(event)
    taken: Counter[tuple[str, str]] = Counter()
    found = []
    for event in a:
        key = (event.name, event.where)
        others = turns.get(key, [])
        if taken[key] < len(others):
            other = others[taken[key]]
            taken[key] += 1
            if (event.value, prints(event.outs)) != (other.value, prints(other.outs)):
                found.append((event, other))
    return found


def prints(outs: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Fingerprints of outputs."""
    return tuple(item[1] for item in outs)


def said(event: Event) -> tuple[object, ...]:
    """What an event says in whatever thread, process and turn it ran."""
    return event.name, event.where, event.value, _ins(event), prints(event.outs)


def _ins(event: Event) -> tuple[str, ...]:
    return tuple(item[1] for item in event.ins)
