"""The pages that draw the tree draw the tree that there is."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("foxrun", "trainer", "workflows", "orchestrator")


def tracked(*folders: str) -> list[Path]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *folders]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    return [Path(name) for name in listed if (ROOT / name).is_file()]


def test_every_module_has_its_place_in_the_module_tree() -> None:
    tree = (ROOT / "docs/architecture.md").read_text().partition("## Module tree")[2].partition("## Seams")[0]
    named = set(re.findall(r"\w+\.py", tree))
    modules = [file for file in tracked(*PACKAGES) if file.suffix == ".py" and file.name != "__init__.py"]
    commands = {file for file in modules if file.parent.as_posix() == "orchestrator/cli" and is_command(file)}
    assert sorted({file.name for file in modules if file not in commands} - named) == []
    assert sorted(named - {file.name for file in modules}) == []


def is_command(file: Path) -> bool:
    return "@click.command(" in (ROOT / file).read_text()


def test_every_folder_has_its_line_in_the_readme() -> None:
    tree = (ROOT / "README.md").read_text()
    for folder in sorted({file.parts[0] for file in tracked() if len(file.parts) > 1 and file.parts[0][0] != "."}):
        assert f"    {folder}/ " in tree, folder
    for package in PACKAGES:
        for inside in sorted({f.parts[1] for f in tracked(package) if len(f.parts) > 2 and f.suffix == ".py"}):
            if inside not in ("__init__.py", "hostile_site"):
                assert f"      {inside}/ " in tree, f"{package}/{inside}"
