#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""exp(x) a thousand times, three ways: copied to and from the device each time, resident on it, and in place.

    COMPUTE_DEVICE=cuda0 python3 exp_loop.py [--size N] [--iterations N]
"""
import argparse
import time

import compute as cp

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--size", type=int, default=200_000)
parser.add_argument("--iterations", type=int, default=1000)
options = parser.parse_args()

device = cp.device()
host = cp.linspace(0, 1, options.size, device="cpu")


def measure(name, step):
    step()  # prepares the op
    device.synchronize()
    start = time.perf_counter()
    for _ in range(options.iterations):
        result = step()
    device.synchronize()
    print(f"{name:9} {time.perf_counter() - start:9.4f} s   exp(1) = {float(result[-1]):.6f}")


def copied():
    return cp.exp(host.to_device(device)).to_device("cpu")


x = host.to_device(device)
y = cp.empty_like(x)
exp_into = cp.expression("exp(x)")

print(f"exp of {options.size} numbers, {options.iterations} times on {device}")
measure("copied", copied)
measure("resident", lambda: cp.exp(x))
measure("in place", lambda: exp_into(x, out=y))
