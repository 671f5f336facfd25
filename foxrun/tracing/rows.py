"""One row of steps.jsonl while it is made: leaves with fingerprints and checksums, read from the device once."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Collection
from typing import Any

import torch
from torch import Tensor

from foxrun.tracing import dumps
from foxrun.tracing.checksum import has_memory
from foxrun.tracing.hashing import Hasher, unwrapped
from foxrun.tracing.recorder import Recorder

ORDER = ("state", "weight", "moment", "input", "thread", "activation", "outcome", "gradient")
MASK = (1 << 64) - 1
NUMBER = re.compile(r"(?<=^input)\.\d+$|@\d+")  # which call of its thread's it was


class Row:
    """Leaves of one step. Those of one kind stay in the order in which they were taken."""

    def __init__(self, recorder: Recorder, hasher: Hasher) -> None:
        self._recorder, self._hasher = recorder, hasher
        self._leaves: dict[str, tuple[str, str, str, int | str, int | None]] = {}
        self._sums: list[Tensor] = []
        self._aside: dict[int, list[tuple[str, str, int, int | None]]] = {}  # thread -> what it computed
        self._lock = threading.Lock()
        self._folder = None
        self._index: list[dict[str, Any]] = []
        if recorder.plan.dumps_step(recorder.step):
            self._folder = recorder.folder.path / "dumps" / f"step-{recorder.step}"
            self._folder.mkdir(parents=True, exist_ok=True)

    def __contains__(self, name: str) -> bool:
        return name in self._leaves

    def __len__(self) -> int:
        return len(self._leaves)

    def take(self, name: str, component: str, kind: str, tensor: Tensor, thread: int | None = None) -> None:
        """A tensor as it is now. What cannot be read (sparse, meta, in a graph's capture) leaves no fingerprint.

        ``thread``: the ident of one that may not be the program's training one; see ``line``.
        """
        if tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type == "meta":
            return
        if tensor.is_cuda and torch.cuda.is_current_stream_capturing():
            return
        if type(tensor) not in (Tensor, torch.nn.Parameter):
            if hasattr(tensor, "__tensor_flatten__") and not hasattr(tensor, "full_tensor"):
                for inner in tensor.__tensor_flatten__()[0]:  # a wrapper: what it holds counts
                    self.take(f"{name}.{inner}", component, kind, getattr(tensor, inner), thread)
                return
            tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor.as_subclass(Tensor)
        tensor = unwrapped(tensor)
        place = None
        total = None
        if tensor.is_floating_point() and not tensor.dtype.itemsize < 2 and has_memory(tensor):
            total = tensor.detach().sum(dtype=torch.float64)
        slot = self._hasher.add(tensor)
        with self._lock:
            if total is not None:
                place = len(self._sums)
                self._sums.append(total)
            if thread is None:
                self._leaves[name] = (name, component, kind, slot, place)
            else:
                self._aside.setdefault(thread, []).append((name, component, slot, place))
        if self._folder is not None and thread is None:
            about = dumps.write_tensor(self._folder / f"{len(self._index):05d}.bin", tensor)
            self._index.append({"leaf": name, "component": component, "kind": kind, **about})

    def state(self, name: str, digits: str) -> None:
        """A host state, a generator's for one."""
        self._leaves[name] = (name, "generator", "state", digits, None)

    def adopt(self, threads: Collection[int]) -> None:
        """What these threads computed counts as the training's own."""
        for thread in sorted(set(threads) & self._aside.keys()):
            for name, component, slot, place in self._aside.pop(thread):
                kind = "outcome" if name.startswith("loss") else name.partition(".")[0]
                self._leaves[name] = (name, component, kind, slot, place)

    def line(self, step: int, end: bool = False) -> str:
        """The row as JSON; waits for the device.

        Which of several threads takes which part of the work is a race that harms nobody, so of what they computed
        beside the training one a row holds one leaf a name: the sum of the fingerprints, in whatever order.
        """
        with self._lock:
            aside = [item for items in self._aside.values() for item in items]
        values = self._hasher.kept  # the next row's too, where threads have begun it
        values.update(self._hasher.resolve())
        sums: list[float] = []
        if self._sums:
            sums = _on_host(self._sums)
        leaves = sorted(self._leaves.values(), key=lambda leaf: ORDER.index(leaf[2]))
        listed = [
            [
                name,
                component,
                kind,
                print_ if isinstance(print_, str) else f"{values.pop(print_):016x}",
                _checksum(sums, place),
            ]
            for name, component, kind, print_, place in leaves
        ]
        at = sum(1 for leaf in leaves if ORDER.index(leaf[2]) < ORDER.index("thread"))
        listed[at:at] = _beside(aside, values, sums)
        if self._folder is not None:
            (self._folder / "index.json").write_text(json.dumps(self._index, indent=1) + "\n", encoding="utf-8")
        row: dict[str, Any] = {"step": step, "leaves": listed}
        if end:
            row["end"] = True
        return json.dumps(row, separators=(",", ":"))


def _beside(aside: list[tuple[str, str, int, int | None]], values: dict[int, int], sums: list[float]) -> list[Any]:
    """One leaf for each name of what other threads computed."""
    bags: dict[str, tuple[str, int, float | None]] = {}
    for name, component, slot, place in aside:
        known = bags.get(name := NUMBER.sub("", name), (component, 0, None))
        total = known[2] if place is None else (known[2] or 0.0) + sums[place]
        bags[name] = (min(known[0], component), (known[1] + values.pop(slot)) & MASK, total)
    return [
        [f"threads.{name}", component, "thread", f"{digits:016x}", _shown(total)]
        for name, (component, digits, total) in sorted(bags.items())
    ]


def _on_host(values: list[Tensor]) -> list[float]:
    """0-d tensors of any devices as numbers, with one wait for each device."""
    found = [0.0] * len(values)
    for device in {value.device for value in values}:
        places = [place for place, value in enumerate(values) if value.device == device]
        for place, number in zip(places, torch.stack([values[place] for place in places]).tolist(), strict=True):
            found[place] = number
    return found


def _checksum(sums: list[float], place: int | None) -> float | str | None:
    return None if place is None else _shown(sums[place])


def _shown(value: float | None) -> float | str | None:
    if value is None:
        return None
    if value != value:
        return "NaN"
    return value if abs(value) != float("inf") else ("Infinity" if value > 0 else "-Infinity")
