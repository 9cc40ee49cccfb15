# SPDX-License-Identifier: Apache-2.0
"""Creation functions of the standard."""
from __future__ import annotations

import array as _array
import builtins
import math
import struct
import sys

from . import _core, _dtypes, _ops
from ._core import Array, array_of
from ._dtypes import DEFAULT_INTEGER
from ._errors import as_float, check_extents, no_array, no_gradient, no_integers, renamed

_CODES = {_dtypes.int8: "b", _dtypes.int16: "h", _dtypes.int32: "i", _dtypes.int64: "q", _dtypes.uint8: "B",
          _dtypes.uint16: "H", _dtypes.uint32: "I", _dtypes.uint64: "Q", _dtypes.float32: "f", _dtypes.float64: "d"}


def _shape(shape):
    if hasattr(shape, "__index__"):
        return (shape,)
    try:
        return tuple(shape)
    except TypeError:
        no_integers(shape, TypeError)


def _dtype_of_number(number):
    if isinstance(number, builtins.bool):
        return _dtypes.bool
    if isinstance(number, int):
        return DEFAULT_INTEGER if number < 2 ** 63 else _dtypes.uint64
    if isinstance(number, float):
        return _dtypes.DEFAULT_FLOAT
    if isinstance(number, complex):
        return _dtypes.DEFAULT_COMPLEX
    raise TypeError(f"{number!r} is not a number")


def _also(shape, more, dtype):
    """The shape and the dtype of a call such as zeros((2, 3), int), as NumPy has it, or zeros(2, 3), as PyTorch has it."""
    if dtype is None and len(more) == 1 and (isinstance(more[0], type) or not hasattr(more[0], "__index__")):
        return shape, _dtypes._from_object(more[0])
    return (shape, *more), dtype


def _extents_of(name, shape, names):
    """The shape of a call with PyTorch's `size`, and what it ignores."""
    for one in names:
        if one not in ("size", "layout", "memory_format", "pin_memory", "names", "generator"):
            raise TypeError(f"{name}() got an unexpected keyword argument {one!r}")
    shape = names.get("size", shape)
    if shape is None:
        raise TypeError(f"{name}() needs a shape")
    return shape


def empty(shape=None, *more, dtype=None, device=None, requires_grad=False, **names):
    """An array with undefined elements. For `more` see zeros.

    shape    the extents, or a single one
    dtype    by default float32, or what set_default_dtype says
    device   a Device or its name, by default the default device

    Raises ValueError for a negative extent, and MemoryError if the device is full.

    >>> compute.empty((2, 3)).shape
    (2, 3)
    """
    if requires_grad:
        no_gradient(requires_grad)
    if names or shape is None:
        shape = _extents_of("empty", shape, names)
    if more:
        shape, dtype = _also(shape, more, dtype)
    return _core.empty(shape, dtype or _dtypes.DEFAULT_FLOAT, device)


def full(shape=None, fill_value=None, dtype=None, *, device=None, requires_grad=False, **names):
    """An array whose elements all are `fill_value`, which may also be an array or a list that broadcasts to the shape.

    shape        the extents, or a single one
    fill_value   a number, or an array or a list that broadcasts to the shape
    dtype        by default that of the value
    device       a Device or its name, by default the default device

    Raises OverflowError for an integer that does not fit in the dtype.

    >>> compute.full((2, 2), 7)
    Array([[7, 7],
           [7, 7]], dtype=int64)
    """
    if requires_grad:
        no_gradient(requires_grad)
    if names or shape is None:
        shape = _extents_of("full", shape, names)
    if fill_value is None:
        raise TypeError("full() needs a value")
    if hasattr(fill_value, "backward"):  # a variable of compute.grad
        return _repeated(fill_value, _shape(shape), dtype or fill_value.dtype, device or fill_value.device)
    if not isinstance(fill_value, _dtypes.NUMBERS):
        if is_values(fill_value) or isinstance(fill_value, Array) and fill_value.size != 1:
            return _ops.copy(_core.broadcast_view(asarray(fill_value, dtype=dtype, device=device), _shape(shape)))
        if isinstance(fill_value, Array) and is_slot(fill_value):
            return fill_by_slot(shape, fill_value, dtype or fill_value.dtype, device)
        if isinstance(fill_value, Array) and (dtype is None or _dtypes._from_object(dtype) is fill_value.dtype):
            return _repeated(fill_value, _shape(shape), fill_value.dtype, _core.device(device))
        fill_value = fill_value.item() if isinstance(fill_value, Array) else _dtypes.number(fill_value)
    if dtype is None:
        dtype = _dtype_of_number(fill_value)
    out = _core.empty(shape, dtype, device)
    return _fill(out, fill_value)


def is_slot(x):
    """Whether an array is a slot of a graph: these have no memory."""
    return x.ndim == 0 and not _core.shares_memory(x, x)


def fill_by_slot(shape, slot, dtype, device):
    """An array whose elements are the value of a slot. An op of slots alone would run on the host, outside of the graph."""
    out = _core.empty(shape, dtype, device)
    return _ops.fill(shape=out.shape, value=slot, dtype=out.dtype, out=out)


def _repeated(x, shape, dtype, device):
    """An array or a variable that has one element, as all elements of another array."""
    x = _core.reshape_view(x, ())
    x = x if x.dtype is dtype else _ops.cast(x, dtype=_dtypes._from_object(dtype))
    return _ops.copy(_core.broadcast_view(x if x.device is device else x.to_device(device), shape))


def _fill(out, value):
    if out.dtype is _dtypes.bool:
        value = builtins.bool(value)
    elif isinstance(value, builtins.bool):
        value = int(value)
    return _ops.fill(shape=out.shape, value=value, dtype=out.dtype, out=out)


def zeros(shape=None, *more, dtype=None, device=None, requires_grad=False, **names):
    """An array of zeros. Behind the shape there may be a dtype, or more extents.

    shape    the extents, or a single one
    dtype    by default float32, or what set_default_dtype says
    device   a Device or its name, by default the default device

    Raises ValueError for a negative extent, and MemoryError if the device is full.

    >>> compute.zeros((2, 3), compute.int32).shape == compute.zeros(2, 3).shape
    True
    """
    if requires_grad:
        no_gradient(requires_grad)
    if names or shape is None:
        shape = _extents_of("zeros", shape, names)
    if more:
        shape, dtype = _also(shape, more, dtype)
    return _fill(_core.empty(shape, dtype or _dtypes.DEFAULT_FLOAT, device), 0)


def ones(shape=None, *more, dtype=None, device=None, requires_grad=False, **names):
    """An array of ones. For `more` see zeros.

    >>> compute.ones(2, dtype=compute.int32)
    Array([1, 1], dtype=int32)
    """
    if requires_grad:
        no_gradient(requires_grad)
    if names or shape is None:
        shape = _extents_of("ones", shape, names)
    if more:
        shape, dtype = _also(shape, more, dtype)
    return _fill(_core.empty(shape, dtype or _dtypes.DEFAULT_FLOAT, device), 1)


def empty_like(x, /, dtype=None, *, device=None, requires_grad=False, **names):
    """An array of the shape of `x` with undefined elements.

    >>> compute.empty_like([1.5, 2.5]).shape
    (2,)
    """
    if requires_grad or names:
        no_gradient(requires_grad)
        _extents_of("empty_like", (), names)
    x = array_of(x)
    return _core.empty(x.shape, dtype or x.dtype, device or x.device)


def full_like(x, /, fill_value, dtype=None, *, device=None, requires_grad=False, **names):
    """An array of the shape of `x` whose elements all are `fill_value`.

    >>> compute.full_like(compute.asarray([1, 2]), 7)
    Array([7, 7], dtype=int64)
    """
    if requires_grad or names:
        no_gradient(requires_grad)
        _extents_of("full_like", (), names)
    x = array_of(x)
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device or x.device)


def zeros_like(x, /, dtype=None, *, device=None, requires_grad=False, **names):
    """An array of zeros of the shape of `x`.

    >>> compute.zeros_like([1.5, 2.5])
    Array([0., 0.], dtype=float32)
    """
    if requires_grad or names:
        no_gradient(requires_grad)
        _extents_of("zeros_like", (), names)
    return _fill(empty_like(x, dtype=dtype, device=device), 0)


def ones_like(x, /, dtype=None, *, device=None, requires_grad=False, **names):
    """An array of ones of the shape of `x`.

    >>> compute.ones_like([1.5, 2.5])
    Array([1., 1.], dtype=float32)
    """
    if requires_grad or names:
        no_gradient(requires_grad)
        _extents_of("ones_like", (), names)
    return _fill(empty_like(x, dtype=dtype, device=device), 1)


def arange(start=0, stop=None, step=1, dtype=None, *, device=None, **names):
    """Evenly spaced numbers from `start` up to, and without, `stop`.

    With one number, from 0 up to it. Without a dtype, they are integers if all arguments are. Raises ValueError for a
    step of 0.

    >>> compute.arange(2, 10, 3)
    Array([2, 5, 8], dtype=int64)
    """
    if names:
        return renamed(arange, names, start, stop=stop, step=step, dtype=dtype, device=device)
    if stop is None:
        start, stop = 0, start
    whole = type(start) is type(stop) is type(step) is int
    if not whole:
        start, stop, step = [x.item() if isinstance(x, Array) else _dtypes.number(x) for x in (start, stop, step)]
        whole = isinstance(start, int) and isinstance(stop, int) and isinstance(step, int)
    if step == 0:
        raise ValueError("arange: step is 0")
    if dtype is None:
        dtype = DEFAULT_INTEGER if whole else _dtypes.DEFAULT_FLOAT
    if whole:
        size = max(-((start - stop) // step), 0)
    else:
        size = max(math.ceil((stop - start) / step), 0)
    out = _core.empty((size,), dtype, device)
    if size and out.dtype in _dtypes.INTEGERS:
        for end in (start, start + (size - 1) * step):
            _dtypes.check_range(int(end), out.dtype)
    return _ops.arange(start=start, step=step, size=size, dtype=out.dtype, out=out)


def linspace(start, stop=None, num=50, endpoint=True, *, dtype=None, device=None, retstep=False, **names):
    """`num` evenly spaced numbers from `start` to `stop`, which is among them if `endpoint` is true.

    With `retstep`, also their distance. Integers are rounded down from float64. Raises ValueError for a negative `num`.
    PyTorch's `end` is `stop`, `steps` is `num`.

    >>> compute.linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    if names:
        return renamed(linspace, names, start, stop=stop, num=num, endpoint=endpoint, dtype=dtype, device=device, retstep=retstep)
    are_plain = type(start) in (int, float) and type(stop) in (int, float)
    if not are_plain:
        start, stop = (x.item() if isinstance(x, Array) else _dtypes.number(x) for x in (start, stop))
    if stop is None:
        raise TypeError("linspace: stop is missing")
    if dtype is None:
        dtype = _dtypes.DEFAULT_FLOAT if are_plain else _dtypes.DEFAULT_COMPLEX if isinstance(start, complex) or isinstance(stop, complex) else _dtypes.DEFAULT_FLOAT
    try:
        out = _core.empty((num,), dtype, device)
    except ValueError:
        check_extents(num=num)
        raise
    if out.dtype in _dtypes.INTEGERS:
        for end in (start, stop):
            _dtypes.check_range(math.floor(end), out.dtype)
        out = _ops.cast(_ops.floor(linspace(start, stop, num, endpoint, dtype=_dtypes.float64, device=device)), dtype=out.dtype, out=out)
    else:
        out = _ops.linspace(start=start, stop=stop, size=num, endpoint=builtins.bool(endpoint), dtype=out.dtype, out=out)
    if not retstep:
        return out
    gaps = num - 1 if endpoint else num
    return out, (stop - start) / gaps if gaps > 0 else math.nan


def eye(n_rows, n_cols=None, /, k=0, dtype=None, *, device=None):
    """A matrix with ones on its `k`-th diagonal and zeros elsewhere.

    n_rows   the number of rows
    n_cols   the number of columns, by default as many
    k        the diagonal: 0 for the main one, positive above it

    Raises ValueError for a negative number of rows or columns.

    >>> compute.eye(2, dtype=int)
    Array([[1, 0],
           [0, 1]], dtype=int64)
    """
    columns = n_rows if n_cols is None else n_cols
    try:
        out = _core.empty((n_rows, columns), dtype or _dtypes.DEFAULT_FLOAT, device)
    except ValueError:
        check_extents(n_rows=n_rows, n_cols=columns)
        raise
    k = max(-n_rows, min(k, columns))  # no diagonal is farther out
    if out.device.name != "cpu" or out.dtype in _dtypes.FLOAT8 or out.size <= 2048:
        return _ops.eye(rows=n_rows, columns=columns, k=k, dtype=out.dtype, out=out)
    _fill(out, 0)  # processors fill much memory faster than they compute positions
    size = min(n_rows + min(k, 0), columns - max(k, 0))
    if size > 0:
        start = max(k, 0) - min(k, 0) * columns
        _fill(_core.strided_view(out, out.dtype, (size,), (columns + 1,), start * out.itemsize), 1)
    return out


def tril(x, /, k=0, **names):
    """`x` on and below the `k`-th diagonal of its matrices, zeros elsewhere.

    >>> compute.tril([[1, 2], [3, 4]])
    Array([[1, 0],
           [3, 4]], dtype=int64)
    """
    if names:
        return renamed(tril, names, x, k=k)
    return _ops.tril(x, k=k)


def triu(x, /, k=0, **names):
    """`x` on and above the `k`-th diagonal of its matrices, zeros elsewhere.

    >>> compute.triu([[1, 2], [3, 4]])
    Array([[1, 2],
           [0, 4]], dtype=int64)
    """
    if names:
        return renamed(triu, names, x, k=k)
    return _ops.triu(x, k=k)


def meshgrid(*arrays, indexing="xy", sparse=False, copy=True):
    """Coordinate arrays from coordinate vectors.

    With "xy" the first two axes are exchanged, as images have them. With `sparse`, arrays that broadcast to these. Raises ValueError for arrays of different dtypes or
    with several axes.

    >>> compute.meshgrid([1, 2], [3])
    (Array([[1, 2]], dtype=int64), Array([[3, 3]], dtype=int64))
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing is 'xy' or 'ij', not {indexing!r}")
    arrays = [array_of(x) for x in arrays]
    if len({x.dtype for x in arrays}) > 1:
        raise ValueError("meshgrid: the arrays have different dtypes")
    if any(x.ndim > 1 for x in arrays):
        raise ValueError("meshgrid: the arrays have more than one axis")
    order = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        order[0], order[1] = 1, 0
    shape = tuple(arrays[i].size for i in order)
    result = []
    for i, x in enumerate(arrays):
        axes = [1] * len(arrays)
        axes[order.index(i)] = x.size
        line = _core.reshape_view(x, axes)
        line = line if sparse else _core.broadcast_view(line, shape)
        result.append(_ops.copy(line) if copy else line)
    return tuple(result)


# ---- From Python and other libraries --------------------------------------------------------------------------------


def _shape_of(obj):
    shape = []
    while isinstance(obj, (list, tuple)):
        shape.append(len(obj))
        if not obj:
            break
        obj = obj[0]
    return tuple(shape)


def _flatten(obj, shape, axis, out):
    """Appends the numbers of nested sequences, all of the same lengths, to `out`."""
    if axis == len(shape):
        if isinstance(obj, (list, tuple)):
            raise ValueError("asarray: the sequences have different depths")
        out.append(obj)
        return
    if not isinstance(obj, (list, tuple)) or len(obj) != shape[axis]:
        raise ValueError("asarray: the sequences have different lengths")
    if axis == len(shape) - 1:
        if any(isinstance(x, (list, tuple)) for x in obj):
            raise ValueError("asarray: the sequences have different depths")
        out.extend(obj)
        return
    for one in obj:
        _flatten(one, shape, axis + 1, out)


def _common_dtype(numbers):
    kinds = {type(x) for x in numbers}
    if not kinds:
        return _dtypes.DEFAULT_FLOAT
    for kind in kinds:
        if not issubclass(kind, (builtins.bool, int, float, complex)):
            hint = "; compute.stack joins variables" if kind.__name__ == "Variable" else ""
            hint = hint or "; arrays hold numbers, say the positions of texts in a list" * (kind in (str, bytes))
            raise TypeError(f"asarray: {kind.__name__} is not a number{hint}")
    if any(issubclass(kind, complex) for kind in kinds):
        return _dtypes.DEFAULT_COMPLEX
    if any(issubclass(kind, float) for kind in kinds):
        return _dtypes.DEFAULT_FLOAT
    if all(issubclass(kind, builtins.bool) for kind in kinds):
        return _dtypes.bool
    return _dtypes.uint64 if max(numbers) >= 2 ** 63 else DEFAULT_INTEGER


def _pack(numbers, dtype):
    """The numbers as bytes of a dtype of the same or of a wider kind, and this dtype."""
    if dtype is _dtypes.bool:
        return bytes(map(builtins.bool, numbers)), dtype
    if dtype in _dtypes.INTEGERS:
        whole = [int(x) for x in numbers]
        for end in (min(whole, default=0), max(whole, default=0)):
            _dtypes.check_range(end, dtype)
        return _array.array(_CODES[dtype], whole), dtype
    if dtype in _dtypes.COMPLEX:
        parts = [part for z in (as_float(x, complex) for x in numbers) for part in (z.real, z.imag)]
        return _array.array("f" if dtype is _dtypes.complex64 else "d", parts), dtype
    if dtype is _dtypes.float16:
        return struct.pack(f"{len(numbers)}e", *map(_dtypes.in_float16, numbers)), dtype
    if dtype in _dtypes.FLOAT8:
        return bytes(_dtypes.in_float8(as_float(x), dtype) for x in numbers), dtype
    if dtype is _dtypes.bfloat16:
        dtype = _dtypes.float32
    return _array.array(_CODES[dtype], map(as_float, numbers)), dtype


_FORMATS = {**_CODES, _dtypes.bool: "?", _dtypes.float16: "e", _dtypes.complex64: "2f", _dtypes.complex128: "2d"}


def bytes_of(number, dtype):
    """The bytes of a number, as an element of a dtype. A float is no integer, and a complex number is not real."""
    if isinstance(number, int):
        _dtypes.check_range(number, dtype)
    elif dtype in _dtypes.INTEGERS or (isinstance(number, complex) and dtype not in _dtypes.COMPLEX):
        raise TypeError(f"the number {number!r} is not of the dtype {dtype.name}; convert it")
    if dtype is _dtypes.bfloat16:
        return struct.pack("H", _dtypes.in_bfloat16(number))
    if dtype in _dtypes.FLOAT8:
        return bytes([_dtypes.in_float8(number, dtype)])
    if dtype in _dtypes.COMPLEX:
        number = complex(number)
        return struct.pack(_FORMATS[dtype], number.real, number.imag)
    try:
        return struct.pack(_FORMATS[dtype], number)
    except OverflowError:  # struct does not round to infinities
        return struct.pack(_FORMATS[dtype], math.copysign(math.inf, number))


def _from_numbers(obj, dtype, device):
    x = _core.from_sequence(obj, dtype, device)
    if x is not None:
        return x if dtype is None or x.dtype is dtype else _ops.cast(x, dtype=dtype)
    shape = _shape_of(obj)
    numbers = []
    _flatten(obj, shape, 0, numbers)
    if any(isinstance(x, Array) or hasattr(x, "__dlpack__") or _is_buffer(x) for x in numbers):
        return _from_arrays(numbers, shape, dtype, device)
    wanted = dtype or _common_dtype(numbers)
    data, packed = _pack(numbers, wanted)
    x = _core.from_bytes(data, shape, packed, device)
    return x if packed is wanted else _ops.cast(x, dtype=wanted)


def _from_arrays(items, shape, dtype, device):
    """Stacks arrays, and numbers beside them, that stand in nested sequences."""
    if len(set(map(type, items))) == 1 and hasattr(items[0], "dtype") and len({x.dtype for x in items}) == 1 and dtype in (None, items[0].dtype):
        x = _of_one_kind(items, shape, device)
        if x is not None:
            return x
    plain = [x if type(x) in _dtypes.NUMBERS else asarray(x, dtype=dtype, device=device) for x in items]
    common = dtype or _dtypes.common("asarray", *plain)
    arrays = [asarray(x, dtype=common, device=device) for x in plain]
    stacked = _ops.stack(*arrays, axis=0)
    return _core.reshape_view(stacked, shape + arrays[0].shape)


def _of_one_kind(items, shape, device):
    """Stacks arrays of one dtype on one device."""
    first = items[0]
    if not isinstance(first, Array) or any(x.device is not first.device for x in items) or (device is not None and _core.device(device) is not first.device):
        return None
    return _core.reshape_view(_ops.stack(*items, axis=0), shape + first.shape)


def _is_buffer(obj):
    try:
        memoryview(obj).release()
    except (TypeError, BufferError, ValueError):
        return False
    return True


def _wrap(obj, copy):
    """An array over the memory of `obj` if it can be shared, else a copy; and whether the memory is read-only."""
    try:
        x = _core.wrap_buffer(obj)
        return x, memoryview(obj).readonly
    except (NotImplementedError, ValueError):  # memory that overlaps another array's, or in an odd layout
        if copy is False:
            raise
    return _core.copy_buffer(obj), False


def _has_times(obj):
    """Whether an object of NumPy has elements that are dates or differences of them, whose bytes are no numbers."""
    return getattr(getattr(obj, "dtype", None), "kind", "") in ("M", "m")


def _without_format(obj):
    """The dtype and the bytes of an array of NumPy whose dtype is one of ml_dtypes; buffers have no format for it."""
    numpy = sys.modules.get("numpy")
    found = _dtypes.named(obj.dtype.name) if numpy is not None and isinstance(obj, (numpy.ndarray, numpy.generic)) else None
    if found is _dtypes.bfloat16 or found in _dtypes.FLOAT8:
        return found, obj.view(f"u{found.itemsize}")
    return None, obj


def _adopt(obj, dtype, device, copy):
    """An array from an object of another library."""
    numpy = sys.modules.get("numpy")
    is_plain = numpy is not None and type(obj) is numpy.ndarray and obj.dtype.isbuiltin == 1 and obj.dtype.kind in "biufc"
    if not is_plain and _has_times(obj):
        raise TypeError(f"asarray: no dtype of this package is that of {type(obj).__name__}, {obj.dtype}; convert it first")
    found, obj = (None, obj) if is_plain else _without_format(obj)
    is_buffer = is_plain or _is_buffer(obj)
    if is_buffer:
        try:
            x, readonly = _wrap(obj, copy)
            if found is not None:
                x = _core.strided_view(x, found, x.shape, x.strides, 0)
        except BufferError as error:
            kind = getattr(obj, "dtype", None) or f"the format {memoryview(obj).format!r}"
            raise TypeError(f"asarray: no dtype of this package is that of {type(obj).__name__}, {kind}; convert it "
                            "first") from error
        if readonly and copy is None:
            x = _ops.copy(x)
    else:
        x = from_dlpack(obj)
    wanted = _core.device(device)
    if x.device is not wanted and (device is not None or is_buffer):
        if copy is False:
            raise ValueError(f"asarray: the memory is on {x.device}; on {wanted} it needs a copy")
        x = _core.to_device(x, wanted)
        copy = None
    return _convert(x, dtype, copy)


def _convert(x, dtype, copy):
    if dtype is not None and dtype is not x.dtype:
        if copy is False:
            raise ValueError(f"asarray: {x.dtype} as {dtype} needs a copy")
        return _ops.cast(x, dtype=dtype)
    return _ops.copy(x) if copy else x


def asarray(obj, /, dtype=None, *, device=None, copy=None):
    """An array from an array, a number, nested sequences of numbers, or an object with a buffer or DLPack.

    Without `copy`, memory is shared where that is possible. Numbers without a dtype have the default dtype of their kind.
    Raises TypeError for objects that are none of these, ValueError for sequences of different lengths, and OverflowError
    for integers that do not fit in the dtype.

    obj      what the array is made of
    dtype    by default that of `obj`
    device   a Device or its name; by default where `obj` is, and for numbers the default device
    copy     True for a copy, False for an error where one would be needed, None for one only where it is needed

    >>> compute.asarray([[1, 2], [3, 4]], dtype=compute.float32)
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    if dtype is not None and not isinstance(dtype, _core.DType):
        dtype = _dtypes._from_object(dtype)
    if isinstance(obj, (list, tuple)) and copy is not False:
        return _from_numbers(obj, dtype, device)
    if isinstance(obj, Array):
        if device is not None and _core.device(device) is not obj.device:
            if copy is False:
                raise ValueError(f"asarray: an array on {obj.device} needs a copy to be on {device}")
            obj, copy = _core.to_device(obj, device), None
        return _convert(obj, dtype, copy)
    if dtype is not None and not isinstance(obj, (list, tuple, range)):
        obj = _dtypes.number(obj)  # NumPy's; its range is checked like a Python number's
    if isinstance(obj, _dtypes.NUMBERS) and type(obj).__module__ == "builtins":
        if copy is False:
            raise ValueError("asarray: a number needs a copy")
        return _from_numbers(obj, dtype, device)
    if isinstance(obj, (list, tuple, range)):
        if copy is False:
            raise ValueError("asarray: a sequence needs a copy")
        return _from_numbers(list(obj) if isinstance(obj, range) else obj, dtype, device)
    if hasattr(obj, "__dlpack__") or _is_buffer(obj):
        return _adopt(obj, dtype, device, copy)
    if hasattr(obj, "__array__"):
        return _adopt(obj.__array__(), dtype, device, copy)
    hint = "; compute.grad.constant(x) is the value of a variable" if hasattr(obj, "backward") else ""
    raise TypeError(f"asarray: {type(obj).__name__} is not an array, a number or a sequence of numbers{hint}")


# ---- Values in the place of arrays ----------------------------------------------------------------------------------


def is_values(value):
    """Whether a value is numbers in a list, a tuple, a range or an array of NumPy, which functions take for an array."""
    if isinstance(value, (list, tuple, range)):
        return True
    numpy = sys.modules.get("numpy")
    return numpy is not None and type(value) in (numpy.ndarray, numpy.memmap)


_FLOAT64 = {}


def has_float64(device):
    """Whether a device has arrays of float64."""
    name = device.name
    if name not in _FLOAT64:
        try:
            _core.empty((1,), _dtypes.float64, device)
            _FLOAT64[name] = True
        except NotImplementedError:
            _FLOAT64[name] = False
    return _FLOAT64[name]


def device_of(*values):
    """The device where a call with these values runs: that of its arrays, of which those on cpu come last."""
    device = None
    for value in values:
        if isinstance(value, Array) or hasattr(value, "backward"):
            device = value.device
            if device.name != "cpu":
                break
    return _core.device(None) if device is None else device


_NUMBERS_OF_KINDS = {"b": False, "i": 0, "u": 0, "f": 0.0, "c": 0j}


def _kind_of(value):
    """The kind of a number, an array or values, as NumPy's dtypes call it; unsigned integers are integers."""
    if isinstance(value, (list, tuple, range)):
        return builtins.max(map(_kind_of, value), key="bifc".index) if len(value) else "f"
    if isinstance(value, _dtypes.NUMBERS):
        return _dtypes._KINDS_OF_TYPES[next(kind for kind in _dtypes.NUMBERS if isinstance(value, kind))]
    kind = getattr(getattr(value, "dtype", None), "kind", "f")
    return {"u": "i"}.get(kind, kind if kind in _NUMBERS_OF_KINDS else "f")


def _weak(value, dtype, promotes):
    """The dtype of values beside arrays of `dtype`: that of numbers of Python; None for their own."""
    if dtype is None or (not promotes and (_kind_of(value) in "bi" or dtype.kind not in "fc")):
        return None
    return _dtypes._promote_number(dtype, _NUMBERS_OF_KINDS[_kind_of(value)])


def _placed(value, dtype, device):
    """Values as an array on a device. The copy from the host is an implicit transfer."""
    shares = device.name == "cpu" and not _core.has_current_stream()
    is_list = isinstance(value, (list, tuple, range))
    if dtype in _dtypes.INTEGERS and not is_list and value.dtype.kind in "iu" and value.size:
        for end in (value.min(), value.max()):
            _dtypes.check_range(int(end), dtype)
    x = asarray(value, dtype=dtype if is_list else None, device="cpu", copy=None if shares or is_list else True)
    if dtype is not None and x.dtype is not dtype:
        x = _ops.cast(x, dtype=dtype)
    return x if device.name == "cpu" else _core.copy_implicitly(x, device)


def arrays_of(*values, device=None, promotes=True):
    """The arguments of a function: arrays, and values as arrays. Numbers and None stay as they are; others raise TypeError.

    Values go where the arrays are, and their dtype is that of numbers of Python beside them. Without arrays they go to
    the default device, with their own dtype. Where the arrays do not need a common dtype, integers and bool keep theirs.
    """
    if _core.are_arrays(*values):
        return values
    found, dtype = [], None
    for value in values:
        if not (value is None or isinstance(value, _dtypes.PLAIN) or hasattr(value, "backward")):
            if is_values(value):
                found.append(value)
            elif _dtypes.number(value) is value:
                no_array(value)
        elif not isinstance(value, _dtypes.NUMBERS) and value is not None:
            dtype = value.dtype if dtype is None else _common(dtype, value.dtype)
    if not found:
        return values
    device = device_of(*values) if device is None else device
    return tuple(_placed(x, _weak(x, dtype, promotes), device) if is_values(x) else x
                 for x in values)


def _common(a, b):
    """The common dtype of arrays, or the first one; the function called says what it needs."""
    try:
        return _dtypes.promote(a, b)
    except TypeError:
        return a


def _operands(values):
    """The operands of an elementwise op as arrays; NotImplemented if one is of another type. A hook of the extension."""
    known = (Array, *_dtypes.NUMBERS)
    if not builtins.any(map(is_values, values)) or not all(isinstance(x, known) or is_values(x) or isinstance(_dtypes.number(x), _dtypes.NUMBERS)
                                                           for x in values):
        return NotImplemented
    return arrays_of(*map(_dtypes.number, values))



def _array_of(value):
    """An argument of a function as an array. The hook of the extension."""
    if isinstance(_dtypes.number(value), _dtypes.NUMBERS):
        return full((), value)
    return arrays_of(value)[0] if is_values(value) else no_array(value)


_core.hooks.update(array_of=_array_of, operands=_operands)

_CPU, _CUDA = 1, 2


def _capsule(x, copy):
    """What `x` exports, in the newest form that it knows."""
    options = {"max_version": (1, 3)}
    if copy is not None:
        options["copy"] = copy
    if not hasattr(x, "__dlpack_device__"):
        raise TypeError(f"from_dlpack: {type(x).__name__} has no __dlpack__; use compute.asarray")
    kind, _ = x.__dlpack_device__()
    if kind == _CUDA:
        options["stream"] = 1  # the legacy default stream, which waits for all other streams
    try:
        return x.__dlpack__(**options)
    except TypeError:  # from before DLPack 1.0
        if copy is not None:
            raise
        options.pop("max_version")
        return x.__dlpack__(**options)


def from_dlpack(x, /, *, device=None, copy=None):
    """An array over the memory of an object with `__dlpack__`.

    x        an array of PyTorch, CuPy, NumPy or another library
    device   where the result is; without it, where `x` is
    copy     True for a copy, False for an error where the memory cannot be shared; else it is shared if possible

    Raises TypeError for an object without `__dlpack__`, and BufferError or ValueError where a copy is needed and not allowed.

    >>> import numpy
    >>> compute.from_dlpack(numpy.asarray([1.0, 2.0]))
    Array([1., 2.], dtype=float64)
    """
    if isinstance(x, Array):
        return asarray(x, device=device, copy=copy)
    if type(x).__name__ == "PyCapsule":
        array = _core.from_dlpack_capsule(x)
    else:
        try:
            array = _core.from_dlpack_capsule(_capsule(x, copy))
        except (NotImplementedError, ValueError) as error:  # memory that partly overlaps another array's
            if copy is not None:
                raise
            try:
                capsule = _capsule(x, True)
            except TypeError:  # the object makes no copies
                raise error from None
            array = _core.from_dlpack_capsule(capsule)
    if device is not None and _core.device(device) is not array.device:
        if copy is False:
            raise ValueError(f"from_dlpack: the memory is on {array.device}; on {device} it needs a copy")
        array = _core.to_device(array, device)
    return array
