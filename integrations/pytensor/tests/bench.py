# SPDX-License-Identifier: Apache-2.0
"""Times functions of PyTensor beside the same programs on the package compute: COMPUTE_DEVICE=cpu python bench.py

The two take turns, and the least time of each counts, in microseconds a call.
"""
import time

import numpy as np
import pytensor
import pytensor.tensor as pt

import compute as cp
import compute_pytensor  # noqa: F401  registers the mode
from compute_pytensor.transfer import gpu_from_host


def timed(programs, calls=20, rounds=200):
    """The least microseconds of a call of each."""
    for program in programs:
        program()
    best = [float("inf")] * len(programs)
    for _ in range(rounds):
        for i, program in enumerate(programs):
            begin = time.perf_counter()
            for _ in range(calls):
                program()
            cp.device().synchronize()
            best[i] = min(best[i], (time.perf_counter() - begin) / calls)
    return [1e6 * one for one in best]


def exp():
    values = np.random.RandomState(22).rand(10 * 30 * 768).astype("float32")
    x, shared = cp.asarray(values, copy=True), pytensor.shared(values)
    return {"exp, results as NumPy arrays": (lambda: np.asarray(cp.exp(x)), pytensor.function([], pt.exp(shared), mode="COMPUTE")),
            "exp, results on the device": (lambda: cp.exp(x), pytensor.function([], gpu_from_host(pt.exp(shared)), mode="COMPUTE"))}


def logistic(samples=400, features=784):
    random = np.random.RandomState(22)
    data, labels = random.randn(samples, features).astype("float32"), random.randint(size=samples, low=0, high=2).astype("float32")
    weights, offset = random.randn(features).astype("float32"), np.float32(0)

    x, y, state = cp.asarray(data, copy=True), cp.asarray(labels, copy=True), [cp.asarray(weights, copy=True), cp.asarray(offset, copy=True)]
    forward = cp.expression("p = 1 / (1 + exp(-z - b)); -y * log(p) - (1 - y) * log(1 - p); p > 0.5; (p - y) / n", "z", "b", "y", "n")
    new_w, new_b = cp.expression("w - 0.1 * (g + 0.02 * w)", "w", "g"), cp.expression("b - 0.1 * g", "b", "g")

    def own():
        w, b = state
        loss, prediction, slope = forward(x @ w, b, y, float(samples))
        state[:] = new_w(w, x.T @ slope), new_b(b, cp.sum(slope))
        return np.asarray(prediction), np.asarray(loss)

    x_, y_, w, b = (pytensor.shared(one) for one in (data, labels, weights, np.asarray(offset)))
    p = 1 / (1 + pt.exp(-pt.dot(x_, w) - b))
    loss = -y_ * pt.log(p) - (1 - y_) * pt.log(1 - p)
    gradients = pytensor.grad(loss.mean() + 0.01 * (w ** 2).sum(), [w, b])
    return {"logistic regression, a step": (own, pytensor.function([], [p > 0.5, loss], updates=[
        (one, one - 0.1 * gradient) for one, gradient in zip((w, b), gradients)], mode="COMPUTE"))}


def loop(steps=100, width=8):
    values, weights = np.random.rand(steps, width).astype("float32"), (np.random.rand(width, width) / width).astype("float32")
    m, a = pt.matrix("m", dtype="float32"), pt.matrix("a", dtype="float32")
    hidden = pytensor.scan(lambda row, h, a: pt.tanh(row + a @ h), sequences=[m], outputs_info=[pt.zeros_like(m[0])], non_sequences=[a],
                           return_updates=False)
    made = pytensor.function([m, a], hidden, mode="COMPUTE")
    x, w = cp.asarray(values, copy=True), cp.asarray(weights, copy=True)

    def own():
        h, rows = cp.zeros(width), []
        for i in range(steps):
            h = cp.tanh(x[i] + w @ h)
            rows.append(h)
        return np.asarray(cp.stack(rows))
    return {"a recurrent network, 100 steps": (own, lambda: made(values, weights))}


def main():
    with pytensor.config.change_flags(floatX="float32"):
        programs = {**exp(), **logistic(), **loop()}
    print(f"{cp.device().name}, microseconds a call\n{'':<34}{'compute':>10}{'PyTensor':>10}")
    for name, pair in programs.items():
        print(f"{name:<34}{'{:10.1f}{:10.1f}'.format(*timed(pair))}")


if __name__ == "__main__":
    main()
