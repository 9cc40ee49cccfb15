# SPDX-License-Identifier: Apache-2.0
"""The names of Theano over PyTensor, for programs that were written for it.

`python -m compute_pytensor program.py` makes `import theano` mean this package.
"""
from __future__ import annotations

import sys

import pytensor
from pytensor import config, grad, gradient, ifelse, printing  # noqa: F401
from pytensor.compile.io import In, Out  # noqa: F401
from pytensor.compile.sharedvalue import shared  # noqa: F401
from pytensor.graph.basic import Apply, Constant, Variable  # noqa: F401
from pytensor.graph.op import Op  # noqa: F401
from pytensor.scan.views import foldl, foldr, map, reduce  # noqa: F401

from .. import activate as _activate
from . import compile, misc, sandbox, tensor  # noqa: F401
from .functions import MODE as _MODE, announce as _announce, function, scan  # noqa: F401

__version__ = f"1.0.5+pytensor{pytensor.__version__}"
Param = In
version = type(sys)("theano.version")
version.version = __version__
_activate(_MODE)
_announce()


def __getattr__(name):
    return getattr(pytensor, name)
