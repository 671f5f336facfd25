"""Steps of the program: where one ends, and the row of leaves that each one leaves behind.

States are taken as the step reads them: generators when the step before ends, weights and moments at the first
forward, backward or optimizer's step. A step ends with an optimizer's, or where foxrun.step says.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from foxrun.tracing import generators
from foxrun.tracing.hashing import Hasher
from foxrun.tracing.modules import Hooks, Names, joined, tensors
from foxrun.tracing.recorder import Recorder
from foxrun.tracing.rows import Row

CALLS = 32  # of one module in one step that leave a leaf of their own


class Steps:
    """The rows of this process."""

    def __init__(self, recorder: Recorder, names: Names, hooks: Hooks) -> None:
        self.recorder, self.names = recorder, names
        self._hasher = Hasher()
        self.optimizers: list[Any] = []  # weak references
        self.carried: dict[str, Callable[[], Any]] = {}
        self._explicit = False
        self._begins = False  # the program's marks stand where a step begins
        self._pending: tuple[Row, int] | None = None  # a step that ended, unless another optimizer steps at once
        self._calls: dict[tuple[int, str], int] = {}
        self._stepped: set[int] = set()  # optimizers, in the step that goes on or has just ended
        self._training = {threading.main_thread().ident}  # threads that end steps, and the main one
        self._idle = False  # a child that has not computed anything leaves no row
        self.on_change: Callable[[], None] = lambda: None
        self._states_taken = False
        self._row = self._begin()
        self._states_taken = False  # the first step reads them once the program has seeded: at its first forward
        hooks.entered.append(self._entered)
        hooks.left.append(self._left)
        recorder.at_end.append(self._finish)

    # What a step is made of -------------------------------------------------------------------------------------

    def _begin(self) -> Row:
        row = Row(self.recorder, self._hasher)
        self._calls = {}
        self._states(row)
        return row

    def _states(self, row: Row) -> None:
        self._states_taken = True
        for name, digits in generators.states():
            row.state(name, digits)

    def _entered(self, path: str, outermost: bool, module: nn.Module, args: Any) -> None:
        if not outermost or getattr(module, "_foxrun_inner", False):
            return
        thread = self._beside()
        # Reading a row waits for the device, which would end a race between its streams: the backward pass is early
        # enough for it.
        if (thread is None or self._first) and not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            self.settle()
        with self.recorder.quiet():
            if thread is None or self._first:
                self.take_weights()
            for tensor in tensors(args):
                self._row.take(self._numbered("input", thread), path, "input", tensor, thread)

    def _left(self, path: str, outermost: bool, module: nn.Module, output: Any) -> None:
        thread = self._beside()
        base = f"activation.{path or 'output'}"
        count = self._count(base, thread)
        if count > CALLS and thread is None:
            return
        with self.recorder.quiet():
            found = list(tensors(output))
            base += f"@{count}" if count > 1 else ""
            for number, tensor in enumerate(found):
                self._row.take(base if len(found) == 1 else f"{base}.{number}", path, "activation", tensor, thread)

    def _numbered(self, base: str, thread: int | None) -> str:
        return f"{base}.{self._count(base, thread) - 1}"

    def _count(self, base: str, thread: int | None) -> int:
        """Which call of its thread's this is in the step; of threads that do not train, all are one."""
        if thread is not None and not self._first:
            return 1
        count = self._calls[thread or 0, base] = self._calls.get((thread or 0, base), 0) + 1
        return count

    @property
    def _first(self) -> bool:
        """Before the first step has ended it is not known which thread trains."""
        return not self.optimizers and self.recorder.step == 0

    def _beside(self) -> int | None:
        """The ident of this thread, where it is not known to train."""
        ident = threading.get_ident()
        return None if ident in self._training else ident

    def _trains(self) -> None:
        """This thread ends steps: what it has computed so far is the training's."""
        if self._beside() is not None:
            self._training.add(threading.get_ident())
            self._row.adopt([threading.get_ident()])

    def take_weights(self) -> None:
        """Carried state, weights, buffers and moments, once a step: those of models and optimizers met so far."""
        row = self._row
        self._idle = False
        if not self._states_taken:
            self._states(row)
        self._take_carried()
        for prefix, model in self.names.models():
            for name, tensor in model.named_parameters():
                self._weight(row, "weight", prefix, name, tensor)
            for name, buffer in model.named_buffers():
                self._weight(row, "buffer", prefix, name, buffer)
        known = self.names.parameters()
        for number, optimizer in enumerate(self._living()):
            for name, parameter in _named(optimizer, known, number):
                if f"weight.{name}" not in row:
                    row.take(f"weight.{name}", name.rpartition(".")[0] or name, "weight", parameter)
                for key, value in list(optimizer.state.get(parameter, {}).items()):
                    leaf = f"moment.{name}.{key}"
                    if isinstance(value, Tensor) and leaf not in row:
                        row.take(leaf, name.rpartition(".")[0] or name, "moment", value)

    def _take_carried(self) -> None:
        """State that crosses steps, once a step: when it is named, at a mark, else at the first forward."""
        for name, read in self.carried.items():
            for number, tensor in enumerate(tensors(read())):
                leaf = name if number == 0 else f"{name}.{number}"
                if leaf not in self._row:
                    self._row.take(leaf, name, "state", tensor)

    @staticmethod
    def _weight(row: Row, kind: str, prefix: str, name: str, tensor: Tensor) -> None:
        full = joined(prefix, name)
        if f"{kind}.{full}" not in row:
            row.take(
                f"{kind}.{full}", full.rpartition(".")[0] or full, "weight" if kind == "weight" else "state", tensor
            )

    def _living(self) -> list[Any]:
        return [optimizer for optimizer in (one() for one in self.optimizers) if optimizer is not None]

    def forked(self, recorder: Recorder) -> None:
        """In a forked child: its own rows, and none before it computes something."""
        self.recorder, self._hasher, self._pending = recorder, Hasher(), None
        self._training = {threading.main_thread().ident}
        self._idle = True
        self._row = self._begin()
        recorder.at_end.append(self._finish)

    # Marks of the program ---------------------------------------------------------------------------------------

    def before_backward(self, roots: Any) -> None:
        """A backward pass begins at these tensors."""
        thread = self._beside()
        if thread is None or self._first:
            self.settle()
        with self.recorder.quiet():
            if thread is None or self._first:
                self.take_weights()
            for tensor in tensors(roots):
                count = self._count("loss", thread)
                self._row.take("loss" if count == 1 else f"loss@{count}", "loss", "outcome", tensor, thread)

    def before_optimizer(self, optimizer: Any) -> None:
        """An optimizer's step begins: what it reads."""
        self._trains()
        if all(one() is not optimizer for one in self.optimizers):
            self.optimizers.append(weakref.ref(optimizer))
        if id(optimizer) in self._stepped:  # again, so a new step, though threads made the gradients
            self.settle()
        if self._pending is not None:  # no backward since the last one: the same step goes on
            self._row, self.recorder.step = self._pending
            self._pending = None
            self.on_change()
        self._stepped.add(id(optimizer))
        with self.recorder.quiet():
            self.take_weights()
            for name, parameter in reversed(_named(optimizer, self.names.parameters(), self._number(optimizer))):
                if parameter.grad is not None:
                    self._row.take(f"gradient.{name}", name.rpartition(".")[0] or name, "gradient", parameter.grad)

    def _number(self, optimizer: Any) -> int:
        return next(number for number, one in enumerate(self._living()) if one is optimizer)

    def after_optimizer(self) -> None:
        """An optimizer's step has ended, and with it, it seems, the program's."""
        if not self._explicit:
            self._close()

    def named(self, model: Any, optimizer: Any, state: dict[str, Any]) -> None:
        """What foxrun.trace was told. Tensors are not kept alive: one made anew each step is given as a callable."""
        for prefix, one in model.items() if isinstance(model, dict) else [(None, model)]:
            if isinstance(one, nn.Module) and self.names.of(one) is None:
                self.names.add(one, prefix)
        for one in optimizer if isinstance(optimizer, (list, tuple)) else [optimizer]:
            if one is not None and all(known() is not one for known in self.optimizers):
                self.optimizers.append(weakref.ref(one))
        for name, value in state.items():
            if isinstance(value, torch.Generator):
                generators.call_it(f"generator.{name}", value)
            elif isinstance(value, (Tensor, nn.Module)):
                self.carried[name] = weakref.ref(value)
            else:
                self.carried[name] = value if callable(value) else _constant(value)
        self._take_carried()

    def begin(self, n: int | None) -> None:
        """foxrun.step, first in a loop: step ``n`` begins, and the one before it is complete."""
        self._trains()
        with self.recorder.quiet():
            if self._explicit and self._pending is None:
                self.take_weights()
                self._close()
            self.settle()
            if not self._explicit:
                self._row = self._begin()  # what was computed before the first step is none of it
            self._explicit = self._begins = True
            if n is not None:
                self.recorder.step = n
            self.take_weights()
        self.on_change()

    def mark(self, n: int | None) -> None:
        """foxrun.step: step ``n`` is complete; from now on these marks alone end steps."""
        self._trains()
        if self._pending is None:
            with self.recorder.quiet():
                self.take_weights()
            self._close()
        self._explicit = True
        row, _ = self._pending  # type: ignore[misc]
        if n is not None:
            self._pending = (row, n)
            self.recorder.step = n + 1
        self.settle()
        with self.recorder.quiet():
            self.take_weights()  # at a mark, all is as the next step reads it
        self.on_change()

    def _close(self) -> None:
        with self.recorder.quiet():
            self._pending = (self._row, self.recorder.step)
            self.recorder.step += 1
            self._row = self._begin()
        self.on_change()

    def settle(self) -> None:
        """The step that ended is over for good: write its row, and stop where the plan says so."""
        if self._pending is None:
            return
        (row, step), self._pending = self._pending, None
        self._stepped.clear()
        with self.recorder.quiet():
            self.recorder.folder.write("steps.jsonl", [row.line(step)])
            self.recorder.flush()
        stop = self.recorder.plan.stop_after
        if stop is not None and step >= stop and not self.recorder.ended:
            stop_now(self.recorder)

    def _finish(self) -> None:
        if self._begins and self._pending is None:
            self._close()  # the last step, which no further mark ends
        if self._pending is not None:
            (row, step), self._pending = self._pending, None
            self.recorder.folder.write("steps.jsonl", [row.line(step)])
        if not self._idle:
            self.take_weights()
            self.recorder.folder.write("steps.jsonl", [self._row.line(self.recorder.step, end=True)])


def _constant(value: Any) -> Callable[[], Any]:
    return lambda: value


def _named(optimizer: Any, known: dict[int, str], number: int) -> list[tuple[str, Tensor]]:
    """Parameters of an optimizer with their names, in its order."""
    found = []
    for g, group in enumerate(optimizer.param_groups):
        for p, parameter in enumerate(group["params"]):
            unnamed = f"parameter.{g}.{p}" if number == 0 else f"optimizer{number + 1}.parameter.{g}.{p}"
            found.append((known.get(id(parameter), unnamed), parameter))
    return found


def stop_now(recorder: Recorder) -> None:
    """End the program here, with exit code 0: its streams are flushed, its child processes ended."""
    if recorder.before_stop is not None:
        with recorder.quiet():
            try:
                recorder.before_stop()
            except Exception as error:
                recorder.trouble(error)
    recorder.end("stopped", 0)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is not None and hasattr(multiprocessing, "active_children"):
        for child in multiprocessing.active_children():
            child.terminate()
    os._exit(0)
