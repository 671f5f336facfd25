"""From what a person asked for to a Workflow: revisions resolved once, inputs stored once, every value checked."""

from __future__ import annotations

import dataclasses
import json
import re
import secrets
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.errors import UsageError, WorkflowNotFound
from orchestrator.settings import Settings, did_you_mean, parse_value

if TYPE_CHECKING:
    from foxrun.problems import ContractError
    from orchestrator.engines.base import Engine
    from workflows.parameters import RunParameters

KINDS = ("train", "regression-pair")
# `-p` of these names means the option of the same name; everything else is the trainer's.
OPTIONS = ("seed", "mode", "steps", "eval_steps")
SYNTHETIC = "synthetic"
REPOSITORY = "foxrun.dev/repository"


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a submit asks for; None where nobody said anything, so that the settings decide."""

    kind: str = "train"
    revision: str = "HEAD"
    worktree: bool = False
    against: str | None = None
    seed: int | None = None
    mode: int | None = None
    steps: int | None = None
    eval_steps: int | None = None
    parameters: tuple[str, ...] = ()
    parameter_file: Path | None = None
    trainer: str | None = None
    gate: bool = True
    gate_steps: int | None = None
    tolerance: Path | None = None
    rtol: float | None = None
    verify: bool = False
    name: str | None = None
    timeout_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Training:
    """The trainer's part of a request, once ``-p``, the parameter file, options and settings are put together."""

    seed: int
    mode: int
    steps: int
    eval_steps: int
    parameters: dict[str, str]
    data: Path | None


def open_engine(name: str, home: Path) -> Engine:
    """The engine of that name, its state below ``home``."""
    if name != "local":
        raise UsageError(
            f"the engine {name} is not built yet: foxrun runs workflows on this machine only",
            remedy="leave out --engine (and FOXRUN_ENGINE), or hand the Workflow over yourself: "
            "foxrun submit --dry-run -o yaml ... | argo submit -",
        )
    from orchestrator.engines.local import LocalEngine

    return LocalEngine(home)


def training_of(
    settings: Settings,
    *,
    parameters: Sequence[str] = (),
    parameter_file: Path | None = None,
    **given: int | None,
) -> Training:
    """Put the trainer's parameters together: options win over ``-p``, ``-p`` over the file, the file over settings.

    Raises:
        UsageError: a value that cannot be, an option that contradicts ``-p``, a file that cannot be read.
    """
    merged = read_parameter_file(parameter_file) if parameter_file else {}
    merged |= _pairs(parameters)
    values: dict[str, Any] = {name: getattr(settings, name) for name in OPTIONS}
    for name in OPTIONS:
        for spelling in {name, name.replace("_", "-")} & merged.keys():
            values[name] = parse_value(name, merged.pop(spelling), f"-p {spelling}")
            if given.get(name) not in (None, values[name]):
                raise UsageError(
                    f"--{name.replace('_', '-')} {given[name]} and -p {spelling}={values[name]} contradict each other",
                    remedy="give one of them",
                )
        if given.get(name) is not None:
            values[name] = given[name]
    if values["steps"] < 1:
        raise UsageError("--steps 0: a run of no steps proves nothing", remedy="give 1 step or more")
    for key, value in merged.items():
        if "{{" in value or "{{" in key:
            raise UsageError(
                f"-p {key}: a value that contains '{{{{' cannot be passed: Argo takes it for a template tag",
                remedy="put a space between the braces, or pass the value in a file by -p data=FILE",
            )
    data = _data_file(merged.pop("data", SYNTHETIC))
    return Training(parameters=merged, data=data, **values)


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise UsageError(f"-p {text!r} is not KEY=VALUE", remedy="for example: -p envs=16")
        if key in found and found[key] != value:
            raise UsageError(f"-p {key} is given twice, with different values", remedy="give it once")
        found[key] = value
    return found


def read_parameter_file(file: Path) -> dict[str, str]:
    """Parameters from a YAML or JSON object: scalars as written, anything nested as JSON. Raises UsageError."""
    import yaml

    try:
        root = yaml.compose(file.read_text("utf-8-sig"), Loader=yaml.SafeLoader)
        if not isinstance(root, yaml.MappingNode):
            raise UsageError(f"{file} must hold an object of parameters", remedy="for example: envs: 16")
        found: dict[str, str] = {}
        for key, value in root.value:
            name = str(key.value)
            if name in found:
                raise UsageError(f"{file}, line {key.start_mark.line + 1}: {name!r} is there twice", remedy="keep one")
            # As written: 1e-3 must stay 1e-3, and 010 must not become 8.
            found[name] = value.value if isinstance(value, yaml.ScalarNode) else _as_json(value)
        return found
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}", remedy="check the path") from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"{file} is neither YAML nor JSON: {' '.join(str(error).split())}", remedy="mend it") from None


def _as_json(node: Any) -> str:
    import yaml

    return json.dumps(yaml.safe_load(yaml.serialize(node, Dumper=yaml.SafeDumper)), ensure_ascii=False)


def _data_file(value: str) -> Path | None:
    if value == SYNTHETIC:
        return None
    file = Path(value).expanduser()
    if not file.is_file():
        what = "is a directory" if file.is_dir() else "is not there"
        near = did_you_mean(file.name, [p.name for p in file.parent.iterdir()]) if file.parent.is_dir() else ""
        raise UsageError(f"-p data={value}: the file {what}{near}", remedy="give a file, or -p data=synthetic")
    return file


def parameters_of(
    request: Request, settings: Settings, engine: Engine, *, directory: Path, store: bool
) -> RunParameters:
    """Everything that decides the Workflow.

    Args:
        request: what was asked for.
        settings: what holds where nothing was asked.
        engine: whose store takes the input.
        directory: where the repository is.
        store: whether to store the input now; without, only its key is computed (a dry run).

    Raises:
        UsageError: what cannot be, and what to do.
    """
    from workflows.parameters import InvalidParameter, RunParameters

    training = training_of(
        settings,
        parameters=request.parameters,
        parameter_file=request.parameter_file,
        **{name: getattr(request, name) for name in OPTIONS},
    )
    if request.kind != "regression-pair":
        for name in ("against", "tolerance", "rtol"):
            if getattr(request, name) is not None:
                raise UsageError(f"--{name} needs something to compare with", remedy="add --regression-pair")
    code = _code(request, directory)
    tolerance = _tolerance(request, settings)
    try:
        return RunParameters(
            **code,
            seed=training.seed,
            mode=training.mode,
            steps=training.steps,
            eval_steps=training.eval_steps,
            parameters=tuple(sorted(training.parameters.items())),
            **_input(training.data, engine, store=store),
            trainer=command_of(request.trainer or settings.trainer),
            gate=request.gate,
            gate_steps=request.gate_steps or settings.gate_steps,
            tolerance=tolerance,
            rtol=request.rtol,
            verify=request.verify,
            gate_timeout_s=_seconds(settings.gate_timeout),
            leg_timeout_s=_seconds(request.timeout_s or settings.timeout),
            name=request.name,
        )
    except InvalidParameter as error:
        raise UsageError(f"{error.parameter.replace('_', '-')}: {error.problem}", remedy=error.remedy) from None


def workflow_of(kind: str, parameters: RunParameters) -> dict[str, Any]:
    """The Workflow as a plain dict, in Argo's shape."""
    from workflows.parameters import InvalidParameter
    from workflows.regression_pair import regression_pair
    from workflows.render import to_dict
    from workflows.train import train

    try:
        return to_dict({"train": train, "regression-pair": regression_pair}[kind](parameters))
    except InvalidParameter as error:
        raise UsageError(f"{error.parameter.replace('_', '-')}: {error.problem}", remedy=error.remedy) from None


def submit(request: Request, settings: Settings, engine: Engine, *, directory: Path) -> str:
    """Send the Workflow to the engine; returns its name.

    With a ``name`` that exists already: the same Workflow is attached to, and goes on where its engine was killed.

    Raises:
        WorkflowExists: the name belongs to a workflow that differs.
    """
    parameters = parameters_of(request, settings, engine, directory=directory, store=True)
    if parameters.name is None:
        # Letters and digits that are not mistaken for each other, as Kubernetes' own random suffixes.
        suffix = "".join(secrets.choice("bcdfghjklmnpqrstvwxz2456789") for _ in range(5))
        parameters = dataclasses.replace(parameters, name=f"{request.kind}-{parameters.sha[:7]}-{suffix}")
    workflow = workflow_of(request.kind, parameters)
    # Where the local engine finds the commits; a path of this machine, so it is in no rendered Workflow.
    workflow["metadata"]["annotations"][REPOSITORY] = str(_top(directory))
    return engine.submit(workflow)


def _code(request: Request, directory: Path) -> dict[str, Any]:
    """Commit, tree and branch of what runs. ContractErrors of git become UsageErrors: the user named the revision."""
    from foxrun import git

    top = _top(directory)
    try:
        commit = git.resolve(top, request.revision)
        code: dict[str, Any] = {"sha": commit, "branch": _branch(top, request.revision, commit)}
        if request.worktree:
            code |= {"tree": git.tree_hash(top), "worktree": str(top)}
        else:
            code |= {"tree": git.commit_tree(top, commit)}
        if request.against is not None:
            other = git.resolve(top, request.against)
            code |= {"against": other, "against_tree": git.commit_tree(top, other)}
        return code
    except git.GitError as error:
        raise _usage(error) from None


def _top(directory: Path) -> Path:
    from foxrun import git

    try:
        return git.top_level(directory)
    except git.GitError as error:
        raise _usage(error) from None


def _usage(error: ContractError) -> UsageError:
    return UsageError(f"{error.file}: {error.what}" if error.file else error.what, remedy=error.remedy)


def _branch(top: Path, revision: str, commit: str) -> str:
    """The branch that was asked for by name, else the one that is checked out when it is at that commit."""
    from foxrun import git

    here = git.branch(top)
    if revision in ("HEAD", here):
        return here
    try:
        named = git.resolve(top, f"refs/heads/{revision}")
    except git.GitError:
        named = ""
    if named == commit:
        return revision
    return here if here and git.resolve(top, "HEAD") == commit else ""


def _input(data: Path | None, engine: Engine, *, store: bool) -> dict[str, Any]:
    if data is None:
        return {}
    if store:
        return {"data_key": engine.put_input(data), "data_name": data.name}
    from foxrun.files import sha256_file

    return {"data_key": f"inputs/{sha256_file(data)}/{data.name}", "data_name": data.name}


def _tolerance(request: Request, settings: Settings) -> str | None:
    file = request.tolerance or (Path(settings.tolerance) if settings.tolerance else None)
    if file is None or request.kind != "regression-pair":
        return None
    return tolerance_text(file)


def tolerance_text(file: Path) -> str:
    """A tolerance file, YAML or JSON, as JSON text. Raises UsageError for a file that is no object."""
    import yaml

    try:
        loaded = yaml.safe_load(file.read_text("utf-8-sig"))
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}", remedy="check the path") from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"{file} is neither YAML nor JSON: {' '.join(str(error).split())}", remedy="mend it") from None
    if not isinstance(loaded, dict):
        raise UsageError(
            f"{file} must hold an object: pattern of keys -> tolerance", remedy="docs/verdicts.md shows one"
        )
    return json.dumps(loaded, sort_keys=True)


def command_of(text: str) -> tuple[str, ...]:
    """A command line as words, as a shell would part them. Raises UsageError."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"the trainer's command {text!r} cannot be read: {error}", remedy="close the quote") from None
    if not words:
        raise UsageError("the trainer's command is empty", remedy='for example: --trainer "python -m trainer"')
    return tuple(words)


def _seconds(value: float) -> int:
    return max(1, round(value))


def full_name(engine: Engine, text: str) -> str:
    """The workflow that a person means: the name itself, ``@latest``, or the only one that begins like this.

    Raises:
        WorkflowNotFound: none, with the nearest name; UsageError: several.
    """
    from workflows.names import workflow_name

    names = [str(item["metadata"]["name"]) for item in newest_first(engine.list({}))]
    if text == "@latest" and names:
        return names[0]
    for exact in (text, workflow_name(text) if text else text):
        if exact in names:
            return exact
    starting = [name for name in names if name.startswith(text)] if text else []
    if len(starting) == 1:
        return starting[0]
    if starting:
        raise UsageError(f"{text!r} begins {len(starting)} names: {', '.join(starting[:5])}", remedy="give more of it")
    raise WorkflowNotFound(f"there is no workflow {text!r}{did_you_mean(text, names)}", remedy="foxrun list shows all")


def node_of(engine: Engine, name: str, text: str) -> str:
    """A part of a workflow by its name or id. Raises UsageError with the names that there are."""
    nodes = (engine.get(name).get("status") or {}).get("nodes") or {}
    known = sorted({str(node.get("displayName")) for node in nodes.values() if node.get("type") == "Pod"})
    if text not in known and text not in nodes:
        there = f"; it has {', '.join(known)}" if known else "; none has started yet"
        raise UsageError(f"workflow {name} has no part {text!r}{there}", remedy=f"foxrun get {name}")
    return text


def newest_first(workflows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Workflows by the time of their creation, then by name."""
    return sorted(
        workflows,
        key=lambda w: (str(w["metadata"].get("creationTimestamp") or ""), str(w["metadata"].get("name") or "")),
        reverse=True,
    )


def is_name(text: str) -> bool:
    """Whether a word looks like the name of a workflow and not like a path."""
    return bool(re.fullmatch(r"@latest|[A-Za-z0-9][A-Za-z0-9._-]*", text)) and not Path(text).exists()
