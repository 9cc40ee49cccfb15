# SPDX-License-Identifier: Apache-2.0
"""CLBlast called directly, for products of two matrices."""
import ctypes

from ..library import SIZES
from . import open_library
from .device import DevicePeer


class ClBlast(DevicePeer):
    name = "clblast"
    ROW_MAJOR, PLAIN = 101, 111
    # The letter of a routine, and 1 and 0 as it takes them.
    KINDS = {"float32": ("S", ctypes.c_float(1), ctypes.c_float(0)), "float64": ("D", ctypes.c_double(1), ctypes.c_double(0)),
             "float16": ("H", ctypes.c_uint16(0x3C00), ctypes.c_uint16(0))}

    def __init__(self, device, threads, lib):
        if not device.startswith("opencl"):
            raise ImportError("CLBlast has OpenCL devices only")
        self.c, opencl = open_library("libclblast.so.1"), open_library("libOpenCL.so.1")
        self.finish = opencl.clFinish
        self.finish.argtypes = [ctypes.c_void_p]
        super().__init__(lib)

    def synchronize(self):
        self.finish(self.queue.value)

    def gemm(self, m, n, k, x, y, out):
        letter, one, zero = self.KINDS[x.dtype]
        size, place = ctypes.c_size_t, lambda a: (ctypes.c_void_p(a.handle.value), ctypes.c_size_t(a.offset.value // SIZES[a.dtype]))
        return getattr(self.c, f"CLBlast{letter}gemm")(
            self.ROW_MAJOR, self.PLAIN, self.PLAIN, size(m), size(n), size(k), one, *place(x), size(k), *place(y), size(n), zero,
            *place(out), size(n), ctypes.byref(self.queue), None)


PEER = ClBlast
