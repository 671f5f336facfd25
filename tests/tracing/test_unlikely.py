"""Programs that do unlikely things compute the same under the tracer, print the same, and lose no row."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tracing.traced import plain, script, traced

TRAIN = """
import torch
torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh())
optimizer = torch.optim.SGD(model.parameters(), 0.1)
def train():
    loss = model(torch.randn(2, 3)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
"""

PROGRAMS = {
    "a tangent without memory": """
import torch.autograd.forward_ad as forward
for _ in range(3):
    train()
    with forward.dual_level():
        dual = forward.make_dual(torch.randn(3, 3), torch.randn(3, 3))
        print(forward.unpack_dual(model(dual)).tangent.sum().item().hex())
""",
    "a hessian": """
for _ in range(3):
    train()
    print(torch.func.hessian(lambda x: (x ** 3).sum())(torch.randn(3)).sum().item().hex())
    weights = {name: weight.detach() for name, weight in model.named_parameters()}
    gradient = torch.func.grad(lambda w: torch.func.functional_call(model, w, torch.ones(2, 3)).sum())(weights)
    print(sum(one.sum().item() for one in gradient.values()).hex())
""",
    "weights kept elsewhere": """
for _ in range(3):
    train()
    kept = [one.detach().clone() for one in model.parameters()]
    for one in model.parameters():
        one.data.untyped_storage().resize_(0)
    optimizer.zero_grad()
    for one, copy in zip(model.parameters(), kept):
        one.data.untyped_storage().resize_(4 * copy.numel())
        one.data.copy_(copy)
for one in model.parameters():
    one.data.untyped_storage().resize_(0)
""",
    "a wrapper of a tensor": """
from torch.utils._pytree import tree_map
class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
    def __init__(self, inner):
        self.inner = inner
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        bare = lambda x: x.inner if isinstance(x, Wrapper) else x
        result = func(*tree_map(bare, args), **tree_map(bare, kwargs or {}))
        return tree_map(lambda x: Wrapper(x) if isinstance(x, torch.Tensor) else x, result)
held = torch.nn.Linear(3, 3)
held.weight = torch.nn.Parameter(Wrapper(torch.randn(3, 3)))
other = torch.optim.SGD(held.parameters(), 0.1)
for _ in range(3):
    train()
    other.zero_grad()
    held(Wrapper(torch.randn(3, 3))).square().sum().backward()
    other.step()
    print(held.weight.data.inner.sum().item().hex())
""",
    "sparse tensors": """
embedding = torch.nn.Embedding(10, 3, sparse=True)
rows, few = torch.randn(3, 3).relu().to_sparse(), torch.randn(3, 3).to_sparse_csr()
other = torch.optim.SparseAdam(list(embedding.parameters()))
for _ in range(3):
    train()
    loss = (torch.sparse.mm(rows, embedding(torch.tensor([1, 2, 3]))) + few @ embedding.weight[:3].detach()).sum()
    other.zero_grad()
    loss.backward()
    other.step()
    print(embedding.weight.sum().item().hex())
""",
    "a mode that counts calls": """
from torch.overrides import TorchFunctionMode
class Count(TorchFunctionMode):
    calls = 0
    def __torch_function__(self, func, types, args=(), kwargs=None):
        Count.calls += 1
        return func(*args, **(kwargs or {}))
for _ in range(3):
    with Count():
        train()
    print(Count.calls)
""",
    "no descriptor left": """
import resource
for _ in range(2):
    train()
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
held = []
try:
    while True:
        held.append(open(__file__))
except OSError:
    print("no more files")
held.clear()
train()
""",
    "a handler of a signal that raises": """
import signal
class Late(Exception):
    pass
def alarm(*_):
    raise Late
signal.signal(signal.SIGALRM, alarm)
for _ in range(3):
    train()
signal.setitimer(signal.ITIMER_REAL, 0.3, 1.0)  # again: Python itself drops what is raised in a destructor
try:
    while True:
        model(torch.ones(2, 3))
except Late:
    signal.setitimer(signal.ITIMER_REAL, 0)
    print("time is over")
""",
}


@pytest.mark.parametrize("level", ["steps", "operations"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_it_ends_as_it_does_without_the_tracer(tmp_path: Path, name: str, level: str) -> None:
    program = script(tmp_path, TRAIN + PROGRAMS[name])
    known = plain(program)
    run = traced(tmp_path / "run", program, plan={"level": level})
    assert (known.returncode, run.code) == (0, 0), run.stderr
    assert run.stdout == known.stdout
    assert run.file("end.json")["troubles"] == {}
    assert len(run.rows()) >= 3


def test_a_stream_that_the_program_closed_goes_on_in_its_own_file(tmp_path: Path) -> None:
    files = """
import os
train()
os.closerange(3, 256)
held = [open(os.path.join(os.environ["FOLDER"], f"{n}.txt"), "w") for n in range(8)]
for _ in range(5):
    train()
for one in held:
    one.write("mine")
    one.close()
"""
    run = traced(tmp_path / "run", script(tmp_path, TRAIN + files), FOLDER=str(tmp_path))
    assert (run.code, len(run.rows())) == (0, 7)  # six steps, and what is left at the end
    assert [(tmp_path / f"{n}.txt").read_text() for n in range(8)] == ["mine"] * 8
    assert [event["i"] for event in run.events()] == list(range(len(run.events())))


def test_what_torch_cond_runs_is_seen(tmp_path: Path) -> None:
    cond = """
for _ in range(2):
    x = torch.rand(2)
    y = torch.cond(x.sum() > 0, lambda x: x.sinh(), lambda x: x.cosh(), (x,))
    print(y.sum().item().hex())
    train()
"""
    program = script(tmp_path, TRAIN + cond)
    run = traced(tmp_path / "run", program)
    assert (run.code, run.stdout) == (0, plain(program).stdout)
    assert [event["name"] for event in run.events() if "sinh" in event["name"]] == ["aten.sinh.default"] * 2
