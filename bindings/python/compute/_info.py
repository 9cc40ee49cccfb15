# SPDX-License-Identifier: Apache-2.0
"""The inspection functions of the namespace."""
from __future__ import annotations

from . import _core, _devices, _dtypes

MAX_RANK = 32
_CONVERT, _ARITHMETIC = 2, 4
_STANDARD = [dtype for dtype in _dtypes.ALL if dtype not in (_dtypes.float16, _dtypes.bfloat16, *_dtypes.FLOAT8)]


class Info:
    """The result of `__array_namespace_info__()`."""

    @staticmethod
    def capabilities():
        """What this library can do."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": MAX_RANK}

    @staticmethod
    def default_device():
        """The device of arrays that are created without one."""
        return _core.device(None)

    @staticmethod
    def default_dtypes(*, device=None):
        """The dtypes of arrays that are created without one."""
        return {"real floating": _dtypes.DEFAULT_FLOAT, "complex floating": _dtypes.DEFAULT_COMPLEX,
                "integral": _dtypes.DEFAULT_INTEGER, "indexing": _dtypes.int64}

    @staticmethod
    def dtypes(*, device=None, kind=None):
        """The dtypes of the standard that a device supports."""
        levels = _core.device(device).info()["dtypes"]
        supported = {dtype.name: dtype for dtype in _STANDARD
                     if levels.get(dtype.name, 0) & (_ARITHMETIC if dtype is not _dtypes.bool else _CONVERT)}
        if kind is None:
            return supported
        return {name: dtype for name, dtype in supported.items() if _dtypes.isdtype(dtype, kind)}

    @staticmethod
    def devices():
        """The devices that can be opened."""
        return _devices.devices()


def __array_namespace_info__():
    """What this library supports."""
    return Info()
