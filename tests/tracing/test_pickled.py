"""Tensors that are pickled leave events; Python in the backward pass has lines of its own."""

from __future__ import annotations

from pathlib import Path

from tests.tracing.traced import script, traced

PROGRAM = """
import copy, io, pickle
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

def clipped(gradient):
    return gradient.clamp(-1, 1)

def pack(tensor):
    return tensor.half()

def unpack(tensor):
    return tensor.float()

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def inner(self, x):
        return torch.tanh(self.linear(x))

    def forward(self, x):
        y = checkpoint(self.inner, x, use_reentrant=False)
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            z = y.exp()
        z.register_hook(clipped)
        return z

torch.manual_seed(1)
layer = Layer()
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
layer(torch.ones(2, 4, requires_grad=True)).sum().backward()
optimizer.step()
torch.save(layer.state_dict(), io.BytesIO())
pickle.dumps(layer.linear.bias)
copy.deepcopy(layer)
"""


def test_what_is_pickled_is_read_and_by_whom_it_was_written_is_known(tmp_path: Path) -> None:
    run = traced(tmp_path, script(tmp_path, PROGRAM))
    assert (run.code, run.file("end.json")["troubles"]) == (0, {}), run.stderr
    pickled = [event for event in run.events() if event["name"] == "pickle.Tensor"]
    lines = PROGRAM.splitlines()
    assert [lines[int(e["where"].split(":")[1].split()[0]) - 1].split("(")[0] for e in pickled] == [
        "torch.save", "torch.save", "pickle.dumps",
    ]  # fmt: skip
    assert [e["shapes"] for e in pickled] == ["f32[4,4]->", "f32[4]->", "f32[4]->"]
    writers = {event["i"]: event for event in run.events()}
    for event in pickled:
        assert event["ins"][0][1] == event["outs"][0][1]
        assert writers[event["ins"][0][2]]["phase"] == "optimizer"


def test_a_hook_and_a_recomputation_have_their_own_lines_in_the_backward_pass(tmp_path: Path) -> None:
    run = traced(tmp_path, script(tmp_path, PROGRAM))
    backward = [event for event in run.events() if event["phase"] == "backward" and event["kind"] == "op"]
    lines = {event["name"].split(".")[1]: event["where"].split()[-1] for event in reversed(backward)}
    assert lines["clamp"] == "clipped"
    assert {e["where"].split()[-1] for e in backward if e["shapes"].startswith("f16")} == {"unpack"}
    assert lines["tanh"] == "inner"  # computed again, and not where it is read
    assert lines["tanh_backward"] == "inner"  # torch's own: the line of its forward operation
