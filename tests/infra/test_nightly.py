"""Tonight's run started now, as docs/nightly.md says: what the CronWorkflow would start, with what -p changes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="no cluster: KUBECONFIG is not set"),
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on PATH"),
]


def test_tonights_run_is_started_now(namespace: str, tmp_path: Path) -> None:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("FOXRUN_", "ARGO_")) or k.startswith("FOXRUN_S3")}
    settings = {"FOXRUN_ENGINE": "argo", "FOXRUN_NAMESPACE": namespace, "FOXRUN_HOME": str(tmp_path / "home")}

    def foxrun(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-m", "orchestrator", *words]
        root = str(Path(__file__).parents[2])
        return subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, env={**kept, **settings, "PYTHONPATH": root}
        )

    given = ("-p", "steps=200", "-p", "branch=feature/größe", "-p", 'parameters={"envs":"16"}')
    done = foxrun("submit", "--from", "cronworkflow/nightly", *given, "-o", "name")
    assert done.returncode == 0, done.stderr
    name = done.stdout.strip()
    found = json.loads(foxrun("get", name, "-o", "json").stdout)
    values = {item["name"]: item.get("value") for item in found["spec"]["arguments"]["parameters"]}
    assert {key: values[key] for key in ("sha", "branch", "image", "steps", "parameters")} == {
        "sha": "main", "branch": "feature/größe", "image": "foxrun:main", "steps": "200", "parameters": '{"envs":"16"}',
    }  # fmt: skip
    assert found["metadata"]["labels"]["foxrun.dev/kind"] == "nightly"
    assert foxrun("terminate", name).returncode == 0
