"""The last part of a training: its first steps against the golden of its hardware and configuration."""

from __future__ import annotations

from hera.workflows import models as m

from workflows import pods, templates
from workflows.parameters import RunParameters, escape_dollars
from workflows.pods import IN


def task() -> m.DAGTask:
    """Runs when the training has succeeded."""
    return m.DAGTask(
        name="golden",
        template="golden",
        depends="train.Succeeded",
        arguments=m.Arguments(
            artifacts=[m.Artifact(name="run", from_="{{tasks.train.outputs.artifacts.run}}", optional=True)]
        ),
    )


def template(p: RunParameters, folder: str) -> m.Template:
    """`foxrun golden check` where the commit's files are: in its worktree, its image, or mounted by git."""
    made, leg = templates.compare(p), templates.leg(p)
    assert isinstance(made.container, m.Container)
    assert isinstance(leg.container, m.Container)
    assert made.container.args is not None
    made.name = "golden"
    outputs = made.container.args[made.container.args.index("--verdict") :]
    made.container.args = ["golden", "check", "--run", "{{inputs.artifacts.run.path}}", "--if-recorded", *outputs]
    made.container.image = "{{workflow.parameters.image}}"
    made.container.working_dir = leg.container.working_dir
    made.container.env = [m.EnvVar(name="FOXRUN_GOLDENS", value=escape_dollars(folder))]
    made.container.resources = pods.small_resources()
    made.metadata = templates.gate(p).metadata
    code = [
        artifact for artifact in (templates.gate(p).inputs or m.Inputs()).artifacts or [] if artifact.name == "code"
    ]
    made.inputs = m.Inputs(artifacts=[*code, m.Artifact(name="run", path=f"{IN}/run", optional=True)])
    return made
