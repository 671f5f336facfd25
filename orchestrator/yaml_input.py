"""YAML that people hand in: whatever it holds, it is read in bounded time and memory, or refused with one sentence."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from orchestrator.errors import UsageError

if TYPE_CHECKING:
    import yaml

T = TypeVar("T")
LARGEST = 2 << 20  # PyYAML reads about a megabyte in three seconds
MOST_NODES = 200_000  # with every alias written out
DEEPEST = 100  # the parser recurses over levels
_BRACKET = re.compile(r"[\[\]{}]")


class NotYaml(ValueError):
    """The text is no YAML that can be read; one line says why, and ``line`` where that is known."""

    def __init__(self, why: str, line: int | None = None) -> None:
        super().__init__(why)
        self.line = line


def read_text(file: Path) -> str:
    """The text of a file, which may be a pipe (``<(command)``). Raises UsageError."""
    try:
        with file.open("rb") as stream:
            data = stream.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise UsageError(f"{file} holds over {LARGEST >> 20} MiB", remedy="check the path: it is a short text")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}", remedy="check the path") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is no text: not UTF-8 at byte {error.start}", remedy="check the path") from None


def compose(text: str) -> yaml.Node | None:
    """The tree of nodes, with their lines and their values as written. Raises NotYaml."""
    import yaml

    return _guarded(text, lambda: yaml.compose(text, Loader=yaml.SafeLoader))


def load(text: str) -> Any:
    """The value of one document. Raises NotYaml."""
    import yaml

    return _guarded(text, lambda: yaml.safe_load(text))


def load_all(text: str) -> list[Any]:
    """The values of all documents. Raises NotYaml."""
    import yaml

    return _guarded(text, lambda: list(yaml.safe_load_all(text)))


def _guarded(text: str, parse: Callable[[], T]) -> T:
    import yaml

    depth = 0
    for bracket in _BRACKET.finditer(text):
        depth += 1 if bracket[0] in "[{" else -1
        if depth > DEEPEST:  # before the parser, whose time grows with the square of it
            raise NotYaml(f"brackets nested more than {DEEPEST} deep")
    try:
        for node in yaml.compose_all(text, Loader=yaml.SafeLoader):
            _written_out(node, {})
        return parse()
    except RecursionError:
        raise NotYaml("nested too deeply") from None
    except NotYaml:
        raise
    # Values that YAML's own types refuse (2001-99-99, an integer of 5,000 digits) come as ValueError or OverflowError.
    except (yaml.YAMLError, ValueError, OverflowError, TypeError, AttributeError) as error:
        mark = getattr(error, "problem_mark", None)
        raise NotYaml(_why(error), mark.line + 1 if mark is not None else None) from None


def _why(error: Exception) -> str:
    """What is wrong and where, without the lines around it: they may hold a password."""
    mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
    if mark is None or not problem:
        return " ".join(str(error).split()) or type(error).__name__
    context = f"{error.context}: " if getattr(error, "context", None) else ""  # type: ignore[attr-defined]
    return f"{context}{' '.join(problem.split())} (line {mark.line + 1}, column {mark.column + 1})"


def key_given_twice(node: yaml.Node | None) -> tuple[str, int] | None:
    """(key, line) of the first key that stands twice in one mapping below ``node``: YAML would let the last one win."""
    parts = node.value if node is not None and isinstance(node.value, list) else []
    seen: set[str] = set()
    for part in parts:
        if isinstance(part, tuple):
            key = str(part[0].value)
            if key in seen and key != "<<":
                return key, part[0].start_mark.line + 1
            seen.add(key)
        for below in part if isinstance(part, tuple) else (part,):
            if (found := key_given_twice(below)) is not None:
                return found
    return None


def _written_out(node: Any, known: dict[int, int]) -> int:
    """How many nodes there are with every alias written out; few lines of aliases can stand for billions."""
    if id(node) in known:
        if known[id(node)] == 0:
            raise NotYaml("a part of it contains itself")
        return known[id(node)]
    known[id(node)] = 0
    total = 1
    for item in node.value if isinstance(node.value, list) else ():
        total += sum(_written_out(part, known) for part in (item if isinstance(item, tuple) else (item,)))
    if total > MOST_NODES:
        raise NotYaml(f"its aliases stand for more than {MOST_NODES:,} values")
    known[id(node)] = total
    return total
