# SPDX-License-Identifier: Apache-2.0
"""The exceptions of the package. Each is also the exception of Python that a caller would expect."""
from __future__ import annotations

import re

from . import _core


class Error(Exception):
    """An error of the library.

    code       its name, as "INVALID_ARGUMENT"
    op         the name of the op, or ""
    argument   the position of the operand at fault, or -1
    attribute  the name of the attribute at fault, or ""
    device     the name of the device, or ""
    native_code  the vendor's error code, or 0
    """

    code = ""
    op = ""
    argument = -1
    attribute = ""
    device = ""
    native_code = 0


class InvalidArgumentError(Error, ValueError):
    """The call is wrong on any device."""


class InvalidTypeError(Error, TypeError):
    """The call is wrong on any device because of a dtype."""


class OutOfRangeError(Error, IndexError, OverflowError):
    """A size or an index does not fit."""


class OutOfMemoryError(Error, MemoryError):
    """The memory of the host or of a device is exhausted."""


class NotFoundError(Error, LookupError):
    """There is no such device, op, plugin or library."""


class UnsupportedError(Error, NotImplementedError):
    """The device does not support the call. The message says why."""


class DeviceError(Error, RuntimeError):
    """Work on a device failed, or the device cannot be used."""


class KernelError(DeviceError, IndexError):
    """A kernel detected a fault, such as an index out of range."""


class CompileError(DeviceError):
    """A kernel does not compile. The message contains the compiler's log."""


class ForkedError(DeviceError):
    """The device was opened before fork(). Use multiprocessing's start method "spawn"."""


for _error in (Error, InvalidArgumentError, InvalidTypeError, OutOfRangeError, OutOfMemoryError, NotFoundError,
               UnsupportedError, DeviceError, KernelError, CompileError, ForkedError):
    _error.__module__ = "compute"  # where programs find them

_TYPES = {
    "INVALID_ARGUMENT": InvalidArgumentError,
    "OUT_OF_RANGE": OutOfRangeError,
    "UNSUPPORTED": UnsupportedError,
    "OUT_OF_MEMORY": OutOfMemoryError,
    "OUT_OF_DEVICE_MEMORY": OutOfMemoryError,
    "NOT_FOUND": NotFoundError,
    "COMPILE_FAILED": CompileError,
    "KERNEL_FAILED": KernelError,
    "FORKED": ForkedError,
}
_CAST = re.compile(r"\bcast\((\w+), (\w+)\)")
_DTYPE_WORDS = ("dtype", "cast it", "promote", "not bool", "not integer", "floating-point")


def _exception(number, name, message, op, argument, attribute, native_code, device):
    kind = _TYPES.get(name, DeviceError)
    if kind is InvalidArgumentError and any(word in message for word in _DTYPE_WORDS):
        kind = InvalidTypeError
    error = kind(_CAST.sub(r"astype(\1, \2)", message))  # the op cast is called astype here
    error.code = name
    error.op = op
    error.argument = argument
    error.attribute = attribute
    error.native_code = native_code
    error.device = device
    return error


_core.hooks.update(exception=_exception, Error=Error)
