# SPDX-License-Identifier: Apache-2.0
"""keras.ops.math: segments, the largest elements, Fourier transforms, special functions."""
from __future__ import annotations

import math

import compute as cp
import numpy as np

from ..variable import cast, convert_to_numpy, dense_tensor as convert_to_tensor
from . import numpy as knp

_FLOATS = (cp.float16, cp.bfloat16, cp.float32, cp.float64)


def _segments(kind, data, segment_ids, num_segments):
    data, ids = convert_to_tensor(data), cast(segment_ids, cp.int64)
    count = int(cp.max(ids)) + 1 if num_segments is None else int(num_segments)
    ids = cp.where(cp.logical_and(cp.greater_equal(ids, 0), cp.less(ids, count)), ids, count)  # others are dropped
    limits = None if kind in ("add", "mul") else cp.finfo(data.dtype) if data.dtype in _FLOATS else cp.iinfo(data.dtype)
    start = {"add": lambda: 0, "mul": lambda: 1, "max": lambda: limits.min, "min": lambda: limits.max}[kind]()
    if kind in ("max", "min") and data.dtype in _FLOATS:
        start = -math.inf if kind == "max" else math.inf
    base = cp.full((count + 1, *data.shape[1:]), start, dtype=data.dtype)
    return cp.scatter_nd(base, cp.expand_dims(ids, -1), data, reduction=kind)[:count]


def segment_sum(data, segment_ids, num_segments=None, sorted=False):
    return _segments("add", data, segment_ids, num_segments)


def segment_max(data, segment_ids, num_segments=None, sorted=False):
    return _segments("max", data, segment_ids, num_segments)


def segment_min(data, segment_ids, num_segments=None, sorted=False):
    return _segments("min", data, segment_ids, num_segments)


def segment_prod(data, segment_ids, num_segments=None, sorted=False):
    return _segments("mul", data, segment_ids, num_segments)


def top_k(x, k, sorted=True):
    x = convert_to_tensor(x)
    values, indices = cp.top_k(cast(x, cp.uint8) if x.dtype is cp.bool else x, int(k))
    return cast(values, x.dtype), cast(indices, cp.int32)


def in_top_k(targets, predictions, k):
    targets, predictions = convert_to_tensor(targets), convert_to_tensor(predictions)
    found = knp.take_along_axis(predictions, cp.expand_dims(targets, -1), axis=-1)
    return cp.any(cp.greater_equal(found, top_k(predictions, k)[0]), axis=-1)


def logsumexp(x, axis=None, keepdims=False):
    x = knp._float_of_integers(x)
    axis = list(axis) if isinstance(axis, (list, tuple)) else axis
    return cp.nn.logsumexp(x, axis=axis, keepdims=keepdims)


def cdist(x, y):
    x, y = knp._tensors(x, y, also=(float,))
    if x.ndim < 2 or y.ndim < 2:
        raise ValueError("`cdist` inputs must have rank >= 2")
    if x.shape[-1] != y.shape[-1]:
        raise ValueError("Last dimension of inputs to `cdist` must match")
    return cp.sqrt(cp.sum(cp.square(x[..., :, None, :] - y[..., None, :, :]), axis=-1))


def extract_sequences(x, sequence_length, sequence_stride):
    x = convert_to_tensor(x)
    count = (x.shape[-1] - (sequence_length - sequence_stride)) // sequence_stride
    places = sequence_stride * np.arange(count)[:, None] + np.arange(sequence_length)
    found = cp.take(x, cp.asarray(places.reshape(-1), copy=True), axis=x.ndim - 1)
    return cp.reshape(found, (*x.shape[:-1], count, sequence_length))


def _get_complex_tensor_from_tuple(x):  # keras.ops.nn knows it by this name
    """One tensor of a pair of tensors, the real and the imaginary parts."""
    if not isinstance(x, (tuple, list)) or len(x) != 2:
        raise ValueError(f"Input `x` should be a tuple of two tensors - real and imaginary.Received: x={x}")
    one, other = convert_to_tensor(x[0]), convert_to_tensor(x[1])
    if tuple(one.shape) != tuple(other.shape):
        raise ValueError("Input `x` should be a tuple of two tensors - real and imaginary."
                         "Both the real and imaginary parts should have the same shape. "
                         f"Received: x[0].shape = {tuple(one.shape)}, x[1].shape = {tuple(other.shape)}")
    if one.dtype not in _FLOATS or other.dtype not in _FLOATS:
        raise ValueError(f"At least one tensor in input `x` is not of type float.Received: x={x}.")
    return one + other * 1j


def _pair(x):
    return cp.real(x), cp.imag(x)


def fft(x):
    return _pair(cp.fft.fft(_get_complex_tensor_from_tuple(x)))


def fft2(x):
    return _pair(cp.fft.fft2(_get_complex_tensor_from_tuple(x)))


def ifft2(x):
    return _pair(cp.fft.ifft2(_get_complex_tensor_from_tuple(x)))


def rfft(x, fft_length=None):
    return _pair(cp.fft.rfft(convert_to_tensor(x), n=fft_length))


def irfft(x, fft_length=None):
    return cp.fft.irfft(_get_complex_tensor_from_tuple(x), n=fft_length)


def _window(window, length, fft_length, dtype):
    """A window of the length of a transform, or None."""
    before = (fft_length - length) // 2
    if window is None:
        return cp.ones((fft_length,), dtype=dtype)
    if isinstance(window, str):
        share = {"hann": 0.5, "hamming": 0.54}[window]
        window = share - (1 - share) * np.cos(2 * np.pi * np.arange(length) / length)
    window = cast(window, dtype)
    if window.ndim != 1 or window.shape[0] != length:
        raise ValueError("The shape of `window` must be equal to [sequence_length]."
                         f"Received: window shape={tuple(window.shape)}")
    return cp.pad(window, ((before, fft_length - length - before),))


def stft(x, sequence_length, sequence_stride, fft_length, window="hann", center=True):
    x = convert_to_tensor(x)
    if x.dtype not in (cp.float32, cp.float64):
        raise TypeError(f"Invalid input type. Expected `float32` or `float64`. Received: input type={x.dtype}")
    if fft_length < sequence_length:
        raise ValueError("`fft_length` must equal or larger than `sequence_length`. Received: "
                         f"sequence_length={sequence_length}, fft_length={fft_length}")
    if isinstance(window, str) and window not in {"hann", "hamming"}:
        raise ValueError(f'If a string is passed to `window`, it must be one of `"hann"`, `"hamming"`. '
                         f"Received: window={window}")
    if center:
        x = knp.pad(x, [(0, 0)] * (x.ndim - 1) + [(fft_length // 2, fft_length // 2)], mode="reflect")
    parts = extract_sequences(x, fft_length, sequence_stride)
    return _pair(cp.fft.rfft(parts * _window(window, sequence_length, fft_length, x.dtype)))


def istft(x, sequence_length, sequence_stride, fft_length, length=None, window="hann", center=True):
    x = _get_complex_tensor_from_tuple(x)
    parts = cp.fft.irfft(x, n=fft_length)
    count = parts.shape[-2]
    extent = fft_length + sequence_stride * (count - 1)
    if window is not None:  # divided by the sum of its squares where all windows overlap
        window = convert_to_numpy(_window(window, sequence_length, fft_length, parts.dtype))
        squares = np.pad(np.square(window), (0, -fft_length % sequence_stride)).reshape(-1, sequence_stride).sum(0)
        with np.errstate(divide="ignore", invalid="ignore"):
            window = window / np.resize(squares, fft_length)
        parts = parts * cast(window, parts.dtype)
    places = sequence_stride * np.arange(count)[:, None] + np.arange(fft_length)
    flat = cp.permute_dims(cp.reshape(parts, (-1, count * fft_length)), (1, 0))
    found = cp.scatter_nd(cp.zeros((extent, flat.shape[1]), dtype=flat.dtype), cp.asarray(places.reshape(-1, 1), copy=True),
                          flat, reduction="add")
    found = cp.reshape(cp.permute_dims(found, (1, 0)), (*parts.shape[:-2], extent))
    start = fft_length // 2 if center else 0
    end = start + length if length is not None else extent - fft_length // 2 if center else extent
    return found[..., start:end]


def rsqrt(x):
    return cp.rsqrt(knp._float_of_integers(x))


def erf(x):
    return cp.erf(knp._float_of_integers(x))


def erfc(x):
    return cp.erfc(knp._inexact(x))


def erfinv(x):
    return cp.erfinv(knp._inexact(x))


def logdet(x):
    return cp.linalg.slogdet(convert_to_tensor(x))[1]
