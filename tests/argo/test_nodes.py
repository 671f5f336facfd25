"""Node status as Argo stores it, and the import of a part of the kubernetes package."""

import base64
import gzip
import json
import subprocess
import sys

import pytest

from orchestrator.engines.argo.nodes import pod_name, unpacked
from orchestrator.engines.argo.placement import fits, is_queueing, lack, quantity
from orchestrator.engines.argo.watch import whole
from orchestrator.errors import InfrastructureError

NODES = {"x-1": {"id": "x-1", "type": "Pod", "phase": "Running"}}


def test_a_packed_status_is_unpacked() -> None:
    packed = base64.b64encode(gzip.compress(json.dumps(NODES).encode())).decode()
    workflow = {"metadata": {"name": "x", "managedFields": [1]}, "status": {"compressedNodes": packed}}
    assert unpacked(workflow) == {"metadata": {"name": "x"}, "status": {"nodes": NODES}}


# Without a time in it: every worker of the tests must see the same names.
CUT = base64.b64encode(gzip.compress(b"{" * 9, mtime=0)[:-9]).decode()


@pytest.mark.parametrize("packed", ["%%%", "aGFsbG8=", CUT])
def test_a_packed_status_that_is_broken_is_said(packed: str) -> None:
    with pytest.raises(InfrastructureError, match="the packed node status of x cannot be read"):
        unpacked({"metadata": {"name": "x"}, "status": {"compressedNodes": packed}})


def test_an_offloaded_status_needs_argo_server() -> None:
    workflow = {"metadata": {"name": "x"}, "status": {"offloadNodeStatusVersion": "fnv:1"}}
    with pytest.raises(InfrastructureError, match="which only argo-server reads"):
        whole(workflow, None)


def test_pod_names_are_argos() -> None:
    # Of a real workflow on Argo 4.0.5.
    workflow = {"metadata": {"name": "test-argo-238bd9ef"}}
    node = {"id": "test-argo-238bd9ef-2198725637", "name": "test-argo-238bd9ef.leg-a", "templateName": "leg"}
    assert pod_name(workflow, node) == "test-argo-238bd9ef-leg-2198725637"
    old = {"metadata": {"name": "w", "annotations": {"workflows.argoproj.io/pod-name-format": "v1"}}}
    assert pod_name(old, node) == "test-argo-238bd9ef-2198725637"


def test_a_full_node_is_no_missing_node() -> None:
    full = "Unschedulable: 0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match Pod's node affinity."
    none = "Unschedulable: 0/1 nodes are available: 1 node(s) didn't match. preemption: 1 Insufficient cpu"
    assert (is_queueing({"message": full}), is_queueing({"message": none})) == (True, False)


def test_what_fits() -> None:
    nodes = [{"status": {"allocatable": {"cpu": "4", "memory": "16Gi"}}}, {"status": {"allocatable": {"cpu": "64"}}}]

    def pod(**requests: str) -> dict[str, object]:
        return {"spec": {"containers": [{"resources": {"requests": requests}}, {"resources": {}}]}}

    assert fits(pod(cpu="3900m", memory="16000Mi"), nodes)
    assert not fits(pod(cpu="5", memory="1Gi"), nodes), "no single node has both"
    assert lack(pod(cpu="5", memory="1Gi"), nodes) == "no single node has cpu 5, memory 1Gi"
    assert lack(pod(cpu="65", memory="1Gi"), nodes) == "it asks for cpu 65 and the largest node has 64"
    assert lack(pod(**{"nvidia.com/gpu": "1"}), nodes) == "it asks for nvidia.com/gpu 1 and the largest node has 0"
    assert [quantity(text) for text in ("500m", "2", "1Gi", "1e3", "2k")] == [0.5, 2.0, 2.0**30, 1000.0, 2000.0]


def test_whoever_imports_kubernetes_after_us_gets_it_whole_and_we_import_little() -> None:
    script = (
        "import sys\n"
        "from orchestrator.engines.argo.credentials import _kubernetes\n"
        "parts = _kubernetes()\n"
        "assert parts.configuration().auth_settings() == {}\n"
        "assert not any(name.startswith('kubernetes') for name in sys.modules)\n"
        "from kubernetes import client\n"
        "assert client.CustomObjectsApi and client.ApiClient is not object\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
