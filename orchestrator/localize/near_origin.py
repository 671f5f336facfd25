"""What the program's source says near an origin."""

from __future__ import annotations

import dataclasses

from orchestrator.localize import source
from orchestrator.localize.facts import Facts
from orchestrator.localize.origins import Origin
from orchestrator.localize.pair import Pair
from orchestrator.localize.result import CONTROL_FLOW, HOST_VALUE, REORDERED


def with_source(facts: Facts, origin: Origin | None, pair: Pair) -> Facts:
    """The facts with the source near this origin, and nothing left of another's."""
    return dataclasses.replace(
        facts, lines=_lines(origin, pair), code=_code(origin, pair), set_walks=_set_walks(origin, pair)
    )


def _lines(origin: Origin | None, pair: Pair) -> tuple[str, ...]:
    """Where each twin stood, and the lines around."""
    if origin is None:
        return ()
    places = dict.fromkeys(e.where for e in (origin.a, origin.b, origin.reader) if e is not None)
    return tuple(line for place in places for line in source.around(place, pair.a.main.header, pair.directory))


def _set_walks(origin: Origin | None, pair: Pair) -> tuple[str, ...]:
    """Where sets are walked through, if what Python decides differs: in the origin's files and in its callers'."""
    if origin is None or origin.how not in (REORDERED, CONTROL_FLOW, HOST_VALUE):
        return ()
    events = [e for e in (origin.a, origin.b, origin.reader, *origin.chain) if e is not None]
    places = [place for e in events for place in (e.where, e.caller)]
    return tuple(source.set_walks(places, pair.a.main.header, pair.directory))


def _code(origin: Origin | None, pair: Pair) -> tuple[str, ...]:
    """The file of a kernel of the program's own."""
    if origin is None or origin.a.kind != "kernel":
        return ()
    return tuple(source.code_of(origin.a.where, pair.a.main.header, pair.directory))
