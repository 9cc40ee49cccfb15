# SPDX-License-Identifier: Apache-2.0
"""The rows of ops of networks and of their training, of ops that order, and of transforms. PyTorch has most of them."""
import math


def functions(p):
    return p.nn.functional


def no_peer(p, *given):
    raise TypeError("no peer has a function for it")


def ordering(b):
    n = 1 << (20 if b.is_cpu or b.quick else 22)
    x, table = b.normal(n), b.normal(4096, 1024)
    y, z = b.empty(n), b.empty(4096, 1024)
    b.row("cumulative_sum of all", "cumulative_sum", [x], y, lambda p, x, z: p.cumsum(x, 0, out=z), tolerance=1e-2)
    for axis, name in ((1, "rows"), (0, "columns")):
        b.row(f"cumulative_sum of {name}", "cumulative_sum", [table], z, lambda p, x, z: p.cumsum(x, axis, out=z), tolerance=1e-2, axis=axis)
    first = lambda p, sorted_: sorted_[0] if p.name == "torch" else sorted_  # noqa: E731
    b.row("sort all", "sort", [x], y, lambda p, x, z: first(p, p.sort(x)))
    b.row("sort rows of 1024", "sort", [table], z, lambda p, x, z: first(p, p.sort(x, 1)))
    whole = b.integers(1 << 40, n)
    b.row("sort int64", "sort", [whole], b.empty(n, dtype="int64"), lambda p, x, z: first(p, p.sort(x)))
    b.row("argsort, stable", "argsort", [x], b.empty(n, dtype="int64"), lambda p, x, z: p.argsort(x, stable=True))
    b.row("top_k 50 of rows of 1024", "top_k", [table], [b.empty(4096, 50), None], lambda p, x, z: p.topk(x, 50, 1)[0],
          bytes=table.size_bytes, k=50)
    b.row("top_k 50 of all", "top_k", [x], [b.empty(50), None], lambda p, x, z: p.topk(x, 50)[0], bytes=x.size_bytes, k=50)
    ordered = b.op("sort", [x], "float32", n)
    b.row("searchsorted", "searchsorted", [ordered, x], b.empty(n, dtype="int64"), lambda p, s, v, z: p.searchsorted(s, v))
    b.row("unique of 1000 values", "unique", [b.integers(1000, n)], [None] * 5,
          lambda p, x: p.unique(x, return_inverse=True, return_counts=True))
    b.row("nonzero", "nonzero", [b.op("greater", [x, b.full("float32", 0)], "bool", n)], [None] * 2, lambda p, x: p.nonzero(x))


def transforms(b):
    """Fourier transforms. The times of peers include making their results."""
    def along(p, axes):
        return {"dim" if p.name == "torch" else "axis": axes[0]} if len(axes) == 1 else {"dim" if p.name == "torch" else "axes": axes}

    def row(name, op, peer, shape, axes, given, result, results=None, **attributes):
        n = math.prod(shape)
        x = b.cast(b.normal(*shape), given)
        z = b.empty(*(results or shape), dtype=result)
        several = "n" if len(axes) > 1 else ""
        b.row(name, op, [x], z, lambda p, x, z: getattr(p.fft, peer + several)(x, **along(p, axes)), tolerance=1e-3,
              flops=5 * n * math.log2(n), axes=list(axes), **attributes)

    def complex_row(name, shape, axes, dtype="complex64", **attributes):
        row(name, "fft", "ifft" if attributes else "fft", shape, axes, dtype, dtype, **attributes)

    powers = (10, 14, 18, 20) if b.quick else (10, 14, 18, 20, 22) if b.is_cpu else (10, 14, 18, 20, 22, 24)
    for power in powers:
        complex_row(f"fft of 2^{power}", (1 << power,), (0,))
    for n, kind in ((15015, "3 5 7 11 13"), (44100, ""), (10007, "a prime"), (1000003, "a prime")):
        complex_row(f"fft of {n}{', ' + kind if kind else ''}", (n,), (0,))
    complex_row("fft of complex128, 2^20", (1 << 20,), (0,), "complex128")
    complex_row("ifft of 2^20", (1 << 20,), (0,), inverse=1)
    complex_row("fft of 1000 rows of 256", (1000, 256), (1,))
    complex_row("fft of 10000 rows of 1000", (10000, 1000), (1,))
    complex_row("fft of 1024 columns of 1024", (1024, 1024), (0,))
    complex_row("fft of 1024 x 1024", (1024, 1024), (0, 1))
    complex_row("fft of 128 x 128 x 128", (128, 128, 128), (0, 1, 2))
    row("rfft of 2^20", "rfft", "rfft", (1 << 20,), (0,), "float32", "complex64", ((1 << 19) + 1,))
    row("rfft of 1000 rows of 256", "rfft", "rfft", (1000, 256), (1,), "float32", "complex64", (1000, 129))
    row("rfft of 1024 x 1024", "rfft", "rfft", (1024, 1024), (0, 1), "float32", "complex64", (1024, 513))
    row("irfft of 2^20", "irfft", "irfft", ((1 << 19) + 1,), (0,), "complex64", "float32", (1 << 20,))


def networks(b):
    x, w, s = b.normal(4096, 1024), b.normal(1024), b.normal(1024)
    z, rows = b.empty(4096, 1024), b.empty(4096)
    b.row("layer_norm 4096x1024", "layer_norm", [x, w, s], [z, None, None],
          lambda p, x, w, s, z: functions(p).layer_norm(x, (1024,), w, s))
    b.row("rms_norm 4096x1024", "rms_norm", [x, w], [z, None], lambda p, x, w, z: functions(p).rms_norm(x, (1024,), w, 1e-5), epsilon=1e-5)
    b.row("log_softmax 4096x1024", "log_softmax", [x], z, lambda p, x, z: p.log_softmax(x, 1))
    b.row("logsumexp 4096x1024", "logsumexp", [x], rows, lambda p, x, z: p.logsumexp(x, 1), axes=[1])
    labels = b.integers(1024, 4096)
    b.row("cross_entropy 4096x1024", "cross_entropy", [x, labels], [rows, None],
          lambda p, x, y, z: functions(p).cross_entropy(x, y, reduction="none"))
    b.row("gelu", "gelu", [x], z, lambda p, x, z: functions(p).gelu(x))
    b.row("dropout", "dropout", [x], None, lambda p, x: functions(p).dropout(x, 0.5), seed=3)
    for name, peer in (("random_uniform", "rand"), ("random_normal", "randn")):
        b.row(name, name, [], z, lambda p, z: getattr(p, peer)(*z.shape, device=z.device), tolerance=float("inf"), shape=[4096, 1024],
              dtype="float32", seed=1)
    table, indices = b.normal(50000, 256), b.integers(50000, 32768)
    found = b.empty(32768, 256)
    b.row("embedding", "take", [table, indices], found, lambda p, t, i, z: functions(p).embedding(i, t), bytes=2 * found.size_bytes)
    image, kernel, channel = b.normal(4, 64, 56, 56), b.normal(64, 64, 3, 3), [b.normal(64), b.normal(64)]
    out, pads = b.empty(4, 64, 56, 56), {"pads_begin": [1, 1], "pads_end": [1, 1]}
    b.row("batch_norm 4x64x56x56", "batch_norm", [image, *channel], [out, None, None],
          lambda p, x, w, s, z: functions(p).batch_norm(x, None, None, w, s, True))
    flops = 2 * 4 * 64 * 56 * 56 * 64 * 9
    b.row("convolution 3x3 of 4x64x56x56", "convolution", [image, kernel], out,
          lambda p, x, w, z: functions(p).conv2d(x, w, None, 1, 1), flops=flops, tolerance=1e-3, **pads)
    thin = b.normal(64, 1, 3, 3)
    b.row("convolution depthwise 3x3", "convolution", [image, thin], out,
          lambda p, x, w, z: functions(p).conv2d(x, w, None, 1, 1, 1, 64), flops=flops // 64, tolerance=1e-3, groups=64, **pads)
    point = b.normal(64, 64, 1, 1)
    b.row("convolution 1x1", "convolution", [image, point], out, lambda p, x, w, z: functions(p).conv2d(x, w), flops=flops // 9,
          tolerance=1e-3)
    b.row("max_pool 2x2", "max_pool", [image], b.empty(4, 64, 28, 28), lambda p, x, z: functions(p).max_pool2d(x, 2), window=[2, 2])
    b.row("average_pool 2x2", "average_pool", [image], b.empty(4, 64, 28, 28), lambda p, x, z: functions(p).avg_pool2d(x, 2), window=[2, 2])
    q, k, v = (b.normal(4, 8, 256, 64) for _ in "qkv")
    for dtype in ("float32",) if b.is_cpu else ("float32", "float16", "bfloat16"):
        for causal in (0, 1):
            b.row(f"attention 4x8x256x64 {dtype}{' causal' if causal else ''}", "attention", [b.cast(t, dtype) for t in (q, k, v)],
                  [b.empty(4, 8, 256, 64, dtype=dtype), None],
                  lambda p, q, k, v, z: functions(p).scaled_dot_product_attention(q, k, v, is_causal=bool(causal)),
                  flops=4 * 32 * 256 * 256 * 64, tolerance=2e-3 if dtype == "float32" else 3e-2, causal=causal)
    weight = b.normal(1024, 1024)
    b.row("affine and relu 4096x1024x1024", "affine", [x, weight, w], z, lambda p, x, w, s, z: p.relu(p.addmm(s, x, w)),
          flops=2 * 4096 * 1024 * 1024, tolerance=1e-3, activation="relu")


def training(b):
    """Gradients and the step of an optimiser."""
    x, dy = b.normal(4096, 1024), b.normal(4096, 1024)
    z = b.empty(4096, 1024)
    y = b.op("softmax", [x], "float32", 4096, 1024)
    b.row("softmax_grad 4096x1024", "softmax_grad", [dy, y], z, lambda p, dy, y, z: p._softmax_backward_data(dy, y, 1, p.float32))
    w, s, mean = b.normal(1024), b.normal(1024), b.normal(4096)
    scale = b.op("abs", [b.normal(4096)], "float32", 4096)
    b.row("layer_norm_grad 4096x1024", "layer_norm_grad", [dy, x, mean, scale, w], [z, None, None],
          lambda p, dy, x, m, r, w, *z: p.ops.aten.native_layer_norm_backward(
              dy, x, (1024,), m.reshape(-1, 1), r.reshape(-1, 1), w, w, [True] * 3)[0], tolerance=1e-3)
    indices, rows = b.integers(50000, 32768), b.normal(32768, 256)
    for sure in (0, 1):
        b.row(f"embedding_grad{', deterministic' if sure else ''}", "take_grad", [rows, indices], b.empty(50000, 256),
              lambda p, dy, i, z: p.ops.aten.embedding_dense_backward(dy, i, 50000, -1, False), tolerance=1e-3, size=50000, deterministic=sure)
    image, change, kernel = b.normal(4, 64, 56, 56), b.normal(4, 64, 56, 56), b.normal(64, 64, 3, 3)
    pads, flops = {"pads_begin": [1, 1], "pads_end": [1, 1]}, 2 * 4 * 64 * 56 * 56 * 64 * 9

    def backward(p, dy, x, w, mask):
        return p.ops.aten.convolution_backward(dy, x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, mask)

    b.row("convolution_grad_input 3x3", "convolution_grad_input", [change, kernel], b.empty(4, 64, 56, 56),
          lambda p, dy, w, z: backward(p, dy, z, w, [True, False, False])[0], flops=flops, tolerance=1e-3, shape=[56, 56], **pads)
    b.row("convolution_grad_weight 3x3", "convolution_grad_weight", [change, image], b.empty(64, 64, 3, 3),
          lambda p, dy, x, z: backward(p, dy, x, z, [False, True, False])[1], flops=flops, tolerance=1e-3, kernel=[3, 3], **pads)
    pooled = b.op("max_pool", [image], "float32", 4, 64, 28, 28, window=[2, 2])
    b.row("max_pool_grad 2x2", "max_pool_grad", [pooled, image, pooled], b.empty(4, 64, 56, 56), no_peer, window=[2, 2])
    q, k, v, dz = (b.normal(4, 8, 256, 64) for _ in range(4))
    sums = b.op("logsumexp", [b.normal(4, 8, 256, 64)], "float32", 4, 8, 256, axes=[3])
    b.row("attention_grad 4x8x256x64", "attention_grad", [dz, q, k, v, q, sums], [b.empty(4, 8, 256, 64), None, None],
          no_peer, flops=10 * 32 * 256 * 256 * 64)
    many = [[b.normal(1 << 20) for _ in range(8)] for _ in range(2)] + [[b.empty(1 << 20) for _ in range(8)] for _ in range(2)]
    b.row("adam, 8 tensors of 2^20", "adam", sum(many, []), [None] * 24, no_peer, bytes=28 * 8 << 20)
