"""A submit makes the Workflow of hera's own models, and imports none that it does not make."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).parent / "golden"
LOADED = """
import json, sys
from orchestrator import light_hera
light_hera.load()
"""
# What a submit may do without; each of them costs 0.1 s or more.
NOT_NEEDED = (
    "hera.workflows",
    "torch",
    "boto3",
    "botocore",
    "rich",
    "jinja2",
    "numpy",
    "aiohttp",
    "apprise",
    "trainer",
)


def fresh(code: str) -> Any:
    """What a new interpreter prints last, as JSON."""
    done = subprocess.run([sys.executable, "-c", LOADED + code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def made() -> Any:
    return fresh("""
from tests.workflows.cases import GOLDEN
from workflows.pods import m
from workflows.render import to_yaml
texts = {name: to_yaml(make()) for name, make in GOLDEN.items()}
built = sorted({c.__name__ for c in vars(m).values() if isinstance(c, type)} - {"Unused"})
hera = [name for name in sys.modules if name.startswith("hera.workflows")]
print(json.dumps({"texts": texts, "built": built, "hera": hera}))
""")


def test_the_workflows_are_those_that_the_whole_of_hera_makes(made: Any) -> None:
    for name, text in made["texts"].items():
        assert text == (GOLDEN / f"{name}.yaml").read_text("utf-8")


def test_only_the_models_in_use_are_built(made: Any) -> None:
    assert {"Workflow", "DAGTask", "Template", "SecurityContext"} <= set(made["built"])
    assert len(made["built"]) < 100  # hera has some 300
    assert not {"HTTPArtifact", "ContainerSetTemplate", "ArchivedWorkflowDeletedResponse"} & set(made["built"])


def test_whoever_imports_hera_afterwards_gets_it_whole(made: Any) -> None:
    assert made["hera"] == []
    found = fresh("""
import hera.workflows
from hera.workflows import models
print(json.dumps([hera.workflows.Workflow.__name__, models.ArchivedWorkflowDeletedResponse.__name__,
                  models.Template(name="x", suspend={"duration": "1"}).suspend.duration]))
""")
    assert found == ["Workflow", "ArchivedWorkflowDeletedResponse", "1"]


def test_a_field_whose_model_is_not_in_use_cannot_be_set_by_mistake() -> None:
    assert fresh("""
from pydantic import ValidationError
from workflows.pods import m
assert m.Template(name="x", http=None).http is None
try:
    m.Template(name="x", http={"url": "https://example.org"})
except ValidationError as error:
    print(json.dumps([item["loc"][0] for item in error.errors()]))
""") == ["http"]


def test_a_submit_loads_nothing_that_it_does_not_need(tmp_path: Path) -> None:
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run([*git, "init", "-q", "."], cwd=tmp_path, check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], cwd=tmp_path, check=True)
    code = (
        "import sys, json\nfrom orchestrator.cli.main import execute\n"
        "assert execute(['submit', '--regression-pair', '--dry-run']) == 0\n"
        "print()\nprint(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    assert [name for name in NOT_NEEDED if name in loaded] == []
    assert not any(name.startswith("kubernetes") for name in loaded)


def test_printing_a_workflow_needs_no_hera() -> None:
    code = "import sys\nimport workflows.render\nprint('hera' in sys.modules, 'pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
