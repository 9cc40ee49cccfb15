# SPDX-License-Identifier: Apache-2.0
"""The rows: measured work, and how the peers do the same."""
import math

from .library import SIZES


class Array:
    """A tensor of ours, and the same elements as an array of each peer. Each is made when a row first needs it."""

    def __init__(self, bench, make, dtype, shape, of=None, view=None):
        self.bench, self.make, self.dtype, self.shape = bench, make, dtype, tuple(shape)
        self.of, self.view, self.copies, self.data, self.made = of, view, {}, None, None

    @property
    def tensor(self):
        if self.made is None:
            self.made = self.make()
        return self.made

    def __del__(self):
        if self.made is not None:
            self.bench.lib.c.compute_tensor_release(self.made)

    @property
    def size_bytes(self):
        return math.prod(self.shape) * SIZES[self.dtype]

    def on(self, peer):
        if peer.name not in self.copies:
            if self.of is not None:
                self.copies[peer.name] = self.view(self.of.on(peer))
            else:
                self.data = self.data or self.bench.bytes_of(self)
                self.copies[peer.name] = peer.array(self.data, self.dtype, self.shape)
        return self.copies[peer.name]

    def __getitem__(self, steps):
        """Every n-th element along each axis."""
        shape = [-(-extent // abs(step)) for extent, step in zip(self.shape, steps)]
        slices = tuple(slice(None, None, step) for step in steps)
        return Array(self.bench, lambda: self.bench.lib.sliced(self.tensor, steps), self.dtype, shape, self, lambda a: a[slices])

    def permuted(self, axes):
        def view(a):
            return a.permute(*axes) if hasattr(a, "permute") else a.transpose(axes)
        return Array(self.bench, lambda: self.bench.lib.permuted(self.tensor, axes), self.dtype, [self.shape[i] for i in axes], self, view)


def elementwise(b):
    for n in b.sizes:
        x, y, z, s = b.normal(n), b.normal(n), b.empty(n), b.empty()
        b.row(f"add {n}", "add", [x, y], z, lambda p, x, y, z: p.add(x, y, out=z), flops=n)
        b.row(f"copy {n}", "copy", [x], z, lambda p, x, z: p.copy(z, x))
        b.row(f"exp {n}", "exp", [x], z, lambda p, x, z: p.exp(x, out=z), flops=n)
        b.row(f"sum {n}", "sum", [x], s, lambda p, x, s: p.reduce("sum", x, None, s), tolerance=1e-2, flops=n)
    side = b.side
    n = side * side
    x, y, z = b.normal(side, side), b.normal(side, side), b.empty(side, side)
    positive, small = b.op("abs", [x], "float32", side, side), b.normal(1000)
    b.row("expression tanh(a*b+1)", b.expression("tanh(a*b+1)", [x, y], z), [x, y], z, lambda p, x, y, z: p.tanh(x * y + 1), flops=3 * n)
    b.row("expression a*a+b*b+sqrt(a)", b.expression("a*a+b*b+sqrt(a)", [positive, y], z), [positive, y], z,
          lambda p, x, y, z: x * x + y * y + p.sqrt(x), flops=5 * n)
    row, column = b.normal(1, side), b.normal(side, 1)
    for name, other in (("row", row), ("column", column)):
        b.row(f"add a {name}", "add", [x, other], z, lambda p, x, y, z: p.add(x, y, out=z), flops=n)
    mask = b.empty(side, side, dtype="bool")
    b.row("x < y", "less", [x, y], mask, lambda p, x, y, z: p.less(x, y, out=z))
    b.row("where", "where", [mask, x, y], z, lambda p, m, x, y, z: p.where(m, x, y, z))
    b.row("pow", "pow", [positive, y], z, lambda p, x, y, z: p.power(x, y, out=z), tolerance=1e-3)
    b.row("atan2", "atan2", [x, y], z, lambda p, x, y, z: p.arctan2(x, y, out=z))
    for name, given in (("erf", x), ("erfc", x), ("log1p", positive), ("tanh", x), ("sin", x), ("log", positive)):
        b.row(name, name, [given], z, lambda p, x, z: getattr(p, name)(x, out=z), tolerance=1e-3)
    large = b.op("multiply", [x, b.full("float32", 1e5)], "float32", side, side)
    b.row("sin of values to 1e5", "sin", [large], z, lambda p, x, z: p.sin(x, out=z))
    for dtype in ("float16", "bfloat16", "float64", "complex64", "int32"):
        s, t = (b.cast(v, dtype) for v in ((large, large) if dtype == "int32" else (x, y)))
        u = b.empty(side, side, dtype=dtype)
        b.row(f"{dtype} add", "add", [s, t], u, lambda p, x, y, z: p.add(x, y, out=z), tolerance=1e-2, flops=n)
        if dtype != "int32":
            b.row(f"{dtype} multiply", "multiply", [s, t], u, lambda p, x, y, z: p.multiply(x, y, out=z), tolerance=1e-2, flops=n)
        if dtype != "complex64":
            b.row(f"{dtype} to float32", "cast", [s], z, lambda p, x, z: p.copy(z, x), dtype="float32")
    d, e = b.cast(x, "float64"), b.empty(side, side, dtype="float64")
    b.row("float64 exp", "exp", [d], e, lambda p, x, z: p.exp(x, out=z))
    b.row("int8 to float32", "cast", [b.cast(x, "int8")], z, lambda p, x, z: p.copy(z, x), dtype="float32")
    b.row("a small add that makes its result", "add", [small, small], None, lambda p, x, y: p.add(x, y))


def moves(b):
    side = b.side
    x, z = b.normal(side, side), b.empty(side, side)

    def copy(name, view):
        b.row(name, "copy", [view], b.empty(*view.shape), lambda p, x, z: p.copy(z, x))

    copy("copy x[:, ::2]", x[1, 2])
    copy("copy x[::2]", x[2, 1])
    copy("copy x[:, ::-1]", x[1, -1])
    copy("copy transposed", x.permuted([1, 0]))
    y = b.normal(side // 8, 128, side // 16)
    for axes in ((0, 2, 1), (2, 0, 1), (1, 0, 2), (2, 1, 0)):
        copy(f"copy permuted {axes}", y.permuted(axes))
    copy("copy to rows of 8", b.normal(8, side * side // 8).permuted([1, 0]))
    copy("copy rows of 8", b.normal(side * side // 8, 16)[1, 2])
    table, indices, out = b.normal(50000, 128), b.integers(50000, 32768), b.empty(32768, 128)
    moved = 2 * out.size_bytes + indices.size_bytes
    b.row("take rows of 128", "take", [table, indices], out, lambda p, t, i, z: p.take(t, i, z), bytes=moved)
    j = b.integers(side, side, side)
    b.row("take_along_axis", "take_along_axis", [x, j], z, lambda p, x, j, z: p.take_along(x, j, -1))
    flat, single = b.normal(side * side), b.integers(side * side, 1 << 20)
    b.row("take 1e6 elements", "take", [flat, single], b.empty(1 << 20), lambda p, t, i, z: p.take(t, i, z), bytes=16 << 20)
    halves, columns = [b.normal(side // 2, side) for _ in "ab"], [b.normal(side, side // 2) for _ in "ab"]
    b.row("concat", "concat", halves, z, lambda p, x, y, z: p.concat([x, y], 0, z))
    b.row("concat of columns", "concat", columns, z, lambda p, x, y, z: p.concat([x, y], 1, z), axis=1)
    b.row("stack", "stack", halves, b.empty(side // 2, side, 2), lambda p, x, y, z: p.stack((x, y), 2, out=z), axis=2)


def reductions(b):
    side = b.side
    x, n = b.normal(side, side), side * side

    def reduce(name, op, data, axes, dtype="float32", tolerance=1e-3):
        shape = [] if axes is None else [e for i, e in enumerate(data.shape) if i not in axes]
        given = {} if axes is None else {"axes": list(axes)}
        b.row(name, op, [data], b.empty(*shape, dtype=dtype), lambda p, x, z: p.reduce(op, x, axes, z), tolerance=tolerance,
              flops=math.prod(data.shape), **given)

    y = b.normal(side // 16, 256, side // 16)
    reduce("sum of the middle axis", "sum", y, (1,))
    reduce("sum of axes 0 and 2", "sum", y, (0, 2))
    reduce("sum of rows", "sum", x, (1,))
    reduce("sum of columns", "sum", x, (0,))
    for shape, axis, name in (((n // 8, 8), 1, "rows of 8"), ((8, n // 8), 1, "8 rows"), ((8, n // 8), 0, "columns of 8")):
        reduce(f"sum of {name}", "sum", b.normal(*shape), (axis,), tolerance=1e-2)
    reduce("mean of float16", "mean", b.cast(x, "float16"), None, "float16", 1e-2)
    reduce("var of rows", "var", x, (1,))
    reduce("std of all", "std", x, None)
    reduce("max of all", "max", x, None)
    for axis, name in ((0, "columns"), (1, "rows")):
        b.row(f"argmax of {name}", "argmax", [x], b.empty(side, dtype="int64"), lambda p, x, z: p.argmax(x, axis, z), axis=axis)
    b.row("sum of int32", "sum", [b.cast(x, "int32")], b.empty(dtype="int64"), lambda p, x, z: p.reduce("sum", x, None, z))
    zeros = b.empty(side, side, dtype="bool")
    b.row("any of zeros", "any", [zeros], b.empty(dtype="bool"), lambda p, x, z: p.reduce("any", x, None, z))
    z = b.empty(side, side)
    b.row("softmax of rows", "softmax", [x], z, lambda p, x, z: p.softmax(x, 1, out=z), flops=5 * n)
    b.row("scatter add along rows", "scatter", [x, b.integers(side, side, side), x], z,
          lambda p, x, j, y, z: p.scatter_add(x, 1, j, y), tolerance=1e-3, axis=1, reduction="add")


def product(b, name, *shapes, dtype="float32", tolerance=1e-3, is_transposed=False, **more):
    x, y = (b.cast(b.normal(*shape), dtype) for shape in shapes)
    x = x.permuted([1, 0]) if is_transposed else x
    m, n = x.shape[:-1], y.shape[-1:] if len(y.shape) > 1 else ()
    z = b.empty(*m, *n, dtype=dtype)
    flops = (8 if dtype.startswith("complex") else 2) * math.prod(z.shape) * x.shape[-1]
    b.row(name, "matmul", [x, y], z, lambda p, x, y, z: p.matmul(x, y, out=z), tolerance=tolerance, flops=flops, **more)


def products(b):
    product(b, "matrix x vector 2048", (2048, 2048), (2048,))
    product(b, "vector x matrix 2048", (2048,), (2048, 2048))
    product(b, "matrix x vector 4096", (4096, 4096), (4096,))
    product(b, "vector x matrix 4096", (4096,), (4096, 4096))
    product(b, "dot of 1e6", (1000000,), (1000000,), tolerance=1e-2)
    product(b, "2048 x 64 x 2048", (2048, 64), (64, 2048))
    product(b, "64 x 2048 x 64", (64, 2048), (2048, 64))
    product(b, "4096 x 64 x 4096", (4096, 64), (64, 4096))
    product(b, "64 x 4096 x 64", (64, 4096), (4096, 64))
    product(b, "tall-skinny 100000 x 16 x 16", (100000, 16), (16, 16))
    product(b, "2 x 1024 x 1024", (2, 1024), (1024, 1024))
    product(b, "8 x 4096 x 2048", (8, 4096), (4096, 2048))
    product(b, "16 x 1024 x 1024", (16, 1024), (1024, 1024))
    product(b, "batch 64 of 256^3", (64, 256, 256), (64, 256, 256))
    product(b, "batch 512 of 32^3", (512, 32, 32), (512, 32, 32))
    product(b, "batch 64 of 256^3, shared b", (64, 256, 256), (256, 256))
    for n in filter(lambda n: b.is_soon_done(2 * n**3), (64, 128, 256, 512, 1024) + (() if b.quick else (2048, 4096))):
        product(b, f"matmul {n}", (n, n), (n, n))
    product(b, "matmul 1000x1001x999", (1000, 1001), (1001, 999))
    for dtype in ("float64", "complex64") + (("float16",) if b.is_cpu else ()):
        product(b, f"matmul 512 {dtype}", (512, 512), (512, 512), dtype=dtype, tolerance=1e-2)
    if not b.is_cpu:  # what matrix units are for
        for dtype in ("float16", "bfloat16"):
            for n in filter(lambda n: b.is_soon_done(2 * n**3), (512, 1024, 2048) if b.quick else (512, 1024, 2048, 4096, 8192)):
                product(b, f"matmul {n} {dtype}", (n, n), (n, n), dtype=dtype, tolerance=2e-2)
        for dtype in ("float32", "float64", "float16", "bfloat16"):
            for n in filter(lambda n: b.is_soon_done(2 * n**3), (512, 2048) if b.quick else (512, 2048, 8192)):
                product(b, f"matmul^T {n} {dtype}", (n, n), (n, n), dtype=dtype, tolerance=2e-2, is_transposed=True)
        for n in filter(lambda n: b.is_soon_done(4 * n**3), () if b.quick else (2048, 8192)):
            product(b, f"matmul {n} float64", (n, n), (n, n), dtype="float64")


def tf32(b):
    """Products of float32 at the precision of COMPUTE_MATH=tf32, which a process has for all that it does."""
    for n in (1024, 2048) if b.quick else (1024, 2048, 4096, 8192):
        product(b, f"matmul {n} tf32", (n, n), (n, n), tolerance=5e-2)
    for n in (2048,) if b.quick else (2048, 8192):
        product(b, f"matmul^T {n} tf32", (n, n), (n, n), tolerance=5e-2, is_transposed=True)
