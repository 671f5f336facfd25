"""What ``foxrun.trace`` and ``foxrun.step`` do in a traced process; elsewhere they return at once."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from foxrun.tracing import recorder


def trace(model: Any, optimizer: Any, named: dict[str, Any]) -> None:
    """Name a model (or a dict of them), its optimizer (or a list) and the state that crosses steps."""
    from foxrun.tracing import start

    site, active = start.site, recorder.active
    if site is None or active is None or active.ended:
        return
    try:
        with active.quiet():
            site.steps.named(model, optimizer, named)
    except Exception as error:
        active.trouble(error)


def step(n: int | None, flush: Callable[[], None] | None = None) -> None:
    """Step ``n`` is complete, or begins where the call stands first in its loop; ``flush`` writes what the program
    gathered, should it be ended here."""
    from foxrun.tracing import start

    active = recorder.active
    if start.site is None or active is None or active.ended:
        return
    try:
        active.before_stop = flush
        if _begins(active, sys._getframe(2)):
            start.site.steps.begin(n)
        else:
            start.site.steps.mark(n)
    except Exception as error:
        active.trouble(error)


_known: dict[tuple[CodeType, int], bool] = {}


def _begins(active: recorder.Recorder, frame: FrameType) -> bool:
    """Whether the line stands first in its loop, with more behind it: what a step is said to be there begins."""
    place = frame.f_code, frame.f_lineno
    if place not in _known:
        with active.quiet():
            _known[place] = _stands_first(frame.f_code.co_filename, frame.f_lineno)
    return _known[place]


def _stands_first(file: str, line: int) -> bool:
    try:
        tree = ast.parse(Path(file).read_text("utf-8"))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return False
    loops = (node for node in ast.walk(tree) if isinstance(node, (ast.For, ast.AsyncFor, ast.While)))
    around = [loop for loop in loops if _holds(loop.body[0].lineno, loop.body[-1], line)]
    if not around:
        return False
    innermost = max(around, key=lambda loop: loop.lineno)
    return len(innermost.body) > 1 and _holds(innermost.body[0].lineno, innermost.body[0], line)


def _holds(first: int, last: ast.stmt, line: int) -> bool:
    return first <= line <= (last.end_lineno or last.lineno)
