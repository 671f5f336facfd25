"""From a container to a process: its arguments and its variables."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.engines.local.process import MARK
from orchestrator.engines.local.values import text_of

_REFERENCE = re.compile(r"\$\$|\$\(([-._A-Za-z][-._A-Za-z0-9]*)\)")


def argv(container: Mapping[str, Any]) -> list[str]:
    """Return the arguments to run: `foxrun` and `python` become this interpreter's."""
    variables = _own_variables(container)
    command = [expand(text_of(word), variables) for word in container["command"]]
    if command[0] == "foxrun":
        command[:1] = [sys.executable, "-P", "-m", "orchestrator"]
    elif command[0] in ("python", "python3"):
        command[0] = sys.executable
    return command + [expand(text_of(word), variables) for word in container.get("args") or []]


def environment(container: Mapping[str, Any], pod: Path) -> dict[str, str]:
    """Return a pod's variables: the submitter's, the template's, and where the pod reports to.

    Raises ValueError when a secret's variable is not set.
    """
    variables = dict(os.environ)
    variables.pop("PYTHONSAFEPATH", None)  # the trainer is imported from the worktree, its working directory
    beside_python = str(Path(sys.executable).parent)
    variables["PATH"] = os.pathsep.join([beside_python, variables.get("PATH", os.defpath)])
    variables.update(_own_variables(container))
    variables.update(
        ARGO_PROGRESS_FILE=str(pod / "progress"),
        FOXRUN_TERMINATION_LOG=str(pod / "termination-log"),
        PYTHONUNBUFFERED="1",
        PYTHONDONTWRITEBYTECODE="1",
    )
    variables[MARK] = f"{pod}/"
    return variables


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Return text as Kubernetes passes it: `$(NAME)` is a variable that the container has; `$$` is `$`."""

    def replacement(match: re.Match[str]) -> str:
        if match[1] is None:
            return "$"
        return variables.get(match[1], match[0])

    return _REFERENCE.sub(replacement, text)


def _own_variables(container: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables that the template sets; those from a secret are the submitter's of the same name."""
    own: dict[str, str] = {}
    for entry in container.get("env") or []:
        name = entry["name"]
        if "valueFrom" not in entry:
            own[name] = expand(text_of(entry.get("value", "")), own)
        elif name in os.environ:
            own[name] = os.environ[name]
        elif not entry["valueFrom"]["secretKeyRef"].get("optional"):
            secret = entry["valueFrom"]["secretKeyRef"]
            raise ValueError(
                f"variable {name} comes from secret {secret.get('name')!r} on a cluster, and here from the variable of "
                f"whoever submits, where it is not set: export {name}"
            )
    return own
