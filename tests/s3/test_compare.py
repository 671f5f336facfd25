"""Runs on S3: what is read, counted request by request, and that the verdict is the one on the same directories."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.s3 import Tally
from benchmarks.synthetic import reseal
from orchestrator import comparison
from orchestrator.compare import verdict as v
from orchestrator.compare.policy import Options
from orchestrator.compare.tolerance import Tolerance
from orchestrator.errors import UsageError
from orchestrator.places import Places
from orchestrator.reporting import report
from orchestrator.settings import Settings
from tests.compare.runs import edit_json, make
from tests.s3.conftest import Area
from tests.s3.servers import environment

ROWS = 700  # three blocks of 256 rows
MANIFEST = "run_manifest.json"


Change = Callable[[list[list[int]], list[dict[str, Any]]], None]


@pytest.fixture
def places(area: Area) -> Places:
    made = Places(Settings(s3_bucket=area.store.bucket))
    made._store = area.store
    return made


def drift_from(
    row: int, *, column: int = 2, metric: bool = True
) -> Callable[[list[list[int]], list[dict[str, Any]]], None]:
    """One fingerprint and one metric differ from a row on."""

    def change(words: list[list[int]], lines: list[dict[str, Any]]) -> None:
        for index in range(row, len(words)):
            words[index][column] ^= 1
            if metric:
                lines[index]["metrics"]["loss"] += 0.5

    return change


def facts(verdict: v.Verdict) -> tuple[Any, ...]:
    """What must not depend on where the runs lie."""
    first = verdict.first_divergence
    return (
        verdict.verdict,
        verdict.exit_code,
        first and first.line,
        first and first.row,
        verdict.parted,
        verdict.outcome,
    )


def test_an_identical_pair_costs_a_listing_and_a_manifest_each(area: Area, places: Places, tmp_path: Path) -> None:
    run = make(tmp_path / "a", rows=ROWS)
    a, b = area.put(run, "a"), area.put(run, "b")
    tally = Tally(area.store.client)
    verdict = comparison.compare(a, b, places=places)
    assert verdict.verdict == v.IDENTICAL
    assert verdict.message == f"every compared file has the same sha256: {ROWS} rows x 4 leaves"
    prefix = area.prefix
    assert tally.requests == [
        ("ListObjectsV2", f"{prefix}/a/", ""),
        ("ListObjectsV2", f"{prefix}/b/", ""),
        ("GetObject", f"{prefix}/a/{MANIFEST}", ""),
        ("GetObject", f"{prefix}/b/{MANIFEST}", ""),
    ]
    listings = 5_000  # two, of six files each
    assert 0 < tally.bytes - 2 * (run / MANIFEST).stat().st_size < listings
    files = sum((run / name).stat().st_size for name in ("bits.u64", "diag.jsonl", "eval_summary.json", "leaves.json"))
    assert verdict.notes == [
        f"by the manifests' hashes: 4 files, {2 * files:,} bytes, were not read; --verify reads everything, "
        "and names leaves that never change"
    ]
    assert verdict.agreed == v.Agreement(
        rows=ROWS, leaves=4, planted_flip=v.PlantedFlip(row=-1, leaf="sha256 of diag.jsonl", found=True)
    )


def test_a_parted_pair_costs_the_block_that_differs(area: Area, places: Places, tmp_path: Path) -> None:
    one = make(tmp_path / "a", rows=ROWS)
    other = make(tmp_path / "b", rows=ROWS, change=drift_from(300))
    a, b = area.put(one, "a"), area.put(other, "b")
    tally = Tally(area.store.client)
    verdict = comparison.compare(a, b, places=places)
    assert facts(verdict) == facts(comparison.compare(one, other))
    assert verdict.first_divergence is not None and verdict.first_divergence.row == 300
    width, expected, size = 8 * 4, [], 0
    for run, side in ((one, "a"), (other, "b")):
        offsets = json.loads((run / MANIFEST).read_text())["blocks"]["diag.jsonl"]["offsets"]
        expected += [("ListObjectsV2", f"{area.prefix}/{side}/", "")]
        for name in (MANIFEST, "leaves.json", "eval_summary.json"):
            expected.append(("GetObject", f"{area.prefix}/{side}/{name}", ""))
            size += (run / name).stat().st_size
        for name, start, end in (
            ("bits.u64", 256 * width, 512 * width),
            ("diag.jsonl", offsets[1], offsets[2]),
        ):
            expected.append(("GetObject", f"{area.prefix}/{side}/{name}", f"bytes={start}-{end - 1}"))
            size += end - start
    assert sorted(tally.requests) == sorted(expected)
    assert 0 < tally.bytes - size < 5_000  # the two listings
    assert verdict.notes == [
        "by the manifests' block hashes: 2 of 3 blocks of rows differ, 1 read (rows 256 to 511); counts and growth are "
        "of these, --verify reads everything"
    ]
    assert verdict.agreed is not None
    assert verdict.agreed.rows == 256 + 44 and verdict.agreed.planted_flip is not None
    assert verdict.agreed.planted_flip.found and 256 <= verdict.agreed.planted_flip.row < 512


def test_where_only_fingerprints_part_the_rows_are_read_once(area: Area, places: Places, tmp_path: Path) -> None:
    one = make(tmp_path / "a", rows=ROWS)
    other = make(tmp_path / "b", rows=ROWS, change=drift_from(600, metric=False))
    a, b = area.put(one, "a"), area.put(other, "b")
    tally = Tally(area.store.client)
    assert facts(comparison.compare(a, b, places=places)) == facts(comparison.compare(one, other))
    ranged = sorted(key.rpartition("/")[2] for _, key, asked in tally.requests if asked)
    assert ranged == ["bits.u64", "bits.u64", "diag.jsonl"]


def test_verify_reads_everything_and_finds_what_hashes_cannot(area: Area, places: Places, tmp_path: Path) -> None:
    run = make(tmp_path / "a", rows=ROWS)
    a, b = area.put(run, "a"), area.put(run, "b")
    bits = bytearray((run / "bits.u64").read_bytes())
    bits[100] ^= 1
    area.store.write(f"{area.prefix}/b/bits.u64", bytes(bits))
    assert comparison.compare(a, b, places=places).verdict == v.IDENTICAL  # by the manifests, as it says
    verdict = comparison.compare(a, b, Options(verify=True), places=places)
    assert (verdict.verdict, verdict.exit_code) == (v.INCOMPLETE, 7)
    assert "bits.u64" in verdict.message and b in verdict.message


def test_damage_in_the_block_that_is_read_is_no_drift(area: Area, places: Places, tmp_path: Path) -> None:
    one = make(tmp_path / "a", rows=ROWS)
    other = make(tmp_path / "b", rows=ROWS, change=drift_from(300))
    bits = bytearray((other / "bits.u64").read_bytes())
    bits[8 * 4 * 400] ^= 1
    (other / "bits.u64").write_bytes(bits)
    verdict = comparison.compare(area.put(one, "a"), area.put(other, "b"), places=places)
    assert verdict.verdict == v.INCOMPLETE
    assert verdict.message.startswith(f"{area.url('b')}/bits.u64: the sha256 of block 1 is ")
    assert verdict.message.endswith(": damaged later")


@pytest.mark.parametrize("seed", range(6))
def test_the_verdict_is_that_on_the_directories(seed: int, area: Area, places: Places, tmp_path: Path) -> None:
    draw = random.Random(seed)
    row, column = draw.randrange(ROWS), draw.randrange(4)
    one = make(tmp_path / "a", rows=ROWS)
    other = make(tmp_path / "b", rows=ROWS, change=drift_from(row, column=column, metric=draw.random() < 0.5))
    here = comparison.compare(one, other)
    assert here.verdict == v.DRIFT
    assert facts(comparison.compare(area.put(one, "a"), area.put(other, "b"), places=places)) == facts(here)


def shorter(a: Path, out: Path) -> Path:
    return make(out, rows=ROWS - 10)


def other_summary(a: Path, out: Path) -> Path:
    return make(out, rows=ROWS, summary={"total_pnl_usd": 2000.0, "max_drawdown_usd": -250.0, "trades": 12})


def other_leaves(a: Path, out: Path) -> Path:
    return make(out, rows=ROWS, names=("env_cash", "vsn_w", "encoder_output", "pi_grad"))


def another_file(a: Path, out: Path) -> Path:
    return make(out, rows=ROWS, compared={"dumps/x.bin": b"1"})


def other_seed(a: Path, out: Path) -> Path:
    return make(out, rows=ROWS, seed=44)


def killed(a: Path, out: Path) -> Path:
    return make(out, rows=ROWS - 10, finish=None)


def failed(a: Path, out: Path) -> Path:
    return make(out, rows=ROWS, finish="failed: ValueError: no")


def blanks_in_the_rows(a: Path, out: Path) -> Path:
    """The same values written otherwise, and a manifest that describes no blocks any more."""
    run = Path(shutil.copytree(a, out / a.name))
    rows = (run / "diag.jsonl").read_text().splitlines()
    (run / "diag.jsonl").write_text("".join(json.dumps(json.loads(row)) + "\n" for row in rows))
    reseal(run)
    return run


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (shorter, v.DRIFT), (other_summary, v.DRIFT), (other_leaves, v.DRIFT), (another_file, v.DRIFT),
        (other_seed, v.INCOMPARABLE), (killed, v.INCOMPLETE), (failed, v.JOB_FAILED), (blanks_in_the_rows, v.IDENTICAL),
    ],
)  # fmt: skip
def test_every_kind_of_difference_is_judged_alike(
    change: Callable[[Path, Path], Path], expected: str, area: Area, places: Places, tmp_path: Path
) -> None:
    one = make(tmp_path / "a", rows=ROWS)
    other = change(one, tmp_path / "b")
    here = comparison.compare(one, other)
    there = comparison.compare(area.put(one, "a"), area.put(other, "b"), places=places)
    assert here.verdict == expected
    assert facts(there) == facts(here)


def test_a_tolerance_reads_every_differing_block(area: Area, places: Places, tmp_path: Path) -> None:
    def change(words: list[list[int]], lines: list[dict[str, Any]]) -> None:
        for index in (10, 300, 650):
            words[index][1] ^= 1
            lines[index]["checksums"]["vsn_w"] *= 1 + 1e-9

    one, other = make(tmp_path / "a", rows=ROWS), make(tmp_path / "b", rows=ROWS, change=change)
    a, b = area.put(one, "a"), area.put(other, "b")
    tally = Tally(area.store.client)
    options = Options(tolerance=Tolerance(rules=(), rtol=1e-6))
    there = comparison.compare(a, b, options, places=places)
    here = comparison.compare(one, other, options)
    assert here.verdict == v.WITHIN_TOLERANCE
    assert (there.verdict, there.differences_total, there.growth) == (here.verdict, here.differences_total, here.growth)
    assert len([asked for *_, asked in tally.requests if asked]) == 3 * 4


def test_an_incomplete_upload_is_incomplete(area: Area, places: Places, tmp_path: Path) -> None:
    run = make(tmp_path / "a", rows=ROWS)
    a, b = area.put(run, "a"), area.put(run, "b")
    area.store.delete(f"{area.prefix}/b/leaves.json")  # the manifest came, another file did not
    verdict = comparison.compare(a, b, places=places)
    assert (verdict.verdict, verdict.exit_code) == (v.INCOMPLETE, 7)
    assert verdict.message == f"{b}: leaves.json: missing, though the manifest names it"


def test_of_several_attempts_the_complete_one_is_read(area: Area, places: Places, tmp_path: Path) -> None:
    whole, cut = make(tmp_path / "a", rows=ROWS), make(tmp_path / "cut", rows=9, finish=None)
    area.put(cut, f"leg-a/pod-1/{cut.name}")
    area.put(whole, f"leg-a/pod-2/{whole.name}")
    area.put(whole, f"leg-b/pod-3/{whole.name}")
    verdict = comparison.compare(area.url("leg-a"), area.url("leg-b"), places=places)
    assert verdict.verdict == v.IDENTICAL
    assert [run.label for run in verdict.runs] == [
        area.url(f"leg-a/pod-2/{whole.name}"), area.url(f"leg-b/pod-3/{whole.name}")
    ]  # fmt: skip
    assert any("2 attempts, 1 complete" in note for note in verdict.notes)


def test_a_directory_against_s3_is_read_and_checked_here(area: Area, places: Places, tmp_path: Path) -> None:
    run = make(tmp_path / "a", rows=ROWS)
    a = area.put(run, "a")
    assert comparison.compare(run, a, places=places).verdict == v.IDENTICAL
    bits = bytearray((run / "bits.u64").read_bytes())
    bits[5] ^= 1
    (run / "bits.u64").write_bytes(bits)
    verdict = comparison.compare(a, run, places=places)
    assert verdict.verdict == v.INCOMPLETE and verdict.message.startswith(f"{run}: bits.u64: its sha256 is ")


def test_equal_manifests_with_other_blocks_prove_nothing(area: Area, places: Places, tmp_path: Path) -> None:
    run = make(tmp_path / "a", rows=ROWS)
    a = area.put(run, "a")
    edit_json(run / MANIFEST, lambda m: m["blocks"]["bits.u64"]["sha256"].reverse())
    b = area.put(run, "b")
    tally = Tally(area.store.client)
    assert comparison.compare(a, b, places=places).verdict == v.INCOMPLETE
    assert any(key.endswith("bits.u64") for _, key, _ in tally.requests)


def test_metric_files_on_s3(area: Area, places: Places, tmp_path: Path) -> None:
    area.store.write(f"{area.prefix}/a.jsonl", b'{"step":0,"loss":1.0}\n{"step":1,"loss":2.0}\n')
    area.store.write(f"{area.prefix}/b.jsonl", b'{"step":0,"loss":1.0}\n{"step":1,"loss":2.5}\n')
    verdict = comparison.compare(area.url("a.jsonl"), area.url("b.jsonl"), places=places)
    assert verdict.verdict == v.DRIFT and verdict.first_divergence is not None
    assert verdict.first_divergence.line == "FIRST_DIVERGENCE: step=1 leaf=loss run_A=2.0 run_B=2.5 delta=0.5"


def test_addresses_that_hold_no_run(area: Area, places: Places, tmp_path: Path) -> None:
    run = make(tmp_path / "a")
    a = area.put(run, "a")
    area.store.write(f"{area.prefix}/main.tgz", b"x")
    for address, what in (
        (area.url("nothing"), "nothing is stored there"),
        (area.store.url(""), "is a whole bucket"),
        (area.url("main.tgz"), "is a packed artifact, of which no part can be read alone"),
        (area.url("a/diag.jsonl"), "is a file and"),
    ):
        with pytest.raises(UsageError, match=what):
            comparison.compare(address, a, places=places)


def test_the_report_of_a_workflow_on_s3(area: Area, places: Places, tmp_path: Path) -> None:
    one, other = make(tmp_path / "a", rows=9), make(tmp_path / "b", rows=9, change=drift_from(3))
    area.put(one, f"uid/leg-a/pod/{one.name}")
    area.put(other, f"uid/leg-b/pod/{other.name}")

    def written(*subjects: str) -> str:
        return report(
            subjects, settings=Settings(), out=tmp_path / "r.html", engine=lambda: pytest.fail("none"), places=places
        ).read_text()

    line = comparison.compare(one, other).first_divergence
    assert line is not None
    assert written(area.url("uid/leg-a"), area.url("uid/leg-b")).count("<h1") == 1
    assert line.line in written(area.url("uid"))
    comparison.compare(one, one, verdict_file=tmp_path / "verdict.json")
    area.store.write(f"{area.prefix}/uid/verdict.json", (tmp_path / "verdict.json").read_bytes())
    assert line.line not in written(area.url("uid")) and "identical" in written(area.url("uid/verdict.json"))


def test_the_command_line_takes_addresses(area: Area, tmp_path: Path) -> None:
    one, other = make(tmp_path / "a", rows=9), make(tmp_path / "b", rows=9, change=drift_from(3))
    a, b = area.put(one, "a"), area.put(other, "b")
    env = environment(**{key: value for key, value in os.environ.items() if key.startswith("AWS_")})
    env["FOXRUN_S3_ENDPOINT"] = os.environ["FOXRUN_S3_ENDPOINT"]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "orchestrator", "compare", a, b], capture_output=True, text=True, env=env
    )
    assert (done.returncode, done.stderr) == (3, "")
    assert "FIRST_DIVERGENCE: step=3 leaf=encoder_output" in done.stdout and f"A: {a} (9 rows" in done.stdout
    assert f"foxrun compare {a} {b} --report report.html" in done.stdout
