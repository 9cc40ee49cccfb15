# SPDX-License-Identifier: Apache-2.0
"""oneDNN called directly, for products of matrices of float32."""
import ctypes

from . import open_library
from .openblas import OpenBlas


class OneDnn(OpenBlas):
    name = "onednn"
    PRODUCTS = ("float32",)

    def open(self, threads):
        self.c = open_library("libdnnl.so.3", "libdnnl.so.2")

    def native(self, dtype):
        return {"float32": (self.c.dnnl_sgemm, "o")}[dtype]

    def multiply(self, m, k, n, x, y, out):
        plain, one, zero = ctypes.c_char(b"N"), ctypes.c_float(1), ctypes.c_float(0)
        m, k, n = map(ctypes.c_int64, (m, k, n))
        self.native(x.dtype)[0](plain, plain, m, n, k, one, x, k, y, n, zero, out, n)


PEER = OneDnn
