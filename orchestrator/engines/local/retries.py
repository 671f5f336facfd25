"""Whether a failed attempt is followed by another: `retryStrategy`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.engines.local.expression import RETRY, parse
from orchestrator.engines.local.nodes import Node
from orchestrator.engines.local.values import duration_s, timestamp

POLICIES = ("Always", "OnFailure", "OnError", "OnTransientError")


@dataclass(frozen=True)
class Decision:
    """Another attempt at once (`again`), at a later time (`wait_until`, `message`), or none (`message` says why)."""

    again: bool = False
    wait_until: float | None = None
    message: str = ""


def last_retry(attempts: Sequence[Node]) -> dict[str, str]:
    """Return the variables that tell an attempt, or the expression, how the one before ended."""
    if not attempts:
        return {"lastRetry.exitCode": "0", "lastRetry.status": "", "lastRetry.duration": "0", "lastRetry.message": ""}
    last = attempts[-1]
    duration = timestamp(last["finishedAt"]) - timestamp(last["startedAt"])
    return {
        "lastRetry.exitCode": last.get("outputs", {}).get("exitCode", "-1"),
        "lastRetry.status": last["phase"],
        "lastRetry.duration": f"{duration:.6f}",
        "lastRetry.message": last.get("message", ""),
    }


def decide(strategy: Mapping[str, Any], attempts: Sequence[Node], now_s: float) -> Decision:
    """Decide after the last attempt failed: policy, limit, expression, and then how long to wait.

    Argo waits first, and only then finds that a failure is none to retry; the outcome is the same, later.
    Raises ExpressionError or ValueError for a strategy that is wrong.
    """
    last = attempts[-1]
    limit = strategy.get("limit")
    if not _policy_allows(strategy, last):
        return Decision(message=last.get("message", ""))
    if limit is not None and len(attempts) > int(limit):
        return Decision(message="No more retries left")
    expression = strategy.get("expression")
    if expression:
        names = {"retries": str(len(attempts) - 1), **last_retry(attempts)}
        if not parse(expression, RETRY).evaluate(names):
            return Decision(message="retryStrategy.expression evaluated to false")
    if strategy.get("backoff"):
        return _backoff(strategy["backoff"], attempts, now_s)
    return Decision(again=True)


def _policy_allows(strategy: Mapping[str, Any], last: Node) -> bool:
    # Argo: without a policy an expression decides alone, and without either only failures are tried again.
    policy = strategy.get("retryPolicy") or ("Always" if strategy.get("expression") else "OnFailure")
    if policy not in POLICIES:
        raise ValueError(f"{policy} is not a valid RetryPolicy")
    if policy == "Always":
        return True
    # What is transient here is what befell the engine, not the program: such nodes are errors.
    return bool(last["phase"] == ("Failed" if policy == "OnFailure" else "Error"))


def _backoff(backoff: Mapping[str, Any], attempts: Sequence[Node], now_s: float) -> Decision:
    give_up_at = float("inf")
    if backoff.get("maxDuration"):
        give_up_at = timestamp(attempts[0]["startedAt"]) + duration_s(backoff["maxDuration"])
        if now_s > give_up_at:
            return Decision(message="Max duration limit exceeded")
    if not backoff.get("duration"):
        raise ValueError("no base duration specified for retryStrategy")
    wait_s = duration_s(backoff["duration"])
    factor = int(backoff.get("factor") or 0)
    if factor > 0:
        wait_s *= float(factor) ** min(len(attempts) - 1, 64)
    if backoff.get("cap"):
        wait_s = min(wait_s, duration_s(backoff["cap"]))
    wait_until = timestamp(attempts[-1]["finishedAt"]) + wait_s
    if wait_until > give_up_at:
        return Decision(message="Backoff would exceed max duration limit")
    if now_s < wait_until:
        return Decision(wait_until=wait_until, message=f"Backoff for {wait_s:g} seconds")
    return Decision(again=True)
