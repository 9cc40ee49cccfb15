# SPDX-License-Identifier: Apache-2.0
"""compute.nn.functional: pools to extents, other extents, and samples of images. See _functional.py."""
from __future__ import annotations

import functools
import struct
from typing import Any, Sequence

from . import _core, _creation, _dtypes, _functions, _indexing, _manipulation, _ops
from ._core import Array, array_of
from ._creation import arrays_of
from ._elementwise import _inexact
from ._names_axes import sliding_window_view
from ._names_common import Values
from .expressions import expression
from .grad import constant


def _several(value, count):
    return (value,) * count if isinstance(value, (int, float)) or value is None else tuple(value)


# ---- Pools to extents -----------------------------------------------------------------------------------------------


def _windows(extent, count):
    return [(i * extent // count, -(-(i + 1) * extent // count)) for i in range(count)]


def _averaged(x, axis, count):
    """The means of so many windows along an axis: a product with a matrix."""
    x, extent = _inexact(x), x.shape[axis]
    if count == 1:
        return _functions.mean(x, axis=axis, keepdims=True)
    rows = [[1 / (end - start) if start <= k < end else 0.0 for k in range(extent)] for start, end in _windows(extent, count)]
    means = _functions.matmul(_manipulation.moveaxis(x, axis, -1), _creation.asarray(rows, dtype=x.dtype, device=x.device).T)
    return _manipulation.moveaxis(means, -1, axis)


def _greatest(x, axis, count):
    before = (slice(None),) * axis
    return _manipulation.concat([_functions.max(x[before + (slice(start, end),)], axis=axis, keepdims=True) for start, end in _windows(x.shape[axis], count)], axis=axis)


def _adaptive(name, count, pool, what):
    def run(input: Values, output_size: Any) -> Array:
        x, sizes = array_of(input), _several(output_size, count)
        if pool is _averaged and all(size == 1 for size in sizes):
            return _functions.mean(_inexact(x), axis=tuple(range(-count, 0)), keepdims=True)
        for axis, size in zip(range(x.ndim - count, x.ndim), sizes):
            if size is not None and size != x.shape[axis]:
                x = pool(x, axis, size)
        return x
    run.__doc__ = f"The {what} of so many windows along the last {count} ax{'i' if count == 1 else 'e'}s."
    run.__name__ = run.__qualname__ = f"{name}{count}d"
    return run


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (_adaptive("adaptive_avg_pool", n, _averaged, "means") for n in (1, 2, 3))
adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (_adaptive("adaptive_max_pool", n, _greatest, "greatest elements") for n in (1, 2, 3))


def _lp_pool(count):
    def run(input: Values, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Array:
        if ceil_mode:
            raise NotImplementedError("lp_pool: ceil_mode; use pad")
        x, kernel = array_of(input), _several(kernel_size, count)
        steps = kernel if stride is None else _several(stride, count)
        axes = tuple(range(x.ndim - count, x.ndim))
        windows = sliding_window_view(_ops.pow(x, norm_type), kernel, axis=axes)
        windows = windows[(..., *(slice(None, None, step) for step in steps), *(slice(None),) * count)]
        return _ops.pow(_functions.sum(windows, axis=tuple(range(-count, 0))), 1 / norm_type)
    run.__doc__ = f"The roots of the sums of the powers of the elements of windows along the last {count} ax{'i' if count == 1 else 'e'}s."
    run.__name__ = run.__qualname__ = f"lp_pool{count}d"
    return run


lp_pool1d, lp_pool2d = _lp_pool(1), _lp_pool(2)


# ---- Other extents --------------------------------------------------------------------------------------------------


_SINGLE = struct.Struct("f")  # PyTorch rounds coordinates to float32


def interpolate(input: Values, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
                recompute_scale_factor: bool | None = None, antialias: bool = False) -> Array:
    """The images with other extents, by the mode "nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic" or "area".

    Raises NotImplementedError for `antialias` with `align_corners`, or a mode other than "bilinear" and "bicubic".

    >>> compute.nn.functional.interpolate([[[1.0, 2.0]]], scale_factor=2)
    Array([[[1., 1., 2., 2.]]], dtype=float32)
    """
    if antialias and (align_corners or mode not in ("bilinear", "bicubic")):
        raise NotImplementedError("interpolate: antialias; use 'bilinear' or 'bicubic' without align_corners")
    if mode not in ("nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic", "area"):
        raise ValueError(f"interpolate: mode is {mode!r}; expected 'nearest', 'linear', 'bilinear', 'trilinear', 'bicubic' or 'area'")
    x = array_of(input)
    extents = x.shape[2:]
    factors = None if scale_factor is None else _several(scale_factor, len(extents))
    sizes = _several(size, len(extents)) if factors is None else tuple(int(n * factor) for n, factor in zip(extents, factors))
    if mode in ("linear", "bilinear", "trilinear", "bicubic"):
        given = factors is not None and not recompute_scale_factor
        return _ops.resize(x, sizes=sizes, axes=list(range(2, x.ndim)), scales=factors if given else None,
                           mode="cubic" if mode == "bicubic" else "linear", antialias=antialias, exclude_outside=antialias,
                           coordinate_transformation_mode="align_corners" if align_corners else "half_pixel",
                           cubic_coeff_a=-0.5 if antialias else -0.75)
    if mode != "area" and all(n > 0 and new == n * (new // n) for n, new in zip(extents, sizes)) and (factors is None or all(int(f) == f for f in factors)):
        return _ops.resize(x, sizes=sizes, axes=list(range(2, x.ndim)), mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    rounded = float if x.dtype == _dtypes.float64 else lambda place: _SINGLE.unpack(_SINGLE.pack(place))[0]
    for axis, (n, new) in enumerate(zip(extents, sizes), 2):
        if n == new:
            continue
        if mode == "area":
            x = _averaged(x, axis, new)
            continue
        step = rounded(n / new if factors is None or recompute_scale_factor else 1 / factors[axis - 2])
        start = 0.5 if mode == "nearest-exact" else 0.0
        places = [min(int(rounded((i + start) * step)), n - 1) for i in range(new)]
        x = _ops.take(x, _creation.asarray(places, dtype=_dtypes.int64, device=x.device), axis=axis)
    return x


def upsample(input: Values, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None) -> Array:
    """interpolate.

    >>> compute.nn.functional.upsample([[[1.0]]], scale_factor=2)
    Array([[[1., 1.]]], dtype=float32)
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


def pixel_shuffle(input: Values, upscale_factor: int) -> Array:
    """Channels as pixels: [n, c r r, h, w] as [n, c, h r, w r].

    >>> compute.nn.functional.pixel_shuffle([[[[1.0]], [[2.0]], [[3.0]], [[4.0]]]], 2)
    Array([[[[1., 2.],
             [3., 4.]]]], dtype=float32)
    """
    x, r = array_of(input), upscale_factor
    *lead, channels, rows, columns = x.shape
    k = len(lead)
    x = _manipulation.reshape(x, (*lead, channels // (r * r), r, r, rows, columns))
    x = _ops.copy(_core.permute_view(x, (*range(k + 1), k + 3, k + 1, k + 4, k + 2)))
    return _core.reshape_view(x, (*lead, channels // (r * r), rows * r, columns * r))


def pixel_unshuffle(input: Values, downscale_factor: int) -> Array:
    """Pixels as channels: [n, c, h r, w r] as [n, c r r, h, w].

    >>> compute.nn.functional.pixel_unshuffle(compute.ones((1, 1, 4, 2)), 2).shape
    (1, 4, 2, 1)
    """
    x, r = array_of(input), downscale_factor
    *lead, channels, rows, columns = x.shape
    k = len(lead)
    x = _manipulation.reshape(x, (*lead, channels, rows // r, r, columns // r, r))
    x = _ops.copy(_core.permute_view(x, (*range(k + 1), k + 2, k + 4, k + 1, k + 3)))
    return _core.reshape_view(x, (*lead, channels * r * r, rows // r, columns // r))


def channel_shuffle(input: Values, groups: int) -> Array:
    """The channels of groups in turn.

    >>> compute.nn.functional.channel_shuffle([[[[1.0]], [[2.0]], [[3.0]], [[4.0]]]], 2)[0, :, 0, 0]
    Array([1., 3., 2., 4.], dtype=float32)
    """
    x = array_of(input)
    parted = _manipulation.reshape(x, (x.shape[0], groups, x.shape[1] // groups, *x.shape[2:]))
    return _manipulation.reshape(_manipulation.permute_dims(parted, (0, 2, 1, *range(3, parted.ndim))), x.shape)


# ---- Windows and samples --------------------------------------------------------------------------------------------


def unfold(input: Values, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Array:
    """The windows of images as columns: [n, channels * height * width of a window, windows].

    >>> compute.nn.functional.unfold(compute.ones((1, 2, 4, 4)), 3).shape
    (1, 18, 4)
    """
    kernel, spread, pads, steps = (_several(one, 2) for one in (kernel_size, dilation, padding, stride))
    x = array_of(input)
    if any(pads):
        x = _manipulation.pad(x, ((0, 0), (0, 0), (pads[0],) * 2, (pads[1],) * 2))
    n, channels, *extents = x.shape
    rows, columns = ((extent - (size - 1) * gap - 1) // step + 1 for extent, size, gap, step in zip(extents, kernel, spread, steps))
    if isinstance(x, Array) and rows > 0 and columns > 0:
        *outer, down, along = x.strides
        windows = _core.strided_view(x, x.dtype, (n, channels, *kernel, rows, columns),
                                     (*outer, down * spread[0], along * spread[1], down * steps[0], along * steps[1]), 0)
        return _manipulation.reshape(windows, (n, channels * kernel[0] * kernel[1], rows * columns))
    windows = sliding_window_view(x, tuple((n - 1) * step + 1 for n, step in zip(kernel, spread)), axis=(2, 3))
    windows = windows[:, :, ::steps[0], ::steps[1], ::spread[0], ::spread[1]]
    return _manipulation.reshape(_manipulation.permute_dims(windows, (0, 1, 4, 5, 2, 3)), (n, channels * kernel[0] * kernel[1], rows * columns))


def fold(input: Values, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Array:
    """Images of which each element is the sum of those of the columns that unfold would put it to.

    >>> compute.nn.functional.fold(compute.ones((1, 4, 2)), (2, 3), 2)
    Array([[[[1., 2., 1.],
             [1., 2., 1.]]]], dtype=float32)
    """
    x, kernel, pads, extents = array_of(input), _several(kernel_size, 2), _several(padding, 2), _several(output_size, 2)
    rows, columns = (n + 2 * width for n, width in zip(extents, pads))
    places = _manipulation.reshape(_creation.arange(rows * columns, device=x.device), (1, 1, rows, columns))
    places = _manipulation.reshape(unfold(places, kernel, dilation, 0, stride), (1, -1))
    n, channels = x.shape[0], x.shape[1] // (kernel[0] * kernel[1])
    parts = _manipulation.reshape(x, (n * channels, -1))
    sums = _creation.zeros((n * channels, rows * columns), dtype=x.dtype, device=x.device)
    sums = _indexing.scatter(sums, _manipulation.broadcast_to(places, parts.shape), parts, axis=-1, reduction="add")
    sums = _manipulation.reshape(sums, (n, channels, rows, columns))
    return sums[:, :, pads[0]:rows - pads[0], pads[1]:columns - pads[1]]


def affine_grid(theta: Values, size: Sequence[int], align_corners: bool = False) -> Array:
    """The coordinates for grid_sample of images of a size [n, c, h, w] under the maps `theta`, [n, 2, 3].

    >>> compute.nn.functional.affine_grid([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]], (1, 1, 1, 2))
    Array([[[[-0.5,  0. ],
             [ 0.5,  0. ]]]], dtype=float32)
    """
    theta = array_of(theta)
    n, (h, w) = theta.shape[0], size[2:]
    a, b, shift = (_manipulation.reshape(theta[:, :, i], (n, 2, 1, 1)) for i in range(3))
    x, y = (_line(extent, align_corners, theta) for extent in (w, h))
    return _manipulation.permute_dims(_points(theta.dtype)(a, x, _POINT(b, _manipulation.reshape(y, (h, 1)), shift)), (0, 2, 3, 1))


def _line(n, align_corners, like):
    dtype = _dtypes.float64 if like.dtype == _dtypes.float64 else _dtypes.float32
    end = 0.0 if n == 1 else 1.0 if align_corners else 1 - 1 / n
    return _creation.linspace(-end, end, n, dtype=dtype, device=like.device)


_POINT = expression("a * line + shift", "a", "line", "shift")


@functools.cache
def _points(dtype):
    return expression(f"convert(a * line + shift, {dtype.name})", "a", "line", "shift")


@functools.cache
def _corners(mode, border, align_corners, places):
    """Of grid_sample along an axis: the place of the corner `c`, 0 or 1, in the dtype `places`, and its share, which is 0 outside of the image.

    Expressions for each of them, and one for both.
    """
    at = "(x + 1) * (0.5 * (extent - 1))" if align_corners else "((x + 1) * extent - 1) * 0.5"
    at = f"min(max({at}, 0), extent - 1)" if border else at
    corner, share = ("round(at) + c", "1 + 0 * x") if mode == "nearest" else ("floor(at) + c", "1 - abs(at - i)")
    place = f"convert(min(max(i, 0), extent - 1), {places})"
    share = f"where((i >= 0) & (i <= extent - 1), {share}, 0)"
    return [expression(f"at = {at}; i = {corner}; {found}", "x", "c", "extent") for found in (place, share, f"{place}; {share}")]


_PLACE = expression("y * w + x", "y", "x", "w")
_SAMPLE = expression("value * share", "value", "share")


def grid_sample(input: Values, grid: Values, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None) -> Array:
    """The elements of images at the coordinates `grid`, [n, h, w, 2] in [-1, 1], x first.

    Raises NotImplementedError for other modes than "bilinear" and "nearest", and for the padding mode "reflection".

    >>> compute.nn.functional.grid_sample([[[[1.0, 3.0]]]], [[[[0.0, 0.0]]]])
    Array([[[[2.]]]], dtype=float32)
    """
    if mode not in ("bilinear", "nearest") or padding_mode not in ("zeros", "border"):
        raise NotImplementedError(f"grid_sample: mode={mode!r}, padding_mode={padding_mode!r}; use 'bilinear' or 'nearest', and 'zeros' or 'border'")
    x, grid = arrays_of(input, grid)
    n, channels, height, width = x.shape
    rows, columns = grid.shape[1:3]
    corners = 1 if mode == "nearest" else 2
    place, share, both = _corners(mode, padding_mode == "border", bool(align_corners), "int32" if height * width < 2 ** 31 else "int64")
    c = _creation.arange(corners, dtype=grid.dtype, device=grid.device)
    horizontal, vertical = ((grid[:, None, None, :, :, 0], _manipulation.reshape(c, (corners, 1, 1)), width),
                            (grid[:, None, None, :, :, 1], _manipulation.reshape(c, (corners, 1, 1, 1)), height))
    (row, row_share), (column, column_share) = (
        both(*one) if isinstance(grid, Array) else (place(constant(one[0]), *one[1:]), share(*one)) for one in (vertical, horizontal))
    places = _PLACE(row, column, width)
    places = _manipulation.broadcast_to(_manipulation.reshape(places, (n, 1, -1)), (n, channels, places.size // n))
    found = _ops.take_along_axis(_manipulation.reshape(x, (n, channels, height * width)), places, axis=-1)
    shares = _manipulation.reshape(row_share * column_share, (n, 1, -1, rows, columns))
    return _SAMPLE.reduce("sum", _manipulation.reshape(found, (n, channels, -1, rows, columns)), shares, axis=2)
