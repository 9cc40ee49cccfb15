#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""y = m x + b in a loop, with more and more of it on the device.

    COMPUTE_DEVICE=cuda0 python3 affine_loop.py [--rows N] [--columns N] [--iterations N]

NumPy, if it is installed; everything on the host (`host`); everything moved at each turn (`explicit`); x moved to the device and y back while m and b are there
(`model`); host arrays that the device keeps copies of (`mirrored`); and everything on the device (`resident`).
"""
import argparse
import time

import compute as cp

try:
    import numpy
except ImportError:
    numpy = None

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
on_device = [each.to_device(device) for each in (m, x, b)]


def affine(m, x, b):
    """One op. An operand on the device takes the work there. Host arrays beside it are copied once, and kept as mirrors."""
    return cp.linalg.gemm(b, m, x)


def run(name, turn):
    turn()  # prepares the op
    device.synchronize()
    before = device.statistics()
    start = time.perf_counter()
    for _ in range(options.iterations):
        y = turn()
    first = float(y[0, 0])  # waits
    seconds = time.perf_counter() - start
    after = device.statistics()
    copies = [after[count] - before[count] for count in ("transfers_to_device", "transfers_from_device")]
    print(f"{name:9} {seconds:9.4f} s   {copies[0]:5} copies to {device} and {copies[1]:5} from it   y[0, 0] = {first:.4f}")


if numpy:
    arrays = [numpy.array(each) for each in (m, x, b)]
    run("numpy", lambda: numpy.dot(arrays[0], arrays[1]) + arrays[2])
run("host", lambda: affine(m, x, b))
run("explicit", lambda: affine(*[each.to_device(device) for each in (m, x, b)]).to_device("cpu"))
run("model", lambda: affine(on_device[0], x.to_device(device), on_device[2]).to_device("cpu"))
run("mirrored", lambda: affine(m, on_device[1], b))
run("resident", lambda: affine(*on_device))
