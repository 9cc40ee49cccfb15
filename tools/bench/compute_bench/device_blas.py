# SPDX-License-Identifier: Apache-2.0
"""The matrix libraries of devices called directly: CLBlast and cuBLAS, for products of two matrices. They work on tensors of the
library under test, on a stream of their own, by native handles."""
import ctypes
import os
import struct

from .library import SIZES
from .peers import Peer, open_library


class Operand:
    def __init__(self, lib, dtype, shape):
        self.tensor, self.dtype, self.shape = lib.full(dtype, shape, 0), dtype, tuple(shape)
        self.handle, self.offset = ctypes.c_uint64(), ctypes.c_int64()
        lib.check(lib.c.compute_tensor_native_handle(self.tensor, ctypes.byref(self.handle), ctypes.byref(self.offset)))
        self.lib = lib

    def __del__(self):
        self.lib.c.compute_tensor_release(self.tensor)


class DeviceBlas(Peer):
    def __init__(self, lib):
        for name in ("stream_native_handle", "device_native_handle", "tensor_native_handle"):
            getattr(lib.c, "compute_" + name).restype = ctypes.c_void_p
        self.lib, self.stream = lib, ctypes.c_void_p()
        lib.check(lib.c.compute_stream_create(lib.device, None, ctypes.byref(self.stream)))
        self.queue = ctypes.c_uint64()
        lib.check(lib.c.compute_stream_native_handle(self.stream, ctypes.byref(self.queue)))

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


class ClBlast(DeviceBlas):
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


class CuBlas(DeviceBlas):
    name = "cublas"
    PLAIN, DEFAULT = 0, -1
    # cudaDataType_t, and the cublasComputeType_t that accumulates in float32 or float64.
    KINDS = {"float32": (0, 68), "float64": (1, 70), "float16": (2, 68), "bfloat16": (14, 68)}
    FAST_TF32 = 77

    def __init__(self, device, threads, lib):
        if not device.startswith("cuda"):
            raise ImportError("cuBLAS has CUDA devices only")
        self.c = open_library("libcublas.so.13", "libcublas.so.12")
        self.driver = ctypes.CDLL("libcuda.so.1")
        super().__init__(lib)
        self.tf32 = os.environ.get("COMPUTE_MATH") == "tf32"
        context, self.handle = ctypes.c_uint64(), ctypes.c_void_p()
        lib.check(lib.c.compute_device_native_handle(lib.device, ctypes.byref(context)))
        self.driver.cuCtxSetCurrent(ctypes.c_void_p(context.value))
        self.require(self.c.cublasCreate_v2(ctypes.byref(self.handle)))
        self.require(self.c.cublasSetStream_v2(self.handle, ctypes.c_void_p(self.queue.value)))

    def require(self, status):
        if status != 0:
            raise ImportError(f"cuBLAS returned {status}")

    def synchronize(self):
        self.driver.cuStreamSynchronize(ctypes.c_void_p(self.queue.value))

    def gemm(self, m, n, k, x, y, out):
        """cuBLAS has columns where there are rows here: it multiplies the transposes, in the other order."""
        kind, compute = self.KINDS[x.dtype]
        scalar = ctypes.c_double if x.dtype == "float64" else ctypes.c_float
        compute = self.FAST_TF32 if self.tf32 and x.dtype == "float32" else compute
        place = lambda a, columns: (ctypes.c_void_p(a.handle.value + a.offset.value), kind, columns)  # noqa: E731
        return self.c.cublasGemmEx(self.handle, self.PLAIN, self.PLAIN, n, m, k, ctypes.byref(scalar(1)), *place(y, n), *place(x, k),
                                   ctypes.byref(scalar(0)), *place(out, n), compute, self.DEFAULT)


ALL = {peer.name: peer for peer in (ClBlast, CuBlas)}
