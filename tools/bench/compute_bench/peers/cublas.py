# SPDX-License-Identifier: Apache-2.0
"""cuBLAS called directly, for products of two matrices."""
import ctypes
import os

from . import open_library
from .cuda_driver import CudaDriver
from .device import DevicePeer


class CuBlas(CudaDriver):
    name = "cublas"
    array = DevicePeer.array
    PLAIN, DEFAULT = 0, -1
    # cudaDataType_t, and the cublasComputeType_t that accumulates in float32 or float64.
    KINDS = {"float32": (0, 68), "float64": (1, 70), "float16": (2, 68), "bfloat16": (14, 68)}
    FAST_TF32 = 77

    def __init__(self, device, threads, lib):
        self.c = open_library("libcublas.so.13", "libcublas.so.12")
        super().__init__(device, threads, lib)
        self.tf32, self.handle = os.environ.get("COMPUTE_MATH") == "tf32", ctypes.c_void_p()
        self.require(self.c.cublasCreate_v2(ctypes.byref(self.handle)))
        self.require(self.c.cublasSetStream_v2(self.handle, ctypes.c_void_p(self.queue.value)))

    def gemm(self, m, n, k, x, y, out):
        """cuBLAS is column-major, so it multiplies the transposes in reverse order."""
        kind, compute = self.KINDS[x.dtype]
        scalar = ctypes.c_double if x.dtype == "float64" else ctypes.c_float
        compute = self.FAST_TF32 if self.tf32 and x.dtype == "float32" else compute
        place = lambda a, columns: (ctypes.c_void_p(a.handle.value + a.offset.value), kind, columns)  # noqa: E731
        return self.c.cublasGemmEx(self.handle, self.PLAIN, self.PLAIN, n, m, k, ctypes.byref(scalar(1)), *place(y, n), *place(x, k),
                                   ctypes.byref(scalar(0)), *place(out, n), compute, self.DEFAULT)


PEER = CuBlas
