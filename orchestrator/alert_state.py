"""Where alerts remember: a file below FOXRUN_HOME, or a ConfigMap beside the Workflows, so that every run finds it.

Both change atomically and for two at once: the file under a lock, the ConfigMap by its resource version (who was
overtaken reads anew). Neither holds a secret: channels are there by name.
"""

from __future__ import annotations

import copy
import fcntl
import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from foxrun.files import write_atomic
from orchestrator.alert_episodes import VERSION, State, empty
from orchestrator.errors import InfrastructureError

if TYPE_CHECKING:
    from orchestrator.engines.argo.credentials import Credentials

T = TypeVar("T")
FILE, KEY = "state.json", "state.json"
PATIENCE_S = 30.0
MOST_BYTES = 900_000  # a ConfigMap holds 1 MiB


class AlertState(Protocol):
    """The one state of all runs."""

    def read(self) -> State:
        """As it is now."""
        ...

    def change(self, edit: Callable[[State], T]) -> T:
        """Let ``edit`` change it, and keep that; ``edit`` may be called again when another was faster.

        Raises InfrastructureError when it cannot be read or kept.
        """
        ...


class FileState:
    """On this machine, for all processes of one FOXRUN_HOME."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "alerts"

    def read(self) -> State:
        """As it is now; empty before the first run."""
        try:
            return _parsed((self._folder / FILE).read_text("utf-8"))
        except FileNotFoundError:
            return empty()
        except OSError as error:
            raise self._trouble(error) from None

    def change(self, edit: Callable[[State], T]) -> T:
        """Under the lock; readers see the old state or the new one."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with (self._folder / "lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                state = self.read()
                before = copy.deepcopy(state)
                result = edit(state)
                if state != before:
                    write_atomic(self._folder / FILE, _text(state))
                return result
        except OSError as error:
            raise self._trouble(error) from None

    def _trouble(self, error: OSError) -> InfrastructureError:
        return InfrastructureError(
            f"{error.filename or self._folder}: {error.strerror}", remedy="make room, or mend the access to FOXRUN_HOME"
        )


class ClusterState:
    """A ConfigMap in the namespace, which infra/ makes and lets the alerting account get and update."""

    def __init__(self, credentials: Credentials, name: str, *, patience_s: float = PATIENCE_S) -> None:
        from orchestrator.engines.argo.transport import Transport

        self._http = Transport(credentials)
        self._name = name
        self._patience_s = patience_s

    @property
    def _path(self) -> str:
        from orchestrator.engines.argo.transport import segment

        return f"/api/v1/namespaces/{segment(self._http.access.namespace)}/configmaps"

    def read(self) -> State:
        """As it is now; empty where there is no such ConfigMap yet."""
        return self._get()[1]

    def _get(self) -> tuple[dict[str, Any] | None, State]:
        from orchestrator.engines.argo.transport import NotFound, segment

        try:
            there = self._http.json("GET", f"{self._path}/{segment(self._name)}")
        except NotFound:
            return None, empty()
        return there, _parsed((there.get("data") or {}).get(KEY, ""))

    def change(self, edit: Callable[[State], T]) -> T:
        """Read, edit, replace; anew when another was faster."""
        from orchestrator.engines.argo.transport import Conflict, segment

        give_up_at = time.monotonic() + self._patience_s
        while True:
            there, state = self._get()
            before = copy.deepcopy(state)
            result = edit(state)
            if state == before:
                return result
            data = {"data": {KEY: _text(state)}}
            try:
                if there is None:
                    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": self._name}, **data}
                    self._http.json("POST", self._path, body=body)
                else:
                    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": there["metadata"], **data}
                    self._http.json("PUT", f"{self._path}/{segment(self._name)}", body=body)
                return result
            except Conflict:
                if time.monotonic() > give_up_at:
                    raise
                time.sleep(random.uniform(0.05, 0.5))  # noqa: S311  (two that collide must not do so again)


def _parsed(text: str) -> State:
    """The state of its text. What cannot be read is as nothing: an alert too many is better than none."""
    try:
        value = json.loads(text) if text else {}
    except ValueError:
        value = {}
    state = empty()
    if isinstance(value, dict) and value.get("version") == VERSION:
        state |= {name: value[name] for name in state if isinstance(value.get(name), type(state[name]))}
    return state


def _text(state: State) -> str:
    """The state as JSON that fits; the oldest deliveries, then the oldest messages give way."""
    while len(text := json.dumps(state, indent=0, ensure_ascii=False)) > MOST_BYTES or len(text.encode()) > MOST_BYTES:
        shrinking = state["deliveries"] or state["outbox"]
        if not shrinking:
            break
        del shrinking[: max(1, len(shrinking) // 10)]
    return text
