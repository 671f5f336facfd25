"""Random generators: their states as fingerprints, who seeded them, and what drew from them last.

Names are given in the order in which generators are met: ``generator.python``, ``generator.numpy``,
``generator.torch``, ``generator.cuda0``, then ``generator.numpy.1``, ``generator.torch.1``, ``generator.python.1``.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import weakref
from array import array
from hashlib import blake2b
from typing import Any

from foxrun.tracing import recorder

_names: dict[int, tuple[str, Any]] = {}  # id -> name, weak reference (or the object, where it takes none)
_counts: dict[str, int] = {}
_last: dict[str, int] = {}  # name -> the event that drew from it or seeded it last
_used: set[str] = set()
_first: dict[str, str] = {}  # states as they were before the program drew or seeded
_watched: list[tuple[str, Any]] = []  # those seen being made, in order: name, weak reference


def known(generator: Any, family: str) -> str:
    """The name of a generator; a new one gets the next number of its family."""
    key = _key(generator)
    entry = _names.get(key)
    if entry is not None and (_target(entry[1]) is generator or key != id(generator)):
        return entry[0]
    thread = recorder.active.thread() if recorder.active is not None else 0
    family = f"{family}.thread{thread}" if thread else family  # threads make theirs in turns that timing decides
    _counts[family] = _counts.get(family, 0) + 1
    name = f"generator.{family}.{_counts[family]}"
    _keep(name, generator)
    return name


def _keep(name: str, generator: Any) -> None:
    try:
        reference: Any = weakref.ref(generator)
    except TypeError:
        reference = lambda: generator  # noqa: E731  (it takes no weak reference: kept, it is small)
    _names[_key(generator)] = (name, reference)
    _watched.append((name, reference))


def _key(generator: Any) -> int:
    """torch wraps one generator in ever new objects; its own address stays."""
    return int(getattr(generator, "_cdata", 0)) or id(generator)


def forked() -> None:
    """In a forked child: the parent's events are none of its own."""
    _last.clear()


def call_it(name: str, generator: Any) -> None:
    """The program's own name for a generator."""
    _watched[:] = [one for one in _watched if _key(one[1]()) != _key(generator)]
    _keep(name, generator)
    _used.add(name)


def used(name: str) -> None:
    """The program draws from this generator: from now on its state belongs to a step's."""
    _used.add(name)


def _target(reference: Any) -> Any:
    return reference()


def last_event(name: str) -> int:
    """The event that changed this generator last, or -1."""
    return _last.get(name, -1)


def torch_drawn(name: str, event: int) -> None:
    """``event`` has drawn from it, or seeded it."""
    _last[name] = event


def in_use(name: str) -> bool:
    """Whether ``used`` was called for it."""
    return name in _used


def name_of_torch(generator: Any, device: Any) -> str:
    """``generator`` None: the default one of the device."""
    torch = sys.modules["torch"]
    if generator is None or _key(generator) == _key(torch.default_generator):
        if generator is not None or device.type != "cuda":
            return "generator.torch"
        return f"generator.cuda{torch.cuda.current_device() if device.index is None else device.index}"
    if generator.device.type == "cuda":
        for index, default in enumerate(torch.cuda.default_generators):
            if _key(default) == _key(generator):
                return f"generator.cuda{index}"
    return known(generator, "torch")


def torch_state(generator: Any, device: Any) -> tuple[str, str, int]:
    """Label, fingerprint of the state, last event: an input or output of a draw."""
    torch = sys.modules["torch"]
    name = name_of_torch(generator, device)
    _used.add(name)
    if generator is None:
        if device.type == "cuda":
            if torch.cuda.is_current_stream_capturing():
                return name, "", last_event(name)
            index = torch.cuda.current_device() if device.index is None else device.index
            generator = torch.cuda.default_generators[index]
        else:
            generator = torch.default_generator
    return name, state_digits(generator), last_event(name)


def state_digits(generator: Any) -> str:
    """Fingerprint of a generator's state, 16 hex digits; nothing is drawn."""
    return blake2b(_state(generator), digest_size=8).hexdigest()


def _state(generator: Any) -> bytes:
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "Generator") and isinstance(generator, torch.Generator):
        state = generator.get_state()
        return ctypes.string_at(state.data_ptr(), state.numel())
    if hasattr(generator, "getstate"):  # random.Random
        version, words, gauss = generator.getstate()
        return array("Q", words).tobytes() + repr((version, gauss)).encode()
    bits = getattr(generator, "bit_generator", None)  # numpy's Generator
    state = bits.state if bits is not None else generator.get_state(legacy=False)
    return _plain(state)


def _plain(value: Any) -> bytes:
    if isinstance(value, dict):
        return b"{" + b",".join(key.encode() + b":" + _plain(value[key]) for key in sorted(value)) + b"}"
    if hasattr(value, "tobytes"):
        return bytes(value.tobytes())
    return repr(value).encode()


def states() -> list[tuple[str, str]]:
    """Name and state of the generators in use: the global ones, then those seen being made, in order.

    The global ones start from the machine's entropy: they count from their first draw or seed on.
    """
    found: list[tuple[str, str]] = []
    random = sys.modules.get("random")
    if "generator.python" in _used and random is not None and hasattr(random, "_inst"):
        found.append(("generator.python", state_digits(random._inst)))
    mtrand = sys.modules.get("numpy.random.mtrand")
    if "generator.numpy" in _used and mtrand is not None and hasattr(mtrand, "_rand"):
        found.append(("generator.numpy", state_digits(mtrand._rand)))
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "default_generator"):
        digits = state_digits(torch.default_generator)
        if _first.setdefault("generator.torch", digits) != digits:
            _used.add("generator.torch")
        if "generator.torch" in _used:
            found.append(("generator.torch", digits))
        cuda = getattr(torch, "cuda", None)
        if cuda is not None and cuda.is_initialized() and not cuda.is_current_stream_capturing():
            for index, generator in enumerate(cuda.default_generators):
                found.append((f"generator.cuda{index}", state_digits(generator)))
    for name, reference in list(_watched):
        generator = reference()
        if generator is None:
            _watched.remove((name, reference))
        elif name in _used:
            with contextlib.suppress(NotImplementedError):  # a class of the program's own that keeps none
                found.append((name, state_digits(generator)))
    return found
