"""The workflow `train`: gate, then one training run."""

from __future__ import annotations

from hera.workflows import models as m

from workflows import assembly, golden_check, templates
from workflows.names import label_value
from workflows.parameters import InvalidParameter, RunParameters


def train(p: RunParameters) -> m.Workflow:
    """gate -> train -> golden, the check against the commit's goldens; each end only where ``p`` asks for it.

    Raises InvalidParameter when ``p`` holds what only a pair has.
    """
    for name in ("against", "tolerance", "rtol"):
        if getattr(p, name) is not None:
            raise InvalidParameter(name, "a single run has nothing to compare with", "Use --regression-pair")
    on = f" on {label_value(p.branch)}" if p.branch else ""
    tasks = [assembly.leg_task(p, name="train", leg="a")]
    containers = [templates.leg(p)]
    if p.gate:
        tasks.insert(0, assembly.gate_task(p))
        containers.insert(0, templates.gate(p))
    if p.goldens is not None:
        tasks.append(golden_check.task())
        containers.append(golden_check.template(p, p.goldens))
    return assembly.assemble(
        p,
        kind="train",
        title=f"Training of {assembly.short(p.sha)}{on}, seed {p.seed}, mode {p.mode}",
        description=(
            f"{p.steps} training and {p.eval_steps} evaluation steps of commit {p.sha}"
            + (f", after a gate of {p.gate_steps} steps." if p.gate else ", without a gate.")
        ),
        tasks=tasks,
        containers=containers,
    )
