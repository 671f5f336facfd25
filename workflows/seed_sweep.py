"""The workflow `seed-sweep`: gate, then a pair for each seed, and one table of their verdicts.

Pairs, not single runs: a build may be exact for one seed and not for another, when the seed decides which code runs.
"""

from __future__ import annotations

from hera.workflows import models as m

from workflows import assembly, telling, templates
from workflows.names import label_value
from workflows.parameters import InvalidParameter, RunParameters
from workflows.pods import IN
from workflows.regression_pair import compare_task

# Two at a time: one pair. A cluster with more GPUs is told so by `parallel`.
PARALLEL = 2
_ENDED = "({task}.Succeeded || {task}.Failed || {task}.Errored)"


def seed_sweep(p: RunParameters) -> m.Workflow:
    """gate -> (leg-a-S beside leg-b-S -> compare-S) for each seed S of ``p.seeds`` -> seeds.

    Raises InvalidParameter when ``p`` compares with another commit or breaks ties, or names fewer than two seeds.
    """
    if p.against is not None:
        raise InvalidParameter("against", "a sweep runs one commit", "Use --regression-pair")
    if p.tie_break:
        raise InvalidParameter(
            "tie_break", "a sweep has no third legs", "Use --regression-pair for the seed that parts"
        )
    if len(p.seeds) < 2:
        raise InvalidParameter("seeds", "a sweep has two seeds or more", "For example: --seeds 42-46")
    tasks: list[m.DAGTask] = []
    for seed in p.seeds:
        for leg in ("a", "b"):
            task = assembly.leg_task(p, name=f"leg-{leg}-{seed}", leg=leg)
            _pass(task, seed)
            tasks.append(task)
        task = compare_task(suffix=f"-{seed}")
        _pass(task, seed)
        tasks.append(task)
    tasks += [_seeds_task(p), telling.pending_task()]
    containers = [templates.leg(p, seed=SEED), _compare(p), _seeds(p)]
    for template in containers[:2]:
        assert template.inputs is not None
        template.inputs.parameters = [*(template.inputs.parameters or []), m.Parameter(name="seed")]
    containers.append(telling.pending(p, "seed-sweep"))
    if p.gate:
        tasks.insert(0, assembly.gate_task(p))
        containers.insert(0, templates.gate(p))
    shown = f"{p.seeds[0]} to {p.seeds[-1]}" if _is_range(p.seeds) else ", ".join(map(str, p.seeds))
    on = f" on {label_value(p.branch)}" if p.branch else ""
    workflow = assembly.assemble(
        p,
        kind="seed-sweep",
        title=f"Seed sweep of {assembly.short(p.sha)}{on}, seeds {shown}, mode {p.mode}",
        description=(
            f"{p.steps} training and {p.eval_steps} evaluation steps, commit {p.sha} twice for each of seeds {shown}"
            + (f", after a gate of {p.gate_steps} steps." if p.gate else ", without a gate.")
        ),
        tasks=tasks,
        containers=containers,
    )
    assert isinstance(workflow.spec, m.WorkflowSpec)
    workflow.spec.parallelism = p.parallel
    return workflow


SEED = "{{inputs.parameters.seed}}"


def _is_range(seeds: tuple[int, ...]) -> bool:
    return len(seeds) > 2 and seeds == tuple(range(seeds[0], seeds[0] + len(seeds)))


def _pass(task: m.DAGTask, seed: int) -> None:
    task.arguments = task.arguments or m.Arguments()
    task.arguments.parameters = [*(task.arguments.parameters or []), m.Parameter(name="seed", value=str(seed))]


def _compare(p: RunParameters) -> m.Template:
    """The pair's comparison, verdict and report under the seed's own keys: the workflow's are those of the table."""
    template = templates.compare(p)
    assert template.outputs is not None
    for artifact in template.outputs.artifacts or []:
        assert artifact.s3 is not None
        assert artifact.s3.key is not None
        artifact.s3.key = artifact.s3.key.replace("{{workflow.uid}}/", f"{{{{workflow.uid}}}}/seed-{SEED}/")
    return template


def _seeds(p: RunParameters) -> m.Template:
    """Puts the verdicts into one table, and compares the runs of different seeds: does the seed matter?"""
    template = templates.compare(p)
    template.name = "seeds"
    assert template.container is not None
    assert template.container.args is not None
    args = ["seeds"]
    for seed in p.seeds:
        args += ["--of", str(seed), f"{{{{inputs.artifacts.verdict-{seed}.path}}}}"]
        args += [f"{{{{inputs.artifacts.run-{seed}.path}}}}", f"{{{{inputs.parameters.status-{seed}}}}}"]
    start = template.container.args.index("--verdict")
    template.container.args = [*args, *template.container.args[start:]]
    template.inputs = m.Inputs(
        parameters=[m.Parameter(name=f"status-{seed}") for seed in p.seeds],
        artifacts=[
            artifact
            for seed in p.seeds
            for artifact in (
                m.Artifact(
                    name=f"verdict-{seed}", path=f"{IN}/{seed}/verdict.json", optional=True, archive=templates.as_is()
                ),
                m.Artifact(name=f"run-{seed}", path=f"{IN}/{seed}/run", optional=True),
            )
        ],
    )
    return template


def _seeds_task(p: RunParameters) -> m.DAGTask:
    return m.DAGTask(
        name="seeds",
        template="seeds",
        depends=telling.after_pending(" && ".join(_ENDED.format(task=f"compare-{seed}") for seed in p.seeds)),
        arguments=m.Arguments(
            parameters=[
                m.Parameter(name=f"status-{seed}", value=f"{{{{tasks.compare-{seed}.status}}}}") for seed in p.seeds
            ],
            artifacts=[
                artifact
                for seed in p.seeds
                for artifact in (
                    m.Artifact(
                        name=f"verdict-{seed}",
                        from_=f"{{{{tasks.compare-{seed}.outputs.artifacts.verdict}}}}",
                        optional=True,
                    ),
                    m.Artifact(
                        name=f"run-{seed}", from_=f"{{{{tasks.leg-a-{seed}.outputs.artifacts.run}}}}", optional=True
                    ),
                )
            ],
        ),
    )
