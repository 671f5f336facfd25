"""Tell a commit's host what came of it: the status first, then the one comment of each open pull request.

Never raises and never changes the verdict; what failed is returned in words without secrets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from orchestrator.alert_text import AlertContext, one_line
from orchestrator.compare.verdict import Verdict
from orchestrator.errors import FoxrunError
from orchestrator.hosts import text
from orchestrator.hosts.base import PENDING, Host, Pull
from orchestrator.hosts.github import GitHub
from orchestrator.hosts.gitlab import GitLab
from orchestrator.hosts.repository import GITHUB, Repository
from orchestrator.hosts.transport import HostError
from orchestrator.printable import printable

_CREATIONS = 3
# More open requests of one commit than anybody has; each costs three requests.
_MOST_PULLS = 10


@dataclass(frozen=True, kw_only=True)
class Post:
    """What is to be told. ``verdict`` None: it runs. ``link``: for the status, else the context's own."""

    repository: Repository
    sha: str
    context: AlertContext
    verdict: Verdict | None = None
    name: str = ""  # of the status; empty: foxrun/KIND
    pull: int | None = None  # the pull request, where it is known; else those of the commit are looked for
    comment: bool = True


@dataclass(kw_only=True)
class Answer:
    """What was done and what was not, a line each."""

    done: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def host_of(repository: Repository, token: str, **patience: Any) -> Host:
    """The host's API for one repository; nothing is connected to yet."""
    return GitHub(repository, token, **patience) if repository.kind == GITHUB else GitLab(repository, token, **patience)


def post(what: Post, token: str, **patience: Any) -> Answer:
    """Set the status and, with a verdict, write the comment. ``patience``: as of Transport."""
    host = host_of(what.repository, token, **patience)
    answer = Answer()
    name = what.name or f"foxrun/{what.context.kind or 'run'}"
    state = PENDING if what.verdict is None else text.state_of(what.verdict)
    said = (
        one_line(printable(f"{what.context.workflow or 'the workflow'} runs"), host.description_limit)
        if what.verdict is None
        else text.description(what.verdict, host.description_limit)
    )
    try:
        host.set_status(
            what.sha,
            state=state,
            context=name,
            description=said,
            target_url=text.link_of(what.context.link),
            branch=what.context.branch,
        )
        answer.done.append(f"status {name} of {what.sha[:12]}: {state}")
    except FoxrunError as error:
        answer.failed.append(_failure(f"status {name} of {what.sha[:12]}", error))
    if what.verdict is None or not what.comment:
        return answer
    try:
        for pull in _pulls(host, what):
            for line in _comment(host, pull, what, what.verdict):
                answer.done.append(line)
    except FoxrunError as error:
        answer.failed.append(_failure("comment", error))
    except (AttributeError, KeyError, TypeError, ValueError) as error:  # an API that answers in another shape
        answer.failed.append(f"comment not written: the host's answer cannot be read ({type(error).__name__})")
    return answer


def _pulls(host: Host, what: Post) -> list[Pull]:
    return [host.pull(what.pull)] if what.pull is not None else host.pulls(what.sha)[:_MOST_PULLS]


def _comment(host: Host, pull: Pull, what: Post, verdict: Verdict) -> Iterator[str]:
    if pull.head != what.sha:
        # A newer commit has, or will have, its own verdict there, which an older run must not replace.
        yield f"no comment in #{pull.number}: its head is {pull.head[:12]}"
        return
    body = text.comment(verdict, what.context, limit=host.comment_limit)
    mark = text.marker(what.context.kind or verdict.subject)
    yield f"comment in #{pull.number} {_written(host, pull.number, mark, body)}"


def _written(host: Host, number: int, mark: str, body: str) -> str:
    """Update the comment that begins with ``mark``, or create it; two that do so at once leave one."""
    for attempt in range(_CREATIONS):
        if _updated(host, number, mark, body) is not None:
            return "updated"
        try:
            ours = host.create_comment(number, body)
        except HostError as error:
            # It may have been created all the same, so it is looked for before another one is made.
            if not error.passing or attempt == _CREATIONS - 1:
                raise
            continue
        oldest = min((c.id for c in host.comments(number) if c.body.startswith(mark)), default=ours)
        if oldest < ours and _updated(host, number, mark, body, but=ours) is not None:
            host.delete_comment(number, ours)
            return "updated"
        return "created"
    raise AssertionError("unreachable")


def _updated(host: Host, number: int, mark: str, body: str, *, but: int | None = None) -> int | None:
    """The id of the comment that was updated. Anybody may write our mark; what we may not change is not ours."""
    for comment in list(host.comments(number)):
        if not comment.body.startswith(mark) or comment.id == but:
            continue
        try:
            host.update_comment(number, comment.id, body)
        except HostError as error:
            if error.status not in (403, 404):
                raise
            continue
        return comment.id
    return None


def _failure(what: str, error: FoxrunError) -> str:
    return f"{what} not written: {error}" + (f" ({error.remedy})" if error.remedy else "")
