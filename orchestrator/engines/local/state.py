"""The directory of one workflow: its state, its lock, and who may write it.

Whoever holds `lock` may write, and nobody else: the controller while it lives, or a command that found no controller.
The lock belongs to the open file, so it passes to the controller by inheritance and is free the moment that it dies.
"""

from __future__ import annotations

import contextlib
import copy
import errno
import fcntl
import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from foxrun.files import entries_of
from orchestrator.engines.base import COMPLETED_PHASES, Workflow
from orchestrator.engines.local.values import now
from orchestrator.errors import InfrastructureError, UsageError, WorkflowNotFound

LEAVE_S = 10.0
KILLED = "the local engine was killed"
LEGAL_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")
_UNFULFILLED = frozenset({"Pending", "Running"})


class WorkflowDirectory:
    """`<home>/workflows/<name>/`."""

    def __init__(self, home: Path, name: str) -> None:
        if not LEGAL_NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} is not a workflow's name",
                remedy="use at most 63 lower-case letters, digits, dashes and dots; a letter or digit at both ends",
            )
        self.home = home
        self.name = name
        self.path = home / "workflows" / name
        self.workflow_json = self.path / "workflow.json"
        self.submitted_json = self.path / "submitted.json"
        self.lock_file = self.path / "lock"
        self.commands = self.path / "commands"
        self.pods = self.path / "pods"
        self.reserve = self.path / "reserve"
        self.controller_log = self.path / "controller.log"

    def read(self) -> Workflow:
        """Return the stored Workflow as it is; raises WorkflowNotFound."""
        return self._load(self.workflow_json)

    def read_submitted(self) -> Workflow:
        """Return the Workflow as it was submitted; raises WorkflowNotFound."""
        return self._load(self.submitted_json)

    def _load(self, path: Path) -> Workflow:
        try:
            loaded: Workflow = json.loads(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            raise WorkflowNotFound(
                f"no workflow {self.name!r} in {self.home}", remedy="foxrun list shows the workflows"
            ) from None
        except (OSError, ValueError) as error:
            raise InfrastructureError(f"cannot read {path}: {error}", remedy="check the disk") from error
        return loaded

    def write(self, workflow: Workflow, *, durable: bool = True) -> None:
        """Replace the stored Workflow, whole or not at all. The caller holds the lock."""
        write_json(self.workflow_json, workflow, durable=durable)

    def signature(self) -> tuple[int, int, int] | None:
        """Return something that changes with every write, or None when there is no such workflow."""
        try:
            status = self.workflow_json.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_ino, status.st_size

    def is_running(self) -> bool:
        """Return whether some process holds the lock."""
        try:
            descriptor = os.open(self.lock_file, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            return error.errno in (errno.EWOULDBLOCK, errno.EACCES)
        finally:
            os.close(descriptor)
        return False

    def try_lock(self) -> int | None:
        """Take the lock and return its descriptor, or None when another process holds it."""
        for attempt in range(20):
            try:
                descriptor = os.open(self.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            except FileNotFoundError:
                raise WorkflowNotFound(f"no workflow {self.name!r} in {self.home}") from None
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                # Somebody may only be looking whether it is held: is_running() holds it for microseconds.
                os.close(descriptor)
                time.sleep(0.005 if attempt else 0)
                continue
            with contextlib.suppress(OSError):
                if os.fstat(descriptor).st_ino == self.lock_file.stat().st_ino:
                    return descriptor
            os.close(descriptor)  # deleted between opening and locking
        return None

    def lock_unless_running(self) -> int | None:
        """Take the lock, waiting for a controller that has completed its workflow and is about to leave."""
        give_up_at = time.monotonic() + LEAVE_S
        while (descriptor := self.try_lock()) is None:
            if phase_of(self.read()) not in COMPLETED_PHASES or time.monotonic() >= give_up_at:
                break
        return descriptor

    @contextlib.contextmanager
    def locked(self) -> Iterator[int | None]:
        """Hold the lock for a while; yields None when another process holds it."""
        descriptor = self.try_lock()
        try:
            yield descriptor
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def present(self) -> Workflow:
        """Return the Workflow as it should be shown: one that nobody runs and that is not completed was killed."""
        workflow = self.read()
        if phase_of(workflow) in COMPLETED_PHASES or self.is_running():
            return workflow
        workflow = self.read()  # it may have been completed between the two looks
        return workflow if phase_of(workflow) in COMPLETED_PHASES else killed(workflow, self._last_words())

    def _last_words(self) -> str:
        with contextlib.suppress(OSError):
            lines = self.controller_log.read_text("utf-8", "replace").splitlines()
            if lines and lines[-1].startswith("error: "):
                return lines[-1].removeprefix("error: ")
        return ""

    def send(self, command: dict[str, Any]) -> Path:
        """Leave a command for the controller; return the file, which is gone once the controller has taken it."""
        path = self.commands / f"{time.time_ns():020d}-{os.urandom(4).hex()}.json"
        write_json(path, command)
        return path

    def take_commands(self) -> list[dict[str, Any]]:
        """Return and remove the commands that wait, oldest first."""
        taken: list[dict[str, Any]] = []
        try:
            names = [entry.name for entry in entries_of(self.commands) if not entry.name.startswith(".")]
        except FileNotFoundError:
            return taken
        for name in names:
            with contextlib.suppress(OSError, ValueError):
                taken.append(json.loads((self.commands / name).read_bytes()))
            (self.commands / name).unlink(missing_ok=True)
        return taken


def phase_of(workflow: Workflow) -> str:
    """Return the workflow's phase; Pending before the controller has looked at it."""
    return str(workflow.get("status", {}).get("phase") or "Pending")


def killed(workflow: Workflow, last_words: str = "") -> Workflow:
    """Return a copy of a Workflow as its dead controller left it: what still ran is an error."""
    shown = copy.deepcopy(workflow)
    status = shown.setdefault("status", {})
    finished = now()
    message = f"the local engine failed: {last_words}" if last_words else KILLED
    status.update(phase="Error", message=message)
    status.setdefault("finishedAt", finished)
    for node in status.get("nodes", {}).values():
        if node["phase"] in _UNFULFILLED:
            node.update(phase="Error", message=message)
            node.setdefault("finishedAt", finished)
    return shown


def write_json(path: Path, value: Any, *, durable: bool = True) -> None:
    """Write JSON to a file, whole or not at all; `durable` also survives the machine's loss of power.

    Raises InfrastructureError that names the file when the system refuses.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        # Words of a command line that are no UTF-8 must come back as they were.
        with beside.open("w", encoding="utf-8", errors="surrogatepass") as stream:
            json.dump(value, stream, ensure_ascii=False, indent=1)
            stream.write("\n")
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        beside.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise InfrastructureError(
            f"cannot write {path}: {error.strerror or error}", remedy="make room or mend the disk, then foxrun retry"
        ) from error
