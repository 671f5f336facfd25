"""What a shared library asks the system for, read from its file: entropy, clocks, threads.

A native function cannot be looked into; the names that its library imports say what may make it differ.
"""

from __future__ import annotations

from pathlib import Path

from foxrun.tracing.words import ASKS

MOST_BYTES = 32 << 20
ENTROPY = (
    "getentropy", "getrandom", "arc4random", "arc4random_buf", "arc4random_uniform", "/dev/urandom", "/dev/random",
)  # fmt: skip
CLOCK = ("time", "clock", "clock_gettime", "gettimeofday", "timespec_get", "ftime")
THREADS = (
    "pthread_create", "thrd_create", "GOMP_parallel", "GOMP_loop_start", "__kmpc_fork_call", "fork",
)  # fmt: skip
# C++ mangles names: std::random_device, std::chrono's now(), std::thread.
PARTS = {
    "entropy": (b"random_device",),
    "a clock": (b"system_clock3now", b"steady_clock3now"),
    "threads": (b"St6thread",),
}
NOTHING = "nothing of the kind"


def asks(path: str) -> str:
    """``its library asks the system for entropy, threads``, in this order; "" where its file cannot be read."""
    try:
        file = Path(path)
        if not path or file.stat().st_size > MOST_BYTES:
            return ""
        data = file.read_bytes()
    except (OSError, ValueError):
        return ""
    found = []
    for what, names in (("entropy", ENTROPY), ("a clock", CLOCK), ("threads", THREADS)):
        listed = any(b"\0" + name.encode() + b"\0" in data for name in names)
        if listed or any(part in data for part in PARTS[what]):
            found.append(what)
    return f"{ASKS} {', '.join(found) or NOTHING}"
