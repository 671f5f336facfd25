"""Each workflow is exactly its golden YAML; FOXRUN_REGENERATE=1 rewrites them, never in CI."""

import os
from pathlib import Path

import pytest

from tests.workflows.cases import GOLDEN
from workflows.render import to_yaml

FOLDER = Path(__file__).parent / "golden"


@pytest.mark.parametrize("name", GOLDEN)
def test_workflow_is_its_golden_file(name: str) -> None:
    path = FOLDER / f"{name}.yaml"
    text = to_yaml(GOLDEN[name]())
    if os.environ.get("FOXRUN_REGENERATE") == "1":
        assert not os.environ.get("CI"), "golden files are never rewritten in CI: look at the difference"
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_every_golden_file_has_a_case() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.yaml")) == sorted(GOLDEN)
