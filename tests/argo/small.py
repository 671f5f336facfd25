"""Workflows of a few seconds, and a proxy between us and the cluster whose connections can be cut."""

import contextlib
import socket
import threading
import uuid
from collections.abc import Iterator
from typing import Any

LABEL = "foxrun.dev/test"


def unique() -> str:
    return f"test-argo-{uuid.uuid4().hex[:10]}"


def pair(script: str, *, name: str | None = None, legs: str = "ab", **spec: Any) -> dict[str, Any]:
    """Legs beside each other that run `sh -c SCRIPT`."""
    name = name or unique()
    leg = {
        "name": "leg",
        "container": {
            "image": "localhost/busybox:1",
            "command": ["sh", "-c", script],
            "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
        },
    }
    tasks = [{"name": f"leg-{leg}", "template": "leg"} for leg in legs]
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": name, "labels": {LABEL: name}},
        "spec": {
            "entrypoint": "main",
            "archiveLogs": True,
            "templates": [{"name": "main", "dag": {"tasks": tasks}}, leg],
            **spec,
        },
    }


def suspended(label: str) -> dict[str, Any]:
    """A workflow that waits to be resumed: it is listed and watched, and needs no pod."""
    workflow = pair("true", suspend=True)
    workflow["metadata"]["labels"][LABEL] = label
    return workflow


def container(workflow: dict[str, Any]) -> dict[str, Any]:
    return workflow["spec"]["templates"][1]["container"]


class Proxy:
    """Carries bytes to one port of this machine; ``cut`` ends all connections as a load balancer does."""

    def __init__(self, port: int) -> None:
        self.target = port
        self.accepted = 0
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> int:
        """Returns how many connections there were."""
        pairs, self._pairs = self._pairs, []
        for ends in pairs:
            for end in ends:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
        return len(pairs)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            server = socket.create_connection(("127.0.0.1", self.target))
            self._pairs.append((client, server))
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()

    @staticmethod
    def _carry(source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@contextlib.contextmanager
def proxy(port: int) -> Iterator[Proxy]:
    made = Proxy(port)
    try:
        yield made
    finally:
        made.close()
