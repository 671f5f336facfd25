"""Files of the zoo are as its runner expects them, answers get the marks they deserve, and localize finds the fast."""

from __future__ import annotations

import ast
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from orchestrator.localize.cause_table import KINDS as TABLE
from tests.zoo import table
from tests.zoo.running import localize
from tests.zoo.score import mark
from tests.zoo.specimen import KINDS, BadSpecimen, Specimen, clean, culprits, read

BY_ID = {specimen.id: specimen for specimen in [*culprits(), *clean()]}


def test_every_kind_that_localize_knows_has_two_culprits() -> None:
    counts = Counter(specimen.kind for specimen in culprits())
    assert {kind.name for kind in TABLE} - {"unknown"} == set(KINDS)
    assert {kind: counts[kind] for kind in KINDS if counts[kind] < 2} == {}


def test_there_are_twenty_clean_trainers() -> None:
    assert len(clean()) >= 20


@pytest.mark.parametrize(
    "specimen", [s for s in culprits() if "code" in s.remedies and not s.command], ids=lambda s: s.id
)
def test_a_culprit_that_code_cures_has_a_cured_variant(specimen: Specimen) -> None:
    before, after = ast.dump(ast.parse(specimen.path.read_text())), ast.dump(ast.parse(specimen.cured()))
    assert before != after
    assert "# cured:" not in specimen.cured()


def test_a_head_with_a_mistake_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    file.write_text('"""A title."""\n\n# /// zoo\n# kind = "atomic"\n# remedy = "code"\n# ///\nx = 1  # culprit\n')
    with pytest.raises(BadSpecimen, match=r"wrong\.py: kind 'atomic'; one of scan-order, atomics"):
        read(file)
    file.write_text('"""A title."""\n')
    with pytest.raises(BadSpecimen, match="no head"):
        read(file)


def answer(specimen: Specimen, **changes: Any) -> dict[str, Any]:
    """What localize says when it is right."""
    where = f"{specimen.path.name}:{specimen.lines[0]} <module>"
    right = {
        "found": True, "step": specimen.step, "leaf": "input.0", "component": specimen.component[0],
        "operation": {"name": "random.shuffle", "where": where, "how": "seed"},
        "trials": [{"step": 0}], "causes": [{"name": specimen.kind}],
        "remedies": [{"name": specimen.remedies[0], "outcome": "verified", "text": "seed it"}],
    }  # fmt: skip
    return {**right, **changes}


@pytest.mark.parametrize(
    ("question", "changes"),
    [
        ("step", {"step": 3}),
        ("component", {"component": "optimizer"}),
        ("operation", {"operation": {"name": "random.shuffle", "where": "unseeded_shuffle.py:1 <module>", "how": ""}}),
        ("operation", {"operation": None}),
        ("cause", {"causes": [{"name": "atomics"}, {"name": "unseeded-generator"}]}),
        ("remedy", {"remedies": [{"name": "one-thread", "outcome": "verified", "text": "one thread"}]}),
        ("remedy", {"remedies": [{"name": "seed-generators", "outcome": "hidden", "text": "seed it"}]}),
    ],
)
def test_each_wrong_answer_costs_its_own_mark(question: str, changes: dict[str, Any]) -> None:
    specimen = BY_ID["unseeded_shuffle"]
    assert all(mark(specimen, answer(specimen), seconds=1, cured_clean=None).right.values())
    right = mark(specimen, answer(specimen, **changes), seconds=1, cured_clean=None).right
    assert [key for key, value in right.items() if not value] == [question]


def test_code_is_the_right_remedy_only_where_the_cured_variant_is_clean_and_no_switch_is_praised() -> None:
    specimen = BY_ID["uninitialised_torch_empty"]
    advice = [{"name": "code", "outcome": "not tried", "text": "write it whole"}]
    praised = [*advice, {"name": "one-thread", "outcome": "verified", "text": ""}]
    for remedies, cured, right in ((advice, True, True), (advice, False, False), (praised, True, False)):
        found = mark(specimen, answer(specimen, remedies=remedies), seconds=1, cured_clean=cured)
        assert found.right["remedy"] is right


def test_the_table_counts_right_answers_and_names_false_alarms() -> None:
    specimen, quiet, alarm = BY_ID["unseeded_shuffle"], BY_ID["mlp_sgd"], BY_ID["lstm"]
    marks = [
        mark(specimen, answer(specimen, step=9), seconds=10, cured_clean=None),
        mark(quiet, {"found": False}, seconds=5, cured_clean=None),
        mark(alarm, answer(specimen), seconds=5, cured_clean=None),
    ]
    assert table.summary(marks) == [
        "1 culprits: step 0 %, component 100 %, operation 100 %, cause 100 %, remedy 100 %",
        "time of one: median 10 s, longest 10 s",
        "2 clean trainers: 1 false alarms (lstm)",
    ]
    assert "| unseeded-generator | 1 | 0 | 1 | 1 | 1 | 1 |" in table.markdown(marks, "a machine")


@pytest.mark.parametrize("name", ["unseeded_shuffle", "hash_order_labels"])
def test_localize_finds(name: str, tmp_path: Path) -> None:
    specimen = BY_ID[name]
    result, trouble = localize(specimen, tmp_path, 300, ["--no-remedies", "--trials", "1", "--replay", "0"])
    assert trouble == ""
    found = mark(specimen, result, seconds=0, cured_clean=None)
    wrong = {key: found.said[key] for key in ("step", "component", "operation") if not found.right[key]}
    assert wrong == {}, json.dumps(result, indent=1)
