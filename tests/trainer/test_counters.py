"""Draws equal a plain-Python implementation of the same mixing, and depend on nothing but their four arguments."""

from __future__ import annotations

import pytest
import torch

from trainer.exact.counters import Counters, Purpose

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def bits(seed: int, purpose: int, step: int, element: int) -> int:
    stem = mix((mix((seed + GOLDEN) & MASK) + purpose * GOLDEN) & MASK)
    key = mix((stem + (step + 1) * GOLDEN) & MASK)
    return mix((key + (element + 1) * GOLDEN) & MASK)


@pytest.mark.parametrize("seed", [0, 42, (1 << 63) - 1, MASK])
@pytest.mark.parametrize("step", [0, 1, 10**9])
def test_draws_equal_the_plain_implementation(seed: int, step: int) -> None:
    counters = Counters(seed, torch.device("cpu"))
    keys = counters.keys(torch.tensor(step))
    for purpose in Purpose:
        expected = [bits(seed, int(purpose), step, element) for element in range(5)]
        assert [int(b) & MASK for b in counters.bits(keys, purpose, 5)] == expected
        assert counters.uniform(keys, purpose, 5).tolist() == [(b >> 40) / 2**24 for b in expected]


def test_a_draw_does_not_depend_on_how_many_are_drawn() -> None:
    counters = Counters(3, torch.device("cpu"))
    keys = counters.keys(torch.tensor(5))
    long = counters.bits(keys, Purpose.REPLAY_SAMPLE, 100)
    assert torch.equal(long[:7], counters.bits(keys, Purpose.REPLAY_SAMPLE, 7))


def test_purposes_steps_and_seeds_do_not_share_draws() -> None:
    seen = set()
    for seed in (1, 2):
        counters = Counters(seed, torch.device("cpu"))
        for step in range(4):
            keys = counters.keys(torch.tensor(step))
            for purpose in Purpose:
                seen.update(counters.bits(keys, purpose, 16).tolist())
    assert len(seen) == 2 * 4 * len(Purpose) * 16


def test_uniform_draws_fill_the_unit_interval_evenly() -> None:
    counters = Counters(9, torch.device("cpu"))
    draws = counters.uniform(counters.keys(torch.tensor(0)), Purpose.PARAMETERS, 1 << 16)
    assert float(draws.min()) >= 0.0
    assert float(draws.max()) < 1.0
    counts = torch.histc(draws, bins=16, min=0.0, max=1.0)
    assert float((counts - 4096).abs().max()) < 5 * 64  # five standard deviations
