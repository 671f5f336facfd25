"""The git hook: nothing relevant staged costs a git call; else the gate runs on what is staged."""

from __future__ import annotations

import os
import shlex
import stat
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from foxrun.files import write_atomic
from foxrun.git_staged import hooks_directory
from orchestrator.errors import UsageError

# `git commit` runs the first, `git merge` without conflicts the second.
HOOKS = ("pre-commit", "pre-merge-commit")
MARK = "# foxrun hook"
BEFORE = ".before-foxrun"
ESCAPE = "FOXRUN_HOOK=off git commit ... skips it once (so does git commit --no-verify)"
OFF = ("off", "0", "no", "false")

_SCRIPT = """#!/bin/sh
{mark}: `foxrun hook install` wrote this and writes it anew; `foxrun hook uninstall` takes it away.
if [ -x "$0{before}" ]; then "$0{before}" "$@" || exit $?; fi
case "$FOXRUN_HOOK" in {off}) exit 0 ;; esac
# Nothing staged that can change bits: done, without starting Python.
git diff --cached --quiet --no-ext-diff -- {paths} && exit 0
if [ -x {python} ]; then exec {python} -P -m orchestrator hook run; fi
if command -v foxrun >/dev/null 2>&1; then exec foxrun hook run; fi
echo "foxrun: the hook finds no foxrun (it was at {python_shown}); run foxrun hook install again. {escape}" >&2
exit 1
"""


@dataclass(frozen=True, kw_only=True)
class Installed:
    """A hook that was written; ``kept`` is where the one before it lies and is run from."""

    file: Path
    kept: Path | None


def script(paths: Sequence[str], python: str) -> str:
    """The hook's text: POSIX shell, every value quoted."""
    return _SCRIPT.format(
        mark=MARK,
        before=BEFORE,
        off="|".join(OFF),
        paths=" ".join(shlex.quote(path) for path in paths),
        python=shlex.quote(python),
        python_shown=python.replace('"', "").replace("\\", "").replace("$", "").replace("`", ""),
        escape=ESCAPE,
    )


def install(directory: Path, paths: Sequence[str]) -> list[Installed]:
    """Write both hooks; one of somebody else's is kept beside ours and runs first.

    Raises:
        UsageError: no path is given, or the place of hooks cannot be written.
        GitError: this is no repository.
    """
    if not paths:
        raise UsageError("hook_paths is empty, so the hook would never run", remedy="foxrun config shows its default")
    folder = hooks_directory(directory)
    found = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in HOOKS:
            file, kept = folder / name, folder / f"{name}{BEFORE}"
            if (file.exists() or file.is_symlink()) and not _ours(file):
                if kept.exists():
                    raise UsageError(
                        f"{file} is another hook, and {kept.name} is there already", remedy="remove one of the two"
                    )
                file.rename(kept)
            write_atomic(file, script(paths, sys.executable))
            file.chmod(file.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
            found.append(Installed(file=file, kept=kept if kept.exists() else None))
    except OSError as error:
        raise UsageError(f"{error.filename or folder}: {error.strerror}", remedy="check core.hooksPath") from None
    return found


def uninstall(directory: Path) -> list[Path]:
    """Take our hooks away and put back those that were there before; returns what was removed."""
    gone = []
    for name in HOOKS:
        file = hooks_directory(directory) / name
        if _ours(file):
            file.unlink()
            kept = file.with_name(f"{name}{BEFORE}")
            if kept.exists():
                kept.rename(file)
            gone.append(file)
    return gone


def without_git_variables() -> None:
    """Forget what git told its hook: a trainer that calls git means the directory it runs in."""
    for name in [name for name in os.environ if name.startswith("GIT_") and not name.startswith("GIT_CONFIG_")]:
        del os.environ[name]


def _ours(file: Path) -> bool:
    try:
        return MARK in file.read_text("utf-8", errors="replace")
    except OSError:
        return False
