"""``foxrun cost``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from orchestrator.cli import options


@click.command("cost")
@options.training
@click.option("--modes", default="0,1,2,3", show_default=True, metavar="LIST", help="Modes to measure, with 0.")
@click.option("--steps", type=click.IntRange(min=20), default=100, show_default=True, help="Steps of each run.")
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True, help="Runs of each variant.")
@click.option("--bare/--no-bare", default=None, help="Also without fingerprints.  [default: for our trainer]")
@click.option("--out", type=click.Path(path_type=Path), help="Write cost.md and cost.json here as well.")
@options.output("json", "markdown", help="Print the table so.")
@click.argument("trainer", nargs=-1, type=click.UNPROCESSED)
def command(
    modes: str, steps: int, rounds: int, bare: bool | None, out: Path | None, fmt: str | None,
    trainer: tuple[str, ...], **flags: Any,
) -> None:  # fmt: skip
    """Measure what each mode costs on this machine, against mode 0, in one run.

    \b
    foxrun cost -p envs=128
    foxrun cost --modes 0,3 --rounds 7 --out docs/

    Every variant runs once a round, forwards and backwards in turn; ratios are within a round. The trainer prints
    the figure of its mode at start, from the newest table of this hardware, these versions and this size.
    """
    from foxrun.files import write_atomic
    from foxrun.jsonio import pretty
    from orchestrator import cost, cost_table
    from orchestrator.cli.output import print_json
    from orchestrator.gate import DEFAULT_TRAINER
    from orchestrator.settings import home_directory
    from orchestrator.training import command_of, training_of

    settings = options.current()
    if flags["mode"] is not None:
        raise click.UsageError("--mode does not go here: give --modes")
    training = training_of(
        settings, parameters=flags["parameters"], parameter_file=flags["parameter_file"], seed=flags["seed"]
    )
    program = trainer or command_of(settings.trainer)
    found = cost.measure(
        program,
        cost.variants(_modes(modes), bare=program == DEFAULT_TRAINER if bare is None else bare),
        seed=training.seed,
        steps=steps,
        rounds=rounds,
        parameters=training.parameters,
        data=training.data,
        say=lambda text: click.echo(text, err=True),
    )
    kept = cost_table.remember(found, home_directory(settings))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        write_atomic(out / "cost.md", cost_table.markdown(found))
        write_atomic(out / "cost.json", pretty(cost_table.as_dict(found)))
    if fmt == "json":
        print_json(cost_table.as_dict(found))
    else:
        click.echo(cost_table.markdown(found), nl=False)
        click.echo(f"kept for trainers: {kept}", err=True)


def _modes(text: str) -> list[int]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words or any(word not in ("0", "1", "2", "3") for word in words):
        raise click.BadParameter("modes are 0, 1, 2 and 3, parted by commas", param_hint="--modes")
    return sorted({int(word) for word in words})
