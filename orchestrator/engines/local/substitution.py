"""`{{tags}}` and their values: text in a Workflow is replaced once, and a value is never read again as text.

Argo replaces in JSON with escaping, so quotes, newlines and emoji travel; replacing inside the parsed strings is the
same without the second reading, in which a value that contains braces would be taken for a tag.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

TAG = re.compile(r"\{\{(.*?)\}\}", re.S)


class UnresolvedTag(ValueError):
    """A tag has no value here."""

    def __init__(self, tag: str, why: str = "") -> None:
        super().__init__(f"failed to resolve {{{{{tag}}}}}" + (f": {why}" if why else ""))
        self.tag = tag


class Scope:
    """The values of tags: a chain of mappings. A value of None means that the producer left no such output."""

    def __init__(self, *layers: Mapping[str, str | None]) -> None:
        self.layers = layers

    def __call__(self, tag: str) -> str:
        """Return the value of a tag; raises UnresolvedTag."""
        for layer in self.layers:
            if tag in layer:
                value = layer[tag]
                if value is None:
                    raise UnresolvedTag(tag, "the node that should give this output did not")
                return value
        raise UnresolvedTag(tag)

    def is_absent(self, tag: str) -> bool:
        """Return whether the tag is known, and its producer left no value."""
        return any(tag in layer and layer[tag] is None for layer in self.layers)


def pure_tag(text: object) -> str | None:
    """Return the tag when the text is one tag and nothing else."""
    match = TAG.fullmatch(text.strip()) if isinstance(text, str) else None
    return match[1].strip() if match else None


def substitute(value: Any, scope: Callable[[str], str]) -> Any:
    """Return a copy of plain data with every tag in its strings replaced; raises UnresolvedTag."""
    if isinstance(value, str):
        return TAG.sub(lambda match: scope(match[1].strip()), value) if "{{" in value else value
    if isinstance(value, Mapping):
        return {key: substitute(item, scope) for key, item in value.items()}
    if isinstance(value, list):
        return [substitute(item, scope) for item in value]
    return value


def tags_in(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield (where, tag) for every tag in plain data."""
    if isinstance(value, str):
        for match in TAG.finditer(value):
            yield path, match[1].strip()
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from tags_in(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from tags_in(item, f"{path}[{index}]")
