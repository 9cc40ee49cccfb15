# SPDX-License-Identifier: Apache-2.0
"""User kernels, compiled from source text."""
from __future__ import annotations

from . import _core, _creation, _dtypes
from ._core import Array

_READ_WRITE = 3


class Reads:
    """An array that a kernel only reads; see `reads`."""

    def __init__(self, array):
        self.array = array


def reads(array):
    """Marks an argument of a kernel that it only reads, so that other work may read it concurrently."""
    return Reads(array)


def _argument(value):
    if isinstance(value, Array):
        return value, _READ_WRITE
    if isinstance(value, Reads):
        return value.array, 1
    number, dtype = value if isinstance(value, tuple) else (_dtypes.number(value), None)
    number = _dtypes.number(number)
    if not isinstance(number, _dtypes.NUMBERS):
        raise TypeError(f"a kernel takes arrays and numbers, not {type(number).__name__}")
    return _creation.bytes_of(number, _default_dtype(number) if dtype is None else _dtypes._from_object(dtype))


def _default_dtype(number):
    if isinstance(number, int):
        return _dtypes.int64
    return _dtypes.complex128 if isinstance(number, complex) else _dtypes.float64


def _three(value):
    return (value,) if isinstance(value, int) else tuple(value)


class Kernel:
    """A kernel function. It is compiled for a device when it first runs there.

    `language` is "portable", which runs on every device that compiles, "cuda-c" or "opencl-c". docs/kernels.md describes
    them.
    """

    def __init__(self, source, name, *, language="portable", options=None):
        self.source, self.name, self.language, self.options = source, name, language, options
        self._compiled = {}

    def __repr__(self):
        return f"<compute.kernel {self.name!r}>"

    def __reduce__(self):
        return _rebuild, (self.source, self.name, self.language, self.options)

    def _compile(self, device):
        compiled = self._compiled.get(device.name)
        if compiled is None:
            compiled = _core.kernel(device, self.language, self.source, self.name, self.options)
            self._compiled[device.name] = compiled
        return compiled

    def __call__(self, items, *arguments, group=64, local_memory_bytes=0):
        """Queues a run with at least `items` work-items, 1 to 3 numbers, in groups of `group`.

        Arguments are arrays, which the kernel sees as the address of their first element; integers (int64), floats
        (float64), or (number, dtype). At least one is an array; it decides the device.
        """
        arrays = [x.array if isinstance(x, Reads) else x for x in arguments if isinstance(x, (Array, Reads))]
        if not arrays:
            raise TypeError("a kernel needs at least one array among its arguments")
        items, group = _three(items), _three(group)
        group += (1,) * (len(items) - len(group))
        groups = tuple(-(-count // max(size, 1)) for count, size in zip(items, group))
        self._compile(arrays[0].device).launch(groups, group, local_memory_bytes, [_argument(x) for x in arguments])


def _rebuild(source, name, language, options):
    return Kernel(source, name, language=language, options=options)


def kernel(source, name, *, language="portable", options=None):
    """A kernel from source text; `name` is the function in it."""
    return Kernel(source, name, language=language, options=options)
