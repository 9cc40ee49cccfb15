# SPDX-License-Identifier: Apache-2.0
"""Measures rows on one device with one number of threads, in a separate process."""
import ctypes
import os
import statistics
import time

from . import core_rows, example_rows, layer_rows, network_rows, observation, peers, programs, python_rows, rows
from .library import Library, Machine

WARMUPS = 5
MOST_SECONDS = 0.5  # of a row, with its peers

# What a run without --only measures.
SECTIONS = {body.__name__: body for body in (
    rows.elementwise, rows.moves, rows.reductions, rows.products, network_rows.ordering, network_rows.transforms, network_rows.networks, network_rows.training)}
# Measured by name, or if a word of --only matches.
MORE = {body.__name__: body for body in (
    core_rows.calls, core_rows.ops, core_rows.bandwidth, core_rows.matrices, layer_rows.layers, layer_rows.layout, layer_rows.transfers)}
# Measured only by name.
NAMED = {body.__name__: body for body in (rows.tf32, python_rows.python, example_rows.loops, example_rows.epochs)}
SUITES = {"rows": {**SECTIONS, **MORE, **NAMED}, "programs": programs.SECTIONS}


def wait_until_quiet():
    """Returns when no other thread of the process runs any more, or after a third of a second: threads of OpenMP and OpenBLAS spin for
    long. The system adds up the time of a thread that runs on another processor once a tick, which can take 10 ms."""
    end = time.perf_counter() + 0.3
    while time.perf_counter() < end:
        used, start = time.process_time(), time.perf_counter()
        time.sleep(0.012)
        if time.process_time() - used < 0.1 * (time.perf_counter() - start):
            return


class Bench:
    def __init__(self, options, threads):
        self.options, self.quick, self.device, self.threads = options, options.quick, options.device, threads
        self.is_cpu = options.device == "cpu"
        # The test device `null` does nothing, so its rows show core's overhead.
        self.lib = Library(options.library, options.device, own_stream=options.device not in ("cpu", "null"))
        try:
            self.machine = Machine(options.machine)
        except (OSError, AttributeError):  # of an older build
            self.machine = None
        names = [name for name in options.peers.split(",") if name and (options.suite == "rows" or name in programs.PEERS)]
        self.peers, self.missing = peers.installed(names, options.device, threads, self.lib)
        self.sizes = [100000, 1000000, 1 << 22, 1 << 24] + ([] if self.quick else [60000000])
        self.side = 2048 if self.is_cpu or self.quick else 8192
        self.rows, self.seed, self.section, self.rate = [], 0, "", 0
        asked = options.only.split(",") if options.only else []
        self.named = [word for word in asked if word in {**SUITES[options.suite], "observation": None, "start": None}]
        self.words = [word for word in asked if word not in self.named]
        # One thread is measured in its own time, so that other programs matter less.
        self.clock = time.CLOCK_THREAD_CPUTIME_ID if self.is_cpu and threads == 1 else time.CLOCK_MONOTONIC

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

    def op(self, op_name, inputs, result_dtype, *extents, outputs=1, output=0, **attributes):
        """One of the outputs of an op."""
        return self.filled(result_dtype, extents, lambda made: self.lib.caller(
            op_name, [x.tensor for x in inputs], [made if i == output else None for i in range(outputs)], attributes)())

    def normal(self, *shape):
        self.seed += 1
        return self.op("random_normal", [], "float32", *shape, shape=list(shape), dtype="float32", seed=self.seed)

    def integers(self, below, *shape, dtype="int64"):
        self.seed += 1
        return self.op("random_integers", [], dtype, *shape, shape=list(shape), dtype=dtype, maximum=below, seed=self.seed)

    def uniform(self, dtype, *shape):
        """Between -1 and 1; integers from 0 to 2^24."""
        if dtype.startswith(("int", "uint")):
            return self.cast(self.integers(1 << (8 if dtype == "uint8" else 24), *shape), dtype)
        self.seed += 1
        return self.op("random_uniform", [], dtype, *shape, shape=list(shape), dtype=dtype, minimum=-1.0, seed=self.seed)

    def cast(self, x, dtype):
        return x if dtype == x.dtype else self.op("cast", [x], dtype, *x.shape, dtype=dtype)

    def expression(self, text, inputs, out):
        return lambda: self.lib.expression(text, "ab"[:len(inputs)], [x.tensor for x in inputs], out.tensor)

    def bytes_of(self, array):
        block = ctypes.create_string_buffer(max(array.size_bytes, 1))
        self.lib.read(array.tensor, ctypes.addressof(block), array.size_bytes)
        return block.raw[:array.size_bytes]

    # Measuring

    def wants(self, name):
        return not self.words or any(word in name for word in self.words)

    def entry(self, name, bytes=0, flops=0):
        """A row of the results, or None if it is not wanted."""
        if not self.wants(name):
            return None
        self.rows.append({"row": name, "section": self.section, "bytes": bytes, "flops": flops, "note": "", "times": {}})
        return self.rows[-1]

    def row(self, name, op, inputs, out, peer, bytes=None, flops=0, tolerance=1e-4, **attributes):
        """`out` is an array, a list of arrays and None, or None: a new result. Without a tolerance results are not
        compared."""
        outs = out if isinstance(out, list) else [out]
        first = next((one for one in outs if one is not None), None)
        moved = sum(x.size_bytes for x in inputs) + (first or inputs[0]).size_bytes
        entry = self.entry(name, moved if bytes is None else bytes, flops)
        if entry is None:
            return
        try:
            call = op() if callable(op) else self.lib.caller(
                op, [x.tensor for x in inputs], [None if one is None else one.tensor for one in outs], attributes)
            call()
            self.lib.synchronize()
        except RuntimeError as reason:
            entry["note"] = str(reason).splitlines()[0][:80]
            return
        calls = {"ours": (call, self.lib.synchronize)}
        ours = self.bytes_of(first) if first and tolerance is not None else None
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

    def stretches(self, name, contestants, bytes=0, flops=0, best=statistics.median, least=0.02, rounds=9, most=1 << 30):
        """A row of contestants that take a number of calls, for `least` seconds but at most `most`, and return the seconds of all."""
        entry = self.entry(name, bytes, flops)
        if entry is None:
            return
        counts, found = {}, {}
        for who, stretch in list(contestants.items()):
            try:
                stretch(1)
                count, seconds = 1, stretch(1)
                while seconds < least and count < most:
                    count = min(most, max(count + 1, int(count * min(100, 1.2 * least / max(seconds, 1e-9)))))
                    seconds = stretch(count)
                counts[who], found[who] = count, []
            except Exception as reason:
                if who == "ours":
                    entry["note"] = str(reason).splitlines()[0][:80]
                    return
        for _ in range(rounds // 3 if self.quick else rounds):
            for who, count in counts.items():
                if self.is_cpu and self.threads != 1:
                    wait_until_quiet()
                found[who].append(contestants[who](count) / count)
        entry["times"] = summary(found, best)

    def python_stretch(self, call, synchronize=lambda: None):
        clock = self.clock

        def stretch(count):
            start = time.clock_gettime(clock)
            for _ in range(count):
                call()
            synchronize()
            return time.clock_gettime(clock) - start

        return stretch

    def peer_stretches(self, arrays, function):
        """The peers among the contestants of a row: function(peer, *its arrays)."""
        def of(one):
            given = []

            def call():
                if not given:
                    given.extend(x.on(one) for x in arrays)
                function(one, *given)

            return self.python_stretch(call, one.synchronize)
        return {one.name: of(one) for one in self.peers}

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
        return summary(found)

    # The device

    def limits(self, threads):
        """The device's peak rates in bytes and operations per second, measured without the ops under test if possible."""
        if self.is_cpu:
            if self.machine is None:
                return {}
            found = {}
            for name, arguments in (("copy", (ctypes.c_int64(1 << 28),)), ("read", (ctypes.c_int64(1 << 28),)),
                                    ("multiply_add", (0,))):
                found[name] = getattr(self.machine.c, "compute_bench_" + name)(
                    threads or len(os.sched_getaffinity(0)), *arguments)
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


def summary(found, best=statistics.median):
    return {name: {"seconds": best(values), "spread": (max(values) - min(values)) / statistics.median(values)} for name, values in found.items()}


def measure(options, threads):
    bench = Bench(options, threads)
    found = {"threads": threads, "missing": bench.missing, "peers": {one.name: one.version() for one in bench.peers}}
    found["description"] = bench.lib.description()
    known, is_rows = SUITES[options.suite], options.suite == "rows"
    found["limits"] = bench.limits(threads) if is_rows and (not bench.named or set(bench.named) & set(SECTIONS)) else {}
    bench.rate = found["limits"].get("multiply_add", 0)
    unnamed = [*SECTIONS, *(MORE if bench.words else [])] if is_rows else known
    for name in [name for name in bench.named if name in known] if bench.named else unnamed:
        bench.section = name
        try:
            known[name](bench)
        except Exception as reason:  # the table shows what there is
            entry = bench.entry(f"{bench.section} ends early") if not bench.words else None
            if entry:
                entry["note"] = f"{type(reason).__name__}: {reason}"
    found["rows"] = bench.rows
    found["observation"] = observation.observation(bench) if is_rows and (not options.only or "observation" in bench.named) else {}
    return found
