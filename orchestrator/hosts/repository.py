"""Which repository, on which host, behind which API: from an address as `git remote` or a webhook names it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from orchestrator.errors import UsageError

GITHUB, GITLAB = "github", "gitlab"
_KNOWN = {"github.com": "https://api.github.com", "gitlab.com": "https://gitlab.com/api/v4"}
_SCP = re.compile(r"(?:[^\s/@:]+@)?([^\s/@:]+):(?!//)(.+)")  # git@github.com:owner/name.git


@dataclass(frozen=True, kw_only=True)
class Repository:
    """A repository and its host's API. ``path``: OWNER/NAME; on GitLab GROUP/.../NAME."""

    kind: str
    api: str
    path: str


def repository_of(origin: str, *, api: str = "") -> Repository:
    """The repository that lives at ``origin``.

    Args:
        origin: its web address, or what git fetches from (https, ssh, or git@HOST:PATH).
        api: the API's base: https://HOST/api/v3 (GitHub Enterprise Server), https://api.NAME.ghe.com, or
            https://HOST/api/v4 (GitLab). Empty: that of github.com or gitlab.com.

    Raises:
        UsageError: no such address; or the API belongs to another host, which would be given the token.
    """
    host, path = _parts(origin)
    base = (api or _KNOWN.get(host, "")).rstrip("/")
    if not base:
        raise UsageError(
            f"{host} is neither github.com nor gitlab.com",
            remedy="set host_api: https://HOST/api/v3 for GitHub Enterprise, https://HOST/api/v4 for GitLab",
        )
    parts = urlsplit(base)
    served, prefix = (parts.hostname or "").lower(), parts.path
    if parts.scheme not in ("http", "https") or not served or parts.query or parts.username:
        raise UsageError(f"host_api {api!r} is no address of an API", remedy="write https://HOST/api/v3 or /api/v4")
    if prefix.endswith("/api/v4"):
        kind, web, below = GITLAB, served, prefix.removesuffix("/api/v4").strip("/")
    elif prefix.endswith("/api/v3"):
        kind, web, below = GITHUB, served, prefix.removesuffix("/api/v3").strip("/")
    elif served.startswith("api.") and not prefix:
        kind, web, below = GITHUB, served.removeprefix("api."), ""
    else:
        raise UsageError(
            f"host_api {api!r} is neither GitHub's nor GitLab's", remedy="it ends in /api/v3, or in /api/v4 for GitLab"
        )
    if host != web:
        raise UsageError(
            f"the repository is at {host} and host_api is of {web}, which would be given the token",
            remedy=f"set host_api to the API of {host}",
        )
    if below and path.startswith(f"{below}/"):
        path = path[len(below) + 1 :]
    if (kind == GITHUB and path.count("/") != 1) or "/" not in path:
        raise UsageError(f"{origin!r} names no repository", remedy="it is https://HOST/OWNER/NAME")
    return Repository(kind=kind, api=base, path=path)


def _parts(origin: str) -> tuple[str, str]:
    """(host, path) in which nothing can leave the path of a request."""
    text = origin.strip()
    scp = _SCP.fullmatch(text) if "://" not in text else None
    try:
        parts = urlsplit(f"ssh://{scp[1]}/{scp[2]}" if scp else text)
        host = (parts.hostname or "").lower()
    except ValueError:
        host = ""
    path = parts.path.strip("/").removesuffix(".git") if host else ""
    named = all(re.fullmatch(r"[\w.+-]+", part) and part not in (".", "..") for part in path.split("/"))
    if not host or parts.scheme not in ("http", "https", "ssh", "git") or not named:
        raise UsageError(f"{_shown(text)!r} is no address of a repository", remedy="it is https://HOST/OWNER/NAME")
    return host, path


def web_address(origin: str) -> str:
    """The address that a browser opens, without user and password; empty for what no host serves."""
    try:
        host, path = _parts(origin)
    except UsageError:
        return ""
    parts = urlsplit(origin) if origin.startswith(("http://", "https://")) else None
    port = f":{parts.port}" if parts and parts.port else ""
    return f"{parts.scheme if parts else 'https'}://{host}{port}/{path}"


def _shown(text: str) -> str:
    return re.sub(r"//[^/@]*@", "//***@", text)[:200]
