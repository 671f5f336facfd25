"""What cannot become a Workflow is refused, with what is wrong and what to do."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workflows.cases import ALL, OLD, SHA, SYNTHETIC, TREE
from workflows.parameters import (
    InvalidParameter,
    RunParameters,
    TemplateMarker,
    Toleration,
    escape_dollars,
    json_for_args,
)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"sha": "1234567"},
            "sha: '1234567' is not a full hash of 40 lower-case hexadecimal digits. "
            "Resolve it first: git rev-parse REVISION",
        ),
        (
            {"tree": ""},
            "tree: '' is not a full hash of 40 lower-case hexadecimal digits. "
            "Resolve it first: git rev-parse REVISION^{tree}",
        ),
        ({"against": OLD}, "against: needs against_tree, and the other way round. Give both or neither"),
        ({"mode": 4}, "mode: 4 is none of 0, 1, 2, 3. 0 is fast, 1 pedantic, 2 the control, 3 fast and exact"),
        ({"seed": -1}, "seed: -1 is out of range. Give 0 to 9223372036854775807"),
        ({"seed": 2**63}, "seed: 9223372036854775808 is out of range. Give 0 to 9223372036854775807"),
        ({"seed": "43"}, "seed: '43' is not a whole number. Give an integer"),
        ({"steps": 0}, "steps: 0 is out of range. Give 1 to 9223372036854775807"),
        ({"steps": True}, "steps: True is not a whole number. Give an integer"),
        ({"user_id": 0}, "user_id: 0 is out of range. Give 1 to 9223372036854775807"),
        ({"gate": 1}, "gate: 1 is neither True nor False. Give one of them"),
        ({"rtol": float("nan")}, "rtol: nan is no tolerance. Give a finite number from 0 on"),
        ({"parameters": (("a", "1"), ("a", "2"))}, "parameters: 'a' is given twice. Give each key once"),
        ({"parameters": (("", "1"),)}, "parameters: a key is empty. Write -p key=value"),
        ({"parameters": (("a", 1),)}, "parameters: 'a': 1 is not text. Turn it into a string first"),
        (
            {"parameters": (("a", "x" * 60_000),)},
            "parameters: takes 60008 bytes of JSON, over 60000. Put what is large into the data file",
        ),
        (
            {"trainer": ("python", "a\0b")},
            "trainer: contains a NUL character. No argument of a process can hold one; remove it",
        ),
        ({"branch": "a\udcff"}, "branch: 'a\\udcff' is not valid Unicode (character 1). Write it in UTF-8"),
        ({"trainer": ()}, "trainer: is empty. Give a command, such as python -m trainer"),
        ({"tolerance": "[1]"}, "tolerance: is no JSON object. docs/verdicts.md shows one"),
        ({"data_key": "inputs/x"}, "data_key: needs data_name, and the other way round. Give both or neither"),
        (
            {"data_key": "inputs/../x", "data_name": "x"},
            "data_key: 'inputs/../x' is no key inside the store. Use inputs/<sha256>/<file name>",
        ),
        ({"data_key": "inputs/x", "data_name": "a/b"}, "data_name: 'a/b' is no file name. Give the last part alone"),
        (
            {"image": "trainer:{commit}"},
            "image: 'trainer:{commit}' is no image. Write registry/name:{sha}; {sha} is the only placeholder",
        ),
        ({"memory": "8 GB"}, "memory: '8 GB' is no quantity. Write 500m or 2 (cpu), 8Gi (memory)"),
        ({"service_account": "Foxrun"}, "service_account: 'Foxrun' is no Kubernetes name. Use a-z, 0-9 and dashes"),
        ({"gpu_model": "NVIDIA-H200"}, "gpu_model: is given but gpus is 0. Ask for at least one GPU"),
        (
            {"gpus": 1, "gpu_model": "NVIDIA H200"},
            "gpu_model: 'NVIDIA H200' is no label value. "
            "Take one that `kubectl get nodes -L nvidia.com/gpu.product` shows",
        ),
        ({"name": "a", "generate_name": "b"}, "name: and generate_name exclude each other. Give one of them"),
        ({"name": ""}, "name: is empty. Give a name, or none to have one made"),
        ({"tolerations": (Toleration(key="x", operator="Has"),)}, "tolerations: operator 'Has'. Use Equal or Exists"),
    ],
)
def test_a_bad_value_is_refused_with_its_remedy(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        replace(SYNTHETIC, **change)
    assert str(caught.value) == message
    assert isinstance(caught.value, ValueError)


def test_text_that_is_no_json_is_refused_with_its_place() -> None:
    with pytest.raises(InvalidParameter, match=r"^tolerance: is not JSON \(.*column 2.*\)\. Check the tolerance file$"):
        replace(SYNTHETIC, tolerance="{oops")


@pytest.mark.parametrize(
    "change",
    [
        {"branch": "a{{b"},
        {"parameters": (("a", "{{workflow.uid}}"),)},
        {"parameters": (("{{=1}}", "a"),)},
        {"trainer": ("python", "{{x}}")},
        {"image": "{{x}}"},
        {"tools_image": "{{x}}"},
        {"name": "{{x}}"},
        {"worktree": "/home/{{x}}"},
        {"data_key": "inputs/{{x}}", "data_name": "x"},
        {"data_key": "inputs/x", "data_name": "{{x"},
        {"tolerance": '{"{{x": 1}'},
        {"tolerance": '{"\\u007b\\u007bx": 1}'},
        {"tolerations": (Toleration(key="{{x}}"),)},
    ],
)
def test_a_template_tag_is_refused_wherever_it_hides(change: dict[str, Any]) -> None:
    with pytest.raises(TemplateMarker, match="template tag"):
        replace(SYNTHETIC, **change)


def test_single_braces_and_closing_braces_are_data() -> None:
    p = replace(SYNTHETIC, parameters=(("a", '}} { {x} {"b": {"c": 1}}'),))
    assert json.loads(p.parameters_json) == {"a": '}} { {x} {"b": {"c": 1}}'}


def test_the_least_that_must_be_said() -> None:
    p = RunParameters(sha=SHA, tree=TREE, steps=1, eval_steps=0)
    assert (p.seed, p.mode, p.gate_steps, p.trainer) == (42, 1, 50, ("python", "-m", "trainer"))


def test_parameters_come_in_one_order_whatever_order_they_were_given_in() -> None:
    one = replace(SYNTHETIC, parameters=(("b", "1"), ("a", "2")))
    other = replace(SYNTHETIC, parameters=(("a", "2"), ("b", "1")))
    assert one.parameters_json == other.parameters_json == '{"a":"2","b":"1"}'


def test_the_image_of_a_leg_is_that_of_its_commit() -> None:
    assert ALL.image_of(OLD) == f"registry.example.com/ml/trainer:{OLD}"


@given(st.dictionaries(st.text(), st.text(), max_size=5))
def test_json_for_args_keeps_every_value_and_has_no_dollar(values: dict[str, str]) -> None:
    text = json_for_args(values)
    assert json.loads(text) == values
    assert "$" not in text


def expand(text: str) -> str:
    """What Kubernetes makes of an argument in a container without variables (third_party/forked/golang/expansion)."""
    out, i = "", 0
    while i < len(text):
        if text[i] == "$" and text[i + 1 : i + 2] == "$":
            out, i = out + "$", i + 2
        elif text[i] == "$" and text[i + 1 : i + 2] == "(" and ")" in text[i:]:
            raise AssertionError(f"a variable would be looked up in {text!r}")
        else:
            out, i = out + text[i], i + 1
    return out


@given(st.text(alphabet="$(A) x"))
def test_escaped_dollars_arrive_as_they_were(text: str) -> None:
    assert expand(escape_dollars(text)) == text


def test_every_mode_is_a_mode() -> None:
    for mode in (0, 1, 2, 3):
        assert replace(SYNTHETIC, mode=mode).mode == mode
