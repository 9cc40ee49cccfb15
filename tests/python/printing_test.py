# SPDX-License-Identifier: Apache-2.0
"""Text of arrays, against NumPy's."""
import compute as cp
import numpy as np

from case import ALL, Case


class Printing(Case):
    def test_text_is_that_of_numpy(self):
        for dtype in ALL:
            for shape in ((), (1,), (3,), (30,), (2, 3), (2, 1, 3), (2, 2, 2), (1001,), (50, 50)):
                x = self.numbers(dtype, shape, -100, 100)
                self.assertEqual(str(cp.asarray(x, device="cpu")), str(x), f"{dtype} {shape}")

    def test_floats(self):
        for scale in (1e-9, 1e-3, 1.0, 1e5, 1e9):
            for dtype in ("float32", "float64"):
                x = (self.random.standard_normal(12) * scale).astype(dtype)
                self.assertEqual(str(cp.asarray(x, device="cpu")), str(x))
        x = np.array([np.nan, np.inf, -np.inf, 0.5])
        self.assertEqual(str(cp.asarray(x, device="cpu")), str(x))

    def test_the_greatest_numbers(self):
        for dtype in ("float16", "float32", "float64"):
            greatest = np.finfo(dtype).max
            for value in (greatest, np.nextafter(greatest, greatest.dtype.type(0)), -greatest):
                x = cp.asarray([float(value)], dtype=dtype, device="cpu")
                np.testing.assert_allclose(float(str(x)[1:-1]), float(value), rtol=1e-3 if dtype == "float16" else 1e-7)
                self.assertIn(dtype, repr(x))
        self.assertEqual(str(cp.asarray([float(cp.finfo(cp.bfloat16).max)], dtype=cp.bfloat16, device="cpu")), "[3.39e+38]")
        self.assertEqual(cp.asarray([65520.0, -1e9, 65519.0, 3], dtype=cp.float16, device="cpu").tolist(),
                         [np.inf, -np.inf, 65504.0, 3.0])

    def test_repr(self):
        self.assertEqual(repr(cp.asarray([1.0, 2.5], device="cpu")), "Array([1. , 2.5], dtype=float32)")
        self.assertEqual(repr(cp.asarray([[1], [2]], device="cpu")), "Array([[1],\n       [2]], dtype=int64)")
        self.assertEqual(repr(cp.asarray(True, device="cpu")), "Array(True, dtype=bool)")
        self.assertEqual(repr(cp.zeros((0, 2), device="cpu")), "Array([], shape=(0, 2), dtype=float32)")
        self.assertEqual(repr(cp.zeros(2000, device="cpu")),
                         "Array([0., 0., 0., ..., 0., 0., 0.], shape=(2000,), dtype=float32)")
        self.assertRegex(repr(cp.zeros((100, 100), device="cpu")), r"0\.\]\], shape=\(100, 100\), dtype=float32\)$")
        self.assertEqual(repr(cp.float32), "compute.float32")
        self.assertEqual(repr(cp.device("cpu")), "Device('cpu')")
        self.assertEqual(f"{cp.asarray(0.125, device='cpu'):.2f}", "0.12")

    def test_html(self):
        x = cp.asarray([[1.0, 2.5]], device="cpu")
        self.assertEqual(x._repr_html_(), "<table><tr><th>shape</th><td>(1, 2)</td></tr><tr><th>dtype</th><td>float32</td></tr>"
                                          "<tr><th>device</th><td>cpu</td></tr></table><pre>[[1.  2.5]]</pre>")
        for shape in ((2000, 2000), (2,) * 16, (0, 3), ()):
            self.assertLess(len(cp.zeros(shape)._repr_html_()), 1000)
