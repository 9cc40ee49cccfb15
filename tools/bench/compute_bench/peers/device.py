# SPDX-License-Identifier: Apache-2.0
"""Libraries called directly on a device use tensors of the library under test, on a separate stream, by native handles."""
import ctypes
import struct

from ..library import SIZES
from . import Peer


class Native(ctypes.Structure):
    """compute_native_dlpack, which names the memory and the streams of every vendor."""
    kind = 32
    _fields_ = [("struct_size", ctypes.c_uint32), ("struct_type", ctypes.c_uint32), ("next", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("data", ctypes.c_uint64), ("byte_offset", ctypes.c_uint64), ("stream", ctypes.c_uint64)]

    def __init__(self):
        super().__init__(ctypes.sizeof(self))


class Operand:
    def __init__(self, lib, dtype, shape):
        self.tensor, self.dtype, self.shape = lib.full(dtype, shape, 0), dtype, tuple(shape)
        native = Native()
        lib.check(lib.c.compute_tensor_native_handle(self.tensor, native.kind, ctypes.byref(native)))
        self.handle, self.offset = ctypes.c_uint64(native.data), ctypes.c_int64(native.byte_offset)
        self.lib = lib

    def __del__(self):
        self.lib.c.compute_tensor_release(self.tensor)


class DevicePeer(Peer):
    def __init__(self, lib):
        for name in ("stream_native_handle", "device_native_handle", "tensor_native_handle"):
            getattr(lib.c, "compute_" + name).restype = ctypes.c_void_p
        self.lib, self.stream = lib, ctypes.c_void_p()
        lib.check(lib.c.compute_stream_create(lib.device, None, ctypes.byref(self.stream)))
        native = Native()
        lib.check(lib.c.compute_stream_native_handle(self.stream, native.kind, ctypes.byref(native)))
        self.queue = ctypes.c_uint64(native.stream)

    def __getattr__(self, name):
        raise AttributeError(name)

    def array(self, data, dtype, shape):
        made = Operand(self.lib, dtype, shape)
        block = ctypes.create_string_buffer(data, len(data))
        self.lib.write(made.tensor, ctypes.addressof(block), len(data))
        return made

    def error(self, result, data):
        """As the other peers', computed by the device."""
        ours, lib = self.array(data, result.dtype, result.shape), self.lib
        wide = [lib.full("float64" if result.dtype == "float64" else "float32", result.shape, 0) for _ in range(4)]
        dtype = "float64" if result.dtype == "float64" else "float32"
        lib.caller("cast", [ours.tensor], wide[0], {"dtype": dtype})()
        lib.caller("cast", [result.tensor], wide[1], {"dtype": dtype})()
        lib.caller("subtract", [wide[0], wide[1]], wide[2])()
        found = []
        for tensor in (wide[2], wide[1]):
            lib.caller("abs", [tensor], wide[3])()
            greatest = lib.full(dtype, [], 0)
            lib.caller("max", [wide[3]], greatest)()
            lib.synchronize()
            block = ctypes.create_string_buffer(SIZES[dtype])
            lib.read(greatest, ctypes.addressof(block), SIZES[dtype])
            found += struct.unpack("d" if dtype == "float64" else "f", block.raw)
            lib.c.compute_tensor_release(greatest)
        for tensor in wide:
            lib.c.compute_tensor_release(tensor)
        return found[0] / max(found[1], 1)

    def matmul(self, x, y, out):
        if len(x.shape) != 2 or len(y.shape) != 2:
            raise TypeError("matrices only")
        (m, k), n = x.shape, y.shape[1]
        status = self.gemm(m, n, k, x, y, out)
        if status != 0:
            raise RuntimeError(f"{self.name} returned {status}")
        return out
