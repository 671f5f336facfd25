"""Whole workflows on the local engine with a trainer of milliseconds: submit, follow, look, stop, go on, delete."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import yaml

from tests.alerts.receivers import webhook
from tests.cli.conftest import Place

EMOJI = 'a 🦊, "quotes", {"json": [1]}, $HOME $(x)'


def wait_for(condition: Callable[[], object], seconds: float = 240.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def phases(repo: Place, name: str) -> dict[str, str]:
    nodes = repo("get", name, "-o", "json").json["status"]["nodes"].values()
    return {node["displayName"]: node["phase"] for node in nodes if node["type"] == "Pod"}


def test_a_pair_that_agrees_from_submit_to_delete(repo: Place) -> None:
    (repo.directory / "book.csv").write_text("1,2\n")
    words = ["submit", "--sha", "HEAD", "--regression-pair", "--name", "Feature/Änderung 1", "-p", f"note={EMOJI}"]
    done = repo(*words, "-p", "data=book.csv", "--seed", "8")
    assert done.code == 0, done.err
    first, *rest = done.out.splitlines()
    assert first == "identical: every compared bit agrees: 7 rows x 2 leaves"
    report = Path(rest[-1].removeprefix("report: "))
    assert "Identical" in report.read_text()
    assert [line.split(" ", 1)[1] for line in done.err.splitlines() if "Succeeded" in line][-1] == "alert Succeeded"

    name = repo("list", "-o", "name").out.strip()
    assert name.startswith("feature-") and len(name) <= 52
    workflow = repo("get", "@latest", "-o", "json").json
    assert workflow["metadata"]["annotations"]["foxrun.dev/name"] == "Feature/Änderung 1"
    assert workflow["metadata"]["labels"]["foxrun.dev/verdict"] == "identical"
    sha = repo.git("rev-parse", "HEAD")
    assert workflow["metadata"]["labels"]["foxrun.dev/sha"] == sha
    key = workflow["spec"]["arguments"]["artifacts"][0]["s3"]["key"]
    assert key.endswith("/book.csv") and (repo.home / "artifacts" / key).read_text() == "1,2\n"
    parameters = {p["name"]: p["value"] for p in workflow["spec"]["arguments"]["parameters"]}
    assert yaml.safe_load(parameters["parameters"]) == {"note": EMOJI}

    # The same request under the same name attaches; another one is refused.
    again = repo(*words, "-p", "data=book.csv", "--seed", "8")
    assert (again.code, again.out) == (0, done.out)
    other = repo(*words, "-p", "data=book.csv", "--seed", "9")
    assert (other.code, other.out) == (2, "") and "exists already and is another one" in other.err

    tree = repo("get", name[:12]).out
    assert "✔ gate" in tree and "✔ compare" in tree and f"{sha}" in tree
    assert "compare.verdict:" in tree
    assert f"  data:  {key}\n" in re.sub(" {2,}", "  ", tree)
    assert repo("list", "-l", "seed=8", "--verdict", "identical", "-o", "name").out.strip() == name
    assert repo("list", "-l", "seed=9", "-o", "name").out == ""
    assert repo("list", "-o", "wide").out.splitlines()[0].split()[:3] == ["NAME", "STATUS", "VERDICT"]
    logs = repo("logs", "@latest").out.splitlines()
    assert "leg-a: small trainer, leg a" in logs and "leg-b: small trainer, leg b" in logs
    assert repo("logs", name, "--node", "leg-b").out == "leg-b: small trainer, leg b\n"
    assert "has no part 'leg-z'; it has alert, compare, gate, leg-a, leg-b" in repo("logs", name, "--node", "leg-z").err
    assert repo("watch", name, "-o", "json").json["verdict"] == "identical"
    # Any run can be compared again by hand.
    labels = [run["label"] for run in repo("watch", name, "-o", "json").json["runs"]]
    assert repo("compare", *labels, "--verify").code == 0
    assert repo("report", name).out.strip() == str(report)

    assert "is completed already" in repo("stop", name).out
    assert repo("retry", name).code == 2
    assert repo("delete", name).out == f"{name} is deleted\n"
    assert repo("list", "-o", "json").json == [] and not report.exists()


def test_a_build_that_is_not_deterministic_is_stopped_by_the_gate(repo: Place) -> None:
    done = repo("submit", "--regression-pair", "-p", "source=poison", "-o", "json")
    assert done.code == 4
    verdict = done.json
    assert (verdict["verdict"], verdict["first_divergence"]["step"], verdict["first_divergence"]["leaf"]) == (
        "gate_failed", 2, "w",
    )  # fmt: skip
    assert "cause: memory is read before it is set" in verdict["message"]
    assert verdict["next"].startswith(f"`foxrun check --sha {repo.git('rev-parse', 'HEAD')[:12]} --seed 5 --mode 1 ")
    assert all(Path(run["label"]).is_dir() for run in verdict["runs"])
    assert set(phases(repo, "@latest")) == {"gate(0)", repo("list", "-o", "name").out.strip() + ".onExit(0)"}


def test_drift_is_told_to_a_webhook_and_leaves_exit_3(repo: Place) -> None:
    with webhook() as receiver:
        url = f"json://u:swordfish@127.0.0.1:{receiver.port}/hook"
        file = repo.directory / "foxrun.yaml"
        file.write_text(f"{file.read_text()}alerts: ['{url}']\n")
        done = repo("submit", "--regression-pair", "--no-gate", "-p", "source=urandom", "-o", "json")
        again = repo("watch", "@latest")
    assert (done.code, again.code) == (3, 3)
    lines = [line for line in again.out.splitlines() if line.startswith("FIRST_DIVERGENCE: ")]
    assert len(lines) == 1 and lines[0].startswith("FIRST_DIVERGENCE: step=2 leaf=w run_A=")
    assert "swordfish" not in done.out + done.err + again.out + repo("config").out
    (told,) = [body["foxrun"] for _, _, body in receiver.received]
    assert told["verdict"] == "drift"
    # The alert leads to the report, and names no place inside a part.
    assert told["report"] == done.json["report"] == again.out.splitlines()[-1].removeprefix("report: ")
    labels = [run["label"] for run in done.json["runs"]]
    assert told["next"] == done.json["next"]
    localize, check, compare = re.findall("`([^`]+)`", told["next"])
    assert localize == f"foxrun localize {told['workflow']}"
    assert compare == f"foxrun compare {labels[0]} {labels[1]} --report report.html"
    assert repo(*shlex.split(check.replace(" -- ", " --no-explain -- "))[1:]).code == 4  # it parts from itself
    assert repo("logs", "@latest", "--node", "alert").out == "alert: alert sent to json\n"
    assert re.search(r"^Alerts: +json: told at 2\d{3}-", repo("get", "@latest").out, re.MULTILINE)


def test_the_report_is_there_when_nobody_follows(repo: Place) -> None:
    repo("submit", "--no-gate", "--detach", "--name", "alone")
    wait_for(lambda: repo("get", "alone", "-o", "json").json["status"]["phase"] == "Succeeded")
    page = (repo.home / "reports" / "alone.html").read_text()
    assert "Succeeded" in page and "Training" in page and "nothing was compared" in page
    assert repo("watch", "alone").out.splitlines()[0].startswith("succeeded: workflow alone trained; no gate ran")


def test_what_the_gate_says_to_run_makes_it_again(repo: Place) -> None:
    (repo.directory / "my book.csv").write_text("1,2\n")
    done = repo("submit", "--regression-pair", "-p", "source=urandom", "-p", "data=my book.csv", "-o", "json")
    (repo.directory / "my book.csv").unlink()  # the stored copy is named
    command = done.json["next"].split("`")[1]
    again = repo(*shlex.split(command.replace(" -- ", " --no-explain -- "))[1:])
    assert (done.code, again.code) == (4, 4), again.err
    assert again.out.startswith("gate_failed: the gate's twins parted at step 2 in leaf w;")


def test_a_leg_that_fails_is_named_and_a_retry_goes_on(repo: Place) -> None:
    done = repo("submit", "--regression-pair", "--no-gate", "--name", "failing", "-p", "end=message@b")
    assert done.code == 5
    assert done.out.splitlines()[0] == (
        "job_failed: workflow failing: leg-b: exit code 1: the learning rate is negative"
    )
    again = repo("retry", "failing")
    assert (again.code, again.out.splitlines()[0]) == (5, done.out.splitlines()[0])


def test_a_leg_that_hangs_ends_at_its_timeout(repo: Place) -> None:
    done = repo("submit", "--regression-pair", "--no-gate", "--timeout", "2s", "-p", "end=hang@a")
    assert done.code == 6
    assert done.out.startswith("infrastructure: workflow ") and "longer --timeout" in done.out


def test_a_gate_that_hangs_says_itself_where_its_twins_stood(repo: Place) -> None:
    words = ("submit", "--regression-pair", "-p", "end=hang", "--name", "stuck")
    done = repo(*words, FOXRUN_GATE_TIMEOUT="4s")
    assert done.code == 6
    first = done.out.splitlines()[0]
    # A busy machine may not have brought a twin to its first step in that time.
    said = r"infrastructure: the gate did not end within 4 s: twin1 at step [01] of 3, twin2 at step [01] of 3"
    assert re.fullmatch(said, first)
    assert phases(repo, "stuck").get("gate(0)") == "Failed" and "leg-a(0)" not in phases(repo, "stuck")


def test_a_training_alone(repo: Place) -> None:
    done = repo("submit", "--wait")
    assert done.code == 0
    assert done.out.startswith("identical: the training succeeded, and the gate's twins agree: ")
    ungated = repo("submit", "--no-gate", "--log")
    assert ungated.code == 0
    assert ungated.out.startswith("succeeded: workflow train-") and "nothing was compared" in ungated.out
    assert "train: small trainer, leg a" in ungated.err


def test_against_another_commit_and_a_worktree_with_changes(repo: Place) -> None:
    text = (repo.directory / "train.py").read_text()
    (repo.directory / "train.py").write_text(text.replace("gradient", "slope").replace('"slope"', '"gradient"'))
    repo.git("commit", "-qam", "rename")
    assert repo("submit", "--regression-pair", "--against", "HEAD~1", "--no-gate").code == 0
    (repo.directory / "train.py").write_text(text.replace("0.1 * weight + 1.0", "0.1 * weight + 1.0000000001"))
    note = "note: HEAD is run, without the uncommitted changes here (--worktree runs them)"
    assert note in repo("submit", "--no-gate", "--detach").err.splitlines()
    changed = repo("submit", "--regression-pair", "--against", "HEAD", "--worktree", "--no-gate")
    assert note not in changed.err.splitlines()
    assert changed.code == 3
    assert "FIRST_DIVERGENCE: step=0 leaf=w_grad" in changed.out


def test_detached_watched_stopped_from_another_shell(repo: Place) -> None:
    done = repo("submit", "--no-gate", "--detach", "--name", "long", "-p", "end=hang")
    assert (done.code, done.out, done.err) == (0, "long\n", "follow it: foxrun watch long\n")
    wait_for(lambda: phases(repo, "long").get("train(0)") == "Running")
    assert repo("list", "--running", "-o", "name").out == "long\n"
    late = repo("watch", "long", "--deadline", "1s")
    assert late.code == 6 and "it goes on" in late.err and "foxrun watch long" in late.err
    refused = repo("delete", "long")
    assert refused.code == 2 and "is running" in refused.err
    follower = repo.start("logs", "long", "-f")
    assert repo("stop", "long").out == "long is being stopped\n"
    end = repo("watch", "long")
    assert end.code == 5 and "was stopped" in end.out
    assert follower.communicate(timeout=240)[0].splitlines()[0] == "train: small trainer, leg a"
    assert repo("delete", "--all").out == "long is deleted\n"


def test_ctrl_c_ends_the_following_alone(repo: Place) -> None:
    process = repo.start("submit", "--no-gate", "--name", "mine", "-p", "step_s=0.5")
    wait_for(lambda: phases_or_none(repo, "mine"))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=240)
    assert (process.returncode, out) == (130, "")
    assert "the workflow goes on: foxrun watch mine" in err and "Traceback" not in err
    assert repo("watch", "mine").code == 0


INTERRUPTED = """
import os, signal, sys
from orchestrator.cli.main import execute
from orchestrator.engines.local import LocalEngine
submit = LocalEngine.submit
def interrupted(self, workflow):
    name = submit(self, workflow) if sys.argv[1] == "after" else ""
    os.kill(os.getpid(), signal.SIGINT)
    return name
LocalEngine.submit = interrupted
sys.exit(execute(["submit", "--no-gate", "--name", "mine"]))
"""


@pytest.mark.parametrize(
    ("moment", "said"),
    [
        ("before", "nothing was submitted"),
        ("after", "the workflow goes on: foxrun watch mine   (to end it: foxrun stop mine)"),
    ],
)
def test_ctrl_c_before_the_following_says_what_became_of_the_submit(repo: Place, moment: str, said: str) -> None:
    command = [sys.executable, "-P", "-c", INTERRUPTED, moment]
    done = subprocess.run(command, cwd=repo.directory, env=repo.environ(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.splitlines()[-1]) == (130, "", said)
    assert repo("watch", "mine").code == (0 if moment == "after" else 2)


def phases_or_none(repo: Place, name: str) -> bool:
    done = repo("get", name, "-o", "json")
    return done.code == 0 and '"Running"' in done.out


def test_a_killed_engine_is_seen_and_the_same_submit_goes_on(repo: Place) -> None:
    words = ["submit", "--regression-pair", "--no-gate", "--name", "again", "-p", "step_s=0.4"]
    process = repo.start(*words)
    wait_for(lambda: phases_or_none(repo, "again") and "Running" in phases(repo, "again").values())
    controller = controllers(repo.home)
    assert len(controller) == 1
    os.kill(controller[0], signal.SIGKILL)
    out, _ = process.communicate(timeout=240)
    assert process.returncode == 6
    assert out.startswith("infrastructure: workflow again: ") and "foxrun retry again" in out
    assert repo("list", "--status", "error", "-o", "name").out == "again\n"
    done = repo(*words)
    assert (done.code, done.out.splitlines()[0]) == (0, "identical: every compared bit agrees: 7 rows x 2 leaves")
    assert repo("list", "--verdict", "identical", "-o", "name").out == "again\n"


def controllers(home: Path) -> list[int]:
    found = []
    for process in psutil.process_iter():
        try:
            command = process.cmdline()
            if "orchestrator.engines.local.controller" in command and str(home) in command and process.ppid():
                parent = psutil.Process(process.ppid()).cmdline()
                if "orchestrator.engines.local.controller" not in parent:  # its forks have its command line
                    found.append(process.pid)
        except psutil.Error:
            continue
    return found


def test_render_is_what_a_dry_run_prints_and_lint_accepts_it(repo: Place) -> None:
    rendered = repo("render", "regression-pair", "--seed", "9", "-p", "envs=4")
    dry = repo("submit", "--regression-pair", "--seed", "9", "-p", "envs=4", "--dry-run", "-o", "yaml")
    assert rendered.code == dry.code == 0 and rendered.out == dry.out
    assert repo("render", "regression-pair", "--seed", "9", "-p", "envs=4", "-o", "json").json == yaml.safe_load(
        dry.out
    )
    file = repo.directory / "w.yaml"
    file.write_text(rendered.out)
    assert repo("lint", "w.yaml").out == "1 file: no problem found\n"
    workflow = yaml.safe_load(rendered.out)
    workflow["spec"]["templates"][1]["suspend"] = {}
    workflow["spec"]["synchronization"] = {"mutexes": []}
    file.write_text(yaml.safe_dump(workflow))
    bad = repo("lint", "w.yaml", "-o", "json")
    assert bad.code == 2
    problems = " ".join(entry["problem"] for entry in bad.json)
    assert "suspend" in problems and "synchronization" in problems
    file.write_text("a: [")
    assert repo("lint", "w.yaml").code == 2


def test_only_the_newest_checks_are_kept(repo: Place) -> None:
    for number in range(25):
        (repo.home / "checks" / f"20200101T0000{number:02}-aaaaaa").mkdir(parents=True)
    done = repo("check", "--only", "memory", "--steps", "1", "-o", "json")
    assert done.code == 0
    kept = sorted(path.name for path in (repo.home / "checks").iterdir())
    assert kept[:2] == ["20200101T000006-aaaaaa", "20200101T000007-aaaaaa"]
    assert kept[19:] == [Path(done.json["out"]).name]


def test_the_parts_of_a_workflow_write_what_it_needs(repo: Place) -> None:
    out = repo.directory / "out"
    words = ["check", "--out", str(out), "--seed", "3", "--mode", "1", "--steps", "3"]
    words += ["--parameters", '{"source": "poison"}', "--verdict", "v.json", "--report", "r.html"]
    words += ["--write", "verdict=w/verdict", "--write", "step=w/step", "--write", "leaf=w/leaf"]
    words += ["--write", "pnl-difference=w/pnl", "--no-explain", "--", "python", "train.py"]
    done = repo(*words, FOXRUN_TERMINATION_LOG=str(repo.directory / "message"))
    assert done.code == 4
    written = {file.name: file.read_text() for file in (repo.directory / "w").iterdir()}
    assert written == {"verdict": "gate_failed", "step": "2", "leaf": "w", "pnl": written["pnl"]}
    assert float(written["pnl"]) != 0.0
    message = (repo.directory / "message").read_text()
    assert message.startswith("the gate's twins parted at step 2 in leaf w; likely cause: ")
    assert repo("report", "v.json", "--out", "again.html").code == 0
    assert (repo.directory / "again.html").read_bytes() == (repo.directory / "r.html").read_bytes()
    assert repo("report", str(out), "--out", "pair.html").out == f"{repo.directory / 'pair.html'}\n"


def test_an_empty_trainer_is_not_ours(repo: Place) -> None:
    done = repo("submit", "--trainer", "")
    assert (done.code, done.err) == (
        2,
        'error: the trainer\'s command is empty\n  -> for example: --trainer "python -m trainer"\n',
    )


def test_a_check_keeps_verdict_and_report_beside_its_twins(repo: Place) -> None:
    done = repo("check", "--steps", "3", "-p", "source=urandom", "--no-explain")
    report = Path(done.out.splitlines()[-1].removeprefix("report: "))
    assert (done.code, report.parent.parent) == (4, repo.home / "checks")
    assert sorted(path.name for path in report.parent.iterdir()) == [
        ".gitignore", "report.html", "twin1", "twin1.log", "twin2", "twin2.log", "verdict.json",
    ]  # fmt: skip
    assert "Gate failed" in report.read_text()
