# SPDX-License-Identifier: Apache-2.0
"""Products of arrays."""
from __future__ import annotations

import builtins

from . import _ops
from ._core import Array
from ._creation import arrays_of
from ._errors import renamed
from ._manipulation import _axes, _whole


def matmul(x1, x2, /, out=None, *, precision="default"):
    """The matrix product.

    x1, x2      vectors, matrices, or stacks of matrices in the last two axes, which broadcast
    out         an array for the result
    precision   of products of float32: "highest", "tf32" or "bf16"; "default" is the setting COMPUTE_MATH

    Raises ValueError if the inner extents differ, and for numbers.

    >>> compute.matmul(compute.asarray([[1.0, 2.0], [3.0, 4.0]]), [1, 1])
    Array([3., 7.], dtype=float32)
    """
    if precision != "default":
        return _ops.matmul(x1, x2, out=out, precision=precision)
    return _ops.matmul(x1, x2) if out is None else _ops.matmul(x1, x2, out=out)


def vecdot(x1, x2, /, *, axis=-1, **names):
    """The sums of the products of elements along an axis, the first operand conjugated.

    >>> compute.vecdot(compute.asarray([1, 2]), [3, 4])
    Array(11, dtype=int64)
    """
    if names:
        return renamed(vecdot, names, x1, x2, axis=axis)
    return _ops.vecdot(x1, x2, axis=_whole(axis, "vecdot"))


def tensordot(x1, x2, /, axes=2, **names):
    """The sums of products over pairs of axes.

    `axes` is a number of axes, the last of `x1` and the first of `x2`, or two sequences of as many axes of each.

    >>> compute.tensordot(compute.ones((2, 3)), compute.ones((3, 2)), axes=1)
    Array([[3., 3.],
           [3., 3.]], dtype=float32)
    """
    if names:
        return renamed(tensordot, names, x1, x2, axes=axes)
    x1, x2 = arrays_of(x1, x2)
    rank1, rank2 = x1.ndim, x2.ndim
    if isinstance(axes, int):
        if axes < 0:
            raise ValueError(f"tensordot: axes is {axes}; it must not be negative")
        first = list(range(rank1 - axes, rank1))
        second = list(range(axes))
    else:
        first, second = ([axis] if isinstance(axis, int) else list(axis) for axis in axes)
    return _ops.tensordot(x1, x2, axes_a=_axes(first, rank1, "tensordot"), axes_b=_axes(second, rank2, "tensordot"))


def _equation(*operands):
    """The equation and the operands of einsum(x, [0, 1], y, [1, 2], [0, 2]), where numbers stand for letters."""
    if not builtins.all(isinstance(one, (list, tuple)) for one in operands[1::2]):
        raise TypeError(f"einsum: the equation is {type(operands[0]).__name__}, not str, and comes first")
    texts = ["".join("..." if one is Ellipsis else _LETTERS[one] for one in labels) for labels in operands[1::2]]
    equation = ",".join(texts)
    if len(operands) % 2:
        equation += "->" + "".join("..." if one is Ellipsis else _LETTERS[one] for one in operands[-1])
    return equation, operands[:len(operands) // 2 * 2:2]


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def einsum(equation, /, *operands, optimize=False, precision="default"):
    """Sums of products of the elements of arrays, as an equation such as "ij,jk->ik" says.

    A label that occurs twice in an operand takes its diagonal; ... stands for axes that broadcast. Labels that the part
    behind -> does not name are summed; without that part the result has the labels that occur once, in alphabetical
    order. Operands are contracted from left to right, whatever `optimize` says. NumPy's form without an equation is
    einsum(x, [0, 1], y, [1], [0]). `precision` is as in matmul.

    >>> compute.einsum("ij,j->i", compute.asarray([[1, 2], [3, 4]]), [1, 1])
    Array([3, 7], dtype=int64)
    """
    if not isinstance(equation, str):
        equation, operands = _equation(equation, *operands)
    elif len(operands) == 1 and isinstance(operands[0], (list, tuple)) and ("," in equation or isinstance(operands[0][0], Array)):
        operands = operands[0]  # a list of operands, as PyTorch takes it
    return _ops.einsum(*arrays_of(*operands), equation=equation, precision=precision)
