# SPDX-License-Identifier: Apache-2.0
"""compute.nn.functional: pools to extents, other extents, and samples of images. See _functional.py."""
from __future__ import annotations

import functools
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
    counts = [new // max(n, 1) for n, new in zip(extents, sizes)]
    if mode != "area" and sizes == tuple(n * count for n, count in zip(extents, counts)) and (factors is None or recompute_scale_factor or list(factors) == counts):
        parts = _manipulation.reshape(x, (*x.shape[:2], *(part for n in extents for part in (n, 1))))  # each element is repeated: one copy
        parts = _manipulation.broadcast_to(parts, (*x.shape[:2], *(part for pair in zip(extents, counts) for part in pair)))
        return _manipulation.reshape(parts, (*x.shape[:2], *sizes))
    for axis, (n, new) in enumerate(zip(extents, sizes), 2):
        if n == new:
            continue
        if mode == "area":
            x = _averaged(x, axis, new)
            continue
        step = n / new if factors is None or recompute_scale_factor else 1 / factors[axis - 2]
        start = 0.5 if mode == "nearest-exact" else 0.0
        places = [min(int((i + start) * step), n - 1) for i in range(new)]
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
    x = _manipulation.pad(array_of(input), ((0, 0), (0, 0), (pads[0],) * 2, (pads[1],) * 2))
    windows = sliding_window_view(x, tuple((n - 1) * step + 1 for n, step in zip(kernel, spread)), axis=(2, 3))
    windows = windows[:, :, ::steps[0], ::steps[1], ::spread[0], ::spread[1]]
    n, channels, rows, columns = windows.shape[:4]
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
    lines = []
    for n in size[2:]:
        end = 1.0 if align_corners else 1 - 1 / n
        lines.append(_creation.linspace(-end, end, n, dtype=theta.dtype, device=theta.device) if n > 1 else _creation.zeros((1,), dtype=theta.dtype, device=theta.device))
    y, x = _creation.meshgrid(*lines, indexing="ij")
    points = _manipulation.reshape(_ops.stack(x, y, _creation.ones_like(x), axis=-1), (1, -1, 3))
    return _manipulation.reshape(_functions.matmul(points, theta.mT), (theta.shape[0], *size[2:], 2))


# The weights along one axis of the elements before and after a coordinate x, and of the nearest one; 0 outside of the image.
_BEFORE, _AFTER, _NEAREST = (expression(f"c = {at}; where((c >= 0) & (c <= last), {weight}, 0)", "x", "last") for at, weight in (
    ("floor(x)", "1 - (x - c)"), ("floor(x) + 1", "x - floor(x)"), ("round(x)", "x - x + 1")))
_BILINEAR = expression("(p * a + q * b) * c + (r * a + s * b) * d", "p", "q", "r", "s", "a", "b", "c", "d")


@functools.cache
def _places(mode, dtype):
    """The positions in row-major order of the elements around a point, or of the nearest one."""
    at, counts = ("round", (0,)) if mode == "nearest" else ("floor", (0, 1))
    start = f"c = convert({at}(x), {dtype}); r = convert({at}(y), {dtype})"
    columns = "; ".join(f"c{k} = min(max(c + {k}, 0), right)" for k in counts)
    rows = "; ".join(f"r{k} = min(max(r + {k}, 0), bottom) * (right + 1)" for k in counts)
    return expression(f"{start}; {columns}; {rows}; " + "; ".join(f"r{j} + c{i}" for j in counts for i in counts), "x", "y", "right", "bottom")


_AT = {True: expression("(x + 1) * (0.5 * (extent - 1))", "x", "extent"), False: expression("((x + 1) * extent - 1) * 0.5", "x", "extent")}


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
    at = [_AT[bool(align_corners)](grid[..., i], extent) for i, extent in enumerate((width, height))]
    if padding_mode == "border":
        at = [_functions.clip(one, 0, extent - 1) for one, extent in zip(at, (width, height))]
    flat = _manipulation.reshape(x, (n, channels, height * width))
    places = _places(mode, "int32" if height * width < 2 ** 31 else "int64")(*map(constant, at), width - 1, height - 1)
    found = []
    for place in places if isinstance(places, tuple) else (places,):
        place = _manipulation.broadcast_to(_manipulation.reshape(place, (n, 1, -1)), (n, channels, grid.shape[1] * grid.shape[2]))
        found.append(_manipulation.reshape(_ops.take_along_axis(flat, place, axis=-1), (n, channels, *grid.shape[1:3])))
    x, y = (_manipulation.expand_dims(one, 1) for one in at)
    if mode == "nearest":
        return found[0] * (_NEAREST(x, width - 1) * _NEAREST(y, height - 1))
    return _BILINEAR(*found, _BEFORE(x, width - 1), _AFTER(x, width - 1), _BEFORE(y, height - 1), _AFTER(y, height - 1))
