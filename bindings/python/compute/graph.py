# SPDX-License-Identifier: Apache-2.0
"""Recorded graphs: work that is queued once and run many times, each time as one submission.

    with compute.graph.record(device) as g:
        y = compute.tanh(x @ w)
    for batch in batches:
        x[...] = batch
        g.run()                     # y has the new values
"""
from __future__ import annotations

from . import _core, _creation, _devices, _dtypes


class Graph:
    """A recording, and afterwards what it recorded."""

    def __init__(self, stream):
        self.stream = stream
        self._graph = None

    def __enter__(self):
        _core.begin_graph(self.stream)
        self.stream.__enter__()
        return self

    def __exit__(self, kind, *exception):
        self.stream.__exit__(kind, *exception)
        if kind is None:
            self._graph = _core.end_graph(self.stream)
            return
        try:  # the current exception is more useful than the failed recording
            _core.end_graph(self.stream)
        except _core.hooks["Error"]:
            pass

    def run(self, stream=None):
        """Queues a run, on the stream of the recording unless another one is given."""
        self._recorded().run(stream or self.stream)

    def set(self, slot, value):
        """Sets the value of a slot, a number or an array of one element, for later runs."""
        value = _dtypes.number(value)
        if not isinstance(value, _dtypes.NUMBERS):
            value = _creation.asarray(value).item()
        self._recorded().set_slot(slot, _creation.bytes_of(value, slot.dtype))

    @property
    def info(self):
        """Facts about the graph, as a dict."""
        return self._recorded().info()

    def _recorded(self):
        if self._graph is None:
            raise RuntimeError("the graph has not been recorded: its `with` statement has not ended, or raised an exception")
        return self._graph


def record(device=None, *, stream=None):
    """Starts a recording in a `with` statement, in a stream of its own unless one is given.

    >>> x = compute.asarray([1.0, 2.0])
    >>> with compute.graph.record() as g:
    ...     y = x * 2
    >>> g.run()
    >>> y
    Array([2., 4.], dtype=float32)
    """
    return Graph(stream or _devices.stream(device))


def slot(dtype):
    """A number whose value in a recorded graph can be changed with Graph.set. It starts as 0."""
    return _core.scalar(None, dtype, 0)
