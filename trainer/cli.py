"""``python -m trainer``: parse, refuse, run, and one clear line for whatever went wrong.

Parsing imports no torch, so a mistake in a parameter is told at once.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from trainer import config as configuration
from trainer import faults
from trainer.config import TrainerConfig
from trainer.errors import TrainerError, UsageError
from trainer.exact import modes
from trainer.exact.modes import Knob
from trainer.market.config import MarketConfig
from trainer.stopping import Stopped, Stopping

POD_TERMINATION_LOG = "/dev/termination-log"
TERMINATION_LOG_BYTES = 4096
FLAGS = ("seed", "mode", "steps", "eval_steps", "out")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One run as it was asked for, checked."""

    config: TrainerConfig
    market: MarketConfig
    out: Path
    data: str
    seed: int
    mode: int
    steps: int
    eval_steps: int
    leg: str
    fault: faults.Fault
    knobs: tuple[Knob, ...]
    environment: Mapping[str, str]
    arguments: tuple[str, ...]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = _Parser(
        prog="python -m trainer",
        description="Train an agent on MBP-10 order-book data and write a run directory.",
        epilog="Example: python -m trainer --out runs --steps 50 --eval-steps 20 -p envs=16 -p width=32",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("--out", default="runs", help="the run goes to a new directory in here")
    made.add_argument("--seed", default="42", help="seed of every draw")
    made.add_argument("--mode", default=None, help="0 fast, 1 pedantic, 2 control, 3 fast and exact")
    made.add_argument("--steps", default="200", help="training steps")
    made.add_argument("--eval-steps", default="50", help="evaluation steps")
    made.add_argument("--parameters", default="{}", help="JSON object of strings, as -p")
    made.add_argument("-p", dest="pairs", action="append", default=[], metavar="KEY=VALUE", help="one parameter")
    made.add_argument("--data", default="", metavar="PATH", help="MBP-10 data, .dbn or .dbn.zst; none: synthetic")
    made.add_argument("--list-parameters", action="store_true", help="print every parameter and end")
    return made


def settings(arguments: Sequence[str], environment: Any) -> Settings:
    """Parse and check; UsageError says what is wrong. Corrects ``environment`` for the mode."""
    given = parser().parse_args(arguments)
    parameters = {**configuration.parse_object(given.parameters), **configuration.split_pairs(given.pairs)}
    data = given.data or parameters.get("data", "")
    parameters.pop("data", None)
    for name in FLAGS:
        if name in parameters:
            raise UsageError(f"{name} is no parameter but a flag: --{name.replace('_', '-')} {parameters[name][:40]}")
    mode = modes.choose(given.mode, environment)
    # A full window where an episode begins again, unless asked otherwise.
    window = parameters.get("window", str(TrainerConfig.window))
    if "restart_row" not in parameters and re.fullmatch(r"[0-9]{1,9}", window):
        parameters["restart_row"] = str(max(0, int(window) - 1))
    try:
        config, market = configuration.build(parameters, TrainerConfig, MarketConfig)
    except ValueError as error:
        raise UsageError(str(error)) from None
    configuration.check(config)
    out, leg = Path(given.out), environment.get("FOXRUN_LEG", "")
    return Settings(
        config=config,
        market=market,
        out=out,
        data=data,
        seed=_whole("--seed", given.seed, (1 << 63) - 1),
        mode=mode,
        steps=_whole("--steps", given.steps, 10**12),
        eval_steps=_whole("--eval-steps", given.eval_steps, 10**12),
        leg=leg,
        fault=faults.parse(config.fault, leg=leg, out=out),
        knobs=tuple(modes.prepare(mode, environment)),
        environment=dict(environment),
        arguments=tuple(arguments),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; returns the exit code: 0 done, 1 failed, 2 usage, 128 + n ended by signal n."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if "--list-parameters" in arguments:
        sys.stdout.write(parameter_table() + "\n")
        return 0
    stopping = Stopping()
    try:
        asked = settings(arguments, os.environ)
        if threading.current_thread() is threading.main_thread():
            stopping.install()
        from trainer import run  # torch: after the environment has been corrected

        run.run(asked, stopping)
    except Stopped as stopped:
        return report(str(stopped), stopped.exit_code)
    except TrainerError as error:
        return report(str(error), error.exit_code)
    return 0


def report(message: str, exit_code: int) -> int:
    """One line on stderr and in the termination log; returns ``exit_code``."""
    line = "trainer: " + " ".join(message.split())
    sys.stderr.write(line + "\n")
    path = os.environ.get("FOXRUN_TERMINATION_LOG")
    if not path and "KUBERNETES_SERVICE_HOST" in os.environ and Path(POD_TERMINATION_LOG).exists():
        path = POD_TERMINATION_LOG
    if path:
        try:
            data = line.encode("utf-8", errors="replace")[: TERMINATION_LOG_BYTES - 1]
            # Written in place: in a pod this is a mount, which cannot be renamed over.
            Path(path).write_bytes(data + b"\n")
        except OSError as error:
            sys.stderr.write(f"trainer: cannot write the termination log {path}: {error.strerror}\n")
    return exit_code


def parameter_table() -> str:
    """Every parameter with default, unit and meaning, as Markdown."""
    lines = ["| parameter | default | unit | meaning |", "|---|---|---|---|"]
    meanings = _market_meanings()
    for name, item in configuration.parameter_fields(TrainerConfig, MarketConfig).items():
        meaning = item.metadata.get("meaning") or meanings.get(name, "")
        choices = item.metadata.get("choices")
        if choices:
            meaning += f" ({', '.join(choices)})"
        default = "" if item.default == "" else f"`{item.default}`"
        lines.append(f"| `{name}` | {default} | {item.metadata.get('unit', '')} | {meaning} |")
    return "\n".join(lines)


def _market_meanings() -> dict[str, str]:
    """What the texts under MarketConfig's fields say."""
    import ast
    import inspect

    body = ast.parse(inspect.getsource(MarketConfig)).body[0]
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    name = ""
    for node in body.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and name:
            found[name] = " ".join(str(node.value.value).split())
            name = ""
    return found


def _whole(flag: str, text: str, high: int) -> int:
    if not re.fullmatch(r"[0-9]{1,19}", text, re.ASCII) or int(text) > high:
        raise UsageError(f"{flag} {text[:40]!r}: expected a whole number from 0 to {high}")
    return int(text)
