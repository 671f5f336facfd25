"""Loads our workflows with the hera models that they use, and nothing else of hera: 0.1 s of a submit, not 0.8 s.

`import hera.workflows` builds its own Workflow classes, services, an asynchronous client, and some 300 pydantic models
of which we use 50. Those 50 are hera's own classes, unchanged. Whoever imports hera after us gets it whole.
"""

from __future__ import annotations

import builtins
import gc
import importlib
import importlib.util
import os
import pkgutil
import re
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from typing import Any

PACKAGE = "hera.workflows"
MODELS = "hera.workflows.models"
_USED = re.compile(r"\bm\.([A-Z]\w+)")
_NO_PLUGINS = "PYDANTIC_DISABLE_PLUGINS"  # else pydantic reads the metadata of every installed package


def load() -> None:
    """Import every module of `workflows`; they take nothing but ``models`` from hera, and call it ``m``."""
    spec = importlib.util.find_spec("hera")
    if PACKAGE in sys.modules or spec is None or not spec.submodule_search_locations:
        return
    import workflows

    # All at once: one that is imported later would get the whole hera, whose models ours do not mix with.
    modules = [f"workflows.{module.name}" for module in pkgutil.iter_modules(workflows.__path__)]
    hollow = types.ModuleType(PACKAGE)
    hollow.__path__ = [f"{location}/workflows" for location in spec.submodule_search_locations]
    with _quick(), _only(used_models(Path(place) for place in workflows.__path__)):
        sys.modules[PACKAGE] = hollow
        try:
            for module in modules:
                importlib.import_module(module)
        finally:
            for name in [name for name in sys.modules if name == PACKAGE or f"{name}.".startswith(f"{MODELS}.")]:
                del sys.modules[name]
            vars(sys.modules["hera"]).pop("workflows", None)


def used_models(packages: Iterator[Path]) -> frozenset[str]:
    """The names after ``m.`` in the sources: every model that they make, since nothing else can make one."""
    sources = (file.read_text("utf-8") for package in packages for file in sorted(package.glob("*.py")))
    return frozenset(name for source in sources for name in _USED.findall(source))


class Unused:
    """Stands for a model that we do not make: a field of that type takes None alone."""

    @classmethod
    def model_rebuild(cls) -> None:
        """Nothing to do; hera asks it of models that refer to themselves."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> Any:
        from pydantic_core import core_schema

        return core_schema.is_instance_schema(cls)


@contextmanager
def _quick() -> Iterator[None]:
    """No garbage collection while hundreds of classes are made of which none is garbage, no plugins, no pydantic 1.

    hera asks of each object whether it is one of pydantic 1's; ours are not, and its import takes 40 ms.
    """
    collects, plugins = gc.isenabled(), os.environ.get(_NO_PLUGINS)
    gc.disable()
    os.environ[_NO_PLUGINS] = "true"
    hollow = "pydantic.v1" not in sys.modules
    if hollow:
        sys.modules["pydantic.v1"] = stand_in = types.ModuleType("pydantic.v1")
        vars(stand_in)["BaseModel"] = type("BaseModel", (), {})
    try:
        yield
    finally:
        if hollow:
            del sys.modules["pydantic.v1"]
        if collects:
            gc.enable()
        if plugins is None:
            del os.environ[_NO_PLUGINS]
        else:
            os.environ[_NO_PLUGINS] = plugins


@contextmanager
def _only(used: frozenset[str]) -> Iterator[None]:
    """While this holds, the class statements of hera's models make the classes in ``used`` and no other."""

    def build(body: Callable[[], object], name: str, *bases: Any, **keywords: Any) -> Any:
        if name not in used:
            return Unused
        return builtins.__build_class__(body, name, *bases, **keywords)

    class Loader(SourceFileLoader):
        def exec_module(self, module: types.ModuleType) -> None:
            vars(module)["__builtins__"] = {**vars(builtins), "__build_class__": build}
            super().exec_module(module)

    class Finder:
        @staticmethod
        def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
            found = PathFinder.find_spec(name, path) if f"{name}.".startswith(f"{MODELS}.") else None
            if found is not None and isinstance(found.loader, SourceFileLoader):
                found.loader = Loader(found.loader.name, found.loader.path)
            return found

    sys.meta_path.insert(0, Finder)
    try:
        yield
    finally:
        sys.meta_path.remove(Finder)
