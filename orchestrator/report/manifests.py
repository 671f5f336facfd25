"""Two manifests side by side: flat paths, both values, what differs marked, in groups that can be folded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.compare.verdict import FieldDifference
from orchestrator.report import format as fmt

OPEN_ROWS = 12  # a group with more rows than this starts folded
LIST_ITEMS = 12  # of a list of plain values; block hashes run to hundreds
GROUP_ROWS = 400

_ABSENT = object()


@dataclass(frozen=True)
class Row:
    """One field in both manifests. ``mark`` is "" (equal), "matters" or "recorded" (differs, and may)."""

    path: str
    a: str
    b: str
    mark: str


@dataclass(frozen=True)
class Group:
    """The fields under one key of the manifest."""

    name: str
    rows: list[Row]
    differing: int
    left_out: int

    @property
    def open(self) -> bool:
        """Whether the group is shown unfolded."""
        return len(self.rows) <= OPEN_ROWS


def side_by_side(
    a: Mapping[str, Any], b: Mapping[str, Any], differences: Sequence[FieldDifference], *, pair: bool
) -> list[Group]:
    """Groups in the order of the manifests' own keys, the short facts of the run first.

    ``differences`` says which differing fields matter. Without a ``pair`` nothing is marked.
    """
    matters = {difference.path for difference in differences if difference.matters}
    keys = list(dict.fromkeys([*a, *b]))
    plain = [key for key in keys if not _nested(a.get(key)) and not _nested(b.get(key))]
    nested = [key for key in keys if key not in plain]
    groups = [_group("run", {k: a[k] for k in plain if k in a}, {k: b[k] for k in plain if k in b}, "", matters, pair)]
    for key in nested:
        groups.append(_group(str(key), a.get(key, _ABSENT), b.get(key, _ABSENT), str(key), matters, pair))
    return [group for group in groups if group.rows]


def _nested(item: Any) -> bool:
    return isinstance(item, dict | list)


def _group(name: str, a: Any, b: Any, prefix: str, matters: set[str], pair: bool) -> Group:
    left, right = dict(_flat(a, prefix)), dict(_flat(b, prefix))
    rows, differing = [], 0
    for path in dict.fromkeys([*left, *right]):
        va, vb = left.get(path, _ABSENT), right.get(path, _ABSENT)
        mark = ""
        if pair and (type(va) is not type(vb) or fmt.value(va) != fmt.value(vb) or (va != vb and va == va)):
            mark = "matters" if _matters(path, matters) else "recorded"
            differing += 1
        rows.append(Row(fmt.cut(path, 120), _text(va), _text(vb), mark))
    shown = rows[:GROUP_ROWS]
    return Group(name, shown, differing, len(rows) - len(shown))


def _matters(path: str, matters: set[str]) -> bool:
    return path in matters or any(path.startswith((f"{known}.", f"{known}[")) for known in matters)


def _text(item: Any) -> str:
    return "absent" if item is _ABSENT else fmt.value(item)


def _flat(item: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(item, dict) and item:
        for key, inner in item.items():
            yield from _flat(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(item, list) and item:
        if any(_nested(inner) for inner in item):
            for i, inner in enumerate(item):
                yield from _flat(inner, f"{path}[{_name(inner, i)}]")
        else:
            rest = len(item) - LIST_ITEMS
            shown = ", ".join(fmt.value(inner) for inner in item[:LIST_ITEMS])
            yield path, shown + (f", … and {rest:,} more in run_manifest.json" if rest > 0 else "")
    elif item is not _ABSENT:
        yield path, item


def _name(item: Any, index: int) -> str:
    """Files and inputs are matched by name, so that one more file does not shift all that follow."""
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) and name else str(index)
