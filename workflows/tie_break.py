"""The tie-break of a pair that drifted: a third leg, on another node where there is one, names the odd one out."""

from __future__ import annotations

from hera.workflows import models as m

from workflows import assembly, templates
from workflows.parameters import RunParameters
from workflows.pods import IN

LEGS = ("leg-a", "leg-b")


def tasks(p: RunParameters) -> list[m.DAGTask]:
    """leg-c when compare said drift, and then the comparison of all three, which fails with the pair's exit code."""
    third = assembly.leg_task(p, name="leg-c", leg="c")
    third.template = "leg-elsewhere"
    third.depends = "compare.Failed"
    third.when = "{{tasks.compare.outputs.parameters.verdict}} == drift"
    arguments = third.arguments or m.Arguments()
    nodes = [m.Parameter(name=f"node-of-{leg}", value=f"{{{{tasks.{leg}.hostNodeName}}}}") for leg in LEGS]
    arguments.parameters = [*(arguments.parameters or []), *nodes]
    return [third, _judge_task()]


def containers(p: RunParameters) -> list[m.Template]:
    """The leg that avoids the nodes of the others, and the comparison of three."""
    return [_leg_elsewhere(p), _judge(p)]


def _leg_elsewhere(p: RunParameters) -> m.Template:
    template = templates.leg(p)
    template.name = "leg-elsewhere"
    assert template.inputs is not None
    names = [f"node-of-{leg}" for leg in LEGS]
    template.inputs.parameters = [*(template.inputs.parameters or []), *(m.Parameter(name=name) for name in names)]
    # By node, since pods that have ended repel nobody; preferred, since a cluster may have one node with such GPUs.
    others = [
        m.NodeSelectorRequirement(key="metadata.name", operator="NotIn", values=[f"{{{{inputs.parameters.{name}}}}}"])
        for name in names
    ]
    elsewhere = m.PreferredSchedulingTerm(weight=100, preference=m.NodeSelectorTerm(match_fields=others))
    template.affinity = m.Affinity(
        node_affinity=m.NodeAffinity(preferred_during_scheduling_ignored_during_execution=[elsewhere])
    )
    return template


def _judge(p: RunParameters) -> m.Template:
    template = templates.compare(p)
    template.name = "tie-break"
    assert template.inputs is not None
    assert isinstance(template.container, m.Container)
    template.inputs.parameters = [*(template.inputs.parameters or []), m.Parameter(name="status-c")]
    template.inputs.artifacts = [
        *(template.inputs.artifacts or []),
        m.Artifact(name="c", path=f"{IN}/c", optional=True),
    ]
    command, a, b, *rest = template.container.args or []
    third = ["--third", "{{inputs.artifacts.c.path}}", "--status-c", "{{inputs.parameters.status-c}}"]
    template.container.args = [command, a, b, *third, *rest]
    return template


def _judge_task() -> m.DAGTask:
    sides = ("a", "b", "c")
    return m.DAGTask(
        name="tie-break",
        template="tie-break",
        depends="leg-c.Succeeded || leg-c.Failed || leg-c.Errored",
        arguments=m.Arguments(
            parameters=[m.Parameter(name=f"status-{s}", value=f"{{{{tasks.leg-{s}.status}}}}") for s in sides],
            artifacts=[
                m.Artifact(name=s, from_=f"{{{{tasks.leg-{s}.outputs.artifacts.run}}}}", optional=True) for s in sides
            ],
        ),
    )
