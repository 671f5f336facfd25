"""1,000 random single changes in compared files, all to be found, and 1,000 clean pairs, none to raise an alarm.

Half of the changes are sealed by a manifest that agrees with them (a run that really parted: drift), half are not (a
file damaged later: incomplete). Each change is drawn from its own printed seed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.mutations import DIAG, INCOMPLETE, LEAVES, SUMMARY, WATCHED, Base, random_change, watched_array
from benchmarks.synthetic import manifest_of, reseal
from foxrun import Leaf, RunWriter, fingerprint, jsonio
from foxrun.schema import MANIFEST
from orchestrator.comparison import compare

ROWS, LEAVES_COUNT = 24, 20


def small_run(out: Path) -> Path:
    """A run with every kind of value that a change may touch: zeros, NaN, integers, booleans, a dump."""
    rng = random.Random(2024)
    leaves = [Leaf(f"encoder.{i}", "encoder", "activation", "float32", (24,)) for i in range(LEAVES_COUNT - 1)]
    leaves.append(Leaf(WATCHED, "controllers", "state", "float32", (24,)))
    writer = RunWriter(out, leaves=leaves, manifest=manifest_of(43))
    for step in range(ROWS):
        words = [rng.randrange(1, 2**64) for _ in leaves[:-1]] + [fingerprint(bytes(watched_array(step)), 4)]
        metrics = {"loss": rng.gauss(0, 1), "drawdown": 0.0, "trades": step, "gap": math.nan, "open": step % 2 == 0}
        row = {
            "step": step,
            "phase": "train" if step < ROWS - 4 else "eval",
            "checksums": {leaf.name: rng.gauss(0, 9) for leaf in leaves[::3]},
            "metrics": metrics,
        }
        writer.append([row], b"".join(word.to_bytes(8, "little") for word in words))
    writer.timing({"step": 0, "seconds": 0.5})
    writer.attach("dumps/step-3/reward.bin", bytes(range(64)), compared=True)
    writer.write_summary({"total_pnl_usd": 1234.5, "fees_usd": 0.0, "trades": 17, "sharpe": math.nan, "ok": True})
    writer.finish()
    return writer.path


def trained_run(out: Path) -> Path | None:
    """A run of the trainer itself, or None with the reason printed."""
    command = [sys.executable, "-m", "trainer", "--out", str(out), "--seed", "43", "--mode", "1"]
    command += ["--steps", "6", "--eval-steps", "3", "-p", "envs=8", "-p", "window=8", "-p", "width=16"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"without a run of the trainer: {error}")
        return None
    found = sorted(out.glob(f"*/{MANIFEST}")) if out.exists() else []
    if done.returncode or not found:
        print(f"without a run of the trainer: it exited {done.returncode}: {done.stderr.strip()[-300:]}")
        return None
    return found[0].parent


def load(name: str, run_directory: Path) -> Base:
    """The files of a run, in memory."""
    files = {
        str(path.relative_to(run_directory)): path.read_bytes()
        for path in sorted(run_directory.rglob("*"))
        if path.is_file() and path.name != MANIFEST and path.name != "timing.jsonl"
    }
    leaves = [leaf["name"] for leaf in json.loads(files[LEAVES])["leaves"]]
    return Base(name, files, leaves)


class Pair:
    """A run and a copy of it that is changed and restored."""

    def __init__(self, name: str, run_directory: Path) -> None:
        self.a = run_directory
        self.b = run_directory.with_name(f"{run_directory.name}-copy")
        shutil.copytree(self.a, self.b)
        self.base = load(name, self.a)
        self._manifests = {side / MANIFEST: (side / MANIFEST).read_bytes() for side in (self.a, self.b)}

    def restore(self) -> None:
        """Make both as they were."""
        for name, content in self.base.files.items():
            path = self.b / name
            if not path.exists() or path.read_bytes() != content:
                path.write_bytes(content)
        for path, content in self._manifests.items():
            path.write_bytes(content)


def changed_pairs(pairs: list[Pair], count: int, seed: int) -> tuple[int, Counter[str]]:
    """(changes found, how they were found); prints each that was not."""
    found, how = 0, Counter[str]()
    for i in range(count):
        rng = random.Random(f"{seed}:{i}")
        pair = pairs[i % len(pairs)]
        change = random_change(pair.base, rng)
        sealed = i // len(pairs) % 2 == 0
        for name, content in change.files.items():
            if content is None:
                (pair.b / name).unlink()
            else:
                (pair.b / name).write_bytes(content)
        if sealed:
            reseal(pair.b, rows=change.rows)
        verdict = compare(pair.a, pair.b)
        expected = change.expected if sealed else (INCOMPLETE,)
        if verdict.exit_code in expected:
            found += 1
            how[f"{verdict.verdict}, {'sealed' if sealed else 'not sealed'}"] += 1
        else:
            print(f"MISSED {seed}:{i} on the {pair.base.name} run, {change.what}: {verdict.verdict}, {verdict.message}")
        pair.restore()
    return found, how


def _untouched(pair: Pair, rng: random.Random) -> None:
    return


def _other_order(pair: Pair, rng: random.Random) -> None:
    """Keys in another order, blanks, and other line ends say nothing about the bits."""
    rows = [jsonio.loads(line) for line in pair.base.files[DIAG].splitlines()]
    end = rng.choice(("\n", "\r\n"))
    texts = []
    for row in rows:
        keys = list(row)
        rng.shuffle(keys)
        texts.append(json.dumps(json.loads(jsonio.dumps({key: row[key] for key in keys})), indent=None) + end)
    (pair.b / DIAG).write_text("".join(texts), newline="")
    summary = jsonio.loads(pair.base.files[SUMMARY])
    keys = sorted(summary, key=lambda _: rng.random())
    (pair.b / SUMMARY).write_text(jsonio.dumps({key: summary[key] for key in keys}))
    reseal(pair.b)


def _other_place(pair: Pair, rng: random.Random) -> None:
    """Another host, card, time and run id."""
    manifest = jsonio.loads((pair.b / MANIFEST).read_bytes())
    manifest["run_id"] = f"{rng.getrandbits(64):016x}"
    manifest["environment"]["gpu_uuid"] = f"GPU-{rng.getrandbits(32):08x}"
    manifest["environment"]["hostname"] = f"node-{rng.randrange(100)}"
    manifest["variables"]["PYTHONHASHSEED"] = str(rng.randrange(1000))
    manifest["times"] = {"started": f"2024-01-{rng.randrange(1, 28):02d}T00:00:00Z", "finished": ""}
    (pair.b / MANIFEST).write_text(jsonio.pretty(manifest))


def _without_manifests(pair: Pair, rng: random.Random) -> None:
    """Both as a trainer leaves them that writes none; one alone without its manifest would be incomplete."""
    (pair.a / MANIFEST).unlink()
    (pair.b / MANIFEST).unlink()


CLEAN: tuple[Callable[[Pair, random.Random], None], ...] = (_untouched, _other_order, _other_place, _without_manifests)


def clean_pairs(pairs: list[Pair], count: int, seed: int) -> int:
    """How many of the clean pairs raised an alarm; prints each that did."""
    alarms = 0
    for i in range(count):
        rng = random.Random(f"{seed}:clean:{i}")
        pair = pairs[i % len(pairs)]
        make = rng.choice(CLEAN)
        make(pair, rng)
        verdict = compare(pair.a, pair.b)
        if verdict.verdict != "identical" or verdict.exit_code != 0:
            alarms += 1
            print(f"ALARM {seed}:clean:{i} on the {pair.base.name} run, {make.__name__}: {verdict.message}")
        pair.restore()
    return alarms


def measure(folder: Path, *, count: int, seed: int, trainer: bool) -> dict[str, Any]:
    """Both counts over runs made in `folder`."""
    runs = [("synthetic", small_run(folder / "small"))]
    trained = trained_run(folder / "trained") if trainer else None
    if trained is not None:
        runs.append(("trainer's", trained))
    pairs = [Pair(name, path) for name, path in runs]
    found, how = changed_pairs(pairs, count, seed)
    return {"found": found, "how": how, "alarms": clean_pairs(pairs, count, seed), "runs": [name for name, _ in runs]}


def main() -> int:
    """Run both and print both counts; 1 unless every change was found and no clean pair raised an alarm."""
    parser = argparse.ArgumentParser(description="single changes found, clean pairs quiet")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    parser.add_argument("--no-trainer", action="store_true", help="only the synthetic run")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed} (again: python -m benchmarks.sensitivity --seed {arguments.seed})")
    with tempfile.TemporaryDirectory(prefix="foxrun-sensitivity-") as name:
        result = measure(Path(name), count=arguments.count, seed=arguments.seed, trainer=not arguments.no_trainer)
    print(f"runs: {', '.join(result['runs'])}")
    for way, times in sorted(result["how"].items()):
        print(f"  {way}: {times}")
    print(f"single changes found: {result['found']:,} of {arguments.count:,}")
    print(f"alarms on clean pairs: {result['alarms']:,} of {arguments.count:,}")
    return int(result["found"] != arguments.count or result["alarms"] != 0)


if __name__ == "__main__":
    raise SystemExit(main())
