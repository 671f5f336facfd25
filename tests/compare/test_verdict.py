import math

import pytest

from foxrun import jsonio
from orchestrator.compare import verdict as v


def full() -> v.Verdict:
    return v.make(
        v.DRIFT,
        "the runs part",
        next="look",
        runs=[v.RunSummary(label="a", seed=43, mode=1, rows=3, manifest={"seed": 43})],
        agreed=v.Agreement(rows=2, leaves=4, values=8, planted_flip=v.PlantedFlip(row=1, leaf="x", found=True)),
        first_divergence=v.Divergence(
            step=2, row=2, leaf="x", run_a="NaN", run_b="1.0", delta="NaN", line="FIRST_DIVERGENCE: step=2 leaf=x"
        ),
        parted=[v.PartedLeaf(name="x", checksum_a=math.inf, checksum_b=1.0, delta=-math.inf, ulp=None)],
        growth=[v.GrowthPoint(step=2, leaves_parted=1, max_abs=math.inf, max_rel=0.5)],
        outcome=[v.OutcomeRow(key="total_pnl_usd", a=1.0, b=2.0, delta=1.0, percent=100.0)],
        manifest_differences=[v.FieldDifference(path="seed", a=43, b=44, matters=True)],
        differences=[v.Difference(file="bits.u64", path="row 2", kind="changed", a="1", b="2")],
        differences_total=1,
        parts=[v.Part(name="leg-a", phase="Failed", exit_code=1)],
        notes=["a note"],
    )


def test_every_verdict_has_the_exit_code_of_the_table() -> None:
    assert dict(v.EXIT_CODES) == {
        "identical": 0,
        "within_tolerance": 0,
        "succeeded": 0,
        "drift": 3,
        "gate_failed": 4,
        "job_failed": 5,
        "infrastructure": 6,
        "incomparable": 7,
        "incomplete": 7,
    }


@pytest.mark.parametrize(
    ("following", "lines"),
    [
        ("", []),
        ("run it again", ["next: run it again"]),
        (v.command("foxrun", "retry", "w"), ["next: foxrun retry w"]),
        (
            f"{v.command('foxrun', 'check', '-p', 'note=a b')} makes it again; mend the cause",
            ["next:", "    foxrun check -p 'note=a b'", "  makes it again; mend the cause"],
        ),
        ("`foxrun logs w`, then `foxrun retry w`", ["next:", "    foxrun logs w", "  then", "    foxrun retry w"]),
        (v.command("foxrun", "check", "-p", "a=`"), ["next: foxrun check -p 'a=`'"]),
    ],
)
def test_a_command_to_run_next_stands_on_a_line_of_its_own(following: str, lines: list[str]) -> None:
    assert v.lines(v.make(v.DRIFT, "they part", next=following))[1:] == lines


@pytest.mark.parametrize(
    ("codes", "worst"),
    [([], 0), ([0, 3], 3), ([3, 7, 0], 7), ([7, 4], 4), ([4, 5], 5), ([5, 6, 3], 6), ([0, 137], 6), ([0, 0], 0)],
)
def test_precedence(codes: list[int], worst: int) -> None:
    assert v.precedence(codes) == worst


def test_the_worst_of_a_group_is_returned_whole() -> None:
    drift, damaged = v.make(v.DRIFT, "first"), v.make(v.INCOMPLETE, "second")
    assert v.worst([v.make(v.IDENTICAL, "same"), drift, damaged]) is damaged
    with pytest.raises(ValueError, match="no verdict"):
        v.worst([])


def test_a_verdict_survives_its_file_with_values_that_json_does_not_have() -> None:
    text = jsonio.pretty(v.as_dict(full()))
    assert '"Infinity"' in text
    assert v.from_dict(jsonio.loads(text)) == full()


def test_the_strings_of_a_divergence_stay_strings_when_read_by_a_plain_json_reader() -> None:
    import json

    read = v.from_dict(json.loads(jsonio.pretty(v.as_dict(full()))))
    assert read.first_divergence is not None
    assert read.first_divergence.run_a == "NaN"
    assert read.parted[0].checksum_a == math.inf


def test_fields_of_a_later_version_are_passed_over() -> None:
    value = v.as_dict(full()) | {"later": 1}
    value["runs"][0]["later"] = 2
    assert v.from_dict(value) == full()


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([], "a verdict is an object"),
        ({"message": ""}, "'verdict'"),
        ({"verdict": "fine", "message": ""}, "not a verdict"),
        ({"verdict": "drift", "message": "", "runs": {}}, "list of RunSummary"),
        ({"verdict": "drift", "message": "", "parted": [{}]}, "PartedLeaf"),
    ],
)
def test_what_is_no_verdict_is_refused_with_a_reason(value: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        v.from_dict(value)


def test_the_exit_code_follows_the_name_whatever_a_file_says() -> None:
    assert v.from_dict({"verdict": "drift", "message": "", "exit_code": 0}).exit_code == 3


def test_the_text_begins_with_the_verdict_and_ends_with_what_to_do() -> None:
    lines = v.lines(full())
    assert lines[0] == "drift: the runs part"
    assert lines[1] == "FIRST_DIVERGENCE: step=2 leaf=x"
    assert lines[-1] == "next: look"
    assert "failed: leg-a: exit code 1" in lines
    assert "planted flip in a copy (row 1, x): found" in lines


def test_the_text_of_a_tolerated_pair_says_that_it_is_not_bit_exact() -> None:
    assert "NOT bit-exact" in v.lines(v.make(v.WITHIN_TOLERANCE, "close"))[1]


def test_long_lists_are_cut_in_the_text_and_counted() -> None:
    import dataclasses

    many = dataclasses.replace(full(), parted=[v.PartedLeaf(name=f"leaf{i}") for i in range(50)])
    lines = v.lines(many)
    assert "parted at step 2, in dataflow order: 50" in lines
    assert "  and 30 more" in lines
