"""The Kubernetes API, as a client of which foxrun needs nothing but the CRDs and Argo's controller."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping
from typing import Any

from orchestrator.engines.argo.api import GROUP, SILENCE_S, TEMPLATE_KINDS, Event, NotStarted, Page
from orchestrator.engines.argo.credentials import KubeCredentials
from orchestrator.engines.argo.transport import Gone, Transport, Unavailable, segment
from orchestrator.engines.base import Workflow
from orchestrator.errors import InfrastructureError, UsageError

_WAITING = ("is waiting to start", "ContainerCreating", "PodInitializing")


class KubernetesApi:
    """Workflows as custom resources, logs from pods."""

    def __init__(self, credentials: KubeCredentials) -> None:
        self.transport = Transport(credentials)

    @property
    def namespace(self) -> str:
        """Where our workflows are."""
        return self.transport.access.namespace

    @property
    def where(self) -> str:
        """For messages."""
        return f"namespace {self.namespace} of {self.transport.access.host}"

    @property
    def _path(self) -> str:
        return f"/apis/{GROUP}/namespaces/{segment(self.namespace)}/workflows"

    def create(self, workflow: Workflow, *, dry_run: bool = False) -> Workflow:
        """Store a Workflow, or let the server check it only."""
        return self.transport.json(
            "POST",
            self._path,
            query={"fieldManager": "foxrun", **({"dryRun": "All"} if dry_run else {})},
            body=workflow,
        )

    def get(self, name: str, *, patient: bool = True) -> Workflow:
        """One workflow."""
        return self.transport.json("GET", f"{self._path}/{segment(name)}", patient=patient)

    def page(self, labels: str, *, limit: int, token: str = "") -> Page:
        """The next workflows."""
        query = {"limit": str(limit), **({"labelSelector": labels} if labels else {})}
        answer = self.transport.json("GET", self._path, query=query | ({"continue": token} if token else {}))
        metadata = answer.get("metadata") or {}
        return Page(
            answer.get("items") or [], str(metadata.get("continue") or ""), str(metadata.get("resourceVersion") or "")
        )

    def events(
        self, *, name: str = "", labels: str = "", version: str, timeout_s: float
    ) -> Generator[Event, None, None]:
        """Changes since ``version``."""
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(max(1, int(timeout_s))),
            **({"resourceVersion": version} if version else {}),
            **({"fieldSelector": f"metadata.name={name}"} if name else {}),
            **({"labelSelector": labels} if labels else {}),
        }
        for line in self.transport.lines(self._path, query=query, silence_s=min(SILENCE_S, timeout_s + 5)):
            if line.strip():
                yield event(json_of(line))

    def patch(self, name: str, change: Mapping[str, Any]) -> Workflow:
        """A merge patch."""
        return self.transport.json(
            "PATCH", f"{self._path}/{segment(name)}", body=change, content_type="application/merge-patch+json"
        )

    def shut_down(self, name: str, strategy: str) -> None:
        """What `argo stop` and `argo terminate` do."""
        self.patch(name, {"spec": {"shutdown": strategy}})

    def delete(self, name: str) -> None:
        """Pods go with it, in the background."""
        self.transport.json("DELETE", f"{self._path}/{segment(name)}", body={"propagationPolicy": "Background"})

    def log(self, workflow: str, pod: str, *, follow: bool, since: str = "") -> Iterator[bytes]:
        """The log of the pod's main container."""
        path = f"/api/v1/namespaces/{segment(self.namespace)}/pods/{segment(pod)}/log"
        query = {"container": "main", "timestamps": "true"}
        query |= {"follow": "true"} if follow else {}
        query |= {"sinceTime": since} if since else {}
        try:
            # A leg may print nothing for an hour.
            yield from self.transport.lines(path, query=query, silence_s=3600.0 if follow else SILENCE_S)
        except (UsageError, InfrastructureError) as error:
            if any(word in str(error) for word in _WAITING):
                raise NotStarted from None
            raise

    def template(self, kind: str, name: str) -> dict[str, Any]:
        """A template of the cluster."""
        plural = TEMPLATE_KINDS[kind]
        within = "" if plural.startswith("cluster") else f"/namespaces/{segment(self.namespace)}"
        return self.transport.json("GET", f"/apis/{GROUP}{within}/{plural}/{segment(name)}")

    def nodes(self) -> list[dict[str, Any]]:
        """The cluster's nodes; many accounts may not see them (Forbidden)."""
        return list(self.transport.json("GET", "/api/v1/nodes", patient=False).get("items") or [])

    def pod(self, name: str) -> dict[str, Any]:
        """One pod."""
        return self.transport.json(
            "GET", f"/api/v1/namespaces/{segment(self.namespace)}/pods/{segment(name)}", patient=False
        )


def json_of(line: bytes) -> dict[str, Any]:
    """A line of a stream; one that was cut is a cut stream."""
    try:
        value = json.loads(line)
    except ValueError:
        raise Unavailable("the watch was cut in the middle of a line") from None
    return value if isinstance(value, dict) else {}


def event(value: Mapping[str, Any]) -> Event:
    """An event of a watch; raises Gone or Unavailable for one that says ERROR."""
    kind, subject = str(value.get("type")), value.get("object") or {}
    if kind == "ERROR" or subject.get("kind") == "Status":
        message = str(subject.get("message") or subject)
        if subject.get("code") == 410 or subject.get("reason") in ("Expired", "Gone"):
            raise Gone(message)
        raise Unavailable(f"the watch ended: {message}")
    return Event(kind, subject)
