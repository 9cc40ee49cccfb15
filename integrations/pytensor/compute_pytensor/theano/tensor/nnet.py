# SPDX-License-Identifier: Apache-2.0
"""`theano.tensor.nnet`: activations and losses."""
import pytensor.tensor as pt
from pytensor.tensor.math import sigmoid, softplus  # noqa: F401
from pytensor.tensor.special import log_softmax as _log_softmax, softmax as _softmax


def softmax(x):
    """Of the last axis; a vector is one row, as in Theano."""
    x = pt.as_tensor_variable(x)
    return _softmax(pt.shape_padleft(x) if x.ndim == 1 else x, axis=-1)


def logsoftmax(x):
    return _log_softmax(pt.as_tensor_variable(x), axis=-1)


def relu(x, alpha=0):
    if alpha == 0:
        return 0.5 * (x + abs(x))
    return pt.switch(x > 0, x, alpha * x)


def elu(x, alpha=1):
    return pt.switch(x > 0, x, alpha * pt.expm1(x))


def hard_sigmoid(x):
    return pt.clip(x * 0.2 + 0.5, 0, 1)


def binary_crossentropy(output, target):
    return -(target * pt.log(output) + (1.0 - target) * pt.log(1.0 - output))


def categorical_crossentropy(coding, true):
    """The cross-entropy of each row; `true` are rows of probabilities, or the index of the class of each row."""
    if true.ndim == coding.ndim:
        return -pt.sum(true * pt.log(coding), axis=coding.ndim - 1)
    return -pt.log(coding[pt.arange(true.shape[0]), true])
