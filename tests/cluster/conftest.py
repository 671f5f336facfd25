from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.whole import Whole
from tests.image import images

NEEDS = {
    "no cluster: KUBECONFIG is not set": lambda: os.environ.get("KUBECONFIG"),
    "no S3 server for pods: FOXRUN_S3_POD_ENDPOINT is not set": lambda: os.environ.get("FOXRUN_S3_POD_ENDPOINT"),
    "no tool that builds and loads images (FOXRUN_IMAGE_TOOL)": images.tool,
    "no kubectl on PATH": lambda: shutil.which("kubectl"),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of it needs a cluster that images can be loaded into."""
    missing = [reason for reason, there in NEEDS.items() if not there()]
    for item in items:
        if item.nodeid.startswith("tests/cluster/"):
            item.add_marker(pytest.mark.cluster)
            if missing:
                item.add_marker(pytest.mark.skip(reason=missing[0]))


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return images.snapshot(tmp_path_factory.mktemp("whole") / "repository")


@pytest.fixture(scope="session")
def image(repository: Path) -> images.Image:
    """Built here, of the files as they are, and loaded into the cluster."""
    return images.image(repository)


@pytest.fixture(scope="session")
def loaded_image(repository: Path) -> str:
    """The same where it is there already: building it takes minutes."""
    reference = images.reference_of(repository)
    if not images.is_loaded(reference):
        pytest.skip("the image of these files is not loaded; make cluster-proofs builds it")
    return reference


@pytest.fixture
def whole(repository: Path, tmp_path: Path) -> Iterator[Whole]:
    """`foxrun` in the repository; at the end what it submitted is deleted."""
    made = Whole(repository, tmp_path / "home")
    yield made
    for name in made.submitted:
        made("delete", name, "--force", "--engine", "argo")


@pytest.fixture
def digest(image: images.Image) -> str:
    """The image's digest, by which the node then names it as well; a registry would have told it."""
    socket = Path(os.environ["KUBECONFIG"]).parent / "run" / "containerd.sock"
    program = shutil.which("ctr")
    if program is None or not socket.exists():
        pytest.skip("the image's digest is told by containerd (ctr) of this machine alone")
    ctr = [program, "--address", str(socket), "--namespace", "k8s.io", "images"]
    listed = subprocess.run([*ctr, "ls", f"name=={image.reference}"], capture_output=True, text=True, check=True)
    found = next(word for word in listed.stdout.split() if word.startswith("sha256:"))
    named = f"{image.reference.rpartition(':')[0]}@{found}"
    subprocess.run([*ctr, "tag", "--force", image.reference, named], capture_output=True, check=True)
    nodes = [str(shutil.which("kubectl")), "get", "nodes", "-o", "json"]
    give_up_at = time.monotonic() + 120  # the kubelet says what it has every now and then
    while named not in subprocess.run(nodes, capture_output=True, text=True, check=True).stdout:
        assert time.monotonic() < give_up_at, f"no node names {named}"
        time.sleep(1.0)
    return found
