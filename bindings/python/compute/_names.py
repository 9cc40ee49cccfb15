# SPDX-License-Identifier: Apache-2.0
"""Names of NumPy and PyTorch for what the package has, with the arguments that they have there.

The package imports the module with its others and uses none of these names itself. docs/guides/names.md has the table. A name that means something else here, or nothing, raises an AttributeError that says what to use.
"""
from __future__ import annotations

import builtins
import contextlib
import functools
import math
import types
from typing import Any, Callable, Iterable, Sequence

from . import _array, _core, _creation, _dtypes, _files, _functions, _indexing, _manipulation, _numeric, _ops, _printing, expressions, grad, graph, kernels, linalg, nn, optim, \
    random
from ._core import Array, DType, array_of
from ._creation import arrays_of, is_values
from ._errors import no_gradient, renamed
from ._manipulation import _axes, _axis, _flat, _whole

Values = Any  # an array, a list, a tuple or an array of NumPy
Axis = int | None
_INEXACT = _dtypes.FLOATS + _dtypes.COMPLEX


def _number_or_array(value, x):
    """A value as an array beside the array `x`."""
    value = _dtypes.number(value)
    if isinstance(value, _dtypes.NUMBERS):
        return _creation.asarray(value, dtype=_dtypes._promote_number(x.dtype, value), device=x.device)
    return arrays_of(x, value)[1]


def _inexact(x):
    """`x`, or integers and bool as numbers of the default dtype."""
    return x if x.dtype in _INEXACT else _ops.cast(x, dtype=_dtypes.DEFAULT_FLOAT)


# ---- Creation -------------------------------------------------------------------------------------------------------


def array(obj: Values, dtype: DType | None = None, *, copy: bool | None = True, ndmin: int = 0, device: Any = None, order: str = "K", **names: Any) -> Array:
    """asarray, with a copy unless `copy` is None or false, and with at least `ndmin` axes. Copies are in row-major order.

    Raises NotImplementedError for the order "F".

    >>> compute.array([[1, 2], [3, 4]])
    Array([[1, 2],
           [3, 4]], dtype=int64)
    """
    if names:
        return renamed(array, names, obj, dtype=dtype, copy=copy, ndmin=ndmin, device=device, order=order)
    if order not in ("K", "A", "C"):
        raise NotImplementedError(f"array: order={order!r}; arrays are made in row-major order; write array(x).T for another one")
    x = _creation.asarray(obj, dtype=dtype, device=device, copy=copy if copy or not isinstance(obj, (list, tuple, *_dtypes.NUMBERS)) else None)
    return _core.reshape_view(x, (1,) * (ndmin - x.ndim) + x.shape) if x.ndim < ndmin else x


def tensor(data: Values, dtype: DType | None = None, device: Any = None, requires_grad: bool = False) -> Array:
    """asarray with a copy, as PyTorch's tensor.

    >>> compute.tensor([1, 2])
    Array([1, 2], dtype=int64)
    """
    no_gradient(requires_grad)
    return array(data, dtype=dtype, device=device)


def from_numpy(x: Values) -> Array:
    """An array on cpu over the memory of an array of NumPy.

    >>> import numpy
    >>> compute.from_numpy(numpy.arange(3))
    Array([0, 1, 2], dtype=int64)
    """
    return _creation.asarray(x, device="cpu")


def copy(x: Values) -> Array:
    """A new row-major array with the elements of `x`.

    >>> compute.copy([1, 2])
    Array([1, 2], dtype=int64)
    """
    return _ops.copy(array_of(x))


def ascontiguousarray(x: Values, dtype: DType | None = None) -> Array:
    """`x` in row-major order without gaps: itself, or a copy.

    >>> compute.ascontiguousarray(compute.zeros((2, 3)).T).strides
    (2, 1)
    """
    x = _creation.asarray(x, dtype=dtype)
    return x if x.is_contiguous else _ops.copy(x)


def identity(n: int, dtype: DType | None = None) -> Array:
    """The unit matrix with `n` rows.

    >>> compute.identity(2, dtype=int)
    Array([[1, 0],
           [0, 1]], dtype=int64)
    """
    return _creation.eye(n, dtype=dtype)


def tri(n_rows: int, n_cols: int | None = None, k: int = 0, dtype: DType | None = None) -> Array:
    """A matrix of ones on and below the `k`-th diagonal, and of zeros above.

    >>> compute.tri(2, 3, dtype=int)
    Array([[1, 0, 0],
           [1, 1, 0]], dtype=int64)
    """
    return _creation.tril(_creation.ones((n_rows, n_rows if n_cols is None else n_cols), dtype=dtype), k=k)


def fromiter(iterable: Iterable[Any], dtype: DType | None = None, count: int = -1) -> Array:
    """A vector of the numbers of an iterable, the first `count` of them or all.

    >>> compute.fromiter((i * i for i in range(3)), dtype=int)
    Array([0, 1, 4], dtype=int64)
    """
    import itertools

    return _creation.asarray(list(itertools.islice(iterable, count if count >= 0 else None)), dtype=dtype)


def frombuffer(buffer: Any, dtype: DType | None = None, count: int = -1, offset: int = 0) -> Array:
    """A copy of the bytes of a buffer from `offset` on, as a vector of a dtype, by default the default dtype.

    >>> compute.frombuffer(b"\\x01\\x02", dtype=compute.uint8)
    Array([1, 2], dtype=uint8)
    """
    dtype = _dtypes._from_object(dtype or _dtypes.DEFAULT_FLOAT)
    data = memoryview(buffer).cast("B")[offset:]
    if count >= 0:
        data = data[:count * dtype.itemsize]
    if len(data) % dtype.itemsize:
        raise ValueError(f"frombuffer: {len(data)} bytes are no whole number of elements of {dtype.name}")
    return _core.from_bytes(bytes(data), (len(data) // dtype.itemsize,), dtype, None)


def fromstring(string: str, dtype: Any = float, count: int = -1, *, sep: str = " ") -> Array:
    """A vector of the numbers in a text, the first `count` of them or all, which `sep` parts.

    >>> compute.fromstring("1 2 3", dtype=int)
    Array([1, 2, 3], dtype=int64)
    """
    kind = _dtypes._from_object(dtype)
    read = complex if kind in _dtypes.COMPLEX else float if kind in _dtypes.FLOATS else int
    texts = string.split(sep.strip() or None)
    return _creation.asarray([read(text) for text in (texts if count < 0 else texts[:count])], dtype=kind)


def fromfunction(function: Callable[..., Any], shape: Sequence[int], *, dtype: Any = float) -> Any:
    """The value of a function of the coordinates of the elements of an array of a shape.

    >>> compute.fromfunction(lambda i, j: i + 10 * j, (2, 2), dtype=int)
    Array([[ 0, 10],
           [ 1, 11]], dtype=int64)
    """
    return function(*(_creation.asarray(one, dtype=dtype) for one in indices(shape)))


def indices(dimensions: Sequence[int], dtype: DType | None = None) -> Array:
    """The coordinates of the elements of an array of a shape, stacked along a new first axis.

    >>> compute.indices((2, 2))[0]
    Array([[0, 0],
           [1, 1]], dtype=int64)
    """
    return _stacked([_along(n, axis, dimensions) for axis, n in enumerate(dimensions)], dtype)


def _along(n, axis, dimensions):
    shape = [1] * len(dimensions)
    shape[axis] = n
    return _core.broadcast_view(_core.reshape_view(_creation.arange(n), shape), dimensions)


def _stacked(arrays, dtype):
    x = _ops.stack(*arrays, axis=0)
    return x if dtype is None else _functions.astype(x, dtype, copy=False)


def logspace(start: float, stop: float | None = None, num: int = 50, endpoint: bool = True, base: float = 10.0, dtype: DType | None = None, **names: Any) -> Array:
    """`num` numbers from base ** start to base ** stop, whose logarithms are evenly spaced.

    PyTorch's `end` is `stop`, and `steps` is `num`.

    >>> compute.logspace(0, 2, 3)
    Array([  1.,  10., 100.], dtype=float32)
    """
    if names:
        return renamed(logspace, names, start, stop=stop, num=num, endpoint=endpoint, base=base, dtype=dtype)
    return _powers(float(base), _creation.linspace(start, stop, num, endpoint, dtype=_wide()), dtype)


def geomspace(start: float, stop: float, num: int = 50, endpoint: bool = True, dtype: DType | None = None) -> Array:
    """`num` numbers from `start` to `stop`, each the same multiple of the one before.

    Raises ValueError for numbers of different signs.

    >>> compute.geomspace(1, 100, 3)
    Array([  1.,  10., 100.], dtype=float32)
    """
    if start * stop <= 0:
        raise ValueError(f"geomspace: {start} and {stop} have not the same sign")
    steps = _creation.linspace(0.0, 1.0, num, endpoint, dtype=_wide())
    return _functions.astype(_ops.multiply(_ops.pow(stop / start, steps), float(start)), dtype or _dtypes.DEFAULT_FLOAT, copy=False)


def _wide():
    """float64 where the default device has it, for exponents, whose rounding grows."""
    return _dtypes.float64 if _has_float64(_core.device(None)) else _dtypes.float32


def _has_float64(device):
    try:
        _core.empty((1,), _dtypes.float64, device)
    except NotImplementedError:
        return False
    return True


def _powers(base, exponents, dtype):
    return _functions.astype(_ops.pow(base, exponents), dtype or _dtypes.DEFAULT_FLOAT, copy=False)


def diag(x: Values, k: int = 0, **names: int) -> Array:
    """A matrix with a vector on its `k`-th diagonal, or the `k`-th diagonal of a matrix, as a copy.

    >>> compute.diag([1, 2])
    Array([[1, 0],
           [0, 2]], dtype=int64)
    """
    if names:
        return renamed(diag, names, x, k=k)
    x = array_of(x)
    if x.ndim == 2:
        return _ops.copy(linalg.diagonal(x, offset=k))
    if x.ndim != 1:
        raise ValueError(f"diag: an array with {x.ndim} axes is neither a vector nor a matrix")
    size = x.size + builtins.abs(k)
    rows = _ops.pad(x, pads_begin=[builtins.max(-k, 0)], pads_end=[builtins.max(k, 0)])
    return _ops.where(_creation.eye(size, k=k, dtype=_dtypes.bool, device=x.device), _core.reshape_view(rows, (size, 1)), 0)


def diag_embed(x: Values) -> Array:
    """Matrices with the vectors along the last axis on their diagonals.

    >>> compute.diag_embed([[1, 2]])
    Array([[[1, 0],
            [0, 2]]], dtype=int64)
    """
    x = array_of(x)
    return _ops.where(_creation.eye(x.shape[-1], dtype=_dtypes.bool, device=x.device), _manipulation.expand_dims(x, -1), 0)


def diagflat(x: Values, k: int = 0) -> Array:
    """A matrix with the elements of `x` on its `k`-th diagonal.

    >>> compute.diagflat([[1, 2]])
    Array([[1, 0],
           [0, 2]], dtype=int64)
    """
    return diag(_flat(x), k)


def vander(x: Values, n: int | None = None, increasing: bool = False) -> Array:
    """A matrix with the powers of a vector as columns, the highest first.

    >>> compute.vander([1, 2, 3], 3)
    Array([[1, 1, 1],
           [4, 2, 1],
           [9, 3, 1]], dtype=int64)
    """
    x = array_of(x)
    powers = _creation.arange(x.size if n is None else n, device=x.device)
    return _ops.pow(_core.reshape_view(x, (x.size, 1)), powers if increasing else powers[::-1])


def _window(size, *factors):
    """The sum of cosines with these factors over `size` points, both ends included."""
    if size <= 1:
        return _creation.ones(builtins.max(size, 0))
    angle = _creation.linspace(0.0, 2 * math.pi, size, dtype=_wide())
    found = builtins.sum(_ops.cos(angle * i) * factor for i, factor in enumerate(factors))
    return _functions.astype(found, _dtypes.DEFAULT_FLOAT, copy=False)


def hanning(size: int) -> Array:
    """The Hann window of a size, whose ends are 0.

    >>> compute.hanning(3)
    Array([0., 1., 0.], dtype=float32)
    """
    return _window(size, 0.5, -0.5)


def hamming(size: int) -> Array:
    """The Hamming window of a size.

    >>> compute.hamming(3)
    Array([0.08, 1.  , 0.08], dtype=float32)
    """
    return _window(size, 0.54, -0.46)


def blackman(size: int) -> Array:
    """The Blackman window of a size.

    >>> compute.blackman(1)
    Array([1.], dtype=float32)
    """
    return _window(size, 0.42, -0.5, 0.08)


def bartlett(size: int) -> Array:
    """The triangular window of a size, whose ends are 0.

    >>> compute.bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return 1 - _ops.abs(_creation.linspace(-1.0, 1.0, size)) if size > 1 else _window(size)


def _grid(key, is_open):
    keys = key if isinstance(key, tuple) else (key,)
    lines = []
    for one in keys:
        start, step = one.start or 0, 1 if one.step is None else one.step
        if isinstance(step, complex):  # so many numbers, with both ends
            lines.append(_creation.linspace(start, one.stop, int(builtins.abs(step))))
        else:
            lines.append(_creation.arange(start, one.stop, step))
    if len({x.dtype for x in lines}) > 1:
        lines = [_inexact(x) for x in lines]
    if not isinstance(key, tuple):
        return lines[0]
    shape = [x.size for x in lines]
    parts = [_core.reshape_view(x, [n if i == axis else 1 for i, n in enumerate(shape)]) for axis, x in enumerate(lines)]
    return tuple(parts) if is_open else _ops.stack(*(_core.broadcast_view(x, shape) for x in parts), axis=0)


class _Grid:
    """Coordinates of a grid from slices, such as mgrid[0:3, 0:1:5j]."""

    def __init__(self, is_open: bool) -> None:
        self._is_open = is_open

    def __getitem__(self, key: Any) -> Any:
        return _grid(key, self._is_open)


class _Joined:
    """Arrays joined by an index: r_[x, 0, 1:5] along the first axis, c_[x, y] as columns."""

    def __init__(self, axis: int) -> None:
        self._axis = axis

    def __getitem__(self, key: Any) -> Array:
        keys = key if isinstance(key, tuple) else (key,)
        if any_text := [one for one in keys if isinstance(one, str)]:
            raise NotImplementedError(f"the text {any_text[0]!r} in an index of r_ or c_ has no meaning here; use concat or stack")
        given = [x for x in keys if isinstance(x, Array) or is_values(x)]
        parts = [_grid(one, False) if isinstance(one, slice) else one for one in keys]
        known = arrays_of(*parts)
        first = next((x for x in known if isinstance(x, Array) and x.ndim), None) if given else None
        parts = [x if isinstance(x, Array) else _creation.asarray(x) if first is None else _number_or_array(x, first) for x in known]
        if self._axis == 1:
            parts = [_core.reshape_view(x, (x.size, 1)) if x.ndim < 2 else x for x in parts]
        return _manipulation.concat([_core.reshape_view(x, (1,)) if x.ndim == 0 else x for x in parts], axis=-1 if self._axis == 1 else 0)


class _Index:
    """The index itself: s_[1:, None] is a tuple of keys."""

    def __init__(self, is_tuple: bool) -> None:
        self._is_tuple = is_tuple

    def __getitem__(self, key: Any) -> Any:
        return (key,) if self._is_tuple and not isinstance(key, tuple) else key


mgrid, ogrid = _Grid(False), _Grid(True)
r_, c_ = _Joined(0), _Joined(1)
s_, index_exp = _Index(False), _Index(True)


def ix_(*vectors: Values) -> tuple[Array, ...]:
    """Indices of all pairs, and so on, of the elements of vectors: x[ix_([0, 2], [1, 3])] has two rows and two columns.

    >>> compute.arange(6).reshape(2, 3)[compute.ix_([0, 1], [0, 2])]
    Array([[0, 2],
           [3, 5]], dtype=int64)
    """
    found = []
    for i, x in enumerate(map(array_of, vectors)):
        x = _functions.nonzero(x)[0] if x.dtype is _dtypes.bool else x
        if x.ndim != 1:
            raise ValueError(f"ix_: an array with {x.ndim} axes is no vector")
        found.append(_core.reshape_view(x, [x.size if k == i else 1 for k in range(len(vectors))]))
    return tuple(found)


# ---- Axes, joining and splitting ------------------------------------------------------------------------------------


def sliding_window_view(x: Values, window_shape: Any, axis: Any = None) -> Array:
    """A view of all windows of a shape; their elements are along new last axes.

    >>> compute.sliding_window_view(compute.arange(4), 3)
    Array([[0, 1, 2],
           [1, 2, 3]], dtype=int64)
    """
    x = array_of(x)
    sizes = (window_shape,) if isinstance(window_shape, int) else tuple(window_shape)
    axes = tuple(range(x.ndim)) if axis is None else _axes(axis, x.ndim, "sliding_window_view")
    if len(axes) != len(sizes):
        raise ValueError(f"sliding_window_view: {len(sizes)} extents of windows for {len(axes)} axes")
    extents = list(x.shape)
    for one, n in zip(axes, sizes):
        if not 0 < n <= extents[one]:
            raise ValueError(f"sliding_window_view: windows of {n} elements along axis {one}, which has {extents[one]}")
        extents[one] -= n - 1
    return _core.strided_view(x, x.dtype, (*extents, *sizes), (*x.strides, *(x.strides[one] for one in axes)), 0)


def _as_strided(x: Values, shape: Sequence[int], strides: Sequence[int]) -> Array:
    """A view of another shape, with strides in bytes."""
    x = array_of(x)
    return _core.strided_view(x, x.dtype, tuple(shape), tuple(stride // x.itemsize for stride in strides), 0)


def transpose(x: Values, *axes: Any) -> Array:
    """A view with the axes reversed, or in the order of a tuple; of two integers, these two exchanged as in PyTorch.

    >>> compute.transpose(compute.zeros((2, 3, 4)), (1, 2, 0)).shape
    (3, 4, 2)
    """
    x = array_of(x)
    if len(axes) == 2:
        return swapaxes(x, *axes)
    if len(axes) > 1:
        raise TypeError(f"transpose: {len(axes)} axes beside x; expected a tuple, or two integers")
    return _manipulation.permute_dims(x, tuple(reversed(range(x.ndim))) if not axes or axes[0] is None else axes[0])


def swapaxes(x: Values, axis1: int, axis2: int, /) -> Array:
    """A view with two axes exchanged.

    >>> compute.swapaxes(compute.zeros((2, 3)), 0, 1).shape
    (3, 2)
    """
    x = array_of(x)
    order = list(range(x.ndim))
    first, second = _axis(axis1, x.ndim, "swapaxes"), _axis(axis2, x.ndim, "swapaxes")
    order[first], order[second] = second, first
    return _core.permute_view(x, order)


def rollaxis(x: Values, axis: int, start: int = 0) -> Array:
    """A view with an axis moved in front of the axis `start`.

    >>> compute.rollaxis(compute.zeros((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    x = array_of(x)
    axis, start = _axis(axis, x.ndim, "rollaxis"), start + x.ndim if start < 0 else start
    return _manipulation.moveaxis(x, axis, start - 1 if start > axis else start)


def ravel(x: Values, order: str = "C") -> Array:
    """The elements in row-major order along one axis; a view, unless that needs a copy.

    With the order "F" the first axis changes fastest, and "K" is the order in memory.

    >>> compute.ravel([[1, 2], [3, 4]])
    Array([1, 2, 3, 4], dtype=int64)
    """
    return _flat(x, order)


def flatten(x: Values, start_dim: int = 0, end_dim: int = -1) -> Array:
    """`x` with the axes from `start_dim` to `end_dim` as one. See ravel.

    >>> compute.flatten(compute.zeros((2, 3, 4)), start_dim=1).shape
    (2, 12)
    """
    x = array_of(x)
    if x.ndim == 0:
        return _flat(x)
    first, last = _axis(start_dim, x.ndim, "flatten"), _axis(end_dim, x.ndim, "flatten")
    return _manipulation.reshape(x, (*x.shape[:first], math.prod(x.shape[first:last + 1]), *x.shape[last + 1:]))


def _at_least(arrays, rank, shape):
    found = []
    for x in arrays:
        x = _creation.asarray(x)
        found.append(x if x.ndim >= rank else _core.reshape_view(x, shape(x)))
    return found[0] if len(found) == 1 else tuple(found)


def atleast_1d(*arrays: Values) -> Any:
    """Numbers and arrays as arrays with at least one axis.

    >>> compute.atleast_1d(3)
    Array([3], dtype=int64)
    """
    return _at_least(arrays, 1, lambda x: (1,))


def atleast_2d(*arrays: Values) -> Any:
    """Numbers and arrays as arrays with at least two axes, of which those in front have the extent 1.

    >>> compute.atleast_2d([1, 2])
    Array([[1, 2]], dtype=int64)
    """
    return _at_least(arrays, 2, lambda x: (1,) * (2 - x.ndim) + x.shape)


def atleast_3d(*arrays: Values) -> Any:
    """Numbers and arrays as arrays with at least three axes: [n] becomes [1, n, 1] and [m, n] becomes [m, n, 1].

    >>> compute.atleast_3d([1, 2]).shape
    (1, 2, 1)
    """
    return _at_least(arrays, 3, lambda x: (1, *x.shape, 1) if x.ndim == 1 else x.shape + (1,) * (3 - x.ndim))


def flipud(x: Values) -> Array:
    """A view with the order of the rows reversed.

    >>> compute.flipud([[1, 2], [3, 4]])
    Array([[3, 4],
           [1, 2]], dtype=int64)
    """
    return _manipulation.flip(x, axis=0)


def fliplr(x: Values) -> Array:
    """A view with the order of the columns reversed.

    >>> compute.fliplr([[1, 2], [3, 4]])
    Array([[2, 1],
           [4, 3]], dtype=int64)
    """
    return _manipulation.flip(x, axis=1)


def rot90(x: Values, k: int = 1, axes: Sequence[int] = (0, 1)) -> Array:
    """A view turned `k` times by a right angle, from the first of two axes towards the second.

    >>> compute.rot90([[1, 2], [3, 4]])
    Array([[2, 4],
           [1, 3]], dtype=int64)
    """
    first, second = axes
    for _ in range(k % 4):
        x = swapaxes(_manipulation.flip(x, axis=second), first, second)
    return array_of(x)


def vstack(arrays: Sequence[Values]) -> Array:
    """Joins arrays along the first axis, vectors as rows.

    >>> compute.vstack(([1, 2], [3, 4]))
    Array([[1, 2],
           [3, 4]], dtype=int64)
    """
    return _manipulation.concat([atleast_2d(x) for x in arrays_of(*arrays)], axis=0)


def hstack(arrays: Sequence[Values]) -> Array:
    """Joins arrays along the second axis, vectors along the first one.

    >>> compute.hstack(([1, 2], [3]))
    Array([1, 2, 3], dtype=int64)
    """
    parts = [atleast_1d(x) for x in arrays_of(*arrays)]
    return _manipulation.concat(parts, axis=0 if parts and parts[0].ndim == 1 else 1)


def dstack(arrays: Sequence[Values]) -> Array:
    """Joins arrays along the third axis; see atleast_3d.

    >>> compute.dstack(([1, 2], [3, 4])).shape
    (1, 2, 2)
    """
    return _manipulation.concat([atleast_3d(x) for x in arrays_of(*arrays)], axis=2)


def column_stack(arrays: Sequence[Values]) -> Array:
    """Joins arrays along the second axis, vectors as columns.

    >>> compute.column_stack(([1, 2], [3, 4]))
    Array([[1, 3],
           [2, 4]], dtype=int64)
    """
    parts = [_core.reshape_view(x, (x.size, 1)) if x.ndim < 2 else x for x in map(_creation.asarray, arrays_of(*arrays))]
    return _manipulation.concat(parts, axis=1)


def block(arrays: Any) -> Array:
    """Joins nested lists of arrays: those of the innermost lists along the last axis, those around them along the last but one.

    >>> compute.block([[compute.eye(2), compute.zeros((2, 1))], [7.0, 8.0, 9.0]])
    Array([[1., 0., 0.],
           [0., 1., 0.],
           [7., 8., 9.]], dtype=float32)
    """
    def depth(part):
        return 1 + builtins.max(map(depth, part), default=0) if isinstance(part, list) else 0

    def leaves(part):
        return [one for inner in part for one in leaves(inner)] if isinstance(part, list) else [part]

    levels = depth(arrays)
    rank = builtins.max(levels, *(ndim(one) for one in leaves(arrays)))

    def joined(part, level):
        if isinstance(part, list):
            return _manipulation.concat([joined(one, level - 1) for one in part], axis=-level)
        x = _creation.asarray(part) if isinstance(part, _dtypes.NUMBERS) else array_of(part)
        return _core.reshape_view(x, (1,) * (rank - x.ndim) + x.shape)

    return joined(arrays, levels)


def append(x: Values, values: Values, axis: Axis = None) -> Array:
    """`x` with `values` behind it along `axis`; without an axis, both flattened.

    >>> compute.append([1, 2], 3)
    Array([1, 2, 3], dtype=int64)
    """
    x = array_of(x)
    values = _number_or_array(values, x)
    return _manipulation.concat([x, values], axis=axis)


def trim_zeros(x: Values, trim: str = "fb") -> Array:
    """A view of a vector without the zeros in front ("f") and behind ("b"). Waits for `x`.

    >>> compute.trim_zeros([0, 1, 0, 2, 0])
    Array([1, 0, 2], dtype=int64)
    """
    x = array_of(x)
    places = flatnonzero(x)
    if places.size == 0:
        return x[:0]
    return x[int(places[0]) if "f" in trim.lower() else 0:int(places[-1]) + 1 if "b" in trim.lower() else x.size]


def _positions(name, where, extent):
    """Positions along an axis, as a sorted list of integers of Python, and whether there is a single one."""
    if isinstance(where, slice):
        return list(range(*where.indices(extent))), False
    if isinstance(where, Array) or is_values(where):
        where = where.tolist() if hasattr(where, "tolist") else list(where)
        where = where if isinstance(where, list) else [where]
        if where and all(isinstance(one, bool) for one in where):
            return [i for i, one in enumerate(where) if one], False
        places, is_single = [_whole(one, name, "the index") for one in where], False
    else:
        places, is_single = [_whole(where, name, "the index")], True
    for place in places:
        if not -extent <= place <= extent:
            raise IndexError(f"{name}: index {place} is out of range for an axis of extent {extent}")
    return [place + extent if place < 0 else place for place in places], is_single


def insert(x: Values, where: Any, values: Values, axis: Axis = None) -> Array:
    """`x` with `values` put in front of the positions `where` along `axis`, or into the flattened array.

    >>> compute.insert([1, 2, 3], 1, 9)
    Array([1, 9, 2, 3], dtype=int64)
    """
    x = array_of(x)
    x, axis = (_flat(x), 0) if axis is None else (x, _axis(axis, x.ndim, "insert"))
    places, is_single = _positions("insert", where, x.shape[axis])
    values = _functions.astype(_number_or_array(values, x), x.dtype, copy=False)
    if is_single:
        values = _manipulation.moveaxis(values, 0, axis) if values.ndim == x.ndim and axis else values
        values = values if values.ndim == x.ndim else _manipulation.expand_dims(values, axis) if values.ndim else values
        places = places * (values.shape[axis] if values.ndim else 1)
    shape = [len(places) if i == axis else n for i, n in enumerate(x.shape)]
    values = _core.broadcast_view(values, shape)
    order = sorted(range(len(places)), key=lambda i: places[i])
    # The elements of both, joined, in their new order.
    extent, sources, done = x.shape[axis], [], 0
    for i in order:
        sources += [*range(done, places[i]), extent + i]
        done = places[i]
    sources += range(done, extent)
    return _ops.take(_ops.concat(x, values, axis=axis), _creation.asarray(sources, dtype=_dtypes.int64, device=x.device), axis=axis)


def delete(x: Values, where: Any, axis: Axis = None) -> Array:
    """`x` without the elements at the positions `where` along `axis`, or of the flattened array.

    >>> compute.delete([1, 2, 3], 1)
    Array([1, 3], dtype=int64)
    """
    x = array_of(x)
    x, axis = (_flat(x), 0) if axis is None else (x, _axis(axis, x.ndim, "delete"))
    extent = x.shape[axis]
    places = set(_positions("delete", where, extent)[0])
    if extent in places:
        raise IndexError(f"delete: index {extent} is out of range for an axis of extent {extent}")
    kept = [i for i in range(extent) if i not in places]
    return _ops.take(x, _creation.asarray(kept, dtype=_dtypes.int64, device=x.device), axis=axis)


def chunk(x: Values, chunks: int, dim: int = 0) -> tuple[Array, ...]:
    """At most so many views of parts of `x` along an axis, all but the last one of one extent.

    >>> compute.chunk(compute.arange(3), 2)
    (Array([0, 1], dtype=int64), Array([2], dtype=int64))
    """
    x = array_of(x)
    extent = x.shape[_axis(dim, x.ndim, "chunk")]
    size = builtins.max(-(-extent // chunks), 1)
    return _numeric.array_split(x, list(range(size, extent, size)), axis=dim)


def dsplit(x: Values, indices_or_sections: Any) -> tuple[Array, ...]:
    """split along axis 2.

    Raises ValueError if the axis does not divide into so many parts.

    >>> [x.shape for x in compute.dsplit(compute.zeros((1, 2, 4)), 2)]
    [(1, 2, 2), (1, 2, 2)]
    """
    return _numeric.split(x, indices_or_sections, axis=2)


def unbind(x: Values, dim: int = 0) -> tuple[Array, ...]:
    """unstack: the parts of `x` along an axis, as views without it.

    >>> compute.unbind([[1, 2], [3, 4]])
    (Array([1, 2], dtype=int64), Array([3, 4], dtype=int64))
    """
    return _manipulation.unstack(x, axis=dim)


def narrow(x: Values, dim: int, start: int, length: int) -> Array:
    """The view of `length` elements of an axis from `start` on.

    Raises IndexError if they are not all in the axis.

    >>> compute.narrow([1, 2, 3, 4], 0, 1, 2)
    Array([2, 3], dtype=int64)
    """
    x = array_of(x)
    axis = _axis(dim, x.ndim, "narrow")
    start = start + x.shape[axis] if start < 0 else start
    if not 0 <= start <= start + length <= x.shape[axis]:
        raise IndexError(f"narrow: [{start}, {start + length}) is out of range for an axis of extent {x.shape[axis]}")
    return x[(slice(None),) * axis + (slice(start, start + length),)]


# ---- Reductions and scans -------------------------------------------------------------------------------------------


def amax(x: Values, axis: Any = None, keepdims: bool = False, **names: Any) -> Array:
    """max, whose axis PyTorch calls dim.

    >>> compute.amax([[1, 5], [7, 2]], dim=1)
    Array([5, 7], dtype=int64)
    """
    return renamed(amax, names, x, axis=axis, keepdims=keepdims) if names else _functions.max(x, axis=axis, keepdims=keepdims)


def amin(x: Values, axis: Any = None, keepdims: bool = False, **names: Any) -> Array:
    """min, whose axis PyTorch calls dim.

    >>> compute.amin([[1, 5], [7, 2]], dim=1)
    Array([1, 2], dtype=int64)
    """
    return renamed(amin, names, x, axis=axis, keepdims=keepdims) if names else _functions.min(x, axis=axis, keepdims=keepdims)


def ptp(x: Values, axis: Any = None, keepdims: bool = False) -> Array:
    """The distance of the least and the greatest element.

    >>> compute.ptp([3, 9, 4])
    Array(6, dtype=int64)
    """
    x = array_of(x)
    return _functions.max(x, axis=axis, keepdims=keepdims) - _functions.min(x, axis=axis, keepdims=keepdims)


def _scan(name, op, x, axis, dtype, out):
    x = array_of(x)
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
    found = (part[(slice(None),) * axis + (k - 1,)] for part in (_functions.sort(x, axis=axis), _functions.argsort(x, axis=axis)))
    values, indices = (_manipulation.expand_dims(part, axis) if keepdim else part for part in found)
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
    return _functions.astype(_functions.histogram(x, bins, range=None if min == max else (min, max))[0], x.dtype)


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


# ---- Searching, sets and indices ------------------------------------------------------------------------------------


def argwhere(x: Values) -> Array:
    """The indices of the elements that are not zero, one row each. PyTorch's nonzero.

    >>> compute.argwhere([[0, 5], [7, 0]])
    Array([[0, 1],
           [1, 0]], dtype=int64)
    """
    x = array_of(x)
    found, count = _ops.nonzero(x if x.ndim else _core.reshape_view(x, (1,)))
    return _ops.copy(found[:, :int(count)].T)[:, :x.ndim]


def flatnonzero(x: Values) -> Array:
    """The indices of the elements of the flattened array that are not zero.

    >>> compute.flatnonzero([0, 3, 5])
    Array([1, 2], dtype=int64)
    """
    return _functions.nonzero(_flat(x))[0]


def extract(condition: Values, x: Values) -> Array:
    """The elements of `x` where `condition` is true, in row-major order.

    >>> compute.extract([True, False], [1, 2])
    Array([1], dtype=int64)
    """
    condition, x = array_of(condition), array_of(x)
    return _flat(x)[_flat(_functions.astype(condition, _dtypes.bool, copy=False))]


def compress(condition: Values, x: Values, axis: Axis = None) -> Array:
    """The parts of `x` along `axis`, or of the flattened array, where the vector `condition` is true.

    >>> compute.compress([True, False], [[1, 2], [3, 4]], axis=0)
    Array([[1, 2]], dtype=int64)
    """
    found = flatnonzero(condition)
    return _indexing.take(x, found, axis=axis)


def _ranks(x):
    """The place of each element of a matrix among the different values of its column. Each NaN is a value of its own."""
    order = _functions.argsort(x, axis=0)
    ordered = _indexing.take_along_axis(x, order, axis=0)
    places = _functions.cumulative_sum(_ops.cast(_ops.not_equal(ordered[1:], ordered[:-1]), dtype=_dtypes.int64), axis=0, include_initial=True)
    return _indexing.scatter(order, order, places, axis=0)


def _unique_along(x, axis):
    """The different parts of an array along an axis, in the order of their elements; the first of each, their places, and how often each occurs."""
    extent = x.shape[axis]
    rows = _manipulation.reshape(_manipulation.moveaxis(x, axis, 0), (extent, x.size // extent if extent else 0))
    if x.dtype in _dtypes.COMPLEX:
        rows = _core.reshape_view(_ops.stack(_ops.real(rows), _ops.imag(rows), axis=-1), (extent, 2 * rows.shape[1]))
    ranks = _ranks(rows) if rows.size else _creation.zeros((extent, 1), dtype=_dtypes.int64, device=x.device)
    while ranks.shape[1] > 1:  # of pairs of neighbours, of which the first comes first
        even = ranks.shape[1] // 2 * 2
        ranks = _ranks(_manipulation.concat([ranks[:, 0:even:2] * extent + ranks[:, 1:even:2], ranks[:, even:]], axis=1))
    _, first, inverse, counts = _functions.unique_all(ranks[:, 0])
    return _ops.take(x, first, axis=axis), first, inverse, counts


def unique(x: Values, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, axis: Axis = None, *,
           equal_nan: bool = True, sorted: bool = True, **names: Any) -> Any:
    """The different values of `x`, ascending; with options a tuple of them and of

    - the index of the first of each in the flattened array,
    - the position of each element's value, in the shape of `x`,
    - and how often each occurs.

    With an axis, the different parts along it, such as rows, ordered by their first different element, and indices along
    it; parts with NaN are all different. Else with `equal_nan`, NaN is one value. The call waits for `x`.

    >>> values, counts = compute.unique([3, 1, 3], return_counts=True)
    >>> values, counts
    (Array([1, 3], dtype=int64), Array([1, 2], dtype=int64))
    >>> compute.unique([[2, 1], [1, 3], [2, 1]], axis=0)
    Array([[1, 3],
           [2, 1]], dtype=int64)
    """
    if names:
        return renamed(unique, names, x, return_index=return_index, return_inverse=return_inverse, return_counts=return_counts, axis=axis,
                       equal_nan=equal_nan, sorted=sorted)
    x = array_of(x)
    if axis is None:
        values, first, inverse, counts = _functions.unique_all(x)
    else:
        values, first, inverse, counts = _unique_along(x, _axis(axis, x.ndim, "unique"))
    if axis is None and equal_nan and x.dtype in _INEXACT and values.size:
        nans = int(_functions.count_nonzero(_ops.isnan(values)))
        if nans > 1:  # they come last, each with a count
            kept = values.size - nans + 1
            counts = _manipulation.concat([counts[:kept - 1], _functions.sum(counts[kept - 1:], keepdims=True)])
            values, first, inverse = values[:kept], first[:kept], _ops.minimum(inverse, kept - 1)
    chosen = [part for part, wanted in ((first, return_index), (inverse, return_inverse), (counts, return_counts)) if wanted]
    return (values, *chosen) if chosen else values


def in1d(x1: Values, x2: Values, invert: bool = False) -> Array:
    """isin of the elements of the flattened array `x1`.

    >>> compute.in1d([[1, 2]], [2])
    Array([False,  True], dtype=bool)
    """
    x1, x2 = arrays_of(x1, x2)
    return _functions.isin(_flat(_creation.asarray(x1)), x2, invert=invert)


def intersect1d(x1: Values, x2: Values, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The different values that are in both arrays, ascending; with `return_indices`, also the first place of each in both.

    >>> compute.intersect1d([1, 2, 3], [3, 1])
    Array([1, 3], dtype=int64)
    """
    (x1, first1, _, _), (x2, first2, _, _) = (_functions.unique_all(x) for x in arrays_of(x1, x2))
    in_both = _functions.isin(x1, x2)
    found = x1[in_both]
    return (found, first1[in_both], first2[_functions.isin(x2, x1)]) if return_indices else found


def union1d(x1: Values, x2: Values) -> Array:
    """The different values that are in one of two arrays, ascending.

    >>> compute.union1d([2, 1], [3, 1])
    Array([1, 2, 3], dtype=int64)
    """
    return _functions.unique_values(_manipulation.concat(arrays_of(x1, x2), axis=None))


def setdiff1d(x1: Values, x2: Values) -> Array:
    """The different values of `x1` that are not in `x2`, ascending.

    >>> compute.setdiff1d([1, 2, 3], [3])
    Array([1, 2], dtype=int64)
    """
    x1, x2 = arrays_of(x1, x2)
    x1 = _functions.unique_values(x1)
    return x1[_functions.isin(x1, x2, invert=True)]


def setxor1d(x1: Values, x2: Values) -> Array:
    """The different values that are in just one of two arrays, ascending.

    >>> compute.setxor1d([1, 2], [2, 3])
    Array([1, 3], dtype=int64)
    """
    x1, x2 = arrays_of(x1, x2)
    return union1d(setdiff1d(x1, x2), setdiff1d(x2, x1))


def lexsort(keys: Sequence[Values], axis: int = -1) -> Array:
    """The indices that sort by the last key, then by the one before, and so on.

    Raises ValueError without keys.

    >>> compute.lexsort(([1, 0, 1], [2, 2, 1]))
    Array([2, 1, 0], dtype=int64)
    """
    order = None
    for key in (array_of(one) for one in keys):
        if order is None:
            order = _functions.argsort(key, axis=axis)
        else:
            next_order = _functions.argsort(_indexing.take_along_axis(key, order, axis=axis), axis=axis)
            order = _indexing.take_along_axis(order, next_order, axis=axis)
    if order is None:
        raise ValueError("lexsort: there are no keys")
    return order


def partition(x: Values, kth: Any, axis: Axis = -1) -> Array:
    """sort: the element at `kth` is where sorting puts it, with none that are greater in front.

    >>> compute.partition([3, 1, 2], 1)[1]
    Array(2, dtype=int64)
    """
    return _functions.sort(x, axis=axis)


def argpartition(x: Values, kth: Any, axis: Axis = -1) -> Array:
    """argsort; see partition.

    >>> compute.argpartition([3, 1, 2], 0)[0]
    Array(1, dtype=int64)
    """
    return _functions.argsort(x, axis=axis)


def bucketize(x: Values, boundaries: Values, right: bool = False) -> Array:
    """searchsorted(boundaries, x), from the left or from the right.

    >>> compute.bucketize([0.5, 1.5], [0.0, 1.0])
    Array([1, 2], dtype=int64)
    """
    return _functions.searchsorted(boundaries, x, side="right" if right else "left")


def gather(x: Values, dim: int, index: Values) -> Array:
    """take_along_axis; along the other axes `index` may be shorter than `x`.

    >>> compute.gather(compute.asarray([[3, 1], [2, 4]]), 1, [[0], [1]])
    Array([[3],
           [4]], dtype=int64)
    """
    x, index = array_of(x), array_of(index)
    axis = _axis(dim, x.ndim, "gather")
    if index.ndim == x.ndim:
        x = x[tuple(slice(None) if i == axis else slice(0, n) for i, n in enumerate(index.shape))]
    return _indexing.take_along_axis(x, index, axis=axis)


def index_select(x: Values, dim: int, index: Values) -> Array:
    """take along an axis.

    >>> compute.index_select([[1, 2], [3, 4]], 1, [1])
    Array([[2],
           [4]], dtype=int64)
    """
    return _indexing.take(x, index, axis=dim)


def masked_fill(x: Values, mask: Values, value: Any) -> Array:
    """`x` with a number where `mask` is true.

    >>> compute.masked_fill(compute.asarray([1, 2]), [True, False], 0)
    Array([0, 2], dtype=int64)
    """
    return _functions.where(mask, value, array_of(x))


def masked_select(x: Values, mask: Values) -> Array:
    """The elements of `x` where `mask` is true.

    >>> compute.masked_select([1, 2, 3], [True, False, True])
    Array([1, 3], dtype=int64)
    """
    x, mask = _manipulation.broadcast_arrays(x, mask)
    return x[mask]


def take_along_dim(x: Values, indices: Values, dim: Axis = None) -> Array:
    """take_along_axis.

    >>> compute.take_along_dim(compute.asarray([[3, 1]]), [[1]], dim=1)
    Array([[1]], dtype=int64)
    """
    return _indexing.take_along_axis(x, indices, axis=dim)


def repeat_interleave(x: Values, repeats: Any = None, dim: Axis = None, *, output_size: int | None = None) -> Array:
    """repeat; of one vector, each position so often as its element says.

    >>> compute.repeat_interleave([1, 2], 2)
    Array([1, 1, 2, 2], dtype=int64)
    """
    if repeats is None:
        return _manipulation.repeat(_creation.arange(array_of(x).size, device=array_of(x).device), x)
    return _manipulation.repeat(x, repeats, axis=dim)


def choose(x: Values, choices: Sequence[Values]) -> Array:
    """The elements of the choices that the elements of `x`, which are their positions, name.

    >>> compute.choose([1, 0], [[1, 2], [3, 4]])
    Array([3, 2], dtype=int64)
    """
    x = array_of(x)
    choices = _manipulation.broadcast_arrays(x, *(_number_or_array(one, x) if not is_values(one) else array_of(one) for one in choices))
    stacked = _ops.stack(*choices[1:], axis=0)
    return _indexing.take_along_axis(stacked, _manipulation.expand_dims(choices[0], 0), axis=0)[0]


def select(condlist: Sequence[Values], choicelist: Sequence[Values], default: Any = 0) -> Array:
    """The elements of the choice of the first condition that is true, or the default.

    >>> x = compute.asarray([1.0, 2.0, 3.0])
    >>> compute.select([x > 2, x > 1], [x, -x])
    Array([ 0., -2.,  3.], dtype=float32)
    """
    if len(condlist) != len(choicelist):
        raise ValueError(f"select: {len(condlist)} conditions and {len(choicelist)} choices")
    found = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist)):
        found = _functions.where(condition, choice, found)
    return found


def piecewise(x: Values, condlist: Sequence[Values], funclist: Sequence[Any]) -> Array:
    """The values of the function, or the number, of the last condition that is true; one more is for the rest, else 0.

    >>> compute.piecewise(compute.asarray([-1.0, 2.0]), [[True, False]], [0.0, 1.0])
    Array([0., 1.], dtype=float32)
    """
    x = array_of(x)
    conditions, rest = list(condlist), funclist[len(condlist)] if len(funclist) > len(condlist) else 0
    found = rest(x) if callable(rest) else _creation.full_like(x, rest)
    for condition, one in zip(conditions, funclist):
        found = _functions.where(condition, one(x) if callable(one) else one, found)
    return found


def unravel_index(indices: Values, shape: Sequence[int], order: str = "C") -> tuple[Array, ...]:
    """The indices along each axis of elements of an array of a shape, from positions in row-major order, or with "F" in column-major order.

    Positions are not checked.

    >>> compute.unravel_index([1, 5], (2, 3))
    (Array([0, 1], dtype=int64), Array([1, 2], dtype=int64))
    """
    if order == "F":
        return unravel_index(indices, tuple(shape)[::-1])[::-1]
    rest = _creation.asarray(indices)
    found: list[Array] = []
    for extent in reversed(tuple(shape) if not isinstance(shape, int) else (shape,)):
        found.insert(0, rest % extent)
        rest = rest // extent
    return tuple(found)


def ravel_multi_index(multi_index: Sequence[Values], dims: Sequence[int]) -> Array:
    """The positions in row-major order of elements of an array of the shape `dims`, from the indices along each axis.

    Indices are not checked.

    >>> compute.ravel_multi_index(([0, 1], [2, 1]), (2, 3))
    Array([2, 4], dtype=int64)
    """
    found = None
    for one, extent in zip(multi_index, dims):
        one = _creation.asarray(one)
        found = one if found is None else found * extent + one
    if found is None:
        raise ValueError("ravel_multi_index: there are no indices")
    return found


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, ...]:
    """The indices on and below the `k`-th diagonal of a matrix with `n` rows and `m` columns.

    >>> compute.tril_indices(2)
    (Array([0, 1, 1], dtype=int64), Array([0, 0, 1], dtype=int64))
    """
    return _functions.nonzero(tri(n, m, k, dtype=_dtypes.bool))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, ...]:
    """The indices on and above the `k`-th diagonal of a matrix with `n` rows and `m` columns.

    >>> compute.triu_indices(2)
    (Array([0, 0, 1], dtype=int64), Array([0, 1, 1], dtype=int64))
    """
    return _functions.nonzero(_ops.logical_not(tri(n, m, k - 1, dtype=_dtypes.bool)))


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The indices of the diagonal of an array with `ndim` axes of the extent `n`.

    >>> compute.diag_indices(2)
    (Array([0, 1], dtype=int64), Array([0, 1], dtype=int64))
    """
    return (_creation.arange(n),) * ndim


def tril_indices_from(x: Values, k: int = 0) -> tuple[Array, ...]:
    """tril_indices for a matrix.

    >>> compute.tril_indices_from(compute.zeros((2, 2)))
    (Array([0, 1, 1], dtype=int64), Array([0, 0, 1], dtype=int64))
    """
    rows, columns = shape(x)
    return tril_indices(rows, k, columns)


def triu_indices_from(x: Values, k: int = 0) -> tuple[Array, ...]:
    """triu_indices for a matrix.

    >>> compute.triu_indices_from(compute.zeros((2, 2)))
    (Array([0, 0, 1], dtype=int64), Array([0, 1, 1], dtype=int64))
    """
    rows, columns = shape(x)
    return triu_indices(rows, k, columns)


def diag_indices_from(x: Values) -> tuple[Array, ...]:
    """diag_indices for an array with axes of one extent.

    >>> compute.diag_indices_from(compute.zeros((2, 2)))
    (Array([0, 1], dtype=int64), Array([0, 1], dtype=int64))
    """
    return diag_indices(shape(x)[0], ndim(x))


def ndenumerate(x: Values) -> Iterable[tuple[tuple[int, ...], Any]]:
    """The indices and the elements of an array, as numbers of Python, in row-major order. Waits for `x`.

    >>> list(compute.ndenumerate([[5, 6]]))
    [((0, 0), 5), ((0, 1), 6)]
    """
    x = array_of(x)
    return zip(ndindex(x.shape), _flat(x).tolist())


def cartesian_prod(*vectors: Values) -> Array:
    """All combinations of the elements of vectors, as rows.

    >>> compute.cartesian_prod([1, 2], [3, 4])
    Array([[1, 3],
           [1, 4],
           [2, 3],
           [2, 4]], dtype=int64)
    """
    if len(vectors) == 1:
        return array_of(vectors[0])
    return _manipulation.reshape(_ops.stack(*_creation.meshgrid(*vectors, indexing="ij"), axis=-1), (-1, len(vectors)))


def ndindex(*shape: Any) -> Iterable[tuple[int, ...]]:
    """The indices of all elements of an array of a shape, as tuples in row-major order.

    >>> list(compute.ndindex(2, 2))
    [(0, 0), (0, 1), (1, 0), (1, 1)]
    """
    import itertools

    return itertools.product(*map(range, shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape))


def _own(name, x):
    if not isinstance(x, Array):
        raise TypeError(f"{name}: {type(x).__name__} is not a compute.Array, whose elements it could change")
    return x


def put(x: Array, indices: Values, values: Values) -> None:
    """Writes values at positions in row-major order, in place.

    Raises TypeError if `x` is no array of this package.

    >>> x = compute.zeros(3)
    >>> compute.put(x, [0, 2], [1.0, 5.0])
    >>> x
    Array([1., 0., 5.], dtype=float32)
    """
    _own("put", x)
    places = array_of(_creation.asarray(indices) if isinstance(indices, int) else indices)
    x[unravel_index(places, x.shape)] = _number_or_array(values, x)


def put_along_axis(x: Array, indices: Values, values: Values, axis: Axis) -> None:
    """Writes values at `indices` along `axis`, in place: scatter, into `x`.

    >>> x = compute.zeros((2, 2))
    >>> compute.put_along_axis(x, [[0], [1]], 7.0, 1)
    >>> x
    Array([[7., 0.],
           [0., 7.]], dtype=float32)
    """
    _own("put_along_axis", x)
    if axis is None:
        put(x, indices, values)
    else:
        x[...] = _indexing.scatter(x, indices, values, axis=axis)


def putmask(x: Array, mask: Values, values: Values) -> None:
    """Writes values where `mask` is true, in place; they broadcast to the shape of `x`.

    >>> x = compute.asarray([1.0, -2.0])
    >>> compute.putmask(x, x < 0, 0.0)
    >>> x
    Array([1., 0.], dtype=float32)
    """
    _own("putmask", x)[...] = _functions.where(mask, values, x)


def copyto(x: Array, values: Values) -> None:
    """Writes values to all elements of `x`, in place.

    >>> x = compute.zeros(2)
    >>> compute.copyto(x, [1.0, 2.0])
    >>> x
    Array([1., 2.], dtype=float32)
    """
    _own("copyto", x)[...] = values


def fill_diagonal(x: Array, values: Values, wrap: bool = False) -> None:
    """Writes values to the diagonal of a matrix, or of an array with more axes of one extent, in place.

    With `wrap`, the diagonal of a tall matrix begins again below the last column.

    >>> x = compute.zeros((2, 2))
    >>> compute.fill_diagonal(x, 3.0)
    >>> x
    Array([[3., 0.],
           [0., 3.]], dtype=float32)
    """
    if wrap and _own("fill_diagonal", x).ndim == 2:
        _core.reshape_view(x, (x.size,))[::x.shape[1] + 1] = values
    elif _own("fill_diagonal", x).ndim > 2:
        if len(set(x.shape)) > 1:
            raise ValueError(f"fill_diagonal: the axes of {x.shape} have different extents")
        x[(_creation.arange(x.shape[0], device=x.device),) * x.ndim] = values
    else:
        linalg.diagonal(x)[...] = values


# ---- Elementwise ----------------------------------------------------------------------------------------------------


def around(x: Values, decimals: int = 0, out: Array | None = None) -> Array:
    """`x` rounded to so many decimals, halves to even.

    >>> compute.around([1.25, 2.71], 1)
    Array([1.2, 2.7], dtype=float32)
    """
    x = array_of(x)
    if decimals == 0 or (x.dtype not in _INEXACT and decimals > 0):
        return _ops.TABLE["round"]["run"](x, out=out)
    scale = 10.0 ** builtins.abs(decimals)
    if x.dtype not in _INEXACT:
        scale = int(scale)
        low = x // scale * scale
        far, half = x - low, scale // 2
        up = _ops.logical_or(far > half, _ops.logical_and(far == half, low // scale % 2 == 1))
        found = _functions.where(up, low + scale, low)
        return found if out is None else _ops.copy(found, out=out)
    if decimals > 0:
        return _ops.TABLE["divide"]["run"](_ops.round(x * scale), scale, out=out)
    return _ops.TABLE["multiply"]["run"](_ops.round(x / scale), scale, out=out)


def _add(x1, x2, *out, alpha=None, **options):
    """x1 + alpha x2."""
    return _with_options("add", (x1, x2 if alpha is None else _ops.multiply(array_of(x2), alpha), *out), options)


def _subtract(x1, x2, *out, alpha=None, **options):
    """x1 - alpha x2."""
    return _with_options("subtract", (x1, x2 if alpha is None else _ops.multiply(array_of(x2), alpha), *out), options)


def _divide(x1, x2, *out, rounding_mode=None, **options):
    """x1 / x2, rounded as PyTorch's `rounding_mode` says."""
    if rounding_mode not in (None, "floor", "trunc"):
        raise ValueError(f"divide: rounding_mode is {rounding_mode!r}; expected None, 'floor' or 'trunc'")
    if rounding_mode != "trunc":
        return _with_options("divide" if rounding_mode is None else "floor_divide", (x1, x2, *out), options)
    x1, x2 = arrays_of(x1, x2)
    if _dtypes.result_type(x1, x2) in _INEXACT:
        return _ops.trunc(_with_options("divide", (x1, x2, *out), options))
    down = _ops.floor_divide(x1, x2)
    is_negative = _ops.logical_and(_ops.not_equal(down * x2, x1), _ops.not_equal(_ops.less(x1, 0), _ops.less(x2, 0)))
    return _with_options("add", (down, is_negative, *out), options)


def _with_options(name, inputs, options):
    """An elementwise function with what it has in NumPy: `dtype`, `where`, and an array for the result behind the operands. A hook of the extension."""
    run, count = _ops.TABLE[name]["run"], len(_ops.TABLE[name]["inputs"].split())
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


def fmax(x1: Values, x2: Values) -> Array:
    """The greater of two elements; of NaN and a number, the number.

    >>> compute.fmax([1.0, compute.nan], [0.0, 2.0])
    Array([1., 2.], dtype=float32)
    """
    x1, x2 = arrays_of(x1, x2)
    return _functions.where(_ops.not_equal(x1, x1) if isinstance(x1, Array) else x1 != x1, x2,
                            _functions.where(_ops.not_equal(x2, x2) if isinstance(x2, Array) else x2 != x2, x1, _ops.maximum(x1, x2)))


def fmin(x1: Values, x2: Values) -> Array:
    """The lesser of two elements; of NaN and a number, the number.

    >>> compute.fmin([1.0, compute.nan], [0.0, 2.0])
    Array([0., 2.], dtype=float32)
    """
    return _ops.negative(fmax(_ops.negative(array_of(x1)) if not isinstance(x1, _dtypes.NUMBERS) else -x1,
                              _ops.negative(array_of(x2)) if not isinstance(x2, _dtypes.NUMBERS) else -x2))


def _reflected_divmod(x2, x1):
    return divmod(x1, x2)


def divmod(x1: Values, x2: Values) -> tuple[Array, Array]:
    """floor_divide and remainder.

    >>> compute.divmod([7, -7], 3)
    (Array([ 2, -3], dtype=int64), Array([1, 2], dtype=int64))
    """
    x1, x2 = arrays_of(x1, x2)
    return _ops.floor_divide(x1, x2), _ops.remainder(x1, x2)


def gcd(x1: Values, x2: Values) -> Array:
    """The greatest common divisors of integers. Waits for them.

    >>> compute.gcd([12, 7, 0], 18)
    Array([ 6,  1, 18], dtype=int64)
    """
    x1, x2 = (_ops.abs(_creation.asarray(x)) for x in arrays_of(x1, x2))
    while bool(_functions.any(x2 != 0)):
        x1, x2 = _functions.where(x2 != 0, x2, x1), _functions.where(x2 != 0, x1 % x2, 0)
    return x1


def lcm(x1: Values, x2: Values) -> Array:
    """The least common multiples of integers. Waits for them.

    >>> compute.lcm(4, [6, 0])
    Array([12,  0], dtype=int64)
    """
    x1, x2 = (_creation.asarray(x) for x in arrays_of(x1, x2))
    return _ops.abs(x1 // gcd(x1, x2) * x2)


def modf(x: Values) -> tuple[Array, Array]:
    """The fractional and the whole parts.

    >>> compute.modf([1.5, -2.25])
    (Array([ 0.5 , -0.25], dtype=float32), Array([ 1., -2.], dtype=float32))
    """
    x = _inexact(array_of(x))
    whole = _ops.trunc(x)
    return _ops.copysign(_functions.where(_ops.isinf(x), 0, x - whole), x), whole


def frac(x: Values) -> Array:
    """The fractional parts, with the sign of `x`.

    >>> compute.frac([1.5, -2.25])
    Array([ 0.5 , -0.25], dtype=float32)
    """
    x = array_of(x)
    return x - _ops.trunc(x)


def ldexp(x1: Values, x2: Values) -> Array:
    """x1 times 2 to the power of x2.

    >>> compute.ldexp([1.0, 3.0], [2, -1])
    Array([4. , 1.5], dtype=float32)
    """
    x1, x2 = arrays_of(x1, x2)
    return _ops.multiply(x1, exp2(x2))


def logaddexp2(x1: Values, x2: Values) -> Array:
    """log2(2 ** x1 + 2 ** x2), without overflow.

    >>> compute.logaddexp2([1.0, 3.0], [1.0, 3.0])
    Array([2., 4.], dtype=float32)
    """
    x1, x2 = (_inexact(array_of(x)) for x in arrays_of(x1, x2))
    greater = _ops.maximum(x1, x2)
    return _functions.where(_ops.equal(x1, x2), x1 + 1, greater + _ops.log1p(exp2(-_ops.abs(x1 - x2))) * (1 / math.log(2)))


def addcmul(x: Values, a: Values, b: Values, *, value: float = 1) -> Array:
    """x + value a b.

    >>> compute.addcmul([1.0], [2.0], [3.0], value=0.5)
    Array([4.], dtype=float32)
    """
    x, a, b = arrays_of(x, a, b)
    return x + _ops.multiply(a, b) * value


def addcdiv(x: Values, a: Values, b: Values, *, value: float = 1) -> Array:
    """x + value a / b.

    >>> compute.addcdiv([1.0], [3.0], [2.0])
    Array([2.5], dtype=float32)
    """
    x, a, b = arrays_of(x, a, b)
    return x + _ops.divide(a, b) * value


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


def exp2(x: Values) -> Array:
    """2 to the power of `x`.

    >>> compute.exp2([1, 3])
    Array([2., 8.], dtype=float32)
    """
    return _ops.pow(2.0, _inexact(array_of(x)))


def angle(x: Values, deg: bool = False) -> Array:
    """The angle of complex numbers in radians, or in degrees.

    >>> compute.angle([1j], deg=True)
    Array([90.], dtype=float32)
    """
    x = array_of(x)
    found = _ops.atan2(_ops.imag(x), _ops.real(x)) if x.dtype in _dtypes.COMPLEX else _ops.atan2(0.0, _inexact(x))
    return _ops.rad2deg(found) if deg else found


def nan_to_num(x: Values, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Array:
    """`x` with numbers in the place of NaN and infinities, for which the default is the greatest and the least number.

    >>> compute.nan_to_num([compute.nan, 1.0])
    Array([0., 1.], dtype=float32)
    """
    x = array_of(x)
    if not isinstance(copy, builtins.bool):
        raise TypeError(f"nan_to_num: copy is {copy!r}; PyTorch's second argument is nan={copy!r} here")
    if x.dtype in _dtypes.COMPLEX:
        found = x if not copy else _ops.copy(x)
        found.real, found.imag = (nan_to_num(part, True, nan, posinf, neginf) for part in (_ops.real(x), _ops.imag(x)))
        return found
    if x.dtype not in _dtypes.FLOATS:
        return _ops.copy(x) if copy else x
    limits = _dtypes.finfo(x.dtype)
    found = _ops.where(_ops.isnan(x), nan, x)
    found = _ops.where(_ops.equal(x, math.inf), limits.max if posinf is None else posinf, found)
    found = _ops.where(_ops.equal(x, -math.inf), limits.min if neginf is None else neginf, found)
    return found if copy else _ops.copy(found, out=x)


def isreal(x: Values) -> Array:
    """Whether the imaginary part of each element is 0.

    >>> compute.isreal([1 + 0j, 1j])
    Array([ True, False], dtype=bool)
    """
    return _ops.equal(_functions.imag(x), 0)


def iscomplex(x: Values) -> Array:
    """Whether the imaginary part of each element is not 0.

    >>> compute.iscomplex([1 + 0j, 1j])
    Array([False,  True], dtype=bool)
    """
    return _ops.not_equal(_functions.imag(x), 0)


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
    start, end, weight = arrays_of(start, end, weight)
    return start + weight * (end - start)


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


def array_equal(x1: Values, x2: Values, equal_nan: bool = False) -> bool:
    """Whether two arrays have one shape and equal elements. PyTorch's equal.

    >>> compute.array_equal([1, 2], compute.asarray([1, 2]))
    True
    """
    x1, x2 = (_creation.asarray(x) for x in arrays_of(x1, x2))
    if x1.shape != x2.shape:
        return False
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


# ---- Products -------------------------------------------------------------------------------------------------------


def dot(x1: Values, x2: Values, out: Array | None = None) -> Array:
    """The product of two vectors, matrices, or arrays: the sums over the last axis of `x1` and the last but one of `x2`.

    >>> compute.dot([1, 2], compute.asarray([3, 4]))
    Array(11, dtype=int64)
    """
    x1, x2 = arrays_of(x1, x2)
    if not getattr(x1, "ndim", 0) or not getattr(x2, "ndim", 0):
        found = _ops.multiply(x1, x2)
    elif x2.ndim <= 2:
        found = _ops.matmul(x1, x2)
    else:
        found = _functions.tensordot(x1, x2, axes=((x1.ndim - 1,), (x2.ndim - 2,)))
    return found if out is None else _ops.copy(found, out=out)


def inner(x1: Values, x2: Values) -> Array:
    """The sums of products over the last axes of two arrays.

    >>> compute.inner([1, 2], [3, 4])
    Array(11, dtype=int64)
    """
    x1, x2 = arrays_of(x1, x2)
    if not getattr(x1, "ndim", 0) or not getattr(x2, "ndim", 0):
        return _ops.multiply(x1, x2)
    return _functions.tensordot(x1, x2, axes=((x1.ndim - 1,), (x2.ndim - 1,)))


def outer(x1: Values, x2: Values) -> Array:
    """linalg.outer of the flattened arrays.

    >>> compute.outer([1, 2], [3, 4])
    Array([[3, 4],
           [6, 8]], dtype=int64)
    """
    x1, x2 = arrays_of(x1, x2)
    return linalg.outer(_flat(x1), _flat(x2))


def vdot(x1: Values, x2: Values) -> Array:
    """The sum of the products of the elements of two flattened arrays, of which the first is conjugated.

    >>> compute.vdot([1j], [1j])
    Array(1.+0.j, dtype=complex64)
    """
    x1, x2 = arrays_of(x1, x2)
    return _functions.vecdot(_flat(x1), _flat(x2))


def addmm(c: Values, a: Values, b: Values, *, beta: float = 1.0, alpha: float = 1.0) -> Array:
    """linalg.gemm: beta c + alpha a b.

    >>> compute.addmm(compute.eye(2), compute.ones((2, 1)), compute.ones((1, 2)))
    Array([[2., 1.],
           [1., 2.]], dtype=float32)
    """
    return linalg.gemm(c, a, b, alpha=alpha, beta=beta)


def cdist(x1: Values, x2: Values, p: float = 2.0) -> Array:
    """The distances of the rows of matrices `x1` from those of `x2`: the norms of their differences, of the order `p`.

    >>> compute.cdist([[0.0, 0.0]], [[3.0, 4.0], [0.0, 1.0]])
    Array([[5., 1.]], dtype=float32)
    """
    x1, x2 = (_inexact(x) for x in arrays_of(x1, x2))
    return linalg.vector_norm(_manipulation.expand_dims(x1, -2) - _manipulation.expand_dims(x2, -3), axis=-1, ord=p)


def _cond(x: Values, p: Any = None) -> Array:
    """The condition number of matrices: the norm, 2 unless `p` says another one, times that of the inverse.

    >>> compute.linalg.cond([[2.0, 0.0], [0.0, 4.0]])
    Array(2., dtype=float32)
    """
    x = _inexact(array_of(x))
    if p in (None, 2, -2):
        values = linalg.svdvals(x)
        greatest, least = values[..., 0], values[..., -1]
        return least / greatest if p == -2 else greatest / least
    return linalg.matrix_norm(x, ord=p) * linalg.matrix_norm(linalg.inv(x), ord=p)


def _on_axes(name, x, axis1, axis2):
    x = array_of(x)
    axis1, axis2 = _axes((axis1, axis2), x.ndim, name)
    return _core.permute_view(x, [i for i in range(x.ndim) if i not in (axis1, axis2)] + [axis1, axis2])


def diagonal(x: Values, offset: int = 0, axis1: int = 0, axis2: int = 1, **names: int) -> Array:
    """The diagonals of the matrices along two axes, a view. PyTorch calls the axes dim1 and dim2.

    >>> compute.diagonal([[1, 2], [3, 4]])
    Array([1, 4], dtype=int64)
    """
    if names:
        return renamed(diagonal, names, x, offset=offset, axis1=axis1, axis2=axis2)
    return linalg.diagonal(_on_axes("diagonal", x, axis1, axis2), offset=offset)


def trace(x: Values, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DType | None = None) -> Array:
    """The sums of the diagonals of the matrices along two axes.

    >>> compute.trace([[1, 2], [3, 4]])
    Array(5, dtype=int64)
    """
    return linalg.trace(_on_axes("trace", x, axis1, axis2), offset=offset, dtype=dtype)


def norm(x: Values, p: Any = "fro", dim: Any = None, keepdim: bool = False) -> Array:
    """PyTorch's norm: that of all elements, or of vectors along `dim`. NumPy's is linalg.norm.

    >>> compute.norm([[3.0, 0.0], [0.0, 4.0]])
    Array(5., dtype=float32)
    """
    if p == "nuc":
        raise NotImplementedError("norm: 'nuc' needs singular values, which the package does not have yet")
    return linalg.vector_norm(_inexact(array_of(x)), axis=dim, keepdims=keepdim, ord=2 if p == "fro" else p)


def _linalg_norm(x: Values, ord: Any = None, axis: Any = None, keepdims: bool = False, **names: Any) -> Array:
    """The norm of a vector or a matrix, or of those along one or two axes; without `ord`, the root of the sum of squares.

    >>> compute.linalg.norm([[3.0, 4.0], [6.0, 8.0]], axis=1)
    Array([ 5., 10.], dtype=float32)
    """
    if names:
        return renamed(_linalg_norm, names, x, ord=ord, axis=axis, keepdims=keepdims)
    x = _inexact(array_of(x))
    axes = None if axis is None else _axes(axis, x.ndim, "norm")
    if ord is None or (axes is None and x.ndim == 1) or (axes is not None and len(axes) == 1):
        return linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=2 if ord is None else ord)
    if axes is None and x.ndim == 2:
        return linalg.matrix_norm(x, keepdims=keepdims, ord=ord)
    if axes is None or len(axes) != 2:
        raise ValueError(f"norm: ord={ord!r} needs one or two axes, not {x.ndim if axes is None else len(axes)}")
    found = linalg.matrix_norm(_on_axes("norm", x, *axes), ord=ord)
    return _core.reshape_view(found, [1 if i in axes else n for i, n in enumerate(x.shape)]) if keepdims else found


def _multi_dot(arrays: Sequence[Values]) -> Array:
    """The product of matrices, multiplied from left to right.

    >>> compute.linalg.multi_dot([compute.ones((1, 2)), compute.ones((2, 3)), compute.ones((3, 1))])
    Array([[6.]], dtype=float32)
    """
    arrays = arrays_of(*arrays)
    found = arrays[0]
    for one in arrays[1:]:
        found = _ops.matmul(found, one)
    return found


def polyval(p: Values, x: Values) -> Array:
    """The values at `x` of the polynomial with the coefficients `p`, that of the highest power first.

    >>> compute.polyval([1, 0, 2], [3, 4])
    Array([11, 18], dtype=int64)
    """
    p, x = arrays_of(p, x)
    x = _creation.asarray(x, device=p.device)
    found = _creation.zeros_like(x)
    for i in range(p.shape[0]):
        found = found * x + p[i]
    return found


def _aligned(p, q):
    """Coefficients of two polynomials, with zeros in front of those of the shorter one."""
    p, q = (atleast_1d(x) for x in arrays_of(p, q))
    size = builtins.max(p.size, q.size)
    return (_ops.pad(x, pads_begin=[size - x.size], pads_end=[0]) for x in (p, q))


def roots(p: Values) -> Array:
    """The complex roots of a polynomial: the eigenvalues of its companion matrix. Coefficients are as of polyval. Waits for them.

    >>> compute.round(compute.real(compute.roots([1, -3, 2])))
    Array([2., 1.], dtype=float32)
    """
    p = _inexact(array_of(p))
    places = flatnonzero(p).tolist()
    if not places:
        return _creation.zeros((0,), dtype=_dtypes._promote_number(p.dtype, 1j), device=p.device)
    zeros = p.size - 1 - places[-1]
    p = p[places[0]:places[-1] + 1]
    found = linalg.eigvals(_manipulation.concat([_manipulation.expand_dims(-p[1:] / p[0], 0), _creation.eye(p.size - 2, p.size - 1, dtype=p.dtype, device=p.device)])
                           if p.size > 1 else _creation.zeros((0, 0), dtype=p.dtype, device=p.device))
    return _ops.pad(found, pads_begin=[0], pads_end=[zeros]) if zeros else found


def polyadd(p: Values, q: Values) -> Array:
    """The sum of two polynomials; coefficients are as of polyval.

    >>> compute.polyadd([1, 2], [1, 0, 3])
    Array([1, 1, 5], dtype=int64)
    """
    return _ops.add(*_aligned(p, q))


def polysub(p: Values, q: Values) -> Array:
    """The difference of two polynomials; coefficients are as of polyval.

    >>> compute.polysub([1, 2], [1, 0, 3])
    Array([-1,  1, -1], dtype=int64)
    """
    return _ops.subtract(*_aligned(p, q))


def polymul(p: Values, q: Values) -> Array:
    """The product of two polynomials; coefficients are as of polyval.

    >>> compute.polymul([1, 2], [1, 3])
    Array([1, 5, 6], dtype=int64)
    """
    return _numeric.convolve(*(atleast_1d(x) for x in arrays_of(p, q)))


def polyder(p: Values, m: int = 1) -> Array:
    """The `m`-th derivative of a polynomial; coefficients are as of polyval.

    >>> compute.polyder([1, 2, 3])
    Array([2, 2], dtype=int64)
    """
    p = array_of(p)
    for _ in range(m):
        p = p[:-1] * _creation.arange(p.size - 1, 0, -1, device=p.device)
    return p


def polyint(p: Values, m: int = 1, k: Any = None) -> Array:
    """The `m`-th integral of a polynomial, with the constants `k`; coefficients are as of polyval.

    >>> compute.polyint([2.0, 2.0], k=3)
    Array([1., 2., 3.], dtype=float32)
    """
    constants = [0] * m if k is None else [k] * m if isinstance(k, _dtypes.NUMBERS) else list(k)
    p = array_of(p)
    for constant in constants:
        p = append(p / _creation.arange(p.size, 0, -1, device=p.device), constant)
    return p


def polyfit(x: Values, y: Values, deg: int, rcond: None = None, full: bool = False, w: Values | None = None) -> Array:
    """The coefficients, the highest power first, of the polynomial of the degree `deg` nearest to points, by least squares.

    `w` are weights of the points' distances. It is computed in float64 where the device has it. ValueError if the points
    do not determine a polynomial.

    >>> compute.round(compute.polyfit([0, 1, 2], [1, 3, 5], 1))
    Array([2., 1.], dtype=float32)
    """
    if full or rcond is not None:
        raise NotImplementedError("polyfit: full and rcond need singular values, which the package does not have yet")
    x, y, w = arrays_of(x, y, w)
    if x.ndim != 1 or y.shape[:1] != x.shape or y.ndim > 2:
        raise ValueError(f"polyfit: points of the shapes {x.shape} and {y.shape}")
    result = _dtypes.DEFAULT_FLOAT if x.dtype not in _INEXACT else x.dtype
    result = _dtypes.promote(result, y.dtype) if y.dtype in _INEXACT else result
    dtype = _dtypes.float64 if _has_float64(x.device) else _dtypes.float32
    x, y = (_ops.cast(one, dtype=dtype) for one in (x, y))
    columns = [_creation.ones_like(x)]
    for _ in range(deg):
        columns.insert(0, columns[0] * x)
    if w is not None:
        w = _ops.cast(w, dtype=dtype)
        columns, y = [one * w for one in columns], y * (w if y.ndim == 1 else _core.reshape_view(w, (w.size, 1)))
    return _ops.cast(_least_squares(columns, y), dtype=result)


def _least_squares(columns, y):
    """The factors of columns whose sum is nearest to `y`, by Gram and Schmidt's method, twice for each column."""
    scales = [linalg.vector_norm(one) for one in columns]
    columns = [one / scale for one, scale in zip(columns, scales)]
    unit, upper = [], []
    for column in columns:
        shares = [_creation.zeros((), dtype=column.dtype, device=column.device)] * len(unit)
        for _ in range(2):
            for i, q in enumerate(unit):
                share = _ops.vecdot(q, column)
                shares[i] = shares[i] + share
                column = column - share * q
        size = linalg.vector_norm(column)
        if not float(size) > len(columns) * columns[0].size * _dtypes.finfo(column.dtype).eps:
            raise ValueError("polyfit: the points do not determine a polynomial of this degree")
        unit.append(column / size)
        upper.append([*shares, size])
    sides = []
    for q in unit:
        sides.append(_ops.matmul(q, y))
        y = y - (sides[-1] * q if y.ndim == 1 else _ops.multiply(_core.reshape_view(q, (q.size, 1)), sides[-1]))
    for i in reversed(range(len(unit))):
        for j in range(i + 1, len(unit)):
            sides[i] = sides[i] - upper[j][i] * sides[j]
        sides[i] = sides[i] / upper[i][i]
    return _ops.stack(*(side / scale for side, scale in zip(sides, scales)), axis=0)


# ---- Networks -------------------------------------------------------------------------------------------------------


def _conv(count):
    def run(x: Values, weight: Values, bias: Values | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Array:
        return nn.convolution(x, weight, bias, strides=stride, dilations=dilation, padding=padding, groups=groups)
    run.__doc__ = f"convolution over {count} spatial ax{'i' if count == 1 else 'e'}s."
    run.__name__ = run.__qualname__ = f"conv{count}d"
    return run


def _max_pool2d(x: Values, kernel_size: Any, stride: Any = None, padding: Any = 0) -> Array:
    """max_pool.

    >>> compute.nn.max_pool2d(compute.ones((1, 1, 4, 4)), 2).shape
    (1, 1, 2, 2)
    """
    return nn.max_pool(x, kernel_size, strides=stride, padding=padding)


def _avg_pool2d(x: Values, kernel_size: Any, stride: Any = None, padding: int = 0) -> Array:
    """average_pool, where zeros in the padding count.

    >>> compute.nn.avg_pool2d(compute.ones((1, 1, 2, 2)), 2, padding=1)[0, 0]
    Array([[0.25, 0.25],
           [0.25, 0.25]], dtype=float32)
    """
    x = array_of(x)
    return nn.average_pool(_manipulation.pad(x, ((0, 0),) * 2 + ((padding, padding),) * (x.ndim - 2)) if padding else x, kernel_size, strides=stride)


def _adaptive_avg_pool2d(x: Values, output_size: Any) -> Array:
    """average_pool to so many windows along the last two axes.

    Raises ValueError if an axis does not divide into so many windows.

    >>> compute.nn.adaptive_avg_pool2d(compute.ones((1, 3, 4, 6)), 2).shape
    (1, 3, 2, 2)
    """
    x = array_of(x)
    sizes = (output_size,) * 2 if isinstance(output_size, int) else output_size
    if any_uneven := [n for n, size in zip(x.shape[-2:], sizes) if n % size]:
        raise ValueError(f"adaptive_avg_pool2d: an axis of extent {any_uneven[0]} does not divide into {sizes} windows of one extent; use average_pool")
    return nn.average_pool(x, [n // size for n, size in zip(x.shape[-2:], sizes)])


def _scaled_dot_product_attention(query: Values, key: Values, value: Values, attn_mask: Values | None = None, dropout_p: float = 0.0, is_causal: bool = False,
                                  scale: float | None = None) -> Array:
    """attention. Raises NotImplementedError for `dropout_p` other than 0.

    >>> x = compute.ones((1, 1, 2, 4))
    >>> compute.nn.scaled_dot_product_attention(x, x, x).shape
    (1, 1, 2, 4)
    """
    if dropout_p:
        raise NotImplementedError("scaled_dot_product_attention: dropout_p; use softmax and dropout")
    found = nn.attention(*(_manipulation.expand_dims(x, 1) if x.ndim == 3 else x for x in arrays_of(query, key, value)), attn_mask, causal=is_causal, scale=scale or 0.0)
    return found[:, 0] if ndim(query) == 3 else found


def _loss(values, reduction):
    if reduction not in ("none", "mean", "sum", "batchmean"):
        raise ValueError(f"reduction is {reduction!r}; expected 'none', 'mean' or 'sum'")
    total = values if reduction == "none" else _functions.mean(values) if reduction == "mean" else _functions.sum(values)
    return total / values.shape[0] if reduction == "batchmean" else total


def _mse_loss(x: Values, target: Values, reduction: str = "mean") -> Array:
    """The mean, the sum, or with "none" each of the squares of differences.

    >>> compute.nn.mse_loss([1.0, 5.0], [1.0, 3.0])
    Array(2., dtype=float32)
    """
    return _loss(nn.squared_difference(*arrays_of(x, target)), reduction)


def _l1_loss(x: Values, target: Values, reduction: str = "mean") -> Array:
    """The mean, the sum, or with "none" each of the distances.

    >>> compute.nn.l1_loss([1.0, 5.0], [1.0, 3.0])
    Array(1., dtype=float32)
    """
    return _loss(_ops.abs(_ops.subtract(*arrays_of(x, target))), reduction)


def _nll_loss(x: Values, target: Values, reduction: str = "mean") -> Array:
    """The mean, the sum, or with "none" each of the negative logarithms `x` of the probabilities of the classes `target`, along axis 1.

    >>> compute.nn.nll_loss([[-1.0, -2.0], [-3.0, -4.0]], [1, 0])
    Array(2.5, dtype=float32)
    """
    x, target = array_of(x), array_of(target)
    return _loss(-_manipulation.squeeze(_indexing.take_along_axis(x, _manipulation.expand_dims(target, 1), axis=1), 1), reduction)


def _kl_div(x: Values, target: Values, reduction: str = "mean") -> Array:
    """The divergences of probabilities `target` from those with the logarithms `x`; "batchmean" is the sum over the extent of the first axis.

    >>> compute.nn.kl_div([[0.0, 0.0]], [[1.0, 1.0]], reduction="batchmean")
    Array(0., dtype=float32)
    """
    x, target = arrays_of(x, target)
    return _loss(_ops.xlogy(target, target) - target * x, reduction)


def _normalize(x: Values, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Array:
    """Vectors along an axis over their norms.

    >>> compute.nn.normalize([[3.0, 4.0]])
    Array([[0.6, 0.8]], dtype=float32)
    """
    x = array_of(x)
    return x / _ops.maximum(linalg.vector_norm(x, axis=dim, ord=p, keepdims=True), eps)


def _cosine_similarity(x1: Values, x2: Values, dim: int = 1, eps: float = 1e-8) -> Array:
    """The cosines of the angles of vectors along an axis.

    >>> compute.nn.cosine_similarity([[3.0, 4.0]], [[4.0, 3.0]])
    Array([0.96], dtype=float32)
    """
    return _functions.sum(_ops.multiply(*(_normalize(x, dim=dim, eps=eps) for x in arrays_of(x1, x2))), axis=dim)


_PAD_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def _pad(x: Values, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Array:
    """compute.pad, where `pad` has the widths in front of and behind the last axis, then those of the axis before, and so on.

    >>> compute.nn.pad([[1, 2]], (1, 0))
    Array([[0, 1, 2]], dtype=int64)
    """
    x = array_of(x)
    widths = [(0, 0)] * (x.ndim - len(pad) // 2) + list(zip(pad[::2], pad[1::2]))[::-1]
    return _manipulation.pad(x, widths, mode=_PAD_MODES.get(mode, mode), constant_values=value or 0)


# ---- Random numbers -------------------------------------------------------------------------------------------------


def _extents(size, single):
    """The shape of a call such as rand(2, 3), rand((2, 3)) or rand(size=3)."""
    return single[0] if len(single) == 1 and not hasattr(single[0], "__index__") else single if size is None else size


def rand(*size: Any, dtype: DType | None = None, device: Any = None, requires_grad: bool = False) -> Array:
    """Uniformly distributed numbers in [0, 1), of the shape of the arguments.

    >>> compute.rand(2, 3).shape
    (2, 3)
    """
    no_gradient(requires_grad)
    return random.uniform(_extents(None, size), dtype=dtype, device=device)


def randn(*size: Any, dtype: DType | None = None, device: Any = None, requires_grad: bool = False) -> Array:
    """Normally distributed numbers with mean 0 and deviation 1, of the shape of the arguments.

    >>> compute.randn(2, 3).shape
    (2, 3)
    """
    no_gradient(requires_grad)
    return random.normal(_extents(None, size), dtype=dtype, device=device)


def randint(low: int, high: Any = None, size: Any = None, dtype: DType | None = None, device: Any = None) -> Array:
    """Random integers in [low, high), or in [0, low); the shape is the third argument, or as PyTorch has it the second of two.

    >>> compute.randint(0, 10, (2, 3)).shape
    (2, 3)
    """
    if high is not None and not hasattr(high, "__index__"):
        high, size = None, high
    low, high = (0, low) if high is None else (low, high)
    return random.integers(() if size is None else size, low, high, dtype=dtype, device=device)


def rand_like(x: Values, *, dtype: DType | None = None) -> Array:
    """rand of the shape, the dtype and the device of `x`.

    >>> compute.rand_like(compute.ones((2, 3))).shape
    (2, 3)
    """
    x = array_of(x)
    return random.uniform(x.shape, dtype=dtype or x.dtype, device=x.device)


def randn_like(x: Values, *, dtype: DType | None = None) -> Array:
    """randn of the shape, the dtype and the device of `x`.

    >>> compute.randn_like(compute.ones((2, 3))).shape
    (2, 3)
    """
    x = array_of(x)
    return random.normal(x.shape, dtype=dtype or x.dtype, device=x.device)


def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None) -> Array:
    """PyTorch's normal: normally distributed numbers of a shape, by default that of `mean` and `std`, which may be arrays.

    >>> compute.normal(0.0, 1.0, size=(2, 3)).shape
    (2, 3)
    """
    extents = _manipulation.broadcast_shapes(shape(mean), shape(std)) if size is None else size
    return random.normal(extents) * std + mean


def bernoulli(p: Values) -> Array:
    """1 with the probabilities `p`, else 0, in the dtype of `p`.

    >>> compute.bernoulli(compute.asarray([0.0, 1.0]))
    Array([0., 1.], dtype=float32)
    """
    p = _inexact(array_of(p))
    return _ops.cast(random.uniform(p.shape, dtype=p.dtype, device=p.device) < p, dtype=p.dtype)


def multinomial(weights: Values, num_samples: int, replacement: bool = False) -> Array:
    """Random positions along the last axis, with probabilities in the proportion of `weights`. Waits for them without `replacement`.

    >>> compute.multinomial([0.0, 1.0], 2, replacement=True)
    Array([1, 1], dtype=int64)
    """
    weights = _inexact(array_of(weights))
    if replacement:
        return random.categorical(_ops.log(weights), samples=num_samples)
    if weights.ndim == 1:
        return random.choice(weights.size, num_samples, replace=False, p=weights)
    return _manipulation.stack([multinomial(row, num_samples) for row in _manipulation.unstack(weights)])


def _uniform_numbers(size: Any = None) -> Array:
    """Uniformly distributed numbers in [0, 1) of a shape."""
    return random.uniform(() if size is None else size)


def _standard_normal(size: Any = None) -> Array:
    """Normally distributed numbers with mean 0 and deviation 1 of a shape."""
    return random.normal(() if size is None else size)


def _exponential(scale: Any = 1.0, size: Any = None) -> Array:
    """Exponentially distributed numbers with a mean.

    >>> compute.random.exponential(2.0, size=3).shape
    (3,)
    """
    return _spread(random.uniform, scale, size)


def _spread(uniform, scale, size):
    return _ops.multiply(-_ops.log1p(-uniform(shape(scale) if size is None else size)), scale)


def _lognormal(mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Array:
    """Numbers whose logarithms are normally distributed.

    >>> compute.random.lognormal(size=3).shape
    (3,)
    """
    return _ops.exp(random.normal(() if size is None else size, mean, sigma))


class NumPyGenerator:
    """A compute.random.Generator, whose methods have the order of arguments of NumPy's: the shape comes last."""

    def __init__(self, seed: Any = None) -> None:
        if seed is None:
            import secrets

            seed = secrets.randbits(63)
        self.generator = seed if isinstance(seed, random.Generator) else random.Generator(seed)

    def __getattr__(self, name: str) -> Any:
        raise missing("compute.random", name)

    def random(self, size: Any = None, dtype: Any = None) -> Array:
        """Uniformly distributed numbers in [0, 1)."""
        return self.generator.uniform(() if size is None else size, dtype=dtype)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Array:
        """Uniformly distributed numbers in [low, high)."""
        return self.generator.uniform(() if size is None else size, low, high)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Array:
        """Normally distributed numbers."""
        return self.generator.normal(() if size is None else size, loc, scale)

    def standard_normal(self, size: Any = None, dtype: Any = None) -> Array:
        """Normally distributed numbers with mean 0 and deviation 1."""
        return self.generator.normal(() if size is None else size, dtype=dtype)

    def integers(self, low: int, high: int | None = None, size: Any = None, dtype: Any = None, endpoint: bool = False) -> Array:
        """Random integers in [low, high), or in [0, low); with `endpoint`, `high` is among them."""
        low, high = (0, low) if high is None else (low, high)
        return self.generator.integers(() if size is None else size, low, high + bool(endpoint), dtype=dtype)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Array:
        """Exponentially distributed numbers with a mean."""
        return _spread(self.generator.uniform, scale, size)

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Array:
        """Numbers whose logarithms are normally distributed."""
        return _ops.exp(self.normal(mean, sigma, size))

    def multivariate_normal(self, mean: Values, cov: Values, size: Any = None) -> Array:
        """Vectors of normally distributed numbers with means and a covariance matrix."""
        return _correlated(self.generator.normal, mean, cov, size)

    def choice(self, a: Any, size: Any = None, replace: bool = True, p: Values | None = None, axis: int = 0) -> Array:
        """Random parts of `a` along an axis, or random integers in [0, a)."""
        return self.generator.choice(a, () if size is None else size, replace=replace, p=p, axis=axis)

    def permutation(self, x: Any, axis: int = 0) -> Array:
        """The integers in [0, x), or the parts of `x` along an axis, in random order."""
        return self.generator.permutation(x, axis=axis)

    def shuffle(self, x: Array, axis: int = 0) -> None:
        """Puts the parts of `x` along an axis in random order, in place."""
        self.generator.shuffle(x, axis=axis)


def _multivariate_normal(mean: Values, cov: Values, size: Any = None) -> Array:
    """Vectors of normally distributed numbers with means and a covariance matrix.

    >>> compute.random.multivariate_normal([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], 3).shape
    (3, 2)
    """
    return _correlated(random.normal, mean, cov, size)


def _correlated(normal, mean, cov, size):
    mean, cov = (_inexact(array_of(x)) for x in (mean, cov))
    shape = () if size is None else (size,) if isinstance(size, int) else tuple(size)
    return mean + _functions.matmul(normal((*shape, mean.size)), linalg.cholesky(cov).mT)


def _default_rng(seed: Any = None) -> NumPyGenerator:
    """A generator with NumPy's order of arguments. The same seed gives other numbers than in NumPy.

    >>> compute.random.default_rng(0).random(3).shape
    (3,)
    """
    return NumPyGenerator(seed)


# ---- Properties and types -------------------------------------------------------------------------------------------


def ndim(x: Values) -> int:
    """The number of axes.

    >>> compute.ndim([[1, 2]])
    2
    """
    return 0 if isinstance(x, _dtypes.NUMBERS) else array_of(x).ndim


def shape(x: Values) -> tuple[int, ...]:
    """The extents.

    >>> compute.shape([[1, 2]])
    (1, 2)
    """
    return () if isinstance(x, _dtypes.NUMBERS) else array_of(x).shape


def size(x: Values, axis: Any = None) -> int:
    """The number of elements, or the extent of an axis, or the product of those of several.

    >>> compute.size([[1, 2], [3, 4]], 0)
    2
    """
    return math.prod(shape(x)) if axis is None else math.prod(shape(x)[i] for i in _axes(axis, ndim(x), "size"))


def numel(x: Values) -> int:
    """The number of elements.

    >>> compute.numel([[1, 2]])
    2
    """
    return size(x)


def dtype(kind: Any) -> DType:
    """The dtype that a name, a type of Python or a dtype of NumPy means.

    >>> compute.dtype("float32")
    compute.float32
    """
    return _dtypes._from_object(kind)


def issubdtype(dtype: Any, kind: Any) -> bool:
    """isdtype, where a kind may also be compute.floating, compute.integer and the like.

    >>> compute.issubdtype(compute.int8, compute.integer)
    True
    """
    kind = {float: "real floating", int: "signed integer", complex: "complex floating", builtins.bool: "bool"}.get(kind, kind) if isinstance(kind, type) else kind
    return _dtypes.isdtype(dtype, kind)


def promote_types(a: Any, b: Any) -> DType:
    """The dtype that two dtypes have in common.

    Raises TypeError if there is none.

    >>> compute.promote_types("int8", "int16")
    compute.int16
    """
    return _dtypes.result_type(_dtypes._from_object(a), _dtypes._from_object(b))


def isscalar(x: Any) -> bool:
    """Whether `x` is a number or a str.

    >>> compute.isscalar(3.0)
    True
    """
    return isinstance(_dtypes.number(x), (*_dtypes.NUMBERS, str)) and not isinstance(x, Array)


def is_tensor(x: Any) -> bool:
    """Whether `x` is an array of this package.

    >>> compute.is_tensor(compute.ones(2))
    True
    """
    return isinstance(x, Array)


def is_floating_point(x: Values) -> bool:
    """Whether the dtype of `x` is a floating-point one.

    >>> compute.is_floating_point(compute.ones(2))
    True
    """
    return array_of(x).dtype in _dtypes.FLOATS


def get_default_dtype() -> DType:
    """The dtype of floating-point numbers without one.

    >>> compute.get_default_dtype()
    compute.float32
    """
    return _dtypes.DEFAULT_FLOAT


def may_share_memory(x1: Array, x2: Array) -> bool:
    """Whether two arrays are views of one buffer.

    >>> x = compute.ones(3)
    >>> compute.may_share_memory(x, x[1:])
    True
    """
    return _core.shares_memory(x1, x2)


def errstate(**settings: str) -> Any:
    """A context in which floating-point faults are ignored, as they always are here. Other settings raise an error."""
    for name, value in settings.items():
        if value != "ignore":
            raise NotImplementedError(f"errstate: {name}={value!r}; floating-point faults can only be ignored")
    return contextlib.nullcontext()


def seterr(**settings: str) -> dict[str, str]:
    """errstate for the rest of the program: floating-point faults are ignored. Other settings raise an error.

    >>> compute.seterr(all="ignore")["divide"]
    'ignore'
    """
    errstate(**settings)
    return dict.fromkeys(("divide", "over", "under", "invalid"), "ignore")


class _Cuda:
    """What programs for PyTorch ask about CUDA devices."""

    def is_available(self) -> bool:
        """Whether there is one."""
        return self.device_count() > 0

    def device_count(self) -> int:
        """How many there are."""
        return builtins.sum(info["name"].startswith("cuda") and not info["unusable"] for info in _core.device_list())

    def synchronize(self, device: Any = "cuda") -> None:
        """Waits for all work of one."""
        _core.device(f"cuda{device}" if isinstance(device, int) else device).synchronize()


cuda = _Cuda()


# ---- Files and printing ---------------------------------------------------------------------------------------------


def savez(file: Any, *arrays: Values, **named: Values) -> None:
    """Writes arrays to a .npz file: those without a name as arr_0, arr_1 and so on. load returns them as a dict.

    >>> file = io.BytesIO()
    >>> compute.savez(file, compute.ones(2), second=compute.zeros(1))
    >>> _ = file.seek(0)
    >>> sorted(compute.load(file))
    ['arr_0', 'second']
    """
    _files._save_npz(file, _named_arrays("savez", arrays, named), False)


def savez_compressed(file: Any, *arrays: Values, **named: Values) -> None:
    """savez with compression."""
    _files._save_npz(file, _named_arrays("savez_compressed", arrays, named), True)


def _named_arrays(name, arrays, named):
    found = {f"arr_{i}": x for i, x in enumerate(arrays)}
    for key in found:
        if key in named:
            raise ValueError(f"{name}: the name {key} is given twice")
    return {key: _creation.asarray(x) for key, x in (found | named).items()}


def loadtxt(file: Any, dtype: Any = float, comments: str | None = "#", delimiter: str | None = None, skiprows: int = 0,
            usecols: Any = None, unpack: bool = False, ndmin: int = 0, max_rows: int | None = None, encoding: str | None = None, converters: Any = None, **names: Any) -> Any:
    """The numbers of a text with one row in each line: a path, a file, or lines. A single row or column is a vector.

    `converters` is a function that makes a number of a text, or a dict of them for some columns.

    Columns are parted by white space or by `delimiter`. ValueError if lines have different numbers of columns.

    >>> compute.loadtxt(["1 2", "3 4"], dtype=int)
    Array([[1, 2],
           [3, 4]], dtype=int64)
    """
    if names:
        return renamed(loadtxt, names, file, dtype=dtype, comments=comments, delimiter=delimiter, skiprows=skiprows, usecols=usecols, unpack=unpack,
                       ndmin=ndmin, max_rows=max_rows, encoding=encoding, converters=converters)
    kind = _dtypes._from_object(dtype)
    read = complex if kind in _dtypes.COMPLEX else float if kind in _dtypes.FLOATS else int
    rows: list[list[Any]] = []
    with contextlib.ExitStack() as stack:
        lines = stack.enter_context(open(file, encoding=encoding)) if isinstance(file, str) or hasattr(file, "__fspath__") else file
        for number, line in enumerate(lines):
            line = line.decode(encoding or "utf-8") if isinstance(line, bytes) else line
            line = line.partition(comments)[0].strip() if comments else line.strip()
            if number < skiprows or not line or (max_rows is not None and len(rows) >= max_rows):
                continue
            texts = line.split(delimiter)
            if usecols is not None:
                texts = [texts[i] for i in ([usecols] if isinstance(usecols, int) else usecols)]
            if rows and len(texts) != len(rows[0]):
                raise ValueError(f"loadtxt: line {number + 1} has {len(texts)} columns, the lines before have {len(rows[0])}")
            readers = converters if isinstance(converters, dict) else dict.fromkeys(range(len(texts)), converters or read)
            rows.append([readers.get(i, read)(text) for i, text in enumerate(texts)])
    x = _creation.asarray(rows, dtype=kind) if rows else _creation.zeros((0,), dtype=kind)
    if x.ndim == 2 and ndmin < 2:
        x = _manipulation.squeeze(x, tuple(i for i in range(2) if x.shape[i] == 1)) if 1 in x.shape else x
        x = _core.reshape_view(x, (1,)) if x.ndim < ndmin else x
    return _manipulation.unstack(x.T, axis=0) if unpack and x.ndim == 2 else x


def savetxt(file: Any, x: Values, fmt: str = "%.18e", delimiter: str = " ", newline: str = "\n", header: str = "", footer: str = "",
            comments: str = "# ") -> None:
    """Writes a vector or a matrix as text, a row in each line, to a path or a file.

    >>> file = io.StringIO()
    >>> compute.savetxt(file, [[1.0, 2.0]], fmt="%.1f")
    >>> file.getvalue()
    '1.0 2.0\\n'
    """
    x = array_of(x)
    if x.ndim > 2:
        raise ValueError(f"savetxt: an array with {x.ndim} axes is neither a vector nor a matrix")
    rows = x.tolist() if x.ndim == 2 else [[one] for one in _flat(x).tolist()]
    lines = [comments + line for line in header.splitlines()]
    lines += [delimiter.join(fmt % one for one in row) for row in rows]
    lines += [comments + line for line in footer.splitlines()]
    text = "".join(line + newline for line in lines)
    if isinstance(file, str) or hasattr(file, "__fspath__"):
        with open(file, "w", encoding="utf-8") as opened:
            opened.write(text)
        return
    try:
        file.write(text)
    except TypeError:  # of bytes
        file.write(text.encode())


def set_printoptions(precision: int | None = None, threshold: int | None = None, edgeitems: int | None = None, linewidth: int | None = None,
                     suppress: bool | None = None, *, sci_mode: bool | None = None, **names: Any) -> None:
    """Sets how arrays are printed: digits behind the point, elements before some are left out, those shown at each end,
    the length of lines, and whether exponents are avoided. What is None stays as it is.
    """
    if names:
        renamed(set_printoptions, names, precision=precision, threshold=threshold, edgeitems=edgeitems, linewidth=linewidth, suppress=suppress)
    suppress = (None if sci_mode is None else not sci_mode) if suppress is None else suppress
    for name, value in {"PRECISION": precision, "THRESHOLD": threshold, "EDGE": edgeitems, "WIDTH": linewidth, "SUPPRESS": suppress}.items():
        if value is not None:
            setattr(_printing, name, value)


def get_printoptions() -> dict[str, Any]:
    """The options of set_printoptions."""
    return {"precision": _printing.PRECISION, "threshold": _printing.THRESHOLD, "edgeitems": _printing.EDGE, "linewidth": _printing.WIDTH,
            "suppress": _printing.SUPPRESS}


@contextlib.contextmanager
def printoptions(**options: Any) -> Any:
    """set_printoptions for a `with` statement.

    >>> with compute.printoptions(precision=2):
    ...     print(compute.asarray([0.123456]))
    [0.12]
    """
    before = get_printoptions()
    set_printoptions(**options)
    try:
        yield get_printoptions()
    finally:
        set_printoptions(**before)


def array2string(x: Values, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None) -> str:
    """The text of the elements; see set_printoptions.

    >>> compute.array2string([1.25, 2.5], precision=1)
    '[1.2 2.5]'
    """
    with printoptions(linewidth=max_line_width, precision=precision, suppress=suppress_small):
        return _printing.array_str(array_of(x))


# ---- Methods of arrays ----------------------------------------------------------------------------------------------


def _new(function):
    def run(x, *arguments, dtype=None, device=None):
        return function(*arguments, dtype=dtype or x.dtype, device=device or x.device)
    run.__doc__ = f"{function.__name__} with the dtype and the device of the array."
    return run


def _shaped_as(x, other):
    """The array with the shape of another."""
    return _manipulation.reshape(x, other.shape)


def _expanded_as(x, other):
    """A view with the shape of another array, to which the array broadcasts."""
    return _core.broadcast_view(x, other.shape)


def _normal_in_place(x, mean=0.0, std=1.0):
    """Sets the elements to normally distributed numbers, in place. Returns the array."""
    x[...] = random.normal(x.shape, mean, std, dtype=x.dtype, device=x.device)
    return x


def _uniform_in_place(x, low=0.0, high=1.0):
    """Sets the elements to uniformly distributed numbers, in place. Returns the array."""
    x[...] = random.uniform(x.shape, low, high, dtype=x.dtype, device=x.device)
    return x


def _to(x, *arguments, **options):
    """The array on another device, with another dtype, or both; as another array has them."""
    copy = options.pop("copy", False)
    options.pop("non_blocking", None)
    known = {"device": options.pop("device", None), "dtype": options.pop("dtype", None)}
    if options:
        raise TypeError(f"to() got an unexpected keyword argument {next(iter(options))!r}")
    for one in arguments:
        if isinstance(one, Array):
            known = {"device": one.device, "dtype": one.dtype}
        elif isinstance(one, (_core.Device, str)) and one not in _dtypes._BY_NAME:
            known["device"] = one.replace("cuda:", "cuda") if isinstance(one, str) else one
        elif not isinstance(one, builtins.bool):
            known["dtype"] = one
    found = x if known["device"] is None else _core.to_device(x, known["device"])
    if known["dtype"] is not None:
        found = _functions.astype(found, known["dtype"], copy=False)
    return _ops.copy(found) if copy and found is x else found


def _view(x, *shape):
    """A view with another shape, or of the same bytes as elements of another dtype."""
    if not shape:
        return x[...]
    if len(shape) == 1 and not isinstance(shape[0], (int, tuple, list)):
        kind = _dtypes._from_object(shape[0])
        if kind.itemsize == x.itemsize:
            return _core.strided_view(x, kind, x.shape, x.strides, 0)
        if not x.is_contiguous or x.ndim == 0 or x.shape[-1] * x.itemsize % kind.itemsize:
            raise ValueError(f"view: {x.dtype} of the shape {x.shape} cannot be seen as {kind}")
        flat = (*x.shape[:-1], x.shape[-1] * x.itemsize // kind.itemsize)
        strides = [math.prod(flat[i + 1:]) for i in range(len(flat))]
        return _core.strided_view(x, kind, flat, strides, 0)
    return _manipulation.reshape(x, shape[0] if len(shape) == 1 else shape, copy=False)


def _expand(x, *sizes):
    """A view with the shape of the arguments, in which -1 keeps an extent."""
    sizes = sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    kept = (1,) * (len(sizes) - x.ndim) + x.shape
    return _core.broadcast_view(x, [old if new == -1 else new for old, new in zip(kept, sizes)])


def _permute(x, *axes):
    """A view with the axes in the order of the arguments."""
    return _manipulation.permute_dims(x, axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes)


def _sort_in_place(x, axis=-1, **options):
    """Sorts the elements along an axis, in place. For a new array use compute.sort; with PyTorch's `dim` or `descending` the result is that of compute.sort along `dim`."""
    if "dim" in options or "descending" in options:
        return _functions.sort(x, dim=options.pop("dim", axis), **options)
    x[...] = _functions.sort(x, axis=axis, **options)


def _fill(x, value):
    """Sets all elements to a number, in place."""
    x[...] = value


def _t(x):
    """A view with the two axes of a matrix exchanged."""
    return x if x.ndim < 2 else x.T


def _numpy(x, *, force=False):
    """numpy.asarray(x): an array of NumPy, which shares the memory of an array on cpu."""
    import numpy

    return numpy.asarray(x)


def _cpu(x):
    """The array on cpu; itself if it is there."""
    return _core.to_device(x, "cpu")


def _cuda(x, device=None):
    """The array on a CUDA device."""
    return _core.to_device(x, "cuda" if device is None else f"cuda{device}" if isinstance(device, int) else device)


def _detach(x):
    """The array itself, or the value of a variable of compute.grad, through which no gradient passes."""
    return grad.constant(x)


def _contiguous(x):
    """The array in row-major order without gaps: itself, or a copy."""
    return x if x.is_contiguous else _ops.copy(x)


def _tobytes(x):
    """The elements in row-major order, as bytes."""
    return bytes(_files._bytes(x))


def _converted(kind):
    def run(x):
        return _functions.astype(x, kind, copy=False)
    run.__doc__ = f"The array as {kind.name}; itself if it has that dtype."
    return run


def _in_place(name):
    def run(x, *operands):
        result = _ops.TABLE[name]["run"](x, *operands, out=x)
        return result
    run.__doc__ = f"{name}, in place. Returns the array."
    return run


def _zero_in_place(x):
    """Sets all elements to 0, in place. Returns the array."""
    x[...] = 0
    return x


def _fill_in_place(x, value):
    """Sets all elements to a number, in place. Returns the array."""
    x[...] = value
    return x


def _copy_in_place(x, source):
    """Sets the elements to those of another array, which broadcasts, in place. Returns the array."""
    x[...] = source
    return x


def _scatter(x, dim, index, src, *, reduce=None):
    """compute.scatter along an axis, with PyTorch's order of arguments."""
    return _scatter_in_place(_ops.copy(x), dim, index, src) if reduce is None else _scattered(_ops.copy(x), dim, index, src, _REDUCTIONS[reduce])


_REDUCTIONS = {"add": "add", "sum": "add", "multiply": "mul", "prod": "mul", "amax": "max", "amin": "min"}


def _split_method(x: Values, split_size_or_sections: int | Sequence[int], dim: int = 0) -> list[Array]:
    """Parts of so many elements along an axis, or of several extents, as in PyTorch."""
    return _numeric.split(x, split_size_or_sections, dim=dim)


def _stride(x, dim=None):
    """The strides in elements, or that of an axis, as in PyTorch."""
    return x.strides if dim is None else x.strides[dim]


def _numbers_for_nan(x: Values, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Array:
    """nan_to_num, with PyTorch's order of arguments."""
    return nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


def _tiled(x: Values, *repetitions: int | Sequence[int]) -> Array:
    """tile, with the repetitions as a tuple or as several integers."""
    return _manipulation.tile(x, repetitions[0] if len(repetitions) == 1 else repetitions)


def _where(x: Values, condition: Values, other: Any) -> Array:
    """compute.where: the array where the condition is true, elsewhere `other`."""
    return _functions.where(condition, x, other)


def _element_size(x: Values) -> int:
    """The size of one element in bytes: itemsize."""
    return x.itemsize


def _index_fill(x, dim, index, value):
    """The array with a number at positions along an axis."""
    return _index_fill_in_place(_ops.copy(x), dim, index, value)


def _index_fill_in_place(x, dim, index, value):
    """Sets the elements at positions along an axis to a number, in place. Returns the array."""
    x[(slice(None),) * _axis(dim, x.ndim, "index_fill_") + (index,)] = value
    return x


def _unfold(x, dim, size, step):
    """A view of all parts of `size` elements of an axis, `step` apart; their elements are along a new last axis."""
    at = _axis(dim, x.ndim, "unfold")
    if not 0 < size <= x.shape[at] or step < 1:
        raise ValueError(f"unfold: size is {size} and step {step}; expected 1 to {x.shape[at]}, and a step of at least 1")
    shape = [(n - size) // step + 1 if i == at else n for i, n in enumerate(x.shape)]
    return _core.strided_view(x, x.dtype, (*shape, size), (*(stride * step if i == at else stride for i, stride in enumerate(x.strides)), x.strides[at]), 0)


def _scatter_in_place(x, dim, index, src):
    """compute.scatter along an axis, in place. Returns the array."""
    return _scattered(x, dim, index, src, "set")


def _scatter_add_in_place(x, dim, index, src):
    """compute.scatter along an axis with reduction="add", in place. Returns the array."""
    return _scattered(x, dim, index, src, "add")


def _scattered(x, dim, index, src, reduction):
    index = array_of(index)
    if isinstance(src, Array):
        src = src[tuple(slice(n) for n in index.shape)]  # which may be greater than the indices
    x[...] = _indexing.scatter(x, index, src, axis=dim, reduction=reduction)
    return x


def scatter_add(x: Values, dim: int, index: Values, src: Values) -> Array:
    """PyTorch's scatter_add: compute.scatter along an axis with reduction="add".

    >>> compute.scatter_add([0.0, 0.0], 0, [1, 1], [2.0, 3.0])
    Array([0., 5.], dtype=float32)
    """
    x, index, src = array_of(x), array_of(index), array_of(src)
    return _indexing.scatter(x, index, src[tuple(slice(n) for n in index.shape)], axis=dim, reduction="add")


def index_add(x: Values, dim: int, index: Values, source: Values, *, alpha: Any = 1) -> Array:
    """PyTorch's index_add: `x` with parts of another array, times `alpha`, added at positions along an axis.

    >>> compute.index_add([1.0, 1.0], 0, [1, 1], [2.0, 3.0])
    Array([1., 6.], dtype=float32)
    """
    x, index, source = array_of(x), array_of(index), array_of(source)
    at = _axis(dim, x.ndim, "index_add")
    index = _core.broadcast_view(_core.reshape_view(index, [-1 if i == at else 1 for i in range(x.ndim)]), source.shape)
    return _indexing.scatter(x, index, source if alpha == 1 else source * alpha, axis=at, reduction="add")


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


def _running(function, x, dim):
    values, at = function(x, axis=dim), _axis(dim, x.ndim, "cummax")
    positions = _core.reshape_view(_creation.arange(x.shape[at], device=x.device), [-1 if i == at else 1 for i in range(x.ndim)])
    is_it = _ops.logical_or(_ops.equal(x, values), _ops.not_equal(x, x))
    return _functions.Selected(values, _functions.cumulative_max(_functions.where(is_it, positions, 0), axis=at))


def block_diag(*matrices: Values) -> Array:
    """A matrix with matrices along its diagonal, and 0 elsewhere.

    >>> compute.block_diag([[1]], [[2, 3]])
    Array([[1, 0, 0],
           [0, 2, 3]], dtype=int64)
    """
    parts = [atleast_2d(x) for x in arrays_of(*matrices)]
    columns = [x.shape[1] for x in parts]
    rows = [_manipulation.pad(x, ((0, 0), (builtins.sum(columns[:i]), builtins.sum(columns[i + 1:])))) for i, x in enumerate(parts)]
    return _manipulation.concat(rows, axis=0)


def combinations(x: Values, r: int = 2, with_replacement: bool = False) -> Array:
    """The combinations of `r` elements of a vector, one row each.

    >>> compute.combinations([1, 2, 3])
    Array([[1, 2],
           [1, 3],
           [2, 3]], dtype=int64)
    """
    import itertools

    x = array_of(x)
    found = list((itertools.combinations_with_replacement if with_replacement else itertools.combinations)(range(x.size), r))
    return _indexing.take(x, _core.reshape_view(_creation.asarray(found, dtype=_dtypes.int64, device=x.device), (len(found), r)), axis=0)


def unflatten(x: Values, dim: int, sizes: Sequence[int]) -> Array:
    """`x` with an axis parted into several.

    >>> compute.unflatten([1, 2, 3, 4], 0, (2, 2)).shape
    (2, 2)
    """
    x = array_of(x)
    at = _axis(dim, x.ndim, "unflatten")
    sizes = list(sizes)
    if -1 in sizes:
        sizes[sizes.index(-1)] = x.shape[at] // -math.prod(sizes)
    return _manipulation.reshape(x, (*x.shape[:at], *sizes, *x.shape[at + 1:]))


def _index_add_in_place(x, dim, index, source, *, alpha=1):
    """Adds parts of another array at positions along an axis, in place. Returns the array."""
    at = _axis(dim, x.ndim, "index_add_")
    index = _core.broadcast_view(_core.reshape_view(array_of(index), [-1 if i == at else 1 for i in range(x.ndim)]), source.shape)
    return _scattered(x, at, index, source if alpha == 1 else source * alpha, "add")


def _clamp_in_place(x, min=None, max=None):
    """clip, in place. Returns the array."""
    return _functions.clip(x, min, max, out=x)


def _masked_fill_in_place(x, mask, value):
    """Sets the elements where `mask` is true to a number, in place. Returns the array."""
    x[mask] = value
    return x


def _as(x, other):
    """The array with the dtype of another."""
    return _functions.astype(x, other.dtype, copy=False)


# ---- Methods of functions -------------------------------------------------------------------------------------------

# The functions that are add.reduce and add.accumulate, and the reduction of scatter_nd that is add.at.
_METHODS = {"add": ("sum", "cumulative_sum", "add"), "multiply": ("prod", "cumulative_prod", "mul"), "maximum": ("max", "cumulative_max", "max"),
            "minimum": ("min", "cumulative_min", "min"), "logical_and": ("all", None, None), "logical_or": ("any", None, None)}


def _method_of(name, method, place):
    found = _METHODS.get(name, (None,) * 3)[place]
    if found is None:
        raise NotImplementedError(f"{name}.{method}: not implemented; use a loop over slices, or for add, multiply, maximum and minimum the method of these")
    return found


def _reduce(name: str, x: Values, axis: Any = 0, dtype: Any = None, out: Array | None = None, keepdims: bool = False, **options: Any) -> Array:
    """add.reduce and others: sum, prod, max, min, all, any."""
    options |= {key: value for key, value in (("dtype", dtype), ("out", out)) if value is not None}
    return getattr(_functions, _method_of(name, "reduce", 0))(array_of(x), axis=axis, keepdims=keepdims, **options)


def _accumulate(name: str, x: Values, axis: int = 0) -> Array:
    """add.accumulate and others: cumulative_sum, cumulative_prod, cumulative_max, cumulative_min."""
    return getattr(_functions, _method_of(name, "accumulate", 1))(array_of(x), axis=axis)


def _outer(name: str, x1: Values, x2: Values) -> Array:
    """The function of all pairs of elements of two arrays."""
    x1, x2 = (_creation.asarray(x) for x in arrays_of(x1, x2))
    return _ROWS[name](_manipulation.reshape(x1, x1.shape + (1,) * x2.ndim), x2)


def _at(name: str, x: Array, indices: Any, values: Any) -> None:
    """x[indices] += values and the like in place, where indices may recur."""
    reduction = _method_of(name, "at", 2)
    keys = indices if isinstance(indices, tuple) else (indices,)
    if any(isinstance(one, (slice, types.EllipsisType, types.NoneType)) for one in keys) or any(array_of(one).dtype is _dtypes.bool for one in keys):
        raise NotImplementedError(f"{name}.at: an index that is no integers; use nonzero(mask), or an array of positions for a slice")
    keys = _manipulation.broadcast_arrays(*(_creation.asarray(one, device=x.device) for one in keys))
    places = _ops.stack(*(_functions.where(one < 0, one + n, one) for one, n in zip(keys, x.shape)), axis=-1)
    updates = _manipulation.broadcast_to(_creation.asarray(values, dtype=x.dtype, device=x.device), (*places.shape[:-1], *x.shape[len(keys):]))
    x[...] = _indexing.scatter_nd(x, places, updates, reduction=reduction)


def _reduceat(name: str, x: Values, indices: Values, axis: int = 0) -> Array:
    """Raises NotImplementedError."""
    raise NotImplementedError(f"{name}.reduceat: not implemented; use segment_reduce(x, offsets)")


def _with_methods(name):
    """The function of a binary op, with the methods that NumPy's has. The call costs what the function's does."""
    function = functools.partial(_ops.ROWS[name])
    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = "compute", _ops.ROWS[name].__doc__
    for method, run in (("reduce", _reduce), ("accumulate", _accumulate), ("outer", _outer), ("at", _at), ("reduceat", _reduceat)):
        setattr(function, method, functools.partial(run, name))
    return function


# ---- Tables ---------------------------------------------------------------------------------------------------------

_ROWS = _ops.ROWS
FUNCTIONS = {name: _with_methods(name) for name in (
    "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod", "pow", "maximum", "minimum", "hypot", "atan2", "logaddexp", "logical_and",
    "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal")}
# The same functions by other names.
_SAME = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctan2": "atan2", "arctanh": "atanh", "power": "pow", "mod": "remainder", "true_divide": "divide",
    "invert": "bitwise_invert", "bitwise_not": "bitwise_invert", "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift", "rint": "round",
    "fix": "trunc", "degrees": "rad2deg", "radians": "deg2rad", "mul": "multiply", "sub": "subtract", "div": "divide", "neg": "negative", "eq": "equal",
    "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "sgn": "sign"}
COMPUTE = {name: FUNCTIONS.get(own, _ROWS[own]) for name, own in _SAME.items()}
COMPUTE |= {name: vars(nn)[name] for name in ("relu", "sigmoid", "softmax", "log_softmax", "logsumexp")}
COMPUTE |= {
    "as_tensor": _creation.asarray, "asanyarray": _creation.asarray, "clone": copy, "concatenate": _manipulation.concat, "cat": _manipulation.concat,
    "row_stack": vstack, "permute": _manipulation.permute_dims, "movedim": _manipulation.moveaxis, "swapdims": swapaxes, "unsqueeze": _manipulation.expand_dims,
    "tensor_split": _numeric.array_split, "conjugate": _functions.conj, "clamp": _functions.clip, "trapz": _numeric.trapezoid,
    "topk": _functions.top_k, "mm": _functions.matmul, "bmm": _functions.matmul, "mv": _functions.matmul, "cross": linalg.cross,
    "baddbmm": addmm, "ger": outer, "inverse": linalg.inv, "det": linalg.det, "is_complex": iscomplexobj, "broadcast_tensors": _manipulation.broadcast_arrays, "ndarray": Array, "Tensor": Array,
    "randperm": random.permutation, "manual_seed": random.seed, "array_repr": _printing.array_repr, "array_str": _printing.array_str,
    "float": _dtypes.float32, "single": _dtypes.float32, "double": _dtypes.float64, "float_": _dtypes.float64, "half": _dtypes.float16, "int": _dtypes.int32, "FloatTensor": _dtypes.float32, "DoubleTensor": _dtypes.float64, "IntTensor": _dtypes.int32,
    "LongTensor": _dtypes.int64, "BoolTensor": _dtypes.bool, "special": types.SimpleNamespace(expit=_ROWS["sigmoid"], logsumexp=nn.logsumexp, softmax=nn.softmax, log_softmax=nn.log_softmax, **{
        name: _ROWS[name] for name in ("digamma", "erf", "erfc", "erfinv", "expm1", "log1p", "sinc", "xlogy")}, gammaln=_ROWS["lgamma"]),
    "int_": _dtypes.int64, "long": _dtypes.int64, "intp": _dtypes.int64, "short": _dtypes.int16, "byte": _dtypes.int8, "ubyte": _dtypes.uint8,
    "uint": _dtypes.uint64, "bool_": _dtypes.bool, "cfloat": _dtypes.complex64, "cdouble": _dtypes.complex128, "floating": "real floating",
    "integer": "integral", "signedinteger": "signed integer", "unsignedinteger": "unsigned integer", "complexfloating": "complex floating", "number": "numeric",
    "inexact": ("real floating", "complex floating"), "Inf": math.inf, "NaN": math.nan}
COMPUTE |= {name: value for name, value in list(globals().items())
            if name[0] != "_" and getattr(value, "__module__", None) == __name__ and not isinstance(value, type) and name not in ("Values", "Axis")}
COMPUTE |= {"lib": types.SimpleNamespace(stride_tricks=types.SimpleNamespace(
    as_strided=_as_strided, broadcast_arrays=_manipulation.broadcast_arrays, broadcast_to=_manipulation.broadcast_to, sliding_window_view=sliding_window_view))}
COMPUTE |= {"cuda": cuda, "mgrid": mgrid, "ogrid": ogrid, "r_": r_, "c_": c_, "s_": s_, "index_exp": index_exp}
LINALG = {"cond": _cond, "norm": _linalg_norm, "multi_dot": _multi_dot, "dot": dot, "inner": inner}
NN = {"adaptive_avg_pool2d": _adaptive_avg_pool2d, "avg_pool2d": _avg_pool2d, **{f"conv{count}d": _conv(count) for count in (1, 2, 3)}, "cosine_similarity": _cosine_similarity,
      "kl_div": _kl_div, "l1_loss": _l1_loss, "max_pool2d": _max_pool2d, "mse_loss": _mse_loss, "nll_loss": _nll_loss, "normalize": _normalize, "pad": _pad,
      "scaled_dot_product_attention": _scaled_dot_product_attention}
RANDOM = {"rand": rand, "randn": randn, "randint": randint, "random": _uniform_numbers, "random_sample": _uniform_numbers, "standard_normal": _standard_normal,
          "default_rng": _default_rng, "exponential": _exponential, "lognormal": _lognormal, "multivariate_normal": _multivariate_normal, "NumPyGenerator": NumPyGenerator}
_core.hooks["forms"] = {"round": around, "add": _add, "subtract": _subtract, "divide": _divide}
_core.hooks["with_options"] = _with_options
for _name, _function in (*LINALG.items(), *NN.items(), *RANDOM.items(), *_core.hooks["forms"].items()):
    if _function.__name__[0] == "_":
        _function.__name__ = _function.__qualname__ = _name

# Methods of arrays and of variables of compute.grad.
METHODS = {
    **{name: getattr(COMPUTE[name], "func", COMPUTE[name]) for name in (
        "addcdiv", "addcmul", "addmm", "amax", "amin", "aminmax", "angle", "argwhere", "bmm", "chunk", "clamp", "cummax", "cummin", "cumprod", "cumsum", "diag", "diagonal", "div", "dot", "eq", "exp2",
        "float_power", "fmax", "fmin", "frac", "gather", "ge", "ger", "gt", "histc", "index_add", "index_select", "inner", "is_complex", "is_floating_point", "isneginf", "isposinf", "kthvalue", "ldexp", "le", "lerp", "lt", "mv",
        "vdot",
        "masked_fill", "masked_select", "mm", "mul", "narrow", "ne", "neg", "norm", "numel", "outer", "ptp", "relu", "repeat_interleave", "rot90", "scatter_add", "sgn", "sigmoid", "softmax",
        "sub", "swapaxes", "swapdims", "take_along_dim", "topk", "trace", "unbind", "unflatten", "unique", "unsqueeze")},
    **{name: _ROWS[name] for name in (
        "abs", "add", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_or", "bitwise_xor", "ceil", "copysign", "cos", "cosh", "deg2rad", "digamma", "divide",
        "equal", "erf", "erfc", "erfinv", "floor_divide", "fmod", "greater", "greater_equal", "heaviside", "hypot", "less", "less_equal", "lgamma", "logaddexp", "logical_xor", "negative", "nextafter",
        "not_equal", "rad2deg", "signbit", "sinc", "xlogy", "exp", "expm1", "floor", "isfinite", "isinf", "isnan", "log", "log10", "log1p",
        "log2", "logical_and", "logical_not", "logical_or", "maximum", "minimum", "multiply", "pow", "reciprocal", "remainder", "rsqrt", "sign", "sin", "sinh", "sqrt",
        "square", "subtract", "tan", "tanh", "trunc")},
    **{name: getattr(_functions, name) for name in ("allclose", "argsort", "bincount", "conj", "count_nonzero", "diff", "histogram", "isclose", "matmul", "nonzero", "quantile",
                                                    "searchsorted")},
    **{name: getattr(_numeric, name) for name in ("corrcoef", "cov", "nanmean", "hsplit", "nanmedian", "nanquantile", "nansum", "vsplit")},
    "broadcast_to": _manipulation.broadcast_to, "cross": linalg.cross, "expand_as": _expanded_as, "reshape_as": _shaped_as, "view_as": _shaped_as, "nelement": numel, "ndimension": ndim,
    **{f"new_{name}": _new(getattr(_creation, name)) for name in ("empty", "full", "ones", "zeros")}, "new_tensor": _new(tensor),
    "conjugate": _functions.conj, "repeat": _manipulation.repeat, "take": _indexing.take, "flip": _manipulation.flip, "roll": _manipulation.roll,
    "tile": _tiled, "where": _where, "inverse": linalg.inv, "det": linalg.det, "short": _converted(_dtypes.int16), "tensor_split": _numeric.array_split, "movedim": _manipulation.moveaxis, "tril": _creation.tril, "triu": _creation.triu, "moveaxis": _manipulation.moveaxis,
    "logsumexp": nn.logsumexp, "log_softmax": nn.log_softmax, "round": around, "clone": copy,
    "expand": _expand, "permute": _permute, "t": _t, "dim": ndim, "type_as": _as, "float": _converted(_dtypes.float32),
    "double": _converted(_dtypes.float64), "half": _converted(_dtypes.float16), "bfloat16": _converted(_dtypes.bfloat16), "int": _converted(_dtypes.int32),
    "long": _converted(_dtypes.int64), "bool": _converted(_dtypes.bool), "detach": _detach, "split": _split_method, "element_size": _element_size, "nan_to_num": _numbers_for_nan}
# Methods of arrays alone: those that write, and those that show memory.
ARRAY_METHODS = {
    "sort": _sort_in_place, "fill": _fill, "view": _view, "to": _to, "numpy": _numpy, "cpu": _cpu, "cuda": _cuda, "contiguous": _contiguous, "scatter": _scatter, "stride": _stride, "tobytes": _tobytes,
    "add_": _in_place("add"), "sub_": _in_place("subtract"), "mul_": _in_place("multiply"), "div_": _in_place("divide"), "zero_": _zero_in_place,
    **{f"{name}_": _in_place(name) for name in (
        "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "exp", "expm1", "floor", "floor_divide", "log", "log10", "log1p", "log2", "logical_not", "pow", "reciprocal", "relu",
        "remainder", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc")},
    "neg_": _in_place("negative"), "normal_": _normal_in_place, "uniform_": _uniform_in_place,
    "scatter_": _scatter_in_place, "scatter_add_": _scatter_add_in_place, "index_add_": _index_add_in_place, "index_fill": _index_fill, "type": _functions.astype, "unfold": _unfold, "index_fill_": _index_fill_in_place,
    "fill_": _fill_in_place, "copy_": _copy_in_place, "clamp_": _clamp_in_place, "masked_fill_": _masked_fill_in_place}

# Names that mean something else here, or nothing: what to use.
_HINTS = {
    "compute": {
                "scatter_reduce": 'scatter(x, i, y, axis=..., reduction="add"), "mul", "min" or "max"',
        "index_put": "x[i, j] = y, or scatter_nd", "conv1d": "nn.convolution", "conv2d": "nn.convolution", "conv3d": "nn.convolution",
        "conv_transpose2d": "nn.convolution_transpose", "vectorize": "a function of whole arrays, or compute.expression",
        "frompyfunc": "a function of whole arrays, or compute.expression",
        "apply_over_axes": "the function itself with axis=(...)", "no_grad": "nothing: gradients are recorded inside compute.grad alone; compute.grad.constant(x) is a constant",
        "autograd": "compute.grad", "Generator": "random.Generator", "ufunc": "any function of the package", "matrix": "an array with two axes",
        "bmat": "block", "vmap": "a function of whole arrays, which broadcast", "genfromtxt": "loadtxt", "fromfile": "frombuffer(file.read(), dtype)", "memmap": "asarray(numpy.memmap(...))",
        "nditer": "a function of whole arrays", "object_": "nothing: arrays hold numbers", "str_": "nothing: arrays hold numbers",
        "poly1d": "polyfit and polyval", "shares_memory": "may_share_memory, which compares buffers", "std_mean": "std and mean", "var_mean": "var and mean", "jit": "compute.graph.record",
        "compile": "compute.graph.record", "grad_fn": "compute.grad", "logical_reduce": "all or any",
        "logcumsumexp": "log(cumulative_sum(exp(x - max(x)))) + max(x)", "Parameter": "any array", "char": "nothing: arrays hold numbers",
        "ma": "where(mask, x, 0), with the mask in an array of its own", "recarray": "an array for each field", "datetime64": "nothing: arrays hold numbers, such as seconds in int64",
        "timedelta64": "nothing: arrays hold numbers, such as seconds in int64", "bytes_": "nothing: arrays hold numbers", "exceptions": "numpy.exceptions", "testing": "numpy.testing, which takes arrays of this package", "asmatrix": "an array with two axes",
        "einsum_path": "nothing: operands are contracted from left to right", "dist": "linalg.vector_norm(x - y)",
        "format_float_positional": "f\"{x:.3f}\"", "resize": "reshape, or concat with zeros",
        "packbits": "sum(x.reshape(-1, 8) * 2 ** arange(7, -1, -1), axis=1)", "unpackbits": "(x[..., None] >> arange(7, -1, -1, dtype=uint8)) & 1", "require": "ascontiguousarray",
        "unique_consecutive": "x[concat([asarray([True]), x[1:] != x[:-1]])]", "stft": "not implemented yet"},
    "compute.linalg": {
        "tensorinv": "inv of a reshaped array", "tensorsolve": "solve of reshaped arrays",
        "matrix_exp": "expm"},
    "compute.random": {
        "binomial": "bernoulli, which draws one trial", "beta": "gamma(a) / (gamma(a) + gamma(b))", "poisson": "not implemented",
        "RandomState": "default_rng", "multinomial": "categorical", "laplace": "not implemented"},
    "compute.nn": {
        "Linear": "linear, a function of x, weight and bias",
        "Conv1d": "convolution", "Conv2d": "convolution", "Conv3d": "convolution",
        "conv_transpose2d": "convolution_transpose", "MaxPool2d": "max_pool", "AvgPool2d": "average_pool",
        "ReLU": "relu", "GELU": "gelu", "Sigmoid": "sigmoid", "Softmax": "softmax", "Dropout": "dropout", "LayerNorm": "layer_norm", "BatchNorm2d": "batch_norm",
        "Embedding": "embedding", "Module": "functions of arrays, and lists or dicts of parameters", "Sequential": "functions of arrays", "Parameter": "any array",
        "CrossEntropyLoss": "cross_entropy, and compute.mean of it", "MSELoss": "mse_loss",
        "interpolate": "not implemented", "binary_cross_entropy": "binary_cross_entropy_with_logits",
        "MultiheadAttention": "attention", "LSTM": "not implemented", "tanh": "compute.tanh"},
    "compute.Array": {
        "median": "compute.median(x), the mean of the middle two, where PyTorch takes the lower one",
        "backward": "compute.grad.value_and_gradients, which takes a function", "requires_grad": "compute.grad, whose functions take arrays", "requires_grad_": "compute.grad, whose functions take arrays",
        "grad": "the second result of compute.grad.value_and_gradients", "grad_fn": "compute.grad", "data": "the array itself", "index_put_": "x[i, j] = y",
        "resize": "compute.reshape, or concat with zeros", "resize_": "compute.reshape, or concat with zeros", "base": "nothing: views keep their memory themselves", "ctypes": "__array_interface__",
        "setflags": "nothing: arrays can be written", "flags": "is_contiguous", "put": "compute.put(x, i, y)", "choose": "compute.choose(x, choices)", "compress": "compute.compress(mask, x)",
        "storage": "native_handle", "data_ptr": "native_handle", "retain_grad": "compute.grad, whose functions take arrays", "storage_offset": "native_handle", "is_leaf": "compute.grad, whose functions take arrays", "register_hook": "compute.grad, whose functions take arrays", "dump": "compute.save", "tofile": "compute.save",
        "byteswap": "nothing: elements have the order of the host", "item_": "item", "get": "numpy", "map_": "compute.expression", "apply_": "compute.expression"},
}


def missing(owner: str, name: str) -> AttributeError:
    """The error for an attribute that a module or an array does not have."""
    subject = f"{owner!r} object" if owner == "compute.Array" else f"module {owner!r}"
    hint = _HINTS[owner].get(name)
    if hint is None:
        return AttributeError(f"{subject} has no attribute {name!r}")
    return AttributeError(f"{subject} has no attribute {name!r}" + f"; here it is {hint}")


def offered(names: dict[str, Any]) -> list[str]:
    """What a module offers of its global names: without names that are private, or of other modules of Python."""
    module, listed = names["__name__"], {*names.get("__all__", ()), *LINALG, *NN, *RANDOM}

    def is_own(name, value):
        if isinstance(value, type(math)):
            return value.__name__.startswith("compute.") and module == "compute"
        if module == "compute" or name in listed or not isinstance(value, (type, types.FunctionType)):
            return True
        return value.__module__ == module

    return builtins.sorted(name for name, value in names.items()
                           if (name[0] != "_" or name[:2] == "__") and name != "annotations" and is_own(name, value))


class _Elsewhere:
    """An attribute that arrays do not have, with a message about it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        raise missing("compute.Array", self._name)


def _array_dir(x):
    return [name for name in object.__dir__(x) if name not in _HINTS["compute.Array"]]


def _as_method(name, function):
    if not hasattr(function, "__get__") or type(function).__name__ == "builtin_function_or_method":
        def run(self, *arguments, **options):
            return function(self, *arguments, **options)
        run.__doc__ = function.__doc__
        return _array._named(name, run)
    return _array._named(name, function)


def _install():
    for name, function in METHODS.items():
        method = _as_method(name, function)
        for kind in (Array, grad.Variable):
            if name not in vars(kind):
                setattr(kind, name, method)
    for name, function in ARRAY_METHODS.items():
        setattr(Array, name, _as_method(name, function))
    for name in _HINTS["compute.Array"]:
        if name not in vars(Array):
            setattr(Array, name, _Elsewhere(name))
    for kind in (Array, grad.Variable):
        kind.__divmod__, kind.__rdivmod__ = _array._named("__divmod__", divmod), _array._named("__rdivmod__", _reflected_divmod)
    Array.__dir__ = _array._named("__dir__", _array_dir)
    DType.__call__ = lambda self, x=0: _creation.asarray(x, dtype=self)
    grad.Variable.real, grad.Variable.imag = property(_functions.real), property(_functions.imag)
    for module, names, owner in ((linalg, LINALG, "compute.linalg"), (random, RANDOM, "compute.random"), (nn, NN, "compute.nn")):
        vars(module).update(names)
        module.__getattr__ = functools.partial(_refuse, owner)
    for module in (linalg, random, nn, grad, optim, graph, kernels, expressions):
        module.__dir__ = functools.partial(offered, vars(module))


def _refuse(owner, name):
    raise missing(owner, name)


_install()
