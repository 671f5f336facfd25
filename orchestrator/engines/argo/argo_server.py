"""argo-server, for those who are given its address and a token and no way to the Kubernetes API."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import Any

from orchestrator.engines.argo.api import SILENCE_S, Event, NotStarted, Page
from orchestrator.engines.argo.credentials import ServerCredentials
from orchestrator.engines.argo.kubernetes_api import event, json_of
from orchestrator.engines.argo.transport import Gone, NotFound, Transport, Unavailable, segment
from orchestrator.engines.base import Workflow
from orchestrator.errors import InfrastructureError, UsageError

_TEMPLATES = {
    "workflowtemplate": "workflow-templates",
    "clusterworkflowtemplate": "cluster-workflow-templates",
    "cronworkflow": "cron-workflows",
}


class ArgoServerApi:
    """The REST form of argo-server's gRPC."""

    def __init__(self, credentials: ServerCredentials) -> None:
        self.transport = Transport(credentials)

    @property
    def namespace(self) -> str:
        """Where our workflows are."""
        return self.transport.access.namespace

    @property
    def where(self) -> str:
        """For messages."""
        return f"namespace {self.namespace} of argo-server {self.transport.access.host}"

    @property
    def _path(self) -> str:
        return f"/api/v1/workflows/{segment(self.namespace)}"

    def create(self, workflow: Workflow, *, dry_run: bool = False) -> Workflow:
        """Store a Workflow; argo-server also checks it as `argo lint` does."""
        body: dict[str, Any] = {"namespace": self.namespace, "workflow": workflow}
        return self.transport.json("POST", self._path, body=body | ({"serverDryRun": True} if dry_run else {}))

    def get(self, name: str, *, patient: bool = True) -> Workflow:
        """One workflow, its node status whole even where Argo keeps it in a database."""
        return self.transport.json("GET", f"{self._path}/{segment(name)}", patient=patient)

    def page(self, labels: str, *, limit: int, token: str = "") -> Page:
        """The next workflows. The server's token is an offset into its own database; it does not tell the next one."""
        query = {"listOptions.limit": str(limit)}
        query |= {"listOptions.labelSelector": labels} if labels else {}
        query |= {"listOptions.continue": token} if token else {}
        answer = self.transport.json("GET", self._path, query=query)
        metadata, items = answer.get("metadata") or {}, answer.get("items") or []
        following = str(metadata.get("continue") or "")
        if not following and len(items) == limit and (token or "0").isdigit():
            following = str(int(token or "0") + limit)
        return Page(items, following, str(metadata.get("resourceVersion") or ""))

    def events(
        self, *, name: str = "", labels: str = "", version: str, timeout_s: float
    ) -> Generator[Event, None, None]:
        """Changes since ``version``."""
        query = {"listOptions.timeoutSeconds": str(max(1, int(timeout_s)))}
        query |= {"listOptions.resourceVersion": version} if version else {}
        query |= {"listOptions.fieldSelector": f"metadata.name={name}"} if name else {}
        query |= {"listOptions.labelSelector": labels} if labels else {}
        path = f"/api/v1/workflow-events/{segment(self.namespace)}"
        try:
            for value in self._stream(path, query, silence_s=min(SILENCE_S, timeout_s + 5)):
                yield event(value)
        except Unavailable as error:
            # So it says that the time is over: as HTTP 429 when nothing has happened.
            if str(error).split(" (")[0] not in ("EOF", "the stream ended: EOF"):
                raise

    def patch(self, name: str, change: Mapping[str, Any]) -> Workflow:
        """argo-server has no such call."""
        raise UsageError(
            "argo-server cannot set labels on a workflow", remedy="give a kubeconfig as well: --kubeconfig, --context"
        )

    def shut_down(self, name: str, strategy: str) -> None:
        """Stop or terminate."""
        self._put(name, strategy.lower())

    def delete(self, name: str) -> None:
        """Pods go with it."""
        self.transport.json("DELETE", f"{self._path}/{segment(name)}")

    def retry(self, name: str) -> Workflow:
        """Run again what did not succeed; Argo has this in its server alone."""
        return self._put(name, "retry")

    def log(self, workflow: str, pod: str, *, follow: bool, since: str = "") -> Iterator[bytes]:
        """The log of the pod's main container."""
        query = {"logOptions.container": "main", "logOptions.timestamps": "true", "podName": pod}
        query |= {"logOptions.follow": "true"} if follow else {}
        found = False
        path = f"{self._path}/{segment(workflow)}/log"
        for value in self._stream(path, query, silence_s=3600.0 if follow else SILENCE_S):
            found = True
            yield str(value.get("content", "")).encode()
        if not found and not follow:
            # It answers with nothing for a pod that is gone, one that does not run yet, and one that printed nothing.
            raise NotFound(f"no log of pod {pod}")
        if not found:
            raise NotStarted

    def template(self, kind: str, name: str) -> dict[str, Any]:
        """A template of the cluster."""
        within = "" if kind.startswith("cluster") else f"/{segment(self.namespace)}"
        return self.transport.json("GET", f"/api/v1/{_TEMPLATES[kind]}{within}/{segment(name)}")

    def artifact(self, workflow: str, node: str, artifact: str) -> Iterator[bytes]:
        """An output artifact's bytes, read by the server."""
        parts = (self.namespace, "workflows", workflow, node, "outputs", artifact)
        return self.transport.chunks("/artifact-files/" + "/".join(map(segment, parts)))

    def _put(self, name: str, verb: str) -> Workflow:
        body = {"namespace": self.namespace, "name": name}
        return self.transport.json("PUT", f"{self._path}/{segment(name)}/{verb}", body=body)

    def _stream(self, path: str, query: Mapping[str, str], *, silence_s: float) -> Iterator[dict[str, Any]]:
        for line in self.transport.lines(path, query=query, silence_s=silence_s):
            if not line.strip():
                continue
            value = json_of(line)
            if error := value.get("error"):
                raise _stream_error(error)
            yield value.get("result") or {}


def _stream_error(error: Any) -> InfrastructureError:
    """An error in the middle of a stream, as gRPC's gateway writes it."""
    message = str(error.get("message") if isinstance(error, dict) else error)
    code = (error.get("http_code") or error.get("code")) if isinstance(error, dict) else None
    if code in (404, 5):
        return NotFound(message)
    if code == 410 or "too old resource version" in message or "Expired" in message:
        return Gone(message)
    return Unavailable(f"the stream ended: {message}")
