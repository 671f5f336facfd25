"""The only module that starts and ends processes.

Each command has a guardian: a fork of the controller that starts it, hears when the controller dies, and ends whatever
the command left behind. So nothing outlives its pod, and no pod outlives its controller, even one that is killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_STOP = b"s"
_SWEEP_S = 5.0
_LOOKS = 10
MARK = "FOXRUN_POD"
"""Variable by which a pod's processes are known again when their controller is gone."""

_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform.startswith("linux") else None


@dataclass(frozen=True)
class Command:
    """What to run: arguments, directory, the whole environment, and the file that receives stdout and stderr."""

    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    log: Path


@dataclass(frozen=True)
class Exit:
    """How a command ended: by itself with a code, by a signal, or not at all because it could not be started."""

    code: int
    signal: int = 0
    error: str = ""


class Process:
    """A running command; readable (`fileno`) when it has ended and nothing of it is left."""

    def __init__(self, guardian: int, control: int, result: int) -> None:
        self._guardian = guardian
        self._control = control
        self._result = result
        self._told = b""

    def fileno(self) -> int:
        """Return a descriptor that becomes readable when the command has ended."""
        return self._result

    def stop(self) -> None:
        """Ask the command to end; after the grace time it is killed."""
        with contextlib.suppress(OSError):
            os.write(self._control, _STOP)

    def wait(self) -> Exit | None:
        """Return how the command ended once `fileno` is readable; None when there is more to come."""
        chunk = os.read(self._result, 4096)
        if chunk:
            self._told += chunk
            return None
        os.waitpid(self._guardian, 0)
        self.close()
        if not self._told:
            return Exit(128 + signal.SIGKILL, signal.SIGKILL)  # the guardian itself was killed
        return Exit(**json.loads(self._told))

    def close(self) -> None:
        """Let go of the command: what still runs of it is killed."""
        for descriptor in (self._control, self._result):
            with contextlib.suppress(OSError):
                os.close(descriptor)


def start(command: Command, *, grace_s: float) -> Process:
    """Start a command in its own process group, under a guardian. Raises OSError when no process can be made."""
    control_read, control_write = os.pipe()
    result_read, result_write = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    guardian = os.fork()
    if guardian == 0:
        _guard(command, grace_s, control_read, result_write)
    os.close(control_read)
    os.close(result_write)
    return Process(guardian, control_write, result_read)


def _guard(command: Command, grace_s: float, control: int, result: int) -> NoReturn:
    """Be the guardian of one command; never returns."""
    try:
        # Above all the lock: it must be free when the controller is gone, though this process may live a moment longer.
        _close_all_but({0, 1, 2, control, result})
        if _LIBC is not None:
            _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
            _rename(f"foxrun guardian of {command.log.parent}")
        ended = _run(command, grace_s, control)
        os.write(result, json.dumps(ended.__dict__).encode())
    finally:
        os._exit(0)


def _rename(title: str) -> None:
    """Let `ps` say what this process is: under its parent's words, who kills the one by them would kill the other."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start, end = int(fields[45]), int(fields[46])  # arg_start and arg_end, proc(5)
        if 0 < start < end:
            ctypes.memset(start, 0, end - start)
            ctypes.memmove(start, (words := title.encode()), min(len(words), end - start - 1))


def _run(command: Command, grace_s: float, control: int) -> Exit:
    wakeup_read, wakeup_write = os.pipe()
    os.set_blocking(wakeup_write, False)
    signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    guardian = os.getpid()
    try:
        with command.log.open("ab") as log:
            child = subprocess.Popen(
                list(command.argv),
                cwd=command.cwd,
                env=dict(command.env),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=lambda: _die_with(guardian),
            )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        # As a shell says it: 127 no such command, 126 one that cannot be run.
        return Exit(127 if isinstance(error, FileNotFoundError) else 126, error=_why_not(command, error))
    status: int | None = None
    kill_at = float("inf")
    while status is None:
        timeout = max(0.0, min(kill_at - time.monotonic(), 3600.0))
        ready, _, _ = select.select([control, wakeup_read], [], [], timeout)
        if control in ready:
            if os.read(control, 64):
                _signal_group(child.pid, signal.SIGTERM)
                kill_at = min(kill_at, time.monotonic() + grace_s)
            else:
                kill_at = 0.0  # the controller is gone
        if wakeup_read in ready:
            os.read(wakeup_read, 4096)
        if time.monotonic() >= kill_at:
            _signal_group(child.pid, signal.SIGKILL)
            kill_at = time.monotonic() + 1.0
        status = _reap(child.pid)
    _signal_group(child.pid, signal.SIGKILL)
    _sweep()
    child.returncode = status  # so that Popen does not look for it
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return Exit(128 + number, number)
    return Exit(os.WEXITSTATUS(status))


def _reap(command: int) -> int | None:
    """Collect every child that has ended; return the command's wait status when it is among them."""
    found = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == command:
                found = status
    return found


def _sweep() -> None:
    """Kill and collect what the command left behind: as a subreaper, the guardian has inherited it."""
    deadline = time.monotonic() + _SWEEP_S
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < deadline:
            for pid in _children():
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.005)


def _children() -> list[int]:
    own = os.getpid()
    try:
        return [int(pid) for pid in Path(f"/proc/{own}/task/{own}/children").read_text().split()]
    except OSError:
        return []


def _die_with(guardian: int) -> None:
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != guardian:
            os.kill(os.getpid(), signal.SIGKILL)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(group, number)


def _close_all_but(keep: set[int]) -> None:
    listing = Path("/proc/self/fd") if Path("/proc/self/fd").is_dir() else Path("/dev/fd")
    for name in os.listdir(listing):  # noqa: PTH208
        if int(name) not in keep:
            with contextlib.suppress(OSError):
                os.close(int(name))


def _why_not(command: Command, error: Exception) -> str:
    program = command.argv[0]
    if isinstance(error, OSError) and error.filename == str(command.cwd):
        return f"cannot start {program!r}: its directory {str(command.cwd)!r} does not exist"
    if isinstance(error, FileNotFoundError):
        return f"cannot start {program!r}: no such command on this machine"
    return f"cannot start {program!r}: {getattr(error, 'strerror', None) or error}"


def kill_leftovers(pods: Path) -> int:
    """Kill the processes that pods of a dead controller left behind, known by their environment; return how many.

    Grandchildren whose guardian was killed with the controller have no parent that could end them.
    """
    total = 0
    mark = f"{MARK}={pods}/".encode()
    for _ in range(_LOOKS):
        killed = 0
        for pid in _all_processes():
            try:
                environment = Path(f"/proc/{pid}/environ").read_bytes()
            except OSError:
                continue
            if any(variable.startswith(mark) for variable in environment.split(b"\0")):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
        if not killed:
            break  # one that was just being forked is found by the next look
        total += killed
    return total


def _all_processes() -> Iterator[int]:
    try:
        names = os.listdir("/proc")  # noqa: PTH208
    except OSError:
        return
    yield from (int(name) for name in names if name.isdigit() and int(name) != os.getpid())


def start_controller(arguments: Sequence[str], *, log: Path, pass_fds: Sequence[int]) -> subprocess.Popen[Any]:
    """Start a controller as a process of its own session, which a closed terminal or Ctrl-C does not reach."""
    with log.open("ab") as stream:
        return subprocess.Popen(
            [sys.executable, "-X", "utf8", "-P", "-m", "orchestrator.engines.local.controller", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            cwd=log.parent,
            start_new_session=True,
            pass_fds=tuple(pass_fds),
        )
