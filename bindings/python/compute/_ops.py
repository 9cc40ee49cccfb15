# SPDX-License-Identifier: Apache-2.0
"""The op table: a function for every op of the library, `_ops.NAME(*inputs, out=None, **attributes)`."""
from __future__ import annotations

from . import _core

TABLE = _core.op_table()
ROWS = {name: entry["row"] for name, entry in TABLE.items() if entry["row"] is not None}
globals().update({name: entry["run"] for name, entry in TABLE.items()})
