"""What all workflows share: metadata people can filter by and read, arguments, lifetime."""

from __future__ import annotations

from collections.abc import Sequence

from hera.workflows import models as m

from workflows import metrics, pods, telling, templates
from workflows.names import label_value, name_prefix, workflow_name
from workflows.parameters import WORKTREE, RunParameters

ENTRYPOINT = "main"
EXIT_HANDLER = "exit-handler"


def assemble(
    p: RunParameters,
    *,
    kind: str,
    title: str,
    description: str,
    tasks: Sequence[m.DAGTask],
    containers: Sequence[m.Template],
) -> m.Workflow:
    """The Workflow ``kind`` made of a DAG of ``tasks``, the ``containers`` they call, and the exit handler."""
    # failFast off: a leg that fails must not keep the other one, or compare, from running.
    main = m.Template(
        name=ENTRYPOINT,
        inputs=m.Inputs(artifacts=[m.Artifact(name="data")]) if p.data_key else None,
        dag=m.DAGTemplate(tasks=list(tasks), fail_fast=False),
    )
    metrics.of_templates(containers, kind)
    return m.Workflow(
        api_version="argoproj.io/v1alpha1",
        kind="Workflow",
        metadata=_metadata(p, kind=kind, title=title, description=description),
        spec=m.WorkflowSpec(
            entrypoint=ENTRYPOINT,
            on_exit=EXIT_HANDLER,
            arguments=_arguments(p),
            archive_logs=True,
            pod_gc=m.PodGC(strategy="OnPodSuccess", delete_delay_duration="60s"),
            security_context=pods.pod_security(p),
            metrics=metrics.of_workflow(kind),
            image_pull_secrets=[m.LocalObjectReference(name=name) for name in p.image_pull_secrets] or None,
            node_selector=dict(p.node_selector) or None,
            pod_priority_class_name=p.priority_class,
            service_account_name=p.service_account,
            automount_service_account_token=None if p.executor_account is None else False,
            executor=pods.executor(p),
            templates=[main, *containers, telling.alert(p, kind)],
            tolerations=pods.tolerations(p),
            ttl_strategy=m.TTLStrategy(seconds_after_completion=p.ttl_s),
            volumes=pods.volumes(),
        ),
    )


def gate_task(p: RunParameters) -> m.DAGTask:
    """The task on which everything else waits."""
    artifacts = _data_argument(p)
    return m.DAGTask(name="gate", template="gate", arguments=m.Arguments(artifacts=artifacts) if artifacts else None)


def leg_task(p: RunParameters, *, name: str, leg: str, other_commit: bool = False) -> m.DAGTask:
    """A task that runs one leg; ``other_commit`` runs ``p.against``."""
    of = "against-" if other_commit else ""
    sha = f"{{{{workflow.parameters.{'against' if other_commit else 'sha'}}}}}"
    values = {
        "leg": leg,
        "checkout": WORKTREE if p.worktree is not None and not other_commit else sha,
        "sha": sha,
        "tree": f"{{{{workflow.parameters.{of}tree}}}}",
        "image": f"{{{{workflow.parameters.{of}image}}}}",
    }
    return m.DAGTask(
        name=name,
        template="leg",
        depends="gate.Succeeded" if p.gate else None,
        arguments=m.Arguments(
            parameters=[m.Parameter(name=key, value=value) for key, value in values.items()],
            artifacts=_data_argument(p),
        ),
    )


def _data_argument(p: RunParameters) -> list[m.Artifact] | None:
    return [m.Artifact(name="data", from_="{{inputs.artifacts.data}}")] if p.data_key else None


def short(sha: str) -> str:
    """A commit as people write it."""
    return sha[:7]


def _metadata(p: RunParameters, *, kind: str, title: str, description: str) -> m.ObjectMeta:
    originals = {
        "foxrun.dev/sha": p.sha,
        "foxrun.dev/branch": p.branch,
        "foxrun.dev/seed": str(p.seed),
        "foxrun.dev/mode": str(p.mode),
        "foxrun.dev/kind": kind,
        "foxrun.dev/against": p.against or "",
    }
    originals = {key: text for key, text in originals.items() if text}
    annotations = {
        **originals,
        "workflows.argoproj.io/title": title,
        "workflows.argoproj.io/description": description,
    }
    if p.origin:
        annotations["foxrun.dev/origin"] = p.origin
    if p.worktree is not None:
        annotations["foxrun.dev/worktree"] = p.worktree
    if p.name is not None:
        annotations["foxrun.dev/name"] = p.name
    prefix = p.generate_name if p.generate_name is not None else f"{kind}-{short(p.sha)}"
    return m.ObjectMeta(
        name=None if p.name is None else workflow_name(p.name),
        generate_name=None if p.name is not None else name_prefix(prefix),
        labels={key: label_value(text) for key, text in originals.items()},
        annotations=annotations,
    )


def _arguments(p: RunParameters) -> m.Arguments:
    values = {
        "sha": p.sha,
        "tree": p.tree,
        "image": p.image_of(p.sha),
        "seed": str(p.seed),
        "mode": str(p.mode),
        "steps": str(p.steps),
        "eval-steps": str(p.eval_steps),
        "parameters": p.parameters_json,
    }
    if p.gate:
        values["gate-steps"] = str(p.gate_steps)
    if p.against is not None and p.against_tree is not None:
        values |= {"against": p.against, "against-tree": p.against_tree, "against-image": p.image_of(p.against)}
    if p.tolerance_json is not None:
        values["tolerance"] = p.tolerance_json
    if p.rtol is not None:
        values["rtol"] = repr(float(p.rtol))
    artifacts = None
    if p.data_key is not None:
        # Not archived: without this Argo would unpack an input that happens to be a tar or zip file.
        artifacts = [m.Artifact(name="data", archive=templates.as_is(), s3=m.S3Artifact(key=p.data_key))]
    return m.Arguments(parameters=[m.Parameter(name=k, value=v) for k, v in values.items()], artifacts=artifacts)
