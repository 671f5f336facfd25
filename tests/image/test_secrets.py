"""No secret gets anywhere: all that real runs left is searched for every secret that they were given."""

from __future__ import annotations

import base64
import json
import os
import secrets
import shutil
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.image import images

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="no cluster: KUBECONFIG is not set"),
    pytest.mark.skipif(not os.environ.get("FOXRUN_S3_POD_ENDPOINT"), reason="no S3 server for pods"),
    pytest.mark.skipif(images.tool() is None, reason="no tool that builds and loads images (FOXRUN_IMAGE_TOOL)"),
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on PATH"),
]
if os.environ.get("KUBECONFIG"):
    from tests.infra.namespace import Account, kubeconfig
    from tests.workflows.cluster import Cluster

SMALL = ("-p", "envs=8", "-p", "width=32", "-p", "window=16", "--steps", "6", "--eval-steps", "3", "--gate-steps", "4")
# Of all that `kubectl get` knows in the namespace; Secrets hold secrets.
KINDS = "workflows,workflowtemplates,workflowtaskresults,workflowtasksets,pods,events,configmaps,serviceaccounts"


def shapes(secret: str) -> Iterator[tuple[str, bytes]]:
    """(encoding, bytes) of every way in which a secret is likely to be written."""
    raw = secret.encode()
    yield "plain", raw
    yield "JSON", json.dumps(secret)[1:-1].encode()
    yield "URL", urllib.parse.quote(secret, safe="").encode()
    yield "URL, form", urllib.parse.quote_plus(secret).encode()
    yield "URL, path", urllib.parse.quote(secret).encode()
    yield "hex", raw.hex().encode()
    for shift in range(3):
        # The bytes around it decide the first and the last characters, so these are left out.
        text = base64.b64encode(b"\0" * shift + raw)
        begin, end = -(-8 * shift // 6), 8 * (shift + len(raw)) // 6
        yield f"base64, shifted {shift}", text[begin:end]
        yield f"base64 URL, shifted {shift}", text[begin:end].replace(b"+", b"-").replace(b"/", b"_")


def found(places: Mapping[str, bytes], known: Mapping[str, str]) -> list[str]:
    """Where which secret is written, and how."""
    return sorted(
        f"{what} in {place} ({how})"
        for what, secret in known.items()
        for how, shape in shapes(secret)
        for place, data in places.items()
        if shape in data
    )


def test_the_search_finds_what_is_there() -> None:
    secret = "pä ss/w+0rd%?&" + secrets.token_urlsafe(9)
    for before in ("", "a", "ab", "abc"):
        around = f"{before}{secret}xyz"
        written = {
            "plain": around.encode(),
            "base64": base64.b64encode(around.encode()),
            "base64 URL": base64.urlsafe_b64encode(around.encode()),
            "URL": f"http://u:{urllib.parse.quote(around, safe='')}@host/".encode(),
            "JSON": json.dumps({"a": around}).encode(),
            "hex": around.encode().hex().encode(),
        }
        hits = found(written, {"it": secret})
        assert {hit.split(" in ")[1].rsplit(" (", 1)[0] for hit in hits} == set(written)
    assert found({"other": secret[:-1].encode() * 3}, {"it": secret}) == []


def test_no_secret_is_left_anywhere(image: images.Image, namespace: str, tmp_path: Path) -> None:
    submitter = Account(namespace, "foxrun-submitter")
    password, local = (f"{secrets.token_urlsafe(18)}+/ä" for _ in range(2))
    quoted = {text: urllib.parse.quote(text, safe="") for text in (password, local)}
    refused = secrets.token_hex(20)
    known = {
        "the bucket's secret key": os.environ["AWS_SECRET_ACCESS_KEY"],
        "the bucket's access key": os.environ["AWS_ACCESS_KEY_ID"],
        "a secret key that is refused": refused,
        "the alert channel's password": password,
        "the password of a channel of this machine": local,
        "the submitter's token": submitter.token,
        "argo-server's token": os.environ.get("ARGO_TOKEN", "Bearer none-in-this-environment").removeprefix("Bearer "),
    }
    # Nobody listens there: a channel that fails is the one whose address gets into messages.
    channel = f"json://robot:{quoted[password]}@127.0.0.1:9/"
    apply(namespace, {"kind": "Secret", "metadata": {"name": "foxrun-alerts"}, "stringData": {"urls": channel}})
    (tmp_path / "kubeconfig").write_text(kubeconfig(submitter))
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("FOXRUN_", "KUBECONFIG"))}
    environ |= {
        "FOXRUN_ENGINE": "argo", "FOXRUN_KUBECONFIG": str(tmp_path / "kubeconfig"), "FOXRUN_NAMESPACE": namespace,
        "FOXRUN_HOME": str(tmp_path / "home"), "FOXRUN_S3_BUCKET": os.environ["FOXRUN_S3_BUCKET"],
        "FOXRUN_S3_ENDPOINT": os.environ["FOXRUN_S3_ENDPOINT"], "FOXRUN_IMAGE": image.reference,
        "FOXRUN_ALERTS": f"json://robot:{quoted[local]}@127.0.0.1:9/", "FOXRUN_CPU": "200m", "FOXRUN_RETRIES": "0",
    }  # fmt: skip
    places: dict[str, bytes] = {}

    def foxrun(*words: str) -> int:
        command = [sys.executable, "-P", "-m", "orchestrator", *words]
        done = subprocess.run(command, cwd=image.context, env=environ, capture_output=True)
        places[f"what `foxrun {' '.join(words)}` printed"] = done.stdout + done.stderr
        return done.returncode

    def pairs(**more: tuple[str, ...]) -> dict[str, int]:
        """The exit codes of pairs that run side by side."""
        with ThreadPoolExecutor() as pool:
            codes = pool.map(
                lambda name: foxrun("submit", "--regression-pair", *SMALL, "--log", "--name", name, *more[name]), more
            )
            return dict(zip(more, codes, strict=True))

    crash, drift = ("-p", "fault=crash@b:2"), ("--no-gate", "-p", "fault=ulp@b:2")
    codes = pairs(good=(), crash=("--no-gate", *crash), drift=drift)
    assert codes == {"good": 0, "crash": 5, "drift": 3}, places
    # Pods whose bucket refuses them say so in their nodes' messages.
    keys = {"accessKey": os.environ["AWS_ACCESS_KEY_ID"], "secretKey": refused}
    apply(namespace, {"kind": "Secret", "metadata": {"name": "foxrun-s3"}, "stringData": keys})
    assert pairs(refused=("--no-gate",)) == {"refused": 6}, places
    looks = [("list", "-o", "json"), ("config", "-o", "json"), ("doctor", "-o", "json"), ("submit", "--dry-run")]
    for name in ("good", "crash", "drift", "refused"):
        looks += [("get", name, "-o", "yaml"), ("logs", name), ("report", name), ("watch", name, "-o", "json")]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda words: foxrun(*words), looks))
    places |= dict(of_cluster(namespace)) | dict(of_bucket(namespace)) | dict(of_directory(tmp_path / "home"))

    # What proves that these are the runs' own traces: without them nothing would be searched.
    text = {place: data.decode("utf-8", "replace") for place, data in places.items()}
    assert '"phase": "Failed"' in text["workflows"] and "good" in text["workflows"]
    assert "WorkflowNodeFailed" in text["events"]
    assert any(place.endswith("report.html") for place in places)
    assert any("alert to json://" in data for place, data in text.items() if place.startswith("log of"))
    assert "SignatureDoesNotMatch" in text["workflows"] or "signature" in text["workflows"]
    assert found(places, known) == []


def apply(namespace: str, thing: dict[str, object]) -> None:
    body = json.dumps({"apiVersion": "v1", **thing})
    command = ["kubectl", "apply", "--server-side", "--force-conflicts", "-n", namespace, "-f", "-"]
    subprocess.run(command, input=body, text=True, check=True, capture_output=True)


def of_cluster(namespace: str) -> Iterator[tuple[str, bytes]]:
    """Every object of the namespace, and every container's log."""
    for kind in KINDS.split(","):
        command = ["kubectl", "get", kind, "-n", namespace, "-o", "json"]
        yield kind, subprocess.run(command, check=True, capture_output=True).stdout
    command = ["kubectl", "get", "pods", "-n", namespace, "-o", "name"]
    for pod in subprocess.run(command, check=True, capture_output=True, text=True).stdout.split():
        command = ["kubectl", "logs", "-n", namespace, pod, "--all-containers", "--prefix"]
        yield f"log of {pod}", subprocess.run(command, capture_output=True).stdout


def of_bucket(namespace: str) -> Iterator[tuple[str, bytes]]:
    """Every object that the namespace's workflows stored: runs, reports, verdicts, archived logs."""
    cluster = Cluster()
    command = ["kubectl", "get", "workflows", "-n", namespace, "-o", "json"]
    for workflow in json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["items"]:
        for prefix in (f"{workflow['metadata']['uid']}/", f"{workflow['metadata']['name']}/"):
            for key in cluster.keys(prefix):
                log = "log of " if key.endswith("main.log") else ""
                yield f"{log}s3://{key}", cluster.read(key)
                cluster.remove(key)


def of_directory(home: Path) -> Iterator[tuple[str, bytes]]:
    """Every file of foxrun's state."""
    for file in sorted(home.rglob("*")):
        if file.is_file():
            yield str(file.relative_to(home)), file.read_bytes()
