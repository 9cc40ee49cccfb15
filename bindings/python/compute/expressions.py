# SPDX-License-Identifier: Apache-2.0
"""Elementwise expressions of the user's own, evaluated in one pass over memory."""
from __future__ import annotations

import re

from . import _core
from ._core import Array

_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?!\w*\s*\()")
_ASSIGNED = re.compile(r"(?:^|;)\s*([A-Za-z_]\w*)\s*=(?!=)")


def _names(text):
    """The names in a text that are neither functions nor defined in it, in the order of their first use."""
    assigned = set(_ASSIGNED.findall(text))
    return tuple(dict.fromkeys(name for name in _NAME.findall(text) if name not in assigned))


class Expression:
    """An expression such as "tanh(a * x + b)". docs/expressions.md lists its operators and functions.

        e = compute.expression("tanh(a * x + b)")
        y = e(a=0.5, x=x, b=b)

    Arrays broadcast. Numbers are run-time values: another number never compiles anything. Semicolons separate several
    results, which are then returned as a tuple.
    """

    def __init__(self, text, *names):
        self.text = text
        self.names = names or _names(text)
        self._parsed = {}
        self._parse(frozenset())  # so that a fault in the text is found here

    def __repr__(self):
        return f"compute.expression({self.text!r})"

    def _parse(self, numbers):
        """The expression of the library in which these names are numbers."""
        parsed = self._parsed.get(numbers)
        if parsed is None:
            inputs = [name for name in self.names if name not in numbers]
            scalars = [name for name in self.names if name in numbers]
            parsed = self._parsed[numbers] = _core.expression(self.text, inputs, scalars)
        return parsed

    def _bind(self, positional, named):
        values = dict(zip(self.names, positional))
        values.update(named)
        if set(values) != set(self.names) or len(positional) > len(self.names):
            raise TypeError(f"the expression takes {', '.join(self.names)}")
        numbers = frozenset(name for name in self.names if not isinstance(values[name], Array))
        inputs = [values[name] for name in self.names if name not in numbers]
        return self._parse(numbers), inputs, [values[name] for name in self.names if name in numbers]

    def __call__(self, *positional, out=None, **named):
        """Evaluates the expression. `out` is an array, or a tuple of them for several results."""
        expression, inputs, scalars = self._bind(positional, named)
        outputs = expression.map(inputs, scalars, (out,) if isinstance(out, Array) else out)
        return outputs[0] if len(outputs) == 1 else outputs

    def reduce(self, kind, *positional, axis=None, keepdims=False, after=None, **named):
        """Reduces the values of the expression in the same pass: "sum", "prod", "min", "max", "all" or "any".

        `after` is the text of an expression of one name, applied to each result.
        """
        expression, inputs, scalars = self._bind(positional, named)
        axes = [axis] if isinstance(axis, int) else axis
        closing = None if after is None else _core.expression(after, _names(after), ())
        return expression.reduce(kind, inputs, scalars, axes, keepdims, closing)


def expression(text, /, *names):
    """Parses an expression. `names` gives the order of positional arguments; else that of their first use."""
    return Expression(text, *names)
