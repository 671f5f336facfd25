"""RunParameters: everything that decides a Workflow, checked before any template sees it.

Values are turned into strings here, never by YAML or Argo. What Argo or Kubernetes would change on the way is refused
(`{{`, NUL) or written so that it arrives unharmed (`$`, which Kubernetes expands in args and env).
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, fields

from workflows.place import Toleration as Toleration
from workflows.place import check_place
from workflows.values import JSON_LIMIT_BYTES as JSON_LIMIT_BYTES
from workflows.values import InvalidParameter as InvalidParameter
from workflows.values import TemplateMarker as TemplateMarker
from workflows.values import check_json, check_text, is_key, json_for_args, short
from workflows.values import escape_dollars as escape_dollars

WORKTREE = "worktree"
DAY_S = 86_400

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


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
    tie_break: bool = False  # on drift a third leg names the odd one out
    goldens: str | None = None  # folder of the commit that holds goldens, which a training is held against
    seeds: tuple[int, ...] = ()  # of a sweep
    parallel: int = 2  # pods of a sweep that run at a time
    # Where it runs
    image: str = "foxrun:{sha}"  # {sha} becomes the commit of the pod
    tools_image: str | None = None  # of compare and alert, which need foxrun but no trainer; default: image of sha
    digests: tuple[tuple[str, str], ...] = ()  # of images: reference without digest -> sha256:...
    image_pull_policy: str = "IfNotPresent"
    image_pull_secrets: tuple[str, ...] = ()
    git_url: str | None = None  # the commit is mounted from this repository; None: it is in the image
    git_secret: str | None = None  # username and password, or ssh-privatekey
    cpu: str = "500m"  # request of a leg; the gate runs two processes and gets twice as much of all three
    cpu_limit: str | None = "2"
    memory: str = "1Gi"  # request and limit
    gpus: int = 0
    gpu_model: str | None = None  # node label nvidia.com/gpu.product
    node_selector: tuple[tuple[str, str], ...] = ()  # of all pods
    tolerations: tuple[Toleration, ...] = ()
    priority_class: str | None = None
    service_account: str = "foxrun"
    user_id: int = 65532  # the pods' user; never 0
    origin: str = ""  # the repository's address at its host, for the commit's status; "" where it has none
    alert_variables: tuple[tuple[str, str], ...] = ()  # of the alert pod; what is not here is in alerts_secret
    executor_account: str | None = None  # whose token Argo's executor alone gets; None: all containers have the pod's
    alerts_account: str | None = None  # of the alert pod, which may update the state of alerts; None: service_account
    alerts_secret: str = "foxrun-alerts"  # noqa: S105  (a Secret's name) its key `urls` becomes FOXRUN_ALERTS
    gate_timeout_s: int = 1800  # of the twins; the gate's pod has some minutes more, to say why
    leg_timeout_s: int = 86_400
    compare_timeout_s: int = 3600
    alert_timeout_s: int = 300
    retries: int = 3  # after infrastructure failures only
    ttl_s: int = 30 * DAY_S  # how long a finished Workflow is kept
    name: str | None = None  # any text; made legal, the original is kept in an annotation
    generate_name: str | None = None  # the same for a prefix; default: made of kind and commit

    def __post_init__(self) -> None:
        for field in fields(self):
            for text in _texts(getattr(self, field.name)):
                check_text(field.name, text)
        self._check_code()
        self._check_numbers()
        self._check_inputs()
        check_place(self)

    def image_of(self, sha: str) -> str:
        """The image that runs commit ``sha``, with its digest where that is known."""
        return self._pinned(self.image, sha)

    @property
    def images(self) -> tuple[str, ...]:
        """Every image of the Workflow, once."""
        legs = [self.image_of(sha) for sha in (self.sha, self.against) if sha is not None]
        return tuple(dict.fromkeys([*legs, *([self.tools] if self.tools else [])]))

    @property
    def tools(self) -> str | None:
        """The image of compare and alert where it is one of its own."""
        return None if self.tools_image is None else self._pinned(self.tools_image, self.sha)

    def _pinned(self, pattern: str, sha: str) -> str:
        reference = pattern.replace("{sha}", sha)
        digest = dict(self.digests).get(reference)
        return f"{reference}@{digest}" if digest else reference

    @property
    def parameters_json(self) -> str:
        """The trainer's parameters as JSON with sorted keys, safe in a container's args."""
        return json_for_args(dict(self.parameters))

    @property
    def tolerance_json(self) -> str | None:
        """The tolerance file as compact JSON, safe in a container's args."""
        return None if self.tolerance is None else json_for_args(json.loads(self.tolerance))

    def _check_code(self) -> None:
        for name in ("sha", "tree", "against", "against_tree"):
            value = getattr(self, name)
            if value is not None and not _COMMIT.fullmatch(value):
                raise InvalidParameter(
                    name,
                    f"{short(value)} is not a full hash of 40 lower-case hexadecimal digits",
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
        least = {"seed": 0, "mode": 0, "eval_steps": 0, "gpus": 0, "retries": 0}
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
        for seed in self.seeds:
            if type(seed) is not int or not 0 <= seed < 2**63:
                raise InvalidParameter("seeds", f"{seed!r} is no seed", f"Give whole numbers from 0 to {2**63 - 1}")
        if len(set(self.seeds)) != len(self.seeds):
            raise InvalidParameter("seeds", "one is named twice", "Name each once")
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
                raise InvalidParameter("parameters", f"{short(key)} is given twice", "Give each key once")
        check_json("parameters", self.parameters_json)
        if self.tolerance is not None:
            try:
                parsed = json.loads(self.tolerance)
            except ValueError as error:
                raise InvalidParameter("tolerance", f"is not JSON ({error})", "Check the tolerance file") from error
            if not isinstance(parsed, dict):
                raise InvalidParameter("tolerance", "is no JSON object", "docs/verdicts.md shows one")
            check_json("tolerance", json_for_args(parsed))
        if (self.data_key is None) != (self.data_name is None):
            raise InvalidParameter("data_key", "needs data_name, and the other way round", "Give both or neither")
        if self.data_key is not None and not is_key(self.data_key):
            raise InvalidParameter(
                "data_key", f"{short(self.data_key)} is no key inside the store", "Use inputs/<sha256>/<file name>"
            )
        if self.data_name is not None and (not self.data_name or "/" in self.data_name):
            raise InvalidParameter("data_name", f"{short(self.data_name)} is no file name", "Give the last part alone")


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Toleration):
        return [value.key, value.operator, value.value, value.effect]
    if isinstance(value, tuple):
        return [text for item in value for text in _texts(item)]
    return []
