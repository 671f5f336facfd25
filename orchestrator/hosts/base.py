"""What posting needs of a host: GitHub and GitLab have the same things under other names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

PENDING, SUCCESS, FAILURE, ERROR = "pending", "success", "failure", "error"


@dataclass(frozen=True, kw_only=True)
class Pull:
    """An open pull or merge request and the commit at its head."""

    number: int
    head: str


@dataclass(frozen=True, kw_only=True)
class Comment:
    """A comment in one."""

    id: int
    body: str


class Host(Protocol):
    """One repository on its host. Every method raises HostError."""

    description_limit: int  # characters
    comment_limit: int  # characters

    def set_status(self, sha: str, *, state: str, context: str, description: str, target_url: str, branch: str) -> None:
        """Set the status ``context`` of a commit, in place of an earlier one."""
        ...

    def pulls(self, sha: str) -> list[Pull]:
        """The open pull requests that hold the commit."""
        ...

    def pull(self, number: int) -> Pull:
        """One of them."""
        ...

    def comments(self, number: int) -> Iterator[Comment]:
        """All comments of one, the oldest first."""
        ...

    def create_comment(self, number: int, body: str) -> int:
        """Add one; returns its id. Is not tried again when its fate is unknown."""
        ...

    def update_comment(self, number: int, comment: int, body: str) -> None:
        """Replace its text."""
        ...

    def delete_comment(self, number: int, comment: int) -> None:
        """Remove it."""
        ...
