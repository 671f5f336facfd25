"""What each account may do, by the API server's own answers to its token."""

from __future__ import annotations

import os
import shutil
from typing import Any

import pytest

from workflows.regression_pair import regression_pair
from workflows.render import to_dict

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="no cluster: KUBECONFIG is not set"),
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on PATH"),
]
if os.environ.get("KUBECONFIG"):
    from tests.infra.namespace import Account
    from tests.workflows.cluster import BUSYBOX, unique

ARGO = "/apis/argoproj.io/v1alpha1/namespaces/{ns}"
CORE = "/api/v1/namespaces/{ns}"
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}"
MERGE = "application/merge-patch+json"
FORBIDDEN = 403

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"},
       "spec": {"containers": [{"name": "x", "image": "localhost/busybox:1", "command": ["true"]}]}}  # fmt: skip
TOKEN = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
BINDING = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "x"},
           "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
           "subjects": [{"kind": "ServiceAccount", "name": "foxrun"}]}  # fmt: skip
TEMPLATE = {"apiVersion": "argoproj.io/v1alpha1", "kind": "WorkflowTemplate", "metadata": {"name": "x"}, "spec": {}}
RESULT = {"apiVersion": "argoproj.io/v1alpha1", "kind": "WorkflowTaskResult", "metadata": {"name": "node-1"},
          "phase": "Running", "progress": "1/2"}  # fmt: skip

ACCOUNTS = ("foxrun", "foxrun-alerts", "foxrun-submitter", "foxrun-viewer", "foxrun-github", "foxrun-gitlab")
# What nobody of them may do; each tried for each.
NOBODY = [
    ("GET", CORE + "/secrets", None),
    ("GET", CORE + "/secrets/foxrun-s3", None),
    ("POST", CORE + "/pods", POD),
    ("DELETE", CORE + "/pods/x", None),
    ("POST", CORE + "/pods/x/exec?command=id", None),
    ("POST", CORE + "/serviceaccounts/foxrun-submitter/token", TOKEN),
    ("POST", ROLES + "/rolebindings", BINDING),
    ("PATCH", CORE + "/configmaps/artifact-repositories", {"data": {"foxrun": ""}}),
    ("POST", ARGO + "/workflowtemplates", TEMPLATE),
    ("PATCH", ARGO + "/workflowtemplates/train", {"spec": {"entrypoint": "other"}}),
    ("DELETE", ARGO + "/workflowtemplates/train", None),
    ("DELETE", ARGO + "/workflows", None),
    ("DELETE", ARGO + "/workflowtaskresults/node-1", None),
    ("GET", "/apis/argoproj.io/v1alpha1/workflows", None),
    ("GET", "/apis/argoproj.io/v1alpha1/namespaces/kube-system/workflows", None),
    ("GET", "/api/v1/nodes", None),
    ("GET", "/api/v1/namespaces", None),
]
READING = [
    ARGO + "/workflows",
    ARGO + "/workflowtemplates",
    ARGO + "/workflowtemplates/regression-pair",
    ARGO + "/cronworkflows",
    CORE + "/pods",
    CORE + "/events",
]


def _workflow() -> dict[str, Any]:
    # Suspended: these tests are about what may be asked, not about what runs.
    workflow = to_dict(regression_pair(unique(BUSYBOX)))
    workflow["spec"]["suspend"] = True
    return workflow


@pytest.mark.parametrize("name", ACCOUNTS)
def test_what_nobody_may(namespace: str, name: str) -> None:
    account = Account(namespace, name)
    answers = {}
    for method, path, body in NOBODY:
        kind = MERGE if method == "PATCH" else "application/json"
        answers[f"{method} {path}"] = account.ask(method, path, body, kind)[0]
    assert answers == dict.fromkeys(answers, FORBIDDEN)


def test_a_viewer_sees_everything_and_submits_nothing(namespace: str) -> None:
    submitter, viewer = Account(namespace, "foxrun-submitter"), Account(namespace, "foxrun-viewer")
    status, made = submitter.ask("POST", ARGO + "/workflows", _workflow())
    assert status == 201, made
    path = f"{ARGO}/workflows/{made['metadata']['name']}"
    assert {p: viewer.ask("GET", p)[0] for p in [*READING, path]} == dict.fromkeys([*READING, path], 200)
    status, answer = viewer.ask("POST", ARGO + "/workflows", _workflow())
    assert (status, answer["reason"]) == (FORBIDDEN, "Forbidden")
    assert answer["message"].startswith(
        f'workflows.argoproj.io is forbidden: User "system:serviceaccount:{namespace}:foxrun-viewer" cannot create'
        ' resource "workflows" in API group "argoproj.io"'
    )
    assert viewer.ask("POST", ARGO + "/workflows?dryRun=All", _workflow())[0] == FORBIDDEN
    assert viewer.ask("PATCH", path, {"spec": {"shutdown": "Stop"}}, MERGE)[0] == FORBIDDEN
    assert viewer.ask("PUT", path, made)[0] == FORBIDDEN
    assert viewer.ask("DELETE", path)[0] == FORBIDDEN
    assert viewer.ask("GET", path)[1]["spec"].get("shutdown") is None
    assert submitter.ask("DELETE", path)[0] == 200


def test_a_submitter_submits_stops_labels_and_deletes(namespace: str) -> None:
    account = Account(namespace, "foxrun-submitter")
    assert {p: account.ask("GET", p)[0] for p in READING} == dict.fromkeys(READING, 200)
    assert account.ask("POST", ARGO + "/workflows?dryRun=All", _workflow())[0] == 201
    status, made = account.ask("POST", ARGO + "/workflows", _workflow())
    assert status == 201, made
    path = f"{ARGO}/workflows/{made['metadata']['name']}"
    status, changed = account.ask("PATCH", path, {"spec": {"shutdown": "Stop"}}, MERGE)
    assert (status, changed["spec"]["shutdown"]) == (200, "Stop")
    labels = {"metadata": {"labels": {"foxrun.dev/verdict": "identical"}}}
    assert account.ask("PATCH", path, labels, MERGE)[0] == 200
    selector = f"{ARGO}/workflows?labelSelector=foxrun.dev%2Fverdict%3Didentical"
    names = [w["metadata"]["name"] for w in account.ask("GET", selector)[1]["items"]]
    assert names == [made["metadata"]["name"]]
    assert account.ask("GET", CORE + "/pods/none/log")[0] == 404, "may, if there were such a pod"
    assert account.ask("DELETE", path)[0] == 200


def test_the_executor_reports_and_does_nothing_else(namespace: str) -> None:
    account = Account(namespace, "foxrun")
    assert account.ask("POST", ARGO + "/workflowtaskresults", RESULT)[0] == 201
    path = ARGO + "/workflowtaskresults/node-1"
    assert account.ask("PATCH", path, {"progress": "2/2"}, MERGE)[0] == 200
    for method, refused, body in [
        ("GET", path, None),
        ("GET", ARGO + "/workflowtaskresults", None),
        ("PUT", path, RESULT),
        *(("GET", reading, None) for reading in READING),
        ("GET", CORE + "/configmaps", None),
        ("GET", CORE + "/pods/x", None),
        ("GET", CORE + "/pods/x/log", None),
        ("POST", ARGO + "/workflows", _workflow()),
        ("PATCH", ARGO + "/workflows/x", {"spec": {"shutdown": "Stop"}}),
        ("PATCH", CORE + "/pods/x", {"metadata": {"annotations": {"a": "b"}}}),
    ]:
        kind = MERGE if method == "PATCH" else "application/json"
        assert account.ask(method, refused, body, kind)[0] == FORBIDDEN, f"{method} {refused}"


@pytest.mark.parametrize("name", ["foxrun-github", "foxrun-gitlab"])
def test_a_webhook_starts_a_workflow_and_sees_nothing_of_it(namespace: str, name: str) -> None:
    account = Account(namespace, name)
    status, listed = account.ask("GET", ARGO + "/workfloweventbindings")
    assert (status, len(listed["items"])) == (200, 4)
    assert account.ask("GET", ARGO + "/workflowtemplates/ci-gate")[0] == 200
    status, made = account.ask("POST", ARGO + "/workflows", _workflow())
    assert status == 201, made
    path = f"{ARGO}/workflows/{made['metadata']['name']}"
    for method, refused, body in [
        ("GET", path, None),
        ("GET", path + "/log", None),
        ("DELETE", path, None),
        ("PATCH", path, {"spec": {"shutdown": "Stop"}}),
        *(("GET", reading, None) for reading in READING),
        ("GET", ARGO + "/workflowtemplates/train", None),
        ("GET", ARGO + "/workfloweventbindings/ci-gate-github-push", None),
        ("PATCH", ARGO + "/workfloweventbindings/ci-gate-github-push", {"spec": {}}),
        ("GET", CORE + "/secrets/argo-workflows-webhook-clients", None),
        ("POST", ARGO + "/workflowtaskresults", RESULT),
    ]:
        kind = MERGE if method == "PATCH" else "application/json"
        assert account.ask(method, refused, body, kind)[0] == FORBIDDEN, f"{method} {refused}"
    assert Account(namespace, "foxrun-submitter").ask("DELETE", path)[0] == 200


def test_the_rules_of_each_account_are_these_and_no_others(namespace: str) -> None:
    reading = ["get", "list", "watch"]
    seen = {
        ("", "pods"): reading,
        ("", "pods/log"): ["get"],
        ("", "events"): reading,
        ("", "configmaps"): ["get"],
        ("argoproj.io", "workflowtemplates"): reading,
        ("argoproj.io", "cronworkflows"): reading,
    }
    workflows = ("argoproj.io", "workflows")
    of_pods = {("argoproj.io", "workflowtaskresults"): ["create", "patch"]}
    assert _rules(namespace, "foxrun") == of_pods
    assert _rules(namespace, "foxrun-alerts") == {**of_pods, ("", "configmaps"): ["get", "update"]}
    assert _rules(namespace, "foxrun-viewer") == {**seen, workflows: reading}
    every = ["create", "delete", "get", "list", "patch", "update", "watch"]
    assert _rules(namespace, "foxrun-submitter") == {**seen, workflows: every}
    for name in ("foxrun-github", "foxrun-gitlab"):
        assert _rules(namespace, name) == {
            ("argoproj.io", "workfloweventbindings"): ["list"],
            ("argoproj.io", "workflowtemplates"): ["get"],
            workflows: ["create"],
        }


def _rules(namespace: str, name: str) -> dict[tuple[str, str], list[str]]:
    """{(group, resource): verbs} of an account, beyond what every account has."""
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
              "spec": {"namespace": namespace}}  # fmt: skip
    found: dict[tuple[str, str], list[str]] = {}
    for who in (name, "default"):
        status, answer = Account(namespace, who).ask(
            "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", review
        )
        assert (status, answer["status"]["incomplete"]) == (201, False)
        for rule in answer["status"]["resourceRules"]:
            assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    if who == "default":
                        found.pop((group, resource), None)
                    else:
                        found[group, resource] = sorted(rule["verbs"])
    return found
