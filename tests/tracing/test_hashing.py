"""Fingerprints on the host: equal bits of equal shape agree, whatever memory they lie in; any other bit does not."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from foxrun.tracing.hashing import Hasher, on_host

BASE = torch.arange(24, dtype=torch.float32).reshape(4, 6)


@pytest.mark.parametrize(
    "other",
    [
        BASE.t().contiguous().t(),
        torch.cat([BASE, BASE])[:4],
        BASE.clone().requires_grad_(),
        torch.stack([BASE, BASE], -1)[..., 1],
    ],
)
def test_equal_elements_agree_in_whatever_memory(other: Tensor) -> None:
    assert on_host(other) == on_host(BASE)


def test_a_bit_an_order_a_size_or_a_sign_of_zero_makes_another() -> None:
    nudged = BASE.clone()
    nudged[2, 3] = torch.nextafter(nudged[2, 3], torch.tensor(99.0))
    zero = torch.zeros(3)
    found = [on_host(t) for t in (BASE, nudged, BASE.flip(0), BASE.double(), zero, -zero, zero[:2], torch.empty(0))]
    assert len(set(found)) == len(found) and all(0 < f < 1 << 64 for f in found)


def test_what_is_true_is_true_whatever_its_byte() -> None:
    odd = torch.tensor([2, 0, 255], dtype=torch.uint8).view(torch.bool)
    assert on_host(odd) == on_host(torch.tensor([True, False, True]))


def test_conjugates_and_negatives_are_hashed_as_they_read() -> None:
    z = torch.tensor([1 + 2j, 3 - 1j])
    assert on_host(z.conj()) == on_host(torch.tensor([1 - 2j, 3 + 1j]))
    assert on_host(z.conj().imag) == on_host(torch.tensor([-2.0, 1.0]))


def test_slots_are_resolved_in_their_order() -> None:
    hasher = Hasher()
    slots = [hasher.add(BASE), hasher.add(BASE + 1)]
    found = hasher.resolve()
    assert [found[slot] for slot in slots] == [on_host(BASE), on_host(BASE + 1)]
    assert len(hasher) == 0 and hasher.resolve() == {}
