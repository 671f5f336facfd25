"""Child processes: a folder for each, numbered by the parent in the order in which it starts them."""

from __future__ import annotations

import os
from types import ModuleType
from typing import Any

from foxrun.tracing import generators, imports, patching, recorder

VARIABLE = "FOXRUN_TRACE_PROCESS"
_children = 0
_own = "0"


def own_name() -> str:
    """This process's name; what it starts by itself gets the next one through the environment."""
    global _own
    given = os.environ._data.get(os.environ.encodekey(VARIABLE))  # type: ignore[attr-defined]
    _own = os.fsdecode(given) if given is not None else "0"
    return _own


def next_child() -> str:
    """The name of the child that is started now."""
    global _children
    _children += 1
    return f"{_own}.{_children}"


def is_child() -> bool:
    """Whether another traced process started this one."""
    return _own != "0"


def number() -> int:
    """Which of its parent's children this one is, from 1."""
    last = _own.rpartition(".")[2].partition("-")[0]
    return int(last) if last.isdigit() else 0


def children() -> int:
    """How many processes this one has started."""
    return _children


def _put(name: str | None) -> None:
    """Set or remove the variable; by no way that is watched."""
    if name is None:
        os.environ._data.pop(os.environ.encodekey(VARIABLE), None)  # type: ignore[attr-defined]
        os.unsetenv(VARIABLE)
    else:
        os.environ[VARIABLE] = name


def watch() -> None:
    """Name children that are forked, spawned, or run as another program."""
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
    imports.when_imported("subprocess", _subprocess)
    imports.when_imported("multiprocessing.util", _spawn)


def _before_fork() -> None:
    _put(next_child())
    if recorder.active is not None:
        recorder.active.lock.acquire()
        try:
            recorder.active.flush()
        except Exception as error:
            recorder.active.trouble(error)


def _after_fork_in_parent() -> None:
    _put(None if _own == "0" else _own)
    if recorder.active is not None:
        recorder.active.lock.release()


def _after_fork_in_child() -> None:
    """The child shares no file with its parent: a folder, an index and steps of its own."""
    global _children
    old = recorder.active
    if old is None:
        return
    try:
        name = own_name()
        _children = 0
        old.folder.close()
        from foxrun.tracing import start

        generators.forked()
        new = start.begin(old.plan, name)
        new.step, new.hasher, new.module = old.step, None, old.module
        start.forked(old, new)
    except Exception as error:
        recorder.active = None
        old.trouble(error)


def _subprocess(module: ModuleType) -> None:
    init = module.Popen.__init__

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        name = next_child()
        env = kwargs.get("env")
        if env is not None and "FOXRUN_TRACE" in env:
            kwargs["env"] = {**env, VARIABLE: name}
            init(self, *args, **kwargs)
            return
        with _named(name):
            init(self, *args, **kwargs)

    module.Popen.__init__ = __init__


def _spawn(module: ModuleType) -> None:
    def around(original: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            with _named(next_child()):
                return original(*args, **kwargs)

        return call

    patching.function(module, "spawnv_passfds", around)


class _named:
    """The environment that a child inherits."""

    def __init__(self, name: str) -> None:
        self._name, self._before = name, os.environ.get(VARIABLE)

    def __enter__(self) -> None:
        _put(self._name)

    def __exit__(self, *exc: object) -> None:
        _put(self._before)
