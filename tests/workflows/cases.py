"""The parameters behind each golden file."""

from dataclasses import replace

from workflows.ci_gate import EVAL_STEPS, STEPS, ci_gate
from workflows.nightly import cron, nightly
from workflows.parameters import RunParameters, Toleration
from workflows.regression_pair import regression_pair
from workflows.seed_sweep import seed_sweep
from workflows.train import train

SHA = "1234567e89012345678901234567890123456789"  # a YAML parser may take its like for a number
TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
OLD = "89abcdef0123456789abcdef0123456789abcdef"
OLD_TREE = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c"

SYNTHETIC = RunParameters(
    sha=SHA,
    tree=TREE,
    branch="ml-alpha-3",
    seed=43,
    mode=1,
    steps=200,
    eval_steps=50,
    parameters=(("data", "synthetic"), ("lr", "3e-4")),
    image="localhost/foxrun:{sha}",
)
ALL = RunParameters(
    sha=SHA,
    tree=TREE,
    branch="feature/Größe-🦊",
    seed=7,
    mode=3,
    steps=2000,
    eval_steps=500,
    parameters=(("note", 'said "no" for $5 & 100 %\n\\end'), ("environments", "128")),
    data_key="inputs/9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08/btc usdt.mbp-10.dbn.zst",
    data_name="btc usdt.mbp-10.dbn.zst",
    against=OLD,
    against_tree=OLD_TREE,
    trainer=("python", "-m", "somewhere.trainer", "--price", "$5"),
    tolerance='{"checksums.q_grad": {"rtol": 1e-6}}',
    rtol=1e-5,
    verify=True,
    image="registry.example.com/ml/trainer:{sha}",
    tools_image="registry.example.com/ml/foxrun:0.1.0",
    cpu="1500m",
    memory="16Gi",
    gpus=1,
    gpu_model="NVIDIA-H200",
    tolerations=(Toleration(key="nvidia.com/gpu", effect="NoSchedule"),),
    name="Nightly/H200",
    worktree="/home/fox/trainer",
)


WITHOUT_GATE = replace(SYNTHETIC, gate=False)
SMOKE = replace(SYNTHETIC, steps=STEPS, eval_steps=EVAL_STEPS, parameters=(("envs", "128"),))

GOLDEN = {
    "train": lambda: train(SYNTHETIC),
    "train-golden": lambda: train(replace(SYNTHETIC, goldens="goldens")),
    "train-without-gate": lambda: train(WITHOUT_GATE),
    "regression-pair": lambda: regression_pair(SYNTHETIC),
    "regression-pair-without-gate": lambda: regression_pair(WITHOUT_GATE),
    "regression-pair-data-against-gpu": lambda: regression_pair(ALL),
    "regression-pair-tie-break": lambda: regression_pair(replace(SYNTHETIC, tie_break=True, gpus=1)),
    "ci-gate": lambda: ci_gate(SMOKE),
    "seed-sweep": lambda: seed_sweep(replace(SYNTHETIC, seeds=(42, 43, 50), parallel=4)),
    "nightly": lambda: nightly(replace(SYNTHETIC, steps=20_000, eval_steps=5_000, parameters=(("envs", "1024"),))),
    "nightly-cron": lambda: cron(schedule="17 1 * * *", timezone="Etc/UTC", arguments={"sha": "main"}),
}
