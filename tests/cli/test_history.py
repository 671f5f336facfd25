"""Every workflow leaves an entry when it ends, which outlives it."""

from __future__ import annotations

from tests.cli.conftest import Place


def test_what_a_workflow_came_to_is_listed_also_when_it_is_deleted(repo: Place) -> None:
    assert "no workflow has ended yet" in repo("history").err
    assert repo("submit", "--regression-pair", "--name", "good").code == 0
    assert repo("submit", "--regression-pair", "--no-gate", "--name", "bad", "-p", "source=urandom").code == 3
    assert repo("submit", "--name", "killed", "--no-gate", "-p", "end=killed").code == 5
    assert repo("delete", "good").code == 0
    entries = {entry["name"]: entry for entry in repo("history", "-o", "json").json}
    assert {name: e["verdict"] for name, e in entries.items()} == {
        "good": "identical", "bad": "drift", "killed": "job_failed",
    }  # fmt: skip
    bad = entries["bad"]
    assert (bad["kind"], bad["branch"], bad["step"], bad["leaf"]) == ("regression-pair", "main", "2", "w")
    assert bad["sha"] == repo.git("rev-parse", "HEAD")
    assert bad["pnl_difference"] != 0
    assert [e["name"] for e in repo("history", "--only", "drift", "-o", "json").json] == ["bad"]
    assert repo("history", "--branch", "other-*").out == ""


def test_all_of_it_as_one_page_that_leads_to_the_reports(repo: Place) -> None:
    assert repo("submit", "--name", "one").code == 0
    done = repo("history", "--html", "history.html")
    assert done.code == 0, done.err
    page = (repo.directory / "history.html").read_text()
    assert f'<a href="file://{repo.home}/reports/one.html">report</a>' in page


def test_the_page_is_written_where_no_folder_is_yet_and_never_in_place_of_one(here: Place) -> None:
    done = here("history", "--html", "new/folder/page.html")
    assert done.code == 0 and (here.directory / "new" / "folder" / "page.html").is_file()
    refused = here("history", "--html", "new")
    assert (refused.code, "'new' is a directory" in refused.err) == (2, True), refused.err
