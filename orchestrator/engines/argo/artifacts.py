"""What pods stored: read from the bucket where we may, else through argo-server, which reads it for us."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from orchestrator.engines.argo.argo_server import ArgoServerApi
from orchestrator.engines.argo.nodes import means, name_of, uid_of
from orchestrator.engines.argo.transport import NotFound
from orchestrator.errors import InfrastructureError, UsageError, WorkflowNotFound

LOGS = "main-logs"


class Store(Protocol):
    """What is used of stores/s3.py."""

    def put_input(self, source: Path) -> str:
        """Store a file under its sha256; returns the key."""
        ...

    def url(self, key: str) -> str:
        """The address that people give to `foxrun compare`."""
        ...

    def read(self, key: str) -> bytes:
        """An object, whole."""
        ...

    def fetch(self, key: str, target: Path) -> None:
        """An object, or everything below it, at ``target``."""
        ...

    def delete(self, key: str) -> None:
        """Remove what is stored under the key and below it."""
        ...

    def with_bucket(self, bucket: str) -> Store:
        """The same server, another bucket."""
        ...


class Artifacts:
    """Artifacts of the workflows of one cluster; copies of them lie in ``cache``."""

    def __init__(self, cache: Path, *, store: Store | None, server: ArgoServerApi | None) -> None:
        self.cache = cache
        self.store = store
        self.server = server

    def put_input(self, path: Path) -> str:
        """Store a local file for the pods; returns the key. Raises UsageError without a bucket."""
        if self.store is None:
            raise UsageError(
                f"{path} cannot be handed to the cluster: foxrun knows no bucket",
                remedy="set s3_bucket (FOXRUN_S3_BUCKET) to the bucket of Argo's artifact repository, and its endpoint",
            )
        return self.store.put_input(path)

    def fetch(self, workflow: Mapping[str, Any], node: str, name: str) -> Path:
        """A local copy of a node's output artifact, new each time: a retry may have replaced it.

        Raises WorkflowNotFound when the node has none of that name.
        """
        node_id, artifact = self._find(workflow, node, name)
        key = _key(artifact)
        target = self.cache / uid_of(workflow) / node_id / name / Path(key or name).name
        store = self._store_of(artifact)
        if store is not None and key:
            store.fetch(key, target)
        else:
            _write(target, self._from_server(workflow, node_id, name))
        return target

    def address(self, workflow: Mapping[str, Any], node: str, name: str) -> str:
        """Where a person finds it: an s3:// address, or its key where the bucket is not known."""
        _, artifact = self._find(workflow, node, name)
        store = self._store_of(artifact)
        return store.url(_key(artifact)) if store is not None else _key(artifact)

    def log(self, workflow: Mapping[str, Any], node_id: str) -> list[bytes] | None:
        """The lines of a node's archived log; None when there is none, or no way to it."""
        try:
            _, artifact = self._find(workflow, node_id, LOGS)
            store = self._store_of(artifact)
            if store is not None and _key(artifact):
                data = store.read(_key(artifact))
            elif self.server is not None:
                data = b"".join(self._from_server(workflow, node_id, LOGS))
            else:
                return None
        except (InfrastructureError, WorkflowNotFound):
            return None
        return data.splitlines()

    def delete(self, uid: str) -> None:
        """Remove what a workflow stored, and our copies."""
        import shutil

        shutil.rmtree(self.cache / uid, ignore_errors=True)
        if self.store is not None and uid:
            self.store.delete(uid)

    def _find(self, workflow: Mapping[str, Any], node: str, name: str) -> tuple[str, dict[str, Any]]:
        nodes = (workflow.get("status") or {}).get("nodes") or {}
        chosen = [node] if node in nodes else [node_id for node_id, item in nodes.items() if means(item, node)]
        for node_id in reversed(chosen):
            for artifact in (nodes[node_id].get("outputs") or {}).get("artifacts") or []:
                if artifact.get("name") == name:
                    return node_id, artifact
        raise WorkflowNotFound(f"node {node!r} of workflow {name_of(workflow)!r} has no output artifact {name!r}")

    def _store_of(self, artifact: Mapping[str, Any]) -> Store | None:
        bucket = str((artifact.get("s3") or {}).get("bucket") or "")
        return self.store.with_bucket(bucket) if self.store is not None and bucket else self.store

    def _from_server(self, workflow: Mapping[str, Any], node_id: str, name: str) -> Iterator[bytes]:
        if self.server is None:
            raise InfrastructureError(
                f"artifact {name!r} cannot be read: foxrun knows neither its bucket nor an argo-server",
                remedy="set s3_bucket and s3_endpoint, or argo_server",
            )
        try:
            yield from self.server.artifact(name_of(workflow), node_id, name)
        except NotFound as error:
            raise WorkflowNotFound(f"artifact {name!r} of {node_id} is not stored: {error}") from None


def _key(artifact: Mapping[str, Any]) -> str:
    return str((artifact.get("s3") or {}).get("key") or "")


def _write(target: Path, chunks: Iterator[bytes]) -> None:
    beside = target.with_name(f".{target.name}.{os.urandom(6).hex()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("xb") as stream:
            for chunk in chunks:
                stream.write(chunk)
        beside.replace(target)
    except OSError as error:
        raise InfrastructureError(f"{target} cannot be written: {error.strerror}", remedy="make room") from None
    finally:
        beside.unlink(missing_ok=True)
