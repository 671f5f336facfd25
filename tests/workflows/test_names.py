"""Names and label values are legal for any text, and different texts stay apart."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows.names import file_name, label_value, name_prefix, workflow_name

# As in k8s.io/apimachinery/pkg/util/validation.
LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
DNS_1123_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")

LONG = "feature/a-very-long-name-that-goes-on-and-on-and-ends-long-after-sixty-three-"
texts = st.one_of(
    st.text(max_size=200),
    st.text(alphabet="aZ9-._/ é🦊", max_size=130),
    st.text(alphabet=st.characters(), max_size=20),
)


@given(texts)
def test_label_values_are_legal(text: str) -> None:
    value = label_value(text)
    assert len(value) <= 63
    assert LABEL_VALUE.fullmatch(value)
    assert label_value(value) == value


@given(texts)
def test_workflow_names_are_legal_and_leave_room_for_what_argo_appends(text: str) -> None:
    name = workflow_name(text)
    assert len(name) <= 52
    assert DNS_1123_LABEL.fullmatch(name)
    assert workflow_name(name) == name


@given(texts)
def test_prefixes_are_legal_once_the_server_has_appended_five_characters(text: str) -> None:
    prefix = name_prefix(text)
    assert prefix.endswith("-")
    assert len(prefix + "x7k2p") <= 52
    assert DNS_1123_LABEL.fullmatch(prefix + "x7k2p")


@given(texts)
def test_file_names_need_no_quoting(text: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", file_name(text))


@given(texts, texts)
def test_different_texts_stay_apart(one: str, other: str) -> None:
    assert (label_value(one) == label_value(other)) == (one == other)
    assert (workflow_name(one) == workflow_name(other)) == (one == other)


@given(st.text(alphabet="abc-", min_size=55, max_size=80), texts, texts)
def test_long_texts_of_one_prefix_stay_apart(prefix: str, one: str, other: str) -> None:
    assert (label_value(prefix + one) == label_value(prefix + other)) == (one == other)
    assert (workflow_name(prefix + one) == workflow_name(prefix + other)) == (one == other)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", ""),
        ("main", "main"),
        ("ml-alpha-3.1_x", "ml-alpha-3.1_x"),
        ("a" * 63, "a" * 63),
        ("a" * 64, "a" * 52 + "-ffe054fe7a"),
        ("feature/x", "feature-x-217d2bf51f"),
        ("feature-x", "feature-x"),
        ("trailing-", "trailing-b520d72a4f"),
        (LONG + "one", "feature-a-very-long-name-that-goes-on-and-on-and-end-d438bf70b2"),
        (LONG + "two", "feature-a-very-long-name-that-goes-on-and-on-and-end-2be0325789"),
        ("🦊", "0a9f72e8ed"),
        ("\udcff", "8f1d0f9c88"),
    ],
)
def test_label_values_by_example(text: str, value: str) -> None:
    assert label_value(text) == value


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("nightly", "nightly"),
        ("Nightly/H200", "nightly-h200-18123f095e"),
        ("nightly.h200", "nightly-h200-a147cf57b5"),
        ("", "e3b0c44298"),
        ("7", "7"),
        ("-", "3973e022e9"),
    ],
)
def test_workflow_names_by_example(text: str, name: str) -> None:
    assert workflow_name(text) == name


def test_prefixes_keep_what_is_legal() -> None:
    assert name_prefix("train-1234567") == "train-1234567-"
    assert name_prefix("train-1234567-") == "train-1234567-"


def test_file_names_keep_their_extension_when_cut() -> None:
    assert file_name("x" * 200 + ".dbn.zst").endswith("xxx.dbn.zst")
    assert file_name("btc usdt.mbp-10.dbn.zst") == "btc_usdt.mbp-10.dbn.zst"
    assert file_name("..") == "file"
