# SPDX-License-Identifier: Apache-2.0
"""NumPy's protocols: its functions called on arrays of this package, as Dask calls them on the blocks of its arrays.

Functions named here run on the array's device. Other functions, and unsupported parameters, run in NumPy on a host copy
and return NumPy arrays.
"""
from __future__ import annotations

import functools
import sys

from . import _array, _core, _creation, _functions, _manipulation, _ops
from ._core import Array, DType

# Where a function of the standard has another name in NumPy.
_UFUNCS = {"absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
           "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "conjugate": "conj", "true_divide": "divide",
           "invert": "bitwise_invert", "left_shift": "bitwise_left_shift", "power": "pow", "rint": "round",
           "right_shift": "bitwise_right_shift"}


def _array_ufunc(self, ufunc, method, *inputs, out=None, dtype=None, **options):
    """Runs a ufunc of NumPy on arrays, arrays of NumPy among them, and numbers."""
    import numpy

    name = _UFUNCS.get(ufunc.__name__, ufunc.__name__)
    known = name in _ops.ROWS or name == "matmul"
    usable = all(isinstance(x, (Array, bool, int, float, complex, numpy.generic)) or _creation.is_values(x) for x in inputs)
    if not usable or not all(isinstance(x, Array) for x in out or ()) or method == "at":
        return NotImplemented
    if method != "__call__" or options or not known:
        if dtype is not None:
            options["dtype"] = dtype
        if out is not None:  # the elements that `where` leaves out keep their values
            options["out"] = tuple(numpy.array(x) for x in out)
        found = getattr(ufunc, method)(*_on_host(inputs), **_on_host(options))
        return found if out is None else _written(out, found)
    inputs = [x.item() if isinstance(x, numpy.generic) else x for x in inputs]
    if dtype is not None:
        inputs = [_functions.astype(x, dtype, copy=False) if isinstance(x, Array) else x for x in inputs]
    if out is None:
        return _ops.ROWS[name](*inputs) if name in _ops.ROWS else _ops.matmul(*inputs)
    inputs = [_ops.copy(x) if isinstance(x, Array) and x is not out[0] and _core.shares_memory(x, out[0]) else x for x in inputs]
    _ops.TABLE[name]["run"](*inputs, out=out[0])
    return out[0]


def _on_host(value):
    """Arguments with arrays of NumPy in the place of arrays."""
    import numpy

    if isinstance(value, Array):
        return numpy.asarray(value)
    if isinstance(value, dict):
        return {key: _on_host(one) for key, one in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_on_host(one) for one in value)
    return value


def _written(out, found):
    """The arrays `out`, into which the results of a ufunc are written."""
    for target, one in zip(out, found if isinstance(found, tuple) else (found,)):
        target[...] = one
    return out if isinstance(found, tuple) else out[0]


def _reduction(function):
    def run(a, axis=None, dtype=None, out=None, keepdims=False):
        if out is not None:
            raise TypeError(f"{function.__name__}: out must be None")
        options = {"axis": axis, "keepdims": keepdims}
        if dtype is not None:
            if function not in (_functions.sum, _functions.prod):
                a = _functions.astype(a, dtype, copy=False)
            else:
                options["dtype"] = dtype
        return function(a, **options)
    return run


def _variance(function):
    def run(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False):
        if out is not None:
            raise TypeError(f"{function.__name__}: out must be None")
        a = a if dtype is None else _functions.astype(a, dtype, copy=False)
        return function(a, axis=axis, correction=ddof, keepdims=keepdims)
    return run


def _like(function):
    def run(a, dtype=None, order="K", subok=True, shape=None, *, device=None):
        return _filled(function, (), a, dtype, shape, device)
    return run


def _full_like(a, fill_value, dtype=None, order="K", subok=True, shape=None, *, device=None):
    return _filled(_creation.full_like, (fill_value,), a, dtype, shape, device)


def _filled(function, values, a, dtype, shape, device):
    if shape is not None:
        a = _creation.empty(shape, dtype=a.dtype, device=a.device)
    return function(a, *values, dtype=None if dtype is None else _creation._dtypes._from_object(dtype), device=device)


def _array_of(object, dtype=None, *, copy=True, order="K", subok=False, ndmin=0, device=None):
    return _creation.asarray(object, dtype=dtype, copy=copy or None, device=device)


def _around(a, decimals=0):
    return _later("around")(a, decimals)


def _extreme(function):
    def run(a, axis=None, out=None, keepdims=False):
        if out is not None:
            raise TypeError(f"{function.__name__}: out must be None")
        return function(a, axis=axis, keepdims=keepdims)
    return run


def _transpose(a, axes=None):
    return _manipulation.permute_dims(a, tuple(reversed(range(a.ndim))) if axes is None else axes)


def _reshape_as(a, shape=None, order="C", *, newshape=None, copy=None):
    return _manipulation.reshape(a, newshape if shape is None else shape, copy=copy, order=order)


_FUNCTIONS = {
    "sum": _reduction(_functions.sum), "prod": _reduction(_functions.prod), "mean": _reduction(_functions.mean),
    "max": _extreme(_functions.max), "amax": _extreme(_functions.max), "min": _extreme(_functions.min),
    "amin": _extreme(_functions.min), "all": _extreme(_functions.all), "any": _extreme(_functions.any),
    "argmax": _extreme(_functions.argmax), "argmin": _extreme(_functions.argmin),
    "std": _variance(_functions.std), "var": _variance(_functions.var),
    "zeros_like": _like(_creation.zeros_like), "ones_like": _like(_creation.ones_like),
    "empty_like": _like(_creation.empty_like), "full_like": _full_like,
    "arange": _creation.arange, "array": _array_of, "asarray": _creation.asarray,  # of the argument `like`
    "round": _around, "around": _around,
    "concatenate": lambda arrays, axis=0: _manipulation.concat(arrays, axis=axis),
    "stack": lambda arrays, axis=0: _manipulation.stack(arrays, axis=axis),
    "reshape": _reshape_as,
    "tensordot": lambda a, b, axes=2: _functions.tensordot(a, b, axes=axes),
    "expand_dims": lambda a, axis: _manipulation.expand_dims(a, axis),
    "broadcast_to": lambda array, shape: _manipulation.broadcast_to(array, shape),
    "transpose": _transpose, "permute_dims": _transpose, "squeeze": lambda a, axis=None: _manipulation.squeeze(a, axis),
    "where": _functions.where,
}

def _later(name):
    """A function of this package by its name, which is found when it is called."""
    def run(*args, **kwargs):
        return getattr(sys.modules["compute"], name)(*args, **kwargs)
    run.__name__ = name
    return run


def _quantiles(name):
    def run(a, q, axis=None, *, method="linear", keepdims=False):
        if method != "linear":
            raise TypeError(f"{name}: method must be 'linear'")
        return _later(name)(a, q, axis=axis, keepdims=keepdims)
    return run


_FUNCTIONS.update({name: _extreme(_later(name)) for name in ("nanmax", "nanmin", "median")})
_FUNCTIONS.update({name: _reduction(_later(name)) for name in ("nanmean", "nanprod", "nansum")})
_FUNCTIONS.update({name: _variance(_later(name)) for name in ("nanstd", "nanvar")})
_FUNCTIONS.update({name: _quantiles(name) for name in ("percentile", "quantile")})
# Functions that have NumPy's first parameters in NumPy's order.
_SAME = frozenset("""argsort atleast_1d atleast_2d atleast_3d clip column_stack count_nonzero cumprod cumsum diag diagonal diff dot dstack einsum flip
                     fliplr flipud hstack isclose moveaxis outer repeat roll rot90 sort swapaxes take tile trace tril triu vdot vstack""".split())


def _qr(a, mode="reduced"):
    q, r = _linalg().qr(a, mode="reduced" if mode == "r" else mode)
    return r if mode == "r" else _linalg().QRResult(q, r)


def _svd(a, full_matrices=True, compute_uv=True):
    return _linalg().svd(a, full_matrices=full_matrices) if compute_uv else _linalg().svdvals(a)


def _linalg():
    from . import linalg

    return linalg


def _transform(name):
    """One of NumPy's Fourier transforms."""
    def run(a, n=None, axis=-1, norm=None):
        from . import fft

        return getattr(fft, name)(a, n=n, axis=axis, norm=norm or "backward")

    def run_several(a, s=None, axes=None, norm=None):
        from . import fft

        return getattr(fft, name)(a, s=s, axes=axes, norm=norm or "backward")

    def run_two(a, s=None, axes=(-2, -1), norm=None):
        return run_several(a, s, axes, norm)

    if name[-1] == "2":
        name = name[:-1] + "n"
        return run_two
    return run_several if name[-1] == "n" else run


_IN_MODULES = {
    "numpy.linalg": {"qr": _qr, "svd": _svd,
                     **{name: (lambda name: lambda *args: getattr(_linalg(), name)(*args))(name)
                        for name in ("cholesky", "det", "eigh", "eigvalsh", "inv", "norm", "pinv", "slogdet", "solve")}},
    "numpy.fft": {name: _transform(name) for name in "fft ifft rfft irfft hfft ihfft fftn ifftn rfftn irfftn fft2 ifft2 rfft2 irfft2".split()},
}


def _on_device(function):
    """Our function for one of NumPy's, or None."""
    name, module = function.__name__, function.__module__
    if module != "numpy":
        return _IN_MODULES.get(module, {}).get(name)
    if name in _SAME:
        return getattr(sys.modules["compute"], name)
    return _FUNCTIONS.get(name)


_WRITE = {"copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"}  # to their first argument


@functools.cache
def _signature(function):
    import inspect  # takes a tenth of the package's own time to import

    return inspect.signature(function)


def _has_parameters(function, args, kwargs):
    """Whether our function has the parameters of a call."""
    try:
        _signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _array_function(self, function, types, args, kwargs):
    """Runs a function of NumPy on the device if it is known, else on the host."""
    name, ours = function.__name__, _on_device(function)
    if isinstance(kwargs.get("out"), Array):
        raise TypeError(f"{name}: out must be None")
    if ours is not None and _has_parameters(ours, args, kwargs):
        return ours(*args, **kwargs)
    if name in _WRITE:
        return function._implementation(*args, **kwargs)
    return function(*_on_host(args), **_on_host(kwargs))


def _dtype(self):
    """The same dtype of NumPy, which numpy.dtype() asks for from NumPy 2.4 on."""
    import numpy

    try:
        return numpy.dtype(self.name)
    except TypeError:
        raise AttributeError(f"NumPy has no {self.name}") from None


def _reshape(self, *shape, copy=None, order="C"):
    """The array with another shape, given as a tuple or as several integers."""
    shape = shape[0] if len(shape) == 1 else shape
    return _manipulation.reshape(self, shape, copy=copy, order=order)


def _copied(self):
    """A new row-major array with the same elements."""
    return _ops.copy(self)


def _flattened(self, start_dim=0, end_dim=-1, *, order="C"):
    """The elements in row-major order along one axis, as a new array; or the axes from `start_dim` to `end_dim` as one.

    `order` is as of compute.ravel; it may come first, as in NumPy.
    """
    start_dim, order = (0, start_dim) if isinstance(start_dim, str) else (start_dim, order)
    if order != "C":
        return _ops.copy(_manipulation._flat(self, order))
    if (start_dim, end_dim) != (0, -1):
        from ._names_axes import flatten

        return flatten(self, start_dim, end_dim)
    return _manipulation.reshape(self, (-1,), copy=True) if self.size else _manipulation._flat(self)


def _raveled(self, order="C"):
    """The elements in row-major order along one axis; a view, unless that needs a copy. `order` is as of compute.ravel."""
    return _manipulation._flat(self, order)


def _transposed(self, *axes, dim0=None, dim1=None):
    """A view with the axes in the order `axes`, given as a tuple or as several integers; without them, reversed.

    Of an array that is no matrix, two integers are exchanged, as in PyTorch.
    """
    if dim0 is not None or dim1 is not None:
        axes = (*axes, *(one for one in (dim0, dim1) if one is not None))
        return _core.permute_view(self, [1, 0]) if self.ndim == 2 and axes[0] % 2 != axes[1] % 2 else self if self.ndim == 2 else _transposed(self, *axes)
    if len(axes) == 2 and self.ndim != 2:
        order = list(range(self.ndim))
        first, second = _manipulation._axes(axes, self.ndim, "transpose")
        order[first], order[second] = second, first
        return _core.permute_view(self, order)
    axes = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
    return _transpose(self, axes or None)


# Methods that code for arrays of NumPy calls.
METHODS = {"astype": _functions.astype, "clip": _functions.clip, "copy": _copied, "flatten": _flattened,
           "ravel": _raveled, "reshape": _reshape, "squeeze": _manipulation.squeeze, "transpose": _transposed}
METHODS.update({_name: getattr(_functions, _name) for _name in (
    "all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "std", "sum", "var")})
for _name, _run in METHODS.items():
    setattr(Array, _name, _array._named(_name, _run))
DType.__numpy_dtype__ = property(_dtype)
for _name in ("char", "hasobject", "names", "type"):  # of the dtype of NumPy, for code such as Dask's
    setattr(DType, _name, property(lambda self, name=_name: getattr(_dtype(self), name)))
Array.__array_priority__ = 100  # Dask's products run the function of the operand that has the greatest
Array.__array_ufunc__ = _array_ufunc
Array.__array_function__ = _array_function
