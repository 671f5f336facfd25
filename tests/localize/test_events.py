"""Event streams: the first operation whose inputs agree and whose outputs differ, and what is no origin."""

from __future__ import annotations

from orchestrator.localize.events import align
from tests.localize.traces import Stream


def streams(write: object) -> tuple[Stream, Stream]:
    made = (Stream(), Stream())
    for twin, stream in enumerate(made):
        write(stream, twin)  # type: ignore[operator]
    return made


def origin_of(write: object) -> tuple[str, str, str]:
    a, b = streams(write)
    found = align(a.events, b.events).origin
    return ("", "", "") if found is None else (found.a.name, found.a.where, found.how)


def test_equal_inputs_and_other_outputs() -> None:
    def write(s: Stream, twin: int) -> None:
        x = s.op("relu", [("0", "x", -1)], "r")
        y = s.op("index_add_", [("self", "z", -1), ("2", "r", x)], f"sum{twin}", where="train.py:9 step")
        s.op("mul", [("0", f"sum{twin}", y)], f"later{twin}")

    assert origin_of(write) == ("aten.index_add_.default", "train.py:9 step", "outputs differ")


def test_equal_streams_have_no_origin_and_a_clock_is_none() -> None:
    def write(s: Stream, twin: int) -> None:
        s.add("host", "time.time", outs=[f"t{twin}"], value=f"{100 + twin}.5")
        s.op("relu", [("0", "x", -1)], "r")

    a, b = streams(write)
    found = align(a.events, b.events)
    assert found.origin is None
    assert [(x.value, y.value) for x, y in found.host] == [("100.5", "101.5")]


def test_memory_read_before_it_is_written_names_who_made_it_and_who_reads_it() -> None:
    def write(s: Stream, twin: int) -> None:
        made = s.op("empty", [], "", where="train.py:3 pad")
        part = s.add("op", "aten.copy_.default", ins=[("self", f"old{twin}", made)], outs=[("self", "rows")])
        s.op("clamp", [("0", f"whole{twin}", part)], f"out{twin}", where="train.py:5 pad")

    a, b = streams(write)
    found = align(a.events, b.events).origin
    assert found is not None and found.reader is not None
    assert (found.a.name, found.unset, found.reader.name) == ("aten.empty.default", True, "aten.clamp.default")


def test_memory_that_is_written_over_whole_is_no_origin() -> None:
    def write(s: Stream, twin: int) -> None:
        made = s.op("empty", [], "")
        s.add("draw", "aten.normal_.default", ins=[("generator.torch", "g", -1), ("self", f"old{twin}", made)],
              outs=[("self", "n"), ("generator.torch", "g1")])  # fmt: skip

    assert origin_of(write) == ("", "", "")


def test_a_seed_is_the_origin_once_somebody_draws_from_its_generator() -> None:
    def write(s: Stream, twin: int) -> None:
        s.add("seed", "random.Random", outs=[("generator.python.1", f"unused{twin}")], value="no seed")
        seed = s.add("seed", "random.seed", outs=[("generator.python", f"g{twin}")], value=str(7 + twin),
                     where="train.py:2 <module>")  # fmt: skip
        s.add("draw", "random.random", ins=[("generator.python", f"g{twin}", seed)], outs=[f"d{twin}"])

    assert origin_of(write) == ("random.seed", "train.py:2 <module>", "seed")


def test_a_generator_that_nobody_seeded() -> None:
    def write(s: Stream, twin: int) -> None:
        s.add("draw", "random.shuffle", ins=[("generator.python", f"g{twin}", -1)], outs=[f"d{twin}"])

    a, b = streams(write)
    found = align(a.events, b.events).origin
    assert found is not None
    assert (found.a.name, found.how, found.outside) == ("random.shuffle", "seed", True)


def test_two_threads_that_draw_from_one_generator() -> None:
    def write(s: Stream, twin: int) -> None:
        for state, who in enumerate(((1, 0, 0), (0, 1, 0))[twin]):
            s.add("draw", f"random.thread{who}", ins=[("generator.python", f"g{state}", state - 1)],
                  outs=[("generator.python", f"g{state + 1}")], thread=who)  # fmt: skip

    a, b = streams(write)
    found = align(a.events, b.events).origin
    assert found is not None
    assert (found.how, found.label) == ("changed behind", "generator.python")
    assert "2 threads" in found.detail


def test_an_input_that_changed_though_its_writer_left_equal_bits() -> None:
    def write(s: Stream, twin: int) -> None:
        x = s.op("zeros", [], "x")
        s.op("sum", [("0", ("x", "hit")[twin], x)], f"s{twin}", where="train.py:8 loss")

    assert origin_of(write) == ("aten.sum.default", "train.py:8 loss", "changed behind")


def test_equal_tensors_in_another_order_within_one_operation() -> None:
    def write(s: Stream, twin: int) -> None:
        p, q = s.op("relu", [("0", "x", -1)], "p"), s.op("tanh", [("0", "x", -1)], "q")
        pair = [("0.0", "p", p), ("0.1", "q", q)]
        s.op("stack", pair if twin == 0 else [("0.0", "q", q), ("0.1", "p", p)], f"both{twin}")

    assert origin_of(write)[2] == "reordered"


def test_another_one_of_the_same_tensors() -> None:
    def write(s: Stream, twin: int) -> None:
        p, q = s.op("relu", [("0", "x", -1)], "p"), s.op("tanh", [("0", "x", -1)], "q")
        order = [("p", p), ("q", q)] if twin == 0 else [("q", q), ("p", p)]
        total = ("zero", -1)
        for number, (name, index) in enumerate(order):
            made = f"{'+'.join(sorted(n for n, _ in order[: number + 1]))}"
            total = (made, s.op("add", [("0", *total), ("1", name, index)], made, where="train.py:7 vote"))

    assert origin_of(write) == ("aten.add.Tensor".replace("Tensor", "default"), "train.py:7 vote", "reordered")


def test_another_sequence_of_operations() -> None:
    def write(s: Stream, twin: int) -> None:
        s.op("relu", [("0", "x", -1)], "r")
        s.op(("mm", "addmm")[twin], [("0", "r", 0)], "y", where="train.py:4 choose")

    assert origin_of(write) == ("aten.mm.default", "train.py:4 choose", "control flow")


def test_what_one_line_calls_in_another_order_is_told_by_that_line_and_so_is_a_draw_of_one_twin_alone() -> None:
    def calls(s: Stream, twin: int) -> None:
        for name in ("flip", "roll") if twin else ("roll", "flip"):
            s.op(name, [("0", f"{name}x", -1)], f"{name}y", where=f"a.py:{len(name)}{name[0] == 'f':d} {name}",
                 by=f"a.py:9 apply > {len(name)}")  # fmt: skip

    origin = align(*(stream.events for stream in streams(calls))).origin
    assert origin is not None and (origin.how, origin.called) == ("reordered", "a.py:9 apply")

    def draws(s: Stream, twin: int) -> None:
        if twin:
            s.op("ones", [], "o", where="a.py:3 preview")
            s.add("draw", "aten.randn.default", outs=["d"], where="a.py:4 preview")
        for i in range(6):
            s.op("mul", [("0", f"x{i}{twin}", -1)], f"x{i + 1}{twin}", where=f"a.py:{10 + i} train")

    origin = align(*(stream.events for stream in streams(draws))).origin
    assert origin is not None and origin.how == "control flow"
    assert origin.alone is not None and origin.alone.where == "a.py:4 preview"


def test_operations_that_one_twin_alone_runs_and_that_change_nothing_are_passed_over() -> None:
    def write(s: Stream, twin: int) -> None:
        if twin:
            s.op("isfinite", [("0", "x", -1)], "f")
        for i in range(20):
            s.op("mul", [("0", f"x{i}", -1)], f"x{i + 1}")
        s.op("sum", [("0", "x20", -1)], f"s{twin}")

    assert origin_of(write)[0] == "aten.sum.default"


def test_workers_that_take_other_tasks_are_no_origin_and_what_the_main_thread_does_with_them_is() -> None:
    def write(s: Stream, twin: int) -> None:
        done = {}
        for worker, task in (((1, "p"), (2, "q")), ((1, "q"), (2, "p")))[twin]:
            done[task] = s.op("tanh", [("0", task, -1)], f"t{task}", thread=worker, where="train.py:3 work")
        for task in (("p", "q"), ("q", "p"))[twin]:
            s.op("add", [("0", f"t{task}", done[task])], f"sum{task}", where="train.py:6 collect")
        s.op("last", [("0", "e", -1)], "e", thread=(1, 2)[twin])

    assert origin_of(write) == ("aten.add.default", "train.py:6 collect", "reordered")


def test_what_python_hands_over_is_a_host_value() -> None:
    def write(s: Stream, twin: int) -> None:
        s.add("host", "aten.lift_fresh.default", outs=[f"y{twin}"], where="train.py:2 labels")

    assert origin_of(write) == ("aten.lift_fresh.default", "train.py:2 labels", "host value")


def test_of_streams_that_were_cut_one_may_be_longer() -> None:
    stream = Stream()
    for number in range(5):
        stream.op("add", [], f"{number}")
    assert align(stream.events, stream.events[:3], cut=True).origin is None
    assert align(stream.events, stream.events[:3]).origin is not None


def first_weights(s: Stream, twin: int, *, read: bool) -> None:
    """A module draws its weights before anybody has seeded; the program seeds then, and draws them anew."""
    made = s.op("empty", [], "")
    draws = [("generator.torch", f"g{twin}", -1)]
    drawn = s.add(
        "draw", "aten.uniform_.default", ins=draws, outs=[("self", f"w{twin}"), ("generator.torch", f"h{twin}")]
    )
    again = [("generator.torch", f"h{twin}", drawn)]
    s.add("draw", "aten.uniform_.default", ins=again, outs=[("self", f"b{twin}"), ("generator.torch", f"k{twin}")])
    if read:
        s.op("mul", [("0", f"w{twin}", drawn)], f"m{twin}", where="train.py:3 init")
    s.add("seed", "torch.manual_seed", outs=[("generator.torch", "s")], value="7")
    for place in (0, 1) if twin == 0 else (1, 0):
        s.op("zeros", [], "z", where=f"train.py:{5 + place} reset", shapes=f"{place}->f32[{place + 1}]")
    s.op("relu", [("0", "x", made)], "y")


def test_a_draw_that_no_operation_reads_and_that_is_made_anew_once_it_is_seeded_is_no_origin() -> None:
    name, where, how = origin_of(lambda s, twin: first_weights(s, twin, read=False))
    assert (name, how) == ("aten.zeros.default", "reordered") and where.endswith("reset")
    assert origin_of(lambda s, twin: first_weights(s, twin, read=True))[0::2] == ("aten.uniform_.default", "seed")


def test_bytes_that_an_operation_hands_to_its_backward_pass_are_no_result() -> None:
    def write(s: Stream, twin: int) -> None:
        outs = [("0", "y"), ("1", f"scratch{twin}")]
        shapes = "f32[4,2],f32[2]->f32[4],u8[64]"
        made = s.add("op", "aten.mkldnn_rnn_layer.default", ins=[("0", "x", -1)], outs=outs, shapes=shapes)
        s.op("mkldnn_rnn_layer_backward", [("0", "y", made), ("1", f"scratch{twin}", made)], "g")
        s.op("mul", [("0", "g", -1)], f"m{twin}", where="train.py:9 step")

    assert origin_of(write) == ("aten.mul.default", "train.py:9 step", "outputs differ")


def test_a_helper_that_is_handed_equal_data_by_other_lines_is_told_by_the_line_that_differs() -> None:
    def write(s: Stream, twin: int) -> None:
        where = "train.py:3 rows"
        s.add("host", "aten.lift_fresh.default", outs=["ends"], where=where, by="train.py:8 forward > 2")
        s.add("host", "aten.lift_fresh.default", outs=[f"r{twin}"], where=where, by="train.py:9 forward > 2")

    a, b = streams(write)
    origin = align(a.events, b.events).origin
    assert origin is not None and (origin.called, origin.how) == ("train.py:9 forward", "host value")


def test_what_the_second_twin_alone_runs_is_told_and_not_what_both_run_next() -> None:
    def write(s: Stream, twin: int) -> None:
        if twin:
            s.op("_to_copy", [("0", "x", -1)], "half", where="train.py:4 unpack")
        for number in range(5):
            s.op("relu", [("0", f"x{number}{twin}", -1)], f"y{number}{twin}", where=f"train.py:{10 + number} step")

    a, b = streams(write)
    origin = align(a.events, b.events).origin
    assert origin is not None and origin.alone is not None and origin.how == "control flow"
    assert (origin.a.where, origin.alone.where) == ("train.py:10 step", "train.py:4 unpack")


def test_a_task_that_another_thread_took_says_less_than_what_the_main_thread_does_otherwise() -> None:
    def write(s: Stream, twin: int) -> None:
        for thread, number in ((1, 24), (2, 48)) if twin == 0 else ((2, 24), (1, 48)):
            label = f"generator.{thread}"
            ins = [(label, f"g{number}", -1)]
            s.add("seed", "numpy.random.default_rng", outs=[(label, f"g{number}")], value=str(number), thread=thread)
            s.add("draw", "numpy.random.normal", ins=ins, outs=[f"d{number}"], where="train.py:5 judge", thread=thread)
        s.op("mul", [("0", "x", -1)], f"m{twin}", shapes=f"f32[4],0.{twin}->f32[4]", where="train.py:9 <module>")

    assert origin_of(write) == ("aten.mul.default", "train.py:9 <module>", "control flow")
