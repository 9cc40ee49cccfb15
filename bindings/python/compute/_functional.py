# SPDX-License-Identifier: Apache-2.0
"""compute.nn.functional: the functions of torch.nn.functional, with PyTorch's parameters.

Weights have PyTorch's layouts, and losses are averaged unless `reduction` says otherwise. compute.nn has the same
operations with the conventions of this package.
"""
from __future__ import annotations

import functools
import sys
from typing import Any, Sequence

from . import _dtypes, _functions, _manipulation, _names, _ops, grad, linalg, nn
from ._core import Array, array_of as _array_of
from ._names_axes import chunk as _chunk, sliding_window_view as _sliding_window_view
from ._names_common import Values
from ._names_products import _loss

def _activation(name):
    row = _ops.ROWS[name]

    def run(input: Values, inplace: bool = False) -> Array:
        return row(input, out=input) if inplace and isinstance(input, Array) else row(input)
    run.__doc__ = f"compute.nn.{name}; with `inplace`, an array has the result afterwards."
    return run


hardsigmoid, hardswish, logsigmoid, mish, relu, selu, sigmoid, silu, softsign, tanh = map(_activation, (
    "hard_sigmoid", "hard_swish", "log_sigmoid", "mish", "relu", "selu", "sigmoid", "silu", "softsign", "tanh"))
for _name in ("hardsigmoid", "hardswish", "logsigmoid", "mish", "relu", "selu", "sigmoid", "silu", "softsign", "tanh"):
    globals()[_name].__name__ = globals()[_name].__qualname__ = _name
(adaptive_avg_pool2d, avg_pool2d, conv1d, conv2d, conv3d, cosine_similarity, kl_div, l1_loss, max_pool2d, mse_loss, nll_loss, normalize, pad,
 scaled_dot_product_attention) = (_names.NN[name] for name in (
     "adaptive_avg_pool2d", "avg_pool2d", "conv1d", "conv2d", "conv3d", "cosine_similarity", "kl_div", "l1_loss", "max_pool2d", "mse_loss",
     "nll_loss", "normalize", "pad", "scaled_dot_product_attention"))


def relu6(input: Values) -> Array:
    """x in [0, 6].

    >>> compute.nn.functional.relu6([-1.0, 7.0])
    Array([0., 6.], dtype=float32)
    """
    return _functions.clip(_array_of(input), 0, 6)


def hardtanh(input: Values, min_val: float = -1.0, max_val: float = 1.0) -> Array:
    """x in [min_val, max_val].

    >>> compute.nn.functional.hardtanh([-3.0, 0.5])
    Array([-1. ,  0.5], dtype=float32)
    """
    return _functions.clip(_array_of(input), min_val, max_val)


def gelu(input: Values, approximate: str = "none") -> Array:
    """x times the normal distribution's function of x, or with "tanh" its approximation.

    >>> compute.nn.functional.gelu([0.0])
    Array([0.], dtype=float32)
    """
    return nn.gelu_tanh(input) if approximate == "tanh" else nn.gelu(input)


def elu(input: Values, alpha: float = 1.0) -> Array:
    """x, or alpha (exp(x) - 1) for x below 0.

    >>> compute.nn.functional.elu([-1000.0, 2.0])
    Array([-1.,  2.], dtype=float32)
    """
    return nn.elu(input, alpha)


def leaky_relu(input: Values, negative_slope: float = 0.01) -> Array:
    """x, or negative_slope x for x below 0.

    >>> compute.nn.functional.leaky_relu([-4.0, 2.0], 0.25)
    Array([-1.,  2.], dtype=float32)
    """
    return nn.leaky_relu(input, negative_slope)


def softplus(input: Values, beta: float = 1.0) -> Array:
    """log(1 + exp(beta x)) / beta.

    >>> compute.nn.functional.softplus([0.0])
    Array([0.6931472], dtype=float32)
    """
    return nn.softplus(input) if beta == 1 else nn.softplus(_ops.multiply(input, beta)) / beta


def softmax(input: Values, dim: int = -1, dtype: Any = None) -> Array:
    """exp(x) / sum(exp(x)) along an axis, without overflow.

    >>> compute.nn.functional.softmax([[0.0, 0.0]], dim=1)
    Array([[0.5, 0.5]], dtype=float32)
    """
    return nn.softmax(_as(input, dtype), axis=dim)


def log_softmax(input: Values, dim: int = -1, dtype: Any = None) -> Array:
    """The logarithm of softmax.

    >>> compute.nn.functional.log_softmax([[2.0]], dim=1)
    Array([[0.]], dtype=float32)
    """
    return nn.log_softmax(_as(input, dtype), axis=dim)


def softmin(input: Values, dim: int = -1) -> Array:
    """softmax of -x.

    >>> compute.nn.functional.softmin([[0.0, 0.0]], dim=1)
    Array([[0.5, 0.5]], dtype=float32)
    """
    return nn.softmax(-_array_of(input), axis=dim)


def glu(input: Values, dim: int = -1) -> Array:
    """The first half along an axis times sigmoid of the second half.

    >>> compute.nn.functional.glu([4.0, 0.0])
    Array([2.], dtype=float32)
    """
    first, second = _chunk(_array_of(input), 2, dim)
    return first * sigmoid(second)


def prelu(input: Values, weight: Values) -> Array:
    """x, or weight x for x below 0; `weight` has one number, or one for each channel.

    >>> compute.nn.functional.prelu([[-4.0, 2.0]], [0.25])
    Array([[-1.,  2.]], dtype=float32)
    """
    x, weight = _array_of(input), _array_of(weight)
    return nn.leaky_relu(x, _manipulation.reshape(weight, (weight.size, *(1,) * max(x.ndim - 2, 0))) if weight.size > 1 else weight)


def threshold(input: Values, threshold: float, value: float) -> Array:
    """x where it is greater than a threshold, elsewhere a value.

    >>> compute.nn.functional.threshold([0.0, 2.0], 1.0, -1.0)
    Array([-1.,  2.], dtype=float32)
    """
    x = _array_of(input)
    return _functions.where(x > threshold, x, value)


def pairwise_distance(x1: Values, x2: Values, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Array:
    """The norms of x1 - x2 + eps along the last axis.

    >>> compute.nn.functional.pairwise_distance([[0.0, 0.0]], [[3.0, 4.0]], eps=0.0)
    Array([5.], dtype=float32)
    """
    return linalg.vector_norm(_array_of(x1) - x2 + eps, axis=-1, ord=p, keepdims=keepdim)


def _as(x, dtype):
    return _array_of(x) if dtype is None else _functions.astype(_array_of(x), dtype, copy=False)


def linear(input: Values, weight: Values, bias: Values | None = None) -> Array:
    """x weight^T + bias along the last axis; `weight` is [out, in].

    >>> compute.nn.functional.linear([[1.0, 2.0]], [[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    Array([[3., 2., 1.]], dtype=float32)
    """
    weight = _array_of(weight)
    return nn.linear(input, weight, bias, transpose_weight=True) if weight.ndim == 2 else _functions.matmul(input, weight)


def embedding(input: Values, weight: Values) -> Array:
    """The rows of the table `weight` at the indices `input`.

    >>> compute.nn.functional.embedding([1], [[1.0, 2.0], [3.0, 4.0]])
    Array([[3., 4.]], dtype=float32)
    """
    return nn.embedding(weight, input)


def one_hot(tensor: Values, num_classes: int = -1) -> Array:
    """1 where the position along the new last axis is the element, else 0, as int64. Without `num_classes` the call waits.

    >>> compute.nn.functional.one_hot([1, 0])
    Array([[0, 1],
           [1, 0]], dtype=int64)
    """
    tensor = _array_of(tensor)
    depth = int(_functions.max(tensor)) + 1 if num_classes < 0 else num_classes
    return nn.one_hot(tensor, depth, dtype=_dtypes.int64)


def dropout(input: Values, p: float = 0.5, training: bool = True, inplace: bool = False) -> Array:
    """0 with probability `p`, else x / (1 - p); x itself unless `training`.

    >>> compute.nn.functional.dropout([1.0], 0.5, training=False)
    Array([1.], dtype=float32)
    """
    return nn.dropout(input, p) if training and p else _array_of(input)


def layer_norm(input: Values, normalized_shape: Sequence[int], weight: Values | None = None, bias: Values | None = None, eps: float = 1e-5) -> Array:
    """x with mean 0 and variance 1 over the last axes, which have the shape `normalized_shape`, times weight, plus bias.

    >>> compute.nn.functional.layer_norm([[1.0, 3.0]], (2,), eps=0.0)
    Array([[-1.,  1.]], dtype=float32)
    """
    return nn.layer_norm(input, weight, bias, axis=-_count_axes(input, normalized_shape, "layer_norm"), epsilon=eps)


def rms_norm(input: Values, normalized_shape: Sequence[int], weight: Values | None = None, eps: float | None = None) -> Array:
    """x over the root of the mean of its squares over the last axes, which have the shape `normalized_shape`, times weight.

    >>> compute.nn.functional.rms_norm([[1.0, 7.0]], (2,), eps=0.0)
    Array([[0.2, 1.4]], dtype=float32)
    """
    x = _array_of(input)
    return nn.rms_norm(x, weight, axis=-_count_axes(x, normalized_shape, "rms_norm"), epsilon=_dtypes.finfo(x.dtype).eps if eps is None else eps)


def _count_axes(x, shape, name):
    shape, x = (shape,) if isinstance(shape, int) else tuple(shape), _array_of(x)
    if not shape or tuple(x.shape[-len(shape):]) != shape:
        raise ValueError(f"{name}: normalized_shape is {shape}, but the array has the shape {x.shape}")
    return len(shape)


def group_norm(input: Values, num_groups: int, weight: Values | None = None, bias: Values | None = None, eps: float = 1e-5) -> Array:
    """x with mean 0 and variance 1 in groups of channels, times weight, plus bias.

    >>> compute.nn.functional.group_norm([[[1.0], [3.0], [5.0], [9.0]]], 2, eps=0.0)[0, :, 0]
    Array([-1.,  1., -1.,  1.], dtype=float32)
    """
    return nn.group_norm(input, weight, bias, groups=num_groups, epsilon=eps)


def batch_norm(input: Values, running_mean: Values | None, running_var: Values | None, weight: Values | None = None, bias: Values | None = None,
               training: bool = False, momentum: float = 0.1, eps: float = 1e-5) -> Array:
    """x with the mean and the variance of each channel made 0 and 1: those of x if `training`, which updates the running
    ones in place, else the running ones.

    >>> compute.nn.functional.batch_norm([[1.0], [3.0]], [1.0], [4.0], eps=0.0)
    Array([[0.],
           [1.]], dtype=float32)
    """
    if not training:
        return nn.batch_norm_inference(input, running_mean, running_var, weight, bias, epsilon=eps)
    y, mean, variance = nn.batch_norm(input, weight, bias, epsilon=eps)
    count = y.size // y.shape[1]
    for running, value in ((running_mean, mean), (running_var, variance * (count / max(count - 1, 1)))):
        if isinstance(running, Array):
            running[...] = running * (1 - momentum) + grad.constant(value) * momentum
    return y


def max_pool1d(input: Values, kernel_size: Any, stride: Any = None, padding: Any = 0) -> Array:
    """The greatest elements of windows along the last axis.

    >>> compute.nn.functional.max_pool1d([[[1.0, 5.0, 2.0, 3.0]]], 2)
    Array([[[5., 3.]]], dtype=float32)
    """
    return nn.max_pool(input, kernel_size, strides=stride, padding=padding)


def avg_pool1d(input: Values, kernel_size: Any, stride: Any = None, padding: int = 0) -> Array:
    """The means of windows along the last axis, where zeros in the padding count.

    >>> compute.nn.functional.avg_pool1d([[[1.0, 5.0, 2.0, 4.0]]], 2)
    Array([[[3., 3.]]], dtype=float32)
    """
    return avg_pool2d(input, kernel_size, stride, padding)


def _conv_transpose(count):
    def run(input: Values, weight: Values, bias: Values | None = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1,
            dilation: Any = 1) -> Array:
        return nn.convolution_transpose(input, weight, bias, strides=stride, dilations=dilation, padding=padding, output_padding=output_padding,
                                        groups=groups)
    run.__doc__ = f"Transposed convolution over {count} spatial ax{'i' if count == 1 else 'e'}s."
    run.__name__ = run.__qualname__ = f"conv_transpose{count}d"
    return run


conv_transpose1d, conv_transpose2d, conv_transpose3d = map(_conv_transpose, (1, 2, 3))


def interpolate(input: Values, size: Any = None, scale_factor: Any = None, mode: str = "nearest") -> Array:
    """The images with other extents, each element repeated.

    Raises NotImplementedError for other modes than "nearest", and for extents that are no multiples.

    >>> compute.nn.functional.interpolate([[[1.0, 2.0]]], scale_factor=2)
    Array([[[1., 1., 2., 2.]]], dtype=float32)
    """
    x = _array_of(input)
    extents = x.shape[2:]
    given = scale_factor if size is None else size
    given = (given,) * len(extents) if isinstance(given, (int, float)) else tuple(given)
    factors = given if size is None else tuple(new / old for new, old in zip(given, extents))
    if mode != "nearest" or any(factor != int(factor) for factor in factors):
        raise NotImplementedError(f"interpolate: mode={mode!r} with the factors {factors}; use nearest with whole factors, or take")
    for axis, factor in enumerate(factors, 2):
        x = _manipulation.repeat(x, int(factor), axis=axis)
    return x


def unfold(input: Values, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Array:
    """The windows of images as columns: [n, channels * height * width of a window, windows].

    >>> compute.nn.functional.unfold(compute.ones((1, 2, 4, 4)), 3).shape
    (1, 18, 4)
    """
    kernel, spread, pads, steps = ((one, one) if isinstance(one, int) else tuple(one) for one in (kernel_size, dilation, padding, stride))
    x = _manipulation.pad(_array_of(input), ((0, 0), (0, 0), (pads[0],) * 2, (pads[1],) * 2))
    windows = _sliding_window_view(x, tuple((n - 1) * step + 1 for n, step in zip(kernel, spread)), axis=(2, 3))
    windows = windows[:, :, ::steps[0], ::steps[1], ::spread[0], ::spread[1]]
    n, channels, rows, columns = windows.shape[:4]
    return _manipulation.reshape(_manipulation.permute_dims(windows, (0, 1, 4, 5, 2, 3)), (n, channels * kernel[0] * kernel[1], rows * columns))


def cross_entropy(input: Values, target: Values, weight: Values | None = None, ignore_index: int = -100, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Array:
    """-log softmax(x) of the class `target`, with the classes along axis 1, or of probabilities of the shape of x.

    The mean is over the targets that are not `ignore_index`. Raises NotImplementedError for `weight`.

    >>> compute.nn.functional.cross_entropy([[0.0, 0.0]], [1])
    Array(0.6931472, dtype=float32)
    """
    if weight is not None:
        raise NotImplementedError("cross_entropy: weight; use reduction='none' and multiply the losses")
    x, target = _array_of(input), _array_of(target)
    axis = 1 if x.ndim > 1 else 0
    if target.dtype not in _dtypes.INTEGERS:
        if label_smoothing:
            target = target * (1 - label_smoothing) + label_smoothing / x.shape[axis]
        return _loss(nn.cross_entropy_soft(x, target, axis=axis), reduction)
    losses = nn.cross_entropy(x, target, axis=axis, label_smoothing=label_smoothing, ignore_index=ignore_index)
    if reduction != "mean":
        return _loss(losses, reduction)
    return _functions.sum(losses) / _functions.sum(_ops.not_equal(target, ignore_index))


def binary_cross_entropy_with_logits(input: Values, target: Values, weight: Values | None = None, reduction: str = "mean",
                                     pos_weight: Values | None = None) -> Array:
    """The cross entropy of sigmoid(x) and the probabilities `target`.

    >>> compute.nn.functional.binary_cross_entropy_with_logits([0.0], [1.0])
    Array(0.6931472, dtype=float32)
    """
    if pos_weight is not None:
        x, target = _array_of(input), _array_of(target)
        losses = (1 - target) * x + (1 + (_array_of(pos_weight) - 1) * target) * nn.softplus(-x)
    else:
        losses = nn.binary_cross_entropy_with_logits(input, target)
    return _loss(losses if weight is None else losses * weight, reduction)


def binary_cross_entropy(input: Values, target: Values, weight: Values | None = None, reduction: str = "mean") -> Array:
    """The cross entropy of the probabilities x and `target`; logarithms are at least -100.

    >>> compute.nn.functional.binary_cross_entropy([0.5], [1.0])
    Array(0.6931472, dtype=float32)
    """
    x, target = _array_of(input), _array_of(target)
    losses = -(target * _ops.maximum(_ops.log(x), -100.0) + (1 - target) * _ops.maximum(_ops.log1p(-x), -100.0))
    return _loss(losses if weight is None else losses * weight, reduction)


def huber_loss(input: Values, target: Values, reduction: str = "mean", delta: float = 1.0) -> Array:
    """Half the square of differences up to `delta`, and beyond delta (|difference| - delta / 2).

    >>> compute.nn.functional.huber_loss([0.0, 3.0], [1.0, 0.0], reduction="none")
    Array([0.5, 2.5], dtype=float32)
    """
    distance = _ops.abs(_array_of(input) - _array_of(target))
    return _loss(_functions.where(distance <= delta, 0.5 * distance * distance, delta * (distance - 0.5 * delta)), reduction)


def smooth_l1_loss(input: Values, target: Values, reduction: str = "mean", beta: float = 1.0) -> Array:
    """huber_loss over beta.

    >>> compute.nn.functional.smooth_l1_loss([0.0], [1.0])
    Array(0.5, dtype=float32)
    """
    return huber_loss(input, target, reduction, beta) / beta if beta else l1_loss(input, target, reduction)


__getattr__ = functools.partial(_names._refuse, "compute.nn")
__dir__ = functools.partial(_names.offered, globals())
__all__ = [_name for _name, _value in list(globals().items()) if _name[0] != "_" and callable(_value) and _name not in ("Any", "Array", "Sequence", "Values")]
nn.functional = sys.modules["compute.nn.functional"] = sys.modules[__name__]
