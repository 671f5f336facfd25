"""``foxrun list``."""

from __future__ import annotations

import click

from orchestrator.cli import options


@click.command("list")
@click.option(
    "-l",
    "--selector",
    "labels",
    multiple=True,
    metavar="KEY=VALUE,...",
    help="Only these: seed=42,mode=1,kind=train,branch=main.",
)
@click.option(
    "--status", "phases", multiple=True, help="Only in this phase: Pending, Running, Succeeded, Failed, Error."
)
@click.option("--verdict", "verdicts", multiple=True, help="Only with this verdict, such as drift.")
@click.option("--running", is_flag=True, help="Only those that are not completed.")
@click.option("--completed", is_flag=True, help="Only those that are.")
@click.option("-n", "--limit", type=click.IntRange(min=1), help="At most so many.")
@options.output("wide", "name", "json", "yaml")
def command(
    labels: tuple[str, ...], phases: tuple[str, ...], verdicts: tuple[str, ...], running: bool, completed: bool,
    limit: int | None, fmt: str | None,
) -> None:  # fmt: skip
    """List workflows, the newest first.

    \b
    foxrun list
    foxrun list -l seed=43 --verdict drift -o name
    """
    from orchestrator.cli.output import coloured, print_json, print_yaml, table
    from orchestrator.cli.tree import age, duration
    from orchestrator.following import known_verdict
    from orchestrator.lookup import newest_first
    from orchestrator.outcome import is_completed
    from orchestrator.printable import printable

    engine = options.engine_of(options.current())
    wanted = {phase.capitalize() for item in phases for phase in item.split(",")}
    rows = []
    for workflow in newest_first(engine.list(options.selector(labels))):
        phase = str((workflow.get("status") or {}).get("phase") or "Pending")
        ended = is_completed(workflow)
        if (wanted and phase not in wanted) or (running and ended) or (completed and not ended):
            continue
        verdict = known_verdict(engine, workflow)
        if verdicts and verdict not in {v.replace("-", "_") for item in verdicts for v in item.split(",")}:
            continue
        rows.append((workflow, phase, verdict))
        if limit is not None and len(rows) == limit:
            break
    if fmt == "json":
        return print_json([workflow for workflow, _, _ in rows])
    if fmt == "yaml":
        return print_yaml({"apiVersion": "v1", "kind": "List", "items": [dict(workflow) for workflow, _, _ in rows]})
    if fmt == "name":
        for workflow, _, _ in rows:
            click.echo(workflow["metadata"]["name"])
        return None
    if not rows:
        click.echo(
            "no workflows" + (" match" if labels or phases or verdicts or running or completed else ""), err=True
        )
        return None
    head = ["NAME", "STATUS", "VERDICT", "AGE", "DURATION", "PROGRESS"]
    head += ["KIND", "SHA", "BRANCH", "SEED", "MODE", "MESSAGE"] if fmt == "wide" else []
    lines = [head]
    for workflow, phase, verdict in rows:
        status, metadata = workflow.get("status") or {}, workflow["metadata"]
        line = [
            metadata["name"],
            coloured(phase),
            coloured(verdict),
            age(workflow),
            duration(status),
            str(status.get("progress") or "-"),
        ]
        if fmt == "wide":
            notes = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
            of_ours = (str(notes.get(f"foxrun.dev/{key}", "-")) for key in ("kind", "sha", "branch", "seed", "mode"))
            line += [printable(text[:40]) for text in of_ours]
            line.append(printable(" ".join(str(status.get("message") or "-").split())))
        lines.append(line)
    return table(lines)
