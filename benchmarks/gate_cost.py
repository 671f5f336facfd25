"""What the gate costs: rounds of one process that runs the steps, and of a gate that runs them twice, in turn.

Prints wall-clock and processor seconds of each and the ratio of the medians; the goal is 1.3 in wall-clock time.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click

GOAL = 1.3


def measured(command: list[str]) -> tuple[float, float]:
    """Wall-clock and processor seconds of a command with all its children. Raises SystemExit when it fails."""
    before, begun = os.times(), time.monotonic()
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    wall, after = time.monotonic() - begun, os.times()
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, used


@click.command(help=__doc__)
@click.option("--rounds", default=5, show_default=True)
@click.option("--steps", default=50, show_default=True)
@click.option("-p", "parameters", multiple=True, metavar="NAME=VALUE", help="Parameters of the trainer.")
def main(rounds: int, steps: int, parameters: tuple[str, ...]) -> None:
    """Print a line a round, then the medians and their ratio; exit 1 above the goal."""
    given = [word for parameter in parameters for word in ("-p", parameter)]
    one, gate = [], []
    for number in range(rounds):
        with tempfile.TemporaryDirectory(prefix="foxrun-gate-cost-") as scratch:
            common = ["--steps", str(steps), "--seed", "42", *given]
            trainer = ["-m", "trainer", "--out", str(Path(scratch) / "one"), "--eval-steps", "0", *common]
            check = ["-m", "orchestrator", "check", "--out", str(Path(scratch) / "gate"), *common]
            one.append(measured(trainer))
            gate.append(measured(check))
        click.echo(
            f"round {number + 1}: one {one[-1][0]:6.2f} s (processor {one[-1][1]:6.2f} s)"
            f"   gate {gate[-1][0]:6.2f} s (processor {gate[-1][1]:6.2f} s)"
        )
    wall, used = (statistics.median(g[i] for g in gate) / statistics.median(o[i] for o in one) for i in (0, 1))
    click.echo(f"gate / one: wall clock {wall:.2f} (goal {GOAL}), processor {used:.2f} (two processes: 2)")
    sys.exit(1 if wall > GOAL else 0)


if __name__ == "__main__":
    main()
