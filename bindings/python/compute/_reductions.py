# SPDX-License-Identifier: Apache-2.0
"""Reductions, cumulative reductions and differences."""
from __future__ import annotations

import builtins
from collections import namedtuple

from . import _core, _creation, _dtypes, _ops
from ._core import Array, array_of
from ._creation import arrays_of
from ._dtypes import INEXACT
from ._elementwise import _computed, astype, conj, isclose, real
from ._errors import renamed, resolved
from ._manipulation import _axes, _whole, concat


_NEUTRAL = {"sum": 0, "prod": 1, "all": True, "any": False}

_COMBINED = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}


def _renamed(function, names, x, /, **known):
    """renamed, for reductions: with NumPy's `where`, a mask of the elements that count, and `initial`, a further number."""
    name, where, initial = function.__name__, names.pop("where", True), names.pop("initial", None)
    known = resolved(function, names, known)
    if initial is not None and name not in _COMBINED:
        raise TypeError(f"{name}() got an unexpected keyword argument 'initial'; expected {', '.join(known)}")
    if (where is not True or initial is not None) and name in ("max", "min") and array_of(x).dtype is _dtypes.bool:
        return function(x)  # which refuses bool
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
    if name in ("max", "min") and array_of(x).size == 0:  # of no elements the result is the further number
        x = array_of(x)
        return _stored(_creation.full(any(x, **known).shape, initial, dtype=x.dtype, device=x.device), out)
    return _ops.TABLE[_COMBINED[name]]["run"](function(x, **known), initial, out=out)


def _masked_moment(name, x, where, axis, dtype, out, keepdims, correction=0):
    """The mean, var or std of the elements where a mask is true."""
    x = _computed(_inexact(x, dtype))
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


def _stored(found, out):
    return found if out is None else _ops.copy(found, out=out)


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


Selected = namedtuple("Selected", ["values", "indices"])


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
    if x.dtype not in _dtypes.EXACT:
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
    if dtype is None and x.dtype in _dtypes.EXACT and _dtypes.kinds_mix():
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
    if dtype is not None or type(x) is not Array or x.dtype not in INEXACT:
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
    if dtype is not None or type(x) is not Array or x.dtype not in INEXACT:
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


def allclose(x1, x2, /, rtol=1e-5, atol=1e-8, equal_nan=False):
    """Whether isclose holds for all elements, as a bool of Python.

    >>> compute.allclose([1.0], [1.0 + 1e-9])
    True
    """
    return builtins.bool(all(isclose(x1, x2, rtol=rtol, atol=atol, equal_nan=equal_nan)))


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
