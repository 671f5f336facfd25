"""A verdict as an entry of the record of root causes."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from foxrun import jsonio
from orchestrator.cli.main import execute
from orchestrator.compare.verdict import as_dict
from orchestrator.report.note import note
from tests.report import samples


def test_an_entry_says_when_where_by_how_much_and_what_is_not_known() -> None:
    text = note(samples.drift(3), date="2026-11-29")
    verdict = samples.drift(3)
    assert verdict.first_divergence is not None
    assert text.startswith(f"## 2026-11-29: drift at step {verdict.first_divergence.step} in `")
    assert f"    {verdict.first_divergence.line}\n" in text
    assert "- Cause: not known yet\n- Remedy: none verified yet\n" in text


def test_text_of_others_makes_no_heading_link_or_line_of_its_own() -> None:
    hostile = "x\n# heading\n[a](http://e) `id` <b> *bold*"
    text = note(dataclasses.replace(samples.drift(1), message=hostile), date="2026-11-29")
    assert "\n# heading" not in text
    assert r"x \# heading \[a\](http://e) \`id\` \<b\> \*bold\*." in text


def test_entries_are_appended_to_the_record(tmp_path: Path) -> None:
    (tmp_path / "verdict.json").write_text(jsonio.pretty(as_dict(samples.drift(1))))
    record = tmp_path / "root-causes.md"
    record.write_text("# Root causes\n")
    for _ in range(2):
        assert execute(["report", "--as-note", "--out", str(record), str(tmp_path / "verdict.json")]) == 0
    text = record.read_text()
    assert text.startswith("# Root causes\n\n## ")
    assert text.count("\n## ") == 2
