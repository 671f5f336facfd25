"""RunParameters: everything that decides a Workflow, checked before any template sees it.

Values are turned into strings here, never by YAML or Argo. What Argo or Kubernetes would change on the way is refused
(`{{`, NUL) or written so that it arrives unharmed (`$`, which Kubernetes expands in args and env).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields

# One argument of a process may have 128 KiB on Linux (MAX_ARG_STRLEN), and Argo hands the whole template to its
# executor in one environment variable.
JSON_LIMIT_BYTES = 60_000
WORKTREE = "worktree"

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?")
_DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NODE_LABEL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


class InvalidParameter(ValueError):
    """A value that no Workflow can be made of. ``parameter`` names it, ``remedy`` says what to do."""

    def __init__(self, parameter: str, problem: str, remedy: str) -> None:
        super().__init__(f"{parameter}: {problem}. {remedy}")
        self.parameter = parameter
        self.problem = problem
        self.remedy = remedy


class TemplateMarker(InvalidParameter):
    """A value that contains ``{{``: Argo would take it for a template tag, and it cannot be escaped."""


@dataclass(frozen=True, kw_only=True)
class Toleration:
    """A node taint that the pods accept. ``operator`` is Equal or Exists; an empty ``effect`` means every effect."""

    key: str
    operator: str = "Exists"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, kw_only=True)
class RunParameters:
    """What is run, how often it is checked, and where; ``workflows.train`` and ``workflows.regression_pair`` take it.

    Raises InvalidParameter (a ValueError), which names the parameter and says what to do.
    """

    # What runs
    sha: str  # commit, all digits (40, or 64 in a SHA-256 repository)
    tree: str  # hash of the files asked for
    branch: str = ""  # any text; "" when the commit is on none
    seed: int = 42
    mode: int = 1  # 0 fast, 1 pedantic, 2 control, 3 fast and exact
    steps: int
    eval_steps: int
    parameters: tuple[tuple[str, str], ...] = ()  # -p key=value, passed to the trainer as one JSON object of strings
    data_key: str | None = None  # artifact key of the input file, inputs/<sha256>/<file name>
    data_name: str | None = None  # the file's name; data_key and data_name come together
    worktree: str | None = None  # run the files at this path as they are (local engine only); sha is then HEAD
    against: str | None = None  # leg B runs this commit instead
    against_tree: str | None = None  # and this tree; they come together
    trainer: tuple[str, ...] = ("python", "-m", "trainer")
    # How it is checked
    gate: bool = True
    gate_steps: int = 50
    tolerance: str | None = None  # JSON text of a tolerance file
    rtol: float | None = None  # relative tolerance for checksums
    verify: bool = False  # compare also checks every file against its manifest
    # Where it runs
    image: str = "foxrun:{sha}"  # {sha} becomes the commit of the pod
    tools_image: str | None = None  # of compare and alert, which need foxrun but no trainer; default: image of sha
    cpu: str = "2"  # of a leg; the gate runs two processes and gets twice as much of both
    memory: str = "8Gi"
    gpus: int = 0
    gpu_model: str | None = None  # node label nvidia.com/gpu.product
    tolerations: tuple[Toleration, ...] = ()
    service_account: str = "foxrun"
    user_id: int = 65532  # the pods' user; never 0
    alerts_secret: str = "foxrun-alerts"  # noqa: S105  (a Secret's name) its key `urls` becomes FOXRUN_ALERTS
    gate_timeout_s: int = 1800  # of the twins; the gate's pod has some minutes more, to say why
    leg_timeout_s: int = 86_400
    compare_timeout_s: int = 3600
    alert_timeout_s: int = 300
    retries: int = 3  # after infrastructure failures only
    ttl_days: int = 30  # how long a finished Workflow is kept
    name: str | None = None  # any text; made legal, the original is kept in an annotation
    generate_name: str | None = None  # the same for a prefix; default: made of kind and commit

    def __post_init__(self) -> None:
        self._check_types_and_markers()
        self._check_code()
        self._check_numbers()
        self._check_inputs()
        self._check_place()

    def image_of(self, sha: str) -> str:
        """The image that runs commit ``sha``."""
        return self.image.replace("{sha}", sha)

    @property
    def parameters_json(self) -> str:
        """The trainer's parameters as JSON with sorted keys, safe in a container's args."""
        return json_for_args(dict(self.parameters))

    @property
    def tolerance_json(self) -> str | None:
        """The tolerance file as compact JSON, safe in a container's args."""
        return None if self.tolerance is None else json_for_args(json.loads(self.tolerance))

    def _check_types_and_markers(self) -> None:
        for field in fields(self):
            for text in _texts(getattr(self, field.name)):
                if "{{" in text:
                    raise TemplateMarker(
                        field.name,
                        f"{_short(text)} contains '{{{{', which Argo takes for a template tag and cannot escape",
                        "Put a space between the braces, or put the value into a file and pass it with -p data=FILE",
                    )
                _check_text(field.name, text)

    def _check_code(self) -> None:
        for name in ("sha", "tree", "against", "against_tree"):
            value = getattr(self, name)
            if value is not None and not _COMMIT.fullmatch(value):
                raise InvalidParameter(
                    name,
                    f"{_short(value)} is not a full hash of 40 lower-case hexadecimal digits",
                    f"Resolve it first: git rev-parse {'REVISION^{tree}' if 'tree' in name else 'REVISION'}",
                )
        if (self.against is None) != (self.against_tree is None):
            raise InvalidParameter("against", "needs against_tree, and the other way round", "Give both or neither")
        if not self.trainer or not self.trainer[0]:
            raise InvalidParameter("trainer", "is empty", "Give a command, such as python -m trainer")

    def _check_numbers(self) -> None:
        if self.mode not in (0, 1, 2, 3):
            raise InvalidParameter(
                "mode", f"{self.mode} is none of 0, 1, 2, 3", "0 is fast, 1 pedantic, 2 the control, 3 fast and exact"
            )
        least = {"seed": 0, "eval_steps": 0, "gpus": 0, "retries": 0}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type == "int":
                if type(value) is not int:
                    raise InvalidParameter(field.name, f"{value!r} is not a whole number", "Give an integer")
                if not least.get(field.name, 1) <= value < 2**63:
                    bound = least.get(field.name, 1)
                    raise InvalidParameter(field.name, f"{value} is out of range", f"Give {bound} to {2**63 - 1}")
            elif field.type == "bool" and type(value) is not bool:
                raise InvalidParameter(field.name, f"{value!r} is neither True nor False", "Give one of them")
        if self.rtol is not None and not (math.isfinite(self.rtol) and self.rtol >= 0):
            raise InvalidParameter("rtol", f"{self.rtol} is no tolerance", "Give a finite number from 0 on")

    def _check_inputs(self) -> None:
        keys = [key for key, _ in self.parameters]
        for key, value in self.parameters:
            if not key:
                raise InvalidParameter("parameters", "a key is empty", "Write -p key=value")
            if not isinstance(key, str) or not isinstance(value, str):
                raise InvalidParameter("parameters", f"{key!r}: {value!r} is not text", "Turn it into a string first")
            if keys.count(key) > 1:
                raise InvalidParameter("parameters", f"{_short(key)} is given twice", "Give each key once")
        _check_json("parameters", self.parameters_json)
        if self.tolerance is not None:
            try:
                parsed = json.loads(self.tolerance)
            except ValueError as error:
                raise InvalidParameter("tolerance", f"is not JSON ({error})", "Check the tolerance file") from error
            if not isinstance(parsed, dict):
                raise InvalidParameter("tolerance", "is no JSON object", "docs/verdicts.md shows one")
            _check_json("tolerance", json_for_args(parsed))
        if (self.data_key is None) != (self.data_name is None):
            raise InvalidParameter("data_key", "needs data_name, and the other way round", "Give both or neither")
        if self.data_key is not None and not _is_key(self.data_key):
            raise InvalidParameter(
                "data_key", f"{_short(self.data_key)} is no key inside the store", "Use inputs/<sha256>/<file name>"
            )
        if self.data_name is not None and (not self.data_name or "/" in self.data_name):
            raise InvalidParameter("data_name", f"{_short(self.data_name)} is no file name", "Give the last part alone")

    def _check_place(self) -> None:
        for name in ("image", "tools_image"):
            value = getattr(self, name)
            if value is not None and (not value or re.search(r"[\s{}]", value.replace("{sha}", ""))):
                raise InvalidParameter(
                    name, f"{_short(value)} is no image", "Write registry/name:{sha}; {sha} is the only placeholder"
                )
        for name in ("cpu", "memory"):
            if not _QUANTITY.fullmatch(getattr(self, name)):
                raise InvalidParameter(
                    name, f"{_short(getattr(self, name))} is no quantity", "Write 500m or 2 (cpu), 8Gi (memory)"
                )
        for name in ("service_account", "alerts_secret"):
            value = getattr(self, name)
            if len(value) > 253 or not _DNS_SUBDOMAIN.fullmatch(value):
                raise InvalidParameter(name, f"{_short(value)} is no Kubernetes name", "Use a-z, 0-9 and dashes")
        if self.gpu_model is not None and not _NODE_LABEL.fullmatch(self.gpu_model):
            raise InvalidParameter(
                "gpu_model",
                f"{_short(self.gpu_model)} is no label value",
                "Take one that `kubectl get nodes -L nvidia.com/gpu.product` shows",
            )
        if self.gpu_model is not None and self.gpus == 0:
            raise InvalidParameter("gpu_model", "is given but gpus is 0", "Ask for at least one GPU")
        if self.name == "" or self.generate_name == "":
            raise InvalidParameter("name", "is empty", "Give a name, or none to have one made")
        if self.name is not None and self.generate_name is not None:
            raise InvalidParameter("name", "and generate_name exclude each other", "Give one of them")
        for toleration in self.tolerations:
            if toleration.operator not in ("Equal", "Exists"):
                raise InvalidParameter("tolerations", f"operator {toleration.operator!r}", "Use Equal or Exists")
            if toleration.effect not in ("", "NoSchedule", "PreferNoSchedule", "NoExecute"):
                raise InvalidParameter(
                    "tolerations", f"effect {toleration.effect!r}", "Use NoSchedule, PreferNoSchedule or NoExecute"
                )


def json_for_args(value: Mapping[str, object]) -> str:
    """``value`` as compact JSON, keys sorted, that survives a container's args.

    Kubernetes expands ``$(NAME)`` and turns ``$$`` into ``$`` in args; JSON may spell the dollar ``\\u0024`` instead.
    """
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.replace("$", "\\u0024")


def escape_dollars(text: str) -> str:
    """``text`` for a command, args or env, where Kubernetes reads ``$$`` as ``$`` and expands ``$(NAME)``."""
    return text.replace("$", "$$")


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Toleration):
        return [value.key, value.operator, value.value, value.effect]
    if isinstance(value, tuple):
        return [text for item in value for text in _texts(item)]
    return []


def _check_text(name: str, text: str) -> None:
    if "\0" in text:
        raise InvalidParameter(name, "contains a NUL character", "No argument of a process can hold one; remove it")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidParameter(
            name, f"{_short(text)} is not valid Unicode (character {error.start})", "Write it in UTF-8"
        ) from error


def _check_json(name: str, text: str) -> None:
    if "{{" in text:  # only after parsing: the braces were written as \\u007b
        raise TemplateMarker(
            name, "contains '{{', which Argo takes for a template tag", "Put a space between the braces"
        )
    size = len(text.encode())
    if size > JSON_LIMIT_BYTES:
        raise InvalidParameter(
            name, f"takes {size} bytes of JSON, over {JSON_LIMIT_BYTES}", "Put what is large into the data file"
        )


def _is_key(key: str) -> bool:
    return bool(key) and not any(part in ("", ".", "..") for part in key.split("/"))


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
