#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes derivatives.inc: the derivatives of elementwise functions at points where they are delicate, by formulas in
50 digits (mpmath), and by the conventions of docs/gradients.md where there is no derivative. Run by hand:
derivatives.py > derivatives.inc"""

import mpmath as mp

mp.mp.dps = 50
INF, NAN = mp.inf, mp.nan
TINY, SMALL, LARGE = 2.0 ** -140, 2.0 ** -100, 2.0 ** 100  # float32 has TINY as a subnormal number

ANYWHERE = [0.0, -0.0, TINY, -TINY, SMALL, -SMALL, 2.0 ** -12, -(2.0 ** -12), 0.25, -0.25, 0.5, -0.5, 1.0, -1.0, 1.5, -2.5, 3.0, -3.0, 4.75, -7.25,
            10.5, -10.5, 20.0, -20.0, 60.0, -60.0, LARGE, -LARGE, INF, -INF, NAN]
ABOVE_0 = [0.0, 2.0 ** -126, SMALL, 2.0 ** -12, 0.25, 0.5, 1.0, 1.5, 10.5, 60.0, LARGE, 1.5 * 2.0 ** 127, INF, NAN]
UNIT = [0.0, -0.0, TINY, 2.0 ** -12, 0.25, -0.25, 0.5, -0.5, 0.75, 1 - 2.0 ** -20, -(1 - 2.0 ** -20), 1.0, -1.0, NAN]


def sigmoid(x):
    return 1 / (1 + mp.exp(-x)) if x > 0 else mp.exp(x) / (1 + mp.exp(x))


def bell(x):
    """The derivative of sigmoid."""
    return mp.mpf(0) if mp.isinf(x) else sigmoid(x) * sigmoid(-x)


def phi(x):
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def limited(function, below, above):
    """A function with limits at the infinities."""
    return lambda x: mp.mpf(below) if x == -INF else mp.mpf(above) if x == INF else function(x)


def sinc(x):
    t = mp.pi * x
    if abs(t) < mp.mpf(10) ** -10:
        return -mp.pi * t / 3
    return mp.pi * (t * mp.cospi(x) - mp.sinpi(x)) / (t * t)


def gelu_tanh(x):
    if abs(x) > 40:
        return mp.mpf(x > 0)
    a, b = mp.sqrt(2 / mp.pi), mp.mpf("0.044715")
    inner = a * (x + b * x ** 3)
    mp.mp.dps, dps = 2000, mp.mp.dps
    t = mp.tanh(inner)
    found = (1 + t) / 2 + x * (1 - t * t) * a * (1 + 3 * b * x * x) / 2
    mp.mp.dps = dps
    return +found


def mish(x):
    if abs(x) > 2000:
        return mp.mpf(x > 0)
    s = mp.log1p(mp.exp(x))
    return mp.tanh(s) + x * mp.sech(s) ** 2 * sigmoid(x)


def in_domain(function, low, high):
    return lambda x: function(x) if low <= x <= high else NAN


LN2, LN10 = mp.log(2), mp.log(10)
SELU = mp.mpf("1.0507009873554804934"), mp.mpf("1.6732632423543772848")

# The derivative of each function of one number, and the points where it is looked at.
ONE = {
    "abs": (mp.sign, ANYWHERE),
    "acos": (lambda x: -INF if abs(x) == 1 else -1 / mp.sqrt(1 - x * x), UNIT),
    "acosh": (limited(lambda x: INF if x == 1 else 1 / mp.sqrt(x * x - 1), 0, 0),
              [1.0, 1 + 2.0 ** -20, 1.5, 3.0, LARGE, INF]),
    "asin": (lambda x: INF if abs(x) == 1 else 1 / mp.sqrt(1 - x * x), UNIT),
    "asinh": (limited(lambda x: 1 / mp.sqrt(1 + x * x), 0, 0), ANYWHERE),
    "atan": (limited(lambda x: 1 / (1 + x * x), 0, 0), ANYWHERE),
    "atanh": (lambda x: INF if abs(x) == 1 else 1 / ((1 - x) * (1 + x)), UNIT),
    "cbrt": (limited(lambda x: INF if x == 0 else 1 / (3 * mp.cbrt(abs(x)) ** 2), 0, 0), ANYWHERE),
    "conj": (lambda x: mp.mpf(1), ANYWHERE[:-1]),
    "cos": (lambda x: -mp.sin(x), ANYWHERE[:-4]),
    "cosh": (limited(mp.sinh, -INF, INF), ANYWHERE[:-5]),
    "deg2rad": (lambda x: mp.pi / 180, ANYWHERE[:-1]),
    "digamma": (limited(lambda x: INF if x == 0 else mp.psi(1, x), NAN, 0),
                [0.0, SMALL, 0.25, 0.5, 1.0, 1.5, 2.0, 10.5, LARGE, INF, -0.5, -1.25, -2.5]),
    "erf": (limited(lambda x: 2 / mp.sqrt(mp.pi) * mp.exp(-x * x), 0, 0), ANYWHERE),
    "erfc": (limited(lambda x: -2 / mp.sqrt(mp.pi) * mp.exp(-x * x), 0, 0), ANYWHERE),
    "erfinv": (lambda x: INF if abs(x) == 1 else mp.sqrt(mp.pi) / 2 * mp.exp(mp.erfinv(x) ** 2), UNIT),
    "exp": (limited(mp.exp, 0, INF), ANYWHERE[:-5] + [-INF, INF]),
    "exp2(x)": (limited(lambda x: LN2 * mp.mpf(2) ** x, 0, INF), ANYWHERE[:-5] + [-INF, INF]),
    "expm1": (limited(mp.exp, 0, INF), ANYWHERE[:-5] + [-INF, INF]),
    "gelu": (limited(lambda x: (mp.erfc(-x / mp.sqrt(2)) / 2 + x * phi(x)) if abs(x) < 1e6 else mp.mpf(x > 0), 0, 1), ANYWHERE),
    "gelu_tanh": (limited(gelu_tanh, 0, 1), ANYWHERE),
    "hard_sigmoid": (lambda x: mp.mpf(1) / 6 if -3 < x < 3 else mp.mpf(0), ANYWHERE[:-1]),
    "hard_swish": (lambda x: mp.mpf(0) if x <= -3 else mp.mpf(1) if x >= 3 else x / 3 + mp.mpf(1) / 2, ANYWHERE[:-1]),
    "lgamma": (limited(lambda x: -INF if x == 0 else mp.digamma(x), NAN, INF),
               [0.0, SMALL, 0.25, 0.5, 1.0, 1.5, 2.0, 10.5, LARGE, INF, -0.5, -1.25, -2.5]),
    "log": (limited(lambda x: INF if x == 0 else 1 / x, 0, 0), ABOVE_0),
    "log10": (limited(lambda x: INF if x == 0 else 1 / (x * LN10), 0, 0), ABOVE_0),
    "log1p": (limited(lambda x: INF if x == -1 else 1 / (1 + x), 0, 0), ABOVE_0 + [-0.5, -(1 - 2.0 ** -20), -1.0]),
    "log2": (limited(lambda x: INF if x == 0 else 1 / (x * LN2), 0, 0), ABOVE_0),
    "log_sigmoid": (limited(lambda x: sigmoid(-x), 1, 0), ANYWHERE),
    "logit": (in_domain(lambda x: INF if x in (0, 1) else 1 / (x * (1 - x)), 0, 1),
              [0.0, TINY * 2 ** 16, SMALL, 2.0 ** -27, 2.0 ** -12, 0.125, 0.25, 0.5, 0.75, 0.875, 1 - 2.0 ** -20, 1.0, NAN]),
    "mish": (limited(mish, 0, 1), ANYWHERE),
    "negative": (lambda x: mp.mpf(-1), ANYWHERE[:-1]),
    "positive": (lambda x: mp.mpf(1), ANYWHERE[:-1]),
    "rad2deg": (lambda x: 180 / mp.pi, ANYWHERE[:-1]),
    "reciprocal": (limited(lambda x: -INF if x == 0 else -1 / (x * x), 0, 0), ANYWHERE),
    "relu": (lambda x: mp.mpf(0 if x <= 0 else 1), ANYWHERE),
    "rsqrt": (limited(lambda x: -INF if x == 0 else -1 / (2 * x * mp.sqrt(x)), 0, 0), ABOVE_0),
    "selu": (limited(lambda x: SELU[0] * (SELU[1] * mp.exp(x) if x <= 0 else 1), 0, SELU[0]), ANYWHERE),
    "sigmoid": (bell, ANYWHERE),
    "silu": (limited(lambda x: sigmoid(x) * (1 + x * sigmoid(-x)), 0, 1), ANYWHERE),
    "sin": (mp.cos, ANYWHERE[:-4]),
    "sinc": (limited(sinc, 0, 0), ANYWHERE[:-5] + [-INF, INF, NAN]),
    "sinh": (limited(mp.cosh, INF, INF), ANYWHERE[:-5]),
    "softplus": (limited(sigmoid, 0, 1), ANYWHERE),
    "softsign": (limited(lambda x: 1 / (1 + abs(x)) ** 2, 0, 0), ANYWHERE),
    "sqrt": (limited(lambda x: INF if x == 0 else 1 / (2 * mp.sqrt(x)), 0, 0), ABOVE_0),
    "square": (lambda x: 2 * x, ANYWHERE),
    "tan": (lambda x: 1 / mp.cos(x) ** 2, ANYWHERE[:-5]),
    "tanh": (limited(lambda x: mp.sech(x) ** 2, 0, 0), ANYWHERE),
    # Points where the terms of the rules hardly cancel.
    "betainc(2.5, 1.5, x)": (lambda x: x ** 1.5 * mp.sqrt(1 - x) / mp.beta(2.5, 1.5), [0.0, 0.25, 0.5, 0.75, 1.0]),
    "erfcinv": (lambda x: -mp.sqrt(mp.pi) / 2 * mp.exp(mp.erfinv(1 - x) ** 2), [2.0 ** -12, 0.25, 0.5, 1.0, 1.5]),
    "gammainc(2.5, x)": (lambda x: x ** 1.5 * mp.exp(-x) / mp.gamma(2.5), [0.0, 0.25, 0.5, 1.0, 3.0, 10.5, 20.0]),
    "gammaincc(0.5, x)": (lambda x: -mp.exp(-x) / mp.sqrt(x) / mp.gamma(0.5), [0.25, 0.5, 1.0, 3.0, 10.5, 20.0]),
    "i0": (lambda x: mp.besseli(1, x), [0.0, 0.5, -0.5, 2.5, -7.25, 10.5, -20.0, 60.0]),
    "i0e": (lambda x: mp.exp(-abs(x)) * (mp.besseli(1, x) - mp.sign(x) * mp.besseli(0, x)), [0.0, 0.25, -0.25, 0.5, 1.5, -2.5]),
    "i1": (lambda x: (mp.besseli(0, x) + mp.besseli(2, x)) / 2, [0.0, 0.5, -0.5, 2.5, -7.25, 10.5, -20.0, 60.0]),
    "i1e": (lambda x: mp.exp(-abs(x)) * ((mp.besseli(0, x) + mp.besseli(2, x)) / 2 - mp.sign(x) * mp.besseli(1, x)), [0.0, 0.25, -0.25, 0.5]),
    "j0": (lambda x: -mp.besselj(1, x), [0.0, 0.5, -0.5, 1.5, -2.5, 4.75, 20.0]),
    "j1": (lambda x: (mp.besselj(0, x) - mp.besselj(2, x)) / 2, [0.0, 0.5, -0.5, 1.0, 3.0, -3.0]),
    "polygamma(2, x)": (lambda x: mp.psi(3, x), [0.25, 0.5, 1.0, 1.5, 10.5, 60.0]),
    "y0": (lambda x: -mp.bessely(1, x), [0.25, 0.5, 1.5, 3.0, 4.75, 20.0]),
    "y1": (lambda x: (mp.bessely(0, x) - mp.bessely(2, x)) / 2, [0.25, 0.5, 1.5, 3.0, 4.75]),
}


def half(x, y, chosen):
    """The share of the first operand of min or max."""
    return mp.mpf("0.5") if x == y else mp.mpf(1 if chosen or mp.isnan(x) or mp.isnan(y) else 0)


def power(x, y):
    by_base = mp.mpf(0) if y == 0 else INF if x == 0 and 0 < y < 1 else mp.mpf(1) if y == 1 else mp.mpf(0) if x == 0 and y > 1 else y * x ** (y - 1)
    by_exponent = mp.mpf(0) if x == 0 and y >= 0 else NAN if x < 0 else x ** y * mp.log(x)
    return by_base, by_exponent


def clip(x, y, z):
    first, limit = half(x, y, x > y), max(x, y)
    outer = half(limit, z, limit < z)
    return outer * first, outer * half(y, x, y > x), half(z, limit, z < limit)


def hypot(x, y):
    r = mp.hypot(x, y)
    return (x / r, y / r) if r else (mp.mpf(0), mp.mpf(0))


def atan2(x, y):
    r = mp.hypot(x, y)
    return (y / r ** 2, -x / r ** 2) if r else (mp.mpf(0), mp.mpf(0))


def logaddexp(x, y):
    if x == y:
        return mp.mpf("0.5"), mp.mpf("0.5")
    return tuple(mp.mpf(1 if d > 0 else 0) if mp.isinf(d) else sigmoid(d) for d in (x - y, y - x))


PAIRS = [(0.5, 0.25), (-0.5, 0.25), (0.0, 1.0), (1.0, 0.0), (0.0, 0.0), (0.0, -0.0), (1.0, 1.0), (-3.0, -3.0), (2.0, -2.0)]
# The derivatives of each function of several numbers by each of them.
SEVERAL = {
    "where(x > 0, log(x), y / x)": (lambda x, y: (1 / x, 0) if x > 0 else (-y / x ** 2, 1 / x) if x else (NAN, INF),
                                    [(2.0, 3.0), (-2.0, 3.0), (SMALL, 0.0)]),
    "where(x > 0, where(y > 0, log(x) * y, sqrt(y)), x * y)": (
        lambda x, y: (y / x, mp.log(x)) if x > 0 and y > 0 else (0, INF if y == 0 else NAN) if x > 0 else (y, x),
        [(2.0, 3.0), (0.0, 3.0), (-2.0, -3.0), (2.0, 0.0)]),
    "add": (lambda x, y: (1, 1), PAIRS),
    "subtract": (lambda x, y: (1, -1), PAIRS),
    "multiply": (lambda x, y: (y, x), PAIRS),
    "divide": (lambda x, y: (1 / mp.mpf(y), -x / mp.mpf(y) ** 2), [(0.5, 0.25), (-3.0, 2.0), (0.0, 1.0), (1.0, SMALL), (SMALL, SMALL), (1.0, INF)]),
    "squared_difference": (lambda x, y: (2 * (x - y), 2 * (y - x)), PAIRS),
    "maximum": (lambda x, y: (half(x, y, x > y), half(y, x, y > x)), PAIRS + [(INF, INF), (NAN, 1.0), (1.0, NAN), (-INF, INF)]),
    "minimum": (lambda x, y: (half(x, y, x < y), half(y, x, y < x)), PAIRS + [(INF, INF), (NAN, 1.0), (1.0, NAN), (-INF, INF)]),
    "pow": (power, [(0.5, 1.5), (2.0, 3.0), (0.0, 0.0), (0.0, 1.0), (0.0, 2.0), (0.0, 0.5), (1.0, 0.0), (-2.0, 3.0), (-2.0, 2.0), (0.25, -2.0)]),
    "atan2": (atan2, [(0.5, 0.25), (0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (0.0, -1.0), (SMALL, SMALL), (2.0 ** 60, 2.0 ** 60), (-3.0, 4.0)]),
    "hypot": (hypot, [(0.5, 0.25), (0.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (SMALL, SMALL), (LARGE, LARGE), (3.0, -4.0)]),
    "logaddexp": (logaddexp, [(0.5, 0.25), (0.0, 0.0), (3.0, -60.0), (-60.0, 3.0), (-INF, -INF), (INF, 0.0), (-INF, 0.0), (LARGE, 1.0)]),
    "copysign": (lambda x, y: (mp.sign(x) * (1 if y > 0 else -1), 0), [(0.5, 1.0), (0.5, -1.0), (-2.0, 3.0), (-2.0, -3.0), (0.0, 1.0), (0.0, -1.0)]),
    "nextafter": (lambda x, y: (1, 0), [(0.5, 1.0), (1.0, -1.0)]),
    "fmod": (lambda x, y: (1, -int(x / y)), [(0.0, 2.0), (-0.0, 2.0), (2.0, 2.0), (-2.0, 2.0), (5.0, 2.0), (-5.0, 2.0), (5.0, -2.0), (0.5, 2.0)]),
    "remainder": (lambda x, y: (1, -mp.floor(mp.mpf(x) / y)), [(0.0, 2.0), (2.0, 2.0), (-2.0, 2.0), (5.0, 2.0), (-5.0, 2.0), (5.0, -2.0), (0.5, 2.0)]),
    "heaviside": (lambda x, y: (0, 1 if x == 0 else 0), [(0.0, 0.5), (-0.0, 0.5), (1.0, 0.5), (-1.0, 0.5)]),
    "xlogy": (lambda x, y: (mp.mpf(0) if x == 0 and (y <= 0 or mp.isinf(y)) else mp.log(y), mp.mpf(0) if x == 0 else x / mp.mpf(y)),
              [(0.5, 0.25), (0.0, 2.5), (0.0, 0.0), (0.0, -1.0), (0.0, INF), (1.0, 1.0), (-2.0, SMALL)]),
    "elu": (lambda x, y: (mp.mpf(1) if x > 0 else y * mp.exp(x), mp.mpf(0) if x > 0 else mp.expm1(x)),
            [(0.5, 2.0), (-0.5, 2.0), (0.0, 2.0), (-0.0, 2.0), (INF, 2.0), (-INF, 2.0), (-SMALL, 2.0), (LARGE, 0.5)]),
    "leaky_relu": (lambda x, y: (1 if x > 0 else y, 0 if x > 0 else x), [(0.5, 0.25), (-0.5, 0.25), (0.0, 0.25), (-0.0, 0.25), (INF, 0.25), (-INF, 0.25)]),
    "binary_cross_entropy_with_logits": (
        lambda x, y: (limited(sigmoid, 0, 1)(x) - y, -x if not mp.isinf(x) or y != (x > 0) else 0),
        [(0.0, 0.25), (-0.0, 1.0), (0.5, 0.25), (-2.5, 1.0), (60.0, 1.0), (-60.0, 0.0), (INF, 1.0), (-INF, 0.0), (INF, 0.0)]),
    "clip": (clip, [(0.5, 0.0, 1.0), (0.0, 0.0, 1.0), (1.0, 0.0, 1.0), (-1.0, 0.0, 1.0), (2.0, 0.0, 1.0), (0.5, 1.0, 0.0)]),
}


def text(x):
    if mp.isnan(x):
        return "kNaN"
    if mp.isinf(x):
        return "kInf" if x > 0 else "-kInf"
    return repr(float(x)).removesuffix(".0") if x else repr(float(x))  # -0.0 is not -0


def wrapped(numbers):
    lines, line = [], " {"
    for i, number in enumerate(numbers):
        part = text(number) + (", " if i + 1 < len(numbers) else "}")
        if len(line) + len(part) > 118:
            lines.append(line.rstrip())
            line = "  "
        line += part
    return "\n".join([*lines, line])


def write(name, points, derivatives):
    arity = len(points[0])
    flat = [[x for row in rows for x in row] for rows in (points, derivatives)]
    print(f'{{"{name}", {arity},\n{wrapped(flat[0])},\n{wrapped(flat[1])}}},')


print("// SPDX-License-Identifier: Apache-2.0")
print("// Written by derivatives.py: op or expression, number of inputs, points, derivatives by each input.")
print("// clang-format off")
for name, (function, points) in ONE.items():
    write(name, [(x,) for x in points], [(NAN if mp.isnan(x) and name != "relu" else function(mp.mpf(x)),) for x in points])
for name, (function, points) in SEVERAL.items():
    write(name, points, [function(*map(mp.mpf, point)) for point in points])
