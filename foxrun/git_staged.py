"""What a git hook asks of git: the staged files as a commit, and where hooks lie.

The one place that reads GIT_INDEX_FILE: ``git commit -a`` and ``git commit FILE`` stage into an index of their own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from foxrun import git
from foxrun.git import GitError

# Fixed, so that the same staged files give the same commit; it belongs to no branch and goes with git's next cleaning.
_IDENTITY = {
    **{f"GIT_{who}_NAME": "foxrun" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "foxrun@localhost" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_DATE": "2000-01-01T00:00:00Z" for who in ("AUTHOR", "COMMITTER")},
}
_LINK = "160000"


def staged_commit(directory: Path | str, environ: Mapping[str, str]) -> str:
    """A commit of what is staged, not of the files as they are; no branch names it.

    Args:
        directory: inside the working tree.
        environ: of the hook; GIT_INDEX_FILE names the index where git uses another.

    Raises:
        GitError: conflicts are not resolved, or git fails.
    """
    top = git.top_level(directory)
    index = Path(top, environ.get("GIT_INDEX_FILE") or git._git(top, ["rev-parse", "--git-path", "index"]).strip())
    with tempfile.TemporaryDirectory(prefix="foxrun-staged-") as scratch:
        ours = Path(scratch) / "index"  # git holds the lock of its own while a hook runs
        if index.exists():
            shutil.copy2(index, ours)
        tree = git._git(top, ["write-tree"], extra={"GIT_INDEX_FILE": str(ours)}).strip()
    parents = ["-p", git.resolve(top, "HEAD")] if git._run(top, ["rev-parse", "-q", "--verify", "HEAD"]).stdout else []
    return git._git(top, ["commit-tree", tree, *parents, "-m", "staged"], extra=_IDENTITY).strip()


def fill_submodules(directory: Path | str, commit: str, target: Path) -> list[str]:
    """Put the files of each submodule, as ``commit`` names it, into a checkout at ``target``.

    Returns the paths of those that could not be had, because they are not initialised here.
    """
    top, missing = git.top_level(directory), []
    for line in git._git(top, ["ls-tree", "-r", "-z", commit]).split("\0"):
        facts, _, path = line.partition("\t")
        if not facts.startswith(_LINK):
            continue
        inner, place = facts.split()[2], target / path
        done = git._run(top / path, ["archive", "--format=tar", inner]) if (top / path).is_dir() else None
        if done is None or done.returncode != 0 or git.top_level(top / path) == top:
            missing.append(path)
            continue
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile() as stream:
            stream.write(done.stdout)
            stream.seek(0)
            with tarfile.open(fileobj=stream) as archive:
                archive.extractall(place, filter="data")
    return missing


def remove_worktree(repo: Path | str, target: Path) -> None:
    """Take away a worktree and git's note of it; one that is gone already is fine."""
    git._run(repo, ["worktree", "remove", "--force", "--force", "--", str(target)])
    shutil.rmtree(target, ignore_errors=True)
    git._run(repo, ["worktree", "prune"])


def hooks_directory(directory: Path | str) -> Path:
    """Where git looks for hooks here: shared by all worktrees, or what core.hooksPath says. Raises GitError."""
    top = git.top_level(directory)
    environment = {key: value for key, value in os.environ.items() if key not in git._DROPPED}
    # Not by git._run, which switches hooks off and would be told /dev/null.
    done = subprocess.run(
        ["git", "rev-parse", "--git-path", "hooks"], cwd=top, env=environment, capture_output=True, check=False
    )
    if done.returncode:
        raise GitError("git does not say where hooks lie", file=str(top), remedy="run: git rev-parse --git-path hooks")
    return Path(top, os.fsdecode(done.stdout.rstrip(b"\n")))
