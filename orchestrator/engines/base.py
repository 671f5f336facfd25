"""What every engine offers: submit a Workflow, look at it, follow it, end it.

A Workflow is a plain dictionary in the shape of Argo's own YAML; `status` has Argo's shape as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

Workflow = dict[str, Any]
"""A Workflow (apiVersion argoproj.io/v1alpha1) as plain data."""

COMPLETED_PHASES = frozenset({"Succeeded", "Failed", "Error"})
"""Phases of a workflow that does not change any more."""


@dataclass(frozen=True)
class LogLine:
    """One line that a pod printed: the display name of its node, and the text without the line's end."""

    node: str
    text: str


class Engine(Protocol):
    """The seam between foxrun and whatever runs its Workflows."""

    name: str

    def put_input(self, path: Path) -> str:
        """Store a local file once, under its sha256; return the key for `s3.key`."""
        ...

    def submit(self, workflow: Workflow) -> str:
        """Start a workflow and return its name.

        Submitting an equal workflow again under its name attaches: nothing happens while it runs or once it is
        completed, and it goes on when its engine was killed. Raises WorkflowExists when the name belongs to another.
        """
        ...

    def get(self, name: str) -> Workflow:
        """Return the workflow with its status; raises WorkflowNotFound."""
        ...

    def list(self, labels: Mapping[str, str]) -> list[Workflow]:
        """Return the workflows that carry all these labels, newest first."""
        ...

    def watch(self, name: str, *, deadline_s: float) -> Iterator[Workflow]:
        """Yield the workflow at once and after each change; end when it is completed.

        Raises DeadlinePassed after `deadline_s` seconds.
        """
        ...

    def logs(self, name: str, *, node: str | None = None, follow: bool = False) -> Iterator[LogLine]:
        """Yield what the pods printed; with `follow`, until the workflow is completed."""
        ...

    def stop(self, name: str) -> None:
        """End the running pods, run the exit handler, and fail the workflow."""
        ...

    def retry(self, name: str) -> str:
        """Run again what did not succeed, keep what did; return the name."""
        ...

    def delete(self, name: str, *, force: bool = False) -> None:
        """Remove the workflow with its state; one that runs only with `force`."""
        ...

    def artifact(self, name: str, node: str, artifact: str) -> Path:
        """Return where an output artifact of a finished node lies."""
        ...

    def address(self, name: str, node: str, artifact: str) -> str:
        """Where a person finds an output artifact, as `foxrun compare` takes it; nothing is fetched."""
        ...

    def set_labels(self, name: str, labels: Mapping[str, str]) -> None:
        """Set labels on the workflow."""
        ...
