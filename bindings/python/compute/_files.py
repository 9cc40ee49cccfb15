# SPDX-License-Identifier: Apache-2.0
"""Arrays in files: .npy, and safetensors for several with names."""
from __future__ import annotations

import ast
import json
import math
import os
import struct

from . import _core, _dtypes
from ._core import Array

_MAGIC = b"\x93NUMPY"
_ALIGNMENT = 64
_NPY = {_dtypes.bool: "|b1", **{dtype: f"<i{dtype.itemsize}" for dtype in _dtypes.SIGNED},
        **{dtype: f"<u{dtype.itemsize}" for dtype in _dtypes.UNSIGNED},
        **{dtype: f"<f{dtype.itemsize}" for dtype in _dtypes.FLOATS if dtype is not _dtypes.bfloat16},
        **{dtype: f"<c{dtype.itemsize}" for dtype in _dtypes.COMPLEX}}
_FROM_NPY = {code: dtype for dtype, code in _NPY.items()} | {"|i1": _dtypes.int8, "|u1": _dtypes.uint8}
_SAFE = {_dtypes.bool: "BOOL", _dtypes.float16: "F16", _dtypes.bfloat16: "BF16", _dtypes.float32: "F32",
         _dtypes.float64: "F64", **{dtype: f"I{8 * dtype.itemsize}" for dtype in _dtypes.SIGNED},
         **{dtype: f"U{8 * dtype.itemsize}" for dtype in _dtypes.UNSIGNED}}
_FROM_SAFE = {code: dtype for dtype, code in _SAFE.items()}
# What NumPy and safetensors take, too.
_LONGEST_NPY_HEADER, _LONGEST_SAFE_HEADER = 10_000, 100_000_000


def _bytes(x):
    data = bytearray(x.nbytes)
    if data:
        _core.read_into(x, data)
    return data


def save(path, arrays, /):
    """Writes an array to a .npy file, or a dict of arrays to a .safetensors file. The suffix of the path decides."""
    suffix = os.path.splitext(path)[1]
    for name, x in (arrays if isinstance(arrays, dict) else {"the second argument": arrays}).items():
        if not isinstance(name, str):
            raise TypeError(f"save: the name {name!r} is not a str")
        if not isinstance(x, Array):
            raise TypeError(f"save: {name} is not a compute.Array but of the type {type(x).__name__}")
    if suffix == ".npy" and isinstance(arrays, Array):
        if arrays.dtype not in _NPY:
            raise TypeError(f"save: .npy has no {arrays.dtype}")
        header = repr({"descr": _NPY[arrays.dtype], "fortran_order": False, "shape": arrays.shape})
        header += " " * (-(len(header) + len(_MAGIC) + 5) % _ALIGNMENT) + "\n"
        with open(path, "wb") as file:
            file.write(_MAGIC + b"\x01\x00" + struct.pack("<H", len(header)) + header.encode("latin1"))
            file.write(_bytes(arrays))
    elif suffix == ".safetensors" and isinstance(arrays, dict):
        _save_safetensors(path, arrays)
    else:
        raise ValueError("save: an array goes to a .npy file, a dict of arrays to a .safetensors file")


def _save_safetensors(path, arrays):
    if "__metadata__" in arrays:
        raise ValueError("save: the format safetensors reserves the name __metadata__")
    header, start = {}, 0
    for name, x in arrays.items():
        if x.dtype not in _SAFE:
            raise TypeError(f"save: safetensors has no {x.dtype}")
        header[name] = {"dtype": _SAFE[x.dtype], "shape": list(x.shape), "data_offsets": [start, start + x.nbytes]}
        start += x.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for x in arrays.values():
            file.write(_bytes(x))


def load(path, /, *, device=None):
    """Reads a .npy file as an array, or a .safetensors file as a dict of arrays.

    A malformed file raises ValueError, and an unsupported dtype raises TypeError.
    """
    with open(path, "rb") as file:
        data = memoryview(file.read())
    device = _core.device(device)
    is_npy = data[:6] == _MAGIC
    if not is_npy and (len(data) < 8 or struct.unpack_from("<Q", data)[0] > len(data) - 8):
        raise ValueError(f"load: {path} is neither a .npy nor a .safetensors file")
    try:
        return _load_npy(data, device) if is_npy else _load_safetensors(data, device)
    except _UnknownDtype as error:
        raise TypeError(f"load: {path} has {error}, which this package does not read") from None
    except _Damaged as error:
        raise ValueError(f"load: {path} is damaged or incomplete: {error}") from None


class _UnknownDtype(Exception):
    pass


class _Damaged(Exception):
    pass


def _parsed(parse, text):
    """What a parser of Python makes of a header, whose depth it may not master."""
    try:
        return parse(text)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError) as error:
        raise _Damaged(f"its header cannot be parsed ({type(error).__name__}: {error})") from None


def _extents(shape, what):
    if not isinstance(shape, (list, tuple)) or not all(type(n) is int and 0 <= n < 2 ** 63 for n in shape):
        raise _Damaged(f"{what} has the shape {shape!r}")
    return tuple(shape)


def _load_npy(data, device):
    version = bytes(data[6:8])
    if version not in (b"\x01\x00", b"\x02\x00", b"\x03\x00"):
        raise _Damaged(f"its version is {version!r}")
    is_short = version[0] == 1
    start = 10 if is_short else 12
    if len(data) < start:
        raise _Damaged("it ends in front of its header")
    end = start + struct.unpack_from("<H" if is_short else "<I", data, 8)[0]
    if end > len(data) or end - start > _LONGEST_NPY_HEADER:
        raise _Damaged(f"its header has {end - start} bytes")
    text = bytes(data[start:end])
    header = _parsed(lambda text: ast.literal_eval(text.decode("utf8" if version[0] == 3 else "latin1")), text)
    if not isinstance(header, dict) or set(header) != {"descr", "fortran_order", "shape"}:
        raise _Damaged("its header is not that of an array")
    code, is_fortran = header["descr"], header["fortran_order"]
    if type(is_fortran) is not bool:
        raise _Damaged(f"fortran_order is {is_fortran!r}")
    shape = _extents(header["shape"], "the array")
    if not isinstance(code, str) or code not in _FROM_NPY:
        raise _UnknownDtype(f"the dtype {code!r}")
    dtype = _FROM_NPY[code]
    size = math.prod(shape) * dtype.itemsize
    if len(data) - end < size:  # there may be more: NumPy writes several arrays to one file
        raise _Damaged(f"the array has {size} bytes, the file {len(data) - end}")
    content = data[end:end + size]
    if not is_fortran:
        return _core.from_bytes(content, shape, dtype, device)
    return _core.permute_view(_core.from_bytes(content, shape[::-1], dtype, device), tuple(range(len(shape)))[::-1])


def _object(pairs):
    """For json: an object, whose names differ."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _load_safetensors(data, device):
    size = struct.unpack_from("<Q", data)[0]
    if size > _LONGEST_SAFE_HEADER:
        raise _Damaged(f"its header has {size} bytes; there are at most {_LONGEST_SAFE_HEADER}")
    text = bytes(data[8:8 + size])
    if text[:1] != b"{":
        raise _Damaged("its header does not begin with {")
    header = _parsed(lambda text: json.loads(text.decode(), object_pairs_hook=_object), text)
    content = data[8 + size:]
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise _Damaged("__metadata__ has other values than strings")
    found = {name: _entry(name, entry) for name, entry in header.items()}
    end = 0  # the arrays follow each other without gaps, in any order
    for name, (_, _, first, last) in sorted(found.items(), key=lambda item: item[1][2:]):
        if first != end:
            raise _Damaged(f"{name} begins at byte {first}, and the array in front of it ends at byte {end}")
        end = last
    if end != len(content):
        raise _Damaged(f"the arrays end at byte {end}, the file at byte {len(content)} behind its header")
    return {name: _core.from_bytes(content[first:last], shape, dtype, device)
            for name, (shape, dtype, first, last) in found.items()}


def _entry(name, entry):
    """The shape, the dtype and the range of bytes of an array in a header."""
    if not isinstance(entry, dict) or not {"dtype", "shape", "data_offsets"} <= set(entry):
        raise _Damaged(f"{name} has no dtype, shape or data_offsets")
    shape, code, offsets = _extents(entry["shape"], name), entry["dtype"], entry["data_offsets"]
    if not isinstance(code, str):
        raise _Damaged(f"{name} has the dtype {code!r}")
    if code not in _FROM_SAFE:
        raise _UnknownDtype(f"the dtype {code} for {name}")
    is_range = isinstance(offsets, list) and len(offsets) == 2 and all(type(n) is int for n in offsets)
    if not is_range or not 0 <= offsets[0] <= offsets[1]:
        raise _Damaged(f"{name} has the data_offsets {offsets!r}")
    dtype = _FROM_SAFE[code]
    size = math.prod(shape) * dtype.itemsize
    if offsets[1] - offsets[0] != size:
        raise _Damaged(f"{name} has {offsets[1] - offsets[0]} bytes; {code} of the shape {list(shape)} has {size}")
    return shape, dtype, *offsets
