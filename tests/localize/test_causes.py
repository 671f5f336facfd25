"""Candidates: what speaks for and against, their order, and how sure they are."""

from __future__ import annotations

import dataclasses

from orchestrator.localize.causes import judge
from orchestrator.localize.facts import Facts, host_kind
from orchestrator.localize.result import REORDERED, Replay, pairs_for, rules_out
from orchestrator.localize.steps import StepsFound
from tests.localize.traces import Stream, facts


def first(known: Facts) -> tuple[str, str]:
    cause = judge(known)[0]
    return cause.name, cause.confidence


def adding(s: Stream, twin: int) -> None:
    s.op("index_add_", [("self", "z", -1), ("2", "v", -1)], f"sum{twin}")


def test_a_seed_from_the_clock_is_told_from_no_seed() -> None:
    def write(s: Stream, twin: int) -> None:
        s.add("host", "time.time", outs=[f"t{twin}"], value=f"{1000 + twin}.25", where="train.py:3 main")
        seed = s.add("seed", "random.seed", outs=[("generator.python", f"g{twin}")], value=str(1000 + twin),
                     where="train.py:3 main")  # fmt: skip
        s.add("draw", "random.random", ins=[("generator.python", f"g{twin}", seed)], outs=[f"d{twin}"])

    known = facts(write)
    assert first(known) == ("time-seed", "certain")
    assert "which is the seed" in judge(known)[0].evidence[0]


def test_all_of_secrets_is_entropy() -> None:
    names = ("secrets.randbelow", "secrets.choice", "secrets.token_urlsafe", "os.urandom")
    assert [host_kind(name) for name in names] == ["entropy"] * 4


def test_a_measured_remedy_decides_between_orders() -> None:
    def write(s: Stream, twin: int) -> None:
        s.add("host", "aten.lift_fresh.default", outs=[f"y{twin}"], where="train.py:2 labels")

    known = facts(write)
    assert judge(known)[0].confidence == "possible"
    assert first(dataclasses.replace(known, remedied={"hash-seed": False})) == ("hash-order", "certain")
    still = dataclasses.replace(known, remedied={"hash-seed": True, "filled-memory": False})
    assert first(still) == ("uninitialised-memory", "likely")


def test_one_way_to_rule_a_cause_out_is_enough_and_no_order_of_addresses_follows_the_clock() -> None:
    def write(s: Stream, twin: int) -> None:
        kept = [s.op("_to_copy", [("self", f"e{i}", -1)], f"e{i}", where="replay.py:9 extend") for i in (0, 1)]
        s.op("stack", [("0.0", f"e{twin}", kept[twin])], f"batch{twin}", where="replay.py:20 sample")

    known = facts(write)
    assert known.how == REORDERED
    tried = {"hash-seed": True, "sorted-listings": True, "seed-generators": True, "fixed-clock": False}
    causes = judge(dataclasses.replace(known, remedied=tried))
    assert causes[0].name == "replay-sampling"
    assert "with fixed-clock the twins agree" in causes[0].evidence and causes[0].against == []
    order = next(cause for cause in causes if cause.name == "iteration-order")
    assert order.against == ["with fixed-clock the twins agree, and it does not decide where objects lie"]


def test_a_replay_that_differs_speaks_for_atomics_and_one_that_does_not_against() -> None:
    known = facts(adding)
    assert first(known) == ("atomics", "likely")
    parted = judge(dataclasses.replace(known, replay=Replay(runs=20, processes=3, parted=7)))[0]
    assert "7 of 20" in " ".join(parted.evidence) and parted.against == []
    agreed = judge(dataclasses.replace(known, replay=Replay(runs=20, processes=3, parted=0)))[0]
    assert "20 runs" in " ".join(agreed.against)


def test_nothing_known_is_said_to_be_unknown() -> None:
    assert first(Facts(steps=StepsFound())) == ("unknown", "possible")


def test_how_many_pairs_prove_how_much() -> None:
    assert [pairs_for(rate) for rate in (0.99, 0.75, 0.5, 0.05)] == [2, 3, 5, 12]
    assert [round(rules_out(pairs), 3) for pairs in (0, 1, 5, 59)] == [1.0, 0.95, 0.451, 0.05]
