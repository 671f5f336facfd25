"""header.json: what decides the bits of a process and does not belong to its moment (no time, host, pid or path)."""

from __future__ import annotations

import os
import platform
import sys
from typing import Any

from foxrun.tracing.recorder import Recorder

VARIABLES = (
    "CUBLAS_WORKSPACE_CONFIG", "CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING", "FOXRUN_POISON", "MALLOC_PERTURB_",
    "MKL_CBWR", "MKL_NUM_THREADS", "NVIDIA_TF32_OVERRIDE", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PYTHONHASHSEED",
    "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "TRITON_INTERPRET",
    "TRITON_CACHE_AUTOTUNING",
)  # fmt: skip


def write(recorder: Recorder) -> None:
    """Write it; at the start, when torch is there, and after a step that changed a setting."""
    argv = [os.path.basename(sys.orig_argv[0]), *sys.orig_argv[1:]] if sys.orig_argv else []  # noqa: PTH119
    fields: dict[str, Any] = {
        "process": recorder.folder.process,
        "level": recorder.plan.level,
        "argv": argv,
        "python": platform.python_version(),
        "remedies": recorder.plan.remedies,
        "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
    }
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "get_num_threads"):
        fields["torch"] = str(torch.__version__)
        fields |= settings(torch)
    recorder.folder.put("header.json", fields)


def settings(torch: Any) -> dict[str, Any]:
    """What a program may set of torch, and its device."""
    threads = [torch.get_num_threads(), torch.get_num_interop_threads()]
    return {"threads": threads, "knobs": _knobs(torch), "device": _device(torch)}


def _knobs(torch: Any) -> dict[str, Any]:
    return {
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "fill_uninitialized_memory": torch.utils.deterministic.fill_uninitialized_memory,
        "cudnn.benchmark": torch.backends.cudnn.benchmark,
        "cudnn.deterministic": torch.backends.cudnn.deterministic,
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
    }


def _device(torch: Any) -> dict[str, Any]:
    """Without making a context: a program may still choose its device."""
    found = {"cuda": torch.version.cuda, "cpu_vectors": torch.backends.cpu.get_cpu_capability()}
    if torch.version.cuda is None or not torch.cuda.is_initialized():
        return found
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    return {**found, "name": properties.name, "sm_count": properties.multi_processor_count}
