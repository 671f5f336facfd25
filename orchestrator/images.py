"""Which image a tag means: its digest, asked of the registry (OCI distribution API), else of the cluster's nodes.

A tag may be moved between two submits, and two nodes may hold different images of one tag; a digest means one image.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.errors import UsageError

DOCKER_HUB = "docker.io"


@dataclass(frozen=True, kw_only=True)
class Reference:
    """An image's name as Docker reads it: ``foxrun`` is ``docker.io/library/foxrun:latest``."""

    host: str
    name: str
    tag: str
    digest: str = ""

    def __str__(self) -> str:
        return (
            f"{self.host}/{self.name}" + (f":{self.tag}" if self.tag else "") + (f"@{self.digest}" * bool(self.digest))
        )

    @property
    def is_local(self) -> bool:
        """Whether no registry has it: ``localhost/`` without a port is how tools name what they built themselves."""
        return self.host == "localhost"


def parse(text: str) -> Reference:
    """An image's reference, in full. Raises UsageError for what is none."""
    path = r"(?P<path>(?:[^@:/\s]+(?::\d+)?/)?[^@:\s]+)"
    match = re.fullmatch(path + r"(?::(?P<tag>[\w][\w.-]{0,127}))?(?:@(?P<digest>\w+:[0-9a-f]{32,}))?", text)
    if match is None:
        raise UsageError(f"{text!r} is no image", remedy="write REGISTRY/NAME:TAG, such as ghcr.io/lab/foxrun:{sha}")
    first, slash, rest = match["path"].partition("/")
    if slash and (re.search(r"[.:]", first) or first == "localhost"):
        host, name = first, rest
    else:
        host, name = DOCKER_HUB, match["path"] if slash else f"library/{first}"
    tag = match["tag"] or ("" if match["digest"] else "latest")
    return Reference(host=host, name=name, tag=tag, digest=match["digest"] or "")


def digest_on(nodes: Iterable[Mapping[str, Any]], reference: Reference) -> str:
    """The digest under which nodes hold an image; "" where none of them says.

    Raises UsageError when two nodes hold different images of that name.
    """
    found: dict[str, str] = {}
    for node in nodes:
        for image in (node.get("status") or {}).get("images") or []:
            names = [_parsed(name) for name in image.get("names") or []]
            if not any(name and _is_same(name, reference) for name in names):
                continue
            for name in names:
                if name and name.digest and (name.host, name.name) == (reference.host, reference.name):
                    found.setdefault(name.digest, str((node.get("metadata") or {}).get("name")))
    if len(found) > 1:
        where = ", ".join(f"{digest[:19]} on {node}" for digest, node in sorted(found.items()))
        raise UsageError(
            f"nodes hold different images of {reference}: {where}",
            remedy="give the image a tag of its own for each build, such as {sha}, or a digest",
        )
    return next(iter(found), "")


def holds(node: Mapping[str, Any], reference: Reference) -> bool:
    """Whether a node tells of the image (its kubelet tells of 50, the largest)."""
    images = (node.get("status") or {}).get("images") or []
    names = [_parsed(name) for image in images for name in image.get("names") or []]
    if reference.digest:
        wanted = (reference.host, reference.name, reference.digest)
        return any(name and (name.host, name.name, name.digest) == wanted for name in names)
    return any(name and _is_same(name, reference) for name in names)


def _is_same(name: Reference, wanted: Reference) -> bool:
    return (name.host, name.name, name.tag) == (wanted.host, wanted.name, wanted.tag) and not name.digest


def _parsed(text: str) -> Reference | None:
    try:
        return parse(text)
    except UsageError:  # nodes also list images that lost their name: <none>@<none>
        return None
