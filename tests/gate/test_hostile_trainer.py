"""Trainers that do what no trainer should: the gate ends in bounded time, says what happened, and leaves nothing."""

from __future__ import annotations

import os
import time
from pathlib import Path

import psutil
import pytest

from orchestrator.compare.verdict import Verdict, lines
from orchestrator.gate import run_gate
from orchestrator.twin_run import GateRequest, Listener

TRAINER = Path(__file__).parent / "hostile_trainer.py"


def gate(tmp_path: Path, do: str, listener: Listener | None = None) -> Verdict:
    request = GateRequest(
        trainer=("python", str(TRAINER)),
        out=tmp_path / "gate",
        seed=7,
        mode=1,
        steps=4,
        parameters={"do": do},
        timeout_s=300.0,
        hostilities=("hash-seed",),
    )
    return run_gate(request, dict(os.environ), listener, directory=tmp_path)


@pytest.mark.parametrize("do", ["fifo:progress", "fifo:message", "endless:progress", "endless:message", "negative"])
def test_what_it_puts_where_foxrun_reads_cannot_hold_the_gate_up(tmp_path: Path, do: str) -> None:
    seen: list[tuple[int, int]] = []
    began = time.monotonic()
    verdict = gate(tmp_path, do, Listener(progress=lambda twin, done, of: seen.append((done, of))))
    assert (verdict.verdict, verdict.parts[0].exit_code, verdict.parts[0].message) == ("job_failed", 3, "")
    assert set(seen) == {(0, 4)}
    assert time.monotonic() - began < 250


@pytest.mark.parametrize("do", ["remove", "replace"])
def test_an_out_directory_that_it_took_away_is_no_result(tmp_path: Path, do: str) -> None:
    verdict = gate(tmp_path, do)
    assert (verdict.verdict, verdict.exit_code) == ("job_failed", 5)
    assert verdict.message.startswith("no result: twin1 and twin2 ended with exit code 0")


def test_its_message_cannot_steer_the_terminal(tmp_path: Path) -> None:
    verdict = gate(tmp_path, "escape")
    assert verdict.parts[0].message == "\\x1b[2Jgone \N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}"
    assert all(line.isprintable() for line in lines(verdict))


def test_a_daemon_that_it_starts_ends_with_the_gate(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    gate(tmp_path, f"daemon:{pids}")
    started = [int(line) for line in pids.read_text().split()]
    assert len(started) == 2
    assert not any(psutil.pid_exists(pid) for pid in started)


def test_a_line_without_an_end_is_handed_on_in_pieces(tmp_path: Path) -> None:
    heard: dict[str, int] = {}

    def line(twin: str, text: str) -> None:
        heard[twin] = heard.get(twin, 0) + len(text)

    verdict = gate(tmp_path, "endless-line", Listener(line=line))
    assert verdict.verdict == "job_failed"
    assert heard["twin1"] == 300_000
