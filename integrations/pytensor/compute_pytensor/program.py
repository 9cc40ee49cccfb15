# SPDX-License-Identifier: Apache-2.0
"""A graph of PyTensor as one function of Python: placement of its values, and the source text that runs its nodes."""
from __future__ import annotations

import linecache
import time

import numpy as np
from pytensor.graph.basic import Constant
from pytensor.ifelse import IfElse
from pytensor.tensor.type import TensorType

from compute import Array

from . import lowering, report
from .lowering import ANY, DEVICE, HOST, HostOnly, Lowered
from .values import copied, device, has_dtype, to_device, to_host

_SMALL = 64  # elements of a constant that counts as a shape or a scalar


def _name(op):
    scalar = getattr(op, "scalar_op", None)
    return type(op).__name__ if scalar is None else f"{type(op).__name__}{{{type(scalar).__name__}}}"


def _is_tensor(x):
    return isinstance(x.type, TensorType)


def perform(node):
    """A function that runs the op of a node by NumPy."""
    op = node.op
    prepare = getattr(op, "prepare_node", None)
    if prepare is not None:
        prepare(node, None, None, "py")
    run, count = op.perform, len(node.outputs)
    tensors = [x.type.dtype if _is_tensor(x) and x.type.ndim == 0 else None for x in node.outputs]

    if count == 1:
        dtype = tensors[0]

        def call(*inputs):
            cell = [None]
            run(node, list(inputs), [cell])
            result = cell[0]
            return np.asarray(result, dtype) if dtype is not None and type(result) is not np.ndarray else result
    else:
        def call(*inputs):
            cells = [[None] for _ in range(count)]
            run(node, list(inputs), cells)
            return tuple(cell[0] for cell in cells)
    return call


def _check_dtypes(node):
    """Raises HostOnly if a node has values of a dtype that the device does not have."""
    for x in (*node.inputs, *node.outputs):
        if _is_tensor(x) and x.type.ndim and not has_dtype(x.type.dtype):
            raise HostOnly(f"{device().name} has no {x.type.dtype}")


def counted(call, count):
    def on_host(*inputs):
        count.calls += 1
        return call(*inputs)
    return on_host


class Program:
    """The plan and the source text of a graph.

    `placed` says where the inputs' values are. `wanted` says where each output must be. `call(*inputs)` returns the list
    of outputs.
    """

    _count = 0

    def __init__(self, fgraph, order, placed, small, wanted, is_reported=True):
        self.fgraph, self.order = fgraph, order
        self.place = dict(placed)
        self.small = set(small)  # variables whose values are of the host and are shapes or scalars
        self.wanted = wanted
        self.is_reported = is_reported
        self.names, self.scope, self.lines = {}, {}, []
        self.node_of_line = {}
        self.steps = []  # (node or None, "cpu", "gpu" or "transfer") by number, for the profile
        self.lowered = {node: self._lower(node) for node in self.order}
        self._drop_unused()

    def _drop_unused(self):
        """Leaves out nodes whose results no function takes, since a rule took what they were made from."""
        needed, order = set(self.fgraph.outputs), []
        for node in reversed(self.order):
            if any(x in needed for x in node.outputs):
                needed.update(self._inputs(node))
                order.append(node)
        self.order = order[::-1]

    def _inputs(self, node):
        given = self.lowered[node].inputs
        return node.inputs if given is None else given

    # ---- Placement

    def placed(self, x):
        if isinstance(x, Constant):
            return HOST
        return self.place[x]

    def is_small(self, x):
        """Whether the value is a shape or a scalar that is known on the host."""
        if isinstance(x, Constant):
            return not _is_tensor(x) or np.size(x.data) <= _SMALL
        return x in self.small

    def _lower(self, node):
        from .rules.elementwise import may_be_on_host, on_numbers

        op, name = node.op, _name(node.op)
        rule = lowering.find(op)
        lowered, reason = None, "there is no rule for it"
        is_small = all(self.is_small(x) for x in node.inputs)
        noted = report if self.is_reported else report.Nothing
        if is_small and may_be_on_host(op, node):
            noted.node_planned(name)
            lowered = Lowered(on_numbers(node) or perform(node), [HOST] * len(node.inputs), [HOST] * len(node.outputs), is_planned=True)
            self.small.update(node.outputs)
        elif rule is not None:
            try:
                _check_dtypes(node)
                lowered = rule(op, node, self)
                (noted.node_planned if lowered.is_planned else noted.node_on_device)(name)
            except HostOnly as error:
                reason = str(error)
        if lowered is None:
            count = noted.node_on_host(name, reason)
            lowered = Lowered(counted(perform(node), count), [HOST] * len(node.inputs), [HOST] * len(node.outputs), reason)
        for x, place in zip(node.outputs, lowered.gives):
            self.place[x] = place
            if place == HOST and (not _is_tensor(x) or x.type.ndim == 0 or
                                  (lowered.is_planned and x.type.dtype not in ("float32", "float64"))):
                self.small.add(x)
        return lowered

    # ---- Branches: what only one side of an IfElse needs runs inside of it

    def _branches(self):
        """For each node the path of (IfElse, side) inside of which it runs."""
        paths = {}
        outputs = set(self.fgraph.outputs)
        users = {}
        for node in self.order:
            for i, x in enumerate(self._inputs(node)):
                users.setdefault(x, []).append((node, i))
        for node in reversed(self.order):
            path = None
            for x in node.outputs:
                found = [()] if x in outputs else []
                for user, i in users.get(x, ()):
                    base = paths[user]
                    if isinstance(user.op, IfElse) and i > 0:
                        base = (*base, (user, 0 if i <= user.op.n_outs else 1))
                    found.append(base)
                for one in found:
                    if path is None:
                        path = one
                    else:
                        common = 0
                        while common < min(len(path), len(one)) and path[common] == one[common]:
                            common += 1
                        path = path[:common]
            paths[node] = path or ()
        return paths

    def is_view(self, x):
        """Whether the value may share the memory of an input of the graph."""
        while x.owner is not None:
            node = x.owner
            view = getattr(node.op, "view_map", None) or getattr(node.op, "destroy_map", None) or {}
            position = view.get(node.outputs.index(x))
            if position is None:
                return False
            x = node.inputs[position[0]]
        return not isinstance(x, Constant)

    # ---- Text

    def _bind(self, value, prefix):
        name = f"{prefix}{len(self.scope)}"
        self.scope[name] = value
        return name

    def _emit(self, indent, text, node=None):
        self.lines.append("    " * indent + text)
        if node is not None:
            self.node_of_line[len(self.lines)] = node

    def _step(self, indent, text, node, kind, names=()):
        """A statement that is one step of the profile."""
        if not self.is_timed:
            return self._emit(indent, text, node)
        number = len(self.steps)
        self.steps.append((node, kind))
        self._emit(indent, "begin = clock()")
        self._emit(indent, text, node)
        self._emit(indent, f"settle(({''.join(f'{name}, ' for name in names)}))", node)
        self._emit(indent, f"times[{number}] += clock() - begin; calls[{number}] += 1")

    def _use(self, x, want, indent, node, path):
        """The name of the value of a variable, where it is wanted."""
        known = self.names.setdefault(x, {})
        if isinstance(x, Constant):
            want = HOST if want == ANY else want
            if want not in known:
                data = x.data
                known[want] = (self._bind(to_device(np.array(data)) if want == DEVICE else data, "c"), ())
            return known[want][0]
        place = self.place[x]
        if want == ANY or want == place:
            return known[place][0]
        found = known.get(want)
        if found is not None and path[:len(found[1])] == found[1]:
            return found[0]
        name = f"{known[place][0]}{'d' if want == DEVICE else 'h'}"
        self._step(indent, f"{name} = {'to_device' if want == DEVICE else 'to_host'}({known[place][0]})", node, "transfer", [name])
        known[want] = (name, path)
        return name

    def _define(self, x, place, path=()):
        name = f"v{len(self.names)}"
        self.names.setdefault(x, {})[place] = (name, path)
        return name

    def _write_block(self, path, indent):
        count = len(self.lines)
        for position, node in enumerate(self.order):
            if self.paths[node] == path:
                self._write_node(position, node, path, indent)
        return len(self.lines) > count

    def _write_node(self, position, node, path, indent):
        lowered = self.lowered[node]
        if isinstance(node.op, IfElse):
            return self._write_branches(node, lowered, path, indent)
        given = [self._use(x, want, indent, node, path) for x, want in zip(self._inputs(node), lowered.wants)]
        results = [self._define(x, place, path) for x, place in zip(node.outputs, lowered.gives)]
        function = self._bind(lowered.function, "f")
        kind = "cpu" if lowered.gives and all(place == HOST for place in lowered.gives) else "gpu"
        self._step(indent, f"{', '.join(results)} = {function}({', '.join(given)})", node, kind, results)
        self._forget(position, indent)

    def _write_branches(self, node, lowered, path, indent):
        condition = self._use(node.inputs[0], HOST, indent, node, path)
        results = [self._define(x, place, path) for x, place in zip(node.outputs, lowered.gives)]
        n = node.op.n_outs
        for side, word in ((0, f"if {condition}:"), (1, "else:")):
            self._emit(indent, word, node)
            inner = (*path, (node, side))
            self._write_block(inner, indent + 1)
            chosen = node.inputs[1 + side * n:1 + (side + 1) * n]
            for name, x, place in zip(results, chosen, lowered.gives):
                value = self._use(x, place, indent + 1, node, inner)
                copied = place == DEVICE and not node.op.as_view and self.has_writes  # a later op may write into the result
                self._emit(indent + 1, f"{name} = {f'copied({value})' if copied else value}", node)

    def _forget(self, position, indent):
        """Drops values after their last use, so that the memory can be used again."""
        if self.has_branches:
            return
        names = [name for x in self.last_uses.get(position, ()) for name, _ in self.names.get(x, {}).values()]
        if names:
            self._emit(indent, f"{' = '.join(names)} = None")

    def compiled(self, is_timed=False):
        """The function. With `is_timed` it adds the seconds of each step to `times`, and counts in `calls`."""
        self.is_timed = is_timed
        self.names, self.scope, self.lines, self.node_of_line, self.steps = {}, {}, [], {}, []
        self.paths = self._branches()
        self.has_branches = any(self.paths.values())
        self.has_writes = any(getattr(node.op, "destroy_map", None) for node in self.order)
        last, keep = {}, set(self.fgraph.outputs) | set(self.fgraph.inputs)
        for position, node in enumerate(self.order):
            for x in (*self._inputs(node), *node.outputs):
                if x not in keep and not isinstance(x, Constant):
                    last[x] = position
        self.last_uses = {}
        for x, position in last.items():
            self.last_uses.setdefault(position, []).append(x)
        given = [self._define(x, self.place[x]) for x in self.fgraph.inputs]
        self._emit(0, f"def call({', '.join(given)}):")
        self._write_block((), 1)
        results = [self._use(x, want, 1, x.owner, ()) for x, want in zip(self.fgraph.outputs, self.wanted)]
        self._emit(1, f"return [{', '.join(results)}]")
        Program._count += 1
        file = f"<compute_pytensor {Program._count}>"
        text = "\n".join(self.lines) + "\n"
        self.text = text
        scope = {**self.scope, "to_device": to_device, "to_host": to_host, "copied": copied}
        if is_timed:
            self.times, self.calls = [0.0] * len(self.steps), [0] * len(self.steps)
            scope.update(times=self.times, calls=self.calls, clock=time.perf_counter, settle=settle)
        exec(compile(text, file, "exec"), scope)
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        self.file = file
        return scope["call"]

    def failed_node(self, error):
        """The node in which an exception was raised, or None."""
        trace, line = error.__traceback__, None
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self.file:
                line = trace.tb_lineno
                break
            trace = trace.tb_next
        return self.node_of_line.get(line)


def settle(values):
    """Waits until arrays have their values."""
    for x in values:
        if isinstance(x, Array):
            x.device.synchronize()
            return
