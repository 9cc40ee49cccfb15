# SPDX-License-Identifier: Apache-2.0
"""Functions of NumPy beyond the standard, against NumPy."""
import warnings

import compute as cp
import numpy as np

from case import COMPLEX, FLOATS, INTEGERS, NARROW, Case

TRAPEZOID = getattr(np, "trapezoid", None) or np.trapz  # NumPy 1
TOLERANCE = {"float32": 1e-5, "float64": 1e-12, "complex64": 1e-5, "complex128": 1e-12}


class Numeric(Case):
    def setUp(self):
        super().setUp()
        self.enterContext(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # NumPy's about NaN

    def layouts(self, x):
        """The same elements, row-major and otherwise."""
        yield self.device_array(x)
        if x.ndim == 2:
            yield self.device_array(x.T).T
        if x.ndim:
            yield self.device_array(x[::-1])[::-1]

    def with_nan(self, dtype, shape):
        x = self.numbers(dtype, shape)
        if x.size and dtype in FLOATS + COMPLEX:
            x[self.random.random(shape) < 0.3] = np.nan
        return x

    def assert_all(self, actual, expected, dtype=None, note=""):
        """Compares with the result of NumPy in the dtype that is expected here."""
        dtype = dtype or np.asarray(expected).dtype.name
        self.assert_same(actual, np.asarray(expected).astype(dtype), TOLERANCE.get(dtype, 0.0), note)

    def test_splits(self):
        for dtype in ("float32", "int64", "bool"):
            x = self.numbers(dtype, (6, 4))
            for a in self.layouts(x):
                for how in (1, 2, [1, 3], (0, 2, 2, 9), [-2], []):
                    for axis in (0, 1, -1):
                        found, expected = cp.split(a, how, axis=axis), np.split(x, how, axis)
                        self.assertEqual(len(found), len(expected))
                        for one, other in zip(found, expected):
                            self.assert_same(one, other, note=f"{how} {axis}")
                for how in (1, 4, 5, 9, [2]):
                    for one, other in zip(cp.array_split(a, how), np.array_split(x, how), strict=True):
                        self.assert_same(one, other)
                found, expected = cp.hsplit(a, 2) + cp.vsplit(a, 3), np.hsplit(x, 2) + np.vsplit(x, 3)
                for one, other in zip(found, expected, strict=True):
                    self.assert_same(one, other)
        places = cp.asarray([1, 3])
        self.assertEqual([one.tolist() for one in cp.hsplit(cp.arange(5), places)], [[0], [1, 2], [3, 4]])
        parts = cp.split(a := cp.zeros(4), 2)
        parts[1][...] = 1.0
        self.assertEqual(a.tolist(), [0.0, 0.0, 1.0, 1.0])
        self.assertEqual([one.shape for one in cp.array_split(cp.zeros((0, 2)), 3)], [(0, 2)] * 3)
        for wrong, error in ((lambda: cp.split(a, 3), ValueError), (lambda: cp.array_split(a, 0), ValueError),
                             (lambda: cp.vsplit(a, 2), ValueError), (lambda: cp.split(a, 2, axis=1), IndexError)):
            with self.assertRaises(error):
                wrong()

    def test_reductions_without_nan(self):
        for dtype in FLOATS + COMPLEX + ("int32",):
            names = ("nansum", "nanprod", "nanmean")
            names += () if dtype in COMPLEX else ("nanmax", "nanmin", "nanvar", "nanstd")
            result = "float32" if dtype == "int32" else dtype
            for shape, axes in (((5,), (None, 0)), ((4, 6), (None, 0, 1, -1, (0, 1))), ((2, 3, 4), (1, (0, -1)))):
                x = self.with_nan(dtype, shape)
                if dtype in FLOATS and len(shape) > 1:
                    x[0] = np.nan
                for a in self.layouts(x):
                    for axis in axes:
                        for name in names:
                            for keepdims in (False, True):
                                expected = getattr(np, name)(x, axis=axis, keepdims=keepdims)
                                kind = result if name in ("nanmean", "nanvar", "nanstd") else expected.dtype.name
                                if dtype == "int32" and name in ("nansum", "nanprod"):
                                    kind = "int64"
                                self.assert_all(getattr(cp, name)(a, axis=axis, keepdims=keepdims), expected, kind,
                                                f"{name} {dtype} {shape} {axis}")
        x = np.array([[1.0, np.nan, 2.0, 5.0], [np.nan, np.nan, np.nan, 3.0]], np.float32)
        a = self.device_array(x)
        for correction in (0, 1, 2, 3):
            self.assert_all(cp.nanvar(a, axis=1, correction=correction), np.nanvar(x, axis=1, ddof=correction))
        self.assertEqual((float(cp.nansum(cp.zeros(0))), float(cp.nanprod(cp.zeros(0)))), (0.0, 1.0))
        self.assertTrue(np.isnan(float(cp.nanmean(cp.zeros(0)))))
        with self.assertRaises(TypeError):
            cp.nanvar(cp.asarray([1j]))
        if not NARROW:  # more elements than float16 can count
            half = cp.astype(cp.ones(70000), cp.float16)
            half[0] = float("nan")
            self.assertEqual((float(cp.nanmean(half)), float(cp.nanvar(half))), (1.0, 0.0))

    def test_positions_without_nan(self):
        x = self.with_nan("float32", (5, 7))
        x[:, 3], x[3, :] = 4.5, -4.5
        for a in self.layouts(x):
            for axis in (None, 0, 1, -1):
                for name in ("nanargmax", "nanargmin"):
                    self.assert_same(getattr(cp, name)(a, axis=axis), getattr(np, name)(x, axis=axis))
        self.assertEqual(int(cp.nanargmax(cp.asarray([np.nan, -np.inf]))), 1)  # NumPy finds the NaN
        self.assertEqual(cp.nanargmin(cp.asarray([[3, 1], [2, 5]]), axis=1, keepdims=True).tolist(), [[1], [0]])
        with self.assertRaises(ValueError):
            cp.nanargmax(cp.asarray([[np.nan, np.nan], [1.0, 2.0]]), axis=1)

    def test_means_of_integers(self):
        for dtype in INTEGERS + ("bool",):
            x = self.numbers(dtype, (3, 4))
            for axis in (None, 0, -1, (0, 1)):
                for keepdims in (False, True):
                    self.assert_all(cp.mean(self.device_array(x), axis=axis, keepdims=keepdims),
                                    x.mean(axis, keepdims=keepdims), "float32", dtype)
        self.assertEqual(float(cp.mean(cp.asarray([16777217, -16777216], dtype=cp.int32))), 0.5)
        self.assertEqual(float(cp.asarray([2 ** 62] * 4).mean()), 2.0 ** 62)
        self.assertTrue(np.isnan(float(cp.mean(cp.zeros(0, dtype=cp.int32)))))
        self.assertEqual(cp.mean(cp.zeros((0, 3), dtype=cp.int32), axis=1).shape, (0,))

    def test_quantiles_without_nan(self):
        x = self.numbers("float32", (4, 5, 3))
        x[self.random.random(x.shape) < 0.3] = np.nan
        x[1, :, 2] = np.nan
        for y in (x, x[0, 0], np.float32([np.nan, np.nan]), x.astype(np.float64), np.float32([5])):
            for axis in (None, 0, -1, *(((0, 1),) if y.ndim > 1 else ())):
                for keepdims in (False, True):
                    with np.errstate(all="ignore"), warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        self.assert_same(cp.nanmedian(self.device_array(y), axis, keepdims), np.nanmedian(y, axis, keepdims=keepdims), 1e-6)
                        for q in (0.3, [0, 1], 0.5):
                            self.assert_same(cp.nanquantile(self.device_array(y), q, axis, keepdims), np.nanquantile(y, q, axis, keepdims=keepdims).astype(y.dtype), 1e-6)
                        self.assert_same(cp.nanpercentile(self.device_array(y), [25, 75], axis), np.nanpercentile(y, [25, 75], axis).astype(y.dtype), 1e-6)
        self.assertEqual(cp.nanquantile([1.0, cp.inf, cp.nan], [0, 0.5, 1]).tolist(), [1, cp.inf, cp.inf])
        with self.assertRaises(ValueError):
            cp.nanquantile([1.0], 1.5)

    def test_statistics(self):
        for dtype in FLOATS + ("int32",) + COMPLEX:
            result = "float32" if dtype == "int32" else dtype
            x, y = self.numbers(dtype, (3, 8)), self.numbers(dtype, (2, 8))
            for a in self.layouts(x):
                b = self.device_array(y)
                for correction in (0, 1):
                    self.assert_all(cp.cov(a, correction=correction), np.cov(x, ddof=correction), result)
                self.assert_all(cp.cov(a, b), np.cov(x, y), result)
                self.assert_all(cp.cov(a, rowvar=False), np.cov(x, rowvar=False), result)
                self.assert_all(cp.cov(a[0]), np.cov(x[0]), result)
                self.assert_all(cp.cov(a[0], a[1]), np.cov(x[0], x[1]), result)
                self.assert_all(cp.corrcoef(a), np.corrcoef(x), result)
                self.assert_all(cp.corrcoef(a[0], a[1]), np.corrcoef(x[0], x[1]), result)
        self.assert_same(cp.corrcoef(cp.zeros((2, 0))), np.full((2, 2), np.nan, np.float32))
        x, weights = self.numbers("float32", (3, 4)), self.numbers("float32", (3, 4), 1, 5)
        for a in self.layouts(x):
            w = self.device_array(weights)
            self.assert_all(cp.average(a), x.mean())
            for axis in (None, 0, 1, -1):
                self.assert_all(cp.average(a, axis, w), np.average(x, axis=axis, weights=weights))
            self.assert_all(cp.average(a, -1, w[0]), np.average(x, axis=-1, weights=weights[0]))
            self.assert_all(cp.average(a, (1, 0), w.T), np.average(x, weights=weights))
            self.assert_all(cp.average(a[None], (2, 0), w[:1].T), np.average(x, axis=1, weights=weights[0]))
            for q in (0, 12.5, 100, [25, 50]):
                self.assert_all(cp.percentile(a, q, axis=1), np.percentile(x, q, axis=1), "float32")
        self.assert_all(cp.average(cp.asarray([1, 2, 4]), weights=cp.asarray([1, 1, 2])), np.float32(2.75))
        # Sums and squares of float16 do not fit in it.
        far = cp.asarray([[3e4, -3e4, 1e4, -1e4], [-200, 600, 0, -400]], dtype=cp.float16)
        self.assertEqual(float(cp.average(cp.full(100, 1000, dtype=cp.float16), weights=cp.ones(100, dtype=cp.float16))), 1000.0)
        self.assertEqual(float(cp.nanstd(far)), float(cp.std(far)))
        self.assertEqual(float(cp.trapezoid(cp.full(4, 6e4, dtype=cp.float16), dx=0.125)), 22496.0)
        self.assertEqual(cp.cov(far[1] / 2).tolist(), float(cp.var(far[1] / 2, correction=1)))
        correlations = cp.astype(cp.corrcoef(far), cp.float32)
        expected = np.corrcoef(np.asarray(cp.astype(far, cp.float32)))
        np.testing.assert_allclose(np.asarray(correlations), expected, atol=1e-3)
        np.testing.assert_allclose(np.asarray(cp.corrcoef(cp.astype(far, cp.float32) * 1e30)), expected, atol=1e-6)
        self.assertAlmostEqual(float(cp.nanstd(cp.asarray([1e20, 1.2e20, 0.8e20, np.nan]))) / 1.6329932e19, 1, 6)
        with self.assertRaises(ValueError):
            cp.average(cp.ones((3, 4)), weights=cp.ones(3))
        with self.assertRaises(ValueError):
            cp.cov(cp.ones((2, 2, 2)))

    def test_digitize(self):
        x = np.array([[-1.0, 0.0, 0.5], [1.0, 2.5, np.nan]], np.float32)
        for bins in ([0.0, 1.0, 2.5], [2.5, 1.0, 0.0], [1.0], [1.0, 1.0]):
            for right in (False, True):
                for kind in ("float32", "int32"):
                    values = np.nan_to_num(x).astype(kind) if kind == "int32" else x
                    found = cp.digitize(self.device_array(values), cp.asarray(bins), right=right)
                    self.assert_same(found, np.digitize(values, bins, right), note=f"{bins} {right} {kind}")
        with self.assertRaises(ValueError):
            cp.digitize(cp.ones(2), cp.asarray([0.0, 2.0, 1.0]))

    def test_interp(self):
        for dtype in FLOATS:
            xp = np.array([-2.0, -0.5, 1.0, 1.25, 4.0], dtype)
            fp = np.array([1.0, 3.0, -2.0, np.inf, np.inf], dtype)
            x = np.array([[-9.0, -2.0, -1.0], [-0.5, 0.3, 1.0], [1.1, 3.0, 4.0], [9.0, np.nan, np.inf]], dtype)
            for a in self.layouts(x):
                for ends in ({}, {"left": -7.0}, {"left": 0.0, "right": 8.0}):
                    for n in (3, 5):
                        found = cp.interp(a, cp.asarray(xp[:n]), cp.asarray(fp[:n]), **ends)
                        self.assert_all(found, np.interp(x, xp[:n], fp[:n], **ends), dtype, f"{n} {ends}")
            single = cp.interp(self.device_array(x), cp.asarray(xp[:1]), cp.asarray(fp[:1]))
            self.assert_all(single, np.where(np.isnan(x), np.nan, 1.0), dtype)
        self.assertEqual(float(cp.interp(1.5, cp.asarray([1, 2]), cp.asarray([10, 20]))), 15.0)
        self.assertAlmostEqual(float(cp.interp(0.75, cp.asarray([0, 1]), cp.asarray([-3e38, 3e38]))) / 1.5e38, 1, 6)
        self.assertEqual(cp.gradient(cp.asarray([-3e38, 0.0, 3e38])).tolist(), [float(np.float32(3e38))] * 3)
        self.assertEqual(cp.interp(cp.zeros((0, 2)), cp.asarray([1.0]), cp.asarray([1.0])).shape, (0, 2))
        for dtype in FLOATS:
            x = np.array([-180.0, -170.0, -185.0, 185.0, -10.0, -5.0, 0.0, 365.0, np.nan, 359.0, 10.0, 720.0], dtype)
            xp, fp = np.array([190.0, -190.0, 350.0, -350.0], dtype), np.array([5.0, 10.0, 3.0, 4.0], dtype)
            for period in (360, -360.0, 90.0):
                for n in (1, 2, 4):
                    points = cp.asarray(xp[:n]), cp.asarray(fp[:n])
                    found = cp.interp(self.device_array(x), *points, left=0.0, period=period)
                    self.assert_all(found, np.interp(x, xp[:n], fp[:n], period=period), dtype, f"{n} {period}")
        for wrong in (lambda: cp.interp(cp.zeros(2), cp.zeros(0), cp.zeros(0)),
                      lambda: cp.interp(cp.zeros(2), cp.zeros(2), cp.zeros(2), period=0)):
            with self.assertRaises(ValueError):
                wrong()

    def test_slopes_and_integrals(self):
        for dtype in FLOATS + ("int32",):
            result = "float32" if dtype == "int32" else dtype
            x = self.numbers(dtype, (4, 5))
            places = np.array([0.0, 0.5, 2.0, 2.5, 4.0], result)
            for a in self.layouts(x):
                for order in (1, 2):
                    for axis in (0, 1, -1):
                        expected = np.gradient(x.astype(result), 0.5, axis=axis, edge_order=order)
                        self.assert_all(cp.gradient(a, 0.5, axis=axis, edge_order=order), expected, result)
                    expected = np.gradient(x.astype(result), places, axis=1, edge_order=order)
                    self.assert_all(cp.gradient(a, cp.asarray(places), axis=1, edge_order=order), expected, result)
                    expected = np.gradient(x.astype(result), 2.0, places, edge_order=order)
                    found = cp.gradient(a, 2.0, cp.asarray(places), edge_order=order)
                    for one, other in zip(found, expected, strict=True):
                        self.assert_all(one, other, result)
                for axis in (0, 1, -1):
                    self.assert_all(cp.trapezoid(a, dx=0.5, axis=axis), TRAPEZOID(x, dx=0.5, axis=axis), result)
                self.assert_all(cp.trapezoid(a, cp.asarray(places)), TRAPEZOID(x, places), result)
                self.assert_all(cp.trapezoid(a, cp.cumulative_sum(cp.astype(a, cp.float32), axis=0), axis=0),
                                TRAPEZOID(x, np.cumsum(x, 0), axis=0), result)
        self.assertEqual(float(cp.trapezoid(cp.zeros(0))), 0.0)
        for values in ([1.0, np.inf], [np.inf, 1.0, 2.0], [3e38, -3e38, 3e38]):
            self.assertEqual(float(cp.trapezoid(cp.asarray(values), dx=0.5)), float(TRAPEZOID(values, dx=0.5)))
        for wrong in (lambda: cp.gradient(cp.ones(1)), lambda: cp.gradient(cp.ones(2), edge_order=2),
                      lambda: cp.gradient(cp.ones((3, 3)), 1.0, 1.0, 1.0), lambda: cp.gradient(cp.ones(3), cp.ones(2))):
            with self.assertRaises(ValueError):
                wrong()

    def test_convolutions(self):
        for dtype in FLOATS + ("int32",) + COMPLEX:
            for n, m in ((7, 3), (6, 4), (1, 1), (2, 5), (4, 6), (5, 5)):
                x, y = self.numbers(dtype, (n,)), self.numbers(dtype, (m,))
                for a in self.layouts(x):
                    b = self.device_array(y)
                    for mode in ("full", "same", "valid"):
                        for name in ("convolve", "correlate"):
                            found, expected = getattr(cp, name)(a, b, mode=mode), getattr(np, name)(x, y, mode)
                            self.assert_all(found, expected, dtype, f"{name} {n} {m} {mode}")
        x = np.array([1.0, np.nan, 2.0, 3.0, np.inf], np.float32)
        found = cp.convolve(self.device_array(x), cp.asarray([1.0, 2.0]))
        self.assert_all(found, np.convolve(x, [1.0, 2.0]), "float32")
        # NaN and infinities reach the sums that they are in, and no others.
        for dtype in FLOATS + COMPLEX[:1]:
            for n, m in ((7, 4), (4, 7), (5, 5)):
                for value in (np.nan, np.inf, -np.inf) if dtype in FLOATS else (np.nan,):
                    for place in range(m):
                        x, y = self.numbers(dtype, (n,)), self.numbers(dtype, (m,))
                        y[place] = value
                        for mode in ("full", "same", "valid"):
                            for name in ("convolve", "correlate"):
                                with np.errstate(invalid="ignore"):
                                    expected = getattr(np, name)(x, y, mode)
                                call = lambda: getattr(cp, name)(self.device_array(x), cp.asarray(y), mode=mode)
                                self.assert_all(call(), expected, dtype, f"{name} {n} {m} {mode} {value} {place}")
                    with cp.stream():  # nothing is looked at while work is queued
                        found = call()
                    self.assert_all(found, expected, dtype)
        for wrong in (lambda: cp.convolve(cp.ones(0), cp.ones(2)), lambda: cp.correlate(cp.ones((2, 2)), cp.ones(2)),
                      lambda: cp.convolve(cp.ones(2), cp.ones(2), mode="all")):
            with self.assertRaises(ValueError):
                wrong()

    def test_kronecker_products(self):
        for dtype in FLOATS + ("int32",) + COMPLEX:
            for first, second in (((2, 3), (3, 2)), ((2,), (3,)), ((2,), (2, 3)), ((2, 1, 3), (2, 2)), ((), (2,)),
                                  ((0,), (2,))):
                x, y = self.numbers(dtype, first), self.numbers(dtype, second)
                for a in self.layouts(x):
                    self.assert_all(cp.kron(a, self.device_array(y)), np.kron(x, y), dtype)

    def test_choices(self):
        cp.random.seed(5)
        x = cp.asarray(np.arange(12, dtype=np.float32).reshape(4, 3))
        rows = np.asarray(cp.random.choice(x, (50, 2)))
        self.assertEqual(rows.shape, (50, 2, 3))
        self.assertEqual(set(rows[..., 0].ravel().tolist()), {0.0, 3.0, 6.0, 9.0})
        self.assertTrue((rows[..., 1] == rows[..., 0] + 1).all())
        self.assertEqual(sorted(cp.random.choice(6, 6, replace=False).tolist()), list(range(6)))
        self.assertEqual(cp.random.choice(x, axis=-1).shape, (4,))
        drawn = np.asarray(cp.random.choice(3, 4000, p=cp.asarray([1.0, 0.0, 3.0])))
        self.assertEqual(set(drawn.tolist()), {0, 2})
        self.assertAlmostEqual((drawn == 2).mean(), 0.75, delta=0.05)
        drawn = np.asarray(cp.multinomial(cp.asarray([0.0, 1.0, 0.0, 2.0, 5.0, 0.0]), 4000, replacement=True))
        for at, share in ((1, 1 / 8), (3, 2 / 8), (4, 5 / 8)):
            self.assertAlmostEqual((drawn == at).mean(), share, delta=0.05)
        rows = cp.asarray([[0.0, 1.0, 3.0], [0.0, 0.0, 0.0], [2.0, 0.0, 2.0]])
        drawn = np.asarray(cp.multinomial(rows, 4000, replacement=True))
        self.assertEqual(drawn.shape, (3, 4000))
        self.assertTrue(((drawn >= 0) & (drawn < 3)).all())
        self.assertEqual(set(drawn[2].tolist()), {0, 2})
        for row, at, share in ((0, 0, 0.0), (0, 1, 0.25), (2, 0, 0.5)):
            self.assertAlmostEqual((drawn[row] == at).mean(), share, delta=0.05)
        first = []
        for _ in range(600):
            pair = cp.random.choice(3, 2, replace=False, p=cp.asarray([1.0, 0.0, 3.0])).tolist()
            self.assertEqual(sorted(pair), [0, 2])
            first.append(pair[0])
        self.assertAlmostEqual(first.count(2) / 600, 0.75, delta=0.1)
        self.assertEqual(cp.random.choice(5, 0).shape, (0,))
        for wrong in (lambda: cp.random.choice(0, 2), lambda: cp.random.choice(2, 3, replace=False),
                      lambda: cp.random.choice(2, 1, p=cp.ones(3)),
                      lambda: cp.random.choice(3, 2, replace=False, p=cp.asarray([0.0, 0.0, 1.0]))):
            with self.assertRaises(ValueError):
                wrong()

    def test_shuffles(self):
        x = self.device_array(np.arange(40, dtype=np.int32).reshape(20, 2))
        self.assertIsNone(cp.random.shuffle(x))
        rows = np.asarray(x)
        self.assertTrue((rows[:, 1] == rows[:, 0] + 1).all())
        self.assertEqual(sorted(rows[:, 0].tolist()), list(range(0, 40, 2)))
        self.assertNotEqual(rows[:, 0].tolist(), list(range(0, 40, 2)))
        cp.random.shuffle(x[5:10], axis=1)
        self.assertEqual(sorted(np.asarray(x).ravel().tolist()), list(range(40)))

    def check_gradient(self, function, *arrays):
        """Compares gradients with differences; the functions are smooth near the arrays."""
        weights = np.random.default_rng(3)

        def loss(*inputs):
            found = function(*inputs)
            return cp.sum(found * cp.asarray(factor))

        factor = np.asarray(weights.integers(1, 5, function(*map(cp.asarray, arrays)).shape), arrays[0].dtype)
        found = cp.grad.gradients(loss)(*map(self.device_array, arrays))
        for i, x in enumerate(arrays):
            expected = np.zeros_like(x)
            for place in np.ndindex(x.shape):
                values = []
                for step in (-0.0625, 0.0625):
                    moved = [one.copy() for one in arrays]
                    moved[i][place] += step
                    values.append(float(loss(*map(self.device_array, moved))))
                expected[place] = (values[1] - values[0]) / 0.125
            got = found if len(arrays) == 1 else found[i]
            np.testing.assert_allclose(np.asarray(got)[~np.isnan(x)], expected[~np.isnan(x)], rtol=0.02, atol=0.02)
            self.assertEqual(np.asarray(got)[np.isnan(x)].tolist(), [0.0] * int(np.isnan(x).sum()))

    def test_gradients(self):
        x = np.array([[1.0, -2.0, 0.5, 3.0], [4.0, 2.5, -1.0, 0.25]], np.float32)
        nan = x.copy()
        nan[0, 1] = np.nan
        for function in (cp.nansum, cp.nanprod, cp.nanmean, cp.nanvar, cp.nanstd, cp.nanmax, cp.nanmin):
            self.check_gradient(lambda a: function(a, axis=1), nan)
        y = np.array([0.5, 2.0, -1.0], np.float32)
        self.check_gradient(lambda a: cp.split(a, 2, axis=1)[1], x)
        for mode in ("full", "same", "valid"):
            self.check_gradient(lambda a, b: cp.convolve(a, b, mode=mode), x[0], y)
            self.check_gradient(lambda a, b: cp.correlate(a, b, mode=mode), y, x[0])
        self.check_gradient(cp.kron, x, y)
        self.check_gradient(lambda a: cp.gradient(a, 0.5, axis=1, edge_order=2), x)
        self.check_gradient(lambda a: cp.trapezoid(a, cp.asarray(np.array([0.0, 1.0, 1.5, 4.0], np.float32))), x)
        self.check_gradient(lambda a, w: cp.average(a, 1, w), x, np.abs(x))
        self.check_gradient(lambda a: cp.block([[a, a], [2 * a, 1 / (a + 8)]]), x)
        self.check_gradient(lambda a, w: cp.average(a[None], axis=(0, 2), weights=w), x, np.abs(x[:1]))
        for function in (cp.nn.mse_loss, cp.nn.cosine_similarity, lambda a, b: cp.nn.kl_div(b, cp.abs(a)), lambda a, b: cp.nn.nll_loss(a * b, [3, 0])):
            self.check_gradient(lambda a, b: function(a, b) + cp.zeros(2), x, 2 * x[::-1] + 1)
        for function in (cp.nn.normalize, lambda a: cp.nn.pad(a * a, (1, 2)), lambda a: cp.nn.avg_pool2d((a * a)[None, None], 2, padding=1), lambda a: cp.split(a * a, [1, 3], dim=1)[1]):
            self.check_gradient(function, x)
        self.check_gradient(cp.cov, x)
        self.check_gradient(lambda at, values: cp.interp(at, cp.asarray([0.0, 1.0, 3.0]), values),
                            np.array([-1.0, 0.5, 2.0, 4.0], np.float32), y)
        self.check_gradient(lambda at, values: cp.interp(at, cp.asarray([0.0, 1.0, 3.0]), values, period=4.0),
                            np.array([-1.0, 0.5, 2.0, 7.5], np.float32), y)
