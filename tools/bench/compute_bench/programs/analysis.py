# SPDX-License-Identifier: Apache-2.0
"""Finance, statistics and text."""
import math

from . import field

finance, statistics, text = field("finance"), field("statistics"), field("text")


@finance("Black-Scholes", quick=10000, full=4000000)
def black_scholes(xp, given, n):
    price, strike, years = 50 + 100 * given.uniform(n), 50 + 100 * given.uniform(n), 0.1 + 2 * given.uniform(n)
    rate, volatility = 0.02, 0.3

    def normal(x):
        return 0.5 * (1 + xp.erf(x * 0.70710678))

    def run():
        spread = volatility * xp.sqrt(years)
        d = (xp.log(price / strike) + (rate + 0.5 * volatility ** 2) * years) / spread
        due = strike * xp.exp(-rate * years)
        call = price * normal(d) - due * normal(d - spread)
        return xp.stack([xp.mean(call), xp.mean(call - price + due)], 0)

    return run


@finance("Asian option by Monte Carlo", quick=50000, full=1000000, tolerance=0.05)
def asian_option(xp, given, n):
    # Each library draws other numbers.
    steps, rate, volatility = 10, 0.02, 0.3
    drift, width = (rate - 0.5 * volatility ** 2) / steps, volatility / steps ** 0.5

    def run():
        price, total = xp.full((n,), 100.0), xp.zeros(n)
        for _ in range(steps):
            price = price * xp.exp(drift + width * xp.random_normal((n,)))
            total = total + price
        return xp.mean(xp.clamp_min(total / steps - 100, 0.0)) * math.exp(-rate)

    return run


@finance("portfolio of least variance", quick=64, full=2000, tolerance=1e-3)
def portfolio(xp, given, n):
    days = 2 * n
    returns = 0.01 * (given.normal(days, n) + given.normal(days, 1))

    def run():
        centred = returns - xp.mean(returns, 0)
        covariance = centred.T @ centred / (days - 1)
        weights = xp.full((n,), 1 / n)
        for _ in range(20):
            weights = xp.clamp_min(weights - 20.0 / n * (covariance @ weights), 0.0)
            weights = weights / xp.sum(weights)
        return xp.sqrt(weights @ covariance @ weights)

    return run


@finance("American options on a tree", quick=100, full=10000)
def american_options(xp, given, n):
    steps, rate, volatility = 64, 0.02, 0.3
    strike = 80 + 40 * given.uniform(n, 1)
    up = math.exp(volatility / steps ** 0.5)
    chance, discount = (math.exp(rate / steps) - 1 / up) / (up - 1 / up), math.exp(-rate / steps)
    powers = 100 * xp.exp(math.log(up) * (2 * xp.arange(steps + 1, dtype=xp.float32) - steps))

    def run():
        value = xp.clamp_min(strike - powers, 0.0)
        for step in range(steps - 1, -1, -1):
            held = discount * (chance * value[:, 1:] + (1 - chance) * value[:, :-1])
            value = xp.maximum(held, strike - up ** (steps - step) * powers[:step + 1])
        return xp.mean(value)

    return run


@statistics("k-means", quick=2000, full=200000, tolerance=1e-3)
def k_means(xp, given, n):
    points, k = given.normal(n, 16), 64

    def run():
        centres = points[:k]
        squares = xp.sum(points * points, 1)[:, None]
        for _ in range(5):
            apart = squares - 2 * (points @ centres.T) + xp.sum(centres * centres, 1)
            nearest = xp.argmin(apart, 1)
            counts = xp.clamp_min(xp.astype(xp.bincount(nearest, None, k), xp.float32), 1)
            centres = xp.index_add(xp.zeros((k, 16)), nearest, points) / counts[:, None]
        return xp.mean(xp.amin(apart, 1))

    return run


@statistics("bootstrap of a mean", quick=2000, full=100000)
def bootstrap(xp, given, n):
    x, drawn = given.normal(n), given.integers(n, 100, n)

    def run():
        means = xp.sort(xp.mean(x[drawn], 1), 0)
        return xp.stack([means[2], means[97]], 0)

    return run


@statistics("logistic regression", quick=1000, full=100000)
def logistic_regression(xp, given, n):
    x = given.normal(n, 64)
    y = xp.astype(x @ given.normal(64) + given.normal(n) > 0, xp.float32)

    def run():
        weights = xp.zeros(64)
        for _ in range(20):
            chance = 1 / (1 + xp.exp(-(x @ weights)))
            weights = weights - (chance - y) @ x / n
        return weights

    return run


@statistics("kernel density", quick=500, full=20000)
def kernel_density(xp, given, n):
    x, places = given.normal(n), xp.linspace(-3.0, 3.0, 512)[:, None]

    def run():
        return xp.mean(xp.exp(-0.5 * ((places - x) / 0.2) ** 2), 1) / (0.2 * math.sqrt(2 * math.pi))

    return run


@statistics("rank correlation", quick=5000, full=1000000)
def rank_correlation(xp, given, n):
    x = given.normal(n)
    y = x + given.normal(n)

    def run():
        a, b = (xp.astype(xp.argsort(xp.argsort(one, 0), 0), xp.float32) / n - 0.5 for one in (x, y))
        return xp.mean(a * b) / xp.sqrt(xp.mean(a * a) * xp.mean(b * b))

    return run


@text("weighted counts of words", quick=100, full=2000)
def word_counts(xp, given, n):
    words, length = 2000, 300
    chosen = given.uniform(n, length)
    documents = xp.astype(chosen * chosen * chosen * words, xp.int64)

    def run():
        at = xp.arange(n)[:, None] * words + documents
        counts = xp.astype(xp.reshape(xp.bincount(xp.reshape(at, (-1,)), None, n * words), (n, words)), xp.float32)
        known = xp.sum(xp.astype(counts > 0, xp.float32), 0)
        weighted = counts * xp.log((1 + n) / (1 + known))
        weighted = weighted / xp.sqrt(xp.sum(weighted * weighted, 1))[:, None]
        return xp.topk(weighted @ weighted[0], 10)[0]

    return run


@text("hashed n-grams", quick=10000, full=4000000, tolerance=0)
def ngrams(xp, given, n):
    chosen, kinds = given.uniform(n), 1 << 16
    letters = xp.astype(chosen * chosen * 26, xp.int64)

    def run():
        hashes = letters[:-3]
        for i in range(1, 4):
            hashes = (hashes * 31 + letters[i:n - 3 + i]) % kinds
        return xp.topk(xp.bincount(hashes, None, kinds), 10)[0]

    return run


@text("nearest words by embedding", quick=2000, full=50000)
def nearest_words(xp, given, n):
    table = given.normal(n, 64)
    table = table / xp.sqrt(xp.sum(table * table, 1))[:, None]
    asked = given.integers(n, 256)

    def run():
        return xp.mean(xp.topk(table[asked] @ table.T, 10)[0], 0)

    return run


@text("edit distances", quick=200, full=20000, tolerance=0)
def edit_distances(xp, given, n):
    length = 24
    words, pattern = given.integers(4, n, length), given.integers(4, length)
    places = xp.arange(length + 1, dtype=xp.float32)

    def run():
        row = xp.broadcast_to(places, (n, length + 1))
        for i in range(length):
            replaced = row[:, :-1] + xp.astype(words != pattern[i], xp.float32)
            best = xp.concatenate([row[:, :1] + 1, xp.minimum(replaced, row[:, 1:] + 1)], 1)
            row = xp.cummin(best - places, 1) + places
        return xp.stack([xp.mean(row[:, -1]), xp.amin(row[:, -1])], 0)

    return run
