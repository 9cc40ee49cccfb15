# SPDX-License-Identifier: Apache-2.0
"""Graphs, geometry and linear algebra."""
import math

from . import field

graphs, geometry, algebra = field("graphs"), field("geometry"), field("linear algebra")


@graphs("PageRank", quick=2000, full=100000)
def page_rank(xp, given, n):
    src, dst = given.integers(n, 10 * n), given.integers(n, 10 * n)
    links = xp.clamp_min(xp.astype(xp.bincount(src, None, n), xp.float32), 1)

    def run():
        rank = xp.full((n, 1), 1 / n)
        for _ in range(10):
            share = rank / links[:, None]
            rank = 0.15 / n + 0.85 * xp.index_add(xp.zeros((n, 1)), dst, share[src])
        return xp.stack([xp.amax(rank), xp.sum(rank)], 0)

    return run


@graphs("connected components", quick=2000, full=100000, tolerance=0)
def components(xp, given, n):
    src, dst = given.integers(n, n), given.integers(n, n)

    def run():
        own = label = xp.arange(n)
        while True:
            spread = xp.scatter_min(label, dst, label[src])
            spread = xp.scatter_min(spread, src, spread[dst])
            spread = spread[spread]
            if not bool(xp.any(spread != label)):
                return xp.sum(xp.astype(label == own, xp.int64))
            label = spread

    return run


@graphs("shortest paths", quick=48, full=256)
def shortest_paths(xp, given, n):
    weight = 0.01 + given.uniform(n, n)
    start = xp.where(given.uniform(n, n) < 0.1, weight, 1e6) * (1 - xp.eye(n))

    def run():
        distance = start
        for _ in range(math.ceil(math.log2(n))):
            distance = xp.amin(distance[:, :, None] + distance, 1)
        return xp.stack([xp.mean(distance), xp.amax(distance)], 0)

    return run


@graphs("triangles", quick=128, full=2000, tolerance=1e-5)
def triangles(xp, given, n):
    half = xp.astype(given.uniform(n, n) < 0.05, xp.float32)

    def run():
        joined = xp.clip(half + half.T, 0.0, 1.0) * (1 - xp.eye(n))
        return xp.sum(joined @ joined * joined) / 6

    return run


@geometry("distances", quick=256, full=4000)
def distances(xp, given, n):
    x, y = given.normal(n, 3), given.normal(n, 3)

    def run():
        apart = x[:, None] - y
        return xp.mean(xp.sqrt(xp.sum(apart * apart, 2)))

    return run


@geometry("nearest neighbours", quick=500, full=8000, tolerance=1e-3)
def neighbours(xp, given, n):
    x = given.normal(n, 8)

    def run():
        squares = xp.sum(x * x, 1)
        apart = squares[:, None] + squares - 2 * (x @ x.T)
        return xp.mean(-xp.topk(-apart, 9)[0][:, 1:], 0)

    return run


@geometry("points in a polygon", quick=1000, full=200000, tolerance=1e-3)
def polygon(xp, given, n):
    turns = xp.arange(64, dtype=xp.float32) * (2 * math.pi / 64)
    radius = 0.5 + 0.4 * given.uniform(64)
    x1, y1 = radius * xp.cos(turns), radius * xp.sin(turns)
    x2, y2 = xp.roll(x1, 1, 0), xp.roll(y1, 1, 0)
    px, py = (2 * given.uniform(n, 1) - 1 for _ in "xy")

    def run():
        crosses = ((y1 > py) != (y2 > py)) & (px < (x2 - x1) * (py - y1) / (y2 - y1) + x1)
        inside = xp.sum(xp.astype(crosses, xp.int32), 1) % 2 == 1
        return xp.mean(xp.astype(inside, xp.float32))

    return run


@geometry("closest points, iterated", quick=256, full=4000, tolerance=1e-3)
def closest_points(xp, given, n):
    target = given.normal(n, 2)
    source = target @ xp.reshape(given.values([math.cos(0.1), math.sin(0.1), -math.sin(0.1), math.cos(0.1)]), (2, 2)) + 0.05
    source = source + 0.02 * given.normal(n, 2)

    def run():
        x = source
        for _ in range(5):
            apart = (x[:, :1] - target[:, 0]) ** 2 + (x[:, 1:] - target[:, 1]) ** 2
            found = target[xp.argmin(apart, 1)]
            middle, aim = xp.mean(x, 0), xp.mean(found, 0)
            both = (x - middle).T @ (found - aim)
            turn = xp.arctan2(both[0, 1] - both[1, 0], both[0, 0] + both[1, 1])
            c, s = xp.cos(turn), xp.sin(turn)
            x = (x - middle) @ xp.stack([xp.stack([c, s], 0), xp.stack([-s, c], 0)], 0) + aim
        return xp.mean(xp.sqrt(xp.amin(apart, 1)))

    return run


@geometry("widths of a hull", quick=1000, full=100000)
def hull(xp, given, n):
    points, normals = given.normal(n, 3), given.normal(256, 3)
    normals = normals / xp.sqrt(xp.sum(normals * normals, 1))[:, None]

    def run():
        heights = points @ normals.T
        widths = xp.amax(heights, 0) - xp.amin(heights, 0)
        return xp.stack([xp.amax(widths), xp.amin(widths)], 0)

    return run


@algebra("conjugate gradients", quick=128, full=2000, tolerance=1e-3)
def conjugate_gradients(xp, given, n):
    half, b = given.normal(n, n), given.normal(n)
    matrix = half @ half.T / n + xp.eye(n)

    def run():
        x, left = xp.zeros(n), b
        along, square = left, left @ left
        for _ in range(20):
            image = matrix @ along
            step = square / (along @ image)
            x, left = x + step * along, left - step * image
            before, square = square, left @ left
            along = left + square / before * along
        return xp.stack([xp.sum(x * b), xp.sum(x * x)], 0)

    return run


@algebra("power iteration", quick=128, full=2000, tolerance=1e-3)
def power_iteration(xp, given, n):
    matrix = given.uniform(n, n)

    def run():
        x = xp.full((n,), 1.0)
        for _ in range(20):
            y = matrix @ x
            x = y / xp.sqrt(xp.sum(y * y))
        return x @ matrix @ x

    return run


@algebra("Gram-Schmidt", quick=128, full=20000, tolerance=1e-3)
def gram_schmidt(xp, given, n):
    start = given.normal(n, 32)

    def run():
        left, norms = start, []
        for i in range(32):
            column = left[:, i]
            norms.append(xp.sqrt(xp.sum(column * column)))
            column = column / norms[-1]
            left = left - column[:, None] * (column @ left)
        return xp.stack(norms, 0)

    return run


@algebra("Jacobi iteration", quick=128, full=2000)
def jacobi(xp, given, n):
    diagonal, b = 2 + given.uniform(n), given.normal(n)
    rest = given.normal(n, n) / n * (1 - xp.eye(n))

    def run():
        x = b / diagonal
        for _ in range(20):
            x = (b - rest @ x) / diagonal
        return xp.stack([xp.sum(x * b), xp.sum(x * x)], 0)

    return run


@algebra("LU in place", quick=32, full=128, tolerance=1e-3)
def lu(xp, given, n):
    start = given.normal(n, n) + n * xp.eye(n)

    def run():
        a = xp.clone(start)
        for k in range(n - 1):
            a[k + 1:, k] /= a[k, k]
            a[k + 1:, k + 1:] -= a[k + 1:, k, None] * a[k, k + 1:]
        return xp.sum(xp.log(xp.abs(xp.sum(a * xp.eye(n), 1))))

    return run


@algebra("products with a sparse matrix", quick=2000, full=100000, tolerance=1e-3)
def sparse_products(xp, given, n):
    lengths = 1 + given.integers(15, n)
    offsets = xp.concatenate([xp.zeros(1, dtype=xp.int64), xp.cumsum(lengths, 0)], 0)
    stored = int(offsets[-1])
    columns, values = given.integers(n, stored), given.uniform(stored)

    def run():
        x = xp.ones(n)
        for _ in range(10):
            y = xp.segment_sum(values * x[columns], offsets)
            x = y / xp.sqrt(xp.sum(y * y))
        return xp.stack([xp.sum(x), xp.amax(x)], 0)

    return run
