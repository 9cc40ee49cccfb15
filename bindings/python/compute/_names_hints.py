# SPDX-License-Identifier: Apache-2.0
"""Names of NumPy and PyTorch: what to use for names that the package does not have. See _names.py."""
from __future__ import annotations


# Names that mean something else here, or nothing: what to use.
_HINTS = {
    "compute": {
        "vectorize": "a function of whole arrays, or compute.expression",
        "frompyfunc": "a function of whole arrays, or compute.expression",
        "apply_over_axes": "the function itself with axis=(...)", 
        "autograd": "compute.grad", "ufunc": "any function of the package", "matrix": "an array with two axes",
        "bmat": "block", "vmap": "a function of whole arrays, which broadcast", "genfromtxt": "loadtxt", "fromfile": "frombuffer(file.read(), dtype)", "memmap": "asarray(numpy.memmap(...))",
        "nditer": "a function of whole arrays", "object_": "nothing: arrays hold numbers", "str_": "nothing: arrays hold numbers",
        "poly1d": "polyfit and polyval", "shares_memory": "may_share_memory, which compares buffers", "jit": "compute.graph.record",
        "compile": "compute.graph.record", "grad_fn": "compute.grad", "logical_reduce": "all or any",
        "Parameter": "any array", "char": "nothing: arrays hold numbers",
        "ma": "where(mask, x, 0), with the mask in an array of its own", "recarray": "an array for each field", "datetime64": "nothing: arrays hold numbers, such as seconds in int64",
        "timedelta64": "nothing: arrays hold numbers, such as seconds in int64", "bytes_": "nothing: arrays hold numbers", "exceptions": "numpy.exceptions", "testing": "numpy.testing, which takes arrays of this package", "asmatrix": "an array with two axes",
        "einsum_path": "nothing: operands are contracted from left to right",
        "format_float_positional": "f\"{x:.3f}\"", "resize": "reshape, or concat with zeros",
        "packbits": "sum(x.reshape(-1, 8) * 2 ** arange(7, -1, -1), axis=1)", "unpackbits": "(x[..., None] >> arange(7, -1, -1, dtype=uint8)) & 1", "require": "ascontiguousarray",
        "stft": "fft.rfft of the frames of sliding_window_view", "distributions": "compute.random for samples, and the formula of a density", "sparse_coo_tensor": "zeros(shape) with x[i, j] = y",
        "kaiser_window": "hamming_window, hann_window or blackman_window", "triangular_solve": "linalg.solve_triangular or linalg.triangular_solve", "set_default_tensor_type": "set_default_dtype", "set_float32_matmul_precision": "the setting COMPUTE_MATH", "lu": "linalg.lu", "lstsq": "linalg.lstsq", "solve": "linalg.solve", "backends": "settings, see compute.config()", "utils": "the modules of Python's that load data; arrays are indexed by arrays", "typename": "x.dtype", "poisson": "random.poisson", "igamma": "gammainc", "igammac": "gammaincc", "symeig": "linalg.eigh", "autocast": "astype(x, float16)", "use_deterministic_algorithms": "the setting COMPUTE_DETERMINISTIC"},
    "compute.linalg": {
        "tensorinv": "inv of a reshaped array", "tensorsolve": "solve of reshaped arrays"},
    "compute.random": {
        "beta": "gamma(a) / (gamma(a) + gamma(b))",
        "RandomState": "default_rng", "laplace": "not implemented"},
    "compute.nn": {
        "Linear": "linear, a function of x, weight and bias",
        "Conv1d": "convolution", "Conv2d": "convolution", "Conv3d": "convolution",
        "conv_transpose2d": "convolution_transpose", "MaxPool2d": "max_pool", "AvgPool2d": "average_pool",
        "ReLU": "relu", "GELU": "gelu", "Sigmoid": "sigmoid", "Softmax": "softmax", "Dropout": "dropout", "LayerNorm": "layer_norm", "BatchNorm2d": "batch_norm",
        "Embedding": "embedding", "Module": "functions of arrays, and lists or dicts of parameters", "Sequential": "functions of arrays", "Parameter": "any array",
        "CrossEntropyLoss": "cross_entropy, and compute.mean of it", "MSELoss": "mse_loss",
        "interpolate": "nn.functional.interpolate", 
        "MultiheadAttention": "attention", "LSTM": "lstm, a function of x and the weights", "GRU": "gru, a function of x and the weights", "tanh": "compute.tanh"},
    "compute.Array": {
        
        "backward": "compute.grad.value_and_gradients, which takes a function",
        "grad": "the second result of compute.grad.value_and_gradients", "grad_fn": "compute.grad",
        "resize": "compute.reshape, or concat with zeros", "resize_": "compute.reshape, or concat with zeros", "base": "nothing: views keep their memory themselves", "ctypes": "__array_interface__",
        "setflags": "nothing: arrays can be written", "flags": "is_contiguous", "put": "compute.put(x, i, y)", "choose": "compute.choose(x, choices)", "compress": "compute.compress(mask, x)",
        "t_": "x.t(), a view", "unsqueeze_": "x.unsqueeze(dim), a view", "squeeze_": "x.squeeze(), a view", "transpose_": "x.transpose(...), a view", "swapaxes_": "x.swapaxes(...), a view", "set_": "x.copy_(y)", "lu": "compute.linalg.lu(x)",
        "is_sparse": "nothing: arrays are dense", "layout": "nothing: arrays are dense", "storage": "native_handle", "data_ptr": "native_handle", "retain_grad": "compute.grad, whose functions take arrays", "storage_offset": "native_handle", "is_leaf": "compute.grad, whose functions take arrays", "register_hook": "compute.grad, whose functions take arrays", "dump": "compute.save", "tofile": "compute.save",
        "byteswap": "nothing: elements have the order of the host", "item_": "item", "get": "numpy", "map_": "compute.expression", "apply_": "compute.expression"},
}


def missing(owner: str, name: str) -> AttributeError:
    """The error for an attribute that a module or an array does not have."""
    subject = f"{owner!r} object" if owner == "compute.Array" else f"module {owner!r}"
    hint = _HINTS[owner].get(name)
    if hint is None:
        return AttributeError(f"{subject} has no attribute {name!r}")
    return AttributeError(f"{subject} has no attribute {name!r}" + f"; here it is {hint}")
