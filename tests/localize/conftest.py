"""A repository with a small trainer, and foxrun called as a person calls it."""

from tests.cli.conftest import here, repo

__all__ = ["here", "repo"]
