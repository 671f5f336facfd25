"""What to run next, made runnable: a part knows runs and input by places in its pod, and no -p of the request."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.compare.verdict import SAME_PARAMETERS, WORKFLOW, command

if TYPE_CHECKING:
    from orchestrator.engines.base import Engine

_COMMAND = re.compile(r"`([^`\n]+)`")
_OURS = ["python", "-m", "trainer"]


def renamed(text: str, old: str, new: str) -> str:
    """The text with one path in place of another, also where they stand in a command."""
    return text.replace(shlex.quote(old), shlex.quote(new)).replace(old, new) if old and old != new else text


def runnable(text: str, engine: Engine, workflow: Mapping[str, Any]) -> str:
    """The sentence with the workflow's own parameters, input and trainer in the `foxrun check` that it names."""
    data = input_of(engine, workflow)
    asked = _asked(workflow) if SAME_PARAMETERS in text else None
    if data is None and _arguments(workflow, "artifacts"):
        asked = None  # without its input the command would run something else

    def made(found: re.Match[str]) -> str:
        words = shlex.split(found[1])
        if words[:2] != ["foxrun", "check"]:
            return found[0]
        end = words.index("--") if "--" in words else len(words)
        ours = [f"data={data}" if data and word.startswith("data=") else word for word in words[:end]]
        if asked is not None:
            ours += [*asked, *(["-p", f"data={data}"] if data else [])]
        return command(*ours, *(words[end:] or _trainer(workflow)))

    name = str(workflow["metadata"]["name"])
    text = _reaching(by_name(_COMMAND.sub(made, text), name), name, getattr(engine, "options", ()))
    return text if asked is None else text.replace(f" {SAME_PARAMETERS}", "")


def by_name(text: str, name: str) -> str:
    """The sentence with the workflow's name in the `foxrun localize` that names two runs: all else is known from it."""

    def made(found: re.Match[str]) -> str:
        return command("foxrun", "localize", name) if shlex.split(found[1])[:2] == ["foxrun", "localize"] else found[0]

    return _COMMAND.sub(made, text) if name else text


def outside(text: str, name: str) -> str:
    """The sentence as it leaves a pod, where nobody has its paths: a workflow's runs and parts by the workflow's name.

    The name is empty outside of a workflow; then nothing changes.
    """

    def made(found: re.Match[str]) -> str:
        words = shlex.split(found[1])
        if words[:2] == ["foxrun", "compare"]:
            return command("foxrun", "report", name)
        return command(*(name if word == WORKFLOW else word for word in words)) if WORKFLOW in words else found[0]

    return _COMMAND.sub(made, by_name(text, name)) if name else text


def workflow_of_pod(environ: Mapping[str, str]) -> str:
    """The workflow whose pod this process is in; empty elsewhere. Argo names a node WORKFLOW-HASH."""
    return environ.get("ARGO_NODE_ID", "").rpartition("-")[0]


def _reaching(text: str, name: str, options: Sequence[str]) -> str:
    """The sentence with the options that led to the cluster in each command that names the workflow."""

    def made(found: re.Match[str]) -> str:
        words = shlex.split(found[1])
        return command(*words, *options) if words[0] == "foxrun" and name in words and "--" not in words else found[0]

    return _COMMAND.sub(made, text) if options else text


def input_of(engine: Engine, workflow: Mapping[str, Any]) -> Path | None:
    """Where the workflow's input lies on this machine, if it does."""
    from orchestrator.engines.local import LocalEngine

    if not isinstance(engine, LocalEngine):
        return None
    artifacts = _arguments(workflow, "artifacts")
    keys = [item["s3"]["key"] for item in artifacts if item.get("name") == "data" and "s3" in item]
    return engine.store.path(keys[0]) if keys else None


def _asked(workflow: Mapping[str, Any]) -> list[str] | None:
    """The request's ``-p``; None where they cannot be read."""
    values = {item.get("name"): item.get("value") for item in _arguments(workflow, "parameters")}
    try:
        parameters = json.loads(str(values.get("parameters")))
    except ValueError:
        return None
    if not isinstance(parameters, dict):
        return None
    pairs = sorted(parameters.items())
    return [word for key, value in pairs if key != "data" for word in ("-p", f"{key}={value}")]


def _trainer(workflow: Mapping[str, Any]) -> list[str]:
    """``-- python train.py``; nothing for our own."""
    for template in workflow["spec"].get("templates") or []:
        container = template.get("container") or {}
        if template.get("name") == "leg" and "--out" in (container.get("args") or []):
            args = list(container["args"])
            words = [*(container.get("command") or []), *args[: args.index("--out")]]
            words = [str(word).replace("$$", "$") for word in words]
            return [] if words == _OURS else ["--", *words]
    return []


def _arguments(workflow: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    return (workflow["spec"].get("arguments") or {}).get(kind) or []
