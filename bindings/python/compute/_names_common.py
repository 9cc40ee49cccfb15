# SPDX-License-Identifier: Apache-2.0
"""What the files _names_*.py share."""
from __future__ import annotations

from typing import Any

from . import _creation, _dtypes
from ._creation import arrays_of

Values = Any  # an array, a list, a tuple or an array of NumPy
Axis = int | None


def _number_or_array(value, x):
    """A value as an array beside the array `x`."""
    value = _dtypes.number(value)
    if isinstance(value, _dtypes.NUMBERS):
        return _creation.asarray(value, dtype=_dtypes._promote_number(x.dtype, value), device=x.device)
    return arrays_of(x, value)[1]
