"""What a file of the zoo says of itself: the TOML block at its head, its marked lines, and its cured variant.

A line that ends in ``# culprit`` is a right answer for the operation. ``# cured: TEXT`` below a line replaces that line
in the cured variant.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ZOO = Path(__file__).parent
CULPRITS, CLEAN = ZOO / "culprits", ZOO / "clean"
# SPEC section 7 in the words of orchestrator/localize/causes.py.
KINDS = (
    "scan-order", "atomics", "duplicate-index", "reduced-precision", "algorithm-selection", "autotune", "cudnn",
    "iteration-order", "replay-sampling", "unseeded-generator", "time-seed", "shared-generator", "worker-seeding",
    "resume", "uninitialised-memory", "out-of-bounds-write", "asynchronous-copy", "aliasing", "thread-count",
    "completion-order", "hash-order", "listing-order", "stale-graph", "hardware",
)  # fmt: skip
NEEDS = ("cpu", "cc", "cuda", "triton")
ANY = "any"
_HEAD = re.compile(r"^# /// zoo\n((?:# ?.*\n)*?)# ///$", re.MULTILINE)
_CURED = re.compile(r"^\s*# cured: (.*)$")


class BadSpecimen(ValueError):
    """A file of the zoo whose head is missing or wrong; the text names the file and what to write."""


@dataclass(frozen=True, kw_only=True)
class Specimen:
    """One file of the zoo. ``kind`` is empty for a clean trainer.

    ``lines`` are the numbers of marked lines; ``where`` further places, as "file.py function"; ``component`` and
    ``operation`` patterns of fnmatch, of which one must match (none given: any); ``step`` a number or ``any``, where
    chance decides it and the runner holds localize to its own rows; ``remedies`` the accepted ones.
    """

    path: Path
    title: str
    kind: str = ""
    also: tuple[str, ...] = ()
    report: tuple[str, ...] = ()
    needs: str = "cpu"
    step: int | str = ANY
    component: tuple[str, ...] = ()
    operation: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    pair: tuple[tuple[str, ...], ...] = ()
    where: tuple[str, ...] = ()
    alone: bool = False
    rate: str = ""
    twins: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()

    @property
    def id(self) -> str:
        """The file's name without its ending."""
        return self.path.stem

    def cured(self) -> str:
        """The source with each line that a ``# cured:`` comment follows replaced by that comment's text."""
        result: list[str] = []
        indent: str | None = None
        for line in self.path.read_text(encoding="utf-8").splitlines():
            match = _CURED.match(line)
            if match is None:
                result.append(line)
                indent = None
                continue
            if indent is None:
                replaced = result.pop()
                indent = replaced[: len(replaced) - len(replaced.lstrip())]
            result.append(f"{indent}{match[1]}")
        return "\n".join(result) + "\n"


def read(path: Path) -> Specimen:
    """The specimen in ``path``; BadSpecimen says what its head lacks."""
    text = path.read_text(encoding="utf-8")
    match = _HEAD.search(text)
    if match is None:
        raise BadSpecimen(f"{path}: no head; write a block `# /// zoo` ... `# ///` of TOML below the docstring")
    try:
        head: dict[str, Any] = tomllib.loads(re.sub(r"^# ?", "", match[1], flags=re.MULTILINE))
    except tomllib.TOMLDecodeError as error:
        raise BadSpecimen(f"{path}: its head is not TOML ({error})") from None
    remedy = head.pop("remedy", ())
    known = {"kind", "also", "report", "needs", "step", "component", "operation", "command", "pair", "where", "alone",
             "rate", "twins"}  # fmt: skip
    if unknown := sorted(set(head) - known):
        raise BadSpecimen(f"{path}: unknown keys {', '.join(unknown)}; known are {', '.join(sorted(known))}, remedy")
    fields = {key: _frozen(value) for key, value in head.items()}
    lines = tuple(n for n, line in enumerate(text.splitlines(), 1) if re.search(r"# culprit\b", line))
    found = Specimen(
        path=path, title=_title(text), remedies=(remedy,) if isinstance(remedy, str) else tuple(remedy), lines=lines,
        **fields,
    )  # fmt: skip
    _check(found)
    return found


def _check(found: Specimen) -> None:
    if found.needs not in NEEDS:
        raise BadSpecimen(f"{found.path}: needs={found.needs!r}; one of {', '.join(NEEDS)}")
    if not found.kind:
        return
    for kind in (found.kind, *found.also):
        if kind not in KINDS:
            raise BadSpecimen(f"{found.path}: kind {kind!r}; one of {', '.join(KINDS)}")
    if not found.remedies:
        raise BadSpecimen(f"{found.path}: remedy is missing; the name of a switch, or `code`")
    if not found.lines and not found.where:
        raise BadSpecimen(f"{found.path}: no line ends in `# culprit`, and `where` names no place")


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def _title(text: str) -> str:
    match = re.match(r'\s*"""(.*?)(?:"""|\n)', text)
    return match[1].strip() if match else ""


def culprits() -> list[Specimen]:
    """All culprits, by name."""
    return [read(path) for path in sorted(CULPRITS.glob("*.py"))]


def clean() -> list[Specimen]:
    """All clean trainers, by name."""
    return [read(path) for path in sorted(CLEAN.glob("*.py"))]
