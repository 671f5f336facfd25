"""Raw dumps: index, values and distance of the first difference, and which sort of leaf parts first."""

from __future__ import annotations

import json
import struct
from pathlib import Path

from orchestrator.localize.raw import compare_dumps, lines, not_kept
from tests.localize.traces import process


def dumped(folder: Path, weight: list[float], gradient: list[float]) -> Path:
    made = process(folder / "0")
    place = made.folder / "dumps" / "step-2"
    place.mkdir(parents=True)
    index = []
    for number, (leaf, kind, values) in enumerate(
        (("weight.0", "weight", weight), ("gradient.0", "gradient", gradient))
    ):
        (place / f"{number}.bin").write_bytes(struct.pack(f"<{len(values)}f", *values))
        index.append(
            {"leaf": leaf, "component": "0", "kind": kind, "file": f"{number}.bin", "dtype": "float32", "shape": [2, 2]}
        )
    (place / "index.json").write_text(json.dumps(index))
    return made.folder


def pair(tmp_path: Path, b_weight: list[float], b_gradient: list[float]) -> tuple[Path, Path]:
    a = dumped(tmp_path / "a", [1.0, 2.0, 3.0, 4.0], [0.5, -0.5, 0.0, 1.0])
    b = dumped(tmp_path / "b", b_weight, b_gradient)
    return a, b


def test_equal_dumps(tmp_path: Path) -> None:
    found = compare_dumps(*pair(tmp_path, [1.0, 2.0, 3.0, 4.0], [0.5, -0.5, 0.0, 1.0]))
    assert found == [{"step": 2, "tensors": 2, "parted": 0}]
    assert lines(found) == ["step 2: 2 tensors, equal in every byte"]


def test_the_first_difference_is_named_with_its_distance(tmp_path: Path) -> None:
    next_up = struct.unpack("<f", struct.pack("<I", struct.unpack("<I", struct.pack("<f", 3.0))[0] + 1))[0]
    (found,) = compare_dumps(*pair(tmp_path, [1.0, 2.0, next_up, 4.0], [9.0, -0.5, 0.0, 1.0]))
    assert (found["parted"], found["leaf"], found["sub_case"], found["index"], found["ulp"]) == (
        2, "weight.0", "weights first", [1, 0], 1,
    )  # fmt: skip
    assert (found["a"], found["b"]) == ("3.0", repr(next_up))


def test_a_sign_of_zero_is_a_difference_of_bits_alone(tmp_path: Path) -> None:
    (found,) = compare_dumps(*pair(tmp_path, [1.0, 2.0, 3.0, 4.0], [0.5, -0.5, -0.0, 1.0]))
    assert (found["leaf"], found["sub_case"], found["index"], found["ulp"]) == (
        "gradient.0", "reduced gradients first", [1, 0], 0,
    )  # fmt: skip


def test_steps_that_one_twin_alone_dumped_are_not_called_equal(tmp_path: Path) -> None:
    a, b = pair(tmp_path, [1.0, 2.0, 3.0, 4.0], [0.5, -0.5, 0.0, 1.0])
    (b / "dumps" / "step-2" / "index.json").unlink()
    assert compare_dumps(a, b) == []


def test_steps_that_were_to_be_dumped_and_were_not_are_told() -> None:
    assert not_kept([], 100, 200) == "the tensors of steps 100 to 200 (--dump-steps 100-200): not seen in both twins"
    assert not_kept([{"step": 1}, {"step": 2}], 1, 3) == (
        "the tensors of step 3 (--dump-steps 1-3): not seen in both twins"
    )
    assert not_kept([{"step": 1}, {"step": 2}], 1, 2) == ""
