"""Does a specimen part at all, and is its cured variant clean? Hostile twins without any tracing, N pairs.

python -m tests.zoo.proof [--pairs N] [--cured] [--plain] [NAME ...]
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from orchestrator.hostile import twin_environment
from tests.zoo.specimen import Specimen, clean, culprits

LIMIT_S = 120
ROOT = Path(__file__).parents[2]
WEIGHTS = Path(__file__).parent / "weights.py"


@dataclass(frozen=True, kw_only=True)
class Proof:
    """How many of ``pairs`` parted, and how many programs failed, with the last words of the first that did."""

    pairs: int
    parted: int
    failed: int
    words: str = ""


def command_of(specimen: Specimen, file: Path) -> list[str]:
    """The program's command line."""
    return [sys.executable if part == "python" else part for part in specimen.command] or [sys.executable, str(file)]


def without_fault(command: list[str]) -> list[str]:
    """The command of our own trainer without the fault that it is given: what is cured of it."""
    faults = [i for i, word in enumerate(command) if word.startswith("fault=")]
    return [word for i, word in enumerate(command) if not any(i in (fault - 1, fault) for fault in faults)]


def _digested(specimen: Specimen, file: Path, *, cured: bool) -> list[list[str]]:
    """Both twins' programs, each followed by a digest of its weights."""
    if not specimen.pair:
        command = command_of(specimen, file)
        command = without_fault(command) if cured and specimen.command else command
        return [command if specimen.command else [command[0], str(WEIGHTS), *command[1:]]] * 2
    result = []
    for command in specimen.pair:
        parts = [[sys.executable, str(WEIGHTS)] if part == "python" else [part] for part in command]
        result.append([part.replace("{file}", str(file)) for group in parts for part in group])
    return result


def prove(specimen: Specimen, pairs: int, *, cured: bool = False, plain: bool = False) -> Proof:
    """Run twins of ``specimen`` (or of its cured variant), both at once, and compare what they print."""
    parted = failed = 0
    words = ""
    with tempfile.TemporaryDirectory(prefix="foxrun-zoo-") as name:
        file = specimen.path
        if cured:
            file = Path(name) / specimen.path.name
            file.write_text(specimen.cured(), encoding="utf-8")
        for number in range(pairs):
            outputs = _twins(
                _digested(specimen, file, cured=cured), Path(name) / str(number), specimen.twins, plain=plain
            )
            bad = [error for code, _, error in outputs if code]
            failed += bool(bad)
            words = words or (bad[0].strip()[-300:] if bad else "")
            parted += not bad and outputs[0][1] != outputs[1][1]
    return Proof(pairs=pairs, parted=parted, failed=failed, words=words)


def _twins(
    commands: Sequence[Sequence[str]], scratch: Path, variables: Sequence[str], *, plain: bool
) -> list[tuple[int, str, str]]:
    started = []
    for twin in ("twin1", "twin2"):
        place = scratch / twin
        for folder in ("tmp", "cache"):
            (place / folder).mkdir(parents=True)
        environment: Mapping[str, str] = {**os.environ, "PYTHONPATH": str(ROOT), "OUT": str(place / "out")}
        if variables:
            key, _, value = variables[len(started)].partition("=")
            environment = {**environment, key: value}
        if not plain:
            environment = twin_environment(twin, environment, scratch=place)
        arguments = [part.replace("{out}", str(place / "out")) for part in commands[len(started)]]
        started.append(
            subprocess.Popen(
                arguments, env=dict(environment), cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        )
    result = []
    for process in started:
        try:
            out, error = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            out, error = process.communicate()
            error += f"\nkilled after {LIMIT_S} s"
        written = scratch / f"twin{len(result) + 1}" / "out"
        # What our own trainer prints holds the run's id; its bits are in its rows.
        rows = "".join(hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(written.glob("*/*.u64")))
        result.append((process.returncode, rows or out, error))
    return result


@click.command(help=__doc__)
@click.argument("names", nargs=-1)
@click.option("--pairs", default=5, show_default=True, help="Pairs of twins for each.")
@click.option("--cured", is_flag=True, help="The cured variants, which must not part.")
@click.option("--plain", is_flag=True, help="Twins that differ in nothing.")
@click.option("--clean", "also_clean", is_flag=True, help="The clean trainers.")
@click.option("--needs", default="cpu,cc", show_default=True, help="Only those with these needs.")
def main(names: tuple[str, ...], pairs: int, cured: bool, plain: bool, also_clean: bool, needs: str) -> None:
    """Print one line for each; exit 1 when one is not as it should be."""
    wrong = 0
    for specimen in clean() if also_clean else culprits():
        if (names and specimen.id not in names) or specimen.needs not in needs.split(","):
            continue
        if cured and "# cured:" not in specimen.path.read_text():
            continue
        proof = prove(specimen, pairs, cured=cured, plain=plain)
        bad = proof.failed or (proof.parted if cured or also_clean else not proof.parted)
        wrong += bool(bad)
        mark = "WRONG " if bad else ""
        print(f"{mark}{specimen.id:36} parted in {proof.parted} of {proof.pairs}, failed {proof.failed} {proof.words}",
              flush=True)  # fmt: skip
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
