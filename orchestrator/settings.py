"""Settings: ``foxrun.yaml`` (searched upward from here), then ``FOXRUN_*``, then flags; the last one given wins.

Read once, at the edge, into one frozen object that also remembers which source won. Every setting is documented where
it is declared: unit, meaning and why it has its default.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.errors import UsageError
from orchestrator.printable import without_password
from orchestrator.setting_values import PARSERS

FILE_NAME = "foxrun.yaml"

# Variables that foxrun hands to a trainer or that are for its developers: no settings, and no misspelt settings either.
NOT_SETTINGS = frozenset(
    f"FOXRUN_{name}"
    for name in (
        *(
            "LEG",
            "SHA",
            "TREE",
            "TREE_RUN",
            "COMMIT_RUN",
            "BRANCH",
            "POISON",
            "TERMINATION_LOG",
            "POD",
            "DEBUG",
            "REGENERATE",
            "HOOK",
        ),
        *("S3_POD_ENDPOINT", "METRICS_URL", "HOST_TOKEN", "EVENT"),
    )
)

HOOK_PATHS = (
    *("*.py", "*.pyx", "*.cu", "*.cuh", "*.c", "*.cc", "*.cpp", "*.h", "*.hpp", "*.toml", "*.lock"),
    *("*requirements*.txt", "*constraints*.txt", ":(exclude)docs", ":(exclude)tests"),
)


def _setting(default: Any, *, kind: str, unit: str, why: str, secret: bool = False) -> Any:
    return field(default=default, metadata={"kind": kind, "unit": unit, "why": why, "secret": secret})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a person or a machine has set once instead of on every command line."""

    engine: str = _setting("local", kind="engine", unit="", why="where workflows run; a cluster only when asked for")
    home: str = _setting("", kind="text", unit="path", why="state of the local engine; empty: the user state directory")
    trainer: str = _setting(
        "python -m trainer",
        kind="words",
        unit="command",
        why="the program that is gated and run; ours unless you have one",
    )
    seed: int = _setting(42, kind="count", unit="", why="the seed of a submit that names none")
    mode: int = _setting(
        1, kind="mode", unit="", why="1 pedantic is exact everywhere; 3 is fast and exact, 0 promises nothing"
    )
    steps: int = _setting(200, kind="count", unit="steps", why="training steps: minutes on two CPU cores")
    eval_steps: int = _setting(50, kind="count", unit="steps", why="evaluation steps after training")
    gate_steps: int = _setting(
        50, kind="positive", unit="steps", why="steps of each gate twin: random faults part well before, at small cost"
    )
    gate_timeout: float = _setting(
        1800.0, kind="duration", unit="s", why="a gate that takes longer hangs; 50 steps take minutes even on one core"
    )
    timeout: float = _setting(86400.0, kind="duration", unit="s", why="a leg that takes longer is stopped: a day")
    deadline: float = _setting(172800.0, kind="duration", unit="s", why="following ends after it, the workflow goes on")
    tolerance: str = _setting(
        "", kind="text", unit="path", why="tolerance file of a pair; none, since bits are the bar"
    )
    hook_paths: tuple[str, ...] = _setting(
        HOOK_PATHS, kind="pathspecs", unit="pathspecs", why="staged files that can change bits, as of `git diff --`"
    )
    hook_check: str = _setting(
        "",
        kind="words",
        unit="options",
        why="of the hook's `foxrun check`, such as -p envs=16 --steps 20; empty: all as set",
    )
    hook_timeout: float = _setting(300.0, kind="duration", unit="s", why="a commit waits for it")
    goldens: str = _setting("goldens", kind="folder", unit="path", why="from the root on: reviewed with the code")
    alerts: tuple[str, ...] = _setting(
        (),
        kind="urls",
        unit="apprise URLs",
        why="channels, NAME: URL or a list of URLs; nobody hears anything unless named",
        secret=True,
    )
    alert_rules: tuple[str, ...] = _setting(
        (), kind="rules", unit="", why="which verdicts of which branches go to which channels, and when; docs/alerts.md"
    )
    alert_state: str = _setting(
        "foxrun-alert-state",
        kind="name",
        unit="ConfigMap",
        why="where alerts of a cluster remember what was told; locally a file below home",
    )
    alerts_account: str = _setting(
        "", kind="text", unit="", why="account of the pod that alerts, which may update alert_state; empty: the pods'"
    )
    host_api: str = _setting(
        "", kind="api", unit="URL", why="GitHub Enterprise's (.../api/v3), a GitLab's (.../api/v4); empty: the public"
    )
    origin: str = _setting(
        "", kind="text", unit="URL", why="address of the repository at its host, for statuses; empty: git's origin"
    )
    status_kinds: tuple[str, ...] = _setting(
        ("ci-gate", "nightly", "seed-sweep"),
        kind="kinds",
        unit="workflows",
        why="whose commits get a status and a comment, where FOXRUN_HOST_TOKEN is set",
    )
    workflow_url: str = _setting(
        "",
        kind="text",
        unit="URL",
        why="where people open a workflow: https://argo.example/workflows/{namespace}/{name}; empty: no link",
    )
    report_url: str = _setting(
        "",
        kind="text",
        unit="URL",
        why="where people open a cluster's report: {uid}, {name}, {namespace}, {node} are filled in; docs/alerts.md",
    )
    s3_endpoint: str = _setting(
        "", kind="endpoint", unit="URL", why="the S3 server; empty: AWS's own, or what AWS_ENDPOINT_URL says"
    )
    s3_bucket: str = _setting(
        "", kind="text", unit="", why="where inputs and artifacts lie; s3://BUCKET/... names others"
    )
    s3_region: str = _setting(
        "", kind="text", unit="", why="signed into each request; empty: the profile's, AWS_DEFAULT_REGION, or us-east-1"
    )
    s3_addressing: str = _setting(
        "auto",
        kind="addressing",
        unit="",
        why="bucket in the path, or virtual: in the host name; auto: virtual on AWS, else path, which needs no DNS",
    )
    namespace: str = _setting("", kind="text", unit="", why="of our workflows; empty: the context's, then default")
    context: str = _setting(
        "", kind="text", unit="", why="of the kubeconfig; naming one selects the argo engine; empty: the current one"
    )
    kubeconfig: str = _setting("", kind="text", unit="path", why="empty: KUBECONFIG, ~/.kube/config, or in-cluster")
    argo_server: str = _setting(
        "",
        kind="text",
        unit="URL",
        why="argo-server to use instead of the Kubernetes API; naming one selects the argo engine; empty: none",
    )
    argo_token: str = _setting(
        "", kind="text", unit="", why="sent to argo-server; better in a variable than in a file", secret=True
    )
    argo_token_file: str = _setting(
        "", kind="text", unit="path", why="read anew when the token in it has expired; empty: the variable ARGO_TOKEN"
    )
    argo_verify: bool = _setting(True, kind="flag", unit="", why="check argo-server's certificate")
    unschedulable: float = _setting(
        600.0,
        kind="duration",
        unit="s",
        why="following ends when nothing can start for so long; new nodes take minutes",
    )
    image: str = _setting(
        "foxrun:{sha}", kind="text", unit="", why="what pods run on a cluster; {sha} becomes the commit"
    )
    tools_image: str = _setting("", kind="text", unit="", why="of compare and alert pods; empty: image")
    image_digest: str = _setting(
        "auto",
        kind="digest",
        unit="",
        why="ask at submit which image a tag means; auto: a note where nobody knows, require: an error, off: not asked",
    )
    image_pull_policy: str = _setting("IfNotPresent", kind="pull_policy", unit="", why="as of Kubernetes")
    image_pull_secrets: tuple[str, ...] = _setting(
        (), kind="names", unit="Secrets", why="for a private registry; empty: the service account's"
    )
    code: str = _setting(
        "image", kind="code", unit="", why="where pods have the commit from: their image, or git, which mounts it"
    )
    git_url: str = _setting(
        "", kind="git_url", unit="URL", why="of the repository, as pods reach it; empty: that of origin"
    )
    git_secret: str = _setting(
        "", kind="text", unit="Secret", why="username and password, or ssh-privatekey, for git_url; empty: none"
    )
    cpu: str = _setting("500m", kind="quantity", unit="CPUs", why="what a leg asks for; the gate, two processes, twice")
    cpu_limit: str = _setting(
        "2", kind="limit", unit="CPUs", why="what a leg may take where cores are free; the gate twice; empty: no limit"
    )
    memory: str = _setting(
        "1Gi", kind="quantity", unit="bytes", why="request and limit of a leg, the gate twice; ours needs 0.4 GB"
    )
    gpus: int = _setting(0, kind="count", unit="GPUs", why="of gate and legs, each")
    gpu_model: str = _setting(
        "", kind="text", unit="", why="a node's nvidia.com/gpu.product: another model gives other bits; empty: any"
    )
    node_selector: tuple[str, ...] = _setting((), kind="labels", unit="KEY=VALUE", why="nodes for all pods; empty: any")
    tolerations: tuple[str, ...] = _setting(
        (), kind="tolerations", unit="KEY[=VALUE][:EFFECT]", why="taints that pods accept, as of GPU nodes"
    )
    priority_class: str = _setting("", kind="text", unit="", why="of all pods; empty: the cluster's default")
    service_account: str = _setting("foxrun", kind="text", unit="", why="of the pods; infra/ makes it")
    executor_account: str = _setting(
        "",
        kind="text",
        unit="",
        why="only Argo's executor gets its token, of Secret NAME.service-account-token; empty: every container has one",
    )
    user_id: int = _setting(65532, kind="positive", unit="", why="of the pods, never 0; that of our image")
    alerts_secret: str = _setting(
        "foxrun-alerts", kind="text", unit="Secret", why="its key urls holds the pods' alert channels; it may be absent"
    )
    retries: int = _setting(3, kind="count", unit="", why="of a pod, after failures of the infrastructure alone")
    ttl: float = _setting(
        2_592_000.0, kind="duration", unit="s", why="how long a cluster keeps a completed workflow: 30 days"
    )
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)

    def given(self, *names: str) -> tuple[str, ...]:
        """Those of these settings that the command line gave, as it gave them."""
        options = {name: "--" + name.replace("_", "-") for name in names}
        chosen = [name for name in names if self.sources.get(name) == options[name]]
        return tuple(word for name in chosen for word in (options[name], str(getattr(self, name))))


FIELDS = tuple(f for f in dataclasses.fields(Settings) if f.metadata)
NAMES = tuple(f.name for f in FIELDS)
# Whoever names a cluster in foxrun's own settings means it; a kubeconfig that happens to be there selects nothing.
SELECTING = ("argo_server", "context")


def load_settings(directory: Path, environ: Mapping[str, str], flags: Mapping[str, Any] | None = None) -> Settings:
    """The settings that hold in ``directory``; ``flags`` are the command line's (None: not given).

    Raises:
        UsageError: an unknown key or a value that cannot be read, with file and line or the variable's name.
    """
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    file = find_file(directory)
    if file is not None:
        for name, (value, line) in _read_file(file).items():
            values[name] = parse_value(name, value, f"{file}, line {line}")
            sources[name] = f"{file}:{line}"
    for name in NAMES:
        variable = "FOXRUN_" + name.upper()
        if name == "mode" and variable not in environ and "FOXHUNT_DETERMINISTIC" in environ:
            variable = "FOXHUNT_DETERMINISTIC"
        if environ.get(variable):
            values[name] = parse_value(name, environ[variable], variable)
            sources[name] = variable
    for name, value in (flags or {}).items():
        if name in NAMES and value not in (None, ()):
            option = "--" + name.replace("_", "-")
            values[name] = parse_value(name, value, option) if isinstance(value, str | tuple) else value
            sources[name] = option
    for name in SELECTING:
        if "engine" not in values and values.get(name):
            values["engine"] = "argo"
            sources["engine"] = sources[name]
    return Settings(**values, sources=sources, notes=_misspelt_variables(environ))


def find_file(directory: Path) -> Path | None:
    """The nearest ``foxrun.yaml`` in ``directory`` or above it."""
    for folder in (directory, *directory.parents):
        if (folder / FILE_NAME).is_file():
            return folder / FILE_NAME
    return None


def _read_file(file: Path) -> dict[str, tuple[Any, int]]:
    import yaml  # costs 20 ms, and most directories have no file

    from orchestrator import yaml_input

    try:
        text = yaml_input.read_text(file)
        root, loaded = yaml_input.compose(text), yaml_input.load(text) or {}
    except yaml_input.NotYaml as error:
        raise UsageError(f"{file} cannot be read: {error}", remedy="mend or remove it") from None
    if not isinstance(loaded, dict) or (root is not None and not isinstance(root, yaml.MappingNode)):
        raise UsageError(f"{file} must hold settings, one `name: value` a line", remedy="foxrun config lists them")
    found: dict[str, tuple[Any, int]] = {}
    for key, value in root.value if root is not None else []:
        line = key.start_mark.line + 1
        name = str(key.value).replace("-", "_")
        if name not in NAMES:
            raise UsageError(
                f"{file}, line {line}: unknown setting {key.value!r}{did_you_mean(name, NAMES)}",
                remedy="foxrun config lists all settings",
            )
        if name in found:
            raise UsageError(f"{file}, line {line}: {key.value!r} is set twice", remedy="remove one of the two")
        if (twice := yaml_input.key_given_twice(value)) is not None:
            raise UsageError(
                f"{file}, line {twice[1]}: {twice[0]!r} stands twice in {key.value}", remedy="remove one of the two"
            )
        found[name] = (loaded[key.value], line)
    return found


def parse_value(name: str, value: Any, where: str) -> Any:
    """``value`` as the setting ``name`` takes it; ``where`` names its source in the error."""
    metadata = next(f for f in FIELDS if f.name == name).metadata
    try:
        return PARSERS[metadata["kind"]](value)
    except (TypeError, ValueError) as error:
        hidden = metadata["secret"] or metadata["kind"] in ("endpoint", "git_url")
        shown = "the value" if hidden else without_password(repr(value))  # they may hold a password
        raise UsageError(f"{where}: {name} cannot be {shown}: {error}", remedy="foxrun config explains it") from None


def home_directory(settings: Settings) -> Path:
    """Where the local engine keeps its state: absolute, not created here."""
    if settings.home:
        return Path(settings.home).expanduser().absolute()
    import platformdirs

    return platformdirs.user_state_path("foxrun").absolute()


def did_you_mean(word: str, known: tuple[str, ...] | list[str]) -> str:
    """``"; did you mean X?"`` for the nearest of ``known``, else nothing."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def _misspelt_variables(environ: Mapping[str, str]) -> tuple[str, ...]:
    known = ["FOXRUN_" + name.upper() for name in NAMES]
    strange = sorted(v for v in environ if v.startswith("FOXRUN_") and v not in known and v not in NOT_SETTINGS)
    return tuple(f"{v} is no setting{did_you_mean(v, known)}" for v in strange)
