"""The local engine's entries: whatever lies among them, the good ones are read, and no text of theirs is obeyed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from orchestrator.history import entries as h
from orchestrator.history import page, reading
from tests.cli.conftest import Place, here
from tests.history.test_page import entry

__all__ = ["here"]
HOSTILE = "\x1b[2J\x9b1m\n\u202eFAKE"


def test_what_is_no_entry_hides_no_other(tmp_path: Path) -> None:
    folder = tmp_path / "history"
    folder.mkdir()
    good = h.to_text(entry(1)).encode()
    (folder / "good.json").write_bytes(good)
    damaged = [b"", good[:20], b"\0" * 100, b"[" * 100_000, b"[]", b"\xff", b'{"name": "x"}', b'{"name": []}']
    for number, data in enumerate(damaged):
        (folder / f"{number}.json").write_bytes(data)
    (folder / "folder.json").mkdir()
    (folder / "loop.json").symlink_to("loop.json")
    os.mkfifo(folder / "pipe.json")
    engine = SimpleNamespace(name="local", store=SimpleNamespace(path=lambda key: tmp_path / key))
    assert [e.name for e in reading.read(engine, tmp_path)] == ["ci-gate-00001"]  # type: ignore[arg-type]


@pytest.mark.parametrize("words", [(), ("-o", "json"), ("--only", HOSTILE)])
def test_no_text_is_obeyed_by_a_terminal(here: Place, words: tuple[str, ...]) -> None:
    folder = here.home / "artifacts" / "history"
    folder.mkdir(parents=True)
    texts = dict.fromkeys(("name", "kind", "branch", "sha", "step", "leaf", "message", "verdict", "finished"), HOSTILE)
    (folder / "1.json").write_text(h.to_text(entry(1, **texts)))
    done = here("history", *words)
    assert done.code == 0 and "FAKE" in done.out
    assert all(line.isprintable() for line in done.out.splitlines())
    if words == ("-o", "json"):
        assert json.loads(done.out)[0]["branch"] == HOSTILE


def test_no_link_of_a_page_runs_anything() -> None:
    for report in (
        "javascript:alert(1)",
        "data:text/html,x",
        'https://x/" onclick="y',
        "//evil/x.html\n",
        "/a/../x.html",
    ):
        text = page.render([entry(1, report=report, verdict='x" onload="y', branch="<script>")])
        assert "javascript:" not in text and "data:text" not in text and "<script>" not in text
        assert 'onclick="y' not in text and 'onload="y' not in text
