"""What pods print, line by line, none lost and none twice: live from the cluster, else from the archive.

Each line comes with the time at which it was printed. A stream that was cut is asked for again from the time of the
last line, and what is known is passed over; once a pod is gone, the archive goes on after the lines that were told.
"""

from __future__ import annotations

import queue
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from orchestrator.engines.argo.api import Api, NotStarted
from orchestrator.engines.argo.nodes import means, name_of, pod_name, pods
from orchestrator.engines.argo.patience import Patience
from orchestrator.engines.argo.transport import Forbidden, NotFound, Refused, Unavailable
from orchestrator.engines.base import LogLine, Workflow
from orchestrator.errors import FoxrunError, InfrastructureError

Archive = Callable[[Mapping[str, Any], str], "list[bytes] | None"]
"""(workflow, node id) -> lines of the archived log, or None."""

FULFILLED = frozenset({"Succeeded", "Failed", "Error", "Skipped", "Omitted"})
# How long the last lines may take once the workflow is completed.
REST_S = 30.0
# Argo's executor runs the command, and writes between its lines; the archive has only what the command wrote.
_OF_ARGO = re.compile(rb'time="?\d{4}-\d\d-\d\dT\S+ level=\w+ msg=.*\bargo=true\b')
# And as its very last line, after a command that failed. It is the command's own only when another line follows.
_LAST_OF_ARGO = re.compile(rb"Error: exit status \d+")
# So many lines wait for a slow reader; then the pods' streams wait too.
_BACKLOG = 10_000


def read(api: Api, workflow: Workflow, *, node: str | None, archive: Archive) -> Iterator[LogLine]:
    """Yield what has been printed until now, one pod after the other.

    Raises:
        InfrastructureError: the log of a part is gone; after all that is there.
    """
    gone = []
    for node_id, found in pods(workflow).items():
        if node is not None and not means(found, node):
            continue
        try:
            yield from PodLog(api, workflow, found).so_far(lambda i=node_id: archive(workflow, i))  # type: ignore[misc]
        except NotFound:
            if found.get("phase") in FULFILLED:
                gone.append(str(found.get("displayName")))
    if gone:
        raise InfrastructureError(
            f"the log of {', '.join(gone)} is gone: the pod was deleted, and no archived log can be read",
            remedy="Workflows of foxrun archive logs (archiveLogs): set s3_bucket or argo_server to read them",
        )


def follow(
    api: Api,
    name: str,
    changes: Iterator[Workflow],
    *,
    node: str | None,
    archive: Archive,
    deadline_s: float,
) -> Iterator[LogLine]:
    """Yield what all pods print, side by side, until the workflow is completed.

    Args:
        api: the way to the cluster; used by several threads.
        name: the workflow, for messages.
        changes: the workflow as it changes, such as watch.watch yields it; its errors end the following.
        node: only this part; None for all.
        archive: reads an archived log.
        deadline_s: as for ``changes``.
    """
    follower = _Follower(api, name, changes, node, archive, deadline_s)
    try:
        yield from follower.lines()
    finally:
        follower.ended.set()


class PodLog:
    """The log of one pod, and how much of it was told."""

    def __init__(self, api: Api, workflow: Mapping[str, Any], node: Mapping[str, Any]) -> None:
        self.api = api
        self.workflow = name_of(workflow)
        self.pod = pod_name(workflow, node)
        self.display = str(node.get("displayName"))
        self.told = 0
        self._last = b""
        self._at_last = 0

    def so_far(self, archived: Callable[[], list[bytes] | None]) -> Iterator[LogLine]:
        """What is there now. Raises NotFound when it is neither in the cluster nor archived."""
        try:
            yield from self.live(follow=False)
        except NotStarted:
            return
        except NotFound:
            lines = archived()
            if lines is None:
                raise
            yield from self.rest(lines)

    def live(self, *, follow: bool) -> Iterator[LogLine]:
        """What the cluster has beyond what was told. Raises NotFound, NotStarted, Unavailable, Refused."""
        last, to_skip = self._last, self._at_last
        held: tuple[bytes, bytes] | None = None
        for raw in self.api.log(self.workflow, self.pod, follow=follow, since=last.decode()):
            time, text = _parted(raw)
            if last and time:
                if time < last:
                    continue
                if time == last and to_skip:
                    to_skip -= 1
                    continue
            if held is not None:
                self._note(held[0])
                yield self._tell(held[1])
            held = (time, text) if _LAST_OF_ARGO.fullmatch(text) else None
            if held is None:
                self._note(time)
                if not _OF_ARGO.match(text):
                    yield self._tell(text)

    def rest(self, archived: list[bytes]) -> Iterator[LogLine]:
        """What the archive has beyond what was told."""
        for text in archived[self.told :]:
            yield self._tell(text)

    def _note(self, time: bytes) -> None:
        if time:
            self._at_last = self._at_last + 1 if time == self._last else 1
            self._last = time

    def _tell(self, text: bytes) -> LogLine:
        self.told += 1
        return LogLine(self.display, text.removesuffix(b"\r").decode("utf-8", "replace"))


def _parted(raw: bytes) -> tuple[bytes, bytes]:
    """(time, text) of a line; no time where there is none in front."""
    time, _, text = raw.partition(b" ")
    if len(time) >= 20 and time[:4].isdigit() and time[10:11] == b"T":
        return time, text
    return b"", raw


class _Follower:
    """One thread watches the workflow, one more follows each pod; they meet in a queue."""

    def __init__(
        self, api: Api, name: str, changes: Iterator[Workflow], node: str | None, archive: Archive, deadline_s: float
    ) -> None:
        self.api = api
        self.name = name
        self.changes = changes
        self.node = node
        self.archive = archive
        self.deadline_s = deadline_s
        self.ended = threading.Event()
        self._latest: Workflow = {}
        self._lines: queue.Queue[LogLine | FoxrunError | None] = queue.Queue(_BACKLOG)

    def lines(self) -> Iterator[LogLine]:
        threading.Thread(target=self._watch, name=f"watch {self.name}", daemon=True).start()
        while (item := self._lines.get()) is not None:
            if isinstance(item, FoxrunError):
                raise item
            yield item

    def _watch(self) -> None:
        threads: dict[tuple[str, str], threading.Thread] = {}
        try:
            for workflow in self.changes:
                self._latest = workflow
                for node_id, found in pods(workflow).items():
                    # A node that begins anew after a retry has the same id and another beginning.
                    key = (node_id, str(found.get("startedAt")))
                    if key in threads or found.get("phase") == "Pending" or not self._wanted(found):
                        continue
                    log = PodLog(self.api, workflow, found)
                    threads[key] = threading.Thread(target=self._follow_pod, args=(node_id, log), daemon=True)
                    threads[key].start()
                if self.ended.is_set():
                    return
            for thread in threads.values():
                thread.join(REST_S)
            self._put(None)
        except FoxrunError as error:
            self._put(error)
        except Exception as error:
            self._put(InfrastructureError(f"the logs of {self.name} broke off: {error}"))

    def _wanted(self, node: Mapping[str, Any]) -> bool:
        return self.node is None or means(node, self.node)

    def _follow_pod(self, node_id: str, log: PodLog) -> None:
        patience = Patience(f"the log of {log.display}", self.deadline_s)
        try:
            while not self.ended.is_set():
                # Looked at first: what is read after the end is all there is.
                over = self._is_over(node_id)
                try:
                    for line in log.live(follow=not over):
                        patience.well()
                        self._put(line)
                    if over:
                        return
                except (NotStarted, NotFound):
                    if over:
                        for line in log.rest(self.archive(self._latest, node_id) or []):
                            self._put(line)
                        return
                except (Unavailable, Refused, Forbidden) as error:
                    patience.endure(error)
                    continue
                patience.pause()
        except FoxrunError as error:
            self._put(error)
        except Exception as error:
            self._put(InfrastructureError(f"the log of {log.display} broke off: {error}"))

    def _is_over(self, node_id: str) -> bool:
        nodes = (self._latest.get("status") or {}).get("nodes") or {}
        return (nodes.get(node_id) or {}).get("phase") in FULFILLED

    def _put(self, item: LogLine | FoxrunError | None) -> None:
        """Wait for room, but not for a reader who has gone away."""
        while not self.ended.is_set():
            try:
                return self._lines.put(item, timeout=1.0)
            except queue.Full:
                continue
