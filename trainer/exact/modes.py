"""Modes 0 to 3: which settings of the libraries each one makes, and which outside settings it will not accept.

``prepare`` runs before torch is imported, since cuBLAS, cuDNN and oneDNN read their variables once; ``apply`` after.
Each knob is printed at start and recorded in the manifest.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainer.errors import UsageError

if TYPE_CHECKING:
    import torch

MODES = {
    0: "fast: TF32, nothing promised, no fingerprints",
    1: "pedantic: IEEE fp32, deterministic algorithms",
    2: "control: IEEE fp32, nothing forced; exact by construction",
    3: "fast and exact: TF32, deterministic algorithms",
}
DEFAULT_MODE = 1
CORRECTED = "CORRECTED"
WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"
# cuBLAS documents these two as making its routines repeatable with several streams.
WORKSPACES = (":4096:8", ":16:8")

# Read once by a library, stronger than what the program sets afterwards.
OVERRIDES = {
    "NVIDIA_TF32_OVERRIDE": "it would decide TF32 instead of the mode",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "it would decide TF32 instead of the mode",
    "ONEDNN_DEFAULT_FPMATH_MODE": "it would lower the precision of fp32 on the CPU",
    "DNNL_DEFAULT_FPMATH_MODE": "it would lower the precision of fp32 on the CPU",
}

# Recorded in the manifest as the run saw them, when set.
VARIABLES = (
    WORKSPACE,
    *OVERRIDES,
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_VISIBLE_DEVICES",
    "FOXHUNT_DETERMINISTIC",
    "FOXRUN_MODE",
    "MALLOC_PERTURB_",
    "MKL_CBWR",
    "MKL_ENABLE_INSTRUCTIONS",
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "ONEDNN_MAX_CPU_ISA",
    "PYTHONHASHSEED",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "ATEN_CPU_CAPABILITY",
    "FOXRUN_LEG",
    "FOXRUN_POISON",
)


@dataclass(frozen=True, kw_only=True)
class Knob:
    """One setting: ``name``, the ``value`` it now has, and a ``note`` where outside settings were overruled."""

    name: str
    value: str
    note: str = ""

    def line(self) -> str:
        """As printed at start."""
        return f"{self.name}={self.value}" + (f"  ({self.note})" if self.note else "")


def choose(flag: str | None, environment: Mapping[str, str]) -> int:
    """The mode: ``--mode``, else FOXRUN_MODE, else FOXHUNT_DETERMINISTIC, else 1."""
    sources = (("--mode", flag), *((name, environment.get(name)) for name in ("FOXRUN_MODE", "FOXHUNT_DETERMINISTIC")))
    for source, text in sources:
        if text is None or text == "":
            continue
        if text == "4":
            raise UsageError(f"{source} 4: the portable mode is not built yet; take 0, 1, 2 or 3")
        if text not in ("0", "1", "2", "3"):
            raise UsageError(f"{source} {text[:40]!r} is not a mode; take 0, 1, 2 or 3")
        return int(text)
    return DEFAULT_MODE


def prepare(mode: int, environment: MutableMapping[str, str]) -> list[Knob]:
    """Correct variables that libraries read at start; call before torch is imported."""
    knobs = []
    for name, why in OVERRIDES.items():
        if name in environment:
            was = environment.pop(name)
            knobs.append(Knob(name=name, value="unset", note=f"{CORRECTED}: was {was!r}; {why}"))
    if mode in (1, 3):
        was_set = environment.get(WORKSPACE)
        if was_set not in WORKSPACES:
            environment[WORKSPACE] = WORKSPACES[0]
            note = "set: was missing" if was_set is None else f"{CORRECTED}: was {was_set!r}, which is not repeatable"
            knobs.append(Knob(name=WORKSPACE, value=WORKSPACES[0], note=note))
        else:
            knobs.append(Knob(name=WORKSPACE, value=was_set))
    return knobs


def apply(mode: int, threads: int, *, fingerprints: bool) -> list[Knob]:
    """Set every knob of ``mode`` in torch, and say which."""
    import torch

    tf32 = mode in (0, 3)
    deterministic = mode in (1, 3)
    precision = "tf32" if tf32 else "ieee"
    torch.set_num_threads(threads)
    backends: Any = torch.backends  # its submodules are made at run time, unknown to type checkers
    backends.cuda.matmul.fp32_precision = precision
    backends.cudnn.conv.fp32_precision = precision
    backends.mkldnn.matmul.fp32_precision = "ieee"
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = deterministic
    # Not torch.use_deterministic_algorithms: that imports the compiler, which costs a second at start.
    torch._C._set_deterministic_algorithms(deterministic, warn_only=False)
    settings: Any = torch.utils.deterministic
    settings.fill_uninitialized_memory = False
    if torch.are_deterministic_algorithms_enabled() != deterministic:
        raise RuntimeError("torch did not take the setting of deterministic algorithms")
    return [
        Knob(name="deterministic_algorithms", value=_on(deterministic)),
        Knob(name="cuda.matmul.fp32_precision", value=precision),
        Knob(name="cudnn.conv.fp32_precision", value=precision),
        Knob(name="cudnn.deterministic", value=_on(deterministic)),
        Knob(name="cudnn.benchmark", value="off"),
        Knob(name="mkldnn.matmul.fp32_precision", value="ieee"),
        Knob(name="fill_uninitialized_memory", value="off"),
        Knob(name="threads", value=str(threads)),
        Knob(name="fingerprints", value=_on(fingerprints)),
    ]


def choose_device(name: str) -> torch.device:
    """``auto``, ``cpu`` or ``cuda`` to a device that is there."""
    import torch

    if name == "cpu" or (name == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise UsageError("device=cuda: torch finds no CUDA device here; take -p device=cpu, or install a CUDA build")
    return torch.device("cuda", torch.cuda.current_device())


def announce(mode: int, knobs: list[Knob], device: str, cost: str) -> list[str]:
    """Lines for the log: the mode, every knob, and the mode's cost where it has been measured."""
    lines = [f"mode {mode} ({MODES[mode]}) on {device}"]
    lines += [f"  {knob.line()}" for knob in knobs]
    lines.append(f"  cost of the mode on this device: {cost}")
    return lines


def _on(value: bool) -> str:
    return "on" if value else "off"
