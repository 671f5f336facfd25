"""What a shell completes: in a real bash, with a tab, and what the scripts of the other shells ask."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Place

DEADLINE_S = 120.0


def offered(place: Place, words: str, shell: str = "bash") -> list[str]:
    """What foxrun answers the script of a shell for a line that ends in its last word."""
    parts = words.split(" ")
    variables = {"COMP_WORDS": words, "COMP_CWORD": str(len(parts) - 1), "_FOXRUN_COMPLETE": f"{shell}_complete"}
    if shell == "fish":
        variables["COMP_CWORD"] = parts[-1]
    process = place.start(**variables)
    out, err = process.communicate()
    assert err == ""
    return [line for line in out.splitlines() if line]


@pytest.fixture
def two(repo: Place) -> Place:
    for name in ("pair-one", "pair-two"):
        assert repo("submit", "--worktree", "--no-gate", "--name", name).code == 0
    return repo


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_a_tab_in_bash_completes_commands_and_names_of_workflows(two: Place, tmp_path: Path) -> None:
    tool = tmp_path / "bin" / "foxrun"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m orchestrator "$@"\n')
    tool.chmod(0o755)
    ours, theirs = pty.openpty()
    environ = two.environ(PATH=f"{tool.parent}:{os.environ['PATH']}", PS1="ready> ", TERM="dumb")
    with subprocess.Popen(
        ["bash", "--norc", "--noprofile", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, cwd=two.directory,
        env=environ, start_new_session=True,
    ) as bash:  # fmt: skip
        os.close(theirs)
        try:
            said = until(ours, "", "ready> ")
            os.write(ours, b'eval "$(foxrun completion bash)"; echo it is $((6 * 7))\n')
            said = until(ours, said, "it is 42")
            os.write(ours, b"foxrun wat\t")
            said = until(ours, said, "foxrun watch ")
            os.write(ours, b"pair-t\t")
            said = until(ours, said, "foxrun watch pair-two ")
        finally:
            bash.kill()
            os.close(ours)


def until(terminal: int, said: str, expected: str) -> str:
    """Read what the terminal shows until it shows what is expected."""
    give_up_at = time.monotonic() + DEADLINE_S
    while expected not in said:
        assert time.monotonic() < give_up_at, said
        if select.select([terminal], [], [], 1.0)[0]:
            said += os.read(terminal, 65536).decode(errors="replace")
    return said


def test_names_come_with_what_they_came_to_and_none_twice(two: Place) -> None:
    two("submit", "--regression-pair", "--worktree", "--no-gate", "--name", "other")
    assert offered(two, "foxrun get pair-") == ["plain,pair-two", "plain,pair-one"]
    assert offered(two, "foxrun delete pair-two pair-") == ["plain,pair-one"]
    assert offered(two, "foxrun get oth", "fish") == ["plain,other\tidentical"]
    assert offered(two, "foxrun report ./tr") == ["file,./tr"]


def test_options_and_commands(here: Place) -> None:
    assert offered(here, "foxrun rep") == ["plain,report"]
    assert offered(here, "foxrun --kube") == ["plain,--kubeconfig"]
    assert offered(here, "foxrun submit --tie") == ["plain,--tie-break"]
    assert offered(here, "foxrun completion f") == ["plain,fish"]


def test_a_cluster_that_does_not_answer_completes_nothing(here: Place) -> None:
    (here.directory / "foxrun.yaml").write_text("engine: argo\nargo_server: http://127.0.0.1:1\n")
    assert offered(here, "foxrun get pa") == []


@pytest.mark.parametrize(
    ("shell", "says"), [("bash", "complete -o nosort -F"), ("zsh", "compdef"), ("fish", "complete ")]
)
def test_the_script_of_each_shell(here: Place, shell: str, says: str) -> None:
    done = here("completion", shell)
    assert done.code == 0
    assert says in done.out
    assert f"_FOXRUN_COMPLETE={shell}_complete" in done.out
    if shutil.which(shell):
        checked = subprocess.run([shell, "-n"], input=done.out, text=True, capture_output=True)
        assert (checked.returncode, checked.stderr) == (0, "")
