"""A registry by its HTTP API (OCI distribution specification 1.1): which digest a tag has.

Credentials are those of `docker login`: DOCKER_CONFIG, its helpers, and for a token the registry's own service. They go
to no other host, and over HTTPS alone but on this machine.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from email.message import Message
from pathlib import Path

from orchestrator.errors import InfrastructureError
from orchestrator.images import DOCKER_HUB, Reference

TIMEOUT_S = 3.0
_ACCEPT = ", ".join((
    "application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json",
))  # fmt: skip
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_MANIFEST_LIMIT = 4 << 20  # the specification's
_HELPER = re.compile(r"[\w.-]+")


class NotTold(InfrastructureError):
    """The registry gives no digest; the text says why."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def digest_of(reference: Reference, environ: Mapping[str, str] | None = None) -> str:
    """The digest that the registry has under a tag. Raises NotTold."""
    environ = os.environ if environ is None else environ
    host = "registry-1.docker.io" if reference.host == DOCKER_HUB else reference.host
    url = f"{_scheme(host)}://{host}/v2/{reference.name}/manifests/{reference.tag}"
    login = _login(reference.host, environ)
    status, headers, _ = _ask("HEAD", url, {"Accept": _ACCEPT})
    authorization = ""
    if status == 401:
        authorization = _authorize(headers, reference, login)
        status, headers, _ = _ask("HEAD", url, {"Accept": _ACCEPT, "Authorization": authorization})
    if status != 200:
        why = {401: "it wants a login", 403: "access is denied", 404: "it has no such image"}
        raise NotTold(f"{host}: {why.get(status, f'it answers {status}')}")
    digest = headers.get("Docker-Content-Digest") or ""
    if not digest:  # registries may leave it out of an answer to HEAD
        head = {"Accept": _ACCEPT, **({"Authorization": authorization} if authorization else {})}
        status, _, body = _ask("GET", url, head)
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}" if status == 200 else ""
    if not _DIGEST.fullmatch(digest):
        raise NotTold(f"{host}: it says no sha256 digest")
    return digest


def _scheme(host: str) -> str:
    # As Docker does it.
    return "http" if host.split(":")[0] in ("localhost", "127.0.0.1") else "https"


def _ask(method: str, url: str, headers: Mapping[str, str]) -> tuple[int, Message, bytes]:
    request = urllib.request.Request(url, method=method, headers=dict(headers))  # noqa: S310  (http or https, above)
    opener = urllib.request.build_opener(_NoRedirect)
    host = urllib.parse.urlsplit(url).netloc
    try:
        with opener.open(request, timeout=TIMEOUT_S) as response:
            return response.status, response.headers, response.read(_MANIFEST_LIMIT)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, b""
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise NotTold(f"{host} does not answer: {reason}") from None


def _authorize(headers: Message, reference: Reference, login: str) -> str:
    """The Authorization that a challenge asks for."""
    challenge = headers.get("WWW-Authenticate") or ""
    scheme, _, rest = challenge.partition(" ")
    if scheme.lower() == "basic" and login:
        return f"Basic {login}"
    fields = dict(re.findall(r'(\w+)="([^"]*)"', rest))
    realm = urllib.parse.urlsplit(fields.get("realm", ""))
    if scheme.lower() != "bearer" or realm.scheme != _scheme(realm.netloc):
        raise NotTold(f"{reference.host}: it wants a login (docker login {reference.host})")
    query = {"scope": fields.get("scope") or f"repository:{reference.name}:pull"}
    query |= {"service": fields["service"]} if "service" in fields else {}
    url = urllib.parse.urlunsplit(realm._replace(query=urllib.parse.urlencode(query), fragment=""))
    status, _, body = _ask("GET", url, {"Authorization": f"Basic {login}"} if login else {})
    with contextlib.suppress(ValueError, AttributeError):
        answer = json.loads(body) if status == 200 else {}
        if token := answer.get("token") or answer.get("access_token"):
            return f"Bearer {token}"
    raise NotTold(f"{reference.host}: it gives no token (docker login {reference.host})")


def _login(host: str, environ: Mapping[str, str]) -> str:
    """User and password of `docker login`, as Basic authorization has them; "" without."""
    folder = environ.get("DOCKER_CONFIG") or str(Path(environ.get("HOME", "~")).expanduser() / ".docker")
    keys = [host, f"https://{host}"] + (["https://index.docker.io/v1/"] if host == DOCKER_HUB else [])
    try:
        config = json.loads((Path(folder) / "config.json").read_text("utf-8"))
        helpers, auths = config.get("credHelpers") or {}, config.get("auths") or {}
        for key in keys:
            helper = str(helpers.get(key) or config.get("credsStore") or "")
            if helper and (found := _from_helper(helper, key, environ)):
                return found
            if auth := (auths.get(key) or {}).get("auth"):
                return str(auth)
    except (OSError, ValueError, AttributeError):
        return ""
    return ""


def _from_helper(helper: str, key: str, environ: Mapping[str, str]) -> str:
    if not _HELPER.fullmatch(helper):
        return ""
    try:
        done = subprocess.run(
            [f"docker-credential-{helper}", "get"],
            input=key, capture_output=True, text=True, timeout=TIMEOUT_S, check=True, env=dict(environ),
        )  # fmt: skip
        answer = json.loads(done.stdout)
        user, secret = answer["Username"], answer["Secret"]
    except (OSError, ValueError, KeyError, TypeError, subprocess.SubprocessError):
        return ""
    return "" if user == "<token>" else base64.b64encode(f"{user}:{secret}".encode()).decode()
