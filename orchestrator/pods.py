"""What the pods of a cluster are given: settings in, the parameters of a Workflow out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.errors import UsageError
from orchestrator.settings import Settings

if TYPE_CHECKING:
    from orchestrator.engines.base import Engine
    from workflows.parameters import RunParameters

_SAME = (
    "image", "image_pull_policy", "image_pull_secrets", "cpu", "memory", "gpus", "service_account", "user_id",
    "alerts_secret", "retries",
)  # fmt: skip
_OPTIONAL = ("executor_account", "alerts_account", "tools_image", "cpu_limit", "gpu_model", "priority_class")


def alert_variables(settings: Settings) -> dict[str, str]:
    """What the exit handler has to know of the settings, where somebody has set it; secrets are not among it."""
    values = {
        "alert_rules": "[" + ", ".join(settings.alert_rules) + "]",
        "alert_state": settings.alert_state,
        "host_api": settings.host_api,
        "status_kinds": ",".join(settings.status_kinds),
        "workflow_url": settings.workflow_url,
        "report_url": settings.report_url,
    }
    return {f"FOXRUN_{name.upper()}": text for name, text in values.items() if name in settings.sources}


def place_of(settings: Settings, repository: Path) -> dict[str, Any]:
    """The fields of RunParameters that say where and how pods run.

    Raises:
        UsageError: the commit is to be mounted by git, from a repository that only this machine has.
    """
    from workflows.place import toleration

    selector = [text.partition("=") for text in settings.node_selector]
    place = {
        **{name: getattr(settings, name) for name in _SAME},
        **{name: getattr(settings, name) or None for name in _OPTIONAL},
        "node_selector": tuple((key, value) for key, _, value in selector),
        "tolerations": tuple(toleration(text) for text in settings.tolerations),
        "ttl_s": max(1, round(settings.ttl)),
    }
    if settings.engine == "argo" and settings.code == "git":
        place |= {"git_url": _git_url(settings, repository), "git_secret": settings.git_secret or None}
    return place


def on_a_cluster(
    parameters: RunParameters, settings: Settings, engine: Engine, repository: Path, *, say: Callable[[str], None]
) -> RunParameters:
    """The same with images by digest, as far as somebody tells; ``say`` hears what pods may lack."""
    from foxrun import git
    from orchestrator.engines.argo import ArgoEngine
    from orchestrator.pinning import pinned

    for sha in (parameters.sha, parameters.against):
        if parameters.git_url and sha and not git.is_published(repository, sha):
            say(
                f"commit {sha[:12]} is on no branch of a remote, as far as this clone knows; push it, lest pods miss it"
            )
    assert isinstance(engine, ArgoEngine)
    return pinned(parameters, how=settings.image_digest, on_nodes=engine.image_digest, say=say)


def _git_url(settings: Settings, repository: Path) -> str:
    from foxrun import git

    url = settings.git_url or git.remote_url(repository)
    if not url or url.startswith(("/", ".", "file:")):
        origin = f"origin is {url!r}" if url else "there is no origin"
        raise UsageError(
            f"code: git needs a repository that pods reach, and {origin}",
            remedy="set git_url (--git-url), or build an image of the commit and leave code: image",
        )
    return url
