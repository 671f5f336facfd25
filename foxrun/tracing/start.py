"""Starts the tracer in a process: plan, folder, remedies, then hooks for what the program imports later."""

from __future__ import annotations

import atexit
import os
import sys
from types import ModuleType
from typing import Any

from foxrun.tracing import delays, handed, header, host, imports, pace, plan, processes, recorder, seeds
from foxrun.tracing.streams import Folder

site: Any = None  # the TorchSite of this process, once torch is there


def start(path: str) -> None:
    """Trace this process by the plan at ``path``. Raises ContractError where that is no plan."""
    wanted = plan.read(path)
    processes.watch()
    begin(wanted, processes.own_name())
    delays.number_threads()
    if wanted.delays is not None:
        delays.Delays(*wanted.delays).watch()
    if wanted.pace is not None:
        pace.watch(wanted.pace)
    if wanted.remedies:
        from foxrun.tracing.switches import apply, check

        check(wanted.remedies)
        apply(wanted.remedies)
    if wanted.operations:
        host.watch()
    imports.when_imported("random", _safely(seeds.watch_python))
    imports.when_imported("numpy.random", _safely(seeds.watch_numpy))
    imports.when_imported("torch", _safely(_torch))
    _endings()


def begin(wanted: plan.Plan, process: str) -> recorder.Recorder:
    """A recorder of its own for this process."""
    recorder.active = recorder.Recorder(wanted, Folder(wanted.out, process))
    with recorder.active.quiet():
        header.write(recorder.active)
    return recorder.active


def _torch(torch: ModuleType) -> None:
    global site
    from foxrun.tracing.torch_site import TorchSite

    if recorder.active is not None:
        if recorder.active.plan.operations:
            handed.watch(torch)
        site = TorchSite(recorder.active, torch)
        header.write(recorder.active)


def _safely(call: Any) -> Any:
    def attempt(module: ModuleType) -> None:
        try:
            call(module)
        except Exception as error:
            if recorder.active is not None:
                recorder.active.trouble(error)

    return attempt


def _endings() -> None:
    """How the process ends: by its last line, by an exception, by os._exit."""
    hook = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        if recorder.active is not None:
            recorder.active.end("exception", 1, f"{kind.__name__}: {error}"[:400])
        hook(kind, error, trace)

    sys.excepthook = excepthook
    leave = os._exit

    def _exit(status: int) -> None:
        if recorder.active is not None:
            recorder.active.end("os._exit", status)
        leave(status)

    os._exit = _exit  # type: ignore[assignment]
    atexit.register(lambda: recorder.active.end("end") if recorder.active is not None else None)


def forked(old: recorder.Recorder, new: recorder.Recorder) -> None:
    """In a forked child: what was attached to the parent's recorder goes on with the child's."""
    recorder.forked = True
    if site is not None:
        site.attach(new)
