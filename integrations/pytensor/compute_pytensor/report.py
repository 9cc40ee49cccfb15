# SPDX-License-Identifier: Apache-2.0
"""The placement report: which nodes ran on the host for lack of a device's op, and how often."""
from __future__ import annotations

import collections

_on_host = {}     # (name of the op, reason): calls
_planned = collections.Counter()  # names of ops of shapes and scalars
_on_device = collections.Counter()


class Count:
    """The number of calls of a node that runs on the host."""

    __slots__ = ("calls",)

    def __init__(self):
        self.calls = 0


def node_on_host(name, reason):
    """Notes a node that runs on the host. Each call increments the result's `calls`."""
    count = Count()
    _on_host.setdefault((name, reason), []).append(count)
    return count


def node_planned(name):
    _planned[name] += 1


def node_on_device(name):
    _on_device[name] += 1


class Nothing:
    """In the place of this module: notes nothing."""

    node_planned = node_on_device = staticmethod(lambda name: None)
    node_on_host = staticmethod(lambda name, reason: Count())


def reset():
    """Forgets all nodes."""
    _on_host.clear()
    _planned.clear()
    _on_device.clear()


def entries():
    """The nodes on the host: a list of (op, reason, nodes, calls), most calls first."""
    found = [(name, reason, len(counts), sum(one.calls for one in counts)) for (name, reason), counts in _on_host.items()]
    return sorted(found, key=lambda one: -one[3])


def placement_report():
    """The report as text: nodes of each op on the device, and those on the host with their calls and the reason."""
    lines = [f"on the device: {sum(_on_device.values())} nodes of {len(_on_device)} ops",
             f"on the host by plan (shapes and scalars of the host): {sum(_planned.values())} nodes of {len(_planned)} ops"]
    rows = entries()
    lines.append(f"on the host, by NumPy on a copy: {sum(row[2] for row in rows)} nodes of {len(rows)} ops")
    for name, reason, nodes, calls in rows:
        lines.append(f"  {name}: {nodes} node{'s' * (nodes != 1)}, {calls} call{'s' * (calls != 1)}; {reason}")
    return "\n".join(lines)
