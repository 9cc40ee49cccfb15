# SPDX-License-Identifier: Apache-2.0
"""Functions of Theano: the mode, the names of nodes on a device, messages at the start, and profiles."""
from __future__ import annotations

import atexit
import copy
import sys

import pytensor
from pytensor.compile import mode as modes
from pytensor.compile.mode import Mode
from pytensor.configdefaults import config
from pytensor.graph.basic import Apply, Constant
from pytensor.graph.rewriting.basic import GraphRewriter
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.type import TensorType

from compute import Array

from .. import lowering, settings
from ..linker import ComputeLinker
from ..transfer import GpuFromHost, HostFromGpu, gpu_from_host, host_from_gpu
from ..values import device, is_host_device

try:
    from pytensor.compile.debug import profiling
except ImportError:
    from pytensor.compile import profiling


class TheanoLinker(ComputeLinker):
    """The linker of functions that Theano's names make. Products with a sum are one node, as in Theano."""

    incompatible_rewrites = tuple(name for name in ComputeLinker.incompatible_rewrites if name != "BlasOpt")


# ---- The names of nodes

_classes = {}


def _elemwise_text(self):
    name = type(self).__name__
    if self.inplace_pattern:
        return f"{name}{{{self.scalar_op},{dict(self.inplace_pattern)}}}"
    return f"{name}{{{self.scalar_op},no_inplace}}"


def _renamed(op, prefix):
    """The op as one of a class whose name starts with the prefix."""
    kind = type(op)
    if prefix == "" and not isinstance(op, Elemwise):
        return op
    key = (kind, prefix)
    if key not in _classes:
        members = {"__module__": __name__}
        if isinstance(op, Elemwise):
            members["__str__"] = _elemwise_text
        _classes[key] = type(prefix + kind.__name__, (kind,), members)
    found = copy.copy(op)
    found.__class__ = _classes[key]
    return found


class NameNodes(GraphRewriter):
    """Shows where nodes run: their ops have names as `GpuElemwise` on a device, and transfers are nodes.

    A marker of `transfer(None)` on an output disappears; `fgraph.compute_kept` names the output.
    """

    def add_requirements(self, fgraph):
        pass

    def apply(self, fgraph):
        kept, updates = set(), set((fgraph.update_mapping or {}).keys())
        for i, x in enumerate(fgraph.outputs):
            if x.owner is not None and isinstance(x.owner.op, GpuFromHost):
                kept.add(i)
        for node in list(fgraph.toposort()):
            if isinstance(node.op, GpuFromHost):
                fgraph.replace(node.outputs[0], node.inputs[0], reason="compute_names", import_missing=True)
            elif isinstance(node.op, HostFromGpu) and is_host_device():
                fgraph.replace(node.outputs[0], node.inputs[0], reason="compute_names", import_missing=True)
        fgraph.compute_kept = kept
        prefix = "" if is_host_device() else "Gpu"
        on_device = self._on_device(fgraph)
        moved = {}
        for node in list(fgraph.toposort()):
            if node not in on_device:
                continue
            inputs = list(node.inputs)
            if prefix:
                for i, x in enumerate(inputs):
                    if x.owner is None and not isinstance(x, Constant) and not hasattr(x, "container") and \
                            isinstance(x.type, TensorType) and x.type.ndim:
                        if x not in moved:
                            moved[x] = gpu_from_host.make_node(x).outputs[0]
                        inputs[i] = moved[x]
            op = _renamed(node.op, prefix)
            if op is node.op and inputs == node.inputs:
                continue
            renamed = Apply(op, inputs, [x.clone() for x in node.outputs])
            fgraph.replace_all(list(zip(node.outputs, renamed.outputs)), reason="compute_names", import_missing=True)
        if prefix:
            for i, x in enumerate(list(fgraph.outputs)):
                if i not in kept and i not in updates and x.owner is not None and type(x.owner.op).__name__.startswith("Gpu"):
                    self._output(fgraph, i, x)

    @staticmethod
    def _output(fgraph, i, x):
        """Puts the transfer of a result to the host in front of an output."""
        client = next(node for node, position in fgraph.clients[x] if type(node.op).__name__ == "Output" and node.op.idx == i)
        fgraph.change_node_input(client, 0, host_from_gpu.make_node(x).outputs[0], reason="compute_names", import_missing=True)

    @staticmethod
    def _on_device(fgraph):
        """The nodes that run on the device, as the linker places them."""
        from ..linker import placement

        lowered = placement(fgraph)
        return {node for node, one in lowered.items() if one.gives and any(place == lowering.DEVICE for place in one.gives)}


if "compute_name_nodes" not in modes.optdb:
    modes.optdb.register("compute_name_nodes", NameNodes(), "compute_names", position=1000)
MODE = Mode(TheanoLinker(), RewriteDatabaseQuery(include=["fast_run", "compute_names"]))


# ---- The interface

def function(inputs, outputs=None, mode=None, **options):
    """Compiles a function; see `pytensor.function`."""
    if mode is None or mode in ("FAST_RUN", "FAST_COMPILE"):
        mode = MODE
    for name in ("output_keys", "accept_inplace"):
        if options.get(name) is None:
            options.pop(name, None)
    made = pytensor.function(inputs, outputs, mode=mode, **options)
    if getattr(made, "profile", None):
        _profiles.append(made.profile)
    return made


def scan(*arguments, **options):
    """Returns the outputs and the dict of updates, as Theano's."""
    return pytensor.scan(*arguments, **options)


def _to_gpu(x, target):
    """For `transfer(None)` and the names of devices."""
    if target is None or str(target).startswith(("gpu", "cuda", "opencl", "dev")):
        return gpu_from_host(x)
    return None


def _sync(self):
    """Waits until the array has its values."""
    self.device.synchronize()


if not hasattr(Array, "sync"):
    Array.sync = _sync

pytensor.tensor.basic.transfer._others.insert(0, _to_gpu)


def announce():
    """Says on which device functions run, in the words of Theano, if its settings name one other than cpu."""
    spelling = settings.spelling
    if not spelling or spelling == "cpu":
        return
    info = device().info()
    name, address = info.get("description") or info.get("name"), info.get("pci_address") or ""
    if spelling.startswith("gpu") or spelling == "cuda":
        number = device().name.lstrip("abcdefghijklmnopqrstuvwxyz") or "0"
        print(f"Using gpu device {number}: {name}", file=sys.stderr)
    if not spelling.startswith("gpu"):
        print(f"Mapped name None to device {spelling}: {name}{f' ({address})' if address else ''}", file=sys.stderr)


# ---- Profiles

_profiles = []


def _print_profiles():
    """Prints the profile of each function, and last how the time was spent."""
    if not config.profile or not _profiles:
        return
    stream = sys.stdout if config.profiling__destination == "stdout" else sys.stderr
    total = {"cpu": 0.0, "gpu": 0.0, "transfer": 0.0}
    for profile in sorted(_profiles, key=lambda one: -one.fct_call_time):
        if profile.fct_callcount:
            profile.print_tips = lambda file: None
            profile.summary(file=stream, n_ops_to_print=config.profiling__n_ops, n_apply_to_print=config.profiling__n_apply)
            for kind, seconds in getattr(profile, "compute_seconds", {}).items():
                total[kind] += seconds
        if profile in profiling._atexit_print_list:
            profiling._atexit_print_list.remove(profile)
    spent = sum(total.values()) or 1.0
    parts = [f"{total[kind]:.3f}s({100 * total[kind] / spent:.2f}%) in {kind} Op" for kind in ("cpu", "gpu", "transfer")]
    print(f"Spent {parts[0]}, {parts[1]} and {parts[2]}", file=stream)


atexit.register(_print_profiles)
