"""Step rows: the first that part, origin or inherited, and generators that nobody draws from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from orchestrator.localize.steps import StepsFound, compare_steps
from tests.localize.traces import process

AGREEING = {"gen": "g0", "w": "w0", "m": "m0", "x": "x0", "act": "a0", "loss": "l0", "grad": "d0"}


def row(**changed: str) -> list[list[Any]]:
    values = {**AGREEING, **changed}
    return [
        ["generator.python", "generator", "state", values["gen"], None],
        ["weight.0", "0", "weight", values["w"], 1.0 if values["w"] == "w0" else 1.5],
        ["moment.0.exp_avg", "optimizer", "moment", values["m"], None],
        ["input.0", "", "input", values["x"], None],
        ["activation.0", "0", "activation", values["act"], 2.0],
        ["loss", "loss", "outcome", values["loss"], None],
        ["gradient.0", "0", "gradient", values["grad"], None],
    ]


def compare(tmp_path: Path, a: list[Any], b: list[Any]) -> StepsFound:
    return compare_steps(process(tmp_path / "a", a).rows(), process(tmp_path / "b", b).rows())


def test_equal_rows_part_nowhere(tmp_path: Path) -> None:
    found = compare(tmp_path, [row(), row()], [row(), row()])
    assert (found.step, found.leaf, found.rows, found.leaves) == (None, "", 2, 7)


def test_the_first_in_dataflow_order_is_the_origin(tmp_path: Path) -> None:
    found = compare(tmp_path, [row(), row()], [row(), row(act="a1", loss="l1", grad="d1")])
    assert (found.step, found.leaf, found.component, found.reads) == (1, "activation.0", "0", False)
    assert [(leaf.leaf, leaf.role) for leaf in found.parted] == [
        ("activation.0", "origin"), ("loss", "inherited"), ("gradient.0", "inherited"),
    ]  # fmt: skip


def test_moments_come_before_the_weights_that_are_made_of_them(tmp_path: Path) -> None:
    found = compare(tmp_path, [row(), row()], [row(), row(w="w1", m="m1", act="a1")])
    assert (found.step, found.leaf, found.component, found.reads) == (1, "moment.0.exp_avg", "optimizer", True)
    assert "what ran between" in found.parted[0].why


def test_an_unseeded_generator_that_nobody_draws_from_is_no_difference(tmp_path: Path) -> None:
    found = compare(tmp_path, [row(gen="g1"), row(gen="g1")], [row(gen="g2"), row(gen="g2")])
    assert (found.leaf, found.ignored) == ("", ["generator.python"])


def test_a_generator_that_was_drawn_from_is_the_origin(tmp_path: Path) -> None:
    found = compare(tmp_path, [row(gen="g1"), row(gen="g3")], [row(gen="g2", x="x1"), row(gen="g4", x="x2")])
    assert (found.step, found.leaf, found.component) == (0, "generator.python", "generator")


def test_a_generator_that_differs_all_along_and_never_moves_is_left_out(tmp_path: Path) -> None:
    found = compare(tmp_path, [row(gen="g1"), row(gen="g1")], [row(gen="g2"), row(gen="g2", act="a1")])
    assert (found.step, found.leaf, found.ignored) == (1, "activation.0", ["generator.python"])


def test_of_one_row_alone_it_is_not_said_that_nobody_drew(tmp_path: Path) -> None:
    assert compare(tmp_path, [row(gen="g1")], [row(gen="g2", x="x1")]).ignored == []


def test_a_twin_that_made_more_steps_parts(tmp_path: Path) -> None:
    found = compare(tmp_path, [row(), row()], [row()])
    assert (found.step, found.leaf) == (1, "(row)")
    assert "first twin made more steps" in found.note


def test_growth_counts_leaves_and_differences_of_checksums(tmp_path: Path) -> None:
    found = compare(tmp_path, [row(), row(), row()], [row(), row(w="w1"), row(w="w1", loss="l1")])
    assert [(p.step, p.leaves_parted, p.max_abs) for p in found.growth] == [(1, 1, 0.5), (2, 2, 0.5)]


def test_a_cut_last_line_is_left_out(tmp_path: Path) -> None:
    a = process(tmp_path / "a", [row(), row()])
    b = process(tmp_path / "b", [row(), row()])
    file = b.folder / "steps.jsonl"
    file.write_bytes(file.read_bytes()[:-20])
    assert len(list(a.rows())) == 2
    assert len(list(b.rows())) == 1
