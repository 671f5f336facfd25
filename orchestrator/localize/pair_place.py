"""Where a pair's runs lie when no workflow holds them any more, and where its commit lies on this machine."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.errors import FoxrunError, IncompleteRun, UsageError, WorkflowNotFound, usage_of
from orchestrator.settings import Settings, home_directory

if TYPE_CHECKING:
    from orchestrator.engines.base import Engine
    from orchestrator.localize.known_command import Known
    from orchestrator.places import Places


def two_runs(where: str, places: Places | None) -> tuple[str, str] | None:
    """The two runs below an address or a directory; None for what is a workflow's name.

    Raises:
        UsageError: an address or a path, and no two runs lie there.
    """
    from orchestrator.places import NOTHING, Places, is_remote

    at = places or Places()
    if is_remote(where):
        sides = at.pair_below(where)
        if sides is None and at.find(where).kind == NOTHING:
            raise UsageError(f"{where}: nothing is stored there", remedy="check the address, or give a workflow's name")
        if sides is None:
            what = "no two runs lie there (leg-a and leg-b)"
            raise UsageError(f"{where}: {what}", remedy=f"name the other one too: foxrun localize {where} OTHER")
        return sides
    sides = at.pair_below(where)
    if sides is None and os.sep in where:
        what = "holds no two runs (leg-a and leg-b)" if Path(where).is_dir() else "there is no such directory"
        raise UsageError(f"{where}: {what}", remedy="give a workflow's name, or two runs: foxrun localize A B")
    return sides


def of_history(
    engine: Engine, name: str, settings: Settings, error: WorkflowNotFound
) -> tuple[tuple[str, str], Places]:
    """The stored runs of a workflow that is gone, and how they are reached: the history knows its UID.

    Raises:
        WorkflowNotFound: ``error``, where the history does not know it either; IncompleteRun: its runs are gone too.
    """
    from orchestrator.history import reading
    from orchestrator.history.entries import newest_first
    from orchestrator.places import Places

    try:
        entries = reading.read(engine, home_directory(settings))
    except FoxrunError:  # no bucket is set, or it does not answer: what is known is that there is no such workflow
        raise error from None
    entry = next((entry for entry in newest_first(entries) if entry.name == name and entry.uid), None)
    if entry is None:
        raise error
    places, there = Places(settings), _stored(engine, entry.uid)
    sides = places.pair_below(there)
    if sides is None:
        again = f"foxrun submit --sha {entry.sha} --regression-pair" if entry.sha else "submit it again"
        raise IncompleteRun(
            f"workflow {name} ended {entry.finished} as {entry.verdict} and is gone, and so are its runs ({there})",
            remedy=again if entry.seed is None else f"{again} --seed {entry.seed}",
        )
    return sides, places


def _stored(engine: Engine, uid: str) -> str:
    there: Any = engine
    return str(there.store.path(uid)) if engine.name == "local" else str(there.artifacts.store.url(uid))


def by_hand(known: Known) -> str:
    """What runs the pair's trainer with the files here, whatever is known of it otherwise."""
    return f"foxrun localize -- {shlex.join(known.words)}"


def code_of(known: Known, title: str, settings: Settings) -> tuple[Path, str]:
    """A clean worktree of the commit that ran; of what has no commit the files here, and a note.

    It is looked for in the repository around us, in worktrees of earlier runs, and where foxrun itself lies.

    Raises:
        UsageError: none of these holds the commit, since other code parts elsewhere or not at all.
    """
    from foxrun import git

    sha, here = known.commit, Path(os.getcwd())  # noqa: PTH109
    if not sha:
        return here, ""
    if not git.is_commit(sha):
        return here, f"{sha} is no commit; the files here were run"
    target = home_directory(settings) / "worktrees" / sha
    reasons = []
    for place in (here, target, Path(__file__).parents[2]):
        try:
            top = git.top_level(place)
            commit = git.resolve(top, sha)
        except git.GitError as error:
            reasons.append(error)
            continue
        try:
            return git.add_worktree(top, commit, target), ""
        except git.GitError as error:
            raise usage_of(error) from None
    raise UsageError(
        f"{title} ran commit {sha}, which is not here: {usage_of(reasons[0])}",
        remedy=f"go to a checkout that has it (git fetch --all --tags), or try the files here: {by_hand(known)}",
    )
