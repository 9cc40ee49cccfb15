# SPDX-License-Identifier: Apache-2.0
"""CuPy, on CUDA devices."""
from . import numpy as numpy_peer


class CuPy(numpy_peer.NumPy):
    name = "cupy"

    def __init__(self, device, threads, lib):
        import cupy
        self.module = cupy
        if not device.startswith("cuda"):
            raise ImportError("cupy has CUDA devices only")
        cupy.cuda.Device(int(device[4:] or 0)).use()

    def array(self, data, dtype, shape):
        import numpy
        return self.module.asarray(numpy.frombuffer(data, dtype=dtype).reshape(shape))

    def error(self, result, data):
        import numpy
        peer = numpy_peer.NumPy.__new__(numpy_peer.NumPy)
        peer.module = numpy
        return peer.error(self.module.asnumpy(result), data)

    def synchronize(self):
        self.module.cuda.runtime.deviceSynchronize()

    def to_host(self, x):
        return self.module.asnumpy(x)

    def to_device(self, x):
        return self.module.asarray(x)


PEER = CuPy
