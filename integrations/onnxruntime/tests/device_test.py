# SPDX-License-Identifier: Apache-2.0
"""A device other than cpu: results, and tensors that stay there by IO binding."""
import os
import subprocess
import sys

from case import helper, model_of, np, onnxruntime, onnxruntime_compute, session_of, session_on_cpu, unittest
from session_test import network


@unittest.skipIf(os.environ.get("COMPUTE_DEVICE", "cpu") == "cpu", "COMPUTE_DEVICE names cpu")
class Device(unittest.TestCase):
    def setUp(self):
        self.random = np.random.default_rng(5)

    def test_a_network(self):
        for placement in ("always", "auto"):
            with self.subTest(placement=placement):
                self.run_network(session_of(network(), provider_options={"placement": placement}))

    def run_network(self, session):
        other = session_on_cpu(network())
        for shape in ((1, 3, 8, 8), (1, 3, 8, 8), (2, 3, 5, 9), (1, 3, 8, 8), (2, 3, 5, 9)):
            feed = {"x": self.random.normal(size=shape).astype(np.float32)}
            for one, expected in zip(session.run(None, feed), other.run(None, feed)):
                np.testing.assert_allclose(one, expected, rtol=1e-4, atol=1e-5)

    def test_io_binding(self):
        for placement in ("always", "auto"):
            with self.subTest(placement=placement):
                self.bind(placement)

    def bind(self, placement):
        model = model_of([helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Tanh", ["m"], ["y"])],
                         {"x": (np.float32, ["n", 8])}, {"y": (np.float32, ["n", 8])},
                         {"w": self.random.normal(size=(8, 8)).astype(np.float32)})
        session = session_of(model, alone=True, provider_options={"placement": placement})
        other = session_on_cpu(model)
        expected = self.random.normal(size=(4, 8)).astype(np.float32)
        device = next(one for one in onnxruntime.get_ep_devices() if one.ep_name == onnxruntime_compute.NAME)
        memory = device.memory_info(onnxruntime.OrtDeviceMemoryType.DEFAULT)
        value, result = (onnxruntime.OrtValue.ortvalue_from_shape_and_type([4, 8], np.float32, memory_info=memory)
                         for _ in range(2))
        host = onnxruntime.OrtValue.ortvalue_from_numpy(expected)
        onnxruntime.copy_tensors([host], [value])
        for _ in range(4):
            binding = session.io_binding()
            binding.bind_ortvalue_input("x", value)
            binding.bind_ortvalue_output("y", result)
            session.run_with_iobinding(binding)
            value, result = result, value
            expected = other.run(None, {"x": expected})[0]
        host = onnxruntime.OrtValue.ortvalue_from_shape_and_type([4, 8], np.float32)
        onnxruntime.copy_tensors([value], [host])
        np.testing.assert_allclose(host.numpy(), expected, rtol=1e-4, atol=1e-5)
        of_devices = {"CreateMemoryInfo_V2", "EpDevice_AddAllocatorInfo", "MemoryInfo_GetMemoryDevice",
                      "MemoryDevice_AreEqual", "MemoryDevice_GetDeviceType", "GetTensorSizeInBytes"}
        self.assertEqual(of_devices & set(onnxruntime_compute.uncalled_functions()), set())

    def test_placement(self):
        """A few products run on the host, many elements on the device; everything does if the program wants it."""
        program = """
import sys
import numpy as np, onnxruntime
from case import helper, model_of, session_of
rows, placement = int(sys.argv[1]), sys.argv[2]
model = model_of([helper.make_node("Mul", ["x", "y"], ["z"]), helper.make_node("ReduceMax", ["z"], ["m"])],
                 {"x": (np.float32, ["n", 1]), "y": (np.float32, [1, "n"])}, {"m": (np.float32, None)})
onnxruntime.set_default_logger_severity(1)
session = session_of(model, provider_options={"placement": placement})
x = np.arange(rows, dtype=np.float32)
for _ in range(3):
    found, = session.run(None, {"x": x.reshape(-1, 1), "y": x.reshape(1, -1)})
    assert found.item() == (rows - 1) ** 2, found
"""
        for rows, placement, goes in ((4, "auto", True), (4, "always", False), (4096, "auto", False)):
            with self.subTest(rows=rows, placement=placement):
                result = subprocess.run([sys.executable, "-B", "-c", program, str(rows), placement],
                                        capture_output=True, text=True, check=False)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual("runs on cpu for [" in result.stderr, goes, result.stderr)


if __name__ == "__main__":
    unittest.main()
