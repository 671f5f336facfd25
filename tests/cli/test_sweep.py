"""A pair for each of several seeds: one table, the worst verdict, and whether the seed matters."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Place


def seeds_of(done: object) -> list[tuple[int, str, bool]]:
    return [(row["seed"], row["verdict"], row["unused"]) for row in done.json["seeds"]]  # type: ignore[attr-defined]


def test_every_seed_is_exact_and_matters(repo: Place) -> None:
    done = repo("sweep", "--seeds", "42-44", "--name", "sweep", "-o", "json")
    assert done.code == 0, done.err
    assert seeds_of(done) == [(42, "identical", False), (43, "identical", False), (44, "identical", False)]
    assert done.json["subject"] == "seeds"
    assert done.json["agreed"]["seed_independent"] == []
    shown = repo("watch", "sweep")
    assert (shown.code, "43    identical" in shown.out) == (0, True)


def test_a_seed_that_changes_nothing_is_reported_as_unused(repo: Place) -> None:
    file = repo.directory / "train.py"
    file.write_text(file.read_text().replace("weight = float(options.seed)", "weight = 1.0"))
    done = repo("sweep", "--seeds", "42,50", "--worktree", "--no-gate", "-o", "json")
    assert done.code == 0, done.err
    assert seeds_of(done) == [(42, "identical", False), (50, "identical", True)]
    assert "seed 50: every compared bit is that of seed 42, so the seed is not used" in done.json["notes"][-1]


def test_one_seed_that_parts_gives_its_verdict_to_the_sweep_and_names_step_and_leaf(repo: Place) -> None:
    file = repo.directory / "train.py"
    broken = 'SOURCES["urandom" if options.seed == 43 else source](options.out)'
    file.write_text(file.read_text().replace("SOURCES[source](options.out)", broken))
    done = repo("sweep", "--seeds", "42-44", "--worktree", "--no-gate", "-o", "json")
    assert done.code == 3, done.err
    assert seeds_of(done) == [(42, "identical", False), (43, "drift", False), (44, "identical", False)]
    assert (done.json["seeds"][1]["step"], done.json["seeds"][1]["leaf"]) == ("2", "w")
    assert done.json["message"].startswith("seed 43: ")
    assert done.json["message"].endswith("; 2 of 3 seeds agree")


def test_a_trainer_that_fails_for_one_seed_is_a_failed_job(repo: Place) -> None:
    file = repo.directory / "train.py"
    file.write_text(file.read_text().replace('print(f"small', 'assert options.seed != 43\n    print(f"small'))
    done = repo("sweep", "--seeds", "42-43", "--worktree", "--no-gate", "-o", "json")
    assert done.code == 5, done.err
    assert [row["verdict"] for row in done.json["seeds"]] == ["identical", "job_failed"]


def test_a_gate_that_fails_runs_no_seed(repo: Place) -> None:
    done = repo("sweep", "--seeds", "42-43", "-p", "source=urandom", "-o", "json")
    assert (done.code, done.json["verdict"]) == (4, "gate_failed")


@pytest.mark.parametrize("seeds", ["42", "42-", "a-b", "46-42", "1-1000"])
def test_seeds_that_are_none_are_refused(repo: Place, seeds: str) -> None:
    done = repo("sweep", "--seeds", seeds)
    assert done.code == 2
    assert "Traceback" not in done.err
