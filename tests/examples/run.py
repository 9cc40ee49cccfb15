# SPDX-License-Identifier: Apache-2.0
"""Runs a training program on made-up data, on each device, and compares what it prints.

    run.py PROGRAM DEVICE...

Each device trains twice: step by step, and with the step replayed as a graph. The losses must fall, and those of all runs must agree to
1e-4. So must the lines about epochs, up to one answer that is right here and wrong there. A device that is missing is an error: the caller skips.
"""

import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile


def write_idx(path, shape, values):
    path.write_bytes(struct.pack(">BBBB", 0, 0, 8, len(shape)) + struct.pack(f">{len(shape)}I", *shape) + bytes(values))


def make_digits(folder):
    """Ten patterns with noise, in the format of MNIST."""
    draw = random.Random(1)
    patterns = [[draw.random() < 0.3 for _ in range(784)] for _ in range(10)]
    for name, count in (("train", 256), ("t10k", 64)):
        labels = [draw.randrange(10) for _ in range(count)]
        pixels = [255 if patterns[label][i] != (draw.random() < 0.1) else 0 for label in labels for i in range(784)]
        write_idx(folder / f"{name}-images-idx3-ubyte", (count, 28, 28), pixels)
        write_idx(folder / f"{name}-labels-idx1-ubyte", (count,), labels)
    # Digits this easy, at the default rate, take the loss to 12 and back: then rounding grows by a factor of 1000 in a step.
    return [f"--data={folder}", "--steps=20", "--batch=4", "--rate=0.00003", "--losses=20"]


def make_reviews(folder):
    draw = random.Random(2)
    words = {1: ["good", "great", "fine", "love"], 0: ["bad", "poor", "dull", "hate"]}
    lines = []
    for _ in range(96):
        label = draw.randrange(2)
        text = " ".join(draw.choice(words[label] + ["the", "film", "is", "a"]) for _ in range(30))
        lines.append(f"{label}\t{text}\n")
    (folder / "reviews.tsv").write_text("".join(lines))
    return [f"--data={folder}/reviews.tsv", "--train=64", "--batch=16", "--length=40", "--words=60", "--epochs=5", "--losses=20"]


def make_text(folder):
    (folder / "text.txt").write_text("the quick brown fox jumps over the lazy dog. " * 40)
    return [f"--data={folder}/text.txt", "--steps=20", "--batch=4", "--context=16", "--layers=2", "--heads=2", "--width=32",
            "--rate=0.003", "--losses=20", "--generate=20"]


# What the lines about epochs show, and which accuracies the last one reaches.
EPOCHS = {"mnist_cnn": ["loss", "accuracy", "test accuracy"], "imdb_cnn": ["loss", "accuracy", "test loss", "test accuracy"], "transformer": []}
REACHED = {"mnist_cnn": 0.3, "imdb_cnn": 0.9}
MAKERS = {"mnist_cnn": make_digits, "imdb_cnn": make_reviews, "transformer": make_text}


def main():
    program, devices = pathlib.Path(sys.argv[1]), sys.argv[2:]
    with tempfile.TemporaryDirectory() as name:
        arguments = MAKERS[program.name](pathlib.Path(name))
        first = None
        for device, graph in ((device, graph) for device in devices for graph in (0, 1)):
            result = subprocess.run([program, f"--compute-device={device}", f"--graph={graph}", *arguments],
                                    capture_output=True, text=True, env=dict(os.environ))
            print(result.stdout, result.stderr)
            if result.returncode != 0:
                sys.exit(f"{program.name} on {device} ended with {result.returncode}")
            losses = [float(text) for text in re.findall(r"^loss \d+: (\S+)$", result.stdout, re.M)]
            if len(losses) < 20 or not sum(losses[-3:]) < sum(losses[:3]):
                sys.exit(f"the losses on {device} do not fall: {losses}")
            epochs = [re.findall(r"([a-z ]+) ([\d.]+),", line) for line in re.findall(r"^epoch \d+: (.*)$", result.stdout, re.M)]
            if any([name.strip() for name, _ in epoch] != EPOCHS[program.name] for epoch in epochs) or (EPOCHS[program.name] and not epochs):
                sys.exit(f"{program.name} on {device} shows {epochs}")
            losses += [float(number) for epoch in epochs for name, number in epoch if "loss" in name]
            accuracies = [float(number) for epoch in epochs for name, number in epoch if "accuracy" in name]
            if any(float(number) < REACHED[program.name] for name, number in (epochs[-1] if epochs else []) if "accuracy" in name):
                sys.exit(f"{program.name} on {device} learns little: {epochs}")
            first_accuracies = first_accuracies if first else accuracies
            if any(abs(a - b) > 1.01 / 64 for a, b in zip(first_accuracies, accuracies)):
                sys.exit(f"the accuracies are {first_accuracies} on {devices[0]}, but {accuracies} on {device}, graph {graph}")
            first = first or losses
            for i, (a, b) in enumerate(zip(first, losses)):
                if abs(a - b) > 1e-4 * abs(a):
                    sys.exit(f"loss {i + 1} is {a} on {devices[0]}, but {b} on {device}, graph {graph}")


if __name__ == "__main__":
    main()
