"""`foxrun status`, and the exit handler: the commit's host is told, from a shell and from a job of a CI service."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Place
from tests.hosts.servers import SHA, TOKEN, Server, host


def variables(server: Server) -> dict[str, str]:
    return {"FOXRUN_HOST_TOKEN": TOKEN, "FOXRUN_HOST_API": server.api, "FOXRUN_STATUS_KINDS": "train"}


def test_the_exit_handler_tells_the_host_and_status_tells_it_again(repo: Place) -> None:
    with host("github") as server:
        head = repo.git("rev-parse", "HEAD")
        repo.git("remote", "add", "origin", server.origin.replace("http://", "http://somebody:passw0rd@") + ".git")
        server.state.pulls[0]["head"]["sha"] = head
        pending = repo("status", "--pending", "--kind", "train", **variables(server))
        assert (pending.code, pending.out) == (0, f"status foxrun/train of {head[:12]}: pending\n")
        done = repo("submit", "--no-gate", "--log", **variables(server))
        assert done.code == 0, done.err
        assert f"alert: status foxrun/train of {head[:12]}: success" in done.err.splitlines()
        assert "alert: comment in #7 created" in done.err.splitlines()
        again = repo("status", "@latest", "--link", "https://ci.example/1", **variables(server))
        assert again.out == f"status foxrun/train of {head[:12]}: success\ncomment in #7 updated\n"
        notes = repo("get", "@latest", "-o", "json").json["metadata"]["annotations"]
    assert [(s["sha"], s["state"], s.get("target_url")) for s in server.state.statuses] == [
        (head, "pending", None),
        (head, "success", None),  # a report on this machine is no address for others
        (head, "success", "https://ci.example/1"),
    ]
    assert len(server.state.bodies()) == 1
    assert notes["foxrun.dev/origin"] == server.origin
    assert TOKEN not in done.out + done.err + again.out + again.err + repo("config").out


def test_kinds_that_are_not_named_have_no_status(repo: Place) -> None:
    with host("github") as server:
        repo.git("remote", "add", "origin", server.origin)
        done = repo("submit", "--no-gate", "--wait", **{**variables(server), "FOXRUN_STATUS_KINDS": "ci-gate"})
    assert done.code == 0, done.err
    assert server.state.requests == []


def github(server: Server) -> dict[str, str]:
    origin, _, name = server.origin.rpartition("/desk/")
    return {
        "GITHUB_ACTIONS": "true",
        "GITHUB_SERVER_URL": origin,
        "GITHUB_REPOSITORY": f"desk/{name}",
        "GITHUB_API_URL": server.api,
        "GITHUB_SHA": "e" * 40,
        "GITHUB_REF_NAME": "7/merge",
        "GITHUB_HEAD_REF": "ml-alpha-$(id)",
        "GITHUB_RUN_ID": "99",
        "GITHUB_TOKEN": TOKEN,
    }


def test_a_job_of_github_speaks_for_the_head_of_its_pull_request(here: Place) -> None:
    event = here.directory / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7, "head": {"sha": SHA}}}))
    with host("github") as server:
        done = here("status", "--pending", **github(server), GITHUB_EVENT_PATH=str(event))
        assert (done.code, done.out) == (0, "status foxrun/ci-gate of 3f0d9a61c2b8: pending\n"), done.err
    [status] = server.state.statuses
    assert (status["sha"], status["target_url"]) == (SHA, f"{server.origin}/actions/runs/99")


def test_a_job_of_gitlab(here: Place) -> None:
    with host("gitlab") as server:
        job = {
            "GITLAB_CI": "true", "CI_PROJECT_URL": server.origin, "CI_API_V4_URL": server.api, "CI_COMMIT_SHA": SHA,
            "CI_COMMIT_REF_NAME": "ml-alpha-`id`", "CI_JOB_URL": f"{server.origin}/-/jobs/1", "GITLAB_TOKEN": TOKEN,
        }  # fmt: skip
        assert here("status", "--pending", **job).code == 0
    assert server.state.statuses == [
        {
            "sha": SHA, "state": "pending", "name": "foxrun/ci-gate", "description": "the workflow runs",
            "target_url": f"{server.origin}/-/jobs/1", "ref": "ml-alpha-`id`",
        }
    ]  # fmt: skip


@pytest.mark.parametrize("strict", [False, True])
def test_what_is_not_written_is_said_and_changes_no_exit_code(here: Place, strict: bool) -> None:
    with host("github") as server:
        words = ["status", "--pending", *(["--strict"] if strict else [])]
        done = here(*words, **{**github(server), "GITHUB_TOKEN": "w0rthless"})
        assert done.code == (6 if strict else 0)
        assert "HTTP 401: Bad credentials" in done.err and "w0rthless" not in done.out + done.err
        none = here(*words, **{**github(server), "GITHUB_TOKEN": ""})
        assert none.code == (2 if strict else 0) and "there is no token for" in none.err


def test_a_jobs_own_token_goes_to_its_own_server_alone(here: Place) -> None:
    with host("github") as server, host("github") as other:
        done = here(
            "status", "--pending", "--repository", other.origin, **{**github(server), "FOXRUN_HOST_API": other.api}
        )
    assert other.state.requests == [] and server.state.requests == []
    assert "there is no token for" in done.err


def test_without_a_name_it_has_to_be_pending(here: Place) -> None:
    assert here("status").code == 2


def test_a_ci_gate_says_that_it_runs_and_what_it_came_to(repo: Place) -> None:
    with host("github") as server:
        repo.git("remote", "add", "origin", server.origin)
        variables = {"FOXRUN_HOST_TOKEN": TOKEN, "FOXRUN_HOST_API": server.api}
        there = {**variables, "FOXRUN_WORKFLOW_URL": "https://argo.example/{name}"}
        done = repo("submit", "--ci-gate", "--name", "gate", **there)
        server.state.trouble = [(500, {}), (404, {})] * 3  # what cannot be told changes nothing
        again = repo("submit", "--ci-gate", "--name", "again", "-o", "json", **there)
    assert (done.code, again.code, again.json["verdict"]) == (0, 0, "identical"), done.err + again.err
    told = [(s["state"], s["context"], s["target_url"]) for s in server.state.statuses[:2]]
    assert told == [(state, "foxrun/ci-gate", "https://argo.example/gate") for state in ("pending", "success")]


def test_a_pod_tells_of_the_commit_that_it_is_made_of(here: Place) -> None:
    pod = ("status", "--pending", "nightly-1", "--sha", "feature/x", "--repository")
    with host("github") as server:
        variables = {"FOXRUN_HOST_TOKEN": TOKEN, "FOXRUN_HOST_API": server.api, "FOXRUN_COMMIT_RUN": SHA}
        told = here(*pod, server.origin, "--kind", "nightly", **variables)
        assert told.out == "status foxrun/nightly of 3f0d9a61c2b8: pending\n", told.err
        other = here(*pod, server.origin, "--kind", "nightly", **variables, FOXRUN_STATUS_KINDS="ci-gate")
        assert (other.code, other.out) == (0, "no status: nightly is not among status_kinds\n")
        unknown = here(*pod, server.origin, "--kind", "nightly", **{**variables, "FOXRUN_COMMIT_RUN": ""})
        assert (unknown.code, unknown.out) == (0, "")
        assert unknown.err.startswith("status not written: nobody here knows which commit feature/x is (give all")
        nowhere = here(*pod, "", "--kind", "nightly", **variables)
        assert nowhere.err.startswith("status not written: no repository is known")
    assert [(s["sha"], s["context"]) for s in server.state.statuses] == [(SHA, "foxrun/nightly")]


def test_a_revision_is_the_commit_that_it_names(repo: Place) -> None:
    with host("github") as server:
        words = ("status", "--pending", "--repository", server.origin, "--sha")
        told = repo(*words, "HEAD", **variables(server))
        wrong = repo(*words, "no-such-branch", "--strict", **variables(server))
    head = repo.git("rev-parse", "HEAD")
    assert told.out == f"status foxrun/ci-gate of {head[:12]}: pending\n", told.err
    assert wrong.code == 2 and "nobody here knows which commit no-such-branch is" in wrong.err
    assert [s["sha"] for s in server.state.statuses] == [head]
