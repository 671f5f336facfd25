"""Exact resume: everything that crosses steps, and the rows written so far, in one file written atomically.

A resumed run writes the rows of the first part again, so its directory equals that of a run never interrupted.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from foxrun import files, jsonio
from trainer.errors import ResumeError
from trainer.learn.acting import Desk
from trainer.learn.step import Trainer
from trainer.market.environment import MarketState

VERSION = 1
# What two parts of one run may differ in.
FREE = ("steps", "eval_steps")


def identity(manifest: Mapping[str, Any]) -> str:
    """The text that a checkpoint and the run resuming from it must agree on."""
    config = {k: v for k, v in manifest["config"].items() if k not in FREE}
    inputs = [item["sha256"] for item in manifest["inputs"]]
    return jsonio.canonical({"config": config, "inputs": inputs, "seed": manifest["seed"], "mode": manifest["mode"]})


def save(
    path: Path,
    *,
    trainer: Trainer,
    desk: Desk,
    step: int,
    manifest: Mapping[str, Any],
    rows: Sequence[Any],
    bits: bytes,
) -> None:
    """Write the state before ``step``, and the rows up to it."""
    state: dict[str, Any] = {
        "version": VERSION,
        "identity": identity(manifest),
        "step": step,
        "tensors": {name: tensor.cpu() for name, tensor in tensors(trainer, desk, step).items()},
        "rows": jsonio.dumps(list(rows)),
        "bits": torch.frombuffer(bytearray(bits), dtype=torch.uint8) if bits else torch.zeros(0, dtype=torch.uint8),
    }
    buffer = io.BytesIO()
    torch.save(state, buffer)
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_atomic(path, buffer.getvalue())


def load(path: Path) -> dict[str, Any]:
    """A checkpoint's content; ResumeError when it is none."""
    try:
        with path.open("rb") as stream:
            state = torch.load(stream, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise ResumeError(f"resume={path}: no such file; give a checkpoint-N.pt that checkpoint_at=N wrote") from None
    except Exception as error:
        raise ResumeError(f"resume={path}: not a whole checkpoint ({type(error).__name__}); write it again") from None
    if not isinstance(state, dict) or state.get("version") != VERSION:
        raise ResumeError(f"resume={path}: not a checkpoint of version {VERSION} of this trainer")
    return state


def check(path: Path, state: Mapping[str, Any], manifest: Mapping[str, Any], steps: int) -> None:
    """Refuse a checkpoint of another configuration, data, seed or mode, or of a step past the end."""
    ours, theirs = jsonio.loads(identity(manifest)), jsonio.loads(state["identity"])
    for part in ("seed", "mode", "inputs"):
        if ours[part] != theirs[part]:
            raise ResumeError(f"resume={path}: it was written with {part} {theirs[part]}, this run has {ours[part]}")
    for name in sorted(set(ours["config"]) | set(theirs["config"])):
        mine, other = ours["config"].get(name), theirs["config"].get(name)
        if mine != other:
            raise ResumeError(
                f"resume={path}: it was written with {name}={other}, this run has {name}={mine}; "
                f"only {' and '.join(FREE)} may differ"
            )
    if state["step"] > steps:
        raise ResumeError(f"resume={path}: it stands before step {state['step']}, this run has only {steps} steps")


def restore(state: Mapping[str, Any], trainer: Trainer, desk: Desk) -> None:
    """Put the state back; ``desk`` must already hold the checkpoint's chunk of the book."""
    kept = state["tensors"]
    for name, tensor in tensors(trainer, desk, 0).items():
        if name.startswith(("env.", "replay.")):
            continue
        tensor.copy_(kept[name])
    desk.env = MarketState(**{name: kept[f"env.{name}"].to(trainer.device) for name in MarketState._fields})
    trainer.replay.restore({k.removeprefix("replay."): v for k, v in kept.items() if k.startswith("replay.")})


def tensors(trainer: Trainer, desk: Desk, stores: int) -> dict[str, Tensor]:
    """Everything that crosses steps, by name, after ``stores`` steps."""
    return {
        "step": trainer.step,
        "parameters": trainer.flat,
        "target": trainer.flat_target,
        "adam_m": trainer.optimiser.moments.m,
        "adam_v": trainer.optimiser.moments.v,
        "win_rate_ema": trainer.win_rate_ema,
        "chunk": desk.chunk,
        "h": desk.h,
        **{f"env.{name}": tensor for name, tensor in zip(desk.env._fields, desk.env, strict=True)},
        **{f"replay.{name}": tensor for name, tensor in trainer.replay.state(stores).items()},
    }
