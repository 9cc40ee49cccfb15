# SPDX-License-Identifier: Apache-2.0
"""Products, and linear algebra over batches of matrices."""
from __future__ import annotations

import numpy as np
from pytensor.graph.basic import Constant
from pytensor.tensor.blas import BatchedDot, Dot22, Dot22Scalar, Gemm, Gemv, Ger
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.math import Dot

import compute as cp

from ..lowering import DEVICE, HOST, HostOnly, Lowered, lowers, on_device
from ..values import dtype_of, to_device, to_host

try:  # PyTensor 3
    from pytensor.tensor.linalg.decomposition.cholesky import Cholesky
    from pytensor.tensor.linalg.decomposition.eigen import Eigh, Eigvalsh
    from pytensor.tensor.linalg.decomposition.qr import QR
    from pytensor.tensor.linalg.decomposition.svd import SVD
    from pytensor.tensor.linalg.inverse import MatrixInverse, MatrixPinv
    from pytensor.tensor.linalg.products import Expm
    from pytensor.tensor.linalg.solvers.general import Solve
    from pytensor.tensor.linalg.solvers.psd import CholeskySolve
    from pytensor.tensor.linalg.solvers.triangular import SolveTriangular
    from pytensor.tensor.linalg.summary import Det, SLogDet
except ImportError:
    from pytensor.tensor.nlinalg import SVD, Det, Eigh, MatrixInverse, MatrixPinv, SLogDet
    from pytensor.tensor.slinalg import QR, Cholesky, CholeskySolve, Eigvalsh, Expm, Solve, SolveTriangular

_SUPPORTED = ("float32", "float64", "complex64", "complex128")


def _product(node):
    dtypes, target = [x.type.dtype for x in node.inputs[:2]], dtype_of(node.outputs[0].type.dtype)
    if node.outputs[0].type.dtype == "bool":
        raise HostOnly("a product of bool")
    if all(dtype == node.outputs[0].type.dtype for dtype in dtypes):
        return cp.matmul
    return lambda x, y: cp.matmul(cp.astype(x, target, copy=False), cp.astype(y, target, copy=False))


@lowers(Dot, Dot22)
def _dot(op, node, placed):
    return on_device(_product(node), node)


@lowers(BatchedDot)
def _batched_dot(op, node, placed):
    product = _product(node)

    def run(x, y):
        if x.shape[0] != y.shape[0]:
            raise TypeError(f"Shapes must match along the first dimension of BatchedDot: {x.shape} and {y.shape}")
        return product(x, y)
    return on_device(run, node)


@lowers(Dot22Scalar)
def _dot_scaled(op, node, placed):
    product, scale = _product(node), cp.Expression("a * x", "a", "x").evaluator("a")
    return Lowered(lambda x, y, a: scale((product(x, y),), (a.item(),), None)[0], [DEVICE, DEVICE, HOST], [DEVICE])


@lowers(Gemm)
def _gemm(op, node, placed):
    if node.inputs[0].type.dtype not in ("float32", "float64"):
        raise HostOnly("gemm of complex numbers")

    def run(z, a, x, y, b):
        return cp.linalg.gemm(z, x, y, alpha=a.item(), beta=b.item())
    return Lowered(run, [DEVICE, HOST, DEVICE, DEVICE, HOST], [DEVICE])


_axpby = cp.Expression("b * y + a * x", "a", "b", "x", "y").evaluator("a", "b")


def _is_constant(x, value):
    return isinstance(x, Constant) and np.size(x.data) == 1 and float(np.asarray(x.data).item().real) == value


@lowers(Gemv)
def _gemv(op, node, placed):
    if _is_constant(node.inputs[1], 1.0) and _is_constant(node.inputs[4], 0.0):
        return Lowered(cp.matmul, [DEVICE] * 2, [DEVICE], inputs=[node.inputs[2], node.inputs[3]])

    def run(y, alpha, a, x, beta):
        found = cp.matmul(a, x)
        if beta.item() == 0.0:
            return _axpby((found, found), (alpha.item(), 0.0), None)[0]
        return _axpby((found, y), (alpha.item(), beta.item()), None)[0]
    return Lowered(run, [DEVICE, HOST, DEVICE, DEVICE, HOST], [DEVICE])


@lowers(Ger)
def _ger(op, node, placed):
    update = cp.Expression("m + a * x * y", "a", "m", "x", "y").evaluator("a")

    def run(m, alpha, x, y):
        return update((m, cp.reshape(x, (-1, 1)), cp.reshape(y, (1, -1))), (alpha.item(),), None)[0]
    return Lowered(run, [DEVICE, HOST, DEVICE, DEVICE], [DEVICE])


# ---- Matrices, and batches of them: a function of the arrays of one core op

_CORES = {}


def _core(*types):
    def register(function):
        for one in types:
            _CORES[one] = function
        return function
    return register


@_core(Dot)
def _core_dot(op, node):
    return _product(node)


@_core(Cholesky)
def _cholesky(op, node):
    upper = not op.lower
    return lambda x: cp.linalg.cholesky(x, upper=upper)


def _columns(function, b_ndim):
    """A solver of columns, as one of vectors too."""
    if b_ndim != 1:
        return function
    return lambda a, b: function(a, cp.expand_dims(b, axis=-1))[..., 0]


@_core(Solve)
def _solve(op, node):
    if op.assume_a not in ("gen", "general"):
        raise HostOnly(f"solve of a matrix that is {op.assume_a}")
    return _columns(cp.linalg.solve, op.b_ndim)


@_core(SolveTriangular)
def _solve_triangular(op, node):
    if getattr(op, "trans", 0):
        raise HostOnly("solve_triangular of a transposed matrix")
    upper, unit = not op.lower, bool(op.unit_diagonal)
    return _columns(lambda a, b: cp.linalg.triangular_solve(a, b, upper=upper, unit_diagonal=unit), op.b_ndim)


@_core(CholeskySolve)
def _cholesky_solve(op, node):
    lower = op.lower

    def run(c, b):
        other = cp.conj(cp.matrix_transpose(c))
        first, second = (c, other) if lower else (other, c)
        return cp.linalg.triangular_solve(second, cp.linalg.triangular_solve(first, b), upper=True)
    return _columns(run, op.b_ndim)


@_core(MatrixInverse)
def _inverse(op, node):
    return cp.linalg.inv


@_core(MatrixPinv)
def _pinv(op, node):
    if getattr(op, "hermitian", False):
        raise HostOnly("the pseudo-inverse of a Hermitian matrix")
    return cp.linalg.pinv


@_core(Det)
def _det(op, node):
    return cp.linalg.det


@_core(SLogDet)
def _slogdet(op, node):
    return lambda x: tuple(cp.linalg.slogdet(x))


@_core(SVD)
def _svd(op, node):
    if not op.compute_uv:
        return cp.linalg.svdvals
    full = bool(op.full_matrices)
    return lambda x: tuple(cp.linalg.svd(x, full_matrices=full))


def _upper_of(op):
    lower = getattr(op, "lower", None)
    return (op.UPLO == "U") if lower is None else not lower


@_core(Eigh)
def _eigh(op, node):
    if len(node.inputs) != 1:
        raise HostOnly("generalised eigenvalues")
    upper = _upper_of(op)
    return lambda x: tuple(cp.linalg.eigh(x, upper=upper))


@_core(Eigvalsh)
def _eigvalsh(op, node):
    if len(node.inputs) != 1:
        raise HostOnly("generalised eigenvalues")
    upper = not op.lower
    return lambda x: cp.linalg.eigvalsh(x, upper=upper)


@_core(QR)
def _qr(op, node):
    if op.pivoting or op.mode not in ("full", "economic", "r"):
        raise HostOnly(f"qr with pivoting or of the mode {op.mode}")
    mode = "reduced" if op.mode == "economic" else "complete"
    if op.mode == "r":
        return lambda x: cp.linalg.qr(x, mode="complete").R
    return lambda x: tuple(cp.linalg.qr(x, mode=mode))


@_core(Expm)
def _expm(op, node):
    return cp.linalg.expm


def _checked(function, fallback):
    """A function of matrices. Where a result does not exist, PyTensor's own function gives what its ops promise: NaN or an error."""
    def run(*inputs):
        found = None
        if all(x.size for x in inputs):
            try:
                found = function(*inputs)
                for one in found if isinstance(found, tuple) else (found,):
                    one[(0,) * one.ndim].item()  # raises if there is no result
            except cp.NumericalError:
                found = None
        if found is None:
            found = fallback(*(np.array(to_host(x)) for x in inputs))
            return tuple(to_device(x) for x in found) if isinstance(found, tuple) else to_device(found)
        return found
    return run


def _lower_core(op, core, node, core_node, placed):
    from ..program import perform

    rule = next((_CORES[kind] for kind in type(core).__mro__ if kind in _CORES), None)
    if rule is None:
        raise HostOnly("there is no rule for it")
    if any(x.type.dtype not in _SUPPORTED for x in (*node.inputs, *node.outputs)) and not isinstance(core, Dot):
        raise HostOnly("linear algebra of other numbers than float32, float64 and complex ones")
    function = rule(core, core_node)
    dtypes = [dtype_of(x.type.dtype) for x in node.inputs]
    common = dtype_of(core_node.outputs[0].type.dtype) if not isinstance(core, (SVD, Eigh, Eigvalsh, SLogDet)) else dtypes[0]
    if any(dtype is not common for dtype in dtypes) and not isinstance(core, Dot):
        plain = function

        def function(*inputs):
            return plain(*(cp.astype(x, common, copy=False) for x in inputs))
    return function if isinstance(core, Dot) else _checked(function, perform(node))


@lowers(Blockwise)
def _blockwise(op, node, placed):
    core_node = op._create_dummy_core_node(node.inputs, propagate_unbatched_core_inputs=True)
    function = _lower_core(op, op.core_op, node, core_node, placed)
    core_dims = [len(one) for one in op.inputs_sig]
    several = len(node.inputs) > 1
    is_dot = isinstance(op.core_op, Dot)

    def run(*inputs):
        op._check_runtime_broadcast(node, inputs)
        if several and not is_dot:
            batch = cp.broadcast_shapes(*(x.shape[:x.ndim - dims] for x, dims in zip(inputs, core_dims)))
            inputs = [cp.broadcast_to(x, (*batch, *x.shape[x.ndim - dims:])) for x, dims in zip(inputs, core_dims)]
        return function(*inputs)
    return on_device(run, node)


def _core_alone(op, node, placed):
    return on_device(_lower_core(op, op, node, node, placed), node)


for _type in _CORES:
    if _type is not Dot:
        lowers(_type)(_core_alone)
