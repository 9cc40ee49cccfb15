# SPDX-License-Identifier: Apache-2.0
"""Names of NumPy and PyTorch: creation, and random numbers. See _names.py."""
from __future__ import annotations

import builtins
import math
from typing import Any, Callable, Iterable, Sequence

from . import _core, _creation, _dtypes, _functions, _manipulation, _ops, linalg, random
from ._core import Array, DType, array_of
from ._creation import arrays_of, is_values
from ._elementwise import _inexact
from ._errors import no_gradient, renamed
from ._manipulation import _flat
from ._names_common import Values, _number_or_array
from ._names_hints import missing
from ._names_properties import shape
from .expressions import expression


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


class _TensorType(type):
    """Whose instances are the arrays."""

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, Array)

    def __getattr__(cls, name: str) -> Any:
        return getattr(Array, name)


class Tensor(metaclass=_TensorType):
    """PyTorch's constructor: Tensor([1, 2]) and Tensor(2, 3) make arrays of the default dtype. All arrays are its instances."""

    def __new__(cls, *data: Any, device: Any = None) -> Any:
        return _from_data(_dtypes.DEFAULT_FLOAT, data, device)


def _from_data(kind, data, device=None):
    """Numbers as an array, or an array of the extents that several integers are."""
    if len(data) == 1 and not isinstance(data[0], int):
        return _creation.asarray(data[0], dtype=kind, device=device, copy=None)
    return _creation.empty(data or (0,), dtype=kind, device=device)


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


def logspace(start: float, stop: float | None = None, num: int = 50, endpoint: bool = True, base: float = 10.0, dtype: DType | None = None, *, device: Any = None, **names: Any) -> Array:
    """`num` numbers from base ** start to base ** stop, whose logarithms are evenly spaced.

    PyTorch's `end` is `stop`, and `steps` is `num`.

    >>> compute.logspace(0, 2, 3)
    Array([  1.,  10., 100.], dtype=float32)
    """
    if names:
        return renamed(logspace, names, start, stop=stop, num=num, endpoint=endpoint, base=base, dtype=dtype, device=device)
    return _powers(float(base), _creation.linspace(start, stop, num, endpoint, dtype=_wide(), device=device), dtype)


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
    return _dtypes.float64 if _creation.has_float64(_core.device(None)) else _dtypes.float32


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
    if isinstance(x, Array):
        return _on_diagonal(x, size, k)
    rows = _ops.pad(x, pads_begin=[builtins.max(-k, 0)], pads_end=[builtins.max(k, 0)])
    return _ops.where(_creation.eye(size, k=k, dtype=_dtypes.bool, device=x.device), _core.reshape_view(rows, (size, 1)), False)


def _on_diagonal(x, size, k):
    """Zeros in square matrices, with the vectors along the last axis of `x` on the `k`-th diagonal."""
    found = _creation.zeros((*x.shape[:-1], size, size), dtype=x.dtype, device=x.device)
    if x.size:
        linalg.diagonal(found, offset=k)[...] = x
    return found


def diag_embed(x: Values, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Array:
    """Matrices, along two axes, with the vectors along the last axis on a diagonal.

    >>> compute.diag_embed([[1, 2]])
    Array([[[1, 0],
            [0, 2]]], dtype=int64)
    """
    x = array_of(x)
    size = x.shape[-1] + builtins.abs(offset)
    if isinstance(x, Array):
        found = _on_diagonal(x, size, offset)
    else:
        rows = _manipulation.pad(x, [(0, 0)] * (x.ndim - 1) + [(builtins.max(-offset, 0), builtins.max(offset, 0))]) if offset else x
        found = _ops.where(_creation.eye(size, k=offset, dtype=_dtypes.bool, device=x.device), _manipulation.expand_dims(rows, -1), False)
    return found if (dim1, dim2) == (-2, -1) else _manipulation.moveaxis(found, (-2, -1), (dim1, dim2))


def diagflat(x: Values, k: int = 0) -> Array:
    """A matrix with the elements of `x` on its `k`-th diagonal.

    >>> compute.diagflat([[1, 2]])
    Array([[1, 0],
           [0, 2]], dtype=int64)
    """
    return diag(_flat(x), k)


def vander(x: Values, n: int | None = None, increasing: bool = False, *, N: int | None = None) -> Array:
    """A matrix with the powers of a vector as columns, the highest first.

    >>> compute.vander([1, 2, 3], 3)
    Array([[1, 1, 1],
           [4, 2, 1],
           [9, 3, 1]], dtype=int64)
    """
    x, n = array_of(x), N if n is None else n
    powers = _creation.arange(x.size if n is None else n, device=x.device)
    return _ops.pow(_core.reshape_view(x, (x.size, 1)), powers if increasing else powers[::-1])


def _vander_ascending(x: Values, N: int | None = None) -> Array:
    """PyTorch's vander: a matrix with the powers of a vector as columns, the lowest first.

    >>> compute.linalg.vander([1, 2])
    Array([[1, 1],
           [1, 2]], dtype=int64)
    """
    return vander(x, N, increasing=True)


def _range(start: float = 0, end: float | None = None, step: float = 1, dtype: DType | None = None) -> Array:
    """PyTorch's range: evenly spaced floating-point numbers up to `end`, which is among them.

    >>> compute.range(1, 3)
    Array([1., 2., 3.], dtype=float32)
    """
    start, end = (0, start) if end is None else (start, end)
    found = _creation.arange(math.floor((end - start) / step + 1e-9) + 1) * step + start
    return _functions.astype(found, dtype or _dtypes.DEFAULT_FLOAT, copy=False)


def _window(size, *factors):
    """The sum of cosines with these factors over `size` points, both ends included."""
    if size <= 1:
        return _creation.ones(builtins.max(size, 0))
    angle = _creation.linspace(0.0, 2 * math.pi, size, dtype=_wide())
    found = builtins.sum((_ops.cos(angle * i if i > 1 else angle) * factor for i, factor in enumerate(factors[1:], 1)), factors[0])
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


# ---- Random numbers -------------------------------------------------------------------------------------------------


def _extents(size, single):
    """The shape of a call such as rand(2, 3), rand((2, 3)) or rand(size=3)."""
    return single[0] if len(single) == 1 and not hasattr(single[0], "__index__") else single if size is None else size


def _source(generator):
    """What draws numbers: a generator, or the one of the process."""
    return random if generator is None else getattr(generator, "generator", generator)


class Generator(random.Generator):
    """PyTorch's generator: a compute.random.Generator whose seed comes later."""

    def __init__(self, device: Any = None) -> None:
        super().__init__(0)
        self.device = device

    def manual_seed(self, seed: int) -> Generator:
        """Starts over with a seed. Returns the generator."""
        self.seed(seed % 2 ** 63)
        return self

    def initial_seed(self) -> int:
        """The seed."""
        return self.state[0]


def manual_seed(seed: int) -> Any:
    """random.seed. Returns the generator of the process.

    >>> _ = compute.manual_seed(1)
    """
    random.seed(seed % 2 ** 63)
    return random._generator


def rand(*size: Any, dtype: DType | None = None, device: Any = None, requires_grad: bool = False, generator: Any = None, **names: Any) -> Array:
    """Uniformly distributed numbers in [0, 1), of the shape of the arguments.

    >>> compute.rand(2, 3).shape
    (2, 3)
    """
    no_gradient(requires_grad)
    return _source(generator).uniform(_creation._extents_of("rand", _extents(None, size), names), dtype=dtype, device=device)


def randn(*size: Any, dtype: DType | None = None, device: Any = None, requires_grad: bool = False, generator: Any = None, **names: Any) -> Array:
    """Normally distributed numbers with mean 0 and deviation 1, of the shape of the arguments.

    >>> compute.randn(2, 3).shape
    (2, 3)
    """
    no_gradient(requires_grad)
    return _source(generator).normal(_creation._extents_of("randn", _extents(None, size), names), dtype=dtype, device=device)


def randint(low: int = 0, high: Any = None, size: Any = None, dtype: DType | None = None, device: Any = None, *, generator: Any = None,
            requires_grad: bool = False) -> Array:
    """Random integers in [low, high), or in [0, low); the shape is the third argument, or as PyTorch has it the second of two.

    >>> compute.randint(0, 10, (2, 3)).shape
    (2, 3)
    """
    if high is not None and not hasattr(high, "__index__"):
        high, size = None, high
    low, high = (0, low) if high is None else (low, high)
    no_gradient(requires_grad)
    return _source(generator).integers(() if size is None else size, low, high, dtype=dtype, device=device)


def randint_like(x: Values, low: int = 0, high: int | None = None, *, dtype: DType | None = None, device: Any = None) -> Array:
    """randint of the shape, the dtype and the device of `x`.

    >>> compute.randint_like(compute.ones((2, 3)), 5).shape
    (2, 3)
    """
    x = array_of(x)
    found = randint(low, high, x.shape, device=device or x.device)
    return _functions.astype(found, dtype or x.dtype, copy=False)


def randperm(n: int, *, generator: Any = None, dtype: DType | None = None, device: Any = None, requires_grad: bool = False) -> Array:
    """The integers in [0, n) in random order.

    >>> compute.sort(compute.randperm(3))
    Array([0, 1, 2], dtype=int64)
    """
    no_gradient(requires_grad)
    found = _source(generator).permutation(n, device=device)
    return found if dtype is None else _functions.astype(found, dtype, copy=False)


def rand_like(x: Values, *, dtype: DType | None = None, device: Any = None) -> Array:
    """rand of the shape, the dtype and the device of `x`.

    >>> compute.rand_like(compute.ones((2, 3))).shape
    (2, 3)
    """
    x = array_of(x)
    return random.uniform(x.shape, dtype=dtype or x.dtype, device=device or x.device)


def randn_like(x: Values, *, dtype: DType | None = None, device: Any = None) -> Array:
    """randn of the shape, the dtype and the device of `x`.

    >>> compute.randn_like(compute.ones((2, 3))).shape
    (2, 3)
    """
    x = array_of(x)
    return random.normal(x.shape, dtype=dtype or x.dtype, device=device or x.device)


def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Any = None) -> Array:
    """PyTorch's normal: normally distributed numbers of a shape, by default that of `mean` and `std`, which may be arrays.

    >>> compute.normal(0.0, 1.0, size=(2, 3)).shape
    (2, 3)
    """
    extents = _manipulation.broadcast_shapes(shape(mean), shape(std)) if size is None else size
    return _source(generator).normal(extents) * std + mean


_IS_BELOW = expression("where(x < p, 1, 0 * x)", "x", "p").evaluator()  # in the dtype of x, which is finite


def bernoulli(p: Values, *, generator: Any = None) -> Array:
    """1 with the probabilities `p`, else 0, in the dtype of `p`.

    >>> compute.bernoulli(compute.asarray([0.0, 1.0]))
    Array([0., 1.], dtype=float32)
    """
    p = _inexact(array_of(p))
    drawn = _source(generator).uniform(p.shape, dtype=p.dtype, device=p.device)
    return _IS_BELOW([drawn, p], (), (drawn,))[0] if type(p) is Array else _ops.cast(drawn < p, dtype=p.dtype)


def multinomial(weights: Values, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Array:
    """Random positions along the last axis, with probabilities in the proportion of `weights`. Waits for them without `replacement`.

    >>> compute.multinomial([0.0, 1.0], 2, replacement=True)
    Array([1, 1], dtype=int64)
    """
    weights = _inexact(array_of(weights))
    if replacement and weights.size and num_samples > 1 and (weights.ndim == 1 or _creation.has_float64(weights.device)):
        return random._repeated(_source(generator), weights, num_samples)
    if replacement:
        return _source(generator).categorical(_ops.log(weights), samples=num_samples)
    if weights.ndim == 1:
        return _source(generator).choice(weights.size, num_samples, replace=False, p=weights)
    if weights.ndim == 2 and weights.size and num_samples > 0:
        if not (float(_ops.min(weights)) >= 0 and float(_ops.max(weights)) < math.inf):  # false of NaN
            raise ValueError("multinomial: weights must be finite numbers of at least 0")
        if int(_ops.min(_ops.count_nonzero(weights, axes=[-1]))) < num_samples:
            raise ValueError(f"multinomial: fewer than {num_samples} weights of a row are not 0")
        return random._different(_source(generator), weights, num_samples)
    return _manipulation.stack([multinomial(row, num_samples, generator=generator) for row in _manipulation.unstack(weights)])


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
