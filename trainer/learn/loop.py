"""The loop around the steps: chunks of the book, checkpoints, evaluation, progress, the last row."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import foxrun
from foxrun import RunWriter, jsonio
from trainer import faults
from trainer.data.book import BookStream
from trainer.exact import checkpoint
from trainer.exact.counters import Purpose
from trainer.exact.tape import Tape
from trainer.learn import leaves
from trainer.learn.acting import Desk, open_desk
from trainer.learn.evaluation import EVAL_METRICS, Evaluation
from trainer.learn.step import TRAIN_METRICS, Trainer


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """How long, and what to write on the way."""

    steps: int
    eval_steps: int
    checkpoint_at: int
    checkpoint_path: Path
    resume: Path | None

    @property
    def total(self) -> int:
        """Steps of training and evaluation together."""
        return self.steps + self.eval_steps


class Recorder:
    """A run's rows on their way to the writer, kept for a checkpoint while one is still to come."""

    def __init__(self, writer: RunWriter, *, keep: bool) -> None:
        self._writer = writer
        self._keep = keep
        self.rows: list[Mapping[str, object]] = []
        self.bits = bytearray()

    def append(self, rows: Sequence[Mapping[str, object]], bits: bytes) -> None:
        """Rows of diag.jsonl with their fingerprints."""
        self._writer.append(rows, bits)
        if self._keep:
            self.rows += rows
            self.bits += bits

    def forget(self) -> None:
        """No checkpoint comes any more."""
        self._keep = False
        self.rows = []
        self.bits = bytearray()


def make_tape(trainer: Trainer, desk: Desk, *, fingerprints: bool) -> Tape:
    """The tape of this trainer's leaves."""
    sizes = leaves.Sizes(replay_leaves=trainer.replay.leaves, replay_capacity=trainer.replay.capacity)
    declared = leaves.declare(trainer.config, trainer.layout, desk.env, sizes)
    metrics = {"train": TRAIN_METRICS, "eval": EVAL_METRICS}
    return Tape(declared, metrics, trainer.device, fingerprints=fingerprints)


class Loop:
    """One run from its first step to its summary."""

    def __init__(
        self,
        trainer: Trainer,
        stream: BookStream,
        schedule: Schedule,
        *,
        fingerprints: bool,
        progress: Callable[[int, int], None],
    ) -> None:
        self._trainer, self._stream, self._schedule = trainer, stream, schedule
        self._progress = progress
        self._recorder: Recorder | None = None
        self._desk = self._open(0, evaluation=False)
        self.tape = make_tape(trainer, self._desk, fingerprints=fingerprints)

    def run(self, writer: RunWriter, manifest: Mapping[str, Any], resumed: Mapping[str, Any] | None) -> dict[str, Any]:
        """All steps; returns the summary."""
        schedule, trainer = self._schedule, self._trainer
        self._recorder = recorder = Recorder(writer, keep=schedule.checkpoint_at >= 0)
        first = 0
        if resumed is not None:
            first = self._resume(resumed, recorder)
        clock = _Clock(writer, first)
        for step in range(first, schedule.steps):
            if step > first or resumed is None:
                self._change_chunk(step)
            if step == schedule.checkpoint_at:
                self._save(step, recorder, manifest)
            faults.before_step(trainer.fault, step)
            self._weight_fault(step)
            trainer.ops.swapped_sum = trainer.fault.active("swapped-sum", step)
            metrics = trainer.train(self.tape, self._desk, step)
            self._end_step(step, "train", metrics, recorder, clock)
        clock.end("train")
        if schedule.steps == schedule.checkpoint_at:
            self._save(schedule.steps, recorder, manifest)
        return self._evaluate(recorder, clock)

    def salvage(self) -> None:
        """Write the whole rows that a run which ends early has gathered; the step it died in is left out."""
        if self._recorder is not None:
            self.tape.flush(self._recorder)

    def _evaluate(self, recorder: Recorder, clock: _Clock) -> dict[str, Any]:
        schedule, trainer = self._schedule, self._trainer
        if schedule.eval_steps:
            # What comes after the chunk trained on last: unseen rows wherever the data is long enough.
            self._desk = self._open(self._chunk_of(max(0, schedule.steps - 1)) + 1, evaluation=True)
        evaluation = Evaluation(trainer)
        for step in range(schedule.steps, schedule.total):
            faults.before_step(trainer.fault, step)
            trainer.ops.swapped_sum = trainer.fault.active("swapped-sum", step)
            metrics = evaluation.step(self.tape, self._desk)
            self._end_step(step, "eval", metrics, recorder, clock)
        clock.end("eval")
        trainer.take_env(self.tape, self._desk, trainer.counters.keys(trainer.step))
        trainer.take_parameters(self.tape)
        trainer.take_learner(self.tape)
        self.tape.close_row(schedule.total, "eval" if schedule.eval_steps else "train", None, recorder)
        self.tape.flush(recorder)
        return evaluation.summary(self._desk)

    def _end_step(
        self, step: int, phase: str, metrics: Mapping[str, torch.Tensor], recorder: Recorder, clock: _Clock
    ) -> None:
        self.tape.close_row(step, phase, metrics, recorder)
        foxrun.step(step, self.salvage)
        done = step + 1
        clock.tick(done, phase)
        self._progress(done, self._schedule.total)

    def _open(self, chunk: int, *, evaluation: bool) -> Desk:
        t = self._trainer
        book = self._stream.load(chunk)
        envs = t.config.envs
        if evaluation:
            uniform = (t.ops.arange(envs).to(torch.float32) + 0.5) / envs
        else:
            uniform = t.counters.uniform(t.counters.keys(t.step), Purpose.ENV_OFFSET, envs)
        return open_desk(t.config, t.market, book, chunk % self._stream.chunks, uniform, t.config.width)

    def _chunk_of(self, step: int) -> int:
        return step // self._trainer.config.chunk_steps

    def _change_chunk(self, step: int) -> None:
        """Load the next chunk when its time has come; a number of steps decides, never what happened in them."""
        if step == 0 or self._stream.chunks == 1 or self._chunk_of(step) == self._chunk_of(step - 1):
            return
        t, desk = self._trainer, self._desk
        chunk = self._chunk_of(step) % self._stream.chunks
        old, book = desk.book, self._stream.load(chunk)
        uniform = t.counters.uniform(t.counters.keys(t.step), Purpose.ENV_OFFSET, t.config.envs)
        cursor = t.market.offsets(uniform, book.rows, t.config.window)
        desk.env = t.market.change_book(old, desk.env, cursor, t.step)
        desk.book = book
        desk.chunk = torch.full_like(desk.chunk, chunk)
        desk.h = torch.zeros_like(desk.h)

    def _weight_fault(self, step: int) -> None:
        if self._trainer.fault.at("ulp", step):
            first = self._trainer.parameters["vsn_w"].view(-1)[:1]
            first.copy_(torch.nextafter(first, torch.full_like(first, float("inf"))))

    def _save(self, step: int, recorder: Recorder, manifest: Mapping[str, Any]) -> None:
        self.tape.flush(recorder)
        checkpoint.save(
            self._schedule.checkpoint_path,
            trainer=self._trainer,
            desk=self._desk,
            step=step,
            manifest=manifest,
            rows=recorder.rows,
            bits=bytes(recorder.bits),
        )
        recorder.forget()

    def _resume(self, state: Mapping[str, Any], recorder: Recorder) -> int:
        chunk = int(state["tensors"]["chunk"])
        self._desk.book = self._stream.load(chunk)
        checkpoint.restore(state, self._trainer, self._desk)
        rows = jsonio.loads(state["rows"])
        if rows:
            recorder.append(rows, state["bits"].numpy().tobytes())
        return int(state["step"])


class _Clock:
    """timing.jsonl: seconds of some steps of one phase together, the last of them ``step - 1``; never compared.

    On a GPU the host runs ahead of the device until a block of rows leaves it, so single rows mean little there.
    """

    EVERY = 10

    def __init__(self, writer: RunWriter, first: int) -> None:
        self._writer = writer
        self._counted = self._done = first
        self._last = time.perf_counter()

    def tick(self, done: int, phase: str) -> None:
        self._done = done
        if done % self.EVERY == 0:
            self.end(phase)

    def end(self, phase: str) -> None:
        """Write what has gathered, if anything."""
        now = time.perf_counter()
        if steps := self._done - self._counted:
            seconds = round(now - self._last, 6)
            self._writer.timing({"step": self._done, "phase": phase, "steps": steps, "seconds": seconds})
            self._counted, self._last = self._done, now


def progress_file(path: str | None) -> Callable[[int, int], None]:
    """A writer of "N/M" to ARGO_PROGRESS_FILE: at most a few times a second, and at the end."""
    if not path:
        return lambda done, total: None
    last = 0.0

    def write(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if done < total and now - last < 0.25:
            return
        last = now
        temporary = f"{path}.{os.getpid()}.tmp"
        try:
            Path(temporary).write_text(f"{done}/{total}\n", encoding="ascii")
            Path(temporary).replace(path)
        except OSError:
            # Progress is a courtesy: a run does not end because it cannot be shown.
            return

    return write
