# SPDX-License-Identifier: Apache-2.0
"""NumPy, on the processor."""
from . import Peer


class NumPy(Peer):
    name = "numpy"
    renamed = {"abs": "absolute", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
               "atan2": "arctan2", "atanh": "arctanh", "bitwise_invert": "invert", "bitwise_left_shift": "left_shift",
               "bitwise_right_shift": "right_shift", "pow": "power", "round": "rint"}

    def __init__(self, device, threads, lib):
        import numpy
        numpy.seterr(all="ignore")
        self.module = numpy
        if device != "cpu":
            raise ImportError("numpy has the processor only")

    def array(self, data, dtype, shape):
        return self.module.frombuffer(data, dtype=getattr(self.module, dtype if dtype != "bool" else "bool_")).reshape(shape).copy()

    def error(self, result, data):
        """The greatest difference from the elements in `data`, relative to the greatest value; NaN if there are none."""
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

    def to_host(self, x):
        return x

    def to_device(self, x):
        return x


PEER = NumPy
