# SPDX-License-Identifier: Apache-2.0
"""Manipulation functions of the standard. Those that only rearrange axes return views."""
from __future__ import annotations

import functools
import math
import operator

from . import _core, _creation, _dtypes, _ops
from ._core import Array, array_of
from ._creation import arrays_of, is_values
from ._errors import called, no_array, renamed, resolved


def _whole(value, name, argument="axis"):
    """An argument of the function `name` that must be an integer."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: {argument} is {value!r}; expected an integer") from None


def _axis(axis, rank, name):
    axis = _whole(axis, name)
    if not -rank <= axis < rank:
        raise IndexError(f"{name}: axis {axis} is out of range for {rank} axes")
    return axis % rank


def _axes(axes, rank, name):
    if type(axes) is int:
        return [_axis(axes, rank, name)]
    listed = [_axis(axis, rank, name) for axis in (axes if isinstance(axes, (tuple, list)) else (axes,))]
    if len(set(listed)) != len(listed):
        raise ValueError(f"{name}: the axes {axes} are not different")
    return listed


def _in_order(name, x, order):
    """`x` with its axes so that its elements, in row-major order, are those of `x` in an order of NumPy's."""
    if order not in ("C", "F", "A", "K"):
        raise ValueError(f"{name}: order is {order!r}; expected 'C', 'F', 'A' or 'K'")
    x = array_of(x)
    axes = list(range(x.ndim))
    if order == "K":
        axes.sort(key=lambda i: -abs(x.strides[i]))
    elif order == "F" or order == "A" and _is_turned(x):
        axes.reverse()
    return _core.permute_view(x, axes)


def _is_turned(x):
    """Whether the first axis changes fastest in memory, without gaps, and the last one does not."""
    return not x.is_contiguous and _core.permute_view(x, list(range(x.ndim))[::-1]).is_contiguous


def reshape(x, /, shape, *, copy=None, order="C"):
    """`x` with another shape, in row-major order. A view, unless that needs a copy.

    One extent may be -1: it follows from the number of elements. With `copy` false, a ValueError where it needs a copy.
    With the order "F", the first axis changes fastest.

    >>> compute.reshape(compute.arange(6), (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int64)
    """
    if type(x) is not Array:
        x = array_of(x)
    if order != "C":
        if order not in ("F", "A"):
            raise ValueError(f"reshape: order is {order!r}; expected 'C', 'F' or 'A'")
        if order == "F" or _is_turned(x):
            found = reshape(_in_order("reshape", x, "F"), tuple(shape)[::-1] if isinstance(shape, (tuple, list)) else shape, copy=copy)
            return _core.permute_view(found, list(range(found.ndim))[::-1])
    found = None if copy else _core.reshape_view_or_none(x, shape)
    if found is not None:
        return found
    if copy is False:
        raise ValueError(f"reshape: {x.shape} as {shape} needs a copy")
    return _core.reshape_view(_ops.copy(x), shape)


def _flat(x, order="C"):
    x = array_of(x) if order == "C" else _in_order("ravel", x, order)
    return reshape(x, (-1,)) if x.size else _core.reshape_view(x, (0,))


_core.hooks["ravel"] = _flat


def broadcast_shapes(*shapes):
    """The shape that arrays of these shapes broadcast to.

    Raises ValueError if they do not broadcast.

    >>> compute.broadcast_shapes((3, 1), (2,))
    (3, 2)
    """
    rank = max(map(len, shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for i, extent in enumerate(shape, rank - len(shape)):
            known = result[i]
            if extent is None or known is None:
                if extent not in (None, 1) or known not in (None, 1):
                    result[i] = extent if known is None else known
                else:
                    result[i] = None
            elif known == 1 and extent >= 0:
                result[i] = extent
            elif extent not in (1, known) or extent < 0:
                raise ValueError(f"{called()}: the shapes {', '.join(map(str, shapes))} do not broadcast")
    return tuple(result)


def broadcast_to(x, /, shape):
    """`x` repeated along axes of extent 1 and new leading axes; a view.

    Raises InvalidArgumentError, a ValueError, if the shapes do not broadcast.

    >>> compute.broadcast_to([1, 2], (2, 2))
    Array([[1, 2],
           [1, 2]], dtype=int64)
    """
    return _core.broadcast_view(array_of(x), shape)


def broadcast_arrays(*arrays):
    """Views of the arrays with their common shape.

    Raises ValueError if the shapes do not broadcast.

    >>> [x.shape for x in compute.broadcast_arrays([1, 2], [[1], [2], [3]])]
    [(3, 2), (3, 2)]
    """
    arrays = [array_of(x) for x in arrays]
    shape = broadcast_shapes(*(x.shape for x in arrays))
    return tuple(x if x.shape == shape else _core.broadcast_view(x, shape) for x in arrays)


def concat(arrays, /, axis=0, out=None, **names):
    """Joins arrays along an axis; without one, flattened.

    arrays   a sequence of arrays, whose shapes differ along the axis at most
    axis     the axis, or None for the flattened arrays
    out      an array for the result

    Raises ValueError if the shapes do not fit.

    >>> compute.concat([compute.asarray([1, 2]), [3]])
    Array([1, 2, 3], dtype=int64)
    """
    if names:
        return renamed(concat, names, arrays, axis=axis, out=out)
    arrays = tuple(arrays)
    if not _core.are_arrays(*arrays):
        arrays = arrays_of(*arrays)
    if axis is None:
        arrays, axis = [_flat(x) for x in arrays], 0
    axis = _whole(axis, "concat")
    return _ops.concat(*arrays, axis=axis) if out is None else _ops.concat(*arrays, axis=axis, out=out)


def stack(arrays, /, axis=0, out=None, **names):
    """Joins arrays of one shape along a new axis.

    arrays   a sequence of arrays
    axis     where the new axis is in the result
    out      an array for the result

    Raises ValueError if the shapes differ.

    >>> compute.stack([compute.asarray([1, 2]), compute.asarray([3, 4])], axis=1)
    Array([[1, 3],
           [2, 4]], dtype=int64)
    """
    if names:
        return renamed(stack, names, arrays, axis=axis, out=out)
    arrays, axis = tuple(arrays), _whole(axis, "stack")
    if not _core.are_arrays(*arrays):
        arrays = arrays_of(*arrays)
    return _ops.stack(*arrays, axis=axis) if out is None else _ops.stack(*arrays, axis=axis, out=out)


def unstack(x, /, axis=0):
    """The parts of `x` along an axis, as a tuple of views without it.

    >>> compute.unstack([[1, 2], [3, 4]])
    (Array([1, 2], dtype=int64), Array([3, 4], dtype=int64))
    """
    x = array_of(x)
    axis = _axis(axis, x.ndim, "unstack")
    before = (slice(None),) * axis
    return tuple(x[before + (i,)] for i in range(x.shape[axis]))


def expand_dims(x, /, axis=None, **names):
    """A view with new axes of extent 1 at the positions `axis` of the result.

    >>> compute.expand_dims([1, 2], 0).shape
    (1, 2)
    """
    if names:
        return renamed(expand_dims, names, x, axis=axis)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    x = array_of(x)
    rank = x.ndim + len(axes)
    new = _axes(axes, rank, "expand_dims")
    return x[tuple(None if i in new else slice(None) for i in range(rank))]


def squeeze(x, /, axis=None, **names):
    """A view without the axes `axis`, which have extent 1, or without all such axes.

    axis   an axis or a tuple of axes; PyTorch's `dim` keeps axes with another extent

    Raises ValueError for an axis with another extent.

    >>> compute.squeeze(compute.ones((1, 3, 1))).shape
    (3,)
    """
    if names:
        x, known = array_of(x), resolved(squeeze, names, {"axis": axis})
        return squeeze(x, tuple(i for i in _axes(known["axis"], x.ndim, "squeeze") if x.shape[i] == 1))
    x = array_of(x)
    axes = [i for i, n in enumerate(x.shape) if n == 1] if axis is None else _axes(axis, x.ndim, "squeeze")
    for one in axes:
        if x.shape[one] != 1:
            raise ValueError(f"squeeze: axis {one} has extent {x.shape[one]}; expected 1")
    return x[tuple(0 if i in axes else slice(None) for i in range(x.ndim))]


def flip(x, /, axis=None, **names):
    """A view with the order of the elements along the axes reversed; without axes, along all.

    >>> compute.flip([1, 2, 3])
    Array([3, 2, 1], dtype=int64)
    """
    if names:
        return renamed(flip, names, x, axis=axis)
    x = array_of(x)
    rank = x.ndim
    axes = range(rank) if axis is None else _axes(axis, rank, "flip")
    return x[tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(rank))]


def permute_dims(x, /, axes=None, **names):
    """A view whose axis i is axis `axes[i]` of `x`.

    Raises ValueError if `axes` does not name each axis once.

    >>> compute.permute_dims(compute.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    if names:
        return renamed(permute_dims, names, x, axes=axes)
    x = array_of(x)
    if sorted(_axes(axes, x.ndim, "permute_dims")) != list(range(x.ndim)):
        raise ValueError(f"permute_dims: {axes} does not name each of {x.ndim} axes")
    return _core.permute_view(x, axes)


def moveaxis(x, /, source, destination):
    """A view with the axes `source` moved to the positions `destination`.

    >>> compute.moveaxis(compute.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = array_of(x)
    sources = _axes(source, x.ndim, "moveaxis")
    destinations = _axes(destination, x.ndim, "moveaxis")
    if len(sources) != len(destinations):
        raise ValueError("moveaxis: source and destination have different lengths")
    order = [i for i in range(x.ndim) if i not in sources]
    for at, axis in sorted(zip(destinations, sources)):
        order.insert(at, axis)
    return _core.permute_view(x, order)


def matrix_transpose(x, /):
    """A view with the last two axes exchanged.

    Raises ValueError for less than two axes.

    >>> compute.matrix_transpose([[1, 2], [3, 4]])
    Array([[1, 3],
           [2, 4]], dtype=int64)
    """
    return array_of(x).mT


def roll(x, /, shift=None, axis=None, **names):
    """`x` with its elements shifted along axes; without axes, in row-major order.

    shift   how far, an integer or one for each axis
    axis    an axis or a tuple of axes

    >>> compute.roll(compute.arange(4), 1)
    Array([3, 0, 1, 2], dtype=int64)
    """
    if names:
        return renamed(roll, names, x, shift=shift, axis=axis)
    if shift is None:
        raise TypeError("roll: shift is missing; expected an integer, or one for each axis")
    x = array_of(x)
    if axis is None:
        if isinstance(shift, tuple):
            raise ValueError("roll: several shifts need as many axes")
        return reshape(_ops.roll(_flat(x), shift=shift, axis=0), x.shape) if x.size else _ops.copy(x)
    axes = axis if isinstance(axis, tuple) else (axis,)
    shifts = shift if isinstance(shift, tuple) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        raise ValueError("roll: shift and axis have different lengths")
    for one_shift, one_axis in zip(shifts, axes):
        x = _ops.roll(x, shift=one_shift, axis=one_axis)
    return x


def repeat(x, /, repeats, axis=None):
    """Each element of `x` along `axis` repeated; without an axis, of the flattened array.

    repeats   how often, an integer or one for each element
    axis      an axis

    Raises ValueError for negative numbers.

    >>> compute.repeat(compute.asarray([1, 2]), [2, 1])
    Array([1, 1, 2], dtype=int64)
    """
    x = array_of(x)
    if axis is None:
        x, axis = _flat(x), 0
    axis = _axis(axis, x.ndim, "repeat")
    if is_values(repeats):
        repeats, = arrays_of(repeats, device=x.device)
    if not isinstance(repeats, Array):
        if hasattr(repeats, "__len__"):
            no_array(repeats)
        return _ops.repeat(x, repeats=repeats, axis=axis)
    if repeats.dtype not in _dtypes.INTEGERS:
        raise TypeError(f"repeat: repeats has the dtype {repeats.dtype.name}; expected integers")
    if repeats.ndim > 1 or repeats.size not in (1, x.shape[axis]):
        raise ValueError(f"repeat: {repeats.shape} repeats for an axis of extent {x.shape[axis]}")
    if repeats.size == 1:
        return _ops.repeat(x, repeats=int(_flat(repeats)[0]), axis=axis)
    if repeats.dtype in _dtypes.SIGNED and repeats.size and int(_ops.min(repeats)) < 0:
        raise ValueError("repeat: a number of repeats is negative")
    ends = _ops.cumulative_sum(_ops.cast(repeats, dtype=_dtypes.int64), axis=0)
    count = int(ends[-1]) if ends.size else 0
    ended = _creation.zeros((count + 1,), dtype=_dtypes.int64, device=x.device)  # how many parts end at each position
    _ops.scatter(ended, ends, 1, axis=0, reduction="add", out=ended)
    return _ops.take(x, _ops.cumulative_sum(ended, axis=0)[:count], axis=axis)


def tile(x, /, repetitions=None, **names):
    """Copies of `x` side by side.

    >>> compute.tile([1, 2], 2)
    Array([1, 2, 1, 2], dtype=int64)
    """
    if names:
        return renamed(tile, names, x, repetitions=repetitions)
    repetitions = tuple(repetitions) if isinstance(repetitions, (tuple, list)) else (repetitions,)
    x = array_of(x)
    rank = max(x.ndim, len(repetitions))
    repetitions = (1,) * (rank - len(repetitions)) + repetitions
    if x.ndim < rank:
        x = expand_dims(x, tuple(range(rank - x.ndim)))
    return _ops.tile(x, repetitions=repetitions) if rank else _ops.copy(x)


def pad(x, pad_width, /, mode="constant", constant_values=0, **names):
    """`x` with more elements around it.

    `pad_width` is a number for both ends of all axes, (before, after) for all axes, or one such pair for each axis. New
    elements are `constant_values` with the mode "constant", a number or like `pad_width`, else elements of `x`: the
    nearest with "edge", the mirrored ones with "reflect" (the last element is not repeated) and "symmetric" (it is),
    those of the other end with "wrap".

    >>> compute.pad(compute.asarray([1, 2]), (1, 2), constant_values=9)
    Array([9, 1, 2, 9, 9], dtype=int64)
    """
    if names:
        return renamed(pad, names, x, pad_width, mode=mode, constant_values=constant_values)
    x = array_of(x)
    widths = _widths(pad_width, x.ndim)
    if mode == "constant" and isinstance(constant_values, (tuple, list)):
        return _padded(x, widths, constant_values)
    if mode == "constant":
        return _ops.pad(x, pads_begin=[before for before, _ in widths], pads_end=[after for _, after in widths],
                        value=constant_values)
    if mode not in _PAD_INDICES:
        raise ValueError(f"pad: mode is {mode!r}; expected 'constant', {', '.join(map(repr, _PAD_INDICES))}")
    extra = 1 if mode == "reflect" else 0
    if isinstance(x, Array) and (axes := _gatherable(x, widths)) is not None:
        return _gathered(x, widths, mode, *axes)
    if isinstance(x, Array) and all(max(width) <= n - extra for width, n in zip(widths, x.shape)) and any(sum(width) for width in widths):
        return _continued(x, widths, mode)
    for axis, (before, after) in enumerate(widths):
        if before == after == 0:
            continue
        n = x.shape[axis]
        if n == 0:
            raise ValueError(f"pad: axis {axis} has no elements to repeat")
        places = _creation.arange(-before, n + after, device=x.device)
        x = _ops.take(x, _PAD_INDICES[mode](places, n), axis=axis)
    return x if any(sum(width) for width in widths) else _ops.copy(x)


def _gatherable(x, widths):
    """The first axis that is padded and the end of them, if gathers make the padding faster than copies of parts.

    On cpu they do for small arrays, and where the array does not stay in the cache and many parts have the same indices.
    """
    padded = [axis for axis, width in enumerate(widths) if any(width)]
    if not padded or not x.size or padded[-1] - padded[0] >= 4 or max(x.shape[padded[0]:padded[-1] + 1]) > _SHORT:
        return None
    if x.device.name == "cpu":
        is_faster = x.nbytes <= _SMALL or (x.nbytes >= 8 << 20 and math.prod(x.shape[:padded[0]]) >= 8)
    else:
        is_faster = _is_gpu(x.device)
    return (padded[0], padded[-1] + 1) if is_faster else None


@functools.cache
def _is_gpu(device):
    return device.info()["kind"] in (2, 3)  # not OpenCL on processors


def _gathered(x, widths, mode, first, end):
    if x.device.name == "cpu" and x.nbytes <= _SMALL:  # whole rows last
        for axis in reversed([axis for axis in range(first, end) if any(widths[axis])]):
            x = _ops.take(x, _pad_places(mode, *widths[axis], x.shape[axis], 0, x.device), axis=axis)
        return x
    places = [_pad_places(mode, *widths[axis], x.shape[axis], end - 1 - axis, x.device) for axis in range(first, end)]
    return _ops.gather_at(x, *places, axis=first)


@functools.lru_cache(maxsize=64)
def _pad_places(mode, before, after, n, behind, device):
    """The indices along an axis of the elements that the padded axis has, with `behind` axes behind it."""
    places = [_PAD_INDICES[mode](i, n) for i in range(-before, n + after)]
    return _core.reshape_view(_creation.asarray(places, dtype=_dtypes.int32, device=device), (-1,) + (1,) * behind)


def _padded(x, widths, values):
    """`x` with other numbers at each end of each axis."""
    values = [values] if not any(isinstance(one, (tuple, list)) for one in values) else values
    values = list(values) * x.ndim if len(values) == 1 else values
    for axis, ((before, after), numbers) in enumerate(zip(widths, values)):
        first, last = numbers if len(numbers) == 2 else numbers * 2
        for pads, number in (((before, 0), first), ((0, after), last)):
            begin, end = ([pads[i] if k == axis else 0 for k in range(x.ndim)] for i in range(2))
            x = _ops.pad(x, pads_begin=begin, pads_end=end, value=number)
    return x


def _continued(x, widths, mode):
    """The padding of an array by its own elements, at most as many as there are: copied to the ends of each axis in turn.

    It begins with the last axis, so that the ends of the others are copied as whole rows.
    """
    out = _core.empty([before + n + after for (before, after), n in zip(widths, x.shape)], x.dtype, x.device)
    inner = [slice(before, before + n) for (before, _), n in zip(widths, x.shape)]
    _ops.copy(x, out=out[tuple(inner)])
    for axis in range(x.ndim - 1, -1, -1):
        (before, after), n = widths[axis], x.shape[axis]
        end = before + n
        ends = {"edge": ((before, before + 1, 1), (end - 1, end, 1)),
                "reflect": ((2 * before, before, -1), (end - 2, end - 2 - after, -1)),
                "symmetric": ((2 * before - 1, before - 1, -1), (end - 1, end - 1 - after, -1)),
                "wrap": ((n, end, 1), (before, before + after, 1))}[mode]
        for width, at, (start, stop, step) in ((before, 0, ends[0]), (after, end, ends[1])):
            if width:
                target = out[(*inner[:axis], slice(at, at + width))]
                source = out[(*inner[:axis], slice(start, stop if stop >= 0 else None, step))]
                _ops.copy(source if mode != "edge" else _core.broadcast_view(source, target.shape), out=target)
    return out


_SHORT = 1024  # extents of axes whose indices are kept
_SMALL = 64 << 10  # bytes of arrays that gathers pad on cpu, axis by axis
_PAD_INDICES = {  # of positions that are numbers or an array
    "edge": lambda places, n: min(max(places, 0), n - 1) if isinstance(places, int) else _ops.clip(places, 0, n - 1),
    "reflect": lambda places, n: (n - 1) - abs(places % max(2 * n - 2, 1) - (n - 1)),
    "symmetric": lambda places, n: (2 * n - 1 - abs(2 * (places % (2 * n)) - (2 * n - 1))) // 2,
    "wrap": lambda places, n: places % n,
}


def _widths(widths, rank):
    """The numbers of elements before and behind each axis."""
    if not isinstance(widths, (tuple, list)):
        width = _whole(widths, "pad", "pad_width")
        widths = [(width, width)]
    elif len(widths) == 2 and not any(isinstance(one, (tuple, list)) for one in widths):
        widths = [widths]
    pairs = [tuple(one) if isinstance(one, (tuple, list)) else (one, one) for one in widths]
    if len(pairs) == 1:
        pairs *= rank
    if len(pairs) != rank or any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"pad: pad_width {widths} for {rank} axes; expected (before, after) for each")
    if any(width < 0 for pair in pairs for width in pair):
        raise ValueError(f"pad: pad_width {widths} has a negative number")
    return pairs
