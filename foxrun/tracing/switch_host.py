"""Remedies for what a program takes from its host: clock, entropy, hash order, listings, order of completion."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from hashlib import blake2b
from itertools import count
from types import ModuleType
from typing import Any

from foxrun.tracing import imports, patching, where

EPOCH_NS = 1_700_000_000 * 1_000_000_000  # when the fixed clock starts
TICK_NS = 1_000_000  # by which every reading advances it


def hash_seed() -> None:
    """Run this very command again with PYTHONHASHSEED=0; it cannot be changed in a running interpreter."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.execve(sys.executable, sys.orig_argv, {**os.environ, "PYTHONHASHSEED": "0"})  # noqa: S606


ADDR_NO_RANDOMIZE = 0x0040000
ELSEWHERE = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_", "MALLOC_ARENA_MAX")


def fixed_addresses() -> None:
    """Run this very command again where memory lies alike in each process: personality(2), one layout of malloc's, one
    hash seed, and the environment in one order. What fresh memory holds stays as it is."""
    import ctypes

    libc = ctypes.CDLL(None)
    now = libc.personality(0xFFFFFFFF)
    randomised = now == -1 or not now & ADDR_NO_RANDOMIZE
    if not randomised and os.environ.get("PYTHONHASHSEED") == "0" and not any(name in os.environ for name in ELSEWHERE):
        return
    if randomised and (now == -1 or libc.personality(now | ADDR_NO_RANDOMIZE) == -1):
        sys.exit("foxrun: this system does not let a process keep its addresses fixed (personality(2))")
    kept = {name: os.environ[name] for name in sorted(os.environ) if name not in ELSEWHERE}
    os.execve(sys.executable, sys.orig_argv, {**kept, "PYTHONHASHSEED": "0"})  # noqa: S606


def _own(depth: int = 2) -> bool:
    """Whether the caller itself is one of the program's own files: libraries wait and time out by the real clock."""
    frame = sys._getframe(depth)
    while frame.f_code.co_filename.startswith(where.OURS) and frame.f_back is not None:
        frame = frame.f_back
    filename = frame.f_code.co_filename
    return where.kind_of(filename) == where.PROGRAM and not any(site in filename for site in where.SITES)


def fixed_clock() -> None:
    """time and datetime."""
    ticks = count(0)

    def now_ns() -> int:
        return EPOCH_NS + next(ticks) * TICK_NS

    def instead(make: Callable[[], Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def around(original: Callable[..., Any]) -> Callable[..., Any]:
            return lambda *args, **kwargs: make() if _own() else original(*args, **kwargs)

        return around

    def clocks(time: ModuleType) -> None:
        for name in ("time", "monotonic", "perf_counter", "process_time"):
            patching.function(time, name, instead(lambda: now_ns() / 1e9))
            patching.function(time, f"{name}_ns", instead(now_ns))

        def broken_down(original: Callable[..., Any]) -> Callable[..., Any]:
            return lambda *args: original(*args) if args or not _own() else original(now_ns() / 1e9)

        for name in ("localtime", "gmtime", "ctime"):
            patching.function(time, name, broken_down)

        def formatted(original: Callable[..., Any]) -> Callable[..., Any]:
            return lambda *args: (
                original(*args) if len(args) > 1 or not _own() else original(*args, time.gmtime(now_ns() / 1e9))
            )

        patching.function(time, "strftime", formatted)

    def dates(module: ModuleType) -> None:
        def now(original: Callable[..., Any]) -> Callable[..., Any]:
            def call(cls: Any, tz: Any = None) -> Any:
                if not _own():
                    return original(cls, tz) if tz is not None else original(cls)
                return cls.fromtimestamp(now_ns() / 1e9, tz or module.timezone.utc).replace(tzinfo=tz)

            return call

        def today(original: Callable[..., Any]) -> Callable[..., Any]:
            return lambda cls: cls.fromtimestamp(now_ns() / 1e9) if _own() else original(cls)

        for name in ("now", "utcnow"):
            patching.method(module.datetime, name, now)
        patching.method(module.datetime, "today", today)
        patching.method(module.date, "today", today)

    def loops(module: ModuleType) -> None:
        patching.method(module.BaseEventLoop, "time", instead(lambda: now_ns() / 1e9))

    imports.when_imported("time", clocks)
    imports.when_imported("datetime", dates)
    imports.when_imported("asyncio.base_events", loops)


def fixed_entropy() -> None:
    """os.urandom, and what is made of it: uuid, secrets, numpy's and Python's seeds from the machine."""
    blocks = count(0)

    def urandom(size: int) -> bytes:
        data = b""
        while len(data) < size:
            data += blake2b(b"foxrun" + next(blocks).to_bytes(8, "little")).digest()
        return data[:size]

    patching.function(os, "urandom", lambda original: urandom)

    def python(random: ModuleType) -> None:
        random._urandom = urandom  # type: ignore[attr-defined]

    def uuids(uuid: ModuleType) -> None:
        patching.function(uuid, "uuid4", lambda original: lambda: uuid.UUID(bytes=urandom(16), version=4))
        patching.function(
            uuid, "uuid1", lambda original: lambda *args, **kwargs: uuid.UUID(bytes=urandom(16), version=1)
        )

    imports.when_imported("random", python)
    imports.when_imported("uuid", uuids)


def sorted_listings() -> None:
    """os.listdir and os.scandir; os.walk, glob and pathlib look these two up when they are called."""
    listdir, scandir = os.listdir, os.scandir

    class Sorted:
        """What os.scandir returns: an iterator, a context manager, closable."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            with scandir(*args, **kwargs) as entries:
                self._entries = iter(sorted(entries, key=lambda entry: entry.name))

        def __iter__(self) -> Iterator[Any]:
            return self

        def __next__(self) -> Any:
            return next(self._entries)

        def __enter__(self) -> Sorted:
            return self

        def __exit__(self, *exc: object) -> None:
            self.close()

        def close(self) -> None:
            self._entries = iter(())

    patching.function(os, "listdir", lambda original: lambda *args, **kwargs: sorted(original(*args, **kwargs)))
    patching.function(os, "scandir", lambda original: Sorted)
    if listdir in os.supports_fd:  # shutil.rmtree chooses by it between its safe and its unsafe way
        os.supports_fd.update({os.listdir, os.scandir})


def ordered_completion() -> None:
    """concurrent.futures.as_completed, multiprocessing's imap_unordered, a DataLoader's in_order."""

    def futures(module: ModuleType) -> None:
        future: Any = module.Future
        made, numbers = future.__init__, count(0)

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            made(self, *args, **kwargs)
            self._foxrun_place = next(numbers)

        def as_completed(fs: Any, timeout: float | None = None) -> Iterator[Any]:
            for one in sorted(set(fs), key=lambda future: int(future._foxrun_place)):
                one.exception(timeout)
                yield one

        future.__init__ = __init__
        module.as_completed = as_completed  # type: ignore[attr-defined]

    def pools(module: ModuleType) -> None:
        module.Pool.imap_unordered = module.Pool.imap

    def loaders(module: ModuleType) -> None:
        def around(original: Any) -> Any:
            def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
                original(self, *args, **{**kwargs, **({"in_order": True} if "in_order" in kwargs else {})})

            return __init__

        patching.method(module.DataLoader, "__init__", around)

    imports.when_imported("torch.utils.data.dataloader", loaders)
    imports.when_imported("concurrent.futures._base", futures)
    imports.when_imported("multiprocessing.pool", pools)
