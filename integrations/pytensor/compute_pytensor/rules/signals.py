# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms, and convolutions of vectors."""
from __future__ import annotations

import numpy as np
from pytensor.tensor.basic import Nonzero
from pytensor.tensor.fft import IRFFTOp, RFFTOp

import compute as cp

from ..lowering import DEVICE, HOST, HostOnly, Lowered, lowers
from ..values import dtype_of


@lowers(Nonzero)
def _nonzero(op, node, placed):
    count = len(node.outputs)

    def run(x):
        found = cp.nonzero(x)
        return tuple(found) if count > 1 else found[0]
    return Lowered(run, [DEVICE], [DEVICE] * count)


def _is_real(node):
    if node.inputs[0].type.dtype not in ("float32", "float64"):
        raise HostOnly("a transform of other numbers than float32 and float64")


def _last_axes(shape):
    return tuple(range(-len(shape), 0))


@lowers(RFFTOp)
def _rfft(op, node, placed):
    _is_real(node)

    def run(x, shape):
        shape = tuple(int(extent) for extent in shape)
        found = cp.fft.rfftn(x, s=shape, axes=_last_axes(shape))
        return cp.stack([cp.real(found), cp.imag(found)], axis=-1)
    return Lowered(run, [DEVICE, HOST], [DEVICE])


@lowers(IRFFTOp)
def _irfft(op, node, placed):
    _is_real(node)
    join = cp.Expression("complex(x, y)", "x", "y").evaluator()
    target = dtype_of(node.outputs[0].type.dtype)

    def run(x, shape):
        shape = tuple(int(extent) for extent in shape)
        found = cp.fft.irfftn(join((x[..., 0], x[..., 1]), (), None)[0], s=shape, axes=_last_axes(shape))
        return cp.astype(found * float(np.prod(shape)), target, copy=False)
    return Lowered(run, [DEVICE, HOST], [DEVICE])
