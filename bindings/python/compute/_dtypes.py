# SPDX-License-Identifier: Apache-2.0
"""Data types, their limits and their promotion."""
from __future__ import annotations

import array
import bisect
import builtins
import functools
import math
import operator
import struct
import sys
from typing import NamedTuple

from . import _core
from ._errors import hint, no_array
from ._core import (Array, DType, bfloat16, bool, complex64, complex128, float8_e4m3fn, float8_e5m2, float16, float32, float64,
                    int8, int16, int32, int64, uint8, uint16, uint32, uint64)

SIGNED = (int8, int16, int32, int64)
UNSIGNED = (uint8, uint16, uint32, uint64)
INTEGERS = SIGNED + UNSIGNED
FLOATS = (float16, bfloat16, float32, float64)
COMPLEX = (complex64, complex128)
INEXACT = frozenset(FLOATS + COMPLEX)
EXACT = frozenset((bool,) + INTEGERS)  # which functions of floating-point numbers convert to the default dtype
FLOAT8 = (float8_e4m3fn, float8_e5m2)  # stored, moved, converted and multiplied; other ops refuse them
ALL = (bool,) + INTEGERS + FLOATS + COMPLEX + FLOAT8

# Without a dtype, numbers of Python become this, and DEFAULT_FLOAT and DEFAULT_COMPLEX, which __getattr__ makes.
DEFAULT_INTEGER = int64

_KINDS = {
    "bool": frozenset([bool]),
    "signed integer": frozenset(SIGNED),
    "unsigned integer": frozenset(UNSIGNED),
    "integral": frozenset(INTEGERS),
    "real floating": frozenset(FLOATS + FLOAT8),
    "complex floating": frozenset(COMPLEX),
    "numeric": frozenset(INTEGERS + FLOATS + COMPLEX + FLOAT8),
}
_BY_NAME = {dtype.name: dtype for dtype in ALL}
# The other names that NumPy has for them.
_BY_CODE = {code: dtype for dtype, codes in {
    bool: "?", int8: "b i1", int16: "h i2", int32: "i i4", int64: "q l p i8", uint8: "B u1", uint16: "H u2", uint32: "I u4", uint64: "Q L P u8",
    float16: "e f2 half", float32: "f f4 single", float64: "d f8 double", complex64: "F c8", complex128: "D c16"}.items() for code in codes.split()}
_KINDS_OF_NUMBERS = {builtins.bool: "bool", int: "DEFAULT_INTEGER", float: "DEFAULT_FLOAT", complex: "DEFAULT_COMPLEX"}


def __getattr__(name):
    """DEFAULT_FLOAT and DEFAULT_COMPLEX come from the setting COMPUTE_FLOAT when one is first used: a program may set it before."""
    if name not in ("DEFAULT_FLOAT", "DEFAULT_COMPLEX"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    is_single = _core.config_get("COMPUTE_FLOAT")[0] == "float32"
    defaults = {"DEFAULT_FLOAT": float32 if is_single else float64, "DEFAULT_COMPLEX": complex64 if is_single else complex128}
    globals().update(defaults)
    return defaults[name]


def set_setting(name, value):
    """Sets a setting, or unsets it by None."""
    _core.config_set(name, value)
    for default in ("DEFAULT_FLOAT", "DEFAULT_COMPLEX"):
        globals().pop(default, None)  # read again


def named(name):
    """The dtype of a name, or None."""
    return _BY_NAME.get(name)


def _from_object(value):
    """The dtype that another object means: a name, a type of Python, or a dtype of NumPy. The hook of the extension."""
    if isinstance(value, DType):
        return value
    if isinstance(value, type):
        if value in _KINDS_OF_NUMBERS:
            return getattr(sys.modules[__name__], _KINDS_OF_NUMBERS[value])
    name = value if isinstance(value, str) else getattr(value, "name", getattr(value, "__name__", None))
    if name in _BY_NAME and not isinstance(value, Array):
        return _BY_NAME[name]
    if isinstance(value, str):
        if value.lstrip("<=|") in _BY_CODE:
            return _BY_CODE[value.lstrip("<=|")]
        for kind in _KINDS_OF_NUMBERS:
            if value == kind.__name__:
                return _from_object(kind)
    raise TypeError(f"{value!r} is not a dtype; expected bool, an integer dtype such as int32 or uint8, float16, bfloat16, float32, float64, complex64, complex128, float8_e4m3fn or float8_e5m2")


_core.hooks["dtype"] = _from_object


NUMBERS = (builtins.bool, int, float, complex)
_KINDS_OF_TYPES = {builtins.bool: "b", int: "i", float: "f", complex: "c"}
PLAIN = (Array, *NUMBERS)


def _operand(value):
    """The number of Python that another object stands for, such as an integer of NumPy. The hook of the extension."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        found = value.item()
        return found if isinstance(found, NUMBERS) else NotImplemented
    if hasattr(type(value), "__index__") and not hasattr(value, "shape"):  # not an array of another library
        return operator.index(value)
    return NotImplemented


_core.hooks["operand"] = _operand


def number(value):
    """The number of Python that a value is or stands for; other values as they are."""
    if isinstance(value, PLAIN) or value is None:
        return value
    found = _operand(value)
    return value if found is NotImplemented else found


def check_range(number, dtype):
    """Raises OverflowError if an integer does not fit in an integer dtype."""
    limits = _LIMITS.get(dtype)
    if limits is not None and not limits.min <= number <= limits.max:
        raise OverflowError(f"the number {number} does not fit in {dtype.name}")


def in_float16(number):
    """A number as one that struct packs as a float16: those that it refuses are rounded to an infinity."""
    return math.copysign(math.inf, number) if abs(number) >= 65520 else number


def in_bfloat16(number):
    """The bfloat16 nearest to a number, by way of the nearest float32, as the upper 16 bits of that."""
    bits, = struct.unpack("I", array.array("f", [number]).tobytes())
    if number == number:  # NaN keeps its upper bits: with the lower ones it could become an infinity
        bits += 0x7FFF + ((bits >> 16) & 1)
    return bits >> 16


@functools.cache
def float8_values(dtype):
    """The numbers of the codes 0 to 127 of a float8, in ascending order: those of e4m3fn end with NaN, those of e5m2 with infinity and NaN."""
    mantissa, bias = (3, 7) if dtype is float8_e4m3fn else (2, 15)
    values = [math.ldexp((code & (1 << mantissa) - 1) + (1 << mantissa if code >> mantissa else 0), max(code >> mantissa, 1) - bias - mantissa)
              for code in range(128)]
    values[127:] = [math.nan]
    if dtype is float8_e5m2:
        values[124:] = [math.inf, math.nan, math.nan, math.nan]
    return values


def in_float8(number, dtype):
    """The code of the float8 nearest to a number, as the library converts it."""
    sign, values = 128 if math.copysign(1.0, number) < 0 else 0, float8_values(dtype)
    last = 126 if dtype is float8_e4m3fn else 123
    if number != number:
        return sign | (127 if dtype is float8_e4m3fn else 126)
    size = abs(number)
    code = bisect.bisect_left(values, size, 0, last + 1)
    above = values[code] if code <= last else 2 * values[last] - values[last - 1]  # as if numbers went on
    if code > 0 and size < above:
        middle = (values[code - 1] + above) / 2
        code -= size < middle or (size == middle and code % 2 == 1)
    return sign | code


def of_float8(code, dtype):
    """The number that a code of float8 stands for."""
    return math.copysign(float8_values(dtype)[code & 127], -1.0 if code & 128 else 1.0)


def set_default_dtype(dtype, /):
    """Makes float32 or float64 the dtype of floating-point numbers without one, and complex64 or complex128 likewise.

    It is the setting COMPUTE_FLOAT, float32 by default. Code that was written for NumPy may rely on float64.

    Raises ValueError for other dtypes.

    >>> compute.set_default_dtype(compute.float64)
    >>> compute.asarray([0.5]).dtype
    compute.float64
    >>> compute.set_default_dtype(compute.float32)
    """
    dtype = _from_object(dtype)
    if dtype not in (float32, float64):
        raise ValueError(f"set_default_dtype: {dtype} is neither float32 nor float64")
    set_setting("COMPUTE_FLOAT", dtype.name)


class finfo_object(NamedTuple):
    """The limits of a floating-point dtype."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


class iinfo_object(NamedTuple):
    """The limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: DType


_MANTISSA = {float16: 10, bfloat16: 7, float32: 23, float64: 52, float8_e4m3fn: 3, float8_e5m2: 2}
_EXPONENT = {float16: 15, bfloat16: 127, float32: 127, float64: 1023, float8_e4m3fn: 7, float8_e5m2: 15}
_PART = {complex64: float32, complex128: float64}


def finfo(type, /):
    """The limits of a floating-point dtype, or of the parts of a complex one.

    Raises TypeError for other dtypes.

    >>> compute.finfo(compute.float32).eps == 2 ** -23
    True
    """
    dtype = type.dtype if isinstance(type, Array) else _from_object(type)
    part = _PART.get(dtype, dtype)
    if part not in FLOATS + FLOAT8:
        raise TypeError(f"finfo needs a floating-point dtype, not {dtype}")
    bits, exponent = _MANTISSA[part], _EXPONENT[part]
    largest = 448.0 if part is float8_e4m3fn else math.ldexp(2.0 - 2.0 ** -bits, exponent)  # without infinities, the last binade is NaN alone
    return finfo_object(8 * part.itemsize, 2.0 ** -bits, largest, -largest, 2.0 ** (1 - exponent), part)


def iinfo(type, /):
    """The limits of an integer dtype.

    Raises TypeError for other dtypes.

    >>> compute.iinfo(compute.int8).max
    127
    """
    dtype = type.dtype if isinstance(type, Array) else _from_object(type)
    if dtype not in INTEGERS:
        raise TypeError(f"iinfo needs an integer dtype, not {dtype}")
    return _LIMITS[dtype]


def _limits(dtype):
    bits = 8 * dtype.itemsize
    if dtype in SIGNED:
        return iinfo_object(bits, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), dtype)
    return iinfo_object(bits, 2 ** bits - 1, 0, dtype)


_LIMITS = {dtype: _limits(dtype) for dtype in INTEGERS}


def isdtype(dtype, kind):
    """Whether `dtype` is `kind`: a dtype, the name of a kind such as "real floating", or a tuple of these.

    Kinds are "bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating" and "numeric".

    >>> compute.isdtype(compute.int8, "integral")
    True
    """
    if type(dtype) is not DType:
        dtype = _from_object(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"{kind!r} is not a kind of dtypes: {', '.join(_KINDS)}")
        return dtype in _KINDS[kind]
    if isinstance(kind, DType):
        return dtype is kind
    raise TypeError(f"{kind!r} is neither a dtype nor the name of a kind")


def _promote_integers(a, b):
    if (a in SIGNED) == (b in SIGNED):
        return a if a.itemsize >= b.itemsize else b
    signed, unsigned = (a, b) if a in SIGNED else (b, a)
    size = signed.itemsize if signed.itemsize > unsigned.itemsize else 2 * unsigned.itemsize
    return {2: int16, 4: int32, 8: int64}.get(size)


def _promote_inexact(a, b):
    if a in FLOATS and b in FLOATS:
        if a.itemsize != b.itemsize:
            return a if a.itemsize > b.itemsize else b
        return float32  # float16 and bfloat16
    double = 8 in (a.itemsize if a in FLOATS else a.itemsize // 2, b.itemsize if b in FLOATS else b.itemsize // 2)
    return complex128 if double else complex64


_ORDER = {dtype: place for place, dtypes in enumerate(((bool,), INTEGERS, FLOATS + FLOAT8, COMPLEX)) for dtype in dtypes}


def kind(value):
    """The place of a dtype, or of a number of Python, in the order bool < integer < real < complex."""
    if isinstance(value, DType):
        return _ORDER[value]
    for place, one in enumerate(NUMBERS):
        if isinstance(value, one):
            return place
    raise TypeError(f"{value!r} is neither a dtype nor a number")


@functools.cache
def kinds_mix():
    """Whether dtypes of different kinds have a common one. The library, too, reads the setting once."""
    return _core.config_get("COMPUTE_PROMOTION")[0] != "strict"


def promote(a, b):
    """The dtype that two dtypes have in common: of two kinds the higher one's, else as in the tables of the standard."""
    if a is b:
        return a
    found = None
    if a in INTEGERS and b in INTEGERS:
        found = _promote_integers(a, b)
    elif a in FLOATS + COMPLEX and b in FLOATS + COMPLEX:
        found = _promote_inexact(a, b)
    elif (a in FLOAT8 or b in FLOAT8) and kind(a) >= 2 and kind(b) >= 2:
        pass
    elif kinds_mix():
        found = a if kind(a) > kind(b) else b
    if found is None:
        raise TypeError(f"{a.name} and {b.name} have no common dtype; convert one of them")
    return found


def _promote_number(dtype, number):
    """The dtype of an array of `dtype` and a number of Python."""
    have, need = kind(dtype), kind(number)
    if dtype in FLOAT8 and need == 3 or not kinds_mix() and (need > have and have < 2 or need == 0 < have):
        raise TypeError(f"{dtype.name} and the number {number!r} have no common dtype")
    if need <= have:
        return dtype
    if have == 2:
        return complex128 if dtype is float64 else complex64
    if need == 1:
        return DEFAULT_INTEGER if number < 2 ** 63 else uint64
    return _from_object(float if need == 2 else complex)


def check_stored(value, dtype):
    """Refuses an array's dtype or a number whose kind is too high to be stored in elements of `dtype`."""
    is_number = not isinstance(value, DType)
    if dtype is bool and type(value) is int and 0 <= value <= 1:
        return  # the numbers that bool has
    if kinds_mix():
        stored = kind(value) <= kind(dtype)
    else:
        stored = (_promote_number if is_number else promote)(*((dtype, value) if is_number else (value, dtype))) is dtype
    if not stored:
        raise TypeError(f"elements of {dtype} cannot be set to {value!r}" if is_number else
                        f"elements of {dtype} cannot be set to {value}; convert the value")


def result_type(*arrays_and_dtypes):
    """The dtype that an op on these arrays, dtypes and numbers has.

    Raises TypeError if there is none, as for uint64 and int64.

    >>> compute.result_type(compute.int32, compute.float16, 1)
    compute.float16
    """
    arrays_and_dtypes = [_from_object(x) if isinstance(x, (str, type)) else x for x in arrays_and_dtypes]
    dtypes = [x.dtype if isinstance(x, Array) else x for x in arrays_and_dtypes if isinstance(x, (Array, DType))]
    numbers = [number(x) for x in arrays_and_dtypes if not isinstance(x, (Array, DType))]
    for one in numbers:
        if not isinstance(one, NUMBERS):
            if hint(one):
                no_array(one)
            raise TypeError(f"{one!r} is neither an array, a dtype nor a number")
    if not dtypes and not numbers:
        raise ValueError("result_type needs at least one array, dtype or number")
    if not dtypes:
        dtypes = [_promote_number(bool, one) for one in numbers]
    result, *rest = sorted(dtypes, key=kind, reverse=True)  # lower kinds do not take part
    for dtype in rest:
        result = promote(result, dtype)
    for one in numbers:
        result = _promote_number(result, one)
    return result


def common(name, *values):
    """result_type for the arguments of the function `name`, which the message names."""
    try:
        return result_type(*values)
    except TypeError as error:
        message = str(error)
        raise TypeError(message if message.startswith(name) else f"{name}: {message}") from None


def can_cast(from_, to, /):
    """Whether promotion of `from_` can give `to`.

    >>> compute.can_cast(compute.int8, compute.int16), compute.can_cast(compute.float32, compute.int32)
    (True, False)
    """
    dtype = from_.dtype if isinstance(from_, Array) else from_
    try:
        return promote(dtype, to) is to
    except (AttributeError, KeyError, TypeError):
        if isinstance(dtype, DType) and isinstance(to, DType):
            return False
    return can_cast(_from_object(dtype), _from_object(to))  # names and the like
