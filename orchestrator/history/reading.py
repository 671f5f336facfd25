"""Reads the history: of the local engine from its store, of a cluster from the bucket, each entry fetched once."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foxrun.files import write_atomic
from orchestrator.errors import UsageError
from orchestrator.history.entries import PREFIX, Entry, from_text

if TYPE_CHECKING:
    from orchestrator.engines.base import Engine

_AT_ONCE = 16


def read(engine: Engine, home: Path) -> list[Entry]:
    """All entries that this engine's store holds, in no order.

    Raises InfrastructureError when S3 cannot be read, UsageError where no bucket is known.
    """
    there: Any = engine
    if engine.name == "local":
        return list(_of_directory(there.store.path(PREFIX.rstrip("/")), home / "reports"))
    if there.artifacts.store is None:
        raise UsageError(
            "the history of a cluster's workflows lies in its bucket, and foxrun knows none",
            remedy="set s3_bucket (FOXRUN_S3_BUCKET) to the bucket of Argo's artifact repository, and its endpoint",
        )
    return _of_bucket(there.artifacts.store, home / "history")


def _of_directory(folder: Path, reports: Path) -> Iterator[Entry]:
    if not folder.is_dir():
        return
    for file in sorted(folder.iterdir()):
        if not file.is_file():  # nor a pipe, which would be waited for
            continue
        try:
            entry = from_text(file.read_bytes(), file.name)
        except OSError:
            continue
        if entry is not None:
            report = reports / f"{entry.name}.html"
            yield dataclasses.replace(entry, report=str(report) if report.is_file() else "")


def _of_bucket(store: Any, cache: Path) -> list[Entry]:
    """An entry never changes once it is written, so what was fetched before is not fetched again."""
    folder = cache / hashlib.sha256(f"{store.url(PREFIX)}".encode()).hexdigest()[:16]
    keys = sorted(key for key, _ in store.objects(PREFIX))

    def one(key: str) -> Entry | None:
        kept = folder / key.removeprefix(PREFIX).replace("/", "_")
        if kept.is_file():
            return from_text(kept.read_bytes(), key)
        data = store.read(key)
        entry = from_text(data, key)
        if entry is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(kept, data)
        return entry

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return [entry for entry in pool.map(one, keys) if entry is not None]
