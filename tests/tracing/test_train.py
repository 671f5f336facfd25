"""A plain PyTorch program, traced: its bits stay what they are, and its steps and operations are all there."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.tracing.traced import Traced, digits_of, plain, traced

Runs = tuple[CompletedProcess[str], Traced, Traced, Traced]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    folder = tmp_path_factory.mktemp("train")
    return (
        plain("train.py"),
        traced(folder / "steps", "train.py", plan={"level": "steps", "dump_steps": [1, 1]}),
        traced(folder / "a", "train.py", PYTHONHASHSEED="1"),
        traced(folder / "b", "train.py", PYTHONHASHSEED="2", MALLOC_PERTURB_="85"),
    )


def test_no_bit_of_the_program_changes(runs: Runs) -> None:
    untraced, *others = runs
    assert untraced.returncode == 0, untraced.stderr
    for run in others:
        assert (run.code, run.stderr) == (0, "")
        assert run.stdout == untraced.stdout


def test_the_tracer_had_no_trouble_and_says_how_the_program_ended(runs: Runs) -> None:
    for run in runs[1:]:
        end = run.file("end.json")
        assert (end["how"], end["steps"], end["troubles"]) == ("end", 3, {})


def test_two_runs_of_a_clean_program_leave_equal_traces(runs: Runs) -> None:
    _, steps, a, b = runs
    for name in ("events.jsonl", "steps.jsonl"):
        assert (a.out / "0" / name).read_bytes() == (b.out / "0" / name).read_bytes(), name
    assert (steps.out / "0" / "steps.jsonl").read_bytes() == (a.out / "0" / "steps.jsonl").read_bytes()
    assert not (steps.out / "0" / "events.jsonl").exists()


def test_a_row_holds_what_the_step_reads_and_makes_in_dataflow_order(runs: Runs) -> None:
    rows = runs[1].rows()
    assert [(row["step"], row.get("end", False)) for row in rows] == [(0, False), (1, False), (2, False), (3, True)]
    names = [leaf[0] for leaf in rows[1]["leaves"]]
    wanted = [
        "generator.python", "generator.numpy", "generator.torch", "generator.numpy.1", "generator.torch.1",
        "buffer.encoder.1.running_mean", "weight.encoder.0.weight", "weight.critic.weight",
        "moment.encoder.0.weight.exp_avg", "moment.critic.weight.momentum_buffer", "input.0", "activation.encoder.0",
        "activation.encoder", "activation.output", "input.1", "activation.critic", "loss", "gradient.head.bias",
        "gradient.encoder.0.weight",
    ]  # fmt: skip
    kinds = ["state", "weight", "moment", "input", "activation", "outcome", "gradient"]
    assert [name for name in wanted if name not in names] == []
    order = [kinds.index(leaf[2]) for leaf in rows[1]["leaves"]]
    assert order == sorted(order)
    assert {name: component for name, component, *_ in rows[1]["leaves"]}["gradient.encoder.0.weight"] == "encoder.0"


def test_a_gradient_and_the_weight_it_makes_change_from_row_to_row(runs: Runs) -> None:
    rows = [{leaf[0]: leaf[3] for leaf in row["leaves"]} for row in runs[1].rows()]
    for name in ("weight.encoder.0.weight", "generator.torch", "buffer.encoder.1.running_mean"):
        assert len({row[name] for row in rows}) == 4, name
    assert len({row["gradient.head.weight"] for row in rows[:3]}) == 3


def test_operations_of_every_kind_are_recorded_with_line_and_module(runs: Runs) -> None:
    events = runs[2].events()
    assert [event["i"] for event in events] == list(range(len(events)))
    found = {(event["kind"], event["name"], event["phase"], event["module"]) for event in events}
    for wanted in [
        ("seed", "torch.manual_seed", "other", ""),
        ("seed", "numpy.random.default_rng", "other", ""),
        ("seed", "torch.Generator.manual_seed", "other", ""),
        ("draw", "random.random", "other", ""),
        ("draw", "numpy.random.normal", "other", ""),
        ("draw", "numpy.random.Generator.normal", "other", ""),
        ("draw", "aten.randperm.generator", "other", ""),
        ("draw", "aten.bernoulli_.float", "forward", "encoder.2"),
        ("op", "aten.addmm.default", "forward", "encoder.0"),
        ("op", "aten.mm.default", "backward", "encoder.0"),
        ("op", "aten._foreach_addcdiv_.ScalarList", "optimizer", ""),
        ("kernel", "autograd.Scaled", "forward", ""),
        ("kernel", "autograd.Scaled.backward", "backward", ""),
        ("kernel", "tracing_tests.triple.default", "other", ""),
        ("module", "Linear", "forward", "head"),
        ("optimizer", "SGD.step", "other", ""),
    ]:
        assert wanted in found, wanted
    text = (Path(__file__).parent / "programs" / "train.py").read_text().splitlines()
    for event in events:
        file, _, rest = event["where"].partition(":")
        assert file == "train.py", event
        assert text[int(rest.split()[0]) - 1].strip(), event
    backward = next(
        e for e in events if e["name"] == "aten.mm.default" and e["phase"] == "backward" and e["module"] == "head"
    )
    assert backward["where"] == next(
        e["where"] for e in events if e["name"] == "aten.addmm.default" and e["module"] == "head"
    )
    assert {event["thread"] for event in events} == {0, 1, 2, 3}


def test_an_input_names_the_event_that_wrote_it_and_carries_the_bits_that_it_left(runs: Runs) -> None:
    events = runs[2].events()
    checked = 0
    for event in events:
        for _, fingerprint, source in event["ins"]:
            assert source < event["i"]
            left = {value for _, value in events[source]["outs"]} if source >= 0 else set()
            checked += fingerprint in left
    assert checked > 200
    draws = [event for event in events if event["ins"] and event["ins"][0][0] == "generator.torch"]
    for before, after in pairwise(draws):
        assert after["ins"][0][1:] == [dict(before["outs"])["generator.torch"], before["i"]]


def test_memory_that_nobody_wrote_has_no_fingerprint_and_is_named_where_it_is_read(runs: Runs) -> None:
    events = runs[2].events()
    empty = next(
        event for event in events if event["name"] == "aten.empty.memory_format" and "f32[6]" in event["shapes"]
    )
    assert empty["outs"] == [["0", ""]]
    last = [event for event in events if event["name"] == "aten.add_.Tensor"][-1]
    assert last["value"] == f"self uninitialised: event {empty['i']}, 8 of 24 bytes"


def test_dumped_leaves_are_raw_bytes_that_fingerprint_to_the_row(runs: Runs) -> None:
    run = runs[1]
    folder = run.out / "0" / "dumps" / "step-1"
    index = json.loads((folder / "index.json").read_text())
    row = {leaf[0]: leaf[3] for leaf in run.rows()[1]["leaves"]}
    sizes = {"float32": 4, "int64": 8}
    assert len(index) > 40
    for item in index:
        data = (folder / item["file"]).read_bytes()
        assert digits_of(data, sizes[item["dtype"]]) == row[item["leaf"]], item


def test_the_header_depends_on_nothing_of_the_moment(runs: Runs) -> None:
    a, b = (run.file("header.json") for run in runs[2:])
    assert (a["process"], a["level"], a["threads"][0]) == ("0", "operations", 1)
    for header, seed in ((a, "1"), (b, "2")):
        assert header["variables"].pop("PYTHONHASHSEED") == seed
    assert b["variables"].pop("MALLOC_PERTURB_") == "85"
    assert a == b
