"""The kinds of cause: what each is, which observations speak for it, what to do, and where it was met in public.

docs/causes.md is made of this table.
"""

from __future__ import annotations

from orchestrator.localize import cause_tests as t
from orchestrator.localize import cause_tests_host as h
from orchestrator.localize import cause_tests_operations as o
from orchestrator.localize import cause_tests_races as r
from orchestrator.localize import cause_tests_seeds as s
from orchestrator.localize import operation_kinds as k
from orchestrator.localize.causes import DECISIVE, PLAIN, STRONG, WEAK, Kind
from orchestrator.localize.result import CONTROL_FLOW, HOST_VALUE, REORDERED

_ORDERS = (REORDERED, CONTROL_FLOW, HOST_VALUE)
_EXACT = ("deterministic-algorithms-unfilled", "deterministic-algorithms")

KINDS: tuple[Kind, ...] = (
    Kind(
        name="resume",
        title="State that a resume does not restore",
        what="A run that goes on from a checkpoint lacks something that the first one had: moments, a generator's "
        "state, the replay, the data cursor, a gradient scaler; or draws once more on the way.",
        tests=(s.resumed_parts, s.resumes_in_one),
        change="save and restore {leaf} with the checkpoint, and draw nothing between loading and the first step",
        reports=("https://github.com/huggingface/transformers/issues/11323",
                 "https://github.com/huggingface/transformers/issues/17032"),
    ),
    Kind(
        name="uninitialised-memory",
        title="Memory that is read before it is written",
        what="torch.empty, new_empty or numpy.empty hand out what was there. What is not written whole before it "
        "is read depends on what the process did earlier. A flag that fills fresh memory makes runs equal and "
        "leaves the fault: the values are still not the program's.",
        tests=(r.timing_decides, t.reads_unset, t.narrowed("memory"), t.filled_hides, t.filled_parts,
               t.replay_varies("memory"), h.unexplained_value, o.asks_for_nothing),
        remedies=("filled-memory",),
        change="make it with zeros or write all of it before it is read: {where}",
        reports=("https://docs.pytorch.org/docs/stable/generated/torch.empty.html",),
    ),
    Kind(
        name="worker-seeding",
        title="Workers that are not seeded by the run's seed",
        what="A data loader's or pool's worker draws from a generator that it inherited, that nobody seeded, or that "
        "was seeded by time or process number.",
        tests=(s.in_a_worker, s.from_a_worker),
        remedies=("workers-seeded", "seed-generators", "fixed-entropy", "fixed-clock"),
        change="seed in the worker from the run's seed and the worker's or the item's number (worker_init_fn, "
        "numpy.random.default_rng([seed, item])): {where}",
        reports=("https://github.com/pytorch/pytorch/issues/5059",
                 "https://github.com/pytorch/pytorch/issues/3880"),
    ),
    Kind(
        name="time-seed",
        title="A seed taken from the clock or the process",
        what="The seed is the time, the process number, the host's name or what is made of them.",
        tests=(s.seed_is_the_time, s.seed_beside_the_time, s.seed_near_the_time, o.asks_for("a clock"),
               h.only_led_by("clock", "process")),
        remedies=("fixed-clock", "fixed-entropy"),
        change="take the seed from the run's own seed, not from the clock or the process: {where}",
        reports=("https://docs.python.org/3/library/random.html#random.seed",),
    ),
    Kind(
        name="replay-sampling",
        title="The replay samples by a generator that the seed does not decide",
        what="What a replay buffer samples comes from a generator without a seed, from one that is made anew, or in an "
        "order that is not fixed. It shows first in whatever leaf comes next, from trial to trial another.",
        tests=(s.replay_named, s.replay_draws),
        remedies=("seed-generators", "fixed-clock", "fixed-entropy", "hash-seed", "sorted-listings"),
        change="give the sampler a generator of its own, seeded by the run's seed, also after clear(): {where}",
        reports=(),
    ),
    Kind(
        name="shared-generator",
        title="A generator that others draw from as well",
        what="A library, a thread or a log line draws from the global generator, so how many draws lie before one's "
        "own depends on timing or on what is installed.",
        tests=(s.moved_by_others, r.raced_draws, s.draws_as_timing_has_it, s.drawn_meanwhile, s.extra_draws),
        change="draw from a generator of your own, seeded by the run's seed: {where}",
        reports=("https://numpy.org/doc/stable/reference/random/parallel.html",),
    ),
    Kind(
        name="unseeded-generator",
        title="A generator that nobody seeds",
        what="random, numpy.random, default_rng() or Generator.seed() take their start from the operating system.",
        tests=(s.seeded_by_nobody, s.seeded_by_entropy, s.entropy_as_data, s.entropy_decides, s.clock_in_the_seed,
               o.asks_for("entropy"), h.only_led_by("entropy")),
        remedies=("seed-generators", "fixed-entropy"),
        change="seed it from the run's seed before the first draw: {where}",
        reports=("https://docs.pytorch.org/docs/stable/notes/randomness.html",),
    ),
    Kind(
        name="hash-order",
        title="The order of a set of strings, or of hash()",
        what="Python salts hash() of strings in each process (PYTHONHASHSEED), and a set is iterated by hash.",
        tests=(r.timing_decides, t.narrowed("hash-seed"), t.remedied("hash-seed", DECISIVE),
               h.led_by("hash", ways=_ORDERS),
               h.how_is(REORDERED, weight=WEAK, what="an order differs"),
               h.walks_a_set, h.python_decides),
        remedies=("hash-seed",),
        change="iterate over sorted(...) instead of the set, and never use hash() of a string: {where}",
        reports=("https://docs.python.org/3/using/cmdline.html#envvar-PYTHONHASHSEED",),
    ),
    Kind(
        name="listing-order",
        title="The order in which a directory is listed",
        what="os.listdir, scandir and glob give entries as the file system keeps them.",
        tests=(r.timing_decides, t.narrowed("listing-order"), t.remedied("sorted-listings", DECISIVE),
               h.led_by("listing", reordered=True, weight=PLAIN, ways=_ORDERS),
               h.led_by("listing", reordered=True, weight=PLAIN, near=1, ways=_ORDERS), h.only_led_by("listing")),
        remedies=("sorted-listings",),
        change="sort what the listing gives: {where}",
        reports=("https://docs.python.org/3/library/os.html#os.listdir",),
    ),
    Kind(
        name="completion-order",
        title="The order in which tasks complete",
        what="as_completed, imap_unordered, a queue that several fill, or a list that several threads append to.",
        tests=(r.completes, r.seeds_are_the_cure, r.timing_matters_not, t.remedied("ordered-completion", DECISIVE),
               h.led_by("completion", weight=STRONG, ways=_ORDERS),
               h.made_by_threads,
               h.several_threads),
        remedies=("ordered-completion",),
        change="take results in the order of submission (map, or sort by index) before they are used: {where}",
        reports=("https://docs.python.org/3/library/concurrent.futures.html#concurrent.futures.as_completed",),
    ),
    Kind(
        name="duplicate-index",
        title="Several values written to one index",
        what="index_put_, scatter_ or index_copy_ with an index that is there twice: which value stays is a race.",
        tests=(o.operation_in(k.WRITES_BY_INDEX, "writes by index: of duplicates the last wins", unless="True"),
               o.duplicates, o.replay_parts_here("writes"), t.replay_agrees),
        remedies=_EXACT,
        change="make indices unique first, or keep the last of each by a stable sort: {where}",
        reports=("https://github.com/pytorch/pytorch/pull/57839",
                 "https://github.com/pytorch/pytorch/issues/55516",
                 "https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_put_.html"),
    ),
    Kind(
        name="atomics",
        title="Sums in the order in which threads arrive",
        what="Several threads add to one float (atomicAdd). Addition of floats is not associative, so the order "
        "decides the last bits.",
        tests=(o.operation_in(k.ADDS_ATOMICALLY, "adds in the order in which threads arrive"), o.accumulates_by_index,
               o.own_kernel_adds, o.graph_adds, o.kernel_parts, o.asks_for_no_threads,
               o.replay_parts_here("adds"), t.replay_agrees,
               o.made_equal_by("deterministic-algorithms-unfilled", "adds")),
        remedies=_EXACT,
        change="use a sorted segment sum, or a one-hot product, instead: {where}",
        reports=("https://github.com/pytorch/pytorch/issues/51366",
                 "https://github.com/Dao-AILab/causal-conv1d/issues/80",
                 "https://docs.pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html"),
    ),
    Kind(
        name="scan-order",
        title="A scan or a kernel that reduces in no fixed order",
        what="A selective scan, a cumulative sum or a kernel of one's own adds its parts as blocks finish.",
        tests=(o.operation_in(k.SCANS, "scans"), o.words_in(k.SCAN_NAME, "is a scan, or runs within one", STRONG),
               o.kernel_parts, o.asks_for_no_threads, o.replay_parts_here("scans"), t.replay_agrees),
        remedies=_EXACT,
        change="let each block write its own partial result and add them in a fixed order: {where}",
        reports=("https://github.com/MzeroMiko/VMamba/issues/257",
                 "https://github.com/state-spaces/mamba/pull/827"),
    ),
    Kind(
        name="thread-count",
        title="The number of threads",
        what="A reduction is split by the number of threads, so another machine or setting adds in another order.",
        tests=(t.threads_alone, t.parts_at_one_count, t.machine_read_before, o.reduces,
                t.narrowed("threads"), t.replay_varies("threads"),
               t.remedied("one-thread", PLAIN)),
        remedies=("one-thread",),
        change="fix the number of threads in the program (torch.set_num_threads), do not take the machine's: {where}",
        reports=("https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html",),
    ),
    Kind(
        name="autotune",
        title="A choice made by measuring time",
        what="Each process measures which algorithm or block size is fastest, and keeps its own answer: runs are equal "
        "inside a process and part between two.",
        tests=(o.config_differs, r.measured_time_decides, h.timed_before, h.hands_on_a_duration, h.clock_chooses,
               t.remedied("no-autotune", DECISIVE, against=WEAK)),
        remedies=("no-autotune", "fixed-clock"),
        change="fix the configuration, or keep the chosen one with the code: {where}",
        reports=("https://github.com/triton-lang/triton/issues/9368",
                 "https://github.com/vllm-project/vllm/pull/42425"),
    ),
    Kind(
        name="cudnn",
        title="cuDNN's choice of algorithm",
        what="cudnn.benchmark measures which convolution is fastest; some algorithms add in no fixed order.",
        tests=(o.convolution_on_cuda, o.knob_is("cudnn.benchmark", True), o.replay_parts_here("convolves"),
               t.remedied("cudnn-deterministic", DECISIVE)),
        remedies=("cudnn-deterministic",),
        change="torch.backends.cudnn.benchmark = False; torch.backends.cudnn.deterministic = True, before: {where}",
        reports=("https://docs.pytorch.org/docs/stable/backends.html#torch.backends.cudnn.benchmark",),
    ),
    Kind(
        name="reduced-precision",
        title="Products in TF32 or 16 bits",
        what="TF32 and 16-bit products differ with the kernel chosen, and split-K adds their parts in no fixed order.",
        tests=(o.low_precision, o.casts_in_one, r.narrows_in_one_thread, t.remedied("no-tf32")),
        remedies=("no-tf32",),
        change='torch.set_float32_matmul_precision("highest"), or compute it in float32: {where}',
        reports=("https://docs.pytorch.org/docs/stable/notes/cuda.html#tf32-on-ampere",),
    ),
    Kind(
        name="algorithm-selection",
        title="A library that chooses among algorithms",
        what="cuBLAS, MKL and oneDNN choose by alignment of memory, workspace or stream, and each adds in its order.",
        tests=(o.matmul, h.machine_read, h.address_read, t.narrowed("allocator"), t.replay_varies("memory", PLAIN),
               o.replay_parts_here("multiplies"), t.remedied("deterministic-algorithms-unfilled", PLAIN, against=WEAK)),
        remedies=_EXACT,
        change="CUBLAS_WORKSPACE_CONFIG=:4096:8 in the environment, one stream a handle, aligned inputs: {where}",
        reports=("https://docs.nvidia.com/cuda/cublas/#results-reproducibility",),
    ),
    Kind(
        name="asynchronous-copy",
        title="A read before a copy is done, by the device, a thread or a process",
        what="A non_blocking copy to the host, or one on another stream, is read before it arrived; or its source is "
        "written again before it left.",
        tests=(r.written, r.another_copies, r.seeds_are_the_cure,
               h.changed(STRONG, h.writer_copies_unblocked, "the writer is a copy that does not wait"),
               h.copies_unblocked, r.reads_early, r.reads_what_is_written, r.changes_meanwhile,
               h.changed(WEAK, h.on_cuda, "on a GPU, where copies may still be on their way"),
               h.changed(STRONG, h.handed_over, "it is written while it is read"),
               h.changed(STRONG, h.with_threads, "other threads or processes of the program run and may still write"),
               r.copies_waited_for),
        remedies=("synchronous-copies",),
        change="wait for the copy (torch.cuda.current_stream().synchronize(), or non_blocking=False) before: {where}",
        change_on_cpu="hand over a copy (clone(), copy()), or wait for whoever fills that memory, before: {where}",
        reports=("https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html",),
    ),
    Kind(
        name="aliasing",
        title="Two names for one memory",
        what="from_numpy, a view, a shared buffer or a state_dict kept without a copy: somebody else writes into it.",
        tests=(r.written_while_queued, r.changes_meanwhile_and_is_shared, r.written, r.changes_while_held,
               r.owner_goes_on, r.weight_changes,
               r.seeds_are_the_cure,
               h.changed(PLAIN, h.writer_shares, "its memory is shared with numpy or a buffer"),
               h.changed(PLAIN, h.with_threads, "others of the program run"),
               h.changed(WEAK, h.always, "somebody who was not seen wrote to it")),
        change="copy what is handed over (clone(), copy()) where it is handed over: {where}",
        reports=("https://docs.pytorch.org/docs/stable/generated/torch.from_numpy.html",),
    ),
    Kind(
        name="out-of-bounds-write",
        title="A write outside its tensor",
        what="A kernel or native code writes past the end of its memory, into whatever lies behind.",
        tests=(r.timing_decides, h.writes_past, h.crashes,
               h.changed(PLAIN, h.always, "a write that no operation made"),
               h.changed(PLAIN, h.single_thread_host, "with no other thread of the program to make it")),
        change="check the native code that runs before it (compute-sanitizer, AddressSanitizer): {where}",
        reports=("https://docs.nvidia.com/compute-sanitizer/ComputeSanitizer/index.html",),
    ),
    Kind(
        name="iteration-order",
        title="Objects iterated in the order of their addresses",
        what="A set of parameters or modules is ordered by id(), which is an address: another one in each process, and "
        "no seed of hash() decides it.",
        tests=(r.timing_decides, h.by_itself_reordered, t.narrowed("allocator"),
               h.led_by("identity", weight=PLAIN, ways=_ORDERS),
               h.in_the_optimizer, h.how_is(REORDERED, weight=PLAIN, what="the same operations come in another order"),
               h.hash_does_not_matter, h.hash_matters, h.values_matter, h.walks_a_set, h.python_decides,
               h.addresses_decide),
        remedies=("fixed-addresses",),
        change="keep objects in a list or a dict, which have the order of insertion: {where}",
        reports=("https://docs.python.org/3/reference/datamodel.html#object.__hash__",),
    ),
    Kind(
        name="stale-graph",
        title="A captured graph with the state of its capture",
        what="A CUDA graph replays with the seed, the pointers and the choices that it was captured with.",
        tests=(h.graph_replayed,),
        change="register the generator with the graph, and copy inputs into its static buffers: {where}",
        reports=("https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs",),
    ),
    Kind(
        name="hardware",
        title="Other hardware, versions or environment",
        what="The two runs were made by another GPU or CPU, driver or library, whose sums are split in another way, or "
        "were given another environment.",
        tests=(h.other_machine, h.other_environment),
        change="compare runs of the same hardware and versions, or use operations whose order does not depend on them",
        reports=("https://docs.pytorch.org/docs/stable/notes/randomness.html",),
    ),
)  # fmt: skip

BY_NAME = {kind.name: kind for kind in KINDS}
