# SPDX-License-Identifier: Apache-2.0
"""keras.ops.numpy: functions of NumPy, with the dtypes that Keras gives their results."""
from __future__ import annotations

import builtins
import math

import compute as cp
import numpy as np
from compute import grad
from keras.src.backend import config
from keras.src.backend.common import dtypes
from keras.src.backend.common.backend_utils import canonicalize_axis, vectorize_impl

from .. import sparse as sparse_ops
from ..sparse import SparseTensor
from ..variable import (DTYPES, TENSORS, cast, channels_last, common, convert_to_numpy,
                        dense_tensor as convert_to_tensor, dtype_of, in_row_major, kind, number_or_tensor)
from .core import vectorized_map

_INTEGERS = frozenset(DTYPES[name] for name in dtypes.INT_TYPES)
_FLOATS = frozenset((cp.float16, cp.bfloat16, cp.float32, cp.float64))
_COMPLEX = frozenset((cp.complex64, cp.complex128))


# ---- Operands and dtypes ---------------------------------------------------------------------------------------------


def _floatx():
    return DTYPES[config.floatx()]


def _axis(axis):
    """An axis as an integer, and several ones as a tuple."""
    if axis is None or isinstance(axis, int):
        return axis
    return tuple(int(one) for one in axis) if isinstance(axis, (list, tuple)) else int(axis)


def _fits(number, dtype):
    return dtype not in _INTEGERS or type(number) is int


def _operands(*xs, also=()):
    """The operands in their common dtype. Numbers of Python stay numbers where there is a tensor beside them."""
    xs = [number_or_tensor(x) for x in xs]
    dtype = common(*builtins.map(kind, xs), *also)
    return _in(dtype, xs)


def _in(dtype, xs):
    if not builtins.any(isinstance(x, TENSORS) for x in xs):
        return [convert_to_tensor(x, dtype) for x in xs]
    return [cast(x, dtype) if isinstance(x, TENSORS) else x if _fits(x, dtype) else convert_to_tensor(x, dtype) for x in xs]


def _tensors(*xs, also=()):
    """Operands as tensors in their common dtype."""
    xs = [convert_to_tensor(x) for x in xs]
    dtype = common(*(x.dtype for x in xs), *also)
    return [cast(x, dtype) for x in xs]


def _joined(xs):
    """Tensors in their common dtype, if they differ in it."""
    xs = [convert_to_tensor(x) for x in xs]
    if len({x.dtype for x in xs}) > 1:
        dtype = common(*(x.dtype for x in xs))
        xs = [cast(x, dtype) for x in xs]
    return xs


def _inexact(x):
    """A tensor of floating-point numbers: integers become what Keras makes of them."""
    x = convert_to_tensor(x)
    return cast(x, _floatx() if x.dtype is cp.int64 else common(x.dtype, float))


def _float_of_integers(x):
    """A tensor whose integers and flags became floatx; other dtypes stay."""
    x = convert_to_tensor(x)
    return x if x.dtype in _FLOATS or x.dtype in _COMPLEX else cast(x, _floatx())


def _number(x):
    """A tensor whose flags became integers; other dtypes stay."""
    x = convert_to_tensor(x)
    return cast(x, cp.int32) if x.dtype is cp.bool else x


def _wide(dtype):
    """The dtype of a sum, as in JAX."""
    if dtype in (cp.bool, cp.int8, cp.int16):
        return cp.int32
    return cp.uint32 if dtype in (cp.uint8, cp.uint16) else dtype


def _of_pair(x1, x2):
    """The dtype of hypot and heaviside."""
    dtype = common(x1.dtype, x2.dtype)
    return cp.float64 if dtype is cp.int64 else dtype if dtype in _FLOATS else _floatx()


def _of_angle(dtype):
    """The dtype of deg2rad and corrcoef."""
    if dtype in (cp.int64, cp.float64):
        return cp.float64
    return dtype if dtype in (cp.float16, cp.bfloat16) else _floatx()


# ---- Elementwise -----------------------------------------------------------------------------------------------------


def _unary(name, convert):
    function = getattr(cp, name)

    def run(x):
        return function(convert(x))

    return run


for _name, _theirs in {"arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
                       "arctanh": "atanh", "ceil": "ceil", "cos": "cos", "cosh": "cosh", "floor": "floor", "log": "log",
                       "log10": "log10", "log1p": "log1p", "log2": "log2", "sin": "sin", "sinc": "sinc",
                       "sinh": "sinh", "sqrt": "sqrt", "tan": "tan", "tanh": "tanh", "angle": "angle"}.items():
    globals()[_name] = _unary(_theirs, _inexact)
for _name in ("exp", "exp2", "expm1", "fabs"):
    globals()[_name] = _unary(_name, _float_of_integers)
for _name in ("isfinite", "isinf", "isnan", "isneginf", "isposinf", "isreal"):
    globals()[_name] = _unary(_name, _number)
for _name in ("logical_not", "ravel", "fliplr", "flipud"):
    globals()[_name] = _unary(_name, convert_to_tensor)


def _binary(name, also=()):
    function = getattr(cp, name)

    def run(x1, x2):
        return function(*_operands(x1, x2, also=also))

    return run


for _name in ("subtract", "maximum", "minimum", "fmax", "fmin", "floor_divide", "equal", "not_equal", "greater",
              "greater_equal", "less", "less_equal"):
    globals()[_name] = _binary(_name)
divide = true_divide = _binary("divide", (float,))
logaddexp, logaddexp2 = _binary("logaddexp", (float,)), _binary("logaddexp2", (float,))
arctan2, nextafter = _binary("atan2", (float,)), _binary("nextafter", (float,))


def add(x1, x2):
    x1, x2 = _operands(x1, x2)
    if isinstance(x1, TENSORS) and isinstance(x2, TENSORS) and x1.ndim == x2.ndim and x1.ndim > 2:
        memory = in_row_major(x1)
        if memory is not None:  # such as a convolution and its bias
            return channels_last(cp.add(memory, cp.permute_dims(x2, (0, x2.ndim - 1, *range(1, x2.ndim - 1)))))
    return cp.logical_or(x1, x2) if _are_flags(x1, x2) else cp.add(x1, x2)


def _are_flags(x1, x2):
    return isinstance(x1, TENSORS) and isinstance(x2, TENSORS) and x1.dtype is cp.bool


def multiply(x1, x2):
    x1, x2 = _operands(x1, x2)
    return cp.logical_and(x1, x2) if _are_flags(x1, x2) else cp.multiply(x1, x2)


def power(x1, x2):
    x1, x2 = _operands(x1, x2)
    return cp.pow(x1, x2)


def _no_flags(x1, x2):
    """Operands in their common dtype, flags as integers."""
    x1, x2 = _operands(x1, x2)
    dtype = kind(x1) if isinstance(x1, TENSORS) else kind(x2)
    return _in(cp.int32 if dtype is cp.bool else dtype, [x1, x2])


def mod(x1, x2):
    return cp.remainder(*_no_flags(x1, x2))


def fmod(x1, x2):
    x1, x2 = (convert_to_tensor(x) for x in _no_flags(x1, x2))
    if x1.dtype in _FLOATS or x2.dtype in _FLOATS:
        return cp.fmod(x1, cast(x2, x1.dtype))
    return cp.multiply(cp.sign(x1), cp.remainder(cp.abs(x1), cp.abs(cast(x2, x1.dtype))))


def divide_no_nan(x1, x2):
    x1, x2 = _operands(x1, x2, also=(float,))
    is_zero = cp.equal(x2, 0)
    return cp.where(is_zero, 0, cp.divide(x1, cp.where(is_zero, 1, x2)))


def _flags(x):
    x = convert_to_tensor(x)
    return x if x.dtype is cp.bool else cp.not_equal(x, 0)


def logical_and(x1, x2):
    return cp.logical_and(_flags(x1), _flags(x2))


def logical_or(x1, x2):
    return cp.logical_or(_flags(x1), _flags(x2))


def logical_xor(x1, x2):
    return cp.logical_xor(_flags(x1), _flags(x2))


def logical_not(x):
    return cp.logical_not(_flags(x))


def bitwise_and(x, y):
    return cp.bitwise_and(*_operands(x, y))


def bitwise_or(x, y):
    return cp.bitwise_or(*_operands(x, y))


def bitwise_xor(x, y):
    return cp.bitwise_xor(*_operands(x, y))


def bitwise_invert(x):
    return cp.bitwise_invert(convert_to_tensor(x))


bitwise_not = bitwise_invert


def bitwise_left_shift(x, y):
    return cp.bitwise_left_shift(*_operands(x, y))


left_shift = bitwise_left_shift


def bitwise_right_shift(x, y):
    return cp.bitwise_right_shift(*_operands(x, y))


right_shift = bitwise_right_shift


def absolute(x):
    x = convert_to_tensor(x)
    return x if x.dtype is cp.bool else cp.abs(x)


abs = absolute


def negative(x):
    return cp.negative(convert_to_tensor(x))


def sign(x):
    x = convert_to_tensor(x)
    return cast(cp.sign(cast(x, cp.int32)), cp.bool) if x.dtype is cp.bool else cp.sign(x)


def signbit(x):
    x = convert_to_tensor(x)
    return cp.signbit(x) if x.dtype in _FLOATS else cp.less(cast(x, cp.int32) if x.dtype is cp.bool else x, 0)


def reciprocal(x):
    return cp.reciprocal(_float_of_integers(x))


def square(x):
    x = convert_to_tensor(x)
    return cp.square(cast(x, cp.int32) if x.dtype is cp.bool else x)


def cbrt(x):
    x = convert_to_tensor(x)
    return cp.cbrt(cast(x, cp.float64 if x.dtype is cp.int64 else x.dtype if x.dtype in _FLOATS else _floatx()))


def deg2rad(x):
    x = convert_to_tensor(x)
    return cp.deg2rad(cast(x, _of_angle(x.dtype)))


def rad2deg(x):
    x = convert_to_tensor(x)
    return cp.rad2deg(cast(x, _of_angle(x.dtype)))


def trunc(x):
    x = convert_to_tensor(x)
    return cp.trunc(x) if x.dtype in _FLOATS else x


def round(x, decimals=0):
    x = convert_to_tensor(x)
    if x.dtype in _FLOATS or x.dtype in _COMPLEX:
        return cp.round(x, decimals=decimals)
    if decimals >= 0:
        return cast(x, cp.int32) if x.dtype is cp.bool else x
    return cast(cp.round(cast(x, _floatx()), decimals=decimals), x.dtype)


def clip(x, x_min, x_max):
    x = convert_to_tensor(x)
    x = cast(x, cp.int32) if x.dtype is cp.bool else x
    x_min, x_max = (bound if bound is None else number_or_tensor(bound) for bound in (x_min, x_max))
    if x_min is not None:
        x = cp.maximum(x, _bound(x_min, x.dtype))
    return x if x_max is None else cp.minimum(x, _bound(x_max, x.dtype))


def _bound(bound, dtype):
    """A bound in the dtype of what it bounds; a number that does not fit becomes the nearest that does."""
    if isinstance(bound, TENSORS):
        return cast(bound, dtype)
    if dtype not in _INTEGERS:
        return bound
    limits = cp.iinfo(dtype)
    return int(builtins.min(builtins.max(bound, limits.min), limits.max))


def hypot(x1, x2):
    x1, x2 = convert_to_tensor(x1), convert_to_tensor(x2)
    dtype = _of_pair(x1, x2)
    return cp.hypot(cast(x1, dtype), cast(x2, dtype))


def heaviside(x1, x2):
    x1, x2 = convert_to_tensor(x1), convert_to_tensor(x2)
    dtype = _of_pair(x1, x2)
    return cp.heaviside(cast(x1, dtype), cast(x2, dtype))


def ldexp(x1, x2):
    x1, x2 = convert_to_tensor(x1), convert_to_tensor(x2)
    if x2.dtype not in _INTEGERS:
        raise TypeError(f"ldexp exponent must be an integer type. Received: x2 dtype={x2.dtype}")
    dtype = common(x1.dtype, x2.dtype, float)
    return cast(cp.ldexp(cast(x1, dtype), x2), dtype)


def gcd(x1, x2):
    return cp.gcd(*_tensors(x1, x2))


def lcm(x1, x2):
    return cp.lcm(*_tensors(x1, x2))


def real(x):
    return cp.real(convert_to_tensor(x))


def imag(x):
    return cp.imag(convert_to_tensor(x))


def conjugate(x):
    x = convert_to_tensor(x)
    return x if x.dtype is cp.bool else cp.conj(x)


conj = conjugate


def nan_to_num(x, nan=0.0, posinf=None, neginf=None):
    x = convert_to_tensor(x)
    return x if x.dtype is cp.bool or x.dtype in _INTEGERS else cp.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


def i0(x):
    x = convert_to_tensor(x)
    return cp.i0(cast(x, cp.float64 if x.dtype in (cp.int64, cp.float64) else common(x.dtype, float)))


def where(condition, x1=None, x2=None):
    condition = _flags(condition)
    if x1 is None or x2 is None:
        return nonzero(condition)
    return cp.where(condition, *_operands(x1, x2))


def select(condlist, choicelist, default=0):
    choices = _operands(*choicelist, default)
    result = convert_to_tensor(choices[-1], common(*builtins.map(kind, choices)))
    for condition, choice in zip(reversed(condlist), reversed(choices[:-1])):
        result = cp.where(_flags(condition), choice, result)
    return result


def isclose(x1, x2, rtol=1e-5, atol=1e-8, equal_nan=False):
    return cp.isclose(*_tensors(x1, x2), rtol=rtol, atol=atol, equal_nan=equal_nan)


def allclose(x1, x2, rtol=1e-5, atol=1e-8, equal_nan=False):
    return cp.all(isclose(x1, x2, rtol, atol, equal_nan))


def isin(x1, x2, assume_unique=False, invert=False):
    return cp.isin(*_tensors(x1, x2), invert=invert)


# ---- Creation --------------------------------------------------------------------------------------------------------


def _extents(shape):
    return [int(n) for n in shape] if isinstance(shape, (list, tuple)) else [int(shape)]


def _dtype(dtype):
    return _floatx() if dtype is None else dtype_of(dtype)


def zeros(shape, dtype=None):
    return cp.zeros(_extents(shape), dtype=_dtype(dtype))


def ones(shape, dtype=None):
    return cp.ones(_extents(shape), dtype=_dtype(dtype))


def empty(shape, dtype=None):
    return zeros(shape, dtype)


def full(shape, fill_value, dtype=None):
    value = convert_to_tensor(fill_value, _dtype(dtype))
    return cp.copy(cp.broadcast_to(value, _extents(shape)))


def _like(x, dtype):
    x = convert_to_tensor(x)
    return tuple(x.shape), x.dtype if dtype is None else dtype_of(dtype)


def zeros_like(x, dtype=None):
    return zeros(*_like(x, dtype))


def ones_like(x, dtype=None):
    return ones(*_like(x, dtype))


def empty_like(x, dtype=None):
    return zeros(*_like(x, dtype))


def full_like(x, fill_value, dtype=None):
    shape, dtype = _like(x, dtype)
    return full(shape, fill_value, dtype)


def array(x, dtype=None):
    return convert_to_tensor(x, dtype=dtype)


def copy(x):
    return cp.copy(convert_to_tensor(x))


def arange(start, stop=None, step=None, dtype=None):
    if dtype is None:
        dtype = common(*(getattr(x, "dtype", type(x)) for x in (start, stop, step) if x is not None))
    dtype = dtype_of(dtype)
    numbers = [x if x is None or type(x) in (int, float) else convert_to_numpy(x).item() for x in (start, stop, step)]
    if stop is None:
        numbers[:2] = 0, numbers[0]
    start, stop, step = *numbers[:2], 1 if step is None else numbers[2]
    if dtype in (cp.float16, cp.bfloat16):
        return cast(cp.arange(start, stop, step, dtype=cp.float32), dtype)
    if dtype in _INTEGERS and not builtins.all(type(x) is int for x in (start, stop, step)):
        return convert_to_tensor(np.arange(start, stop, step, dtype=dtype.name), dtype)
    return cp.arange(start, stop, step, dtype=dtype)


def eye(N, M=None, k=0, dtype=None):
    dtype = _dtype(dtype)
    return cp.eye(int(N), int(N if M is None else M), k=int(k), dtype=dtype)


def identity(n, dtype=None):
    return eye(n, dtype=dtype)


def tri(N, M=None, k=0, dtype=None):
    return cast(cp.tri(int(N), None if M is None else int(M), int(k)), _dtype(dtype))


def _window(function):
    def run(x):
        return cast(function(int(convert_to_tensor(x))), _floatx())

    return run


bartlett, blackman = _window(cp.bartlett), _window(cp.blackman)
hamming, hanning = _window(cp.hamming), _window(cp.hanning)


def kaiser(x, beta):
    size = int(convert_to_tensor(x))
    beta = float(convert_to_tensor(beta))
    if size <= 1:
        return ones((builtins.max(size, 0),))
    half = (size - 1) / 2
    places = (cp.arange(size, dtype=cp.float32) - half) / half
    found = i0(beta * cp.sqrt(cp.maximum(1 - cp.square(places), 0))) / i0(cp.full((), beta, dtype=cp.float32))
    return cast(found, _floatx())


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0):
    if dtype is None:
        dtype = common(*(getattr(x, "dtype", type(x)) for x in (start, stop)), float)
    dtype, num = dtype_of(dtype), int(num)
    computed = dtype if dtype in (cp.float32, cp.float64) or dtype in _COMPLEX else cp.float32
    start, stop = cast(start, computed), cast(stop, computed)
    parts = builtins.max(num - 1 if endpoint else num, 1)
    step = (stop - start) / parts
    start, step = cp.broadcast_arrays(start, step)
    shares = cp.reshape(cp.arange(num, dtype=computed), (num, *[1] * start.ndim))
    found = start + shares * step
    if endpoint and num > 1:
        found = cp.concat([found[:-1], cp.broadcast_to(stop, (1, *start.shape))], axis=0)
    if dtype in _INTEGERS:
        found = cp.floor(found)
    found = cast(found, dtype)
    found = cp.moveaxis(found, 0, axis) if axis != 0 else found
    return (found, step) if retstep else found


def logspace(start, stop, num=50, endpoint=True, base=10, dtype=None, axis=0):
    if dtype is None:
        dtype = common(*(getattr(x, "dtype", type(x)) for x in (start, stop)), float)
    exponents = linspace(start, stop, num, endpoint, dtype="float32", axis=axis)
    return cast(cp.pow(cast(base, exponents.dtype), exponents), dtype)


def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    dtype = _dtype(dtype)
    start, stop = _tensors(start, stop, also=(float,))
    signs = cp.sign(start)
    ends = cp.log(cp.abs(start)), cp.log(cp.abs(stop))
    return cast(signs * cp.exp(linspace(*ends, num, endpoint, dtype="float32", axis=axis)), dtype)


def meshgrid(*x, indexing="xy"):
    return list(cp.meshgrid(*[convert_to_tensor(one) for one in x], indexing=indexing))


def vander(x, N=None, increasing=False):
    x = convert_to_tensor(x)
    found = cp.vander(cast(x, common(x.dtype, config.floatx())), N, increasing=increasing)
    return cast(found, common(x.dtype))


def view(x, dtype=None):
    x = convert_to_tensor(x)
    dtype = x.dtype if dtype is None else dtype_of(dtype)
    return convert_to_tensor(np.asarray(convert_to_numpy(x), order="C").view(dtype.name), dtype)


# ---- Reductions ------------------------------------------------------------------------------------------------------


def _in_memory_order(function, x, axis, keepdims, **options):
    """A reduction. Channels last that are a view are read as they are in memory, and so is what gradients make of them."""
    memory = None if axis is None else in_row_major(x)
    if memory is None:
        return function(x, axis=axis, keepdims=keepdims, **options)
    axes = [one % x.ndim for one in (axis if isinstance(axis, tuple) else (axis,))]
    places = (0, *range(2, x.ndim), 1)  # of the axes of x
    found = channels_last(function(memory, axis=tuple(places[one] for one in axes), keepdims=True, **options))
    return found if keepdims else cp.squeeze(found, tuple(axes))


def sum(x, axis=None, keepdims=False):
    if isinstance(x, SparseTensor):
        return sparse_ops.sum_of(x, _axis(axis), keepdims, _wide(x.dtype))
    x = convert_to_tensor(x)
    return _in_memory_order(cp.sum, x, _axis(axis), keepdims, dtype=_wide(x.dtype))


def prod(x, axis=None, keepdims=False, dtype=None):
    x = convert_to_tensor(x)
    dtype = _wide(common(x.dtype)) if dtype is None else dtype_of(dtype)
    return cp.prod(cast(x, dtype), axis=_axis(axis), keepdims=keepdims, dtype=dtype)


def mean(x, axis=None, keepdims=False):
    x = x if isinstance(x, SparseTensor) else convert_to_tensor(x)
    if x.dtype is cp.bool or x.dtype in _INTEGERS:
        x = cast(x, common(x.dtype, "float32"))
    if isinstance(x, SparseTensor):
        total = sparse_ops.sum_of(x, _axis(axis), keepdims, x.dtype)
        return total.with_values(total.values * (total.size / builtins.max(x.size, 1)))
    return _in_memory_order(cp.mean, x, _axis(axis), keepdims)


def var(x, axis=None, keepdims=False):
    x = convert_to_tensor(x)
    result = common(x.dtype, float)
    if x.dtype not in _COMPLEX:
        x = cast(x, common(x.dtype, "float32"))
    return cast(cp.var(x, axis=_axis(axis), keepdims=keepdims), result)


def std(x, axis=None, keepdims=False):
    return cp.std(_float_of_integers(x), axis=_axis(axis), keepdims=keepdims)


def max(x, axis=None, keepdims=False, initial=None):
    return _extreme(cp.max, cp.maximum, x, axis, keepdims, initial)


def min(x, axis=None, keepdims=False, initial=None):
    return _extreme(cp.min, cp.minimum, x, axis, keepdims, initial)


def _extreme(function, both, x, axis, keepdims, initial=None):
    x = convert_to_tensor(x)
    if x.size == 0 and initial is not None:
        zeros_ = cp.sum(cast(x, cp.int32), axis=_axis(axis), keepdims=keepdims)
        return full(zeros_.shape, initial, x.dtype)
    if x.dtype is cp.bool:
        function, both = {cp.max: (cp.any, cp.logical_or), cp.min: (cp.all, cp.logical_and)}[function]
    found = _in_memory_order(function, x, _axis(axis), keepdims)
    return found if initial is None else both(found, cast(initial, x.dtype))


def amax(x, axis=None, keepdims=False):
    return max(x, axis, keepdims)


def amin(x, axis=None, keepdims=False):
    return min(x, axis, keepdims)


def ptp(x, axis=None, keepdims=False):
    return subtract(max(x, axis, keepdims), min(x, axis, keepdims))


def all(x, axis=None, keepdims=False):
    return cp.all(_flags(x), axis=_axis(axis), keepdims=keepdims)


def any(x, axis=None, keepdims=False):
    return cp.any(_flags(x), axis=_axis(axis), keepdims=keepdims)


def count_nonzero(x, axis=None):
    return cast(cp.count_nonzero(convert_to_tensor(x), axis=_axis(axis)), cp.int32)


def _position(function, x, axis, keepdims):
    x = convert_to_tensor(x)
    if x.dtype is cp.bool:
        x = cast(x, cp.int32)
    if x.dtype in _FLOATS and x.ndim > 0:  # -0.0 counts as less than 0.0
        x = cast(x, common(x.dtype, "float32"))
        tiny = float(cp.finfo(x.dtype).smallest_normal)
        x = cp.where(cp.logical_and(cp.equal(x, 0), cp.signbit(x)), -tiny, x)
    axis = _axis(axis)
    if axis is None and keepdims:
        return cp.reshape(cast(function(x), cp.int32), [1] * x.ndim)
    return cast(function(x, axis=axis, keepdims=keepdims), cp.int32)


def argmax(x, axis=None, keepdims=False):
    return _position(cp.argmax, x, axis, keepdims)


def argmin(x, axis=None, keepdims=False):
    return _position(cp.argmin, x, axis, keepdims)


def average(x, axis=None, weights=None):
    x = convert_to_tensor(x)
    dtype = common(*([x.dtype, float] if weights is None else [x.dtype, float, convert_to_tensor(weights).dtype]))
    if weights is None:
        return mean(cast(x, dtype), axis)
    weights, axis = cast(weights, dtype), _axis(axis)
    if weights.ndim != x.ndim:
        weights = cp.reshape(weights, [n if i == axis % x.ndim else 1 for i, n in enumerate(x.shape)])
    weights = cp.broadcast_to(weights, x.shape)
    return cp.sum(cast(x, dtype) * weights, axis=axis) / cp.sum(weights, axis=axis)


def _cumulative(function, x, axis, dtype):
    x = convert_to_tensor(x)
    dtype = common(x.dtype if dtype is None else dtype_of(dtype))
    dtype = cp.int32 if dtype is cp.bool else dtype
    x = cast(x, dtype)
    if axis is None:
        x, axis = cp.reshape(x, (-1,)), 0
    return function(x, axis=int(axis), dtype=dtype)


def cumsum(x, axis=None, dtype=None):
    return _cumulative(cp.cumulative_sum, x, axis, dtype)


def cumprod(x, axis=None, dtype=None):
    return _cumulative(cp.cumulative_prod, x, axis, dtype)


def _filled(x, number):
    x = convert_to_tensor(x)
    return cp.where(cp.isnan(x), number, x) if x.dtype in _FLOATS else x


def nancumsum(x, axis=None, dtype=None):
    return cumsum(_filled(x, 0), axis, dtype)


def nancumprod(x, axis=None, dtype=None):
    return cumprod(_filled(x, 1), axis, dtype)


def nansum(x, axis=None, keepdims=False):
    return sum(_filled(x, 0), axis, keepdims)


def nanprod(x, axis=None, keepdims=False):
    return prod(_filled(x, 1), axis, keepdims)


def _nan_extreme(function, x, axis, keepdims, least):
    x = convert_to_tensor(x)
    if x.dtype not in _FLOATS:
        return _extreme(function, None, x, axis, keepdims)
    is_nan = cp.isnan(x)
    found = function(cp.where(is_nan, least, x), axis=_axis(axis), keepdims=keepdims)
    return cp.where(cp.all(is_nan, axis=_axis(axis), keepdims=keepdims), math.nan, found)


def nanmax(x, axis=None, keepdims=False):
    return _nan_extreme(cp.max, x, axis, keepdims, -math.inf)


def nanmin(x, axis=None, keepdims=False):
    return _nan_extreme(cp.min, x, axis, keepdims, math.inf)


def _nan_position(function, x, axis, keepdims, least):
    x = convert_to_tensor(x)
    if x.dtype not in _FLOATS:
        return function(x, axis, keepdims)
    is_nan = cp.isnan(x)
    none = cp.all(is_nan, axis=_axis(axis), keepdims=keepdims)
    return cp.where(none, -1, function(cp.where(is_nan, least, x), axis, keepdims))


def nanargmax(x, axis=None, keepdims=False):
    return _nan_position(argmax, x, axis, keepdims, -math.inf)


def nanargmin(x, axis=None, keepdims=False):
    return _nan_position(argmin, x, axis, keepdims, math.inf)


def _counted(x, axis, keepdims):
    return cp.sum(cast(cp.logical_not(cp.isnan(x)), x.dtype), axis=_axis(axis), keepdims=keepdims)


def nanmean(x, axis=None, keepdims=False):
    x = convert_to_tensor(x)
    dtype = common(x.dtype, float)
    x = cast(x, common(x.dtype, "float32"))
    return cast(cp.sum(_filled(x, 0), axis=_axis(axis), keepdims=keepdims) / _counted(x, axis, keepdims), dtype)


def nanvar(x, axis=None, keepdims=False):
    x = convert_to_tensor(x)
    dtype = common(x.dtype, float)
    x = cast(x, common(x.dtype, "float32"))
    distances = x - cast(nanmean(x, axis, True), x.dtype)
    found = cp.sum(_filled(cp.square(distances), 0), axis=_axis(axis), keepdims=keepdims) / _counted(x, axis, keepdims)
    return cast(found, dtype)


def nanstd(x, axis=None, keepdims=False):
    return cp.sqrt(nanvar(x, axis, keepdims))


def _quantile(x, q, axis, method, keepdims, ignores_nan):
    """Quantiles along axes, by NumPy's methods that choose or join two neighbours."""
    q = cast(q, cp.float64 if x.dtype is cp.float64 else cp.float32)
    axes = range(x.ndim) if axis is None else sorted(canonicalize_axis(one, x.ndim) for one in np.atleast_1d(axis).tolist())
    kept = [i for i in range(x.ndim) if i not in axes]
    rows = cp.permute_dims(x, (*kept, *axes)) if x.ndim else x
    rows = cp.sort(cp.reshape(rows, (*[x.shape[i] for i in kept], -1)), axis=-1)
    n = rows.shape[-1]
    places = cp.reshape(q, (*q.shape, *[1] * len(kept)))
    if ignores_nan:
        last = cp.maximum(cp.sum(cast(cp.logical_not(cp.isnan(rows)), q.dtype), axis=-1) - 1, 0)
        places = places * last
    else:
        places = cp.broadcast_to(places * (n - 1), (*q.shape, *rows.shape[:-1]))
    low, high = cp.floor(places), cp.ceil(places)
    if method == "lower":
        high = low
    elif method == "higher":
        low = high
    elif method == "nearest":
        low = high = cp.round(places)

    def at(positions):
        positions = cp.reshape(cast(positions, cp.int64), (-1, *positions.shape[q.ndim:]))
        found = [cp.take_along_axis(rows, cp.expand_dims(one, -1), axis=-1) for one in cp.unstack(positions)]
        return cp.reshape(cp.stack(found), (*q.shape, *rows.shape[:-1]))

    lower = at(low)
    if method == "midpoint":
        found = (lower + at(high)) / 2
    elif method == "linear":
        share = cast(places - low, x.dtype)
        found = cp.where(cp.equal(low, high), lower, lower + share * (at(high) - lower))  # infinite neighbours do not count
    else:
        found = lower
    if not ignores_nan:
        found = cp.where(cp.any(cp.isnan(rows), axis=-1), math.nan, found)
    if keepdims:
        found = cp.reshape(found, (*q.shape, *[1 if i in axes else n for i, n in enumerate(x.shape)]))
    return found


def _quantiles(x, q, axis, method, keepdims, ignores_nan=False, scale=1.0):
    x = convert_to_tensor(x)
    dtype = _floatx() if x.dtype is cp.int64 else common(x.dtype, float)
    x = cast(x, cp.float64 if x.dtype is cp.float64 else dtype)
    q = cast(q, cp.float64 if x.dtype is cp.float64 else cp.float32)
    return cast(_quantile(x, q / scale if scale != 1 else q, axis, method, keepdims, ignores_nan), dtype)


def quantile(x, q, axis=None, method="linear", keepdims=False):
    return _quantiles(x, q, axis, method, keepdims)


def nanquantile(x, q, axis=None, method="linear", keepdims=False):
    return _quantiles(x, q, axis, method, keepdims, True)


def percentile(x, q, axis=None, method="linear", keepdims=False):
    return _quantiles(x, q, axis, method, keepdims, False, 100.0)


def nanpercentile(x, q, axis=None, method="linear", keepdims=False):
    return _quantiles(x, q, axis, method, keepdims, True, 100.0)


def median(x, axis=None, keepdims=False):
    return _quantiles(x, 0.5, axis, "linear", keepdims)


def nanmedian(x, axis=None, keepdims=False):
    return _quantiles(x, 0.5, axis, "linear", keepdims, True)


def corrcoef(x):
    x = convert_to_tensor(x)
    dtype = _of_angle(x.dtype)
    return cast(cp.corrcoef(cast(x, cp.float64 if dtype is cp.float64 else cp.float32)), dtype)


def trapezoid(y, x=None, dx=1.0, axis=-1):
    y = convert_to_tensor(y)
    dtype = common(y.dtype, float)
    y = cast(y, dtype)
    if x is not None:
        return cast(cp.trapezoid(y, cast(x, dtype), axis=axis), dtype)
    dx = number_or_tensor(dx)
    if isinstance(dx, TENSORS) and dx.ndim > 0:
        near, far = _along(y, axis, 1, None), _along(y, axis, 0, -1)
        return cp.sum(cast(dx, dtype) * (near + far) / 2, axis=axis)
    return cast(cp.trapezoid(y, dx=float(dx), axis=axis), dtype)


def _along(x, axis, start, stop):
    key = [slice(None)] * x.ndim
    key[axis] = slice(start, stop)
    return x[tuple(key)]


# ---- Shapes ----------------------------------------------------------------------------------------------------------


def reshape(x, newshape):
    if isinstance(x, SparseTensor):
        return x.with_shape(np.empty(x.shape, np.bool).reshape(_extents(newshape)).shape)
    return cp.reshape(convert_to_tensor(x), _extents(newshape))


def broadcast_to(x, shape):
    return cp.broadcast_to(convert_to_tensor(x), _extents(shape))


def concatenate(xs, axis=0):
    if axis is not None and builtins.all(isinstance(x, SparseTensor) for x in xs):
        dtype = common(*(x.dtype for x in xs))
        return sparse_ops.concatenated([cast(x, dtype) for x in xs], _axis(axis))
    xs = _joined(xs)
    if axis is None:
        xs, axis = [cp.reshape(x, (-1,)) for x in xs], 0
    return cp.concat(xs, axis=_axis(axis))


def stack(x, axis=0):
    return cp.stack(_joined(x), axis=_axis(axis))


def append(x1, x2, axis=None):
    return concatenate([x1, x2], axis)


def hstack(xs):
    return cp.hstack(_joined(xs))


def vstack(xs):
    return cp.vstack(_joined(xs))


def dstack(xs):
    return cp.dstack(_joined(xs))


def _split_at(x, indices_or_sections):
    if isinstance(indices_or_sections, (int, np.integer)):
        return int(indices_or_sections)
    if isinstance(indices_or_sections, (list, tuple)):
        return [int(i) for i in indices_or_sections]
    found = convert_to_numpy(indices_or_sections)
    return int(found) if found.ndim == 0 else found.tolist()


def split(x, indices_or_sections, axis=0):
    return list(_parts(convert_to_tensor(x), _split_at(x, indices_or_sections), int(axis), True))


def array_split(x, indices_or_sections, axis=0):
    return list(_parts(convert_to_tensor(x), _split_at(x, indices_or_sections), int(axis), False))


def _parts(x, sections, axis, equal):
    n = x.shape[axis]
    if isinstance(sections, int):
        if equal and n % sections:
            raise ValueError(f"array split does not result in an equal division: {n} along axis {axis} into {sections}")
        small, more = divmod(n, sections)
        ends = np.cumsum([small + 1] * more + [small] * (sections - more)).tolist()
    else:
        ends = [*sections, n]
    start = 0
    for end in ends:
        yield _along(x, axis, start, end)
        start = end


def hsplit(x, indices_or_sections):
    x = convert_to_tensor(x)
    return split(x, indices_or_sections, 0 if x.ndim == 1 else 1)


def vsplit(x, indices_or_sections):
    return split(x, indices_or_sections, 0)


def dsplit(x, indices_or_sections):
    return split(x, indices_or_sections, 2)


def expand_dims(x, axis):
    if isinstance(x, SparseTensor):
        axes = axis if isinstance(axis, (list, tuple)) else (axis,)
        rank = x.ndim + len(axes)
        axes, extents = {one % rank for one in axes}, iter(x.shape)
        return x.with_shape([1 if i in axes else next(extents) for i in range(rank)])
    x, axis = convert_to_tensor(x), _axis(axis)
    if isinstance(axis, tuple):
        rank = x.ndim + len(axis)
        axes = {one % rank for one in axis}
        extents = iter(x.shape)
        return cp.reshape(x, [1 if i in axes else next(extents) for i in range(rank)])
    return cp.expand_dims(x, axis=axis)


def squeeze(x, axis=None):
    if isinstance(x, SparseTensor):
        return x.with_shape(np.squeeze(np.broadcast_to(np.bool(0), x.shape), axis=_axis(axis)).shape)
    x = convert_to_tensor(x)
    axis = tuple(i for i, n in enumerate(x.shape) if n == 1) if axis is None else _axis(axis)
    return cp.squeeze(x, axis)


def transpose(x, axes=None):
    if isinstance(x, SparseTensor):
        return sparse_ops.transposed(x, axes)
    x = convert_to_tensor(x)
    return cp.permute_dims(x, tuple(reversed(range(x.ndim))) if axes is None else tuple(int(i) for i in axes))


def swapaxes(x, axis1, axis2):
    return cp.swapaxes(convert_to_tensor(x), axis1, axis2)


def moveaxis(x, source, destination):
    return cp.moveaxis(convert_to_tensor(x), _axis(source), _axis(destination))


def flip(x, axis=None):
    return cp.flip(convert_to_tensor(x), axis=_axis(axis))


def rot90(array, k=1, axes=(0, 1)):
    array = convert_to_tensor(array)
    if array.ndim < 2:
        raise ValueError(f"Input array must have at least 2 dimensions. Received: array.ndim={array.ndim}")
    if len(axes) != 2 or axes[0] == axes[1]:
        raise ValueError(f"Invalid axes: {axes}. Axes must be a tuple of two different dimensions.")
    return cp.rot90(array, k=k, axes=tuple(axes))


def roll(x, shift, axis=None):
    return cp.roll(convert_to_tensor(x), _axis(shift), axis=_axis(axis))


def repeat(x, repeats, axis=None):
    x = convert_to_tensor(x)
    if axis is None:
        x, axis = cp.reshape(x, (-1,)), 0
    if isinstance(repeats, (list, tuple)) and len(repeats) == 1:
        repeats = repeats[0]
    if not isinstance(repeats, int):
        found = convert_to_numpy(repeats)
        repeats = int(found.reshape(-1)[0]) if found.size == 1 else cp.asarray(found.astype("int64"), copy=True)
    return cp.repeat(x, repeats, axis=axis)


def tile(x, repeats):
    repeats = _extents(repeats if isinstance(repeats, (list, tuple, int)) else convert_to_numpy(repeats).tolist())
    return cp.tile(convert_to_tensor(x), tuple(repeats))


def pad(x, pad_width, mode="constant", constant_values=None):
    x = convert_to_tensor(x)
    widths = pad_width if isinstance(pad_width, (list, tuple, int)) else convert_to_numpy(pad_width).tolist()
    if isinstance(widths, int):
        widths = [(widths, widths)] * x.ndim
    elif len(widths) > 0 and isinstance(widths[0], int):
        widths = [tuple(widths) if len(widths) == 2 else (widths[0], widths[0])] * x.ndim
    widths = [tuple(int(n) for n in one) for one in widths]
    if len(widths) == 1:
        widths = widths * x.ndim
    if constant_values is not None and mode != "constant":
        raise ValueError("Argument `constant_values` can only be provided when `mode == 'constant'`. "
                         f"Received: mode={mode}")
    if mode == "constant":
        value = 0 if constant_values is None else constant_values
        value = value if isinstance(value, (bool, int, float)) else convert_to_numpy(value).item()
        return cp.pad(x, widths, mode="constant", constant_values=value)
    for axis, (before, after) in enumerate(widths):
        if before or after:
            n = x.shape[axis]
            places = np.pad(np.arange(n), (before, after), mode=mode)
            x = cp.take(x, cp.asarray(places, copy=True), axis=axis)
    return x


def diag(x, k=0):
    return cp.diag(convert_to_tensor(x), k)


def diagflat(x, k=0):
    return cp.diagflat(convert_to_tensor(x), k)


def diagonal(x, offset=0, axis1=0, axis2=1):
    return cp.diagonal(convert_to_tensor(x), offset, axis1, axis2)


def trace(x, offset=0, axis1=0, axis2=1):
    x = convert_to_tensor(x)
    dtype = _wide(x.dtype)
    return cp.sum(cp.diagonal(cast(x, dtype), offset, axis1, axis2), axis=-1, dtype=dtype)


def tril(x, k=0):
    return cp.tril(convert_to_tensor(x), k=k)


def triu(x, k=0):
    return cp.triu(convert_to_tensor(x), k=k)


def ndim(x):
    return convert_to_tensor(x).ndim


def size(x):
    return math.prod(convert_to_tensor(x).shape)


# ---- Elements --------------------------------------------------------------------------------------------------------


def take(x, indices, axis=None):
    x, indices = convert_to_tensor(x), _indices(indices)
    if axis is None:
        x, axis = cp.reshape(x, (-1,)), 0
    axis = canonicalize_axis(int(axis), x.ndim)
    if indices.ndim == 1:
        return cp.take(x, indices, axis=axis)
    found = cp.take(x, cp.reshape(indices, (-1,)), axis=axis)
    return cp.reshape(found, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1:]))


def _indices(indices):
    indices = grad.constant(convert_to_tensor(indices))
    return indices if indices.dtype in (cp.int32, cp.int64) else cast(indices, cp.int64)


def take_along_axis(x, indices, axis=None):
    x, indices = convert_to_tensor(x), _indices(indices)
    if axis is None:
        x, indices, axis = cp.reshape(x, (-1,)), cp.reshape(indices, (-1,)), 0
    axis = canonicalize_axis(int(axis), x.ndim)
    shape = np.broadcast_shapes((*x.shape[:axis], 1, *x.shape[axis + 1:]), (*indices.shape[:axis], 1, *indices.shape[axis + 1:]))
    x = cp.broadcast_to(x, (*shape[:axis], x.shape[axis], *shape[axis + 1:]))
    indices = cp.broadcast_to(indices, (*shape[:axis], indices.shape[axis], *shape[axis + 1:]))
    return cp.take_along_axis(x, indices, axis=axis)


def nonzero(x):
    return tuple(cast(one, cp.int32) for one in cp.nonzero(convert_to_tensor(x)))


def sort(x, axis=-1):
    x = convert_to_tensor(x)
    if axis is None:
        x, axis = cp.reshape(x, (-1,)), 0
    return cast(cp.sort(cast(x, cp.uint8), axis=int(axis)), cp.bool) if x.dtype is cp.bool else cp.sort(x, axis=int(axis))


def argsort(x, axis=-1):
    x = convert_to_tensor(x)
    if axis is None or x.ndim == 0:
        x, axis = cp.reshape(x, (-1,)), 0
    x = cast(x, cp.uint8) if x.dtype is cp.bool else x
    return cast(cp.argsort(x, axis=int(axis)), cp.int32)


def argpartition(x, kth, axis=-1):
    return argsort(x, axis)


def searchsorted(sorted_sequence, values, side="left"):
    sorted_sequence, values = convert_to_tensor(sorted_sequence), convert_to_tensor(values)
    if sorted_sequence.ndim != 1:
        raise ValueError("`searchsorted` only supports 1-D sorted sequences. You can use `keras.ops.vectorized_map` to "
                         f"extend it to N-D sequences. Received: sorted_sequence.shape={tuple(sorted_sequence.shape)}")
    found = cp.searchsorted(*_tensors(sorted_sequence, values), side=side)
    return cast(found, cp.int32 if sorted_sequence.shape[0] <= np.iinfo(np.int32).max else cp.int64)


def digitize(x, bins):
    if isinstance(x, SparseTensor) and np.min(bins, initial=1) > 0:  # 0 is below all
        return x.with_values(digitize(x.values, bins))
    x, bins = _tensors(x, bins)
    return cast(cp.digitize(_number(x), _number(bins)), cp.int32)


def bincount(x, weights=None, minlength=0, sparse=False):
    if isinstance(x, SparseTensor):
        return sparse_ops.bincount(x, weights, minlength, cp.int32 if weights is None else common(x.dtype, weights.dtype))
    if sparse:
        return SparseTensor.from_dense(bincount(x, weights, minlength))
    x = convert_to_tensor(x)
    dtype = cp.int32
    if weights is not None:
        weights = convert_to_tensor(weights)
        dtype = common(x.dtype, weights.dtype)
    x = cast(x, cp.int64)
    if x.ndim == 2:
        length = builtins.max(int(minlength), int(cp.max(x)) + 1 if x.size else 0)
        rows = [cp.bincount(x[i], None if weights is None else weights[i], minlength=length) for i in range(x.shape[0])]
        return cast(cp.stack(rows), dtype)
    return cast(cp.bincount(x, weights, minlength=int(minlength)), dtype)


def histogram(x, bins=10, range=None):
    x = convert_to_tensor(x)
    x = x if x.dtype in _FLOATS else cast(x, _floatx())
    bins = bins if isinstance(bins, int) else cast(bins, x.dtype)
    counts, edges = cp.histogram(x, bins, range)
    return cast(counts, cp.int32), edges


def unique(x, sorted=True, return_index=False, return_inverse=False, return_counts=False, axis=None, size=None,
           fill_value=None):
    x = convert_to_tensor(x)
    if x.dtype is cp.bool:
        found = cp.unique(cast(x, cp.uint8), True, True, True, axis)
        values, first, inverse, counts = cast(found[0], cp.bool), *found[1:]
    else:
        values, first, inverse, counts = cp.unique(x, True, True, True, axis, equal_nan=False)
    dim = 0 if axis is None else canonicalize_axis(axis, x.ndim)
    if size is not None:
        more = size - values.shape[dim]
        if more < 0:
            values, first, counts = _along(values, dim, 0, size), first[:size], counts[:size]
        elif more > 0:
            widths = [(0, more) if i == dim else (0, 0) for i in range(values.ndim)]
            values = pad(values, widths, constant_values=0 if fill_value is None else fill_value)
            first, counts = cp.pad(first, [(0, more)], constant_values=1), cp.pad(counts, [(0, more)])
    output = [values]
    for wanted, one in ((return_index, first), (return_inverse, inverse), (return_counts, counts)):
        if wanted:
            output.append(cast(one, cp.int32))
    return output[0] if len(output) == 1 else tuple(output)


def unravel_index(indices, shape):
    indices = convert_to_tensor(indices)
    dtype = common(indices.dtype)
    return tuple(cast(one, dtype) for one in cp.unravel_index(cast(indices, cp.int64), tuple(shape)))


def diff(a, n=1, axis=-1):
    a = convert_to_tensor(a)
    for _ in range(n):
        near, far = _along(a, axis, 1, None), _along(a, axis, 0, -1)
        a = cp.logical_xor(near, far) if a.dtype is cp.bool else cp.subtract(near, far)
    return a


def vectorize(pyfunc, *, excluded=None, signature=None):
    return vectorize_impl(pyfunc, _vmap, excluded=excluded, signature=signature)


def _vmap(function, in_axes=0, out_axes=0):
    """A function of arrays applied along their first axes; in_axes is None for an argument that is not divided."""

    def run(*args):
        axes = in_axes if isinstance(in_axes, (list, tuple)) else [in_axes] * len(args)
        count = next(x.shape[axis] for x, axis in zip(args, axes) if axis is not None)
        parts = [[x] * count if axis is None else cp.unstack(convert_to_tensor(x), axis=axis) for x, axis in zip(args, axes)]
        found = [function(*one) for one in zip(*parts)]
        if isinstance(found[0], (list, tuple)):
            return tuple(cp.stack([convert_to_tensor(y) for y in ys], axis=out_axes) for ys in zip(*found))
        return cp.stack([convert_to_tensor(y) for y in found], axis=out_axes)

    return run


# ---- Products --------------------------------------------------------------------------------------------------------


def _product(x1, x2):
    """Operands of a product. int8 gives int32, as in JAX."""
    x1, x2 = convert_to_tensor(x1), convert_to_tensor(x2)
    dtype = cp.int32 if x1.dtype is x2.dtype is cp.int8 else common(x1.dtype, x2.dtype)
    return (cast(x1, dtype), cast(x2, dtype)) if dtype is not cp.bool else (cast(x1, cp.int32), cast(x2, cp.int32))


def _multiplied(function, x1, x2, result=None):
    x1, x2 = convert_to_tensor(x1), convert_to_tensor(x2)
    is_bool = x1.dtype is x2.dtype is cp.bool
    found = function(*_product(x1, x2))
    return cast(found, cp.bool if is_bool else found.dtype if result is None else result)


def matmul(x1, x2):
    product = _multiplied(cp.matmul, x1, x2)
    return SparseTensor.from_dense(product) if isinstance(x1, SparseTensor) and isinstance(x2, SparseTensor) else product


def dot(x1, x2):
    x1, x2 = _tensors(x1, x2)
    if x1.ndim == 0 or x2.ndim == 0:
        return multiply(x1, x2)
    if x2.ndim == 1:
        return _multiplied(lambda a, b: cp.tensordot(a, b, axes=((-1,), (0,))), x1, x2, x1.dtype)
    return _multiplied(lambda a, b: cp.tensordot(a, b, axes=((a.ndim - 1,), (b.ndim - 2,))), x1, x2, x1.dtype)


def vdot(x1, x2):
    x1, x2 = _tensors(x1, x2)
    x1 = cp.conj(x1) if x1.dtype in _COMPLEX else x1
    return _multiplied(lambda a, b: cp.tensordot(a, b, axes=1), cp.reshape(x1, (-1,)), cp.reshape(x2, (-1,)), x1.dtype)


def inner(x1, x2):
    x1, x2 = _tensors(x1, x2)
    if x1.ndim == 0 or x2.ndim == 0:
        return multiply(x1, x2)
    return _multiplied(lambda a, b: cp.tensordot(a, b, axes=((a.ndim - 1,), (b.ndim - 1,))), x1, x2, x1.dtype)


def outer(x1, x2):
    x1, x2 = _tensors(x1, x2)
    return multiply(cp.reshape(x1, (-1, 1)), cp.reshape(x2, (1, -1)))


def tensordot(x1, x2, axes=2):
    x1, x2 = _tensors(x1, x2)
    if not isinstance(axes, int):
        axes = tuple(tuple(one) if isinstance(one, (list, tuple)) else (one,) for one in axes)
    return _multiplied(lambda a, b: cp.tensordot(a, b, axes=axes), x1, x2, x1.dtype)


def kron(x1, x2):
    return _multiplied(cp.kron, *_tensors(x1, x2))


def cross(x1, x2, axisa=-1, axisb=-1, axisc=-1, axis=None):
    if axis is not None:
        axisa = axisb = axisc = axis
    x1, x2 = _tensors(x1, x2)
    x1, x2 = cp.moveaxis(x1, axisa, -1), cp.moveaxis(x2, axisb, -1)
    a, b = ([x[..., i] for i in range(x.shape[-1])] for x in (x1, x2))
    last = a[0] * b[1] - a[1] * b[0]
    if len(a) == len(b) == 2:
        return last
    a, b = (parts if len(parts) == 3 else [*parts, cp.zeros_like(parts[0])] for parts in (a, b))
    found = cp.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], last], axis=-1)
    return cp.moveaxis(found, -1, axisc)


def einsum(subscripts, *operands, **kwargs):
    operands = [convert_to_tensor(x) for x in operands]
    kinds = {x.dtype for x in operands}
    result = cp.int32 if kinds == {cp.int8} else common(*kinds)
    computed = cp.int32 if result is cp.bool else result
    return cast(cp.einsum(subscripts, *[cast(x, computed) for x in operands]), result)


def correlate(x1, x2, mode="valid"):
    x1, x2 = convert_to_tensor(x1), convert_to_tensor(x2)
    dtype = common(x1.dtype, x2.dtype)
    dtype = cp.float64 if dtype is cp.int64 else dtype if dtype in _FLOATS else cp.float32
    return cp.correlate(cast(x1, dtype), cast(x2, dtype), mode=mode)


def slogdet(x):
    return tuple(cp.linalg.slogdet(convert_to_tensor(x)))


# ---- Sparse tensors --------------------------------------------------------------------------------------------------

for _name in ("abs", "absolute", "arcsin", "arcsinh", "arctan", "arctanh", "ceil", "conj", "conjugate", "copy", "expm1",
              "fabs", "floor", "imag", "log1p", "negative", "real", "round", "sign", "sin", "sinh", "sqrt", "square", "tan",
              "tanh", "trunc"):
    globals()[_name] = sparse_ops.elementwise(globals()[_name])
for _name in ("add", "subtract", "maximum", "minimum"):
    globals()[_name] = sparse_ops.union(globals()[_name])
multiply = sparse_ops.intersection(multiply)
divide = true_divide = sparse_ops.division(divide)
for _method, _function in {"add": add, "sub": subtract, "mul": multiply, "truediv": divide}.items():
    setattr(SparseTensor, f"__{_method}__", lambda self, other, function=_function: function(self, other))
    setattr(SparseTensor, f"__r{_method}__", lambda self, other, function=_function: function(other, self))
SparseTensor.__neg__ = lambda self: negative(self)
