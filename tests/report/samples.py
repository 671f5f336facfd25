"""Verdicts of every kind with the names, sizes and oddities that real runs have."""

from __future__ import annotations

import math
from typing import Any

from orchestrator.compare.verdict import (
    Agreement,
    Difference,
    Divergence,
    FieldDifference,
    GrowthPoint,
    OutcomeRow,
    Part,
    PartedLeaf,
    PlantedFlip,
    RunSummary,
    Verdict,
    make,
)

COMMIT = "3f0d9a61c2b84e7f95d1a6c0e83b7742d9f10c55"
TREE = "b1946ac92492d2347c6235b4d2611184a1c0ffee"
NAMES = [
    "vsn_w",
    "vsn_out",
    "mamba2_l1_w_in",
    "mamba2_l1_w_a",
    "mamba2_l1_w_b",
    "mamba2_l1_w_c",
    "mamba2_l1_out",
    "ln_a_out",
    "mamba2_l2_w_in",
    "mamba2_l2_w_c",
    "mamba2_l2_out",
    "ln_b_out",
    "attn_q",
    "attn_context",
    "cfc_w_in",
    "cfc_w_rec",
    "cfc_h_state",
    "encoder_output",
    "q_logits",
    "pi_logits",
    "v_value",
    "q_grad",
    "pi_grad",
    "v_grad",
    "encoder_grad",
    "mamba2_grad_w_c_l1",
    "adam_m_sum",
    "adam_v_sum",
    "replay_sample_indices",
    "replay_priorities",
    "replay_tree",
]
COMPONENTS = ("encoder", "heads", "replay", "optimiser", "environment")
KINDS = ("weight", "activation", "gradient", "moment", "state")


def manifest(run_id: str, *, seed: int = 42, gpu: str = "NVIDIA H200", blocks: int = 98) -> dict[str, Any]:
    """A manifest as a trainer writes it."""
    digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    return {
        "schema_version": 1,
        "run_id": run_id,
        "code": {"commit_asked": COMMIT, "tree_asked": TREE, "tree_run": TREE, "branch": "ml-alpha-cfc/long-horizon"},
        "seed": seed,
        "mode": 1,
        "config": {
            "environments": 128,
            "window": 32,
            "width": 128,
            "learning_rate": 0.0003,
            "data_path": "inputs/btcusdt.dbn.zst",
            "fault": "",
            "discount": 0.99,
            "steps": 2000,
            "eval_steps": 500,
            "capacity": 131072,
            "atoms": 51,
            "scan_state": 16,
            "batch": 128,
            "target_every": 200,
        },
        "config_sha256": digest,
        "inputs": [{"name": "btcusdt-binance-usdm-20240808.mbp-10.dbn.zst", "sha256": digest, "size": 1_204_332}],
        "environment": {
            "python": "3.12.11",
            "torch": "2.13.0",
            "cuda": "13.0",
            "cudnn": "9.13.0",
            "cublas": "13.0.2",
            "triton": "3.5.0",
            "driver": "580.95.05",
            "gpu_name": gpu,
            "gpu_uuid": f"GPU-{run_id}-4a1e-b7c2-5d0f6a",
            "sm_count": 132,
            "cpu_model": "AMD EPYC 9654 96-Core Processor",
            "cpu_flags_sha256": digest,
            "threads": 1,
            "platform": "Linux-6.8.0-x86_64-with-glibc2.39",
        },
        "variables": {"CUBLAS_WORKSPACE_CONFIG": ":4096:8", "OMP_NUM_THREADS": "1"},
        "command": ["python", "-m", "trainer", "--out", "run", "--seed", str(seed), "--mode", "1"],
        "files": [{"name": "bits.u64", "size": 14_225_688, "sha256": digest, "compared": True}],
        "blocks": {
            "bits.u64": {
                "rows_per_block": 256,
                "offsets": [i * 1_456_128 for i in range(blocks)],
                "sha256": [digest] * blocks,
            }
        },
        "rows": 2501,
        "leaf_count": 711,
        "times": {"started": "2026-11-29T12:00:01Z", "finished": "2026-11-29T12:04:40Z"},
        "exit_reason": "completed",
    }


def runs(*, seed_b: int = 42, gpu_b: str = "NVIDIA H200") -> list[RunSummary]:
    """Legs A and B."""
    out = []
    for leg, run_id, seed, gpu in (
        ("a", "9c1f02ab77de4410", 42, "NVIDIA H200"),
        ("b", "0b7e55d1c09f4d32", seed_b, gpu_b),
    ):
        out.append(
            RunSummary(
                label=f"regression-pair-3f0d9a61-s42-m1-x7k2p/leg-{leg}/run/{run_id}",
                run_id=run_id,
                commit=COMMIT,
                tree=TREE,
                seed=seed,
                mode=1,
                leg=leg,
                rows=2501,
                exit_reason="completed",
                manifest=manifest(run_id, seed=seed, gpu=gpu),
            )
        )
    return out


def leaves(count: int) -> list[PartedLeaf]:
    """Parted leaves; every seventh has no checksum, every eleventh a value that is not finite."""
    out = []
    for i in range(count):
        name = NAMES[i % len(NAMES)] if i < len(NAMES) else f"grad.encoder.mamba2_l{i % 2 + 1}.block_{i}.in_proj.weight"
        a = math.sin(i + 1) * 10.0 ** (i % 9 - 3)
        b = math.nan if i % 11 == 10 else a + 7e-7 * (i + 1)
        bare = i % 7 == 6
        out.append(
            PartedLeaf(
                name=name,
                component=COMPONENTS[i % 5],
                kind=KINDS[i % 5],
                checksum_a=None if bare else a,
                checksum_b=None if bare else b,
                fingerprint_a=f"{(i + 1) * 0x9E3779B97F4A7C15 % 2**64:016x}",
                fingerprint_b=f"{(i + 7) * 0xBF58476D1CE4E5B9 % 2**64:016x}",
                delta=None if bare else b - a,
                ulp=None if bare or math.isnan(b) else 3 * i + 1,
            )
        )
    return out


def growth(count: int, start: int = 2) -> list[GrowthPoint]:
    """A residual of 7e-7 in one leaf that grows until most leaves part."""
    return [
        GrowthPoint(
            step=start + i,
            leaves_parted=min(711, 1 + int(711 * (1 - math.exp(-i / 40)))),
            max_abs=7e-7 * math.exp(min(i, 60) * 0.35) * (1 + 0.4 * math.sin(i / 3)),
            max_rel=1e-9 * (i + 1),
        )
        for i in range(count)
    ]


def outcome(a: float = 1_412_906.4375, b: float = 1_228_905.9140625) -> list[OutcomeRow]:
    """Both runs' eval_summary.json."""
    rows = [
        ("total_pnl_usd", a, b),
        ("max_drawdown_usd", -88_120.25, -272_304.1875),
        ("win_rate", 0.5312, 0.4987),
        ("trades", 18_204, 17_950),
        ("entropy", 1.0982, 1.0982),
        ("sharpe", 2.113, 1.41),
    ]
    return [OutcomeRow(key=key, a=x, b=y, delta=y - x, percent=(y - x) / abs(x) * 100) for key, x, y in rows]


def drift(parted: int = 37, points: int = 250) -> Verdict:
    """A drift with everything that a report can show."""
    first = PartedLeaf(
        name="mamba2_grad_w_c_l1",
        component="encoder",
        kind="gradient",
        checksum_a=0.41873168945312,
        checksum_b=0.41873238945312,
        fingerprint_a="b7a4712c74562914",
        fingerprint_b="1937da9f8ad16e78",
        delta=7.000000000090267e-07,
        ulp=12_611_290_041,
    )
    line = (
        "FIRST_DIVERGENCE: step=2 leaf=mamba2_grad_w_c_l1 run_A=0.41873168945312 run_B=0.41873238945312 "
        "delta=7.000000000090267e-07"
    )
    return make(
        "drift",
        "The runs part at step 2 in mamba2_grad_w_c_l1 (encoder, gradient), and evaluation P&L differs by $184,000.52.",
        next="foxrun check --seed 42 --mode 1 --steps 50 -p environments=128, to see whether the twin run parts too",
        runs=runs(),
        agreed=Agreement(
            rows=2,
            leaves=711,
            values=173_331,
            metrics=25_010,
            never_changed=["popart_sigma", "kelly"],
            planted_flip=PlantedFlip(row=1733, leaf="cfc_h_state", found=True),
        ),
        first_divergence=Divergence(
            step=2,
            row=2,
            leaf="mamba2_grad_w_c_l1",
            run_a="0.41873168945312",
            run_b="0.41873238945312",
            delta="7.000000000090267e-07",
            line=line,
        ),
        parted=[first, *leaves(parted - 1)],
        growth=growth(points),
        outcome=outcome(),
        manifest_differences=[
            FieldDifference(path="run_id", a="9c1f02ab77de4410", b="0b7e55d1c09f4d32"),
            FieldDifference(
                path="environment.gpu_uuid",
                a="GPU-9c1f02ab77de4410-4a1e-b7c2-5d0f6a",
                b="GPU-0b7e55d1c09f4d32-4a1e-b7c2-5d0f6a",
            ),
        ],
        differences=[
            Difference(file="bits.u64", path=f"row 2, leaf {NAMES[i]}", kind="bits", a=f"{i:016x}", b=f"{i + 1:016x}")
            for i in range(12)
        ],
        differences_total=1_604_880,
        notes=["Fingerprints were compared bit for bit; checksums are shown for size only."],
    )


def identical() -> Verdict:
    """A clean pair."""
    return make(
        "identical",
        "2,501 rows of 711 leaves agree in every bit: 1,778,211 fingerprints.",
        next="Nothing: the result can be relied on.",
        runs=runs(),
        agreed=Agreement(
            rows=2501,
            leaves=711,
            values=1_778_211,
            metrics=25_010,
            never_changed=["popart_sigma", "kelly"],
            seed_independent=["env_entry_step"],
            planted_flip=PlantedFlip(row=1733, leaf="cfc_h_state", found=True),
        ),
        outcome=[*outcome(b=1_412_906.4375)[:1], OutcomeRow(key="trades", a=18_204, b=18_204, delta=0, percent=0.0)],
    )


def within_tolerance() -> Verdict:
    """Differences inside a tolerance that the user gave."""
    whole = drift(3, 30)
    return make(
        "within_tolerance",
        "212 of 1,778,211 values differ, all inside rtol=1e-05; the runs are NOT bit-exact.",
        next="`foxrun compare A B` without --rtol shows every bit.",
        runs=runs(),
        agreed=whole.agreed,
        first_divergence=whole.first_divergence,
        parted=whole.parted,
        growth=whole.growth,
        outcome=outcome(b=1_412_906.4500)[:1],
    )


def gate_failed() -> Verdict:
    """The twin run parted at step 0 in a sampler."""
    return make(
        "gate_failed",
        "The twin run parts at step 0 in replay_sample_indices (replay, state); no leg was started.",
        subject="gate",
        next="foxrun check --seed 42 --mode 1 --steps 50 -p fault=unseeded-sampler",
        runs=runs(),
        agreed=Agreement(rows=0, leaves=711, values=1_204, planted_flip=PlantedFlip(row=20, leaf="vsn_w", found=True)),
        first_divergence=Divergence(
            step=0,
            row=0,
            leaf="replay_sample_indices",
            run_a="b7a4712c74562914",
            run_b="1937da9f8ad16e78",
            delta="bits",
            line="FIRST_DIVERGENCE: step=0 leaf=replay_sample_indices "
            "run_A=b7a4712c74562914 run_B=1937da9f8ad16e78 delta=bits",
        ),
        parted=[
            PartedLeaf(
                name="replay_sample_indices",
                component="replay",
                kind="state",
                checksum_a=812.0,
                checksum_b=812.0,
                fingerprint_a="b7a4712c74562914",
                fingerprint_b="1937da9f8ad16e78",
                delta=0.0,
            )
        ],
        growth=[GrowthPoint(step=i, leaves_parted=1 + 14 * i, max_abs=0.0 if i < 3 else 0.5 * i) for i in range(51)],
        outcome=[],
    )


def job_failed() -> Verdict:
    """A leg was killed and hid the cause in another."""
    return make(
        "job_failed",
        "leg-b was killed (exit code 137, OOMKilled) at step 1,204 of 2,500.",
        next="foxrun logs regression-pair-3f0d9a61-s42-m1-x7k2p --node leg-b",
        runs=runs()[:1],
        parts=[
            Part(
                name="leg-b",
                phase="Failed",
                exit_code=137,
                reason="OOMKilled",
                message="OOMKilled (exit code 137): memory limit 16Gi",
                finished="2026-11-29T12:03:11Z",
            ),
            Part(
                name="leg-a",
                phase="Failed",
                exit_code=1,
                message="RuntimeError: CUDA error: an illegal memory access was encountered",
                finished="2026-11-29T12:03:12Z",
            ),
            Part(
                name="compare",
                phase="Omitted",
                message="omitted: depends condition not met",
                finished="2026-11-29T12:03:13Z",
            ),
        ],
        notes=["leg-b wrote 1,204 rows before it ended."],
    )


def infrastructure() -> Verdict:
    """Storage did not answer."""
    return make(
        "infrastructure",
        "leg-a could not store its run: the artifact store did not answer within 60 s.",
        next="foxrun retry regression-pair-3f0d9a61-s42-m1-x7k2p",
        parts=[
            Part(
                name="leg-a",
                phase="Error",
                exit_code=64,
                reason="",
                message="failed to put file: connection refused",
                finished="2026-11-29T12:03:11Z",
            )
        ],
    )


def incomparable() -> Verdict:
    """Another seed and another GPU."""
    return make(
        "incomparable",
        "The runs cannot be compared: seed 42 against 43, and another GPU model.",
        next="`foxrun compare A B --force` compares them all the same.",
        runs=runs(seed_b=43, gpu_b="NVIDIA A100-SXM4-80GB"),
        manifest_differences=[
            FieldDifference(path="run_id", a="9c1f02ab77de4410", b="0b7e55d1c09f4d32"),
            FieldDifference(path="seed", a=42, b=43, matters=True),
            FieldDifference(path="environment.gpu_name", a="NVIDIA H200", b="NVIDIA A100-SXM4-80GB", matters=True),
        ],
    )


def incomplete() -> Verdict:
    """A file is shorter than its manifest says."""
    return make(
        "incomplete",
        "leg-b: bits.u64 has 8,192,000 bytes where its manifest says 14,225,688; the file is cut.",
        next="foxrun retry regression-pair-3f0d9a61-s42-m1-x7k2p",
        runs=runs(),
        differences=[Difference(file="bits.u64", path="size", kind="cut", a="14225688", b="8192000")],
        differences_total=1,
    )


def extreme() -> Verdict:
    """Numbers and names at the edge of what can be printed."""
    long = "grad." + "averyveryverylongmodulename" * 9 + ".weight"
    return make(
        "drift",
        f"The metric files part at row 7 in {long}.",
        subject="metrics",
        next="foxrun compare /data/" + "directory-of-a-long-name/" * 8 + "a.jsonl b.jsonl --rtol 1e-5",
        runs=[
            RunSummary(label="/data/" + "directory-of-a-long-name/" * 8 + "a.jsonl", rows=51),
            RunSummary(label="b.jsonl", rows=49),
        ],
        agreed=Agreement(
            rows=7,
            metrics=77,
            never_changed=[f"{long}_{i}" for i in range(30)],
            planted_flip=PlantedFlip(row=3, leaf=long, found=False),
        ),
        first_divergence=Divergence(
            step="epoch-seven/" + "7" * 40,
            row=7,
            leaf=long,
            run_a="NaN",
            run_b="1.7976931348623157e+308",
            delta="NaN",
            line=f"FIRST_DIVERGENCE: step=7 leaf={long} run_A=NaN run_B=1.7976931348623157e+308 delta=NaN",
        ),
        parted=[
            PartedLeaf(name=long, checksum_a=math.nan, checksum_b=1.7976931348623157e308, delta=math.nan, ulp=2**63),
            PartedLeaf(name="tiny", checksum_a=5e-324, checksum_b=-0.0, delta=-5e-324, ulp=2**62 + 1),
            PartedLeaf(name="gone", checksum_a=math.inf),
        ],
        growth=[
            GrowthPoint(
                step=f"epoch-{i}", leaves_parted=i * 10**i, max_abs=(math.nan, math.inf, 5e-324, 1e308, 0.0)[i % 5]
            )
            for i in range(12)
        ],
        outcome=[
            OutcomeRow(key="total_pnl_usd", a=1e300, b=-1.5e300, delta=-2.5e300, percent=-250.0),
            OutcomeRow(key="huge", a=10**5000, b="NaN"),
            OutcomeRow(key="nested", a={"x": [1, 2]}, b=None),
        ],
        notes=["x" * 600],
    )


def succeeded() -> Verdict:
    return make("succeeded", "workflow train-3f0d9a6-x7k2p trained; nothing was compared", subject="train")


KINDS_OF_VERDICT = {
    "identical": identical,
    "within_tolerance": within_tolerance,
    "succeeded": succeeded,
    "drift": drift,
    "gate_failed": gate_failed,
    "job_failed": job_failed,
    "infrastructure": infrastructure,
    "incomparable": incomparable,
    "incomplete": incomplete,
}
