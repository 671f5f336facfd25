"""Native code that Python calls leaves events, and what it writes past its memory is said; so do views of numpy."""

from __future__ import annotations

from pathlib import Path

from tests.tracing.traced import script, traced

PROGRAM = """
import ctypes, os, timeit
import numpy as np
import torch
from numpy.lib.stride_tricks import as_strided

library = ctypes.CDLL(None)
library.labs.restype, library.labs.argtypes = ctypes.c_long, [ctypes.c_void_p]
source, target, other = torch.arange(8.0), torch.zeros(8), torch.zeros(5)
library.memcpy(ctypes.c_void_p(target.data_ptr()), ctypes.c_void_p(source.data_ptr()), ctypes.c_size_t(32))
library.memcpy(ctypes.c_void_p(other.data_ptr()), ctypes.c_void_p(source.data_ptr()), ctypes.c_size_t(24))
library.labs(source.data_ptr())
pool = np.zeros((4, 8), np.float32)
first, third = pool[0], pool[2]
ctypes.memmove(first.ctypes.data, third.ctypes.data, 64)
ctypes.memset(target.data_ptr(), 0, 36)
as_strided(pool[0], shape=(2, 8), strides=(128, 4))
as_strided(pool[0], shape=(2, 8), strides=(4, 4))
list(os.walk(os.environ["FOLDER"]))
os.path.getmtime(os.environ["FOLDER"])
os.path.exists(os.environ["FOLDER"])
timeit.timeit("pass", number=1)
print(target.tolist(), other.tolist())
"""


def test_calls_their_results_and_writes_past_memory(tmp_path: Path) -> None:
    folder = tmp_path / "walked"
    folder.mkdir()
    (folder / "b").touch()
    run = traced(tmp_path, script(tmp_path, PROGRAM), FOLDER=str(folder))
    assert (run.code, run.stderr) == (0, "")
    assert run.file("end.json")["troubles"] == {}
    kernels = [(e["name"], e["value"].partition(":")[0]) for e in run.events() if e["kind"] == "kernel"]
    assert kernels == [
        ("ctypes.memcpy", ""),
        ("ctypes.memcpy", "writes past its memory, surely"),  # 20 bytes in a block of 24
        ("ctypes.labs", ""),
        ("ctypes.memmove", "writes past its view"),
        ("ctypes.memset", "writes past its memory, surely"),
        ("numpy.as_strided", "writes past its memory"),
    ]
    copied = next(e for e in run.events() if e["name"] == "ctypes.memcpy")
    labels = [label for label, *_ in copied["ins"]]
    assert labels == ["0", "1"]
    assert copied["outs"][0][1] == copied["ins"][1][1]  # the target holds what the source does
    assert [label for label, _ in next(e for e in run.events() if e["name"] == "ctypes.labs")["outs"]] == [
        "0",
        "result",
    ]
    hosts = [e["name"] for e in run.events() if e["kind"] == "host" and not e["name"].startswith("aten.")]
    for name in ("os.scandir", "os.path.getmtime", "time.perf_counter", "Tensor.data_ptr", "ndarray.ctypes"):
        assert name in hosts, name
    assert "os.stat" not in hosts  # exists() asks for no time


def test_a_generator_gets_its_seed_by_its_line(tmp_path: Path) -> None:
    text = """
import random, sys
if len(sys.argv) > 1:
    random.Random()
print([random.Random().random() for _ in range(2)], random.Random().random())
"""
    said = []
    for name, words in (("one", ()), ("other", ("more",))):
        run = traced(tmp_path / name, script(tmp_path / name, text), *words, plan={"remedies": ["seed-generators"]})
        assert run.code == 0
        said.append(run.stdout)
    assert said[0] == said[1]
    first, second = said[0].strip("[]\n").split("]")[0].split(", ")
    assert first != second


def test_a_model_that_a_resume_builds_anew_keeps_its_name(tmp_path: Path) -> None:
    text = """
import torch

class Run:
    def __init__(self):
        self.model = torch.nn.Linear(2, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: 1.0)

    def step(self):
        self.model(torch.ones(1, 2)).sum().backward()
        self.optimizer.step()

run = Run()
run.step()
run = Run()
run.step()
"""
    run = traced(tmp_path, script(tmp_path, text), plan={"level": "steps"})
    assert run.code == 0
    names = [[leaf[0] for leaf in row["leaves"] if leaf[0].startswith("weight")] for row in run.rows()[:2]]
    assert names[0] == names[1] == ["weight.weight", "weight.bias"]


UNUSUAL = """
import ctypes, os, threading, warnings
import numpy as np
import torch
warnings.simplefilter("error")
libc = ctypes.CDLL(None)
libc.memcpy.argtypes, libc.memcpy.restype = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t], ctypes.c_void_p
source = torch.arange(16.0)
held = bytearray(64)
buffer = (ctypes.c_char * 64).from_buffer(held)
libc.memcpy(buffer, source.data_ptr(), 64)
del buffer
held.extend(b"more")  # nothing exports it any longer
array = np.arange(4.0)
libc.memcpy(array.ctypes.data, source.data_ptr(), 32)
array.resize(8)
for dtype in (object, "U5", "M8[s]", ">f4", np.longdouble):
    odd = np.zeros(2, dtype)
    libc.memcpy(odd.ctypes.data, odd.ctypes.data, odd.nbytes)
seen = []
class Logged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        seen.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})
logged = torch.zeros(4).as_subclass(Logged)
libc.memcpy(logged.data_ptr(), source.data_ptr(), 16)
assert seen == ["data_ptr"], seen
def inside(row):
    ctypes.memset(ctypes.create_string_buffer(8), 0, 8)
    return row * 2
torch.vmap(inside)(torch.ones(3, 4))
class My(np.ndarray): pass
pool = np.ones((4, 4), np.float32)
ctypes.memset(pool[0].view(My).ctypes.data, 0, 64)
part = np.frombuffer(held, np.float32, count=4)
ctypes.memset(part.ctypes.data, 0, 64)
wide = torch.zeros(1).expand(1000000)
wide.data_ptr()
kept = []
for n in range(50):
    kept.append(torch.ones(1000 + n))
    ctypes.memset(kept[-1].data_ptr(), 0, 4000)
moved = [torch.ones(64 + n) for n in range(30)]
for one in moved:
    one.data_ptr()
    one.data = torch.zeros(2)
for n in range(60):
    kept.append(torch.ones(64 + n))
    ctypes.memset(kept[-1].data_ptr(), 0, 256 + 4 * n)
for _ in range(1000):
    ctypes.memset(ctypes.create_string_buffer(8), 0, 8)  # looked for a few times only
"""


def test_legal_uses_go_on_as_they_are_and_are_no_writes_past_memory(tmp_path: Path) -> None:
    run = traced(tmp_path, script(tmp_path, UNUSUAL))
    assert (run.code, run.stderr) == (0, "")
    assert [e["value"] for e in run.events() if e["kind"] == "kernel" and "surely" in e["value"]] == []
