# SPDX-License-Identifier: Apache-2.0
"""Indices that are arrays, and assignment to elements. Integers and slices are in the extension."""
from __future__ import annotations

import builtins
import operator
import re

from . import _core, _creation, _dtypes, _ops
from ._core import Array, array_of
from ._creation import arrays_of, is_values


def _as_index(key):
    """A key as an array, if it is one or a sequence of numbers."""
    if isinstance(key, Array):
        return key
    if isinstance(key, (list, tuple)) and not key:
        return _creation.zeros((0,), dtype=_dtypes.int64)
    if _is_bool(key):
        return _creation.asarray(builtins.bool(key))
    if isinstance(key, (list, tuple)) or hasattr(key, "__dlpack__"):
        return _creation.asarray(key)
    raise IndexError(f"{key!r} is not an index: these are integers, slices, None, ... and arrays of integers or bool")


def _is_bool(key):
    return isinstance(key, builtins.bool) or type(key).__name__ in ("bool", "bool_")  # NumPy's have an __index__


def _is_basic(key):
    return isinstance(key, slice) or key is None or (
        hasattr(key, "__index__") and not (isinstance(key, Array) or _is_bool(key) or hasattr(key, "__dlpack__")))


def _basic(key):
    """A key that the extension takes: it leaves objects with a buffer, such as integers of NumPy, to this module."""
    return key if isinstance(key, slice) or key is None else operator.index(key)


def _expand(x, key):
    """The keys with an ellipsis written out, one for each axis and for each None; masks count as their axes.

    An ellipsis that stands for no axis remains.
    """
    keys = list(key) if isinstance(key, tuple) else [key]
    keys = [one if one is Ellipsis else _basic(one) if _is_basic(one) else _as_index(one) for one in keys]
    used = sum(one.ndim if isinstance(one, Array) and one.dtype is _dtypes.bool else 1
               for one in keys if one is not None and one is not Ellipsis)
    ellipses = [i for i, one in enumerate(keys) if one is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError("an index has at most one ellipsis")
    if used > x.ndim:
        raise IndexError(f"{used} indices for an array with {x.ndim} axes")
    at = ellipses[0] if ellipses else len(keys)
    return keys[:at] + ([slice(None)] * (x.ndim - used) or keys[at:at + 1]) + keys[at + 1:]


def _positions(mask):
    """The indices along each axis of the elements of a mask that are true."""
    indices, count = _ops.nonzero(mask)
    return [indices[i, :int(count)] for i in range(mask.ndim)]


def _check_mask(mask, x, axis):
    if axis + mask.ndim > x.ndim:
        raise IndexError(f"{axis + mask.ndim} indices for an array with {x.ndim} axes")
    for i, extent in enumerate(mask.shape):
        if extent not in (0, x.shape[axis + i]):  # NumPy and the standard let 0 stand for no element
            raise IndexError(f"a mask of the shape {mask.shape} does not fit axis {axis + i} of extent "
                             f"{x.shape[axis + i]}")


class _Plan:
    """An index with arrays: a view with the indexed axes first, their indices, and where the new axes go."""

    def __init__(self, x, keys):
        basic, arrays, axis = [], [], 0  # axis: of the view that the basic keys give
        source = 0
        for one in keys:
            if isinstance(one, Array):
                basic, arrays, axis, source = self._add_array(x, one, basic, arrays, axis, source)
                continue
            basic.append(one)
            if one is None:
                axis += 1
            elif one is not Ellipsis:
                axis += isinstance(one, slice)
                source += 1
        self.view = x[tuple(basic)] if basic else x
        # A mask without axes adds an axis, which the view has with extent 1.
        self.axes = [where for where, _ in arrays]
        self.indices = _broadcast([index for _, index in arrays])
        # Integers count as arrays here, as in NumPy: what stands between the two brings the new axes to the front.
        places = [i for i, one in enumerate(keys) if isinstance(one, Array) or hasattr(one, "__index__")]
        adjacent = places[-1] - places[0] + 1 == len(places)
        self.target = self.axes[0] if adjacent else 0
        rest = [i for i in range(self.view.ndim) if i not in self.axes]
        self.moved = _core.permute_view(self.view, self.axes + rest)

    @staticmethod
    def _add_array(x, one, basic, arrays, axis, source):
        if one.dtype is _dtypes.bool:
            if one.ndim == 0:
                taken = _creation.zeros((1 if one else 0,), dtype=_dtypes.int64, device=x.device)
                return basic + [None], arrays + [(axis, taken)], axis + 1, source
            _check_mask(one, x, source)
            new = [(axis + i, positions) for i, positions in enumerate(_positions(one))]
        elif one.dtype in _dtypes.INTEGERS:
            new = [(axis, one)]
        else:
            raise IndexError(f"arrays of {one.dtype} cannot be indices")
        return basic + [slice(None)] * len(new), arrays + new, axis + len(new), source + len(new)

    def stacked(self):
        """The indices as one array whose last axis has one number for each indexed axis."""
        first = self.indices[0]
        return first[..., None] if len(self.indices) == 1 and first.ndim else stacked(self.indices)

    def place(self, result):
        """Moves the new axes, which are the first ones of `result`, to where they belong."""
        count = self.indices[0].ndim
        order = list(range(count, result.ndim))
        order[self.target:self.target] = range(count)
        return _core.permute_view(result, order)

    def unplace(self, value):
        """The opposite of `place`, for a value that has the shape of the result."""
        count = self.indices[0].ndim
        order = list(range(self.target, self.target + count))
        order += [i for i in range(value.ndim) if i not in order]
        return _core.permute_view(value, order)


def stacked(indices):
    """Indices of several axes as one array for gather_nd, whose last axis has one number for each axis.

    Those of each axis are side by side in memory: they are copied, and read, in one stretch.
    """
    found = _ops.stack(*indices, axis=0)
    return _core.permute_view(found, [*range(1, found.ndim), 0])


def _broadcast(arrays):
    from ._manipulation import broadcast_arrays

    # No axis is as long as the greatest int64, so that greater indices remain out of range.
    fitting = [_ops.minimum(x, 2 ** 63 - 1) if x.dtype is _dtypes.uint64 else x for x in arrays]
    common = [x if x.dtype is _dtypes.int64 else _ops.cast(x, dtype=_dtypes.int64) for x in fitting]
    return broadcast_arrays(*common)


_WHOLE = (_dtypes.int64, _dtypes.int32)


_MOST = 4  # axes that gather_at indexes
_ALL = slice(None)


def neighbours(x, key):
    """For x[i, j], x[:, i] and the like the arrays of integers, one to four, and the first of their axes; else None."""
    if not isinstance(key, tuple) or len(key) > x.ndim:
        return None
    axis = 0
    while axis < len(key) and type(key[axis]) is slice and key[axis] == _ALL:
        axis += 1
    arrays = key[axis:]
    if not 1 <= len(arrays) <= _MOST:
        return None
    for one in arrays:
        if not isinstance(one, Array) or one.dtype not in _WHOLE:
            return None
    return arrays, axis


def _one_array(x, key):
    """For x[i, n] and x[n, i] with an array i of integers and an integer or, behind i, a slice n: a view and i; else None."""
    if not isinstance(key, tuple) or len(key) != 2 or x.ndim < 2:
        return None
    first, second = key
    if isinstance(first, Array):
        if first.dtype in _WHOLE and type(second) in (int, slice):
            return x[:, second], first
    elif type(first) is int and isinstance(second, Array) and second.dtype in _WHOLE:
        return x[first], second
    return None


def _masked(x, mask):
    """x[mask] for a mask of the extents of the first axes of `x`, which are one axis if both arrays can be seen so."""
    if mask.ndim > 1:
        flat = _core.reshape_view_or_none(x, (mask.size, *x.shape[mask.ndim:]))
        row = _core.reshape_view_or_none(mask, (mask.size,))
        if flat is not None and row is not None:
            x, mask = flat, row
    positions = _positions(mask)
    return _ops.take(x, positions[0], axis=0) if len(positions) == 1 else _ops.gather_at(x, *positions)


def _getitem(x, key):
    if isinstance(key, Array) and x.ndim > 0:
        if key.dtype in _WHOLE:
            return _ops.take(x, key, axis=0)
        if key.dtype is _dtypes.bool and 0 < key.ndim <= _MOST and key.shape == x.shape[:key.ndim]:
            return _masked(x, key)
    if (several := neighbours(x, key)) is not None:
        arrays, axis = several
        return _ops.take(x, *arrays, axis=axis) if len(arrays) == 1 else _ops.gather_at(x, *arrays, axis=axis)
    if (one := _one_array(x, key)) is not None:
        return _ops.take(*one, axis=0)
    if isinstance(key, list):
        return x[_as_index(key)]
    keys = _expand(x, key)
    if not any(isinstance(one, Array) for one in keys):
        return x[tuple(keys)]
    plan = _Plan(x, keys)
    first, last = plan.axes[0], plan.axes[-1]
    if last - first + 1 != len(plan.axes) or len(plan.axes) > _MOST:
        return plan.place(_ops.gather_nd(plan.moved, plan.stacked()))
    taken = _ops.gather_at(plan.view, *plan.indices, axis=first)
    if first == plan.target:
        return taken
    end = first + plan.indices[0].ndim
    return _core.permute_view(taken, [*range(first, end), *range(first), *range(end, taken.ndim)])


def _check_assigned(value, target):
    if value.dtype is target.dtype:
        return value
    _dtypes.check_stored(value.dtype, target.dtype)
    return _ops.cast(value, dtype=target.dtype)


def _as_value(value, target):
    """A value to assign, as an array of the target's dtype, or a number."""
    value = _dtypes.number(value)
    if isinstance(value, _dtypes.NUMBERS):
        _dtypes.check_stored(value, target.dtype)
        return builtins.bool(value) if target.dtype is _dtypes.bool else value
    if not isinstance(value, Array):
        numbers = isinstance(value, (list, tuple))  # whose range is checked
        value = _creation.asarray(value, dtype=target.dtype if numbers else None, device=target.device)
        if value.dtype is not target.dtype:
            value = _ops.cast(value, dtype=target.dtype)
    if _creation.is_slot(value):
        _dtypes.check_stored(value.dtype, target.dtype)
        return _creation.fill_by_slot((), value, target.dtype, target.device)
    return _check_assigned(value, target)


def _assign(view, value):
    """Writes a value into all elements of a view."""
    value = _as_value(value, view)
    if not isinstance(value, Array):
        _creation._fill(view, value)
        return
    while value.ndim > view.ndim and value.shape[0] == 1:
        value = value[0]
    if value.shape != view.shape:
        value = _core.broadcast_view(value, view.shape)
    if not _core.is_same_view(value, view):  # as it is after x[key] += 1
        _ops.copy(_apart(value, view), out=view)


def _apart(value, target):
    """A value that shares no memory with what it is written to."""
    return _ops.copy(value) if _core.shares_memory(value, target) else value


def _setitem(x, key, value):
    if isinstance(key, tuple) and len(key) == 1:
        key, = key
    value = _as_value(value, x)
    if (one := _one_array(x, key)) is not None:
        x, key = one
    if isinstance(key, Array) and key.dtype is _dtypes.bool and (not isinstance(value, Array) or value.ndim == 0):
        _check_mask(key, x, 0)
        if key.size == 0:
            return
        mask = _core.reshape_view(_row_major(_apart(key, x)), key.shape + (1,) * (x.ndim - key.ndim))
        if isinstance(value, Array):
            value = _core.broadcast_view(_apart(value, x), x.shape)
        _ops.where(mask, value, x, out=x)
        return
    several = ((key,), 0) if isinstance(key, Array) and key.dtype in _WHOLE and x.ndim else neighbours(x, key)
    if several is not None:
        arrays, axis = several
        if isinstance(value, Array):
            shapes = [one.shape for one in arrays]
            shape = shapes[0] if shapes.count(shapes[0]) == len(shapes) else broadcast_shapes(*shapes)
            value = _apart(_spread(value, x.shape[:axis] + shape + x.shape[axis + len(arrays):], x), x)
        elif x.dtype in _dtypes.INEXACT:
            value = value if isinstance(value, complex) else float(value)
        else:
            _dtypes.check_range(value, x.dtype)
        _ops.scatter_at(x, value, *(_apart(one, x) for one in arrays), axis=axis, out=x)
        return
    keys = _expand(x, key)
    if not any(isinstance(one, Array) for one in keys):
        _assign(x[tuple(keys)], value)
        return
    plan = _Plan(x, keys)
    rest = plan.moved.shape[len(plan.axes):]
    updates = plan.unplace(_spread(value, rest[:plan.target] + plan.indices[0].shape + rest[plan.target:], x))
    if updates.size == 0:
        return
    _ops.scatter_nd(plan.moved, _apart(plan.stacked(), x), _apart(updates, x), out=plan.moved)


def _spread(value, shape, x):
    """A value that is assigned to elements of `x`, repeated to their shape."""
    if not isinstance(value, Array):
        value = _creation.full((), value, dtype=x.dtype, device=x.device)
    while value.ndim > len(shape) and value.shape[0] == 1:
        value = value[0]
    return value if value.shape == shape else _core.broadcast_view(value, shape)


def _row_major(x):
    found = _core.reshape_view_or_none(x, x.shape)
    return _ops.copy(x) if found is None else found


_KEPT = re.compile(r"\bout is (.+), but the result is (.+)$", re.MULTILINE)


def _in_place(name, x, other, error):
    """Called when an operator could not write to `x` directly; without an error where `other` may overlap `x`."""
    if error is None:
        try:
            return _ops.TABLE[name]["run"](x, _ops.copy(other), out=x)
        except (TypeError, ValueError) as found:
            error = found
    message = _KEPT.sub(r"the result is \2, but x, which keeps its shape and dtype, is \1", str(error))
    error.args = (re.sub(r"\bout\b", "x", message),)
    raise error


def _in_place_matmul(x, other):
    result = _ops.matmul(x, other)
    if result.shape != x.shape:
        raise ValueError(f"matmul: the result has the shape {result.shape}, not {x.shape}")
    _assign(x, result)
    return x


_core.hooks.update(getitem=_getitem, setitem=_setitem, assign=_assign, in_place=_in_place,
                   in_place_matmul=_in_place_matmul)


# ---- Functions ------------------------------------------------------------------------------------------------------

from ._manipulation import _axis, _flat, _whole, broadcast_shapes  # noqa: E402


def _placed(indices, x):
    """Indices as an array on the device of `x`, if they are a number or values."""
    if isinstance(indices, Array):
        return indices
    if isinstance(indices, (list, tuple)) and not indices:
        return _creation.zeros((0,), dtype=_dtypes.int64, device=x.device)
    if is_values(indices):
        return arrays_of(indices, device=x.device)[0]
    number = _dtypes.number(indices)
    return _creation.asarray(number, device=x.device) if isinstance(number, int) else indices


def take(x, /, indices, axis=None, out=None):
    """The elements of `x` at `indices` along `axis`, or of the flattened array without an axis.

    indices   integers, in [-n, n) for an axis of extent n
    axis      an axis, or None for the flattened array
    out       an array for the result

    Raises KernelError, an IndexError, where the result is used if an index is out of range.

    >>> compute.take(compute.asarray([10, 20, 30]), [2, 0])
    Array([30, 10], dtype=int64)
    """
    x = array_of(x)
    if axis is None:
        x, axis = x if x.ndim == 1 else _flat(x), 0
    if not isinstance(indices, Array):
        indices = _placed(indices, x)
    return _ops.take(x, indices, axis=_whole(axis, "take"), out=out)


def take_along_axis(x, /, indices, axis=-1):
    """The elements of `x` at `indices` along `axis`, where `indices` has as many axes as `x`.

    Without an axis, of the flattened array; `indices` is then a vector.

    >>> compute.take_along_axis(compute.asarray([[3, 1]]), [[1, 0]])
    Array([[1, 3]], dtype=int64)
    """
    x = array_of(x)
    indices = _placed(indices, x)
    if axis is None:
        x, axis = _flat(x), 0
    return _ops.take_along_axis(x, indices, axis=_whole(axis, "take_along_axis"))


def gather_at(x, /, *indices, axis=0):
    """x[..., i, j, ...] for one to four arrays of indices, which broadcast, of the axes from `axis` on.

    >>> compute.gather_at([[1, 2], [3, 4]], [0, 1], [1, 0])
    Array([2, 3], dtype=int64)
    """
    x = array_of(x)
    return _ops.gather_at(x, *(_placed(one, x) for one in indices), axis=_whole(axis, "gather_at"))


def gather_nd(x, indices, /):
    """x[i0, i1, ...] for the k indices along the last axis of `indices`, which name the first k axes of `x`.

    The result has the shape of `indices` without its last axis, then the other axes of `x`.

    >>> compute.gather_nd([[1, 2], [3, 4]], [[0, 1], [1, 0]])
    Array([2, 3], dtype=int64)
    """
    x = array_of(x)
    return _ops.gather_nd(x, _placed(indices, x))


def _updates(updates, x, shape):
    """What is written: an array or a number, broadcast to `shape`."""
    if not isinstance(updates, Array):
        updates = _dtypes.number(updates)
        if isinstance(updates, _dtypes.NUMBERS):
            updates = _creation.full((), _as_value(updates, x), dtype=x.dtype, device=x.device)
        _, updates = arrays_of(x, updates)
    return updates if updates.shape == shape else _core.broadcast_view(updates, shape)


def scatter(x, /, *operands, axis=-1, reduction="set", **names):
    """`x` with `updates` written at `indices` along `axis`, as a new array: the opposite of take_along_axis.

    `indices` has as many axes as `x`, and is no longer along the other axes. `updates` broadcasts to its shape. It is
    written ("set"), or combined with what is there by "add", "mul", "min" or "max". Of several updates of one element
    "set" keeps any one. Negative indices count from the end. With an axis in front of the indices it is PyTorch's
    scatter(x, dim, index, src).

    >>> compute.scatter(compute.asarray([1, 2, 3]), [0, 2], 10, reduction="add")
    Array([11,  2, 13], dtype=int64)
    """
    x = array_of(x)
    if names or len(operands) == 3:
        return written_along(x, *operands, **names)
    indices, updates = operands
    axis, indices = _whole(axis, "scatter"), _placed(indices, x)
    return _ops.scatter(x, indices, _updates(updates, x, array_of(indices).shape), axis=axis, reduction=reduction)


_REDUCTIONS = {None: "set", "add": "add", "sum": "add", "multiply": "mul", "prod": "mul", "amax": "max", "amin": "min"}


def written_along(x, dim, index, src=None, *, value=None, reduce=None, out=None):
    """scatter with PyTorch's arguments. `src` may be longer than the indices; `out` is None or `x`."""
    if not isinstance(index, Array):
        index = array_of(_placed(index, x))
    updates = value if src is None else src if isinstance(src, Array) else _dtypes.number(src)
    if isinstance(updates, _dtypes.NUMBERS):
        updates = _as_value(updates, x)  # which the op takes without an array of it
    else:
        updates = arrays_of(x, updates)[1]
        if updates.shape != index.shape:
            updates = _core.broadcast_view(updates[tuple([slice(n) for n in index.shape])], index.shape)
    axis = _whole(dim, "scatter")
    if out is not None:
        index, updates = _apart(index, out), _apart(updates, out) if isinstance(updates, Array) else updates
    if reduce is None:
        return _ops.scatter(x, index, updates, axis=axis, out=out)
    return _ops.scatter(x, index, updates, axis=axis, reduction=_REDUCTIONS.get(reduce, reduce), out=out)


def scatter_at(x, updates, /, *indices, axis=0, reduction="set"):
    """`x` with `updates` written where gather_at would read, as a new array.

    `updates` broadcasts to the shape of gather_at(x, *indices, axis=axis). For `reduction` see scatter.

    >>> compute.scatter_at([[1, 2], [3, 4]], 9, [0, 1], [1, 0])
    Array([[1, 9],
           [9, 4]], dtype=int64)
    """
    x = array_of(x)
    indices, axis = [array_of(_placed(one, x)) for one in indices], _axis(axis, x.ndim, "scatter_at")
    shape = broadcast_shapes(*(one.shape for one in indices))
    updates = _updates(updates, x, x.shape[:axis] + shape + x.shape[axis + len(indices):])
    return _ops.scatter_at(x, updates, *indices, axis=axis, reduction=reduction)


def scatter_nd(x, indices, updates, /, *, reduction="set"):
    """`x` with `updates` written where gather_nd would read, as a new array.

    `updates` broadcasts to the shape of gather_nd(x, indices). For `reduction` see scatter.

    >>> compute.scatter_nd(compute.asarray([1, 2, 3]), [[0], [0]], [10, 20], reduction="add")
    Array([31,  2,  3], dtype=int64)
    """
    x = array_of(x)
    indices = array_of(_placed(indices, x))
    shape, whole = indices.shape, x.shape
    shape = shape[:-1] + whole[shape[-1]:] if shape else shape
    return _ops.scatter_nd(x, indices, _updates(updates, x, shape), reduction=reduction)
