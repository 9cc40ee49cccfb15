# SPDX-License-Identifier: Apache-2.0
"""Names of NumPy and PyTorch: properties, types, files and printing. See _names.py."""
from __future__ import annotations

import builtins
import contextlib
import math
from typing import Any

from . import _core, _creation, _dtypes, _files, _manipulation, _printing
from ._core import Array, DType, array_of
from ._errors import renamed
from ._manipulation import _axes, _flat
from ._names_common import Values


# ---- Properties and types -------------------------------------------------------------------------------------------


def ndim(x: Values) -> int:
    """The number of axes.

    >>> compute.ndim([[1, 2]])
    2
    """
    return 0 if isinstance(x, _dtypes.NUMBERS) else array_of(x).ndim


def shape(x: Values) -> tuple[int, ...]:
    """The extents.

    >>> compute.shape([[1, 2]])
    (1, 2)
    """
    return () if isinstance(x, _dtypes.NUMBERS) else array_of(x).shape


def size(x: Values, axis: Any = None) -> int:
    """The number of elements, or the extent of an axis, or the product of those of several.

    >>> compute.size([[1, 2], [3, 4]], 0)
    2
    """
    return math.prod(shape(x)) if axis is None else math.prod(shape(x)[i] for i in _axes(axis, ndim(x), "size"))


def numel(x: Values) -> int:
    """The number of elements.

    >>> compute.numel([[1, 2]])
    2
    """
    return size(x)


def dtype(kind: Any) -> DType:
    """The dtype that a name, a type of Python or a dtype of NumPy means.

    >>> compute.dtype("float32")
    compute.float32
    """
    return _dtypes._from_object(kind)


def issubdtype(dtype: Any, kind: Any) -> bool:
    """isdtype, where a kind may also be compute.floating, compute.integer and the like.

    >>> compute.issubdtype(compute.int8, compute.integer)
    True
    """
    kind = {float: "real floating", int: "signed integer", complex: "complex floating", builtins.bool: "bool"}.get(kind, kind) if isinstance(kind, type) else kind
    return _dtypes.isdtype(dtype, kind)


def promote_types(a: Any, b: Any) -> DType:
    """The dtype that two dtypes have in common.

    Raises TypeError if there is none.

    >>> compute.promote_types("int8", "int16")
    compute.int16
    """
    return _dtypes.result_type(_dtypes._from_object(a), _dtypes._from_object(b))


def isscalar(x: Any) -> bool:
    """Whether `x` is a number or a str.

    >>> compute.isscalar(3.0)
    True
    """
    return isinstance(_dtypes.number(x), (*_dtypes.NUMBERS, str)) and not isinstance(x, Array)


def is_tensor(x: Any) -> bool:
    """Whether `x` is an array of this package.

    >>> compute.is_tensor(compute.ones(2))
    True
    """
    return isinstance(x, Array)


def is_floating_point(x: Values) -> bool:
    """Whether the dtype of `x` is a floating-point one.

    >>> compute.is_floating_point(compute.ones(2))
    True
    """
    return array_of(x).dtype in _dtypes.FLOATS + _dtypes.FLOAT8


def get_default_dtype() -> DType:
    """The dtype of floating-point numbers without one.

    >>> compute.get_default_dtype()
    compute.float32
    """
    return _dtypes.DEFAULT_FLOAT


def may_share_memory(x1: Array, x2: Array) -> bool:
    """Whether two arrays are views of one buffer.

    >>> x = compute.ones(3)
    >>> compute.may_share_memory(x, x[1:])
    True
    """
    return _core.shares_memory(x1, x2)


def errstate(**settings: str) -> Any:
    """A context in which floating-point faults are ignored, as they always are here. Other settings raise an error."""
    for name, value in settings.items():
        if value != "ignore":
            raise NotImplementedError(f"errstate: {name}={value!r}; floating-point faults can only be ignored")
    return contextlib.nullcontext()


def seterr(**settings: str) -> dict[str, str]:
    """errstate for the rest of the program: floating-point faults are ignored. Other settings raise an error.

    >>> compute.seterr(all="ignore")["divide"]
    'ignore'
    """
    errstate(**settings)
    return dict.fromkeys(("divide", "over", "under", "invalid"), "ignore")


class _Cuda:
    """What programs for PyTorch ask about CUDA devices."""

    def is_available(self) -> bool:
        """Whether there is one."""
        return self.device_count() > 0

    def device_count(self) -> int:
        """How many there are."""
        return builtins.sum(info["name"].startswith("cuda") and not info["unusable"] for info in _core.device_list())

    def synchronize(self, device: Any = "cuda") -> None:
        """Waits for all work of one."""
        _core.device(f"cuda{device}" if isinstance(device, int) else device).synchronize()


cuda = _Cuda()


# ---- Files and printing ---------------------------------------------------------------------------------------------


def savez(file: Any, *arrays: Values, **named: Values) -> None:
    """Writes arrays to a .npz file: those without a name as arr_0, arr_1 and so on. load returns them as a dict.

    >>> file = io.BytesIO()
    >>> compute.savez(file, compute.ones(2), second=compute.zeros(1))
    >>> _ = file.seek(0)
    >>> sorted(compute.load(file))
    ['arr_0', 'second']
    """
    _files._save_npz(file, _named_arrays("savez", arrays, named), False)


def savez_compressed(file: Any, *arrays: Values, **named: Values) -> None:
    """savez with compression."""
    _files._save_npz(file, _named_arrays("savez_compressed", arrays, named), True)


def _named_arrays(name, arrays, named):
    found = {f"arr_{i}": x for i, x in enumerate(arrays)}
    for key in found:
        if key in named:
            raise ValueError(f"{name}: the name {key} is given twice")
    return {key: _creation.asarray(x) for key, x in (found | named).items()}


def loadtxt(file: Any, dtype: Any = float, comments: str | None = "#", delimiter: str | None = None, skiprows: int = 0,
            usecols: Any = None, unpack: bool = False, ndmin: int = 0, max_rows: int | None = None, encoding: str | None = None, converters: Any = None, **names: Any) -> Any:
    """The numbers of a text with one row in each line: a path, a file, or lines. A single row or column is a vector.

    `converters` is a function that makes a number of a text, or a dict of them for some columns.

    Columns are parted by white space or by `delimiter`. ValueError if lines have different numbers of columns.

    >>> compute.loadtxt(["1 2", "3 4"], dtype=int)
    Array([[1, 2],
           [3, 4]], dtype=int64)
    """
    if names:
        return renamed(loadtxt, names, file, dtype=dtype, comments=comments, delimiter=delimiter, skiprows=skiprows, usecols=usecols, unpack=unpack,
                       ndmin=ndmin, max_rows=max_rows, encoding=encoding, converters=converters)
    kind = _dtypes._from_object(dtype)
    read = complex if kind in _dtypes.COMPLEX else float if kind in _dtypes.FLOATS else int
    rows: list[list[Any]] = []
    with contextlib.ExitStack() as stack:
        lines = stack.enter_context(open(file, encoding=encoding)) if isinstance(file, str) or hasattr(file, "__fspath__") else file
        for number, line in enumerate(lines):
            line = line.decode(encoding or "utf-8") if isinstance(line, bytes) else line
            line = line.partition(comments)[0].strip() if comments else line.strip()
            if number < skiprows or not line or (max_rows is not None and len(rows) >= max_rows):
                continue
            texts = line.split(delimiter)
            if usecols is not None:
                texts = [texts[i] for i in ([usecols] if isinstance(usecols, int) else usecols)]
            if rows and len(texts) != len(rows[0]):
                raise ValueError(f"loadtxt: line {number + 1} has {len(texts)} columns, the lines before have {len(rows[0])}")
            readers = converters if isinstance(converters, dict) else dict.fromkeys(range(len(texts)), converters or read)
            rows.append([readers.get(i, read)(text) for i, text in enumerate(texts)])
    x = _creation.asarray(rows, dtype=kind) if rows else _creation.zeros((0,), dtype=kind)
    if x.ndim == 2 and ndmin < 2:
        x = _manipulation.squeeze(x, tuple(i for i in range(2) if x.shape[i] == 1)) if 1 in x.shape else x
        x = _core.reshape_view(x, (1,)) if x.ndim < ndmin else x
    return _manipulation.unstack(x.T, axis=0) if unpack and x.ndim == 2 else x


def savetxt(file: Any, x: Values, fmt: str = "%.18e", delimiter: str = " ", newline: str = "\n", header: str = "", footer: str = "",
            comments: str = "# ") -> None:
    """Writes a vector or a matrix as text, a row in each line, to a path or a file.

    >>> file = io.StringIO()
    >>> compute.savetxt(file, [[1.0, 2.0]], fmt="%.1f")
    >>> file.getvalue()
    '1.0 2.0\\n'
    """
    x = array_of(x)
    if x.ndim > 2:
        raise ValueError(f"savetxt: an array with {x.ndim} axes is neither a vector nor a matrix")
    rows = x.tolist() if x.ndim == 2 else [[one] for one in _flat(x).tolist()]
    lines = [comments + line for line in header.splitlines()]
    lines += [delimiter.join(fmt % one for one in row) for row in rows]
    lines += [comments + line for line in footer.splitlines()]
    text = "".join(line + newline for line in lines)
    if isinstance(file, str) or hasattr(file, "__fspath__"):
        with open(file, "w", encoding="utf-8") as opened:
            opened.write(text)
        return
    try:
        file.write(text)
    except TypeError:  # of bytes
        file.write(text.encode())


def set_printoptions(precision: int | None = None, threshold: int | None = None, edgeitems: int | None = None, linewidth: int | None = None,
                     suppress: bool | None = None, *, sci_mode: bool | None = None, **names: Any) -> None:
    """Sets how arrays are printed: digits behind the point, elements before some are left out, those shown at each end,
    the length of lines, and whether exponents are avoided. What is None stays as it is.
    """
    if names:
        renamed(set_printoptions, names, precision=precision, threshold=threshold, edgeitems=edgeitems, linewidth=linewidth, suppress=suppress)
    suppress = (None if sci_mode is None else not sci_mode) if suppress is None else suppress
    for name, value in {"PRECISION": precision, "THRESHOLD": threshold, "EDGE": edgeitems, "WIDTH": linewidth, "SUPPRESS": suppress}.items():
        if value is not None:
            setattr(_printing, name, value)


def get_printoptions() -> dict[str, Any]:
    """The options of set_printoptions."""
    return {"precision": _printing.PRECISION, "threshold": _printing.THRESHOLD, "edgeitems": _printing.EDGE, "linewidth": _printing.WIDTH,
            "suppress": _printing.SUPPRESS}


@contextlib.contextmanager
def printoptions(**options: Any) -> Any:
    """set_printoptions for a `with` statement.

    >>> with compute.printoptions(precision=2):
    ...     print(compute.asarray([0.123456]))
    [0.12]
    """
    before = get_printoptions()
    set_printoptions(**options)
    try:
        yield get_printoptions()
    finally:
        set_printoptions(**before)


def array2string(x: Values, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None) -> str:
    """The text of the elements; see set_printoptions.

    >>> compute.array2string([1.25, 2.5], precision=1)
    '[1.2 2.5]'
    """
    with printoptions(linewidth=max_line_width, precision=precision, suppress=suppress_small):
        return _printing.array_str(array_of(x))
