# SPDX-License-Identifier: Apache-2.0
"""Functions of NumPy that the standard does not have, composed of other ops."""
from __future__ import annotations

import builtins
import functools
import math
import operator

from . import _core, _creation, _dtypes, _functions, _ops
from ._core import Array, array_of
from ._creation import arrays_of
from ._dtypes import INEXACT
from ._elementwise import _computed, _inexact
from ._errors import no_integers, renamed
from ._manipulation import _axes, _axis, concat, reshape
from ._reductions import _stored
from .expressions import expression
from .grad import constant
from .linalg import vector_norm

_HALVES = (_dtypes.float16, _dtypes.bfloat16)


def _common(*arrays):
    """The arrays as floating-point or complex numbers of one dtype. Integers have none of their own."""
    arrays = [_computed(x) for x in arrays_of(*arrays)]
    kinds = [x.dtype for x in arrays if x.dtype in INEXACT]
    dtype = _dtypes.DEFAULT_FLOAT if not kinds else kinds[0]
    for kind in kinds:
        dtype = _dtypes.promote(dtype, kind)
    return [x if x.dtype is dtype else _ops.cast(x, dtype=dtype) for x in arrays]


def _part(x, axis, start, stop=None, step=None):
    return x[(slice(None),) * axis + (slice(start, stop, step),)]


def _along(x, axis, rank):
    """A vector as an array with `rank` axes whose extents are 1, but for one."""
    return _core.reshape_view(x, [x.shape[0] if i == axis else 1 for i in range(rank)])


# ---- Splitting ------------------------------------------------------------------------------------------------------


def _parts(x, places, axis):
    places = [0, *places, None]
    return tuple(_part(x, axis, start, stop) for start, stop in zip(places, places[1:]))


def _places(indices):
    return [operator.index(one) for one in (indices.tolist() if hasattr(indices, "tolist") else indices)]


def array_split(x, /, indices_or_sections, axis=0, **names):
    """Views of parts of `x` along an axis, as a tuple: so many of nearly one extent, or those between the indices.

    If the axis does not divide evenly, the first parts have one element more.

    >>> compute.array_split(compute.arange(3), 2)
    (Array([0, 1], dtype=int64), Array([2], dtype=int64))
    """
    if names:
        return renamed(array_split, names, x, indices_or_sections, axis=axis)
    return _split("array_split", x, indices_or_sections, axis)


def _split(name, x, indices_or_sections, axis):
    """The parts of the function `name`; of one extent, unless it is array_split."""
    x = array_of(x)
    axis = _axis(axis, x.ndim, name)
    if not hasattr(indices_or_sections, "__index__") or isinstance(indices_or_sections, Array):
        try:
            places = _places(indices_or_sections)
        except TypeError:
            no_integers(indices_or_sections, TypeError)
        return _parts(x, places, axis)
    if indices_or_sections <= 0:
        raise ValueError(f"{name}: {indices_or_sections} is no number of parts")
    size, more = divmod(x.shape[axis], indices_or_sections)
    if more and name != "array_split":
        raise ValueError(f"{name}: an axis of extent {x.shape[axis]} does not divide into {indices_or_sections} parts of "
                         "one extent; use array_split")
    return _parts(x, [i * size + builtins.min(i, more) for i in range(1, indices_or_sections)], axis)


def split(x, /, indices_or_sections, axis=0, *, dim=None):
    """Views of parts of `x` along an axis, as a tuple: so many of one extent, or those between the indices.

    Raises ValueError if the axis does not divide into so many parts. PyTorch's split(x, n) is split(x, range(n, len(x), n)),
    or with its `dim`, as there, split(x, n, dim=0): parts of so many elements, or of these extents.

    >>> compute.split(compute.arange(4), 2)
    (Array([0, 1], dtype=int64), Array([2, 3], dtype=int64))
    """
    if dim is None:
        return _split("split", x, indices_or_sections, axis)
    extents, extent = indices_or_sections, array_of(x).shape[_axis(dim, array_of(x).ndim, "split")]
    if isinstance(extents, int):
        return _split("split", x, list(range(extents, extent, extents)), dim)
    if builtins.sum(extents) != extent:
        raise ValueError(f"split: the extents {extents} for an axis of extent {extent}; expected that as their sum")
    return _split("split", x, [builtins.sum(extents[:i]) for i in range(1, len(extents))], dim)


def hsplit(x, indices_or_sections, /):
    """split along axis 1, the columns; of a vector along axis 0.

    Raises ValueError if the axis does not divide into so many parts.

    >>> [x.shape for x in compute.hsplit(compute.zeros((2, 4)), 2)]
    [(2, 2), (2, 2)]
    """
    x = array_of(x)
    if x.ndim == 0:
        raise ValueError("hsplit: an array with 0 axes has no columns")
    return _split("hsplit", x, indices_or_sections, builtins.min(1, x.ndim - 1))


def vsplit(x, indices_or_sections, /):
    """split along axis 0, the rows, of an array with at least 2 axes.

    Raises ValueError if the axis does not divide into so many parts.

    >>> [x.shape for x in compute.vsplit(compute.zeros((4, 2)), 2)]
    [(2, 2), (2, 2)]
    """
    x = array_of(x)
    if x.ndim < 2:
        raise ValueError(f"vsplit: an array with {x.ndim} axes has no rows")
    return _split("vsplit", x, indices_or_sections, 0)


# ---- Reductions that leave out NaN ----------------------------------------------------------------------------------


def _reduced(name, x, axis):
    """The axes that the function `name` reduces."""
    rank = x.ndim
    return range(rank) if axis is None else _axes(axis, rank, name)


_SUM_OF_NUMBERS = expression("where(isnan(x), 0, x)").reducer("sum")
_REALS = (_dtypes.float32, _dtypes.float64)


def nansum(x, /, axis=None, dtype=None, keepdims=False, **names):
    """The sum of the elements that are not NaN; 0 if there are none. Takes `where` and `initial` as sum does.

    >>> compute.nansum([1.0, compute.nan])
    Array(1., dtype=float32)
    """
    if names:
        where, initial = names.pop("where", True), names.pop("initial", None)
        x = x if where is True else _ops.where(array_of(where), array_of(x), 0)
        found = renamed(nansum, names, x, axis=axis, dtype=dtype, keepdims=keepdims)
        return found if initial is None else _ops.add(found, initial)
    x = array_of(x)
    axes = _reduced("nansum", x, axis)
    if type(x) is Array and x.dtype in _REALS and dtype is None:
        return _SUM_OF_NUMBERS([x], (), None if axis is None else axes, builtins.bool(keepdims))
    return _functions.sum(_filled(x, 0), axis=axis, dtype=dtype, keepdims=keepdims)


def nanprod(x, /, axis=None, dtype=None, keepdims=False):
    """The product of the elements that are not NaN; 1 if there are none.

    >>> compute.nanprod([2.0, compute.nan, 3.0])
    Array(6., dtype=float32)
    """
    x = array_of(x)
    _reduced("nanprod", x, axis)
    return _functions.prod(_filled(x, 1), axis=axis, dtype=dtype, keepdims=keepdims)


def _filled(x, value):
    return _ops.where(_ops.isnan(x), value, x) if x.dtype in INEXACT else x


def _nan_extreme(name, function, x, axis, keepdims, least):
    x = array_of(x)
    if any(x.shape[i] == 0 for i in _reduced(name, x, axis)):
        raise ValueError(f"{name}: there are no elements")
    if x.dtype not in _dtypes.FLOATS:
        return function(x, axis=axis, keepdims=keepdims)
    nan = _ops.isnan(x)
    found = function(_ops.where(nan, least, x), axis=axis, keepdims=keepdims)
    return _ops.where(_functions.all(nan, axis=axis, keepdims=keepdims), math.nan, found)


def nanmax(x, /, axis=None, keepdims=False):
    """The greatest of the elements that are not NaN; NaN if there are none.

    >>> compute.nanmax([1.0, compute.nan])
    Array(1., dtype=float32)
    """
    return _nan_extreme("nanmax", _functions.max, x, axis, keepdims, -math.inf)


def nanmin(x, /, axis=None, keepdims=False):
    """The least of the elements that are not NaN; NaN if there are none.

    Raises ValueError if there are no elements.

    >>> compute.nanmin([1.0, compute.nan])
    Array(1., dtype=float32)
    """
    return _nan_extreme("nanmin", _functions.min, x, axis, keepdims, math.inf)


def _nan_position(name, x, extreme, axis, keepdims):
    x = array_of(x)
    if any(x.shape[i] == 0 for i in _reduced(name, x, axis)):
        raise ValueError(f"{name}: there are no elements")
    if x.dtype not in _dtypes.FLOATS:
        return getattr(_functions, name[3:])(x, axis=axis, keepdims=keepdims)
    x = constant(x)
    if builtins.bool(_functions.any(_functions.all(_ops.isnan(x), axis=axis))):
        raise ValueError(f"{name}: there are only NaN")
    chosen = _ops.cast(_ops.equal(x, extreme(x, axis=axis, keepdims=True)), dtype=_dtypes.uint8)
    return _functions.argmax(chosen, axis=axis, keepdims=keepdims)


def nanargmax(x, /, axis=None, keepdims=False):
    """The index of the first greatest element that is not NaN. Waits for `x`; a ValueError if there are only NaN.

    >>> compute.nanargmax([1.0, compute.nan, 3.0])
    Array(2, dtype=int64)
    """
    return _nan_position("nanargmax", x, nanmax, axis, keepdims)


def nanargmin(x, /, axis=None, keepdims=False):
    """The index of the first least element that is not NaN. Waits for `x`; a ValueError if there are only NaN.

    >>> compute.nanargmin([1.0, compute.nan, 3.0])
    Array(0, dtype=int64)
    """
    return _nan_position("nanargmin", x, nanmin, axis, keepdims)


def _counted(name, x, axis):
    """How many elements are not NaN, and the elements with 0 for NaN, in a dtype that counts so far."""
    wide = _ops.cast(x, dtype=_dtypes.float32) if x.dtype in _HALVES else x
    nan = _ops.isnan(constant(x))
    counts = math.prod(x.shape[i] for i in _reduced(name, x, axis)) - _functions.count_nonzero(nan, axis=axis, keepdims=True)
    real = _ops.real(constant(wide)).dtype if x.dtype in _dtypes.COMPLEX else wide.dtype
    return _ops.cast(counts, dtype=real), _ops.where(nan, 0, wide), nan


def _finished(name, result, x, axis, keepdims, dtype):
    """A result whose reduced axes have the extent 1, as asked for."""
    if not keepdims:
        axes = _reduced(name, x, axis)
        result = _core.reshape_view(result, [n for i, n in enumerate(x.shape) if i not in axes])
    return result if result.dtype is dtype else _ops.cast(result, dtype=dtype)


def nanmean(x, /, axis=None, keepdims=False, **names):
    """The arithmetic mean of the elements that are not NaN; NaN if there are none. Of integers as `mean`.

    >>> compute.nanmean([1.0, compute.nan, 3.0])
    Array(2., dtype=float32)
    """
    if names:
        return renamed(nanmean, names, x, axis=axis, keepdims=keepdims)
    x = array_of(x)
    if x.dtype not in INEXACT:
        _reduced("nanmean", x, axis)
        return _functions.mean(x, axis=axis, keepdims=keepdims)
    counts, filled, _ = _counted("nanmean", x, axis)
    return _finished("nanmean", _functions.sum(filled, axis=axis, keepdims=True) / counts, x, axis, keepdims, x.dtype)


def nanvar(x, /, axis=None, *, correction=0.0, keepdims=False, **names):
    """The variance of the elements that are not NaN; NaN if there are no more than `correction`.

    `ddof` is another name of `correction`.

    >>> compute.nanvar([1.0, compute.nan, 3.0])
    Array(1., dtype=float32)
    """
    if names:
        return renamed(nanvar, names, x, axis=axis, correction=correction, keepdims=keepdims)
    return _nanvar("nanvar", x, axis, correction, keepdims)


def _nanvar(name, x, axis, correction, keepdims):
    """The variance, for the function `name`; for nanstd its root."""
    x = array_of(x)
    if x.dtype in _dtypes.COMPLEX:
        raise TypeError(f"{name}: {x.dtype} is not a real dtype")
    x = _inexact(x)
    counts, filled, nan = _counted(name, x, axis)
    distances = _ops.where(nan, 0, filled - _functions.sum(filled, axis=axis, keepdims=True) / counts)
    counts = _ops.where(counts > correction, counts - correction, math.nan)
    if name == "nanstd":
        spread = vector_norm(distances, axis=axis, keepdims=True) / _ops.sqrt(counts)
    else:
        spread = _functions.sum(distances * distances, axis=axis, keepdims=True) / counts
    return _finished(name, spread, x, axis, keepdims, x.dtype)


def nanstd(x, /, axis=None, *, correction=0.0, keepdims=False, **names):
    """The standard deviation of the elements that are not NaN, the square root of `nanvar`.

    `ddof` is another name of `correction`.

    >>> compute.nanstd([1.0, compute.nan, 3.0])
    Array(1., dtype=float32)
    """
    if names:
        return renamed(nanstd, names, x, axis=axis, correction=correction, keepdims=keepdims)
    return _nanvar("nanstd", x, axis, correction, keepdims)


# ---- Statistics -----------------------------------------------------------------------------------------------------


_PRODUCT = expression("x * w", "x", "w")
_WIDE_PRODUCT = expression("convert(x * w, float32)", "x", "w")


def average(x, /, axis=None, weights=None, *, keepdims=False):
    """The mean, or with `weights` the sum of the products divided by the sum of the weights.

    `weights` has the shape of `x`, or the extents of the axes.

    >>> compute.average([1.0, 2.0], weights=[3.0, 1.0])
    Array(1.25, dtype=float32)
    """
    x = array_of(x)
    _reduced("average", x, axis)
    if weights is None:
        return _functions.mean(x, axis=axis, keepdims=keepdims)
    x, weights = _common(x, weights)
    if weights.shape != x.shape:
        axes = [] if axis is None else _axes(axis, x.ndim, "average")
        if weights.shape != tuple(x.shape[one] for one in axes):
            raise ValueError(f"average: weights of the shape {weights.shape} for elements of the shape {x.shape}; expected the extents of the axes")
        weights = _core.permute_view(weights, sorted(range(len(axes)), key=axes.__getitem__))
        weights = _core.broadcast_view(reshape(weights, tuple(n if i in axes else 1 for i, n in enumerate(x.shape))), x.shape)
    if x.dtype not in _HALVES:
        products = _PRODUCT.reduce("sum", x, weights, axis=axis, keepdims=keepdims)
        return products / _functions.sum(weights, axis=axis, keepdims=keepdims)
    products = _WIDE_PRODUCT.reduce("sum", x, weights, axis=axis, keepdims=keepdims)
    total = _functions.sum(weights, axis=axis, keepdims=keepdims, dtype=_dtypes.float32)
    return _ops.cast(products / total, dtype=x.dtype)


def percentile(x, /, q, axis=None, keepdims=False, *, out=None, overwrite_input=False):
    """The percentiles `q`, numbers in [0, 100]: `quantile` of q / 100.

    >>> compute.percentile([1.0, 2.0, 4.0], 50)
    Array(2., dtype=float32)
    """
    return _stored(_functions.quantiles("percentile", x, q, 100, axis, keepdims), out)


def nanquantile(x, /, q, axis=None, keepdims=False):
    """The quantiles `q`, as of `quantile`, of the elements that are not NaN; NaN if there are none.

    >>> compute.nanquantile([1.0, compute.nan, 3.0], 0.5)
    Array(2., dtype=float32)
    """
    return _functions.nan_quantiles("nanquantile", x, q, 1, axis, keepdims)


def nanpercentile(x, /, q, axis=None, keepdims=False):
    """The percentiles `q`, as of `percentile`, of the elements that are not NaN; NaN if there are none.

    >>> compute.nanpercentile([1.0, compute.nan, 3.0], 50)
    Array(2., dtype=float32)
    """
    return _functions.nan_quantiles("nanpercentile", x, q, 100, axis, keepdims)


def nanmedian(x, /, axis=None, keepdims=False):
    """The median of the elements that are not NaN; NaN if there are none.

    >>> compute.nanmedian([[1.0, compute.nan], [5.0, 7.0]], axis=1)
    Array([1., 6.], dtype=float32)
    """
    return _functions.nan_quantiles("nanmedian", x, 0.5, 1, axis, keepdims)


def _observations(x, rowvar):
    if x.ndim > 2:
        raise ValueError(f"cov: an array with {x.ndim} axes is no matrix of variables")
    if x.ndim < 2:
        return _core.reshape_view(x, (1, x.size))
    return x if rowvar else x.T


def _distances(x, y, rowvar):
    """The observations less their means, as rows of variables, and the dtype of a result. Halves are computed in float32."""
    rows = _observations(_inexact(x), rowvar)
    if y is not None:
        rows, others = _common(rows, _observations(_inexact(y), rowvar))
        rows = concat([rows, others], axis=0)
    dtype = rows.dtype
    rows = _ops.cast(rows, dtype=_dtypes.float32) if dtype in _HALVES else rows
    return rows - _functions.mean(rows, axis=1, keepdims=True), dtype


def _products(rows, factor, dtype):
    """The products of rows with each other, times a number; without axes for one row."""
    turned = _functions.conj(rows.T) if rows.dtype in _dtypes.COMPLEX else rows.T
    found = _ops.matmul(rows, turned)
    found = found if factor == 1 else found * factor
    found = found if found.dtype is dtype else _ops.cast(found, dtype=dtype)
    return _core.reshape_view(found, ()) if found.size == 1 else found


def cov(x, y=None, /, rowvar=True, bias=False, *, correction=None, **names):
    """The covariances of variables, which are the rows of `x`, and those of `y`; with `rowvar` false the columns.

    A vector is one variable. Sums of products are divided by the number of observations less `correction`, which is 1,
    or 0 with `bias`. The result is a matrix, or without axes for one variable.

    >>> compute.cov([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    if names:
        return renamed(cov, names, x, y, rowvar=rowvar, bias=bias, correction=correction)
    correction = (0 if bias else 1) if correction is None else correction
    rows, dtype = _distances(x, y, rowvar)
    count = rows.shape[1] - correction
    return _products(rows, 1 / count if count > 0 else math.nan, dtype)


def corrcoef(x, y=None, /, rowvar=True):
    """The correlations of variables, which are the rows of `x`, and those of `y`; with `rowvar` false the columns.

    Rounding may make them a little greater than 1; real ones are limited to [-1, 1].

    >>> compute.corrcoef([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    Array([[0.99999994, 0.99999994],
           [0.99999994, 0.99999994]], dtype=float32)
    """
    rows, dtype = _distances(x, y, rowvar)
    found = _products(rows / vector_norm(rows, axis=1, keepdims=True), 1 if rows.shape[1] else math.nan, dtype)
    if found.ndim == 0:
        return found / found
    return found if found.dtype in _dtypes.COMPLEX else _functions.clip(found, -1, 1)


def digitize(x, /, bins, right=False):
    """The bins that the elements of `x` are in: i where bins[i - 1] <= x < bins[i], 0 and len(bins) at the ends.

    `bins` is a vector that ascends, or descends: then bins[i - 1] > x >= bins[i]. With `right` the other end belongs to
    a bin. Waits for `bins`.

    Raises ValueError for bins that neither ascend nor descend.

    >>> compute.digitize([0.5, 2.5], [0.0, 1.0, 2.0])
    Array([1, 3], dtype=int64)
    """
    x, bins = arrays_of(x, bins)
    if bins.ndim != 1:
        raise ValueError(f"digitize: bins of the shape {bins.shape}; expected a vector")
    if (x.dtype in _dtypes.FLOATS) != (bins.dtype in _dtypes.FLOATS):
        x, bins = _common(x, bins)
    side = "left" if right else "right"
    if _functions.all(bins[:-1] <= bins[1:]):
        return _functions.searchsorted(bins, x, side=side)
    if not _functions.all(bins[:-1] >= bins[1:]):
        raise ValueError("digitize: the bins neither ascend nor descend")
    return bins.size - _functions.searchsorted(_ops.copy(bins[::-1]), x, side=side)


# ---- Curves ---------------------------------------------------------------------------------------------------------


# The difference of the values may be too great for the dtype.
_ON_LINE = expression("d = y1 - y0; t = (x - x0) / (x1 - x0); where((x == x0) | ((y0 == y1) & (x == x)), y0, "
                      "where(isfinite(d), y0 + d / (x1 - x0) * (x - x0), y0 * (1 - t) + y1 * t))", "x", "x0", "x1", "y0", "y1")
_TRAPEZOID = expression("(0.5 * a + 0.5 * b) * d", "a", "b", "d")


@functools.cache
def _with_half_ends(dtype, wide):
    ends = f"0.5 * convert(a, {wide.name}) + 0.5 * convert(b, {wide.name})"
    return expression(f"convert((s + ({ends})) * d, {dtype.name})", "s", "a", "b", "d").evaluator("d")


def interp(x, /, xp, fp, left=None, right=None, period=None):
    """The values at `x` of the line through the points (xp[i], fp[i]), whose xp ascend.

    `left` and `right` are the values before the first point and behind the last; without them, those of these points.
    With a `period`, x and xp are taken modulo it, the points are in any order, and there is no first one and no last.

    >>> compute.interp(2.5, [1.0, 2.0, 3.0], [10.0, 20.0, 40.0])
    Array(30., dtype=float32)
    """
    x, xp, fp = arrays_of(x, xp, fp)
    if fp.dtype in _dtypes.COMPLEX:
        ends = [None if end is None else complex(end) for end in (left, right)]
        real = interp(x, xp, _ops.real(fp), *(end and end.real for end in ends), period)
        return real + interp(x, xp, _ops.imag(fp), *(end and end.imag for end in ends), period) * 1j
    if xp.ndim != 1 or fp.shape != xp.shape or xp.size == 0:
        raise ValueError(f"interp: points of the shapes {xp.shape} and {fp.shape}; expected two vectors of one length")
    if not isinstance(x, Array) and isinstance(_dtypes.number(x), _dtypes.NUMBERS):
        x = _creation.full((), x, dtype=_common(xp)[0].dtype, device=xp.device)
    x, xp, fp = _common(x, xp, fp)
    if period is not None:
        if period == 0:
            raise ValueError("interp: the period is 0")
        period, left, right = builtins.abs(period), None, None
        x, xp = x % period, xp % period
        order = _functions.argsort(constant(xp))
        xp, fp = _ops.take(xp, order, axis=0), _ops.take(fp, order, axis=0)
        xp = concat([xp[-1:] - period, xp, xp[:1] + period])
        fp = concat([fp[-1:], fp, fp[:1]])
    if xp.size > 1:
        # Positions depend on values only, so no gradient passes through them.
        below = _functions.searchsorted(constant(xp), constant(x), side="right") - 1
        below = _ops.clip(below, 0, xp.size - 2)
        x0, x1, y0, y1 = (_ops.take(one, below + i, axis=0) for one in (xp, fp) for i in range(2))
        found = _ON_LINE(x, x0, x1, y0, y1)
    else:
        found = _ops.where(_ops.isnan(x), x, _core.broadcast_view(fp[0], x.shape))
    found = _ops.where(x >= xp[-1], fp[-1], _ops.where(x < xp[0], fp[0], found))
    found = found if left is None else _ops.where(x < xp[0], left, found)
    return found if right is None else _ops.where(x > xp[-1], right, found)


def trapezoid(y, /, x=None, dx=1.0, axis=-1):
    """The integral along an axis by the trapezoidal rule, over points `x`, or points that are `dx` apart.

    `x` has the shape of `y`, or is a vector along the axis.

    >>> compute.trapezoid([1.0, 2.0, 3.0])
    Array(4., dtype=float32)
    """
    y, x = arrays_of(y, x)
    axis = _axis(axis, y.ndim, "trapezoid")
    y = _inexact(y)
    if x is not None:
        if x.shape not in (y.shape, (y.shape[axis],)):
            raise ValueError(f"trapezoid: points of the shape {x.shape} for values of the shape {y.shape}")
        y, x = _common(y, x)
        dx = _functions.diff(x, axis=axis if x.ndim == y.ndim else -1)
        dx = _along(dx, axis, y.ndim) if dx.ndim == 1 else dx
    elif isinstance(y, Array) and isinstance(dx, (int, float)) and y.shape[axis] > 1:  # points at equal distances
        wide = _dtypes.float32 if y.dtype.itemsize == 2 else y.dtype
        if y.dtype is _dtypes.float32 and _creation.has_float64(y.device):
            wide = _dtypes.float64
        before = (slice(None),) * axis
        parts = [_ops.sum(_part(y, axis, 1, -1), axes=[axis], dtype=wide), y[(*before, 0)], y[(*before, -1)]]
        return _with_half_ends(y.dtype, wide)(parts, (dx,), None)[0]
    return _TRAPEZOID.reduce("sum", _part(y, axis, None, -1), _part(y, axis, 1), _dtypes.number(dx), axis=axis)


def gradient(x, /, *spacing, axis=None, edge_order=1):
    """The slopes of `x` along axes, by differences of neighbours: an array for one axis, else a tuple.

    `spacing` is nothing for a distance of 1, one number for all axes, or one entry for each axis: a number, or the
    ascending or descending coordinates, a vector. The ends are differences of two elements, or with `edge_order` 2 of
    three.

    >>> compute.gradient([1.0, 4.0, 9.0])
    Array([3., 4., 5.], dtype=float32)
    """
    x, *spacing = arrays_of(x, *spacing)
    spacing, rank = tuple(spacing), x.ndim
    axes = list(range(rank)) if axis is None else _axes(axis, rank, "gradient")
    spacing = spacing or (1.0,)
    spacing = spacing * len(axes) if len(spacing) == 1 and not hasattr(spacing[0], "__len__") else spacing
    if len(spacing) != len(axes):
        raise ValueError(f"gradient: {len(spacing)} spacings for {len(axes)} axes")
    if edge_order not in (1, 2):
        raise ValueError(f"gradient: edge_order is {edge_order}, not 1 or 2")
    x = _inexact(x)
    for one in axes:
        if x.shape[one] <= edge_order:
            raise ValueError(f"gradient: axis {one} has {x.shape[one]} elements; at least {edge_order + 1} are needed")
    found = tuple(_slopes(x, one, distance, edge_order) for one, distance in zip(axes, spacing))
    return found[0] if len(found) == 1 else found


_SLOPE = expression("(0.5 * y1 - 0.5 * y0) / d", "y0", "y1", "d")  # across two steps of the length d


def _slopes(x, axis, spacing, edge_order):
    def at(start, stop=None):
        return _part(x, axis, start, stop)

    if hasattr(spacing, "__len__") and spacing.ndim:
        x, spacing = _common(x, spacing)
        if spacing.shape != (x.shape[axis],):
            raise ValueError(f"gradient: coordinates of the shape {spacing.shape} for an axis of extent "
                             f"{x.shape[axis]}")
        steps = _along(_functions.diff(spacing), axis, x.ndim)
        before, behind = _part(steps, axis, None, -1), _part(steps, axis, 1)
        both = before + behind
        middle = (at(2) * (before / (behind * both)) + at(1, -1) * ((behind - before) / (before * behind))
                  - at(None, -2) * (behind / (before * both)))
        first, last = _part(steps, axis, 0, 1), _part(steps, axis, -1)
    else:
        middle, first, last = _SLOPE(at(None, -2), at(2), _dtypes.number(spacing)), spacing, spacing
    if edge_order == 1:
        ends = (at(1, 2) - at(0, 1)) / first, (at(-1) - at(-2, -1)) / last
    elif hasattr(first, "dtype") and first.ndim:
        second, prior = _part(steps, axis, 1, 2), _part(steps, axis, -2, -1)
        ends = (_end(at(0, 1), at(1, 2), at(2, 3), first, second),
                -_end(at(-1), at(-2, -1), at(-3, -2), last, prior))
    else:
        ends = ((-1.5 * at(0, 1) + 2.0 * at(1, 2) - 0.5 * at(2, 3)) / first,
                (0.5 * at(-3, -2) - 2.0 * at(-2, -1) + 1.5 * at(-1)) / last)
    return concat([ends[0], middle, ends[1]], axis=axis)


def _end(y0, y1, y2, near, far):
    """The slope at the first of three points, of the parabola through them."""
    both = near + far
    return -y0 * ((2.0 * near + far) / (near * both)) + y1 * (both / (near * far)) - y2 * (near / (far * both))


# ---- Products -------------------------------------------------------------------------------------------------------


def _vectors(name, x1, x2):
    x1, x2 = arrays_of(x1, x2)
    if x1.ndim != 1 or x2.ndim != 1 or x1.size == 0 or x2.size == 0:
        raise ValueError(f"{name}: arrays of the shapes {x1.shape} and {x2.shape}; expected vectors with elements")
    dtype = _dtypes.common(name, constant(x1), constant(x2))
    return [x if x.dtype is dtype else _ops.cast(x, dtype=dtype) for x in (x1, x2)]


def _correlated(name, x, kernel, mode):
    """The sums of products of `kernel` and the elements of `x`, which is no shorter, at each of its places."""
    n = kernel.size
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"{name}: mode is {mode!r}; expected 'full', 'same' or 'valid'")
    before = {"full": n - 1, "same": n // 2, "valid": 0}[mode]
    behind = {"full": n - 1, "same": n - n // 2 - 1, "valid": 0}[mode]
    if x.dtype in _dtypes.COMPLEX:  # convolutions are of real numbers
        padded = _ops.pad(x, pads_begin=[before], pads_end=[behind])
        places = _creation.arange(padded.size - n + 1, device=x.device)
        windows = _core.reshape_view(places, (-1, 1)) + _creation.arange(n, device=x.device)
        found = _ops.matmul(_ops.take(padded, windows, axis=0), kernel)
    else:
        found = _ops.convolution(_core.reshape_view(x, (1, 1, x.size)),
                                 _ops.copy(_core.reshape_view(kernel, (1, 1, n))), pads_begin=[before],
                                 pads_end=[behind])
        found = _core.reshape_view(found, (-1,))
    if before + behind == 0 or x.dtype not in INEXACT:
        return found
    # Products of zeros at the ends with NaN and infinities of the kernel are NaN. They are none of the sums.
    x, kernel = constant(x), constant(kernel)
    is_at_hand = x.device.name == "cpu" and not _core.has_current_stream()  # to look at it waits for nothing
    if is_at_hand and _functions.all(_ops.isfinite(kernel)):
        return found
    parts = [constant(found)[before:found.size - behind]]
    if before > 0:
        parts.insert(0, _end_sums(x[:n - 1], kernel, before, 0))
    if behind > 0:
        parts.append(_end_sums(x[x.size - n + 1:], kernel, 0, behind))
    return _ops.where(_ops.isnan(found), concat(parts), found)


_MASKED_PRODUCT = expression("where(m, x * k, 0)", "m", "x", "k")


def _end_sums(x, kernel, before, behind):
    """The same at so many places at one end, where `x`, the elements there, is shorter than the kernel."""
    def windows(values):
        padded = _ops.pad(values, pads_begin=[before], pads_end=[behind])
        return _core.strided_view(padded, padded.dtype, (before + behind, kernel.size), (1, 1), 0)
    mask = _creation.ones(x.size, dtype=_dtypes.bool, device=x.device)
    return _MASKED_PRODUCT.reduce("sum", windows(mask), windows(x), kernel, axis=1)


def convolve(x1, x2, /, mode="full"):
    """The convolution of two vectors.

    The result has all places where they overlap ("full"), as many as the longer of them in the middle ("same"), or
    those where they overlap entirely ("valid").

    >>> compute.convolve([1, 2, 3], [0, 1])
    Array([0, 1, 2, 3], dtype=int64)
    """
    x1, x2 = _vectors("convolve", x1, x2)
    long, short = (x1, x2) if x1.size >= x2.size else (x2, x1)
    return _correlated("convolve", long, _ops.copy(short[::-1]), mode)


def correlate(x1, x2, /, mode="valid"):
    """The cross-correlation of two vectors: the sums of x1[i + k] conj(x2[i]) for each k. For `mode` see convolve.

    >>> compute.correlate([1, 2, 3], [0, 1, 0])
    Array([2], dtype=int64)
    """
    x1, x2 = _vectors("correlate", x1, x2)
    x2 = _ops.conj(x2) if x2.dtype in _dtypes.COMPLEX else x2
    if x1.size >= x2.size:
        return _correlated("correlate", x1, x2, mode)
    return _correlated("correlate", x2, x1, mode)[::-1]


def kron(x1, x2, /):
    """The Kronecker product: `x2` times each element of `x1`, side by side.

    >>> compute.kron([1, 2], [1, 1])
    Array([1, 1, 2, 2], dtype=int64)
    """
    x1, x2 = arrays_of(x1, x2)
    rank = builtins.max(x1.ndim, x2.ndim)
    shapes = [(1,) * (rank - x.ndim) + x.shape for x in (x1, x2)]
    first, second = [], []
    for n1, n2 in zip(*shapes):
        first += [n1, 1]
        second += [1, n2]
    product = reshape(x1, first) * reshape(x2, second)
    return _core.reshape_view(product, [n1 * n2 for n1, n2 in zip(*shapes)])
