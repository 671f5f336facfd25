"""Every fault that `-p fault=` knows, here and on a cluster: the same exit code, verdict and step.

Faults of chance go through the gate, whose twins they part; the others hit leg B of a pair without a gate. Both engines
run the same commit with the same small parameters; on the cluster a few pairs run side by side.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import click

from benchmarks.gates import RANDOM_FAULTS
from trainer.faults import FAULTS

SMALL = ("envs=8", "width=32", "window=16", "capacity=1024")
STEPS, EVAL_STEPS, GATE_STEPS, AT = 6, 3, 12, 2
# Of a leg that hangs. The others end long before it, also where every core is taken.
HANG_S, LEG_S = 60, 600


@dataclass(frozen=True)
class Case:
    """One way to go wrong: the text behind `-p fault=`, and whether the gate is asked."""

    fault: str
    gate: bool

    @property
    def words(self) -> list[str]:
        """What `foxrun submit` is given."""
        words = ["submit", "--sha", "HEAD", "--regression-pair", "--steps", str(STEPS), "--eval-steps", str(EVAL_STEPS)]
        for parameter in (*SMALL, *([f"fault={self.fault}"] if self.fault else [])):
            words += ["-p", parameter]
        words += ["--gate-steps", str(GATE_STEPS)] if self.gate else ["--no-gate"]
        return [*words, "--timeout", f"{HANG_S if self.fault.startswith('hang') else LEG_S}s", "-o", "json"]


def cases() -> list[Case]:
    """One of each fault, those of chance in the gate; a gate in which a twin fails or parts by a bit; and none."""
    found = [Case(name if name in RANDOM_FAULTS else f"{name}@b:{AT}", name in RANDOM_FAULTS) for name in FAULTS]
    return [Case("", True), *found, Case(f"ulp@twin2:{AT}", True), Case(f"crash@twin1:{AT}", True)]


@dataclass(frozen=True)
class End:
    """What a submit came to."""

    code: int
    verdict: str
    step: str
    seconds: float
    said: str

    @property
    def key(self) -> tuple[int, str, str]:
        """What both engines have to agree in. Where chance parts the twins is no matter of the engine."""
        return self.code, self.verdict, self.step


def run(case: Case, engine: str) -> End:
    """One submit, waited for."""
    began = time.monotonic()
    command = [sys.executable, "-P", "-m", "orchestrator", *case.words, "--engine", engine, "--wait"]
    with tempfile.TemporaryDirectory(prefix="foxrun-faults-") as home:
        environment = {**os.environ, "FOXRUN_HOME": home, "FOXRUN_ALERTS": ""}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    try:
        verdict = json.loads(done.stdout)
    except ValueError:
        return End(done.returncode, "-", "-", time.monotonic() - began, done.stderr.strip()[-300:])
    first = verdict.get("first_divergence") or {}
    step = "-" if case.fault in RANDOM_FAULTS else str(first.get("step", "-"))
    return End(done.returncode, verdict["verdict"], step, time.monotonic() - began, verdict["message"])


@click.command(help=__doc__)
@click.option("--side-by-side", default=3, show_default=True, help="Pairs at once on the cluster.")
@click.option("--fault", "faults", multiple=True, help="Only these, as `-p fault=` has them.")
def main(side_by_side: int, faults: tuple[str, ...]) -> None:
    """Print the table; exit 1 when an engine ends otherwise than the other."""
    chosen = [case for case in cases() if not faults or case.fault.split("@")[0] in faults or case.fault in faults]
    with ThreadPoolExecutor(side_by_side) as cluster, ThreadPoolExecutor(1) as here:
        there = [cluster.submit(run, case, "argo") for case in chosen]
        local = [here.submit(run, case, "local") for case in chosen]
        wrong = 0
        click.echo(f"{'fault':24} {'part':6} {'local':>18} {'cluster':>18}  step    seconds  same")
        for case, one, other in zip(chosen, local, there, strict=True):
            a, b = one.result(), other.result()
            same = a.key == b.key
            wrong += not same
            click.echo(
                f"{case.fault or 'none':24} {'gate' if case.gate else 'leg':6} "
                f"{f'{a.code} {a.verdict}':>18} {f'{b.code} {b.verdict}':>18}  {a.step:>4} "
                f"{a.seconds:4.0f} / {b.seconds:3.0f}  {'yes' if same else 'NO'}"
            )
            if not same:
                click.echo(f"    local:   step {a.step}: {a.said}\n    cluster: step {b.step}: {b.said}")
    click.echo(f"{len(chosen) - wrong} of {len(chosen)} end alike")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
