"""`foxrun` as a person calls it, in a repository of its own, against the cluster of KUBECONFIG."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.image import images

BOOK = images.ROOT.parent / "shared" / "data" / "mbp10" / "btcusdt-binance-usdm-20240808.mbp-10.dbn.zst"
STEPS, EVAL_STEPS = 6, 3
SMALL = (
    *("-p", "envs=8", "-p", "width=32", "-p", "window=16"),
    *("--steps", str(STEPS), "--eval-steps", str(EVAL_STEPS), "--gate-steps", "4"),
)
# Generous: on a cluster that others use, pods wait for cores.
DEADLINE_S = 1500


@dataclass(frozen=True)
class Said:
    """What a command printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        try:
            return json.loads(self.out)
        except ValueError:
            raise AssertionError(self.all) from None

    @property
    def all(self) -> str:
        return f"exit code {self.code}\n{self.out}{self.err}"


class Whole:
    """Calls `foxrun` of the repository's own files, with no setting but those given and the cluster's S3."""

    def __init__(self, repository: Path, home: Path) -> None:
        self.repository = repository
        self.home = home
        self.submitted: list[str] = []

    def __call__(self, *words: str, cwd: Path | None = None, within: tuple[str, ...] = (), **variables: str) -> Said:
        kept = ("FOXRUN_S3_ENDPOINT", "FOXRUN_S3_BUCKET")
        ours = ("FOXRUN_", "FOXHUNT_")
        environment = {k: v for k, v in os.environ.items() if k in kept or not k.startswith(ours)}
        environment |= {
            "FOXRUN_HOME": str(self.home),
            "FOXRUN_IMAGE": f"{images.REPOSITORY}:{{sha}}",
            "FOXRUN_DEADLINE": f"{DEADLINE_S}s",
            "PYTHONPATH": str(self.repository),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        done = subprocess.run(
            [*within, sys.executable, "-P", "-m", "orchestrator", *words],
            cwd=cwd or self.repository,
            env=environment | variables,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S + 60,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def submit(self, *words: str, cwd: Path | None = None, **variables: str) -> tuple[str, Said]:
        """`foxrun submit --engine argo --wait` under a name of its own; returns that too."""
        name = f"test-whole-{uuid.uuid4().hex[:8]}"
        self.submitted.append(name)
        said = self("submit", "--engine", "argo", "--wait", "--name", name, *SMALL, *words, cwd=cwd, **variables)
        return name, said

    def on_full_disk(self, *words: str) -> Said:
        """The same with a home that holds nothing more."""
        home = self.home.with_name("full")
        home.mkdir(exist_ok=True)
        script = 'mount -t tmpfs -o size=4k tmpfs "$0" && head -c 4096 /dev/zero > "$0/filled"; exec "$@"'
        within = ("unshare", "--mount", "sh", "-c", script, str(home))
        return self(*words, within=within, FOXRUN_HOME=str(home))

    def get(self, name: str) -> dict[str, Any]:
        """The Workflow."""
        said = self("get", name, "--engine", "argo", "-o", "json")
        assert said.code == 0, said.all
        found: dict[str, Any] = said.json
        return found
