"""Random damage to a run directory: it is opened, read and verified, and the damage is told, never a traceback."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foxrun import ContractError, open_run
from tests.contract.runs import write_run

NAMES = ("bits.u64", "diag.jsonl", "eval_summary.json", "leaves.json", "run_manifest.json", "timing.jsonl")
CHUNKS = [
    b"", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r\n", b"{", b"}", b"[", b'"', b"null", b"NaN", b"-0",
    b"1e999", b"{}", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18", b"9" * 5000, b"[" * 1000,
    b'"\\ud83d"', b",", b"../x",
]  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("whole"), 6)


@settings(
    max_examples=250, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
@given(
    name=st.sampled_from(NAMES),
    start=st.floats(0, 1),
    length=st.sampled_from([0, 1, 2, 40, 10**9]),
    chunk=st.sampled_from(CHUNKS),
)
def test_random_damage_is_told(whole: Path, tmp_path: Path, name: str, start: float, length: int, chunk: bytes) -> None:
    path = tmp_path / "run"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(whole, path)
    data = (path / name).read_bytes()
    at = int(start * len(data))
    damaged = data[:at] + chunk + data[at + length :]
    (path / name).write_bytes(damaged)

    run = open_run(path)
    rows = list(run.rows())
    problems = [*run.problems, *run.verify()]
    run.bits(0, 100)
    for one in run.files:
        b"".join(run.blocks(one))

    assert all(problem.what and problem.remedy and problem.file for problem in problems)
    assert all(type(row.step) is int and isinstance(row.checksums, dict) for row in rows)
    if damaged != data and name != "run_manifest.json":
        assert any(problem.fatal for problem in problems)


@pytest.mark.parametrize("name", NAMES)
def test_a_directory_in_the_place_of_a_file(tmp_path: Path, name: str) -> None:
    path = write_run(tmp_path)
    (path / name).unlink()
    (path / name).mkdir()
    run = open_run(path)
    list(run.rows())
    assert not run.complete
    assert any(problem.file == name and problem.fatal for problem in run.problems)
    with pytest.raises(ContractError):
        list(run.blocks(name))
