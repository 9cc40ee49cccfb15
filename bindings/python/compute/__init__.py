# SPDX-License-Identifier: Apache-2.0
"""Arrays on CPUs, CUDA and OpenCL devices, following the Python array API standard 2025.12.

    import compute as cp

    x = cp.asarray([1.0, 2.0, 3.0])     # on the device that COMPUTE_DEVICE names, or the best one
    y = cp.exp(x) * 2 + 1               # stays there
    print(y)                            # waits and copies
"""
from __future__ import annotations

import atexit as _atexit
import builtins as _builtins
import math as _math

from . import _core, _ops
from ._core import (Array, Device, DType, Event, Stream, bfloat16, bool, complex64, complex128, float8_e4m3fn,
                    float8_e5m2, float16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64)
from ._errors import (CancelledError, CompileError, DeviceError, Error, FileError, ForkedError, InvalidArgumentError,
                      InvalidTypeError, KernelError, NotFoundError, NumericalError, OutOfMemoryError, OutOfRangeError,
                      PeerError, UnsupportedError)
from ._version import __version__

from . import _array, _elementwise, _indexing, _manipulation, _numpy, _products, _reductions, _sorting
from ._creation import (arange, asarray, empty, empty_like, eye, from_dlpack, full, full_like, linspace, meshgrid, ones,
                        ones_like, tril, triu, zeros, zeros_like)
from ._devices import device, device_list, devices, set_default_device, stream, which
from ._process import Profile, _run_after_end, config, load_report, placement_report, profile, scope
from ._dtypes import can_cast, finfo, iinfo, isdtype, result_type, set_default_dtype
from ._files import load, save
from ._functions import (all, allclose, any, argmax, argmin, argsort, astype, bincount, clip, conj, count_nonzero,
                         cumulative_max, cumulative_min, cumulative_prod, cumulative_sum, diff, einsum, histogram,
                         imag, isclose, isin, matmul, max, mean, median, min, nonzero, prod, quantile, real, reduce_and,
                         reduce_or, reduce_xor, searchsorted, segment_reduce, sort, std, sum, tensordot, top_k, unique_all, unique_counts, unique_inverse,
                         unique_values, var, vecdot, where)
from ._indexing import gather_at, gather_nd, scatter, scatter_at, scatter_nd, take, take_along_axis
from ._info import __array_namespace_info__
from ._manipulation import (broadcast_arrays, broadcast_shapes, broadcast_to, concat, expand_dims, flip,
                            matrix_transpose, moveaxis, pad, permute_dims, repeat, reshape, roll, squeeze, stack, tile,
                            unstack)

from . import distributed, fft, grad, graph, linalg, nn, optim, random
from ._numeric import (array_split, average, convolve, correlate, corrcoef, cov, digitize, gradient, hsplit, interp,
                       kron, nanargmax, nanargmin, nanmax, nanmean, nanmedian, nanmin, nanpercentile, nanprod, nanquantile, nanstd, nansum, nanvar, percentile,
                       split, trapezoid, vsplit)
from .expressions import Expression, expression
from .kernels import Kernel, kernel, reads

__array_api_version__ = "2025.12"

e = _math.e
inf = _math.inf
nan = _math.nan
newaxis = None
pi = _math.pi

# Every elementwise op, except those written in Python above and those of neural networks.
for _name, _row in _ops.ROWS.items():
    if _name not in vars(nn):
        globals().setdefault(_name, _row)

_ops.document({_name: _value for _module in (_elementwise, _reductions, _sorting, _products, _indexing, _manipulation, fft, linalg, nn)
               for _name, _value in vars(_module).items()
               if getattr(_value, "__module__", None) == _module.__name__ and _name[0] != "_"},
              {"linear": "affine", "embedding": "take"})

from . import _functional, _names

globals().update(_names.FUNCTIONS)
for _name, _value in _names.COMPUTE.items():
    globals().setdefault(_name, _value)


# What `from compute import *` imports: no name that Python itself has.
__all__ = [_name for _name in _names.offered(globals()) if not hasattr(_builtins, _name) and _name[0] != "_"]


def __getattr__(name):
    raise _names.missing("compute", name)


def __dir__():
    """What the package offers, without what its sources import."""
    return _names.offered(globals())


_core.begin()
_atexit.register(_run_after_end)
_atexit.register(_core.end)  # runs first
