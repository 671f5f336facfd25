"""A namespace of a test's own, set up by infra/ as a person would: `kubectl apply -k` of an overlay."""

from __future__ import annotations

import base64
import functools
import json
import os
import shutil
import ssl
import subprocess
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client, config

from infra.render import workflow_template
from workflows.render import to_yaml

INFRA = Path(__file__).parents[2] / "infra"
Change = Callable[[dict[str, Any]], None]
PATIENCE_S = 90  # other tests restart the API server
OVERLAYS = ("bare", "existing-argo", "gpu")


@functools.cache
def kustomize(folder: Path) -> list[dict[str, Any]]:
    """What `kubectl kustomize` makes of a folder."""
    done = subprocess.run(["kubectl", "kustomize", str(folder)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def copy_for(namespace: str, target: Path, *, cpu: str = "600m", memory: str = "1Gi") -> Path:
    """infra/ with another namespace, this machine's S3 server, and templates that fit a small node."""
    shutil.copytree(INFRA, target, ignore=shutil.ignore_patterns("__pycache__", "*.py"))
    for file in target.rglob("*.yaml"):
        text = file.read_text("utf-8").replace("namespace: foxrun\n", f"namespace: {namespace}\n")
        if file.name == "namespace.yaml":
            text = text.replace("name: foxrun\n", f"name: {namespace}\n")
        file.write_text(text, encoding="utf-8")
    repository = target / "base" / "artifact-repository.yaml"
    text = repository.read_text("utf-8")
    server = os.environ.get("FOXRUN_S3_POD_ENDPOINT", "").removeprefix("http://")
    assert "endpoint: s3.amazonaws.com\n" in text
    text = text.replace("endpoint: s3.amazonaws.com\n", f"endpoint: {server}\n      insecure: true\n")
    repository.write_text(text.replace("bucket: foxrun\n", f"bucket: {os.environ.get('FOXRUN_S3_BUCKET')}\n"))
    for kind in ("train", "regression-pair", "ci-gate", "seed-sweep", "nightly"):
        for data in (False, True):
            template = workflow_template(kind, data=data, gpus=0, cpu=cpu, memory=memory)
            file = target / "base" / "workflow-templates" / f"{template['metadata']['name']}.yaml"
            file.write_text(to_yaml(template), encoding="utf-8")
    return target


@contextmanager
def namespace(
    scratch: Path, overlay: str = "existing-argo", change: Change | None = None, components: tuple[str, ...] = ()
) -> Iterator[str]:
    """A namespace in which an overlay is applied, less its Deployments and what is not in it; gone afterwards.

    ``change`` may alter each object on the way, in place; ``components`` are added to the overlay.
    """
    config.load_kube_config()
    name = f"foxrun-test-{uuid.uuid4().hex[:8]}"
    folder = copy_for(name, scratch / "infra") / "overlays" / overlay
    if components:
        file = folder / "kustomization.yaml"
        made_of = yaml.safe_load(file.read_text("utf-8"))
        made_of.setdefault("components", []).extend(f"../../components/{component}" for component in components)
        file.write_text(yaml.safe_dump(made_of), encoding="utf-8")
    made = kustomize(folder)
    objects = [o for o in made if o["kind"] not in ("Deployment", "ClusterRole", "ClusterRoleBinding")]
    for thing in objects if change else ():
        change(thing)
    try:
        _apply(yaml.safe_dump_all(objects))
        keys = {"accessKey": os.environ["AWS_ACCESS_KEY_ID"], "secretKey": os.environ["AWS_SECRET_ACCESS_KEY"]}
        secret = client.V1Secret(metadata=client.V1ObjectMeta(name="foxrun-s3"), string_data=keys)
        client.CoreV1Api().create_namespaced_secret(name, secret)
        yield name
    finally:
        # First the workflows: pods of a namespace that ends cannot be told from lost ones.
        _kubectl("delete", "workflows", "--all", "-n", name, "--wait=false")
        _kubectl("delete", "namespace", name, "--wait=false")


def _kubectl(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(["kubectl", *words], input=stdin, capture_output=True, text=True)


def _apply(manifests: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while (done := _kubectl("apply", "--server-side", "-f", "-", stdin=manifests)).returncode:
        assert time.monotonic() < deadline, done.stderr
        time.sleep(2.0)


def kubeconfig(account: Account) -> str:
    """A kubeconfig with the account's token, as text."""
    certificate = base64.b64encode(Path(account.server.ssl_ca_cert).read_bytes()).decode()
    server = {"server": account.server.host, "certificate-authority-data": certificate}
    return json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": server}],
        "users": [{"name": "test", "user": {"token": account.token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": account.namespace}}],
    })  # fmt: skip


class Account:
    """A service account: what the API server answers to its token."""

    def __init__(self, namespace: str, name: str) -> None:
        self.namespace, self.name = namespace, name
        asked = {"spec": {"expirationSeconds": 3600}}
        answer = client.CoreV1Api().create_namespaced_service_account_token(name, namespace, asked)
        self.server = client.Configuration.get_default_copy()
        self.token = answer.status.token
        self.tls = ssl.create_default_context(cafile=self.server.ssl_ca_cert)

    def ask(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> tuple[int, Any]:
        """(status code, answer); ``path`` may hold {ns}."""
        request = urllib.request.Request(
            self.server.host + path.format(ns=self.namespace),
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": content_type},
        )
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                with urllib.request.urlopen(request, context=self.tls, timeout=60) as answer:
                    return answer.status, json.loads(answer.read())
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, json.loads(error.read())
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(1.0)
