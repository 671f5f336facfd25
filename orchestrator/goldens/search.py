"""The search of `golden bisect`, pure: two commits at a time, so 30 take four pairs; those that fail are skipped."""

from __future__ import annotations

from dataclasses import dataclass, field

SAME, CHANGED, SKIPPED = "same", "changed", "skipped"


@dataclass
class Search:
    """Commits 0..count-1 after a good one, oldest first; the last is known to have changed bits.

    Assumes, as every bisection, that bits change once: with several changes it names one of them.
    """

    count: int
    results: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.results[self.count - 1] = CHANGED

    @property
    def last_same(self) -> int:
        """The newest commit before the first changed one that has the good bits; -1: the good commit itself."""
        return max((i for i, r in self.results.items() if r == SAME and i < self.first_changed), default=-1)

    @property
    def first_changed(self) -> int:
        """The oldest commit that is known to have other bits."""
        return min(i for i, r in self.results.items() if r == CHANGED)

    def next(self) -> list[int]:
        """The one or two commits to try next, a third and two thirds on; none when the search is over."""
        low, high = self.last_same, self.first_changed
        untried = [i for i in range(low + 1, high) if i not in self.results]
        if len(untried) <= 2:
            return untried
        width = high - low
        first = min(untried, key=lambda i: (abs(3 * (i - low) - width), i))
        second = min((i for i in untried if i != first), key=lambda i: (abs(3 * (i - low) - 2 * width), i))
        return sorted([first, second])

    def tell(self, index: int, result: str) -> None:
        """What became of a commit."""
        self.results[index] = result

    def suspects(self) -> list[int]:
        """The commits one of which changed the bits: one, unless skipped ones lie before it."""
        return list(range(self.last_same + 1, self.first_changed + 1))
