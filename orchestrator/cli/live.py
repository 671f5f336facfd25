"""What a person sees while a workflow or a gate runs: bars on a terminal, plain lines elsewhere. All on stderr."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

import click

from orchestrator.cli.options import is_terminal
from orchestrator.errors import FoxrunError, WorkflowNotFound

if TYPE_CHECKING:  # a submit that does not follow needs none of it
    from orchestrator.following import NodeView

MARKS = {"Succeeded": "✔", "Failed": "✖", "Error": "⚠", "Running": "●", "Pending": "◷", "Skipped": "○", "Omitted": "○"}
PLAIN_TENTHS = 10
TROUBLE_LENGTH = 240  # while it runs; the verdict and `foxrun get` have all of it


class Screen(Protocol):
    """Shows parts; a context manager, so that a terminal is left as it was found."""

    def __enter__(self) -> Screen: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, parts: list[NodeView]) -> None:
        """The parts as they are now."""


def screen() -> Screen:
    """Bars where they can be drawn, lines where not."""
    return _Bars() if is_terminal() else _Lines()


class Told(KeyboardInterrupt):
    """Ctrl-C, after a person was told what goes on without them."""


@contextlib.contextmanager
def coming_back(name: str, look: Callable[[str], object] | None = None) -> Iterator[None]:
    """Ctrl-C says, once, how to come back to a workflow, and that nothing was stopped.

    ``look``, for a workflow that is only being submitted: how to find it; raises WorkflowNotFound.
    """
    try:
        yield
    except Told:
        raise
    except KeyboardInterrupt:
        text = f"the workflow goes on: foxrun watch {name}   (to end it: foxrun stop {name})"
        try:
            if look is not None:
                look(name)
        except WorkflowNotFound:
            text = "nothing was submitted"
        except FoxrunError:
            text = f"interrupted while submitting; whether it runs says: foxrun get {name}"
        click.echo(f"\n{text}", err=True)
        raise Told from None


def show_workflow(shown: Screen, workflow: Mapping[str, Any]) -> None:
    """The parts of a workflow on a screen."""
    from orchestrator.following import views

    shown.show(views(workflow))


def waiting_parts() -> Callable[[Mapping[str, Any]], None]:
    """For following without progress: says once of each part why it does not start, which it may never do."""
    said: set[tuple[str, str]] = set()

    def show(workflow: Mapping[str, Any]) -> None:
        from orchestrator.following import views

        for part in views(workflow):
            why = trouble(part) if part.phase == "Pending" else ""
            if why and (part.id, why) not in said:
                said.add((part.id, why))
                click.echo(f"note: {part.name} waits: {why}", err=True)

    return show


def trouble(part: NodeView) -> str:
    """What a person should know of a part: why it failed, or for what it waits that may never come."""
    if part.phase in ("Failed", "Error") or (part.phase == "Pending" and ": " in part.message):
        text = " ".join(part.message.split())
        return text if len(text) <= TROUBLE_LENGTH else f"{text[: TROUBLE_LENGTH - 1]}…"
    return ""


class _Lines:
    """One line when a part changes its phase or has done another tenth."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[str, int, str]] = {}

    def __enter__(self) -> Screen:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def show(self, parts: list[NodeView]) -> None:
        """Print what is new."""
        for part in parts:
            tenth = PLAIN_TENTHS * part.done // part.of if part.of else 0
            now = (part.phase, tenth, trouble(part) if part.phase == "Pending" else "")
            if self._last.get(part.id) == now:
                continue
            self._last[part.id] = now
            count = f" {part.done}/{part.of}" if part.of else ""
            message = f": {text}" if (text := trouble(part)) else ""
            click.echo(f"{time.strftime('%H:%M:%S')} {part.name} {part.phase}{count}{message}", err=True)


class _Bars:
    """A bar a part; rich draws it ten times a second."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self._progress = Progress(
            SpinnerColumn(finished_text=" "),
            TextColumn("{task.fields[mark]} {task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[count]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[message]}", markup=False, style="red"),
            console=Console(stderr=True),
        )
        self._tasks: dict[str, Any] = {}

    def __enter__(self) -> Screen:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def show(self, parts: list[NodeView]) -> None:
        """Move the bars."""
        for part in parts:
            if part.id not in self._tasks:
                self._tasks[part.id] = self._progress.add_task(
                    f"{part.name:10}", total=None, mark="", count="", message="", start=part.phase != "Pending"
                )
            task = self._tasks[part.id]
            ended = part.phase not in ("Pending", "Running")
            if part.phase != "Pending":
                self._progress.start_task(task)
            total = part.of or (1 if ended else None)
            done = part.done if part.of else (1 if ended else 0)
            self._progress.update(
                task,
                total=total,
                completed=done,
                mark=MARKS.get(part.phase, "?"),
                count=f"{part.done}/{part.of}" if part.of else part.phase,
                message=trouble(part)[:100],
            )
            if ended:
                self._progress.stop_task(task)
