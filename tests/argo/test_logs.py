"""Logs: both legs at once, from the beginning, whole, and after the pods are gone."""

from collections.abc import Callable
from typing import Any

import pytest

from orchestrator.engines.argo import ArgoEngine
from orchestrator.engines.argo.nodes import pod_name, pods
from orchestrator.errors import FoxrunError
from tests.argo.small import Proxy, pair

Submit = Callable[[ArgoEngine, dict[str, Any]], str]
COUNT = "i=0; while [ $i -lt 24 ]; do echo line $i; i=$((i+1)); sleep 0.15; done; printf 'no end'"
ODD = "head -c 40000 /dev/zero | tr '\\0' x; echo; echo Error: exit status 9; echo end; exit 9"
PRINTED = [*(f"line {i}" for i in range(24)), "no end"]


def of(lines: list[Any], node: str) -> list[str]:
    return [line.text for line in lines if line.node == node]


def test_followed_from_pending_side_by_side_through_cuts_and_read_after_the_pods_are_gone(
    through_proxy: tuple[ArgoEngine, Proxy], kube: ArgoEngine, server: ArgoEngine, submit: Submit
) -> None:
    engine, between = through_proxy
    name = submit(engine, pair(COUNT))
    other = submit(server, pair(ODD, legs="a"))
    lines, cut = [], 0
    for line in engine.logs(name, follow=True):  # begun while nothing is scheduled yet
        lines.append(line)
        if len(lines) in (10, 25, 40):
            cut += between.cut()
    assert of(lines, "leg-a") == PRINTED
    assert of(lines, "leg-b") == PRINTED
    assert cut >= 3
    first_of_last = min(i for i, line in enumerate(lines) if line.node == lines[-1].node)
    assert first_of_last < len(lines) - len(PRINTED), "the legs were told side by side"

    # Lines longer than the runtime's buffer stay whole, and what Argo's executor adds is left out.
    odd = list(server.logs(other, follow=True, node="leg-a"))
    assert [(line.node, line.text) for line in odd] == [
        ("leg-a", text) for text in ("x" * 40000, "Error: exit status 9", "end")
    ]
    workflow = kube.get(name)
    for node in pods(workflow).values():
        path = f"/api/v1/namespaces/{kube.api.namespace}/pods/{pod_name(workflow, node)}"
        transport = kube.api.transport  # type: ignore[attr-defined]
        assert transport.json("DELETE", path, body={"gracePeriodSeconds": 0})["kind"] in ("Pod", "Status")
    assert [line.text for line in server.logs(name, node="leg-b")] == PRINTED
    with pytest.raises(FoxrunError, match=r"the log of leg-\w, leg-\w is gone"):
        list(kube.logs(name))
