"""A reader survives anything: each kind of damage gives a problem with file, line and remedy, and the rest is read."""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest
import zstandard

from foxrun import ContractError, DirectorySource, Run, jsonio, open_run
from tests.contract.runs import LEAVES, rows_of, write_run


def texts(run: Run, *, fatal: bool | None = None) -> list[str]:
    return [str(problem) for problem in run.problems if fatal is None or problem.fatal == fatal]


def edit_manifest(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    manifest = json.loads((path / "run_manifest.json").read_text())
    change(manifest)
    (path / "run_manifest.json").write_text(json.dumps(manifest))


def plain_run(path: Path, diag: bytes, name: str = "diag.jsonl") -> Run:
    """A run of a trainer that writes nothing but rows."""
    path.mkdir(exist_ok=True)
    (path / name).write_bytes(diag)
    return open_run(path)


def row(step: Any, **more: Any) -> bytes:
    value = {"step": step, "phase": "train", "checksums": {}, "metrics": {}} | more
    return json.dumps(value).encode() + b"\n"


# Missing, empty and cut files


def test_no_such_directory(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="nowhere: there is no such directory; check the path"):
        open_run(tmp_path / "nowhere")


def test_an_empty_directory(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="is empty: no run was written; see the trainer's log"):
        open_run(tmp_path)


def test_a_directory_without_a_run(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").write_text("")
    with pytest.raises(ContractError, match=r"holds no run: none of run_manifest\.json, diag\.jsonl, .* is there"):
        open_run(tmp_path)


def test_a_file(tmp_path: Path) -> None:
    (tmp_path / "diag.jsonl").write_text("")
    with pytest.raises(ContractError, match="is a file, not a run directory"):
        open_run(tmp_path / "diag.jsonl")


@pytest.mark.parametrize("name", ["bits.u64", "diag.jsonl", "eval_summary.json", "leaves.json", "timing.jsonl"])
def test_a_missing_file_makes_the_run_incomplete(tmp_path: Path, name: str) -> None:
    path = write_run(tmp_path)
    (path / name).unlink()
    run = open_run(tmp_path)
    list(run.rows())
    assert not run.complete
    assert any(text.startswith(f"{name}: missing, though the manifest names it; run the") for text in texts(run))
    assert [problem.file for problem in run.verify()] == [name]


@pytest.mark.parametrize("name", ["bits.u64", "diag.jsonl", "eval_summary.json", "leaves.json", "timing.jsonl"])
@pytest.mark.parametrize("keep", [0, 1, -1])
def test_a_cut_file_makes_the_run_incomplete(tmp_path: Path, name: str, keep: int) -> None:
    path = write_run(tmp_path)
    data = (path / name).read_bytes()
    (path / name).write_bytes(data[:keep])
    run = open_run(tmp_path)
    list(run.rows())
    assert not run.complete
    expected = f"{name}: holds {len(data[:keep])} bytes, the manifest says {len(data)}"
    assert any(text.startswith(expected) for text in texts(run, fatal=True))
    assert any(str(problem).startswith(expected) for problem in run.verify())


@pytest.mark.parametrize("text", ["", "{", '{"schema_version": 1', "null", "[]", '"NaN"', "\x00\x00", "{}"])
def test_a_bad_manifest_makes_the_run_incomplete(tmp_path: Path, text: str) -> None:
    path = write_run(tmp_path)
    (path / "run_manifest.json").write_text(text)
    run = open_run(tmp_path)
    assert not run.complete
    assert run.problems[0].file == "run_manifest.json"
    assert all(problem.fatal for problem in run.problems[:1])
    assert len(list(run.rows())) == 10
    assert run.run_id == path.name
    run.verify()


@pytest.mark.parametrize(
    "text", ["", "[1,", "[]", "null", '{"leaves": 5}', '{"leaves": [5]}', '{"leaves": [{"name": "w"}]}']
)
def test_bad_leaves_are_told(tmp_path: Path, text: str) -> None:
    path = write_run(tmp_path)
    (path / "leaves.json").write_text(text)
    run = open_run(tmp_path)
    assert any(text.startswith("leaves.json") for text in texts(run, fatal=True))
    assert (
        "bits.u64: cannot be read without leaves.json; run the trainer again, or copy the run directory again"
        in texts(run)
    )
    assert (run.leaves, run.row_count, run.bits(0, 5)) == ([], 0, b"")


def test_a_leaf_named_twice_is_told(tmp_path: Path) -> None:
    path = write_run(tmp_path)
    (path / "leaves.json").write_text((path / "leaves.json").read_text().replace('"name":"h"', '"name":"w"'))
    assert any("leaves.json: the leaf 'w' is there twice" in text for text in texts(open_run(tmp_path), fatal=True))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "eval_summary.json, line 1: empty"),
        ('{"total_pnl_usd": 1', "eval_summary.json, line 1: the JSON ends in the middle (after 19 characters)"),
        ("null", "eval_summary.json, line 1: is NoneType, not an object"),
        ("[1]", "eval_summary.json, line 1: is list, not an object"),
        ("nul", "eval_summary.json, line 1: not JSON at column 1"),
    ],
)
def test_a_bad_summary_is_told(tmp_path: Path, text: str, says: str) -> None:
    path = write_run(tmp_path)
    (path / "eval_summary.json").write_text(text)
    run = open_run(tmp_path)
    assert run.summary is None
    assert any(line.startswith(says) for line in texts(run, fatal=True))


def test_neither_rows_nor_a_summary(tmp_path: Path) -> None:
    path = write_run(tmp_path)
    (path / "eval_summary.json").unlink()
    (path / "diag.jsonl").unlink()
    assert any("holds neither diag.jsonl nor eval_summary.json" in text for text in texts(open_run(path), fatal=True))


def test_a_summary_alone_is_a_run(tmp_path: Path) -> None:
    (tmp_path / "eval_summary.json").write_text('{"total_pnl_usd": NaN}')
    run = open_run(tmp_path)
    assert run.summary is not None
    assert run.summary["total_pnl_usd"] != run.summary["total_pnl_usd"]
    assert [problem.file for problem in run.problems] == ["run_manifest.json"]
    assert list(run.rows()) == []


# Changed and misleading files


def test_a_flipped_bit_is_found_by_verify_alone(tmp_path: Path) -> None:
    path = write_run(tmp_path)
    data = bytearray((path / "bits.u64").read_bytes())
    data[17] ^= 4
    (path / "bits.u64").write_bytes(data)
    run = open_run(tmp_path)
    assert run.complete
    assert run.problems == []
    (problem,) = run.verify()
    assert str(problem).startswith("bits.u64: its sha256 is ")
    assert "it was changed or damaged later" in str(problem)


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a/../../secret", "..", "a\\..\\b"])
def test_a_manifest_cannot_name_files_outside(tmp_path: Path, name: str) -> None:
    path = write_run(tmp_path / "out")
    (tmp_path / "out" / "secret").write_text("x")
    edit_manifest(path, lambda manifest: manifest["files"][0].update(name=name))
    run = open_run(path)
    assert not run.complete
    (text,) = [text for text in texts(run, fatal=True) if "names" in text]
    assert text.startswith("run_manifest.json: files[0] names ")
    assert run.verify() == []  # the others are sound; the bad one is never opened
    with pytest.raises(ContractError):
        run.source.open(name)
    with pytest.raises(ContractError):
        run.source.read_range(name, 0, 1)


def test_links_out_of_the_directory_are_not_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x" * 10)
    path = write_run(tmp_path / "out")
    (path / "inside").symlink_to("diag.jsonl")
    (path / "outside").symlink_to("../../secret")
    (path / "broken").symlink_to("nothing")
    (path / "loop").symlink_to(".")
    os.mkfifo(path / "pipe")
    assert sorted(open_run(path).files) == [
        "bits.u64", "diag.jsonl", "eval_summary.json", "inside", "leaves.json", "run_manifest.json", "timing.jsonl",
    ]  # fmt: skip


def test_a_manifest_of_a_later_version_is_told(tmp_path: Path) -> None:
    path = write_run(tmp_path)
    edit_manifest(path, lambda manifest: manifest.update(schema_version=2))
    run = open_run(path)
    assert not run.complete
    assert any("schema_version is 2; this foxrun reads up to 1" in text for text in texts(run, fatal=True))


def test_a_file_that_the_manifest_does_not_name_is_told(tmp_path: Path) -> None:
    path = write_run(tmp_path)
    edit_manifest(path, lambda manifest: manifest.update(files=manifest["files"][1:]))
    assert texts(open_run(path)) == ["bits.u64: not named in the manifest; list it there, with its sha256"]


def test_fewer_rows_than_the_manifest_says(tmp_path: Path) -> None:
    path = write_run(tmp_path)
    edit_manifest(path, lambda manifest: manifest.update(rows=11))
    run = open_run(path)
    list(run.rows())
    assert [text.split(";")[0] for text in texts(run, fatal=True)] == [
        "bits.u64: holds 10 rows, the manifest says 11",
        "diag.jsonl: holds 10 rows, the manifest says 11",
    ]


def test_rows_and_fingerprints_that_do_not_pair(tmp_path: Path) -> None:
    path = write_run(tmp_path)
    (path / "run_manifest.json").unlink()
    lines = (path / "diag.jsonl").read_bytes().splitlines(keepends=True)
    (path / "diag.jsonl").write_bytes(b"".join(lines[:9]))
    run = open_run(path)
    assert len(list(run.rows())) == 9
    assert any(text.startswith("diag.jsonl: holds 9 rows, bits.u64 holds 10") for text in texts(run, fatal=True))


def test_a_cut_row_of_fingerprints(tmp_path: Path) -> None:
    path = write_run(tmp_path)
    (path / "bits.u64").write_bytes((path / "bits.u64").read_bytes()[:-8])
    run = open_run(path)
    assert run.row_count == 9
    assert any(
        "bits.u64: the last row is cut: 232 bytes are no whole number of rows of 24 bytes" in t for t in texts(run)
    )
    assert len(run.bits(0, 100)) == 9 * 24
    assert run.bits(9, 10) == run.bits(5, 5) == run.bits(7, 3) == b""


# Rows


def test_a_cut_last_line(tmp_path: Path) -> None:
    run = plain_run(tmp_path, row(0) + row(1) + row(2)[:-20])
    assert [found.step for found in run.rows()] == [0, 1]
    assert texts(run)[1].startswith("diag.jsonl, line 3: the last line is cut: ")


def test_bom_crlf_and_blank_lines(tmp_path: Path) -> None:
    run = plain_run(
        tmp_path, b"\xef\xbb\xbf" + row(0).replace(b"\n", b"\r\n") + b"\r\n" + row(1).replace(b"\n", b"\r\n")
    )
    assert [(found.index, found.line, found.step) for found in run.rows()] == [(0, 1, 0), (1, 3, 1)]
    assert len(run.problems) == 1


def test_duplicate_keys(tmp_path: Path) -> None:
    run = plain_run(tmp_path, b'{"step":0,"phase":"train","checksums":{"w":1.0,"w":2.0},"metrics":{}}\n' + row(1))
    found = list(run.rows())
    assert [(one.index, one.step) for one in found] == [(0, 0), (1, 1)]
    assert found[0].checksums == {"w": 2.0}
    assert texts(run, fatal=False)[0].startswith("diag.jsonl, line 1: the key 'w' is there twice, the last one counts")


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ([0, 1, 3], "diag.jsonl, line 3: step 2 is missing before step 3"),
        ([0, 1, 7], "diag.jsonl, line 3: 5 steps are missing before step 7"),
        ([0, 1, 1], "diag.jsonl, line 3: step 1 is there again"),
        ([0, 2, 1], "diag.jsonl, line 3: step 1 comes after step 2"),
        ([5, 6, 7], "diag.jsonl, line 1: the first step is 5, not 0"),
        ([0, 1, 10**300], "diag.jsonl, line 3: 9999999999"),
    ],
)
def test_steps_missing_repeated_or_out_of_order(tmp_path: Path, steps: list[int], says: str) -> None:
    run = plain_run(tmp_path, b"".join(map(row, steps)))
    assert [found.step for found in run.rows()] == steps
    assert any(text.startswith(says) for text in texts(run, fatal=False))


def test_a_line_that_cannot_be_read_keeps_its_place(tmp_path: Path) -> None:
    bad = [
        b"Traceback\n", b"[1]\n", b"7\n", b"null\n", b'"NaN"\n', row("3"), row(1.0), row(-1), row(True), row(None),
        row(0, checksums=[]), row(0, metrics=None), b"{}\n", b"\xff\n", b"1" * 5000 + b"\n", b"[" * 5000 + b"\n",
    ]  # fmt: skip
    run = plain_run(tmp_path, row(0) + b"".join(bad) + row(1))
    found = list(run.rows())
    assert [(one.index, one.line, one.step) for one in found] == [(0, 1, 0), (len(bad) + 1, len(bad) + 2, 1)]
    told = {problem.line for problem in run.problems if problem.file == "diag.jsonl" and problem.fatal}
    assert told == set(range(2, len(bad) + 2))
    assert all(problem.remedy for problem in run.problems)


def test_a_leaf_that_appears_half_way(tmp_path: Path) -> None:
    path = write_run(tmp_path)
    lines = (path / "diag.jsonl").read_bytes().splitlines(keepends=True)
    lines[5] = lines[5].replace(b'"checksums":{', b'"checksums":{"late":1.5,')
    (path / "diag.jsonl").write_bytes(b"".join(lines))
    run = open_run(path)
    rows = list(run.rows())
    assert "late" in rows[5].checksums
    expected = 'diag.jsonl, line 6: checksums of leaves that leaves.json does not have: "late"'
    assert any(text.startswith(expected) for text in texts(run, fatal=False))
    bare = plain_run(tmp_path / "bare", row(0) + row(1, checksums={"late": 1}))
    assert [list(found.checksums) for found in bare.rows()] == [[], ["late"]]


def test_nan_null_and_strings_stay_what_they_are(tmp_path: Path) -> None:
    line = b'{"step":0,"phase":"train","checksums":{},"metrics":{"a":NaN,"b":"NaN","c":null,"d":"nan","e":1,"f":1.0}}\n'
    (found,) = plain_run(tmp_path, line).rows()
    metrics = found.metrics
    assert metrics["a"] != metrics["a"]
    assert metrics["b"] != metrics["b"]
    assert (metrics["c"], metrics["d"]) == (None, "nan")
    assert (type(metrics["e"]), type(metrics["f"])) == (int, float)


def test_keys_beside_the_four_are_metrics(tmp_path: Path) -> None:
    run = plain_run(tmp_path, b'{"step":0,"loss":1.5,"phase":5,"metrics":{"loss":2}}\n')
    (found,) = run.rows()
    assert found.metrics == {"loss": 2, "/loss": 1.5, "phase": 5}
    assert found.phase == ""
    assert any("line 1: phase is 5; write train or eval" in text for text in texts(run, fatal=False))


def test_rows_of_several_megabytes(tmp_path: Path) -> None:
    metrics = {f"weights/{index}": index / 7 for index in range(100_000)}
    found = list(plain_run(tmp_path, row(0, metrics=metrics) + row(1, metrics=metrics)).rows())
    assert found[0].metrics == found[1].metrics == metrics


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
@pytest.mark.parametrize("pack", ["plain", "gzip", "zstd"])
def test_compressed_rows_are_told_by_content(tmp_path: Path, ending: str, pack: str) -> None:
    data = b"".join(map(row, range(100)))
    stored = {"plain": data, "gzip": gzip.compress(data), "zstd": zstandard.compress(data)}[pack]
    run = plain_run(tmp_path, stored, "diag.jsonl" + ending)
    assert [found.step for found in run.rows()] == list(range(100))
    assert len(run.problems) == 1
    if pack != "plain":
        run = plain_run(tmp_path, stored[:-6], "diag.jsonl" + ending)
        list(run.rows())
        assert any(f"the {pack} file is cut; copy or write it again" in text for text in texts(run, fatal=True))


def test_a_file_packed_after_the_run_is_told(tmp_path: Path) -> None:
    path = write_run(tmp_path)
    (path / "diag.jsonl.gz").write_bytes(gzip.compress((path / "diag.jsonl").read_bytes()))
    (path / "diag.jsonl").unlink()
    run = open_run(path)
    assert len(list(run.rows())) == 10
    assert texts(run) == [
        "diag.jsonl: missing, though the manifest names it; unpack diag.jsonl.gz, or write a manifest for it"
    ]


def test_problems_of_a_file_are_told_once_and_not_without_end(tmp_path: Path) -> None:
    run = plain_run(tmp_path, b"bad\n" * 5000)
    assert list(run.rows()) == []
    assert list(run.rows()) == []
    told = [text for text in texts(run) if text.startswith("diag.jsonl")]
    assert len(told) == 101
    assert told[-1] == "diag.jsonl: more than 100 problems; the others are left out; remove the cause of the first"


def test_a_fatal_problem_is_never_lost_among_odd_ones(tmp_path: Path) -> None:
    path = write_run(tmp_path)
    (path / "run_manifest.json").unlink()
    (path / "leaves.json").unlink()
    (path / "bits.u64").unlink()
    run = plain_run(path, row(0) * 500 + b"bad\n" + row(0))
    list(run.rows())
    assert any(problem.fatal and problem.line == 501 for problem in run.problems)


# Attempts


def test_one_complete_attempt_among_incomplete_ones(tmp_path: Path) -> None:
    killed = write_run(tmp_path, 50)
    (killed / "run_manifest.json").unlink()
    whole = write_run(tmp_path, 5)
    (tmp_path / "main.log").write_text("hello")
    run = open_run(tmp_path)
    assert run.run_id == whole.name
    assert run.complete
    (problem,) = run.problems
    assert not problem.fatal
    assert f"2 attempts, 1 complete: {whole.name} is read (finished last), not {killed.name}" in str(problem)


def test_of_several_complete_attempts_the_one_finished_last(tmp_path: Path) -> None:
    paths = [write_run(tmp_path) for _ in range(3)]
    times = ["2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z", "2026-01-01T00:00:00Z"]
    for path, finished in zip(paths, times, strict=True):
        edit_manifest(path, lambda manifest, finished=finished: manifest["times"].update(finished=finished))
    run = open_run(tmp_path)
    assert run.run_id == paths[1].name
    assert "3 attempts, 3 complete" in str(run.problems[0])


def test_of_incomplete_attempts_the_one_that_holds_most(tmp_path: Path) -> None:
    paths = [write_run(tmp_path, count) for count in (3, 9, 6)]
    for path in paths:
        (path / "run_manifest.json").unlink()
    run = open_run(tmp_path)
    assert run.label.endswith(paths[1].name)
    assert [problem.fatal for problem in run.problems] == [True, False]
    assert "3 attempts, 0 complete" in str(run.problems[1])


# Sources


class MemorySource:
    """A run in memory, as an object store would hold it; reads give at most ``piece`` bytes."""

    def __init__(self, files: dict[str, bytes], piece: int) -> None:
        self.label = "memory://runs"
        self._files = files
        self._piece = piece

    def list(self) -> dict[str, int]:
        return {name: len(data) for name, data in self._files.items()}

    def open(self, name: str) -> BinaryIO:
        piece = self._piece

        class Slow(io.BytesIO):
            def read(self, size: int | None = -1) -> bytes:
                return super().read(piece if size is None or size < 0 else min(piece, size))

        return Slow(self._files[name])

    def read_range(self, name: str, start: int, end: int) -> bytes:
        return self._files[name][start:end]


@pytest.mark.parametrize("prefix", ["", "abc/"])
def test_another_source_reads_the_same(tmp_path: Path, prefix: str) -> None:
    path = write_run(tmp_path)
    stored = {prefix + entry.name: entry.read_bytes() for entry in path.iterdir()}
    run, local = open_run(MemorySource(stored, piece=7)), open_run(path)
    assert run.complete
    assert run.problems == run.verify() == []
    assert run.label == "memory://runs" + ("/abc" if prefix else "")
    assert run.run_id == local.run_id
    assert list(run.rows()) == list(local.rows())
    assert run.bits(2, 5) == local.bits(2, 5)
    for name in local.files:
        assert list(run.blocks(name, 64)) == list(local.blocks(name, 64))
        assert all(len(block) == 64 for block in list(local.blocks(name, 64))[:-1])


def test_a_file_that_goes_away_while_reading_is_told(tmp_path: Path) -> None:
    path = write_run(tmp_path)
    run = open_run(path)
    (path / "diag.jsonl").unlink()
    (path / "bits.u64").unlink()
    assert list(run.rows()) == []
    assert any(text.startswith("diag.jsonl: cannot be read: ") for text in texts(run, fatal=True))
    with pytest.raises(ContractError, match=r"bits\.u64: cannot be read"):
        run.bits(0, 1)
    with pytest.raises(ContractError, match=r"bits\.u64: cannot be read"):
        list(run.blocks("bits.u64"))
    assert {problem.file for problem in run.verify()} == {"bits.u64", "diag.jsonl"}


def test_a_source_lists_what_is_there(tmp_path: Path) -> None:
    path = write_run(tmp_path)
    (path / "dumps" / "step-3").mkdir(parents=True)
    (path / "dumps" / "step-3" / "w.bin").write_bytes(b"abc")
    source = DirectorySource(path)
    assert list(source.list()) == sorted(source.list())
    assert source.list()["dumps/step-3/w.bin"] == 3
    assert source.read_range("dumps/step-3/w.bin", 1, 9) == b"bc"


def test_rows_agree_with_what_was_written(tmp_path: Path) -> None:
    rows, _ = rows_of(10)
    path = write_run(tmp_path)
    lines = (path / "diag.jsonl").read_text().splitlines()
    assert [jsonio.loads(line) for line in lines] == rows
    assert list(rows[0]["checksums"]) == [leaf.name for leaf in LEAVES]
