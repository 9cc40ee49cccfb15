# SPDX-License-Identifier: Apache-2.0
"""float8: numbers of Python, limits, printing, promotion, files, NumPy with ml_dtypes, and what is refused."""
import io
import math
import unittest

import compute as cp
import numpy as np

from case import Case

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

BOTH = (cp.float8_e4m3fn, cp.float8_e5m2)


def every_code(dtype):
    return cp.arange(256, dtype=cp.uint8).view(dtype)


class Float8(Case):
    def test_dtypes(self):
        for dtype, name in zip(BOTH, ("float8_e4m3fn", "float8_e5m2")):
            self.assertEqual((dtype.name, dtype.itemsize, dtype.kind, str(dtype)), (name, 1, "f", f"compute.{name}"))
            self.assertIs(cp.zeros(1, dtype=name).dtype, dtype)
            self.assertTrue(cp.isdtype(dtype, "real floating") and cp.is_floating_point(cp.zeros(1, dtype=dtype)))
        self.assertEqual(tuple(cp.finfo(cp.float8_e4m3fn))[:5], (8, 0.125, 448.0, -448.0, 2.0 ** -6))
        self.assertEqual(tuple(cp.finfo(cp.float8_e5m2))[:5], (8, 0.25, 57344.0, -57344.0, 2.0 ** -14))

    def test_numbers(self):
        """Lists are rounded as the library rounds arrays."""
        numbers = [0.0, -0.0, 0.3, -1.1, 17.0, 19.0, 448.0, 464.0, 464.1, 1e9, 61439.0, 61440.0, 1e-3, 2.0 ** -17, 3 * 2.0 ** -17, math.inf, -math.inf, math.nan]
        for dtype in BOTH:
            own, converted = cp.asarray(numbers, dtype=dtype), cp.astype(cp.asarray(numbers, dtype=cp.float64), dtype)
            self.assertEqual(own.view(cp.uint8).tolist(), converted.view(cp.uint8).tolist())
            for code in (0x00, 0x01, 0x37, 0x80, 0x9c):
                x = every_code(dtype)[code]
                self.assertEqual((x.item(), float(x)), (cp.astype(x, cp.float32).item(),) * 2)
            x = cp.zeros(4, dtype=dtype)
            x[1], x[2:] = 1.1, cp.ones(2, dtype=dtype)
            self.assertEqual(x.tolist(), [0.0, 1.125 if dtype is BOTH[0] else 1.0, 1.0, 1.0])
            self.assertEqual(cp.full((2,), 3, dtype=dtype).tolist(), [3.0, 3.0])

    def test_printing(self):
        self.assertEqual(repr(cp.asarray([0.1, 18, -2], dtype=cp.float8_e4m3fn, device="cpu")), "Array([ 0.1, 18. , -2. ], dtype=float8_e4m3fn)")
        self.assertEqual(repr(cp.asarray([0.3, math.inf], dtype=cp.float8_e5m2, device="cpu")), "Array([0.3, inf], dtype=float8_e5m2)")

    def test_promotion(self):
        x, y = (cp.ones(3, dtype=dtype) for dtype in BOTH)
        self.assertIs(cp.result_type(x, 1.0), cp.float8_e4m3fn)
        self.assertIs(cp.result_type(cp.int8, x), cp.float8_e4m3fn)
        for wrong in (cp.float32, cp.float16, cp.complex64, y, 1j):
            with self.assertRaises(TypeError):
                cp.result_type(x, wrong)
        self.assertFalse(cp.can_cast(cp.float8_e5m2, cp.float32))

    def test_refusals_name_the_remedy(self):
        x = cp.ones((2, 2), dtype=cp.float8_e4m3fn)
        for call in (lambda: x + x, lambda: x * 2, lambda: 0.5 - x, lambda: cp.exp(x), lambda: cp.sum(x), lambda: x < x, lambda: cp.sort(x), lambda: cp.max(x)):
            with self.assertRaises(TypeError) as caught:
                call()
            self.assertRegex(str(caught.exception), r"float8_e4m3fn.*astype\(\w+, float32\)")
        with self.assertRaises(TypeError):
            x @ cp.ones((2, 2))
        self.assertEqual(cp.sum(x, dtype=cp.float32).item(), 4.0)
        with self.assertRaises(TypeError):
            cp.save(io.BytesIO(), x)

    @unittest.skipIf(cp.device().name != "cpu", "of the package, not of devices")
    def test_nothing_converts_silently(self):
        """Of every function that takes arrays: what computes with float32 refuses float8, and the rest does not widen it."""
        wide = {cp.float16, cp.bfloat16, cp.float32, cp.float64, cp.complex64, cp.complex128}
        said = ("matmul", "mm", "bmm", "mv", "multi_dot", "float", "double", "half", "single", "cfloat", "cdouble", "float_")
        values = cp.asarray([[1.0, 2.0], [2.0, 5.0]])
        refused = set()
        for place in (cp, cp.linalg, cp.fft, cp.nn, cp.nn.functional):
            for name, function in vars(place).items():
                if name.startswith(("_", "set")) or name.endswith("Tensor") or name in said or isinstance(function, (type, cp.DType)) or not callable(function):
                    continue
                for more in (), (0.5,), (1,), (values,), (values, values):
                    try:
                        function(cp.copy(values), *more)
                    except Exception:
                        continue
                    for dtype in BOTH:
                        x, others = values.astype(dtype), [one.astype(dtype) if isinstance(one, cp.Array) else one for one in more]
                        with self.subTest(name=name, dtype=dtype.name):
                            try:
                                found = function(x, *others)
                            except (TypeError, BufferError) as error:
                                self.assertIn("float8", str(error))
                                refused.add(name)
                            else:
                                found = found if isinstance(found, (tuple, list)) else [found]
                                self.assertFalse(wide & {one.dtype for one in found if isinstance(one, cp.Array)})
                    break
        statistics = """sum prod max min mean var std median quantile percentile average nansum nanprod nanmax nanmin nanmean nanvar nanstd
            nanmedian nanquantile nanpercentile nanargmax nanargmin argmax argmin amax amin ptp var_mean std_mean cov corrcoef histogram
            histc cumulative_sum cumulative_prod cumulative_max cumulative_min cumsum cumprod logcumsumexp logsumexp
            trapezoid cumulative_trapezoid gradient diff norm vector_norm matrix_norm trace isclose allclose adaptive_avg_pool1d"""
        self.assertEqual(set(statistics.split()) - refused, set())
        x = values.astype(BOTH[0])
        for call in (lambda: cp.mean(x, where=x == x), lambda: cp.std(x, axis=0, keepdims=True), lambda: x.mean(), lambda: x.var(0), lambda: cp.median(x, dim=0),
                     lambda: cp.polyfit(x[0], x[1], 1), lambda: cp.polyfit([0, 1], x[0], 1), lambda: cp.interp(x[0], [1, 2], [3, 4]),
                     lambda: cp.average(x, weights=x), lambda: cp.average(cp.ones((2, 2)), weights=x), lambda: cp.nan_to_num(x),
                     lambda: cp.histogram(x, bins=[0.0, 2.0], weights=cp.ones((2, 2))), lambda: cp.digitize(x, [1, 2]), lambda: cp.histogram2d(x[0], x[1]), lambda: cp.bincount([0, 1], weights=x[0])):
            with self.assertRaisesRegex(TypeError, "float8"):
                call()
        self.assertEqual((cp.mean(x, dtype=cp.float32).item(), cp.var(x, dtype=cp.float32).item()), (2.5, 2.25))

    def test_moves_and_products(self):
        for dtype in BOTH:
            x = every_code(dtype)
            codes = list(range(256))
            self.assertEqual(cp.flip(x).view(cp.uint8).tolist(), codes[::-1])
            self.assertEqual(cp.concat([x[3:5], x[::100]]).view(cp.uint8).tolist(), [3, 4, 0, 100, 200])
            self.assertEqual(x[cp.asarray([7, 2])].view(cp.uint8).tolist(), [7, 2])
            a = np.arange(-6, 6, dtype=np.float32).reshape(3, 4) / 4
            b = np.arange(20, dtype=np.float32).reshape(4, 5) / 8
            left, right = cp.asarray(a).astype(dtype), cp.asarray(b).astype(cp.float8_e4m3fn)
            expected = np.asarray(left.astype(cp.float32)) @ np.asarray(right.astype(cp.float32))
            product = left @ right
            self.assertIs(product.dtype, cp.float32)
            np.testing.assert_array_equal(np.asarray(product), expected)
            out = cp.empty((3, 5), dtype=cp.float16)
            cp.matmul(left, right, out=out)
            np.testing.assert_array_equal(np.asarray(out), expected.astype(np.float16))

    def test_files_and_dlpack(self):
        for dtype in BOTH:
            file, x = io.BytesIO(), every_code(dtype)
            cp.save(file, {"w": x})
            file.seek(0)
            loaded = cp.load(file)["w"]
            self.assertIs(loaded.dtype, dtype)
            self.assertEqual(loaded.view(cp.uint8).tolist(), list(range(256)))
            again = cp.from_dlpack(x)
            self.assertIs(again.dtype, dtype)
            self.assertEqual(np.asarray(cp.ones(2, dtype=dtype)).tolist(), [1.0, 1.0])

    def test_ml_dtypes(self):
        if ml_dtypes is None:
            self.skipTest("ml_dtypes is not installed")
        codes = np.arange(256, dtype=np.uint8)
        for dtype in BOTH:
            theirs = codes.view(getattr(ml_dtypes, dtype.name))
            ours = cp.asarray(theirs)
            self.assertIs(ours.dtype, dtype)
            self.assertEqual(ours.view(cp.uint8).tolist(), codes.tolist())
            np.testing.assert_array_equal(np.asarray(cp.astype(ours, cp.float32)), theirs.astype(np.float32))
            with np.errstate(all="ignore"):
                numbers = np.concatenate([np.random.default_rng(7).normal(size=4000) * 100, [464, 465, 61440, 1e9, np.inf]]).astype(np.float32)
                converted = cp.astype(cp.asarray(numbers), dtype)
                np.testing.assert_array_equal(np.asarray(converted.view(cp.uint8)), numbers.astype(theirs.dtype).view(np.uint8))
        halves = cp.asarray(np.asarray([0.5, 3.0], dtype=ml_dtypes.bfloat16))
        self.assertEqual((halves.dtype, halves.tolist()), (cp.bfloat16, [0.5, 3.0]))
