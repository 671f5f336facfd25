"""What a program takes from its host is written down with its line; remedies make it equal; children have folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.tracing.traced import Traced, plain, script, traced

REMEDIES = ["hash-seed", "seed-generators", "fixed-clock", "fixed-entropy", "sorted-listings", "ordered-completion"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("files")
    for name in ("c.txt", "a.txt", "b.txt", "d.txt"):
        (made / name).write_text(f"text of {name}")
    return made


@pytest.fixture(scope="module")
def run(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Traced:
    return traced(tmp_path_factory.mktemp("host"), "host.py", str(folder), HOME="/nowhere")


def test_every_host_value_is_an_event_with_its_line(run: Traced, folder: Path) -> None:
    assert (run.code, run.stderr) == (0, "")
    printed = json.loads(run.stdout)
    events = run.events()
    values: dict[str, list[str]] = {}
    for event in events:
        assert event["where"].startswith("host.py:"), event
        values.setdefault(event["name"], []).append(event["value"])
    assert values["time.time"][0] == repr(printed["time"][0])
    assert values["datetime.now"][0] == repr(printed["date"][0])
    assert values["uuid.uuid4"] == [repr(printed["entropy"][1])]
    assert values["os.urandom"][0] == repr(bytes.fromhex(printed["entropy"][0]))
    assert values["os.listdir"] == [repr(printed["listing"][0])]
    assert repr(printed["listing"][1]) in values["os.scandir"]
    assert values["open"] == ["b.txt, 13 bytes"]
    assert values["hash"] == [repr(printed["hash"][0])]
    assert values["as_completed"] == ["1", "0"]
    assert values["os.environ"] == ["'HOME=/nowhere'"]
    assert values["random.Random"] == ["no seed", repr(int(printed["time"][0])), "5"]
    assert {event["kind"] for event in events} == {"host", "seed", "draw"}


def test_children_are_numbered_in_the_order_of_their_start(run: Traced) -> None:
    assert run.processes() == ["0", "0.1", "0.2"]
    assert run.file("header.json", "0.1")["argv"][-1] == "child"
    assert [event["name"] for event in run.events("0.2")] == ["open"]
    assert {name: run.file("end.json", name)["how"] for name in run.processes()} == {
        "0": "end",
        "0.1": "end",
        "0.2": "os._exit",
    }


def test_without_a_plan_the_site_does_nothing(folder: Path) -> None:
    done = plain("host.py", str(folder), "child")
    assert (done.returncode, done.stderr) == (0, "")


def test_remedies_make_equal_what_parted(folder: Path, tmp_path: Path) -> None:
    printed: list[dict[str, Any]] = []
    for number, name in enumerate(("a", "b")):
        run = traced(
            tmp_path / name, "host.py", str(folder), plan={"remedies": REMEDIES}, PYTHONHASHSEED=str(number + 7)
        )
        assert (run.code, run.stderr) == (0, "")
        assert run.file("header.json")["remedies"] == REMEDIES
        printed.append(json.loads(run.stdout))
    assert printed[0] == printed[1]
    assert printed[0]["listing"] == [["a.txt", "b.txt", "c.txt", "d.txt"]] * 3
    assert printed[0]["order"] == [0.2, 0.0]
    assert printed[0]["seeded"] == 0.6229016948897019  # a seed that the program gives stays


def test_a_program_that_fails_fails_as_before(tmp_path: Path) -> None:
    program = script(tmp_path, "print('before')\nraise ValueError('its own')\n")
    run, bare = traced(tmp_path, program), plain(program)
    assert (run.code, run.stdout, run.stderr) == (bare.returncode, bare.stdout, bare.stderr)
    end = run.file("end.json")
    assert (end["how"], end["error"]) == ("exception", "ValueError: its own")


def test_a_plan_that_is_none_is_told_and_ends_nothing(tmp_path: Path) -> None:
    program = script(tmp_path, "print('ran')\n")
    run = traced(tmp_path, program, plan={"level": "everything"})
    assert (run.code, run.stdout) == (0, "ran\n")
    assert "level 'everything'" in run.stderr
    assert "use one of steps, operations" in run.stderr
    run = traced(tmp_path / "again", program, plan={"remedies": ["pray"]})
    assert (run.code, run.stdout) == (0, "ran\n")
    assert "there is no remedy 'pray'" in run.stderr


def test_nothing_is_imported_that_the_program_does_not_import(tmp_path: Path) -> None:
    program = script(
        tmp_path, "import sys\nprint(*(name for name in ('torch', 'numpy', 'random') if name in sys.modules))\n"
    )
    assert traced(tmp_path, program).stdout == "\n"


def test_watched_functions_keep_their_names_pickles_and_kinds(tmp_path: Path) -> None:
    text = """
import datetime, os, pickle, time
assert pickle.loads(pickle.dumps(time.time)) is time.time
assert pickle.loads(pickle.dumps(datetime.datetime(2020, 1, 2))) == datetime.datetime(2020, 1, 2)
assert type(datetime.datetime.now()) is datetime.datetime
assert (time.time.__name__, os.listdir.__doc__[:4]) == ("time", "Retu")
assert os.listdir in os.supports_fd
class Late(datetime.datetime): pass
assert type(Late.now()) is Late
"""
    run = traced(tmp_path, script(tmp_path, text))
    assert (run.code, run.stderr) == (0, "")
