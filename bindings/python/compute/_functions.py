# SPDX-License-Identifier: Apache-2.0
"""Reductions, searching, sorting, sets and products of the standard; elementwise functions that take more than arrays."""
from __future__ import annotations

import builtins
from collections import namedtuple

from . import _core, _creation, _dtypes, _ops
from ._core import Array
from ._manipulation import _axes, _flat, concat


def _reduced(axis):
    return [axis] if isinstance(axis, int) else axis


def _reduction(op, x, axis, keepdims, **attributes):
    if isinstance(axis, tuple) and not axis:
        axis = None if x.ndim == 0 else axis
    if axis is not None:
        attributes["axes"] = _reduced(axis)
    if keepdims:
        attributes["keepdims"] = True
    return op(x, **attributes)  # the defaults stay out, for the sake of small arrays


# ---- Elementwise ----------------------------------------------------------------------------------------------------


def astype(x, dtype, /, *, copy=True, device=None):
    """`x` converted to `dtype`."""
    if not isinstance(dtype, _core.DType):
        dtype = _dtypes._from_object(dtype)
    if device is not None:
        x = _core.to_device(x, device)
    if x.dtype is dtype:
        return _ops.copy(x) if copy else x
    if x.dtype in _dtypes.COMPLEX and dtype not in _dtypes.COMPLEX + (_dtypes.bool,):
        raise TypeError(f"{x.dtype} cannot be converted to {dtype}; take real() or abs()")
    return _ops.cast(x, dtype=dtype)


def conj(x, /):
    """The complex conjugates."""
    return _ops.conj(x) if x.dtype in _dtypes.COMPLEX else _ops.positive(x)


def real(x, /):
    """The real parts; `x` itself if it is real."""
    if x.dtype is _dtypes.bool:
        raise TypeError("real: bool is not a numeric dtype; cast it")
    return _ops.real(x) if x.dtype in _dtypes.COMPLEX else x


def clip(x, /, min=None, max=None):
    """`x` limited to [min, max]."""
    if min is None and max is None:
        return _ops.copy(x)
    if x.dtype in _dtypes.INTEGERS:
        limits = _dtypes.iinfo(x.dtype)
        min = _limit(min, limits.min, limits.max)
        max = _limit(max, limits.min, limits.max)
    for bound in (min, max):
        if isinstance(bound, Array) and _dtypes.promote(x.dtype, bound.dtype) is not x.dtype:
            raise TypeError(f"clip: the bounds have the dtype {bound.dtype}, x has {x.dtype}; cast the bounds")
    if min is None:
        return _ops.minimum(x, max)
    if max is None:
        return _ops.maximum(x, min)
    return _ops.clip(x, min, max)


def _limit(bound, least, greatest):
    """A bound that is a number, moved into the range of an integer dtype; None if it does not limit anything."""
    if bound is None or isinstance(bound, Array):
        return bound
    return builtins.min(builtins.max(bound, least), greatest)


def where(condition, x1, x2, /):
    """`x1` where `condition` is true, else `x2`."""
    numbers = [x for x in (x1, x2) if isinstance(x, (builtins.bool, int, float, complex))]
    if len(numbers) == 2 and isinstance(condition, Array):
        dtype = _creation._common_dtype(numbers)
        x1, x2 = (_creation.full((), x, dtype=dtype, device=condition.device) for x in (x1, x2))
    elif len(numbers) == 1 and hasattr(x2 if numbers[0] is x1 else x1, "dtype"):
        array = x2 if numbers[0] is x1 else x1
        dtype = _dtypes._promote_number(array.dtype, numbers[0])
        if array.dtype is not dtype:
            x1, x2 = (_ops.cast(x, dtype=dtype) if x is array else x for x in (x1, x2))
    return _ops.where(condition, x1, x2)


# ---- Reductions -----------------------------------------------------------------------------------------------------


def sum(x, /, *, axis=None, dtype=None, keepdims=False):
    """The sum of elements."""
    if dtype is not None:
        return _reduction(_ops.sum, x, axis, keepdims, dtype=dtype)
    return _ops.sum(x) if axis is None and not keepdims else _reduction(_ops.sum, x, axis, keepdims)


def prod(x, /, *, axis=None, dtype=None, keepdims=False):
    """The product of elements."""
    if dtype is not None:
        return _reduction(_ops.prod, x, axis, keepdims, dtype=dtype)
    return _ops.prod(x) if axis is None and not keepdims else _reduction(_ops.prod, x, axis, keepdims)


def max(x, /, *, axis=None, keepdims=False):
    """The greatest element; NaN if there is one."""
    return _reduction(_ops.max, x, axis, keepdims)


def min(x, /, *, axis=None, keepdims=False):
    """The least element; NaN if there is one."""
    return _reduction(_ops.min, x, axis, keepdims)


def mean(x, /, *, axis=None, keepdims=False):
    """The arithmetic mean."""
    return _reduction(_ops.mean, x, axis, keepdims)


def var(x, /, *, axis=None, correction=0.0, keepdims=False):
    """The variance; sums of squares are divided by the number of elements less `correction`."""
    return _reduction(_ops.var, x, axis, keepdims, correction=correction)


def std(x, /, *, axis=None, correction=0.0, keepdims=False):
    """The standard deviation, the square root of `var`."""
    return _reduction(_ops.std, x, axis, keepdims, correction=correction)


def all(x, /, *, axis=None, keepdims=False):
    """Whether every element is true."""
    return _reduction(_ops.all, x, axis, keepdims)


def any(x, /, *, axis=None, keepdims=False):
    """Whether some element is true."""
    return _reduction(_ops.any, x, axis, keepdims)


def count_nonzero(x, /, *, axis=None, keepdims=False):
    """The number of elements that are not zero."""
    return _reduction(_ops.count_nonzero, x, axis, keepdims)


def argmax(x, /, *, axis=None, keepdims=False):
    """The index of the first greatest element."""
    return _ops.argmax(x, axis=axis, keepdims=builtins.bool(keepdims))


def argmin(x, /, *, axis=None, keepdims=False):
    """The index of the first least element."""
    return _ops.argmin(x, axis=axis, keepdims=builtins.bool(keepdims))


def _only_axis(x, axis, name):
    if axis is not None:
        return axis
    if x.ndim != 1:
        raise ValueError(f"{name}: an array with {x.ndim} axes needs an axis")
    return 0


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """The sums of the elements up to each position along an axis."""
    return _ops.cumulative_sum(x, axis=_only_axis(x, axis, "cumulative_sum"), dtype=dtype,
                               include_initial=builtins.bool(include_initial))


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """The products of the elements up to each position along an axis."""
    return _ops.cumulative_prod(x, axis=_only_axis(x, axis, "cumulative_prod"), dtype=dtype,
                                include_initial=builtins.bool(include_initial))


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    """The differences of neighbours along an axis, `n` times."""
    if prepend is not None or append is not None:
        x = concat([part for part in (prepend, x, append) if part is not None], axis=axis)
    return _ops.diff(x, n=n, axis=axis)


# ---- Searching, sorting and sets ------------------------------------------------------------------------------------


def nonzero(x, /):
    """The indices along each axis of the elements that are not zero."""
    if x.ndim == 0:
        raise ValueError("nonzero: an array without axes has no indices")
    indices, count = _ops.nonzero(x)
    used = int(count)
    return tuple(indices[i, :used] for i in range(x.ndim))


def searchsorted(x1, x2, /, *, side="left", sorter=None):
    """The positions at which the elements of `x2` would be inserted into the sorted vector `x1`."""
    if not isinstance(x2, Array):
        x2 = _creation.full((), x2, dtype=_dtypes.result_type(x1, x2), device=x1.device)
    dtype = _dtypes.promote(x1.dtype, x2.dtype)
    x1, x2 = (x if x.dtype is dtype else _ops.cast(x, dtype=dtype) for x in (x1, x2))
    return _ops.searchsorted(x1, x2, sorter, side=side)


def sort(x, /, *, axis=-1, descending=False, stable=True):
    """`x` sorted along an axis; NaN comes last."""
    return _ops.sort(x, axis=axis, descending=builtins.bool(descending))


def argsort(x, /, *, axis=-1, descending=False, stable=True):
    """The indices that sort `x` along an axis."""
    return _ops.argsort(x, axis=axis, descending=builtins.bool(descending))


def _unique(x):
    """The four outputs of unique, cut to the number of values."""
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
    """The different values, ascending; the index of the first of each; each element's position; and the counts."""
    return UniqueAll(*_unique(x))


def unique_counts(x, /):
    """The different values of `x` and how often each occurs."""
    values, _, _, counts = _unique(x)
    return UniqueCounts(values, counts)


def unique_inverse(x, /):
    """The different values of `x` and the position of each element's value."""
    values, _, inverse, _ = _unique(x)
    return UniqueInverse(values, inverse)


def unique_values(x, /):
    """The different values of `x`."""
    return _unique(x)[0]


def isin(x1, x2, /, *, invert=False):
    """Whether each element of `x1` is among those of `x2`."""
    if not isinstance(x1, Array):
        x1 = _creation.full((), x1, dtype=_dtypes.result_type(x2, x1), device=x2.device)
    if not isinstance(x2, Array):
        x2 = _creation.full((), x2, dtype=_dtypes.result_type(x1, x2), device=x1.device)
    dtype = _dtypes.promote(x1.dtype, x2.dtype)
    x1, x2 = (x if x.dtype is dtype else _ops.cast(x, dtype=dtype) for x in (x1, x2))
    if dtype in _dtypes.COMPLEX:
        equal = _ops.equal(_core.reshape_view(_flat(x1), (x1.size, 1)), _flat(x2))
        found = _core.reshape_view(any(equal, axis=1), x1.shape)
        return _ops.logical_not(found) if invert else found
    return _ops.isin(x1, x2, invert=builtins.bool(invert))


# ---- Products -------------------------------------------------------------------------------------------------------


def matmul(x1, x2, /):
    """The matrix product."""
    return _ops.matmul(x1, x2)


def vecdot(x1, x2, /, *, axis=-1):
    """The sums of the products of elements along an axis, the first operand conjugated."""
    return _ops.vecdot(x1, x2, axis=axis)


def tensordot(x1, x2, /, *, axes=2):
    """The sums of products over pairs of axes."""
    if isinstance(axes, int):
        first = list(range(x1.ndim - axes, x1.ndim))
        second = list(range(axes))
    else:
        first, second = ([axis] if isinstance(axis, int) else list(axis) for axis in axes)
    return _ops.tensordot(x1, x2, axes_a=_axes(first, x1.ndim, "tensordot"), axes_b=_axes(second, x2.ndim, "tensordot"))
