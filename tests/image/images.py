"""The image under test: built once for the files that it consists of, and used again while they stay as they are."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONTENT = ("Dockerfile", ".dockerignore", "pyproject.toml", "constraints.txt", "README.md", "LICENSE")
PACKAGES = ("foxrun", "trainer", "workflows", "orchestrator", "goldens")
REPOSITORY = "localhost/foxrun-test"


def tool() -> str | None:
    """What builds an image and loads it into the cluster: `PROGRAM build -t TAG [--build-arg K=V] CONTEXT`."""
    named = os.environ.get("FOXRUN_IMAGE_TOOL") or str(ROOT.parent / "shared" / "cluster" / "image")
    return shutil.which(named)


def snapshot(target: Path) -> Path:
    """A repository with the files that the image is made of, which must not change between the build and what follows.

    Equal files give the same commit, and so the same image: it is made by nobody, at no time.
    """
    target.mkdir(parents=True)
    for name in CONTENT:
        shutil.copy2(ROOT / name, target)
    for package in PACKAGES:
        shutil.copytree(ROOT / package, target / package, ignore=shutil.ignore_patterns("__pycache__", "*.py[co]"))
    git(target, "init", "-q", "-b", "main")
    commit(target, "as in the image")
    return target


def commit(repository: Path, message: str) -> str:
    """Commit everything; returns the commit."""
    git(repository, "add", "--all")
    git(repository, "commit", "-q", "-m", message)
    return git(repository, "rev-parse", "HEAD")


def git(repository: Path, *words: str) -> str:
    """What git says."""
    known = {"NAME": "test", "EMAIL": "test@example.org", "DATE": "2026-01-01T00:00:00Z"}
    nobody = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in known.items()}
    command = ["git", "-c", "commit.gpgsign=false", "-c", "core.autocrlf=false", *words]
    done = subprocess.run(command, cwd=repository, env={**os.environ, **nobody}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def build(context: Path, tag: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Build and load; torch comes from pip's ordinary index or the machine's own wheels."""
    program = tool()
    assert program is not None
    command = [program, "build", "-t", tag, "--build-arg", "TORCH_INDEX=", *arguments, str(context)]
    return subprocess.run(command, capture_output=True, text=True)


@dataclass(frozen=True)
class Image:
    """A loaded image, the tree that it was told it is, and the repository it was built of."""

    reference: str
    tree: str
    context: Path


def reference_of(context: Path) -> str:
    """What the image of a snapshot is called: by its commit, as `foxrun submit` asks for it."""
    return f"{REPOSITORY}:{git(context, 'rev-parse', 'HEAD')}"


def is_loaded(reference: str) -> bool:
    """Whether the cluster has the image."""
    return reference in _loaded()


def image(context: Path) -> Image:
    """The image of ``context``; built when it is not loaded yet."""
    tree, tag = git(context, "rev-parse", "HEAD^{tree}"), reference_of(context)
    with (Path(tempfile.gettempdir()) / "foxrun-image-test.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # workers of one test run ask for the same image at once
        if tag not in _loaded():
            sha = git(context, "rev-parse", "HEAD")
            done = build(context, tag, "--build-arg", f"TREE={tree}", "--build-arg", f"SHA={sha}")
            assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return Image(tag, tree, context)


def _loaded() -> set[str]:
    program = tool()
    assert program is not None
    done = subprocess.run([program, "ls"], capture_output=True, text=True, check=True)
    return {line.split()[0] for line in done.stdout.splitlines() if line.strip()}
