# SPDX-License-Identifier: Apache-2.0
"""Neural networks: activations, layers, losses. Images are [n, channels, height, width]."""
from __future__ import annotations

from . import _dtypes, _ops, random
from ._core import array_of as _array_of
from ._creation import arrays_of as _arrays_of, asarray as _asarray, is_values as _is_values
from ._errors import renamed as _renamed
from ._manipulation import _whole
from ._ops import ROWS as _ROWS

for _name in ("gelu", "gelu_tanh", "hard_sigmoid", "hard_swish", "log_sigmoid", "mish", "relu",
              "selu", "sigmoid", "silu", "softplus", "softsign", "squared_difference",
              "binary_cross_entropy_with_logits"):
    globals()[_name] = _ROWS[_name]


def elu(x, alpha=1.0, /):
    """x, or alpha (exp(x) - 1) for x below 0.

    >>> compute.nn.elu(compute.asarray([-1000.0, 2.0]))
    Array([-1.,  2.], dtype=float32)
    """
    return _ROWS["elu"](x, alpha)


def leaky_relu(x, slope=0.01, /):
    """x, or slope x for x below 0; `slope` is a number, or an array that broadcasts.

    >>> compute.nn.leaky_relu(compute.asarray([-4.0, 2.0]), 0.25)
    Array([-1.,  2.], dtype=float32)
    """
    return _ROWS["leaky_relu"](x, slope)


def softmax(x, /, axis=-1, **names):
    """exp(x) / sum(exp(x)) along an axis, without overflow.

    >>> compute.nn.softmax([0.0, 0.0])
    Array([0.5, 0.5], dtype=float32)
    """
    if names:
        return _renamed(softmax, names, x, axis=axis)
    return _ops.softmax(x, axis=_whole(axis, "softmax"))


def log_softmax(x, /, axis=-1, **names):
    """The logarithm of softmax.

    >>> compute.nn.log_softmax([2.0])
    Array([0.], dtype=float32)
    """
    if names:
        return _renamed(log_softmax, names, x, axis=axis)
    return _ops.log_softmax(x, axis=_whole(axis, "log_softmax"))


def logsumexp(x, /, axis=None, keepdims=False, **names):
    """log(sum(exp(x))), without overflow.

    >>> compute.nn.logsumexp([1000.0])
    Array(1000., dtype=float32)
    """
    if names:
        return _renamed(logsumexp, names, x, axis=axis, keepdims=keepdims)
    return _ops.logsumexp(x, axes=[axis] if isinstance(axis, int) else axis, keepdims=keepdims)


def linear(x, weight, bias=None, /, *, transpose_weight=False, activation="none", precision="default"):
    """activation(x weight + bias) along the last axis: "none", "relu", "gelu" and others.

    `precision` is as in compute.matmul.

    >>> compute.nn.linear([[1.0, 2.0]], [[1.0], [1.0]])
    Array([[3.]], dtype=float32)
    """
    return _ops.affine(x, weight, bias, transpose_weight=transpose_weight, activation=activation,
                       precision=precision)


def _pair(value, count):
    return [value] * count if isinstance(value, int) else value


def _padding(value, count, name):
    """The padding in front of and behind each spatial axis."""
    if isinstance(value, str):
        raise ValueError(f"{name}: padding is {value!r}, but should be {_PADDINGS[name]}")
    return _pair(value, count)


_PADDINGS = {"convolution": "'same', 'valid', a number, or one for each axis",
             "pooling": "a number, or one for each axis"}


def convolution(x, weight, bias=None, /, *, strides=None, dilations=None, padding=0, groups=1, precision="default"):
    """Convolution over 1 to 3 spatial axes. `padding` is "same", "valid", a number, or one for each axis.

    `precision` is as in compute.matmul.

    >>> compute.nn.convolution([[[1.0, 2.0, 3.0]]], [[[1.0, 1.0]]])
    Array([[[3., 5.]]], dtype=float32)
    """
    x, weight, bias = _arrays_of(x, weight, bias)
    count = x.ndim - 2
    pads = {}
    if padding != "same":
        width = _padding(0 if padding == "valid" else padding, count, "convolution")
        pads = {"pads_begin": width, "pads_end": width}
    return _ops.convolution(x, weight, bias, strides=_pair(strides, count), dilations=_pair(dilations, count),
                            padding="same" if padding == "same" else "explicit", groups=groups, precision=precision,
                            **pads)


def convolution_transpose(x, weight, bias=None, /, *, strides=None, dilations=None, padding=0, output_padding=0,
                          groups=1):
    """Transposed convolution of x [n, c_in, ...] and weight [c_in, c_out / groups, ...], over 1 to 3 spatial axes.

    An extent of the result is (extent - 1) stride + (kernel - 1) dilation + 1 + output_padding - 2 padding, or
    extent * stride with the padding "same".

    >>> compute.nn.convolution_transpose([[[1.0, 2.0]]], [[[1.0, 1.0]]])
    Array([[[1., 3., 2.]]], dtype=float32)
    """
    x, weight, bias = _arrays_of(x, weight, bias)
    count = x.ndim - 2
    pads = {}
    if padding != "same":
        width = _padding(0 if padding == "valid" else padding, count, "convolution")
        pads = {"pads_begin": width, "pads_end": width}
    if output_padding != 0:
        pads["output_padding"] = _pair(output_padding, count)
    return _ops.convolution_transpose(x, weight, bias, strides=_pair(strides, count), dilations=_pair(dilations, count),
                                      padding="same" if padding == "same" else "explicit", groups=groups, **pads)


def max_pool(x, /, window, *, strides=None, padding=0):
    """The greatest elements of windows; without strides they do not overlap.

    A window of padding alone gives the least value of the dtype, -inf of floating-point ones.

    >>> compute.nn.max_pool([[[1.0, 5.0, 2.0, 3.0]]], 2)
    Array([[[5., 3.]]], dtype=float32)
    """
    return _pool(_ops.max_pool, x, window, strides, padding)


def average_pool(x, /, window, *, strides=None, padding=0):
    """The means of windows, padding left out; without strides they do not overlap.

    A window of padding alone gives 0.

    >>> compute.nn.average_pool([[[1.0, 5.0, 2.0, 4.0]]], 2)
    Array([[[3., 3.]]], dtype=float32)
    """
    return _pool(_ops.average_pool, x, window, strides, padding)


def _pool(op, x, window, strides, padding, **options):
    x = _array_of(x)
    count = x.ndim - 2
    window, pads = _pair(window, count), _padding(padding, count, "pooling")
    return op(x, window=window, strides=_pair(strides, count) or window, pads_begin=pads, pads_end=pads, **options)


def layer_norm(x, scale=None, bias=None, /, *, axis=-1, epsilon=1e-5):
    """x with mean 0 and variance 1 over the axes from `axis` on, times scale, plus bias.

    x             an array
    scale, bias   arrays of the shape of the axes from `axis` on, or None
    epsilon       is added to the variance

    >>> compute.nn.layer_norm([[1.0, 3.0]], epsilon=0.0)
    Array([[-1.,  1.]], dtype=float32)
    """
    return _ops.layer_norm(x, scale, bias, axis=_whole(axis, "layer_norm"), epsilon=epsilon)[0]


def rms_norm(x, scale=None, /, *, axis=-1, epsilon=1e-5):
    """x over the root of the mean of its squares over the axes from `axis` on, times scale.

    >>> compute.nn.rms_norm([[1.0, 7.0]], epsilon=0.0)
    Array([[0.2, 1.4]], dtype=float32)
    """
    return _ops.rms_norm(x, scale, axis=_whole(axis, "rms_norm"), epsilon=epsilon)[0]


def group_norm(x, scale=None, bias=None, /, *, groups, epsilon=1e-5):
    """x with mean 0 and variance 1 in groups of channels, times scale, plus bias.

    >>> compute.nn.group_norm([[[1.0], [3.0], [5.0], [9.0]]], groups=2, epsilon=0.0)
    Array([[[-1.],
            [ 1.],
            [-1.],
            [ 1.]]], dtype=float32)
    """
    return _ops.group_norm(x, scale, bias, groups=groups, epsilon=epsilon)[0]


def batch_norm(x, scale=None, bias=None, /, *, axis=1, epsilon=1e-5):
    """The normalised x, and the mean and variance of each channel.

    Inside a function that compute.grad differentiates they are variables; running averages are made of their values,
    compute.grad.constant(mean).

    >>> y, mean, variance = compute.nn.batch_norm([[1.0], [3.0]], epsilon=0.0)
    >>> y, mean, variance
    (Array([[-1.],
           [ 1.]], dtype=float32), Array([2.], dtype=float32), Array([1.], dtype=float32))
    """
    return _ops.batch_norm(x, scale, bias, axis=_whole(axis, "batch_norm"), epsilon=epsilon)


def batch_norm_inference(x, mean, variance, scale=None, bias=None, /, *, axis=1, epsilon=1e-5):
    """batch_norm with given statistics.

    >>> compute.nn.batch_norm_inference([[1.0], [3.0]], [1.0], [4.0], epsilon=0.0)
    Array([[0.],
           [1.]], dtype=float32)
    """
    axis = _whole(axis, "batch_norm_inference")
    return _ops.batch_norm_inference(x, mean, variance, scale, bias, axis=axis, epsilon=epsilon)


def attention(q, k, v, mask=None, /, *, causal=False, scale=0.0, precision="default"):
    """softmax(scale q k^T + mask) v for [batch, heads, n, d]; scale 0 means 1 / sqrt(d).

    q, k, v   arrays [batch, heads, n, d]; k and v may be longer, and have fewer heads that divide those of q
    mask      bool, false where a key does not count, or numbers that are added; None for none
    causal    whether a query attends to no later key
    precision as in compute.matmul

    >>> x = compute.ones((1, 1, 2, 4))
    >>> compute.nn.attention(x, x, x).shape
    (1, 1, 2, 4)
    """
    return _ops.attention(q, k, v, mask, causal=causal, scale=scale, precision=precision)[0]


def rotary_embedding(x, positions, /, *, base=10000.0, interleaved=False):
    """Pairs of features turned by angles that grow with the position.

    >>> compute.nn.rotary_embedding(compute.ones((1, 1, 2, 4)), [0, 1]).shape
    (1, 1, 2, 4)
    """
    return _ops.rotary_embedding(x, positions, base=base, interleaved=interleaved)


def local_response_norm(x, /, size, *, alpha=1e-4, beta=0.75, bias=1.0):
    """x / (bias + alpha / size * s)^beta, where s is the sum of x^2 over `size` neighbouring channels.

    >>> compute.nn.local_response_norm([[2.0, 0.0]], 1, alpha=1.0, beta=1.0)
    Array([[0.4, 0. ]], dtype=float32)
    """
    return _ops.local_response_norm(x, size=_whole(size, "local_response_norm"), alpha=alpha, beta=beta, bias=bias)


def resize(x, /, sizes, *, scales=None, axes=None, mode="nearest", coordinate_transformation_mode="half_pixel",
           nearest_mode="round_prefer_floor", cubic_coeff_a=-0.75, exclude_outside=False, antialias=False, roi=None,
           extrapolation_value=0.0):
    """x resampled to `sizes` along `axes`, as ONNX's Resize does it.

    sizes    the new extents
    scales   numbers for coordinates; None for the new extents over the old ones
    axes     None for the last ones, as many as there are sizes
    mode     "nearest", "linear" or "cubic"
    coordinate_transformation_mode   "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                                     "asymmetric" or "tf_crop_and_resize"
    nearest_mode     "round_prefer_floor", "round_prefer_ceil", "floor" or "ceil"
    exclude_outside  whether elements outside of x have no weight; else the outermost ones count there
    antialias        whether the filter of linear and cubic grows where x shrinks
    roi      of tf_crop_and_resize: the starts and then the ends of the part of x, as fractions of its extents
    extrapolation_value   of tf_crop_and_resize: what elements outside of x are

    >>> compute.nn.resize([[1.0, 3.0]], [4], mode="linear")
    Array([[1. , 1.5, 2.5, 3. ]], dtype=float32)
    """
    sizes = [sizes] if isinstance(sizes, int) else list(sizes)
    axes = list(range(-len(sizes), 0)) if axes is None else [axes] if isinstance(axes, int) else list(axes)
    return _ops.resize(x, sizes=sizes, scales=scales, axes=axes, mode=mode,
                       coordinate_transformation_mode=coordinate_transformation_mode, nearest_mode=nearest_mode,
                       cubic_coeff_a=cubic_coeff_a, exclude_outside=exclude_outside, antialias=antialias, roi=roi,
                       extrapolation_value=extrapolation_value)


def lstm(x, weight, recurrent_weight, bias=None, recurrent_bias=None, initial_h=None, initial_c=None, peepholes=None,
         lengths=None, /, *, direction="forward", precision="default"):
    """Long short-term memory: the hidden states at all times, the last one, and the last cell state.

    x                  [time, batch, features]
    weight             [directions, 4 hidden, features]; the gates are in the order input, output, forget, cell
    recurrent_weight   [directions, 4 hidden, hidden]
    bias, recurrent_bias   [directions, 4 hidden], or None
    initial_h, initial_c   [directions, batch, hidden], or None for zeros
    peepholes          [directions, 3 hidden], of the gates input, output, forget; None for none
    lengths            integers [batch], or None for sequences that are as long as x
    direction          "forward", "reverse" or "bidirectional"

    The results are [time, directions, batch, hidden] and twice [directions, batch, hidden].

    >>> y, h, c = compute.nn.lstm(compute.ones((5, 2, 3)), compute.ones((1, 16, 3)), compute.ones((1, 16, 4)))
    >>> y.shape, h.shape, c.shape
    ((5, 1, 2, 4), (1, 2, 4), (1, 2, 4))
    """
    return _ops.lstm(x, weight, recurrent_weight, bias, recurrent_bias, initial_h, initial_c, peepholes, lengths,
                     direction=direction, precision=precision)[:3]


def gru(x, weight, recurrent_weight, bias=None, recurrent_bias=None, initial_h=None, lengths=None, /, *,
        direction="forward", linear_before_reset=False, precision="default"):
    """Gated recurrent units: the hidden states at all times, and the last one.

    weight             [directions, 3 hidden, features]; the gates are in the order update, reset, candidate
    recurrent_weight   [directions, 3 hidden, hidden]
    linear_before_reset   whether the reset gate multiplies the product of the state, as in PyTorch, or the state

    The other arguments and the results are as those of lstm.

    >>> y, h = compute.nn.gru(compute.ones((5, 2, 3)), compute.ones((1, 12, 3)), compute.ones((1, 12, 4)))
    >>> y.shape, h.shape
    ((5, 1, 2, 4), (1, 2, 4))
    """
    return _ops.gru(x, weight, recurrent_weight, bias, recurrent_bias, initial_h, lengths, direction=direction,
                    linear_before_reset=linear_before_reset, precision=precision)


def quantize(x, /, *, bits=4, group_size=32, symmetric=False, dtype=None):
    """x in few bits, as weights for quantized_matmul: packed numbers, scales, and offsets or None.

    bits         4 or 8
    group_size   the numbers along the last axis that share a scale and an offset: 16, 32, 64 or 128
    symmetric    whether the offsets follow from the scales
    dtype        of scales and offsets; None for that of x

    >>> packed, scales, offsets = compute.nn.quantize([[0.0, 1.0, 15.0]])
    >>> scales, offsets
    (Array([[1.]], dtype=float32), Array([[0.]], dtype=float32))
    """
    packed, scales, offsets = _ops.quantize(x, bits=bits, group_size=group_size, symmetric=symmetric, dtype=dtype)
    return packed, scales, None if symmetric else offsets


def _packed(values):
    """Packed numbers that may stand in a list."""
    return _asarray(values, dtype=_dtypes.uint8) if _is_values(values) else values


def dequantize(packed, scales, offsets=None, /, *, bits=4, group_size=32, size=None, dtype=None):
    """The numbers that quantize packed: scale q + offset.

    offsets   None for -2^(bits - 1) times the scales
    size      the extent of the last axis; None for all numbers that are packed, which are a multiple of 32
    dtype     of the result; None for that of the scales

    >>> compute.nn.dequantize(*compute.nn.quantize([[0.0, 1.0, 15.0]]), size=3)
    Array([[ 0.,  1., 15.]], dtype=float32)
    """
    packed = _packed(packed)
    return _ops.dequantize(packed, scales, offsets, bits=bits, group_size=group_size, size=size or 0, dtype=dtype)


def quantized_matmul(x, weight, scales, offsets=None, /, *, bits=4, group_size=32):
    """x [..., k] times the transpose of quantised weights [n, k].

    >>> compute.nn.quantized_matmul(compute.ones((1, 3)), *compute.nn.quantize([[0.0, 1.0, 15.0], [1.0, 1.0, 1.0]]))
    Array([[16.,  3.]], dtype=float32)
    """
    return _ops.quantized_matmul(x, _packed(weight), scales, offsets, bits=bits, group_size=group_size)


def cross_entropy(logits, labels, /, *, axis=-1, label_smoothing=0.0, ignore_index=None):
    """-log softmax(logits) of the label, for each element of `labels`.

    logits            numbers, with the classes along `axis`
    labels            integers, in the shape of `logits` without that axis
    label_smoothing   the share of the probability that goes to all classes
    ignore_index      a label whose loss is 0

    The result has the shape of `labels`; compute.mean of it is PyTorch's loss.

    >>> compute.nn.cross_entropy([[0.0, 0.0]], [1])
    Array([0.6931472], dtype=float32)
    """
    axis = _whole(axis, "cross_entropy")
    return _ops.cross_entropy(logits, labels, axis=axis, label_smoothing=label_smoothing, ignore_index=ignore_index)[0]


def cross_entropy_soft(logits, targets, /, *, axis=-1):
    """-sum(targets log softmax(logits)) along an axis, for targets that are probabilities of the classes.

    >>> compute.nn.cross_entropy_soft([[0.0, 0.0]], [[0.5, 0.5]])
    Array([0.6931472], dtype=float32)
    """
    return _ops.cross_entropy_soft(logits, targets, axis=_whole(axis, "cross_entropy_soft"))[0]


def one_hot(x, /, depth=None, *, axis=-1, dtype=None, **names):
    """1 where the position along the new axis is x, else 0.

    >>> compute.nn.one_hot([1, 0], 2)
    Array([[0., 1.],
           [1., 0.]], dtype=float32)
    """
    if names:
        return _renamed(one_hot, names, x, depth=depth, axis=axis, dtype=dtype)
    return _ops.one_hot(x, depth=depth, axis=_whole(axis, "one_hot"), dtype=dtype or _dtypes.DEFAULT_FLOAT)


def embedding(table, indices, /):
    """Rows of a table.

    >>> compute.nn.embedding([[1.0, 2.0], [3.0, 4.0]], [1])
    Array([[3., 4.]], dtype=float32)
    """
    return _ops.take(table, indices, axis=0)


def dropout(x, /, p=0.5, *, generator=None):
    """0 with probability `p`, which is in [0, 1], else x / (1 - p).

    Raises ValueError for another `p`.

    >>> compute.nn.dropout(compute.ones(3), 0.0)
    Array([1., 1., 1.], dtype=float32)
    """
    return (generator or random._generator).dropout(x, p)
