# SPDX-License-Identifier: Apache-2.0
"""The exceptions of the package. Each is also the exception of Python that a caller would expect."""
from __future__ import annotations

import re
import sys

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
_C_FUNCTION = re.compile(r"^(compute_\w+|broadcast)(?=:)")
_CAST = re.compile(r"\bcast\((\w+), (\w+)\)")
_DTYPE_WORDS = ("dtype", "cast it", "promote", "not bool", "not integer", "floating-point")


def called():
    """The name of the function of this package that the program called, for messages; "" of operators and the like."""
    frame, name = sys._getframe(1), ""
    while frame is not None and frame.f_code.co_filename.startswith(_core.hooks["folder"]):
        frame, name = frame.f_back, frame.f_code.co_name
    return "" if name.startswith(("_", "<")) else name


def _said(message):
    name = called()
    return f"{name}: {message}" if name else message


def _exception(number, name, message, op, argument, attribute, native_code, device):
    kind = _TYPES.get(name, DeviceError)
    if kind is InvalidArgumentError and any(word in message for word in _DTYPE_WORDS):
        kind = InvalidTypeError
    message = _CAST.sub(r"astype(\1, \2)", message)  # the op cast is called astype here
    message = message.replace("compute_device_open", "device", 1)
    function = called()
    error = kind(_C_FUNCTION.sub(function, message) if function else message)
    error.code = name
    error.op = op
    error.argument = argument
    error.attribute = attribute
    error.native_code = native_code
    error.device = device
    return error


def hint(value):
    """What to do about an argument that is neither an array nor a number."""
    return "; use compute.asarray" if isinstance(value, (list, tuple)) or hasattr(value, "__array__") else ""


def no_array(value):
    """Refuses an argument that should be an array. A hook of the extension, for ndim_of and the like."""
    raise TypeError(_said(f"{type(value).__name__} is not a compute.Array; use compute.asarray"))


def check_extents(**extents):
    """Refuses extents that are negative, by the names that the called function has for them."""
    for name, extent in extents.items():
        if extent < 0:
            raise ValueError(_said(f"{name} is {extent}; it must not be negative")) from None


def no_integers(value, kind):
    """Refuses an argument that should be integers. A hook of the extension."""
    wrong = "does not fit in 64 bits" if kind is OverflowError else "is neither an integer nor a sequence of integers"
    raise kind(_said(f"{value!r} {wrong}"))


_core.hooks.update(exception=_exception, Error=Error, no_array=no_array, no_integers=no_integers)
