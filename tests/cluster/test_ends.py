"""How a pair ends on a cluster: faults of the trainer, pods that cannot start, a full disk here. Needs no build."""

from __future__ import annotations

import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.cluster.whole import EVAL_STEPS, STEPS, Whole
from tests.report import chromium

pytestmark = pytest.mark.timeout(2000)


def test_faults_end_as_they_do_here_and_the_report_opens_in_place(
    whole: Whole, loaded_image: str, tmp_path: Path
) -> None:
    faults = {"ulp@b:2": (3, "drift", 2), "crash@a:3": (5, "job_failed", None)}
    here = {}
    with ThreadPoolExecutor(2) as both:
        there = {
            fault: both.submit(whole.submit, "--regression-pair", "--no-gate", "-p", f"fault={fault}", "-o", "json")
            for fault in faults
        }
        for fault in faults:
            words = ("submit", "--engine", "local", "--regression-pair", "--no-gate", "-p", f"fault={fault}")
            here[fault] = whole(*words, *SMALL_HERE, "-o", "json")
    for fault, expected in faults.items():
        name, cluster = there[fault].result()
        for said in (here[fault], cluster):
            first = said.json["first_divergence"]
            assert (said.code, said.json["verdict"], first and first["step"]) == expected, said.all
        verdict = here[fault].json
        assert [leg["name"] for leg in cluster.json["parts"]] == [leg["name"] for leg in verdict["parts"]]
        if expected[0] == 3:
            assert cluster.json["first_divergence"] == verdict["first_divergence"]
            _check_report(whole, name, tmp_path)
            _check_full_disk(whole, name)


SMALL_HERE = (
    *("-p", "envs=8", "-p", "width=32", "-p", "window=16"),
    *("--steps", str(STEPS), "--eval-steps", str(EVAL_STEPS)),
)


def _check_report(whole: Whole, name: str, profile: Path) -> None:
    """As the Argo UI shows it: fetched by the browser from argo-server, with its cookie and its policy, in a frame."""
    server = os.environ.get("ARGO_SERVER")
    if not server or chromium.executable() is None:
        return
    nodes = whole.get(name)["status"]["nodes"]
    node = next(key for key, item in nodes.items() if item["displayName"] == "compare(0)")
    base = f"http{'' if os.environ.get('ARGO_SECURE') == 'false' else 's'}://{server}"
    namespace = os.environ.get("ARGO_NAMESPACE", "argo")
    path = f"/artifact-files/{namespace}/workflows/{name}/{node}/outputs/report"
    browser = chromium.Browser(profile / "chromium")
    try:
        browser.call("Network.setCookie", name="authorization", value=os.environ["ARGO_TOKEN"], url=base)
        browser.show(base + path, width=475, height=500)
        text = browser.evaluate("document.body.innerText")
        assert "Drift" in text and "step 2" in text, text[:500]
        assert browser.evaluate("getComputedStyle(document.body).fontFamily") != ""
        assert [url for url in browser.requests() if not url.startswith("data:")] == [base + path]
        assert browser.complaints() == []
        wide = browser.evaluate("document.documentElement.scrollWidth")
        assert wide <= 475, f"{wide} pixels wide"
    finally:
        browser.close()


def _check_full_disk(whole: Whole, name: str) -> None:
    """A verdict that is known is said, whatever can be written here."""
    device = Path("/dev/full")
    if not device.exists() or os.geteuid() != 0 or shutil.which("unshare") is None:
        return
    said = whole.on_full_disk("watch", name, "--engine", "argo", "-o", "json")
    assert (said.code, said.json["verdict"]) == (3, "drift"), said.all
    assert any("No space left on device" in note for note in said.json["notes"]), said.all
    again = whole.on_full_disk("report", name, "--engine", "argo")
    assert again.code == 6 and "No space left on device" in again.err and "Traceback" not in again.all


def test_a_gpu_that_no_node_has_is_said_in_time(whole: Whole) -> None:
    _, said = whole.submit(
        "--gpus", "1", "--gpu-model", "NVIDIA-H999", "--image", "localhost/busybox:1", FOXRUN_UNSCHEDULABLE="2s"
    )
    assert said.code == 6
    assert "didn't match Pod's node affinity/selector" in said.err
    assert "kubectl get nodes -L nvidia.com/gpu.product" in said.err
    assert "note: gate waits: Unschedulable" in said.err


def test_more_than_the_largest_node_has_is_said_in_time(whole: Whole) -> None:
    _, said = whole.submit(
        "--cpu", "500", "--memory", "1Mi", "--image", "localhost/busybox:1", FOXRUN_UNSCHEDULABLE="2s"
    )
    assert said.code == 6
    assert re.search(r"it asks for cpu (10m \+ )?1k( \+ 10m)? and the largest node has \d+", said.err), said.all


def test_an_image_that_cannot_be_pulled_is_said_in_time(whole: Whole) -> None:
    name, said = whole.submit(
        "--image", "localhost/no-such-image:{sha}", "--image-pull-policy", "Never", FOXRUN_UNSCHEDULABLE="2s"
    )
    assert said.code == 6
    assert "no-such-image" in said.err and "load the image onto the nodes" in said.err
    # Its pod holds what it asked for, on a small node all that there is.
    assert whole("delete", name, "--force", "--engine", "argo").code == 0
    _, said = whole.submit("--image", "127.0.0.1:9/no-such-image:{sha}", FOXRUN_UNSCHEDULABLE="2s")
    assert said.code == 6
    assert "ErrImagePull" in said.err or "ImagePullBackOff" in said.err, said.all
    assert "check the image's name and the registry's secret" in said.err
