from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from orchestrator.engines.local import LocalEngine
from orchestrator.errors import WorkflowNotFound
from tests.engine.cases import dag, node, phases, run, sh, task, text, workflow


def artifact(name: str, path: str, **rest: Any) -> dict[str, Any]:
    return {"artifacts": [{"name": name, "path": path, **rest}]}


def make(script: str, **rest: Any) -> dict[str, Any]:
    return sh("make", script, "{{outputs.artifacts.run.path}}", outputs=artifact("run", "/foxrun/out/run", **rest))


USE = sh(
    "use",
    'if [ -e "$1" ]; then cd "$1" && find . -type f | sort | xargs cat; else echo nothing; fi',
    "{{inputs.artifacts.run.path}}",
    inputs=artifact("run", "/foxrun/in/run", optional=True),
)
FROM_MAKE = {"artifacts": [{"name": "run", "from": "{{tasks.make.outputs.artifacts.run}}", "optional": True}]}
BOTH = dag(task("make", "make"), {**task("use", "use", "make.Succeeded || make.Failed"), "arguments": FROM_MAKE})


def test_a_directory_passes_as_it_is(engine: LocalEngine) -> None:
    maker = make(
        'mkdir -p "$1/deep/er"; echo one > "$1/a"; echo two > "$1/deep/er/b"; chmod 700 "$1/a"; ln -s a "$1/link"'
    )
    done = run(engine, workflow(BOTH, maker, USE))
    assert text(engine, "job", "use") == ["one", "two"]
    stored = engine.artifact("job", "make", "run")
    assert sorted(str(p.relative_to(stored)) for p in stored.rglob("*")) == [
        "a",
        "deep",
        "deep/er",
        "deep/er/b",
        "link",
    ]
    assert (stored / "a").stat().st_mode & 0o777 == 0o700
    assert (stored / "link").readlink() == Path("a")
    uid, made = done["metadata"]["uid"], node(done, "make")
    assert made["outputs"]["artifacts"] == [
        {"name": "run", "path": "/foxrun/out/run", "s3": {"key": f"{uid}/{made['id']}/run"}}
    ]
    assert node(done, "use")["inputs"]["artifacts"] == [
        {"name": "run", "s3": {"key": f"{uid}/{made['id']}/run"}, "path": "/foxrun/in/run"}
    ]


def test_what_a_failed_pod_left_is_kept(engine: LocalEngine) -> None:
    done = run(engine, workflow(BOTH, make('mkdir "$1"; echo half > "$1/a"; exit 137', optional=True), USE))
    assert phases(done) == {"make": "Failed", "use": "Succeeded"}
    assert text(engine, "job", "use") == ["half"]


def test_an_optional_artifact_may_be_missing(engine: LocalEngine) -> None:
    done = run(engine, workflow(BOTH, make("true", optional=True), USE))
    assert text(engine, "job", "use") == ["nothing"]
    assert "artifacts" not in node(done, "make")["outputs"]
    with pytest.raises(WorkflowNotFound, match="node 'make' of workflow 'job' has no output artifact 'run'"):
        engine.artifact("job", "make", "run")


def test_an_artifact_that_is_not_written_is_an_error(engine: LocalEngine) -> None:
    done = run(engine, workflow(BOTH, make("true"), USE))
    assert phases(done) == {"make": "Error", "use": "Omitted"}
    assert node(done, "make")["message"] == "output artifact 'run': /foxrun/out/run was not written"


@pytest.mark.parametrize(
    "script",
    [
        'ln -s /etc "$1"',
        'mkdir "$1"; ln -s /etc/passwd "$1/x"',
        'mkdir "$1"; ln -s ../../../../../.. "$1/x"',
        'mkdir "$1"; mkfifo "$1/x"',
    ],
)
def test_an_artifact_never_leaves_its_root(engine: LocalEngine, script: str) -> None:
    done = run(engine, workflow(BOTH, make(script), USE))
    made = node(done, "make")
    assert made["phase"] == "Error"
    assert made["message"].startswith("output artifact 'run': ")
    assert "artifacts" not in made["outputs"]


def test_an_absolute_link_inside_an_artifact_becomes_relative(engine: LocalEngine) -> None:
    run(engine, workflow(BOTH, make('mkdir "$1"; echo one > "$1/a"; ln -s "$1/a" "$1/latest"'), USE))
    assert (engine.artifact("job", "make", "run") / "latest").readlink() == Path("a")


def test_a_consumer_cannot_change_what_it_was_given(engine: LocalEngine) -> None:
    spoil = sh("use", 'echo spoilt > "$1/a"', "{{inputs.artifacts.run.path}}", inputs=artifact("run", "/in"))
    run(engine, workflow(BOTH, make('mkdir "$1"; echo one > "$1/a"'), spoil))
    assert (engine.artifact("job", "make", "run") / "a").read_text() == "one\n"


def test_the_same_input_is_stored_once_and_reaches_every_pod(engine: LocalEngine, tmp_path: Path) -> None:
    data = tmp_path / "market data.dbn"
    data.write_bytes(b"rows\n" * 1000)
    key = engine.put_input(data)
    assert key == f"inputs/{hashlib.sha256(data.read_bytes()).hexdigest()}/market data.dbn"
    stored = engine.store.path(key)
    before = stored.stat()
    assert engine.put_input(data) == key
    assert (stored.stat().st_ino, stored.stat().st_mode & 0o777) == (before.st_ino, 0o444)
    read = sh("read", 'wc -l < "$1"', "{{inputs.artifacts.data.path}}", inputs=artifact("data", "/in/data"))
    call = {"artifacts": [{"name": "data", "from": "{{inputs.artifacts.data}}"}]}
    main = dag(
        {**task("a", "read"), "arguments": call},
        {**task("b", "read"), "arguments": call},
        inputs={"artifacts": [{"name": "data"}]},
    )
    submitted = workflow(main, read, arguments={"artifacts": [{"name": "data", "s3": {"key": key}}]})
    assert run(engine, submitted)["status"]["phase"] == "Succeeded"
    assert [line.strip() for line in text(engine, "job")] == ["1000", "1000"]


def test_a_missing_input_is_told(engine: LocalEngine) -> None:
    read = sh("read", "true", inputs={"artifacts": [{"name": "d", "path": "/in/d", "s3": {"key": "inputs/0/x"}}]})
    done = run(engine, workflow(read))
    assert done["status"]["message"] == "input artifact 'd': nothing is stored under key 'inputs/0/x'"


def test_the_exit_handler_reads_by_a_fixed_key(engine: LocalEngine) -> None:
    judge = sh(
        "judge",
        'echo "{}" > "$1"',
        "{{outputs.artifacts.verdict.path}}",
        outputs=artifact("verdict", "/out/v.json", s3={"key": "{{workflow.uid}}/verdict.json"}, archive={"none": {}}),
    )
    alert = sh(
        "alert",
        'cat "$1"; echo "$2"',
        "{{inputs.artifacts.verdict.path}}",
        "{{workflow.status}}",
        inputs=artifact("verdict", "/in/v.json", s3={"key": "{{workflow.uid}}/verdict.json"}, optional=True),
    )
    done = run(engine, workflow(judge, alert, onExit="alert"))
    assert text(engine, "job", "job.onExit") == ["{}", "Succeeded"]
    assert (
        engine.artifact("job", "job", "verdict") == engine.home / "artifacts" / done["metadata"]["uid"] / "verdict.json"
    )


def test_a_hostile_file_system_layout_in_a_pod_stays_inside(engine: LocalEngine, tmp_path: Path) -> None:
    """The directory in which an output lies is swapped for a link to a place outside."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "run").write_text("secret")
    swap = f'd=$(dirname "$1"); rmdir "$d"; ln -s {outside} "$d"'
    done = run(engine, workflow(BOTH, make(swap), USE))
    assert node(done, "make")["message"].startswith(
        "output artifact 'run': /foxrun/out/run leads out of the pod's root"
    )
