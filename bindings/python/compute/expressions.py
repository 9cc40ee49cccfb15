# SPDX-License-Identifier: Apache-2.0
"""User-defined elementwise expressions, evaluated in one pass over memory."""
from __future__ import annotations

import re

from . import _core, _dtypes, _ops, grad
from ._core import Array
from ._creation import arrays_of, is_values
from ._errors import InvalidArgumentError

_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?!\w*\s*\()")
_ASSIGNED = re.compile(r"(?:^|;)\s*([A-Za-z_]\w*)\s*=(?!=)")

_REAL = re.compile(r"(?<![\w.])(?:\d+\.\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|inf|nan)(?![\w.])")
_FLOATING = re.compile(r"\bb?float\d+\b|\bcomplex\d+\b")
_REDUCTIONS = ("sum", "prod", "min", "max", "all", "any")
_CALL = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\s*\(")


def _doubled(text, reals):
    """The text for operands that are integers or bool, where float64 is the default dtype: the library would take float32.

    `reals` are the dtypes of names that are floating-point or complex numbers. A text that names such dtypes stays as it
    is.
    """
    if _FLOATING.search(text):
        return text
    text = re.sub(r"(?<!/)/(?!/)", "* convert(1, float64) /", _REAL.sub(r"convert(\g<0>, float64)", text))
    at = 0
    while call := _CALL.search(text, at):
        at = call.end()
        if call[1] in ("exp2", "complex") or _ops.TABLE.get(call[1], {"dtypes": ""})["dtypes"] in ("FLOAT", "INEXACT"):
            end, depth = at, 0  # of the first argument
            while end < len(text) and (depth or text[end] not in ",)"):
                depth += {"(": 1, ")": -1}.get(text[end], 0)
                end += 1
            text = f"{text[:at]}convert({text[at:end]}, float64){text[end:]}"
            at += len("convert(")
    for name, dtype in reals:
        text = re.sub(rf"(?<![\w.]){name}(?!\w)", f"convert({name}, {dtype})", text)
    return text


def _names(text):
    """The names in a text that are neither words of the language nor defined in it, in the order of their first use."""
    known = {"inf", "nan", "true", "false", *_dtypes._BY_NAME, *_ASSIGNED.findall(text)}
    return tuple(dict.fromkeys(name for name in _NAME.findall(text) if name not in known))


def _is_doubled(inputs):
    """Whether floating-point numbers beside these arrays are float64: by default, and because no array has such a dtype."""
    return _dtypes.DEFAULT_FLOAT is _dtypes.float64 and all(_dtypes.kind(x.dtype) < 2 for x in inputs)


class Expression:
    """An expression such as "tanh(a * x + b)". docs/expressions.md lists its operators and functions.

        e = compute.expression("tanh(a * x + b)")
        y = e(a=0.5, x=x, b=b)

    Arrays broadcast. Numbers are run-time values: another number never compiles anything. Semicolons separate several
    results, which are then returned as a tuple. Inside of functions that compute.grad differentiates, expressions with
    one result take variables.
    """

    def __init__(self, text, *names):
        self.text = text
        self.names = names or _names(text)
        self._parsed = {}
        self._direct = {}
        self._parse(frozenset())  # so that a fault in the text is found here

    def __repr__(self):
        return f"compute.expression({self.text!r})"

    def _parse(self, numbers, reals=None):
        """The expression of the library in which these names are numbers. For `reals` see _doubled."""
        parsed = self._parsed.get((numbers, reals))
        if parsed is None:
            inputs = [name for name in self.names if name not in numbers]
            scalars = [name for name in self.names if name in numbers]
            text = self.text if reals is None else _doubled(self.text, reals)
            parsed = self._parsed[numbers, reals] = _core.expression(text, inputs, scalars)
        return parsed

    def __reduce__(self):
        return Expression, (self.text, *self.names)

    def _values(self, positional, named):
        """The operands by name."""
        values = dict(zip(self.names, positional))
        if not named and len(positional) == len(self.names):
            return values
        values.update(named)
        if set(values) != set(self.names) or len(positional) + len(named) != len(self.names):
            raise TypeError(f"the expression takes {', '.join(self.names)}")
        return values

    def _bind(self, values):
        numbers = frozenset([name for name in self.names if not isinstance(values[name], Array)])
        if numbers and any(is_values(values[name]) for name in numbers):
            values = dict(zip(values, arrays_of(*values.values())))
            numbers = frozenset(name for name in self.names if not isinstance(values[name], Array))
        inputs = [values[name] for name in self.names if name not in numbers]
        reals = None
        if _is_doubled(inputs):
            kinds = {name: _dtypes.number(values[name]) for name in numbers}
            reals = tuple((name, "float64" if isinstance(value, float) else "complex128") for name, value in kinds.items()
                          if isinstance(value, (float, complex)))
        return self._parse(numbers, reals), inputs, [values[name] for name in self.names if name in numbers]

    def _gradients(self, values, wanted, dy):
        """The gradients of the operands `wanted`, before those that were broadcast are summed."""
        expression, inputs, scalars = self._bind(values)
        arrays = [name for name in self.names if isinstance(values[name], Array)]
        key = (*arrays, None, *wanted)
        gradient = self._parsed.get(key)
        if gradient is None:
            gradient = self._parsed[key] = expression.gradient([arrays.index(name) for name in wanted])
        return gradient.map([*inputs, dy], scalars, None)

    def _prepare(self, types):
        """For operands of these types: the function for them, and which of them are arrays (None: all) and which numbers.

        None if they are not just arrays and numbers.
        """
        if len(types) != len(self.names) or Array not in types or not {Array, float, int}.issuperset(types):
            return None
        arrays, numbers = ([i for i, one in enumerate(types) if (one is Array) == wanted] for wanted in (True, False))
        run = self._parse(frozenset(self.names[i] for i in numbers)).map
        self._direct[types] = found = run, arrays if numbers else None, numbers
        return found

    def __call__(self, *positional, out=None, **named):
        """Evaluates the expression. `out` is an array, or a tuple of them for several results."""
        if out is None and not named and _dtypes.DEFAULT_FLOAT is not _dtypes.float64:
            types = tuple(map(type, positional))
            direct = self._direct.get(types) or self._prepare(types)
            if direct is not None:
                run, arrays, numbers = direct
                outputs = (run(positional, (), None) if arrays is None
                           else run([positional[i] for i in arrays], [positional[i] for i in numbers], None))
                return outputs[0] if len(outputs) == 1 else outputs
        values = self._values(positional, named)
        if out is None and any(isinstance(value, grad.Variable) for value in values.values()):
            return grad._expression(self, values)
        expression, inputs, scalars = self._bind(values)
        outputs = expression.map(inputs, scalars, (out,) if isinstance(out, Array) else out)
        return outputs[0] if len(outputs) == 1 else outputs

    def reduce(self, kind, *positional, axis=None, keepdims=False, after=None, **named):
        """Reduces the values of the expression in the same pass: "sum", "prod", "min", "max", "all" or "any".

        `after` is the text of an expression of one name, applied to each result.
        """
        if kind not in _REDUCTIONS:
            raise InvalidArgumentError(f"reduce: kind is {kind!r}; expected one of {', '.join(_REDUCTIONS)}")
        values = self._values(positional, named)
        axes = [axis] if isinstance(axis, int) else axis
        if any(isinstance(value, grad.Variable) for value in values.values()):
            result = _ops.TABLE[kind]["run"](grad._expression(self, values), axes=axes, keepdims=keepdims)
            return result if after is None else Expression(after)(result)
        expression, inputs, scalars = self._bind(values)
        if after is not None:
            text = _doubled(after, ()) if _is_doubled(inputs) else after
            closing = self._parsed.get(text)
            if closing is None:
                closing = self._parsed[text] = _core.expression(text, _names(after), ())
            after = closing
        return expression.reduce(kind, inputs, scalars, axes, keepdims, after)

    def evaluator(self, *numbers):
        """A function for callers that evaluate one expression often: `call(arrays, numbers, out)`.

        `numbers` are the names that are numbers. Arrays and numbers are sequences in the order of their names; `out` is
        None or a tuple of arrays. The result is a tuple. Operands are passed on as they are: default dtypes, lists and
        variables of compute.grad are those of the expression itself.

        >>> call = compute.expression("a * x + 1", "a", "x").evaluator("a")
        >>> call([compute.asarray([1.0, 2.0])], [2], None)
        (Array([3., 5.], dtype=float32),)
        """
        return self._parse(frozenset(numbers)).map

    def reducer(self, kind, after=None):
        """A function for callers that reduce one expression of arrays often: `call(arrays, (), axes, keepdims)`.

        `axes` are a sequence of integers, or None for all. `kind` and `after` are those of `reduce`.
        """
        parsed, closing = self._parse(frozenset()), after and _core.expression(after, _names(after), ())

        def call(arrays, numbers, axes, keepdims):
            return parsed.reduce(kind, arrays, numbers, axes, keepdims, closing)
        return call


def expression(text, /, *names):
    """Parses an expression. `names` gives the order of positional arguments; else that of their first use.

    Raises ValueError for a faulty text, with the position.

    >>> e = compute.expression("a * x + 1")
    >>> e(a=2, x=compute.asarray([1.0, 2.0]))
    Array([3., 5.], dtype=float32)
    """
    return Expression(text, *names)
