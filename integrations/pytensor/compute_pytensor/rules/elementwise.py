# SPDX-License-Identifier: Apache-2.0
"""Elemwise, reductions, softmax, sorting and cumulative ops."""
from __future__ import annotations

import functools

import numpy as np
from pytensor.graph.basic import Constant
from pytensor.scalar import basic as ps
from pytensor.tensor.basic import Join, MakeVector, ScalarFromTensor, Split, TensorFromScalar
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.extra_ops import CumOp
from pytensor.tensor.math import Argmax
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.sort import ArgSortOp, SortOp
from pytensor.tensor.special import LogSoftmax, Softmax
from pytensor.tensor.subtensor import IncSubtensor, Subtensor
from pytensor.tensor.type import TensorType, discrete_dtypes

import compute as cp

from .. import report, scalars
from ..lowering import DEVICE, HOST, HostOnly, Lowered, lowers, on_device
from ..values import device, dtype_of, has_dtype, to_device, to_host

_OF_SHAPES = (DimShuffle, MakeVector, CAReduce, Subtensor, IncSubtensor, Join, Split, Reshape, SpecifyShape, ScalarFromTensor,
              TensorFromScalar, Argmax)


def may_be_on_host(op, node):
    """Whether a node whose inputs are shapes and scalars of the host is computed there."""
    if isinstance(op, ps.ScalarOp):
        return True
    tensors = [x for x in node.outputs if isinstance(x.type, TensorType)]
    if isinstance(op, Elemwise):
        are_discrete = all(x.type.dtype in discrete_dtypes for x in tensors)
        return all(x.type.ndim == 0 or (x.type.ndim == 1 and are_discrete) for x in tensors) and (
            not isinstance(op.scalar_op, ps.Composite) or (are_discrete and on_numbers(node) is not None))
    return isinstance(op, _OF_SHAPES) and all(x.type.ndim <= 1 for x in tensors)


def _by_numpy(op, inputs, outputs):
    """A function of NumPy's arrays for a scalar op, which returns a tuple; None if there is none."""
    if isinstance(op, ps.Composite):
        return _graph_by_numpy(op)
    dtype = np.dtype(outputs[0].type.dtype)
    if isinstance(op, (ps.Cast, ps.Identity)):
        return lambda x: (np.asarray(x, dtype),)
    spec = getattr(op, "nfunc_spec", None)
    function = getattr(np, spec[0], None) if spec and "." not in spec[0] else None
    if function is None or (spec[1] != len(inputs) and not isinstance(op, (ps.Add, ps.Mul))):
        return None
    if isinstance(op, (ps.Add, ps.Mul)) and len(inputs) != 2:
        return lambda *x: (np.asarray(functools.reduce(function, x), dtype),)
    return lambda *x: (np.asarray(function(*x), dtype),)


def _graph_by_numpy(op):
    steps, constants = [], {}
    for node in op.fgraph.toposort():
        function = _by_numpy(node.op, node.inputs, node.outputs)
        if function is None:
            return None
        steps.append((node, function))
        constants.update((x, np.asarray(x.data)) for x in node.inputs if isinstance(x, Constant))

    def run(*inputs):
        values = dict(constants)
        values.update(zip(op.fgraph.inputs, inputs))
        for node, function in steps:
            values.update(zip(node.outputs, function(*(values[x] for x in node.inputs))))
        return tuple(values[x] for x in op.fgraph.outputs)
    return run


def on_numbers(node):
    """A function for an Elemwise of shapes and scalars of the host, or None.

    It takes the place of PyTensor's own, which takes long for them and computes a Composite with Python's bool and int.
    """
    op = getattr(node.op, "scalar_op", None)
    if op is None or not isinstance(node.op, Elemwise) or node.op.inplace_pattern:
        return None
    function = _by_numpy(op, node.inputs, node.outputs)
    if function is None or len(node.outputs) > 1:
        return function
    return lambda *inputs: function(*inputs)[0]


def _broadcast_check(node, inputs):
    """A function that raises where an extent of 1 is repeated that PyTensor does not know to be 1; None if that cannot be.

    `inputs` are what the function takes: the node's inputs, or what has no leading axes of extent 1 that they have.
    """
    ndim = node.outputs[0].type.ndim
    places = []
    for axis in range(ndim):
        of_axis = [(i, axis - ndim) for i, x in enumerate(node.inputs) if not x.type.broadcastable[axis]]
        of_axis = [(i, at) for i, at in of_axis if -at <= inputs[i].type.ndim]
        if len(of_axis) > 1:
            places.append(of_axis)
    if not places:
        return None

    def check(values):
        for of_axis in places:
            extents = [values[i].shape[at] for i, at in of_axis]
            if 1 in extents and any(extent != 1 for extent in extents):
                raise ValueError("Runtime broadcasting not allowed. At least one input has a distinct dimension length of 1, but was not "
                                 "marked as broadcastable.\nIf broadcasting was intended, use `specify_broadcastable` on the relevant input.")
    return check


def _without_leading_axes(node):
    """The node's inputs, without leading axes that a node adds to them: operands of expressions broadcast."""
    found = []
    for x in node.inputs:
        while x.owner is not None and isinstance(x.owner.op, DimShuffle) and x.owner.op.is_left_expand_dims:
            x = x.owner.inputs[0]
        found.append(x)
    return found


def _number(x):
    """The value of a scalar of the host, as an operand of an expression."""
    return x.item() if hasattr(x, "item") else x


def _split_by_place(node, inputs, placed):
    """Which inputs are numbers: values without axes that are on the host. At least one input is an array."""
    ndim = node.outputs[0].type.ndim
    numbers = [x.type.ndim == 0 and placed.placed(x) == HOST and x.type.dtype in ("float32", "float64", "int64", "int32", "int16",
                                                                                 "int8", "uint8", "uint16", "uint32", "bool", "float16")
               for x in inputs]
    if all(numbers):
        numbers = [False] * len(numbers)
    elif not any(not is_number and (placed.placed(x) == DEVICE or x.type.ndim == ndim) for x, is_number in zip(inputs, numbers)):
        numbers = [False] * len(numbers)
    return numbers


def _check_text(text):
    """Raises HostOnly if a text converts to a dtype that the device does not have."""
    for dtype in ("float64", "complex128", "float16"):
        if dtype in text and not has_dtype(dtype):
            raise HostOnly(f"{device().name} has no {dtype}")


@lowers(Elemwise)
def _elemwise(op, node, placed):
    dtypes, outs = [x.type.dtype for x in node.inputs], [x.type.dtype for x in node.outputs]
    given = _without_leading_axes(node)
    if max(x.type.ndim for x in given) < node.outputs[0].type.ndim or op.inplace_pattern:
        given = list(node.inputs)
    check, is_number = _broadcast_check(node, given), _split_by_place(node, given, placed)
    number_at = [i for i, one in enumerate(is_number) if one]
    try:
        text, names = scalars.of_node(op.scalar_op, dtypes, outs, number_at)
    except scalars.Unsupported as error:
        if isinstance(op.scalar_op, ps.Composite):
            return _in_stages(op, node, _broadcast_check(node, node.inputs))
        raise HostOnly(f"expressions have no {error}") from None
    _check_text(text)
    evaluate = cp.Expression(text, *names).evaluator(*(names[i] for i in number_at))
    array_at = [i for i, one in enumerate(is_number) if not one]
    is_single = len(outs) == 1

    if number_at:
        def run(*inputs):
            if check is not None:
                check(inputs)
            found = evaluate([inputs[i] for i in array_at], [_number(inputs[i]) for i in number_at], None)
            return found[0] if is_single else found
    elif sorted(op.inplace_pattern) == list(range(len(outs))):
        into = [op.inplace_pattern[i] for i in range(len(outs))]

        def run(*inputs):
            if check is not None:
                check(inputs)
            found = evaluate(inputs, (), tuple(inputs[i] for i in into))
            return found[0] if is_single else found
    elif is_single and check is None:
        def run(*inputs):
            return evaluate(inputs, (), None)[0]
    else:
        def run(*inputs):
            if check is not None:
                check(inputs)
            found = evaluate(inputs, (), None)
            return found[0] if is_single else found
    return Lowered(run, [HOST if one else DEVICE for one in is_number], [DEVICE] * len(outs), inputs=given)


def _in_stages(op, node, check):
    """A Composite with scalar ops that expressions do not have: those run on the host, between expressions."""
    inner = op.scalar_op.fgraph
    steps, constants = [], {}
    for one in inner.toposort():
        dtypes, outs = [x.type.dtype for x in one.inputs], [x.type.dtype for x in one.outputs]
        try:
            text, names = scalars.of_node(one.op, dtypes, outs)
            evaluate = cp.Expression(text, *names).evaluator()
            steps.append((one, lambda inputs, evaluate=evaluate: evaluate(inputs, (), None)))
        except scalars.Unsupported as error:
            count = report.node_on_host(f"Elemwise{{{type(one.op).__name__}}}", f"expressions have no {error}")
            steps.append((one, _scalar_on_host(one, count)))
        constants.update((x, to_device(np.asarray(x.data))) for x in one.inputs if isinstance(x, Constant))

    def run(*inputs):
        if check is not None:
            check(inputs)
        values = dict(constants)
        values.update(zip(inner.inputs, inputs))
        for one, step in steps:
            values.update(zip(one.outputs, step([values[x] for x in one.inputs])))
        found = tuple(values[x] for x in inner.outputs)
        return found[0] if len(found) == 1 else found
    return on_device(run, node)


def _scalar_on_host(one, count):
    """A scalar op by NumPy, over arrays."""
    op, dtypes = one.op, [x.type.dtype for x in one.outputs]
    spec = getattr(op, "nfunc_spec", None)
    function = None
    if spec is not None:
        module = np
        for part in spec[0].split("."):
            module = getattr(module, part, None)
        function = module
        if function is None and spec[0].startswith("scipy.special."):
            import scipy.special
            function = getattr(scipy.special, spec[0].rpartition(".")[2])
    if function is None:
        function = np.frompyfunc(op.impl, len(one.inputs), len(dtypes))

    def run(inputs):
        count.calls += 1
        found = function(*(to_host(x) for x in inputs))
        found = found if isinstance(found, tuple) else (found,)
        return [to_device(np.asarray(x, dtype)) for x, dtype in zip(found, dtypes)]
    return run


# ---- Reductions

_BITS = {ps.AND: "reduce_and", ps.OR: "reduce_or", ps.XOR: "reduce_xor"}
_KINDS = {ps.Add: "sum", ps.Mul: "prod", ps.Maximum: "max", ps.Minimum: "min"}


@lowers(CAReduce)
def _reduction(op, node, placed):
    (x,), out = node.inputs, node.outputs[0].type.dtype
    source, scalar = x.type.dtype, type(op.scalar_op)
    accumulated = getattr(op, "acc_dtype", None) or out
    if accumulated == "float64" and out == "float32" and not has_dtype("float64"):
        accumulated = "float32"
    before = f"convert(x0, {accumulated})" if source != accumulated else "x0"
    if scalar is scalars.MulWithoutZeros:
        kind, before = "prod", f"where(x0 == 0, convert(1, {accumulated}), {before})"
    elif scalar in (ps.AND, ps.OR) and source == "bool":
        kind, before, accumulated = ("all" if scalar is ps.AND else "any"), "x0", "bool"
    else:
        kind = _KINDS.get(scalar)
    if kind is None and scalar in _BITS and source == out:
        of_bits = getattr(cp, _BITS[scalar])
        axis = None if op.axis is None else tuple(int(one) for one in op.axis)
        return on_device(lambda x: of_bits(x, axis=axis), node)
    if kind is None:
        raise HostOnly(f"reductions have no {op.scalar_op} of {source}")
    if kind in ("min", "max"):
        if source.startswith("complex"):
            raise HostOnly(f"complex numbers have no {kind}")
        if source == "bool":
            kind, before, accumulated = ("any" if kind == "max" else "all"), "x0", "bool"
        else:
            before, accumulated = "x0", source
    elif accumulated == "bool" and kind in ("sum", "prod"):
        kind, before = ("any" if kind == "sum" else "all"), "x0"
    _check_text(f"{accumulated} {out}")
    reduce = cp.Expression(before, "x0").reducer(kind, None if accumulated == out else f"convert(x, {out})")
    axes = None if op.axis is None else [int(axis) for axis in op.axis]
    ndim = x.type.ndim
    target = dtype_of(out)
    if axes is not None:
        axes = [axis + ndim if axis < 0 else axis for axis in axes]
        if not axes:
            return on_device(lambda x: cp.astype(x, target, copy=True), node)
    is_extreme = kind in ("min", "max")

    def run(x):
        if is_extreme and not x.size and any(x.shape[i] == 0 for i in (range(ndim) if axes is None else axes)):
            raise ValueError(f"zero-size array to reduction operation {kind}imum which has no identity")
        found = reduce((x,), (), axes, False)
        return found if found.dtype is target else cp.astype(found, target)
    return on_device(run, node)


@lowers(Argmax)
def _argmax(op, node, placed):
    ndim = node.inputs[0].type.ndim
    if node.inputs[0].type.dtype.startswith("complex"):
        raise HostOnly("complex numbers have no argmax")
    axes = tuple(range(ndim)) if op.axis is None else tuple(int(axis) for axis in op.axis)
    keep = tuple(i for i in range(ndim) if i not in axes)
    if len(axes) == 1:
        return on_device(lambda x: cp.argmax(x, axis=axes[0]), node)

    def run(x):
        x = cp.permute_dims(x, (*keep, *axes))
        return cp.argmax(cp.reshape(x, (*x.shape[:len(keep)], -1)), axis=-1)
    return on_device(run, node)


@lowers(Softmax, LogSoftmax)
def _softmax(op, node, placed):
    function = cp.nn.softmax if isinstance(op, Softmax) else cp.nn.log_softmax
    axis = op.axis
    if axis is None or isinstance(axis, (tuple, list)):
        axes = tuple(range(node.inputs[0].type.ndim)) if axis is None else tuple(axis)
        if len(axes) != 1:
            if len(axes) != node.inputs[0].type.ndim:
                raise HostOnly("softmax over several axes")
            return on_device(lambda x: cp.reshape(function(cp.reshape(x, (-1,)), axis=0), x.shape), node)
        axis = axes[0]
    axis = int(axis)
    return on_device(lambda x: function(x, axis=axis), node)


# ---- Sorting and cumulative ops

def _no_complex(node):
    if node.inputs[0].type.dtype.startswith("complex"):
        raise HostOnly("complex numbers have no order")


@lowers(SortOp)
def _sort(op, node, placed):
    _no_complex(node)
    return Lowered(lambda x, axis: cp.sort(x, axis=int(axis)), [DEVICE, HOST], [DEVICE])


@lowers(ArgSortOp)
def _argsort(op, node, placed):
    _no_complex(node)
    return Lowered(lambda x, axis: cp.argsort(x, axis=int(axis), stable=True), [DEVICE, HOST], [DEVICE])


@lowers(CumOp)
def _cumulative(op, node, placed):
    function = cp.cumulative_sum if op.mode == "add" else cp.cumulative_prod
    target, axis = dtype_of(node.outputs[0].type.dtype), op.axis
    if node.inputs[0].type.dtype == "bool":
        raise HostOnly("cumulative ops of bool")

    def run(x):
        if axis is None:
            x = cp.reshape(x, (-1,))
        return function(x, axis=0 if axis is None else axis, dtype=target)
    return on_device(run, node)

