"""The one recorder of a process: numbers its events, keeps their fingerprints until they are read, writes them out."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from foxrun.tracing.plan import Plan
from foxrun.tracing.streams import Folder

if TYPE_CHECKING:
    from foxrun.tracing.hashing import Hasher

Fingerprint = int | str  # a slot of the hasher, or the digits themselves; "" where none was taken
Said = str | Callable[[], str]  # a value, or who says it once the device is waited for
KEEP = 256  # events that may wait for their fingerprints
FOREIGN = 1000  # threads that Python did not start are numbered from here
KEEP_IN_CHILD = 8  # a worker may be ended at any moment by the process that started it


class Recorder:
    """Events and rows of this process. Every method may be called from any thread."""

    def __init__(self, plan: Plan, folder: Folder) -> None:
        self.plan = plan
        self.folder = folder
        self.step = 0
        self.index = 0
        self.module: Callable[[], str] = lambda: ""
        self.lock = threading.RLock()
        self.local = _Local()
        self.hasher: Hasher | None = None
        self.at_end: list[Callable[[], None]] = []
        self.before_stop: Callable[[], None] | None = None  # the program's own, where it is ended early
        self.ended = False
        self.threads_started = 0
        self._events: list[dict[str, Any]] = []
        self._values: dict[int, int] = {}  # fingerprints that were read before their events were complete
        self._foreign = 0
        self._phase = "other"
        self._keep = KEEP if folder.process == "0" else KEEP_IN_CHILD
        self._troubles: dict[str, int] = {}

    @property
    def phase(self) -> str:
        """What this thread is at: forward, backward, optimizer, data, other; a library's thread: who it works for."""
        if self.local.phase:
            return self.local.phase
        return self._phase if self.thread() >= FOREIGN else "other"

    @phase.setter
    def phase(self, value: str) -> None:
        self.local.phase = self._phase = value

    # What an event is made of -----------------------------------------------------------------------------------

    def event(
        self,
        kind: str,
        name: str,
        *,
        ins: Sequence[tuple[str, Fingerprint, int]] = (),
        outs: Sequence[tuple[str, Fingerprint]] = (),
        shapes: str = "",
        where: str = "",
        by: str = "",
        module: str | None = None,
        phase: str | None = None,
        value: Said = "",
        index: int | None = None,
    ) -> int:
        """Write one event down; returns its index. ``by``: the line that calls ``where``'s function. ``index``: one
        that ``reserve`` gave; ``value`` may be asked later, with the fingerprints."""
        with self.lock:
            i = self.reserve() if index is None else index
            self._events.append(
                {
                    "i": i,
                    "step": self.step,
                    "kind": kind,
                    "name": name,
                    "ins": ins,
                    "outs": outs,
                    "shapes": shapes,
                    "where": where,
                    "by": by,
                    "module": self.module() if module is None else module,
                    "phase": self.phase if phase is None else phase,
                    "thread": self.thread(),
                    "value": value,
                }
            )
            if len(self._events) >= self._keep or (self._keep < KEEP and kind in ("seed", "host")):
                self.flush()
            return i

    def reserve(self) -> int:
        """The next event's index."""
        with self.lock:
            i = self.index
            self.index += 1
            return i

    def thread(self) -> int:
        """This thread's number; the main one has 0."""
        # By the order in which the program starts its threads; an ident may be that of a later thread again.
        if self.local.number < 0:
            given = 0 if threading.current_thread() is threading.main_thread() else None
            given = getattr(threading.current_thread(), "_foxrun_start", given)
            if given is None:  # one of a library's own, by the order of their first events
                self._foreign += 1
                given = FOREIGN + self._foreign
            self.local.number = given
        return self.local.number

    def flush(self) -> None:
        """Read the fingerprints that wait, and write their events."""
        with self.lock:
            events, self._events = sorted(self._events, key=lambda event: int(event["i"])), []
            values = self._values
            if self.hasher is not None and len(self.hasher):
                with self.quiet():
                    values.update(self.hasher.resolve())
            for event in events:
                if not isinstance(event["value"], str):
                    with self.quiet():
                        event["value"] = event["value"]()
                event["ins"] = [[label, _digits(print_, values), source] for label, print_, source in event["ins"]]
                event["outs"] = [[label, _digits(print_, values)] for label, print_ in event["outs"]]
            self.folder.write("events.jsonl", [json.dumps(event, separators=(",", ":")) for event in events])

    # What keeps the program safe from us -------------------------------------------------------------------------

    def quiet(self) -> Any:
        """A context in which nothing of this thread is recorded; torch is there: no dispatch mode, no autograd."""
        return _Quiet(self.local)

    @property
    def busy(self) -> bool:
        """Whether this thread is inside the tracer."""
        return self.local.depth > 0

    def trouble(self, error: BaseException) -> None:
        """A failure inside the tracer: recorded and said once. What a signal's handler of the program raised while the
        tracer worked is none: it goes on to the program."""
        frames = list(traceback.walk_tb(error.__traceback__))
        if any(frame.f_code in _handlers() for frame, _ in frames):
            raise error
        # No line of source is read for it: that would open files, and there may be no descriptor left.
        place = f"{frames[-1][0].f_code.co_filename.rpartition('/')[2]}:{frames[-1][1]}" if frames else ""
        try:
            text = f"{type(error).__name__} at {place}: {error}"[:400]
        except Exception:
            text = f"{type(error).__name__} at {place}"
        first = not self._troubles
        self._troubles[text] = self._troubles.get(text, 0) + 1
        if first:
            with contextlib.suppress(Exception):
                print(f"foxrun: tracing goes on after a failure of its own: {text}", file=sys.stderr)  # noqa: T201

    def end(self, how: str, code: int | None = None, error: str = "") -> None:
        """Write what is left, and how the process ended; the first call counts."""
        if self.ended:
            return
        self.ended = True
        with self.quiet():
            for last in self.at_end:
                try:
                    last()
                except Exception as trouble:
                    self.trouble(trouble)
            try:
                self.flush()
            except Exception as trouble:
                self.trouble(trouble)
        fields = {"how": how, "code": code, "error": error, "steps": self.step, "events": self.index}
        fields["threads"] = self.threads_started
        with contextlib.suppress(OSError):  # no room, or no descriptor: the process ends as it would without us
            self.folder.put("end.json", {**fields, "troubles": dict(sorted(self._troubles.items()))})


def _handlers() -> list[Any]:
    """The code of the functions that the program handles signals with."""
    found = []
    for number in signal.valid_signals():
        handler = signal.getsignal(number)
        plain = getattr(handler, "__func__", handler)
        plain = plain if hasattr(plain, "__code__") else vars(type(plain)).get("__call__")
        code = getattr(plain, "__code__", None)
        found += [code] if code is not None else []
    return found


class _Local(threading.local):
    depth = 0
    number = -1
    phase = ""
    handed = ""  # what is known of the memory that is being handed to torch


class _Quiet:
    """Reentrant; one of them may be used once."""

    def __init__(self, local: _Local) -> None:
        self._local = local
        self._guards: list[Any] = []
        self._threads = 0

    def __enter__(self) -> None:
        self._local.depth += 1
        torch = sys.modules.get("torch")
        if torch is not None and hasattr(torch, "_C") and hasattr(torch, "no_grad"):
            if forked and self._local.depth == 1 and (threads := torch.get_num_threads()) > 1:
                # The parent's OpenMP threads are not there, and a child that waits for them waits for ever.
                # https://gcc.gnu.org/bugzilla/show_bug.cgi?id=60035
                self._threads = threads
                torch.set_num_threads(1)
            # A TorchFunctionMode or a subclass sees the program's calls alone.
            self._guards = [torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction(), torch.no_grad()]
            self._guards[1].__enter__()
            self._guards[2].__enter__()

    def __exit__(self, *exc: object) -> None:
        if self._guards:
            self._guards.pop().__exit__(None, None, None)
            self._guards.pop().__exit__(None, None, None)
            self._guards.clear()
        if self._threads:
            sys.modules["torch"].set_num_threads(self._threads)
            self._threads = 0
        self._local.depth -= 1


def _digits(fingerprint: Fingerprint, values: dict[int, int]) -> str:
    return fingerprint if isinstance(fingerprint, str) else f"{values.pop(fingerprint):016x}"


forked = False  # in a child that was forked, where the parent's threads are not
active: Recorder | None = None
