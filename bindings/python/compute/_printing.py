# SPDX-License-Identifier: Apache-2.0
"""Arrays as text, in the format of NumPy."""
from __future__ import annotations

import functools
import math
from array import array
from struct import pack, unpack

from . import _core, _dtypes

PRECISION = 8
THRESHOLD = 1000
EDGE = 3
WIDTH = 75
SUPPRESS = False  # exponents


def to_list(x):
    """The elements as nested lists of numbers of Python."""
    values = flat_list(x)
    for extent in reversed(x.shape[1:]):
        values = [values[i:i + extent] for i in range(0, len(values), extent)] if extent else []
    if x.ndim == 0:
        return values[0]
    if x.size == 0:
        return _empty_lists(x.shape)
    return values


def _empty_lists(shape):
    return [_empty_lists(shape[1:]) for _ in range(shape[0])] if len(shape) > 1 else [None] * 0


def flat_list(x):
    """The elements in row-major order, as numbers of Python."""
    if x.dtype in _NARROW:
        from ._elementwise import astype

        x = astype(x, _dtypes.float32)
    data = bytearray(x.nbytes)
    _core.read_into(x, data)
    numbers = memoryview(data).cast(_format(x.dtype)).tolist() if data else []
    if x.dtype in _dtypes.COMPLEX:
        return [complex(*pair) for pair in zip(numbers[::2], numbers[1::2])]
    return numbers


_NARROW = frozenset((_dtypes.float16, _dtypes.bfloat16, *_dtypes.FLOAT8))


@functools.cache
def _format(dtype):
    """What the module struct calls a dtype, or the parts of a complex one."""
    from ._creation import _CODES

    return {"bool": "?", "complex64": "f", "complex128": "d"}.get(dtype.name) or _CODES[dtype]


def _round_trip(value, dtype):
    """The shortest digits that give the value back in its dtype."""
    if dtype in (_dtypes.float64, _dtypes.complex128):
        return repr(value)
    digits = {_dtypes.float16: 5, _dtypes.bfloat16: 4}.get(dtype, 9)
    for count in range(1, digits + 1):
        text = f"{value:.{count}g}"
        if dtype in (_dtypes.bfloat16, _dtypes.float16, *_dtypes.FLOAT8):
            if _narrow(float(text), dtype) == value:
                break
        elif _single(float(text)) == value:
            break
    return repr(float(text))


def _narrow(value, dtype):
    if dtype in _dtypes.FLOAT8:
        return _dtypes.of_float8(_dtypes.in_float8(value, dtype), dtype)
    if dtype is _dtypes.float16:
        return unpack("e", pack("e", _dtypes.in_float16(value)))[0]
    return unpack("f", pack("I", _dtypes.in_bfloat16(value) << 16))[0]


def _single(value):
    """The nearest float32, or an infinity."""
    return array("f", [value])[0]


def _split(text):
    """The digits before and after the point of a number in positional form."""
    whole, _, fraction = text.partition(".")
    return whole, fraction


def _positional(value, dtype):
    text = _round_trip(value, dtype)
    if "e" in text or len(_split(text)[1]) > PRECISION:
        text = f"{value:.{PRECISION}f}"
    whole, fraction = _split(text)
    return whole, fraction.rstrip("0")


def _fraction_digits(value, dtype):
    """The number of digits after the point of the shortest scientific form."""
    from decimal import Decimal

    digits = Decimal(_round_trip(value, dtype)).normalize().as_tuple().digits
    return min(len(digits) - 1, PRECISION)


def _needs_exponent(finite, dtype):
    sizes = [abs(v) for v in finite if v != 0]
    return bool(sizes) and not SUPPRESS and (max(sizes) >= (1e4 if dtype is _dtypes.float16 else 1e8) or min(sizes) < 1e-4 or max(sizes) / min(sizes) > 1000.0)


def _float_texts(values, dtype):
    finite = [v for v in values if math.isfinite(v)]
    if _needs_exponent(finite, dtype):
        most = max((_fraction_digits(v, dtype) for v in finite), default=0)
        shown = [f"{v:.{most}e}" for v in values]
        if most == 0:
            shown = [text.replace("e", ".e") for text in shown]
        return [text if math.isfinite(v) else _special(v) for text, v in zip(shown, values)]
    parts = [_positional(v, dtype) if math.isfinite(v) else None for v in values]
    most = max((len(part[1]) for part in parts if part is not None), default=0)
    return [_special(v) if part is None else part[0] + "." + part[1].ljust(most) for part, v in zip(parts, values)]


def _special(value):
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def _texts(values, dtype):
    """The elements as text of one width."""
    if dtype in _dtypes.COMPLEX:
        real = _aligned(_float_texts([v.real for v in values], dtype))
        imag = _float_texts([v.imag for v in values], dtype)
        signed = [t if t.startswith("-") else "+" + t for t in imag]
        return _aligned([a + _unpadded(b) for a, b in zip(real, _aligned(signed))])
    if dtype in _dtypes.FLOATS + _dtypes.FLOAT8:
        return _aligned(_float_texts(values, dtype))
    return _aligned([str(v) for v in values], 5 if dtype is _dtypes.bool else 0)


def _unpadded(text):
    stripped = text.rstrip()
    return stripped + "j" + " " * (len(text) - len(stripped))


def _aligned(texts, least=0):
    width = max(least, *map(len, texts))
    return [text.rjust(width) for text in texts]


def _edges(extent):
    if extent <= 2 * EDGE:
        return list(range(extent))
    return list(range(EDGE)) + [None] + list(range(extent - EDGE, extent))


def _summary(x):
    """The elements that are shown, and the shape of what is shown, None standing for an ellipsis."""
    if x.size <= THRESHOLD:
        return x, [list(range(extent)) for extent in x.shape]
    from ._manipulation import concat

    positions = []
    for axis, extent in enumerate(x.shape):
        positions.append(_edges(extent))
        if extent > 2 * EDGE:
            before = (slice(None),) * axis
            x = concat([x[before + (slice(0, EDGE),)], x[before + (slice(extent - EDGE, extent),)]], axis=axis)
    return x, positions


def _rows(texts, positions, separator, indent, width):
    """Lines of brackets around the texts, which are taken from the iterator."""
    if len(positions) == 1:
        return _line([next(texts) if i is not None else "..." for i in positions[0]], separator, indent, width)
    parts = [_rows(texts, positions[1:], separator, indent + 1, width - 1) if i is not None else "..."
             for i in positions[0]]
    between = separator.rstrip() + "\n" * (len(positions) - 1) + " " * indent
    return "[" + between.join(parts) + "]"


def _line(items, separator, indent, width):
    width -= max(len(separator.rstrip()), 1)
    lines, line = [], " " * indent
    for i, item in enumerate(items):
        if len(line) + len(item) > width and len(line) > indent:
            lines.append(line.rstrip())
            line = " " * indent
        line += item + (separator if i + 1 < len(items) else "")
    lines.append(line)
    return "[" + "\n".join(lines)[indent:] + "]"


def _body(x, separator, indent, width):
    shown, positions = _summary(x)
    texts = iter(_texts(flat_list(shown), x.dtype))
    return _rows(texts, positions, separator, indent, width)


def _is_slot(x):
    from ._creation import is_slot

    return is_slot(x)


def array_repr(x):
    """The text of an array with its dtype, its shape if elements are left out, and its device if that is not cpu."""
    prefix = "Array("
    if x.size == 0:
        body = "[]" if x.shape == (0,) else f"[], shape={x.shape}"
    elif x.ndim == 0:
        body = "slot" if _is_slot(x) else _texts(flat_list(x), x.dtype)[0].strip()
    else:
        body = _body(x, ", ", len(prefix) + 1, WIDTH - 1)
    notes = f"dtype={x.dtype.name}"
    if x.size > THRESHOLD:
        notes = f"shape={x.shape}, {notes}"
    if x.device.name != "cpu":
        notes += f", device='{x.device.name}'"
    last = len(body) - (body.rfind("\n") + 1) + (len(prefix) if "\n" not in body else 0)
    between = ",\n" + " " * len(prefix) if last + len(notes) + 3 > WIDTH else ", "
    return f"{prefix}{body}{between}{notes})"


def array_str(x):
    """The text of the elements."""
    if x.size == 0:
        return "[]"
    if x.ndim == 0:
        if _is_slot(x):
            return "slot"
        value = x.item()
        return _round_trip(value, x.dtype) if x.dtype in _dtypes.FLOATS + _dtypes.FLOAT8 and math.isfinite(value) else str(value)
    return _body(x, " ", 1, WIDTH)


def array_html(x):
    """A table of the shape, the dtype and the device, and the text of the elements. For notebooks."""
    from html import escape

    rows = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>"
                   for name, value in (("shape", x.shape), ("dtype", x.dtype.name), ("device", escape(x.device.name))))
    shown = math.prod(len(_edges(extent)) for extent in x.shape) if x.size > THRESHOLD else x.size
    elements = array_str(x) if shown <= 4 * THRESHOLD else "..."  # no axis of many is long
    return f"<table>{rows}</table><pre>{escape(elements)}</pre>"
