# SPDX-License-Identifier: Apache-2.0
"""compute.fft, compared with NumPy."""
import unittest

import compute as cp
import numpy as np
from compute import fft, grad

from case import COMPLEX, FLOATS, NARROW, Case

LENGTHS = (1, 4, 11) if NARROW else (1, 2, 3, 4, 5, 7, 8, 11, 12, 13, 30, 64, 97, 105)
NORMS = ("backward",) if NARROW else ("backward", "ortho", "forward")
TOLERANCE = {"float32": 1e-5, "float64": 1e-13, "complex64": 1e-5, "complex128": 1e-13}


def part_of(dtype):
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


class Transforms(Case):
    def compare(self, name, x, **arguments):
        """Results of NumPy are float64 where it computes in float64, whatever the argument."""
        found = getattr(fft, name)(self.device_array(x), **arguments)
        expected = getattr(np.fft, name)(x.astype("complex128" if x.dtype.kind == "c" else "float64"), **arguments)
        single = part_of(x.dtype.name) == "float32"
        dtype = {("c", True): "complex64", ("f", True): "float32"}.get((expected.dtype.kind, single), expected.dtype.name)
        scale = max(float(np.max(np.abs(expected))), 1.0)
        self.assertEqual(found.dtype.name, dtype)
        self.assertEqual(found.shape, expected.shape)
        np.testing.assert_allclose(np.asarray(found) / scale, expected / scale, rtol=0, atol=TOLERANCE[dtype], err_msg=f"{name} {x.shape} {arguments}")

    def test_one_axis(self):
        for dtype in COMPLEX + FLOATS:
            for n in LENGTHS:
                x = self.numbers(dtype, (3, n))
                for name in ("fft", "ifft", "hfft") + (("rfft", "ihfft") if dtype in FLOATS else ("irfft",)):
                    if n == 1 and name in ("hfft", "irfft"):
                        continue
                    for norm in NORMS:
                        self.compare(name, x, norm=norm)
            self.compare("fft", self.numbers(dtype, (6, 4)), axis=0)

    def test_lengths_that_are_given(self):
        x = self.numbers("complex64", (6, 5))
        for n in (1, 4, 8):
            for name in ("fft", "ifft", "irfft", "hfft"):
                self.compare(name, x, n=n)
            for name in ("rfft", "ihfft"):
                self.compare(name, x.real, n=n, axis=0)
        for name in ("fftn", "ifftn", "irfftn"):
            self.compare(name, x, s=(4, 6), axes=(0, 1))
            self.compare(name, x, s=(3,), axes=(0,))
        self.compare("rfftn", x.real, s=(4, 8), axes=(1, 0))

    @unittest.skipIf(NARROW, "the same ops as along one axis")
    def test_several_axes(self):
        for dtype in COMPLEX + FLOATS:
            x = self.numbers(dtype, (4, 3, 6))
            for name in ("fftn", "ifftn") + (("rfftn",) if dtype in FLOATS else ("irfftn",)):
                for axes in (None, (0,), (1, 2), (2, 0)):
                    self.compare(name, x, axes=axes)
        self.assert_same(fft.fftn(cp.ones((2, 3)), axes=()), np.ones((2, 3), np.complex64))

    def test_views(self):
        x = self.numbers("complex64", (8, 12))
        y = self.device_array(x)
        for view in (lambda a: a.T, lambda a: a[::2, ::-3], lambda a: a[:, 3:8]):
            expected = np.fft.fft(view(x))
            np.testing.assert_allclose(np.asarray(fft.fft(view(y))), expected, rtol=0, atol=1e-4)

    def test_integers_are_floats(self):
        self.assertIs(fft.fft(cp.asarray([1, 2, 3])).dtype, cp.complex64)
        self.assertIs(fft.rfft(cp.asarray([True, False])).dtype, cp.complex64)

    def test_refusals(self):
        x = cp.ones((2, 3))
        for call in (lambda: fft.fft(x, n=0), lambda: fft.fftn(x, s=(2,), axes=(0, 1)), lambda: fft.fftn(x, axes=(1, 1)), lambda: fft.irfft(cp.ones(1)),
                     lambda: fft.fft(x, norm="both"), lambda: fft.fftfreq(0)):
            with self.assertRaises(ValueError):
                call()
        with self.assertRaises(IndexError):
            fft.fft(x, axis=2)
        for call in (lambda: fft.fft(x, n=1.5), lambda: fft.fft(cp.ones(3, dtype=cp.float16)), lambda: fft.rfft(x + 1j)):
            with self.assertRaises(TypeError):
                call()


class Frequencies(Case):
    def test_frequencies(self):
        for n in (1, 2, 5, 8):
            for d in (1.0, 0.25):
                self.assert_same(fft.fftfreq(n, d=d), np.fft.fftfreq(n, d).astype(np.float32), 1e-6)
                self.assert_same(fft.rfftfreq(n, d=d), np.fft.rfftfreq(n, d).astype(np.float32), 1e-6)

    def test_shifts(self):
        x = self.numbers("float32", (4, 5))
        y = self.device_array(x)
        for axes in (None, 0, (1,), (0, 1)):
            self.assert_same(fft.fftshift(y, axes=axes), np.fft.fftshift(x, axes))
            self.assert_same(fft.ifftshift(y, axes=axes), np.fft.ifftshift(x, axes))


@unittest.skipIf(NARROW, "the rules are the same on every device")
class Gradients(Case):
    def check(self, function, x):
        """The slope along a direction, in both parts, compared with differences."""
        weights = self.random.uniform(0.5, 1.5, np.asarray(function(self.device_array(x))).shape)

        def value(y):
            y = function(y)
            parts = cp.real(y) + 3 * cp.imag(y) if y.dtype is cp.complex128 else y
            return cp.sum(parts * self.device_array(weights))

        slope = np.asarray(grad.gradients(value)(self.device_array(x)))
        self.assertEqual(slope.dtype, x.dtype)
        direction = self.random.uniform(0.5, 1.5, x.shape) + (1j * self.random.uniform(0.5, 1.5, x.shape) if x.dtype.kind == "c" else 0)
        ends = [float(value(self.device_array(x + sign * 1e-4 * direction))) for sign in (1, -1)]
        np.testing.assert_allclose(np.sum((slope * np.conj(direction)).real), (ends[0] - ends[1]) / 2e-4, rtol=1e-7, atol=1e-7)

    def test_gradients(self):
        z = self.random.uniform(-1, 1, (3, 5)) + 1j * self.random.uniform(-1, 1, (3, 5))
        for norm in NORMS:
            for axes in ((1,), (0,), (0, 1), (1, 0)):
                for inverse in (fft.fftn, fft.ifftn):
                    for x in (z, z.real.copy()):
                        self.check(lambda y: inverse(y, axes=axes, norm=norm), x)
                self.check(lambda y: fft.rfftn(y, axes=axes, norm=norm), z.real.copy())
                self.check(lambda y: fft.rfftn(y, s=(4,) * len(axes), axes=axes, norm=norm), z.real.copy())
                for last in (4, 5):
                    self.check(lambda y: fft.irfftn(y, s=(3,) * (len(axes) - 1) + (last,), axes=axes, norm=norm), z)
            self.check(lambda y: fft.hfft(y, norm=norm), z)
            self.check(lambda y: fft.ihfft(y, norm=norm), z.real.copy())


if __name__ == "__main__":
    unittest.main()
