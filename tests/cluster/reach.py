"""Servers of a test that pods reach: their sockets lie in the cluster's own network namespace."""

from __future__ import annotations

import ctypes
import http.server
import os
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest

NETWORK = Path("/run/netns/foxrun-cluster")
_NEW_NETWORK = 0x40000000  # CLONE_NEWNET of sched.h
T = TypeVar("T")


def inside(call: Callable[[], T]) -> T:
    """Call in that namespace: in a thread of its own, which goes there and ends. Sockets stay where they were made."""
    if not NETWORK.exists() or os.geteuid() != 0:
        pytest.skip("no network of the cluster's own to serve in")

    def there() -> T:
        with NETWORK.open() as namespace:
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), _NEW_NETWORK):
                raise OSError(ctypes.get_errno(), "setns")
        return call()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(there).result()


def listening() -> socket.socket:
    """A socket that listens at the address by which pods reach this machine, on a free port."""
    host = os.environ["FOXRUN_S3_POD_ENDPOINT"].removeprefix("http://").partition(":")[0]
    return inside(lambda: socket.create_server((host, 0)))


def serve_pods(server: http.server.ThreadingHTTPServer) -> None:
    """Let a server that is about to serve on the loopback interface serve pods instead."""
    server.socket.close()
    server.socket = listening()
    server.server_address = server.socket.getsockname()


def mail_controller(controllers: Any, handler: Any) -> Any:
    """An SMTP server of aiosmtpd that pods reach; not started."""
    there = listening()
    host, port = there.getsockname()

    class Controller(controllers.Controller):  # type: ignore[misc]
        def _create_server(self) -> Any:
            return self.loop.create_server(self._factory_invoker, sock=there)

        def _trigger_server(self) -> None:
            inside(super()._trigger_server)

    return Controller(handler, hostname=host, port=port)
