"""Submitting, listing, following, deleting: what every shell can do at any time."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest

from orchestrator.engines.local import LocalEngine
from orchestrator.errors import (
    DeadlinePassed,
    InfrastructureError,
    UnsupportedConstruct,
    UsageError,
    WorkflowExists,
    WorkflowNotFound,
)
from tests.engine.cases import controllers, dag, finish, is_alive, run, sh, task, text, until, workflow

OK = sh("ok", "echo fine")
LONG = sh("long", "exec sleep 600")


def test_an_equal_submit_attaches(engine: LocalEngine, tmp_path: Path) -> None:
    submitted = workflow(sh("main", f"echo x >> {tmp_path}/ran; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done"))
    for _ in range(2):
        assert engine.submit(submitted) == "job"
    (tmp_path / "go").touch()
    finish(engine, "job")
    assert engine.submit({**submitted, "status": {"phase": "Failed"}}) == "job"
    assert (tmp_path / "ran").read_text() == "x\n"


def test_another_workflow_of_that_name_is_refused(engine: LocalEngine) -> None:
    run(engine, workflow(OK))
    with pytest.raises(WorkflowExists, match="workflow 'job' exists already and is another one") as caught:
        engine.submit(workflow(sh("ok", "echo other")))
    assert caught.value.remedy == "choose another --name, or foxrun delete job"


def test_of_two_submits_at_once_one_starts_it(engine: LocalEngine, tmp_path: Path) -> None:
    submitted = workflow(sh("main", f"echo x >> {tmp_path}/ran"))
    barrier = threading.Barrier(4)
    names: list[str] = []

    def submit() -> None:
        barrier.wait()
        names.append(LocalEngine(engine.home).submit(submitted))

    threads = [threading.Thread(target=submit) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    finish(engine, "job")
    assert names == ["job"] * 4
    assert (tmp_path / "ran").read_text() == "x\n"
    assert sorted(p.name for p in (engine.home / "workflows").iterdir()) == ["job"]


def test_an_abandoned_folder_is_removed_though_one_beside_it_is_gone_meanwhile(engine: LocalEngine) -> None:
    workflows = engine.home / "workflows"
    workflows.mkdir(parents=True)
    (workflows / ".a").symlink_to("gone")  # looked at, it is not there: as what another command moves away
    (workflows / ".deleted-b").mkdir()
    os.utime(workflows / ".deleted-b", (0, 0))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(engine, workflow(OK))
        gc.collect()
    assert [str(one.message) for one in caught] == []
    assert sorted(path.name for path in workflows.iterdir()) == [".a", "job"]


def test_two_different_submits_of_one_name_at_once(engine: LocalEngine) -> None:
    barrier = threading.Barrier(2)
    outcomes: list[str] = []

    def submit(word: str) -> None:
        barrier.wait()
        try:
            outcomes.append(engine.submit(workflow(sh("main", f"echo {word}"))))
        except WorkflowExists:
            outcomes.append("refused")

    threads = [threading.Thread(target=submit, args=(word,)) for word in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    finish(engine, "job")
    assert sorted(outcomes) == ["job", "refused"]
    assert len(text(engine, "job")) == 1


def test_ctrl_c_ends_the_watching_alone(engine: LocalEngine, tmp_path: Path) -> None:
    program = tmp_path / "watcher.py"
    program.write_text(
        "import sys\nfrom pathlib import Path\nfrom orchestrator.engines.local import LocalEngine\n"
        "from tests.engine.cases import sh, workflow\n"
        f"engine = LocalEngine(Path({str(engine.home)!r}))\n"
        f"engine.submit(workflow(sh('main', 'while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; echo through')))\n"
        "print('submitted', flush=True)\n"
        "for _ in engine.watch('job', deadline_s=300): pass\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    watcher = subprocess.Popen(
        [sys.executable, str(program)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    assert watcher.stdout is not None
    assert watcher.stdout.readline() == b"submitted\n"
    os.killpg(watcher.pid, signal.SIGINT)
    watcher.communicate()
    assert watcher.returncode == -signal.SIGINT
    until(lambda: engine.get("job")["status"]["phase"] == "Running")  # its first state may still be to be written
    (tmp_path / "go").touch()
    assert finish(engine, "job")["status"]["phase"] == "Succeeded"
    assert text(engine, "job") == ["through"]


def test_watch_shows_every_phase_and_has_a_deadline(engine: LocalEngine) -> None:
    engine.submit(workflow(LONG))
    with pytest.raises(DeadlinePassed, match=r"workflow 'job' is not completed after 0\.3 s; it goes on"):
        list(engine.watch("job", deadline_s=0.3))
    engine.stop("job")
    seen = [w["status"]["phase"] for w in engine.watch("job", deadline_s=300)]
    assert seen[-1] == "Failed"
    assert set(seen[:-1]) <= {"Running"}


def test_list_is_newest_first_and_filters_by_label(engine: LocalEngine) -> None:
    for number, color in enumerate(("red", "blue", "red")):
        submitted = workflow(OK, name=f"job-{number}")
        submitted["metadata"]["labels"] = {"color": color}
        run(engine, submitted)
    assert [w["metadata"]["name"] for w in engine.list({})] == ["job-2", "job-1", "job-0"]
    assert [w["metadata"]["name"] for w in engine.list({"color": "red"})] == ["job-2", "job-0"]
    assert engine.list({"color": "green"}) == []


def test_labels_are_set_while_it_runs_and_after(engine: LocalEngine) -> None:
    engine.submit(workflow(LONG))
    engine.set_labels("job", {"foxrun.dev/verdict": "drift"})
    engine.stop("job")
    done = finish(engine, "job")
    assert done["metadata"]["labels"]["foxrun.dev/verdict"] == "drift"
    engine.set_labels("job", {"foxrun.dev/verdict": "identical", "x": "y"})
    assert engine.list({"foxrun.dev/verdict": "identical"})[0]["metadata"]["labels"]["x"] == "y"


def test_delete_leaves_nothing(engine: LocalEngine) -> None:
    out = {"artifacts": [{"name": "o", "path": "/out/o"}]}
    run(engine, workflow(sh("main", 'echo x > "$1"', "{{outputs.artifacts.o.path}}", outputs=out)))
    assert engine.artifact("job", "job", "o").read_text() == "x\n"
    engine.delete("job")
    assert [p for p in engine.home.rglob("*") if p.is_file()] == []
    with pytest.raises(WorkflowNotFound, match="no workflow 'job'"):
        engine.get("job")


def test_delete_of_a_running_one_needs_force(engine: LocalEngine, tmp_path: Path) -> None:
    engine.submit(workflow(sh("main", f"echo $$ > {tmp_path}/pid; exec sleep 600")))
    pid = int(until(lambda: (tmp_path / "pid").is_file() and (tmp_path / "pid").read_text()))
    with pytest.raises(UsageError, match="workflow 'job' is running"):
        engine.delete("job")
    engine.delete("job", force=True)
    until(lambda: not is_alive(pid) and not controllers(engine.home, "job"))
    assert engine.list({}) == []


def test_logs_of_all_pods_line_by_line(engine: LocalEngine) -> None:
    many = sh("many", 'i=0; while [ $i -lt 2000 ]; do echo "$1 $i"; i=$((i+1)); done; printf "no end"', "{{node.name}}")
    engine.submit(workflow(dag(task("a", "many"), task("b", "many"), task("c", "many", "a && b")), many))
    followed = list(engine.logs("job", follow=True))
    for name in "abc":
        lines = [line.text for line in followed if line.node == name]
        assert lines == [f"job.{name} {i}" for i in range(2000)] + ["no end"]
        assert text(engine, "job", name) == lines
    assert len(followed) == 3 * 2001
    assert sorted(map(str, engine.logs("job"))) == sorted(map(str, followed))


def test_logs_are_followed_while_they_are_written(engine: LocalEngine, tmp_path: Path) -> None:
    script = f'echo one; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; printf "\\377two\\r\\n"'
    engine.submit(workflow(sh("main", script)))
    lines = engine.logs("job", follow=True)
    assert next(lines).text == "one"
    (tmp_path / "go").touch()
    assert [line.text for line in lines] == ["\ufffdtwo"]


def test_logs_of_a_node_that_does_not_exist(engine: LocalEngine) -> None:
    run(engine, workflow(dag(task("a", "ok")), OK))
    with pytest.raises(WorkflowNotFound, match="workflow 'job' has no node 'b'; its nodes: a"):
        list(engine.logs("job", node="b"))


@pytest.mark.parametrize("name", ["../evil", "a/b", "", ".", "..", "UPPER", "x" * 64, "-a", "a-", ".new-x", "a\n"])
def test_names_that_are_none(engine: LocalEngine, name: str) -> None:
    for call in (engine.get, engine.stop, engine.retry, engine.delete):
        with pytest.raises(UsageError, match="is not a workflow's name"):
            call(name)
    with pytest.raises(UsageError):
        engine.submit(workflow(OK, name=name))


def test_a_refused_workflow_leaves_nothing(engine: LocalEngine) -> None:
    with pytest.raises(UnsupportedConstruct, match="the local engine does not have: template 'ok': script"):
        engine.submit(workflow({"name": "ok", "script": {"source": "x"}}))
    with pytest.raises(UsageError, match=r"the Workflow is not valid: spec\.entrypoint: no template 'other'"):
        engine.submit({**workflow(OK), "spec": {"entrypoint": "other", "templates": [OK]}})
    assert not (engine.home / "workflows").exists()


def test_a_home_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with pytest.raises(InfrastructureError, match=r"cannot write below .*home: "):
        LocalEngine(tmp_path / "home").submit(workflow(OK))


def test_the_command_line_starts_fast() -> None:
    """Nothing heavy is loaded with the engine."""
    program = "import sys, orchestrator.engines.local, orchestrator.engines.local.controller; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert {"click", "rich", "hera", "kubernetes", "torch", "numpy", "yaml", "asyncio"} & set(loaded) == set()
