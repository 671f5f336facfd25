"""A drifted pair by its name, two runs by their directories: run again here, with nothing but the name."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from orchestrator.alert_text import AlertContext, body_of
from orchestrator.comparison import read_verdict
from tests.cli.conftest import TRAINER, Place

pytestmark = pytest.mark.timeout(300)
QUICK = ("--no-remedies", "--replay", "0", "--trials", "1")

TORCH_TRAINER = """
import argparse, json, os, sys
from pathlib import Path
import torch
from foxrun import Leaf, RunWriter, fingerprint, git

parser = argparse.ArgumentParser()
parser.add_argument("--out", type=Path, required=True)
parser.add_argument("--parameters", type=json.loads, default={})
for name in ("seed", "mode", "steps", "eval-steps"):
    parser.add_argument(f"--{name}", type=int)
options = parser.parse_args()
torch.manual_seed(options.seed)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
data = torch.randn(64, 8)
leaves = [Leaf("batch", "sampler", "activation", "int64", (8,)), Leaf("w", "0", "weight", "float32", (4, 8))]
code = {"tree_run": git.tree_hash(Path.cwd()), "commit_asked": os.environ.get("FOXRUN_SHA", "")}
manifest = {"code": code, "seed": options.seed, "mode": options.mode, "config": options.parameters}
with RunWriter(options.out, leaves=leaves, manifest={**manifest, "command": [sys.executable, *sys.argv]}) as run:
    for step in range(options.steps):
        generator = torch.Generator()
        generator.manual_seed(step)
        if step >= int(options.parameters["unseeded_from"]):
            generator.seed()
        batch = torch.randint(0, 64, (8,), generator=generator)
        x = data[batch]
        loss = (model(x).squeeze(1) - x.sum(1)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        taken = (batch, model[0].weight.detach())
        bits = b"".join(fingerprint(tensor).to_bytes(8, "little") for tensor in taken)
        run.append([{"step": step, "phase": "train", "checksums": {}, "metrics": {"loss": loss.item()}}], bits)
    run.write_summary({"total_pnl_usd": loss.item()})
"""


def commands(text: str) -> list[list[str]]:
    """Commands that stand alone on an indented line, as a terminal shows what to do next."""
    return [shlex.split(line)[1:] for line in re.findall(r"^\s{2,}(foxrun .+)$", text, re.MULTILINE)]


def run_directories(home: Path) -> list[str]:
    return sorted(str(manifest.parent) for manifest in home.glob("artifacts/*/leg-*/**/run_manifest.json"))


def test_the_command_that_a_drifted_pair_names_finds_it(repo: Place) -> None:
    drifted = repo("submit", "--regression-pair", "--no-gate", "-p", "source=urandom", "--wait")
    assert drifted.code == 3
    (words,) = [words for words in commands(drifted.out) if words[0] == "localize"]
    assert len(words) == 2  # the name alone
    found = repo(*words, *QUICK, "-o", "json")
    assert found.code == 3, found.err
    result = found.json
    assert (result["step"], result["leaf"], result["component"]) == (2, "w", "model")
    assert (result["operation"]["name"], result["operation"]["how"]) == ("os.urandom", "host value")
    assert result["operation"]["source"].startswith('"urandom": lambda out')
    assert [(leaf["leaf"], leaf["role"]) for leaf in result["parted"]] == [("w", "origin"), ("w_grad", "inherited")]
    assert result["verdict"]["first_divergence"]["leaf"] == "w"
    assert result["subject"] == words[1]


def test_the_command_that_a_failed_gate_names_finds_it(repo: Place) -> None:
    failed = repo("submit", "--regression-pair", "-p", "source=hash-seed", "--wait")
    assert failed.code == 4
    words = next(words for words in commands(failed.out) if words[0] == "localize")
    found = repo(*words, *QUICK, "-o", "json")
    assert found.code == 3, found.err
    assert (found.json["step"], found.json["leaf"]) == (2, "w")
    assert repo("localize", "@latest", *QUICK, "-o", "json").json["leaf"] == "w"


def test_what_ran_in_one_leg_alone_runs_in_one_twin_alone(repo: Place) -> None:
    assert repo("submit", "--regression-pair", "--no-gate", "-p", "source=urandom@b", "--wait").code == 3
    found = repo("localize", "@latest", *QUICK, "-o", "json")
    assert (found.code, found.json["step"], found.json["leaf"]) == (3, 2, "w")


def test_a_trainer_of_a_users_with_its_own_leaves(repo: Place) -> None:
    (repo.directory / "train.py").write_text(TORCH_TRAINER)
    repo.git("commit", "-aqm", "torch")
    options = ("--no-gate", "-p", "unseeded_from=3", "--steps", "5", "--wait")
    assert repo("submit", "--regression-pair", *options).code == 3
    (repo.directory / "train.py").write_text("raise SystemExit('not the commit that ran')\n")
    found = repo("localize", "@latest", *QUICK, "-o", "json")
    assert found.code == 3, found.err
    result = found.json
    assert (result["step"], result["leaf"], result["component"]) == (3, "batch", "sampler")
    assert (result["operation"]["name"], result["operation"]["source"]) == ("torch.Generator.seed", "generator.seed()")
    assert result["causes"][0]["name"] == "unseeded-generator"


def test_runs_that_do_not_say_how_they_were_made_are_exit_7(repo: Place) -> None:
    assert repo("submit", "--regression-pair", "--no-gate", "-p", "source=urandom", "--wait").code == 3
    a, b = run_directories(repo.home)
    refused = repo("localize", a, b)  # the small trainer's manifest holds no command
    assert refused.code == 7
    assert a in refused.err
    assert "run_manifest.json with a command" in refused.err
    for run in (a, b):  # with a command, the same two are run again, of the commit that the manifest names
        file = Path(run) / "run_manifest.json"
        arguments = ["--out", run, "--seed", "5", "--steps", "6", "--parameters", '{"source": "urandom"}']
        file.write_text(json.dumps({**json.loads(file.read_text()), "command": ["train.py", *arguments]}))
    found = repo("localize", a, b, *QUICK, "-o", "json")
    assert (found.code, found.json["step"], found.json["leaf"]) == (3, 2, "w"), found.err
    manifest = json.loads((Path(b) / "run_manifest.json").read_text())
    (Path(b) / "run_manifest.json").write_text(json.dumps({**manifest, "seed": 6}))
    refused = repo("localize", a, b)
    assert refused.code == 7
    assert "cannot be compared" in refused.err
    assert "seed" in refused.err


def test_a_pair_of_two_commits_is_told_apart(repo: Place) -> None:
    first = repo.git("rev-parse", "HEAD")
    text = TRAINER.read_text().replace("0.1 * weight", "0.2 * weight")
    (repo.directory / "train.py").write_text(text)
    repo.git("commit", "-aqm", "second")
    assert repo("submit", "--regression-pair", "--no-gate", "--against", first, "--wait").code == 3
    refused = repo("localize", "@latest")
    assert refused.code == 2
    assert "the legs ran different code" in refused.err


@pytest.mark.slow
def test_our_trainer_parts_in_the_sampling_and_from_a_checkpoint_when_it_parts_late(here: Place) -> None:
    root = Path(__file__).parents[2]
    shutil.copytree(root / "trainer", here.directory / "trainer", ignore=shutil.ignore_patterns("__pycache__"))
    here.git("init", "-q", "-b", "main")
    here.git("add", ".")
    here.git("commit", "-q", "-m", "first")
    values = ("envs=4", "width=16", "window=8", "capacity=256", "fault=unseeded-sampler:8")
    small = [word for value in values for word in ("-p", value)]
    options = ("--no-gate", "--steps", "10", "--eval-steps", "0", "--wait")
    assert here("submit", "--regression-pair", *options, *small).code == 3
    found = here("localize", "@latest", *QUICK, "-o", "json")
    assert found.code == 3, found.err
    result = found.json
    assert (result["step"], result["leaf"], result["component"]) == (8, "replay_sample_indices", "replay")
    assert result["operation"]["where"].endswith("faults.py:94 sample_uniform")
    assert result["operation"]["source"] == "generator.seed()"
    assert result["causes"][0]["name"] in ("unseeded-generator", "replay-sampling")
    assert (
        "from the second pair on, twins began at step 6, from one exact checkpoint of the first pair" in result["notes"]
    )
    roles = {leaf["leaf"]: leaf["role"] for leaf in result["parted"]}
    assert (roles["replay_sample_indices"], roles["batch_features"]) == ("origin", "inherited")


def test_the_command_that_check_names_finds_it(repo: Place) -> None:
    failed = repo("check", "--steps", "3", "-p", "source=hash-seed", "--", "python", "train.py")
    assert failed.code == 4
    words = next(words for words in commands(failed.out) if words[0] == "localize")
    assert "{out}" in words
    at = words.index("--")
    done = repo.start(*words[:at], *QUICK, "-o", "json", *words[at:])  # `--` is looked for in the process's own words
    out, err = done.communicate(timeout=240)
    assert done.returncode == 3, err
    assert (json.loads(out)["step"], json.loads(out)["leaf"]) == (2, "w")


def test_a_pair_of_the_files_as_they_are_runs_those_and_its_alert_names_the_command(repo: Place) -> None:
    text = TRAINER.read_text().replace('"none": lambda out: 0.0', '"none": lambda out: float(os.getpid())')
    (repo.directory / "train.py").write_text(text)
    drifted = repo("submit", "--worktree", "--regression-pair", "--no-gate", "--name", "tried", "--wait", "-o", "json")
    assert drifted.code == 3
    verdict = repo.directory / "verdict.json"
    verdict.write_text(json.dumps({key: value for key, value in drifted.json.items() if key != "report"}))
    context = AlertContext(workflow="tried", kind="regression-pair")
    (words,) = re.findall(r"`foxrun (localize [^`]*)`", body_of(read_verdict(verdict), context))
    found = repo(*shlex.split(words), *QUICK, "-o", "json")
    assert (found.code, found.json["operation"]["name"]) == (3, "os.getpid"), found.err


def test_a_directory_or_a_store_that_holds_the_pair_names_it_too(repo: Place) -> None:
    assert repo("submit", "--regression-pair", "--no-gate", "-p", "source=urandom@b", "--wait").code == 3
    runs = run_directories(repo.home)
    for run in runs:
        file = Path(run) / "run_manifest.json"
        arguments = ["--out", run, "--seed", "5", "--steps", "6", "--parameters", '{"source": "urandom@b"}']
        file.write_text(json.dumps({**json.loads(file.read_text()), "command": ["train.py", *arguments]}))
    found = repo(
        "localize",
        str(next(folder for folder in Path(runs[0]).parents if (folder / "leg-b").is_dir())),
        *QUICK,
        "-o",
        "json",
    )
    assert (found.code, found.json["step"], found.json["leaf"]) == (3, 2, "w"), found.err
    refused = repo("localize", runs[0])
    assert (refused.code, refused.err.count("holds no two runs (leg-a and leg-b)")) == (2, 1), refused.err
    refused = repo("localize", "./nowhere")
    assert (refused.code, refused.err.count("./nowhere: there is no such directory")) == (2, 1), refused.err


def test_a_pair_that_is_identical_is_said_at_once_with_what_would_look_all_the_same(repo: Place) -> None:
    assert repo("submit", "--regression-pair", "--no-gate", "--name", "alike", "--wait").code == 0
    refused = repo("localize", "alike")
    assert refused.code == 2
    assert "alike is identical: every compared bit agrees" in refused.err
    assert "foxrun localize -- python train.py --out '{out}' --seed 5 " in refused.err


def test_a_pair_whose_commit_is_not_here_runs_no_other_code(repo: Place, tmp_path: Path) -> None:
    assert repo("submit", "--regression-pair", "--no-gate", "-p", "source=urandom", "--name", "far", "--wait").code == 3
    sha = repo.git("rev-parse", "HEAD")
    (repo.directory / "train.py").write_text("raise SystemExit('not the commit that ran')\n")
    repo.git("checkout", "-q", "--orphan", "other")
    repo.git("commit", "-aqm", "another history")
    found = repo("localize", "far", *QUICK, "-o", "json")  # the worktree in which its legs ran is there
    assert (found.code, found.json["step"]) == (3, 2), found.err
    shutil.rmtree(repo.home / "worktrees")
    shutil.rmtree(repo.directory / ".git")
    repo.git("init", "-q", "-b", "main")
    repo.git("add", ".")
    repo.git("commit", "-q", "-m", "a repository without it")
    refused = repo("localize", "far")
    assert refused.code == 2
    assert f"far ran commit {sha}, which is not here: {repo.directory.resolve()}: " in refused.err, refused.err
    assert "git fetch --all --tags" in refused.err
    assert "or try the files here: foxrun localize -- python train.py --out '{out}'" in refused.err


def test_a_workflow_that_is_gone_is_known_by_the_history(repo: Place) -> None:
    done = repo("submit", "--regression-pair", "--no-gate", "-p", "source=urandom", "--name", "gone", "--wait")
    assert done.code == 3
    shutil.move(repo.home / "artifacts", repo.home / "kept")
    assert repo("delete", "gone").code == 0
    shutil.rmtree(repo.home / "artifacts", ignore_errors=True)
    shutil.move(repo.home / "kept", repo.home / "artifacts")
    refused = repo("localize", "gone")  # its runs are found; the small trainer's manifest holds no command
    assert (refused.code, "run_manifest.json with a command" in refused.err) == (7, True), refused.err
    for folder in (repo.home / "artifacts").glob("*/leg-*"):
        shutil.rmtree(folder)
    refused = repo("localize", "gone")
    assert refused.code == 7
    assert "as drift and is gone, and so are its runs" in refused.err
    assert f"foxrun submit --sha {repo.git('rev-parse', 'HEAD')} --regression-pair --seed 5" in refused.err
    refused = repo("localize", "never")
    assert refused.code == 2
    assert "there is no workflow 'never'" in refused.err
    assert "one of a cluster: the same with --engine argo" in refused.err
