"""The image under test: built once for the files that it consists of, and used again while they stay as they are."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONTENT = ("Dockerfile", ".dockerignore", "pyproject.toml", "constraints.txt", "README.md", "LICENSE")
PACKAGES = ("foxrun", "trainer", "workflows", "orchestrator")
REPOSITORY = "localhost/foxrun-test"


def tool() -> str | None:
    """What builds an image and loads it into the cluster: `PROGRAM build -t TAG [--build-arg K=V] CONTEXT`."""
    named = os.environ.get("FOXRUN_IMAGE_TOOL") or str(ROOT.parent / "shared" / "cluster" / "image")
    return shutil.which(named)


def snapshot(target: Path) -> Path:
    """A copy of the files that the image is made of: they must not change between the build and what follows."""
    target.mkdir(parents=True)
    for name in CONTENT:
        shutil.copy2(ROOT / name, target)
    for package in PACKAGES:
        shutil.copytree(ROOT / package, target / package, ignore=shutil.ignore_patterns("__pycache__", "*.py[co]"))
    return target


def content_hash(context: Path) -> str:
    """40 digits that change when a file of the image does; what the test images take for their tree."""
    digest = hashlib.sha256()
    for file in sorted(path for path in context.rglob("*") if path.is_file()):
        digest.update(f"{file.relative_to(context)}\0{file.stat().st_size}\0".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:40]


def build(context: Path, tag: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Build and load; torch comes from pip's ordinary index or the machine's own wheels."""
    program = tool()
    assert program is not None
    command = [program, "build", "-t", tag, "--build-arg", "TORCH_INDEX=", *arguments, str(context)]
    return subprocess.run(command, capture_output=True, text=True)


@dataclass(frozen=True)
class Image:
    """A loaded image, the tree that it was told it is, and the files it was built of."""

    reference: str
    tree: str
    context: Path


def image(context: Path, *, torch: str = "cpu") -> Image:
    """The image of ``context``; built when it is not loaded yet."""
    tree = content_hash(context)
    tag = f"{REPOSITORY}:{tree[:16]}-{torch}"
    with (Path(tempfile.gettempdir()) / "foxrun-image-test.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # workers of one test run ask for the same image at once
        if tag not in _loaded():
            done = build(context, tag, "--build-arg", f"TREE={tree}", "--build-arg", f"TORCH={torch}")
            assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return Image(tag, tree, context)


def _loaded() -> set[str]:
    program = tool()
    assert program is not None
    done = subprocess.run([program, "ls"], capture_output=True, text=True, check=True)
    return {line.split()[0] for line in done.stdout.splitlines() if line.strip()}
