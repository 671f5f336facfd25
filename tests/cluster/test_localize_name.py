"""A pair that drifted on a cluster, located with nothing but the name that its report and its alert give."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from tests.cluster.whole import Said, Whole
from tests.image import images

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]
NO_GATE = ("--sha", "HEAD", "--regression-pair", "--no-gate")


def s3() -> Any:
    endpoint = os.environ["FOXRUN_S3_ENDPOINT"]
    return boto3.client("s3", endpoint_url=endpoint, config=Config(signature_version="s3v4"))


def stored(key: str) -> str:
    """A text of the cluster's bucket."""
    data: bytes = s3().get_object(Bucket=os.environ["FOXRUN_S3_BUCKET"], Key=key)["Body"].read()
    return data.decode()


def remove_below(prefix: str) -> None:
    """Everything that is stored there."""
    bucket = os.environ["FOXRUN_S3_BUCKET"]
    for item in s3().list_objects_v2(Bucket=bucket, Prefix=prefix)["Contents"]:
        s3().delete_object(Bucket=bucket, Key=item["Key"])


def located(said: Said) -> Any:
    """The result, which has to name the sampler whatever the subject was."""
    assert said.code == 3, said.all
    result = said.json
    assert (result["step"], result["leaf"], result["component"]) == (1, "replay_sample_indices", "replay")
    assert result["operation"]["name"] == "torch.Generator.seed"
    assert re.fullmatch(r"trainer/faults\.py:\d+ sample_uniform", result["operation"]["where"]), result["operation"]
    assert result["operation"]["source"] == "generator.seed()"
    return result


def refused(said: Said, code: int, *texts: str) -> None:
    """An error of two parts, what and where, and what to do next."""
    assert said.code == code, said.all
    error, remedy = said.err.split("\nerror: ")[-1].removeprefix("error: ").split("\n  -> ")
    for text in texts:
        assert text in f"{error}\n{remedy}", said.all
    assert remedy.strip() and "Traceback" not in said.all, said.all


def commands(text: str) -> list[list[str]]:
    """The `foxrun localize` that a text of Markdown or HTML holds."""
    return [shlex.split(found) for found in re.findall(r"foxrun localize [^`<\n]*", text)]


def nowhere(whole: Whole, tmp_path: Path) -> Whole:
    """foxrun as it lies without its repository, of somebody else who has run nothing yet."""
    target = tmp_path / "installed"
    shutil.copytree(whole.repository, target, ignore=shutil.ignore_patterns(".git"), symlinks=True)
    return Whole(target, tmp_path / "home-of-another")


def test_the_name_alone_finds_sampler_cause_and_a_verified_remedy(
    whole: Whole, image: images.Image, tmp_path: Path
) -> None:
    name, drifted = whole.submit(*NO_GATE, "-p", "fault=unseeded-sampler:1")
    assert drifted.code == 3, drifted.all
    assert commands(drifted.out) == [["foxrun", "localize", name, "--engine", "argo"]]
    workflow = whole.get(name)
    uid = str(workflow["metadata"]["uid"])
    # What was written in the cluster for people: the stored report, the node's message, the alert's text.
    assert commands(stored(f"{uid}/report.html")) == [["foxrun", "localize", name]]
    [message] = [
        str(node["message"])
        for node in workflow["status"]["nodes"].values()
        if node["displayName"] == "compare(0)" and node.get("message")
    ]
    assert commands(message) == [["foxrun", "localize", name]] and "/foxrun/in/" not in message, message

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    page = tmp_path / "page.html"
    # From a directory that is no repository; the commit is that of the checkout which foxrun itself lies in.
    said = whole("localize", name, "--report", str(page), "-o", "json", cwd=elsewhere, FOXRUN_ENGINE="argo")
    result = located(said)
    assert result["causes"][0]["name"] == "replay-sampling"
    assert [item["name"] for item in result["remedies"] if item["outcome"] == "verified"] == ["seed-generators"]
    text = page.read_text()
    assert "generator.seed()" in text and "replay_sample_indices" in text and "<script" not in text
    assert not any("files here" in note for note in result["notes"]), result["notes"]

    quick = ("--no-remedies", "--replay", "0", "--trials", "1", "-o", "json")
    bucket = os.environ["FOXRUN_S3_BUCKET"]
    located(whole("localize", f"s3://{bucket}/{uid}", *quick, cwd=whole.repository / "orchestrator"))
    sha = images.git(whole.repository, "rev-parse", "HEAD")
    said = nowhere(whole, tmp_path)("localize", name, *quick, cwd=elsewhere, FOXRUN_ENGINE="argo")
    refused(said, 2, f"{name} ran commit {sha}, which is not here: {elsewhere}: ", "git fetch --all --tags")

    # As when its time to live is over: the workflow goes, its runs stay.
    subprocess.run(["kubectl", "delete", "workflow", name], check=True, capture_output=True)
    gone = whole("localize", name, *quick, cwd=elsewhere, FOXRUN_ENGINE="argo")
    located(gone)
    assert f"workflow {name} is gone; its runs are s3://{bucket}/{uid}/leg-a and " in gone.err
    # What deletes the workflow's files deletes them for good.
    remove_below(f"{uid}/leg-")
    refused(
        whole("localize", name, cwd=elsewhere, FOXRUN_ENGINE="argo"),
        7,
        "and is gone, and so are its runs",
        "foxrun submit",
    )


def test_what_did_not_part_and_what_is_not_there_is_said(whole: Whole, image: images.Image) -> None:
    name, same = whole.submit(*NO_GATE)
    assert same.code == 0, same.all
    refused(
        whole("localize", name, FOXRUN_ENGINE="argo"), 2, f"{name} is identical", "foxrun localize -- python -m trainer"
    )
    refused(
        whole("localize", f"{name}x", FOXRUN_ENGINE="argo"),
        2,
        f"there is no workflow '{name}x'; did you mean '{name}'?",
    )
    refused(whole("localize", name), 2, f"there is no workflow '{name}'", "--engine argo")
    nothing = f"s3://{os.environ['FOXRUN_S3_BUCKET']}/no-such-workflow"
    refused(whole("localize", nothing), 2, f"{nothing}: nothing is stored there")

    going = f"{name}-runs"
    whole.submitted.append(going)
    long = ("-p", "envs=8", "-p", "width=32", "-p", "window=16", "--steps", "100000", "--eval-steps", "0")
    sent = whole("submit", "--engine", "argo", "--name", going, *NO_GATE, *long)
    assert sent.code == 0, sent.all
    refused(
        whole("localize", going, FOXRUN_ENGINE="argo"), 2, f"workflow {going} is not completed", f"foxrun watch {going}"
    )
    assert whole("stop", going, FOXRUN_ENGINE="argo").code == 0
