# SPDX-License-Identifier: Apache-2.0
"""Names of NumPy and PyTorch: what PyTorch alone has. See _names.py."""
from __future__ import annotations

import builtins
import functools
import math
from collections import namedtuple
from typing import Any, Sequence

from . import _core, _creation, _dtypes, _functions, _indexing, _manipulation, _ops, grad, linalg
from ._core import Array, DType, array_of
from ._creation import arrays_of
from ._elementwise import _inexact
from ._manipulation import _axis, _flat
from ._names_common import Axis, Values
from ._names_creation import _window
from ._names_indices import triu_indices
from ._names_products import cdist
from .expressions import expression


# ---- Complex numbers ------------------------------------------------------------------------------------------------


_PAIR = _core.expression("complex(x, y)", ("x", "y"), ())
_POLAR = _core.expression("complex(x * cos(y), x * sin(y))", ("x", "y"), ())


def complex(real: Values, imag: Values) -> Array:
    """Complex numbers of their parts.

    >>> compute.complex([1.0], [2.0])
    Array([1.+2.j], dtype=complex64)
    """
    real, imag = (_inexact(array_of(x)) for x in arrays_of(real, imag))
    return _PAIR.map([real, imag], (), None)[0] if _are_parts(real, imag) else real + imag * 1j


def _are_parts(x, y):
    return type(x) is type(y) is Array and x.dtype is y.dtype and x.dtype in (_dtypes.float32, _dtypes.float64)


def polar(abs: Values, angle: Values) -> Array:
    """Complex numbers of their magnitudes and their angles.

    >>> compute.real(compute.polar([2.0], [0.0]))
    Array([2.], dtype=float32)
    """
    size, angle = (_inexact(array_of(x)) for x in arrays_of(abs, angle))
    if _are_parts(size, angle):
        return _POLAR.map([size, angle], (), None)[0]
    return complex(size * _ops.cos(angle), size * _ops.sin(angle))


def view_as_real(x: Values) -> Array:
    """The real and the imaginary parts along a new last axis, as a view.

    >>> compute.view_as_real([1 + 2j])
    Array([[1., 2.]], dtype=float32)
    """
    x = array_of(x)
    if x.dtype not in _dtypes.COMPLEX:
        raise TypeError(f"view_as_real: {x.dtype} is not complex")
    if isinstance(x, Array):
        kind = _dtypes.float32 if x.dtype is _dtypes.complex64 else _dtypes.float64
        return _core.strided_view(x, kind, (*x.shape, 2), (*(2 * stride for stride in x.strides), 1), 0)
    return _ops.stack(_ops.real(x), _ops.imag(x), axis=-1)


def view_as_complex(x: Values) -> Array:
    """Complex numbers of the pairs along the last axis, as a copy.

    >>> compute.view_as_complex([[1.0, 2.0]])
    Array([1.+2.j], dtype=complex64)
    """
    x = array_of(x)
    if x.ndim == 0 or x.shape[-1] != 2:
        raise ValueError(f"view_as_complex: an array of the shape {x.shape}; the last axis must have the extent 2")
    return complex(x[..., 0], x[..., 1])


def adjoint(x: Values) -> Array:
    """The conjugated transposes of matrices.

    >>> compute.adjoint([[1j, 2.0]])
    Array([[0.-1.j],
           [2.-0.j]], dtype=complex64)
    """
    return _functions.conj(array_of(x).mT)


# ---- Reductions and scans -------------------------------------------------------------------------------------------


def _moments(name, x, dim, unbiased, correction, keepdim):
    if isinstance(dim, builtins.bool):  # the whole array: std_mean(x, unbiased)
        dim, unbiased = None, dim
    correction = (0 if unbiased is False else 1) if correction is None else correction
    options = {"axis": tuple(dim) if isinstance(dim, list) else dim, "keepdims": keepdim}
    return getattr(_functions, name)(x, correction=correction, **options), _functions.mean(x, **options)


def std_mean(x: Values, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None) -> tuple[Array, Array]:
    """std, divided by n - 1 unless `unbiased` is false or `correction` says otherwise, and mean.

    >>> compute.std_mean(compute.asarray([1.0, 3.0]), unbiased=False)
    (Array(1., dtype=float32), Array(2., dtype=float32))
    """
    return _moments("std", array_of(x), dim, unbiased, correction, keepdim)


def var_mean(x: Values, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None) -> tuple[Array, Array]:
    """var, divided by n - 1 unless `unbiased` is false or `correction` says otherwise, and mean.

    >>> compute.var_mean(compute.asarray([1.0, 3.0]))
    (Array(2., dtype=float32), Array(2., dtype=float32))
    """
    return _moments("var", array_of(x), dim, unbiased, correction, keepdim)


@functools.cache
def _sum_of_exponentials(count):
    """log(sum(exp(x))) of `count` numbers: the greatest one, and log1p of the sum of the others over it."""
    names, steps, rest = [f"x{i}" for i in range(count)], [], []
    places = list(names)
    while len(places) > 1:  # the greater ones of pairs
        pairs = [places[i:i + 2] for i in range(0, len(places), 2)]
        places = []
        for first, *second in pairs:
            place = f"p{len(steps)}"
            steps.append(f"{place} = max({first}, {second[0]}); r{len(rest)} = min({first}, {second[0]})" if second else f"{place} = {first}")
            rest += [f"r{len(rest)}"] if second else []
            places.append(place)
    greatest = places[0]
    total = " + ".join(f"exp({one} - {greatest})" for one in rest)
    return expression(f"{'; '.join(steps)}; where(isfinite({greatest}), {greatest} + log1p({total}), {greatest})", *names).evaluator()


def _added_up(x, at):
    """logcumsumexp of numbers: each pass adds the sums of up to 8 neighbouring parts, with -inf in front of them."""
    size, before = x.shape[at], (slice(None),) * at
    shifts = [8 ** i for i in range(size.bit_length()) if 8 ** i < size]
    counts = [min(8, -(-size // shift)) for shift in shifts]
    room = max((count - 1) * shift for count, shift in zip(counts, shifts))
    both = _core.empty((2, *x.shape[:at], room + size, *x.shape[at + 1:]), _dtypes.promote(x.dtype, _dtypes.float32), x.device)
    both[(slice(None), *before, slice(None, room))] = -math.inf
    now, later = both[0], both[1]
    now[(*before, slice(room, None))] = x
    found = _core.empty(x.shape, x.dtype, x.device)
    for shift, count in zip(shifts, counts):
        parts = [now[(*before, slice(room - i * shift, room - i * shift + size))] for i in range(count)]
        to = found if shift == shifts[-1] else later[(*before, slice(room, None))]
        _sum_of_exponentials(count)(parts, (), (to,))
        now, later = later, now
    return found


def logcumsumexp(x: Values, dim: int) -> Array:
    """log(cumsum(exp(x))) along an axis, without overflow.

    >>> compute.exp(compute.logcumsumexp([0.0, 0.0, 0.0], 0))
    Array([1., 2., 3.], dtype=float32)
    """
    x = _inexact(array_of(x))
    at = _axis(dim, x.ndim, "logcumsumexp")
    before = (slice(None),) * at
    if type(x) is Array and x.dtype in _dtypes.FLOATS and x.size and x.shape[at] > 1 and x.device.name != "cpu":
        return _added_up(x, at)
    shift = 1
    while shift < x.shape[at]:  # each element has the sum of `shift` elements
        first, rest = x[before + (slice(None, shift),)], x[before + (slice(shift, None),)]
        x = _manipulation.concat([first, _ops.logaddexp(rest, x[before + (slice(None, -shift),)])], axis=at)
        shift *= 2
    return x


def mode(x: Values, dim: int = -1, keepdim: bool = False) -> Any:
    """The most frequent elements along an axis, of equally frequent ones the least, and the index of the last of each.

    >>> compute.mode([3, 1, 3])
    Selected(values=Array(3, dtype=int64), indices=Array(2, dtype=int64))
    """
    x = _manipulation.moveaxis(array_of(x), dim, -1)
    order = _functions.argsort(x, axis=-1)
    ordered = _indexing.take_along_axis(x, order, axis=-1)
    places = _creation.arange(x.shape[-1], device=x.device)
    is_first = _ops.not_equal(ordered[..., 1:], ordered[..., :-1])
    starts = _functions.cumulative_max(_functions.where(is_first, places[1:], 0), axis=-1, include_initial=False)
    runs = places - _manipulation.concat([_creation.zeros((*x.shape[:-1], 1), dtype=_dtypes.int64, device=x.device), starts], axis=-1)
    last = _functions.argmax(runs, axis=-1, keepdims=True)
    found = (_indexing.take_along_axis(part, last, axis=-1) for part in (ordered, order))
    return _functions.Selected(*(_manipulation.moveaxis(part, -1, dim) if keepdim else part[..., 0] for part in found))


def msort(x: Values) -> Array:
    """sort along the first axis.

    >>> compute.msort([[2, 1], [1, 3]])
    Array([[1, 1],
           [2, 3]], dtype=int64)
    """
    return _functions.sort(x, axis=0)


def unique_consecutive(x: Values, return_inverse: bool = False, return_counts: bool = False, dim: Axis = None) -> Any:
    """The first of each run of equal elements, or of equal parts along an axis; with options a tuple of them and of the run
    of each element and the lengths of the runs. Waits for `x`.

    >>> compute.unique_consecutive([1, 1, 2, 1])
    Array([1, 2, 1], dtype=int64)
    """
    x = array_of(x)
    rows = _flat(x) if dim is None else _manipulation.moveaxis(x, dim, 0)
    changed = _ops.not_equal(rows[1:], rows[:-1])
    if changed.ndim > 1:
        changed = _functions.any(changed, axis=tuple(range(1, changed.ndim)))
    is_first = _manipulation.concat([_creation.ones((min(1, rows.shape[0]),), dtype=_dtypes.bool, device=x.device), changed])
    starts = _functions.nonzero(is_first)[0]
    found = [_ops.take(rows, starts, axis=0) if dim is None else _manipulation.moveaxis(_ops.take(rows, starts, axis=0), 0, dim)]
    if return_inverse:
        runs = _functions.cumulative_sum(_ops.cast(is_first, dtype=_dtypes.int64)) - 1
        found.append(_core.reshape_view(runs, x.shape) if dim is None else runs)
    if return_counts:
        found.append(_functions.diff(starts, append=rows.shape[0]))
    return tuple(found) if len(found) > 1 else found[0]


# ---- Elements -------------------------------------------------------------------------------------------------------

_REDUCTIONS = {"sum": "add", "add": "add", "prod": "mul", "multiply": "mul", "amax": "max", "amin": "min"}
_NEUTRAL = {"sum": 0, "prod": 1, "mean": 0}


def _neutral(reduce, dtype):
    if reduce in _NEUTRAL:
        return _NEUTRAL[reduce]
    if dtype in _dtypes.FLOATS:
        return -math.inf if reduce == "amax" else math.inf
    limits = _dtypes.iinfo(dtype)
    return limits.min if reduce == "amax" else limits.max


def scatter_reduce(x: Values, dim: int, index: Values, src: Values, reduce: str, *, include_self: bool = True) -> Array:
    """`x` with elements of `src` combined at indices along an axis, by "sum", "prod", "mean", "amax" or "amin".

    With `include_self` false, the elements of `x` at these indices do not count.

    >>> compute.scatter_reduce([1.0, 2.0], 0, [0, 0], [3.0, 5.0], "mean")
    Array([3., 2.], dtype=float32)
    """
    x, index, src = array_of(x), array_of(index), array_of(src)
    if reduce not in (*_REDUCTIONS, "mean"):
        raise ValueError(f"scatter_reduce: reduce is {reduce!r}; expected 'sum', 'prod', 'mean', 'amax' or 'amin'")
    if x.dtype is _dtypes.bool:
        raise TypeError(f"scatter_reduce: x is bool, of which there is no {reduce!r}; convert it (astype(x, uint8))")
    src = src[tuple(slice(n) for n in index.shape)]
    begin = x if include_self else _indexing.scatter(x, index, _neutral(reduce, x.dtype), axis=dim)
    found = _indexing.scatter(begin, index, src, axis=dim, reduction=_REDUCTIONS.get(reduce, "add"))
    if reduce != "mean":
        return found
    counts = _indexing.scatter(_creation.full(x.shape, int(include_self), dtype=_dtypes.int64, device=x.device), index, 1, axis=dim, reduction="add")
    counts = _ops.cast(_ops.maximum(counts, 1), dtype=x.dtype)
    return found / counts if x.dtype in _dtypes.FLOATS else found // counts


def _along(x, dim, index, name="index_copy"):
    return (slice(None),) * _axis(dim, x.ndim, name) + (index,)


def index_copy(x: Values, dim: int, index: Values, source: Values) -> Array:
    """`x` with the parts of another array at positions along an axis.

    >>> compute.index_copy([1.0, 2.0], 0, [1], [5.0])
    Array([1., 5.], dtype=float32)
    """
    found = _ops.copy(array_of(x))
    found[_along(found, dim, index)] = source
    return found


def index_fill(x: Values, dim: int, index: Values, value: float) -> Array:
    """`x` with a number at positions along an axis.

    >>> compute.index_fill([1.0, 2.0], 0, [1], 5.0)
    Array([1., 5.], dtype=float32)
    """
    found = _ops.copy(array_of(x))
    found[_along(found, dim, index, "index_fill")] = value
    return found


def index_put(x: Values, indices: Sequence[Values], values: Values, accumulate: bool = False) -> Array:
    """`x` with values at indices of its first axes; with `accumulate` they are added.

    >>> compute.index_put([1.0, 2.0], ([0, 0],), [5.0, 6.0], accumulate=True)
    Array([12.,  2.], dtype=float32)
    """
    x = array_of(x)
    keys = [array_of(one) for one in indices]
    if len(keys) == 1 and keys[0].dtype is _dtypes.bool:
        keys = list(_functions.nonzero(keys[0]))
    places = keys[0][..., None] if len(keys) == 1 else _indexing.stacked(_manipulation.broadcast_arrays(*keys))
    return _indexing.scatter_nd(x, places, values, reduction="add" if accumulate else "set")


def masked_scatter(x: Values, mask: Values, source: Values) -> Array:
    """`x` with the elements of `source`, one after the other, where `mask` is true. Waits for the mask.

    >>> compute.masked_scatter([1.0, 2.0, 3.0], [True, False, True], [7.0, 8.0, 9.0])
    Array([7., 2., 8.], dtype=float32)
    """
    x, source = array_of(x), array_of(source)
    mask = _manipulation.broadcast_to(array_of(mask), x.shape)
    if not (isinstance(x, Array) and isinstance(source, Array)):  # variables of compute.grad, which are not written to
        places = _functions.nonzero(mask)
        return _indexing.scatter_nd(x, _ops.stack(*places, axis=-1), _flat(source)[:places[0].size])
    found = _ops.copy(x)
    found[mask] = _flat(source)[:int(_functions.count_nonzero(mask))]
    return found


# ---- Products and distances -----------------------------------------------------------------------------------------


def addmv(c: Values, a: Values, x: Values, *, beta: float = 1.0, alpha: float = 1.0) -> Array:
    """beta c + alpha a x, of a matrix and a vector.

    >>> compute.addmv([1.0], [[1.0, 2.0]], [1.0, 1.0])
    Array([4.], dtype=float32)
    """
    c, a, x = arrays_of(c, a, x)
    return c * beta + _ops.matmul(a, x) * alpha


def addr(c: Values, x: Values, y: Values, *, beta: float = 1.0, alpha: float = 1.0) -> Array:
    """beta c + alpha outer(x, y).

    >>> compute.addr([[1.0]], [2.0], [3.0])
    Array([[7.]], dtype=float32)
    """
    c, x, y = arrays_of(c, x, y)
    return c * beta + linalg.outer(x, y) * alpha


def addbmm(c: Values, a: Values, b: Values, *, beta: float = 1.0, alpha: float = 1.0) -> Array:
    """beta c + alpha times the sum of the products of matrices.

    >>> compute.addbmm([[1.0]], [[[2.0]], [[3.0]]], [[[1.0]], [[1.0]]])
    Array([[6.]], dtype=float32)
    """
    c, a, b = arrays_of(c, a, b)
    return c * beta + _functions.sum(_ops.matmul(a, b), axis=0) * alpha


def chain_matmul(*matrices: Values) -> Array:
    """The product of matrices, multiplied from left to right.

    >>> compute.chain_matmul([[1.0, 2.0]], [[1.0], [1.0]])
    Array([[3.]], dtype=float32)
    """
    matrices = arrays_of(*(matrices[0] if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)) else matrices))
    found = matrices[0]
    for one in matrices[1:]:
        found = _ops.matmul(found, one)
    return found


def dist(x1: Values, x2: Values, p: float = 2.0) -> Array:
    """The norm of the difference of two arrays, of the order `p`.

    >>> compute.dist([0.0, 0.0], [3.0, 4.0])
    Array(5., dtype=float32)
    """
    x1, x2 = arrays_of(x1, x2)
    return linalg.vector_norm(_inexact(x1 - x2), ord=p)


def pdist(x: Values, p: float = 2.0) -> Array:
    """The distances of all pairs of rows of a matrix, each pair once.

    >>> compute.pdist([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])
    Array([5.       , 1.       , 4.2426405], dtype=float32)
    """
    x = _inexact(array_of(x))
    if isinstance(x, Array) and x.device.name == "cpu":  # where nobody waits for the indices
        first, second = triu_indices(x.shape[0], 1)
        return _ops.take(_flat(cdist(x, x, p)), first * x.shape[0] + second, axis=0)
    rows = [(i, j) for i in range(x.shape[0]) for j in range(i + 1, x.shape[0])]
    first, second = (_creation.asarray([pair[i] for pair in rows], dtype=_dtypes.int64, device=x.device) for i in range(2))
    return linalg.vector_norm(_ops.take(x, first, axis=0) - _ops.take(x, second, axis=0), axis=-1, ord=p)


def renorm(x: Values, p: float, dim: int, maxnorm: float) -> Array:
    """`x` with its parts along an axis made shorter, where their norm of the order `p` is greater than `maxnorm`.

    >>> compute.renorm([[3.0, 4.0], [0.0, 1.0]], 2, 0, 1.0)
    Array([[0.6, 0.8],
           [0. , 1. ]], dtype=float32)
    """
    x = _inexact(array_of(x))
    at = _axis(dim, x.ndim, "renorm")
    size = linalg.vector_norm(x, axis=tuple(i for i in range(x.ndim) if i != at), keepdims=True, ord=p)
    return _functions.where(size > maxnorm, x * (maxnorm / (size + 1e-7)), x)


def cholesky_solve(b: Values, l: Values, upper: bool = False) -> Array:
    """The solution of a x = b for a matrix a = l l^T, or with `upper` l^T l.

    >>> compute.cholesky_solve([[8.0]], [[2.0]])
    Array([[2.]], dtype=float32)
    """
    b, l = (_inexact(x) for x in arrays_of(b, l))
    l = _functions.conj(l.mT) if upper else l
    return linalg.triangular_solve(_functions.conj(l.mT), linalg.triangular_solve(l, b), upper=True)


def cholesky_inverse(l: Values, upper: bool = False) -> Array:
    """The inverse of a matrix a = l l^T, or with `upper` l^T l.

    >>> compute.cholesky_inverse([[2.0]])
    Array([[0.25]], dtype=float32)
    """
    l = _inexact(array_of(l))
    return cholesky_solve(_creation.eye(l.shape[-1], dtype=l.dtype, device=l.device), l, upper)


def svd(x: Values, some: bool = True, compute_uv: bool = True) -> Any:
    """PyTorch's svd: U, S and V with x = U diag(S) V^T, where linalg.svd has V^T.

    >>> compute.svd([[2.0, 0.0], [0.0, 1.0]])[1]
    Array([2., 1.], dtype=float32)
    """
    u, s, vh = linalg.svd(x, full_matrices=not some)
    return _Svd(u, s, _functions.conj(vh.mT))


_Svd = namedtuple("SVD", ["U", "S", "V"])


# ---- Creation -------------------------------------------------------------------------------------------------------


def scalar_tensor(value: Any, *, dtype: DType | None = None, device: Any = None) -> Array:
    """An array without axes, of the default dtype.

    >>> compute.scalar_tensor(2)
    Array(2., dtype=float32)
    """
    return _creation.full((), value, dtype=dtype or _dtypes.DEFAULT_FLOAT, device=device)


def _periodic(size, periodic, dtype, *factors):
    found = _window(size + 1 if periodic and size > 1 else size, *factors)[:size]
    return found if dtype is None else _functions.astype(found, dtype)


def hann_window(size: int, periodic: bool = True, *, dtype: DType | None = None) -> Array:
    """The Hann window of a size, which continues periodically unless `periodic` is false.

    >>> compute.hann_window(2)
    Array([0., 1.], dtype=float32)
    """
    return _periodic(size, periodic, dtype, 0.5, -0.5)


def hamming_window(size: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: DType | None = None) -> Array:
    """The Hamming window of a size, which continues periodically unless `periodic` is false.

    >>> compute.hamming_window(2)
    Array([0.08, 1.  ], dtype=float32)
    """
    return _periodic(size, periodic, dtype, alpha, -beta)


def blackman_window(size: int, periodic: bool = True, *, dtype: DType | None = None) -> Array:
    """The Blackman window of a size, which continues periodically unless `periodic` is false.

    >>> compute.blackman_window(1)
    Array([1.], dtype=float32)
    """
    return _periodic(size, periodic, dtype, 0.42, -0.5, 0.08)


def bartlett_window(size: int, periodic: bool = True, *, dtype: DType | None = None) -> Array:
    """The triangular window of a size, which continues periodically unless `periodic` is false.

    >>> compute.bartlett_window(2)
    Array([0., 1.], dtype=float32)
    """
    whole = size + 1 if periodic and size > 1 else size
    found = 1 - _ops.abs(_creation.linspace(-1.0, 1.0, whole)) if whole > 1 else _window(whole)
    return found[:size] if dtype is None else _functions.astype(found[:size], dtype)


# ---- Elementwise ----------------------------------------------------------------------------------------------------


def rsub(x1: Values, x2: Values, *, alpha: float = 1) -> Array:
    """x2 - alpha x1.

    >>> compute.rsub([1, 2], 5)
    Array([4, 3], dtype=int64)
    """
    x1, x2 = arrays_of(x1, x2)
    return _ops.subtract(x2, x1 if alpha == 1 else _ops.multiply(x1, alpha))


def _entr(x: Values) -> Array:
    """-x log(x); 0 at 0, and -inf below."""
    x = _inexact(array_of(x))
    return _functions.where(x < 0, -math.inf, -_ops.xlogy(x, x))


def _xlog1py(x: Values, y: Values) -> Array:
    """x log1p(y); 0 where x is 0."""
    x, y = arrays_of(x, y)
    return _functions.where(_ops.equal(x, 0), 0, _ops.multiply(x, _ops.log1p(y)))


def _ndtr(x: Values) -> Array:
    """The distribution function of the normal distribution."""
    return _ops.erfc(_inexact(array_of(x)) * -math.sqrt(0.5)) * 0.5


def is_nonzero(x: Values) -> bool:
    """Whether the only element is not 0.

    >>> compute.is_nonzero([0.0])
    False
    """
    return builtins.bool(array_of(x).item())


def is_signed(x: Values) -> bool:
    """Whether the dtype has negative numbers.

    >>> compute.is_signed([1])
    True
    """
    return array_of(x).dtype not in (*_dtypes.UNSIGNED, _dtypes.bool)


def is_same_size(x1: Values, x2: Values) -> bool:
    """Whether two arrays have one shape.

    >>> compute.is_same_size([1], [2])
    True
    """
    return array_of(x1).shape == array_of(x2).shape


# ---- Recording of gradients -----------------------------------------------------------------------------------------


class no_grad:
    """A context, or a decorator of functions, in which functions of variables of compute.grad give constants.

    >>> def function(x):
    ...     with compute.no_grad():
    ...         scale = compute.sum(x)
    ...     return scale * x[0]
    >>> compute.grad.gradients(function)(compute.asarray([2.0, 3.0]))
    Array([5., 0.], dtype=float32)
    """

    _records = False

    def __enter__(self) -> None:
        self._before = grad._is_recording()
        grad._set_recording(self._records)

    def __exit__(self, *exception: object) -> None:
        grad._set_recording(self._before)

    def __call__(self, function: Any) -> Any:
        import functools

        @functools.wraps(function)
        def run(*arguments, **options):
            with type(self)():
                return function(*arguments, **options)
        return run


class enable_grad(no_grad):
    """The opposite of no_grad inside of it."""

    _records = True


class inference_mode(no_grad):
    """no_grad."""

    def __init__(self, mode: bool = True) -> None:
        self._records = not mode


class set_grad_enabled(no_grad):
    """enable_grad or no_grad, also as a statement of its own."""

    def __init__(self, mode: bool) -> None:
        self._records = mode
        self._before = grad._is_recording()
        grad._set_recording(mode)

    def __enter__(self) -> None:
        pass


def is_grad_enabled() -> bool:
    """Whether functions of variables of compute.grad are recorded.

    >>> compute.is_grad_enabled()
    True
    """
    return grad._is_recording()
