"""Help: every command has some, with an example, fast, and the documentation is made of it."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from orchestrator.cli.main import COMMANDS, NAMES, cli
from tests.cli import reference

DOCUMENT = Path(__file__).parents[2] / "docs" / "cli.md"
HEAVY = ("torch", "hera", "kubernetes", "boto3", "rich", "jinja2", "numpy", "apprise", "yaml", "platformdirs", "psutil")


def command(name: str) -> click.Command:
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_command_has_help_with_an_example_and_every_option_is_explained(name: str) -> None:
    found = command(name)
    assert found.name == name
    text = inspect.cleandoc(found.help or "")
    summary = next(group[name] for group in COMMANDS.values() if name in group)
    assert text.splitlines()[0] == summary
    assert f"\nfoxrun {name}" in text or f"| foxrun {name}" in text
    for parameter in found.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.name} has no help"


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom orchestrator.cli.main import execute\nexecute(['--help'])\n"
        f"print('HEAVY', [m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "HEAVY []"


@pytest.mark.parametrize("name", NAMES)
def test_the_help_of_a_command_imports_nothing_heavy(name: str) -> None:
    code = (
        f"import sys\nfrom orchestrator.cli.main import execute\nassert execute([{name!r}, '--help']) == 0\n"
        f"print('HEAVY', [m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "HEAVY []"


def test_the_documentation_is_the_help() -> None:
    text = reference.document()
    if os.environ.get("FOXRUN_REGENERATE") == "1":
        DOCUMENT.write_text(text, encoding="utf-8")
    assert DOCUMENT.read_text("utf-8") == text
