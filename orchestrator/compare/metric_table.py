"""Rows out of a plain metric file: JSON lines, JSON or CSV, told by content; anything else is refused by name."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from foxrun.jsonio import loads
from foxrun.problems import ContractError, Problem
from orchestrator.errors import UsageError

JSON_LINES = "JSON lines"
JSON = "JSON"
CSV = "CSV"

# What training programs call the step of a row, the most telling first.
STEP_KEYS = (
    "step",
    "global_step",
    "_step",
    "train_step",
    "steps",
    "training_iteration",
    "iteration",
    "iter",
    "update",
    "n_updates",
    "num_updates",
    "timesteps_total",
    "total_timesteps",
    "num_timesteps",
    "timestep",
    "episode",
    "epoch",
)
_INTEGER = re.compile(r"[+-]?\d{1,18}\Z")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\Z|[+-]?(inf|infinity|nan)\Z", re.IGNORECASE)
_LONGEST = 1 << 20


@dataclass(frozen=True)
class MetricRow:
    """One row: its position from 0, its line in the file from 1 (0 where it has none), its step, and its values."""

    position: int
    line: int
    values: Any
    step: int | None = None


@dataclass(frozen=True, kw_only=True)
class MetricTable:
    """A metric file as rows; `header` holds what stands once in the file. Fatal problems mean: cut or unreadable."""

    label: str
    format: str
    rows: list[MetricRow] = field(default_factory=list)
    header: dict[str, Any] = field(default_factory=dict)
    step_key: str = ""
    problems: list[Problem] = field(default_factory=list)
    one_line: bool = False


def parse_metrics(data: bytes, label: str, *, as_lines: bool = False) -> MetricTable:
    """The table that a file's bytes hold; `as_lines` reads a single line of JSON as JSON lines of one row.

    Raises UsageError for a file of another kind, with what to do. A cut or damaged file gives a table with problems.
    """
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{label}: not a text file (byte {error.start} is no UTF-8)", remedy=_ACCEPTED) from None
    if "\0" in text[:_LONGEST]:
        raise UsageError(f"{label}: a binary file", remedy=_ACCEPTED)
    first = text.lstrip()[:1]
    if not first:
        problem = Problem(label, None, "the file is empty", "see whether the run that writes it ended well")
        return MetricTable(label=label, format="", problems=[problem])
    table = _json(text, label, as_lines=as_lines) if first in "{[" else _csv(text, label)
    return _with_steps(table)


_ACCEPTED = "give JSON lines, JSON or CSV, plain or as .gz or .zst"


def _loads(text: str, label: str, line: int | None, problems: list[Problem]) -> Any:
    """Parse one document; a repeated key is a problem that is not fatal."""

    def repeated(key: str) -> None:
        what = f"the key {key!r} is there twice, the last one counts"
        problems.append(Problem(label, line, what, "make the writer write each key once", fatal=False))

    return loads(text, name=label, line=line, on_duplicate=repeated)


def _json(text: str, label: str, *, as_lines: bool) -> MetricTable:
    lines = [(i, line) for i, line in enumerate(text.split("\n"), start=1) if line.strip()]
    problems: list[Problem] = []
    if len(lines) == 1 and not as_lines:
        try:
            return _document(_loads(text, label, None, problems), label, problems, one_line=True)
        except ContractError as error:
            return MetricTable(label=label, format=JSON_LINES, problems=[error.problem(label, lines[0][0])])
    if not as_lines and not _any_parses([line for _, line in lines[:2]]):
        try:
            return _document(_loads(text, label, None, problems), label, problems, one_line=False)
        except ContractError as error:
            return MetricTable(label=label, format=JSON, problems=[error.problem(label)])
    rows: list[MetricRow] = []
    for number, line in lines:
        try:
            rows.append(MetricRow(len(rows), number, _loads(line, label, number, problems)))
        except ContractError as error:
            cut = number == lines[-1][0] and not text.endswith("\n")
            what = f"the last line is cut: {error.what}" if cut else error.what
            problems.append(Problem(label, number, what, error.remedy))
    return MetricTable(label=label, format=JSON_LINES, rows=rows, problems=problems)


def _any_parses(lines: list[str]) -> bool:
    """Whether one of these lines is an object or a list by itself, which lines of an indented document are not."""
    for line in lines:
        if line.strip()[0] not in "{[" or len(line.strip()) == 1:
            continue
        try:
            loads(line, on_duplicate=lambda _: None)
        except ContractError:
            continue
        return True
    return False


def _document(value: Any, label: str, problems: list[Problem], *, one_line: bool) -> MetricTable:
    """One JSON document: a list of rows, an object with a list of rows in it, series by step, or a single row."""
    header: dict[str, Any] = {}
    rows: list[MetricRow] = []
    if isinstance(value, list):
        rows = [MetricRow(i, 0, item) for i, item in enumerate(value)]
    elif isinstance(value, dict) and (name := _row_list(value)):
        header = {key: item for key, item in value.items() if key != name}
        rows = [MetricRow(i, 0, item) for i, item in enumerate(value[name])]
    elif isinstance(value, dict) and (series := _series(value)):
        header = _without(value, set(series))
        steps = sorted({int(step) for values in series.values() for step in values})
        by_step = {path: {int(step): item for step, item in values.items()} for path, values in series.items()}
        rows = []
        for i, step in enumerate(steps):
            named = {".".join(path): values[step] for path, values in by_step.items() if step in values}
            rows.append(MetricRow(i, 0, named, step))
    else:
        rows = [MetricRow(0, 0, value)] if value != {} else []
    return MetricTable(label=label, format=JSON, rows=rows, header=header, problems=problems, one_line=one_line)


def _row_list(value: Mapping[str, Any]) -> str:
    """The key of the longest list of objects, as `log_history` of a Hugging Face trainer; "" where there is none."""
    lists = {
        key: len(item)
        for key, item in value.items()
        if isinstance(item, list) and len(item) > 1 and all(isinstance(row, dict) for row in item)
    }
    return max(lists, key=lambda key: lists[key]) if lists else ""


def _series(value: Mapping[str, Any]) -> dict[tuple[str, ...], dict[str, Any]]:
    """Objects whose keys are all integers are series by step, as Megatron's golden values; by path, in file order."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    stack: list[tuple[tuple[str, ...], Any]] = [((), value)]
    while stack:
        path, item = stack.pop()
        if not isinstance(item, dict) or not item:
            continue
        numbered = all(_INTEGER.match(key) for key in item)
        if numbered and len({int(key) for key in item}) == len(item) and path:
            found[path] = item
        else:
            stack.extend(((*path, key), inner) for key, inner in reversed(item.items()))
    return found


def _without(value: Mapping[str, Any], paths: set[tuple[str, ...]], at: tuple[str, ...] = ()) -> dict[str, Any]:
    left: dict[str, Any] = {}
    for key, item in value.items():
        path = (*at, key)
        if path in paths:
            continue
        inner = _without(item, paths, path) if isinstance(item, dict) else item
        if inner != {} or item == {}:
            left[key] = inner
    return left


def _csv(text: str, label: str) -> MetricTable:
    lines = text.splitlines()
    header: dict[str, Any] = {}
    problems: list[Problem] = []
    skipped = 0
    while skipped < len(lines) and (not lines[skipped].strip() or lines[skipped].startswith("#")):
        comment = lines[skipped].lstrip("#").strip()
        if comment:
            try:
                header[f"#{skipped + 1}"] = _loads(comment, label, skipped + 1, problems)
            except ContractError:
                header[f"#{skipped + 1}"] = comment
        skipped += 1
    if skipped == len(lines):
        problem = Problem(label, None, "the file holds comments alone", "see whether the run that writes it ended well")
        return MetricTable(label=label, format=CSV, header=header, problems=[problem])
    delimiter = _delimiter(lines[skipped], label)
    _refuse_text_log(lines[skipped], delimiter, label)
    reader = csv.reader(lines[skipped:], delimiter=delimiter, strict=True)
    rows: list[MetricRow] = []
    names: list[str] = []
    ended = text.endswith(("\n", "\r"))
    previous = 0
    try:
        for cells in reader:
            line, previous = previous + skipped + 1, reader.line_num
            if not cells:
                continue
            if not names:
                if any(not _NUMBER.match(cell.strip()) for cell in cells):
                    names = _unique(cells, label, line)
                    continue
                names = [f"column_{i + 1}" for i in range(len(cells))]
            if len(cells) != len(names):
                last = previous + skipped >= len(lines)
                cut = "the last line is cut: " if last and not ended and len(cells) < len(names) else ""
                what = f"{cut}{len(cells)} cells where the first line names {len(names)} columns"
                problems.append(Problem(label, line, what, "write the file again, or mend that line"))
                continue
            values = {name: _cell(cell) for name, cell in zip(names, cells, strict=True)}
            rows.append(MetricRow(len(rows), line, values))
    except csv.Error as error:
        problems.append(Problem(label, reader.line_num + skipped, f"not CSV: {error}", "write the file again"))
    return MetricTable(label=label, format=CSV, rows=rows, header=header, problems=problems)


def _delimiter(line: str, label: str) -> str:
    counts = {mark: line.count(mark) for mark in (",", "\t", ";")}
    best = max(counts, key=lambda mark: counts[mark])
    return best if counts[best] or not label.lower().endswith(".tsv") else "\t"


def _refuse_text_log(line: str, delimiter: str, label: str) -> None:
    if line.startswith(":::"):
        mark = line.split()[0]
        raise UsageError(
            f"{label}: a log with {mark} before each line, not JSON lines",
            remedy=f"cut the prefix off: sed -n 's/^{mark} //p' {label} > metrics.jsonl",
        )
    if delimiter in line or label.lower().removesuffix(".gz").removesuffix(".zst").endswith((".csv", ".tsv")):
        return
    words = line.split()
    if len(words) > 1 and all(_NUMBER.match(item) for item in words):
        names = ",".join(["step", "loss"] if len(words) == 2 else [f"column_{i + 1}" for i in range(len(words))])
        raise UsageError(
            f"{label}: columns of numbers with blanks between them, not CSV",
            remedy=f"make it CSV: (echo {names}; tr -s ' ' , < {label}) > metrics.csv",
        )
    raise UsageError(f"{label}: a text log, not JSON lines, JSON or CSV", remedy=_ACCEPTED)


def _unique(cells: list[str], label: str, line: int) -> list[str]:
    names = [cell.strip() for cell in cells]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"{label}, line {line}: the column {twice[0]!r} is there twice", remedy="rename one of them")
    return names


def _cell(text: str) -> Any:
    """CSV has no types: a number is an int or a float by its looks, an empty cell is null, the rest is text."""
    text = text.strip()
    if not text:
        return None
    if _INTEGER.match(text):
        return int(text)
    return float(text) if _NUMBER.match(text) else text


def _with_steps(table: MetricTable) -> MetricTable:
    """The table with each row's step, by the first step key that most rows have."""
    rows = [row for row in table.rows if isinstance(row.values, dict)]
    if not rows or all(row.step is not None for row in table.rows):
        return table
    best = ""
    for name in STEP_KEYS:
        if 2 * sum(name in row.values for row in rows) >= len(rows) and any(
            _step(r.values, name) is not None for r in rows
        ):
            best = name
            break
    if not best:
        return table
    labelled = [MetricRow(r.position, r.line, r.values, _step(r.values, best)) for r in table.rows]
    return MetricTable(
        label=table.label,
        format=table.format,
        rows=labelled,
        header=table.header,
        step_key=best,
        problems=table.problems,
        one_line=table.one_line,
    )


def _step(values: Any, name: str) -> int | None:
    value = values.get(name) if isinstance(values, dict) else None
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) else None
