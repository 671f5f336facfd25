"""The writer: bytes that depend on the rows alone, hashes that are right, and nothing half-written that looks whole."""

from __future__ import annotations

import hashlib
import os
import resource
import signal
import subprocess
import sys
from array import array
from pathlib import Path
from typing import Any

import pytest

from foxrun import ContractError, Leaf, RunWriter, jsonio, open_run
from tests.contract.runs import LEAVES, MANIFEST, rows_of, write_run


def manifest_of(path: Path) -> dict[str, Any]:
    return jsonio.loads((path / "run_manifest.json").read_bytes())


def names(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir())


def test_a_run_reads_back(tmp_path: Path) -> None:
    rows, bits = rows_of(10)
    run = open_run(write_run(tmp_path))
    assert run.problems == []
    assert run.complete
    assert [(row.index, row.line, row.step, row.phase) for row in run.rows()] == [
        (step, step + 1, step, "train") for step in range(10)
    ]
    assert [row.checksums for row in run.rows()] == [row["checksums"] for row in rows]
    assert [row.metrics for row in run.rows()] == [row["metrics"] for row in rows]
    assert run.leaves == LEAVES
    assert run.row_count == 10
    assert run.bits(0, 10) == bits
    assert run.bits(4, 6) == bits[4 * 24 : 6 * 24]
    assert run.summary == {"total_pnl_usd": 12.5, "trades": 3}
    assert run.verify() == []


def test_equal_runs_give_equal_bytes_however_the_rows_were_grouped(tmp_path: Path) -> None:
    rows, bits = rows_of(10)
    first = write_run(tmp_path / "a")
    with RunWriter(tmp_path / "b", leaves=LEAVES, manifest=MANIFEST, rows_per_block=4) as run:
        for index, row in enumerate(rows):
            shuffled = dict(reversed(row["checksums"].items()))
            run.append([row | {"checksums": shuffled}], bits[24 * index : 24 * (index + 1)])
    for name in ("diag.jsonl", "bits.u64", "leaves.json"):
        assert (first / name).read_bytes() == (run.path / name).read_bytes()
    assert manifest_of(first)["blocks"] == manifest_of(run.path)["blocks"]
    assert manifest_of(first)["run_id"] != manifest_of(run.path)["run_id"]


def test_the_manifest_lists_every_file_with_its_hash(tmp_path: Path) -> None:
    path = write_run(tmp_path)
    manifest = manifest_of(path)
    listed = {entry["name"]: entry for entry in manifest["files"]}
    assert sorted([*listed, "run_manifest.json"]) == names(path)
    for name, entry in listed.items():
        data = (path / name).read_bytes()
        assert entry == {
            "name": name, "size": len(data), "sha256": hashlib.sha256(data).hexdigest(),
            "compared": name != "timing.jsonl",
        }  # fmt: skip
    assert manifest["run_id"] == path.name
    assert (manifest["rows"], manifest["leaf_count"], manifest["exit_reason"]) == (10, 3, "completed")
    assert manifest["code"] == {"commit_asked": "", "tree_asked": "", "tree_run": "a" * 40, "branch": ""}
    assert manifest["config_sha256"] == hashlib.sha256(b'{"rate":0.1}').hexdigest()


def test_blocks_are_hashed_by_rows(tmp_path: Path) -> None:
    path = write_run(tmp_path, 10, rows_per_block=4)
    blocks = manifest_of(path)["blocks"]
    assert blocks["bits.u64"]["offsets"] == [0, 96, 192]
    for name in ("bits.u64", "diag.jsonl"):
        data = (path / name).read_bytes()
        offsets = blocks[name]["offsets"]
        ends = [*offsets[1:], len(data)]
        assert blocks[name]["rows_per_block"] == 4
        parts = [data[start:end] for start, end in zip(offsets, ends, strict=True)]
        assert [hashlib.sha256(part).hexdigest() for part in parts] == blocks[name]["sha256"]
    lines = (path / "diag.jsonl").read_bytes().splitlines(keepends=True)
    assert blocks["diag.jsonl"]["offsets"][1] == sum(map(len, lines[:4]))


def test_a_run_that_is_not_finished_is_incomplete(tmp_path: Path) -> None:
    rows, bits = rows_of(3)
    run = RunWriter(tmp_path, leaves=LEAVES, manifest=MANIFEST)
    run.append(rows, bits)
    found = open_run(tmp_path)
    assert not found.complete
    (problem,) = found.problems
    assert str(problem) == (
        "run_manifest.json: missing: the run is incomplete; the run was killed, is still going on, "
        "or its trainer writes none; run it again for a verdict"
    )
    assert problem.fatal
    assert len(list(found.rows())) == 3  # rows leave the process as they are appended
    run.close()


KILLED = """
import os, signal, sys
from foxrun import RunWriter
from tests.contract.runs import LEAVES, MANIFEST, rows_of
rows, bits = rows_of(6)
run = RunWriter(sys.argv[1], leaves=LEAVES, manifest=MANIFEST)
run.append(rows, bits)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_leaves_an_incomplete_run_with_its_rows(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False, cwd=Path(__file__).parents[2])
    assert done.returncode == -signal.SIGKILL
    run = open_run(tmp_path)
    assert not run.complete
    assert len(list(run.rows())) == run.row_count == 6


def test_a_full_disk_leaves_a_shorter_run_that_can_be_finished(tmp_path: Path) -> None:
    rows, bits = rows_of(40)
    run = RunWriter(tmp_path, leaves=LEAVES, manifest=MANIFEST, rows_per_block=16)
    run.append(rows[:20], bits[: 20 * 24])
    size = (run.path / "diag.jsonl").stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            run.append(rows[20:], bits[20 * 24 :])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    run.finish("failed: the disk is full")
    found = open_run(tmp_path)
    assert found.complete
    assert found.verify() == []
    assert len(list(found.rows())) == found.row_count == 20
    assert found.bits(0, 20) == bits[: 20 * 24]
    assert found.problems == []
    blocks = manifest_of(run.path)["blocks"]["bits.u64"]
    assert blocks["offsets"] == [0, 384]
    assert blocks["sha256"][1] == hashlib.sha256(bits[384:480]).hexdigest()


def test_an_exception_is_the_exit_reason(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), RunWriter(tmp_path, leaves=[], manifest={}) as run:
        run.append([{"step": 0, "phase": "train"}])
        _ = 1 // 0
    assert manifest_of(run.path)["exit_reason"] == "failed: ZeroDivisionError: integer division or modulo by zero"
    assert open_run(tmp_path).complete


def test_without_leaves_there_are_no_fingerprint_files(tmp_path: Path) -> None:
    with RunWriter(tmp_path, leaves=[], manifest={"seed": 1}) as run:
        run.append([{"step": 0, "phase": "eval", "checksums": {"any": 1.0}, "metrics": {}}])
    assert names(run.path) == ["diag.jsonl", "run_manifest.json"]
    found = open_run(tmp_path)
    assert (found.problems, found.row_count, len(list(found.rows()))) == ([], 0, 1)


def test_nothing_is_left_beside_the_files(tmp_path: Path) -> None:
    with RunWriter(tmp_path, leaves=LEAVES, manifest=MANIFEST) as run:
        run.attach("dumps/step-2/w.bin", b"\x00\x01", compared=True)
        run.attach("notes.txt", b"", compared=False)
    assert names(run.path) == ["bits.u64", "diag.jsonl", "dumps", "leaves.json", "notes.txt", "run_manifest.json"]
    compared = {entry["name"]: entry["compared"] for entry in manifest_of(run.path)["files"]}
    assert compared["dumps/step-2/w.bin"] is True
    assert compared["notes.txt"] is False


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "a//b", "", "C:x", "a\\b", "x\n", "diag.jsonl", "."])
def test_attach_stays_in_the_run_directory(tmp_path: Path, name: str) -> None:
    with RunWriter(tmp_path, leaves=[], manifest={}) as run:
        run.append([{"step": 0, "phase": "train"}])
        with pytest.raises(ContractError):
            run.attach(name, b"x", compared=True)


ROW = {"step": 0, "phase": "train", "checksums": {"w": 1.0}, "metrics": {}}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"step": -1}, "diag.jsonl, line 3: step is -1; give an integer from 0"),
        ({"step": 1.0}, "diag.jsonl, line 3: step is 1.0"),
        ({"step": True}, "diag.jsonl, line 3: step is True"),
        ({"phase": "test"}, "diag.jsonl, line 3: phase is 'test'; give train or eval"),
        ({"checksums": {"v": 1.0}}, "diag.jsonl, line 3: checksums of no leaf: ['v']; declare them in leaves"),
        ({"loss": 1.0}, "diag.jsonl, line 3: unknown keys ['loss']; put them into metrics"),
        ({"metrics": {"a": object()}}, "the value at /metrics/a is a object"),
    ],
)
def test_a_bad_row_is_refused_and_nothing_of_its_group_is_written(
    tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    run = RunWriter(tmp_path, leaves=LEAVES[:1], manifest=MANIFEST)
    run.append([ROW], bytes(8))
    with pytest.raises(ContractError) as caught:
        run.append([ROW | {"step": 1}, ROW | change], bytes(16))
    assert str(caught.value).startswith(says)
    run.finish()
    found = open_run(tmp_path)
    assert (len(list(found.rows())), found.row_count, found.problems) == (1, 1, [])


def test_the_wrong_number_of_fingerprints_is_refused(tmp_path: Path) -> None:
    run = RunWriter(tmp_path, leaves=LEAVES, manifest=MANIFEST)
    with pytest.raises(ContractError, match="8 bytes of fingerprints for 1 rows of 3 leaves; give 24 bytes"):
        run.append([ROW], bytes(8))
    run.append([ROW], memoryview(array("Q", [1, 2, 3])))
    run.finish()
    assert open_run(tmp_path).bits(0, 1) == array("Q", [1, 2, 3]).tobytes()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"leaves": [LEAVES[0], LEAVES[0]], "manifest": {}}, "leaves named twice: w"),
        ({"leaves": [], "manifest": {"files": []}}, "the manifest's files is the writer's own"),
        ({"leaves": [], "manifest": {"config": [1]}}, "the manifest's config is a list; give a mapping"),
        ({"leaves": [], "manifest": {"command": "python"}}, "the manifest's command is a str; give a list"),
        ({"leaves": [], "manifest": {"config": {"p": Path("x")}}}, "the value at /config/p is a "),
        ({"leaves": [], "manifest": {}, "rows_per_block": 0}, "rows_per_block is 0"),
    ],
)
def test_what_cannot_be_finished_is_refused_at_the_start(tmp_path: Path, arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ContractError) as caught:
        RunWriter(tmp_path, **arguments)
    assert str(caught.value).startswith(says)
    assert list(tmp_path.iterdir()) == []


def test_a_finished_run_takes_nothing_more(tmp_path: Path) -> None:
    with RunWriter(tmp_path, leaves=[], manifest={}) as run:
        run.write_summary({"total_pnl_usd": float("nan")})
    for call in (lambda: run.append([]), lambda: run.finish(), lambda: run.timing({}), lambda: run.write_summary({})):
        with pytest.raises(ContractError, match="is finished"):
            call()
    assert (run.path / "eval_summary.json").read_text() == '{\n  "total_pnl_usd": "NaN"\n}\n'


def test_a_leaf_must_be_of_a_kind() -> None:
    with pytest.raises(ContractError, match="use one of weight, moment, activation, gradient, state"):
        Leaf("w", "net", "tensor", "float32", ())


def test_run_ids_are_random_whatever_seeds_the_process(tmp_path: Path) -> None:
    code = "import random, sys; random.seed(0); from foxrun import RunWriter; "
    code += "print(RunWriter(sys.argv[1], leaves=[], manifest={}).run_id)"
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    command = [sys.executable, "-W", "ignore", "-c", code, str(tmp_path)]
    where = Path(__file__).parents[2]
    ids = {subprocess.run(command, env=environment, cwd=where, capture_output=True, check=True).stdout for _ in "ab"}
    assert len(ids) == 2
