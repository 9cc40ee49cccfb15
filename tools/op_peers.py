#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures ops of networks and arrays beside PyTorch on the same device, in one run, and prints one table.

    tools/op_peers.py [--device cuda0] [--library PATH/libcompute.so.0] [--threads N] [--quick] [--only WORD] [--json FILE]

Times are medians of interleaved rounds. Results are compared as well: a row whose result differs from PyTorch's says so. A ratio is our
time over PyTorch's.
"""
import argparse
import ctypes
import json
import math
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gpu_peers import SIZES, Library, Table, compare  # noqa: E402
from compute_bench.library import attribute_array  # noqa: E402


class Ops(Library):
    def upload(self, data):
        """A tensor of ours with the elements of one of PyTorch's."""
        host = data.detach().cpu().contiguous()
        name = str(host.dtype).removeprefix("torch.")
        tensor = self.full(name, list(host.shape), 0)
        self.write(tensor, host.data_ptr(), host.numel() * host.element_size())
        tensor.torch = data
        return tensor

    def download(self, tensor, like):
        import torch
        result = torch.empty_like(like, device="cpu", memory_format=torch.contiguous_format)
        self.read(tensor, result.data_ptr(), result.numel() * result.element_size())
        return result

    def op(self, name, inputs, outputs=1, **attributes):
        """A function without arguments that runs the op, keeps its results in `.results`, and drops them in the next call."""
        op = ctypes.c_void_p()
        self.check(self.c.compute_op_find(name.encode(), 1, ctypes.byref(op)))
        array = (ctypes.c_void_p * max(1, len(inputs)))(*[t.value if t is not None else None for t in inputs])
        out = (ctypes.c_void_p * outputs)()
        given, keep = attribute_array(attributes)
        run, check, release = self.c.compute_op_run, self.check, self.c.compute_tensor_release
        n_attributes, n_inputs, n_outputs = ctypes.c_int64(len(attributes)), ctypes.c_int64(len(inputs)), ctypes.c_int64(outputs)
        pointers = [ctypes.c_void_p() for _ in range(outputs)]

        def call(_keep=(keep, inputs)):
            for i in range(outputs):
                if out[i]:
                    release(ctypes.c_void_p(out[i]))
                    out[i] = None
            error = run(op, self.stream, given, n_attributes, array, n_inputs, out, n_outputs)
            if error:
                check(error)

        def result(i=0):
            pointers[i].value = out[i]
            return pointers[i]

        call.result = result
        return call


def rows(torch, lib, add, quick, where):
    """Every row: add(name, our call, PyTorch's call, result to compare or None, bytes that must move)."""
    F = torch.nn.functional
    gen = torch.Generator(device=where).manual_seed(1)
    rand = lambda *shape, dtype=torch.float32: torch.randn(*shape, generator=gen, device=where).to(dtype)
    on_gpu = where == "cuda"

    def both(*tensors):
        return [lib.upload(t) for t in tensors]

    def reduction_like():
        x, dy = rand(4096, 1024), rand(4096, 1024)
        a, b = both(x, dy)
        size = x.numel() * 4
        add("softmax 4096x1024", lib.op("softmax", [a]), lambda: torch.softmax(x, 1), 1e-5, 2 * size)
        add("log_softmax 4096x1024", lib.op("log_softmax", [a]), lambda: torch.log_softmax(x, 1), 1e-4, 2 * size)
        y = torch.softmax(x, 1)
        c, = both(y)
        add("softmax_grad", lib.op("softmax_grad", [b, c]),
            lambda: torch._softmax_backward_data(dy, y, 1, torch.float32), 1e-5, 3 * size)
        add("logsumexp", lib.op("logsumexp", [a], axes=[1]), lambda: torch.logsumexp(x, 1), 1e-4, size)
        add("var", lib.op("var", [a], axes=[1]), lambda: torch.var(x, 1, correction=0), 1e-4, size)
        w, s = rand(1024), rand(1024)
        cw, cs = both(w, s)
        add("layer_norm", lib.op("layer_norm", [a, cw, cs], 3), lambda: F.layer_norm(x, (1024,), w, s), 1e-4, 2 * size)
        _, mean, rstd = torch.native_layer_norm(x, (1024,), w, s, 1e-5)
        cm, cr = both(mean.reshape(-1), rstd.reshape(-1))
        add("layer_norm_grad", lib.op("layer_norm_grad", [b, a, cm, cr, cw], 3),
            lambda: torch.ops.aten.native_layer_norm_backward(dy, x, (1024,), mean, rstd, w, s, [True] * 3)[0], 1e-3, 3 * size)
        if hasattr(F, "rms_norm"):
            add("rms_norm", lib.op("rms_norm", [a, cw], 2, epsilon=1e-5), lambda: F.rms_norm(x, (1024,), w, 1e-5), 1e-4, 2 * size)
        labels = torch.randint(0, 1024, (4096,), generator=gen, device=where)
        cl, = both(labels)
        add("cross_entropy", lib.op("cross_entropy", [a, cl], 2), lambda: F.cross_entropy(x, labels, reduction="none"), 1e-4, size)
        image = rand(32, 64, 56, 56)
        ci, = both(image)
        cw, cs = both(rand(64), rand(64))
        add("batch_norm 32x64x56x56", lib.op("batch_norm", [ci, cw, cs], 3),
            lambda: F.batch_norm(image, None, None, cw.torch, cs.torch, True), 1e-3, 3 * image.numel() * 4)

    def elementwise_like():
        n = 1 << 22 if not on_gpu else 1 << 26
        x = rand(n)
        a, = both(x)
        add("dropout", lib.op("dropout", [a], seed=3), lambda: F.dropout(x, 0.5), None, 8 * n)
        add("gelu", lib.op("gelu", [a]), lambda: F.gelu(x), 1e-5, 8 * n)
        add("random_uniform", lib.op("random_uniform", [], shape=[n], dtype="float32", seed=1), lambda: torch.rand(n, device=where), None, 4 * n)
        add("random_normal", lib.op("random_normal", [], shape=[n], dtype="float32", seed=1), lambda: torch.randn(n, device=where), None, 4 * n)
        p, g = [rand(1 << 20) for _ in range(50)], [rand(1 << 20) for _ in range(50)]
        m, v = [torch.zeros_like(t) for t in p], [torch.zeros_like(t) for t in p]
        ours = lib.op("adam", both(*p, *g, *m, *v), 150)
        steps = [torch.zeros((), device=where) for _ in p]
        from torch.optim.adam import adam
        kind = {"fused": True} if on_gpu else {"foreach": True}
        add("adam, 50 tensors of 2^20", ours,
            lambda: adam(p, g, m, v, [], steps, foreach=kind.get("foreach", False), capturable=False, differentiable=False,
                         fused=kind.get("fused", False), grad_scale=None, found_inf=None, has_complex=False, amsgrad=False, beta1=0.9,
                         beta2=0.999, lr=1e-3, weight_decay=0.0, eps=1e-8, maximize=False), None, 28 * 50 * (1 << 20))

    def ordering():
        n = (1 << 22) // (1 if on_gpu else 4)
        x, table = rand(n), rand(4096, 1024)
        a, t = both(x, table)
        add("cumulative_sum 2^22", lib.op("cumulative_sum", [a]), lambda: torch.cumsum(x, 0), 3e-1, 8 * n)
        add("cumulative_sum rows of 1024", lib.op("cumulative_sum", [t]), lambda: torch.cumsum(table, 1), 1e-2, 2 * table.numel() * 4)
        add("cumulative_sum over axis 0", lib.op("cumulative_sum", [t], axis=0), lambda: torch.cumsum(table, 0), 1e-2, 2 * table.numel() * 4)
        add("sort 2^22", lib.op("sort", [a]), lambda: torch.sort(x)[0], 0, 8 * n)
        add("argsort 2^22, stable", lib.op("argsort", [a]), lambda: torch.argsort(x, stable=True), 0, 12 * n)
        add("sort rows of 1024", lib.op("sort", [t]), lambda: torch.sort(table, 1)[0], 0, 2 * table.numel() * 4)
        integers = torch.randint(-2**40, 2**40, (n,), generator=gen, device=where)
        i, = both(integers)
        add("sort 2^22 int64", lib.op("sort", [i]), lambda: torch.sort(integers)[0], 0, 16 * n)
        add("top_k 50 of 1024", lib.op("top_k", [t], 2, k=50), lambda: torch.topk(table, 50, 1)[0], 0, table.numel() * 4)
        add("top_k 50 of 2^22", lib.op("top_k", [a], 2, k=50), lambda: torch.topk(x, 50)[0], 0, n * 4)
        s = torch.sort(x)[0]
        cs, ct = both(s, table.reshape(-1))
        add("searchsorted 2^22 in 2^22", lib.op("searchsorted", [cs, ct]), lambda: torch.searchsorted(s, table.reshape(-1)), 0, 12 * n)
        words = torch.randint(0, 1000, (n,), generator=gen, device=where)
        cw, = both(words)
        add("unique 2^22 of 1000", lib.op("unique", [cw], 5), lambda: torch.unique(words, return_inverse=True, return_counts=True)[0], None, 8 * n)
        mask = x > 0
        cm, = both(mask)
        add("nonzero 2^22", lib.op("nonzero", [cm], 2), lambda: torch.nonzero(mask), None, 9 * n)

    def indexing():
        table = rand(50000, 256)
        indices = torch.randint(0, 50000, (32768,), generator=gen, device=where)
        dy = rand(32768, 256)
        t, i, d = both(table, indices, dy)
        size = dy.numel() * 4
        add("embedding", lib.op("take", [t, i]), lambda: F.embedding(indices, table), 0, 2 * size)
        add("embedding_grad", lib.op("take_grad", [d, i], size=50000),
            lambda: torch.ops.aten.embedding_dense_backward(dy, indices, 50000, -1, False), 1e-3, 2 * size + table.numel() * 4)
        add("embedding_grad, deterministic", lib.op("take_grad", [d, i], size=50000, deterministic=1),
            lambda: torch.ops.aten.embedding_dense_backward(dy, indices, 50000, -1, False), 1e-3, 2 * size + table.numel() * 4)
        x = rand(4096, 1024)
        j = torch.randint(0, 1024, (4096, 1024), generator=gen, device=where)
        a, b = both(x, j)
        add("gather along rows", lib.op("take_along_axis", [a, b]), lambda: torch.gather(x, 1, j), 0, 16 * x.numel())
        add("scatter add along rows", lib.op("scatter", [a, b, a], axis=1, reduction="add"),
            lambda: torch.scatter_add(x, 1, j, x), 1e-3, 16 * x.numel())

    def convolution(name, shape, weight, options, dtype):
        x, w = rand(*shape, dtype=dtype), (rand(*weight) / math.sqrt(math.prod(weight[1:]))).to(dtype)
        spatial = len(shape) - 2
        convolve = F.conv2d if spatial == 2 else F.conv1d
        stride, pad, groups = options.get("stride", 1), options["padding"], options.get("groups", 1)
        y = convolve(x, w, None, stride, pad, 1, groups)
        dy = rand(*y.shape, dtype=dtype)
        a, b, d = both(x, w, dy)
        ours = {"strides": [stride] * spatial, "pads_begin": [pad] * spatial, "pads_end": [pad] * spatial, "groups": groups}
        moved = x.element_size() * (x.numel() + w.numel() + y.numel())
        near = 1e-4 if dtype == torch.float32 else 2e-3
        add(f"convolution {name}", lib.op("convolution", [a, b], **ours), lambda: convolve(x, w, None, stride, pad, 1, groups), near, moved)
        backward = lambda mask: torch.ops.aten.convolution_backward(
            dy, x, w, None, [stride] * spatial, [pad] * spatial, [1] * spatial, False, [0] * spatial, groups, mask)
        add(f"convolution_grad_input {name}", lib.op("convolution_grad_input", [d, b], shape=list(shape[2:]), **ours),
            lambda: backward([True, False, False])[0], near, moved)
        add(f"convolution_grad_weight {name}", lib.op("convolution_grad_weight", [d, a], kernel=list(weight[2:]), **ours),
            lambda: backward([False, True, False])[1], near, moved)

    def windows():
        for name, shape, weight, options in (
                ("LeNet 5x5", (128, 32, 28, 28), (64, 32, 5, 5), {"padding": 2}),
                ("ResNet 3x3", (32, 64, 56, 56), (64, 64, 3, 3), {"padding": 1}),
                ("ResNet 3x3 deep", (32, 512, 7, 7), (512, 512, 3, 3), {"padding": 1}),
                ("ResNet 1x1", (32, 256, 56, 56), (64, 256, 1, 1), {"padding": 0}),
                ("ResNet 7x7 /2", (32, 3, 224, 224), (64, 3, 7, 7), {"padding": 3, "stride": 2}),
                ("depthwise 3x3", (32, 128, 56, 56), (128, 1, 3, 3), {"padding": 1, "groups": 128}),
                ("text width 3", (32, 50, 400), (250, 50, 3), {"padding": 0})):
            if not on_gpu:
                shape = (max(1, shape[0] // 8),) + shape[1:]
            convolution(name, shape, weight, options, torch.float32)
            if on_gpu and name.startswith("ResNet 3x3"):
                convolution(name + " float16", shape, weight, options, torch.float16)
        x = rand(32, 64, 112, 112) if on_gpu else rand(8, 64, 56, 56)
        y = F.max_pool2d(x, 2)
        dy = rand(*y.shape)
        a, b, d = both(x, y, dy)
        pool = {"window": [2, 2]}
        add("max_pool 2x2", lib.op("max_pool", [a], **pool), lambda: F.max_pool2d(x, 2), 0, 5 * x.numel())
        indices = F.max_pool2d(x, 2, return_indices=True)[1]
        add("max_pool_grad 2x2", lib.op("max_pool_grad", [d, a, b], **pool),
            lambda: torch.ops.aten.max_pool2d_with_indices_backward(dy, x, [2, 2], [2, 2], [0, 0], [1, 1], False, indices), 0, 8 * x.numel())
        add("average_pool 2x2", lib.op("average_pool", [a], **pool), lambda: F.avg_pool2d(x, 2), 1e-5, 5 * x.numel())

    def attention():
        for dtype in ("float32", "float16", "bfloat16"):
            for n, d in ((512, 64), (2048, 64), (2048, 128), (8192, 128)):
                if n > (2048 if quick else 8192) or (not on_gpu and (n > 512 or dtype != "float32")):
                    continue
                q, k, v = (rand(2 if n > 2048 else 4, 8, n, d, dtype=getattr(torch, dtype)) for _ in range(3))
                given = both(q, k, v)
                for causal in (0, 1):
                    add(f"attention {dtype} {n}x{d}{' causal' if causal else ''}", lib.op("attention", given, 2, causal=causal),
                        lambda: F.scaled_dot_product_attention(q, k, v, is_causal=bool(causal)), 2e-3 if dtype == "float32" else 3e-2,
                        4 * q.numel() * SIZES[dtype])
                    if n <= 2048:
                        attention_grad(f"{dtype} {n}x{d}{' causal' if causal else ''}", q, k, v, given, causal)

    def attention_grad(what, q, k, v, given, causal):
        forward = lib.op("attention", given, 2, causal=causal)
        forward()
        dy = torch.ones_like(q) / 4
        with torch.enable_grad():
            leaves = [t.detach().requires_grad_() for t in (q, k, v)]
            y = F.scaled_dot_product_attention(*leaves, is_causal=bool(causal))
        ours = lib.op("attention_grad", [*both(dy), *given, forward.result(0), forward.result(1)], 3, causal=causal)
        ours.forward = forward  # keeps its results
        add(f"attention_grad {what}", ours, lambda: torch.autograd.grad(y, leaves, dy, retain_graph=True)[0],
            2e-3 if q.dtype == torch.float32 else 5e-2, 8 * q.numel() * q.element_size())

    def products():
        x, w, b = rand(4096, 1024), rand(1024, 1024), rand(1024)
        a, c, d = both(x, w, b)
        add("affine + relu 4096x1024x1024", lib.op("affine", [a, c, d], activation="relu"),
            lambda: F.relu(torch.addmm(b, x, w)), 1e-2, 4 * (2 * x.numel() + w.numel()))

    return {"rows": reduction_like, "maps": elementwise_like, "order": ordering, "index": indexing, "windows": windows,
            "attention": attention, "products": products}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda0")
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--library", default=os.path.join(here, "..", "build", "lib", "libcompute.so.0"))
    parser.add_argument("--threads", type=int, default=0, help="of PyTorch and, by COMPUTE_CPU_THREADS, of ours on cpu; 0: all")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--only", default="", help="sections whose name has this word: rows maps order index windows attention products")
    parser.add_argument("--json", help="also write the rows to this file")
    options = parser.parse_args()
    if options.threads:
        os.environ["COMPUTE_CPU_THREADS"] = str(options.threads)
    import torch
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.set_grad_enabled(False)
    where = "cpu" if options.device.startswith("cpu") else "cuda"
    lib = Ops(options.library, options.device)
    if where == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = os.environ.get("COMPUTE_MATH") == "tf32"
        torch_sync = torch.cuda.synchronize
        print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name(0)}, ours on {options.device}")
    else:
        torch_sync = lambda: None
        print(f"PyTorch {torch.__version__} on {torch.get_num_threads()} threads, ours on {options.device}")
    table = Table()

    def add(name, ours, peer, tolerance, moved):
        try:
            ours()
            lib.synchronize()
        except RuntimeError as reason:
            print(f"{name:<50} {str(reason).splitlines()[0][:120]}", flush=True)
            return
        note = ""
        if tolerance is not None:
            wanted = peer()
            got = lib.download(ours.result(), wanted)
            wanted = wanted.cpu().double()
            error = (got.double() - wanted).abs().max().item() / max(1.0, wanted.abs().max().item())
            if not error <= tolerance:
                note = f" !! differs by {error:.3g}"
        from gpu_peers import per_call
        once = max(per_call(ours, lib.synchronize, 1), per_call(peer, torch_sync, 1), 1e-6)
        calls = max(1, min(50, int(0.02 / once)))
        rounds = 5 if options.quick else 9
        if once > 0.05:
            rounds = 3
        times = compare({"ours": (ours, lib.synchronize), "torch": (peer, torch_sync)}, calls, rounds)
        table.row(name, times, "<=1.00", f"{moved / times['ours'] / 1e9:.0f} GB/s{note}")

    for name, body in rows(torch, lib, add, options.quick, where).items():
        if options.only not in name:
            continue
        try:
            body()
        except Exception as reason:  # the table shows what there is
            print(f"{name}: {type(reason).__name__}: {reason}", flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(table.rows, file, indent=1)


if __name__ == "__main__":
    sys.exit(main())
