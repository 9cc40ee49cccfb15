# SPDX-License-Identifier: Apache-2.0
"""Reverse-mode differentiation.

    def loss(w, b):
        return compute.mean(compute.square(x @ w + b - y))

    value, (dw, db) = compute.grad.value_and_gradients(loss)(w, b)

The function is called with variables in the place of its arrays. Functions and expressions of this package that get a
variable record what they compute. Gradients of elementwise ops are derived by the library from their expressions.
Comparisons, argmax and the like give plain arrays, and so do float(x) and x.item() numbers, through which no gradient
passes. An op whose gradient is not known raises a TypeError. There are no gradients of gradients.

An array that a gradient needs must not be changed in place before the function has returned: a RuntimeError names the
op. Changes by recorded graphs and by other libraries that share the memory are not seen.
"""
from __future__ import annotations

import math

from . import _core, _creation, _dtypes, _functions, _numpy, _ops
from ._core import Array
from ._errors import called, hint, no_array
from ._manipulation import _axes, _axis


class Variable:
    """An array of which a gradient is wanted, or that was computed from one."""

    __array_ufunc__ = None

    def __init__(self, value, inputs=(), backward=None, name=None, needed=()):
        self.value = value
        self.inputs = inputs        # the variables that it was computed from, None for constants
        self.backward = backward    # from its gradient to those of the inputs
        self.name = name            # of the op
        self.watch = _core.watch(needed) if needed else None  # of arrays whose elements `backward` reads

    shape = property(lambda self: self.value.shape)
    dtype = property(lambda self: self.value.dtype)
    device = property(lambda self: self.value.device)
    ndim = property(lambda self: self.value.ndim)
    size = property(lambda self: self.value.size)
    itemsize = property(lambda self: self.value.itemsize)
    nbytes = property(lambda self: self.value.nbytes)

    @property
    def T(self):
        """The transpose of a variable with 2 axes."""
        self.value.T  # which raises if there are not 2
        return self.mT

    @property
    def mT(self):
        """The variable with its last two axes exchanged."""
        axes = list(range(self.ndim))
        axes[-2:] = axes[-1], axes[-2]
        return _core.permute_view(self, axes)

    def __array_namespace__(self, /, *, api_version=None):
        return self.value.__array_namespace__(api_version=api_version)

    def __getitem__(self, key):
        x = self.value
        key = tuple(_plain(one) for one in key) if isinstance(key, tuple) else _plain(key)
        if isinstance(key, Array) and key.dtype in _dtypes.INTEGERS and x.ndim > 0:
            return _ops.take(self, key, axis=0)

        def backward(dy):
            if _is_view(key):
                dx = _creation.zeros_like(x)
                dx[key] = dy
                return [dx]
            return [_added(dy, _positions(x)[key], x)]

        return Variable(x[key], (self,), backward, "an index", key if isinstance(key, tuple) else (key,))

    def __len__(self):
        return len(self.value)

    def __iter__(self):
        return iter([self[i] for i in range(len(self))]) if self.ndim else iter(self.value)

    def __bool__(self):
        return bool(self.value)

    def __int__(self):
        return int(self.value)

    def __float__(self):
        return float(self.value)

    def __complex__(self):
        return complex(self.value)

    def __format__(self, spec):
        return format(self.value, spec)

    def item(self):
        """The only element, as a number of Python, through which no gradient passes."""
        return self.value.item()

    def tolist(self):
        """The elements as nested lists of numbers of Python, through which no gradient passes."""
        return self.value.tolist()

    def to_device(self, device, /, *, stream=None):
        """The variable on another device."""
        home = self.device
        return Variable(self.value.to_device(device, stream=stream), (self,), lambda dy: [dy.to_device(home)])

    def __repr__(self):
        return f"Variable({self.value!r})"


def _operator(name, reflected=False):
    function = _ops.TABLE[name]["run"]
    if reflected:
        return lambda self, other: function(other, self)
    return lambda self, *others: function(self, *others)


def _comparison(name):
    function = _operator(name)
    numbers = (Variable, Array, bool, int, float, complex)
    return lambda self, other: function(self, other) if isinstance(other, numbers) else NotImplemented


for _method, _name in {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "mod": "remainder",
                       "floordiv": "floor_divide", "pow": "pow", "matmul": "matmul"}.items():
    setattr(Variable, f"__{_method}__", _operator(_name))
    setattr(Variable, f"__r{_method}__", _operator(_name, True))
for _method, _name in {"neg": "negative", "pos": "positive", "abs": "abs", "lt": "less", "le": "less_equal",
                       "gt": "greater", "ge": "greater_equal"}.items():
    setattr(Variable, f"__{_method}__", _operator(_name))
Variable.__eq__, Variable.__ne__ = _comparison("equal"), _comparison("not_equal")  # variables are hashed by identity
for _name, _method in _numpy.METHODS.items():
    setattr(Variable, _name, _method)


# ---- Gradients of ops -----------------------------------------------------------------------------------------------
#
# A rule takes the inputs and outputs of a call as arrays, its attributes, and the gradient of its first output. It
# returns the gradients of the inputs; None for those that have none.

_RULES = {}
_derived = {}


def _rule(*names):
    def add(function):
        for name in names:
            _RULES[name] = function
        return function
    return add


def _unbroadcast(gradient, shape):
    """The gradient of an operand of `shape` that was broadcast: summed over the axes along which it was repeated."""
    extra = gradient.ndim - len(shape)
    axes = [i for i in range(gradient.ndim) if i < extra or (shape[i - extra] == 1 and gradient.shape[i] != 1)]
    if axes:
        gradient = _ops.sum(gradient, axes=axes, keepdims=True)
    return gradient if gradient.shape == tuple(shape) else _core.reshape_view(gradient, shape)


def _row_gradients(name, inputs, dy, wanted):
    """The gradients of an elementwise op, derived from its expression."""
    names = ("x", "y", "z")[:len(inputs)]
    numbers = tuple(not isinstance(x, Array) for x in inputs)
    key = (name, numbers, wanted)
    if key not in _derived:
        arrays = [n for n, number in zip(names, numbers) if not number]
        scalars = [n for n, number in zip(names, numbers) if number]
        expression = _core.expression(_ops.TABLE[name]["expression"], arrays, scalars)
        positions = [arrays.index(names[i]) for i in wanted]
        _derived[key] = expression.gradient(positions)
    arrays = [x for x, number in zip(inputs, numbers) if not number]
    scalars = [x for x, number in zip(inputs, numbers) if number]
    found = _derived[key].map(arrays + [dy], scalars, None)
    gradients = [None] * len(inputs)
    for i, gradient in zip(wanted, found):
        gradients[i] = _unbroadcast(gradient, inputs[i].shape)
    return gradients


def _positions(x):
    """An array of the shape of `x` that has the position of each element in row-major order."""
    return _core.reshape_view(_creation.arange(x.size, device=x.device), x.shape)


def _added(dy, positions, x):
    """The gradient of elements that were taken from `x` at positions in row-major order, which may recur."""
    flat = _reshaped(dy, (dy.size,))
    return _core.reshape_view(_ops.take_grad(flat, _reshaped(positions, (dy.size,)), size=x.size, axis=0), x.shape)


def _is_view(key):
    """Whether an index takes each element at most once, as a view."""
    keys = key if isinstance(key, tuple) else (key,)
    return not any(isinstance(one, (Array, list, tuple)) or hasattr(one, "__dlpack__") for one in keys)


def _conjugate(x):
    return _ops.conj(x) if x.dtype in _dtypes.COMPLEX else x


def _kept(dy, x, attributes):
    """The gradient of a reduction, with the reduced axes at extent 1."""
    axes = attributes.get("axes")
    axes = range(x.ndim) if axes is None else _axes(axes, x.ndim, "gradient")
    return _core.reshape_view(dy, [1 if i in axes else n for i, n in enumerate(x.shape)])


def _spread(dy, x, attributes):
    return _core.broadcast_view(_kept(dy, x, attributes), x.shape)


@_rule("sum")
def _sum(inputs, outputs, attributes, dy):
    return [_ops.copy(_spread(dy, inputs[0], attributes))]


@_rule("mean")
def _mean(inputs, outputs, attributes, dy):
    count = inputs[0].size / max(outputs[0].size, 1)
    return [_ops.multiply(_spread(dy, inputs[0], attributes), 1 / count if count else math.nan)]


@_rule("max", "min")
def _extreme(inputs, outputs, attributes, dy):
    x = inputs[0]
    chosen = _ops.cast(_ops.equal(x, _spread(outputs[0], x, attributes)), dtype=x.dtype)
    count = _ops.sum(chosen, axes=attributes.get("axes"), keepdims=attributes.get("keepdims"))
    return [_ops.multiply(_spread(_ops.divide(dy, count), x, attributes), chosen)]


@_rule("var")
def _var(inputs, outputs, attributes, dy):
    x = inputs[0]
    count = x.size / max(outputs[0].size, 1) - attributes.get("correction", 0)
    centred = _ops.subtract(x, _ops.mean(x, axes=attributes.get("axes"), keepdims=True))
    return [_ops.multiply(_ops.multiply(_spread(dy, x, attributes), 2 / count if count > 0 else math.inf), centred)]


@_rule("std")
def _std(inputs, outputs, attributes, dy):
    return _var(inputs, outputs, attributes, _ops.divide(dy, _ops.multiply(outputs[0], 2.0)))


@_rule("prod")
def _prod(inputs, outputs, attributes, dy):
    x = _ops.cast(inputs[0], dtype=outputs[0].dtype)
    axes = attributes.get("axes")
    axes = list(range(x.ndim)) if axes is None else _axes(axes, x.ndim, "gradient")
    order = [i for i in range(x.ndim) if i not in axes] + axes
    moved = _core.permute_view(x, order)
    kept = moved.shape[:x.ndim - len(axes)]
    rows = _reshaped(moved, (*kept, x.size // max(outputs[0].size, 1)))
    before, after = (_ops.cumulative_prod(rows, axis=-1, exclusive=True, reverse=way) for way in (False, True))
    others = _core.reshape_view(_ops.multiply(before, after), moved.shape)
    others = _core.permute_view(others, sorted(range(x.ndim), key=order.__getitem__))
    return [_ops.multiply(_conjugate(others), _spread(dy, x, attributes))]


@_rule("logsumexp")
def _logsumexp(inputs, outputs, attributes, dy):
    x = inputs[0]
    weights = _ops.exp(_ops.subtract(x, _spread(outputs[0], x, attributes)))
    return [_ops.multiply(_spread(dy, x, attributes), weights)]


def _matrix(x, vector_axis):
    """A vector as a matrix of one row or column."""
    return x if x.ndim > 1 else _core.reshape_view(x, (1, x.size) if vector_axis == 0 else (x.size, 1))


@_rule("matmul")
def _matmul(inputs, outputs, attributes, dy):
    a, b = inputs
    left, right = _matrix(a, 0), _matrix(b, 1)
    if a.ndim == 1 or b.ndim == 1:
        shape = list(dy.shape)
        if b.ndim == 1:
            shape.append(1)
        if a.ndim == 1:
            shape.insert(len(shape) - 1, 1)
        dy = _core.reshape_view(dy, shape)
    da = _unbroadcast(_ops.matmul(dy, _conjugate(right.mT)), left.shape)
    db = _unbroadcast(_ops.matmul(_conjugate(left.mT), dy), right.shape)
    return [_core.reshape_view(da, a.shape), _core.reshape_view(db, b.shape)]


@_rule("vecdot")
def _vecdot(inputs, outputs, attributes, dy):
    a, b = inputs
    axis = attributes.get("axis", -1)
    at = axis if axis >= 0 else max(a.ndim, b.ndim) + axis
    dy = _core.reshape_view(dy, (*dy.shape[:at], 1, *dy.shape[at:]))
    return [_unbroadcast(_ops.multiply(_conjugate(dy), b), a.shape), _unbroadcast(_ops.multiply(dy, a), b.shape)]


@_rule("tensordot")
def _tensordot(inputs, outputs, attributes, dy):
    axes = [_axes(attributes[name], x.ndim, "gradient") for name, x in zip(("axes_a", "axes_b"), inputs)]
    free = [[i for i in range(x.ndim) if i not in summed] for x, summed in zip(inputs, axes)]
    first = len(free[0])
    of_result = [list(range(first)), list(range(first, dy.ndim))]
    gradients = []
    for i, j in ((0, 1), (1, 0)):
        product = _ops.tensordot(dy, _conjugate(inputs[j]), axes_a=of_result[j], axes_b=free[j])
        # Its axes are the free ones of operand i, then the summed ones in the order of operand j.
        summed = [axis for _, axis in sorted(zip(axes[j], axes[i]))]
        order = free[i] + summed
        gradients.append(_core.permute_view(product, sorted(range(len(order)), key=order.__getitem__)))
    return gradients


def _labels(equation, operands):
    """The labels of the operands and of the result of an einsum, where each axis that ... stands for has one, too."""
    given, arrow, result = equation.replace(" ", "").partition("->")
    terms = given.split(",")
    if not arrow:
        letters = sorted(label for label in set(given) - {",", "."} if given.count(label) == 1)
        result = ("..." if "..." in given else "") + "".join(letters)
    free = [chr(code) for code in (*range(65, 91), *range(97, 123)) if chr(code) not in equation]
    counts = [x.ndim - len(term.replace("...", "")) if "..." in term else 0 for term, x in zip(terms, operands)]
    most = max(counts, default=0)

    def written_out(term, count):
        return term.replace("...", "".join(free[most - count:most]))

    return [written_out(term, count) for term, count in zip(terms, counts)], written_out(result, most)


@_rule("einsum")
def _einsum(inputs, outputs, attributes, dy):
    terms, result = _labels(attributes["equation"], inputs)
    extents = dict(zip(result, dy.shape))
    for term, x in zip(terms, inputs):
        for label, extent in zip(term, x.shape):
            extents[label] = max(extent, extents.get(label, 1)) if extent != 0 else 0
    full = [_core.broadcast_view(x, [extents[label] for label in term]) for term, x in zip(terms, inputs)]
    factors = [_conjugate(x) for x in full]
    gradients = []
    for i, (term, x) in enumerate(zip(terms, inputs)):
        others = [j for j in range(len(inputs)) if j != i]
        present = set(result).union(*(terms[j] for j in others))
        labels = "".join(dict.fromkeys(term))  # once each: the gradient of a diagonal is on it
        known = "".join(label for label in labels if label in present)
        equation = ",".join([result, *(terms[j] for j in others)]) + "->" + known
        found = _ops.einsum(dy, *(factors[j] for j in others), equation=equation)
        found = _core.reshape_view(found, [extents[label] if label in present else 1 for label in labels])
        found = _core.broadcast_view(found, [extents[label] for label in labels])
        if labels != term:
            dx = _creation.zeros(full[i].shape, dtype=found.dtype, device=found.device)
            strides = [sum(stride for stride, one in zip(dx.strides, term) if one == label) for label in labels]
            _ops.copy(found, out=_core.strided_view(dx, dx.dtype, found.shape, strides, 0))
            found = dx
        gradients.append(_unbroadcast(found, x.shape))
    return gradients


@_rule("gemm")
def _gemm(inputs, outputs, attributes, dy):
    c, a, b, bias = (list(inputs) + [None])[:4]
    activation = attributes.get("activation") or "none"
    if activation != "none":
        before = _ops.gemm(*inputs, **{**attributes, "activation": "none"})
        dy, = _row_gradients(activation, [before], dy, (0,))
    scaled = _ops.multiply(dy, attributes.get("alpha", 1.0))
    return [_ops.multiply(dy, attributes.get("beta", 1.0)), _unbroadcast(_ops.matmul(scaled, b.mT), a.shape),
            _unbroadcast(_ops.matmul(a.mT, scaled), b.shape), None if bias is None else _unbroadcast(dy, bias.shape)]


@_rule("affine")
def _affine(inputs, outputs, attributes, dy):
    x, weight, bias = (list(inputs) + [None])[:3]
    activation = attributes.get("activation") or "none"
    if activation != "none":
        before = _ops.affine(*inputs, **{**attributes, "activation": "none"})
        dy, = _row_gradients(activation, [before], dy, (0,))
    transposed = bool(attributes.get("transpose_weight"))
    count = math.prod(x.shape[:-1])
    rows, flat = (_reshaped(one, (count, one.shape[-1])) for one in (x, dy))
    dx = _core.reshape_view(_ops.matmul(flat, weight if transposed else weight.mT), x.shape)
    dw = _ops.matmul(flat.mT, rows) if transposed else _ops.matmul(rows.mT, flat)
    return [dx, dw, None if bias is None else _ops.sum(flat, axes=[0])]


@_rule("softmax")
def _softmax(inputs, outputs, attributes, dy):
    return [_ops.softmax_grad(dy, outputs[0], axis=attributes.get("axis"))]


@_rule("log_softmax")
def _log_softmax(inputs, outputs, attributes, dy):
    return [_ops.log_softmax_grad(dy, outputs[0], axis=attributes.get("axis"))]


@_rule("cross_entropy")
def _cross_entropy(inputs, outputs, attributes, dy):
    return [_ops.cross_entropy_grad(dy, inputs[0], inputs[1], outputs[1], **attributes), None]


@_rule("cross_entropy_soft")
def _cross_entropy_soft(inputs, outputs, attributes, dy):
    logits, targets = inputs
    axis = attributes.get("axis", -1) % logits.ndim
    kept = [1 if i == axis else n for i, n in enumerate(logits.shape)]
    spread, logsumexp = (_core.reshape_view(_ops.cast(x, dtype=logits.dtype), kept) for x in (dy, outputs[1]))
    return [_ops.cross_entropy_soft_grad(dy, logits, targets, outputs[1], **attributes),
            _ops.multiply(spread, _ops.subtract(logsumexp, logits))]


@_rule("convolution")
def _convolution(inputs, outputs, attributes, dy):
    x, weight, bias = (list(inputs) + [None])[:3]
    dx = _ops.convolution_grad_input(dy, weight, shape=x.shape[2:], **attributes)
    dw = _ops.convolution_grad_weight(dy, x, kernel=weight.shape[2:], **attributes)
    return [dx, dw, None if bias is None else _ops.sum(dy, axes=[i for i in range(dy.ndim) if i != 1])]


@_rule("convolution_transpose")
def _convolution_transpose(inputs, outputs, attributes, dy):
    x, weight, bias = (list(inputs) + [None])[:3]
    known = {key: value for key, value in attributes.items() if key != "output_padding"}
    dw = _ops.convolution_grad_weight(x, dy, kernel=weight.shape[2:], **known)
    return [_ops.convolution(dy, weight, **known), dw,
            None if bias is None else _ops.sum(dy, axes=[i for i in range(dy.ndim) if i != 1])]


@_rule("max_pool")
def _max_pool(inputs, outputs, attributes, dy):
    return [_ops.max_pool_grad(dy, inputs[0], outputs[0], **attributes)]


@_rule("average_pool")
def _average_pool(inputs, outputs, attributes, dy):
    return [_ops.average_pool_grad(dy, shape=inputs[0].shape[2:], **attributes)]


@_rule("layer_norm")
def _norm(inputs, outputs, attributes, dy, name="layer_norm"):
    x, scale, bias = (list(inputs) + [None, None])[:3]
    known = {key: value for key, value in attributes.items() if key != "epsilon" or name == "batch_norm"}
    dx, dscale, dbias = _ops.TABLE[name + "_grad"]["run"](dy, x, outputs[1], outputs[2], scale, **known)
    return [dx, None if scale is None else dscale, None if bias is None else dbias]


_RULES["group_norm"] = lambda *call: _norm(*call, name="group_norm")
_RULES["batch_norm"] = lambda *call: _norm(*call, name="batch_norm")


@_rule("batch_norm_inference")
def _batch_norm_inference(inputs, outputs, attributes, dy):
    x, mean, variance, scale, bias = (list(inputs) + [None, None])[:5]
    axis = _axis(attributes.get("axis", 1), x.ndim, "gradient")
    across = [i for i in range(x.ndim) if i != axis]

    def along(values):
        return _along(values, x, attributes)

    rstd = _ops.rsqrt(_ops.add(variance, attributes.get("epsilon", 1e-5)))
    normal = _ops.multiply(_ops.subtract(x, along(mean)), along(rstd))
    inner = dy if scale is None else _ops.multiply(dy, along(scale))
    dx = _ops.multiply(inner, along(rstd))
    dvariance = _ops.multiply(_ops.sum(_ops.multiply(inner, normal), axes=across),
                              _ops.multiply(_ops.square(rstd), -0.5))
    return [dx, _ops.negative(_ops.sum(dx, axes=across)), dvariance,
            None if scale is None else _ops.sum(_ops.multiply(dy, normal), axes=across),
            None if bias is None else _ops.sum(dy, axes=across)]


@_rule("rms_norm")
def _rms_norm(inputs, outputs, attributes, dy):
    x, scale = (list(inputs) + [None])[:2]
    dx, dscale = _ops.rms_norm_grad(dy, x, outputs[1], scale, axis=attributes.get("axis"))
    return [dx, None if scale is None else dscale]


@_rule("attention")
def _attention(inputs, outputs, attributes, dy):
    q, k, v, mask = (list(inputs) + [None])[:4]
    return [*_ops.attention_grad(dy, q, k, v, outputs[0], outputs[1], mask, **attributes), None]


@_rule("rotary_embedding")
def _rotary(inputs, outputs, attributes, dy):
    attributes = {**attributes, "inverse": not attributes.get("inverse", False)}
    return [_ops.rotary_embedding(dy, inputs[1], **attributes), None]


@_rule("take")
def _take(inputs, outputs, attributes, dy):
    axis = attributes.get("axis") or 0
    return [_ops.take_grad(dy, inputs[1], size=inputs[0].shape[axis], axis=axis), None]


@_rule("concat")
def _concat(inputs, outputs, attributes, dy):
    axis = (attributes.get("axis") or 0) % dy.ndim
    gradients, start = [], 0
    for x in inputs:
        stop = start + x.shape[axis]
        gradients.append(dy[(slice(None),) * axis + (slice(start, stop),)])
        start = stop
    return gradients


@_rule("stack")
def _stack(inputs, outputs, attributes, dy):
    before = (slice(None),) * ((attributes.get("axis") or 0) % dy.ndim)
    return [dy[before + (i,)] for i in range(len(inputs))]


def _sliced(x, axis, start, stop):
    return x[(slice(None),) * axis + (slice(start, stop),)]


@_rule("cumulative_sum")
def _cumulative_sum(inputs, outputs, attributes, dy):
    axis = _axis(attributes.get("axis", -1), dy.ndim, "gradient")
    if attributes.get("include_initial"):
        dy = _sliced(dy, axis, 1, None)
    return [_ops.cumulative_sum(dy, axis=axis, reverse=True)]


@_rule("cumulative_prod")
def _cumulative_prod(inputs, outputs, attributes, dy):
    """Element k has dy y / x summed from k on. At the first 0 of a line y is made again without that factor; behind it
    every product has it."""
    axis = _axis(attributes.get("axis", -1), dy.ndim, "gradient")
    y = outputs[0]
    if attributes.get("include_initial"):
        dy, y = _sliced(dy, axis, 1, None), _sliced(y, axis, 1, None)
    x, y = _conjugate(_ops.cast(inputs[0], dtype=y.dtype)), _conjugate(y)
    zero = _ops.equal(x, 0)
    zeros = _ops.cumulative_sum(_ops.cast(zero, dtype=_dtypes.int64), axis=axis)
    first = _ops.logical_and(zero, _ops.equal(zeros, 1))
    filled = _ops.where(first, 1, x)
    others = _ops.cumulative_prod(filled, axis=axis)
    behind, at = (_ops.cumulative_sum(_ops.multiply(dy, products), axis=axis, reverse=True) for products in (y, others))
    return [_ops.where(_ops.equal(zeros, 0), _ops.divide(behind, filled), _ops.where(first, at, 0))]


@_rule("cumulative_max", "cumulative_min")
def _cumulative_extreme(inputs, outputs, attributes, dy):
    """Each element of dy goes to the last element so far that equals the result, or is the NaN that it came from."""
    x, y = inputs[0], outputs[0]
    axis = _axis(attributes.get("axis", -1), x.ndim, "gradient")
    if attributes.get("include_initial"):
        dy, y = _sliced(dy, axis, 1, None), _sliced(y, axis, 1, None)
    places = _creation.arange(x.shape[axis], device=x.device)
    places = _core.reshape_view(places, [n if i == axis else 1 for i, n in enumerate(x.shape)])
    chosen = _ops.logical_or(_ops.equal(x, y), _ops.isnan(x))
    source = _ops.cumulative_max(_ops.where(chosen, places, 0), axis=axis)
    return [_ops.scatter(_creation.zeros_like(x), source, dy, axis=axis, reduction="add")]


@_rule("segment_reduce")
def _segment_reduce(inputs, outputs, attributes, dy):
    x, offsets = inputs
    kind = attributes.get("kind", "sum")
    if kind == "prod":
        raise TypeError('the gradient of segment_reduce with the kind "prod" is not known')
    rows = _creation.arange(x.shape[0], dtype=offsets.dtype, device=x.device)
    segment = _ops.searchsorted(offsets, rows, side="right") - 1
    inside = _ops.logical_and(segment >= 0, segment < dy.shape[0])
    inside = _core.reshape_view(inside, (-1,) + (1,) * (x.ndim - 1))
    if dy.shape[0] == 0:
        return [_creation.zeros_like(x)]
    segment = _ops.clip(segment, 0, dy.shape[0] - 1)
    if kind != "sum":  # divided among the elements that are the extreme
        chosen = _ops.equal(x, _ops.take(outputs[0], segment, axis=0))
        counts = _ops.segment_reduce(_ops.cast(chosen, dtype=x.dtype), offsets, kind="sum")
        dy = _ops.divide(dy, _ops.maximum(counts, 1))
        inside = _ops.logical_and(inside, chosen)
    return [_ops.where(inside, _ops.take(dy, segment, axis=0), 0)]


@_rule("diff")
def _diff(inputs, outputs, attributes, dy):
    axis = _axis(attributes.get("axis", -1), dy.ndim, "gradient")
    width = [int(i == axis) for i in range(dy.ndim)]
    for _ in range(attributes.get("n", 1)):
        dy = _ops.negative(_ops.diff(_ops.pad(dy, pads_begin=width, pads_end=width), axis=axis))
    return [dy]


@_rule("pad")
def _pad(inputs, outputs, attributes, dy):
    begin = attributes["pads_begin"]
    return [dy[tuple(slice(start, start + n) for start, n in zip(begin, inputs[0].shape))]]


@_rule("roll")
def _roll(inputs, outputs, attributes, dy):
    return [_ops.roll(dy, shift=-attributes["shift"], axis=attributes.get("axis", -1))]


@_rule("tile")
def _tile(inputs, outputs, attributes, dy):
    x = inputs[0]
    parts = [n for pair in zip(attributes["repetitions"], x.shape) for n in pair]
    return [_ops.sum(_reshaped(dy, parts), axes=list(range(0, 2 * x.ndim, 2)))]


@_rule("repeat")
def _repeat(inputs, outputs, attributes, dy):
    x = inputs[0]
    axis = _axis(attributes.get("axis", -1), x.ndim, "gradient")
    parts = (*x.shape[:axis + 1], attributes["repeats"], *x.shape[axis + 1:])
    return [_ops.sum(_reshaped(dy, parts), axes=[axis + 1])]


@_rule("sort")
def _sort(inputs, outputs, attributes, dy):
    axis = attributes.get("axis", -1)
    places = _ops.argsort(_ops.argsort(inputs[0], **attributes), axis=axis)
    return [_ops.take_along_axis(dy, places, axis=axis)]


@_rule("take_along_axis")
def _take_along_axis(inputs, outputs, attributes, dy):
    x, indices = inputs
    return [_added(dy, _ops.take_along_axis(_positions(x), indices, **attributes), x), None]


@_rule("gather_nd")
def _gather_nd(inputs, outputs, attributes, dy):
    return [_ops.scatter_nd(_creation.zeros_like(inputs[0]), inputs[1], dy, reduction="add"), None]


def _scattered(name, inputs, attributes, dy, taken):
    """The gradients of an op that writes to places, of which `taken` are those of the gradient."""
    reduction = attributes.get("reduction", "set")
    if reduction == "add":
        return [dy, None, taken]
    if reduction != "set":
        raise TypeError(f'the gradient of {name} with the reduction "{reduction}" is not known')
    zeros = _creation.zeros(taken.shape, dtype=taken.dtype, device=taken.device)
    return [_ops.TABLE[name]["run"](dy, inputs[1], zeros, **attributes), None, taken]


@_rule("scatter")
def _scatter(inputs, outputs, attributes, dy):
    # The indices may be shorter than x along the other axes.
    axis = _axis(attributes.get("axis", 0), dy.ndim, "gradient")
    spanned = dy[tuple(slice(None) if i == axis else slice(n) for i, n in enumerate(inputs[1].shape))]
    return _scattered("scatter", inputs, attributes, dy, _ops.take_along_axis(spanned, inputs[1], axis=axis))


@_rule("scatter_nd")
def _scatter_nd(inputs, outputs, attributes, dy):
    return _scattered("scatter_nd", inputs, attributes, dy, _ops.gather_nd(dy, inputs[1]))


@_rule("top_k")
def _top_k(inputs, outputs, attributes, dy):
    return [_ops.scatter(_creation.zeros_like(inputs[0]), outputs[1], dy, axis=attributes.get("axis", -1))]


@_rule("diagonal")
def _diagonal(inputs, outputs, attributes, dy):
    from . import linalg

    dx = _creation.zeros_like(inputs[0])
    linalg.diagonal(dx, **attributes)[...] = dy
    return [dx]


@_rule("cast", "copy")
def _copy(inputs, outputs, attributes, dy):
    return [dy]


@_rule("dropout")
def _same_again(inputs, outputs, attributes, dy, name="dropout"):
    return [_ops.TABLE[name]["run"](dy, **attributes)]


_RULES["tril"] = lambda *call: _same_again(*call, name="tril")
_RULES["triu"] = lambda *call: _same_again(*call, name="triu")

# Ops whose rules read the shapes and dtypes of the inputs and outputs alone.
_LINEAR = {"add", "average_pool", "cast", "concat", "conj", "copy", "cumulative_sum", "diagonal", "diff", "dropout", "imag",
           "mean", "negative", "pad", "positive", "real", "repeat", "roll", "stack", "subtract", "sum", "tile", "tril",
           "triu"}


def _along(values, x, attributes):
    """The values of channels as an array with the axes of `x`, of extent 1 but for that of the channels."""
    axis = _axis(attributes.get("axis", 1), x.ndim, "gradient")
    return _core.reshape_view(values, [n if i == axis else 1 for i, n in enumerate(x.shape)])


def _batch_mean(inputs, outputs, attributes, dy):
    x = inputs[0]
    share = _ops.multiply(_along(dy, x, attributes), dy.size / max(x.size, 1))
    return [_core.broadcast_view(share, x.shape)]


def _batch_variance(inputs, outputs, attributes, dy):
    x = inputs[0]
    share = _ops.multiply(_along(dy, x, attributes), 2 * dy.size / max(x.size, 1))
    return [_ops.multiply(share, _ops.subtract(x, _along(outputs[1], x, attributes)))]


# Rules for the gradients of outputs other than the first one.
_OTHER_RULES = {"batch_norm": (_batch_mean, _batch_variance)}


# ---- Recording ------------------------------------------------------------------------------------------------------


def _plain(x):
    return x.value if isinstance(x, Variable) else x


def _view(name, x, argument):
    value = getattr(_core, name)(x.value, argument)
    if name == "reshape_view":
        return Variable(value, (x,), lambda dy: [_reshaped(dy, x.shape)])
    if name == "broadcast_view":
        return Variable(value, (x,), lambda dy: [_unbroadcast(dy, x.shape)])
    inverse = sorted(range(len(argument)), key=lambda i: argument[i] % len(argument))
    return Variable(value, (x,), lambda dy: [_core.permute_view(dy, inverse)])


def _reshaped(x, shape):
    try:
        return _core.reshape_view(x, shape)
    except NotImplementedError:
        return _core.reshape_view(_ops.copy(x), shape)


def _dispatch(name, inputs, attributes):
    """Runs an op on inputs that are not all arrays and numbers. The hook of the extension."""
    if not any(isinstance(x, Variable) for x in inputs):
        if name.endswith("_view"):
            no_array(inputs[0])
        name = called() or name
        wrong = next((x for x in inputs if x is not None and not isinstance(x, (Array, int, float, complex))), None)
        if wrong is None:
            raise TypeError(f"{name}: at least one argument must be an array")
        raise TypeError(f"{name}: {type(wrong).__name__} is neither an array nor a number{hint(wrong)}")
    if name.endswith("_view"):
        return _view(name, *inputs)
    return _record(name, _ops.TABLE[name]["run"], [_dtypes.number(x) for x in inputs], attributes)


def _record(name, function, inputs, attributes):
    """Runs a function on the values of the inputs; what it returns remembers where it came from."""
    values = [_plain(x) for x in inputs]
    outputs = function(*values, **attributes)
    listed = outputs if isinstance(outputs, tuple) else (outputs,)
    if listed[0].dtype not in _dtypes.FLOATS + _dtypes.COMPLEX:
        return outputs  # it has no gradient
    sources = tuple(x if isinstance(x, Variable) else None for x in inputs)
    wanted = tuple(i for i, x in enumerate(sources) if x is not None)
    if name not in _ops.ROWS and name not in _RULES:
        raise TypeError(f"the gradient of {name} is not known")
    needed = () if name in _LINEAR else (*values, *listed)

    def variable(value, backward):
        return Variable(value, sources, backward, name, needed)

    if name in _ops.ROWS:
        return variable(outputs, lambda dy: _row_gradients(name, values, dy, wanted))
    first = variable(listed[0], lambda dy: _RULES[name](values, listed, attributes, dy))
    if not isinstance(outputs, tuple):
        return first
    others = list(listed[1:])
    for i, rule in enumerate(_OTHER_RULES.get(name, ())):
        others[i] = variable(others[i], lambda dy, rule=rule: rule(values, listed, attributes, dy))
    return (first, *others)


_core.hooks.update(dispatch=_dispatch, Variable=Variable)


def _expression(expression, values):
    """The value of an expression of the user's own, of which some operands are variables; `values` has them by name."""
    plain = {name: _plain(value) for name, value in values.items()}
    result = expression(**plain)
    if isinstance(result, tuple):
        raise TypeError("the gradient of an expression with several results is not known; make one of each")
    if result.dtype not in _dtypes.FLOATS + _dtypes.COMPLEX:
        return result
    wanted = tuple(name for name in expression.names if isinstance(values[name], Variable))

    def backward(dy):
        found = expression._gradients(plain, wanted, dy)
        return [_unbroadcast(gradient, plain[name].shape) for name, gradient in zip(wanted, found)]

    return Variable(result, tuple(values[name] for name in wanted), backward, repr(expression), tuple(plain.values()))


def _order(last):
    """The variables behind `last`, each after all that use it."""
    order, seen, stack = [], set(), [(last, False)]
    while stack:
        variable, done = stack.pop()
        if done:
            order.append(variable)
        elif id(variable) not in seen:
            seen.add(id(variable))
            stack.append((variable, True))
            stack.extend((x, False) for x in variable.inputs if x is not None)
    return reversed(order)


def _fitted(gradient, dtype):
    """A gradient in the dtype of the variable that it belongs to: that of a real one is real."""
    if gradient.dtype in _dtypes.COMPLEX and dtype not in _dtypes.COMPLEX:
        gradient = _ops.real(gradient)
    return gradient if gradient.dtype is dtype else _ops.cast(gradient, dtype=dtype)


def _backward(last):
    """The gradients of `last`, a number, by the identity of the variables behind it."""
    gradients = {id(last): _creation.ones_like(last.value)}
    for variable in _order(last):
        dy = gradients.get(id(variable))
        if dy is None or variable.backward is None:
            continue
        if variable.watch is not None and variable.watch.written:
            raise RuntimeError(f"{variable.name}: an array that its gradient needs was changed in place after the call; "
                               "change a copy, compute.asarray(x, copy=True)")
        for source, gradient in zip(variable.inputs, variable.backward(dy)):
            if source is None or gradient is None:
                continue
            gradient = _fitted(gradient, source.dtype)
            known = gradients.get(id(source))
            gradients[id(source)] = gradient if known is None else _ops.add(known, gradient)
        if variable.inputs:
            del gradients[id(variable)]
    return gradients


def _map(function, tree):
    """Applies a function to the arrays of nested lists, tuples and dicts."""
    if isinstance(tree, (Array, Variable)):
        return function(tree)
    if isinstance(tree, dict):
        return {key: _map(function, value) for key, value in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):  # a namedtuple
        return type(tree)(*(_map(function, value) for value in tree))
    if isinstance(tree, (list, tuple)):
        return type(tree)(_map(function, value) for value in tree)
    return tree


def _variable(x):
    if isinstance(x, Variable):
        raise TypeError("there are no gradients of gradients; use compute.grad.constant for values inside the function")
    return Variable(x)


def _check_value(last, arguments):
    """Says why the value of a function cannot be differentiated."""
    if isinstance(last, Variable):
        if last.size == 1:
            return
        raise ValueError(f"the function must return a number, not an array of the shape {last.shape}; use compute.sum "
                         "or compute.mean")
    leaves = []
    _map(leaves.append, arguments)
    if not any(x.dtype in _dtypes.FLOATS + _dtypes.COMPLEX for x in leaves):
        kinds = ", ".join(sorted({x.dtype.name for x in leaves})) or "no array"
        raise TypeError(f"the arguments have {kinds}; gradients need arrays of floating-point numbers")
    raise ValueError("the value of the function does not depend on its arguments, or only through ops that have no "
                     "gradient, such as comparisons, float() and constant()")


def value_and_gradients(function, /):
    """A function that returns the value of `function`, a number, and its gradients with respect to its arguments.

    Arguments are arrays, or nested lists, tuples and dicts of arrays. The gradients have the same structure: a tuple with
    one entry for each argument, or the gradient itself if there is one argument. If `function` returns a tuple, its first
    entry is the value that is differentiated, and the tuple is returned. Arguments that are not arrays, such as
    numbers, stay as they are.
    """

    def call(*arguments):
        variables = _map(_variable, arguments)
        result = function(*variables)
        last = result[0] if isinstance(result, tuple) else result
        _check_value(last, arguments)
        found = _backward(last)
        gradients = _map(lambda x: found[id(x)] if id(x) in found else _creation.zeros_like(x.value), variables)
        return _map(_plain, result), gradients[0] if len(gradients) == 1 else gradients

    return call


def gradients(function, /):
    """A function that returns the gradients of `function` with respect to its arguments; see value_and_gradients."""
    differentiated = value_and_gradients(function)
    return lambda *arguments: differentiated(*arguments)[1]


def constant(x, /):
    """The value of a variable, through which no gradient passes."""
    return _plain(x)


__all__ = ["Variable", "constant", "gradients", "value_and_gradients"]
