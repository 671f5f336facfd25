"""The local engine as commands see it: any process may list, follow, stop, retry or delete any workflow."""

from __future__ import annotations

import builtins
import contextlib
import copy
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from foxrun.files import entries_of
from orchestrator.engines.base import COMPLETED_PHASES, LogLine, Workflow
from orchestrator.engines.local.launch import Launcher
from orchestrator.engines.local.logs import LogReader
from orchestrator.engines.local.state import WorkflowDirectory, phase_of
from orchestrator.engines.local.supported import unsupported
from orchestrator.engines.local.validate import validate
from orchestrator.errors import (
    DeadlinePassed,
    InfrastructureError,
    UnsupportedConstruct,
    UsageError,
    WorkflowExists,
    WorkflowNotFound,
)
from orchestrator.stores.directory import DirectoryStore

_POLL_S = 0.05
_LOOK_AT_LOCK_S = 0.5
_START_S = 30.0
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"  # as Kubernetes: no vowels, no look-alikes


class LocalEngine:
    """Runs Workflows as processes of this machine, with all state under `home`."""

    name = "local"

    def __init__(self, home: Path, *, grace_s: float = 10.0) -> None:
        self.home = Path(home).expanduser().resolve()
        self.store = DirectoryStore(self.home / "artifacts")
        self._launcher = Launcher(self.home, self.store, grace_s)

    def put_input(self, path: Path) -> str:
        """Store a local file once, under its sha256; return the key for `s3.key`."""
        return self.store.put_input(Path(path))

    def submit(self, workflow: Workflow) -> str:
        """Start a workflow, or attach to the equal one of the same name; return the name once it runs.

        Raises UnsupportedConstruct, UsageError (the Workflow is wrong) or WorkflowExists.
        """
        submitted = {key: copy.deepcopy(value) for key, value in workflow.items() if key != "status"}
        self._check(submitted)
        metadata = submitted["metadata"]
        if metadata.get("name"):
            return self._submit_named(submitted)
        while True:
            named = copy.deepcopy(submitted)
            suffix = "".join(_SUFFIX[byte % len(_SUFFIX)] for byte in os.urandom(5))
            named["metadata"]["name"] = metadata["generateName"] + suffix
            lock = self._launcher.create(directory := WorkflowDirectory(self.home, named["metadata"]["name"]), named)
            if lock is not None:
                self._launcher.start(directory, lock)
                return directory.name

    def _check(self, submitted: Workflow) -> None:
        refused = unsupported(submitted)
        if refused:
            raise UnsupportedConstruct(
                f"the local engine does not have: {'; '.join(refused)}",
                remedy="leave it out, or submit to a cluster with --engine argo",
            )
        problems = validate(submitted)
        if problems:
            raise UsageError(
                f"the Workflow is not valid: {'; '.join(problems)}", remedy="foxrun lint shows the problems"
            )

    def _submit_named(self, submitted: Workflow) -> str:
        directory = WorkflowDirectory(self.home, submitted["metadata"]["name"])
        if not directory.path.exists():
            lock = self._launcher.create(directory, submitted)
            if lock is not None:
                self._launcher.start(directory, lock)
                return directory.name
        return self._attach(directory, submitted)

    def _attach(self, directory: WorkflowDirectory, submitted: Workflow) -> str:
        if directory.read_submitted() != submitted:
            raise WorkflowExists(
                f"workflow {directory.name!r} exists already and is another one",
                remedy=f"choose another --name, or foxrun delete {directory.name}",
            )
        if phase_of(directory.read()) not in COMPLETED_PHASES:
            lock = directory.try_lock()
            if lock is not None and phase_of(directory.read()) not in COMPLETED_PHASES:
                self._launcher.go_on(directory, lock)
            elif lock is not None:
                os.close(lock)
        return directory.name

    def get(self, name: str) -> Workflow:
        """Return the workflow with its status; one whose controller is gone is shown as an error."""
        return WorkflowDirectory(self.home, name).present()

    def list(self, labels: Mapping[str, str] | None = None) -> list[Workflow]:
        """Return the workflows that carry all these labels, newest first."""
        found = []
        with contextlib.suppress(FileNotFoundError):
            for entry in entries_of(self.home / "workflows"):
                if entry.name.startswith("."):
                    continue
                with contextlib.suppress(WorkflowNotFound, UsageError):
                    workflow = self.get(entry.name)
                    own = workflow["metadata"].get("labels", {})
                    if all(own.get(key) == value for key, value in (labels or {}).items()):
                        found.append(workflow)
        found.sort(key=lambda w: w["metadata"]["name"])
        found.sort(key=lambda w: w["metadata"]["creationTimestamp"], reverse=True)
        return found

    def watch(self, name: str, *, deadline_s: float) -> Iterator[Workflow]:
        """Yield the workflow at once and after each change; end when it is completed or its controller is gone."""
        directory = WorkflowDirectory(self.home, name)
        give_up_at = time.monotonic() + deadline_s
        seen: tuple[int, int, int] | None = None
        look_at = 0.0
        while True:
            signature = directory.signature()
            if signature != seen or time.monotonic() >= look_at:
                workflow = directory.present()
                look_at = time.monotonic() + _LOOK_AT_LOCK_S
                completed = phase_of(workflow) in COMPLETED_PHASES
                if signature != seen or completed:
                    seen = signature
                    yield workflow
                if completed:
                    return
            if time.monotonic() >= give_up_at:
                raise DeadlinePassed(
                    f"workflow {name!r} is not completed after {deadline_s:g} s; it goes on",
                    remedy=f"foxrun watch {name}, or foxrun stop {name}",
                )
            time.sleep(_POLL_S)

    def logs(self, name: str, *, node: str | None = None, follow: bool = False) -> Iterator[LogLine]:
        """Yield what the pods printed, of one node (by id, name or display name; all of its attempts) or of all."""
        directory = WorkflowDirectory(self.home, name)
        workflow = directory.present()
        if node is not None and not follow:
            _find(workflow, node)
        reader = LogReader(directory.pods, lambda candidate: node is None or _is(candidate, node))
        while follow and phase_of(workflow) not in COMPLETED_PHASES:
            signature = directory.signature()
            look_at = time.monotonic() + _LOOK_AT_LOCK_S
            while True:
                yield from reader.read(workflow)
                if directory.signature() != signature or time.monotonic() >= look_at:
                    break
                time.sleep(_POLL_S)
            workflow = directory.present()
        yield from reader.read(workflow)
        yield from reader.rest()

    def stop(self, name: str) -> None:
        """Ask a running workflow to end: its pods are stopped, its exit handler runs. Raises UsageError otherwise."""
        directory = WorkflowDirectory(self.home, name)
        workflow = directory.present()
        if phase_of(workflow) in COMPLETED_PHASES:
            raise UsageError(f"workflow {name!r} does not run; it is {phase_of(workflow)}")
        directory.send({"stop": True})

    def retry(self, name: str) -> str:
        """Run again what did not succeed; what did is kept with its outputs. Returns the name once it runs."""
        directory = WorkflowDirectory(self.home, name)
        if phase_of(directory.read()) == "Succeeded":
            raise UsageError(f"workflow {name!r} has succeeded; there is nothing to retry", remedy="submit it anew")
        lock = directory.lock_unless_running()
        if lock is None:
            raise UsageError(f"workflow {name!r} is running", remedy=f"foxrun watch {name}, or foxrun stop {name}")
        self._launcher.go_on(directory, lock)
        return name

    def delete(self, name: str, *, force: bool = False) -> None:
        """Remove a workflow with its artifacts; one that runs only with `force`, which kills it."""
        directory = WorkflowDirectory(self.home, name)
        directory.read()
        lock = directory.lock_unless_running()
        if lock is None and not force:
            raise UsageError(f"workflow {name!r} is running", remedy=f"foxrun stop {name}, or delete it with --force")
        if lock is None:
            lock = self._end(directory)
        try:
            uid = directory.read()["metadata"]["uid"]
            gone = directory.path.parent / f".deleted-{os.urandom(8).hex()}"
            directory.path.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)
            self.store.delete(uid)
        finally:
            os.close(lock)

    def _end(self, directory: WorkflowDirectory) -> int:
        """Make a controller give up at once; return the lock that it held."""
        directory.send({"end": True})
        give_up_at = time.monotonic() + _START_S
        while time.monotonic() < give_up_at:
            lock = directory.try_lock()
            if lock is not None:
                return lock
            time.sleep(_POLL_S)
        raise InfrastructureError(f"the controller of {directory.name!r} does not end", remedy="see its controller.log")

    def artifact(self, name: str, node: str, artifact: str) -> Path:
        """Return where an output artifact lies; the node by id, name or display name. Raises WorkflowNotFound."""
        found = _find(self.get(name), node)
        for output in found.get("outputs", {}).get("artifacts", []):
            if output["name"] == artifact:
                path = self.store.path(output["s3"]["key"])
                if path.exists():
                    return path
                raise InfrastructureError(f"artifact {artifact!r} of {node!r} is gone from {path}")
        raise WorkflowNotFound(f"node {node!r} of workflow {name!r} has no output artifact {artifact!r}")

    def address(self, name: str, node: str, artifact: str) -> str:
        """Where an output artifact lies, as a person gives it to `foxrun compare`."""
        return str(self.artifact(name, node, artifact))

    def set_labels(self, name: str, labels: Mapping[str, str]) -> None:
        """Set labels on the workflow, through its controller while it runs."""
        directory = WorkflowDirectory(self.home, name)
        directory.read()
        sent: Path | None = None
        give_up_at = time.monotonic() + _START_S
        while time.monotonic() < give_up_at:
            with directory.locked() as lock:
                if lock is not None:
                    if sent is not None:
                        sent.unlink(missing_ok=True)
                    workflow = directory.read()
                    workflow["metadata"].setdefault("labels", {}).update(labels)
                    directory.write(workflow)
                    return
            if sent is None:
                sent = directory.send({"labels": dict(labels)})
            elif not sent.exists():
                return
            time.sleep(_POLL_S)
        raise InfrastructureError(f"the controller of {name!r} does not take commands", remedy="see its controller.log")


def _is(node: Mapping[str, Any], wanted: str) -> bool:
    names = (node["id"], node["name"], node["displayName"])
    return wanted in names or any(name.startswith(f"{wanted}(") for name in names[1:])


def _find(workflow: Workflow, wanted: str) -> dict[str, Any]:
    nodes: builtins.list[dict[str, Any]] = list(workflow.get("status", {}).get("nodes", {}).values())
    for key in ("id", "name", "displayName"):
        for node in nodes:
            if node[key] == wanted:
                return node
    shown = ", ".join(node["displayName"] for node in nodes if node["type"] in ("Pod", "Retry")) or "none yet"
    raise WorkflowNotFound(f"workflow {workflow['metadata']['name']!r} has no node {wanted!r}; its nodes: {shown}")
