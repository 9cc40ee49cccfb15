#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Learns the sentiment of movie reviews by a convolution over words.

    COMPUTE_DEVICE=cuda0 python3 imdb_cnn.py FILE [--epochs N] [--train N] [--batch N] [--losses N] [--plot FILE]

Each line of FILE is 0 or 1, a tab, and the text; the file may be compressed. The first `train` reviews are learnt and the others test.
The vocabulary is that of the learnt reviews alone.
"""
import argparse
import collections
import gzip
import pathlib
import random
import re
import time

import compute as cp
from compute import grad, nn

WORD = re.compile(r"[a-z0-9']+")


def read_reviews(path):
    """A label and a list of words for each review."""
    data = pathlib.Path(path).read_bytes()
    text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8", "replace")
    reviews = []
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        label, tab, review = line.partition("\t")
        if label not in ("0", "1") or not tab:
            raise SystemExit(f"{path}, line {number}: expected 0 or 1, a tab and a text")
        reviews.append((float(label), WORD.findall(review.lower())))
    return reviews


def vocabulary(reviews, size):
    """The most frequent words get 2, 3, ...; 0 pads and 1 stands for any other word."""
    counts = collections.Counter(word for _, words in reviews for word in words)
    order = sorted(counts, key=lambda word: (-counts[word], word))
    return {word: number for number, word in enumerate(order[:size - 2], 2)}


def encode(reviews, numbers, length):
    """The last `length` words of each review, with zeros in front of short ones, and the labels."""
    rows = [[numbers.get(word, 1) for word in words[-length:]] for _, words in reviews]
    words = cp.asarray([[0] * (length - len(row)) + row for row in rows], dtype=cp.int32)
    return words, cp.asarray([[label] for label, _ in reviews], dtype=cp.float32)


def make_parameters(words, seed):
    generator = cp.random.Generator(seed)

    def uniform(shape, limit):
        return generator.uniform(shape, -limit, limit)

    return [uniform((words, 50), 0.05), uniform((250, 50, 3), (6 / 900) ** 0.5), cp.zeros(250),
            uniform((250, 250), (6 / 500) ** 0.5), cp.zeros(250), uniform((250, 1), (6 / 251) ** 0.5), cp.zeros(1)]


def network(parameters, words, drop=lambda x: x):
    """Logits [n, 1]."""
    table, wc, bc, w1, b1, w2, b2 = parameters
    n, length = words.shape
    x = cp.permute_dims(drop(nn.embedding(table, words)), (0, 2, 1))
    h = cp.reshape(nn.max_pool(nn.relu(nn.convolution(x, wc, bc)), length - 2), (n, 250))
    return nn.linear(nn.relu(drop(nn.linear(h, w1, b1))), w2, b2)


def count_right(logits, labels):
    return cp.count_nonzero(cp.astype(logits > 0, cp.float32) == labels)


def test_network(parameters, words, labels):
    """The mean loss and the accuracy, without dropout."""
    total, right = 0.0, 0
    for i in range(0, words.shape[0], 250):
        logits, their = network(parameters, words[i:i + 250]), labels[i:i + 250]
        total += float(cp.sum(nn.binary_cross_entropy_with_logits(logits, their)))
        right += int(count_right(logits, their))
    return total / words.shape[0], right / words.shape[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--train", type=int, default=4000)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=0.001)
    parser.add_argument("--words", type=int, default=5000)
    parser.add_argument("--length", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--losses", type=int, default=0, help="prints the first losses")
    parser.add_argument("--plot", help="a file for the curve of the loss, by matplotlib")
    options = parser.parse_args()

    reviews = read_reviews(options.file)
    numbers = vocabulary(reviews[:options.train], options.words)
    words, labels = encode(reviews[:options.train], numbers, options.length)
    test = encode(reviews[options.train:], numbers, options.length) if len(reviews) > options.train else None
    parameters = make_parameters(options.words, options.seed)
    print(f"{words.shape[0]} reviews to learn on {cp.device()}, {sum(p.size for p in parameters)} parameters, rate {options.rate}")
    adam, generator = cp.optim.Adam(parameters, options.rate), cp.random.Generator(options.seed)
    history, right = [], []  # of each step: the loss, and how many answers were right
    draw, order = random.Random(options.seed), list(range(words.shape[0]))

    def loss(parameters, some, their):
        logits = network(parameters, some, lambda x: nn.dropout(x, 0.2, generator=generator))
        right.append(count_right(logits.value, their))
        return cp.mean(nn.binary_cross_entropy_with_logits(logits, their))

    for epoch in range(1, options.epochs + 1):
        start, first = time.perf_counter(), len(history)
        draw.shuffle(order)
        for i in range(0, len(order), options.batch):
            chosen = cp.asarray(order[i:i + options.batch], dtype=cp.int32)
            some, their = cp.take(words, chosen, axis=0), cp.take(labels, chosen, axis=0)
            value, gradients = grad.value_and_gradients(lambda p: loss(p, some, their))(parameters)
            adam.step(gradients)
            history.append(value)
            if len(history) <= options.losses:
                print(f"loss {len(history)}: {float(value):.7g}")
        mean, seconds = float(cp.mean(cp.stack(history[first:]))), time.perf_counter() - start
        learnt = int(cp.sum(cp.stack(right[first:]))) / len(order)
        held_out = ", test loss {:.4f}, test accuracy {:.4f}".format(*test_network(parameters, *test)) if test is not None else ""
        print(f"epoch {epoch}: loss {mean:.4f}, accuracy {learnt:.4f}{held_out}, {seconds:.1f} s")
    if options.plot:
        import matplotlib.pyplot as plt

        plt.plot([float(value) for value in history])
        plt.xlabel("step")
        plt.ylabel("loss")
        plt.savefig(options.plot)


if __name__ == "__main__":
    main()
