"""What a kernel or an operator does, by the words that libraries use in names."""

from __future__ import annotations

import re

OTHER = "other"
"""The family of names that say nothing."""

# The first match counts: a name says first what is special about it.
_FAMILIES = tuple(
    (re.compile(pattern, re.IGNORECASE), family)
    for pattern, family in (
        (r"winograd", "Winograd convolution"),
        (r"implicit_?(gemm|conv)|[sh](884|1688|16816)?cudnn_", "implicit GEMM convolution"),
        (r"flash", "flash attention"),
        (r"attention|sdpa|fmha", "attention"),
        (r"mkldnn|onednn", "oneDNN"),
        (r"fft", "FFT"),
        (r"softmax", "softmax"),
        (r"(batch|layer|group|instance|rms)_?norm|\bbn_(fw|bw)", "normalization"),
        (r"pool", "pooling"),
        (r"nchwto|nhwcto|tonchw|tonhwc|(?<!conv_)transpose|permute", "change of layout"),
        (r"rnn|lstm|gru_", "recurrent layer"),
        (r"conv\w*direct", "direct convolution"),
        (r"conv(?!ert)|dgrad|wgrad|fprop|im2col|col2im", "convolution"),
        (r"gemm|gemv|cutlass|xmma|nvjet|splitk|::(add|b|baddb)?mm$|matmul", "GEMM"),
        (r"dropout|philox|curand|distribution_", "random numbers"),
        (r"embedding|gather|scatter|index", "indexing"),
        (r"nll_loss|cross_entropy", "loss"),
        (r"sort|topk", "sorting"),
        (r"copy|memcpy|memset|CatArray|::cat$", "copy"),
        (r"multi_tensor_apply|_foreach_", "many tensors at once"),
        (r"reduc|::(sum|mean)$", "reduction"),
        (r"elementwise|pointwise|op_tensor", "elementwise"),
    )
)


def family(name: str) -> str:
    """What a kernel of cuDNN, cuBLAS, CUTLASS, oneDNN or torch does, by its name.

    ``scudnn`` and ``h884cudnn`` kernels without ``winograd`` are cuDNN's precomputed implicit GEMM.
    """
    return next((label for pattern, label in _FAMILIES if pattern.search(name)), OTHER)
