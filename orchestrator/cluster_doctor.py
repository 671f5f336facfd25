"""The doctor's checks of a cluster: each part that Workflows need there, with what to do when it is not well.

One check that the API server does not answer hides the rest; one that an account may not make is told as that. Two of
them write: an object into the bucket, and a Workflow that suspends itself at once; both are removed again.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

from orchestrator.doctor import BROKEN, OK, WARNING, Finding
from orchestrator.engines.argo import ArgoEngine
from orchestrator.engines.argo.argo_server import ArgoServerApi
from orchestrator.engines.argo.kubernetes_api import KubernetesApi
from orchestrator.engines.argo.opening import open_argo
from orchestrator.engines.argo.probes import DEFINITIONS, KubeProbes, Right, ServerProbes, taken_up_s
from orchestrator.engines.argo.transport import Forbidden
from orchestrator.errors import FoxrunError
from orchestrator.settings import Settings, home_directory

ARGO_NEEDED = (4, 0)
TEMPLATES = ("ci-gate", "regression-pair", "train")
CONTROLLER_S = 20.0
CLOCK_WARNING_S, CLOCK_BROKEN_S = 5.0, 300.0  # S3 refuses a request signed 15 minutes off, AWS's STS one of 5
_ARGO = "argoproj.io"
_APPLY = "kubectl apply --server-side -k infra/overlays/existing-argo (infra/README.md)"
_CRDS = (
    "kubectl apply --server-side -k "
    "'https://github.com/argoproj/argo-workflows/manifests/base/crds/full?ref=v4.0.5' (infra/README.md)"
)
# What a person or CI needs who submits, by what it is good for.
_RIGHTS: Mapping[str, tuple[Right, ...]] = {
    "submit": (Right("create", "workflows", _ARGO),),
    "list and watch": tuple(Right(verb, "workflows", _ARGO) for verb in ("get", "list", "watch")),
    "logs": (Right("get", "pods"), Right("list", "pods"), Right("get", "pods/log")),
    "stop, and the verdict's label": (Right("patch", "workflows", _ARGO),),
    "retry": (Right("update", "workflows", _ARGO),),
    "delete": (Right("delete", "workflows", _ARGO),),
    "submit --from": (Right("get", "workflowtemplates", _ARGO),),
}
_EXECUTOR = (Right("create", "workflowtaskresults", _ARGO), Right("patch", "workflowtaskresults", _ARGO))


def examine_cluster(settings: Settings, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Every check of the cluster that the settings name, one after another; FoxrunError is turned into a finding."""
    try:
        engine = open_argo(settings, home_directory(settings), environ, store=None)
        namespace = engine.api.namespace
    except FoxrunError as error:
        yield trouble("cluster", error)
        return
    reached = True
    if isinstance(engine.api, KubernetesApi):
        probes = KubeProbes(engine.api.transport, namespace)
        reached = yield from _api(probes, engine.api.where)
        if reached:
            yield from guarded("argo", _argo(probes))
            yield from guarded("permissions", _permissions(probes, settings.service_account))
            yield from guarded("accounts", _account(probes, settings.service_account))
            yield from guarded("templates", _templates(probes))
    if engine.server is not None:
        reached = (yield from _argo_server(engine.server, alone=engine.server is engine.api)) and reached
    if reached:
        yield from guarded("controller", examine_controller(engine))
    yield from guarded("bucket", examine_bucket(settings))
    if reached and isinstance(engine.api, KubernetesApi):
        from orchestrator.node_doctor import examine_nodes

        yield from guarded("nodes", examine_nodes(engine.api, settings, Path.cwd()))


def trouble(part: str, error: FoxrunError, *, state: str = BROKEN) -> Finding:
    """A finding that says what the server said."""
    return Finding(part=part, state=state, found=str(error), remedy=error.remedy or "see docs/argo-engine.md")


def guarded(part: str, findings: Iterator[Finding]) -> Iterator[Finding]:
    """The findings, the last of them an error where there was one; what we may not see is a warning."""
    try:
        yield from findings
    except Forbidden as error:
        yield trouble(part, error, state=WARNING)
    except FoxrunError as error:
        yield trouble(part, error)


def _api(probes: KubeProbes, where: str) -> Generator[Finding, None, bool]:
    """Whether there is an answer at all, the namespace, and whether both clocks agree. Returns whether to go on."""
    try:
        version = probes.version()
        yield Finding(part="cluster", state=OK, found=f"Kubernetes {version}, {where}" + _as(probes.me()))
        yield clock_finding("cluster clock", "the API server's", probes.clock_ahead_s())
        there = probes.object("") is not None
    except Forbidden:
        there = True  # few accounts may look at namespaces
    except FoxrunError as error:
        yield trouble("cluster", error)
        return False
    if not there:
        yield Finding(
            part="cluster", state=BROKEN, found=f"there is no namespace {probes.namespace}",
            remedy=f"set namespace (FOXRUN_NAMESPACE) to the one of our workflows, or make it: {_APPLY}",
        )  # fmt: skip
    return there


def _as(name: str) -> str:
    return f", as {name}" if name else ""


def clock_finding(part: str, whose: str, ahead_s: float) -> Finding:
    """What a difference between two clocks is worth."""
    if abs(ahead_s) < CLOCK_WARNING_S:
        return Finding(part=part, state=OK, found=f"{whose} agrees with this machine's")
    return Finding(
        part=part,
        state=BROKEN if abs(ahead_s) >= CLOCK_BROKEN_S else WARNING,
        found=f"{whose} is {abs(ahead_s):.0f} s {'ahead of' if ahead_s > 0 else 'behind'} this machine's",
        remedy="set both by NTP (timedatectl set-ntp true; chronyc makestep): tokens and S3's signatures carry times",
    )


def _argo(probes: KubeProbes) -> Iterator[Finding]:
    """The CRDs, and what they say of Argo's release."""
    missing = [kind for kind in DEFINITIONS if kind not in probes.argo_kinds()]
    if missing:
        found = f"the cluster has no {', '.join(missing)} of argoproj.io/v1alpha1"
        yield Finding(part="argo", state=BROKEN, found=found, remedy=f"install Argo Workflows 4.0: {_CRDS}")
        return
    try:
        said, good = release(probes.definition("cronworkflows"))
    except Forbidden:
        said, good = "v1alpha1; this account may not see which release's", True
    yield Finding(
        part="argo",
        state=OK if good else BROKEN,
        found=f"CRDs {said}",
        remedy="" if good else f"foxrun is built on Argo Workflows 4.0 and newer: {_CRDS}",
    )


def release(definition: Mapping[str, Any]) -> tuple[str, bool]:
    """(what the CRD of CronWorkflows tells, whether that will do). Argo 4.0 took the field `schedule` out of it."""
    versions = [version for version in definition["spec"]["versions"] if version.get("served")]
    names = ", ".join(str(version["name"]) for version in versions)
    fields = versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"].get("properties") or {}
    if not fields:
        return f"{names}, minimal: they do not say which release's", True
    if "schedule" in fields:
        return f"{names}, of a release before 4.0", False
    return f"{names}, full, of 4.0 or newer", True


def _permissions(probes: KubeProbes, account: str) -> Iterator[Finding]:
    """What we may do, and what the pods' account may, each by the API server's own answer."""
    good = []
    for purpose, rights in _RIGHTS.items():
        refused = [right for right in rights if not probes.may(right)]
        if not refused:
            good.append(purpose)
            continue
        yield Finding(
            part="permissions",
            state=BROKEN if purpose in ("submit", "list and watch") else WARNING,
            found=f"no {purpose}: may not {', '.join(map(str, refused))} in namespace {probes.namespace}",
            remedy="use the account foxrun-submitter, or bind its Role to yours (infra/base/accounts.yaml)",
        )
    if good:
        yield Finding(part="permissions", state=OK, found=f"{'; '.join(good)} in namespace {probes.namespace}")
    try:
        refused = [right for right in _EXECUTOR if not probes.account_may(account, right)]
    except Forbidden:
        return
    if refused:
        yield Finding(
            part="permissions", state=BROKEN,
            found=f"the pods' account {account} may not {', '.join(map(str, refused))}: no part can report its end",
            remedy=f"bind the Role foxrun-workflow-pods to it: {_APPLY}",
        )  # fmt: skip


def _account(probes: KubeProbes, account: str) -> Iterator[Finding]:
    if not probes.may(Right("get", "serviceaccounts")):
        yield Finding(
            part="accounts", state=OK, found=f"{account} runs the pods; this account may not see whether it is there"
        )
        return
    there = probes.object(f"serviceaccounts/{account}") is not None
    yield Finding(
        part="accounts",
        state=OK if there else BROKEN,
        found=f"{account} runs the pods" if there else f"namespace {probes.namespace} has no service account {account}",
        remedy="" if there else f"{_APPLY}; or set service_account to one that it has",
    )


def _templates(probes: KubeProbes) -> Iterator[Finding]:
    there = probes.templates()
    missing = [name for name in TEMPLATES if name not in there]
    yield Finding(
        part="templates",
        state=WARNING if missing else OK,
        found=f"no WorkflowTemplate {', '.join(missing)}: nothing to start from the Argo UI or by a webhook"
        if missing
        else ", ".join(sorted(there)),
        remedy=_APPLY if missing else "",
    )


def _argo_server(server: ArgoServerApi, *, alone: bool) -> Generator[Finding, None, bool]:
    """That it answers us, in a version that will do, and nobody without a token. Returns whether it answers."""
    probes = ServerProbes(server.transport, server.namespace)
    # Beside the Kubernetes API it only retries and reads artifacts.
    bad = BROKEN if alone else WARNING
    try:
        version = probes.version()
        server.page("", limit=1)
    except FoxrunError as error:
        yield trouble("argo-server", error, state=bad)
        return not alone
    old = _numbers(version) < ARGO_NEEDED
    yield Finding(
        part="argo-server",
        state=BROKEN if old else OK,
        found=f"Argo Workflows {version} at {server.transport.access.host}",
        remedy="foxrun is built on Argo Workflows 4.0 and newer: upgrade it" if old else "",
    )
    if probes.lets_in_anybody():
        yield Finding(
            part="argo-server", state=BROKEN,
            found="it answers without a token (auth mode server): everybody who reaches it has its rights",
            remedy="start argo-server with --auth-mode=client alone (infra/argo/server.yaml)",
        )  # fmt: skip
    else:
        yield Finding(part="argo-server", state=OK, found="it answers nobody without a token (auth mode client or sso)")
    if alone:
        yield clock_finding("cluster clock", "argo-server's", server.transport.clock_ahead_s("/api/v1/version"))
    return True


def _numbers(version: str) -> tuple[int, ...]:
    """(4, 0, 5) of v4.0.5; unknown counts as new enough."""
    parts = version.removeprefix("v").split("+")[0].split("-")[0].split(".")
    return tuple(int(part) for part in parts) if all(part.isdigit() for part in parts) else ARGO_NEEDED


def examine_controller(engine: ArgoEngine, patience_s: float = CONTROLLER_S) -> Iterator[Finding]:
    """Whether Argo's controller runs and watches our namespace, tried with a Workflow that suspends itself."""
    took = taken_up_s(engine.api, patience_s=patience_s)
    yield Finding(
        part="controller",
        state=BROKEN if took is None else OK,
        found=f"it took up a workflow within {took:.1f} s"
        if took is not None
        else f"no controller took up a workflow within {patience_s:g} s",
        remedy=""
        if took is not None
        else f"kubectl get pods -A -l app=workflow-controller; it must run and watch namespace {engine.api.namespace}",
    )


def examine_bucket(settings: Settings) -> Iterator[Finding]:
    """A write, a read and a removal with the credentials that we have; pods have their own, from the Secret."""
    if not settings.s3_bucket:
        yield Finding(
            part="bucket", state=WARNING, found="none is set: no -p data=FILE, and reports through argo-server alone",
            remedy="set s3_bucket (FOXRUN_S3_BUCKET) to that of Argo's artifact repository, and s3_endpoint",
        )  # fmt: skip
        return
    from orchestrator.places import Places

    store = Places(settings).store()
    store.delays = (1.0,)
    key, data = f"foxrun-doctor/{os.urandom(8).hex()}", os.urandom(32)
    store.write(key, data)
    try:
        same = store.read(key) == data
    finally:
        store.delete(key)
    where = f"{settings.s3_bucket} at {store.place.host}"
    yield Finding(
        part="bucket",
        state=OK if same else BROKEN,
        found=f"{where}: written, read and removed" if same else f"{where} gave back other bytes than were written",
        remedy="" if same else "see the server's log; something between changes what is stored",
    )
