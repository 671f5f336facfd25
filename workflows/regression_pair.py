"""The workflow `regression-pair`: gate, then the same run twice, then the comparison."""

from __future__ import annotations

from hera.workflows import models as m

from workflows import assembly, telling, templates, tie_break
from workflows.names import label_value
from workflows.parameters import RunParameters

_TITLES = {"regression-pair": "Regression pair", "nightly": "Nightly pair"}
# Whose commit is told when it starts. A pair by hand is told of when it ends, where its kind is among status_kinds.
_TOLD = frozenset({"nightly"})
# Omitted (the gate failed) is left out on purpose: then there is nothing to compare.
_COMPLETED = "({leg}.Succeeded || {leg}.Failed || {leg}.Errored)"


def regression_pair(p: RunParameters, *, kind: str = "regression-pair") -> m.Workflow:
    """gate -> leg-a beside leg-b -> compare (-> leg-c -> tie-break); leg-b runs ``p.against`` where it is given."""
    on = f" on {label_value(p.branch)}" if p.branch else ""
    versus = "" if p.against is None else f" against {assembly.short(p.against)}"
    tasks = [
        assembly.leg_task(p, name="leg-a", leg="a"),
        assembly.leg_task(p, name="leg-b", leg="b", other_commit=p.against is not None),
        compare_task(),
    ]
    containers = [templates.leg(p), templates.compare(p)]
    if p.tie_break:
        tasks += tie_break.tasks(p)
        containers += tie_break.containers(p)
    if kind in _TOLD:
        tasks[-1].depends = telling.after_pending(tasks[-1].depends)
        tasks.append(telling.pending_task())
        containers.append(telling.pending(p, kind))
    if p.gate:
        tasks.insert(0, assembly.gate_task(p))
        containers.insert(0, templates.gate(p))
    return assembly.assemble(
        p,
        kind=kind,
        title=f"{_TITLES[kind]} of {assembly.short(p.sha)}{on}{versus}, seed {p.seed}, mode {p.mode}",
        description=(
            f"{p.steps} training and {p.eval_steps} evaluation steps, "
            + (f"commit {p.sha} twice" if p.against is None else f"commit {p.sha} against {p.against}")
            + (f", after a gate of {p.gate_steps} steps." if p.gate else ", without a gate.")
            + (" On drift a third leg names the odd one out." if p.tie_break else "")
        ),
        tasks=tasks,
        containers=containers,
    )


def compare_task(suffix: str = "") -> m.DAGTask:
    """The task that compares what leg-a and leg-b left, whatever they did; ``suffix`` ends the names of all three."""
    return m.DAGTask(
        name=f"compare{suffix}",
        template="compare",
        depends=" && ".join(_COMPLETED.format(leg=f"{leg}{suffix}") for leg in ("leg-a", "leg-b")),
        arguments=m.Arguments(
            parameters=[
                m.Parameter(name=f"status-{side}", value=f"{{{{tasks.leg-{side}{suffix}.status}}}}")
                for side in ("a", "b")
            ],
            # Optional here and in the template: a leg that was killed leaves no artifact to refer to.
            artifacts=[
                m.Artifact(name=side, from_=f"{{{{tasks.leg-{side}{suffix}.outputs.artifacts.run}}}}", optional=True)
                for side in ("a", "b")
            ],
        ),
    )
