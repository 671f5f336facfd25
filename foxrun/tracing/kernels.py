"""Kernels that no dispatcher sees: own autograd.Functions, Triton launches, compiled or interpreted, native functions.

Each is an event of kind "kernel" with its tensors before and after. What a Function does inside leaves events of its
own, before the Function's: a kernel of an extension, which leaves none, is still seen between the two.
"""

from __future__ import annotations

import functools
import sys
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from foxrun.tracing import fences, imports, native, where
from foxrun.tracing.modules import tensors
from foxrun.tracing.operations import Operations
from foxrun.tracing.recorder import Said
from foxrun.tracing.shapes import describe, shape_of


def watch(operations: Operations) -> None:
    """Watch Functions now, and Triton and ctypes when the program imports them."""
    _functions(operations)
    native.watch(operations)

    def triton(module: ModuleType) -> None:
        _launches(operations, module.JITFunction)

    imports.when_imported("triton.runtime.jit", triton)
    imports.when_imported(
        "triton.runtime.interpreter", lambda module: _launches(operations, module.InterpretedFunction)
    )
    imports.when_imported("triton.runtime.autotuner", lambda module: _autotuner(operations, module.Autotuner))


class Call:
    """One kernel's event: begun with what it is given, ended with what is there then."""

    def __init__(self, operations: Operations, name: str, given: list[tuple[str, Tensor]], rest: str) -> None:
        self._operations, self._name, self._given, self._rest = operations, name, given, rest
        with operations.recorder.quiet():
            self._ins = [(label, operations.hash(t), operations.storages.source(t)) for label, t in given]

    def end(self, results: list[Tensor], *, written: bool, place: tuple[str, str, str], value: Said = "") -> None:
        """``written``: what it was given may have been written, and is hashed again."""
        operations = self._operations
        with operations.recorder.quiet():
            index = operations.recorder.reserve()
            outs = []
            for label, tensor in self._given if written else []:
                outs.append((label, operations.hash(tensor)))
                operations.storages.wrote(tensor, index)
            for number, tensor in enumerate(results):
                outs.append((f"out.{number}", operations.hash(tensor)))
                operations.storages.made(tensor, index)
            given = ",".join([*(shape_of(t) for _, t in self._given), *filter(None, [self._rest])])
            line, module, phase = place
            operations.recorder.event(
                "kernel",
                self._name,
                ins=self._ins,
                outs=outs,
                shapes=f"{given}->{','.join(map(shape_of, results))}",
                where=line,
                module=module,
                phase=phase,
                value=value,
                index=index,
            )


def _functions(operations: Operations) -> None:
    """torch.autograd.Function.apply, and the node that it leaves for the backward pass."""
    original = torch.autograd.Function.__dict__["apply"].__func__

    @functools.wraps(original)
    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = operations.recorder
        if torch.compiler.is_compiling() or not operations.recording or cls.__module__.startswith("torch."):
            return original(cls, *args, **kwargs)
        call = None
        try:
            given = [(str(i), t) for i, t in enumerate(tensors((args, kwargs)))]
            rest = ",".join(describe(one) for one in args if not isinstance(one, (Tensor, list, tuple, dict)))
            call = Call(operations, f"autograd.{cls.__name__}", given, rest)
            place = operations.place()
        except Exception as error:
            recorder.trouble(error)
        result = original(cls, *args, **kwargs)
        if call is not None:
            try:
                inputs = {id(t) for _, t in call._given}
                found = list(tensors(result))
                call.end([t for t in found if id(t) not in inputs], written=True, place=place)
                _watch_node(operations, cls.__name__, found, place)
            except Exception as error:
                recorder.trouble(error)
        return result

    torch.autograd.Function.apply = classmethod(apply)  # type: ignore[assignment]


def _watch_node(operations: Operations, name: str, results: list[Tensor], place: tuple[str, str, str]) -> None:
    """The node's own hooks tell what comes in and goes out of its backward."""
    node: Any = next((t.grad_fn for t in results if t.grad_fn is not None), None)
    if node is None:
        return
    line, module, _ = place
    calls: list[Call] = []

    def before(gradients: Any) -> None:
        try:
            if operations.recording:
                given = [(str(i), t) for i, t in enumerate(tensors(gradients))]
                calls.append(Call(operations, f"autograd.{name}.backward", given, ""))
        except Exception as error:
            operations.recorder.trouble(error)

    def after(out: Any, gradients: Any) -> None:
        try:
            if calls:
                calls.pop().end(list(tensors(out)), written=False, place=(line, module, "backward"))
        except Exception as error:
            operations.recorder.trouble(error)

    node.register_prehook(before)
    node.register_hook(after)


def _launches(operations: Operations, cls: Any) -> None:
    """``kernel[grid](...)`` of a Triton function; those that an autotuner tries out leave no event."""
    run = cls.run

    @functools.wraps(run)
    def launch(self: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("warmup") or not operations.recording or getattr(operations.recorder.local, "trying", 0):
            return run(self, *args, **kwargs)
        call = None
        behind: list[fences.Fence] = []
        try:
            names = list(getattr(self, "arg_names", ()))
            labelled = [
                *zip(names, args, strict=False),
                *((k, v) for k, v in kwargs.items() if k not in ("grid", "warmup")),
            ]
            given = [(label, value) for label, value in labelled if isinstance(value, Tensor)]
            rest = ",".join(f"{label}={describe(value)}" for label, value in labelled if not isinstance(value, Tensor))
            name = getattr(self, "__name__", None) or getattr(getattr(self, "fn", None), "__name__", "kernel")
            call = Call(operations, f"triton.{name}", given, rest)
            place = operations.place()
            with operations.recorder.quiet():
                behind = fences.put(given)
        except Exception as error:
            operations.recorder.trouble(error)
        # An interpreted kernel works on copies: its own torch operations are no part of the program.
        operations.recorder.local.depth += 1
        try:
            result = run(self, *args, **kwargs)
        finally:
            operations.recorder.local.depth -= 1
        if call is not None:
            try:
                with operations.recorder.quiet():
                    value = fences.look(behind)
                call.end([], written=True, place=place, value=value)
            except Exception as error:
                operations.recorder.trouble(error)
        return result

    cls.run = launch


def _autotuner(operations: Operations, cls: Any) -> None:
    """Which configuration was chosen: part of the launch's value, and an event of its own when it is chosen anew."""
    run, bench = cls.run, cls._bench

    @functools.wraps(bench)
    def trying(self: Any, *args: Any, **kwargs: Any) -> Any:
        local = operations.recorder.local
        local.trying = getattr(local, "trying", 0) + 1
        try:
            return bench(self, *args, **kwargs)
        finally:
            local.trying -= 1

    @functools.wraps(run)
    def chosen(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = set(map(str, getattr(self, "cache", {})))
        # Its place is before the launch that it decides.
        index = operations.recorder.reserve() if operations.recording else None
        result = run(self, *args, **kwargs)
        try:
            best = getattr(self, "best_config", None)
            if best is not None and index is not None:
                name = getattr(getattr(self, "base_fn", None), "__name__", "kernel")
                new = set(map(str, getattr(self, "cache", {}))) - before
                value = str(best)[:80]
                kind = "chosen now" if new else "chosen before"
                line = where.text(where.innermost(sys._getframe()))
                from foxrun.tracing import host_values

                operations.recorder.event(
                    "kernel", f"triton.autotune.{name}", outs=[("config", host_values.digits(str(best)))],
                    shapes=kind, where=line, value=value, index=index,
                )  # fmt: skip
        except Exception as error:
            operations.recorder.trouble(error)
        return result

    cls.run, cls._bench = chosen, trying
