"""Whether a side of a comparison is fit: did its job end well, is the run whole, did it give a result?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foxrun.problems import ContractError, Problem
from foxrun.reader import Run
from foxrun.schema import COMPLETED, MANIFEST, SUMMARY
from orchestrator.compare import verdict as v

SUCCEEDED = "Succeeded"
# Phases that say: the leg never started, so something before it failed.
NOT_STARTED = ("Omitted", "Skipped", "Pending")
ERROR = "Error"  # Argo's word for trouble outside the program: a lost node, a deleted pod, a failed upload


@dataclass(frozen=True, kw_only=True)
class Side:
    """One side: the run, or why there is none. `status` is the phase of the leg's node, empty outside a workflow.

    `remote`: its bytes come over a network, so that its manifest's hashes are taken for them where they can be.
    """

    letter: str
    label: str
    run: Run | None = None
    absent: ContractError | None = None
    status: str = ""
    remote: bool = False

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest, empty where there is none."""
        return (self.run.manifest if self.run is not None else None) or {}

    @property
    def exit_reason(self) -> str:
        """Why the run ended, as its manifest says; empty where nothing says so."""
        return str(self.manifest.get("exit_reason") or "")

    @property
    def finished(self) -> bool:
        """Whether the run's own manifest says that it did all its steps."""
        return self.exit_reason == COMPLETED

    @property
    def leg(self) -> str:
        """The leg's name in a workflow: a or b, unless the manifest knows better."""
        variables = _mapping(self.manifest.get("variables"))
        return str(self.manifest.get("leg") or variables.get("FOXRUN_LEG") or self.letter.lower())


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def summary_of(side: Side) -> v.RunSummary:
    """What the verdict says about a side."""
    manifest, code = side.manifest, _mapping(side.manifest.get("code"))
    seed, mode, rows = manifest.get("seed"), manifest.get("mode"), manifest.get("rows")
    return v.RunSummary(
        label=side.label,
        run_id=side.run.run_id if side.run is not None else "",
        commit=str(code.get("commit_asked") or code.get("commit_run") or ""),
        tree=str(code.get("tree_run") or ""),
        seed=seed if isinstance(seed, int) else None,
        mode=mode if isinstance(mode, int) else None,
        leg=side.leg,
        rows=rows if isinstance(rows, int) else (side.run.row_count if side.run is not None else 0),
        exit_reason=side.exit_reason,
        manifest=dict(manifest),
    )


def failed_job(side: Side) -> tuple[str, v.Part] | None:
    """(verdict, part) when the side's job failed, was killed, or gave no result; None when it ended well.

    Without a status (a comparison by hand) only the manifest's exit reason can say so.
    """
    name = f"leg-{side.leg}" if side.status else side.label
    times = _mapping(side.manifest.get("times"))
    finished = str(times.get("finished") or "")
    reason = side.exit_reason.removeprefix("failed: ")

    def part(message: str, phase: str = "Failed") -> v.Part:
        oom = "OOMKilled" if "OOMKilled" in reason else ""
        return v.Part(name=name, phase=side.status or phase, reason=oom, message=message, finished=finished)

    if side.status == ERROR:
        return v.INFRASTRUCTURE, part(reason if reason != COMPLETED else "the node, the pod or the storage failed")
    if side.status in NOT_STARTED:
        return v.JOB_FAILED, part("it never started, since something before it failed")
    if side.status and side.status != SUCCEEDED:
        said = reason if reason not in ("", COMPLETED) else "it left no word why; see its log"
        return v.JOB_FAILED, part(said)
    if reason not in ("", COMPLETED):
        return v.JOB_FAILED, part(reason)
    if side.status == SUCCEEDED:
        lacking = without_result(side)
        if lacking:
            return v.JOB_FAILED, part(f"exit 0 without a result: {lacking}")
    return None


def without_result(side: Side) -> str:
    """What is lacking in a leg that says it succeeded; empty when it gave a result."""
    if side.run is None:
        return side.absent.what if side.absent is not None else "no run directory"
    if not side.manifest and MANIFEST in side.run.files:
        return f"{MANIFEST} cannot be read"
    expected = side.run.stored_name(SUMMARY) is not None or owes_summary(side.manifest)
    if expected and not side.run.summary:
        there = side.run.stored_name(SUMMARY)
        return f"{there} is empty or unreadable" if there else f"no {SUMMARY}"
    if not side.run.summary and not _size(side.run, "diag.jsonl"):
        return "no row and no summary"
    return ""


def owes_summary(manifest: Mapping[str, Any]) -> bool:
    """Whether the config asks for evaluation steps, so that a summary is owed."""
    asked = _mapping(manifest.get("config")).get("eval_steps")
    return isinstance(asked, int) and asked > 0


def _size(run: Run, name: str) -> int:
    stored = run.stored_name(name)
    return run.files.get(stored, 0) if stored else 0


def unfit(side: Side) -> Problem | None:
    """The first reason why a run cannot be compared: absent, cut, unreadable, not as its manifest says, or empty."""
    if side.run is None:
        error = side.absent or ContractError("there is no run")
        return error.problem(side.label)
    side.run.load()
    for problem in side.run.problems:
        if problem.fatal and not _no_manifest(problem, side.run):
            return problem
    if without_values(side.run):
        what = "holds no row and no summary: there is nothing to compare"
        return Problem(side.label, None, what, "see the trainer's log, and run it again")
    if owes_summary(side.manifest) and not side.run.summary:
        return Problem(SUMMARY, None, "missing or empty, though the run was to evaluate", "see the trainer's log")
    return None


def without_values(run: Run) -> bool:
    """Whether a run holds neither a row nor a summary with something in it."""
    return not run.summary and not _size(run, "diag.jsonl")


def _no_manifest(problem: Problem, run: Run) -> bool:
    """A missing manifest proves nothing against the rest: other trainers write none."""
    return problem.file == MANIFEST and MANIFEST not in run.files
