#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""y = m x + b in a loop: everything on the host, host arrays that the device mirrors, and everything on the device.

    COMPUTE_DEVICE=cuda0 python3 affine_loop.py [--rows N] [--columns N] [--iterations N]
"""
import argparse
import time

import compute as cp

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--rows", type=int, default=256)
parser.add_argument("--columns", type=int, default=256)
parser.add_argument("--iterations", type=int, default=100)
options = parser.parse_args()

device = cp.device()
random = cp.random.Generator(1)
with cp.device("cpu"):
    m = random.uniform((options.rows, options.columns), -0.5, 0.5)
    x = random.uniform((options.columns, options.columns), -0.5, 0.5)
    b = random.uniform((options.rows, options.columns), -0.5, 0.5)


def run(name, m, x, b):
    """An operand on the device takes the work there. Host arrays beside it are copied once, and kept as mirrors."""
    before = device.statistics()
    start = time.perf_counter()
    for _ in range(options.iterations):
        y = m @ x + b
    total = float(cp.sum(y))
    seconds = time.perf_counter() - start
    after = device.statistics()
    copies = after["transfers_to_device"] - before["transfers_to_device"]
    print(f"{name:9} {seconds:9.4f} s   {copies:5} copies to {device}   sum = {total:.3f}   on {y.device}")


run("host", m, x, b)
run("mirrored", m, x.to_device(device), b)
run("resident", m.to_device(device), x.to_device(device), b.to_device(device))
