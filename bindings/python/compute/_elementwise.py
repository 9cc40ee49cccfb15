# SPDX-License-Identifier: Apache-2.0
"""Elementwise functions that take more than arrays, and where elements are not zero."""
from __future__ import annotations

import builtins
import math

from . import _core, _creation, _dtypes, _ops
from ._core import Array, array_of
from ._creation import arrays_of, device_of
from ._dtypes import INEXACT


def _computed(x, name="x"):
    """`x`, unless it is of float8, which casts and expressions would convert silently."""
    x = array_of(x)
    if x.dtype in _dtypes.FLOAT8:
        raise TypeError(f"{name} is {x.dtype.name}, which is not computed with; convert it (astype(x, float32))")
    return x


def _inexact(x):
    """`x`, or integers and bool as numbers of the default dtype."""
    x = _computed(x)
    return x if x.dtype in INEXACT else _ops.cast(x, dtype=_dtypes.DEFAULT_FLOAT)


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
    x1, x2 = (_inexact(x) if isinstance(x, Array) else x for x in (x1, x2))
    size = _ops.abs(x2) if not isinstance(x2, (int, float, complex)) else abs(x2)
    near = _ops.less_equal(_ops.abs(_ops.subtract(x1, x2)), atol + rtol * size)
    finite = math.isfinite(size) if isinstance(size, (int, float)) else _ops.isfinite(size)
    close = _ops.logical_or(near if finite is True else _ops.logical_and(near, finite), _ops.equal(x1, x2))
    if equal_nan:
        close = _ops.logical_or(close, _ops.logical_and(_ops.not_equal(x1, x1), x2 != x2))
    return close


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
