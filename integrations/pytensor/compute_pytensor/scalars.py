# SPDX-License-Identifier: Apache-2.0
"""Scalar ops of PyTensor as texts of expressions.

An Elemwise is one expression, whatever its scalar op: a Composite, which is a graph of scalar ops, becomes a text of
statements. PyTensor states the dtype of every value, so operands are converted wherever the dtypes differ.
"""
from __future__ import annotations

import math

from pytensor.graph.basic import Constant
from pytensor.scalar import basic as ps, math as pm
from pytensor.scalar.basic import upcast
from pytensor.tensor.math import MulWithoutZeros  # noqa: F401  what some products reduce by


class Unsupported(Exception):
    """A scalar op or a dtype that expressions do not have."""


_DTYPES = {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
           "complex64", "complex128"}


def _is_float(dtype):
    return dtype.startswith("float")


def _is_complex(dtype):
    return dtype.startswith("complex")


def _is_discrete(dtype):
    return not _is_float(dtype) and not _is_complex(dtype)


def converted(text, source, target):
    """The text of a value of the dtype `source`, as one of the dtype `target`."""
    if source == target:
        return text
    if _is_complex(source) and not _is_complex(target):
        raise Unsupported(f"a conversion of {source} to {target}")
    return f"convert({text}, {target})"


def literal(value, dtype):
    """The text of a constant."""
    if dtype == "bool":
        return "true" if value else "false"
    if _is_discrete(dtype):
        return f"convert({int(value)}, {dtype})"
    if _is_complex(dtype):
        part = "float32" if dtype == "complex64" else "float64"
        return f"complex({literal(value.real, part)}, {literal(value.imag, part)})"
    value = float(value)
    if math.isnan(value):
        return f"convert(nan, {dtype})"
    if math.isinf(value):
        return f"convert({'-' if value < 0 else ''}inf, {dtype})"
    return f"convert({value!r}, {dtype})"


_RULES = {}


def _rule(*types):
    def register(function):
        for one in types:
            _RULES[one] = function
        return function
    return register


def _of_result(x, dtypes, out):
    """The operands as values of the result's dtype."""
    return [converted(text, dtype, out) for text, dtype in zip(x, dtypes)]


def _real_only(out, what):
    if _is_complex(out):
        raise Unsupported(f"{what} of {out}")


def _chain(word, of_bool):
    def rule(op, x, dtypes, out):
        return f" {of_bool if out == 'bool' else word} ".join(f"({one})" for one in _of_result(x, dtypes, out))
    return rule


_RULES[ps.Add] = _chain("+", "|")
_RULES[ps.Mul] = _chain("*", "&")
_RULES[ps.Sub] = _chain("-", "^")
_RULES[ps.TrueDiv] = _chain("/", "/")


@_rule(ps.IntDiv, ps.Mod)
def _division(op, x, dtypes, out):
    _real_only(out, "division")
    a, b = _of_result(x, dtypes, out)
    return f"({a}) {'//' if isinstance(op, ps.IntDiv) else '%'} ({b})"


@_rule(ps.Pow)
def _power(op, x, dtypes, out):
    a, b = _of_result(x, dtypes, out)
    return f"({a}) ** ({b})"


def _extreme(word, of_bool):
    def rule(op, x, dtypes, out):
        _real_only(out, word)
        x = _of_result(x, dtypes, out)
        if out == "bool":
            return f" {of_bool} ".join(x)
        text = x[0]
        for one in x[1:]:
            text = f"{word}({text}, {one})"
        return text
    return rule


_RULES[ps.Maximum] = _extreme("max", "|")
_RULES[ps.Minimum] = _extreme("min", "&")

_COMPARISONS = {ps.LT: "<", ps.LE: "<=", ps.GT: ">", ps.GE: ">=", ps.EQ: "==", ps.NEQ: "!="}


@_rule(*_COMPARISONS)
def _comparison(op, x, dtypes, out):
    common = upcast(*dtypes)
    word = _COMPARISONS[type(op)]
    if word not in ("==", "!="):
        _real_only(common, "an order")
        common = "uint8" if common == "bool" else common
    a, b = _of_result(x, dtypes, common)
    return f"({a}) {word} ({b})"


@_rule(ps.IsNan, ps.IsInf)
def _class_of(op, x, dtypes, out):
    if dtypes[0] == "bool":
        return f"{x[0]} & false"
    return f"{'isnan' if isinstance(op, ps.IsNan) else 'isinf'}({x[0]})"


@_rule(ps.Switch)
def _switch(op, x, dtypes, out):
    a, b = _of_result(x[1:], dtypes[1:], out)
    return f"where({converted(x[0], dtypes[0], 'bool')}, {a}, {b})"


_BITS = {ps.OR: "|", ps.XOR: "^", ps.AND: "&"}


@_rule(*_BITS)
def _bits(op, x, dtypes, out):
    return f" {_BITS[type(op)]} ".join(f"({one})" for one in _of_result(x, dtypes, out))


@_rule(ps.Invert)
def _invert(op, x, dtypes, out):
    return f"~({converted(x[0], dtypes[0], out)})"


@_rule(ps.Clip)
def _clip(op, x, dtypes, out):
    _real_only(out, "clip")
    common = upcast(*dtypes)
    value, low, high = _of_result(x, dtypes, common)
    return converted(f"where(({value}) < ({low}), {low}, where(({value}) > ({high}), {high}, {value}))", common, out)


@_rule(ps.Second)
def _second(op, x, dtypes, out):
    # The first operand only gives the shape.
    return f"where({converted(x[0], dtypes[0], 'bool') if not _is_complex(dtypes[0]) else f'{x[0]} == {x[0]}'}, " \
           f"{converted(x[1], dtypes[1], out)}, {converted(x[1], dtypes[1], out)})"


@_rule(ps.Identity, ps.Cast)
def _cast(op, x, dtypes, out):
    if _is_complex(dtypes[0]) and out == "bool":
        return f"{x[0]} != {literal(0j, dtypes[0])}"
    return converted(x[0], dtypes[0], out)


def _unary(text, of_complex=True):
    """An op of one operand, which has the dtype of the result."""
    def rule(op, x, dtypes, out):
        if _is_complex(out) and not of_complex:
            raise Unsupported(f"{type(op).__name__} of {out}")
        return text.replace("$", f"({converted(x[0], dtypes[0], out)})")
    return rule


_TRICKS = {
    ps.Neg: "-$", ps.Ceil: "ceil$", ps.Floor: "floor$", ps.Trunc: "trunc$", ps.RoundHalfToEven: "round$", ps.Log: "log$",
    ps.Log2: "log2$", ps.Log10: "log10$", ps.Log1p: "log1p$", ps.Exp: "exp$", ps.Expm1: "expm1$", ps.Sqrt: "sqrt$",
    ps.Cos: "cos$", ps.ArcCos: "acos$", ps.Sin: "sin$", ps.ArcSin: "asin$", ps.Tan: "tan$", ps.ArcTan: "atan$",
    ps.Cosh: "cosh$", ps.ArcCosh: "acosh$", ps.Sinh: "sinh$", ps.ArcSinh: "asinh$", ps.Tanh: "tanh$", ps.ArcTanh: "atanh$",
    ps.Conj: "conj$",
}
for _type, _text in _TRICKS.items():
    _RULES[_type] = _unary(_text)

_LN2 = "0.6931471805599453"
_REAL_TRICKS = {
    ps.Exp2: "exp2$", pm.Erf: "erf$", pm.Erfc: "erfc$", pm.Erfinv: "erfinv$", pm.GammaLn: "lgamma$", pm.Psi: "digamma$",
    pm.Erfcinv: "erfcinv$", pm.I0: "i0$", pm.I1: "i1$", pm.J0: "j0$", pm.J1: "j1$",
    ps.Deg2Rad: "$ * 0.017453292519943295", ps.Rad2Deg: "$ * 57.29577951308232",
    pm.Sigmoid: "1.0 / (1.0 + exp(-$))", pm.Softplus: "max($, 0.0) + log1p(exp(-abs($)))",
    pm.Log1mexp: f"where($ < -{_LN2}, log1p(-exp$), log(-expm1$))",
    pm.Gamma: "where(($ < 0.0) & (floor$ % 2.0 != 0.0), -1.0, 1.0) * where(($ < 0.0) & (floor$ == $), nan, exp(lgamma$))",
}
for _type, _text in _REAL_TRICKS.items():
    _RULES[_type] = _unary(_text, of_complex=False)


_FUNCTIONS = {pm.GammaInc: "gammainc", pm.GammaIncC: "gammaincc", pm.BetaInc: "betainc", pm.PolyGamma: "polygamma"}


@_rule(*_FUNCTIONS)
def _function(op, x, dtypes, out):
    _real_only(out, type(op).__name__)
    return f"{_FUNCTIONS[type(op)]}({', '.join(_of_result(x, dtypes, out))})"


@_rule(pm.Erfcx)
def _erfcx(op, x, dtypes, out):
    # exp(x * x) does not overflow below `far`, and the asymptotic series is exact from there on.
    x = f"({converted(x[0], dtypes[0], out)})"
    far = "25.0" if out == "float64" else "9.0"
    u = f"(1.0 / (2.0 * {x} * {x}))"
    series = f"0.5641895835477563 / {x} * (1.0 - {u} * (1.0 - 3.0 * {u} * (1.0 - 5.0 * {u} * (1.0 - 7.0 * {u}))))"
    return f"where({x} < {far}, exp({x} * {x}) * erfc{x}, {series})"


@_rule(pm.TriGamma)
def _trigamma(op, x, dtypes, out):
    # The recurrence moves the operand to where the asymptotic series holds; negative operands are reflected.
    x = f"({converted(x[0], dtypes[0], out)})"
    z = f"where({x} <= 0.0, 1.0 - {x}, {x})"
    head = " + ".join(f"1.0 / (({z} + {k}.0) * ({z} + {k}.0))" for k in range(10))
    u = f"(1.0 / (({z} + 10.0) * ({z} + 10.0)))"
    tail = (f"(1.0 / ({z} + 10.0) + {u} / 2.0 + {u} / ({z} + 10.0) * (0.16666666666666666 - {u} * (0.03333333333333333 - {u} * "
            f"(0.023809523809523808 - {u} * (0.03333333333333333 - {u} * 0.07575757575757576)))))")
    positive = f"({head} + {tail})"
    sine = f"sin(3.141592653589793 * {x})"
    return f"where({x} <= 0.0, where(floor{x} == {x}, inf, 9.869604401089358 / ({sine} * {sine}) - {positive}), {positive})"


@_rule(ps.Reciprocal)
def _reciprocal(op, x, dtypes, out):
    return f"{literal(1, out)} / ({converted(x[0], dtypes[0], out)})"


@_rule(ps.Sqr)
def _square(op, x, dtypes, out):
    x = converted(x[0], dtypes[0], out)
    return x if out == "bool" else f"({x}) * ({x})"


@_rule(ps.Abs)
def _abs(op, x, dtypes, out):
    return x[0] if dtypes[0] == "bool" else f"abs({x[0]})"


@_rule(ps.Sign)
def _sign(op, x, dtypes, out):
    x = converted(x[0], dtypes[0], out)
    if out == "bool":
        return x
    return f"where(isnan({x}), {x}, sign({x}))" if _is_float(out) else f"sign({x})"


@_rule(ps.RoundHalfAwayFromZero)
def _round_away(op, x, dtypes, out):
    x = converted(x[0], dtypes[0], out)
    return f"copysign(floor(abs({x}) + 0.5), {x})" if _is_float(out) else x


@_rule(ps.ArcTan2)
def _atan2(op, x, dtypes, out):
    a, b = _of_result(x, dtypes, out)
    return f"atan2({a}, {b})"


@_rule(ps.Real)
def _real(op, x, dtypes, out):
    return f"real({x[0]})" if _is_complex(dtypes[0]) else x[0]


@_rule(ps.Imag)
def _imag(op, x, dtypes, out):
    return f"imag({x[0]})" if _is_complex(dtypes[0]) else f"({x[0]}) * {literal(0, dtypes[0])}"


@_rule(ps.Angle)
def _angle(op, x, dtypes, out):
    if _is_complex(dtypes[0]):
        return f"arg({x[0]})"
    x = converted(x[0], dtypes[0], out)
    return f"where(isnan({x}), {x}, where({x} < 0.0, 3.141592653589793, 0.0))"


@_rule(ps.Complex)
def _complex(op, x, dtypes, out):
    part = "float32" if out == "complex64" else "float64"
    a, b = _of_result(x, dtypes, part)
    return f"complex({a}, {b})"


@_rule(ps.ComplexFromPolar)
def _polar(op, x, dtypes, out):
    part = "float32" if out == "complex64" else "float64"
    r, t = (f"({one})" for one in _of_result(x, dtypes, part))
    return f"complex({r} * cos{t}, {r} * sin{t})"


def _xlogy(op, x, dtypes, out):
    a, b = (f"({one})" for one in _of_result(x, dtypes, out))
    return f"where({a} == 0.0, 0.0, {a} * log{b})"


def _xlogx(op, x, dtypes, out):
    return _xlogy(op, [x[0], x[0]], [dtypes[0], dtypes[0]], out)


try:  # PyTensor 2
    from pytensor.tensor.xlogx import XlogX, XlogY0

    _RULES[XlogX], _RULES[XlogY0] = _xlogx, _xlogy
except ImportError:
    pass


class Text:
    """Statements that compute the outputs of a scalar op. `operands` are the names of its inputs."""

    def __init__(self):
        self.statements = []
        self.names = 0

    def define(self, text):
        self.names += 1
        name = f"t{self.names}"
        self.statements.append(f"{name} = {text}")
        return name

    def add(self, op, operands, dtypes, outs):
        """Adds a scalar op, and returns the names of its results. `outs` are their dtypes."""
        if not all(dtype in _DTYPES for dtype in (*dtypes, *outs)):
            raise Unsupported("a dtype")
        inner = getattr(op, "fgraph", None)
        if isinstance(op, ps.Composite):
            names = dict(zip(inner.inputs, zip(operands, dtypes)))
            for node in inner.toposort():
                given = [self.operand(names, x) for x in node.inputs]
                results = self.add(node.op, [x for x, _ in given], [x for _, x in given], [x.type.dtype for x in node.outputs])
                names.update((x, (name, x.type.dtype)) for x, name in zip(node.outputs, results))
            return [self.operand(names, x)[0] for x in inner.outputs]
        rule = next((_RULES[kind] for kind in type(op).__mro__ if kind in _RULES), None)
        if rule is None:
            raise Unsupported(f"{op}")
        text = rule(op, operands, dtypes, outs[0])
        if outs[0] == "float16":  # which expressions compute in float32, from their inputs to their outputs
            text = f"convert({text}, float16)"
        return [self.define(text)]

    @staticmethod
    def operand(names, x):
        if x in names:
            return names[x]
        if isinstance(x, Constant):
            return literal(x.data, x.type.dtype), x.type.dtype
        raise Unsupported(f"the variable {x}")


def of_node(scalar_op, dtypes, outs, numbers=()):
    """The text of a scalar op and the names of its operands: x0, x1 and so on.

    `numbers` are the positions of operands that are given as numbers, which have no dtype until the text converts them.
    """
    names = [f"x{i}" for i in range(len(dtypes))]
    text = Text()
    given = [text.define(f"convert({name}, {dtype})") if i in numbers else name for i, (name, dtype) in enumerate(zip(names, dtypes))]
    results = text.add(scalar_op, given, dtypes, outs)
    return "; ".join([*text.statements, *(f"convert({name}, {dtype})" for name, dtype in zip(results, outs))]), names
