# SPDX-License-Identifier: Apache-2.0
"""The linker: a compiled function of PyTensor runs as one function on the device."""
from __future__ import annotations

import numpy as np
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.configdefaults import config
from pytensor.graph.basic import Constant
from pytensor.link.basic import Container, PerformLinker
from pytensor.link.utils import map_storage, raise_with_op
from pytensor.tensor.type import TensorType, discrete_dtypes

from . import rules  # noqa: F401  registers the rules
from .lowering import DEVICE, HOST
from .program import Program
from .transfer import GpuFromHost, HostFromGpu
from .values import Storage, has_dtype, is_host_device, to_host


def _host_type(x):
    """Whether values of a variable that comes from the program stay on the host: what is no tensor, and scalars."""
    return not isinstance(x.type, TensorType) or x.type.ndim == 0


def is_kept(fgraph, i):
    """Whether an output is marked by `transfer(None)`: its value is returned as an array of the device."""
    owner = fgraph.outputs[i].owner
    return i in getattr(fgraph, "compute_kept", ()) or (owner is not None and isinstance(owner.op, GpuFromHost))


def placement(fgraph):
    """How each node of a graph would run, if all its shared variables are on the device."""
    placed = {x: DEVICE if isinstance(x, SharedVariable) and _may_be_on_device(x) else HOST for x in fgraph.inputs}
    small = [x for x, place in placed.items() if place == HOST and _host_type(x)]
    return Program(fgraph, fgraph.toposort(), placed, small, None, is_reported=False).lowered


def _may_be_on_device(x):
    """Whether the value of a shared variable is on the device: that of a tensor, unless it is an integer without axes."""
    return isinstance(x.type, TensorType) and (x.type.ndim > 0 or x.type.dtype not in discrete_dtypes) and has_dtype(x.type.dtype)


class ComputeLinker(PerformLinker):
    """Runs the nodes of a graph on the device of `compute`, and those that it has no op for by NumPy."""

    # Scans keep the values of their last steps in lists, so they allocate no buffers first.
    required_rewrites = ("minimum_compile", "scan_reduce_trace_no_prealloc", "scan_save_mem_no_prealloc", "scan_sit_sot_to_untraced")
    incompatible_rewrites = ("cxx_only", "BlasOpt", "local_careduce_fusion", "scan_reduce_trace_prealloc",
                             "scan_save_mem_prealloc", "scan_make_inplace", "inplace_elemwise", "inplace_elemwise_optimizer",
                             "reuse_lu_decomposition_multiple_solves", "scan_split_non_sequence_lu_decomposition_solve")

    def __init__(self, allow_gc=None, schedule=None):
        super().__init__(allow_gc=allow_gc, schedule=schedule)

    def __repr__(self):
        return "ComputeLinker()"

    def accept(self, fgraph, no_recycling=None, profile=None):
        linker = super().accept(fgraph, no_recycling, profile)
        linker.profile = profile
        return linker

    def make_all(self, input_storage=None, output_storage=None, storage_map=None):
        fgraph, order = self.fgraph, self.schedule(self.fgraph)
        input_storage, output_storage, storage_map = map_storage(fgraph, order, input_storage, output_storage, storage_map)
        into = {out: input_storage[given] for out, given in (getattr(fgraph, "update_mapping", None) or {}).items()}

        placed, small, readers = {}, set(), []
        for x, cell in zip(fgraph.inputs, input_storage):
            is_shared = isinstance(cell, Storage) and _may_be_on_device(x)
            placed[x] = DEVICE if is_shared else HOST
            if not is_shared and _host_type(x):
                small.add(x)
            readers.append((cell, is_shared))
        program = Program(fgraph, order, placed, small, None)
        program.wanted = [self._wanted(i, x, into.get(i), program) for i, x in enumerate(fgraph.outputs)]
        thunk = self._thunk(program, readers, output_storage, order)
        thunk.inputs, thunk.outputs, thunk.lazy = list(input_storage), list(output_storage), False
        thunk.allow_gc, thunk.storage_map, thunk.program = self.allow_gc, storage_map, program
        return (thunk, [Container(x, cell) for x, cell in zip(fgraph.inputs, input_storage)],
                [Container(x, cell, readonly=True) for x, cell in zip(fgraph.outputs, output_storage)], [thunk], order)

    def _wanted(self, i, x, storage, program):
        """Where the value of an output is to be: an update stays where it was computed, what is returned is on the host."""
        if is_kept(self.fgraph, i):
            return DEVICE
        is_update = isinstance(storage, Storage) and isinstance(x.type, TensorType) and not isinstance(x, Constant)
        return DEVICE if is_update and program.place[x] == DEVICE else HOST

    def _thunk(self, program, readers, output_storage, order):
        fgraph, profile = self.fgraph, getattr(self, "profile", None)
        is_timed = bool(profile) and config.profile is not False
        call = program.compiled(is_timed)
        finished = [_Finish(x, want, program) for x, want in zip(fgraph.outputs, program.wanted)]
        cells = list(output_storage)

        def thunk():
            given = []
            for cell, is_shared in readers:
                if is_shared:
                    array = cell.array
                    given.append(cell.on_device() if array is None else array)
                else:
                    given.append(cell[0])
            try:
                results = call(*given)
                for i, finish in enumerate(finished):
                    if finish.is_needed:
                        results[i] = finish(results[i])
            except Exception as error:
                node = program.failed_node(error)
                if node is None:
                    node = order[-1] if order else None
                if node is None:
                    raise
                raise_with_op(fgraph, node)
            for cell, value in zip(cells, results):
                cell[0] = value
            return results

        if is_timed:
            thunk.update_profile = _profile_of(program, fgraph)
        return thunk


class _Finish:
    """What is done to the value of an output before it leaves the function."""

    def __init__(self, x, want, program):
        self.dtype = x.type.dtype if isinstance(x.type, TensorType) else None
        self.is_constant = isinstance(x, Constant)
        self.is_shared = want == HOST and is_host_device() and self._views_input(x, program)
        self.is_needed = want == HOST and self.dtype is not None and (self.is_constant or self.is_shared or
                                                                     (x.owner is not None and program.place[x] == HOST))

    @staticmethod
    def _views_input(x, program):
        """Whether the result may share the memory of an input, which later calls change in place."""
        while x.owner is not None:
            view = getattr(x.owner.op, "view_map", None) or {}
            i = x.owner.outputs.index(x)
            if i not in view:
                return False
            x = x.owner.inputs[view[i][0]]
        return isinstance(x, SharedVariable)

    def __call__(self, value):
        if value is None:
            return value
        if type(value) is not np.ndarray:
            value = np.asarray(to_host(value), self.dtype) if not isinstance(value, np.ma.MaskedArray) else value
        return value.copy() if self.is_constant or self.is_shared else value


def _profile_of(program, fgraph):
    """A function that moves the times of the steps into a profile of PyTensor."""
    def update(profile):
        for i, (node, kind) in enumerate(program.steps):
            seconds, calls = program.times[i], program.calls[i]
            program.times[i], program.calls[i] = 0.0, 0
            seconds_of = getattr(profile, "compute_seconds", None)
            if seconds_of is None:
                seconds_of = profile.compute_seconds = {"cpu": 0.0, "gpu": 0.0, "transfer": 0.0}
            seconds_of["cpu" if is_host_device() else kind] += seconds
            if node is None or not calls:
                continue
            if kind == "transfer" and not isinstance(node.op, (GpuFromHost, HostFromGpu)):
                continue
            key = (fgraph, node)
            profile.apply_time[key] = profile.apply_time.get(key, 0.0) + seconds
            profile.apply_callcount[key] = profile.apply_callcount.get(key, 0) + calls
            profile.apply_cimpl[node] = False
    return update
