from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from orchestrator.engines.local import LocalEngine
from tests.engine.cases import dag, node, phases, run, sh, task, text, workflow

INFRASTRUCTURE = 'lastRetry.status == "Error" || lastRetry.exitCode in ["64", "65"]'


def flaky(tmp_path: Path, failures: int, code: int = 1, **strategy: Any) -> dict[str, Any]:
    """Fails some times, then succeeds."""
    count = f'echo x >> {tmp_path}/tries; echo "try $1 after $2"'
    script = f"{count}; [ $(wc -l < {tmp_path}/tries) -gt {failures} ] || exit {code}"
    return sh("flaky", script, "{{retries}}", "{{lastRetry.exitCode}}", retryStrategy=strategy)


def tries(tmp_path: Path) -> int:
    return len((tmp_path / "tries").read_text().splitlines())


def test_failures_are_tried_again(engine: LocalEngine, tmp_path: Path) -> None:
    main = dag(task("a", "flaky"), task("b", "ok", "a"))
    done = run(engine, workflow(main, flaky(tmp_path, 2, limit=3), sh("ok", "true")))
    assert phases(done) == {"a": "Succeeded", "a(0)": "Failed", "a(1)": "Failed", "a(2)": "Succeeded", "b": "Succeeded"}
    assert node(done, "a")["type"] == "Retry"
    assert node(done, "a")["children"] == [node(done, f"a({n})")["id"] for n in range(3)]
    assert node(done, "a(2)")["children"] == [node(done, "b")["id"]]
    assert node(done, "a(0)")["name"] == "job.a(0)"
    assert done["status"]["phase"] == "Succeeded"
    assert text(engine, "job", "a") == ["try 0 after 0", "try 1 after 1", "try 2 after 1"]


@pytest.mark.parametrize(
    ("strategy", "code", "count", "message"),
    [
        ({"limit": 2}, 1, 3, "No more retries left"),
        ({"limit": "0"}, 1, 1, "No more retries left"),
        ({"limit": 5, "retryPolicy": "OnError"}, 1, 1, "main: Error (exit code 1)"),
        ({"limit": 5, "retryPolicy": "OnTransientError"}, 1, 1, "main: Error (exit code 1)"),
        ({"limit": 1, "retryPolicy": "Always"}, 1, 2, "No more retries left"),
        ({"limit": 5, "expression": INFRASTRUCTURE}, 1, 1, "retryStrategy.expression evaluated to false"),
        ({"limit": 1, "expression": INFRASTRUCTURE, "retryPolicy": "Always"}, 64, 2, "No more retries left"),
        ({"limit": 1, "expression": "asInt(lastRetry.exitCode) > 100"}, 137, 2, "No more retries left"),
        ({"backoff": {"duration": "600s"}, "expression": "false"}, 1, 1, "retryStrategy.expression evaluated to false"),
        ({"backoff": {"duration": "5s", "maxDuration": "1s"}}, 1, 1, "Backoff would exceed max duration limit"),
    ],
)  # fmt: skip
def test_when_no_other_attempt_is_made(
    engine: LocalEngine, tmp_path: Path, strategy: dict[str, Any], code: int, count: int, message: str
) -> None:
    done = run(engine, workflow(flaky(tmp_path, 99, code, **strategy)))
    assert tries(tmp_path) == count
    assert (done["status"]["phase"], done["status"]["message"]) == ("Failed", message)
    assert done["status"]["nodes"]["job"]["outputs"] == {"exitCode": str(code)}


def test_errors_are_tried_again_when_asked(engine: LocalEngine) -> None:
    missing = sh("main", "true", retryStrategy={"limit": 1, "retryPolicy": "OnError"},
                 outputs={"parameters": [{"name": "x", "valueFrom": {"path": "/x/y"}}]})  # fmt: skip
    done = run(engine, workflow(missing))
    assert phases(done) == {"job(0)": "Error", "job(1)": "Error"}


def test_backoff_grows(engine: LocalEngine, tmp_path: Path) -> None:
    begin = time.monotonic()
    strategy = {"limit": 2, "backoff": {"duration": "300ms", "factor": 2}}
    done = run(engine, workflow(flaky(tmp_path, 2, **strategy)))
    assert done["status"]["phase"] == "Succeeded"
    assert 0.9 <= time.monotonic() - begin < 300


def test_each_attempt_has_a_directory_of_its_own(engine: LocalEngine, tmp_path: Path) -> None:
    script = f'[ -e "$1" ] && exit 9; touch "$1"; echo x >> {tmp_path}/tries; [ $(wc -l < {tmp_path}/tries) -gt 1 ]'
    out = {"artifacts": [{"name": "o", "path": "/out/o"}]}
    retried = sh("main", script, "{{outputs.artifacts.o.path}}", outputs=out, retryStrategy={"limit": 1})
    assert run(engine, workflow(retried))["status"]["phase"] == "Succeeded"


def test_the_timeout_counts_all_attempts(engine: LocalEngine, tmp_path: Path) -> None:
    done = run(engine, workflow({**flaky(tmp_path, 99, limit=1000, backoff={"duration": "200ms"}), "timeout": "1s"}))
    assert 2 <= tries(tmp_path) <= 6
    assert done["status"]["phase"] == "Failed"


def test_a_dag_is_tried_again(engine: LocalEngine, tmp_path: Path) -> None:
    inner = {**dag(task("x", "flaky"), name="inner"), "retryStrategy": {"limit": 1}}
    done = run(engine, workflow(dag(task("a", "inner")), inner, flaky(tmp_path, 1, limit=0)))
    assert node(done, "a(0)")["type"] == "DAG"
    assert [node(done, n)["phase"] for n in ("a", "a(0)", "a(1)")] == ["Succeeded", "Failed", "Succeeded"]
