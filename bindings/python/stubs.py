#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes compute/__init__.pyi and compute/nn.pyi from the imported package, or compares them with --check.

Parameters of one name have one type everywhere; the lists below say which.
"""
import inspect
import pathlib
import re
import sys

import compute
from compute import nn

ARRAY, NUMBER = "Array", "int | float | complex | bool"
PARAMETERS = {
    "x": ARRAY, "indices": ARRAY, "condition": ARRAY, "obj": "object", "shape": "int | Sequence[int]",
    "fill_value": NUMBER, "dtype": "DType | None", "device": "Device | str | None", "copy": "bool | None",
    "axis": "int | tuple[int, ...] | None", "keepdims": "bool", "correction": "float", "axes": "int | Sequence[Any]",
    "start": NUMBER, "stop": f"{NUMBER} | None", "step": "int | float", "num": "int", "endpoint": "bool", "k": "int",
    "n_rows": "int", "n_cols": "int | None", "n": "int", "min": f"{ARRAY} | int | float | None",
    "max": f"{ARRAY} | int | float | None", "prepend": f"{ARRAY} | None", "append": f"{ARRAY} | None",
    "side": 'Literal["left", "right"]', "sorter": f"{ARRAY} | None", "descending": "bool", "stable": "bool",
    "invert": "bool", "include_initial": "bool", "shift": "int | tuple[int, ...]", "repeats": f"int | {ARRAY}",
    "repetitions": "tuple[int, ...]", "source": "int | tuple[int, ...]", "destination": "int | tuple[int, ...]",
    "indexing": 'Literal["xy", "ij"]', "kind": "DType | str | tuple[DType | str, ...]", "type": f"DType | {ARRAY}",
    "from_": f"DType | {ARRAY}", "to": "DType", "selector": "str | None", "priority": "int", "label": "str",
    "text": "str", "name": "str | None", "value": "Any", "language": "str", "options": "str | None", "array": ARRAY,
    "weight": ARRAY, "bias": f"{ARRAY} | None", "scale": f"{ARRAY} | None", "mask": f"{ARRAY} | None",
    "v": ARRAY, "mean": ARRAY, "variance": ARRAY, "logits": ARRAY, "labels": ARRAY, "positions": ARRAY, "table": ARRAY,
    "window": "int | Sequence[int]", "strides": "int | Sequence[int] | None",
    "dilations": "int | Sequence[int] | None", "padding": "int | Sequence[int] | str", "groups": "int",
    "transpose_weight": "bool", "activation": "str", "epsilon": "float", "causal": "bool", "base": "float",
    "interleaved": "bool", "label_smoothing": "float", "ignore_index": "int | None", "depth": "int", "p": "float",
    "alpha": f"{ARRAY} | float", "slope": f"{ARRAY} | float", "generator": "Any", "path": "Any",
    "arrays": "Array | dict[str, Array]", "equation": "str", "operands": ARRAY,
    "pad_width": "int | Sequence[int] | Sequence[tuple[int, int]]",
    "mode": 'Literal["constant", "edge", "reflect", "symmetric", "wrap"]', "constant_values": NUMBER,
    "largest": "bool", "bins": f"int | {ARRAY} | Sequence[float]", "range": "tuple[float, float] | None",
    "weights": f"{ARRAY} | None", "density": "bool", "minlength": "int", "offsets": ARRAY,
    "rtol": "float", "atol": "float", "equal_nan": "bool", "q": "float | Sequence[float]",
    "updates": f"{ARRAY} | {NUMBER}", "reduction": 'Literal["set", "add", "mul", "min", "max"]',
    "output_padding": "int | Sequence[int]", "targets": ARRAY,
    "indices_or_sections": f"int | Sequence[int] | {ARRAY}", "xp": ARRAY, "fp": ARRAY, "left": "float | None",
    "period": "float | None", "dx": f"float | {ARRAY}", "spacing": f"float | {ARRAY}", "edge_order": "int",
    "rowvar": "bool",
}
# Where a name means something else.
SPECIAL = {
    ("concat", "arrays"): f"Sequence[{ARRAY}]", ("stack", "arrays"): f"Sequence[{ARRAY}]", ("isdtype", "dtype"): "DType",
    ("astype", "dtype"): "DType", ("set_default_dtype", "dtype"): "DType", ("from_dlpack", "x"): "object", ("meshgrid", "arrays"): ARRAY,
    ("broadcast_arrays", "arrays"): ARRAY, ("broadcast_shapes", "shapes"): "tuple[int | None, ...]",
    ("result_type", "arrays_and_dtypes"): f"{ARRAY} | DType | {NUMBER}", ("expression", "names"): "str",
    ("kernel", "name"): "str", ("kernel", "source"): "str", ("linspace", "stop"): NUMBER, ("attention", "k"): ARRAY,
    ("attention", "scale"): "float", ("top_k", "k"): "int", ("attention", "q"): ARRAY, ("segment_reduce", "kind"): 'Literal["sum", "prod", "min", "max"]',
    ("interp", "x"): f"{ARRAY} | float", ("interp", "right"): "float | None", ("digitize", "right"): "bool",
    ("digitize", "bins"): ARRAY, ("trapezoid", "y"): ARRAY, ("trapezoid", "x"): f"{ARRAY} | None",
    ("cov", "y"): f"{ARRAY} | None", ("corrcoef", "y"): f"{ARRAY} | None",
    ("convolve", "mode"): 'Literal["full", "same", "valid"]', ("correlate", "mode"): 'Literal["full", "same", "valid"]',
    ("searchsorted", "x2"): f"{ARRAY} | int | float",
    ("isin", "x1"): f"{ARRAY} | {NUMBER}", ("isin", "x2"): f"{ARRAY} | {NUMBER}",
}
RESULTS = {
    "finfo": "finfo_object", "iinfo": "iinfo_object", "can_cast": "bool", "isdtype": "bool", "result_type": "DType",
    "nonzero": f"tuple[{ARRAY}, ...]", "meshgrid": f"tuple[{ARRAY}, ...]", "unstack": f"tuple[{ARRAY}, ...]",
    "broadcast_arrays": f"tuple[{ARRAY}, ...]", "broadcast_shapes": "tuple[int | None, ...]",
    "unique_all": "UniqueAll", "unique_counts": "UniqueCounts", "unique_inverse": "UniqueInverse", "device": "Device",
    "devices": "tuple[Device, ...]", "device_list": "list[dict[str, Any]]", "which": "str", "stream": "Stream",
    "set_default_dtype": "None", "save": "None", "load": "Any", "config": "Any", "load_report": "str", "placement_report": "dict[str, Any]", "profile": "Profile",
    "scope": "ContextManager[None]",
    "expression": "Expression", "kernel": "Kernel", "reads": "Any", "__array_namespace_info__": "Any",
    "top_k": "TopK", "allclose": "bool", "histogram": f"tuple[{ARRAY}, {ARRAY}]",
    "array_split": f"tuple[{ARRAY}, ...]", "split": f"tuple[{ARRAY}, ...]", "hsplit": f"tuple[{ARRAY}, ...]",
    "vsplit": f"tuple[{ARRAY}, ...]", "gradient": f"{ARRAY} | tuple[{ARRAY}, ...]",
    "batch_norm": f"tuple[{ARRAY}, {ARRAY}, {ARRAY}]",
}
HEAD = '''# SPDX-License-Identifier: Apache-2.0
# Generated by bindings/python/stubs.py. Do not edit.
'''
TYPES = '''from collections.abc import Sequence
from typing import Any, ContextManager, Literal, NamedTuple

from . import grad as grad, graph as graph, linalg as linalg, nn as nn, optim as optim, random as random
from ._errors import (CompileError as CompileError, DeviceError as DeviceError, Error as Error,
                      ForkedError as ForkedError, InvalidArgumentError as InvalidArgumentError,
                      InvalidTypeError as InvalidTypeError, KernelError as KernelError, NotFoundError as NotFoundError,
                      OutOfMemoryError as OutOfMemoryError, OutOfRangeError as OutOfRangeError,
                      UnsupportedError as UnsupportedError)
from .expressions import Expression as Expression
from .kernels import Kernel as Kernel

class DType:
    name: str
    itemsize: int
    id: int

class Device:
    name: str
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
'''
OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")


def array_class():
    """The class Array: attributes, operators and methods."""
    lines = ["class Array:"]
    for name, kind in {"shape": "tuple[int, ...]", "strides": "tuple[int, ...]", "dtype": "DType", "device": "Device",
                       "ndim": "int", "size": "int", "nbytes": "int", "itemsize": "int", "is_contiguous": "bool",
                       "label": "str", "T": "Array", "mT": "Array"}.items():
        lines.append(f"    {name}: {kind}")
    operand = f"Array | {NUMBER}"
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
              "    def reshape(self, *shape: int | Sequence[int], copy: bool | None = None) -> Array: ...",
              "    def squeeze(self, axis: int | tuple[int, ...] | None = None) -> Array: ...",
              "    def astype(self, dtype: DType, /, *, copy: bool = True, device: Device | str | None = None) -> Array: ...",
              "    def item(self) -> Any: ...", "    def tolist(self) -> Any: ...",
              "    def native_handle(self) -> tuple[int, int]: ..."]
    extra = {"sum": "dtype: DType | None = None, ", "prod": "dtype: DType | None = None, ",
             "std": "correction: float = 0.0, ", "var": "correction: float = 0.0, "}
    lines += ["    def copy(self) -> Array: ...", "    def flatten(self) -> Array: ...", "    def ravel(self) -> Array: ...",
              "    def transpose(self, *axes: int | Sequence[int]) -> Array: ...",
              "    def clip(self, min: Array | int | float | None = None, max: Array | int | float | None = None) -> Array: ...",
              "    def __round__(self, digits: int | None = None, /) -> Any: ..."]
    lines += [f"    def {name}(self, axis: int | tuple[int, ...] | None = None, *, {extra.get(name, '')}"
              "keepdims: bool = False) -> Array: ..."
              for name in ("all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "std", "sum", "var")]
    return "\n".join(lines) + "\n"


def parameter_type(function, name):
    if (function, name) in SPECIAL:
        return SPECIAL[function, name]
    if name in ("x1", "x2", "x3"):
        return f"{ARRAY} | {NUMBER}"
    return PARAMETERS[name]


def declaration(name, function, is_row):
    """The line that declares a function."""
    parts, last = [], None
    for parameter in inspect.signature(function).parameters.values():
        positional = parameter.kind is parameter.POSITIONAL_ONLY
        if last is parameter.POSITIONAL_ONLY and not positional:
            parts.append("/")
        if parameter.kind is parameter.KEYWORD_ONLY and last not in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL):
            parts.append("*")
        star = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
        default = parameter.default
        shown = "" if default is parameter.empty else f" = {'...' if default is ... else repr(default)}"
        parts.append(f"{star}{parameter.name}: {parameter_type(name, parameter.name)}{shown}")
        last = parameter.kind
    if last is inspect.Parameter.POSITIONAL_ONLY:
        parts.append("/")
    return f"def {name}({', '.join(parts)}) -> {ARRAY if is_row else RESULTS.get(name, ARRAY)}: ...\n"


def functions(module):
    for name, value in sorted(vars(module).items()):
        if name.startswith("_") and name != "__array_namespace_info__":
            continue
        if inspect.isbuiltin(value) or inspect.isfunction(value):
            yield declaration(name, value, inspect.isbuiltin(value))


def main_stub():
    constants = "".join(f"{name}: float\n" for name in ("e", "inf", "nan", "pi")) + "newaxis: None\n"
    dtypes = "".join(f"{name}: DType\n" for name, value in sorted(vars(compute).items())
                     if isinstance(value, compute.DType) and name != "bool")
    text = "\n".join([TYPES, array_class(), "".join(functions(compute)),
                      constants + "__version__: str\n__array_api_version__: str\n" + dtypes])
    # The dtype `bool` hides the type of this name.
    return HEAD + "import builtins\n" + re.sub(r"\bbool\b", "builtins.bool", text) + "bool: DType\n"


def nn_stub():
    return HEAD + "from collections.abc import Sequence\n\nfrom . import Array, DType\nfrom typing import Any\n\n" + \
        "".join(functions(nn))


def main():
    folder = pathlib.Path(__file__).resolve().parent / "compute"
    stale = []
    for path, text in ((folder / "__init__.pyi", main_stub()), (folder / "nn.pyi", nn_stub())):
        if "--check" in sys.argv:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                stale.append(path.name)
        else:
            path.write_text(text, encoding="utf-8")
    if stale:
        sys.exit(f"{', '.join(stale)}: run bindings/python/stubs.py and commit what it wrote")


main()
