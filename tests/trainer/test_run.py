"""What a run writes: equal bits for equal runs, the meaning of rows, exact resume, every mode."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import foxrun
from benchmarks.pairs import step_ms
from trainer.learn import leaves
from trainer.learn.step import TRAIN_METRICS

from .trainer_runs import Written, arguments, only_run, run_apart, run_here


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return run_here(tmp_path_factory.mktemp("run"), steps=6, eval_steps=3)


def test_two_hostile_processes_agree_in_every_compared_byte(tmp_path: Path) -> None:
    written = []
    for name, hostile in (
        ("one", {"PYTHONHASHSEED": "1"}),
        ("two", {"PYTHONHASHSEED": "2", "MALLOC_PERTURB_": "170", "OMP_NUM_THREADS": "2"}),
    ):
        done = run_apart(arguments(tmp_path / name, 4, 2), hostile)
        assert done.returncode == 0, done.stderr
        written.append(only_run(tmp_path / name))
    one, two = written
    assert set(one.compared()) == {"diag.jsonl", "bits.u64", "leaves.json", "eval_summary.json"}
    assert one.compared() == two.compared()
    assert one.manifest["config_sha256"] == two.manifest["config_sha256"]


def test_another_seed_differs_from_the_first_row_on(tmp_path: Path, run: Written) -> None:
    other = run_here(tmp_path, 6, 3, seed=8)
    differ = [n for n in run.names if run.column(n)[0] != other.column(n)[0]]
    assert {"rng_counters", "vsn_w", "act_features", "act_action", "encoder_output", "vsn_grad_w"} <= set(differ)
    assert run.manifest["config_sha256"] == other.manifest["config_sha256"]


def test_it_is_a_whole_run_for_the_contracts_reader(run: Written) -> None:
    opened = foxrun.open_run(run.path)
    assert opened.verify() == [] and opened.problems == []
    assert opened.row_count == 6 + 3 + 1
    assert [row.step for row in opened.rows()] == list(range(10))
    assert opened.manifest is not None and opened.manifest["exit_reason"] == "completed"


def test_times_say_how_many_steps_of_which_phase_they_are_of(tmp_path: Path) -> None:
    written = run_here(tmp_path, 13, 9)
    times = [json.loads(line) for line in (written.path / "timing.jsonl").read_text().splitlines()]
    assert [(t["step"], t["phase"], t["steps"]) for t in times] == [
        (10, "train", 10), (13, "train", 3), (20, "eval", 7), (22, "eval", 2),
    ]  # fmt: skip
    for shown in (times[0], times[1]):
        shown["seconds"] = 0.25 * shown["steps"]
    (written.path / "timing.jsonl").write_text("".join(json.dumps(t) + "\n" for t in times))
    assert step_ms(written.path) == "250.0"


def test_phases_and_metrics(run: Written) -> None:
    rows = run.rows
    assert [row["phase"] for row in rows] == ["train"] * 6 + ["eval"] * 4
    assert list(rows[0]["metrics"]) == list(TRAIN_METRICS)
    assert rows[-1]["metrics"] == {}


def test_no_leaf_is_missing(run: Written) -> None:
    names = run.names
    assert len(names) == len(set(names)) > 300
    assert set(leaves.CHECKSUMS) <= set(names)
    assert not set(leaves.RESERVED) & set(names)
    assert list(run.rows[0]["checksums"]) == [n for n in names if n in leaves.CHECKSUMS]
    assert (run.bits[:6] != 0).all(), "a training row takes every leaf"


def test_every_parameter_has_target_moments_and_gradient(run: Written) -> None:
    names = set(run.names)
    weights = [n.removeprefix("target_") for n in run.names if n.startswith("target_") and f"adam_m_{n[7:]}" in names]
    assert len(weights) > 50
    for name in weights:
        assert {name, f"adam_m_{name}", f"adam_v_{name}"} <= names
    assert sum("_grad_" in name for name in names) == len(weights)


def test_evaluation_takes_no_learning_leaf_but_environments_weights_and_acting(run: Written) -> None:
    groups = {name: (run.column(name)[6:9] != 0).all() for name in run.names}
    assert groups["env_cash"] and groups["vsn_w"] and groups["act_q_logits"] and groups["reward"]
    for name in ("q_logits", "adam_m_vsn_w", "replay_tree", "target_vsn_w", "vsn_grad_w", "replay_sample_indices"):
        assert (run.column(name)[6:9] == 0).all()


def test_the_last_row_holds_the_state_after_the_last_step_and_nothing_else(run: Written) -> None:
    last = run.bits[-1]
    taken = [name for name, bits in zip(run.names, last, strict=True) if bits]
    assert {"vsn_w", "adam_m_vsn_w", "replay_tree", "env_cash", "cfc_h_state", "step"} <= set(taken)
    assert not {"act_q_logits", "q_logits", "reward", "loss"} & set(taken)


def test_evaluation_does_not_learn(run: Written) -> None:
    weights = run.column("vsn_w")
    assert len(set(weights[:7].tolist())) == 7
    assert len(set(weights[6:].tolist())) == 1


def test_a_row_holds_state_as_the_step_reads_it(run: Written) -> None:
    rows = run.rows
    assert rows[0]["checksums"]["adam_m_sum"] == 0.0 and rows[1]["checksums"]["adam_m_sum"] != 0.0
    assert rows[0]["checksums"]["replay_tree"] == 0.0 and rows[1]["checksums"]["replay_tree"] != 0.0
    assert rows[0]["checksums"]["env_position"] == 0.0


def test_one_ulp_at_a_step_shows_first_in_that_steps_weight(tmp_path: Path) -> None:
    clean = run_here(tmp_path / "clean", leg="a", fault="ulp@b:2")
    bent = run_here(tmp_path / "bent", leg="b", fault="ulp@b:2")
    assert clean.manifest["config_sha256"] == bent.manifest["config_sha256"]
    different = clean.bits != bent.bits
    assert not different[:2].any()
    first = [name for name, differs in zip(clean.names, different[2], strict=True) if differs]
    assert first[0] == "vsn_w"
    assert not {"mamba2_l1_w_in", "target_vsn_w", "adam_m_vsn_w", "env_cash", "replay_tree"} & set(first)


def test_a_hundred_steps_equal_fifty_a_checkpoint_and_fifty(tmp_path: Path) -> None:
    more = {"chunk_rows": "150", "chunk_steps": "30", "capacity": "200"}
    whole = run_here(tmp_path / "whole", 100, 3, **more)
    run_here(tmp_path / "first", 50, 0, checkpoint_at="50", **more)
    checkpoint = str(tmp_path / "first" / "checkpoint-50.pt")
    second = run_here(tmp_path / "second", 100, 3, resume=checkpoint, **more)
    assert whole.bits.shape[0] == 104
    assert whole.compared() == second.compared()
    assert whole.manifest["config_sha256"] == second.manifest["config_sha256"]


def test_a_checkpoint_on_the_way_changes_nothing(tmp_path: Path) -> None:
    plain = run_here(tmp_path / "plain", 4, 1)
    saving = run_here(tmp_path / "saving", 4, 1, checkpoint_at="2")
    assert plain.compared() == saving.compared()
    assert (tmp_path / "saving" / "checkpoint-2.pt").exists()


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_modes(tmp_path: Path, mode: int, run: Written) -> None:
    made = run_here(tmp_path, 6, 3, mode=mode)
    assert made.manifest["mode"] == mode
    assert made.rows == run.rows, "on a CPU all modes compute the same"
    assert (made.path / "bits.u64").exists() == (mode != 0)
    assert torch.are_deterministic_algorithms_enabled() == (mode in (1, 3))


def test_no_operation_of_a_step_needs_atomics_on_any_device(tmp_path: Path) -> None:
    """Names of every operation that one run dispatches, forward and backward."""
    seen: set[str] = set()

    class Names(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.add(func.overloadpacket.__name__)
            return func(*args, **(kwargs or {}))

    with Names():
        run_here(tmp_path, 2, 1)
    assert {"mm", "bmm", "index_select", "sort", "silu_backward"} <= seen, "the step was watched"
    racing = {
        "scatter", "scatter_", "scatter_add", "scatter_add_", "index_add", "index_add_", "index_put", "index_put_",
        "_index_put_impl_", "gather_backward", "index_select_backward", "embedding_dense_backward", "cumsum",
        "scatter_reduce", "index_reduce", "put_", "bincount", "histc", "cumprod", "kthvalue", "median",
        "native_layer_norm_backward", "convolution", "convolution_backward", "_local_scalar_dense", "nonzero",
    }  # fmt: skip
    assert not seen & racing


def test_the_action_and_epsilon_draws_reach_the_actions(tmp_path: Path, run: Written) -> None:
    everything = run_here(tmp_path / "u", 6, 3, epsilon="1.0")
    assert everything.column("act_action")[0] != run.column("act_action")[0]
    assert np.array_equal(everything.column("act_pi_logits")[:1], run.column("act_pi_logits")[:1])


def test_greedy_evaluation_takes_the_likeliest_action(tmp_path: Path, run: Written) -> None:
    greedy = run_here(tmp_path, 6, 3, eval_temperature="0")
    assert greedy.rows[:6] == run.rows[:6]
    assert greedy.column("act_action")[6] != run.column("act_action")[6]


def test_a_batch_in_blocks_gives_the_same_up_to_rounding_and_the_same_bits_each_time(
    tmp_path: Path, run: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainer.ops.CPU_BLOCK_VALUES", 3 * 8 * 16)  # sequences in blocks of 3, 3 and 2
    one, two = (run_here(tmp_path / name, 6, 3) for name in ("one", "two"))
    assert one.compared() == two.compared()
    assert one.names == run.names and one.bits.shape == run.bits.shape
    for name in ("act_features", "replay_tree", "vsn_w", "batch_features"):
        assert one.column(name)[0] == run.column(name)[0]
    for got, whole in zip(one.rows[:2], run.rows[:2], strict=True):
        assert got["checksums"] == pytest.approx(whole["checksums"], rel=1e-4, abs=1e-4)
        assert got["metrics"] == pytest.approx(whole["metrics"], rel=1e-4, abs=1e-5)
