# SPDX-License-Identifier: Apache-2.0
"""Settings, reports, and scopes that say where in a program an error arose."""
from __future__ import annotations

import contextlib
import gc
import json
import sys

from . import _core

_TEXT, _JSON = 0, 1

# Called when memory is short: arrays that only cycles keep alive are freed, also where collection is disabled.
_core.hooks["collect"] = gc.collect


def config(name=None, value=..., /):
    """Settings. config() returns all of them, config(name) one; config(name, value) sets it; None unsets it."""
    if value is not ...:
        _core.config_set(name, None if value is None else str(value))
        return None
    lines = [line.split("\t") for line in _core.config_get(name).splitlines()]
    return lines[0][0] if name is not None else {line[0]: line[1] for line in lines}


def load_report():
    """Which plugins were loaded and which were not, with the reasons, as text."""
    return _core.load_report(_TEXT)


def placement_report():
    """What ran where since the start of the process, as a dict."""
    return json.loads(_core.placement_report(_JSON))


@contextlib.contextmanager
def scope(label):
    """Messages of errors inside the `with` statement name the label and the line."""
    frame = sys._getframe(2)
    _core.scope_push(label, frame.f_code.co_filename, frame.f_lineno)
    try:
        yield
    finally:
        _core.scope_pop()
