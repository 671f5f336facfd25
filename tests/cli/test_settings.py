"""Settings: which source wins, and what is refused, where."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.errors import UsageError
from orchestrator.setting_values import parse_duration
from orchestrator.settings import load_settings
from tests.cli.conftest import Place


def test_file_then_variable_then_flag(tmp_path: Path) -> None:
    (tmp_path / "foxrun.yaml").write_text("seed: 1\nsteps: 10\ngate-steps: 20\n")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    settings = load_settings(below, {"FOXRUN_SEED": "2", "FOXRUN_STEPS": "11"}, {"steps": 12, "mode": None})
    assert (settings.seed, settings.steps, settings.gate_steps, settings.mode) == (2, 12, 20, 1)
    assert dict(settings.sources) == {
        "seed": "FOXRUN_SEED",
        "steps": "--steps",
        "gate_steps": f"{tmp_path / 'foxrun.yaml'}:3",
    }


def test_the_old_variable_for_the_mode_still_counts(tmp_path: Path) -> None:
    assert load_settings(tmp_path, {"FOXHUNT_DETERMINISTIC": "3"}).mode == 3
    assert load_settings(tmp_path, {"FOXHUNT_DETERMINISTIC": "3", "FOXRUN_MODE": "2"}).mode == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("seed: 1\nstep: 3\n", "line 2: unknown setting 'step'; did you mean 'steps'?"),
        ("seed: 1\nseed: 2\n", "line 2: 'seed' is set twice"),
        ("mode: 4\n", "line 1: mode cannot be 4: modes are 0 fast, 1 pedantic, 2 control, 3 fast and exact"),
        ("timeout: soon\n", "line 1: timeout cannot be 'soon': a duration is like 90s, 15m, 1h30m or 2d"),
        ("gate_steps: 0\n", "line 1: gate_steps cannot be 0: it is a whole number, 1 or more"),
        ("seed: true\n", "line 1: seed cannot be True: it is a whole number, 0 or more"),
        ("engine: slurm\n", "line 1: engine cannot be 'slurm': engines are local and argo"),
        ("- seed\n", "must hold settings"),
        ("seed: [\n", "cannot be read"),
    ],
)
def test_what_a_file_may_not_hold_is_named_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "foxrun.yaml").write_text(text)
    with pytest.raises(UsageError) as raised:
        load_settings(tmp_path, {})
    assert said in str(raised.value)
    assert str(tmp_path / "foxrun.yaml") in str(raised.value)


def test_a_variable_that_cannot_be_is_named_and_a_misspelt_one_is_noted(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="FOXRUN_SEED: seed cannot be 'x'"):
        load_settings(tmp_path, {"FOXRUN_SEED": "x"})
    assert load_settings(tmp_path, {"FOXRUN_STEP": "3", "FOXRUN_LEG": "a"}).notes == (
        "FOXRUN_STEP is no setting; did you mean 'FOXRUN_STEPS'?",
    )


def test_an_empty_file_sets_nothing(tmp_path: Path) -> None:
    (tmp_path / "foxrun.yaml").write_text("# nothing\n")
    assert load_settings(tmp_path, {}) == load_settings(tmp_path.parent, {})


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("1h30m", 5400), ("2d", 172800), ("0.5m", 30)])
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "-3s", "3 s", "1w", "nan", "inf", "1e3"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError):
        parse_duration(text)


def test_config_shows_which_source_won_and_no_secret(here: Place) -> None:
    (here.directory / "foxrun.yaml").write_text(
        "alerts:\n  - slack://tokenA/tokenB/tokenC/#general\n  - json://user:secret@example.org/path\n"
    )
    done = here("config", "-o", "json", FOXRUN_STEPS="7")
    entries = {entry["name"]: entry for entry in done.json}
    assert (entries["steps"]["value"], entries["steps"]["source"], entries["steps"]["default"]) == (
        7,
        "FOXRUN_STEPS",
        200,
    )
    assert entries["alerts"]["value"] == ["slack://***", "json://***@example.org/***"]
    table = here("config").out
    assert "user:secret" not in table and "tokenA" not in table
    assert [len(line) > 0 for line in table.splitlines()].count(True) == len(entries) + 1
    assert here("config", "gate-steps", "-o", "json").json["value"] == 50
    assert "did you mean 'gate_steps'" in here("config", "gate-stops").err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "alerts: {d: !!x hunter2secret}",
            "cannot be read: could not determine a constructor for the tag 'tag:yaml.org,2002:x' (line 1,",
        ),
        ("alerts: {d: 'json://u:hunter2secret@h", "found unexpected end of stream (line 1, column "),
        ("alerts:\n  desk: json://h\n  desk: json://u:hunter2secret@i\n", "line 3: 'desk' stands twice in alerts"),
        ("host_api: https://u:hunter2secret@h/api/v3", "host_api cannot be 'https://***@h/api/v3'"),
        ("alert_rules: '[{a: b}, '", "it is no YAML: while parsing a flow node: expected"),
        ("hook_check: '-p \"a'", "hook_check cannot be '-p \"a': a shell could not part it into words"),
        ('trainer: "python \'x"', "trainer cannot be"),
        ("status_kinds: {ci-gate: true}", "status_kinds cannot be"),
        (
            "status_kinds: [nightley]",
            "kinds of workflow are train, regression-pair, ci-gate, nightly and seed-sweep",
        ),
        ("goldens: ../elsewhere", "goldens cannot be '../elsewhere': it is a folder of the repository"),
        ("goldens: ''", "goldens cannot be ''"),
    ],
)
def test_what_is_wrong_is_said_without_what_is_secret(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "foxrun.yaml").write_text(text)
    with pytest.raises(UsageError) as caught:
        load_settings(tmp_path, {})
    assert said in str(caught.value) and "hunter2" not in f"{caught.value} {caught.value.remedy}"


def test_an_address_is_shown_without_its_password(tmp_path: Path) -> None:
    from orchestrator.cli.config import shown

    settings = load_settings(tmp_path, {"FOXRUN_ORIGIN": "https://me:hunter2@github.com/desk/alpha"})
    assert shown(settings, "origin") == "https://***@github.com/desk/alpha"
