# SPDX-License-Identifier: Apache-2.0
"""The gradients of ops that are not elementwise; _rules_linalg and _rules_networks have more of them. compute.grad imports
these modules when it first needs one.

A rule takes the inputs and outputs of a call as arrays, its attributes, and the gradient of its first output. It
returns the gradients of the inputs; None for those that have none, and functions for those that cost much and are
seldom wanted.
"""
from __future__ import annotations

import math

from . import _core, _creation, _dtypes, _ops
from ._manipulation import _axes, _axis
from .expressions import Expression
from .grad import _added, _positions, _reshaped, _row_gradients, _Spread, _unbroadcast

RULES = {}
OTHER_RULES = {}  # for the gradients of outputs other than the first one; None for integers
_HALVES = (_dtypes.float16, _dtypes.bfloat16)


def _rule(*names):
    def add(function):
        for name in names:
            RULES[name] = function
        return function
    return add


def _conjugate(x):
    return _ops.conj(x) if x.dtype in _dtypes.COMPLEX else x


def _kept(dy, x, attributes):
    """The gradient of a reduction, with the reduced axes at extent 1."""
    axes = attributes.get("axes")
    axes = range(x.ndim) if axes is None else _axes(axes, x.ndim, "gradient")
    return _core.reshape_view(dy, [1 if i in axes else n for i, n in enumerate(x.shape)])


def _spread(dy, x, attributes):
    return _core.broadcast_view(_kept(dy, x, attributes), x.shape)


@_rule("sum")
def _sum(inputs, outputs, attributes, dy):
    return [_Spread(_kept(dy, inputs[0], attributes), inputs[0].shape)]


@_rule("mean")
def _mean(inputs, outputs, attributes, dy):
    count = inputs[0].size / max(outputs[0].size, 1)
    return [_Spread(_kept(dy, inputs[0], attributes), inputs[0].shape, 1 / count if count else math.nan)]


def _wide(x):
    """float16 and bfloat16 as float32, for what may be too great or too small for them on the way to a gradient."""
    return _ops.cast(x, dtype=_dtypes.float32) if x.dtype in _HALVES else x


# Which elements are the extreme of their row, or are the NaN that it came from.
_chosen = Expression("(x == y) | isnan(x)", "x", "y")


def _shared(dy, chosen, x, attributes):
    """dy, divided among the chosen elements of each row."""
    count = _ops.count_nonzero(chosen, axes=attributes.get("axes"), keepdims=attributes.get("keepdims"))
    dy = _wide(dy)
    share = _ops.divide(dy, _ops.cast(count, dtype=dy.dtype))
    return _ops.where(chosen, _spread(share, x, attributes), 0)


@_rule("max", "min")
def _extreme(inputs, outputs, attributes, dy):
    x = inputs[0]
    return [_shared(dy, _chosen(x, _spread(outputs[0], x, attributes)), x, attributes)]


def _centred(x, attributes):
    return _ops.subtract(x, _ops.mean(x, axes=attributes.get("axes"), keepdims=True))


def _over_freedom(dy, x, attributes, factor):
    """factor dy / (n - correction)."""
    count = x.size / max(dy.size, 1) - attributes.get("correction", 0)
    return _ops.multiply(_wide(dy), factor / count if count > 0 else math.inf)


@_rule("var")
def _var(inputs, outputs, attributes, dy):
    x = _wide(inputs[0])
    dy = _over_freedom(dy, x, attributes, 2)
    return [_ops.multiply(_spread(dy, x, attributes), _centred(x, attributes))]


_SLOPE_OF_ROOT = Expression("where(y == 0, 0, d * (c / y))", "y", "d", "c")


@_rule("std")
def _std(inputs, outputs, attributes, dy):
    """0 for constant rows, where there is no derivative."""
    x = _wide(inputs[0])
    y = outputs[0] if x is inputs[0] else _ops.std(x, **attributes)
    dy = _over_freedom(dy, x, attributes, 1)
    return [_SLOPE_OF_ROOT(_spread(y, x, attributes), _spread(dy, x, attributes), _centred(x, attributes))]


def _rows(x, attributes):
    """The reduced axes as one, the last; and a function that brings an array of that shape into the shape of `x`."""
    axes = attributes.get("axes")
    axes = list(range(x.ndim)) if axes is None else _axes(axes, x.ndim, "gradient")
    order = [i for i in range(x.ndim) if i not in axes] + axes
    moved = _core.permute_view(x, order)
    rows = _reshaped(moved, (*moved.shape[:x.ndim - len(axes)], math.prod(x.shape[i] for i in axes)))
    inverse = sorted(range(x.ndim), key=order.__getitem__)
    return rows, lambda y: _core.permute_view(_core.reshape_view(y, moved.shape), inverse)


_OTHERS = Expression("where(isfinite(y) & (abs(y) >= t), y / x, p * q)", "y", "t", "x", "p", "q")


@_rule("prod")
def _prod(inputs, outputs, attributes, dy):
    """The product of the others is y / x, or where that does not work, of those before and behind."""
    x = _wide(_ops.cast(inputs[0], dtype=outputs[0].dtype))
    axes = attributes.get("axes")
    y = outputs[0] if x.dtype is outputs[0].dtype else _ops.prod(x, axes=axes, keepdims=attributes.get("keepdims"))
    rows, back = _rows(x, attributes)
    before, after = (back(_ops.cumulative_prod(rows, axis=-1, exclusive=True, reverse=way)) for way in (False, True))
    others = _OTHERS(_spread(y, x, attributes), _dtypes.finfo(x.dtype).smallest_normal, x, before, after)
    return [_ops.multiply(_conjugate(others), _spread(dy, x, attributes))]


_WEIGHTED = Expression("where(isnan(w) & ~isnan(y) & (x < inf), 0, d * w)", "w", "y", "x", "d")


@_rule("logsumexp")
def _logsumexp(inputs, outputs, attributes, dy):
    """dy softmax(x). It is 0 for rows of -inf, and beside inf."""
    x = inputs[0]
    rows, back = _rows(x, attributes)
    weights = back(_ops.softmax(rows, axis=-1))
    return [_WEIGHTED(weights, _spread(outputs[0], x, attributes), x, _spread(dy, x, attributes))]


_SLOPE_OF_LENGTH = Expression("where((n == 0) | (x == 0), 0, d * (x / n))", "n", "x", "d")
_SLOPE_OF_NORM = Expression("where((n == 0) | (x == 0), 0, d * (sign(x) * (abs(x) / n) ** e))", "n", "x", "d", "e")


@_rule("vector_norm")
def _vector_norm(inputs, outputs, attributes, dy):
    """0 where all elements are 0, and for elements that are."""
    x, order = _wide(inputs[0]), attributes["ord"]
    axis = attributes["axis"]
    attributes = {"axes": None if axis is None or x.ndim == 0 else _axes(axis, x.ndim, "gradient")}
    if order == 0:
        return [None]
    if order == 1:
        return [_ops.multiply(_ops.sign(x), _spread(dy, x, attributes))]
    norm = _spread(_wide(outputs[0]), x, attributes)
    if math.isinf(order):
        return [_ops.multiply(_ops.sign(x), _shared(dy, _chosen(_ops.abs(x), norm), x, attributes))]
    if order == 2 and x.dtype in _dtypes.FLOATS:
        return [_SLOPE_OF_LENGTH(norm, x, _spread(_wide(dy), x, attributes))]
    return [_SLOPE_OF_NORM(norm, x, _spread(_wide(dy), x, attributes), order - 1.0)]


_SHARES = Expression("where(n == 0, 0, d / n)", "n", "d")
_SUM_OF_SHARES = Expression("w * (x - y)", "w", "x", "y").reducer("sum")


def _from_rows(shares, x, y):
    """The sums over j of shares_ij (x_i - y_j), without an array of the differences."""
    columns = _ops.copy(_core.permute_view(y, [*range(y.ndim - 2), y.ndim - 1, y.ndim - 2]))
    sums = _SUM_OF_SHARES([shares[..., None, :], x[..., None], columns[..., None, :, :]], (), (shares.ndim,), False)
    return _unbroadcast(sums, x.shape)


@_rule("cdist")
def _cdist(inputs, outputs, attributes, dy):
    x, y = inputs
    shares = _SHARES(outputs[0], dy)

    def of_y():
        turned = _ops.copy(_core.permute_view(shares, [*range(shares.ndim - 2), shares.ndim - 1, shares.ndim - 2]))
        return _from_rows(turned, y, x)

    return [lambda: _from_rows(shares, x, y), of_y]


def _matrix(x, vector_axis):
    """A vector as a matrix of one row or column."""
    return x if x.ndim > 1 else _core.reshape_view(x, (1, x.size) if vector_axis == 0 else (x.size, 1))


def _precision(attributes):
    """The gradients of a product have its precision."""
    return {"precision": attributes["precision"]} if "precision" in attributes else {}


@_rule("matmul")
def _matmul(inputs, outputs, attributes, dy):
    a, b = inputs
    left, right = _matrix(a, 0), _matrix(b, 1)
    if a.ndim == 1 or b.ndim == 1:
        shape = list(dy.shape)
        if b.ndim == 1:
            shape.append(1)
        if a.ndim == 1:
            shape.insert(len(shape) - 1, 1)
        dy = _core.reshape_view(dy, shape)

    precision = _precision(attributes)

    def of_a():
        da = _ops.matmul(dy, _conjugate(right.mT), **precision)
        return da if da.shape == a.shape else _core.reshape_view(_unbroadcast(da, left.shape), a.shape)

    def of_b():
        if b.ndim == 2 and a.ndim > 2:  # the sum over all rows is one product
            rows = math.prod(a.shape[:-1])
            flat, of_flat = _reshaped(a, (rows, a.shape[-1])), _reshaped(dy, (rows, b.shape[-1]))
            return _ops.matmul(_conjugate(flat.mT), of_flat, **precision)
        db = _ops.matmul(_conjugate(left.mT), dy, **precision)
        return db if db.shape == b.shape else _core.reshape_view(_unbroadcast(db, right.shape), b.shape)

    return [of_a, of_b]


@_rule("vecdot")
def _vecdot(inputs, outputs, attributes, dy):
    a, b = inputs
    axis = attributes.get("axis", -1)
    at = axis if axis >= 0 else max(a.ndim, b.ndim) + axis
    dy = _core.reshape_view(dy, (*dy.shape[:at], 1, *dy.shape[at:]))
    return [_unbroadcast(_ops.multiply(_conjugate(dy), b), a.shape), _unbroadcast(_ops.multiply(dy, a), b.shape)]


@_rule("tensordot")
def _tensordot(inputs, outputs, attributes, dy):
    axes = [_axes(attributes[name], x.ndim, "gradient") for name, x in zip(("axes_a", "axes_b"), inputs)]
    free = [[i for i in range(x.ndim) if i not in summed] for x, summed in zip(inputs, axes)]
    first = len(free[0])
    of_result = [list(range(first)), list(range(first, dy.ndim))]
    gradients = []
    for i, j in ((0, 1), (1, 0)):
        product = _ops.tensordot(dy, _conjugate(inputs[j]), axes_a=of_result[j], axes_b=free[j])
        # Its axes are the free ones of operand i, then the summed ones in the order of operand j.
        summed = [axis for _, axis in sorted(zip(axes[j], axes[i]))]
        order = free[i] + summed
        gradients.append(_core.permute_view(product, sorted(range(len(order)), key=order.__getitem__)))
    return gradients


def _labels(equation, operands):
    """The labels of the operands and of the result of an einsum, where each axis that ... stands for has one, too."""
    given, arrow, result = equation.replace(" ", "").partition("->")
    terms = given.split(",")
    if not arrow:
        letters = sorted(label for label in set(given) - {",", "."} if given.count(label) == 1)
        result = ("..." if "..." in given else "") + "".join(letters)
    free = [chr(code) for code in (*range(65, 91), *range(97, 123)) if chr(code) not in equation]
    counts = [x.ndim - len(term.replace("...", "")) if "..." in term else 0 for term, x in zip(terms, operands)]
    most = max(counts, default=0)

    def written_out(term, count):
        return term.replace("...", "".join(free[most - count:most]))

    return [written_out(term, count) for term, count in zip(terms, counts)], written_out(result, most)


@_rule("einsum")
def _einsum(inputs, outputs, attributes, dy):
    terms, result = _labels(attributes["equation"], inputs)
    extents = dict(zip(result, dy.shape))
    for term, x in zip(terms, inputs):
        for label, extent in zip(term, x.shape):
            extents[label] = max(extent, extents.get(label, 1)) if extent != 0 else 0
    full = [_core.broadcast_view(x, [extents[label] for label in term]) for term, x in zip(terms, inputs)]
    factors = [_conjugate(x) for x in full]
    gradients = []
    for i, (term, x) in enumerate(zip(terms, inputs)):
        others = [j for j in range(len(inputs)) if j != i]
        present = set(result).union(*(terms[j] for j in others))
        labels = "".join(dict.fromkeys(term))  # once each: the gradient of a diagonal is on it
        known = "".join(label for label in labels if label in present)
        equation = ",".join([result, *(terms[j] for j in others)]) + "->" + known
        found = _ops.einsum(dy, *(factors[j] for j in others), equation=equation, **_precision(attributes))
        found = _core.reshape_view(found, [extents[label] if label in present else 1 for label in labels])
        found = _core.broadcast_view(found, [extents[label] for label in labels])
        if labels != term:
            dx = _creation.zeros(full[i].shape, dtype=found.dtype, device=found.device)
            strides = [sum(stride for stride, one in zip(dx.strides, term) if one == label) for label in labels]
            _ops.copy(found, out=_core.strided_view(dx, dx.dtype, found.shape, strides, 0))
            found = dx
        gradients.append(_unbroadcast(found, x.shape))
    return gradients


@_rule("gemm")
def _gemm(inputs, outputs, attributes, dy):
    c, a, b, bias = (list(inputs) + [None])[:4]
    activation = attributes.get("activation") or "none"
    if activation != "none":
        before = _ops.gemm(*inputs, **{**attributes, "activation": "none"})
        dy, = _row_gradients(activation, [before], (0,), dy)
    scaled = _ops.multiply(dy, attributes.get("alpha", 1.0))
    da, db = _ops.matmul(scaled, b.mT, **_precision(attributes)), _ops.matmul(a.mT, scaled, **_precision(attributes))
    return [_ops.multiply(dy, attributes.get("beta", 1.0)), _unbroadcast(da, a.shape), _unbroadcast(db, b.shape),
            None if bias is None else _unbroadcast(dy, bias.shape)]


@_rule("affine")
def _affine(inputs, outputs, attributes, dy):
    x, weight, bias = (list(inputs) + [None])[:3]
    activation = attributes.get("activation") or "none"
    if activation != "none":
        before = _ops.affine(*inputs, **{**attributes, "activation": "none"})
        dy, = _row_gradients(activation, [before], (0,), dy)
    transposed = bool(attributes.get("transpose_weight"))
    count = math.prod(x.shape[:-1])
    rows, flat = (_reshaped(one, (count, one.shape[-1])) for one in (x, dy))
    dx = _ops.matmul(flat, weight if transposed else weight.mT, **_precision(attributes))
    dx = _core.reshape_view(dx, x.shape)
    factors = (flat.mT, rows) if transposed else (rows.mT, flat)
    dw = _ops.matmul(*factors, **_precision(attributes))
    return [dx, dw, None if bias is None else _ops.sum(flat, axes=[0])]


@_rule("take")
def _take(inputs, outputs, attributes, dy):
    axis = attributes.get("axis") or 0
    return [_ops.take_grad(dy, inputs[1], size=inputs[0].shape[axis], axis=axis), None]


@_rule("concat")
def _concat(inputs, outputs, attributes, dy):
    axis = (attributes.get("axis") or 0) % dy.ndim
    gradients, start = [], 0
    for x in inputs:
        stop = start + x.shape[axis]
        gradients.append(dy[(slice(None),) * axis + (slice(start, stop),)])
        start = stop
    return gradients


@_rule("stack")
def _stack(inputs, outputs, attributes, dy):
    before = (slice(None),) * ((attributes.get("axis") or 0) % dy.ndim)
    return [dy[before + (i,)] for i in range(len(inputs))]


def _sliced(x, axis, start, stop):
    return x[(slice(None),) * axis + (slice(start, stop),)]


@_rule("cumulative_sum")
def _cumulative_sum(inputs, outputs, attributes, dy):
    _check_direction("cumulative_sum", attributes)
    axis = _axis(attributes.get("axis", -1), dy.ndim, "gradient")
    if attributes.get("include_initial"):
        dy = _sliced(dy, axis, 1, None)
    return [_ops.cumulative_sum(dy, axis=axis, reverse=True)]


def _check_direction(name, attributes):
    for direction in ("exclusive", "reverse"):
        if attributes.get(direction):
            raise TypeError(f"the gradient of {name} with the attribute {direction} is not known")


@_rule("cumulative_prod")
def _cumulative_prod(inputs, outputs, attributes, dy):
    """Element k has dy y / x summed from k on. At the first 0 of a line y is made again without that factor; behind it
    every product has it."""
    _check_direction("cumulative_prod", attributes)
    axis = _axis(attributes.get("axis", -1), dy.ndim, "gradient")
    x, y = _wide(_ops.cast(inputs[0], dtype=outputs[0].dtype)), outputs[0]
    if attributes.get("include_initial"):
        dy, y = _sliced(dy, axis, 1, None), _sliced(y, axis, 1, None)
    if x.dtype is not y.dtype:
        y, dy = _ops.cumulative_prod(x, axis=axis), _wide(dy)
    x, y = _conjugate(x), _conjugate(y)
    zero = _ops.equal(x, 0)
    zeros = _ops.cumulative_sum(_ops.cast(zero, dtype=_dtypes.int64), axis=axis)
    first = _ops.logical_and(zero, _ops.equal(zeros, 1))
    filled = _ops.where(first, 1, x)
    others = _ops.cumulative_prod(filled, axis=axis)
    behind, at = (_ops.cumulative_sum(_ops.multiply(dy, products), axis=axis, reverse=True) for products in (y, others))
    return [_ops.where(_ops.equal(zeros, 0), _ops.divide(behind, filled), _ops.where(first, at, 0))]


@_rule("cumulative_max", "cumulative_min")
def _cumulative_extreme(inputs, outputs, attributes, dy):
    """Each element of dy goes to the last element so far that equals the result, or is the NaN that it came from."""
    _check_direction("cumulative_max or cumulative_min", attributes)
    x, y = inputs[0], outputs[0]
    axis = _axis(attributes.get("axis", -1), x.ndim, "gradient")
    if attributes.get("include_initial"):
        dy, y = _sliced(dy, axis, 1, None), _sliced(y, axis, 1, None)
    places = _creation.arange(x.shape[axis], device=x.device)
    places = _core.reshape_view(places, [n if i == axis else 1 for i, n in enumerate(x.shape)])
    source = _ops.cumulative_max(_ops.where(_chosen(x, y), places, 0), axis=axis)
    return [_ops.scatter(_creation.zeros_like(_wide(x)), source, _wide(dy), axis=axis, reduction="add")]


@_rule("segment_reduce")
def _segment_reduce(inputs, outputs, attributes, dy):
    x, offsets = inputs
    kind = attributes.get("kind", "sum")
    if kind == "prod":
        raise TypeError('the gradient of segment_reduce with the kind "prod" is not known')
    rows = _creation.arange(x.shape[0], dtype=offsets.dtype, device=x.device)
    segment = _ops.searchsorted(offsets, rows, side="right") - 1
    inside = _ops.logical_and(segment >= 0, segment < dy.shape[0])
    inside = _core.reshape_view(inside, (-1,) + (1,) * (x.ndim - 1))
    if dy.shape[0] == 0:
        return [_creation.zeros_like(x)]
    segment = _ops.clip(segment, 0, dy.shape[0] - 1)
    if kind != "sum":  # divided among the elements that are the extreme
        chosen, dy = _chosen(x, _ops.take(outputs[0], segment, axis=0)), _wide(dy)
        counts = _ops.segment_reduce(_ops.cast(chosen, dtype=dy.dtype), offsets, kind="sum")
        dy = _ops.divide(dy, _ops.maximum(counts, 1))
        inside = _ops.logical_and(inside, chosen)
    return [_ops.where(inside, _ops.take(dy, segment, axis=0), 0)]


@_rule("diff")
def _diff(inputs, outputs, attributes, dy):
    axis = _axis(attributes.get("axis", -1), dy.ndim, "gradient")
    width = [int(i == axis) for i in range(dy.ndim)]
    for _ in range(attributes.get("n", 1)):
        dy = _ops.negative(_ops.diff(_ops.pad(dy, pads_begin=width, pads_end=width), axis=axis))
    return [dy]


@_rule("pad")
def _pad(inputs, outputs, attributes, dy):
    begin = attributes["pads_begin"]
    return [dy[tuple(slice(start, start + n) for start, n in zip(begin, inputs[0].shape))]]


@_rule("roll")
def _roll(inputs, outputs, attributes, dy):
    return [_ops.roll(dy, shift=-attributes["shift"], axis=attributes.get("axis", -1))]


_EXCHANGED = {"backward": "forward", "forward": "backward"}


def _adjoint(attributes):
    """The attributes of the transform that leads back: it is not the inverse, because it divides by nothing else."""
    norm = attributes.get("norm", "backward")
    return {"axes": attributes.get("axes"), "norm": _EXCHANGED.get(norm, norm)}


@_rule("fft")
def _fft(inputs, outputs, attributes, dy):
    dx = _ops.fft(dy, inverse=not attributes.get("inverse", 0), **_adjoint(attributes))
    return [dx if inputs[0].dtype is dx.dtype else _ops.real(dx)]


def _half_weighted(x, axes, n, weight):
    """The elements of half a spectrum along the last one of axes, those that stand for two of n times a weight."""
    axis = x.ndim - 1 if axes is None else _axis(axes[-1] if isinstance(axes, (tuple, list)) else axes, x.ndim, "gradient")
    return Expression(f"where((index({axis}) == 0) | (2 * index({axis}) == n), x, x * w)", "x", "n", "w")(x, n, weight)


@_rule("rfft")
def _rfft(inputs, outputs, attributes, dy):
    axes = attributes.get("axes")
    n = inputs[0].shape[-1 if axes is None else list(axes)[-1]]
    return [_ops.irfft(_half_weighted(dy, axes, n, 0.5), size=n, **_adjoint(attributes))]


@_rule("irfft")
def _irfft(inputs, outputs, attributes, dy):
    axes = attributes.get("axes")
    n = dy.shape[-1 if axes is None else list(axes)[-1]]
    return [_half_weighted(_ops.rfft(dy, **_adjoint(attributes)), axes, n, 2)]


@_rule("tile")
def _tile(inputs, outputs, attributes, dy):
    x = inputs[0]
    parts = [n for pair in zip(attributes["repetitions"], x.shape) for n in pair]
    return [_ops.sum(_reshaped(dy, parts), axes=list(range(0, 2 * x.ndim, 2)))]


@_rule("repeat")
def _repeat(inputs, outputs, attributes, dy):
    x = inputs[0]
    axis = _axis(attributes.get("axis", -1), x.ndim, "gradient")
    parts = (*x.shape[:axis + 1], attributes["repeats"], *x.shape[axis + 1:])
    return [_ops.sum(_reshaped(dy, parts), axes=[axis + 1])]


@_rule("sort")
def _sort(inputs, outputs, attributes, dy):
    return _with_places(inputs, (None, _ops.argsort(inputs[0], **attributes)), attributes, dy)


@_rule("sorted with places")
def _with_places(inputs, outputs, attributes, dy):
    dx = _core.empty(dy.shape, dy.dtype, dy.device)
    return [_ops.scatter(dx, outputs[1], dy, axis=attributes.get("axis", -1), out=dx)]  # each element is written once


@_rule("take_along_axis")
def _take_along_axis(inputs, outputs, attributes, dy):
    x, indices = inputs
    axis = _axis(attributes.get("axis", -1), x.ndim, "gradient")
    if (*dy.shape[:axis], *dy.shape[axis + 1:]) != (*x.shape[:axis], *x.shape[axis + 1:]):  # x was repeated
        return [_added(dy, _ops.take_along_axis(_positions(x), indices, **attributes), x), None]
    dx = _creation.zeros(x.shape, dtype=_wide(dy).dtype, device=x.device)
    places = _core.broadcast_view(indices, dy.shape)
    return [_ops.scatter(dx, places, _wide(dy), axis=axis, reduction="add", out=dx), None]


@_rule("gather_at")
def _gather_at(inputs, outputs, attributes, dy):
    x, *indices = inputs
    dx = _creation.zeros_like(_wide(x))
    return [_ops.scatter_at(dx, _wide(dy), *indices, reduction="add", out=dx, **attributes), *(None for _ in indices)]


@_rule("gather_nd")
def _gather_nd(inputs, outputs, attributes, dy):
    return [_ops.scatter_nd(_creation.zeros_like(_wide(inputs[0])), inputs[1], _wide(dy), reduction="add"), None]


def _scattered(name, inputs, attributes, dy, taken):
    """The gradients of an op that writes to places, of which `taken` are those of the gradient."""
    reduction = attributes.get("reduction", "set")
    if reduction == "add":
        return [dy, None, taken]
    if reduction != "set":
        raise TypeError(f'the gradient of {name} with the reduction "{reduction}" is not known')
    zeros = _creation.zeros(taken.shape, dtype=taken.dtype, device=taken.device)
    return [_ops.TABLE[name]["run"](dy, inputs[1], zeros, **attributes), None, taken]


@_rule("scatter")
def _scatter(inputs, outputs, attributes, dy):
    # The indices may be shorter than x along the other axes.
    axis = _axis(attributes.get("axis", 0), dy.ndim, "gradient")
    spanned = dy[tuple(slice(None) if i == axis else slice(n) for i, n in enumerate(inputs[1].shape))]
    return _scattered("scatter", inputs, attributes, dy, _ops.take_along_axis(spanned, inputs[1], axis=axis))


@_rule("scatter_at")
def _scatter_at(inputs, outputs, attributes, dy):
    indices, axis = inputs[2:], attributes.get("axis", 0)
    taken = _ops.gather_at(dy, *indices, axis=axis)
    reduction = attributes.get("reduction", "set")
    if reduction == "add":
        dx = dy
    elif reduction == "set":
        dx = _ops.scatter_at(dy, 0, *indices, **attributes)
    else:
        raise TypeError(f'the gradient of scatter_at with the reduction "{reduction}" is not known')
    return [dx, taken, *(None for _ in indices)]


@_rule("scatter_nd")
def _scatter_nd(inputs, outputs, attributes, dy):
    return _scattered("scatter_nd", inputs, attributes, dy, _ops.gather_nd(dy, inputs[1]))


@_rule("top_k")
def _top_k(inputs, outputs, attributes, dy):
    return [_ops.scatter(_creation.zeros_like(inputs[0]), outputs[1], dy, axis=attributes.get("axis", -1))]


@_rule("diagonal")
def _diagonal(inputs, outputs, attributes, dy):
    from . import linalg

    dx = _creation.zeros_like(inputs[0])
    linalg.diagonal(dx, **attributes)[...] = dy
    return [dx]


@_rule("cast", "copy")
def _copy(inputs, outputs, attributes, dy):
    return [dy]


@_rule("dropout")
def _same_again(inputs, outputs, attributes, dy, name="dropout"):
    return [_ops.TABLE[name]["run"](dy, **attributes)]


RULES["tril"] = lambda *call: _same_again(*call, name="tril")
RULES["triu"] = lambda *call: _same_again(*call, name="triu")


def _along(values, x, attributes):
    """The values of channels as an array with the axes of `x`, of extent 1 but for that of the channels."""
    axis = _axis(attributes.get("axis", 1), x.ndim, "gradient")
    return _core.reshape_view(values, [n if i == axis else 1 for i, n in enumerate(x.shape)])
