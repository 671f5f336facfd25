"""Reads Workflow files and asks the local engine what it thinks of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from orchestrator.errors import UsageError


def lint(file: Path) -> Iterator[str]:
    """Every problem of a file of Workflows; ``-`` is standard input. Yields nothing when there is none."""
    from orchestrator import yaml_input
    from orchestrator.engines.local import unsupported, validate

    try:
        text = sys.stdin.read() if str(file) == "-" else yaml_input.read_text(file)
        documents = [document for document in yaml_input.load_all(text) if document is not None]
    except UsageError as error:
        yield str(error).removeprefix(f"{file} ")
        return
    except ValueError as error:  # NotYaml, or standard input that is no text
        yield f"is no YAML: {error}"
        return
    if not documents:
        yield "holds no Workflow"
    for number, document in enumerate(documents, 1):
        where = f"document {number}: " if len(documents) > 1 else ""
        if not isinstance(document, dict) or document.get("kind") != "Workflow":
            kind = document.get("kind") if isinstance(document, dict) else type(document).__name__
            yield f"{where}is a {kind}, not a Workflow"
            continue
        constructs = unsupported(document)
        yield from (f"{where}the local engine does not have {construct}" for construct in constructs)
        if not constructs:
            yield from (f"{where}{problem}" for problem in validate(document))
