"""The argo engine: Workflows on Kubernetes, through its API or through argo-server."""

from orchestrator.engines.argo.engine import ArgoEngine

__all__ = ["ArgoEngine"]
