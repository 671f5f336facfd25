"""Tensors have the fingerprint of their bytes, whatever the dtype, the strides and the size."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from foxrun import ContractError, fingerprint
from foxrun.tensor_fingerprint import CHUNK, fingerprint_many, fingerprint_tensor

MASK = (1 << 64) - 1
DTYPES = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2,
    torch.complex128, torch.complex64, torch.complex32, torch.bool,
    torch.int64, torch.int32, torch.int16, torch.int8, torch.uint64, torch.uint32, torch.uint16, torch.uint8,
]  # fmt: skip
PARTS = {torch.complex128: torch.float64, torch.complex64: torch.float32, torch.complex32: torch.float16}
VECTORS = [
    (torch.tensor([]), "b7a4712c74562914"),
    (torch.tensor([0.0]), "1937da9f8ad16e78"),
    (torch.tensor([-0.0]), "5c606f2c41d91435"),
    (torch.arange(12.0), "25125554db033f92"),
    (torch.tensor([1, -1, 2**62]), "b0916487b93967c3"),
    (torch.tensor([True, False]), "a8abc67543efc93e"),
    (torch.tensor([1.0], dtype=torch.bfloat16), "23eb4e44b8dceee7"),
]


def random_bits(shape: tuple[int, ...], dtype: torch.dtype, seed: int) -> torch.Tensor:
    """Every bit pattern may come: NaNs with payloads, infinities, denormal numbers."""
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    size = dtype.itemsize
    raw = torch.randint(0, 256, (*shape, size), dtype=torch.uint8, generator=generator)
    if dtype.is_complex:
        return torch.view_as_complex(raw.view(PARTS[dtype]))
    return raw.view(dtype).reshape(shape)


def plain(tensor: torch.Tensor) -> int:
    """The fingerprint by plain Python over the bytes in row-major order."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    size = tensor.element_size()
    integers = tensor.view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[size]).flatten().tolist()
    return fingerprint(b"".join((one % 256**size).to_bytes(size, "little") for one in integers), size)


@pytest.mark.parametrize(("tensor", "expected"), VECTORS)
def test_vectors(tensor: torch.Tensor, expected: str) -> None:
    assert f"{fingerprint(tensor):016x}" == expected
    assert f"{fingerprint_tensor(tensor).item() & MASK:016x}" == expected
    assert f"{fingerprint_many([tensor])[0].item() & MASK:016x}" == expected


@st.composite
def tensors(draw: st.DrawFn) -> torch.Tensor:
    shape = draw(st.lists(st.integers(0, 5), max_size=4).map(tuple))
    tensor = random_bits(shape, draw(st.sampled_from(DTYPES)), draw(st.integers(0, 2**31)))
    if shape:
        tensor = tensor.permute(draw(st.permutations(range(len(shape)))))
        which = draw(st.integers(0, len(shape) - 1))
        if tensor.shape[which]:
            tensor = tensor.narrow(which, 0, draw(st.integers(1, tensor.shape[which])))
            if draw(st.booleans()):
                tensor = tensor.unsqueeze(which).expand(*tensor.shape[:which], 3, *tensor.shape[which:])
    return tensor


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(tensors(), min_size=1, max_size=6))
def test_agrees_with_plain_python_for_any_dtype_and_strides(many: list[torch.Tensor]) -> None:
    expected = [plain(tensor) for tensor in many]
    assert [fingerprint_tensor(tensor).item() & MASK for tensor in many] == expected
    assert [value & MASK for value in fingerprint_many(many).tolist()] == expected


@pytest.mark.parametrize("count", [CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int64])
def test_agrees_with_plain_python_across_chunks(count: int, dtype: torch.dtype) -> None:
    tensor = random_bits((count,), dtype, count)
    expected = plain(tensor)
    assert fingerprint(tensor) == expected
    assert fingerprint_many([tensor, tensor[:7]])[0].item() & MASK == expected


def test_many_small_and_large_ones_together_keep_their_order() -> None:
    sizes = [0, 1, 5000, 3, 20000, 4096, 4097, 0, 17] * 20
    many = [random_bits((size,), DTYPES[index % len(DTYPES)], index) for index, size in enumerate(sizes)]
    assert fingerprint_many(many).tolist() == [fingerprint_tensor(tensor).item() for tensor in many]


def test_memory_format_does_not_matter() -> None:
    image = random_bits((2, 3, 4, 5), torch.float32, 1)
    assert fingerprint(image.to(memory_format=torch.channels_last)) == fingerprint(image)


def test_a_view_with_a_conjugate_or_negative_bit_counts_as_its_values() -> None:
    value = torch.tensor([1 + 2j, 3 - 4j])
    assert fingerprint(value.conj()) == fingerprint(value.conj().resolve_conj()) != fingerprint(value)
    assert fingerprint(value.conj().imag) == fingerprint(torch.tensor([-2.0, 4.0]))


def test_a_nan_keeps_its_payload_through_a_copy() -> None:
    patterns = [0x7FC00000, 0x7FC00001, 0x7F800001, 0xFFC00000]  # quiet, quiet with payload, signalling, negative
    words = torch.tensor(patterns, dtype=torch.uint32).view(torch.float32)
    strided = torch.stack([words, words], dim=1)[:, 0]
    assert not strided.is_contiguous()
    assert fingerprint(strided) == fingerprint(words) == fingerprint(torch.tensor(patterns, dtype=torch.uint32))
    assert len({fingerprint(words[index : index + 1]) for index in range(4)}) == 4


def test_parameters_and_inference_mode_are_no_trouble() -> None:
    parameter = torch.nn.Parameter(torch.arange(12.0))
    assert fingerprint(parameter) == 0x25125554DB033F92
    with torch.inference_mode():
        assert fingerprint_many([torch.arange(12.0), torch.zeros(1)])[0].item() == 0x25125554DB033F92
    assert fingerprint_many([parameter, torch.zeros(1)]).tolist()[0] == 0x25125554DB033F92


def test_the_tensor_is_left_as_it_is() -> None:
    tensor = torch.arange(12)
    fingerprint(tensor)
    fingerprint_many([tensor])
    assert tensor.tolist() == list(range(12))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_cuda_device_gives_the_same(dtype: torch.dtype) -> None:
    many = [random_bits(shape, dtype, 3) for shape in ((), (0,), (7, 5), (70_000,))]
    there = [tensor.cuda() for tensor in many]
    expected = [fingerprint_tensor(tensor).item() for tensor in many]
    assert fingerprint_many(there).tolist() == expected
    assert [fingerprint_tensor(tensor).item() for tensor in there] == expected
    torch.use_deterministic_algorithms(True)
    try:
        assert fingerprint_many(there).tolist() == expected
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.eye(3).to_sparse(),
        lambda: torch.empty(3, device="meta"),
    ],
)
def test_tensors_without_stored_bits_are_refused(make: Any) -> None:
    with pytest.raises(ContractError, match="no fingerprint; give a dense tensor"):
        fingerprint(make())


def test_an_itemsize_beside_a_tensor_is_refused() -> None:
    with pytest.raises(ContractError, match="leave itemsize out"):
        fingerprint(torch.zeros(3), 4)
