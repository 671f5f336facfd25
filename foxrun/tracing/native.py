"""Native functions called through ctypes: events of kind "kernel", and writes past the memory they are given.

The dispatcher sees none of them. Their memory is found by its address: a program hands over what ``Tensor.data_ptr()``,
``ndarray.ctypes`` or a ctypes array said, or the array itself (``numpy.ctypeslib.ndpointer``). Tensors that change
though no pointer into them was handed over were written out of bounds.
"""

from __future__ import annotations

import functools
import sys
import threading
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from foxrun.tracing import host_values, imports, libraries, patching, processes
from foxrun.tracing.addresses import Memory, end_of, is_all, tensors, watch_views
from foxrun.tracing.guards import REST, Guard, Guards
from foxrun.tracing.operations import Operations
from foxrun.tracing.recorder import Fingerprint
from foxrun.tracing.shapes import shape_of
from foxrun.tracing.words import PAST, PAST_VIEW, SURELY

BYSTANDERS = 32 << 20  # bytes of other tensors that are held against what they were, a call
LOOKS = 64  # calls around which bystanders are looked at: finding them takes some 50 ms
FILLS = {"memmove": (0, 2), "memset": (0, 2)}  # which argument is written, and how many bytes of it


def watch(operations: Operations) -> None:
    """Watch libraries that the program loads from now on, and ctypes' own memmove and memset."""
    memory = Memory()
    memory.watch_sharing()
    patching.method(Tensor, "data_ptr", memory.of_tensor)
    imports.when_imported("numpy._core._internal", memory.watch_numpy)
    imports.when_imported("numpy.core._internal", memory.watch_numpy)
    imports.when_imported("numpy.lib._stride_tricks_impl", watch_views)
    imports.when_imported("numpy.lib.stride_tricks", watch_views)
    imports.when_imported("ctypes", lambda module: _libraries(module, _Caller(operations, memory, Guards(module))))


class _Caller:
    """Makes an event of each call."""

    def __init__(self, operations: Operations, memory: Memory, guards: Guards) -> None:
        self._operations, self._memory, self._guards = operations, memory, guards
        self._looks = LOOKS
        self._searches: dict[str, int] = {}  # by line
        self._calls = self._running = 0

    def around(
        self,
        name: str,
        call: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        told: bool = False,
        asked: str = "",
    ) -> Any:
        """Call, with what it is given hashed before and after; ``told``: its result is a value of its own.

        ``asked``: what its library asks the system for.
        """
        recorder = self._operations.recorder
        if recorder.busy or recorder.ended or not recorder.plan.in_window(recorder.step):
            return call(*args, **kwargs)
        before = None
        try:
            with recorder.quiet(), torch._C.DisableTorchFunctionSubclass():
                before = self._before(name, args)
        except Exception as error:
            recorder.trouble(error)
        past = 0
        try:
            result = call(*args, **kwargs)
        finally:
            if before is not None:
                past = sum(self._guards.look(guard) for guard in reversed(before.guards))
                self._running -= 1
        if before is not None:
            try:
                with recorder.quiet(), torch._C.DisableTorchFunctionSubclass():
                    self._after(name, before, result if told else None, past, asked)
            except Exception as error:
                recorder.trouble(error)
        return result

    def _before(self, name: str, args: tuple[Any, ...]) -> _Before | None:
        given: list[tuple[str, Tensor]] = []
        spans: list[tuple[int, int]] = []
        owners: list[tuple[int, int, Any]] = []
        for number, value in enumerate(args):
            address = self._memory.of_array(value) or _address(value)
            found = self._memory.at(address) if address else None
            spans.append((address, 1))  # of a buffer that was not asked for its address
            if found is not None:
                start, size, owner = found
                if not isinstance(owner, Tensor) and owner.dtype.hasobject:
                    continue  # addresses of objects
                given.append((str(number), _tensor(owner)))
                spans.append((start, size))
                owners.append(found)
        if not given and name not in FILLS:
            return None  # a call that touches no memory of the program's: a clock, a lock
        operations = self._operations
        ins = [(label, operations.hash(one), operations.storages.source(one)) for label, one in given]
        # Another thread may write what is its own; and a forked child has no threads to copy much with.
        looks = self._looks and threading.active_count() == 1 and not processes.is_child()
        others = [(shape, flat, flat.clone()) for shape, flat in _bystanders(spans)] if looks else []
        self._looks = max(0, self._looks - 1)
        place, rests = operations.place(), self._rests(spans, owners)
        beyond = self._beyond(name, args, place[0])
        planted = {id(owner): self._guards.plant(owner) for *_, owner in owners} if not beyond else {}
        guards = [guard for guard in planted.values() if guard is not None]
        self._calls, self._running = self._calls + 1, self._running + 1
        return _Before(given, ins, others, beyond, place, guards, rests, (self._calls, self._running > 1))

    def _rests(
        self, spans: list[tuple[int, int]], owners: list[tuple[int, int, Any]]
    ) -> list[tuple[str, int, int, bytes]]:
        """Bytes behind what is a view of more, but for those that another pointer was handed for."""
        found = []
        for start, size, owner in owners:
            end = end_of(owner)
            if end > start + size and not any(start + size <= s < start + size + REST for s, _ in spans):
                found.append((shape_of(_tensor(owner)), start + size, end, self._guards.rest(start + size, end)))
        return found

    def _past_views(self, before: _Before) -> str:
        """Which view was written past; nothing where another native call ran meanwhile, which may have done it."""
        calls, beside = before.overlap
        if beside or calls != self._calls:
            return ""
        for shape, address, end, old in before.rests:
            changed = sum(a != b for a, b in zip(old, self._guards.rest(address, end), strict=True))
            if changed:
                return f"{PAST_VIEW}: {changed} bytes behind {shape}, in the memory that it is a view of"
        return ""

    def _beyond(self, name: str, args: tuple[Any, ...], line: str) -> str:
        """Of functions of which it is known how much they write."""
        written = FILLS.get(name)
        if written is None or len(args) <= max(written):
            return ""
        address, count = _address(args[written[0]]), _address(args[written[1]])
        found = self._memory.at(address)
        if not count:
            return ""
        if found is None:
            self._searches[line] = self._searches.get(line, 0) + 1
            if self._searches[line] > LOOKS:
                return ""
            if (other := self._memory.unasked(address)) is not None:
                return f"{SURELY}: {count} bytes into {shape_of(other)}, whose address nobody asked for"
            before, owner = self._memory.ends_before(address)
            nobodys = owner is not None and before < self._guards.behind(owner)
            return f"{SURELY if nobodys else PAST}: {count} bytes, {before} behind its end" if before else ""
        left, whole = found[0] + found[1] - address, end_of(found[2]) - address
        if count <= left:
            return ""
        return (
            f"{SURELY}: {count} bytes where {whole} are left"
            if count > whole and is_all(found[2])
            else (f"{PAST_VIEW}: {count} bytes where {left} are left of it")
        )

    def _after(self, name: str, before: _Before, result: Any, past: int, asked: str) -> None:
        operations = self._operations
        # First of all, since hashing writes as well.
        alone = before.overlap == (self._calls, False)  # what a callback's calls wrote is theirs
        changed = [shape for shape, flat, old in before.others if alone and not torch.equal(flat, old)]
        value = before.beyond or (f"{SURELY}: {past} bytes behind its end, which are nobody's" if past else "")
        value = value or self._past_views(before)
        if changed and not value:
            value = f"{PAST}: {', '.join(changed[:3])} changed, and no pointer into it was handed over"
        past_it = bool(value)
        value = value or asked
        index = operations.recorder.reserve()
        outs: list[tuple[str, Fingerprint]] = []
        for label, tensor in before.given:
            outs.append((label, operations.hash(tensor)))
            operations.storages.wrote(tensor, index)
        if isinstance(result, (int, float)):
            outs.append(("result", host_values.digits(result)))
        line, module, phase = before.place
        operations.recorder.event(
            "kernel", f"ctypes.{name}", ins=before.ins, outs=outs, where=line, module=module, phase=phase, value=value,
            shapes=f"{','.join(shape_of(tensor) for _, tensor in before.given)}->", index=index,
        )  # fmt: skip
        if past_it:
            operations.recorder.flush()  # the process may not live long


class _Before(NamedTuple):
    given: list[tuple[str, Tensor]]
    ins: list[tuple[str, Fingerprint, int]]
    others: list[tuple[str, Tensor, Tensor]]
    beyond: str
    place: tuple[str, str, str]
    guards: list[Guard]
    rests: list[tuple[str, int, int, bytes]]
    overlap: tuple[int, bool]


def _bystanders(given: list[tuple[int, int]]) -> list[tuple[str, Tensor]]:
    """Shapes and flat bytes of the CPU's tensors, up to a limit, of whose memory nothing is handed over."""
    found: dict[int, tuple[str, Tensor]] = {}
    left = BYSTANDERS
    for one in tensors():
        storage = one.untyped_storage()
        start, size = storage.data_ptr(), storage.nbytes()
        if start in found or size > left or any(start < s + n and s < start + size for s, n in given):
            continue
        left -= size
        found[start] = shape_of(one), torch.empty(0, dtype=torch.uint8).set_(storage)
    return list(found.values())


def _tensor(owner: Any) -> Tensor:
    """Its memory as a tensor, whatever numpy's dtype, and be it read-only."""
    if isinstance(owner, Tensor):
        return owner.detach()
    import ctypes

    memory: Any = (ctypes.c_char * owner.nbytes).from_address(owner.__array_interface__["data"][0])
    memory.owner = owner  # lives as long as the tensor
    dtype = getattr(torch, owner.dtype.name, None) if owner.dtype.isnative else None
    if not isinstance(dtype, torch.dtype):
        return torch.frombuffer(memory, dtype=torch.uint8)
    return torch.frombuffer(memory, dtype=dtype).reshape(owner.shape)


def _address(value: Any) -> int:
    """What a ctypes argument points to; 0 where it is no pointer."""
    if isinstance(value, int):
        return value
    plain = getattr(value, "value", None)
    if isinstance(plain, int):
        return plain
    import ctypes

    if isinstance(value, ctypes.Array):  # cast would leave a reference cycle in it, and its buffer exported
        return ctypes.addressof(value)
    if isinstance(value, (ctypes._Pointer, ctypes._CFuncPtr, ctypes.c_char_p, ctypes.c_wchar_p)):  # type: ignore[attr-defined]
        return ctypes.c_void_p.from_address(ctypes.addressof(value)).value or 0
    own = hasattr(type(value), "_as_parameter_") and not type(value).__module__.startswith("numpy.")
    if own or isinstance(value, (ctypes.Structure, ctypes.Union)):
        return 0  # by value; or what is worked out anew each time
    try:
        return ctypes.cast(value, ctypes.c_void_p).value or 0
    except (ctypes.ArgumentError, TypeError):
        return 0


def _libraries(ctypes: ModuleType, caller: _Caller) -> None:
    """Functions of libraries that are loaded from now on; Python's own libraries are left alone."""
    init = ctypes.CDLL.__init__

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        plain = self._FuncPtr
        asked = libraries.asks(str(self._name or ""))  # now: its file may be gone by the first call

        class Function(plain):  # type: ignore[misc,valid-type]
            """A function of the library, watched."""

            _flags_ = plain._flags_  # ctypes looks for both in the class itself
            _restype_ = plain._restype_

            def __call__(self, *args: Any, **kwargs: Any) -> Any:
                name = getattr(self, "__name__", "function")
                # A function without a declared result leaves whatever the register held.
                told = self.restype not in (None, ctypes.c_int)
                return caller.around(str(name), super().__call__, args, kwargs, told=told, asked=asked)

        self._FuncPtr = Function

    ctypes.CDLL.__init__ = __init__
    for name in FILLS:
        original = getattr(ctypes, name)
        setattr(ctypes, name, _watched(caller, name, original))


def _watched(caller: _Caller, name: str, original: Any) -> patching.Watched:
    def call(*args: Any, **kwargs: Any) -> Any:
        return caller.around(name, original, args, kwargs)

    return patching.Watched(original, call, sys.modules["ctypes"].__name__, name)
