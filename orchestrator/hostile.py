"""What makes the second twin of a gate hostile: the environments of both twins, different in all that must not matter.

Pure. Each hostility can be left out by name, so that one can be tried alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

HOSTILITIES: Mapping[str, str] = {
    "hash-seed": "the order of sets of strings (PYTHONHASHSEED)",
    "clock": "the time of the start: later, and a clock that is ahead",
    "directories": "the directories for output, temporary files and caches",
    "listing-order": "the order in which directories are listed",
    "environment-order": "the order of the environment",
    "allocator": "addresses and alignment of memory (malloc's thresholds)",
    "memory": "the bytes that fresh memory holds (MALLOC_PERTURB_, FOXRUN_POISON)",
}

# Alone, as alternating bits: read as float32, one fill is -3e-13 and the other 1.5e13, so that one of the two is seen.
# glibc fills with the complement of the byte it is given.
_PERTURB = {"twin1": 0x55, "twin2": 0xAA}
_POISON = {"twin1": 0xAA, "twin2": 0x55}
_HASH_SEED = {"twin1": "1", "twin2": "20021"}

# More than a minute, so that clocks read in seconds and in minutes differ whatever the start-up took; less than the
# 15 minutes that signed requests to S3 tolerate.
CLOCK_OFFSET_S = 97
# Clocks that are not read through Python's time module see the real delay: whole seconds differ after 1.1 s.
START_DELAY_S = 1.1

SITE = Path(__file__).parent / "hostile_site"


def twin_environment(
    twin: str, base: Mapping[str, str], *, scratch: Path, hostilities: Collection[str] = tuple(HOSTILITIES)
) -> dict[str, str]:
    """The environment of ``twin1`` or ``twin2``, in the order in which the process shall see it.

    Args:
        twin: ``twin1`` or ``twin2``.
        base: the environment of the gate itself.
        scratch: a directory of this twin alone; ``tmp`` and ``cache`` are meant to be in it.
        hostilities: which of HOSTILITIES the twins differ in; in the others, twin2 is as twin1.
    """
    env = dict(base)
    for name, values in _both(hostilities).items():
        env[name] = values[twin]
    env["TMPDIR"] = str(scratch / "tmp")
    env["PYTHONPATH"] = ":".join([str(SITE), *filter(None, [base.get("PYTHONPATH", "")])])
    env["GLIBC_TUNABLES"] = _tunables(base.get("GLIBC_TUNABLES", ""))
    if twin == "twin2":
        if "clock" in hostilities:
            env["FOXRUN_CLOCK_OFFSET_S"] = str(CLOCK_OFFSET_S)
        if "directories" in hostilities:
            # A choice that the first twin's cache would hand on (autotuned blocks, say) is made anew here.
            env["XDG_CACHE_HOME"] = str(scratch / "cache")
            env["TRITON_CACHE_DIR"] = str(scratch / "cache" / "triton")
            env["TORCHINDUCTOR_CACHE_DIR"] = str(scratch / "cache" / "inductor")
        if "allocator" in hostilities:
            # Large blocks come from the heap, at other alignments than the first twin's pages of their own.
            env["MALLOC_MMAP_THRESHOLD_"] = str(32 * 1024 * 1024)
            env["MALLOC_TRIM_THRESHOLD_"] = str(1024 * 1024 * 1024)
            env["MALLOC_TOP_PAD_"] = str(3 * 1024 * 1024 + 4096 + 16)
            env["MALLOC_ARENA_MAX"] = "1"
    env["FOXRUN_LEG"] = twin
    if twin == "twin2" and "environment-order" in hostilities:
        return dict(reversed(env.items()))
    return env


def _both(hostilities: Collection[str]) -> dict[str, dict[str, str]]:
    values = {
        "PYTHONHASHSEED": ("hash-seed", _HASH_SEED),
        "FOXRUN_LISTING_ORDER": ("listing-order", {"twin1": "ascending", "twin2": "descending"}),
        "MALLOC_PERTURB_": ("memory", {twin: str(byte) for twin, byte in _PERTURB.items()}),
        "FOXRUN_POISON": ("memory", {twin: str(byte) for twin, byte in _POISON.items()}),
    }
    return {
        name: both if hostility in hostilities else {"twin1": both["twin1"], "twin2": both["twin1"]}
        for name, (hostility, both) in values.items()
    }


def _tunables(given: str) -> str:
    """glibc's thread cache hands out small blocks unfilled; without it, every fresh byte is poisoned."""
    kept = [item for item in given.split(":") if item and not item.startswith("glibc.malloc.tcache_count=")]
    return ":".join([*kept, "glibc.malloc.tcache_count=0"])
