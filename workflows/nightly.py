"""The workflow `nightly`: the regression pair at full size, on the default branch, every night.

A cluster starts it by the CronWorkflow in infra/, which names a branch; each pod records the tree that it really ran,
so legs between which the branch moved are `incomparable`, not `drift`.
"""

from __future__ import annotations

from dataclasses import replace

from hera.workflows import models as m

from workflows import assembly
from workflows.parameters import InvalidParameter, RunParameters
from workflows.regression_pair import regression_pair

ENVIRONMENTS, STEPS, EVAL_STEPS = 1024, 20_000, 5_000
NAME, TEMPLATE = "nightly", "nightly"


def nightly(p: RunParameters) -> m.Workflow:
    """The pair of ``p`` as kind `nightly`. Raises InvalidParameter when it compares with another commit."""
    if p.against is not None:
        raise InvalidParameter("against", "the nightly runs one commit twice", "Use --regression-pair")
    if p.name is None and p.generate_name is None:
        p = replace(p, generate_name=f"nightly-{assembly.short(p.sha)}")
    return regression_pair(p, kind="nightly")


def cron(*, schedule: str, timezone: str, arguments: dict[str, str]) -> m.CronWorkflow:
    """The CronWorkflow that starts the template `nightly`.

    Args:
        schedule: as of cron(5), five fields.
        timezone: an IANA name.
        arguments: parameters of the template, such as the branch as ``sha``.
    """
    return m.CronWorkflow(
        api_version="argoproj.io/v1alpha1",
        kind="CronWorkflow",
        metadata=m.ObjectMeta(name=NAME, labels={"foxrun.dev/kind": "nightly"}),
        spec=m.CronWorkflowSpec(
            schedules=[schedule],
            timezone=timezone,
            # A night that takes longer than a day is looked at, not run over by the next.
            concurrency_policy="Forbid",
            # The controller was away at that minute: still the same night.
            starting_deadline_seconds=3600,
            successful_jobs_history_limit=30,
            failed_jobs_history_limit=30,
            workflow_metadata=m.ObjectMeta(labels={"foxrun.dev/kind": "nightly"}),
            workflow_spec=m.WorkflowSpec(
                workflow_template_ref=m.WorkflowTemplateRef(name=TEMPLATE),
                arguments=m.Arguments(
                    parameters=[m.Parameter(name=name, value=value) for name, value in sorted(arguments.items())]
                ),
            ),
        ),
    )
