"""Two streams of events read beside each other in bounded memory: a stretch before the first difference and after it.

Gigabytes of equal events cost reading alone. Host events are kept aside by the reader, as the alignment does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from foxrun.tracing.streams import MOST_BYTES
from orchestrator.localize.origins import results
from orchestrator.localize.sequences import BRACKETS, prints
from orchestrator.localize.trace import Event, Process, event_of

BEFORE, AFTER = 100_000, 50_000  # events: some 150 MB each
HOSTS = 20_000
FULL = MOST_BYTES - (16 << 20)  # a stream of this size was ended for its size
_HOST = b'"kind":"host"'


@dataclass(frozen=True, kw_only=True)
class Streams:
    """Events of both twins for the alignment. ``passed``: equal events before them that were read and let go;
    ``cut``: more than AFTER follow the first difference, and they were left out."""

    a: list[Event]
    b: list[Event]
    passed: int = 0
    cut: bool = False


def read(a: Process, b: Process, start: int = 0, *, before: int = BEFORE, after: int = AFTER) -> Streams:
    """The stretch around the first difference of two processes' streams, from step ``start`` on."""
    hosts: tuple[list[Event], list[Event]] = ([], [])
    left, right = _lines(a, start, hosts[0]), _lines(b, start, hosts[1])
    kept: deque[tuple[bytes, bytes]] = deque(maxlen=before)
    count = 0
    one, other = next(left, None), next(right, None)
    while one is not None and other is not None and (one == other or _alike(one, other)):
        kept.append((one, other))
        count += 1
        one, other = next(left, None), next(right, None)
    events: tuple[list[Event], list[Event]] = ([], [])
    for x, y in kept:
        event = event_of(x)
        events[0].append(event)
        events[1].append(event if x == y else event_of(y))
    passed = count - len(kept)
    del kept
    cut = False
    for first, rest, found in ((one, left, events[0]), (other, right, events[1])):
        if first is not None:
            found.append(event_of(first))
            for number, line in enumerate(rest):
                if number >= after:
                    cut = True
                    break
                found.append(event_of(line))
    cut = cut or max(a.event_bytes, b.event_bytes) > FULL
    return Streams(a=_in_order(events[0], hosts[0]), b=_in_order(events[1], hosts[1]), passed=passed, cut=cut)


def _lines(process: Process, start: int, hosts: list[Event]) -> Iterator[bytes]:
    """Lines that are no host event; those go to ``hosts``, as far as they are worth keeping."""
    for line in process.event_lines():
        if start and event_of(line).step < start:
            continue
        if _HOST in line:
            event = event_of(line)
            if event.kind == "host" and not event.brings_data:
                if len(hosts) < HOSTS:
                    hosts.append(event)
                continue
        yield line


def _alike(x: bytes, y: bytes) -> bool:
    """Whether two lines say the same but for their numbers, which host events between them shift."""
    a, b = event_of(x), event_of(y)
    if a.kind in BRACKETS and a.key == b.key:
        return True
    ins = [item[:2] for item in a.ins], [item[:2] for item in b.ins]
    made = prints(results(a)) == prints(results(b))
    return a.key == b.key and ins[0] == ins[1] and made and a.value == b.value


def _in_order(events: list[Event], hosts: list[Event]) -> list[Event]:
    return sorted([*events, *hosts], key=lambda event: event.i)
