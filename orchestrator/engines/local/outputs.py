"""What a pod leaves behind: output parameters and artifacts, taken from its root and never from outside."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from orchestrator.errors import FoxrunError
from orchestrator.stores.directory import DirectoryStore, UnsafePath

MAX_PARAMETER_BYTES = 256 * 1024


def place_inside(root: Path, container_path: str) -> Path:
    """Return where a container path lies under a pod's root. Raises UnsafePath when it would lead out of it."""
    path = PurePosixPath(container_path)
    if not path.is_absolute() or ".." in path.parts or len(path.parts) < 2 or "\0" in container_path:
        raise UnsafePath(f"path {container_path!r} is not an absolute path inside the container")
    return root.joinpath(*path.parts[1:])


def gather(
    template: Mapping[str, Any], root: Path, store: DirectoryStore, default_key: str
) -> tuple[dict[str, Any], str]:
    """Take the outputs of a pod that has ended; return them in Argo's shape, and what is wrong with them.

    Everything that can be had is taken, also from a failed pod, in the order of the template.
    """
    outputs: dict[str, Any] = {}
    problems: list[str] = []
    declared = template.get("outputs", {})
    for parameter in declared.get("parameters", []):
        try:
            value = _parameter(parameter, root)
        except (FoxrunError, OSError) as error:
            problems.append(f"output parameter {parameter['name']!r}: {error}")
            continue
        if value is None:
            problems.append(f"output parameter {parameter['name']!r}: {parameter['valueFrom']['path']} was not written")
        else:
            outputs.setdefault("parameters", []).append({**parameter, "value": value})
    for artifact in declared.get("artifacts", []):
        name = artifact["name"]
        key = artifact.get("s3", {}).get("key") or f"{default_key}/{name}"
        try:
            source = _real(root, artifact["path"])
            if source is None:
                if not artifact.get("optional"):
                    problems.append(f"output artifact {name!r}: {artifact['path']} was not written")
                continue
            store.put(source, key)
        except (FoxrunError, OSError) as error:
            problems.append(f"output artifact {name!r}: {error}")
            continue
        outputs.setdefault("artifacts", []).append({"name": name, "path": artifact["path"], "s3": {"key": key}})
    return outputs, "; ".join(problems)


def _real(root: Path, container_path: str) -> Path | None:
    """Return the file or directory that an output path means, links followed; None when nothing is there."""
    place = place_inside(root, container_path)
    real = Path(os.path.realpath(place))
    if not real.is_relative_to(os.path.realpath(root)):
        raise UnsafePath(f"{container_path} leads out of the pod's root, to {str(real)!r}")
    return real if real.exists() else None


def _parameter(parameter: Mapping[str, Any], root: Path) -> str | None:
    if "value" in parameter:
        return str(parameter["value"])
    source = parameter["valueFrom"]
    real = _real(root, source["path"])
    if real is None or not real.is_file():
        default = source.get("default")
        return None if default is None else str(default)
    if real.stat().st_size > MAX_PARAMETER_BYTES:
        raise UnsafePath(f"{source['path']} is larger than {MAX_PARAMETER_BYTES} bytes; make it an artifact")
    # As Argo does: the newline with which programs end their output is not part of the value.
    return real.read_bytes().decode("utf-8", "replace").removesuffix("\n")
