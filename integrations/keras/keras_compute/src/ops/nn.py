# SPDX-License-Identifier: Apache-2.0
"""keras.ops.nn: activations, convolutions, pooling, losses, attention.

The library has channels first. Channels last are permuted views of it.
"""
from __future__ import annotations

import builtins
import math

import compute as cp
import numpy as np
from keras.src import backend
from keras.src.backend.common.backend_utils import (canonicalize_axis, check_conv_input_channels,
                                                    check_conv_transpose_input_channels,
                                                    compute_conv_transpose_output_crops_for_torch)
from keras.src.utils.argument_validation import standardize_tuple

from ..sparse import flags
from ..sparse import one_hot as sparse_one_hot
from ..variable import (cast, channels_last, common, convert_to_numpy, dense_tensor as convert_to_tensor, dtype_of,
                        in_row_major, is_tensor)
from . import numpy as knp

_FLOATS = (cp.float16, cp.bfloat16, cp.float32, cp.float64)


# ---- Activations -----------------------------------------------------------------------------------------------------


def _floating(x):
    x = convert_to_tensor(x)
    return x if x.dtype in _FLOATS or x.dtype in (cp.complex64, cp.complex128) else cast(x, common(x.dtype, float))


def _activation(text, convert=_floating):
    """An activation that is one expression of x."""
    expression = cp.expression(text)

    def run(x):
        return _in_place_of(lambda one: expression(x=one), convert(x))

    return run


def _with_number(text):
    """An activation that is one expression of x and a number n."""
    expression = cp.expression(text)

    def run(x, number):
        return _in_place_of(lambda one: expression(x=one, n=float(number)), _floating(x))

    return run


def _in_place_of(function, x):
    """An elementwise function of x, in the layout of x: a new array would be row-major."""
    memory = in_row_major(x)
    return function(x) if memory is None else channels_last(function(memory))


def _row(name, convert=_floating):
    function = getattr(cp.nn, name)

    def run(x):
        return _in_place_of(function, convert(x))

    return run


relu = _row("relu", convert_to_tensor)
relu6 = _activation("min(max(x, 0), 6)", convert_to_tensor)
sigmoid, softplus, softsign, log_sigmoid, selu, silu = (_row(name) for name in (
    "sigmoid", "softplus", "softsign", "log_sigmoid", "selu", "silu"))
hard_sigmoid, hard_silu = _row("hard_sigmoid"), _row("hard_swish")
sparse_sigmoid = _activation("where(x <= -1, 0, where(x >= 1, 1, 0.5 * (x + 1)))")
tanh_shrink = _activation("x - tanh(x)")
sparse_plus = _activation("where(x <= -1, 0, where(x < 1, 0.25 * (x + 1) * (x + 1), x))")
hard_tanh = _activation("min(max(x, -1), 1)")
_soft_shrink = _with_number("where(x > n, x - n, where(x < -n, x + n, 0))")
_hard_shrink = _with_number("where(abs(x) > n, x, 0)")
_squareplus = _with_number("0.5 * (x + sqrt(x * x + n))")
_celu = _with_number("max(x, 0) + n * expm1(min(x, 0) / n)")


def tanh(x):
    return cp.tanh(_floating(x))


def soft_shrink(x, threshold=0.5):
    return _soft_shrink(x, threshold)


def hard_shrink(x, threshold=0.5):
    return _hard_shrink(x, threshold)


def squareplus(x, b=4):
    return _squareplus(x, b)


def celu(x, alpha=1.0):
    return _celu(x, alpha)


def threshold(x, threshold, default_value):
    x = convert_to_tensor(x)
    return cp.where(cp.greater(x, threshold), x, default_value)


def leaky_relu(x, negative_slope=0.2):
    return cp.nn.leaky_relu(_floating(x), negative_slope)


def elu(x, alpha=1.0):
    return cp.nn.elu(_floating(x), alpha)


def gelu(x, approximate=True):
    return (cp.nn.gelu_tanh if approximate else cp.nn.gelu)(_floating(x))


def glu(x, axis=-1):
    x = convert_to_tensor(x)
    if x.shape[axis] % 2 != 0:
        raise ValueError(f"axis size must be divisible by 2. Received: x.shape={tuple(x.shape)} with axis={axis}")
    one, other = knp.split(x, 2, axis)
    return one * sigmoid(other)


def _along(function, x, axis):
    x = _floating(x)
    if axis is None:
        return cp.reshape(function(cp.reshape(x, (-1,)), axis=0), x.shape)
    if x.ndim == 0:
        return cp.reshape(function(cp.reshape(x, (1,)), axis=0), ())
    return function(x, axis=axis)


def softmax(x, axis=-1):
    return _along(cp.nn.softmax, x, axis)


def log_softmax(x, axis=-1):
    return _along(cp.nn.log_softmax, x, axis)


def sparsemax(x, axis=-1):
    x = _floating(x)
    axis = canonicalize_axis(axis, x.ndim)
    ordered = cp.flip(cp.sort(x, axis=axis), axis=axis)
    sums = cp.cumulative_sum(ordered, axis=axis)
    ranks = cp.reshape(cp.arange(1, x.shape[axis] + 1, dtype=x.dtype), [-1 if i == axis else 1 for i in range(x.ndim)])
    is_supported = cp.greater(ordered - (sums - 1) / ranks, 0)
    count = cp.sum(cast(is_supported, x.dtype), axis=axis, keepdims=True)
    bound = (cp.sum(cp.where(is_supported, ordered, 0), axis=axis, keepdims=True) - 1) / count
    return cp.maximum(x - bound, 0)


# ---- Convolutions and pooling ----------------------------------------------------------------------------------------


def _first(x):
    """Channels last to channels first, row-major, which convolutions and pooling are fastest for."""
    memory = in_row_major(x)
    return cp.copy(cp.permute_dims(x, (0, x.ndim - 1, *range(1, x.ndim - 1)))) if memory is None else memory


def _spatial(op, inputs, data_format, name):
    """Runs an op that has channels first."""
    if not 3 <= inputs.ndim <= 5:
        raise ValueError(f"Inputs to {name} should have ndim=3, 4, or 5, corresponding to 1D, 2D and 3D inputs. "
                         f"Received input shape: {tuple(inputs.shape)}.")
    if backend.standardize_data_format(data_format) == "channels_first":
        return op(inputs)
    return channels_last(op(_first(inputs)))


def _pool(op, inputs, pool_size, strides, padding, data_format, **options):
    inputs = convert_to_tensor(inputs)
    rank = inputs.ndim - 2
    window = list(standardize_tuple(pool_size, rank, "pool_size"))
    strides = window if strides is None else list(standardize_tuple(strides, rank, "strides"))
    if padding not in ("same", "valid"):
        raise ValueError(f"Invalid padding '{padding}', must be 'same' or 'valid'.")
    return _spatial(lambda x: op(x, window=window, strides=strides, padding=padding, **options), inputs, data_format,
                    "pooling op")


def max_pool(inputs, pool_size, strides=None, padding="valid", data_format=None):
    return _pool(cp._ops.max_pool, inputs, pool_size, strides, padding, data_format)


def average_pool(inputs, pool_size, strides=None, padding="valid", data_format=None):
    return _pool(cp._ops.average_pool, inputs, pool_size, strides, padding, data_format)


def _adaptive(reduce, inputs, output_size, data_format):
    """Windows that divide each spatial axis into so many parts, which may overlap by one element."""
    inputs = convert_to_tensor(inputs)
    rank = inputs.ndim - 2
    sizes = standardize_tuple(output_size, rank, "output_size")

    def run(x):
        for axis, size in enumerate(sizes, 2):
            n = x.shape[axis]
            parts = [reduce(x[(slice(None),) * axis + (slice(i * n // size, -(-(i + 1) * n // size)),)], axis=axis)
                     for i in range(size)]
            x = cp.stack(parts, axis=axis)
        return x

    return _spatial(run, inputs, data_format, "pooling op")


def adaptive_average_pool(inputs, output_size, data_format=None):
    return _adaptive(cp.mean, inputs, output_size, data_format)


def adaptive_max_pool(inputs, output_size, data_format=None):
    return _adaptive(cp.max, inputs, output_size, data_format)


def _weight(kernel):
    """A kernel [spatial..., in, out] as a weight [out, in, spatial...]."""
    rank = kernel.ndim - 2
    return cp.permute_dims(kernel, (rank + 1, rank, *range(rank)))


def _together(inputs, kernel):
    inputs, kernel = convert_to_tensor(inputs), convert_to_tensor(kernel)
    dtype = cp.int32 if inputs.dtype is kernel.dtype is cp.int8 else common(inputs.dtype, kernel.dtype)
    return cast(inputs, dtype), cast(kernel, dtype)


def conv(inputs, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
    return _convolved(inputs, kernel, None, strides, padding, data_format, dilation_rate)


def _convolved(inputs, kernel, bias, strides, padding, data_format, dilation_rate):
    inputs, kernel = _together(inputs, kernel)
    rank = inputs.ndim - 2
    channels = inputs.shape[-1 if backend.standardize_data_format(data_format) == "channels_last" else 1]
    if channels % kernel.shape[-2]:
        raise ValueError(f"The number of input channels must be evenly divisible by kernel's in_channels. Received input "
                         f"channels {channels} and kernel in_channels {kernel.shape[-2]}. ")
    options = {"strides": list(standardize_tuple(strides, rank, "strides")),
               "dilations": list(standardize_tuple(dilation_rate, rank, "dilation_rate")),
               "padding": str(padding).lower(), "groups": channels // kernel.shape[-2]}
    return _spatial(lambda x: cp._ops.convolution(x, _weight(kernel), bias, **options), inputs, data_format,
                    "conv operation")


def convolution_with_bias(layer, inputs, padding):
    """What a layer of convolution computes before its activation, in one op. None if a subclass computes it otherwise, or
    the bias has another dtype."""
    from keras.src.layers.convolutional.base_conv import BaseConv  # which imports this module

    if not layer.use_bias or type(layer).convolution_op is not BaseConv.convolution_op or not is_tensor(inputs):
        return None
    kernel, bias = convert_to_tensor(layer.kernel), convert_to_tensor(layer.bias)
    if len({inputs.dtype, kernel.dtype, bias.dtype}) > 1:
        return None
    return _convolved(inputs, kernel, bias, list(layer.strides), padding, layer.data_format, layer.dilation_rate)


def depthwise_conv(inputs, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
    inputs, kernel = _together(inputs, kernel)
    data_format = backend.standardize_data_format(data_format)
    check_conv_input_channels(inputs, kernel, data_format)
    kernel = cp.reshape(kernel, (*kernel.shape[:-2], 1, kernel.shape[-2] * kernel.shape[-1]))
    return conv(inputs, kernel, strides, padding, data_format, dilation_rate)


def separable_conv(inputs, depthwise_kernel, pointwise_kernel, strides=1, padding="valid", data_format=None,
                   dilation_rate=1):
    data_format = backend.standardize_data_format(data_format)
    inputs = depthwise_conv(inputs, depthwise_kernel, strides, padding, data_format, dilation_rate)
    return conv(inputs, pointwise_kernel, 1, "valid", data_format, dilation_rate)


def conv_transpose(inputs, kernel, strides=1, padding="valid", output_padding=None, data_format=None, dilation_rate=1):
    inputs, kernel = _together(inputs, kernel)
    data_format = backend.standardize_data_format(data_format)
    check_conv_transpose_input_channels(inputs, kernel, data_format)
    rank = inputs.ndim - 2
    strides = standardize_tuple(strides, rank, "strides")
    crops = compute_conv_transpose_output_crops_for_torch(inputs.shape, kernel.shape, strides, padding, output_padding,
                                                          dilation_rate)
    cut = [[builtins.max(ends[i], 0) for ends in crops] for i in (0, 1)]
    more = [(builtins.max(-left, 0), builtins.max(-right, 0)) for left, right in crops]
    options = {"strides": list(strides), "dilations": list(standardize_tuple(dilation_rate, rank, "dilation_rate"))}

    def run(x):
        y = cp._ops.convolution_transpose(x, _weight(kernel), None, pads_begin=cut[0], pads_end=cut[1], **options)
        return cp.pad(y, [(0, 0), (0, 0), *more]) if builtins.any(map(builtins.any, more)) else y

    return _spatial(run, inputs, data_format, "conv transpose operation")


def _blocks(height, width, kernel_size, dilation, padding, stride):
    """The places of elements of sliding blocks in a padded image, [kernel elements, blocks], and the padded extents."""
    (kh, kw), (dh, dw) = standardize_tuple(kernel_size, 2, "kernel_size"), standardize_tuple(dilation, 2, "dilation")
    ph, pw = (padding, padding) if isinstance(padding, int) else padding
    sh, sw = standardize_tuple(stride, 2, "stride")
    height, width = height + 2 * ph, width + 2 * pw
    top = np.arange(0, height - dh * (kh - 1), sh)
    left = np.arange(0, width - dw * (kw - 1), sw)
    rows = dh * np.arange(kh)[:, None, None, None] + top[None, None, :, None]
    columns = dw * np.arange(kw)[None, :, None, None] + left[None, None, None, :]
    return (rows * width + columns).reshape(kh * kw, -1), (height, width), (ph, pw)


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    x = convert_to_tensor(input)
    n, channels, height, width = x.shape
    places, extents, (ph, pw) = _blocks(height, width, kernel_size, dilation, padding, stride)
    x = cp.reshape(cp.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw))), (n, channels, extents[0] * extents[1]))
    found = cp.take(x, cp.asarray(places.reshape(-1), copy=True), axis=2)
    return cp.reshape(found, (n, channels * places.shape[0], places.shape[1]))


def fold(x, output_size, kernel_size, dilation=1, padding=0, stride=1):
    x = convert_to_tensor(x)
    height, width = standardize_tuple(output_size, 2, "output_size")
    places, extents, (ph, pw) = _blocks(height, width, kernel_size, dilation, padding, stride)
    n, channels = x.shape[0], x.shape[1] // places.shape[0]
    parts = cp.permute_dims(cp.reshape(x, (n * channels, places.size)), (1, 0))
    zeros = cp.zeros((extents[0] * extents[1], n * channels), dtype=x.dtype)
    found = cp.scatter_nd(zeros, cp.asarray(places.reshape(-1, 1), copy=True), parts, reduction="add")
    found = cp.reshape(cp.permute_dims(found, (1, 0)), (n, channels, *extents))
    return found[:, :, ph:ph + height, pw:pw + width]


def depth_to_space(x, block_size, data_format="channels_last"):
    x, b = convert_to_tensor(x), block_size
    if data_format == "channels_last":
        n, h, w, c = x.shape
        x = cp.permute_dims(cp.reshape(x, (n, h, w, b, b, c // b ** 2)), (0, 1, 3, 2, 4, 5))
        return cp.reshape(x, (n, h * b, w * b, c // b ** 2))
    n, c, h, w = x.shape
    x = cp.permute_dims(cp.reshape(x, (n, c // b ** 2, b, b, h, w)), (0, 1, 4, 2, 5, 3))
    return cp.reshape(x, (n, c // b ** 2, h * b, w * b))


def space_to_depth(x, block_size, data_format="channels_last"):
    x, b = convert_to_tensor(x), block_size
    if data_format == "channels_last":
        n, h, w, c = x.shape
        x = cp.permute_dims(cp.reshape(x, (n, h // b, b, w // b, b, c)), (0, 1, 3, 2, 4, 5))
        return cp.reshape(x, (n, h // b, w // b, c * b ** 2))
    n, c, h, w = x.shape
    x = cp.permute_dims(cp.reshape(x, (n, c, h // b, b, w // b, b)), (0, 1, 3, 5, 2, 4))
    return cp.reshape(x, (n, c * b ** 2, h // b, w // b))


# ---- Classes and losses ----------------------------------------------------------------------------------------------


def one_hot(x, num_classes, axis=-1, dtype=None, sparse=False):
    x = cast(convert_to_tensor(x), cp.int64)
    dtype = dtype_of(dtype or backend.floatx())
    if sparse:
        return sparse_one_hot(convert_to_numpy(x), int(num_classes), axis, dtype)
    return cp.nn.one_hot(x, int(num_classes), axis=axis if axis >= 0 else axis + x.ndim + 1, dtype=dtype)


def multi_hot(x, num_classes, axis=-1, dtype=None, sparse=False):
    x = convert_to_tensor(x)
    classes, reduced = one_hot(x, num_classes, axis, dtype, sparse), 1 if x.ndim > 1 else 0
    return flags(classes, reduced, classes.dtype) if sparse else knp.max(classes, axis=reduced)


def _check_same_shape(target, output):
    if tuple(target.shape) != tuple(output.shape):
        raise ValueError("Arguments `target` and `output` must have the same shape. Received: "
                         f"target.shape={tuple(target.shape)}, output.shape={tuple(output.shape)}")


def _log_of_shares(output, axis):
    """log(output / sum(output)), limited as Keras limits probabilities."""
    output = output / cp.sum(output, axis=axis, keepdims=True)
    return cp.log(knp.clip(output, backend.epsilon(), 1.0 - backend.epsilon()))


def categorical_crossentropy(target, output, from_logits=False, axis=-1):
    target, output = convert_to_tensor(target), convert_to_tensor(output)
    _check_same_shape(target, output)
    if target.ndim < 1:
        raise ValueError("Arguments `target` and `output` must be at least rank 1. Received: "
                         f"target.shape={tuple(target.shape)}, output.shape={tuple(output.shape)}")
    log_prob = log_softmax(output, axis) if from_logits else _log_of_shares(output, axis)
    return cp.negative(cp.sum(cast(target, log_prob.dtype) * log_prob, axis=axis))


def sparse_categorical_crossentropy(target, output, from_logits=False, axis=-1):
    target, output = cast(target, cp.int64), convert_to_tensor(output)
    if output.ndim < 1:
        raise ValueError(f"Argument `output` must be at least rank 1. Received: output.shape={tuple(output.shape)}")
    axis = canonicalize_axis(axis, output.ndim)
    if target.ndim == output.ndim and target.shape[axis] == 1:
        target = cp.squeeze(target, axis)
    if tuple(target.shape) != (*output.shape[:axis], *output.shape[axis + 1:]):
        raise ValueError("Arguments `target` and `output` must have the same shape up until the last dimension: "
                         f"target.shape={tuple(target.shape)}, output.shape={tuple(output.shape)}")
    log_prob = log_softmax(output, axis) if from_logits else _log_of_shares(output, axis)
    is_class = one_hot(target, output.shape[axis], axis, log_prob.dtype)
    return cp.negative(cp.sum(is_class * log_prob, axis=axis))


_binary_crossentropy = cp.expression("-(t * log(p) + (1 - t) * log(1 - p))")


def binary_crossentropy(target, output, from_logits=False):
    target, output = convert_to_tensor(target), _floating(output)
    _check_same_shape(target, output)
    target = cast(target, output.dtype)
    if from_logits:
        return cp.nn.binary_cross_entropy_with_logits(output, target)
    return _binary_crossentropy(t=target, p=knp.clip(output, backend.epsilon(), 1.0 - backend.epsilon()))


def moments(x, axes, keepdims=False, synchronized=False):
    if synchronized:
        raise NotImplementedError("Argument synchronized=True is not supported with compute backend.")
    x = convert_to_tensor(x)
    dtype = x.dtype
    x = cast(x, cp.float32) if dtype is cp.float16 else x
    axes = tuple(axes) if isinstance(axes, (list, tuple)) else axes
    mean = cp.mean(x, axis=axes, keepdims=True)
    variance = cp.mean(cp.square(x - mean), axis=axes, keepdims=True)
    if not keepdims:
        listed = range(x.ndim) if axes is None else axes
        mean, variance = cp.squeeze(mean, listed), cp.squeeze(variance, listed)
    if dtype is cp.float16:
        limit = float(cp.finfo(dtype).max)
        mean, variance = (cast(knp.clip(one, -limit, limit), dtype) for one in (mean, variance))
    return mean, variance


_normalised = cp.expression("(x - m) * (rsqrt(v + e) * s) + b")


def batch_normalization(x, mean, variance, axis, offset=None, scale=None, epsilon=1e-3):
    x, mean, variance = (convert_to_tensor(one) for one in (x, mean, variance))
    shape = [1] * x.ndim
    shape[axis] = mean.shape[0]
    given = {"s": 1.0 if scale is None else cp.reshape(convert_to_tensor(scale), shape),
             "b": 0.0 if offset is None else cp.reshape(convert_to_tensor(offset), shape)}
    return _normalised(x=x, m=cp.reshape(mean, shape), v=cp.reshape(variance, shape), e=float(epsilon), **given)


def psnr(x1, x2, max_val):
    if tuple(x1.shape) != tuple(x2.shape):
        raise ValueError(f"Input shapes {tuple(x1.shape)} and {tuple(x2.shape)} must match for PSNR calculation. ")
    x1, x2 = convert_to_tensor(x1), convert_to_tensor(x2)
    mse = cp.mean(cp.square(x1 - x2))
    return 20 * cp.log10(cast(max_val, mse.dtype)) - 10 * cp.log10(mse)


def dot_product_attention(query, key, value, bias=None, mask=None, scale=None, is_causal=False, flash_attention=None,
                          attn_logits_soft_cap=None):
    query, key, value = convert_to_tensor(query), convert_to_tensor(key), convert_to_tensor(value)
    if query.ndim != 4 or key.ndim != 4 or value.ndim != 4:
        raise ValueError(f"`dot_product_attention` only supports 4D inputs. Received: query.shape={tuple(query.shape)}, "
                         f"key.shape={tuple(key.shape)}, value.shape={tuple(value.shape)}.")
    dtype = common(query.dtype, key.dtype, value.dtype)
    q, k, v = (cp.permute_dims(cast(x, dtype), (0, 2, 1, 3)) for x in (query, key, value))
    if k.shape[1] not in (1, q.shape[1]):
        k, v = (cp.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else float(scale)
    added = None if bias is None else cast(bias, dtype)
    if mask is not None or (is_causal and (added is not None or q.shape[2] != k.shape[2])):
        mask = None if mask is None else cast(mask, cp.bool)
        if is_causal:
            earlier = cp.tril(cp.ones((q.shape[2], k.shape[2]), dtype=cp.bool))
            mask = earlier if mask is None else cp.logical_and(mask, earlier)
        is_causal = False
        least = -0.7 * (65500.0 if dtype is cp.float16 else 3.38953e38)
        added = cp.where(mask, 0.0 if added is None else added, cp.full((), least, dtype=dtype))
    if attn_logits_soft_cap is None:
        if added is not None:
            added = cp.broadcast_to(added, (*q.shape[:3], k.shape[2]))
        y = cp.nn.attention(q, k, v, added, causal=is_causal, scale=scale)
    else:
        logits = cp.matmul(q, cp.matrix_transpose(k)) * scale
        logits = attn_logits_soft_cap * cp.tanh(logits / attn_logits_soft_cap)
        if is_causal:
            logits = cp.where(cp.tril(cp.ones((q.shape[2], k.shape[2]), dtype=cp.bool)), logits, -math.inf)
        logits = logits if added is None else logits + added
        y = cp.matmul(cp.nn.softmax(logits, axis=-1), v)
    return cp.permute_dims(y, (0, 2, 1, 3))


# ---- Connectionist temporal classification ---------------------------------------------------------------------------


def ctc_loss(target, output, target_length, output_length, mask_index=0):
    """The negative logarithm of the probability of all paths to a target, by the recursion that optax uses."""
    target, output = cast(target, cp.int64), convert_to_tensor(output)
    output = cast(output, common(output.dtype, "float32"))
    batch, steps, classes = output.shape
    labels, never = target.shape[1], -1e5

    def is_padding(lengths, extent):
        lengths = cp.expand_dims(cast(lengths, cp.int32), -1)
        return cast(cp.greater_equal(cp.expand_dims(cp.arange(extent, dtype=cp.int32), 0), lengths), output.dtype)

    padding = is_padding(output_length, steps)
    log_prob = cp.nn.log_softmax(output, axis=-1)
    is_repeated = cast(cp.equal(target[:, :-1], target[:, 1:]), output.dtype)
    is_repeated = cp.pad(is_repeated, ((0, 0), (0, 1)))
    blank = log_prob[:, :, mask_index:mask_index + 1]
    emitted = cp.matmul(log_prob, cp.matrix_transpose(one_hot(target, classes, dtype=log_prob.dtype)))
    phi = cp.concat([cp.zeros((batch, 1), dtype=output.dtype), cp.full((batch, labels), never, dtype=output.dtype)], axis=1)
    emit = cp.full((batch, labels), never, dtype=output.dtype)

    def updated(phi, score):
        return cp.concat([phi[:, :1], cp.logaddexp(phi[:, 1:], score)], axis=-1)

    for step in range(steps):
        before = phi
        phi = updated(phi, emit + never * is_repeated)
        one, other, pad = emitted[:, step], blank[:, step], padding[:, step:step + 1]
        next_emit = cp.logaddexp(phi[:, :-1] + one, emit + one)
        next_phi = updated(phi + other, emit + other + never * (1.0 - is_repeated))
        emit = pad * emit + (1.0 - pad) * next_emit
        phi = pad * before + (1.0 - pad) * next_phi
    phi = updated(phi, emit)
    return cp.negative(cp.sum(phi * one_hot(target_length, labels + 1, dtype=phi.dtype), axis=-1))


def _greedy(inputs, sequence_lengths, merge_repeated, mask_index):
    batch, steps, classes = inputs.shape
    mask_index = classes - 1 if mask_index is None else mask_index
    found, scores = cp.argmax(inputs, axis=-1), cp.max(inputs, axis=-1)
    is_after = cp.greater_equal(cp.expand_dims(cp.arange(steps), 0), cp.expand_dims(sequence_lengths, -1))
    found, scores = cp.where(is_after, mask_index, found), cp.where(is_after, 0.0, scores)
    if merge_repeated:
        is_repeated = cp.pad(cast(cp.equal(found[:, 1:], found[:, :-1]), cp.int32), ((0, 0), (1, 0)))
        found = cp.where(cp.greater(is_repeated, 0), mask_index, found)
    is_blank = cp.equal(found, mask_index)
    order = cp.where(is_blank, steps, cp.broadcast_to(cp.arange(steps), (batch, steps)))
    found = cp.take_along_axis(cp.where(is_blank, -1, found), cp.argsort(order, axis=-1), axis=-1)
    return cast(cp.expand_dims(found, 0), cp.int32), cp.expand_dims(cp.negative(cp.sum(scores, axis=1)), -1)


def _beams(log_prob, length, width, top_paths, blank):
    """The best paths of one sequence and their scores, by a beam search on the host after Keras' NumPy backend."""
    steps, classes = log_prob.shape
    first = np.argsort(log_prob[0])[-builtins.min(classes, width):]
    paths = np.full((2 * width, steps), -1, np.int32)
    paths[:len(first), 0] = np.where(first == blank, -1, first)
    scores = np.full(2 * width, -np.inf, log_prob.dtype)
    scores[:len(first)] = log_prob[0, first]
    is_masked = paths[:, 0] == -1

    def merged(inverse, scores):
        greatest = np.max(scores)
        sums = np.zeros_like(scores)
        np.add.at(sums, inverse, np.exp(scores - greatest))
        with np.errstate(divide="ignore"):
            return np.log(sums) + greatest

    def distinct(paths):
        paths, inverse = np.unique(paths, return_inverse=True, axis=0)
        more = 2 * classes * width - len(paths)
        return np.pad(paths, ((0, builtins.max(more, 0)), (0, 0)), constant_values=-1), inverse.reshape(-1)

    for step in range(1, builtins.min(int(length), steps)):
        paths, scores, was_masked = (np.repeat(x, classes, axis=0) for x in (paths, scores, is_masked))
        tail = np.argmax(paths == -1, axis=1)
        rows = np.arange(len(paths))
        ends = np.where(tail == 0, -1, paths[rows, tail - 1])
        added = np.arange(classes)
        added[blank] = -1
        added = np.tile(added, 2 * width)
        is_masked = added == -1
        paths[rows, tail] = np.where(~was_masked & (ends == added), -1, added)
        scores = scores + np.tile(log_prob[step], 2 * width)
        paths, inverse = distinct(paths)
        emitted = merged(inverse, np.where(is_masked, -np.inf, scores))
        masked = merged(inverse, np.where(is_masked, scores, -np.inf))
        best = np.argsort(np.logaddexp(emitted, masked), kind="stable")[-width:]
        paths = np.tile(paths[best], (2, 1))
        scores = np.concatenate([emitted[best], masked[best]])
        is_masked = np.repeat([False, True], width)
    paths, inverse = distinct(paths)
    scores = merged(inverse, scores)
    best = np.argsort(scores)[-top_paths:][::-1]
    return paths[best], scores[best]


def ctc_decode(inputs, sequence_lengths, strategy="greedy", beam_width=100, top_paths=1, merge_repeated=True, mask_index=0):
    inputs = convert_to_tensor(inputs)
    inputs = cast(inputs, common(inputs.dtype, "float32"))
    lengths = convert_to_tensor(sequence_lengths, "int32")
    if strategy == "greedy":
        return _greedy(inputs, lengths, merge_repeated, mask_index)
    if strategy != "beam_search":
        raise ValueError(f"Invalid strategy {strategy}. Supported values are 'greedy' and 'beam_search'.")
    classes = inputs.shape[-1]
    mask_index = classes - 1 if mask_index is None else mask_index
    log_prob = np.flip(convert_to_numpy(cp.nn.log_softmax(inputs, axis=-1)), axis=2)  # ties go to the lower class
    found = [_beams(x, n, beam_width, top_paths, classes - mask_index - 1) for x, n in zip(log_prob, convert_to_numpy(lengths))]
    paths = np.stack([paths for paths, _ in found], axis=1)
    paths = np.where(paths == -1, -1, classes - paths - 1)
    return convert_to_tensor(paths, "int32"), convert_to_tensor(np.stack([scores for _, scores in found]))
