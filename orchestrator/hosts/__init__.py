"""GitHub and GitLab, which only this package talks to: commit statuses, and one comment in a pull or merge request."""

from orchestrator.hosts.posting import Answer, Post, post
from orchestrator.hosts.repository import Repository, repository_of

__all__ = ["Answer", "Post", "Repository", "post", "repository_of"]
