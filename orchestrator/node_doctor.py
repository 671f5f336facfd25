"""The doctor's checks of a cluster's nodes: room for a leg and a gate, GPUs and their models, the image."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestrator import registry
from orchestrator.doctor import BROKEN, OK, WARNING, Finding
from orchestrator.engines.argo.kubernetes_api import KubernetesApi
from orchestrator.engines.argo.placement import fits, quantity
from orchestrator.engines.argo.transport import Forbidden
from orchestrator.errors import InfrastructureError, UsageError
from orchestrator.images import holds, parse
from orchestrator.settings import Settings

GPU = "nvidia.com/gpu"
GPU_PRODUCT = "nvidia.com/gpu.product"
Node = Mapping[str, Any]


def examine_nodes(api: KubernetesApi, settings: Settings, directory: Path) -> Iterator[Finding]:
    """Every check; in ``directory`` HEAD is looked for, which `{sha}` of the image stands for."""
    try:
        nodes = api.nodes()
    except Forbidden:
        yield Finding(
            part="nodes", state=WARNING,
            found="this account may not see nodes: a GPU that no node has is waited for until the deadline",
            remedy="kubectl apply --server-side -k infra/overlays/gpu, or bind the ClusterRole foxrun-cluster-reader",
        )  # fmt: skip
        return
    yield from look(nodes, settings, directory)


def look(nodes: Sequence[Node], settings: Settings, directory: Path) -> Iterator[Finding]:
    """What these nodes offer to the pods that the settings describe."""
    usable = [node for node in nodes if is_ready(node) and not is_cordoned(node)]
    yield _ready(nodes, usable)
    yield _room(usable, settings)
    yield from _gpus(usable, settings)
    yield _image(usable, settings, directory)


def is_ready(node: Node) -> bool:
    """Whether its kubelet reports."""
    conditions = (node.get("status") or {}).get("conditions") or []
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


def is_cordoned(node: Node) -> bool:
    """Whether it takes no new pods."""
    return bool((node.get("spec") or {}).get("unschedulable"))


def _name(node: Node) -> str:
    return str(node["metadata"]["name"])


def _ready(nodes: Sequence[Node], usable: Sequence[Node]) -> Finding:
    away = [
        f"{_name(node)} is {'cordoned' if is_cordoned(node) else 'not ready'}" for node in nodes if node not in usable
    ]
    found = f"{len(usable)} of {len(nodes)} take pods" + (f"; {', '.join(away)}" if away else "")
    return Finding(
        part="nodes",
        state=OK if usable and not away else WARNING if usable else BROKEN,
        found=found,
        remedy="kubectl uncordon NODE; kubectl describe node NODE says why one is not ready" if away else "",
    )


def _room(usable: Sequence[Node], settings: Settings) -> Finding:
    """Whether an empty node has what a leg asks for, and a gate, which is two of them."""
    lacking = [part for part, processes in (("leg", 1), ("gate", 2)) if not _takes(usable, settings, processes)]
    asked = f"{settings.cpu} CPU, {settings.memory}" + (f", {settings.gpus} GPU" if settings.gpus else "")
    return Finding(
        part="room",
        state=BROKEN if lacking else OK,
        found=f"a leg asks for {asked}, a gate for twice the CPU and memory"
        + (f": no node has as much as a {' or a '.join(lacking)} asks for" if lacking else ""),
        remedy="set cpu, memory, gpus and gpu_model to what one node has: kubectl describe nodes" if lacking else "",
    )


def _takes(usable: Sequence[Node], settings: Settings, processes: int) -> bool:
    requests = {"cpu": quantity(settings.cpu) * processes, "memory": quantity(settings.memory) * processes}
    if settings.gpus:
        requests[GPU] = float(settings.gpus)
    pod = {"spec": {"containers": [{"resources": {"requests": requests}}]}}
    model = settings.gpu_model if settings.gpus else ""
    return fits(pod, [node for node in usable if not model or _model(node) == model])


def _model(node: Node) -> str:
    return str((node["metadata"].get("labels") or {}).get(GPU_PRODUCT) or "")


def _gpus(usable: Sequence[Node], settings: Settings) -> Iterator[Finding]:
    """What GPUs there are, by model; legs on two models are incomparable."""
    models: Counter[str] = Counter()
    for node in usable:
        if count := int(quantity(((node.get("status") or {}).get("allocatable") or {}).get(GPU, "0"))):
            models[_model(node) or "of an unknown model"] += count
    said = ", ".join(f"{count} {model}" for model, count in sorted(models.items()))
    wanted = settings.gpus > 0
    if not models:
        yield Finding(
            part="gpu nodes", state=BROKEN if wanted else OK,
            found="none" + ("" if wanted else ": trainers run on CPUs, as gpus: 0 asks"),
            remedy="install NVIDIA's device plugin (GPU operator) on the nodes, or set gpus: 0" if wanted else "",
        )  # fmt: skip
        return
    if settings.gpu_model and settings.gpu_model not in models:
        state, remedy = BROKEN, f"set gpu_model to one of them: {settings.gpu_model} is none"
    elif wanted and "of an unknown model" in models:
        state = WARNING
        remedy = f"nodes lack the label {GPU_PRODUCT}: install NVIDIA's gpu-feature-discovery, or kubectl label node"
    elif wanted and not settings.gpu_model and len(models) > 1:
        state, remedy = WARNING, "set gpu_model to one of them: legs on two models are incomparable"
    else:
        state, remedy = OK, ""
    yield Finding(part="gpu nodes", state=state, found=said, remedy=remedy)


def _image(usable: Sequence[Node], settings: Settings, directory: Path) -> Finding:
    """Whether nodes hold the image, else whether its registry has it, as far as this machine may ask that."""
    image = settings.image
    if "{sha}" in image:
        from foxrun import git

        try:
            image = image.replace("{sha}", git.resolve(directory, "HEAD"))
        except git.GitError:
            return Finding(part="image", state=OK, found=f"{image}: which, is known when a commit is")
    try:
        reference = parse(image)
    except UsageError as error:
        return Finding(part="image", state=BROKEN, found=str(error), remedy=error.remedy)
    having = [_name(node) for node in usable if holds(node, reference)]
    if having:
        return Finding(part="image", state=OK, found=f"{image} is on {', '.join(having)}")
    absent = f"{image} is on no node (of the 50 images that each tells of)"
    if reference.is_local:
        said, remedy = "no registry has it", "load it onto the nodes, or push it to a registry (docs/image.md)"
        return Finding(part="image", state=WARNING, found=f"{absent}, and {said}", remedy=remedy)
    try:
        digest = registry.digest_of(reference)
    except InfrastructureError as error:
        remedy = "push it (docker push); where a login is wanted: docker login, and image_pull_secrets for the nodes"
        return Finding(part="image", state=WARNING, found=f"{absent}, and {error}", remedy=remedy)
    return Finding(part="image", state=OK, found=f"{image} is {digest} at {reference.host}, where nodes will pull it")
