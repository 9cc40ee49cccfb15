# SPDX-License-Identifier: Apache-2.0
"""Branches, assertions, and ops that contain graphs."""
from __future__ import annotations

from pytensor.compile.builders import OpFromGraph
from pytensor.graph.basic import Constant
from pytensor.ifelse import IfElse
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.type import TensorType

from ..lowering import DEVICE, HOST, Lowered, lowers
from ..transfer import GpuFromHost, HostFromGpu
from ..values import copied


@lowers(IfElse)
def _if_else(op, node, placed):
    """Where each result is; program.py writes the branches."""
    n = op.n_outs
    places = []
    for i in range(n):
        both = (node.inputs[1 + i], node.inputs[1 + n + i])
        is_tensor = isinstance(node.outputs[i].type, TensorType)
        places.append(DEVICE if is_tensor and any(not isinstance(x, Constant) and placed.placed(x) == DEVICE for x in both) else HOST)
    return Lowered(None, [HOST, *places, *places], places, is_planned=all(place == HOST for place in places))


@lowers(CheckAndRaise)
def _check(op, node, placed):
    place = placed.placed(node.inputs[0])
    kind, message = op.exc_type, op.msg

    def run(x, *conditions):
        if not all(conditions):
            raise kind(message)
        return x
    return Lowered(run, [place, *[HOST] * (len(node.inputs) - 1)], [place], is_planned=place == HOST)


@lowers(OpFromGraph)
def _graph(op, node, placed):
    from .loops import inner_program

    places = [DEVICE if isinstance(x.type, TensorType) and (x.type.ndim or placed.placed(x) == DEVICE) else HOST for x in node.inputs]
    call, gives, views = inner_program(op.fgraph, places)
    views = [i for i in views if gives[i] == DEVICE]
    is_single = len(node.outputs) == 1

    def run(*inputs):
        found = call(*inputs)
        for i in views:
            found[i] = copied(found[i])
        return found[0] if is_single else found
    return Lowered(run, places, gives)


@lowers(GpuFromHost)
def _gpu_from_host(op, node, placed):
    return Lowered(lambda x: x, [DEVICE], [DEVICE])


@lowers(HostFromGpu)
def _host_from_gpu(op, node, placed):
    return Lowered(lambda x: x, [HOST], [HOST], is_planned=True)
