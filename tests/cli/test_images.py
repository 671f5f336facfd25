"""Which image a tag means: references, registries that answer in each way they may, and what nodes hold."""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from orchestrator import images, registry
from orchestrator.errors import UsageError
from orchestrator.pinning import pinned
from tests.workflows.cases import ALL, OLD, SHA, SYNTHETIC

MANIFEST = json.dumps({"schemaVersion": 2, "config": {}, "layers": []}).encode()
DIGEST = f"sha256:{hashlib.sha256(MANIFEST).hexdigest()}"
OTHER = "sha256:" + "1" * 64
LOGIN = base64.b64encode(b"fox:hunter2").decode()


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("foxrun", "docker.io/library/foxrun:latest"),
        ("lab/foxrun:1", "docker.io/lab/foxrun:1"),
        ("ghcr.io/lab/foxrun:abc", "ghcr.io/lab/foxrun:abc"),
        ("localhost/foxrun:abc", "localhost/foxrun:abc"),
        ("127.0.0.1:5000/a/b/c", "127.0.0.1:5000/a/b/c:latest"),
        (f"registry:5000/foxrun:abc@{DIGEST}", f"registry:5000/foxrun:abc@{DIGEST}"),
        (f"ghcr.io/foxrun@{DIGEST}", f"ghcr.io/foxrun@{DIGEST}"),
    ],
)
def test_references_are_read_as_docker_reads_them(text: str, full: str) -> None:
    assert str(images.parse(text)) == full


@pytest.mark.parametrize("text", ["", "a b", "a:b:c d", "a@sha256:1", "a:" + "x" * 129])
def test_what_is_no_image(text: str) -> None:
    with pytest.raises(UsageError, match="is no image"):
        images.parse(text)


class Registry(http.server.ThreadingHTTPServer):
    """Knows one image; ``way`` is how it wants to be asked."""

    daemon_threads = True

    def __init__(self, way: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.way = way
        self.asked: list[tuple[str, str, str]] = []

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Registry

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        url, way = urlsplit(self.path), self.server.way
        authorization = self.headers.get("Authorization") or ""
        self.server.asked.append((self.command, url.path, authorization))
        if url.path == "/token":
            query = parse_qs(url.query)
            assert (query["service"], query["scope"]) == (["the registry"], ["repository:lab/foxrun:pull"])
            ok = way == "bearer" or authorization == f"Basic {LOGIN}"
            return self._send(200 if ok else 401, json.dumps({"token": "t0ken"}).encode() if ok else b"")
        wanted = {"bearer": "Bearer t0ken", "private": "Bearer t0ken", "basic": f"Basic {LOGIN}"}.get(way, "")
        if authorization != wanted:
            realm = f'Bearer realm="http://{self.server.host}/token",service="the registry"'
            realm += ',scope="repository:lab/foxrun:pull"'
            return self._send(401, b"", challenge='Basic realm="x"' if way == "basic" else realm)
        if way == "moved":
            return self._send(302, b"", location="http://127.0.0.1:1/elsewhere")
        if url.path != "/v2/lab/foxrun/manifests/abc":
            return self._send(404, b"")
        assert "application/vnd.oci.image.index.v1+json" in str(self.headers.get("Accept"))
        return self._send(200, MANIFEST if body else b"", digest="" if way == "silent" else DIGEST)

    def _send(self, status: int, body: bytes, *, challenge: str = "", digest: str = "", location: str = "") -> None:
        self.send_response(status)
        for name, value in (("WWW-Authenticate", challenge), ("Docker-Content-Digest", digest), ("Location", location)):
            if value:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def serve() -> Iterator[Any]:
    servers: list[Registry] = []

    def start(way: str) -> Registry:
        server = Registry(way)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def environ(tmp_path: Path, config: dict[str, Any] | None = None) -> dict[str, str]:
    folder = tmp_path / "docker"
    folder.mkdir(exist_ok=True)
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config), "utf-8")
    return {"DOCKER_CONFIG": str(folder), "PATH": os.environ["PATH"]}


def ask(server: Registry, environment: dict[str, str], tag: str = "abc") -> str:
    return registry.digest_of(images.parse(f"{server.host}/lab/foxrun:{tag}"), environment)


@pytest.mark.parametrize("way", ["open", "silent", "bearer"])
def test_a_public_registry_tells_the_digest(serve: Any, tmp_path: Path, way: str) -> None:
    server = serve(way)
    assert ask(server, environ(tmp_path)) == DIGEST
    assert [asked[0] for asked in server.asked] == {
        "open": ["HEAD"], "silent": ["HEAD", "GET"], "bearer": ["HEAD", "GET", "HEAD"],
    }[way]  # fmt: skip


@pytest.mark.parametrize("way", ["basic", "private"])
def test_a_private_registry_is_asked_with_the_login_of_docker(serve: Any, tmp_path: Path, way: str) -> None:
    server = serve(way)
    with pytest.raises(registry.NotTold, match=f"docker login {server.host}"):
        ask(server, environ(tmp_path))
    assert ask(server, environ(tmp_path, {"auths": {server.host: {"auth": LOGIN}}})) == DIGEST
    program = tmp_path / "bin" / "docker-credential-fox"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nread host\necho "{\\"Username\\": \\"fox\\", \\"Secret\\": \\"hunter2\\"}"\n')
    program.chmod(0o755)
    helped = environ(tmp_path, {"credHelpers": {server.host: "fox"}})
    assert ask(server, helped | {"PATH": f"{program.parent}:{helped['PATH']}"}) == DIGEST


def test_why_a_registry_does_not_tell(serve: Any, tmp_path: Path) -> None:
    server = serve("open")
    with pytest.raises(registry.NotTold, match="it has no such image"):
        ask(server, environ(tmp_path), tag="other")
    with pytest.raises(registry.NotTold, match="it answers 302"):
        ask(serve("moved"), environ(tmp_path))
    with pytest.raises(registry.NotTold, match=r"127\.0\.0\.1:1 does not answer: .*refused"):
        registry.digest_of(images.parse("127.0.0.1:1/lab/foxrun:abc"), environ(tmp_path))
    for broken in ("{", "[]", '{"auths": 3}', '{"credsStore": "../../evil"}'):
        (tmp_path / "docker" / "config.json").write_text(broken, "utf-8")
        assert ask(server, environ(tmp_path)) == DIGEST


def node(name: str, *names: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "status": {"images": [{"names": list(names)}, {"names": ["<none>@<none>"]}, {}]},
    }


def test_what_nodes_hold() -> None:
    wanted = images.parse("ghcr.io/lab/foxrun:abc")
    name = "ghcr.io/lab/foxrun"
    holds = node("one", f"{name}@{DIGEST}", f"{name}:abc")
    assert images.digest_on([node("none"), holds, {}], wanted) == DIGEST
    assert images.digest_on([node("one", f"{name}:abc")], wanted) == "", "loaded by hand, never pulled"
    assert images.digest_on([node("one", f"{name}@{DIGEST}", f"{name}:other")], wanted) == ""
    assert images.digest_on(
        [node("one", f"docker.io/library/x@{DIGEST}", "docker.io/library/x:1")], images.parse("x:1")
    )
    with pytest.raises(
        UsageError, match=r"nodes hold different images of ghcr.io/lab/foxrun:abc: sha256:1{12} on two, .* on one"
    ):
        images.digest_on([holds, node("two", f"{name}@{OTHER}", f"{name}:abc")], wanted)


def test_images_are_pinned_where_somebody_tells() -> None:
    said: list[str] = []
    p = replace(ALL, image="localhost/trainer:{sha}", tools_image="localhost/tools:1", worktree=None)
    known = {"localhost/trainer:" + SHA: DIGEST, "localhost/tools:1": OTHER}
    made = pinned(p, how="auto", on_nodes=lambda reference: known.get(str(reference), ""), say=said.append)
    assert made.images == (
        f"localhost/trainer:{SHA}@{DIGEST}",
        f"localhost/trainer:{OLD}",
        f"localhost/tools:1@{OTHER}",
    )
    assert said == [
        f"image localhost/trainer:{OLD} stays a tag: localhost is no registry, and no node names its digest"
    ]
    with pytest.raises(UsageError, match="stays a tag"):
        pinned(SYNTHETIC, how="require", on_nodes=lambda _: "", say=said.append)
    assert pinned(p, how="off", on_nodes=lambda _: DIGEST, say=said.append) == p
    given = replace(SYNTHETIC, image=f"ghcr.io/lab/foxrun@{DIGEST}")
    assert pinned(given, how="require", on_nodes=lambda _: "", say=said.append) == given
