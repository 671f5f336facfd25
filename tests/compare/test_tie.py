"""Which leg is the odd one out: by whom the third one agrees with."""

from typing import Any

import pytest

from orchestrator.compare import verdict as v
from orchestrator.compare.comparable import manifest_differences, reason
from orchestrator.compare.tie import tie_break, with_tie_break


def said(word: str, *gpus: str) -> v.Verdict:
    runs = [v.RunSummary(label=gpu, leg="x", manifest={"environment": {"gpu_uuid": gpu}}) for gpu in gpus]
    return v.make(word, f"they are {word}", runs=runs)


@pytest.mark.parametrize(
    ("with_a", "with_b", "odd", "message"),
    [
        (v.IDENTICAL, v.DRIFT, "b", "B is the odd one out: C agrees with A in every compared bit"),
        (v.DRIFT, v.IDENTICAL, "a", "A is the odd one out: C agrees with B in every compared bit"),
        (v.WITHIN_TOLERANCE, v.DRIFT, "b", "B is the odd one out: C agrees with A in tolerance"),
        (v.DRIFT, v.DRIFT, "all", "all three differ: C agrees with neither A nor B"),
        (v.WITHIN_TOLERANCE, v.WITHIN_TOLERANCE, "none", "C lies within the tolerance of both A and B"),
        (
            v.INCOMPARABLE, v.INCOMPARABLE, "unknown",
            "none, since A and B cannot be told apart by C (A | C: they are incomparable)",
        ),
        (
            v.IDENTICAL, v.INFRASTRUCTURE, "unknown",
            "none, since A and B cannot be told apart by C (B | C: they are infrastructure)",
        ),
    ],
)  # fmt: skip
def test_the_odd_one_out(with_a: str, with_b: str, odd: str, message: str) -> None:
    broken = tie_break(said(with_a), said(with_b))
    assert (broken.odd, broken.message) == (odd, message)
    assert (broken.with_a, broken.with_b) == (with_a, with_b)


@pytest.mark.parametrize(
    ("a", "b", "c", "says"),
    [
        ("GPU-1", "GPU-2", "GPU-3", "; C ran on another GPU (GPU-3)"),
        ("GPU-1", "GPU-2", "GPU-1", "; C ran on the very GPU of A (GPU-1), so a fault of that GPU is not excluded"),
        ("", "", "", ""),
    ],
)
def test_it_says_whether_the_third_leg_had_a_gpu_of_its_own(a: str, b: str, c: str, says: str) -> None:
    broken = tie_break(said(v.IDENTICAL, a, c), said(v.DRIFT, b, c))
    assert broken.message == f"B is the odd one out: C agrees with A in every compared bit{says}"
    assert broken.run.label == c


def test_the_verdict_stays_that_of_the_pair_and_survives_its_file() -> None:
    pair: Any = v.make(v.DRIFT, "they part")
    verdict = with_tie_break(pair, said(v.IDENTICAL, "1", "3"), said(v.DRIFT, "2", "3"))
    assert (verdict.verdict, verdict.exit_code) == ("drift", 3)
    assert v.from_dict(v.as_dict(verdict)) == verdict
    older = {key: value for key, value in v.as_dict(verdict).items() if key not in ("tie_break", "workflow")}
    assert v.from_dict(older).tie_break is None


def test_other_hardware_is_incomparable_and_named() -> None:
    one = {"environment": {"gpu_name": "NVIDIA H200", "sm_count": 132, "torch": "2.11"}}
    other = {"environment": {"gpu_name": "NVIDIA H100 80GB HBM3", "sm_count": 132, "torch": "2.11"}}
    assert reason(manifest_differences(one, other)) == "environment.gpu_name (NVIDIA H200 | NVIDIA H100 80GB HBM3)"
    assert reason(manifest_differences(one, {"environment": {"gpu_name": None, "sm_count": 132, "torch": "2.12"}})) == (
        "environment.gpu_name (NVIDIA H200 | none), environment.torch"
    )
