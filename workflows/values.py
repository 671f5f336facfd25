"""Values on their way into a Workflow: what cannot go is refused, what Kubernetes would change is written differently.

Argo takes `{{` for a template tag and cannot escape it; Kubernetes expands `$` in args and env; no argument of a
process holds a NUL or more than 128 KiB.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

# One argument of a process may have 128 KiB on Linux (MAX_ARG_STRLEN), and Argo hands the whole template to its
# executor in one environment variable.
JSON_LIMIT_BYTES = 60_000


class InvalidParameter(ValueError):
    """A value that no Workflow can be made of. ``parameter`` names it, ``remedy`` says what to do."""

    def __init__(self, parameter: str, problem: str, remedy: str) -> None:
        super().__init__(f"{parameter}: {problem}. {remedy}")
        self.parameter = parameter
        self.problem = problem
        self.remedy = remedy


class TemplateMarker(InvalidParameter):
    """A value that contains ``{{``: Argo would take it for a template tag, and it cannot be escaped."""


def json_for_args(value: Mapping[str, object]) -> str:
    """``value`` as compact JSON, keys sorted, that survives a container's args.

    Kubernetes expands ``$(NAME)`` and turns ``$$`` into ``$`` in args; JSON may spell the dollar ``\\u0024`` instead.
    """
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.replace("$", "\\u0024")


def escape_dollars(text: str) -> str:
    """``text`` for a command, args or env, where Kubernetes reads ``$$`` as ``$`` and expands ``$(NAME)``."""
    return text.replace("$", "$$")


def check_text(name: str, text: str) -> None:
    """Raise InvalidParameter for what no argument can hold: ``{{``, NUL, surrogates."""
    if "{{" in text:
        raise TemplateMarker(
            name,
            f"{short(text)} contains '{{{{', which Argo takes for a template tag and cannot escape",
            "Put a space between the braces, or put the value into a file and pass it with -p data=FILE",
        )
    if "\0" in text:
        raise InvalidParameter(name, "contains a NUL character", "No argument of a process can hold one; remove it")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidParameter(
            name, f"{short(text)} is not valid Unicode (character {error.start})", "Write it in UTF-8"
        ) from error


def check_json(name: str, text: str) -> None:
    """Raise InvalidParameter for JSON that is too long for an argument, or holds ``{{`` once it is read."""
    if "{{" in text:  # only after parsing: the braces were written as \\u007b
        raise TemplateMarker(
            name, "contains '{{', which Argo takes for a template tag", "Put a space between the braces"
        )
    size = len(text.encode())
    if size > JSON_LIMIT_BYTES:
        raise InvalidParameter(
            name, f"takes {size} bytes of JSON, over {JSON_LIMIT_BYTES}", "Put what is large into the data file"
        )


def is_key(key: str) -> bool:
    """Whether it names an object below the store's root."""
    return bool(key) and not any(part in ("", ".", "..") for part in key.split("/"))


def short(text: str) -> str:
    """``text`` in quotes, cut to what fits a message."""
    return repr(text if len(text) <= 60 else text[:57] + "...")
