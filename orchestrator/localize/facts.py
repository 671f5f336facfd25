"""What causes are judged by: the origin, what led to it, and what was measured. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.localize.origins import Origin
from orchestrator.localize.result import Replay
from orchestrator.localize.steps import StepsFound
from orchestrator.localize.trace import Event

CLOCK = (
    "time",
    "datetime",
    "perf_counter",
    "monotonic",
    "clock",
    "process_time",
    "localtime",
    "gmtime",
    "now",
    "utcnow",
    "process_time_ns",
    "thread_time",
    "thread_time_ns",
    "perf_counter_ns",
    "monotonic_ns",
    "time_ns",
    "clock_gettime",
    "clock_gettime_ns",
    "stat",
    "getmtime",
    "getctime",
    "getatime",
)
PROCESS = ("getpid", "getppid", "gethostname", "node", "uname", "get_ident", "get_native_id", "uuid1", "getnode")
ENTROPY = ("urandom", "uuid4", "getrandom", "token_bytes", "token_hex", "randbits", "systemrandom", "entropy")
LISTING = ("listdir", "scandir", "glob", "iglob", "rglob", "walk", "iterdir")
STOPWATCH = ("perf_counter", "monotonic", "process_time", "thread_time")  # clocks that measure how long it takes
UNORDERED = ("as_completed", "imap_unordered", "DataLoader.in_order")  # what ordered-completion sets in order
COMPLETION = ("as_completed", "wait", "imap_unordered", "queue", "get", "gather")
# What a program may read of the machine that it runs on.
MACHINE = (
    "cpu_count",
    "getloadavg",
    "sched_getaffinity",
    "times",
    "sysconf",
    "virtual_memory",
    "cpu_percent",
    "getrusage",
)
ADDRESS = ("data_ptr", "ctypes")
MACHINE_FILES = re.compile(r"\b(meminfo|stat|loadavg|cpuinfo|status|vmstat|uptime|memory\.\w+)\b")
HASH, IDENTITY = ("hash", "__hash__"), ("id",)
NEAR_LINES = 4


@dataclass(frozen=True, kw_only=True)
class Lead:
    """A host event of which the twins got different answers before the origin. ``near``: 3 its value is in the seed,
    2 the same line, 1 the same file, 0 anywhere before."""

    kind: str  # clock process entropy listing completion machine hash identity address other
    a: Event
    b: Event
    near: int
    reordered: bool = False

    @property
    def text(self) -> str:
        """As evidence reads it."""
        where = f" at {self.a.where}" if self.a.where else ""
        if self.reordered:
            return f"{self.a.name}{where} gave the same entries in another order"
        return f"{self.a.name}{where} gave {self.a.value or '?'} and {self.b.value or '?'}"


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Everything known when causes are judged. ``measured``: what pairs of twins came to, by name of the difference or
    of the remedy: True when they parted (again, at the same origin), False when they agreed."""

    steps: StepsFound
    origin: Origin | None = None
    leads: tuple[Lead, ...] = ()
    header: Mapping[str, Any] = field(default_factory=dict)
    other_header: Mapping[str, Any] = field(default_factory=dict)
    replay: Replay | None = None
    resumed: bool = False
    unordered: bool = True  # the program may take results in the order in which they are done
    environments: str = ""  # how two commands that are else the same set their environment apart
    two_commands: bool = False  # the second twin was started by a command of its own
    parted_kind: str = "hostile"
    hostile_agreed: int = 0
    narrowed: Mapping[str, bool] = field(default_factory=dict)
    waits: str = "threads"  # what waited in twins that differ in delays alone
    remedied: Mapping[str, bool] = field(default_factory=dict)
    moved: frozenset[str] = frozenset()  # remedies with which a pair parted elsewhere
    threads: int = 1
    in_child: bool = False
    children: int = 0
    duplicates: bool | None = None
    lines: tuple[str, ...] = ()  # source near the origin, in both twins
    code: tuple[str, ...] = ()  # the whole file of a kernel of the program's own, without comments
    set_walks: tuple[str, ...] = ()  # where files near the origin walk through a set, the nearest first
    crashed: str = ""  # how a twin ended whose memory was elsewhere

    @property
    def op(self) -> str:
        """The origin's short name: index_add_."""
        return self.origin.a.short if self.origin is not None else ""

    @property
    def op_is_native(self) -> bool:
        """Whether the origin is a function of a library that the program loads by itself."""
        return self.origin is not None and self.origin.a.name.startswith("ctypes.")

    @property
    def how(self) -> str:
        """How the origin shows."""
        return self.origin.how if self.origin is not None else ""

    @property
    def kind(self) -> str:
        """The origin's kind: op, draw, seed, kernel, host."""
        return self.origin.a.kind if self.origin is not None else ""

    @property
    def cuda(self) -> bool:
        """Whether the program computes on a CUDA device."""
        device = self.header.get("device")  # has a name where a context was made
        return (isinstance(device, dict) and bool(device.get("name"))) or (
            self.origin is not None and "cuda" in self.origin.a.shapes
        )

    def knob(self, name: str) -> Any:
        """A setting of torch in the program, as header.json has it; None where it is not known."""
        knobs = self.header.get("knobs")
        return knobs.get(name) if isinstance(knobs, dict) else None

    def lead(self, *kinds: str, near: int = 0) -> Lead | None:
        """The nearest lead of one of these kinds."""
        return next((lead for lead in self.leads if lead.kind in kinds and lead.near >= near), None)

    @property
    def stopwatch(self) -> Lead | None:
        """A clock that measures durations, where the origin's own line read one twice or more: it hands on how long
        something took."""
        read = [x for x in self.leads if x.kind == "clock" and x.near >= 2 and any(w in x.a.name for w in STOPWATCH)]
        return read[0] if len(read) > 1 else None

    @property
    def place(self) -> str:
        """Where the origin is, for words in it: file, function, module, leaf."""
        event = self.origin.a if self.origin is not None else None
        reader = self.origin.reader if self.origin is not None else None
        parts = [event.where, event.module] if event is not None else []
        parts += [reader.where, reader.module] if reader is not None else []
        return " ".join([*parts, self.steps.leaf, self.steps.component]).lower()


def machines_differ(header: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """In what the machines of two runs differ that decides bits; empty where they do not."""
    one, two = ({**h, **_device(h)} for h in (header, other))
    for key in ("name", "sm_count", "cpu", "cpu_vectors", "cuda", "cudnn", "torch"):
        a, b = one.get(key), two.get(key)
        if a is not None and b is not None and a != b:
            return f"{key} of the machine is {a} and {b}"
    return ""


def _device(header: Mapping[str, Any]) -> Mapping[str, Any]:
    device = header.get("device")
    return device if isinstance(device, dict) else {}


GOES_ON = re.compile(r"resum|restor|restart|checkpoint|ckpt|preempt|continue|reload", re.IGNORECASE)


def goes_on(
    header: Mapping[str, Any], other: Mapping[str, Any], command: Sequence[str] = (), second: Sequence[str] = ()
) -> bool:
    """Whether the second of two runs that were started in different ways goes on from the first.

    It is another command of the same program that does; where only its environment differs, what is said there decides:
    a variable may as well stand for another machine.
    """
    if machines_differ(header, other):
        return False
    if header.get("argv") != other.get("argv"):
        return True
    return any(GOES_ON.search(word) for word in second if word not in command)


def environments(command: Sequence[str], other: Sequence[str] | None) -> str:
    """``TZ=UTC0 and TZ=JST-9`` of two commands that are the same but for variables that ``env`` sets; else ""."""
    if other is None:
        return ""
    sets, rests = [], []
    for words in (list(command), list(other)):
        count = 0
        if words[:1] == ["env"]:
            count = 1
            while count < len(words) and "=" in words[count] and not words[count].startswith("-"):
                count += 1
        sets.append(words[1:count])
        rests.append(words[count:])
    if rests[0] != rests[1] or sets[0] == sets[1]:
        return ""
    apart = [" ".join(w for w in one if w not in two) or "none" for one, two in (sets, sets[::-1])]
    return f"{apart[0]} and {apart[1]}"


def host_kind(name: str) -> str:
    """What a host event takes from outside, by the last word of its name."""
    words = [word for word in re.split(r"[.\s]", name.lower()) if word]
    last = words[-1] if words else ""
    if words[:1] in (["secrets"], ["sqlite"]):
        return "entropy"
    for kind, names in (
        ("entropy", ENTROPY), ("process", PROCESS), ("listing", LISTING), ("completion", COMPLETION), ("clock", CLOCK),
        ("machine", MACHINE), ("hash", HASH), ("identity", IDENTITY),
        ("address", ADDRESS),
    ):  # fmt: skip
        if last in names or (kind in ("clock",) and words[:1] == ["time"] and last != "sleep"):
            return kind
    return "other"


def leads(host: Sequence[tuple[Event, Event]], origin: Origin | None) -> tuple[Lead, ...]:
    """Host events that may have led to the origin, the nearest first."""
    last = origin.a.i if origin is not None else 1 << 62
    found = []
    for a, b in host:
        if a.i >= last or (origin is not None and origin.process != "0" and a.i >= last):
            continue
        found.append(Lead(kind=_kind(a), a=a, b=b, near=_near(a, b, origin), reordered=_same_entries(a, b)))
    return tuple(sorted(found, key=lambda lead: (-lead.near, -lead.a.i)))


def _kind(event: Event) -> str:
    if event.name == "open" and MACHINE_FILES.search(event.value):
        return "machine"
    return host_kind(event.name)


def _near(a: Event, b: Event, origin: Origin | None) -> int:
    if origin is None:
        return 0
    if _explains(a.value, origin.a.value) and _explains(b.value, origin.b.value) and a.value != b.value:
        return 3
    lines = {origin.a.where, origin.reader.where if origin.reader is not None else ""} - {""}
    if a.where in lines or any(_beside(a.where, line) for line in lines):
        return 2
    return 1 if a.where.split(":")[0] in {line.split(":")[0] for line in lines} else 0


def _beside(one: str, other: str) -> bool:
    """Whether two places are a few lines apart in one function."""
    a, b = (re.fullmatch(r"(.*):(\d+) (.+)", where) for where in (one, other))
    if a is None or b is None or (a[1], a[3]) != (b[1], b[3]) or a[3] == "<module>":
        return False
    return abs(int(a[2]) - int(b[2])) <= NEAR_LINES


def _explains(value: str, seed: str) -> bool:
    """Whether a seed is a host value, its whole part, or that modulo a power of two or ten."""
    number, wanted = _number(value), _number(seed)
    if number is None or wanted is None:
        return False
    whole = int(number)
    scaled = [whole, *(int(number * factor) for factor in (1e3, 1e6, 1e9))]
    return wanted in scaled or any(
        wanted == item % modulus
        for item in scaled
        for modulus in (2**16, 2**31, 2**31 - 1, 2**32, 2**32 - 1, 10**6, 10**9)
    )


def _number(text: str) -> float | None:
    found = re.fullmatch(r"\s*\(?([+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*,?\)?\s*", text)
    if found is None:
        return None
    return int(found[1]) if found[1].lstrip("+-").isdigit() else float(found[1])


def _same_entries(a: Event, b: Event) -> bool:
    """Whether two reprs hold the same words in another order."""
    if a.value == b.value:
        return False
    one, other = (Counter(re.findall(r"[^\s,\[\](){}'\"]+", value)) for value in (a.value, b.value))
    if one == other and sum(one.values()) > 1:
        return True
    # The repr is cut, so a longer listing shows other entries at its start; its kind has to do.
    return host_kind(a.name) in ("listing", "completion") and len(a.value) >= 79 and len(a.outs) == len(b.outs)
