"""Which leg of a drifted pair is the odd one out, by a third leg that is compared with both. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from orchestrator.compare import verdict as v
from orchestrator.compare.verdict import TieBreak, Verdict

_AGREE = (v.IDENTICAL, v.WITHIN_TOLERANCE)


def with_tie_break(pair: Verdict, with_a: Verdict, with_b: Verdict) -> Verdict:
    """The pair's verdict, which stays what it is, with what the third leg says about it.

    Args:
        pair: of A and B.
        with_a: of A and C.
        with_b: of B and C.
    """
    broken = tie_break(with_a, with_b)
    return dataclasses.replace(pair, tie_break=broken, message=f"{pair.message}; tie-break: {broken.message}")


def tie_break(with_a: Verdict, with_b: Verdict) -> TieBreak:
    """Whom the third leg agrees with: the other one is the odd one out."""
    third = with_a.runs[1] if len(with_a.runs) > 1 else v.RunSummary(label="C", leg="c")
    odd, message = _odd(with_a, with_b)
    if odd != "unknown" and (place := _place(with_a, with_b)):
        message += f"; {place}"
    return TieBreak(
        odd=odd,
        message=message,
        with_a=with_a.verdict,
        with_b=with_b.verdict,
        first_with_a=with_a.first_divergence.line if with_a.first_divergence else "",
        first_with_b=with_b.first_divergence.line if with_b.first_divergence else "",
        run=third,
    )


def _odd(with_a: Verdict, with_b: Verdict) -> tuple[str, str]:
    for letter, other in (("A", with_a), ("B", with_b)):
        if other.verdict not in (*_AGREE, v.DRIFT):
            return "unknown", f"none, since A and B cannot be told apart by C ({letter} | C: {other.message})"
    a_agrees, b_agrees = (side.verdict in _AGREE for side in (with_a, with_b))
    if a_agrees and b_agrees:
        return "none", "C lies within the tolerance of both A and B"
    if not a_agrees and not b_agrees:
        return "all", "all three differ: C agrees with neither A nor B"
    odd, agreed, verdict = ("B", "A", with_a) if a_agrees else ("A", "B", with_b)
    how = "every compared bit" if verdict.verdict == v.IDENTICAL else "tolerance"
    return odd.lower(), f"{odd} is the odd one out: C agrees with {agreed} in {how}"


def _place(with_a: Verdict, with_b: Verdict) -> str:
    """Whether C ran on a GPU of its own; empty where no GPU is known."""
    gpus = [_gpu(run.manifest) for run in (*with_a.runs[:2], *with_b.runs[:1])]
    if len(gpus) < 3 or not all(gpus):
        return ""
    a, c, b = gpus
    same = [letter for letter, gpu in (("A", a), ("B", b)) if gpu == c]
    if same:
        return f"C ran on the very GPU of {' and '.join(same)} ({c}), so a fault of that GPU is not excluded"
    return f"C ran on another GPU ({c})"


def _gpu(manifest: Mapping[str, Any]) -> str:
    environment = manifest.get("environment")
    return str(environment.get("gpu_uuid") or "") if isinstance(environment, Mapping) else ""
