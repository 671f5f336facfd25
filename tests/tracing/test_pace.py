"""Another pace for a program's clocks: measured times differ between twins, and nothing goes back or is missed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.tracing.traced import script, traced

MEASURES = """
import time, timeit
def took():
    started = time.perf_counter_ns()
    time.sleep(0.002)
    return time.perf_counter_ns() - started
found = [took() for _ in range(12)]
print(all(one > 0 for one in found), sum(found) > 24_000_000, found.index(min(found)))
readings = [time.monotonic() for _ in range(200)]
print(readings == sorted(readings))
print(timeit.timeit("pass", number=10) > 0.0)
"""


def run(folder: Path, **plan: Any) -> tuple[int, list[str]]:
    done = traced(folder, script(folder, MEASURES), plan={"level": "steps", **plan})
    assert done.stderr == ""
    return done.code, done.stdout.split()


def test_what_seems_fastest_is_the_pace_s_doing_and_clocks_go_forward(tmp_path: Path) -> None:
    found = {seed: run(tmp_path / str(seed), pace=seed) for seed in (1, 2)}
    assert all(code == 0 and (words[0], *words[3:]) == ("True", "True", "True") for code, words in found.values())
    assert (found[1][1][1], found[2][1][1]) == ("False", "True")  # slow in one twin, fast in the other
    assert found[1][1][2] != found[2][1][2]


def test_a_plan_with_another_pace_is_told(tmp_path: Path) -> None:
    done = traced(tmp_path, script(tmp_path, "print(1)"), plan={"pace": "fast"})
    assert (done.code, done.stdout) == (0, "1\n") and "pace is 'fast'" in done.stderr


THREADS = """
import queue, threading, time
sent, late = queue.Queue(), []
def worker():
    for _ in range(30):
        began = sent.get()
        late.append(time.monotonic() - began)
thread = threading.Thread(target=worker)
thread.start()
for _ in range(30):
    sent.put(time.monotonic())
    time.sleep(0.001)
thread.join()
for _ in range(30):
    began = time.perf_counter()
    late.append(time.perf_counter_ns() / 1e9 - began + 1e-6)
    time.sleep(0.001)
print(min(late) >= 0.0)
"""


def test_threads_and_units_share_a_clock(tmp_path: Path) -> None:
    done = traced(tmp_path, script(tmp_path, THREADS), plan={"level": "steps", "pace": 1})
    assert (done.code, done.stdout, done.stderr) == (0, "True\n", "")
