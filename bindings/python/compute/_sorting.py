# SPDX-License-Identifier: Apache-2.0
"""Searching, sorting, order statistics, counts and sets."""
from __future__ import annotations

import builtins
import functools
import math
import operator
from collections import namedtuple

from . import _core, _creation, _dtypes, _ops
from ._core import Array, array_of
from ._creation import arrays_of, is_values
from ._elementwise import _computed, _inexact, astype
from ._errors import renamed, resolved
from ._manipulation import _axes, _flat, _whole, reshape
from ._reductions import Selected, _stored, all, any


# An integer below 0 is at least 2^63: the greatest element tells whether there is one.
_AS_UNSIGNED = _core.expression("bitcast(convert(x, int64), uint64)", ("x",), ())


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
        known = resolved(sort, names, {"axis": axis})
        return Selected(*_with_places(*_line(array_of(x), known["axis"], "sort"), builtins.bool(descending)))
    return _sorted(*_line(array_of(x), axis, "sort"), builtins.bool(descending))


def _sorted(x, axis, descending=False):
    """The sorted elements. Of a variable of compute.grad the places are kept: they would be found again for its gradient."""
    return _ops.sort(x, axis=axis, descending=descending) if isinstance(x, Array) else _with_places(x, axis, descending)[0]


def _with_places(x, axis, descending):
    """The sorted elements, and where they were."""
    if not isinstance(x, Array):
        from . import grad

        return grad._record("sorted with places", _with_places, [x], {"axis": axis, "descending": descending})
    places = _ops.argsort(x, axis=axis, descending=descending)
    return _ops.take_along_axis(x, places, axis=axis), places


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


def quantiles(name, x, q, whole, axis, keepdims):
    """The quantiles `q`, numbers in [0, whole], of the function `name`."""
    rows, axis, shape = _rows(name, x, axis, keepdims)
    rows, last = _sorted(rows, axis), rows.shape[axis] - 1
    before = (slice(None),) * (axis % rows.ndim)

    def at(place):
        return rows[(*before, slice(place, place + 1))]

    top = at(last)  # NaN is sorted to the end

    def value(one):
        below = builtins.min(int(one * last), last)
        share, low = one * last - below, at(below)
        is_variable = type(share) is not float and hasattr(share, "backward")
        if isinstance(rows, Array) and not is_variable:
            return (_QUANTILE.map([low, at(below + 1), top], [share], None) if share > 0 else _UNLESS_NAN.map([low, top], (), None))[0]
        high = at(builtins.min(below + 1, last))
        if not is_variable and not isinstance(rows, Array) and rows.dtype in (_dtypes.float32, _dtypes.float64):
            between, unless_nan = _of_variables()
            return between(low, high, top, share) if share > 0 else unless_nan(low, top)
        is_between = is_variable or share > 0  # a variable of compute.grad has a slope everywhere
        return _ops.where(_ops.isnan(top), top, _between(low, high, share) if is_between else low)

    return _of_each(name, value, q, whole, rows, shape)


def nan_quantiles(name, x, q, whole, axis, keepdims):
    """The quantiles `q`, numbers in [0, whole], of the elements that are not NaN, of the function `name`."""
    rows, axis, shape = _rows(name, x, axis, keepdims)
    rows = _sorted(rows, axis)
    wide = _dtypes.float64 if rows.dtype is _dtypes.float64 else _dtypes.float32  # halves do not count far
    counts = _ops.count_nonzero(_ops.equal(rows, rows), axes=[axis], keepdims=True)
    last = _ops.maximum(counts - 1, 0)

    def value(one):
        place = _ops.cast(last, dtype=wide) * one
        below = _ops.minimum(_ops.cast(_ops.floor(place), dtype=_dtypes.int64), last)
        low, high = (_ops.take_along_axis(rows, at, axis=axis) for at in (below, _ops.minimum(below + 1, last)))
        share = place - _ops.cast(below, dtype=wide)
        return _ops.where(_ops.equal(share, 0), low, _between(low, high, share))

    return _of_each(name, value, q, whole, rows, shape)


def _rows(name, x, axis, keepdims):
    """Floating-point numbers with a single axis in the place of those that are reduced, this axis, and the result's shape."""
    x = _inexact(x)
    if x.dtype in _dtypes.COMPLEX:
        raise TypeError(f"{name}: {x.dtype} is not a real dtype")
    axes = list(range(x.ndim)) if axis is None else _axes(axis, x.ndim, name)
    shape = [1 if i in axes else n for i, n in enumerate(x.shape) if keepdims or i not in axes]
    if len(axes) == 1:
        rows, axis = x, axes[0]
    else:
        kept = [i for i in range(x.ndim) if i not in axes]
        extents = [x.shape[i] for i in kept] + [math.prod(x.shape[i] for i in axes)]
        rows, axis = reshape(_core.permute_view(x, kept + axes), extents), -1
    if rows.ndim == 0 or rows.shape[axis] == 0:
        raise ValueError(f"{name}: there are no elements")
    return rows, axis, shape


def _of_each(name, value, q, whole, rows, shape):
    """The values of a function of each of the quantiles `q`, which are numbers in [0, whole]."""
    if type(q) is float and 0 <= q <= whole:
        return _core.reshape_view(value(q / whole), shape)
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


_UNLESS_NAN_TEXT = "where(isnan(top), top, x)"
# The distance of two numbers may be too great for the dtype, and NaN between infinities.
_QUANTILE_TEXT = "d = y - x; where(isnan(top), top, where(isfinite(d), x + d * s, where(x == y, x, x * (1 - s) + y * s)))"
_UNLESS_NAN = _core.expression(_UNLESS_NAN_TEXT, ("x", "top"), ())
_QUANTILE = _core.expression(_QUANTILE_TEXT, ("x", "y", "top"), ("s",))


@functools.cache
def _of_variables():
    """Both expressions for variables of compute.grad, which need one step for the gradient then."""
    from .expressions import Expression

    return Expression(_QUANTILE_TEXT, "x", "y", "top", "s"), Expression(_UNLESS_NAN_TEXT, "x", "top")


def _between(low, high, share):
    """The value that is `share` of the way from one array to another. That of halves is rounded once."""
    dtype = low.dtype
    if dtype in (_dtypes.float16, _dtypes.bfloat16):
        return _ops.cast(_between(*(_ops.cast(x, dtype=_dtypes.float32) for x in (low, high)), share), dtype=dtype)
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
        x, keepdim, dim = array_of(x), names.get("keepdim", keepdims), names["dim"]
        middle = (x.shape[dim] - 1) // 2
        last = (slice(None),) * (dim % x.ndim) + (slice(middle, middle + 1) if keepdim else middle,)
        return Selected(*(_ops.copy(found[last]) for found in top_k(x, middle + 1, axis=dim, largest=False)))
    if names:
        return renamed(median, names, x, axis=axis, keepdims=keepdims)
    return _stored(quantiles("median", x, 0.5, 1, axis, keepdims), out)


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
    return _flat(_computed(weights, "weights"))


def _counted(x, edges, weights):
    """The sums of the weights, or without them the numbers, of the elements of a vector between edges."""
    floats = [one.dtype for one in map(_computed, (x, edges)) if one.dtype in _dtypes.FLOATS]
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
