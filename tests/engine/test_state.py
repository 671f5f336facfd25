from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.engines.local.nodes import fnv32a, parse_progress
from orchestrator.engines.local.state import WorkflowDirectory, write_json
from orchestrator.errors import InfrastructureError


def test_a_full_disk_leaves_the_old_state_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "workflow.json"
    write_json(path, {"old": 1})
    (tmp_path / f".workflow.json.{os.getpid()}").symlink_to("/dev/full")
    with pytest.raises(InfrastructureError) as caught:
        write_json(path, {"new": 2})
    assert str(caught.value) == f"cannot write {path}: No space left on device"
    assert caught.value.remedy == "make room or mend the disk, then foxrun retry"
    assert json.loads(path.read_text()) == {"old": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["workflow.json"]


def test_the_lock_is_free_when_its_holder_is_killed(tmp_path: Path) -> None:
    directory = WorkflowDirectory(tmp_path, "job")
    directory.path.mkdir(parents=True)
    program = (
        "import sys, time\nfrom pathlib import Path\nfrom orchestrator.engines.local.state import WorkflowDirectory\n"
        f"lock = WorkflowDirectory(Path({str(tmp_path)!r}), 'job').try_lock()\n"
        "print(lock is not None, flush=True)\ntime.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-P", "-c", program], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        assert directory.is_running()
        assert directory.try_lock() is None
        holder.kill()
        holder.wait()
        assert not directory.is_running()
    with directory.locked() as lock:
        assert lock is not None
        assert directory.is_running()
    assert not directory.is_running()


@pytest.mark.parametrize(("text", "value"), [("", 0x811C9DC5), ("a", 0xE40C292C), ("foobar", 0xBF9CF968)])
def test_node_ids_are_argos(text: str, value: int) -> None:
    """Vectors of FNV-1a: http://www.isthe.com/chongo/tech/comp/fnv/."""
    assert fnv32a(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0/1", (0, 1)),
        ("5/5\n", (5, 5)),
        ("6/5", None),
        ("1/0", None),
        ("1/", None),
        ("a/b", None),
        ("-1/2", None),
        ("", None),
    ],
)
def test_progress(text: str, value: tuple[int, int] | None) -> None:
    assert parse_progress(text) == value
