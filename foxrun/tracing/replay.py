"""Runs one dumped operation alone on its exact inputs, many times, and says in JSON how often its outputs differ.

    python -m foxrun.tracing.replay DUMP [--runs N] [--threads 1,2,4]

DUMP is dumps/event-<i>/ of a trace. Exit 0 with a result; 1 with {"unsupported": why} where it cannot be run alone.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from foxrun.fingerprint import MASK
from foxrun.tracing.read_dump import Unsupported, arguments, function_of


def main(words: list[str]) -> int:
    """Replay and print one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m foxrun.tracing.replay", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("dump", type=Path)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--threads", default="", help="numbers of CPU threads to try besides, 1,2,4")
    given = parser.parse_args(words)
    try:
        about = json.loads((given.dump / "event.json").read_text("utf-8"))
        found = replay(given.dump, about, given.runs, [int(word) for word in given.threads.split(",") if word])
    except Unsupported as error:
        print(json.dumps({"unsupported": str(error)}))  # noqa: T201
        return 1
    except (OSError, ValueError, KeyError) as error:
        print(json.dumps({"unsupported": f"{given.dump}: no dump of an event: {error}"}))  # noqa: T201
        return 1
    print(json.dumps(found))  # noqa: T201
    return 0


def replay(folder: Path, about: dict[str, Any], runs: int, threads: list[int]) -> dict[str, Any]:
    """The whole report: ``runs`` repetitions as they are, then one for each thing that must not matter."""
    func = function_of(about["name"])
    first = once(folder, about, func)
    prints = [digits(tensor) for tensor in first]
    report: dict[str, Any] = {"name": about["name"], "runs": runs, "prints": prints}
    report["recorded"] = [item[1].get("fingerprint") for item in about.get("outs", []) if isinstance(item[1], dict)]
    report |= repeated(folder, about, func, first, runs)
    usual = torch.get_num_threads()
    report["usual_threads"] = usual
    report["threads"] = {}
    for count in threads:
        torch.set_num_threads(count)
        report["threads"][str(count)] = [digits(tensor) for tensor in once(folder, about, func)]
    torch.set_num_threads(usual)
    report["streams"] = on_another_stream(folder, about, func)
    report["allocations"] = with_other_allocations(folder, about, func)
    return report


def once(folder: Path, about: dict[str, Any], func: Any) -> list[Tensor]:
    """One run on fresh copies: tensors that it wrote, in the order of its arguments, then those that it returned."""
    args, kwargs = arguments(folder, about)
    with torch.no_grad():
        result = func(*args, **kwargs)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    written: list[Tensor] = []
    for place, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = kwargs.get(argument.name) if place >= len(args) else args[place]
            written += flat(value)
    mine = {id(tensor) for tensor in written}
    return written + [tensor for tensor in flat(result) if id(tensor) not in mine]


def repeated(folder: Path, about: dict[str, Any], func: Any, first: list[Tensor], runs: int) -> dict[str, Any]:
    """How many of ``runs`` part from the first, by how much at most, and where first: output and flat index."""
    parted, ulp, size, place = 0, 0, 0.0, None
    for _ in range(runs):
        again = once(folder, about, func)
        differs = [
            number for number, pair in enumerate(zip(first, again, strict=True)) if digits(pair[0]) != digits(pair[1])
        ]
        parted += bool(differs)
        for number in differs:
            far, large, index = distance(first[number], again[number])
            ulp, size = max(ulp, far), max(size, large)
            place = place or {"output": number, "index": index}
    return {"parted": parted, "max_ulp": ulp, "max_abs": size, "first_place": place}


def on_another_stream(folder: Path, about: dict[str, Any], func: Any) -> list[str] | None:
    """Fingerprints from a stream of its own; None without CUDA inputs."""
    if not any(tensor.is_cuda for tensor in flat(list(arguments(folder, about)))):
        return None
    with torch.cuda.stream(torch.cuda.Stream()):  # type: ignore[no-untyped-call]
        return [digits(tensor) for tensor in once(folder, about, func)]


def with_other_allocations(folder: Path, about: dict[str, Any], func: Any) -> list[list[str]]:
    """Fingerprints with memory around it that was filled with other bytes and lies elsewhere."""
    devices = {tensor.device for tensor in flat(list(arguments(folder, about)))} or {torch.device("cpu")}
    found = []
    for byte, odd in ((0x55, 1), (0xAA, 8191)):
        for device in sorted(devices, key=str):
            # Freed filled: what the operation takes unfilled holds these bytes.
            blocks = [
                torch.full((size + odd,), byte, dtype=torch.uint8, device=device)
                for size in (512, 8192, 1 << 16, 1 << 20)
            ]
            del blocks
        found.append([digits(tensor) for tensor in once(folder, about, func)])
    return found


def digits(tensor: Tensor) -> str:
    """The fingerprint, 16 hex digits."""
    from foxrun.tensor_fingerprint import fingerprint_tensor

    return f"{int(fingerprint_tensor(tensor).item()) & MASK:016x}"


def distance(a: Tensor, b: Tensor) -> tuple[int, float, int]:
    """Largest distance in units in the last place and absolute, and the flat index of the first difference.

    The first two are 0 where there is no distance: integers, NaN.
    """
    x, y = a.detach().cpu().reshape(-1), b.detach().cpu().reshape(-1)
    wide = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    if x.is_complex():
        x, y = torch.view_as_real(x).reshape(-1), torch.view_as_real(y).reshape(-1)
    bits_x, bits_y = (side.contiguous().view(wide[side.element_size()]) for side in (x, y))
    index = int(torch.nonzero(bits_x != bits_y)[0].item())
    if not x.is_floating_point():
        return 0, 0.0, index
    finite = torch.isfinite(x) & torch.isfinite(y)
    if not bool(finite.any()):
        return 0, 0.0, index
    lowest = -(1 << (8 * x.element_size() - 1))
    ordered = [
        torch.where(bits < 0, lowest - bits.to(torch.int64), bits.to(torch.int64))[finite] for bits in (bits_x, bits_y)
    ]
    size = float((x.double() - y.double())[finite].abs().max().item())
    return int((ordered[0] - ordered[1]).abs().max().item()), size if math.isfinite(size) else 0.0, index


def flat(value: Any) -> list[Tensor]:
    """All tensors in a value, in order."""
    return list(_flat(value))


def _flat(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _flat(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from _flat(one)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
