"""A prefix of one's own on the real S3 server that FOXRUN_S3_ENDPOINT names, and a server of one's own."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.stores.s3 import S3Store
from tests.s3 import servers

# What boto3 reads; a test that talks to a server of its own must not find them.
_AWS = ("PROFILE", "ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "REGION", "DEFAULT_REGION", "ENDPOINT_URL")


class Area:
    """A prefix of the bucket, gone afterwards."""

    def __init__(self, store: S3Store, prefix: str) -> None:
        self.store, self.prefix = store, prefix

    def url(self, name: str) -> str:
        return self.store.url(f"{self.prefix}/{name}")

    def put(self, directory: Path, name: str) -> str:
        """Upload a directory file by file, as Argo's executor does; returns its address."""
        from benchmarks.s3 import upload

        upload(self.store, directory, f"{self.prefix}/{name}")
        return self.url(name)


@pytest.fixture(scope="session")
def real_store() -> S3Store:
    """One client for all tests: making it takes longer than most of them."""
    endpoint, bucket = os.environ.get("FOXRUN_S3_ENDPOINT"), os.environ.get("FOXRUN_S3_BUCKET")
    if not endpoint or not bucket:
        pytest.skip("FOXRUN_S3_ENDPOINT and FOXRUN_S3_BUCKET name no S3 server (docs/s3.md says how to name one)")
    return S3Store(bucket, endpoint=endpoint)


@pytest.fixture
def area(real_store: S3Store) -> Iterator[Area]:
    made = Area(real_store, f"tests/{secrets.token_hex(8)}")
    yield made
    made.store.delete(made.prefix)


@pytest.fixture
def own_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _AWS:
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", servers.ACCESS)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", servers.SECRET)


@pytest.fixture
def gateway(tmp_path: Path, own_credentials: None) -> Iterator[servers.Gateway]:
    made = servers.Gateway(tmp_path / "s3")
    yield made
    made.stop()
