"""A real Argo Workflows for tests: submit, wait, read artifacts, delete.

Containers run busybox with the rendered args, so paths, parameters and artifacts are those of the real workflow.
"""

import os
import time
import uuid
from dataclasses import replace
from typing import Any

import boto3
from botocore.config import Config
from kubernetes import client, config

from tests.workflows.cases import SYNTHETIC
from workflows.parameters import RunParameters

GROUP = {"group": "argoproj.io", "version": "v1alpha1", "plural": "workflows"}
DEADLINE_S = 120

# Each is `sh -c SCRIPT NAME ARGS`, ARGS being exactly what foxrun or the trainer would be given.
LEG = r"""
out=; parameters=; data=
while [ $# -gt 0 ]; do
  case "$1" in --out) out=$2;; --parameters) parameters=$2;; --data) data=$2;; esac
  shift
done
case "$FOXRUN_LEG $parameters" in
  a*leg-a-fails*) echo "leg a failed" > /dev/termination-log; exit 1;;
  *terminated*) exit 143;;
esac
mkdir -p "$out/attempt"
printf %s "$parameters" > "$out/attempt/parameters.json"
printf %s "$FOXRUN_BRANCH" > "$out/attempt/branch"
printf %s "$FOXRUN_SHA $FOXRUN_TREE $(id -u)" > "$out/attempt/code"
if touch /outside 2>/dev/null; then echo writable > "$out/attempt/root"; fi
if [ -n "$data" ]; then cp "$data" "$out/attempt/"; fi
"""
FOXRUN = r"""
what=$1; code=0; verdict=identical; file=; saw=
if [ "$what" = compare ]; then
  saw=" a=$(ls -A "$2" 2>/dev/null) b=$(ls -A "$3" 2>/dev/null)"
fi
while [ $# -gt 0 ]; do
  case "$1" in
    --) break;;
    --out) mkdir -p "$2"; echo twin > "$2/twin";;
    --parameters) case "$2" in *gate-fails*) code=4; verdict=gate_failed;; esac;;
    --status-a) saw="$saw status-a=$2";;
    --status-b) saw="$saw status-b=$2";;
    --status) echo "STATUS $2";;
    --failures) echo "FAILURES $2";;
    --report) echo "<p>$verdict</p>" > "$2";;
    --write) printf %s "$verdict" > "${2#*=}";;
    --verdict) file=$2;;
  esac
  shift
done
if [ "$what" = alert ]; then
  if [ -d "$file" ]; then echo "VERDICT directory"; else echo "VERDICT $(cat "$file")"; fi
else
  echo "$what $verdict$saw" > "$file"
fi
if [ $code != 0 ]; then echo "$what $verdict" > /dev/termination-log; fi
exit $code
"""

BUSYBOX = replace(
    SYNTHETIC,
    image="localhost/busybox:1",
    trainer=("sh", "-c", LEG, "trainer"),
    cpu="50m",
    memory="32Mi",
    gate_timeout_s=60,
    leg_timeout_s=60,
    compare_timeout_s=60,
    alert_timeout_s=60,
)


def unique(p: RunParameters) -> RunParameters:
    """``p`` under a name that no other test uses."""
    return replace(p, name=f"test-{uuid.uuid4().hex[:12]}")


def as_busybox(workflow: dict[str, Any]) -> dict[str, Any]:
    """The rendered workflow with `foxrun` replaced by a shell script; nothing else changes but what alert asks for."""
    for template in workflow["spec"]["templates"]:
        container = template.get("container")
        if container is None:
            continue
        if container["command"] == ["foxrun"]:
            container["command"] = ["sh", "-c", FOXRUN.replace("$", "$$"), "foxrun"]
        if template["name"] == "exit-handler":
            container["resources"] = {"requests": {"cpu": "10m", "memory": "16Mi"}}
    return workflow


class Cluster:
    """The cluster of KUBECONFIG and its artifact store."""

    def __init__(self) -> None:
        config.load_kube_config()
        self.namespace = config.list_kube_config_contexts()[1]["context"].get("namespace", "default")
        self.workflows = client.CustomObjectsApi()
        self.bucket = os.environ.get("FOXRUN_S3_BUCKET", "")
        self._s3: Any = None

    @property
    def s3(self) -> Any:
        if self._s3 is None:
            endpoint = os.environ["FOXRUN_S3_ENDPOINT"]
            self._s3 = boto3.client("s3", endpoint_url=endpoint, config=Config(signature_version="s3v4"))
        return self._s3

    def create(self, workflow: dict[str, Any], **options: Any) -> dict[str, Any]:
        return self.workflows.create_namespaced_custom_object(
            **GROUP, namespace=self.namespace, body=workflow, **options
        )

    def wait(self, name: str, deadline_s: float = DEADLINE_S) -> dict[str, Any]:
        deadline = time.monotonic() + deadline_s
        while time.monotonic() < deadline:
            workflow = self.workflows.get_namespaced_custom_object(**GROUP, namespace=self.namespace, name=name)
            if workflow.get("status", {}).get("finishedAt"):
                return workflow
            time.sleep(0.5)
        raise AssertionError(f"{name} did not end within {deadline_s} s: {workflow.get('status')}")

    def delete(self, workflow: dict[str, Any]) -> None:
        name, uid = workflow["metadata"]["name"], workflow["metadata"]["uid"]
        self.workflows.delete_namespaced_custom_object(**GROUP, namespace=self.namespace, name=name)
        for key in [*self.keys(f"{uid}/"), *self.keys(f"{name}/")]:
            self.remove(key)

    def keys(self, prefix: str) -> list[str]:
        answer = self.s3.list_objects_v2(Bucket=self.bucket, Prefix=prefix)
        return sorted(item["Key"] for item in answer.get("Contents", []) if not item["Key"].endswith("/"))

    def read(self, key: str) -> bytes:
        return self.s3.get_object(Bucket=self.bucket, Key=key)["Body"].read()

    def store(self, key: str, data: bytes) -> None:
        self.s3.put_object(Bucket=self.bucket, Key=key, Body=data)

    def remove(self, key: str) -> None:
        self.s3.delete_object(Bucket=self.bucket, Key=key)

    def log(self, node: dict[str, Any]) -> str:
        """What a pod printed, from the archive: finished pods are collected."""
        keys = [a["s3"]["key"] for a in node["outputs"]["artifacts"] if a["name"] == "main-logs"]
        return self.read(keys[0]).decode()


def nodes(workflow: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Nodes by display name."""
    return {node["displayName"]: node for node in workflow["status"]["nodes"].values()}
