"""A drifted pair, or two runs, as a command that can be run twice here: all that it was run with is known."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.compare.verdict import DRIFT, GATE_FAILED, IDENTICAL, Verdict
from orchestrator.errors import UsageError
from orchestrator.localize.pair import OUT, Request
from orchestrator.localize.result import Localization
from orchestrator.localize.session import Listener, Options
from orchestrator.settings import Settings

if TYPE_CHECKING:
    from orchestrator.engines.base import Engine
    from orchestrator.places import Places

_OURS = ("python", "-m", "trainer")


def localize_pair(
    subject: Sequence[str],
    *,
    settings: Settings,
    options: Options,
    environ: Mapping[str, str],
    out: Path | None,
    engine: Callable[[], Engine],
    places: Places | None,
    listener: Listener,
) -> Localization:
    """Run the trainer of a pair again, traced. Raises UsageError when what it was run with cannot be found out."""
    if len(subject) == 2:
        from orchestrator import comparison

        verdict = comparison.compare(subject[0], subject[1], places=places)
        command = command_of_manifest(verdict)
        return _run(command, verdict, options, environ, settings, out, listener, " ".join(subject))
    if len(subject) != 1:
        raise UsageError(
            f"{shlex.join(subject)}: one pair's name, or two runs, or -- and a command",
            remedy=f"foxrun localize -- {shlex.join(subject)}",
        )
    name, workflow, verdict = _workflow(engine(), subject[0])
    command = command_of_workflow(engine(), workflow)
    return _run(command, verdict, options, environ, settings, out, listener, name)


def _run(
    command: tuple[tuple[str, ...], dict[str, str]], verdict: Verdict, options: Options, environ: Mapping[str, str],
    settings: Settings, out: Path | None, listener: Listener, title: str,
) -> Localization:  # fmt: skip
    import dataclasses

    from orchestrator.localize.request import run

    words, extra = command
    directory = _code(extra.get("FOXRUN_SHA", ""), settings)
    if verdict.verdict == IDENTICAL:
        listener.stage(f"{title} is identical; its trainer is run again all the same")
    first = verdict.first_divergence
    if options.stop_after is None and first is not None and isinstance(first.step, int):
        # The pair's own rows say where it parted; a little more, since here it may part elsewhere.
        options = dataclasses.replace(options, stop_after=first.step + 20)
    request = Request(command=words, directory=directory, environ={**environ, **extra}, in_place=True, title=title)
    result = run(request, options, listener, out)
    notes = list(result.notes)
    if first is not None:
        notes.insert(
            0, f"the pair itself parted at step {first.step} in {first.leaf}; this was found by running it again here"
        )
        if result.found and (result.step, result.leaf) != (first.step, first.leaf):
            notes.append(
                "the place is not the pair's: the first leaf to part may alternate, or this machine is another one"
            )
    return dataclasses.replace(result, verdict=verdict, notes=notes)


def _workflow(engine: Engine, text: str) -> tuple[str, Mapping[str, Any], Verdict]:
    from orchestrator.following import judge
    from orchestrator.lookup import full_name
    from orchestrator.outcome import is_completed

    name = full_name(engine, text)
    workflow = engine.get(name)
    if not is_completed(workflow):
        raise UsageError(f"workflow {name} is not completed", remedy=f"foxrun watch {name}")
    verdict = judge(engine, workflow)
    if verdict.verdict not in (DRIFT, GATE_FAILED, IDENTICAL) and verdict.exit_code:
        raise UsageError(
            f"workflow {name} is {verdict.verdict}, not parted: {verdict.message}", remedy=f"foxrun logs {name}"
        )
    return name, workflow, verdict


def command_of_workflow(engine: Engine, workflow: Mapping[str, Any]) -> tuple[tuple[str, ...], dict[str, str]]:
    """The leg's own command with its arguments, and the variables that say which code it is."""
    from orchestrator.runnable import input_of

    values = {
        str(item.get("name")): str(item.get("value"))
        for item in (workflow["spec"].get("arguments") or {}).get("parameters") or []
    }
    trainer: tuple[str, ...] = _OURS
    for template in workflow["spec"].get("templates") or []:
        container = template.get("container") or {}
        if template.get("name") == "leg" and "--out" in (container.get("args") or []):
            args = [str(word).replace("$$", "$") for word in container["args"]]
            trainer = (*[str(word) for word in container.get("command") or []], *args[: args.index("--out")])
    data = input_of(engine, workflow)
    artifacts = (workflow["spec"].get("arguments") or {}).get("artifacts") or []
    if data is None and artifacts:
        raise UsageError(
            "the pair's input file does not lie on this machine",
            remedy=f"fetch it and run: foxrun localize -- {shlex.join(trainer)} --out '{OUT}' --data FILE ...",
        )
    words = trainer_command(
        trainer, seed=values.get("seed", "42"), mode=values.get("mode", "1"), steps=values.get("steps", "100"),
        eval_steps=values.get("eval-steps", values.get("eval_steps", "0")),
        parameters=values.get("parameters", "{}"), data=data,
    )  # fmt: skip
    return words, {"FOXRUN_SHA": values["sha"]} if values.get("sha") else {}


def trainer_command(
    trainer: Sequence[str], *, seed: str, mode: str, steps: str, eval_steps: str, parameters: str, data: Path | None
) -> tuple[str, ...]:
    """What a trainer is called with (docs/run-contract.md)."""
    words = [*trainer, "--out", OUT, "--seed", seed, "--mode", mode, "--steps", steps, "--eval-steps", eval_steps]
    return (*words, "--parameters", parameters, *(["--data", str(data)] if data is not None else []))


def command_of_manifest(verdict: Verdict) -> tuple[tuple[str, ...], dict[str, str]]:
    """The command that a run's manifest holds, writing elsewhere. Raises UsageError where there is none."""
    manifest = next((run.manifest for run in verdict.runs if run.manifest.get("command")), None)
    if manifest is None:
        raise UsageError(
            "neither run says what made it: no manifest with a command",
            remedy="foxrun localize -- COMMAND, with the command that made them",
        )
    words = [str(word) for word in manifest["command"]]
    if "--out" in words[:-1]:
        words[words.index("--out") + 1] = OUT
    if words and words[0].endswith(".py"):
        words = ["python", *words]
    commit = str((manifest.get("code") or {}).get("commit_asked") or "")
    return tuple(words), {"FOXRUN_SHA": commit} if len(commit) == 40 else {}


def _code(sha: str, settings: Settings) -> Path:
    """A clean worktree of the commit that ran, where this repository has it; else the files here."""
    from foxrun import git
    from orchestrator.settings import home_directory

    if len(sha) == 40:
        try:
            top = git.top_level(Path.cwd())
            return git.add_worktree(top, git.resolve(top, sha), home_directory(settings) / "worktrees" / sha)
        except git.GitError:
            pass
    return Path(os.getcwd())  # noqa: PTH109
