# SPDX-License-Identifier: Apache-2.0
"""Shapes, views, joins and new arrays."""
from __future__ import annotations

import numpy as np
from pytensor.compile.ops import DeepCopyOp, TypeCastingOp, ViewOp
from pytensor.tensor.basic import (Alloc, AllocEmpty, ARange, ExtractDiag, Eye, Join, MakeVector, ScalarFromTensor, Split,
                                   TensorFromScalar)
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.extra_ops import Repeat, SearchsortedOp
from pytensor.tensor.math import Dot
from pytensor.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape
from pytensor.tensor.type import TensorType

import compute as cp

from ..lowering import ANY, DEVICE, HOST, HostOnly, Lowered, lowers, on_device
from ..values import copied, device, dtype_of, to_device


def _shape_of(values):
    return tuple(int(x) for x in values)


@lowers(Shape)
def _shape(op, node, placed):
    if not isinstance(node.inputs[0].type, TensorType):
        raise HostOnly("a value that is no tensor")
    return Lowered(lambda x: np.array(np.shape(x) if not hasattr(x, "shape") else x.shape, "int64"), [ANY], [HOST], is_planned=True)


@lowers(Shape_i)
def _extent(op, node, placed):
    if not isinstance(node.inputs[0].type, TensorType):
        raise HostOnly("a value that is no tensor")
    i = op.i
    return Lowered(lambda x: np.array(x.shape[i], "int64"), [ANY], [HOST], is_planned=True)


@lowers(SpecifyShape)
def _specify(op, node, placed):
    x, *shape = node.inputs
    if not isinstance(x.type, TensorType):
        raise HostOnly("a value that is no tensor")
    is_given = [isinstance(one.type, TensorType) or getattr(one.type, "dtype", None) is not None for one in shape]
    place = placed.placed(x)

    def run(x, *shape):
        if len(shape) != len(x.shape):
            raise AssertionError(f"SpecifyShape: Got {len(x.shape)} dimensions (shape {x.shape}), expected {len(shape)}.")
        if not all(not given or one is None or int(one) == have for given, one, have in zip(is_given, shape, x.shape)):
            axis, expected = next((i, int(one)) for i, (given, one, have) in enumerate(zip(is_given, shape, x.shape))
                                  if given and one is not None and int(one) != have)
            raise AssertionError(f"SpecifyShape: dim {axis} of input has shape {x.shape[axis]}, expected {expected}.")
        return x
    return Lowered(run, [place, *[HOST] * len(shape)], [place], is_planned=place == HOST)


def _vector_of(x, axis):
    """The vector to which a node adds an axis, or None."""
    op = x.owner and x.owner.op
    if isinstance(op, DimShuffle) and op.is_expand_dims and op.augment == (axis,) and op.input_ndim == 1:
        return x.owner.inputs[0]
    return None


def _product_of_vectors(op, node):
    """Products with vectors, which PyTensor writes as products of matrices whose axes of extent 1 a node drops."""
    product = node.inputs[0].owner
    if not (op.is_squeeze and product is not None and isinstance(product.op, Dot) and op.input_ndim == 2) or \
            len({x.type.dtype for x in (*product.inputs, *node.outputs)}) != 1 or node.outputs[0].type.dtype == "bool":
        return None
    x, y = product.inputs
    if 0 in op.drop:
        x = _vector_of(x, 0)
    if 1 in op.drop:
        y = _vector_of(y, 1)
    if x is None or y is None:
        return None
    return Lowered(cp.matmul, [DEVICE, DEVICE], [DEVICE], inputs=[x, y])


@lowers(DimShuffle)
def _dimshuffle(op, node, placed):
    product = _product_of_vectors(op, node)
    if product is not None:
        return product
    if op.input_ndim == 2 and op.new_order == (1, 0):
        return on_device(lambda x: x.T, node)
    order, drop = op.shuffle, op.drop
    permutation = (*order, *drop)
    permutation = None if permutation == tuple(range(len(permutation))) else permutation
    key = tuple(None if one == "x" else slice(None) for one in op.new_order) + (0,) * len(drop)
    key = None if all(one == slice(None) for one in key) else key

    def run(x):
        for axis in drop:
            if x.shape[axis] != 1:
                raise ValueError(f"cannot drop axis {axis} of extent {x.shape[axis]} of an array of shape {x.shape}")
        if permutation is not None:
            x = cp.permute_dims(x, permutation)
        return x if key is None else x[key]
    return on_device(run, node)


@lowers(Reshape)
def _reshape(op, node, placed):
    ndim = op.ndim

    def run(x, shape):
        if len(shape) != ndim:
            raise ValueError(f"shape argument to Reshape has incorrect length {len(shape)}, should be {ndim}")
        return cp.reshape(x, _shape_of(shape))
    return Lowered(run, [DEVICE, HOST], [DEVICE])


def _optional(module, name):
    try:
        return getattr(__import__(module, fromlist=[name]), name)
    except (ImportError, AttributeError):
        return None


JoinDims, SplitDims = _optional("pytensor.tensor.reshape", "JoinDims"), _optional("pytensor.tensor.reshape", "SplitDims")
if JoinDims is not None:
    @lowers(JoinDims)
    def _join_dims(op, node, placed):
        start, count = op.start_axis, op.n_axes

        def run(x):
            inner = 1
            for extent in x.shape[start:start + count]:
                inner *= extent
            return cp.reshape(x, (*x.shape[:start], inner, *x.shape[start + count:]))
        return on_device(run, node)

    @lowers(SplitDims)
    def _split_dims(op, node, placed):
        axis = op.axis

        def run(x, shape):
            return cp.reshape(x, (*x.shape[:axis], *_shape_of(shape), *x.shape[axis + 1:]))
        return Lowered(run, [DEVICE, HOST], [DEVICE])


@lowers(Join)
def _join(op, node, placed):
    target = dtype_of(node.outputs[0].type.dtype)
    has_axis = len(node.inputs) > 1 and node.inputs[0].type.ndim == 0 and not hasattr(op, "axis")
    wants = [DEVICE] * len(node.inputs)
    if has_axis:
        wants[0] = HOST

    def run(axis, *arrays):
        return cp.concat([x if x.dtype is target else cp.astype(x, target) for x in arrays], axis=int(axis))
    if has_axis:
        return Lowered(run, wants, [DEVICE])
    fixed = op.axis
    return Lowered(lambda *arrays: run(fixed, *arrays), wants, [DEVICE])


@lowers(Split)
def _split(op, node, placed):
    count, is_view = op.len_splits, bool(getattr(op, "view_map", None))

    def run(x, axis, sizes):
        axis, sizes = int(axis), _shape_of(sizes)
        axis += x.ndim if axis < 0 else 0
        if len(sizes) != count:
            raise ValueError(f"Length of splits is not equal to n_splits: {len(sizes)} and {count}")
        if sum(sizes) != x.shape[axis]:
            raise ValueError(f"Split sizes sum to {sum(sizes)}; expected {x.shape[axis]}")
        if any(size < 0 for size in sizes):
            raise ValueError("Split sizes cannot be negative")
        found, at, key = [], 0, (slice(None),) * axis
        for size in sizes:
            part = x[(*key, slice(at, at + size))]
            found.append(part if is_view else copied(part))
            at += size
        return found[0] if count == 1 else found
    return Lowered(run, [DEVICE, HOST, HOST], [DEVICE] * count)


@lowers(Alloc)
def _alloc(op, node, placed):
    x = node.inputs[0]
    dtype = dtype_of(x.type.dtype)
    is_number = x.type.ndim == 0 and placed.placed(x) == HOST
    bcast = x.type.broadcastable

    def run(value, *shape):
        shape = _shape_of(shape)
        if is_number:
            return cp.full(shape, np.asarray(value).item(), dtype=dtype, device=device())
        for i, (extent, known) in enumerate(zip(reversed(value.shape), reversed(bcast))):
            if extent == 1 and not known and shape[len(shape) - 1 - i] != 1:
                raise ValueError(Alloc._runtime_broadcast_error_msg)
        try:
            return cp.asarray(cp.broadcast_to(value, shape), copy=True)
        except ValueError:
            given, wanted = (str(one).replace(" ", "") for one in (tuple(value.shape), shape))
            raise ValueError(f"could not broadcast input array from shape {given} into shape {wanted}") from None
    return Lowered(run, [HOST if is_number else DEVICE, *[HOST] * (len(node.inputs) - 1)], [DEVICE])


@lowers(AllocEmpty)
def _alloc_empty(op, node, placed):
    dtype = dtype_of(op.dtype)
    return Lowered(lambda *shape: cp.empty(_shape_of(shape), dtype=dtype, device=device()), [HOST] * len(node.inputs), [DEVICE])


@lowers(Eye)
def _eye(op, node, placed):
    dtype = dtype_of(op.dtype)
    return Lowered(lambda n, m, k: cp.eye(int(n), int(m), k=int(k), dtype=dtype, device=device()), [HOST] * 3, [DEVICE])


@lowers(ARange)
def _arange(op, node, placed):
    # Loops and indices read the integers on the host. Writing them there costs less than reading them from a device.
    dtype = op.dtype
    return Lowered(lambda start, stop, step: np.arange(start.item(), stop.item(), step.item(), dtype=dtype), [HOST] * 3, [HOST],
                   is_planned=True)


@lowers(MakeVector)
def _make_vector(op, node, placed):
    dtype = dtype_of(op.dtype)

    def run(*values):
        return cp.stack([cp.astype(x, dtype, copy=False) for x in values])
    return on_device(run, node)


@lowers(ExtractDiag)
def _diagonal(op, node, placed):
    offset, axis1, axis2, is_view = op.offset, op.axis1, op.axis2, bool(getattr(op, "view_map", None))

    def run(x):
        first, second = axis1 % x.ndim, axis2 % x.ndim
        rest = [i for i in range(x.ndim) if i not in (first, second)]
        found = cp.linalg.diagonal(cp.permute_dims(x, (*rest, first, second)), offset=offset)
        return found if is_view else copied(found)
    return on_device(run, node)


@lowers(TensorFromScalar)
def _tensor_from_scalar(op, node, placed):
    dtype = node.outputs[0].type.dtype
    return Lowered(lambda x: np.asarray(x, dtype), [HOST], [HOST], is_planned=True)


@lowers(ScalarFromTensor)
def _scalar_from_tensor(op, node, placed):
    return Lowered(lambda x: np.asarray(x).flatten()[0], [HOST], [HOST], is_planned=True)


@lowers(DeepCopyOp)
def _deep_copy(op, node, placed):
    x = node.inputs[0]
    if not isinstance(x.type, TensorType) or placed.placed(x) == HOST:
        from ..program import perform
        return Lowered(perform(node), [HOST], [HOST], is_planned=True)
    return on_device(lambda x: cp.asarray(x, copy=True), node)


@lowers(ViewOp, TypeCastingOp)
def _view(op, node, placed):
    place = placed.placed(node.inputs[0])
    if len(node.inputs) != 1:
        raise HostOnly("a cast of several values")
    return Lowered(lambda x: x, [place], [place], is_planned=place == HOST)


@lowers(Repeat)
def _repeat(op, node, placed):
    axis = op.axis
    is_number = node.inputs[1].type.ndim == 0

    def run(x, repeats):
        if is_number:
            return cp.repeat(x, int(repeats), axis=axis)
        return cp.repeat(x, to_device(np.asarray(repeats, "int64")), axis=axis)
    return Lowered(run, [DEVICE, HOST], [DEVICE])


@lowers(SearchsortedOp)
def _searchsorted(op, node, placed):
    if len(node.inputs) != 2 or any(x.type.dtype.startswith("complex") for x in node.inputs) or \
            node.inputs[0].type.dtype != node.inputs[1].type.dtype:
        raise HostOnly("searchsorted with a sorter or of several dtypes")
    side = op.side
    target = dtype_of(node.outputs[0].type.dtype)
    return on_device(lambda x, values: cp.astype(cp.searchsorted(x, values, side=side), target, copy=False), node)

