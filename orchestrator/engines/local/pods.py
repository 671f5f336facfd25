"""Pods as processes: lay out the directory, put inputs in place, run the command, gather outputs.

A container path P lies at `<pod>/root/P`, so `{{inputs.artifacts.x.path}}` and its like name real places here.
"""

from __future__ import annotations

import contextlib
import select
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foxrun.files import read_regular
from foxrun.problems import ContractError
from orchestrator.engines.local import process
from orchestrator.engines.local.container import argv, environment
from orchestrator.engines.local.nodes import Node, Nodes, parse_progress
from orchestrator.engines.local.outputs import gather, place_inside
from orchestrator.engines.local.state import WorkflowDirectory
from orchestrator.engines.local.substitution import Scope, substitute
from orchestrator.engines.local.values import duration_s, timestamp
from orchestrator.errors import FoxrunError, InfrastructureError
from orchestrator.stores.directory import DirectoryStore

TERMINATION_LOG_BYTES = 4096
SHA_ANNOTATION = "foxrun.dev/sha"
PAST_DEADLINE = "Pod was active on the node longer than the specified deadline"


@dataclass
class _Pod:
    node: Node
    template: dict[str, Any]
    directory: Path
    process: process.Process
    on_exit: bool
    deadline: float
    why_stopped: str = ""


class Pods:
    """The running pods of one workflow."""

    def __init__(
        self,
        directory: WorkflowDirectory,
        nodes: Nodes,
        *,
        uid: str,
        worktree: Callable[[str], Path],
        grace_s: float,
    ) -> None:
        self.directory = directory
        self.nodes = nodes
        self.uid = uid
        self.store = DirectoryStore(directory.home / "artifacts")
        self.worktree = worktree
        self.grace_s = grace_s
        self.running: dict[str, _Pod] = {}

    def start(self, node: Node, template: Mapping[str, Any], scope: Scope, *, on_exit: bool, until: float) -> None:
        """Run a container template as the pod of a node. What goes wrong here is told by the node.

        `until` is the time at which the template's own timeout ends it, in seconds since the epoch.
        """
        try:
            self._start(node, template, scope, on_exit, until)
        except (OSError, InfrastructureError) as error:
            # What Argo's executor calls 64: worth another attempt.
            self._not_started(node, "Error", "64", error)
        except (FoxrunError, ContractError, ValueError) as error:
            self._not_started(node, "Failed", "126", error)

    def _not_started(self, node: Node, phase: str, exit_code: str, error: Exception) -> None:
        node["outputs"] = {"exitCode": exit_code}
        remedy = getattr(error, "remedy", "")
        self.nodes.mark(node, phase, f"{error}; {remedy}" if remedy and remedy not in str(error) else str(error))

    def _start(self, node: Node, template: Mapping[str, Any], scope: Scope, on_exit: bool, until: float) -> None:
        pod = self._fresh_directory(node)
        root = pod / "root"
        resolved = substitute(template, Scope(*scope.layers, self._local_tags(node, template, root)))
        for item in resolved.get("inputs", {}).get("artifacts", []):
            self._put_in_place(node, item, root)
        outputs = resolved.get("outputs", {})
        for path in [a["path"] for a in outputs.get("artifacts", [])] + [
            p["valueFrom"]["path"] for p in outputs.get("parameters", []) if "path" in p.get("valueFrom", {})
        ]:
            place_inside(root, path).parent.mkdir(parents=True, exist_ok=True)
        container = resolved["container"]
        annotations = resolved.get("metadata", {}).get("annotations", {})
        sha = annotations.get(SHA_ANNOTATION)
        command = process.Command(
            argv=argv(container),
            cwd=self.worktree(sha) if sha else root,
            env=environment(container, pod),
            log=pod / "main.log",
        )
        limit = resolved.get("activeDeadlineSeconds")
        if limit is not None:
            until = min(until, timestamp(node["startedAt"]) + duration_s(limit))
        deadline = time.monotonic() + until - time.time()  # a clock that is set must end no pod
        started = process.start(command, grace_s=self.grace_s)
        self.running[node["id"]] = _Pod(node, resolved, pod, started, on_exit, deadline)

    def _fresh_directory(self, node: Node) -> Path:
        """Return an empty directory for the node; what an earlier attempt left is kept beside it."""
        pod: Path = self.directory.pods / node["id"]
        if pod.exists():
            number = 1
            while (before := self.directory.pods / f"{node['id']}.before-{number}").exists():
                number += 1
            pod.rename(before)
        (pod / "root").mkdir(parents=True)
        (pod / "main.log").touch()
        return pod

    def _local_tags(self, node: Node, template: Mapping[str, Any], root: Path) -> dict[str, str | None]:
        tags: dict[str, str | None] = {
            "pod.name": self.nodes.pod_name(node["name"], node["templateName"]),
            "node.name": node["name"],
        }
        for way in ("inputs", "outputs"):
            for artifact in template.get(way, {}).get("artifacts", []):
                if "path" in artifact:
                    tags[f"{way}.artifacts.{artifact['name']}.path"] = str(place_inside(root, artifact["path"]))
        for parameter in template.get("outputs", {}).get("parameters", []):
            path = parameter.get("valueFrom", {}).get("path")
            if path:
                tags[f"outputs.parameters.{parameter['name']}.path"] = str(place_inside(root, path))
        return tags

    def _put_in_place(self, node: Node, item: Mapping[str, Any], root: Path) -> None:
        given = {a["name"]: a for a in node.get("inputs", {}).get("artifacts", [])}.get(item["name"])
        if given is None:
            return  # optional, and not supplied
        key = given["s3"]["key"]
        if not self.store.exists(key):
            if item.get("optional"):
                return
            raise ValueError(f"input artifact {item['name']!r}: nothing is stored under key {key!r}")
        self.store.fetch(key, place_inside(root, item["path"]))

    def wait(self, timeout_s: float) -> None:
        """Sleep until a pod ends or the time is over; take in the ends and the progress of pods."""
        poll = select.poll()
        by_descriptor = {pod.process.fileno(): pod for pod in self.running.values()}
        for descriptor in by_descriptor:
            poll.register(descriptor, select.POLLIN | select.POLLHUP)
        for descriptor, _ in poll.poll(timeout_s * 1000):
            pod = by_descriptor[descriptor]
            ended = pod.process.wait()
            if ended is not None:
                del self.running[pod.node["id"]]
                self._progress(pod)
                self._finish(pod, ended)
        for pod in self.running.values():
            self._progress(pod)
            if time.monotonic() >= pod.deadline:
                self.stop(pod.node["id"], PAST_DEADLINE)

    def stop(self, node_id: str, why: str) -> None:
        """End a pod, with the message that its node shall have."""
        pod = self.running[node_id]
        if not pod.why_stopped:
            pod.why_stopped = why
            pod.process.stop()

    def stop_all(self, why: str, *, on_exit: bool) -> None:
        """End every pod of the workflow, those of the exit handler only with `on_exit`."""
        for node_id, pod in list(self.running.items()):
            if on_exit or not pod.on_exit:
                self.stop(node_id, why)

    def close(self) -> None:
        """Kill whatever runs."""
        for pod in self.running.values():
            pod.process.close()
        self.running.clear()

    def _progress(self, pod: _Pod) -> None:
        with contextlib.suppress(OSError):
            text = read_regular(pod.directory / "progress", limit=64).decode("ascii", "replace")
            if parse_progress(text) and pod.node.get("progress") != text.strip():
                pod.node["progress"] = text.strip()
                self.nodes.version += 1

    def _finish(self, pod: _Pod, ended: process.Exit) -> None:
        if ended.signal == signal.SIGKILL:
            process.kill_leftovers(pod.directory)  # it may have been the guardian that was killed
        said = ""
        with contextlib.suppress(OSError):
            said = (
                read_regular(pod.directory / "termination-log", limit=TERMINATION_LOG_BYTES)
                .decode("utf-8", "replace")
                .strip()
            )
        outputs, problem = gather(pod.template, pod.directory / "root", self.store, self._default_key(pod.node))
        outputs["exitCode"] = str(ended.code)
        pod.node["outputs"] = outputs
        if ended.error:
            self.nodes.mark(pod.node, "Failed", ended.error)
        elif pod.why_stopped:
            self.nodes.mark(pod.node, "Failed", pod.why_stopped)
        elif ended.code:
            self.nodes.mark(pod.node, "Failed", _message(ended, said))
        elif problem:
            self.nodes.mark(pod.node, "Error", problem)
        else:
            self.nodes.mark(pod.node, "Succeeded", "")

    def _default_key(self, node: Node) -> str:
        return f"{self.uid}/{node['id']}"


def _message(ended: process.Exit, said: str) -> str:
    """Return the message of a failed pod as Argo words it; 137 alone is no proof of exhausted memory."""
    parts = [f"killed by {signal.Signals(ended.signal).name}"] if ended.signal else []
    return ": ".join([f"main: Error (exit code {ended.code})", *parts, *([said] if said else [])])
