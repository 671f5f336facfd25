from __future__ import annotations

from orchestrator.engines.local import LocalEngine
from tests.engine.cases import node, phases, run, task, text, workflow
from tests.engine.test_dag import NO, OK, SAY


def steps(*groups: list[dict[str, object]], **rest: object) -> dict[str, object]:
    return {"name": "main", "steps": list(groups), **rest}


def test_groups_run_one_after_the_other(engine: LocalEngine) -> None:
    first = [task("a", "say", arguments={"text": "A"}), task("b", "say", arguments={"text": "B"})]
    both = "{{steps.a.outputs.parameters.said}}{{steps.b.outputs.parameters.said}}"
    done = run(engine, workflow(steps(first, [task("c", "say", arguments={"text": both})]), SAY))
    assert phases(done) == {
        "[0]": "Succeeded",
        "a": "Succeeded",
        "b": "Succeeded",
        "[1]": "Succeeded",
        "c": "Succeeded",
    }
    assert text(engine, "job", "c") == ["AB"]
    assert node(done, "c")["name"] == "job[1].c"
    assert node(done, "[0]")["type"] == "StepGroup"
    assert node(done, "[0]")["children"] == [node(done, "a")["id"], node(done, "b")["id"]]
    assert node(done, "a")["children"] == node(done, "b")["children"] == [node(done, "[1]")["id"]]
    assert done["status"]["nodes"]["job"]["type"] == "Steps"
    assert done["status"]["progress"] == "3/3"


def test_a_failed_step_ends_the_steps(engine: LocalEngine) -> None:
    done = run(engine, workflow(steps([task("a", "no")], [task("b", "ok")]), OK, NO))
    assert phases(done) == {"[0]": "Failed", "a": "Failed"}
    message = f"child '{node(done, 'a')['id']}' failed"
    assert node(done, "[0]")["message"] == done["status"]["message"] == message
    assert done["status"]["phase"] == "Failed"


def test_continue_on_and_when(engine: LocalEngine) -> None:
    first = [task("a", "no", continueOn={"failed": True}), task("b", "ok", when="1 > 2")]
    done = run(engine, workflow(steps(first, [task("c", "ok", when="{{steps.a.status}} == Failed")]), OK, NO))
    assert phases(done) == {"[0]": "Succeeded", "a": "Failed", "b": "Skipped", "[1]": "Succeeded", "c": "Succeeded"}
    assert done["status"]["phase"] == "Succeeded"


def test_outputs_of_steps(engine: LocalEngine) -> None:
    outputs = {
        "parameters": [
            {"name": "x", "valueFrom": {"parameter": "{{steps.a.outputs.parameters.said}}"}},
            {"name": "y", "valueFrom": {"parameter": "{{steps.b.outputs.parameters.said}}", "default": "none"}},
        ]
    }
    group = [task("a", "say", arguments={"text": "A"}), task("b", "say", arguments={"text": "B"}, when="false")]
    done = run(engine, workflow(steps(group, outputs=outputs), SAY))
    assert done["status"]["outputs"]["parameters"] == [{"name": "x", "value": "A"}, {"name": "y", "value": "none"}]
