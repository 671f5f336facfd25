"""Runs one dumped operation again and again on its own inputs, and says how often its outputs differ. A program:

python reenact.py DUMP_FOLDER RUNS [THREADS,THREADS...]     -> one JSON object on stdout
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import torch


def main(arguments: list[str]) -> int:
    """Replay and print the result; 1 with an object ``{"unsupported": why}`` where that cannot be done."""
    folder, runs = Path(arguments[0]), int(arguments[1])
    counts = [int(word) for word in arguments[2].split(",")] if len(arguments) > 2 and arguments[2] else []
    try:
        about = json.loads((folder / "event.json").read_text("utf-8"))
        func = function_of(about["name"])
        first = once(folder, about, func)
        report: dict[str, Any] = {"name": about["name"], "runs": runs, **repeated(folder, about, func, first, runs)}
        report["prints"] = [prints(tensor) for tensor in first]
        report["threads"] = {}
        usual = torch.get_num_threads()
        for count in counts:
            torch.set_num_threads(count)
            report["threads"][str(count)] = [prints(tensor) for tensor in once(folder, about, func)]
        torch.set_num_threads(usual)
        report["usual_threads"] = usual
    except Unsupported as error:
        print(json.dumps({"unsupported": str(error)}))  # noqa: T201
        return 1
    print(json.dumps(report))  # noqa: T201
    return 0


class Unsupported(Exception):
    """This event cannot be run from what was kept of it."""


def function_of(name: str) -> Any:
    """``aten.index_add_.default`` as the OpOverload. Raises Unsupported for an operation that is not torch's here."""
    found: Any = torch.ops
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except (AttributeError, RuntimeError):
            raise Unsupported(f"{name} is not an operation that torch alone knows") from None
    return found


def once(folder: Path, about: dict[str, Any], func: Any) -> list[torch.Tensor]:
    """One run on fresh copies: tensors that it wrote into, in the order of arguments, then those that it returned."""
    args = [decoded(folder, item) for item in about["args"]]
    kwargs = {key: decoded(folder, item) for key, item in about["kwargs"].items()}
    with torch.no_grad():
        result = func(*args, **kwargs)
    schema = func._schema
    written = [
        value
        for argument, value in zip(schema.arguments, args, strict=False)
        if argument.alias_info is not None and argument.alias_info.is_write
    ]
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return [tensor for value in (*written, result) for tensor in tensors(value)]


def repeated(folder: Path, about: dict[str, Any], func: Any, first: list[torch.Tensor], runs: int) -> dict[str, Any]:
    """How many of ``runs`` differ from the first, and by how much at most."""
    parted, most_ulp, most_abs = 0, 0, 0.0
    keep: list[torch.Tensor] = []
    for number in range(runs):
        # Other addresses each time: what was handed out before is kept for a while.
        keep.append(torch.empty(1 + 8191 * (number % 5), dtype=torch.uint8))
        again = once(folder, about, func)
        differ = False
        for one, other in zip(first, again, strict=True):
            if prints(one) != prints(other):
                differ = True
                ulp, size = distance(one, other)
                most_ulp, most_abs = max(most_ulp, ulp), max(most_abs, size)
        parted += differ
    return {"parted": parted, "max_ulp": most_ulp, "max_abs": most_abs}


def prints(tensor: torch.Tensor) -> str:
    """The fingerprint, 16 hex digits."""
    from foxrun.fingerprint import fingerprint

    return f"{fingerprint(tensor):016x}"


def distance(a: torch.Tensor, b: torch.Tensor) -> tuple[int, float]:
    """Largest distance in units in the last place, and absolute; (0, 0.0) for what has no distance."""
    if not a.is_floating_point() or a.shape != b.shape:
        return 0, 0.0
    x, y = a.detach().cpu().reshape(-1), b.detach().cpu().reshape(-1)
    size = (x.double() - y.double()).abs().nan_to_num(0.0, 0.0, 0.0).max().item() if x.numel() else 0.0
    wide = {2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()]
    steps = []
    for side in (x, y):
        bits = side.contiguous().view(wide).to(torch.int64)
        lowest = -(1 << (8 * x.element_size() - 1))
        steps.append(torch.where(bits < 0, lowest - bits, bits))
    far = (steps[0] - steps[1]).abs()
    finite = torch.isfinite(x) & torch.isfinite(y)
    ulp = int(far[finite].max().item()) if bool(finite.any()) else 0
    return ulp, float(size) if math.isfinite(size) else 0.0


def tensors(value: Any) -> list[torch.Tensor]:
    """All tensors in a result, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors(item)]
    return []


def decoded(folder: Path, item: Any) -> Any:
    """An argument from what foxrun/tracing/dumps.py kept of it, in memory of its own."""
    if isinstance(item, list):
        return [decoded(folder, one) for one in item]
    if not isinstance(item, dict):
        return item
    if "unsupported" in item:
        raise Unsupported(f"an argument was not kept: {item['unsupported']}")
    if "file" in item:
        return _tensor(folder, item)
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
        generator.set_state(torch.tensor(list(bytes.fromhex(item["state"])), dtype=torch.uint8))
        return generator
    return {key: decoded(folder, one) for key, one in item.items()}


def _tensor(folder: Path, item: dict[str, Any]) -> torch.Tensor:
    dtype = getattr(torch, item["dtype"])
    data = (folder / item["file"]).read_bytes()
    flat = torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else torch.zeros(0, dtype=torch.uint8)
    plain = (flat.bool() if dtype == torch.bool else flat.view(dtype)).reshape(item["shape"])
    strided = torch.empty_strided(item["shape"], item["strides"], dtype=dtype, device=item["device"])
    if 0 in item["strides"]:  # an expanded tensor holds each element once
        return plain.to(item["device"])
    return strided.copy_(plain)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
