"""Exit codes, leaves, settings and links that pages name are those of the program."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

from orchestrator.compare.verdict import EXIT_CODES
from orchestrator.settings import NAMES
from tests.docs.test_commands import PAGES, ROOT

USAGE = 2
# Of Argo's executor, of signals, and of what never was a verdict: 64, 65 and 128 + N; 1 is a bug of foxrun's.
OTHERS = {1, 64, 65, 130, 137, 143}

# As sentences name the ends that codes stand for: "exit code 3 drift, 5 the trainer failed, ...".
LISTED = {
    "drift": 3,
    "gate failed": 4,
    "trainer failed": 5,
    "job failed": 5,
    "cluster, storage": 6,
    "infrastructure": 6,
    "deadline": 6,
    "not comparable": 7,
    "incomparable": 7,
    "incomplete": 7,
}


def table(page: str) -> dict[str, int]:
    rows = re.findall(r"^\| `(\w+)` \|(?:.*\|)? (\d) \|$", (ROOT / page).read_text("utf-8"), flags=re.MULTILINE)
    return {verdict: int(code) for verdict, code in rows if verdict in EXIT_CODES}


def test_the_tables_of_exit_codes_are_the_programs() -> None:
    assert table("docs/verdicts.md") == dict(EXIT_CODES)
    for verdict, code in table("README.md").items():
        assert EXIT_CODES[verdict] == code, verdict


def test_the_readmes_table_names_every_kind_of_end() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| (.+) \| (\d) \|$", text.partition("| verdict | exit code |")[2], flags=re.MULTILINE)
    assert [int(code) for _, code in rows] == [0, USAGE, 3, 4, 5, 6, 7]
    for verdict, code in EXIT_CODES.items():
        named = [
            int(c) for what, c in rows if re.search(rf"\b{verdict.replace('_', '[ _]')}\b", what.partition(":")[0])
        ]
        assert named == [code], verdict


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_an_exit_code_in_a_sentence_is_that_of_its_verdict(page: Path) -> None:
    text = page.read_text("utf-8")
    known = {*EXIT_CODES.values(), USAGE}
    for code in re.findall(r"\b(?:exit code|exits? with|exit)s? (\d+)\b", text, flags=re.IGNORECASE):
        assert int(code) in known | OTHERS, f"{page.name}: exit code {code}"
    for code, what in re.findall(rf"\b(\d) (?:a |the )?({'|'.join(LISTED)})\b", text):
        assert int(code) == LISTED[what], f"{page.name}: {code} {what}"
    words = "|".join(word.replace("_", "[ _]") for word in EXIT_CODES)
    for verdict, code in re.findall(rf"`?\b({words})`?,? \(?exit (?:code )?(\d)\b", text):
        assert int(code) == EXIT_CODES[verdict.replace(" ", "_")], f"{page.name}: {verdict} exits with {code}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_settings_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    named = re.findall(r"\b[Ss]ettings? `([a-z0-9_]+)`", text)
    blocks = re.findall(r"```yaml\n# foxrun\.yaml\n(.*?)```", text, flags=re.DOTALL)
    named += [key for block in blocks for key in re.findall(r"^([a-z_0-9-]+):", block, flags=re.MULTILINE)]
    assert [name for name in named if name.replace("-", "_") not in NAMES] == [], page.name


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


def test_the_architecture_names_no_module_that_is_not_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    folders = ("foxrun", "trainer", "workflows", "orchestrator", "infra")
    known = [file.as_posix() for folder in folders for file in (ROOT / folder).rglob("*.py")]
    named = set(re.findall(r"(?<![\w/])[\w/]+\.py\b", text)) - {"file.py"}
    assert sorted(name for name in named if not any(path.endswith(f"/{name}") for path in known)) == []
