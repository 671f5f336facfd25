"""What pods are given: settings and flags as people write them, the Workflow that comes of it, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import UsageError
from orchestrator.settings import load_settings
from tests.cli.conftest import Place

FILE = """
engine: argo
image: ghcr.io/lab/foxrun:{sha}
cpu: 2
memory: 16Gi
gpus: 1
gpu_model: NVIDIA-H200
node_selector: {pool: gpu, zone: b}
tolerations:
  - nvidia.com/gpu:NoSchedule
  - {key: team, operator: Equal, value: alpha, effect: NoExecute}
  - {key: spot, operator: Exists}
image_pull_secrets: [registry]
priority_class: training
ttl: 3d
"""


def test_a_file_variables_and_flags_reach_the_pods(repo: Place) -> None:
    (repo.directory / "foxrun.yaml").write_text(FILE)
    words = ("render", "regression-pair", "-o", "json", "--cpu", "3", "--cpu-limit", "6", "--service-account", "fox")
    spec = repo(*words, FOXRUN_MEMORY="20Gi").json["spec"]
    assert spec["nodeSelector"] == {"pool": "gpu", "zone": "b"}
    assert spec["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "team", "operator": "Equal", "value": "alpha", "effect": "NoExecute"},
        {"key": "spot", "operator": "Exists"},
    ]
    assert (spec["podPriorityClassName"], spec["serviceAccountName"]) == ("training", "fox")
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    assert spec["ttlStrategy"] == {"secondsAfterCompletion": 3 * 86_400}
    templates = {template["name"]: template for template in spec["templates"]}
    assert templates["leg"]["container"]["resources"] == {
        "requests": {"cpu": "3", "memory": "20Gi", "nvidia.com/gpu": "1"},
        "limits": {"cpu": "6", "memory": "20Gi", "nvidia.com/gpu": "1"},
    }
    assert templates["gate"]["container"]["resources"]["requests"] == {
        "cpu": "6", "memory": "40Gi", "nvidia.com/gpu": "1",
    }  # fmt: skip
    assert templates["leg"]["nodeSelector"] == {"pool": "gpu", "zone": "b", "nvidia.com/gpu.product": "NVIDIA-H200"}
    assert "nvidia.com/gpu" not in templates["compare"]["container"]["resources"]["requests"]


def test_flags_that_may_be_repeated_take_the_place_of_the_file(repo: Place) -> None:
    (repo.directory / "foxrun.yaml").write_text(FILE)
    words = ("--toleration", "a:NoSchedule", "--toleration", "b=1", "--node-selector", "pool=cpu")
    spec = repo("render", "train", "-o", "json", *words).json["spec"]
    assert spec["tolerations"] == [
        {"key": "a", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "b", "operator": "Equal", "value": "1"},
    ]
    assert spec["nodeSelector"] == {"pool": "cpu"}


def test_by_default_a_gate_fits_on_a_node_of_two_cores_and_four_gigabytes(repo: Place) -> None:
    spec = repo("render", "regression-pair", "-o", "json").json["spec"]
    requests = {t["name"]: t["container"]["resources"]["requests"] for t in spec["templates"] if "container" in t}
    assert requests["gate"] == {"cpu": "1000m", "memory": "2Gi"}
    assert requests["leg"] == {"cpu": "500m", "memory": "1Gi"}
    limits = next(t["container"]["resources"]["limits"] for t in spec["templates"] if t["name"] == "leg")
    assert limits == {"cpu": "2", "memory": "1Gi"}


def test_a_limit_is_never_below_the_request_and_may_be_left_out(repo: Place) -> None:
    def limits(*words: str) -> dict[str, str]:
        spec = repo("render", "train", "--no-gate", "-o", "json", *words).json["spec"]
        found: dict[str, str] = spec["templates"][1]["container"]["resources"]["limits"]
        return found

    assert limits("--cpu", "2500m") == {"cpu": "2500m", "memory": "1Gi"}
    assert limits("--cpu-limit", "") == {"memory": "1Gi"}


def test_git_mounts_the_commit_of_each_leg(repo: Place) -> None:
    words = ("render", "regression-pair", "--engine", "argo", "--code", "git", "-o", "json")
    refused = repo(*words)
    assert (refused.code, "there is no origin" in refused.err, "--git-url" in refused.err) == (2, True, True)
    spec = repo(*words, "--git-url", "https://git.example/lab/trainer", FOXRUN_GIT_SECRET="git-login").json["spec"]
    templates = {template["name"]: template for template in spec["templates"]}
    for name, sha in (("gate", "{{workflow.parameters.sha}}"), ("leg", "{{inputs.parameters.sha}}")):
        [code] = templates[name]["inputs"]["artifacts"]
        assert code == {
            "name": "code",
            "path": "/foxrun/code",
            "git": {
                "repo": "https://git.example/lab/trainer",
                "revision": sha,
                "usernameSecret": {"name": "git-login", "key": "username"},
                "passwordSecret": {"name": "git-login", "key": "password"},
            },
        }
        assert templates[name]["container"]["workingDir"] == "/foxrun/code"
    ssh = repo(*words, "--git-url", "git@git.example:lab/trainer.git", FOXRUN_GIT_SECRET="deploy").json["spec"]
    git = next(t for t in ssh["templates"] if t["name"] == "leg")["inputs"]["artifacts"][0]["git"]
    assert git["sshPrivateKeySecret"] == {"name": "deploy", "key": "ssh-privatekey"}
    assert "insecureIgnoreHostKey" not in git
    local = repo("render", "train", "--code", "git", "--git-url", "https://git.example/x", "-o", "json").json["spec"]
    assert "code" not in str(local["templates"][1].get("inputs")), "this machine has the repository"


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("FOXRUN_CPU", "two", "cpu cannot be 'two': an amount is like 2, 500m"),
        ("FOXRUN_MEMORY", "0", "memory cannot be '0'"),
        ("FOXRUN_TOLERATIONS", "a:Sometimes", "a toleration is KEY, KEY:EFFECT or KEY=VALUE:EFFECT"),
        ("FOXRUN_NODE_SELECTOR", "pool", "a label is KEY=VALUE"),
        ("FOXRUN_IMAGE_PULL_POLICY", "Sometimes", "it is IfNotPresent, Always or Never"),
        ("FOXRUN_USER_ID", "0", "it is a whole number, 1 or more"),
        ("FOXRUN_CODE", "svn", "it is image or git"),
        ("FOXRUN_IMAGE_DIGEST", "yes", "it is auto, require or off"),
    ],
)
def test_what_cannot_be_is_said_where_it_stands(tmp_path: Path, variable: str, value: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        load_settings(tmp_path, {variable: value})
    assert said in str(raised.value) and variable in str(raised.value)


def test_a_password_in_a_url_is_refused_and_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        load_settings(tmp_path, {"FOXRUN_GIT_URL": "https://fox:hunter2@git.example/x"})
    assert "git_secret names a Secret" in str(raised.value) and "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--gpu-model", "NVIDIA-H200"), "gpu-model: is given but gpus is 0"),
        (("--node-selector", "a=1", "--node-selector", "a=2"), "node-selector: 'a' is given twice"),
        (("--node-selector", "-a=1"), "node-selector: '-a=1' is no label"),
        (("--service-account", "Fox"), "service-account: 'Fox' is no Kubernetes name"),
        (("--image", "a b"), "image: 'a b' is no image"),
        (("--engine", "argo", "--code", "git", "--git-url", "/srv/git"), "origin is '/srv/git'"),
    ],
)
def test_what_no_cluster_could_take_is_refused(repo: Place, words: tuple[str, ...], said: str) -> None:
    done = repo("render", "train", *words)
    assert done.code == 2 and said in done.err


def test_yaml_values_of_other_kinds_are_read_as_people_mean_them(tmp_path: Path) -> None:
    (tmp_path / "foxrun.yaml").write_text("cpu: 2\nmemory: 1.5Gi\ntolerations: a, b:NoExecute\nnode_selector: [x=1]\n")
    settings: Any = load_settings(tmp_path, {})
    assert (settings.cpu, settings.memory, settings.tolerations, settings.node_selector) == (
        "2", "1.5Gi", ("a", "b:NoExecute"), ("x=1",),
    )  # fmt: skip
