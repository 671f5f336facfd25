"""Exit handlers, deadlines, stopping."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from orchestrator.engines.local import LocalEngine
from orchestrator.errors import UsageError
from tests.engine.cases import dag, finish, node, phases, run, sh, task, text, until, workflow

BYE = sh("bye", 'printf "%s\\n" "$1" "$2"', "{{workflow.status}}", "{{workflow.failures}}")
WAIT = sh("wait", "exec sleep 600")
OK = sh("ok", "true")


def is_running(engine: LocalEngine, display_name: str) -> bool:
    nodes = engine.get("job")["status"]["nodes"].values()
    return any(n["displayName"] == display_name and n["phase"] == "Running" for n in nodes)


def test_the_exit_handler_hears_of_success(engine: LocalEngine) -> None:
    done = run(engine, workflow(dag(task("a", "ok")), OK, BYE, onExit="bye"))
    assert phases(done) == {"a": "Succeeded", "job.onExit": "Succeeded"}
    assert text(engine, "job", "job.onExit") == ["Succeeded", '"null"']
    assert node(done, "job.onExit")["name"] == "job.onExit"


def test_the_exit_handler_hears_of_failures_in_argos_shape(engine: LocalEngine) -> None:
    no = sh("no", 'echo "it\'s \\"bad\\" 💥" > "$FOXRUN_TERMINATION_LOG"; exit 3')
    done = run(engine, workflow(dag(task("a", "no"), task("b", "ok", "a")), OK, no, BYE, onExit="bye"))
    status, failures = text(engine, "job", "job.onExit")
    a = node(done, "a")
    assert status == done["status"]["phase"] == "Failed"
    main, failed = json.loads(json.loads(failures))
    assert failed == {
        "displayName": "a",
        "message": 'main: Error (exit code 3): it\'s "bad" 💥',
        "templateName": "no",
        "phase": "Failed",
        "podName": f"job-no-{a['id'].removeprefix('job-')}",
        "finishedAt": a["finishedAt"],
    }
    assert (main["displayName"], main["templateName"], main["phase"]) == ("job", "main", "Failed")


def test_a_failing_exit_handler_fails_a_success(engine: LocalEngine) -> None:
    done = run(engine, workflow(OK, sh("bye", "exit 2"), onExit="bye"))
    assert (done["status"]["phase"], done["status"]["message"]) == ("Failed", "main: Error (exit code 2)")


def test_the_workflows_deadline(engine: LocalEngine) -> None:
    main = dag(task("a", "wait"), task("b", "ok", "a"))
    begin = time.monotonic()
    done = run(engine, workflow(main, WAIT, OK, BYE, onExit="bye", activeDeadlineSeconds=1))
    assert 1 <= time.monotonic() - begin < 300
    assert phases(done) == {"a": "Failed", "job.onExit": "Succeeded"}
    assert node(done, "a")["message"] == done["status"]["message"] == "Step exceeded its deadline"
    assert done["status"]["phase"] == "Failed"


def test_stop_ends_the_pods_and_runs_the_exit_handler(engine: LocalEngine) -> None:
    main = dag(task("a", "wait"), task("b", "ok", "a || a.Failed"), task("c", "ok"))
    engine.submit(workflow(main, WAIT, OK, BYE, onExit="bye"))
    until(lambda: is_running(engine, "a"))
    until(lambda: "c" in phases(engine.get("job")) and not is_running(engine, "c"))
    engine.stop("job")
    done = finish(engine, "job")
    assert phases(done) == {"a": "Failed", "c": "Succeeded", "job.onExit": "Succeeded"}
    assert node(done, "a")["message"] == done["status"]["message"] == "Stopped with strategy 'Stop'"
    assert node(done, "a")["outputs"]["exitCode"] == "143"
    assert done["status"]["phase"] == text(engine, "job", "job.onExit")[0] == "Failed"
    with pytest.raises(UsageError, match="workflow 'job' does not run; it is Failed"):
        engine.stop("job")


@pytest.mark.parametrize("kind", ["pod", "steps", "retry"])
def test_stop_of_other_shapes(engine: LocalEngine, kind: str) -> None:
    wait = dict(WAIT)
    if kind == "retry":
        wait["retryStrategy"] = {"limit": 5, "retryPolicy": "Always"}
    main = {"name": "main", "steps": [[task("a", "wait")], [task("b", "ok")]]}
    engine.submit(workflow(*([main] if kind == "steps" else []), wait, OK))
    until(lambda: any(n["type"] == "Pod" for n in engine.get("job")["status"]["nodes"].values()))
    engine.stop("job")
    done = finish(engine, "job")
    assert (done["status"]["phase"], done["status"]["message"]) == ("Failed", "Stopped with strategy 'Stop'")
    pods = [n["phase"] for n in done["status"]["nodes"].values() if n["type"] == "Pod"]
    assert pods == ["Failed"]


def test_stop_lets_a_running_exit_handler_end(engine: LocalEngine, tmp_path: Path) -> None:
    bye = sh("bye", f"touch {tmp_path}/began; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; echo done")
    engine.submit(workflow(OK, bye, onExit="bye"))
    until(lambda: (tmp_path / "began").exists())
    engine.stop("job")
    time.sleep(0.3)
    (tmp_path / "go").touch()
    done = finish(engine, "job")
    assert text(engine, "job", "job.onExit") == ["done"]
    assert done["status"]["phase"] == "Succeeded"
