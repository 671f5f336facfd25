"""Small Workflows, and what tests ask about them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from orchestrator.engines.local import LocalEngine

Workflow = dict[str, Any]
DEADLINE_S = 300.0


def workflow(*templates: dict[str, Any], name: str = "job", **spec: Any) -> Workflow:
    """A Workflow whose entrypoint is its first template."""
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": name},
        "spec": {"entrypoint": templates[0]["name"], "templates": list(templates), **spec},
    }


def sh(name: str, script: str, *args: str, env: list[dict[str, Any]] | None = None, **rest: Any) -> dict[str, Any]:
    """A container template that runs a shell script; `args` are its $1, $2, ..."""
    container: dict[str, Any] = {"image": "busybox", "command": ["sh", "-c", script.replace("$", "$$"), "sh"]}
    if args:
        container["args"] = list(args)
    if env:
        container["env"] = env
    return {"name": name, "container": container, **rest}


def dag(
    *tasks: dict[str, Any], name: str = "main", target: str = "", fail_fast: bool | None = None, **rest: Any
) -> Any:
    body: dict[str, Any] = {"tasks": list(tasks)}
    if target:
        body["target"] = target
    if fail_fast is not None:
        body["failFast"] = fail_fast
    return {"name": name, "dag": body, **rest}


def task(name: str, template: str, depends: str = "", arguments: dict[str, str] | None = None, **rest: Any) -> Any:
    found: dict[str, Any] = {"name": name, "template": template, **rest}
    if depends:
        found["depends"] = depends
    if arguments:
        found.setdefault("arguments", {})["parameters"] = [{"name": k, "value": v} for k, v in arguments.items()]
    return found


def parameters(*names: str, **defaults: str) -> dict[str, Any]:
    """The inputs of a template."""
    return {"parameters": [{"name": n} for n in names] + [{"name": n, "default": v} for n, v in defaults.items()]}


def run(engine: LocalEngine, submitted: Workflow) -> Workflow:
    """Submit and wait for the end."""
    return finish(engine, engine.submit(submitted))


def finish(engine: LocalEngine, name: str) -> Workflow:
    *_, last = engine.watch(name, deadline_s=DEADLINE_S)
    return last


def phases(done: Workflow) -> dict[str, str]:
    """The phase of each node by display name, without the root."""
    nodes = done["status"]["nodes"].values()
    return {n["displayName"]: n["phase"] for n in nodes if n["name"] != done["metadata"]["name"]}


def node(done: Workflow, display_name: str) -> dict[str, Any]:
    (found,) = [n for n in done["status"]["nodes"].values() if n["displayName"] == display_name]
    return dict(found)


def output(done: Workflow, display_name: str, parameter: str) -> str:
    values = {p["name"]: p["value"] for p in node(done, display_name)["outputs"]["parameters"]}
    return str(values[parameter])


def text(engine: LocalEngine, name: str, display_name: str | None = None) -> list[str]:
    return [line.text for line in engine.logs(name, node=display_name)]


def until(condition: Callable[[], Any], deadline_s: float = 240.0) -> Any:
    """Wait for something to become true, and return it."""
    give_up_at = time.monotonic() + deadline_s
    while time.monotonic() < give_up_at:
        if found := condition():
            return found
        time.sleep(0.01)
    raise AssertionError("it did not happen in time")


def controllers(home: Path, name: str) -> list[int]:
    """The controller of a workflow, if it runs, and then the guardians of its pods."""
    found: list[int] = []
    guardians: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"orchestrator.engines.local.controller" in words and {str(home).encode(), name.encode()} <= {*words}:
                found.append(int(entry.name))
            elif words[0].startswith(f"foxrun guardian of {home}/workflows/{name}/".encode()):
                guardians.append(int(entry.name))
    return sorted(found) + sorted(guardians)


def kill_controller(engine: LocalEngine, name: str) -> None:
    os.kill(controllers(engine.home, name)[0], signal.SIGKILL)
    until(lambda: engine.get(name)["status"]["phase"] == "Error")


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
