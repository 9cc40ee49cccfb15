# SPDX-License-Identifier: Apache-2.0
"""The op table: a function for every op of the library, `_ops.NAME(*inputs, out=None, **attributes)`."""
from __future__ import annotations

from . import _core

# Examples for docstrings: a call, its result and the dtype of that.
_EXAMPLES = """
abs([-1.5, 2.0]) = [1.5, 2. ] float32
acos([0.0, 1.0]) = [1.5707964, 0.       ] float32
acosh([1.0, 2.0]) = [0.      , 1.316958] float32
add([1, 2], [10, 20]) = [11, 22] int64
asin([0.0, 1.0]) = [0.       , 1.5707964] float32
asinh([0.0, 1.0]) = [0.       , 0.8813736] float32
atan([0.0, 1.0]) = [0.       , 0.7853982] float32
atan2([1.0, -1.0], 1.0) = [ 0.7853982, -0.7853982] float32
atanh([0.0, 0.5]) = [0.        , 0.54930615] float32
bitwise_and([5, 6], 4) = [4, 4] int64
bitwise_invert([0, 5]) = [-1, -6] int64
bitwise_left_shift([1, 3], 2) = [ 4, 12] int64
bitwise_or([5, 6], 8) = [13, 14] int64
bitwise_right_shift([8, -8], 1) = [ 4, -4] int64
bitwise_xor([5, 6], 4) = [1, 2] int64
cbrt([8.0, 27.0]) = [2., 3.] float32
ceil([1.2, -1.2]) = [ 2., -1.] float32
copysign([1.0, 2.0], -1.0) = [-1., -2.] float32
cos([0.0, 1.0]) = [1.       , 0.5403023] float32
cosh([0.0, 1.0]) = [1.       , 1.5430807] float32
deg2rad([90.0, 180.0]) = [1.5707964, 3.1415927] float32
divide([1, 2], 4) = [0.25, 0.5 ] float32
equal([1, 2], [1, 3]) = [ True, False] bool
erf([0.0, 1.0]) = [0.        , 0.84270084] float32
exp([0.0, 1.0]) = [1.       , 2.7182817] float32
expm1([0.0, 1.0]) = [0.       , 1.7182817] float32
floor([1.2, -1.2]) = [ 1., -2.] float32
floor_divide([7, -7], 2) = [ 3, -4] int64
fmod([7.0, -7.0], 3) = [ 1., -1.] float32
greater([1, 3], 2) = [False,  True] bool
greater_equal([1, 2], 2) = [False,  True] bool
heaviside([-1.0, 0.0, 2.0], 0.5) = [0. , 0.5, 1. ] float32
hypot([3.0, 5.0], [4.0, 12.0]) = [ 5., 13.] float32
isfinite([1.0, compute.inf, compute.nan]) = [ True, False, False] bool
isinf([1.0, compute.inf, compute.nan]) = [False,  True, False] bool
isnan([1.0, compute.inf, compute.nan]) = [False, False,  True] bool
less([1, 3], 2) = [ True, False] bool
less_equal([1, 2], 1) = [ True, False] bool
lgamma([1.0, 4.0]) = [0.       , 1.7917595] float32
log([1.0, compute.e]) = [0., 1.] float32
log10([1.0, 1000.0]) = [0., 3.] float32
log1p([0.0, 1.0]) = [0.       , 0.6931472] float32
log2([1.0, 8.0]) = [0., 3.] float32
logaddexp([0.0, 1.0], [0.0, 1.0]) = [0.6931472, 1.6931472] float32
logical_and([True, False], [True, True]) = [ True, False] bool
logical_not([True, False]) = [False,  True] bool
logical_or([True, False], [False, False]) = [ True, False] bool
logical_xor([True, False], [True, True]) = [False,  True] bool
maximum([1, 5], [3, 2]) = [3, 5] int64
minimum([1, 5], [3, 2]) = [1, 2] int64
multiply([1, 2], [3, 4]) = [3, 8] int64
negative([1, -2]) = [-1,  2] int64
not_equal([1, 2], [1, 3]) = [False,  True] bool
pow([2, 3], 2) = [4, 9] int64
rad2deg([0.0, compute.pi]) = [  0., 180.] float32
reciprocal([2.0, 4.0]) = [0.5 , 0.25] float32
remainder([7, -7], 3) = [1, 2] int64
round([0.5, 1.5, 2.4]) = [0., 2., 2.] float32
rsqrt([4.0, 16.0]) = [0.5 , 0.25] float32
sign([-3, 0, 2]) = [-1,  0,  1] int64
sin([0.0, 1.0]) = [0.        , 0.84147096] float32
sinh([0.0, 1.0]) = [0.       , 1.1752012] float32
sqrt([4.0, 9.0]) = [2., 3.] float32
square([2, -3]) = [4, 9] int64
subtract([5, 7], 2) = [3, 5] int64
tan([0.0, 1.0]) = [0.       , 1.5574077] float32
tanh([0.0, 1.0]) = [0.       , 0.7615942] float32
trunc([1.7, -1.7]) = [ 1., -1.] float32
nn.gelu([-1.0, 1.0]) = [-0.15865526,  0.8413447 ] float32
relu([-1.0, 2.0]) = [0., 2.] float32
sigmoid([0.0, 2.0]) = [0.5     , 0.880797] float32
nn.silu([-1.0, 1.0]) = [-0.26894143,  0.7310586 ] float32
nn.softplus([0.0, 1.0]) = [0.6931472, 1.3132617] float32
nn.log_sigmoid([0.0, 1.0]) = [-0.6931472, -0.3132617] float32
"""


def _example(line):
    call, _, result = line.partition(" = ")
    elements, _, dtype = result.rpartition(" ")
    return call.removeprefix("nn.").partition("(")[0], f">>> compute.{call}\nArray({elements}, dtype={dtype})"


TABLE = _core.op_table(dict(map(_example, _EXAMPLES.split("\n")[1:-1])))
ROWS = {name: entry["row"] for name, entry in TABLE.items() if entry["row"] is not None}
globals().update({name: entry["run"] for name, entry in TABLE.items()})

_DTYPES = {
    "attribute": "that of the argument dtype",
    "bool": "any; the result is bool",
    "computed": "floating-point; a loss of float16 or bfloat16 is float32",
    "count": "any; the result is int64",
    "decomposition": "floating-point and complex",
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
    "backward": "as of an exact result for operands that differ by at most 20 n u of their norm",
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
            text = entry["row"].__doc__
            text = text[text.index("Expression:"):]
        else:
            text = (f"Op:     {entry['name']}: {entry['summary']}\n"
                    f"Dtypes: {_DTYPES.get(entry['dtypes'], 'docs/ops.md')}\n"
                    f"Error:  {_BOUNDS.get(entry['bound'], entry['bound'])}")
        function.__doc__ = function.__doc__.rstrip() + "\n\n    " + text.replace("\n", "\n    ")
