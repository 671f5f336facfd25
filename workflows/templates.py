"""The templates that every workflow is made of: gate, leg, compare (telling.py has what tells others of it).

Hera's generated models are used, not its builder classes: those read Hera's global_config and register in whatever
`with` block surrounds the caller, and would make equal parameters give different Workflows.
"""

from __future__ import annotations

import re

from hera.workflows import models as m

from workflows import pods
from workflows.names import file_name
from workflows.parameters import WORKTREE, RunParameters, escape_dollars
from workflows.pods import CODE, IN, OUT

# Known before anybody runs: what comes last overwrites what came before, and links to a report need no listing.
VERDICT_KEY, REPORT_KEY = "{{workflow.uid}}/verdict.json", "{{workflow.uid}}/report.html"
SEED = "{{workflow.parameters.seed}}"
# What the gate's pod has beyond the twins' own timeout, so that a hang is reported by the gate itself, with both
# twins' steps: starting, comparing, and after a drift the search for its cause (at most 180 s).
GATE_MARGIN_S = 300
OUTCOME = ("verdict", "step", "leaf", "pnl-difference")


def gate(p: RunParameters) -> m.Template:
    """The hostile twin run of ``p.gate_steps`` steps in one pod; fails when the twins part."""
    inputs = [*_code_input(p, "{{workflow.parameters.sha}}"), *_data_input(p)]
    return m.Template(
        name="gate",
        metadata=_pod_metadata("{{workflow.parameters.sha}}" if p.worktree is None else WORKTREE),
        inputs=m.Inputs(artifacts=inputs) if inputs else None,
        container=pods.container(
            p,
            image="{{workflow.parameters.image}}",
            command=["foxrun"],
            args=[
                "check",
                *("--out", "{{outputs.artifacts.gate.path}}"),
                *_training_args(p, steps="{{workflow.parameters.gate-steps}}"),
                *("--timeout", f"{p.gate_timeout_s}s"),
                *_verdict_args(),
                "--",
                *(escape_dollars(word) for word in p.trainer),
            ],
            env=_code_env(p, leg="gate", sha="{{workflow.parameters.sha}}", tree="{{workflow.parameters.tree}}"),
            resources=pods.resources(p, processes=2, gpus=p.gpus),
            working_dir=_working_dir(p),
        ),
        outputs=m.Outputs(
            parameters=_outcome_parameters(),
            artifacts=[_directory_output("gate", "{{workflow.uid}}/gate/{{pod.name}}"), *_verdict_outputs()],
        ),
        timeout=f"{p.gate_timeout_s + GATE_MARGIN_S}s",
        node_selector=pods.gpu_node(p),
        retry_strategy=pods.retries(p),
    )


def leg(p: RunParameters, *, seed: str = SEED) -> m.Template:
    """One training run. Which leg, commit and image are inputs, so that the legs of a pair differ in nothing else."""
    return m.Template(
        name="leg",
        metadata=m.Metadata(
            annotations={"foxrun.dev/sha": "{{inputs.parameters.checkout}}"},
            labels={pods.PART: "leg"} if pods.beside_same_gpus(p) else None,
        ),
        inputs=m.Inputs(
            parameters=[m.Parameter(name=name) for name in ("leg", "checkout", "sha", "tree", "image")],
            artifacts=[*_code_input(p, "{{inputs.parameters.sha}}"), *_data_input(p)] or None,
        ),
        container=pods.container(
            p,
            image="{{inputs.parameters.image}}",
            command=[escape_dollars(p.trainer[0])],
            args=[
                *(escape_dollars(word) for word in p.trainer[1:]),
                *("--out", "{{outputs.artifacts.run.path}}"),
                *_training_args(p, steps="{{workflow.parameters.steps}}", seed=seed, eval_steps=True),
            ],
            env=_code_env(
                p,
                leg="{{inputs.parameters.leg}}",
                sha="{{inputs.parameters.sha}}",
                tree="{{inputs.parameters.tree}}",
            ),
            resources=pods.resources(p, processes=1, gpus=p.gpus),
            working_dir=_working_dir(p),
        ),
        outputs=m.Outputs(
            artifacts=[_directory_output("run", "{{workflow.uid}}/leg-{{inputs.parameters.leg}}/{{pod.name}}")]
        ),
        timeout=f"{p.leg_timeout_s}s",
        affinity=pods.beside_same_gpus(p),
        node_selector=pods.gpu_node(p),
        retry_strategy=pods.retries(p),
    )


def compare(p: RunParameters) -> m.Template:
    """Compares whatever the two legs left, and exits with the verdict's code."""
    args = ["compare", "{{inputs.artifacts.a.path}}", "{{inputs.artifacts.b.path}}"]
    args += ["--status-a", "{{inputs.parameters.status-a}}", "--status-b", "{{inputs.parameters.status-b}}"]
    if p.against is not None:
        args += ["--allow", "tree"]
    if p.tolerance is not None:
        args += ["--tolerance-json", "{{workflow.parameters.tolerance}}"]
    if p.rtol is not None:
        args += ["--rtol", "{{workflow.parameters.rtol}}"]
    if p.verify:
        args += ["--verify"]
    return m.Template(
        name="compare",
        inputs=m.Inputs(
            parameters=[m.Parameter(name="status-a"), m.Parameter(name="status-b")],
            artifacts=[m.Artifact(name=side, path=f"{IN}/{side}", optional=True) for side in ("a", "b")],
        ),
        container=pods.container(
            p,
            image=tools_image(p),
            command=["foxrun"],
            args=[*args, *_verdict_args()],
            resources=pods.resources(p, processes=1, gpus=0),
        ),
        outputs=m.Outputs(parameters=_outcome_parameters(), artifacts=_verdict_outputs()),
        timeout=f"{p.compare_timeout_s}s",
        retry_strategy=pods.retries(p),
    )


def _training_args(p: RunParameters, *, steps: str, seed: str = SEED, eval_steps: bool = False) -> list[str]:
    args = ["--seed", seed, "--mode", "{{workflow.parameters.mode}}", "--steps", steps]
    if eval_steps:
        args += ["--eval-steps", "{{workflow.parameters.eval-steps}}"]
    args += ["--parameters", "{{workflow.parameters.parameters}}"]
    if p.data_key is not None:
        args += ["--data", "{{inputs.artifacts.data.path}}"]
    return args


def _verdict_args() -> list[str]:
    args = ["--verdict", "{{outputs.artifacts.verdict.path}}", "--report", "{{outputs.artifacts.report.path}}"]
    for name in OUTCOME:
        args += ["--write", f"{name}={{{{outputs.parameters.{name}.path}}}}"]
    return args


def _outcome_parameters() -> list[m.Parameter]:
    # The default is what one sees when the process was killed before it could write.
    return [m.Parameter(name=name, value_from=m.ValueFrom(path=f"{OUT}/{name}", default="unknown")) for name in OUTCOME]


def _verdict_outputs() -> list[m.Artifact]:
    return [
        m.Artifact(
            name="verdict",
            path=f"{OUT}/verdict.json",
            optional=True,
            archive=as_is(),
            s3=m.S3Artifact(key=VERDICT_KEY),
        ),
        m.Artifact(
            name="report",
            path=f"{OUT}/report.html",
            optional=True,
            archive=as_is(),
            s3=m.S3Artifact(key=REPORT_KEY),
        ),
    ]


def _directory_output(name: str, key: str) -> m.Artifact:
    # Not archived: a comparison reads manifests alone when nothing parted. Each attempt has a key of its own.
    return m.Artifact(name=name, path=f"{OUT}/{name}", optional=True, archive=as_is(), s3=m.S3Artifact(key=key))


def _data_input(p: RunParameters) -> list[m.Artifact]:
    if p.data_key is None:
        return []
    return [m.Artifact(name="data", path=f"{IN}/data/{file_name(p.data_name or '')}")]


def _code_input(p: RunParameters, revision: str) -> list[m.Artifact]:
    """The commit, cloned by Argo's executor; every file of it lies below CODE, and `.git` too."""
    if p.git_url is None:
        return []
    git = m.GitArtifact(repo=p.git_url, revision=revision)
    if p.git_secret is not None and re.match(r"ssh://|[^/]+@", p.git_url):
        git.ssh_private_key_secret = m.SecretKeySelector(name=p.git_secret, key="ssh-privatekey")
    elif p.git_secret is not None:
        git.username_secret = m.SecretKeySelector(name=p.git_secret, key="username")
        git.password_secret = m.SecretKeySelector(name=p.git_secret, key="password")
    return [m.Artifact(name="code", path=CODE, git=git)]


def _working_dir(p: RunParameters) -> str | None:
    # What `python -m` imports first.
    return None if p.git_url is None else CODE


def as_is() -> m.ArchiveStrategy:
    """Neither packed on upload nor unpacked on download."""
    return m.ArchiveStrategy(none=m.NoneStrategy())


def tools_image(p: RunParameters) -> str:
    """What runs foxrun itself."""
    return p.tools or "{{workflow.parameters.image}}"


def _code_env(p: RunParameters, *, leg: str, sha: str, tree: str) -> list[m.EnvVar]:
    return [
        m.EnvVar(name="FOXRUN_LEG", value=leg),
        m.EnvVar(name="FOXRUN_SHA", value=sha),
        m.EnvVar(name="FOXRUN_TREE", value=tree),
        m.EnvVar(name="FOXRUN_BRANCH", value=escape_dollars(p.branch)),
    ]


def _pod_metadata(checkout: str) -> m.Metadata:
    return m.Metadata(annotations={"foxrun.dev/sha": checkout})
