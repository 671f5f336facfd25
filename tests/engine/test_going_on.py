"""What survives a killed controller, and how a run goes on."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from orchestrator.engines.local import LocalEngine
from orchestrator.errors import UsageError
from tests.engine.cases import (
    controllers,
    dag,
    finish,
    is_alive,
    kill_controller,
    node,
    output,
    parameters,
    phases,
    run,
    sh,
    task,
    text,
    until,
    workflow,
)

STEPS = "abcdef"

COUNT = sh(
    "count",
    'echo "$1" >> "$2/ran-$1"; printf "%s" "$1.$(cat "$2"/ran-* | wc -l)" > "$3"; [ -e "$2/go-$1" ] || sleep 600',
    "{{inputs.parameters.name}}",
    "{{workflow.parameters.place}}",
    "{{outputs.parameters.said.path}}",
    inputs=parameters("name"),
    outputs={"parameters": [{"name": "said", "valueFrom": {"path": "/out/said"}}]},
)


def chain(place: Path) -> dict[str, Any]:
    main = dag(*[task(name, "count", before, {"name": name}) for name, before in (("a", ""), ("b", "a"), ("c", "b"))])
    return workflow(main, COUNT, arguments={"parameters": [{"name": "place", "value": str(place)}]})


def ran(place: Path, name: str) -> int:
    path = place / f"ran-{name}"
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_a_killed_run_is_seen_and_goes_on(engine: LocalEngine, tmp_path: Path) -> None:
    (tmp_path / "go-a").touch()
    engine.submit(chain(tmp_path))
    until(lambda: ran(tmp_path, "b"))
    seen = engine.watch("job", deadline_s=300)
    next(seen)
    kill_controller(engine, "job")
    *_, last = seen
    assert last["status"]["phase"] == "Error"
    assert last["status"]["message"] == "the local engine was killed"
    assert phases(last) == {"a": "Succeeded", "b": "Error"}
    assert node(last, "b")["message"] == "the local engine was killed"
    assert [w["status"]["phase"] for w in engine.list({})] == ["Error"]
    said = output(last, "a", "said")
    for name in "bc":
        (tmp_path / f"go-{name}").touch()
    assert engine.retry("job") == "job"
    done = finish(engine, "job")
    assert (done["status"]["phase"], phases(done)) == ("Succeeded", dict.fromkeys("abc", "Succeeded"))
    assert [ran(tmp_path, name) for name in "abc"] == [1, 2, 1]
    assert output(done, "a", "said") == said
    assert "message" not in done["status"]
    assert done["status"]["progress"] == "3/3"
    assert done["status"]["nodes"]["job"]["children"] == [node(done, "a")["id"]]
    assert node(done, "b")["children"] == [node(done, "c")["id"]]


def test_the_same_submit_goes_on_too(engine: LocalEngine, tmp_path: Path) -> None:
    submitted = chain(tmp_path)
    engine.submit(submitted)
    until(lambda: ran(tmp_path, "a"))
    kill_controller(engine, "job")
    for name in "abc":
        (tmp_path / f"go-{name}").touch()
    assert engine.submit(submitted) == "job"
    assert finish(engine, "job")["status"]["phase"] == "Succeeded"
    assert [ran(tmp_path, name) for name in "abc"] == [2, 1, 1]


def test_pods_die_with_their_controller(engine: LocalEngine, tmp_path: Path) -> None:
    start = f"sleep 600 & echo $! > {tmp_path}/child; setsid sleep 600 & echo $! > {tmp_path}/session"
    script = f"{start}; echo $$ > {tmp_path}/self; wait"
    engine.submit(workflow(sh("main", script)))
    until(lambda: (tmp_path / "self").is_file() and (tmp_path / "self").read_text())
    pids = [int((tmp_path / name).read_text()) for name in ("self", "child", "session")]
    assert all(is_alive(pid) for pid in pids)
    kill_controller(engine, "job")
    until(lambda: not any(is_alive(pid) for pid in pids))


def test_what_a_killed_guardian_left_is_ended_when_the_run_goes_on(engine: LocalEngine, tmp_path: Path) -> None:
    script = f"setsid sleep 600 & echo $! > {tmp_path}/session; [ -e {tmp_path}/go ] || sleep 600"
    engine.submit(workflow(sh("main", script)))
    until(lambda: (tmp_path / "session").is_file() and (tmp_path / "session").read_text())
    orphan = int((tmp_path / "session").read_text())
    controller, *guardians = controllers(engine.home, "job")
    for pid in (controller, *guardians):
        os.kill(pid, signal.SIGSTOP)
    for pid in (*guardians, controller):
        os.kill(pid, signal.SIGKILL)
    until(lambda: engine.get("job")["status"]["phase"] == "Error")
    assert is_alive(orphan)
    (tmp_path / "go").touch()
    engine.retry("job")
    assert finish(engine, "job")["status"]["phase"] == "Succeeded"
    assert not is_alive(orphan)


def test_a_killed_guardian_ends_its_pod(engine: LocalEngine, tmp_path: Path) -> None:
    engine.submit(workflow(sh("main", f"setsid sleep 600 & echo $! > {tmp_path}/session; wait")))
    until(lambda: (tmp_path / "session").is_file() and (tmp_path / "session").read_text())
    os.kill(controllers(engine.home, "job")[1], signal.SIGKILL)
    done = finish(engine, "job")
    assert done["status"]["message"] == "main: Error (exit code 137): killed by SIGKILL"
    until(lambda: not is_alive(int((tmp_path / "session").read_text())))


def test_a_kill_at_any_moment_leaves_a_state_from_which_it_goes_on(
    engine: LocalEngine,
) -> None:
    """Kill at random moments until the run has come through; every state on the way can be read."""
    step = sh(
        "step",
        'cat "$1" > "$2" 2>/dev/null; echo "$3" >> "$2"; printf "%s" "$(wc -l < "$2")" > "$4"; sleep 0.1',
        *("{{inputs.artifacts.log.path}}", "{{outputs.artifacts.log.path}}"),
        *("{{inputs.parameters.name}}", "{{outputs.parameters.lines.path}}"),
        inputs={**parameters("name"), "artifacts": [{"name": "log", "path": "/in/log", "optional": True}]},
        outputs={
            "artifacts": [{"name": "log", "path": "/out/log", "s3": {"key": "{{workflow.uid}}/{{pod.name}}/log"}}],
            "parameters": [{"name": "lines", "valueFrom": {"path": "/out/lines"}}],
        },
        retryStrategy={"limit": 1, "retryPolicy": "OnError"},
    )
    tasks = []
    for index, name in enumerate(STEPS):
        before = STEPS[index - 1] if index else ""
        found = task(name, "step", before, {"name": name})
        if before:
            found["arguments"]["artifacts"] = [{"name": "log", "from": f"{{{{tasks.{before}.outputs.artifacts.log}}}}"}]
        tasks.append(found)
    dice = random.Random(1)
    engine.submit(workflow(dag(*tasks), step))
    kills = 0
    while engine.get("job")["status"]["phase"] != "Succeeded":
        time.sleep(dice.uniform(0.0, 0.3))
        pids = controllers(engine.home, "job")
        if pids and kills < 10:
            os.kill(pids[0], signal.SIGKILL)
            kills += 1
            until(lambda: not engine_is_running(engine))
        json.loads((engine.home / "workflows/job/workflow.json").read_text())
        if engine.get("job")["status"]["phase"] == "Error":
            engine.retry("job")
        elif kills == 10:
            finish(engine, "job")
    done = engine.get("job")
    assert [output(done, name, "lines") for name in STEPS] == [str(n + 1) for n in range(len(STEPS))]
    assert engine.artifact("job", STEPS[-1], "log").read_text().split() == list(STEPS)
    assert kills >= 3


def engine_is_running(engine: LocalEngine) -> bool:
    return any(is_alive(pid) for pid in controllers(engine.home, "job")[:1])


def test_a_disk_that_was_full_for_a_moment_costs_nothing(engine: LocalEngine, tmp_path: Path) -> None:
    engine.submit(workflow(sh("main", f"while [ ! -e {tmp_path}/go ]; do sleep 0.02; done")))
    until(lambda: engine.get("job")["status"]["nodes"])
    place = engine.home / "workflows/job"
    (place / f".workflow.json.{controllers(engine.home, 'job')[0]}").symlink_to("/dev/full")
    (tmp_path / "go").touch()
    assert finish(engine, "job")["status"]["phase"] == "Succeeded"
    said = f"error: cannot write {place}/workflow.json: No space left on device\n"
    assert (place / "controller.log").read_text() == said


def test_a_submitter_that_is_killed_leaves_a_run_that_goes_on(engine: LocalEngine, tmp_path: Path) -> None:
    """Its end of the pipe on which the controller reports is closed when the controller starts."""
    submitted = workflow(sh("main", "echo fine"))
    program = tmp_path / "submit.py"
    program.write_text(
        "import os, sys, json\nfrom pathlib import Path\nfrom orchestrator.engines.local import LocalEngine, launch\n"
        "launch.select.select = lambda *arguments: os.kill(os.getpid(), 9)\n"
        f"LocalEngine(Path({str(engine.home)!r})).submit(json.load(open(sys.argv[1])))\n"
    )
    (tmp_path / "job.json").write_text(json.dumps(submitted))
    done = subprocess.run([sys.executable, "-P", str(program), str(tmp_path / "job.json")], check=False)
    assert done.returncode == -signal.SIGKILL
    assert finish(engine, "job")["status"]["phase"] == "Succeeded"
    assert engine.submit(submitted) == "job"
    assert text(engine, "job") == ["fine"]


def test_retry_keeps_what_succeeded_and_what_rests_on_it(engine: LocalEngine, tmp_path: Path) -> None:
    """Side branch kept; failed task, what accepted its failure, and the exit handler begin anew."""
    note = f'echo "$1" >> "{tmp_path}/ran-$1"; [ -e "{tmp_path}/fail-$1" ] && exit 1; true'
    step = sh("step", note, "{{inputs.parameters.name}}", inputs=parameters("name"))
    inner = dag(
        task("x", "step", arguments={"name": "x"}),
        task("y", "step", "x", {"name": "y"}),
        name="inner",
    )
    tasks = [
        task("side", "step", arguments={"name": "side"}),
        task("leg", "step", arguments={"name": "leg"}),
        task("in", "inner"),
        task("cmp", "step", "(leg || leg.Failed) && (in || in.Failed)", {"name": "cmp"}),
        task("never", "step", "side.Failed", {"name": "never"}),
    ]
    bye = sh("bye", note, "bye")
    for name in ("leg", "y"):
        (tmp_path / f"fail-{name}").touch()
    submitted = workflow(
        dag(*tasks, target="cmp side never leg"), inner, step, bye,
        onExit="bye",
    )  # fmt: skip
    first = run(engine, submitted)
    assert first["status"]["phase"] == "Failed"
    assert phases(first)["cmp"] == "Succeeded"
    for name in ("leg", "y"):
        (tmp_path / f"fail-{name}").unlink()
    engine.retry("job")
    done = finish(engine, "job")
    assert done["status"]["phase"] == "Succeeded"
    assert {name: ran(tmp_path, name) for name in ("side", "leg", "x", "y", "cmp", "never", "bye")} == {
        "side": 1, "leg": 2, "x": 1, "y": 2, "cmp": 2, "never": 0, "bye": 2,
    }  # fmt: skip
    assert phases(done) == {
        "side": "Succeeded", "leg": "Succeeded", "in": "Succeeded", "x": "Succeeded", "y": "Succeeded",
        "cmp": "Succeeded", "never": "Omitted", "job.onExit": "Succeeded",
    }  # fmt: skip


def test_retry_of_steps(engine: LocalEngine, tmp_path: Path) -> None:
    note = f'echo x >> "{tmp_path}/ran-$1"; [ -e "{tmp_path}/fail-$1" ] && exit 1; true'
    step = sh("step", note, "{{inputs.parameters.name}}", inputs=parameters("name"))
    groups = [[task(n, "step", arguments={"name": n}) for n in group] for group in ("a", "bc", "d")]
    (tmp_path / "fail-c").touch()
    assert run(engine, workflow({"name": "main", "steps": groups}, step))["status"]["phase"] == "Failed"
    (tmp_path / "fail-c").unlink()
    engine.retry("job")
    assert finish(engine, "job")["status"]["phase"] == "Succeeded"
    assert [ran(tmp_path, n) for n in "abcd"] == [1, 1, 2, 1]


def test_retry_does_not_read_what_the_attempt_before_left(engine: LocalEngine, tmp_path: Path) -> None:
    script = f'[ -e "$1" ] && exit 9; echo half > "$1"; [ -e {tmp_path}/go ]'
    out = {"artifacts": [{"name": "o", "path": "/out/o", "s3": {"key": "{{workflow.uid}}/o"}}]}
    first = run(engine, workflow(sh("main", script, "{{outputs.artifacts.o.path}}", outputs=out)))
    assert first["status"]["message"] == "main: Error (exit code 1)"
    stored = engine.artifact("job", "job", "o")
    assert stored.read_text() == "half\n"
    (tmp_path / "go").touch()
    engine.retry("job")
    assert finish(engine, "job")["status"]["phase"] == "Succeeded"


def test_what_cannot_be_retried(engine: LocalEngine, tmp_path: Path) -> None:
    run(engine, workflow(sh("main", "true")))
    with pytest.raises(UsageError, match="workflow 'job' has succeeded; there is nothing to retry"):
        engine.retry("job")
    engine.submit(workflow(sh("main", "sleep 600"), name="long"))
    with pytest.raises(UsageError, match="workflow 'long' is running"):
        engine.retry("long")


def test_a_stopped_run_goes_on(engine: LocalEngine, tmp_path: Path) -> None:
    engine.submit(workflow(sh("main", f"[ -e {tmp_path}/go ] || exec sleep 600")))
    engine.stop("job")
    assert finish(engine, "job")["status"]["phase"] == "Failed"
    (tmp_path / "go").touch()
    engine.retry("job")
    assert finish(engine, "job")["status"]["phase"] == "Succeeded"
    assert text(engine, "job") == []
