"""Commands in the pages of knowledge are run as they stand; those of all other pages must exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from orchestrator.cli.main import NAMES, cli, hoisted
from tests.cli.conftest import Place, here, repo

__all__ = ["here", "repo"]

ROOT = Path(__file__).parents[2]
KNOWLEDGE = ("determinism.md", "production.md", "failure-modes.md", "root-causes.md")
PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md"])
# The trainer of the tests has no parameters of ours, and what a page measures for minutes is measured for less.
SHORTER = {"--trials 5": "--trials 2", "--trials 3": "--trials 2"}
# What a page's command may end with, as the page itself says of it.
CODES = {"foxrun cost": (0, 2), "foxrun golden": (0, 7)}


def commands(page: Path) -> list[str]:
    """The lines of indented or fenced blocks that call foxrun, continuation lines joined, remarks left out."""
    text = re.sub(r"\\\n\s*", "", page.read_text("utf-8"))
    found = []
    for line in text.splitlines():
        match = re.match(r"(?: {4,}|\$ )?(foxrun .*)", line)
        if match and (line.startswith((" ", "$")) or page.name == "README.md"):
            found.append(re.split(r"\s{2,}#|\s#\s| \| | && |; ", match[1])[0].strip())
    return found


def in_sentences(page: Path) -> list[str]:
    """What stands between backquotes and calls foxrun."""
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    return [" ".join(call.split()) for call in re.findall(r"`(foxrun [^`]+)`", text)]


@pytest.mark.parametrize("name", KNOWLEDGE)
def test_the_commands_of_a_page_of_knowledge_run(name: str, repo: Place) -> None:
    words_of = [shlex.split(line) for line in commands(ROOT / "docs" / name)]
    assert words_of, f"{name} names no command"
    made = repo("submit", "--regression-pair", "--worktree", "--steps", "3", "-o", "json")
    (repo.directory / "verdict.json").write_text(made.out)
    for words in words_of:
        line = " ".join(words)
        for long, short in SHORTER.items():
            line = line.replace(long, short)
        done = repo(*shlex.split(line)[1:])
        allowed = next((codes for start, codes in CODES.items() if line.startswith(start)), (0,))
        assert done.code in allowed, f"{line}\n{done.err}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_options_in_a_page_exist(page: Path) -> None:
    for line in [*commands(page), *in_sentences(page)]:
        try:
            words = hoisted(shlex.split(line)[1:])
        except ValueError:
            continue  # a line of output, or an unfinished quotation
        command: click.Command = cli
        while isinstance(command, click.Group) and words:
            while words and words[0].startswith("-"):  # options of foxrun itself, and their values
                words = words[2 if "=" not in words[0] else 1 :]
            if not words or not re.fullmatch(r"[a-z-]+", words[0]):
                break
            if command is cli:
                assert words[0] in NAMES, f"{page.name}: there is no command {words[0]!r}: {line}"
            inner = command.get_command(click.Context(command), words[0])
            assert inner is not None, f"{page.name}: {words[0]!r} is no command: {line}"
            command, words = inner, words[1:]
        known = {word for parameter in command.params for word in (*parameter.opts, *parameter.secondary_opts)}
        end = words.index("--") if "--" in words else len(words)
        for word in words[:end]:
            if re.match(r"--?[a-z]", word):
                assert word.partition("=")[0] in {*known, "--help", "-h"}, f"{page.name}: no option {word}: {line}"
