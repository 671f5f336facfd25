"""How a run was made, from its workflow or its manifest, as a command that writes elsewhere and runs here."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.compare.verdict import GATE_FAILED, Verdict
from orchestrator.errors import IncompleteRun, UsageError
from orchestrator.localize.pair import CHECKPOINT, OUT
from workflows.parameters import WORKTREE

if TYPE_CHECKING:
    from orchestrator.engines.base import Engine

OURS = ("python", "-m", "trainer")
_HERE = "foxrun localize -- COMMAND, with the command that made them"
# From here on, a run up to the step is long enough for a checkpoint to save time.
LATE_STEP = 8


@dataclass(frozen=True, kw_only=True)
class Known:
    """A command with {out} in it. ``commit`` is empty where the files here ran; ``code``: what is to be said of it."""

    words: tuple[str, ...]
    commit: str = ""
    legs: tuple[str, str] | None = None


def of_workflow(
    engine: Engine, workflow: Mapping[str, Any], verdict: Verdict, fetch: Callable[[str], Path | None]
) -> Known:
    """The leg's own command with its arguments, and which code it is.

    Args:
        fetch: gives the input of a key of the store as a file here.

    Raises:
        UsageError: both legs ran different code; IncompleteRun: the input cannot be had.
    """
    values = {
        str(item.get("name")): str(item.get("value"))
        for item in (workflow["spec"].get("arguments") or {}).get("parameters") or []
    }
    if values.get("against"):
        raise UsageError(
            f"the legs ran different code, {values.get('sha', '')[:12]} and {values['against'][:12]}: operations of "
            "different lines cannot be held side by side",
            remedy="find the commit: foxrun golden bisect; or see the leaves: foxrun compare A B --report report.html",
        )
    trainer: tuple[str, ...] = OURS
    for template in workflow["spec"].get("templates") or []:
        container = template.get("container") or {}
        if template.get("name") == "leg" and "--out" in (container.get("args") or []):
            args = [str(word).replace("$$", "$") for word in container["args"]]
            trainer = (*[str(word) for word in container.get("command") or []], *args[: args.index("--out")])
    gate = verdict.verdict == GATE_FAILED
    ran = next((str(run.seed) for run in verdict.runs if run.seed is not None), "42")  # of a sweep, the one that parted
    words = trainer_command(
        trainer, seed=values.get("seed", ran), mode=values.get("mode", "1"),
        steps=values.get("gate-steps" if gate else "steps", "100"),
        eval_steps="0" if gate else values.get("eval-steps", "0"),
        parameters=values.get("parameters", "{}"), data=_input(engine, workflow, fetch),
    )  # fmt: skip
    worktree = f'"{WORKTREE}"' in json.dumps(workflow["spec"])
    return Known(words=words, commit="" if worktree else values.get("sha", ""), legs=None if gate else ("a", "b"))


def _input(engine: Engine, workflow: Mapping[str, Any], fetch: Callable[[str], Path | None]) -> Path | None:
    from orchestrator.runnable import input_of

    here = input_of(engine, workflow)
    if here is not None:
        return here
    artifacts = (workflow["spec"].get("arguments") or {}).get("artifacts") or []
    key = next((str(item["s3"]["key"]) for item in artifacts if item.get("name") == "data" and "s3" in item), "")
    if not key:
        return None
    found = fetch(key)
    if found is None:
        raise IncompleteRun(
            f"the pair's input {key} does not lie on this machine, and no bucket is set that holds it",
            remedy="set s3_bucket and s3_endpoint (foxrun settings), or fetch it and run: foxrun localize -- COMMAND",
        )
    return found


def trainer_command(
    trainer: Sequence[str], *, seed: str, mode: str, steps: str, eval_steps: str, parameters: str, data: Path | None
) -> tuple[str, ...]:
    """What a trainer is called with (docs/run-contract.md)."""
    words = [*trainer, "--out", OUT, "--seed", seed, "--mode", mode, "--steps", steps, "--eval-steps", eval_steps]
    return (*words, "--parameters", parameters, *(["--data", str(data)] if data is not None else []))


def of_manifest(verdict: Verdict, fetch: Callable[[str], Path | None]) -> Known:
    """The command that a run's manifest holds, writing elsewhere. Raises IncompleteRun where it does not suffice."""
    manifest = next((run.manifest for run in verdict.runs if run.manifest.get("command")), None)
    names = " and ".join(run.label for run in verdict.runs) or "the runs"
    if manifest is None:
        raise IncompleteRun(f"neither of {names} says what made it: no run_manifest.json with a command", remedy=_HERE)
    words = [str(word) for word in manifest["command"]]
    if "--out" not in words[:-1]:
        raise IncompleteRun(
            f"the command of {names} names no directory for its output (--out): {shlex.join(words)[:200]}", remedy=_HERE
        )
    words[words.index("--out") + 1] = OUT
    if words[0].endswith(".py"):
        words = ["python", *words]
    if "--data" in words[:-1]:
        at = words.index("--data") + 1
        words[at] = str(_input_of_manifest(Path(words[at]), manifest, names, fetch))
    commit = str((manifest.get("code") or {}).get("commit_asked") or "")
    first, second = (run.leg for run in verdict.runs[:2])
    return Known(
        words=tuple(words), commit=commit if len(commit) == 40 else "",
        legs=(first, second) if first and second else None,
    )  # fmt: skip


def _input_of_manifest(
    named: Path, manifest: Mapping[str, Any], names: str, fetch: Callable[[str], Path | None]
) -> Path:
    """Where the input lies here: at its own path, else by its sha256 in a store."""
    if named.is_file():
        return named
    for item in manifest.get("inputs") or []:
        if isinstance(item, dict) and item.get("sha256"):
            name = Path(str(item.get("name") or item.get("path") or named)).name
            found = fetch(f"inputs/{item['sha256']}/{name}")
            if found is not None:
                return found
    raise IncompleteRun(
        f"the input {named} of {names} does not lie on this machine, and no store that is set holds it", remedy=_HERE
    )


def with_checkpoint(words: Sequence[str], step: int) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Our trainer's command that writes its exact state before ``step``, and the one that goes on from it.

    None for other trainers, and where the command asks for checkpoints itself.
    """
    if tuple(words[:3]) != OURS or "--parameters" not in words[:-1]:
        return None
    at = words.index("--parameters") + 1
    try:
        given = json.loads(words[at])
    except ValueError:
        return None
    if not isinstance(given, dict) or given.keys() & {"checkpoint_at", "resume"}:
        return None
    made = [list(words), list(words)]
    made[0][at] = json.dumps({**given, "checkpoint_at": step}, sort_keys=True)
    made[1][at] = json.dumps({**given, "resume": CHECKPOINT}, sort_keys=True)
    return tuple(made[0]), tuple(made[1])
