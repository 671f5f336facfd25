"""Localisations to render: a whole one, one with hostile and long texts, a clean one."""

from __future__ import annotations

from orchestrator.compare.verdict import Divergence, GrowthPoint, OutcomeRow, make
from orchestrator.localize.result import (
    Cause,
    Localization,
    Operation,
    Parted,
    Remedy,
    Replay,
    Trial,
)  # fmt: skip

LEAVES = ["replay_sample_indices", "replay_weights", "batch_features", "attn_q", "loss", "q_grad", "encoder_grad"]
KINDS = {"loss": "outcome", "q_grad": "gradient", "encoder_grad": "gradient"}


def found() -> Localization:
    """A drifted pair whose sampler nobody seeded."""
    parted = [
        Parted(leaf=leaf, kind=KINDS.get(leaf, "activation"), component="replay" if "r" in leaf[:1] else "q",
               role="inherited" if i else "origin", why="all that stands before it agrees" if not i else "stands after")
        for i, leaf in enumerate(LEAVES * 2)
    ]  # fmt: skip
    growth = [GrowthPoint(step=2 + i, leaves_parted=7 + i, max_abs=1e-7 * 10 ** (i / 4)) for i in range(30)]
    divergence = Divergence(
        step=2, row=2, leaf="replay_sample_indices", run_a="1", run_b="2", delta="1", line="FIRST_DIVERGENCE"
    )
    outcome = [OutcomeRow(key="total_pnl_usd", a=10.0, b=12.5, delta=2.5, percent=25.0)]
    return Localization(
        found=True,
        message="the twins part at step 2 in replay_sample_indices; origin: torch.Generator.seed at faults.py:94",
        subject="regression-pair-340a264-l67fn", step=2, leaf="replay_sample_indices", component="replay",
        operation=Operation(
            name="torch.Generator.seed", kind="seed", where="trainer/faults.py:94 sample_uniform", how="seed",
            source="generator.seed()", detail="seeded with ()", leads=["os.urandom at faults.py:93 gave b'1' and b'2'"],
        ),
        parted=parted,
        trials=[Trial(number=i, pair="hostile", step=2, leaf="replay_sample_indices", operation="torch.Generator.seed")
                for i in (1, 2)],
        replay=Replay(runs=20, processes=3, parted=3, max_ulp=2, max_abs=1e-7, varied={"threads": "agreed with 1, 2"}),
        causes=[Cause(name="replay-sampling", confidence="certain", title="The replay samples by another generator",
                      evidence=["with seed-generators the twins agree"], against=["nothing"])],
        remedies=[
            Remedy(name="seed-generators", text="torch.manual_seed(s)", outcome="verified", runs=3,
                   note="by luck 3.7%"),
            Remedy(name="one-thread", text="OMP_NUM_THREADS=1", outcome="not enough", runs=1, next_origin="the same"),
            Remedy(name="code", text="seed it from the run's seed"),
        ],
        runs=5, not_looked_at=["the streams of workers"],
        growth=[GrowthPoint(step=2, leaves_parted=7, max_abs=1e-7)],
        dumps=[{"step": 2, "tensors": 366, "parted": 3, "sub_case": "intermediates first", "leaf": "attn_q",
                "index": [3, 1], "a": "1.0", "b": "1.0000001", "ulp": 1}],
        verdict=make("drift", "parted", growth=growth, outcome=outcome, first_divergence=divergence),
        next="until the code is mended, `foxrun localize NAME` tells more",
    )  # fmt: skip


def extreme() -> Localization:
    """Texts of any length and content, from programs that nobody here wrote."""
    long = "x" * 4000
    markup = "</style><script>alert(1)</script><img src=http://example.org/a.png>"
    return Localization(
        found=True, message=markup + long, subject=long, step=10**12, leaf=long, component=markup,
        operation=Operation(name=long, kind="op", where=f"{markup}:1 f", source=long, detail=long, leads=[long] * 3,
                            shapes=long, module=long, phase="forward"),
        parted=[Parted(leaf=f"{i}{long}", kind=markup, component=long, role="origin", why=long) for i in range(30)],
        trials=[Trial(number=i, pair=long, step=1, leaf=long, operation=long) for i in range(3)],
        causes=[Cause(name=long, confidence=long, title=markup, evidence=[long], against=[markup])],
        remedies=[Remedy(name=long, text=long + markup)], further=[Operation(name=long, kind="op", where=long)],
        not_looked_at=[long], notes=[long], growth=[GrowthPoint(step=1, leaves_parted=1, max_abs=float("inf"))],
        dumps=[{"step": 2, "tensors": 1, "parted": 1, "sub_case": long, "leaf": long, "index": list(range(400)),
                "a": long, "b": long, "ulp": 10**30}],
        next=f"`{long}`",
    )  # fmt: skip


def clean() -> Localization:
    """Nothing parted."""
    return Localization(
        found=False, message="no difference in 5 pairs of twins", subject="python train.py", runs=5, rules_out=0.45,
        trials=[Trial(number=1, pair="hostile", note="agreed")],
        not_looked_at=["faults that part a pair more rarely (under 45%)"],
        next="more pairs rule out rarer faults: --trials 20",
    )  # fmt: skip
