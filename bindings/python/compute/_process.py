# SPDX-License-Identifier: Apache-2.0
"""Settings, reports, and scopes that say where in a program an error arose."""
from __future__ import annotations

import contextlib
import gc
import os
import sys

from . import _core, _dtypes

_TEXT, _JSON = 0, 1

# Called when memory is short: arrays that only cycles keep alive are freed, also where collection is disabled.
_core.hooks["collect"] = gc.collect
after_end = []  # functions for the end of the interpreter, which run after the library's own end
_core.hooks["folder"] = os.path.join(os.path.dirname(__file__), "")  # a profile names lines outside of it


def _run_after_end():
    for function in after_end:
        function()


def _parsed(text):
    import json

    return json.loads(text)


def config(name=None, value=..., /):
    """Settings. config() returns all of them, config(name) one; config(name, value) sets it; None unsets it.

    Raises NotFoundError for an unknown name, and ValueError for a value that the setting does not take. docs/settings.md
    lists the settings.

    >>> compute.config("COMPUTE_MATH")
    'strict'
    """
    if value is not ...:
        _dtypes.set_setting(name, None if value is None else str(value))
        return None
    if name is not None:
        return _core.config_get(name)[0]
    return {setting["name"]: setting["value"] for setting in _parsed(_core.config_describe(_JSON))}


def load_report():
    """Which plugins were loaded and which were not, with the reasons, as text.

    >>> "cpu" in compute.load_report()
    True
    """
    return _core.load_report(_TEXT)


def placement_report():
    """What ran where since the start of the process, as a dict.

    >>> sorted(compute.placement_report())[0]
    'devices'
    """
    return _parsed(_core.placement_report(_JSON))


@contextlib.contextmanager
def scope(label):
    """Messages of errors inside the `with` statement name the label and the line.

    >>> try:
    ...     with compute.scope("training"):
    ...         compute.ones(2) + compute.ones(3)
    ... except ValueError as error:
    ...     print(str(error).partition("scope: ")[2][:8])
    training
    """
    frame = sys._getframe(2)
    _core.scope_push(label, frame.f_code.co_filename, frame.f_lineno)
    try:
        yield
    finally:
        _core.scope_pop()


class Profile:
    """What ops, transfers and preparations cost inside a `with profile():`.

    str(p) is the table; `seconds`, `ops`, `transfers` and `hints` have what it says. Transfers name the line of the
    program that asked for them. There is one profile at a time.
    """

    def __init__(self):
        self._text = self._data = None

    def __enter__(self):
        _core.profile_start()
        self._text = self._data = None
        return self

    def __exit__(self, *exception):
        self._text, self._data = _core.profile_report(_TEXT), _parsed(_core.profile_report(_JSON))
        _core.profile_stop()

    def _report(self):
        return self._data if self._data is not None else _parsed(_core.profile_report(_JSON))

    def __str__(self):
        return self._text if self._text is not None else _core.profile_report(_TEXT)

    @property
    def seconds(self):
        """Wall time in seconds: `total`, and its parts `cpu`, `device`, `transfer` and `elsewhere`."""
        report = self._report()
        parts = {name: report[name + "_ns"] / 1e9 for name in ("cpu", "device", "transfer", "elsewhere")}
        return {"total": report["wall_ns"] / 1e9, **parts}

    @property
    def ops(self):
        """A dict for each op, device, dtype and shape, the most expensive first."""
        return sorted(self._report()["ops"], key=lambda row: -row["total_ns"])

    @property
    def transfers(self):
        """A dict for each tensor, route and place in the program, the most expensive first."""
        return sorted(self._report()["transfers"], key=lambda row: -row["total_ns"])

    @property
    def hints(self):
        """What would save time, in words."""
        return self._report()["hints"]

    def plot(self, path=None, most=15):
        """Bars of the most expensive ops and transfers, by Matplotlib; written to `path`, or shown."""
        import matplotlib.pyplot as plt

        rows = [(f"{row['op']} {row['dtype']} on {row['device']}", row["total_ns"] / 1e6, row["calls"], "tab:blue")
                for row in self.ops]
        rows += [(f"{row['tensor'] or 'array'} {row['from']} to {row['to']}", row["total_ns"] / 1e6, row["count"], "tab:orange")
                 for row in self.transfers]
        rows = sorted(rows, key=lambda row: -row[1])[:most][::-1]
        figure, axes = plt.subplots(figsize=(9, 1.2 + 0.32 * len(rows)), layout="constrained")
        bars = axes.barh([row[0] for row in rows], [row[1] for row in rows], color=[row[3] for row in rows])
        axes.bar_label(bars, [f"{row[2]} calls" for row in rows], padding=3)
        axes.margins(x=0.15)
        axes.set_xlabel("ms in all calls (blue: ops, orange: transfers)")
        figure.savefig(path) if path is not None else plt.show()
        plt.close(figure)


def profile():
    """Profiles a block: `with profile() as p: ...`, then print(p).

    >>> with compute.profile() as p:
    ...     x = compute.ones((2, 2)) @ compute.ones((2, 2))
    >>> [row["calls"] for row in p.ops if row["op"] == "matmul"]
    [1]
    """
    return Profile()
