# SPDX-License-Identifier: Apache-2.0
"""How each op of PyTensor runs: the rules, by the class of the op."""
from __future__ import annotations

import dataclasses
from typing import Any, Callable

HOST, DEVICE, ANY = "host", "device", "any"

RULES = {}


@dataclasses.dataclass(slots=True)
class Lowered:
    """A node as a function.

    `wants` says for each input where its value must be: HOST, DEVICE, or ANY; `gives` says where the results are. The
    function returns the result, or a tuple of several.
    """

    function: Callable[..., Any]
    wants: list[str]
    gives: list[str]
    why: str = ""       # for a node that runs on the host: the reason
    is_planned: bool = False  # that it runs on the host is a decision of the rule, not for lack of an op
    inputs: list | None = None  # the variables that the function takes, where they are not the node's inputs


class HostOnly(Exception):
    """Raised by a rule for a node that it has no function for. The message is the reason in the placement report."""


def lowers(*types):
    """Registers a rule: `rule(op, node, placed)` returns a Lowered. `placed(x)` says where the value of a variable is."""
    def register(rule):
        for one in types:
            RULES[one] = rule
        return rule
    return register


def find(op):
    """The rule for an op: that of its class, or of the nearest base class."""
    for kind in type(op).__mro__:
        rule = RULES.get(kind)
        if rule is not None:
            return rule
    return None


def on_device(function, node):
    """A Lowered whose inputs and results are all on the device."""
    return Lowered(function, [DEVICE] * len(node.inputs), [DEVICE] * len(node.outputs))
