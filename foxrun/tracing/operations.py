"""Every dispatcher operation of the window, as one event: forward, backward, optimizer, in place, foreach, custom.

A TorchDispatchMode below autograd sees what really runs. Pure views leave no event. What is hashed is hashed each time
it is read, so that a change behind an operation's back shows.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

from foxrun.tracing import dumps, generators, where
from foxrun.tracing.hashing import Hasher
from foxrun.tracing.recorder import Fingerprint, Recorder
from foxrun.tracing.shapes import describe, shape_of
from foxrun.tracing.storages import Storages

TORCH_NAMESPACES = {"aten", "prim", "prims", "c10d", "c10d_functional", "_c10d_functional", "quantized", "inductor"}
UNFILLED = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted", "resize_"}
OVERWRITES = {
    "copy_", "fill_", "zero_", "uniform_", "normal_", "random_", "bernoulli_", "exponential_", "geometric_", "cauchy_",
    "log_normal_", "_foreach_copy_", "_foreach_zero_", "set_",
}  # fmt: skip
FILLED_SILENTLY = {"lift_fresh", "lift_fresh_copy", "lift"}


class Schema(NamedTuple):
    """What is needed of an operation's schema, worked out once."""

    name: str
    kind: str
    unseen: bool  # leaves no event: only makes a view of what is there
    unfilled: bool
    written: frozenset[str]  # names of arguments that it writes
    names: tuple[str, ...]  # of positional arguments
    random: bool
    host: bool  # brings host data in
    overwrites: bool  # writes its arguments without reading them


_ENGINE = torch.autograd.graph._engine_run_backward.__code__
_ITEM = torch.ops.aten._local_scalar_dense.default
_schemas: dict[Any, Schema] = {}


def schema_of(func: Any) -> Schema:
    """The Schema of an OpOverload."""
    known = _schemas.get(func)
    if known is None:
        known = _schemas[func] = _read_schema(func)
    return known


def _read_schema(func: Any) -> Schema:
    schema = func._schema
    written = frozenset(a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write)
    returns = schema.returns
    view = bool(returns) and not written and all(r.alias_info is not None for r in returns)
    base = func._overloadpacket.__name__
    random = torch.Tag.nondeterministic_seeded in func.tags
    kind = "draw" if random else "op" if func.namespace in TORCH_NAMESPACES else "kernel"
    names = tuple(a.name for a in schema.arguments)
    host = base in FILLED_SILENTLY
    overwrites = base in OVERWRITES or any(a.is_out for a in schema.arguments)
    unseen = (view and not host) or func.namespace == "profiler"
    return Schema(str(func), kind, unseen, base in UNFILLED, written, names, random, host, overwrites)


class Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records every operation of the threads in which it is entered."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.recorder = recorder
        self.storages = Storages()
        self.hasher = recorder.hasher = Hasher()
        self.forward_lines: dict[int, tuple[str, str]] = {}  # autograd sequence number -> where, module

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        recorder = self.recorder
        if isinstance(func, torch._ops.HigherOrderOperator):
            return func(*map(self._within, args), **kwargs)
        if func is _ITEM and not isinstance(args[0], Tensor):
            return args[0]  # TorchScript's numbers arrive unwrapped, and the operation itself would refuse them
        if recorder.busy or recorder.ended:
            return func(*args, **kwargs)
        schema = schema_of(func)
        if schema.unseen:
            return func(*args, **kwargs)
        if any(issubclass(kind, FakeTensor) for kind in types):
            return func(*args, **kwargs)  # a graph is being made: nothing is computed
        if any(kind is not Tensor and kind is not torch.nn.Parameter for kind in types):
            return NotImplemented  # a subclass takes itself apart, and its parts come here
        before = None
        try:
            with recorder.quiet():
                before = self._before(schema, func, args, kwargs)
        except Exception as error:
            recorder.trouble(error)
        try:
            result = func(*args, **kwargs)
        except RuntimeError as error:
            if "to Tensor" not in str(error):
                raise
            args = _with_tensors(func, args)
            result = func(*args, **kwargs)
        if before is not None:
            try:
                with recorder.quiet():
                    self._after(schema, func, args, kwargs, result, before)
            except Exception as error:
                recorder.trouble(error)
        return result

    supports_higher_order_operators = True

    def _within(self, given: Any) -> Any:
        """The graphs that torch.cond and its like are given run under this mode as well."""
        if not isinstance(given, torch.fx.GraphModule):
            return given

        @functools.wraps(given.forward)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self:
                return given(*args, **kwargs)

        return call

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """So that torch.compile compiles: beside a mode that does not say so it lets the program run as it is written,
        and with ``fullgraph`` it fails."""
        return True

    @property
    def recording(self) -> bool:
        """Whether what this thread does now is to leave events."""
        recorder = self.recorder
        return not (recorder.busy or recorder.ended) and recorder.plan.in_window(recorder.step)

    def forked(self, recorder: Recorder) -> None:
        """In a forked child: its own events."""
        self.recorder, self.storages = recorder, Storages()
        self.hasher = recorder.hasher = Hasher()

    def hash(self, tensor: Tensor) -> Fingerprint:
        """A slot, or "" for what has no bits (meta, fake, sparse) or cannot be read now (a graph's capture)."""
        if tensor.layout != torch.strided or tensor.device.type == "meta" or tensor.is_quantized:
            return ""
        if isinstance(tensor, FakeTensor):
            return ""
        if tensor.is_cuda and torch.cuda.is_current_stream_capturing():
            return ""
        return self.hasher.add(tensor)

    def _before(self, schema: Schema, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Before:
        recorder = self.recorder
        ins: list[tuple[str, Fingerprint, int]] = []
        notes = []
        if schema.random:
            ins.append(generators.torch_state(_generator(args, kwargs), _device(args, kwargs)))
        tensors = list(_labelled(schema, args, kwargs))
        for label, tensor in tensors:
            if schema.unfilled or (schema.overwrites and label.partition(".")[0] in schema.written):
                continue
            ins.append((label, self.hash(tensor), self.storages.source(tensor)))
            if note := self.storages.unfilled(tensor):
                notes.append(f"{label} {note}")
        line, module, phase, frame = self._place()
        by = _caller(frame) if schema.host or (not module and phase in ("other", "gradients")) else ""
        index = recorder.reserve()
        dumper = dumps.wanted(recorder, index)
        if dumper is not None:
            dumper.inputs(func, args, kwargs)
        return _Before(index, ins, tensors, line, by, module, phase, "; ".join(notes), dumper)

    def _after(
        self, schema: Schema, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, before: _Before
    ) -> None:
        storages, index = self.storages, before.event
        outs: list[tuple[str, Fingerprint]] = []
        written = [(label, t) for label, t in before.tensors if label.partition(".")[0] in schema.written]
        seen = set()
        for label, tensor in written:
            seen.add(id(tensor))
            if schema.unfilled:
                outs.append((label, ""))
                storages.made_unfilled(tensor, index)
            else:
                outs.append((label, self._after_hash(tensor, schema, args)))
                storages.wrote(tensor, index)
        results = [(label, t) for label, t in _tensors(result, "") if id(t) not in seen]
        inputs = {id(t) for _, t in before.tensors}
        for label, tensor in results:
            if schema.unfilled:
                outs.append((label, ""))
                storages.made_unfilled(tensor, index)
                continue
            outs.append((label, self._after_hash(tensor, schema, args)))
            if schema.host or id(tensor) not in inputs:
                storages.made(tensor, index)
        if schema.random:
            label, state, _ = generators.torch_state(_generator(args, kwargs), _device(args, kwargs))
            outs.append((label, state))
            generators.torch_drawn(label, index)
        self.recorder.event(
            "host" if schema.host else schema.kind,
            schema.name,
            ins=[] if schema.host else before.ins,
            outs=outs,
            shapes=_shapes(schema, args, kwargs, [t for _, t in (*written, *results)]),
            where=before.line,
            by=before.by,
            module=before.module,
            phase=before.phase,
            value=before.note or (self.recorder.local.handed if schema.host else _shown(result, results, written)),
            index=index,
        )
        if before.dumper is not None:
            before.dumper.outputs([*written, *results])

    def _after_hash(self, tensor: Tensor, schema: Schema, args: tuple[Any, ...]) -> Fingerprint:
        """An asynchronous copy to the host has not arrived yet: what will arrive is hashed where it comes from."""
        if tensor.device.type == "cpu" and args and schema.name.startswith(("aten._to_copy", "aten.copy_")):
            source = args[1] if schema.name.startswith("aten.copy_") and len(args) > 1 else args[0]
            if isinstance(source, Tensor) and source.is_cuda:
                if torch.cuda.is_current_stream_capturing():
                    return ""
                return self.hasher.add(source.to(tensor.dtype).expand(tensor.shape))
        return self.hash(tensor)

    def place(self) -> tuple[str, str, str]:
        """Where, module and phase; in a backward pass that torch made, those of the forward operation."""
        return self._place()[:3]

    def _place(self) -> tuple[str, str, str, FrameType | None]:
        """The same, and the program's frame where it is one of its own."""
        recorder = self.recorder
        node = torch._C._current_autograd_node()
        if node is None:
            frame = where.innermost(sys._getframe())
            line = where.text(frame)
            module, phase = recorder.module(), recorder.phase
            self.forward_lines.setdefault(torch.autograd._get_sequence_nr() - 1, (line, module))
            if len(self.forward_lines) > 400_000:
                self.forward_lines = dict(list(self.forward_lines.items())[200_000:])
            return line, module, phase, frame
        known = self.forward_lines.get(node._sequence_nr())
        # A backward pass written in Python, a hook, a recomputation: a line of its own says more than the forward one.
        own = where.text(where.innermost(sys._getframe(), within=_ENGINE))
        line, module = known or (where.text(where.innermost(sys._getframe())), "")
        return own or line, module, "backward", None


def _caller(frame: FrameType | None) -> str:
    """Who calls the function that runs an operation, and where that one begins, for several may have one name: which of
    them is called may be what differs."""
    line = where.text(where.innermost(frame.f_back)) if frame is not None else ""
    return f"{line} > {frame.f_code.co_firstlineno}" if frame is not None and line else ""


def _shown(result: Any, *tensors: Sequence[Any]) -> str:
    """What comes back where it is no tensor."""
    return "" if result is None or any(tensors) else repr(result)[:80]


def _with_tensors(func: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """TorchScript hands a mode numbers where the operation takes tensors without dimensions; refused, nothing ran."""
    wanted = [argument.type.kind() == "TensorType" for argument in func._schema.arguments]
    return tuple(
        torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)
        if place < len(wanted) and wanted[place] and isinstance(value, (bool, int, float))
        else value
        for place, value in enumerate(args)
    )


class _Before(NamedTuple):
    event: int
    ins: list[tuple[str, Fingerprint, int]]
    tensors: list[tuple[str, Tensor]]
    line: str
    by: str
    module: str
    phase: str
    note: str
    dumper: dumps.EventDump | None


def _labelled(schema: Schema, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[str, Tensor]]:
    """Tensors of a call with their labels: position for arguments that are read, name for those that are written."""
    for position, value in enumerate(args):
        name = schema.names[position] if position < len(schema.names) else str(position)
        yield from _tensors(value, name if name in schema.written else str(position))
    for name, value in kwargs.items():
        yield from _tensors(value, name)


def _tensors(value: Any, label: str) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, Tensor):
        yield label or "0", value
    elif isinstance(value, (list, tuple)):
        for position, one in enumerate(value):
            yield from _tensors(one, f"{label}.{position}" if label else str(position))


def _generator(args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.Generator | None:
    for value in (*args, *kwargs.values()):
        if isinstance(value, torch.Generator):
            return value
    return None


def _device(args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.device:
    for value in (*args, *kwargs.values()):
        if isinstance(value, torch.device):
            return value
    for _, tensor in _tensors(args, ""):
        return tensor.device
    return torch.device("cpu")


def _shapes(schema: Schema, args: tuple[Any, ...], kwargs: dict[str, Any], results: Sequence[Tensor]) -> str:
    given = [describe(value) for value in args] + [f"{name}={describe(value)}" for name, value in kwargs.items()]
    return f"{','.join(given)}->{','.join(map(shape_of, results))}"


def every_thread(mode_of: Callable[[], TorchDispatchMode | None]) -> None:
    """Enter the mode in each thread that the program starts: dispatch modes belong to a thread."""
    import threading

    bootstrap = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

    def bootstrap_inner(self: threading.Thread) -> None:
        mode = mode_of()
        if mode is None:
            bootstrap(self)
        else:
            with mode:
                bootstrap(self)

    threading.Thread._bootstrap_inner = bootstrap_inner  # type: ignore[attr-defined]
