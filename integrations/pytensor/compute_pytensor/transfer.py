# SPDX-License-Identifier: Apache-2.0
"""Copies between the host and the device as ops, which programs of Theano name."""
from __future__ import annotations

from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.basic import as_tensor_variable


class _Transfer(Op):
    __props__ = ()
    view_map = {0: [0]}

    def make_node(self, x):
        x = as_tensor_variable(x)
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0]

    def infer_shape(self, fgraph, node, shapes):
        return shapes

    def pullback(self, inputs, outputs, gradients):
        return list(gradients)

    def L_op(self, inputs, outputs, gradients):
        return list(gradients)

    def connection_pattern(self, node):
        return [[True]]


class GpuFromHost(_Transfer):
    """Its result stays on the device; a function that returns it returns an array of `compute`."""

    def __str__(self):
        return "GpuFromHost"


class HostFromGpu(_Transfer):
    """Its result is on the host."""

    def __str__(self):
        return "HostFromGpu"


gpu_from_host, host_from_gpu = GpuFromHost(), HostFromGpu()
