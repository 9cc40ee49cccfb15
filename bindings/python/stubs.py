#!/usr/bin/env -S python3 -BP
# SPDX-License-Identifier: Apache-2.0
"""Writes the type stubs compute/*.pyi from the imported package, or compares them with --check.

Parameters of one name have one type everywhere: the one in the table of ops, unless the lists below have another. `axis`
may be several axes, or None, in a function of an op that reduces over axes.
"""
import functools
import inspect
import pathlib
import re
import sys
import types

import compute
from compute import _functional, _functions, _names, distributed, expressions, fft, grad, graph, kernels, linalg, nn, optim, random

ARRAY, LIKE, NUMBER = "Array", "ArrayLike", "int | float | complex | bool"
PARAMETERS = {
    "condition": LIKE, "obj": "object", "fill_value": NUMBER, "dtype": "DType | None", "device": "Device | str | None",
    "copy": "bool | None", "axis": "int", "keepdims": "bool", "axes": "int | Sequence[Any]", "start": NUMBER,
    "stop": f"{NUMBER} | None", "step": "int | float", "num": "int", "endpoint": "bool", "k": "int", "n_rows": "int",
    "n_cols": "int | None", "min": f"{LIKE} | int | float | None", "max": f"{LIKE} | int | float | None",
    "prepend": f"{LIKE} | None", "append": f"{LIKE} | None", "side": 'Literal["left", "right"]', "descending": "bool",
    "stable": "bool", "invert": "bool", "include_initial": "bool", "shift": "int | tuple[int, ...] | None",
    "repeats": f"int | {LIKE}", "repetitions": "tuple[int, ...]", "source": "int | tuple[int, ...]",
    "destination": "int | tuple[int, ...]", "indexing": 'Literal["xy", "ij"]',
    "kind": "DType | str | tuple[DType | str, ...]", "type": f"DType | {LIKE}", "from_": f"DType | {LIKE}",
    "to": "DType", "selector": "str | None", "priority": "int", "label": "str", "text": "str", "name": "str | None",
    "requires_grad": "bool", "value": "Any", "language": "str", "options": "str | None", "array": ARRAY, "scale": f"{LIKE} | None",
    "mean": LIKE, "table": LIKE, "padding": "int | Sequence[int] | str", "transpose_weight": "bool", "causal": "bool",
    "interleaved": "bool", "alpha": f"{LIKE} | float", "slope": f"{LIKE} | float", "generator": "Any", "path": "Any",
    "arrays": f"{LIKE} | dict[str, {LIKE}]", "operands": LIKE,
    "pad_width": "int | Sequence[int] | Sequence[tuple[int, int]]",
    "mode": 'Literal["constant", "edge", "reflect", "symmetric", "wrap"]', "constant_values": f"{NUMBER} | Sequence[Any]", "largest": "bool",
    "bins": f"int | {LIKE}", "range": "tuple[float, float] | None", "weights": f"{LIKE} | None",
    "density": "bool", "minlength": "int", "rtol": "float", "atol": "float", "equal_nan": "bool",
    "q": f"float | {LIKE}", "updates": f"{LIKE} | {NUMBER}",
    "reduction": 'Literal["set", "add", "mul", "min", "max"]', "output_padding": "int | Sequence[int]",
    "indices_or_sections": f"int | {LIKE}", "xp": LIKE, "fp": LIKE, "left": "float | None",
    "period": "float | None", "dx": f"float | {LIKE}", "spacing": f"float | {LIKE}", "edge_order": "int",
    "rowvar": "bool", "ord": "Any", "offset": "int", "seed": "int", "minimum": NUMBER, "maximum": NUMBER,
    "upper": "bool", "unit_diagonal": "bool", "full_matrices": "bool", "replace": "bool", "parameters": "Any", "gradients": "Any", "settings": "float", "nesterov": "bool",
    "function": "Callable[..., Any]", "stream": "Stream | None", "exception": "object",
    "positional": f"{LIKE} | {NUMBER}", "named": f"{LIKE} | {NUMBER}", "items": "int | Sequence[int]",
    "arguments": "Any", "local_memory_bytes": "int", "names": "Any", "more": "Any", "out": f"{ARRAY} | None", "sorted": "bool",
    "norm": 'Literal["backward", "ortho", "forward"] | None', "s": "Sequence[int] | None", "d": "float",
    "argnums": "int | Sequence[int] | None", "has_aux": "bool", "as_tuple": "bool", "dim": "int | None", "order": "str", "sparse": "bool", "retstep": "bool", "optimize": "Any",
    "deterministic": "bool", "root": "int", "peer": "int", "color": "int", "transport": "Any", "group": "Any", "key": "Any", "size_bytes": "int", "overwrite_input": "bool", "mmap_mode": "str | None", "sorter": f"{LIKE} | None", "right": "bool | None", "index": "int | None",
    "offsets": LIKE, "scales": LIKE, "bias": f"{LIKE} | None", "p": "float", "rate": "float"
}
# Where a name means something else.
SPECIAL = {
    ("concat", "arrays"): f"Sequence[{LIKE}]", ("stack", "arrays"): f"Sequence[{LIKE}]", ("isdtype", "dtype"): "DType",
    ("astype", "dtype"): "DType", ("set_default_dtype", "dtype"): "DType", ("from_dlpack", "x"): "object", ("meshgrid", "arrays"): LIKE,
    ("broadcast_arrays", "arrays"): LIKE, ("broadcast_shapes", "shapes"): "tuple[int | None, ...]",
    ("result_type", "arrays_and_dtypes"): f"{LIKE} | DType | {NUMBER}", ("expression", "names"): "str",
    ("kernel", "name"): "str", ("kernel", "source"): "str", ("attention", "k"): LIKE,
    ("attention", "scale"): "float", ("top_k", "k"): "int", ("one_hot", "depth"): "int | None", ("attention", "q"): LIKE, ("segment_reduce", "kind"): 'Literal["sum", "prod", "min", "max"]',
    ("interp", "x"): f"{LIKE} | float", ("interp", "right"): "float | None", ("digitize", "right"): "bool",
    ("digitize", "bins"): LIKE, ("trapezoid", "y"): LIKE, ("trapezoid", "x"): f"{LIKE} | None",
    ("cov", "y"): f"{LIKE} | None", ("corrcoef", "y"): f"{LIKE} | None",
    ("convolve", "mode"): 'Literal["full", "same", "valid"]', ("correlate", "mode"): 'Literal["full", "same", "valid"]',
    ("searchsorted", "x2"): f"{LIKE} | int | float", ("set_default_device", "device"): "Device | str | None", ("gather_at", "indices"): LIKE, ("gather_nd", "indices"): LIKE, ("scatter_at", "indices"): LIKE,
    ("einsum", "equation"): f"str | {LIKE}", ("isin", "x1"): f"{LIKE} | {NUMBER}", ("isin", "x2"): f"{LIKE} | {NUMBER}",
    **{(name, "rtol"): f"float | {LIKE} | None" for name in ("lstsq", "matrix_rank", "pinv")}, ("qr", "mode"): 'Literal["reduced", "complete"]',
    **{(name, x): LIKE for name in ("lstsq", "solve", "triangular_solve") for x in ("x1", "x2")},
    ("outer", "x1"): LIKE, ("outer", "x2"): LIKE, ("cross", "x1"): LIKE, ("cross", "x2"): LIKE,
    ("matmul", "x1"): LIKE, ("matmul", "x2"): LIKE, ("gemm", "alpha"): "float", ("trace", "offset"): "int",
    ("vector_norm", "ord"): "int | float", ("matrix_norm", "ord"): 'int | float | Literal["fro", "nuc"]',
    ("normal", "mean"): "float", ("truncated_normal", "mean"): "float", ("truncated_normal", "upper"): "float", ("choice", "x"): f"{LIKE} | int",
    ("choice", "p"): f"{LIKE} | None", ("gamma", "alpha"): LIKE, ("poisson", "rate"): LIKE,
    ("binomial", "count"): LIKE, ("binomial", "p"): LIKE, ("multinomial", "count"): LIKE, ("multinomial", "p"): LIKE, ("slot", "dtype"): "DType",
    ("sort", "kind"): "str | None", ("argsort", "kind"): "str | None", ("cov", "correction"): "float | None", ("cov", "bias"): "bool",
    ("where", "x1"): f"{LIKE} | {NUMBER} | None", ("where", "x2"): f"{LIKE} | {NUMBER} | None", ("permutation", "n"): f"int | {LIKE}",
    ("value_and_gradients", "function"): "Callable[..., R]", ("Graph", "stream"): "Stream", ("Graph.set", "slot"): "Any",
    ("Graph.__exit__", "kind"): "object", ("Kernel", "source"): "str", ("Kernel", "name"): "str", ("Kernel.__call__", "group"): "int | Sequence[int]",
    ("Expression.reduce", "kind"): 'Literal["sum", "prod", "min", "max", "all", "any"]',
    ("Expression.reduce", "after"): "str | None", ("Expression", "names"): "str", ("Expression.evaluator", "numbers"): "str",
    ("Expression.reducer", "kind"): 'Literal["sum", "prod", "min", "max", "all", "any"]', ("Expression.reducer", "after"): "str | None",
    ("Expression.__call__", "out"): f"{ARRAY} | tuple[{ARRAY}, ...] | None",
}
SPECIAL.update({(f"Group.{name}", "op"): 'Literal["sum", "prod", "min", "max", "mean"]' for name in ("all_reduce", "reduce_scatter")})
SPECIAL.update({("Group.recv", "shape"): "int | Sequence[int]", ("Group.recv", "dtype"): "DType", ("Group.recv_into", "out"): ARRAY,
                ("groups", "devices"): "Sequence[Device | str]", ("Group.split", "key"): "int", ("Group", "handle"): "Any"})
SPECIAL.update({(name, "axis"): "int | None" for name in (
    "argmax", "argmin", "argsort", "concat", "cumulative_max", "cumulative_min", "cumulative_prod", "cumulative_sum",
    "nanargmax", "nanargmin", "repeat", "sort", "take", "take_along_axis")})
SPECIAL.update({(name, "n"): "int | None" for name in ("fft", "hfft", "ifft", "ihfft", "irfft", "rfft")})
SPECIAL.update({(name, "axis"): "int" for name in ("fft", "irfft", "rfft")})
SPECIAL.update({(name, "axes"): "Sequence[int] | None" for name in ("fft2", "fftn", "ifft2", "ifftn", "irfft2", "irfftn", "rfft2", "rfftn")})
SPECIAL.update({(name, "axes"): "int | Sequence[int] | None" for name in ("fftshift", "ifftshift")})
SPECIAL.update({(name, "offsets"): f"{LIKE} | None" for name in ("dequantize", "quantized_matmul")})
SPECIAL.update({("dequantize", "size"): "int | None", ("quantize", "symmetric"): "bool"})
SPECIAL.update({("resize", "scales"): "Sequence[float] | None", ("resize", "axes"): "int | Sequence[int] | None", ("resize", "mode"): "str",
                ("resize", "exclude_outside"): "bool", ("resize", "antialias"): "bool", ("gru", "linear_before_reset"): "bool",
                ("local_response_norm", "size"): "int", ("local_response_norm", "alpha"): "float", ("local_response_norm", "bias"): "float"})
SPECIAL["expand_dims", "axis"] = "int | tuple[int, ...] | None"
SPECIAL["permute_dims", "axes"] = "int | Sequence[Any] | None"
SPECIAL["tile", "repetitions"] = "int | Sequence[int] | None"
SPECIAL["scatter", "operands"] = f"{LIKE} | {NUMBER}"
SPECIAL["full", "fill_value"] = f"{NUMBER} | None"
SPECIAL.update({(name, "shape"): "int | Sequence[int] | None" for name in ("empty", "full", "ones", "zeros")})
SPECIAL.update({(name, "axis"): "int | tuple[int, ...] | None" for name in (
    "Expression.reduce", "average", "flip", "gradient", "median", "nanmax", "nanmean", "nanmedian", "nanmin", "nanpercentile", "nanprod",
    "nanquantile", "nanstd", "nansum",
    "nanvar", "percentile", "quantile", "roll", "squeeze", "vector_norm")})
RESULTS = {
    "finfo": "finfo_object", "iinfo": "iinfo_object", "can_cast": "bool", "isdtype": "bool", "result_type": "DType",
    "nonzero": f"tuple[{ARRAY}, ...]", "meshgrid": f"tuple[{ARRAY}, ...]", "unstack": f"tuple[{ARRAY}, ...]",
    "broadcast_arrays": f"tuple[{ARRAY}, ...]", "broadcast_shapes": "tuple[int | None, ...]",
    "unique_all": "UniqueAll", "unique_counts": "UniqueCounts", "unique_inverse": "UniqueInverse", "device": "Device",
    "devices": "tuple[Device, ...]", "device_list": "list[dict[str, Any]]", "which": "str", "stream": "Stream",
    "set_default_dtype": "None", "set_default_device": "None", "save": "None", "load": "Any", "config": "Any", "load_report": "str", "placement_report": "dict[str, Any]", "profile": "Profile",
    "scope": "ContextManager[None]",
    "expression": "Expression", "kernel": "Kernel", "reads": "Any", "__array_namespace_info__": "Any",
    "eig": "EigResult", "eigh": "EighResult", "lstsq": "LstsqResult", "lu": "LUResult", "qr": "QRResult", "slogdet": "SlogdetResult",
    "svd": "SVDResult", "top_k": "TopK", "allclose": "bool", "histogram": f"tuple[{ARRAY}, {ARRAY}]",
    "array_split": f"tuple[{ARRAY}, ...]", "split": f"tuple[{ARRAY}, ...]", "hsplit": f"tuple[{ARRAY}, ...]",
    "vsplit": f"tuple[{ARRAY}, ...]", "gradient": f"{ARRAY} | tuple[{ARRAY}, ...]",
    "batch_norm": f"tuple[{ARRAY}, {ARRAY}, {ARRAY}]", "lstm": f"tuple[{ARRAY}, {ARRAY}, {ARRAY}]", "gru": f"tuple[{ARRAY}, {ARRAY}]", "quantize": f"tuple[{ARRAY}, {ARRAY}, {ARRAY} | None]", "seed": "None", "shuffle": "None",
    "value_and_gradients": "Callable[..., tuple[R, Any]]", "gradients": "Callable[..., Any]", "record": "Graph",
    "slot": "Any", "Graph.__enter__": "Graph", "Graph.run": "None", "Graph.set": "None", "Expression.__call__": "Any",
    "Expression.evaluator": f"Callable[..., tuple[{ARRAY}, ...]]", "Expression.reducer": f"Callable[..., {ARRAY}]",
    "init": "Group", "over": "Group", "groups": "list[Group]", "Group.split": "Group", "Group.send": "None", "Group.barrier": "None", "Group.abort": "None", "Average.add": "None", "Average.results": "dict[Any, Array]",
    "Kernel.__call__": "None", "SGD.step": "None", "Adam.step": "None", "AdamW.step": "None",
}
# Attributes of classes, which no signature tells.
ATTRIBUTES = {
    "Generator": {"state": "tuple[int, int]"}, "NumPyGenerator": {"generator": "Generator"}, "SGD": {"parameters": f"list[{ARRAY}]", "steps": "int"},
    "Adam": {"parameters": f"list[{ARRAY}]", "steps": "int"}, "AdamW": {"parameters": f"list[{ARRAY}]", "steps": "int"},
    "Graph": {"stream": "Stream", "info": "dict[str, Any]"}, "Expression": {"text": "str", "names": "tuple[str, ...]"},
    "Kernel": {"source": "str", "name": "str", "language": "str", "options": "str | None"},
    "Reads": {"array": ARRAY},
    "Average": {}, "Group": {"rank": "int", "size": "int", "device": "Device", "description": "str"},
}
HEAD = '''# SPDX-License-Identifier: Apache-2.0
# Generated by bindings/python/stubs.py. Do not edit.
'''
TYPES = '''from collections.abc import Callable, Iterable, Sequence
from typing import Any, ContextManager, Literal, NamedTuple, Protocol, TypeAlias, overload

from . import distributed as distributed, fft as fft, grad as grad, graph as graph, linalg as linalg, nn as nn, optim as optim, random as random
from ._errors import (CancelledError as CancelledError, CompileError as CompileError, DeviceError as DeviceError,
                      Error as Error, FileError as FileError, ForkedError as ForkedError, InvalidArgumentError as InvalidArgumentError,
                      InvalidTypeError as InvalidTypeError, KernelError as KernelError, NotFoundError as NotFoundError,
                      NumericalError as NumericalError, OutOfMemoryError as OutOfMemoryError,
                      OutOfRangeError as OutOfRangeError, PeerError as PeerError, UnsupportedError as UnsupportedError)
from .expressions import Expression as Expression
from .kernels import Kernel as Kernel

class _HasArray(Protocol):
    """An array of NumPy, among others."""
    @property
    def __array__(self) -> Any: ...

ArrayLike: TypeAlias = Array | _HasArray | list[Any] | tuple[Any, ...] | builtins.range

class DType:
    name: str
    itemsize: int
    kind: str
    id: int
    def __call__(self, x: object = 0, /) -> Array: ...

class Device:
    name: str
    type: str
    def info(self) -> dict[str, Any]: ...
    def attributes(self) -> dict[str, str]: ...
    def statistics(self) -> dict[str, int]: ...
    def synchronize(self) -> None: ...
    def native_handle(self) -> int: ...
    def trim(self, keep_bytes: int = 0) -> None: ...
    def __enter__(self) -> Device: ...
    def __exit__(self, *exception: object) -> None: ...

class Event:
    def finished(self) -> bool: ...
    def synchronize(self) -> None: ...
    def elapsed_since(self, start: Event, /) -> float: ...

class Stream:
    device: Device
    def synchronize(self) -> None: ...
    def finished(self) -> bool: ...
    def record(self, timed: bool = False) -> Event: ...
    def wait(self, event: Event, /) -> None: ...
    def native_handle(self) -> int: ...
    def __enter__(self) -> Stream: ...
    def __exit__(self, *exception: object) -> None: ...

class Profile:
    seconds: dict[str, float]
    ops: list[dict[str, Any]]
    transfers: list[dict[str, Any]]
    hints: list[str]
    def plot(self, path: Any = None, most: int = 15) -> None: ...
    def __enter__(self) -> Profile: ...
    def __exit__(self, *exception: object) -> None: ...

class finfo_object(NamedTuple):
    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType

class iinfo_object(NamedTuple):
    bits: int
    max: int
    min: int
    dtype: DType

class UniqueAll(NamedTuple):
    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array

class UniqueCounts(NamedTuple):
    values: Array
    counts: Array

class UniqueInverse(NamedTuple):
    values: Array
    inverse_indices: Array

class TopK(NamedTuple):
    values: Array
    indices: Array

class Flag(int):
    def __call__(self, **options: Any) -> builtins.bool: ...

class no_grad:
    def __init__(self, *arguments: Any) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *exception: object) -> None: ...
    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]: ...

class enable_grad(no_grad): ...
class inference_mode(no_grad): ...
class set_grad_enabled(no_grad): ...

class Generator(random.Generator):
    device: Any
    def __init__(self, device: Any = None) -> None: ...
    def manual_seed(self, seed: int) -> Generator: ...
    def initial_seed(self) -> int: ...

class ElementCount(int):
    @overload
    def __call__(self, dim: None = None) -> tuple[int, ...]: ...
    @overload
    def __call__(self, dim: int) -> int: ...
'''
LINALG_TYPES = "".join(f"class {kind.__name__}(NamedTuple):\n" + "".join(f"    {field}: Array\n" for field in kind._fields) + "\n"
                       for kind in (linalg.EigResult, linalg.EighResult, linalg.LstsqResult, linalg.LUResult, linalg.QRResult,
                                    linalg.SlogdetResult, linalg.SVDResult))
OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")


def array_class():
    """The class Array: attributes, operators and methods."""
    lines = ["class Array:", "    def __init__(self, *data: Any, device: Any = None) -> None: ..."]
    for name, kind in {"shape": "tuple[int, ...]", "strides": "tuple[int, ...]", "dtype": "DType", "device": "Device",
                       "ndim": "int", "size": "ElementCount", "nbytes": "int", "itemsize": "int", "is_contiguous": "Flag", "is_cpu": "bool",
                       "requires_grad": "bool", "data": "Array", "H": "Array", "mH": "Array",
                       "label": "str", "is_cuda": "bool", "T": "Array", "mT": "Array", "real": "Array", "imag": "Array", "flat": "Array",
                       "__array_interface__": "dict[str, Any]"}.items():
        lines.append(f"    {name}: {kind}")
    operand = f"{LIKE} | {NUMBER}"
    for name in OPERATORS:
        for prefix in ("", "r", "i"):
            lines.append(f"    def __{prefix}{name}__(self, other: {operand}, /) -> Array: ...")
    for name in ("lt", "le", "gt", "ge"):
        lines.append(f"    def __{name}__(self, other: {operand}, /) -> Array: ...")
    for name in ("eq", "ne"):
        lines.append(f"    def __{name}__(self, other: object, /) -> Array: ...  # type: ignore[override]")
    for name in ("neg", "pos", "abs", "invert"):
        lines.append(f"    def __{name}__(self) -> Array: ...")
    for name, result in {"bool": "bool", "int": "int", "float": "float", "complex": "complex", "index": "int",
                         "len": "int"}.items():
        lines.append(f"    def __{name}__(self) -> {result}: ...")
    lines += ["    def __getitem__(self, key: Any, /) -> Array: ...",
              f"    def __setitem__(self, key: Any, value: {operand}, /) -> None: ...",
              "    def __iter__(self) -> Any: ...",
              "    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any: ...",
              "    def __dlpack__(self, /, *, stream: int | None = None, max_version: tuple[int, int] | None = None,",
              "                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any: ...",
              "    def __dlpack_device__(self, /) -> tuple[int, int]: ...",
              "    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any: ...",
              "    def to_device(self, device: Device | str, /, *, stream: Any = None) -> Array: ...",
              "    def reshape(self, *shape: int | Sequence[int], copy: bool | None = None, order: str = 'C') -> Array: ...",
              "    def item(self, *index: int) -> Any: ...", "    def tolist(self) -> Any: ...",
              "    def native_handle(self) -> tuple[int, int]: ...", "    def copy(self) -> Array: ...",
              "    def flatten(self, start_dim: int | str = 0, end_dim: int = -1, *, order: str = 'C') -> Array: ...",
              "    def ravel(self, order: str = 'C') -> Array: ...",
              "    def transpose(self, *axes: int | Sequence[int]) -> Array: ...",
              "    def __round__(self, digits: int | None = None, /) -> Any: ..."]
    special = {"view": "*shape: Any", "to": "*arguments: Any, **options: Any", "expand": "*sizes: int | Sequence[int]", "permute": "*axes: int | Sequence[int]",
               "fill": "value: Any", "fill_": "value: Any", "copy_": f"source: {LIKE}", "masked_fill_": f"mask: {LIKE}, value: Any", "type_as": "other: Array",
               "sort": "axis: int = -1, **options: Any", "numpy": "*, force: bool = False", "cuda": "device: Any = None",
               "clamp_": "min: Any = None, max: Any = None", **{f"{name}_": f"other: {LIKE} | {NUMBER}" for name in ("add", "sub", "mul", "div", "pow", "floor_divide", "remainder")},
               **{f"new_{name}": "*arguments: Any, dtype: DType | None = None, device: Any = None" for name in ("empty", "full", "ones", "tensor", "zeros")},
               **{name: f"dim: int, index: {LIKE}, src: {LIKE} | {NUMBER}" for name in ("scatter_", "scatter_add_")},
               **{name: f"dim: int, index: {LIKE}, value: {NUMBER}" for name in ("index_fill", "index_fill_")},
               "index_add_": f"dim: int, index: {LIKE}, source: {ARRAY}, *, alpha: {NUMBER} = 1",
               "scatter": f"dim: int, index: {LIKE}, src: {LIKE} | {NUMBER}, *, reduce: str | None = None", "stride": "dim: int | None = None", "type": "dtype: Any", "unfold": "dim: int, size: int, step: int",
               "normal_": "mean: float = 0.0, std: float = 1.0", "uniform_": "low: float = 0.0, high: float = 1.0",
               **{name: "other: Array" for name in ("expand_as", "reshape_as", "view_as")}}
    results = {"numpy": "Any", "stride": "Any", "tobytes": "bytes", "sort": "Any", "fill": "None"}
    methods = {name: getattr(_functions, name) for name in ("all", "any", "argmax", "argmin", "astype", "clip", "max", "mean", "min", "prod", "std", "sum", "var")}
    for name, function in sorted((methods | {"squeeze": compute.squeeze} | _names.METHODS | _names.ARRAY_METHODS).items()):
        if name in special or name in _names.ARRAY_METHODS or getattr(function, "__name__", "") in ("_t", "run", "_detach"):
            shown = special.get(name, "*arguments: Any, **options: Any" if name[-1] == "_" else "")
            lines.append(f"    def {name}(self{', ' if shown else ''}{shown}) -> {results.get(name, ARRAY)}: ...")
        else:
            lines.append("    " + declaration(name, function, inspect.isbuiltin(function), method=True).rstrip())
    return "\n".join(lines) + "\n"


def types_in_table():
    """The types of inputs and attributes, as the table of ops has them, where all ops agree on a name."""
    kinds = {"int64": "int", "int64[]": "int | Sequence[int]", "float64": "float", "float64[]": "Sequence[float]", "number": "float", "string": "str"}
    found = {}
    for op in compute._ops.TABLE.values():
        declared = [(name.rstrip("?"), f"{LIKE} | None" if name.endswith("?") else LIKE) for name in op["inputs"].split()]
        for name, text in (part.split(": ") for part in op["attributes"].split("; ") if part):
            kind, _, default = text.removesuffix(" !").partition(" = ")
            if kind in kinds:
                declared.append((name, kinds[kind] + (" | None" if default == "none" and kind != "string" else "")))
        for name, kind in declared:
            found.setdefault(name, set()).add(kind)
    return {name: kind.pop() for name, kind in found.items() if len(kind) == 1}


IN_TABLE = types_in_table()


def annotation(text):
    """A type as a source states it."""
    return re.sub(r"\bAxis\b", "int | None", re.sub(r"\bValues\b", LIKE, text))


def parameter_type(function, parameter):
    name = parameter.name
    if parameter.annotation is not parameter.empty:
        return annotation(parameter.annotation)
    if (function, name) in SPECIAL:
        return SPECIAL[function, name]
    if name == "axis" and "axes: int64[] = all" in compute._ops.TABLE.get(function, {"attributes": ""})["attributes"]:
        return "int | tuple[int, ...] | None"
    if name in ("x1", "x2", "x3"):
        return f"{LIKE} | {NUMBER}"
    return PARAMETERS[name] if name in PARAMETERS else IN_TABLE[name]


def declaration(name, function, is_row, owner="", method=False):
    """The line that declares a function, or a method of the class `owner`, or an alias that is a method of arrays."""
    parts, last = ["self"] if owner or method else [], None
    known, name = name, function.__name__ if not owner and not is_row and not name.startswith("__") else name
    full = f"{owner}.{name}" if owner and (name.startswith("__") or f"{owner}.{name}" in RESULTS) else name
    if owner in ("Expression", "Group"):
        full = f"{owner}.{name}"
    if name == "__init__":
        full = owner
    for parameter in list(inspect.signature(function).parameters.values())[1 if owner or method else 0:]:
        positional = parameter.kind is parameter.POSITIONAL_ONLY
        if last is parameter.POSITIONAL_ONLY and not positional:
            parts.append("/")
        if parameter.kind is parameter.KEYWORD_ONLY and last not in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL):
            parts.append("*")
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        default = parameter.default
        hidden = default is ... or isinstance(default, (compute.DType, type))
        shown = "" if default is parameter.empty else f" = {'...' if hidden else repr(default)}"
        parts.append(f"{star}{parameter.name}: {parameter_type(full, parameter)}{shown}")
        last = parameter.kind
    if last is inspect.Parameter.POSITIONAL_ONLY:
        parts.append("/")
    if is_row:
        parts += ["*", f"out: {ARRAY} | None = None", "where: Any = True", "dtype: Any = None"]
    stated = None if is_row else inspect.signature(function).return_annotation
    result = "None" if name in ("__init__", "__exit__") else ARRAY if is_row else RESULTS.get(full, ARRAY)
    result = annotation(stated) if isinstance(stated, str) and (full not in RESULTS or function.__module__ == _functional.__name__) else result
    return f"def {known}({', '.join(parts)}) -> {result}: ...\n"


def functions(module):
    for name, value in sorted(vars(module).items()):
        if name.startswith("_") and name != "__array_namespace_info__":
            continue
        value = value.func if isinstance(value, functools.partial) else value
        if inspect.isbuiltin(value) or inspect.isfunction(value) or inspect.ismethod(value):
            yield declaration(name, value, inspect.isbuiltin(value))


def class_text(kind):
    """A class with its attributes and methods, those of its private bases among them."""
    lines = [f"class {kind.__name__}:\n"]
    lines += [f"    {name}: {type_}\n" for name, type_ in ATTRIBUTES[kind.__name__].items()]
    methods = {name: value for base in reversed(kind.__mro__[:-1]) for name, value in vars(base).items()
               if inspect.isfunction(value) and
               (not name.startswith("_") or name in ("__init__", "__call__", "__enter__", "__exit__"))}
    return "".join(lines + ["    " + declaration(name, value, False, kind.__name__) for name, value in sorted(methods.items())])


def module_stub(module, *kinds, head=""):
    """The stub of a sub-namespace: these classes, and its functions."""
    own = {name: value for name, value in vars(module).items()
           if inspect.isbuiltin(value) or getattr(value, "__module__", module.__name__) == module.__name__ or
           name in getattr(module, "__all__", ()) or name in {linalg: _names.LINALG, nn: _names.NN, random: _names.RANDOM}.get(module, ())}
    body = head + "".join(class_text(kind) + "\n" for kind in kinds) + "".join(functions(types.SimpleNamespace(**own)))
    words = set(re.findall(r"\w+", re.sub(r"'[^']*'", "", body)))
    found = {source: [name for name in names if name in words] for source, names in
             (("collections.abc", ("Callable", "Sequence")), ("typing", ("Any", "Literal", "NamedTuple")),
              (".", ("Array", "ArrayLike", "Device", "DType", "Stream")))}
    if "R" in words:
        found["typing"].append("TypeVar")
        body = 'R = TypeVar("R")\n\n' + body
    imports = [f"from {source} import {', '.join(names)}\n" for source, names in found.items() if names]
    return HEAD + "".join(imports) + "\n" + body


def builtin_types(text):
    """The text with the types of Python by names that no function and no dtype hides."""
    return re.sub(r"(?<!def )(?<![.\w\"'])\b(bool|int|float|complex)\b(?!: DType|\()", r"builtins.\1", text)


def main_stub():
    constants = "".join(f"{name}: float\n" for name in ("e", "inf", "nan", "pi")) + "newaxis: None\n"
    dtypes = "".join(f"{name}: DType\n" for name, value in sorted(vars(compute).items())
                     if isinstance(value, compute.DType))
    text = "\n".join([TYPES, array_class(), "".join(functions(compute)),
                      constants + "__version__: str\n__array_api_version__: str\n" + dtypes])
    kinds = "".join(f"{name}: {'str' if isinstance(value, str) else 'Any'}\n" for name, value in sorted(_names.COMPUTE.items())
                    if isinstance(value, (str, tuple)) or not callable(value))
    text = re.sub(r"-> (\w+Result)\b", r"-> linalg.\1", text)
    return HEAD + "import builtins\n" + builtin_types(text) + kinds + "ndarray = Array\nTensor = Array\nSize: type[tuple[Any, ...]]\n"


def main():
    folder = pathlib.Path(__file__).resolve().parent / "compute"
    stale = []
    stubs = {"__init__": main_stub(), "expressions": module_stub(expressions, expressions.Expression),
             "distributed": module_stub(distributed, distributed.Average, distributed.Group), "fft": module_stub(fft),
             # Variables have what arrays have.
             "grad": module_stub(grad, head="class Variable(Array): ...\n\n"), "graph": module_stub(graph, graph.Graph),
             "kernels": module_stub(kernels, kernels.Reads, kernels.Kernel), "linalg": module_stub(linalg, head=LINALG_TYPES),
             "_functional": module_stub(_functional), "nn": module_stub(nn, head="from . import _functional\n\nfunctional = _functional\n\n"), "optim": module_stub(optim, optim.SGD, optim.Adam, optim.AdamW),
             "random": module_stub(random, random.Generator, random.NumPyGenerator)}
    for path, text in ((folder / f"{name}.pyi", text) for name, text in stubs.items()):
        if "--check" in sys.argv:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                stale.append(path.name)
        else:
            path.write_text(text, encoding="utf-8")
    if stale:
        sys.exit(f"{', '.join(stale)}: run bindings/python/stubs.py and commit what it wrote")


main()
