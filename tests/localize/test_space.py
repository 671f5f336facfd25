"""A disk on which no space is left: it is named, what was found is told, and nothing stays there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(300)
DRAWS = "import random\nopen('out.txt', 'w').write(repr(random.random()))\n"
FILLS = "open('big', 'wb').write(bytes(20_000_000))\n"
# A file system of its own, that goes with the command; what is left in it comes last on stderr.
MOUNTED = """
mount -t tmpfs -o size=4m none "$TMPDIR" || exit 77
"$@"
code=$?
find "$TMPDIR" -mindepth 1 >&2
exit $code
"""


def localize(tmp_path: Path, source: str, *options: str) -> tuple[int, str, str]:
    (tmp_path / "here").mkdir(exist_ok=True)
    (tmp_path / "small").mkdir()
    (tmp_path / "here" / "program.py").write_text(source)
    command = [sys.executable, "-P", "-m", "orchestrator", "localize", "--replay", "0", "--trials", "1", *options]
    apart = ["unshare", "--map-root-user", "--mount", "sh", "-c", MOUNTED, "sh"]
    environ = {**os.environ, "TMPDIR": str(tmp_path / "small")}
    try:
        done = subprocess.run(
            [*apart, *command, "--", "python", "program.py"],
            cwd=tmp_path / "here", env=environ, text=True, capture_output=True,
        )  # fmt: skip
    except FileNotFoundError:
        pytest.skip("there is no unshare")
    if done.returncode == 77 or done.stderr.startswith("unshare:"):
        pytest.skip("no file system may be mounted here")
    return done.returncode, done.stdout, done.stderr


def from_run(number: int, tmp_path: Path) -> str:
    """The program's first lines: from this run of it on, twins fill their disk."""
    counted = f"path = {str(tmp_path / 'times')!r}\nopen(path, 'a').write('x')\n"
    return f"{counted}if len(open(path).read()) >= {number}:\n    {FILLS}"


def test_a_program_that_fills_the_disk_is_not_said_to_fail(tmp_path: Path) -> None:
    code, out, err = localize(tmp_path, FILLS)
    assert (code, out) == (6, "")
    small = tmp_path / "small"
    assert err.splitlines()[-2:] == [
        f"error: no space is left in {small}, where the twins' copies and traces lie",
        "  -> free some there, or name another place: TMPDIR=DIR foxrun localize, or --out DIR",
    ]


def test_a_copy_that_does_not_fit_leaves_no_half_behind(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "data").write_bytes(bytes(3_000_000))  # one fits, two do not
    kept = tmp_path / "small" / "kept"
    code, _, err = localize(tmp_path, "pass\n", "--out", str(kept))
    assert code == 6
    assert f"error: no space is left in {kept}, where the twins' copies and traces lie" in err
    assert sorted(err.splitlines()[-2:]) == [str(kept), str(kept / ".foxrun-localize")]


def test_what_was_found_before_is_told(tmp_path: Path) -> None:
    code, out, err = localize(tmp_path, DRAWS + from_run(3, tmp_path), "-o", "json")
    assert code == 3, err
    result = json.loads(out)
    assert (result["leaf"], result["operation"]["name"]) == ("out.txt", "random.random")
    assert any(f"no space is left in {tmp_path / 'small'}" in text for text in result["not_looked_at"])
    assert "no space is left" in err.splitlines()[-1]  # and no name of a file that stayed


def test_pairs_that_agreed_before_count(tmp_path: Path) -> None:
    code, out, err = localize(tmp_path, from_run(3, tmp_path))
    assert code == 0, err
    assert "more pairs than 1: no space is left in" in " ".join(out.split())
