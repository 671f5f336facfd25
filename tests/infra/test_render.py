"""The WorkflowTemplates in infra/ are what foxrun itself would submit."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from infra import render
from workflows.parameters import RunParameters
from workflows.regression_pair import regression_pair
from workflows.render import to_dict


def test_every_file_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert (render.main(["--check"]), capsys.readouterr().out) == (0, ""), "run: python -m infra.render"


def test_the_check_sees_a_file_that_is_not_current(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(render, "HERE", tmp_path / "infra")
    made = ("base/workflow-templates", "overlays/gpu/workflow-templates", "components/webhooks", "components/nightly")
    for folder in made:
        (tmp_path / "infra" / folder).mkdir(parents=True)
    assert (render.main([]), len(capsys.readouterr().out.splitlines())) == (0, 22)
    file = tmp_path / "infra" / "base" / "workflow-templates" / "train.yaml"
    file.write_text(file.read_text().replace("'42'", "'43'"))
    assert render.main(["--check"]) == 1
    assert capsys.readouterr().out == "not current: infra/base/workflow-templates/train.yaml\n"
    assert (render.main([]), render.main(["--check"])) == (0, 0)


def test_a_template_differs_from_a_submitted_workflow_in_its_arguments_alone() -> None:
    sha, tree = "a" * 40, "b" * 40
    p = RunParameters(
        sha=sha, tree=tree, steps=200, eval_steps=50, data_key="k", data_name="book.mbp-10.dbn",
        alerts_account="foxrun-alerts",
    )  # fmt: skip
    submitted = to_dict(regression_pair(p))["spec"]
    template = render.workflow_template("regression-pair", data=True, gpus=0)["spec"]
    _take_from_parameters(submitted["templates"])
    differ = {key for key in {*submitted, *template} if submitted.get(key) != template.get(key)}
    assert differ == {"arguments", "workflowMetadata"}


def test_what_has_no_default_has_to_be_given() -> None:
    for kind in ("train", "regression-pair"):
        for data in (False, True):
            spec = render.workflow_template(kind, data=data, gpus=0)["spec"]
            required = [p["name"] for p in spec["arguments"]["parameters"] if "value" not in p]
            assert required == ["sha", "tree", "image", *(["data-key"] if data else [])]


def test_an_event_has_to_give_the_commit_alone() -> None:
    parameters = render.workflow_template("ci-gate", data=False, gpus=0)["spec"]["arguments"]["parameters"]
    assert {p["name"]: p.get("value") for p in parameters} == {
        "sha": None, "tree": "", "image": "foxrun:{sha}", "branch": "", "origin": "", "seed": "42", "mode": "1",
        "steps": "2000", "eval-steps": "500", "parameters": '{"envs":"128"}',
    }  # fmt: skip


def test_a_gpu_is_asked_for_by_the_pods_that_train() -> None:
    spec = render.workflow_template("regression-pair", data=False, gpus=1)["spec"]
    limits = {t["name"]: t["container"]["resources"]["limits"] for t in spec["templates"] if "container" in t}
    assert {name: limit.get("nvidia.com/gpu") for name, limit in limits.items()} == {
        "gate": "1", "leg": "1", "compare": None, "exit-handler": None,
    }  # fmt: skip
    assert spec["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]


def test_files_are_yaml_with_a_kind() -> None:
    *templates, (path, bindings), (night, cron) = render.files()
    for file, text in templates:
        template = yaml.safe_load(text)
        assert (template["kind"], template["metadata"]["name"]) == ("WorkflowTemplate", file.stem)
    assert (path.name, night.name) == ("bindings.yaml", "cron.yaml")
    assert yaml.safe_load(cron)["kind"] == "CronWorkflow"
    assert {binding["kind"] for binding in yaml.safe_load_all(bindings)} == {"WorkflowEventBinding"}


def _take_from_parameters(templates: list[dict[str, Any]]) -> None:
    """Branch and address of the repository, which a Workflow that is submitted has written in it."""
    for template in templates:
        if template["name"] == "exit-handler":
            template["container"]["args"] += ["--origin", "{{=sprig.replace('$', '$$', workflow.parameters.origin)}}"]
        for variable in (template.get("container") or {}).get("env") or []:
            if variable["name"] == "FOXRUN_BRANCH":
                variable["value"] = "{{=sprig.replace('$', '$$', workflow.parameters.branch)}}"
