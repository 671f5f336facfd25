"""Fingerprints and texts of host values: 64 bits of BLAKE2b, since Python and numpy may be there without torch."""

from __future__ import annotations

import sys
from hashlib import blake2b
from typing import Any

CUT = 80


def digits(value: Any) -> str:
    """16 hex digits of a plain value, from its exact content and never from an address; "" for what has none."""
    content = _content(value, 0)
    return "" if content is None else blake2b(content, digest_size=8).hexdigest()


def _content(value: Any, depth: int) -> bytes | None:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return b"b" + bytes(value)
    if isinstance(value, str):
        return b"s" + value.encode("utf-8", "surrogatepass")
    if value is None or isinstance(value, (bool, int, float, complex)):
        return repr(value).encode()
    if depth < 4 and isinstance(value, (list, tuple)):
        parts = [_content(one, depth + 1) for one in value]
        if any(part is None for part in parts):
            return None
        return b"(" + b"".join(len(part or b"").to_bytes(8, "little") + (part or b"") for part in parts)
    if depth < 4 and isinstance(value, dict):
        return _content([(key, one) for key, one in value.items()], depth)
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "ndarray"):
        if isinstance(value, numpy.ndarray) and not value.dtype.hasobject:
            return f"n{value.dtype.str}{value.shape}".encode() + bytes(value.tobytes())
        if isinstance(value, numpy.generic):
            return f"n{value.dtype.str}".encode() + bytes(value.tobytes())
    return None


def text(value: Any) -> str:
    """Its repr cut to 80 characters, without addresses."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "ndarray") and isinstance(value, numpy.ndarray):
        return f"array {value.dtype}{list(value.shape)}"
    if isinstance(value, (list, tuple)) and len(value) > 40:
        value = value[:40]
    if _content(value, 0) is None:
        return type(value).__name__
    return repr(value)[:CUT]
