# SPDX-License-Identifier: Apache-2.0
"""Names of NumPy and PyTorch: reductions, scans and elementwise functions. See _names.py."""
from __future__ import annotations

import builtins
import functools
import math
import types
from typing import Any, Callable

from . import _core, _creation, _dtypes, _functions, _manipulation, _numeric, _ops, _reductions, _sorting
from ._core import Array, DType, array_of
from ._creation import arrays_of
from ._dtypes import INEXACT
from ._elementwise import _computed, _inexact
from ._errors import renamed
from ._manipulation import _axis, _flat, _whole
from ._names_common import Axis, Values, _number_or_array
from ._names_indices import ndindex
from .expressions import expression


# ---- Reductions and scans -------------------------------------------------------------------------------------------


def amax(x: Values, axis: Any = None, keepdims: bool = False, out: Array | None = None, **names: Any) -> Array:
    """max, whose axis PyTorch calls dim, with its `where` and `initial`.

    >>> compute.amax([[1, 5], [7, 2]], dim=1)
    Array([5, 7], dtype=int64)
    """
    if names:
        return _reductions._renamed(_functions.max, names, x, axis=axis, out=out, keepdims=keepdims)
    return _functions.max(x, axis=axis, out=out, keepdims=keepdims)


def amin(x: Values, axis: Any = None, keepdims: bool = False, out: Array | None = None, **names: Any) -> Array:
    """min, whose axis PyTorch calls dim, with its `where` and `initial`.

    >>> compute.amin([[1, 5], [7, 2]], dim=1)
    Array([1, 2], dtype=int64)
    """
    if names:
        return _reductions._renamed(_functions.min, names, x, axis=axis, out=out, keepdims=keepdims)
    return _functions.min(x, axis=axis, out=out, keepdims=keepdims)


def ptp(x: Values, axis: Any = None, keepdims: bool = False) -> Array:
    """The distance of the least and the greatest element.

    >>> compute.ptp([3, 9, 4])
    Array(6, dtype=int64)
    """
    x = array_of(x)
    return _functions.max(x, axis=axis, keepdims=keepdims) - _functions.min(x, axis=axis, keepdims=keepdims)


def _scan(name, op, x, axis, dtype, out):
    x = array_of(x)
    if x.dtype is _dtypes.bool:
        x = _ops.cast(x, dtype=_dtypes.int64)
    x, axis = (_flat(x), 0) if axis is None else (x, _whole(axis, name))
    return op(x, axis=axis, dtype=dtype, out=out)


def cumsum(x: Values, axis: Axis = None, dtype: DType | None = None, out: Array | None = None, **names: Any) -> Array:
    """cumulative_sum, without an axis of the flattened array.

    >>> compute.cumsum([[1, 2], [3, 4]])
    Array([ 1,  3,  6, 10], dtype=int64)
    """
    if names:
        return renamed(cumsum, names, x, axis=axis, dtype=dtype, out=out)
    return _scan("cumsum", _ops.cumulative_sum, x, axis, dtype, out)


def cumprod(x: Values, axis: Axis = None, dtype: DType | None = None, out: Array | None = None, **names: Any) -> Array:
    """cumulative_prod, without an axis of the flattened array.

    >>> compute.cumprod([1, 2, 3])
    Array([1, 2, 6], dtype=int64)
    """
    if names:
        return renamed(cumprod, names, x, axis=axis, dtype=dtype, out=out)
    return _scan("cumprod", _ops.cumulative_prod, x, axis, dtype, out)


def nancumsum(x: Values, axis: Axis = None, dtype: DType | None = None, out: Array | None = None) -> Array:
    """cumsum, where NaN counts as 0.

    >>> compute.nancumsum([1.0, compute.nan, 2.0])
    Array([1., 1., 3.], dtype=float32)
    """
    return cumsum(_numeric._filled(array_of(x), 0), axis, dtype, out)


def nancumprod(x: Values, axis: Axis = None, dtype: DType | None = None, out: Array | None = None) -> Array:
    """cumprod, where NaN counts as 1.

    >>> compute.nancumprod([2.0, compute.nan, 3.0])
    Array([2., 2., 6.], dtype=float32)
    """
    return cumprod(_numeric._filled(array_of(x), 1), axis, dtype, out)


def ediff1d(x: Values, to_end: Any = None, to_begin: Any = None) -> Array:
    """The differences of neighbours in the flattened array, with `to_begin` in front and `to_end` behind.

    >>> compute.ediff1d([[1, 4], [9, 16]])
    Array([3, 5, 7], dtype=int64)
    """
    x = _flat(x)
    parts = [None if one is None else _flat(_number_or_array(one, x)) for one in (to_begin, to_end)]
    found = _functions.diff(x)
    return _manipulation.concat([part for part in (parts[0], found, parts[1]) if part is not None]) if any(part is not None for part in parts) else found


def aminmax(x: Values, *, dim: Axis = None, keepdim: bool = False) -> tuple[Array, Array]:
    """min and max.

    >>> compute.aminmax([3, 1, 2])
    (Array(1, dtype=int64), Array(3, dtype=int64))
    """
    return _functions.min(x, axis=dim, keepdims=keepdim), _functions.max(x, axis=dim, keepdims=keepdim)


def kthvalue(x: Values, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Array, Array]:
    """The `k`-th smallest elements along an axis, counted from 1, and their indices.

    >>> compute.kthvalue([5, 1, 4], 2)
    (Array(4, dtype=int64), Array(2, dtype=int64))
    """
    x = array_of(x)
    axis = _axis(dim, x.ndim, "kthvalue")
    if not 1 <= k <= x.shape[axis]:
        raise ValueError(f"kthvalue: k is {k}; expected 1 to {x.shape[axis]}")
    place = (slice(None),) * axis + (slice(k - 1, k),)
    if 8 * k <= x.shape[axis]:
        found = [part[place] for part in _functions.top_k(x, k, axis=axis, largest=False)]
    else:
        indices = _functions.argsort(x, axis=axis)[place]
        found = [_ops.take_along_axis(x, indices, axis=axis), indices]
    values, indices = found if keepdim else (_manipulation.squeeze(part, axis) for part in found)
    return values, indices


def histogram2d(x: Values, y: Values, bins: Any = 10, range: Any = None, density: bool = False, weights: Values | None = None) -> tuple[Array, Array, Array]:
    """The number of points (x[i], y[i]) in each bin of a grid, and the edges along x and y.

    `bins` is a number, a vector of edges, or a pair of these for x and y, and `range` a pair of pairs of ends. `weights`
    and `density` are as of histogram. Waits for the points.

    >>> compute.histogram2d([0.0, 1.0, 1.0], [0.0, 2.0, 2.0], bins=2)[0]
    Array([[1., 0.],
           [0., 2.]], dtype=float32)
    """
    x, y, weights = arrays_of(x, y, weights)
    pairs = bins if isinstance(bins, (list, tuple)) and len(bins) == 2 else (bins, bins)
    edges = [_functions.histogram(one, bins=many, range=ends)[1] for one, many, ends in zip((x, y), pairs, range or (None, None))]
    places = []
    for one, edge in zip((x, y), edges):
        one, edge = _numeric._common(one, edge)
        at = _functions.searchsorted(edge, one, side="right") - 1
        at = _functions.where(_ops.equal(one, edge[-1]), edge.size - 2, at)
        places.append(_functions.where(_ops.logical_or(at < 0, at > edge.size - 2), -1, at))
    shape = tuple(edge.size - 1 for edge in edges)
    inside = _ops.minimum(*places) >= 0
    at = _functions.where(inside, places[0] * shape[1] + places[1], math.prod(shape))
    found = _functions.bincount(at, weights=None if weights is None else _inexact(weights), minlength=math.prod(shape) + 1)[:-1]
    found = _core.reshape_view(_inexact(found), shape)
    if density:
        found = found / _functions.sum(found) / _core.reshape_view(_functions.diff(edges[0]), (shape[0], 1)) / _functions.diff(edges[1])
    return found, edges[0], edges[1]


def histc(x: Values, bins: int = 100, min: float = 0, max: float = 0) -> Array:
    """The number of elements in each of so many bins of one width from `min` to `max`, or of the elements' range if both are equal.

    >>> compute.histc([1.0, 2.0, 1.0], bins=4, min=0, max=3)
    Array([0., 2., 1., 0.], dtype=float32)
    """
    x = _inexact(array_of(x))
    if type(bins) is not int or bins < 1 or x.dtype not in _dtypes.FLOATS:
        return _functions.astype(_functions.histogram(x, bins, range=None if min == max else (min, max))[0], x.dtype)
    least, greatest = _sorting._limits(x, None if min == max else (min, max))
    return _ops.cast(_ops.histogram(x, bins=bins, minimum=least, maximum=greatest), dtype=x.dtype)  # without the edges


def apply_along_axis(function: Callable[..., Any], axis: int, x: Values, *arguments: Any, **options: Any) -> Array:
    """The values of a function of each vector along an axis, called one after the other; functions with `axis` do all at once.

    >>> compute.apply_along_axis(lambda row: row[0] + row[-1], 1, [[1, 2, 3], [4, 5, 6]])
    Array([4, 10], dtype=int64)
    """
    x = array_of(x)
    at = _axis(axis, x.ndim, "apply_along_axis")
    rows = _manipulation.moveaxis(x, at, -1)
    found = [_creation.asarray(function(rows[index], *arguments, **options)) for index in ndindex(rows.shape[:-1])]
    if not found:
        raise ValueError("apply_along_axis: an array without elements has no vectors")
    values = _manipulation.reshape(_ops.stack(*found, axis=0), (*rows.shape[:-1], *found[0].shape))
    return _manipulation.moveaxis(values, tuple(range(x.ndim - 1, values.ndim)), tuple(range(at, at + found[0].ndim))) if found[0].ndim else values


# ---- Elementwise ----------------------------------------------------------------------------------------------------


def around(x: Values, decimals: int = 0, out: Array | None = None) -> Array:
    """`x` rounded to so many decimals, halves to even.

    >>> compute.around([1.25, 2.71], 1)
    Array([1.2, 2.7], dtype=float32)
    """
    x = array_of(x)
    if decimals == 0 or (x.dtype not in INEXACT and decimals > 0):
        return _ops.TABLE["round"]["run"](x, out=out)
    scale = 10.0 ** builtins.abs(decimals)
    if x.dtype not in INEXACT:
        scale = int(scale)
        low = x // scale * scale
        far, half = x - low, scale // 2
        up = _ops.logical_or(far > half, _ops.logical_and(far == half, low // scale % 2 == 1))
        found = _functions.where(up, low + scale, low)
        return found if out is None else _ops.copy(found, out=out)
    if decimals > 0:
        return _ops.TABLE["divide"]["run"](_ops.round(x * scale), scale, out=out)
    return _ops.TABLE["multiply"]["run"](_ops.round(x / scale), scale, out=out)


_MISSING = object()


def _second(name, x2, other):
    """The second operand, which PyTorch calls `other`."""
    x2 = other if x2 is _MISSING else x2
    if x2 is _MISSING:
        raise TypeError(f"{name}() missing 1 required positional argument: 'x2'")
    return x2


def _add(x1, x2=_MISSING, *out, alpha=None, other=_MISSING, **options):
    """x1 + alpha x2."""
    x2 = _second("add", x2, other)
    return _with_options("add", (x1, x2 if alpha is None else _ops.multiply(array_of(x2), alpha), *out), options)


def _subtract(x1, x2=_MISSING, *out, alpha=None, other=_MISSING, **options):
    """x1 - alpha x2."""
    x2 = _second("subtract", x2, other)
    return _with_options("subtract", (x1, x2 if alpha is None else _ops.multiply(array_of(x2), alpha), *out), options)


def _divide(x1, x2=_MISSING, *out, rounding_mode=None, other=_MISSING, **options):
    """x1 / x2, rounded as PyTorch's `rounding_mode` says."""
    x2 = _second("divide", x2, other)
    if rounding_mode not in (None, "floor", "trunc"):
        raise ValueError(f"divide: rounding_mode is {rounding_mode!r}; expected None, 'floor' or 'trunc'")
    if rounding_mode != "trunc":
        return _with_options("divide" if rounding_mode is None else "floor_divide", (x1, x2, *out), options)
    x1, x2 = arrays_of(x1, x2)
    if _dtypes.result_type(x1, x2) in INEXACT:
        return _ops.trunc(_with_options("divide", (x1, x2, *out), options))
    down = _ops.floor_divide(x1, x2)
    is_negative = _ops.logical_and(_ops.not_equal(down * x2, x1), _ops.not_equal(_ops.less(x1, 0), _ops.less(x2, 0)))
    return _with_options("add", (down, is_negative, *out), options)


def _logit(x, *out, eps=None, **options):
    """log(x / (1 - x)), of x limited to [eps, 1 - eps]."""
    return _with_options("logit", (x if eps is None else _functions.clip(_inexact(array_of(x)), eps, 1 - eps), *out), options)


def _with_options(name, inputs, options):
    """An elementwise function with what it has in NumPy: `dtype`, `where`, and an array for the result behind the operands. A hook of the extension."""
    run, count = _ops.TABLE[name]["run"], len(_ops.TABLE[name]["inputs"].split())
    inputs = (*(options.pop(key) for key in ("input", "self") if key in options), *inputs)
    inputs = (*inputs, *(options.pop(key) for key in ("other", "exponent", "divisor", "value", "values") if key in options))
    if len(inputs) == count + 1 and "out" not in options and isinstance(inputs[-1], (Array, types.NoneType)):
        *inputs, options["out"] = inputs
    if len(inputs) != count:
        raise TypeError(f"{name} takes {count} argument{'s' * (count > 1)}, not {len(inputs)}")
    dtype, where = options.pop("dtype", None), options.pop("where", True)
    if dtype is not None:
        inputs = [x if isinstance(x, _dtypes.NUMBERS) else _functions.astype(x, dtype, copy=False) for x in inputs]
    if where is True:
        return run(*inputs, **options)
    out = options.pop("out", None)
    if out is None:
        raise TypeError(f"{name}: where needs out, whose elements stay as they are where the mask is false; pass an array")
    out[...] = _functions.where(where, run(*inputs, **options), out)
    return out


def _extreme_number(op, x1, x2):
    """The result of maximum or minimum, but the number where the other one of the two is NaN."""
    return _functions.where(_ops.not_equal(x1, x1) if isinstance(x1, Array) else x1 != x1, x2,
                            _functions.where(_ops.not_equal(x2, x2) if isinstance(x2, Array) else x2 != x2, x1, op(x1, x2)))


def fmax(x1: Values, x2: Values) -> Array:
    """The greater of two elements; of NaN and a number, the number.

    >>> compute.fmax([1.0, compute.nan], [0.0, 2.0])
    Array([1., 2.], dtype=float32)
    """
    return _extreme_number(_ops.maximum, *arrays_of(x1, x2))


def fmin(x1: Values, x2: Values) -> Array:
    """The lesser of two elements; of NaN and a number, the number.

    >>> compute.fmin([1.0, compute.nan], [0.0, 2.0])
    Array([0., 2.], dtype=float32)
    """
    return _extreme_number(_ops.minimum, *arrays_of(x1, x2))


def _reflected_divmod(x2, x1):
    return divmod(x1, x2)


def divmod(x1: Values, x2: Values) -> tuple[Array, Array]:
    """floor_divide and remainder.

    >>> compute.divmod([7, -7], 3)
    (Array([ 2, -3], dtype=int64), Array([1, 2], dtype=int64))
    """
    x1, x2 = arrays_of(x1, x2)
    return _ops.floor_divide(x1, x2), _ops.remainder(x1, x2)


def _integers(name, x1, x2):
    """Two arrays of integers; numbers take the dtype of an array. Of other dtypes the divisions of gcd need not end."""
    x1, x2 = arrays_of(x1, x2)
    x1 = _number_or_array(x1, x2) if isinstance(x2, Array) else _creation.asarray(x1)
    x2 = _number_or_array(x2, x1)
    for x in (x1, x2):
        if x.dtype not in _dtypes.INTEGERS:
            raise TypeError(f"{name}: {x.dtype.name} is not an integer dtype; convert it")
    return x1, x2


def gcd(x1: Values, x2: Values) -> Array:
    """The greatest common divisors of integers. Waits for them.

    Raises TypeError for other dtypes.

    >>> compute.gcd([12, 7, 0], 18)
    Array([ 6,  1, 18], dtype=int64)
    """
    x1, x2 = _integers("gcd", x1, x2)
    while bool(_functions.any(x2 != 0)):
        x1, x2 = _functions.where(x2 != 0, x2, x1), _functions.where(x2 != 0, x1 % x2, 0)
    return _ops.abs(x1)  # at the end, because the least integer has no positive counterpart


def lcm(x1: Values, x2: Values) -> Array:
    """The least common multiples of integers. Waits for them.

    Raises TypeError for other dtypes.

    >>> compute.lcm(4, [6, 0])
    Array([12,  0], dtype=int64)
    """
    x1, x2 = _integers("lcm", x1, x2)
    return _ops.abs(x1 // gcd(x1, x2) * x2)


def modf(x: Values) -> tuple[Array, Array]:
    """The fractional and the whole parts.

    >>> compute.modf([1.5, -2.25])
    (Array([ 0.5 , -0.25], dtype=float32), Array([ 1., -2.], dtype=float32))
    """
    x = _inexact(array_of(x))
    whole = _ops.trunc(x)
    return _ops.copysign(_functions.where(_ops.isinf(x), 0, x - whole), x), whole


_FRACTION = _core.expression("x - trunc(x)", ("x",), ())


def frac(x: Values) -> Array:
    """The fractional parts, with the sign of `x`.

    >>> compute.frac([1.5, -2.25])
    Array([ 0.5 , -0.25], dtype=float32)
    """
    x = array_of(x)
    return _FRACTION.map([x], (), None)[0] if type(x) is Array and x.dtype in _dtypes.FLOATS else x - _ops.trunc(x)


def ldexp(x1: Values, x2: Values) -> Array:
    """x1 times 2 to the power of x2.

    >>> compute.ldexp([1.0, 3.0], [2, -1])
    Array([4. , 1.5], dtype=float32)
    """
    x1, x2 = arrays_of(x1, x2)
    x1 = _inexact(x1 if isinstance(x2, _dtypes.NUMBERS) or not isinstance(x1, _dtypes.NUMBERS) else _creation.asarray(x1, device=x2.device))
    dtype = _dtypes.finfo(x1.dtype).dtype  # the real one of complex numbers
    # In three steps, because the power may be out of range where the product is not.
    limit = 3 * (math.frexp(_dtypes.finfo(dtype).max)[1] - 2)
    x2 = _functions.astype(_functions.clip(x2, -limit, limit), dtype, copy=False)
    third = _ops.trunc(x2 / 3)
    step = _ops.pow(2.0, third)
    return x1 * step * step * _ops.pow(2.0, x2 - 2 * third)


def _rounded_once(function, *values):
    """A function of arrays and numbers. Halves are computed in float32 and rounded once, as ops do."""
    arrays = [x for x in values if not isinstance(x, _dtypes.NUMBERS)]
    if not arrays:
        return function(array_of(values[0]), *values[1:])
    dtypes = {x.dtype for x in arrays}
    if not dtypes.isdisjoint(_dtypes.FLOAT8):
        narrow = next(x for x in arrays if x.dtype in _dtypes.FLOAT8)
        return _ops.add(narrow, narrow)  # refuses it; an expression would convert it
    if len(dtypes) != 1 or not dtypes <= {_dtypes.float16, _dtypes.bfloat16}:
        return function(*values)
    wide = [x if isinstance(x, _dtypes.NUMBERS) else _ops.cast(x, dtype=_dtypes.float32) for x in values]
    return _ops.cast(function(*wide), dtype=dtypes.pop())


# The distance of equal infinities is 0, not NaN.
_LOG_OF_POWERS = expression(f"d = where(x == y, 0, x - y); max(x, y) + log1p(exp2(-abs(d))) * {1 / math.log(2)!r}", "x", "y")


def logaddexp2(x1: Values, x2: Values) -> Array:
    """log2(2 ** x1 + 2 ** x2), without overflow.

    >>> compute.logaddexp2([1.0, 3.0], [1.0, 3.0])
    Array([2., 4.], dtype=float32)
    """
    x1, x2 = arrays_of(x1, x2)
    x1 = _inexact(_number_or_array(x1, x2) if isinstance(x2, Array) else array_of(x1))
    return _rounded_once(_LOG_OF_POWERS, x1, _inexact(_number_or_array(x2, x1)))


_ADDCMUL, _ADDCDIV = (expression(f"x + a {sign} b", "x", "a", "b") for sign in "*/")
_ADDCMUL_SCALED, _ADDCDIV_SCALED = (expression(f"x + a {sign} b * value", "x", "a", "b", "value") for sign in "*/")
_LERP = expression("start + weight * (end - start)", "start", "end", "weight")
# Of arrays of float32, which most are, and a number.
_ADD_PRODUCT, _LERP_BY_NUMBER = _ADDCMUL.evaluator(), _LERP.evaluator("weight")
_ADD_QUOTIENT, _ADD_SCALED_PRODUCT, _ADD_SCALED_QUOTIENT = _ADDCDIV.evaluator(), _ADDCMUL_SCALED.evaluator("value"), _ADDCDIV_SCALED.evaluator("value")


def _is_one(value):
    return type(value) is int and value == 1


def addcmul(x: Values, a: Values, b: Values, *, value: float = 1) -> Array:
    """x + value a b.

    >>> compute.addcmul([1.0], [2.0], [3.0], value=0.5)
    Array([4.], dtype=float32)
    """
    if type(x) is type(a) is type(b) is Array and x.dtype is a.dtype is b.dtype is _dtypes.float32 and type(value) in (int, float):
        return _ADD_PRODUCT((x, a, b), (), None)[0] if _is_one(value) else _ADD_SCALED_PRODUCT((x, a, b), (value,), None)[0]
    values = arrays_of(x, a, b)
    return _rounded_once(_ADDCMUL, *values) if _is_one(value) else _rounded_once(_ADDCMUL_SCALED, *values, value)


def addcdiv(x: Values, a: Values, b: Values, *, value: float = 1) -> Array:
    """x + value a / b.

    >>> compute.addcdiv([1.0], [3.0], [2.0])
    Array([2.5], dtype=float32)
    """
    if type(x) is type(a) is type(b) is Array and x.dtype is a.dtype is b.dtype is _dtypes.float32 and type(value) in (int, float):
        return _ADD_QUOTIENT((x, a, b), (), None)[0] if _is_one(value) else _ADD_SCALED_QUOTIENT((x, a, b), (value,), None)[0]
    values = arrays_of(x, a, b)
    return _rounded_once(_ADDCDIV, *values) if _is_one(value) else _rounded_once(_ADDCDIV_SCALED, *values, value)


def unwrap(p: Values, discont: float | None = None, axis: int = -1, *, period: float = 2 * math.pi) -> Array:
    """Angles whose neighbours along an axis differ by at most half a period, by adding periods.

    Differences of at most `discont` stay as they are.

    >>> compute.unwrap([0, 3, 6, 1], period=8)
    Array([0., 3., 6., 9.], dtype=float32)
    """
    p = _inexact(array_of(p))
    steps = _functions.diff(p, axis=axis)
    half = period / 2
    wrapped = _ops.remainder(steps + half, period) - half
    wrapped = _functions.where(_ops.logical_and(_ops.equal(wrapped, -half), steps > 0), half, wrapped)
    moves = _functions.where(_ops.abs(steps) < (half if discont is None else builtins.max(half, discont)), 0, wrapped - steps)
    first = slice(None, 1)
    before = (slice(None),) * _axis(axis, p.ndim, "unwrap")
    return _manipulation.concat([p[before + (first,)], p[before + (slice(1, None),)] + _functions.cumulative_sum(moves, axis=axis)], axis=axis)


def fabs(x: Values) -> Array:
    """abs, of integers as numbers of the default dtype.

    >>> compute.fabs([-1, 2])
    Array([1., 2.], dtype=float32)
    """
    return _ops.abs(_inexact(array_of(x)))


def float_power(x1: Values, x2: Values) -> Array:
    """pow, of integers as numbers of the default dtype.

    >>> compute.float_power(compute.asarray([1, 2]), -1)
    Array([1. , 0.5], dtype=float32)
    """
    x1, x2 = arrays_of(x1, x2)
    return _ops.pow(*(_inexact(x) if isinstance(x, Array) or hasattr(x, "backward") else float(x) if isinstance(x, int) else x for x in (x1, x2)))


_EXP2 = _core.expression("exp2(x)", ("x",), ())


def exp2(x: Values) -> Array:
    """2 to the power of `x`.

    >>> compute.exp2([1, 3])
    Array([2., 8.], dtype=float32)
    """
    x = _inexact(array_of(x))
    return _EXP2.map([x], (), None)[0] if isinstance(x, Array) and x.dtype not in _dtypes.COMPLEX else _ops.pow(2.0, x)


def angle(x: Values, deg: bool = False) -> Array:
    """The angle of complex numbers in radians, or in degrees.

    >>> compute.angle([1j], deg=True)
    Array([90.], dtype=float32)
    """
    x = array_of(x)
    found = _ops.atan2(_ops.imag(x), _ops.real(x)) if x.dtype in _dtypes.COMPLEX else _ops.atan2(0.0, _inexact(x))
    return _ops.rad2deg(found) if deg else found


# With the greatest number b and the least one -b, which tools/opgen/rows.cpp compiles for cpu, and with other ones.
_NUMBERED = _core.expression("where(isnan(x), a, min(max(x, -b), b))", ("x",), ("a", "b"))
_NUMBERED_EACH = _core.expression("where(isnan(x), a, where(x == inf, b, where(x == -inf, c, x)))", ("x",), ("a", "b", "c"))


@functools.cache
def _greatest(dtype):
    return _dtypes.finfo(dtype).max


def nan_to_num(x: Values, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Array:
    """`x` with numbers in the place of NaN and infinities, for which the default is the greatest and the least number.

    >>> compute.nan_to_num([compute.nan, 1.0])
    Array([0., 1.], dtype=float32)
    """
    x = array_of(x)
    if not isinstance(copy, builtins.bool):
        raise TypeError(f"nan_to_num: copy is {copy!r}; PyTorch's second argument is nan={copy!r} here")
    are_given = posinf is not None or neginf is not None
    if not are_given and isinstance(x, Array) and x.dtype in _dtypes.FLOATS and isinstance(nan, (int, float)):
        return _NUMBERED.map([x], (nan, _greatest(x.dtype)), None if copy else (x,))[0]
    if x.dtype in _dtypes.COMPLEX:
        found = x if not copy else _ops.copy(x)
        found.real, found.imag = (nan_to_num(part, True, nan, posinf, neginf) for part in (_ops.real(x), _ops.imag(x)))
        return found
    if _computed(x).dtype not in _dtypes.FLOATS:
        return _ops.copy(x) if copy else x
    limits = _dtypes.finfo(x.dtype)
    numbers = [nan, limits.max if posinf is None else posinf, limits.min if neginf is None else neginf]
    if isinstance(x, Array) and x.dtype in _dtypes.FLOATS and all(isinstance(number, (int, float)) for number in numbers):
        return _NUMBERED_EACH.map([x], numbers, None if copy else (x,))[0]
    found = _ops.where(_ops.isnan(x), numbers[0], x)
    for place, number in ((math.inf, numbers[1]), (-math.inf, numbers[2])):
        found = _ops.where(_ops.equal(x, place), number, found)
    return found if copy else _ops.copy(found, out=x)


def isreal(x: Values) -> Array:
    """Whether the imaginary part of each element is 0.

    >>> compute.isreal([1 + 0j, 1j])
    Array([ True, False], dtype=bool)
    """
    x = array_of(x)
    return _ops.equal(_ops.imag(x), 0) if x.dtype in _dtypes.COMPLEX else _creation.ones_like(x, dtype=_dtypes.bool)


def iscomplex(x: Values) -> Array:
    """Whether the imaginary part of each element is not 0.

    >>> compute.iscomplex([1 + 0j, 1j])
    Array([False,  True], dtype=bool)
    """
    x = array_of(x)
    return _ops.not_equal(_ops.imag(x), 0) if x.dtype in _dtypes.COMPLEX else _creation.zeros_like(x, dtype=_dtypes.bool)


def isrealobj(x: Values) -> bool:
    """Whether the dtype of `x` is not complex.

    >>> compute.isrealobj([1j])
    False
    """
    return array_of(x).dtype not in _dtypes.COMPLEX


def iscomplexobj(x: Values) -> bool:
    """Whether the dtype of `x` is complex.

    >>> compute.iscomplexobj([1j])
    True
    """
    return array_of(x).dtype in _dtypes.COMPLEX


def isposinf(x: Values) -> Array:
    """Whether each element is the positive infinity.

    >>> compute.isposinf([1.0, compute.inf])
    Array([False,  True], dtype=bool)
    """
    return _ops.equal(array_of(x), math.inf)


def isneginf(x: Values) -> Array:
    """Whether each element is the negative infinity.

    >>> compute.isneginf([1.0, -compute.inf])
    Array([False,  True], dtype=bool)
    """
    return _ops.equal(array_of(x), -math.inf)


def lerp(start: Values, end: Values, weight: Values) -> Array:
    """start + weight (end - start).

    >>> compute.lerp(compute.asarray([0.0, 10.0]), [10.0, 20.0], 0.5)
    Array([ 5., 15.], dtype=float32)
    """
    if type(start) is type(end) is Array and type(weight) is float and start.dtype is end.dtype is _dtypes.float32:
        return _LERP_BY_NUMBER((start, end), (weight,), None)[0]
    return _rounded_once(_LERP, *arrays_of(start, end, weight))


def clamp_min(x: Values, min: Any) -> Array:
    """`x`, or `min` where that is greater.

    >>> compute.clamp_min([1, 5], 2)
    Array([2, 5], dtype=int64)
    """
    return _functions.clip(x, min, None)


def clamp_max(x: Values, max: Any) -> Array:
    """`x`, or `max` where that is less.

    >>> compute.clamp_max([1, 5], 2)
    Array([1, 2], dtype=int64)
    """
    return _functions.clip(x, None, max)


_ARE_EQUAL = expression("x == y", "x", "y").reducer("all")


def array_equal(x1: Values, x2: Values, equal_nan: bool = False) -> bool:
    """Whether two arrays have one shape and equal elements. PyTorch's equal.

    >>> compute.array_equal([1, 2], compute.asarray([1, 2]))
    True
    """
    x1, x2 = (_creation.asarray(x) for x in arrays_of(x1, x2))
    if x1.shape != x2.shape:
        return False
    if not equal_nan and x1.dtype is x2.dtype:
        return bool(_ARE_EQUAL([x1, x2], (), None, False))
    same = _ops.equal(x1, x2)
    if equal_nan:
        same = _ops.logical_or(same, _ops.logical_and(_ops.not_equal(x1, x1), _ops.not_equal(x2, x2)))
    return bool(_functions.all(same))


def array_equiv(x1: Values, x2: Values) -> bool:
    """Whether two arrays broadcast, and their elements are equal.

    >>> compute.array_equiv([1, 2], [[1, 2], [1, 2]])
    True
    """
    x1, x2 = (_creation.asarray(x) for x in arrays_of(x1, x2))
    try:
        _manipulation.broadcast_shapes(x1.shape, x2.shape)
    except ValueError:
        return False
    return bool(_functions.all(_ops.equal(x1, x2)))


def cummax(x: Values, dim: int) -> Any:
    """The greatest elements up to each position along an axis, and their indices, of equal ones the last.

    >>> compute.cummax([1, 3, 2], 0)
    Selected(values=Array([1, 3, 3], dtype=int64), indices=Array([0, 1, 1], dtype=int64))
    """
    return _running(_functions.cumulative_max, array_of(x), dim)


def cummin(x: Values, dim: int) -> Any:
    """The least elements up to each position along an axis, and their indices, of equal ones the last.

    >>> compute.cummin([3, 1, 2], 0)
    Selected(values=Array([3, 1, 1], dtype=int64), indices=Array([0, 1, 1], dtype=int64))
    """
    return _running(_functions.cumulative_min, array_of(x), dim)


@functools.cache
def _place_of_extreme(axis, dtype):
    return _core.expression(f"where((x == y) | (x != x), convert(index({axis}), {dtype}), 0)", ("x", "y"), ())


def _running(function, x, dim):
    values, at = function(x, axis=dim), _axis(dim, x.ndim, "cummax")
    if isinstance(x, Array):
        places, = _place_of_extreme(at, "int32" if x.device.name == "cpu" and x.shape[at] < 2 ** 31 else "int64").map([x, values], (), None)
    else:
        positions = _core.reshape_view(_creation.arange(x.shape[at], device=x.device), [-1 if i == at else 1 for i in range(x.ndim)])
        places = _functions.where(_ops.logical_or(_ops.equal(x, values), _ops.not_equal(x, x)), positions, 0)
    return _functions.Selected(values, _functions.astype(_functions.cumulative_max(places, axis=at), _dtypes.int64, copy=False))
