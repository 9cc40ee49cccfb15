#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program of Keras with data sets from files: run_program.py [--mnist FOLDER] [--imdb FILE] program.py arguments

FOLDER has MNIST's four files in the IDX format, compressed or not. FILE has one review a line, compressed or not: 1 or 0, a
tab, and the text. Every fifth review is for testing. keras.datasets returns them in the place of what it downloads.
"""
import argparse
import collections
import gzip
import os
import pathlib
import re
import runpy
import sys

os.environ.setdefault("KERAS_BACKEND", "compute")

if os.environ["KERAS_BACKEND"] == "compute":
    import keras_compute  # noqa: F401  before keras

import keras  # noqa: E402
import numpy as np  # noqa: E402


def opened(path):
    return gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb")


def idx(folder, name):
    """The array in a file of the IDX format."""
    path = next(path for path in (folder / name, folder / f"{name}.gz") if path.exists())
    with opened(path) as file:
        data = file.read()
    rank = data[3]
    shape = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(rank)]
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(shape)


def mnist(folder):
    def load_data(path="mnist.npz"):
        train, test = ((idx(folder, f"{name}-images-idx3-ubyte"), idx(folder, f"{name}-labels-idx1-ubyte"))
                       for name in ("train", "t10k"))
        return train, test

    return load_data


def imdb(path):
    """Words are numbered by how often they occur, from 3 on; 1 starts a review, 2 stands for other words."""
    def load_data(path_=None, num_words=None, start_char=1, oov_char=2, index_from=3, **options):
        with opened(path) as file:
            rows = [line.decode("utf-8").rstrip("\n").partition("\t") for line in file]
        texts = [re.findall(r"[a-z0-9']+", text.replace("<br />", " ").lower()) for _, _, text in rows]
        counts = collections.Counter(word for text in texts for word in text)
        numbers = {word: i + index_from for i, (word, _) in enumerate(counts.most_common(), 1)}
        most = num_words or len(numbers) + index_from + 1
        lists = [[start_char, *(n if n < most else oov_char for n in map(numbers.get, text))] for text in texts]
        labels = [int(label) for label, _, _ in rows]

        def part(chosen):
            x = np.empty(len(chosen), dtype=object)
            x[:] = [lists[i] for i in chosen]
            return x, np.array([labels[i] for i in chosen])

        order = range(len(rows))
        return part([i for i in order if i % 5 != 4]), part([i for i in order if i % 5 == 4])

    return load_data


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mnist", type=pathlib.Path)
    parser.add_argument("--imdb", type=pathlib.Path)
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if given.mnist:
        keras.datasets.mnist.load_data = mnist(given.mnist)
    if given.imdb:
        keras.datasets.imdb.load_data = imdb(given.imdb)
    sys.argv = [given.program, *given.arguments]
    runpy.run_path(given.program, run_name="__main__")


if __name__ == "__main__":
    main()
