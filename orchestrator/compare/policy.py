"""What a difference means: forgiven by a tolerance, ignored by a pattern, or drift; and mode 0's own rule."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.compare.tolerance import Tolerance
from orchestrator.compare.values import ValueDifference


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the caller of a comparison asks for.

    `allow`: groups or manifest fields that may differ (`tree` for --against). `status_a`, `status_b`: phases of the
    legs' nodes when a workflow compares. `ignore`: patterns of metric and summary keys that are not compared.
    """

    tolerance: Tolerance = field(default_factory=Tolerance)
    allow: frozenset[str] = frozenset()
    force: bool = False
    verify: bool = False
    ignore: tuple[str, ...] = ()
    status_a: str = ""
    status_b: str = ""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The rules for one pair. `fast`: both runs are of mode 0 and the user gave no tolerance of his own."""

    tolerance: Tolerance
    ignore: tuple[str, ...] = ()
    fast: bool = False

    @property
    def tolerant(self) -> bool:
        """Whether anything at all can be forgiven."""
        return self.fast or bool(self.tolerance)

    def ignores(self, difference: ValueDifference) -> bool:
        """Whether a pattern matches the value's name, whole, without its first part, or its last part; never a leaf."""
        path = difference.path
        if not path or path[0] == "checksums":
            return False
        names = {".".join(path), ".".join(path[1:]), path[-1]}
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in self.ignore for name in names)

    def forgives(self, difference: ValueDifference, *, checksum: bool = False) -> bool:
        """Whether a JSON value may differ as it does."""
        if self.fast:
            return True
        path = difference.path
        names = (difference.name, ".".join(path[1:]), path[-1]) if len(path) > 1 else (difference.name,)
        return self.tolerance.inside(names, difference.a, difference.b, checksum=checksum)

    def forgives_leaf(self, name: str, sums_a: Mapping[str, Any], sums_b: Mapping[str, Any]) -> bool:
        """Whether a parted fingerprint is forgiven: only by its checksum, which both rows must hold."""
        if self.fast:
            return True
        if not self.tolerance or name not in sums_a or name not in sums_b:
            return False
        return self.tolerance.inside((name, f"checksums.{name}"), sums_a[name], sums_b[name], checksum=True)
