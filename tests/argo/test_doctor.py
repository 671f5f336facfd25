"""The doctor looks at a real cluster: what is well is said to be, and each trouble is had for real, with its remedy."""

from __future__ import annotations

import http.server
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator import cluster_doctor, node_doctor
from orchestrator.cluster_doctor import examine_cluster
from orchestrator.doctor import Finding
from orchestrator.engines.argo import ArgoEngine
from orchestrator.engines.argo.credentials import ServerCredentials
from orchestrator.engines.argo.kubernetes_api import KubernetesApi
from orchestrator.engines.argo.transport import Transport, ahead_s
from orchestrator.settings import Settings
from tests.argo.conftest import NAMESPACE

if os.environ.get("KUBECONFIG"):
    from tests.infra.namespace import Account, namespace
    from tests.infra.namespace import kubeconfig as kubeconfig_of

BUCKET = os.environ.get("FOXRUN_S3_BUCKET", "")
ENDPOINT = os.environ.get("FOXRUN_S3_ENDPOINT", "")
needs_bucket = pytest.mark.skipif(not ENDPOINT, reason="no S3 server: FOXRUN_S3_ENDPOINT is not set")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Of the whole cluster, as its administrator."""
    return Settings(
        engine="argo", home=str(tmp_path), namespace=NAMESPACE, s3_endpoint=ENDPOINT, s3_bucket=BUCKET,
        image="localhost/busybox:1",
    )  # fmt: skip


def changed(settings: Settings, **other: Any) -> Settings:
    return Settings(**{**{name: getattr(settings, name) for name in settings.__dataclass_fields__}, **other})


def found(settings: Settings, part: str) -> list[Finding]:
    return [finding for finding in examine_cluster(settings, os.environ) if finding.part == part]


def bad(settings: Settings) -> dict[str, tuple[str, str, str]]:
    """{part: (state, found, remedy)} of what is not well."""
    return {f.part: (f.state, f.found, f.remedy) for f in examine_cluster(settings, os.environ) if f.state != "ok"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A namespace as infra/ sets it up."""
    with namespace(tmp_path_factory.mktemp("infra")) as name:
        yield name


def acting_as(place: str, account: str, settings: Settings, tmp_path: Path) -> Settings:
    file = tmp_path / f"{account}.kubeconfig"
    file.write_text(kubeconfig_of(Account(place, account)))
    return changed(settings, namespace=place, kubeconfig=str(file))


@needs_bucket
def test_what_infra_sets_up_is_well_for_a_submitter(
    kube: ArgoEngine, place: str, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ARGO_SERVER", raising=False)
    file = acting_as(place, "foxrun-submitter", settings, tmp_path).kubeconfig
    words = ("doctor", "--engine", "argo", "--kubeconfig", file, "-o", "json")
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("FOXRUN_", "ARGO_"))}
    environ |= {"FOXRUN_HOME": str(tmp_path), "FOXRUN_S3_BUCKET": BUCKET, "FOXRUN_S3_ENDPOINT": ENDPOINT}
    command = [sys.executable, "-P", "-m", "orchestrator", *words]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True)
    states = {item["part"]: (item["state"], item["found"]) for item in json.loads(done.stdout)}
    assert done.returncode == 0, done.stdout
    said = f"namespace {place} of {Account(place, 'foxrun').server.host}"
    assert states["cluster"][1].endswith(f", {said}, as system:serviceaccount:{place}:foxrun-submitter")
    assert states["permissions"] == ("ok", "submit; list and watch; logs; stop, and the verdict's label; retry; delete;"
                                           f" submit --from in namespace {place}")  # fmt: skip
    assert states["templates"][0] == "ok" and "regression-pair" in states["templates"][1].split(", ")
    assert states["controller"][1].startswith("it took up a workflow within ")
    assert states["bucket"] == ("ok", f"{BUCKET} at {ENDPOINT.split('//')[1]}: written, read and removed")
    assert states["cluster clock"] == ("ok", "the API server's agrees with this machine's")
    # Without the component cluster-reader an account may see neither CRDs nor nodes.
    assert states["argo"] == ("ok", "CRDs v1alpha1; this account may not see which release's")
    assert states["nodes"][0] == "warning"
    left = subprocess.run(["kubectl", "get", "workflows", "-n", place, "-o", "name"], capture_output=True, text=True)
    assert left.stdout == ""


def test_a_viewer_is_told_what_it_may_not(
    kube: ArgoEngine, place: str, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ARGO_SERVER", raising=False)
    viewer = acting_as(place, "foxrun-viewer", settings, tmp_path)
    rights = found(viewer, "permissions")
    role = "use the account foxrun-submitter, or bind its Role to yours (infra/base/accounts.yaml)"
    assert [(f.state, f.found, f.remedy) for f in rights] == [
        ("broken", f"no submit: may not create workflows in namespace {place}", role),
        ("warning", f"no stop, and the verdict's label: may not patch workflows in namespace {place}", role),
        ("warning", f"no retry: may not update workflows in namespace {place}", role),
        ("warning", f"no delete: may not delete workflows in namespace {place}", role),
        ("ok", f"list and watch; logs; submit --from in namespace {place}", ""),
    ]
    state, said, _ = bad(viewer)["controller"]
    assert state == "warning" and said.startswith("not allowed: workflows.argoproj.io is forbidden: User ")


def test_an_administrator_sees_release_and_nodes(kube: ArgoEngine, settings: Settings) -> None:
    findings = {f.part: (f.state, f.found) for f in examine_cluster(settings, os.environ)}
    assert findings["argo"] == ("ok", "CRDs v1alpha1, full, of 4.0 or newer")
    assert findings["room"][0] == findings["image"][0] == "ok"
    assert findings["image"][1].startswith("localhost/busybox:1 is on ")


def test_a_namespace_that_is_not_there(kube: ArgoEngine, settings: Settings) -> None:
    state, said, remedy = bad(changed(settings, namespace="nobody-made-this"))["cluster"]
    assert (state, said) == ("broken", "there is no namespace nobody-made-this")
    assert remedy.startswith("set namespace (FOXRUN_NAMESPACE)")


@pytest.mark.parametrize(
    ("change", "said", "remedy"),
    [
        ({"server": "https://127.0.0.1:1"}, "https://127.0.0.1:1 does not answer", "check that it runs"),
        ({"token": "expired"}, "the credentials are refused: Unauthorized", "log in again"),
        ({"authority": ""}, "is not trusted", "give the right authority in the kubeconfig"),
    ],
    ids=["wrong port", "401", "wrong authority"],
)
def test_a_cluster_that_does_not_let_us_in(
    kubeconfig: dict[str, Any], settings: Settings, tmp_path: Path, change: dict[str, str], said: str, remedy: str
) -> None:
    if "server" in change:
        kubeconfig["clusters"][0]["cluster"]["server"] = change["server"]
    if "token" in change:
        kubeconfig["users"][0]["user"] = {"token": change["token"]}
    if "authority" in change:
        del kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"]
    (tmp_path / "k").write_text(yaml.safe_dump(kubeconfig))
    # One thing is said: whatever else is asked of that server would only say it again.
    other = changed(settings, kubeconfig=str(tmp_path / "k"))
    only = [f for f in examine_cluster(other, os.environ) if f.state == "broken"]
    assert [f.part for f in only] == ["cluster"]
    assert said in only[0].found and only[0].remedy.startswith(remedy)


@pytest.mark.parametrize(
    ("change", "said", "remedy"),
    [
        ({"argo_server": "https://{server}"}, "https://{server} does not speak TLS", "write its address with http://"),
        ({"argo_server": "http://127.0.0.1:1"}, "http://127.0.0.1:1 does not answer", "check that it runs"),
        (
            {"argo_server": "http://{server}", "argo_token": "Bearer wrong"},
            "the credentials are refused",
            "log in again",
        ),
    ],
    ids=["https to an http port", "wrong port", "401"],
)
def test_an_argo_server_that_does_not_let_us_in(
    server: ArgoEngine, settings: Settings, change: dict[str, str], said: str, remedy: str
) -> None:
    if os.environ.get("ARGO_SECURE") != "false":
        pytest.skip("argo-server of this cluster speaks TLS")
    address = os.environ["ARGO_SERVER"]
    wrong = {key: value.format(server=address) for key, value in change.items()}
    state, found, to_do = bad(changed(settings, **wrong))["argo-server"]
    assert state == "broken" and found.startswith(said.format(server=address)) and to_do.startswith(remedy)


def test_all_is_well_through_argo_server_alone(server: ArgoEngine, settings: Settings) -> None:
    secure = os.environ.get("ARGO_SECURE", "true") != "false"
    address = f"{'https' if secure else 'http'}://{os.environ['ARGO_SERVER']}"
    findings = list(examine_cluster(changed(settings, argo_server=address), os.environ))
    assert [(f.part, f.state) for f in findings if f.part != "bucket"] == [
        ("argo-server", "ok"), ("argo-server", "ok"), ("cluster clock", "ok"), ("controller", "ok"),
    ]  # fmt: skip
    assert findings[1].found == "it answers nobody without a token (auth mode client or sso)"


@pytest.fixture
def open_server(kube: ArgoEngine) -> Iterator[str]:
    """An argo-server that lets everybody in; one of this test's own."""
    if shutil.which("argo") is None:
        pytest.skip("no argo on PATH")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ["argo", "server", "--auth-mode", "server", "--secure=false", "--namespace", NAMESPACE, "--port", str(port)]
    environ = {k: v for k, v in os.environ.items() if not k.startswith("ARGO_")}
    process = subprocess.Popen(words, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        address = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(f"{address}/api/v1/version", timeout=5).close()
                break
            except OSError:
                assert process.poll() is None, "argo-server did not start"
                time.sleep(0.2)
        yield address
    finally:
        process.kill()
        process.wait()


def test_an_argo_server_that_lets_everybody_in_is_broken(open_server: str, settings: Settings) -> None:
    state, said, remedy = bad(changed(settings, argo_server=open_server, argo_token="Bearer x"))["argo-server"]
    assert (state, said) == (
        "broken",
        "it answers without a token (auth mode server): everybody who reaches it has its rights",
    )
    assert remedy == "start argo-server with --auth-mode=client alone (infra/argo/server.yaml)"


@needs_bucket
@pytest.mark.parametrize(
    ("change", "environ", "said"),
    [
        ({"s3_bucket": "nobody-made-this"}, {}, "there is no bucket nobody-made-this"),
        ({"s3_endpoint": "http://127.0.0.1:1"}, {}, "127.0.0.1:1 refuses the connection"),
        ({"s3_endpoint": ENDPOINT.replace("http:", "https:")}, {}, "speaks no TLS"),
        ({}, {"AWS_SECRET_ACCESS_KEY": "wrong"}, "the secret key does not belong to the access key"),
        ({}, {"AWS_ACCESS_KEY_ID": "nobody"}, "the server does not know the access key"),
    ],
    ids=["no such bucket", "wrong port", "https to an http port", "wrong signature", "wrong access key"],
)
def test_a_bucket_that_does_not_let_us_in(
    kube: ArgoEngine,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    change: dict[str, str],
    environ: dict[str, str],
    said: str,
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    findings = list(cluster_doctor.guarded("bucket", cluster_doctor.examine_bucket(changed(settings, **change))))
    assert [f.state for f in findings] == ["broken"]
    assert said in findings[0].found and findings[0].remedy


def test_no_bucket_is_a_warning(kube: ArgoEngine, settings: Settings) -> None:
    [finding] = cluster_doctor.examine_bucket(changed(settings, s3_bucket=""))
    assert (finding.state, finding.remedy.split(" to ")[0]) == ("warning", "set s3_bucket (FOXRUN_S3_BUCKET)")


def test_a_controller_that_takes_nothing_up(kube: ArgoEngine) -> None:
    [finding] = cluster_doctor.examine_controller(kube, patience_s=0)
    assert (finding.state, finding.found) == ("broken", "no controller took up a workflow within 0 s")


@pytest.mark.parametrize(
    ("change", "part", "said"),
    [
        ({"memory": "900Ti"}, "room", "no node has as much as a leg or a gate asks for"),
        ({"gpus": 1, "gpu_model": "NVIDIA-NONE"}, "gpu nodes", ""),
        ({"gpus": 1, "gpu_model": "NVIDIA-NONE"}, "room", "no node has as much as a leg or a gate asks for"),
        ({"image": "localhost/nobody-made-this:1"}, "image", "each tells of), and no registry has it"),
        ({"image": "127.0.0.1:1/nobody-made-this:1"}, "image", "each tells of), and 127.0.0.1:1"),
    ],
)
def test_what_no_node_has(kube: ArgoEngine, settings: Settings, change: dict[str, Any], part: str, said: str) -> None:
    assert isinstance(kube.api, KubernetesApi)
    findings = node_doctor.examine_nodes(kube.api, changed(settings, **change), Path.cwd())
    [finding] = [finding for finding in findings if finding.part == part]
    assert finding.state == ("warning" if part == "image" else "broken")
    assert said in finding.found and finding.remedy


def test_nodes_that_take_no_pods(kube: ArgoEngine, settings: Settings) -> None:
    nodes = kube.api.nodes()  # type: ignore[attr-defined]
    nodes[0]["spec"]["unschedulable"] = True
    [ready, *_] = node_doctor.look(nodes[:1], settings, Path.cwd())
    assert (ready.state, ready.found) == (
        "broken",
        f"0 of 1 take pods; {nodes[0]['metadata']['name']} is cordoned",
    )
    nodes[0]["spec"].pop("unschedulable")
    for condition in nodes[0]["status"]["conditions"]:
        condition["status"] = "Unknown"
    [ready, *_] = node_doctor.look(nodes[:1], settings, Path.cwd())
    assert ready.found == f"0 of 1 take pods; {nodes[0]['metadata']['name']} is not ready"


def test_a_release_of_argo_before_4_is_refused(kube: ArgoEngine) -> None:
    from orchestrator.engines.argo.probes import KubeProbes

    definition = KubeProbes(kube.api.transport, NAMESPACE).definition("cronworkflows")  # type: ignore[attr-defined]
    assert cluster_doctor.release(definition) == ("v1alpha1, full, of 4.0 or newer", True)
    spec = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["schedule"] = {"type": "string"}
    assert cluster_doctor.release(definition) == ("v1alpha1, of a release before 4.0", False)
    del spec["properties"]
    assert cluster_doctor.release(definition)[1]


@contextmanager
def wrong_clock(ahead: float) -> Iterator[str]:
    """A server whose clock is wrong."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def date_time_string(self, timestamp: float | None = None) -> str:
            return super().date_time_string(time.time() + ahead)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{made.server_address[1]}"
        made.shutdown()


@pytest.mark.parametrize(
    ("ahead", "state", "word"), [(0, "ok", ""), (60, "warning", "ahead of"), (-900, "broken", "behind")]
)
def test_a_clock_that_is_wrong(ahead: float, state: str, word: str) -> None:
    with wrong_clock(ahead) as address:
        measured = Transport(ServerCredentials(server=address, token="t")).clock_ahead_s("/")
    assert abs(measured - ahead) <= 5
    finding = cluster_doctor.clock_finding("cluster clock", "the server's", measured)
    assert (finding.state, word in finding.found, bool(finding.remedy)) == (state, True, state != "ok")


def test_a_date_of_whole_seconds_proves_no_fraction() -> None:
    date = "Thu, 01 Jan 1970 00:01:40 GMT"  # 100 s
    assert ahead_s(date, 100.9, 101.4) == 0.0
    assert ahead_s(date, 98.0, 99.0) == 1.0
    assert ahead_s(date, 103.0, 104.0) == -2.0
    assert ahead_s("", 1.0, 2.0) == ahead_s("soon", 1.0, 2.0) == 0.0
