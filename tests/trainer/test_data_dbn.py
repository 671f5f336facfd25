from __future__ import annotations

import gzip
from pathlib import Path

import databento_dbn
import numpy as np
import pytest
import zstandard

from tests.trainer.market_books import BTC, SHARED, decoded, needs_data, record, write_dbn
from trainer.data.dbn import RECORD, Records, read_header, read_records
from trainer.data.errors import DataError
from trainer.data.generate import encode_header, synthetic_records, write

MBP10_FILES = [
    "GLBX.MDP3.mbp-10.dbn.zst",
    "IFEU.IMPACT.mbp-10.dbn.zst",
    "NDEX.IMPACT.mbp-10.dbn.zst",
    "XNAS.ITCH.mbp-10.dbn.zst",
    "btcusdt-binance-usdm-20240808.mbp-10.dbn.zst",
    "test_data.mbp-10.dbn",
    "test_data.mbp-10.v1.dbn.zst",
    "test_data.mbp-10.v2.dbn.zst",
    "test_data.mbp-10.v3.dbn.zst",
]


def read(path: Path, block_rows: int = 65536) -> Records:
    return np.concatenate(list(read_records(path, block_rows=block_rows)))


def refusal(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        read(path)
    return str(caught.value)


@needs_data
@pytest.mark.parametrize("name", MBP10_FILES)
def test_every_record_equals_the_vendors_decoder(name: str) -> None:
    ours, theirs = read(SHARED / name, block_rows=1000), decoded(SHARED / name)
    assert len(ours) == len(theirs)
    for mine, other in zip(ours[:: max(len(ours) // 500, 1)], theirs[:: max(len(ours) // 500, 1)], strict=True):
        assert mine.tobytes() == bytes(other)
        assert (mine["price"], mine["size"], mine["ts_recv"]) == (other.price, other.size, other.ts_recv)
        assert (mine["action"].decode(), mine["side"].decode()) == (str(other.action.value), str(other.side.value))
        assert mine["flags"] == int(other.flags)
        for level, theirs_level in zip(mine["levels"], other.levels, strict=True):
            assert level["bid_px"] == theirs_level.bid_px
            assert level["ask_px"] == theirs_level.ask_px
            assert (level["bid_sz"], level["ask_sz"]) == (theirs_level.bid_sz, theirs_level.ask_sz)


@needs_data
def test_header_of_each_version() -> None:
    versions = [read_header(SHARED / f"test_data.mbp-10.v{v}.dbn.zst").version for v in (1, 2, 3)]
    assert versions == [1, 2, 3]
    assert read_header(BTC).dataset == "BINANCE.USDM"
    assert read_header(BTC).symbols == ("BTCUSDT",)


@needs_data
def test_other_schemas_are_refused_by_name() -> None:
    assert refusal(SHARED / "GLBX.MDP3.mbo.dbn.zst") == (
        "GLBX.MDP3.mbo.dbn.zst: holds schema mbo; wanted is mbp-10; download the same data with schema='mbp-10'"
    )
    assert refusal(SHARED / "GLBX.MDP3.mbp-1.dbn.zst") == (
        "GLBX.MDP3.mbp-1.dbn.zst: holds schema mbp-1; wanted is mbp-10; download the same data with schema='mbp-10'"
    )


@pytest.mark.parametrize("block_rows", [1, 7, 100, 1000])
def test_blocks_do_not_change_what_is_read(tmp_path: Path, block_rows: int) -> None:
    write(tmp_path / "book.dbn.zst", rows=300, seed=3)
    blocks = list(read_records(tmp_path / "book.dbn.zst", block_rows=block_rows))
    assert all(len(block) <= block_rows for block in blocks)
    assert np.concatenate(blocks).tobytes() == synthetic_records(300, 3).tobytes()


def test_compression_is_told_by_content_not_by_name(tmp_path: Path) -> None:
    write(tmp_path / "packed.dbn.zst", rows=50, seed=3)
    (tmp_path / "packed.dbn").write_bytes((tmp_path / "packed.dbn.zst").read_bytes())
    write(tmp_path / "plain", rows=50, seed=3)
    (tmp_path / "plain.dbn.zst").write_bytes((tmp_path / "plain").read_bytes())
    assert read(tmp_path / "packed.dbn").tobytes() == read(tmp_path / "plain.dbn.zst").tobytes()


def test_several_zstd_frames_are_one_stream(tmp_path: Path) -> None:
    write(tmp_path / "plain", rows=100, seed=3)
    data = (tmp_path / "plain").read_bytes()
    frames = b"".join(zstandard.compress(data[i : i + 5000]) for i in range(0, len(data), 5000))
    (tmp_path / "frames.dbn.zst").write_bytes(frames)
    assert read(tmp_path / "frames.dbn.zst").tobytes() == synthetic_records(100, 3).tobytes()


def test_records_of_other_kinds_and_gateway_times_are_left_out(tmp_path: Path) -> None:
    system = bytes([4, 23]) + bytes(14)
    rows = synthetic_records(3, 1)
    path = tmp_path / "live.dbn"
    path.write_bytes(encode_header(1) + system + rows[:1].tobytes() + system + system + rows[1:].tobytes() + system)
    assert read(path).tobytes() == rows.tobytes()

    metadata = databento_dbn.Metadata("X", 0, None, databento_dbn.SType("instrument_id"), None, ts_out=True, version=3)
    timed = rows.copy()
    timed["length"] = 94
    path.write_bytes(metadata.encode() + b"".join(row.tobytes() + b"\x11" * 8 for row in timed))
    assert read(path).tobytes() == timed.tobytes()
    assert read_header(path).schema is None


def test_every_cut_of_a_file_is_noticed(tmp_path: Path) -> None:
    write(tmp_path / "whole.dbn", rows=4, seed=1)
    data = (tmp_path / "whole.dbn").read_bytes()
    header = len(data) - 4 * RECORD.itemsize
    path = tmp_path / "cut.dbn"
    for size in range(len(data) + 1):
        path.write_bytes(data[:size])
        if size > header and (size - header) % RECORD.itemsize == 0:
            assert len(read(path)) == (size - header) // RECORD.itemsize
        else:
            assert refusal(path).startswith("cut.dbn: ")
    path.write_bytes(data[:-5])
    assert refusal(path) == "cut.dbn: is cut within a record (363 bytes of one are left at its end); fetch it again"
    path.write_bytes(data[:header])
    assert refusal(path) == "cut.dbn: holds no MBP-10 record; give a file with market data, schema mbp-10"


def test_every_cut_of_a_zstd_file_is_noticed(tmp_path: Path) -> None:
    write(tmp_path / "whole.dbn.zst", rows=20, seed=1)
    data = (tmp_path / "whole.dbn.zst").read_bytes()
    path = tmp_path / "cut.dbn.zst"
    for size in range(0, len(data), 13):
        path.write_bytes(data[:size])
        assert refusal(path).startswith("cut.dbn.zst: ")
    path.write_bytes(data[: len(data) // 2])
    assert refusal(path) == "cut.dbn.zst: is cut: its zstd frame does not end; fetch it again"


def test_files_that_are_no_market_data_say_what_they_are(tmp_path: Path) -> None:
    path = tmp_path / "x.dbn"
    with pytest.raises(DataError, match=r"^x\.dbn: cannot be opened \(No such file or directory\); check the path"):
        read(path)
    with pytest.raises(DataError, match=r"cannot be opened \(Is a directory\)"):
        read(tmp_path)
    for content, expected in [
        (b"", "x.dbn: is empty; give a DBN file of schema mbp-10"),
        (b"ts,price\n1,2\n", "x.dbn: is not DBN (it starts with bytes 74 73 2c 70); give a .dbn or .dbn.zst file"),
        (gzip.compress(b"DBN"), "x.dbn: is gzip, not DBN; decompress it first"),
        (zstandard.compress(b"hello, world"), "x.dbn: is not DBN (it starts with bytes 68 65 6c 6c)"),
        (zstandard.compress(encode_header(0))[:20] + b"\xff" * 40, "x.dbn: is "),
        (b"DBN\x09" + (100).to_bytes(4, "little") + bytes(100), "x.dbn: has metadata of DBN version 9"),
        (b"DBN\x03\xff\xff\xff\xff", "x.dbn: claims 4294967303 bytes of metadata, which is damage"),
        (encode_header(0) + bytes(400), "x.dbn: has a record of length 0 at byte 0 after its metadata"),
    ]:
        path.write_bytes(content)
        assert refusal(path).startswith(expected)


def test_a_damaged_record_is_placed(tmp_path: Path) -> None:
    good = record([(10, 1)], [(11, 1)])
    bad = good.copy()
    bad["length"] = 0
    path = write_dbn(tmp_path / "bad.dbn", good, good, bad, good)
    assert refusal(path) == (
        "bad.dbn: has a record of length 0 at byte 736 after its metadata; it is damaged: fetch it again"
    )
