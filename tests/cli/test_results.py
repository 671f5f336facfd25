"""Where results are written is looked at before the work, and a result that was made is printed all the same."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Place

TWO = ("compare", "a.jsonl", "b.jsonl", "--report")
PROGRAM = "from pathlib import Path\nopen({told!r}, 'a').write('x')\n"


@pytest.fixture
def place(here: Place) -> Place:
    """Two files to compare, and a program that tells when it runs."""
    for name in "ab":
        (here.directory / f"{name}.jsonl").write_text('{"step": 0, "loss": 1.0}\n')
    (here.directory / "program.py").write_text(PROGRAM.format(told=str(here.directory / "ran")))
    (here.directory / "folder").mkdir()
    os.mkfifo(here.directory / "pipe")
    return here


@pytest.mark.parametrize("words", [("localize", "--report"), TWO, ("report", "a.jsonl", "b.jsonl", "--out")])
@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("pipe", "pipe is no regular file"),
        ("program.py/x.html", "program.py/x.html cannot be written: Not a directory"),
        ("/proc/foxrun/x.html", "/proc/foxrun/x.html cannot be written: "),
        ("x" * 300, "cannot be written: File name too long"),
    ],
)
def test_a_place_that_takes_no_file_is_told_before_anything_runs(
    place: Place, words: tuple[str, ...], target: str, said: str
) -> None:
    command = ["--", sys.executable, "program.py"] if words[0] == "localize" else []
    done = place(*words, target, *command)
    assert (done.code, done.out) == (2, "")
    assert said in done.err and len(done.err.splitlines()) == 2
    assert not (place.directory / "ran").exists() and (place.directory / "pipe").is_fifo()


@pytest.mark.parametrize(
    ("target", "said", "remedy"),
    [
        ("folder", "--report folder is a directory", "--report folder/report.html"),
        ("", "--report . is a directory", "--report report.html"),
    ],
)
def test_a_directory_is_no_place_for_a_page(place: Place, target: str, said: str, remedy: str) -> None:
    for words in (("localize",), ("compare", "a.jsonl", "b.jsonl")):
        command = ["--", sys.executable, "program.py"] if words[0] == "localize" else []
        done = place(*words, "--report", target, *command)
        assert (done.code, done.err) == (2, f"error: {said}\n  -> name a file, for example: {remedy}\n")


def test_a_page_that_cannot_be_written_in_the_end_does_not_take_the_result_along(place: Place) -> None:
    # The program itself puts a directory where the page is to be.
    (place.directory / "program.py").write_text(
        f"import os\nos.makedirs({str(place.directory / 'page.html')!r}, exist_ok=True)\n"
    )
    process = place.start("localize", "--trials", "1", "--report", "page.html", "--", "python", "program.py")
    out, err = process.communicate(timeout=100)
    assert process.returncode == 6, err
    assert out.startswith("clean: no difference") and "report:" not in out
    assert "page.html" in err and "Traceback" not in err


def test_folders_of_a_page_are_made_as_every_command_makes_them(place: Place) -> None:
    assert place(*TWO, "new/folder/page.html").code == 0
    assert Path(place.directory / "new" / "folder" / "page.html").is_file()
