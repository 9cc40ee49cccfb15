# SPDX-License-Identifier: Apache-2.0
"""Arguments: lists and NumPy arrays in the place of arrays, and what functions refuse."""
import re
import types

import compute as cp
import numpy as np
from compute import _names, fft, linalg, nn, random

from case import NARROW, Case

# Functions that take no array, or other objects as well.
OTHERS = {
    "arange", "asarray", "bernoulli", "bits", "broadcast_shapes", "can_cast", "concat", "config", "device", "device_list", "devices", "empty", "expression", "eye",
    "fftfreq", "finfo", "from_dlpack", "full", "iinfo", "integers", "isdtype", "kernel", "linspace", "load", "load_report", "normal", "ones", "permutation",
    "placement_report", "profile", "reads", "result_type", "rfftfreq", "save", "scope", "seed", "set_default_device", "set_default_dtype", "stack", "stream", "truncated_normal", "uniform", "which",
    "zeros"}


def calls():
    """Arguments for each function that takes arrays, by its name."""
    x, m, i, image = cp.ones(3), cp.ones((2, 2)), cp.asarray([0, 1]), cp.ones((1, 1, 4, 4))
    two, places, heads = cp.ones(2), cp.asarray([[0], [1]]), cp.ones((1, 1, 2, 2))
    pairs = "convolve correlate isclose allclose digitize kron outer cross cov corrcoef broadcast_arrays meshgrid trapezoid"
    matrices = "matmul tensordot matrix_transpose matrix_norm diagonal trace tril triu categorical cross_entropy_soft linear"
    table = {name: (x, x) for name in pairs.split()}
    table |= {name: (m, m) if name in ("matmul", "tensordot", "cross_entropy_soft", "linear") else (m,) for name in matrices.split()}
    packed, scales = cp.zeros((2, 16), dtype=cp.uint8), cp.ones((2, 1))
    table |= {"dequantize": (packed, scales), "quantized_matmul": (cp.ones((1, 32)), packed, scales)}
    positive = cp.asarray([[2.0, 1.0], [1.0, 3.0]])
    decompositions = "cholesky det eig eigh eigvals eigvalsh expm inv lu matrix_rank pinv qr slogdet svd svdvals"
    table |= {name: (m,) for name in ("fft2", "ifft2", "irfft2", "rfft2")}
    table |= {name: (positive,) for name in decompositions.split()} | {name: (positive, two) for name in ("lstsq", "solve", "triangular_solve")}
    table |= {
        "where": (x > 0, x, x), "reshape": (x, (3,)), "broadcast_to": (x, (2, 3)), "expand_dims": (x, 0), "squeeze": (cp.ones((1, 2)), 0),
        "permute_dims": (m, (1, 0)), "moveaxis": (m, 0, 1), "roll": (x, 1), "repeat": (x, cp.asarray([1, 2, 3])), "tile": (x, (2,)), "pad": (x, 1),
        "take": (x, i), "take_along_axis": (x, i), "gather_at": (x, i), "gather_nd": (x, places), "scatter": (x, i, two), "scatter_at": (x, two, i), "scatter_nd": (x, places, two),
        "top_k": (x, 2), "histogram": (x,), "bincount": (i, two), "segment_reduce": (x, cp.asarray([0, 3])), "einsum": ("ij,jk->ik", m, m),
        "quantile": (x, 0.5), "percentile": (x, 50), "nanquantile": (x, 0.5), "nanpercentile": (x, 50), "interp": (x, x, x), "full_like": (x, 1), "astype": (x, cp.int32), "clip": (x, x, x),
        "array_split": (x, 3), "split": (x, 3), "hsplit": (x, 3), "vsplit": (m, 2), "gradient": (x, cp.arange(3.0)), "matrix_power": (m, 2),
        "gemm": (m, m, m, two), "convolution": (image, heads), "convolution_transpose": (image, heads), "max_pool": (image, 2), "average_pool": (image, 2),
        "layer_norm": (m, two, two), "rms_norm": (m, two), "batch_norm": (m, two, two), "batch_norm_inference": (m, two, two),
        "attention": (heads, heads, heads), "rotary_embedding": (heads, i), "cross_entropy": (m, i), "one_hot": (i, 2), "embedding": (m, i),
        "group_norm": (cp.ones((1, 2, 3)),), "local_response_norm": (m, 1), "resize": (m, [4]),
        "lstm": (cp.ones((2, 1, 2)), cp.ones((1, 8, 2)), cp.ones((1, 8, 2))), "gru": (cp.ones((2, 1, 2)), cp.ones((1, 6, 2)), cp.ones((1, 6, 2))), "choice": (x,), "average": (x, 0, x), "elu": (x, x), "leaky_relu": (x, x),
        "binomial": (x, x), "multinomial": (two, m), **{f"reduce_{name}": (i,) for name in ("and", "or", "xor")}}
    return x, table


def leaves(value):
    """The arrays and numbers of a result."""
    return [leaf for one in value for leaf in leaves(one)] if isinstance(value, (tuple, list)) else [value]


class Arrays(Case):
    def assert_equal_results(self, actual, expected, note):
        self.assertEqual(len(leaves(actual)), len(leaves(expected)), note)
        for one, other in zip(leaves(actual), leaves(expected)):
            self.assertIs(type(one), type(other), note)
            if isinstance(other, cp.Array):
                self.assertIs(one.device, other.device, note)
                self.assert_same(one, np.asarray(other), 1e-6, note)
            else:
                self.assertEqual(one, other, note)

    def test_values_in_the_place_of_arrays(self):
        x, table = calls()
        seen, count = {}, 0
        for module in (cp, fft, linalg, nn, random):
            for name, function in vars(module).items():
                known = name[0] == "_" or name in OTHERS or name in seen or isinstance(function, (type, cp._core.DType)) or not callable(function)
                alias = module is cp and _names.COMPUTE.get(name) is function or name in _names.LINALG or name in _names.RANDOM or module is nn and name in _names.NN
                if known or alias or not str(getattr(function, "__module__", "compute")).startswith("compute"):
                    continue
                seen[name] = function
                arguments, options = table.get(name, (x,)), {"groups": 1} if name == "group_norm" else {}
                if name in cp._ops.TABLE and name not in table:
                    if NARROW and name in cp._ops.ROWS and name not in ("add", "exp"):
                        continue  # each op takes a compilation
                    row = cp._ops.TABLE[name]
                    operand = {"BITS": cp.asarray([0, 1, 2]), "INTEGER": cp.asarray([0, 1, 2]), "BOOL": x > 0}.get(row["dtypes"], x)
                    arguments = (operand,) * sum("?" not in one for one in row["inputs"].split())
                random.seed(1)
                expected = function(*arguments, **options)
                for i, array in enumerate(arguments):
                    if not isinstance(array, cp.Array) or name in ("shuffle", "empty_like"):
                        continue
                    values = np.array(array)
                    for other in (values.tolist(), values):
                        random.seed(1)
                        actual = function(*arguments[:i], other, *arguments[i + 1:], **options)
                        self.assert_equal_results(actual, expected, f"{name}, argument {i}, {type(other).__name__}")
                        count += 1
                    for other in ("text", object(), {1.0, 2.0}):
                        with self.assertRaises(TypeError, msg=f"{name}, argument {i}, {other}") as caught:
                            function(*arguments[:i], other, *arguments[i + 1:], **options)
                        self.assertRegex(str(caught.exception), f"^{name}: .*{type(other).__name__}|^{name}: .*expected", name)
        self.assertGreater(count, 200 if NARROW else 350)
        self.assertLess(set(table), set(seen))

    def test_values_in_sequences_and_options(self):
        x, numbers = cp.ones(3), [1.0, 1.0, 1.0]
        y = cp.asarray(numbers)
        for call in (lambda v: cp.concat([v, x]), lambda v: cp.stack([x, v]), lambda v: cp.diff(x, prepend=v), lambda v: cp.histogram(x, weights=v)[0],
                     lambda v: cp.average(x, 0, v), lambda v: x[v > 0] if isinstance(v, cp.Array) else x[[one > 0 for one in v]]):
            self.assert_equal_results(call(numbers), call(y), "")
        self.assertEqual(random.choice(3, p=[0.0, 1.0, 0.0]).tolist(), 1)
        with self.assertRaisesRegex(TypeError, "^shuffle: list is not an array"):
            random.shuffle([1, 2])

    def test_values_are_weak(self):
        x, i = cp.ones(3, dtype=cp.float16), cp.asarray([1, 2, 3], dtype=cp.int8)
        for other, result in ((lambda: x + [1, 2, 3], "float16"), (lambda: x * np.arange(3.0), "float16"), (lambda: np.arange(3) + x, "float16"), (lambda: [1.5, 2, 3] - x, "float16"),
                              (lambda: i + [1, 2, 3], "int8"), (lambda: cp.maximum((1, 2, 3), i), "int8"), (lambda: i + range(3), "int8"), (lambda: cp.where(i > 1, i, [7, 8, 9]), "int8"),
                              (lambda: x + np.array(2.0), "float16"), (lambda: cp.concat([i, [5]]), "int8"), (lambda: np.add(x, [1, 2, 3]), "float16"), (lambda: x.__iadd__([1, 1, 1]), "float16")):
            self.assertEqual(other().dtype.name, result)
        self.assertEqual(cp.expression("a * b + c")(x, [1, 2, 3], 0.5).tolist(), [2.5, 4.5, 6.5])
        self.assertEqual((i == [1, 5, 3]).tolist(), [True, False, True])
        self.assertEqual(([1, 5, 3] != i).tolist(), [False, True, False])
        self.assertEqual((cp.asarray([[1, 2], [3, 4]]) @ [1, 1]).tolist(), [3, 7])
        self.assertEqual(([1, 1] @ cp.asarray([[1, 2], [3, 4]])).tolist(), [4, 6])
        for call in (lambda: i + [1, 2, 300], lambda: i * np.array([1, 2, 300]), lambda: cp.where(i > 1, i, [1, 2, -129])):
            with self.assertRaisesRegex(OverflowError, "does not fit in int8"):
                call()
        with self.assertRaises(ValueError):
            x + [1, 2]
        self.assertFalse(x == "abc")

    def test_values_beside_variables(self):
        def loss(v):
            return cp.sum(v * [1.0, 2.0] + np.float32([3, 4]) * v + cp.maximum([0.0, 0.0], v))

        value, gradient = cp.grad.value_and_gradients(loss)(cp.asarray([1.0, 2.0]))
        self.assertEqual((float(value), gradient.tolist()), (4.0 + 12.0 + 3.0, [5.0, 7.0]))

    def test_variables_are_arrays(self):
        def loss(x):
            return cp.sum(cp.flip(cp.squeeze(cp.expand_dims(x, 0), 0)) * cp.moveaxis(cp.matrix_transpose(x), 0, 1)) + x.ndim

        x = cp.asarray([[1.0, 2.0], [3.0, 4.0]])
        value, gradient = cp.grad.value_and_gradients(loss)(x)
        self.assertEqual((float(value), gradient.tolist()), (22.0, [[8.0, 6.0], [4.0, 2.0]]))


class Messages(Case):
    def test_names_of_functions(self):
        seen = 0
        for owner, prefix in ((cp.Array, "Array."), (cp.random.Generator, "Generator."), (cp, ""), (fft, ""), (linalg, ""), (nn, ""), (random, "")):
            for name, function in vars(owner).items():
                if not isinstance(function, types.FunctionType) or name in _names.COMPUTE | _names.RANDOM or (name[0] == "_" and not prefix) or (name[0] == "_" and name[1] != "_"):
                    continue
                seen += 1
                self.assertNotIn("<", function.__qualname__, name)
                self.assertFalse(function.__qualname__.split(".")[-1].strip("_") != name.strip("_") and name != "__copy__", (name, function.__qualname__))
        self.assertGreater(seen, 150)
        x = cp.ones((2, 3))
        for call, message in {
                lambda: x.sum(1, 2): "^sum: dtype is 2; expected a dtype$", lambda: x.to_device(): r"^Array.to_device\(\) missing 1",
                lambda: x.tolist(1): r"^Array.tolist\(\) takes 1 positional", lambda: x.flatten(1, 2, 3): r"^Array.flatten\(\) takes from 1 to 3 positional",
                lambda: x.mean("a"): "^mean: axes is 'a'; expected integers"}.items():
            with self.assertRaisesRegex(TypeError, message):
                call()

    def test_numbers_that_are_too_large(self):
        x, i, large, huge = cp.ones(3), cp.asarray([1, 2, 3]), 2 ** 70, 10 ** 400
        for message, call in {
                "the number 1180591620717411303424 does not fit in 64 bits": lambda: i + large, "the number -1180591620717411303424 does": lambda: i - -large,
                "the number 100000000000... (401 digits) does not fit in 64 bits": lambda: x * huge, "roll: shift is 1180591620717411303424, which does not fit in int64": lambda: cp.roll(x, large),
                "full: value is 1180591620717411303424, which does not fit in 64 bits": lambda: cp.full(3, large), "tril: k is ": lambda: cp.tril(cp.ones((2, 2)), k=large),
                "one_hot: depth is ": lambda: nn.one_hot(i, large), "softmax: axis is ": lambda: nn.softmax(x, axis=large), "var: correction is ": lambda: cp.var(x, correction=huge),
                "normal: mean is ": lambda: random.normal(3, huge), "uniform: the number ": lambda: random.uniform(3, 0, huge), "asarray: the number ": lambda: cp.asarray([huge], dtype=cp.float32),
                "arange: (1180591620717411303424,) does not fit in 64 bits": lambda: cp.arange(large)}.items():
            with self.assertRaises(OverflowError, msg=message) as caught:
                call()
            self.assertEqual(str(caught.exception)[:len(message)], message)
        for call in (lambda: x + huge, lambda: i == -large, lambda: x.__setitem__(0, huge), lambda: i.__setitem__(0, large), lambda: cp.where(i > 0, i, large), lambda: cp.clip(x, 0, huge),
                     lambda: cp.asarray(huge, dtype=cp.complex64), lambda: cp.sum(x, axis=large), lambda: cp.linspace(0, huge, 3), lambda: cp.top_k(x, large), lambda: cp.repeat(x, large),
                     lambda: cp.expression("x * s")(x=x, s=huge), lambda: nn.layer_norm(cp.ones((2, 2)), epsilon=huge), lambda: cp.pow(x, huge), lambda: i << large):
            with self.assertRaisesRegex(OverflowError, "does not fit in|do not fit in"):
                call()
        for index in (large, -large):
            with self.assertRaisesRegex(IndexError, f"^index {index} is out of range for axis 0 of extent 3"):
                x[index]
            with self.assertRaisesRegex(IndexError, f"^index {index} is out of range for axis 1 of extent 2"):
                cp.ones((3, 2))[0, index]

    def test_words_of_the_package(self):
        x, i, u = cp.ones(3), cp.asarray([1, 2, 3]), cp.asarray([1, 2, 3], dtype=cp.uint64)
        for call, message in {
                lambda: i + u: r"int64 and uint64 have no common dtype; convert one of them \(astype\(y, int64\)\)$", lambda: i & x: "integer dtypes and bool$",
                lambda: cp.logical_not(i): r"convert it \(astype\(x, bool\)\)$", lambda: (i > 1) + True: r"bool",
                lambda: cp.concat([i, u]): r"convert one of them \(astype\(xs\[1\], int64\)\)$", lambda: cp.take(x, x): r"convert it \(astype\(indices, int64\)\)$",
                lambda: cp.scatter(i, i, x): r"convert updates \(astype\(updates, int64\)\)$", lambda: cp.clip(i, x, x): "convert",
                lambda: i.__setitem__(0, x[0]): "convert the value$", lambda: i.__setitem__(0, 0.5): "cannot be set to 0.5$"}.items():
            with self.assertRaisesRegex(TypeError, message) as caught:
                call()
            self.assertNotRegex(str(caught.exception), r"\bcast\b|the number float64")
        y = cp.ones((2, 3))
        for call, message in {
                lambda: x.__iadd__(y): r"^add: the result is float32 \[2,3\], but x, which keeps its shape and dtype, is float32 \[3\]$",
                lambda: x.__imul__(1j): r"^multiply: the result is complex64 \[3\], but x, which keeps its shape and dtype, is float32 \[3\]$"}.items():
            with self.assertRaisesRegex(ValueError, message):
                call()
        for device in ("cpu1", "cpu7"):
            with self.assertRaisesRegex(LookupError, rf'^device "{device}": cpu has no device {device[3]} \(available: cpu\)$'):
                cp.device(device)

    def test_functions_of_c_are_not_named(self):
        exception = cp._core.hooks["exception"]
        for said, message in {
                "add: input 1 is on cuda1, but another operand is on cuda0; move one of them (to_device)": None,
                "cuda0 was opened before fork(), and plugin cuda does not support its use in the child process; open the device after fork(), or call exec() in the child":
                    'cuda0 was opened before fork(), and plugin cuda does not support its use in the child process; use multiprocessing\'s start method "spawn"',
                "the memory of cpu has no handle; use compute_tensor_map to get addresses": "the memory of cpu has no handle; use numpy.asarray to get addresses",
                "compute_profile_report: there is no profile; call compute_profile_start or set COMPUTE_PROFILE=1": None,
                "a scalar has no memory; use compute_tensor_read\n  compute_tensor_read(x)": "a scalar has no memory; use numpy.asarray\n  compute_tensor_read(x)"}.items():
            error = exception(1, "INVALID_ARGUMENT", said, "", -1, "", 0, "")
            self.assertNotRegex(str(error).partition("\n")[0], "compute_|exec")
            self.assertEqual(str(error), message if message is not None else str(error))
        with open("/proc/self/maps", encoding="utf-8") as maps:
            library = next(line.split()[-1] for line in maps if "/libcompute.so" in line)
        with open(library, "rb") as file:
            said = {text for text in re.findall(rb"[ -~]*\bcompute_(?!plugin)[ -~]*", file.read()) if re.search(rb"[a-z]; | use |: .* ", text)}
        self.assertGreater(len(said), 10)
        for text in said:
            self.assertNotRegex(str(exception(1, "INVALID_ARGUMENT", text.decode(), "", -1, "", 0, "")), r"\bcompute_(?!plugin)", text)


class Extents(Case):
    def test_negative_ones(self):
        x = cp.ones(3)
        for argument, call in {
                "zeros: shape[0] is -1": lambda: cp.zeros(-1), "ones: shape[1] is -2": lambda: cp.ones((2, -2)), "full: shape[0] is -1": lambda: cp.full(-1, 2),
                "empty: shape[0] is -3": lambda: cp.empty((-3,)), "eye: n_rows is -1": lambda: cp.eye(-1), "eye: n_cols is -2": lambda: cp.eye(2, -2),
                "linspace: num is -1": lambda: cp.linspace(0, 1, -1), "reshape: shape[0] is -2": lambda: cp.reshape(x, (-2,)),
                "broadcast_to: shape[0] is -1": lambda: cp.broadcast_to(x, (-1, 3)), "tile: repetitions": lambda: cp.tile(x, -1),
                "repeat: repeats is -1": lambda: cp.repeat(x, -1), "pad: pad_width": lambda: cp.pad(x, -1), "top_k: k is -1": lambda: cp.top_k(x, -1),
                "histogram: bins is -5": lambda: cp.histogram(x, -5), "bincount: minlength is -1": lambda: cp.bincount(cp.asarray([1]), minlength=-1),
                "one_hot: depth is -1": lambda: nn.one_hot(cp.asarray([1]), -1), "uniform: shape[0] is -1": lambda: random.uniform(-1),
                "integers: shape[0] is -1": lambda: random.integers(-1), "permutation: n is -1": lambda: random.permutation(-1),
                "choice: shape[0] is -1": lambda: random.choice(5, -1), "tensordot: axes is -1": lambda: cp.tensordot(x, x, axes=-1),
                "broadcast_shapes: the shapes (-2,), (1,)": lambda: cp.broadcast_shapes((-2,), (1,)),
                "broadcast_arrays: the shapes (3,), (2,)": lambda: cp.broadcast_arrays(x, cp.ones(2))}.items():
            with self.assertRaises(ValueError, msg=argument) as caught:
                call()
            self.assertEqual(str(caught.exception)[:len(argument)], argument)
        self.assertEqual(cp.arange(-1).shape, (0,))

    def test_other_types(self):
        x = cp.ones(3)
        for name, call in {
                "zeros: 2.5 ": lambda: cp.zeros(2.5), "full: 'a' ": lambda: cp.full("a", 1), "empty: (2, None) ": lambda: cp.empty((2, None)),
                "reshape: 2.5 ": lambda: cp.reshape(x, 2.5), "tile: repetitions is (2.5,)": lambda: cp.tile(x, 2.5), "roll: shift is 1.5;": lambda: cp.roll(x, 1.5),
                "one_hot: depth is 2.5;": lambda: nn.one_hot(cp.asarray([1]), 2.5), "var: correction is 'a';": lambda: cp.var(x, correction="a"),
                "normal: 2.5 ": lambda: random.normal(2.5), "choice: set ": lambda: random.choice({1, 2}), "choice: 1.5 ": lambda: random.choice(3, 1.5),
                "array_split: 2.5 ": lambda: cp.array_split(x, 2.5), "pad: pad_width is 2.5;": lambda: cp.pad(x, 2.5),
                "from_dlpack: int ": lambda: cp.from_dlpack(3)}.items():
            with self.assertRaises(TypeError, msg=name) as caught:
                call()
            self.assertEqual(str(caught.exception)[:len(name)], name)
        with self.assertRaisesRegex(OverflowError, "^zeros: .* does not fit in 64 bits"):
            cp.zeros(2 ** 70)
        with self.assertRaisesRegex(ValueError, "^zeros: the number of elements|^zeros: the size|^zeros: rank 40"):
            cp.zeros((1,) * 40)
        with self.assertRaisesRegex(ValueError, '^device "nope0"'):
            cp.zeros(3, device="nope0")
        self.assert_same(cp.pad(x, np.int64(1)), np.pad(np.ones(3, np.float32), 1))
        self.assert_same(cp.pad(x, (np.int64(1), np.int64(2))), np.pad(np.ones(3, np.float32), (1, 2)))
        self.assertTrue(cp.isdtype("float32", "real floating") and cp.can_cast("int8", cp.int16))
        self.assertFalse(cp.isdtype("float32", "integral") or cp.can_cast("int16", "int8") or cp.can_cast(np.dtype("float64"), cp.float32))
