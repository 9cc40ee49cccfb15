# SPDX-License-Identifier: Apache-2.0
"""Names of NumPy and PyTorch: axes, joining and splitting. See _names.py."""
from __future__ import annotations

import builtins
import math
from typing import Any, Sequence

from . import _core, _creation, _dtypes, _functions, _manipulation, _numeric, _ops
from ._core import Array, array_of
from ._creation import arrays_of, is_values
from ._manipulation import _axes, _axis, _flat, _whole
from ._names_common import Axis, Values, _number_or_array
from ._names_indices import flatnonzero
from ._names_properties import ndim


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
    if not isinstance(x, Array):  # a variable of compute.grad: no view, but the elements at these positions
        places = _core.reshape_view(_creation.arange(x.size, device=x.device), x.shape)
        return _ops.take(_flat(x), sliding_window_view(places, sizes, tuple(axes)), axis=0)
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


def as_strided(x: Values, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Array:
    """PyTorch's as_strided: a view of another shape, with strides in elements.

    >>> compute.as_strided([1, 2, 3], (2, 2), (1, 1))
    Array([[1, 2],
           [2, 3]], dtype=int64)
    """
    x = array_of(x)
    return _core.strided_view(x, x.dtype, tuple(size), tuple(stride), (storage_offset or 0) * x.itemsize)


def transpose(x: Values, *axes: Any, dim0: int | None = None, dim1: int | None = None) -> Array:
    """A view with the axes reversed, or in the order of a tuple; of two integers, these two exchanged as in PyTorch.

    >>> compute.transpose(compute.zeros((2, 3, 4)), (1, 2, 0)).shape
    (3, 4, 2)
    """
    x = array_of(x)
    if dim0 is not None or dim1 is not None:
        axes = (*axes, *(one for one in (dim0, dim1) if one is not None))
    if len(axes) == 2:
        return swapaxes(x, *axes)
    if len(axes) > 1:
        raise TypeError(f"transpose: {len(axes)} axes beside x; expected a tuple, or two integers")
    return _manipulation.permute_dims(x, tuple(reversed(range(x.ndim))) if not axes or axes[0] is None else axes[0])


def swapaxes(x: Values, axis1: int | None = None, axis2: int | None = None, **names: int) -> Array:
    """A view with two axes exchanged.

    >>> compute.swapaxes(compute.zeros((2, 3)), 0, 1).shape
    (3, 2)
    """
    if names:  # PyTorch's dim0 and dim1
        return swapaxes(x, names.get("dim0", names.get("axis0", axis1)), names.get("dim1", names.get("axis1", axis2)))
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


def rot90(x: Values, k: int = 1, axes: Sequence[int] = (0, 1), *, dims: Sequence[int] | None = None) -> Array:
    """A view turned `k` times by a right angle, from the first of two axes towards the second.

    >>> compute.rot90([[1, 2], [3, 4]])
    Array([[2, 4],
           [1, 3]], dtype=int64)
    """
    first, second = axes if dims is None else dims
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


def block_diag(*matrices: Values) -> Array:
    """A matrix with matrices along its diagonal, and 0 elsewhere.

    >>> compute.block_diag([[1]], [[2, 3]])
    Array([[1, 0, 0],
           [0, 2, 3]], dtype=int64)
    """
    parts = [atleast_2d(x) for x in arrays_of(*matrices)]
    columns = [x.shape[1] for x in parts]
    if all(isinstance(x, Array) for x in parts) and len({x.dtype for x in parts}) == 1:
        out = _creation.zeros((builtins.sum(x.shape[0] for x in parts), builtins.sum(columns)), dtype=parts[0].dtype, device=parts[0].device)
        row = column = 0
        for x in parts:
            out[row:row + x.shape[0], column:column + x.shape[1]] = x
            row, column = row + x.shape[0], column + x.shape[1]
        return out
    rows = [_manipulation.pad(x, ((0, 0), (builtins.sum(columns[:i]), builtins.sum(columns[i + 1:])))) for i, x in enumerate(parts)]
    return _manipulation.concat(rows, axis=0)


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
