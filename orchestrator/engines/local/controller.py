"""The controller of one workflow: a process that carries it to its end and alone writes its state.

`python -P -m orchestrator.engines.local.controller HOME NAME`. It lives in a session of its own, so the terminal that
submitted may close; its pods die with it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from foxrun import git
from orchestrator.engines.base import Workflow
from orchestrator.engines.local.nodes import Nodes
from orchestrator.engines.local.pods import Pods
from orchestrator.engines.local.process import kill_leftovers
from orchestrator.engines.local.reconcile import Reconciler
from orchestrator.engines.local.state import WorkflowDirectory
from orchestrator.engines.local.values import now
from orchestrator.errors import FoxrunError, InfrastructureError, UsageError

TICK_S = 0.05
PROGRESS_EVERY_S = 0.2
DISK_PATIENCE_S = 60.0
SAVE_AGAIN_S = 1.0
RESERVE_BYTES = 1 << 18
REPOSITORY_ANNOTATION = "foxrun.dev/repository"
WORKTREE_ANNOTATION = "foxrun.dev/worktree"


class _Ended(BaseException):
    """Somebody deletes the workflow while it runs."""


class Controller:
    """Carries one workflow to its end. The caller holds the lock."""

    def __init__(self, directory: WorkflowDirectory, grace_s: float) -> None:
        self.directory = directory
        self.workflow: Workflow = directory.read()
        status = self.workflow.setdefault("status", {})
        status.setdefault("startedAt", now())
        status["phase"] = "Running"
        labels = self.workflow["metadata"].setdefault("labels", {})
        labels["workflows.argoproj.io/phase"] = "Running"
        self.nodes = Nodes(self.workflow)
        uid = self.workflow["metadata"]["uid"]
        self.pods = Pods(directory, self.nodes, uid=uid, worktree=self._worktree, grace_s=grace_s)
        self.reconciler = Reconciler(self.workflow, self.nodes, self.pods)
        self._saved: tuple[Any, ...] = ()
        self._saved_at = 0.0
        self._unsaved_since = 0.0
        with contextlib.suppress(OSError):
            directory.reserve.write_bytes(bytes(RESERVE_BYTES))

    def run(self) -> None:
        """Make passes until the workflow is completed."""
        if any(self.directory.pods.iterdir()):
            kill_leftovers(self.directory.pods)
        pass_again = True
        while True:
            completed = False
            if pass_again or time.time() >= self.reconciler.wake_at:
                version = self.nodes.version
                completed = self.reconciler.step()
                pass_again = self.nodes.version != version
            self._obey()
            self._save(force=completed)
            if completed:
                self.pods.close()
                while self._unsaved_since:
                    time.sleep(TICK_S)
                    self._save(force=True)
                return
            version = self.nodes.version
            self.pods.wait(0.0 if pass_again else TICK_S)
            pass_again = pass_again or self.nodes.version != version

    def fail(self, message: str) -> None:
        """Complete the workflow as an error of the engine itself."""
        self.pods.close()
        status = self.workflow["status"]
        finished = now()
        for node in self.nodes.by_id.values():
            if node["phase"] in ("Pending", "Running"):
                node.update(phase="Error", message=message, finishedAt=finished)
        status.update(phase="Error", message=message, finishedAt=finished)
        self.nodes.sum_progress()
        self.directory.reserve.unlink(missing_ok=True)  # room for these last words on a full disk
        self.directory.write(self.workflow)

    def _obey(self) -> None:
        for command in self.directory.take_commands():
            if command.get("stop"):
                self.workflow["spec"]["shutdown"] = "Stop"
                self.nodes.version += 1
                self.reconciler.wake_at = 0.0
            if command.get("end"):
                raise _Ended
            for name, value in command.get("labels", {}).items():
                self.workflow["metadata"].setdefault("labels", {})[name] = value
                self.nodes.version += 1

    def _save(self, *, force: bool) -> None:
        """Write the state when it changed: phases at once and to last, mere progress a few times a second."""
        phases = tuple((node["id"], node["phase"]) for node in self.nodes.by_id.values())
        key = (self.nodes.version, *phases)
        if not force and key == self._saved:
            return
        only_progress = not force and key[1:] == self._saved[1:]
        if only_progress and time.monotonic() - self._saved_at < PROGRESS_EVERY_S:
            return
        if self._unsaved_since and time.monotonic() < self._saved_at + SAVE_AGAIN_S:
            return
        self.nodes.sum_progress()
        self._saved_at = time.monotonic()
        try:
            self.directory.write(self.workflow, durable=not only_progress)
        except InfrastructureError as error:
            if not self.directory.workflow_json.exists():
                raise _Ended from error
            # A full disk may be cleared; the pods go on meanwhile.
            say(f"error: {error}")
            self._unsaved_since = self._unsaved_since or time.monotonic()
            if time.monotonic() >= self._unsaved_since + DISK_PATIENCE_S:
                raise
            return
        self._saved, self._unsaved_since = key, 0.0

    def _worktree(self, sha: str) -> Path:
        """Return the directory in which a pod of that commit runs. Raises UsageError or GitError."""
        annotations = self.workflow["metadata"].get("annotations", {})
        if sha == "worktree":
            place = annotations.get(WORKTREE_ANNOTATION)
            if not place or not Path(place).is_dir():
                raise UsageError(f"annotation {WORKTREE_ANNOTATION} names no directory: {place!r}")
            return Path(place)
        repository = annotations.get(REPOSITORY_ANNOTATION)
        if not repository:
            raise UsageError(f"a pod runs commit {sha}, but the workflow has no annotation {REPOSITORY_ANNOTATION}")
        return git.add_worktree(repository, sha, self.directory.home / "worktrees" / sha)


def say(text: str) -> None:
    """Write to the controller's log, which may lie on a full disk."""
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)  # noqa: T201


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one workflow; return an exit code."""
    parser = argparse.ArgumentParser(prog="controller", description=__doc__)
    parser.add_argument("home", type=Path)
    parser.add_argument("name")
    parser.add_argument("--grace-s", type=float, default=10.0, help="seconds between SIGTERM and SIGKILL")
    parser.add_argument("--lock-fd", type=int, help="an inherited descriptor that holds the lock")
    parser.add_argument("--ready-fd", type=int, help="a descriptor on which to say that the workflow runs")
    options = parser.parse_args(arguments)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    directory = WorkflowDirectory(options.home, options.name)
    controller = None
    try:
        if options.lock_fd is None and directory.try_lock() is None:
            raise UsageError(f"workflow {options.name!r} is running already")
        if options.lock_fd is not None:
            os.set_inheritable(options.lock_fd, False)
        controller = Controller(directory, options.grace_s)
        if options.ready_fd is not None:
            with contextlib.suppress(OSError):  # whoever submitted may be gone, and the run goes on all the same
                os.write(options.ready_fd, b"ready")
            os.close(options.ready_fd)
        controller.run()
        directory.reserve.unlink(missing_ok=True)
    except _Ended:
        return 0  # the pods die with this process
    except Exception as error:
        if not isinstance(error, FoxrunError):
            say(traceback.format_exc())
        if controller is not None:
            with contextlib.suppress(InfrastructureError, OSError):
                controller.fail(f"the local engine failed: {error}")
        say(f"error: {error}")
        return error.exit_code if isinstance(error, FoxrunError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
