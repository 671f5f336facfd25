"""How a localisation ends when the program, the time or the person does: with what is known, and nothing runs on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from foxrun.tracing.streams import Folder
from orchestrator.localize import bounded
from orchestrator.localize.trace import Process

pytestmark = pytest.mark.timeout(300)
PARTS = "import random\nopen('out.txt', 'w').write(repr(random.random()))\n"


def start(tmp_path: Path, source: str, *options: str) -> subprocess.Popen[str]:
    (tmp_path / "program.py").write_text(source)
    command = [sys.executable, "-P", "-m", "orchestrator", "localize", "--trials", "1", *options]
    environ = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "tmp").mkdir(exist_ok=True)
    return subprocess.Popen(
        [*command, "--", "python", "program.py"],
        cwd=tmp_path, env=environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=240)
    return process.returncode, out, err


def running_in(place: Path) -> list[int]:
    """Processes whose working directory lies below ``place``."""
    found = []
    for process in psutil.process_iter():
        try:
            if Path(process.cwd()).is_relative_to(place):
                found.append(process.pid)
        except (psutil.Error, OSError):
            continue
    return found


def wait_for(file: Path, count: int = 1) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if file.exists() and file.read_text().count("\n") >= count:
            return
        time.sleep(0.05)
    raise AssertionError(f"{file} was never written")


def test_a_program_that_hangs_ends_with_the_deadline_and_leaves_nothing(tmp_path: Path) -> None:
    began = time.monotonic()
    code, _, err = ended(start(tmp_path, "import time\ntime.sleep(3600)\n", "--timeout", "4s"))
    assert code == 6
    assert "the twins did not end within 4 s" in err
    assert time.monotonic() - began < 60
    assert running_in(tmp_path) == []
    assert list((tmp_path / "tmp").iterdir()) == []


def test_pairs_that_agreed_count_when_a_later_one_does_not_end(tmp_path: Path) -> None:
    source = f"path = {str(tmp_path / 'times')!r}\nopen(path, 'a').write('x\\n')\n"
    source += "import time\nif open(path).read().count('x') > 2: time.sleep(3600)\n"
    code, out, err = ended(start(tmp_path, source, "--timeout", "25s"))
    assert code == 0, err
    assert out.startswith("clean: no difference in 1 pair of twins")
    assert "more pairs than 1: the twins did not end within 25 s" in " ".join(out.split())
    assert running_in(tmp_path) == []


def test_when_the_time_is_over_the_place_is_told_and_that_no_remedy_was_tried(tmp_path: Path) -> None:
    # The first pair is quick and parts; the next ones hang.
    source = PARTS + f"path = {str(tmp_path / 'times')!r}\nopen(path, 'a').write('x\\n')\n"
    source += "import time\nif open(path).read().count('x') > 2: time.sleep(3600)\n"
    code, out, err = ended(start(tmp_path, source, "--timeout", "15s", "--replay", "0", "-o", "json"))
    assert code == 3, err
    result = json.loads(out)
    assert (result["found"], result["leaf"]) == (True, "out.txt")
    assert any("the time was over" in text for text in result["not_looked_at"]) or any(
        "the time was over" in remedy["note"] for remedy in result["remedies"]
    )
    assert [remedy for remedy in result["remedies"] if remedy["outcome"] == "verified"] == []
    assert running_in(tmp_path) == []


@pytest.mark.parametrize("sent", [1, 2])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_all_children_and_tells_what_was_found(tmp_path: Path, number: int, sent: int) -> None:
    times = tmp_path / "times"
    source = PARTS + f"import subprocess, time\npath = {str(times)!r}\nopen(path, 'a').write('x\\n')\n"
    source += "if open(path).read().count('x') > 2: subprocess.run(['sleep', '3600'])\n"
    process = start(tmp_path, source, "--replay", "0")
    wait_for(times, 4)
    for _ in range(sent):
        process.send_signal(number)
        time.sleep(0.15)
    code, out, err = ended(process)
    assert code == 3, err
    assert out.startswith("found: the twins part at step 0 in out.txt; origin: random.random at program.py:2")
    assert "interrupted" in out
    assert running_in(tmp_path) == []


@pytest.mark.parametrize("times_pressed", [1, 3])
def test_an_interrupt_before_anything_parted_says_so(tmp_path: Path, times_pressed: int) -> None:
    times = tmp_path / "times"
    process = start(tmp_path, f"import time\nopen({str(times)!r}, 'a').write('x\\n')\ntime.sleep(3600)\n")
    wait_for(times, 2)
    for _ in range(times_pressed):
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)
    code, _, err = ended(process)
    assert code in (130, -signal.SIGINT) if times_pressed > 1 else code == 130
    assert list((tmp_path / "tmp").iterdir()) == []
    if times_pressed > 1:
        return
    assert "interrupted: 0 pairs agreed, and nothing parted so far" in err
    assert "Traceback" not in err
    assert running_in(tmp_path) == []


def test_a_program_that_prints_and_writes_nothing_is_clean_and_says_what_was_seen(tmp_path: Path) -> None:
    code, out, _ = ended(start(tmp_path, "pass\n"))
    assert code == 0
    assert "steps: none were seen" in out


def test_a_program_that_only_one_twin_ends_badly(tmp_path: Path) -> None:
    code, _, err = ended(
        start(tmp_path, "import os\nraise SystemExit(3 if os.environ['FOXRUN_LEG'] == 'twin2' else 0)\n")
    )
    assert code == 5
    assert "twin2 ended with exit code 3" in err


def event(i: int, value: str, kind: str = "op") -> str:
    fields = {
        "i": i,
        "step": 0,
        "kind": kind,
        "name": "time.time" if kind == "host" else "aten.add",
        "ins": [],
        "outs": [["0", value]],
        "where": "t.py:1 f",
    }
    return json.dumps(fields, separators=(",", ":")) + "\n"


def test_long_streams_are_read_in_bounded_memory(tmp_path: Path) -> None:
    sides = []
    for twin in "ab":
        (tmp_path / twin).mkdir()
        with (tmp_path / twin / "events.jsonl").open("w") as stream:
            number = 0
            for i in range(5000):
                if twin == "b" and i % 500 == 0:  # host events shift the numbers and part by themselves
                    stream.write(event(number, "h", "host"))
                    number += 1
                stream.write(event(number, f"{i}" if i != 3000 else f"{i}{twin}"))
                number += 1
        sides.append(Process(tmp_path / twin))
    streams = bounded.read(*sides, before=100, after=50)
    assert (streams.passed, streams.cut) == (2900, True)
    operations = [[e for e in side if e.kind == "op"] for side in (streams.a, streams.b)]
    assert [len(side) for side in operations] == [151, 151]
    assert [side[100].outs[0][1] for side in operations] == ["3000a", "3000b"]
    assert [side[99].outs[0][1] for side in operations] == ["2999", "2999"]
    assert sum(e.kind == "host" for e in streams.b) == 7  # those read on the way


def test_a_stream_of_events_that_would_fill_the_disk_ends_without_a_gap(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "0", most_bytes=100)
    for number in range(60):
        folder.write("events.jsonl", [f"{number:09}"])
        folder.write("steps.jsonl", [f"{number:09}"])
    folder.write("events.jsonl", ["x"])
    folder.close()
    assert (tmp_path / "0" / "events.jsonl").read_text() == "".join(f"{number:09}\n" for number in range(10))
    assert (tmp_path / "0" / "steps.jsonl").stat().st_size == 600
