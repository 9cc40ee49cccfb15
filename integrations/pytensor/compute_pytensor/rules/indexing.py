# SPDX-License-Identifier: Apache-2.0
"""Subtensors, and writes into them."""
from __future__ import annotations

import math

from pytensor.graph.basic import Constant
from pytensor.tensor.subtensor import (AdvancedIncSubtensor, AdvancedIncSubtensor1, AdvancedSubtensor, AdvancedSubtensor1,
                                       IncSubtensor, Subtensor)
from pytensor.tensor.type import TensorType

import compute as cp

from ..lowering import DEVICE, HOST, Lowered, lowers


def _is_entry(entry):
    """Whether an entry of an idx_list stands for one of the node's inputs: a number or, in older versions, a type."""
    return entry is not None and not isinstance(entry, slice)


def _keys(idx_list, values):
    """The index tuple of an idx_list with the values of the inputs."""
    values = iter(values)

    def one(entry):
        return next(values) if _is_entry(entry) else None
    return tuple(slice(one(entry.start), one(entry.stop), one(entry.step)) if isinstance(entry, slice) else next(values)
                 for entry in idx_list)


def _integer(x):
    return None if x is None else int(x)


def _plain(key):
    """A basic index whose parts are integers of Python."""
    return tuple(slice(_integer(one.start), _integer(one.stop), _integer(one.step)) if isinstance(one, slice) else int(one)
                 for one in key)


def _constant_key(op, values):
    """The index of a node whose index inputs are all constants, else None."""
    if all(isinstance(x, Constant) for x in values):
        return _plain(_keys(op.idx_list, [x.data for x in values]))
    return None


@lowers(Subtensor)
def _subtensor(op, node, placed):
    wants = [DEVICE, *[HOST] * (len(node.inputs) - 1)]
    fixed, idx_list = _constant_key(op, node.inputs[1:]), op.idx_list
    if fixed is not None:
        return Lowered(lambda x, *_: x[fixed], wants, [DEVICE])
    return Lowered(lambda x, *values: x[_plain(_keys(idx_list, values))], wants, [DEVICE])


def _like(y, x):
    """`y` in the dtype of `x`."""
    return y if y.dtype is x.dtype else cp.astype(y, x.dtype)


_add = cp.Expression("x + y", "x", "y").evaluator()
_or = cp.Expression("x | y", "x", "y").evaluator()


def _increase(view, y):
    (_or if view.dtype is cp.bool else _add)((view, y), (), (view,))


@lowers(IncSubtensor)
def _inc_subtensor(op, node, placed):
    wants = [DEVICE, DEVICE, *[HOST] * (len(node.inputs) - 2)]
    fixed, idx_list, is_set, is_inplace = _constant_key(op, node.inputs[2:]), op.idx_list, op.set_instead_of_inc, op.inplace

    def run(x, y, *values):
        key = _plain(_keys(idx_list, values)) if fixed is None else fixed
        if not is_inplace:
            x = cp.asarray(x, copy=True)
        y = _like(y, x)
        if is_set:
            x[key] = y
        else:
            view = x[key] if key else x
            if view.size:
                _increase(view, y)
        return x
    return Lowered(run, wants, [DEVICE])


# ---- Arrays as indices

def _indices(op, node, count):
    """The idx_list of a node whose indices are its inputs from `count` on, and where the values are wanted."""
    given = node.inputs[count:]
    idx_list = getattr(op, "idx_list", None) or (0,) * len(given)
    wants = [DEVICE if isinstance(x.type, TensorType) and x.type.ndim > 0 else HOST for x in given]
    return idx_list, wants


def _advanced(key):
    return tuple(slice(_integer(one.start), _integer(one.stop), _integer(one.step)) if isinstance(one, slice) else
                 one if one is None or isinstance(one, cp.Array) else int(one) for one in key)


@lowers(AdvancedSubtensor1)
def _take(op, node, placed):
    return Lowered(lambda x, i: x[i], [DEVICE, DEVICE], [DEVICE])


@lowers(AdvancedSubtensor)
def _advanced_subtensor(op, node, placed):
    idx_list, wants = _indices(op, node, 1)

    def run(x, *values):
        key = _advanced(_keys(idx_list, values))
        found = x[key]
        return found if any(isinstance(one, cp.Array) for one in key) else cp.asarray(found, copy=True)
    return Lowered(run, [DEVICE, *wants], [DEVICE])


def _added(x, key, y):
    """`x` plus `y` at the places of the index, of which each adds as often as it is named."""
    places = cp.reshape(cp.arange(math.prod(x.shape), device=x.device), x.shape)[key]
    y = cp.reshape(cp.broadcast_to(y, places.shape), (-1,))
    flat = cp.scatter(cp.reshape(x, (-1,)), cp.reshape(places, (-1,)), y, axis=0, reduction="add")
    return cp.reshape(flat, x.shape)


def _scattered(x, key, y, is_set, is_inplace):
    if is_set:
        x = x if is_inplace else cp.asarray(x, copy=True)
        x[key] = y
        return x
    found = _added(x, key, y)
    if is_inplace:
        x[...] = found
        return x
    return found


@lowers(AdvancedIncSubtensor1)
def _advanced_inc_subtensor1(op, node, placed):
    is_set, is_inplace = op.set_instead_of_inc, op.inplace
    known = node.inputs[1].type.broadcastable

    def run(x, y, i):
        for k in range(min(y.ndim, x.ndim)):
            extent, of_x = y.shape[y.ndim - 1 - k], (i.shape[0] if k == x.ndim - 1 else x.shape[x.ndim - 1 - k])
            if extent == 1 and of_x != 1 and not known[y.ndim - 1 - k]:
                raise ValueError(AdvancedIncSubtensor1._runtime_broadcast_error_msg)
        y = _like(y, x)
        if is_set or x.dtype is cp.bool:
            return _scattered(x, (i,), y, is_set, is_inplace)
        y = cp.broadcast_to(y, (i.shape[0], *x.shape[1:]))
        if x.ndim == 1:
            found = cp.scatter(x, _from_start(i, x.shape[0]), y, axis=0, reduction="add")
        else:
            found = cp.scatter_nd(x, cp.reshape(_from_start(i, x.shape[0]), (-1, 1)), y, reduction="add")
        if is_inplace:
            x[...] = found
            return x
        return found
    return Lowered(run, [DEVICE] * 3, [DEVICE])


# An index that is out of range stays so: what is less than -n becomes n.
_wrap = cp.Expression("k = convert(i, int64); where(k < 0, where(k + n < 0, convert(n, int64), k + n), k)", "i", "n").evaluator("n")


def _from_start(i, extent):
    """Indices that count from the start; negative ones count from the end."""
    return _wrap((i,), (extent,), None)[0]


@lowers(AdvancedIncSubtensor)
def _advanced_inc_subtensor(op, node, placed):
    is_set, is_inplace, is_once = op.set_instead_of_inc, op.inplace, op.ignore_duplicates
    idx_list, wants = _indices(op, node, 2)

    def run(x, y, *values):
        key, y = _advanced(_keys(idx_list, values)), _like(y, x)
        if is_once and not is_set:
            return _scattered(x, key, _add((x[key], y), (), None)[0], True, is_inplace)
        return _scattered(x, key, y, is_set, is_inplace)
    return Lowered(run, [DEVICE, DEVICE, *wants], [DEVICE])

