"""The copy that each twin runs in, of a directory in which links lead nowhere and others work as well."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from orchestrator.errors import NoPlace
from orchestrator.localize import workcopy

pytestmark = pytest.mark.timeout(300)


def names(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "data.txt").write_text("data")
    return tmp_path / "place"


def started(tmp_path: Path) -> Path:
    time.sleep(0.05)  # a file system's clock ticks every few milliseconds
    (tmp_path / "plan.json").write_text("")
    return tmp_path / "plan.json"


def test_links_that_lead_to_themselves_are_copied_as_they_are(place: Path, tmp_path: Path) -> None:
    (place / "a").symlink_to("b")
    (place / "b").symlink_to("a")
    (place / "to-data").symlink_to("data.txt")
    copied = workcopy.copy(place, tmp_path / "into").directory
    assert [str((copied / name).readlink()) for name in ("a", "b", "to-data")] == ["b", "a", "data.txt"]
    assert workcopy.written(copied, place, since=started(tmp_path)) == {}


def test_what_a_localisation_keeps_is_in_no_copy_and_what_lies_beside_it_is(place: Path, tmp_path: Path) -> None:
    workcopy.mark(place / "kept" / "o1")
    (place / "kept" / "o1" / "trace").write_text("x")
    (place / "kept" / "input.txt").write_text("x")
    copied = workcopy.copy(place, tmp_path / "into").directory
    assert names(copied) == ["data.txt", "kept", "kept/input.txt"]


def test_files_that_come_and_go_meanwhile_are_passed_over(place: Path, tmp_path: Path) -> None:
    over = threading.Event()

    def others_work() -> None:
        while not over.is_set():
            for number in range(30):
                (place / f"t{number}").mkdir()
                (place / f"t{number}" / "log").write_text("x")
            for number in range(30):
                (place / f"t{number}" / "log").unlink()
                (place / f"t{number}").rmdir()

    thread = threading.Thread(target=others_work)
    thread.start()
    try:
        for number in range(100):
            workcopy.measure(place)
            copied = workcopy.copy(place, tmp_path / str(number)).directory
            assert (copied / "data.txt").read_text() == "data"
    finally:
        over.set()
        thread.join()


def test_a_log_that_somebody_else_goes_on_writing_is_no_result_of_the_twin(place: Path, tmp_path: Path) -> None:
    (place / "theirs.log.txt").write_text("1\n")
    (place / "removed.txt").write_text("1\n")
    copied = workcopy.copy(place, tmp_path / "into").directory
    since = started(tmp_path)
    (place / "theirs.log.txt").write_text("1\n2\n")
    (place / "removed.txt").unlink()
    assert workcopy.written(copied, place, since=since) == {}
    os.utime(since, ns=(0, 0))
    (copied / "data.txt").write_text("DATA")
    (copied / "new.txt").write_text("new")
    assert sorted(workcopy.written(copied, place, since=since)) == ["data.txt", "new.txt"]


def test_a_directory_that_is_gone_is_named(place: Path, tmp_path: Path) -> None:
    with pytest.raises(NoPlace, match=r"the working directory .*/nowhere is gone"):
        workcopy.copy(tmp_path / "nowhere", tmp_path / "into")
    command = ["sh", "-c", 'rmdir "$PWD"; exec "$0" -P -m orchestrator localize -- python x.py', sys.executable]
    (tmp_path / "gone").mkdir()
    done = subprocess.run(command, cwd=tmp_path / "gone", text=True, capture_output=True)
    told = f"error: the working directory {tmp_path / 'gone'} is gone\n  -> go to one that is there: cd\n"
    assert (done.returncode, done.stderr) == (2, told)


def test_two_localisations_in_one_directory_do_not_see_each_other(place: Path) -> None:
    (place / "program.py").write_text("import time\ntime.sleep(0.5)\nopen('out.txt', 'w').write('1')\n")
    command = [sys.executable, "-P", "-m", "orchestrator", "localize", "--trials", "1", "-o", "json", "--out"]
    both = [
        subprocess.Popen(
            [*command, name, "--", "python", "program.py"],
            cwd=place, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for name in ("o1", "o2")
    ]  # fmt: skip
    for process in both:
        out, err = process.communicate(timeout=200)
        assert process.returncode == 0, err
        assert json.loads(out)["notes"] == []
    assert [name for name in names(place) if "/root/" in name] == []


@pytest.mark.parametrize(
    ("other", "said"),
    [('"unbalanced', "--other '\"unbalanced' cannot be read: No closing quotation"), (" ", "--other names no command")],
)
def test_another_command_that_is_none_is_bad_usage(place: Path, other: str, said: str) -> None:
    command = [sys.executable, "-P", "-m", "orchestrator", "localize", "--other", other, "--", "python", "program.py"]
    done = subprocess.run(command, cwd=place, text=True, capture_output=True)
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, f"error: {said}")
