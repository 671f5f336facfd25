"""`golden bisect`: which commit changed the bits. Pairs of the local engine, two commits at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foxrun import git
from orchestrator import comparison, submission
from orchestrator.compare import verdict as v
from orchestrator.compare.policy import Options
from orchestrator.compare.verdict import Verdict
from orchestrator.errors import FoxrunError, JobFailed, UsageError, usage_of
from orchestrator.goldens.search import CHANGED, SAME, SKIPPED, Search

if TYPE_CHECKING:
    from orchestrator.engines.base import Engine
    from orchestrator.settings import Settings

# Another commit may know other parameters or write other leaves: bits are asked for, not comparability.
_FORCED = Options(force=True)


@dataclass(frozen=True, kw_only=True)
class Tried:
    """One commit that was run: ``same``, ``changed`` or ``skipped``, and why it was skipped."""

    commit: str
    subject: str
    result: str
    why: str = ""
    run: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Bisected:
    """The commits one of which changed the bits (one, unless skipped ones lie between), with how they part."""

    good: str
    bad: str
    suspects: tuple[str, ...]
    subjects: tuple[str, ...]
    tried: tuple[Tried, ...]
    pairs: int
    verdict: Verdict


class Bisection:
    """Runs commits and remembers what became of them."""

    def __init__(
        self, request: submission.Request, settings: Settings, engine: Engine, *, directory: Path,
        say: Callable[[str], None], follow: Callable[[str], Mapping[str, Any]],
    ) -> None:  # fmt: skip
        self._request, self._settings, self._engine = request, settings, engine
        self._directory, self._say, self._follow = directory, say, follow
        self._top = git.top_level(directory)
        self.pairs = 0
        self.tried: dict[str, Tried] = {}

    def run(self, good: str, bad: str) -> Bisected:
        """Find the commit between ``good`` and ``bad``, along first parents.

        Raises:
            UsageError: bad does not come after good, or their bits are equal.
            JobFailed: one of the two ends cannot be run.
        """
        try:
            first, last = git.resolve(self._top, good), git.resolve(self._top, bad)
            commits = git.commits_between(self._top, first, last)
        except git.GitError as error:
            raise usage_of(error) from None
        if not commits:
            raise UsageError(
                f"{last[:12]} does not come after {first[:12]}", remedy="give the good commit first, then the bad one"
            )
        self._pair(first, last)
        for name in (first, last):
            if self.tried[name].result == SKIPPED:
                raise JobFailed(
                    f"commit {name[:12]} cannot be run: {self.tried[name].why}", remedy="give one that can be run"
                )
        search = Search(len(commits))
        if self._compare(first, last).exit_code == 0:
            return self._equal(first, last)
        self.tried[last] = dataclasses.replace(self.tried[last], result=CHANGED)
        while wanted := search.next():
            names = [commits[i] for i in wanted]
            self._say(
                f"{search.first_changed - search.last_same} commits left, running {' and '.join(n[:12] for n in names)}"
            )
            self._pair(names[0], names[1] if len(names) > 1 else first)
            for index, name in zip(wanted, names, strict=True):
                self._judge(first, name)
                search.tell(index, self.tried[name].result)
        suspects = [commits[i] for i in search.suspects()]
        before = commits[search.last_same] if search.last_same >= 0 else first
        return self._found(first, last, before, suspects)

    def _pair(self, one: str, other: str) -> None:
        """Run two commits side by side, and keep where their runs lie."""
        request = dataclasses.replace(
            self._request, kind="regression-pair", revision=one, against=other, gate=False, worktree=False
        )
        workflow = submission.made(request, self._settings, self._engine, directory=self._directory, store=True)
        ended = self._follow(self._engine.submit(workflow))
        self.pairs += 1
        for leg, commit in (("leg-a", one), ("leg-b", other)):
            place, why = self._run_of(ended, leg)
            before = self.tried.get(commit)
            if before is not None and before.run is not None and place is not None:
                self._must_agree(commit, before.run, place)
                continue
            subject = git.subject(self._top, commit)
            self.tried[commit] = Tried(
                commit=commit, subject=subject, result=SAME if place else SKIPPED, why=why, run=place
            )
        name = str(ended["metadata"]["name"])
        self._say(f"{name}: " + ", ".join(f"{c[:12]} {self.tried[c].result}" for c in dict.fromkeys((one, other))))

    def _run_of(self, workflow: Mapping[str, Any], leg: str) -> tuple[Path | None, str]:
        name = str(workflow["metadata"]["name"])
        nodes = (workflow.get("status") or {}).get("nodes") or {}
        why = "it did not start"
        for key, node in nodes.items():
            if node.get("type") != "Pod" or str(node.get("displayName")).split("(")[0] != leg:
                continue
            if node.get("phase") == "Succeeded":
                try:
                    return self._engine.artifact(name, key, "run"), ""
                except FoxrunError as error:
                    why = str(error)
            else:
                why = str(node.get("message") or node.get("phase"))
        return None, why

    def _must_agree(self, commit: str, before: Path, now: Path) -> None:
        if comparison.compare(before, now, _FORCED).exit_code != 0:
            raise UsageError(
                f"two runs of commit {commit[:12]} have different bits: it is not deterministic, "
                "so no commit can be named",
                remedy=f"foxrun check --sha {commit[:12]} finds the cause; give a deterministic GOOD",
            )

    def _compare(self, one: str, other: str) -> Verdict:
        a, b = self.tried[one].run, self.tried[other].run
        assert a is not None and b is not None
        return comparison.compare(a, b, _FORCED)

    def _judge(self, good: str, name: str) -> None:
        tried = self.tried[name]
        if tried.result == SKIPPED:
            return
        verdict = self._compare(good, name)
        result = SAME if verdict.exit_code == 0 else CHANGED if verdict.verdict == v.DRIFT else SKIPPED
        self.tried[name] = dataclasses.replace(tried, result=result, why=verdict.message if result == SKIPPED else "")

    def _equal(self, first: str, last: str) -> Bisected:
        verdict = v.make(v.IDENTICAL, f"{first[:12]} and {last[:12]} have the same bits: nothing to find")
        return self._made(first, last, [], verdict)

    def _found(self, first: str, last: str, before: str, suspects: list[str]) -> Bisected:
        newest = suspects[-1]
        compared = self._compare(before, newest)
        subject = self.tried[newest].subject
        if len(suspects) == 1:
            message = f"{newest[:12]} ({subject}) is the first commit that changed bits"
        else:
            skipped = ", ".join(name[:12] for name in suspects[:-1])
            others = f"one of the {len(suspects) - 1} before it that could not be run ({skipped})"
            message = f"{newest[:12]} ({subject}) or {others}"
        verdict = dataclasses.replace(
            compared,
            message=message,
            next=f"{v.command('git', 'show', newest[:12])}; where the change is meant, "
            + v.command("foxrun", "golden", "record", "--reason", "why"),
        )
        return self._made(first, last, suspects, verdict)

    def _made(self, first: str, last: str, suspects: list[str], verdict: Verdict) -> Bisected:
        return Bisected(
            good=first,
            bad=last,
            suspects=tuple(suspects),
            subjects=tuple(git.subject(self._top, name) for name in suspects),
            tried=tuple(self.tried.values()),
            pairs=self.pairs,
            verdict=verdict,
        )
