# SPDX-License-Identifier: Apache-2.0
"""Creation, manipulation, reductions, searching, sorting, sets and products, against NumPy."""
import compute as cp
import numpy as np

from compute import _ops
from case import ALL, COMPLEX, FLOATS, INTEGERS, NUMERIC, SIGNED, TOLERANCE, Case


class Creation(Case):
    def test_from_numbers(self):
        self.assert_same(cp.asarray([[1, 2], [3, 4]]), np.int64([[1, 2], [3, 4]]))
        self.assert_same(cp.asarray([1, 2.5]), np.float32([1, 2.5]))
        self.assert_same(cp.asarray([True, False]), np.array([True, False]))
        self.assert_same(cp.asarray(3j), np.complex64(3j))
        self.assert_same(cp.asarray([]), np.float32([]))
        self.assert_same(cp.asarray([2 ** 63]), np.uint64([2 ** 63]))
        self.assert_same(cp.asarray([cp.zeros(2), cp.ones(2)]), np.float32([[0, 0], [1, 1]]))
        for dtype in ALL:
            self.assert_same(cp.asarray([0, 1], dtype=getattr(cp, dtype)), np.array([0, 1], dtype))
        for wrong in ([[1], [1, 2]], [1, [2]]):
            with self.assertRaises(ValueError):
                cp.asarray(wrong)
        with self.assertRaises(TypeError):
            cp.asarray(["a"])

    def test_numbers_of_each_kind(self):
        for values in ([0, 1], [True, False], [0.0, 2.75, -0.0], [1, 2.5, True], (3, 4), [[1, 2], (3, 4)], [[[0.5]], [[1]]], [[], []], [1j, 2, 0.5], 7, 2.5, True):
            for dtype in ALL + ("float16",):
                if np.array(values).dtype.kind == "c" and np.dtype(dtype).kind not in "cb":
                    continue
                expected = np.array(values).astype(dtype)
                self.assert_same(cp.asarray(values, dtype=getattr(cp, dtype)), expected, note=f"{values} as {dtype}")
        self.assert_same(cp.asarray([2 ** 63, 1]), np.uint64([2 ** 63, 1]))
        self.assert_same(cp.asarray([300.7, -0.9, 1e300], dtype=cp.float32), np.float32([300.7, -0.9, np.inf]))
        self.assert_same(cp.asarray([2 ** 63 - 1, -2 ** 63]), np.int64([2 ** 63 - 1, -2 ** 63]))
        self.assert_same(cp.asarray([127.9, -128.9], dtype=cp.int8), np.int8([127, -128]))
        for values, dtype in (([300], cp.int8), ([-1], cp.uint8), ([2 ** 64], None), ([-1, 2 ** 63], None), ([1, 10 ** 400], cp.float32), ([2 ** 31], cp.int32), ([128.0], cp.int8)):
            with self.assertRaises(OverflowError, msg=str(values)):
                cp.asarray(values, dtype=dtype)
        for values in ([cp.nan], [1j], [cp.inf]):
            with self.assertRaises((ValueError, OverflowError, TypeError)):
                cp.asarray(values, dtype=cp.int32)
        for values, message in (([[1], [1, 2]], "lengths"), ([1, [2]], "depths"), ([[1, 2], 3], "lengths"), ([[[1]], [1]], "lengths"), ([[1], [[2]]], "depths")):
            with self.assertRaisesRegex(ValueError, f"^asarray: the sequences have different {message}$"):
                cp.asarray(values)
        deep = 1
        for _ in range(40):
            deep = [deep]
        with self.assertRaises((ValueError, NotImplementedError)):
            cp.asarray(deep)
        self.assert_same(cp.asarray([np.float64(1.5), np.float64(2.0)]), np.float64([1.5, 2]))
        self.assert_same(cp.asarray([np.arange(3), np.arange(3)]), np.stack([np.arange(3)] * 2))
        self.assert_same(cp.asarray([[np.int8(1), np.int8(2)]]), np.int8([[1, 2]]))
        self.assert_same(cp.asarray([[cp.ones(2), cp.zeros(2)]]), np.float32([[[1, 1], [0, 0]]]))
        with self.assertRaises((ValueError, TypeError)):
            cp.asarray([np.arange(3), np.arange(2)])

    def test_sequences_of_arrays(self):
        rng = np.random.default_rng(4)
        for dtype in ("bool", "int8", "uint16", "int64", "float16", "float32", "complex64"):
            for shape in ((), (0,), (3,), (2, 3), (70, 90)):
                parts = [np.asarray(rng.integers(0, 100, shape)).astype(dtype) for _ in range(4)]
                self.assert_same(cp.asarray(parts), np.asarray(parts))
                self.assert_same(cp.asarray([parts[:2], tuple(parts[2:])]), np.asarray([parts[:2], parts[2:]]))
        wide = rng.normal(size=(3, 40, 50)).astype(np.float32)
        self.assert_same(cp.asarray([wide[0].T, wide[1].T]), np.stack([wide[0].T, wide[1].T]))
        self.assert_same(cp.asarray([wide[:, ::-2], wide[:, ::2]]), np.stack([wide[:, ::-2], wide[:, ::2]]))
        self.assert_same(cp.asarray(list(wide), dtype=cp.int32), wide.astype(np.int32))
        self.assert_same(cp.asarray([wide[0], wide[1].astype(np.float64)], dtype=cp.float64), np.stack([wide[0], wide[1]]).astype(np.float64))
        self.assert_same(cp.asarray([np.arange(3), np.arange(3, dtype=np.int8)]), np.stack([np.arange(3)] * 2))
        self.assert_same(cp.asarray([np.float32(1), np.float32(2)]), np.float32([1, 2]))
        self.assert_same(cp.asarray([memoryview(b"ab"), memoryview(b"cd")]), np.uint8([[97, 98], [99, 100]]))
        source = np.ones(3, np.float32)
        copied = cp.asarray([source, source], device="cpu")
        source[:] = 5
        self.assertEqual(copied.tolist(), [[1, 1, 1]] * 2)
        for wrong in ([np.arange(3), np.ones((1, 3), int)], [[np.ones(2)], [np.ones(3)]], [np.ones(2, ">f4").astype(">f4").view("V4")] * 2):
            with self.assertRaises((ValueError, TypeError)):
                cp.asarray(wrong)
        large = [[float(i * 1000 + k) for k in range(1000)] for i in range(50)]  # which is written to the array's own memory
        self.assert_same(cp.asarray(large), np.asarray(large, np.float32))
        with self.assertRaises(OverflowError):
            cp.asarray([[2 ** 70] * 100] * 100, dtype=cp.int32)

    def test_filled(self):
        for dtype in ALL:
            kind = getattr(cp, dtype)
            self.assert_same(cp.ones((2, 3), dtype=kind), np.ones((2, 3), dtype))
            self.assert_same(cp.zeros(3, dtype=kind), np.zeros(3, dtype))
            self.assert_same(cp.full_like(cp.zeros(2, dtype=kind), 1), np.ones(2, dtype))
        self.assert_same(cp.full((2,), 7), np.int64([7, 7]))
        for value in (cp.asarray(7, dtype=cp.int8), cp.asarray([[7]], dtype=cp.int8)):
            self.assert_same(cp.full((2,), value), np.int8([7, 7]))
            self.assert_same(cp.full((2,), value, dtype=cp.float32), np.float32([7, 7]))
        self.assert_same(cp.eye(2, 3, k=1), np.eye(2, 3, k=1, dtype=np.float32))
        self.assert_same(cp.eye(2, k=2 ** 63), np.zeros((2, 2), np.float32))

    def test_ranges(self):
        self.assert_same(cp.arange(5), np.arange(5))
        self.assert_same(cp.arange(5, 1, -2), np.arange(5, 1, -2))
        self.assert_same(cp.arange(0.0, 1.0, 0.25), np.arange(0, 1, 0.25, dtype=np.float32))
        self.assert_same(cp.linspace(0, 1, 5), np.linspace(0, 1, 5, dtype=np.float32))
        self.assert_same(cp.linspace(0, 1, 4, endpoint=False), np.linspace(0, 1, 4, endpoint=False, dtype=np.float32))
        # The same bits whether a kernel or an expression computes them, which is what elements with gaps need.
        for dtype in (cp.float32, cp.float64):
            for start, stop in ((0.1, 0.7), (-3.0, 1e300 if dtype is cp.float64 else 1e38), (-1.7e308, 1.7e308), (2.0, -5.0)):
                for size in (1, 2, 3, 9, 1000, 20011):
                    for endpoint in (True, False):
                        spread = cp.zeros((2 * size,), dtype=dtype)[::2]
                        _ops.linspace(start=start, stop=stop, size=size, endpoint=endpoint, dtype=dtype, out=spread)
                        self.assert_same(cp.linspace(start, stop, size, endpoint, dtype=dtype), np.asarray(spread), note=(start, size))
        for ours, theirs in zip(cp.meshgrid(cp.arange(2), cp.arange(3)), np.meshgrid(np.arange(2), np.arange(3))):
            self.assert_same(ours, theirs)

    def test_astype(self):
        x = self.numbers("float32", (4,))
        for dtype in SIGNED + FLOATS + COMPLEX + ("bool",):
            self.assert_same(cp.astype(self.device_array(x), getattr(cp, dtype)), x.astype(dtype))
        with self.assertRaises(TypeError):
            cp.astype(cp.asarray([1j]), cp.float32)


class Manipulation(Case):
    def test_axes(self):
        x = self.numbers("int32", (2, 3, 4))
        a = self.device_array(x)
        self.assert_same(cp.permute_dims(a, (2, 0, 1)), x.transpose(2, 0, 1))
        self.assert_same(cp.moveaxis(a, 0, -1), np.moveaxis(x, 0, -1))
        self.assert_same(cp.moveaxis(a, (0, 1), (2, 0)), np.moveaxis(x, (0, 1), (2, 0)))
        self.assert_same(a.mT, x.swapaxes(1, 2))
        self.assert_same(a[0].T, x[0].T)
        self.assert_same(cp.expand_dims(a, (0, -1)), np.expand_dims(x, (0, -1)))
        self.assert_same(cp.squeeze(a[:, :1], 1), x[:, 0])
        self.assert_same(cp.flip(a, axis=(0, 2)), np.flip(x, (0, 2)))
        self.assert_same(cp.flip(a), np.flip(x))
        self.assert_same(cp.reshape(a, (4, -1)), x.reshape(4, -1))
        self.assert_same(cp.reshape(a.mT, (-1,)), x.swapaxes(1, 2).reshape(-1))
        with self.assertRaises(ValueError):
            cp.reshape(a.mT, (-1,), copy=False)
        with self.assertRaises(ValueError):
            cp.squeeze(a, 0)
        with self.assertRaises(ValueError):
            a.T

    def test_joining_and_repeating(self):
        x, y = self.numbers("int32", (2, 3)), self.numbers("int64", (2, 3))
        a, b = self.device_array(x), self.device_array(y)
        self.assert_same(cp.concat((a, b), axis=1), np.concatenate((x, y), 1))
        self.assert_same(cp.concat((a, b), axis=None), np.concatenate((x, y), None))
        self.assert_same(cp.stack((a, a), axis=-1), np.stack((x, x), -1))
        self.assert_same(cp.unstack(a, axis=1)[2], x[:, 2])
        self.assert_same(cp.repeat(a, 2, axis=0), np.repeat(x, 2, 0))
        self.assert_same(cp.repeat(a, cp.asarray([0, 2, 1]), axis=1), np.repeat(x, [0, 2, 1], 1))
        self.assert_same(cp.repeat(a, 2), np.repeat(x, 2))
        self.assert_same(cp.tile(a, (2, 1, 2)), np.tile(x, (2, 1, 2)))
        self.assert_same(cp.roll(a, 2), np.roll(x, 2))
        self.assert_same(cp.roll(a, (1, -1), axis=(0, 1)), np.roll(x, (1, -1), (0, 1)))
        self.assert_same(cp.tril(a, k=1), np.tril(x, 1))
        self.assert_same(cp.triu(a), np.triu(x))

    def test_broadcasting(self):
        self.assertEqual(cp.broadcast_shapes((3, 1), (4,), ()), (3, 4))
        with self.assertRaises(ValueError):
            cp.broadcast_shapes((3,), (4,))
        a, b = cp.broadcast_arrays(cp.zeros((3, 1)), cp.zeros((4,)))
        self.assertEqual((a.shape, b.shape), ((3, 4), (3, 4)))


class Reductions(Case):
    def test_sums_and_products(self):
        for dtype in NUMERIC:
            x = self.numbers(dtype, (3, 4), -2, 3)
            a = self.device_array(x)
            for axis in (None, 0, -1, (0, 1)):
                # Small integers keep their dtype in NumPy's sums on some platforms; the standard widens them.
                wide = {"i": "int64", "u": "uint64"}.get(np.dtype(dtype).kind, dtype)
                self.assert_same(cp.sum(a, axis=axis), x.sum(axis, dtype=wide), TOLERANCE.get(dtype, 0), dtype)
                self.assert_same(cp.prod(a, axis=axis, keepdims=True), x.prod(axis, dtype=wide, keepdims=True),
                                 TOLERANCE.get(dtype, 0), dtype)
        self.assert_same(cp.sum(self.device_array(np.float32([[1, 2]])), axis=()), np.float32([[1, 2]]))
        for ord in (2, 1, 3, np.inf):  # without axes to reduce, each element has a norm of its own
            self.assert_same(cp.linalg.vector_norm(self.device_array(np.float32([[1, -2]])), axis=(), ord=ord), np.float32([[1, 2]]))
        self.assert_same(cp.expression("x * x").reduce("sum", self.device_array(np.float32([1, -2])), axis=()), np.float32([1, 4]))

    def test_statistics(self):
        for dtype in FLOATS:
            x = self.numbers(dtype, (3, 4))
            a = self.device_array(x)
            for axis in (None, 1):
                self.assert_same(cp.mean(a, axis=axis), x.mean(axis), TOLERANCE[dtype])
                self.assert_same(cp.var(a, axis=axis, correction=1), x.var(axis, ddof=1), TOLERANCE[dtype])
                self.assert_same(cp.std(a, axis=axis), x.std(axis), TOLERANCE[dtype])

    def test_order(self):
        for dtype in INTEGERS + FLOATS:
            x = self.numbers(dtype, (4, 5))
            a = self.device_array(x)
            for name in ("max", "min", "argmax", "argmin", "count_nonzero", "any", "all"):
                for axis in (None, 0):
                    self.assert_same(getattr(cp, name)(a, axis=axis), getattr(np, name)(x, axis=axis),
                                     note=f"{name} {dtype}")
            self.assert_same(cp.sort(a, axis=0), np.sort(x, axis=0))
            self.assert_same(cp.sort(a, descending=True), np.sort(x)[:, ::-1])
            self.assert_same(cp.argsort(a), np.argsort(x, kind="stable"))
            self.assert_same(cp.cumulative_sum(a, axis=1, dtype=a.dtype), np.cumsum(x, 1, dtype=dtype))
            self.assert_same(cp.diff(a, axis=0), np.diff(x, axis=0))
        with self.assertRaises(ValueError):
            cp.max(cp.zeros((0,)))
        empty = np.zeros((2, 0, 3), np.float32)
        for options in ({}, {"axis": 1}, {"axis": (0, 1), "keepdims": True}, {"axis": 0}):
            self.assert_same(cp.max(self.device_array(empty), initial=-7, **options), np.max(empty, initial=-7, **options))
            self.assert_same(cp.min(self.device_array(empty), where=empty > 0, initial=7, **options), np.min(empty, where=empty > 0, initial=7, **options))

    def test_searching(self):
        x = self.numbers("int32", (4, 5))
        a = self.device_array(x)
        for ours, theirs in zip(cp.nonzero(a), np.nonzero(x)):
            self.assert_same(ours, theirs)
        ordered = np.sort(x.reshape(-1))
        for side in ("left", "right"):
            self.assert_same(cp.searchsorted(self.device_array(ordered), a, side=side), np.searchsorted(ordered, x, side))
        self.assert_same(cp.isin(a, cp.asarray([0, 1], dtype=cp.int32)), np.isin(x, [0, 1]))

    def test_sets(self):
        for dtype in ALL:
            x = self.numbers(dtype, (4, 5))
            values, indices, inverse, counts = cp.unique_all(self.device_array(x))
            expected = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
            self.assert_same(values, expected[0], note=dtype)
            self.assert_same(indices, expected[1], note=dtype)
            self.assert_same(inverse, expected[2].reshape(x.shape), note=dtype)
            self.assert_same(counts, expected[3], note=dtype)

    def test_products(self):
        for dtype in NUMERIC:
            x, y = self.numbers(dtype, (2, 3, 4), -2, 3), self.numbers(dtype, (4, 5), -2, 3)
            a, b = self.device_array(x), self.device_array(y)
            bound = TOLERANCE.get(dtype, 0)
            self.assert_same(cp.matmul(a, b), x @ y, bound, dtype)
            self.assert_same(a @ b, x @ y, bound, dtype)
            self.assert_same(cp.vecdot(a, a), (x.conj() * x).sum(-1, dtype=dtype), bound, dtype)
            self.assert_same(cp.tensordot(a, b, axes=1), np.tensordot(x, y, 1), bound, dtype)
        self.assert_same(cp.matrix_transpose(a), x.swapaxes(-1, -2))

    def test_precision(self):
        """Of matmul and einsum. Every value gives the product of small integers exactly."""
        x = np.float32([[1, 2], [3, 4]])
        a = self.device_array(x)
        for precision in ("default", "highest", "tf32", "bf16"):
            self.assert_same(cp.matmul(a, a, precision=precision), x @ x)
            self.assert_same(cp.einsum("ij,jk", a, a, precision=precision), x @ x)
        with self.assertRaisesRegex(ValueError, 'precision is "half", not one of default, highest, tf32, bf16'):
            cp.matmul(a, a, precision="half")

    def test_einsum(self):
        for dtype in NUMERIC:
            shapes = {"i": 2, "j": 3, "k": 4}
            for equation in ("ij,jk->ik", "ij,jk", "ij->ji", "ij->", "jj->j", "jj", "ij,ij->i", "i,j,k->kji",
                             "ij,kj,ik->j"):
                terms = equation.split("->")[0].split(",")
                xs = [self.numbers(dtype, [shapes[label] for label in term], -2, 3) for term in terms]
                expected = np.einsum(equation, *xs, dtype=dtype)
                self.assert_same(cp.einsum(equation, *map(self.device_array, xs)), expected, TOLERANCE.get(dtype, 0),
                                 equation)
        x, y = self.numbers("float32", (4, 1, 3)), self.numbers("float32", (4, 3, 2))
        for equation in ("...ij,...jk->...ik", "...ij, ...jk"):
            self.assert_same(cp.einsum(equation, self.device_array(x), self.device_array(y)),
                             np.einsum(equation, x, y), 1e-6)
        a = self.device_array(x)
        with self.assertRaisesRegex(ValueError, r"an axis of '\.\.\.' has extents 4 and 3"):
            cp.einsum("...ij,...jk", a, a.mT[:3])
        for wrong, error in ((lambda: cp.einsum("ij->ij", a), ValueError), (lambda: cp.einsum("ijk->l", a), ValueError),
                             (lambda: cp.einsum(a, "ijk->k"), TypeError)):
            with self.assertRaises(error):
                wrong()


class Padding(Case):
    def test_modes(self):
        for dtype in ALL:
            x = self.numbers(dtype, (2, 3))
            a = self.device_array(x)
            for width in (0, 1, (1, 0), ((2, 0), (0, 1)), ((1, 2),), [[1, 1], [0, 2]]):
                self.assert_same(cp.pad(a, width, constant_values=1), np.pad(x, width, constant_values=1), note=dtype)
        x = self.numbers("int32", (3, 4))
        a = self.device_array(x)
        for mode in ("edge", "reflect", "symmetric", "wrap"):
            for width in (0, 2, (2, 1), ((0, 3), (2, 0))):
                self.assert_same(cp.pad(a, width, mode), np.pad(x, width, mode), note=mode)
        x = self.numbers("float32", (2, 3, 4, 5))
        a, turned = self.device_array(x), cp.permute_dims(self.device_array(x.transpose(3, 0, 2, 1)), (1, 3, 2, 0))
        for mode in ("edge", "reflect", "symmetric", "wrap"):
            for width in (1, ((0, 1), (2, 0), (0, 0), (3, 4)), ((1, 1), (2, 1), (0, 3), (0, 0))):
                for given in (a, turned):
                    self.assert_same(cp.pad(given, width, mode), np.pad(x, width, mode), note=mode)
        x = np.arange(8 * 4 * 260 * 256, dtype=np.float32).reshape(8, 4, 260, 256)  # by one gather
        for mode in ("edge", "reflect", "symmetric", "wrap"):
            width = ((0, 0), (0, 0), (2, 1), (0, 3))
            self.assert_same(cp.pad(self.device_array(x), width, mode), np.pad(x, width, mode), note=mode)
        line = np.arange(3)
        for mode in ("reflect", "symmetric", "edge"):  # longer than the axis
            self.assert_same(cp.pad(self.device_array(line), (7, 9), mode), np.pad(line, (7, 9), mode), note=mode)
        self.assert_same(cp.pad(self.device_array(line), (7, 9), "wrap"), np.arange(-7, 12) % 3)
        self.assert_same(cp.pad(self.device_array(line[:1]), 2, "reflect"), np.zeros(5, np.int64))
        for wrong in (lambda: cp.pad(a, -1), lambda: cp.pad(a, ((1, 1), (1, 1), (1, 1))), lambda: cp.pad(a, 1, "mean"),
                      lambda: cp.pad(cp.zeros((0, 2)), 1, "edge")):
            with self.assertRaises(ValueError):
                wrong()


class Scattering(Case):
    def test_along_an_axis(self):
        for dtype in ALL:
            x, indices = self.numbers(dtype, (3, 4)), np.array([[0, -1, 2], [3, 1, 0], [1, 2, 3]])
            y = self.numbers(dtype, indices.shape)
            a, at, b = self.device_array(x), self.device_array(indices), self.device_array(y)
            expected = x.copy()
            np.put_along_axis(expected, indices, y, 1)
            self.assert_same(cp.scatter(a, at, b), expected, note=dtype)
            self.assert_same(a, x)
            few = np.array([[2, 0, 1, 0]])
            expected = x.copy()
            np.put_along_axis(expected, few, 1, 0)
            self.assert_same(cp.scatter(a, self.device_array(few), x.dtype.type(1).item(), axis=0), expected,
                             note=dtype)

    def test_in_the_order_of_pytorch(self):
        x, at, values = self.numbers("float32", (3, 4)), np.array([[0, 3], [2, 1]]), self.numbers("float32", (3, 4))
        rows = np.arange(2)[:, None]
        a, i, b = self.device_array(x), self.device_array(at), self.device_array(values)
        for reduce, function in ((None, None), ("add", np.add), ("multiply", np.multiply)):
            for given, written in ((b, values[:2, :2]), (2.5, 2.5), (b[:2, :2], values[:2, :2])):
                expected = x.copy()
                expected[rows, at] = written if function is None else function(x[rows, at], written)
                self.assert_same(cp.scatter(a, 1, i, given, reduce=reduce), expected, 1e-6, note=reduce)
                self.assert_same(cp.copy(a).scatter_(1, i, given, reduce=reduce), expected, 1e-6, note=reduce)
        self.assert_same(a, x)
        expected = x.copy()
        expected[rows, at] += x[1:, :2]
        self.assert_same(cp.scatter_add(a, 1, i, a[1:]), expected, 1e-6)
        self.assert_same(a.scatter_add_(1, i, a[1:]), expected, 1e-6)  # which reads what it writes
        places = self.device_array(np.array([[0, 1, 2]]))
        self.assert_same(places.scatter_(1, places[:, :2], 7), np.array([[7, 7, 2]]))
        with self.assertRaises(ValueError):
            cp.scatter(a, 1, i, 1.0, reduce="mean")
        flags = cp.asarray([True, False])
        for wrong in (lambda: cp.scatter_reduce(flags, 0, cp.asarray([0]), flags, "amin"), lambda: cp.max(flags, where=flags, initial=1)):
            with self.assertRaisesRegex(TypeError, "bool"):
                wrong()
        with self.assertRaisesRegex(IndexError, "^index_fill: axis 0 "):
            cp.index_fill(cp.asarray(1.0), 0, cp.asarray([0]), 2.0)

    def test_combined(self):
        for dtype in INTEGERS + FLOATS:
            x, rows, columns = self.numbers(dtype, (3, 4)), [0, 2, 0, -1], [1, 1, 1, 3]
            y = self.numbers(dtype, (4,), -1, 3)
            a, at, b = self.device_array(x), self.device_array(np.stack([rows, columns], -1)), self.device_array(y)
            for name, function in (("add", np.add), ("mul", np.multiply), ("min", np.minimum), ("max", np.maximum)):
                expected = x.copy()
                function.at(expected, (rows, columns), y)
                self.assert_same(cp.scatter_nd(a, at, b, reduction=name), expected, 1e-6, f"{name} {dtype}")
                expected = x.copy()
                function.at(expected, rows, y)
                whole = cp.broadcast_to(b, (4, 4))
                self.assert_same(cp.scatter_nd(a, at[:, :1], whole, reduction=name), expected, 1e-6, f"{name} {dtype}")
                expected = x[0].copy()
                function.at(expected, columns, y)
                self.assert_same(cp.scatter(a[0], at[:, 1], b, reduction=name), expected, 1e-6, f"{name} {dtype}")
            self.assert_same(cp.gather_nd(a, at), x[rows, columns])
            self.assert_same(cp.gather_nd(a, at[:, :1]), x[rows])
            self.assert_same(cp.scatter_nd(a, at[1:2, :1], 1), np.where(np.arange(3)[:, None] == 2, 1, x).astype(dtype))

    def test_faults(self):
        x, at = cp.zeros((2, 3)), cp.asarray([[0], [1]])
        for wrong, error in ((lambda: cp.scatter(x, at, cp.zeros((3, 3))), ValueError),
                             (lambda: cp.scatter(x, at, 1.0, reduction="sum"), ValueError),
                             (lambda: cp.scatter(x, at, 1j), TypeError), (lambda: cp.scatter(x, x, x), TypeError),
                             (lambda: cp.scatter_nd(x, cp.zeros((1, 3), dtype=cp.int64), 1.0), ValueError),
                             (lambda: cp.gather_nd(x, cp.asarray(0)), ValueError),
                             (lambda: cp.scatter(x, cp.asarray([[7]]), 1.0).tolist(), IndexError)):
            with self.assertRaises(error):
                wrong()


class Selecting(Case):
    def test_top_k(self):
        for dtype in INTEGERS + FLOATS:
            x = self.numbers(dtype, (4, 5))
            a = self.device_array(x)
            for axis in (-1, 0):
                order = np.argsort(x, axis, kind="stable")
                self.assert_same(cp.top_k(a, 3, axis=axis, largest=False).indices, order.take(range(3), axis),
                                 note=dtype)
                values, indices = cp.top_k(a, 2, axis=axis)
                self.assert_same(values, np.flip(np.sort(x, axis), axis).take(range(2), axis), note=dtype)
                self.assert_same(cp.take_along_axis(a, indices, axis=axis), np.asarray(values))
        self.assertEqual(cp.top_k(cp.asarray([1.0, 3, 3, 2]), 3).indices.tolist(), [1, 2, 3])
        for dtype in ("int64", "float64", "float32", "int8"):
            for n, k in ((49, 5), (100, 5), (100, 90), (256, 1), (1000, 100), (4000, 300)):
                for x in (self.numbers(dtype, (5, n)), np.zeros((2, n), dtype), self.numbers(dtype, (3, n), -2, 2)):
                    order = np.argsort(x, 1, kind="stable")[:, :k]
                    values, indices = cp.top_k(self.device_array(x), k, largest=False)
                    self.assert_same(indices, order, note=(dtype, n, k))
                    self.assert_same(values, np.take_along_axis(x, order, 1), note=(dtype, n, k))
        with self.assertRaises(ValueError):
            cp.top_k(a, 6)

    def test_cumulative_extremes(self):
        for dtype in INTEGERS + FLOATS:
            x = self.numbers(dtype, (4, 5))
            a = self.device_array(x)
            for ours, theirs in ((cp.cumulative_max, np.maximum), (cp.cumulative_min, np.minimum)):
                for axis in (0, 1):
                    self.assert_same(ours(a, axis=axis), theirs.accumulate(x, axis), note=dtype)
        self.assert_same(cp.cumulative_max(cp.asarray([1, 3, 2]), include_initial=True)[1:], np.array([1, 3, 3]))
        with self.assertRaises(ValueError):
            cp.cumulative_max(a)

    def test_sums_of_special_numbers(self):
        for dtype in (np.float64, np.complex128):
            for n in (1, 7, 8, 9, 21, 600, 70000):
                x = np.full(n, -0.0).astype(dtype)
                if dtype is np.complex128:
                    x.imag = -0.0
                found = np.asarray(cp.cumulative_sum(cp.asarray(x)))
                for part in (found.real, found.imag) if dtype is np.complex128 else (found,):
                    self.assertTrue(((part == 0) & np.signbit(part)).all(), (dtype, n))
                x = np.ones(n, dtype)
                x[n // 2:] = np.inf if dtype is np.float64 else complex(np.inf, 1)
                self.assert_same(cp.cumulative_sum(cp.asarray(x)).real, np.cumsum(x.real), note=(dtype, n))
        self.assertTrue(np.isfinite(np.asarray(cp.cumulative_sum(cp.asarray(np.float64([1e308, -1e308] * 1000))))).all())

    def test_scans_of_many_rows(self):
        for width in (1, 2, 3, 4, 5, 7, 8, 9, 16, 20):
            for dtype in ("float32", "float64", "int32", "int64"):
                x = self.numbers(dtype, (5001 if width < 4 else 301, width), -50, 50)
                if dtype.startswith("float"):
                    x.ravel()[-width * 40:-1:37] = np.nan
                    x[200] = np.inf
                for one, axis in ((x, 0), (np.ascontiguousarray(x.T), 1)):
                    a, note = self.device_array(one), (dtype, width, axis)
                    for ours, places, theirs in ((cp.cumulative_max, cp.cummax, np.maximum), (cp.cumulative_min, cp.cummin, np.minimum)):
                        expected = theirs.accumulate(one, axis)
                        self.assert_same(ours(a, axis=axis), expected, note=note)
                        values, indices = places(a, axis)
                        self.assert_same(values, expected, note=note)
                        is_last = (one == expected) | (one != one)
                        at = np.arange(one.shape[axis]).reshape((-1, 1) if axis == 0 else (1, -1))
                        self.assert_same(indices, np.maximum.accumulate(np.where(is_last, at, 0), axis), note=note)
                    finite = self.device_array(np.nan_to_num(one, posinf=3))
                    sums = np.cumsum(np.asarray(finite).astype(np.float64), axis)
                    np.testing.assert_allclose(np.asarray(cp.cumulative_sum(finite, axis=axis)), sums, rtol=2e-7, atol=1e-9)

    def test_segments(self):
        for dtype in NUMERIC:
            x = self.numbers(dtype, (6, 2), -2, 3)
            a, offsets = self.device_array(x), [0, 1, 4, 6]
            kinds = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}
            for kind in ("sum", "prod") if dtype in COMPLEX else kinds:
                expected = kinds[kind].reduceat(x, offsets[:-1], 0, dtype=dtype)
                self.assert_same(cp.segment_reduce(a, cp.asarray(offsets), kind=kind), expected, 1e-6,
                                 f"{kind} {dtype}")
        self.assert_same(cp.segment_reduce(cp.asarray([1.0, 2.0]), cp.asarray([0, 0, 2])), np.float32([0, 3]))
        with self.assertRaises(ValueError):
            cp.segment_reduce(a, cp.asarray(offsets), kind="mean")


class Statistics(Case):
    def test_quantiles(self):
        for dtype in FLOATS:
            x = self.numbers(dtype, (5, 4))
            a = self.device_array(x)
            for axis in (None, 0, -1):
                for keepdims in (False, True):
                    for q in (0.5, 0, 1, 0.3, [0.1, 0.9]):
                        expected = np.quantile(x, q, axis=axis, keepdims=keepdims).astype(dtype)
                        self.assert_same(cp.quantile(a, q, axis=axis, keepdims=keepdims), expected, 1e-6)
                    self.assert_same(cp.median(a, axis=axis, keepdims=keepdims),
                                     np.median(x, axis, keepdims=keepdims), 1e-6)
        self.assert_same(cp.median(cp.asarray([[1.0, np.nan], [2.0, 3.0]]), axis=1), np.float32([np.nan, 2.5]))
        self.assert_same(cp.median(cp.asarray([1, 2])), np.float32(1.5))
        self.assert_same(cp.median(cp.zeros((2, 0, 3, 4)), axis=(2, 3)), np.zeros((2, 0), np.float32))
        x = self.numbers("float32", (3, 4, 5))
        for q in (0.25, np.array([0.1, 0.5]), [[0.1, 0.2], [0.3, 1.0]], []):
            for axis in ((0, 2), (1,), (), None):
                for keepdims in (False, True):
                    actual = cp.quantile(self.device_array(x), q, axis=axis, keepdims=keepdims)
                    self.assert_same(actual, np.quantile(x, q, axis=axis, keepdims=keepdims).astype(np.float32), 1e-6)
        self.assert_same(cp.percentile(self.device_array(x), cp.asarray([25.0, 75.0])), np.percentile(x, [25, 75]).astype(np.float32), 1e-6)
        for wrong, error in ((lambda: cp.median(cp.asarray([1j])), TypeError),
                             (lambda: cp.median(cp.zeros(0)), ValueError),
                             (lambda: cp.quantile(cp.ones(2), 1.5), ValueError)):
            with self.assertRaises(error):
                wrong()

    def test_quantiles_beside_infinities(self):
        inf, nan = np.inf, np.nan
        for values, q, expected in (([1, 2, inf], 0.5, 2), ([-inf, 1, 2], 0.5, 1), ([-inf, 1, 2, inf], 0.5, 1.5),
                                    ([1, 2, inf], [0, 0.5, 1], [1, 2, inf]), ([-inf, 1, 2], [0, 0.5, 1], [-inf, 1, 2]),
                                    ([inf, inf], 0.5, inf), ([1, inf], 0.5, inf), ([-inf, 1], 0.25, -inf),
                                    ([-inf, inf], 0.5, nan), ([1, nan, inf], 0.5, nan), ([-3e38, 3e38], 0.5, 0),
                                    ([-3e38, 3e38], 0.75, 1.5e38)):
            found = np.asarray(cp.quantile(cp.asarray(values, dtype=cp.float32), q))
            np.testing.assert_allclose(found, np.float32(expected), rtol=1e-6, err_msg=str((values, q)))
        self.assertEqual(float(cp.median(cp.asarray([1.0, 2.0, inf]))), 2)
        self.assertEqual(float(cp.percentile(cp.asarray([1.0, 2.0, inf]), 50)), 2)
        slopes = cp.grad.gradients(cp.median)(cp.asarray([1.0, 2.0, inf]))
        self.assertEqual(slopes.tolist(), [0, 1, 0])

    def test_messages_name_what_was_called(self):
        x, names = cp.ones((2, 3)), ("median", "percentile", "nanstd", "hsplit", "vsplit", "split", "array_split")
        for name, call in zip(names, (lambda f: f(cp.zeros(0)), lambda f: f(x, 101), lambda f: f(cp.ones(2) * 1j),
                                      lambda f: f(x, 2), lambda f: f(x, 3), lambda f: f(x, 2, axis=1),
                                      lambda f: f(x, 0)), strict=True):
            with self.assertRaisesRegex((TypeError, ValueError), f"^{name}: "):
                call(getattr(cp, name))
        for name in ("median", "average", "nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd", "nanargmax"):
            for array in (x, cp.astype(x, cp.int32)) if name != "median" else (x,):
                with self.assertRaisesRegex(IndexError, f"^{name}: axis 2 is out of range for 2 axes"):
                    getattr(cp, name)(array, axis=2)
        for name in ("nanmax", "nanargmin"):
            with self.assertRaisesRegex(ValueError, f"^{name}: there are no elements"):
                getattr(cp, name)(cp.zeros((3, 0)), axis=1)
        with self.assertRaisesRegex(TypeError, "^histogram: bins is 'auto'"):
            cp.histogram(x, bins="auto")

    def test_closeness(self):
        x = np.float32([1, np.inf, np.nan, -np.inf, 0, 3, np.inf])
        y = np.float32([1.000001, np.inf, np.nan, np.inf, 1e-9, 3.1, 1])
        for equal_nan in (False, True):
            for first, second in ((x, y), (y, x)):
                found = cp.isclose(self.device_array(first), self.device_array(second), equal_nan=equal_nan)
                self.assert_same(found, np.isclose(first, second, equal_nan=equal_nan))
        for number in (1.0, float("inf"), 0.0):
            self.assert_same(cp.isclose(self.device_array(x), number), np.isclose(x, number))
        self.assertIs(cp.allclose(cp.ones(3), cp.ones(3)), True)
        self.assertIs(cp.allclose(cp.ones(3), 2.0), False)

    def test_closeness_of_integers(self):
        x = cp.asarray([1, 100000, 3])
        self.assertEqual(cp.isclose(x, cp.asarray([1, 100001, 4])).tolist(), [True, True, False])
        self.assertEqual(cp.isclose(x, 1).tolist(), [True, False, False])
        self.assertEqual(cp.isclose(x, cp.asarray([1.5, 1e5, 3.0])).tolist(), [False, True, True])
        self.assertTrue(cp.allclose(cp.asarray([1, 0], dtype=cp.uint8), cp.asarray([1, 0])))
        self.assertFalse(cp.allclose(cp.asarray([0], dtype=cp.uint8), cp.asarray([1], dtype=cp.uint8)))
        self.assertEqual(cp.isclose(cp.asarray([True, False]), cp.asarray([True, True])).tolist(), [True, False])

    def test_methods(self):
        x = self.numbers("float32", (2, 3))
        a = self.device_array(x)
        for name in ("sum", "prod", "max", "min", "mean", "argmax", "any"):
            self.assert_same(getattr(a, name)(0), getattr(x, name)(0), 1e-6)
        self.assert_same(a.T.flatten(), x.T.flatten())
        self.assert_same(a.T.ravel(), x.T.ravel())
        self.assert_same(a.transpose(), x.transpose())
        self.assert_same(a[None].transpose(2, 0, 1), x[None].transpose(2, 0, 1))
        self.assert_same(a[None].transpose((1, 2, 0)), x[None].transpose((1, 2, 0)))
        self.assert_same(a[None].transpose(-1, 1), x[None].transpose(0, 2, 1))
        self.assert_same(a.transpose(0, 1), x)
        self.assert_same(a.clip(-1, 1), x.clip(-1, 1))
        copied, flat, view = a.copy(), a.flatten(), a.ravel()
        a[...] = 9
        self.assert_same(copied, x)
        self.assert_same(flat, x.reshape(-1))
        self.assert_same(view, np.full(6, 9, np.float32))
        self.assertEqual((round(cp.asarray(2.345), 2), round(cp.asarray(2.6))), (round(np.float32(2.345).item(), 2), 3))


class Axes(Case):
    def test_sorts_of_the_flattened_array(self):
        x = self.numbers("float32", (3, 4))
        array = self.device_array(x)
        self.assert_same(cp.sort(array, axis=None), np.sort(x, axis=None))
        self.assert_same(cp.sort(array, axis=None, descending=True), np.sort(x, axis=None)[::-1])
        self.assert_same(cp.argsort(array, axis=None), np.argsort(x, axis=None, kind="stable"))
        places = np.asarray([0, 5, 11])
        self.assert_same(cp.take_along_axis(array, cp.asarray(places), axis=None), x.ravel()[places])

    def test_sorts_keep_zeros_and_nans(self):
        for dtype in ("float16", "float32", "float64"):
            for size in (7, 300, 5000, 70000):
                x = self.numbers(dtype, (size,), -9, 9)
                x[::3], x[2::9], x[5::11] = 0, -0.0, np.nan
                x[-1:] = -np.float64("nan")
                for descending in (False, True):
                    a = self.device_array(x)
                    order = np.asarray(cp.argsort(a, descending=descending))
                    expected, found = x[order], np.asarray(cp.sort(a, descending=descending))
                    np.testing.assert_array_equal(found.view(f"u{x.itemsize}"), expected.view(f"u{x.itemsize}"), f"{dtype} {size}")

    def test_kthvalue(self):
        for dtype in ("float32", "int64"):
            x = self.numbers(dtype, (300, 3), -9, 9)
            order = np.argsort(x, 0, kind="stable")
            for k in (1, 3, 37, 38, 300):
                for keepdim in (False, True):
                    values, indices = cp.kthvalue(self.device_array(x), k, 0, keepdim)
                    wanted = slice(k - 1, k) if keepdim else k - 1
                    self.assert_same(values, np.sort(x, 0)[wanted], note=(dtype, k))
                    self.assert_same(indices, order[wanted], note=(dtype, k))

    def test_copies_of_few_rows(self):
        for dtype in ("int8", "float16", "float32", "int64", "complex128"):
            for rows in (1, 2, 3, 4):
                for columns in (15, 16, 17, 70):
                    x = self.numbers("int8", (3, rows, 2, columns), -9, 9).astype(dtype)
                    for one in (x, x[:, :, :, ::-1], x[:, ::-1]):
                        for axes in ((0, 3, 1, 2), (0, 2, 3, 1), (3, 0, 2, 1), (2, 3, 0, 1)):
                            moved = cp.permute_dims(self.device_array(x), axes) if one is x else cp.permute_dims(
                                cp.flip(self.device_array(x), axis=3 if one.strides[3] < 0 else 1), axes)
                            self.assert_same(cp.asarray(moved, copy=True), one.transpose(axes), note=(dtype, rows, columns, axes))

    def test_axes_that_are_no_integers(self):
        x, i = cp.ones((2, 3)), cp.zeros((2, 3), dtype=cp.int64)
        labels, vector = cp.asarray([0, 1]), cp.ones(3)
        for name, call in {
                "top_k": lambda axis: cp.top_k(x, 1, axis=axis), "diff": lambda axis: cp.diff(x, axis=axis),
                "stack": lambda axis: cp.stack([x, x], axis=axis), "scatter": lambda axis: cp.scatter(x, i, x, axis=axis),
                "softmax": lambda axis: cp.nn.softmax(x, axis=axis), "unstack": lambda axis: cp.unstack(x, axis=axis),
                "log_softmax": lambda axis: cp.nn.log_softmax(x, axis=axis),
                "layer_norm": lambda axis: cp.nn.layer_norm(x, axis=axis),
                "rms_norm": lambda axis: cp.nn.rms_norm(x, axis=axis),
                "batch_norm": lambda axis: cp.nn.batch_norm(x, axis=axis),
                "batch_norm_inference": lambda axis: cp.nn.batch_norm_inference(x, vector, vector, axis=axis),
                "one_hot": lambda axis: cp.nn.one_hot(labels, 2, axis=axis),
                "vecdot": lambda axis: cp.vecdot(x, x, axis=axis),
                "cross": lambda axis: cp.linalg.cross(x, x, axis=axis),
                "cross_entropy": lambda axis: cp.nn.cross_entropy(x, labels, axis=axis),
                "cross_entropy_soft": lambda axis: cp.nn.cross_entropy_soft(x, x, axis=axis),
                "trapezoid": lambda axis: cp.trapezoid(x, axis=axis), "split": lambda axis: cp.split(x, 2, axis=axis),
                "shuffle": lambda axis: cp.random.shuffle(x, axis=axis),
                "choice": lambda axis: cp.random.choice(x, axis=axis)}.items():
            with self.assertRaisesRegex(TypeError, f"^{name}: axis is None; expected an integer"):
                call(None)
        for name in ("sort", "argsort", "argmax", "argmin", "cumulative_sum", "cumulative_max"):
            with self.assertRaisesRegex(TypeError, rf"^{name}: axis is \(0, 1\); expected an integer"):
                getattr(cp, name)(x, axis=(0, 1))

    def test_repeats(self):
        x = cp.asarray([1.0, 2.0, 3.0])
        self.assert_same(cp.repeat(x, cp.asarray([2, 0, 1])), np.float32([1, 1, 3]))
        for error, repeats in ((ValueError, cp.asarray([1, -1, 2])), (TypeError, cp.asarray([1.0, 1.0, 2.0])),
                               (TypeError, cp.asarray([1.5])), (TypeError, 1.5), (ValueError, -1)):
            with self.assertRaisesRegex(error, "repeat"):
                cp.repeat(x, repeats)


class Histograms(Case):
    def test_faults(self):
        x = cp.asarray([1.0, 2.0])
        with self.assertRaisesRegex(ValueError, "do not ascend"):
            cp.histogram(x, bins=[2.0, 1.0])
        self.assertEqual(cp.histogram(x, bins=[1.0, 1.0, 2.0])[0].tolist(), [0, 2])
        for error, minlength in ((ValueError, -3), (TypeError, 2.5)):
            with self.assertRaisesRegex(error, "minlength"):
                cp.bincount(cp.asarray([1]), minlength=minlength)

    def check(self, x, *args, **options):
        device_options = {name: self.device_array(value) if isinstance(value, np.ndarray) else value
                          for name, value in options.items()}
        for ours, theirs in zip(cp.histogram(self.device_array(x), *args, **device_options),
                                np.histogram(x, *args, **options)):
            self.assertEqual(ours.shape, theirs.shape)
            np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-5, atol=1e-6,
                                       err_msg=f"{x.dtype} {args} {options}")

    def test_histogram(self):
        for dtype in INTEGERS + FLOATS:
            x = self.numbers(dtype, (7, 9))
            weights = self.numbers("float32", x.shape)
            for args in ((), (4,), (4, (0, 3)), (3, (1, 1)), ([0, 1, 3, 4],), ([0.5, 1.5, 3.25],)):
                self.check(x, *args)
                self.check(x, *args, density=True)
            self.check(x, 5, weights=weights)
            self.check(x, 5, weights=weights, density=True)
        self.check(np.float32([]), 3)
        half = cp.astype(cp.concat([cp.zeros(70000), cp.ones(30000)]), cp.float16)
        self.assertEqual(cp.astype(cp.histogram(half, 2, density=True)[0], cp.float32).tolist(), [1.400390625, 0.60009765625])
        # An edge belongs to the bin above it, whether the edges are given or made, with weights or without.
        for least, greatest, bins in ((0.9, 1.1, 10), (0, 1, 100), (-3, 3, 60)):
            edges = cp.linspace(least, greatest, bins + 1)
            x = cp.concat([edges, cp.asarray([1.0])])
            even = cp.histogram(x, bins, (least, greatest))
            self.assertEqual(even[1].tolist(), edges.tolist())
            self.assertEqual(even[0].tolist(), cp.histogram(x, edges)[0].tolist())
            self.assertEqual(even[0].tolist(), cp.histogram(x, bins, (least, greatest), weights=cp.ones_like(x))[0].tolist())
        counts, edges = cp.histogram(cp.arange(5))
        self.assertEqual((counts.dtype, edges.dtype), (cp.int64, cp.float32))
        x = cp.asarray([1.0, np.nan])
        for wrong, error in ((lambda: cp.histogram(x), ValueError), (lambda: cp.histogram(x, 3, (2, 1)), ValueError),
                             (lambda: cp.histogram(x, [[1.0]]), ValueError),
                             (lambda: cp.histogram(x, 0, (0, 1)), ValueError),
                             (lambda: cp.histogram(x > 0), TypeError),
                             (lambda: cp.histogram(x, 2, (0, 1), weights=cp.zeros(3)), ValueError)):
            with self.assertRaises(error):
                wrong()

    def test_histogram_without_edges(self):
        x = np.random.default_rng(4).standard_normal(3000).astype(np.float32)
        for bins, low, high in ((10, -3, 3), (97, 0, 0), (1, -1, 1)):
            counts, _ = cp.histogram(self.device_array(x), bins, None if low == high else (low, high))
            self.assert_same(cp.histc(self.device_array(x), bins, low, high), np.asarray(counts).astype(np.float32))
        counts, edges = cp.histogram(self.device_array(x), 97, (-2, 3))
        numbers = np.repeat(np.asarray(edges), 2)  # each on an edge
        numbers[::2] = np.nextafter(numbers[::2], np.float32(-9))
        self.assert_same(cp.histogram(self.device_array(numbers), 97, (-2, 3))[0], np.histogram(numbers, np.asarray(edges))[0])

    def test_bincount(self):
        for dtype in INTEGERS:
            x = self.numbers(dtype, (20,), 0, 6)
            weights = self.numbers("float32", x.shape)
            a = self.device_array(x)
            self.assert_same(cp.bincount(a), np.bincount(x.astype(np.int64)))
            self.assert_same(cp.bincount(a, minlength=9), np.bincount(x.astype(np.int64), minlength=9))
            self.assert_same(cp.bincount(a, self.device_array(weights)),
                             np.bincount(x.astype(np.int64), weights).astype(np.float32), 1e-6)
        self.assert_same(cp.bincount(cp.zeros((0,), dtype=cp.int32)), np.zeros(0, np.int64))
        for wrong, error in ((cp.asarray([-1]), ValueError), (cp.asarray([1.0]), TypeError),
                             (cp.asarray(1), TypeError)):
            with self.assertRaises(error):
                cp.bincount(wrong)


class Networks(Case):
    def test_averages_with_padding(self):
        x = self.numbers("float32", (2, 3, 6, 5))
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
        self.assert_same(cp.nn.functional.avg_pool2d(self.device_array(x), 3, 1, 1), windows.mean((-1, -2)), 2e-6)

    def test_windows_of_padding(self):
        x = [[[1, 2, 3]]]
        options = {"strides": 1, "padding": 3}
        found = cp.nn.max_pool(cp.asarray(x, dtype=cp.int32), 2, **options)
        self.assertEqual(found.tolist(), [[[-2 ** 31, -2 ** 31, 1, 2, 3, 3, -2 ** 31, -2 ** 31]]])
        found = cp.nn.max_pool(cp.asarray(x, dtype=cp.float32), 2, **options)
        self.assertEqual(found.tolist(), [[[-cp.inf, -cp.inf, 1, 2, 3, 3, -cp.inf, -cp.inf]]])
        found = cp.nn.average_pool(cp.asarray(x, dtype=cp.float32), 2, **options)
        self.assertEqual(found.tolist(), [[[0, 0, 1, 1.5, 2.5, 3, 0, 0]]])

    def test_transposed_convolution(self):
        """Each element of x adds the kernel, times it, to a window of the result."""
        x, w = self.numbers("float32", (2, 4, 3, 5)), self.numbers("float32", (4, 2, 2, 3))
        b = self.numbers("float32", (4,))
        for groups in (1, 2):
            for strides, dilations, padding, more in ((1, 1, 0, 0), (2, 1, 1, 1), ([3, 2], 1, 0, [2, 0]),
                                                      (1, [2, 1], [1, 0], 0)):
                stride, dilation, pads, extra = ([n, n] if isinstance(n, int) else n for n in (strides, dilations,
                                                                                               padding, more))
                sizes = [(n - 1) * s + (k - 1) * d + 1 for n, s, k,
                         d in zip(x.shape[2:], stride, w.shape[2:], dilation)]
                full = np.zeros((2, 2 * groups, *(size + m for size, m in zip(sizes, extra))), np.float32)
                for i, j, ky, kx in np.ndindex(3, 5, 2, 3):
                    for group in range(groups):
                        to = slice(2 * group, 2 * group + 2)
                        of = slice(4 // groups * group, 4 // groups * (group + 1))
                        full[:, to, i * stride[0] + ky * dilation[0], j * stride[1] + kx * dilation[1]] += (
                            x[:, of, i, j] @ w[of, :, ky, kx])
                expected = full[:, :, pads[0]:full.shape[2] - pads[0], pads[1]:full.shape[3] - pads[1]]
                bias = b[:2 * groups]
                found = cp.nn.convolution_transpose(*map(self.device_array, (x, w, bias)), strides=strides,
                                                    groups=groups,
                                                    dilations=dilations, padding=padding, output_padding=more)
                self.assert_same(found, expected + bias[:, None, None], 1e-5)
        a, k = self.device_array(x), self.device_array(w)
        self.assertEqual(cp.nn.convolution_transpose(a, k, strides=2, padding="same").shape, (2, 2, 6, 10))
        with self.assertRaises(ValueError):
            cp.nn.convolution_transpose(a, k, padding="full")

    def test_losses_and_products(self):
        logits, targets = self.numbers("float32", (3, 4)), self.numbers("float32", (3, 4), 0, 3)
        for axis in (0, 1):
            expected = -(targets * (logits - np.log(np.exp(logits).sum(axis, keepdims=True)))).sum(axis)
            self.assert_same(cp.nn.cross_entropy_soft(self.device_array(logits), self.device_array(targets), axis=axis),
                             expected, 1e-5)
        c, a, b, v = (self.numbers("float32", shape) for shape in ((3, 5), (3, 4), (4, 5), (5,)))
        found = cp.linalg.gemm(*map(self.device_array, (c, a, b, v)), alpha=0.5, beta=2, activation="relu")
        self.assert_same(found, np.maximum(0.5 * (a @ b) + 2 * c + v, 0), 1e-5)


class DTypes(Case):
    def test_default(self):
        defaults = cp.__array_namespace_info__().default_dtypes
        self.assertEqual(defaults()["real floating"], cp.float32)
        for wrong in (cp.int64, cp.float16, "complex64"):
            with self.assertRaises(ValueError):
                cp.set_default_dtype(wrong)
        if "float64" not in cp.__array_namespace_info__().dtypes():
            self.skipTest("the device has no float64")
        cp.set_default_dtype(float)  # the current one
        cp.set_default_dtype("float64")
        try:
            found = [x.dtype for x in (cp.zeros(1), cp.asarray(1.0), cp.linspace(0, cp.asarray(1), 2), cp.eye(1), cp.asarray(1j))]
            self.assertEqual(found, [cp.float64] * 4 + [cp.complex128])
            self.assertEqual(defaults()["complex floating"], cp.complex128)
            self.assertIs(cp.astype(cp.asarray(1), np.dtype("float32")).dtype, cp.float32)
        finally:
            cp.set_default_dtype(cp.float32)

    def test_default_by_setting(self):
        """COMPUTE_FLOAT, which set_default_dtype sets, too."""
        def defaults():
            found = cp.__array_namespace_info__().default_dtypes()
            return found["real floating"], found["complex floating"]
        try:
            cp.config("COMPUTE_FLOAT", "float64")
            self.assertEqual(defaults(), (cp.float64, cp.complex128))
            cp.set_default_dtype(cp.float32)
            self.assertEqual((cp.config("COMPUTE_FLOAT"), *defaults()), ("float32", cp.float32, cp.complex64))
            with self.assertRaisesRegex(ValueError, "COMPUTE_FLOAT"):
                cp.config("COMPUTE_FLOAT", "float16")
        finally:
            cp.config("COMPUTE_FLOAT", None)
        self.assertEqual(defaults(), (cp.float32, cp.complex64))

    def test_parts_of_real_arrays(self):
        x = self.device_array(self.numbers("int32", (3,)))
        for y in (cp.real(x), cp.conj(x)):
            self.assert_same(y, np.asarray(x))
        z = self.device_array(self.numbers("complex64", (3,)))
        self.assert_same(cp.real(z), np.asarray(z).real)
        self.assert_same(cp.conj(z), np.asarray(z).conj())
        for function in (cp.real, cp.conj):
            with self.assertRaises(TypeError):
                function(cp.asarray(True))

    def test_promotion(self):
        for one in ALL:
            for other in ALL:
                kinds = ["bifc".index(np.dtype(name).kind.replace("u", "i")) for name in (one, other)]
                try:
                    ours = cp.result_type(getattr(cp, one), getattr(cp, other)).name
                except TypeError:
                    self.assertTrue(kinds == [1, 1] and "uint64" in (one, other), f"{one} {other}")
                    continue
                if kinds[0] != kinds[1] and min(kinds) <= 1:  # the one of the higher kind
                    self.assertEqual(ours, one if kinds[0] > kinds[1] else other)
                else:
                    self.assertEqual(ours, np.result_type(one, other).name)
        self.assertIs(cp.result_type(cp.int64, cp.uint64, cp.float16), cp.float16)
        for array, number, expected in ((cp.int8, 0.5, cp.float32), (cp.bool, 1, cp.int64), (cp.bool, 1j, cp.complex64),
                                        (cp.int8, True, cp.int8), (cp.float16, 1, cp.float16)):
            self.assertIs(cp.result_type(array, number), expected)

    def test_limits(self):
        for dtype in FLOATS + COMPLEX + ("float16",):
            ours, theirs = cp.finfo(getattr(cp, dtype)), np.finfo(dtype)
            self.assertEqual((ours.bits, ours.eps, ours.max, ours.min, ours.smallest_normal),
                             (theirs.bits, float(theirs.eps), float(theirs.max), float(theirs.min),
                              float(theirs.smallest_normal)))
        for dtype in INTEGERS:
            ours, theirs = cp.iinfo(getattr(cp, dtype)), np.iinfo(dtype)
            self.assertEqual((ours.bits, ours.max, ours.min), (theirs.bits, theirs.max, theirs.min))

    def test_kinds(self):
        self.assertTrue(cp.isdtype(cp.float32, "real floating"))
        self.assertTrue(cp.isdtype(cp.int8, ("integral", "bool")))
        self.assertFalse(cp.isdtype(cp.bool, "numeric"))
        self.assertTrue(cp.can_cast(cp.int8, cp.int16))
        self.assertFalse(cp.can_cast(cp.float64, cp.float32))

class Messages(Case):
    def test_dtypes_without_a_common_one(self):
        x, y = cp.asarray([1], dtype=cp.uint64), cp.asarray([1])
        for name, call in {"searchsorted": lambda: cp.searchsorted(x, y), "isin": lambda: cp.isin(x, y),
                           "convolve": lambda: cp.convolve(x, y)}.items():
            with self.assertRaisesRegex(TypeError, f"^{name}: uint64 and int64 have no common dtype"):
                call()
        x = cp.asarray([1.5])
        self.assertEqual((cp.searchsorted(x, y).tolist(), cp.isin(y, 1.5).tolist(), cp.convolve(x, y).tolist()), ([0], [False], [1.5]))
        with self.assertRaisesRegex(ValueError, "^trace: "):
            cp.linalg.trace(x)


class Linalg(Case):
    def test_decompositions_against_numpy(self):
        theirs, ours = np.linalg, cp.linalg
        for dtype in FLOATS + COMPLEX:
            x = np.asarray(self.random.uniform(-1, 1, (2, 4, 4)) + 3 * np.eye(4), dtype)
            x = x + 1j * self.random.uniform(-1, 1, x.shape).astype(x.real.dtype) if dtype in COMPLEX else x
            x, tall, b = x.astype(dtype), x[:, :, :3].astype(dtype), x[0, :, :2].astype(dtype)
            positive = (x @ np.conj(np.swapaxes(x, -1, -2))).astype(dtype)
            a, p, tolerance = self.device_array(x), self.device_array(positive), 100 * TOLERANCE[dtype]
            for found, expected in (
                    (ours.cholesky(p), theirs.cholesky(positive)), (ours.det(a), theirs.det(x)), (ours.eigvalsh(p), theirs.eigvalsh(positive)),
                    (ours.inv(a), theirs.inv(x)), (ours.matrix_rank(a), theirs.matrix_rank(x)), (ours.pinv(self.device_array(tall)), theirs.pinv(tall)),
                    (ours.matrix_power(a, -2), theirs.matrix_power(x, -2)), (ours.slogdet(a).logabsdet, theirs.slogdet(x).logabsdet if hasattr(theirs.slogdet(x), "logabsdet") else theirs.slogdet(x)[1]),
                    (ours.solve(a, self.device_array(b)), theirs.solve(x, np.broadcast_to(b, (2, 4, 2)))), (ours.svdvals(a), theirs.svd(x, compute_uv=False)),
                    (ours.lstsq(self.device_array(tall[0]), self.device_array(b)).solution, theirs.lstsq(tall[0], b, rcond=None)[0]),
                    (ours.lstsq(self.device_array(tall[0]), self.device_array(b), rcond=None).rank, np.int64(3)),
                    (ours.pinv(a, rcond=10.0), np.zeros_like(x)),
                    (ours.matrix_rank(self.device_array(tall), rtol=10.0), np.zeros(2, np.int64))):
                np.testing.assert_allclose(np.asarray(found), expected, tolerance, tolerance * np.max(np.abs(expected), initial=1))
            values = np.sort_complex(np.asarray(ours.eigvals(a))[0])
            np.testing.assert_allclose(values, np.sort_complex(theirs.eigvals(x[0])), tolerance, tolerance)
            for names, result in (("U S Vh", ours.svd(a)), ("Q R", ours.qr(a)), ("eigenvalues eigenvectors", ours.eigh(p)), ("sign logabsdet", ours.slogdet(a)),
                                  ("LU pivots", ours.lu(a)), ("eigenvalues eigenvectors", ours.eig(a))):
                self.assertEqual(result._fields, tuple(names.split()))
            u, s, vh = ours.svd(self.device_array(tall), full_matrices=False)
            np.testing.assert_allclose(np.asarray(u * cp.expand_dims(s, 1) @ vh), tall, tolerance, tolerance)

    def test_integers_become_numbers_of_the_default_dtype(self):
        x, theirs, ours = np.asarray([[4, 1], [1, 3]]), np.linalg, cp.linalg
        a, b = self.device_array(x), self.device_array(np.asarray([1, 2]))
        for found, expected in (
                (ours.inv(a), theirs.inv(x)), (ours.det(a), theirs.det(x)), (ours.cholesky(a), theirs.cholesky(x)), (ours.eigvalsh(a), theirs.eigvalsh(x)),
                (ours.eigvalsh(a, UPLO="U"), theirs.eigvalsh(x, UPLO="U")), (ours.svd(a, compute_uv=False), theirs.svd(x, compute_uv=False)), (ours.solve(a, b), theirs.solve(x, [1, 2])),
                (ours.lstsq(a, b, rcond=None)[0], theirs.solve(x, [1, 2])), (ours.pinv(a), theirs.pinv(x)), (ours.vector_norm(b), theirs.norm([1, 2])), (ours.matrix_norm(a, ord=2), theirs.norm(x, 2)),
                (ours.matrix_power(a, -1), theirs.inv(x)), *((ours.cond(a, p), theirs.cond(x, p)) for p in (None, 1, -1, 2, -2, np.inf, -np.inf, "fro", "nuc"))):
            self.assertIs(found.dtype, cp.float32)
            np.testing.assert_allclose(np.asarray(found), expected, 1e-5)
        self.assert_same(ours.matrix_power(a, 5), theirs.matrix_power(x, 5))

    def test_distances(self):
        """Of float32, squares may overflow and underflow."""
        random = np.random.default_rng(3)
        for one, other in (((5, 3), (4, 3)), ((2, 5, 3), (4, 3)), ((1, 3), (7, 3)), ((5, 1), (5, 1)), ((0, 3), (2, 3)), ((3, 0), (2, 0)),
                           ((7, 20), (303, 20)), ((3, 300), (65, 300)), ((2, 2, 73), (2, 600, 73)), ((5, 3), (2, 1, 4, 3)), ((7, 5), (1, 5)), ((1, 300), (1, 300))):
            for scale in (1.0, 1e-30, 1e30):
                x, y = ((random.standard_normal(shape) * scale).astype(np.float32) for shape in (one, other))
                exact = (x.astype(np.float64)[..., :, None, :] - y.astype(np.float64)[..., None, :, :]) / scale
                found = np.asarray(cp.cdist(cp.asarray(x), cp.asarray(y)), dtype=np.float64) / scale
                np.testing.assert_allclose(found, np.sqrt((exact ** 2).sum(-1)), 2e-6)
                found = np.asarray(cp.linalg.vector_norm(cp.asarray(x), axis=-1), dtype=np.float64) / scale
                np.testing.assert_allclose(found, np.sqrt(((x.astype(np.float64) / scale) ** 2).sum(-1)), 1e-6)
            for scale in (1.0, 1e-200, 1e200):
                x, y = (random.standard_normal(shape) for shape in (one, other))
                found = np.asarray(cp.cdist(cp.asarray(x * scale), cp.asarray(y * scale))) / scale
                np.testing.assert_allclose(found, np.sqrt(((x[..., :, None, :] - y[..., None, :, :]) ** 2).sum(-1)), 1e-14)
        x, y = random.standard_normal((9, 40)), random.standard_normal((70, 40))
        exact = np.abs(x[:, None] - y)
        for dtype, bound in (("float32", 2e-6), ("float64", 1e-14)):
            for p, expected in ((1, exact.sum(-1)), (np.inf, exact.max(-1)), (2, np.sqrt((exact ** 2).sum(-1)))):
                found = np.asarray(cp.cdist(cp.asarray(x, dtype=dtype), cp.asarray(y, dtype=dtype), p))
                np.testing.assert_allclose(found, expected, bound)
                pairs = np.asarray(cp.nn.functional.pdist(cp.asarray(y[:6], dtype=dtype), p))
                exact_pairs = [np.linalg.norm(y[i] - y[j], p) for i in range(6) for j in range(i + 1, 6)]
                np.testing.assert_allclose(pairs, exact_pairs, bound)
        self.assert_same(cp.cdist(cp.asarray(np.float32([[3e38, 0], [np.nan, 1]])), cp.asarray(np.float32([[-3e38, 0]]))),
                         np.float32([[np.inf], [np.nan]]))
        x = random.standard_normal((600, 3))
        self.assertEqual(float(cp.max(cp.linalg.diagonal(cp.cdist(cp.asarray(x), cp.asarray(x))))), 0)

    def test_eye(self):
        for dtype in ("float32", "bool", "int8", "complex64"):
            for rows, columns in ((0, 3), (1, 1), (3, 5), (5, 3)):
                for k in (-6, -2, 0, 1, 4, 9):
                    self.assert_same(cp.eye(rows, columns, k=k, dtype=dtype), np.eye(rows, columns, k, dtype))

    def test_condition_of_singular_matrices(self):
        x = np.stack([np.eye(2), np.ones((2, 2)), np.zeros((2, 2))]).astype("float32")
        for p in (1, -1, np.inf, -np.inf, "fro"):
            self.assert_same(cp.linalg.cond(self.device_array(x), p), np.linalg.cond(x, p), 1e-6)
        for p in (None, 2, -2):  # the least singular value of ones is rounded
            self.assert_same(cp.linalg.cond(self.device_array(x[::2]), p), np.float32([1, np.inf]), 1e-6)

    def test_cross_products(self):
        random = np.random.default_rng(6)
        for dtype in ("int8", "int32", "uint64", "float16") + FLOATS + COMPLEX:
            for one, other, axis in (((5, 3), (5, 3), -1), ((3, 4), (3, 4), 0), ((5, 3), (3,), -1), ((2, 3, 4), (3, 1), -2), ((0, 3), (0, 3), -1)):
                x, y = (random.integers(0, 5, shape).astype(dtype) for shape in (one, other))
                expected = np.cross(x, y, axisa=axis, axisb=axis if axis < 0 or len(one) == len(other) else 0, axisc=axis)
                self.assert_same(cp.linalg.cross(self.device_array(x), self.device_array(y), axis=axis), expected, note=f"{dtype} {one} {other}")

    def test_products_without_sums(self):
        random = np.random.default_rng(7)
        cases = (("ij,j->ij", (5, 6), (6,)), ("ij,j->ji", (5, 6), (6,)), ("bi,bj->bij", (5, 2), (5, 3)), ("bi,bj->jib", (5, 2), (5, 3)), ("i,j->ij", (4,), (5,)),
                 ("ii,i->i", (4, 4), (4,)), ("ij,k->ikj", (3, 4), (5,)), ("...i,...i->...i", (2, 1, 3), (4, 3)), (",ij->ij", (), (3, 2)),
                 ("ij,i,j->ij", (3, 4), (3,), (4,)), ("ij,jk,k->ijk", (3, 4), (4, 5), (5,)), ("ij,jk,k->ik", (3, 4), (4, 5), (5,)))
        for equation, *shapes in cases:
            for dtype in ("int32", "float16", "float32", "complex64"):
                arrays = [random.integers(-4, 5, shape).astype(dtype) for shape in shapes]
                self.assert_same(cp.einsum(equation, *map(self.device_array, arrays)), np.einsum(equation, *arrays), note=f"{equation} {dtype}")

    def test_sums_of_exponentials(self):
        random = np.random.default_rng(8)
        for size in (1, 2, 7, 9, 64, 65, 600):
            for axis in (0, 1):
                x = random.standard_normal((size, 3) if axis == 0 else (3, size)) * 30
                x.flat[size // 2], x.flat[size] = -np.inf, np.inf if size == 9 else np.nan if size == 64 else -500
                with np.errstate(invalid="ignore"):
                    expected = np.logaddexp.accumulate(x, axis=axis)
                for dtype in FLOATS:
                    self.assert_same(cp.logcumsumexp(self.device_array(x.astype(dtype)), axis), expected.astype(dtype), 2 * TOLERANCE[dtype], note=f"{size} {axis} {dtype}")
        self.assert_same(cp.logcumsumexp(self.device_array(np.float32([0, -20, -30])), 0)[1:], np.float32([2.0611537e-9, 2.0612472e-9]), 1e-12)

    def test_singular(self):
        with self.assertRaisesRegex(cp.NumericalError, "^inv: matrix 1 of the batch is singular"):
            np.asarray(cp.linalg.inv(self.device_array(np.stack([np.eye(2), np.ones((2, 2))]).astype("float32"))))

    def test_of_nothing(self):
        for shape, offset in (((0, 1, 2), 1), ((0, 3, 2), -1), ((2, 0, 3), 1), ((0, 0), 0)):
            x = np.zeros(shape, np.float32)
            for found, expected in ((cp.linalg.diagonal(cp.asarray(x), offset=offset), np.diagonal(x, offset, -2, -1)),
                                    (cp.linalg.trace(cp.asarray(x), offset=offset), np.trace(x, offset, -2, -1))):
                self.assert_same(found, expected)
        self.assertEqual(float(cp.linalg.vector_norm(cp.zeros(0))), 0.0)

    def test_norms_near_the_ends_of_the_range(self):
        far = {"float16": (1.0, 100.0, 1e-3), "bfloat16": (1.0, 1e37, 1e-36), "float32": (1.0, 1e37, 1e-36),
               "float64": (1e307, 1e-306)}
        for dtype in ("float16", "bfloat16", *FLOATS):
            tolerance = {"float16": 2e-3, "bfloat16": 1e-2}.get(dtype, 1e-6)
            for factor in far[dtype]:
                x = cp.asarray([[3 * factor, -4 * factor], [0.0, 0.0]], dtype=getattr(cp, dtype))
                exact = np.array(x.tolist()) / factor
                for ord in (2, 3, 0.5, -1, -3, 8):
                    with np.errstate(divide="ignore"):
                        expected = np.linalg.norm(exact, ord, axis=1)
                    found = np.array(cp.linalg.vector_norm(x, axis=1, ord=ord).tolist()) / factor
                    np.testing.assert_allclose(found, expected, tolerance, err_msg=f"{dtype} {factor} {ord}")
        x = np.array([[3.0, 3e200, 3e-200, 0.0], [-4.0, 4e200, 4e-200, 0.0]])
        for dtype in ("float64", "complex128"):
            for axis, values in ((0, x), (1, x.T)):
                found = cp.linalg.vector_norm(cp.asarray(values, dtype=getattr(cp, dtype)), axis=axis)
                np.testing.assert_allclose(found.tolist(), [5.0, 5e200, 5e-200, 0.0], 1e-15)
        for ord in (2, 3):
            for value in (np.inf, -np.inf, np.nan):
                self.assertEqual(str(float(cp.linalg.vector_norm(cp.asarray([1.0, value]), ord=ord))), str(abs(value)))

    def test_gradients_of_norms(self):
        for ord, values, expected in ((2, [3.0, -4.0], [0.6, -0.8]), (2, [0.0, 0.0], [0.0, 0.0]), (1, [2.0, -1.0], [1.0, -1.0]),
                                      (2, [3e19, 4e19], [0.6, 0.8]), (3, [0.0, -2.0], [0.0, -1.0]), (-2, [0.0, 2.0], [0.0, 0.0]),
                                      (np.inf, [1.0, -3.0], [0.0, -1.0]), (np.inf, [2.0, 2.0], [0.5, 0.5])):
            found = cp.grad.gradients(lambda x: cp.linalg.vector_norm(x, ord=ord))(cp.asarray(values))
            np.testing.assert_allclose(np.asarray(found), expected, 1e-6, err_msg=f"{ord} {values}")

    def test_against_numpy(self):
        norm = np.linalg.norm
        for dtype in FLOATS + COMPLEX:
            x, y = self.numbers(dtype, (2, 3, 4)), self.numbers(dtype, (2, 3, 4))
            a, b = self.device_array(x), self.device_array(y)
            for offset in (-4, -1, 0, 2, 5):
                self.assert_same(cp.linalg.diagonal(a, offset=offset), np.diagonal(x, offset, -2, -1))
                self.assert_same(cp.linalg.diagonal(a.mT, offset=offset), np.diagonal(x, -offset, -2, -1))
                self.assert_same(cp.linalg.trace(a, offset=offset), np.trace(x, offset, -2, -1), TOLERANCE[dtype])
            self.assert_same(cp.linalg.outer(a[0, 0, :], b[1, :, 1]), np.outer(x[0, 0], y[1, :, 1]), TOLERANCE[dtype])
            self.assert_same(cp.linalg.cross(a[:, :, 0], b[:, :, 1]), np.cross(x[:, :, 0], y[:, :, 1]), TOLERANCE[dtype])
            self.assert_same(cp.linalg.cross(a, b[:1], axis=-2), np.cross(x, y[:1], axis=1), TOLERANCE[dtype])
            square = a[0] @ b[0].mT
            for n in (0, 1, 2, 5):
                expected = np.linalg.matrix_power(np.asarray(square), n)
                self.assert_same(cp.linalg.matrix_power(square, n) / 1e5, expected / 1e5, 10 * TOLERANCE[dtype])
            for ord in (0, 1, 2, 3, 0.5, np.inf, -np.inf):
                flat = norm(x.reshape(-1), ord).astype(np.asarray(abs(x)).dtype)
                self.assert_same(cp.linalg.vector_norm(a, ord=ord), flat, 1e-5)
                self.assert_same(cp.linalg.vector_norm(a, axis=1, ord=ord), norm(x, ord, 1).astype(flat.dtype), 1e-5)
            for ord in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
                for keepdims in (False, True):
                    expected = norm(x, ord, (1, 2), keepdims)
                    self.assert_same(cp.linalg.matrix_norm(a, ord=ord, keepdims=keepdims), expected, 10 * TOLERANCE[dtype])
        for wrong, error in ((lambda: cp.linalg.matrix_norm(a, ord=3), ValueError), (lambda: cp.linalg.inv(a), ValueError),
                             (lambda: cp.linalg.qr(a, mode="r"), ValueError), (lambda: cp.linalg.outer(a, b), ValueError),
                             (lambda: cp.linalg.cross(a, b), ValueError), (lambda: cp.linalg.trace(a[0, 0]), ValueError),
                             (lambda: cp.linalg.eigh(a, UPLO="B"), TypeError), (lambda: cp.linalg.svd(a, hermitian=True), TypeError)):
            with self.assertRaises(error):
                wrong()
