"""Instruments torch once the program has imported it: modules, optimizers, backward passes, operations."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from foxrun.tracing import header, imports, patching, poison, seeds
from foxrun.tracing.modules import Hooks, Names
from foxrun.tracing.recorder import Recorder
from foxrun.tracing.steps import Steps


class TorchSite:
    """All that is attached to torch in this process."""

    def __init__(self, recorder: Recorder, torch: ModuleType) -> None:
        self.recorder = recorder
        self.names = Names()
        self.hooks = Hooks(recorder, self.names)
        self.steps = Steps(recorder, self.names, self.hooks)
        self.operations: Any = None
        self._inside = False
        self._known_settings: Any = None
        recorder.module = self.hooks.path
        self.hooks.install()
        self._optimizers(torch)
        self._backward(torch)
        self._loading()
        seeds.watch_torch(torch)
        poison.when_cuda_starts(torch, recorder)
        if recorder.plan.operations:
            self._operations(torch)

    def _optimizers(self, torch: ModuleType) -> None:
        from torch.optim import optimizer

        def before(one: Any, args: Any, kwargs: Any) -> None:
            self._safely(lambda: self.steps.before_optimizer(one))
            self._bracket("optimizer", f"{type(one).__name__}.step", "enter")
            self.recorder.phase = "optimizer"

        def after(one: Any, args: Any, kwargs: Any) -> None:
            self.recorder.phase = "other"
            self._bracket("optimizer", f"{type(one).__name__}.step", "exit")
            self._safely(self._settings)
            self._safely(self.steps.after_optimizer)  # may end the program

        # A program may compile its optimizer's step: what we do around it is to be no part of the graph.
        optimizer.register_optimizer_step_pre_hook(torch._disable_dynamo(before))
        optimizer.register_optimizer_step_post_hook(torch._disable_dynamo(after))

    def _settings(self) -> None:
        """The header says what the program has set meanwhile, and the device that it chose."""
        now = header.settings(sys.modules["torch"])
        if now != self._known_settings:
            self._known_settings = now
            header.write(self.recorder)

    def _backward(self, torch: ModuleType) -> None:
        for module, name in ((torch.autograd, "backward"), (torch.autograd, "grad")):
            original = getattr(module, name)

            @functools.wraps(original)
            def call(
                *args: Any, __original: Callable[..., Any] = original, __name: str = f"autograd.{name}", **kwargs: Any
            ) -> Any:
                if self.recorder.busy or self.recorder.ended or torch.compiler.is_compiling():
                    return __original(*args, **kwargs)
                roots = args[0] if args else kwargs.get("tensors", kwargs.get("outputs"))
                self._safely(lambda: self.steps.before_backward(roots))
                self._bracket("backward", __name, "enter")
                phase, self.recorder.phase = self.recorder.phase, "backward"
                try:
                    return __original(*args, **kwargs)
                finally:
                    # Until the optimizer steps, what runs works on gradients: it clips, scales, reduces them.
                    done = phase == "other" and __name == "autograd.backward"
                    self.recorder.phase = "gradients" if done else phase
                    self._bracket("backward", __name, "exit")

            setattr(module, name, call)

    def _loading(self) -> None:
        """What a DataLoader does for a batch belongs to the phase "data"."""

        def loader(module: ModuleType) -> None:
            def around(original: Any) -> Any:
                def call(one: Any) -> Any:
                    phase, self.recorder.phase = self.recorder.phase, "data"
                    try:
                        return original(one)
                    finally:
                        self.recorder.phase = phase

                return call

            for cls, name in ((module._BaseDataLoaderIter, "__next__"), (module.DataLoader, "__iter__")):
                patching.method(cls, name, around)

        imports.when_imported("torch.utils.data.dataloader", loader)

    def _graphs(self, torch: ModuleType) -> None:
        """torch.jit.trace does not stand a dispatch mode: it hands scalars on where tensors are meant."""

        def around(original: Any) -> Any:
            @functools.wraps(original)
            def call(*args: Any, **kwargs: Any) -> Any:
                with torch._C._DisableTorchDispatch():
                    return original(*args, **kwargs)

            return call

        for module, name in ((torch.jit, "trace"), (torch.jit, "trace_module"), (torch.jit._trace, "trace_module")):
            setattr(module, name, around(getattr(module, name)))

    def _bracket(self, kind: str, name: str, value: str, module: str = "") -> None:
        if self.operations is not None and self._inside and not self.recorder.ended:
            from foxrun.tracing import where

            self._safely(lambda: self.recorder.event(kind, name, where=where.caller(2), module=module, value=value))

    def _operations(self, torch: ModuleType) -> None:
        from foxrun.tracing import graphs, kernels, operations, pickled

        self.operations = operations.Operations(self.recorder)
        kernels.watch(self.operations)
        graphs.watch(self.operations)
        pickled.watch(self.operations)
        self._graphs(torch)
        self.hooks.entered.append(self._module_entered)
        self.hooks.left.append(self._module_left)
        operations.every_thread(lambda: self.operations if self._inside else None)
        self.steps.on_change = self.window
        self.recorder.at_end.append(self.leave)
        self.window()

    def _module_entered(self, path: str, outermost: bool, module: Any, args: Any) -> None:
        if outermost:
            self.recorder.phase = "forward"
        self._bracket("module", type(module).__name__, "enter", path)

    def _module_left(self, path: str, outermost: bool, module: Any, output: Any) -> None:
        self._bracket("module", type(module).__name__, "exit", path)
        if outermost:
            self.recorder.phase = "other"

    def window(self) -> None:
        """Enter or leave the dispatch mode, as this step is in the window or not."""
        inside = self.recorder.plan.in_window(self.recorder.step)
        if inside and not self._inside:
            self.operations.__enter__()
            self._inside = True
        elif self._inside and not inside:
            self.leave()

    def leave(self) -> None:
        """No operation is recorded any more; a mode that another one stands on stays, and lets all pass."""
        if self._inside:
            self._inside = False
            from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

            stack = _get_current_dispatch_mode_stack()
            if stack and stack[-1] is self.operations:
                self.operations.__exit__(None, None, None)  # type: ignore[no-untyped-call]

    def attach(self, recorder: Recorder) -> None:
        """In a forked child: go on with the child's recorder."""
        self.recorder = self.hooks.recorder = recorder
        recorder.module = self.hooks.path
        self.steps.forked(recorder)
        if self.operations is not None:
            self.operations.forked(recorder)
            recorder.at_end.append(self.leave)

    def _safely(self, call: Callable[[], object]) -> None:
        try:
            call()
        except Exception as error:
            self.recorder.trouble(error)
