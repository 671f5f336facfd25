"""Remedies for generators: fixed seeds for all that have none, and for those of worker processes."""

from __future__ import annotations

import os
import sys
import zlib
from collections import Counter
from itertools import count
from types import FrameType, ModuleType
from typing import Any

from foxrun.tracing import imports, patching

SEED = 20_021
_HERE = __file__.rpartition(os.sep)[0]
_STDLIB = str(os.__file__).rpartition(os.sep)[0]
_GENERATORS = (f"{_STDLIB}{os.sep}random.py", f"{_STDLIB}{os.sep}functools.py")
_ENDINGS = tuple(
    name.replace("/", os.sep)
    for name in ("/torch/random.py", "/torch/cuda/random.py", "_generator.pyx", "bit_generator.pyx", "mtrand.pyx")
)
_SPAN_S = 3600  # a number this near to the clock is taken for one that comes from it


class Numbers:
    """Seeds by the line that asks and how often it has asked, so that what else asks in one process moves none.

    A library that makes a generator of its own in one twin alone (tempfile looks for names where TMPDIR is not set)
    would shift a sequence that all share.
    """

    def __init__(self) -> None:
        self._asked: Counter[str] = Counter()

    def __next__(self) -> int:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and _generators_own(frame.f_code.co_filename):
            frame = frame.f_back
        site = "" if frame is None else f"{frame.f_code.co_filename.rpartition(os.sep)[2]}:{frame.f_lineno}"
        self._asked[site] += 1
        return (SEED + zlib.crc32(f"{site} {self._asked[site]}".encode())) % (1 << 31)


def _generators_own(file: str) -> bool:
    """Whether a frame of this file stands between a program's line and the seed that it asks for."""
    return file in _GENERATORS or file.startswith((_HERE, "<frozen")) or file.endswith(_ENDINGS)


def seed_generators() -> None:
    """Python's, numpy's and torch's."""
    numbers = Numbers()
    imports.when_imported("random", lambda module: _python(module, numbers))
    imports.when_imported("numpy.random", lambda module: _numpy(module, numbers))
    imports.when_imported("torch", lambda module: _torch(module, numbers))


def from_outside(seed: Any) -> bool:
    """Whether a seed is none, or a number that must come from the clock, the process id or the machine's entropy."""
    if seed is None:
        return True
    if isinstance(seed, float):
        seed = int(seed)
    if not isinstance(seed, int) or isinstance(seed, bool):
        return False
    import time

    if seed == os.getpid():
        return True
    for unit in (1, 10**3, 10**6, 10**9):
        now = int(time.time() * unit)
        for modulus in (None, 1 << 32, (1 << 32) - 1, 1 << 31, (1 << 31) - 1):
            distance = abs(seed - now) if modulus is None else min((seed - now) % modulus, (now - seed) % modulus)
            # A window that is a large part of the modulus would catch any number.
            if distance <= _SPAN_S * unit and (modulus is None or _SPAN_S * unit < modulus // 1000):
                return True
    return False


def _fixed(around_of: Any, numbers: Any, at: int) -> Any:
    """Around a function whose argument ``at`` is a seed that may be left out."""

    def around(original: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            given = args[at] if len(args) > at else next(iter(kwargs.values()), None)
            if from_outside(given):
                return original(*args[:at], around_of(next(numbers)))
            return original(*args, **kwargs)

        return call

    return around


def _plain(seed: int) -> int:
    return seed


def _python(random: ModuleType, numbers: Any) -> None:
    cls = random.Random
    init, seed = cls.__init__, cls.seed

    def __init__(self: Any, x: Any = None) -> None:
        init(self, next(numbers) if from_outside(x) and type(self).__name__ != "SystemRandom" else x)

    def seeding(self: Any, a: Any = None, version: int = 2) -> None:
        seed(self, next(numbers) if from_outside(a) else a, version)

    inst = random._inst
    inst.seed(SEED)
    cls.__init__, cls.seed = __init__, seeding
    random.seed = inst.seed  # type: ignore[attr-defined]


def _numpy(numpy_random: ModuleType, numbers: Any) -> None:
    numpy_random.seed(SEED)
    patching.function(numpy_random, "seed", _fixed(_plain, numbers, 0))
    patching.function(numpy_random, "default_rng", _fixed(_plain, numbers, 0))
    # Bit generators without a seed (PCG64()) make one of these.
    patching.method(numpy_random.SeedSequence, "__init__", _fixed(_plain, numbers, 1))
    patching.method(numpy_random.RandomState, "__init__", _fixed(_plain, numbers, 1))
    patching.method(numpy_random.RandomState, "seed", _fixed(_plain, numbers, 1))


def _torch(torch: Any, numbers: Any) -> None:
    import functools

    torch.manual_seed(SEED)
    manual = torch.manual_seed

    @functools.wraps(manual)
    def manual_seed(seed: Any) -> Any:
        return manual(next(numbers) if from_outside(seed) else seed)

    @functools.wraps(torch.seed)
    def seed() -> int:
        number = int(next(numbers))
        manual(number)
        return number

    torch.manual_seed = torch.random.manual_seed = manual_seed
    torch.seed = torch.random.seed = seed
    generator: Any = torch.Generator
    of_generator = generator.manual_seed

    def generator_seed(self: Any) -> int:
        number = int(next(numbers))
        of_generator(self, number)
        return number

    patching.method(generator, "seed", lambda original: generator_seed)
    patching.method(generator, "manual_seed", _fixed(_plain, numbers, 1))


def workers_seeded() -> None:
    """Workers of a DataLoader, and every other process that multiprocessing starts."""
    imports.when_imported("torch.utils.data._utils.worker", _loader_workers)
    imports.when_imported("multiprocessing.process", _processes)


def _reseed(seed: int, holders: tuple[Any, ...]) -> None:
    """The global generators of this process, and those that these objects hold."""
    if "random" in sys.modules:
        sys.modules["random"].seed(seed)
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed(seed % (1 << 32))
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)
    places = count(1)
    for holder in holders:
        _reseed_held(holder, seed, places, set(), 0)


def _reseed_held(value: Any, seed: int, places: Any, seen: set[int], depth: int) -> None:
    if id(value) in seen or depth > 4:
        return
    seen.add(id(value))
    fresh = seed * 1_000_003 + next(places)
    random, numpy, torch = (sys.modules.get(name) for name in ("random", "numpy.random", "torch"))
    if random is not None and isinstance(value, random.Random):
        value.seed(fresh)
    elif numpy is not None and isinstance(value, numpy.Generator):
        value.bit_generator.state = type(value.bit_generator)(fresh).state
    elif numpy is not None and isinstance(value, numpy.RandomState):
        value.seed(fresh % (1 << 32))
    elif torch is not None and isinstance(value, torch.Generator):
        value.manual_seed(fresh)
    elif isinstance(value, dict):
        for one in value.values():
            _reseed_held(one, seed, places, seen, depth + 1)
    elif isinstance(value, (list, tuple)) and len(value) <= 64:
        for one in value:
            _reseed_held(one, seed, places, seen, depth + 1)
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        _reseed_held(vars(value), seed, places, seen, depth + 1)


def _loader_workers(worker: ModuleType) -> None:
    """After the program's own worker_init_fn; the worker's number decides, not the moment."""
    loop: Any = worker._worker_loop

    class Init:
        """The worker_init_fn."""

        def __init__(self, own: Any, dataset: Any) -> None:
            self._own, self._dataset = own, dataset

        def __call__(self, number: int) -> None:
            if self._own is not None:
                self._own(number)
            main = sys.modules.get("__main__")
            held = {k: v for k, v in vars(main).items() if not k.startswith("__")} if main else {}
            _reseed(SEED + number, (self._dataset, held))

    import inspect

    names = list(inspect.signature(loop).parameters)
    dataset, init = names.index("dataset"), names.index("init_fn")

    def _worker_loop(*args: Any) -> None:
        given = list(args)
        given[init] = Init(given[init], given[dataset])
        loop(*given)

    worker._worker_loop = _worker_loop  # type: ignore[attr-defined]


def _processes(process: ModuleType) -> None:
    base: Any = process.BaseProcess
    run = base.run

    def running(self: Any) -> None:
        if self._target is not None and getattr(self._target, "__name__", "") != "_worker_loop":
            _reseed(SEED + (self._identity[-1] if self._identity else 0), (self._args, self._kwargs))
        run(self)

    base.run = running
