# SPDX-License-Identifier: Apache-2.0
"""Gradients of functions of variables of Keras."""
from __future__ import annotations

import compute as cp
from compute import grad

from .sparse import SparseTensor


def gradients_of(function, variables):
    """The value of function() and its gradients with respect to variables, which have their own values again afterwards."""
    values = [variable._value for variable in variables]

    def value(given):
        for variable, one in zip(variables, given):
            variable._value = one
        result = function()
        return result.dense() if isinstance(result, SparseTensor) else result

    try:
        with_gradients = grad.value_and_gradients(value)
        return with_gradients([cp.asarray(one) for one in values])
    finally:
        for variable, one in zip(variables, values):
            variable._value = one
