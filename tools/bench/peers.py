#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the rows of core-bench and their peers in turn and prints one table of ratios.

Each round measures a row and the peers that core-bench has for it (in one process, interleaved by Google Benchmark), then NumPy
here. A ratio is the median over the rounds of the peer's time for the same work by ours: above 1 we are faster. Everything runs
on one thread and is measured in the time that this thread ran, so that other programs matter less.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time

ONE_THREAD = {"COMPUTE_CPU_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "COMPUTE_LOG": "error"}
os.environ.update(ONE_THREAD)  # before NumPy loads its BLAS

import numpy as np  # noqa: E402

BUDGET_NS = 200
LEAST_SECONDS = 0.02

# Elementwise ops that NumPy calls otherwise.
NUMPY_NAMES = {"abs": "absolute", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atan2": "arctan2",
               "atanh": "arctanh", "bitwise_invert": "invert", "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift",
               "pow": "power", "round": "rint"}


def numpy_call(row):
    """What NumPy does for a row, as a function; None where it has no counterpart."""
    op, *rest = row.split("/")
    if op in ("call", "matmul") or len(rest) != 2:
        return None
    dtype = np.dtype(rest[0])
    shape = tuple(int(extent) for extent in rest[1].split("x"))
    random = np.random.RandomState(1)

    def values(*shape, dtype=dtype):
        dtype = np.dtype(dtype)
        if dtype.kind in "iu":
            return random.randint(0, 1 << min(24, 8 * dtype.itemsize), shape).astype(dtype)
        return (random.random_sample(shape) * 2 - 1).astype(dtype)

    def operand(index):
        """As in elementwise.cpp."""
        x = values(*shape)
        if dtype.kind == "f":
            if op == "acosh":
                return np.abs(x) + dtype.type(1)
            if op in ("log", "log2", "log10", "sqrt") or (op == "pow" and index == 0):
                return np.abs(x) + dtype.type(0.001)
        elif index == 1:
            if op in ("bitwise_left_shift", "bitwise_right_shift"):
                return x & 31
            if op in ("floor_divide", "remainder"):
                return x & 1023 | 1
            if op == "pow":
                return x & 7
        return x

    function = getattr(np, NUMPY_NAMES.get(op, op), None)
    if isinstance(function, np.ufunc):
        operands = [operand(i) for i in range(function.nin)]
        out = function(*operands)
        return lambda: function(*operands, out=out)
    if op == "clip":
        x, low, high, out = values(*shape), values(*shape), values(*shape), values(*shape)
        return lambda: np.clip(x, low, high, out=out)
    if op.startswith("cast_to_"):
        x, y = values(*shape), np.empty(shape, np.dtype(op[len("cast_to_"):]))
        return lambda: np.copyto(y, x, casting="unsafe")
    if op == "where":
        x, y, z = values(*shape) < 0, values(*shape), values(*shape)
        return lambda: np.where(x, y, z)
    if op == "cast":
        x, y = values(*shape), values(*shape, dtype=np.float64 if dtype == np.float32 else np.float32)
        return lambda: np.copyto(y, x, casting="unsafe")
    if op.startswith("sum_"):
        x = values(*shape)
        axes = {"sum_all": None, "sum_over_columns": 1, "sum_over_rows": 0}[op]
        return lambda: np.sum(x, axis=axes)
    if op == "transposed_copy":
        x, y = values(*shape), values(*shape[::-1])
        return lambda: np.copyto(y, x.T)
    return None


def time_numpy(call):
    """Nanoseconds of a call: the median of three stretches."""
    call()
    count, stretches = 1, []
    while True:
        start = time.thread_time_ns()
        for _ in range(count):
            call()
        spent = time.thread_time_ns() - start
        if spent >= LEAST_SECONDS * 1e9 or stretches:
            stretches.append(spent / count)
            if len(stretches) == 3:
                return statistics.median(stretches)
        else:
            count = max(count + 1, int(count * min(100, 1.2 * LEAST_SECONDS * 1e9 / max(spent, 1))))


def run_program(program, row, large, repetitions):
    """A row and its peers: {name: (nanoseconds, rate)}, where a rate is bytes or operations a second.

    Medians; of core's own calls the least of many short stretches, since what disturbs 200 ns only ever adds to them.
    """
    is_call = row.startswith("call/")
    command = [program, f"--benchmark_filter=^{re.escape(row)}(@.*)?$", "--benchmark_format=json",
               f"--benchmark_min_time={LEAST_SECONDS / 50 if is_call else LEAST_SECONDS}",
               f"--benchmark_repetitions={100 * repetitions if is_call else repetitions}",
               "--benchmark_enable_random_interleaving=true"]
    if large:
        command.append("--large")
    answer = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    unit = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
    found = {}
    for entry in answer["benchmarks"]:
        name, time_ns = entry["run_name"], entry["cpu_time"] * unit[entry["time_unit"]]
        if is_call and entry["run_type"] == "iteration":
            found[name] = (min(time_ns, found.get(name, (time_ns,))[0]), None)
        if is_call or entry.get("aggregate_name") != "median":
            continue
        rate = entry.get("bytes_per_second") or entry.get("flops")
        found[name] = (time_ns, rate)
    return found


def measure(program, row, options):
    """Our median time and rate, and the ratio to each peer."""
    numpy = numpy_call(row)
    times, rates, ratios, bare = [], [], {}, []
    for _ in range(options.rounds):
        found = run_program(program, row, options.large, options.repetitions)
        own_time, own_rate = found.pop(row)
        times.append(own_time)
        if own_rate:
            rates.append(own_rate)
        for name, (peer_time, peer_rate) in found.items():
            peer = name.split("@")[1]
            if peer == "plugin":
                bare.append(own_time - peer_time)
            else:
                ratios.setdefault(peer, []).append(own_rate / peer_rate)
        if numpy is not None:
            ratios.setdefault("numpy", []).append(time_numpy(numpy) / own_time)
    result = {"row": row, "ns": statistics.median(times), "rate": statistics.median(rates) if rates else None,
              "ratios": {peer: statistics.median(values) for peer, values in ratios.items()}}
    if bare:
        result["core_ns"] = statistics.median(bare)
    return result


def line(result):
    text = f"{result['row']:<44}{result['ns']:>14,.0f} ns"
    if result["rate"]:
        unit = "GFLOP/s" if result["row"].startswith("matmul") else "GB/s"
        text += f"{result['rate'] / 1e9:>9.1f} {unit:<8}"
    else:
        text += " " * 18
    if "core_ns" in result:
        text += f"  core {result['core_ns']:.0f} ns of {BUDGET_NS}"
    return text + "".join(f"  {peer} {ratio:.2f}" for peer, ratio in sorted(result["ratios"].items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="core-bench, as built with COMPUTE_BENCHMARKS")
    parser.add_argument("--filter", default="", help="only rows that match this regular expression")
    parser.add_argument("--large", action="store_true", help="also 1e8 elements and matrices of 4096")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repetitions", type=int, default=3, help="of core-bench in a round")
    parser.add_argument("--json", help="also write the results to this file")
    options = parser.parse_args()

    listed = subprocess.run([options.program, "--benchmark_list_tests"] + (["--large"] if options.large else []),
                            stdout=subprocess.PIPE, check=True, text=True).stdout.split()
    rows = [name for name in listed if "@" not in name]
    rows = [row for row in rows if re.search(options.filter, row)]
    if not rows:
        sys.exit("no row matches the filter")
    print(f"NumPy {np.__version__}, one thread each; a ratio above 1 means that compute is faster than the peer")
    results = []
    for row in rows:
        results.append(measure(options.program, row, options))
        print(line(results[-1]), flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
