"""torch.export beside the tracer: the graph is made as without it, and the graph's own run is recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tracing.traced import plain, traced


@pytest.mark.parametrize("level", ["steps", "operations"])
def test_a_program_that_exports_its_model_runs_as_without_the_tracer(tmp_path: Path, level: str) -> None:
    run = traced(tmp_path, "exported.py", plan={"level": level})
    assert (run.code, run.stderr, run.stdout) == (0, "", plain("exported.py").stdout)
    assert run.file("end.json")["troubles"] == {}
    assert [row["step"] for row in run.rows()][:3] == [0, 1, 2]
    if level == "operations":
        assert {"aten.randn.default", "aten.addmm.default"} <= {event["name"] for event in run.events()}
