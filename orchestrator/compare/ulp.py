"""The distance of two float64 in units in the last place: how many representable numbers lie between them."""

from __future__ import annotations

import math
import struct


def ordered(value: float) -> int:
    """An integer that grows with the float: neighbours differ by 1, and both zeros are 0."""
    bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return bits if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF)


def ulp_distance(a: float, b: float) -> int | None:
    """Floats between a and b, 0 when equal (and for -0.0 and 0.0); None when either is not finite."""
    if not (math.isfinite(a) and math.isfinite(b)):
        return None
    return abs(ordered(a) - ordered(b))
