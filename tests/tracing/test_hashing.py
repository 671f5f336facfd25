"""Fingerprints on the host: equal bits of equal shape agree, whatever memory they lie in; any other bit does not."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from foxrun.tracing.checksum import BLOCK, LARGE, on_host
from foxrun.tracing.hashing import Hasher

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


def large() -> Tensor:
    """Two whole blocks and more, of bytes that all differ from their neighbours."""
    return torch.arange(2 * 8 * BLOCK + LARGE // 2 + 5, dtype=torch.int64).mul_(251).remainder_(127).to(torch.uint8)


def test_each_bit_of_a_large_tensor_counts() -> None:
    base, edge = large(), 8 * BLOCK
    places = [
        0,
        3,
        4,
        7,
        edge - 1,
        edge,
        edge + 3,
        edge + 4,
        2 * edge - 1,
        2 * edge + 4,
        base.numel() - 5,
        base.numel() - 1,
    ]
    found = {on_host(base)}
    for place in places:
        for bit in (1, 16, 128):
            other = base.clone()
            other[place] ^= bit
            found.add(on_host(other))
    assert len(found) == 1 + 3 * len(places)


def test_large_tensors_whose_signs_or_powers_of_two_are_exchanged_differ() -> None:
    """Changes of high bits alone, in many words at once: a product modulo 2^64 hardly sees them in one view."""
    generator = torch.Generator().manual_seed(3)
    size = LARGE // 4 + 64
    ones = torch.ones(size)
    found = set()
    for step in (1, 2):  # all words, or the upper halves of 8 bytes alone
        for _ in range(100):
            signs = ones.clone()
            signs[step - 1 :: step] = torch.randint(0, 2, (size // step,), generator=generator) * 2.0 - 1
            found |= {
                on_host(signs),
                on_host(torch.exp2(signs)),
                on_host(signs.double()),
                on_host(signs.bfloat16().repeat(2)),
            }
    assert len(found) == 2 * 4 * 100


def test_large_tensors_in_other_places_agree() -> None:
    base = large()
    room = torch.zeros(base.numel() + 64, dtype=torch.uint8)
    for offset in (1, 2, 4, 9):
        room[offset : offset + base.numel()] = base
        assert on_host(room[offset : offset + base.numel()]) == on_host(base)
    assert on_host(base.flip(0)) != on_host(base)
    pairs = base[: 2 * 8 * BLOCK + 64].view(-1, 2)
    assert on_host(pairs.t().contiguous().t()) == on_host(pairs)


def test_a_large_tensor_is_hashed_within_transforms_and_modes() -> None:
    x = torch.linspace(0, 1, LARGE)
    known, seen = on_host(x), []

    def loss(w: Tensor) -> Tensor:
        seen.append(on_host(x))
        return (w * x).sum()

    torch.func.grad(loss)(torch.tensor(2.0))
    torch.vmap(loss)(torch.ones(2))
    with torch.inference_mode(), torch.autocast("cpu"):
        loss(torch.tensor(1.0))
    loss(torch.tensor(1.0, requires_grad=True)).backward()
    assert seen == [known] * 4
