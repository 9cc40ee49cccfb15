# SPDX-License-Identifier: Apache-2.0
"""Scan, and the programs of inner graphs."""
from __future__ import annotations

import threading

import numpy as np
from pytensor.graph.basic import Constant
from pytensor.graph.fg import FunctionGraph
from pytensor.scan.op import Scan
from pytensor.tensor.type import TensorType

import compute as cp

from ..lowering import DEVICE, HOST, Lowered, lowers
from ..values import device, dtype_of


def inner_program(inner, places, wanted=None):
    """The function of a graph inside an op, where its outputs are, and which may be views. `places` are those of its inputs."""
    from ..mode import inner_rewriter
    from ..program import Program

    fgraph = FunctionGraph(list(inner.inputs), list(inner.outputs), clone=True)
    inner_rewriter()(fgraph)
    order = fgraph.toposort()
    placed = dict(zip(fgraph.inputs, places))
    small = [x for x, place in placed.items() if place == HOST and (not isinstance(x.type, TensorType) or x.type.ndim == 0)]
    program = Program(fgraph, order, placed, small, None)
    gives = [HOST if isinstance(x, Constant) else program.place[x] for x in fgraph.outputs]
    if wanted is not None:
        gives = [have if want is None else want for want, have in zip(wanted, gives)]
    program.wanted = gives
    return program.compiled(), gives, [i for i, x in enumerate(fgraph.outputs) if program.is_view(x)]


def _is_tensor(x):
    return isinstance(x.type, TensorType)


def _is_index(x):
    """Whether a sequence is of integers without axes: what inner graphs use as indices and counters."""
    return _is_tensor(x) and x.type.ndim == 1 and x.type.dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "bool")


class _States:
    """The values of a recurrent output by step: those of its buffer first, then those that steps computed."""

    __slots__ = ("buffer", "size", "first", "values", "initial")

    def __init__(self, buffer, taps):
        self.buffer, self.size, self.first = buffer, buffer.shape[0], -min(taps)
        self.values = [None] * self.first

    def read(self, at):
        value = self.values[at]
        if value is None:
            value = self.values[at] = self.buffer[at % self.size]
        return value

    def result(self):
        """The last values, as many as the buffer has."""
        count = len(self.values)
        if count <= self.size:
            computed = self.values[self.first:]
            if count == self.size:
                tail = None
            else:
                tail = self.buffer[count:]
            parts = [self.buffer[:self.first]] if self.first else []
            if computed:
                parts.append(cp.stack(computed))
            if tail is not None and tail.shape[0]:
                parts.append(tail)
            return parts[0] if len(parts) == 1 and computed else cp.concat(parts) if len(parts) > 1 else cp.asarray(parts[0], copy=True)
        return cp.stack([self.read(i) for i in range(count - self.size, count)])


@lowers(Scan)
def _scan(op, node, placed):
    info = op.info
    outer = node.inputs
    n_seqs, n_mit_mot, n_mit_sot, n_sit_sot = info.n_seqs, info.n_mit_mot, info.n_mit_sot, info.n_sit_sot
    n_nit_sot, n_untraced = info.n_nit_sot, info.n_untraced_sit_sot
    sequences = outer[1:1 + n_seqs]
    untraced, others = op.outer_untraced_sit_sot(outer), op.outer_non_seqs(outer)

    sequence_places = [HOST if _is_index(x) else DEVICE if _is_tensor(x) else HOST for x in sequences]
    taps = [*info.mit_mot_in_slices, *info.mit_sot_in_slices, *info.sit_sot_in_slices]

    def place_of(x):
        if not _is_tensor(x):
            return HOST
        return HOST if x.type.ndim == 0 and placed.placed(x) == HOST else DEVICE
    untraced_places = [HOST if not _is_tensor(x) else DEVICE for x in untraced]
    other_places = [place_of(x) for x in others]
    inner_places = [*sequence_places, *[DEVICE] * sum(len(one) for one in taps), *untraced_places, *other_places]
    n_mit_mot_outs = info.n_mit_mot_outs
    wanted = [*[DEVICE] * (n_mit_mot_outs + n_mit_sot + n_sit_sot + n_nit_sot), *untraced_places, *[HOST] * bool(info.as_while)]
    call, _, _ = inner_program(op.fgraph, inner_places, wanted)

    wants, gives = [HOST] * len(outer), [DEVICE] * (n_mit_mot + n_mit_sot + n_sit_sot + n_nit_sot) + untraced_places
    wants[1:1 + n_seqs] = sequence_places
    wants[1 + n_seqs:1 + n_seqs + len(taps)] = [DEVICE] * len(taps)
    first_untraced = _first(outer, op.outer_untraced_sit_sot)
    for i, place in enumerate(untraced_places):
        wants[first_untraced + i] = place
    wants[len(outer) - len(others):] = other_places
    nit_dtypes = [dtype_of(x.type.dtype) for x in op.outer_nitsot_outs(node.outputs)]
    nit_ndims = [x.type.ndim for x in op.outer_nitsot_outs(node.outputs)]
    mit_mot_outs = info.mit_mot_out_slices

    def run(*given):
        steps = int(given[0])
        if steps < 0:
            raise IndexError(f"Scan was asked to run for negative number of step {steps}")
        given_sequences = given[1:1 + n_seqs]
        for i, one in enumerate(given_sequences):
            if one.shape[0] < steps:
                raise ValueError(f"Sequence {i} has shape {one.shape} but the Scan's required number of steps is {steps}")
        buffers = given[1 + n_seqs:1 + n_seqs + len(taps)]
        kept = list(op.outer_untraced_sit_sot(list(given)))
        counts = [int(x) for x in op.outer_nitsot(list(given))]
        constant = list(op.outer_non_seqs(list(given)))
        moving = [_Moving(buffer, one) for buffer, one in zip(buffers, taps[:n_mit_mot])]
        states = [_States(buffer, one) for buffer, one in zip(buffers[n_mit_mot:], taps[n_mit_mot:])]
        traces = [[] for _ in range(n_nit_sot)]
        done = steps
        for step in range(steps):
            arguments = [one[step] for one in given_sequences]
            for state, one in zip(moving, taps):
                arguments += [state.read(step + tap) for tap in one]
            for state, one in zip(states, taps[n_mit_mot:]):
                base = state.first + step
                arguments += [state.read(base + tap) for tap in one]
            results = call(*arguments, *kept, *constant)
            i = 0
            for state, one in zip(moving, mit_mot_outs):
                for tap in one:
                    state.write(step + tap, results[i])
                    i += 1
            for state in states:
                state.values.append(results[i])
                if len(state.values) > state.size + state.first + 1:
                    state.values[len(state.values) - state.size - state.first - 2] = None
                i += 1
            for trace, count in zip(traces, counts):
                trace.append(results[i])
                if len(trace) > count:
                    trace[len(trace) - count - 1] = None
                i += 1
            kept = results[i:i + n_untraced]
            if info.as_while and bool(results[-1]):
                done = step + 1
                break
        found = [state.result() for state in moving]
        found += [state.result() for state in states]
        for trace, count, dtype, ndim in zip(traces, counts, nit_dtypes, nit_ndims):
            if not trace or count == 0:
                found.append(cp.empty((0,) * ndim if not trace else (0, *trace[-1].shape), dtype=dtype, device=device()))
                continue
            last = trace[-count:]
            if len(last) < count and not info.as_while:
                last = [*last, *[cp.zeros_like(last[0])] * (count - len(last))]
            found.append(cp.stack(last))
        if info.as_while:
            found = _shortened(found, op, n_mit_mot, states, done)
        found += kept
        return tuple(found) if len(found) != 1 else found[0]
    if info.as_while or not all(_is_tensor(x) for x in (*outer[1:1 + n_seqs + len(taps)], *untraced, *others)):
        return Lowered(run, wants, gives)
    return Lowered(_Recorded(run), wants, gives)


class _Recorded:
    """A loop that is recorded as a graph, and replayed for inputs of the same shapes and the same numbers of the host.

    The first call with such inputs runs step by step, the second one records. What cannot be recorded, as it reads values
    on the host, always runs step by step.
    """

    def __init__(self, loop):
        self.loop, self.graphs, self.is_possible = loop, {}, True

    def __call__(self, *given):
        steps = int(given[0])
        if not self.is_possible or _recording.is_active or not _FEWEST_STEPS <= steps <= _MOST_STEPS:
            return self.loop(*given)
        key = tuple((x.shape, x.dtype) if isinstance(x, cp.Array) else np.asarray(x).tobytes() for x in given)
        found = self.graphs.get(key)
        if found is None:
            if len(self.graphs) >= _MOST_GRAPHS:
                self.graphs.clear()
            self.graphs[key] = False
            return self.loop(*given)
        if found is False:
            found = self._record(given)
            if found is None:
                self.is_possible = False
                return self.loop(*given)
            self.graphs[key] = found
        graph, held, results = found
        for into, x in zip(held, given):
            if isinstance(x, cp.Array) and x.size:
                into[...] = x
        graph.run()
        copies = tuple(cp.asarray(x, copy=True) for x in results)
        return copies if len(copies) != 1 else copies[0]

    def _record(self, given):
        if sum(x.nbytes for x in given if isinstance(x, cp.Array)) > _MOST_BYTES:
            return None
        held = [cp.asarray(x, copy=True) if isinstance(x, cp.Array) else x for x in given]
        _recording.is_active = True
        try:
            with cp.graph.record(device()) as graph:
                results = self.loop(*held)
        except cp.Error:
            return None
        finally:
            _recording.is_active = False
        return graph, held, results if isinstance(results, tuple) else (results,)


_FEWEST_STEPS, _MOST_STEPS, _MOST_GRAPHS, _MOST_BYTES = 4, 4096, 8, 1 << 28


class _Recording(threading.local):
    is_active = False


_recording = _Recording()


def _shortened(found, op, n_mit_mot, states, done):
    """The recurrent outputs of a loop that a condition ended, without the rows that no step wrote."""
    for i, state in enumerate(states):
        written = state.first + done
        if written < found[n_mit_mot + i].shape[0]:
            found[n_mit_mot + i] = found[n_mit_mot + i][:written]
    return found


def _first(outer, select):
    chosen = select(list(range(len(outer))))
    return chosen[0] if chosen else 0


class _Moving:
    """A buffer that steps read and write at moving places."""

    __slots__ = ("buffer", "offset", "written")

    def __init__(self, buffer, taps):
        self.buffer, self.offset, self.written = buffer, -min(0, min(taps)) if taps else 0, {}

    def read(self, at):
        at = (at + self.offset) % self.buffer.shape[0]
        value = self.written.get(at)
        return self.buffer[at] if value is None else value

    def write(self, at, value):
        self.written[(at + self.offset) % self.buffer.shape[0]] = value

    def result(self):
        if not self.written:
            return cp.asarray(self.buffer, copy=True)
        return cp.stack([self.written[i] if i in self.written else self.buffer[i] for i in range(self.buffer.shape[0])])


