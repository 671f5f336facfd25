"""One run, from settings to manifest: modes, data, trainer, loop, summary, and a reason when it ends early."""

from __future__ import annotations

import errno
import os
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from foxrun import ContractError, RunWriter, jsonio, schema
from trainer import config as configuration
from trainer import faults, ops
from trainer.cli import Settings
from trainer.data.book import SYNTHETIC, BookStream, DataError
from trainer.errors import TrainerError, UsageError
from trainer.exact import checkpoint, costs, modes, poison, provenance
from trainer.learn.loop import Loop, Schedule, progress_file
from trainer.learn.step import Trainer
from trainer.stopping import Stopped, Stopping

EXIT_KILLED = 137
LEAVE_CODE_S = 10.0


class _Code(threading.Thread):
    """Asks git what code this is while torch warms up."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(daemon=True)
        self._settings = settings
        self._result: dict[str, str] = {}
        self._error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self._result = provenance.code(self._settings.environment, self._settings.out)
        except Exception as error:
            self._error = error

    def result(self) -> dict[str, str]:
        """Raises what it met: a run that does not know its code must not look like one that has none."""
        self.join()
        if self._error is not None:
            raise self._error
        return self._result


class _HeldWriter(RunWriter):
    """A RunWriter whose writes no signal cuts in two."""

    stopping: Stopping

    def append(self, rows: Sequence[Mapping[str, Any]], bits: bytes | bytearray | memoryview = b"") -> None:
        with self.stopping.held():
            super().append(rows, bits)

    def timing(self, row: Mapping[str, Any]) -> None:
        with self.stopping.held():
            super().timing(row)


def run(settings: Settings, stopping: Stopping) -> None:
    """Do it. Raises TrainerError with one clear line; a run directory that was begun gets its reason first."""
    writer: _HeldWriter | None = None
    loop: Loop | None = None
    code = _Code(settings)
    try:
        loop, trainer, manifest, resumed = _prepare(settings, code)
        writer = _HeldWriter(settings.out, leaves=loop.tape.run_leaves(), manifest=manifest)
        writer.stopping = stopping
        _say(f"run {writer.run_id} in {settings.out}")
        summary = loop.run(writer, manifest, resumed)
        stopping.ignore()
        _finish(writer, trainer.fault, summary)
    except Stopped as stopped:
        stopping.ignore()
        _give_up(writer, loop, str(stopped))
        raise
    except Exception as error:
        stopping.ignore()
        message = explain(error, settings)
        _give_up(writer, loop, f"failed: {message}")
        if isinstance(error, TrainerError):
            raise
        raise TrainerError(message) from error
    finally:
        # An interpreter that ends beside it trips over its temporary directory, with a traceback.
        code.join(LEAVE_CODE_S)


def _prepare(settings: Settings, code: _Code) -> tuple[Loop, Trainer, dict[str, Any], Mapping[str, Any] | None]:
    config = settings.config
    fingerprints = config.takes_fingerprints(settings.mode)
    knobs = [*settings.knobs, *modes.apply(settings.mode, config.threads, fingerprints=fingerprints)]
    device = modes.choose_device(config.device)
    environment = provenance.environment(device, config.threads)
    decided = configuration.as_mapping(config, settings.market)
    cost = costs.cost_of(settings.mode, environment, decided, settings.environment)
    for line in modes.announce(settings.mode, knobs, str(device), cost):
        _say(line)
    for knob in knobs:
        if knob.note.startswith(modes.CORRECTED):
            sys.stderr.write(f"trainer: {knob.line()}\n")
    poison.poison(poison.poison_byte(settings.environment), device)
    stream = BookStream(
        settings.data or SYNTHETIC,
        chunk_rows=config.chunk_rows,
        device=device,
        min_rows=config.window + 2 * config.rows_per_step + 1,
        rows=config.book_rows,
        seed=config.book_seed,
        instrument=config.instrument or None,
    )
    _say(stream.describe())
    trainer = Trainer(
        ops.select(settings.mode, device), config, settings.market, seed=settings.seed, fault=settings.fault
    )
    manifest = {
        "code": code.result(),
        "seed": settings.seed,
        "mode": settings.mode,
        "config": {
            "steps": settings.steps,
            "eval_steps": settings.eval_steps,
            **decided,
        },
        "inputs": stream.inputs,
        "environment": environment,
        "variables": provenance.variables(settings.environment),
        "command": provenance.command(settings.arguments),
        "knobs": {knob.name: f"{knob.value} {knob.note}".strip() for knob in knobs},
        "leg": settings.leg,
    }
    schedule = Schedule(
        steps=settings.steps,
        eval_steps=settings.eval_steps,
        checkpoint_at=config.checkpoint_at,
        checkpoint_path=settings.out / f"checkpoint-{config.checkpoint_at}.pt",
        resume=Path(config.resume) if config.resume else None,
    )
    resumed = None
    if schedule.resume is not None:
        resumed = checkpoint.load(schedule.resume)
        checkpoint.check(schedule.resume, resumed, manifest, schedule.steps)
    if schedule.checkpoint_at > schedule.steps:
        raise UsageError(f"checkpoint_at={schedule.checkpoint_at} is past the {schedule.steps} training steps")
    progress = progress_file(settings.environment.get("ARGO_PROGRESS_FILE"))
    loop = Loop(trainer, stream, schedule, fingerprints=fingerprints, progress=progress)
    return loop, trainer, manifest, resumed


def _finish(writer: RunWriter, fault: faults.Fault, summary: Mapping[str, Any]) -> None:
    path = writer.path / schema.SUMMARY
    if fault.name == "cut-summary":
        text = jsonio.pretty(dict(summary))
        path.write_text(text[: len(text) // 2], encoding="utf-8")
        sys.stderr.flush()
        os._exit(EXIT_KILLED)
    elif fault.name == "empty-summary":
        path.write_bytes(b"")
    elif fault.name != "no-summary":
        writer.write_summary(summary)
    writer.finish()
    _say("completed: " + ", ".join(f"{name}={value}" for name, value in summary.items()))


def _give_up(writer: RunWriter | None, loop: Loop | None, reason: str) -> None:
    """Leave the rows so far and a manifest that says why, where that is still possible."""
    if writer is None or loop is None:
        return
    try:
        loop.salvage()
        writer.finish(" ".join(reason.split()))
    except Exception:  # a second failure must not hide the first
        writer.close()


def explain(error: Exception, settings: Settings) -> str:
    """One line for people; the traceback of what nobody foresaw goes to the log."""
    if isinstance(error, TrainerError | DataError | ContractError):
        return str(error)
    if isinstance(error, OSError):
        where = error.filename or settings.out
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return f"the disk is full at {where}: free space, or choose another --out"
        return f"{where}: {error.strerror or error}"
    text = str(error)
    if isinstance(error, MemoryError | torch.cuda.OutOfMemoryError) or "not enough memory" in text:
        return "out of memory: lower capacity, envs, batch or chunk_rows"
    traceback.print_exception(error)
    return f"{type(error).__name__}: {text}"


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
