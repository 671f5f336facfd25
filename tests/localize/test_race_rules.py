"""Rules of races: memory under an operation, whose line is named, which switches are no cure, a worker's own draw."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from orchestrator.localize import races
from orchestrator.localize.beyond import MEMORY, surely
from orchestrator.localize.causes import judge
from orchestrator.localize.conclusion import chosen, component_of, operation_of
from orchestrator.localize.events import align
from orchestrator.localize.facts import Facts, Lead
from orchestrator.localize.operations import Found
from orchestrator.localize.origins import Origin
from orchestrator.localize.remedies import out_of_question
from orchestrator.localize.result import CHANGED_BEHIND, CONTROL_FLOW, DELAYS, OUTPUTS_DIFFER
from orchestrator.localize.steps import StepsFound
from orchestrator.localize.trace import Trace
from tests.localize.test_races import facts_of, found_in, pair_of
from tests.localize.traces import Stream, facts, process


def read_twice(later: str, made: str) -> Stream:
    """A line of the program reads a buffer, and then the backward pass of a module."""
    stream = Stream()
    stream.op("mul", [("0", "batch", -1)], "near", where="a.py:5 <module>")
    g = stream.op("ones", [], "g")
    stream.op("mm", [("0", "g", g), ("1", later, -1)], made, where="a.py:2 forward", module="arm", phase="backward")
    return stream


def test_memory_that_others_write_is_named_where_the_program_s_own_line_was_handed_it(tmp_path: Path) -> None:
    found = found_in(pair_of(tmp_path, (read_twice("batch", "w"), read_twice("next", "v"))))
    origin = races.raced(found)
    assert origin is not None and origin.reader is not None
    assert (origin.a.where, origin.how, origin.reader.where) == ("a.py:5 <module>", CHANGED_BEHIND, "a.py:2 forward")
    steps = StepsFound(step=0, leaf="gradient.arm.weight", component="arm", kind="gradient")
    shown = operation_of(dataclasses.replace(found, origin=origin, steps=steps))
    assert component_of(shown, steps) == "data"
    first_activation = StepsFound(step=0, leaf="activation.arm", component="arm", kind="activation")
    assert component_of(shown, first_activation, handed=True) == "data"  # numpy's memory is no module's
    assert component_of(shown, first_activation) == "arm"


def test_equal_inputs_and_other_outputs_by_delays_alone_are_memory_that_changed_meanwhile(tmp_path: Path) -> None:
    found = found_in(pair_of(tmp_path, (read_twice("batch", "w"), read_twice("batch", "v"))))
    assert found.origin is not None and found.origin.how == OUTPUTS_DIFFER
    origin = races.raced(found)
    assert origin is not None and (origin.a.where, origin.how) == ("a.py:5 <module>", CHANGED_BEHIND)
    raced = facts_of(dataclasses.replace(found, origin=origin), raced=True)
    assert {cause.name for cause in judge(raced)[:2]} == {"aliasing", "asynchronous-copy"}


def test_what_twins_that_differ_in_delays_alone_have_alike_is_no_cure() -> None:
    raced = Facts(steps=StepsFound(step=0), narrowed={DELAYS: True})
    calm = dataclasses.replace(raced, narrowed={})
    assert [out_of_question(name, raced) for name in ("hash-seed", "sorted-listings", "ordered-completion")] == [
        True, True, False,
    ]  # fmt: skip
    assert not out_of_question("hash-seed", calm)


def test_a_native_function_does_not_ask_torch_for_its_algorithm() -> None:
    def scan(s: Stream, twin: int) -> None:
        s.add("kernel", "ctypes.prefix_sum", ins=[("0", "x", -1)], outs=[("0", f"y{twin}")])

    def launch(s: Stream, twin: int) -> None:
        s.add("kernel", "triton.prefix_sum", ins=[("0", "x", -1)], outs=[("0", f"y{twin}")])

    assert out_of_question("deterministic-algorithms-unfilled", facts(scan))
    assert not out_of_question("deterministic-algorithms-unfilled", facts(launch))


def past(value: str) -> Stream:
    stream = Stream()
    stream.add("kernel", "ctypes.relu", outs=[("0", "y")], value=value, where="a.py:3 forward", step=1)
    return stream


def test_a_write_into_nobody_s_memory_is_a_fault_though_the_twins_agree(tmp_path: Path) -> None:
    sure = process(tmp_path / "sure", [], past("writes past its memory, surely: 312 bytes behind its end"))
    seen = surely(sure)
    assert seen is not None and (seen.step, seen.leaf) == (1, MEMORY)
    assert surely(process(tmp_path / "view", [], past("writes past its view: 64 bytes where 32 are left"))) is None
    assert surely(process(tmp_path / "seen", [], past("writes past its memory: f32[8] changed"))) is None


def test_of_a_line_that_surely_writes_past_memory_the_first_write_counts(tmp_path: Path) -> None:
    s = Stream()
    for step, value in enumerate((": 64 bytes, 64 behind its end", "", ", surely: 64 bytes, 64 behind its end")):
        value = f"writes past its memory{value}" if value else ""
        s.add("kernel", "ctypes.memmove", value=value, where="a.py:3 f", step=step)
    seen = surely(process(tmp_path / "twin", [], s))
    assert seen is not None and seen.step == 0


def test_a_race_for_what_lies_behind_leaves_the_write_to_blame(tmp_path: Path) -> None:
    made = []
    for twin in range(2):
        s = past("writes past its view: 2080 bytes where 2048 are left of it")
        s.add("host", "aten.lift_fresh.default", outs=[f"y{twin}"], where="a.py:4 f", step=1)
        made.append(s)
    found = found_in(pair_of(tmp_path, (made[0], made[1])))
    judged = judge(facts_of(found, raced=True))
    assert judged[0].name == "out-of-bounds-write"
    assert judged[0].against == []


def test_what_was_filled_with_one_value_and_is_another_was_written_by_somebody_else(tmp_path: Path) -> None:
    def filled(s: Stream, twin: int) -> None:
        s.op("fill_", [("0", "x", -1)], f"y{twin}", shapes="f32[64]cuda, 1.0->f32[64]cuda", where="a.py:9 f")

    found = facts(filled).origin
    assert found is not None and found.how == CHANGED_BEHIND
    assert races.could_be(found)
    made = [past("writes past its view: 512 bytes behind f32[3968], in the memory that it is a view of") for _ in "ab"]
    for twin, s in enumerate(made):
        filled(s, twin)
    blamed = align(made[0].events, made[1].events).origin
    assert blamed is not None and (blamed.a.where, blamed.how) == ("a.py:3 forward", CHANGED_BEHIND)
    assert judge(Facts(steps=StepsFound(leaf="input.0"), origin=blamed))[0].name == "out-of-bounds-write"


def test_on_a_device_its_streams_wait_in_turn(tmp_path: Path) -> None:
    pair = pair_of(tmp_path / "1", (Stream(), Stream()))
    assert races.kinds(pair) == () and not races.possible(pair)
    for trace in (pair.a, pair.b):
        (trace.main.folder / "header.json").write_text(json.dumps({"device": {"name": "GPU"}}))
    found = dataclasses.replace(pair, a=Trace(pair.a.out), b=Trace(pair.b.out))
    assert races.possible(found) and not races.several(found)
    (kind,) = races.kinds(found)
    assert [d["sides"] for d in kind.delays if d] == [["default-stream"], ["other-streams"]]
    assert races.waits(kind) == "streams of the device"
    assert races.waits(races.kind_of()) == "threads"


@pytest.mark.parametrize("kind", ["delays", "pace"])
def test_a_draw_that_timing_decides_is_a_shared_generator_s(kind: str) -> None:
    def previewed(s: Stream, twin: int) -> None:
        if twin:
            s.add("draw", "aten.randn.default", ins=[("generator.torch", "g", -1)], outs=["p"], where="a.py:9 preview")
        s.op("mul", [("0", "x", -1)], "y", where="a.py:20 step")
        s.op("sum", [("0", "y", -1)], "z", where="a.py:21 step")

    known = facts(previewed, narrowed={kind: True})
    assert known.origin is not None and known.origin.how == CONTROL_FLOW
    assert judge(known)[0].name == "shared-generator"


def drawn(twin: int) -> Stream:
    stream = Stream()
    ins = [("generator.numpy.1", f"s{twin}", -1)]
    stream.add("draw", "numpy.random.Generator.normal", ins=ins, outs=[f"d{twin}"], where="a.py:9 crop")
    return stream


def handed(twin: int) -> Stream:
    stream = Stream()
    stream.add("host", "aten.lift_fresh.default", outs=[f"d{twin}"], where="a.py:20 <module>")
    return stream


def test_the_worker_that_draws_is_the_origin_of_what_arrives_in_the_main_process(tmp_path: Path) -> None:
    arrived = found_in(pair_of(tmp_path / "main", (handed(0), handed(1))))
    pair = pair_of(tmp_path / "worker", (handed(0), handed(1)), ({"0.1": drawn(0)}, {"0.1": drawn(1)}))
    below = align(drawn(0).events, drawn(1).events, process="0.1").origin
    assert arrived.origin is not None and arrived.origin.outside and below is not None
    worker = dataclasses.replace(arrived, pair=pair, origin=below)
    assert chosen([arrived, worker]) is worker


def test_two_parts_that_both_twins_made_are_an_order(tmp_path: Path) -> None:
    made = []
    for order in ("pq", "qp"):
        stream = Stream()
        index = {}
        for part in "pq":
            shape = f"f32[{150 if part == 'p' else 190}]"
            index[part] = stream.add("draw", "aten.randn.generator", outs=[part], shapes=f"->{shape}", where="a.py:2 f")
        stream.op("sum", [("0", order[0], index[order[0]])], f"s{order[0]}", where="a.py:9 <module>")
        made.append(stream)
    found = found_in(pair_of(tmp_path, (made[0], made[1])))
    origin = races.raced(found)
    assert origin is not None and (origin.a.where, origin.how) != ("a.py:2 f", CONTROL_FLOW)


def test_another_environment_decides_the_size_of_a_draw(tmp_path: Path) -> None:
    made = []
    for blocks in (132, 108):
        stream = Stream()
        value = f"BLOCKS={blocks}"
        stream.add("host", "os.environ", outs=[value], value=value, where="a.py:3 <module>")
        shapes = f"[{16384 // blocks}]->f32[{16384 // blocks}]"
        stream.add("draw", "aten.randn.default", outs=[str(blocks)], shapes=shapes, where="a.py:4 <module>")
        made.append(stream)
    found: Found = found_in(pair_of(tmp_path, (made[0], made[1])))
    assert isinstance(found.origin, Origin) and isinstance(found.leads[0], Lead)
    known = Facts(steps=found.steps, origin=found.origin, leads=found.leads, two_commands=True)
    assert judge(known)[0].name == "hardware"
    assert "shared-generator" not in [cause.name for cause in judge(known)]
