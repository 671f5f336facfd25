"""S3 servers for the tests: a real one of the test's own, a proxy that harms what passes, AWS's own answers."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ACCESS, SECRET = "tests-access-key", "tests-secret-never-to-be-seen"
BUCKET = "bucket"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Gateway:
    """versitygw over a folder; it can be stopped and started again."""

    def __init__(self, folder: Path, region: str = "us-east-1") -> None:
        program = shutil.which("versitygw")
        if program is None:
            pytest.skip("no versitygw on PATH (the environment of the test cluster has it)")
        self._program, self._folder, self._region = program, folder, region
        (folder / BUCKET).mkdir(parents=True)
        self._meta = folder.with_name("metadata")  # ETags; not every file system has attributes
        (self._meta / BUCKET).mkdir(parents=True)
        self.port = free_port()
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        command = [self._program, "--port", f"127.0.0.1:{self.port}", "--access", ACCESS, "--secret", SECRET]
        command += ["--region", self._region, "--quiet", "posix", "--sidecar", str(self._meta), str(self._folder)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 0.1):
                return
            time.sleep(0.05)
        self.stop()
        raise AssertionError("versitygw did not start")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


class Proxy:
    """Passes TCP on to a server. ``cuts``: how many bytes of an answer pass before each of the next connections ends.

    ``stalls``: instead of ending, the connection says nothing more.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self.cuts: list[int] = []
        self.stalls = False
        self.connections = 0
        self._closed = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._closed.set()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._target)) as server:
            forward = threading.Thread(target=self._pump, args=(client, server), daemon=True)
            forward.start()
            left = self.cuts.pop(0) if self.cuts else None
            with contextlib.suppress(OSError):
                while data := server.recv(1 << 16):
                    if left is not None and len(data) >= left:
                        client.sendall(data[:left])
                        if self.stalls:
                            self._closed.wait(20)
                        break
                    client.sendall(data)
                    left = None if left is None else left - len(data)
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)  # close alone says nothing while the other thread reads

    @staticmethod
    def _pump(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def answering(status: int, body: bytes, headers: dict[str, str] | None = None) -> Iterator[str]:
    """The endpoint of a server that gives every request one answer: the bytes that AWS documents."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def environment(**extra: str) -> dict[str, str]:
    """The environment of a foxrun that knows nothing of the machine's own S3 settings."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "FOXRUN_"))}
    nowhere = {
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    return kept | nowhere | extra
