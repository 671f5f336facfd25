# ruff: noqa: PTH119, PTH123, PTH207, PTH208, SIM115
"""Takes from its host whatever can be taken; without torch. Prints it as JSON."""

import datetime
import glob
import json
import os
import random
import secrets
import subprocess
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor, as_completed


class Clock:
    now = time.time  # a builtin function is no method


def wait(seconds):
    time.sleep(seconds)
    return seconds


folder = sys.argv[1]
own = random.Random()
with ThreadPoolExecutor(2) as pool:
    futures = [pool.submit(wait, seconds) for seconds in (0.2, 0.0)]
    order = [future.result() for future in as_completed(futures)]
taken = {
    "time": [Clock().now(), time.time_ns()],
    "date": [datetime.datetime.now().isoformat(), datetime.datetime.now(datetime.UTC).isoformat()],
    "entropy": [os.urandom(4).hex(), str(uuid.uuid4()), secrets.token_hex(4)],
    "listing": [os.listdir(folder), [entry.name for entry in os.scandir(folder)], next(os.walk(folder))[2]],
    "glob": [os.path.basename(path) for path in glob.glob(f"{folder}/*")],
    "read": open(f"{folder}/b.txt").read(),
    "hash": [hash("a word"), list({"one", "two", "three", "four", "five"})],
    "unseeded": [own.random(), random.random()],
    "time-seeded": random.Random(int(time.time())).random(),
    "seeded": random.Random(5).random(),
    "order": order,
    "pid": os.getpid() > 0,
    "home": os.environ["HOME"],
}
if len(sys.argv) < 3:
    child = subprocess.run([sys.executable, __file__, folder, "child"], capture_output=True, text=True, check=True)
    taken["child"] = json.loads(child.stdout)["seeded"]
    forked = os.fork()
    if forked == 0:
        open(f"{folder}/b.txt").read()
        os._exit(0)
    taken["forked"] = os.waitpid(forked, 0)[1]
print(json.dumps(taken))
