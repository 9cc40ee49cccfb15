# SPDX-License-Identifier: Apache-2.0
"""compute.nn.functional: the functions of torch.nn.functional, with PyTorch's parameters.

Weights have PyTorch's layouts, and losses are averaged unless `reduction` says otherwise. compute.nn has the same
operations with the conventions of this package.
"""
from __future__ import annotations

import functools
import sys
from typing import Any, Sequence

from . import _creation, _dtypes, _functions, _manipulation, _names, _ops, grad, linalg, nn, random
from ._core import Array, array_of as _array_of
from ._creation import arrays_of as _arrays_of
from ._functional_images import (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d, adaptive_max_pool1d,
                                 adaptive_max_pool2d, adaptive_max_pool3d, affine_grid, channel_shuffle, fold,
                                 grid_sample, interpolate, lp_pool1d, lp_pool2d, pixel_shuffle, pixel_unshuffle, unfold,
                                 upsample)
from ._functional_losses import (cosine_embedding_loss, gaussian_nll_loss, hinge_embedding_loss, margin_ranking_loss,
                                 multi_margin_loss, multilabel_soft_margin_loss, poisson_nll_loss, soft_margin_loss,
                                 triplet_margin_loss, triplet_margin_with_distance_loss,
                                 weighted_cross_entropy as _weighted_cross_entropy)
from ._names_axes import chunk as _chunk, sliding_window_view as _sliding_window_view
from ._names_common import Values
from ._names_products import _loss
from ._names_torch import pdist

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
(avg_pool2d, conv1d, conv2d, conv3d, cosine_similarity, kl_div, l1_loss, max_pool2d, mse_loss, nll_loss, normalize, pad,
 scaled_dot_product_attention) = (_names.NN[name] for name in (
     "avg_pool2d", "conv1d", "conv2d", "conv3d", "cosine_similarity", "kl_div", "l1_loss", "max_pool2d", "mse_loss",
     "nll_loss", "normalize", "pad", "scaled_dot_product_attention"))


def relu6(input: Values, inplace: bool = False) -> Array:
    """x in [0, 6].

    >>> compute.nn.functional.relu6([-1.0, 7.0])
    Array([0., 6.], dtype=float32)
    """
    return _stored(_functions.clip(_array_of(input), 0, 6), input, inplace)


def hardtanh(input: Values, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Array:
    """x in [min_val, max_val].

    >>> compute.nn.functional.hardtanh([-3.0, 0.5])
    Array([-1. ,  0.5], dtype=float32)
    """
    return _stored(_functions.clip(_array_of(input), min_val, max_val), input, inplace)


def celu(input: Values, alpha: float = 1.0, inplace: bool = False) -> Array:
    """x, or alpha (exp(x / alpha) - 1) for x below 0.

    >>> compute.nn.functional.celu([-1000.0, 2.0])
    Array([-1.,  2.], dtype=float32)
    """
    x = _array_of(input)
    return _stored(_functions.where(x >= 0, x, alpha * _ops.expm1(_ops.minimum(x, 0) / alpha)), input, inplace)


def _stored(found, x, inplace):
    """A result, or with `inplace` the array that has it afterwards."""
    if inplace and isinstance(x, Array):
        x[...] = found
        return x
    return found


def hardshrink(input: Values, lambd: float = 0.5) -> Array:
    """x, or 0 for x in [-lambd, lambd].

    >>> compute.nn.functional.hardshrink([0.25, 2.0])
    Array([0., 2.], dtype=float32)
    """
    x = _array_of(input)
    return _functions.where(_ops.abs(x) > lambd, x, 0)


def softshrink(input: Values, lambd: float = 0.5) -> Array:
    """x nearer to 0 by `lambd`, or 0.

    >>> compute.nn.functional.softshrink([0.25, 2.0])
    Array([0. , 1.5], dtype=float32)
    """
    x = _array_of(input)
    return _functions.where(x > lambd, x - lambd, _functions.where(x < -lambd, x + lambd, 0))


def tanhshrink(input: Values) -> Array:
    """x - tanh(x).

    >>> compute.nn.functional.tanhshrink([0.0])
    Array([0.], dtype=float32)
    """
    x = _array_of(input)
    return x - _ops.tanh(x)


def rrelu(input: Values, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False) -> Array:
    """x, or for x below 0 x times a random number in [lower, upper), or unless `training` times their mean.

    >>> compute.nn.functional.rrelu([-4.0, 2.0], 0.0, 1.0)
    Array([-2.,  2.], dtype=float32)
    """
    x = _array_of(input)
    slope = random.uniform(x.shape, lower, upper, dtype=x.dtype, device=x.device) if training else (lower + upper) / 2
    return _stored(_functions.where(x < 0, x * slope, x), input, inplace)


def gumbel_softmax(logits: Values, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Array:
    """softmax of logits with random noise, over `tau`; with `hard` one-hot vectors.

    >>> compute.nn.functional.gumbel_softmax([[0.0, 100.0]], hard=True)
    Array([[0., 1.]], dtype=float32)
    """
    x = _array_of(logits)
    noise = -_ops.log(-_ops.log(random.uniform(x.shape, 1e-7, 1.0, dtype=x.dtype, device=x.device)))
    soft = nn.softmax((x + noise) / tau, axis=dim)
    if not hard:
        return soft
    found = grad.constant(nn.one_hot(_functions.argmax(grad.constant(soft), axis=dim), x.shape[dim], axis=dim, dtype=x.dtype))
    return found - grad.constant(soft) + soft if hasattr(soft, "backward") else found


def gelu(input: Values, approximate: str = "none") -> Array:
    """x times the normal distribution's function of x, or with "tanh" its approximation.

    >>> compute.nn.functional.gelu([0.0])
    Array([0.], dtype=float32)
    """
    return nn.gelu_tanh(input) if approximate == "tanh" else nn.gelu(input)


def elu(input: Values, alpha: float = 1.0, inplace: bool = False) -> Array:
    """x, or alpha (exp(x) - 1) for x below 0.

    >>> compute.nn.functional.elu([-1000.0, 2.0])
    Array([-1.,  2.], dtype=float32)
    """
    return _stored(nn.elu(input, alpha), input, inplace)


def leaky_relu(input: Values, negative_slope: float = 0.01, inplace: bool = False) -> Array:
    """x, or negative_slope x for x below 0.

    >>> compute.nn.functional.leaky_relu([-4.0, 2.0], 0.25)
    Array([-1.,  2.], dtype=float32)
    """
    return _stored(nn.leaky_relu(input, negative_slope), input, inplace)


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


def softmin(input: Values, dim: int = -1, dtype: Any = None) -> Array:
    """softmax of -x.

    >>> compute.nn.functional.softmin([[0.0, 0.0]], dim=1)
    Array([[0.5, 0.5]], dtype=float32)
    """
    return nn.softmax(-_as(input, dtype), axis=dim)


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


def threshold(input: Values, threshold: float, value: float, inplace: bool = False) -> Array:
    """x where it is greater than a threshold, elsewhere a value.

    >>> compute.nn.functional.threshold([0.0, 2.0], 1.0, -1.0)
    Array([-1.,  2.], dtype=float32)
    """
    x = _array_of(input)
    return _stored(_functions.where(x > threshold, x, value), input, inplace)


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


def embedding(input: Values, weight: Values, padding_idx: int | None = None) -> Array:
    """The rows of the table `weight` at the indices `input`. With `padding_idx`, that row gets no gradient.

    >>> compute.nn.functional.embedding([1], [[1.0, 2.0], [3.0, 4.0]])
    Array([[3., 4.]], dtype=float32)
    """
    found = nn.embedding(weight, input)
    if padding_idx is None or not hasattr(found, "backward"):
        return found
    is_padding = _ops.equal(_manipulation.expand_dims(_array_of(input), -1), padding_idx % weight.shape[0])
    return _functions.where(is_padding, grad.constant(found), found)


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


def _channels_dropped(count):
    def run(input: Values, p: float = 0.5, training: bool = True, inplace: bool = False) -> Array:
        x = _array_of(input)
        if not training or not p:
            return x
        shape = (*x.shape[:-count], *(1,) * count)
        return x * nn.dropout(_creation.ones(shape, dtype=x.dtype, device=x.device), p)
    run.__doc__ = f"dropout of whole channels, whose last {count} ax{'i' if count == 1 else 'e'}s are dropped together."
    run.__name__ = run.__qualname__ = f"dropout{count}d"
    return run


dropout1d, dropout2d, dropout3d = map(_channels_dropped, (1, 2, 3))


def alpha_dropout(input: Values, p: float = 0.5, training: bool = False, inplace: bool = False) -> Array:
    """dropout that keeps mean 0 and variance 1 behind selu: with probability `p` an element becomes selu's least value.

    >>> compute.nn.functional.alpha_dropout([1.0])
    Array([1.], dtype=float32)
    """
    x = _array_of(input)
    if not training or not p:
        return x
    least = -1.7580993408473766
    a = ((1 - p) * (1 + p * least * least)) ** -0.5
    kept = random.bernoulli(x.shape, 1 - p, device=x.device)
    return _functions.where(kept, x, least) * a - a * p * least


def instance_norm(input: Values, running_mean: Values | None = None, running_var: Values | None = None, weight: Values | None = None,
                  bias: Values | None = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5) -> Array:
    """x with mean 0 and variance 1 in each channel of each image, times weight, plus bias.

    >>> compute.nn.functional.instance_norm([[[1.0, 3.0]]], eps=0.0)
    Array([[[-1.,  1.]]], dtype=float32)
    """
    if not use_input_stats:
        return nn.batch_norm_inference(input, running_mean, running_var, weight, bias, epsilon=eps)
    x = _array_of(input)
    return nn.group_norm(x, weight, bias, groups=x.shape[1], epsilon=eps)


def local_response_norm(input: Values, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Array:
    """x / (k + alpha mean(x^2))^beta, with the mean over `size` channels around each.

    >>> compute.nn.functional.local_response_norm([[[3.0], [4.0]]], 1, alpha=0.0)
    Array([[[3.],
            [4.]]], dtype=float32)
    """
    x = _array_of(input)
    widths = [(0, 0)] * x.ndim
    widths[1] = (size // 2, (size - 1) // 2)
    squares = _manipulation.pad(x * x, widths)
    total = _functions.sum(_sliding_window_view(squares, size, axis=1), axis=-1)
    return x / _ops.pow(total * (alpha / size) + k, beta)


def bilinear(input1: Values, input2: Values, weight: Values, bias: Values | None = None) -> Array:
    """x1 weight[i] x2 for each i, plus bias.

    >>> compute.nn.functional.bilinear([[1.0, 2.0]], [[3.0]], [[[1.0], [1.0]]])
    Array([[9.]], dtype=float32)
    """
    found = _functions.einsum("...i,kij,...j->...k", *_arrays_of(input1, weight, input2))
    return found if bias is None else found + bias


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


def max_pool3d(input: Values, kernel_size: Any, stride: Any = None, padding: Any = 0) -> Array:
    """The greatest elements of windows along the last three axes.

    >>> compute.nn.functional.max_pool3d(compute.ones((1, 1, 2, 2, 2)), 2).shape
    (1, 1, 1, 1, 1)
    """
    return nn.max_pool(input, kernel_size, strides=stride, padding=padding)


def avg_pool3d(input: Values, kernel_size: Any, stride: Any = None, padding: int = 0, ceil_mode: bool = False,
               count_include_pad: bool = True) -> Array:
    """The means of windows along the last three axes, where zeros in the padding count unless `count_include_pad` is false.

    >>> compute.nn.functional.avg_pool3d(compute.ones((1, 1, 2, 2, 2)), 2).shape
    (1, 1, 1, 1, 1)
    """
    return avg_pool2d(input, kernel_size, stride, padding, ceil_mode, count_include_pad)


def avg_pool1d(input: Values, kernel_size: Any, stride: Any = None, padding: int = 0, ceil_mode: bool = False,
               count_include_pad: bool = True) -> Array:
    """The means of windows along the last axis, where zeros in the padding count unless `count_include_pad` is false.

    >>> compute.nn.functional.avg_pool1d([[[1.0, 5.0, 2.0, 4.0]]], 2)
    Array([[[3., 3.]]], dtype=float32)
    """
    return avg_pool2d(input, kernel_size, stride, padding, ceil_mode, count_include_pad)


def _conv_transpose(count):
    def run(input: Values, weight: Values, bias: Values | None = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1,
            dilation: Any = 1) -> Array:
        return nn.convolution_transpose(input, weight, bias, strides=stride, dilations=dilation, padding=padding, output_padding=output_padding,
                                        groups=groups)
    run.__doc__ = f"Transposed convolution over {count} spatial ax{'i' if count == 1 else 'e'}s."
    run.__name__ = run.__qualname__ = f"conv_transpose{count}d"
    return run


conv_transpose1d, conv_transpose2d, conv_transpose3d = map(_conv_transpose, (1, 2, 3))


def cross_entropy(input: Values, target: Values, weight: Values | None = None, ignore_index: int = -100, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Array:
    """-log softmax(x) of the class `target`, with the classes along axis 1, or of probabilities of the shape of x.

    The mean is over the targets that are not `ignore_index`; with `weight`, one number for each class, it is weighted.

    >>> compute.nn.functional.cross_entropy([[0.0, 0.0]], [1])
    Array(0.6931472, dtype=float32)
    """
    x, target = _array_of(input), _array_of(target)
    axis = 1 if x.ndim > 1 else 0
    if target.dtype not in _dtypes.INTEGERS:
        if weight is not None:
            raise NotImplementedError("cross_entropy: weight of probabilities; multiply these by the weights")
        if label_smoothing:
            target = target * (1 - label_smoothing) + label_smoothing / x.shape[axis]
        return _loss(nn.cross_entropy_soft(x, target, axis=axis), reduction)
    if weight is not None:
        return _weighted_cross_entropy(x, target, weight, ignore_index, reduction, label_smoothing, axis)
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


def _always_in_place(name, function):
    def run(input: Values, *arguments: Any) -> Array:
        return _stored(function(input, *arguments), input, True)
    run.__doc__ = f"{name}, in place."
    run.__name__ = run.__qualname__ = f"{name}_"
    return run


celu_, elu_, hardtanh_, leaky_relu_, relu_, selu_, threshold_ = (_always_in_place(name, globals()[name]) for name in (
    "celu", "elu", "hardtanh", "leaky_relu", "relu", "selu", "threshold"))

__getattr__ = functools.partial(_names._refuse, "compute.nn")
__dir__ = functools.partial(_names.offered, globals())
__all__ = [_name for _name, _value in list(globals().items()) if _name[0] != "_" and callable(_value) and _name not in ("Any", "Array", "Sequence", "Values")]
# Functions that PyTorch also has without nn.functional.
_names.COMPUTE.update({_name: globals()[_name] for _name in (
    "adaptive_avg_pool1d", "adaptive_max_pool1d", "alpha_dropout", "avg_pool1d", "bilinear",
    "binary_cross_entropy_with_logits", "celu", "celu_", "channel_shuffle", "conv1d", "conv2d", "conv3d",
    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_embedding_loss", "cosine_similarity",
    "hardshrink", "hinge_embedding_loss", "layer_norm", "margin_ranking_loss", "max_pool1d", "max_pool2d",
    "max_pool3d", "pairwise_distance", "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss", "prelu", "relu_",
    "rms_norm", "rrelu", "selu", "selu_", "threshold", "threshold_", "triplet_margin_loss")})
nn.functional = sys.modules["compute.nn.functional"] = sys.modules[__name__]
