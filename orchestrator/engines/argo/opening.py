"""Which cluster the settings mean, and how it is reached.

An argo-server in foxrun's own settings is talked to for everything. Without one it is the Kubernetes API, and an
argo-server of the environment (ARGO_SERVER, as argo's own command has it) does what only it can: retry, and read
artifacts without a bucket's credentials. Where there is no kubeconfig at all, that one does everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from orchestrator.engines.argo.argo_server import ArgoServerApi
from orchestrator.engines.argo.artifacts import Store
from orchestrator.engines.argo.credentials import KubeCredentials, ServerCredentials
from orchestrator.engines.argo.engine import ArgoEngine
from orchestrator.engines.argo.kubernetes_api import KubernetesApi
from orchestrator.settings import Settings


def open_argo(settings: Settings, home: Path, environ: Mapping[str, str], *, store: Store | None) -> ArgoEngine:
    """The engine; nothing is connected to yet.

    Args:
        settings: namespace, context, kubeconfig, argo_server and its token.
        home: copies of artifacts go below it.
        environ: where ARGO_SERVER and its like are looked for.
        store: the bucket of Argo's artifact repository, where the settings name one.
    """
    kube = KubeCredentials(
        kubeconfig=settings.kubeconfig,
        context=settings.context,
        namespace=settings.namespace or ("" if settings.context else environ.get("ARGO_NAMESPACE", "")),
    )
    server = _server(settings, environ)
    alone = server is not None and (bool(settings.argo_server) or not kube.exists())
    return ArgoEngine(
        server if server is not None and alone else KubernetesApi(kube),
        home / "argo",
        server=server,
        store=store,
        grace_s=settings.unschedulable,
        deadline_s=settings.deadline,
    )


def _server(settings: Settings, environ: Mapping[str, str]) -> ArgoServerApi | None:
    server = settings.argo_server or environ.get("ARGO_SERVER", "")
    if not server or (settings.context and not settings.argo_server):
        # The environment's server belongs to the environment's cluster, and --context may be another one.
        return None
    return ArgoServerApi(
        ServerCredentials(
            server=server,
            token=settings.argo_token,
            token_file=settings.argo_token_file,
            secure=environ.get("ARGO_SECURE", "true").lower() not in ("false", "0"),
            verify=settings.argo_verify
            and environ.get("ARGO_INSECURE_SKIP_VERIFY", "false").lower() not in ("true", "1"),
            base_path=environ.get("ARGO_BASE_HREF", ""),
            namespace=settings.namespace or environ.get("ARGO_NAMESPACE", ""),
        )
    )
