"""Fingerprints of many leaves at once equal those of the run contract one by one; rows leave in blocks, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
import torch
from torch import Tensor

import foxrun
from trainer.exact import fused
from trainer.exact.tape import LeafSpec, Tape

CPU = torch.device("cpu")


def tensors() -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)

    def bits(n: int) -> Tensor:
        return torch.randint(-(2**31), 2**31, (n,), generator=generator, dtype=torch.int64).to(torch.int32)

    large = bits(40_000).view(torch.float32)  # NaNs with payloads, infinities and denormals among them
    return [
        bits(1).view(torch.float32)[0],
        large,
        bits(2049).view(torch.float32),
        torch.tensor([1, -1, 2**62]),
        torch.tensor([True, False]),
        torch.arange(12, dtype=torch.float32).view(3, 4).t(),
        torch.tensor(1.5, dtype=torch.float64),
        torch.randn(3000, dtype=torch.float64, generator=generator),
        torch.tensor([1.0, -0.0], dtype=torch.bfloat16),
        torch.tensor([200, 3], dtype=torch.uint8),
    ]


@pytest.mark.parametrize("kind", ["cpu", "device"])
def test_fused_fingerprints_equal_the_contracts(kind: str) -> None:
    given = tensors()
    shapes = [(tuple(t.shape), t.dtype) for t in given]
    made = fused.OnCpu(shapes) if kind == "cpu" else fused.OnDevice(shapes, CPU)
    expected = [foxrun.fingerprint(t) for t in given]
    for same in (given, given, tuple(given)):  # buffers are used again
        assert [int(f) & (2**64 - 1) for f in made(same)] == expected


def test_tensors_that_stay_are_read_again() -> None:
    small, large = torch.zeros(3), torch.zeros(5000)
    kept = (small, large)
    made = fused.OnCpu([((3,), torch.float32), ((5000,), torch.float32)])
    made(kept)
    small += 1.0
    large[4999] = -0.0
    assert [int(f) & (2**64 - 1) for f in made(kept)] == [foxrun.fingerprint(small), foxrun.fingerprint(large)]


def test_the_contracts_vectors() -> None:
    given = [torch.tensor([0.0]), torch.tensor([-0.0]), torch.arange(12.0), torch.tensor([1, -1, 2**62])]
    made = fused.plan([(tuple(t.shape), t.dtype) for t in given], CPU)
    assert [f"{int(f) & (2**64 - 1):016x}" for f in made(given)] == [
        "1937da9f8ad16e78", "5c606f2c41d91435", "25125554db033f92", "b0916487b93967c3",
    ]  # fmt: skip


def test_an_empty_leaf_is_refused() -> None:
    with pytest.raises(ValueError, match="no elements"):
        fused.plan([((0, 3), torch.float32)], CPU)


class Sink:
    def __init__(self) -> None:
        self.calls: list[int] = []
        self.rows: list[Mapping[str, object]] = []
        self.bits = b""

    def append(self, rows: Sequence[Mapping[str, object]], bits: bytes) -> None:
        self.calls.append(len(rows))
        self.rows += rows
        self.bits += bits


def spec(name: str, group: str, checksum: bool = False) -> LeafSpec:
    return LeafSpec(
        name=name, component="c", kind="state", group=group, shape=(2,), dtype=torch.float32, checksum=checksum
    )


def fill(tape: Tape, sink: Sink, steps: int) -> None:
    for step in range(steps):
        tape.take("state", [torch.tensor([step, 1.0]), torch.tensor([2.0, step])])
        if step % 2 == 0:
            tape.take("late", [torch.tensor([0.5, step])])
        tape.close_row(step, "train", {"loss": torch.tensor(step * 0.5)}, sink)
    tape.flush(sink)


def test_rows_leave_in_blocks_with_zero_for_what_was_not_taken() -> None:
    leaves = [spec("a", "state", True), spec("b", "state"), spec("z", "late", True)]
    tape, sink = Tape(leaves, {"train": ("loss",)}, CPU, fingerprints=True, block_rows=4), Sink()
    fill(tape, sink, 10)
    assert sink.calls == [4, 4, 2]
    assert [row["step"] for row in sink.rows] == list(range(10))
    assert sink.rows[2] == {"step": 2, "phase": "train", "checksums": {"a": 3.0, "z": 2.5}, "metrics": {"loss": 1.0}}
    assert sink.rows[3] == {"step": 3, "phase": "train", "checksums": {"a": 4.0}, "metrics": {"loss": 1.5}}
    table = np.frombuffer(sink.bits, dtype="<u8").reshape(10, 3)
    for step in range(10):
        assert table[step, 0] == foxrun.fingerprint(torch.tensor([step, 1.0]))
        assert table[step, 1] == foxrun.fingerprint(torch.tensor([2.0, step]))
        assert table[step, 2] == (0 if step % 2 else foxrun.fingerprint(torch.tensor([0.5, step])))


def test_without_fingerprints_checksums_stay() -> None:
    leaves = [spec("a", "state", True), spec("b", "state"), spec("z", "late", True)]
    tape, sink = Tape(leaves, {"train": ("loss",)}, CPU, fingerprints=False, block_rows=4), Sink()
    fill(tape, sink, 3)
    assert sink.bits == b"" and tape.run_leaves() == []
    assert sink.rows[0]["checksums"] == {"a": 1.0, "z": 0.5}


def test_scattered_groups_are_refused() -> None:
    with pytest.raises(ValueError, match="contiguous"):
        Tape([spec("a", "x"), spec("b", "y"), spec("c", "x")], {}, CPU, fingerprints=True)
