"""What localize said of a specimen, held against the right answer. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from tests.zoo.specimen import ANY, Specimen

QUESTIONS = ("step", "component", "operation", "cause", "remedy")
CODE, NONE = "code", "none"


@dataclass(frozen=True, kw_only=True)
class Mark:
    """One specimen's result. ``right`` answers QUESTIONS; a clean trainer answers ``quiet`` alone.

    ``said`` is what localize said, in the order of QUESTIONS; ``seconds`` its wall time; ``trouble`` why there is no
    answer.
    """

    id: str
    kind: str
    right: dict[str, bool]
    said: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    trouble: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def mark(
    specimen: Specimen, result: Mapping[str, Any] | None, *, seconds: float, cured_clean: bool | None, trouble: str = ""
) -> Mark:
    """The mark of one specimen; ``cured_clean`` is None where the cured variant was not run."""
    if not specimen.kind:
        quiet = result is not None and not result["found"]
        return Mark(
            id=specimen.id, kind="", right={"quiet": quiet}, seconds=seconds, trouble=trouble,
            said={} if quiet or result is None else said(result),
        )  # fmt: skip
    if result is None or not result["found"]:
        nothing = dict.fromkeys(QUESTIONS, False)
        found = "no difference found" if result is not None else "no result"
        return Mark(
            id=specimen.id, kind=specimen.kind, right=nothing, seconds=seconds, trouble=trouble or found
        )  # fmt: skip
    right = {
        "step": step_right(specimen, result),
        "component": _matches(specimen.component, str(result["component"])),
        "operation": operation_right(specimen, result),
        "cause": first_cause(result) in (specimen.kind, *specimen.also),
        "remedy": remedy_right(specimen, result, cured_clean),
    }
    return Mark(
        id=specimen.id, kind=specimen.kind, right=right, said=said(result), seconds=seconds, trouble=trouble
    )  # fmt: skip


def step_right(specimen: Specimen, result: Mapping[str, Any]) -> bool:
    """The step of the right answer; where chance decides it, one at which a trial of this very run parted."""
    if specimen.step != ANY:
        return bool(result["step"] == specimen.step)
    seen = [trial["step"] for trial in result["trials"] if trial["step"] is not None]
    if result["step"] is None:
        return False
    operation = result["operation"] or {}
    before = operation.get("step") == result["step"] and bool(seen) and result["step"] < min(seen)
    return not seen or result["step"] in seen or before  # the operation differs before a leaf shows it


def operation_right(specimen: Specimen, result: Mapping[str, Any]) -> bool:
    """A marked line (or a place of ``where``), and one of the names where the head gives names."""
    operation = result["operation"]
    if not operation:
        return False
    where = str(operation["where"])
    match = re.match(r"(?:.*/)?(?P<file>[^/:]+):(?P<line>\d+)\s*(?P<function>.*)$", where)
    if match is None:
        return False
    here = match["file"] == specimen.path.name and int(match["line"]) in specimen.lines
    there = f"{match['file']} {match['function']}" in specimen.where
    return (here or there) and _matches(specimen.operation, str(operation["name"]))


def first_cause(result: Mapping[str, Any]) -> str:
    """The cause that localize puts first."""
    return str(result["causes"][0]["name"]) if result["causes"] else ""


def verified(result: Mapping[str, Any]) -> list[str]:
    """Remedies that localize calls verified."""
    return [str(remedy["name"]) for remedy in result["remedies"] if remedy["outcome"] == "verified"]


def remedy_right(specimen: Specimen, result: Mapping[str, Any], cured_clean: bool | None) -> bool:
    """A switch of the right answer is verified; or none is, code is to be changed, and the changed code is clean.

    ``none`` is right where nothing can be switched or written (other hardware): advice is given, nothing is praised.
    """
    found = verified(result)
    if any(name in specimen.remedies for name in found):
        return True
    advised = any(remedy["outcome"] != "verified" and remedy["text"] for remedy in result["remedies"])
    if NONE in specimen.remedies:
        return advised and not found
    return CODE in specimen.remedies and not found and advised and cured_clean is True


def _matches(patterns: Sequence[str], text: str) -> bool:
    return not patterns or any(fnmatchcase(text, pattern) for pattern in patterns)


def said(result: Mapping[str, Any]) -> dict[str, str]:
    """What localize said, short enough for a table."""
    operation = result["operation"] or {}
    tried = [f"{remedy['name']}: {remedy['outcome']}" for remedy in result["remedies"]]
    return {
        "step": str(result["step"]),
        "component": f"{result['component']} ({result['leaf']})",
        "operation": f"{operation.get('name', '')} at {operation.get('where', '')}, {operation.get('how', '')}",
        "cause": ", ".join(cause["name"] for cause in result["causes"][:3]),
        "remedy": ", ".join(tried),
    }
