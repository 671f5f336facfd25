"""The use case: what it opens, what it writes, and what it refuses."""

import json
import os
from pathlib import Path

import pytest

from orchestrator.compare.policy import Options
from orchestrator.compare.tolerance import Rule, Tolerance
from orchestrator.comparison import compare, read_tolerance, read_verdict, write_verdict
from orchestrator.errors import InfrastructureError, UsageError
from tests.compare.runs import make


def test_verdict_json_is_the_verdict(tmp_path: Path) -> None:
    file = tmp_path / "out" / "verdict.json"
    verdict = compare(make(tmp_path / "a"), make(tmp_path / "b", rows=4), verdict_file=file)
    assert read_verdict(file) == verdict
    assert json.loads(file.read_text())["exit_code"] == 3
    assert os.listdir(file.parent) == ["verdict.json"]  # noqa: PTH208


def test_an_out_directory_with_one_attempt_stands_for_it(tmp_path: Path) -> None:
    make(tmp_path / "a")
    make(tmp_path / "b")
    assert compare(tmp_path / "a", tmp_path / "b").verdict == "identical"


def test_a_verdict_that_cannot_be_written_is_an_infrastructure_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    verdict = compare(make(tmp_path / "a"), make(tmp_path / "b"))
    with pytest.raises(InfrastructureError, match=r"verdict\.json"):
        write_verdict(verdict, tmp_path / "file" / "verdict.json")


@pytest.mark.parametrize("text", ["", "[]", "{", '{"verdict": "fine"}'])
def test_what_is_no_verdict_is_refused_by_name(tmp_path: Path, text: str) -> None:
    file = tmp_path / "verdict.json"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"verdict\.json"):
        read_verdict(file)
    with pytest.raises(UsageError, match="none"):
        read_verdict(tmp_path / "none")


def test_tolerances_come_from_a_file_a_text_and_a_flag(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text("loss: {abs: 1}\n")
    assert read_tolerance(file, '{"x": {"ulp": 2}}', 1e-5) == Tolerance(
        rules=(Rule(pattern="loss", abs=1.0), Rule(pattern="x", ulp=2)), rtol=1e-5
    )
    assert not read_tolerance()
    with pytest.raises(UsageError, match="none"):
        read_tolerance(tmp_path / "none")


def test_a_misspelt_allowance_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--allow treee"):
        compare(make(tmp_path / "a"), make(tmp_path / "b"), Options(allow=frozenset({"treee"})))


def test_an_unreadable_file_is_an_infrastructure_error(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    for name in "ab":
        (tmp_path / name).write_text('{"x": 1}\n')
        (tmp_path / name).chmod(0)
    with pytest.raises(InfrastructureError):
        compare(tmp_path / "a", tmp_path / "b")
