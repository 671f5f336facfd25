"""How every pod is set up: security, resources, place, retries."""

from __future__ import annotations

from decimal import Decimal

from hera.workflows import models as m

from workflows.parameters import RunParameters
from workflows.place import amount

OUT = "/foxrun/out"
IN = "/foxrun/in"
CODE = "/foxrun/code"
GPU_PRODUCT = "nvidia.com/gpu.product"  # set on nodes by NVIDIA's gpu-feature-discovery
PART = "foxrun.dev/part"  # which part of a workflow a pod is
# A trainer's own failure is final. These are not: a lost pod or node (status Error), Argo's executor that could not
# load or save artifacts (64, 65), and SIGTERM (143), which is all that most deletions, preemptions and drains leave. A
# passed `timeout` also ends in 143 and is told apart by its message alone ("... longer than the specified deadline").
INFRASTRUCTURE = (
    'lastRetry.status == "Error" || lastRetry.exitCode in ["64", "65"]'
    ' || (lastRetry.exitCode == "143" && !(lastRetry.message contains "deadline"))'
)


def container(
    p: RunParameters,
    *,
    image: str,
    command: list[str],
    args: list[str],
    resources: m.ResourceRequirements,
    env: list[m.EnvVar] | None = None,
    working_dir: str | None = None,
) -> m.Container:
    """A container that can write to its outputs and to /tmp, and to nothing else."""
    return m.Container(
        image=image,
        image_pull_policy=p.image_pull_policy,
        working_dir=working_dir,
        command=command,
        args=args,
        env=env,
        resources=resources,
        security_context=m.SecurityContext(
            allow_privilege_escalation=False,
            capabilities=m.Capabilities(drop=["ALL"]),
            privileged=False,
            read_only_root_filesystem=True,
            run_as_non_root=True,
        ),
        volume_mounts=[m.VolumeMount(name=name, mount_path=path) for name, path in _WRITABLE.items()],
    )


def volumes() -> list[m.Volume]:
    """The empty directories behind the writable paths; every pod gets its own."""
    return [m.Volume(name=name, empty_dir=m.EmptyDirVolumeSource()) for name in _WRITABLE]


def pod_security(p: RunParameters) -> m.PodSecurityContext:
    """Non-root by number, since an image may name no user, and the runtime's own system call filter."""
    return m.PodSecurityContext(
        run_as_non_root=True,
        run_as_user=p.user_id,
        run_as_group=p.user_id,
        fs_group=p.user_id,
        seccomp_profile=m.SeccompProfile(type="RuntimeDefault"),
    )


def executor(p: RunParameters) -> m.ExecutorConfig | None:
    """Argo's executor with a token of its own, of Secret NAME.service-account-token, so that trainers have none."""
    return None if p.executor_account is None else m.ExecutorConfig(service_account_name=p.executor_account)


def resources(p: RunParameters, *, processes: int, gpus: int) -> m.ResourceRequirements:
    """For so many processes side by side.

    Memory and GPUs are limited to what is requested, so a pod never uses more than it asked for and is no candidate for
    eviction. A core that nobody uses is taken: a small request fits on a small node, and the limit is no lower than it.
    """
    requests = {"cpu": times(p.cpu, processes), "memory": times(p.memory, processes)}
    if gpus:
        requests["nvidia.com/gpu"] = str(gpus)
    limits = {name: value for name, value in requests.items() if name != "cpu"}
    if p.cpu_limit is not None:
        limits["cpu"] = times(max(p.cpu_limit, p.cpu, key=amount), processes)
    return m.ResourceRequirements(requests=_quantities(requests), limits=_quantities(limits))


def small_resources() -> m.ResourceRequirements:
    """For a pod that sends a message."""
    return m.ResourceRequirements(
        requests={"cpu": m.Quantity("100m"), "memory": m.Quantity("256Mi")},
        limits={"cpu": m.Quantity("1"), "memory": m.Quantity("512Mi")},
    )


def _quantities(amounts: dict[str, str]) -> dict[str, m.Quantity]:
    return {name: m.Quantity(text) for name, text in amounts.items()}


def gpu_node(p: RunParameters) -> dict[str, str] | None:
    """The node selector of pods that train: one GPU model for all, since another model gives other bits."""
    # A template's selector takes the place of the Workflow's.
    return None if p.gpu_model is None else {**dict(p.node_selector), GPU_PRODUCT: p.gpu_model}


def beside_same_gpus(p: RunParameters) -> m.Affinity | None:
    """Where no GPU model is asked for: the legs of one workflow on nodes of one model, where the cluster can.

    Preferred and not required: a cluster whose nodes do not carry the label would never start a pod. What it could not
    bring about, the comparison calls incomparable.
    """
    if not p.gpus or p.gpu_model is not None:
        return None
    legs = m.LabelSelector(match_labels={"workflows.argoproj.io/workflow": "{{workflow.name}}", PART: "leg"})
    term = m.WeightedPodAffinityTerm(
        weight=100, pod_affinity_term=m.PodAffinityTerm(label_selector=legs, topology_key=GPU_PRODUCT)
    )
    return m.Affinity(pod_affinity=m.PodAffinity(preferred_during_scheduling_ignored_during_execution=[term]))


def tolerations(p: RunParameters) -> list[m.Toleration] | None:
    """The taints that the pods accept, of GPU nodes for example."""
    return [
        m.Toleration(key=t.key, operator=t.operator, value=t.value or None, effect=t.effect or None)
        for t in p.tolerations
    ] or None


def retries(p: RunParameters) -> m.RetryStrategy:
    """Retries after failures of the infrastructure alone.

    The backoff outlasts a minute without S3 (5 + 20 + 80 s). Argo waits for it before it asks ``expression``, so its
    first step also delays the news of every final failure.
    """
    return m.RetryStrategy(
        limit=m.IntOrString(str(p.retries)),
        retry_policy="Always",
        expression=INFRASTRUCTURE,
        backoff=m.Backoff(duration="5s", factor=m.IntOrString("4")),
    )


def times(quantity: str, factor: int) -> str:
    """A Kubernetes quantity ("500m", "1.5", "8Gi") times a whole number."""
    digits = quantity.rstrip("mkKMGTi")
    product = (Decimal(digits) * factor).normalize()
    return f"{product:f}{quantity[len(digits) :]}"


_WRITABLE = {"out": OUT, "tmp": "/tmp"}  # noqa: S108  (a volume of the pod's own)
