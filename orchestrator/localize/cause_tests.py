"""The observations that speak for or against causes: small pure functions over Facts."""

from __future__ import annotations

import re
from collections.abc import Callable

from orchestrator.localize.causes import DECISIVE, PLAIN, STRONG, WEAK, Evidence, Test
from orchestrator.localize.facts import Facts
from orchestrator.localize.result import CHANGED_BEHIND, CONTROL_FLOW, HOST_VALUE, OUTPUTS_DIFFER, REORDERED, SEED

# torch.use_deterministic_algorithms' page names these as nondeterministic or as having a deterministic alternative;
# on a CPU the same ones write from several threads.
# https://docs.pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html
ADDS_ATOMICALLY = frozenset(
    ["index_add", "index_add_", "scatter_add", "scatter_add_", "scatter_reduce", "scatter_reduce_", "index_reduce_",
     "index_reduce", "embedding_dense_backward", "_embedding_bag_dense_backward", "embedding_bag_backward", "bincount",
     "histc", "_index_put_impl_", "put_", "put", "kthvalue", "median", "nll_loss2d_forward", "ctc_loss_backward",
     "_ctc_loss_backward", "grid_sampler_2d_backward", "grid_sampler_3d_backward", "gather_backward", "take_backward",
     "upsample_linear1d_backward", "upsample_bilinear2d_backward", "upsample_bicubic2d_backward",
     "upsample_trilinear3d_backward", "_upsample_bilinear2d_aa_backward", "reflection_pad1d_backward",
     "reflection_pad2d_backward", "reflection_pad3d_backward", "replication_pad1d_backward",
     "replication_pad2d_backward", "replication_pad3d_backward", "adaptive_max_pool2d_backward",
     "_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward", "adaptive_max_pool3d_backward",
     "avg_pool3d_backward", "fractional_max_pool2d_backward", "fractional_max_pool3d_backward",
     "max_pool3d_with_indices_backward", "max_unpool2d", "max_unpool3d", "segment_reduce",
     "_segment_reduce_backward", "sparse_coo_coalesce", "_coalesce", "roi_align_backward", "ps_roi_align_backward",
     "deform_conv2d_backward", "select_backward_accumulate"]
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
REPLAY_WORDS = re.compile(r"replay|rollout_?buffer|experience|transition")
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


def remedied(name: str, weight: int = STRONG) -> Test:
    """With the switch that rules this cause out and nothing else."""

    def look(facts: Facts) -> Evidence | None:
        parted = facts.remedied.get(name)
        if parted is None:
            return None
        if parted:
            return Evidence(text=f"{name} changes nothing", weight=-STRONG)
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
        and facts.op in ("index_put_", "index_put", "_index_put_impl_", "_unsafe_index_put", "put_")
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


@test(STRONG)
def replay_parts_here(facts: Facts) -> str | None:
    """does the operation alone, on equal inputs, give different outputs within one process?"""
    r = facts.replay
    if r is None or not r.runs or not r.parted or not computed(facts):
        return None
    return f"replayed alone on its own inputs it differed in {r.parted} of {r.runs} runs"


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


def origin_is_draw_or_seed(facts: Facts) -> bool:
    """Whether randomness itself is where the twins part."""
    return facts.kind in ("draw", "seed") or facts.how == SEED


@test(STRONG)
def seeded_by_nobody(facts: Facts) -> str | None:
    """is a generator in another state before anybody seeded it?"""
    origin = facts.origin
    if origin is None or facts.in_child:
        return None
    if origin.how == SEED and origin.outside:
        return f"{origin.label or 'its generator'} is in another state in each process, and no seeding was seen before"
    if origin.a.kind == "seed" and _without_seed(origin.a.value, origin.a.name):
        return f"{origin.a.name} was called without a seed"
    return None


def _without_seed(value: str, name: str) -> bool:
    return (
        value.strip() in ("", "None", "()", "(None,)", "none", "unseeded", "entropy")
        or name.endswith(".seed()")
        or (name.rpartition(".")[2] == "seed" and name.startswith("torch"))
    )


@test(STRONG)
def seeded_by_entropy(facts: Facts) -> str | None:
    """does a seed come from the operating system's entropy?"""
    lead = facts.lead("entropy", near=2)
    return lead.text if origin_is_draw_or_seed(facts) and lead is not None else None


@test(-STRONG)
def clock_in_the_seed(facts: Facts) -> str | None:
    """is the seed the clock's?"""
    lead = facts.lead("clock", "process", near=3)
    return f"the seed is a value of {lead.a.name}" if lead is not None and facts.kind == "seed" else None


@test(DECISIVE)
def seed_is_the_time(facts: Facts) -> str | None:
    """is the seed a value that the clock or the process gave?"""
    lead = facts.lead("clock", "process", near=3)
    return f"{lead.text}, which is the seed" if lead is not None and facts.kind in ("seed", "draw") else None


@test(STRONG)
def seed_beside_the_time(facts: Facts) -> str | None:
    """is the clock or the process asked on the line that seeds?"""
    lead = facts.lead("clock", "process", near=2)
    if lead is None or lead.near != 2 or not (facts.kind == "seed" or facts.how in (SEED, HOST_VALUE)):
        return None
    return f"{lead.text}, on the line that seeds"


@test(PLAIN)
def seed_near_the_time(facts: Facts) -> str | None:
    """is the clock or the process asked in the file that seeds?"""
    lead = facts.lead("clock", "process", near=1)
    explicit = (
        facts.origin is not None
        and facts.kind == "seed"
        and not _without_seed(facts.origin.a.value, facts.origin.a.name)
    )
    return f"{lead.text}, before the seed" if lead is not None and lead.near == 1 and explicit else None


@test(STRONG)
def moved_by_others(facts: Facts) -> str | None:
    """did a seeded generator move by draws of others?"""
    origin = facts.origin
    if origin is not None and origin.how == CHANGED_BEHIND and origin.label.startswith("generator"):
        return origin.detail
    return None


@test(STRONG)
def extra_draws(facts: Facts) -> str | None:
    """does one twin draw where the other does not?"""
    origin = facts.origin
    if origin is None or origin.how != CONTROL_FLOW or not {origin.a.kind, origin.b.kind} & {"draw"}:
        return None
    return f"one twin draws from a shared generator where the other does not: {origin.detail}"


@test(STRONG)
def in_a_worker(facts: Facts) -> str | None:
    """does a worker process part?"""
    if facts.in_child and facts.origin is not None and (origin_is_draw_or_seed(facts) or facts.how == HOST_VALUE):
        return f"process {facts.origin.process}, a worker of the program, parts by itself at {facts.origin.a.name}"
    return None


@test(PLAIN)
def from_a_worker(facts: Facts) -> str | None:
    """does what parts come from worker processes?"""
    if facts.children and facts.steps.component == "data" and facts.origin is not None and facts.origin.outside:
        return f"what parts came from outside the main process, which has {facts.children} workers"
    return None


@test(DECISIVE)
def resumed_parts(facts: Facts) -> str | None:
    """is the second twin a resumed run?"""
    if not facts.resumed:
        return None
    leaf = f"{facts.steps.leaf} ({facts.steps.kind})"
    return f"the second twin resumes, and the first row that parts shows {leaf} not restored"


def changed(weight: int, when: Callable[[Facts], bool], what: str) -> Test:
    """Memory changed behind the trace, and something more."""

    def look(facts: Facts) -> Evidence | None:
        origin = facts.origin
        if origin is None or origin.how != CHANGED_BEHIND or origin.label.startswith("generator") or not when(facts):
            return None
        return Evidence(text=f"{origin.detail}; {what}", weight=weight)

    look.__doc__ = f"did memory change behind the operations that were seen; {what}?"
    return look


def writer_copies_unblocked(facts: Facts) -> bool:
    """The last seen writer is a copy that does not wait."""
    chain = facts.origin.chain if facts.origin is not None else []
    return any(
        e.short in ("copy_", "_to_copy", "to") and ("True" in e.shapes or "non_blocking" in e.shapes) for e in chain
    )


def writer_shares(facts: Facts) -> bool:
    """The memory is numpy's, a buffer's or another process's as well."""
    chain = facts.origin.chain if facts.origin is not None else []
    return any(
        e.short in ("from_numpy", "frombuffer", "from_file", "as_strided", "set_", "detach", "alias", "lift_fresh")
        for e in chain
    )


@test(STRONG)
def threads_alone(facts: Facts) -> str | None:
    """do twins agree at one thread count and part at two different ones?"""
    if facts.parted_kind == "threads" and facts.hostile_agreed and facts.origin is not None and computed(facts):
        n = facts.hostile_agreed
        return f"{n} pair{'s' if n > 1 else ''} with equal thread counts agreed; with different ones the twins part"
    return None


@test(-STRONG)
def parts_at_one_count(facts: Facts) -> str | None:
    """do twins part at equal thread counts?"""
    return "the twins part with equal thread counts too" if facts.parted_kind != "threads" and computed(facts) else None


def how_is(*ways: str, weight: int = PLAIN, what: str) -> Test:
    """How the origin shows."""

    def look(facts: Facts) -> Evidence | None:
        if facts.origin is None or facts.how not in ways:
            return None
        return Evidence(text=f"{what}: {facts.origin.detail}", weight=weight)

    look.__doc__ = f"{what}?"
    return look


def led_by(
    kind: str, *, weight: int = STRONG, reordered: bool = False, near: int = 0, ways: tuple[str, ...] = ()
) -> Test:
    """A host event before the origin."""

    def look(facts: Facts) -> Evidence | None:
        lead = next(
            (x for x in facts.leads if x.kind == kind and x.near >= near and (x.reordered or not reordered)), None
        )
        if lead is None or (ways and facts.how not in ways and facts.origin is not None and not facts.origin.outside):
            return None
        return Evidence(text=lead.text, weight=weight)

    look.__doc__ = f"did a host event of the kind {kind} differ before?"
    return look


@test(WEAK)
def in_the_optimizer(facts: Facts) -> str | None:
    """is it in the optimizer?"""
    if facts.origin is not None and facts.origin.a.phase == "optimizer" and facts.how in (REORDERED, CONTROL_FLOW):
        return "it is the optimizer that walks through its parameters in another order"
    return None


@test(PLAIN)
def by_itself_reordered(facts: Facts) -> str | None:
    """do twins that differ in nothing part by an order?"""
    if facts.how in (REORDERED, CONTROL_FLOW) and facts.narrowed.get("nothing"):
        return "twins that differ in nothing that can be set part by this order: addresses or timing decide it"
    return None


@test(STRONG)
def replay_named(facts: Facts) -> str | None:
    """does the origin belong to a replay buffer's sampling?"""
    found = REPLAY_WORDS.search(facts.place)
    if found and (origin_is_draw_or_seed(facts) or facts.how in (REORDERED, HOST_VALUE, CONTROL_FLOW)):
        return f"the origin belongs to the replay ({found[0]}): what is sampled decides all that follows"
    return None


@test(PLAIN)
def replay_draws(facts: Facts) -> str | None:
    """is the replay's origin a draw?"""
    if REPLAY_WORDS.search(facts.place) and origin_is_draw_or_seed(facts):
        return "it is a random draw, or the seed of one"
    return None


@test(STRONG)
def config_differs(facts: Facts) -> str | None:
    """did a kernel run with another configuration?"""
    origin = facts.origin
    if origin is None or origin.a.kind != "kernel" or origin.a.value == origin.b.value:
        return None
    return f"the kernel ran as {origin.a.value} and as {origin.b.value}"


@test(PLAIN)
def timed_before(facts: Facts) -> str | None:
    """was a clock for measuring read before the control flow parted?"""
    if facts.how != CONTROL_FLOW:
        return None
    lead = next((x for x in facts.leads if x.kind == "clock" and x.near >= 1), None)
    return f"the program measures time before it chooses: {lead.a.name} at {lead.a.where}" if lead is not None else None


def knob_is(name: str, value: object, weight: int = PLAIN) -> Test:
    """A setting of torch, for an operation of the GPU."""

    def look(facts: Facts) -> Evidence | None:
        if not (computed(facts) and facts.knob(name) == value):
            return None
        return Evidence(text=f"{name} is {value!r}", weight=weight)

    look.__doc__ = f"is {name} {value!r}?"
    return look


@test(STRONG)
def low_precision(facts: Facts) -> str | None:
    """is it a product in reduced precision?"""
    if not computed(facts) or facts.op not in MATMULS or facts.origin is None:
        return None
    if facts.knob("tf32") or facts.knob("allow_tf32") or facts.knob("float32_matmul_precision") in ("high", "medium"):
        return f"{facts.origin.a.name} may run in TF32"
    if re.search(r"\b(bf16|f16)\[", facts.origin.a.shapes):
        return f"{facts.origin.a.name} multiplies 16-bit floats"
    return None


@test(DECISIVE)
def other_machine(facts: Facts) -> str | None:
    """did the twins run on different hardware or versions?"""
    for key in ("gpu_name", "cpu_model", "cpu", "torch", "cuda", "cudnn", "sm_count", "device_name"):
        a, b = facts.header.get(key), facts.other_header.get(key)
        if a is not None and b is not None and a != b:
            return f"{key} is {a} and {b}"
    return None


@test(STRONG)
def graph_replayed(facts: Facts) -> str | None:
    """is it a captured graph that draws?"""
    if facts.origin is not None and re.search(r"graph", facts.origin.a.name, re.IGNORECASE):
        return f"{facts.origin.a.name} replays what was captured, with the state of then"
    return None


@test(WEAK)
def several_threads(facts: Facts) -> str | None:
    """do several threads of the program run operations?"""
    if facts.threads > 1 and facts.how in (REORDERED, CONTROL_FLOW, CHANGED_BEHIND):
        return f"{facts.threads} threads of the program run operations"
    return None


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


@test(PLAIN)
def hash_does_not_matter(facts: Facts) -> str | None:
    """does the order differ with hash() fixed?"""
    if facts.how in (REORDERED, CONTROL_FLOW) and facts.remedied.get("hash-seed"):
        return "the order differs with hash() of strings fixed"
    return None


@test(-STRONG)
def hash_matters(facts: Facts) -> str | None:
    """does fixing hash() make the twins agree?"""
    return "fixing hash() of strings makes the twins agree" if facts.remedied.get("hash-seed") is False else None


def on_cuda(facts: Facts) -> bool:
    """The program computes on a GPU."""
    return facts.cuda


def with_threads(facts: Facts) -> bool:
    """Several threads run operations, or the program has children that may share memory."""
    return facts.threads > 1 or facts.children > 0


def always(facts: Facts) -> bool:
    """Whenever memory changed behind."""
    return True


def single_thread_host(facts: Facts) -> bool:
    """On a CPU, with one thread of operations and no children."""
    return not facts.cuda and facts.threads <= 1 and not facts.children and not writer_shares(facts)
