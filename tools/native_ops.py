#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks a device how it runs a plain call of every op, and writes the answers into docs/native_ops.txt.

    tools/native_ops.py --device cuda0 [--library PATH/libcompute.so.0]           writes the column of the device's plugin
    tools/native_ops.py --device cuda0 [--library PATH/libcompute.so.0] --check   ends with 1 where the file says something else

The other columns stay. A call has float32 operands, or int32 where the op takes no floats, and the shapes in compute/plain_calls.def. Nothing runs and nothing
is compiled: the answers are those of compute_op_query. Ops that are not native are printed with the reason that the device gives. Ends
with 77 where the device is missing.
"""
import argparse
import ctypes
import pathlib
import re
import sys

PLUGINS = ("cpu", "cuda", "opencl")
SUPPORT = {0: "refused", 1: "native", 2: "decomposed", 3: "host"}
DTYPES = {"bool": 1, "int32": 4, "int64": 5, "uint32": 8, "float32": 12, "complex64": 14}
KINDS = {"int64": (1, ctypes.c_int64), "float64": (2, ctypes.c_double), "number": (2, ctypes.c_double), "dtype": (5, ctypes.c_int32)}
STRING, ABSENT = 4, 4
CLASSES = {"BOOL": "bool", "BITS": "int32", "INTEGER": "int32", "COMPLEX": "complex64"}  # the others take float32

HEAD = """# How each device runs a plain call of an op: native, decomposed, host (on the host) or refused. "-": not known.
# Written by tools/native_ops.py, which has the calls. docs/ops.md has the rows as a column.
"""


# ---- The calls ------------------------------------------------------------------------------------------------------

def operand_of(text):
    """The dtype and the extents; T is float32."""
    dtype, extents = text.split(":")
    return (value_of(dtype), tuple(int(extent) for extent in extents.split("x")))


def value_of(text):
    if text.startswith("["):
        return [int(item) for item in text[1:-1].split(",")]
    return int(text) if text.lstrip("-").isdigit() else "float32" if text == "T" else text


def calls():
    text = (pathlib.Path(__file__).resolve().parent / "compute/plain_calls.def").read_text(encoding="utf-8")
    rows = re.findall(r'^COMPUTE_PLAIN_CALL\((\w+), "([^"]*)", "([^"]*)"\)$', text, re.MULTILINE)
    return {name: ([operand_of(each) for each in operands.split()], {key: value_of(value) for key, value in
                                                                     (pair.split("=", 1) for pair in attributes.split())})
            for name, operands, attributes in rows}


CALLS = calls()


def call_of(op):
    """The operands and attributes of the plain call of an op."""
    if op.name in CALLS:
        return CALLS[op.name]
    dtype = CLASSES.get(op.dtypes, "float32") if op.expression else "float32"
    operands = [(dtype, (4096, 128)) for _ in op.inputs.split()]
    if op.name == "where":
        operands[0] = ("bool", operands[0][1])
    return operands, {}


# ---- The C interface ------------------------------------------------------------------------------------------------

class OpInfo(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("struct_type", ctypes.c_uint32), ("next", ctypes.c_void_p)] + [
        field for name in ("name", "summary", "inputs", "attributes", "expression", "dtypes", "bound")
        for field in ((name + "_text", ctypes.c_char_p), (name + "_size", ctypes.c_int64))] + [
        ("version", ctypes.c_int32), ("flags", ctypes.c_uint32), ("outputs_text", ctypes.c_char_p), ("outputs_size", ctypes.c_int64)]

    def __getattr__(self, name):
        if name.endswith("_text"):
            raise AttributeError(name)
        return (getattr(self, name + "_text") or b"").decode()


class Attribute(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("struct_type", ctypes.c_uint32), ("next", ctypes.c_void_p), ("name", ctypes.c_char_p),
                ("name_size", ctypes.c_int64), ("kind", ctypes.c_int32), ("reserved", ctypes.c_int32), ("count", ctypes.c_int64),
                ("values", ctypes.c_void_p)]


class String(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_int64)]


class TensorSpec(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("struct_type", ctypes.c_uint32), ("next", ctypes.c_void_p), ("dtype", ctypes.c_int32),
                ("rank", ctypes.c_int32), ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.c_void_p),
                ("flags", ctypes.c_uint32), ("reserved", ctypes.c_int32)]


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        for name in ("compute_device_open", "compute_op_list", "compute_op_find", "compute_op_query"):
            getattr(self.c, name).restype = ctypes.c_void_p
        for name in ("compute_error_message", "compute_text_data", "compute_device_name"):
            getattr(self.c, name).restype = ctypes.c_char_p
        for name in ("compute_error_free", "compute_text_free"):
            getattr(self.c, name).restype = None

    def check(self, error):
        if error:
            text = self.c.compute_error_message(ctypes.c_void_p(error)).decode()
            self.c.compute_error_free(ctypes.c_void_p(error))
            raise RuntimeError(text)

    def open(self, selector):
        device = ctypes.c_void_p()
        self.check(self.c.compute_device_open(selector.encode(), ctypes.byref(device)))
        return device

    def ops(self):
        count = ctypes.c_int64()
        self.check(self.c.compute_op_list(None, ctypes.c_int64(0), ctypes.byref(count)))
        infos = (OpInfo * count.value)()
        for info in infos:
            info.struct_size = ctypes.sizeof(OpInfo)
        self.check(self.c.compute_op_list(infos, count, ctypes.byref(count)))
        return list(infos)

    def query(self, device, op, operands, attributes):
        """How the device runs the call, and why not natively."""
        handle, level, workspace, text = ctypes.c_void_p(), ctypes.c_int32(), ctypes.c_int64(), ctypes.c_void_p()
        self.check(self.c.compute_op_find(op.name.encode(), op.version, ctypes.byref(handle)))
        specs = (TensorSpec * max(len(operands), 1))(*[spec_of(operand) for operand in operands])
        given = (Attribute * max(len(attributes), 1))(*[attribute_of(op, *each) for each in attributes.items()])
        self.check(self.c.compute_op_query(device, handle, given, ctypes.c_int64(len(attributes)), specs, ctypes.c_int64(len(operands)),
                                           ctypes.byref(level), ctypes.byref(text), ctypes.byref(workspace)))
        reason = self.c.compute_text_data(text).decode() if text else ""
        self.c.compute_text_free(text)
        return SUPPORT[level.value], reason


def spec_of(operand):
    if operand is None:
        return TensorSpec(ctypes.sizeof(TensorSpec), 0, None, 0, 0, None, None, ABSENT, 0)
    dtype, shape = operand if operand and isinstance(operand[0], str) else ("float32", operand)
    return TensorSpec(ctypes.sizeof(TensorSpec), 0, None, DTYPES[dtype], len(shape), (ctypes.c_int64 * len(shape))(*shape), None, 0, 0)


def attribute_of(op, name, value):
    declared = next(part for part in op.attributes.split("; ") if part.startswith(name + ":"))
    kind = declared.split(": ")[1].split()[0].removesuffix("[]")
    if kind == "string":
        number, values = STRING, (String * 1)(String(value.encode(), len(value)))
    else:
        number, ctype = KINDS[kind]
        listed = value if isinstance(value, list) else [DTYPES[value] if kind == "dtype" else value]
        values = (ctype * len(listed))(*listed)
    return Attribute(ctypes.sizeof(Attribute), 0, None, name.encode(), len(name), number, 0, len(values),
                     ctypes.cast(values, ctypes.c_void_p))


# ---- The file -------------------------------------------------------------------------------------------------------

def read(path):
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return {name: dict(zip(PLUGINS, levels)) for name, *levels in rows}


def write(path, rows):
    lines = [("op",) + PLUGINS] + [(name, *(row.get(plugin, "-") for plugin in PLUGINS)) for name, row in rows.items()]
    text = "".join("".join(f"{word:<{width}}" for word, width in zip(line, (34, 12, 12, 12))).rstrip() + "\n" for line in lines)
    path.write_text(HEAD + "# " + text, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--library", default="libcompute.so.0")
    parser.add_argument("--file", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent / "docs/native_ops.txt")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    library = Library(arguments.library)
    try:
        device = library.open(arguments.device)
    except RuntimeError as error:
        print(f"skipped: {error}")
        return 77
    name = library.c.compute_device_name(device).decode()
    plugin = next(each for each in PLUGINS if name.startswith(each))
    known, rows, stale = read(arguments.file), {}, 0
    for op in library.ops():
        level, reason = library.query(device, op, *call_of(op))
        if level != "native":
            print(f"{op.name}: {level}" + (f": {reason}" if reason else ""))
        written = known.get(op.name, {})
        rows[op.name] = {**written, plugin: level}
        if written.get(plugin) != level:
            stale += 1
            if arguments.check:
                print(f"{op.name} on {name} is {level}; {arguments.file.name} says {written.get(plugin, 'nothing')}")
    gone = known.keys() - rows.keys()
    if not arguments.check:
        write(arguments.file, rows)
    elif stale or gone:
        print(f"{arguments.file.name} is stale; run tools/native_ops.py --device {arguments.device} and build opgen-update, and commit what "
              "they write" + (f"; there is no op {', '.join(sorted(gone))}" if gone else ""))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
