"""``foxrun doctor``."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

import click

from orchestrator.cli import options
from orchestrator.settings import load_settings

_COLOURS = {"ok": "green", "warning": "yellow", "broken": "red"}


@click.command("doctor")
@options.output("json")
def command(fmt: str | None) -> None:
    """Check that this machine can run foxrun; each trouble comes with its remedy.

    With the argo engine the cluster too: API, Argo, permissions, bucket, nodes, image, clocks, argo-server.
    Exit code 6 when something is broken; warnings do not count.

    \b
    foxrun doctor
    foxrun doctor --engine argo
    """
    from orchestrator.cli.output import print_json
    from orchestrator.doctor import BROKEN, examine

    found = []
    flags = click.get_current_context().find_root().params
    for finding in examine(load_settings(Path.cwd(), os.environ, flags), os.environ):
        found.append(finding)
        if fmt is None:
            mark = click.style(f"{finding.state:8}", fg=_COLOURS[finding.state])
            click.echo(f"{mark} {finding.part:12} {finding.found}")
            if finding.remedy:
                click.echo(f"         -> {finding.remedy}")
    if fmt == "json":
        print_json([asdict(finding) for finding in found])
    if any(finding.state == BROKEN for finding in found):
        raise click.exceptions.Exit(6)
