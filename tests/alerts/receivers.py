"""A webhook that records what it is sent, and answers as it is told."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Webhook(http.server.ThreadingHTTPServer):
    """`answers` are the status codes of the next requests, the last for all after them; 0 never answers."""

    daemon_threads = True

    def __init__(self, answers: list[int]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = answers
        self.received: list[tuple[str, dict[str, str], Any]] = []
        self.times: list[float] = []
        self.closing = threading.Event()

    @property
    def url(self) -> str:
        return f"json://{self.server_address[0]!s}:{self.port}/"

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Webhook

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.times.append(time.monotonic())
        self.server.received.append((self.path, dict(self.headers), json.loads(body)))
        answers = self.server.answers
        status = answers.pop(0) if len(answers) > 1 else answers[0]
        if status == 0:
            self.server.closing.wait(30)
            return
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def webhook(*answers: int, prepare: Callable[[Webhook], object] = lambda _: None) -> Iterator[Webhook]:
    """A running webhook on the loopback interface, unless ``prepare`` lets it wait elsewhere."""
    server = Webhook(list(answers) or [200])
    prepare(server)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()
