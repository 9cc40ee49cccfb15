# SPDX-License-Identifier: Apache-2.0
"""Optimisers. A step updates the parameters in place, each in one pass over memory.

Parameters are arrays, or nested lists, tuples and dicts of arrays, and gradients have the same structure, as
compute.grad returns them.
"""
from __future__ import annotations

from collections.abc import Iterable

from . import _creation, _ops
from ._core import Array


def _arrays(tree):
    """The arrays of nested lists, tuples and dicts, in their order."""
    if isinstance(tree, Array):
        return [tree]
    if isinstance(tree, dict):
        tree = tree.values()
    if isinstance(tree, str) or not isinstance(tree, Iterable):
        raise TypeError(f"{type(tree).__name__} is neither an array nor a list, tuple or dict of arrays")
    return [x for part in tree for x in _arrays(part)]


def _keys(tree):
    """The keys of the dicts in nested lists, tuples and dicts, in their order; None where there are no dicts."""
    if isinstance(tree, dict):
        return {key: _keys(value) for key, value in tree.items()}
    parts = [_keys(part) for part in tree] if isinstance(tree, (list, tuple)) else []
    return parts if any(part is not None for part in parts) else None


def _arranged(tree, keys):
    """The arrays of a tree, those of dicts in the order of `keys`."""
    if isinstance(keys, dict) and isinstance(tree, dict):
        if tree.keys() != keys.keys():
            raise ValueError(f"gradients {list(tree)} for parameters {list(keys)}")
        return [x for key, inner in keys.items() for x in _arranged(tree[key], inner)]
    if keys is not None and isinstance(tree, (list, tuple)) and len(tree) == len(keys):
        return [x for part, inner in zip(tree, keys) for x in _arranged(part, inner)]
    return _arrays(tree)


class _Optimiser:
    def __init__(self, parameters, **settings):
        self._keys = _keys(parameters)
        self.parameters = _arrays(parameters)
        self.settings = settings
        self.steps = 0
        self.states = [tuple(_creation.zeros_like(p) for _ in range(self._count())) for p in self.parameters]

    def _count(self):
        return 0

    def step(self, gradients, **settings):
        """Updates the parameters by their gradients. Settings such as rate=0.01 hold for this step only."""
        gradients = _arrays(gradients) if self._keys is None else _arranged(gradients, self._keys)
        if len(gradients) != len(self.parameters):
            raise ValueError(f"{len(gradients)} gradients for {len(self.parameters)} parameters")
        self.steps += 1
        for parameter, gradient, state in zip(self.parameters, gradients, self.states):
            self._update(parameter, gradient, state, {**self.settings, **settings})


class SGD(_Optimiser):
    """Gradient descent, with momentum if that is not 0.

    parameters   arrays, or nested lists, tuples and dicts of arrays, which a step changes in place
    rate         the learning rate
    momentum     the share of the last step that the next one repeats; with `nesterov`, looking ahead
    decay        is multiplied by the parameters and added to the gradients

    >>> w = compute.asarray([1.0, 2.0])
    >>> compute.optim.SGD([w], rate=0.5).step([compute.ones(2)])
    >>> w
    Array([0.5, 1.5], dtype=float32)
    """

    def __init__(self, parameters, rate=0.01, *, momentum=0.0, decay=0.0, nesterov=False):
        self._momentum = {"momentum": momentum, "nesterov": nesterov} if momentum else {}
        super().__init__(parameters, rate=rate, decay=decay, **self._momentum)

    def _count(self):
        return 1 if self._momentum else 0

    def _update(self, parameter, gradient, state, settings):
        if self._momentum:
            _ops.sgd_momentum(parameter, gradient, *state, out=(parameter, *state), **settings)
        else:
            _ops.sgd(parameter, gradient, out=parameter, **settings)


class Adam(_Optimiser):
    """Adam.

    parameters     as of SGD
    rate           the learning rate
    beta1, beta2   the shares of the running means of gradients and of their squares that stay
    decay          as of SGD; AdamW has it apart from the gradients

    >>> w = compute.asarray([1.0])
    >>> adam = compute.optim.Adam([w], rate=0.25)
    >>> adam.step([compute.asarray([3.0])])
    >>> w
    Array([0.75], dtype=float32)
    """

    _OP = staticmethod(_ops.adam)

    def __init__(self, parameters, rate=0.001, *, beta1=0.9, beta2=0.999, epsilon=1e-8, decay=0.0):
        super().__init__(parameters, rate=rate, beta1=beta1, beta2=beta2, epsilon=epsilon, decay=decay)

    def _count(self):
        return 2

    def _update(self, parameter, gradient, state, settings):
        self._OP(parameter, gradient, *state, out=(parameter, *state), **{"step": self.steps, **settings})


class AdamW(Adam):
    """Adam with decoupled weight decay.

    >>> w = compute.asarray([1.0])
    >>> compute.optim.AdamW([w], rate=0.25, decay=0.0).step([compute.asarray([3.0])])
    >>> w
    Array([0.75], dtype=float32)
    """

    _OP = staticmethod(_ops.adamw)

    def __init__(self, parameters, rate=0.001, *, beta1=0.9, beta2=0.999, epsilon=1e-8, decay=0.01):
        super().__init__(parameters, rate, beta1=beta1, beta2=beta2, epsilon=epsilon, decay=decay)
