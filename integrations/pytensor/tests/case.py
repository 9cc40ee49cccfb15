# SPDX-License-Identifier: Apache-2.0
"""What the tests share: functions in the mode COMPUTE beside those of PyTensor's own interpreter."""
import unittest

import numpy as np
import pytensor
from pytensor.compile.mode import Mode
from pytensor.link.basic import PerformLinker

import compute_pytensor
from compute_pytensor import report, values

REFERENCE = Mode(PerformLinker(), "fast_compile")


class Case(unittest.TestCase):
    def setUp(self):
        compute_pytensor.reset_report()
        self.random = np.random.default_rng(1)

    def values(self, *shape, dtype="float32"):
        if dtype == "bool":
            return self.random.random(shape) < 0.5
        if dtype.startswith(("int", "uint")):
            return self.random.integers(0 if dtype[0] == "u" else -5, 9, shape).astype(dtype)
        found = self.random.normal(size=shape)
        if dtype.startswith("complex"):
            found = found + 1j * self.random.normal(size=shape)
        return found.astype(dtype)

    def check(self, inputs, outputs, *given, on_host=(), tolerance=None):
        """Compares with PyTensor's interpreter, and expects that only the named ops run by NumPy."""
        outputs = outputs if isinstance(outputs, list) else [outputs]
        made = pytensor.function(inputs, outputs, mode="COMPUTE", on_unused_input="ignore")
        found = made(*given)
        expected = pytensor.function(inputs, outputs, mode=REFERENCE, on_unused_input="ignore")(*given)
        for one, other in zip(found, expected):
            self.assertIsInstance(one, np.ndarray)
            other = np.asarray(other)
            self.assertEqual((one.dtype, one.shape), (other.dtype, other.shape))
            narrow = other.dtype in (np.float32, np.complex64)
            bound = tolerance or (3e-3 if other.dtype == np.float16 else 2e-5 if narrow else 1e-10)
            np.testing.assert_allclose(one, other, rtol=bound, atol=bound)
        reasons = {name: reason for name, reason, _, _ in report.entries()}
        lacking = [name for name, reason in reasons.items() if reason.startswith(f"{values.device().name} has no ")]
        self.assertEqual(set(reasons) - set(lacking), set(on_host) - set(lacking))
        return made
