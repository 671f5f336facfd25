"""How a trainer's parameters come together, and that any text travels."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.errors import UsageError
from orchestrator.settings import Settings
from orchestrator.training import command_of, read_parameter_file, training_of


def test_options_win_over_p_over_file_over_settings(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("envs: 8\nrate: 1e-3\nseed: 3\nsteps: 5\n")
    training = training_of(Settings(mode=3), parameters=["envs=16", "seed=4"], parameter_file=file, eval_steps=9)
    assert training.parameters == {"envs": "16", "rate": "1e-3"}
    assert (training.seed, training.mode, training.steps, training.eval_steps) == (4, 3, 5, 9)


def test_scalars_stay_as_they_are_written_and_nested_values_become_json(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("a: 010\nb: 1.50\nc: yes\nd: null\ne: [1, 'two', {x: 3.0}]\nf: '{}'\n")
    assert read_parameter_file(file) == {
        "a": "010", "b": "1.50", "c": "yes", "d": "null", "e": '[1, "two", {"x": 3.0}]', "f": "{}",
    }  # fmt: skip
    file.write_text('{"a": 1e5, "b": {"c": "\\ud83e\\udd8a"}}')
    assert read_parameter_file(file) == {"a": "1e5", "b": '{"c": "🦊"}'}


@pytest.mark.parametrize("text", ["- a\n", "a: [\n", "a: 1\na: 2\n", "", "\x00"])
def test_a_file_that_holds_no_parameters_is_refused_by_name(tmp_path: Path, text: str) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(text)
    with pytest.raises(UsageError, match=str(file)):
        read_parameter_file(file)


@pytest.mark.parametrize(
    "value", ["🦊", "a \"quoted\" 'text'", '{"a": [1, 2]}', "a=b", " ", "", "$HOME `x` \\n", "--x"]
)
def test_any_text_is_a_value(value: str) -> None:
    assert training_of(Settings(), parameters=[f"note={value}"]).parameters == {"note": value}


def test_data_is_a_file_or_synthetic(tmp_path: Path) -> None:
    file = tmp_path / "book.dbn"
    file.touch()
    assert training_of(Settings(), parameters=[f"data={file}"]).data == file
    assert training_of(Settings(), parameters=["data=synthetic"]).data is None
    with pytest.raises(UsageError, match="is a directory"):
        training_of(Settings(), parameters=[f"data={tmp_path}"])


def test_a_command_is_parted_like_a_shell_would() -> None:
    assert command_of('python "my train.py" --x=1') == ("python", "my train.py", "--x=1")
    with pytest.raises(UsageError, match="is empty"):
        command_of("  ")
