"""Watching that survives: cut watches, expired versions and tokens, restarted servers, deletion; never past a deadline.

State is the last resource version. A watch goes on from it; where the server has forgotten it (410) everything is read
anew. Each quiet minute the workflow is read once more, since a proxy may keep a dead watch open.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass

from orchestrator.engines.argo.api import WATCH_S, Api, Event
from orchestrator.engines.argo.argo_server import ArgoServerApi
from orchestrator.engines.argo.nodes import is_completed, is_offloaded, name_of, phase_of, uid_of, unpacked, version_of
from orchestrator.engines.argo.patience import Patience
from orchestrator.engines.argo.placement import Waiting
from orchestrator.engines.argo.transport import Forbidden, Gone, NotFound, Refused, Unavailable
from orchestrator.engines.base import Workflow
from orchestrator.errors import InfrastructureError, WorkflowDeleted, WorkflowNotFound

PAGE = 100
_SHORT_S = 1.0


def watch(
    api: Api, name: str, *, deadline_s: float, waiting: Waiting | None = None, server: ArgoServerApi | None = None
) -> Iterator[Workflow]:
    """Yield the workflow at once and after each change, until it is completed.

    Args:
        api: the way to the cluster.
        name: the workflow.
        deadline_s: seconds after which DeadlinePassed is raised.
        waiting: raises when pods wait for what will not come; None waits for them.
        server: reads node status that Argo keeps in its database.

    Raises:
        WorkflowNotFound: there is none.
        WorkflowDeleted: there was one.
    """
    return _Watch(api, name, deadline_s, waiting, server).run()


class _Watch:
    def __init__(
        self, api: Api, name: str, deadline_s: float, waiting: Waiting | None, server: ArgoServerApi | None
    ) -> None:
        self.api = api
        self.name = name
        self.waiting = waiting
        self.server = server
        self.patience = Patience(f"workflow {name!r}", deadline_s)
        self.uid = ""
        self.version = ""
        self.quiet = False

    def run(self) -> Iterator[Workflow]:
        while True:
            left = self.patience.left()
            try:
                if not self.version or self.quiet:
                    before = self.version
                    workflow = self._read()
                    if self.version != before:
                        yield workflow
                    if is_completed(workflow):
                        return
                for workflow in self._changes(left):
                    yield workflow
                    if is_completed(workflow):
                        return
            except Gone:
                self.version = ""
            except NotFound:  # argo-server looks at the workflow before it watches; the next read says what happened
                self.version = ""
                self.patience.pause()
            except (Unavailable, Refused, Forbidden) as error:
                self.patience.endure(error)

    def _read(self) -> Workflow:
        try:
            workflow = self.api.get(self.name, patient=False)
        except NotFound as error:
            if self.uid:
                raise self._deleted() from None
            raise not_found(self.name, self.api.where, error) from None
        self.patience.well()
        self.quiet = False
        return self._seen(workflow)

    def _changes(self, left: float) -> Iterator[Workflow]:
        began, heard = time.monotonic(), False
        timeout_s = min(WATCH_S, left, self.waiting.next_look_s() if self.waiting else WATCH_S)
        events = self.api.events(name=self.name, version=self.version, timeout_s=timeout_s)
        with contextlib.closing(events):
            for event in events:
                self.patience.well()
                self.patience.left()
                if event.kind == "BOOKMARK":
                    self.version = version_of(event.workflow) or self.version
                    continue
                if name_of(event.workflow) != self.name:
                    continue
                heard = True
                if event.kind == "DELETED":
                    raise self._deleted()
                # A watch without a version, or one whose server starts anew, tells again what is known.
                if version_of(event.workflow) != self.version:
                    yield self._seen(event.workflow)
                if self.waiting and self.waiting.next_look_s() < began + timeout_s - time.monotonic():
                    return  # come back in time to see that a pod has waited too long
        self.quiet = not heard
        if not heard and time.monotonic() - began < _SHORT_S < timeout_s:
            self.patience.pause()  # a server that ends each watch at once must not be asked a hundred times a second

    def _seen(self, workflow: Workflow) -> Workflow:
        uid = uid_of(workflow)
        if self.uid and uid != self.uid:
            raise self._deleted()
        self.uid = uid
        self.version = version_of(workflow)
        workflow = whole(workflow, self.server)
        if self.waiting is not None and not is_completed(workflow):
            self.waiting.look(workflow)
        return workflow

    def _deleted(self) -> WorkflowDeleted:
        return WorkflowDeleted(
            f"workflow {self.name!r} was deleted while it was followed",
            remedy="submit it again; kubectl get events says more where its pods were evicted or its namespace removed",
        )


@dataclass(frozen=True, slots=True)
class Seen:
    """What is kept of one of many workflows."""

    name: str
    phase: str
    progress: str
    message: str
    verdict: str
    deleted: bool = False


def watch_many(api: Api, labels: str, *, deadline_s: float) -> Iterator[Seen]:
    """Yield each workflow with these labels, then each change of one, over a single list and watch.

    A thousand workflows of 60 KB each are never in memory together: a page is, then one event.

    Raises:
        DeadlinePassed: after ``deadline_s`` seconds.
    """
    patience = Patience(f"the watch of {api.where}", deadline_s)
    known: dict[str, Seen] = {}
    version = ""
    while True:
        left = patience.left()
        try:
            if not version:
                version = yield from _list(api, labels, known)
                patience.well()
            began = time.monotonic()
            for event in api.events(labels=labels, version=version, timeout_s=min(WATCH_S, left)):
                patience.well()
                patience.left()
                version = version_of(event.workflow) or version
                yield from _changed(event, known)
            if time.monotonic() - began < _SHORT_S:
                patience.pause()
        except Gone:
            version = ""
        except (Unavailable, Refused, Forbidden) as error:
            patience.endure(error)


def _list(api: Api, labels: str, known: dict[str, Seen]) -> Generator[Seen, None, str]:
    """Read everything in pages and tell the differences; returns the version to watch from."""
    token, version = "", ""
    there = set()
    while True:
        page = api.page(labels, limit=PAGE, token=token)
        version = version or page.version
        for workflow in page.items:
            there.add(name_of(workflow))
            yield from _changed(Event("ADDED", workflow), known)
        token = page.token
        if not token:
            break
    for name in sorted(set(known) - there):
        yield from _changed(Event("DELETED", {"metadata": {"name": name}}), known)
    return version


def _changed(event: Event, known: dict[str, Seen]) -> Iterator[Seen]:
    name = name_of(event.workflow)
    if event.kind == "BOOKMARK" or not name:
        return
    if event.kind == "DELETED":
        gone = known.pop(name, None)
        if gone is not None:
            yield Seen(name, gone.phase, gone.progress, gone.message, gone.verdict, deleted=True)
        return
    status = event.workflow.get("status") or {}
    labels = (event.workflow.get("metadata") or {}).get("labels") or {}
    seen = Seen(
        name,
        phase_of(event.workflow),
        str(status.get("progress") or ""),
        str(status.get("message") or ""),
        str(labels.get("foxrun.dev/verdict") or ""),
    )
    if known.get(name) != seen:
        known[name] = seen
        yield seen


def whole(workflow: Workflow, server: ArgoServerApi | None) -> Workflow:
    """The workflow with its node status, wherever Argo put it.

    Raises:
        InfrastructureError: it is in Argo's database, and there is no argo-server to read it.
    """
    if not is_offloaded(workflow):
        return unpacked(workflow)
    if server is None:
        raise InfrastructureError(
            f"the node status of {name_of(workflow)} is in Argo's database, which only argo-server reads",
            remedy="set argo_server (FOXRUN_ARGO_SERVER) and its token",
        )
    return unpacked(server.get(name_of(workflow), patient=False))


def not_found(name: str, where: str, error: Exception) -> WorkflowNotFound:
    """The error for a workflow that is not there."""
    if "the server could not find the requested resource" in str(error):
        return WorkflowNotFound(
            f"Argo Workflows is not installed in {where}", remedy="foxrun doctor; argo's own quick start installs it"
        )
    return WorkflowNotFound(f"no workflow {name!r} in {where}", remedy="foxrun list shows the workflows")
