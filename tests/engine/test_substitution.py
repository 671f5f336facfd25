from __future__ import annotations

import pytest

from orchestrator.engines.local.container import argv, expand
from orchestrator.engines.local.substitution import Scope, UnresolvedTag, substitute
from orchestrator.engines.local.values import duration_s

HOSTILE = ['"', "'", "\n\t\\", "💥 é", "{{workflow.name}}", "{{", "$(HOME)", "`id`", '{"a": ["b"]}', ""]


@pytest.mark.parametrize("value", HOSTILE)
def test_values_are_data(value: str) -> None:
    scope = Scope({"inputs.parameters.x": value, "workflow.name": "w"})
    template = {"args": ["{{inputs.parameters.x}}", "a={{ inputs.parameters.x }}/{{workflow.name}}"], "n": 3}
    assert substitute(template, scope) == {"args": [value, f"a={value}/w"], "n": 3}


def test_a_tag_without_value_is_an_error_that_names_it() -> None:
    with pytest.raises(UnresolvedTag, match=r"failed to resolve \{\{inputs.parameters.y\}\}"):
        substitute(["{{inputs.parameters.y}}"], Scope({}))


def test_dollars_are_read_as_kubernetes_reads_them() -> None:
    assert expand("$$(A) $(A) $(B) $A $$$$ $", {"A": "1"}) == "$(A) 1 $(B) $A $$ $"


def test_variables_of_the_container_alone_are_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOST", "host")
    container = {
        "command": ["echo"],
        "args": ["$(ONE) $(TWO) $(HOST)"],
        "env": [{"name": "ONE", "value": "1"}, {"name": "TWO", "value": "$(ONE)$(ONE)$$(ONE)"}],
    }
    assert argv(container) == ["echo", "1 11$(ONE) $(HOST)"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(90, 90), ("90", 90), ("90s", 90), ("1h30m", 5400), ("1d", 86400), ("1.5s", 1.5), ("250ms", 0.25)],
)
def test_durations(text: object, seconds: float) -> None:
    assert duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "5x", "1h 30m", "-3s", "soon", "5s5"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        duration_s(text)
