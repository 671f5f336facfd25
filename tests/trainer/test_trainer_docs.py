"""docs/trainer.md defines every leaf, metric, parameter and fault. FOXRUN_REGENERATE=1 rewrites its tables."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import torch

from trainer import faults, ops
from trainer.cli import parameter_table
from trainer.config import TrainerConfig, parameter_fields
from trainer.data.book import BookStream
from trainer.learn import definitions
from trainer.learn.evaluation import EVAL_METRICS
from trainer.learn.loop import Loop, Schedule
from trainer.learn.step import TRAIN_METRICS, Trainer
from trainer.market.environment import MarketConfig

from .trainer_runs import ROOT, run_here

PAGE = ROOT / "docs" / "trainer.md"


@pytest.fixture(scope="module")
def tables() -> dict[str, str]:
    config = TrainerConfig()
    device = torch.device("cpu")
    trainer = Trainer(ops.select(1, device), config, MarketConfig(), seed=0, fault=faults.Fault())
    stream = BookStream("synthetic", chunk_rows=200, device=device, min_rows=64, rows=200, seed=1)
    schedule = Schedule(steps=0, eval_steps=0, checkpoint_at=-1, checkpoint_path=Path(), resume=None)
    loop = Loop(trainer, stream, schedule, fingerprints=False, progress=lambda done, total: None)
    return {
        "faults": definitions.key_table("fault", faults.FAULTS),
        "parameters": parameter_table(),
        "metrics": definitions.key_table("metric", definitions.METRICS),
        "summary": definitions.key_table("key", definitions.SUMMARY),
        "leaves": definitions.leaf_table(list(loop.tape.leaves), trainer.layout),
    }


@pytest.mark.parametrize("name", ["faults", "parameters", "metrics", "summary", "leaves"])
def test_the_page_holds_what_the_code_says(tables: dict[str, str], name: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    pattern = re.compile(rf"(<!-- generated: {name} -->\n)(.*?)(<!-- end -->)", re.DOTALL)
    found = pattern.search(text)
    assert found is not None
    if os.environ.get("FOXRUN_REGENERATE") == "1":
        PAGE.write_text(text[: found.start(2)] + tables[name] + "\n" + text[found.end(2) :], encoding="utf-8")
        return
    assert found[2].strip() == tables[name], "run the test with FOXRUN_REGENERATE=1"


def test_every_parameter_has_a_meaning() -> None:
    rows = [line.split(" | ") for line in parameter_table().splitlines()[2:]]
    assert [row[0].strip("| `") for row in rows] == list(parameter_fields(TrainerConfig, MarketConfig))
    assert all(len(row[3].rstrip(" |")) > 10 for row in rows)


def test_metrics_and_summary_are_those_that_are_written(tmp_path: Path) -> None:
    import json

    assert set(definitions.METRICS) == set(TRAIN_METRICS) | set(EVAL_METRICS)
    summary = json.loads((run_here(tmp_path, 1, 1).path / "eval_summary.json").read_text())
    assert list(summary) == list(definitions.SUMMARY)
