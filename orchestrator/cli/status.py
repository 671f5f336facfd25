"""``foxrun status``."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import click

from orchestrator.cli import options


@click.command("status")
@click.argument("name", required=False)
@click.option("--pending", is_flag=True, help="Say that it runs; needs no NAME.")
@click.option("--sha", help="The commit.  [the workflow's; in a CI job that of the job]")
@click.option("--branch", help="Its branch.  [the workflow's; in a CI job that of the job]")
@click.option("--repository", metavar="URL", help="https://HOST/OWNER/NAME.  [that of the CI job, setting origin, git]")
@click.option("--pull", type=click.IntRange(min=1), metavar="N", help="Its pull or merge request.  [looked for]")
@click.option("--link", metavar="URL", help="Where the status leads.  [setting workflow_url, else the CI job]")
@click.option("--context", "label", metavar="TEXT", help="Name of the status.  [foxrun/KIND]")
@click.option("--kind", default="", help="Kind of workflow, where no NAME says it.  [ci-gate]")
@click.option("--no-comment", is_flag=True, help="Only the status.")
@click.option("--strict", is_flag=True, help="Exit with 6 when something was not written.")
def command(name: str | None, pending: bool, no_comment: bool, strict: bool, **flags: Any) -> None:
    """Tell the commit's host, GitHub or GitLab, what a workflow came to: a status and a comment.

    The status of the commit is set; in each open pull or merge request whose head it is, one comment is created, and
    updated the next time. The token is the variable FOXRUN_HOST_TOKEN, or the job's own GITHUB_TOKEN or GITLAB_TOKEN.
    What could not be written is said, and changes no exit code unless --strict is given.

    \b
    foxrun status --pending
    foxrun status @latest
    foxrun status @latest --repository https://ghe.example/desk/alpha --no-comment
    """
    from orchestrator import statuses
    from orchestrator.errors import FoxrunError

    if (name is None) != pending:
        raise click.UsageError("give the NAME of a workflow that has ended, or --pending")
    settings = options.current()
    try:
        verdict, context = _found(settings, name, flags)
        answer = statuses.tell(
            verdict,
            context,
            api=settings.host_api,
            environ=os.environ,
            name=flags["label"] or "",
            pull=flags["pull"] or (statuses.surroundings(os.environ).pull if verdict is not None else None),
            comment=not no_comment,
        )
    except FoxrunError as error:
        if strict:
            raise
        click.echo(f"status not written: {error}" + (f" ({error.remedy})" if error.remedy else ""), err=True)
        return
    for line in answer.done:
        click.echo(line)
    for line in answer.failed:
        click.echo(line, err=True)
    if answer.failed and strict:
        raise click.exceptions.Exit(6)


def _found(settings: Any, name: str | None, flags: dict[str, Any]) -> Any:
    """(verdict or None, what is known of the run): options first, then the workflow, the CI job, git."""
    from orchestrator import run_context, statuses
    from orchestrator.alert_text import AlertContext

    said = AlertContext(
        origin=flags["repository"] or "", sha=flags["sha"] or "", branch=flags["branch"] or "", link=flags["link"] or ""
    )
    around = statuses.surroundings(os.environ)
    job = AlertContext(origin=around.origin, sha=around.sha, branch=around.branch, link=around.job)
    if name is None:
        kind = AlertContext(kind=flags["kind"] or "ci-gate")
        here = AlertContext(
            origin=statuses.origin_of(settings), sha=statuses.head() if not (said.sha or job.sha) else ""
        )
        return None, run_context.merged(said, kind, job, here)
    from orchestrator.errors import UsageError
    from orchestrator.following import judge
    from orchestrator.lookup import full_name
    from orchestrator.outcome import is_completed

    engine = options.engine_of(settings)
    workflow = engine.get(full_name(engine, name))
    if not is_completed(workflow):
        raise UsageError(
            f"workflow {workflow['metadata']['name']} has not ended", remedy="foxrun watch it, or --pending"
        )
    known = run_context.of_workflow(workflow, url=settings.workflow_url)
    if around.sha and known.sha and around.sha != known.sha:
        job = dataclasses.replace(job, branch="")
    kind = AlertContext(kind=flags["kind"])
    here = AlertContext(origin=statuses.origin_of(settings))
    return judge(engine, workflow), run_context.merged(said, kind, known, job, here)
