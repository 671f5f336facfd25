"""Which tensor or array lies at which address, for native functions, which are handed addresses alone; and views that
leave their array's memory."""

from __future__ import annotations

import functools
import gc
import sys
import weakref
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from foxrun.tracing import handed, patching, recorder, watching, where
from foxrun.tracing.words import PAST

KNOWN = 1024  # pieces of memory whose addresses are kept
PAGE = 4096


class Memory:
    """What lies at which address: tensors and arrays of which the program has asked for it, while they live."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], Any] = {}  # (address, bytes) -> weak reference
        self._asked: set[int] = set()  # where storages begin whose address anybody could know

    def of_tensor(self, original: Any) -> Any:
        """Around Tensor.data_ptr."""

        def data_ptr(one: Tensor) -> int:
            address = int(original(one))
            _tell_address("Tensor.data_ptr", address)
            with torch._C.DisableTorchFunctionSubclass():  # a subclass sees the program's calls alone
                if address and one.device.type == "cpu" and one.layout == torch.strided:
                    self._asked.add(_start(one.untyped_storage()))
                    self._know(address, _size(one), one)
            return address

        return data_ptr

    def watch_numpy(self, module: ModuleType) -> None:
        """ndarray.ctypes makes one of these each time."""

        def around(original: Any) -> Any:
            def __init__(this: Any, array: Any, ptr: Any = None) -> None:
                original(this, array, ptr)
                _tell_address("ndarray.ctypes", int(ptr or 0))
                if ptr and array.flags.c_contiguous:
                    self._know(int(ptr), int(array.nbytes), array)

            return __init__

        if hasattr(module, "_ctypes"):
            patching.method(module._ctypes, "__init__", around)
            patching.method(type(module.array(0)), "resize", self._resizing)

    def of_array(self, value: Any) -> int:
        """The address of an array that is handed over as it is, known from now on; 0 of anything else."""
        numpy = sys.modules.get("numpy")
        if numpy is None or not isinstance(value, numpy.ndarray) or not value.flags.c_contiguous:
            return 0
        address = int(value.__array_interface__["data"][0])
        if address and value.nbytes:
            self._know(address, int(value.nbytes), value)
        return address

    def _resizing(self, original: Any) -> Any:
        """numpy refuses to resize what is weakly referenced, or has another reference beside its name."""

        def resize(array: Any, *shape: Any, refcheck: bool = True) -> None:
            if refcheck and sys.getrefcount(array) > 3:  # its name, the parameter, getrefcount's own
                return original(array, *shape, refcheck=True)  # type: ignore[no-any-return]
            tables: tuple[dict[Any, Any], ...] = (self._known, handed._owners, handed._at)
            for table in tables:
                for key, reference in table.copy().items():
                    if reference() is array:
                        table.pop(key, None)
            reference = None
            original(array, *shape, refcheck=False)
            return None

        return resize

    def watch_sharing(self) -> None:
        """Other ways in which the address of a tensor's memory gets around."""

        def shared(original: Any) -> Any:
            def call(one: Tensor, *args: Any, **kwargs: Any) -> Any:
                if watching.current() is not None and one.device.type == "cpu" and one.layout == torch.strided:
                    self._asked.add(_start(one.untyped_storage()))
                return original(one, *args, **kwargs)

            return call

        def storage(original: Any) -> Any:
            def data_ptr(one: Any) -> Any:
                found = original(one)
                if watching.current() is not None:
                    self._asked.add(int(found))
                return found

            return data_ptr

        for name in ("numpy", "__array__", "__dlpack__", "share_memory_"):
            patching.method(Tensor, name, shared)
        patching.method(torch.UntypedStorage, "data_ptr", storage)

    def unasked(self, address: int) -> Tensor | None:
        """The tensor in whose memory an address lies though nobody could know it: it was reached from another's."""
        for one in tensors():
            storage = one.untyped_storage()
            start = _start(storage)
            if start <= address < start + storage.nbytes():
                return one if start not in self._asked and storage.resizable() else None
        return None

    def at(self, address: int) -> tuple[int, int, Any] | None:
        """(address, bytes, tensor or array) of the smallest known memory that an address lies in."""
        found = None
        for (start, size), reference in self._known.copy().items():  # of other threads too
            if start <= address < start + size and (found is None or size < found[1]):
                owner = reference()
                found = (start, size, owner) if _lies(owner, start, size) else found
        return found

    def ends_before(self, address: int) -> tuple[int, Any]:
        """How many bytes, of a page at most, lie between the end of known memory and an address in no tensor's, and
        whose memory that is."""
        ends = [
            (s + n, number, owner)
            for number, ((s, n), reference) in enumerate(self._known.copy().items())
            if 0 < address + 1 - s - n <= PAGE and _lies(owner := reference(), s, n)
        ]
        for one in tensors() if ends else ():
            storage = one.untyped_storage()
            if _start(storage) <= address < _start(storage) + storage.nbytes():
                return 0, None
        end, _, owner = max(ends, key=lambda item: item[:2], default=(address, 0, None))
        return address - end, owner

    def _know(self, address: int, size: int, owner: Any) -> None:
        if len(self._known) >= KNOWN:
            for key, reference in self._known.copy().items():
                if reference() is None:
                    self._known.pop(key, None)
            for key in list(self._known)[: max(0, len(self._known) - KNOWN + 1)]:
                self._known.pop(key, None)
        self._known.pop((address, size), None)
        self._known[address, size] = weakref.ref(owner)


_plain_address = torch.UntypedStorage.data_ptr
_plain_pointer = Tensor.data_ptr


def _size(one: Tensor) -> int:
    """Bytes from a tensor's first to its last."""
    last = sum((count - 1) * stride for count, stride in zip(one.shape, one.stride(), strict=True))
    return (last + 1) * one.element_size() if one.numel() else 0


def _lies(owner: Any, start: int, size: int) -> bool:
    """Whether a tensor or an array still lies where it was when it was asked: both can be given other memory."""
    if isinstance(owner, Tensor):
        return _plain_pointer(owner) == start and start + size <= _storage_end(owner)
    return owner is not None and owner.nbytes == size and owner.__array_interface__["data"][0] == start


def _start(storage: Any) -> int:
    """Where a storage begins; asking it here tells nobody."""
    return int(_plain_address(storage))


def _tell_address(name: str, address: int) -> None:
    """A program that asks where memory lies may choose by it."""
    active = watching.current()
    if active is None:
        return
    frame = where.direct(sys._getframe())  # a launcher asks for addresses as well, and chooses nothing by them
    if frame is not None:
        with active.quiet():
            watching.event(active, "host", name, address, where.text(frame))


def tensors() -> Iterator[Tensor]:
    """All that Python knows of, on the CPU, with memory."""
    for one in gc.get_objects():
        if type(one) is not Tensor and type(one) is not torch.nn.Parameter:
            continue
        if one.device.type == "cpu" and one.layout == torch.strided and one.numel():
            try:
                one.untyped_storage()
            except (NotImplementedError, RuntimeError):
                continue  # what vmap and its like wrap has no memory
            yield one


def end_of(owner: Any) -> int:
    """Where the memory ends that a tensor or an array is a view of."""
    owner = _last_base(owner)
    if isinstance(owner, Tensor):
        return _storage_end(owner)
    return int(owner.__array_interface__["data"][0]) + int(owner.nbytes)


def is_all(owner: Any) -> bool:
    """Whether nothing of the program's can follow: not where the memory came from a buffer, a mapping or C."""
    owner = _last_base(owner)
    if isinstance(owner, Tensor):
        return bool(owner.untyped_storage().resizable())
    return owner.base is None and bool(owner.flags.owndata)


def _storage_end(one: Tensor) -> int:
    storage = one.untyped_storage()
    return _start(storage) + int(storage.nbytes())


def _last_base(owner: Any) -> Any:
    """The tensor or array whose memory another one is a view of, as far as it is known."""
    if isinstance(owner, Tensor):
        if owner.untyped_storage().resizable():
            return owner
        array = handed.owner_at(_start(owner.untyped_storage()))
        if array is None:
            return owner
        owner = array
    numpy: Any = sys.modules.get("numpy")
    kinds = (numpy.ndarray, Tensor) if numpy is not None else (Tensor,)
    while isinstance(getattr(owner, "base", None), kinds):
        owner = owner.base
    return owner


def watch_views(module: ModuleType) -> None:
    """numpy's as_strided makes views of any memory; one that leaves its array's is a kernel's event of its own."""

    def around(original: Any) -> Any:
        @functools.wraps(original)
        def as_strided(x: Any, *args: Any, **kwargs: Any) -> Any:
            view = original(x, *args, **kwargs)
            active = watching.current()
            if active is not None:
                try:
                    _tell_view(active, x, view)
                except Exception as error:
                    active.trouble(error)
            return view

        as_strided._foxrun = True  # type: ignore[attr-defined]
        return as_strided

    if hasattr(module, "as_strided") and not hasattr(module.as_strided, "_foxrun"):
        module.as_strided = around(module.as_strided)  # type: ignore[attr-defined]


def _tell_view(active: recorder.Recorder, x: Any, view: Any) -> None:
    frame = where.innermost(sys._getframe())
    if frame is None or not view.size or not hasattr(x, "__array_interface__"):
        return
    first = int(view.__array_interface__["data"][0])
    steps = [(count - 1) * stride for count, stride in zip(view.shape, view.strides, strict=True)]
    past = first + sum(step for step in steps if step > 0) + view.itemsize - end_of(x)
    if past > 0:
        value = f"{PAST}: a view reaches {past} bytes behind its array"
        shapes = f"{x.dtype}{list(x.shape)}->{view.dtype}{list(view.shape)}"
        active.event("kernel", "numpy.as_strided", shapes=shapes, where=where.text(frame), value=value)
