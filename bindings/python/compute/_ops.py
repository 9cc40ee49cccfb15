# SPDX-License-Identifier: Apache-2.0
"""The op table: a function for every op of the library, `_ops.NAME(*inputs, out=None, **attributes)`."""
from __future__ import annotations

from . import _core

TABLE = _core.op_table()
ROWS = {name: entry["row"] for name, entry in TABLE.items() if entry["row"] is not None}
globals().update({name: entry["run"] for name, entry in TABLE.items()})

_DTYPES = {
    "attribute": "that of the argument dtype",
    "bool": "any; the result is bool",
    "computed": "floating-point; a loss of float16 or bfloat16 is float32",
    "count": "any; the result is int64",
    "first": "any; indices are integers",
    "floating": "floating-point, the same for all arrays",
    "inexact": "floating-point and complex",
    "order": "all but complex",
    "ordered": "all but complex; the result is bool",
    "position": "all but complex; the result is int64",
    "promote": "the result has the common dtype of the arrays",
    "real": "integers and floating-point",
    "same": "the result has that of x",
    "scatter": "updates have that of x; indices are integers",
    "segment": "the result has that of x; offsets are integers",
    "widen": "the argument dtype, else 64 bits for integers and that of x for others",
}
_BOUNDS = {
    "exact": "none, or correctly rounded",
    "n": "at most n u times the sum of the magnitudes of the n terms",
    "log2": "at most (log2(n) + 8) u times the sum of the magnitudes of the n terms",
}


def document(functions, ops):
    """Appends what the table says of an op to the docstrings of the functions of that name. `ops` has other names."""
    for name, function in functions.items():
        entry = TABLE.get(ops.get(name, name))
        if entry is None or not function.__doc__ or function is entry["row"]:  # python -OO keeps no docstrings
            continue
        if entry["row"] is not None:
            text = entry["row"].__doc__.partition("\n\n")[2]
        else:
            text = (f"Op:     {entry['name']}: {entry['summary']}\n"
                    f"Dtypes: {_DTYPES.get(entry['dtypes'], 'docs/ops.md')}\n"
                    f"Error:  {_BOUNDS.get(entry['bound'], entry['bound'])}")
        function.__doc__ = function.__doc__.rstrip() + "\n\n    " + text.replace("\n", "\n    ")
