#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times calls of the Python package beside NumPy, and PyTorch if it is there: the cost of a call on small arrays, and
the time of large ones.

    COMPUTE_DEVICE=cpu PYTHONPATH=... python3 tools/python_peers.py [--sizes 4 1000 1000000] [--repeats N]

Each figure is the least of several repeats, taken in turns, in nanoseconds per call. Before each, all threads are
asleep. The last column is the better peer's time over ours.
"""
import argparse
import os
import sys
import time

import compute as cp
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "bench"))
from compute_bench.quiet import wait_until_quiet  # noqa: E402

try:
    import torch
except ImportError:
    torch = None

# In Python's syntax, over arrays x and y and a namespace xp.
CALLS = {
    "x + y": lambda xp, x, y: x + y,
    "x * 2.0": lambda xp, x, y: x * 2.0,
    "x += y": lambda xp, x, y: x.__iadd__(y),
    "x < y": lambda xp, x, y: x < y,
    "exp(x)": lambda xp, x, y: xp.exp(x),
    "sqrt(x)": lambda xp, x, y: xp.sqrt(x),
    "sum(x)": lambda xp, x, y: xp.sum(x),
    "x[1:3]": lambda xp, x, y: x[1:3],
    "x[1]": lambda xp, x, y: x[1],
    "float(x[0])": lambda xp, x, y: float(x[0]),
    "reshape(x, (2, -1))": lambda xp, x, y: xp.reshape(x, (2, -1)),
    "x.shape": lambda xp, x, y: x.shape,
}


def seconds_per_call(call, xp, x, y, finish):
    """The time of one call, over enough calls for 10 ms."""
    wait_until_quiet()
    count = 1
    while True:
        start = time.perf_counter()
        for _ in range(count):
            call(xp, x, y)
        finish()
        elapsed = time.perf_counter() - start
        if elapsed > 0.01:
            return elapsed / count
        count *= 4


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[4, 1000, 1000000])
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    device = cp.device()
    print(f"compute {cp.__version__} on {device}, NumPy {np.__version__}, PyTorch {torch.__version__ if torch else '-'}")
    print(f"{'call':20} {'elements':>9} {'compute':>10} {'NumPy':>10} {'PyTorch':>10} {'ratio':>6}")
    for size in options.sizes:
        values = np.linspace(0.1, 1, size, dtype=np.float32)
        libraries = {"compute": (cp, lambda a: cp.asarray(a, copy=True), device.synchronize),
                     "NumPy": (np, np.array, lambda: None)}
        if torch:
            libraries["PyTorch"] = (torch, torch.tensor, lambda: None)
        arrays = {name: (make(values), make(values * 1e-9)) for name, (_, make, _) in libraries.items()}
        for text, call in CALLS.items():
            best = dict.fromkeys(libraries, float("inf"))
            for _ in range(options.repeats):
                for name, (xp, _, finish) in libraries.items():
                    best[name] = min(best[name], seconds_per_call(call, xp, *arrays[name], finish))
            shown = [f"{best[name] * 1e9:10,.0f}" if name in best else f"{'-':>10}"
                     for name in ("compute", "NumPy", "PyTorch")]
            peers = min(value for name, value in best.items() if name != "compute")
            print(f"{text:20} {size:9} {' '.join(shown)} {peers / best['compute']:6.2f}")


if __name__ == "__main__":
    main()
