"""The git hook, by real commits: what it looks at, what it runs, what it refuses, and that it costs nothing else."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Place

BREAKS = "SOURCES[source](options.out)"
UNSEEDED = 'SOURCES["urandom"](options.out)'


def commit(
    repo: Place, *words: str, directory: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *words],
        cwd=directory or repo.directory, env=repo.environ(**variables), capture_output=True, text=True, check=False,
    )  # fmt: skip


def edit(repo: Place, before: str, after: str, name: str = "train.py") -> None:
    file = repo.directory / name
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))


def break_it(repo: Place) -> None:
    edit(repo, BREAKS, UNSEEDED)


@pytest.fixture
def hooked(repo: Place) -> Place:
    done = repo("hook", "install")
    assert done.code == 0, done.err
    assert [Path(line).name for line in done.out.splitlines()] == ["pre-commit", "pre-merge-commit"]
    return repo


def test_a_commit_that_breaks_determinism_is_refused_with_step_and_leaf_and_the_escape(hooked: Place) -> None:
    break_it(hooked)
    refused = commit(hooked, "commit", "-a", "-m", "broken")
    assert refused.returncode != 0
    assert "FIRST_DIVERGENCE: step=2 leaf=w " in refused.stdout + refused.stderr
    assert "the commit is refused. FOXRUN_HOOK=off git commit ..." in refused.stderr
    assert hooked.git("log", "--format=%s").splitlines() == ["first"]
    assert commit(hooked, "commit", "-a", "-m", "broken", FOXRUN_HOOK="off").returncode == 0


def test_a_commit_that_keeps_it_passes_and_leaves_nothing_behind(hooked: Place) -> None:
    edit(hooked, "0.1 * weight + 1.0", "0.2 * weight + 1.0")
    done = commit(hooked, "commit", "-a", "-m", "other bits, but always the same")
    assert done.returncode == 0, done.stderr
    assert hooked.git("worktree", "list").count("\n") == 0
    assert hooked.git("status", "--porcelain") == ""


def test_nothing_relevant_staged_ends_in_under_a_tenth_of_a_second_and_starts_no_python(hooked: Place) -> None:
    break_it(hooked)  # not staged
    (hooked.directory / "README.md").write_text("words\n")
    hooked.git("add", "README.md")
    took = []
    for _ in range(5):
        started = time.perf_counter()
        done = subprocess.run(
            [str(hooked.directory / ".git/hooks/pre-commit")], cwd=hooked.directory, env=hooked.environ(), check=False
        )
        took.append(time.perf_counter() - started)
        assert done.returncode == 0
    assert min(took) < 0.1
    assert not (hooked.home / "checks").exists()


def test_what_is_staged_is_run_and_not_the_files_as_they_are(hooked: Place) -> None:
    edit(hooked, "a last word", "a very last word")
    hooked.git("add", "train.py")
    break_it(hooked)
    assert commit(hooked, "commit", "-m", "the sound half").returncode == 0
    hooked.git("add", "train.py")
    edit(hooked, UNSEEDED, BREAKS)
    assert commit(hooked, "commit", "-m", "the broken half").returncode != 0


def test_naming_a_file_to_commit_checks_that_file_alone(hooked: Place) -> None:
    (hooked.directory / "other.py").write_text("x = 1\n")
    hooked.git("add", "other.py")
    break_it(hooked)
    assert commit(hooked, "commit", "-m", "other", "other.py").returncode == 0
    assert commit(hooked, "commit", "-m", "train", "train.py").returncode != 0


def test_a_merge_is_checked(hooked: Place) -> None:
    hooked.git("checkout", "-q", "-b", "side")
    break_it(hooked)
    assert commit(hooked, "commit", "-q", "-a", "-m", "broken", FOXRUN_HOOK="off").returncode == 0
    hooked.git("checkout", "-q", "main")
    (hooked.directory / "notes.md").write_text("x\n")
    hooked.git("add", ".")
    assert commit(hooked, "commit", "-q", "-m", "notes").returncode == 0
    merged = commit(hooked, "merge", "side", "-m", "merge")
    assert merged.returncode != 0
    assert "FIRST_DIVERGENCE: step=2 leaf=w " in merged.stdout + merged.stderr


def test_a_rename_away_is_seen(hooked: Place) -> None:
    hooked.git("mv", "train.py", "train.txt")
    gone = commit(hooked, "commit", "-m", "renamed")
    assert gone.returncode != 0
    assert "the commit is refused" in gone.stderr


def test_a_repository_with_blanks_and_unicode_in_its_path_and_a_linked_worktree(repo: Place, tmp_path: Path) -> None:
    strange = tmp_path / "Über straße $(touch x) 'q'"
    subprocess.run(["git", "clone", "-q", str(repo.directory), str(strange)], check=True)
    place = Place(strange, repo.home)
    assert place("hook", "install").code == 0
    place.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "the other"))
    linked = Place(tmp_path / "the other", repo.home)
    for there in (place, linked):
        break_it(there)
        assert "FIRST_DIVERGENCE: step=2 leaf=w " in commit(there, "commit", "-a", "-m", "broken").stderr
        edit(there, UNSEEDED, BREAKS)
        edit(there, "a last word", "the last word")
        assert commit(there, "commit", "-a", "-m", "sound").returncode == 0
    assert not (strange / "x").exists()


def test_files_of_a_submodule_are_there(repo: Place, tmp_path: Path) -> None:
    inner = Place(tmp_path / "inner", repo.home)
    inner.directory.mkdir()
    inner.git("init", "-q", "-b", "main")
    (inner.directory / "lib.py").write_text("SCALE = 1.0\n")
    inner.git("add", ".")
    inner.git("commit", "-q", "-m", "lib")
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner.directory), "lib")
    edit(repo, "import argparse", "import argparse\nfrom lib.lib import SCALE")
    edit(repo, "0.1 * weight + 1.0", "0.1 * weight + SCALE")
    repo.git("commit", "-q", "-a", "-m", "with a submodule")
    assert repo("hook", "install").code == 0
    edit(repo, "a last word", "the last word")
    done = commit(repo, "commit", "-a", "-m", "sound")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_first_commit_of_a_repository_is_checked(here: Place, repo: Place) -> None:
    fresh = Place(here.directory.parent / "fresh", here.home)
    fresh.directory.mkdir()
    fresh.git("init", "-q", "-b", "main")
    for name in ("train.py", "foxrun.yaml"):
        (fresh.directory / name).write_text((repo.directory / name).read_text())
    assert fresh("hook", "install").code == 0
    fresh.git("add", ".")
    assert commit(fresh, "commit", "-m", "first").returncode == 0


def test_a_hook_that_was_there_runs_first_and_comes_back(repo: Place) -> None:
    there = repo.directory / ".git/hooks/pre-commit"
    there.parent.mkdir(exist_ok=True)
    there.write_text("#!/bin/sh\necho of before\n[ ! -e refuse ]\n")
    there.chmod(0o755)
    assert "(runs pre-commit.before-foxrun first)" in repo("hook", "install").out
    assert repo("hook", "install").code == 0  # again: ours is written anew, theirs is kept
    (repo.directory / "notes.md").write_text("x\n")
    repo.git("add", "notes.md")
    (repo.directory / "refuse").write_text("")
    refused = commit(repo, "commit", "-m", "notes")
    assert (refused.returncode != 0, "of before" in refused.stdout + refused.stderr) == (True, True)
    (repo.directory / "refuse").unlink()
    assert commit(repo, "commit", "-m", "notes").returncode == 0
    assert repo("hook", "uninstall").code == 0
    assert there.read_text().startswith("#!/bin/sh\necho of before")


def test_a_run_that_hangs_is_refused_in_time(repo: Place) -> None:
    (repo.directory / "foxrun.yaml").write_text(
        "trainer: python train.py\ngate_steps: 3\nseed: 5\nhook_timeout: 3s\nhook_check: -p end=hang\n"
    )
    repo.git("commit", "-q", "-a", "-m", "settings")
    assert repo("hook", "install").code == 0
    edit(repo, "a last word", "the last word")
    refused = commit(repo, "commit", "-a", "-m", "hangs")
    assert refused.returncode != 0
    assert "did not end within 3 s" in refused.stdout + refused.stderr
