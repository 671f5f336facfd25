"""Remedies in torch's own hands: threads, algorithms, precision, autotuning, copies, fresh memory."""

from __future__ import annotations

import ctypes
import functools
import os
from types import ModuleType
from typing import Any

from foxrun.tracing import imports, patching

_M_PERTURB = -6  # malloc.h


def one_thread() -> None:
    """Set before any library reads it; later calls of the program change nothing."""
    for name in (
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
    ):
        os.environ[name] = "1"

    def set_in(torch: ModuleType) -> None:
        torch.set_num_threads(1)
        _keep(torch, "set_num_threads", lambda original: lambda count: None)

    imports.when_imported("torch", set_in)


def deterministic(*, filled: bool) -> None:
    """torch.use_deterministic_algorithms(True); without a deterministic algorithm an operation raises, as it should."""
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"

    def set_in(torch: ModuleType) -> None:
        torch.use_deterministic_algorithms(True)
        torch.utils.deterministic.fill_uninitialized_memory = filled

        def around(original: Any) -> Any:
            return lambda mode, *, warn_only=False: original(True)

        _keep(torch, "use_deterministic_algorithms", around)

    imports.when_imported("torch", set_in)


def cudnn_deterministic() -> None:
    """Whatever the program sets later."""

    def set_in(torch: ModuleType) -> None:
        _hold(torch.backends.cudnn, "deterministic", True)
        _hold(torch.backends.cudnn, "benchmark", False)

    imports.when_imported("torch", set_in)


def no_tf32() -> None:
    """By the libraries' own variable and by torch's settings."""
    os.environ["NVIDIA_TF32_OVERRIDE"] = "0"
    os.environ.pop("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", None)

    def set_in(torch: ModuleType) -> None:
        torch.set_float32_matmul_precision("highest")
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        torch.backends.cudnn.allow_tf32 = False
        _keep(torch, "set_float32_matmul_precision", lambda original: lambda precision: None)

    imports.when_imported("torch", set_in)


def no_autotune() -> None:
    """Triton's @autotune, cuDNN's benchmark, inductor's max-autotune."""
    os.environ["TORCHINDUCTOR_MAX_AUTOTUNE"] = "0"
    os.environ["TORCHINDUCTOR_MAX_AUTOTUNE_GEMM"] = "0"
    imports.when_imported("torch", lambda torch: _hold(torch.backends.cudnn, "benchmark", False))

    def autotuner(module: ModuleType) -> None:
        cls: Any = module.Autotuner
        run = cls.run

        def first(self: Any, *args: Any, **kwargs: Any) -> Any:
            self.configs = self.configs[:1]
            return run(self, *args, **kwargs)

        cls.run = first

    imports.when_imported("triton.runtime.autotuner", autotuner)


def synchronous_copies() -> None:
    """Tensor.to, cuda, cpu and copy_ block; what was under way on the device is waited for."""

    def set_in(torch: ModuleType) -> None:
        def blocking(original: Any) -> Any:
            @functools.wraps(original)
            def call(self: Any, *args: Any, **kwargs: Any) -> Any:
                kwargs.pop("non_blocking", None)
                if original.__name__ == "copy_" and len(args) > 1:
                    args = args[:1]
                result = original(self, *args, **kwargs)
                if torch.cuda.is_initialized() and not torch.cuda.is_current_stream_capturing():
                    torch.cuda.synchronize()
                return result

            return call

        for name in ("to", "cuda", "cpu", "copy_"):
            setattr(torch.Tensor, name, blocking(getattr(torch.Tensor, name)))

    imports.when_imported("torch", set_in)


def filled_memory() -> None:
    """malloc fills with zeros from now on, and so does torch.empty where memory is not malloc's."""
    libc: Any = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(_M_PERTURB, 0xFF)  # fresh memory gets the complement

    def set_in(torch: ModuleType) -> None:
        def filled(original: Any) -> Any:
            @functools.wraps(original)
            def call(*args: Any, **kwargs: Any) -> Any:
                result = original(*args, **kwargs)
                with torch.no_grad():
                    return result.zero_() if result.device.type != "meta" else result

            return call

        for name in ("empty", "empty_like", "empty_strided", "empty_permuted"):
            setattr(torch, name, filled(getattr(torch, name)))
        for name in ("new_empty", "new_empty_strided"):
            setattr(torch.Tensor, name, filled(getattr(torch.Tensor, name)))

    imports.when_imported("torch", set_in)


def _keep(module: Any, name: str, around: Any) -> None:
    """Replace a function that the program may call later by one that keeps what is set."""
    original = getattr(module, name)
    if isinstance(original, type(len)):
        patching.function(module, name, around)
    else:
        setattr(module, name, functools.wraps(original)(around(original)))


def _hold(module: Any, name: str, value: bool) -> None:
    """Set a property of a torch.backends module, and let no later assignment change it."""
    setattr(module, name, value)
    prop = type(module).__dict__.get(name)
    if prop is not None and hasattr(prop, "setter"):
        setter = prop.setter
        prop.setter = lambda given: setter(value)
