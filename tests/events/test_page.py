"""docs/ci.md shows the deliveries that the tests send, and what is in infra/; FOXRUN_REGENERATE=1 writes its table."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.events import deliveries
from tests.events.deliveries import Delivery
from workflows.ci_gate import ci_gate
from workflows.names import label_value
from workflows.parameters import RunParameters
from workflows.render import to_dict

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "ci.md"
REPOSITORY = "https://HOST/OWNER/REPOSITORY.git"
BEGIN, END = "<!-- deliveries: made by tests/events -->\n", "<!-- end of deliveries -->\n"


def test_the_page_shows_the_deliveries() -> None:
    text = PAGE.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    assert rest and after, "the page has lost its marks"
    made = before + BEGIN + table() + END + after
    if os.environ.get("FOXRUN_REGENERATE") == "1":
        assert not os.environ.get("CI"), "pages are never rewritten in CI"
        PAGE.write_text(made, encoding="utf-8")
    assert made == PAGE.read_text("utf-8")


def test_every_name_of_ours_on_the_page_is_in_infra() -> None:
    text = PAGE.read_text("utf-8")
    folder = ROOT / "infra" / "components" / "webhooks"
    made = [t for file in ("accounts.yaml", "bindings.yaml") for t in yaml.safe_load_all((folder / file).read_text())]
    names = {thing["metadata"]["name"] for thing in made}
    assert set(re.findall(r"foxrun-git(?:hub|lab)\b", text)) == {n for n in names if re.fullmatch("foxrun-git.{3}", n)}
    assert set(re.findall(r"ci-gate-git[\w-]+", text)) == {n for n in names if n.startswith("ci-gate-")}


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on PATH")
def test_the_overlay_on_the_page_says_where_image_and_code_are(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "infra", tmp_path / "infra", ignore=shutil.ignore_patterns("__pycache__"))
    plain, mounted = block("kustomization.yaml"), block("kustomization.yaml, more of the patch")
    sha, tree = "0" * 40, "1" * 40
    p = RunParameters(sha=sha, tree=tree, steps=2000, eval_steps=500, git_url=REPOSITORY, git_secret="foxrun-git")
    for name, text, wanted in (("plain", plain, None), ("mounted", plain + mounted, to_dict(ci_gate(p))["spec"])):
        text = re.sub(r"https://github.com/OWNER/foxrun/infra/([\w/-]+)\?ref=COMMIT", r"../infra/\1", text)
        (tmp_path / name).mkdir()
        (tmp_path / name / "kustomization.yaml").write_text(text)
        done = subprocess.run(["kubectl", "kustomize", str(tmp_path / name)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        made = {(t["kind"], t["metadata"]["name"]): t for t in yaml.safe_load_all(done.stdout)}
        assert {thing["metadata"].get("namespace", "foxrun") for thing in made.values()} == {"foxrun"}
        spec = made["WorkflowTemplate", "ci-gate"]["spec"]
        values = {p["name"]: p.get("value") for p in spec["arguments"]["parameters"]}
        assert values["image"] == "REGISTRY/foxrun:{sha}"
        assert len([1 for kind, _ in made if kind == "WorkflowEventBinding"]) == 4
        assert made["Secret", "foxrun-github.service-account-token"].keys() == {
            "apiVersion",
            "kind",
            "metadata",
            "type",
        }
        if wanted is not None:
            legs = [next(t for t in side["templates"] if t["name"] == "leg") for side in (spec, wanted)]
            assert legs[0]["inputs"] == legs[1]["inputs"]
            assert legs[0]["container"]["workingDir"] == legs[1]["container"]["workingDir"]


def block(title: str) -> str:
    """The lines of the page's example of that name, as far left as they stand below it."""
    [found] = re.findall(rf"(?m)^    # {re.escape(title)}\n((?:    .*\n)+)", PAGE.read_text("utf-8"))
    return "".join(line[4:] for line in str(found).splitlines(keepends=True))


def table() -> str:
    rows = ["| host | event | what was delivered | answer | starts |", "|---|---|---|---|---|"]
    rows += [_row(delivery) for delivery in deliveries.table()]
    return "\n".join(rows) + "\n"


def _row(delivery: Delivery) -> str:
    started = "nothing"
    if delivery.starts is not None:
        started = f"`{delivery.starts.binding}`"
        label = label_value(delivery.starts.branch)
        if label != delivery.starts.branch:
            started += f", label `{label}`"
    cells = [delivery.host, f"`{delivery.event}`", delivery.what, str(delivery.answer), started]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
