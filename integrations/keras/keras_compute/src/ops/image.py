# SPDX-License-Identifier: Apache-2.0
"""keras.ops.image: colours, resizing, transforms. The messages are those of Keras' other backends."""
from __future__ import annotations

import functools
import itertools

import compute as cp
import numpy as np
from keras.src import backend
from keras.src.backend import config

from .. import random
from ..variable import cast, common, convert_to_numpy, dense_tensor as convert_to_tensor
from . import numpy as knp
from .nn import depthwise_conv

RESIZE_INTERPOLATIONS = ("bilinear", "nearest", "lanczos3", "lanczos5", "bicubic")
AFFINE_TRANSFORM_INTERPOLATIONS = {"nearest": 0, "bilinear": 1}
AFFINE_TRANSFORM_FILL_MODES = {"constant", "nearest", "wrap", "mirror", "reflect"}
MAP_COORDINATES_FILL_MODES = AFFINE_TRANSFORM_FILL_MODES
SCALE_AND_TRANSLATE_METHODS = {"linear", "bilinear", "trilinear", "cubic", "bicubic", "tricubic", "lanczos3", "lanczos5"}

_FLOATS = (cp.float16, cp.bfloat16, cp.float32, cp.float64)


def _check_rank(images):
    if len(images.shape) not in (3, 4):
        raise ValueError("Invalid images rank: expected rank 3 (single image) or rank 4 (batch of images). Received input "
                         f"with shape: images.shape={tuple(images.shape)}")


def _check_float(images):
    if images.dtype not in _FLOATS:
        raise ValueError(f"Invalid images dtype: expected float dtype. Received: images.dtype={images.dtype.name}")


def _channels_axis(data_format):
    return -1 if backend.standardize_data_format(data_format) == "channels_last" else -3


# ---- Colours ---------------------------------------------------------------------------------------------------------


def rgb_to_grayscale(images, data_format=None):
    images, axis = convert_to_tensor(images), _channels_axis(data_format)
    _check_rank(images)
    if images.shape[axis] not in (1, 3):
        raise ValueError("Invalid channel size: expected 3 (RGB) or 1 (Grayscale). "
                         f"Received input with shape: images.shape={tuple(images.shape)}")
    if images.shape[axis] == 1:
        return cp.copy(images)
    red, green, blue = knp.split(cast(images, common(images.dtype, float)), 3, axis)
    return cast(0.2989 * red + 0.587 * green + 0.114 * blue, images.dtype)


def _planes(images, axis):
    return [cp.squeeze(part, axis) for part in knp.split(images, 3, axis)]


def rgb_to_hsv(images, data_format=None):
    images, axis = convert_to_tensor(images), _channels_axis(data_format)
    _check_rank(images)
    _check_float(images)
    images = cp.where(cp.less(cp.abs(images), float(cp.finfo(images.dtype).eps)), 0.0, images)
    red, green, blue = _planes(images, axis)
    value = cp.maximum(cp.maximum(red, green), blue)
    extent = value - cp.minimum(cp.minimum(red, green), blue)
    is_coloured = cp.greater(extent, 0)
    saturation = cp.where(cp.greater(value, 0), extent / cp.where(cp.greater(value, 0), value, 1.0), 0.0)
    norm = 1.0 / (6.0 * cp.where(is_coloured, extent, 1.0))
    hue = cp.where(cp.equal(value, green), norm * (blue - red) + 2.0 / 6.0, norm * (red - green) + 4.0 / 6.0)
    hue = cp.where(cp.equal(value, red), norm * (green - blue), hue)
    hue = cp.where(is_coloured, hue, 0.0) + cast(cp.less(hue, 0), hue.dtype)
    return cp.stack([hue, saturation, value], axis=axis)


def hsv_to_rgb(images, data_format=None):
    images, axis = convert_to_tensor(images), _channels_axis(data_format)
    _check_rank(images)
    _check_float(images)
    hue, saturation, value = _planes(images, axis)
    dh = cp.remainder(hue, 1.0) * 6.0
    shares = [knp.clip(cp.abs(dh - 3.0) - 1.0, 0.0, 1.0), knp.clip(2.0 - cp.abs(dh - 2.0), 0.0, 1.0),
              knp.clip(2.0 - cp.abs(dh - 4.0), 0.0, 1.0)]
    return cp.stack([value * (1.0 - saturation + saturation * share) for share in shares], axis=axis)


# ---- Resizing --------------------------------------------------------------------------------------------------------


def _triangle(x):
    return np.maximum(0, 1 - np.abs(x))


def _cubic(x):
    found = ((1.5 * x - 2.5) * x) * x + 1.0
    found = np.where(x >= 1.0, ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0, found)
    return np.where(x >= 2.0, 0.0, found)


def _lanczos(radius, x):
    y = radius * np.sin(np.pi * x) * np.sin(np.pi * x / radius)
    found = np.where(x > 1e-3, np.divide(y, np.where(x != 0, np.pi ** 2 * x ** 2, 1)), 1)
    return np.where(x > radius, 0.0, found)


_KERNELS = {"linear": _triangle, "bilinear": _triangle, "cubic": _cubic, "bicubic": _cubic,
            "lanczos3": functools.partial(_lanczos, 3.0), "lanczos5": functools.partial(_lanczos, 5.0)}


def _weights(before, after, scale, translation, kernel, antialias):
    """The shares [before, after] that elements before have in those after."""
    inverse = 1.0 / scale
    places = (np.arange(after, dtype=np.float32) + 0.5) * inverse - translation * inverse - 0.5
    distances = np.abs(places[None, :] - np.arange(before, dtype=np.float32)[:, None])
    found = kernel(distances / (max(inverse, 1.0) if antialias else 1.0))
    total = np.sum(found, axis=0, keepdims=True)
    found = np.where(np.abs(total) > 1000.0 * np.finfo(np.float32).eps, found / np.where(total != 0, total, 1), 0)
    return np.where(((places >= -0.5) & (places <= before - 0.5))[None, :], found, 0).astype(np.float32)


def _scaled(x, shape, axes, scale, translation, kernel, antialias):
    if len(axes) == 0:
        return x
    found = x if x.dtype in (cp.float32, cp.float64) else cast(x, cp.float32)
    for i, axis in enumerate(axes):
        axis %= x.ndim
        weights = _weights(x.shape[axis], shape[axis], float(scale[i]), float(translation[i]), kernel, antialias)
        found = cp.tensordot(found, cast(weights, found.dtype), axes=((axis,), (0,)))
        found = cp.moveaxis(found, -1, axis)
    if x.dtype not in _FLOATS:
        found = cp.minimum(cp.maximum(cp.round(found), cast(cp.min(x), found.dtype)), cast(cp.max(x), found.dtype))
    return cast(found, x.dtype)


def _to_aspect_ratio(images, size, axes, is_cropped, fill_value):
    """Images cut, or padded, to the ratio of height and width of a size."""
    (height, width), (new_height, new_width) = (images.shape[axis] for axis in axes), size
    other_height, other_width = int(width * new_height / new_width), int(height * new_width / new_height)
    if is_cropped:
        cut = max(min(height, other_height), 1), max(min(width, other_width), 1)
        for axis, n in zip(axes, cut):
            start = int((images.shape[axis] - n) / 2)
            images = knp._along(images, axis, start, start + n)
        return images
    top, left = int((max(height, other_height) - height) / 2), int((max(width, other_width) - width) / 2)
    widths = [(0, 0)] * images.ndim
    if top > 0:
        widths[axes[0]] = (top, top)
    elif left > 0:
        widths[axes[1]] = (left, left)
    return knp.pad(images, widths, constant_values=fill_value)


def resize(images, size, interpolation="bilinear", antialias=False, crop_to_aspect_ratio=False, pad_to_aspect_ratio=False,
           fill_mode="constant", fill_value=0.0, data_format=None):
    data_format = backend.standardize_data_format(data_format)
    if interpolation not in RESIZE_INTERPOLATIONS:
        raise ValueError("Invalid value for argument `interpolation`. Expected of one "
                         f"{RESIZE_INTERPOLATIONS}. Received: interpolation={interpolation}")
    if fill_mode != "constant":
        raise ValueError("Invalid value for argument `fill_mode`. Only `'constant'` is supported. "
                         f"Received: fill_mode={fill_mode}")
    if pad_to_aspect_ratio and crop_to_aspect_ratio:
        raise ValueError("Only one of `pad_to_aspect_ratio` & `crop_to_aspect_ratio` can be `True`.")
    if not len(size) == 2:
        raise ValueError(f"Argument `size` must be a tuple of two elements (height, width). Received: size={size}")
    images, size = convert_to_tensor(images), tuple(int(n) for n in size)
    _check_rank(images)
    axes = (images.ndim - 3, images.ndim - 2) if data_format == "channels_last" else (images.ndim - 2, images.ndim - 1)
    if crop_to_aspect_ratio or pad_to_aspect_ratio:
        images = _to_aspect_ratio(images, size, axes, crop_to_aspect_ratio, fill_value)
    shape = list(images.shape)
    shape[axes[0]], shape[axes[1]] = size
    changed = [axis for axis in axes if images.shape[axis] != shape[axis]]
    if interpolation == "nearest":
        for axis in changed:
            before, after = images.shape[axis], shape[axis]
            places = np.floor((np.arange(after, dtype=np.float32) + 0.5) * before / after).astype(np.int64)
            images = cp.take(images, cp.asarray(places, copy=True), axis=axis)
        return images
    scale = [shape[axis] / images.shape[axis] if images.shape[axis] else 1.0 for axis in changed]
    return _scaled(images, shape, changed, scale, [0.0] * len(changed), _KERNELS[interpolation], antialias)


def scale_and_translate(images, output_shape, scale, translation, spatial_dims, method, antialias=True):
    if method not in SCALE_AND_TRANSLATE_METHODS:
        raise ValueError("Invalid value for argument `method`. Expected of one "
                         f"{SCALE_AND_TRANSLATE_METHODS}. Received: method={method}")
    kernel = _KERNELS[{"trilinear": "linear", "tricubic": "cubic"}.get(method, method)]
    scale, translation = convert_to_numpy(scale), convert_to_numpy(translation)
    return _scaled(convert_to_tensor(images), tuple(output_shape), tuple(spatial_dims), scale, translation, kernel, antialias)


# ---- Coordinates -----------------------------------------------------------------------------------------------------


def _mirrored(index, size):
    if size == 1:
        return cp.zeros_like(index)
    return cp.abs(cp.remainder(index + (size - 1), 2 * (size - 1)) - (size - 1))


def _inside(index, size, mode):
    """Indices as they count, and where they are in the array."""
    if mode == "nearest":
        return knp.clip(index, 0, size - 1), None
    if mode == "wrap":
        return cp.remainder(index, size), None
    if mode == "mirror":
        return _mirrored(index, size), None
    if mode == "reflect":
        return cp.floor_divide(_mirrored(2 * index + 1, 2 * size + 1) - 1, 2), None
    return knp.clip(index, 0, size - 1), cp.logical_and(cp.greater_equal(index, 0), cp.less(index, size))


def _sampled(rows, sizes, coordinates, order, mode, fill_value, start=0):
    """Rows of elements [places, ...] at coordinates, one for each of the sizes that the places are made of."""
    choices = []
    for coordinate, size in zip(coordinates, sizes):
        low = cp.round(coordinate) if order == 0 else cp.floor(coordinate)
        upper = coordinate - low
        parts = [(low, None)] if order == 0 else [(low, 1 - upper), (low + 1, upper)]
        choices.append([(*_inside(cast(index, cp.int64), size, mode), share) for index, share in parts])
    total = 0
    for corner in itertools.product(*choices):
        place, is_valid, weight = start, None, None
        for (index, valid, share), size in zip(corner, sizes):
            place = place * size + index
            if valid is not None:
                is_valid = valid if is_valid is None else cp.logical_and(is_valid, valid)
            if share is not None:
                weight = share if weight is None else weight * share
        found = cp.reshape(cp.take(rows, cp.reshape(place, (-1,)), axis=0), (*place.shape, *rows.shape[1:]))
        extents = (*place.shape, *[1] * (rows.ndim - 1))
        if is_valid is not None:
            found = cp.where(cp.reshape(is_valid, extents), found, fill_value)
        total = total + (found if weight is None else found * cp.reshape(weight, extents))
    return total


def _rounded(found, dtype):
    """Results in a dtype; integers are the nearest, away from zero in the middle."""
    if dtype not in _FLOATS:
        found = cp.sign(found) * cp.floor(cp.abs(found) + 0.5)
    return cast(found, dtype)


def map_coordinates(inputs, coordinates, order, fill_mode="constant", fill_value=0.0):
    inputs, coordinates = convert_to_tensor(inputs), convert_to_tensor(coordinates)
    if coordinates.shape[0] != inputs.ndim:
        raise ValueError("First dim of `coordinates` must be the same as the rank of `inputs`. Received inputs with shape: "
                         f"{tuple(inputs.shape)} and coordinate leading dim of {coordinates.shape[0]}")
    if coordinates.ndim < 2:
        raise ValueError("Invalid coordinates rank: expected at least rank 2. "
                         f"Received input with shape: {tuple(coordinates.shape)}")
    if fill_mode not in MAP_COORDINATES_FILL_MODES:
        raise ValueError("Invalid value for argument `fill_mode`. Expected one of "
                         f"{MAP_COORDINATES_FILL_MODES}. Received: fill_mode={fill_mode}")
    if order not in range(2):
        raise ValueError(f"Invalid value for argument `order`. Expected one of [0, 1]. Received: order={order}")
    computed = cast(inputs, common(inputs.dtype, "float32"))
    places = cp.unstack(cast(coordinates, computed.dtype))
    found = _sampled(cp.reshape(computed, (-1,)), inputs.shape, places, order, fill_mode, float(fill_value))
    return _rounded(found, inputs.dtype)


def _check_transform(interpolation, fill_mode=None):
    if interpolation not in AFFINE_TRANSFORM_INTERPOLATIONS:
        raise ValueError("Invalid value for argument `interpolation`. Expected of one "
                         f"{set(AFFINE_TRANSFORM_INTERPOLATIONS)}. Received: interpolation={interpolation}")
    if fill_mode is not None and fill_mode not in AFFINE_TRANSFORM_FILL_MODES:
        raise ValueError("Invalid value for argument `fill_mode`. Expected of one "
                         f"{AFFINE_TRANSFORM_FILL_MODES}. Received: fill_mode={fill_mode}")


def _moved(images, data_format, places, interpolation, fill_mode, fill_value):
    """Images whose pixels come from places(batch, x, y) = (x, y) of the pixels before."""
    one, last = images.ndim == 3, data_format == "channels_last"
    x = cp.expand_dims(images, 0) if one else images
    x = cast(x if last else cp.permute_dims(x, (0, 2, 3, 1)), common(images.dtype, "float32"))
    batch, height, width, channels = x.shape
    columns, rows = cp.meshgrid(cp.arange(width, dtype=x.dtype), cp.arange(height, dtype=x.dtype))
    columns, rows = places(batch, cp.expand_dims(columns, 0), cp.expand_dims(rows, 0))
    columns, rows = (cp.broadcast_to(where, (batch, height, width)) for where in (columns, rows))
    start = cp.reshape(cp.arange(batch), (batch, 1, 1))
    found = _sampled(cp.reshape(x, (-1, channels)), (height, width), (rows, columns),
                     AFFINE_TRANSFORM_INTERPOLATIONS[interpolation], fill_mode, float(fill_value), start)
    found = _rounded(found, images.dtype)
    found = found if last else cp.permute_dims(found, (0, 3, 1, 2))
    return cp.squeeze(found, 0) if one else found


def affine_transform(images, transform, interpolation="bilinear", fill_mode="constant", fill_value=0, data_format=None):
    data_format = backend.standardize_data_format(data_format)
    _check_transform(interpolation, fill_mode)
    images, transform = convert_to_tensor(images), convert_to_tensor(transform)
    _check_rank(images)
    if transform.ndim not in (1, 2):
        raise ValueError("Invalid transform rank: expected rank 1 (single transform) or rank 2 (batch of transforms). "
                         f"Received input with shape: transform.shape={tuple(transform.shape)}")
    transform = cast(transform, common(images.dtype, "float32"))

    def places(batch, x, y):
        a = [cp.reshape(one, (-1, 1, 1)) for one in cp.unstack(transform, axis=-1)]
        return a[0] * x + a[1] * y + a[2], a[3] * x + a[4] * y + a[5]

    return _moved(images, data_format, places, interpolation, fill_mode, fill_value)


def perspective_transform(images, start_points, end_points, interpolation="bilinear", fill_value=0, data_format=None):
    data_format = backend.standardize_data_format(data_format)
    images, start_points, end_points = (convert_to_tensor(x) for x in (images, start_points, end_points))
    _check_transform(interpolation)
    _check_rank(images)
    for name, points in (("start_points", start_points), ("end_points", end_points)):
        if points.ndim not in (2, 3) or tuple(points.shape[-2:]) != (4, 2):
            raise ValueError(f"Invalid {name} shape: expected (4,2) for a single image or (N,4,2) for a batch. "
                             f"Received shape: {tuple(points.shape)}")
    if tuple(start_points.shape) != tuple(end_points.shape):
        raise ValueError("start_points and end_points must have the same shape. Received "
                         f"start_points.shape={tuple(start_points.shape)}, end_points.shape={tuple(end_points.shape)}")
    start_points, end_points = (cp.reshape(points, (-1, 4, 2)) for points in (start_points, end_points))
    transforms = cast(compute_homography_matrix(start_points, end_points), common(images.dtype, "float32"))

    def places(batch, x, y):
        a = [cp.reshape(one, (-1, 1, 1)) for one in cp.unstack(transforms, axis=-1)]
        below = a[6] * x + a[7] * y + 1.0
        return (a[0] * x + a[1] * y + a[2]) / below, (a[3] * x + a[4] * y + a[5]) / below

    return _moved(images, data_format, places, interpolation, "constant", fill_value)


def compute_homography_matrix(start_points, end_points):
    start_points, end_points = knp._tensors(start_points, end_points, also=(float,))
    dtype = start_points.dtype
    start, end = (cast(points, common(dtype, "float32")) for points in (start_points, end_points))
    rows, values = [], []
    for i in range(4):
        x, y = end[:, i, 0], end[:, i, 1]
        one, zero = cp.ones_like(x), cp.zeros_like(x)
        for to, row in ((start[:, i, 0], [x, y, one, zero, zero, zero]), (start[:, i, 1], [zero, zero, zero, x, y, one])):
            rows.append(cp.stack([*row, -to * x, -to * y], axis=-1))
            values.append(to)
    found = cp.linalg.solve(cp.stack(rows, axis=1), cp.expand_dims(cp.stack(values, axis=-1), -1))
    return cast(cp.reshape(found, (-1, 8)), dtype)


# ---- Filters ---------------------------------------------------------------------------------------------------------


def gaussian_blur(images, kernel_size=(3, 3), sigma=(1.0, 1.0), data_format=None):
    images = convert_to_tensor(images)
    _check_rank(images)
    data_format = data_format or config.image_data_format()
    sizes, sigmas = convert_to_numpy(kernel_size).astype(int).tolist(), convert_to_numpy(sigma).astype(float).tolist()

    def line(size, sigma):
        found = np.exp(-0.5 * ((np.arange(size) - (size - 1) / 2) / sigma) ** 2)
        return found / np.sum(found)

    kernel = np.outer(line(sizes[1], sigmas[1]), line(sizes[0], sigmas[0]))
    x = cast(images if images.ndim == 4 else cp.expand_dims(images, 0), common(images.dtype, "float32"))
    channels = x.shape[-1 if data_format == "channels_last" else 1]
    kernel = np.repeat(kernel[:, :, None, None], channels, axis=2)
    found = cast(depthwise_conv(x, cast(kernel, x.dtype), 1, "same", data_format), images.dtype)
    return found if images.ndim == 4 else cp.squeeze(found, 0)


def elastic_transform(images, alpha=20.0, sigma=5.0, interpolation="bilinear", fill_mode="reflect", fill_value=0.0,
                      seed=None, data_format=None):
    data_format = backend.standardize_data_format(data_format)
    _check_transform(interpolation, fill_mode)
    images = convert_to_tensor(images)
    _check_rank(images)
    sigma, alpha = float(convert_to_tensor(sigma)), float(convert_to_tensor(alpha))
    size = int(6 * sigma) | 1

    def places(batch, x, y):
        noise = random.normal((2, batch, *x.shape[1:]), 0.0, sigma, dtype="float32", seed=seed)
        blurred = [gaussian_blur(cp.expand_dims(one, -1), (size, size), (sigma, sigma), "channels_last")
                   for one in cp.unstack(noise)]
        dx, dy = (cast(cp.squeeze(one, -1), x.dtype) for one in blurred)
        return x + alpha * dx, y + alpha * dy

    return _moved(images, data_format, places, interpolation, fill_mode, fill_value)


def sobel_edges(images, data_format=None):
    images = convert_to_tensor(images)
    x = cp.permute_dims(images, (0, 2, 3, 1)) if data_format == "channels_first" else images
    x = knp.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)], mode="symmetric")

    def difference(x, axis):
        return knp._along(x, axis, 2, None) - knp._along(x, axis, 0, -2)

    def smoothed(x, axis):
        return knp._along(x, axis, 0, -2) + 2 * knp._along(x, axis, 1, -1) + knp._along(x, axis, 2, None)

    found = cp.stack([smoothed(difference(x, 1), 2), smoothed(difference(x, 2), 1)], axis=-1)
    return cp.permute_dims(found, (0, 3, 1, 2, 4)) if data_format == "channels_first" else found
