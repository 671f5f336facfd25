"""From what a person asked for to a Workflow: revisions resolved once, inputs stored once, every value checked."""

from __future__ import annotations

import dataclasses
import json
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator import known_parameters
from orchestrator.errors import UsageError, usage_of
from orchestrator.pods import alert_variables, on_a_cluster, place_of
from orchestrator.settings import Settings, home_directory
from orchestrator.training import OPTIONS, command_of, training_of

if TYPE_CHECKING:
    from orchestrator.engines.argo import ArgoEngine
    from orchestrator.engines.base import Engine
    from workflows.parameters import RunParameters

KINDS = ("train", "regression-pair", "ci-gate", "seed-sweep")
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
    tie_break: bool = False
    seeds: tuple[int, ...] = ()
    parallel: int = 2
    name: str | None = None
    timeout_s: float | None = None


def open_engine(settings: Settings, *, say: Callable[[str], None] = lambda _: None) -> Engine:
    """The engine that the settings name; ``say`` hears why a request to S3 is made again."""
    if settings.engine == "argo":
        return open_cluster(settings, say=say)
    from orchestrator.engines.local import LocalEngine

    return LocalEngine(home_directory(settings))


def open_cluster(settings: Settings, *, say: Callable[[str], None] = lambda _: None) -> ArgoEngine:
    """The argo engine, for what no other has. Raises UsageError where the settings name another engine."""
    if settings.engine != "argo":
        raise UsageError(
            "this needs a cluster, and the local engine is selected",
            remedy="add --engine argo, or set engine: argo in foxrun.yaml",
        )
    from orchestrator.engines.argo.opening import open_argo
    from orchestrator.places import Places

    store = Places(settings, say=say).store() if settings.s3_bucket else None
    engine = open_argo(settings, home_directory(settings), os.environ, store=store)
    engine.options = settings.given("engine", "argo_server", "context", "kubeconfig", "namespace")
    return engine


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
    from orchestrator import light_hera

    light_hera.load()
    from workflows.ci_gate import ENVIRONMENTS
    from workflows.parameters import InvalidParameter, RunParameters

    training = training_of(
        _smoke(settings) if request.kind == "ci-gate" else settings,
        parameters=request.parameters,
        parameter_file=request.parameter_file,
        **{name: getattr(request, name) for name in OPTIONS},
    )
    trainer = command_of(settings.trainer if request.trainer is None else request.trainer)
    parameters = training.parameters
    if request.kind == "ci-gate" and trainer == RunParameters.trainer:
        # Said, though it is our trainer's default: the gate of a year ago must be the gate of today.
        parameters = {"envs": str(ENVIRONMENTS), **parameters}
    if request.kind not in ("regression-pair", "seed-sweep"):
        for name in ("against", "tolerance", "rtol", "tie_break"):
            if getattr(request, name) not in (None, False):
                option = f"--{name.replace('_', '-')}"
                raise UsageError(f"{option} needs something to compare with", remedy="add --regression-pair")
    if request.worktree and settings.engine == "argo":
        raise UsageError(
            "--worktree runs files of this machine, which a cluster does not have",
            remedy="commit them and give --sha HEAD, or leave out --engine argo",
        )
    code = _code(request, directory)
    if trainer == RunParameters.trainer and training.parameters:
        top = _top(directory)
        names = known_parameters.of_directory(top) if request.worktree else known_parameters.of_commit(top, code["sha"])
        known_parameters.check(training.parameters, names)
    tolerance = _tolerance(request, settings)
    try:
        return RunParameters(
            **code,
            seed=training.seed,
            mode=training.mode,
            steps=training.steps,
            eval_steps=training.eval_steps,
            parameters=tuple(sorted(parameters.items())),
            **_input(training.data, engine, store=store),
            trainer=trainer,
            gate=request.gate,
            gate_steps=request.gate_steps or settings.gate_steps,
            tolerance=tolerance,
            rtol=request.rtol,
            verify=request.verify,
            tie_break=request.tie_break,
            gate_timeout_s=_seconds(settings.gate_timeout),
            goldens=_goldens(request, settings, code["sha"], directory),
            seeds=request.seeds,
            parallel=request.parallel,
            leg_timeout_s=_seconds(request.timeout_s or settings.timeout),
            name=request.name,
            origin=_origin(request, settings, directory),
            alert_variables=tuple(alert_variables(settings).items()) if settings.engine == "argo" else (),
            **place_of(settings, _top(directory)),
        )
    except InvalidParameter as error:
        raise UsageError(f"{error.parameter.replace('_', '-')}: {error.problem}", remedy=error.remedy) from None


def _smoke(settings: Settings) -> Settings:
    """The settings with the mid-smoke's lengths and mode where nobody has set any."""
    from workflows.ci_gate import EVAL_STEPS, MODE, STEPS

    smoke: dict[str, Any] = {"steps": STEPS, "eval_steps": EVAL_STEPS, "mode": MODE}
    return dataclasses.replace(settings, **{k: v for k, v in smoke.items() if k not in settings.sources})


def workflow_of(kind: str, parameters: RunParameters) -> dict[str, Any]:
    """The Workflow as a plain dict, in Argo's shape."""
    from orchestrator import light_hera

    light_hera.load()
    from workflows.ci_gate import ci_gate
    from workflows.parameters import InvalidParameter
    from workflows.regression_pair import regression_pair
    from workflows.render import to_dict
    from workflows.seed_sweep import seed_sweep
    from workflows.train import train

    makers = {"train": train, "regression-pair": regression_pair, "ci-gate": ci_gate, "seed-sweep": seed_sweep}
    try:
        return to_dict(makers[kind](parameters))
    except InvalidParameter as error:
        raise UsageError(f"{error.parameter.replace('_', '-')}: {error.problem}", remedy=error.remedy) from None


def made(
    request: Request,
    settings: Settings,
    engine: Engine,
    *,
    directory: Path,
    store: bool,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """The Workflow to send, under a name of its own; arguments as of ``parameters_of``. ``say`` hears what to know.

    An engine that has an equal one of that name attaches to it, and goes on with it where it was killed.
    """
    parameters = parameters_of(request, settings, engine, directory=directory, store=store)
    if settings.engine == "argo":
        parameters = on_a_cluster(parameters, settings, engine, _top(directory), say=say)
    if parameters.name is None:
        # Letters and digits that are not mistaken for each other, as Kubernetes' own random suffixes.
        suffix = "".join(secrets.choice("bcdfghjklmnpqrstvwxz2456789") for _ in range(5))
        parameters = dataclasses.replace(parameters, name=f"{request.kind}-{parameters.sha[:7]}-{suffix}")
    workflow = workflow_of(request.kind, parameters)
    # Where the local engine finds the commits; a path of this machine, so it is in no rendered Workflow.
    workflow["metadata"]["annotations"][REPOSITORY] = str(_top(directory))
    return workflow


def resubmit(engine: Engine, name: str) -> str:
    """Start the same Workflow anew under a new name; returns that."""
    from orchestrator.engines.argo.resubmission import again

    return engine.submit(again(engine.get(name)))


def leaves_out_changes(request: Request, directory: Path) -> bool:
    """Whether HEAD is run while files here differ from it, so that what a person has just written is not run."""
    from foxrun import git

    try:
        return request.revision == "HEAD" and not request.worktree and git.is_dirty(directory)
    except git.GitError:
        return False


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
        raise usage_of(error) from None


def _top(directory: Path) -> Path:
    from foxrun import git

    try:
        return git.top_level(directory)
    except git.GitError as error:
        raise usage_of(error) from None


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


def _goldens(request: Request, settings: Settings, sha: str, directory: Path) -> str | None:
    """The folder of goldens, where what runs is a training and has some."""
    from foxrun import git
    from orchestrator.goldens import ENDING

    folder = settings.goldens.strip("/")
    if request.kind != "train" or Path(settings.goldens).is_absolute() or not folder:
        return None
    top = _top(directory)
    if request.worktree:
        return folder if any((top / folder).rglob(f"*{ENDING}")) else None
    return folder if any(path.endswith(ENDING) for path in git.files_below(top, sha, folder)) else None


def _origin(request: Request, settings: Settings, directory: Path) -> str:
    from orchestrator.origin import origin_of

    # Files that are no commit have no status.
    return "" if request.worktree else origin_of(settings, directory)


def _tolerance(request: Request, settings: Settings) -> str | None:
    file = request.tolerance or (Path(settings.tolerance) if settings.tolerance else None)
    if file is None or request.kind not in ("regression-pair", "seed-sweep"):
        return None
    return tolerance_text(file)


def tolerance_text(file: Path) -> str:
    """A tolerance file, YAML or JSON, as JSON text. Raises UsageError for a file that is no object."""
    from orchestrator import yaml_input

    try:
        loaded = yaml_input.load(yaml_input.read_text(file))
    except yaml_input.NotYaml as error:
        raise UsageError(f"{file} is neither YAML nor JSON: {error}", remedy="mend it") from None
    if not isinstance(loaded, dict):
        raise UsageError(
            f"{file} must hold an object: pattern of keys -> tolerance", remedy="docs/verdicts.md shows one"
        )
    return json.dumps(loaded, sort_keys=True)


def _seconds(value: float) -> int:
    return max(1, round(value))
