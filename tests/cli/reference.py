"""Makes docs/cli.md of the commands' own help and of the settings' own documentation."""

from __future__ import annotations

import re

import click

from orchestrator.cli.main import COMMANDS, cli
from orchestrator.settings import FIELDS

INTRODUCTION = """# The command line

Made of the commands' own help; `FOXRUN_REGENERATE=1 pytest tests/cli/test_help.py` writes it anew.

Results go to stdout, everything else to stderr, so `-o json` is safe to pipe. Errors are two lines: what and where,
then `->` what to do; never a traceback (`FOXRUN_DEBUG=1` shows it).

| exit code | when |
|---|---|
| 0 | `identical`, `within_tolerance`, or the command did what it was asked |
| 1 | foxrun itself failed; the traceback is in a file that the message names |
| 2 | usage: an unknown option, workflow or revision, a value that cannot be |
| 3 | `drift` |
| 4 | gate failed |
| 5 | job failed |
| 6 | infrastructure: disk, storage, a deadline, an engine that was killed |
| 7 | `incomparable` or `incomplete` |
| 130 | Ctrl-C; while following, the workflow goes on |

A workflow may be named by its name, by the beginning of it, or as `@latest`.
"""


def document() -> str:
    parts = [INTRODUCTION]
    for title, commands in COMMANDS.items():
        parts.append(f"## {title}\n")
        for name in commands:
            parts += _command(name)
    parts.append(_settings())
    return "\n".join(parts)


def _command(name: str) -> list[str]:
    group = click.Context(cli, info_name="foxrun", help_option_names=["-h", "--help"])
    found = cli.get_command(group, name)
    assert found is not None
    context = click.Context(found, info_name=name, parent=group, terminal_width=100, max_content_width=100)
    told = [_told(f"foxrun {name}", found, context)]
    if isinstance(found, click.Group):
        for word, inner in found.commands.items():
            below = click.Context(inner, info_name=word, parent=context, terminal_width=100, max_content_width=100)
            told.append(_told(f"foxrun {name} {word}", inner, below))
    return told


def _told(title: str, command: click.Command, context: click.Context) -> str:
    return f"### {title}\n\n```text\n{_plain(command.get_help(context))}\n```\n"


def _plain(text: str) -> str:
    return re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)


def _settings() -> str:
    rows = ["| setting | variable | unit | default | why |", "|---|---|---|---|---|"]
    for field in FIELDS:
        default = field.default if field.default not in ("", ()) else "-"
        shown = f"{default:.15g}" if isinstance(default, float) else default
        variable = f"`FOXRUN_{field.name.upper()}`"
        why = field.metadata["why"]
        rows.append(f"| `{field.name}` | {variable} | {field.metadata['unit'] or '-'} | `{shown}` | {why} |")
    text = """## Settings

From `foxrun.yaml` (the nearest, searched upward), then `FOXRUN_*`, then flags; `foxrun config` shows which won. An
unknown key is refused with its line and the nearest name. Durations are written `90s`, `15m`, `1h30m` or `2d`.

"""
    return text + "\n".join(rows) + "\n"
