"""The rows of diag.jsonl, whatever has become of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from dataclasses import dataclass
from typing import Any, BinaryIO

from foxrun import jsonio, schema
from foxrun.problems import Problem

_OWN_KEYS = ("step", "phase", "checksums", "metrics")


@dataclass(frozen=True)
class Row:
    """One row of diag.jsonl. ``index``: its place from 0, which is its row of bits.u64; ``line``: from 1.

    ``metrics`` also holds keys that the row has beside the four (as ``/key`` where metrics has that key already).
    """

    index: int
    line: int
    step: int
    phase: str
    checksums: dict[str, Any]
    metrics: dict[str, Any]


def read_rows(
    stream: BinaryIO, name: str, leaves: Collection[str], note: Callable[[Problem], None]
) -> Generator[Row, None, int]:
    """Stream rows; returns how many lines held one, readable or not.

    ``note`` hears every problem. A line that cannot be read keeps its index, so that the rows after it stay with theirs
    of bits.u64. ``leaves``: the names that checksums may have; empty for any.
    """
    index, last_line = -1, 0
    before: int | None = None
    for line, value in jsonio.loads_lines(stream, name=name):
        if line != last_line:
            index += 1
            last_line = line
        if isinstance(value, Problem):
            note(value)
            continue
        row = _row(value, index, line)
        if isinstance(row, str):
            note(Problem(name, line, row, "see docs/run-contract.md for what a row is"))
            continue
        for odd in _oddities(row, value, before, leaves):
            note(Problem(name, line, *odd, fatal=False))
        before = row.step
        yield row
    return index + 1


def _row(value: Any, index: int, line: int) -> Row | str:
    """The row, or what is wrong with it."""
    if not isinstance(value, dict):
        return f"the row is {_short(value)}, not an object"
    step = value.get("step")
    if type(step) is not int or step < 0:
        return f"step is {_short(step)}, not an integer from 0"
    checksums, metrics = value.get("checksums", {}), value.get("metrics", {})
    if not isinstance(checksums, dict):
        return f"checksums is {_short(checksums)}, not an object"
    if not isinstance(metrics, dict):
        return f"metrics is {_short(metrics)}, not an object"
    beside = {key: item for key, item in value.items() if key not in _OWN_KEYS}
    phase = value.get("phase", "")
    if not isinstance(phase, str):
        beside["phase"], phase = phase, ""
    if beside:
        metrics = metrics | {f"/{key}" if key in metrics else key: item for key, item in beside.items()}
    return Row(index, line, step, phase, checksums, metrics)


def _oddities(row: Row, value: dict[str, Any], before: int | None, leaves: Collection[str]) -> list[tuple[str, str]]:
    """What is odd about a row that was read whole, with the remedy."""
    odd = []
    expected = 0 if before is None else before + 1
    once = "write each step once and in order; check that one process alone writes the file"
    if before is None and row.step > 0:
        odd.append(
            (f"the first step is {_short(row.step)}, not 0", "as it should be after a resume; else write every step")
        )
    elif row.step > expected:
        gap = f"step {_short(expected)} is" if row.step == expected + 1 else f"{_short(row.step - expected)} steps are"
        odd.append((f"{gap} missing before step {_short(row.step)}", once))
    elif row.step < expected:
        how = "is there again" if row.step == before else f"comes after step {_short(before)}"
        odd.append((f"step {_short(row.step)} {how}", once))
    if row.phase not in schema.PHASES:
        odd.append((f"phase is {_short(value.get('phase'))}", "write train or eval"))
    if leaves and (strange := [name for name in row.checksums if name not in leaves]):
        names = ", ".join(_short(name) for name in strange[:5])
        odd.append(
            (f"checksums of leaves that {schema.LEAVES} does not have: {names}", "declare every leaf at the start")
        )
    return odd


def _short(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    text = jsonio.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
