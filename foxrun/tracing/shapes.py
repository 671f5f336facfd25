"""Arguments of operations as text: dtype and shape of tensors, the repr of scalars; no address, no tensor's value."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_DTYPES = {
    torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64",
    torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8", torch.bool: "b1",
    torch.complex64: "c64", torch.complex128: "c128",
}  # fmt: skip


def shape_of(tensor: Tensor) -> str:
    """``f32[8,4]``."""
    dtype = _DTYPES.get(tensor.dtype) or str(tensor.dtype).removeprefix("torch.")
    return f"{dtype}[{','.join(map(str, tensor.shape))}]"


def describe(value: Any) -> str:
    """An argument without addresses or values of tensors."""
    if isinstance(value, Tensor):
        return shape_of(value)
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(describe, value))}]"
    if value is None or isinstance(value, (bool, int, float, str, complex)):
        return repr(value)[:60]
    if isinstance(value, (torch.dtype, torch.device, torch.layout, torch.memory_format)):
        return str(value).removeprefix("torch.")
    return type(value).__name__
