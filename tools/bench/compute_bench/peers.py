# SPDX-License-Identifier: Apache-2.0
"""Other libraries, each as far as it is installed. A peer has arrays, a few functions under one name, and its module's others."""
import ctypes
import math


class Peer:
    name = module = None

    def __getattr__(self, name):
        return getattr(self.module, name)

    def synchronize(self):
        pass

    def quiet(self):
        """Called before the library under test is measured."""


class NumPy(Peer):
    name = "numpy"

    def __init__(self, device, threads):
        import numpy
        numpy.seterr(all="ignore")
        self.module = numpy
        if device != "cpu":
            raise ImportError("numpy has the processor only")

    def array(self, data, dtype, shape):
        return self.module.frombuffer(data, dtype=getattr(self.module, dtype if dtype != "bool" else "bool_")).reshape(shape).copy()

    def bytes_of(self, result):
        return self.module.ascontiguousarray(result).tobytes()

    def error(self, result, data):
        """The greatest difference from the elements in `data`, beside the greatest value; NaN where there are none."""
        np = self.module
        wide = np.complex128 if np.iscomplexobj(result) else np.float64
        result = np.asarray(result)
        ours = np.frombuffer(data, dtype=result.dtype).reshape(result.shape).astype(wide)
        theirs = result.astype(wide)
        apart = np.where((ours == theirs) | np.isnan(ours) & np.isnan(theirs), 0, np.abs(ours - theirs))
        return float(apart.max() / max(np.abs(theirs[np.isfinite(theirs)]).max(initial=0), 1))

    def copy(self, out, x):
        self.module.copyto(out, x, casting="unsafe")
        return out

    def reduce(self, name, x, axes, out, **more):
        return getattr(self.module, name)(x, axis=axes, out=out, **more)

    def argmax(self, x, axis, out):
        return self.module.argmax(x, axis=axis, out=out)

    def take(self, table, indices, out):
        return self.module.take(table, indices, axis=0, out=out, mode="clip")

    def take_along(self, x, indices, axis):
        return self.module.take_along_axis(x, indices, axis)

    def concat(self, arrays, axis, out):
        return self.module.concatenate(arrays, axis=axis, out=out)

    def where(self, mask, x, y, out):
        return self.module.where(mask, x, y)


class CuPy(NumPy):
    name = "cupy"

    def __init__(self, device, threads):
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
        peer = NumPy.__new__(NumPy)
        peer.module = numpy
        return NumPy.error(peer, self.module.asnumpy(result), data)

    def copy(self, out, x):
        self.module.copyto(out, x, casting="unsafe")
        return out

    def synchronize(self):
        self.module.cuda.runtime.deviceSynchronize()


class Torch(Peer):
    name = "torch"

    def __init__(self, device, threads):
        import os
        import warnings
        import torch
        warnings.simplefilter("ignore")  # about the shapes of given results
        self.module = torch
        torch.set_grad_enabled(False)
        if device == "cpu":
            self.place = "cpu"
            if threads:
                torch.set_num_threads(threads)
        elif device.startswith("cuda") and torch.cuda.is_available():
            self.place = "cuda:" + (device[4:] or "0")
            torch.backends.cuda.matmul.allow_tf32 = os.environ.get("COMPUTE_MATH") == "tf32"
        else:
            raise ImportError(f"torch does not have {device}")

    def array(self, data, dtype, shape):
        torch = self.module
        flat = torch.frombuffer(bytearray(data), dtype=getattr(torch, dtype))
        return flat.reshape(shape).to(self.place)

    def error(self, result, data):
        torch = self.module
        wide = torch.complex128 if result.dtype.is_complex else torch.float64
        ours = torch.frombuffer(bytearray(data), dtype=result.dtype).reshape(result.shape).to(wide)
        theirs = result.cpu().to(wide)
        apart = torch.where((ours == theirs) | ours.isnan() & theirs.isnan(), 0, (ours - theirs).abs())
        finite = theirs[theirs.isfinite()]
        return apart.max().item() / max(finite.abs().max().item() if finite.numel() else 0, 1)

    def synchronize(self):
        if self.place != "cpu":
            self.module.cuda.synchronize()

    def copy(self, out, x):
        return out.copy_(x)

    def reduce(self, name, x, axes, out, **more):
        torch = self.module
        if name in ("var", "std"):
            return getattr(torch, name)(x, dim=axes, correction=0, out=out)
        name = {"max": "amax"}.get(name, name)
        if axes is None:
            axes = tuple(range(x.dim()))
        return getattr(torch, name)(x, dim=axes, out=out)

    def argmax(self, x, axis, out):
        return self.module.argmax(x, dim=axis, out=out)

    def take(self, table, indices, out):
        return self.module.index_select(table, 0, indices, out=out)

    def take_along(self, x, indices, axis):
        return self.module.gather(x, axis, indices)

    def concat(self, arrays, axis, out):
        return self.module.cat(arrays, axis, out=out)

    def where(self, mask, x, y, out):
        return self.module.where(mask, x, y, out=out)

    def power(self, x, y, out):
        return self.module.pow(x, y, out=out)


def open_library(*files):
    """The first of the files that is there."""
    problem = None
    for file in files:
        try:
            return ctypes.CDLL(file)
        except OSError as reason:
            problem = reason
    raise ImportError(str(problem))


class Blas(Peer):
    """OpenBLAS called directly: products of two matrices."""
    name = "openblas"
    ROW_MAJOR, PLAIN = 101, 111

    def __init__(self, device, threads):
        if device != "cpu":
            raise ImportError("OpenBLAS has the processor only")
        self.c = open_library("libopenblas.so.0", "libopenblas.so")
        if threads:
            self.c.openblas_set_num_threads(threads)

    def __getattr__(self, name):
        raise AttributeError(name)

    def array(self, data, dtype, shape):
        kind = {"float32": ctypes.c_float, "float64": ctypes.c_double}[dtype]
        block = (kind * math.prod(shape)).from_buffer_copy(data)
        block.shape = shape
        return block

    def error(self, result, data):
        ours = type(result).from_buffer_copy(data)
        greatest = max(map(abs, result))
        return max(abs(a - b) for a, b in zip(ours, result)) / max(greatest, 1)

    def matmul(self, x, y, out):
        if len(x.shape) != 2 or len(y.shape) != 2:
            raise TypeError("matrices only")
        (m, k), n = x.shape, y.shape[1]
        gemm, real = (self.c.cblas_sgemm, ctypes.c_float) if x._type_ is ctypes.c_float else (self.c.cblas_dgemm, ctypes.c_double)
        gemm(self.ROW_MAJOR, self.PLAIN, self.PLAIN, m, n, k, real(1), x, k, y, n, real(0), out, n)
        return out


ALL = {peer.name: peer for peer in (NumPy, Torch, CuPy, Blas)}


def installed(names, device, threads, lib):
    """The peers among `names` that can be measured beside `device`, and why the others cannot."""
    from . import device_blas  # which knows Peer
    found, missing = [], {}
    for name in names:
        try:
            found.append(ALL[name](device, threads) if name in ALL else device_blas.ALL[name](device, threads, lib))
        except (ImportError, OSError, RuntimeError) as reason:
            missing[name] = str(reason).splitlines()[0]
    return found, missing
