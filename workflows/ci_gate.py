"""The workflow `ci-gate`: the mid-smoke twice, then the comparison. What a push or a pull request starts.

It has no gate of its own: the smoke is long enough to be one, and whoever waits for a push waits for one thing.
"""

from __future__ import annotations

from dataclasses import replace

from hera.workflows import models as m

from workflows import assembly, telling, templates
from workflows.names import label_value
from workflows.parameters import InvalidParameter, RunParameters
from workflows.regression_pair import compare_task

# The mid-smoke. A run of other lengths is asked for by name: `--steps`, or a parameter of the template.
ENVIRONMENTS, STEPS, EVAL_STEPS, MODE = 128, 2000, 500, 1


def ci_gate(p: RunParameters) -> m.Workflow:
    """leg-a beside leg-b -> compare, of one commit, compared bit for bit; ``p.gate`` has no meaning here.

    Raises InvalidParameter when ``p`` compares with something else, or less than every bit.
    """
    for name in ("against", "tolerance", "rtol"):
        if getattr(p, name) is not None:
            raise InvalidParameter(name, "a CI gate runs one commit twice and compares bits", "Use --regression-pair")
    p = replace(p, gate=False)
    on = f" on {label_value(p.branch)}" if p.branch else ""
    return assembly.assemble(
        p,
        kind="ci-gate",
        title=f"CI gate of {assembly.short(p.sha)}{on}, seed {p.seed}, mode {p.mode}",
        description=f"{p.steps} training and {p.eval_steps} evaluation steps, commit {p.sha} twice.",
        tasks=[
            telling.pending_task(),
            assembly.leg_task(p, name="leg-a", leg="a"),
            assembly.leg_task(p, name="leg-b", leg="b"),
            _compare_task(),
        ],
        containers=[templates.leg(p), templates.compare(p), telling.pending(p, "ci-gate")],
    )


def _compare_task() -> m.DAGTask:
    task = compare_task()
    task.depends = telling.after_pending(task.depends)
    return task
