"""Seeds and draws of Python's, numpy's and torch's generators: one event each, with the state as input and output."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from foxrun.tracing import generators, host_values, patching, recorder, watching, where

PYTHON_DRAWS = (
    "random", "getrandbits", "randbytes", "randrange", "randint", "choice", "choices", "shuffle", "sample", "uniform",
    "triangular", "betavariate", "binomialvariate", "expovariate", "gammavariate", "gauss", "lognormvariate",
    "normalvariate", "vonmisesvariate", "paretovariate", "weibullvariate",
)  # fmt: skip
NUMPY_OTHER = {"seed", "get_state", "set_state", "spawn", "bit_generator", "get_bit_generator", "set_bit_generator"}


def watch_python(random: ModuleType) -> None:
    """The module's functions, and the methods of every random.Random."""
    inst = random._inst

    def of_instance(args: tuple[Any, ...]) -> tuple[str, Any]:
        return (_python_name(args[0], inst), args[0])

    for name in (*PYTHON_DRAWS, "seed", "setstate"):
        kind = watching.draw if name in PYTHON_DRAWS else watching.seed
        if hasattr(random, name):
            patching.function(random, name, kind(f"random.{name}", lambda args: ("generator.python", inst)))
        of_its_own = kind(f"random.Random.{name}", of_instance)
        patching.method(random.Random, name, _but_the_systems(random, of_its_own, draws=name in PYTHON_DRAWS))
    random.Random.__init__ = _making("random.Random", random.Random.__init__, "python")


def _but_the_systems(random: ModuleType, watched: Any, *, draws: bool) -> Any:
    """SystemRandom, and so secrets, has no state: what it gives is the system's entropy, as os.urandom's is."""

    def around(original: Any) -> Any:
        stateful = watched(original)
        entropy = watching.host("random.SystemRandom")(original) if draws else original

        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            return (entropy if isinstance(self, random.SystemRandom) else stateful)(self, *args, **kwargs)

        return call

    return around


def _python_name(generator: Any, inst: Any) -> str:
    return "generator.python" if generator is inst else generators.known(generator, "python")


def _making(name: str, original: Any, family: str) -> Any:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        active = recorder.active
        if active is None or active.busy or active.ended:
            original(self, *args, **kwargs)
            return
        active.local.depth += 1
        try:
            original(self, *args, **kwargs)
        finally:
            active.local.depth -= 1
        _made(name, self, family, args, kwargs)

    return __init__


def _made(name: str, generator: Any, family: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """A generator has been made in the program: named, and an event where events are recorded."""
    active = recorder.active
    if active is None:
        return
    try:
        frame = where.direct(sys._getframe(2), torch_too=True)
        if frame is None or type(generator).__name__ == "SystemRandom":
            return
        label = generators.known(generator, family)
        if watching.current() is None:
            return
        shown = kwargs or (args[0] if len(args) == 1 else args)
        outs = [(label, generators.state_digits(generator))]
        value = host_values.text(shown) if args or kwargs else "no seed"
        index = active.event("seed", name, outs=outs, where=where.text(frame), value=value)
        generators.torch_drawn(label, index)
    except Exception as error:
        active.trouble(error)


def watch_numpy(numpy_random: ModuleType) -> None:
    """numpy.random's global functions, and Generators and RandomStates by their types' own methods."""
    mtrand = sys.modules["numpy.random.mtrand"]
    inst = mtrand._rand
    for name in dir(numpy_random):
        value = getattr(numpy_random, name)
        if getattr(value, "__self__", None) is not inst or name in ("get_state", "get_bit_generator"):
            continue
        kind = watching.seed if name in NUMPY_OTHER else watching.draw
        around = kind(f"numpy.random.{name}", lambda args: ("generator.numpy", inst))
        patching.function(numpy_random, name, around)
    if not isinstance(numpy_random.seed, patching.Watched):
        patching.function(
            numpy_random, "seed", watching.seed("numpy.random.seed", lambda args: ("generator.numpy", inst))
        )

    def of_instance(args: tuple[Any, ...]) -> tuple[str, Any]:
        return ("generator.numpy" if args[0] is inst else generators.known(args[0], "numpy"), args[0])

    for cls in (numpy_random.Generator, numpy_random.RandomState):
        for name, value in list(cls.__dict__.items()):
            if name.startswith("_") or not callable(value) or name in NUMPY_OTHER - {"seed", "set_state"}:
                continue
            kind = watching.seed if name in NUMPY_OTHER else watching.draw
            patching.method(cls, name, kind(f"numpy.random.{cls.__name__}.{name}", of_instance))
    patching.function(numpy_random, "default_rng", _numpy_making("numpy.random.default_rng"))
    patching.method(numpy_random.RandomState, "__init__", _init_making("numpy.random.RandomState", "numpy", inst))
    patching.method(numpy_random.SeedSequence, "__init__", _sequence_making)


def _numpy_making(name: str) -> Any:
    def around(original: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            generator = original(*args, **kwargs)
            active = recorder.active
            if active is not None and not active.busy and not active.ended:
                _made(name, generator, "numpy", args, kwargs)
            return generator

        return call

    return around


def _init_making(name: str, family: str, inst: Any) -> Any:
    def around(original: Any) -> Any:
        return _making(name, original, family)

    return around


def _sequence_making(original: Any) -> Any:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        active = watching.current()
        if active is None or args or kwargs:
            return
        try:
            frame = where.direct(sys._getframe(), torch_too=True)
            if frame is not None:  # without entropy of its own it takes the machine's
                watching.event(active, "seed", "numpy.random.SeedSequence", self.entropy, where.text(frame))
        except Exception as error:
            active.trouble(error)

    return __init__


def watch_torch(torch: ModuleType) -> None:
    """torch.manual_seed, torch.seed and the methods of torch.Generator."""

    def default(args: tuple[Any, ...]) -> tuple[str, Any]:
        return ("generator.torch", torch.default_generator)

    def of_instance(args: tuple[Any, ...]) -> tuple[str, Any]:
        return (generators.name_of_torch(args[0], args[0].device), args[0])

    for name in ("manual_seed", "seed", "set_rng_state"):
        _plain_function(torch, name, watching.seed(f"torch.{name}", default))
        _plain_function(torch.random, name, watching.seed(f"torch.{name}", default))
    for name in ("manual_seed", "seed", "set_state"):
        patching.method(torch.Generator, name, watching.seed(f"torch.Generator.{name}", of_instance))


def _plain_function(module: Any, name: str, around: Any) -> None:
    """A Python function is replaced by one, so that torch.compile and torch.jit still see a function."""
    import functools

    original = getattr(module, name, None)
    if original is not None:
        setattr(module, name, functools.wraps(original)(around(original)))
