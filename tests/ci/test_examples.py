"""The ready files for GitHub Actions and GitLab CI: when they start, and their own commands, run here."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import Place
from tests.hosts.servers import TOKEN, host

CI = Path(__file__).parents[2] / "examples" / "ci"
STARTS = {
    "ml-alpha-1": True,
    "ml-alpha-team/x": True,
    "ml-alpha-": True,
    "main": False,
    "ml-alpha": False,
    "feature/ml-alpha-1": False,
    "xml-alpha-1": False,
    "ML-ALPHA-1": False,
}


def github() -> dict[str, Any]:
    # YAML 1.1 takes the key `on` for a boolean; GitHub reads YAML 1.2.
    loaded = yaml.safe_load((CI / "github.yaml").read_text("utf-8"))
    loaded["on"] = loaded.pop(True)
    return loaded


def gitlab() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((CI / "gitlab.yaml").read_text("utf-8"))
    for job in loaded.values():
        base = loaded[job["extends"]] if "extends" in job else {}
        for key, value in base.items():
            job.setdefault(key, value)
        if base:
            job["variables"] = {**base.get("variables", {}), **job["variables"]}
    return {name: job for name, job in loaded.items() if not name.startswith(".")}


def steps(job: str) -> dict[str, dict[str, Any]]:
    return {step["name"]: step for step in github()["jobs"][job]["steps"] if "name" in step}


GITHUB = {"GITHUB_REPOSITORY": "fox/trainer", "GITHUB_RUN_ATTEMPT": "1", "BRANCH": "ml-alpha-$(reboot)"}
# Of a pull or merge request, and whether it starts a job: (its base is the default branch, it is of the repository
# itself, it comes from ml-alpha-*, whose push has started one already).
REQUESTS = {
    (True, True, False): True,
    (False, True, False): False,
    (True, False, False): False,
    (True, True, True): False,
}


def test_github_starts_on_pushes_to_such_branches() -> None:
    assert list(github()["on"]) == ["push", "pull_request"] and list(github()["on"]["push"]) == ["branches"]
    [pattern] = github()["on"]["push"]["branches"]
    as_regex = re.escape(pattern).replace(r"\*\*", ".*").replace(r"\*", "[^/]*")
    assert {branch: bool(re.fullmatch(as_regex, branch)) for branch in STARTS} == STARTS


def test_github_starts_on_pull_requests_to_the_default_branch() -> None:
    for name, job in github()["jobs"].items():
        engine, _, rest = " ".join(job["if"].split()).partition(" && ")
        assert engine == f"vars.FOXRUN_ENGINE {'!=' if name == 'runner' else '=='} 'argo'"
        for (default, same, alpha), starts in REQUESTS.items():
            facts = {
                "github.event_name": "pull_request", "github.repository": "fox/trainer",
                "github.event.repository.default_branch": "main",
                "github.event.pull_request.base.ref": "main" if default else "release-1",
                "github.event.pull_request.head.repo.full_name": "fox/trainer" if same else "somebody/trainer",
                "github.head_ref": "ml-alpha-1" if alpha else "feature/1",
            }  # fmt: skip
            assert _holds(rest, facts) is starts, (default, same, alpha)
        assert _holds(rest, {**facts, "github.event_name": "push"})


def test_gitlab_starts_on_merge_requests_to_the_default_branch() -> None:
    for job in gitlab().values():
        condition = job["rules"][1]["if"].partition(" && ")[2]
        for (default, same, alpha), starts in REQUESTS.items():
            facts = {
                "$CI_PIPELINE_SOURCE": "merge_request_event", "$CI_DEFAULT_BRANCH": "main", "$CI_PROJECT_ID": "14",
                "$CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main" if default else "release-1",
                "$CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "14" if same else "99",
                "$CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "ml-alpha-1" if alpha else "feature/1",
            }  # fmt: skip
            assert _holds(condition, facts) is starts, (default, same, alpha)
            assert not _holds(condition, {**facts, "$CI_PIPELINE_SOURCE": "schedule"})


def _holds(condition: str, facts: dict[str, str]) -> bool:
    """The value of a condition in the small part of both hosts' languages that the files use."""
    text = re.sub(r"!startsWith\(([\w.]+), ('[^']*')\)", r"not \1.startswith(\2)", condition)
    text = re.sub(r"(\$\w+) !~ /\^([\w-]+)/", r'not \1.startswith("\2")', text)
    text = text.replace("&&", "and").replace("||", "or")
    for name in sorted(facts, key=len, reverse=True):
        text = re.sub(re.escape(name) + r"(?![\w])(?!\.(?!startswith))", repr(facts[name]), text)
    return bool(eval(text, {"__builtins__": {}}))


def test_gitlab_starts_on_pushes_to_such_branches() -> None:
    for name, job in gitlab().items():
        assert len(job["rules"]) == 2
        engine, pushed, branch = job["rules"][0]["if"].split(" && ")
        assert pushed == '$CI_PIPELINE_SOURCE == "push"', "no schedules"
        match = re.fullmatch(r"\$CI_COMMIT_BRANCH =~ /(.*)/", branch)
        assert match is not None, "tags have no CI_COMMIT_BRANCH"
        assert {b: bool(re.search(match[1], b)) for b in STARTS} == STARTS
        assert engine == f'$FOXRUN_ENGINE {"!=" if name == "foxrun" else "=="} "argo"'


def test_no_value_that_others_choose_is_pasted_into_a_command() -> None:
    for name, job in github()["jobs"].items():
        for step in job["steps"]:
            assert "${{" not in step.get("run", ""), f"{name}: give it to the shell in a variable"
    for job in gitlab().values():
        for line in [*job.get("before_script", []), *job["script"]]:
            unquoted = re.sub(r"'[^']*'|\"[^\"]*\"", "", line)
            assert not re.search(r"\$\{?CI_(COMMIT|MERGE_REQUEST)_\w*(BRANCH|REF|MESSAGE|TITLE|AUTHOR)", unquoted), line


def test_every_setting_is_one_that_foxrun_knows(here: Place) -> None:
    for variables in (
        *(job["env"] for job in github()["jobs"].values()),
        *(j.get("variables", {}) for j in gitlab().values()),
    ):
        given = {k: v for k, v in variables.items() if k.startswith("FOXRUN_") and not re.search(r"\$", v)}
        done = here("config", "-o", "json", **given)
        assert done.code == 0, done.err
        assert "note:" not in done.err, done.err
        for name in set(given) - {"FOXRUN_HOME"}:
            assert name in done.out, done.out


def test_both_tell_the_commits_host(here: Place) -> None:
    for job in ("runner", "cluster"):
        named = steps(job)
        order = [name for name in named if name in ("Pending", "Gate", "Status")]
        assert order == ["Pending", "Gate", "Status"]
        assert github()["jobs"][job]["permissions"].items() >= {"statuses": "write", "pull-requests": "write"}.items()
        assert "cancelled" in named["Status"]["if"], "a gate that failed is told too"
    sha = "3f0d9a61c2b84e7f95d1a6c0e83b7742d9f10c55"
    for kind, line in (
        ("github", steps("runner")["Pending"]["run"]),
        ("gitlab", next(line for line in gitlab()["foxrun"]["script"] if "--pending" in line)),
    ):
        with host(kind) as server:
            origin = server.origin.removesuffix("/desk/alpha")
            of = {
                "github": {
                    "GITHUB_ACTIONS": "true", "GITHUB_SERVER_URL": origin, "GITHUB_REPOSITORY": "desk/alpha",
                    "GITHUB_API_URL": server.api, "GITHUB_TOKEN": TOKEN, "COMMIT": sha, "BRANCH": "ml-alpha-$(reboot)",
                },
                "gitlab": {
                    "GITLAB_CI": "true", "CI_PROJECT_URL": server.origin, "CI_API_V4_URL": server.api,
                    "GITLAB_TOKEN": TOKEN, "CI_COMMIT_REF_NAME": "ml-alpha-$(reboot)", "commit": sha,
                },
            }[kind]  # fmt: skip
            done = _bash(here, line, of)
            assert (done.returncode, done.stderr) == (0, ""), done.stdout
        [status] = server.state.statuses
        assert (status["sha"], status["state"]) == (sha, "pending")


def test_githubs_commands_give_the_verdict_and_its_report(repo: Place) -> None:
    env = {"COMMIT": repo.git("rev-parse", "HEAD"), **GITHUB}
    job = steps("runner")
    assert _bash(repo, job["Branch"]["run"], env).returncode == 0
    done = _bash(repo, job["Gate"]["run"], env)
    assert done.returncode == 0, done.stderr
    annotations = repo("get", "@latest", "-o", "json").json["metadata"]["annotations"]
    assert (annotations["foxrun.dev/branch"], annotations["foxrun.dev/kind"]) == ("ml-alpha-$(reboot)", "ci-gate")
    assert "identical: every compared bit agrees" in done.stdout
    assert (
        "there is no token"
        in _bash(repo, job["Status"]["run"], {**env, "FOXRUN_ORIGIN": "https://github.com/a/b"}).stderr
    )
    assert _bash(repo, job["Report"]["run"], env).returncode == 0
    assert "Identical" in (repo.directory / "foxrun-report.html").read_text("utf-8")
    again = _bash(repo, job["Gate"]["run"], env)
    assert (again.returncode, len(repo("list", "-o", "name").out.split())) == (0, 1), "a job run again attaches"


def test_githubs_job_fails_when_the_runs_part(repo: Place) -> None:
    env = {"COMMIT": repo.git("rev-parse", "HEAD"), **GITHUB}
    words = steps("runner")["Gate"]["run"] + " -p source=urandom"
    done = _bash(repo, words, env)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "FIRST_DIVERGENCE: " in done.stdout
    assert _bash(repo, steps("runner")["Report"]["run"], env).returncode == 0
    assert "Drift" in (repo.directory / "foxrun-report.html").read_text("utf-8")


def test_gitlabs_commands_give_the_verdict_and_its_report(repo: Place) -> None:
    sha = repo.git("rev-parse", "HEAD")
    repo.git("checkout", "-q", "--detach", sha)
    branch = "ml-alpha-$(touch${IFS}pwned);`id`'\"&|🦊"
    env = {"CI_COMMIT_SHA": sha, "CI_COMMIT_BRANCH": branch, "CI_PROJECT_PATH": "fox/trainer", "CI_JOB_ID": "7"}
    job = gitlab()["foxrun"]
    done = _bash(repo, "\n".join(job["script"]), env)
    assert done.returncode == 0, done.stderr
    assert "identical: every compared bit agrees" in done.stdout
    workflow = repo("get", "@latest", "-o", "json").json
    assert workflow["metadata"]["annotations"]["foxrun.dev/branch"] == branch
    assert not (repo.directory / "pwned").exists()
    assert _bash(repo, "\n".join(job["after_script"]), env).returncode == 0
    assert "Identical" in (repo.directory / "foxrun-report.html").read_text("utf-8")


def test_what_the_runner_installs_for_a_cluster_is_everything_but_torch(tmp_path: Path) -> None:
    root = CI.parents[1]
    shutil.copy(root / "pyproject.toml", tmp_path)
    for script in (steps("cluster")["Install"]["run"], "\n".join(gitlab()["foxrun-cluster"]["before_script"])):
        [line] = [line for line in script.splitlines() if line.endswith("> requirements.txt")]
        subprocess.run(["bash", "-ec", line], cwd=tmp_path, env=_path(), check=True)
        names = [re.split(r"[\[<>=]", line)[0] for line in (tmp_path / "requirements.txt").read_text().splitlines()]
        assert "kubernetes" in names and "hera" in names and "torch" not in names


@pytest.mark.cluster
@pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="no cluster: KUBECONFIG is not set")
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on PATH")
def test_githubs_cluster_job_is_accepted_by_a_cluster(repo: Place, namespace: str, tmp_path: Path) -> None:
    """With the token of infra/'s submitter as the secret; `--dry-run=server` in place of the run itself."""
    from tests.infra.namespace import Account, kubeconfig

    sha = repo.git("rev-parse", "HEAD")
    env = {"COMMIT": sha, **GITHUB, "FOXRUN_ENGINE": "argo",
           "RUNNER_TEMP": str(tmp_path), "GITHUB_ENV": str(tmp_path / "env"),
           "KUBECONFIG_TEXT": kubeconfig(Account(namespace, "foxrun-submitter"))}  # fmt: skip
    assert _bash(repo, steps("cluster")["Cluster"]["run"], env).returncode == 0
    assert stat.S_IMODE((tmp_path / "kubeconfig").stat().st_mode) == 0o600
    env |= dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines())
    env |= {"FOXRUN_NAMESPACE": namespace, "FOXRUN_IMAGE": "registry.example.com/fox/foxrun@sha256:" + "0" * 64}
    words = steps("cluster")["Gate"]["run"].replace("--log", "--dry-run=server -o json")
    assert shlex.split(words)[0] == "foxrun"
    done = _bash(repo, words, env)
    assert done.returncode == 0, done.stderr
    accepted = json.loads(done.stdout)
    assert accepted["metadata"]["namespace"] == namespace and accepted["metadata"]["uid"]
    parameters = {p["name"]: p["value"] for p in accepted["spec"]["arguments"]["parameters"]}
    assert (parameters["sha"], parameters["image"]) == (sha, env["FOXRUN_IMAGE"])
    refused = _bash(repo, words, {**env, "FOXRUN_NAMESPACE": "default"})
    assert refused.returncode in (2, 6) and "Traceback" not in refused.stderr


def _path() -> dict[str, str]:
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def _bash(place: Place, script: str, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """As both hosts run a step: bash, ending at the first command that fails."""
    hidden = {
        k: v for k, v in place.environ(**variables).items() if k not in ("KUBECONFIG", "ARGO_SERVER", "ARGO_TOKEN")
    }
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=place.directory, env={**hidden, "PATH": _path()["PATH"]}, capture_output=True, text=True,
    )  # fmt: skip
