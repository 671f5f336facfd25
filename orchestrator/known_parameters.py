"""The parameters that our trainer takes, read from its source without importing it: a misspelt -p is said at submit.

The commit that runs decides, since another commit may know others; a trainer of somebody else's says it itself.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from pathlib import Path

from orchestrator.errors import UsageError
from orchestrator.settings import did_you_mean

FILES = ("trainer/config.py", "trainer/market/config.py")


def names_in(source: str) -> list[str]:
    """The fields of the dataclasses in a module, in order; none where it cannot be parsed."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    return [
        item.target.id
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name.endswith("Config")
        for item in node.body
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    ]


def known(read: Callable[[str], str]) -> list[str]:
    """All names that the trainer of a commit or of a directory takes; none where it has no such files."""
    return [name for file in FILES for name in names_in(read(file))]


def of_commit(top: Path, sha: str) -> list[str]:
    """The names of the trainer in a commit."""
    from foxrun import git

    return known(lambda file: git.file_at(top, sha, file))


def of_directory(top: Path) -> list[str]:
    """The names of the trainer in the files as they are."""

    def read(file: str) -> str:
        try:
            return (top / file).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            return ""

    return known(read)


def check(given: Iterable[str], names: list[str]) -> None:
    """Raises UsageError for a parameter that the trainer does not know; without names nothing is known to be wrong."""
    for name in given:
        if names and name not in names:
            raise UsageError(
                f"-p {name}: the trainer has no such parameter{did_you_mean(name, names)}",
                remedy="docs/trainer.md lists them",
            )
