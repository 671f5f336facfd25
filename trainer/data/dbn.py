"""A streaming reader of Databento DBN files of schema MBP-10: versions 1 to 3, zstd or not, told apart by content.

The metadata is decoded by ``databento_dbn``; records become numpy structured arrays, whose layout is the same in all
three versions: https://databento.com/docs/standards-and-conventions/databento-binary-encoding
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import databento_dbn
import numpy as np
import zstandard
from numpy.typing import NDArray

from trainer.data.errors import DataError

LEVELS = 10
UNDEF_PRICE = 2**63 - 1
"""A price that does not exist: the largest int64."""
PRICE_SCALE = 10**9
"""Prices are integers in units of 1e-9 of the currency."""
F_LAST = 1 << 7
"""Last record of an event: the book is whole. Rows without it are states in the middle of an event."""
F_SNAPSHOT = 1 << 5
F_MBP = 1 << 4
F_MAYBE_BAD_BOOK = 1 << 2
"""An unrecoverable gap was seen in the channel: the book may be wrong."""

LEVEL = np.dtype(
    [("bid_px", "<i8"), ("ask_px", "<i8"), ("bid_sz", "<u4"), ("ask_sz", "<u4"), ("bid_ct", "<u4"), ("ask_ct", "<u4")]
)
RECORD = np.dtype(
    [
        ("length", "u1"),
        ("rtype", "u1"),
        ("publisher_id", "<u2"),
        ("instrument_id", "<u4"),
        ("ts_event", "<u8"),
        ("price", "<i8"),
        ("size", "<u4"),
        ("action", "S1"),
        ("side", "S1"),
        ("flags", "u1"),
        ("depth", "u1"),
        ("ts_recv", "<u8"),
        ("ts_in_delta", "<i4"),
        ("sequence", "<u4"),
        ("levels", LEVEL, (LEVELS,)),
    ]
)
"""One MBP-10 record, 368 bytes. ``length`` counts words of 4 bytes; ``rtype`` is 10."""
RTYPE_MBP_10 = 10
WORD = 4

Records = NDArray[np.void]

_ZSTD = b"\x28\xb5\x2f\xfd"
_GZIP = b"\x1f\x8b"
# 16 KiB of zstd can grow some thousandfold, so small bites bound the memory that a hostile file can take.
_BITE = 1 << 14
_LARGEST_METADATA = 1 << 26


@dataclass(frozen=True, kw_only=True)
class Header:
    """What the metadata of a file says: DBN version, dataset, schema (None: a live capture of several), symbols."""

    version: int
    dataset: str
    schema: str | None
    symbols: tuple[str, ...]
    ts_out: bool
    """Each record carries 8 more bytes: the time at which the gateway sent it."""


def read_header(path: Path) -> Header:
    """The metadata of the file alone. DataError when it is no DBN file of schema MBP-10."""
    with _opened(path) as file:
        return _Stream(file, path.name).header()


def read_records(path: Path, *, block_rows: int = 65536) -> Iterator[Records]:
    """All MBP-10 records in file order, in blocks of at most ``block_rows``; never the whole file in memory.

    Records of other kinds, which live captures carry (system messages, symbol mappings), are left out. DataError when
    the file is no DBN file, holds another schema, is cut, or holds no record.
    """
    with _opened(path) as file:
        stream = _Stream(file, path.name)
        header = stream.header()
        found = False
        for block in stream.records(header, block_rows):
            found = True
            yield block
        if not found:
            raise DataError(path.name, "holds no MBP-10 record", "give a file with market data, schema mbp-10")


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise DataError(path.name, f"cannot be opened ({reason})", "check the path given as data") from error


class _Stream:
    """The decompressed bytes of one open file, and what is left of them between two reads."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._name = name
        self._pieces = _decompressed(file, name)
        self._buffer = bytearray()

    def _fill(self, size: int) -> bool:
        """Whether ``size`` bytes are in the buffer, after reading as far as needed."""
        while len(self._buffer) < size:
            piece = next(self._pieces, None)
            if piece is None:
                return False
            self._buffer += piece
        return True

    def _take(self, size: int) -> bytes:
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def header(self) -> Header:
        if not self._fill(8):
            if not self._buffer:
                raise DataError(self._name, "is empty", "give a DBN file of schema mbp-10")
            if not b"DBN".startswith(bytes(self._buffer[:3])):
                raise _not_dbn(self._name, bytes(self._buffer[:4]))
            raise DataError(self._name, "is cut within its metadata", "fetch it again")
        if self._buffer[:3] != b"DBN":
            raise _not_dbn(self._name, bytes(self._buffer[:4]))
        version = self._buffer[3]
        size = 8 + int.from_bytes(self._buffer[4:8], "little")
        if size > _LARGEST_METADATA:
            raise DataError(self._name, f"claims {size} bytes of metadata, which is damage", "fetch it again")
        if not self._fill(size):
            raise DataError(self._name, "is cut within its metadata", "fetch it again")
        try:
            metadata: Any = databento_dbn.Metadata.decode(self._take(size))
        except Exception as error:  # the decoder raises DBNError, ValueError and others; all mean the same here
            problem = f"has metadata of DBN version {version} that cannot be decoded ({error})"
            raise DataError(self._name, problem, "give a file of DBN version 1, 2 or 3") from error
        schema = None if metadata.schema is None else str(metadata.schema)
        if schema not in (None, "mbp-10"):
            remedy = "download the same data with schema='mbp-10'"
            raise DataError(self._name, f"holds schema {schema}; wanted is mbp-10", remedy)
        return Header(
            version=version,
            dataset=str(metadata.dataset),
            schema=schema,
            symbols=tuple(metadata.symbols),
            ts_out=bool(metadata.ts_out),
        )

    def records(self, header: Header, block_rows: int) -> Iterator[Records]:
        stride = RECORD.itemsize + (8 if header.ts_out else 0)
        position = 0
        while self._fill(stride) or self._buffer:
            self._fill(stride * block_rows)
            end, block = _split(self._buffer, stride, block_rows)
            if end < 0:
                raise DataError(
                    self._name,
                    f"has a record of length 0 at byte {position - end - 1} after its metadata",
                    "it is damaged: fetch it again",
                )
            if end == 0:
                raise DataError(
                    self._name,
                    f"is cut within a record ({len(self._buffer)} bytes of one are left at its end)",
                    "fetch it again",
                )
            position += end
            del self._buffer[:end]
            if len(block):
                yield block


def _split(buffer: bytearray, stride: int, most: int) -> tuple[int, Records]:
    """(bytes used, MBP-10 records in them); bytes used is 0 when there is no whole record, -1-offset of a bad one."""
    count = min(len(buffer) // stride, most)
    wide = RECORD if stride == RECORD.itemsize else np.dtype([("record", RECORD), ("ts_out", "<u8")])
    wide_rows = np.frombuffer(bytes(buffer[: count * stride]), wide)
    rows = wide_rows if wide is RECORD else np.ascontiguousarray(wide_rows["record"])
    if count and bool(np.all((rows["length"] == stride // WORD) & (rows["rtype"] == RTYPE_MBP_10))):
        return count * stride, rows
    return _walk(buffer, stride, most)


def _walk(buffer: bytearray, stride: int, most: int) -> tuple[int, Records]:
    """As ``_split``, record by record: for streams in which records of other kinds stand between ours."""
    position = 0
    kept: list[bytes] = []
    while position < len(buffer) and len(kept) < most:
        size = buffer[position] * WORD
        if size == 0:
            return -1 - position, np.empty(0, RECORD)
        if position + size > len(buffer):
            break
        if size == stride and buffer[position + 1] == RTYPE_MBP_10:
            kept.append(bytes(buffer[position : position + RECORD.itemsize]))
        position += size
    return position, np.frombuffer(b"".join(kept), RECORD)


def _decompressed(file: BinaryIO, name: str) -> Iterator[bytes]:
    """The bytes of a plain or zstd file in pieces; every frame of the latter. DataError when zstd is damaged or cut."""
    piece = file.read(_BITE)
    if piece[:4] != _ZSTD:
        while piece:
            yield piece
            piece = file.read(_BITE << 4)
        return
    frame = zstandard.ZstdDecompressor().decompressobj()
    while piece:
        try:
            data = frame.decompress(piece)
        except zstandard.ZstdError as error:
            raise DataError(name, f"is damaged zstd ({error})", "fetch it again") from error
        if data:
            yield data
        if frame.eof:
            piece = frame.unused_data or file.read(_BITE)
            if piece:
                frame = zstandard.ZstdDecompressor().decompressobj()
        else:
            piece = file.read(_BITE)
    if not frame.eof:
        raise DataError(name, "is cut: its zstd frame does not end", "fetch it again")


def _not_dbn(name: str, start: bytes) -> DataError:
    if start[:2] == _GZIP:
        return DataError(name, "is gzip, not DBN", "decompress it first: DBN is read plain or zstd-compressed")
    return DataError(
        name, f"is not DBN (it starts with bytes {start.hex(' ')})", "give a .dbn or .dbn.zst file of schema mbp-10"
    )
