# SPDX-License-Identifier: Apache-2.0
"""Rows that take longer: the layers of known networks with their gradients, arrays of a gigabyte, and transfers."""
import ctypes
import math
import mmap

from .library import SIZES
from .network_rows import functions

CONVOLUTIONS = (("LeNet 5x5", (128, 32, 28, 28), (64, 32, 5, 5), 1, 2, 1), ("ResNet 3x3", (32, 64, 56, 56), (64, 64, 3, 3), 1, 1, 1),
                ("ResNet 3x3 deep", (32, 512, 7, 7), (512, 512, 3, 3), 1, 1, 1), ("ResNet 1x1", (32, 256, 56, 56), (64, 256, 1, 1), 1, 0, 1),
                ("ResNet 7x7 /2", (32, 3, 224, 224), (64, 3, 7, 7), 2, 3, 1),
                ("depthwise 3x3", (32, 128, 56, 56), (128, 1, 3, 3), 1, 1, 128), ("text width 3", (32, 50, 400), (250, 50, 3), 1, 0, 1))


def convolution(b, name, shape, kernel, stride, pad, groups, dtype):
    spatial = len(shape) - 2
    extents = [(n + 2 * pad - k) // stride + 1 for n, k in zip(shape[2:], kernel[2:])]
    result = (shape[0], kernel[0], *extents)
    x, dy = (b.cast(b.normal(*each), dtype) for each in (shape, result))
    scale = b.full("float32", 1 / math.sqrt(math.prod(kernel[1:])))
    w = b.cast(b.op("multiply", [b.normal(*kernel), scale], "float32", *kernel), dtype)
    given = {"strides": [stride] * spatial, "pads_begin": [pad] * spatial, "pads_end": [pad] * spatial, "groups": groups}
    flops = 2 * math.prod(result) * math.prod(kernel[1:])
    more = {"bytes": SIZES[dtype] * sum(map(math.prod, (shape, kernel, result))), "flops": flops,
            "tolerance": 1e-3 if dtype == "float32" else 2e-2, **given}

    def backward(p, dy, x, w, mask):
        return p.ops.aten.convolution_backward(dy, x, w, None, [stride] * spatial, [pad] * spatial, [1] * spatial, False, [0] * spatial,
                                               groups, mask)

    b.row(f"convolution {name}", "convolution", [x, w], b.empty(*result, dtype=dtype),
          lambda p, x, w, z: getattr(functions(p), f"conv{spatial}d")(x, w, None, stride, pad, 1, groups), **more)
    b.row(f"convolution_grad_input {name}", "convolution_grad_input", [dy, w], b.empty(*shape, dtype=dtype),
          lambda p, dy, w, z: backward(p, dy, z, w, [True, False, False])[0], shape=list(shape[2:]), **more)
    b.row(f"convolution_grad_weight {name}", "convolution_grad_weight", [dy, x], b.empty(*kernel, dtype=dtype),
          lambda p, dy, x, z: backward(p, dy, x, z, [False, True, False])[1], kernel=list(kernel[2:]), **more)


def attention(b, n, d, dtype, causal):
    batch = 2 if n > 2048 else 4
    shape = (batch, 8, n, d)
    q, k, v, dy = (b.cast(b.normal(*shape), dtype) for _ in range(4))
    flops, name = 4 * batch * 8 * n * n * d, f"{dtype} {n}x{d}{' causal' if causal else ''}"
    near = 2e-3 if dtype == "float32" else 5e-2
    b.row(f"attention {name}", "attention", [q, k, v], [b.empty(*shape, dtype=dtype), None],
          lambda p, q, k, v, z: functions(p).scaled_dot_product_attention(q, k, v, is_causal=bool(causal)), flops=flops, tolerance=near,
          causal=causal)
    if n > 2048:
        return
    y = b.op("attention", [q, k, v], dtype, *shape, outputs=2, causal=causal)
    sums = b.op("attention", [q, k, v], "float32", *shape[:3], outputs=2, output=1, causal=causal)
    kept = {}

    def backward(p, dy, q, k, v, *rest):
        if not kept:
            with p.enable_grad():
                kept["leaves"] = [t.detach().requires_grad_() for t in (q, k, v)]
                kept["y"] = functions(p).scaled_dot_product_attention(*kept["leaves"], is_causal=bool(causal))
        return p.autograd.grad(kept["y"], kept["leaves"], dy, retain_graph=True)[0]

    b.row(f"attention_grad {name}", "attention_grad", [dy, q, k, v, y, sums], [b.empty(*shape, dtype=dtype), None, None], backward,
          flops=5 * flops // 2, tolerance=near, causal=causal)


def adam(p, *given):
    from torch.optim.adam import adam as step
    parts = [list(given[i * 50:(i + 1) * 50]) for i in range(4)]
    is_fused = given[0].is_cuda
    step(*parts, [], [p.zeros((), device=given[0].device) for _ in range(50)], foreach=not is_fused, fused=is_fused, amsgrad=False,
         beta1=0.9, beta2=0.999, lr=1e-3, weight_decay=0.0, eps=1e-8, maximize=False)


def layers(b):
    n = 1 << (22 if b.is_cpu else 26)
    x, z, size = b.normal(n), b.empty(n), f"2^{n.bit_length() - 1}"
    b.row(f"dropout {size}", "dropout", [x], None, lambda p, x: functions(p).dropout(x, 0.5), bytes=8 * n, seed=3)
    b.row(f"gelu {size}", "gelu", [x], z, lambda p, x, z: functions(p).gelu(x))
    for name, peer in (("random_uniform", "rand"), ("random_normal", "randn")):
        b.row(f"{name} {size}", name, [], z, lambda p, z: getattr(p, peer)(n, device=z.device), tolerance=None, shape=[n], dtype="float32",
              seed=1)
    many = [[b.normal(1 << 20) for _ in range(50)] for _ in range(2)] + [[b.empty(1 << 20) for _ in range(50)] for _ in range(2)]
    b.row("adam, 50 tensors of 2^20", "adam", sum(many, []), [None] * 150, adam, bytes=28 * 50 << 20)
    image, channel = b.normal(32, 64, 56, 56), [b.normal(64), b.normal(64)]
    b.row("batch_norm 32x64x56x56", "batch_norm", [image, *channel], [b.empty(32, 64, 56, 56), None, None],
          lambda p, x, w, s, z: functions(p).batch_norm(x, None, None, w, s, True), bytes=3 * image.size_bytes, tolerance=1e-3)
    for name, shape, *more in CONVOLUTIONS:
        shape = (max(1, shape[0] // 8), *shape[1:]) if b.is_cpu else shape
        convolution(b, name, shape, *more, "float32")
        if not b.is_cpu and name.startswith("ResNet 3x3"):
            convolution(b, f"{name} float16", shape, *more, "float16")
    outer = (8, 64, 56, 56) if b.is_cpu else (32, 64, 112, 112)
    inner = (*outer[:2], outer[2] // 2, outer[3] // 2)
    x, dy, size = b.normal(*outer), b.normal(*inner), "x".join(map(str, outer))
    y = b.op("max_pool", [x], "float32", *inner, window=[2, 2])
    b.row(f"max_pool 2x2 of {size}", "max_pool", [x], b.empty(*inner), lambda p, x, z: functions(p).max_pool2d(x, 2), window=[2, 2])
    b.row(f"average_pool 2x2 of {size}", "average_pool", [x], b.empty(*inner), lambda p, x, z: functions(p).avg_pool2d(x, 2), window=[2, 2])
    indices = {}

    def pool_backward(p, dy, x, y, z):
        if not indices:
            indices[0] = functions(p).max_pool2d(x, 2, return_indices=True)[1]
        return p.ops.aten.max_pool2d_with_indices_backward(dy, x, [2, 2], [2, 2], [0, 0], [1, 1], False, indices[0])

    b.row(f"max_pool_grad 2x2 of {size}", "max_pool_grad", [dy, x, y], b.empty(*outer), pool_backward, window=[2, 2])
    for dtype in ("float32",) if b.is_cpu else ("float32", "float16", "bfloat16"):
        for length, d in ((512, 64),) if b.is_cpu else ((512, 64), (2048, 64), (2048, 128)) + (() if b.quick else ((8192, 128),)):
            for causal in (0, 1):
                attention(b, length, d, dtype, causal)


def layout(b):
    """Whether layouts that are not contiguous keep the bandwidth of a copy."""
    power = 24 if b.quick or b.is_cpu else 28
    n, side = 1 << power, 1 << power // 2
    x, y, z, half = b.normal(side, side), b.normal(side, side), b.empty(side, side), b.empty(side, side, dtype="float16")
    turned = [b.normal(side, side).permuted([1, 0]) for _ in range(2)]
    sums, indices = b.empty(side), b.empty(side, dtype="int64")
    for name, op, inputs, out, peer, bytes, more in (
            ("copy", "copy", [x], z, lambda p, x, z: p.copy(z, x), 8, {}),
            ("add", "add", [x, y], z, lambda p, x, y, z: p.add(x, y, out=z), 12, {}),
            ("exp", "exp", [x], z, lambda p, x, z: p.exp(x, out=z), 8, {}),
            ("cast to float16", "cast", [x], half, lambda p, x, z: p.copy(z, x), 6, {"dtype": "float16"}),
            ("transposed copy", "copy", [turned[0]], z, lambda p, x, z: p.copy(z, x), 8, {}),
            ("add a transposed one", "add", [x, turned[1]], z, lambda p, x, y, z: p.add(x, y, out=z), 12, {}),
            ("sum of all", "sum", [x], b.empty(), lambda p, x, z: p.reduce("sum", x, None, z), 4, {}),
            ("sum over axis 0", "sum", [x], sums, lambda p, x, z: p.reduce("sum", x, (0,), z), 4, {"axes": [0]}),
            ("sum over axis 1", "sum", [x], sums, lambda p, x, z: p.reduce("sum", x, (1,), z), 4, {"axes": [1]}),
            ("max over axis 0", "max", [x], sums, lambda p, x, z: p.reduce("max", x, (0,), z), 4, {"axes": [0]}),
            ("argmax over axis 1", "argmax", [x], indices, lambda p, x, z: p.argmax(x, 1, z), 4, {"axis": 1})):
        b.row(f"{name}, 2^{power} float32", op, inputs, out, peer, bytes=bytes * n, tolerance=None, **more)


def transfers(b):
    """Between pageable memory of the host and the device. The contestant `pinned` copies pinned memory."""
    for mib in (1, 64, 512):
        size = mib << 20
        for name, to_device, move in (("host to device", True, b.lib.write), ("device to host", False, b.lib.read)):
            row = f"pageable {name}, {mib} MiB"
            if not b.wants(row):
                continue
            area, tensor = mmap.mmap(-1, size), b.empty(size // 4)
            area.write(b"\1" * size)
            address = ctypes.addressof(ctypes.c_char.from_buffer(area))
            contestants = {"ours": b.python_stretch(lambda: move(tensor.tensor, address, size))}
            for one in b.peers:
                if hasattr(type(one), "transfer"):
                    contestants[one.name] = b.python_stretch(one.transfer(size, to_device, False), one.synchronize)
                    if not b.is_cpu:
                        contestants["pinned"] = b.python_stretch(one.transfer(size, to_device, True), one.synchronize)
            b.stretches(row, contestants, size)
