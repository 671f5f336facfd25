from __future__ import annotations

import json

from orchestrator.engines.local import LocalEngine
from tests.engine.cases import dag, finish, node, output, parameters, phases, run, sh, task, text, workflow

OK = sh("ok", "echo fine")
NO = sh("no", "exit 3")
SAY = sh(
    "say",
    'printf "%s" "$1" > "$2"; printf "%s\\n" "$1"',
    "{{inputs.parameters.text}}",
    "{{outputs.parameters.said.path}}",
    inputs=parameters("text"),
    outputs={"parameters": [{"name": "said", "valueFrom": {"path": "/out/said"}}]},
)


def test_a_diamond_passes_outputs_on(engine: LocalEngine) -> None:
    tasks = [
        task("a", "say", arguments={"text": "A"}),
        task("b", "say", "a", {"text": "{{tasks.a.outputs.parameters.said}}b"}),
        task("c", "say", "a", {"text": "{{tasks.a.outputs.parameters.said}}c"}),
        task("d", "say", "b && c", {"text": "{{tasks.b.outputs.parameters.said}}+{{tasks.c.outputs.parameters.said}}"}),
    ]
    outputs = {"parameters": [{"name": "all", "valueFrom": {"parameter": "{{tasks.d.outputs.parameters.said}}"}}]}
    done = run(engine, workflow(dag(*tasks, outputs=outputs), SAY))
    status = done["status"]
    assert phases(done) == {"a": "Succeeded", "b": "Succeeded", "c": "Succeeded", "d": "Succeeded"}
    assert output(done, "d", "said") == "Ab+Ac"
    assert status["outputs"] == {"parameters": [{"name": "all", "value": "Ab+Ac"}]}
    assert (status["phase"], status["progress"], "message" in status) == ("Succeeded", "4/4", False)
    assert status["conditions"] == [
        {"type": "PodRunning", "status": "False"},
        {"type": "Completed", "status": "True"},
    ]
    root, a, b, c, d = status["nodes"].values()
    assert (root["type"], root["id"], root["name"], root["templateName"]) == ("DAG", "job", "job", "main")
    assert root["children"] == [a["id"]]
    assert a["children"] == [b["id"], c["id"]]
    assert b["children"] == c["children"] == [d["id"]]
    assert root["outboundNodes"] == [d["id"]]
    assert {key: a[key] for key in a if not key.endswith("At")} == {
        "id": "job-130312373",
        "name": "job.a",
        "displayName": "a",
        "type": "Pod",
        "templateName": "say",
        "phase": "Succeeded",
        "boundaryID": "job",
        "progress": "1/1",
        "inputs": {"parameters": [{"name": "text", "value": "A"}]},
        "outputs": {
            "parameters": [{"name": "said", "value": "A", "valueFrom": {"path": "/out/said"}}],
            "exitCode": "0",
        },
        "children": [b["id"], c["id"]],
    }
    assert root["startedAt"] <= a["startedAt"] <= a["finishedAt"] <= d["startedAt"] <= status["finishedAt"]
    assert done["metadata"]["labels"] == {
        "workflows.argoproj.io/phase": "Succeeded",
        "workflows.argoproj.io/completed": "true",
    }


def test_what_depends_on_a_failure_is_omitted(engine: LocalEngine) -> None:
    tasks = [
        task("a", "no"),
        task("b", "ok", "a"),
        task("c", "ok", "b.Succeeded"),
        task("d", "ok", "a.Failed"),
        task("e", "ok", "b.Omitted && !a.Succeeded"),
        task("f", "ok"),
    ]
    done = run(engine, workflow(dag(*tasks, fail_fast=False), OK, NO))
    assert phases(done) == {
        "a": "Failed", "b": "Omitted", "c": "Omitted", "d": "Succeeded", "e": "Succeeded", "f": "Succeeded",
    }  # fmt: skip
    assert node(done, "b")["type"] == "Skipped"
    assert node(done, "b")["message"] == "omitted: depends condition not met"
    assert node(done, "a")["message"] == "main: Error (exit code 3)"
    assert node(done, "a")["outputs"] == {"exitCode": "3"}
    assert done["status"]["phase"] == "Failed"
    assert done["status"]["progress"] == "3/4"


def test_a_failure_that_another_task_accepted_does_not_count(engine: LocalEngine) -> None:
    compare = task(
        "compare",
        "say",
        "(a.Succeeded || a.Failed || a.Errored) && b",
        {"text": "{{tasks.a.status}} {{tasks.a.exitCode}}"},
    )
    done = run(engine, workflow(dag(task("a", "no"), task("b", "ok"), compare), OK, NO, SAY))
    assert done["status"]["phase"] == "Succeeded"
    assert output(done, "compare", "said") == "Failed 3"


def test_continue_on(engine: LocalEngine) -> None:
    first = task("a", "no", continueOn={"failed": True})
    done = run(engine, workflow(dag(first, {**task("b", "ok"), "dependencies": ["a"]}), OK, NO))
    assert (phases(done), done["status"]["phase"]) == ({"a": "Failed", "b": "Succeeded"}, "Succeeded")


def test_when(engine: LocalEngine) -> None:
    tasks = [
        task("a", "say", arguments={"text": "no"}),
        task("b", "ok", "a", when="{{tasks.a.outputs.parameters.said}} == yes"),
        task("c", "ok", "a", when="'{{tasks.a.outputs.parameters.said}}' == 'no'"),
        task("d", "ok", "b"),
        task("e", "ok", "b.Succeeded"),
    ]
    done = run(engine, workflow(dag(*tasks), OK, SAY))
    assert phases(done) == {"a": "Succeeded", "b": "Skipped", "c": "Succeeded", "d": "Succeeded", "e": "Omitted"}
    assert node(done, "b")["message"] == "when 'no == yes' evaluated false"
    assert done["status"]["phase"] == "Succeeded"


def test_target_leaves_the_rest_out(engine: LocalEngine) -> None:
    done = run(engine, workflow(dag(task("a", "ok"), task("b", "ok", "a"), task("c", "ok"), target="b"), OK))
    assert phases(done) == {"a": "Succeeded", "b": "Succeeded"}


def test_a_dag_inside_a_dag(engine: LocalEngine) -> None:
    inner = dag(
        task("x", "say", arguments={"text": "{{inputs.parameters.text}}!"}),
        name="inner",
        inputs=parameters("text"),
        outputs={"parameters": [{"name": "said", "valueFrom": {"parameter": "{{tasks.x.outputs.parameters.said}}"}}]},
    )
    outer = dag(
        task("one", "inner", arguments={"text": "1"}),
        task("two", "say", "one", {"text": "{{tasks.one.outputs.parameters.said}}2"}),
    )
    done = run(engine, workflow(outer, inner, SAY))
    assert output(done, "two", "said") == "1!2"
    assert node(done, "x")["name"] == "job.one.x"
    assert node(done, "x")["children"] == [node(done, "two")["id"]]
    assert node(done, "one")["progress"] == "1/1"


HOSTILE = [
    "\"quotes\" and 'more'",
    "two\nlines\t\\n",
    "💥 ünï \udcff",
    "{{workflow.name}} {{tasks.a0.id}}",
    "{{",
    '{"a": [1, "b"]}',
    "$HOME `id`; exit 1",
    "$(SECRET) $$",
]


def test_hostile_text_travels_unchanged(engine: LocalEngine) -> None:
    """From the workflow's parameters to a pod, out of it, and into the next."""
    again = sh(
        "again",
        'printf "%s" "$1" > "$2"',
        "{{inputs.parameters.text}}",
        "{{outputs.parameters.said.path}}",
        inputs=parameters("text"),
        outputs={"parameters": [{"name": "said", "valueFrom": {"path": "/out/said"}}]},
        env=[{"name": "SECRET", "value": "secret"}],
    )
    tasks, arguments = [], []
    for index, hostile in enumerate(HOSTILE):
        arguments.append({"name": f"p{index}", "value": hostile.replace("$", "$$")})
        tasks.append(task(f"a{index}", "again", arguments={"text": f"{{{{workflow.parameters.p{index}}}}}"}))
        if "$" not in hostile:
            said = f"{{{{tasks.a{index}.outputs.parameters.said}}}}"
            tasks.append(task(f"b{index}", "again", f"a{index}", {"text": said}))
    done = run(engine, workflow(dag(*tasks), again, arguments={"parameters": arguments}))
    assert done["status"]["phase"] == "Succeeded"
    told = [hostile.replace("\udcff", "\ufffd") for hostile in HOSTILE]
    assert [output(done, f"a{index}", "said") for index in range(len(HOSTILE))] == told
    for index, hostile in enumerate(told):
        if "$" not in hostile:
            assert output(done, f"b{index}", "said") == hostile


def test_workflow_tags(engine: LocalEngine) -> None:
    tags = ["name", "namespace", "uid", "parameters", "labels.foxrun.dev/seed", "annotations.title", "mainEntrypoint"]
    args = [f"{{{{workflow.{tag}}}}}" for tag in tags] + ["{{pod.name}}", "{{node.name}}"]
    submitted = workflow(
        sh("main", 'for word; do echo "$word"; done', *args), arguments={"parameters": [{"name": "n", "value": 5}]}
    )
    submitted["metadata"].update(labels={"foxrun.dev/seed": "42"}, annotations={"title": 'a "b"'})
    done = run(engine, submitted)
    name, namespace, uid, params, seed, title, entrypoint, pod, node_name = text(engine, "job")
    assert (name, namespace, seed, title, entrypoint) == ("job", "default", "42", 'a "b"', "main")
    assert json.loads(params) == [{"name": "n", "value": "5"}]
    assert uid == done["metadata"]["uid"]
    assert (pod, node_name) == ("job", "job")


def test_an_absent_output_is_an_error_unless_there_is_a_default(engine: LocalEngine) -> None:
    give = sh("give", "exit 1", outputs={"parameters": [{"name": "x", "valueFrom": {"path": "/out/x"}}]})
    lend = sh(
        "lend", "exit 1", outputs={"parameters": [{"name": "x", "valueFrom": {"path": "/out/x", "default": "D"}}]}
    )
    plain = sh("plain", 'echo "$1"', "{{inputs.parameters.x}}", inputs=parameters("x"))
    kind = sh("kind", 'echo "$1"', "{{inputs.parameters.x}}", inputs=parameters(x="K"))
    tasks = [
        task("give", "give"),
        task("lend", "lend"),
        task("a", "plain", "give.Failed", {"x": "{{tasks.give.outputs.parameters.x}}"}),
        task("b", "kind", "give.Failed", {"x": "{{tasks.give.outputs.parameters.x}}"}),
        task("c", "plain", "lend.Failed", {"x": "{{tasks.lend.outputs.parameters.x}}"}),
    ]
    done = run(engine, workflow(dag(*tasks), give, lend, plain, kind))
    assert node(done, "a")["phase"] == "Error"
    assert node(done, "a")["message"] == "inputs.parameters.x of template 'plain' was not supplied"
    assert text(engine, "job", "b") == ["K"]
    assert text(engine, "job", "c") == ["D"]
    assert done["status"]["phase"] == "Error"


def test_parallelism_holds_pods_back(engine: LocalEngine) -> None:
    both = sh("both", "echo $(date +%s%N) start; sleep 0.2; echo $(date +%s%N) end")
    done = run(engine, workflow(dag(task("a", "both"), task("b", "both"), task("c", "both")), both, parallelism=1))
    lines = sorted(line.text for line in engine.logs("job"))
    assert [line.split()[1] for line in lines] == ["start", "end"] * 3
    assert done["status"]["phase"] == "Succeeded"


def test_legs_run_side_by_side(engine: LocalEngine) -> None:
    """Each waits for the other: one after the other they would never end."""
    meet = sh(
        "meet",
        'touch "$1/$2"; while [ ! -e "$1/$3" ]; do sleep 0.02; done',
        *(f"{{{{inputs.parameters.{name}}}}}" for name in "dmo"),
        inputs=parameters("d", "m", "o"),
        timeout="300s",
    )
    place = str(engine.home.parent)
    a = task("a", "meet", arguments={"d": place, "m": "a", "o": "b"})
    b = task("b", "meet", arguments={"d": place, "m": "b", "o": "a"})
    assert run(engine, workflow(dag(a, b), meet))["status"]["phase"] == "Succeeded"


def test_generated_names_differ(engine: LocalEngine) -> None:
    submitted = workflow(OK)
    submitted["metadata"] = {"generateName": "job-"}
    names = {engine.submit(submitted) for _ in range(2)}
    assert len(names) == 2
    assert all(name.startswith("job-") and len(name) == 9 for name in names)
    for name in names:
        assert finish(engine, name)["status"]["phase"] == "Succeeded"
