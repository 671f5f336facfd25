"""Rules that held-out programs taught: luck is no cure, a size is no order, native writes are blamed."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from orchestrator.localize.beyond import blamed
from orchestrator.localize.causes import judge
from orchestrator.localize.events import align
from orchestrator.localize.facts import Facts, goes_on, host_kind, leads
from orchestrator.localize.pair import _results
from orchestrator.localize.remedies import _same_origin
from orchestrator.localize.result import CHANGED_BEHIND, HOST_VALUE, PACE, REORDERED, Replay
from orchestrator.localize.steps import StepsFound
from tests.localize.traces import Stream, facts


def tuned(s: Stream, twin: int) -> None:
    """Measures, and then runs a product of one size or the other."""
    s.add("host", "time.perf_counter", outs=[f"t{twin}"], value=f"{10 + twin}.5", where="train.py:4 choose")
    s.op("mm", [("0", "x", -1)], f"y{twin}", where="train.py:5 choose", shapes=f"f32[8,{4 + twin}]->f32[8,8]")


def test_a_size_that_is_chosen_by_the_clock_is_an_autotuner_s() -> None:
    known = facts(tuned, remedied={"hash-seed": True, "no-autotune": True})
    assert [cause.name for cause in judge(known)][:1] == ["autotune"]
    orders = [cause for cause in judge(known) if cause.name in ("iteration-order", "hash-order")]
    assert {cause.confidence for cause in orders} == {"possible"}
    cured = dataclasses.replace(known, remedied={"fixed-clock": False})
    assert (judge(cured)[0].name, judge(cured)[0].confidence) == ("autotune", "certain")


def test_a_pair_that_parts_elsewhere_makes_no_switch_a_cure() -> None:
    known = facts(tuned, moved=frozenset({"hash-seed"}))
    hashes = next(cause for cause in judge(known) if cause.name == "hash-order")
    assert hashes.confidence == "possible"
    assert "with hash-seed a pair parted elsewhere" in hashes.evidence


def test_a_draw_that_time_decides_about_is_a_shared_generator_s_and_a_measured_duration_is_no_seed() -> None:
    def previews(s: Stream, twin: int) -> None:
        for at in (10, 11):
            value = f"{at + twin}.5"
            s.add("host", "time.monotonic", outs=[f"t{value}"], value=value, where="train.py:4 preview")
        if twin:
            s.add("draw", "aten.randn.default", outs=["noise"], where="train.py:5 preview")
        for i in range(6):
            s.op("mul", [("0", f"x{i}{twin}", -1)], f"x{i + 1}{twin}", where=f"train.py:{10 + i} step")

    known = facts(previews, narrowed={PACE: True})
    assert judge(known)[0].name == "shared-generator"
    assert judge(facts(previews, remedied={"fixed-clock": False}))[0].name == "shared-generator"

    def measures(s: Stream, twin: int) -> None:
        for at in (10, 11):
            value = f"{at + twin}.5"
            s.add("host", "time.perf_counter", outs=[f"t{value}"], value=value, where="train.py:4 fastest")
        s.add("host", "aten.lift_fresh.default", outs=[f"took{twin}"], where="train.py:4 fastest")

    assert judge(facts(measures))[0].name == "autotune"


def test_an_order_that_a_switch_does_not_let_agree_for_longer_is_the_same_origin() -> None:
    def ordered(names: str) -> Facts:
        def write(s: Stream, twin: int) -> None:
            for name in names if twin else reversed(names):
                s.op(name, [("0", f"{name}x", -1)], f"{name}y", where=f"train.py:{ord(name)} {name}")

        return facts(write)

    assert _same_origin(ordered("ab"), ordered("cd"))  # another two of many, and no step further


def test_the_other_line_of_a_branch_is_the_same_origin() -> None:
    one, other = facts(tuned), facts(lambda s, twin: tuned(s, 1 - twin))
    assert one.origin is not None and other.origin is not None
    assert _same_origin(one, other)
    unseen = Facts(steps=StepsFound(step=5, leaf="loss"))
    assert _same_origin(Facts(steps=StepsFound(step=2, leaf="loss")), unseen)
    assert not _same_origin(Facts(steps=StepsFound(step=2, leaf="input.0")), unseen)


def test_what_the_operation_is_known_for_decides_what_its_replay_says() -> None:
    def convolves(s: Stream, twin: int) -> None:
        s.op("convolution", [("0", "x", -1)], f"y{twin}", shapes="f32[8]cuda->f32[8]cuda")

    known = facts(convolves, replay=Replay(runs=20, processes=3, parted=20),
                  remedied={"deterministic-algorithms-unfilled": False})  # fmt: skip
    assert judge(known)[0].name == "cudnn"
    assert "atomics" not in [cause.name for cause in judge(known)]


def test_a_write_past_its_memory_is_blamed_for_what_is_read_wrong_later() -> None:
    streams = Stream(), Stream()
    for twin, s in enumerate(streams):
        s.add("kernel", "ctypes.memmove", value="writes past its memory: 64 bytes where 32 are left", where="a.py:3 f")
        s.add("host", "aten.lift_fresh.default", outs=[f"y{twin}"], where="a.py:4 f")
    found = align(streams[0].events, streams[1].events).origin
    assert found is not None
    assert (found.a.name, found.how, found.reader and found.reader.name) == (
        "ctypes.memmove", CHANGED_BEHIND, "aten.lift_fresh.default",
    )  # fmt: skip
    assert blamed(None, streams[0].events, streams[1].events) is None
    judged = judge(Facts(steps=StepsFound(leaf="input.0"), origin=found))[0]
    assert (judged.name, judged.confidence) == ("out-of-bounds-write", "certain")


def test_a_storage_that_is_written_over_before_it_is_read_is_no_origin() -> None:
    for reader, how in (("copy_", None), ("mul", HOST_VALUE)):
        streams = Stream(), Stream()
        for twin, s in enumerate(streams):
            made = s.add("op", "aten.set_.source_Storage", outs=[f"old{twin}"], where="a.py:3 f")
            ins = [("1", "x", -1)] if reader == "copy_" else [("0", f"old{twin}", made)]
            s.op(reader, ins, "new" if reader == "copy_" else f"m{twin}", where="a.py:3 f")
        found = align(streams[0].events, streams[1].events).origin
        assert (found and found.how) == how


def test_each_twin_is_handed_what_another_thread_made() -> None:
    streams = Stream(), Stream()
    for twin, s in enumerate(streams):
        made = s.op("tanh", [("0", f"p{twin}", -1)], f"t{twin}", thread=1 + twin)
        s.op("sum", [("0", f"t{twin}", made)], f"s{twin}", where="a.py:9 <module>")
    found = align(streams[0].events[1:], streams[1].events[1:]).origin
    assert found is not None and found.how != REORDERED  # nothing is known of who made it
    whole = align(streams[0].events, streams[1].events).origin
    assert whole is not None and (whole.a.where, whole.how) == ("a.py:9 <module>", REORDERED)


def test_a_second_run_goes_on_from_the_first_where_it_says_so() -> None:
    header: dict[str, Any] = {"argv": ["python", "t.py"], "device": {"cpu_vectors": "AVX2"}}
    plain = ("python", "t.py")
    assert goes_on(header, header, plain, ("env", "RESUME_AT=6", "python", "t.py"))
    assert not goes_on(header, header, plain, ("env", "SM_COUNT=108", "python", "t.py"))
    assert goes_on(header, {**header, "argv": ["python", "t.py", "4"]}, plain, ("python", "t.py", "4"))
    assert not goes_on(header, {**header, "device": {"cpu_vectors": "DEFAULT"}}, plain, ("env", "RESUME=1", *plain))


def test_where_only_a_file_differs_the_clock_that_was_read_is_named() -> None:
    clock = [Stream(), Stream()]
    for twin, s in enumerate(clock):
        s.add("host", "time.time", outs=[f"t{twin}"], value=f"{1000 + twin}.5", where="fit.py:3 <module>")
    found = align(clock[0].events, clock[1].events)
    known = Facts(steps=StepsFound(leaf="{out}/result.json"), leads=leads(found.host, None))
    assert judge(known)[0].name == "time-seed"
    cured = dataclasses.replace(known, remedied={"fixed-clock": False})
    assert "with fixed-clock the twins agree" in judge(cured)[0].evidence


def test_files_for_results_count_where_no_run_contract_is_kept(tmp_path: Path) -> None:
    (tmp_path / "plots").mkdir()
    (tmp_path / "plots" / "a.csv").write_text("1")
    assert list(_results(tmp_path)) == ["{out}/plots/a.csv"]
    (tmp_path / "steps.jsonl").write_text("")
    assert _results(tmp_path) == {}


def test_a_graph_of_torch_compile_that_adds_atomically_is_a_sum_without_an_order_and_holds_no_state() -> None:
    def write(s: Stream, twin: int) -> None:
        more = {"value": "its code adds atomically", "where": "train.py:9 loss"}
        s.add("kernel", "inductor.graph", ins=[("0", "x", -1)], outs=[("out.0", f"g{twin}")], **more)

    causes = judge(facts(write))
    assert causes[0].name == "atomics" and causes[0].evidence[0].endswith("its code adds atomically")
    assert "stale-graph" not in [cause.name for cause in causes]


def test_draws_in_another_order_of_one_thread_are_no_shared_generator() -> None:
    def write(s: Stream, twin: int) -> None:
        for place in (0, 1) if twin == 0 else (1, 0):
            name = f"aten.{('uniform_', 'normal_')[place]}.default"
            drawn = [("generator.torch", f"g{len(s.lines)}", -1)]
            s.add("draw", name, ins=drawn, outs=[("self", f"w{place}")], where=f"train.py:{5 + place} reset")

    walks = ("train.py:4 (`for kind in kinds:`)",)
    causes = judge(facts(write, set_walks=walks, remedied={"hash-seed": True}))
    assert causes[0].name == "iteration-order" and "shared-generator" not in [cause.name for cause in causes]
    assert any("a set is walked through at train.py:4" in text for text in causes[0].evidence)
    assert causes[0].evidence and judge(facts(write, threads=2))[0].name != "iteration-order"


def test_a_value_that_a_switch_explains_is_no_memory_that_nobody_wrote() -> None:
    def write(s: Stream, twin: int) -> None:
        s.add("host", "aten.lift_fresh.default", outs=[f"r{twin}"])

    named = {cause.name for cause in judge(facts(write))}
    assert "uninitialised-memory" in named
    assert "uninitialised-memory" not in {c.name for c in judge(facts(write, remedied={"hash-seed": False}))}


def test_an_array_that_changes_in_a_queue_is_aliased() -> None:
    def write(s: Stream, twin: int) -> None:
        put = [("0", "full", -1)]
        s.add("op", "multiprocessing.Queue.put", ins=put, outs=[f"half{twin}"], where="feed.py:9 produce", thread=1)

    known = facts(write)
    assert known.origin is not None and known.origin.how == "changed behind"
    assert known.origin.detail == "what was put into the queue has other bytes when the queue's thread pickles it"
    assert judge(known)[0].name == "aliasing"


@pytest.mark.parametrize("told", [", while it is open for writing", ""])
def test_a_file_that_is_read_while_it_is_written_is_a_copy_that_is_not_done(told: str) -> None:
    def write(s: Stream, twin: int) -> None:
        s.add("host", "open", outs=[f"c{twin}"], value=f"scores.npy, 96 bytes{told}", where="train.py:3 load")
        s.add("host", "aten.lift_fresh.default", outs=[f"t{twin}"], where="train.py:4 load")

    causes = judge(facts(write, narrowed={"delays": True}))
    assert (causes[0].name == "asynchronous-copy") is bool(told)
    said = "scores.npy has other bytes in each twin when it is read at train.py:3 load, while it is open for writing"
    assert (said in causes[0].evidence) is bool(told)


def test_sql_that_draws_and_a_loops_clock_are_what_they_are() -> None:
    assert (host_kind("sqlite.random"), host_kind("asyncio.loop.time")) == ("entropy", "clock")
