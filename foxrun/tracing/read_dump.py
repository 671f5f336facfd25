"""Reads what dumps.py kept: the operation, and its arguments in memory of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor


class Unsupported(Exception):
    """This event cannot be run alone from what was kept of it; the text says why."""


def function_of(name: str) -> Any:
    """``aten.index_add_.default`` as the OpOverload. Raises Unsupported for what torch alone does not know."""
    if name.startswith(("autograd.", "triton.")):
        raise Unsupported(f"{name} is the program's own kernel: it runs only inside the program")
    found: Any = torch.ops
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except (AttributeError, RuntimeError):
            raise Unsupported(f"{name} is not an operation that torch alone knows: the program registers it") from None
    return found


def arguments(folder: Path, about: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Positional and named arguments, fresh copies; a default generator is set to the state that it had."""
    for device, state in about.get("default_generators", {}).items():
        generator = (
            torch.default_generator
            if device == "cpu"
            else torch.cuda.default_generators[torch.device(device).index or 0]
        )
        generator.set_state(_bytes(state))
    args = [decoded(folder, item) for item in about["args"]]
    return args, {key: decoded(folder, item) for key, item in about["kwargs"].items()}


def decoded(folder: Path, item: Any) -> Any:
    """One argument."""
    if isinstance(item, list):
        return [decoded(folder, one) for one in item]
    if not isinstance(item, dict):
        return item
    if "unsupported" in item:
        raise Unsupported(f"an argument could not be kept: {item['unsupported']}")
    if "file" in item:
        return tensor(folder, item)
    if "float" in item:
        return float.fromhex(item["float"])
    if "complex" in item:
        return complex(*(float.fromhex(part) for part in item["complex"]))
    if "torch" in item:
        return getattr(torch, item["torch"])
    if "device" in item:
        return torch.device(item["device"])
    if "generator" in item:
        generator = torch.Generator(item["generator"])
        generator.set_state(_bytes(item["state"]))
        return generator
    return {key: decoded(folder, one) for key, one in item.items()}


def tensor(folder: Path, item: dict[str, Any]) -> Tensor:
    """A dumped tensor with its dtype, shape, strides and device."""
    dtype = getattr(torch, item["dtype"])
    data = (folder / item["file"]).read_bytes()
    flat = torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else torch.zeros(0, dtype=torch.uint8)
    plain = (flat.bool() if dtype == torch.bool else flat.view(dtype)).reshape(item["shape"])
    shape, strides, device = item["shape"], item["strides"], item["device"]
    if 0 in strides:  # an expanded tensor holds each element once
        small = plain[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in strides)]
        return small.to(device).expand(shape)
    return torch.empty_strided(shape, strides, dtype=dtype, device=device).copy_(plain)


def _bytes(digits: str) -> Tensor:
    return torch.tensor(list(bytes.fromhex(digits)), dtype=torch.uint8)
