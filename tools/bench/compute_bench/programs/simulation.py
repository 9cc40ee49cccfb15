# SPDX-License-Identifier: Apache-2.0
"""Simulations and games."""
from . import field

simulation, games = field("simulation"), field("games")


def around(xp, x):
    """The sum of the four neighbours on a torus."""
    return xp.roll(x, 1, 0) + xp.roll(x, -1, 0) + xp.roll(x, 1, 1) + xp.roll(x, -1, 1)


def neighbours(xp, x):
    """The sum of the eight neighbours on a torus."""
    rows = xp.roll(x, 1, 0) + x + xp.roll(x, -1, 0)
    return xp.roll(rows, 1, 1) + rows + xp.roll(rows, -1, 1) - x


@simulation("n-body", quick=128, full=2048, tolerance=1e-3)
def n_body(xp, given, n):
    start, mass = given.normal(n, 3), given.uniform(n)

    def run():
        x, v = start, xp.zeros((n, 3))
        for _ in range(5):
            apart = x[None] - x[:, None]
            pull = (xp.sum(apart * apart, 2) + 0.1) ** -1.5 * mass
            v = v + 0.01 * xp.sum(apart * pull[:, :, None], 1)
            x = x + 0.01 * v
        return xp.sum(mass[:, None] * v * v)

    return run


@simulation("heat equation", quick=128, full=1024)
def heat(xp, given, n):
    start = given.uniform(n, n)

    def run():
        u = xp.clone(start)
        for _ in range(20):
            inner = u[1:-1, 1:-1]
            u[1:-1, 1:-1] = inner + 0.2 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * inner)
        return xp.mean(u * u)

    return run


@simulation("wave equation", quick=128, full=1024)
def wave(xp, given, n):
    start = given.normal(n, n)

    def run():
        before = now = start
        for _ in range(20):
            before, now = now, 2 * now - before + 0.25 * (around(xp, now) - 4 * now)
        return xp.mean(now * now)

    return run


@simulation("lattice Boltzmann", quick=48, full=384)
def lattice_boltzmann(xp, given, n):
    moves = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]
    weights = given.values([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)[:, None, None]
    along, across = (given.values([float(move[i]) for move in moves])[:, None, None] for i in (0, 1))
    start = weights * (1 + 0.1 * given.uniform(9, n, n))

    def run():
        f = start
        for _ in range(5):
            f = xp.stack([xp.roll(f[i], move, (0, 1)) for i, move in enumerate(moves)], 0)
            density = xp.sum(f, 0)
            u, v = xp.sum(f * along, 0) / density, xp.sum(f * across, 0) / density
            speed = along * u + across * v
            f = f + 0.6 * (density * weights * (1 + 3 * speed + 4.5 * speed * speed - 1.5 * (u * u + v * v)) - f)
        return xp.mean(f * f, (1, 2))

    return run


@simulation("Ising model", quick=64, full=1024, tolerance=1e-2)
def ising(xp, given, n):
    # Where two libraries round exp differently, a spin can differ.
    steps = 5
    chances, spins = given.uniform(steps, 2, n, n), xp.sign(given.normal(n, n))
    places = xp.arange(n)
    black = (places[:, None] + places) % 2 == 0

    def run():
        s = spins
        for step in range(steps):
            for i, colour in enumerate((black, ~black)):
                s = xp.where(colour & (chances[step, i] < xp.exp(-0.8 * s * around(xp, s))), -s, s)
        return xp.mean(s * around(xp, s))

    return run


@simulation("predators and prey, Runge-Kutta", quick=1000, full=1000000)
def predators(xp, given, n):
    prey, hunters = 1 + given.uniform(n), 1 + given.uniform(n)

    def slope(x, y):
        return x * (1.1 - 0.4 * y), y * (0.1 * x - 0.4)

    def run():
        x, y, step = prey, hunters, 0.05
        for _ in range(10):
            a, b = slope(x, y)
            c, d = slope(x + step / 2 * a, y + step / 2 * b)
            e, f = slope(x + step / 2 * c, y + step / 2 * d)
            g, h = slope(x + step * e, y + step * f)
            x, y = x + step / 6 * (a + 2 * c + 2 * e + g), y + step / 6 * (b + 2 * d + 2 * f + h)
        return xp.stack([xp.mean(x), xp.mean(y)], 0)

    return run


@games("life", quick=128, full=1024, tolerance=0)
def life(xp, given, n):
    start = xp.astype(given.integers(2, n, n), xp.int32)

    def run():
        cells = start
        for _ in range(10):
            count = neighbours(xp, cells)
            cells = xp.astype((count == 3) | ((count == 2) & (cells == 1)), xp.int32)
        return xp.sum(cells)

    return run


@games("Mandelbrot set", quick=64, full=1024, tolerance=1e-3)
def mandelbrot(xp, given, n):
    # Points at the edge can escape an iteration earlier.
    real, imaginary = xp.linspace(-2.0, 0.5, n), xp.linspace(-1.25, 1.25, n)[:, None]

    def run():
        x, y, count = xp.zeros((n, n)), xp.zeros((n, n)), xp.zeros((n, n))
        for _ in range(20):
            inside = x * x + y * y < 4
            x, y = xp.where(inside, x * x - y * y + real, x), xp.where(inside, 2 * x * y + imaginary, y)
            count = count + xp.astype(inside, xp.float32)
        return xp.mean(count)

    return run


@games("rays and spheres", quick=64, full=512, tolerance=1e-3)
def rays(xp, given, n):
    centres = [(-1.5 + 0.4 * i, 0.5 * (-1) ** i, 4.0 + 0.3 * i) for i in range(8)]
    light = (0.57735, 0.57735, -0.57735)
    places = xp.linspace(-1.0, 1.0, n)

    def run():
        x, y = xp.broadcast_to(places, (n, n)), xp.broadcast_to(places[:, None], (n, n))
        length = xp.sqrt(x * x + y * y + 1)
        dx, dy, dz = x / length, y / length, 1 / length
        nearest, shade = xp.full((n, n), 1e9), xp.zeros((n, n))
        for a, b, c in centres:
            along = dx * a + dy * b + dz * c
            inside = along * along - (a * a + b * b + c * c) + 0.36
            at = along - xp.sqrt(xp.clamp_min(inside, 0.0))
            hit = (inside > 0) & (at < nearest)
            bright = ((dx * at - a) * light[0] + (dy * at - b) * light[1] + (dz * at - c) * light[2]) / 0.6
            nearest, shade = xp.where(hit, at, nearest), xp.where(hit, xp.clamp_min(bright, 0.1), shade)
        return xp.mean(shade)

    return run


@games("minesweeper", quick=64, full=1024, tolerance=0)
def minesweeper(xp, given, n):
    mines, opened = given.uniform(n, n) < 0.12, given.uniform(n, n) < 0.01

    def run():
        free = (neighbours(xp, xp.astype(mines, xp.int32)) == 0) & ~mines
        seen = opened & ~mines
        for _ in range(10):
            seen = seen | (neighbours(xp, xp.astype(seen & free, xp.int32)) > 0)
        return xp.sum(xp.astype(seen, xp.int32))

    return run


@games("distances in a maze", quick=48, full=512, tolerance=0)
def maze(xp, given, n):
    wall = given.uniform(n, n) < 0.3
    far = 1e6

    def run():
        distance = xp.full((n, n), far)
        distance[n // 2, n // 2] = 0.0
        for _ in range(40):
            edge = xp.full((1, n), far)
            by_row = xp.minimum(xp.concatenate([edge, distance[:-1]], 0), xp.concatenate([distance[1:], edge], 0))
            by_column = xp.minimum(xp.concatenate([edge.T, distance[:, :-1]], 1), xp.concatenate([distance[:, 1:], edge.T], 1))
            distance = xp.where(wall, far, xp.minimum(distance, xp.minimum(by_row, by_column) + 1))
        return xp.sum(xp.where(distance < far, distance, 0.0))

    return run


@games("rule 110", quick=1000, full=1000000, tolerance=0)
def rule_110(xp, given, n):
    start = given.integers(2, n)
    rule = xp.astype(given.values([0.0, 1, 1, 1, 0, 1, 1, 0]), xp.int64)

    def run():
        cells = start
        for _ in range(10):
            cells = rule[4 * xp.roll(cells, 1, 0) + 2 * cells + xp.roll(cells, -1, 0)]
        return xp.sum(cells)

    return run
