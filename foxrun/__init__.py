"""The run contract, version 1: what a trainer writes so that its runs can be gated, paired, compared and reported on.

Standard library only; ``zstandard`` is imported when a .zst is met, ``torch`` when a tensor is handed over. The other
names load on first use, so that ``import foxrun`` costs a few milliseconds. docs/run-contract.md is the definition.
"""

from __future__ import annotations

from importlib import import_module

# At once and not on first use: the function has its module's name, and importing the module later would hide it.
from foxrun.fingerprint import fingerprint

TYPE_CHECKING = False  # typing itself costs some milliseconds
if TYPE_CHECKING:
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


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'foxrun' has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value
