# SPDX-License-Identifier: Apache-2.0
"""Reverse-mode differentiation.

    def loss(w, b):
        return compute.mean(compute.square(x @ w + b - y))

    value, (dw, db) = compute.grad.value_and_gradients(loss)(w, b)

The function is called with variables instead of its arrays. Functions and expressions of this package that get a
variable record what they compute. Gradients of elementwise ops are derived by the library from their expressions.
Comparisons, argmax, conversions to integers and the like give plain arrays, and so do float(x) and x.item() numbers,
through which no gradient passes. An op whose gradient is not known raises a TypeError, and so does a variable that is
given as an attribute, such as the epsilon of a norm. There are no gradients of gradients. docs/gradients.md states the
gradients at points without a derivative.

An array that a gradient needs must not be changed in place before the function has returned: a RuntimeError names the
op. Changes by recorded graphs and by other libraries that share the memory are not seen.
"""
from __future__ import annotations

import collections
import itertools
import threading

from . import _core, _creation, _dtypes, _numpy, _ops
from ._core import Array
from ._dtypes import INEXACT as _INEXACT
from ._errors import _said, called, hint


_places = itertools.count()


class Variable:
    """An array of which a gradient is wanted, or that was computed from one."""

    __slots__ = ("value", "inputs", "backward", "name", "watch", "place", "saved")
    __array_ufunc__ = None

    def __init__(self, value, inputs=(), backward=None, name=None, needed=(), saved=()):
        self.place = next(_places)  # after those of the inputs
        self.value = value
        self.inputs = inputs        # the variables that it was computed from, None for constants
        self.backward = backward    # maps `saved` and its gradient to the inputs' gradients
        self.saved = saved
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
        """The transpose of a variable with 2 axes; one with fewer, itself."""
        self.value.T  # which raises if there are more than 2
        return self.mT if self.ndim == 2 else self

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
        key = tuple([_plain(one) for one in key]) if isinstance(key, tuple) else _plain(key)
        if not _is_recording():
            return x[key]
        if isinstance(key, Array) and key.dtype in _dtypes.INTEGERS and x.ndim > 0:
            return _ops.take(self, key, axis=0)

        if _is_view(key):
            return Variable(x[key], (self,), _part, "an index", (), (key,))
        return Variable(x[key], (self,), lambda dy: [_indexed(x, key, dy)], "an index",
                        key if isinstance(key, tuple) else (key,))

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

    def item(self, *index):
        """The only element, or the one at an index, as a number of Python, through which no gradient passes."""
        return self.value.item(*index)

    def tolist(self):
        """The elements as nested lists of numbers of Python, through which no gradient passes."""
        return self.value.tolist()

    def to_device(self, device, /, *, stream=None):
        """The variable on another device."""
        home = self.device
        if not _is_recording():
            return self.value.to_device(device, stream=stream)
        return Variable(self.value.to_device(device, stream=stream), (self,), lambda dy: [dy.to_device(home)])

    def __repr__(self):
        return f"Variable({self.value!r})"


_OPERANDS = (Variable, Array, bool, int, float, complex)


def _operator(name, reflected=False):
    function = _ops.TABLE[name]["run"]
    if reflected:
        return lambda self, other: _record(name, function, (other, self), {}) if type(other) in _OPERANDS else function(other, self)

    def run(self, *others):
        if not others or type(others[0]) in _OPERANDS:
            return _record(name, function, (self, *others), {})
        if not isinstance(others[0], _OPERANDS) and not _creation.is_values(others[0]) and hasattr(others[0], "__array__"):
            return NotImplemented  # an array of another library, which may know variables
        return function(self, *others)

    return run


def _comparison(name):
    function = _operator(name)
    return lambda self, other: function(self, other) if isinstance(other, _OPERANDS) or _creation.is_values(other) else NotImplemented


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


# ---- Gradients of elementwise ops, views and indices -----------------------------------------------------------------

_TERMS = ("add", "subtract", "positive")
_derived = {}


def _unbroadcast(gradient, shape):
    """The gradient of an operand of `shape` that was broadcast: summed over the axes along which it was repeated."""
    if gradient.shape == shape:
        return gradient
    extra = gradient.ndim - len(shape)
    axes = [i for i in range(gradient.ndim) if i < extra or (shape[i - extra] == 1 and gradient.shape[i] != 1)]
    if axes:
        gradient = _ops.sum(gradient, axes=axes, keepdims=True)
    return gradient if gradient.shape == tuple(shape) else _core.reshape_view(gradient, shape)


# As exact as what is derived, in fewer steps: of the first input alone.
_SLOPES = {
    "hard_swish": "where(x <= -3, 0, where(x >= 3, dy, dy * ((x + x + 3) / 6)))",
    "elu": "where((x > 0) | ((x == 0) & ~isfinite(y)), dy, dy * (y * exp(min(x, 0))))",
    "sigmoid": "e = exp(-abs(x)); dy * (e / ((1 + e) * (1 + e)))",
    "silu": "a = min(abs(x), 2000); e = exp(-a); q = 1 / (1 + e); dy * (q * (where(x < 0, e, 1) + copysign(a, x) * e * q))",
}


def _row_gradients(name, inputs, wanted, dy):
    """The gradients of an elementwise op, derived from its expression."""
    if name == "pow" and type(inputs[1]) is not Array and inputs[1] == 2:
        name, inputs = "square", inputs[:1]
    if name == "abs" and inputs[0].dtype in _dtypes.COMPLEX:
        return [_of_modulus(inputs[0], dy)]
    numbers = tuple([type(x) is not Array for x in inputs])
    key = (name, numbers, wanted)
    derived = _derived.get(key)
    if derived is None:
        names = ("x", "y", "z")[:len(inputs)]
        arrays = [n for n, number in zip(names, numbers) if not number]
        scalars = [n for n, number in zip(names, numbers) if number]
        if name in _SLOPES and wanted == (0,):
            derived = _core.expression(_SLOPES[name], [*arrays, "dy"], scalars)
        else:
            expression = _core.expression(_ops.TABLE[name]["expression"], arrays, scalars)
            derived = expression.gradient([arrays.index(names[i]) for i in wanted])
        _derived[key] = derived
    arrays, scalars = inputs, ()
    if True in numbers:
        arrays = [x for x, number in zip(inputs, numbers) if not number]
        scalars = [x for x, number in zip(inputs, numbers) if number]
    # Each part of the expression has the op's dtype.
    if len(wanted) < len(arrays) and name != "where" and not _INEXACT.issuperset([x.dtype for x in arrays]):
        dtype = _dtypes.result_type(*inputs)
        dtype = _dtypes.float32 if dtype in (_dtypes.float16, _dtypes.bfloat16) else dtype
        arrays = [x if x.dtype in _INEXACT else _ops.cast(x, dtype=dtype) for x in arrays]
    found = derived.map([*arrays, dy], scalars, None)
    gradients = [None] * len(inputs)
    for i, gradient in zip(wanted, found):
        shape = inputs[i].shape
        gradients[i] = gradient if gradient.shape == shape else _unbroadcast(gradient, shape)
    return gradients


_PART_OF_SIGN = _core.expression("where(y == 0, 0, d * (x / y))", ("x", "y", "d"), ())
_JOINED = _core.expression("complex(x, y)", ("x", "y"), ())


def _of_modulus(x, dy):
    """dy x / abs(x), by real numbers: expressions of complex ones take a multiple of the time."""
    modulus = _ops.abs(x)
    parts = [_PART_OF_SIGN.map([part, modulus, dy], (), None)[0] for part in (_ops.real(x), _ops.imag(x))]
    return _JOINED.map(parts, (), None)[0]


# Slopes that follow from the result y, which need not be computed again.
_SLOPES_OF_RESULTS = {name: _core.expression(text, ("y", "dy"), ()) for name, text in (
    ("cbrt", "dy / (3 * y * y)"), ("erfinv", "dy * 0.8862269254527580136 * exp(y * y)"), ("exp", "dy * y"), ("sqrt", "dy / (2 * y)"),
    ("tan", "dy * (1 + y * y)"), ("tanh", "dy * ((1 - y) * (1 + y))"))}


def _result_gradients(name, y, dy):
    return [_SLOPES_OF_RESULTS[name].map([y, dy], (), None)[0]]


def _term_gradients(name, inputs, wanted, dy):
    """The gradients of a sum or a difference. One of them at most is `dy` itself: no two may share memory."""
    gradients, is_given = [None] * len(inputs), False
    for i in wanted:
        shape = inputs[i].shape
        gradient = dy if dy.shape == shape else _unbroadcast(dy, shape)
        if name == "subtract" and i == 1:
            gradient = _ops.negative(gradient)
        elif gradient is dy:
            gradient = _ops.copy(dy) if is_given else dy
            is_given = True
        gradients[i] = gradient
    return gradients


def _positions(x):
    """An array of the shape of `x` that has the position of each element in row-major order."""
    return _core.reshape_view(_creation.arange(x.size, device=x.device), x.shape)


def _added(dy, positions, x):
    """The gradient of elements that were taken from `x` at positions in row-major order, which may recur."""
    flat = _reshaped(dy, (dy.size,))
    return _core.reshape_view(_ops.take_grad(flat, _reshaped(positions, (dy.size,)), size=x.size, axis=0), x.shape)


def _indexed(x, key, dy):
    """The gradient of elements that were taken from `x` by an index with arrays, which may recur."""
    from . import _indexing

    wide = _ops.cast(dy, dtype=_dtypes.float32) if dy.dtype in (_dtypes.float16, _dtypes.bfloat16) else dy
    dx = _creation.zeros(x.shape, dtype=wide.dtype, device=x.device)
    if (several := _indexing.neighbours(x, key)) is not None:
        arrays, axis = several
        return _ops.scatter_at(dx, wide, *arrays, axis=axis, reduction="add", out=dx)
    plan = _indexing._Plan(dx, _indexing._expand(x, key))
    if dy.size:
        _ops.scatter_nd(plan.moved, plan.stacked(), plan.unplace(wide), reduction="add", out=plan.moved)
    return dx


def _is_view(key):
    """Whether an index takes each element at most once, as a view."""
    for one in key if isinstance(key, tuple) else (key,):
        if type(one) not in _VIEW_KEYS and (isinstance(one, (Array, list, tuple)) or hasattr(one, "__dlpack__")):
            return False
    return True


_VIEW_KEYS = (slice, int, type(None), type(Ellipsis))


class _Part:
    """The gradient of a view x[key], which _backward puts together with those of other views of x."""

    def __init__(self, key, gradient):
        self.key = key
        self.gradient = gradient


def _part(key, dy):
    return [_Part(key, dy)]


class _Spread:
    """The gradient of a sum or a mean: a factor times `value`, which has the reduced axes at extent 1, for all elements."""

    def __init__(self, value, shape, factor=None):
        self.value = value
        self.shape = shape
        self.factor = factor

    def read(self):
        """A view that repeats elements, for maps, which only read it."""
        value = self.value if self.factor is None else _ops.multiply(self.value, self.factor)
        return _core.broadcast_view(value, self.shape)

    def array(self):
        view = _core.broadcast_view(self.value, self.shape)
        return _ops.copy(view) if self.factor is None else _ops.multiply(view, self.factor)


class _Parts:
    """The gradients of views of an array whose sum is not formed yet."""

    def __init__(self, x):
        self.x = x
        self.parts = []
        self.size = 0     # elements of the parts
        self.sum = None   # of earlier parts; nobody else has this array

    def add(self, part):
        if self.size + part.gradient.size > self.x.size and self.parts:
            self.sum = self.total(None)  # some overlap, and all of them would take more memory than their sum
            self.parts, self.size = [], 0
        self.parts.append(part)
        self.size += part.gradient.size

    def total(self, rest):
        """The gradient of the whole array; `rest` is the part that did not come from views, or None."""
        total = self.sum
        if total is None and rest is None:
            total = self._tiled()
            if total is not None:
                return total
        is_empty = total is None and rest is None
        if total is None:
            total = _creation.zeros_like(self.x) if rest is None else _ops.copy(rest)
        elif rest is not None:
            total = _ops.add(total, rest, out=total)
        for i, part in enumerate(self.parts):
            view = total[part.key]
            if i == 0 and is_empty:
                _ops.copy(_reshaped(part.gradient, view.shape), out=view)
            else:
                _ops.add(view, part.gradient, out=view)
        return total

    def _tiled(self):
        """The parts side by side, if they cover the array along one axis without overlap; else None."""
        shape = self.x.shape
        ranges = [_range_of(part.key, shape) for part in self.parts]
        if None in ranges:
            return None
        axes = {axis for axis, _, _ in ranges}
        order = sorted(range(len(ranges)), key=lambda i: ranges[i][1])
        ends = [0] + [ranges[i][2] for i in order]
        if len(axes) != 1 or ends[-1] != shape[min(axes)] or any(ranges[i][1] != end for i, end in zip(order, ends)):
            return None
        axis = axes.pop()
        kept = [_reshaped(self.parts[i].gradient, (*shape[:axis], ranges[i][2] - ranges[i][1], *shape[axis + 1:])) for i in order]
        return _ops.concat(*kept, axis=axis) if len(kept) > 1 else None


def _range_of(key, shape):
    """The axis, start and end of a view of consecutive elements along one axis and all along the others; else None."""
    keys = list(key) if isinstance(key, tuple) else [key]
    for at, one in enumerate(keys):
        if one is Ellipsis:
            keys[at:at + 1] = [slice(None)] * (len(shape) - len(keys) + 1)
            break
    found = None
    for axis, (one, extent) in enumerate(zip(keys, shape)):
        if isinstance(one, slice):
            start, stop, step = one.indices(extent)
            if (start, stop, step) == (0, extent, 1):
                continue
            if step != 1 or stop < start:
                return None
        elif type(one) is int:
            start = one % extent
            stop = start + 1
        else:
            return None
        if found is not None:
            return None
        found = axis, start, stop
    return found


def _reshaped(x, shape):
    found = _core.reshape_view_or_none(x, shape)
    return _core.reshape_view(_ops.copy(x), shape) if found is None else found


# ---- Recording ------------------------------------------------------------------------------------------------------

_RULES, _OTHER_RULES = {}, {}  # from the modules _rules, _rules_linalg and _rules_networks, imported at first use

# Ops whose rules read the shapes and dtypes of the inputs and outputs alone.
_LINEAR = {"add", "average_pool", "cast", "concat", "conj", "copy", "cumulative_sum", "diagonal", "diff", "dropout", "imag",
           "mean", "negative", "pad", "positive", "real", "repeat", "roll", "stack", "subtract", "sum", "tile", "tril",
           "triu"}


def _plain(x):
    return x.value if isinstance(x, Variable) else x


def _view(name, x, argument):
    value = getattr(_core, name)(x.value, argument)
    if value is None or not _is_recording():
        return value
    if name.startswith("reshape_view"):
        return Variable(value, (x,), lambda dy: [_reshaped(dy, x.shape)])
    if name == "broadcast_view":
        return Variable(value, (x,), lambda dy: [_unbroadcast(dy, x.shape)])
    inverse = sorted(range(len(argument)), key=lambda i: argument[i] % len(argument))
    return Variable(value, (x,), lambda dy: [_core.permute_view(dy, inverse)])


def _dispatch(name, inputs, attributes):
    """Runs an op on inputs that are not all arrays and numbers. The hook of the extension."""
    if name.endswith("_view") or name == "reshape_view_or_none":
        if not isinstance(inputs[0], Variable):
            return getattr(_core, name)(_core.array_of(inputs[0]), inputs[1])
        return _view(name, *inputs)
    if not _core.are_arrays(*inputs) and any(map(_creation.is_values, inputs)):
        promotes = name in _ops.ROWS or _ops.TABLE[name]["dtypes"] == "promote"
        return _ops.TABLE[name]["run"](*_creation.arrays_of(*inputs, promotes=promotes), **attributes)
    for x in inputs:
        if isinstance(x, Variable):
            return _record(name, _ops.TABLE[name]["run"], inputs, attributes)
    op, name = name, called() or name
    wrong = next((x for x in inputs if x is not None and not isinstance(x, (Array, int, float, complex))), None)
    if wrong is None:  # numbers alone: as arrays on the default device
        return _ops.TABLE[op]["run"](*(x if x is None or isinstance(x, Array) else _creation.full((), x) for x in inputs), **attributes)
    raise TypeError(f"{name}: {type(wrong).__name__} is neither an array nor a number{hint(wrong)}")


class _Thread(threading.local):
    records = True  # what is computed from variables


_thread = _Thread()


def _is_recording():
    """Whether this thread records what is computed from variables."""
    return _thread.records


def _set_recording(records):
    """Lets this thread record, or not, what is computed from variables; compute.no_grad is made of it."""
    _thread.records = records


def _record(name, function, inputs, attributes):
    """Runs a function on the values of the inputs; what it returns remembers where it came from."""
    values, sources, wanted = [], [], []
    for x in inputs:
        source = None
        if isinstance(x, Variable):
            value = x.value
            if value.dtype in _INEXACT:
                source = x
                wanted.append(len(values))
        else:
            value = x if type(x) in _OPERANDS else _dtypes.number(x)
        values.append(value)
        sources.append(source)
    outputs = function(*values, **attributes)
    if not _thread.records:
        return outputs
    listed = outputs if isinstance(outputs, tuple) else (outputs,)
    if listed[0].dtype not in _INEXACT or not wanted:
        return outputs  # it has no gradient
    if name in _ops.ROWS:
        if name in _TERMS:
            return Variable(outputs, sources, _term_gradients, name, (), (name, values, wanted))
        if name in _SLOPES_OF_RESULTS and outputs.dtype in (_dtypes.float32, _dtypes.float64):
            return Variable(outputs, sources, _result_gradients, name, (outputs,), (name, outputs))
        needed = () if name in _LINEAR else (*values, outputs)
        return Variable(outputs, sources, _row_gradients, name, needed, (name, values, tuple(wanted)))
    if name not in _RULES:
        from . import _rules, _rules_linalg, _rules_networks  # noqa: F401: most programs differentiate nothing

        _OTHER_RULES.update(_rules.OTHER_RULES)
        _RULES.update(_rules.RULES)
        if name not in _RULES:
            raise TypeError(f"the gradient of {name} is not known")
    needed = () if name in _LINEAR else (*values, *listed)

    def variable(value, backward):
        return Variable(value, sources, backward, name, needed)

    first = Variable(listed[0], sources, _RULES[name], name, needed, (values, listed, attributes))
    if not isinstance(outputs, tuple):
        return first
    others, rules = list(listed[1:]), _OTHER_RULES.get(name, ())
    for i, value in enumerate(others):
        if i < len(rules) and rules[i] is not None:
            others[i] = variable(value, lambda dy, rule=rules[i]: rule(values, listed, attributes, dy))
        elif value.dtype in _INEXACT:
            others[i] = variable(value, lambda dy, i=i: _refuse_output(name, i + 1))
    return (first, *others)


def _refuse_output(name, i):
    raise TypeError(f"the gradient of {name} by way of its result {_ops.TABLE[name]['outputs'].split()[i]} is not known")


def _refuse_attribute(name):
    """Refuses a variable as an attribute. A hook of the extension."""
    raise TypeError(_said(f"there is no gradient with respect to {name}, which is a variable; pass its value, "
                          f"compute.grad.constant({name})"))


_core.hooks.update(dispatch=_dispatch, Variable=Variable, variable_attribute=_refuse_attribute)


def _expression(expression, values):
    """The value of an expression of the user's own, of which some operands are variables; `values` has them by name."""
    plain = {name: _plain(value) for name, value in values.items()}
    result = expression(**plain)
    if isinstance(result, tuple):
        raise TypeError("the gradient of an expression with several results is not known; make one of each")
    wanted = tuple(name for name in expression.names
                   if isinstance(values[name], Variable) and values[name].dtype in _INEXACT)
    if result.dtype not in _INEXACT or not wanted or not _is_recording():
        return result

    def backward(dy):
        found = expression._gradients(plain, wanted, dy)
        return [_unbroadcast(gradient, plain[name].shape) for name, gradient in zip(wanted, found)]

    return Variable(result, tuple(values[name] for name in wanted), backward, repr(expression), tuple(plain.values()))


def _order(last):
    """The variables behind `last`, each after all that use it."""
    found, stack = {last.place: last}, [last]
    while stack:
        for x in stack.pop().inputs:
            if x is not None and x.place not in found:
                found[x.place] = x
                stack.append(x)
    return [found[place] for place in sorted(found, reverse=True)]


def _fitted(gradient, dtype):
    """A gradient in the dtype of the variable that it belongs to: that of a real one is real."""
    if gradient.dtype is dtype:
        return gradient
    if gradient.dtype in _dtypes.COMPLEX and dtype not in _dtypes.COMPLEX:
        gradient = _ops.real(gradient)
    return gradient if gradient.dtype is dtype else _ops.cast(gradient, dtype=dtype)


def _backward(last, finished=None):
    """The gradients of `last`, a number, by the identity of the variables behind it.

    finished(variable, gradient) is called as soon as the gradient of a variable without inputs is complete.
    """
    gradients, parts = {id(last): _creation.ones_like(last.value)}, {}
    sums = set()  # of `gradients`, those that were added up here, so that nobody else has the array
    order, uses = _order(last), None
    if finished is not None:
        uses = collections.Counter(id(source) for variable in order for source in variable.inputs if source is not None)

    def used(variable):
        for source in variable.inputs:
            if source is None:
                continue
            uses[id(source)] -= 1
            if uses[id(source)] or source.inputs:
                continue
            if id(source) in parts:
                gradients[id(source)] = parts.pop(id(source)).total(gradients.get(id(source)))
            if id(source) in gradients:
                finished(source, gradients[id(source)])

    for variable in order:
        key = id(variable)
        if key in parts:
            gradients[key] = parts.pop(key).total(gradients.get(key))
        dy = gradients.get(key)
        if dy is None or variable.backward is None:
            if finished is not None:
                used(variable)
            continue
        if variable.watch is not None and variable.watch.written:
            raise RuntimeError(f"{variable.name}: an array that its gradient needs was changed in place after the call; "
                               "change a copy, compute.asarray(x, copy=True)")
        for source, gradient in zip(variable.inputs, variable.backward(*variable.saved, dy)):
            if source is None or gradient is None:
                continue
            dtype, to = source.value.dtype, id(source)
            if type(gradient) is not Array and isinstance(gradient, _Part):
                gradient.gradient = _fitted(gradient.gradient, dtype)
                if to not in parts:
                    parts[to] = _Parts(source.value)
                parts[to].add(gradient)
                continue
            if type(gradient) is not Array:
                if isinstance(gradient, _Spread):
                    gradient = gradient.read() if source.backward is _row_gradients else gradient.array()
                elif callable(gradient):
                    gradient = gradient()
            if gradient.dtype is not dtype:
                gradient = _fitted(gradient, dtype)
            known = gradients.get(to)
            if known is None:
                gradients[to] = gradient
            elif to in sums:
                _ops.add(known, gradient, out=known)
            else:
                gradients[to] = _ops.add(known, gradient)
                sums.add(to)
        if finished is not None:
            used(variable)
        if variable.inputs:
            del gradients[key]
    return gradients


def _map(function, tree):
    """Applies a function to the arrays of nested lists, tuples and dicts. Arrays of NumPy are among them."""
    if isinstance(tree, (Array, Variable)) or (_creation.is_values(tree) and not isinstance(tree, (list, tuple, range))):
        return function(tree)
    if isinstance(tree, dict):
        return {key: _map(function, value) for key, value in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):  # a namedtuple
        return type(tree)(*(_map(function, value) for value in tree))
    if isinstance(tree, (list, tuple)):
        return type(tree)(_map(function, value) for value in tree)
    return tree


def _no_variable(x):
    if isinstance(x, Variable):
        raise TypeError("there are no gradients of gradients; use compute.grad.constant for values inside the function")
    return x


def _variable(x):
    return Variable(_core.array_of(_no_variable(x)))


def _check_value(last, arguments):
    """Says why the value of a function cannot be differentiated."""
    if isinstance(last, Variable):
        if last.size == 1:
            return
        raise ValueError(f"the function must return a number, not an array of the shape {last.shape}; use compute.sum "
                         "or compute.mean")
    leaves = []
    _map(lambda x: leaves.append(_core.array_of(x)), arguments)
    if not any(x.dtype in _INEXACT for x in leaves):
        kinds = ", ".join(sorted({x.dtype.name for x in leaves})) or "no array"
        raise TypeError(f"the arguments have {kinds}; gradients need arrays of floating-point numbers")
    raise ValueError("the value of the function does not depend on its arguments, or only through ops that have no "
                     "gradient, such as comparisons, float() and constant()")


def value_and_gradients(function, /, argnums=None, has_aux=False, *, group=None):
    """A function that returns the value of `function`, a number, and its gradients with respect to its arguments.

    Arguments are arrays, or nested lists, tuples and dicts of arrays. The gradients have the same structure: a tuple with
    one entry for each argument, or the gradient itself if there is one argument. If `function` returns a tuple, its first
    entry is the value that is differentiated, and the tuple is returned; with `has_aux` it must have two entries, the
    value and anything else. Arguments that are not arrays, such as numbers, and named arguments stay as they are.

    argnums   the positions of the arguments whose gradients are wanted, as a sequence, or a single one, whose gradient is
              not in a tuple. The other arguments are constants. None means all.
    group     a group of compute.distributed, over which the value and the gradients are averaged while further gradients
              are computed. All ranks must compute the same function of arguments of the same shapes.

    Raises ValueError if the value is no number or does not depend on the arguments, and TypeError for an op whose gradient
    is not known.

    >>> f = compute.grad.value_and_gradients(lambda w, x: compute.sum(w * x), argnums=0)
    >>> f(compute.asarray([1.0, 2.0]), compute.asarray([3.0, 4.0]))
    (Array(11., dtype=float32), Array([3., 4.], dtype=float32))
    """

    def call(*arguments, **options):
        chosen = _positions_of(argnums, len(arguments))
        variables = [_map(_variable if i in chosen else _no_variable, one) for i, one in enumerate(arguments)]
        result = function(*variables, **options)
        if has_aux and not (isinstance(result, tuple) and len(result) == 2):
            raise TypeError(f"with has_aux, the function must return a value and something else, not {type(result).__name__}")
        last = result[0] if isinstance(result, tuple) else result
        _check_value(last, [arguments[i] for i in chosen])
        if group is None or group.size == 1:
            found = _backward(last)
        else:
            found, value = _averaged(last, variables, chosen, group)
            result = (value, *result[1:]) if isinstance(result, tuple) else value
        gradients = tuple(_map(lambda x: found[id(x)] if id(x) in found else _creation.zeros_like(x.value), variables[i]) for i in chosen)
        is_single = len(arguments) == 1 if argnums is None else not hasattr(argnums, "__len__")
        return _map(_plain, result), gradients[0] if is_single else gradients

    return call


def _averaged(last, variables, chosen, group):
    """The means over a group of the gradients of `last`, and of its value."""
    from .distributed import Average

    wanted = set()
    _map(lambda x: wanted.add(id(x)), [variables[i] for i in chosen])
    average = Average(group)
    average.add(None, last.value)
    _backward(last, lambda variable, gradient: average.add(id(variable), gradient) if id(variable) in wanted else None)
    found = average.results()
    return found, found.pop(None)


def _positions_of(argnums, count):
    """The positions of arguments as a list."""
    if argnums is None:
        return range(count)
    listed = [argnums] if hasattr(argnums, "__index__") else list(argnums)
    for one in listed:
        if not -count <= one < count:
            raise ValueError(f"argnums has {one}; the call has {count} positional arguments")
    return [one % count for one in listed]


def gradients(function, /, argnums=None, has_aux=False):
    """A function that returns the gradients of `function` with respect to its arguments; see value_and_gradients.

    With `has_aux` it returns them and the second entry of what `function` returns.

    >>> compute.grad.gradients(lambda x: compute.sum(x * x))(compute.asarray([1.0, 3.0]))
    Array([2., 6.], dtype=float32)
    """
    differentiated = value_and_gradients(function, argnums, has_aux)
    if not has_aux:
        return lambda *arguments, **options: differentiated(*arguments, **options)[1]

    def call(*arguments, **options):
        (_, other), found = differentiated(*arguments, **options)
        return found, other

    return call


def constant(x, /):
    """The value of a variable, through which no gradient passes.

    >>> compute.grad.gradients(lambda x: compute.sum(x * compute.grad.constant(x)))(compute.asarray([3.0]))
    Array([3.], dtype=float32)
    """
    return _plain(x)


__all__ = ["Variable", "constant", "gradients", "value_and_gradients"]
