"""Delays before lines end a race in one way or the other, and change nothing of a program that has none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.tracing.traced import Traced, script, traced

RACE = """
import queue, threading
done = queue.Queue()
box = [0]
def work():
    done.put(None)
    mark = 1
    box[0] = mark
worker = threading.Thread(target=work)
worker.start()
done.get()
seen = 0
print(box[0])
worker.join()
"""

ORDERED = """
import threading
found = [None, None]
def work(i):
    value = i * i
    found[i] = value
workers = [threading.Thread(target=work, args=(i,)) for i in range(2)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
print(found)
"""


def run(folder: Path, text: str, sides: list[str], **more: Any) -> Traced:
    plan = {"level": "steps", "delays": {"sides": sides, "ms": 150, **more}}
    return traced(folder, script(folder, text), plan=plan)


@pytest.mark.parametrize(("sides", "printed"), [(["odd"], "0\n"), (["main", "even"], "1\n")])
def test_who_waits_decides_the_race(tmp_path: Path, sides: list[str], printed: str) -> None:
    done = run(tmp_path, RACE, sides)
    assert (done.code, done.stdout, done.stderr) == (0, printed, "")


def test_one_line_alone_waits(tmp_path: Path) -> None:
    assert run(tmp_path / "after", RACE, ["odd"], lines=["program.py:8"]).stdout == "0\n"
    assert run(tmp_path / "none", RACE, ["main"], lines=["program.py:13"]).stdout == "1\n"


@pytest.mark.parametrize("sides", [["odd"], ["main", "even"]])
def test_a_program_without_a_race_stays_as_it_is(tmp_path: Path, sides: list[str]) -> None:
    done = run(tmp_path, ORDERED, sides)
    assert (done.code, done.stdout, done.file("end.json")["threads"]) == (0, "[0, 1]\n", 2)


def test_a_plan_with_other_delays_is_told(tmp_path: Path) -> None:
    done = traced(tmp_path, script(tmp_path, "print(1)"), plan={"delays": ["main"]})
    assert (done.code, done.stdout) == (0, "1\n") and "delays ['main']" in done.stderr


THREADS = """
import concurrent.futures
import torch
torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(6, 40, 8)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def gradient(part):
    return torch.autograd.grad(model(x[part]).pow(2).mean(), list(model.parameters()))
with concurrent.futures.ThreadPoolExecutor(3) as pool:
    for _ in range(3):
        for p, *parts in zip(model.parameters(), *pool.map(gradient, range(6))):
            p.grad = sum(parts[1:], start=parts[0])
        optimizer.step()
"""


def test_what_threads_compute_is_one_leaf_a_name_however_they_share_the_work(tmp_path: Path) -> None:
    one, other = (run(tmp_path / name, THREADS, [name]) for name in ("odd", "even"))
    assert one.rows() == other.rows()
    names = [leaf[0] for leaf in one.rows()[0]["leaves"]]
    assert [name for name in names if name.startswith("threads.")] == [
        "threads.activation.output", "threads.input", "threads.loss",
    ]  # fmt: skip
    assert [row["step"] for row in one.rows()] == [0, 1, 2, 3]


HANDED = """
import numpy, torch
held = numpy.zeros(4, numpy.float32)
for i in range(2):
    held[:] = i
    torch.from_numpy(held) + 1
    torch.from_numpy(numpy.full(4, i, numpy.float32)) + 1
"""


def test_memory_that_is_handed_over_again_is_told_from_fresh_memory(tmp_path: Path) -> None:
    events = [e for e in traced(tmp_path, script(tmp_path, HANDED)).events() if e["name"] == "aten.lift_fresh.default"]
    assert [event["value"] for event in events] == ["", "", "memory handed over before", ""]


LATE = """
import threading, torch
flag = [0]
def set_up():
    flag[0] = 1
threading.Thread(target=set_up, daemon=True).start()
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
seen = []
for _ in range(6):
    seen.append(flag[0])
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
print(seen)
"""


def test_a_thread_waits_for_steps_and_not_for_a_main_thread_that_waits_for_it(tmp_path: Path) -> None:
    late = run(tmp_path / "late", LATE, ["odd"], steps=2)
    assert (late.code, late.stderr) == (0, "") and late.stdout.startswith("[0, 0, ")
    assert run(tmp_path / "held", ORDERED, ["odd"], steps=2).stdout == "[0, 1]\n"


STREAMS = """
import torch
side = torch.cuda.Stream()
ready = torch.zeros(1 << 22, device="cuda")
given = torch.ones(1 << 22, device="cuda")
total = torch.zeros(1, device="cuda")
torch.cuda.synchronize()
with torch.cuda.stream(side):
    ready.copy_(given)
total += ready.sum()
print(int(total))
"""


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize(("sides", "printed"), [(["default-stream"], "4194304\n"), (["other-streams"], "0\n")])
def test_which_stream_of_a_device_waits_decides_what_is_read(tmp_path: Path, sides: list[str], printed: str) -> None:
    done = run(tmp_path, STREAMS, sides)
    assert (done.code, done.stdout, done.stderr) == (0, printed, "")


@pytest.mark.parametrize("sides", [["default-stream"], ["other-streams"]])
def test_without_a_device_no_stream_waits(tmp_path: Path, sides: list[str]) -> None:
    done = run(tmp_path, "import torch\nprint(int(torch.ones(3).sum()))\n", sides)
    assert (done.code, done.stdout, done.stderr) == (0, "3\n", "")
