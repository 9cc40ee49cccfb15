# SPDX-License-Identifier: Apache-2.0
"""Names of NumPy and PyTorch: searching, sets and indices. See _names.py."""
from __future__ import annotations

from typing import Any, Iterable, Sequence

from . import _core, _creation, _dtypes, _functions, _indexing, _manipulation, _ops, linalg
from ._core import Array, array_of
from ._creation import arrays_of, is_values
from ._dtypes import INEXACT
from ._errors import renamed
from ._manipulation import _axis, _flat
from ._names_common import Axis, Values, _number_or_array
from ._names_properties import ndim, shape


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
    if axis is None and equal_nan and x.dtype in INEXACT and values.size:
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
    if index.ndim == x.ndim and any(n != m for i, (n, m) in enumerate(zip(index.shape, x.shape)) if i != axis):
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

    PyTorch's select(x, dim, index) is the part of `x` at an index of an axis.

    >>> x = compute.asarray([1.0, 2.0, 3.0])
    >>> compute.select([x > 2, x > 1], [x, -x])
    Array([ 0., -2.,  3.], dtype=float32)
    """
    if isinstance(choicelist, int):  # PyTorch's select(x, dim, index)
        x = array_of(condlist)
        return x[(slice(None),) * _axis(choicelist, x.ndim, "select") + (default,)]
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
        rest = rest // last if found else rest
        found.insert(0, rest % extent)
        last = extent
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


def tril_indices(n: int = 0, k: int = 0, m: int | None = None, **names: Any) -> Any:
    """The indices on and below the `k`-th diagonal of a matrix with `n` rows and `m` columns.

    With PyTorch's `row`, `col` or `offset`, tril_indices(row, col, offset=0) is a matrix with two rows.

    >>> compute.tril_indices(2)
    (Array([0, 1, 1], dtype=int64), Array([0, 0, 1], dtype=int64))
    """
    if names:
        return _index_matrix(True, n, k, **names)
    return tuple(_triangle(True, n, k, n if m is None else m))


def _triangle(is_lower, rows, k, columns):
    """The indices on and below, or on and above, a diagonal. How many there are is known without waiting."""
    def sum_to(n):
        return n * (n + 1) // 2 if n > 0 else 0

    below = k if is_lower else k - 1  # row i has min(max(i + below + 1, 0), columns) elements on and below this diagonal
    count = sum_to(rows + below) - sum_to(below) - sum_to(rows + below - columns) + sum_to(below - columns)
    triangle = _ops.tril if is_lower else _ops.triu
    places = _ops.nonzero(triangle(_creation.ones((rows, columns), dtype=_dtypes.bool), k=k))[0]
    return places[:, :count if is_lower else rows * columns - count]


def _index_matrix(is_lower, n, k, *, offset=0, dtype=None, device=None, **names):
    """The indices of a call with PyTorch's parameters, as a matrix."""
    found = _triangle(is_lower, names.pop("row", n), offset, names.pop("col", k))
    if names:
        name = "tril_indices" if is_lower else "triu_indices"
        raise TypeError(f"{name}() got an unexpected keyword argument {next(iter(names))!r}")
    return _functions.astype(found, dtype or _dtypes.int64, copy=False)


def triu_indices(n: int = 0, k: int = 0, m: int | None = None, **names: Any) -> Any:
    """The indices on and above the `k`-th diagonal of a matrix with `n` rows and `m` columns.

    With PyTorch's `row`, `col` or `offset`, triu_indices(row, col, offset=0) is a matrix with two rows.

    >>> compute.triu_indices(2)
    (Array([0, 0, 1], dtype=int64), Array([0, 1, 1], dtype=int64))
    """
    if names:
        return _index_matrix(False, n, k, **names)
    return tuple(_triangle(False, n, k, n if m is None else m))


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
    if x.is_contiguous:
        x = _core.reshape_view(x, (x.size,))
    x[places if x.ndim == 1 else unravel_index(places, x.shape)] = _number_or_array(values, x)


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


def scatter_add(x: Values, dim: int, index: Values, src: Values) -> Array:
    """PyTorch's scatter_add: compute.scatter along an axis with reduction="add".

    >>> compute.scatter_add([0.0, 0.0], 0, [1, 1], [2.0, 3.0])
    Array([0., 5.], dtype=float32)
    """
    return _indexing.written_along(array_of(x), dim, index, array_of(src), reduce="add")


def index_add(x: Values, dim: int, index: Values, source: Values, *, alpha: Any = 1) -> Array:
    """PyTorch's index_add: `x` with parts of another array, times `alpha`, added at positions along an axis.

    >>> compute.index_add([1.0, 1.0], 0, [1, 1], [2.0, 3.0])
    Array([1., 6.], dtype=float32)
    """
    x, index, source = array_of(x), array_of(index), array_of(source)
    at = _axis(dim, x.ndim, "index_add")
    index = _core.broadcast_view(_core.reshape_view(index, [-1 if i == at else 1 for i in range(x.ndim)]), source.shape)
    return _indexing.scatter(x, index, source if alpha == 1 else source * alpha, axis=at, reduction="add")


def combinations(x: Values, r: int = 2, with_replacement: bool = False) -> Array:
    """The combinations of `r` elements of a vector, one row each.

    >>> compute.combinations([1, 2, 3])
    Array([[1, 2],
           [1, 3],
           [2, 3]], dtype=int64)
    """
    import itertools

    x = array_of(x)
    if r == 2:
        return _ops.stack(*(_ops.take(x, part, axis=0) for part in triu_indices(x.size, 0 if with_replacement else 1)), axis=1)
    found = list((itertools.combinations_with_replacement if with_replacement else itertools.combinations)(range(x.size), r))
    return _indexing.take(x, _core.reshape_view(_creation.asarray(found, dtype=_dtypes.int64, device=x.device), (len(found), r)), axis=0)
