# SPDX-License-Identifier: Apache-2.0
"""Signals and images."""
import math

from . import field

signal, image = field("signal"), field("image")


@signal("FIR filter", quick=10000, full=4000000)
def fir(xp, given, n):
    x, taps = given.normal(n), [math.exp(-0.02 * (i - 15) ** 2) for i in range(31)]

    def run():
        y = taps[0] * x[:n - 30]
        for i in range(1, 31):
            y = y + taps[i] * x[i:n - 30 + i]
        return xp.mean(y * y)

    return run


@signal("moving mean of float64", quick=10000, full=4000000)
def moving_mean(xp, given, n):
    x, width = xp.astype(given.normal(n), xp.float64), 100

    def run():
        total = xp.cumsum(x, 0)
        means = (total[width:] - total[:-width]) / width
        return xp.stack([xp.amax(means), xp.amin(means)], 0)

    return run


@signal("spectra by products", quick=20000, full=2000000)
def spectra(xp, given, n):
    size, hop = 512, 128
    x = given.normal(n)
    places = xp.arange(size, dtype=xp.float32)
    window = 0.5 - 0.5 * xp.cos(2 * math.pi / size * places)
    turns = places[:, None] * xp.arange(size // 2 + 1, dtype=xp.float32) % size * (2 * math.pi / size)
    real, imaginary = xp.cos(turns), xp.sin(turns)
    frames = xp.arange(0, n - size, hop)[:, None] + xp.arange(size)

    def run():
        pieces = x[frames] * window
        power = (pieces @ real) ** 2 + (pieces @ imaginary) ** 2
        return xp.mean(power, 0)

    return run


@signal("median filter", quick=64, full=1024)
def median_filter(xp, given, n):
    x = given.uniform(n, n)

    def run():
        windows = xp.stack([x[i:n - 2 + i, j:n - 2 + j] for i in range(3) for j in range(3)], 0)
        middle = xp.sort(windows, 0)[4]
        return xp.mean(middle * middle)

    return run


@signal("resampling", quick=10000, full=4000000)
def resampling(xp, given, n):
    x = given.normal(n)

    def run():
        places = 73 * xp.arange((n - 2) * 100 // 73)
        i, part = places // 100, xp.astype(places % 100, xp.float32) / 100
        y = x[i] * (1 - part) + x[i + 1] * part
        return xp.mean(y * y)

    return run


@image("transforms of 8x8 blocks", quick=128, full=1024, tolerance=1e-3)
def blocks(xp, given, n):
    # Coefficients halfway between two steps are rounded either way.
    x = given.uniform(n, n) * 255
    turns = (2 * xp.arange(8, dtype=xp.float32) + 1) * xp.arange(8, dtype=xp.float32)[:, None] * (math.pi / 16)
    basis = xp.cos(turns) * given.values([8 ** -0.5] + [0.5] * 7)[:, None]
    step = 10 + 4 * xp.arange(8, dtype=xp.float32) + 4 * xp.arange(8, dtype=xp.float32)[:, None]

    def run():
        tiles = xp.permute(xp.reshape(x, (n // 8, 8, n // 8, 8)), (0, 2, 1, 3))
        coded = xp.round(basis @ tiles @ basis.T / step)
        back = basis.T @ (coded * step) @ basis
        return xp.stack([xp.mean((back - tiles) ** 2), xp.mean(xp.abs(coded))], 0)

    return run


@image("bilinear rotation", quick=128, full=1024, tolerance=1e-3)
def rotation(xp, given, n):
    x, places = given.uniform(n, n), xp.arange(n, dtype=xp.float32) - n / 2
    c, s = math.cos(0.3), math.sin(0.3)

    def run():
        down = xp.clip(c * places[:, None] - s * places + n / 2, 0.0, n - 1.001)
        right = xp.clip(s * places[:, None] + c * places + n / 2, 0.0, n - 1.001)
        i, j = xp.astype(down, xp.int64), xp.astype(right, xp.int64)
        a, b = down - xp.floor(down), right - xp.floor(right)
        y = (1 - a) * ((1 - b) * x[i, j] + b * x[i, j + 1]) + a * ((1 - b) * x[i + 1, j] + b * x[i + 1, j + 1])
        return xp.stack([xp.mean(y), xp.mean(y * y)], 0)

    return run


@image("Sobel edges", quick=128, full=2048, tolerance=1e-3)
def sobel(xp, given, n):
    x = given.uniform(n, n)

    def run():
        rows = x[:-2] + 2 * x[1:-1] + x[2:]
        columns = x[:, :-2] + 2 * x[:, 1:-1] + x[:, 2:]
        steep = xp.sqrt((rows[:, 2:] - rows[:, :-2]) ** 2 + (columns[2:] - columns[:-2]) ** 2)
        return xp.mean(xp.astype(steep > 1.5 * xp.mean(steep), xp.float32))

    return run


@image("histogram equalisation", quick=128, full=2048, tolerance=1e-3)
def equalisation(xp, given, n):
    x = given.uniform(n, n)
    x = x * x

    def run():
        levels = xp.astype(x * 255, xp.int64)
        counts = xp.bincount(xp.reshape(levels, (-1,)), None, 256)
        share = xp.astype(xp.cumsum(counts, 0), xp.float32) / (n * n)
        y = share[levels]
        return xp.stack([xp.mean(y), xp.mean(y * y)], 0)

    return run


@image("colours", quick=128, full=1024)
def colours(xp, given, n):
    x = given.uniform(n, n, 3)
    matrix = xp.reshape(given.values([0.299, 0.587, 0.114, -0.169, -0.331, 0.5, 0.5, -0.419, -0.081]), (3, 3)).T
    scale = given.values([1.0, 1.2, 1.2])

    def run():
        y = x ** 2.2 @ matrix * scale
        return xp.mean(xp.abs(y), (0, 1))

    return run
