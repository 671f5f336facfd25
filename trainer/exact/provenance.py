"""What decides a run's bits, for its manifest: code, inputs, environment, variables. Read once, at the edge."""

from __future__ import annotations

import ctypes
import hashlib
import platform
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from foxrun import git
from trainer.exact.modes import VARIABLES


def code(environment: Mapping[str, str], out: Path) -> dict[str, str]:
    """Commit and tree asked, both as they really run (uncommitted changes have no commit), branch."""
    here = Path(__file__).resolve().parent
    asked, commit_run = environment.get("FOXRUN_SHA", ""), ""
    try:
        # A run directory below the repository is no part of the code.
        tree_run = git.tree_hash(here, exclude=[out])
        commit_run = git.commit_run(here, tree_run)
        branch = environment.get("FOXRUN_BRANCH") or git.branch(here)
    except git.GitError:
        tree_run, branch = "", environment.get("FOXRUN_BRANCH", "")
    return {
        # A night asks for a branch, which is no commit: then commit_run says what ran.
        "commit_asked": asked if git.is_commit(asked) else "",
        "tree_asked": environment.get("FOXRUN_TREE", ""),
        "commit_run": commit_run,
        "tree_run": tree_run,
        "branch": branch,
    }


def variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that can move bits, as far as they are set."""
    return {name: environment[name] for name in sorted(VARIABLES) if name in environment}


def environment(device: torch.device, threads: int) -> dict[str, Any]:
    """The flat mapping of docs/architecture.md. Empty strings where a part does not exist here."""
    cuda = device.type == "cuda"
    properties = torch.cuda.get_device_properties(device) if cuda else None
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda or "",
        "cudnn": _cudnn_version() if cuda else "",
        "cublas": _cublas_version() if cuda else "",
        "triton": _package_version("triton"),
        "driver": _driver_version() if cuda else "",
        "gpu_name": properties.name if properties else "",
        "gpu_uuid": str(getattr(properties, "uuid", "")) if properties else "",
        "sm_count": properties.multi_processor_count if properties else 0,
        "cpu_model": _cpu_field("model name") or platform.processor(),
        "cpu_flags_sha256": hashlib.sha256(" ".join(sorted(_cpu_field("flags").split())).encode()).hexdigest(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "threads": threads,
        "device": device.type,
        "platform": f"{sys.platform}-{platform.machine()}",
        "libc": "-".join(platform.libc_ver()),
    }


def command(arguments: Sequence[str]) -> list[str]:
    """The command as it was called."""
    return ["python", "-m", "trainer", *arguments]


def _cpu_field(name: str) -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == name:
                return value.strip()
    except OSError:
        pass
    return ""


def _package_version(name: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _cudnn_version() -> str:
    cudnn: Any = torch.backends.cudnn  # not annotated in torch
    return str(cudnn.version() or "")


def _cublas_version() -> str:
    try:
        library = ctypes.CDLL(f"libcublas.so.{(torch.version.cuda or '').split('.')[0]}")
        parts = []
        for which in range(3):  # MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL
            value = ctypes.c_int()
            library.cublasGetProperty(which, ctypes.byref(value))
            parts.append(str(value.value))
        return ".".join(parts)
    except (OSError, AttributeError):
        return ""


def _driver_version() -> str:
    try:
        text = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    for word in text.split():
        if word[:1].isdigit() and word.count(".") >= 1 and word.replace(".", "").isdigit():
            return word
    return ""
