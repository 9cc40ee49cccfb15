# SPDX-License-Identifier: Apache-2.0
"""`theano.tensor`: the names of `pytensor.tensor`, and those that moved from there."""
import pytensor.tensor as _tensor
from pytensor.gradient import Lop, Rop, grad, hessian, jacobian  # noqa: F401
from pytensor.tensor import *  # noqa: F401,F403
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise  # noqa: F401
from pytensor.tensor.math import Dot  # noqa: F401
from pytensor.tensor.type import TensorType  # noqa: F401
from pytensor.tensor.variable import TensorConstant, TensorVariable  # noqa: F401

from . import nnet  # noqa: F401


def __getattr__(name):
    return getattr(_tensor, name)
