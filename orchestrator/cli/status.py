"""``foxrun status``."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli import options

if TYPE_CHECKING:
    from orchestrator.alert_text import AlertContext


@click.command("status")
@click.argument("name", required=False)
@click.option("--pending", is_flag=True, help="Say that it runs; NAME may be left out.")
@click.option("--sha", help="The commit.  [the workflow's; in a CI job that of the job]")
@click.option("--branch", envvar="FOXRUN_BRANCH", help="Its branch.  [the workflow's; in a CI job that of the job]")
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

    if name is None and not pending:
        raise click.UsageError("give the NAME of a workflow that has ended, or --pending")
    settings = options.current()
    if pending and name and flags["kind"] and flags["kind"] not in settings.status_kinds:
        click.echo(f"no status: {flags['kind']} is not among status_kinds")
        return
    try:
        verdict, context = _running(settings, name, flags) if pending else _ended(settings, str(name), flags)
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


def _running(settings: Any, name: str | None, flags: dict[str, Any]) -> Any:
    """(None, what is known of a run that goes on): options first, then the event that started it, the CI job, git."""
    from orchestrator import run_context, statuses
    from orchestrator.alert_text import AlertContext
    from orchestrator.origin import origin_of

    link = run_context.workflow_link(settings.workflow_url, {"name": name or "", "namespace": settings.namespace})
    said = AlertContext(workflow=name or "", kind=flags["kind"] or "ci-gate", link=link)
    event = run_context.of_event(os.environ.get("FOXRUN_EVENT", ""))
    known = run_context.merged(_options(flags), event, said if name else replace(said, link=""), _job())
    if not known.sha:
        known = replace(known, sha=statuses.head())
    return None, known if known.origin else replace(known, origin=origin_of(settings))


def _ended(settings: Any, name: str, flags: dict[str, Any]) -> Any:
    """(verdict, what is known of a workflow that has ended): options first, then the workflow, the CI job, git."""
    from orchestrator import run_context
    from orchestrator.alert_text import AlertContext
    from orchestrator.errors import UsageError
    from orchestrator.following import judge
    from orchestrator.lookup import full_name
    from orchestrator.origin import origin_of
    from orchestrator.outcome import is_completed

    engine = options.engine_of(settings)
    workflow = engine.get(full_name(engine, name))
    if not is_completed(workflow):
        raise UsageError(
            f"workflow {workflow['metadata']['name']} has not ended", remedy="foxrun watch it, or --pending"
        )
    known = run_context.of_workflow(workflow, url=settings.workflow_url, report_url=settings.report_url)
    verdict = judge(engine, workflow)
    ran = run_context.of_verdict(verdict)
    context = run_context.merged(_options(flags), AlertContext(kind=flags["kind"]), known, ran, _job())
    return verdict, context if context.origin else replace(context, origin=origin_of(settings))


def _options(flags: dict[str, Any]) -> AlertContext:
    from orchestrator import statuses
    from orchestrator.alert_text import AlertContext
    from orchestrator.errors import UsageError
    from orchestrator.printable import printable

    given = {name: str(flags[name] or "") for name in ("repository", "sha", "branch", "link")}
    sha = statuses.commit_of(given["sha"])
    if given["sha"] and not sha:
        raise UsageError(
            f"nobody here knows which commit {printable(given['sha'])} is",
            remedy="give all its digits; in a pod the image says it, or what git has mounted (docs/nightly.md)",
        )
    return AlertContext(origin=given["repository"], sha=sha, branch=given["branch"], link=given["link"])


def _job() -> AlertContext:
    """What a CI service says of the job that we run in."""
    from orchestrator import statuses
    from orchestrator.alert_text import AlertContext

    around = statuses.surroundings(os.environ)
    return AlertContext(origin=around.origin, sha=around.sha, branch=around.branch, link=around.job)
