"""Where a program walks through a set, read from its source."""

from __future__ import annotations

import pytest

from orchestrator.localize.set_iteration import lines


@pytest.mark.parametrize(
    "source",
    [
        "for x in {1, 2}: pass",
        "rows = [f(x) for x in set(names)]",
        "table = {x: n for n, x in enumerate({a.name for a in rows})}",
        "names = frozenset(words)\nfor x in names: pass",
        "names = more = set()\nfor x in more: pass",
        "a, b = set(), []\nkeys = list(a)",
        "class C:\n    def __init__(self): self.live = weakref.WeakSet()\n    def go(self): return [*self.live]",
        "left = set(a)\nright = left\nfor x in right | other: pass",
        "def f(names: set[str]): return ','.join(names)",
        "seen = set(a)\nnext(iter(seen - {None}))",
        "held: set[int] = set()\nheld.pop()",
        "order = dict.fromkeys(set(a))",
        "both = a.keys() & b.keys()\nnames = list(both)",
        "clip({p for p in model})\ndef clip(weights, most=1):\n    for w in weights: pass",
        "held = set(a)\nC().go(held)\nclass C:\n    def go(self, rows): return list(rows)",
        "kept = a if short else set(a)\nfor x in set(a).union(b): pass",
    ],
)
def test_what_walks_through_a_set_is_found(source: str) -> None:
    assert lines(source.splitlines(), 1) == [len(source.splitlines())]


@pytest.mark.parametrize(
    "source",
    [
        "for x in sorted({1, 2}): pass",
        "seen = set()\nif x in seen: len(seen)",
        "kept = {x for x in set(names)}",
        "for x in [1, 2]: pass",
        "for x in {1: 2}: pass",
        "for x in a.keys(): pass",
        "names = sorted(set(words))\nfor x in names: pass",
        "queue = []\nqueue.pop()",
        "largest = max(set(sizes))",
        "def f(:",
        "x = '\0'",
    ],
)
def test_what_no_order_of_a_set_decides_is_not(source: str) -> None:
    assert lines(source.splitlines(), 1) == []


def test_the_nearest_line_before_the_place_comes_first() -> None:
    source = ["for a in {1}: pass", "for b in {2}: pass", "use(b)", "for c in {3}: pass", "for d in {4}: pass"]
    assert lines(source, 3) == [2, 1, 4, 5]
