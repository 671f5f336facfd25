"""The use case of `foxrun status`, and of the exit handler: which commit on which host is told what, by whose token."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.alert_text import AlertContext
from orchestrator.compare.verdict import Verdict
from orchestrator.errors import UsageError
from orchestrator.hosts.posting import Answer, Post, post
from orchestrator.hosts.repository import GITHUB, Repository, repository_of

TOKEN = "FOXRUN_HOST_TOKEN"  # noqa: S105  (a variable's name)


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a CI service says of the job that we run in; empty elsewhere."""

    origin: str = ""
    api: str = ""
    sha: str = ""
    branch: str = ""
    job: str = ""
    pull: int | None = None


def surroundings(environ: Mapping[str, str]) -> Surroundings:
    """GitHub Actions' and GitLab CI's own variables. Of a pull request it is the head that counts, not the merge."""
    if environ.get("GITHUB_ACTIONS") == "true":
        server, name = environ.get("GITHUB_SERVER_URL", ""), environ.get("GITHUB_REPOSITORY", "")
        pull = _payload(environ).get("pull_request")
        pull = pull if isinstance(pull, dict) else {}
        head = pull.get("head") if isinstance(pull.get("head"), dict) else {}
        assert head is not None
        run = f"{server}/{name}/actions/runs/{environ.get('GITHUB_RUN_ID', '')}"
        return Surroundings(
            origin=f"{server}/{name}",
            api=environ.get("GITHUB_API_URL", ""),
            sha=str(head.get("sha") or environ.get("GITHUB_SHA", "")),
            branch=environ.get("GITHUB_HEAD_REF") or environ.get("GITHUB_REF_NAME", ""),
            job=run,
            pull=pull.get("number") if isinstance(pull.get("number"), int) else None,
        )
    if environ.get("GITLAB_CI") == "true":
        number = environ.get("CI_MERGE_REQUEST_IID", "")
        return Surroundings(
            origin=environ.get("CI_PROJECT_URL", ""),
            api=environ.get("CI_API_V4_URL", ""),
            sha=environ.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") or environ.get("CI_COMMIT_SHA", ""),
            branch=environ.get("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME") or environ.get("CI_COMMIT_REF_NAME", ""),
            job=environ.get("CI_JOB_URL", ""),
            pull=int(number) if number.isdigit() else None,
        )
    return Surroundings()


def _payload(environ: Mapping[str, str]) -> dict[str, Any]:
    try:
        value = json.loads(Path(environ["GITHUB_EVENT_PATH"]).read_text("utf-8"))
    except (KeyError, OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def place_of(origin: str, api: str, around: Surroundings) -> Repository:
    """The repository behind an address; a CI service's own API counts for its own repositories alone."""
    if not api and around.api and _server(origin) == _server(around.origin):
        api = around.api
    return repository_of(origin, api=api)


def token_of(repository: Repository, environ: Mapping[str, str], around: Surroundings) -> str:
    """FOXRUN_HOST_TOKEN; in a job of a CI service also what it calls its own, for its own API alone. Empty: none."""
    token = environ.get(TOKEN, "").strip()
    if not token and around.api.rstrip("/") == repository.api:
        token = environ.get("GITHUB_TOKEN" if repository.kind == GITHUB else "GITLAB_TOKEN", "").strip()
    if any(ord(character) < 33 or ord(character) > 126 for character in token):
        raise UsageError(f"{TOKEN} holds a blank or another character that no token has", remedy="set it again")
    return token


def tell(
    verdict: Verdict | None, context: AlertContext, *, api: str, environ: Mapping[str, str], name: str = "",
    pull: int | None = None, comment: bool = True, **patience: Any,
) -> Answer:  # fmt: skip
    """Set the status of the context's commit, and with a verdict write the comment.

    Raises:
        UsageError: the context names no repository or commit, there is no token, or it would go to another host.
    """
    around = surroundings(environ)
    if not context.origin:
        raise UsageError("no repository is known", remedy="give --repository https://HOST/OWNER/NAME")
    if not context.sha:
        raise UsageError(
            "no commit is known",
            remedy="give --sha; of a branch on a cluster the image has to say it (docs/nightly.md)",
        )
    repository = place_of(context.origin, api, around)
    token = token_of(repository, environ, around)
    if not token:
        raise UsageError(
            f"there is no token for {repository.api}", remedy=f"set {TOKEN}; docs/ci.md says what it needs"
        )
    what = Post(
        repository=repository, sha=context.sha, context=context, verdict=verdict, name=name, pull=pull, comment=comment
    )
    return post(what, token, **patience)


def head(directory: Path | None = None) -> str:
    """The commit that is checked out here; empty outside of git."""
    from foxrun import git

    try:
        return git.resolve(directory or Path.cwd(), "HEAD")
    except git.GitError:
        return ""


def commit_of(revision: str, directory: Path | None = None) -> str:
    """The commit that a revision means here; where nobody can say (a pod without git), that of the files here.

    Empty where nothing is known.
    """
    from foxrun import git

    here = directory or Path.cwd()
    if not revision or git.is_commit(revision):
        return revision
    try:
        return git.resolve(here, revision)
    except git.NotARepository:
        return git.commit_run(here)
    except git.GitError:
        return ""


def _server(url: str) -> str:
    return "/".join(url.split("/")[:3]).lower()
