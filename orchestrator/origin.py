"""Where the repository is that a run is of: what its host calls it."""

from __future__ import annotations

from pathlib import Path

from orchestrator.hosts.repository import web_address
from orchestrator.settings import Settings


def origin_of(settings: Settings, directory: Path | None = None) -> str:
    """The repository's web address: the setting, else that of git's origin here; empty where there is none."""
    from foxrun import git

    if settings.origin:
        return web_address(settings.origin) or settings.origin
    try:
        return web_address(git.remote_url(git.top_level(directory or Path.cwd())))
    except git.GitError:
        return ""
