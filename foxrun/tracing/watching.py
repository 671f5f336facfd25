"""What all watchers of host functions share: one event for the outermost call from the program's own files."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from foxrun.tracing import generators, host_values, recorder, where


def current() -> recorder.Recorder | None:
    """The recorder, when events are recorded in this thread now."""
    active = recorder.active
    if active is None or active.busy or active.ended or not active.plan.operations:
        return None
    last = active.plan.last_step
    return None if last is not None and active.step > last else active


def host(name: str, show: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any] | None = None) -> Any:
    """Around a function that brings something in from outside; ``show(result, args, kwargs)``: what is written down."""

    def around(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            active = current()
            if active is not None:
                try:
                    frame = where.direct(sys._getframe())
                    if frame is not None:
                        with active.quiet():
                            shown = result if show is None else show(result, args, kwargs)
                            event(active, "host", name, shown, where.text(frame))
                except Exception as error:
                    active.trouble(error)
            return result

        return call

    return around


def event(active: recorder.Recorder, kind: str, name: str, shown: Any, line: str) -> int:
    """Write a host value down."""
    value = host_values.text(shown)
    return active.event(kind, name, outs=[("0", host_values.digits(shown))], where=line, value=value)


def draw(name: str, generator_of: Callable[[tuple[Any, ...]], tuple[str, Any]]) -> Any:
    """Around a function that draws; ``generator_of(args)`` gives the generator's name and the generator."""
    return _generator_call("draw", name, generator_of)


def seed(name: str, generator_of: Callable[[tuple[Any, ...]], tuple[str, Any]]) -> Any:
    """Around a function that seeds: its value is what it was called with."""
    return _generator_call("seed", name, generator_of)


def _generator_call(kind: str, name: str, generator_of: Callable[[tuple[Any, ...]], tuple[str, Any]]) -> Any:
    def around(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            active = current()
            if active is None or (kind == "draw" and not active.plan.in_window(active.step)):
                _note_use(args, generator_of)
                return original(*args, **kwargs)
            before = None
            try:
                frame = where.direct(sys._getframe(), torch_too=True)
                if frame is not None:
                    with active.quiet():
                        before = generator_of(args)
                        label, generator = before
                        generators.used(label)
                        ins = [(label, generators.state_digits(generator), generators.last_event(label))]
            except Exception as error:
                active.trouble(error)
            if before is None:
                return original(*args, **kwargs)
            active.local.depth += 1  # what it draws on the way is its own
            try:
                result = original(*args, **kwargs)
            finally:
                active.local.depth -= 1
            try:
                with active.quiet():
                    _write(active, kind, name, before, ins, result, args, kwargs, where.text(frame))
            except Exception as error:
                active.trouble(error)
            return result

        return call

    return around


def _note_use(args: tuple[Any, ...], generator_of: Callable[[tuple[Any, ...]], tuple[str, Any]]) -> None:
    """Where no event is written, the generator's state still becomes part of the steps."""
    active = recorder.active
    if active is None or active.busy or active.ended:
        return
    try:
        label = generator_of(args)[0]
        if not generators.in_use(label) and where.direct(sys._getframe(), torch_too=True) is not None:
            generators.used(label)
    except Exception as error:
        active.trouble(error)


_RESTORES = ("setstate", "set_state", "set_rng_state")


def _write(
    active: recorder.Recorder,
    kind: str,
    name: str,
    who: tuple[str, Any],
    ins: list[tuple[str, str, int]],
    result: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    line: str,
) -> None:
    label, generator = who
    if name.endswith(_RESTORES) and ins[0][1] == generators.state_digits(generator):
        return  # torch.compile puts Python's generator back around each frame that it looks at
    outs: list[tuple[str, int | str]] = [(label, generators.state_digits(generator))]
    given = [one for one in args if one is not generator]
    if kind == "draw":
        outs.insert(0, ("0", host_values.digits(result)))
        shown = result
    else:
        shown = kwargs or (given[0] if len(given) == 1 else tuple(given))
    index = active.event(
        kind, name, ins=ins if kind == "draw" else (), outs=outs, where=line, value=host_values.text(shown)
    )
    generators.torch_drawn(label, index)
