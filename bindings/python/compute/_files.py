# SPDX-License-Identifier: Apache-2.0
"""Arrays in files: .npy, and .npz and safetensors for several with names."""
from __future__ import annotations

import contextlib
import io
import math
import os
import struct

from . import _core, _dtypes
from ._core import Array
from ._creation import asarray, is_values

_MAGIC = b"\x93NUMPY"
_ALIGNMENT = 64
_NPY = {_dtypes.bool: "|b1", **{dtype: f"<i{dtype.itemsize}" for dtype in _dtypes.SIGNED},
        **{dtype: f"<u{dtype.itemsize}" for dtype in _dtypes.UNSIGNED},
        **{dtype: f"<f{dtype.itemsize}" for dtype in _dtypes.FLOATS if dtype is not _dtypes.bfloat16},
        **{dtype: f"<c{dtype.itemsize}" for dtype in _dtypes.COMPLEX}}
_FROM_NPY = {code: dtype for dtype, code in _NPY.items()} | {"|i1": _dtypes.int8, "|u1": _dtypes.uint8}
_SAFE = {_dtypes.bool: "BOOL", _dtypes.float16: "F16", _dtypes.bfloat16: "BF16", _dtypes.float32: "F32",
         _dtypes.float8_e4m3fn: "F8_E4M3", _dtypes.float8_e5m2: "F8_E5M2", _dtypes.float64: "F64", **{dtype: f"I{8 * dtype.itemsize}" for dtype in _dtypes.SIGNED},
         **{dtype: f"U{8 * dtype.itemsize}" for dtype in _dtypes.UNSIGNED}}
_FROM_SAFE = {code: dtype for dtype, code in _SAFE.items()}
# What NumPy and safetensors take, too.
_LONGEST_NPY_HEADER, _LONGEST_SAFE_HEADER = 10_000, 100_000_000


def _bytes(x):
    data = bytearray(x.nbytes)
    if data:
        _core.read_into(x, data)
    return data


def _is_file(path):
    return hasattr(path, "read") or hasattr(path, "write")


def _text_of(path):
    """A path as a str, and a file as it is."""
    return path if _is_file(path) else os.fsdecode(path)


def save(path, arrays, /):
    """Writes an array to a .npy file, or a dict of arrays to a .safetensors file.

    `path` is a path, whose suffix is that of the format, or none for .npy; or a binary file, which stays open. It may also
    come second, as in PyTorch. Raises
    TypeError for other objects than arrays, and for dtypes that the format does not have.

    >>> file = io.BytesIO()
    >>> compute.save(file, compute.asarray([1, 2]))
    >>> _ = file.seek(0)
    >>> compute.load(file)
    Array([1, 2], dtype=int64)
    """
    if isinstance(path, (Array, dict)) and (isinstance(arrays, (str, bytes, os.PathLike)) or _is_file(arrays)):
        path, arrays = arrays, path  # PyTorch's order
    if not isinstance(path, (str, bytes, os.PathLike)) and not _is_file(path):
        raise TypeError(f"save: the first argument is {type(path).__name__}; expected a path or a file, and then what is saved")
    path = _text_of(path)
    if isinstance(arrays, dict):
        arrays = {name: asarray(x) if is_values(x) else x for name, x in arrays.items()}
    else:
        arrays = asarray(arrays) if is_values(arrays) else arrays
    suffix = (".npy" if not isinstance(arrays, dict) else ".safetensors") if _is_file(path) else os.path.splitext(path)[1]
    if suffix == "" and not isinstance(arrays, dict):
        path, suffix = path + ".npy", ".npy"
    for name, x in (arrays if isinstance(arrays, dict) else {"the second argument": arrays}).items():
        if not isinstance(name, str):
            raise TypeError(f"save: the name {name!r} is not a str")
        if not isinstance(x, Array):
            raise TypeError(f"save: {name} is not a compute.Array but of the type {type(x).__name__}")
    if suffix == ".npy" and isinstance(arrays, Array):
        header = _npy_header(arrays)
        with _opened(path, "wb") as file:
            file.write(header)
            file.write(_bytes(arrays))
    elif suffix == ".safetensors" and isinstance(arrays, dict):
        _save_safetensors(path, arrays)
    else:
        raise ValueError("save: an array goes to a .npy file, a dict of arrays to a .safetensors file")


def _opened(path, mode):
    """A file for a `with` statement, which leaves a file of the program open."""
    return contextlib.nullcontext(path) if _is_file(path) else open(path, mode)


def _npy_header(x):
    if x.dtype not in _NPY:
        raise TypeError(f"save: .npy has no {x.dtype}")
    header = repr({"descr": _NPY[x.dtype], "fortran_order": False, "shape": x.shape})
    header += " " * (-(len(header) + len(_MAGIC) + 5) % _ALIGNMENT) + "\n"
    return _MAGIC + b"\x01\x00" + struct.pack("<H", len(header)) + header.encode("latin1")


def _save_npz(path, arrays, is_compressed):
    import zipfile

    path = _text_of(path)
    if not _is_file(path) and not path.endswith(".npz"):
        path += ".npz"
    method = zipfile.ZIP_DEFLATED if is_compressed else zipfile.ZIP_STORED
    headers = {name: _npy_header(x) for name, x in arrays.items()}
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, x in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                file.write(headers[name])
                file.write(_bytes(x))


def _load_npz(data, device):
    import zipfile
    import zlib

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = {name: memoryview(archive.read(name)) for name in archive.namelist()}
    except (zipfile.BadZipFile, NotImplementedError, EOFError, zlib.error, RuntimeError, ValueError) as error:
        raise _Damaged(f"it is no archive that can be read ({error})") from None
    for name, part in parts.items():
        if part[:6] != _MAGIC:
            raise _Damaged(f"{name} is not a .npy file")
    return NpzFile((name.removesuffix(".npy"), _load_npy(part, device)[0]) for name, part in parts.items())


class NpzFile(dict):
    """The arrays of a .npz file by their names. It has what NumPy's has, for `with` statements."""

    @property
    def files(self):
        """The names."""
        return list(self)

    def close(self):
        """Nothing: the file has been read."""

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass


def _save_safetensors(path, arrays):
    if "__metadata__" in arrays:
        raise ValueError("save: the format safetensors reserves the name __metadata__")
    header, start = {}, 0
    for name, x in arrays.items():
        if x.dtype not in _SAFE:
            raise TypeError(f"save: safetensors has no {x.dtype}")
        header[name] = {"dtype": _SAFE[x.dtype], "shape": list(x.shape), "data_offsets": [start, start + x.nbytes]}
        start += x.nbytes
    import json  # as ast below, imported where it is needed: an import of the package takes less time

    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with _opened(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for x in arrays.values():
            file.write(_bytes(x))


def load(path, /, *, device=None, mmap_mode=None):
    """Reads a .npy file as an array, or a .npz or .safetensors file as a dict of arrays.

    `path` is a path or a binary file, of which an array of the format .npy takes its part alone. A malformed file raises
    ValueError, and an unsupported dtype raises TypeError.

    >>> file = io.BytesIO()
    >>> compute.save(file, {"w": compute.ones(2)})
    >>> _ = file.seek(0)
    >>> compute.load(file)
    {'w': Array([1., 1.], dtype=float32)}
    """
    if mmap_mode is not None:
        raise NotImplementedError(f"load: mmap_mode={mmap_mode!r}; use asarray(numpy.load(path, mmap_mode=...))")
    with _opened(path, "rb") as file:
        start = file.tell() if _is_file(path) and hasattr(file, "tell") else None
        data = memoryview(file.read())
    device = _core.device(device)
    is_npy, is_npz = data[:6] == _MAGIC, data[:4] in (b"PK\x03\x04", b"PK\x05\x06")
    if not is_npy and not is_npz and (len(data) < 8 or struct.unpack_from("<Q", data)[0] > len(data) - 8):
        raise ValueError(f"load: {path} is neither a .npy, a .npz nor a .safetensors file")
    try:
        if not is_npy:
            return _load_npz(data, device) if is_npz else _load_safetensors(data, device)
        x, end = _load_npy(data, device)
        if start is not None:
            file.seek(start + end)
        return x
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


def _size(shape, dtype):
    """The bytes of an array. The library multiplies the extents even if one of them is 0."""
    if math.prod(n for n in shape if n) * dtype.itemsize >= 2 ** 63:
        raise _Damaged(f"no array of {dtype.name} has the shape {shape!r}")
    return math.prod(shape) * dtype.itemsize


def _load_npy(data, device):
    """The array, and the position behind it."""
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
    import ast

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
    size = _size(shape, dtype)
    if len(data) - end < size:  # there may be more: NumPy writes several arrays to one file
        raise _Damaged(f"the array has {size} bytes, the file {len(data) - end}")
    content = data[end:end + size]
    if not is_fortran:
        return _core.from_bytes(content, shape, dtype, device), end + size
    turned = _core.from_bytes(content, shape[::-1], dtype, device)
    return _core.permute_view(turned, tuple(range(len(shape)))[::-1]), end + size


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
    import json

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
    size = _size(shape, dtype)
    if offsets[1] - offsets[0] != size:
        raise _Damaged(f"{name} has {offsets[1] - offsets[0]} bytes; {code} of the shape {list(shape)} has {size}")
    return shape, dtype, *offsets
