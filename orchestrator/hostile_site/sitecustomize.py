"""Loaded by Python itself in both twins of a gate, through PYTHONPATH: what no variable can set.

Directory listings come ascending in one twin and descending in the other, and the second twin's clock is ahead. Then
the sitecustomize that this one stands before runs, so an image keeps its own. Standard library only, Python 3.8 on.
"""

import importlib.machinery
import importlib.util
import os
import sys
import time

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  (pathlib would cost every start 5 ms)


def _order_listings(descending: bool) -> None:
    listdir, scandir = os.listdir, os.scandir

    def ordered_listdir(*args, **kwargs):  # type: ignore[no-untyped-def]
        return sorted(listdir(*args, **kwargs), reverse=descending)

    class OrderedScandir:
        """What os.scandir returns: an iterator, a context manager, closable."""

        def __init__(self, *args, **kwargs):  # type: ignore[no-untyped-def]
            with scandir(*args, **kwargs) as entries:
                self._entries = iter(sorted(entries, key=lambda entry: entry.name, reverse=descending))

        def __iter__(self):  # type: ignore[no-untyped-def]
            return self

        def __next__(self):  # type: ignore[no-untyped-def]
            return next(self._entries)

        def __enter__(self):  # type: ignore[no-untyped-def]
            return self

        def __exit__(self, *exc):  # type: ignore[no-untyped-def]
            self.close()

        def close(self) -> None:
            self._entries = iter(())

    # os.walk, glob and pathlib look these two up when they are called, so they follow.
    os.listdir, os.scandir = ordered_listdir, OrderedScandir  # type: ignore[assignment]
    if listdir in os.supports_fd:  # shutil.rmtree chooses by it between its safe and its unsafe way
        os.supports_fd.update({ordered_listdir, OrderedScandir})


def _shift_clock(seconds: int) -> None:
    now, now_ns = time.time, time.time_ns
    time.time = lambda: now() + seconds
    time.time_ns = lambda: now_ns() + seconds * 1_000_000_000


def _run_the_one_behind() -> None:
    folders = [os.path.abspath(folder or ".") for folder in sys.path]  # noqa: PTH100
    behind = sys.path[folders.index(_HERE) + 1 :] if _HERE in folders else sys.path
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", behind)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if os.environ.get("FOXRUN_LISTING_ORDER"):
    _order_listings(os.environ["FOXRUN_LISTING_ORDER"] == "descending")
if os.environ.get("FOXRUN_CLOCK_OFFSET_S"):
    _shift_clock(int(os.environ["FOXRUN_CLOCK_OFFSET_S"]))
_run_the_one_behind()
