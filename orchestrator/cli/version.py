"""``foxrun version``."""

from __future__ import annotations

import click

from orchestrator.cli import options

LIBRARIES = ("torch", "numpy", "hera", "click", "rich", "jinja2", "apprise", "databento-dbn", "zstandard", "pyyaml")


@click.command("version")
@click.option("--short", is_flag=True, help="The version of foxrun alone.")
@options.output("json")
def command(short: bool, fmt: str | None) -> None:
    """Print the versions of foxrun and of what it stands on.

    \b
    foxrun version --short
    """
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from foxrun.schema import CONTRACT_VERSION
    from orchestrator.cli.output import print_json, table

    if short:
        return click.echo(version("foxrun"))
    found = {"foxrun": version("foxrun"), "run contract": str(CONTRACT_VERSION), "python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            found[library] = "not installed"
    if fmt == "json":
        return print_json({name.replace(" ", "_"): text for name, text in found.items()})
    return table([[name, text] for name, text in found.items()])
