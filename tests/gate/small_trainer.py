"""A trainer of a few milliseconds that writes the run contract, exact unless it is told to take a value from elsewhere.

-p source=NAME[@LEG] adds a value that must not matter to a weight at step 2; -p end=NAME[@LEG] ends it in another way.
"""

import argparse
import ctypes
import json
import os
import struct
import sys
import time
from array import array
from pathlib import Path

from foxrun import Leaf, RunWriter, fingerprint, git


def listing(order):
    folder = Path(os.environ["SMALL_TRAINER_FOLDER"])
    return float(next(iter(order(folder))))


def fresh_memory():
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    return float(ctypes.string_at(libc.malloc(64), 64)[40])


def scanned(folder):
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


SOURCES = {
    "none": lambda out: 0.0,
    "urandom": lambda out: float(int.from_bytes(os.urandom(4), "little")),
    "hash-seed": lambda out: float(hash("a text") % 1_000_003),
    "clock": lambda out: float(int(time.time())),
    "listing-order": lambda out: listing(os.listdir),
    "scandir": lambda out: listing(scanned),
    "iterdir": lambda out: listing(lambda folder: [path.name for path in folder.iterdir()]),
    "glob": lambda out: listing(lambda folder: [path.name for path in folder.glob("*")]),
    "walk": lambda out: listing(lambda folder: next(os.walk(folder))[2]),
    "environment-order": lambda out: float(list(os.environ).index("SMALL_TRAINER_FOLDER")),
    "directories": lambda out: float(len(os.environ.get("XDG_CACHE_HOME", ""))),
    "memory": lambda out: fresh_memory(),
    "poison": lambda out: float(os.environ["FOXRUN_POISON"]),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--parameters", type=json.loads, default={})
    parser.add_argument("--data", type=Path)
    for name, default in (("seed", 1), ("mode", 1), ("steps", 5), ("eval-steps", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    source, _, leg = options.parameters.get("source", "none").partition("@")
    if leg and leg != os.environ.get("FOXRUN_LEG"):
        source = "none"
    end, _, leg = options.parameters.get("end", "").partition("@")
    if leg and leg != os.environ.get("FOXRUN_LEG"):
        end = ""
    print(f"small trainer, leg {os.environ.get('FOXRUN_LEG')}")
    config = {key: value for key, value in options.parameters.items() if key != "end"}
    manifest = {
        "code": {"tree_run": git.tree_hash(Path.cwd()), "commit_asked": os.environ.get("FOXRUN_SHA", "")},
        "seed": options.seed,
        "mode": options.mode,
        "config": {**config, "steps": options.steps},
    }
    if end == "nothing":
        return
    leaves = [Leaf("w", "model", "weight", "float64", (1,)), Leaf("w_grad", "model", "gradient", "float64", (1,))]
    with RunWriter(options.out, leaves=leaves, manifest=manifest) as run:
        weight = float(options.seed)
        for step in range(options.steps + 1):
            if progress := os.environ.get("ARGO_PROGRESS_FILE"):
                Path(progress).write_text(f"{step}/{options.steps}\n")
            if step == 1 and end not in ("", "no-summary"):
                finish(end)
            if step == 2:
                weight += SOURCES[source](options.out)
            gradient = 0.1 * weight + 1.0
            bits = struct.pack("<2Q", fingerprint(array("d", [weight])), fingerprint(array("d", [gradient])))
            row = {"step": step, "phase": "train", "checksums": {"w": weight, "w_grad": gradient}, "metrics": {}}
            run.append([row], bits)
            weight -= 0.1 * gradient
            time.sleep(float(options.parameters.get("step_s", "0")))
        if end != "no-summary":
            run.write_summary({"total_pnl_usd": weight})


def finish(end):
    if end == "hang":
        time.sleep(3600)
    if end == "message":
        Path(os.environ["FOXRUN_TERMINATION_LOG"]).write_text("the learning rate is negative")
    if end == "killed":
        os.kill(os.getpid(), 9)
    print("a last word", flush=True)
    sys.stdout.flush()
    os._exit(int(end) if end.isdigit() else 1)


if __name__ == "__main__":
    main()
