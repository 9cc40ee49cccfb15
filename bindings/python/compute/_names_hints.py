# SPDX-License-Identifier: Apache-2.0
"""Names of NumPy and PyTorch: what to use for names that the package does not have. See _names.py."""
from __future__ import annotations


# Names that mean something else here, or nothing: what to use.
_HINTS = {
    "compute": {
        "scatter_reduce": 'scatter(x, i, y, axis=..., reduction="add"), "mul", "min" or "max"',
        "index_put": "x[i, j] = y, or scatter_nd", "conv1d": "nn.convolution", "conv2d": "nn.convolution", "conv3d": "nn.convolution",
        "conv_transpose2d": "nn.convolution_transpose", "vectorize": "a function of whole arrays, or compute.expression",
        "frompyfunc": "a function of whole arrays, or compute.expression",
        "apply_over_axes": "the function itself with axis=(...)", "no_grad": "nothing: gradients are recorded inside compute.grad alone; compute.grad.constant(x) is a constant",
        "autograd": "compute.grad", "Generator": "random.Generator", "ufunc": "any function of the package", "matrix": "an array with two axes",
        "bmat": "block", "vmap": "a function of whole arrays, which broadcast", "genfromtxt": "loadtxt", "fromfile": "frombuffer(file.read(), dtype)", "memmap": "asarray(numpy.memmap(...))",
        "nditer": "a function of whole arrays", "object_": "nothing: arrays hold numbers", "str_": "nothing: arrays hold numbers",
        "poly1d": "polyfit and polyval", "shares_memory": "may_share_memory, which compares buffers", "std_mean": "std and mean", "var_mean": "var and mean", "jit": "compute.graph.record",
        "compile": "compute.graph.record", "grad_fn": "compute.grad", "logical_reduce": "all or any",
        "logcumsumexp": "log(cumulative_sum(exp(x - max(x)))) + max(x)", "Parameter": "any array", "char": "nothing: arrays hold numbers",
        "ma": "where(mask, x, 0), with the mask in an array of its own", "recarray": "an array for each field", "datetime64": "nothing: arrays hold numbers, such as seconds in int64",
        "timedelta64": "nothing: arrays hold numbers, such as seconds in int64", "bytes_": "nothing: arrays hold numbers", "exceptions": "numpy.exceptions", "testing": "numpy.testing, which takes arrays of this package", "asmatrix": "an array with two axes",
        "einsum_path": "nothing: operands are contracted from left to right", "dist": "linalg.vector_norm(x - y)",
        "format_float_positional": "f\"{x:.3f}\"", "resize": "reshape, or concat with zeros",
        "packbits": "sum(x.reshape(-1, 8) * 2 ** arange(7, -1, -1), axis=1)", "unpackbits": "(x[..., None] >> arange(7, -1, -1, dtype=uint8)) & 1", "require": "ascontiguousarray",
        "unique_consecutive": "x[concat([asarray([True]), x[1:] != x[:-1]])]", "stft": "not implemented yet"},
    "compute.linalg": {
        "tensorinv": "inv of a reshaped array", "tensorsolve": "solve of reshaped arrays",
        "matrix_exp": "expm"},
    "compute.random": {
        "binomial": "bernoulli, which draws one trial", "beta": "gamma(a) / (gamma(a) + gamma(b))", "poisson": "not implemented",
        "RandomState": "default_rng", "multinomial": "categorical", "laplace": "not implemented"},
    "compute.nn": {
        "Linear": "linear, a function of x, weight and bias",
        "Conv1d": "convolution", "Conv2d": "convolution", "Conv3d": "convolution",
        "conv_transpose2d": "convolution_transpose", "MaxPool2d": "max_pool", "AvgPool2d": "average_pool",
        "ReLU": "relu", "GELU": "gelu", "Sigmoid": "sigmoid", "Softmax": "softmax", "Dropout": "dropout", "LayerNorm": "layer_norm", "BatchNorm2d": "batch_norm",
        "Embedding": "embedding", "Module": "functions of arrays, and lists or dicts of parameters", "Sequential": "functions of arrays", "Parameter": "any array",
        "CrossEntropyLoss": "cross_entropy, and compute.mean of it", "MSELoss": "mse_loss",
        "interpolate": "not implemented", "binary_cross_entropy": "binary_cross_entropy_with_logits",
        "MultiheadAttention": "attention", "LSTM": "not implemented", "tanh": "compute.tanh"},
    "compute.Array": {
        "median": "compute.median(x), the mean of the middle two, where PyTorch takes the lower one",
        "backward": "compute.grad.value_and_gradients, which takes a function", "requires_grad": "compute.grad, whose functions take arrays", "requires_grad_": "compute.grad, whose functions take arrays",
        "grad": "the second result of compute.grad.value_and_gradients", "grad_fn": "compute.grad", "data": "the array itself", "index_put_": "x[i, j] = y",
        "resize": "compute.reshape, or concat with zeros", "resize_": "compute.reshape, or concat with zeros", "base": "nothing: views keep their memory themselves", "ctypes": "__array_interface__",
        "setflags": "nothing: arrays can be written", "flags": "is_contiguous", "put": "compute.put(x, i, y)", "choose": "compute.choose(x, choices)", "compress": "compute.compress(mask, x)",
        "storage": "native_handle", "data_ptr": "native_handle", "retain_grad": "compute.grad, whose functions take arrays", "storage_offset": "native_handle", "is_leaf": "compute.grad, whose functions take arrays", "register_hook": "compute.grad, whose functions take arrays", "dump": "compute.save", "tofile": "compute.save",
        "byteswap": "nothing: elements have the order of the host", "item_": "item", "get": "numpy", "map_": "compute.expression", "apply_": "compute.expression"},
}


def missing(owner: str, name: str) -> AttributeError:
    """The error for an attribute that a module or an array does not have."""
    subject = f"{owner!r} object" if owner == "compute.Array" else f"module {owner!r}"
    hint = _HINTS[owner].get(name)
    if hint is None:
        return AttributeError(f"{subject} has no attribute {name!r}")
    return AttributeError(f"{subject} has no attribute {name!r}" + f"; here it is {hint}")
