"""Which task of a DAG waits for which, and when it then runs: `dependencies` and `depends`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from orchestrator.engines.local.expression import DEPENDS, Expression, parse
from orchestrator.engines.local.nodes import Node

RESULTS = ("Succeeded", "Failed", "Errored", "Skipped", "Omitted", "Daemoned")
_PHASES = {"Errored": "Error"}


class Dag:
    """The tasks of one DAG template with what they depend on. Raises ExpressionError for a `depends` that is wrong."""

    def __init__(self, template: Mapping[str, Any]) -> None:
        dag = template["dag"]
        self.tasks: dict[str, Mapping[str, Any]] = {task["name"]: task for task in dag["tasks"]}
        self.fail_fast: bool = dag.get("failFast", True) is not False
        self._conditions: dict[str, Expression | None] = {n: _condition(t) for n, t in self.tasks.items()}
        waited_for = {dependency for name in self.tasks for dependency in self.dependencies(name)}
        self.targets: list[str] = str(dag.get("target") or "").split() or sorted(set(self.tasks) - waited_for)

    def dependencies(self, task: str) -> list[str]:
        """Return the tasks that must have ended before this one, in the order in which it names them."""
        condition = self._conditions[task]
        names = condition.names if condition else ()
        return list(dict.fromkeys(name.rpartition(".")[0] or name for name in names))

    def condition(self, task: str) -> Expression | None:
        """Return what must hold for the task to run, or None when it waits for nothing."""
        return self._conditions[task]

    def ancestors(self, task: str) -> list[str]:
        """Return the tasks on which this one depends, directly or not."""
        found: dict[str, None] = {}
        todo = self.dependencies(task)
        while todo:
            name = todo.pop(0)
            if name not in found and name in self.tasks:
                found[name] = None
                todo.extend(self.dependencies(name))
        return list(found)

    def continues_on(self, task: str, phase: str) -> bool:
        """Return whether the task's own `continueOn` forgives that phase."""
        return continues_on(self.tasks[task], phase)

    def may_run(self, task: str, nodes: Mapping[str, Node]) -> bool:
        """Return whether the condition holds now that all dependencies have ended; a bare name means: went well."""
        condition = self._conditions[task]
        if condition is None:
            return True
        values: dict[str, bool] = {}
        for name in self.dependencies(task):
            phase = nodes[name]["phase"]
            for result in RESULTS:
                values[f"{name}.{result}"] = phase == _PHASES.get(result, result)
            values[name] = phase in ("Succeeded", "Skipped") or self.continues_on(name, phase)
        return condition.evaluate(values)


def continues_on(call: Mapping[str, Any], phase: str) -> bool:
    """Return whether a task's or step's `continueOn` forgives that phase."""
    forgiven = call.get("continueOn") or {}
    return bool((phase == "Failed" and forgiven.get("failed")) or (phase == "Error" and forgiven.get("error")))


def _condition(task: Mapping[str, Any]) -> Expression | None:
    if task.get("depends"):
        return parse(task["depends"], DEPENDS)
    names = task.get("dependencies") or []
    if not names:
        return None
    # A name of `dependencies` is taken as it is: it may hold what `depends` would read as an operator.
    plain = all(re.fullmatch(r"[A-Za-z0-9][-A-Za-z0-9_]*", name) for name in names)
    return parse(" && ".join(names), DEPENDS) if plain else _all_of(names)


def _all_of(names: list[str]) -> Expression:
    return Expression(" && ".join(names), tuple(names), (), lambda values, tags: all(values[name] for name in names))
