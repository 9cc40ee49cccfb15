# SPDX-License-Identifier: Apache-2.0
"""The extension `linalg` of the standard: decompositions, solvers, products, norms, diagonals.

Decompositions compute each matrix of a batch [..., m, n]; integers become numbers of the default dtype. A device without
them runs them on the host, unless COMPUTE_FALLBACK is strict. Matrices with an infinity or NaN give NaN. Where there is
no result, as for a singular matrix in `inv`, using the result raises NumericalError, which names the matrix.
"""
from __future__ import annotations

import builtins
import functools
import math
from collections import namedtuple

from . import _core, _creation, _dtypes, _ops, grad
from ._core import array_of as _array_of
from ._creation import arrays_of as _arrays_of
from ._elementwise import _inexact
from ._errors import renamed as _renamed, resolved as _resolved
from ._functions import matmul, tensordot, vecdot
from ._manipulation import _axes, _whole, broadcast_shapes, matrix_transpose
from .expressions import expression as _expression

__all__ = ["cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "expm", "gemm", "inv", "lstsq", "lu", "matmul",
           "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd",
           "svdvals", "tensordot", "trace", "triangular_solve", "vecdot", "vector_norm"]


def _both_inexact(x1, x2):
    return map(_inexact, _arrays_of(x1, x2))


def _is_upper(function, upper, names):
    """Whether the upper triangle is read; NumPy says it by UPLO."""
    if names.get("UPLO") in ("L", "U"):
        upper = names.pop("UPLO") == "U"
    return builtins.bool(_resolved(function, names, {"upper": upper})["upper"] if names else upper)


def _matrices(x, name):
    x = _array_of(x)
    if x.ndim < 2:
        raise ValueError(f"{name}: an array with {x.ndim} axes is no matrix")
    return x


# ---- Decompositions -------------------------------------------------------------------------------------------------

EigResult = namedtuple("EigResult", ["eigenvalues", "eigenvectors"])
EighResult = namedtuple("EighResult", ["eigenvalues", "eigenvectors"])
LstsqResult = namedtuple("LstsqResult", ["solution", "residuals", "rank", "singular_values"])
LUResult = namedtuple("LUResult", ["LU", "pivots"])
QRResult = namedtuple("QRResult", ["Q", "R"])
SlogdetResult = namedtuple("SlogdetResult", ["sign", "logabsdet"])
SVDResult = namedtuple("SVDResult", ["U", "S", "Vh"])


def cholesky(x, /, *, upper=False):
    """The lower triangular L with x = L L^H, of Hermitian positive definite matrices; with `upper` the U with x = U^H U.

    >>> compute.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]])
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    return _ops.cholesky(_inexact(x), upper=builtins.bool(upper))


def lu(x, /):
    """The factors of matrices with exchanged rows: U is the upper triangle, and L is below it, with a diagonal of 1.

    Row i was exchanged with row pivots[i], in order.

    >>> compute.linalg.lu([[1.0, 2.0], [2.0, 2.0]])
    LUResult(LU=Array([[2. , 2. ],
           [0.5, 1. ]], dtype=float32), pivots=Array([1, 1], dtype=int64))
    """
    return LUResult(*_ops.lu(_inexact(x)))


def qr(x, /, mode="reduced"):
    """x = Q R, with orthonormal columns in Q and an upper triangular R. With mode="complete", Q is square.

    >>> compute.linalg.qr([[1.0, 0.0], [0.0, 2.0]]).R.shape
    (2, 2)
    """
    return QRResult(*_ops.qr(_inexact(x), mode=mode))


def eigh(x, /, *, upper=False, **names):
    """The eigenvalues of Hermitian matrices, ascending, and orthonormal eigenvectors as columns. Reads one triangle.

    >>> compute.linalg.eigh([[2.0, 0.0], [0.0, 1.0]]).eigenvalues
    Array([1., 2.], dtype=float32)
    """
    return EighResult(*_ops.eigh(_inexact(x), upper=_is_upper(eigh, upper, names)))


def eigvalsh(x, /, *, upper=False, **names):
    """The eigenvalues of Hermitian matrices, ascending. Reads one triangle.

    >>> compute.linalg.eigvalsh([[2.0, 0.0], [0.0, 1.0]])
    Array([1., 2.], dtype=float32)
    """
    return _ops.eigvalsh(_inexact(x), upper=_is_upper(eigvalsh, upper, names))


def eig(x, /):
    """The eigenvalues of square matrices and, as columns of norm 1, right eigenvectors. Both are complex.

    >>> compute.linalg.eig([[2.0, 0.0], [0.0, 1.0]]).eigenvalues
    Array([2.+0.j, 1.+0.j], dtype=complex64)
    """
    return EigResult(*_ops.eig(_inexact(x)))


def eigvals(x, /):
    """The eigenvalues of square matrices, which are complex.

    >>> compute.linalg.eigvals([[2.0, 0.0], [0.0, 1.0]])
    Array([2.+0.j, 1.+0.j], dtype=complex64)
    """
    return _ops.eigvals(_inexact(x))


def svd(x, /, full_matrices=True, **names):
    """x = U diag(S) Vh, with orthonormal columns in U and rows in Vh, and descending S.

    U and Vh are square; without `full_matrices`, they have as many columns and rows as there are values. With NumPy's
    `compute_uv` false, svdvals.

    >>> compute.linalg.svd([[0.0, 2.0], [1.0, 0.0]]).S
    Array([2., 1.], dtype=float32)
    """
    if not names.pop("compute_uv", True):
        return svdvals(x)
    if names:
        return _renamed(svd, names, x, full_matrices=full_matrices)
    return SVDResult(*_ops.svd(_inexact(x), full_matrices=builtins.bool(full_matrices)))


def svdvals(x, /):
    """The singular values, descending.

    >>> compute.linalg.svdvals([[0.0, 2.0], [1.0, 0.0]])
    Array([2., 1.], dtype=float32)
    """
    return _ops.svdvals(_inexact(x))


# ---- Solvers --------------------------------------------------------------------------------------------------------


def solve(x1, x2, /):
    """The solution of x1 y = x2 for square matrices x1. x2 is a vector, or has matrices.

    >>> compute.linalg.solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 2.0])
    Array([1. , 0.5], dtype=float32)
    """
    return _ops.solve(*_both_inexact(x1, x2))


def triangular_solve(x1, x2, /, *, upper=False, unit_diagonal=False):
    """The solution of x1 y = x2 for lower triangular matrices x1, or upper ones. Reads that triangle alone.

    With `unit_diagonal` the diagonal counts as 1. A 0 on the diagonal gives infinities and NaN.

    >>> compute.linalg.triangular_solve([[2.0, 0.0], [1.0, 4.0]], [2.0, 5.0])
    Array([1., 1.], dtype=float32)
    """
    return _ops.triangular_solve(*_both_inexact(x1, x2), upper=builtins.bool(upper), unit_diagonal=builtins.bool(unit_diagonal))


def lstsq(x1, x2, /, rtol=None, **names):
    """The least-squares solution of x1 y = x2 that has the least norm.

    Returns it with the sums of squares of what is left of each column, the rank of x1 and its singular values. Singular
    values up to `rtol` times the greatest count as 0.

    >>> compute.linalg.lstsq([[1.0], [1.0]], [1.0, 3.0]).solution
    Array([2.], dtype=float32)
    """
    if names:
        return _renamed(lstsq, names, x1, x2, rtol=rtol)
    x1, x2 = _both_inexact(x1, x2)
    return LstsqResult(*_ops.lstsq(x1, x2, *_tolerance(rtol, x1)))


def inv(x, /):
    """The inverses of square matrices.

    >>> compute.linalg.inv([[1.0, 2.0], [0.0, 4.0]])
    Array([[ 1.  , -0.5 ],
           [ 0.  ,  0.25]], dtype=float32)
    """
    return _ops.inv(_inexact(x))


def pinv(x, /, rtol=None, **names):
    """The Moore-Penrose inverses. Singular values up to `rtol` times the greatest count as 0.

    >>> compute.linalg.pinv([[2.0, 0.0], [0.0, 0.0]])
    Array([[0.5, 0. ],
           [0. , 0. ]], dtype=float32)
    """
    if names:
        return _renamed(pinv, names, x, rtol=rtol)
    x = _inexact(x)
    return _ops.pinv(x, *_tolerance(rtol, x))


def _tolerance(rtol, x):
    """The argument `rtol` as inputs of an op."""
    if rtol is None:
        return ()
    if isinstance(rtol, (_core.Array, grad.Variable)):
        return (rtol,)
    return (_creation.asarray(rtol, dtype=_dtypes.float64 if x.dtype in (_dtypes.float64, _dtypes.complex128) else _dtypes.float32, device=x.device),)


def det(x, /):
    """The determinants of square matrices.

    >>> compute.linalg.det([[2.0, 1.0], [0.0, 4.0]])
    Array(8., dtype=float32)
    """
    return _ops.det(_inexact(x))


def slogdet(x, /):
    """The signs of determinants, and the logarithms of their absolute values.

    >>> compute.linalg.slogdet([[1.0, 0.0], [0.0, -1.0]])
    SlogdetResult(sign=Array(-1., dtype=float32), logabsdet=Array(0., dtype=float32))
    """
    return SlogdetResult(*_ops.slogdet(_inexact(x)))


def matrix_rank(x, /, *, rtol=None):
    """How many singular values exceed `rtol` times the greatest.

    >>> compute.linalg.matrix_rank([[1.0, 1.0], [1.0, 1.0]])
    Array(1, dtype=int64)
    """
    x = _inexact(x)
    return _ops.matrix_rank(x, *_tolerance(rtol, x))


def expm(x, /):
    """The exponentials of square matrices.

    >>> compute.linalg.expm([[0.0, 1.0], [0.0, 0.0]])
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    return _ops.expm(_inexact(x))


# ---- Products -------------------------------------------------------------------------------------------------------


def outer(x1, x2, /):
    """The products of each element of the vector `x1` with each of the vector `x2`.

    >>> compute.linalg.outer(compute.asarray([1, 2]), [3, 4])
    Array([[3, 4],
           [6, 8]], dtype=int64)
    """
    x1, x2 = _arrays_of(x1, x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"outer: the arrays have {x1.ndim} and {x2.ndim} axes, not one")
    return x1[:, None] * x2


_CROSS = _expression("a * y - b * x; b * z - c * y; c * x - a * z", "c", "a", "b", "z", "x", "y").evaluator()
_CROSS_DTYPES = _dtypes.INTEGERS + tuple(_dtypes.INEXACT)


def cross(x1, x2, /, *, axis=-1, **names):
    """The cross products of vectors of 3 elements along an axis.

    >>> compute.linalg.cross(compute.asarray([1, 0, 0]), [0, 1, 0])
    Array([0, 0, 1], dtype=int64)
    """
    if names:
        return _renamed(cross, names, x1, x2, axis=axis)
    x1, x2 = _arrays_of(x1, x2)
    axis, rank = _whole(axis, "cross"), builtins.min(x1.ndim, x2.ndim)
    if not -rank <= axis < 0 and not (x1.ndim == x2.ndim and 0 <= axis < rank):
        raise IndexError(f"cross: axis {axis} is out of range for {rank} axes")
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(f"cross: the axis has the extents {x1.shape[axis]} and {x2.shape[axis]}; expected 3")
    at = axis if axis < 0 else axis - x1.ndim
    a, b = (_thirds(x, at) for x in (x1, x2))
    if type(x1) is type(x2) is _core.Array and x1.dtype is x2.dtype in _CROSS_DTYPES and x1.device is x2.device:
        out = _core.empty(x1.shape if x1.shape == x2.shape else broadcast_shapes(x1.shape, x2.shape), x1.dtype, x1.device)
        _CROSS([*a, *b], (), tuple(_thirds(out, at)))  # in one pass
        return out
    return _ops.stack(*[a[i] * b[j] - a[j] * b[i] for i, j in ((1, 2), (2, 0), (0, 1))], axis=at)


def _thirds(x, axis):
    """The three parts along a negative axis, views."""
    behind = (slice(None),) * (-1 - axis)
    return [x[(..., i, *behind)] for i in range(3)]


def matrix_power(x, n, /):
    """The matrices of `x` multiplied by themselves `n` times. Negative powers are those of the inverses.

    Raises ValueError for matrices that are not square.

    >>> compute.linalg.matrix_power([[2.0, 0.0], [0.0, 3.0]], 2)
    Array([[4., 0.],
           [0., 9.]], dtype=float32)
    """
    x = _matrices(x, "matrix_power")
    if x.shape[-1] != x.shape[-2]:
        raise ValueError(f"matrix_power: matrices of the shape {x.shape[-2:]} are not square")
    if n < 0:
        x, n = inv(x), -n
    if n == 0:
        unit = _creation.eye(x.shape[-1], dtype=x.dtype, device=x.device)
        return _ops.copy(_core.broadcast_view(unit, x.shape))
    result, square = None, x
    while n:
        if n % 2:
            result = square if result is None else _ops.matmul(result, square)
        n //= 2
        square = _ops.matmul(square, square) if n else square
    return _ops.copy(x) if result is x else result


def gemm(c, a, b, bias=None, /, *, alpha=1.0, beta=1.0, activation="none", precision="default"):
    """activation(alpha a b + beta c + bias) for c [..., m, n], a [..., m, k], b [..., k, n] and bias [n], in one step.

    With `beta` 0 the elements of `c` do not matter. PyTorch's addmm and baddbmm; activations are those of nn.linear.
    `precision` is as in matmul.

    >>> compute.linalg.gemm(compute.eye(2), compute.ones((2, 1)), compute.ones((1, 2)))
    Array([[2., 1.],
           [1., 2.]], dtype=float32)
    """
    return _ops.gemm(*_arrays_of(c, a, b, bias), alpha=alpha, beta=beta, activation=activation,
                     precision=precision)


# ---- Diagonals ------------------------------------------------------------------------------------------------------


def diagonal(x, /, *, offset=0):
    """The elements above (offset > 0), on or below the main diagonals of the matrices of `x`; a view.

    Raises ValueError for less than two axes.

    >>> compute.linalg.diagonal([[1, 2], [3, 4]])
    Array([1, 4], dtype=int64)
    """
    x = _matrices(x, "diagonal")
    rows, columns = x.shape[-2:]
    if isinstance(x, grad.Variable):
        return grad._record("diagonal", diagonal, [x], {"offset": offset})
    first_row, first_column = builtins.max(-offset, 0), builtins.max(offset, 0)
    size = builtins.max(builtins.min(rows - first_row, columns - first_column), 0)
    row, column = x.strides[-2:]
    start = (first_row * row + first_column * column) * x.itemsize if size and x.size else 0
    return _core.strided_view(x, x.dtype, (*x.shape[:-2], size), (*x.strides[:-2], row + column), start)


def trace(x, /, *, offset=0, dtype=None):
    """The sums of the diagonals of the matrices of `x`.

    Raises ValueError for less than two axes.

    >>> compute.linalg.trace([[1, 2], [3, 4]])
    Array(5, dtype=int64)
    """
    return _ops.sum(diagonal(_matrices(x, "trace"), offset=offset), axes=[-1], dtype=dtype)


# ---- Norms ----------------------------------------------------------------------------------------------------------


# What the elements are divided by before their powers are added up, from the greatest: that itself, or 1.
_SCALE = "where(isfinite(y) & (y > 0), y, 1)"
_SIZE = _expression("abs(x)")
# Squares of float32 are added up in float64, whose range needs no scale, where the device has it.
_ROOT_IN_DOUBLE = _expression("y = convert(x, float64); y * y").reducer("sum", "convert(sqrt(y), float32)")
# Those of float16 fit in float32.
_ROOT_OF_FLOAT16 = _expression("y = convert(x, float32); y * y").reducer("sum", "convert(sqrt(y), float16)")
_DISTANCE_OF_DOUBLES = _expression("d = x - y; d * d", "x", "y").reducer("sum", "convert(sqrt(y), float32)")
_DIFFERENCE = _expression("abs(x - y)", "x", "y")
_POWERS = _expression("pow(abs(x) / s, p)", "x", "s", "p")


@functools.cache
def _steps_of_norm(dtype, number="x", inputs=("x",)):
    """The sum of squares of `number`; that of squares of multiples, 0 where the first sum is good; and the root from both sums.

    A sum is good that neither overflowed nor consists of squares so small that they lost digits.
    """
    is_double = dtype in (_dtypes.float64, _dtypes.complex128)
    low, high, factor = (1e-270, 1e290, 2.0 ** 600) if is_double else (1e-20, 1e35, 2.0 ** 90)
    is_good, multiple = f"(s > {low!r}) & (s < {high!r})", f"where(s < 1, {factor!r}, {1 / factor!r})"
    size, scaled = number, f"({number}) * {multiple}"
    if dtype in (_dtypes.complex64, _dtypes.complex128):
        size, scaled = f"abs({size})", f"abs({scaled})"
    elif dtype is _dtypes.bfloat16:
        size, scaled = "convert(x, float32)", f"convert(x, float32) * {multiple}"
    root = f"where({is_good}, sqrt(s), sqrt(t) / {multiple})"
    return (_expression(f"size = {size}; size * size", *inputs).reducer("sum"),
            _expression(f"where({is_good}, 0, {scaled} * ({scaled}))", *inputs, "s").reducer("sum"),
            _expression(f"convert({root}, bfloat16)" if dtype is _dtypes.bfloat16 else root, "s", "t").evaluator())


def _root_of_squares(steps, arrays, axes, keepdims):
    add, add_multiples, root = steps
    squares = add(arrays, (), axes, True)
    multiples = add_multiples([*arrays, squares], (), axes, keepdims)
    return root([_core.reshape_view(squares, multiples.shape), multiples], (), None)[0]


def vector_norm(x, /, *, axis=None, keepdims=False, ord=2, **names):
    """The vector norms along axes; without axes, of all elements. Powers neither overflow nor underflow on the way.

    >>> compute.linalg.vector_norm(compute.asarray([3.0, 4.0]))
    Array(5., dtype=float32)
    """
    if names:
        return _renamed(vector_norm, names, x, axis=axis, keepdims=keepdims, ord=ord)
    x = _inexact(x)
    rank = x.ndim
    if isinstance(ord, grad.Variable):
        grad._refuse_attribute("ord")
    if isinstance(x, grad.Variable):
        known = {"axis": axis, "keepdims": builtins.bool(keepdims), "ord": ord}
        return grad._record("vector_norm", vector_norm, [x], known)
    axes = None if axis is None or rank == 0 else _axes(axis, rank, "vector_norm")
    keep = {"axes": axes, "keepdims": builtins.bool(keepdims)}
    if ord == 0:
        size = _ops.abs(x)
        return _ops.sum(_ops.cast(size != 0, dtype=size.dtype), **keep)
    if ord in (1, math.inf, -math.inf):
        return (_ops.sum if ord == 1 else _ops.max if ord > 0 else _ops.min)(_ops.abs(x), **keep)
    if ord == 2 and x.dtype is _dtypes.float32 and _creation.has_float64(x.device):
        return _ROOT_IN_DOUBLE([x], (), axes, keep["keepdims"])
    if ord == 2 and x.dtype is _dtypes.float16:
        return _ROOT_OF_FLOAT16([x], (), axes, keep["keepdims"])
    if ord == 2:
        return _root_of_squares(_steps_of_norm(x.dtype), [x], axes, keep["keepdims"])
    scale = None
    if x.size:
        scale = _SIZE.reduce("max" if ord > 0 else "min", x, axis=axes, keepdims=True, after=_SCALE)
    norm = _POWERS.reduce("sum", x, 1.0 if scale is None else scale, float(ord), axis=axes, keepdims=keepdims,
                          after=f"pow(y, {1 / ord!r})")
    return norm if scale is None else norm * _core.reshape_view(scale, norm.shape)


def _distances(x1, x2):
    """The norms of the differences along the last axis, of real arrays of one dtype."""
    rank = builtins.max(x1.ndim, x2.ndim)
    return _root_of_squares(_steps_of_norm(x1.dtype, "x - y", ("x", "y")), [x1, x2], (rank - 1,), False)


def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """The norms of the matrices of `x`: "fro", "nuc", 1, -1, 2, -2, inf or -inf.

    "nuc" is the sum of the singular values, 2 and -2 are the greatest and the least. Raises ValueError for other norms, and for less than two axes.

    >>> compute.linalg.matrix_norm([[3.0, 0.0], [0.0, 4.0]])
    Array(5., dtype=float32)
    """
    x = _inexact(_matrices(x, "matrix_norm"))
    if ord == "fro":
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord in (2, -2, "nuc"):
        values = svdvals(x)
        norm = (_ops.sum if ord == "nuc" else _ops.max if ord > 0 else _ops.min)(values, axes=[-1])
        return _core.reshape_view(norm, (*x.shape[:-2], 1, 1)) if keepdims else norm
    if ord not in (1, -1, math.inf, -math.inf):
        raise ValueError(f"matrix_norm: ord={ord!r} is not a norm of matrices")
    added, chosen = (-2, -1) if abs(ord) == 1 else (-1, -2)
    sums = _ops.sum(_ops.abs(x), axes=[added], keepdims=True)
    extreme = (_ops.max if ord > 0 else _ops.min)(sums, axes=[chosen], keepdims=True)
    return extreme if keepdims else _core.reshape_view(extreme, x.shape[:-2])
