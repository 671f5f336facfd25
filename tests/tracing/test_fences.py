"""What lies behind the tensors of a launch: seen where it is written, left alone where another argument covers it."""

from __future__ import annotations

import torch

from foxrun.tracing import fences


def said(given: list[torch.Tensor], written: torch.Tensor | None) -> str:
    put = fences.put([(str(i), tensor) for i, tensor in enumerate(given)])
    if written is not None:
        written.add_(1)
    told = fences.look(put)
    return told if isinstance(told, str) else told()


def test_a_write_behind_a_view_is_told_with_its_bytes() -> None:
    whole = torch.zeros(16)
    assert said([whole[:4]], None) == ""
    # 1.0 and 0.0 part in two bytes each.
    told = "writes past its view: 4 bytes behind f32[4], in the storage that it is a view of"
    assert said([whole[:4]], whole[4:6]) == told
    assert whole.tolist() == [0.0] * 4 + [1.0] * 2 + [0.0] * 10


def test_what_is_handed_over_may_be_written() -> None:
    whole = torch.zeros(16)
    assert said([whole[:4], whole[4:]], whole[4:6]) == ""
    assert said([whole], whole) == ""
    strided = whole.view(4, 4)[:, 0]  # its last element is the 13th
    assert said([strided], whole[8:13]) == ""
    assert said([strided], whole[13:14]).startswith("writes past its view")
