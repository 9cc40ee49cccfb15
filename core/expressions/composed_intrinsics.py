#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes composed_intrinsics.inc: the definitions of the functions that core composes of other intrinsics. Coefficients
are computed here, with mpmath. Run by hand: composed_intrinsics.py > composed_intrinsics.inc"""

import mpmath as mp

mp.mp.dps = 60


class Text:
    """Statements, the last of which is the value."""

    def __init__(self):
        self.statements = []

    def let(self, text):
        name = f"t{len(self.statements)}"
        self.statements.append(f"{name} = {text}")
        return name

    def polynomial(self, coefficients, x):
        """Horner's scheme, in statements that are not deeply nested."""
        value = literal(coefficients[-1])
        for i, c in enumerate(reversed(coefficients[:-1])):
            value = f"{literal(c)} + {x} * ({value})" if not value.startswith("t") else f"{literal(c)} + {x} * {value}"
            if i % 12 == 11:
                value = self.let(value)
        return self.let(value)

    def done(self, value):
        return "; ".join([*self.statements, value])


def literal(x):
    text = repr(float(x))
    return f"({text})" if text.startswith("-") else text


def fit(function, low, high, degree):
    """The coefficients of the polynomial that interpolates `function` at Chebyshev's points."""
    n = degree + 1
    low, high = mp.mpf(low), mp.mpf(high)
    angles = [mp.pi * (2 * k + 1) / (2 * n) for k in range(n)]
    values = [function((high + low) / 2 + (high - low) / 2 * mp.cos(a)) for a in angles]
    chebyshev = [2 * mp.fsum(v * mp.cos(j * a) for v, a in zip(values, angles)) / n for j in range(n)]
    chebyshev[0] /= 2
    # In the powers of s = (2 x - low - high) / (high - low), then of x.
    sums = [mp.mpf(0)] * n
    before, now = [mp.mpf(1)], [mp.mpf(0), mp.mpf(1)]
    for j, c in enumerate(chebyshev):
        p = before if j == 0 else now
        for i, v in enumerate(p):
            sums[i] += c * v
        if j >= 1:
            following = [mp.mpf(0)] + [2 * v for v in now]
            for i, v in enumerate(before):
                following[i] -= v
            before, now = now, following
    a, b = 2 / (high - low), -(low + high) / (high - low)
    result = [mp.mpf(0)]
    for c in reversed(sums):
        scaled = [mp.mpf(0)] + [a * v for v in result]
        for i, v in enumerate(result):
            scaled[i] += b * v
        scaled[0] += c
        result = scaled
    return result[:n]


# ---- Modified Bessel functions ----

def bessel_i(order, scaled):
    t = Text()
    a = t.let("abs(x)")
    q = t.let("0.25 * x * x")
    near = t.polynomial([1 / (mp.factorial(k) * mp.factorial(k + order)) for k in range(24)], q)
    u = t.let(f"8 / {a}")
    far = t.polynomial(fit(lambda u: mp.sqrt(8 / u) * mp.exp(-8 / u) * mp.besseli(order, 8 / u) if u else 1 / mp.sqrt(2 * mp.pi),
                           0, 1, 24), u)
    # Unless it is scaled, the result overflows before 1000.
    far = t.let(f"{far} / sqrt({a if scaled else f'min({a}, 1000)'})")
    if scaled:
        near = f"{near} * exp(-{a})" if order == 0 else f"0.5 * x * {near} * exp(-{a})"
    else:
        half = t.let(f"exp(0.5 * {a})")
        far = t.let(f"{half} * {far} * {half}")
        near = near if order == 0 else f"0.5 * x * {near}"
    return t.done(f"where({a} < 8, {near}, {far if order == 0 else f'copysign({far}, x)'})")


# ---- Bessel functions ----

def hankel(order):
    """P and Q of Hankel's expansions, as functions of u = (5 / x)^2: the second one times x."""
    def both(u):
        x = 5 / mp.sqrt(u) if u else mp.mpf(10) ** 9
        chi = x - (2 * order + 1) * mp.pi / 4
        j, y = mp.besselj(order, x), mp.bessely(order, x)
        scale = mp.sqrt(mp.pi * x / 2)
        return scale * (j * mp.cos(chi) + y * mp.sin(chi)), x * scale * (y * mp.cos(chi) - j * mp.sin(chi))
    return both


def bessel_jy(order, second):
    t = Text()
    a = t.let("abs(x)")
    s = t.let("x * x")
    v = t.let(f"0.08 * {s} - 1")  # in [-1, 1] below 5

    def by_v(function):
        return lambda v: function(mp.sqrt((v + 1) * mp.mpf(12.5)))
    j_near = t.polynomial(fit(by_v(lambda x: mp.besselj(order, x) / x ** order), -1, 1, 18), v)
    j_near = t.let(j_near if order == 0 else f"x * {j_near}")
    both = hankel(order)
    u = t.let(f"25 / {s}")
    # For huge x its square overflows: u is 0 then, as it should be.
    p = t.polynomial(fit(lambda u: both(u)[0], 0, 1, 20), u)
    q = t.let(f"{t.polynomial(fit(lambda u: both(u)[1], 0, 1, 20), u)} / {a}")
    # cos(chi) and sin(chi) times sqrt(2), where chi is |x| less an odd multiple of pi / 4.
    sine, cosine = t.let(f"sin({a})"), t.let(f"cos({a})")
    if order == 0:
        c, d = f"({cosine} + {sine})", f"({sine} - {cosine})"
    else:
        c, d = f"({sine} - {cosine})", f"(-({sine} + {cosine}))"
    root = t.let(f"0.56418958354775628695 / sqrt({a})")
    if not second:
        far = t.let(f"where(isinf(x), 0, {root} * ({p} * {c} - {q} * {d}))")
        return t.done(f"where({a} < 5, {j_near}, {far if order == 0 else f'where(x < 0, -{far}, {far})'})")
    far = t.let(f"where(isinf(x), 0, {root} * ({p} * {d} + {q} * {c}))")

    def regular(x):
        if order == 0:
            return mp.bessely(0, x) - 2 / mp.pi * mp.log(x) * mp.besselj(0, x)
        return (mp.bessely(1, x) - 2 / mp.pi * (mp.log(x) * mp.besselj(1, x) - 1 / x)) / x
    r = t.polynomial(fit(by_v(regular), -1, 1, 18), v)
    if order == 0:
        near = f"0.63661977236758134308 * log(x) * {j_near} + {r}"
    else:
        near = f"0.63661977236758134308 * (log(x) * {j_near} - 1 / x) + x * {r}"
    return t.done(f"where(x > 0, where(x < 5, where(x < 1e-30, {'0.63661977236758134308 * log(x) - 0.07380429510868723' if order == 0 else '-0.63661977236758134308 / x'}, {near}), {far}), where(x == 0, -inf, nan))")


# ---- Inverse of the complementary error function ----

def inverse_erfc(q):
    s = mp.sqrt(-mp.log(q))
    return mp.findroot(lambda z: mp.log(mp.erfc(z)) - mp.log(q), s * (1 - mp.log(s + 1) / (2 * s * s + 2)))


def erfcinv():
    t = Text()
    # The distance to the nearer end of (0, 2), where it is below 1 / 2.
    q = t.let("max(min(x, 2 - x), 0)")
    depth = t.let(f"-log(min({q}, 0.5))")
    root = t.let(f"sqrt({depth})")
    u = t.let(f"1 / {root}")
    start = fit(lambda u: inverse_erfc(mp.exp(-1 / (u * u))) * u, 1 / mp.mpf(28), 1 / mp.sqrt(mp.log(2)), 8)
    z = t.let(f"{root} * {t.polynomial(start, u)}")
    # Where erfc nears the end of the range: 1e-60 is 0 in float32.
    far = t.let("where(copysign(1e-60, x) == 0, 4.5, 10)")
    # Newton's method for the logarithm of erfc.
    for _ in range(2):
        h = t.let(f"0.5 / ({z} * {z})")
        series = t.polynomial([(-1) ** k * mp.fac2(2 * k - 1) for k in range(10)], h)
        e = t.let(f"erfc(min({z}, {far}))")
        slope = t.let(f"where({z} < {far}, 0.88622692545275801365 * exp(min({z}, {far}) * min({z}, {far})) * {e}, 0.5 * {series} / {z})")
        miss = t.let(f"where({z} < {far}, log({e}), -{z} * {z} - log({z} * 1.7724538509055160273) + log({series})) + {depth}")
        z = t.let(f"{z} + {miss} * {slope}")
    return t.done(f"where({q} < 0.5, where({q} == 0, where((x == 0) | (x == 2), where(x == 0, inf, -inf), nan), "
                  f"where(x < 1, {z}, -{z})), erfinv(1 - x))")


# ---- Derivatives of digamma ----

def polygamma():
    t = Text()
    s = t.let("x + 1")
    far = t.let("y + 10")
    # The terms of Hurwitz' zeta function, relative to the first one; the rest by the formula of Euler and Maclaurin.
    heads = " + ".join(f"exp(-{s} * log1p({k} / y))" for k in range(9, 0, -1))
    heads = t.let(heads)
    step = t.let(f"1 / {far}")
    tail, term = t.let(f"0.5 + {far} / x"), None
    total = tail
    for j in range(1, 9):
        term = t.let(f"min({s} * {step}, 1000)" if j == 1 else
                     f"{term} * min(({s} + {2 * j - 3}) * {step}, 1000) * min(({s} + {2 * j - 2}) * {step}, 1000)")
        total = t.let(f"{total} + {literal(mp.bernoulli(2 * j) / mp.factorial(2 * j))} * {term}")
    ratio = t.let(f"exp(-{s} * log1p(10 / y))")
    sums = t.let(f"1 + {heads} + where({ratio} > 0, {ratio} * {total}, 0)")
    factorial = "1"
    for k in range(2, 21):
        factorial = f"{factorial} * where(x < {k}, 1, {k})"
        if k % 7 == 0:
            factorial = t.let(factorial)
    factorial = t.let(factorial)
    half = t.let(f"pow(y, -0.5 * {s})")
    # Neither factor leaves the range before their product does.
    first = t.let(f"where(x > 20, exp(0.5 * (lgamma({s}) - {s} * log(y))), {half})")
    found = t.let(f"{first} * (where(x > 20, 1, {factorial}) * ({first} * {sums}))")
    signed = t.let(f"where(round(0.5 * x) * 2 == x, -1, 1) * where(y == 0, inf, where(isinf(y), 0, {found}))")
    return t.done(f"where(x == 0, digamma(y), where((x > 0) & (x < 1e6) & (round(x) == x) & (y >= 0), {signed}, nan))")


# ---- Incomplete gamma and beta functions ----

POINTS = 32
CUTOFF = 38  # where an exponential no longer counts


def gauss():
    """Nodes and weights on [0, 1]."""
    found = []
    n = POINTS
    for k in range(1, n + 1):
        x = mp.cos(mp.pi * (k - mp.mpf(1) / 4) / (n + mp.mpf(1) / 2))
        for _ in range(100):
            p, slope = legendre(n, x)
            step = p / slope
            x -= step
            if abs(step) < mp.mpf(10) ** -50:
                break
        p, slope = legendre(n, x)
        found.append(((1 - x) / 2, 1 / ((1 - x * x) * slope * slope)))
    return found


def legendre(n, x):
    p0, p1 = mp.mpf(1), x
    for k in range(2, n + 1):
        p0, p1 = p1, ((2 * k - 1) * x * p1 - (k - 1) * p0) / k
    return p1, n * (x * p1 - p0) / (x * x - 1)


def reach(t, slope, curvature, flattening):
    """Where slope v + curvature v^2 / (1 + flattening v) reaches CUTOFF."""
    a = t.let(f"{slope} * {flattening} + {curvature}")
    b = t.let(f"{slope} - {CUTOFF} * {flattening}")
    root = t.let(f"sqrt(max({b} * {b} + {4 * CUTOFF} * {a}, 0))")
    return t.let(f"where({b} > 0, {2 * CUTOFF} / ({b} + {root}), ({root} - {b}) / (2 * {a}))")


def integral(t, exponent, width, power=1):
    """The integral of exp(exponent(v)) over [0, width], with v = width s^power."""
    total = None
    for node, weight in gauss():
        at, density = literal(node ** power), literal(power * node ** (power - 1) * weight)
        term = f"{density} * exp(min({exponent(f'({at} * {width})')}, 1))"
        total = t.let(term if total is None else f"{total} + {term}")
    return t.let(f"{width} * {total}")


def excess(t, mu, ratio):
    """mu - log(ratio), where ratio is 1 + mu, without cancellation."""
    r = t.let(f"{mu} / (2 + {mu})")
    square = t.let(f"{r} * {r}")
    series = t.polynomial([mp.mpf(2) / (2 * k + 3) for k in range(10)], square)
    return t.let(f"where(abs({mu}) < 0.4, {r} * ({mu} - {square} * {series}), {mu} - log({ratio}))")


def lowered(t, n, depth, mu, ratio):
    """exp(-n depth), where `depth` is that of `excess`. Far from the mode a product would cost digits."""
    return t.let(f"where({depth} < 1.5, exp(-{n} * {depth}), pow({ratio} * exp(-{mu}), {n}))")


def stirling(t, a):
    """The logarithm of gamma less its leading terms, from 10 on."""
    inverse = t.let(f"1 / {a}")
    square = t.let(f"{inverse} * {inverse}")
    coefficients = [mp.bernoulli(2 * k) / (2 * k * (2 * k - 1)) for k in range(1, 8)]
    return t.let(f"{inverse} * {t.polynomial(coefficients, square)}")


def incomplete_gamma(complement):
    t = Text()
    # The tail beyond y, away from the mode, as an integral from y on. For x below 10 the
    # lower function is computed at x + 10, and ten terms of a series make up the difference.
    upper = t.let("y >= max(x, 3)")
    shifted = t.let(f"(x < 10) & (y < max(x, 3))")
    a = t.let(f"where({shifted}, x + 10, x)")
    end = "y"
    side = t.let(f"where({upper}, 1, -1)")
    less = t.let(f"{a} - 1")
    slope = t.let(f"where({upper} & ({a} < 1), {end}, {side} * ({end} - {less}))")
    flattening = t.let(f"where({upper}, 0.66666666666666666667, 0)")
    width = reach(t, slope, t.let(f"max(0.5 * {less}, 0)"), flattening)
    width = t.let(f"where({upper}, {width}, min({width}, 1))")
    scaled = t.let(f"{side} * {width}")
    # Squares keep the points away from the pole at -1.
    area = integral(t, lambda v: f"{less} * log1p({v}) - {end} * {v}", scaled, 2)
    mu = t.let(f"({end} - {a}) / {a}")
    depth = t.let(excess(t, mu, f"({end} / {a})"))
    by_stirling = t.let(f"sqrt({a} * 0.15915494309189533577) * exp(-{stirling(t, a)}) * {lowered(t, a, depth, mu, f'({end} / {a})')}")
    half = t.let(f"exp(-0.5 * {end})")
    small = t.let(f"where(y > 2000, 0, {half} * (pow({end}, x) * (x * exp(-lgamma(x + 1))) * {half}))")
    tail = t.let(f"abs({area}) * where(x < 10, where({upper}, {small}, {by_stirling}), {by_stirling})")
    series = f"1 + y / (x + 9)"
    for k in range(8, 0, -1):
        series = f"1 + y / (x + {k}) * ({series})"
    series = t.let(f"pow(y, x) * exp(-y) * exp(-lgamma(x + 1)) * ({series})")
    lower = t.let(f"{tail} + where({shifted}, {series}, 0)")
    found = f"where({upper}, {tail}, 1 - {lower})" if complement else f"where({upper}, 1 - {tail}, {lower})"
    # From there on the first two terms of Temme's expansion are exact enough: 1e-60 is 0 in float32.
    huge = t.let(f"x > where(copysign(1e-60, x) == 0, 1e7, 1e14)")
    eta = t.let(f"copysign(sqrt(2 * max({depth}, 0)), {mu})")
    normal = t.let(f"0.5 * erfc({'' if complement else '-'}{eta} * sqrt(0.5 * x)) {'-' if complement else '+'} exp(-x * {depth}) / sqrt(6.2831853071795864769 * x) * (0.33333333333333333333 - 0.083333333333333333333 * max({eta}, -3))")
    found = t.let(f"min(max(where({huge}, {normal}, {found}), 0), 1)")
    at_0, at_end = ("1", "0") if complement else ("0", "1")
    ends = f"where(x == 0, where(y > 0, {at_end}, nan), where(isinf(y), where(isinf(x), nan, {at_end}), {at_0}))"
    return t.done(f"where((x >= 0) & (y >= 0), where((x == 0) | (y == 0) | isinf(x) | isinf(y), {ends}, {found}), nan)")


def incomplete_beta():
    t = Text()
    # The side of the mean on which z lies, unless the integral there has a singularity next to its end.
    given = "z"
    other = t.let("1 - z")
    above = t.let("z * (x + y) > x")
    a1, b1 = t.let(f"where({above}, y, x)"), t.let(f"where({above}, x, y)")
    z1, o1 = t.let(f"where({above}, {other}, z)"), t.let(f"where({above}, z, {other})")
    turned = t.let(f"({z1} > 0.75) & ({b1} < 10) & ({a1} * {o1} < 3 * {z1})")
    a, b = t.let(f"where({turned}, {b1}, {a1})"), t.let(f"where({turned}, {a1}, {b1})")
    z, o = t.let(f"where({turned}, {o1}, {z1})"), t.let(f"where({turned}, {z1}, {o1})")
    complement = t.let(f"{above} ^ {turned}")
    log_o = t.let(f"where({z} < 0.5, log1p(-{z}), log({o}))")
    shifted = t.let(f"{a} < 10")
    low_b = t.let(f"{b} < 10")
    c = t.let(f"where({low_b}, {b} + 10, {b})")
    # z^a o^b / (a B(a, b)) for a below 10, and ten terms of its series.
    d = t.let(f"min({a}, 10)")
    stirling_c = stirling(t, c)
    quotient = t.let(f"{d} / {c}")
    # gamma(d + c) / gamma(c) = c^d times
    growth = excess(t, quotient, f"(1 + {quotient})")
    grown = t.let(f"exp(({d} - 0.5) * log1p({quotient}) - {c} * {growth} + ({stirling(t, t.let(f'{d} + {c}'))} - {stirling_c}))")
    product = t.let(" * ".join(f"(({b} + {j}) / ({d} + {b} + {j}))" for j in range(10)))
    # Where the product may be subnormal, the bound is relative to 1.
    power = t.let(f"where({z} < 1e-30, exp({d} * (log({z}) + log({c}))), pow({z} * {c}, {d}))")
    first = t.let(f"{power} * {grown} * where({low_b}, {product}, 1) * exp({b} * {log_o} - lgamma({d} + 1))")
    series, term = first, first
    for j in range(9):
        term = t.let(f"{term} * (({d} + {b} + {j}) * {z} / ({d} + {j + 1}))")
        series = t.let(f"{series} + {term}")
    last = t.let(f"{term} * (({d} + {b} + 9) * {z})")
    # The same factor, times a, from 10 on.
    both = t.let(f"{a} + {c}")
    p, q = t.let(f"{z} * {both}"), t.let(f"{o} * {both}")
    away = t.let(f"{a} * {o} - {c} * {z}")  # of the mean
    mu_a, mu_c = t.let(f"-{away} / {a}"), t.let(f"{away} / {c}")
    ratio_a, ratio_c = f"({p} / {a})", f"({q} / {c})"
    low_a = lowered(t, a, excess(t, mu_a, ratio_a), mu_a, ratio_a)
    low_c = lowered(t, c, excess(t, mu_c, ratio_c), mu_c, ratio_c)
    product = t.let(" * ".join(f"(({b} + {j}) / (({a} + {b} + {j}) * {o}))" for j in range(10)))
    factor = t.let(f"sqrt({a} / {both} * {c} * 0.15915494309189533577) * exp({stirling(t, both)} - {stirling(t, a)} - {stirling_c}) "
                   f"* {low_a} * {low_c} * where({low_b}, {product}, 1)")
    e = t.let(f"where({shifted}, {a} + 10, {a})")
    less, ratio, more = t.let(f"{e} - 1"), t.let(f"{z} / {o}"), t.let(f"{b} - 1")
    above_1 = t.let(f"max({more}, 0)")
    width = reach(t, t.let(f"{less} - {above_1} * {ratio}"), t.let(f"0.5 * ({less} + {above_1} * {ratio} * {ratio})"),
                  t.let(f"0.66666666666666666667 * {ratio}"))
    width = t.let(f"min({width}, 1)")
    area = integral(t, lambda v: f"{less} * log1p(-{v}) + {more} * log1p({ratio} * {v})", width)
    found = t.let(f"where({shifted}, {last}, {factor}) / {o} * {area} + where({shifted}, {series}, 0)")
    found = t.let(f"min(max({found}, 0), 1)")
    found = t.let(f"where({complement}, 1 - {found}, {found})")
    # A parameter of 0 or infinity puts all weight at one end.
    at_1 = "((y == 0) | isinf(x))"
    ends = f"where((x == 0) | isinf(y), where({at_1}, nan, where(ZERO > 0, 1, 0)), where(ZERO < 1, 0, 1))".replace("ZERO", given)
    return t.done(f"where((x >= 0) & (y >= 0) & ({given} >= 0) & ({given} <= 1), where((x == 0) | (y == 0) | isinf(x) | isinf(y), {ends}, "
                  f"where(({given} == 0) | ({given} == 1), {given}, {found})), nan)")


DEFINITIONS = {
    "i0": lambda: bessel_i(0, False), "i0e": lambda: bessel_i(0, True),
    "i1": lambda: bessel_i(1, False), "i1e": lambda: bessel_i(1, True),
    "j0": lambda: bessel_jy(0, False), "j1": lambda: bessel_jy(1, False),
    "y0": lambda: bessel_jy(0, True), "y1": lambda: bessel_jy(1, True),
    "erfcinv": erfcinv, "polygamma": polygamma,
    "gammainc": lambda: incomplete_gamma(False), "gammaincc": lambda: incomplete_gamma(True), "betainc": incomplete_beta,
}


def wrapped(text, width):
    """A string of C++ in lines."""
    lines = []
    while len(text) > width:
        end = text.rindex(" ", 0, width) + 1
        lines.append(text[:end])
        text = text[end:]
    return "\n".join(f'    "{line}"' for line in [*lines, text])


if __name__ == "__main__":
    print("// SPDX-License-Identifier: Apache-2.0")
    print("// Written by composed_intrinsics.py: the definitions of the functions that core composes of other intrinsics.")
    for name, definition in DEFINITIONS.items():
        print(f"\nconstexpr const char kDefinition_{name}[] =\n{wrapped(definition(), 112)};")
