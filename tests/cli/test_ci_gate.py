"""`foxrun submit --ci-gate`: the mid-smoke twice, unless somebody has said how long."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Place

SMOKE = {"steps": "2000", "eval-steps": "500", "mode": "1", "parameters": '{"envs":"128"}'}


def asked(place: Place, *words: str, **variables: str) -> dict[str, str]:
    done = place("submit", "--ci-gate", *words, "--dry-run", "-o", "json", **variables)
    assert done.code == 0, done.err
    found = {item["name"]: item["value"] for item in json.loads(done.out)["spec"]["arguments"]["parameters"]}
    return {name: found[name] for name in SMOKE}


def test_it_is_the_mid_smoke_unless_somebody_says_otherwise(repo: Place) -> None:
    (repo.directory / "foxrun.yaml").write_text("seed: 5\n")
    assert asked(repo) == SMOKE
    assert asked(repo, FOXRUN_STEPS="7") == SMOKE | {"steps": "7"}
    assert asked(repo, "--steps", "9", FOXRUN_STEPS="7") == SMOKE | {"steps": "9"}
    assert asked(repo, "--mode", "3", "-p", "envs=8") == SMOKE | {"mode": "3", "parameters": '{"envs":"8"}'}
    (repo.directory / "foxrun.yaml").write_text("trainer: python train.py\neval_steps: 3\n")
    assert asked(repo) == SMOKE | {"eval-steps": "3", "parameters": "{}"}, "what another trainer calls it, nobody knows"


def test_it_runs_here_and_ends_in_a_verdict(repo: Place) -> None:
    done = repo("submit", "--ci-gate", "-o", "json")
    assert (done.code, done.json["verdict"]) == (0, "identical"), done.err
    workflow = repo("get", "@latest", "-o", "json").json
    assert workflow["metadata"]["labels"]["foxrun.dev/kind"] == "ci-gate"
    names = {node["displayName"] for node in workflow["status"]["nodes"].values() if node["type"] == "Pod"}
    assert {name.partition("(")[0] for name in names} >= {"leg-a", "leg-b", "compare"}
    assert not [name for name in names if name.startswith("gate")]
    parted = repo("submit", "--ci-gate", "-p", "source=urandom", "-o", "json")
    assert (parted.code, parted.json["verdict"]) == (3, "drift"), parted.err
    assert repo("list", "-l", "kind=ci-gate", "--verdict", "drift", "-o", "name").out.startswith("ci-gate-")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--regression-pair"], "--ci-gate and --regression-pair are two kinds of workflow"),
        (["--against", "HEAD"], "--against needs something to compare with"),
        (["--rtol", "1e-6"], "--rtol needs something to compare with"),
    ],
)
def test_what_it_cannot_be(repo: Place, words: list[str], said: str) -> None:
    done = repo("submit", "--ci-gate", *words)
    assert done.code == 2
    assert said in done.err
