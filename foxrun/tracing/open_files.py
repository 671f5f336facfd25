"""Whether somebody of the program still writes a file that is read: Linux' /proc says who has it open or mapped.

Pages: https://man7.org/linux/man-pages/man5/proc_pid_fdinfo.5.html, proc_pid_maps.5, proc_tid_children.5.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

MOST = 64  # processes that are looked at


def is_written(status: os.stat_result) -> bool:
    """Whether this process, its parent or one of its descendants has the file open for writing, or mapped so."""
    return any(_opens(pid, status) or _maps(pid, status) for pid in _family())


def _family() -> list[int]:
    found = [os.getpid(), os.getppid()]
    waiting = [found[0]]
    while waiting and len(found) < MOST:
        children = [pid for pid in _children(waiting.pop(0)) if pid not in found]
        found += children
        waiting += children
    return found


def _children(pid: int) -> Iterator[int]:
    for thread in _names(f"/proc/{pid}/task"):
        yield from map(int, _text(f"/proc/{pid}/task/{thread}/children").split())


def _opens(pid: int, status: os.stat_result) -> bool:
    for number in _names(f"/proc/{pid}/fd"):
        try:
            one = os.stat(f"/proc/{pid}/fd/{number}")  # noqa: PTH116
        except OSError:
            continue
        if (one.st_dev, one.st_ino) == (status.st_dev, status.st_ino):
            flags = _text(f"/proc/{pid}/fdinfo/{number}").partition("flags:")[2].split()[:1]
            if flags and int(flags[0], 8) & os.O_ACCMODE in (os.O_WRONLY, os.O_RDWR):
                return True
    return False


def _maps(pid: int, status: os.stat_result) -> bool:
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
    for line in _text(f"/proc/{pid}/maps").splitlines():
        words = line.split(None, 5)
        if len(words) > 4 and words[1] in ("rw-s", "rwxs") and (words[3], words[4]) == (device, str(status.st_ino)):
            return True
    return False


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208
    except OSError:
        return []  # gone meanwhile, somebody else's, or no Linux


def _text(file: str) -> str:
    try:
        with open(file, encoding="utf-8", errors="replace") as stream:  # noqa: PTH123
            return stream.read()
    except OSError:
        return ""
