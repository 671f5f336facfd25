"""foxrun compare against cmp on an identical pair of 25,000 rows x 711 leaves, whole processes, alternating.

Prints the ratio (start-up aside, by a tiny pair), the peak of memory, and the ratio of --verify; SPEC section 8 asks
for at most 1.0, 100 MB and 2.5. Never an absolute time.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.synthetic import write_run

ROWS = 25_000
LEAVES = 711
ROUNDS = 9
MEMORY_LIMIT_MB = 100
CMP_LIMIT = 1.0
VERIFY_LIMIT = 2.5
_COMPARED = ("bits.u64", "diag.jsonl", "leaves.json", "eval_summary.json")


def run(command: Sequence[str]) -> tuple[float, float]:
    """(seconds, peak resident memory in MB) of a process that must exit 0."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    code = os.waitstatus_to_exitcode(status)
    process.returncode = code
    assert process.stderr is not None
    said = process.stderr.read().decode(errors="replace")
    process.stderr.close()
    if code != 0:
        raise SystemExit(f"{' '.join(command)} exited {code}:\n{said}")
    return seconds, usage.ru_maxrss / 1024


def median(command: Sequence[Sequence[str]], rounds: int) -> list[tuple[float, float]]:
    """For each command the median of seconds and the largest peak, run in turn `rounds` times after one to warm up."""
    seconds: list[list[float]] = [[] for _ in command]
    peaks = [0.0] * len(command)
    for turn in range(rounds + 1):
        for i, one in enumerate(command):
            spent, peak = run(one)
            if turn:
                seconds[i].append(spent)
            peaks[i] = max(peaks[i], peak)
    return [(statistics.median(spent), peak) for spent, peak in zip(seconds, peaks, strict=True)]


def main() -> int:
    """Measure and print; 1 when a limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--leaves", type=int, default=LEAVES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="foxrun-bench-") as name:
        folder = Path(name)
        big_a = write_run(folder / "a", rows=arguments.rows, leaves=arguments.leaves)
        big_b = copied(big_a, folder / "b" / "copy")
        tiny_a = write_run(folder / "tiny-a", rows=4, leaves=arguments.leaves)
        tiny_b = copied(tiny_a, folder / "tiny-b" / "copy")
        size = sum((big_a / file).stat().st_size for file in _COMPARED)
        foxrun = [sys.executable, "-m", "orchestrator", "compare"]
        pairs = "; ".join(f"cmp '{big_a / file}' '{big_b / file}'" for file in _COMPARED)
        tiny_pairs = "; ".join(f"cmp '{tiny_a / file}' '{tiny_b / file}'" for file in _COMPARED)
        commands = [
            ["sh", "-ec", pairs],
            ["sh", "-ec", tiny_pairs],
            [*foxrun, str(big_a), str(big_b)],
            [*foxrun, str(tiny_a), str(tiny_b)],
            [*foxrun, "--verify", str(big_a), str(big_b)],
            [*foxrun, "--verify", str(tiny_a), str(tiny_b)],
        ]
        results = median(commands, arguments.rounds)
    cmp_s = results[0][0] - results[1][0]
    compare_s = results[2][0] - results[3][0]
    verify_s = results[4][0] - results[5][0]
    peak = max(results[2][1], results[4][1])
    print(f"{platform.machine()}, {processor()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}")
    print(f"Python {platform.python_version()}, {first_line(['cmp', '--version'])}")
    print(f"identical pair of {arguments.rows:,} rows x {arguments.leaves} leaves, {size / 1e6:.0f} MB each; "
          f"medians of {arguments.rounds} rounds, start-up subtracted")  # fmt: skip
    rows = [
        ("foxrun compare / cmp", compare_s / cmp_s, CMP_LIMIT, ""),
        ("foxrun compare --verify / cmp", verify_s / cmp_s, VERIFY_LIMIT, ""),
        ("peak memory", peak, MEMORY_LIMIT_MB, " MB"),
    ]
    for label, value, limit, unit in rows:
        print(f"  {label:32} {value:7.2f}{unit}  (at most {limit}{unit}: {'met' if value <= limit else 'MISSED'})")
    print(f"  start-up of foxrun compare is {results[3][0] / cmp_s:.2f} of the time of cmp")
    return int(any(value > limit for _, value, limit, _ in rows))


def copied(run_directory: Path, target: Path) -> Path:
    """A second run with the same bytes."""
    shutil.copytree(run_directory, target)
    return target


def processor() -> str:
    """The model name of the CPU, where Linux tells."""
    info = Path("/proc/cpuinfo")
    for line in info.read_text().splitlines() if info.exists() else []:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"


def first_line(command: Sequence[str]) -> str:
    """The first line that a program prints."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]


if __name__ == "__main__":
    raise SystemExit(main())
