# SPDX-License-Identifier: Apache-2.0
"""Names of NumPy and PyTorch: methods of arrays. See _names.py."""
from __future__ import annotations

import builtins
import math
from typing import Any, Sequence

from . import _core, _creation, _dtypes, _files, _functions, _indexing, _manipulation, _numeric, _ops, grad
from ._core import Array, array_of
from ._errors import no_gradient
from ._manipulation import _axis
from ._names_common import Values
from ._names_creation import _source, bernoulli
from ._names_elementwise import _divide, nan_to_num
from ._names_indices import fill_diagonal
from ._names_torch import index_put


def _new(function):
    def run(x, *arguments, dtype=None, device=None, **options):
        return function(*arguments, dtype=dtype or x.dtype, device=device or x.device, **options)
    run.__doc__ = f"{function.__name__} with the dtype and the device of the array."
    return run


def _shaped_as(x, other):
    """The array with the shape of another."""
    return _manipulation.reshape(x, other.shape)


def _expanded_as(x, other):
    """A view with the shape of another array, to which the array broadcasts."""
    return _core.broadcast_view(x, other.shape)


def _normal_in_place(x, mean=0.0, std=1.0, *, generator=None):
    """Sets the elements to normally distributed numbers, in place. Returns the array."""
    x[...] = _source(generator).normal(x.shape, mean, std, dtype=x.dtype, device=x.device)
    return x


def _uniform_in_place(x, low=0.0, high=1.0, *, generator=None):
    """Sets the elements to uniformly distributed numbers, in place. Returns the array."""
    x[...] = _source(generator).uniform(x.shape, low, high, dtype=x.dtype, device=x.device)
    return x


def _to(x, *arguments, **options):
    """The array on another device, with another dtype, or both; as another array has them."""
    copy = options.pop("copy", False)
    options.pop("non_blocking", None)
    options.pop("memory_format", None)
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


def _permute(x, *axes, dims=None):
    """A view with the axes in the order of the arguments."""
    axes = axes if dims is None else tuple(dims)
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


def _cuda(x, device=None, non_blocking=False):
    """The array on a CUDA device."""
    return _core.to_device(x, "cuda" if device is None else f"cuda{device}" if isinstance(device, int) else device)


def _detach(x):
    """The array itself, or the value of a variable of compute.grad, through which no gradient passes."""
    return grad.constant(x)


def _contiguous(x, *, memory_format=None):
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


def _in_place_scaled(name):
    def run(x, other, *, alpha=1):
        return _ops.TABLE[name]["run"](x, other if alpha == 1 else _ops.multiply(array_of(other), alpha), out=x)
    run.__doc__ = f"{name} with `alpha` times the operand, in place. Returns the array."
    return run


def _stored(function, name):
    def run(x, *operands, **options):
        x[...] = function(x, *operands, **options)
        return x
    run.__doc__ = f"{name}, in place. Returns the array."
    return run


def _div_in_place(x, other, *, rounding_mode=None):
    """divide, in place. Returns the array."""
    if rounding_mode is None:
        return _ops.divide(x, other, out=x)
    x[...] = _divide(x, other, rounding_mode=rounding_mode)
    return x


def _bernoulli(x, p=None, *, generator=None):
    """1 with the probabilities of the elements, or with `p`, else 0, in the dtype of the array."""
    return bernoulli(x if p is None else _creation.full(x.shape, float(p), dtype=x.dtype, device=x.device), generator=generator)


def _random_in_place(x, low=0, high=None, *, generator=None):
    """Sets the elements to random integers in [low, high), or in [0, low), in place. Returns the array."""
    low, high = (0, low) if high is None and low else (low, high)
    limit = 2 ** 24 if x.dtype in _dtypes.FLOATS else _dtypes.iinfo(x.dtype).max if x.dtype in _dtypes.INTEGERS else 2
    x[...] = _source(generator).integers(x.shape, low, limit if high is None else high, device=x.device)
    return x


def _exponential_in_place(x, lambd=1.0, *, generator=None):
    """Sets the elements to exponentially distributed numbers, in place. Returns the array."""
    x[...] = _ops.log1p(-_source(generator).uniform(x.shape, dtype=x.dtype, device=x.device)) / -lambd
    return x


def _fill_diagonal_in_place(x, value, wrap=False):
    """Sets the elements of the diagonal to a number, in place. Returns the array."""
    fill_diagonal(x, value, wrap)
    return x


def _put_in_place(x, indices, values, accumulate=False):
    """Writes values at positions in row-major order, or adds them, in place. Returns the array."""
    x[...] = _manipulation.reshape(index_put(_manipulation.reshape(x, (-1,)), (indices,), values, accumulate), x.shape)
    return x


def _select(x: Values, dim: int, index: int) -> Array:
    """The part of the array at an index of an axis, a view."""
    return x[(slice(None),) * _axis(dim, x.ndim, "select") + (index,)]


def _median(x: Values, *arguments: Any, **options: Any) -> Any:
    """compute.median along `dim`, with PyTorch's values and indices."""
    if "dim" not in options and not arguments:
        raise AttributeError("'compute.Array' object has no attribute 'median'; here it is compute.median(x), the mean of the middle two, "
                             "where PyTorch takes the lower one, x.quantile(0.5, ...) or x.median(dim=0)")
    return _functions.median(x, dim=options.pop("dim", arguments[0] if arguments else None), **options)


def _repeated(x: Values, *repeats: Any, axis: int | None = None) -> Array:
    """repeat, with NumPy's arguments; with more integers than these, tile, as in PyTorch."""
    is_tile = len(repeats) > 2 or (len(repeats) == 2 and isinstance(repeats[1], int) and not -x.ndim <= repeats[1] < x.ndim)
    if is_tile:
        return _manipulation.tile(x, repeats)
    return _manipulation.repeat(x, repeats[0], repeats[1] if len(repeats) == 2 else axis)


def _sum_to_size(x: Values, *size: Any) -> Array:
    """The sum over the axes along which an array of a size would be broadcast to the array."""
    size = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
    extra = x.ndim - len(size)
    axes = tuple(i for i in range(x.ndim) if i < extra or (size[i - extra] == 1 and x.shape[i] != 1))
    return _manipulation.reshape(_functions.sum(x, axis=axes, keepdims=True) if axes else x, size)


def _itself(x, *arguments, **options):
    """The array itself."""
    return x


def _requires_grad_in_place(x, requires_grad=True):
    """The array itself; an error unless `requires_grad` is false."""
    no_gradient(requires_grad)
    return x


def _type(x, dtype=None, non_blocking=False):
    """The array converted to a dtype."""
    if dtype is None:
        raise TypeError("type: the name of PyTorch's type; here it is x.dtype")
    return _functions.astype(x, dtype, copy=False)


def _zero_in_place(x):
    """Sets all elements to 0, in place. Returns the array."""
    x[...] = 0
    return x


def _fill_in_place(x, value):
    """Sets all elements to a number, in place. Returns the array."""
    x[...] = value
    return x


def _copy_in_place(x, source, non_blocking=False):
    """Sets the elements to those of another array, which broadcasts, in place. Returns the array."""
    x[...] = source
    return x


def _scatter(x, dim, index, src=None, *, value=None, reduce=None):
    """compute.scatter along an axis, with PyTorch's order of arguments."""
    return _indexing.written_along(x, dim, index, src, value=value, reduce=reduce)


def _split_method(x: Values, split_size_or_sections: int | Sequence[int], dim: int = 0) -> list[Array]:
    """Parts of so many elements along an axis, or of several extents, as in PyTorch."""
    return _numeric.split(x, split_size_or_sections, dim=dim)


def _stride(x, dim=None):
    """The strides in elements, or that of an axis, as in PyTorch."""
    return x.strides if dim is None else x.strides[dim]


def _numbers_for_nan(x: Values, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Array:
    """nan_to_num, with PyTorch's order of arguments."""
    return nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)


def _tiled(x: Values, *repetitions: int | Sequence[int], dims: Sequence[int] = ()) -> Array:
    """tile, with the repetitions as a tuple or as several integers."""
    repetitions = repetitions or tuple(dims)
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
    if not isinstance(x, Array):  # a variable of compute.grad
        places = _creation.arange(shape[at], device=x.device)[:, None] * step + _creation.arange(size, device=x.device)
        return _manipulation.moveaxis(_ops.take(x, places, axis=at), at + 1, -1)
    return _core.strided_view(x, x.dtype, (*shape, size), (*(stride * step if i == at else stride for i, stride in enumerate(x.strides)), x.strides[at]), 0)


def _scatter_in_place(x, dim, index, src=None, *, value=None, reduce=None):
    """compute.scatter along an axis, in place. Returns the array."""
    return _indexing.written_along(x, dim, index, src, value=value, reduce=reduce, out=x)


def _scatter_add_in_place(x, dim, index, src):
    """compute.scatter along an axis with reduction="add", in place. Returns the array."""
    return _indexing.written_along(x, dim, index, src, reduce="add", out=x)


def _index_add_in_place(x, dim, index, source, *, alpha=1):
    """Adds parts of another array at positions along an axis, in place. Returns the array."""
    at = _axis(dim, x.ndim, "index_add_")
    index = _core.broadcast_view(_core.reshape_view(array_of(index), [-1 if i == at else 1 for i in range(x.ndim)]), source.shape)
    return _indexing.written_along(x, at, index, source if alpha == 1 else source * alpha, reduce="add", out=x)


def _clamp_in_place(x, min=None, max=None):
    """clip, in place. Returns the array."""
    return _functions.clip(x, min, max, out=x)


def _masked_fill_in_place(x, mask, value):
    """Sets the elements where `mask`, which broadcasts, is true to a number, in place. Returns the array."""
    mask = array_of(mask)
    if mask.shape == x.shape:
        x[mask] = value
    else:
        x[...] = _functions.where(mask, value, x)
    return x


def _as(x, other):
    """The array with the dtype of another."""
    return _functions.astype(x, other.dtype, copy=False)
