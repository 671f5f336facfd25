"""Observations about operations, measurements and memory never written: small functions over Facts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from orchestrator.localize.beyond import is_past
from orchestrator.localize.causes import DECISIVE, PLAIN, STRONG, WEAK, Evidence, Test
from orchestrator.localize.facts import Facts
from orchestrator.localize.result import CONTROL_FLOW, OUTPUTS_DIFFER

# torch.use_deterministic_algorithms' page names these as nondeterministic or as having a deterministic alternative;
# on a CPU the same ones write from several threads.
# https://docs.pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html
ADDS_ATOMICALLY = frozenset(
    ["index_add", "index_add_", "scatter_add", "scatter_add_", "scatter_reduce", "scatter_reduce_", "index_reduce_",
     "index_reduce", "embedding_dense_backward", "_embedding_bag_dense_backward", "embedding_bag_backward", "bincount",
     "histc", "_index_put_impl_", "kthvalue", "median", "nll_loss2d_forward", "ctc_loss_backward",
     "_ctc_loss_backward", "grid_sampler_2d_backward", "grid_sampler_3d_backward", "gather_backward", "take_backward",
     "upsample_linear1d_backward", "upsample_bilinear2d_backward", "upsample_bicubic2d_backward",
     "upsample_trilinear3d_backward", "_upsample_bilinear2d_aa_backward", "reflection_pad1d_backward",
     "reflection_pad2d_backward", "reflection_pad3d_backward", "replication_pad1d_backward",
     "replication_pad2d_backward", "replication_pad3d_backward", "adaptive_max_pool2d_backward",
     "_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward", "adaptive_max_pool3d_backward",
     "avg_pool3d_backward", "fractional_max_pool2d_backward", "fractional_max_pool3d_backward",
     "max_pool3d_with_indices_backward", "max_unpool2d", "max_unpool3d", "segment_reduce",
     "_segment_reduce_backward", "sparse_coo_coalesce", "_coalesce", "roi_align_backward", "ps_roi_align_backward",
     "deform_conv2d_backward", "select_backward_accumulate", "_flash_attention_backward",
     "_efficient_attention_backward", "_scaled_dot_product_flash_attention_backward",
     "_scaled_dot_product_efficient_attention_backward", "_scaled_dot_product_cudnn_attention_backward"]
)  # fmt: skip
WRITES_BY_INDEX = frozenset(
    ["index_put", "index_put_", "_index_put_impl_", "_unsafe_index_put", "scatter", "scatter_", "index_copy",
     "index_copy_", "put_", "put", "index_fill_", "masked_scatter_", "scatter_reduce_"]
)  # fmt: skip
SCANS = frozenset(["cumsum", "cumsum_", "cumprod", "cumprod_", "logcumsumexp", "_cumsum", "associative_scan", "cummax"])
MATMULS = frozenset(
    ["mm", "addmm", "addmm_", "bmm", "baddbmm", "matmul", "linear", "addmv", "mv", "dot", "_scaled_mm", "addbmm",
     "_addmm_activation", "einsum", "linear_backward", "mkldnn_linear", "_scaled_dot_product_flash_attention",
     "_scaled_dot_product_efficient_attention", "_scaled_dot_product_attention_math"]
)  # fmt: skip
REDUCTIONS = frozenset(
    ["sum", "mean", "norm", "linalg_vector_norm", "var", "std", "var_mean", "logsumexp", "_softmax", "_log_softmax",
     "native_layer_norm", "native_layer_norm_backward", "native_batch_norm", "native_batch_norm_backward",
     "native_group_norm", "native_group_norm_backward", "prod", "nll_loss_forward", "mse_loss", "_foreach_norm",
     "_log_softmax_backward_data", "_softmax_backward_data", "dot", "vdot"]
)  # fmt: skip
ATTENTION = re.compile(r"attention", re.IGNORECASE)
CONVOLUTIONS = re.compile(r"conv|cudnn|miopen|_thnn_fused_(lstm|gru)|rnn", re.IGNORECASE)
SCAN_NAME = re.compile(r"scan|ssd|mamba|cumul|prefix|recurren", re.IGNORECASE)
COMPUTES = ("op", "kernel")


def test(weight: int) -> Callable[[Callable[[Facts], str | None]], Test]:
    """A test from a function that gives the text of its evidence, or None."""

    def made(function: Callable[[Facts], str | None]) -> Test:
        def look(facts: Facts) -> Evidence | None:
            text = function(facts)
            return None if text is None else Evidence(text=text, weight=weight)

        look.__doc__ = function.__doc__
        look.__name__ = function.__name__
        return look

    return made


def narrowed(name: str) -> Test:
    """Twins that differ in this alone."""

    def look(facts: Facts) -> Evidence | None:
        parted = facts.narrowed.get(name)
        if parted is None:
            return None
        if parted and not facts.narrowed.get("nothing"):
            return Evidence(text=f"twins that differ in {name} alone part", weight=DECISIVE)
        return None if parted else Evidence(text=f"twins that differ in {name} alone agreed", weight=-PLAIN)

    look.__doc__ = f"do twins that differ in {name} alone part?"
    return look


def remedied(name: str, weight: int = STRONG, *, against: int = STRONG) -> Test:
    """With the switch that rules this cause out and nothing else."""

    def look(facts: Facts) -> Evidence | None:
        parted = facts.remedied.get(name)
        if parted is None:
            if name not in facts.moved:
                return None
            return Evidence(text=f"with {name} a pair parted elsewhere", weight=min(weight, PLAIN))
        if parted:
            return Evidence(text=f"{name} changes nothing", weight=-against)
        return Evidence(text=f"{name} alone makes the twins agree", weight=weight)

    look.__doc__ = f"does {name} alone make the twins agree?"
    return look


def computed(facts: Facts) -> bool:
    """Whether an operation got equal inputs and gave different outputs, of memory that it had written."""
    origin = facts.origin
    return (
        origin is not None
        and origin.how == OUTPUTS_DIFFER
        and not origin.outside
        and not origin.unset
        and origin.a.kind in COMPUTES
    )


def operation_in(names: frozenset[str], what: str, weight: int = STRONG, *, unless: str = "") -> Test:
    """The origin is one of these operations, with equal inputs."""

    def look(facts: Facts) -> Evidence | None:
        if (
            not computed(facts)
            or facts.op not in names
            or (unless and unless in (facts.origin.a.shapes if facts.origin else ""))
        ):
            return None
        assert facts.origin is not None
        return Evidence(text=f"{facts.origin.a.name} {what}, and its inputs agree", weight=weight)

    look.__doc__ = f"is the origin an operation that {what}, with equal inputs?"
    return look


@test(STRONG)
def accumulates_by_index(facts: Facts) -> str | None:
    """is the origin index_put_ that accumulates?"""
    if (
        computed(facts)
        and facts.op in ("index_put_", "index_put", "_index_put_impl_", "_unsafe_index_put", "put_", "put")
        and facts.origin
        and "True" in facts.origin.a.shapes
    ):
        return f"{facts.origin.a.name} accumulates: several threads add to one element"
    return None


def words_in(pattern: re.Pattern[str], what: str, weight: int) -> Test:
    """Words of the origin's name."""

    def look(facts: Facts) -> Evidence | None:
        if not computed(facts) or facts.origin is None:
            return None
        found = pattern.search(f"{facts.origin.a.name} {facts.origin.a.where} {facts.origin.a.module}")
        return Evidence(text=f"{facts.origin.a.name} {what}", weight=weight) if found else None

    look.__doc__ = f"is the origin an operation that {what}?"
    return look


def family(facts: Facts) -> str:
    """What the origin's operation is known for: its own way of giving other sums; empty where it is known for none."""
    if facts.origin is None:
        return ""
    name = facts.origin.a.name
    if accumulates_by_index(facts) is not None or facts.op in ADDS_ATOMICALLY:
        return "adds"
    if facts.op in WRITES_BY_INDEX:
        return "writes"
    if facts.op in SCANS or SCAN_NAME.search(name):
        return "scans"
    if CONVOLUTIONS.search(name):
        return "convolves"
    return "multiplies" if facts.op in MATMULS or ATTENTION.search(name) else ""


def replay_parts_here(*families: str) -> Test:
    """The operation alone, on equal inputs, in one process: it speaks for the causes that its kind is known for."""

    def look(facts: Facts) -> Evidence | None:
        r = facts.replay
        if r is None or not r.runs or not r.parted or not computed(facts):
            return None
        known = family(facts)
        if known and known not in families:
            return None
        text = f"replayed alone on its own inputs it differed in {r.parted} of {r.runs} runs"
        return Evidence(text=text, weight=STRONG if known else PLAIN)

    look.__doc__ = "does the operation alone, on equal inputs, give different outputs within one process?"
    return look


def made_equal_by(name: str, *families: str) -> Test:
    """A switch that several causes share speaks for those that the operation's kind is known for."""
    measured = remedied(name)

    def look(facts: Facts) -> Evidence | None:
        known = family(facts)
        return measured(facts) if not known or known in families else None

    look.__doc__ = measured.__doc__
    return look


@test(-PLAIN)
def replay_agrees(facts: Facts) -> str | None:
    """does the operation alone give equal outputs each time, under other threads and memory as well?"""
    r = facts.replay
    if r is None or r.runs < 10 or r.parted or any("parted" in text for text in r.varied.values()):
        return None
    return f"replayed alone it gave equal bits in {r.runs} runs"


def replay_varies(what: str, weight: int = STRONG) -> Test:
    """Replayed under another setting."""

    def look(facts: Facts) -> Evidence | None:
        text = facts.replay.varied.get(what, "") if facts.replay is not None else ""
        if text.startswith("parted") and facts.replay is not None and not facts.replay.parted:
            return Evidence(text=f"replayed alone it differs only with other {what}", weight=weight)
        return None

    look.__doc__ = f"does the operation alone differ with other {what} only?"
    return look


@test(DECISIVE)
def reads_unset(facts: Facts) -> str | None:
    """was memory read that nobody had written?"""
    origin = facts.origin
    if origin is None or not origin.unset:
        return None
    return (
        f"{origin.a.name} at {origin.a.where or 'an unknown line'} made memory that nobody wrote whole; {origin.detail}"
    )


@test(STRONG)
def filled_hides(facts: Facts) -> str | None:
    """do the twins agree when fresh memory is filled?"""
    if facts.remedied.get("filled-memory") is False:
        return "the twins agree when fresh memory is filled with one value, and part when it is not"
    return None


@test(-STRONG)
def filled_parts(facts: Facts) -> str | None:
    """do the twins part when fresh memory is filled?"""
    return (
        "the twins part though fresh memory is filled with one value" if facts.remedied.get("filled-memory") else None
    )


@test(PLAIN)
def duplicates(facts: Facts) -> str | None:
    """does the index hold one place twice?"""
    return "its index holds one place more than once" if facts.duplicates else None


@test(PLAIN)
def kernel_parts(facts: Facts) -> str | None:
    """is it a kernel of the program's own?"""
    if computed(facts) and facts.kind == "kernel" and facts.origin is not None:
        return f"{facts.origin.a.name} is a kernel of its own, and its inputs agree"
    return None


@test(STRONG)
def convolution_on_cuda(facts: Facts) -> str | None:
    """is it a convolution or a recurrent cell on a GPU?"""
    if computed(facts) and facts.cuda and facts.origin is not None and CONVOLUTIONS.search(facts.origin.a.name):
        return f"{facts.origin.a.name} runs in cuDNN, and its inputs agree"
    return None


@test(PLAIN)
def matmul(facts: Facts) -> str | None:
    """is it a product that a library computes?"""
    if (
        computed(facts)
        and facts.origin is not None
        and (facts.op in MATMULS or CONVOLUTIONS.search(facts.origin.a.name))
    ):
        return f"{facts.origin.a.name} is computed by a library that chooses among algorithms, and its inputs agree"
    return None


ADDS_IN_SOURCE = re.compile(r"atomic", re.IGNORECASE)


@test(STRONG)
def threads_alone(facts: Facts) -> str | None:
    """do twins agree at one thread count and part at two different ones?"""
    if facts.parted_kind == "threads" and facts.hostile_agreed and facts.origin is not None:
        n = facts.hostile_agreed
        return f"{n} pair{'s' if n > 1 else ''} with equal thread counts agreed; with different ones the twins part"
    return None


@test(-STRONG)
def parts_at_one_count(facts: Facts) -> str | None:
    """do twins part at equal thread counts?"""
    return "the twins part with equal thread counts too" if facts.parted_kind != "threads" and computed(facts) else None


@test(STRONG)
def low_precision(facts: Facts) -> str | None:
    """is it a product in reduced precision?"""
    if not computed(facts) or facts.op not in MATMULS or facts.origin is None:
        return None
    if any(
        _knob(header, "float32_matmul_precision") in ("high", "medium") for header in (facts.header, facts.other_header)
    ):
        return f"{facts.origin.a.name} may run in TF32"
    if re.search(r"\b(bf16|f16)\[", facts.origin.a.shapes):
        return f"{facts.origin.a.name} multiplies 16-bit floats"
    return None


def _knob(header: Mapping[str, Any], name: str) -> Any:
    knobs = header.get("knobs")
    return knobs.get(name) if isinstance(knobs, dict) else None


def knob_is(name: str, value: object, weight: int = PLAIN) -> Test:
    """A setting of torch, for an operation of the GPU."""

    def look(facts: Facts) -> Evidence | None:
        if not (computed(facts) and facts.knob(name) == value):
            return None
        return Evidence(text=f"{name} is {value!r}", weight=weight)

    look.__doc__ = f"is {name} {value!r}?"
    return look


@test(STRONG)
def config_differs(facts: Facts) -> str | None:
    """did a kernel run with another configuration?"""
    origin = facts.origin
    if origin is None or origin.a.kind != "kernel" or origin.a.value == origin.b.value:
        return None
    if is_past(origin.a) or is_past(origin.b):
        return None
    return f"the kernel ran as {origin.a.value} and as {origin.b.value}"


@test(WEAK)
def reduces(facts: Facts) -> str | None:
    """is it a reduction on a CPU?"""
    if (
        computed(facts)
        and not facts.cuda
        and facts.origin is not None
        and (facts.op in REDUCTIONS or facts.op in MATMULS)
    ):
        return f"{facts.origin.a.name} is split by the number of threads"
    return None


@test(PLAIN)
def machine_read_before(facts: Facts) -> str | None:
    """did the program read what the machine has before a sum came out in another way?"""
    lead = facts.lead("machine")
    return f"{lead.text}, and then equal inputs give other sums" if lead is not None and computed(facts) else None


def own_kernel_adds(facts: Facts) -> Evidence | None:
    """is it a kernel of the program's own whose code adds atomically?"""
    if (
        not computed(facts)
        or facts.kind != "kernel"
        or facts.origin is None
        or facts.origin.a.value != facts.origin.b.value
    ):
        return None
    text = f"{facts.origin.a.name} is a kernel of the program's own, and its inputs agree"
    if any(ADDS_IN_SOURCE.search(line) for line in facts.lines):
        return Evidence(text=f"{text}; the code there adds atomically", weight=STRONG)
    if any(ADDS_IN_SOURCE.search(line) for line in facts.code):
        return Evidence(text=f"{text}; code in its file adds atomically", weight=PLAIN)
    return None


@test(DECISIVE)
def casts_in_one(facts: Facts) -> str | None:
    """does one twin compute in 16 bits where the other does not?"""
    if facts.origin is None or facts.how != CONTROL_FLOW:
        return None
    narrow = [
        bool(re.search(r"\b(bf16|f16)\[|dtype=(bfloat16|float16)", e.shapes)) for e in (facts.origin.a, facts.origin.b)
    ]
    return "one twin computes in 16 bits where the other does not" if narrow[0] != narrow[1] else None
