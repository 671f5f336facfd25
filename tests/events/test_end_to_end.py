"""From a push to a verdict with no human, in the image; and hostile names in pods that run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.events import payloads
from tests.events.deliveries import GITHUB, GITLAB, LONG, Delivery
from tests.events.test_page import block
from tests.image import images
from workflows.names import label_value

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="no cluster: KUBECONFIG is not set"),
    pytest.mark.skipif(not os.environ.get("ARGO_SERVER"), reason="no argo-server: ARGO_SERVER is not set"),
    pytest.mark.skipif(os.environ.get("ARGO_SECURE") != "false", reason="ARGO_SERVER is asked over plain HTTP alone"),
    pytest.mark.skipif(not os.environ.get("FOXRUN_S3_POD_ENDPOINT"), reason="no S3 server for pods"),
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on PATH"),
]
if TYPE_CHECKING:
    from tests.events.server import Endpoint
if os.environ.get("KUBECONFIG") and os.environ.get("FOXRUN_S3_POD_ENDPOINT"):
    from tests.cluster.test_submit import git_server
    from tests.events.server import Endpoint, name_of
    from tests.infra.namespace import namespace
    from tests.workflows.cluster import LEG, Cluster, as_busybox, nodes

DEADLINE_S = 1200
ROOT = Path(__file__).parents[2]
SMALLER = {"steps": "6", "eval-steps": "3", "parameters": '{"envs":"8","width":"32","window":"16"}'}
HOSTILE = ("ml-alpha-$(touch x)`id`;$(FOXRUN_SHA)$$'", 'ml-alpha-{{workflow.name}}\n"x"', "ml-alpha-größe-🦊", LONG)


@contextmanager
def endpoint(scratch: Path, change: Callable[[dict[str, Any]], None]) -> Iterator[Endpoint]:
    """The webhooks of a namespace whose ci-gate ``change`` has made small."""

    def apply(thing: dict[str, Any]) -> None:
        if thing["kind"] == "WorkflowTemplate":
            change(thing)

    with namespace(scratch, change=apply, components=("webhooks",)) as name:
        made = Endpoint(name)
        made.set_up()
        yield made


@pytest.mark.skipif(images.tool() is None, reason="no tool that builds and loads images (FOXRUN_IMAGE_TOOL)")
def test_a_push_ends_in_a_verdict(tmp_path: Path) -> None:
    image = images.image(images.snapshot(tmp_path / "context"))
    sha = images.git(image.context, "rev-parse", "HEAD")
    # What docs/ci.md has a team say in its overlay.
    with endpoint(tmp_path, lambda template: _smaller(template, f"{images.REPOSITORY}:{{sha}}")) as there:
        good = _push(there, "ml-alpha-x", sha, image.tree)
        other = _push(there, "ml-alpha-y", sha, "d" * 40)
        watched = foxrun(there, tmp_path, "watch", good, "-o", "json")
        assert watched.returncode == 0, watched.stdout + watched.stderr
        verdict = json.loads(watched.stdout)
        assert (verdict["verdict"], verdict["agreed"]["rows"]) == ("identical", 6 + 3 + 1)
        codes = [run["manifest"]["code"] for run in verdict["runs"]]
        asked = {
            "commit_asked": sha,
            "tree_asked": image.tree,
            "commit_run": sha,
            "tree_run": image.tree,
            "branch": "ml-alpha-x",
        }
        assert codes == [asked, asked]
        refused = foxrun(there, tmp_path, "watch", other, "-o", "json")
        assert (refused.returncode, json.loads(refused.stdout)["verdict"]) == (7, "incomparable"), refused.stderr
        for selector, names in (
            (f"sha={sha}", [good, other]),
            ("branch=ml-alpha-x,kind=ci-gate", [good]),
            ("event=push,branch=ml-alpha-y", [other]),
            ("branch=ml-alpha-z", []),
        ):
            listed = foxrun(there, tmp_path, "list", "-l", selector, "-o", "name")
            assert sorted(listed.stdout.split()) == sorted(names), selector
        assert sorted(there.workflows()) == sorted([good, other])
        _forget(there)


@pytest.mark.skipif(images.tool() is None, reason="no tool that builds and loads images (FOXRUN_IMAGE_TOOL)")
def test_a_pushed_commit_is_mounted_into_an_image_of_another(tmp_path: Path) -> None:
    image = images.image(images.snapshot(tmp_path / "context"))
    changed = Path(shutil.copytree(image.context, tmp_path / "changed", symlinks=True))
    with (changed / "trainer" / "__init__.py").open("a") as stream:
        stream.write("# another tree\n")
    sha, tree = images.commit(changed, "another tree"), images.git(changed, "rev-parse", "HEAD^{tree}")
    with git_server(changed, tmp_path) as url:

        def change(template: dict[str, Any]) -> None:
            _smaller(template, image.reference)
            if template["metadata"]["name"] == "ci-gate":
                _patch(template, yaml.safe_load(block("kustomization.yaml, more of the patch")))
                git = template["spec"]["templates"][1]["inputs"]["artifacts"][0]["git"]
                del git["usernameSecret"], git["passwordSecret"]
                git["repo"] = url

        with endpoint(tmp_path, change) as there:
            watched = foxrun(there, tmp_path, "watch", _push(there, "ml-alpha-x", sha, tree), "-o", "json")
            assert watched.returncode == 0, watched.stdout + watched.stderr
            runs = json.loads(watched.stdout)["runs"]
            codes = [(run["manifest"]["code"]["commit_asked"], run["manifest"]["code"]["tree_run"]) for run in runs]
            assert codes == [(sha, tree), (sha, tree)] and tree != image.tree
            _forget(there)


def _push(there: Endpoint, branch: str, sha: str, tree: str) -> str:
    """Deliver a push; returns the name of what it starts."""
    push = payloads.github_push(f"refs/heads/{branch}", sha)
    push["head_commit"]["tree_id"] = tree
    assert there.send(Delivery(host=GITHUB, event="push", what="", payload=push, starts=None))[0] == 200
    return name_of(payloads.GITHUB_URL, branch, sha)


def _smaller(template: dict[str, Any], image: str) -> None:
    for parameter in template["spec"]["arguments"]["parameters"]:
        if (value := {**SMALLER, "image": image}.get(parameter["name"])) is not None:
            parameter["value"] = value


def _patch(template: dict[str, Any], operations: list[dict[str, Any]]) -> None:
    """RFC 6902, as much of it as the page uses."""
    for operation in operations:
        *path, last = operation["path"].split("/")[1:]
        place: Any = template
        for key in path:
            place = place[int(key)] if isinstance(place, list) else place[key]
        if operation["op"] == "test":
            assert place[last] == operation["value"]
        else:
            place[last] = operation["value"]


def test_hostile_names_reach_the_pods_as_data(tmp_path: Path) -> None:
    def change(template: dict[str, Any]) -> None:
        for part in template["spec"]["templates"]:
            if container := part.get("container"):
                container["resources"] = {"requests": {"cpu": "10m", "memory": "16Mi"}}
            if part["name"] == "leg":
                container["command"] = ["sh", "-c", LEG.replace("$", "$$"), "trainer"]
                container["args"] = container["args"][2:]
        as_busybox(template)
        for parameter in template["spec"]["arguments"]["parameters"]:
            if parameter["name"] == "image":
                parameter["value"] = "localhost/busybox:1"

    cluster = Cluster()
    with endpoint(tmp_path, change) as there:
        cluster.namespace = there.namespace
        names = {}
        for host, url in ((GITHUB, payloads.GITHUB_URL), (GITLAB, payloads.GITLAB_URL)):
            for branch in HOSTILE if host == GITHUB else HOSTILE[:1]:
                sha, ref = payloads.sha_of(f"{host} {branch}"), f"refs/heads/{branch}"
                words = {"author": "$(id) {{workflow.name}}", "message": "`id`\n{{=1+1}}"}
                made = (payloads.github_push if host == GITHUB else payloads.gitlab_push)(ref, sha, **words)
                event = "push" if host == GITHUB else "Push Hook"
                assert there.send(Delivery(host=host, event=event, what="", payload=made, starts=None))[0] == 200
                names[name_of(url, branch, sha)] = (branch, sha)
        for name, (branch, sha) in names.items():
            workflow = _ended(there, name)
            told = {n: (node["phase"], node.get("message")) for n, node in nodes(workflow).items()}
            assert workflow["status"]["phase"] == "Succeeded", told
            assert workflow["metadata"]["annotations"]["foxrun.dev/branch"] == branch
            assert workflow["metadata"]["labels"]["foxrun.dev/branch"] == label_value(branch)
            keys = {key.rsplit("/", 1)[1]: key for key in cluster.keys(f"{workflow['metadata']['uid']}/leg-a/")}
            assert set(keys) == {"branch", "code", "parameters.json"}, "nothing else was written"
            plain = branch if "{{" not in branch else "ml-alpha---workflow.name----x-"
            assert cluster.read(keys["branch"]).decode() == plain
            assert cluster.read(keys["code"]).decode().startswith(sha)
            assert cluster.read(keys["parameters.json"]).decode() == '{"envs":"128"}'
        listed = foxrun(there, tmp_path, "list", "-o", "wide")
        assert (listed.returncode, len(listed.stdout.splitlines())) == (0, len(names) + 1), listed.stdout
        _forget(there)


def foxrun(there: Endpoint, home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command line, on the namespace."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("FOXRUN_", "ARGO_")) or k.startswith("FOXRUN_S3")}
    settings = {"FOXRUN_ENGINE": "argo", "FOXRUN_NAMESPACE": there.namespace, "FOXRUN_HOME": str(home / "home")}
    command = [sys.executable, "-P", "-m", "orchestrator", *words]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=home, env={**kept, **settings, "PYTHONPATH": str(ROOT)}
    )


def _ended(there: Endpoint, name: str) -> dict[str, Any]:
    deadline = time.monotonic() + DEADLINE_S
    while not (workflow := there.workflows()[name]).get("status", {}).get("finishedAt"):
        assert time.monotonic() < deadline, f"{name} did not end: {workflow['status'].get('phase')}"
        time.sleep(1.0)
    return workflow


def _forget(there: Endpoint) -> None:
    """Take what they stored out of the bucket; the namespace takes the rest."""
    cluster = Cluster()
    cluster.namespace = there.namespace
    for workflow in there.workflows().values():
        cluster.delete(workflow)
