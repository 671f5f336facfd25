"""The plan of a trace, a JSON file that FOXRUN_TRACE names: what to record, when to stop, what to keep."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from foxrun.problems import ContractError

LEVELS = ("steps", "operations")


class Plan:
    """What the orchestrator asks of a traced process; fields as in docs/architecture.md."""

    def __init__(self, fields: dict[str, Any], name: str = "plan") -> None:
        self.name = name
        known = {"out", "level", "first_step", "last_step", "stop_after", "dump", "dump_steps", "remedies"}
        known |= {"delays", "pace"}
        if unknown := sorted(set(fields) - known):
            raise self._wrong(f"unknown fields {', '.join(unknown)}", f"use {', '.join(sorted(known))}")
        if not isinstance(fields.get("out"), str) or not fields["out"]:
            raise self._wrong("no `out`", "name the directory for the trace")
        self.out = Path(fields["out"])
        self.level: str = fields.get("level", "steps")
        if self.level not in LEVELS:
            raise self._wrong(f"level {self.level!r}", f"use one of {', '.join(LEVELS)}")
        self.first_step = self._number(fields, "first_step") or 0
        self.last_step = self._number(fields, "last_step")
        self.stop_after = self._number(fields, "stop_after")
        self.dump = {(str(process), int(index)) for process, index in fields.get("dump") or []}
        steps = fields.get("dump_steps")
        self.dump_steps: tuple[int, int] | None = (int(steps[0]), int(steps[1])) if steps else None
        self.remedies: list[str] = [str(name) for name in fields.get("remedies") or []]
        self.delays = self._delays(fields.get("delays"))
        self.pace = self._number(fields, "pace")  # a seed

    @property
    def operations(self) -> bool:
        """Whether events are recorded at all."""
        return self.level == "operations"

    def in_window(self, step: int) -> bool:
        """Whether operations of this step are recorded."""
        return self.operations and self.first_step <= step and (self.last_step is None or step <= self.last_step)

    def dumps_step(self, step: int) -> bool:
        """Whether all leaves of this step are kept as tensors."""
        return self.dump_steps is not None and self.dump_steps[0] <= step <= self.dump_steps[1]

    def _delays(self, value: Any) -> tuple[tuple[str, ...], float, frozenset[str] | None, int, int] | None:
        """(sides, seconds, lines or None for all, first step, steps) of ``{"sides": ["main"], "ms": 40}``."""
        if value is None:
            return None
        try:
            lines = value.get("lines")
            return (
                tuple(str(side) for side in value["sides"]),
                float(value["ms"]) / 1e3,
                None if lines is None else frozenset(str(line) for line in lines),
                int(value.get("first_step", 0)),
                int(value.get("steps", 0)),
            )
        except (AttributeError, KeyError, TypeError, ValueError):
            raise self._wrong(f"delays {value!r}", 'write {"sides": ["main"], "ms": 40}') from None

    def _number(self, fields: dict[str, Any], key: str) -> int | None:
        value = fields.get(key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self._wrong(f"{key} is {value!r}", "give a step, 0 or more")
        return value

    def _wrong(self, what: str, remedy: str) -> ContractError:
        return ContractError(f"{self.name}: {what}", remedy=remedy)


def read(path: str) -> Plan:
    """The plan in a file. Raises ContractError with the file's name where it is no plan."""
    try:
        fields = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ContractError(f"{path}: {error}", remedy="FOXRUN_TRACE must name a JSON file") from None
    if not isinstance(fields, dict):
        raise ContractError(f"{path}: not a JSON object", remedy="see docs/tracing.md")
    return Plan(fields, path)
