"""An origin, what came of two streams, and questions that a stream is asked about it. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from orchestrator.localize.result import DRAWN_MEANWHILE, OTHER_CHOICE
from orchestrator.localize.sequences import prints
from orchestrator.localize.trace import Event


@dataclass(slots=True)
class Record:
    """What both twins' events of one pair came to."""

    a: Event
    b: Event
    agreed: bool = True  # the outputs
    unset: int = -1  # its index, when it makes memory that nobody has written


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where the streams part. ``outside``: the differing input was there before the window, or came from outside."""

    a: Event
    b: Event
    how: str
    detail: str = ""
    outside: bool = False
    unset: bool = False
    reader: Event | None = None
    process: str = "0"
    label: str = ""
    before: int = 0  # events that agreed
    chain: list[Event] = field(default_factory=list)
    stretch: list[Event] = field(default_factory=list)  # what both twins run in another order
    called: str = ""  # the line that calls another function in each twin
    alone: Event | None = None  # what one twin alone runs before both go on alike: a draw in it, else its beginning


@dataclass(frozen=True, kw_only=True)
class Aligned:
    """What came of two streams. ``host``: host and seed events of which the twins got different answers, in order."""

    origin: Origin | None
    events: int
    host: list[tuple[Event, Event]] = field(default_factory=list)
    skipped: list[Event] = field(default_factory=list)  # events that one twin alone had, without consequence
    threads: int = 1


def seeds(a: Event, b: Event) -> str:
    """What both twins seeded with."""
    return f"seeded with {a.value} and {b.value}" if a.value != b.value else f"seeded with {a.value or 'nothing'}"


def maker(fingerprint: str, stream: Sequence[Event]) -> str:
    """Which operation made, or first read, what has this fingerprint."""
    event = next((e for e in stream for item in e.outs if item[1] == fingerprint), None)
    if event is None:
        event = next((e for e in stream for item in e.ins if item[1] == fingerprint), None)
        return "nobody" if event is None else f"what {event.name} reads at {event.where or '?'} (event {event.i})"
    thread = f" in thread {event.thread}" if event.thread else ""
    return f"{event.name} at {event.where or '?'}{thread} (event {event.i})"


def restless(handed: Event, stream: Sequence[Event]) -> Event | None:
    """The first operation that reads what this line hands over, and finds other bytes there than were handed over."""
    given = {e.i: e for e in stream if e.brings_data and e.where == handed.where}
    for event in stream:
        for _, fingerprint, source in event.ins:
            writer = given.get(source)
            if writer is None or fingerprint in prints(writer.outs) or event.i < writer.i:
                continue
            if writer.shapes.rpartition("->")[2] in event.shapes.rpartition("->")[0]:
                return event
    return None


def last_writer(index: int, stream: Sequence[Event]) -> Event | None:
    """The event of that index."""
    return next((event for event in stream if event.i == index), None) if index >= 0 else None


def root(event: Event | None, stream: Sequence[Event]) -> tuple[str, str, int, int] | None:
    """Which operation made the memory that an event wrote into: its name, line and thread, and which one of these it
    is; None where that was not seen."""
    by_index = {e.i: e for e in stream}
    seen: set[int] = set()
    while event is not None and in_place(event):
        source = next((source for name, _, source in event.ins if not name[:1].isdigit()), -1)
        if source < 0:
            source = event.ins[0][2] if event.ins else -1
        if source in seen or source < 0:
            return None
        seen.add(source)
        event = by_index.get(source)
    if event is None:
        return None
    same = [e.i for e in stream if (e.name, e.where, e.thread) == (event.name, event.where, event.thread)]
    return event.name, event.where, event.thread, same.index(event.i)


def results(event: Event) -> Sequence[tuple[str, str]]:
    """What an operation made, without the scratch that some hand to their backward pass: bytes beside other results,
    with holes that nobody wrote (mkldnn_rnn_layer's workspace, cuDNN's reserve)."""
    given, _, made = event.shapes.rpartition("->")
    shapes = re.findall(r"[a-z]+\d*\[[^\]]*\]", made)
    plain = [not shape.startswith("u8[") for shape in shapes]
    if event.kind != "op" or "u8[" in given or not any(plain) or all(plain) or len(event.outs) < len(shapes):
        return event.outs
    return [item for place, item in enumerate(event.outs) if place >= len(plain) or plain[place]]


def of_another_dtype(one: Event, other: Event) -> bool:
    """Whether both are one operation of one line on tensors of the same shapes and another element type."""
    if (one.name, one.where) != (other.name, other.where) or one.shapes == other.shapes:
        return False
    plain = [re.sub(r"\b[a-z]+\d+(?=\[)|dtype=\w+", "", event.shapes) for event in (one, other)]
    return plain[0] == plain[1]


def in_place(event: Event) -> bool:
    """Whether it wrote into a tensor that it was given."""
    return any(not label[:1].isdigit() and not label.startswith("generator") for label, _ in event.outs)


def is_reordered(ea: Event, eb: Event) -> bool:
    """Whether both got equal tensors in another order."""
    a = [item[1] for item in ea.ins if not item[0].startswith("generator")]
    b = [item[1] for item in eb.ins if not item[0].startswith("generator")]
    return a != b and Counter(a) == Counter(b)


def reads(event: Event, stream: Sequence[Event]) -> bool:
    """Whether some operation reads what this event brought, before it is written over."""
    return any(source == event.i for e in stream for _, _, source in e.ins)


def drawn_apart(ea: Event, eb: Event) -> str:
    """Of a draw that got one state of its generator and gave other values: whether the generator agrees afterwards."""
    after = [[x[1] for x in e.outs if x[0].startswith("generator")] for e in (ea, eb)]
    return OTHER_CHOICE if after[0] and after[0] == after[1] else DRAWN_MEANWHILE
