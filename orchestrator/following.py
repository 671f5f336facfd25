"""Follow a workflow to its end, show what it does, and say what it came to.

Following never owns the workflow: an interrupt or a deadline ends the watching alone.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.compare import verdict as v
from orchestrator.compare.verdict import WORKFLOW, RunSummary, Verdict
from orchestrator.errors import DeadlinePassed, FoxrunError
from orchestrator.outcome import FAILED, is_completed, on_exit, outcome
from orchestrator.printable import printable
from orchestrator.runnable import renamed, runnable

if TYPE_CHECKING:
    from orchestrator.engines.base import Engine

VERDICT_LABEL = "foxrun.dev/verdict"
# The parts that write a verdict.json, the one that says more first.
JUDGES = ("tie-break", "seeds", "compare", "golden", "gate")


@dataclass(frozen=True, kw_only=True)
class NodeView:
    """One part of a workflow as a person sees it: ``done`` of ``of`` steps, 0 of 0 where it counts none."""

    id: str
    name: str
    phase: str
    done: int
    of: int
    message: str


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A completed workflow: what it came to and where its report lies."""

    workflow: dict[str, Any]
    verdict: Verdict
    report: Path | None  # None where it could not be written, as a note of the verdict says


def views(workflow: Mapping[str, Any]) -> list[NodeView]:
    """The pods of a workflow in the order in which they were started, the exit handler last."""
    nodes = (workflow.get("status") or {}).get("nodes") or {}
    pods = [(node_id, node) for node_id, node in nodes.items() if node.get("type") == "Pod"]
    pods.sort(
        key=lambda item: (on_exit(item[1]), str(item[1].get("startedAt") or "9999"), str(item[1].get("displayName")))
    )
    bases = [str(node.get("displayName")).split("(")[0] for _, node in pods]
    # Which attempt it is is of interest only when there are several.
    return [
        _view(node_id, node, base if bases.count(base) == 1 else str(node.get("displayName")))
        for (node_id, node), base in zip(pods, bases, strict=True)
    ]


def _view(node_id: str, node: Mapping[str, Any], name: str) -> NodeView:
    done, _, of = str(node.get("progress") or "").partition("/")
    counted = done.isdigit() and of.isdigit() and int(of) > 1  # 1 is the node itself, which counts no steps
    return NodeView(
        id=node_id,
        name="alert" if on_exit(node) else name,
        phase=str(node.get("phase") or "Pending"),
        done=int(done) if counted else 0,
        of=int(of) if counted else 0,
        message=printable(str(node.get("message") or "")),
    )


def follow(
    engine: Engine,
    name: str,
    *,
    deadline_s: float,
    reports: Path,
    show: Callable[[Mapping[str, Any]], None] = lambda workflow: None,
) -> Ended:
    """Wait for the end; ``show`` hears every change, ``reports`` receives ``<name>.html``.

    Raises:
        DeadlinePassed: it has not ended in time; the workflow goes on.
    """
    workflow: dict[str, Any] = {}
    try:
        for workflow in engine.watch(name, deadline_s=deadline_s):
            show(workflow)
    except DeadlinePassed:
        phase = (workflow.get("status") or {}).get("phase") or "Pending"
        raise DeadlinePassed(
            f"workflow {name} is {phase} after {deadline_s:g} s of following; it goes on",
            remedy=f"foxrun watch {name}, with a longer --deadline; or foxrun stop {name}",
        ) from None
    return ended(engine, name, reports=reports)


def ended(engine: Engine, name: str, *, reports: Path) -> Ended:
    """What a completed workflow came to; its verdict is set as a label, where that is possible."""
    workflow = engine.get(name)
    verdict = judge(engine, workflow)
    # Error is no last word: such a workflow goes on when it is retried or submitted again.
    if workflow["status"]["phase"] != "Error" and _label(workflow) != verdict.verdict:
        with contextlib.suppress(FoxrunError):
            engine.set_labels(name, {VERDICT_LABEL: verdict.verdict})
    try:
        report = write_report(verdict, reports / f"{name}.html")
    except OSError as error:
        # A full disk here changes nothing of what was found there.
        later = f"{reports}: the report cannot be written: {error.strerror}; `foxrun report {name}` writes it later"
        return Ended(
            workflow=workflow, verdict=dataclasses.replace(verdict, notes=[*verdict.notes, later]), report=None
        )
    return Ended(workflow=workflow, verdict=verdict, report=report)


def judge(engine: Engine, workflow: Mapping[str, Any]) -> Verdict:
    """The verdict of a completed workflow, from its status and from what its parts wrote."""
    verdict = outcome(workflow, written_verdicts(engine, workflow))
    texts = {field: getattr(verdict, field) for field in ("message", "next")}
    runs = []
    for number, run in enumerate(verdict.runs):
        place = _place(engine, workflow, run, twin=f"twin{number + 1}" if verdict.subject == "gate" else "")
        runs.append(dataclasses.replace(run, label=place))
        texts = {field: renamed(text, run.label, place) for field, text in texts.items()}
    named = str(workflow["metadata"]["name"])
    texts["next"] = texts["next"].replace(f"`foxrun logs {WORKFLOW} ", f"`foxrun logs {named} ")
    texts["next"] = runnable(texts["next"], engine, workflow)
    broken = verdict.tie_break
    if broken is not None:
        third = dataclasses.replace(broken.run, label=_place(engine, workflow, broken.run, twin=""))
        broken = dataclasses.replace(broken, run=third)
    return dataclasses.replace(verdict, runs=runs, tie_break=broken, workflow=named, **texts)


def _place(engine: Engine, workflow: Mapping[str, Any], run: RunSummary, *, twin: str) -> str:
    """Where a person finds a run and can compare it again: compare and gate saw paths inside their pods."""
    artifact = "gate" if twin else "run"
    roles = ["gate"] if twin else [f"leg-{run.leg}", f"leg-{run.leg}-{run.seed}"]  # of a pair, of a sweep
    for node in (node for role in roles for node in _ended_nodes(workflow, role)):
        with contextlib.suppress(FoxrunError):
            address = engine.address(str(workflow["metadata"]["name"]), node, artifact)
            return f"{address}/{twin}" if twin else address
    return run.label


def written_verdicts(engine: Engine, workflow: Mapping[str, Any]) -> dict[str, Any]:
    """verdict.json of gate and compare, as far as they wrote one: objects, or the text of what cannot be read."""
    from foxrun.jsonio import loads
    from foxrun.problems import ContractError

    found: dict[str, Any] = {}
    for role in JUDGES:
        if (file := _artifact(engine, workflow, role, "verdict")) is None:
            if said := said_verdict(workflow, role):
                found[role] = said
            continue
        try:
            value = loads(file.read_bytes(), name=str(file))
        except (OSError, ContractError) as error:
            found[role] = str(error)
            continue
        # Both are stored under one key of the workflow, where the exit handler finds it: a compare that was killed
        # before it wrote has left the gate's verdict there, which says nothing about the pair.
        is_of_gate = isinstance(value, dict) and value.get("subject") == "gate"
        if is_of_gate == (role == "gate"):
            found[role] = value
    return found


def write_report(verdict: Verdict, file: Path) -> Path:
    """The report of the final verdict: it knows of parts that failed, of which no part's own report knows."""
    from foxrun.files import write_atomic
    from orchestrator.report import render

    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(file, render(verdict))
    return file


def said_verdict(workflow: Mapping[str, Any], role: str) -> Verdict | None:
    """What gate or compare said in its output parameters: less than its verdict.json, and always with the workflow."""
    nodes = (workflow.get("status") or {}).get("nodes") or {}
    for node in _ended_nodes(workflow, role):
        outputs = (nodes[node].get("outputs") or {}).get("parameters") or []
        said = {str(item.get("name")): str(item.get("value", "")) for item in outputs}
        if (word := said.get("verdict", "")) not in v.EXIT_CODES:
            continue
        where = f"at step {said.get('step')} in {said.get('leaf')}" if v.EXIT_CODES[word] in (3, 4) else ""
        return v.make(
            word,
            " ".join(text for text in (f"{role} says {word.replace('_', ' ')}", where) if text),
            next=f"`foxrun logs {workflow['metadata']['name']} --node {role}`",
            subject="gate" if role == "gate" else "pair",
        )
    return None


def _ended_nodes(workflow: Mapping[str, Any], role: str) -> list[str]:
    """The pods of a part that have ended, the last attempt first."""
    ended = [view for view in views(workflow) if view.phase == "Succeeded" or view.phase in FAILED]
    return [view.id for view in reversed(ended) if view.name.split("(")[0] == role]


def _artifact(engine: Engine, workflow: Mapping[str, Any], role: str, artifact: str) -> Path | None:
    for node in _ended_nodes(workflow, role):
        with contextlib.suppress(FoxrunError):
            file = engine.artifact(str(workflow["metadata"]["name"]), node, artifact)
            if file.exists():
                return file
    return None


def known_verdict(engine: Engine, workflow: Mapping[str, Any]) -> str:
    """The verdict as one word for a list: ``-`` while it runs."""
    if not is_completed(workflow):
        return "-"
    final = workflow["status"]["phase"] != "Error"
    if final and _label(workflow):
        return _label(workflow)
    if engine.name != "local":
        # Reading verdict.json of each of hundreds would take minutes; the outputs say the same word.
        said = {role: verdict for role in JUDGES if (verdict := said_verdict(workflow, role))}
        return outcome(workflow, said).verdict
    return judge(engine, workflow).verdict


def _label(workflow: Mapping[str, Any]) -> str:
    return str((workflow["metadata"].get("labels") or {}).get(VERDICT_LABEL) or "")


def retry(engine: Engine, name: str) -> str:
    """Run again what did not succeed; the verdict of before does not hold any more. Returns the name."""
    if _label(engine.get(name)):
        with contextlib.suppress(FoxrunError):  # argo-server has no way to; the end of the retry sets it anew
            engine.set_labels(name, {VERDICT_LABEL: ""})
    return engine.retry(name)
