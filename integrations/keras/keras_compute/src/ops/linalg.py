# SPDX-License-Identifier: Apache-2.0
"""keras.ops.linalg."""
from __future__ import annotations

import math

import compute as cp
from compute import grad
from keras.src import tree
from keras.src.backend.common.backend_utils import canonicalize_axis

from ..variable import cast, common, constant, dense_tensor as convert_to_tensor
from . import numpy as knp


def _inexact(x):
    x = convert_to_tensor(x)
    is_computed = x.dtype in (cp.float32, cp.float64, cp.complex64, cp.complex128)
    return x if is_computed else cast(x, common(x.dtype, "float32"))


def _both(a, b):
    return knp._tensors(_inexact(a), _inexact(b))


def cholesky(x, upper=False):
    x = _inexact(x)
    found = cp.linalg.cholesky(x, upper=upper)
    try:
        float(cp.sum(cp.real(constant(found))))  # a factor that does not exist raises when it is read
    except cp.NumericalError as error:
        raise ValueError("Cholesky decomposition failed. The input might not be a valid positive definite matrix.") from error
    return found


def cholesky_inverse(x, upper=False):
    x = _inexact(x)
    found = solve_triangular(x, cp.eye(x.shape[-1], dtype=x.dtype), lower=not upper)
    other = cp.matrix_transpose(found)
    return cp.matmul(found, other) if upper else cp.matmul(other, found)


def det(x):
    return cp.linalg.det(_inexact(x))


def eig(x):
    return tuple(cp.linalg.eig(_inexact(x)))


def eigh(x):
    return tuple(cp.linalg.eigh(_inexact(x)))


def inv(x):
    return cp.linalg.inv(_inexact(x))


def lu_factor(x):
    """The factors in one matrix, and the rows that were exchanged."""
    packed, pivots = cp.linalg.lu(_inexact(x))
    return packed, cast(pivots, cp.int32)


def norm(x, ord=None, axis=None, keepdims=False):
    x = knp._inexact(x)
    if axis is None and ord is None:
        found = cp.linalg.vector_norm(x, axis=None, keepdims=False)
        return cp.reshape(found, [1] * x.ndim) if keepdims else found
    if axis is None:
        axis = tuple(range(x.ndim))
    axis = (axis,) if isinstance(axis, int) else tuple(axis)
    if len(axis) == 1:
        if ord is not None and not isinstance(ord, (int, float)):
            raise ValueError(f"Invalid `ord` argument for vector norm. Received: ord={ord}")
        axis = canonicalize_axis(axis[0], x.ndim)
        return cp.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axis) != 2:
        raise ValueError(f"Improper number of dimensions to norm. Received: axis={axis}")
    if ord not in (None, "fro", "nuc", math.inf, -math.inf, 1, -1, 2, -2):
        raise ValueError(f"Invalid `ord` argument for matrix norm. Received: ord={ord}")
    axes = [canonicalize_axis(one, x.ndim) for one in axis]
    found = cp.linalg.matrix_norm(cp.moveaxis(x, axes, (-2, -1)), ord="fro" if ord is None else ord)
    if not keepdims:
        return found
    return cp.reshape(found, [1 if i in axes else n for i, n in enumerate(x.shape)])


def qr(x, mode="reduced"):
    if mode not in {"reduced", "complete"}:
        raise ValueError(f"`mode` argument value not supported. Expected one of {{'reduced', 'complete'}}. Received: mode={mode}")
    return tuple(cp.linalg.qr(_inexact(x), mode=mode))


def solve(a, b):
    a, b = _both(a, b)
    if b.ndim == a.ndim - 1 and b.ndim > 1:
        return cp.squeeze(cp.linalg.solve(a, cp.expand_dims(b, -1)), -1)
    return cp.linalg.solve(a, b)


def solve_triangular(a, b, lower=False):
    a, b = _both(a, b)
    if b.ndim == a.ndim - 1:
        return cp.squeeze(cp.linalg.triangular_solve(a, cp.expand_dims(b, -1), upper=not lower), -1)
    return cp.linalg.triangular_solve(a, b, upper=not lower)


def svd(x, full_matrices=True, compute_uv=True):
    x = _inexact(x)
    return tuple(cp.linalg.svd(x, full_matrices=full_matrices)) if compute_uv else cp.linalg.svdvals(x)


def lstsq(a, b, rcond=None):
    a, b = _both(a, b)
    found = cp.linalg.lstsq(a, cp.expand_dims(b, -1) if b.ndim == 1 else b, rtol=rcond)
    found = found[0] if isinstance(found, tuple) else found
    return cp.squeeze(found, -1) if b.ndim == 1 else found


def _matrix(x):
    x = _inexact(x)
    if x.ndim < 2:
        raise ValueError(f"Expected input to have rank >= 2. Received input with shape {tuple(x.shape)}.")
    return x


def matrix_rank(x, tol=None):
    x = _matrix(x)
    if tol is None:
        return cast(cp.linalg.matrix_rank(x), cp.int32)
    return cast(cp.sum(cast(cp.greater(cp.linalg.svdvals(x), cast(tol, x.dtype)), cp.int32), axis=-1), cp.int32)


def pinv(x, rcond=None):
    return cp.linalg.pinv(_matrix(x), rtol=rcond)


def jvp(fun, primals, tangents, has_aux=False):
    """The product of the Jacobian with tangents, a row of the Jacobian at a time."""
    primals, tangents = [tree.map_structure(convert_to_tensor, list(given)) for given in (primals, tangents)]
    outputs = fun(*primals)
    outputs, aux = outputs if has_aux else (outputs, None)

    def product(path, shape):
        def element(i):
            def value(*given):
                found = fun(*given)
                return cp.reshape(tree.flatten(found[0] if has_aux else found)[path], (-1,))[i]

            gradients = grad.gradients(value, argnums=list(range(len(primals))))(*primals)
            return sum(cp.sum(one * other) for one, other in zip(tree.flatten(gradients), tree.flatten(tangents)))

        return cp.reshape(cp.stack([element(i) for i in range(math.prod(shape))]), shape)

    flat = tree.flatten(outputs)
    found = tree.pack_sequence_as(outputs, [product(i, tuple(x.shape)) for i, x in enumerate(flat)]) \
        if tree.is_nested(outputs) else product(0, tuple(outputs.shape))
    return (outputs, found, aux) if has_aux else (outputs, found)
