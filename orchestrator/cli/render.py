"""``foxrun render``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from orchestrator.cli import options
from orchestrator.cli.pods import describe_pods, of_pods
from orchestrator.cli.submit import describe_code, describe_run, request_of


@click.command("render")
@click.argument("kind", type=click.Choice(["train", "regression-pair", "ci-gate"]))
@describe_code
@options.training
@describe_run
@describe_pods
@options.output("yaml", "json", default="yaml")
def command(kind: str, fmt: str, **flags: Any) -> None:
    """Print the Workflow that a submit would send, as YAML.

    Nothing is stored and nothing is run; the same request gives the same text.

    \b
    foxrun render regression-pair --seed 43 -p envs=16
    foxrun render train | argo lint -
    """
    from orchestrator import submission
    from orchestrator.cli.output import print_json, print_yaml

    settings = options.current(**of_pods(flags))
    request = request_of({**flags, "regression_pair": kind == "regression-pair", "ci_gate": kind == "ci-gate"})
    engine = options.engine_of(settings)
    parameters = submission.parameters_of(request, settings, engine, directory=Path.cwd(), store=False)
    workflow = submission.workflow_of(kind, parameters)
    print_json(workflow) if fmt == "json" else print_yaml(workflow)
