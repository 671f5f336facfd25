"""The history page: everything in it is data, and 10,000 runs open at once in a real browser."""

from __future__ import annotations

import html
import re
import time
from pathlib import Path

import pytest

from orchestrator.history import entries as h
from orchestrator.history import page
from tests.report import chromium

HOSTILE = "ml-alpha-<script>alert(1)</script>\"'&\n\u202e$(touch x)`id`" + "ü" * 200


def entry(number: int, **changed: object) -> h.Entry:
    day, minute = divmod(number, 1440)
    fields: dict[str, object] = {
        "name": f"ci-gate-{number:05}",
        "uid": f"u{number}",
        "finished": f"2026-{1 + day // 28:02}-{1 + day % 28:02}T{minute // 60:02}:{minute % 60:02}:00Z",
        "verdict": ("identical", "identical", "identical", "drift", "gate_failed", "job_failed")[number % 6],
        "kind": "ci-gate",
        "branch": f"ml-alpha-{number % 7}",
        "sha": f"{number:040x}",
        "seed": 42,
        "mode": 1,
        "step": "2",
        "leaf": "attn_q",
        "pnl_difference": -184000.0 if number % 6 == 3 else None,
        "message": "first at step 2",
        "report": f"https://argo.example/r/{number}.html",
    }
    return h.Entry(**{**fields, **changed})  # type: ignore[arg-type]


def test_branches_come_in_order_of_their_newest_run_and_runs_newest_first() -> None:
    text = page.render([entry(1), entry(2), entry(8)])
    assert re.findall(r'<section class="card" aria-label="([^"]*)"', text) == ["ml-alpha-1", "ml-alpha-2"]
    assert text.index("ci-gate-00008") < text.index("ci-gate-00001")
    assert text.count('<a href="https://argo.example/r/') == 3


def test_whatever_a_branch_is_called_stays_text() -> None:
    text = page.render(
        [entry(1, branch=HOSTILE, message=HOSTILE, leaf=HOSTILE, name=HOSTILE, report="javascript:alert(1)")]
    )
    assert "<script" not in text
    assert "javascript:" not in text
    assert "\u202e" not in text
    assert html.escape("<script>alert(1)</script>") in text


def test_no_run_at_all_is_said() -> None:
    assert "No workflow has ended yet." in page.render([])


def test_entries_survive_writing_and_damaged_ones_are_left_out() -> None:
    made = entry(3, branch=HOSTILE)
    assert h.from_text(h.to_text(made).encode(), "x") == made
    for damaged in (b"", b"{", b"[]", b'{"name": "a"}', b"\xff", b'{"name":"a","finished":"","verdict":"drift"}'):
        assert h.from_text(damaged, "x") is None


def test_choosing_by_pattern() -> None:
    many = [entry(1, branch="ml-alpha-x"), entry(2, branch="main", kind="nightly", verdict="drift")]
    assert [e.branch for e in h.chosen(many, branches=["ml-*"])] == ["ml-alpha-x"]
    assert [e.kind for e in h.chosen(many, kinds=["nightly"], verdicts=["drift"])] == ["nightly"]
    assert h.chosen(many, verdicts=["identical"], kinds=["nightly"]) == []


@pytest.mark.skipif(
    chromium.executable() is None, reason="no Chromium or Chrome is installed (Debian: apt-get install chromium)"
)
def test_ten_thousand_runs_open_in_under_two_seconds(tmp_path: Path) -> None:
    file = tmp_path / "history.html"
    file.write_text(page.render([entry(number) for number in range(10_000)]))
    browser = chromium.Browser(tmp_path / "profile")
    try:
        took: list[float] = []
        while len(took) < 12 and min(took, default=2.0) >= 2.0:  # the best of some: others work on these cores too
            began = time.monotonic()
            browser.show(file.as_uri(), width=1200)
            assert browser.evaluate("document.querySelectorAll('.row').length") == 10_000 + 7
            took.append(time.monotonic() - began)
            assert browser.complaints() == []
        assert min(took) < 2.0
    finally:
        browser.close()
