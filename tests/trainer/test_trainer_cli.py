"""The command line: what it takes, what it refuses and how it says so; modes; resume from what does not fit."""

from __future__ import annotations

import errno
import json
import time
from pathlib import Path
from typing import Any

import pytest

from foxrun import ContractError
from trainer import cli
from trainer.cli import settings
from trainer.errors import ResumeError, TrainerError, UsageError
from trainer.exact import modes
from trainer.exact.poison import poison_byte

from .trainer_runs import arguments, run_apart, run_here


def refused(*given: str, environment: dict[str, str] | None = None) -> str:
    with pytest.raises(UsageError) as caught:
        settings(list(given), environment if environment is not None else {})
    return " ".join(str(caught.value).split())


def test_defaults_are_those_of_the_specification() -> None:
    asked = settings([], {})
    c = asked.config
    assert (c.envs, c.window, c.width, c.state, c.head_dim, c.batch_size, c.capacity) == (
        128,
        32,
        128,
        16,
        64,
        128,
        2**17,
    )
    assert (asked.steps, asked.eval_steps, asked.seed, asked.mode, c.threads) == (200, 50, 42, 1, 1)
    assert asked.market.restart_row == 31


def test_parameters_come_as_json_and_by_hand_and_the_hand_wins() -> None:
    asked = settings(["--parameters", '{"envs": "16", "lr": "1e-3"}', "-p", "envs=32", "-p", "taker_fee_bp=0"], {})
    assert (asked.config.envs, asked.config.lr, asked.market.taker_fee_bp) == (32, 1e-3, 0.0)
    asked = settings(["-p", "rows_per_step=2", "-p", "data=x.dbn", "-p", "window=16"], {})
    assert asked.config.rows_per_step == asked.market.rows_per_step == 2
    assert (asked.data, asked.market.restart_row) == ("x.dbn", 15)


@pytest.mark.parametrize(
    "value", ["", "x", "1.5", "1e3", " 1", "1_0", "١", "0x10", "🔥", '{"a": "b"}', "'; rm -rf /", "9" * 30, "-1"]
)
def test_a_malformed_whole_number_is_refused_and_shown(value: str) -> None:
    message = refused("-p", f"envs={value}")
    assert message.startswith(f"envs={json.dumps(value, ensure_ascii=False)}: ")


@pytest.mark.parametrize("value", ["nan", "inf", "1e999", "", "1,5", "1e", "--1"])
def test_a_malformed_number_is_refused(value: str) -> None:
    assert "finite number" in refused("-p", f"lr={value}")


def test_unknown_parameters_get_the_nearest_and_the_list() -> None:
    assert refused("-p", "widht=3") == 'unknown parameter "widht"; did you mean width?'
    assert "adam_epsilon, advantage_scale" in refused("-p", "zzzz=3")
    assert "is no parameter but a flag: --seed 3" in refused("-p", "seed=3")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--parameters", "{"], "is not JSON"),
        (["--parameters", "[1]"], "expected a JSON object"),
        (["--parameters", '{"envs": null}'], "is not a string"),
        (["-p", "envs"], "expected key=value"),
        (["--seed", "-3"], "--seed '-3': expected a whole number"),
        (["--seed", str(2**63)], "expected a whole number from 0"),
        (["--steps", "1.0"], "expected a whole number"),
        (["--bogus"], "--bogus"),
        (["-p", "device=tpu"], "expected one of auto, cpu, cuda"),
        (["-p", "head_dim=48"], "does not divide 2 * width = 256"),
        (["-p", "capacity=8"], "below the 128 transitions"),
        (["-p", "v_min=10"], "must be below v_max"),
        (["-p", "gamma=1.5"], "not between 0 and 1"),
        (["-p", "order_size=0"], "order_size"),
        (["-p", "window=1"], "at least 2"),
        (["-p", "book_rows=64", "-p", "window=64"], "one window needs"),
        (["--mode", "4"], "portable mode is not built yet"),
        (["--mode", "fast"], "is not a mode"),
    ],
)  # fmt: skip
def test_what_cannot_run_is_refused(given: list[str], says: str) -> None:
    assert says in refused(*given)


def test_a_usage_error_is_one_line_exit_2_and_in_the_termination_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOXRUN_TERMINATION_LOG", str(tmp_path / "log"))
    assert cli.main(["--out", str(tmp_path / "out"), "-p", "envs=many"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err == 'trainer: envs="many": expected a whole number, such as 128\n'
    assert (tmp_path / "log").read_text() == err
    assert not (tmp_path / "out").exists()


def test_mode_comes_from_the_flag_then_foxrun_then_foxhunt() -> None:
    both = {"FOXRUN_MODE": "2", "FOXHUNT_DETERMINISTIC": "3"}
    assert modes.choose("0", both) == 0
    assert modes.choose(None, both) == 2
    assert modes.choose(None, {"FOXHUNT_DETERMINISTIC": "3"}) == 3
    assert modes.choose(None, {"FOXRUN_MODE": ""}) == 1
    with pytest.raises(UsageError, match="FOXRUN_MODE 'true' is not a mode"):
        modes.choose(None, {"FOXRUN_MODE": "true"})


def test_outside_settings_are_corrected_loudly() -> None:
    environment = {
        "NVIDIA_TF32_OVERRIDE": "1",
        "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1",
        "CUBLAS_WORKSPACE_CONFIG": ":0:0",
    }
    notes = {knob.name: knob.line() for knob in modes.prepare(1, environment)}
    assert environment == {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    assert "CORRECTED: was '1'" in notes["NVIDIA_TF32_OVERRIDE"]
    assert "CORRECTED: was ':0:0'" in notes["CUBLAS_WORKSPACE_CONFIG"]
    assert modes.prepare(3, environment)[0].note == ""
    assert modes.prepare(2, {}) == [] and modes.prepare(0, {}) == []


def test_a_run_records_what_it_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from trainer.run import run
    from trainer.stopping import Stopping

    environment = {"NVIDIA_TF32_OVERRIDE": "1", "FOXRUN_LEG": "a", "FOXRUN_SHA": "f" * 40, "PYTHONHASHSEED": "3"}
    run(settings(arguments(tmp_path, 1, 0), environment), Stopping())
    printed, warned = capsys.readouterr()
    assert warned.startswith("trainer: NVIDIA_TF32_OVERRIDE=unset  (CORRECTED: was '1'")
    (path,) = tmp_path.glob("*/run_manifest.json")
    manifest = json.loads(path.read_text())
    assert "NVIDIA_TF32_OVERRIDE=unset  (CORRECTED" in printed and "not measured" in printed
    assert "CORRECTED" in manifest["knobs"]["NVIDIA_TF32_OVERRIDE"]
    assert manifest["variables"]["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8" and manifest["leg"] == "a"
    assert manifest["code"]["commit_asked"] == "f" * 40
    assert manifest["config"]["steps"] == 1 and manifest["config"]["width"] == 16
    assert not {"resume", "checkpoint_at", "out", "data"} & set(manifest["config"])
    assert manifest["inputs"][0]["name"].startswith("synthetic")
    for key in (
        "python", "torch", "cuda", "cudnn", "cublas", "triton", "driver", "gpu_name", "gpu_uuid", "sm_count",
        "cpu_model", "cpu_flags_sha256", "threads", "platform",
    ):  # fmt: skip
        assert key in manifest["environment"]


def test_progress_is_n_of_m(tmp_path: Path) -> None:
    progress = tmp_path / "progress"
    done = run_apart(arguments(tmp_path / "out", 3, 2), {"ARGO_PROGRESS_FILE": str(progress), "FOXRUN_MODE": "2"})
    assert done.returncode == 0 and progress.read_text() == "5/5\n"
    assert done.stderr == ""


def test_a_run_that_fails_at_once_does_not_leave_while_git_is_still_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = []

    def slowly(environment: Any, out: Path) -> dict[str, str]:
        time.sleep(0.5)
        answered.append(out)
        return {}

    monkeypatch.setattr("trainer.exact.provenance.code", slowly)
    with pytest.raises(TrainerError):
        run_with_data(tmp_path, str(tmp_path / "absent.dbn"))
    assert answered == [tmp_path / "out"]


def test_a_run_that_cannot_learn_its_code_fails_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(environment: Any, out: Path) -> dict[str, str]:
        raise ContractError("cannot be read", file="index", remedy="mend it")

    monkeypatch.setattr("trainer.exact.provenance.code", refuse)
    with pytest.raises(TrainerError, match="cannot be read"):
        run_here(tmp_path)


def test_missing_data_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(TrainerError) as caught:
        run_with_data(tmp_path, str(tmp_path / "absent.dbn"))
    assert "absent.dbn" in str(caught.value) and "\n" not in str(caught.value)
    (tmp_path / "not.dbn").write_bytes(b"PK\x03\x04 this is no market data")
    with pytest.raises(TrainerError) as caught:
        run_with_data(tmp_path, str(tmp_path / "not.dbn"))
    assert "not.dbn" in str(caught.value)


def run_with_data(tmp_path: Path, data: str) -> None:
    from trainer.run import run
    from trainer.stopping import Stopping

    run(settings([*arguments(tmp_path / "out"), "--data", data], {}), Stopping())


def test_a_full_disk_is_one_line_and_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from foxrun import RunWriter

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(RunWriter, "append", full)
    with pytest.raises(TrainerError, match=r"the disk is full at .*: free space, or choose another --out"):
        run_here(tmp_path)
    (path,) = tmp_path.glob("*/run_manifest.json")
    assert json.loads(path.read_text())["exit_reason"].startswith("failed: the disk is full at")


def test_resume_refuses_what_is_not_its_own(tmp_path: Path) -> None:
    run_here(tmp_path / "a", 2, 0, checkpoint_at="2")
    checkpoint = tmp_path / "a" / "checkpoint-2.pt"
    cases: list[tuple[str, dict[str, Any]]] = [
        ("written with lr=0.0003, this run has lr=0.001", {"lr": "0.001"}),
        ("written with seed 7, this run has 8", {"seed": 8}),
        ("written with mode 1, this run has 2", {"mode": 2}),
        ("written with book_seed=1, this run has book_seed=2|inputs", {"book_seed": "2"}),
        ("before step 2, this run has only 1 steps", {"steps": 1}),
    ]
    for says, more in cases:
        with pytest.raises(ResumeError, match=says):
            run_here(tmp_path / "b", **{"steps": 4, "eval_steps": 0, **more}, resume=str(checkpoint))
    with pytest.raises(ResumeError, match="no such file"):
        run_here(tmp_path / "b", resume=str(tmp_path / "none.pt"))
    damaged = tmp_path / "damaged.pt"
    damaged.write_bytes(checkpoint.read_bytes()[:1000])
    with pytest.raises(ResumeError, match="not a whole checkpoint"):
        run_here(tmp_path / "b", resume=str(damaged))
    assert not (tmp_path / "b").exists()
    with pytest.raises(UsageError, match="past the 4 training steps"):
        run_here(tmp_path / "b", checkpoint_at="9")


def test_the_poison_byte() -> None:
    assert poison_byte({}) is None and poison_byte({"FOXRUN_POISON": "170"}) == 170
    for bad in ("256", "-1", "x", "0xAA"):
        with pytest.raises(UsageError, match="is not a byte"):
            poison_byte({"FOXRUN_POISON": bad})
