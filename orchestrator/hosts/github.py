"""GitHub's REST API, version 2022-11-28: https://docs.github.com/rest/commits/statuses and /rest/issues/comments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orchestrator.hosts.base import Comment, Pull
from orchestrator.hosts.repository import Repository
from orchestrator.hosts.transport import Transport

CONTEXT_LIMIT = 255
URL_LIMIT = 2000


class GitHub:
    """One repository there. The token needs: commit statuses write, pull requests write."""

    description_limit = 140
    comment_limit = 65_536

    def __init__(self, repository: Repository, token: str, **patience: Any) -> None:
        headers = {
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            "Authorization": f"Bearer {token}",
        }
        self._http = Transport(repository.api, headers, secret=token, **patience)
        self._path = f"/repos/{repository.path}"

    def set_status(self, sha: str, *, state: str, context: str, description: str, target_url: str, branch: str) -> None:
        """A status belongs to the commit; ``branch`` has no meaning here."""
        body = {"state": state, "context": context[:CONTEXT_LIMIT], "description": description}
        if target_url and len(target_url) <= URL_LIMIT:
            body["target_url"] = target_url
        self._http.json("POST", f"{self._path}/statuses/{sha}", body=body)

    def pulls(self, sha: str) -> list[Pull]:
        """Those that are open."""
        found = self._http.pages(f"{self._path}/commits/{sha}/pulls", {})
        return [_pull(item) for item in found if item.get("state") == "open"]

    def pull(self, number: int) -> Pull:
        """One by its number."""
        return _pull(self._http.json("GET", f"{self._path}/pulls/{number}"))

    def comments(self, number: int) -> Iterator[Comment]:
        """Of the conversation, not of single lines."""
        for item in self._http.pages(f"{self._path}/issues/{number}/comments", {}):
            yield Comment(id=int(item["id"]), body=str(item.get("body") or ""))

    def create_comment(self, number: int, body: str) -> int:
        """A comment in the conversation."""
        made = self._http.json("POST", f"{self._path}/issues/{number}/comments", body={"body": body}, again=False)
        return int(made["id"])

    def update_comment(self, number: int, comment: int, body: str) -> None:
        """By its id alone."""
        self._http.json("PATCH", f"{self._path}/issues/comments/{comment}", body={"body": body})

    def delete_comment(self, number: int, comment: int) -> None:
        """By its id alone."""
        self._http.json("DELETE", f"{self._path}/issues/comments/{comment}")


def _pull(item: Any) -> Pull:
    return Pull(number=int(item["number"]), head=str((item.get("head") or {}).get("sha") or ""))
