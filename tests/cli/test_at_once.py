"""Two people submit at once on one machine: different names live side by side, one name is one workflow."""

from __future__ import annotations

from tests.cli.conftest import Place


def at_once(repo: Place, *requests: tuple[str, ...]) -> list[tuple[int, str, str]]:
    """(exit code, stdout, stderr) of several submits that are started together."""
    processes = [repo.start("submit", "--no-gate", "-o", "name", *request) for request in requests]
    ended = [process.communicate(timeout=300) for process in processes]
    return [(process.returncode, *said) for process, said in zip(processes, ended, strict=True)]


def test_the_same_commit_submitted_by_two_becomes_two_workflows(repo: Place) -> None:
    found = at_once(repo, ("--sha", "HEAD"), ("--sha", "HEAD"))
    assert [code for code, _, _ in found] == [0, 0], found
    workflows = repo("list", "-o", "json").json
    assert len({item["metadata"]["name"] for item in workflows}) == 2
    assert [item["metadata"]["labels"]["foxrun.dev/verdict"] for item in workflows] == ["succeeded", "succeeded"]


def test_the_same_name_for_the_same_request_is_one_workflow_that_both_follow(repo: Place) -> None:
    request = ("--regression-pair", "--name", "pair", "-p", "step_s=0.1")
    found = at_once(repo, request, request)
    assert [(code, out.splitlines()[0]) for code, out, _ in found] == [(0, "pair")] * 2, found
    assert [item["metadata"]["name"] for item in repo("list", "-o", "json").json] == ["pair"]


def test_the_same_name_for_different_requests_goes_to_the_first(repo: Place) -> None:
    found = at_once(repo, *(("--name", "one", "--seed", seed) for seed in ("1", "2")))
    assert sorted(code for code, _, _ in found) == [0, 2], found
    winner = next(seed for seed, (code, _, _) in zip(("1", "2"), found, strict=True) if code == 0)
    assert "'one'" in next(err for code, _, err in found if code == 2)
    assert repo("get", "one", "-o", "json").json["metadata"]["labels"]["foxrun.dev/seed"] == winner
