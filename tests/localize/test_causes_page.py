"""docs/causes.md is what the tables say. FOXRUN_REGENERATE=1 rewrites it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from foxrun.tracing.switches import SWITCHES
from orchestrator.localize import catalogue
from orchestrator.localize.cause_table import KINDS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "causes.md"


@pytest.mark.parametrize("name", ["rule", "switches", "causes"])
def test_the_page_holds_what_the_tables_say(name: str) -> None:
    text, wanted = PAGE.read_text("utf-8"), getattr(catalogue, name)()
    found = re.search(rf"(<!-- generated: {name} -->\n)(.*?)(<!-- end -->)", text, re.DOTALL)
    assert found is not None
    if os.environ.get("FOXRUN_REGENERATE") == "1":
        PAGE.write_text(text[: found.start(2)] + wanted + "\n" + text[found.end(2) :], "utf-8")
        return
    assert found[2].strip() == wanted, "run the test with FOXRUN_REGENERATE=1"


def test_every_cause_of_the_design_is_in_the_table_and_every_remedy_is_a_switch() -> None:
    section = (ROOT / "docs/architecture.md").read_text("utf-8").partition("**Causes**")[2].partition("**Remedies**")[0]
    named = set(section.partition("`scan-order")[2].replace("`", " ").replace(".", " ").split()) | {"scan-order"}
    assert {kind.name for kind in KINDS} == named - {"unknown"}
    assert {name for kind in KINDS for name in kind.remedies} <= set(SWITCHES)


def test_every_cause_says_what_to_write_and_every_question_is_one() -> None:
    for kind in KINDS:
        assert kind.change and kind.tests, kind.name
        assert all((test.__doc__ or "").strip().endswith("?") for test in kind.tests), kind.name
