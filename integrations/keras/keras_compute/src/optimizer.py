# SPDX-License-Identifier: Apache-2.0
"""Updates of optimizers as one expression for each variable, in the place of one op after another.

The formulas are those of update_step in Keras. A class that has an update_step of its own runs that, and so do variables
of other dtypes than float32 and float64.
"""
from __future__ import annotations

import compute as cp
from compute import grad
from keras.src import ops
from keras.src.optimizers import base_optimizer

from .sparse import SparseTensor
from .variable import convert_to_tensor

_ADAM = cp.expression("a = m + (g - m) * p; b = v + (g * g - v) * q; a; b; w - a * r / (sqrt(b) + e)",
                      "w", "g", "m", "v", "r", "p", "q", "e")
_RMSPROP = cp.expression("b = p * v + q * (g * g); b; w - r * g / sqrt(b + e)", "w", "g", "v", "r", "p", "q", "e")
_MOMENTUM = cp.expression("a = m * p - g * r; a; w + a", "w", "g", "m", "r", "p")
_NESTEROV = cp.expression("a = m * p - g * r; a; w + (a * p - g * r)", "w", "g", "m", "r", "p")
_DESCENT = cp.expression("w - g * r", "w", "g", "r")


def _assign(optimizer, variables, values):
    for variable, value in zip(variables, values):
        optimizer.assign(variable, value)


def _value(x):
    return grad.constant(convert_to_tensor(x))


def _adam(self, rate, dtype):
    count = ops.cast(self.iterations + 1, dtype)
    powers = [ops.power(ops.cast(beta, dtype), count) for beta in (self.beta_1, self.beta_2)]
    alpha = _value(rate * ops.sqrt(1 - powers[1]) / (1 - powers[0]))

    def update(gradient, variable, at):
        slots = self._momentums[at], self._velocities[at]
        _assign(self, (*slots, variable), _ADAM(_value(variable), gradient, *map(_value, slots), alpha, 1 - self.beta_1,
                                                1 - self.beta_2, self.epsilon))

    return update


def _rmsprop(self, rate, dtype):
    def update(gradient, variable, at):
        slot = self._velocities[at]
        _assign(self, (slot, variable), _RMSPROP(_value(variable), gradient, _value(slot), rate, self.rho, 1 - self.rho,
                                                 self.epsilon))

    return update


def _sgd(self, rate, dtype):
    def update(gradient, variable, at):
        if self.momentum == 0:
            self.assign(variable, _DESCENT(_value(variable), gradient, rate))
            return
        slot = self.momentums[at]
        expression = _NESTEROV if self.nesterov else _MOMENTUM
        _assign(self, (slot, variable), expression(_value(variable), gradient, _value(slot), rate, self.momentum))

    return update


def _rule(optimizer):
    """The function that makes the update of an optimizer; None if it has no expression."""
    from keras.src.optimizers import adam, rmsprop, sgd  # which import this module

    step = type(optimizer).update_step
    if step is adam.Adam.update_step and not optimizer.amsgrad:
        return _adam
    if step is rmsprop.RMSprop.update_step and not optimizer.centered and not optimizer.momentum > 0:
        return _rmsprop
    return _sgd if step is sgd.SGD.update_step else None


class ComputeOptimizer(base_optimizer.BaseOptimizer):
    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        rule, updates = _rule(self), {}
        for gradient, variable in zip(grads, trainable_variables):
            dtype = variable.dtype
            if rule is None or dtype not in ("float32", "float64") or isinstance(gradient, SparseTensor):
                self.update_step(gradient, variable, learning_rate)
                continue
            if dtype not in updates:
                updates[dtype] = rule(self, _value(ops.cast(learning_rate, dtype)), dtype)
            updates[dtype](_value(ops.cast(gradient, dtype)), variable, self._get_variable_index(variable))
