from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.engines.local import LocalEngine
from tests.engine.cases import controllers


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[LocalEngine]:
    local = LocalEngine(tmp_path / "home", grace_s=1.0)
    yield local
    workflows = local.home / "workflows"
    for directory in workflows.iterdir() if workflows.is_dir() else ():
        for pid in controllers(local.home, directory.name):
            os.kill(pid, signal.SIGKILL)
