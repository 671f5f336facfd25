"""argo-server's webhook endpoint for a namespace: secrets of its own, requests signed as the two hosts sign them."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any

from kubernetes import client

from tests.events.deliveries import GITHUB, MISSING, RIGHT, Delivery

GROUP = {"group": "argoproj.io", "version": "v1alpha1", "plural": "workflows"}
PATIENCE_S = 90


@dataclass(frozen=True)
class Endpoint:
    """Where the webhooks of a namespace go."""

    namespace: str
    server: str = field(default_factory=lambda: os.environ.get("ARGO_SERVER", ""))
    secrets: dict[str, str] = field(default_factory=lambda: {h: secrets.token_hex(32) for h in ("github", "gitlab")})

    def set_up(self) -> None:
        """The Secret that docs/ci.md has made by hand, and the accounts' tokens, which Kubernetes fills in."""
        clients = {f"foxrun-{host}": f"type: {host}\nsecret: {secret}\n" for host, secret in self.secrets.items()}
        made = client.V1Secret(metadata=client.V1ObjectMeta(name="argo-workflows-webhook-clients"), string_data=clients)
        core = client.CoreV1Api()
        core.create_namespaced_secret(self.namespace, made)
        deadline = time.monotonic() + PATIENCE_S
        for host in self.secrets:
            while "token" not in (
                core.read_namespaced_secret(f"foxrun-{host}.service-account-token", self.namespace).data or {}
            ):
                assert time.monotonic() < deadline, f"foxrun-{host} got no token"
                time.sleep(0.2)

    def send(self, delivery: Delivery) -> tuple[int, Any]:
        """(status code, answer)."""
        body = json.dumps(delivery.payload).encode()
        headers = {"Content-Type": "application/json", **self.headers(delivery, body)}
        if delivery.changed:
            body = body.replace(b"ml-alpha-refused", b"ml-alpha-changed")
        return self.post(body, headers)

    def headers(self, delivery: Delivery, body: bytes) -> dict[str, str]:
        """As the host would send them."""
        host = "github" if delivery.host == GITHUB else "gitlab"
        secret = self.secrets[host] if delivery.secret == RIGHT else "another"
        headers = {**dict(delivery.headers), f"X-{'GitHub' if host == 'github' else 'Gitlab'}-Event": delivery.event}
        if delivery.secret == MISSING:
            return headers
        if host == "github":
            return {**headers, "X-Hub-Signature-256": f"sha256={hmac.digest(secret.encode(), body, 'sha256').hex()}"}
        return {**headers, "X-Gitlab-Token": secret}

    def post(self, body: bytes, headers: dict[str, str], discriminator: str = "") -> tuple[int, Any]:
        """One request. Sent again only when nobody listened, since a second delivery has another answer."""
        url = f"http://{self.server}/api/v1/events/{self.namespace}/{discriminator}"
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                request = urllib.request.Request(url, data=body, headers=headers, method="POST")
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return answer.status, _parsed(answer.read())
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, _parsed(error.read())
            except urllib.error.URLError as error:
                if not isinstance(error.reason, ConnectionRefusedError) or time.monotonic() > deadline:
                    raise
                time.sleep(0.5)

    def workflows(self) -> dict[str, dict[str, Any]]:
        """All of the namespace, by name."""
        listed = client.CustomObjectsApi().list_namespaced_custom_object(**GROUP, namespace=self.namespace)
        return {workflow["metadata"]["name"]: workflow for workflow in listed["items"]}


def name_of(repository: str, branch: str, sha: str) -> str:
    """What a ci-gate of a commit is called."""
    digest = hashlib.sha256(f"{repository}\nrefs/heads/{branch}\n{sha}".encode()).hexdigest()
    return f"ci-gate-{sha[:7]}-{digest[:16]}"


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.decode(errors="replace")
