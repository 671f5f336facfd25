"""What a program may take from outside: clocks, entropy, ids, listings, files, environment, order of completion."""

from __future__ import annotations

import builtins
import os
import re
import sys
from collections.abc import Callable, Iterator
from types import FrameType, ModuleType
from typing import Any

from foxrun.tracing import host_values, imports, open_files, patching, queued, recorder, watching, where
from foxrun.tracing.words import STILL_WRITTEN

CLOCKS = (
    "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time",
    "process_time_ns", "thread_time", "thread_time_ns", "clock_gettime", "clock_gettime_ns", "localtime", "gmtime",
    "ctime", "strftime",
)  # fmt: skip
OWN_VARIABLES = {
    "TMPDIR", "PWD", "XDG_CACHE_HOME", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "ARGO_PROGRESS_FILE",
    "PYTHONPATH",
}  # fmt: skip
LARGEST = 256 << 20  # bytes of a file that is read once more for its fingerprint


def watch() -> None:
    """Watch all of it: what is imported already now, the rest when the program imports it."""
    imports.when_imported("time", _clocks)
    imports.when_imported("datetime", _datetime)
    imports.when_imported("os", _os)
    imports.when_imported("uuid", _uuid)
    names = ("token_bytes", "token_hex", "token_urlsafe", "randbits", "randbelow", "choice")
    imports.when_imported("secrets", lambda module: _functions(module, "secrets", names))
    imports.when_imported("glob", lambda module: _functions(module, "glob", ("glob",)))
    imports.when_imported("resource", _usage)
    imports.when_imported("genericpath", _ages)
    imports.when_imported("multiprocessing", lambda m: _functions(m, "multiprocessing", ("cpu_count",)))
    imports.when_imported("asyncio.base_events", _loops)
    for name in ("sqlite3", "sqlite3.dbapi2"):
        imports.when_imported(name, _sqlite)
    imports.when_imported("concurrent.futures._base", _futures)
    imports.when_imported("multiprocessing.pool", _pools)
    imports.when_imported("multiprocessing.queues", queued.watch)
    imports.when_imported("torch.utils.data.dataloader", _loaders)
    _own_builtins()
    sys.addaudithook(_audit)


def _functions(module: ModuleType, family: str, names: tuple[str, ...]) -> None:
    for name in names:
        patching.function(module, name, watching.host(f"{family}.{name}"))


def _clocks(time: ModuleType) -> None:
    _functions(time, "time", CLOCKS)


def _datetime(module: ModuleType) -> None:
    def shown(result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        return str(result.isoformat())

    for name in ("now", "utcnow", "today"):
        patching.method(module.datetime, name, watching.host(f"datetime.{name}", shown))
    patching.method(module.date, "today", watching.host("date.today", shown))


def _loops(module: ModuleType) -> None:
    """An event loop's clock, which asyncio reads itself."""
    patching.method(module.BaseEventLoop, "time", watching.host("asyncio.loop.time"))


_RANDOM = re.compile(r"\brandom(blob)?\s*\(", re.IGNORECASE)


def _sqlite(module: ModuleType) -> None:
    """SQL that draws: SQLite seeds its own generator from the system, and nothing else seeds it
    (https://sqlite.org/lang_corefunc.html#random)."""

    def around(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(this: Any, sql: Any, *args: Any) -> Any:
            active = watching.current()
            if active is not None and isinstance(sql, str) and _RANDOM.search(sql):
                frame = where.direct(sys._getframe())
                if frame is not None:
                    with active.quiet():
                        # What it draws is not to be seen: each time something else.
                        outs, value = [("0", os.urandom(8).hex())], "numbers of SQLite's own"
                        active.event("host", "sqlite.random", outs=outs, where=where.text(frame), value=value)
            return original(this, sql, *args)

        return call

    for cls in (module.Connection, module.Cursor):
        for name in ("execute", "executemany"):
            if name in cls.__dict__:
                patching.method(cls, name, around)


def _usage(module: ModuleType) -> None:
    around = watching.host("resource.getrusage", lambda result, args, kwargs: list(result))
    patching.function(module, "getrusage", around)


def _ages(genericpath: ModuleType) -> None:
    """When a file was written or read: os.path's functions, and os.stat where the program or Path.stat asks for it."""
    names = ("getmtime", "getctime", "getatime")
    _functions(genericpath, "os.path", names)
    for name in names:
        setattr(os.path, name, getattr(genericpath, name))
    watched = watching.host("os.stat", lambda result, args, kwargs: result.st_mtime_ns)

    def around(original: Callable[..., Any]) -> Callable[..., Any]:
        telling = watched(original)

        def call(*args: Any, **kwargs: Any) -> Any:
            # Path.exists and its like ask as well, and nobody reads a time of it.
            caller = sys._getframe(2)
            if os.path.basename(caller.f_code.co_filename) == "pathlib.py":  # noqa: PTH119
                outer = caller.f_back
                if outer is None or outer.f_code.co_filename == caller.f_code.co_filename:
                    return original(*args, **kwargs)
            elif where.kind_of(caller.f_code.co_filename) is not where.PROGRAM:
                return original(*args, **kwargs)
            return telling(*args, **kwargs)

        return call

    stat = os.stat
    patching.function(os, "stat", around)
    for known in (os.supports_fd, os.supports_dir_fd, os.supports_follow_symlinks):
        if stat in known:
            known.add(os.stat)


def _uuid(module: ModuleType) -> None:
    for name in ("uuid1", "uuid4"):
        patching.function(module, name, watching.host(f"uuid.{name}", lambda result, args, kwargs: str(result)))


def _os(module: ModuleType) -> None:
    _functions(module, "os", ("urandom", "getpid", "getppid", "cpu_count", "getloadavg", "times"))
    if hasattr(os, "sched_getaffinity"):
        around = watching.host("os.sched_getaffinity", lambda result, args, kwargs: sorted(result))
        patching.function(module, "sched_getaffinity", around)
    listdir, scandir = os.listdir, os.scandir
    patching.function(module, "listdir", watching.host("os.listdir"))
    patching.function(module, "scandir", _scandir)
    supported = {new for old, new in ((listdir, os.listdir), (scandir, os.scandir)) if old in os.supports_fd}
    os.supports_fd.update(supported)
    _environ(module)


def _scandir(original: Callable[..., Any]) -> Callable[..., Any]:
    """The names in their order are known when they have been gone through."""

    def call(*args: Any, **kwargs: Any) -> Any:
        entries = original(*args, **kwargs)
        frame = where.direct(sys._getframe()) if watching.current() is not None else None
        return entries if frame is None else _Entries(entries, where.text(frame))

    return call


class _Entries:
    """What os.scandir returned, writing its event when it ends."""

    def __init__(self, entries: Any, line: str) -> None:
        self._entries, self._line, self._names = entries, line, []  # type: ignore[var-annotated]

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            entry = next(self._entries)
        except StopIteration:
            self._tell()
            raise
        self._names.append(entry.name)
        return entry

    def __enter__(self) -> _Entries:
        self._entries.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End early: the names gone through so far are written down."""
        self._entries.close()
        self._tell()

    def _tell(self) -> None:
        names, self._names = self._names, []
        active = watching.current()
        if active is not None and names:
            watching.event(active, "host", "os.scandir", names, self._line)


def _environ(module: ModuleType) -> None:
    """Reads of single variables from the program's own files."""
    cls = type(module.environ)

    def shown(result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        return f"{args[1]}={result}"

    watched = watching.host("os.environ", shown)

    def around(original: Callable[..., Any]) -> Callable[..., Any]:
        telling = watched(original)

        def call(self: Any, key: str) -> Any:
            # The twins' own places differ, and nobody's bits may depend on them.
            ours = isinstance(key, str) and (key.startswith("FOXRUN_") or key in OWN_VARIABLES)
            return original(self, key) if ours else telling(self, key)

        return call

    patching.method(cls, "__getitem__", around)


def _own_builtins() -> None:
    """hash() and id() in the script that is run: as names of its own module, so that nobody else pays for them."""
    namespace = sys.modules["__main__"].__dict__

    def shown_hash(result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return result if isinstance(args[0], (str, bytes, tuple, frozenset)) else None

    namespace["hash"] = patching.Watched(hash, watching.host("hash", shown_hash)(builtins.hash), "builtins", "hash")
    namespace["id"] = patching.Watched(id, watching.host("id")(builtins.id), "builtins", "id")


def _audit(name: str, args: tuple[Any, ...]) -> None:
    """Files opened for reading, by whatever way Python opens them."""
    if name != "open":
        return
    active = watching.current()
    if active is None or not isinstance(args[0], (str, bytes, os.PathLike)):
        return
    try:
        if len(args) > 2 and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            return
        frame = where.innermost(sys._getframe())
        if frame is None or _of_a_compiler(sys._getframe()):
            return
        with active.quiet():
            _file(active, os.fsdecode(args[0]), where.text(frame))
    except Exception as error:
        active.trouble(error)


def _of_a_compiler(frame: FrameType | None) -> bool:
    """Whether a compiler reads its own cache; the program does not see what lies in it."""
    while frame is not None and where.kind_of(frame.f_code.co_filename) is not where.PROGRAM:
        if re.search(r"[/\\](triton|torch[/\\](_inductor|_dynamo))[/\\]", frame.f_code.co_filename):
            return True
        frame = frame.f_back
    return False


def _file(active: recorder.Recorder, path: str, line: str) -> None:
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return
    import stat
    from hashlib import blake2b

    if not stat.S_ISREG(status.st_mode):
        return
    if status.st_size > LARGEST:
        digest = host_values.digits(status.st_size)
    else:
        content = blake2b(digest_size=8)
        try:
            with open(path, "rb") as stream:  # noqa: PTH123
                while block := stream.read(1 << 20):
                    content.update(block)
        except OSError:
            return  # the program may not read it either, or no descriptor is left
        digest = content.hexdigest()
    name = os.path.basename(path)  # noqa: PTH119
    value = f"{name}, {status.st_size} bytes" + (f", {STILL_WRITTEN}" if open_files.is_written(status) else "")
    active.event("host", "open", outs=[("0", digest)], where=line, value=value)


def _futures(module: ModuleType) -> None:
    """The order in which as_completed hands futures out, as numbers in the order of their making."""
    future: Any = module.Future
    made, count = future.__init__, [0]

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        self._foxrun_number = count[0]
        count[0] += 1

    future.__init__ = __init__

    def around(original: Any) -> Any:
        def as_completed(fs: Any, timeout: Any = None) -> Iterator[Any]:
            line = where.caller()
            for one in original(fs, timeout):
                active = watching.current()
                if active is not None:
                    number = getattr(one, "_foxrun_number", -1)
                    watching.event(active, "host", "as_completed", number, line)
                yield one

        return as_completed

    module.as_completed = around(module.as_completed)  # type: ignore[attr-defined]


def _pools(module: ModuleType) -> None:
    """The order in which imap_unordered hands results out."""
    iterator: Any = module.IMapUnorderedIterator
    store, take = iterator._set, iterator.next

    def _set(self: Any, i: int, obj: Any) -> None:
        self.__dict__.setdefault("_foxrun_order", []).append(i)
        store(self, i, obj)

    def next_result(self: Any, timeout: Any = None) -> Any:
        try:
            return take(self, timeout)
        finally:
            active = watching.current()
            order = self.__dict__.get("_foxrun_order")
            if active is not None and order:
                watching.event(active, "host", "imap_unordered", order.pop(0), where.caller())

    iterator._set, iterator.next, iterator.__next__ = _set, next_result, next_result


def _loaders(module: ModuleType) -> None:
    """A DataLoader that hands batches over as its workers finish them."""

    def around(original: Any) -> Any:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            active = watching.current()
            if active is not None and kwargs.get("in_order") is False:
                watching.event(active, "host", "DataLoader.in_order", False, where.caller())
            original(self, *args, **kwargs)

        return __init__

    patching.method(module.DataLoader, "__init__", around)
