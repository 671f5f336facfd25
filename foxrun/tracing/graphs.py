"""What torch.compile's inductor made of a part of the program, as one operation: its kernels are none of torch's.

What an extern kernel of it does (a product of matrices) leaves events of its own, before the graph's. A backend that
runs torch's operations (eager, aot_eager) needs nothing of this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from foxrun.tracing import imports, patching
from foxrun.tracing.kernels import Call
from foxrun.tracing.modules import tensors
from foxrun.tracing.operations import Operations
from foxrun.tracing.shapes import describe
from foxrun.tracing.words import ADDS

NAME = "inductor.graph"


def watch(operations: Operations) -> None:
    """Watch graphs from when the program first compiles one."""

    def around(original: Any) -> Any:
        def call(self: Any, inputs: Sequence[Any]) -> Any:
            if not operations.recording:
                return original(self, inputs)
            begun = _begun(operations, inputs)  # the graph takes the list's items out
            result = original(self, inputs)
            if begun is not None:
                try:
                    graph, given, place = begun
                    # In C++ and in Triton by functions of such names.
                    said = ADDS if "atomic_add" in str(getattr(self, "source_code", "")) else ""
                    made = [tensor for tensor in tensors(result) if id(tensor) not in given]
                    graph.end(made, written=True, place=place, value=said)
                except Exception as error:
                    operations.recorder.trouble(error)
            return result

        return call

    imports.when_imported(
        "torch._inductor.output_code", lambda module: patching.method(module.CompiledFxGraph, "__call__", around)
    )


def _begun(operations: Operations, inputs: Sequence[Any]) -> tuple[Call, set[int], tuple[str, str, str]] | None:
    try:
        given = [(str(number), one) for number, one in enumerate(inputs) if isinstance(one, Tensor)]
        rest = ",".join(describe(one) for one in inputs if not isinstance(one, Tensor))
        return Call(operations, NAME, given, rest), {id(tensor) for _, tensor in given}, operations.place()
    except Exception as error:
        operations.recorder.trouble(error)
        return None
