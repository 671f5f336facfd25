from __future__ import annotations

import math
from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest

from tests.trainer.market_books import record
from trainer.data import rows as rows_module
from trainer.data.dbn import F_LAST, F_MAYBE_BAD_BOOK, Records
from trainer.data.errors import DataError
from trainer.data.features import LIMIT, features, log1p
from trainer.data.generate import synthetic_records
from trainer.data.rows import Assembler, Rows

E9 = 10**9
TWO = [(10.0, 5), (9.0, 6)], [(11.0, 7), (12.0, 8)]


def assemble(*records: Records, instrument: int | None = None) -> Rows:
    return Assembler("x.dbn", instrument).push(np.concatenate(records))


def test_rows_begin_with_the_first_two_sided_state() -> None:
    rows = assemble(
        record([], [], action="R"),
        record([(10, 1)], []),
        record([(12, 1)], [(11, 1)]),  # crossed, as before an open
        record([(11, 1)], [(11, 1)]),  # locked
        record(*TWO),
        record([], [(11, 3)]),
    )
    assert len(rows) == 2
    assert rows.valid.tolist() == [True, False]


def test_missing_prices_are_carried_with_size_zero() -> None:
    rows = assemble(record(*TWO), record([], [(11, 3)]), record([], [], action="R"), record([(8, 2)], []))
    assert rows.bid_px[:, :3].tolist() == [
        [10 * E9, 9 * E9, 9 * E9],
        [10 * E9] * 3,
        [10 * E9] * 3,
        [8 * E9] * 3,
    ]
    assert rows.bid_sz[:, :3].tolist() == [[5, 6, 0], [0, 0, 0], [0, 0, 0], [2, 0, 0]]
    assert rows.ask_px[:, :2].tolist() == [[11 * E9, 12 * E9], [11 * E9] * 2, [11 * E9] * 2, [11 * E9] * 2]
    assert rows.ask_sz[:, :2].tolist() == [[7, 8], [3, 0], [0, 0], [0, 0]]
    assert rows.valid.tolist() == [True, False, False, False]


def test_a_doubtful_or_empty_best_is_not_valid() -> None:
    rows = assemble(
        record(*TWO),
        record(*TWO, flags=F_LAST | F_MAYBE_BAD_BOOK),
        record([(10, 0)], [(11, 1)]),
        record([(12, 1)], [(11, 1)]),
    )
    assert rows.valid.tolist() == [True, False, False, False]


def test_states_in_the_middle_of_an_event_are_no_rows_but_their_trades_count() -> None:
    rows = assemble(
        record(*TWO, ts=5),
        record(*TWO, flags=0, action="T", side="B", price=11, size=7, ts=6),
        record(*TWO, flags=0, action="T", side="B", price=12, size=2, ts=6),
        record(*TWO, flags=0, action="T", side="B", price=12, size=1, ts=6),
        record([(10, 5)], [(12, 5)], ts=9),
        record([(10, 5)], [(12, 5)], ts=9),
    )
    assert rows.ts.tolist() == [5, 9, 9]
    assert rows.before_ts.tolist() == [5, 5, 9]
    assert rows.trade_px.tolist() == [0, 12 * E9, 0]
    assert rows.trade_sz.tolist() == [0, 3, 0]  # the size at the farthest price
    assert rows.flow.tolist() == [0, 10, 0]
    assert rows.trade_count.tolist() == [0, 3, 0]
    assert rows.before_ask.tolist() == [11 * E9, 11 * E9, 12 * E9]


def test_the_stronger_aggressor_of_an_event_is_the_one_reported() -> None:
    rows = assemble(
        record(*TWO),
        record(*TWO, flags=0, action="T", side="B", price=11, size=3),
        record(*TWO, flags=0, action="T", side="A", price=10, size=5),
        record(*TWO, flags=0, action="T", side="A", price=9, size=2),
        record(*TWO),
        record(*TWO, action="T", side="B", price=11, size=4),
    )
    assert rows.trade_px.tolist() == [0, 9 * E9, 11 * E9]
    assert rows.trade_sz.tolist() == [0, -2, 4]
    assert rows.flow.tolist() == [0, -4, 4]


def test_a_trade_without_aggressor_is_judged_by_the_quote() -> None:
    rows = assemble(
        record(*TWO),
        record(*TWO, action="T", side="N", price=11, size=4),
        record(*TWO, action="T", side="N", price=10, size=4),
        record(*TWO, action="T", side="N", price=10.5, size=4),
        record([], [], action="T", side="N", price=10.5, size=4),
    )
    assert rows.trade_sz.tolist() == [0, 4, -4, 0, 0]
    assert rows.trade_count.tolist() == [0, 1, 1, 1, 1]


def test_the_first_instrument_is_taken_and_the_others_are_counted() -> None:
    records = [
        record(*TWO, instrument=7),
        record([(99, 1)], [(100, 1)], instrument=9),
        record(*TWO, instrument=7),
        record([(99, 1)], [(100, 1)], instrument=3),
        record([(98, 1)], [(100, 1)], instrument=9),
    ]
    first = Assembler("x.dbn")
    assert len(first.push(np.concatenate(records))) == 2
    assert (first.instrument, first.skipped) == (7, {3: 1, 9: 2})
    other = assemble(*records, instrument=9)
    assert other.bid_px[:, 0].tolist() == [99 * E9, 98 * E9]


@pytest.mark.parametrize("cut", [1, 2, 3, 17, 1000])
def test_rows_do_not_depend_on_how_the_stream_is_cut(cut: int) -> None:
    records = synthetic_records(1500, 6)
    records["levels"][700:720] = records["levels"][0]  # an empty book
    records["instrument_id"][200:210] = 5
    whole = assemble(records)
    assembler = Assembler("x.dbn")
    parts = assembler.push(records[:0])
    for start in range(0, len(records), cut):
        parts = parts.joined(assembler.push(records[start : start + cut]))
    for field in fields(Rows):
        assert np.array_equal(getattr(whole, field.name), getattr(parts, field.name)), field.name
    assert features(whole).tobytes() == features(parts).tobytes()


def test_a_file_that_never_ends_an_event_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "LONGEST_EVENT", 50)
    records = synthetic_records(60, 1)
    records["flags"] = 0
    with pytest.raises(DataError, match=r"x\.dbn: has 60 records in a row without the flag F_LAST"):
        assemble(records)


def test_features_of_a_row_by_hand() -> None:
    rows = assemble(
        record([(99, 3), (98, 0)], [(101, 7)], ts=1_000_000),
        record([(98, 7), (97, 1)], [(102, 1)], action="T", side="A", price=98, size=7, ts=8_000_000),
    )
    seen = features(rows)
    assert seen.shape == (2, 12, 4)
    assert seen.dtype == np.float32
    f32 = np.float32
    first, second = seen
    # Distances: square root of basis points of the mid, 100.
    assert first[0].tolist() == [f32(10), f32(10), f32(math.log(4) / 8), f32(math.log(8) / 8)]
    assert first[11].tolist() == [0, f32(LIMIT), f32(-0.4), 0]
    assert first[10].tolist() == [0, 0, 0, 0]
    assert second[10].tolist() == [f32(-math.log(8) / 8), -f32(10), f32(math.log(2) / 2), -f32(LIMIT)]
    assert second[11].tolist() == [0, f32(LIMIT), f32(0.75), pytest.approx(math.log(7001) / 10, abs=1e-7)]
    tight = features(assemble(record([(9999, 1), (9998, 1)], [(10001, 1)])))[0]
    assert tight[0, :2].tolist() == [1, 1]
    assert tight[1, :2].tolist() == [f32(math.sqrt(2)), 1]
    assert tight[11, 1] == f32(math.sqrt(2))


def test_features_are_finite_and_bounded_for_absurd_books() -> None:
    seen = features(
        assemble(
            record([(-1, 1)], [(1, 1)], ts=2**62),  # a spread between two contracts: the mid is 0
            record([(9_000_000_000, 2**32 - 1)], [(0.000000001, 2**32 - 1)], ts=0),
            record([], [], action="T", side="B", price=9_000_000_000, size=2**32 - 1, ts=2**64 - 1),
        )
    )
    assert np.isfinite(seen).all()
    assert np.abs(seen).max() <= LIMIT


def test_our_logarithm_is_accurate() -> None:
    values = np.concatenate([np.arange(2000.0), 2.0 ** np.arange(53), np.linspace(1e5, 4e9, 999).round()])
    for value, ours in zip(values.tolist(), log1p(values).tolist(), strict=True):
        true = math.log1p(value)
        assert abs(Fraction(ours) - Fraction(true)) <= 2 * Fraction(math.ulp(true))
