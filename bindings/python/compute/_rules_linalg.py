# SPDX-License-Identifier: Apache-2.0
"""The gradients of decompositions and solvers."""
from __future__ import annotations

from . import _core, _creation, _dtypes, _ops
from ._rules import OTHER_RULES, _conjugate, _rule
from .expressions import Expression
from .grad import _unbroadcast


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


OTHER_RULES.update(eig=(_eig_of_vectors,), eigh=(_eigh_of_vectors,), lstsq=(_lstsq_of_residuals, None, _lstsq_of_values), qr=(_qr_of_r,),
                   slogdet=(_slogdet_of_logarithm,), svd=(_svd_of_values, _svd_of_vh))
