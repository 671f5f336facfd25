"""Every overlay is accepted by a real API server, and says what it should."""

import itertools
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.infra.namespace import INFRA, OVERLAYS, copy_for, kustomize

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on PATH")


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_what_an_overlay_is_made_of(overlay: str) -> None:
    made = kustomize(INFRA / "overlays" / overlay)
    names = {(thing["kind"], thing["metadata"]["name"]) for thing in made}
    assert len(names) == len(made)
    assert {name for kind, name in names if kind == "ServiceAccount"} == {
        "foxrun", "foxrun-alerts", "foxrun-submitter", "foxrun-viewer",
        *(("argo", "argo-server") if overlay == "bare" else ()),
    }  # fmt: skip
    assert {name for kind, name in names if kind == "WorkflowTemplate"} == {
        f"{kind}{data}"
        for kind in ("train", "regression-pair", "ci-gate", "seed-sweep", "nightly")
        for data in ("", "-on-data")
    }  # fmt: skip
    assert not [name for kind, name in names if kind == "Secret"], (
        "secrets are made by hand, and never lie in a manifest"
    )
    cluster_wide = {kind for kind, _ in names if kind.startswith("Cluster")}
    assert cluster_wide == (set() if overlay == "existing-argo" else {"ClusterRole", "ClusterRoleBinding"})
    outside = {t["metadata"].get("namespace") for t in made if t["kind"] not in {"Namespace", *cluster_wide}}
    assert outside == {"foxrun"}
    for binding in (t for t in made if t["kind"].endswith("RoleBinding") or t["kind"] == "RoleBinding"):
        assert [s["namespace"] for s in binding["subjects"]] == ["foxrun"]


def test_no_role_has_a_wildcard() -> None:
    for thing in kustomize(INFRA / "overlays" / "bare"):
        for rule in thing.get("rules", []):
            assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]], thing["metadata"]["name"]


def test_the_controllers_settings() -> None:
    made = {(t["kind"], t["metadata"]["name"]): t for t in kustomize(INFRA / "overlays" / "bare")}
    executor = yaml.safe_load(made["ConfigMap", "workflow-controller-configmap"]["data"]["executor"])
    assert {v["name"]: v["value"] for v in executor["env"]} == {"EXECUTOR_RETRY_BACKOFF_STEPS": "11"}
    container = made["Deployment", "workflow-controller"]["spec"]["template"]["spec"]["containers"][0]
    values = {v["name"]: v.get("value") for v in container["env"]}
    assert values["ARGO_PROGRESS_PATCH_TICK_DURATION"] == "10s"
    assert "--namespaced" in container["args"]
    server = made["Deployment", "argo-server"]["spec"]["template"]["spec"]["containers"][0]
    assert "--auth-mode=client" in server["args"]


def test_gpu_templates_replace_the_others() -> None:
    for overlay, gpus in (("existing-argo", None), ("gpu", "1")):
        pair = next(
            t for t in kustomize(INFRA / "overlays" / overlay) if t["metadata"]["name"] == "regression-pair-on-data"
        )
        leg = next(t for t in pair["spec"]["templates"] if t["name"] == "leg")
        assert leg["container"]["resources"]["limits"].get("nvidia.com/gpu") == gpus


@pytest.mark.cluster
@pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="no cluster: KUBECONFIG is not set")
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_api_server_accepts_it(namespace: str, overlay: str, tmp_path: Path) -> None:
    folder = copy_for(namespace, tmp_path / "infra")
    command = ["kubectl", "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-o", "name", "-k"]
    done = subprocess.run([*command, str(folder / "overlays" / overlay)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) == len(kustomize(INFRA / "overlays" / overlay))


@pytest.mark.cluster
@pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="no cluster: KUBECONFIG is not set")
@pytest.mark.skipif(shutil.which("argo") is None, reason="no argo on PATH")
@pytest.mark.parametrize("folder", ["base", "overlays/gpu"])
def test_argo_finds_nothing_to_say_about_the_templates(folder: str) -> None:
    files = sorted((INFRA / folder / "workflow-templates").glob("*.yaml"))
    assert len(files) == 10
    command = ["argo", "lint", "--offline", "--strict", "--no-color", *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "✔ no linting errors found!"), done.stdout + done.stderr


def block(page: str, begins: str) -> str:
    """The indented lines of a page that follow the line which begins so, as far left as they stand there."""
    after = (INFRA.parent / page).read_text("utf-8").partition(f"\n    {begins}")[2]
    lines = itertools.takewhile(lambda line: line.startswith("    "), f"    {begins}{after}".splitlines())
    return "".join(f"{line[4:]}\n" for line in lines)


def test_the_overlay_that_the_pages_show_is_a_night_and_delayed_alerts(tmp_path: Path) -> None:
    shutil.copytree(INFRA, tmp_path / "infra", ignore=shutil.ignore_patterns("__pycache__", "*.py"))
    made_of = yaml.safe_load(block("docs/nightly.md", "# an overlay of yours, beside infra/"))
    made_of |= yaml.safe_load(block("docs/nightly.md", "# kustomization.yaml, a patch of the night"))
    alerts = yaml.safe_load(
        block("infra/README.md", 'components: ["https://github.com/OWNER/foxrun/infra/components/alerts')
    )
    made_of["components"].append("../infra/components/alerts")
    made_of["images"] = alerts["images"]
    mine = tmp_path / "my-overlay"
    mine.mkdir()
    (mine / "kustomization.yaml").write_text(yaml.safe_dump(made_of))
    made = {(thing["kind"], thing["metadata"]["name"]): thing for thing in kustomize(mine)}
    # Without it a component's objects land wherever kubectl happens to point.
    assert made_of["namespace"] == alerts["namespace"] == "foxrun"
    assert {thing["metadata"].get("namespace") for (kind, _), thing in made.items() if kind.startswith("Cron")} == {
        "foxrun"
    }
    night = made["CronWorkflow", "nightly"]["spec"]
    assert (night["schedules"], night["timezone"]) == (["30 2 * * mon-fri"], "Europe/Berlin")
    given = {item["name"]: item["value"] for item in night["workflowSpec"]["arguments"]["parameters"]}
    known = {p["name"] for p in made["WorkflowTemplate", "nightly"]["spec"]["arguments"]["parameters"]}
    assert given["origin"] == "https://HOST/OWNER/REPOSITORY" and set(given) <= known
    pod = made["CronJob", "foxrun-alerts"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert [container["image"] for container in pod["containers"]] == ["REGISTRY/foxrun:SHA"]
    assert pod["serviceAccountName"] in {name for kind, name in made if kind == "ServiceAccount"}
