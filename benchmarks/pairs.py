"""A regression pair in each mode on this machine: verdicts, and a digest of all fingerprints.

Two machines of one kind that print the same digests computed the same bits.
"""

from __future__ import annotations

import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click


def pair(mode: int, arguments: list[str], home: Path) -> tuple[int, dict[str, Any], str]:
    """Submit one pair: exit code, verdict, and what foxrun said on stderr."""
    command = [sys.executable, "-P", "-m", "orchestrator", "submit", "--regression-pair", "-o", "json"]
    done = subprocess.run(
        [*command, "--mode", str(mode), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "FOXRUN_HOME": str(home)},
    )
    try:
        return done.returncode, json.loads(done.stdout), done.stderr
    except ValueError:
        return done.returncode, {}, done.stdout + done.stderr


def legs(home: Path) -> list[Path]:
    """Run directories of the legs under a home, by path."""
    return sorted(found.parent for found in (home / "artifacts").glob("*/leg-*/**/run_manifest.json"))


def step_ms(run: Path) -> str:
    """Wall-clock milliseconds of a training step: the median over the rows of timing.jsonl, a few steps each."""
    file = run / "timing.jsonl"
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []
    figures = [1000.0 * row["seconds"] / row["steps"] for row in rows if row["phase"] == "train"]
    return f"{statistics.median(figures):.1f}" if figures else "-"


@click.command(help=__doc__, context_settings={"ignore_unknown_options": True})
@click.option("--mode", "modes", multiple=True, type=int, default=(1, 2, 3), show_default=True)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def main(modes: tuple[int, ...], arguments: tuple[str, ...]) -> None:
    """Print a line a mode; exit 1 unless every pair is identical."""
    wrong, shown = 0, False
    for mode in modes:
        with tempfile.TemporaryDirectory(prefix="foxrun-pairs-") as scratch:
            home, begun = Path(scratch), time.monotonic()
            code, verdict, said = pair(mode, list(arguments), home)
            found = legs(home)
            if found and not shown:
                shown = True
                click.echo(
                    json.dumps(json.loads((found[0] / "run_manifest.json").read_text())["environment"], indent=1)
                )
            digests = [
                hashlib.sha256((run / "bits.u64").read_bytes()).hexdigest()[:16]
                for run in found
                if (run / "bits.u64").exists()
            ]
            agreed = verdict.get("agreed") or {}
            click.echo(
                f"mode {mode}: exit {code} {verdict.get('verdict', '-')}"
                f"  rows {agreed.get('rows')} leaves {agreed.get('leaves')}  bits {' '.join(digests) or '-'}"
                f"  ms/step {' '.join(map(step_ms, found)) or '-'}  {time.monotonic() - begun:.0f} s in all"
            )
            if code:
                wrong += 1
                click.echo(f"{verdict.get('message', '')}\n{said[-3000:]}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
