from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.engines.local.expression import DEPENDS, RETRY, WHEN, ExpressionError, parse

RESULTS = {"a.Succeeded": True, "a.Failed": False, "leg-b.Failed": True, "leg-b": False, "a": True, "c.Omitted": False}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a", True),
        ("a.Succeeded && leg-b.Failed", True),
        ("a.Failed || c.Omitted", False),
        ("a.Failed || c.Omitted || leg-b.Failed", True),
        ("!a.Failed && !(leg-b || c.Omitted)", True),
        ("a.Failed && leg-b.Failed || a", True),
        ("a.Failed && (leg-b.Failed || a)", False),
        ("  a.Succeeded&&leg-b.Failed  ", True),
    ],
)
def test_depends(text: str, value: bool) -> None:
    assert parse(text, DEPENDS).evaluate(RESULTS) is value


def test_depends_names_its_tasks_in_order() -> None:
    assert parse("leg-b.Failed && (a || leg-b.Failed)", DEPENDS).names == ("leg-b.Failed", "a")


@pytest.mark.parametrize(
    ("text", "tags", "value"),
    [
        ("{{x}} == heads", {"x": "heads"}, True),
        ("{{x}} != heads", {"x": "tails"}, True),
        ("'{{x}}' == 'it''s'", {"x": "it"}, None),
        ("{{x}} > 5", {"x": "10"}, True),
        ("{{x}} > 5 && {{y}} == true", {"x": "10", "y": "true"}, True),
        ("'{{x}}' == '5'", {"x": "5"}, True),
        ("'{{x}}' == 5", {"x": "5"}, False),
        ("{{x}} == ''", {"x": ""}, True),
        ("{{ x }} in ['a', b]", {"x": "b"}, True),
        ("true", {}, True),
        ("!{{x}}", {"x": "false"}, True),
        ("'{{x}}-{{y}}' == 'a-b'", {"x": "a", "y": "b"}, True),
        ("{{x}} =~ '^h'", {"x": "heads"}, True),
    ],
)
def test_when(text: str, tags: dict[str, str], value: bool | None) -> None:
    if value is None:
        with pytest.raises(ExpressionError):
            parse(text, WHEN)
    else:
        assert parse(text, WHEN).evaluate({}, tags.__getitem__) is value


@pytest.mark.parametrize("hostile", ["x' || 'a' == 'a", "true || true", "{{y}}", '" || true || "', "\\' || true", "💥"])
def test_no_value_changes_what_is_asked(hostile: str) -> None:
    for text in ("'{{x}}' == 'heads'", "{{x}} == heads"):
        assert parse(text, WHEN).evaluate({}, {"x": hostile}.__getitem__) is False


LAST = {"retries": "1", "lastRetry.exitCode": "137", "lastRetry.status": "Failed", "lastRetry.message": "pod deleted"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('lastRetry.status == "Error" || lastRetry.exitCode in ["64", "65"]', False),
        ("asInt(lastRetry.exitCode) in [64, 65, 137]", True),
        ("asInt(lastRetry.exitCode) > 1 && lastRetry.message contains 'deleted'", True),
        ("lastRetry.exitCode == 137", False),
        ("not (asInt(lastRetry.exitCode) not in [137])", True),
        ("asFloat(retries) + 1 < 3 and lastRetry.status matches '^F'", True),
        ("asInt(lastRetry.exitCode) - 128 == 9", True),
        ('!(lastRetry.message contains "deadline")', True),
        ("lastRetry.message startsWith 'pod' && lastRetry.message endsWith 'ed'", True),
    ],
)
def test_retry_expression(text: str, value: bool) -> None:
    assert parse(text, RETRY).evaluate(LAST) is value


@pytest.mark.parametrize(
    ("dialect", "text", "message"),
    [
        (DEPENDS, "a &&", "'a &&': expected a value, found the end at position 4"),
        (DEPENDS, "a b", "'a b': expected an operator or the end, found 'b' at position 2"),
        (DEPENDS, "(a || b", "'(a || b': expected ')', found the end at position 7"),
        (DEPENDS, "a ? b", "'a ? b': cannot read '? b' at position 2"),
        (DEPENDS, "", "'': expected a value, found the end at position 0"),
        (RETRY, "exec(1)", "'exec(1)': no function 'exec' (position 0)"),
        (RETRY, "asInt('a'", "\"asInt('a'\": expected ')', found the end at position 9"),
    ],
)
def test_a_wrong_expression_is_shown_with_the_position(dialect: str, text: str, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text, dialect)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "text", ["asInt(lastRetry.message) > 1", "lastRetry.exitCode", "lastRetry.status > 1", "nobody == 1"]
)
def test_an_expression_that_cannot_be_evaluated_is_an_error(text: str) -> None:
    with pytest.raises(ExpressionError, match=text[:9].replace("(", r"\(")):
        parse(text, RETRY).evaluate(LAST)


ATOMS = st.sampled_from(["a.Succeeded", "a.Failed", "leg-b.Failed", "leg-b", "a", "c.Omitted"])
FORMULAS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        inner.map(lambda x: f"!{x}" if x[0] not in "!(" else f"!({x})"),
        st.tuples(inner, st.sampled_from(["&&", "||"]), inner).map(" ".join),
        inner.map(lambda x: f"({x})"),
    ),
    max_leaves=12,
)


@given(FORMULAS, st.lists(st.booleans(), min_size=6, max_size=6))
def test_depends_means_what_python_means(formula: str, values: list[bool]) -> None:
    names = dict(zip(["a.Succeeded", "a.Failed", "leg-b.Failed", "leg-b", "a", "c.Omitted"], values, strict=True))
    python = re.sub(r"[\w.-]+", lambda match: str(names[match[0]]), formula)
    python = python.replace("&&", " and ").replace("||", " or ").replace("!", " not ")
    assert parse(formula, DEPENDS).evaluate(names) is eval(python)


@given(st.text(max_size=30), st.sampled_from([DEPENDS, WHEN, RETRY]))
def test_any_text_is_read_or_refused(text: str, dialect: str) -> None:
    try:
        parse(text, dialect)
    except ExpressionError as error:
        assert repr(text) in str(error)
