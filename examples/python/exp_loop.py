#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""exp(x) a thousand times, as exp_loop.c does it: each result read back, the results left on the device, and the results written into one array.

    COMPUTE_DEVICE=cuda0 python3 exp_loop.py [--dtype float32|float64] [--iterations N] [--read] [--keep] [--out]

Without one of the last three all run. x is what NumPy's RandomState(22).rand(10 * 30 * 768) gives. Without --dtype it is what COMPUTE_FLOAT says.
"""
import argparse
import math
import random
import sys
import time

import compute as cp

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--dtype", choices=("float32", "float64"))
parser.add_argument("--iterations", type=int, default=1000)
for way in ("read", "keep", "out"):
    parser.add_argument(f"--{way}", action="store_true")
options = parser.parse_args()


def random_numbers(seed, count):
    """RandomState(seed).rand(count): Python's generator is NumPy's, but has another seeding."""
    words = [seed]
    for i in range(1, 624):
        words.append((1812433253 * (words[-1] ^ words[-1] >> 30) + i) & 0xFFFFFFFF)
    generator = random.Random()
    generator.setstate((3, (*words, 624), None))
    return [generator.random() for _ in range(count)]


device, host = cp.device(), cp.device("cpu")
ops_before = [one.statistics()["ops_run"] for one in (device, host)]
x = cp.asarray(random_numbers(22, 10 * 30 * 768), dtype=options.dtype)
y = cp.empty_like(x)
exp_into = cp.expression("exp(x)")
wanted = [math.exp(number) for number in x.tolist()]
unit = 2 ** 29 if x.dtype == cp.float32 else 1  # how much larger a unit in the last place is than float64's


def read():
    for _ in range(options.iterations):
        result = cp.exp(x).to_device("cpu")
    return result


def keep():
    for _ in range(options.iterations):
        result = cp.exp(x)
    return result


def out():
    for _ in range(options.iterations):
        exp_into(x, out=y)
    return y


cp.exp(x), exp_into(x, out=y)  # prepares the op
device.synchronize()
wrong = False
for way, loop, text in (("read", read, "each result read back"), ("keep", keep, "results left on the device"),
                        ("out", out, "results written into one tensor")):
    if not getattr(options, way) and (options.read or options.keep or options.out):
        continue
    start = time.perf_counter()
    result = loop()
    device.synchronize()
    print(f"Looping {options.iterations} times took {time.perf_counter() - start:.6f} seconds, {text}")
    numbers = result.tolist()
    is_wrong = not all(abs(number - right) <= 1.5 * unit * math.ulp(right) for number, right in zip(numbers, wanted))
    shown = [f"{number:.8f}" for number in numbers[:3] + numbers[-3:]]
    print(f"Result is [{' '.join(shown[:3])} ... {' '.join(shown[3:])}]{'  WRONG' if is_wrong else ''}")
    wrong = wrong or is_wrong

# From counters of what ran, not from what was asked for.
used = {one.name: one.statistics()["ops_run"] - before for one, before in zip((device, host), ops_before)}
print("Used", ", ".join("the cpu" if name == "cpu" else name for name, count in used.items() if count > 0))
sys.exit(wrong)
