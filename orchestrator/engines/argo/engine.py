"""The argo engine: the same Workflows as the local one runs, on a cluster."""

from __future__ import annotations

import builtins
import contextlib
import copy
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from orchestrator.engines.argo import logs as pod_logs
from orchestrator.engines.argo import resubmission
from orchestrator.engines.argo.api import Api
from orchestrator.engines.argo.argo_server import ArgoServerApi
from orchestrator.engines.argo.artifacts import Artifacts, Store
from orchestrator.engines.argo.kubernetes_api import KubernetesApi
from orchestrator.engines.argo.nodes import is_completed, name_of, phase_of, uid_of
from orchestrator.engines.argo.placement import Waiting
from orchestrator.engines.argo.transport import Conflict, NotFound
from orchestrator.engines.argo.watch import PAGE, Seen, not_found, watch, watch_many, whole
from orchestrator.engines.base import LogLine, Workflow
from orchestrator.errors import InfrastructureError, UsageError, WorkflowExists
from orchestrator.images import Reference, digest_on

DEADLINE_S = 172_800.0
GRACE_S = 600.0
DELETE_S = 30.0
# Where the local engine finds the commits: a path of this machine, of no use and no business of a cluster.
_LOCAL_ANNOTATION = "foxrun.dev/repository"


class ArgoEngine:
    """Implements engines.base.Engine, and what only clusters have.

    Args:
        api: the way to the cluster.
        cache: where copies of artifacts are kept.
        server: argo-server, where there is one besides the Kubernetes API: it retries, and reads artifacts.
        store: the bucket of Argo's artifact repository, where we may read and write it.
        grace_s: how long pods that no node takes are waited for.
        deadline_s: how long logs are followed at most.
    """

    name = "argo"
    options: tuple[str, ...] = ()  # of this command line that led here: what it prints to run next needs them too

    def __init__(
        self,
        api: Api,
        cache: Path,
        *,
        server: ArgoServerApi | None = None,
        store: Store | None = None,
        grace_s: float = GRACE_S,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self.api = api
        self.server = api if isinstance(api, ArgoServerApi) else server
        self.artifacts = Artifacts(cache, store=store, server=self.server)
        self.grace_s = grace_s
        self.deadline_s = deadline_s

    def put_input(self, path: Path) -> str:
        """Store a local file once, under its sha256; return the key for `s3.key`."""
        return self.artifacts.put_input(Path(path))

    def submit(self, workflow: Workflow) -> str:
        """Send a workflow, or attach to the equal one of the same name; return the name.

        Raises WorkflowExists, or UsageError with the server's words when the Workflow is wrong.
        """
        sent = self._prepared(workflow)
        try:
            return name_of(self.api.create(sent))
        except Conflict:
            name = name_of(sent)
            if not name:
                raise
            if not resubmission.is_same(self.get(name), sent):
                raise WorkflowExists(
                    f"workflow {name!r} exists already in {self.api.where} and is another one",
                    remedy=f"choose another --name, or foxrun delete {name}",
                ) from None
            return name

    def check(self, workflow: Workflow) -> Workflow:
        """What the server would store; nothing is (`--dry-run=server`). argo-server looks closer, so it comes first."""
        return (self.server or self.api).create(self._prepared(workflow), dry_run=True)

    def _prepared(self, workflow: Workflow) -> Workflow:
        sent = {key: copy.deepcopy(value) for key, value in workflow.items() if key != "status"}
        sent["metadata"].setdefault("annotations", {}).pop(_LOCAL_ANNOTATION, None)
        sent["metadata"]["namespace"] = self.api.namespace
        return resubmission.signed(sent)

    def from_template(self, reference: str, parameters: Mapping[str, str], *, name: str | None = None) -> str:
        """Start a workflow from `workflowtemplate/NAME` (or clusterworkflowtemplate, cronworkflow); return its name.

        Raises UsageError for a parameter that the template does not have.
        """
        return self.submit(self.made_from(reference, parameters, name=name))

    def made_from(self, reference: str, parameters: Mapping[str, str], *, name: str | None = None) -> Workflow:
        """The Workflow that ``from_template`` submits."""
        return resubmission.from_template(self.api, reference, parameters, name=name)

    def get(self, name: str) -> Workflow:
        """Return the workflow with its status; raises WorkflowNotFound."""
        try:
            return self._whole(self.api.get(name))
        except NotFound as error:
            raise not_found(name, self.api.where, error) from None

    def list(self, labels: Mapping[str, str] | None = None) -> list[Workflow]:
        """Return the workflows that carry all these labels, newest first."""
        # By uid: between two pages of argo-server a new workflow moves the others on.
        found = builtins.list({uid_of(workflow): workflow for workflow in self._pages(labels or {})}.values())
        found.sort(key=name_of)
        found.sort(key=lambda workflow: str(workflow["metadata"].get("creationTimestamp") or ""), reverse=True)
        return found

    def _pages(self, labels: Mapping[str, str]) -> Iterator[Workflow]:
        token = ""
        while True:
            page = self.api.page(_selector(labels), limit=PAGE, token=token)
            yield from map(self._whole, page.items)
            token = page.token
            if not token:
                return

    def _whole(self, workflow: Workflow) -> Workflow:
        return whole(workflow, self.server)

    def watch(self, name: str, *, deadline_s: float) -> Iterator[Workflow]:
        """Yield the workflow at once and after each change; end when it is completed.

        Raises DeadlinePassed, WorkflowDeleted, Unschedulable when nothing of it can start.
        """
        return watch(self.api, name, deadline_s=deadline_s, waiting=self._waiting(), server=self.server)

    def _waiting(self) -> Waiting:
        return Waiting(self.grace_s, self.api)

    def watch_many(self, labels: Mapping[str, str], *, deadline_s: float) -> Iterator[Seen]:
        """Yield every workflow with these labels in short, then each change of one, over one watch."""
        return watch_many(self.api, _selector(labels), deadline_s=deadline_s)

    def logs(self, name: str, *, node: str | None = None, follow: bool = False) -> Iterator[LogLine]:
        """Yield what the pods printed; with `follow`, all at once until the workflow is completed."""
        archive = self.artifacts.log
        if not follow:
            yield from pod_logs.read(self.api, self.get(name), node=node, archive=archive)
            return
        changes = self.watch(name, deadline_s=self.deadline_s)
        yield from pod_logs.follow(self.api, name, changes, node=node, archive=archive, deadline_s=self.deadline_s)

    def stop(self, name: str) -> None:
        """End the running pods, run the exit handler, and fail the workflow."""
        self._shut_down(name, "Stop")

    def terminate(self, name: str) -> None:
        """End the running pods and the workflow, without its exit handler."""
        self._shut_down(name, "Terminate")

    def _shut_down(self, name: str, strategy: str) -> None:
        workflow = self.get(name)
        if is_completed(workflow):
            raise UsageError(f"workflow {name!r} does not run; it is {phase_of(workflow)}")
        self.api.shut_down(name, strategy)

    def retry(self, name: str) -> str:
        """Run again what did not succeed, keep what did; return the name. Only argo-server can."""
        workflow = self.get(name)
        if phase_of(workflow) == "Succeeded":
            raise UsageError(f"workflow {name!r} has succeeded; there is nothing to retry", remedy="submit it anew")
        if not is_completed(workflow):
            raise UsageError(f"workflow {name!r} is running", remedy=f"foxrun watch {name}, or foxrun stop {name}")
        if self.server is None:
            raise UsageError(
                f"workflow {name!r} cannot be retried: Argo does that in its argo-server, and foxrun knows none",
                remedy=f"foxrun resubmit {name} runs it anew from its beginning; or set argo_server",
            )
        again = self.server.retry(name)
        self._until_it_runs(name, str(again.get("metadata", {}).get("resourceVersion") or ""))
        return name

    def _until_it_runs(self, name: str, version: str) -> None:
        """Wait until the way that we watch by knows of the retry, so that nobody takes the old end for the new one."""
        give_up_at = time.monotonic() + DELETE_S
        while is_completed(self.get(name)) and time.monotonic() < give_up_at:
            if self.get(name)["metadata"].get("resourceVersion") == version:
                return
            time.sleep(0.2)

    def resubmit(self, name: str) -> str:
        """Start the same Workflow anew under a new name; return that."""
        return self.submit(resubmission.again(self.get(name)))

    def delete(self, name: str, *, force: bool = False) -> None:
        """Remove the workflow with its pods and artifacts; one that runs only with `force`.

        Raises InfrastructureError when the server keeps it, which a finalizer does; `force` removes those too.
        """
        workflow = self.get(name)
        if not is_completed(workflow) and not force:
            raise UsageError(f"workflow {name!r} is running", remedy=f"foxrun stop {name}, or delete it with --force")
        with contextlib.suppress(NotFound):
            self.api.delete(name)
        self._until_gone(name, uid_of(workflow), force=force)
        self.artifacts.delete(uid_of(workflow))

    def _until_gone(self, name: str, uid: str, *, force: bool) -> None:
        give_up_at = time.monotonic() + DELETE_S
        freed = False
        while True:
            try:
                workflow = self.api.get(name)
            except NotFound:
                return
            if uid_of(workflow) != uid:
                return
            keepers = workflow["metadata"].get("finalizers") or []
            if keepers and force and not freed:
                self.api.patch(name, {"metadata": {"finalizers": None}})
                freed = True
            if time.monotonic() > give_up_at:
                raise InfrastructureError(
                    f"workflow {name!r} is marked for deletion, and kept by {', '.join(keepers) or 'the server'}"
                    + (f": {message}" if (message := _collection_trouble(workflow)) else ""),
                    remedy=f"mend the bucket's credentials, or foxrun delete --force {name}: it leaves the artifacts",
                )
            time.sleep(0.2)

    def artifact(self, name: str, node: str, artifact: str) -> Path:
        """Return a local copy of an output artifact of a finished node."""
        return self.artifacts.fetch(self.get(name), node, artifact)

    def address(self, name: str, node: str, artifact: str) -> str:
        """Where an output artifact lies, as `foxrun compare` takes it; nothing is fetched."""
        return self.artifacts.address(self.get(name), node, artifact)

    def image_digest(self, reference: Reference) -> str:
        """The digest under which the nodes hold an image; "" where none says one, or we may not see nodes."""
        if not isinstance(self.api, KubernetesApi):
            return ""
        try:
            return digest_on(self.api.nodes(), reference)
        except InfrastructureError:
            return ""

    def set_labels(self, name: str, labels: Mapping[str, str]) -> None:
        """Set labels on the workflow. Raises UsageError through argo-server, which has no such call."""
        self.api.patch(name, {"metadata": {"labels": dict(labels)}})


def _selector(labels: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def _collection_trouble(workflow: Mapping[str, Any]) -> str:
    """Why Argo's artifact collection cannot do its work, in its own words."""
    conditions = (workflow.get("status") or {}).get("conditions") or []
    return "; ".join(str(c.get("message")) for c in conditions if c.get("type") == "ArtifactGCError")
