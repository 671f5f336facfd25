"""Fingerprint, version 1: 64 bits of a leaf's stored bits, their positions and their number.

The definition, with byte layouts and a worked example, is in docs/run-contract.md. This is the plain one, for bytes and
buffers; tensors are handed to ``foxrun.tensor_fingerprint``, which gives the same value on the tensor's own device.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # `import foxrun` brings this module in: nothing slow is imported before it is needed
if TYPE_CHECKING:
    from array import array
    from typing import Any

    from foxrun.problems import ContractError

FINGERPRINT_VERSION = 1
MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
MIX_1 = 0xBF58476D1CE4E5B9
MIX_2 = 0x94D049BB133111EB
_TYPECODES = {1: "B", 2: "H", 4: "I", 8: "Q"}


def mix(z: int) -> int:
    """The finaliser of splitmix64 (Steele, Lea, Flood 2014; Stafford's variant 13), over 0..2^64-1."""
    z ^= z >> 30
    z = z * MIX_1 & MASK
    z ^= z >> 27
    z = z * MIX_2 & MASK
    return z ^ z >> 31


def header(elements: int, itemsize: int) -> int:
    """The term that makes length and width count: mix(256 n + b)."""
    return mix((256 * elements + itemsize) & MASK)


def fingerprint(data: Any, itemsize: int | None = None) -> int:
    """Fingerprint of a leaf, 1..2^64-1; never 0, which in bits.u64 means "not taken in this row".

    ``data``: a torch tensor of any strides and device, or anything with the buffer protocol: ``bytes`` of little-endian
    elements in row-major order with their ``itemsize`` (1, 2, 4 or 8; 1 when left out), or an ``array.array``, a
    ``memoryview`` or a numpy array, which know their own. A complex number is two elements, real part first; a bool is
    one byte, 0 or 1. Raises ContractError for other element sizes and for bytes that are no whole number of elements.
    """
    torch = sys.modules.get("torch")  # whoever holds a tensor has imported it
    if torch is not None and isinstance(data, torch.Tensor):
        from foxrun.tensor_fingerprint import fingerprint_tensor

        if itemsize is not None:
            raise _error("a tensor knows its element size", remedy="leave itemsize out")
        return int(fingerprint_tensor(data).item()) & MASK

    words = _words(data, itemsize)
    total = header(len(words), words.itemsize)
    position = 0
    for word in words:
        position += GOLDEN
        z = (word + position) & MASK
        z ^= z >> 30
        z = z * MIX_1 & MASK
        z ^= z >> 27
        z = z * MIX_2 & MASK
        total += z ^ z >> 31
    return total & MASK or 1


def _words(data: Any, itemsize: int | None) -> array[int]:
    """The elements' stored bits as unsigned integers, in row-major order."""
    from array import array

    try:
        view = memoryview(data)
    except TypeError:
        raise _error(
            f"cannot take a fingerprint of {type(data).__name__}",
            remedy="give a torch tensor, bytes with their itemsize, or an object with the buffer protocol",
        ) from None
    form = view.format
    swapped = sys.byteorder == "big"
    if form[:1] in "<>=!@" and form[:1]:
        if form[0] in ">!":
            swapped = not swapped and view.itemsize > 1
        elif form[0] in "=@":
            swapped = False
        form = form[1:]
    elif form not in ("B", "b", "c"):
        swapped = False  # a buffer without a byte order is in the machine's own
    size = view.itemsize
    if form[:1] == "Z":  # PEP 3118: complex
        size //= 2
    if itemsize is not None:
        if form not in ("B", "b", "c") and itemsize != size:
            raise _error(f"itemsize {itemsize} was given for elements of {size} bytes", remedy="leave itemsize out")
        size = itemsize
    if size not in _TYPECODES:
        raise _error(
            f"elements of {size} bytes have no fingerprint in version {FINGERPRINT_VERSION}",
            remedy="use elements of 1, 2, 4 or 8 bytes",
        )
    raw = view.tobytes()
    if len(raw) % size:
        raise _error(f"{len(raw)} bytes are no whole number of elements of {size} bytes", remedy="check the itemsize")
    words = array(_TYPECODES[size])
    if form == "?":
        words.frombytes(bytes(map(bool, raw)))
        return words
    words.frombytes(raw)
    if swapped and size > 1:
        words.byteswap()
    return words


def _error(what: str, remedy: str) -> ContractError:
    from foxrun.problems import ContractError

    return ContractError(what, remedy=remedy)
