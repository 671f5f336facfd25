"""Errors: two lines that say what, where and what to do; the exit code of their kind; never a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Place


@pytest.mark.parametrize(
    ("words", "code", "error", "remedy"),
    [
        (["chek"], 2, "there is no command 'chek'; did you mean 'check'?", "foxrun --help"),
        (["submit", "--seeed", "3"], 2, "no such option '--seeed'. Did you mean '--seed'?", "foxrun submit --help"),
        (["submit", "--seed", "x"], 2, "invalid value for '--seed': 'x' is not a valid integer range", None),
        (["get", "nothing"], 2, "there is no workflow 'nothing'",
         "foxrun list shows all; one of a cluster: the same with --engine argo"),
        (["compare", "a", "b"], 2, "a: there is no such file or directory", "check the path"),
        (["stop"], 2, "name a workflow, or give --all or -l KEY=VALUE", "foxrun stop --help"),
        (["list", "-l", "seed"], 2, "invalid value for -l: 'seed' is no label: write KEY=VALUE", None),
        (["terminate", "x"], 2, "this needs a cluster, and the local engine is selected",
         "add --engine argo, or set engine: argo in foxrun.yaml"),
        (["list", "--engine", "argo", "--kubeconfig=none.yaml"], 2,
         "kubeconfig none.yaml: Invalid kube-config file. No configuration found.",
         "kubectl config get-contexts shows what there is; then --context and --kubeconfig choose"),
        (["check", "--only", "hash"], 2, "the twins cannot differ in 'hash'; did you mean 'hash-seed'?", None),
        (["report", "a", "b", "c"], 2, "a report is of one workflow or of two runs, not of 3", "give one or two"),
    ],
)  # fmt: skip
def test_an_error_says_what_and_what_to_do(
    here: Place, words: list[str], code: int, error: str, remedy: str | None
) -> None:
    done = here(*words)
    first, second = done.err.splitlines()
    assert (done.code, done.out, first) == (code, "", f"error: {error}")
    assert second == f"  -> {remedy}" if remedy else second.startswith("  -> ")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["-p", "envs"], "-p 'envs' is not KEY=VALUE"),
        (["-p", "a=1", "-p", "a=2"], "-p a is given twice, with different values"),
        (["--seed", "1", "-p", "seed=2"], "--seed 1 and -p seed=2 contradict each other"),
        (["-p", "mode=7"], "-p mode: mode cannot be '7': modes are 0 fast, 1 pedantic, 2 control, 3 fast and exact"),
        (["-p", "x={{y}}"], "-p x: a value that contains '{{' cannot be passed: Argo takes it for a template tag"),
        (["-p", "data=trian.py"], "-p data=trian.py: the file is not there; did you mean 'train.py'?"),
        (["--sha", "no-such-branch"], "'no-such-branch' names no commit"),
        (["--sha=-x"], "'-x' is no revision"),
        (["--against", "main"], "--against needs something to compare with"),
        (["--sha", "main", "--worktree"], "--worktree runs the files as they are and --sha a commit: give one of them"),
        (["--parameter-file", "none.yaml"], "none.yaml cannot be read: No such file or directory"),
        (["--trainer", "'train.py"], "the trainer's command \"'train.py\" cannot be read: No closing quotation"),
    ],
)  # fmt: skip
def test_a_submit_that_cannot_be_is_refused_before_anything_runs(repo: Place, words: list[str], error: str) -> None:
    done = repo("submit", *words)
    first, second = done.err.splitlines()
    assert done.code == 2
    assert first.removeprefix("error: ").removeprefix(f"{repo.directory}: ") == error
    assert second.startswith("  -> ")
    assert repo("list", "-o", "name").out == ""


def test_outside_a_repository_a_submit_says_so(here: Place) -> None:
    done = here("submit")
    assert done.code == 2
    assert done.err == f"error: {here.directory}: is in no git repository\n  -> name a git repository\n"


def test_a_bug_is_one_line_and_the_traceback_is_kept(here: Place) -> None:
    code = (
        "import sys, orchestrator.cli.version as version\nfrom orchestrator.cli.main import run\n"
        "def broken(*a, **k): raise RuntimeError('a bug with json://u:secret@h')\n"
        "version.command.callback = broken\nrun(['version'])"
    )
    environ = here.environ(FOXRUN_ALERTS="json://u:secret@h")
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, cwd=here.directory)
    first, second = done.stderr.splitlines()
    assert (done.returncode, first) == (1, "error: foxrun itself failed: RuntimeError: a bug with ***")
    file = Path(second.removeprefix("  -> this is a bug; please report it with "))
    assert file.parent == here.home / "crashes"
    assert "RuntimeError: a bug with ***" in file.read_text() and "secret" not in file.read_text()
    environ["FOXRUN_DEBUG"] = "1"
    debug = subprocess.run(command, capture_output=True, text=True, env=environ, cwd=here.directory)
    assert debug.returncode == 1 and "Traceback" in debug.stderr


def test_a_state_directory_that_cannot_be_made_is_an_infrastructure_error(repo: Place) -> None:
    repo.home.write_text("a file is in the way")
    done = repo("submit", "--detach")
    assert done.code == 6
    assert "Traceback" not in done.err and str(repo.home) in done.err and "  -> " in done.err


def test_a_reader_that_goes_away_ends_it_without_a_word(here: Place) -> None:
    code = (
        "import click, orchestrator.cli.version as version\nfrom orchestrator.cli.main import run\n"
        "def many(**k):\n    for _ in range(100000): click.echo('x')\n"
        "version.command.callback = many\nrun(['version'])"
    )
    line = f'{sys.executable} -c "$0" | head -n 1; echo ${{PIPESTATUS[0]}}'
    done = subprocess.run(["bash", "-c", line, code], capture_output=True, text=True, cwd=here.directory)
    assert (done.stdout, done.stderr) == ("x\n141\n", "")
