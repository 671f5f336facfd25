"""What torch.compile makes of a program runs under the tracer as it does without: compiled, with the same bits."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.tracing.traced import Traced, plain, script, traced

PROGRAM = """
import sys, torch
from torch import nn
backend = sys.argv[1]
torch.manual_seed(1)
torch.set_num_threads(1)

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.drop = nn.Linear(8, 8), nn.Dropout(0.2)

    def forward(self, x):
        return x + self.drop(nn.functional.gelu(self.a(x)))

@torch.compile(backend=backend, fullgraph=True)
def loss_of(out, y):
    return nn.functional.cross_entropy(out, y) + 1e-3 * out.square().mean()

model = nn.Sequential(Block(), torch.compile(Block(), backend=backend, fullgraph=True), nn.Linear(8, 2))
model[0].compile(backend=backend, fullgraph=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
step = torch.compile(lambda: optimizer.step(), backend="eager")
for _ in range(3):
    x, y = torch.randn(16, 8), torch.randint(0, 2, (16,))
    loss = loss_of(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    step()
    print(loss.item().hex(), torch.rand(1).item().hex())
from torch._dynamo.utils import counters
print(counters["stats"]["unique_graphs"])
"""


def same(tmp_path: Path, backend: str, level: str) -> Traced:
    """The program under the tracer, which printed what it prints alone, from graphs of its own."""
    program = script(tmp_path, PROGRAM)
    alone, run = plain(program, backend), traced(tmp_path, program, backend, plan={"level": level})
    assert (alone.returncode, run.code) == (0, 0), run.stderr
    printed, told = alone.stdout.splitlines(), run.stdout.splitlines()
    assert told[:-1] == printed[:-1]
    assert int(told[-1]) >= 3  # graphs were made in the traced program, too
    end = run.file("end.json")
    assert (end["troubles"], end["steps"]) == ({}, 3)
    assert "weight.1.a.weight" in [leaf[0] for leaf in run.rows()[0]["leaves"]]  # no word of torch.compile's wrapper
    return run


@pytest.mark.parametrize("level", ["steps", "operations"])
def test_a_compiled_program_computes_what_it_does_alone(tmp_path: Path, level: str) -> None:
    same(tmp_path, "aot_eager", level)


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile's inductor needs g++")
def test_a_graph_of_inductor_is_one_operation_with_what_it_reads_and_makes(tmp_path: Path) -> None:
    run = same(tmp_path, "inductor", "operations")
    graphs = [event for event in run.events() if event["name"] == "inductor.graph" and event["step"] == 1]
    assert {event["phase"] for event in graphs} == {"other", "forward", "backward"}
    assert all(event["kind"] == "kernel" and event["ins"] and event["outs"] for event in graphs)
    # What the compiler draws, seeds and reads while it makes a graph is its own affair.
    others = [event for event in run.events() if event["kind"] in ("draw", "seed", "host")]
    assert {event["name"].split(".")[0] for event in others} <= {"torch", "aten"}
    loss = next(event for event in graphs if event["phase"] == "other")
    assert loss["where"].startswith("program.py:") and "f32[16,2]" in loss["shapes"]
    made = {event["i"] for event in run.events()}
    forward = next(event for event in graphs if event["phase"] == "forward")
    assert any(source in made for _, _, source in forward["ins"])  # what it reads is known by who made it
