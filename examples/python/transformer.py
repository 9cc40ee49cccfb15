#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small GPT on the characters of a text, and writes more of it.

    COMPUTE_DEVICE=cuda0 python3 transformer.py FILE [--steps N] [--batch N] [--context N] [--layers N] [--heads N]
                                                     [--width N] [--generate N] [--losses N] [--plot FILE] [--profile FILE]

Nine tenths of the text are learnt; the rest gives the held-out loss. `compute run -n 2 python3 transformer.py …` divides each
batch between two processes, which average their gradients while they compute them.
"""
import argparse
import contextlib
import math
import pathlib
import random
import time

import compute as cp
from compute import grad, nn


def make_parameters(options, characters):
    """A dict of the network's parameters; the blocks are a list of dicts."""
    generator = cp.random.Generator(options.seed)
    c = options.width
    small = 0.02 / math.sqrt(2 * options.layers)

    def dense(inputs, outputs, deviation=0.02):
        return generator.normal((inputs, outputs), 0, deviation), cp.zeros(outputs)

    def norm():
        return cp.ones(c), cp.zeros(c)

    blocks = [{"norm1": norm(), "qkv": dense(c, 3 * c), "out": dense(c, c, small), "norm2": norm(),
               "up": dense(c, 4 * c), "down": dense(4 * c, c, small)} for _ in range(options.layers)]
    return {"characters": generator.normal((characters, c), 0, 0.02),
            "positions": generator.normal((options.context, c), 0, 0.02), "blocks": blocks, "norm": norm(),
            "head": dense(c, characters)}


def flatten(tree):
    """The arrays of a tree, in order."""
    if isinstance(tree, dict):
        tree = list(tree.values())
    return [x for one in tree for x in flatten(one)] if isinstance(tree, (list, tuple)) else [tree]


def attended(qkv, heads):
    """Causal attention; qkv is [batch, n, 3 width]."""
    b, n, width = qkv.shape
    parts = cp.permute_dims(cp.reshape(qkv, (b, n, 3, heads, width // 3 // heads)), (2, 0, 3, 1, 4))
    y = nn.attention(parts[0], parts[1], parts[2], causal=True)
    return cp.reshape(cp.permute_dims(y, (0, 2, 1, 3)), (b, n, width // 3))


def network(p, text, heads):
    """The logits of the next character at each position; text is [batch, n]."""
    places = cp.arange(text.shape[1], dtype=cp.int32)
    x = nn.embedding(p["characters"], text) + nn.embedding(p["positions"], places)
    for block in p["blocks"]:
        x = x + nn.linear(attended(nn.linear(nn.layer_norm(x, *block["norm1"]), *block["qkv"]), heads), *block["out"])
        h = nn.gelu(nn.linear(nn.layer_norm(x, *block["norm2"]), *block["up"]))
        x = x + nn.linear(h, *block["down"])
    return nn.linear(nn.layer_norm(x, *p["norm"]), *p["head"])


def loss(p, text, following, heads):
    return cp.mean(nn.cross_entropy(network(p, text, heads), following))


def sample(text, options, draw):
    """Random windows of the text, and what follows each of their characters."""
    starts = [draw.randrange(len(text) - options.context - 1) for _ in range(options.batch)]
    windows = [text[start:start + options.context + 1] for start in starts]
    array = cp.asarray(windows, dtype=cp.int32)
    return array[:, :-1], array[:, 1:]


def write(p, options, text, characters):
    """Draws characters one by one, each from the likeliest ten."""
    draw = random.Random(options.seed)
    for _ in range(options.generate):
        window = cp.asarray([text[-options.context:]], dtype=cp.int32)
        scores = network(p, window, options.heads)[0, -1].tolist()
        best = sorted(range(len(scores)), key=lambda i: -scores[i])[:10]
        weights = [math.exp(scores[i] - scores[best[0]]) for i in best]
        text.append(draw.choices(best, weights)[0])
    return "".join(characters[i] for i in text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    for name, value in {"steps": 1000, "batch": 16, "context": 256, "layers": 6, "heads": 6, "width": 384, "seed": 1,
                        "generate": 200, "losses": 0}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--rate", type=float, default=0.0003)
    parser.add_argument("--plot", help="a file for the curve of the loss, by matplotlib")
    parser.add_argument("--profile", help="a file for bars of what the steps cost, by matplotlib")
    options = parser.parse_args()

    group = cp.distributed.init()
    if options.batch % group.size:
        raise SystemExit(f"--batch={options.batch} cannot be divided among {group.size} processes")
    say = print if group.rank == 0 else lambda text: None
    raw = pathlib.Path(options.file).read_text(encoding="utf-8")
    characters = sorted(set(raw))
    text = [characters.index(c) for c in raw]
    learnt = len(text) // 10 * 9
    if min(learnt, len(text) - learnt) < options.context + 2:
        raise SystemExit(f"{options.file} is too short: a tenth of its {len(text)} characters must hold a window of "
                         f"{options.context + 2}; give a longer text or a smaller --context")
    parameters = make_parameters(options, len(characters))
    flat = flatten(parameters)
    say(f"{len(text)} characters, {len(characters)} different, on {cp.device()}, {sum(p.size for p in flat)} parameters")
    adam = cp.optim.AdamW(flat, options.rate)
    draw = random.Random(options.seed)
    history = []
    start = time.perf_counter()
    with cp.profile() if options.profile else contextlib.nullcontext() as profile:
        for step in range(1, options.steps + 1):
            batch = [part[group.rank::group.size] for part in sample(text[:learnt], options, draw)]
            value, gradients = grad.value_and_gradients(lambda p: loss(p, *batch, options.heads), group=group)(parameters)
            adam.step(flatten(gradients))
            history.append(value)
            if step <= options.losses:
                say(f"loss {step}: {float(value):.7g}")
    seconds = time.perf_counter() - start
    held_out = loss(parameters, *sample(text[learnt:], options, random.Random(7)), options.heads)
    say(f"{options.steps} steps in {seconds:.2f} s, held-out loss {float(held_out):.4f}")
    say(write(parameters, options, text[:1], characters))
    if options.plot:
        import matplotlib.pyplot as plt

        plt.plot([float(value) for value in history])
        plt.xlabel("step")
        plt.ylabel("loss")
        plt.savefig(options.plot)
    if options.profile:
        profile.plot(options.profile)


if __name__ == "__main__":
    main()
