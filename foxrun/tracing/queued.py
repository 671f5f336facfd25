"""Arrays in a multiprocessing queue: an event each, with their bytes when they were put and when they were pickled.

``Queue.put`` keeps the object, and a thread of the queue pickles it some time later
(https://docs.python.org/3/library/multiprocessing.html#pipes-and-queues): who fills a buffer again and again sends
what it holds by then.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from foxrun.tracing import host_values, patching, recorder, watching, where
from foxrun.tracing.words import QUEUED

MOST_BYTES = 64 << 20
DEPTH = 4
KEPT = 4096

_waiting: dict[int, tuple[str, str]] = {}  # by id of what was put: its arrays' digits then, and the line


def watch(module: ModuleType) -> None:
    """Around multiprocessing.queues."""
    patching.method(module.Queue, "put", _put)
    if hasattr(module, "_ForkingPickler"):
        module._ForkingPickler = _Pickler(module._ForkingPickler)  # type: ignore[attr-defined]


def _put(original: Any) -> Any:
    def put(self: Any, obj: Any, *args: Any, **kwargs: Any) -> Any:
        active = watching.current()
        if active is not None and active.plan.in_window(active.step) and len(_waiting) < KEPT:
            try:
                frame = where.direct(sys._getframe())
                if frame is not None:
                    with active.quiet():
                        _note(obj, where.text(frame))
            except Exception as error:
                active.trouble(error)
        return original(self, obj, *args, **kwargs)

    return put


def _note(obj: Any, line: str) -> None:
    found = _digits(obj)
    if found:
        _waiting[id(obj)] = found, line


class _Pickler:
    """In the place of ForkingPickler in the queues' module, whose thread calls ``dumps`` alone."""

    def __init__(self, original: Any) -> None:
        self._original = original

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def dumps(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        put = _waiting.pop(id(obj), None)
        active = recorder.active
        if put is not None and active is not None and not active.ended:
            try:
                with active.quiet():
                    active.event(
                        "op", QUEUED, ins=[("0", put[0], -1)], outs=[("0", _digits(obj))], where=put[1],
                        value=host_values.text([type(one).__name__ for one in _arrays(obj, 0)]),
                    )  # fmt: skip
            except Exception as error:
                active.trouble(error)
        return self._original.dumps(obj, *args, **kwargs)


def _digits(obj: Any) -> str:
    arrays = list(_arrays(obj, 0))
    if not arrays or sum(one.nbytes if hasattr(one, "nbytes") else len(one) for one in arrays) > MOST_BYTES:
        return ""
    return host_values.digits([_plain(one) for one in arrays])


def _arrays(obj: Any, depth: int) -> Iterator[Any]:
    """What can be written in place: arrays of numbers, tensors on the CPU, bytearrays."""
    if isinstance(obj, bytearray) or _is_array(obj) or _is_tensor(obj):
        yield obj
    elif depth < DEPTH and isinstance(obj, (list, tuple, dict)):
        for one in obj.values() if isinstance(obj, dict) else obj:
            yield from _arrays(one, depth + 1)


def _is_array(obj: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(obj, numpy.ndarray) and not obj.dtype.hasobject


def _is_tensor(obj: Any) -> bool:
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(obj, torch.Tensor):
        return False
    return type(obj) is torch.Tensor and obj.device.type == "cpu" and obj.layout is torch.strided


def _plain(one: Any) -> Any:
    if _is_tensor(one):
        from foxrun.tracing.checksum import on_host

        return on_host(one.detach())
    return one
