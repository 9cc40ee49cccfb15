#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes known_values.inc: arguments of the oracle's functions with their values from mpmath, computed at 400 bits and
rounded to the 64 bits of x87's long double. Run by hand: known_values.py > known_values.inc"""

import random

import mpmath as mp

mp.mp.prec = 400
rng = random.Random(20240612)


def hexadecimal(x):
    """An mpf as a hexadecimal literal of 64 significant bits."""
    if x == 0:
        return "0.0L"
    sign, mantissa, exponent, _ = mp.mpf(x)._mpf_
    bits = mantissa.bit_length()
    if bits > 64:
        shift = bits - 64
        half, rest = 1 << (shift - 1), mantissa & ((1 << shift) - 1)
        mantissa >>= shift
        exponent += shift
        if rest > half or (rest == half and mantissa & 1):
            mantissa += 1
    return f"{'-' if sign else ''}0x{mantissa:x}p{exponent}L"


def double(x):
    return float(x)


def binade(low, high):
    return rng.choice([-1, 1]) * rng.uniform(1, 2) * 2.0 ** rng.randint(low, high)


def logaddexp(x, y):
    return mp.log(mp.exp(x) + mp.exp(y))


UNARY = {
    "acos": (mp.acos, -1, 1), "acosh": (mp.acosh, 1, 50), "asin": (mp.asin, -1, 1), "asinh": (mp.asinh, -30, 30),
    "atan": (mp.atan, -9, 9), "atanh": (mp.atanh, -1, 1), "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), -99, 99),
    "cos": (mp.cos, -30, 30), "cosh": (mp.cosh, -60, 60), "erf": (mp.erf, -4, 4), "exp": (mp.exp, -90, 90),
    "expm1": (mp.expm1, -30, 30), "log": (mp.log, 0, 30), "log10": (mp.log10, 0, 3000), "log1p": (mp.log1p, -1, 9),
    "log2": (lambda x: mp.log(x) / mp.log(2), 0, 99), "rsqrt": (lambda x: 1 / mp.sqrt(x), 0, 99),
    "sigmoid": (lambda x: 1 / (1 + mp.exp(-x)), -90, 90), "sin": (mp.sin, -30, 30), "sinh": (mp.sinh, -60, 60),
    "tan": (mp.tan, -30, 30), "tanh": (mp.tanh, -9, 9),
}
# Appended last, so that the arguments of the others stay the same.
SPECIAL = {
    "digamma": (mp.digamma, -9, 20), "erfc": (mp.erfc, -3, 20), "erfinv": (mp.erfinv, -1, 1),
    "lgamma": (lambda x: mp.log(abs(mp.gamma(x))), -9, 30), "logit": (lambda x: mp.log(x / (1 - x)), 0, 1),
    "sinc": (lambda x: mp.sin(mp.pi * x) / (mp.pi * x), -20, 20),
}
POSITIVE = {"log", "log10", "log2", "rsqrt"}
BOUNDED = {"acos", "asin", "atanh", "acosh", "log1p"}
ANYWHERE = {"sin", "cos", "tan"}
BINARY = {
    "atan2": (mp.atan2, -5, 5, -5, 5), "hypot": (mp.hypot, -9, 9, -9, 9), "logaddexp": (logaddexp, -40, 40, -40, 40),
    "pow": (mp.power, 0, 9, -20, 20),
}
COMPLEX = {
    "abs": abs, "acos": mp.acos, "acosh": mp.acosh, "asin": mp.asin, "asinh": mp.asinh, "atan": mp.atan,
    "atanh": mp.atanh, "cos": mp.cos, "cosh": mp.cosh, "exp": mp.exp, "expm1": lambda z: mp.exp(z) - 1, "log": mp.log,
    "log10": lambda z: mp.log(z) / mp.log(10), "log1p": lambda z: mp.log(1 + z), "log2": lambda z: mp.log(z) / mp.log(2),
    "reciprocal": lambda z: 1 / z, "sign": lambda z: z / abs(z), "sin": mp.sin, "sinh": mp.sinh, "sqrt": mp.sqrt,
    "square": lambda z: z * z, "tan": mp.tan, "tanh": mp.tanh,
}

print("// SPDX-License-Identifier: Apache-2.0")
print("// Written by known_values.py with mpmath: op, arity, whether complex, the parts of its arguments, those of the value.")


def row(op, arguments, value):
    parts = [hexadecimal(mp.mpf(part)) for a in arguments for part in (mp.mpmathify(a).real, mp.mpmathify(a).imag)]
    value = mp.mpmathify(value)
    complex_row = "true" if any(isinstance(a, complex) for a in arguments) else "false"
    print(f'{{"{op}", {len(arguments)}, {complex_row}, {{{", ".join(parts)}}}, '
          f'{{{hexadecimal(value.real)}, {hexadecimal(value.imag)}}}}},')


for op, (function, low, high) in UNARY.items():
    arguments = [double(rng.uniform(low, high)) for _ in range(16)]
    if op not in BOUNDED:
        small = [binade(-60, -2) for _ in range(6)]
        arguments += [abs(x) for x in small] if op in POSITIVE else small
    if op in ANYWHERE:
        arguments += [binade(5, 1000) for _ in range(12)] + [double(k * mp.pi / 2) for k in (1, 2, 3, 355, 10**9)]
    if op == "log1p":
        arguments += [binade(-60, -3) for _ in range(8)]
    for x in arguments:
        row(op, [x], function(mp.mpf(x)))
for op, (function, *limits) in BINARY.items():
    for _ in range(20):
        x, y = double(rng.uniform(limits[0], limits[1])), double(rng.uniform(limits[2], limits[3]))
        row(op, [x, y], function(mp.mpf(x), mp.mpf(y)))
for op, function in COMPLEX.items():
    arguments = [complex(rng.uniform(-4, 4), rng.uniform(-4, 4)) for _ in range(14)]
    arguments += [complex(binade(-40, 2), binade(-40, 2)) for _ in range(8)]
    if op in ("log", "log1p", "log2", "log10"):
        arguments += [complex(double(mp.cos(t) - (op == "log1p")), double(mp.sin(t))) for t in (0.01, 0.5, 1.5, 3)]
    for z in arguments:
        row(op, [z], function(mp.mpc(z)))
for op, function in {"divide": lambda x, y: x / y, "multiply": lambda x, y: x * y, "pow": mp.power}.items():
    for _ in range(16):
        x, y = (complex(rng.uniform(-3, 3), rng.uniform(-3, 3)) for _ in range(2))
        row(op, [x, y], function(mp.mpc(x), mp.mpc(y)))
for op, (function, low, high) in SPECIAL.items():
    arguments = [double(rng.uniform(low, high)) for _ in range(20)]
    if op not in ("erfc", "logit"):
        arguments += [binade(-60, -2) for _ in range(6)]
    for x in arguments:
        row(op, [x], function(mp.mpf(x)))

# Appended later.
MORE = {
    "erfcinv": (lambda x: mp.erfinv(1 - x), [(0, 2)]), "i0": (lambda x: mp.besseli(0, x), [(-90, 90)]),
    "i0e": (lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), [(-90, 90)]), "i1": (lambda x: mp.besseli(1, x), [(-90, 90)]),
    "i1e": (lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), [(-90, 90)]), "j0": (lambda x: mp.besselj(0, x), [(-50, 50)]),
    "j1": (lambda x: mp.besselj(1, x), [(-50, 50)]), "y0": (lambda x: mp.bessely(0, x), [(0, 50)]),
    "y1": (lambda x: mp.bessely(1, x), [(0, 50)]),
    "gammainc": (lambda a, x: mp.gammainc(a, 0, x, regularized=True), [(0, 60), (0, 90)]),
    "gammaincc": (lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True), [(0, 60), (3, 90)]),
    "betainc": (lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True), [(0, 60), (0, 60), (0, 1)]),
    "polygamma": (lambda n, x: mp.polygamma(int(n), x), [range(1, 30), (0, 50)]),
}
for op, (function, limits) in MORE.items():
    for _ in range(24):
        arguments = [double(rng.choice(one) if isinstance(one, range) else rng.uniform(*one)) for one in limits]
        row(op, arguments, function(*map(mp.mpf, arguments)))
