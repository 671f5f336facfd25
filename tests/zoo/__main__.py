"""The zoo's score: every culprit and every clean trainer through ``foxrun localize``.

python -m tests.zoo                          # the CPU ones: make zoo
python -m tests.zoo --needs cuda,triton      # make zoo-gpu
python -m tests.zoo --kind atomics --only NAME
"""

from __future__ import annotations

import json
import platform
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path

import click

from tests.zoo import table
from tests.zoo.running import run
from tests.zoo.score import Mark
from tests.zoo.specimen import Specimen, clean, culprits


def chosen(names: Sequence[str], kinds: Sequence[str], needs: Sequence[str], part: str) -> list[Specimen]:
    """Which specimens a call means; unknown names end it."""
    known = [*(culprits() if part != "clean" else []), *(clean() if part != "culprits" else [])]
    if unknown := sorted(set(names) - {s.id for s in known}):
        raise click.UsageError(f"no such specimen: {', '.join(unknown)}; they are the files of tests/zoo/")
    return [
        s
        for s in known
        if (not names or s.id in names)
        and (not kinds or s.kind in kinds)
        and (s.needs in needs or bool(names))
        and (s.needs != "cc" or shutil.which("cc") is not None)
    ]


def run_all(
    specimens: Sequence[Specimen], *, jobs: int, timeout_s: int, limit_s: float | None, keep: Path | None
) -> Iterator[Mark]:
    """Marks as they come. Those that need the machine for themselves run first, one at a time."""
    until = time.monotonic() + limit_s if limit_s is not None else None

    def one(specimen: Specimen) -> Mark | None:
        if until is not None and time.monotonic() > until:
            return None
        left = timeout_s if until is None else max(60, min(timeout_s, int(until - time.monotonic())))
        return run(specimen, timeout_s=left, keep=keep)

    alone = [s for s in specimens if s.alone or jobs == 1]
    for specimen in alone:
        if (mark := one(specimen)) is not None:
            yield mark
    with ThreadPoolExecutor(jobs) as pool:
        for mark in pool.map(one, [s for s in specimens if s not in alone]):
            if mark is not None:
                yield mark


def machine() -> str:
    """What decides the figures: processor, cores, GPU, versions."""
    import os

    import torch

    cpu = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        names = [row for row in Path("/proc/cpuinfo").read_text().splitlines() if row.startswith("model name")]
        cpu = names[0].partition(": ")[2] if names else cpu
    gpu = f", {torch.cuda.get_device_name()}, CUDA {torch.version.cuda}" if torch.cuda.is_available() else ""
    return f"{cpu}, {os.cpu_count()} cores{gpu}; Python {platform.python_version()}, torch {torch.__version__}"


def earlier(path: Path | None) -> dict[str, Mark]:
    """Marks of an earlier call that wrote ``path``."""
    if path is None or not path.exists():
        return {}
    names = {f.name for f in fields(Mark)}
    return {m["id"]: Mark(**{k: v for k, v in m.items() if k in names}) for m in json.loads(path.read_text())["marks"]}


@click.command(help=__doc__)
@click.option("--only", "names", multiple=True, help="This specimen.")
@click.option("--kind", "kinds", multiple=True, help="Culprits of this kind.")
@click.option("--needs", default="cpu,cc", show_default=True, help="Specimens that need one of these.")
@click.option("--part", type=click.Choice(["all", "culprits", "clean"]), default="all", show_default=True)
@click.option("--jobs", default=1, show_default=True, help="At a time, of those that do not disturb each other.")
@click.option("--timeout", "timeout_s", default=600, show_default=True, help="Seconds for one specimen.")
@click.option("--limit", "limit_s", type=float, help="Seconds after which no further specimen is begun.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the marks here; go on from them.")
@click.option("--markdown", "markdown_path", type=click.Path(path_type=Path), help="Write the table here.")
@click.option("--keep", type=click.Path(path_type=Path), help="Keep each result of localize in this directory.")
@click.option("--again", is_flag=True, help="Run those again that --json already holds.")
def main(
    names: tuple[str, ...], kinds: tuple[str, ...], needs: str, part: str, jobs: int, timeout_s: int,
    limit_s: float | None, json_path: Path | None, markdown_path: Path | None, keep: Path | None, again: bool,
) -> None:  # fmt: skip
    """Run, print, write; exit 1 when an answer is wrong."""
    marks = earlier(json_path)
    wanted = chosen(names, kinds, needs.split(","), "culprits" if kinds else part)
    todo = [s for s in wanted if again or s.id not in marks]
    for mark in run_all(todo, jobs=jobs, timeout_s=timeout_s, limit_s=limit_s, keep=keep):
        print(table.line(mark), flush=True)
        marks[mark.id] = mark
        if json_path is not None:
            everything = {"machine": machine(), "marks": [marks[key].as_dict() for key in sorted(marks)]}
            json_path.write_text(json.dumps(everything, indent=1) + "\n", encoding="utf-8")
    shown = [marks[s.id] for s in wanted if s.id in marks]
    print(table.text(shown))
    if missing := [s.id for s in wanted if s.id not in marks]:
        print(f"not run within the limit: {', '.join(missing)}")
    if markdown_path is not None:
        markdown_path.write_text(table.markdown(shown, machine()), encoding="utf-8")
    sys.exit(0 if shown and all(all(m.right.values()) for m in shown) else 1)


if __name__ == "__main__":
    main()
