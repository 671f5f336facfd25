"""Loaded by Python itself through PYTHONPATH: starts the tracer where FOXRUN_TRACE names a plan.

Before that the sitecustomize behind this one runs, so that an image keeps its own and a hostile twin its hostilities.
"""

import importlib.machinery
import importlib.util
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  (pathlib would cost every start 5 ms)
_PACKAGE = os.path.dirname(os.path.dirname(_HERE))  # noqa: PTH120


def _run_the_one_behind() -> None:
    folders = [os.path.abspath(folder or ".") for folder in sys.path]  # noqa: PTH100
    behind = sys.path[folders.index(_HERE) + 1 :] if _HERE in folders else sys.path
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", behind)
    if spec is not None and spec.loader is not None and spec.origin != __file__:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def _load_foxrun() -> None:
    """The package that this file belongs to, also where it is not installed; sys.path stays as it is."""
    if "foxrun" in sys.modules:
        return
    init = os.path.join(_PACKAGE, "__init__.py")  # noqa: PTH118
    spec = importlib.util.spec_from_file_location("foxrun", init, submodule_search_locations=[_PACKAGE])
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["foxrun"] = module
    spec.loader.exec_module(module)


_run_the_one_behind()
if os.environ.get("FOXRUN_TRACE"):
    try:
        _load_foxrun()
        from foxrun.tracing.start import start

        start(os.environ["FOXRUN_TRACE"])
    except Exception as error:
        # A program is never ended by the one that watches it.
        print(f"foxrun: tracing did not start: {type(error).__name__}: {error}", file=sys.stderr)  # noqa: T201
