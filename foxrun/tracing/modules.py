"""Where in the model the program is: names of modules and parameters, and hooks around every module's forward."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from foxrun.tracing import where
from foxrun.tracing.recorder import Recorder


class Names:
    """Paths of modules and of their parameters and buffers. The first model met has no prefix of its own."""

    def __init__(self) -> None:
        self.roots: list[tuple[str, weakref.ref[nn.Module]]] = []
        self._collections = 16  # each takes a tenth of a second
        self._modules: weakref.WeakKeyDictionary[nn.Module, str] = weakref.WeakKeyDictionary()

    def of(self, module: nn.Module) -> str | None:
        """A module's path; None where it belongs to no model met so far."""
        return self._modules.get(module)

    def add(self, module: nn.Module, prefix: str | None = None, hint: str = "") -> None:
        """Name a model and all that is in it."""
        holds = next(module.parameters(), None) is not None or next(module.buffers(), None) is not None
        if prefix is None:
            # One that a resume builds anew takes the name of the one that it replaces; cycles may keep that one.
            if self._collections and any(type(known) is type(module) for _, known in self.models()):
                self._collections -= 1
                gc.collect()
            self.roots = [(name, known) for name, known in self.roots if known() is not None]
            taken = {name for name, _ in self.roots}
            prefix = "" if holds and "" not in taken else hint or type(module).__name__.lower()
            again = 1
            while prefix in taken:
                again += 1
                prefix = f"{hint or type(module).__name__.lower()}{again}"
        self.roots.append((prefix, weakref.ref(module)))
        for path, part in module.named_modules():
            full = joined(prefix, path)
            if part not in self._modules:
                self._modules[part] = full

    def models(self) -> Iterator[tuple[str, nn.Module]]:
        """Models that are still alive."""
        for prefix, reference in self.roots:
            module = reference()
            if module is not None:
                yield prefix, module

    def parameters(self) -> dict[int, str]:
        """id -> name, of the parameters of all models."""
        found: dict[int, str] = {}
        for prefix, module in self.models():
            for name, parameter in module.named_parameters():
                found.setdefault(id(parameter), joined(prefix, name))
        return found


def joined(prefix: str, path: str) -> str:
    """A path below a model's own name, without what torch.compile puts between: ``_orig_mod.head`` is ``head``."""
    if "_orig_mod" in path:
        path = ".".join(part for part in path.split(".") if part != "_orig_mod")
    return f"{prefix}.{path}" if prefix and path else prefix or path


def variable(module: nn.Module, depth: int = 1) -> str:
    """What the program calls this module, from the line that calls it."""
    frame = where.innermost(sys._getframe(depth + 1))
    while frame is not None:
        for scope in (frame.f_locals, frame.f_globals):
            for name, value in list(scope.items()):
                if value is module and not name.startswith("_") and name != "self":
                    return str(name)
            owner = scope.get("self")
            for name, value in list(getattr(owner, "__dict__", {}).items()):
                if value is module:
                    return str(name).lstrip("_")
        frame = where.innermost(frame.f_back)
    return ""


class Hooks:
    """Global hooks: a stack of paths for each thread, and calls back on entry and exit of every module."""

    def __init__(self, recorder: Recorder, names: Names) -> None:
        self.recorder, self.names = recorder, names
        self.entered: list[Callable[[str, bool, nn.Module, Any], None]] = []
        self.left: list[Callable[[str, bool, nn.Module, Any], None]] = []
        self._local = threading.local()

    def path(self) -> str:
        """The innermost module in whose forward this thread is."""
        stack = getattr(self._local, "stack", None)
        return stack[-1] if stack else ""

    def install(self) -> None:
        """Hook into every module's forward, also when it fails."""
        nn.modules.module.register_module_forward_pre_hook(self._before)
        nn.modules.module.register_module_forward_hook(self._after, always_call=True)

    def _before(self, module: nn.Module, args: Any) -> None:
        if _graph_is_made() or self.recorder.busy or self.recorder.ended:
            return
        stack = self._local.__dict__.setdefault("stack", [])
        try:
            path = self.names.of(module)
            if path is None:
                if stack:
                    path = f"{stack[-1]}.{type(module).__name__.lower()}".lstrip(".")
                else:
                    self.names.add(module, hint=variable(module))
                    path = self.names.of(module) or ""
            stack.append(path)
            for call in self.entered:
                call(path, len(stack) == 1, module, args)
        except Exception as error:
            self.recorder.trouble(error)
            if not stack:
                stack.append("")

    def _after(self, module: nn.Module, args: Any, output: Any) -> None:
        if _graph_is_made() or self.recorder.busy or self.recorder.ended:
            return
        stack = self._local.__dict__.setdefault("stack", [])
        try:
            if stack:
                path = stack[-1]
                for call in self.left:
                    call(path, len(stack) == 1, module, output)
        except Exception as error:
            self.recorder.trouble(error)
        finally:
            if stack:
                stack.pop()


def _graph_is_made() -> bool:
    """Whether torch.compile, torch.export or torch.jit.trace looks on: what we did now would be part of the graph."""
    return (
        torch.compiler.is_compiling()
        or torch._C._get_tracing_state() is not None
        or torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) is not None
    )


def tensors(value: Any, depth: int = 0) -> Iterator[Tensor]:
    """Tensors in an input or output, in order: tuples, lists, dicts, dataclasses and the like."""
    if isinstance(value, Tensor):
        yield value
    elif depth < 6:
        if isinstance(value, (list, tuple)):
            for one in value:
                yield from tensors(one, depth + 1)
        elif hasattr(value, "items") and hasattr(value, "keys"):
            for one in value.values():
                yield from tensors(one, depth + 1)
        elif hasattr(value, "__dataclass_fields__"):
            for name in value.__dataclass_fields__:
                yield from tensors(getattr(value, name), depth + 1)
