"""Loads our workflows with hera's models and without the rest of hera, which would cost a submit half a second more.

`import hera.workflows` also builds its own Workflow classes, services and an asynchronous client. Whoever imports it
after us gets it whole; `from hera.workflows import models` are the same models.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import sys
import types
from collections.abc import Sequence

PACKAGE = "hera.workflows"


def load(modules: Sequence[str]) -> None:
    """Import ``modules``, which take nothing but ``models`` from hera.workflows."""
    spec = importlib.util.find_spec("hera")
    if PACKAGE in sys.modules or spec is None or not spec.submodule_search_locations:
        return
    hollow = types.ModuleType(PACKAGE)
    hollow.__path__ = [f"{location}/workflows" for location in spec.submodule_search_locations]
    sys.modules[PACKAGE] = hollow
    collects = gc.isenabled()
    gc.disable()  # a thousand classes are made and none of them is garbage
    try:
        for module in modules:
            importlib.import_module(module)
    finally:
        if collects:
            gc.enable()
        del sys.modules[PACKAGE]
        vars(sys.modules["hera"]).pop("workflows", None)
