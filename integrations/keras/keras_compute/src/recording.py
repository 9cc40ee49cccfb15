# SPDX-License-Identifier: Apache-2.0
"""Training steps as graphs: recorded once for each shape of batch, then run as one submission.

A recording computes nothing. It needs that the step reads no values and assigns only variables of the model; else the
steps are run as they are. Random functions get their seeds from slots of the graph, which are drawn anew for every run.
"""
from __future__ import annotations

import contextlib

import compute as cp
import numpy as np
from keras.src import tree

from .variable import SEED_STATE, convert_to_tensor, recorded

def seeds():
    """The list of the recording of this thread that gets pairs of a slot and a seed; None outside of one."""
    return getattr(recorded, "seeds", None)


@contextlib.contextmanager
def _collected(variables):
    recorded.seeds, recorded.variables = [], {id(variable) for variable in variables}
    try:
        yield recorded.seeds
    finally:
        recorded.seeds = recorded.variables = None


class _Recorded:
    """A step with its own copies of batch and variables."""

    def __init__(self, step, data, variables):
        self.variables = variables
        self.values = [cp.copy(variable._value) for variable in variables]
        self._take_values()
        self.inputs = tree.map_structure(lambda x: cp.copy(x) if isinstance(x, cp.Array) else x, data)
        try:
            with _collected(variables) as self.seeds, cp.graph.record() as self.graph:
                self.logs = step(self.inputs)
                self._write_back()
        finally:
            self._take_values()

    def _take_values(self):
        for variable, value in zip(self.variables, self.values):
            variable._value = value

    def _write_back(self):
        """Records that the new values of the variables get to where the step reads them."""
        changed = [(value, variable._value) for value, variable in zip(self.values, self.variables)
                   if variable._value is not value]
        changed = [(value, cp.copy(new) if any(cp.may_share_memory(new, old) for old in self.values) else new)
                   for value, new in changed]
        for value, new in changed:
            value[...] = new

    def run(self, data, draw):
        for variable, value in zip(self.variables, self.values):
            if variable._value is not value:  # assigned since the last run
                value[...] = variable._value
                variable._value = value
        for x, given in zip(tree.flatten(self.inputs), tree.flatten(data)):
            if isinstance(x, cp.Array):
                x[...] = given
        for slot, seed in self.seeds:
            self.graph.set(slot, draw(seed))
        self.graph.run()
        return tree.map_structure(lambda x: cp.copy(x) if isinstance(x, cp.Array) else x, self.logs)


class Steps:
    """A function of batches that records a step of a model when a shape of batch comes for the second time."""

    MOST = 8  # shapes that are recorded

    def __init__(self, step, variables, draw):
        self.step = step
        self.variables = variables  # a function that lists what the step may assign
        self.draw = draw            # the number for a seed
        self.recorded = {}
        self.is_possible = True

    def __call__(self, data):
        data = tree.map_structure(lambda x: convert_to_tensor(x) if isinstance(x, np.ndarray) else x, data)
        leaves = tree.flatten(data)
        if not self.is_possible or not all(x is None or isinstance(x, cp.Array) for x in leaves):
            return self.step(data)
        key = tuple(None if x is None else (tuple(x.shape), x.dtype, x.device) for x in leaves)
        if key not in self.recorded:
            if len(self.recorded) < self.MOST:
                self.recorded[key] = None
            return self.step(data)
        if self.recorded[key] is None:
            try:
                self.recorded[key] = _Recorded(self.step, data, self._listed())
            except Exception:  # the step reads values; where it is wrong, it is so again
                self.is_possible = False
                return self.step(data)
        return self.recorded[key].run(data, self.draw)

    def _listed(self):
        found = {id(variable): variable for variable in self.variables()}
        return [variable for variable in found.values() if variable.name != SEED_STATE and variable._value is not None]
