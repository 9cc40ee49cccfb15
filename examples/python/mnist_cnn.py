#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a convolutional network on MNIST, or on any data in its format, such as Fashion-MNIST.

    COMPUTE_DEVICE=cuda0 python3 mnist_cnn.py FOLDER [--epochs N] [--steps N] [--batch N] [--pool] [--losses N] [--plot FILE]

FOLDER holds train-images-idx3-ubyte, train-labels-idx1-ubyte and the t10k- files, compressed or not. Two convolutions of 32
and 64 channels, 5 x 5, whose weights have an L2 penalty, and a dense layer have 553,866 parameters. With --pool the greatest
of 2 x 2 is taken after each convolution, which leaves 83,466. `compute run -n 2 python3 mnist_cnn.py …` divides each batch
between two processes, which average their gradients while they compute them.
"""
import argparse
import gzip
import math
import pathlib
import random
import struct
import time

import compute as cp
from compute import grad, nn


def read_idx(folder, name):
    """An IDX file of bytes as an array."""
    path = pathlib.Path(folder) / name
    data = path.read_bytes() if path.exists() else gzip.decompress(path.with_name(name + ".gz").read_bytes())
    rank = data[3]
    shape = struct.unpack_from(f">{rank}I", data, 4)
    return cp.reshape(cp.asarray(data[4 + 4 * rank:]), shape)


def load(folder, prefix):
    labels = read_idx(folder, prefix + "-labels-idx1-ubyte")
    return read_idx(folder, prefix + "-images-idx3-ubyte"), cp.astype(labels, cp.int32)


def make_parameters(seed, pools):
    generator = cp.random.Generator(seed)
    features = 64 * (7 * 7 if pools else 28 * 28)

    def weights(*shape):
        inputs = math.prod(shape[1:]) if len(shape) == 4 else shape[0]
        return generator.normal(shape, 0, math.sqrt(2 / inputs))

    return [weights(32, 1, 5, 5), cp.zeros(32), weights(64, 32, 5, 5), cp.zeros(64), weights(features, 10), cp.zeros(10)]


def network(parameters, pixels, pools):
    w1, b1, w2, b2, w3, b3 = parameters
    x = cp.reshape(cp.astype(pixels, cp.float32) / 255, (pixels.shape[0], 1, 28, 28))
    h = nn.relu(nn.convolution(x, w1, b1, padding="same"))
    if pools:
        h = nn.max_pool(h, 2)
    h = nn.relu(nn.convolution(h, w2, b2, padding="same"))
    if pools:
        h = nn.max_pool(h, 2)
    return nn.linear(cp.reshape(h, (pixels.shape[0], -1)), w3, b3)


def loss(logits, labels, parameters, l2):
    penalty = cp.sum(parameters[0] ** 2) + cp.sum(parameters[2] ** 2)
    return cp.mean(nn.cross_entropy(logits, labels)) + l2 * penalty


def count_right(logits, labels):
    return cp.count_nonzero(cp.astype(cp.argmax(logits, axis=1), cp.int32) == labels)


def accuracy(parameters, pixels, labels, pools):
    parts = [slice(i, i + 500) for i in range(0, pixels.shape[0], 500)]
    return sum(int(count_right(network(parameters, pixels[part], pools), labels[part])) for part in parts) / pixels.shape[0]


def batches(count, size, steps, seed):
    """Indices of random batches; the images repeat if there are too few."""
    draw, order = random.Random(seed), []
    for _ in range(steps):
        while len(order) < size:
            more = list(range(count))
            draw.shuffle(more)
            order += more
        yield cp.asarray(order[:size], dtype=cp.int32)
        del order[:size]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--steps", type=int, default=430)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rate", type=float, default=0.001)
    parser.add_argument("--l2", type=float, default=0.0001, help="factor of the convolutions' squared weights in the loss")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pool", action="store_true")
    parser.add_argument("--losses", type=int, default=0, help="prints the first losses")
    parser.add_argument("--plot", help="a file for the curve of the loss, by matplotlib")
    options = parser.parse_args()

    group = cp.distributed.init()
    if options.batch % group.size:
        raise SystemExit(f"--batch={options.batch} cannot be divided among {group.size} processes")
    say = print if group.rank == 0 else lambda text: None
    pixels, labels = load(options.folder, "train")
    parameters = make_parameters(options.seed, options.pool)
    say(f"{pixels.shape[0]} images on {cp.device()}, {sum(p.size for p in parameters)} parameters")
    adam = cp.optim.Adam(parameters, options.rate)
    history, right = [], []  # of each step: the loss, and how many answers were right

    def step(parameters, some, their):
        logits = network(parameters, some, options.pool)
        right.append(count_right(logits.value, their))
        return loss(logits, their, parameters, options.l2)

    for epoch in range(1, options.epochs + 1):
        start = time.perf_counter()
        for chosen in batches(pixels.shape[0], options.batch, options.steps, options.seed + epoch):
            chosen = chosen[group.rank::group.size]
            some, their = cp.take(pixels, chosen, axis=0), cp.take(labels, chosen, axis=0)
            value, gradients = grad.value_and_gradients(lambda p: step(p, some, their), group=group)(parameters)
            adam.step(gradients)
            history.append(value)
            if len(history) <= options.losses:
                say(f"loss {len(history)}: {float(value):.7g}")
        mean = float(cp.mean(cp.stack(history[-options.steps:])))
        learnt = int(cp.sum(cp.stack(right[-options.steps:]))) * group.size / (options.steps * options.batch)
        seconds = time.perf_counter() - start
        tested = accuracy(parameters, *load(options.folder, "t10k"), options.pool)
        say(f"epoch {epoch}: loss {mean:.4f}, accuracy {learnt:.4f}, test accuracy {tested:.4f}, {seconds:.1f} s")
    if options.plot:
        import matplotlib.pyplot as plt

        plt.plot([float(value) for value in history])
        plt.xlabel("step")
        plt.ylabel("loss")
        plt.savefig(options.plot)


if __name__ == "__main__":
    main()
