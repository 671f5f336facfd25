"""Deliveries that are sent to a real argo-server, each with its answer and what it starts; docs/ci.md shows them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.events import payloads as p
from tests.events.payloads import sha_of

GITHUB, GITLAB = "GitHub", "GitLab"
RIGHT, WRONG, MISSING = "right", "wrong", "missing"
NOTHING = None


@dataclass(frozen=True, kw_only=True)
class Started:
    """The ci-gate that a delivery starts."""

    binding: str
    event: str
    branch: str
    sha: str
    author: str = p.AUTHOR
    message: str = p.MESSAGE
    argument: str | None = None  # the branch as parameter, where it is not the branch itself
    tree: str | None = None


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """One request of a host."""

    host: str
    event: str  # header X-GitHub-Event or X-Gitlab-Event
    what: str
    payload: Any
    starts: Started | None
    answer: int = 200
    secret: str = RIGHT
    changed: bool = False  # after it was signed
    headers: tuple[tuple[str, str], ...] = ()


def table() -> Iterator[Delivery]:
    """In the order in which they are sent."""
    yield from _github_pushes()
    yield from _github_pull_requests()
    yield from _gitlab()
    yield from _refused()
    yield from _again()
    yield from _hostile()


def _push(what: str, ref: str, starts: bool, **more: Any) -> Delivery:
    sha = more.pop("sha", sha_of(what))
    shown = {key: more[key] for key in ("author", "message") if key in more}
    started = Started(
        binding="ci-gate-github-push", event="push", branch=ref.removeprefix("refs/heads/"), sha=sha, tree=p.TREE,
        argument=more.pop("argument", None), **shown,
    )  # fmt: skip
    answer = more.pop("answer", 200)
    return Delivery(
        host=GITHUB, event="push", what=what, payload=p.github_push(ref, sha, **more),
        starts=started if starts else NOTHING, answer=answer,
    )  # fmt: skip


def _github_pushes() -> Iterator[Delivery]:
    yield Delivery(host=GITHUB, event="ping", what="the webhook was made", payload=p.github_ping(), starts=NOTHING)
    yield _push("to `ml-alpha-x`", "refs/heads/ml-alpha-x", True)
    yield _push("to `ml-alpha-team/cfc/2`", "refs/heads/ml-alpha-team/cfc/2", True)
    yield _push("to `main`", "refs/heads/main", False)
    yield _push("to `xml-alpha-1`", "refs/heads/xml-alpha-1", False)
    yield _push("to `ml-alpha`, without the dash", "refs/heads/ml-alpha", False)
    yield _push("of the tag `ml-alpha-1.0`", "refs/tags/ml-alpha-1.0", False)
    yield _push("that deletes `ml-alpha-x`", "refs/heads/ml-alpha-x", False, sha=p.ZEROS)
    yield _push("to `ml-alpha-x` of a fork", "refs/heads/ml-alpha-x", False, fork=True)
    for event in ("create", "delete"):
        yield Delivery(
            host=GITHUB, event=event, what=f"`{event}` of the branch `ml-alpha-y`, beside its push",
            payload=p.github_ref("ml-alpha-y", "branch"), starts=NOTHING,
        )  # fmt: skip


def _github_pull_requests() -> Iterator[Delivery]:
    fork = p.github_repository(fork=True, number=186853999, owner="somebody")
    for what, action, base, of, starts in (
        ("opened, to the default branch", "opened", "main", "", True),
        ("with new commits, to the default branch", "synchronize", "main", "", True),
        ("reopened, to the default branch", "reopened", "main", "", True),
        ("labelled", "labeled", "main", "", False),
        ("edited", "edited", "main", "", False),
        ("closed", "closed", "main", "", False),
        ("opened, to another branch", "opened", "release-1", "", False),
        ("opened, from a fork", "opened", "main", fork, False),
        ("with new commits, from a fork that was deleted", "synchronize", "main", None, False),
    ):
        branch, sha = f"feature/{action}", sha_of(f"pull request {what}")
        started = Started(
            binding="ci-gate-github-pull-request", event="pull-request", branch=branch, sha=sha, author="adafox",
            message="Wider",
        )  # fmt: skip
        yield Delivery(
            host=GITHUB, event="pull_request", what=what,
            payload=p.github_pull_request(action, branch, sha, base=base, of=of), starts=started if starts else NOTHING,
        )  # fmt: skip
    sha = sha_of("to `ml-alpha-x`")
    yield Delivery(
        host=GITHUB, event="pull_request", what="opened from `ml-alpha-x`, whose push has started its gate already",
        payload=p.github_pull_request("opened", "ml-alpha-x", sha), starts=NOTHING, answer=500,
    )  # fmt: skip


def _gitlab() -> Iterator[Delivery]:
    for what, ref, kind, sha, starts in (
        ("to `ml-alpha-x`", "refs/heads/ml-alpha-x", "push", None, True),
        ("to `main`", "refs/heads/main", "push", None, False),
        ("that deletes `ml-alpha-x`", "refs/heads/ml-alpha-x", "push", p.ZEROS, False),
        ("of the tag `ml-alpha-1.0`", "refs/tags/ml-alpha-1.0", "tag_push", None, False),
    ):
        commit = sha or sha_of(f"GitLab {what}")
        started = Started(
            binding="ci-gate-gitlab-push", event="push", branch=ref.removeprefix("refs/heads/"), sha=commit
        )
        yield Delivery(
            host=GITLAB, event="Tag Push Hook" if kind == "tag_push" else "Push Hook", what=what,
            payload=p.gitlab_push(ref, commit, kind=kind), starts=started if starts else NOTHING,
        )  # fmt: skip
    for what, action, options, starts in (
        ("opened, to the default branch", "open", {}, True),
        ("updated by a push", "update", {"pushed": True}, True),
        ("reopened", "reopen", {}, True),
        ("updated in its title", "update", {}, False),
        ("approved", "approved", {}, False),
        ("merged", "merge", {}, False),
        ("closed", "close", {}, False),
        ("opened, to another branch", "open", {"target": "release-1"}, False),
        ("opened, from a fork", "open", {"source": 99}, False),
    ):
        branch, sha = f"feature/{action}", sha_of(f"merge request {what}")
        started = Started(
            binding="ci-gate-gitlab-merge-request", event="pull-request", branch=branch, sha=sha, message="Wider"
        )
        yield Delivery(
            host=GITLAB, event="Merge Request Hook", what=what,
            payload=p.gitlab_merge_request(action, branch, sha, **options), starts=started if starts else NOTHING,
        )  # fmt: skip


def _refused() -> Iterator[Delivery]:
    ref = "refs/heads/ml-alpha-refused"
    for what, secret, changed in (
        ("signed with another secret", WRONG, False),
        ("not signed", MISSING, False),
        ("changed after it was signed", RIGHT, True),
    ):
        yield Delivery(
            host=GITHUB, event="push", what=what, payload=p.github_push(ref, sha_of(what)), starts=NOTHING,
            answer=401, secret=secret, changed=changed,
        )  # fmt: skip
    for what, secret in (("with another token", WRONG), ("without a token", MISSING)):
        yield Delivery(
            host=GITLAB, event="Push Hook", what=what, payload=p.gitlab_push(ref, sha_of(what)), starts=NOTHING,
            answer=401, secret=secret,
        )  # fmt: skip
    yield Delivery(
        host=GITLAB, event="Push Hook", what="of GitHub's shape, with GitLab's token",
        payload=p.github_push(ref, sha_of("shape")), starts=NOTHING,
    )  # fmt: skip


def _again() -> Iterator[Delivery]:
    yield _push(
        "to `ml-alpha-x`, delivered again", "refs/heads/ml-alpha-x", False, sha=sha_of("to `ml-alpha-x`"), answer=500
    )
    yield Delivery(
        host=GITLAB, event="Push Hook", what="to `ml-alpha-x`, delivered again",
        payload=p.gitlab_push("refs/heads/ml-alpha-x", sha_of("GitLab to `ml-alpha-x`")), starts=NOTHING, answer=500,
    )  # fmt: skip
    yield _push("to `ml-alpha-z`, of the same commit", "refs/heads/ml-alpha-z", True, sha=sha_of("to `ml-alpha-x`"))


LONG = "ml-alpha-" + "long-" * 48 + "x"


def _hostile() -> Iterator[Delivery]:
    for what, branch, argument in (
        ("to ``ml-alpha-$(touch x)`id`;&|<>'``", "ml-alpha-$(touch x)`id`;&|<>'", None),
        ("to `ml-alpha-$(FOXRUN_SHA)$$`", "ml-alpha-$(FOXRUN_SHA)$$", None),
        ("to `ml-alpha-{{workflow.name}}`", "ml-alpha-{{workflow.name}}", "ml-alpha---workflow.name--"),
        ("to `ml-alpha-{{=1+1}}`", "ml-alpha-{{=1+1}}", "ml-alpha----1-1--"),
        ('to `ml-alpha-"quoted"`', 'ml-alpha-"quoted"', "ml-alpha--quoted-"),
        ("to a name with a line break", "ml-alpha-a\nb: c", "ml-alpha-a-b--c"),
        ("to `ml-alpha-größe-🦊`", "ml-alpha-größe-🦊", None),
        ("to a name of 250 characters", LONG, None),
        ("to another one that differs at its end", LONG[:-1] + "y", None),
    ):
        yield _push(what, f"refs/heads/{branch}", True, argument=argument)
    yield _push(
        "whose author and message are hostile", "refs/heads/ml-alpha-m", True,
        author="$(touch x) {{workflow.name}} \"'`" + "é" * 250,
        message="{{=1+1}} <script>\n$(reboot)\0\u2028" + "🦊" * 900,
    )  # fmt: skip
