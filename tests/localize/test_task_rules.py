"""Rules of threads that share work, of element types, and of memory that a native function is given to write into."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from orchestrator.localize import races
from orchestrator.localize.causes import judge
from orchestrator.localize.conclusion import component_of, operation_of
from orchestrator.localize.events import align
from orchestrator.localize.facts import Facts
from orchestrator.localize.origins import root
from orchestrator.localize.remedies import _reader_parts
from orchestrator.localize.result import CHANGED_BEHIND, CONTROL_FLOW, HOST_VALUE, REORDERED
from orchestrator.localize.steps import StepsFound
from tests.localize.test_races import facts_of, found_in, pair_of
from tests.localize.traces import Stream, facts


def rolled(order: tuple[int, int], threads: tuple[int, int]) -> Stream:
    """Two workers roll out what they are given; the main thread takes the first that is done."""
    stream = Stream()
    for thread, number in zip(threads, order, strict=True):
        outs = [("generator.1", f"g{number}")]
        name = "torch.Generator.manual_seed"
        stream.add("seed", name, outs=outs, value=str(number), where="a.py:4 roll", thread=thread)
        ins = [("generator.1", f"g{number}", -1)]
        stream.add("draw", "aten.randn.generator", ins=ins, outs=[f"d{number}"], where="a.py:5 roll", thread=thread)
    stream.add("host", "aten.lift_fresh.default", outs=[f"r{threads[0]}"], where="a.py:9 <module>")
    return stream


def test_which_worker_takes_which_task_leaves_the_origin_to_the_main_thread() -> None:
    origin = align(rolled((4, 6), (1, 2)).events, rolled((4, 6), (2, 1)).events).origin
    assert origin is not None and (origin.a.where, origin.how) == ("a.py:9 <module>", HOST_VALUE)


def test_weights_of_two_models_are_no_versions_of_one() -> None:
    made = []
    for picked in (0, 1):
        s = Stream()
        weights = []
        for number in range(2):
            ins = [("self", "zero", s.op("zeros", [], "zero", where="a.py:2 __init__"))]
            outs = [("self", f"w{number}")]
            weights.append(s.add("op", "aten.uniform_.default", ins=ins, outs=outs, where="a.py:2 __init__"))
        s.op("addmm", [("0", f"w{picked}", weights[picked])], f"y{picked}", where="a.py:5 policy", thread=1)
        made.append(s.events)
    assert root(made[0][1], made[0]) == ("aten.zeros.default", "a.py:2 __init__", 0, 0)
    assert root(made[0][3], made[0]) == ("aten.zeros.default", "a.py:2 __init__", 0, 1)
    origin = align(made[0], made[1]).origin
    assert origin is not None and origin.how == REORDERED


def test_the_same_operation_in_another_element_type_is_no_order() -> None:
    made = []
    for order in (("f32", "bf16"), ("bf16", "f32")):
        s = Stream()
        for kind in order:
            s.op("lift_fresh", [], f"k{kind}", shapes=f"{kind}[4]->{kind}[4]", where="a.py:3 forward")
        made.append(s.events)
    origin = align(made[0], made[1]).origin
    assert origin is not None and origin.how == CONTROL_FLOW
    assert judge(Facts(steps=StepsFound(leaf="loss"), origin=origin))[0].name == "reduced-precision"


def handed_on(first: str, then: str) -> Stream:
    stream = Stream()
    for value, again in ((first, ""), (then, races.HANDED_AGAIN)):
        stream.add("host", "aten.lift_fresh.default", outs=[value], value=again, where="a.py:8 batches")
    return stream


def test_one_array_that_is_handed_over_and_over_is_shared_memory_and_no_order(tmp_path: Path) -> None:
    found = found_in(pair_of(tmp_path, (handed_on("x0", "x1"), handed_on("x3", "x4"))))
    origin = races.raced(found)
    assert origin is not None and origin.how == CHANGED_BEHIND
    judged = judge(facts_of(dataclasses.replace(found, origin=origin), raced=True))
    assert {cause.name for cause in judged[:2]} == {"aliasing", "asynchronous-copy"}


def scanned(s: Stream, twin: int) -> None:
    out = s.add("op", "aten.empty_like.default", outs=[f"junk{twin}"], value="uninitialised", where="a.py:4 forward")
    ins = [("0", "x", -1), ("1", f"junk{twin}", out)]
    s.add("kernel", "ctypes.scan", ins=ins, outs=[("1", f"y{twin}")], where="a.py:5 forward")


def filled(s: Stream, twin: int) -> None:
    out = s.op("empty_like", [], "zeros", where="a.py:4 forward")
    ins = [("0", "x", -1), ("1", "zeros", out)]
    s.add("kernel", "ctypes.scan", ins=ins, outs=[("1", f"y{twin}")], where="a.py:5 forward")


def test_a_native_function_that_parts_with_filled_memory_too_only_wrote_into_it() -> None:
    first, then = facts(scanned), facts(filled)
    assert first.origin is not None and first.origin.unset
    assert _reader_parts(first, then)
    assert not _reader_parts(first, facts(scanned))
    assert judge(then)[0].name == "scan-order"


def test_a_table_that_is_written_by_index_is_state_and_a_flat_gradient_is_of_the_weights(tmp_path: Path) -> None:
    made = (Stream(), Stream())
    for twin, s in enumerate(made):
        s.op("index_put_", [("self", "table", -1)], f"t{twin}", where="a.py:3 learn")
    loss = StepsFound(step=1, leaf="loss", component="loss", kind="outcome")
    shown = operation_of(dataclasses.replace(found_in(pair_of(tmp_path, made)), steps=loss))
    assert shown is not None and component_of(shown, loss) == "state"
    later = dataclasses.replace(shown, phase="gradients", name="aten.lerp_.Scalar", how=CHANGED_BEHIND)
    assert component_of(later, StepsFound(step=1, leaf="activation.0", component="0", kind="activation")) == "weights"
