# SPDX-License-Identifier: Apache-2.0
"""Control flow, slices, scatters, and the shapes and dtypes that functions give."""
from __future__ import annotations

import builtins
import contextlib
import functools
import math
import threading

import compute as cp
import numpy as np
from compute import grad
from keras.src import tree
from keras.src.backend.common.backend_utils import slice_along_axis
from keras.src.backend.common.keras_tensor import KerasTensor
from keras.src.backend.common.stateless_scope import StatelessScope
from keras.src.backend.common.symbolic_scope import SymbolicScope, in_symbolic_scope
from keras.src.backend.common.variables import standardize_dtype

from ..sparse import SparseTensor
from ..variable import (IS_THREAD_SAFE, SUPPORTS_COMPLEX_DTYPES, SUPPORTS_RAGGED_TENSORS, SUPPORTS_SPARSE_TENSORS, TENSORS,
                        Variable, cast, convert_to_numpy, convert_to_tensor, device_scope, dtype_of, is_tensor, shape)

# ---- Shapes without computing ----------------------------------------------------------------------------------------


_idle = threading.local()  # the stream of this thread's last recording


@contextlib.contextmanager
def _recording():
    """Records on a stream of the default device that is kept for the next recording."""
    device = cp.device()
    stream, _idle.stream = getattr(_idle, "stream", None), None
    if stream is None or stream.device is not device:
        stream = cp.stream(device)
    with cp.graph.record(stream=stream) as graph:
        yield graph
    _idle.stream = stream


def _spec(fn, args, kwargs, extent):
    """What fn gives as KerasTensors, where unknown extents are `extent`."""

    def tensor(x):
        if not isinstance(x, KerasTensor):
            return x
        shape = [extent if n is None else n for n in x.shape]
        if x.sparse:
            return SparseTensor(np.zeros(0, np.int64), cp.zeros((0,), dtype=dtype_of(x.dtype)), shape)
        return cp.zeros(shape, dtype=dtype_of(x.dtype))

    def run():
        given, named = tree.map_structure(tensor, (args, kwargs))
        return tree.map_structure(lambda x: KerasTensor(x.shape, standardize_dtype(x.dtype), sparse=isinstance(x, SparseTensor))
                                  if is_tensor(x) else x, fn(*given, **named))

    try:
        with _recording():  # computes nothing; the recording is dropped
            return run()
    except Exception:  # fn reads values, or is wrong; Keras turns errors of layers into others
        return run()


# Pairs that stand in the place of unknown extents: extents of the outputs in which they differ are unknown, too. Recorded
# outputs have memory, so smaller ones are tried first where a tensor would have more than _MOST elements.
_EXTENTS = ((83, 89), (31, 61), (11, 23))
_MOST = 2 ** 24


def _pairs(shapes):
    """The pairs to try, in order."""
    most = [builtins.max(math.prod(pair[1] if n is None else n for n in shape) for shape in shapes) for pair in _EXTENTS]
    first = next((pair for pair, size in zip(_EXTENTS, most) if size <= _MOST), _EXTENTS[-1])
    return [first] if first is _EXTENTS[0] else [first, _EXTENTS[0]]


def compute_output_spec(fn, *args, **kwargs):
    shapes = [x.shape for x in tree.flatten((args, kwargs)) if isinstance(x, KerasTensor)]
    with StatelessScope(), SymbolicScope():
        if not builtins.any(None in shape for shape in shapes):
            return _spec(fn, args, kwargs, 1)
        pairs = _pairs(shapes)
        for pair in pairs:
            try:
                outputs, others = (_spec(fn, args, kwargs, extent) for extent in pair)
                break
            except Exception:  # such as a window that is larger than the extent
                if pair is pairs[-1]:
                    raise

        def merged(x, y):
            if not isinstance(x, KerasTensor):
                return x
            return KerasTensor([n if n == m else None for n, m in zip(x.shape, y.shape)], x.dtype, sparse=x.sparse)

        flat = [merged(x, y) for x, y in zip(tree.flatten(outputs), tree.flatten(others))]
        return tree.pack_sequence_as(outputs, flat)


# ---- Control flow ----------------------------------------------------------------------------------------------------


def cond(pred, true_fn, false_fn):
    if isinstance(pred, Variable):
        pred = pred.value
    if in_symbolic_scope() and is_tensor(pred):
        return true_fn()
    return true_fn() if pred else false_fn()


def vectorized_map(function, elements):
    parts = [convert_to_tensor(x) for x in tree.flatten(elements)]
    results = [function(tree.pack_sequence_as(elements, [x[i] for x in parts])) for i in range(parts[0].shape[0])]
    return tree.map_structure(lambda *xs: cp.stack([convert_to_tensor(x) for x in xs]), *results)


def map(f, xs):
    return scan(lambda _, x: ((), f(x)), (), xs)[1]


def scan(f, init, xs=None, length=None, reverse=False, unroll=1):
    if not callable(f):
        raise TypeError(f"`f` should be a callable. Received: f={f}")
    if not isinstance(unroll, bool) and (not isinstance(unroll, int) or unroll < 1):
        raise ValueError(f"`unroll` must be an positive integer or boolean. Received: unroll={unroll}")
    if xs is None and length is None:
        raise ValueError("Got no `xs` to scan over and `length` not provided.")
    xs_flat = [] if xs is None else [convert_to_tensor(x) for x in tree.flatten(xs)]
    n = int(length) if length is not None else xs_flat[0].shape[0]
    init_flat = [convert_to_tensor(x) for x in tree.flatten(init)]
    carry = tree.pack_sequence_as(init, init_flat) if tree.is_nested(init) else init_flat[0]
    dummy = [cp.zeros_like(x) for x in init_flat]
    ys = []
    for i in reversed(range(n)) if reverse else range(n):
        parts = [x[i] for x in xs_flat]
        packed = None if not parts else tree.pack_sequence_as(xs, parts) if tree.is_nested(xs) else parts[0]
        carry, y = f(carry, packed)
        ys.append(dummy if y is None else y)
    if reverse:
        ys.reverse()
    return carry, tree.map_structure(lambda *parts: cp.stack([convert_to_tensor(y) for y in parts]), *ys)


def associative_scan(f, elems, reverse=False, axis=0):
    if not callable(f):
        raise TypeError(f"`f` should be a callable. Received: f={f}")
    flat = [convert_to_tensor(x) for x in tree.flatten(elems)]
    if reverse:
        flat = [cp.flip(x, axis=axis) for x in flat]
    count = flat[0].shape[axis]
    if not builtins.all(x.shape[axis] == count for x in flat[1:]):
        raise ValueError("Array inputs to associative_scan must have the same first dimension. "
                         f"(saw: {[x.shape for x in flat]})")

    def combine(a, b):
        return tree.flatten(f(tree.pack_sequence_as(elems, a), tree.pack_sequence_as(elems, b)))

    def part(xs, start, stop=None, step=1):
        return [slice_along_axis(x, start, stop, step, axis) for x in xs]

    def interleaved(even, odd):
        at = axis % even.ndim
        both = cp.stack([slice_along_axis(even, 0, odd.shape[at], axis=at), odd], axis=at + 1)
        both = cp.reshape(both, (*even.shape[:at], 2 * odd.shape[at], *even.shape[at + 1:]))
        if even.shape[at] == odd.shape[at]:
            return both
        return cp.concat([both, slice_along_axis(even, odd.shape[at], None, axis=at)], axis=at)

    def scanned(xs):
        n = xs[0].shape[axis]
        if n < 2:
            return xs
        odd = scanned(combine(part(xs, 0, -1, 2), part(xs, 1, None, 2)))
        even = combine(part(odd, 0, -1) if n % 2 == 0 else odd, part(xs, 2, None, 2))
        even = [cp.concat([first, rest], axis=axis) for first, rest in zip(part(xs, 0, 1), even)]
        return [interleaved(x, y) for x, y in zip(even, odd)]

    found = scanned(flat)
    if reverse:
        found = [cp.flip(x, axis=axis) for x in found]
    return tree.pack_sequence_as(elems, found)


def switch(index, branches, *operands):
    index = int(convert_to_tensor(index, "int32"))
    return branches[builtins.min(builtins.max(index, 0), len(branches) - 1)](*operands)


def while_loop(cond, body, loop_vars, maximum_iterations=None):
    is_sequence = isinstance(loop_vars, (tuple, list))
    values = tree.map_structure(convert_to_tensor, tuple(loop_vars) if is_sequence else (loop_vars,))
    count = 0
    while (maximum_iterations is None or count < maximum_iterations) and cond(*values):
        values = body(*values)
        values = tuple(values) if isinstance(values, (list, tuple)) else (values,)
        count += 1
    return values if is_sequence else values[0]


def fori_loop(lower, upper, body_fun, init_val):
    value = init_val
    for i in range(int(lower), int(upper)):
        value = body_fun(i, value)
    return value


# ---- Parts and places ------------------------------------------------------------------------------------------------


def scatter(indices, values, shape):
    values = convert_to_tensor(values)
    zeros = cp.zeros([int(n) for n in shape], dtype=values.dtype)
    return cp.scatter_nd(zeros, convert_to_tensor(indices, "int64"), values, reduction="add")


def scatter_update(inputs, indices, updates, reduction=None):
    inputs = convert_to_tensor(inputs)
    if reduction not in (None, "add", "max", "min", "mul"):
        raise ValueError(f"Unsupported reduction: {reduction}")
    return cp.scatter_nd(inputs, convert_to_tensor(indices, "int64"), cast(updates, inputs.dtype),
                         reduction=reduction or "set")


def _ranges(starts, extents):
    return tuple(builtins.slice(int(start), int(start) + int(extent)) for start, extent in zip(starts, extents))


def slice(inputs, start_indices, shape):
    if len(start_indices) != len(shape):
        raise ValueError("Length of `start_indices` must match length of `shape`. "
                         f"Received: start_indices={start_indices}, shape={shape}")
    return convert_to_tensor(inputs)[_ranges(start_indices, shape)]


def slice_update(inputs, start_indices, updates):
    inputs = convert_to_tensor(inputs)
    updates = cast(updates, inputs.dtype)
    where = _ranges(start_indices, updates.shape)
    if isinstance(inputs, cp.Array) and isinstance(updates, cp.Array):
        outputs = cp.copy(inputs)
        outputs[where] = updates
        return outputs
    places = cp.reshape(cp.arange(inputs.size, device=inputs.device), inputs.shape)[where]
    flat = cp.scatter_nd(cp.reshape(inputs, (-1,)), cp.reshape(places, (-1, 1)), cp.reshape(updates, (-1,)))
    return cp.reshape(flat, inputs.shape)


def unstack(x, num=None, axis=0):
    return list(cp.unstack(convert_to_tensor(x), axis=axis))


# ---- Gradients -------------------------------------------------------------------------------------------------------


def stop_gradient(variable):
    return grad.constant(convert_to_tensor(variable))


class custom_gradient:
    """A function that returns its value and a function that gives the gradients of its arguments."""

    def __init__(self, fun):
        self.fun = fun
        functools.update_wrapper(self, fun)

    def __get__(self, owner, kind=None):
        return self if owner is None else functools.partial(self, owner)

    def __call__(self, *args, **kwargs):
        args = [x.value if isinstance(x, Variable) else x for x in args]
        outputs, gradient = self.fun(*[grad.constant(x) for x in args], **kwargs)
        sources = tuple(x if isinstance(x, grad.Variable) else None for x in args)
        if not builtins.any(source is not None for source in sources):
            return outputs

        def backward(dy):
            found = gradient(dy) if not args else gradient(*[grad.constant(x) for x in args], upstream=dy)
            found = list(found) if isinstance(found, (list, tuple)) else [found]
            return [None if x is None else convert_to_tensor(x) for x in found]

        return tree.map_structure(lambda y: grad.Variable(grad.constant(y), sources, backward, "custom_gradient"), outputs)


def remat(f):
    return f


def random_seed_dtype():
    return "uint32"
