"""A resumed run beside the run that it resumes, and raw dumps of chosen steps: through the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator.localize.operations import _unnumbered
from orchestrator.localize.result import Parted
from orchestrator.localize.steps import StepsFound, compare_steps
from orchestrator.localize.trace import Leaf, Row

pytestmark = pytest.mark.timeout(300)

PROGRAM = """
import sys
import torch
import foxrun

torch.manual_seed(3)
torch.set_num_threads(1)
model = torch.nn.Linear(6, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
data = torch.randn(12, 4, 6)
first = 0
if len(sys.argv) > 1:
    state = torch.load(CHECKPOINT)
    model.load_state_dict(state["model"])
    first = state["step"]
foxrun.trace(model, optimizer)
for step in range(first, 6):
    if len(sys.argv) == 1 and step == 3:
        torch.save(dict(model=model.state_dict(), optimizer=optimizer.state_dict(), step=step), CHECKPOINT)
    x = data[step]
    loss = (model(x).squeeze(1) - x.sum(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    foxrun.step(step)
"""


def localize(tmp_path: Path, *words: str) -> tuple[int, dict[str, Any], str]:
    command = [sys.executable, "-P", "-m", "orchestrator", "localize", "--no-remedies", "--trials", "1", "-o", "json"]
    done = subprocess.run([*command, *words], cwd=tmp_path, env=dict(os.environ), text=True, capture_output=True)
    return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr


def test_a_resumed_run_that_forgets_the_moments_parts_where_it_reads_them(tmp_path: Path) -> None:
    text = PROGRAM.replace("CHECKPOINT", repr(str(tmp_path / "state.pt")))
    (tmp_path / "program.py").write_text(text)
    subprocess.run([sys.executable, "program.py"], cwd=tmp_path, check=True)
    code, result, err = localize(tmp_path, "--other", "python program.py resume", "--", "python", "program.py")
    assert code == 3, err
    assert (result["step"], result["causes"][0]["name"]) == (3, "resume")
    assert result["leaf"].startswith("moment.")


def test_rows_are_held_side_by_side_from_the_first_step_that_both_have() -> None:
    def row(step: int, digits: str) -> Row:
        return Row(step=step, leaves=(Leaf("weight.w", "w", "weight", digits, None),))

    whole = [row(step, f"{step}") for step in range(6)]
    resumed = [row(step, f"{step}") for step in range(3, 6)]
    assert compare_steps(whole, resumed).step is None
    assert compare_steps(resumed, whole).rows == 3
    assert compare_steps(whole, [*resumed[:2], row(5, "x")]).step == 5
    assert compare_steps(whole, [row(7, "7")]).leaf == "(row)"  # nothing in common


ULP = """
import os
import torch

torch.manual_seed(3)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(6, 3), torch.nn.Linear(3, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
data = torch.randn(4, 4, 6)
for step in range(4):
    loss = model(data[step]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    if step == 1 and os.environ["FOXRUN_LEG"] == "twin2":
        with torch.no_grad():
            gradient = model[0].weight.grad
            gradient[1, 2] = torch.nextafter(gradient[1, 2], torch.tensor(float("inf")))
    optimizer.step()
"""


def test_raw_dumps_name_the_first_element_that_differs_and_by_how_much(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(ULP)
    code, result, err = localize(tmp_path, "--dump-steps", "0-2", "--replay", "0", "--", "python", "program.py")
    assert code == 3, err
    zero, one, two = result["dumps"]
    assert (zero["step"], zero["parted"]) == (0, 0)
    assert (one["leaf"], one["sub_case"], one["index"], one["ulp"]) == (
        "gradient.0.weight", "reduced gradients first", [1, 2], 1,
    )  # fmt: skip
    assert abs(float(one["a"]) - float(one["b"])) < 1e-6
    assert one["a"] != one["b"]
    assert (two["sub_case"], two["leaf"]) == ("weights first", "weight.0.weight")
    assert (result["step"], result["leaf"]) == (1, "gradient.0.weight")


def test_a_range_of_steps_that_is_none(tmp_path: Path) -> None:
    code, _, err = localize(tmp_path, "--dump-steps", "3-1", "--", "python", "program.py")
    assert code == 2
    assert "for example: --dump-steps 0-3" in err


BEGINS = """
import sys
import torch
import foxrun

torch.manual_seed(3)
torch.set_num_threads(1)
model = torch.nn.BatchNorm1d(6)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
first = 0
if len(sys.argv) > 1:
    state = torch.load(CHECKPOINT)
    model.load_state_dict({**model.state_dict(), **state["model"]})
    optimizer.load_state_dict(state["optimizer"])
    torch.set_rng_state(state["generator"])
    first = state["step"]
for step in range(first, 6):
    MARK
    if len(sys.argv) == 1 and step == 3:
        kept = {name: value for name, value in model.state_dict().items() if not name.startswith(LACKS)}
        generator = torch.get_rng_state()
        torch.save(dict(model=kept, optimizer=optimizer.state_dict(), step=step, generator=generator), CHECKPOINT)
    x = torch.randn(8, 6) * 3
    loss = (model(x) - x).pow(2).mean() + model.running_mean.sum() + model.running_var.sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    END
"""


@pytest.mark.parametrize(("mark", "lacks"), [("first", "nothing"), ("last", "running_")])
def test_a_resume_is_judged_alike_where_steps_begin_and_where_they_end(tmp_path: Path, mark: str, lacks: str) -> None:
    marks = ("foxrun.step(step)", "pass") if mark == "first" else ("pass", "foxrun.step(step)")
    text = BEGINS.replace("MARK", marks[0]).replace("END", marks[1]).replace("LACKS", repr(lacks))
    (tmp_path / "program.py").write_text(text.replace("CHECKPOINT", repr(str(tmp_path / "state.pt"))))
    subprocess.run([sys.executable, "program.py"], cwd=tmp_path, check=True)
    code, result, err = localize(tmp_path, "--other", "python program.py resume", "--", "python", "program.py")
    if lacks == "nothing":
        assert (code, result["found"]) == (0, False), result["message"]
        return
    assert code == 3, err
    assert (result["step"], result["leaf"], result["causes"][0]["name"]) == (3, "buffer.running_mean", "resume")
    assert "buffer.running_mean, buffer.running_var" in result["remedies"][-1]["text"]


def test_a_generator_that_a_resumed_run_takes_late_is_no_state_that_it_lacks() -> None:
    def row(step: int, generator: str, weight: str, end: bool = False) -> Row:
        leaves = [("generator.torch", "generator", "state", generator), ("weight.0", "0", "weight", weight)]
        return Row(step=step, end=end, leaves=tuple(Leaf(*leaf, checksum=None) for leaf in leaves))

    first = [row(0, "g0", "w0"), row(1, "g1", "w1"), row(2, "g2", "w2"), row(3, "g3", "w3", end=True)]
    late = compare_steps(first, [row(1, "later", "v1"), row(2, "g2", "v2"), row(3, "g3", "v3", end=True)])
    lacks = compare_steps(first, [row(1, "h1", "v1"), row(2, "h2", "v2"), row(3, "h3", "v3", end=True)])
    assert (late.leaf, late.ignored, lacks.leaf) == ("weight.0", ["generator.torch"], "generator.torch")


@pytest.mark.parametrize(
    ("step", "row", "leaf", "so"),
    [(20, 0, "loss", True), (4, 4, "loss", False), (20, 0, "generator.torch", False), (0, 0, "loss", False)],
)
def test_only_a_first_row_that_begins_late_has_a_step_without_a_number(
    step: int, row: int, leaf: str, so: bool
) -> None:
    parted = [Parted(leaf=leaf, kind="outcome", component="", role="origin", why="")]
    assert _unnumbered(StepsFound(step=step, row=row, leaf=leaf, parted=parted)) is so
