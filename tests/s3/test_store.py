"""Inputs and objects on a real S3 server."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from benchmarks.s3 import Tally
from orchestrator.errors import InfrastructureError, UsageError
from orchestrator.stores import s3
from orchestrator.stores.s3 import S3Store, parse_url
from orchestrator.stores.s3_trouble import NoSuchKey
from tests.s3.conftest import Area
from tests.s3.servers import BUCKET, Gateway, Proxy


def operations(tally: Tally) -> list[str]:
    return [operation for operation, *_ in tally.requests]


@pytest.fixture
def store(gateway: Gateway) -> S3Store:
    return S3Store(BUCKET, endpoint=gateway.endpoint, delays=(0.05,) * 4, read_timeout_s=2)


def test_an_input_goes_up_once_under_its_sha256(area: Area, tmp_path: Path) -> None:
    file = tmp_path / "büch er.dbn"
    content = os.urandom(5000)
    file.write_bytes(content)
    tally = Tally(area.store.client)
    key = area.store.put_input(file)
    try:
        assert key == f"inputs/{hashlib.sha256(content).hexdigest()}/büch er.dbn"
        assert operations(tally) == ["HeadObject", "PutObject"]
        tally.reset()
        assert area.store.put_input(file) == key
        assert operations(tally) == ["HeadObject"] and tally.bytes == 0
        assert area.store.read(key) == content
    finally:
        area.store.delete(key)


def test_a_large_input_goes_up_in_parts_and_comes_back_whole(area: Area, tmp_path: Path) -> None:
    file = tmp_path / "large.bin"
    content = os.urandom(s3.PART) + os.urandom(s3.PART // 8)
    file.write_bytes(content)
    tally = Tally(area.store.client)
    key = area.store.put_input(file)
    try:
        expected = ["HeadObject", "CreateMultipartUpload", "UploadPart", "UploadPart", "CompleteMultipartUpload"]
        assert operations(tally) == expected
        area.store.fetch(key, tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == content
        assert (
            area.store.source(key.rpartition("/")[0]).read_range("large.bin", s3.PART - 3, s3.PART + 3)
            == (content[s3.PART - 3 : s3.PART + 3])
        )
    finally:
        area.store.delete(key)


def test_a_part_that_never_arrives_leaves_no_upload_behind(gateway: Gateway, tmp_path: Path) -> None:
    file = tmp_path / "large.bin"
    file.write_bytes(os.urandom(s3.PART + 1))
    store = S3Store(BUCKET, endpoint=gateway.endpoint, delays=())
    store.client.meta.events.register("before-send.s3.UploadPart", lambda **_: gateway.stop())
    with pytest.raises(InfrastructureError, match=r"refuses the connection|was cut"):
        store.put_input(file)
    gateway.start()
    assert list(S3Store(BUCKET, endpoint=gateway.endpoint).objects("inputs/")) == []


def test_what_cannot_be_an_input_is_refused_before_any_request(tmp_path: Path) -> None:
    store = S3Store(BUCKET, endpoint="http://127.0.0.1:1", delays=())
    with pytest.raises(UsageError, match="is a directory"):
        store.put_input(tmp_path)
    with pytest.raises(UsageError, match="does not exist"):
        store.put_input(tmp_path / "nothing")


def test_a_directory_comes_back_file_by_file_and_is_deleted(store: S3Store, tmp_path: Path) -> None:
    files = {"a/x": b"1", "a/deep/y": b"", "ab": b"not below a"}
    for name, data in files.items():
        store.write(name, data)
    store.fetch("a", tmp_path / "a")
    assert (tmp_path / "a" / "x").read_bytes() == b"1" and (tmp_path / "a" / "deep" / "y").read_bytes() == b""
    store.delete("a")
    assert list(store.objects("")) == [("ab", len(b"not below a"))]
    with pytest.raises(NoSuchKey):
        store.fetch("a", tmp_path / "again")
    assert sorted(p.name for p in tmp_path.glob("again*")) == []


def test_a_listing_goes_on_over_pages(store: S3Store) -> None:
    for i in range(7):
        store.write(f"p/{i}", b"x" * i)
    original = store.client.list_objects_v2
    store.client.list_objects_v2 = lambda **arguments: original(**arguments, MaxKeys=3)
    assert store.source("p").list() == {str(i): i for i in range(7)}


def test_a_transfer_that_is_cut_goes_on_where_it_ended(gateway: Gateway, store: S3Store) -> None:
    content = os.urandom(3_000_000)
    store.write("run/big", content)
    proxy = Proxy(gateway.port)
    try:
        said: list[str] = []
        far = S3Store(BUCKET, endpoint=proxy.endpoint, delays=(0.01,) * 4, say=said.append)
        source = far.source("run")
        assert source.list() == {"big": len(content)}
        tally = Tally(far.client)
        proxy.cuts = [200_000, 200_000, 1_000_000]
        far.client.close()
        assert source.open("big").read() == content
        ranges = [asked for operation, _, asked in tally.requests if operation == "GetObject"]
        assert ranges[0] == "" and len(ranges) == 4 and all(r.endswith(f"-{len(content) - 1}") for r in ranges[1:])
        assert [text.partition("; ")[0].rpartition(": ")[2] for text in said] == [
            f"the connection to {proxy.endpoint[7:]} was cut"
        ] * 3
        proxy.cuts = [1_000]
        far.client.close()
        assert source.read_range("big", 10, 50_010) == content[10:50_010]
    finally:
        proxy.close()


def test_a_transfer_that_stops_is_given_up_and_said(gateway: Gateway, store: S3Store) -> None:
    store.write("run/big", os.urandom(300_000))
    proxy = Proxy(gateway.port)
    try:
        far = S3Store(BUCKET, endpoint=proxy.endpoint, delays=(0.01,), read_timeout_s=2)
        source = far.source("run")
        source.list()
        proxy.cuts, proxy.stalls = [100_000, 0, 0], True
        far.client.close()
        with pytest.raises(InfrastructureError, match="stopped sending; 2 tries") as caught:
            source.open("big").read()
        assert caught.value.remedy == "the server or the network is overloaded: try again later"
    finally:
        proxy.close()


def test_an_object_replaced_while_it_is_read_is_never_mixed(gateway: Gateway, store: S3Store) -> None:
    store.write("run/big", b"a" * 3_000_000)
    proxy = Proxy(gateway.port)
    try:
        far = S3Store(BUCKET, endpoint=proxy.endpoint, delays=(0.01,) * 2)
        source = far.source("run")
        source.list()
        proxy.cuts = [1_500_000]
        far.client.close()
        stream = source.open_key("run/big", 3_000_000)
        assert stream.read(10) == b"a" * 10
        store.write("run/big", b"b" * 3_000_000)
        with pytest.raises(InfrastructureError, match="replaced while it was read"):
            stream.read()
    finally:
        proxy.close()


def test_a_server_that_is_away_for_some_seconds_is_waited_for(gateway: Gateway) -> None:
    import threading

    said: list[str] = []
    store = S3Store(BUCKET, endpoint=gateway.endpoint, say=said.append)
    store.write("k", b"v")
    gateway.stop()
    back = threading.Timer(2.5, gateway.start)
    back.start()
    assert store.read("k") == b"v"
    back.join()
    assert [text.rpartition("; ")[2] for text in said] == ["trying again in 1 s", "trying again in 2 s"]
    assert sum(s3.DELAYS_S) >= 75


@pytest.mark.parametrize(
    ("url", "parts"),
    [("s3://b/k", ("b", "k")), ("S3://b/a/b c/", ("b", "a/b c")), ("s3://b", ("b", "")), ("s3://b//x", ("b", "x"))],
)
def test_an_address_is_a_bucket_and_a_key(url: str, parts: tuple[str, str]) -> None:
    assert parse_url(url) == parts


@pytest.mark.parametrize("url", ["s3://", "s3:///k", "s3://a b/k", "s3:/b/k"])
def test_an_address_without_a_bucket_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="bucket"):
        parse_url(url)
