"""GitHub and GitLab as far as foxrun talks to them: real HTTP, their paths, their limits, their refusals."""

from __future__ import annotations

import http.server
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN = "t0ken-Swordfish"
SHA = "3f0d9a61c2b84e7f95d1a6c0e83b7742d9f10c55"


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: Any


@dataclass
class State:
    """What a host knows; ``trouble`` are answers (status, headers) that come first, one a request."""

    kind: str
    pulls: list[dict[str, Any]] = field(default_factory=list)
    statuses: list[dict[str, Any]] = field(default_factory=list)
    notes: dict[int, dict[int, dict[str, Any]]] = field(default_factory=dict)
    foreign: set[int] = field(default_factory=set)  # comments that the token may not change
    trouble: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    lost_answers: list[str] = field(default_factory=list)  # methods whose next request is done and not answered
    requests: list[Request] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    lock: Any = field(default_factory=threading.Lock)
    before_create: Any = None

    def note(self, number: int, body: str, *, foreign: bool = False, system: bool = False) -> int:
        with self.lock:
            name = 1 + max((i for notes in self.notes.values() for i in notes), default=100)
            self.notes.setdefault(number, {})[name] = {"id": name, "body": body, "system": system}
            if foreign:
                self.foreign.add(name)
        return name

    def bodies(self, number: int = 7) -> list[str]:
        return [note["body"] for note in self.notes.get(number, {}).values()]


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    state: State

    @property
    def _place(self) -> str:
        return f"{self.server_address[0]!s}:{self.server_address[1]}"

    @property
    def origin(self) -> str:
        return f"http://{self._place}/desk/alpha"

    @property
    def api(self) -> str:
        return f"http://{self._place}/api/{'v3' if self.state.kind == 'github' else 'v4'}"


class Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        self.status, self.message = status, message


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        state = self.server.state
        parts = urlsplit(self.path)
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.loads(data) if data else None
        state.times.append(time.monotonic())
        state.requests.append(Request(self.command, parts.path, parse_qs(parts.query), dict(self.headers), body))
        if state.trouble:
            status, headers = state.trouble.pop(0)
            return self._answer(status, {"message": f"trouble with {TOKEN}"}, headers)
        try:
            path = parts.path.removeprefix("/api/v3" if state.kind == "github" else "/api/v4")
            answer = (_github if state.kind == "github" else _gitlab)(state, state.requests[-1], path)
        except Refused as refused:
            return self._answer(refused.status, {"message": refused.message})
        if self.command in state.lost_answers:
            state.lost_answers.remove(self.command)
            return self._answer(502, {"message": "lost"})
        return self._answer(201 if self.command == "POST" else 200, answer)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

    def _answer(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        data = b"" if value is None else json.dumps(value).encode()
        self.send_response(204 if value is None and status == 200 else status)
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _paged(items: list[Any], request: Request) -> list[Any]:
    size, page = int(request.query["per_page"][0]), int(request.query["page"][0])
    assert size <= 100
    return items[(page - 1) * size : page * size]


def _change(state: State, request: Request, number: int | None, name: int, limit: int) -> Any:
    for notes in state.notes.values():
        if name in notes:
            if name in state.foreign:
                raise Refused(403, "not yours")
            if request.method == "DELETE":
                del notes[name]
                return None
            notes[name]["body"] = _text(request.body, limit)
            return notes[name]
    raise Refused(404, "Not Found")


def _text(body: Any, limit: int) -> str:
    text = body["body"]
    if not 0 < len(text) <= limit:
        raise Refused(422, f"body is too long (maximum is {limit} characters)")
    return str(text)


def _github(state: State, request: Request, path: str) -> Any:
    if request.headers.get("Authorization") != f"Bearer {TOKEN}":
        raise Refused(401, "Bad credentials")
    assert request.headers["Accept"] == "application/vnd.github+json"
    assert request.headers["X-GitHub-Api-Version"] == "2022-11-28"
    assert request.headers["User-Agent"] == "foxrun"
    if not path.startswith("/repos/desk/alpha/"):
        raise Refused(404, "Not Found")
    rest = path.removeprefix("/repos/desk/alpha/")
    if match := re.fullmatch(r"statuses/([0-9a-f]{40})", rest):
        assert request.method == "POST"
        body = request.body
        assert set(body) <= {"state", "context", "description", "target_url"}
        if body["state"] not in ("pending", "success", "failure", "error"):
            raise Refused(422, "bad state")
        if len(body["description"]) > 140:
            raise Refused(422, "description is too long (maximum is 140 characters)")
        if "target_url" in body and not body["target_url"].startswith(("http://", "https://")):
            raise Refused(422, "target_url must use http(s)")
        state.statuses.append({"sha": match[1], **body})
        return {"id": 1}
    if re.fullmatch(r"commits/[0-9a-f]{40}/pulls", rest):
        return _paged(state.pulls, request)
    if match := re.fullmatch(r"pulls/(\d+)", rest):
        return next(pull for pull in state.pulls if pull["number"] == int(match[1]))
    if match := re.fullmatch(r"issues/(\d+)/comments", rest):
        number = int(match[1])
        if request.method == "GET":
            return _paged(list(state.notes.get(number, {}).values()), request)
        return _created(state, number, _text(request.body, 65_536))
    if match := re.fullmatch(r"issues/comments/(\d+)", rest):
        assert request.method in ("PATCH", "DELETE")
        return _change(state, request, None, int(match[1]), 65_536)
    raise Refused(404, "Not Found")


def _created(state: State, number: int, text: str) -> Any:
    if state.before_create is not None:
        state.before_create()
    return {"id": state.note(number, text)}


def _gitlab(state: State, request: Request, path: str) -> Any:
    if request.headers.get("PRIVATE-TOKEN") != TOKEN:
        raise Refused(401, "401 Unauthorized")
    match = re.fullmatch(r"/projects/([^/]+)/(.*)", path)
    if match is None or unquote(match[1]) != "desk/alpha":
        raise Refused(404, "404 Project Not Found")
    rest = match[2]
    if match := re.fullmatch(r"statuses/([0-9a-f]{40})", rest):
        body = request.body
        assert request.method == "POST" and set(body) <= {"state", "name", "description", "target_url", "ref"}
        if body["state"] not in ("pending", "running", "success", "failed", "canceled"):
            raise Refused(400, "state does not have a valid value")
        for name in ("description", "target_url", "name", "ref"):
            if len(body.get(name, "")) > 255:
                raise Refused(400, f"{name} is too long (maximum is 255 characters)")
        last: dict[str, Any] = next((s for s in reversed(state.statuses) if s["name"] == body["name"]), {})
        if body["state"] == "pending" == last.get("state"):
            raise Refused(400, "Cannot transition status via :enqueue from :pending (Reason(s): Status cannot ...)")
        state.statuses.append({"sha": match[1], **body})
        return {"id": 1}
    if re.fullmatch(r"repository/commits/[0-9a-f]{40}/merge_requests", rest):
        return _paged(state.pulls, request)
    if match := re.fullmatch(r"merge_requests/(\d+)", rest):
        return next(pull for pull in state.pulls if pull["iid"] == int(match[1]))
    if match := re.fullmatch(r"merge_requests/(\d+)/notes", rest):
        number = int(match[1])
        if request.method == "GET":
            return _paged(list(state.notes.get(number, {}).values()), request)
        return _created(state, number, _text(request.body, 1_000_000))
    if match := re.fullmatch(r"merge_requests/(\d+)/notes/(\d+)", rest):
        assert request.method in ("PUT", "DELETE")
        return _change(state, request, int(match[1]), int(match[2]), 1_000_000)
    raise Refused(404, "404 Not Found")


@contextmanager
def host(kind: str, prepare: Callable[[Server], object] = lambda _: None) -> Iterator[Server]:
    """A running host of that kind, with the open pull request 7 whose head is SHA; ``prepare``: as of webhook."""
    server = Server(("127.0.0.1", 0), _Handler)
    prepare(server)
    pull = {"number": 7, "iid": 7, "head": {"sha": SHA}, "sha": SHA}
    pull["state"] = "open" if kind == "github" else "opened"
    server.state = State(kind=kind, pulls=[pull])
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
