# SPDX-License-Identifier: Apache-2.0
"""The C interface through ctypes, as far as benchmarks need it, and compute_bench_machine."""
import ctypes

DTYPES = {"bool": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint8": 6, "float16": 10, "bfloat16": 11, "float32": 12,
          "float64": 13, "complex64": 14, "complex128": 15}
SIZES = {"bool": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint8": 1, "float16": 2, "bfloat16": 2, "float32": 4,
         "float64": 8, "complex64": 8, "complex128": 16}
INT64, FLOAT64, STRING, DTYPE = 1, 2, 4, 5
ONES = {"float16": 0x3C00, "bfloat16": 0x3F80, "float32": 0x3F800000, "float64": 0x3FF0000000000000}
FALLIBLE = ("device_open tensor_empty tensor_full tensor_read tensor_write tensor_permute tensor_slice "
            "tensor_map op_find op_run stream_create stream_synchronize "
            "expression_parse map device_get_info op_list sum add add_into").split()


class Attribute(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("struct_type", ctypes.c_uint32), ("next", ctypes.c_void_p),
                ("name", ctypes.c_char_p), ("name_size", ctypes.c_int64), ("kind", ctypes.c_int32), ("reserved", ctypes.c_int32),
                ("count", ctypes.c_int64), ("values", ctypes.c_void_p)]


class Text(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_int64)]


class Info(ctypes.Structure):
    """The first fields of compute_device_info."""
    _fields_ = [("struct_size", ctypes.c_uint32), ("struct_type", ctypes.c_uint32), ("next", ctypes.c_void_p)] + [
        (name + part, kind) for name in ("name", "plugin", "description")
        for part, kind in (("", ctypes.c_char_p), ("_size", ctypes.c_int64))]


class OpInfo(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("struct_type", ctypes.c_uint32), ("next", ctypes.c_void_p)] + [
        (name + part, kind) for name in ("name", "summary", "inputs", "attributes", "expression", "dtypes", "bound")
        for part, kind in (("", ctypes.c_char_p), ("_size", ctypes.c_int64))] + [
        ("version", ctypes.c_int32), ("flags", ctypes.c_uint32), ("outputs", ctypes.c_char_p), ("outputs_size", ctypes.c_int64)]


def attribute_array(attributes):
    """An array of attributes, and the objects that it needs."""
    given, keep = (Attribute * max(1, len(attributes)))(), []
    for i, (name, value) in enumerate(attributes.items()):
        values = value if isinstance(value, (list, tuple)) else [value]
        if name == "dtype":
            kind, block = DTYPE, (ctypes.c_int32 * 1)(DTYPES[value])
        elif values and isinstance(values[0], str):
            kind, block = STRING, (Text * len(values))(*[Text(v.encode(), len(v)) for v in values])
        elif values and isinstance(values[0], float):
            kind, block = FLOAT64, (ctypes.c_double * len(values))(*values)
        else:
            kind, block = INT64, (ctypes.c_int64 * len(values))(*values)
        keep += [block, name.encode()]
        given[i] = Attribute(ctypes.sizeof(Attribute), 0, None, keep[-1], len(name), kind, 0, len(values),
                             ctypes.cast(block, ctypes.c_void_p))
    return given, keep


class Library:
    """A device. With `own_stream` ops run on a separate stream, else on the default one, which on cpu is immediate."""

    def __init__(self, path, device, own_stream=True):
        self.c = ctypes.CDLL(path)
        self.c.compute_error_message.restype = ctypes.c_char_p
        self.c.compute_error_free.restype = self.c.compute_tensor_release.restype = None
        for name in FALLIBLE:
            getattr(self.c, "compute_" + name).restype = ctypes.c_void_p
        self.device, self.stream = ctypes.c_void_p(), ctypes.c_void_p()
        self.check(self.c.compute_device_open(device.encode(), ctypes.byref(self.device)))
        if own_stream:
            self.check(self.c.compute_stream_create(self.device, None, ctypes.byref(self.stream)))

    def check(self, error):
        if error:
            text = self.c.compute_error_message(ctypes.c_void_p(error)).decode()
            self.c.compute_error_free(ctypes.c_void_p(error))
            raise RuntimeError(text)

    def description(self):
        info = Info(ctypes.sizeof(Info))
        self.check(self.c.compute_device_get_info(self.device, ctypes.byref(info)))
        return info.description.decode()

    # Tensors

    def full(self, dtype, shape, value=1):
        out, dims = ctypes.c_void_p(), (ctypes.c_int64 * len(shape))(*shape)
        bits = (ctypes.c_uint64 * 2)(ONES.get(dtype, 1) if value == 1 else 0, 0)
        self.check(self.c.compute_tensor_full(self.device, DTYPES[dtype], len(shape), dims, ctypes.byref(bits), ctypes.byref(out)))
        return out

    def write(self, tensor, data, size):
        self.check(self.c.compute_tensor_write(tensor, ctypes.c_void_p(data), ctypes.c_int64(size)))

    def read(self, tensor, data, size):
        self.check(self.c.compute_tensor_read(tensor, ctypes.c_void_p(data), ctypes.c_int64(size)))

    def _view(self, function, tensor, *arguments):
        out = ctypes.c_void_p()
        self.check(function(tensor, *arguments, ctypes.byref(out)))
        return out

    def permuted(self, tensor, axes):
        return self._view(self.c.compute_tensor_permute, tensor, len(axes), (ctypes.c_int32 * len(axes))(*axes))

    def sliced(self, tensor, steps):
        return self._view(self.c.compute_tensor_slice, tensor, len(steps), None, None, (ctypes.c_int64 * len(steps))(*steps))

    def address(self, tensor):
        """Of the memory of a tensor on cpu, which stays mapped as long as the process runs."""
        data, is_copy = ctypes.c_void_p(), ctypes.c_int32()
        self.check(self.c.compute_tensor_map(tensor, 3, ctypes.byref(data), ctypes.byref(is_copy)))
        return data.value

    # Work

    def prepared(self, name, inputs, outputs, attributes=None):
        """The arguments of compute_op_run, its array of outputs, and the objects that they need. A None in `outputs` is a new result."""
        op = ctypes.c_void_p()
        self.check(self.c.compute_op_find(name.encode(), 1, ctypes.byref(op)))
        array = (ctypes.c_void_p * max(1, len(inputs)))(*[t.value if t is not None else None for t in inputs])
        out = (ctypes.c_void_p * len(outputs))(*[t.value if t is not None else None for t in outputs])
        given, keep = attribute_array(attributes or {})
        counts = [ctypes.c_int64(len(many)) for many in (attributes or {}, inputs, outputs)]
        return (op, self.stream, given, counts[0], array, counts[1], out, counts[2]), out, keep + [inputs, outputs]

    def caller(self, name, inputs, outputs, attributes=None):
        """A function without arguments that runs the op into `outputs`, one or a list. A None is a new result, dropped immediately."""
        outputs = outputs if isinstance(outputs, list) else [outputs]
        (op, stream, given, n, array, n_inputs, out, n_outputs), _, keep = self.prepared(name, inputs, outputs, attributes)
        fresh = [i for i, t in enumerate(outputs) if t is None]
        run, check, release = self.c.compute_op_run, self.check, self.c.compute_tensor_release

        def call(_keep=keep):
            error = run(op, stream, given, n, array, n_inputs, out, n_outputs)
            if error:
                check(error)
            for i in fresh:
                release(ctypes.c_void_p(out[i]))
                out[i] = None

        return call

    def expression(self, text, names, inputs, output):
        parsed, none, one = ctypes.c_void_p(), ctypes.c_int64(0), ctypes.c_int64(1)
        block = (ctypes.c_char_p * len(names))(*[n.encode() for n in names])
        self.check(self.c.compute_expression_parse(text.encode(), block, ctypes.c_int64(len(names)), None, none, ctypes.byref(parsed)))
        array = (ctypes.c_void_p * len(inputs))(*[t.value for t in inputs])
        out = (ctypes.c_void_p * 1)(output.value)
        run, check, n, stream = self.c.compute_map, self.check, ctypes.c_int64(len(inputs)), self.stream

        def call(_keep=(inputs, output)):
            error = run(stream, parsed, array, n, None, none, out, one)
            if error:
                check(error)

        return call

    def synchronize(self):
        if self.stream:
            self.check(self.c.compute_stream_synchronize(self.stream))

    def elementwise_ops(self):
        """The newest version of each op that is an expression: (name, number of inputs, class of dtypes)."""
        count = ctypes.c_int64()
        self.check(self.c.compute_op_list(None, ctypes.c_int64(0), ctypes.byref(count)))
        infos = (OpInfo * count.value)()
        for info in infos:
            info.struct_size = ctypes.sizeof(OpInfo)
        self.check(self.c.compute_op_list(infos, count, ctypes.byref(count)))
        return list(dict.fromkeys((info.name.decode(), len(info.inputs.split()), info.dtypes.decode())
                                  for info in infos if info.expression and not info.attributes))


class Machine:
    """compute_bench_machine: the limits of the processor, and stretches of calls without Python in between."""

    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        for name in ("copy", "read", "multiply_add", "calls", "products"):
            getattr(self.c, "compute_bench_" + name).restype = ctypes.c_double
        self.c.compute_bench_operate.restype = ctypes.c_int64

    def calls(self, function, arguments, clock, fresh=None, release=None, check=None, keep=None):
        """A function of a number of calls, which returns the seconds that they took. Arguments are integers or ctypes objects; a result
        in `fresh` is given to `release`; `check` gets the last call's."""
        values = [0 if a is None else a if isinstance(a, int) else a.value or 0 if isinstance(a, ctypes._SimpleCData) else ctypes.addressof(a)
                  for a in arguments]
        block, last = (ctypes.c_uint64 * 11)(*values), ctypes.c_uint64()
        pointers = [ctypes.cast(one, ctypes.c_void_p) if one is not None else None for one in (function, release)]
        run = self.c.compute_bench_calls

        def stretch(count, _keep=(arguments, keep)):
            seconds = run(pointers[0], block, ctypes.c_int64(count), clock, fresh, pointers[1], ctypes.byref(last))
            if check is not None:
                check(last.value)
            return seconds

        return stretch

    def op(self, lib, clock, name, inputs, output, attributes=None, keeps_result=False):
        arguments, out, keep = lib.prepared(name, inputs, [output], attributes)
        fresh = (out, lib.c.compute_tensor_release) if output is None and not keeps_result else (None, None)
        return self.calls(lib.c.compute_op_run, arguments, clock, *fresh, lib.check, keep)

    def products(self, function, kind, extents, operands, clock, keep):
        """The same of products by a library: batch, m, n, k, and the addresses of a, b and c."""
        block = (ctypes.c_int64 * 4)(*extents)
        given = [ctypes.c_void_p(one) for one in operands]
        pointer = ctypes.cast(function, ctypes.c_void_p)
        run = self.c.compute_bench_products
        return lambda count, _keep=keep: run(pointer, ord(kind), block, *given, ctypes.c_int64(count), clock)
