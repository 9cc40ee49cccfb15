# SPDX-License-Identifier: Apache-2.0
"""The networks of the examples in PyTorch, on the same data. Each returns its times in seconds, and its accuracy or held-out loss."""
import collections
import gzip
import math
import os
import re
import time

import torch
import torch.nn.functional as F


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def idx(folder, name):
    path = os.path.join(folder, name)
    data = read(path if os.path.exists(path) else path + ".gz")
    rank = data[3]
    shape = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(rank)]
    return torch.frombuffer(bytearray(data[4 + 4 * rank:]), dtype=torch.uint8).reshape(shape)


def synchronize(where):
    if where != "cpu":
        torch.cuda.synchronize()


def timed_epochs(epochs, where, body):
    times = []
    for _ in range(epochs):
        synchronize(where)
        start = time.perf_counter()
        body()
        synchronize(where)
        times.append(time.perf_counter() - start)
    return times


def mnist(folder, epochs, where, pools=False):
    train, labels = idx(folder, "train-images-idx3-ubyte").to(where), idx(folder, "train-labels-idx1-ubyte").long().to(where)
    test, wanted = idx(folder, "t10k-images-idx3-ubyte").to(where), idx(folder, "t10k-labels-idx1-ubyte").long().to(where)
    conv1, conv2 = torch.nn.Conv2d(1, 32, 5, padding="same"), torch.nn.Conv2d(32, 64, 5, padding="same")
    pool = [torch.nn.MaxPool2d(2)] if pools else []
    network = torch.nn.Sequential(conv1, torch.nn.ReLU(), *pool, conv2, torch.nn.ReLU(), *pool, torch.nn.Flatten(),
                                  torch.nn.Linear(64 * (49 if pools else 784), 10)).to(where)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=where != "cpu")
    pixels = lambda x: (x.float() / 255).reshape(-1, 1, 28, 28)
    order = torch.randperm(len(train))
    place = 0

    def epoch():
        nonlocal order, place
        for _ in range(430):
            chosen = []
            while len(chosen) < 128:
                if place == len(order):
                    order, place = torch.randperm(len(train)), 0
                take = min(128 - len(chosen), len(order) - place)
                chosen += order[place:place + take].tolist()
                place += take
            at = torch.tensor(chosen, device=where)
            loss = F.cross_entropy(network(pixels(train[at])), labels[at])
            if not pools:
                loss = loss + 1e-4 * (conv1.weight.square().sum() + conv2.weight.square().sum())
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()

    times = timed_epochs(epochs, where, epoch)
    with torch.no_grad():
        right = sum((network(pixels(test[i:i + 500])).argmax(1) == wanted[i:i + 500]).sum().item() for i in range(0, len(test), 500))
    return times, right / len(test)


def reviews_of(path):
    found = []
    for line in read(path).decode("latin-1").split("\n"):
        if line:
            found.append((1.0 if line[0] == "1" else 0.0, re.findall(r"[a-z0-9']+", re.sub(r"[A-Z]", lambda m: m[0].lower(), line[2:]))))
    return found


class TextNetwork(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.conv = torch.nn.Embedding(5000, 50), torch.nn.Conv1d(50, 250, 3)
        self.dense, self.last = torch.nn.Linear(250, 250), torch.nn.Linear(250, 1)
        torch.nn.init.uniform_(self.table.weight, -0.05, 0.05)

    def forward(self, words):
        x = F.dropout(self.table(words), 0.2, self.training).permute(0, 2, 1)
        h = F.relu(self.conv(x)).amax(2)
        return self.last(F.relu(F.dropout(self.dense(h), 0.2, self.training)))


def imdb(path, epochs, where):
    reviews = reviews_of(path)
    learnt = 4000
    seen = collections.Counter(word for _, words in reviews[:learnt] for word in words)
    order = sorted(seen, key=lambda word: (-seen[word], word))[:4998]
    numbers = {word: i + 2 for i, word in enumerate(order)}
    encoded = torch.zeros(len(reviews), 400, dtype=torch.long)
    for i, (_, words) in enumerate(reviews):
        last = [numbers.get(word, 1) for word in words[-400:]]
        if last:
            encoded[i, -len(last):] = torch.tensor(last)
    labels = torch.tensor([[label] for label, _ in reviews]).to(where)
    encoded = encoded.to(where)
    network = TextNetwork().to(where)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=where != "cpu")

    def epoch():
        network.train()
        for at in torch.randperm(learnt, device=where).split(32):
            loss = F.binary_cross_entropy_with_logits(network(encoded[at]), labels[at])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()

    times = timed_epochs(epochs, where, epoch)
    network.eval()
    with torch.no_grad():
        right = sum(((network(encoded[i:i + 250]) > 0).float() == labels[i:i + 250]).sum().item()
                    for i in range(learnt, len(reviews), 250))
    return times, right / (len(reviews) - learnt)


class Block(torch.nn.Module):
    def __init__(self, width, heads, small):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)
        for layer, deviation in ((self.qkv, 0.02), (self.out, small), (self.up, 0.02), (self.down, small)):
            torch.nn.init.normal_(layer.weight, 0, deviation)
            torch.nn.init.zeros_(layer.bias)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).permute(0, 2, 1, 3).reshape(b, n, c))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(torch.nn.Module):
    def __init__(self, characters, width=384, heads=6, layers=6, context=256):
        super().__init__()
        self.characters, self.positions = torch.nn.Embedding(characters, width), torch.nn.Embedding(context, width)
        self.blocks = torch.nn.ModuleList([Block(width, heads, 0.02 / math.sqrt(2 * layers)) for _ in range(layers)])
        self.norm, self.head = torch.nn.LayerNorm(width), torch.nn.Linear(width, characters)
        for weight in (self.characters.weight, self.positions.weight, self.head.weight):
            torch.nn.init.normal_(weight, 0, 0.02)
        torch.nn.init.zeros_(self.head.bias)

    def forward(self, text):
        x = self.characters(text) + self.positions.weight[:text.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def gpt(path, count, where):
    raw = read(path)
    kinds = sorted(set(raw))
    numbers = torch.zeros(256, dtype=torch.long)
    numbers[torch.tensor(kinds)] = torch.arange(len(kinds))
    text = numbers[torch.frombuffer(bytearray(raw), dtype=torch.uint8).long()].to(where)
    learnt = len(text) // 10 * 9
    network = Gpt(len(kinds)).to(where)
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-4, weight_decay=0.01, fused=where != "cpu")
    inside = torch.arange(257, device=where)

    def loss(first, last):
        starts = torch.randint(first, last - 256, (16, 1), device=where)
        part = text[starts + inside]
        return F.cross_entropy(network(part[:, :-1]).flatten(0, 1), part[:, 1:].flatten())

    def steps():
        for _ in range(count):
            each = loss(0, learnt)
            optimizer.zero_grad(set_to_none=True)
            each.backward()
            optimizer.step()

    times = timed_epochs(1, where, steps)
    with torch.no_grad():
        held_out = sum(loss(learnt, len(text)).item() for _ in range(8)) / 8
    return times, held_out


def mnist_with_pooling(folder, epochs, where):
    return mnist(folder, epochs, where, pools=True)
