"""Memory and files that are handed on while somebody still writes them: queues, half-written files, native calls."""

from __future__ import annotations

from pathlib import Path

from tests.tracing.traced import script, traced

QUEUE = """
import multiprocessing, time
import numpy as np
import torch

def produce(queue, again):
    buffer = np.zeros(4, np.float32)
    again.wait()
    for number in range(3):
        buffer[:] = number
        queue.put({"batch": (number, buffer)})
    buffer[:] = 9

if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    queue, again = context.Queue(), context.Event()
    child = context.Process(target=produce, args=(queue, again))
    child.start()
    again.set()
    for _ in range(3):
        queue.get()
    child.join()
    queue.put(torch.ones(2))
    queue.put("no array")
    print(queue.get().sum().item(), queue.get())
"""


def test_an_array_in_a_queue_has_its_bytes_of_both_times(tmp_path: Path) -> None:
    run = traced(tmp_path, script(tmp_path, QUEUE))
    assert (run.code, run.stdout) == (0, "2.0 no array\n")
    puts = [e for e in run.events("0.1") if e["name"] == "multiprocessing.Queue.put"]
    assert [e["where"] for e in puts] == ["program.py:11 produce"] * 3
    assert len({e["ins"][0][1] for e in puts}) == 3  # each time it held other numbers when it was put
    (own,) = (e for e in run.events() if e["name"] == "multiprocessing.Queue.put")
    assert own["ins"][0][1] == own["outs"][0][1] != ""
    assert own["value"] == "['Tensor']"


FILES = """
import multiprocessing, os, time
import numpy as np

def write(path, made, seen):
    mapped = np.lib.format.open_memmap(path, "w+", np.float32, (8,))
    mapped[:] = 1
    made.set()
    seen.wait()

folder = os.environ["FOLDER"]
if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    made, seen = context.Event(), context.Event()
    child = context.Process(target=write, args=(os.path.join(folder, "mapped.npy"), made, seen))
    child.start()
    made.wait()
    np.load(os.path.join(folder, "mapped.npy"))
    seen.set()
    child.join()
    np.load(os.path.join(folder, "mapped.npy"))
    with open(os.path.join(folder, "log.txt"), "w") as log:
        log.write("half")
        open(log.name).read()
    open(log.name).read()
"""


def test_a_file_is_said_to_be_written_while_somebody_of_the_program_has_it_open(tmp_path: Path) -> None:
    run = traced(tmp_path / "run", script(tmp_path, FILES), FOLDER=str(tmp_path))
    assert run.code == 0, run.stderr
    read = [
        e["value"].partition(", ") for e in run.events() if e["name"] == "open" and e["value"][:3] in ("map", "log")
    ]
    assert [(name, "open for writing" in rest) for name, _, rest in read] == [
        ("mapped.npy", True), ("mapped.npy", False), ("log.txt", True), ("log.txt", False),
    ]  # fmt: skip


NATIVE = """
import ctypes
import numpy as np
import torch
copy = ctypes.CDLL(None).memcpy
pointer = np.ctypeslib.ndpointer(np.float32, flags="C")
copy.argtypes = [pointer, pointer, ctypes.c_size_t]
a, b = np.zeros(4, np.float32), np.ones(4, np.float32)
copy(a, b, 16)
print(a.sum())
"""


def test_arrays_that_are_arguments_themselves_are_seen(tmp_path: Path) -> None:
    run = traced(tmp_path, script(tmp_path, NATIVE))
    assert (run.code, run.stdout) == (0, "4.0\n")
    (call,) = (e for e in run.events() if e["kind"] == "kernel")
    assert (call["name"], call["shapes"]) == ("ctypes.memcpy", "f32[4],f32[4]->")
    assert call["ins"][0][1] != call["outs"][0][1] == call["outs"][1][1] == call["ins"][1][1]
