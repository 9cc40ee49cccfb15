# SPDX-License-Identifier: Apache-2.0
"""The methods of Array that are written in Python."""
from __future__ import annotations

import struct
import sys
import types
import weakref

from . import _core, _creation, _dtypes, _ops, _printing
from ._core import Array
from ._errors import no_gradient

_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
_CPU = 1


def _half(x, data):
    """The value of the bytes of a float16, bfloat16 or float8. The hook of the extension."""
    if x.dtype in _dtypes.FLOAT8:
        return _dtypes.of_float8(data[0], x.dtype)
    if x.dtype is _dtypes.float16:
        return struct.unpack("e", data)[0]
    return struct.unpack("<f", b"\0\0" + data)[0]


_core.hooks["half"] = _half


def _namespace(self, /, *, api_version=None):
    """The module `compute`."""
    if api_version is not None and api_version not in _VERSIONS:
        raise ValueError(f"api_version {api_version!r} is not one of {', '.join(_VERSIONS)}")
    return sys.modules["compute"]


def _to_device(self, device, /, *, stream=None):
    """The array on another device; the array itself if it is there already."""
    return _core.to_device(self, device)


def _dlpack_device(self, /):
    """The type and id of the device, in the numbers of DLPack."""
    kind, index = _core.dlpack_device(self)
    return kind, index


def _dlpack(self, /, *, stream=None, max_version=None, dl_device=None, copy=None):
    """A DLPack capsule over the memory of the array.

    Without `copy`, an array with negative strides is copied: PyTorch, for one, ends the process when it gets one.
    """
    x = self
    if min(x.strides, default=0) < 0:
        if copy is False:
            raise BufferError("an array with negative strides needs a copy to be exported by DLPack")
        copy = True
    if dl_device is not None and tuple(dl_device) != _core.dlpack_device(x):
        if tuple(dl_device) != (_CPU, 0):
            raise BufferError(f"the array is on {x.device}, not on the DLPack device {tuple(dl_device)}")
        if copy is False:
            raise ValueError(f"an array on {x.device} needs a copy to be on the host")
        x, copy = _core.to_device(x, "cpu"), True
        _core.synchronize(x)
    elif copy:
        x = _ops.copy(x)
    versioned = max_version is not None and max_version[0] >= 1
    if stream is None:
        stream = 1 if x.device.name.startswith("cuda") else 0
    elif x.device.name == "cpu" and stream != -1:
        raise ValueError("the stream of an array on cpu is None or -1")
    try:
        return _core.to_dlpack(x, stream, versioned, bool(copy))
    except NotImplementedError as error:
        if copy is False or versioned:
            raise BufferError(str(error)) from error
        return _core.to_dlpack(_ops.copy(x), stream, versioned, True)


def _numpy(self, dtype=None, copy=None):
    """The elements as an array of NumPy, which shares the memory of an array on cpu."""
    import numpy

    x = self
    if x.dtype is _dtypes.bfloat16 or x.dtype in _dtypes.FLOAT8:
        x = _ops.cast(x, dtype=_dtypes.float32)
    if x.device.name != "cpu":
        if copy is False:
            raise ValueError(f"an array on {x.device} needs a copy to be an array of NumPy")
        result = numpy.empty(x.shape, x.dtype.name)
        if x.size:
            _core.read_into(x, result)
        return result if dtype is None else result.astype(dtype, copy=False)
    result = numpy.asarray(memoryview(x))
    if dtype is not None and numpy.dtype(dtype) != result.dtype:
        if copy is False:
            raise ValueError(f"an array of {x.dtype} needs a copy to be one of {dtype}")
        return result.astype(dtype)
    return result.copy() if copy else result


def _cuda_interface(self):
    """The description of CUDA memory for Numba, CuPy and others."""
    if not self.device.name.startswith("cuda"):
        raise AttributeError("only arrays on CUDA devices have __cuda_array_interface__")
    if self.dtype is _dtypes.bfloat16 or self.dtype in _dtypes.FLOAT8:
        raise AttributeError(f"__cuda_array_interface__ has no {self.dtype.name}")
    _core.synchronize(self)
    address, offset = self.native_handle() if self.size else (0, 0)
    return {"shape": self.shape, "typestr": f"<{self.dtype.kind}{self.itemsize}", "data": (address + offset, False), "version": 3,
            "strides": tuple(stride * self.itemsize for stride in self.strides), "stream": 1}


_exposed = {}  # by the id of an array whose address was handed out: a reference to it, and a buffer over its memory


def _array_interface(self):
    """The description of memory on cpu for NumPy and others. From then on the memory counts as shared."""
    if self.device.name != "cpu" or self.dtype is _dtypes.bfloat16 or self.dtype in _dtypes.FLOAT8:
        raise AttributeError("only arrays on cpu have __array_interface__" if self.device.name != "cpu" else
                             f"__array_interface__ has no {self.dtype.name}")
    key = id(self)
    if key not in _exposed:
        buffer = memoryview(self[...])  # of a view, which does not keep the array itself
        _exposed[key] = weakref.ref(self, lambda _: _exposed.pop(key)), buffer
    buffer = _exposed[key][1]
    return {"shape": self.shape, "typestr": f"{'|' if self.itemsize == 1 else '<'}{self.dtype.kind}{self.itemsize}",
            "data": (_core.address_of(buffer), buffer.readonly), "version": 3,
            "strides": tuple(stride * self.itemsize for stride in self.strides)}


class Flag(int):
    """Whether something is so, which can also be called: x.is_contiguous and x.is_contiguous() are the same."""

    def __call__(self, **options):
        return bool(self)

    def __repr__(self):
        return repr(bool(self))

    __str__ = __repr__

    def __reduce__(self):
        return bool, (bool(self),)


_FALSE, _TRUE = Flag(0), Flag(1)


class ElementCount(int):
    """The number of elements of an array. Calls return its extents, or one of them, as in PyTorch: x.size(0)."""

    extents: tuple[int, ...]

    def __call__(self, dim=None):
        return self.extents if dim is None else self.extents[dim]

    def __reduce__(self):
        return int, (int(self),)


_sizes = {}  # by extents


def _size(count, extents):
    """The size of arrays with these extents, kept in the dict that the extension looks into first. A hook of it."""
    if len(_sizes) >= 1000:
        _sizes.clear()
    size = _sizes[extents] = ElementCount(count)
    size.extents = extents
    return size


_core.hooks.update(size=_size, sizes=_sizes)


def _real(self):
    """The real parts; the array itself if it is real."""
    return _ops.real(self) if self.dtype in _dtypes.COMPLEX else self


def _imag(self):
    """The imaginary parts, which are 0 of real numbers."""
    return _ops.imag(self) if self.dtype in _dtypes.COMPLEX else _creation.zeros_like(self)


def _set_part(self, value, name):
    """Writes the real or the imaginary parts, in place."""
    if self.dtype not in _dtypes.COMPLEX:
        if name == "imag":
            raise TypeError(f"an array of {self.dtype.name} has no imaginary parts to write; use astype(x, complex64)")
        self[...] = value
        return
    parts = {"real": _ops.real(self), "imag": _ops.imag(self)}
    parts[name][...] = value
    global _joined
    _joined = _joined or _core.expression("complex(x, y)", ("x", "y"), ())
    _joined.map([parts["real"], parts["imag"]], [], (self,))


_joined = None  # an expression, once it is needed


def _flat(self):
    """The elements in row-major order along one axis, a view; an error if that needs a copy."""
    return _core.reshape_view(self, (-1,)) if self.size else _core.reshape_view(self, (0,))


def _tolist(self, /):
    """The elements as nested lists of numbers of Python."""
    return _printing.to_list(self)


def _copy(self, memo=None):
    return _ops.copy(self)


def _rebuild(data, shape, dtype, device):
    return _core.from_bytes(data, shape, dtype, device)


def _reduce_ex(self, protocol):
    """For pickle: the elements in row-major order. Protocol 5 keeps them out of band.

    An array on the default device is loaded on the default device of the process that loads it, which may be another.
    """
    data = bytearray(self.nbytes)
    if data:
        _core.read_into(self, data)
    from pickle import PickleBuffer

    content = PickleBuffer(data) if protocol >= 5 else bytes(data)
    device = None if self.device is _core.process_device() else self.device.name
    return _rebuild, (content, self.shape, self.dtype.name, device)


def _flags(self):
    """Whether the elements are in row-major order without gaps."""
    expected = 1
    for extent, stride in zip(reversed(self.shape), reversed(self.strides)):
        if extent != 1 and stride != expected:
            return _FALSE
        expected *= extent
    return _TRUE


def _no_gradient(self, value):
    no_gradient(value)


def _round(self, digits=None):
    """For round(): the only element, as a number of Python."""
    return round(self.item(), digits)


def _format(self, spec):
    return format(self.item(), spec) if spec else str(self)


def _named(name, method):
    """A function as a method of arrays, with the name that messages about its arguments have."""
    if isinstance(method, types.FunctionType) and method.__name__ != name:
        code = method.__code__.replace(co_name=name)
        renamed = types.FunctionType(code, method.__globals__, name, method.__defaults__, method.__closure__)
        renamed.__kwdefaults__, renamed.__doc__, renamed.__qualname__ = method.__kwdefaults__, method.__doc__, f"Array.{name}"
        return renamed
    return method


for _name, _method in {
    "__array_namespace__": _namespace, "to_device": _to_device, "__dlpack__": _dlpack,
    "__dlpack_device__": _dlpack_device, "__array__": _numpy, "tolist": _tolist, "__copy__": _copy,
    "__deepcopy__": _copy, "__reduce_ex__": _reduce_ex, "__repr__": _printing.array_repr, "__str__": _printing.array_str,
    "_repr_html_": _printing.array_html,
    "__format__": _format, "__round__": _round, "is_contiguous": property(_flags),
    "__cuda_array_interface__": property(_cuda_interface), "__array_interface__": property(_array_interface),
    "real": property(_real, lambda self, value: _set_part(self, value, "real")),
    "imag": property(_imag, lambda self, value: _set_part(self, value, "imag")), "flat": property(_flat),
    "is_cuda": property(lambda self: self.device.type == "cuda"), "is_cpu": property(lambda self: self.device.type == "cpu"),
    "requires_grad": property(lambda self: False, _no_gradient), "data": property(lambda self: self),
}.items():
    setattr(Array, _name, _named(_name, _method))
