"""Operators against float64 references written another way, and their gradients against autograd's numbers."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from trainer import backward
from trainer.ops import Operators, select

CPU = torch.device("cpu")


@pytest.fixture
def ops() -> Operators:
    return select(1, CPU)


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def sequential_scan(x: Tensor, dt: Tensor, log_decay: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    """The recurrence itself: state = exp(log_decay) state + dt x B^T; y = state C + d x."""
    batch, window, heads, head_dim = x.shape
    state = torch.zeros(batch, heads, head_dim, b.shape[2], dtype=torch.float64)
    rows = []
    for t in range(window):
        grown = torch.einsum("bhp,bn->bhpn", x[:, t] * dt[:, t, :, None], b[:, t])
        state = state * log_decay[:, t].exp()[:, :, None, None] + grown
        rows.append(torch.einsum("bhpn,bn->bhp", state, c[:, t]) + d[:, None] * x[:, t])
    return torch.stack(rows, 1)


@pytest.mark.parametrize("window", [1, 2, 7, 32])
def test_selective_scan_equals_the_recurrence(ops: Operators, window: int) -> None:
    x, b, c = draw(3, window, 2, 4), draw(3, window, 5, seed=1), draw(3, window, 5, seed=2)
    dt = draw(3, window, 2, seed=3).exp() * 0.1
    log_decay, d = -dt * torch.tensor([1.0, 2.0]), draw(2, seed=4)
    expected = sequential_scan(x, dt, log_decay, b, c, d)
    exact = ops.selective_scan(x, dt, log_decay, b, c, d)
    assert float((exact - expected).abs().max()) < 1e-12
    single = ops.selective_scan(*(t.float() for t in (x, dt, log_decay, b, c, d)))
    assert float((single - expected).abs().max() / expected.abs().max()) < 2e-6


def test_selective_scan_never_looks_ahead(ops: Operators) -> None:
    x, b, c = draw(1, 6, 1, 2), draw(1, 6, 3, seed=1), draw(1, 6, 3, seed=2)
    dt = torch.full((1, 6, 1), 0.1, dtype=torch.float64)
    later = x.clone()
    later[:, 4:] += 1.0
    d = torch.ones(1, dtype=torch.float64)
    first, second = (ops.selective_scan(v, dt, -dt, b, c, d)[:, :4] for v in (x, later))
    assert torch.equal(first, second)


def test_strong_decay_stays_finite_and_has_a_gradient(ops: Operators) -> None:
    x, b = draw(1, 32, 1, 2).requires_grad_(), draw(1, 32, 3, seed=1)
    dt = torch.full((1, 32, 1), 50.0, dtype=torch.float64)
    y = ops.selective_scan(x, dt, -dt, b, b, torch.ones(1, dtype=torch.float64))
    (gradient,) = torch.autograd.grad(y.sum(), x)
    assert bool(torch.isfinite(y).all()) and bool(torch.isfinite(gradient).all())


def inputs_of(name: str) -> tuple[Tensor, ...]:
    positive = draw(2, 5, 2, seed=3).exp() * 0.3
    made: dict[str, tuple[Tensor, ...]] = {
        "LayerNorm": (draw(6, 5), draw(5, seed=1), draw(5, seed=2)),
        "GatedRmsNorm": (draw(6, 5), draw(6, 5, seed=1), draw(5, seed=2)),
        "CausalConvSilu": (draw(2, 5, 3), draw(4, 3, seed=1), draw(3, seed=2)),
        "SelectiveScan": (
            draw(2, 5, 2, 3), positive, -positive, draw(2, 5, 4, seed=1), draw(2, 5, 4, seed=2), draw(2, seed=5),
            torch.tril(torch.ones(5, 5, dtype=torch.float64)),
        ),
    }  # fmt: skip
    tensors = made[name]
    trained = tensors[:-1] if name == "SelectiveScan" else tensors
    for tensor in trained:
        tensor.requires_grad_()
    return tensors


@pytest.mark.parametrize("name", ["LayerNorm", "GatedRmsNorm", "CausalConvSilu", "SelectiveScan"])
def test_hand_written_gradients_are_those_of_finite_differences(name: str) -> None:
    assert torch.autograd.gradcheck(getattr(backward, name).apply, inputs_of(name), eps=1e-6, atol=1e-6)


def test_convolution_shorter_than_its_taps() -> None:
    x, weight, bias = (t.requires_grad_() for t in (draw(2, 2, 3), draw(4, 3, seed=1), draw(3, seed=2)))
    assert torch.autograd.gradcheck(backward.CausalConvSilu.apply, (x, weight, bias), eps=1e-6, atol=1e-6)


def test_norms_and_convolution_equal_the_library(ops: Operators) -> None:
    x, w, b = draw(4, 7), draw(7, seed=1), draw(7, seed=2)
    expected = torch.nn.functional.layer_norm(x, (7,), w, b, backward.NORM_EPSILON)
    assert float((ops.layer_norm(x, w, b) - expected).abs().max()) < 1e-14
    gated = x * torch.nn.functional.silu(b * x)
    expected = torch.nn.functional.rms_norm(gated, (7,), w, backward.NORM_EPSILON)
    assert float((ops.gated_rms_norm(x, b * x, w) - expected).abs().max()) < 1e-14
    rows, taps, bias = draw(2, 9, 3), draw(4, 3, seed=3), draw(3, seed=4)
    padded = torch.nn.functional.pad(rows.transpose(1, 2), (3, 0))
    expected = torch.nn.functional.conv1d(padded, taps.t()[:, None], bias, groups=3)
    expected = torch.nn.functional.silu(expected).transpose(1, 2)
    assert float((ops.causal_conv_silu(rows, taps, bias) - expected).abs().max()) < 1e-14


@pytest.mark.parametrize("length", [1, 2, 3, 8, 33])
def test_cumulative_sum(length: int) -> None:
    x = draw(2, length, 3)
    assert float((backward.cumulative_sum(x, 1) - x.cumsum(1)).abs().max()) < 1e-13


def plain_projection(p: list[float], reward: float, discount: float, atoms: list[float]) -> list[float]:
    low, high, n = atoms[0], atoms[-1], len(atoms)
    spacing, out = (high - low) / (n - 1), [0.0] * n
    for mass, atom in zip(p, atoms, strict=True):
        place = (min(max(reward + discount * atom, low), high) - low) / spacing
        lower = min(int(place), n - 2)
        out[lower] += mass * (lower + 1 - place)
        out[lower + 1] += mass * (place - lower)
    return out


def test_projection_moves_mass_as_the_paper_says(ops: Operators) -> None:
    atoms = torch.linspace(-10.0, 10.0, 51, dtype=torch.float64)
    p = torch.softmax(draw(5, 51), 1)
    reward = torch.tensor([0.0, 0.37, -20.0, 25.0, 1.0], dtype=torch.float64)
    discount = torch.tensor([1.0, 0.99, 0.99, 0.5, 0.0], dtype=torch.float64)
    found = ops.project_distribution(p, reward, discount, atoms, -10.0, 10.0)
    for row in range(5):
        expected = plain_projection(p[row].tolist(), float(reward[row]), float(discount[row]), atoms.tolist())
        assert found[row].tolist() == pytest.approx(expected, abs=1e-12)
    assert float((found.sum(1) - 1.0).abs().max()) < 1e-12


def test_argmax_takes_the_first_of_equals(ops: Operators) -> None:
    x = torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0], [0.0, -1.0, 5.0]])
    assert ops.argmax(x).tolist() == [1, 0, 2]
