"""The run contract, version 1: what a trainer writes so that its runs can be gated, paired, compared and reported on.

Standard library only; ``zstandard`` is imported when a .zst is met, ``torch`` when a tensor is handed over. The other
names load on first use, so that ``import foxrun`` costs a few milliseconds. docs/run-contract.md is the definition.
"""

from __future__ import annotations

from importlib import import_module
from sys import modules as _modules

# At once and not on first use: the function has its module's name, and importing the module later would hide it.
from foxrun.fingerprint import fingerprint

TYPE_CHECKING = False  # typing itself costs some milliseconds
if TYPE_CHECKING:
    from collections.abc import Callable

    from foxrun.problems import ContractError, Problem
    from foxrun.reader import DirectorySource, Row, Run, Source, open_run
    from foxrun.schema import CONTRACT_VERSION, Leaf
    from foxrun.writer import RunWriter

__all__ = [
    "CONTRACT_VERSION",
    "ContractError",
    "DirectorySource",
    "Leaf",
    "Problem",
    "Row",
    "Run",
    "RunWriter",
    "Source",
    "fingerprint",
    "open_run",
    "step",
    "trace",
]

_HOME = {
    "CONTRACT_VERSION": "foxrun.schema",
    "ContractError": "foxrun.problems",
    "DirectorySource": "foxrun.reader",
    "Leaf": "foxrun.schema",
    "Problem": "foxrun.problems",
    "Row": "foxrun.reader",
    "Run": "foxrun.reader",
    "RunWriter": "foxrun.writer",
    "Source": "foxrun.reader",
    "open_run": "foxrun.reader",
}


def trace(model: object, optimizer: object = None, **named_state: object) -> None:
    """In a traced process (`foxrun localize`), name what to look at; elsewhere this does nothing.

    Args:
        model: a module, or a dict of them by name; of one alone the names have no prefix.
        optimizer: a torch optimizer, or a list of them, whose moments shall be seen from the first step on.
        named_state: state that crosses steps, by name: tensors, generators, or callables that return the current one.
    """
    if "foxrun.tracing.recorder" in _modules:
        from foxrun.tracing import marks

        marks.trace(model, optimizer, named_state)


def step(n: int | None = None, flush: Callable[[], None] | None = None) -> None:
    """In a traced process, step ``n`` is complete (the next one, when left out); elsewhere this does nothing.

    Where the call stands first in its loop, step ``n`` begins: both ways of counting give a step one number.

    For programs without a torch optimizer, or whose steps are not its steps. After the first call these marks alone
    end steps. ``flush`` is called when the program is ended here, so that rows which it gathers are written.
    """
    if "foxrun.tracing.recorder" in _modules:
        from foxrun.tracing import marks

        marks.step(n, flush)


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'foxrun' has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value
