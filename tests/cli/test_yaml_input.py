"""YAML of settings, tolerances, parameters and lint is read in bounded time, or refused in one sentence."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from orchestrator import yaml_input
from orchestrator.comparison import read_tolerance
from orchestrator.errors import UsageError
from orchestrator.linting import lint
from orchestrator.settings import load_settings
from orchestrator.submission import tolerance_text
from orchestrator.training import read_parameter_file
from orchestrator.yaml_input import NotYaml

LAUGHS = "steps:\n" + "- &a0 [x]\n" + "".join(f"- &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
HOSTILE = {
    "[" * 5000: "nested",
    "- " * 2000 + "x": "nested",
    '{"a":' * 2000: "nested",
    LAUGHS: "aliases stand for more than",
    "steps: &a [*a]": "contains itself",
    "steps: 2001-99-99": "month must be in 1..12",
    "? [a]\n: 1": "",
    "\tsteps: 3": "cannot start any token",
    "steps: !!python/object/apply:os.system [id]": "could not determine a constructor",
    "\x00": "special characters are not allowed",
    "x" * (yaml_input.LARGEST + 1): "holds over 2 MiB",
}


@pytest.mark.parametrize(("text", "why"), HOSTILE.items(), ids=range(len(HOSTILE)))
def test_each_reader_refuses_it_at_once(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "foxrun.yaml"
    file.write_text(text)
    began = time.monotonic()
    for read in (
        lambda: load_settings(tmp_path, {}, {}),
        lambda: tolerance_text(file),
        lambda: read_tolerance(file),
        lambda: read_parameter_file(file) if "2001" not in text else tolerance_text(file),  # values as written
    ):
        with pytest.raises(UsageError) as caught:
            read()
        assert str(file) in str(caught.value)
        assert "\n" not in str(caught.value)
    (problem,) = lint(file)
    assert why in problem or "not a Workflow" in problem
    assert time.monotonic() - began < 20


def test_a_file_without_end_is_refused() -> None:
    with pytest.raises(UsageError, match="/dev/zero holds over 2 MiB"):
        yaml_input.read_text(Path("/dev/zero"))


def test_aliases_and_merges_that_stay_small_are_read() -> None:
    assert yaml_input.load("a: &a {x: 1}\nb: {<<: *a, y: 2}\nc: [*a, *a]") == {
        "a": {"x": 1}, "b": {"x": 1, "y": 2}, "c": [{"x": 1}, {"x": 1}],
    }  # fmt: skip


def test_the_line_is_told() -> None:
    with pytest.raises(NotYaml) as caught:
        yaml_input.load("a: 1\nb: [")
    assert caught.value.line == 3 or caught.value.line == 2
