"""Races: what other threads computed counts for nothing alone; an origin is followed through the threads behind it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from orchestrator.localize import races, slices
from orchestrator.localize.causes import judge
from orchestrator.localize.events import align
from orchestrator.localize.facts import Facts
from orchestrator.localize.near_origin import with_source
from orchestrator.localize.operations import Found, concluded, of_another_task
from orchestrator.localize.pair import Pair, Request
from orchestrator.localize.result import DELAYS
from orchestrator.localize.session import Listener, Options, Session
from orchestrator.localize.steps import StepsFound, compare_steps
from orchestrator.localize.trace import Trace
from tests.localize.traces import Stream, process


def row(**changed: str) -> list[list[Any]]:
    values = {"t": "t0", "g": "g0", "loss": "l0", **changed}
    return [
        ["generator.torch.thread1.1", "generator", "state", values["g"], None],
        ["threads.activation.0", "0", "thread", values["t"], None],
        ["loss", "loss", "outcome", values["loss"], None],
    ]


def compare(folder: Path, *rows: list[list[list[Any]]]) -> StepsFound:
    a, b = (process(folder / name, made).rows() for name, made in zip("ab", rows, strict=True))
    return compare_steps(a, b)


def test_what_threads_computed_counts_only_beside_something_of_the_training_s_own(tmp_path: Path) -> None:
    alone = compare(tmp_path / "1", [row(), row()], [row(), row(t="t1")])
    assert (alone.step, alone.leaf, alone.ignored) == (None, "", [])
    beside = compare(tmp_path / "2", [row(), row()], [row(), row(t="t1", g="g1", loss="l1")])
    assert (beside.step, beside.leaf, beside.component) == (1, "threads.activation.0", "0")
    assert [leaf.leaf for leaf in beside.parted] == ["threads.activation.0", "loss"]


def test_a_leaf_that_threads_made_in_one_twin_alone_is_no_other_row(tmp_path: Path) -> None:
    found = compare(tmp_path, [row(), row()], [row(), [leaf for leaf in row() if leaf[2] != "thread"]])
    assert found.step is None


def pair_of(folder: Path, streams: tuple[Stream, Stream], children: tuple[dict[str, Stream], ...] = ({}, {})) -> Pair:
    for twin, stream, below in zip(("a", "b"), streams, children, strict=True):
        for name, one in {"0": stream, **below}.items():
            process(folder / twin / name, [row()] if name == "0" else [], one)
    kind = races.kind_of(races.SIDES[0], 10)
    return Pair(
        kind=kind, folder=folder, a=Trace(folder / "a"), b=Trace(folder / "b"), codes=(0, 0), messages=("", ""),
        seconds=1.0, in_time=True,
    )  # fmt: skip


def found_in(pair: Pair) -> Found:
    return concluded(pair, StepsFound(step=0, leaf="input.0", component="data", kind="input"), 0)


def test_a_worker_that_took_another_task_is_no_origin(tmp_path: Path) -> None:
    def worker(*tasks: int) -> Stream:
        stream = Stream()
        for task in tasks:
            stream.add("seed", "numpy.random.default_rng", outs=[f"s{task}"], value=str(task), where="a.py:9 item")
            stream.add("draw", "numpy.random.Generator.normal", ins=[("generator.numpy.1", f"s{task}", -1)], outs=["d"])
        return stream

    def main(first: str) -> Stream:
        stream = Stream()
        stream.add("host", "imap_unordered", outs=[first], value=first, where="a.py:20 <module>")
        stream.add("host", "aten.lift_fresh.default", outs=[f"row{first}"], where="a.py:22 <module>")
        return stream

    shared = ({"0.1": worker(0, 2), "0.2": worker(1)}, {"0.1": worker(1), "0.2": worker(0, 2)})
    found = found_in(pair_of(tmp_path / "shared", (main("0"), main("1")), shared))
    assert found.origin is not None
    assert (found.origin.a.where, found.origin.how) == ("a.py:22 <module>", "host value")
    assert judge(facts_of(found, raced=True))[0].name == "completion-order"

    own = ({"0.1": worker(0)}, {"0.1": worker(7)})
    other = pair_of(tmp_path / "own", (main("0"), main("0")), own)
    below = align(other.a.processes["0.1"].events(), other.b.processes["0.1"].events(), process="0.1").origin
    assert below is not None and not of_another_task(other, below)


def facts_of(found: Found, raced: bool | None) -> Facts:
    narrowed = {} if raced is None else {DELAYS: raced}
    return Facts(steps=found.steps, origin=found.origin, leads=found.leads, narrowed=narrowed, threads=2)


def handed(fingerprints: tuple[str, str], *, again: bool) -> tuple[Stream, Stream]:
    made = (Stream(), Stream())
    for stream, found in zip(made, fingerprints, strict=True):
        value = races.HANDED_AGAIN if again else ""
        stream.add("host", "aten.lift_fresh.default", outs=["first"], where="a.py:8 <module>", shapes="f32[4]->f32[4]")
        where = {"where": "a.py:8 <module>", "shapes": "f32[4]->f32[4]"}
        x = stream.add("host", "aten.lift_fresh.default", outs=[found], value=value, **where)
        stream.op("sum", [("0", found, x)], f"s{found}", shapes="f32[4]->f32[]", where="a.py:9 <module>")
    return made


def test_memory_handed_over_again_with_another_content_was_written_by_others(tmp_path: Path) -> None:
    found = found_in(pair_of(tmp_path / "again", handed(("old", "new"), again=True)))
    origin = races.raced(found)
    assert origin is not None and (origin.how, origin.a.where) == ("changed behind", "a.py:8 <module>")
    assert judge(facts_of(dataclasses.replace(found, origin=origin), raced=True))[0].name == "asynchronous-copy"
    fresh = found_in(pair_of(tmp_path / "fresh", handed(("old", "new"), again=False)))
    origin = races.raced(fresh)
    assert origin is not None and origin.how == "host value"


def test_memory_that_changes_while_a_late_reader_holds_it_is_another_s_too(tmp_path: Path) -> None:
    a, b = handed(("old", "new"), again=True)
    b.lines[-1] = b.lines[-1].replace(b'["0", "new", 1]', b'["0", "later", 1]')
    found = found_in(pair_of(tmp_path, (a, b)))
    origin = races.raced(found)
    assert origin is not None and origin.reader is not None and origin.reader.where == "a.py:9 <module>"
    assert judge(facts_of(dataclasses.replace(found, origin=origin), raced=True))[0].name == "aliasing"


def computed(dtype: str, thread: int) -> Stream:
    """A worker reads one part, in the precision of its thread; the main thread takes what it made."""
    stream = Stream()
    x = stream.op("randn", [], "x")
    where = {"where": "a.py:5 work", "thread": thread}
    if dtype == "bf16":
        x = stream.op("_to_copy", [("0", "x", x)], "narrow", shapes="f32[4],dtype=bfloat16->bf16[4]", **where)
        y = stream.op("relu", [("0", "narrow", x)], "low", shapes="bf16[4]->bf16[4]", **where)
    else:
        y = stream.op("relu", [("0", "x", x)], "high", shapes="f32[4]->f32[4]", **where)
    made = "low" if dtype == "bf16" else "high"
    stream.op("sum", [("0", made, y)], f"sum of {made}", where="a.py:9 <module>")
    return stream


def test_an_input_is_followed_to_the_thread_that_made_it_in_another_way(tmp_path: Path) -> None:
    a, b = computed("bf16", 1), computed("f32", 2)
    found = found_in(pair_of(tmp_path, (a, b)))
    assert found.origin is not None
    assert (found.origin.a.where, found.origin.how) == ("a.py:5 work", "control flow")
    assert (found.origin.a.thread, found.origin.b.thread) == (1, 2)
    assert judge(facts_of(found, raced=True))[0].name == "reduced-precision"


def test_the_same_computation_of_another_part_is_followed_no_further() -> None:
    made = []
    for part in "pq":
        stream = Stream()
        y = stream.op("relu", [("0", part, -1)], f"r{part}", thread=1)
        stream.op("sum", [("0", f"r{part}", y)], f"s{part}")
        made.append(stream.events)
    origin = align(made[0], made[1]).origin
    assert origin is not None
    reads = dataclasses.replace(origin, a=made[0][-1], b=made[1][-1], label="0")
    assert slices.made_otherwise(reads, made[0], made[1], align) is None


def test_a_race_is_no_order_of_hashes() -> None:
    made = (Stream(), Stream())
    for stream, order in zip(made, ("pq", "qp"), strict=True):
        sources = [stream.op("tanh", [("0", part, -1)], f"t{part}", thread=i) for i, part in enumerate(order, 1)]
        stream.op("sum", [("0", f"t{order[0]}", sources[0])], f"s{order[0]}", where="a.py:9 <module>")
    aligned = align(made[0].events, made[1].events)
    steps = StepsFound(step=0, leaf="loss")
    judged = judge(Facts(steps=steps, origin=aligned.origin, threads=3, narrowed={DELAYS: True}))
    assert judged[0].name == "completion-order"
    hashes = next(cause for cause in judged if cause.name == "hash-order")
    assert "only in which threads wait" in hashes.against[0]


def test_memory_that_another_process_writes_is_no_other_tensor(tmp_path: Path) -> None:
    made = []
    for early, late in (("zero", "one"), ("one", "one")):
        stream = Stream()
        shared = stream.op("zeros", [], "zero", shapes="[8]->f32[8]")
        stream.op("sum", [("0", early, shared)], f"s{early}", where="a.py:9 <module>", shapes="f32[8]->f32[]")
        stream.op("mul", [("0", late, shared)], f"m{late}", where="a.py:10 <module>", shapes="f32[8]->f32[8]")
        stream.op("relu", [("0", "zero", -1)], "zero")  # what one twin reads is there in the other as well
        made.append(stream)
    found = found_in(pair_of(tmp_path, (made[0], made[1])))
    assert found.origin is not None and (found.origin.how, found.origin.a.where) == (
        "changed behind",
        "a.py:9 <module>",
    )
    origin = races.raced(found)
    facts = dataclasses.replace(facts_of(dataclasses.replace(found, origin=origin), raced=True), children=1)
    assert judge(facts)[0].name == "asynchronous-copy"


def test_all_of_one_memory_is_no_other_part_of_it() -> None:
    def origin(shape: str) -> Any:
        made = (Stream(), Stream())
        for stream, read in zip(made, ("p", "q"), strict=True):
            shared = stream.op("set_", [], "bytes", shapes="u8[32]->u8[32]")
            stream.op("relu", [("0", "p", -1)], "rp", shapes="f32[8]->f32[8]", where="a.py:7 <module>")
            stream.op("relu", [("0", "q", -1)], "rq", shapes="f32[8]->f32[8]", where="a.py:7 <module>")
            stream.op("sum", [("1", read, shared)], f"s{read}", shapes=f"f32[1],{shape}->f32[]")
        return align(made[0].events, made[1].events).origin

    assert origin("f32[4,2]").how == "changed behind"
    assert origin("f32[2,2]").how == "reordered"


def test_an_input_that_changes_between_the_call_and_the_read_has_its_reader_as_origin(tmp_path: Path) -> None:
    made = (Stream(), Stream())
    for stream in made:
        stream.op("addmm", [("1", "x", -1)], "y", where="a.py:9 <module>", phase="forward")
    found = found_in(pair_of(tmp_path, made))
    assert found.origin is None
    seen = dataclasses.replace(found, steps=StepsFound(step=0, leaf="input.0", component="data", kind="input"))
    session = Session(
        request=Request(command=("x",), directory=tmp_path, environ={}),
        options=Options(timeout_s=0.0),
        listener=Listener(),
    )
    origin = races.closer(session, found.pair.kind, seen).found
    assert origin is not None and origin.origin is not None
    assert (origin.origin.how, origin.origin.a.where) == ("changed behind", "a.py:9 <module>")


def accumulated(first: int) -> Stream:
    """Two threads add to one tensor; ``first``: whose turn comes first."""
    stream = Stream()
    writer, value = stream.op("zeros", [], "zero"), "zero"
    for thread in (first, 3 - first):
        grown = f"{value}+{thread}"
        ins = [("self", value, writer), ("1", f"part{thread}", -1)]
        writer = stream.add(
            "op", "aten.add_.Tensor", ins=ins, outs=[("self", grown)], thread=thread, where="a.py:4 work"
        )
        value = grown
    return stream


def test_threads_that_add_to_one_tensor_are_an_order_and_no_copy() -> None:
    aligned = align(accumulated(1).events, accumulated(2).events)
    assert aligned.origin is not None and (aligned.origin.how, aligned.origin.a.where) == ("reordered", "a.py:4 work")
    facts = Facts(steps=StepsFound(step=0), origin=aligned.origin, threads=3, narrowed={DELAYS: True})
    assert judge(facts)[0].name == "completion-order"


@pytest.mark.parametrize(("name", "cause"), [("copy_", "asynchronous-copy"), ("mul_", "aliasing")])
def test_who_writes_the_memory_of_another_thread_decides_the_kind(name: str, cause: str) -> None:
    made = []
    for early in (True, False):
        stream = Stream()
        source = stream.op("zeros", [], "zero")
        write = {"where": "a.py:4 work", "thread": 1}
        ins, outs = [("self", "zero", source), ("1", "batch", -1)], [("self", "batch")]
        if not early:
            source = stream.add("op", f"aten.{name}.default", ins=ins, outs=outs, **write)
        stream.op("sum", [("0", "zero" if early else "batch", source)], f"s{early}", where="a.py:9 <module>")
        if early:
            stream.add("op", f"aten.{name}.default", ins=ins, outs=outs, **write)
        made.append(stream.events)
    origin = align(made[0], made[1]).origin
    assert origin is not None and (origin.how, origin.a.where) == ("changed behind", "a.py:9 <module>")
    assert judge(Facts(steps=StepsFound(step=0), origin=origin, threads=1, narrowed={DELAYS: True}))[0].name == cause


def test_what_is_computed_or_seeded_is_no_race_and_what_comes_from_outside_may_be() -> None:
    def origin(write: Any) -> Any:
        made = (Stream(), Stream())
        for twin, stream in enumerate(made):
            write(stream, twin)
        return align(made[0].events, made[1].events).origin

    assert races.could_be(None)
    assert not races.could_be(origin(lambda s, twin: s.op("index_add_", [("0", "x", -1)], f"o{twin}")))
    assert races.could_be(origin(lambda s, twin: s.add("host", "aten.lift_fresh.default", outs=[f"v{twin}"])))


def test_the_next_origin_is_told_by_its_own_source(tmp_path: Path) -> None:
    (tmp_path / "first.py").write_text("names = {'a', 'b'}\nfor name in names:\n    torch.randn(1)\n")
    (tmp_path / "next.py").write_text("x = torch.ones(3)\ny = x.sum()\n")

    def order(*names: str) -> Stream:
        stream = Stream()
        for name in names:
            stream.op(name, [], f"t{name}", where="first.py:3 <module>")
        return stream

    def total(value: str) -> Stream:
        stream = Stream()
        stream.op("sum", [("0", "x", -1)], value, where="next.py:2 <module>")
        return stream

    reordered = pair_of(tmp_path / "1", (order("randn", "rand"), order("rand", "randn")))
    parted = pair_of(tmp_path / "2", (total("s1"), total("s2")))
    before, after = (dataclasses.replace(pair, directory=tmp_path) for pair in (reordered, parted))
    first, then = found_in(before), found_in(after)
    told = with_source(facts_of(first, None), first.origin, before)
    assert told.set_walks == ("first.py:2 (`for name in names:`)",)
    assert "torch.randn(1)" in told.lines
    again = with_source(dataclasses.replace(told, origin=then.origin), then.origin, after)
    assert (again.set_walks, again.lines) == ((), ("x = torch.ones(3)", "y = x.sum()"))
