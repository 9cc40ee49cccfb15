#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the device cpu beside PyTorch at several numbers of threads, in one run, and prints one table.

    tools/cpu_peers.py [--library PATH/libcompute.so.0] [--threads 1,4,16] [--gap-us 10] [--quick] [--only WORD] [--json FILE]

Each number of threads has a process of its own. Results go into given tensors. Between two calls passes --gap-us, as in a program that
does something else between its operations; a time is that of the calls alone, the median of rounds in turn. Threads of OpenMP spin for
many milliseconds after their last work; a round begins when the other library's threads sleep, and with calls that do not count. A ratio
is PyTorch's time over ours: above 1 ours is faster. Our time in microseconds stands beside it. A row whose result differs from PyTorch's
says so.
"""
import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import time
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gpu_peers import DTYPES, Attribute, Library  # noqa: E402

DTYPES.update({"int8": 2, "int16": 3, "complex64": 14, "complex128": 15})
INT64, FLOAT64, STRING, DTYPE = 1, 2, 4, 5
BIG = 1 << 22
WARMUPS = 5


class Text(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_int64)]


class Cpu(Library):
    """Runs ops into given tensors, on the calling thread's own stream: the result is complete on return."""

    def __init__(self, path):
        super().__init__(path, "cpu")
        self.stream = ctypes.c_void_p()
        for name in ("compute_tensor_slice", "compute_tensor_broadcast", "compute_expression_parse", "compute_map"):
            getattr(self.c, name).restype = ctypes.c_void_p

    def upload(self, data):
        host = data.contiguous()
        tensor = self.full(str(host.dtype).removeprefix("torch."), list(host.shape), 0)
        self.write(tensor, host.data_ptr(), host.numel() * host.element_size())
        return tensor

    def sliced(self, tensor, steps):
        out, rank = ctypes.c_void_p(), len(steps)
        self.check(self.c.compute_tensor_slice(tensor, rank, None, None, (ctypes.c_int64 * rank)(*steps), ctypes.byref(out)))
        return out

    def permuted(self, tensor, axes):
        out, rank = ctypes.c_void_p(), len(axes)
        self.check(self.c.compute_tensor_permute(tensor, rank, (ctypes.c_int32 * rank)(*axes), ctypes.byref(out)))
        return out

    def broadcast(self, tensor, shape):
        out, rank = ctypes.c_void_p(), len(shape)
        self.check(self.c.compute_tensor_broadcast(tensor, rank, (ctypes.c_int64 * rank)(*shape), ctypes.byref(out)))
        return out

    def into(self, name, inputs, output, **attributes):
        """A function without arguments that runs the op into `output`, or into a new result where that is None."""
        op = ctypes.c_void_p()
        self.check(self.c.compute_op_find(name.encode(), 1, ctypes.byref(op)))
        array = (ctypes.c_void_p * max(1, len(inputs)))(*[t.value for t in inputs])
        out = (ctypes.c_void_p * 1)(output.value if output is not None else None)
        given, keep = (Attribute * max(1, len(attributes)))(), [inputs, output]
        for i, (attribute, value) in enumerate(attributes.items()):
            values = value if isinstance(value, (list, tuple)) else [value]
            if attribute == "dtype":
                kind, block = DTYPE, (ctypes.c_int32 * 1)(DTYPES[value])
            elif isinstance(values[0], str):
                kind, block = STRING, (Text * 1)(Text(value.encode(), len(value)))
            elif isinstance(values[0], float):
                kind, block = FLOAT64, (ctypes.c_double * len(values))(*values)
            else:
                kind, block = INT64, (ctypes.c_int64 * len(values))(*values)
            keep += [block, attribute.encode()]
            given[i] = Attribute(ctypes.sizeof(Attribute), 0, None, keep[-1], len(attribute), kind, 0, len(values),
                                 ctypes.cast(block, ctypes.c_void_p))
        run, check, release = self.c.compute_op_run, self.check, self.c.compute_tensor_release
        many, n, one = ctypes.c_int64(len(attributes)), ctypes.c_int64(len(inputs)), ctypes.c_int64(1)
        fresh = output is None

        def call(_keep=keep):
            error = run(op, None, given, many, array, n, out, one)
            if error:
                check(error)
            if fresh:
                release(ctypes.c_void_p(out[0]))
                out[0] = None

        return call

    def expression(self, text, names, inputs, output):
        parsed = ctypes.c_void_p()
        block = (ctypes.c_char_p * len(names))(*[n.encode() for n in names])
        self.check(self.c.compute_expression_parse(text.encode(), block, ctypes.c_int64(len(names)), None, ctypes.c_int64(0),
                                                   ctypes.byref(parsed)))
        array = (ctypes.c_void_p * len(inputs))(*[t.value for t in inputs])
        out = (ctypes.c_void_p * 1)(output.value)
        run, check, n, none, one = self.c.compute_map, self.check, ctypes.c_int64(len(inputs)), ctypes.c_int64(0), ctypes.c_int64(1)

        def call(_keep=(inputs, output)):
            error = run(None, parsed, array, n, None, none, out, one)
            if error:
                check(error)

        return call


def wait_until_quiet():
    """Returns when no other thread of the process runs any more, or after a tenth of a second."""
    end = time.perf_counter() + 0.1
    while time.perf_counter() < end:
        used, start = time.process_time(), time.perf_counter()
        time.sleep(0.001)
        if time.process_time() - used < 0.1 * (time.perf_counter() - start):
            return


class Rows:
    """Collects rows, and measures each as it comes."""

    def __init__(self, lib, torch, options):
        self.lib, self.torch, self.options = lib, torch, options
        self.rows = []
        self.section = ""
        self.gen = torch.Generator().manual_seed(1)

    def rand(self, *shape, dtype=None):
        return self.torch.randn(*shape, generator=self.gen, dtype=dtype or self.torch.float32)

    def time(self, calls, seconds):
        """Medians of the calls' times, taken in turn with gaps between them; see above."""
        clock, gap = time.perf_counter, self.options.gap_us * 1e-6
        once = []
        for call in calls:
            wait_until_quiet()
            for _ in range(WARMUPS):
                call()
            start = clock()
            call()
            once.append(clock() - start)
        rounds = 3 if self.options.quick else 7
        each = [max(2, min(200, int(seconds / rounds / max(t + gap, 1e-7)))) for t in once]
        medians = [[] for _ in calls]
        for _ in range(rounds):
            for i, call in enumerate(calls):
                times = []
                wait_until_quiet()
                for _ in range(each[i] + WARMUPS):
                    until = clock() + gap
                    while clock() < until:
                        pass
                    start = clock()
                    call()
                    times.append(clock() - start)
                medians[i].append(statistics.median(times[WARMUPS:]))
        return [statistics.median(m) for m in medians]

    def row(self, name, ours, peer, out=None, like=None, tolerance=1e-4):
        """`out` of ours is compared with `like` of PyTorch's after a call of each."""
        if self.options.only and not any(w in name or w == self.section for w in self.options.only.split(",")):
            return
        note = ""
        try:
            ours()
            expected = peer()
            like = like if like is not None else expected
            if out is not None:
                got = self.torch.empty(like.shape, dtype=like.dtype)
                self.lib.read(out, got.data_ptr(), got.numel() * got.element_size())
                scale = max(like.abs().max().item(), 1) if like.dtype != self.torch.bool else 1
                wide = self.torch.complex128 if like.dtype.is_complex else self.torch.float64
                error = (got.to(wide) - like.to(wide)).abs().max().item() / scale
                note = "" if error <= tolerance else f"differs by {error:.2g}"
            times = self.time([ours, peer], 0.1 if self.options.quick else 0.25)
        except RuntimeError as reason:
            self.rows.append({"row": name, "note": str(reason).splitlines()[0][:80]})
            return
        self.rows.append({"row": name, "ours": times[0], "torch": times[1], "note": note})


def elementwise(r):
    lib, torch, rand = r.lib, r.torch, r.rand
    r.section = "elementwise"
    for n in (100000, 1000000, BIG, 1 << 24) + (() if r.options.quick else (60000000,)):
        x, y, z = rand(n), rand(n), torch.empty(n)
        a, b, c = lib.upload(x), lib.upload(y), lib.upload(z)
        label = {BIG: "4e6", 1 << 24: "1.6e7"}.get(n, f"{n:.0e}".replace("e+0", "e"))
        r.row(f"add {label}", lib.into("add", [a, b], c), lambda: torch.add(x, y, out=z), c)
        r.row(f"copy {label}", lib.into("copy", [a], c), lambda: z.copy_(x), c)
        r.row(f"exp {label}", lib.into("exp", [a], c), lambda: torch.exp(x, out=z), c)
        s = torch.empty(())
        d = lib.upload(s)
        r.row(f"sum {label}", lib.into("sum", [a], d), lambda: torch.sum(x, dim=0, out=s), d, tolerance=1e-2)
    x, y = rand(2048, 2048), rand(2048, 2048)
    z = torch.empty_like(x)
    a, b, c = lib.upload(x), lib.upload(y), lib.upload(z)
    p = lib.upload(x.abs())
    r.row("expression tanh(a*b+1)", lib.expression("tanh(a*b+1)", "ab", [a, b], c), lambda: torch.tanh(x * y + 1), c)
    positive = x.abs()
    r.row("expression a*a+b*b+sqrt(a)", lib.expression("a*a+b*b+sqrt(a)", "ab", [p, b], c),
          lambda: positive * positive + y * y + positive.sqrt(), c)
    v, w = rand(1, 2048), rand(2048, 1)
    r.row("add a row", lib.into("add", [a, lib.upload(v)], c), lambda: torch.add(x, v, out=z), c)
    r.row("add a column", lib.into("add", [a, lib.upload(w)], c), lambda: torch.add(x, w, out=z), c)
    mask = torch.empty(2048, 2048, dtype=torch.bool)
    m = lib.upload(mask)
    r.row("x < y", lib.into("less", [a, b], m), lambda: torch.lt(x, y, out=mask), m)
    r.row("where", lib.into("where", [m, a, b], c), lambda: torch.where(mask, x, y, out=z), c)
    for name, op, peer, given in (("pow", "pow", torch.pow, (positive, y)), ("atan2", "atan2", torch.atan2, (x, y)),
                                  ("erf", "erf", torch.erf, (x,)), ("erfc", "erfc", torch.erfc, (x,)),
                                  ("log1p", "log1p", torch.log1p, (positive,)), ("tanh", "tanh", torch.tanh, (x,)),
                                  ("sin", "sin", torch.sin, (x,)), ("log", "log", torch.log, (positive,))):
        inputs = [lib.upload(t) for t in given]
        r.row(name, lib.into(op, inputs, c), lambda: peer(*given, out=z), c, tolerance=1e-3)
    large = rand(2048, 2048) * 1e5
    r.row("sin of values to 1e5", lib.into("sin", [lib.upload(large)], c), lambda: torch.sin(large, out=z), c)
    for dtype in ("float16", "bfloat16", "float64", "complex64", "int32"):
        kind = getattr(torch, dtype)
        s, t = ((100 * x).to(kind), (100 * y).to(kind)) if dtype == "int32" else (x.to(kind), y.to(kind))
        u = torch.empty_like(s)
        d, e, f = lib.upload(s), lib.upload(t), lib.upload(u)
        r.row(f"{dtype} add", lib.into("add", [d, e], f), lambda: torch.add(s, t, out=u), f, tolerance=1e-2)
        if dtype == "int32":
            q = t.where(t != 0, torch.ones_like(t))
            r.row("int32 floor_divide", lib.into("floor_divide", [d, lib.upload(q)], f), lambda: torch.floor_divide(s, q, out=u), f)
        else:
            r.row(f"{dtype} multiply", lib.into("multiply", [d, e], f), lambda: torch.mul(s, t, out=u), f, tolerance=1e-2)
        if dtype != "complex64":
            r.row(f"{dtype} to float32", lib.into("cast", [d], c, dtype="float32"), lambda: z.copy_(s), c)
            if dtype != "int32":
                r.row(f"float32 to {dtype}", lib.into("cast", [a], f, dtype=dtype), lambda: u.copy_(x), f)
    s64, u64 = x.double(), torch.empty_like(x.double())
    d, f = lib.upload(s64), lib.upload(u64)
    r.row("float64 exp", lib.into("exp", [d], f), lambda: torch.exp(s64, out=u64), f)
    i8 = (10 * x).to(torch.int8)
    r.row("int8 to float32", lib.into("cast", [lib.upload(i8)], c, dtype="float32"), lambda: z.copy_(i8), c)
    k = rand(1000)
    ck = lib.upload(k)
    r.row("a small add that makes its result", lib.into("add", [ck, ck], None), lambda: torch.add(k, k))
    small, many = rand(10000), torch.empty(10000)
    cs, cm = lib.upload(small), lib.upload(many)
    for name, peer in (("add", lambda: torch.add(small, small, out=many)), ("tanh", lambda: torch.tanh(small, out=many))):
        r.row(f"{name} of 10000", lib.into(name, [cs, cs] if name == "add" else [cs], cm), peer, cm)


def moves(r):
    lib, torch, rand = r.lib, r.torch, r.rand
    r.section = "moves"
    x = rand(2048, 2048)
    a = lib.upload(x)

    def copy(name, view, ours):
        z = torch.empty(view.shape)
        c = lib.upload(z)
        r.row(name, lib.into("copy", [ours], c), lambda: z.copy_(view), c)

    copy("copy x[:, ::2]", x[:, ::2], lib.sliced(a, [1, 2]))
    copy("copy x[::2]", x[::2], lib.sliced(a, [2, 1]))
    flipped, z = x.flip(1), torch.empty_like(x)
    c = lib.upload(z)
    r.row("copy x[:, ::-1] (beside a plain copy)", lib.into("copy", [lib.sliced(a, [1, -1])], c), lambda: z.copy_(x), c, like=flipped)
    y = rand(256, 128, 128)
    b = lib.upload(y)
    for axes in ((0, 2, 1), (2, 0, 1), (1, 0, 2), (2, 1, 0)):
        copy(f"copy permuted {axes}", y.permute(*axes), lib.permuted(b, axes))
    copy("copy transposed", x.t(), lib.permuted(a, [1, 0]))
    narrow = rand(8, BIG // 8)
    copy("copy to rows of 8", narrow.t(), lib.permuted(lib.upload(narrow), [1, 0]))
    wide = rand(BIG // 8, 16)
    copy("copy rows of 8", wide[:, ::2], lib.sliced(lib.upload(wide), [1, 2]))
    row = rand(1, 2048)
    copy("copy a broadcast row", row.expand(2048, 2048), lib.broadcast(lib.upload(row), [2048, 2048]))
    table = rand(50000, 128)
    indices = torch.randint(0, 50000, (32768,), generator=r.gen)
    out = torch.empty(32768, 128)
    t, i, o = lib.upload(table), lib.upload(indices), lib.upload(out)
    r.row("take rows of 128", lib.into("take", [t, i], o), lambda: torch.index_select(table, 0, indices, out=out), o)
    r.row("embedding", lib.into("take", [t, i], None), lambda: torch.nn.functional.embedding(indices, table))
    j = torch.randint(0, 2048, (2048, 2048), generator=r.gen)
    cj = lib.upload(j)
    r.row("take_along_axis", lib.into("take_along_axis", [a, cj], c), lambda: torch.gather(x, 1, j, out=z), c)
    single = torch.randint(0, BIG, (1 << 20,), generator=r.gen)
    flat, picked = x.reshape(-1), torch.empty(1 << 20)
    cf, cp = lib.upload(flat), lib.upload(picked)
    r.row("take 1e6 elements", lib.into("take", [cf, lib.upload(single)], cp), lambda: torch.index_select(flat, 0, single, out=picked), cp)
    halves = [rand(1024, 2048), rand(1024, 2048)]
    given = [lib.upload(t) for t in halves]
    r.row("concat", lib.into("concat", given, c), lambda: torch.cat(halves, out=z), c)
    columns = [rand(2048, 1024), rand(2048, 1024)]
    given_columns = [lib.upload(t) for t in columns]
    r.row("concat of columns", lib.into("concat", given_columns, c, axis=1), lambda: torch.cat(columns, 1, out=z), c)
    stacked = torch.empty(1024, 2048, 2)
    cs = lib.upload(stacked)
    r.row("stack", lib.into("stack", given, cs, axis=2), lambda: torch.stack(halves, 2, out=stacked), cs)


def reductions(r):
    lib, torch, rand = r.lib, r.torch, r.rand
    r.section = "reductions"
    x = rand(2048, 2048)
    a = lib.upload(x)

    def reduce(name, op, data, ours, peer, tolerance=1e-3, **attributes):
        result = peer()
        c = lib.upload(torch.empty_like(result))
        r.row(name, lib.into(op, [ours], c, **attributes), peer, c, tolerance=tolerance)

    y = rand(128, 256, 128)
    b = lib.upload(y)
    reduce("sum of the middle axis", "sum", y, b, lambda: y.sum(1), axes=[1])
    reduce("sum of axes 0 and 2", "sum", y, b, lambda: y.sum((0, 2)), axes=[0, 2])
    reduce("sum of rows", "sum", x, a, lambda: x.sum(1), axes=[1])
    reduce("sum of columns", "sum", x, a, lambda: x.sum(0), axes=[0])
    for shape, axis, name in (((BIG // 8, 8), 1, "rows of 8"), ((8, BIG // 8), 1, "8 rows"), ((8, BIG // 8), 0, "columns of 8"),
                              ((BIG // 8, 8), 0, "8 columns")):
        t = rand(*shape)
        reduce(f"sum of {name}", "sum", t, lib.upload(t), lambda: t.sum(axis), axes=[axis])
    half = x.half()
    h = lib.upload(half)
    reduce("mean of float16", "mean", half, h, lambda: half.mean(), tolerance=1e-2)
    reduce("var of rows", "var", x, a, lambda: x.var(1, correction=0), axes=[1])
    reduce("std of all", "std", x, a, lambda: x.std(correction=0))
    reduce("max of all", "max", x, a, lambda: x.max())
    reduce("argmax of columns", "argmax", x, a, lambda: x.argmax(0), axis=0)
    reduce("argmax of rows", "argmax", x, a, lambda: x.argmax(1), axis=1)
    integers = (100 * x).int()
    reduce("sum of int32", "sum", integers, lib.upload(integers), lambda: integers.sum())
    nothing = torch.zeros(2048, 2048, dtype=torch.bool)
    reduce("any of zeros", "any", nothing, lib.upload(nothing), lambda: nothing.any())
    z = torch.empty_like(x)
    c = lib.upload(z)
    r.row("softmax of rows", lib.into("softmax", [a], c), lambda: torch.softmax(x, 1, out=z), c)
    values, total = lib.upload(torch.empty(2048, 1)), lib.upload(torch.empty(2048, 1))
    steps = [lib.into("max", [a], values, axes=[1], keepdims=1), lib.into("subtract", [a, values], c), lib.into("exp", [c], c),
             lib.into("sum", [c], total, axes=[1], keepdims=1), lib.into("divide", [c, total], c)]

    def ours():
        for step in steps:
            step()

    def peer():
        torch.sub(x, x.amax(1, keepdim=True), out=z)
        torch.exp(z, out=z)
        return torch.div(z, z.sum(1, keepdim=True), out=z)

    r.row("softmax of rows from its steps", ours, peer, c)
    j = torch.randint(0, 2048, (2048, 2048), generator=r.gen)
    r.row("scatter add along rows", lib.into("scatter", [a, lib.upload(j), a], c, axis=1, reduction="add"),
          lambda: torch.scatter_add(x, 1, j, x, out=z), c, tolerance=1e-3)


def products(r):
    lib, torch, rand = r.lib, r.torch, r.rand
    r.section = "products"

    def product(name, x, y, tolerance=1e-4):
        z = torch.matmul(x, y)
        c = lib.upload(z)
        r.row(name, lib.into("matmul", [lib.upload(x), lib.upload(y)], c), lambda: torch.matmul(x, y, out=z), c, tolerance=tolerance)

    m, v = rand(2048, 2048), rand(2048)
    product("matrix x vector 2048", m, v)
    product("vector x matrix 2048", v, m)
    product("matrix x vector 2048 float64", m.double(), v.double())
    product("matrix x vector 512", rand(512, 512), rand(512))
    product("dot of 1e6", rand(1000000), rand(1000000), 1e-2)
    product("dot of 1e5", rand(100000), rand(100000), 1e-2)
    product("dot of 1e6 complex64", rand(1000000).to(torch.complex64), rand(1000000).to(torch.complex64), 1e-2)
    product("outer 2048", rand(2048, 1), rand(1, 2048))
    product("2048 x 64 x 2048", rand(2048, 64), rand(64, 2048))
    product("64 x 2048 x 64", rand(64, 2048), rand(2048, 64))
    product("tall-skinny 100000 x 16 x 16", rand(100000, 16), rand(16, 16))
    product("16 x 100000 x 16", rand(16, 100000), rand(100000, 16))
    product("batch 64 of 256^3", rand(64, 256, 256), rand(64, 256, 256))
    product("batch 512 of 32^3", rand(512, 32, 32), rand(512, 32, 32))
    product("batch 64 of 256^3, shared b", rand(64, 256, 256), rand(256, 256))
    product("batch 4096 of 8^3", rand(4096, 8, 8), rand(4096, 8, 8))
    for n in (64, 128, 512, 1024) + (() if r.options.quick else (2048,)):
        product(f"matmul {n}", rand(n, n), rand(n, n))
    product("matmul 512 float64", rand(512, 512).double(), rand(512, 512).double())
    product("matmul 1000x1001x999", rand(1000, 1001), rand(1001, 999))
    product("matmul 512 complex64", rand(512, 512).to(torch.complex64), rand(512, 512).to(torch.complex64))
    product("matmul 256 int32", (10 * rand(256, 256)).int(), (10 * rand(256, 256)).int())


def measure(options):
    """The rows at one number of threads, in a process of its own."""
    os.environ["COMPUTE_CPU_THREADS"] = str(options.measure)
    import torch
    warnings.simplefilter("ignore")  # about the shapes of given results
    torch.set_num_threads(options.measure)
    torch.set_grad_enabled(False)
    rows = Rows(Cpu(options.library), torch, options)
    for body in (elementwise, moves, reductions, products):
        try:
            body(rows)
        except Exception as reason:  # the table shows what there is
            rows.rows.append({"row": f"{body.__name__} ends early", "note": f"{type(reason).__name__}: {reason}"})
    print(json.dumps({"torch": torch.__version__, "rows": rows.rows}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--library", default=os.path.join(here, "..", "build", "lib", "libcompute.so.0"))
    parser.add_argument("--threads", default="1,4,16")
    parser.add_argument("--gap-us", type=float, default=10)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, and no rows of 6e7 elements")
    parser.add_argument("--only", default="", help="rows with one of these words, or sections: elementwise moves reductions products")
    parser.add_argument("--json", help="also write the rows to this file")
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        return measure(options)
    usable = len(os.sched_getaffinity(0))
    counts = sorted({min(int(n), usable) for n in options.threads.split(",")})
    results = {}
    for count in counts:
        command = [sys.executable, os.path.abspath(__file__), "--measure", str(count)] + sys.argv[1:]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            return done.returncode
        results[count] = json.loads(done.stdout.splitlines()[-1])
    first = results[counts[0]]
    print(f"PyTorch {first['torch']}, gaps of {options.gap_us:g} us; PyTorch's time / ours, and our time in us")
    print(f"{'threads':<40}" + "".join(f"{n:>8}{'':>11}" for n in counts))
    table = []
    for row in first["rows"]:
        cells, note = "", ""
        for count in counts:
            at = next((other for other in results[count]["rows"] if other["row"] == row["row"]), {"note": ""})
            note = note or at["note"]
            cells += f"{at['torch'] / at['ours']:8.2f}{at['ours'] * 1e6:11.1f}" if "ours" in at else f"{'-':>8}{'-':>11}"
        table.append({"row": row["row"], "threads": {n: r for n in counts for r in results[n]["rows"] if r["row"] == row["row"]}})
        print(f"{row['row']:<40}{cells}  {note}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(table, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
