"""One row of steps.jsonl while it is made: leaves with fingerprints and checksums, read from the device once."""

from __future__ import annotations

import json
from typing import Any

import torch
from torch import Tensor

from foxrun.tracing import dumps
from foxrun.tracing.hashing import Hasher
from foxrun.tracing.recorder import Recorder

ORDER = ("state", "weight", "moment", "input", "activation", "outcome", "gradient")


class Row:
    """Leaves of one step. Those of one kind stay in the order in which they were taken."""

    def __init__(self, recorder: Recorder, hasher: Hasher) -> None:
        self._recorder, self._hasher = recorder, hasher
        self._leaves: dict[str, tuple[str, str, str, int | str, int | None]] = {}
        self._sums: list[Tensor] = []
        self._folder = None
        self._index: list[dict[str, Any]] = []
        if recorder.plan.dumps_step(recorder.step):
            self._folder = recorder.folder.path / "dumps" / f"step-{recorder.step}"
            self._folder.mkdir(parents=True, exist_ok=True)

    def __contains__(self, name: str) -> bool:
        return name in self._leaves

    def __len__(self) -> int:
        return len(self._leaves)

    def take(self, name: str, component: str, kind: str, tensor: Tensor) -> None:
        """A tensor as it is now. What cannot be read (sparse, meta, in a graph's capture) leaves no fingerprint."""
        if tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type == "meta":
            return
        if tensor.is_cuda and torch.cuda.is_current_stream_capturing():
            return
        if type(tensor) not in (Tensor, torch.nn.Parameter):
            tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor.as_subclass(Tensor)
        place = None
        if tensor.is_floating_point() and not tensor.dtype.itemsize < 2:
            place = len(self._sums)
            self._sums.append(tensor.detach().sum(dtype=torch.float64))
        self._leaves[name] = (name, component, kind, self._hasher.add(tensor), place)
        if self._folder is not None:
            about = dumps.write_tensor(self._folder / f"{len(self._index):05d}.bin", tensor)
            self._index.append({"leaf": name, "component": component, "kind": kind, **about})

    def state(self, name: str, digits: str) -> None:
        """A host state, a generator's for one."""
        self._leaves[name] = (name, "generator", "state", digits, None)

    def line(self, step: int, end: bool = False) -> str:
        """The row as JSON; waits for the device."""
        values = self._hasher.resolve()  # of this row alone: the next one has taken no tensor yet
        sums: list[float] = []
        if self._sums:
            sums = _on_host(self._sums)
        leaves = sorted(self._leaves.values(), key=lambda leaf: ORDER.index(leaf[2]))
        listed = [
            [
                name,
                component,
                kind,
                print_ if isinstance(print_, str) else f"{values[print_]:016x}",
                _checksum(sums, place),
            ]
            for name, component, kind, print_, place in leaves
        ]
        if self._folder is not None:
            (self._folder / "index.json").write_text(json.dumps(self._index, indent=1) + "\n", encoding="utf-8")
        row: dict[str, Any] = {"step": step, "leaves": listed}
        if end:
            row["end"] = True
        return json.dumps(row, separators=(",", ":"))


def _on_host(values: list[Tensor]) -> list[float]:
    """0-d tensors of any devices as numbers, with one wait for each device."""
    found = [0.0] * len(values)
    for device in {value.device for value in values}:
        places = [place for place, value in enumerate(values) if value.device == device]
        for place, number in zip(places, torch.stack([values[place] for place in places]).tolist(), strict=True):
            found[place] = number
    return found


def _checksum(sums: list[float], place: int | None) -> float | str | None:
    if place is None:
        return None
    value = sums[place]
    if value != value:
        return "NaN"
    return value if abs(value) != float("inf") else ("Infinity" if value > 0 else "-Infinity")
