# SPDX-License-Identifier: Apache-2.0
"""Names of NumPy and PyTorch: products, polynomials and networks. See _names.py."""
from __future__ import annotations

import builtins
import math
from typing import Any, Sequence

from . import _core, _creation, _dtypes, _functions, _indexing, _manipulation, _numeric, _ops, grad, linalg, nn
from ._core import Array, DType, array_of
from ._creation import arrays_of
from ._dtypes import INEXACT
from ._elementwise import _computed, _inexact
from ._errors import renamed
from ._manipulation import _axes, _axis, _flat
from ._names_axes import append, atleast_1d
from ._names_common import Values
from ._names_indices import flatnonzero
from ._names_properties import ndim


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
    return linalg.outer(*(x if getattr(x, "ndim", 0) == 1 else _flat(x) for x in (x1, x2)))


def vdot(x1: Values, x2: Values) -> Array:
    """The sum of the products of the elements of two flattened arrays, of which the first is conjugated.

    >>> compute.vdot([1j], [1j])
    Array(1.+0.j, dtype=complex64)
    """
    x1, x2 = arrays_of(x1, x2)
    return _functions.vecdot(_flat(x1), _flat(x2))


def addmm(c: Values, a: Values, b: Values, *, beta: float = 1.0, alpha: float = 1.0) -> Array:
    """linalg.gemm: beta c + alpha a b, where c broadcasts.

    >>> compute.addmm(compute.eye(2), compute.ones((2, 1)), compute.ones((1, 2)))
    Array([[2., 1.],
           [1., 2.]], dtype=float32)
    """
    c, a, b = arrays_of(c, a, b)
    if alpha == beta == 1 and type(c) is Array and c.shape == b.shape[-1:] and c.dtype is a.dtype is b.dtype in _dtypes.FLOATS and a.ndim == b.ndim == 2:
        return _ops.affine(a, b, c)
    if getattr(c, "ndim", 0) < 2:
        return _ops.matmul(a, b) * alpha + c * beta
    return linalg.gemm(c, a, b, alpha=alpha, beta=beta)


def cdist(x1: Values, x2: Values, p: float = 2.0) -> Array:
    """The distances of the rows of matrices `x1` from those of `x2`: the norms of their differences, of the order `p`.

    >>> compute.cdist([[0.0, 0.0]], [[3.0, 4.0], [0.0, 1.0]])
    Array([[5., 1.]], dtype=float32)
    """
    x1, x2 = (_inexact(x) for x in arrays_of(x1, x2))
    if (isinstance(x1, grad.Variable) or isinstance(x2, grad.Variable)) and p == 2 and x1.dtype is x2.dtype in (_dtypes.float32, _dtypes.float64) and x1.size and x2.size:
        return grad._record("cdist", cdist, [x1, x2], {})
    are_floats = isinstance(x1, Array) and isinstance(x2, Array) and x1.dtype is x2.dtype in (_dtypes.float32, _dtypes.float64)
    if are_floats and x2.device.name == "cpu":  # which reads rows of numbers for neighbouring distances
        wide = _dtypes.float64 if p == 2 else x2.dtype
        x2 = _manipulation.matrix_transpose(_ops.cast(_manipulation.matrix_transpose(x2), dtype=wide))
        if p == 2 and x1.dtype is _dtypes.float32:
            x1 = _manipulation.expand_dims(_ops.cast(x1, dtype=wide), -2)
            return linalg._DISTANCE_OF_DOUBLES([x1, _manipulation.expand_dims(x2, -3)], (), (builtins.max(x1.ndim, x2.ndim + 1) - 1,), False)
    x1, x2 = _manipulation.expand_dims(x1, -2), _manipulation.expand_dims(x2, -3)
    if are_floats and x1.size and x2.size and p in (1, 2, math.inf):  # without an array of the differences
        return linalg._distances(x1, x2) if p == 2 else linalg._DIFFERENCE.reduce("sum" if p == 1 else "max", x1, x2, axis=-1)
    return linalg.vector_norm(x1 - x2, axis=-1, ord=p)


def _cond(x: Values, p: Any = None) -> Array:
    """The condition number of matrices: the norm, 2 unless `p` says another one, times that of the inverse.

    It is infinite for singular matrices.

    >>> compute.linalg.cond([[2.0, 0.0], [0.0, 4.0]])
    Array(2., dtype=float32)
    """
    x = _inexact(array_of(x))
    if p in (None, 2, -2):
        values = linalg.svdvals(x)
        greatest, least = values[..., 0], values[..., -1]
        found = least / greatest if p == -2 else greatest / least
        return _ops.where(_ops.equal(greatest, 0), math.inf, found)
    singular = _ops.equal(linalg.slogdet(x).sign, 0)
    regular = _ops.where(singular[..., None, None], _creation.eye(x.shape[-1], dtype=x.dtype, device=x.device), x)
    found = linalg.matrix_norm(x, ord=p) * linalg.matrix_norm(linalg.inv(regular), ord=p)
    return _ops.where(singular, math.inf, found)


def _on_axes(name, x, axis1, axis2):
    x = array_of(x)
    if x.ndim == 2 and axis1 == 0 and axis2 == 1:
        return x
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
    """The product of matrices, in the order that takes the fewest multiplications.

    >>> compute.linalg.multi_dot([compute.ones((1, 2)), compute.ones((2, 3)), compute.ones((3, 1))])
    Array([[6.]], dtype=float32)
    """
    arrays = arrays_of(*arrays)
    extents = [x.shape[-2] if x.ndim > 1 else x.size if i else 1 for i, x in enumerate(arrays)]
    extents.append(arrays[-1].shape[-1] if arrays[-1].ndim > 1 else 1)
    # Of the product of the matrices [i, j): the multiplications, and where the last of them divides it.
    costs = {(i, i + 1): (0, i) for i in range(len(arrays))}
    for length in range(2, len(arrays) + 1):
        for i in range(len(arrays) - length + 1):
            j = i + length
            costs[i, j] = builtins.min(((costs[i, k][0] + costs[k, j][0] + extents[i] * extents[k] * extents[j], k)
                                        for k in range(j - 1, i, -1)), key=lambda found: found[0])

    def product(i, j):
        k = costs[i, j][1]
        return arrays[i] if j == i + 1 else _ops.matmul(product(i, k), product(k, j))
    return product(0, len(arrays))


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
    result = _dtypes.DEFAULT_FLOAT if x.dtype not in INEXACT else x.dtype
    result = _dtypes.promote(result, y.dtype) if y.dtype in INEXACT else result
    dtype = _dtypes.float64 if _creation.has_float64(x.device) else _dtypes.float32
    x, y = (_ops.cast(_computed(one), dtype=dtype) for one in (x, y))
    columns = [_creation.ones_like(x)]
    for _ in range(deg):
        columns.insert(0, columns[0] * x)
    if w is not None:
        w = _ops.cast(_computed(w), dtype=dtype)
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


def logdet(x: Values) -> Array:
    """The logarithm of the determinant of matrices; NaN where it is negative.

    >>> compute.logdet([[1.0, 0.0], [0.0, 1.0]])
    Array(0., dtype=float32)
    """
    sign, size = linalg.slogdet(_inexact(array_of(x)))
    return _functions.where(sign < 0, math.nan, size)


def _solve_triangular(a: Values, b: Values, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Array:
    """PyTorch's solve_triangular: x with a x = b, or x a = b unless `left`, for a triangular matrix.

    >>> compute.linalg.solve_triangular([[2.0]], [[4.0]], upper=True)
    Array([[2.]], dtype=float32)
    """
    a, b = (_inexact(x) for x in arrays_of(a, b))
    if not left:
        return _solve_triangular(a.mT, b.mT, upper=not upper, unitriangular=unitriangular).mT
    return linalg.triangular_solve(a, b, upper=upper, unit_diagonal=unitriangular)


def cumulative_trapezoid(y: Values, x: Values | None = None, *, dx: float = 1.0, dim: int = -1) -> Array:
    """The integrals up to each position but the first along an axis, by the trapezoidal rule.

    >>> compute.cumulative_trapezoid([1.0, 3.0, 5.0])
    Array([2., 6.], dtype=float32)
    """
    y = _inexact(array_of(y))
    before = (slice(None),) * _axis(dim, y.ndim, "cumulative_trapezoid")
    means = (y[before + (slice(1, None),)] + y[before + (slice(None, -1),)]) * 0.5
    return _functions.cumulative_sum(means * (dx if x is None else _functions.diff(array_of(x), axis=dim)), axis=dim)


# ---- Networks -------------------------------------------------------------------------------------------------------


def _conv(count):
    def run(input: Values, weight: Values, bias: Values | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Array:
        return nn.convolution(input, weight, bias, strides=stride, dilations=dilation, padding=padding, groups=groups)
    run.__doc__ = f"convolution over {count} spatial ax{'i' if count == 1 else 'e'}s."
    run.__name__ = run.__qualname__ = f"conv{count}d"
    return run


def _max_pool2d(input: Values, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False) -> Array:
    """max_pool.

    >>> compute.nn.max_pool2d(compute.ones((1, 1, 4, 4)), 2).shape
    (1, 1, 2, 2)
    """
    if dilation not in (1, (1, 1)) or ceil_mode:
        raise NotImplementedError("max_pool2d: dilation and ceil_mode; use pad")
    return nn.max_pool(input, kernel_size, strides=stride, padding=padding)


def _avg_pool2d(input: Values, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True) -> Array:
    """average_pool, where zeros in the padding count unless `count_include_pad` is false.

    >>> compute.nn.avg_pool2d(compute.ones((1, 1, 2, 2)), 2, padding=1)[0, 0]
    Array([[0.25, 0.25],
           [0.25, 0.25]], dtype=float32)
    """
    x = array_of(input)
    if ceil_mode:
        raise NotImplementedError("avg_pool2d: ceil_mode; use pad")
    return nn._pool(_ops.average_pool, x, kernel_size, stride, padding, count_include_pad=int(count_include_pad))


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


def _mse_loss(input: Values, target: Values, reduction: str = "mean") -> Array:
    """The mean, the sum, or with "none" each of the squares of differences.

    >>> compute.nn.mse_loss([1.0, 5.0], [1.0, 3.0])
    Array(2., dtype=float32)
    """
    return _loss(nn.squared_difference(*arrays_of(input, target)), reduction)


def _l1_loss(input: Values, target: Values, reduction: str = "mean") -> Array:
    """The mean, the sum, or with "none" each of the distances.

    >>> compute.nn.l1_loss([1.0, 5.0], [1.0, 3.0])
    Array(1., dtype=float32)
    """
    return _loss(_ops.abs(_ops.subtract(*arrays_of(input, target))), reduction)


def _nll_loss(input: Values, target: Values, weight: Values | str | None = None, ignore_index: int = -100, reduction: str = "mean") -> Array:
    """The mean, the sum, or with "none" each of the negative logarithms `x` of the probabilities of the classes `target`, along axis 1.

    The mean is over the targets that are not `ignore_index`; with `weight`, one number for each class, it is weighted.

    >>> compute.nn.nll_loss([[-1.0, -2.0], [-3.0, -4.0]], [1, 0])
    Array(2.5, dtype=float32)
    """
    if isinstance(weight, str):
        weight, reduction = None, weight
    x, target = array_of(input), array_of(target)
    axis = 1 if x.ndim > 1 else 0
    kept = _ops.not_equal(target, ignore_index)
    places = _manipulation.expand_dims(_functions.where(kept, target, 0), axis)
    share = _ops.cast(kept, dtype=x.dtype) if weight is None else _functions.where(kept, _ops.take(array_of(weight), _functions.where(kept, target, 0), axis=0), 0)
    losses = -share * _manipulation.squeeze(_indexing.take_along_axis(x, places, axis=axis), axis)
    return _loss(losses, reduction) if reduction != "mean" else _functions.sum(losses) / _functions.sum(share)


def _kl_div(input: Values, target: Values, reduction: str = "mean", *, log_target: bool = False) -> Array:
    """The divergences of probabilities `target` from those with the logarithms `x`; "batchmean" is the sum over the extent of the first axis.

    With `log_target`, `target` has logarithms, too.

    >>> compute.nn.kl_div([[0.0, 0.0]], [[1.0, 1.0]], reduction="batchmean")
    Array(0., dtype=float32)
    """
    x, target = arrays_of(input, target)
    return _loss(_ops.exp(target) * (target - x) if log_target else _ops.xlogy(target, target) - target * x, reduction)


def _normalize(input: Values, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Array:
    """Vectors along an axis over their norms.

    >>> compute.nn.normalize([[3.0, 4.0]])
    Array([[0.6, 0.8]], dtype=float32)
    """
    x = array_of(input)
    return x / _ops.maximum(linalg.vector_norm(x, axis=dim, ord=p, keepdims=True), eps)


def _cosine_similarity(x1: Values, x2: Values, dim: int = 1, eps: float = 1e-8) -> Array:
    """The cosines of the angles of vectors along an axis.

    >>> compute.nn.cosine_similarity([[3.0, 4.0]], [[4.0, 3.0]])
    Array([0.96], dtype=float32)
    """
    return _functions.sum(_ops.multiply(*(_normalize(x, dim=dim, eps=eps) for x in arrays_of(x1, x2))), axis=dim)


_PAD_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def _pad(input: Values, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Array:
    """compute.pad, where `pad` has the widths in front of and behind the last axis, then those of the axis before, and so on.

    >>> compute.nn.pad([[1, 2]], (1, 0))
    Array([[0, 1, 2]], dtype=int64)
    """
    x = array_of(input)
    widths = [(0, 0)] * (x.ndim - len(pad) // 2) + list(zip(pad[::2], pad[1::2]))[::-1]
    return _manipulation.pad(x, widths, mode=_PAD_MODES.get(mode, mode), constant_values=value or 0)
