"""Memory of numpy's that the program hands to torch, and hands over again: whose contents may change in between.

An address alone says nothing, since freed memory is used again; so the array that owns it is remembered, weakly.
"""

from __future__ import annotations

import weakref
from types import ModuleType
from typing import Any

from foxrun.tracing import patching, recorder
from foxrun.tracing.words import HANDED_AGAIN

SHARES = ("from_numpy", "as_tensor", "frombuffer", "asarray", "from_dlpack")

_owners: dict[int, weakref.ref[Any]] = {}
_at: dict[int, weakref.ref[Any]] = {}  # arrays by the address of their memory
KEPT = 1024


def watch(torch: ModuleType) -> None:
    """Note for each hand-over whether the same memory, never freed since, was handed over before."""
    for name in SHARES:
        patching.function(torch, name, _around)


def _around(original: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        active = recorder.active
        if active is None or active.busy or active.ended or not args:
            return original(*args, **kwargs)
        try:
            active.local.handed = HANDED_AGAIN if _again(args[0]) else ""
        except Exception as error:
            active.trouble(error)
        try:
            return original(*args, **kwargs)
        finally:
            active.local.handed = ""

    return call


def _again(value: Any) -> bool:
    """Whether the owner of this value's memory has been here before and lived since."""
    owner = value
    while getattr(owner, "base", None) is not None:
        owner = owner.base
    if isinstance(owner, memoryview):
        owner = owner.obj
    _remember(owner)
    known = _owners.get(id(owner))
    if known is not None and known() is owner:
        return True
    try:
        _owners[id(owner)] = weakref.ref(owner, _forget(id(owner)))
    except TypeError:
        return False  # bytes and the like take no weak reference, and cannot be written either
    return False


def _remember(owner: Any) -> None:
    interface = getattr(owner, "__array_interface__", None)
    if interface is None:
        return
    if len(_at) >= KEPT:
        for address in [address for address, reference in _at.copy().items() if reference() is None]:
            _at.pop(address, None)
    if len(_at) < KEPT:
        _at[int(interface["data"][0])] = weakref.ref(owner)


def owner_at(address: int) -> Any:
    """The array handed over whose memory begins at an address, where it is still alive; else None."""
    reference = _at.get(address)
    return reference() if reference is not None else None


def _forget(key: int) -> Any:
    return lambda reference: _owners.pop(key, None)
