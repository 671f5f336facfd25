"""What the engine asks of a cluster, whichever way it is reached: Kubernetes' own API, or argo-server."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from orchestrator.engines.base import Workflow

GROUP = "argoproj.io/v1alpha1"
TEMPLATE_KINDS = {
    "workflowtemplate": "workflowtemplates",
    "clusterworkflowtemplate": "clusterworkflowtemplates",
    "cronworkflow": "cronworkflows",
}
# Kept below what load balancers and argo-server's own proxies cut (90 s), so that we end it and they do not.
WATCH_S = 60.0
# A watch says at least a bookmark a minute; silence beyond that is a connection that died without a word.
SILENCE_S = WATCH_S + 15.0


@dataclass(frozen=True, slots=True)
class Event:
    """One change: ADDED, MODIFIED, DELETED, or BOOKMARK, whose object holds the resource version alone."""

    kind: str
    workflow: Workflow


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list; ``token`` asks for the next one and is empty at the end."""

    items: list[Workflow]
    token: str
    version: str


class Api(Protocol):
    """Errors are those of transport.py."""

    @property
    def namespace(self) -> str:
        """Where our workflows are."""
        ...

    @property
    def where(self) -> str:
        """Cluster and namespace, for messages."""
        ...

    def create(self, workflow: Workflow, *, dry_run: bool = False) -> Workflow:
        """Store a Workflow; raises Conflict when the name is taken."""
        ...

    def get(self, name: str, *, patient: bool = True) -> Workflow:
        """One workflow; raises NotFound."""
        ...

    def page(self, labels: str, *, limit: int, token: str = "") -> Page:
        """The next workflows that a label selector finds."""
        ...

    def events(
        self, *, name: str = "", labels: str = "", version: str, timeout_s: float
    ) -> Generator[Event, None, None]:
        """Changes since ``version``, for at most ``timeout_s``; raises Gone when the version is too old."""
        ...

    def patch(self, name: str, change: Mapping[str, Any]) -> Workflow:
        """Merge a change into a workflow; raises UsageError where the way has no such call."""
        ...

    def shut_down(self, name: str, strategy: str) -> None:
        """``Stop`` (the exit handler runs) or ``Terminate``."""
        ...

    def delete(self, name: str) -> None:
        """Ask for its deletion; raises NotFound."""
        ...

    def log(self, workflow: str, pod: str, *, follow: bool, since: str = "") -> Iterator[bytes]:
        """Lines of the main container, each with its time in front; raises NotFound when the pod is gone.

        Raises NotStarted when the container does not run yet.
        """
        ...

    def template(self, kind: str, name: str) -> dict[str, Any]:
        """A WorkflowTemplate, ClusterWorkflowTemplate or CronWorkflow; raises NotFound."""
        ...


class NotStarted(Exception):
    """The container whose log is asked for does not run yet."""
