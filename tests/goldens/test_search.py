"""The search of a bisection: always the right commit, skipped ones never tried twice, few pairs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.goldens.search import CHANGED, SAME, SKIPPED, Search


def searched(count: int, culprit: int, broken: set[int]) -> tuple[Search, int]:
    search, rounds, seen = Search(count), 0, set()
    while wanted := search.next():
        assert len(wanted) <= 2
        assert not seen & set(wanted)
        seen |= set(wanted)
        rounds += 1
        for index in wanted:
            search.tell(index, SKIPPED if index in broken else CHANGED if index >= culprit else SAME)
    return search, rounds


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1))))
def test_it_names_the_one_commit(case: tuple[int, int]) -> None:
    count, culprit = case
    search, _ = searched(count, culprit, set())
    assert search.suspects() == [culprit]


@given(
    st.integers(2, 80).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1), st.sets(st.integers(0, n - 2))))
)
def test_the_culprit_is_among_the_suspects_and_the_others_could_not_be_run(case: tuple[int, int, set[int]]) -> None:
    count, culprit, broken = case
    search, _ = searched(count, culprit, broken)
    suspects = search.suspects()
    assert culprit in suspects
    assert set(suspects[:-1]) <= broken


def test_thirty_commits_of_which_two_do_not_build_take_at_most_five_rounds_wherever_they_lie() -> None:
    most = 0
    for culprit in range(30):
        for first in range(29):
            for second in range(first + 1, 29):
                if culprit in (first, second):
                    continue
                search, rounds = searched(30, culprit, {first, second})
                assert culprit in search.suspects()
                most = max(most, rounds)
    assert most == 5
