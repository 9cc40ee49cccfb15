#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Logistic regression on random labels, step by step and as a recorded graph.

    COMPUTE_DEVICE=cuda0 python3 logistic_regression.py [--samples N] [--features N] [--steps N] [--plot FILE]
"""
import argparse
import time

import compute as cp
from compute import grad, nn

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--samples", type=int, default=400)
parser.add_argument("--features", type=int, default=784)
parser.add_argument("--steps", type=int, default=1000)
parser.add_argument("--plot", help="a file for the curve of the loss, by matplotlib")
options = parser.parse_args()

device = cp.device()
random = cp.random.Generator(22)
x = random.normal((options.samples, options.features))
y = random.bernoulli((options.samples,), dtype=cp.float32)
start_w = random.normal((options.features,))


def loss(w, b):
    """The mean cross-entropy, and a penalty on large weights."""
    error = nn.binary_cross_entropy_with_logits(x @ w + b, y)
    return cp.mean(error) + 0.01 * cp.sum(cp.square(w))


def step(w, b, rate=0.01):
    value, (dw, db) = grad.value_and_gradients(loss)(w, b)
    w -= rate * dw
    b -= rate * db
    return value


def report(name, seconds, w, b):
    predicted = nn.sigmoid(x @ w + b) > 0.5
    right = float(cp.mean(cp.astype(predicted == (y > 0.5), cp.float32)))
    print(f"{name:6} {seconds:8.3f} s   loss {float(loss(w, b)):.4f}   {100 * right:.1f} % of the labels predicted")


w, b = cp.asarray(start_w, copy=True), cp.zeros(())
losses = []
start = time.perf_counter()
for _ in range(options.steps):
    losses.append(step(w, b))
device.synchronize()
report("steps", time.perf_counter() - start, w, b)

w, b = cp.asarray(start_w, copy=True), cp.zeros(())
with cp.graph.record(device) as recorded:
    step(w, b)
start = time.perf_counter()
for _ in range(options.steps):
    recorded.run()
recorded.stream.synchronize()
report("graph", time.perf_counter() - start, w, b)

if options.plot:
    import matplotlib.pyplot as plt

    plt.plot([float(value) for value in losses])
    plt.xlabel("step")
    plt.ylabel("loss")
    plt.savefig(options.plot)
