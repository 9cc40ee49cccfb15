# SPDX-License-Identifier: Apache-2.0
"""Reverse-mode differentiation.

    def loss(w, b):
        return compute.mean(compute.square(x @ w + b - y))

    value, (dw, db) = compute.grad.value_and_gradients(loss)(w, b)

The function is called with variables in the place of its arrays. Functions of this package that get a variable record
what they compute. Gradients of elementwise ops are derived by the library from their expressions. An op that has no
gradient, such as a comparison or argmax, gives a constant or an error.
"""
from __future__ import annotations

from . import _core, _creation, _dtypes, _ops
from ._core import Array
from ._manipulation import _axes


class Variable:
    """An array of which a gradient is wanted, or that was computed from one."""

    __array_ufunc__ = None

    def __init__(self, value, inputs=(), backward=None):
        self.value = value
        self.inputs = inputs        # the variables that it was computed from, None for constants
        self.backward = backward    # from its gradient to those of the inputs

    shape = property(lambda self: self.value.shape)
    dtype = property(lambda self: self.value.dtype)
    device = property(lambda self: self.value.device)
    ndim = property(lambda self: self.value.ndim)
    size = property(lambda self: self.value.size)
    T = property(lambda self: self.mT)

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
        key = tuple(one.value if isinstance(one, Variable) else one for one in key) if isinstance(key, tuple) else key

        def backward(dy):
            dx = _creation.zeros_like(x)
            dx[key] = dy
            return [dx]

        if any(isinstance(one, (Array, list)) for one in (key if isinstance(key, tuple) else (key,))):
            raise TypeError("the gradient of an index with arrays is not known; use compute.take")
        return Variable(x[key], (self,), backward)

    def __repr__(self):
        return f"Variable({self.value!r})"


def _operator(name, reflected=False):
    function = _ops.TABLE[name]["run"]
    if reflected:
        return lambda self, other: function(other, self)
    return lambda self, *others: function(self, *others)


for _method, _name in {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "pow",
                       "matmul": "matmul"}.items():
    setattr(Variable, f"__{_method}__", _operator(_name))
    setattr(Variable, f"__r{_method}__", _operator(_name, True))
for _method, _name in {"neg": "negative", "pos": "positive", "abs": "abs", "lt": "less", "le": "less_equal",
                       "gt": "greater", "ge": "greater_equal"}.items():
    setattr(Variable, f"__{_method}__", _operator(_name))


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
    return [_ops.multiply(_spread(dy, inputs[0], attributes), 1 / count)]


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
    return [_ops.multiply(_ops.multiply(_spread(dy, x, attributes), 2 / count), centred)]


@_rule("std")
def _std(inputs, outputs, attributes, dy):
    return _var(inputs, outputs, attributes, _ops.divide(dy, _ops.multiply(outputs[0], 2.0)))


@_rule("logsumexp")
def _logsumexp(inputs, outputs, attributes, dy):
    x = inputs[0]
    weights = _ops.exp(_ops.subtract(x, _spread(outputs[0], x, attributes)))
    return [_ops.multiply(_spread(dy, x, attributes), weights)]


def _matrix(x, vector_axis):
    """A vector as a matrix of one row or column."""
    return x if x.ndim > 1 else _core.reshape_view(x, (1, -1) if vector_axis == 0 else (-1, 1))


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
    da = _unbroadcast(_ops.matmul(dy, _ops.conj(right.mT) if right.dtype in _dtypes.COMPLEX else right.mT), left.shape)
    db = _unbroadcast(_ops.matmul(_ops.conj(left.mT) if left.dtype in _dtypes.COMPLEX else left.mT, dy), right.shape)
    return [_core.reshape_view(da, a.shape), _core.reshape_view(db, b.shape)]


@_rule("affine")
def _affine(inputs, outputs, attributes, dy):
    x, weight, bias = (list(inputs) + [None])[:3]
    if attributes.get("activation", "none") != "none":
        raise TypeError("the gradient of affine with an activation is not known; apply the activation after it")
    transposed = bool(attributes.get("transpose_weight"))
    rows = _core.reshape_view(x, (-1, x.shape[-1]))
    flat = _core.reshape_view(dy, (-1, dy.shape[-1]))
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


@_rule("convolution")
def _convolution(inputs, outputs, attributes, dy):
    x, weight, bias = (list(inputs) + [None])[:3]
    dx = _ops.convolution_grad_input(dy, weight, shape=x.shape[2:], **attributes)
    dw = _ops.convolution_grad_weight(dy, x, kernel=weight.shape[2:], **attributes)
    return [dx, dw, None if bias is None else _ops.sum(dy, axes=[i for i in range(dy.ndim) if i != 1])]


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


@_rule("cumulative_sum")
def _cumulative_sum(inputs, outputs, attributes, dy):
    if attributes.get("include_initial"):
        raise TypeError("the gradient of cumulative_sum with include_initial is not known")
    return [_ops.cumulative_sum(dy, axis=attributes.get("axis"), reverse=True)]


@_rule("cast")
def _cast(inputs, outputs, attributes, dy):
    return [_ops.cast(dy, dtype=inputs[0].dtype)]


@_rule("copy")
def _copy(inputs, outputs, attributes, dy):
    return [dy]


@_rule("dropout")
def _same_again(inputs, outputs, attributes, dy, name="dropout"):
    return [_ops.TABLE[name]["run"](dy, **attributes)]


_RULES["tril"] = lambda *call: _same_again(*call, name="tril")
_RULES["triu"] = lambda *call: _same_again(*call, name="triu")


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
        wrong = next((x for x in inputs if x is not None and not isinstance(x, (Array, int, float, complex))), None)
        if wrong is None:
            raise TypeError(f"{name}: at least one argument must be an array")
        raise TypeError(f"{name}: {type(wrong).__name__} is neither an array nor a number")
    if name.endswith("_view"):
        return _view(name, *inputs)
    values = [_plain(x) for x in inputs]
    outputs = _ops.TABLE[name]["run"](*values, **attributes)
    listed = outputs if isinstance(outputs, tuple) else (outputs,)
    if listed[0].dtype not in _dtypes.FLOATS + _dtypes.COMPLEX:
        return outputs  # it has no gradient
    sources = tuple(x if isinstance(x, Variable) else None for x in inputs)
    wanted = tuple(i for i, x in enumerate(sources) if x is not None)
    if _ops.TABLE[name]["expression"]:
        first = Variable(listed[0], sources, lambda dy: _row_gradients(name, values, dy, wanted))
    elif name in _RULES:
        first = Variable(listed[0], sources, lambda dy: _RULES[name](values, listed, attributes, dy))
    else:
        raise TypeError(f"the gradient of {name} is not known")
    return (first, *listed[1:]) if isinstance(outputs, tuple) else first


_core.hooks["dispatch"] = _dispatch


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


def _backward(last):
    """The gradients of `last`, a number, by the identity of the variables behind it."""
    gradients = {id(last): _creation.ones_like(last.value)}
    for variable in _order(last):
        dy = gradients.get(id(variable))
        if dy is None or variable.backward is None:
            continue
        for source, gradient in zip(variable.inputs, variable.backward(dy)):
            if source is None or gradient is None:
                continue
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
    if isinstance(tree, (list, tuple)):
        return type(tree)(_map(function, value) for value in tree)
    return tree


def value_and_gradients(function, /):
    """A function that returns the value of `function`, a number, and its gradients with respect to its arguments.

    Arguments are arrays, or nested lists, tuples and dicts of arrays. The gradients have the same structure: a tuple with
    one entry for each argument, or the gradient itself if there is one argument. If `function` returns a tuple, its first
    entry is the value that is differentiated, and the tuple is returned.
    """

    def call(*arguments):
        variables = _map(Variable, arguments)
        result = function(*variables)
        last = result[0] if isinstance(result, tuple) else result
        if not isinstance(last, Variable) or last.size != 1:
            raise ValueError("the function must return a number that depends on its arguments")
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
