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
    """Reads a .npy file as an array, or a .safetensors file as a dict of arrays."""
    with open(path, "rb") as file:
        data = memoryview(file.read())
    is_npy = data[:6] == _MAGIC
    size = struct.unpack_from("<Q", data)[0] if len(data) >= 8 else len(data)
    if not is_npy and size > len(data) - 8:
        raise ValueError(f"load: {path} is neither a .npy nor a .safetensors file")
    try:
        return _load_npy(data, device) if is_npy else _load_safetensors(data, device)
    except _UnknownDtype as error:
        raise TypeError(f"load: {path} {error}, which this package does not read") from None
    except (KeyError, IndexError, SyntaxError, TypeError, ValueError, AttributeError, struct.error) as error:
        raise ValueError(f"load: {path} is damaged or incomplete: {error}") from error


class _UnknownDtype(Exception):
    pass


def _load_npy(data, device):
    start = 10 if data[6] == 1 else 12
    end = start + struct.unpack_from("<H" if data[6] == 1 else "<I", data, 8)[0]
    header = ast.literal_eval(bytes(data[start:end]).decode("latin1"))
    dtype = _FROM_NPY.get(header["descr"])
    if dtype is None:
        raise _UnknownDtype(f"has the dtype {header['descr']!r}")
    shape = header["shape"]
    content = data[end:end + math.prod(shape) * dtype.itemsize]
    if not header["fortran_order"]:
        return _core.from_bytes(content, shape, dtype, device)
    return _core.permute_view(_core.from_bytes(content, shape[::-1], dtype, device), tuple(range(len(shape)))[::-1])


def _load_safetensors(data, device):
    size = struct.unpack_from("<Q", data)[0]
    header = json.loads(bytes(data[8:8 + size]))
    content = data[8 + size:]
    arrays = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if entry["dtype"] not in _FROM_SAFE:
            raise _UnknownDtype(f"has the dtype {entry['dtype']} for {name}")
        first, last = entry["data_offsets"]
        arrays[name] = _core.from_bytes(content[first:last], entry["shape"], _FROM_SAFE[entry["dtype"]], device)
    return arrays
