"""Why the twins of a gate parted, in words: what a single difference means, and a guess from the leaf. Pure."""

from __future__ import annotations

import math

from orchestrator.compare.divergence import FILE_STEP
from orchestrator.compare.verdict import Divergence, PartedLeaf, Verdict

UNSET_MEMORY = (
    "memory is read before it is set (the twins fill fresh memory with different bytes): look for empty tensors "
    "that are not written whole"
)
HOSTILE_TWIN_ALONE = (
    "only the hostile twin failed, so it may be what it differs in: the order of sets and listings, or memory that "
    "is read before it is set"
)
BY_ITSELF = (
    "the twins part even when nothing differs that can be set: a generator without a seed (or seeded by the clock), "
    "or an order that threads or atomics decide"
)
BY_HOSTILITY = {
    "hash-seed": "the order of a set of strings, or of hash(): sort before iterating (PYTHONHASHSEED decides it)",
    "clock": "the clock: a seed or a value is taken from the time; take it from --seed",
    "directories": "a path: the output, temporary or cache directory decides a value, or a cache an algorithm",
    "listing-order": "a directory listing taken as it comes: sort it",
    "environment-order": "the order of the environment's variables: sort it",
    "allocator": "addresses or alignment of memory: id() decides an order, or a kernel chooses by alignment",
    "memory": UNSET_MEMORY,
}
SAMPLING = "the sampling of the replay: a generator without a seed, seeded by the clock, or shared"
ACTING = "random draws of acting: a generator without a seed or seeded by the clock, or the order of a set or a listing"
DATA = "the data or its order: a listing taken as it comes, the order of a set of strings, or a start by the clock"
START = (
    "the start: weights drawn from a generator without a seed or seeded by the clock, or created in the order of a set"
)
REDUCTION = "the order of a sum: atomics, a thread count, or an algorithm chosen anew in each process"
OPTIMISER = "the optimiser: parameters iterated in the order of a set, or a state that was not restored"
FORWARD = "the forward pass: an algorithm chosen anew in each process, split-K, or an input that differs"
FILES = "what a run writes does not depend on its parameters alone: one twin wrote a file that the other did not"
CARRIED = "state that crosses steps: it is read before it is set, or written in an order that is not fixed"

# Poisoned float32 is -3e-13 in one twin and 1.5e13 in the other; honest differences of one step are far smaller.
_POISONED_RATIO = 1e6

_BY_KIND = {"weight": REDUCTION, "moment": OPTIMISER, "gradient": REDUCTION, "activation": FORWARD, "state": CARRIED}
_BY_PREFIX = (
    ("replay_sample", SAMPLING),
    ("action_rng", ACTING),
    ("act_", ACTING),
    ("env_", DATA),
    ("data", DATA),
    ("reward", DATA),
)


def likely_cause(verdict: Verdict) -> str:
    """One clause that says what to look for first, from the leaf that parts first: a guess."""
    first = verdict.first_divergence
    if first is not None and is_file_of_one(first):
        return FILES
    if any(_poisoned(leaf) for leaf in verdict.parted):
        return UNSET_MEMORY
    if not verdict.parted:
        return CARRIED
    leaf = verdict.parted[0]
    for prefix, cause in _BY_PREFIX:
        if leaf.name.startswith(prefix) or leaf.component == prefix:
            return cause
    if leaf.kind == "weight" and first is not None and first.row == 0:
        return START
    return _BY_KIND.get(leaf.kind, FORWARD)


def is_file_of_one(first: Divergence) -> bool:
    """Whether a file that only one twin wrote is what parts first."""
    return first.step == FILE_STEP and "missing" in (first.run_a, first.run_b)


def _poisoned(leaf: PartedLeaf) -> bool:
    a, b = leaf.checksum_a, leaf.checksum_b
    if a is None or b is None:
        return False
    if math.isfinite(a) != math.isfinite(b):
        return True
    small, large = sorted((abs(a), abs(b)))
    return large > 1e6 and large > _POISONED_RATIO * small
