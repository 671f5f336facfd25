"""The WorkflowTemplates of infra/, made of the very Workflows that foxrun submits, and the WorkflowEventBindings.

python -m infra.render            writes what is made: base and overlays/gpu/workflow-templates, components/webhooks
python -m infra.render --check    says which of them are not current; exit code 1 then
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hera.workflows.models import Workflow

from infra import events
from workflows import ci_gate, nightly
from workflows.parameters import RunParameters, Toleration
from workflows.regression_pair import regression_pair
from workflows.render import to_dict, to_yaml
from workflows.seed_sweep import seed_sweep
from workflows.train import train

HERE = Path(__file__).resolve().parent
_MADE = "# Made by `python -m infra.render`.\n"
_KINDS = {
    "train": train,
    "regression-pair": regression_pair,
    "ci-gate": ci_gate.ci_gate,
    "seed-sweep": seed_sweep,
    "nightly": nightly.nightly,
}
# Of our trainer: environments, training and evaluation steps.
_SIZES = {kind: (m.ENVIRONMENTS, m.STEPS, m.EVAL_STEPS) for kind, m in (("ci-gate", ci_gate), ("nightly", nightly))}
_SEEDS = (42, 43, 44, 45, 46)
# Every night, on the default branch, at a minute that others leave alone.
_SCHEDULE, _TIMEZONE, _DEFAULT_BRANCH = "17 1 * * *", "Etc/UTC", "main"
# Stands for a commit while rendering; nothing of it may be left in a template.
_NOBODY = "0" * 40
# In the order in which a form shows them. Those without a default have to be given.
_REQUIRED = ("sha", "tree", "image")
# An event tells the commit alone, so the image is a pattern, and the tree is unknown where the host does not say it.
_OF_EVENTS = {"tree": "", "image": "foxrun:{sha}"}
# A night knows its branch alone: image and, with `code: git`, files are what the branch is when a pod starts.
_OF_NIGHTS = {"sha": _DEFAULT_BRANCH, "tree": "", "image": f"foxrun:{_DEFAULT_BRANCH}", "branch": _DEFAULT_BRANCH}
_MEANINGS_OF_EVENTS = {
    "tree": "Tree of that commit, where it is known: a run of another tree is incomparable",
    "image": "Image; {sha} becomes the commit: REGISTRY/foxrun:{sha}",
}
_MEANINGS_OF_NIGHTS = {
    "sha": "Branch or commit; each run records the tree that it really ran",
    "tree": "Tree, where it is known: a run of another tree is incomparable",
    "image": "Image of that branch: REGISTRY/foxrun:main",
}
_MEANINGS = {
    "sha": "Commit that runs, all 40 digits",
    "tree": "Tree of that commit: git rev-parse 'SHA^{tree}'; a run of another tree is incomparable",
    "image": "Image of that commit, by digest: REGISTRY/foxrun@sha256:...",
    "branch": "Branch, for people and filters",
    "origin": "Repository, whose host is told of the commit: https://HOST/OWNER/NAME; empty: nobody is told",
    "data-key": "Key of the order-book file in the bucket: inputs/SHA256/NAME.dbn.zst",
    "seed": "Seed of every random draw",
    "mode": "0 fast, 1 pedantic, 2 control, 3 fast and exact",
    "steps": "Training steps",
    "eval-steps": "Evaluation steps after training",
    "parameters": "The trainer's parameters, a JSON object of strings",
    "gate-steps": "Steps of each twin of the gate",
}
_ORIGIN_OPTIONS = {"exit-handler": "--origin", "pending": "--repository"}
# Of a leg. The default fits on the smallest node; beside a GPU there is more than enough.
_GPU_POD = {"cpu": "2", "memory": "8Gi"}
_TITLES = {
    "train": "Gate, then one training run",
    "regression-pair": "Gate, the same run twice, comparison",
    "ci-gate": "The mid-smoke twice, comparison",
    "seed-sweep": f"Gate, a pair for each of seeds {_SEEDS[0]} to {_SEEDS[-1]}, one table",
    "nightly": "Gate, the pair at full size, comparison",
}


def workflow_template(kind: str, *, data: bool, gpus: int, cpu: str = "500m", memory: str = "1Gi") -> dict[str, Any]:
    """A WorkflowTemplate: what `kind` is with commit, image, seed and the rest left to whoever submits it.

    Args:
        kind: a name of _KINDS.
        data: whether it runs on a file in the bucket; without, on a generated book.
        gpus: of each training pod.
        cpu, memory: of a leg, as Kubernetes writes them; the gate gets twice as much.
    """
    envs, steps, eval_steps = _SIZES.get(kind, (None, 200, 50))
    p = RunParameters(
        sha=_NOBODY,
        tree=_NOBODY,
        steps=steps,
        eval_steps=eval_steps,
        parameters=(("envs", str(envs)),) if envs else (),
        seeds=_SEEDS if kind == "seed-sweep" else (),
        data_key="data" if data else None,
        data_name="book.mbp-10.dbn" if data else None,
        gpus=gpus,
        cpu=cpu,
        memory=memory,
        tolerations=(Toleration(key="nvidia.com/gpu", effect="NoSchedule"),) if gpus else (),
        alerts_account="foxrun-alerts",
    )
    made: Workflow = _KINDS[kind](p)
    spec = to_dict(made)["spec"]
    _name_the_branch(spec)
    _name_the_origin(spec)
    spec["arguments"] = _arguments(spec["arguments"], data=data, kind=kind)
    shown = {
        "workflows.argoproj.io/title": _TITLES[kind],
        "workflows.argoproj.io/description": "On a file in the bucket." if data else "On a generated book.",
    }
    spec["workflowMetadata"] = {
        "labels": {"foxrun.dev/kind": kind},
        "labelsFrom": {
            events.BRANCH: {"expression": events.label_of("workflow.parameters.branch")},
            # A night's is a branch, whose slashes no label can have.
            "foxrun.dev/sha": {"expression": events.label_of("workflow.parameters.sha")},
            **{f"foxrun.dev/{name}": {"expression": f"workflow.parameters.{name}"} for name in ("seed", "mode")},
        },
        "annotations": shown,
    }
    if kind == "ci-gate":
        events.prepare(spec)
    template = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "WorkflowTemplate",
        "metadata": {
            "name": f"{kind}-on-data" if data else kind,
            "annotations": dict(shown),
        },
        "spec": spec,
    }
    if _NOBODY in to_yaml(template):
        raise AssertionError(f"{kind}: a commit is written into the template; make it a workflow parameter")
    return template


def files() -> Iterator[tuple[Path, str]]:
    """Every file with its text."""
    for kind in _KINDS:
        for data in (False, True):
            for folder, gpus in ((HERE / "base", 0), (HERE / "overlays" / "gpu", 1)):
                template = workflow_template(kind, data=data, gpus=gpus, **(_GPU_POD if gpus else {}))
                path = folder / "workflow-templates" / f"{template['metadata']['name']}.yaml"
                yield path, _MADE + to_yaml(template)
    path = HERE / "components" / "webhooks" / "bindings.yaml"
    yield path, _MADE + "---\n".join(to_yaml(binding) for binding in events.bindings())
    night = nightly.cron(schedule=_SCHEDULE, timezone=_TIMEZONE, arguments=_OF_NIGHTS)
    yield HERE / "components" / "nightly" / "cron.yaml", _MADE + to_yaml(to_dict(night))


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m infra.render", description="Make the WorkflowTemplates of infra/.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 when a file is not current")
    check = parser.parse_args(arguments).check
    old = 0
    for path, text in files():
        if path.exists() and path.read_text("utf-8") == text:
            continue
        old += 1
        if not check:
            path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{'not current' if check else 'written'}: {path.relative_to(HERE.parent)}\n")
    return 1 if check and old else 0


def _name_the_branch(spec: dict[str, Any]) -> None:
    for template in spec["templates"]:
        for variable in (template.get("container") or {}).get("env") or []:
            if variable["name"] == "FOXRUN_BRANCH":
                # As escape_dollars: Kubernetes expands $(NAME) in the value of a variable.
                variable["value"] = "{{=sprig.replace('$', '$$', workflow.parameters.branch)}}"


def _name_the_origin(spec: dict[str, Any]) -> None:
    """The repository's address comes from a parameter; of what an event starts, the event's own goes first."""
    said = "{{=sprig.replace('$', '$$', workflow.parameters.origin)}}"
    for template in spec["templates"]:
        if (option := _ORIGIN_OPTIONS.get(template["name"])) is not None:
            template["container"]["args"] += [option, said]


def _arguments(arguments: dict[str, Any], *, data: bool, kind: str) -> dict[str, Any]:
    defaults = {p["name"]: p["value"] for p in arguments["parameters"]} | {"branch": "", "origin": ""}
    chosen = {name: value for name, value in defaults.items() if name not in _REQUIRED}
    chosen |= {"ci-gate": _OF_EVENTS, "nightly": _OF_NIGHTS}.get(kind, {})
    meanings = _MEANINGS | {"ci-gate": _MEANINGS_OF_EVENTS, "nightly": _MEANINGS_OF_NIGHTS}.get(kind, {})
    names = [name for name in _MEANINGS if name in defaults or (data and name == "data-key")]
    parameters = []
    for name in names:
        parameter: dict[str, Any] = {"name": name, "description": meanings[name]}
        if name in chosen:
            parameter["value"] = chosen[name]
        if name == "mode":
            parameter["enum"] = ["0", "1", "2", "3"]
        parameters.append(parameter)
    made: dict[str, Any] = {"parameters": parameters}
    if data:
        made["artifacts"] = arguments["artifacts"]
        made["artifacts"][0]["s3"]["key"] = "{{workflow.parameters.data-key}}"
    return made


if __name__ == "__main__":
    raise SystemExit(main())
