# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors: elements with their positions, and 0 elsewhere.

The positions are on the host. Functions that are not made sparse here get a sparse tensor as a dense one.
"""
from __future__ import annotations

import functools
import math

import compute as cp
import numpy as np


class SparseTensor:
    """positions: of the elements in row-major order, ascending and distinct, an array of NumPy; values: a tensor of them."""

    def __init__(self, positions, values, shape):
        self.positions = positions
        self.values = values
        self.shape = tuple(shape)

    @classmethod
    def of(cls, indices, values, shape):
        """The tensor with values at indices [n, rank], which may recur: then their values are added."""
        from .variable import convert_to_tensor

        indices = np.asarray(indices, np.int64).reshape(-1, len(shape))
        return cls.summed(_flat(indices.T, shape), convert_to_tensor(values), shape)

    @classmethod
    def summed(cls, positions, values, shape):
        """The tensor with values at positions in any order, which may recur: then their values are added."""
        if len(positions) > 1 and not (np.diff(positions) > 0).all():
            distinct, places = np.unique(positions, return_inverse=True)
            if len(distinct) == len(positions):
                values = cp.take(values, cp.asarray(np.argsort(positions)), axis=0)
            else:
                zeros = cp.zeros((len(distinct),), dtype=values.dtype)
                values = cp.scatter_nd(zeros, cp.asarray(places.reshape(-1, 1)), values, reduction="add")
            positions = distinct
        return cls(positions, values, shape)

    @classmethod
    def from_dense(cls, x):
        """The elements other than 0 of a tensor."""
        from .variable import convert_to_numpy, convert_to_tensor

        x = convert_to_tensor(x)
        positions = np.flatnonzero(convert_to_numpy(x))
        return cls(positions, _taken(x, positions), x.shape)

    dtype = property(lambda self: self.values.dtype)
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))
    indices = property(lambda self: np.stack(self.places(), axis=-1) if self.ndim else np.zeros((len(self.positions), 0), int))

    def places(self):
        """The indices along each axis."""
        return np.unravel_index(self.positions, self.shape)

    def dense(self):
        zeros = cp.zeros((self.size,), dtype=self.dtype)
        if len(self.positions):
            zeros = cp.scatter_nd(zeros, cp.asarray(self.positions.reshape(-1, 1)), self.values)
        return cp.reshape(zeros, self.shape)

    def at(self, positions):
        """The values at positions: 0 where none is listed."""
        if positions is self.positions:
            return self.values
        found = np.minimum(np.searchsorted(self.positions, positions), max(len(self.positions) - 1, 0))
        is_listed = self.positions[found] == positions if len(self.positions) else np.zeros(len(positions), bool)
        padded = cp.concat([self.values, cp.zeros((1,), dtype=self.dtype)])
        return cp.take(padded, cp.asarray(np.where(is_listed, found, len(self.positions))), axis=0)

    def with_values(self, values):
        return SparseTensor(self.positions, values, self.shape)

    def with_shape(self, shape):
        """The same elements in row-major order in another shape."""
        return SparseTensor(self.positions, self.values, shape)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.dense(), dtype=dtype)

    def __repr__(self):
        return f"SparseTensor(shape={self.shape}, indices={self.indices.tolist()}, values={self.values!r})"


def _flat(places, shape):
    """The positions of indices along each axis."""
    return np.ravel_multi_index(tuple(places), shape) if shape else np.zeros(np.shape(places)[-1], np.int64)


def _taken(x, positions):
    return cp.take(cp.reshape(x, (-1,)), cp.asarray(positions), axis=0)


def _is(*xs):
    return all(isinstance(x, SparseTensor) for x in xs)


def _extents(x):
    return tuple(x.shape) if hasattr(x, "shape") else np.shape(x)


# ---- Functions with a sparse result ----------------------------------------------------------------------------------


def elementwise(function):
    """A function of one tensor that keeps 0."""
    @functools.wraps(function)
    def run(x, *args, **kwargs):
        return x.with_values(function(x.values, *args, **kwargs)) if _is(x) else function(x, *args, **kwargs)

    return run


def union(function):
    """A function of two tensors that is 0 where both are."""
    @functools.wraps(function)
    def run(x1, x2):
        if not _is(x1, x2) or x1.shape != x2.shape:
            return function(x1, x2)
        positions = x1.positions if np.array_equal(x1.positions, x2.positions) else np.union1d(x1.positions, x2.positions)
        return SparseTensor(positions, function(x1.at(positions), x2.at(positions)), x1.shape)

    return run


def _dense_at(x, sparse):
    """The elements of a dense tensor at the positions of a sparse one, to whose shape it broadcasts; else None."""
    from .variable import convert_to_tensor

    if _extents(x) == ():
        return x
    x = convert_to_tensor(x)
    if np.broadcast_shapes(tuple(x.shape), sparse.shape) != sparse.shape:
        return None
    return _taken(cp.broadcast_to(x, sparse.shape), sparse.positions)


def intersection(function):
    """A product, which is 0 where one of the tensors is."""
    @functools.wraps(function)
    def run(x1, x2):
        if _is(x1, x2):
            if x1.shape != x2.shape:
                return function(x1, x2)
            positions = np.intersect1d(x1.positions, x2.positions, assume_unique=True)
            return SparseTensor(positions, function(x1.at(positions), x2.at(positions)), x1.shape)
        sparse, other = (x1, x2) if _is(x1) else (x2, x1)
        values = _dense_at(other, sparse) if _is(sparse) else None
        if values is None:
            return function(x1, x2)
        return sparse.with_values(function(sparse.values, values) if sparse is x1 else function(values, sparse.values))

    return run


def division(function):
    """A quotient, whose result is sparse where the divisor is dense. Elements that are divided by 0 or NaN are added."""
    @functools.wraps(function)
    def run(x1, x2):
        from .variable import convert_to_numpy, convert_to_tensor

        if not _is(x1) or _is(x2):
            return function(x1, x2)
        if _extents(x2) == ():
            return x1.with_values(function(x1.values, x2))
        x2 = convert_to_tensor(x2)
        if np.broadcast_shapes(tuple(x2.shape), x1.shape) != x1.shape:
            return function(x1, x2)
        divisors = convert_to_numpy(cp.broadcast_to(x2, x1.shape))
        positions = np.union1d(x1.positions, np.flatnonzero((divisors == 0) | (divisors != divisors)))
        return SparseTensor(positions, function(x1.at(positions), _taken(cp.broadcast_to(x2, x1.shape), positions)), x1.shape)

    return run


def sum_of(x, axis, keepdims, dtype):
    """The sum along axes, None for all."""
    axes = range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    axes = {one % x.ndim for one in axes}
    shape = [1 if i in axes else n for i, n in enumerate(x.shape)]
    places = [np.zeros_like(place) if i in axes else place for i, place in enumerate(x.places())]
    found = SparseTensor.summed(_flat(places, shape), cp.astype(x.values, dtype, copy=False), shape)
    return found if keepdims else found.with_shape([n for i, n in enumerate(shape) if i not in axes])


def transposed(x, axes):
    axes = list(range(x.ndim))[::-1] if axes is None else [one % x.ndim for one in axes]
    places, shape = x.places(), [x.shape[one] for one in axes]
    return SparseTensor.summed(_flat([places[one] for one in axes], shape), x.values, shape)


def concatenated(xs, axis):
    axis %= xs[0].ndim
    shape = list(xs[0].shape)
    shape[axis] = sum(x.shape[axis] for x in xs)
    start, positions = 0, []
    for x in xs:
        places = list(x.places())
        places[axis] = places[axis] + start
        positions.append(_flat(places, shape))
        start += x.shape[axis]
    return SparseTensor.summed(np.concatenate(positions), cp.concat([x.values for x in xs]), shape)


def one_hot(x, count, axis, dtype):
    """Classes, of which those below 0 or beyond the last are no class."""
    x = np.asarray(x)
    axis = axis % (x.ndim + 1)
    shape = [*x.shape[:axis], count, *x.shape[axis:]]
    listed = np.nonzero((x >= 0) & (x < count))
    places = [*listed[:axis], x[listed], *listed[axis:]]
    return SparseTensor.summed(_flat(places, shape), cp.ones((len(listed[0]),), dtype=dtype), shape)


def flags(x, axis, dtype):
    """1 where an element along the axis is listed."""
    found = sum_of(x, axis, False, cp.int32)
    return found.with_values(cp.ones((len(found.positions),), dtype=dtype))


def bincount(x, weights, minlength, count_dtype):
    """Counts of the listed elements in each row of [..., n]."""
    values = np.asarray(x.values)
    length = max(int(minlength or 0), int(values.max(initial=-1)) + 1)
    rows = x.positions // x.shape[-1] if x.ndim > 1 else np.zeros_like(x.positions)
    if weights is None:
        weights = cp.ones((len(values),), dtype=count_dtype)
    else:
        weights = weights.at(x.positions) if _is(weights) else _taken(weights, x.positions)
    return SparseTensor.summed(rows * length + values, weights, (*x.shape[:-1], length))
