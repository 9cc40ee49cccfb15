# SPDX-License-Identifier: Apache-2.0
"""Elementwise functions, operators, and numbers of Python beside arrays."""
import inspect
import operator

import compute as cp
import numpy as np

from case import ALL, COMPLEX, FLOATS, INTEGERS, NARROW, NUMERIC, TOLERANCE, Case, some

REAL = INTEGERS + FLOATS
BITS = ("bool",) + INTEGERS
INEXACT = FLOATS + COMPLEX

UNARY = {
    "abs": NUMERIC, "acos": INEXACT, "acosh": INEXACT, "asin": INEXACT, "asinh": INEXACT, "atan": INEXACT,
    "bitwise_invert": BITS, "ceil": REAL, "conj": NUMERIC, "cos": INEXACT, "cosh": INEXACT, "exp": INEXACT,
    "expm1": INEXACT, "floor": REAL, "imag": COMPLEX, "isfinite": NUMERIC, "isinf": NUMERIC, "isnan": NUMERIC,
    "log": INEXACT, "log10": INEXACT, "log1p": FLOATS, "log2": INEXACT, "logical_not": ("bool",),
    "negative": NUMERIC, "positive": NUMERIC, "real": COMPLEX, "reciprocal": INEXACT, "round": NUMERIC, "sign": REAL,
    "signbit": FLOATS, "sin": INEXACT, "sinh": INEXACT, "sqrt": INEXACT, "square": NUMERIC, "tan": INEXACT,
    "tanh": INEXACT, "trunc": REAL,
}
BINARY = {
    "add": NUMERIC, "atan2": FLOATS, "bitwise_and": BITS, "bitwise_or": BITS, "bitwise_xor": BITS,
    "copysign": FLOATS, "divide": INEXACT, "equal": ALL, "floor_divide": REAL, "greater": REAL,
    "greater_equal": REAL, "hypot": FLOATS, "less": REAL, "less_equal": REAL, "logaddexp": FLOATS,
    "logical_and": ("bool",), "logical_or": ("bool",), "logical_xor": ("bool",), "maximum": REAL, "minimum": REAL,
    "multiply": NUMERIC, "nextafter": FLOATS, "not_equal": ALL, "pow": FLOATS, "remainder": REAL, "subtract": NUMERIC,
}
NUMPY_NAMES = {"acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
               "atanh": "arctanh", "atan2": "arctan2", "bitwise_invert": "invert", "pow": "power"}
OPERATORS = {operator.add: NUMERIC, operator.sub: NUMERIC, operator.mul: NUMERIC, operator.truediv: INEXACT,
             operator.floordiv: REAL, operator.mod: REAL, operator.and_: BITS, operator.or_: BITS,
             operator.xor: BITS, operator.eq: ALL, operator.ne: ALL, operator.lt: REAL, operator.le: REAL,
             operator.gt: REAL, operator.ge: REAL}
IN_PLACE = {operator.iadd: NUMERIC, operator.isub: NUMERIC, operator.imul: NUMERIC, operator.itruediv: INEXACT,
            operator.ifloordiv: REAL, operator.imod: REAL, operator.iand: BITS, operator.ior: BITS,
            operator.ixor: BITS}


def tolerance(dtype):
    return TOLERANCE.get(dtype, 0)


class Elementwise(Case):
    def test_unary(self):
        for name, dtypes in UNARY.items():
            for dtype in some(dtypes):
                x = self.numbers(dtype, (3, 5))
                with np.errstate(all="ignore"):
                    expected = getattr(np, NUMPY_NAMES.get(name, name))(x)
                actual = getattr(cp, name)(self.device_array(x))
                self.assert_same(actual, expected.astype(actual.dtype.name) if name in ("ceil", "floor", "trunc") else
                                 expected, tolerance(dtype), f"{name} {dtype}")

    def test_binary_broadcasts(self):
        for name, dtypes in BINARY.items():
            for dtype in some(dtypes):
                x, y = self.numbers(dtype, (3, 1, 4)), self.numbers(dtype, (5, 1), 1)
                with np.errstate(all="ignore"):
                    expected = getattr(np, NUMPY_NAMES.get(name, name))(x, y)
                actual = getattr(cp, name)(self.device_array(x), self.device_array(y))
                self.assert_same(actual, expected, tolerance(dtype), f"{name} {dtype}")

    def test_operators(self):
        for function, dtypes in OPERATORS.items():
            for dtype in some(dtypes):  # shapes as above, whose kernels serve these calls, too
                x, y = self.numbers(dtype, (3, 1, 4)), self.numbers(dtype, (5, 1), 1)
                expected = function(x, y)
                actual = function(self.device_array(x), self.device_array(y))
                self.assert_same(actual, expected, tolerance(dtype), f"{function.__name__} {dtype}")

    def test_in_place(self):
        for function, dtypes in IN_PLACE.items():
            for dtype in some(dtypes):
                x, y = self.numbers(dtype, (4, 3)), self.numbers(dtype, (3,), 1)
                target = self.device_array(x)
                view = target[1:]
                result = function(target, self.device_array(y))
                expected = function(x.copy(), y)
                self.assertIs(result, target)
                self.assert_same(target, expected, tolerance(dtype), f"{function.__name__} {dtype}")
                self.assert_same(view, expected[1:], tolerance(dtype), f"{function.__name__} {dtype} view")

    def test_in_place_on_overlapping_views(self):
        x = self.numbers("float32", (6,))
        target = self.device_array(x)
        target[:-1] += target[1:]
        x[:-1] += x[1:].copy()
        self.assert_same(target, x)
        with cp.graph.record(cp.device()) as step:
            target[1:] -= target[:-1]
            target[::2] += target[1::2]
            target += target[0]
            target *= target
        for _ in range(2):
            step.run()
            x[1:] -= x[:-1].copy()
            x[::2] += x[1::2]
            x += x[0].copy()
            x *= x
        self.assert_same(target, x)

    def test_in_place_keeps_shape_and_dtype(self):
        x = cp.zeros((2, 3))
        with self.assertRaises(ValueError):
            x += cp.zeros((4, 2, 3))
        with self.assertRaises((TypeError, ValueError)):
            x += 1j
        self.assertEqual((x.shape, x.dtype), ((2, 3), cp.float32))

    def test_numbers_take_the_dtype_of_the_array(self):
        for dtype in INTEGERS + FLOATS:
            x = self.numbers(dtype, (4,), 1)
            array = self.device_array(x)
            for number in (2, True)[:1] + ((0.5,) if dtype in FLOATS else ()):
                typed = x.dtype.type(number)
                self.assert_same(array + number, x + typed, note=dtype)
                self.assert_same(number - array, typed - x, note=dtype)
                self.assert_same(array < number, x < typed, note=dtype)
        flags = self.device_array([True, False])
        self.assert_same(flags & True, [True, False])
        self.assert_same(flags == True, [True, False])  # noqa: E712

    def test_a_complex_number_makes_a_real_array_complex(self):
        self.assert_same(self.device_array(np.float32([1, 2])) + 1j, np.complex64([1 + 1j, 2 + 1j]))

    def test_numbers_that_do_not_fit(self):
        x = cp.asarray([1, 2], dtype=cp.int8)
        for number in (128, -129, 2 ** 70):
            with self.assertRaises(OverflowError):
                x + number
        with self.assertRaises(OverflowError):
            cp.asarray([1], dtype=cp.uint8) - (-1)
        self.assert_same(x + 126, np.int8([127, -128]))

    def test_numbers_of_any_source_are_checked(self):
        def assigned(key, value):
            x = cp.asarray([1, 44], dtype=cp.int8, copy=True)
            x[key] = value
            return x

        def added(number):
            x = cp.asarray([1, 44], dtype=cp.int8, copy=True)
            x += number
            return x

        class Whole:
            def __init__(self, value):
                self.value = value

            def __index__(self):
                return self.value

        x, first, mask = cp.asarray([1, 44], dtype=cp.int8), cp.asarray([0]), cp.asarray([True, False])
        sum_of = cp.expression("x + y")
        for call, expected in ((lambda n: x + n, [4, 47]), (lambda n: n * x, [3, -124]),
                               (lambda n: x << n, [8, 96]), (lambda n: x == n, [False, False]),
                               (lambda n: cp.maximum(x, n), [3, 44]), (added, [4, 47]),
                               (lambda n: cp.where(mask, x, n), [1, 3]), (lambda n: cp.where(mask, n, x), [3, 44]),
                               (lambda n: cp.stack([x[0], n]), [1, 3]), (lambda n: sum_of(x=x, y=n), [4, 47]),
                               (lambda n: sum_of.reduce("sum", x=x, y=n, axis=0), 51),
                               (lambda n: cp.scatter(x, first, n), [3, 44]),
                               (lambda n: cp.full(2, n, dtype=cp.int8), [3, 3]),
                               (lambda n: cp.full_like(x, n), [3, 3]), (lambda n: cp.asarray(n, dtype=cp.int8), 3),
                               (lambda n: cp.asarray([n, n], dtype=cp.int8), [3, 3]),
                               (lambda n: cp.pad(x, (0, 1), constant_values=n), [1, 44, 3]),
                               (lambda n: cp.isin(x, n), [False, False]), (lambda n: assigned(0, n), [3, 44]),
                               (lambda n: assigned(mask, n), [3, 44]), (lambda n: assigned(first, n), [3, 44]),
                               (lambda n: assigned(slice(None), [n, 2]), [3, 2]),
                               (lambda n: cp.arange(n, n + 1, dtype=cp.int8), [3])):
            for kind in (int, np.int64, np.int16, Whole):
                try:
                    found = call(kind(3))
                except TypeError:
                    self.assertIs(kind, Whole)  # in lists, and where the test itself adds
                    continue
                self.assertEqual(found.tolist(), expected)
                with self.assertRaises(OverflowError):
                    call(kind(300))
                with self.assertRaises(OverflowError):
                    call(kind(-129))
        with self.assertRaises(OverflowError):
            cp.asarray([1], dtype=cp.uint8) + np.int64(-1)
        with self.assertRaises(OverflowError):
            cp.asarray([1], dtype=cp.uint64) + -2 ** 70
        for bounds in ((300,), (-1, 3)):
            with self.assertRaises(OverflowError):
                cp.arange(*bounds, dtype=cp.uint8)
        self.assertEqual(cp.arange(256, dtype=cp.uint8)[-1].item(), 255)
        self.assertEqual(sum_of(x=cp.asarray([1], dtype=cp.uint64), y=2 ** 63).tolist(), [2 ** 63 + 1])
        self.assertEqual(sum_of(x=x, y=cp.asarray([300])).tolist(), [301, 344])

    def test_kinds_mix(self):
        integers, floats, flags = cp.asarray([1, 2]), cp.asarray([0.5, 1.5]), cp.asarray([True, False])
        for call, expected in (
                (lambda: integers + floats, np.float32([1.5, 3.5])), (lambda: flags * floats, np.float32([0.5, 0])),
                (lambda: integers + 0.5, np.float32([1.5, 2.5])), (lambda: flags + 1, np.int64([2, 1])),
                (lambda: floats - True, np.float32([-0.5, 0.5])), (lambda: integers / 2, np.float32([0.5, 1])),
                (lambda: integers / integers, np.float32([1, 1])), (lambda: 3 / integers, np.float32([3, 1.5])),
                (lambda: integers * 1j, np.complex64([1j, 2j])), (lambda: cp.sqrt(integers[:1]), np.float32([1])),
                (lambda: integers < floats, [False, False]), (lambda: integers // 0.5, np.float32([2, 4])),
                (lambda: cp.where(flags, integers, floats), np.float32([1, 1.5])),
                (lambda: cp.where(flags, integers, 0.5), np.float32([1, 0.5])),
                (lambda: cp.where(flags, floats, 1j), np.complex64([0.5, 1j])),
                (lambda: cp.concat([flags, integers]), np.int64([1, 0, 1, 2])),
                (lambda: cp.stack([integers, floats]), np.float32([[1, 2], [0.5, 1.5]])),
                (lambda: integers @ floats, np.float32(3.5)), (lambda: flags & integers, np.int64([1, 0])),
                (lambda: integers + cp.astype(floats, cp.float16), np.float16([1.5, 3.5])),
                (lambda: cp.astype(integers, cp.int8) / 300, np.float32([1, 2]) / np.float32(300)),
                (lambda: cp.expression("a * b + 0.5")(a=integers, b=flags), np.float32([1.5, 0.5]))):
            self.assert_same(call(), expected)
        with self.assertRaises(OverflowError):
            cp.astype(integers, cp.int8) + 300
        with self.assertRaisesRegex(TypeError, "uint64 and int64 have no common dtype"):
            cp.astype(integers, cp.uint64) + integers

    def test_destinations_keep_their_dtype(self):
        integers, small, flags = cp.asarray([1, 2]), cp.asarray([1, 2], dtype=cp.int8), cp.asarray([True, False])
        floats, double = cp.asarray([0.5, 1.5]), cp.asarray([0.5, 1.5], dtype=cp.float64) if not NARROW else None
        halves = cp.asarray([0.5, 1.5], dtype=cp.float16)
        floats += integers
        floats *= flags
        self.assert_same(floats, np.float32([1.5, 0]))
        halves += floats
        self.assert_same(halves, np.float16([2, 1.5]))
        small += integers
        self.assert_same(small, np.int8([2, 4]))
        if double is not None:
            floats += double
            self.assert_same(floats, np.float32([2, 1.5]))
        floats[0] = integers[1]
        floats[1:] = flags[:1]
        self.assert_same(floats, np.float32([2, 1]))
        floats[integers - 1] = integers
        floats[flags] = True
        self.assert_same(floats, np.float32([1, 2]))
        for index in (0, [0], slice(0, 1), cp.asarray([0]), cp.asarray([True, False])):  # 0 and 1 are elements of bool
            for value in (1, 0):
                flags[index] = value
                self.assertEqual(bool(flags[0]), bool(value))
        flags[0] = True
        for call in (lambda: integers.__iadd__(floats), lambda: integers.__itruediv__(2), lambda: floats.__imul__(1j),
                     lambda: flags.__iadd__(1)):
            with self.assertRaisesRegex((TypeError, ValueError), "keeps its shape and dtype"):
                call()
        for call in (lambda: integers.__setitem__(0, 0.5), lambda: integers.__setitem__(0, floats[0]),
                     lambda: floats.__setitem__(flags, 1j), lambda: flags.__setitem__(0, 2)):
            with self.assertRaisesRegex(TypeError, "cannot be set to"):
                call()

    def test_default_float64(self):
        if NARROW:
            self.skipTest("the device has no float64")
        integers, flags = cp.asarray([1, 2]), cp.asarray([True, False])
        cp.set_default_dtype(cp.float64)
        try:
            for call, expected in (
                    (lambda: integers / 3, np.float64([1, 2]) / 3), (lambda: integers / integers, np.float64([1, 1])),
                    (lambda: integers + 0.1, np.float64([1.1, 2.1])), (lambda: integers * 0.1j, np.complex128([0.1j, 0.2j])),
                    (lambda: cp.sqrt(integers), np.sqrt(np.float64([1, 2]))), (lambda: flags * 0.1, np.float64([0.1, 0])),
                    (lambda: cp.where(flags, integers, 0.1), np.float64([1, 0.1])), (lambda: flags + 1, np.int64([2, 1])),
                    (lambda: integers + cp.asarray([0.5], dtype=cp.float32), np.float32([1.5, 2.5]))):
                self.assert_same(call(), expected)
            self.assertIs(cp.result_type(integers, 0.5), cp.float64)
            narrow = cp.asarray([1, 2], dtype=cp.float32)
            for text, operands, expected in (
                    ("i + 0.5", (integers,), np.float64([1.5, 2.5])), ("i * s", (integers, 0.1), np.float64([0.1, 0.2])), ("i + s", (integers, 3), np.int64([4, 5])),
                    ("i / 3 + i // 2", (integers,), np.float64([1, 2]) / 3 + [0, 1]), ("i * s", (integers, 0.1j), np.complex128([0.1j, 0.2j])), ("h = .5e0; i ** h", (integers,), np.sqrt(np.float64([1, 2]))),
                    ("sqrt(hypot(i, (i + 1)) * 2)", (integers,), np.sqrt(np.hypot([1.0, 2.0], [2.0, 3.0]) * 2)), ("where(m, 1 / 3, i)", (flags, integers), np.float64([1 / 3, 2])),
                    ("convert(i, float32) + 0.1", (integers,), np.float32([1.1, 2.1])), ("x * 0.1 + i", (narrow, integers), np.float32([1.1, 2.2])), ("i & 1", (integers,), np.int64([1, 0]))):
                self.assert_same(cp.expression(text)(*operands), expected, 1e-7 if expected.dtype == np.float32 else 1e-15)
            self.assert_same(cp.expression("i * i").reduce("sum", integers, after="sqrt(x) / 2"), np.sqrt(np.float64(5)) / 2, 1e-15)
        finally:
            cp.set_default_dtype(cp.float32)
        self.assert_same(integers / 2, np.float32([0.5, 1]))
        self.assert_same(cp.expression("i + 0.5")(integers), np.float32([1.5, 2.5]))
        self.assertEqual(cp.expression("where(x > 0, convert(x, int64), nan) + inf").names, ("x",))

    def test_numbers_alone(self):
        for call, expected in ((lambda: cp.add(1, 2), np.int64(3)), (lambda: cp.sqrt(2), np.sqrt(np.float32(2))), (lambda: cp.maximum(1, np.float64(2.5)), np.float32(2.5)),
                               (lambda: cp.isnan(float("nan")), np.bool_(True)), (lambda: cp.max(5.0), np.float32(5)), (lambda: cp.stack([1.0, 2]), np.float32([1, 2])),
                               (lambda: cp.logical_and(True, False), np.bool_(False)), (lambda: cp.abs(3 + 4j), np.float32(5)), (lambda: cp.clip(5, 0, 3), np.int64(3))):
            self.assert_same(call(), expected, 1e-6)

    def test_what_is_no_operand(self):
        integers = cp.asarray([1])
        with self.assertRaises(TypeError):
            integers + "a"
        self.assertFalse(integers == "a")

    def test_scalars_of_numpy_are_numbers(self):
        x = cp.asarray([1.0, 2.0])
        self.assert_same(x * np.float64(2), np.float32([2, 4]))
        self.assert_same(np.float32(2) * x, np.float32([2, 4]))
        self.assert_same(np.arange(2.0) + x, np.float32([1, 3]))

    def test_infinities_of_floor_divide(self):
        x = cp.asarray([cp.inf, -cp.inf, 1.0, -1.0, cp.inf])
        y = cp.asarray([2.0, 2.0, -cp.inf, cp.inf, cp.inf])
        self.assert_same(x // y, np.float32([np.inf, -np.inf, -0.0, -0.0, np.nan]))
        self.assert_same(cp.signbit((x // y)[2:4]), [True, True])

    def test_where_and_clip(self):
        x, mask = self.numbers("float32", (3, 4)), self.numbers("bool", (4,))
        array, flags = self.device_array(x), self.device_array(mask)
        self.assert_same(cp.where(flags, array, 0.0), np.where(mask, x, np.float32(0)))
        self.assert_same(cp.where(flags, 1, 2), np.where(mask, 1, 2))
        self.assert_same(cp.clip(array, -1, 1), np.clip(x, -1, 1))
        self.assert_same(cp.clip(array, max=1), np.minimum(x, 1))
        small = cp.asarray([0, 100, 200], dtype=cp.uint8)
        self.assert_same(cp.clip(small, -5, 1000), np.uint8([0, 100, 200]))

    def test_functions_have_signatures_and_documentation(self):
        self.assertEqual(str(inspect.signature(cp.add)), "(x1, x2, /)")
        self.assertEqual(str(inspect.signature(cp.exp)), "(x, /)")
        self.assertIn("e to the x", cp.exp.__doc__)
        self.assertIn("floating-point and complex", cp.exp.__doc__)
        self.assertIn("min(max(x1, x2), x3)", cp._ops.ROWS["clip"].__doc__)

    def test_messages(self):
        x = cp.asarray([1, 2])
        for error, message, call in (
                (TypeError, "exp takes 1 argument, not 2", lambda: cp.exp(cp.zeros(2), 2)),
                (TypeError, "multiply takes 2 arguments, not 1", lambda: cp.multiply(x)), (TypeError, r"^add\(\) missing 1 required", lambda: cp.add(x)),
                (ValueError, "^multiply: argument 1 is None; expected an array or a number$", lambda: cp.multiply(x, None)),
                (TypeError, r"\(astype\(x, bool\)\)", lambda: cp.logical_not(x)),
                (TypeError, "shape .2,. is neither true nor false; use any", lambda: bool(x)),
                (TypeError, "2.5 is neither an integer nor a sequence of integers", lambda: cp.zeros(2.5)),
                (TypeError, "where: set is not an array", lambda: cp.where({True}, 1, 0))):
            with self.assertRaisesRegex(error, message):
                call()
