"""Tensors kept as files: raw little-endian bytes, and a JSON beside them that says what they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from foxrun.tracing.recorder import Recorder


def wanted(recorder: Recorder, index: int) -> EventDump | None:
    """Where this event's tensors go, if the plan asks for them."""
    if (recorder.folder.process, index) not in recorder.plan.dump:
        return None
    folder = recorder.folder.path / "dumps" / f"event-{index}"
    folder.mkdir(parents=True, exist_ok=True)
    return EventDump(folder, index)


class EventDump:
    """One event's arguments and results."""

    def __init__(self, folder: Path, index: int) -> None:
        self._folder = folder
        self._about: dict[str, Any] = {"i": index}

    def inputs(self, func: Any, args: Any, kwargs: Any) -> None:
        """Before the call: what it was called with."""
        import torch

        self._about["name"] = str(func)
        if torch.Tag.nondeterministic_seeded in func.tags:
            states = {"cpu": torch.default_generator}
            if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
                states |= {f"cuda:{index}": one for index, one in enumerate(torch.cuda.default_generators)}
            self._about["default_generators"] = {
                name: bytes(one.get_state().tolist()).hex() for name, one in states.items()
            }
        self._about["args"] = self._encode(list(args), "in")
        self._about["kwargs"] = self._encode(kwargs, "in")

    def outputs(self, results: list[tuple[str, Any]]) -> None:
        """After the call: what it wrote and returned."""
        self._about["outs"] = [[label, self._encode(tensor, "out")] for label, tensor in results]
        (self._folder / "event.json").write_text(json.dumps(self._about, indent=1) + "\n", encoding="utf-8")

    def _encode(self, value: Any, prefix: str) -> Any:
        import torch

        if isinstance(value, torch.Tensor):
            number = self._about[prefix] = self._about.get(prefix, -1) + 1
            return write_tensor(self._folder / f"{prefix}-{number}.bin", value)
        if isinstance(value, (list, tuple)):
            return [self._encode(one, prefix) for one in value]
        if isinstance(value, dict):
            return {key: self._encode(one, prefix) for key, one in value.items()}
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return {"float": value.hex()}
        if isinstance(value, complex):
            return {"complex": [value.real.hex(), value.imag.hex()]}
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
            return {"torch": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {"device": str(value)}
        if isinstance(value, torch.Generator):
            return {"generator": str(value.device), "state": bytes(value.get_state().tolist()).hex()}
        return {"unsupported": type(value).__name__}


def write_tensor(path: Path, tensor: Any) -> dict[str, Any]:
    """Write a tensor's stored bits in row-major order; returns what a reader needs: file, dtype, shape, strides."""
    import torch

    about = {
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "shape": list(tensor.shape),
        "device": str(tensor.device),
    }
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type == "meta":
        return {"unsupported": f"a tensor of layout {tensor.layout} on {tensor.device}", **about}
    plain = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
    raw = plain.reshape(-1).view(torch.uint8) if plain.dtype != torch.bool else plain.reshape(-1).to(torch.uint8)
    storage = raw.untyped_storage()
    first = raw.storage_offset()
    import ctypes

    data = ctypes.string_at(storage.data_ptr() + first, raw.numel()) if raw.numel() else b""
    path.write_bytes(data)
    return {"file": path.name, "strides": list(tensor.stride()), **about}
