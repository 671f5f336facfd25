"""A call of a template: which node it makes, with which arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from orchestrator.engines.local.nodes import Node
from orchestrator.engines.local.scope import Artifact

Arguments = tuple[dict[str, str | None], dict[str, Artifact | None]]


@dataclass(frozen=True)
class Call:
    """A template to run as a node; the values of its arguments are looked up only when the node begins."""

    name: str
    template: str
    arguments: Callable[[], Arguments]
    boundary: Node | None
    on_exit: bool
    depth: int = 0
    inputs: dict[str, Any] | None = None
    """Inputs that are bound already: an attempt has those of its Retry node."""

    def inner(self, name: str, template: str, arguments: Callable[[], Arguments], boundary: Node) -> Call:
        """Return the call of a task or step inside this one."""
        return Call(name, template, arguments, boundary, self.on_exit, self.depth + 1)

    def attempt(self, name: str, inputs: dict[str, Any]) -> Call:
        """Return the call of one attempt of this one."""
        return Call(name, self.template, self.arguments, self.boundary, self.on_exit, self.depth, inputs)
