# SPDX-License-Identifier: Apache-2.0
"""Reductions, searching, sorting, sets and products of the standard; elementwise functions that take more than arrays."""
from __future__ import annotations

import builtins
import math
import operator
from collections import namedtuple

from . import _core, _creation, _dtypes, _ops
from ._core import Array, array_of
from ._creation import arrays_of, device_of, is_values
from ._errors import renamed, resolved
from ._manipulation import _axes, _flat, _whole, concat, reshape


_INEXACT = _dtypes.FLOATS + _dtypes.COMPLEX
# An integer below 0 is at least 2^63: the greatest element tells whether there is one.
_AS_UNSIGNED = _core.expression("bitcast(convert(x, int64), uint64)", ("x",), ())


_NEUTRAL = {"sum": 0, "prod": 1, "all": True, "any": False}
_COMBINED = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}


def _renamed(function, names, x, /, **known):
    """renamed, for reductions: with NumPy's `where`, a mask of the elements that count, and `initial`, a further number."""
    name, where, initial = function.__name__, names.pop("where", True), names.pop("initial", None)
    known = resolved(function, names, known)
    if initial is not None and name not in _COMBINED:
        raise TypeError(f"{name}() got an unexpected keyword argument 'initial'; expected {', '.join(known)}")
    if where is not True:
        x, where = array_of(x), array_of(where)
        if name in ("mean", "var", "std"):
            return _masked_moment(name, x, where, **known)
        neutral = initial if name in ("max", "min") else _NEUTRAL[name]
        if neutral is None:
            raise TypeError(f"{name}: where needs initial; pass the number for a mask that is false everywhere")
        x = _ops.where(where, x, neutral)
    if initial is None:
        return function(x, **known)
    out = known.pop("out")
    return _ops.TABLE[_COMBINED[name]]["run"](function(x, **known), initial, out=out)


def _masked_moment(name, x, where, axis, dtype, out, keepdims, correction=0):
    """The mean, var or std of the elements where a mask is true."""
    x = _inexact(x, dtype)
    result = x.dtype if name == "mean" else real(x).dtype
    if x.dtype in (_dtypes.float16, _dtypes.bfloat16):  # whose sums would overflow
        x = _ops.cast(x, dtype=_dtypes.float32)
    counts = sum(_core.broadcast_view(where, x.shape), axis=axis, dtype=real(x).dtype, keepdims=True)
    found = sum(_ops.where(where, x, 0), axis=axis, keepdims=True) / counts
    if name != "mean":
        distances = _ops.where(where, x - found, 0)
        found = sum(real(distances * conj(distances)), axis=axis, keepdims=True) / _ops.maximum(counts - correction, 0)
        found = _ops.sqrt(found) if name == "std" else found
    if not keepdims:
        axes = range(x.ndim) if axis is None else _axes(axis, x.ndim, name)
        found = _core.reshape_view(found, [n for i, n in enumerate(found.shape) if i not in axes])
    return _stored(astype(found, result, copy=False), out)


def _reduced(axis):
    return [axis] if isinstance(axis, int) else axis


def _reduction(op, x, axis, keepdims, out=None, **attributes):
    if isinstance(axis, tuple) and not axis:
        x = array_of(x)
        axis = None if x.ndim == 0 else axis
    if axis is not None:
        attributes["axes"] = _reduced(axis)
    if keepdims:
        attributes["keepdims"] = True
    if out is True or out is False:  # PyTorch's third argument is keepdim
        attributes["keepdims"] = out
    elif out is not None:
        attributes["out"] = out
    return op(x, **attributes)  # the defaults stay out, for the sake of small arrays


# ---- Elementwise ----------------------------------------------------------------------------------------------------


def astype(x, dtype, /, *, copy=True, device=None):
    """`x` converted to `dtype`.

    Raises TypeError for complex numbers as real ones.

    x        an array
    dtype    the new dtype
    copy     whether the result is a copy also where `x` has the dtype already
    device   a Device for the result, by default that of `x`

    >>> compute.astype(compute.asarray([1.7, -1.7]), compute.int32)
    Array([ 1, -1], dtype=int32)
    """
    if not isinstance(dtype, _core.DType):
        dtype = _dtypes._from_object(dtype)
    if device is not None:
        x = _core.to_device(x, device)
    x = array_of(x)
    if x.dtype is dtype:
        return _ops.copy(x) if copy else x
    if x.dtype in _dtypes.COMPLEX and dtype not in _dtypes.COMPLEX + (_dtypes.bool,):
        raise TypeError(f"{x.dtype} cannot be converted to {dtype}; take real() or abs()")
    return _ops.cast(x, dtype=dtype)


def conj(x, /):
    """The complex conjugates.

    >>> compute.conj(compute.asarray([1 + 2j]))
    Array([1.-2.j], dtype=complex64)
    """
    x = array_of(x)
    return _ops.conj(x) if x.dtype in _dtypes.COMPLEX else _ops.positive(x)


def real(x, /):
    """The real parts; `x` itself if it is real.

    Raises TypeError for bool.

    >>> compute.real(compute.asarray([1 + 2j]))
    Array([1.], dtype=float32)
    """
    x = array_of(x)
    if x.dtype is _dtypes.bool:
        raise TypeError("real: bool is not a numeric dtype; convert it")
    return _ops.real(x) if x.dtype in _dtypes.COMPLEX else x


def imag(x, /):
    """The imaginary parts, which are 0 of real numbers.

    Raises TypeError for bool.

    >>> compute.imag(compute.asarray([1 + 2j]))
    Array([2.], dtype=float32)
    """
    x = array_of(x)
    if x.dtype is _dtypes.bool:
        raise TypeError("imag: bool is not a numeric dtype; convert it")
    return _ops.imag(x) if x.dtype in _dtypes.COMPLEX else _creation.zeros_like(x)


def clip(x, /, min=None, max=None, out=None):
    """`x` limited to [min, max].

    x          an array
    min, max   the bounds, numbers or arrays that broadcast, or None for no bound
    out        an array for the result

    Raises TypeError for bounds that are arrays of a higher kind than `x`.

    >>> compute.clip(compute.asarray([1.0, 5.0, 9.0]), 2, 6)
    Array([2., 5., 6.], dtype=float32)
    """
    if type(x) is not Array or not _core.are_arrays(min, max):
        x, min, max = arrays_of(x, min, max)
        x = array_of(x)
    if x.dtype in _dtypes.INTEGERS:
        limits = _dtypes.iinfo(x.dtype)
        min = _limit(min, limits.min, limits.max)
        max = _limit(max, limits.min, limits.max)
    for bound in (min, max):
        if isinstance(bound, Array) and _dtypes.promote(x.dtype, bound.dtype) is not x.dtype:
            raise TypeError(f"clip: the bounds have the dtype {bound.dtype}, x has {x.dtype}; convert the bounds")
    if min is None and max is None:
        return _ops.copy(x, out=out)
    if min is None:
        return _ops.minimum(x, max, out=out)
    if max is None:
        return _ops.maximum(x, min, out=out)
    return _ops.clip(x, min, max) if out is None else _ops.clip(x, min, max, out=out)


def _limit(bound, least, greatest):
    """A bound that is a number, moved into the range of an integer dtype; None if it does not limit anything."""
    if bound is None or isinstance(bound, Array):
        return bound
    return builtins.min(builtins.max(bound, least), greatest)


def isclose(x1, x2, /, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Whether |x1 - x2| <= atol + rtol |x2|, or both are the same infinity; with `equal_nan`, or both NaN.

    Integers and bool are compared as numbers of the default dtype.

    >>> compute.isclose(compute.asarray([1.0, 2.0]), [1.0, 2.1])
    Array([ True, False], dtype=bool)
    """
    x1, x2 = arrays_of(x1, x2)
    x1, x2 = (_ops.cast(x, dtype=_dtypes.DEFAULT_FLOAT) if isinstance(x, Array) and x.dtype not in _INEXACT else x
              for x in (x1, x2))
    size = _ops.abs(x2) if not isinstance(x2, (int, float, complex)) else abs(x2)
    near = _ops.less_equal(_ops.abs(_ops.subtract(x1, x2)), atol + rtol * size)
    finite = math.isfinite(size) if isinstance(size, (int, float)) else _ops.isfinite(size)
    close = _ops.logical_or(near if finite is True else _ops.logical_and(near, finite), _ops.equal(x1, x2))
    if equal_nan:
        close = _ops.logical_or(close, _ops.logical_and(_ops.not_equal(x1, x1), x2 != x2))
    return close


def allclose(x1, x2, /, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Whether isclose holds for all elements, as a bool of Python.

    >>> compute.allclose([1.0], [1.0 + 1e-9])
    True
    """
    return builtins.bool(all(isclose(x1, x2, rtol=rtol, atol=atol, equal_nan=equal_nan)))


def where(condition, x1=None, x2=None, /):
    """`x1` where `condition` is true, else `x2`; with a condition alone, nonzero(condition).

    condition   an array of bool, or of numbers, of which 0 is false
    x1, x2      arrays or numbers, which broadcast

    Raises ValueError if the shapes do not broadcast.

    >>> x = compute.asarray([1.0, -2.0])
    >>> compute.where(x > 0, x, 0)
    Array([1., 0.], dtype=float32)
    """
    if x1 is None and x2 is None:
        return nonzero(condition)
    if not isinstance(x1, _dtypes.PLAIN):
        x1 = _dtypes.number(x1)
    if not isinstance(x2, _dtypes.PLAIN):
        x2 = _dtypes.number(x2)
    if not _core.are_arrays(condition, x1, x2):
        device = device_of(condition, x1, x2)
        condition, = arrays_of(condition, device=device)
        x1, x2 = arrays_of(x1, x2, device=device)
    if getattr(condition, "dtype", _dtypes.bool) is not _dtypes.bool:  # as NumPy does
        condition = _ops.not_equal(condition, 0)
    numbers = [x for x in (x1, x2) if isinstance(x, _dtypes.NUMBERS)]
    if len(numbers) == 2 and isinstance(condition, Array):
        dtype = _creation._common_dtype(numbers)
        x1, x2 = (_creation.full((), x, dtype=dtype, device=condition.device) for x in (x1, x2))
    return _ops.where(condition, x1, x2)


# ---- Reductions -----------------------------------------------------------------------------------------------------


def sum(x, /, axis=None, dtype=None, out=None, keepdims=False, **names):
    """The sum of elements.

    axis       an axis, a tuple of axes, or None for all elements; `dim` is another name
    dtype      of the result; without one, 64 bits for integers and bool, and that of `x` for others
    out        an array for the result, of its shape and dtype
    keepdims   whether the axes stay, with the extent 1; `keepdim` is another name
    where      a mask: only the elements where it is true count
    initial    a number to begin with

    Raises ValueError for an axis that `x` does not have.

    >>> compute.sum(compute.asarray([[1, 2], [3, 4]]), axis=0)
    Array([4, 6], dtype=int64)
    """
    if names:
        return _renamed(sum, names, x, axis=axis, dtype=dtype, out=out, keepdims=keepdims)
    if dtype is not None:
        if isinstance(dtype, builtins.bool):  # PyTorch's third argument is keepdim
            return sum(x, axis, None, out, dtype)
        return _reduction(_ops.sum, x, axis, keepdims, out, dtype=dtype)
    return _ops.sum(x) if axis is None and not keepdims and out is None else _reduction(_ops.sum, x, axis, keepdims, out)


def prod(x, /, axis=None, dtype=None, out=None, keepdims=False, **names):
    """The product of elements.

    axis       an axis, a tuple of axes, or None for all elements
    dtype      of the result
    out        an array for the result
    keepdims   whether the axes stay, with the extent 1

    Takes `where` as sum does, and `initial`. Raises ValueError for an axis that `x` does not have.

    >>> compute.prod(compute.asarray([2, 3, 4]))
    Array(24, dtype=int64)
    """
    if names:
        return _renamed(prod, names, x, axis=axis, dtype=dtype, out=out, keepdims=keepdims)
    if dtype is not None:
        if isinstance(dtype, builtins.bool):  # PyTorch's third argument is keepdim
            return prod(x, axis, None, out, dtype)
        return _reduction(_ops.prod, x, axis, keepdims, out, dtype=dtype)
    return _ops.prod(x) if axis is None and not keepdims and out is None else _reduction(_ops.prod, x, axis, keepdims, out)


Selected = namedtuple("Selected", ["values", "indices"])


def max(x, /, axis=None, out=None, keepdims=False, **names):
    """The greatest element; NaN if there is one.

    For the parameters see sum. Along `dim` the result is a named tuple (values, indices), as in PyTorch, and with an array
    in the place of the axis it is maximum(x, axis). Raises ValueError if there are no elements.

    >>> compute.max(compute.asarray([[1, 5], [7, 2]]), axis=1)
    Array([5, 7], dtype=int64)
    """
    if names or isinstance(axis, Array):
        return _extreme("max", "maximum", max, x, axis, out, keepdims, names)
    return _reduction(_ops.max, x, axis, keepdims, out)


def min(x, /, axis=None, out=None, keepdims=False, **names):
    """The least element; NaN if there is one.

    For the parameters see sum. Along `dim` the result is a named tuple (values, indices), as in PyTorch, and with an array
    in the place of the axis it is minimum(x, axis). Raises ValueError if there are no elements.

    >>> compute.min(compute.asarray([[1, 5], [7, 2]]), axis=0)
    Array([1, 2], dtype=int64)
    """
    if names or isinstance(axis, Array):
        return _extreme("min", "minimum", min, x, axis, out, keepdims, names)
    return _reduction(_ops.min, x, axis, keepdims, out)


def _extreme(name, elementwise, function, x, axis, out, keepdims, names):
    """What PyTorch means by max and min of two arrays, and along `dim`: values and indices."""
    if isinstance(axis, Array) and not names:
        return _ops.TABLE[elementwise]["run"](x, axis, out=out)
    if "other" in names and len(names) == 1 and axis is None:
        return _ops.TABLE[elementwise]["run"](x, names["other"], out=out)
    if isinstance(axis, Array):
        raise TypeError(f"{name}: axis is an array; the {name} of two arrays is {elementwise}(x, y)")
    if "dim" in names:
        keepdims = names.pop("keepdim", keepdims)
        dim = names.pop("dim")
        if not names:
            return Selected(function(x, dim, out, keepdims), (argmax if name == "max" else argmin)(x, dim, keepdims=keepdims))
    return _renamed(function, names, x, axis=axis, out=out, keepdims=keepdims)


def mean(x, /, axis=None, dtype=None, out=None, keepdims=False, **names):
    """The arithmetic mean. That of integers and bool has the default dtype; those of up to 32 bits are added exactly.

    axis       an axis, a tuple of axes, or None for all elements
    dtype      to compute in
    out        an array for the result
    keepdims   whether the axes stay, with the extent 1

    Takes `where` as sum does. Raises ValueError for an axis that `x` does not have.

    >>> compute.mean(compute.asarray([[1.0, 2.0], [3.0, 5.0]]), axis=1)
    Array([1.5, 4. ], dtype=float32)
    """
    if names:
        return _renamed(mean, names, x, axis=axis, dtype=dtype, out=out, keepdims=keepdims)
    if type(x) is not Array:
        x = array_of(x)
    if dtype is not None:
        if isinstance(dtype, builtins.bool):  # PyTorch's third argument is keepdim
            return mean(x, axis, None, out, dtype)
        x = astype(x, dtype, copy=False)
    if x.dtype in _INEXACT:
        return _reduction(_ops.mean, x, axis, keepdims, out)
    if x.dtype in (_dtypes.int64, _dtypes.uint64):  # their sum might not fit
        return _reduction(_ops.mean, _ops.cast(x, dtype=_dtypes.DEFAULT_FLOAT), axis, keepdims, out)
    total = _reduction(_ops.sum, x, axis, keepdims, dtype=_dtypes.int64)
    count = x.size // total.size if total.size else 1
    return _ops.TABLE["divide"]["run"](_ops.cast(total, dtype=_dtypes.DEFAULT_FLOAT), count, out=out)


def _inexact(x, dtype):
    """`x` with a dtype, by default the default dtype for integers and bool."""
    if type(x) is not Array:
        x = array_of(x)
    if dtype is None and x.dtype not in _INEXACT and _dtypes.kinds_mix():
        dtype = _dtypes.DEFAULT_FLOAT
    return x if dtype is None else astype(x, dtype, copy=False)


_POPULATION = 0.0  # the default object: a program that says 0.0 has another one


def var(x, /, axis=None, dtype=None, out=None, correction=_POPULATION, keepdims=False, **names):
    """The variance; sums of squares are divided by the number of elements less `correction`.

    `ddof` is another name of `correction`. With PyTorch's `dim` or `keepdim` it is 1 unless given. For the other parameters
    see sum. Integers and bool are computed in the default dtype.

    axis         an axis, a tuple of axes, or None for all elements
    correction   is subtracted from the number of elements: 0 as in NumPy, 1 for samples

    >>> compute.var(compute.asarray([1.0, 2.0, 3.0]), correction=1)
    Array(1., dtype=float32)
    """
    if names:
        return _renamed(var, _divisor("var", names, correction), x, axis=axis, dtype=dtype, out=out, correction=correction, keepdims=keepdims)
    if dtype is not None or type(x) is not Array or x.dtype not in _INEXACT:
        x = _inexact(x, dtype)
    return _reduction(_ops.var, x, axis, keepdims, out, correction=correction)


def std(x, /, axis=None, dtype=None, out=None, correction=_POPULATION, keepdims=False, **names):
    """The standard deviation, the square root of `var`.

    For the parameters see var.

    >>> compute.std(compute.asarray([1.0, 3.0]))
    Array(1., dtype=float32)
    """
    if names:
        return _renamed(std, _divisor("std", names, correction), x, axis=axis, dtype=dtype, out=out, correction=correction, keepdims=keepdims)
    if dtype is not None or type(x) is not Array or x.dtype not in _INEXACT:
        x = _inexact(x, dtype)
    return _reduction(_ops.std, x, axis, keepdims, out, correction=correction)


def _divisor(name, names, correction):
    """The names of a call of var or std, with ddof for PyTorch's `unbiased`, which is its default where `dim` is said."""
    if "unbiased" in names:
        names["ddof"] = 1 if names.pop("unbiased") else 0
    elif ("dim" in names or "keepdim" in names) and correction is _POPULATION and "ddof" not in names:
        names["ddof"] = 1
    if isinstance(names.get("dim"), list):
        names["dim"] = tuple(names["dim"])
    return names


def all(x, /, axis=None, out=None, keepdims=False, **names):
    """Whether every element is true.

    axis       an axis, a tuple of axes, or None for all elements
    out        an array of bool for the result
    keepdims   whether the axes stay, with the extent 1

    >>> compute.all(compute.asarray([[True, False], [True, True]]), axis=1)
    Array([False,  True], dtype=bool)
    """
    if names:
        return _renamed(all, names, x, axis=axis, out=out, keepdims=keepdims)
    return _reduction(_ops.all, x, axis, keepdims, out)


def any(x, /, axis=None, out=None, keepdims=False, **names):
    """Whether some element is true.

    axis       an axis, a tuple of axes, or None for all elements
    out        an array of bool for the result
    keepdims   whether the axes stay, with the extent 1

    >>> compute.any(compute.asarray([0.0, 2.0]) > 1)
    Array(True, dtype=bool)
    """
    if names:
        return _renamed(any, names, x, axis=axis, out=out, keepdims=keepdims)
    return _reduction(_ops.any, x, axis, keepdims, out)


def reduce_and(x, /, axis=None, keepdims=False):
    """The bitwise and of integers or flags along axes.

    >>> compute.reduce_and(compute.asarray([7, 13]))
    Array(5, dtype=int64)
    """
    return _reduction(_ops.reduce_and, x, axis, keepdims)


def reduce_or(x, /, axis=None, keepdims=False):
    """The bitwise or of integers or flags along axes.

    >>> compute.reduce_or(compute.asarray([1, 4]))
    Array(5, dtype=int64)
    """
    return _reduction(_ops.reduce_or, x, axis, keepdims)


def reduce_xor(x, /, axis=None, keepdims=False):
    """The bitwise exclusive or of integers or flags along axes.

    >>> compute.reduce_xor(compute.asarray([7, 2]))
    Array(5, dtype=int64)
    """
    return _reduction(_ops.reduce_xor, x, axis, keepdims)


def count_nonzero(x, /, axis=None, keepdims=False, **names):
    """The number of elements that are not zero.

    >>> compute.count_nonzero(compute.asarray([0, 3, 5]))
    Array(2, dtype=int64)
    """
    if names:
        return renamed(count_nonzero, names, x, axis=axis, keepdims=keepdims)
    return _reduction(_ops.count_nonzero, x, axis, keepdims)


def argmax(x, /, axis=None, out=None, keepdims=False, **names):
    """The index of the first greatest element.

    Without an axis, the index in the flattened array.

    axis       an axis, or None for the flattened array
    out        an array of int64 for the result
    keepdims   whether the axis stays, with the extent 1

    Raises ValueError if there are no elements.

    >>> compute.argmax(compute.asarray([3, 9, 9]))
    Array(1, dtype=int64)
    """
    if names:
        return renamed(argmax, names, x, axis=axis, out=out, keepdims=keepdims)
    axis = None if axis is None else _whole(axis, "argmax")
    return _ops.argmax(x, axis=axis, keepdims=builtins.bool(keepdims), out=out)


def argmin(x, /, axis=None, out=None, keepdims=False, **names):
    """The index of the first least element.

    Without an axis, the index in the flattened array.

    axis       an axis, or None for the flattened array
    out        an array of int64 for the result
    keepdims   whether the axis stays, with the extent 1

    Raises ValueError if there are no elements.

    >>> compute.argmin(compute.asarray([3, 1, 9]))
    Array(1, dtype=int64)
    """
    if names:
        return renamed(argmin, names, x, axis=axis, out=out, keepdims=keepdims)
    axis = None if axis is None else _whole(axis, "argmin")
    return _ops.argmin(x, axis=axis, keepdims=builtins.bool(keepdims), out=out)


def quantile(x, /, q, axis=None, keepdims=False, *, out=None, overwrite_input=False, **names):
    """The quantiles `q` in [0, 1], by linear interpolation between the sorted elements of `x` along an axis.

    Without an axis, of all elements. `q` is a number, or an array or a list of numbers, whose axes the result has in
    front. It is NaN if an element is NaN. Integers are computed in the default dtype. The call waits for an array `q`.
    `out` is an array for the result. `overwrite_input` makes no difference: `x` stays as it is.

    >>> compute.quantile(compute.asarray([1.0, 2.0, 4.0]), [0.25, 0.5])
    Array([1.5, 2. ], dtype=float32)
    """
    if names:
        return renamed(quantile, names, x, q, axis=axis, keepdims=keepdims, out=out)
    return _stored(quantiles("quantile", x, q, 1, axis, keepdims), out)


def _stored(found, out):
    return found if out is None else _ops.copy(found, out=out)


def _rows(name, x, axis, keepdims):
    """Floating-point numbers with a single axis in the place of those that are reduced, this axis, and the result's shape."""
    x = array_of(x)
    if x.dtype in _dtypes.COMPLEX:
        raise TypeError(f"{name}: {x.dtype} is not a real dtype")
    x = x if x.dtype in _dtypes.FLOATS else _ops.cast(x, dtype=_dtypes.DEFAULT_FLOAT)
    axes = list(range(x.ndim)) if axis is None else _axes(axis, x.ndim, name)
    shape = [1 if i in axes else n for i, n in enumerate(x.shape) if keepdims or i not in axes]
    if len(axes) == 1:
        rows, axis = x, axes[0]
    else:
        order = [i for i in range(x.ndim) if i not in axes] + axes
        rows, axis = reshape(_core.permute_view(x, order), (*(x.shape[i] for i in order[:-len(axes)]), -1)) if x.size and axes else _flat(x), -1
    if rows.ndim == 0 or rows.shape[axis] == 0:
        raise ValueError(f"{name}: there are no elements")
    return rows, axis, shape


def quantiles(name, x, q, whole, axis, keepdims):
    """The quantiles `q`, numbers in [0, whole], of the function `name`."""
    rows, axis, shape = _rows(name, x, axis, keepdims)
    rows, last = _ops.sort(rows, axis=axis), rows.shape[axis] - 1
    top = _ops.take(rows, _creation.asarray([last], device=rows.device), axis=axis)  # NaN is sorted to the end

    def value(one):
        below = builtins.min(int(one * last), last)
        places = _creation.asarray([below, builtins.min(below + 1, last)], device=rows.device)
        low, high = (_ops.take(rows, places[i:i + 1], axis=axis) for i in range(2))
        share = one * last - below
        is_between = hasattr(share, "backward") or share > 0  # a variable of compute.grad has a slope everywhere
        return _ops.where(_ops.isnan(top), top, _between(low, high, share) if is_between else low)

    return _of_each(name, value, q, whole, rows, shape)


def nan_quantiles(name, x, q, whole, axis, keepdims):
    """The quantiles `q`, numbers in [0, whole], of the elements that are not NaN, of the function `name`."""
    rows, axis, shape = _rows(name, x, axis, keepdims)
    rows = _ops.sort(rows, axis=axis)
    wide = _dtypes.float64 if rows.dtype is _dtypes.float64 else _dtypes.float32  # halves do not count far
    counts = _ops.count_nonzero(_ops.equal(rows, rows), axes=[axis], keepdims=True)
    last = _ops.maximum(counts - 1, 0)

    def value(one):
        place = _ops.cast(last, dtype=wide) * one
        below = _ops.minimum(_ops.cast(_ops.floor(place), dtype=_dtypes.int64), last)
        low, high = (_ops.take_along_axis(rows, at, axis=axis) for at in (below, _ops.minimum(below + 1, last)))
        share = _ops.cast(place - _ops.cast(below, dtype=wide), dtype=rows.dtype)
        return _ops.where(_ops.equal(share, 0), low, _between(low, high, share))

    return _of_each(name, value, q, whole, rows, shape)


def _of_each(name, value, q, whole, rows, shape):
    """The values of a function of each of the quantiles `q`, which are numbers in [0, whole]."""
    wanted = q if isinstance(q, Array) else None
    if is_values(q):
        wanted = _creation.asarray(q, dtype=_dtypes.float64, device="cpu")
    found = []
    for one in [q] if wanted is None else _flat(wanted).tolist():
        if not 0 <= one <= whole:
            raise ValueError(f"{name}: {one} is not in [0, {whole}]")
        found.append(_core.reshape_view(value(one / whole), shape))
    if wanted is None:
        return found[0]
    shape = [*wanted.shape, *shape]
    return _core.reshape_view(_ops.stack(*found, axis=0), shape) if found else _creation.zeros(shape, dtype=rows.dtype, device=rows.device)


def _between(low, high, share):
    """The value that is `share` of the way from one array to another."""
    way = low + (high - low) * share
    # Their distance may be too great for the dtype, and NaN between infinities.
    return _ops.where(_ops.isfinite(high - low), way, _ops.where(_ops.equal(low, high), low,
                                                                 low * (1 - share) + high * share))


def median(x, /, axis=None, keepdims=False, *, out=None, overwrite_input=False, **names):
    """The median along an axis, or of all elements: of an even number the mean of the middle two. NaN if one is NaN.

    `out` and `overwrite_input` are as of quantile. Along `dim` the result is a named tuple (values, indices) of the lower
    of the middle two, as in PyTorch.

    >>> compute.median(compute.asarray([1.0, 9.0, 2.0, 4.0]))
    Array(3., dtype=float32)
    """
    if "dim" in names:
        x, keepdim = array_of(x), names.get("keepdim", keepdims)
        order = argsort(x, axis=names["dim"])
        place = _core.broadcast_view(_creation.asarray((x.shape[names["dim"]] - 1) // 2, device=x.device),
                                     [1 if i == names["dim"] % x.ndim else n for i, n in enumerate(x.shape)])
        place = _ops.take_along_axis(order, place, axis=names["dim"])
        found = _ops.take_along_axis(x, place, axis=names["dim"])
        shape = [n for i, n in enumerate(place.shape) if keepdim or i != names["dim"] % x.ndim]
        return Selected(_core.reshape_view(found, shape), _core.reshape_view(place, shape))
    if names:
        return renamed(median, names, x, axis=axis, keepdims=keepdims)
    return _stored(quantiles("median", x, 0.5, 1, axis, keepdims), out)


def _only_axis(x, axis, name):
    rank = array_of(x).ndim
    if axis is not None:
        return _whole(axis, name)
    if rank != 1:
        raise ValueError(f"{name}: an array with {rank} axes needs an axis")
    return 0


def cumulative_sum(x, /, axis=None, dtype=None, include_initial=False):
    """The sums of the elements up to each position along an axis.

    With `include_initial`, 0 comes first. Raises ValueError for several axes without an axis; cumsum flattens.

    >>> compute.cumulative_sum(compute.asarray([1, 2, 3]))
    Array([1, 3, 6], dtype=int64)
    """
    return _ops.cumulative_sum(x, axis=_only_axis(x, axis, "cumulative_sum"), dtype=dtype,
                               include_initial=builtins.bool(include_initial))


def cumulative_prod(x, /, axis=None, dtype=None, include_initial=False):
    """The products of the elements up to each position along an axis.

    With `include_initial`, 1 comes first. Raises ValueError for several axes without an axis; cumprod flattens.

    >>> compute.cumulative_prod(compute.asarray([1, 2, 3]))
    Array([1, 2, 6], dtype=int64)
    """
    return _ops.cumulative_prod(x, axis=_only_axis(x, axis, "cumulative_prod"), dtype=dtype,
                                include_initial=builtins.bool(include_initial))


def cumulative_max(x, /, axis=None, include_initial=False):
    """The greatest of the elements up to each position along an axis; NaN from the first NaN on.

    >>> compute.cumulative_max(compute.asarray([1, 3, 2]))
    Array([1, 3, 3], dtype=int64)
    """
    return _ops.cumulative_max(x, axis=_only_axis(x, axis, "cumulative_max"),
                               include_initial=builtins.bool(include_initial))


def cumulative_min(x, /, axis=None, include_initial=False):
    """The least of the elements up to each position along an axis; NaN from the first NaN on.

    >>> compute.cumulative_min(compute.asarray([3, 1, 2]))
    Array([3, 1, 1], dtype=int64)
    """
    return _ops.cumulative_min(x, axis=_only_axis(x, axis, "cumulative_min"),
                               include_initial=builtins.bool(include_initial))


def segment_reduce(x, offsets, /, *, kind="sum"):
    """The "sum", "prod", "min" or "max" of each segment of rows of `x`.

    Segment i has the rows [offsets[i], offsets[i + 1]). `offsets` is a vector of ascending integers, with one more element than there are segments.

    >>> compute.segment_reduce(compute.asarray([1, 2, 3, 4]), [0, 1, 4])
    Array([1, 9], dtype=int64)
    """
    return _ops.segment_reduce(x, offsets, kind=kind)


def diff(x, /, n=1, axis=-1, prepend=None, append=None, **names):
    """The differences of neighbours along an axis, `n` times, behind `prepend` and in front of `append`.

    >>> compute.diff(compute.asarray([1, 4, 9]))
    Array([3, 5], dtype=int64)
    """
    if names:
        return renamed(diff, names, x, n=n, axis=axis, prepend=prepend, append=append)
    x, prepend, append = arrays_of(x, prepend, append)
    axis, n = _whole(axis, "diff"), _whole(n, "diff", "n")
    if prepend is not None or append is not None:
        parts = (_edge(part, x, axis) for part in (prepend, x, append) if part is not None)
        x = concat(list(parts), axis=axis)
    return _ops.diff(x, n=n, axis=axis)


def _edge(part, x, axis):
    """What diff puts at an end: an array, or a number."""
    if getattr(part, "ndim", 0):
        return part
    shape = [1 if i == axis % x.ndim else n for i, n in enumerate(x.shape)]
    return _core.broadcast_view(_creation.asarray(part, dtype=x.dtype, device=x.device), shape)


# ---- Searching, sorting and sets ------------------------------------------------------------------------------------


def nonzero(x, /, *, as_tuple=True):
    """The indices along each axis of the elements that are not zero, as a tuple; with `as_tuple` false, argwhere.

    Raises ValueError for an array without axes.

    >>> compute.nonzero(compute.asarray([0, 3, 0, 4]))
    (Array([1, 3], dtype=int64),)
    """
    x = array_of(x)
    if x.ndim == 0:
        raise ValueError("nonzero: an array without axes has no indices; use atleast_1d")
    indices, count = _ops.nonzero(x)
    used = int(count)
    if not as_tuple:
        return _ops.copy(indices[:, :used].T)
    return tuple(indices[i, :used] for i in range(x.ndim))


def searchsorted(x1, x2, /, side="left", sorter=None, *, right=None):
    """The positions at which the elements of `x2` would be inserted into the sorted vector `x1`.

    x1       a sorted vector
    x2       an array or a number
    side     "left": in front of equal elements, "right": behind them
    sorter   indices that sort `x1`, if it is not sorted
    right    PyTorch's name for a side: true is "right"

    >>> compute.searchsorted([1, 3, 5], compute.asarray([0, 3, 9]))
    Array([0, 1, 3], dtype=int64)
    """
    side = side if right is None else "right" if right else "left"
    x1, x2 = arrays_of(x1, x2)
    if not (isinstance(x2, Array) and getattr(x1, "dtype", None) is x2.dtype):
        dtype = _dtypes.common("searchsorted", x1, x2)
        if not isinstance(x2, Array):
            x2 = _creation.full((), x2, dtype=dtype, device=getattr(x1, "device", None))
        x1, x2 = (x if x.dtype is dtype else _ops.cast(x, dtype=dtype) for x in (x1, x2))
    return _ops.searchsorted(x1, x2, sorter, side=side)


def _line(x, axis, name):
    """An array and the axis that the function `name` sorts."""
    return (_flat(x), 0) if axis is None else (x, _whole(axis, name))


def sort(x, /, axis=-1, *, descending=False, stable=True, kind=None, **names):
    """`x` sorted along an axis, or flattened and sorted without one; NaN comes last.

    Sorts are stable, so NumPy's `kind` makes no difference. Along `dim` the result is a named tuple (values, indices), as
    in PyTorch.

    axis         an axis, or None for the flattened array
    descending   whether the greatest element comes first

    Raises TypeError for complex numbers, which have no order.

    >>> compute.sort(compute.asarray([3, 1, 2]), descending=True)
    Array([3, 2, 1], dtype=int64)
    """
    if names:
        x, known = array_of(x), resolved(sort, names, {"axis": axis})
        indices = argsort(x, known["axis"], descending=descending)
        return Selected(_ops.take_along_axis(x, indices, axis=known["axis"]), indices)
    x, axis = _line(array_of(x), axis, "sort")
    return _ops.sort(x, axis=axis, descending=builtins.bool(descending))


def argsort(x, /, axis=-1, *, descending=False, stable=True, kind=None, **names):
    """The indices that sort `x` along an axis, or the flattened array without one.

    Sorts are stable, so NumPy's `kind` makes no difference.

    axis         an axis, or None for the flattened array
    descending   whether the greatest element comes first

    >>> compute.argsort(compute.asarray([3, 1, 2]))
    Array([1, 2, 0], dtype=int64)
    """
    if names:
        return renamed(argsort, names, x, axis=axis, descending=descending)
    x, axis = _line(array_of(x), axis, "argsort")
    return _ops.argsort(x, axis=axis, descending=builtins.bool(descending))


TopK = namedtuple("TopK", ["values", "indices"])


def top_k(x, /, k, axis=-1, largest=True, sorted=True, **names):
    """The `k` largest elements of `x` along an axis, or the smallest, sorted, and their indices (int64).

    Equal elements are in the order of `x`, and NaN comes last. Returns a named tuple (values, indices).

    k         how many
    axis      an axis
    largest   whether the largest are wanted, or the smallest

    Raises ValueError if there are fewer than `k` elements.

    >>> compute.top_k(compute.asarray([3, 9, 4]), 2)
    TopK(values=Array([9, 4], dtype=int64), indices=Array([1, 2], dtype=int64))
    """
    if names:
        return renamed(top_k, names, x, k, axis=axis, largest=largest)
    k, axis = _whole(k, "top_k", "k"), _whole(axis, "top_k")
    return TopK(*_ops.top_k(x, k=k, axis=axis, largest=builtins.bool(largest)))


def histogram(x, /, bins=10, range=None, density=False, weights=None):
    """The number of elements of `x` in each bin, and the edges of the bins.

    `bins` is a number of equal bins between the two numbers of `range`, or between the least and the greatest element
    of `x`; or a vector of ascending edges. The last bin has its upper edge too; elements outside count nowhere. With
    `weights`, an array of the shape of `x`, the weights are added up instead. `density` divides by the sum and the
    widths, so that the integral is 1. Without a range the call waits for `x`. Counts are int64.

    Raises ValueError for edges that do not ascend, and TypeError for bool and complex numbers.

    >>> compute.histogram(compute.asarray([1.0, 2.0, 2.5]), bins=2)
    (Array([1, 2], dtype=int64), Array([1.  , 1.75, 2.5 ], dtype=float32))
    """
    x, weights = arrays_of(x, weights)
    if x.dtype in _dtypes.COMPLEX or x.dtype is _dtypes.bool:
        raise TypeError(f"histogram: {x.dtype} is not a real numeric dtype; convert it")
    float_dtype = x.dtype if x.dtype in _dtypes.FLOATS else _dtypes.DEFAULT_FLOAT
    even = not isinstance(bins, Array) and not is_values(bins)
    if even:
        try:
            bins = operator.index(bins)
        except TypeError:
            raise TypeError(f"histogram: bins is {bins!r}; expected a number of bins, or their edges") from None
        if bins < 1:
            raise ValueError(f"histogram: bins is {bins}; expected at least 1")
        least, greatest = _limits(x, range)
        edges = _creation.linspace(least, greatest, bins + 1, dtype=float_dtype, device=x.device)
    else:
        whole = x.dtype is _dtypes.uint64 and builtins.all(isinstance(edge, int) for edge in bins)
        edges = _creation.asarray(bins, dtype=x.dtype if whole else None, device=x.device)
        if edges.ndim != 1 or edges.size < 2:
            raise ValueError(f"histogram: edges of the shape {edges.shape}; expected a vector of 2 or more")
        if not builtins.bool(all(edges[:-1] <= edges[1:])):
            raise ValueError("histogram: the edges do not ascend")
    if even and weights is None:
        counts = _ops.histogram(x, bins=bins, minimum=least, maximum=greatest)
    else:
        counts = _counted(_flat(x), edges, None if weights is None else _weights(weights, x))
    if density:
        dtype = edges.dtype if edges.dtype in _dtypes.FLOATS else float_dtype
        wide = _dtypes.float64 if dtype is _dtypes.float64 else _dtypes.float32  # halves do not count far
        counts, widths = (astype(part, wide, copy=False) for part in (counts, _ops.diff(astype(edges, wide, copy=False))))
        counts = astype(counts / _ops.sum(counts) / widths, dtype, copy=False)
    return counts, edges


def _limits(x, range):
    """The ends of a histogram, as numbers."""
    if range is not None:
        least, greatest = (float(end) for end in range)
    elif x.size:
        least, greatest = float(_ops.min(x)), float(_ops.max(x))
    else:
        least, greatest = 0.0, 1.0
    if not (math.isfinite(least) and math.isfinite(greatest) and least <= greatest):
        raise ValueError(f"histogram: [{least}, {greatest}] is not a range of finite numbers")
    return (least, greatest) if least < greatest else (least - 0.5, greatest + 0.5)


def _weights(weights, x):
    weights, = arrays_of(weights, device=x.device)
    if weights.shape != x.shape:
        raise ValueError(f"weights of the shape {weights.shape} for elements of the shape {x.shape}")
    return _flat(weights)


def _counted(x, edges, weights):
    """The sums of the weights, or without them the numbers, of the elements of a vector between edges."""
    floats = [one.dtype for one in (x, edges) if one.dtype in _dtypes.FLOATS]
    dtype = floats[0] if len(floats) == 1 else _dtypes.promote(x.dtype, edges.dtype)
    x, edges = (one if one.dtype is dtype else _ops.cast(one, dtype=dtype) for one in (x, edges))
    bins = edges.size - 1
    at = searchsorted(edges, x, side="right") - 1
    at = _ops.where(_ops.equal(x, edges[-1]), bins - 1, at)
    outside = _ops.logical_or(at < 0, at >= bins)
    if weights is None:
        weights = _creation.ones((x.size,), dtype=_dtypes.int64, device=x.device)
    sums = _creation.zeros((bins + 1,), dtype=weights.dtype, device=x.device)  # one more, for those outside
    return _ops.scatter(sums, _ops.where(outside, bins, at), weights, axis=0, reduction="add")[:bins]


def bincount(x, /, weights=None, minlength=0):
    """How often each integer from 0 to the greatest element of the vector `x` occurs, as int64.

    With `weights`, an array of the shape of `x`, their sums. The result has at least `minlength` elements. The call
    waits for `x`. A negative element raises ValueError.

    >>> compute.bincount(compute.asarray([0, 2, 2]))
    Array([1, 0, 2], dtype=int64)
    """
    x, = arrays_of(x)
    rank = x.ndim
    minlength = _whole(minlength, "bincount", "minlength")
    if minlength < 0:
        raise ValueError(f"bincount: minlength is {minlength}, which is negative")
    if rank != 1 or x.dtype not in _dtypes.INTEGERS:
        raise TypeError(f"bincount: {x.dtype} with {rank} axes is not a vector of integers")
    greatest = int(_AS_UNSIGNED.reduce("max", [x], [], None, False, None)) if x.size else -1
    if greatest >= 2**63 and x.dtype in _dtypes.SIGNED:
        raise ValueError("bincount: an element is negative")
    weights = None if weights is None else _weights(weights, x)
    dtype = _dtypes.int64 if weights is None else weights.dtype
    counts = _creation.zeros((builtins.max(greatest + 1, minlength),), dtype=dtype, device=x.device)
    if weights is None:
        return _ops.scatter(counts, x, 1, axis=0, reduction="add", out=counts)
    return _ops.scatter(counts, x, weights, axis=0, reduction="add")


def _unique(x):
    """The four outputs of unique, cut to the number of values."""
    x = array_of(x)
    if x.dtype in _dtypes.COMPLEX:
        return _unique_complex(x)
    values, indices, inverse, counts, count = _ops.unique(x)
    used = int(count)
    return values[:used], indices[:used], inverse, counts[:used]


def _unique_complex(x):
    """Complex values are made different by the pairs of their parts, each of which has an order."""
    flat = _flat(x)
    parts = [_unique(part)[2] for part in (_ops.real(flat), _ops.imag(flat))]
    size = flat.size
    pairs = parts[0] * size + parts[1] if size else parts[0]
    nan = _ops.isnan(flat)
    first = _creation.arange(size, device=x.device) + size * size
    _, indices, inverse, counts = _unique(_ops.where(nan, first, pairs))
    return _ops.take(flat, indices, axis=0), indices, _core.reshape_view(inverse, x.shape), counts


UniqueAll = namedtuple("UniqueAll", ["values", "indices", "inverse_indices", "counts"])
UniqueCounts = namedtuple("UniqueCounts", ["values", "counts"])
UniqueInverse = namedtuple("UniqueInverse", ["values", "inverse_indices"])


def unique_all(x, /):
    """The different values, ascending; the index of the first of each; each element's position; and the counts.

    Each NaN is a value of its own.

    >>> compute.unique_all(compute.asarray([3, 1, 3]))
    UniqueAll(values=Array([1, 3], dtype=int64), indices=Array([1, 0], dtype=int64), inverse_indices=Array([1, 0, 1], dtype=int64), counts=Array([1, 2], dtype=int64))
    """
    return UniqueAll(*_unique(x))


def unique_counts(x, /):
    """The different values of `x` and how often each occurs.

    >>> compute.unique_counts(compute.asarray([3, 1, 3]))
    UniqueCounts(values=Array([1, 3], dtype=int64), counts=Array([1, 2], dtype=int64))
    """
    values, _, _, counts = _unique(x)
    return UniqueCounts(values, counts)


def unique_inverse(x, /):
    """The different values of `x` and the position of each element's value.

    >>> compute.unique_inverse(compute.asarray([3, 1, 3]))
    UniqueInverse(values=Array([1, 3], dtype=int64), inverse_indices=Array([1, 0, 1], dtype=int64))
    """
    values, _, inverse, _ = _unique(x)
    return UniqueInverse(values, inverse)


def unique_values(x, /):
    """The different values of `x`.

    >>> compute.unique_values(compute.asarray([3, 1, 3]))
    Array([1, 3], dtype=int64)
    """
    return _unique(x)[0]


def isin(x1, x2, /, *, invert=False):
    """Whether each element of `x1` is among those of `x2`.

    >>> compute.isin(compute.asarray([1, 2, 3]), [2, 5])
    Array([False,  True, False], dtype=bool)
    """
    x1, x2 = arrays_of(x1, x2)
    dtype = _dtypes.common("isin", x1, x2)
    if not isinstance(x1, Array):
        x1 = _creation.full((), x1, dtype=dtype, device=x2.device)
    if not isinstance(x2, Array):
        x2 = _creation.full((), x2, dtype=dtype, device=x1.device)
    x1, x2 = (x if x.dtype is dtype else _ops.cast(x, dtype=dtype) for x in (x1, x2))
    if dtype in _dtypes.COMPLEX:
        equal = _ops.equal(_core.reshape_view(_flat(x1), (x1.size, 1)), _flat(x2))
        found = _core.reshape_view(any(equal, axis=1), x1.shape)
        return _ops.logical_not(found) if invert else found
    return _ops.isin(x1, x2, invert=builtins.bool(invert))


# ---- Products -------------------------------------------------------------------------------------------------------


def matmul(x1, x2, /, out=None, *, precision="default"):
    """The matrix product.

    x1, x2      vectors, matrices, or stacks of matrices in the last two axes, which broadcast
    out         an array for the result
    precision   of products of float32: "highest", "tf32" or "bf16"; "default" is the setting COMPUTE_MATH

    Raises ValueError if the inner extents differ, and for numbers.

    >>> compute.matmul(compute.asarray([[1.0, 2.0], [3.0, 4.0]]), [1, 1])
    Array([3., 7.], dtype=float32)
    """
    if precision != "default":
        return _ops.matmul(x1, x2, out=out, precision=precision)
    return _ops.matmul(x1, x2) if out is None else _ops.matmul(x1, x2, out=out)


def vecdot(x1, x2, /, *, axis=-1, **names):
    """The sums of the products of elements along an axis, the first operand conjugated.

    >>> compute.vecdot(compute.asarray([1, 2]), [3, 4])
    Array(11, dtype=int64)
    """
    if names:
        return renamed(vecdot, names, x1, x2, axis=axis)
    return _ops.vecdot(x1, x2, axis=_whole(axis, "vecdot"))


def tensordot(x1, x2, /, axes=2, **names):
    """The sums of products over pairs of axes.

    `axes` is a number of axes, the last of `x1` and the first of `x2`, or two sequences of as many axes of each.

    >>> compute.tensordot(compute.ones((2, 3)), compute.ones((3, 2)), axes=1)
    Array([[3., 3.],
           [3., 3.]], dtype=float32)
    """
    if names:
        return renamed(tensordot, names, x1, x2, axes=axes)
    x1, x2 = arrays_of(x1, x2)
    rank1, rank2 = x1.ndim, x2.ndim
    if isinstance(axes, int):
        if axes < 0:
            raise ValueError(f"tensordot: axes is {axes}; it must not be negative")
        first = list(range(rank1 - axes, rank1))
        second = list(range(axes))
    else:
        first, second = ([axis] if isinstance(axis, int) else list(axis) for axis in axes)
    return _ops.tensordot(x1, x2, axes_a=_axes(first, rank1, "tensordot"), axes_b=_axes(second, rank2, "tensordot"))


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _equation(*operands):
    """The equation and the operands of einsum(x, [0, 1], y, [1, 2], [0, 2]), where numbers stand for letters."""
    if not builtins.all(isinstance(one, (list, tuple)) for one in operands[1::2]):
        raise TypeError(f"einsum: the equation is {type(operands[0]).__name__}, not str, and comes first")
    texts = ["".join("..." if one is Ellipsis else _LETTERS[one] for one in labels) for labels in operands[1::2]]
    equation = ",".join(texts)
    if len(operands) % 2:
        equation += "->" + "".join("..." if one is Ellipsis else _LETTERS[one] for one in operands[-1])
    return equation, operands[:len(operands) // 2 * 2:2]


def einsum(equation, /, *operands, optimize=False, precision="default"):
    """Sums of products of the elements of arrays, as an equation such as "ij,jk->ik" says.

    A label that occurs twice in an operand takes its diagonal; ... stands for axes that broadcast. Labels that the part
    behind -> does not name are summed; without that part the result has the labels that occur once, in alphabetical
    order. Operands are contracted from left to right, whatever `optimize` says. NumPy's form without an equation is
    einsum(x, [0, 1], y, [1], [0]). `precision` is as in matmul.

    >>> compute.einsum("ij,j->i", compute.asarray([[1, 2], [3, 4]]), [1, 1])
    Array([3, 7], dtype=int64)
    """
    if not isinstance(equation, str):
        equation, operands = _equation(equation, *operands)
    elif len(operands) == 1 and isinstance(operands[0], (list, tuple)) and ("," in equation or isinstance(operands[0][0], Array)):
        operands = operands[0]  # a list of operands, as PyTorch takes it
    return _ops.einsum(*arrays_of(*operands), equation=equation, precision=precision)
