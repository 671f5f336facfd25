"""What `foxrun doctor` asks of a cluster, and nobody else does: who we are, what we may do, what is installed."""

from __future__ import annotations

import contextlib
import dataclasses
import time
import uuid
from collections.abc import Mapping
from typing import Any

from orchestrator.engines.argo.api import GROUP, Api
from orchestrator.engines.argo.credentials import Access, Credentials
from orchestrator.engines.argo.transport import Forbidden, NotFound, Transport, segment
from orchestrator.errors import FoxrunError

DEFINITIONS = ("workflows", "workflowtemplates", "cronworkflows", "workflowtaskresults")
_AUTHORIZATION = "/apis/authorization.k8s.io/v1"
_POLL_S = 0.2


@dataclasses.dataclass(frozen=True)
class Right:
    """One thing to do in a namespace: ``create`` of ``workflows`` in the API group ``argoproj.io``."""

    verb: str
    resource: str
    group: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}"

    def attributes(self, namespace: str) -> dict[str, str]:
        """As Kubernetes' access reviews take it."""
        resource, _, part = self.resource.partition("/")
        said = {"namespace": namespace, "verb": self.verb, "group": self.group, "resource": resource}
        return said | ({"subresource": part} if part else {})


class KubeProbes:
    """Questions to the Kubernetes API; Forbidden where an account may not ask them."""

    def __init__(self, transport: Transport, namespace: str) -> None:
        self.transport = transport
        self.namespace = namespace

    def version(self) -> str:
        """The API server's own."""
        return str(self._get("/version").get("gitVersion") or "unknown")

    def clock_ahead_s(self) -> float:
        """Seconds that the API server's clock is ahead of ours."""
        return self.transport.clock_ahead_s("/version")

    def me(self) -> str:
        """The name under which the API server knows us; "" where it is too old to say."""
        with contextlib.suppress(FoxrunError):
            answer = self._post("/apis/authentication.k8s.io/v1", "selfsubjectreviews", "SelfSubjectReview", {})
            return str(answer["status"]["userInfo"]["username"])
        return ""

    def may(self, right: Right) -> bool:
        """Whether we may do it, by SelfSubjectAccessReview."""
        spec = {"resourceAttributes": right.attributes(self.namespace)}
        return self._allowed(self._post(_AUTHORIZATION, "selfsubjectaccessreviews", "SelfSubjectAccessReview", spec))

    def account_may(self, account: str, right: Right) -> bool:
        """Whether a service account of the namespace may do it. Raises Forbidden: few may ask that of others."""
        user = f"system:serviceaccount:{self.namespace}:{account}"
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{self.namespace}", "system:authenticated"]
        spec = {"user": user, "groups": groups, "resourceAttributes": right.attributes(self.namespace)}
        return self._allowed(self._post(_AUTHORIZATION, "subjectaccessreviews", "SubjectAccessReview", spec))

    def argo_kinds(self) -> set[str]:
        """The resources of Argo that the API server serves, by discovery, which every account may read."""
        try:
            return {str(item.get("name")) for item in self._get(f"/apis/{GROUP}").get("resources") or []}
        except NotFound:
            return set()

    def definition(self, plural: str) -> dict[str, Any]:
        """The CRD behind one of Argo's resources; Forbidden without the right to see such."""
        return self._get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.argoproj.io")

    def object(self, path: str) -> dict[str, Any] | None:
        """What is at a path of the namespace, such as `serviceaccounts/foxrun`; None where nothing is."""
        try:
            return self._get(f"/api/v1/namespaces/{segment(self.namespace)}/{path}".rstrip("/"))
        except NotFound:
            return None

    def templates(self) -> set[str]:
        """Names of the WorkflowTemplates of the namespace."""
        answer = self._get(f"/apis/{GROUP}/namespaces/{segment(self.namespace)}/workflowtemplates")
        return {str(item["metadata"]["name"]) for item in answer.get("items") or []}

    def _get(self, path: str) -> dict[str, Any]:
        return self.transport.json("GET", path, patient=False)

    def _post(self, api: str, plural: str, kind: str, spec: Mapping[str, Any]) -> dict[str, Any]:
        body = {"apiVersion": api.removeprefix("/apis/"), "kind": kind, "spec": spec}
        return self.transport.json("POST", f"{api}/{plural}", body=body, patient=False)

    @staticmethod
    def _allowed(answer: Mapping[str, Any]) -> bool:
        return bool((answer.get("status") or {}).get("allowed"))


class ServerProbes:
    """Questions to argo-server."""

    def __init__(self, transport: Transport, namespace: str) -> None:
        self.transport = transport
        self.namespace = namespace

    def version(self) -> str:
        """Argo's."""
        return str(self.transport.json("GET", "/api/v1/version", patient=False).get("version") or "unknown")

    def lets_in_anybody(self) -> bool:
        """Whether it answers without a token, as it does in auth mode `server`."""
        nobody = Transport(_Nobody(self.transport.credentials))
        try:
            nobody.json("GET", f"/api/v1/workflows/{segment(self.namespace)}?listOptions.limit=1", patient=False)
        except FoxrunError as error:
            # "Forbidden": it acts with rights of its own, and these do not reach here.
            return isinstance(error, Forbidden)
        return True


@dataclasses.dataclass(frozen=True)
class _Nobody:
    """The same server without credentials."""

    credentials: Credentials

    def load(self) -> Access:
        return dataclasses.replace(self.credentials.load(), headers=dict)


def taken_up_s(api: Api, *, patience_s: float) -> float | None:
    """Seconds until Argo's controller took up a Workflow of ours; None: not in ``patience_s``.

    The Workflow suspends itself at once, so it has no pod; it is deleted before this returns.
    """
    name = f"foxrun-doctor-{uuid.uuid4().hex[:10]}"
    api.create(_suspending(name, api.namespace))
    began = time.monotonic()
    try:
        while time.monotonic() - began < patience_s:
            if (api.get(name).get("status") or {}).get("phase"):
                return time.monotonic() - began
            time.sleep(_POLL_S)
        return None
    finally:
        with contextlib.suppress(FoxrunError):
            api.delete(name)


def _suspending(name: str, namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": GROUP,
        "kind": "Workflow",
        "metadata": {"name": name, "namespace": namespace, "labels": {"foxrun.dev/kind": "doctor"}},
        "spec": {
            "entrypoint": "wait",
            # Ends and goes by itself, should whoever asked be killed meanwhile.
            "activeDeadlineSeconds": 60,
            "ttlStrategy": {"secondsAfterCompletion": 60},
            "templates": [{"name": "wait", "suspend": {}}],
        },
    }
