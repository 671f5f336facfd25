"""What comes from files, trainers and clusters cannot move a cursor, make up a line, or end a command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from foxrun.files import read_regular
from orchestrator.cli import tree
from orchestrator.printable import printable, printable_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain \t é 漢 🦊", "plain \t é 漢 🦊"),
        ("\x1b[2J\x07\x00", r"\x1b[2J\x07\x00"),
        ("a\nFIRST_DIVERGENCE: step=1\r", r"a\nFIRST_DIVERGENCE: step=1\r"),
        ("\x7f\x9b\u2028\u202e\ud800", r"\x7f\x9b\u2028\u202e\ud800"),
    ],
)
def test_what_a_terminal_would_obey_is_shown(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_lines_may_stay_lines() -> None:
    assert printable_lines("one\ntwo\x1b") == "one\ntwo\\x1b"


def test_what_an_event_says_makes_up_no_line() -> None:
    said = {"title": "\x1b[2J", "event": "push", "author": "a\nStatus: Succeeded", "message": "one\r\ntwo"}
    notes = {f"foxrun.dev/{key}": value for key, value in said.items()}
    notes["workflows.argoproj.io/title"] = said["title"]
    rows = list(tree.head({"metadata": {"name": "ci-gate-1", "annotations": notes}, "spec": {}}, None))
    assert ["Title:", r"\x1b[2J"] in rows
    assert ["Event:", r"push by a\nStatus: Succeeded: one\r"] in rows


@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
@pytest.mark.parametrize("key", ["\ud800", "\x1b[2J", "漢🦊"])
def test_any_key_of_a_file_can_be_printed(tmp_path: Path, key: str, locale: str) -> None:
    for name, value in (("a.json", 1), ("b.json", 2)):
        (tmp_path / name).write_text(json.dumps({key: value}))
    coding = {} if locale == "C.UTF-8" else {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "orchestrator",
            "compare",
            "a.json",
            "b.json",
            "--report",
            "r.html",
            "--verdict",
            "v.json",
        ],
        cwd=tmp_path,
        env={**os.environ, "LC_ALL": locale, "LANG": locale, **coding},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (3, b"")
    assert b"\x1b" not in done.stdout
    assert (tmp_path / "r.html").read_bytes().decode()
    assert key in json.loads((tmp_path / "v.json").read_bytes())["message"]


def test_only_regular_files_of_others_are_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    assert read_regular(tmp_path / "file", limit=4) == b"0123"
    assert read_regular(tmp_path / "file", 8, 4) == b"89"
    assert read_regular(tmp_path / "file", -3, 2) == b"78"
    assert read_regular(tmp_path / "file", -30, 2) == b"01"
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "endless").symlink_to("/dev/zero")
    for name in ("fifo", "link", "endless", "."):
        with pytest.raises(OSError, match=r"."):
            read_regular(tmp_path / name)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(("words", "code"), [("config", 0), ("get nothing", 2)])
def test_a_standard_stream_may_be_closed(tmp_path: Path, closed: str, words: str, code: int) -> None:
    command = f"{sys.executable} -m orchestrator {words} {closed}"
    env = {**os.environ, "FOXRUN_HOME": str(tmp_path / "home")}
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert "Traceback" not in done.stdout + done.stderr
    assert not (tmp_path / "home" / "crashes").exists()
