"""Two people submit at once, on a cluster: different names live side by side, one name is one workflow."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.engines.argo import ArgoEngine
from orchestrator.errors import FoxrunError
from tests.argo.small import unique
from tests.argo.test_command_line import environment

# No node has this label, so that no pod starts.
NOWHERE = ("--node-selector", "foxrun.dev/test=nowhere", "--image", "localhost/busybox:1", "--image-digest", "off")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def made(kube: ArgoEngine) -> Iterator[list[str]]:
    names: list[str] = []
    yield names
    for name in set(names):
        try:
            kube.delete(name, force=True)
        except FoxrunError as error:
            assert type(error).__name__ == "WorkflowNotFound", error


def at_once(home: Path, *requests: tuple[str, ...]) -> list[tuple[int, str, str]]:
    """(exit code, stdout, stderr) of several submits that are started together, each by a person of its own."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "orchestrator", "submit", "--engine", "argo", "-o", "name", *NOWHERE, *request],
            cwd=ROOT, env=environment(home / str(number)), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for number, request in enumerate(requests)
    ]  # fmt: skip
    ended = [process.communicate(timeout=300) for process in processes]
    return [(process.returncode, *said) for process, said in zip(processes, ended, strict=True)]


def test_the_same_commit_submitted_by_two_becomes_two_workflows(
    kube: ArgoEngine, made: list[str], tmp_path: Path
) -> None:
    request = ("--regression-pair", "--sha", "HEAD")
    found = at_once(tmp_path, request, request)
    made += [out.strip() for _, out, _ in found]
    assert [code for code, _, _ in found] == [0, 0], found
    assert len(set(made)) == 2
    shas = {kube.get(name)["metadata"]["labels"]["foxrun.dev/sha"] for name in made}
    assert len(shas) == 1


def test_the_same_name_for_the_same_request_is_one_workflow(kube: ArgoEngine, made: list[str], tmp_path: Path) -> None:
    name = unique()
    made.append(name)
    request = ("--regression-pair", "--sha", "HEAD", "--name", name)
    found = at_once(tmp_path, request, request, request)
    assert [(code, out.strip()) for code, out, _ in found] == [(0, name)] * 3, found
    assert [w["metadata"]["name"] for w in kube.list({}) if w["metadata"]["name"].startswith(name)] == [name]


def test_the_same_name_for_different_requests_goes_to_the_first(
    kube: ArgoEngine, made: list[str], tmp_path: Path
) -> None:
    name = unique()
    made.append(name)
    found = at_once(tmp_path, *(("--sha", "HEAD", "--name", name, "--seed", seed) for seed in ("1", "2")))
    assert sorted(code for code, _, _ in found) == [0, 2], found
    winner = next(seed for seed, (code, _, _) in zip(("1", "2"), found, strict=True) if code == 0)
    refused = next(err for code, _, err in found if code == 2)
    assert f"workflow '{name}' exists already" in refused
    assert f"-> choose another --name, or foxrun delete {name}" in refused
    assert kube.get(name)["metadata"]["labels"]["foxrun.dev/seed"] == winner
