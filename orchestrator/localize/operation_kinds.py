"""What torch's operations are known for, by their short names. Pure."""

from __future__ import annotations

import re

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
# Their result is one value, whatever was there: if it differs right afterwards, somebody else wrote it.
FILLS = frozenset(
    ["fill_", "zero_", "zeros", "ones", "full", "zeros_like", "ones_like", "full_like", "new_zeros", "new_ones",
     "new_full"]
)  # fmt: skip
# Write their result over whatever was there, and read none of it.
OVERWRITING = frozenset(
    ["copy_", "fill_", "zero_", "uniform_", "normal_", "random_", "bernoulli_", "exponential_", "log_normal_",
     "cauchy_", "geometric_"]
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
