# SPDX-License-Identifier: Apache-2.0
"""Creation, manipulation, reductions, searching, sorting, sets and products, against NumPy."""
import compute as cp
import numpy as np

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

    def test_filled(self):
        for dtype in ALL:
            kind = getattr(cp, dtype)
            self.assert_same(cp.ones((2, 3), dtype=kind), np.ones((2, 3), dtype))
            self.assert_same(cp.zeros(3, dtype=kind), np.zeros(3, dtype))
            self.assert_same(cp.full_like(cp.zeros(2, dtype=kind), 1), np.ones(2, dtype))
        self.assert_same(cp.full((2,), 7), np.int64([7, 7]))
        self.assert_same(cp.eye(2, 3, k=1), np.eye(2, 3, k=1, dtype=np.float32))
        self.assert_same(cp.eye(2, k=2 ** 63), np.zeros((2, 2), np.float32))

    def test_ranges(self):
        self.assert_same(cp.arange(5), np.arange(5))
        self.assert_same(cp.arange(5, 1, -2), np.arange(5, 1, -2))
        self.assert_same(cp.arange(0.0, 1.0, 0.25), np.arange(0, 1, 0.25, dtype=np.float32))
        self.assert_same(cp.linspace(0, 1, 5), np.linspace(0, 1, 5, dtype=np.float32))
        self.assert_same(cp.linspace(0, 1, 4, endpoint=False), np.linspace(0, 1, 4, endpoint=False, dtype=np.float32))
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
                kinds = {np.dtype(one).kind, np.dtype(other).kind}
                try:
                    ours = cp.result_type(getattr(cp, one), getattr(cp, other)).name
                except TypeError:
                    mixed = len({"f" if kind in "fc" else "i" if kind in "iu" else kind for kind in kinds}) > 1
                    self.assertTrue(mixed or {"uint64"} & {one, other}, f"{one} {other}")
                    continue
                self.assertEqual(ours, np.result_type(one, other).name)

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

class Linalg(Case):
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
            for ord in ("fro", 1, -1, np.inf, -np.inf):
                for keepdims in (False, True):
                    expected = norm(x, ord, (1, 2), keepdims)
                    self.assert_same(cp.linalg.matrix_norm(a, ord=ord, keepdims=keepdims), expected, 10 * TOLERANCE[dtype])
        for wrong, error in ((lambda: cp.linalg.matrix_norm(a, ord=2), NotImplementedError),
                             (lambda: cp.linalg.matrix_power(square, -1), NotImplementedError),
                             (lambda: cp.linalg.svd(a), AttributeError), (lambda: cp.linalg.outer(a, b), ValueError),
                             (lambda: cp.linalg.cross(a, b), ValueError), (lambda: cp.linalg.trace(a[0, 0]), ValueError),
                             (lambda: cp.linalg.vector_norm(cp.asarray([1])), TypeError)):
            with self.assertRaises(error):
                wrong()
