"""A namespace of a test's own, set up by infra/ as a person would: `kubectl apply -k` of an overlay."""

from __future__ import annotations

import functools
import json
import os
import shutil
import ssl
import subprocess
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client, config

from infra.render import workflow_template
from workflows.render import to_yaml

INFRA = Path(__file__).parents[2] / "infra"
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
    for kind in ("train", "regression-pair"):
        for data in (False, True):
            template = workflow_template(kind, data=data, gpus=0, cpu=cpu, memory=memory)
            file = target / "base" / "workflow-templates" / f"{template['metadata']['name']}.yaml"
            file.write_text(to_yaml(template), encoding="utf-8")
    return target


@contextmanager
def namespace(scratch: Path) -> Iterator[str]:
    """A namespace in which the overlay existing-argo is applied; gone afterwards."""
    config.load_kube_config()
    core = client.CoreV1Api()
    name = f"foxrun-test-{uuid.uuid4().hex[:8]}"
    folder = copy_for(name, scratch / "infra")
    # Workflows are cleaned up before their namespace: pods of a namespace that ends cannot be told from lost ones.
    try:
        command = ["kubectl", "apply", "--server-side", "-k", str(folder / "overlays" / "existing-argo")]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        keys = {"accessKey": os.environ["AWS_ACCESS_KEY_ID"], "secretKey": os.environ["AWS_SECRET_ACCESS_KEY"]}
        secret = client.V1Secret(metadata=client.V1ObjectMeta(name="foxrun-s3"), string_data=keys)
        core.create_namespaced_secret(name, secret)
        yield name
    finally:
        subprocess.run(["kubectl", "delete", "workflows", "--all", "-n", name, "--wait=false"], capture_output=True)
        subprocess.run(["kubectl", "delete", "namespace", name, "--wait=false"], capture_output=True)


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
        try:
            with urllib.request.urlopen(request, context=self.tls, timeout=60) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())
