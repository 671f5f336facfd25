"""A third leg names the odd one out of a pair that drifted, and changes nothing about the pair's verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Done, Place

PAIR = ("submit", "--regression-pair", "--no-gate", "--tie-break", "--name", "pair")


def phases(repo: Place) -> dict[str, str]:
    nodes = repo("get", "pair", "-o", "json").json["status"]["nodes"].values()
    return {node["displayName"]: node["phase"] for node in nodes}


@pytest.mark.parametrize(
    ("source", "odd", "says"),
    [
        ("urandom@b", "b", "B is the odd one out: C agrees with A in every compared bit"),
        ("urandom", "all", "all three differ: C agrees with neither A nor B"),
    ],
)
def test_a_drifted_pair_gets_a_third_leg(repo: Place, source: str, odd: str, says: str) -> None:
    done: Done = repo(*PAIR, "-p", f"source={source}", "-o", "json")
    assert done.code == 3, done.err
    verdict = done.json
    assert verdict["verdict"] == "drift"
    assert verdict["tie_break"]["odd"] == odd
    assert verdict["tie_break"]["message"] == says
    assert verdict["message"].endswith(f"; tie-break: {says}")
    assert {verdict["tie_break"]["with_a"], verdict["tie_break"]["with_b"]} == (
        {"drift"} if odd == "all" else {"drift", "identical"}
    )
    assert [part["name"] for part in verdict["parts"]] == []
    assert phases(repo)["leg-c"] == "Succeeded"
    assert phases(repo)["tie-break"] == "Failed"
    # Where C lies is said so that it can be compared again.
    third = verdict["tie_break"]["run"]["label"]
    assert "/leg-c/" in third
    again = repo("compare", verdict["runs"][0]["label"], verdict["runs"][1]["label"], "--third", third)
    assert again.code == 3
    assert f"\nC: {third}/" in again.out
    assert "(the tie-break)\n  A | C: " in again.out
    assert f"tie-break: {says}" in again.out.splitlines()[0]
    text = Path(repo("report", "pair").out.strip()).read_text("utf-8")
    assert '<h2 id="tie">Tie-break</h2>' in text
    assert says in text


def test_a_pair_that_agrees_has_no_third_leg(repo: Place) -> None:
    done = repo(*PAIR, "-o", "json")
    assert done.code == 0
    assert done.json["tie_break"] is None
    assert (phases(repo)["leg-c"], phases(repo)["tie-break"]) == ("Omitted", "Omitted")


def test_a_pair_that_ended_otherwise_has_no_third_leg(repo: Place) -> None:
    done = repo(*PAIR, "-p", "end=message@b", "-o", "json")
    assert done.code == 5
    assert (phases(repo)["leg-c"], phases(repo)["tie-break"]) == ("Skipped", "Omitted")


def test_a_third_leg_that_fails_leaves_the_pair_its_verdict(repo: Place) -> None:
    done = repo(*PAIR, "-p", "source=urandom@b", "-p", "end=message@c", "-o", "json")
    assert done.code == 3
    broken = done.json["tie_break"]
    assert broken["odd"] == "unknown"
    assert broken["message"].startswith("none, since A and B cannot be told apart by C (A | C: leg-c failed: ")


def test_a_single_run_has_nothing_to_break(repo: Place) -> None:
    done = repo("submit", "--tie-break")
    assert done.code == 2
    assert "--tie-break needs something to compare with" in done.err
