# SPDX-License-Identifier: Apache-2.0
"""The gradients of the ops of neural networks."""
from __future__ import annotations

import math

from . import _core, _ops
from ._manipulation import _axis
from ._rules import OTHER_RULES, RULES, _along, _conjugate, _rule, _wide
from ._rules_recurrent import gru as _gru, lstm as _lstm
from .expressions import Expression
from .grad import _reshaped, _unbroadcast


@_rule("softmax")
def _softmax(inputs, outputs, attributes, dy):
    return [_ops.softmax_grad(dy, outputs[0], axis=attributes.get("axis"))]


@_rule("log_softmax")
def _log_softmax(inputs, outputs, attributes, dy):
    return [_ops.log_softmax_grad(dy, outputs[0], axis=attributes.get("axis"))]


@_rule("cross_entropy")
def _cross_entropy(inputs, outputs, attributes, dy):
    return [_ops.cross_entropy_grad(dy, inputs[0], inputs[1], outputs[1], **attributes), None]


@_rule("cross_entropy_soft")
def _cross_entropy_soft(inputs, outputs, attributes, dy):
    logits, targets = inputs
    axis = attributes.get("axis", -1) % logits.ndim
    kept = [1 if i == axis else n for i, n in enumerate(logits.shape)]
    wide = _wide(logits)
    spread, logsumexp = (_core.reshape_view(_ops.cast(x, dtype=wide.dtype), kept) for x in (dy, outputs[1]))
    return [_ops.cross_entropy_soft_grad(dy, logits, targets, outputs[1], **attributes),
            _ops.multiply(spread, _ops.subtract(logsumexp, wide))]


@_rule("convolution")
def _convolution(inputs, outputs, attributes, dy):
    x, weight, bias = (list(inputs) + [None])[:3]
    return [lambda: _ops.convolution_grad_input(dy, _conjugate(weight), shape=x.shape[2:], **attributes),
            lambda: _ops.convolution_grad_weight(dy, _conjugate(x), kernel=weight.shape[2:], **attributes),
            None if bias is None else lambda: _ops.sum(dy, axes=[i for i in range(dy.ndim) if i != 1])]


@_rule("convolution_transpose")
def _convolution_transpose(inputs, outputs, attributes, dy):
    x, weight, bias = (list(inputs) + [None])[:3]
    known = {key: value for key, value in attributes.items() if key != "output_padding"}
    return [lambda: _ops.convolution(dy, _conjugate(weight), **known),
            lambda: _ops.convolution_grad_weight(_conjugate(x), dy, kernel=weight.shape[2:], **known),
            None if bias is None else lambda: _ops.sum(dy, axes=[i for i in range(dy.ndim) if i != 1])]


@_rule("max_pool")
def _max_pool(inputs, outputs, attributes, dy):
    dy = dy if dy.is_contiguous else _ops.copy(dy)  # windows are read row by row
    return [_ops.max_pool_grad(dy, inputs[0], outputs[0], **attributes)]


@_rule("average_pool")
def _average_pool(inputs, outputs, attributes, dy):
    return [_ops.average_pool_grad(dy, shape=inputs[0].shape[2:], **attributes)]


@_rule("local_response_norm")
def _local_response_norm(inputs, outputs, attributes, dy):
    """dy d^-beta - 2 alpha beta / size x t; both sums over channels are means over windows of as many elements."""
    x, dy = _wide(inputs[0]), _wide(dy)
    size = attributes["size"]
    alpha, beta, bias = (attributes.get(name, default) for name, default in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1)))
    rows = (x.shape[0], 1, x.shape[1], math.prod(x.shape[2:]))

    def means(values, before):
        found = _ops.average_pool(_reshaped(values, rows), window=[size, 1], strides=[1, 1], pads_begin=[before, 0],
                                  pads_end=[size - 1 - before, 0], count_include_pad=True)
        return _core.reshape_view(found, x.shape)

    before = (size - 1) // 2
    d = _ops.add(_ops.multiply(means(_ops.square(x), before), alpha), bias)
    power = _ops.pow(d, -beta)
    t = means(_ops.divide(_ops.multiply(_ops.multiply(dy, x), power), d), size - 1 - before)
    return [_ops.subtract(_ops.multiply(dy, power), _ops.multiply(_ops.multiply(x, t), 2 * alpha * beta))]


def _extents(x, attributes):
    axes = attributes.get("axes")
    return list(x.shape) if axes is None else [x.shape[axis] for axis in axes]


@_rule("resize")
def _resize(inputs, outputs, attributes, dy):
    known = {key: value for key, value in attributes.items() if key not in ("sizes", "extrapolation_value")}
    return [_ops.resize_grad(dy, shape=_extents(inputs[0], attributes), **known)]


@_rule("resize_grad")
def _resize_grad(inputs, outputs, attributes, dy):
    known = {key: value for key, value in attributes.items() if key != "shape"}
    return [_ops.resize(dy, sizes=_extents(inputs[0], attributes), **known)]


@_rule("layer_norm")
def _norm(inputs, outputs, attributes, dy, name="layer_norm"):
    x, scale, bias = (list(inputs) + [None, None])[:3]
    known = {key: value for key, value in attributes.items() if key != "epsilon" or name == "batch_norm"}
    dx, dscale, dbias = _ops.TABLE[name + "_grad"]["run"](dy, x, outputs[1], outputs[2], scale, **known)
    return [dx, None if scale is None else dscale, None if bias is None else dbias]


RULES["group_norm"] = lambda *call: _norm(*call, name="group_norm")
RULES["batch_norm"] = lambda *call: _norm(*call, name="batch_norm")


@_rule("batch_norm_inference")
def _batch_norm_inference(inputs, outputs, attributes, dy):
    x, mean, variance, scale, bias = (list(inputs) + [None, None])[:5]
    axis = _axis(attributes.get("axis", 1), x.ndim, "gradient")
    across = [i for i in range(x.ndim) if i != axis]

    def along(values):
        return _along(values, x, attributes)

    rstd = _ops.rsqrt(_ops.add(variance, attributes.get("epsilon", 1e-5)))
    normal = _ops.multiply(_ops.subtract(x, along(mean)), along(rstd))
    inner = dy if scale is None else _ops.multiply(dy, along(scale))
    dx = _ops.multiply(inner, along(rstd))
    dvariance = _ops.multiply(_ops.sum(_ops.multiply(inner, normal), axes=across),
                              _ops.multiply(_ops.square(rstd), -0.5))
    return [dx, _ops.negative(_ops.sum(dx, axes=across)), dvariance,
            None if scale is None else _ops.sum(_ops.multiply(dy, normal), axes=across),
            None if bias is None else _ops.sum(dy, axes=across)]


@_rule("rms_norm")
def _rms_norm(inputs, outputs, attributes, dy):
    x, scale = (list(inputs) + [None])[:2]
    dx, dscale = _ops.rms_norm_grad(dy, x, outputs[1], scale, axis=attributes.get("axis"))
    return [dx, None if scale is None else dscale]


@_rule("attention")
def _attention(inputs, outputs, attributes, dy):
    q, k, v, mask = (list(inputs) + [None])[:4]
    return [*_ops.attention_grad(dy, q, k, v, outputs[0], outputs[1], mask, **attributes),
            lambda: _added_mask(inputs, outputs, attributes, dy)]


_SLOPE_OF_SCORES = Expression("where(isinf(l), 0, exp(s * p + m - l) * (d - t))", "l", "s", "p", "m", "d", "t")


def _added_mask(inputs, outputs, attributes, dy):
    """The gradient of a mask that is added to the scores, which are made again."""
    q, k, v, mask, dy, y, logsumexp = (_wide(x) for x in (*inputs, dy, *outputs))
    groups = q.shape[1] // k.shape[1]
    if groups > 1:
        k, v = (_ops.repeat(x, repeats=groups, axis=1) for x in (k, v))
    products, weights = _ops.matmul(q, k.mT), _ops.matmul(dy, v.mT)
    total = _ops.sum(_ops.multiply(dy, y), axes=[-1], keepdims=True)
    logsumexp = _core.reshape_view(logsumexp, total.shape)
    scale = attributes.get("scale") or 1 / math.sqrt(q.shape[-1])
    found = _SLOPE_OF_SCORES(logsumexp, scale, products, mask, weights, total)
    if attributes.get("causal"):
        found = _ops.tril(found, k=found.shape[-1] - found.shape[-2])
    return _unbroadcast(found, mask.shape)


@_rule("rotary_embedding")
def _rotary(inputs, outputs, attributes, dy):
    attributes = {**attributes, "inverse": not attributes.get("inverse", False)}
    return [_ops.rotary_embedding(dy, inputs[1], **attributes), None]


@_rule("quantized_matmul")
def _quantized_matmul(inputs, outputs, attributes, dy):
    """The weights are constant by definition."""
    x, *packed = inputs
    weight = _ops.dequantize(*packed, size=x.shape[-1], dtype=x.dtype, **attributes)
    return [_ops.matmul(dy, weight)] + [None] * len(packed)


def _batch_mean(inputs, outputs, attributes, dy):
    x = inputs[0]
    share = _ops.multiply(_along(dy, x, attributes), dy.size / max(x.size, 1))
    return [_core.broadcast_view(share, x.shape)]


def _batch_variance(inputs, outputs, attributes, dy):
    x = inputs[0]
    share = _ops.multiply(_along(dy, x, attributes), 2 * dy.size / max(x.size, 1))
    return [_ops.multiply(share, _ops.subtract(x, _along(outputs[1], x, attributes)))]


def _of_output(rule, place):
    """A rule that takes the gradients of all outputs, for that of one of them."""
    return lambda inputs, outputs, attributes, dy: rule(inputs, outputs, attributes, *[None] * place, dy)


RULES["gru"], RULES["lstm"] = _of_output(_gru, 0), _of_output(_lstm, 0)
OTHER_RULES.update(batch_norm=(_batch_mean, _batch_variance), gru=(_of_output(_gru, 1),), lstm=(_of_output(_lstm, 1), _of_output(_lstm, 2)))
