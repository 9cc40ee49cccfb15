# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of the Python package, which compare with NumPy."""
import unittest

import compute as cp
import numpy as np

# A device that compiles a kernel for each op and dtype is tested with one dtype of each kind.
NARROW = cp.device().name != "cpu"
FLOATS = ("float32", "float64")[:1 if NARROW else 2]
COMPLEX = ("complex64", "complex128")[:1 if NARROW else 2]
SIGNED = ("int32", "int8", "int16", "int64")[:1 if NARROW else 4]
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")[:1 if NARROW else 4]
INTEGERS = SIGNED + UNSIGNED
NUMERIC = INTEGERS + FLOATS + COMPLEX
ALL = ("bool",) + NUMERIC


def some(dtypes):
    """Those of `dtypes` with which an op is tested: one where each takes a compilation, as ops have tests of their own."""
    return dtypes if not NARROW else [name for name in ("float32", "int32", *dtypes) if name in dtypes][:1]


class Case(unittest.TestCase):
    def setUp(self):
        self.random = np.random.default_rng(20251200)

    def numbers(self, dtype, shape, low=-4, high=5):
        """Random numbers that are small enough for products, and include zeros."""
        if dtype == "bool":
            return self.random.integers(0, 2, shape).astype(bool)
        if dtype in UNSIGNED:
            low = max(low, 0)
        values = self.random.integers(low, high, shape)
        if dtype in FLOATS:
            values = values + self.random.integers(0, 4, shape) / 4
        if dtype in COMPLEX:
            values = values + 1j * self.random.integers(low, high, shape)
        return np.asarray(values).astype(dtype)

    def device_array(self, values):
        """An array of its own on the default device."""
        return cp.asarray(np.array(values), copy=True)

    def assert_same(self, actual, expected, tolerance=0.0, note=""):
        """Compares shape, dtype and every element."""
        expected = np.asarray(expected)
        self.assertIsInstance(actual, cp.Array, note)
        self.assertEqual(actual.shape, expected.shape, note)
        self.assertEqual(actual.dtype.name, expected.dtype.name, note)
        got = np.asarray(actual)
        if tolerance:
            np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance, err_msg=note)
        else:
            np.testing.assert_array_equal(got, expected, err_msg=note)


TOLERANCE = {"float32": 2e-6, "float64": 1e-14, "complex64": 4e-6, "complex128": 1e-14}
