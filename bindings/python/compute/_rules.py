# SPDX-License-Identifier: Apache-2.0
"""The gradients of ops that are not elementwise. compute.grad imports this module when it first needs one of them.

A rule takes the inputs and outputs of a call as arrays, its attributes, and the gradient of its first output. It
returns the gradients of the inputs; None for those that have none, and functions for those that cost much and are
seldom wanted.
"""
from __future__ import annotations

import math

from . import _core, _creation, _dtypes, _ops
from ._manipulation import _axes, _axis
from ._rules_recurrent import gru as _gru, lstm as _lstm
from .expressions import Expression
from .grad import _added, _positions, _reshaped, _row_gradients, _unbroadcast

RULES = {}
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
    return [_ops.copy(_spread(dy, inputs[0], attributes))]


@_rule("mean")
def _mean(inputs, outputs, attributes, dy):
    count = inputs[0].size / max(outputs[0].size, 1)
    return [_ops.multiply(_spread(dy, inputs[0], attributes), 1 / count if count else math.nan)]


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
    return [_SLOPE_OF_NORM(norm, x, _spread(_wide(dy), x, attributes), order - 1.0)]


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


# ---- Decompositions -------------------------------------------------------------------------------------------------


def _adjoint_of(x):
    return _conjugate(x.mT)


def _product(*factors):
    """The product of matrices, from the left."""
    result = factors[0]
    for factor in factors[1:]:
        result = _ops.matmul(result, factor)
    return result


def _column(values):
    """Numbers [..., n] as [..., n, 1]."""
    return _core.reshape_view(values, (*values.shape, 1))


def _row(values):
    return _core.reshape_view(values, (*values.shape[:-1], 1, values.shape[-1]))


def _diagonal_of(x):
    return _core.strided_view(x, x.dtype, (*x.shape[:-2], min(x.shape[-2:])), (*x.strides[:-2], sum(x.strides[-2:])), 0)


def _on_diagonal(values, like):
    """Square matrices like `like`, with these values on the diagonal."""
    unit = _creation.eye(like.shape[-1], dtype=values.dtype, device=like.device)
    return _ops.multiply(unit, _row(values))


def _lower(x, diagonal=1.0):
    """The part below the diagonal, and the diagonal times a number."""
    below = _ops.tril(x, k=-1)
    return below if diagonal == 0 else _ops.add(below, _on_diagonal(_ops.multiply(_diagonal_of(x), diagonal), x))


def _read_triangle(gradient, attributes):
    """The gradient of a Hermitian matrix, as that of the triangle that was read."""
    mirrored = _ops.add(gradient, _adjoint_of(gradient))
    if attributes.get("upper"):
        return _adjoint_of(_lower(_adjoint_of(mirrored), 0.5))
    return _lower(mirrored, 0.5)


def _of_solution(x, other):
    """Vectors of a solution as matrices of one column, if the right side `other` was a vector."""
    return _column(x) if other.ndim == 1 else x


@_rule("solve")
def _solve(inputs, outputs, attributes, dy, name="solve", known=None):
    a, b = inputs
    known = {} if known is None else known
    y, dy = (_of_solution(x, b) for x in (outputs[0], dy))
    db = _ops.TABLE[name]["run"](_adjoint_of(a), dy, **known)
    da = _unbroadcast(_ops.negative(_ops.matmul(db, _adjoint_of(y))), a.shape)
    flat = _core.reshape_view(db, db.shape[:-1]) if b.ndim == 1 else db
    return [da, _unbroadcast(flat, b.shape)]


@_rule("triangular_solve")
def _triangular_solve(inputs, outputs, attributes, dy):
    upper, unit = attributes.get("upper"), attributes.get("unit_diagonal")
    known = {"upper": not upper, "unit_diagonal": bool(unit)}
    da, db = _solve(inputs, outputs, attributes, dy, "triangular_solve", known)
    return [_ops.triu(da, k=1 if unit else 0) if upper else _ops.tril(da, k=-1 if unit else 0), db]


@_rule("inv")
def _inv(inputs, outputs, attributes, dy):
    y = _adjoint_of(outputs[0])
    return [_ops.negative(_product(y, dy, y))]


@_rule("pinv")
def _pinv(inputs, outputs, attributes, dy):
    """Of matrices of constant rank."""
    x, y = inputs[0], outputs[0]
    yh, dyh = _adjoint_of(y), _adjoint_of(dy)
    left = _product(dyh, y, yh)
    right = _product(yh, y, dyh)
    dx = _ops.subtract(left, _product(x, _ops.matmul(y, left)))
    dx = _ops.add(dx, _ops.subtract(right, _product(_ops.matmul(right, y), x)))
    return [_ops.subtract(dx, _product(yh, dy, yh)), None][:len(inputs)]


@_rule("det")
def _det(inputs, outputs, attributes, dy):
    """dy times the adjugate, from singular values: the matrices may be singular."""
    x = inputs[0]
    u, s, vh = _ops.svd(x, full_matrices=False)
    before, after = (_ops.cumulative_prod(s, axis=-1, exclusive=True, reverse=way) for way in (False, True))
    phase = _ops.multiply(dy, _conjugate(_ops.multiply(_ops.det(u), _ops.det(vh))))
    others = _ops.multiply(before, after)
    scaled = _ops.multiply(u, _ops.multiply(_row(others), _core.reshape_view(phase, (*phase.shape, 1, 1))))
    return [_ops.matmul(scaled, vh)]


def _of_logarithm(x, factor):
    """factor times the inverse of x^H."""
    return [_ops.multiply(_ops.inv(_adjoint_of(x)), _core.reshape_view(factor, (*factor.shape, 1, 1)))]


_TURN = Expression("complex(0, -imag(conj(d) * s))", "d", "s")


@_rule("slogdet")
def _slogdet(inputs, outputs, attributes, dy):
    if dy.dtype not in _dtypes.COMPLEX:
        return [None]
    return _of_logarithm(inputs[0], _TURN(dy, outputs[0]))


def _slogdet_of_logarithm(inputs, outputs, attributes, dy):
    return _of_logarithm(inputs[0], dy)


@_rule("cholesky")
def _cholesky(inputs, outputs, attributes, dy):
    l, upper = outputs[0], attributes.get("upper")
    if upper:
        l, dy = _adjoint_of(l), _adjoint_of(dy)
    inner = _lower(_ops.matmul(_adjoint_of(l), _ops.tril(dy)), 0.5)
    # l^-H inner l^-1
    half = _ops.triangular_solve(_adjoint_of(l), inner, upper=True)
    dx = _adjoint_of(_ops.triangular_solve(_adjoint_of(l), _adjoint_of(half), upper=True))
    return [_read_triangle(_ops.multiply(_ops.add(dx, _adjoint_of(dx)), 0.5), attributes)]


@_rule("qr")
def _qr(inputs, outputs, attributes, dy):
    """By way of q."""
    return _of_qr(inputs, outputs, attributes, dy, None)


def _qr_of_r(inputs, outputs, attributes, dy):
    return _of_qr(inputs, outputs, attributes, None, dy)


def _of_qr(inputs, outputs, attributes, dq, dr):
    x, (q, r) = inputs[0], outputs
    rows, columns = x.shape[-2:]
    if attributes.get("mode") == "complete" and rows > columns:
        raise TypeError('the gradient of qr with mode="complete" is not known for more rows than columns')
    rest = columns - r.shape[-2]
    if rest > 0:  # the columns of the rest are products with q
        count = r.shape[-2]
        d_rest = None
        if dr is not None:
            d_rest = dr[..., count:]
            dq = _ops.matmul(x[..., count:], _adjoint_of(d_rest))
            dr = dr[..., :count]
            d_rest = _ops.matmul(q, d_rest)
        r = r[..., :count]
    inner = None if dr is None else _ops.matmul(r, _adjoint_of(_ops.triu(dr)))
    if dq is not None:
        product = _ops.matmul(_adjoint_of(dq), q)
        inner = _ops.negative(product) if inner is None else _ops.subtract(inner, product)
    mirrored = _lower(inner, 0.5)
    total = _ops.matmul(q, _ops.add(mirrored, _adjoint_of(mirrored)))
    if dq is not None:
        total = _ops.add(total, dq)
    dx = _adjoint_of(_ops.triangular_solve(r, _adjoint_of(total), upper=True))
    if rest > 0:
        if d_rest is None:
            d_rest = _creation.zeros((*x.shape[:-1], rest), dtype=x.dtype, device=x.device)
        dx = _ops.concat(dx, d_rest, axis=-1)
    return [dx]


_OF_GAPS = Expression("where(x == y, 0, 1 / (y - x))", "x", "y")


@_rule("eigh")
def _eigh(inputs, outputs, attributes, dy):
    """By way of the values."""
    v = outputs[1]
    return [_read_triangle(_ops.matmul(_ops.multiply(v, _row(dy)), _adjoint_of(v)), attributes)]


def _eigh_of_vectors(inputs, outputs, attributes, dy):
    """Pairs of equal values have no part in it."""
    values, v = outputs
    inner = _ops.multiply(_ops.matmul(_adjoint_of(v), dy), _OF_GAPS(_column(values), _row(values)))
    return [_read_triangle(_product(v, inner, _adjoint_of(v)), attributes)]


@_rule("eigvalsh")
def _eigvalsh(inputs, outputs, attributes, dy):
    return _eigh(inputs, _ops.eigh(inputs[0], **attributes), attributes, dy)


_OF_SQUARES = Expression("where(x == y, 0, 1 / ((y - x) * (y + x)))", "x", "y")
_OVER_VALUES = Expression("where(s == 0, 0, 1 / s)", "s")


def _svd_parts(inputs, outputs, attributes):
    u, s, vh = outputs
    if attributes.get("full_matrices", True) and inputs[0].shape[-1] != inputs[0].shape[-2]:
        raise TypeError("the gradient of svd with full_matrices is not known for matrices that are not square")
    return u, s, vh, _OF_SQUARES(_column(s), _row(s)), _OVER_VALUES(s)


def _skew(x):
    return _ops.subtract(x, _adjoint_of(x))


_ANGLE = Expression("complex(0, imag(x) * y)", "x", "y")


@_rule("svd")
def _svd(inputs, outputs, attributes, dy):
    """By way of u. Pairs of equal values have no part in it."""
    u, s, vh, gaps, reciprocals = _svd_parts(inputs, outputs, attributes)
    along = _ops.matmul(_adjoint_of(u), dy)
    inner = _ops.multiply(_ops.multiply(_skew(along), gaps), _row(s))
    if u.dtype in _dtypes.COMPLEX:
        inner = _ops.add(inner, _on_diagonal(_ANGLE(_diagonal_of(along), reciprocals), inner))
    dx = _product(u, inner, vh)
    if u.shape[-2] > u.shape[-1]:
        rest = _ops.subtract(dy, _ops.matmul(u, along))
        dx = _ops.add(dx, _ops.matmul(_ops.multiply(rest, _row(reciprocals)), vh))
    return [dx]


def _svd_of_values(inputs, outputs, attributes, dy):
    u, _, vh = outputs
    count = dy.shape[-1]
    return [_ops.matmul(_ops.multiply(u[..., :count], _row(dy)), vh[..., :count, :])]


def _svd_of_vh(inputs, outputs, attributes, dy):
    u, s, vh, gaps, reciprocals = _svd_parts(inputs, outputs, attributes)
    along = _ops.matmul(vh, _adjoint_of(dy))
    inner = _ops.multiply(_ops.multiply(_skew(along), gaps), _column(s))
    dx = _product(u, inner, vh)
    if vh.shape[-1] > vh.shape[-2]:
        rest = _ops.subtract(dy, _ops.matmul(_adjoint_of(along), vh))
        dx = _ops.add(dx, _ops.matmul(u, _ops.multiply(rest, _column(reciprocals))))
    return [dx]


@_rule("svdvals")
def _svdvals(inputs, outputs, attributes, dy):
    return _svd_of_values(inputs, _ops.svd(inputs[0], full_matrices=False), attributes, dy)


def _rows_before_exchanges(pivots, rows):
    """For matrices whose rows were exchanged, the indices [..., rows, 1] that bring the rows back."""
    count, places = pivots.shape[-1], []
    listed = _core.reshape_view(pivots, (pivots.size,)).tolist()
    for start in range(0, len(listed), count):
        order = list(range(rows))
        for i, pivot in enumerate(listed[start:start + count]):
            order[i], order[pivot] = order[pivot], order[i]
        places += sorted(range(rows), key=order.__getitem__)
    places = _creation.asarray(places, dtype=_dtypes.int64, device=pivots.device)
    return _core.reshape_view(places, (*pivots.shape[:-1], rows, 1))


@_rule("lu")
def _lu(inputs, outputs, attributes, dy):
    """With the exchanges as they are. Both factors have a square block; behind it is the rest of one of them."""
    both, pivots = outputs
    (rows, columns), k = both.shape[-2:], pivots.shape[-1]
    if not both.size:
        return [_creation.zeros_like(both)]
    block = both[..., :k, :k]
    unit = _creation.eye(rows, k, dtype=both.dtype, device=both.device)
    l, u = _ops.add(_ops.tril(both[..., :k], k=-1), unit), _ops.triu(both[..., :k, :])
    dl, du = _ops.tril(dy[..., :k], k=-1), _ops.triu(dy[..., :k, :])
    of_l = _ops.matmul(_adjoint_of(l[..., :k, :]), dl[..., :k, :])
    of_u = _ops.matmul(du[..., :k], _adjoint_of(u[..., :k]))
    if rows > k:
        of_u = _ops.subtract(of_u, _ops.matmul(_adjoint_of(l[..., k:, :]), dl[..., k:, :]))
    if columns > k:
        of_l = _ops.subtract(of_l, _ops.matmul(du[..., k:], _adjoint_of(u[..., k:])))
    inner = _ops.add(_ops.tril(of_l, k=-1), _ops.triu(of_u))
    if columns > k:
        inner = _ops.concat(inner, du[..., k:], axis=-1)
    inner = _ops.triangular_solve(_adjoint_of(block), inner, upper=True, unit_diagonal=True)
    square = inner[..., :k]
    if rows > k:
        square = _ops.concat(square, dl[..., k:, :], axis=-2)
    dx = _adjoint_of(_ops.triangular_solve(block, _adjoint_of(square), upper=True))
    if columns > k:
        dx = _ops.concat(dx, inner[..., k:], axis=-1)
    return [_ops.take_along_axis(dx, _rows_before_exchanges(pivots, rows), axis=-2)]


def _of_system(inputs, outputs):
    """The operands of lstsq as matrices, a with the whole batch, and the solution."""
    a, b = inputs[:2]
    return _core.broadcast_view(a, (*outputs[3].shape[:-1], *a.shape[-2:])), _of_solution(b, b), _of_solution(outputs[0], b)


def _gradients_of_system(inputs, da, db):
    a, b = inputs[:2]
    if db is not None:
        db = _unbroadcast(_core.reshape_view(db, db.shape[:-1]) if b.ndim == 1 else db, b.shape)
    return [_unbroadcast(da, a.shape), db, None][:len(inputs)]


@_rule("lstsq")
def _lstsq(inputs, outputs, attributes, dy):
    """By way of the solution pinv(a) b."""
    a, b, _ = _of_system(inputs, outputs)
    dy = _of_solution(dy, inputs[1])
    inverse = _ops.pinv(a, *(x for x in inputs[2:] if x is not None))
    da, = _pinv([a], [inverse], {}, _ops.matmul(dy, _adjoint_of(b)))
    return _gradients_of_system(inputs, da, _ops.matmul(_adjoint_of(inverse), dy))


def _lstsq_of_residuals(inputs, outputs, attributes, dy):
    """What is left of b is orthogonal to the columns of a."""
    a, b, x = _of_system(inputs, outputs)
    left = _ops.subtract(b, _ops.matmul(a, x))
    db = _ops.multiply(_ops.multiply(left, _row(_column(dy) if inputs[1].ndim == 1 else dy)), 2)
    return _gradients_of_system(inputs, _ops.negative(_ops.matmul(db, _adjoint_of(x))), db)


def _lstsq_of_values(inputs, outputs, attributes, dy):
    a, _, _ = _of_system(inputs, outputs)
    da, = _svd_of_values([a], _ops.svd(a, full_matrices=False), {}, dy)
    return _gradients_of_system(inputs, da, None)


def _of_eig(x, vectors, inner):
    """vectors^-H inner vectors^H, for real matrices its real part."""
    dx = _ops.solve(_adjoint_of(vectors), _ops.matmul(inner, _adjoint_of(vectors)))
    return [dx if x.dtype in _dtypes.COMPLEX else _ops.real(dx)]


@_rule("eig")
def _eig(inputs, outputs, attributes, dy):
    """By way of the values."""
    vectors = outputs[1]
    return _of_eig(inputs[0], vectors, _on_diagonal(dy, vectors))


_OF_COMPLEX_GAPS = Expression("where(x == y, complex(0, 0), z / conj(y - x))", "x", "y", "z")


def _eig_of_vectors(inputs, outputs, attributes, dy):
    """Pairs of equal values have no part in it."""
    values, v = outputs
    along = _ops.matmul(_adjoint_of(v), dy)
    stretch = _ops.multiply(v, _row(_ops.real(_diagonal_of(along))))  # vectors keep their norm
    along = _ops.subtract(along, _ops.matmul(_adjoint_of(v), stretch))
    return _of_eig(inputs[0], v, _OF_COMPLEX_GAPS(_column(values), _row(values), along))


@_rule("eigvals")
def _eigvals(inputs, outputs, attributes, dy):
    return _eig(inputs, _ops.eig(inputs[0]), attributes, dy)


@_rule("expm")
def _expm(inputs, outputs, attributes, dy):
    """The upper right block of the exponential of [[x^H, dy], [0, x^H]]."""
    x, n = _adjoint_of(inputs[0]), dy.shape[-1]
    above, below = _ops.concat(x, dy, axis=-1), _ops.concat(_creation.zeros_like(dy), x, axis=-1)
    return [_ops.expm(_ops.concat(above, below, axis=-2))[..., :n, n:]]


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
    axis = attributes.get("axis", -1)
    places = _ops.argsort(_ops.argsort(inputs[0], **attributes), axis=axis)
    return [_ops.take_along_axis(dy, places, axis=axis)]


@_rule("take_along_axis")
def _take_along_axis(inputs, outputs, attributes, dy):
    x, indices = inputs
    return [_added(dy, _ops.take_along_axis(_positions(x), indices, **attributes), x), None]


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

# Rules for the gradients of outputs other than the first one; None for integers.
OTHER_RULES = {"batch_norm": (_batch_mean, _batch_variance), "eig": (_eig_of_vectors,), "eigh": (_eigh_of_vectors,),
               "gru": (_of_output(_gru, 1),), "lstm": (_of_output(_lstm, 1), _of_output(_lstm, 2)), "lstsq": (_lstsq_of_residuals, None, _lstsq_of_values), "qr": (_qr_of_r,),
               "slogdet": (_slogdet_of_logarithm,), "svd": (_svd_of_values, _svd_of_vh)}
