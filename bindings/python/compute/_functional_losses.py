# SPDX-License-Identifier: Apache-2.0
"""compute.nn.functional: losses. See _functional.py."""
from __future__ import annotations

import math
from typing import Any

from . import _functions, _manipulation, _ops, linalg, nn
from ._core import Array, array_of
from ._creation import arrays_of
from ._names_common import Values
from ._names_products import _cosine_similarity, _loss


def cosine_embedding_loss(input1: Values, input2: Values, target: Values, margin: float = 0.0, reduction: str = "mean") -> Array:
    """1 - cosine of pairs whose target is 1, and the cosine less `margin`, at least 0, where it is -1.

    >>> compute.nn.functional.cosine_embedding_loss([[1.0, 0.0]], [[0.0, 1.0]], [1])
    Array(1., dtype=float32)
    """
    input1, input2, target = arrays_of(input1, input2, target)
    cosine = _cosine_similarity(input1, input2, dim=-1)
    return _loss(_functions.where(target > 0, 1 - cosine, _ops.maximum(cosine - margin, 0)), reduction)


def margin_ranking_loss(input1: Values, input2: Values, target: Values, margin: float = 0.0, reduction: str = "mean") -> Array:
    """max(0, margin - target (x1 - x2)).

    >>> compute.nn.functional.margin_ranking_loss([1.0], [3.0], [1.0])
    Array(2., dtype=float32)
    """
    input1, input2, target = arrays_of(input1, input2, target)
    return _loss(_ops.maximum(margin - target * (input1 - input2), 0), reduction)


def hinge_embedding_loss(input: Values, target: Values, margin: float = 1.0, reduction: str = "mean") -> Array:
    """x where the target is 1, and max(0, margin - x) where it is -1.

    >>> compute.nn.functional.hinge_embedding_loss([0.5, 0.25], [1, -1], reduction="none")
    Array([0.5 , 0.75], dtype=float32)
    """
    x, target = arrays_of(input, target)
    return _loss(_functions.where(target > 0, x, _ops.maximum(margin - x, 0)), reduction)


def soft_margin_loss(input: Values, target: Values, reduction: str = "mean") -> Array:
    """log(1 + exp(-target x)).

    >>> compute.nn.functional.soft_margin_loss([0.0], [1.0])
    Array(0.6931472, dtype=float32)
    """
    x, target = arrays_of(input, target)
    return _loss(nn.softplus(-(target * x)), reduction)


def multi_margin_loss(input: Values, target: Values, p: int = 1, margin: float = 1.0, weight: Values | None = None,
                      reduction: str = "mean") -> Array:
    """The mean over the other classes of max(0, margin - x[target] + x) ** p.

    >>> compute.nn.functional.multi_margin_loss([[0.0, 0.0]], [1])
    Array(0.5, dtype=float32)
    """
    x, target = arrays_of(input, target)
    chosen = _manipulation.expand_dims(target, -1)
    distance = _ops.maximum(margin - _ops.take_along_axis(x, chosen, axis=-1) + x, 0)
    distance = distance if p == 1 else distance * distance
    if weight is not None:
        distance = distance * _ops.take(array_of(weight), chosen, axis=0)
    others = nn.one_hot(target, x.shape[-1], dtype=x.dtype)
    return _loss(_functions.sum(distance * (1 - others), axis=-1) / x.shape[-1], reduction)


def multilabel_soft_margin_loss(input: Values, target: Values, weight: Values | None = None, reduction: str = "mean") -> Array:
    """The mean over the classes of binary_cross_entropy_with_logits.

    >>> compute.nn.functional.multilabel_soft_margin_loss([[0.0, 0.0]], [[1.0, 0.0]])
    Array(0.6931472, dtype=float32)
    """
    losses = nn.binary_cross_entropy_with_logits(*arrays_of(input, target))
    return _loss(_functions.mean(losses if weight is None else losses * weight, axis=-1), reduction)


def _distance(x1, x2, p, eps):
    return linalg.vector_norm(x1 - x2 + eps, axis=-1, ord=p)


def triplet_margin_loss(anchor: Values, positive: Values, negative: Values, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
                        swap: bool = False, reduction: str = "mean") -> Array:
    """max(0, margin + the distance of anchor and positive - that of anchor and negative).

    >>> compute.nn.functional.triplet_margin_loss([[0.0]], [[0.0]], [[1.0]], eps=0.0)
    Array(0., dtype=float32)
    """
    anchor, positive, negative = arrays_of(anchor, positive, negative)
    far = _distance(anchor, negative, p, eps)
    far = _ops.minimum(far, _distance(positive, negative, p, eps)) if swap else far
    return _loss(_ops.maximum(_distance(anchor, positive, p, eps) - far + margin, 0), reduction)


def triplet_margin_with_distance_loss(anchor: Values, positive: Values, negative: Values, *, distance_function: Any = None,
                                      margin: float = 1.0, swap: bool = False, reduction: str = "mean") -> Array:
    """triplet_margin_loss with a function of pairs in the place of the norm.

    >>> compute.nn.functional.triplet_margin_with_distance_loss([[0.0]], [[0.0]], [[3.0]])
    Array(0., dtype=float32)
    """
    anchor, positive, negative = arrays_of(anchor, positive, negative)
    distance = distance_function or (lambda x1, x2: _distance(x1, x2, 2.0, 1e-6))
    far = distance(anchor, negative)
    far = _ops.minimum(far, distance(positive, negative)) if swap else far
    return _loss(_ops.maximum(distance(anchor, positive) - far + margin, 0), reduction)


def gaussian_nll_loss(input: Values, target: Values, var: Values, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> Array:
    """(log(var) + (x - target)^2 / var) / 2, with `var` at least `eps`; `full` adds log(2 pi) / 2.

    >>> compute.nn.functional.gaussian_nll_loss([1.0], [3.0], [1.0])
    Array(2., dtype=float32)
    """
    x, target, var = arrays_of(input, target, var)
    var = _ops.maximum(var, eps)
    distance = x - target
    losses = (_ops.log(var) + distance * distance / var) * 0.5
    return _loss(losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)


def poisson_nll_loss(input: Values, target: Values, log_input: bool = True, full: bool = False, eps: float = 1e-8,
                     reduction: str = "mean") -> Array:
    """exp(x) - target x, or with `log_input` false x - target log(x + eps); `full` adds Stirling's term of the target.

    >>> compute.nn.functional.poisson_nll_loss([0.0], [3.0])
    Array(1., dtype=float32)
    """
    x, target = arrays_of(input, target)
    losses = _ops.exp(x) - target * x if log_input else x - target * _ops.log(x + eps)
    if full:
        term = target * _ops.log(target) - target + 0.5 * _ops.log(2 * math.pi * target)
        losses = losses + _functions.where(target > 1, term, 0)
    return _loss(losses, reduction)


def weighted_cross_entropy(x, target, weight, ignore_index, reduction, label_smoothing, axis):
    """cross_entropy of classes with weights; the mean is over the sum of the weights of the targets."""
    weight = array_of(weight)
    logs = nn.log_softmax(x, axis=axis)
    kept = _ops.not_equal(target, ignore_index)
    target = _functions.where(kept, target, 0)
    weights = _ops.take(weight, target, axis=0) * _ops.cast(kept, dtype=weight.dtype)
    chosen = _ops.take_along_axis(logs, _manipulation.expand_dims(target, axis), axis=axis)
    losses = -weights * _manipulation.squeeze(chosen, axis)
    if label_smoothing:
        shape = [-1 if i == axis else 1 for i in range(x.ndim)]
        spread = -_functions.sum(logs * _manipulation.reshape(weight, shape), axis=axis) * _ops.cast(kept, dtype=weight.dtype)
        losses = losses * (1 - label_smoothing) + spread * (label_smoothing / x.shape[axis])
    return _loss(losses, reduction) if reduction != "mean" else _functions.sum(losses) / _functions.sum(weights)
