"""A repository with a small trainer, a home of its own, and foxrun called as a person calls it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.main import execute

TRAINER = Path(__file__).parents[1] / "gate" / "small_trainer.py"


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Place:
    """A directory to call foxrun in, with its own state."""

    directory: Path
    home: Path

    def environ(self, **more: str) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("FOXRUN_", "FOXHUNT_"))}
        return {**kept, "FOXRUN_HOME": str(self.home), **more}

    def start(self, *words: str, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "orchestrator", *words],
            cwd=self.directory,
            env=self.environ(**variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *words: str, **variables: str) -> Done:
        """In this process: a new one would import hera, which takes most of a second, for every command."""
        out, err = io.StringIO(), io.StringIO()
        before, environ = Path.cwd(), dict(os.environ)
        try:
            os.chdir(self.directory)
            os.environ.clear()
            os.environ.update(self.environ(**variables))
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = execute(list(words))
        finally:
            os.chdir(before)
            os.environ.clear()
            os.environ.update(environ)
        return Done(code, out.getvalue(), err.getvalue())

    def git(self, *words: str) -> str:
        return subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *words],
            cwd=self.directory, check=True, capture_output=True, text=True,
        ).stdout.strip()  # fmt: skip


@pytest.fixture
def here(tmp_path: Path) -> Place:
    """An empty directory."""
    (tmp_path / "here").mkdir()
    return Place(tmp_path / "here", tmp_path / "home")


@pytest.fixture
def repo(here: Place) -> Place:
    """A repository whose foxrun.yaml makes the small trainer its trainer."""
    shutil.copy(TRAINER, here.directory / "train.py")
    (here.directory / "foxrun.yaml").write_text(
        "trainer: python train.py\nsteps: 6\neval_steps: 0\ngate_steps: 3\nseed: 5\n"
    )
    here.git("init", "-q", "-b", "main")
    here.git("add", ".")
    here.git("commit", "-q", "-m", "first")
    return here
