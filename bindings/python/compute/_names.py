# SPDX-License-Identifier: Apache-2.0
"""Names of NumPy and PyTorch for what the package has, with the arguments that they have there.

The package imports the module with its others and uses none of these names itself. docs/guides/names.md has the
table. A name that means something else here, or nothing, raises an AttributeError that says what to use.
The functions are in the files _names_*.py, by subject; here are the tables.
"""
from __future__ import annotations

import builtins
import functools
import math
import types
from typing import Any

from . import (_array, _core, _creation, _dtypes, _functions, _indexing, _manipulation, _names_axes, _names_creation,
               _names_elementwise, _names_indices, _names_products, _names_properties, _names_torch, _numeric, _ops,
               _printing, expressions, grad, graph, kernels, linalg, nn, optim, random)
from ._core import Array, DType, array_of
from ._creation import arrays_of
from ._functional_images import adaptive_avg_pool2d
from ._names_axes import _as_strided, sliding_window_view, swapaxes, vstack
from ._names_common import Values
from ._names_creation import (Generator, NumPyGenerator, Tensor, _default_rng, _exponential, _lognormal, _multivariate_normal,
                              _standard_normal, _range, _uniform_numbers, _vander_ascending, c_, copy, index_exp, mgrid, ogrid, r_, rand, randint,
                              randn, s_, tensor)
from ._names_elementwise import (_add, _divide, _logit, _reflected_divmod, _subtract, _with_options, around, divmod, exp2,
                                 iscomplexobj)
from ._names_hints import _HINTS, missing
from ._names_methods import (_as, _bernoulli, _clamp_in_place, _contiguous, _converted, _copy_in_place, _cpu, _cuda,
                            _detach, _div_in_place, _element_size, _expand, _expanded_as, _exponential_in_place, _fill,
                            _fill_diagonal_in_place, _fill_in_place, _in_place, _in_place_scaled, _index_add_in_place,
                            _index_fill_in_place, _itself, _masked_fill_in_place, _median, _new, _normal_in_place,
                            _numbers_for_nan, _numpy, _permute, _put_in_place, _random_in_place, _repeated,
                            _requires_grad_in_place, _scatter, _scatter_add_in_place, _scatter_in_place, _select,
                            _shaped_as, _sort_in_place, _split_method, _stored, _stride, _sum_to_size, _t, _tiled, _to,
                            _tobytes, _type, _unfold, _uniform_in_place, _view, _where, _zero_in_place)
from ._names_products import (_avg_pool2d, _cond, _conv, _cosine_similarity, _kl_div, _l1_loss,
                              _linalg_norm, _max_pool2d, _mse_loss, _multi_dot, _nll_loss, _normalize, _pad,
                              _scaled_dot_product_attention, _solve_triangular, addmm, dot, inner, outer)
from ._names_properties import cuda, ndim, numel
from ._names_torch import (_entr, _ndtr, _xlog1py, complex, enable_grad, inference_mode, no_grad,
                           set_grad_enabled)


# ---- Methods of functions -------------------------------------------------------------------------------------------

# The functions that are add.reduce and add.accumulate, and the reduction of scatter_nd that is add.at.
_METHODS = {"add": ("sum", "cumulative_sum", "add"), "multiply": ("prod", "cumulative_prod", "mul"), "maximum": ("max", "cumulative_max", "max"),
            "minimum": ("min", "cumulative_min", "min"), "logical_and": ("all", None, None), "logical_or": ("any", None, None)}


def _method_of(name, method, place):
    found = _METHODS.get(name, (None,) * 3)[place]
    if found is None:
        raise NotImplementedError(f"{name}.{method}: not implemented; use a loop over slices, or for add, multiply, maximum and minimum the method of these")
    return found


def _reduce(name: str, x: Values, axis: Any = 0, dtype: Any = None, out: Array | None = None, keepdims: bool = False, **options: Any) -> Array:
    """add.reduce and others: sum, prod, max, min, all, any."""
    options |= {key: value for key, value in (("dtype", dtype), ("out", out)) if value is not None}
    return getattr(_functions, _method_of(name, "reduce", 0))(array_of(x), axis=axis, keepdims=keepdims, **options)


def _accumulate(name: str, x: Values, axis: int = 0) -> Array:
    """add.accumulate and others: cumulative_sum, cumulative_prod, cumulative_max, cumulative_min."""
    return getattr(_functions, _method_of(name, "accumulate", 1))(array_of(x), axis=axis)


def _outer(name: str, x1: Values, x2: Values) -> Array:
    """The function of all pairs of elements of two arrays."""
    x1, x2 = (_creation.asarray(x) for x in arrays_of(x1, x2))
    return _ROWS[name](_manipulation.reshape(x1, x1.shape + (1,) * x2.ndim), x2)


def _at(name: str, x: Array, indices: Any, values: Any) -> None:
    """x[indices] += values and the like in place, where indices may recur."""
    reduction = _method_of(name, "at", 2)
    keys = indices if isinstance(indices, tuple) else (indices,)
    if any(isinstance(one, (slice, types.EllipsisType, types.NoneType)) for one in keys) or any(array_of(one).dtype is _dtypes.bool for one in keys):
        raise NotImplementedError(f"{name}.at: an index that is no integers; use nonzero(mask), or an array of positions for a slice")
    keys = _manipulation.broadcast_arrays(*(_creation.asarray(one, device=x.device) for one in keys))
    places = _ops.stack(*(_functions.where(one < 0, one + n, one) for one, n in zip(keys, x.shape)), axis=-1)
    updates = _manipulation.broadcast_to(_creation.asarray(values, dtype=x.dtype, device=x.device), (*places.shape[:-1], *x.shape[len(keys):]))
    x[...] = _indexing.scatter_nd(x, places, updates, reduction=reduction)


def _reduceat(name: str, x: Values, indices: Values, axis: int = 0) -> Array:
    """Raises NotImplementedError."""
    raise NotImplementedError(f"{name}.reduceat: not implemented; use segment_reduce(x, offsets)")


def _with_methods(name):
    """The function of a binary op, with the methods that NumPy's has. The call costs what the function's does."""
    function = functools.partial(_ops.ROWS[name])
    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = "compute", _ops.ROWS[name].__doc__
    for method, run in (("reduce", _reduce), ("accumulate", _accumulate), ("outer", _outer), ("at", _at), ("reduceat", _reduceat)):
        setattr(function, method, functools.partial(run, name))
    return function


# ---- Tables ---------------------------------------------------------------------------------------------------------


_ROWS = _ops.ROWS
FUNCTIONS = {name: _with_methods(name) for name in (
    "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod", "pow", "maximum", "minimum", "hypot", "atan2", "logaddexp", "logical_and",
    "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal")}
# The same functions by other names.
_SAME = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctan2": "atan2", "arctanh": "atanh", "power": "pow", "mod": "remainder", "true_divide": "divide",
    "invert": "bitwise_invert", "bitwise_not": "bitwise_invert", "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift", "rint": "round",
    "fix": "trunc", "degrees": "rad2deg", "radians": "deg2rad", "mul": "multiply", "sub": "subtract", "div": "divide", "neg": "negative", "eq": "equal",
    "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "sgn": "sign"}
COMPUTE = {name: FUNCTIONS.get(own, _ROWS[own]) for name, own in _SAME.items()}
COMPUTE |= {name: vars(nn)[name] for name in ("relu", "sigmoid", "softmax", "log_softmax", "logsumexp")}
COMPUTE |= {
    "as_tensor": _creation.asarray, "asanyarray": _creation.asarray, "clone": copy, "concatenate": _manipulation.concat, "cat": _manipulation.concat,
    "row_stack": vstack, "permute": _manipulation.permute_dims, "movedim": _manipulation.moveaxis, "swapdims": swapaxes, "unsqueeze": _manipulation.expand_dims,
    "tensor_split": _numeric.array_split, "conjugate": _functions.conj, "clamp": _functions.clip, "trapz": _numeric.trapezoid,
    "topk": _functions.top_k, "mm": _functions.matmul, "bmm": _functions.matmul, "mv": _functions.matmul, "cross": linalg.cross,
    "baddbmm": addmm, "ger": outer, "inverse": linalg.inv, "det": linalg.det, "is_complex": iscomplexobj, "broadcast_tensors": _manipulation.broadcast_arrays, "ndarray": Array, "Tensor": Tensor, "Size": tuple, "Generator": Generator, "no_grad": no_grad, "enable_grad": enable_grad, "inference_mode": inference_mode, "set_grad_enabled": set_grad_enabled,
    "array_repr": _printing.array_repr, "array_str": _printing.array_str,
    "float": _dtypes.float32, "single": _dtypes.float32, "double": _dtypes.float64, "float_": _dtypes.float64, "half": _dtypes.float16, "int": _dtypes.int32, "FloatTensor": _dtypes.float32, "DoubleTensor": _dtypes.float64, "IntTensor": _dtypes.int32, "HalfTensor": _dtypes.float16,
    "BFloat16Tensor": _dtypes.bfloat16, "ShortTensor": _dtypes.int16, "CharTensor": _dtypes.int8, "ByteTensor": _dtypes.uint8,
    "LongTensor": _dtypes.int64, "BoolTensor": _dtypes.bool, "special": types.SimpleNamespace(expit=_ROWS["sigmoid"], logsumexp=nn.logsumexp, softmax=nn.softmax, log_softmax=nn.log_softmax, **{
        name: _ROWS[name] for name in ("digamma", "erf", "erfc", "erfinv", "expm1", "gammainc", "gammaincc", "i0", "i0e", "i1", "i1e", "log1p", "polygamma", "sinc", "xlogy")},
        **{f"bessel_{name}": _ROWS[name] for name in ("j0", "j1", "y0", "y1")}, gammaln=_ROWS["lgamma"], psi=_ROWS["digamma"],
        entr=_entr, exp2=exp2, logit=_ROWS["logit"], ndtr=_ndtr, round=around, xlog1py=_xlog1py),
    "int_": _dtypes.int64, "long": _dtypes.int64, "intp": _dtypes.int64, "short": _dtypes.int16, "byte": _dtypes.int8, "ubyte": _dtypes.uint8,
    "uint": _dtypes.uint64, "bool_": _dtypes.bool, "cfloat": _dtypes.complex64, "cdouble": _dtypes.complex128, "floating": "real floating",
    "integer": "integral", "signedinteger": "signed integer", "unsignedinteger": "unsigned integer", "complexfloating": "complex floating", "number": "numeric",
    "inexact": ("real floating", "complex floating"), "Inf": math.inf, "NaN": math.nan}


def _taking_input(name, function):
    """A function of PyTorch's that also takes its first argument by the name `input`."""
    @functools.wraps(function)
    def run(*arguments, **options):
        return function(*((options.pop("input"),) if "input" in options else ()), *arguments, **options)
    return _array._named(name, run)


for _module in (_names_axes, _names_creation, _names_elementwise, _names_indices, _names_products, _names_properties, _names_torch):
    COMPUTE |= {name: value for name, value in vars(_module).items()
                if name[0] != "_" and getattr(value, "__module__", None) == _module.__name__ and not isinstance(value, type)}
COMPUTE |= {name: _taking_input(name, COMPUTE[name]) for name in (
    "chunk", "cummax", "cummin", "gather", "index_add", "index_copy", "index_select", "kthvalue", "masked_fill", "masked_select", "narrow", "repeat_interleave", "scatter_add", "scatter_reduce", "take_along_dim", "unbind",
    "unflatten")}
COMPUTE |= {"lib": types.SimpleNamespace(stride_tricks=types.SimpleNamespace(
    as_strided=_as_strided, broadcast_arrays=_manipulation.broadcast_arrays, broadcast_to=_manipulation.broadcast_to, sliding_window_view=sliding_window_view))}
COMPUTE |= {"cuda": cuda, "mgrid": mgrid, "ogrid": ogrid, "r_": r_, "c_": c_, "s_": s_, "index_exp": index_exp}
COMPUTE |= {"slogdet": linalg.slogdet, "matrix_power": linalg.matrix_power, "matrix_exp": linalg.expm, "pinverse": linalg.pinv, "cholesky": linalg.cholesky, "qr": linalg.qr,
            "matrix_rank": linalg.matrix_rank, "t": _t, "range": _range, "detach": grad.constant, "fill": _creation.full_like, "complex": complex}
LINALG = {"matrix_exp": linalg.expm, "solve_triangular": _solve_triangular, "vander": _vander_ascending, "cond": _cond, "norm": _linalg_norm, "multi_dot": _multi_dot, "dot": dot, "inner": inner}
NN = {"adaptive_avg_pool2d": adaptive_avg_pool2d, "avg_pool2d": _avg_pool2d, **{f"conv{count}d": _conv(count) for count in (1, 2, 3)}, "cosine_similarity": _cosine_similarity,
      "kl_div": _kl_div, "l1_loss": _l1_loss, "max_pool2d": _max_pool2d, "mse_loss": _mse_loss, "nll_loss": _nll_loss, "normalize": _normalize, "pad": _pad,
      "scaled_dot_product_attention": _scaled_dot_product_attention}
RANDOM = {"manual_seed": COMPUTE["manual_seed"], "rand": rand, "randn": randn, "randint": randint, "random": _uniform_numbers, "random_sample": _uniform_numbers, "standard_normal": _standard_normal,
          "default_rng": _default_rng, "exponential": _exponential, "lognormal": _lognormal, "multivariate_normal": _multivariate_normal, "NumPyGenerator": NumPyGenerator}
_core.hooks["forms"] = {"round": around, "add": _add, "subtract": _subtract, "divide": _divide, "logit": _logit}
_core.hooks["with_options"] = _with_options
for _name, _function in (*LINALG.items(), *NN.items(), *RANDOM.items(), *_core.hooks["forms"].items(), ("range", _range), ("t", _t)):
    if _function.__name__[0] == "_":
        _function.__name__ = _function.__qualname__ = _name

# Methods of arrays and of variables of compute.grad.
METHODS = {
    **{name: getattr(COMPUTE[name], "func", COMPUTE[name]) for name in (
        "absolute", "addbmm", "addmv", "addr", "adjoint", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "baddbmm", "bitwise_not", "clamp_max", "clamp_min", "diag_embed", "diagflat",
        "dist", "dsplit", "fix", "fliplr", "flipud", "gcd", "index_copy", "index_fill", "index_put", "is_nonzero", "is_same_size", "is_signed", "isreal", "lcm", "logaddexp2", "logcumsumexp", "logdet",
        "masked_scatter", "matrix_exp", "matrix_power", "mode", "msort", "multinomial", "pinverse", "cholesky", "qr", "renorm", "scatter_reduce", "slogdet", "svd", "true_divide", "unique_consecutive",
        "addcdiv", "addcmul", "addmm", "amax", "amin", "aminmax", "angle", "argwhere", "bmm", "chunk", "clamp", "cummax", "cummin", "cumprod", "cumsum", "diag", "diagonal", "div", "dot", "eq", "exp2",
        "float_power", "fmax", "fmin", "frac", "gather", "ge", "ger", "gt", "histc", "index_add", "index_select", "inner", "is_complex", "is_floating_point", "isneginf", "isposinf", "kthvalue", "ldexp", "le", "lerp", "lt", "mv",
        "vdot",
        "masked_fill", "masked_select", "mm", "mul", "narrow", "ne", "neg", "norm", "numel", "outer", "ptp", "relu", "repeat_interleave", "rot90", "scatter_add", "sgn", "sigmoid", "softmax",
        "sub", "swapaxes", "swapdims", "take_along_dim", "topk", "trace", "unbind", "unflatten", "unique", "unsqueeze")},
    **{name: _ROWS[name] for name in (
        "abs", "add", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_or", "bitwise_xor", "ceil", "copysign", "cos", "cosh", "deg2rad", "digamma", "divide",
        "equal", "erf", "erfc", "erfinv", "floor_divide", "fmod", "greater", "greater_equal", "heaviside", "hypot", "less", "less_equal", "lgamma", "logit", "logaddexp", "logical_xor", "negative", "nextafter",
        "not_equal", "rad2deg", "signbit", "sinc", "xlogy", "exp", "expm1", "floor", "isfinite", "isinf", "isnan", "log", "log10", "log1p",
        "log2", "logical_and", "logical_not", "logical_or", "maximum", "minimum", "multiply", "pow", "reciprocal", "remainder", "rsqrt", "sign", "sin", "sinh", "sqrt",
        "square", "subtract", "tan", "tanh", "trunc")},
    **{name: getattr(_functions, name) for name in ("allclose", "argsort", "bincount", "conj", "count_nonzero", "diff", "histogram", "isclose", "matmul", "nonzero", "quantile",
                                                    "searchsorted")},
    **{name: getattr(_numeric, name) for name in ("corrcoef", "cov", "kron", "nanmean", "hsplit", "nanmedian", "nanquantile", "nansum", "vsplit")},
    "broadcast_to": _manipulation.broadcast_to, "cross": linalg.cross, "expand_as": _expanded_as, "reshape_as": _shaped_as, "view_as": _shaped_as, "nelement": numel, "ndimension": ndim,
    **{f"new_{name}": _new(getattr(_creation, name)) for name in ("empty", "full", "ones", "zeros")}, "new_tensor": _new(tensor),
    "acosh": _ROWS["acosh"], "positive": _ROWS["positive"], "bitwise_left_shift": _ROWS["bitwise_left_shift"], "bitwise_right_shift": _ROWS["bitwise_right_shift"], "select": _select, "median": _median,
    "byte": _converted(_dtypes.uint8), "char": _converted(_dtypes.int8), "cfloat": _converted(_dtypes.complex64), "cdouble": _converted(_dtypes.complex128), "sum_to_size": _sum_to_size,
    "conjugate": _functions.conj, "repeat": _repeated, "take": _indexing.take, "flip": _manipulation.flip, "roll": _manipulation.roll,
    "tile": _tiled, "where": _where, "inverse": linalg.inv, "det": linalg.det, "short": _converted(_dtypes.int16), "tensor_split": _numeric.array_split, "movedim": _manipulation.moveaxis, "tril": _creation.tril, "triu": _creation.triu, "moveaxis": _manipulation.moveaxis,
    "logsumexp": nn.logsumexp, "log_softmax": nn.log_softmax, "round": around, "clone": copy,
    "expand": _expand, "permute": _permute, "t": _t, "dim": ndim, "type_as": _as, "float": _converted(_dtypes.float32),
    "double": _converted(_dtypes.float64), "half": _converted(_dtypes.float16), "bfloat16": _converted(_dtypes.bfloat16), "int": _converted(_dtypes.int32),
    "long": _converted(_dtypes.int64), "bool": _converted(_dtypes.bool), "detach": _detach, "split": _split_method, "element_size": _element_size, "nan_to_num": _numbers_for_nan, "unfold": _unfold}
# Methods of arrays alone: those that write, and those that show memory.
ARRAY_METHODS = {
    "sort": _sort_in_place, "fill": _fill, "view": _view, "to": _to, "numpy": _numpy, "cpu": _cpu, "cuda": _cuda, "contiguous": _contiguous, "scatter": _scatter, "stride": _stride, "tobytes": _tobytes,
    "add_": _in_place_scaled("add"), "sub_": _in_place_scaled("subtract"), "subtract_": _in_place_scaled("subtract"), "mul_": _in_place("multiply"), "multiply_": _in_place("multiply"),
    "div_": _div_in_place, "divide_": _div_in_place, "true_divide_": _in_place("divide"), "zero_": _zero_in_place,
    "bernoulli": _bernoulli, "random_": _random_in_place, "exponential_": _exponential_in_place, "fill_diagonal_": _fill_diagonal_in_place, "put_": _put_in_place,
    "pin_memory": _itself, "share_memory_": _itself, "detach_": _itself, "resolve_conj": _itself, "to_dense": _itself, "requires_grad_": _requires_grad_in_place,
    **{f"{name}_": _in_place(own) for name, own in (
        ("absolute", "abs"), ("acosh", "acosh"), ("arccos", "acos"), ("arcsin", "asin"), ("arctan", "atan"), ("asinh", "asinh"), ("atan2", "atan2"), ("atanh", "atanh"), ("bitwise_and", "bitwise_and"),
        ("bitwise_or", "bitwise_or"), ("bitwise_xor", "bitwise_xor"), ("copysign", "copysign"), ("deg2rad", "deg2rad"), ("digamma", "digamma"), ("erfc", "erfc"), ("erfinv", "erfinv"), ("fix", "trunc"),
        ("fmod", "fmod"), ("heaviside", "heaviside"), ("hypot", "hypot"), ("lgamma", "lgamma"), ("logit", "logit"), ("logical_and", "logical_and"), ("logical_or", "logical_or"), ("logical_xor", "logical_xor"),
        ("negative", "negative"), ("nextafter", "nextafter"), ("rad2deg", "rad2deg"), ("sgn", "sign"), ("sinc", "sinc"), ("xlogy", "xlogy"))},
    **{f"{name}_": _stored(COMPUTE[name], name) for name in (
        "addbmm", "addcdiv", "addcmul", "addmm", "addmv", "addr", "baddbmm", "clamp_max", "clamp_min", "cumprod", "cumsum", "eq", "exp2", "float_power", "frac", "gcd", "ge", "gt", "index_copy", "index_put", "lcm", "ldexp",
        "le", "lerp", "lt", "masked_scatter", "ne", "renorm", "scatter_reduce")},
    "bernoulli_": _stored(_bernoulli, "bernoulli"), "clip_": _clamp_in_place, "nan_to_num_": _stored(_numbers_for_nan, "nan_to_num"), "tril_": _stored(_creation.tril, "tril"),
    "triu_": _stored(_creation.triu, "triu"),
    **{f"{name}_": _in_place(name) for name in (
        "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "exp", "expm1", "floor", "floor_divide", "log", "log10", "log1p", "log2", "logical_not", "pow", "reciprocal", "relu",
        "remainder", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc")},
    "neg_": _in_place("negative"), "normal_": _normal_in_place, "uniform_": _uniform_in_place,
    "scatter_": _scatter_in_place, "scatter_add_": _scatter_add_in_place, "index_add_": _index_add_in_place, "type": _type, "index_fill_": _index_fill_in_place,
    "fill_": _fill_in_place, "copy_": _copy_in_place, "clamp_": _clamp_in_place, "masked_fill_": _masked_fill_in_place}


def offered(names: dict[str, Any]) -> list[str]:
    """What a module offers of its global names: without names that are private, or of other modules of Python."""
    module, listed = names["__name__"], {*names.get("__all__", ()), *LINALG, *NN, *RANDOM}

    def is_own(name, value):
        if isinstance(value, type(math)):
            return value.__name__.startswith("compute.") and module == "compute"
        if module == "compute" or name in listed or not isinstance(value, (type, types.FunctionType)):
            return True
        return value.__module__ == module

    return builtins.sorted(name for name, value in names.items()
                           if (name[0] != "_" or name[:2] == "__") and name != "annotations" and is_own(name, value))


class _Elsewhere:
    """An attribute that arrays do not have, with a message about it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        raise missing("compute.Array", self._name)


def _array_dir(x):
    return [name for name in object.__dir__(x) if name not in _HINTS["compute.Array"]]


def _as_method(name, function):
    if not hasattr(function, "__get__") or type(function).__name__ == "builtin_function_or_method":
        def run(self, *arguments, **options):
            return function(self, *arguments, **options)
        run.__doc__ = function.__doc__
        return _array._named(name, run)
    return _array._named(name, function)


def _install():
    for name, function in METHODS.items():
        method = _as_method(name, function)
        for kind in (Array, grad.Variable):
            if name not in vars(kind):
                setattr(kind, name, method)
    for name, function in ARRAY_METHODS.items():
        setattr(Array, name, _as_method(name, function))
    for name in _HINTS["compute.Array"]:
        if name not in vars(Array):
            setattr(Array, name, _Elsewhere(name))
    for kind in (Array, grad.Variable):
        kind.__divmod__, kind.__rdivmod__ = _array._named("__divmod__", divmod), _array._named("__rdivmod__", _reflected_divmod)
    Array.__dir__ = _array._named("__dir__", _array_dir)
    DType.__call__ = lambda self, *data: _creation.empty(data, dtype=self) if len(data) > 1 else _creation.asarray(*data or (0,), dtype=self)
    for kind in (Array, grad.Variable):
        kind.H = kind.mH = property(lambda self: COMPUTE["adjoint"](self), doc="The conjugated transpose; see adjoint.")
    grad.Variable.data = property(lambda self: grad.constant(self), doc="The value, through which no gradient passes.")
    grad.Variable.requires_grad = property(lambda self: True)
    grad.Variable.real, grad.Variable.imag = property(_functions.real), property(_functions.imag)
    for module, names, owner in ((linalg, LINALG, "compute.linalg"), (random, RANDOM, "compute.random"), (nn, NN, "compute.nn")):
        vars(module).update(names)
        module.__getattr__ = functools.partial(_refuse, owner)
    for module in (linalg, random, nn, grad, optim, graph, kernels, expressions):
        module.__dir__ = functools.partial(offered, vars(module))


def _refuse(owner, name):
    raise missing(owner, name)


_install()
