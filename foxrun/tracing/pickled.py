"""Tensors that are pickled, each as an operation that reads it: no dispatcher sees torch.save or a queue copy bytes.

A checkpoint that a thread writes while the training goes on holds whatever its weights are by then.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from foxrun.tracing import patching
from foxrun.tracing.operations import Operations
from foxrun.tracing.shapes import shape_of

NAME = "pickle.Tensor"


def watch(operations: Operations) -> None:
    """From now on each tensor that is pickled leaves an event. A parameter hands its tensor on, which is the one."""

    def around(original: Any) -> Any:
        def call(self: Tensor, protocol: Any) -> Any:
            recorder = operations.recorder
            if type(self) is Tensor and operations.recording and not torch.compiler.is_compiling():
                try:
                    with recorder.quiet():
                        _note(operations, self)
                except Exception as error:
                    recorder.trouble(error)
            return original(self, protocol)

        return call

    patching.method(torch.Tensor, "__reduce_ex__", around)


def _note(operations: Operations, tensor: Tensor) -> None:
    line, module, phase = operations.place()
    operations.recorder.event(
        "op",
        NAME,
        ins=[("0", operations.hash(tensor), operations.storages.source(tensor))],
        outs=[("0", operations.hash(tensor))],  # a slot holds for one place
        shapes=f"{shape_of(tensor)}->",
        where=line,
        module=module,
        phase=phase,
    )
