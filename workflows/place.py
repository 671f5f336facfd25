"""Where pods run and what they may take: images, resources, nodes, accounts. Checked before any template sees it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from workflows.values import InvalidParameter, short

if TYPE_CHECKING:
    from workflows.parameters import RunParameters

_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)(m|k|Ki|M|Mi|G|Gi|T|Ti)?")
_UNITS = {
    "m": Decimal("0.001"), "": Decimal(1), "k": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9),
    "T": Decimal(10**12), "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40),
}  # fmt: skip
_DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
PULL_POLICIES = ("IfNotPresent", "Always", "Never")


@dataclass(frozen=True, kw_only=True)
class Toleration:
    """A node taint that the pods accept. ``operator`` is Equal or Exists; an empty ``effect`` means every effect."""

    key: str
    operator: str = "Exists"
    value: str = ""
    effect: str = ""


def toleration(text: str) -> Toleration:
    """A toleration as kubectl writes taints: ``KEY``, ``KEY:EFFECT``, ``KEY=VALUE:EFFECT``."""
    taint, _, effect = text.partition(":")
    key, equal, value = taint.partition("=")
    return Toleration(key=key, operator="Equal" if equal else "Exists", value=value, effect=effect)


def amount(quantity: str) -> Decimal:
    """A Kubernetes quantity ("500m", "1.5", "8Gi") as a number. Raises ValueError."""
    match = _QUANTITY.fullmatch(quantity)
    if match is None:
        raise ValueError(f"{quantity!r} is no quantity")
    return Decimal(match[1]) * _UNITS[match[2] or ""]


def check_place(p: RunParameters) -> None:
    """Raise InvalidParameter for what no cluster could take."""
    _check_images(p)
    _check_resources(p)
    _check_names(p)
    _check_nodes(p)
    _check_git(p)


def _check_images(p: RunParameters) -> None:
    for name in ("image", "tools_image"):
        value = getattr(p, name)
        if value is not None and (not value or re.search(r"[\s{}]", value.replace("{sha}", ""))):
            raise InvalidParameter(
                name, f"{short(value)} is no image", "Write registry/name:{sha}; {sha} is the only placeholder"
            )
    for image, digest in p.digests:
        if not _DIGEST.fullmatch(digest):
            raise InvalidParameter("digests", f"{short(digest)} of {image} is no digest", "Give sha256:<64 digits>")
    if p.image_pull_policy not in PULL_POLICIES:
        raise InvalidParameter(
            "image_pull_policy", f"{short(p.image_pull_policy)} is none", f"Use one of {', '.join(PULL_POLICIES)}"
        )


def _check_resources(p: RunParameters) -> None:
    for name in ("cpu", "memory", "cpu_limit"):
        value = getattr(p, name)
        if value is not None and (not _QUANTITY.fullmatch(value) or not amount(value)):
            raise InvalidParameter(name, f"{short(value)} is no quantity", "Write 500m or 2 (cpu), 8Gi (memory)")


def _check_names(p: RunParameters) -> None:
    names = {
        **{"service_account": p.service_account, "alerts_account": p.alerts_account},
        "executor_account": p.executor_account,
        **{"alerts_secret": p.alerts_secret, "git_secret": p.git_secret},
    }
    pairs = [
        *names.items(),
        ("priority_class", p.priority_class),
        *(("image_pull_secrets", s) for s in p.image_pull_secrets),
    ]
    for name, value in pairs:
        if value is not None and (len(value) > 253 or not _DNS_SUBDOMAIN.fullmatch(value)):
            raise InvalidParameter(name, f"{short(value)} is no Kubernetes name", "Use a-z, 0-9 and dashes")
    if p.name == "" or p.generate_name == "":
        raise InvalidParameter("name", "is empty", "Give a name, or none to have one made")
    if p.name is not None and p.generate_name is not None:
        raise InvalidParameter("name", "and generate_name exclude each other", "Give one of them")


def _check_nodes(p: RunParameters) -> None:
    if p.gpu_model is not None and (not p.gpu_model or not _LABEL_VALUE.fullmatch(p.gpu_model)):
        raise InvalidParameter(
            "gpu_model",
            f"{short(p.gpu_model)} is no label value",
            "Take one that `kubectl get nodes -L nvidia.com/gpu.product` shows",
        )
    if p.gpu_model is not None and p.gpus == 0:
        raise InvalidParameter("gpu_model", "is given but gpus is 0", "Ask for at least one GPU")
    for key, value in p.node_selector:
        if not _LABEL_KEY.fullmatch(key) or not _LABEL_VALUE.fullmatch(value):
            raise InvalidParameter(
                "node_selector",
                f"{short(f'{key}={value}')} is no label",
                "`kubectl get nodes --show-labels` shows them",
            )
        if [other for other, _ in p.node_selector].count(key) > 1:
            raise InvalidParameter("node_selector", f"{short(key)} is given twice", "A node has one value of it")
    for item in p.tolerations:
        if item.operator not in ("Equal", "Exists"):
            raise InvalidParameter("tolerations", f"operator {item.operator!r}", "Use Equal or Exists")
        if item.effect not in ("", "NoSchedule", "PreferNoSchedule", "NoExecute"):
            raise InvalidParameter(
                "tolerations", f"effect {item.effect!r}", "Use NoSchedule, PreferNoSchedule or NoExecute"
            )


def _check_git(p: RunParameters) -> None:
    if p.git_secret is not None and p.git_url is None:
        raise InvalidParameter("git_secret", "needs git_url", "Give the repository's URL too")
    if p.git_url is not None and not re.match(r"(https?|ssh|git)://[^\s/]+|[^\s/:]+@[^\s:]+:\S", p.git_url):
        raise InvalidParameter(
            "git_url", f"{short(p.git_url)} is no URL that pods can reach", "Write https://HOST/PATH or git@HOST:PATH"
        )
