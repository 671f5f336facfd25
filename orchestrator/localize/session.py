"""One localisation's pairs: runs them within the deadline, counts them, remembers how each ended."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import shlex
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.causes import HOSTILE_TWIN_ALONE
from orchestrator.errors import DeadlinePassed, JobFailed
from orchestrator.localize import own_rows, space
from orchestrator.localize.pair import CHECKPOINT, Kind, Pair, Request, Window, processors, run_pair
from orchestrator.localize.result import Trial
from orchestrator.localize.steps import StepsFound, compare_steps
from orchestrator.twin_run import TWINS

_YET = "and yet a file that the twins wrote"
FILES = "(files)"
PRINTED = 100_000  # lines
_NUMBER = re.compile(r"0x[0-9a-f.]+p[+-]?\d+|[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?", re.IGNORECASE)
_TIMED = re.compile(
    r"\d ?(?:s|ms|us|sec|min|h)\b|/s\b|it/s|\d:\d\d|time|elapsed|second|took|speed|pid|/tmp|20\d\d-", re.IGNORECASE
)
THREADS = (1, max(2, min(8, 2 * processors())))
_MARK = "mark its steps (foxrun.step(n), docs/tracing.md) and look at the first N only (--steps N)"


@dataclass(kw_only=True)
class Options:
    """``trials``: pairs before one agrees to call it clean; ``stop_after``: no step after this one is of interest."""

    trials: int = 3
    timeout_s: float = 600.0
    replay_runs: int = 20
    remedies: bool = True
    dump_steps: tuple[int, int] | None = None
    stop_after: int | None = None
    keep: bool = False
    step: int | None = None  # where a known pair parts: the search begins there


@dataclass(kw_only=True)
class Listener:
    """Who hears what is being done: one sentence each, and lines of the twins."""

    stage: Callable[[str], None] = lambda text: None
    line: Callable[[str, str], None] = lambda twin, text: None


@dataclass(kw_only=True)
class Session:
    """State of one localisation. ``agreed``: pairs of the unchanged program that agreed, by kind."""

    request: Request
    options: Options
    listener: Listener
    started: float = field(default_factory=time.monotonic)
    trials: list[Trial] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    not_looked_at: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    pairs: int = 0
    dumps: list[dict[str, Any]] = field(default_factory=list)
    fails: bool = False  # both twins fail after they parted, so that a failure says nothing of a remedy
    printed: str = ""  # the first line in which agreeing twins printed different numbers
    counts_printed: bool = False  # no step is seen and operations part: what is printed is all that can be compared
    crashed: str = ""  # how a hostile twin died, where one did
    whole: Request | None = None  # the request from the start, while twins go on from a checkpoint

    @property
    def left(self) -> float:
        """Seconds to the deadline."""
        return self.started + self.options.timeout_s - time.monotonic()

    @property
    def usual(self) -> float:
        """Seconds that a pair takes, by those so far."""
        return max(self.seconds[-3:], default=5.0)

    def affords(self, pairs: float = 1.0) -> bool:
        """Whether so many more pairs end before the deadline."""
        return self.left > pairs * 1.3 * self.usual

    def run(self, kind: Kind, window: Window, what: str, windows: tuple[Window, Window] | None = None) -> Pair:
        """Run a pair. JobFailed when the program fails before anything parts; DeadlinePassed when it does not end."""
        self.listener.stage(what)
        if self.left <= 0:
            raise DeadlinePassed("the time for this localisation is over", remedy="give it a longer --timeout")
        deadline = self.started + self.options.timeout_s
        pair = run_pair(self.request, kind, window, deadline=deadline, windows=windows, say=self.listener.line)
        self.pairs += 1
        self.seconds.append(pair.seconds)
        whole = [one.stop_after is None for one in windows or (window,)]
        return dataclasses.replace(pair, whole=all(whole))

    def compared(self, pair: Pair) -> StepsFound:
        """Where the rows of a pair part; files that the twins wrote count when no row says anything."""
        found = _decided(compare_steps(pair.a.main.rows(), pair.b.main.rows()), _by_own_rows(pair))
        found = self._passing(pair, found)
        self._troubles(pair)
        if found.step is not None and not (found.leaf == "(row)" and pair.failed):
            if len(pair.failed) == len(TWINS) and not self.fails:
                self.fails = True
                said = pair.messages[0] or "no message"
                self._note(f"the program fails in both twins all the same ({said}): what was before was compared")
            return found
        if not pair.in_time:  # they were ended for it, so their exit codes say nothing
            self.pairs -= 1  # a pair that was ended says nothing
            seen = f"; the {found.rows} steps that they made until then agree" if found.rows else ""
            shorter = "--steps N to look at the first N steps only" if found.rows else _MARK
            raise DeadlinePassed(
                f"the twins did not end within {self.options.timeout_s:g} s{seen}",
                remedy=f"give it a longer --timeout, or {shorter}",
            )
        if pair.failed and not (self.fails and len(pair.failed) == len(TWINS)):
            self._failed(pair, found.rows)
        if found.step is not None:
            return found
        printed = printed_apart(pair)
        self.printed = self.printed or printed
        unlike = files_that_differ(pair)
        if printed and self.counts_printed and not found.made:
            unlike = ["stdout", *unlike]
        if unlike and not found.made:
            return dataclasses.replace(found, leaf=unlike[0], component="host", kind="file", note=FILES)
        if unlike and not any(_YET in note for note in self.notes):  # once: names with a date are others each time
            a, b = pair.written
            alone = "" if all(name in a and name in b for name in unlike) else ", or in its name,"
            self._note(
                f"all {found.rows} rows agree, {_YET} differs: {', '.join(unlike[:5])}; "
                f"a time or a path in it{alone} would be a reason"
            )
        return found

    def _troubles(self, pair: Pair) -> None:
        """What the tracer itself failed at is not passed over: a row may be missing for it."""
        for trace in (pair.a, pair.b):
            for process in trace.processes.values():
                for what, count in sorted(((process.end or {}).get("troubles") or {}).items()):
                    text = f"what the tracer failed at ({what}, {count} times): some of it was not compared"
                    if not any(what in known for known in self.not_looked_at):
                        self.not_looked_at.append(text)

    def _passing(self, pair: Pair, found: StepsFound) -> StepsFound:
        """What parts in passing alone, in a whole run that prints and writes the same, is no difference: a preview."""
        if found.step is None or found.kept or not pair.whole or pair.failed or not pair.in_time:
            return found
        if printed_apart(pair) or files_that_differ(pair):
            return found
        self._note(
            f"from step {found.step} on {found.leaf} differs ({len(found.parted)} inputs and outputs of modules), and "
            "nothing that the training keeps: no weight, gradient, loss or state, no file, no printed number"
        )
        return StepsFound(
            rows=found.rows, made=found.made, leaves=found.leaves, ignored=sorted({*found.ignored, found.leaf})
        )

    def go_on_from(self, pair: Pair, step: int) -> None:
        """Let later twins start at the exact checkpoint of this pair's first twin, where it lies before ``step``."""
        at = self.request.checkpoint_step
        if not self.request.from_checkpoint or step <= at:
            return
        files = sorted((pair.folder / TWINS[0] / "out").glob(f"**/checkpoint-{at}.pt"))
        if not files:
            return
        kept = self.request.work / files[0].name
        with space.needed(self.request.work):
            shutil.copy2(files[0], kept)
        words = tuple(word.replace(CHECKPOINT, str(kept)) for word in self.request.from_checkpoint)
        self.whole = self.request
        self.request = dataclasses.replace(self.request, command=words, from_checkpoint=())
        self._note(f"from the second pair on, twins began at step {at}, from one exact checkpoint of the first pair")

    def start_over(self) -> bool:
        """Let twins run from their start again; False where they do."""
        if self.whole is None:
            return False
        self.request, self.whole = self.whole, None
        self._note("twins from the checkpoint agreed: what parts them lies before it; they ran from their start again")
        return True

    def _failed(self, pair: Pair, rows: int) -> None:
        which = pair.failed
        said = [
            f"twin{i + 1} ended with exit code {pair.codes[i]}: {pair.messages[i] or _silent(pair, i)}" for i in which
        ]
        text = f"the program failed: {said[0] if len(said) == 1 else f'{said[0]}'}"
        if which == [1]:
            other = self.request.other
            text += (
                f"; {HOSTILE_TWIN_ALONE}" if other is None else f"; it ran the command of --other: {shlex.join(other)}"
            )
        if "EOFError" in said[0]:
            text += "; twins read no terminal and no pipe: give it a file (... -- python train.py < answers)"
        if rows > 1:
            text += f"; {rows - 1} steps before it agree (--steps {rows - 1} looks at no more)"
        log = pair.folder / f"twin{which[0] + 1}" / "log"
        raise JobFailed(text, remedy=f"read {log}, which is kept until you delete it")

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def drop(self, pair: Pair | None) -> None:
        """Its traces are not needed any more."""
        if pair is not None and not self.options.keep:
            shutil.rmtree(pair.folder, ignore_errors=True)


def _silent(pair: Pair, twin: int) -> str:
    """What is said of a program that said nothing."""
    code = pair.codes[twin] or 0
    with contextlib.suppress(ValueError):
        return f"ended by {signal.Signals(code - 128).name}" if code > 128 else "it printed nothing"
    return "it printed nothing"


def _by_own_rows(pair: Pair) -> StepsFound | None:
    """Where the rows part that the program itself writes; None where it writes none, or where they agree."""
    runs = [own_rows.run_in(pair.folder / twin / "out") for twin in TWINS]
    if runs[0] is None or runs[1] is None:
        return None
    found = compare_steps(own_rows.rows(runs[0]), own_rows.rows(runs[1]), declared=True)
    return found if found.step is not None and found.leaf != "(row)" else None


def _decided(traced: StepsFound, own: StepsFound | None) -> StepsFound:
    """The program's own leaves say more than what is seen from outside, unless that parted clearly before.

    A row of the program's may be numbered by one more than the step that is seen.
    """
    if own is None or own.step is None or (traced.step is not None and traced.step < own.step - 1):
        return traced
    return dataclasses.replace(own, traced_step=traced.step, traced_rows=traced.rows, ignored=traced.ignored)


def files_that_differ(pair: Pair) -> list[str]:
    """Files that both twins wrote with other contents, or one alone; by name."""
    a, b = pair.written
    return sorted(name for name in a.keys() | b.keys() if a.get(name) != b.get(name) and not _noise(name))


def _noise(name: str) -> bool:
    return Path(name).suffix in (".pyc", ".log", ".lock") or name.endswith("timing.jsonl") or "__pycache__" in name


def printed_apart(pair: Pair) -> str:
    """The first line in which the twins printed the same words and other numbers; a time or a speed is no such line."""
    texts = []
    for twin in TWINS:
        file = pair.folder / twin / "log"
        texts.append(file.read_text("utf-8", "replace").splitlines()[:PRINTED] if file.is_file() else [])
    for one, other in zip(*texts, strict=False):
        if one != other and _NUMBER.sub("#", one) == _NUMBER.sub("#", other) and not _TIMED.search(one):
            return f"{one.strip()[:60]!r} and {other.strip()[:60]!r}"
    return ""
