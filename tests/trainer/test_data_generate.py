from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zstandard

from tests.trainer.market_books import decoded
from trainer.data.dbn import F_LAST, UNDEF_PRICE
from trainer.data.generate import TICK, encode_header, main, splitmix64, synthetic_blocks, synthetic_records, write


def test_the_stream_is_the_same_on_every_machine(tmp_path: Path) -> None:
    write(tmp_path / "book.dbn", rows=9000, seed=7)
    digest = hashlib.sha256((tmp_path / "book.dbn").read_bytes()).hexdigest()
    assert digest == "a38628d1caaad08caa3dc619c67f1ab87f79a13a3daddaeee75aaf70696b3e9d"


def test_packed_and_plain_hold_the_same_stream(tmp_path: Path) -> None:
    write(tmp_path / "book.dbn", rows=500, seed=2)
    write(tmp_path / "book.dbn.zst", rows=500, seed=2)
    packed = zstandard.ZstdDecompressor().decompressobj().decompress((tmp_path / "book.dbn.zst").read_bytes())
    assert packed == (tmp_path / "book.dbn").read_bytes()
    assert packed == encode_header(2) + synthetic_records(500, 2).tobytes()
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["book.dbn", "book.dbn.zst"]


def test_splitmix64_vectors() -> None:
    # The first outputs of the reference implementation for state 1234567 (https://prng.di.unimi.it/splitmix64.c).
    state = np.uint64(1234567)
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    golden = 0x9E3779B97F4A7C15
    ours = [int(_mix((int(state) + golden * i) % 2**64)) for i in range(1, 5)]
    assert ours == expected
    assert splitmix64(0, 0, 0, 4).tolist() == [_mix(golden * i % 2**64) for i in range(1, 5)]
    assert splitmix64(5, 2, 3, 2).tolist() == splitmix64(5, 2, 0, 5).tolist()[3:]


def _mix(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return z ^ (z >> 31)


@pytest.mark.parametrize("seed", [0, 1, 2**63])
def test_the_book_is_plausible_at_every_record(seed: int) -> None:
    records = synthetic_records(12_000, seed)
    assert (records["action"][0], records["flags"][0]) == (b"R", F_LAST)
    levels = records["levels"][1:]
    bid, ask = levels["bid_px"], levels["ask_px"]
    assert np.all(bid[:, 0] < ask[:, 0])
    assert np.all(ask[:, 0] - bid[:, 0] <= 100 * TICK)
    for price, size, away in ((bid, levels["bid_sz"], -1), (ask, levels["ask_sz"], 1)):
        there = price != UNDEF_PRICE
        assert np.array_equal(there, size > 0)
        assert np.all(there[:, :-1] >= there[:, 1:])
        both = there[:, 1:]
        assert np.all(((price[:, 1:] - price[:, :-1]) * away)[both] >= TICK)
        assert np.all(price[there] % TICK == 0)
        assert 0 < np.count_nonzero(~there) < there.size // 10
    assert np.all(np.diff(records["ts_recv"].astype(np.int64)) >= 0)
    assert np.any(np.diff(records["ts_recv"].astype(np.int64)) == 0)


def test_a_trade_shows_the_old_book_and_the_next_record_takes_its_size(tmp_path: Path) -> None:
    records = synthetic_records(5000, 4)
    trades = np.flatnonzero(records["action"] == b"T")
    trades = trades[trades < len(records) - 1]
    assert len(trades) > 300
    assert not np.any(records["flags"][trades] & F_LAST)
    assert set(records["side"][trades].tolist()) == {b"A", b"B"}
    for row in trades[:200]:
        trade, after = records[row], records[row + 1]
        name = "ask" if trade["side"] == b"B" else "bid"
        best = trade["levels"][0]
        assert trade["price"] == best[f"{name}_px"]
        assert (after["action"], after["price"], after["size"]) == (b"C", trade["price"], trade["size"])
        assert trade["levels"].tobytes() == records[row - 1]["levels"].tobytes()
        left = after["levels"][0][f"{name}_sz"] if after["levels"][0][f"{name}_px"] == trade["price"] else 0
        assert left == best[f"{name}_sz"] - trade["size"]


def test_the_mid_moves_both_ways_and_another_seed_is_another_market() -> None:
    levels = synthetic_records(12_000, 1)["levels"][1:, 0]
    moves = np.sign(np.diff(levels["bid_px"] + levels["ask_px"]))
    assert np.count_nonzero(moves > 0) > 500
    assert np.count_nonzero(moves < 0) > 500
    assert synthetic_records(100, 1).tobytes() != synthetic_records(100, 2).tobytes()


def test_fewer_rows_are_the_beginning_of_more() -> None:
    assert synthetic_records(20_000, 5)[:9000].tobytes() == synthetic_records(9000, 5).tobytes()
    assert [len(block) for block in synthetic_blocks(20_000, 5)] == [8192, 8192, 3616]
    assert len(synthetic_records(0, 5)) == 0


def test_the_vendors_decoder_reads_it(tmp_path: Path) -> None:
    write(tmp_path / "book.dbn.zst", rows=400, seed=9)
    rows = decoded(tmp_path / "book.dbn.zst")
    assert [bytes(row) for row in rows] == [row.tobytes() for row in synthetic_records(400, 9)]
    assert rows[1].instrument_id == 1


def test_the_command_writes_a_file_or_says_why_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "cli.dbn"
    command = [sys.executable, "-m", "trainer.data.generate", "--rows", "50", "--seed", "3", str(out)]
    subprocess.run(command, check=True, capture_output=True)
    assert out.read_bytes() == encode_header(3) + synthetic_records(50, 3).tobytes()
    assert main(["--rows", "50", str(tmp_path / "absent" / "x.dbn")]) == 1
    assert capsys.readouterr().err.endswith(
        "x.dbn: cannot be written (No such file or directory); check the directory and its space\n"
    )
    with pytest.raises(SystemExit):
        main(["--rows", "1", str(out)])
    assert "--rows must be 2 or more" in capsys.readouterr().err
