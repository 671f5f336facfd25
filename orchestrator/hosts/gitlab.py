"""GitLab's REST API, version 4: https://docs.gitlab.com/api/commits and https://docs.gitlab.com/api/notes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from orchestrator.hosts.base import ERROR, FAILURE, PENDING, SUCCESS, Comment, Pull
from orchestrator.hosts.repository import Repository
from orchestrator.hosts.transport import HostError, Transport

LIMIT = 255  # of name, ref, description and target_url, each
# GitLab knows no status for "it could not be found out".
_STATES = {PENDING: "pending", SUCCESS: "success", FAILURE: "failed", ERROR: "failed"}


class GitLab:
    """One project there. The token needs the scope api, and the role Developer."""

    description_limit = LIMIT
    comment_limit = 1_000_000

    def __init__(self, repository: Repository, token: str, **patience: Any) -> None:
        self._http = Transport(repository.api, {"PRIVATE-TOKEN": token}, secret=token, **patience)
        self._path = f"/projects/{quote(repository.path, safe='')}"

    def set_status(self, sha: str, *, state: str, context: str, description: str, target_url: str, branch: str) -> None:
        """A status belongs to the pipeline of the commit on its branch."""
        body = {"state": _STATES[state], "name": context[:LIMIT], "description": description}
        if branch and len(branch) <= LIMIT:
            body["ref"] = branch
        if target_url and len(target_url) <= LIMIT:
            body["target_url"] = target_url
        try:
            self._http.json("POST", f"{self._path}/statuses/{sha}", body=body)
        except HostError as error:
            # What is pending already cannot be made pending once more; that is all one wanted.
            there = state == PENDING and error.status == 400 and "cannot transition status" in str(error).lower()
            if not there:
                raise

    def pulls(self, sha: str) -> list[Pull]:
        """Those that are open."""
        query = {"state": "opened"}
        found = self._http.pages(f"{self._path}/repository/commits/{sha}/merge_requests", query)
        return [_pull(item) for item in found if item.get("state") == "opened"]

    def pull(self, number: int) -> Pull:
        """One by its number inside the project."""
        return _pull(self._http.json("GET", f"{self._path}/merge_requests/{number}"))

    def comments(self, number: int) -> Iterator[Comment]:
        """Notes that people or programs wrote; GitLab's own are left out."""
        query = {"sort": "asc", "order_by": "created_at"}
        for item in self._http.pages(f"{self._path}/merge_requests/{number}/notes", query):
            if not item.get("system"):
                yield Comment(id=int(item["id"]), body=str(item.get("body") or ""))

    def create_comment(self, number: int, body: str) -> int:
        """A note in the conversation."""
        made = self._http.json("POST", f"{self._path}/merge_requests/{number}/notes", body={"body": body}, again=False)
        return int(made["id"])

    def update_comment(self, number: int, comment: int, body: str) -> None:
        """A note of ours."""
        self._http.json("PUT", f"{self._path}/merge_requests/{number}/notes/{comment}", body={"body": body})

    def delete_comment(self, number: int, comment: int) -> None:
        """A note of ours."""
        self._http.json("DELETE", f"{self._path}/merge_requests/{number}/notes/{comment}")


def _pull(item: Any) -> Pull:
    return Pull(number=int(item["iid"]), head=str(item.get("sha") or ""))
