# SPDX-License-Identifier: Apache-2.0
"""OpenBLAS called directly, for products of matrices."""
import ctypes
import math

from . import Peer, open_library


class OpenBlas(Peer):
    name = "openblas"
    PRODUCTS = ("float32", "float64")
    ROW_MAJOR, PLAIN = 101, 111

    def __init__(self, device, threads, lib):
        if device != "cpu":
            raise ImportError(f"{self.name} has the processor only")
        self.open(threads)

    def open(self, threads):
        self.c = open_library("libopenblas.so.0", "libopenblas.so")
        if threads:
            self.c.openblas_set_num_threads(threads)

    def __getattr__(self, name):
        raise AttributeError(name)

    def native(self, dtype):
        """A function for compute_bench_products, and its kind."""
        return {"float32": (self.c.cblas_sgemm, "s"), "float64": (self.c.cblas_dgemm, "d")}[dtype]

    def array(self, data, dtype, shape):
        kind = {"float32": ctypes.c_float, "float64": ctypes.c_double}[dtype]
        block = (kind * math.prod(shape)).from_buffer_copy(data)
        block.shape, block.dtype = shape, dtype
        return block

    def error(self, result, data):
        ours = type(result).from_buffer_copy(data)
        greatest = max(map(abs, result))
        return max(abs(a - b) for a, b in zip(ours, result)) / max(greatest, 1)

    def matmul(self, x, y, out):
        if len(x.shape) != 2 or len(y.shape) != 2:
            raise TypeError("matrices only")
        self.multiply(*x.shape, y.shape[1], x, y, out)
        return out

    def multiply(self, m, k, n, x, y, out):
        real = x._type_
        self.native(x.dtype)[0](self.ROW_MAJOR, self.PLAIN, self.PLAIN, m, n, k, real(1), x, k, y, n, real(0), out, n)


PEER = OpenBlas
