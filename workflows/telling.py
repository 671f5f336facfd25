"""The templates that tell others of a run: the exit handler, and `pending`, which says on its host that it runs."""

from __future__ import annotations

from hera.workflows import models as m

from workflows import pods, templates
from workflows.parameters import RunParameters, escape_dollars

# What the alert pod takes from the Secret, by key. All may be absent.
ALERT_KEYS = {
    "FOXRUN_ALERTS": "urls",
    "FOXRUN_ALERT_RULES": "rules",
    "FOXRUN_HOST_API": "host-api",
    "FOXRUN_HOST_TOKEN": "host-token",
    "FOXRUN_STATUS_KINDS": "status-kinds",
    "FOXRUN_WORKFLOW_URL": "workflow-url",
    "FOXRUN_REPORT_URL": "report-url",
}


def alert(p: RunParameters, kind: str) -> m.Template:
    """The exit handler: a DAG's outputs are not reliably there in onExit, so it reads the verdict by its fixed key."""
    return m.Template(
        name="exit-handler",
        inputs=m.Inputs(
            artifacts=[
                m.Artifact(
                    name="verdict",
                    path=f"{pods.IN}/verdict.json",
                    optional=True,
                    archive=templates.as_is(),
                    s3=m.S3Artifact(key=templates.VERDICT_KEY),
                )
            ]
        ),
        container=pods.container(
            p,
            image=templates.tools_image(p),
            command=["foxrun"],
            args=[
                "alert",
                *("--verdict", "{{inputs.artifacts.verdict.path}}"),
                *("--workflow", "{{workflow.name}}", "--namespace", "{{workflow.namespace}}"),
                *("--status", "{{workflow.status}}"),
                *("--failures", "{{workflow.failures}}"),
                *("--kind", kind if p.against is None else f"{kind}-against"),
                *("--sha", "{{workflow.parameters.sha}}"),
                *("--started", "{{workflow.creationTimestamp.RFC3339}}"),
                *(("--origin", escape_dollars(p.origin)) if p.origin else ()),
                *("--uid", "{{workflow.uid}}"),
                *("--history", "{{outputs.artifacts.history.path}}"),
            ],
            env=_alert_env(p),
            resources=pods.small_resources(),
        ),
        outputs=m.Outputs(
            artifacts=[
                m.Artifact(
                    name="history",
                    path=f"{pods.OUT}/history.json",
                    optional=True,
                    archive=templates.as_is(),
                    s3=m.S3Artifact(key="history/{{workflow.uid}}.json"),
                )
            ]
        ),
        timeout=f"{p.alert_timeout_s}s",
        retry_strategy=pods.retries(p),
        service_account_name=p.alerts_account,
        # The one pod of ours that talks to the API server: it keeps the state of alerts there.
        automount_service_account_token=True if p.alerts_account and p.executor_account else None,
    )


def pending_task() -> m.DAGTask:
    """The task that says that it runs. What comes last in the Workflow depends on it, by ``after_pending``."""
    return m.DAGTask(name="pending", template="pending")


def after_pending(depends: str | None) -> str:
    """``depends``, and that `pending` has ended however it did: nothing that fails beside the last task fails all."""
    return f"({depends}) && (pending.Succeeded || pending.Failed || pending.Errored)"


def pending(p: RunParameters, kind: str) -> m.Template:
    """Tells the commit's host that it is being checked. Says so and ends well where there is no token or no host."""
    return m.Template(
        name="pending",
        container=pods.container(
            p,
            image=templates.tools_image(p),
            command=["foxrun"],
            args=[
                *("status", "--pending", "{{workflow.name}}", "--kind", kind, "--sha", "{{workflow.parameters.sha}}"),
                *("--namespace", "{{workflow.namespace}}"),
                *(("--repository", escape_dollars(p.origin)) if p.origin else ()),
            ],
            env=[variable for variable in _alert_env(p) if variable.name != "FOXRUN_ALERTS"],
            resources=pods.small_resources(),
        ),
        timeout=f"{p.alert_timeout_s}s",
        retry_strategy=pods.retries(p),
    )


def _alert_env(p: RunParameters) -> list[m.EnvVar]:
    """Channels and tokens from the Secret; rules and addresses from it too, where the submitter has none of his own."""
    given = dict(p.alert_variables)
    env = [m.EnvVar(name="FOXRUN_BRANCH", value=escape_dollars(p.branch))]
    for name, key in ALERT_KEYS.items():
        if name in given:
            env.append(m.EnvVar(name=name, value=escape_dollars(given.pop(name))))
            continue
        secret = m.SecretKeySelector(name=p.alerts_secret, key=key, optional=True)
        env.append(m.EnvVar(name=name, value_from=m.EnvVarSource(secret_key_ref=secret)))
    return env + [m.EnvVar(name=name, value=escape_dollars(text)) for name, text in given.items()]
