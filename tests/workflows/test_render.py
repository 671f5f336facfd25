"""Rendering is pure, stable, and read alike by every YAML parser."""

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hera.shared import global_config
from hera.workflows import Container, Workflow
from hypothesis import example, given
from hypothesis import strategies as st

from tests.workflows.cases import ALL, GOLDEN, SYNTHETIC
from workflows.parameters import InvalidParameter
from workflows.pods import times
from workflows.regression_pair import regression_pair
from workflows.render import to_dict, to_yaml
from workflows.train import train


@pytest.mark.parametrize("name", GOLDEN)
def test_yaml_holds_exactly_the_dict(name: str) -> None:
    workflow = GOLDEN[name]()
    text = to_yaml(workflow)
    assert yaml.safe_load(text) == to_dict(workflow)
    assert to_yaml(to_dict(workflow)) == text
    assert "&id" not in text and "*id" not in text


def test_hera_settings_of_the_caller_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = to_yaml(regression_pair(ALL))
    for field, value in {"_image": "x", "namespace": "x", "api_version": "x", "service_account_name": "x"}.items():
        monkeypatch.setattr(global_config, field, value)
    monkeypatch.setattr(global_config, "_pre_build_hooks", {Container: [lambda c: 1 / 0]})
    with Workflow(name="somebody-elses") as surrounding:
        assert to_yaml(regression_pair(ALL)) == before
    assert surrounding.templates == []


def test_another_process_with_another_hash_seed_renders_the_same() -> None:
    program = (
        "from tests.workflows.cases import ALL; from workflows.regression_pair import regression_pair as f;"
        "from workflows.render import to_yaml; import sys; sys.stdout.buffer.write(to_yaml(f(ALL)).encode())"
    )
    root = str(__file__).rsplit("/tests/", 1)[0]
    environment = {"PYTHONHASHSEED": "7", "PYTHONPATH": root, "TZ": "Asia/Tokyo", "FOXRUN_MODE": "0"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
    assert done.stdout.decode() == to_yaml(regression_pair(ALL))


@pytest.mark.parametrize(
    "text",
    [
        "1e5",
        "12e4567",
        "0o17",
        "0x1F",
        "1_000",
        "y",
        "N",
        "on",
        "null",
        "~",
        "",
        ".inf",
        "-.INF",
        ".nan",
        "1.",
        "+1",
        "=",
    ],
)
def test_text_that_a_parser_could_take_for_something_else_is_quoted(text: str) -> None:
    rendered = to_yaml({"value": text}).rstrip("\n")
    assert rendered in (f"value: '{text}'", f'value: "{text}"')


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8))
@example("\x85")
@example("1\u2028")
@example({"\u2029 ": ["a\x85", "\ufeff", "\r\n", "\x7f"]})
def test_any_text_survives_yaml(value: Any) -> None:
    assert yaml.safe_load(to_yaml({"value": value})) == {"value": value}


def test_legs_differ_in_their_letter_alone() -> None:
    tasks = {task["name"]: task for task in to_dict(regression_pair(SYNTHETIC))["spec"]["templates"][0]["dag"]["tasks"]}
    a, b = (
        {item["name"]: item["value"] for item in tasks[f"leg-{leg}"]["arguments"]["parameters"]} for leg in ("a", "b")
    )
    assert (a.pop("leg"), b.pop("leg")) == ("a", "b")
    assert a == b
    assert tasks["leg-a"]["template"] == tasks["leg-b"]["template"] == "leg"


def _parameters(task: dict[str, Any]) -> list[dict[str, str]]:
    return task["arguments"].get("parameters", [])


def test_against_changes_the_code_of_leg_b_alone() -> None:
    plain = to_dict(regression_pair(replace(ALL, against=None, against_tree=None)))["spec"]["templates"]
    against = to_dict(regression_pair(ALL))["spec"]["templates"]
    assert {t["name"] for t, u in zip(plain, against, strict=True) if t != u} == {"main", "compare", "exit-handler"}
    changed = [
        (one["name"], old["name"], new["value"])
        for one, other in zip(plain[0]["dag"]["tasks"], against[0]["dag"]["tasks"], strict=True)
        for old, new in zip(_parameters(one), _parameters(other), strict=True)
        if old != new
    ]
    assert changed == [
        ("leg-b", "checkout", "{{workflow.parameters.against}}"),
        ("leg-b", "sha", "{{workflow.parameters.against}}"),
        ("leg-b", "tree", "{{workflow.parameters.against-tree}}"),
        ("leg-b", "image", "{{workflow.parameters.against-image}}"),
    ]


def test_without_a_gate_nothing_waits_for_one() -> None:
    workflow = to_dict(regression_pair(replace(SYNTHETIC, gate=False)))
    assert "gate" not in {template["name"] for template in workflow["spec"]["templates"]}
    assert "gate" not in str(workflow["spec"]["arguments"])
    tasks = workflow["spec"]["templates"][0]["dag"]["tasks"]
    assert [task["name"] for task in tasks if "depends" not in task] == ["leg-a", "leg-b"]


@pytest.mark.parametrize("pair", [train, regression_pair])
def test_every_pod_is_confined(pair: Any) -> None:
    spec = to_dict(pair(SYNTHETIC))["spec"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] > 0
    containers = [t["container"] for t in spec["templates"] if "container" in t]
    assert len(containers) >= 3
    for container in containers:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "privileged": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
        }
        assert set(container["resources"]) == {"limits", "requests"}
    assert all("timeout" in t and "retryStrategy" in t for t in spec["templates"] if "container" in t)


def test_the_gate_reports_a_hang_before_its_pod_is_ended() -> None:
    template = {t["name"]: t for t in to_dict(regression_pair(replace(ALL, gate_timeout_s=77)))["spec"]["templates"]}[
        "gate"
    ]
    args = template["container"]["args"]
    assert args[args.index("--timeout") + 1] == "77s" and args.index("--timeout") < args.index("--")
    # 180 s of them may go into the search for a cause.
    assert template["timeout"] == "377s"


def test_gpus_are_for_those_who_train() -> None:
    templates = {t["name"]: t for t in to_dict(regression_pair(ALL))["spec"]["templates"]}
    for name in ("gate", "leg"):
        assert templates[name]["container"]["resources"]["limits"]["nvidia.com/gpu"] == "1"
        assert templates[name]["nodeSelector"] == {"nvidia.com/gpu.product": "NVIDIA-H200"}
    for name in ("compare", "exit-handler"):
        assert "nvidia.com/gpu" not in templates[name]["container"]["resources"]["limits"]
        assert "nodeSelector" not in templates[name]


@pytest.mark.parametrize(
    ("quantity", "factor", "product"),
    [("2", 2, "4"), ("500m", 2, "1000m"), ("1.5", 2, "3"), ("8Gi", 2, "16Gi"), ("0.5Ti", 1, "0.5Ti"), ("50", 2, "100")],
)
def test_quantities_multiply_exactly(quantity: str, factor: int, product: str) -> None:
    assert times(quantity, factor) == product


@pytest.mark.parametrize("change", [{"against": SYNTHETIC.sha, "against_tree": SYNTHETIC.tree}, {"rtol": 1e-5}])
def test_a_single_run_refuses_what_only_a_pair_has(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match="Use --regression-pair"):
        train(replace(SYNTHETIC, **change))
