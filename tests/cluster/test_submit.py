"""`foxrun submit --engine argo` the whole way: the image built here, a real order book, real pods, and the verdict."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from tests.cluster.whole import BOOK, EVAL_STEPS, SMALL, STEPS, Whole
from tests.image import images

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
ROWS = STEPS + EVAL_STEPS + 1
NETWORK = "/run/netns/foxrun-cluster"
COMPARED = ("leaves.json", "bits.u64", "diag.jsonl", "eval_summary.json")


def s3() -> Any:
    endpoint = os.environ["FOXRUN_S3_ENDPOINT"]
    return boto3.client("s3", endpoint_url=endpoint, config=Config(signature_version="s3v4"))


def inputs() -> dict[str, Any]:
    """When each stored input was written."""
    listed = s3().list_objects_v2(Bucket=os.environ["FOXRUN_S3_BUCKET"], Prefix="inputs/")
    return {item["Key"]: item["LastModified"] for item in listed.get("Contents", [])}


def manifest(run: str) -> dict[str, Any]:
    bucket, _, prefix = run.removeprefix("s3://").partition("/")
    keys = [item["Key"] for item in s3().list_objects_v2(Bucket=bucket, Prefix=f"{prefix}/")["Contents"]]
    [key] = [key for key in keys if key.endswith("/run_manifest.json")]
    found: dict[str, Any] = json.loads(s3().get_object(Bucket=bucket, Key=key)["Body"].read())
    return found


@pytest.mark.skipif(not BOOK.exists(), reason="no order book: ../shared/data is absent")
def test_a_pair_on_a_real_book_is_identical_and_equal_to_that_of_this_machine(
    whole: Whole, image: images.Image, digest: str, tmp_path: Path
) -> None:
    pair = ("--sha", "HEAD", "--regression-pair", "-p", f"data={BOOK}")
    name, said = whole.submit(*pair, "--image-digest", "require", "-o", "json")
    assert (said.code, said.json["verdict"], said.json["agreed"]["rows"]) == (0, "identical", ROWS), said.all
    workflow = whole.get(name)
    values = {item["name"]: item["value"] for item in workflow["spec"]["arguments"]["parameters"]}
    assert values["image"] == f"{image.reference}@{digest}"
    assert workflow["metadata"]["labels"]["foxrun.dev/verdict"] == "identical"
    for run in said.json["runs"]:
        assert run["label"].startswith("s3://")
        code = manifest(run["label"])["code"]
        head = images.git(whole.repository, "rev-parse", "HEAD")
        assert (code["commit_asked"], code["tree_asked"], code["tree_run"]) == (head, image.tree, image.tree)
    before = inputs()
    assert any(key.endswith(BOOK.name) for key in before)
    assert whole("submit", *pair, *SMALL, "--engine", "argo", "--dry-run=server").code == 0
    again, _ = whole.submit(*pair, "--no-gate")
    assert inputs() == before, "an input that is there is not stored again"
    _check_same_bits(whole, said.json["runs"][0]["label"], pair, tmp_path)
    assert whole.get(again)["status"]["phase"] == "Succeeded"


def _check_same_bits(whole: Whole, there: str, pair: tuple[str, ...], tmp_path: Path) -> None:
    """The local engine's run of the same parameters: equal, or incomparable by the name of each difference."""
    local = whole("submit", "--engine", "local", "--no-gate", *pair, *SMALL, "-o", "json")
    assert local.code == 0, local.all
    here = local.json["runs"][0]["label"]
    compared = whole("compare", here, there, "-o", "json")
    environments = [
        manifest(there)["environment"],
        json.loads(next(Path(here).rglob("run_manifest.json")).read_text())["environment"],
    ]
    differ = {f"environment.{key}" for key in environments[0] if environments[0][key] != environments[1].get(key)}
    named = {item["path"] for item in compared.json["manifest_differences"] if item["matters"]}
    expected = (7, "incomparable") if differ else (0, "identical")
    assert (compared.code, compared.json["verdict"], named) == (*expected, differ), compared.all
    # What does not decide bits on a CPU: then they are equal all the same.
    if differ <= {"environment.python"}:
        forced = whole("compare", here, there, "--force", "--verify", "-o", "json")
        assert (forced.json["verdict"], forced.json["differences_total"]) == ("identical", 0), forced.all


def test_the_commit_is_mounted_by_git_into_an_image_of_another(
    whole: Whole, image: images.Image, tmp_path: Path
) -> None:
    changed = Path(shutil.copytree(whole.repository, tmp_path / "changed", symlinks=True))
    with (changed / "trainer" / "__init__.py").open("a") as stream:
        stream.write("# another tree\n")
    sha = images.commit(changed, "another tree")
    tree = images.git(changed, "rev-parse", "HEAD^{tree}")
    assert tree != image.tree
    with git_server(changed, tmp_path) as url:
        words = ("--sha", "HEAD", "--regression-pair", "--image", image.reference, "--code", "git", "--git-url", url)
        _, said = whole.submit(*words, "-o", "json", cwd=changed)
    assert (said.code, said.json["verdict"]) == (0, "identical"), said.all
    for run in said.json["runs"]:
        code = manifest(run["label"])["code"]
        assert (code["commit_asked"], code["tree_run"]) == (sha, tree)


@contextlib.contextmanager
def git_server(repository: Path, tmp_path: Path) -> Iterator[str]:
    """A git server that pods reach."""
    if not Path(NETWORK).exists() or shutil.which("nsenter") is None:
        pytest.skip("no network of the cluster's own to serve git in")
    host = os.environ["FOXRUN_S3_POD_ENDPOINT"].removeprefix("http://").partition(":")[0]
    images.git(tmp_path, "clone", "-q", "--bare", str(repository), str(tmp_path / "served" / "trainer.git"))
    port = 20_000 + os.getpid() % 10_000
    daemon = [
        "git",
        "daemon",
        f"--listen={host}",
        f"--port={port}",
        f"--base-path={tmp_path / 'served'}",
        "--export-all",
    ]
    inside = ["nsenter", f"--net={NETWORK}"]
    process = subprocess.Popen([*inside, *daemon], stderr=subprocess.DEVNULL)
    url = f"git://{host}:{port}/trainer.git"
    try:
        give_up_at = time.monotonic() + 30
        while subprocess.run([*inside, "git", "ls-remote", url], capture_output=True).returncode:
            assert process.poll() is None and time.monotonic() < give_up_at, "git daemon does not answer"
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait()
