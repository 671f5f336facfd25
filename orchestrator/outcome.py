"""What a whole workflow came to: its status in Argo's shape and the verdicts that its parts wrote, as one Verdict.

Pure. Precedence 6, 5, 4, 7, 3, 0: what hides the cause of something else comes first, and failed parts stand in order
of time, since the first to fail (exit code 1) is often the reason why the others were killed (137).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any

from orchestrator.compare import verdict as v
from orchestrator.compare.verdict import Part, Verdict

COMPLETED = frozenset({"Succeeded", "Failed", "Error"})
FAILED = frozenset({"Failed", "Error"})

TIE_BREAK = ("leg-c", "tie-break")
# Exit codes that a gate or a compare uses to say what it found; from any other program they are plain failures.
_SAID_BY_FOXRUN = frozenset({3, 4, 5, 6, 7})
# The trainer ended by itself: a failure, or usage (a parameter or an input that it cannot take).
_ITS_OWN = frozenset({1, 2})
# What Argo (and the local engine after it) puts in front of what the container itself said.
_ARGOS_PREFIX = re.compile(r"\A(?:main: )?Error \(exit code \d+\)(?:: |\Z)")
_DEADLINE_WORDS = ("deadline", "timed out", "timeout")
_STOPPED_WORDS = ("stopped with strategy", "terminated", "was stopped", "shutdown")


def is_completed(workflow: Mapping[str, Any]) -> bool:
    """Whether the workflow has ended; Pending, Running and an empty phase have not."""
    return _status(workflow).get("phase") in COMPLETED


def outcome(workflow: Mapping[str, Any], verdicts: Mapping[str, Any] | None = None) -> Verdict:
    """The verdict of a completed workflow.

    Args:
        workflow: the Workflow with its status.
        verdicts: what the parts ``gate`` and ``compare`` wrote as verdict.json, as far as they did.

    Raises:
        ValueError: the workflow is not completed.
    """
    if not is_completed(workflow):
        raise ValueError(f"workflow {_name(workflow)} is {_status(workflow).get('phase') or 'Pending'}, not completed")
    written = _read(verdicts or {})
    # What a tie-break could not say changes nothing about the pair.
    failed, compared = failed_parts(workflow), "compare" in written
    parts = [part for part in failed if not (compared and _role(part.name) in TIE_BREAK)]
    candidates = [*written.values()]
    candidates += [_of_part(part, workflow) for part in parts if not _explained(part, written)]
    if not candidates or (all(c.exit_code == 0 for c in candidates) and _proves_nothing(workflow, written)):
        candidates = [_without_verdict(workflow)]
    chosen = v.worst(candidates)
    trainers = [part for part in parts if not _judges(part.name)]
    if chosen.exit_code == 5 and trainers:
        chosen = _job_failed(chosen, trainers, workflow)
    fields: dict[str, Any] = {"notes": [*chosen.notes, *_notes(workflow)]}
    if chosen.verdict == v.DRIFT and chosen.tie_break is None:
        fields["notes"] += [f"no tie-break: {describe_part(p)}" for p in failed if p not in parts][:1]
    if chosen.exit_code in (5, 6):
        # A compare that only says what the legs came to is no cause.
        fields["parts"] = [p for p in parts if not _explained(p, written)] or chosen.parts or parts
    if chosen.exit_code == 0 and _kind(workflow) == "train" and chosen.subject == "gate":
        fields["message"] = f"the training succeeded, and the gate's twins agree: {chosen.message}"
    if chosen.exit_code == 0 and "golden" in written:
        fields["notes"].append(f"golden: {written['golden'].message}")
    return dataclasses.replace(chosen, **fields)


def _proves_nothing(workflow: Mapping[str, Any], written: Mapping[str, Verdict]) -> bool:
    """Whether parts that agree are not the whole story: a pair that was never compared, a workflow that ended badly.

    A failing exit handler alone makes Argo call a workflow Failed that has succeeded.
    """
    if _kind(workflow) in ("regression-pair", "ci-gate") and "compare" not in written:
        return True
    if _kind(workflow) == "seed-sweep" and "seeds" not in written:
        return True
    handler_failed = any(only_tells(node) and node.get("phase") in FAILED for node in _nodes(workflow).values())
    return _status(workflow).get("phase") != "Succeeded" and not handler_failed


def failed_parts(workflow: Mapping[str, Any]) -> list[Part]:
    """Every pod that failed and was not made good by a retry, in order of time; the exit handler is not among them."""
    nodes = _nodes(workflow)
    redeemed = {
        child
        for node in nodes.values()
        if node.get("type") == "Retry" and node.get("phase") not in FAILED
        for child in node.get("children") or []
    }
    failed = [
        (node, node_id)
        for node_id, node in nodes.items()
        if node.get("type") == "Pod"
        and node.get("phase") in FAILED
        and node_id not in redeemed
        and not only_tells(node)
    ]
    # A node that never finished (the engine died under it) comes last: it hides no other.
    failed.sort(key=lambda item: (item[0].get("finishedAt") or "9999", item[0].get("startedAt") or "9999", item[1]))
    names = [str(node.get("displayName") or node.get("name") or node_id) for node, node_id in failed]
    plain = [name.split("(")[0] for name in names]
    # Which attempt it was is of interest only when there were several.
    shown = [base if plain.count(base) == 1 else name for name, base in zip(names, plain, strict=True)]
    return [_part(node, name) for (node, _), name in zip(failed, shown, strict=True)]


def on_exit(node: Mapping[str, Any]) -> bool:
    """Whether a node belongs to the exit handler, whose failures never change the verdict."""
    return ".onExit" in str(node.get("name", "")) or node.get("templateName") == "exit-handler"


def only_tells(node: Mapping[str, Any]) -> bool:
    """Whether a node only tells others of the run: what happens to it says nothing of the run."""
    return on_exit(node) or node.get("templateName") == "pending"


def _part(node: Mapping[str, Any], name: str) -> Part:
    code = str((node.get("outputs") or {}).get("exitCode"))
    message = _ARGOS_PREFIX.sub("", str(node.get("message") or ""))
    return Part(
        name=name,
        phase=str(node["phase"]),
        exit_code=int(code) if code.isdigit() else None,
        reason="OOMKilled" if "OOMKilled" in str(node.get("message")) else "",
        message=message,
        finished=str(node.get("finishedAt") or ""),
    )


def describe_part(part: Part) -> str:
    """``leg-a: exit code 137 (killed): message``; out of memory only when the reason says OOMKilled."""
    if _was_stopped(part):
        return f"{part.name} was stopped: {part.message}"
    if part.reason == "OOMKilled":
        how = f"out of memory (OOMKilled, exit code {part.exit_code})"
    elif part.exit_code == 137:
        how = "exit code 137 (killed by SIGKILL; nothing says that memory ran out)"
    elif part.exit_code is not None:
        how = f"exit code {part.exit_code}"
    else:
        how = part.phase
    return f"{part.name}: {how}" + (f": {part.message}" if part.message else "")


def _was_stopped(part: Part) -> bool:
    return any(word in part.message.lower() for word in _STOPPED_WORDS)


def _role(name: str) -> str:
    return name.split("(")[0]


def _judges(name: str) -> bool:
    """Whether a part of this name says verdicts by its exit code, and is no trainer."""
    return _role(name) in ("gate", "compare", "seeds", "golden") or _role(name).startswith("compare-")


def _explained(part: Part, written: Mapping[str, Verdict]) -> bool:
    """Whether the part's own verdict.json says already what its exit code says."""
    if "seeds" in written and _role(part.name).startswith("compare-"):
        return True  # a row of the table
    verdict = written.get(_role(part.name))
    return verdict is not None and part.exit_code == verdict.exit_code


def _of_part(part: Part, workflow: Mapping[str, Any]) -> Verdict:
    name = _name(workflow)
    text = part.message.lower()
    gate_or_compare = _judges(part.name)
    if gate_or_compare and part.exit_code in _SAID_BY_FOXRUN:
        word = next(word for word, code in v.EXIT_CODES.items() if code == part.exit_code)
        return v.make(
            word,
            part.message or f"{part.name} ended with exit code {part.exit_code}",
            next=f"`foxrun logs {name} --node {part.name}`",
            subject="gate" if _role(part.name) == "gate" else "pair",
        )
    if _was_stopped(part):
        return v.make(
            v.JOB_FAILED, f"workflow {name}: {describe_part(part)}", next=f"`foxrun retry {name}`", parts=[part]
        )
    deadline = any(word in text for word in _DEADLINE_WORDS)
    if deadline or part.phase == "Error" or (gate_or_compare and part.exit_code is not None):
        return v.make(
            v.INFRASTRUCTURE,
            f"workflow {name}: {describe_part(part)}",
            next=f"`foxrun logs {name} --node {part.name}`, then `foxrun retry {name}`"
            + (" (or submit with a longer --timeout)" if deadline else ""),
            parts=[part],
        )
    return v.make(v.JOB_FAILED, f"workflow {name}: {describe_part(part)}", next=f"`foxrun logs {name}`", parts=[part])


def _job_failed(chosen: Verdict, parts: list[Part], workflow: Mapping[str, Any]) -> Verdict:
    """All failed parts in order of time: the first is the likely cause, and must not be hidden by the last."""
    name = _name(workflow)
    first, rest = parts[0], parts[1:]
    if all(_was_stopped(part) for part in parts):
        ended = ", ".join(part.name for part in parts)
        return dataclasses.replace(
            chosen, message=f"workflow {name} was stopped: {ended} had not ended", next=f"`foxrun retry {name}`"
        )
    message = f"workflow {name}: first {describe_part(first)}" if rest else f"workflow {name}: {describe_part(first)}"
    message += "".join(f"; then {describe_part(part)}" for part in rest)
    follow_up = f"`foxrun logs {name} --node {first.name}`, then `foxrun retry {name}`"
    if first.exit_code in _ITS_OWN:  # what it did once, on the same input, it does again
        follow_up = f"`foxrun logs {name} --node {first.name}`; mend what it names, and submit again"
    if first.reason == "OOMKilled":
        follow_up = f"give it more memory or fewer environments (-p envs=N), then submit again; {follow_up}"
    return dataclasses.replace(chosen, message=message, next=follow_up)


def _without_verdict(workflow: Mapping[str, Any]) -> Verdict:
    name, status = _name(workflow), _status(workflow)
    message = str(status.get("message") or "no message")
    if status.get("phase") == "Succeeded" and _kind(workflow) == "train":
        # Nothing was compared, so nothing is called identical.
        message = f"workflow {name} trained; no gate ran, nothing was compared"
        return v.make(v.SUCCEEDED, message, subject="train")
    if status.get("phase") == "Succeeded":
        return v.make(
            v.JOB_FAILED,
            f"no result: workflow {name} succeeded, and its compare step wrote no verdict.json",
            next=f"`foxrun logs {name} --node compare`",
        )
    if any(word in message.lower() for word in _STOPPED_WORDS):
        return v.make(v.JOB_FAILED, f"workflow {name} was stopped: {message}", next=f"`foxrun retry {name}`")
    return v.make(
        v.INFRASTRUCTURE, f"workflow {name} is {status.get('phase')}: {message}", next=f"`foxrun retry {name}`"
    )


def _read(verdicts: Mapping[str, Any]) -> dict[str, Verdict]:
    read: dict[str, Verdict] = {}
    for node in sorted(verdicts):
        value = verdicts[node]
        try:
            read[node] = value if isinstance(value, Verdict) else v.from_dict(value)
        except ValueError as error:
            read[node] = v.make(v.INCOMPLETE, f"verdict.json of {node} cannot be read: {error}", next="run it again")
    # The comparison of three says all that the comparison of two said; one that failed says nothing of the pair.
    three = read.pop("tie-break", None)
    if three is not None and three.verdict == v.DRIFT:
        read["compare"] = three
    # The gate opens the way to the legs; once these were compared, its own agreement is no news.
    if {"compare", "seeds"} & read.keys() and "gate" in read and read["gate"].exit_code == 0:
        del read["gate"]
    return read


def _notes(workflow: Mapping[str, Any]) -> list[str]:
    failed = [node for node in _nodes(workflow).values() if on_exit(node) and node.get("phase") in FAILED]
    return [f"the alert failed, which changes no verdict: {n.get('message') or n.get('phase')}" for n in failed[:1]]


def _name(workflow: Mapping[str, Any]) -> str:
    return str((workflow.get("metadata") or {}).get("name", ""))


def _kind(workflow: Mapping[str, Any]) -> str:
    return str(((workflow.get("metadata") or {}).get("labels") or {}).get("foxrun.dev/kind", ""))


def _status(workflow: Mapping[str, Any]) -> Mapping[str, Any]:
    return workflow.get("status") or {}


def _nodes(workflow: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    return _status(workflow).get("nodes") or {}


def summaries(parts: Iterable[Part]) -> list[str]:
    """One line a failed part."""
    return [describe_part(part) for part in parts]
