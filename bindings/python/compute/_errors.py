# SPDX-License-Identifier: Apache-2.0
"""The exceptions of the package. Each is also the matching Python exception."""
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


class CancelledError(DeviceError):
    """The work was cancelled."""


class PeerError(DeviceError):
    """Another process of a group failed or is gone."""


class FileError(Error, OSError):
    """A file cannot be read or written."""


class NumericalError(Error, ArithmeticError, ValueError):
    """The data have no result, such as a singular matrix."""


class ForkedError(DeviceError):
    """The device was opened before fork(). Use multiprocessing's start method "spawn"."""


for _error in (Error, InvalidArgumentError, InvalidTypeError, OutOfRangeError, OutOfMemoryError, NotFoundError,
               UnsupportedError, DeviceError, KernelError, CompileError, CancelledError, PeerError, FileError, NumericalError,
               ForkedError):
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
    "CANCELLED": CancelledError,
    "PEER_FAILED": PeerError,
    "NUMERICAL": NumericalError,
    "IO": FileError,
}
_C_FUNCTION = re.compile(r"^(compute_\w+|broadcast)(?=:)")
# What messages of the library say, in the words of this package.
_WORDS = [(re.compile(pattern), words) for pattern, words in (
    (r"^(gather_(?:at|nd))(?=: (an )?index )", r"x[...] (\1)"), (r"^(scatter_(?:at|nd))(?=: (an )?index )", r"x[...] = y (\1)"),
    (r"\bcast\(([^(),]+), (\w+)\)", r"astype(\1, \2)"),
    (r"\bcast (it|one of them|updates|the result)\b", r"convert \1"),
    (r"\bthe number float64\b", "a float"), (r"\bthe number complex128\b", "a complex number"),
    (r"\bthe number u?int64\b", "an int"), (r"\bthe number bool\b", "a bool"),
    (r"\binput (\d+) is NULL$", r"argument \1 is None; expected an array or a number"), (r"\boutput 0\b", "out"), (r"\boutput (\d+)\b", r"out[\1]"),
    (r"open the device after fork\(\), or call exec\(\) in the child", 'use multiprocessing\'s start method "spawn"'),
    (r"use a copy \(in Python (asarray\(x, copy=True\))\).*", r"use \1, which is copied once"),
    (r"\bcompute_device_open\b", "device"), (r"\bcompute_graph_begin\b", "graph.record"),
    (r"\bcompute_tensor_(map|read)\b", "numpy.asarray"), (r"\bcall compute_profile_start or set COMPUTE_PROFILE=1", "use `with compute.profile():`"),
    (r"\bwithout COMPUTE_EVENT_TIMED\b", "without timed=True"),
    (r"( is -?[\d.e-]*[.e-][\d.e-]*, which does not fit in u?int\d+)$", r"\1; use a floating-point dtype"),
    (r"\bcompute_(?!plugin)(?:tensor_|stream_|event_|graph_|device_|op_|kernel_)?(\w+)", r"\1"))]
_DTYPE_WORDS = ("dtype", "cast it", "promote", "not bool", "not integer", "floating-point", "cast updates")


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
    function = called()
    message = _C_FUNCTION.sub(function, message) if function else message
    first, newline, rest = message.partition("\n")  # a load report, a compiler's log or a scope follows
    for pattern, words in _WORDS:
        first = pattern.sub(words, first)
    if kind is KernelError and device != "cpu" and "\nscope: " not in message:  # found after the call of the op
        if _core.config_get("COMPUTE_SYNC")[0] != "1":
            first += "; COMPUTE_SYNC=1 raises this where the op is called"
    error = kind(first + newline + rest)
    error.code = name
    error.op = op
    error.argument = argument
    error.attribute = attribute
    error.native_code = native_code
    error.device = device
    return error


# Keywords of NumPy and PyTorch, and the parameters of this package that mean the same.
_KEYWORDS = {"dim": "axis", "dims": "axis", "keepdim": "keepdims", "ddof": "correction", "input": "x", "steps": "num", "diagonal": "k",
             "num_classes": "depth", "shifts": "shift", "rcond": "rtol", "size": "shape", "a_min": "min", "a_max": "max", "end": "stop", "dim1": "axis1", "dim2": "axis2",
             "dim0": "axis1", "axis0": "axis1", "reps": "repetitions"}


_DEFAULTS = {}  # of the parameters of functions: inspect takes longer than an op on a small array


def resolved(function, names, known):
    """The parameters `known` of a function, with those that a call has by the keywords `names` of NumPy or PyTorch.

    `known` has the parameters that were given, or their defaults.
    """
    defaults = _DEFAULTS.get(function)
    if defaults is None:
        import inspect  # takes a tenth of the package's own time to import

        defaults = _DEFAULTS[function] = {name: one.default for name, one in inspect.signature(function).parameters.items()}
    for name, value in names.items():
        if name == "requires_grad":
            no_gradient(value)
            continue
        if name in ("layout", "memory_format", "non_blocking", "pin_memory"):  # of no consequence here
            continue
        own = _KEYWORDS.get(name)
        if name == "dims":
            own = "axes" if "axes" in known else "repetitions" if "repetitions" in known else own
        if own not in known:
            raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}; expected {', '.join(known) or 'none'}")
        if known[own] is not defaults[own]:
            raise TypeError(f"{function.__name__}() got {name!r} beside {own!r}, which is the same")
        known[own] = value
    return known


def no_gradient(requires_grad):
    """Refuses PyTorch's `requires_grad` where it is true."""
    if requires_grad:
        raise TypeError(_said("arrays do not record gradients; use compute.grad.value_and_gradients, which takes a function"))


def renamed(function, names, /, *arguments, **known):
    """Calls a function again, with the keywords `names` under the names that the package has for them."""
    return function(*arguments, **resolved(function, names, known))


def hint(value):
    """What to do about an argument that is neither an array nor a number."""
    return "; use compute.asarray" if isinstance(value, (list, tuple)) or hasattr(value, "__array__") else ""


def no_array(value):
    """Refuses an argument that should be an array. A hook of the extension, for ndim_of and the like."""
    raise TypeError(_said(f"{type(value).__name__} is not an array; use compute.asarray"))


def check_extents(**extents):
    """Refuses extents that are negative, by the names that the called function has for them."""
    for name, extent in extents.items():
        if extent < 0:
            raise ValueError(_said(f"{name} is {extent}; it must not be negative")) from None


def _shortened(value):
    text = repr(value)
    return text if len(text) <= 40 or not isinstance(value, int) else f"{text[:12]}... ({len(text)} digits)"


def _too_large(number, what, dtype):
    """Refuses a number of Python that an attribute or an element has no room for. A hook of the extension."""
    subject = f"{what} is {_shortened(number)}, which" if what else f"the number {_shortened(number)}"
    raise OverflowError(_said(f"{subject} does not fit in {dtype}"))


def as_float(number, kind=float):
    """The float of a number, or its complex number; OverflowError if there is none."""
    try:
        return kind(number)
    except OverflowError:
        _too_large(number, "", "float64")


def no_integers(value, kind):
    """Refuses an argument that should be integers. A hook of the extension."""
    if kind is OverflowError:
        raise kind(_said(f"{_shortened(value)} does not fit in 64 bits"))
    raise kind(_said(f"{value!r} is neither an integer nor a sequence of integers"))


_core.hooks.update(exception=_exception, Error=Error, no_array=no_array, no_integers=no_integers,
                    too_large=_too_large)
