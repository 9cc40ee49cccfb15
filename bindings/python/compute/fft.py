# SPDX-License-Identifier: Apache-2.0
"""The extension `fft` of the standard: discrete Fourier transforms of any length.

`n` and `s` are the lengths of the transforms; arrays are cut or padded by zeros to them. `norm` states what divides by
the length: "backward" (the inverse transforms), "forward" (the others), or "ortho" (both, by its square root). Integers
are transformed as floating-point numbers of the default dtype.
"""
from __future__ import annotations

from . import _creation, _dtypes, _ops
from ._core import Array as _Array, array_of as _array_of
from ._elementwise import _inexact
from ._manipulation import _axes, _whole
from .expressions import Expression as _Expression

__all__ = ["fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft", "irfft2",
           "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn"]

_EXCHANGED = {"backward": "forward", "forward": "backward", None: "forward"}


def _as_complex(x):
    if x.dtype in _dtypes.COMPLEX:
        return x
    return _ops.cast(x, dtype=_dtypes.complex128 if x.dtype is _dtypes.float64 else _dtypes.complex64)


def _length(n, name):
    n = _whole(n, name, "n")
    if n < 1:
        raise ValueError(f"{name}: a transform of {n} elements is undefined")
    return n


def _sized(x, sizes):
    """`x` cut or padded by zeros to these extents along axes."""
    if all(x.shape[axis] == n for axis, n in sizes.items()):
        return x
    x = x[tuple(slice(min(extent, sizes.get(axis, extent))) for axis, extent in enumerate(x.shape))]
    missing = [sizes.get(axis, extent) - extent for axis, extent in enumerate(x.shape)]
    return _ops.pad(x, pads_begin=[0] * x.ndim, pads_end=missing) if any(missing) else x


def _several(x, s, axes, name):
    """The axes of a transform of several, and their lengths, of which those that are not given are None."""
    if axes is None:
        axes = range(x.ndim) if s is None else range(-len(s), 0)
    axes = _axes(tuple(axes), x.ndim, name)
    lengths = [None] * len(axes) if s is None else [None if n == -1 else _length(n, name) for n in s]
    if len(lengths) != len(axes):
        raise ValueError(f"{name}: s has {len(lengths)} entries and axes {len(axes)}")
    return axes, lengths


def _complex(x, s, axes, norm, inverse, name):
    x = _inexact(x)
    axes, lengths = _several(x, s, axes, name)
    if not axes:
        return _as_complex(_ops.copy(x))
    x = _sized(x, {axis: n for axis, n in zip(axes, lengths) if n is not None})
    return _ops.fft(x, axes=axes, inverse=inverse, norm=norm)


def _to_half(x, s, axes, norm, name):
    x = _inexact(x)
    axes, lengths = _several(x, s, axes, name)
    return _ops.rfft(_sized(x, {axis: n for axis, n in zip(axes, lengths) if n is not None}), axes=axes, norm=norm)


def _from_half(x, s, axes, norm, name):
    x = _as_complex(_inexact(x))
    axes, lengths = _several(x, s, axes, name)
    if not axes:
        raise ValueError(f"{name}: there are no axes to transform")
    size = lengths[-1] if lengths[-1] is not None else _length(2 * (x.shape[axes[-1]] - 1), name)
    lengths[-1] = size // 2 + 1
    x = _sized(x, {axis: n for axis, n in zip(axes, lengths) if n is not None})
    return _ops.irfft(x, axes=axes, size=size, norm=norm)


def _conjugate(x):
    return _ops.conj(x) if x.dtype in _dtypes.COMPLEX else x


def _one(n):
    return None if n is None else (n,)


_COMPLEX = frozenset(_dtypes.COMPLEX)
_REAL = frozenset((_dtypes.float32, _dtypes.float64))


def _is_plain(x, n, axis, norm, dtypes):
    """Whether a call needs no argument but `axis`. A short transform takes less time than looking at all the others."""
    return n is None and norm == "backward" and type(x) is _Array and x.dtype in dtypes and type(axis) is int and -x.ndim <= axis < x.ndim


def fft(x, /, n=None, axis=-1, norm="backward"):
    """The Fourier transform of `x` along an axis: the sums of x[j] exp(-2 pi i j k / n).

    >>> compute.fft.fft([1.0, 2.0, 3.0, 4.0])
    Array([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j], dtype=complex64)
    """
    if _is_plain(x, n, axis, norm, _COMPLEX):
        return _ops.fft(x, axes=axis)
    return _complex(x, _one(n), (_whole(axis, "fft"),), norm, 0, "fft")


def ifft(x, /, n=None, axis=-1, norm="backward"):
    """The inverse of fft: the sums of x[j] exp(2 pi i j k / n), divided by n.

    >>> compute.fft.ifft([10.0, -2 + 2j, -2.0, -2 - 2j])
    Array([1.+0.j, 2.+0.j, 3.+0.j, 4.+0.j], dtype=complex64)
    """
    if _is_plain(x, n, axis, norm, _COMPLEX):
        return _ops.fft(x, axes=axis, inverse=1)
    return _complex(x, _one(n), (_whole(axis, "ifft"),), norm, 1, "ifft")


def fftn(x, /, s=None, axes=None, norm="backward"):
    """The Fourier transform of `x` along several axes, by default all; with `s` alone, along the last ones.

    >>> compute.fft.fftn([[1.0, 2.0], [3.0, 4.0]])
    Array([[10.+0.j, -2.+0.j],
           [-4.+0.j,  0.+0.j]], dtype=complex64)
    """
    return _complex(x, s, axes, norm, 0, "fftn")


def ifftn(x, /, s=None, axes=None, norm="backward"):
    """The inverse of fftn.

    >>> compute.fft.ifftn([[10.0, -2.0], [-4.0, 0.0]])
    Array([[1.+0.j, 2.+0.j],
           [3.+0.j, 4.+0.j]], dtype=complex64)
    """
    return _complex(x, s, axes, norm, 1, "ifftn")


def rfft(x, /, n=None, axis=-1, norm="backward"):
    """The first n // 2 + 1 elements of the Fourier transform of real numbers; the others are conjugates of these.

    >>> compute.fft.rfft([1.0, 2.0, 3.0, 4.0])
    Array([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex64)
    """
    if _is_plain(x, n, axis, norm, _REAL):
        return _ops.rfft(x, axes=axis)
    return _to_half(x, _one(n), (_whole(axis, "rfft"),), norm, "rfft")


def irfft(x, /, n=None, axis=-1, norm="backward"):
    """The inverse of rfft: `n` real numbers, by default an even number of them.

    >>> compute.fft.irfft([10.0, -2 + 2j, -2.0])
    Array([1., 2., 3., 4.], dtype=float32)
    """
    return _from_half(x, _one(n), (_whole(axis, "irfft"),), norm, "irfft")


def rfftn(x, /, s=None, axes=None, norm="backward"):
    """The Fourier transform of real numbers along several axes; along the last of them as of rfft.

    >>> compute.fft.rfftn([[1.0, 2.0], [3.0, 4.0]])
    Array([[10.+0.j, -2.+0.j],
           [-4.+0.j,  0.+0.j]], dtype=complex64)
    """
    return _to_half(x, s, axes, norm, "rfftn")


def irfftn(x, /, s=None, axes=None, norm="backward"):
    """The inverse of rfftn.

    >>> compute.fft.irfftn([[10.0, -2.0], [-4.0, 0.0]])
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    return _from_half(x, s, axes, norm, "irfftn")


def fft2(x, /, s=None, axes=(-2, -1), norm="backward"):
    """fftn along the last two axes.

    >>> compute.fft.fft2([[1.0, 2.0], [3.0, 4.0]])
    Array([[10.+0.j, -2.+0.j],
           [-4.+0.j,  0.+0.j]], dtype=complex64)
    """
    return fftn(x, s=s, axes=axes, norm=norm)


def ifft2(x, /, s=None, axes=(-2, -1), norm="backward"):
    """ifftn along the last two axes.

    >>> compute.fft.ifft2([[10.0, -2.0], [-4.0, 0.0]])
    Array([[1.+0.j, 2.+0.j],
           [3.+0.j, 4.+0.j]], dtype=complex64)
    """
    return ifftn(x, s=s, axes=axes, norm=norm)


def rfft2(x, /, s=None, axes=(-2, -1), norm="backward"):
    """rfftn along the last two axes.

    >>> compute.fft.rfft2([[1.0, 2.0], [3.0, 4.0]])
    Array([[10.+0.j, -2.+0.j],
           [-4.+0.j,  0.+0.j]], dtype=complex64)
    """
    return rfftn(x, s=s, axes=axes, norm=norm)


def irfft2(x, /, s=None, axes=(-2, -1), norm="backward"):
    """irfftn along the last two axes.

    >>> compute.fft.irfft2([[10.0, -2.0], [-4.0, 0.0]])
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    return irfftn(x, s=s, axes=axes, norm=norm)


def hfft(x, /, n=None, axis=-1, norm="backward"):
    """The Fourier transform of numbers of which `x` has the first n // 2 + 1, the others being conjugates: real numbers.

    >>> compute.fft.hfft([1.0, 2.0, 3.0])
    Array([ 8., -2.,  0., -2.], dtype=float32)
    """
    return _from_half(_conjugate(_inexact(x)), _one(n), (_whole(axis, "hfft"),), _EXCHANGED.get(norm, norm), "hfft")


def ihfft(x, /, n=None, axis=-1, norm="backward"):
    """The inverse of hfft.

    >>> compute.fft.ihfft([8.0, -2.0, 0.0, -2.0]).real
    Array([1., 2., 3.], dtype=float32)
    """
    return _ops.conj(_to_half(x, _one(n), (_whole(axis, "ihfft"),), _EXCHANGED.get(norm, norm), "ihfft"))


# ---- Frequencies ----------------------------------------------------------------------------------------------------

_FREQUENCY = _Expression("where(i < m, i, i - n) / s", "i", "m", "n", "s")


def _frequencies(count, n, d, positive, dtype, device):
    places = _creation.arange(count, dtype=dtype or _dtypes.DEFAULT_FLOAT, device=device)
    return _FREQUENCY(places, positive, n, n * d)


def fftfreq(n, /, d=1.0, *, dtype=None, device=None):
    """The frequencies that the elements of a transform of `n` samples, `d` apart, stand for.

    >>> compute.fft.fftfreq(5)
    Array([ 0. ,  0.2,  0.4, -0.4, -0.2], dtype=float32)
    """
    n = _length(n, "fftfreq")
    return _frequencies(n, n, d, (n + 1) // 2, dtype, device)


def rfftfreq(n, /, d=1.0, *, dtype=None, device=None):
    """The same of rfft, which are not negative.

    >>> compute.fft.rfftfreq(5)
    Array([0. , 0.2, 0.4], dtype=float32)
    """
    n = _length(n, "rfftfreq")
    return _frequencies(n // 2 + 1, n, d, n, dtype, device)


def _shifted(x, axes, name, forward):
    x = _array_of(x)
    axes = range(x.ndim) if axes is None else _axes(axes, x.ndim, name)
    y = x
    for axis in axes:
        half = x.shape[axis] // 2
        y = _ops.roll(y, shift=half if forward else -half, axis=axis)
    return _ops.copy(x) if y is x else y


def fftshift(x, /, axes=None):
    """`x` with the element of frequency zero in the middle of axes, by default of all.

    >>> compute.fft.fftshift([0, 1, 2, -2, -1])
    Array([-2, -1,  0,  1,  2], dtype=int64)
    """
    return _shifted(x, axes, "fftshift", True)


def ifftshift(x, /, axes=None):
    """The inverse of fftshift.

    >>> compute.fft.ifftshift([-2, -1, 0, 1, 2])
    Array([ 0,  1,  2, -2, -1], dtype=int64)
    """
    return _shifted(x, axes, "ifftshift", False)
