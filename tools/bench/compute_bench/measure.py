# SPDX-License-Identifier: Apache-2.0
"""Measures rows on one device with one number of threads, in a process of its own."""
import ctypes
import json
import os
import statistics
import subprocess
import tempfile
import time

from . import peers, rows
from .library import Library
from .observation import observation
from .quiet import wait_until_quiet

WARMUPS = 5
MOST_SECONDS = 0.5  # of a row, with its peers


class Bench:
    def __init__(self, options, threads):
        self.options, self.quick, self.device = options, options.quick, options.device
        self.is_cpu = options.device == "cpu"
        self.lib = Library(options.library, options.device, own_stream=not self.is_cpu)
        self.peers, self.missing = peers.installed(options.peers.split(",") if options.peers else [], options.device, threads, self.lib)
        self.sizes = [100000, 1000000, 1 << 22, 1 << 24] + ([] if self.quick else [60000000])
        self.side = 2048 if self.is_cpu or self.quick else 8192
        self.rows, self.seed, self.section, self.rate = [], 0, "", 0

    # Operands

    def empty(self, *shape, dtype="float32"):
        return rows.Array(self, lambda: self.lib.full(dtype, shape, 0), dtype, shape)

    def filled(self, dtype, shape, fill):
        """`fill` writes the elements of a new tensor."""
        def make():
            made = self.lib.full(dtype, shape, 0)
            fill(made)
            self.lib.synchronize()
            return made
        return rows.Array(self, make, dtype, shape)

    def full(self, dtype, value):
        block = ctypes.c_float(value)
        return self.filled(dtype, (), lambda made: self.lib.write(made, ctypes.addressof(block), 4))

    def op(self, op_name, inputs, result_dtype, *extents, **attributes):
        return self.filled(result_dtype, extents,
                           lambda made: self.lib.caller(op_name, [x.tensor for x in inputs], made, attributes)())

    def normal(self, *shape):
        self.seed += 1
        return self.op("random_normal", [], "float32", *shape, shape=list(shape), dtype="float32", seed=self.seed)

    def integers(self, below, *shape):
        self.seed += 1
        return self.op("random_integers", [], "int64", *shape, shape=list(shape), dtype="int64", maximum=below, seed=self.seed)

    def cast(self, x, dtype):
        return x if dtype == x.dtype else self.op("cast", [x], dtype, *x.shape, dtype=dtype)

    def expression(self, text, inputs, out):
        return lambda: self.lib.expression(text, "ab"[:len(inputs)], [x.tensor for x in inputs], out.tensor)

    def bytes_of(self, array):
        block = ctypes.create_string_buffer(max(array.size_bytes, 1))
        self.lib.read(array.tensor, ctypes.addressof(block), array.size_bytes)
        return block.raw[:array.size_bytes]

    # Measuring

    def row(self, name, op, inputs, out, peer, bytes=None, flops=0, tolerance=1e-4, sweep="", **attributes):
        """`out` is an array, a list of arrays and None, or None: a result that is made anew."""
        if self.options.only and not any(word in name or word == self.section for word in self.options.only.split(",")):
            return
        outs = out if isinstance(out, list) else [out]
        first = next((one for one in outs if one is not None), None)
        entry = {"row": name, "section": self.section, "flops": flops, "sweep": sweep, "note": "", "times": {}}
        moved = sum(x.size_bytes for x in inputs) + (first or inputs[0]).size_bytes
        entry["bytes"] = moved if bytes is None else bytes
        self.rows.append(entry)
        try:
            call = op() if callable(op) else self.lib.caller(
                op, [x.tensor for x in inputs], [None if one is None else one.tensor for one in outs], attributes)
            call()
            self.lib.synchronize()
        except RuntimeError as reason:
            entry["note"] = str(reason).splitlines()[0][:80]
            return
        calls = {"ours": (call, self.lib.synchronize)}
        ours = self.bytes_of(first) if first else None
        for one in self.peers:
            try:
                given = [x.on(one) for x in inputs] + [x.on(one) for x in outs if x is not None]
                result = peer(one, *given)
                one.synchronize()
                if ours is not None and len(result.shape if hasattr(result, "shape") else ()) == len(first.shape):
                    error = one.error(result, ours)
                    if not error <= tolerance:
                        entry["note"] = f"differs from {one.name} by {error:.2g}"
                calls[one.name] = (lambda one=one, given=given: peer(one, *given), one.synchronize)
            except Exception:  # it does not have this
                continue
        entry["times"] = self.time(calls)

    def is_soon_done(self, flops):
        """At the rate of the device, with room for slower dtypes and peers."""
        return not self.rate or flops / self.rate < MOST_SECONDS / 8

    def time(self, calls):
        """name -> median seconds and spread. Rounds are interleaved; on cpu there are gaps between calls, as in programs."""
        clock = time.perf_counter
        gap = self.options.gap_us * 1e-6 if self.is_cpu else 0
        rounds, seconds = (3, MOST_SECONDS / 4) if self.quick else (7, MOST_SECONDS)
        seconds /= len(calls)
        once, many, found = {}, {}, {name: [] for name in calls}
        for name, (call, synchronize) in calls.items():
            start = clock()
            call()
            synchronize()
            once[name] = max(clock() - start, 1e-7)
            if once[name] * WARMUPS > seconds / 4:
                continue
            for _ in range(WARMUPS):
                call()
            synchronize()
            start = clock()
            call()
            synchronize()
            once[name] = max(clock() - start, 1e-7)
        rounds = max(1, min(rounds, int(seconds / max(once.values()))))
        if max(once.values()) > MOST_SECONDS:
            return {name: {"seconds": seconds, "spread": 0.0} for name, seconds in once.items()}
        for name in calls:
            many[name] = max(1, min(200, int(seconds / rounds / (once[name] + gap))))
        for _ in range(rounds):
            for name, (call, synchronize) in calls.items():
                if self.is_cpu:
                    wait_until_quiet()
                    times, again = [], WARMUPS if many[name] > WARMUPS else 0
                    for _ in range(many[name] + again):
                        until = clock() + gap
                        while clock() < until:
                            pass
                        start = clock()
                        call()
                        times.append(clock() - start)
                    found[name].append(statistics.median(times[again:]))
                else:  # queued at once, and waited for
                    start = clock()
                    for _ in range(many[name]):
                        call()
                    synchronize()
                    found[name].append((clock() - start) / many[name])
        return {name: {"seconds": statistics.median(values), "spread": (max(values) - min(values)) / statistics.median(values)}
                for name, values in found.items()}

    # The device

    def limits(self, threads):
        """What the device can do, measured without the ops under test where that is possible: bytes and operations per second."""
        if self.is_cpu:
            try:
                machine = ctypes.CDLL(self.options.machine)
            except OSError:
                return {}
            found = {}
            for name, arguments in (("copy", (ctypes.c_int64(1 << 28),)), ("read", (ctypes.c_int64(1 << 28),)),
                                    ("multiply_add", (0,))):
                function = getattr(machine, "compute_bench_" + name)
                function.restype = ctypes.c_double
                found[name] = function(threads or len(os.sched_getaffinity(0)), *arguments)
            return found
        n = 1 << (24 if self.quick else 26)
        x, y, s = self.normal(n), self.empty(n), self.empty()
        chain = "a"
        for _ in range(64):
            chain = f"({chain}*b+a)"
        contestants = {"copy": (8 * n, self.lib.caller("copy", [x.tensor], y.tensor)),
                       "read": (4 * n, self.lib.caller("sum", [x.tensor], s.tensor)),
                       "multiply_add": (128 * n, self.expression(chain, [x, y], y)())}
        times = self.time({name: (call, self.lib.synchronize) for name, (_, call) in contestants.items()})
        found = {name: amount / times[name]["seconds"] for name, (amount, _) in contestants.items()}
        blas = next((one for one in self.peers if one.name == "cublas"), None)
        if blas is not None:  # what its matrix units reach
            n = 4096 if self.quick else 8192
            x, y, z = (self.cast(self.normal(n, n), "float16").on(blas) for _ in range(3))
            times = self.time({"matrix_units": (lambda: blas.matmul(x, y, z), blas.synchronize)})
            found["matrix_units"] = 2 * n**3 / times["matrix_units"]["seconds"]
        return found


def first_calls(options):
    """Seconds that a C program waits for an open device, its first add, and both, in new processes with a cold and a warm cache on
    disk."""
    found = {}
    with tempfile.TemporaryDirectory() as cache:
        # Drivers have caches of their own.
        env = dict(os.environ, COMPUTE_CACHE_DIR=cache, POCL_CACHE_DIR=os.path.join(cache, "pocl"),
                   CUDA_CACHE_PATH=os.path.join(cache, "cuda"), COMPUTE_LOG="error")
        for turn in ("cold", "warm", "warm", "warm", "warm"):
            done = subprocess.run([options.start, options.library, options.device], env=env, stdout=subprocess.PIPE, text=True, check=True)
            for name, ns in json.loads(done.stdout).items():
                found.setdefault(f"{name}, {turn} cache", []).append(ns * 1e-9)
    return {name: statistics.median(values) for name, values in found.items()}


def measure(options, threads):
    bench = Bench(options, threads)
    found = {"threads": threads, "missing": bench.missing, "peers": {one.name: version(one) for one in bench.peers}}
    found["description"] = bench.lib.description()
    found["limits"] = bench.limits(threads)
    bench.rate = found["limits"].get("multiply_add", 0)
    sections = {"tf32": rows.tf32} if options.only == "tf32" and os.environ.get("COMPUTE_MATH") == "tf32" else rows.SECTIONS
    for name, body in sections.items():
        named = [word for word in options.only.split(",") if word in sections or word == "observation"]
        if named and name not in named:
            continue
        bench.section = name
        try:
            body(bench)
        except Exception as reason:  # the table shows what there is
            bench.rows.append({"row": f"{name} ends early", "section": name, "times": {}, "bytes": 0, "flops": 0, "sweep": "",
                               "note": f"{type(reason).__name__}: {reason}"})
    found["rows"] = bench.rows
    found["observation"] = observation(bench) if not options.only or "observation" in options.only.split(",") else {}
    return found


def version(peer):
    return str(getattr(peer.module, "__version__", "")) if peer.module is not None else ""
