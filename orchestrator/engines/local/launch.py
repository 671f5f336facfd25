"""Making a workflow's directory, and handing its lock to a controller."""

from __future__ import annotations

import contextlib
import copy
import os
import select
import shutil
import time
from pathlib import Path

from foxrun.files import entries_of
from orchestrator.engines.base import Workflow
from orchestrator.engines.local.process import start_controller
from orchestrator.engines.local.resume import reset
from orchestrator.engines.local.state import WorkflowDirectory, write_json
from orchestrator.engines.local.values import now
from orchestrator.errors import InfrastructureError
from orchestrator.stores.directory import DirectoryStore

_START_S = 30.0
_ABANDONED_S = 3600.0


class Launcher:
    """Begins workflows, and lets those go on that have no controller any more."""

    def __init__(self, home: Path, store: DirectoryStore, grace_s: float) -> None:
        self.home = home
        self.store = store
        self.grace_s = grace_s

    def create(self, directory: WorkflowDirectory, submitted: Workflow) -> int | None:
        """Make a new workflow's directory, whole or not at all; return its lock, or None when somebody was first."""
        self._clear()
        beside = WorkflowDirectory(self.home, f"new-{os.urandom(12).hex()}")
        beside.path = directory.path.parent / f".{beside.name}"
        stored = copy.deepcopy(submitted)
        stored["metadata"].update(uid=_uid(), creationTimestamp=now())
        stored["metadata"].setdefault("namespace", "default")
        stored["status"] = {"phase": "Pending", "progress": "0/0", "nodes": {}}
        try:
            (beside.path / "commands").mkdir(parents=True)
            (beside.path / "pods").mkdir()
            write_json(beside.path / "submitted.json", submitted)
            write_json(beside.path / "workflow.json", stored)
            beside.lock_file = beside.path / "lock"
            lock = beside.try_lock()
            try:
                beside.path.rename(directory.path)
            except OSError:
                if not directory.path.exists():
                    raise
                if lock is not None:
                    os.close(lock)
                return None
            return lock
        except OSError as error:
            raise InfrastructureError(
                f"cannot write below {self.home}: {error.strerror or error}",
                remedy="make room or mend the disk, or set FOXRUN_HOME to another directory",
            ) from error
        finally:
            shutil.rmtree(beside.path, ignore_errors=True)

    def _clear(self) -> None:
        """Remove what commands that were killed left half made or half deleted."""
        with contextlib.suppress(OSError):
            for entry in entries_of(self.home / "workflows"):
                with contextlib.suppress(FileNotFoundError):  # a command beside this one took it away
                    if entry.name.startswith(".") and entry.stat().st_mtime < time.time() - _ABANDONED_S:
                        shutil.rmtree(entry.path, ignore_errors=True)

    def go_on(self, directory: WorkflowDirectory, lock: int) -> None:
        """Let a run go on that failed or was killed: keep what succeeded, and start a controller with the lock."""
        try:
            workflow = directory.read()
            reset(workflow, self.store)
            directory.take_commands()
            directory.write(workflow)
        except BaseException:
            os.close(lock)
            raise
        self.start(directory, lock)

    def start(self, directory: WorkflowDirectory, lock: int) -> None:
        """Hand the lock to a controller, and return once it runs."""
        ready, told = os.pipe()
        arguments = [str(self.home), directory.name, "--grace-s", str(self.grace_s)]
        arguments += ["--lock-fd", str(lock), "--ready-fd", str(told)]
        try:
            controller = start_controller(arguments, log=directory.controller_log, pass_fds=(lock, told))
        except OSError as error:
            os.close(ready)
            raise InfrastructureError(f"cannot start the controller: {error.strerror or error}") from error
        finally:
            os.close(told)
            os.close(lock)
        try:
            readable, _, _ = select.select([ready], [], [], _START_S)
            if readable and os.read(ready, 16):
                return
            code = controller.wait(5.0) if readable else None
            said = _tail(directory.controller_log)
            raise InfrastructureError(
                f"the controller of {directory.name!r} did not start (exit code {code}): {said}",
                remedy=f"see {directory.controller_log}",
            )
        finally:
            os.close(ready)
            # It is nobody's child: it lives on, and its end is seen by its lock.
            controller.returncode = controller.returncode or 0


def _uid() -> str:
    import uuid  # slow to import, and needed by submit alone

    return str(uuid.uuid4())


def _tail(log: Path) -> str:
    with contextlib.suppress(OSError):
        lines = log.read_text("utf-8", "replace").strip().splitlines()
        if lines:
            return lines[-1].removeprefix("error: ")
    return "it said nothing"
