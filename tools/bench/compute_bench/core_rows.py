# SPDX-License-Identifier: Apache-2.0
"""Rows of core and of the processor's kernels, timed without Python in between. With --threads 1 they compare one core with NumPy, the
matrix libraries, memcpy, reading memory and the peak rate of multiply and add. A row is called op/dtype/shape."""
import ctypes
import time

from .library import DTYPES, SIZES

CLASSES = {"float": ("ANY", "REAL", "FLOAT", "INEXACT", "NUMERIC"), "int": ("ANY", "INTEGER", "BITS", "REAL", "NUMERIC")}
POSITIVE = ("log", "log2", "log10", "sqrt", "rsqrt")
SHIFTS, DIVISIONS = ("bitwise_left_shift", "bitwise_right_shift"), ("floor_divide", "remainder")


def calls(b):
    """The time of the caller for ops of two elements: core's and the plugin's own cost. The device `null` has none. The least of many
    short stretches, because disturbances only add time. Waits for a queue are outside of them."""
    c, stream = b.lib.c, b.lib.stream
    x, y, z = (b.empty(2) for _ in "xyz")
    result, shape = (ctypes.c_void_p * 1)(), (ctypes.c_int64 * 1)(2)
    for name, function, arguments in (
            ("add_into", c.compute_add_into, (stream, x.tensor, y.tensor, z.tensor)),
            ("add", c.compute_add, (stream, x.tensor, y.tensor, result)),
            ("sum", c.compute_sum, (stream, x.tensor, None, result)),
            ("tensor_empty", c.compute_tensor_empty, (b.lib.device, DTYPES["float32"], 1, shape, result))):
        fresh = (None, None) if name == "add_into" else (result, c.compute_tensor_release)
        ours = b.machine.calls(function, arguments, b.clock, *fresh, b.lib.check, (x, y, z))
        contestants = {"ours": waited_for(ours, b.lib.synchronize)}
        driver = next((one for one in b.peers if one.name == "cuda_driver"), None)
        if driver is not None and name == "add_into":
            function, arguments, keep = driver.launch(2)
            contestants["cuda_driver"] = waited_for(b.machine.calls(function, arguments, b.clock, keep=keep), driver.synchronize)
        b.stretches(f"call/{name}", contestants, best=min, least=0.0004, rounds=270, most=1 << 30 if b.is_cpu else 256)


def waited_for(stretch, synchronize):
    """The work is waited for outside of the time."""
    def both(count):
        seconds = stretch(count)
        synchronize()
        return seconds
    return both


def until_done(stretch, synchronize):
    """The time includes the wait for the work."""
    def both(count):
        start = time.perf_counter()
        stretch(count)
        synchronize()
        return time.perf_counter() - start
    return both


def native(b, name, op, inputs, out, peer, bytes=0, flops=0, also=lambda: {}, keeps_result=False, **attributes):
    """A row: `out` is an array, or None for a new result, made by each call or by the first one only. `also` returns further contestants."""
    if not b.wants(name):
        return
    ours = b.machine.op(b.lib, b.clock, op, [x.tensor for x in inputs], out and out.tensor, attributes, keeps_result)
    ours = ours if b.is_cpu else until_done(ours, b.lib.synchronize)
    arrays = inputs + ([out] if out else [])
    b.stretches(name, {"ours": ours, **(b.peer_stretches(arrays, peer) if peer else {}), **(also() if b.is_cpu else {})}, bytes, flops)


def into_own(op, arity):
    """An elementwise op into a result of the dtype that the peer gives it."""
    made = {}

    def call(p, *given):
        function, inputs = p.elementwise(op), given[:arity]
        if p.name not in made:
            made[p.name] = function(*inputs)
        return function(*inputs, out=made[p.name])
    return call


def where(p, mask, x, y, z=None):
    return p.where(mask, x, y, z)


def operand(b, op, index, dtype, n):
    """Operands in the op's domain, so that the rows do not measure NaN."""
    x = b.uniform(dtype, n)
    text = ""
    if dtype.startswith("float"):
        if op == "acosh":
            text = "abs(a)+1"
        elif op in POSITIVE or (op == "pow" and index == 0):
            text = "abs(a)+0.001"
    elif index == 1:
        text = "a&31" if op in SHIFTS else "a&1023|1" if op in DIVISIONS else "a&7" if op == "pow" else ""
    return b.filled(dtype, (n,), lambda made: b.lib.expression(text, ["a"], [x.tensor], made)()) if text else x


def ops(b):
    """Every elementwise op, and conversions."""
    for dtype in ("float32", "float64", "int32"):
        for op, arity, kinds in b.lib.elementwise_ops():
            if kinds not in CLASSES["float" if dtype.startswith("float") else "int"] or (
                    dtype != "int32" and op in ("exp", "tanh", "add", "where")):  # in the section bandwidth
                continue
            for n in (10000, 1000000):
                inputs = [operand(b, op, i, dtype, n) for i in range(arity)]
                if op == "where":
                    inputs[0] = b.op("less", [inputs[0], b.cast(b.full("float32", 0), dtype)], "bool", n)
                native(b, f"{op}/{dtype}/{n}", op, inputs, None, where if op == "where" else into_own(op, arity),
                       n * SIZES[dtype] * (arity + 1), keeps_result=True)
    for src, dst in (("float32", "int32"), ("float64", "int32"), ("float64", "int64"), ("int32", "float32"), ("int32", "float64"),
                     ("int64", "float64"), ("float32", "uint8"), ("uint8", "float32"), ("int32", "int64")):
        for n in (10000, 1000000):
            native(b, f"cast_to_{dst}/{src}/{n}", "cast", [b.uniform(src, n)], b.empty(n, dtype=dst), lambda p, x, z: p.copy(z, x),
                   n * (SIZES[src] + SIZES[dst]), dtype=dst)


def memcpy(b, bytes):
    """A copy that moves `bytes`, half of them read and half written."""
    size = bytes // 2
    src, dst = b.empty(size, dtype="uint8"), b.empty(size, dtype="uint8")
    arguments = [b.lib.address(dst.tensor), b.lib.address(src.tensor), size]
    return {"memcpy": b.machine.calls(ctypes.CDLL(None).memcpy, arguments, b.clock, keep=(src, dst))}


def bandwidth(b):
    """Memory-bound work, compared with memcpy of as many bytes, and sums compared with reading them."""
    for dtype, other in (("float32", "float64"), ("float64", "float32")):
        size = SIZES[dtype]
        for n in (1000, 10000, 100000, 1000000, 10000000):
            x, y, z, out = (b.uniform(dtype, n) for _ in range(4))
            mask = b.op("less", [b.uniform(dtype, n), b.cast(b.full("float32", 0), dtype)], "bool", n)
            for op, inputs, result, peer, bytes, more in (
                    ("exp", [x], out, into_own("exp", 1), 2 * n * size, {}), ("tanh", [x], out, into_own("tanh", 1), 2 * n * size, {}),
                    ("add", [x, y], out, into_own("add", 2), 3 * n * size, {}), ("where", [mask, y, z], out, where, n * (3 * size + 1), {}),
                    ("cast", [x], b.empty(n, dtype=other), lambda p, x, z: p.copy(z, x), n * (size + SIZES[other]), {"dtype": other})):
                native(b, f"{op}/{dtype}/{n}", op, inputs, result, peer, bytes, also=lambda bytes=bytes: memcpy(b, bytes), **more)
        for rows, columns in ((100, 100), (1000, 1000), (4000, 4000), (100000, 64), (64, 100000)):
            x, shape, bytes = b.uniform(dtype, rows, columns), f"{dtype}/{rows}x{columns}", rows * columns * size

            def read():
                arguments = [b.lib.address(x.tensor), bytes]
                return {"read": b.machine.calls(b.machine.c.compute_bench_read_all, arguments, b.clock, keep=x)}

            for name, axes in (("sum_all", [0, 1]), ("sum_over_columns", [1]), ("sum_over_rows", [0])):
                native(b, f"{name}/{shape}", "sum", [x], None, lambda p, x: p.sum(x, tuple(axes)), bytes, also=read, axes=axes)
            if columns == rows:
                native(b, f"transposed_copy/{shape}", "copy", [x.permuted([1, 0])], b.empty(columns, rows, dtype=dtype),
                       lambda p, x, z: p.copy(z, x), 2 * bytes, also=lambda: memcpy(b, 2 * bytes))


def matrices(b):
    """Products, compared with the libraries called directly and with one core's peak of multiply-adds."""
    squares = [(1, n, n, n) for n in (64, 128, 256, 512, 1024, 2048)]
    for dtype in ("float32", "float64"):
        for extents in squares + [(1, 1, 1024, 1024), (1, 8, 8, 8), (1, 64, 64, 100000), (1024, 32, 32, 32)]:
            batch, m, n, k = extents
            flops = 2 * batch * m * n * k
            if not b.is_soon_done(flops):
                continue

            def engines():
                found = {}
                for one in b.peers:
                    if dtype not in getattr(type(one), "PRODUCTS", ()):
                        continue
                    function, kind = one.native(dtype)
                    arrays = [b.uniform(dtype, batch, *shape) for shape in ((m, k), (k, n), (m, n))]
                    addresses = [b.lib.address(x.tensor) for x in arrays]
                    found[one.name] = b.machine.products(function, kind, extents, addresses, b.clock, arrays)
                # Only the rate of the peak matters, so a part of the work is enough.
                is_double = int(dtype == "float64")
                done = b.machine.c.compute_bench_operate(ctypes.c_int64(min(flops, 10**8)), is_double)
                if done and b.threads == 1:
                    part = b.machine.calls(b.machine.c.compute_bench_operate, [done - 1, is_double], b.clock)
                    found["peak"] = lambda count: part(count) * flops / done
                return found

            shapes = ((m, k), (k, n), (m, n)) if batch == 1 else ((batch, m, k), (batch, k, n), (batch, m, n))
            x, y, z = (b.uniform(dtype, *shape) for shape in shapes)
            name = f"matmul/{dtype}/{f'{batch}x' if batch > 1 else ''}{m}x{k}x{n}"
            native(b, name, "matmul", [x, y], z, None, 0, flops, also=engines)
