"""Putting a watcher in a function's place so that the program does not notice: names, pickles and bindings stay.

A builtin function is no descriptor, so what replaces it must be none either: ``class A: clock = time.time``. Methods
of types that cannot be changed (datetime, numpy's and torch's generators) are changed in the type's own dict.
"""

from __future__ import annotations

import ctypes
import functools
import gc
from collections.abc import Callable
from typing import Any


class Watched:
    """A callable in the place of a builtin function or a module's function."""

    def __init__(self, original: Callable[..., Any], call: Callable[..., Any], module: str, name: str) -> None:
        self.__wrapped__ = original
        self._call = call
        self.__module__ = module
        self.__name__ = name
        self.__qualname__ = getattr(original, "__qualname__", name)
        self.__doc__ = original.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The watched call."""
        return self._call(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in ("__wrapped__", "_call"):
            raise AttributeError(name)
        return getattr(self.__wrapped__, name)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)

    def __reduce__(self) -> str:
        return self.__name__

    def __eq__(self, other: object) -> bool:
        return self is other or self.__wrapped__ == other

    def __hash__(self) -> int:
        return hash(self.__wrapped__)


def function(module: Any, name: str, around: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Replace ``module.name`` by ``around(original)``; nothing happens where there is none."""
    original = getattr(module, name, None)
    if original is None:
        return
    setattr(module, name, Watched(original, around(original), getattr(module, "__name__", ""), name))


def method(cls: type, name: str, around: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Replace a method, class method or static method, also of a type that takes no attributes."""
    original = cls.__dict__.get(name)
    if original is None:
        for base in cls.__mro__[1:]:
            if name in base.__dict__:
                original = base.__dict__[name]
                break
        else:
            return
    replacement: Any
    if isinstance(original, (classmethod, staticmethod)):
        replacement = type(original)(functools.wraps(original.__func__)(around(original.__func__)))
    elif type(original).__name__ == "classmethod_descriptor":
        unbound = original

        def bound(klass: type, *args: Any, **kwargs: Any) -> Any:
            return unbound.__get__(None, klass)(*args, **kwargs)

        replacement = classmethod(functools.wraps(unbound)(around(bound)))
    else:
        replacement = functools.wraps(original)(around(original))
    try:
        setattr(cls, name, replacement)
    except TypeError:
        namespace: Any = gc.get_referents(cls.__dict__)[0]
        namespace[name] = replacement
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(cls))
