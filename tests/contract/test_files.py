"""Atomic writes, and opening what is plain, gzip or zstd by its content."""

from __future__ import annotations

import gzip
import hashlib
import os
from pathlib import Path

import pytest
import zstandard

from foxrun import ContractError, files

CONTENT = b"".join(b'{"step":%d}\n' % step for step in range(50_000))
ZSTD = zstandard.ZstdCompressor().compress(CONTENT)
GZIP = gzip.compress(CONTENT, mtime=0)
SKIPPABLE = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"


def read(path: Path) -> bytes:
    with files.open_input(path) as stream:
        return stream.read()


@pytest.mark.parametrize(
    "stored",
    [
        CONTENT,
        GZIP,
        ZSTD,
        gzip.compress(CONTENT[:100], mtime=0) + gzip.compress(CONTENT[100:], mtime=0),
        GZIP + bytes(512),
        zstandard.ZstdCompressor().compress(CONTENT[:100]) + zstandard.ZstdCompressor().compress(CONTENT[100:]),
        SKIPPABLE + ZSTD,
        zstandard.ZstdCompressor(write_content_size=False, write_checksum=True).compress(CONTENT),
    ],
    ids=["plain", "gzip", "zstd", "two gzip", "padded gzip", "two zstd", "skippable zstd", "streamed zstd"],
)
def test_content_and_not_the_name_decides(tmp_path: Path, stored: bytes) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(stored)
    assert read(path) == CONTENT
    with files.open_input(path) as stream:
        assert [next(stream), next(stream)] == [b'{"step":0}\n', b'{"step":1}\n']


@pytest.mark.parametrize("stored", [b"", b"\x1f", b"\x28\xb5", b"{}"])
def test_short_files_are_plain(tmp_path: Path, stored: bytes) -> None:
    path = tmp_path / "f"
    path.write_bytes(stored)
    assert read(path) == stored


@pytest.mark.parametrize("cut", [4, 10, 1000, len(GZIP) - 8, len(GZIP) - 1])
def test_a_cut_gzip_is_told(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "f.gz"
    path.write_bytes(GZIP[:cut])
    with pytest.raises(ContractError, match=r"f\.gz: the gzip file is cut; copy or write it again"):
        read(path)


@pytest.mark.parametrize("cut", [4, 10, 1000, len(ZSTD) - 1])
def test_a_cut_zstd_is_told(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "f.zst"
    path.write_bytes(ZSTD[:cut])
    with pytest.raises(ContractError, match=r"f\.zst: the zstd file is cut"):
        read(path)


def test_a_damaged_archive_is_told(tmp_path: Path) -> None:
    path = tmp_path / "f"
    for kind, stored in (("gzip", GZIP), ("zstd", zstandard.ZstdCompressor(write_checksum=True).compress(CONTENT))):
        damaged = bytearray(stored)
        damaged[len(damaged) // 2] ^= 0xFF
        path.write_bytes(damaged)
        with pytest.raises(ContractError, match=f"the {kind} file is (damaged|cut)"):
            read(path)
        path.write_bytes(stored + b"garbage after the end")
        with pytest.raises(ContractError, match=f"the {kind} file is (damaged|cut)"):
            read(path)


def names(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir())


def test_write_atomic_replaces_and_leaves_nothing_beside(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    files.write_atomic(path, "old")
    files.write_atomic(path, b"new \xff")
    assert path.read_bytes() == b"new \xff"
    assert names(tmp_path) == ["f.json"]
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_failed_write_leaves_the_old_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "f"
    files.write_atomic(path, "old")
    with pytest.raises(UnicodeEncodeError):
        files.write_atomic(path, "\ud83d")
    (tmp_path / "directory").mkdir()
    with pytest.raises(OSError, match="directory"):
        files.write_atomic(tmp_path / "directory", "x")
    assert path.read_text() == "old"
    assert names(tmp_path) == ["directory", "f"]


def test_what_is_no_file_is_not_replaced_by_one(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "to-pipe").symlink_to("pipe")
    (tmp_path / "stdout").symlink_to("/proc/self/fd/1")
    for name in ("pipe", "to-pipe", "stdout"):
        with pytest.raises(OSError, match="not a regular file"):
            files.write_atomic(tmp_path / name, "x")
    (tmp_path / "to-file").symlink_to("f")
    files.write_atomic(tmp_path / "to-file", "x")
    assert (tmp_path / "pipe").is_fifo() and names(tmp_path) == ["pipe", "stdout", "to-file", "to-pipe"]


def test_sha256_is_of_the_stored_bytes(tmp_path: Path) -> None:
    path = tmp_path / "f.gz"
    path.write_bytes(GZIP)
    assert files.sha256_file(path) == hashlib.sha256(GZIP).hexdigest()
