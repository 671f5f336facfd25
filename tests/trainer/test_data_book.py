from __future__ import annotations

import hashlib
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch

from foxrun.fingerprint import fingerprint
from tests.trainer.market_books import BTC, SHARED, decoded, needs_data, record, write_dbn
from trainer.data.book import Book, BookStream, DataError
from trainer.data.generate import synthetic_records, write

TWO = [(10.0, 5), (9.0, 6)], [(11.0, 7), (12.0, 8)]


def stream(source: str | Path, **given: int) -> BookStream:
    settings = {"chunk_rows": 64, "min_rows": 1, **given}
    return BookStream(source, device="cpu", **settings)  # type: ignore[arg-type]


def tensors(book: Book) -> dict[str, torch.Tensor]:
    return {f.name: getattr(book, f.name) for f in fields(book) if f.name != "first_row"}


def test_chunks_tile_the_stream_and_the_last_reaches_back() -> None:
    whole = stream("synthetic", rows=400, seed=3, chunk_rows=10_000).load(0)
    data = stream("synthetic", rows=400, seed=3)
    assert data.rows_total == whole.rows
    assert data.chunks == -(-whole.rows // 64)
    for index in range(data.chunks):
        chunk = data.load(index)
        first = min(index * 64, whole.rows - 64)
        assert (chunk.rows, chunk.first_row) == (64, first)
        for name, tensor in tensors(chunk).items():
            assert torch.equal(tensor, getattr(whole, name)[first : first + 64]), name


def test_chunks_do_not_depend_on_the_order_of_loading() -> None:
    data, other = stream("synthetic", rows=12_000, seed=3), stream("synthetic", rows=12_000, seed=3)
    chunks = [{n: fingerprint(t) for n, t in tensors(data.load(i)).items()} for i in range(data.chunks)]
    for index in [data.chunks - 1, 5, 0, 140, 7, 7, data.chunks + 3, 2 * data.chunks - 1]:
        loaded = other.load(index)
        assert {n: fingerprint(t) for n, t in tensors(loaded).items()} == chunks[index % data.chunks]


def test_a_chunk_that_is_loaded_again_stays_on_the_device() -> None:
    data = stream("synthetic", rows=400, seed=3)
    assert data.load(1) is data.load(1 + data.chunks)


def test_shapes_types_and_finite_values() -> None:
    book = stream("synthetic", rows=400, seed=3).load(0)
    shapes = {name: (tuple(t.shape), t.dtype) for name, t in tensors(book).items()}
    assert shapes == {
        "features": ((64, 12, 4), torch.float32),
        "bid_px": ((64, 10), torch.float64),
        "ask_px": ((64, 10), torch.float64),
        "bid_sz": ((64, 10), torch.float32),
        "ask_sz": ((64, 10), torch.float32),
        "trade_px": ((64,), torch.float64),
        "trade_sz": ((64,), torch.float32),
        "valid": ((64,), torch.bool),
    }
    assert all(bool(t.isfinite().all()) for t in tensors(book).values())


def test_a_file_and_the_same_data_in_memory_are_one(tmp_path: Path) -> None:
    path = tmp_path / "book.dbn"
    write(path, rows=400, seed=3)
    ours, memory = stream(path), stream("synthetic", rows=400, seed=3)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert ours.inputs == [{"name": "book.dbn", "sha256": digest, "size": path.stat().st_size}]
    assert memory.inputs == [{"name": "synthetic-400-3.dbn", "sha256": digest, "size": path.stat().st_size}]
    for name, tensor in tensors(ours.load(2)).items():
        assert torch.equal(tensor, getattr(memory.load(2), name)), name


@needs_data
def test_the_real_book_row_by_row() -> None:
    data = stream(BTC, chunk_rows=8192)
    assert (data.rows_total, data.chunks, data.instrument, data.skipped) == (27_342, 4, 1, {})
    assert data.describe() == f"{BTC.name}: 27342 rows of instrument 1 in 4 chunks"
    records = decoded(BTC)
    for index in range(data.chunks):
        book = data.load(index)
        assert bool(book.valid.all())
        assert bool(book.features.isfinite().all())
        for row in range(0, book.rows, 97):
            message = records[book.first_row + row]
            assert book.bid_px[row].tolist() == [level.bid_px / 1e9 for level in message.levels]
            assert book.ask_sz[row].tolist() == [level.ask_sz for level in message.levels]
            if str(message.action.value) == "T":
                signed = message.size if str(message.side.value) == "B" else -message.size
                assert (book.trade_px[row], book.trade_sz[row]) == (message.price / 1e9, signed)
            else:
                assert (book.trade_px[row], book.trade_sz[row]) == (0, 0)


@needs_data
@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("GLBX.MDP3.mbp-10.dbn.zst", 4),
        ("NDEX.IMPACT.mbp-10.dbn.zst", 4),
        ("XNAS.ITCH.mbp-10.dbn.zst", 2),
        ("test_data.mbp-10.dbn", 2),
        ("test_data.mbp-10.v1.dbn.zst", 2),
        ("test_data.mbp-10.v2.dbn.zst", 2),
        ("test_data.mbp-10.v3.dbn.zst", 2),
    ],
)
def test_samples_of_other_venues(name: str, rows: int) -> None:
    book = stream(SHARED / name).load(0)
    assert book.rows == rows
    assert bool(book.valid.all())
    assert all(bool(t.isfinite().all()) for t in tensors(book).values())


@needs_data
def test_a_file_without_a_two_sided_book_is_refused() -> None:
    with pytest.raises(DataError) as caught:
        stream(SHARED / "IFEU.IMPACT.mbp-10.dbn.zst")
    assert str(caught.value) == (
        "IFEU.IMPACT.mbp-10.dbn.zst: has 0 usable rows of instrument 5617221; needed are 1; give a longer file "
        "(rows count from the first two-sided state of the book)"
    )


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(DataError, match=r"^synthetic: has 87 usable rows .* needed are 200; give a larger parameter"):
        stream("synthetic", rows=100, seed=1, min_rows=200)
    with pytest.raises(DataError, match=r"^synthetic: data of 0 rows cannot be made; give the parameter rows"):
        stream("synthetic")
    with pytest.raises(DataError, match=r"^0: is no number of rows for a chunk"):
        stream("synthetic", rows=100, chunk_rows=0)


def test_other_instruments_are_named(tmp_path: Path) -> None:
    other = record([(99, 1)], [(100, 1)], instrument=9)
    path = write_dbn(tmp_path / "two.dbn", record(*TWO), other, record(*TWO), other, other)
    data = stream(path)
    assert data.describe() == "two.dbn: 2 rows of instrument 7 in 1 chunks; skipped instruments 9 (3 records)"
    assert stream(path, instrument=9).load(0).bid_px[:, 0].tolist() == [99, 99, 99]
    with pytest.raises(DataError) as caught:
        stream(path, instrument=8)
    assert str(caught.value) == "two.dbn: has no rows of instrument 8; it holds 7, 9: give one of these"


def test_a_file_that_changes_under_the_run_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "book.dbn"
    write(path, rows=400, seed=3)
    data = stream(path)
    write(path, rows=200, seed=3)
    with pytest.raises(DataError, match=r"^book\.dbn: now ends at row 1\d\d; it changed while it was read: run again"):
        data.load(5)


def test_features_of_known_data_keep_their_bits() -> None:
    book = stream("synthetic", rows=2000, seed=3, chunk_rows=1500).load(0)
    bits = {name: f"{fingerprint(tensor):016x}" for name, tensor in tensors(book).items()}
    assert bits == {
        "features": "a243fa7b79b9ab03",
        "bid_px": "9af603cc85765e89",
        "ask_px": "e5c54fd4d71a9298",
        "bid_sz": "bddf414a1df547f6",
        "ask_sz": "982deff35653188d",
        "trade_px": "ab278c1c8a356975",
        "trade_sz": "8cc7e3770ee94c5d",
        "valid": "5c42b77bde5a4186",
    }
    assert np.count_nonzero(synthetic_records(2000, 3)["action"] == b"T") > 100
