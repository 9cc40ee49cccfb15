# SPDX-License-Identifier: Apache-2.0
"""Variables of Keras, and conversions between tensors and what programs have.

A tensor is an Array of compute, or inside a training step a Variable of compute.grad.
"""
from __future__ import annotations

import contextlib
import functools
import threading

import compute as cp
import numpy as np
from compute import grad
from keras.src import tree
from keras.src.backend import config
from keras.src.backend.common import dtypes
from keras.src.backend.common.stateless_scope import in_stateless_scope
from keras.src.backend.common.symbolic_scope import in_symbolic_scope
from keras.src.backend.common.variables import Variable as KerasVariable
from keras.src.backend.common.variables import standardize_dtype

from .sparse import SparseTensor

SUPPORTS_SPARSE_TENSORS = True
SUPPORTS_RAGGED_TENSORS = False
SUPPORTS_COMPLEX_DTYPES = True
IS_THREAD_SAFE = True

recorded = threading.local()  # `variables`: the identities of those that the step which this thread records may assign

SEED_STATE = "seed_generator_state"  # what Keras calls the variable of a generator

TENSORS = (cp.Array, grad.Variable)
DTYPES = {name: getattr(cp, name) for name in (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128")}


def dtype_of(dtype):
    """The dtype of compute for one of Keras, NumPy or Python."""
    if type(dtype) is cp.DType:
        return dtype
    name = dtype if dtype in DTYPES else standardize_dtype(dtype)
    if name not in DTYPES:
        raise TypeError(f"the backend compute has no dtype {name}")
    return DTYPES[name]


@functools.lru_cache(None)
def _common(floatx, kinds):
    return DTYPES[dtypes.result_type(*(kind.name if isinstance(kind, cp.DType) else kind for kind in kinds))]


def common(*kinds):
    """The dtype of compute that Keras gives to a result of operands of these dtypes and types of Python."""
    return _common(config.floatx(), kinds)


@contextlib.contextmanager
def device_scope(device_name):
    """Makes a device the default one. "gpu" and "gpu:0" are CUDA's devices, others the names of compute."""
    if not isinstance(device_name, str):
        raise ValueError(f"Invalid value for argument `device_name`. Expected a string like 'gpu:0' or 'cpu'. "
                         f"Received: device_name='{device_name}'")
    kind, _, index = device_name.lower().removeprefix("/").partition(":")
    if kind == "cpu":
        name = "cpu"
    elif kind in ("gpu", "cuda"):
        name = f"cuda{index}"
    else:
        name = device_name
    with cp.device(name) as device:
        yield device


class Variable(KerasVariable):
    def _initialize(self, value):
        self._direct_assign(value)

    def _direct_assign(self, value):
        known = getattr(recorded, "variables", None)
        if known is not None and id(self) not in known:
            raise RuntimeError(f"the variable {self.path} is assigned in a recorded step that does not know it")
        value = grad.constant(dense_tensor(value, self._dtype))
        if self._name == SEED_STATE and value.device.name != "cpu":  # it is read for every draw
            value = value.to_device("cpu")
        self._value = value

    def _convert_to_tensor(self, value, dtype=None):
        return convert_to_tensor(value, dtype=dtype)

    @property
    def value(self):
        if self._value is None and in_symbolic_scope() and in_stateless_scope():
            return self._maybe_autocast(cp.zeros(self._shape, dtype=dtype_of(self._dtype)))
        return super().value

    def __array__(self, dtype=None, copy=None):
        value = convert_to_numpy(self.value)
        return value if dtype is None else value.astype(dtype)


class Float8:
    """Numbers of 8 bits, kept in float32. Keras only converts to and from them."""

    # Bits of the mantissa, the least exponent, and the greatest number.
    KINDS = {"float8_e4m3fn": (3, -6, 448.0), "float8_e5m2": (2, -14, 57344.0)}
    _exponent = cp.expression("bitcast(bitcast(x, uint32) & 2139095040, float32)")

    def __init__(self, x, name):
        bits, least, most = self.KINDS[name]
        x = grad.constant(cast(x, cp.float32))
        step = cp.maximum(self._exponent(x=x), 2.0 ** least) * 2.0 ** -bits
        rounded = cp.round(x / step) * step
        beyond = cp.full((), float("nan") if name == "float8_e4m3fn" else float("inf"), dtype=cp.float32)
        self.value = cp.where(cp.abs(rounded) <= most, rounded, cp.copysign(beyond, rounded))
        self.dtype = name

    shape = property(lambda self: self.value.shape)
    ndim = property(lambda self: self.value.ndim)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.value).astype(dtype or self.dtype)


def is_tensor(x):
    return isinstance(x, (*TENSORS, Float8, SparseTensor))


def _from_numpy(x, dtype):
    """An array with the elements of one of NumPy, and with memory of its own."""
    if x.dtype.kind not in "biufc":
        if x.dtype.name != "bfloat16":
            raise ValueError(f"Cannot convert an array of {x.dtype} to a tensor")
        return cast(cp.asarray(x.astype(np.float32), copy=True), dtype or cp.bfloat16)
    if dtype is None:
        dtype = common(x.dtype.name)
    if x.dtype.name != dtype.name and dtype is not cp.bfloat16:
        return cp.asarray(x.astype(dtype.name))
    return cast(cp.asarray(x, copy=True), dtype)


def _from_number(x, dtype):
    if dtype is None:
        dtype = cp.int64 if type(x) is int and not -2 ** 31 <= x < 2 ** 31 else common(type(x))
    return cp.full((), x, dtype=dtype) if dtype.name[0] in "fcb" else _from_numpy(np.asarray(x), dtype)


def convert_to_tensor(x, dtype=None, sparse=None, ragged=None):
    if isinstance(x, SparseTensor):
        x = x.dense() if sparse is False else x
        return x if dtype is None else cast(x, dtype)
    if isinstance(x, Float8) or (isinstance(dtype, str) and dtype in Float8.KINDS):
        return x if dtype is None else cast(x, dtype)
    if dtype is not None:
        dtype = dtype_of(dtype)
    if isinstance(x, TENSORS):
        return x if dtype is None or x.dtype is dtype else cast(x, dtype)
    if ragged:
        raise ValueError("`ragged=True` is not supported with the compute backend")
    if isinstance(x, Variable):
        return convert_to_tensor(x.value, dtype)
    if isinstance(x, np.ndarray):
        return _from_numpy(x, dtype)
    if isinstance(x, (bool, int, float, complex)):
        return _from_number(x, dtype)
    if isinstance(x, (list, tuple)):
        leaves = tree.flatten(x)
        if any(isinstance(leaf, (*TENSORS, Variable)) for leaf in leaves):
            parts = [convert_to_tensor(part) for part in x]
            dtype = dtype or common(*(part.dtype for part in parts))
            return cp.stack([cast(part, dtype) for part in parts])
        if dtype is None:
            dtype = common(*{getattr(leaf, "dtype", type(leaf)) for leaf in leaves})
        return _from_numpy(np.asarray(x, dtype=None if dtype is cp.bfloat16 else dtype.name), dtype)
    return _from_numpy(np.asarray(x), dtype)


def dense_tensor(x, dtype=None):
    """A tensor for functions that know no sparse ones."""
    return convert_to_tensor(x, dtype, sparse=False)


def convert_to_numpy(x):
    if isinstance(x, Variable):
        x = x.value
    if isinstance(x, SparseTensor):
        x = x.dense()
    if isinstance(x, grad.Variable):
        x = x.value
    if isinstance(x, (list, tuple)):
        return np.array([convert_to_numpy(one) for one in x])
    if isinstance(x, cp.Array) and x.dtype is cp.bfloat16:
        return np.array(cp.astype(x, cp.float32)).astype("bfloat16")  # ml_dtypes, which Keras imports, has registered it
    return np.array(x)


def shape(x):
    return tuple(x.shape)


def cast(x, dtype):
    if isinstance(x, Float8):
        x = x.value
    if isinstance(x, SparseTensor):
        return x.with_values(cast(x.values, dtype))
    if isinstance(dtype, str) and dtype in Float8.KINDS:
        return Float8(x, dtype)
    dtype = dtype_of(dtype)
    if isinstance(x, Variable):
        x = x.value
    if not isinstance(x, TENSORS):
        return convert_to_tensor(x, dtype)
    if x.dtype is dtype:
        return x
    if x.dtype.name.startswith("complex") and not dtype.name.startswith(("complex", "bool")):
        x = cp.real(x)
    return cp.astype(x, dtype, copy=False)


def in_row_major(x):
    """Channels last that are a view of row-major channels first, as that; other tensors are None."""
    memory = x.value if isinstance(x, grad.Variable) else x
    if memory.is_contiguous or not 3 <= memory.ndim <= 5:
        return None
    found = cp.permute_dims(x, (0, memory.ndim - 1, *range(1, memory.ndim - 1)))
    return found if (found.value if isinstance(found, grad.Variable) else found).is_contiguous else None


def channels_last(x):
    """Channels first as channels last, as a view."""
    return cp.permute_dims(x, (0, *range(2, x.ndim), 1))


def number_or_tensor(x):
    """Numbers of Python as they are, and everything else as a tensor."""
    return x if type(x) in (int, float) else dense_tensor(x)


def kind(x):
    return x.dtype if isinstance(x, TENSORS) else type(x)


def constant(x):
    """The elements of a tensor as an array of compute, through which no gradient passes."""
    return grad.constant(dense_tensor(x))
