"""Options that say what the pods of a cluster are given; each has a setting of the same name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from orchestrator.cli.options import Duration

F = TypeVar("F", bound=Callable[..., Any])

# Names of settings; the options are called the same, with dashes.
SINGLE = (
    "image", "tools_image", "image_digest", "image_pull_policy", "code", "git_url", "cpu", "memory", "cpu_limit",
    "gpus", "gpu_model", "priority_class", "service_account", "ttl",
)  # fmt: skip
# Options that may be repeated, and the settings that they fill.
REPEATED = {"node_selector": "node_selector", "toleration": "tolerations"}


def describe_pods(function: F) -> F:
    """What pods are given; submit and render share it."""
    for option in (
        click.option("--ttl", type=Duration(), help="Keep the completed workflow so long.  [setting ttl, 30d]"),
        click.option("--service-account", metavar="NAME", help="Of the pods.  [setting service_account, foxrun]"),
        click.option("--priority-class", metavar="NAME", help="Of the pods.  [setting priority_class]"),
        click.option(
            "--toleration",
            multiple=True,
            metavar="KEY[=VALUE][:EFFECT]",
            help="A taint that the pods accept; may be repeated.  [setting tolerations]",
        ),
        click.option(
            "--node-selector",
            multiple=True,
            metavar="KEY=VALUE",
            help="Only nodes with this label; may be repeated.  [setting node_selector]",
        ),
        click.option("--gpu-model", metavar="MODEL", help="Nodes with nvidia.com/gpu.product=MODEL alone."),
        click.option("--gpus", type=click.IntRange(min=0), help="GPUs of gate and legs, each.  [setting gpus, 0]"),
        click.option("--cpu-limit", metavar="CPUS", help="What a leg may take at most.  [setting cpu_limit, 2]"),
        click.option("--memory", metavar="BYTES", help="Of a leg; the gate gets twice as much.  [setting memory, 1Gi]"),
        click.option("--cpu", metavar="CPUS", help="What a leg asks for; the gate twice.  [setting cpu, 500m]"),
        click.option(
            "--git-url", metavar="URL", help="Of the repository, as pods reach it.  [setting git_url, origin]"
        ),
        click.option(
            "--code",
            type=click.Choice(["image", "git"]),
            help="Pods have the commit in their image, or git mounts it.  [setting code, image]",
        ),
        click.option(
            "--image-pull-policy",
            type=click.Choice(["IfNotPresent", "Always", "Never"]),
            help="As of Kubernetes.  [setting image_pull_policy]",
        ),
        click.option(
            "--image-digest",
            type=click.Choice(["auto", "require", "off"]),
            help="Ask which image the tag means.  [setting image_digest, auto]",
        ),
        click.option("--tools-image", metavar="IMAGE", help="Of compare and alert pods.  [setting tools_image, image]"),
        click.option("--image", metavar="IMAGE", help="What pods run; {sha} becomes the commit.  [setting image]"),
    ):
        function = option(function)
    return function


def of_pods(flags: dict[str, Any]) -> dict[str, Any]:
    """The settings that these options set."""
    return {name: flags[name] for name in SINGLE} | {setting: flags[name] for name, setting in REPEATED.items()}
