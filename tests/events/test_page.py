"""docs/ci.md shows the deliveries that the tests send, and what is in infra/; FOXRUN_REGENERATE=1 writes its table."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import textwrap
from pathlib import Path

import pytest
import yaml

from tests.events import deliveries
from tests.events.deliveries import Delivery
from workflows.names import label_value

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "ci.md"
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
def test_the_overlay_on_the_page_says_where_the_image_is(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "infra", tmp_path / "infra", ignore=shutil.ignore_patterns("__pycache__"))
    [block] = re.findall(r"(?m)^    # kustomization\.yaml\n((?:    .*\n)+)", PAGE.read_text("utf-8"))
    text = re.sub(
        r"https://github.com/OWNER/foxrun/infra/([\w/-]+)\?ref=COMMIT", r"../infra/\1", textwrap.dedent(block)
    )
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "kustomization.yaml").write_text(text)
    done = subprocess.run(["kubectl", "kustomize", str(tmp_path / "ours")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    made = {(t["kind"], t["metadata"]["name"]): t for t in yaml.safe_load_all(done.stdout)}
    assert {thing["metadata"].get("namespace", "foxrun") for thing in made.values()} == {"foxrun"}
    values = {p["name"]: p.get("value") for p in made["WorkflowTemplate", "ci-gate"]["spec"]["arguments"]["parameters"]}
    assert values["image"] == "REGISTRY/foxrun:{sha}"
    assert len([1 for kind, _ in made if kind == "WorkflowEventBinding"]) == 4
    assert made["Secret", "foxrun-github.service-account-token"].keys() == {"apiVersion", "kind", "metadata", "type"}


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
