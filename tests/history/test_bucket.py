"""The history of a cluster's workflows: read from the bucket, each entry fetched once; without a bucket it says so."""

from __future__ import annotations

import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.errors import UsageError
from orchestrator.history import entries as h
from orchestrator.history import reading
from tests.history.test_page import entry
from tests.s3.conftest import real_store

__all__ = ["real_store"]


def cluster(store: Any) -> Any:
    """As much of the argo engine as the history asks for."""
    return SimpleNamespace(name="argo", artifacts=SimpleNamespace(store=store))


def test_without_a_bucket_it_says_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the history of a cluster's workflows lies in its bucket"):
        reading.read(cluster(None), tmp_path)


def test_entries_are_read_from_the_bucket_and_kept(real_store: Any, tmp_path: Path) -> None:
    ours = f"test-{uuid.uuid4().hex}"
    keys = [f"history/{ours}-{number}.json" for number in (1, 2)]
    try:
        for number, key in enumerate(keys, 1):
            real_store.write(key, h.to_text(entry(number, uid=f"{ours}-{number}")).encode())
        for _ in range(2):  # the second time from what was kept
            found = [e.uid for e in h.newest_first(reading.read(cluster(real_store), tmp_path)) if ours in e.uid]
            assert found == [f"{ours}-2", f"{ours}-1"]
        kept = {file.name for file in (tmp_path / "history").rglob("*.json")}
        assert {f"{ours}-1.json", f"{ours}-2.json"} <= kept
    finally:
        for key in keys:
            real_store.delete(key)
