from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from orchestrator.engines.local import LocalEngine
from tests.engine.cases import (
    dag,
    finish,
    is_alive,
    node,
    output,
    run,
    sh,
    task,
    text,
    until,
    workflow,
)


def test_the_termination_log_becomes_the_message(engine: LocalEngine) -> None:
    done = run(engine, workflow(sh("main", 'echo "step 3, leaf q_logits" > "$FOXRUN_TERMINATION_LOG"; exit 4')))
    assert done["status"]["message"] == "main: Error (exit code 4): step 3, leaf q_logits"


def test_the_termination_log_has_a_limit(engine: LocalEngine) -> None:
    done = run(
        engine, workflow(sh("main", 'head -c 100000 /dev/zero | tr "\\0" x > "$FOXRUN_TERMINATION_LOG"; exit 1'))
    )
    assert done["status"]["message"] == "main: Error (exit code 1): " + "x" * 4096


@pytest.mark.parametrize(
    ("script", "code", "message"),
    [
        ("kill -9 $$", "137", "main: Error (exit code 137): killed by SIGKILL"),
        ("kill -15 $$", "143", "main: Error (exit code 143): killed by SIGTERM"),
        ("exit 137", "137", "main: Error (exit code 137)"),
        ("exit 64", "64", "main: Error (exit code 64)"),
    ],
)
def test_how_a_pod_ended(engine: LocalEngine, script: str, code: str, message: str) -> None:
    done = run(engine, workflow(sh("main", script)))
    root = done["status"]["nodes"]["job"]
    assert (root["phase"], root["outputs"]["exitCode"], root["message"]) == ("Failed", code, message)


def test_a_command_that_does_not_exist(engine: LocalEngine) -> None:
    submitted = workflow({"name": "main", "container": {"command": ["no-such-command"]}})
    root = run(engine, submitted)["status"]["nodes"]["job"]
    assert (root["phase"], root["outputs"]["exitCode"]) == ("Failed", "127")
    assert root["message"] == "cannot start 'no-such-command': no such command on this machine"


def test_variables(engine: LocalEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBMITTER", "here")
    monkeypatch.setenv("TOKEN", "s3cret")
    monkeypatch.delenv("ABSENT", raising=False)
    env = [
        {"name": "LEG", "value": "a"},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        {"name": "ABSENT", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": True}}},
    ]
    script = 'echo "$SUBMITTER $LEG $TOKEN ${ABSENT-none} $PYTHONUNBUFFERED $PYTHONDONTWRITEBYTECODE"'
    run(engine, workflow(sh("main", f'{script}; basename "$ARGO_PROGRESS_FILE"', env=env)))
    assert text(engine, "job") == ["here a s3cret none 1 1", "progress"]
    for path in (engine.home / "workflows/job").rglob("*"):
        assert not path.is_file() or path.name == "main.log" or b"s3cret" not in path.read_bytes()


def test_a_secret_that_is_not_there_is_told(engine: LocalEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOKEN", raising=False)
    env = [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "alerts", "key": "k"}}}]
    done = run(engine, workflow(sh("main", "true", env=env)))
    assert done["status"]["message"] == (
        "variable TOKEN comes from secret 'alerts' on a cluster, and here from the variable of whoever submits, "
        "where it is not set: export TOKEN"
    )


def test_python_and_foxrun_are_this_interpreters(engine: LocalEngine) -> None:
    show = ["-c", "import sys; print(sys.executable, sys.flags.safe_path)"]
    python = {"name": "python", "container": {"command": ["python"], "args": show}}
    nested = {"name": "nested", "container": {"command": ["sh", "-c", "command -v python"]}}
    foxrun = {"name": "foxrun", "container": {"command": ["foxrun", "version"]}}
    tasks = [task(name, name) for name in ("python", "nested", "foxrun")]
    done = run(engine, workflow(dag(*tasks), python, nested, foxrun))
    assert text(engine, "job", "python") == [f"{sys.executable} False"]
    assert text(engine, "job", "nested") == [str(Path(sys.executable).parent / "python")]
    assert node(done, "foxrun")["phase"] == "Succeeded", text(engine, "job", "foxrun")


def test_progress_is_shown_while_it_runs(engine: LocalEngine, tmp_path: Path) -> None:
    wait = f"while [ ! -e {tmp_path}/seen-$i ]; do sleep 0.02; done"
    script = f'for i in 1 2 nonsense 3; do echo "$i/3" > "$ARGO_PROGRESS_FILE"; {wait}; done'
    engine.submit(workflow(sh("main", script)))
    seen = []
    for done in engine.watch("job", deadline_s=300):
        seen.append(done["status"]["progress"])
        (tmp_path / f"seen-{seen[-1][0]}").touch()
        if seen[-1] == "2/3":
            (tmp_path / "seen-nonsense").touch()
    # Before the pod has said anything: 0/0 while the engine starts, 0/1 when the node is there; both may pass unseen.
    assert [p for p in dict.fromkeys(seen) if p not in ("0/0", "0/1")] == ["1/3", "2/3", "3/3"]


def test_template_timeout(engine: LocalEngine) -> None:
    begin = time.monotonic()
    root = run(engine, workflow(sh("main", "exec sleep 600", timeout="1s")))["status"]["nodes"]["job"]
    assert 1.0 <= time.monotonic() - begin < 300
    assert (root["phase"], root["outputs"]["exitCode"]) == ("Failed", "143")
    assert root["message"] == "Pod was active on the node longer than the specified deadline"


def test_a_pod_that_ignores_sigterm_is_killed(engine: LocalEngine) -> None:
    root = run(engine, workflow(sh("main", "trap '' TERM; while :; do sleep 0.1; done", activeDeadlineSeconds=1)))
    assert root["status"]["nodes"]["job"]["outputs"]["exitCode"] == "137"


def test_what_a_pod_leaves_behind_is_ended(engine: LocalEngine, tmp_path: Path) -> None:
    """Children in the same session, in one of their own, and orphans of orphans."""
    python = (
        "import os, sys, time\n"
        "for level in range(3):\n"
        "    if os.fork(): time.sleep(0.2); os._exit(0)\n"
        "    os.setsid()\n"
        "open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)\n"
    )
    daemon = tmp_path / "daemon.py"
    daemon.write_text(python)
    start = f'sleep 600 & echo $! > {tmp_path}/plain; "$1" {daemon} {tmp_path}/far &'
    run(engine, workflow(sh("main", f"{start} while [ ! -s {tmp_path}/far ]; do sleep 0.05; done", sys.executable)))
    pids = [int((tmp_path / name).read_text()) for name in ("plain", "far")]
    assert [is_alive(pid) for pid in pids] == [False, False]


def test_output_parameters(engine: LocalEngine) -> None:
    names = ("plain", "lines", "default", "fixed")
    outputs = {
        "parameters": [
            {"name": "plain", "valueFrom": {"path": "/out/a"}},
            {"name": "lines", "valueFrom": {"path": "/out/deep/b"}},
            {"name": "default", "valueFrom": {"path": "/out/c", "default": "unknown"}},
            {"name": "fixed", "value": "x"},
        ]
    }
    script = 'printf "a\\n" > "$1"; printf "b\\nc\\n\\n" > "$2"'
    args = [f"{{{{outputs.parameters.{name}.path}}}}" for name in ("plain", "lines")]
    done = run(engine, workflow(dag(task("t", "main2")), sh("main2", script, *args, outputs=outputs)))
    assert [output(done, "t", name) for name in names] == ["a", "b\nc\n", "unknown", "x"]


def test_a_parameter_that_is_not_written_is_an_error(engine: LocalEngine) -> None:
    outputs = {"parameters": [{"name": "x", "valueFrom": {"path": "/out/x"}}]}
    done = run(engine, workflow(sh("main", "true", outputs=outputs)))
    assert (done["status"]["phase"], done["status"]["message"]) == (
        "Error",
        "output parameter 'x': /out/x was not written",
    )


def test_pods_run_in_a_clean_worktree_of_their_commit(engine: LocalEngine, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()

    def git(*words: str) -> str:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
        done = subprocess.run(["git", *identity, *words], cwd=repository, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init", "-q")
    commits = []
    for content in ("one", "two"):
        (repository / "f").write_text(content)
        git("add", "f")
        git("commit", "-q", "-m", content)
        commits.append(git("rev-parse", "HEAD"))
    (repository / "f").write_text("dirty")
    show = sh("show", "cat f; echo", inputs={"parameters": [{"name": "sha"}]},
              metadata={"annotations": {"foxrun.dev/sha": "{{inputs.parameters.sha}}"}})  # fmt: skip
    tasks = [task(f"t{n}", "show", arguments={"sha": sha}) for n, sha in enumerate([*commits, "worktree", "0" * 40])]
    submitted = workflow(dag(*tasks), show)
    submitted["metadata"]["annotations"] = {
        "foxrun.dev/repository": str(repository),
        "foxrun.dev/worktree": str(repository),
    }
    done = run(engine, submitted)
    assert [text(engine, "job", f"t{n}") for n in range(3)] == [["one"], ["two"], ["dirty"]]
    assert node(done, "t3")["phase"] == "Failed"
    assert "names no commit" in node(done, "t3")["message"]
    assert git("status", "--porcelain") == "M f"


def test_kill_9_of_a_pod_is_seen(engine: LocalEngine, tmp_path: Path) -> None:
    engine.submit(workflow(sh("main", f"echo $$ > {tmp_path}/pid; exec sleep 600")))
    pid = int(until(lambda: (tmp_path / "pid").is_file() and (tmp_path / "pid").read_text()))
    until(lambda: Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sleep"))
    os.kill(pid, signal.SIGKILL)
    done = finish(engine, "job")
    assert done["status"]["phase"] == "Failed"
    assert done["status"]["message"] == "main: Error (exit code 137): killed by SIGKILL"
