"""Several gates in a row: the table of where each parted, and what may be said of it."""

from __future__ import annotations

import os
from pathlib import Path

from orchestrator.compare import verdict as v
from orchestrator.trials import Trial, run_trials, sentence
from orchestrator.twin_run import GateRequest, Listener

TRAINER = Path(__file__).parent / "small_trainer.py"


def parted(number: int, leaf: str, step: str = "2") -> Trial:
    return Trial(number=number, verdict=v.GATE_FAILED, step=step, leaf=leaf, delta="bits")


def test_the_same_leaf_each_time_and_an_alternating_one_are_told_apart() -> None:
    clean = Trial(number=3, verdict=v.IDENTICAL)
    assert sentence([parted(1, "w"), parted(2, "w"), clean]) == "2 of 3 trials parted, each first at step 2 in w"
    assert sentence([parted(1, "attn_q"), parted(2, "mamba2_grad_w_c_l1"), parted(3, "attn_q")]) == (
        "3 of 3 trials parted; the first leaf alternates: attn_q at step 2 (2), mamba2_grad_w_c_l1 at step 2 (1). "
        "So none of these is the cause by itself"
    )


def test_no_difference_is_said_as_so_many_trials_and_what_they_would_have_seen() -> None:
    clean = [Trial(number=n, verdict=v.IDENTICAL) for n in range(1, 6)]
    assert sentence(clean) == (
        "0 of 5 trials parted; a fault that parts a pair with chance 0.45 or more would have shown with 95 % certainty"
    )


def test_each_trial_is_a_gate_of_its_own_and_the_worst_verdict_is_returned(tmp_path: Path) -> None:
    request = GateRequest(
        trainer=("python", str(TRAINER)), out=tmp_path / "gate", seed=7, mode=1, steps=4, timeout_s=300.0,
        parameters={"source": "urandom"},
    )  # fmt: skip
    found = run_trials(request, 2, os.environ, Listener(), directory=tmp_path, explain=False)
    assert (found.verdict.verdict, [t.step for t in found.trials]) == (v.GATE_FAILED, ["2", "2"])
    assert found.verdict.notes[-1] == "2 of 2 trials parted, each first at step 2 in w"
    assert sorted(path.name for path in (tmp_path / "gate").iterdir()) == ["trial-1", "trial-2"]
