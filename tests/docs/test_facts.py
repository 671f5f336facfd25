"""Exit codes, leaves, settings and links that pages name are those of the program."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

from orchestrator.compare.verdict import EXIT_CODES
from orchestrator.settings import NAMES
from tests.docs.test_commands import PAGES, ROOT


def table(page: str) -> dict[str, int]:
    rows = re.findall(r"^\| `(\w+)` \|(?:.*\|)? (\d) \|$", (ROOT / page).read_text("utf-8"), flags=re.MULTILINE)
    return {verdict: int(code) for verdict, code in rows if verdict in EXIT_CODES}


def test_the_tables_of_exit_codes_are_the_programs() -> None:
    assert table("docs/verdicts.md") == dict(EXIT_CODES)
    for verdict, code in table("README.md").items():
        assert EXIT_CODES[verdict] == code, verdict


def test_every_setting_is_documented() -> None:
    text = (ROOT / "docs" / "cli.md").read_text("utf-8")
    assert [name for name in NAMES if f"| `{name}` |" not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_variables_that_a_page_names_exist(page: Path) -> None:
    """A variable FOXRUN_X is a setting, or something in the repository reads it."""
    settings = {f"FOXRUN_{name.upper()}" for name in NAMES}
    for name in sorted(set(re.findall(r"\bFOXRUN_[A-Z0-9_]*[A-Z0-9]\b", page.read_text("utf-8"))) - settings):
        assert name in read_somewhere(), f"{page.name}: {name}"


@functools.cache
def read_somewhere() -> frozenset[str]:
    folders = [
        ROOT / name for name in ("foxrun", "trainer", "workflows", "orchestrator", "benchmarks", "examples", "tests")
    ]
    files = [file for folder in folders for file in sorted(folder.rglob("*")) if file.suffix in (".py", ".yaml", ".sh")]
    text = "\n".join(file.read_text("utf-8") for file in [*files, ROOT / "Makefile", ROOT / "Dockerfile"])
    return frozenset(re.findall(r"\bFOXRUN_[A-Z0-9_]*[A-Z0-9]\b", text))
