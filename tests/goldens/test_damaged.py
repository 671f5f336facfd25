"""Golden files that are damaged, of another version, or hostile: said in a line, and no other golden suffers."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from foxrun.problems import ContractError
from orchestrator.goldens import checking, explaining
from orchestrator.goldens import golden as g
from tests.cli.conftest import Place, here

__all__ = ["here"]

KEY = g.Key(hardware="CPU X", torch="2.13.0", mode=1, seed=42, config_sha256="c" * 64, inputs=())
LEAF = g.GoldenLeaf(name="q_grad", component="agent", kind="grad", fingerprint="0" * 16, checksum=1.5, after="1" * 16)
GOLDEN = g.Golden(
    key=KEY, steps=5, rows_sha256="a" * 64, config={"envs": 8}, environment={"python": "3.11"}, leaves=(LEAF,),
    recordings=(g.Recording(date="2026-11-29", commit="d" * 40, tree="e" * 40, reason="first"),),
)  # fmt: skip
TEXT = g.to_text(GOLDEN)


def changed(**values: Any) -> str:
    return json.dumps({**json.loads(TEXT), **values})


def test_the_text_reads_back() -> None:
    assert g.from_text(TEXT, "x") == GOLDEN


@pytest.mark.parametrize(
    "text",
    [
        *("", "null", "[]", "[" * 100_000, TEXT[: len(TEXT) // 2]),
        TEXT.replace('"steps"', '<<<<<<< HEAD\n"steps"', 1) + "=======\n>>>>>>> other\n",
        *(changed(golden=version) for version in (0, 2, [1], None)),
        *(changed(steps=steps) for steps in (0, -1, True, "5", 1.5, None)),
        *(TEXT.replace('"steps": 5', f'"steps": {steps}') for steps in ("NaN", "Infinity", "1e999", '4, \n"steps": 5')),
        *(changed(mode=mode) for mode in (None, "x", [1])),
        *(changed(leaves=leaves) for leaves in (None, [1], [["a"]], [["a", "b", "c", "d", {}, "f"]])),
        *(changed(recordings=recordings) for recordings in (None, "abc", [{"date": "x"}], [{"more": 1}])),
        *(changed(config="x"), changed(environment=[1])),
    ],
)
def test_what_is_no_golden_is_said(text: str) -> None:
    with pytest.raises(ContractError) as caught:
        g.from_text(text, "a.golden.json")
    assert "a.golden.json" in str(caught.value) and "\n" not in str(caught.value)


def test_a_damaged_one_hides_no_other(here: Place) -> None:
    folder = here.directory / "goldens"
    file = g.write(folder, GOLDEN)
    damaged = g.write(folder, dataclasses.replace(GOLDEN, key=dataclasses.replace(KEY, seed=43)))
    damaged.write_text("<<<<<<< HEAD\n" + TEXT)
    (damaged.parent / "folder.golden.json").mkdir()
    found = checking.find(folder, KEY)
    assert found == (file, GOLDEN)
    near = checking.nearest(folder, dataclasses.replace(KEY, torch="2.14.0"))
    assert near is not None and (near.file, near.fields) == (file, ("torch",))
    listed = here("golden", "list")
    assert listed.code == 7 and "first" in listed.out
    assert damaged.name in listed.err and "folder.golden.json: cannot be read: Is a directory" in listed.err


def test_hostile_text_moves_no_cursor(tmp_path: Path) -> None:
    said = g.Recording(date="\x1b]0;x\x07", commit="", tree="", reason="\x1b[2J\nFAKE: line")
    hostile = dataclasses.replace(GOLDEN, recordings=(said,), environment={"python": "\x9b1m"})
    lines = explaining.of_files([g.write(tmp_path, hostile)]).lines
    assert all(line.isprintable() for line in lines)
    assert lines[-1].endswith("\\x1b[2J\\nFAKE: line")
