"""A misspelt parameter of our trainer is said at submit, by the names of the commit that would run."""

from __future__ import annotations

import os
from pathlib import Path

from orchestrator import known_parameters
from orchestrator.cli.main import execute
from tests.cli.conftest import Place
from trainer.config import parameter_fields

ROOT = Path(__file__).parents[2]


def test_the_names_read_from_the_source_are_those_that_the_trainer_takes() -> None:
    from trainer.config import TrainerConfig
    from trainer.market.config import MarketConfig

    taken = set(parameter_fields(TrainerConfig, MarketConfig))
    assert taken == set(known_parameters.of_directory(ROOT))


def test_a_misspelt_one_is_refused_before_anything_runs(capsys: object) -> None:
    before = Path.cwd()
    os.chdir(ROOT)
    try:
        assert execute(["submit", "--worktree", "--dry-run", "-p", "env=16"]) == 2
        assert execute(["submit", "--worktree", "--dry-run", "-p", "envs=16"]) == 0
    finally:
        os.chdir(before)
    err = capsys.readouterr().err  # type: ignore[attr-defined]
    assert "-p env: the trainer has no such parameter; did you mean 'envs'?" in err


def test_a_trainer_of_somebody_elses_takes_what_it_likes(repo: Place) -> None:
    assert repo("submit", "--dry-run", "-p", "anything=1").code == 0
    assert known_parameters.names_in("class Broken(") == []
