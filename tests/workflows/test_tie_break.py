"""A tie-break on a cluster: a third leg that avoids the nodes of the others, only when compare said drift."""

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from workflows.regression_pair import regression_pair
from workflows.render import to_dict

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="no cluster: KUBECONFIG is not set"),
]
if os.environ.get("KUBECONFIG"):
    from kubernetes import client

    from tests.workflows.cluster import BUSYBOX, Cluster, as_busybox, nodes, unique

# In place of `foxrun compare`: says what it is told to, and prints what it is called with.
JUDGE = r"""
echo "CALLED $*"; word=%s
while [ $# -gt 0 ]; do
  case "$1" in
    --report|--verdict) echo "$word" > "$2";;
    --write) printf %%s "$word" > "${2#*=}";;
  esac
  shift
done
[ $word = identical ] || exit 3
"""


@pytest.fixture(scope="module")
def cluster() -> "Cluster":
    return Cluster()


@pytest.fixture(scope="module")
def ended(cluster: "Cluster") -> Iterator[dict[str, dict[str, Any]]]:
    """One workflow for each word of compare, side by side."""
    made = {word: cluster.create(judged(word)) for word in ("drift", "incomplete", "identical")}
    yield {word: cluster.wait(workflow["metadata"]["name"], 400) for word, workflow in made.items()}
    for workflow in made.values():
        cluster.delete(workflow)


def judged(word: str) -> dict[str, Any]:
    workflow = as_busybox(to_dict(regression_pair(replace(unique(BUSYBOX), gate=False, tie_break=True))))
    for template in workflow["spec"]["templates"]:
        if template["name"] in ("compare", "tie-break"):
            template["container"]["command"][2] = (JUDGE % word).replace("$", "$$")
    workflow["spec"]["podGC"] = {"strategy": "OnWorkflowSuccess"}  # to look at the pods
    return workflow


@pytest.mark.parametrize(
    ("word", "phases", "phase"),
    [
        ("drift", ("Failed", "Succeeded", "Failed"), "Failed"),
        ("incomplete", ("Failed", "Skipped", "Omitted"), "Failed"),
        ("identical", ("Succeeded", "Omitted", "Omitted"), "Succeeded"),
    ],
)
def test_the_third_leg_runs_on_drift_alone(
    ended: dict[str, dict[str, Any]], word: str, phases: tuple[str, ...], phase: str
) -> None:
    by_name = nodes(ended[word])
    assert tuple(by_name[name]["phase"] for name in ("compare", "leg-c", "tie-break")) == phases
    assert ended[word]["status"]["phase"] == phase


def test_the_third_leg_avoids_the_nodes_of_the_others(ended: dict[str, dict[str, Any]], cluster: "Cluster") -> None:
    workflow = ended["drift"]
    by_name = nodes(workflow)
    judge = by_name["tie-break(0)"]
    assert judge["outputs"]["exitCode"] == "3"
    called = next(line for line in cluster.log(judge).splitlines() if line.startswith("CALLED "))
    assert "CALLED /foxrun/in/a /foxrun/in/b --third /foxrun/in/c --status-c Succeeded " in called.replace(
        "compare ", ""
    )
    places = {by_name[f"leg-{leg}(0)"]["hostNodeName"] for leg in "ab"}
    pods = client.CoreV1Api().list_namespaced_pod(
        cluster.namespace, label_selector=f"workflows.argoproj.io/workflow={workflow['metadata']['name']}"
    )
    third = next(
        pod for pod in pods.items if pod.metadata.annotations["workflows.argoproj.io/node-name"].endswith("leg-c(0)")
    )
    (preferred,) = third.spec.affinity.node_affinity.preferred_during_scheduling_ignored_during_execution
    fields = preferred.preference.match_fields
    assert {(field.key, field.operator) for field in fields} == {("metadata.name", "NotIn")}
    assert {value for field in fields for value in field.values} == places
