# SPDX-License-Identifier: Apache-2.0
"""Where values are: arrays of NumPy on the host, arrays of `compute` on the device, and storage that has either."""
from __future__ import annotations

import copy
import functools
import threading

import numpy as np

import compute as cp
from compute import Array

_lock = threading.Lock()
_device = None


def device():
    """The device that functions run on: the one that COMPUTE_DEVICE names, or the best one."""
    global _device
    if _device is None:
        with _lock:
            if _device is None:
                _device = cp.device()
    return _device


def is_host_device():
    """Whether the device is `cpu`, which shares the memory of arrays of NumPy."""
    return device().name == "cpu"


@functools.lru_cache(maxsize=None)
def has_dtype(name):
    """Whether the device computes in a dtype."""
    return bool(device().info()["dtypes"].get(name))


@functools.lru_cache(maxsize=None)
def dtype_of(name):
    """The dtype of `compute` for the name of one of NumPy's."""
    return getattr(cp, str(name))


def to_device(x):
    """The value as an array on the device. On `cpu` it shares the memory of an array of NumPy."""
    if isinstance(x, Array):
        return x
    if not isinstance(x, np.ndarray):
        x = np.asarray(x)
    try:
        return cp.asarray(x, device=device())
    except (BufferError, ValueError, TypeError):  # unaligned, in the other byte order, or not writable
        return cp.asarray(np.array(x, dtype=x.dtype.newbyteorder("="), order="C"), device=device())


def to_host(x):
    """The value as an array of NumPy. Those of `cpu` share the memory of the array."""
    return np.asarray(x) if isinstance(x, Array) else x


def copied(x):
    """A copy of an array of the device."""
    return cp.asarray(x, copy=True)


class Storage(list):
    """The storage of a shared variable: its value on the host, on the device, or both.

    PyTensor reads `storage[0]`, an array of NumPy. Functions of this linker use `array` instead, so the values of shared
    variables stay on the device between calls.
    """

    __slots__ = ("array",)

    def __init__(self, values=()):
        self.array = None
        super().__init__([None])
        for value in values:
            self[0] = value

    def on_device(self):
        """The value on the device. A function calls this if `array` is None."""
        if self.array is None:
            value = list.__getitem__(self, 0)
            self.array = to_device(value) if is_host_device() else to_device(np.asarray(value))
        return self.array

    def __getitem__(self, index):
        value = list.__getitem__(self, index)
        if value is None and self.array is not None:
            value = to_host(self.array)
            if is_host_device():  # else the host's copy is not what functions use, so each reader has its own
                list.__setitem__(self, 0, value)
        return value

    def __setitem__(self, index, value):
        if isinstance(value, Array):
            self.array = value
            value = None
        else:
            self.array = None
        list.__setitem__(self, 0, value)

    def __iter__(self):
        return iter((self[0],))

    def __copy__(self):
        return Storage([self[0]])

    def __deepcopy__(self, memo):
        return Storage([copy.deepcopy(self[0], memo)])

    def __reduce__(self):
        return Storage, ([self[0]],)
