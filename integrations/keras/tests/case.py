# SPDX-License-Identifier: Apache-2.0
"""What the tests share. Results are compared with NumPy's in float64."""
import os
import unittest

os.environ["KERAS_BACKEND"] = "compute"

import keras_compute  # noqa: E402, F401  before keras
import keras  # noqa: E402
import numpy as np  # noqa: E402
from keras import ops  # noqa: E402


class Case(unittest.TestCase):
    def setUp(self):
        keras.utils.set_random_seed(1)
        self.random = np.random.default_rng(1)

    def values(self, *shape, dtype="float32"):
        if dtype.startswith(("int", "uint")):
            return self.random.integers(1, 9, shape).astype(dtype)
        return self.random.normal(size=shape).astype(dtype)

    def close(self, found, expected, tolerance=2e-5):
        """Compares tensors, or lists of them, with arrays of NumPy."""
        if isinstance(expected, (list, tuple)):
            self.assertEqual(len(found), len(expected))
            for one, other in zip(found, expected):
                self.close(one, other, tolerance)
            return
        found, expected = ops.convert_to_numpy(found), np.asarray(expected)
        self.assertEqual(found.shape, expected.shape)
        scale = max(1.0, float(np.max(np.abs(expected), initial=0, where=np.isfinite(expected))))
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * scale)


def in_float64(x):
    """The arguments of a function of NumPy with numbers of float64."""
    if isinstance(x, np.ndarray) and x.dtype == np.float32:
        return x.astype(np.float64)
    return type(x)(map(in_float64, x)) if isinstance(x, (list, tuple)) else x
