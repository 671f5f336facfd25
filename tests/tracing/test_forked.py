"""A forked child of a traced program goes on: its parent's OpenMP threads are not there to wait for."""

from __future__ import annotations

from pathlib import Path

from tests.tracing.traced import script, traced

FORKS = """
import ctypes, os
import numpy as np
import torch
libc = ctypes.CDLL(None)
a, t, large = np.arange(8, dtype=np.float32), torch.zeros(8), torch.arange(400000.0)
def copied():
    libc.memcpy(ctypes.c_void_p(t.data_ptr()), ctypes.c_void_p(a.ctypes.data), ctypes.c_size_t(32))
copied()
print((large * 2).sum().item())
child = os.fork()
if child == 0:
    ctypes.memset(t.data_ptr(), 0, 32)
    copied()
    os._exit(int(t.sum()) % 7)
print(os.waitpid(child, 0)[1] >> 8, torch.get_num_threads())
"""


def test_a_forked_child_ends_and_threads_stay_as_they_were(tmp_path: Path) -> None:
    run = traced(tmp_path, script(tmp_path, FORKS), OMP_NUM_THREADS="2")
    assert (run.code, run.stderr) == (0, "")
    assert run.stdout == "159999590400.0\n0 2\n"
