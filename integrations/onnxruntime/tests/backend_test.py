# SPDX-License-Identifier: Apache-2.0
"""ONNX's own tests of nodes, each with this provider alone: what it claims it must compute."""
import collections
import os
import warnings

from case import OURS, np, onnx, onnxruntime, onnxruntime_compute, session_of, unittest
from onnx.backend.test.loader import load_model_tests

# The expected result was rounded after every node, and fused nodes round once: the two differ by two units of float16.
TWO_UNITS = {"test_attention_4d_causal_fp16_expanded"}
EXPECTED_CLAIMS = 1326  # at least so many cases run on this provider alone


def arrays(values):
    return [onnx.numpy_helper.to_array(one) if isinstance(one, onnx.TensorProto) else np.asarray(one) for one in values]


class Backend(unittest.TestCase):
    def test_nodes(self):
        onnxruntime.set_default_logger_severity(4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cases = load_model_tests(kind="node")
        known = set(onnxruntime_compute.op_names())
        claimed, failures, left = 0, [], collections.defaultdict(list)
        only = os.environ.get("ONLY", "")
        for case in cases:
            if only not in case.name:
                continue
            ops = {node.op_type for node in case.model.graph.node}
            values = [*case.model.graph.input, *case.model.graph.output]
            dtypes = {value.type.tensor_type.elem_type for value in values}
            if ops == {"Constant"} or onnx.TensorProto.BFLOAT16 in dtypes:
                continue  # no nodes, or a dtype that ONNX Runtime does not take from NumPy
            try:
                session = session_of(case.model, alone=True)
            except Exception as error:  # noqa: BLE001  a node runs elsewhere, or ONNX Runtime does not know it
                text = str(error)
                if ops <= known and "fallback" in text:
                    left[" ".join(sorted(ops))].append(case.name)
                elif "fallback" not in text and "INVALID_GRAPH" not in text and OURS in text:
                    failures.append(f"{case.name}: {text[:300]}")
                continue
            claimed += 1
            runs = onnxruntime_compute.counters()["runs"]
            for inputs, outputs in case.data_sets:
                try:
                    feed = dict(zip((value.name for value in session.get_inputs()), arrays(inputs)))
                    for _ in range(2):  # traced, and repeated
                        self.compare(session.run(None, feed), arrays(outputs), case)
                except Exception as error:  # noqa: BLE001
                    failures.append(f"{case.name}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
                    break
            if onnxruntime_compute.counters()["runs"] == runs:
                failures.append(f"{case.name}: nothing ran on the provider")
        print(f"{claimed} of {len(cases)} cases ran on {OURS}")
        for ops, names in sorted(left.items()):
            print(f"left, {ops}: {' '.join(names)}")
        self.assertFalse(failures, "\n" + "\n".join(failures))
        if not only:
            self.assertGreaterEqual(claimed, EXPECTED_CLAIMS)

    def compare(self, found, expected, case):
        self.assertEqual(len(found), len(expected))
        for one, other in zip(found, expected):
            one = np.asarray(one)
            self.assertEqual(one.shape, other.shape)
            self.assertEqual(one.dtype, other.dtype)
            if one.dtype.kind in "fV":
                one, other = one.astype(np.float64), other.astype(np.float64)
            if case.name in TWO_UNITS:
                unit = np.spacing(np.abs(other).astype(np.float16)).astype(np.float64)
                self.assertTrue(np.all(np.abs(one - other) <= 2 * unit))
                continue
            np.testing.assert_allclose(one, other, rtol=case.rtol, atol=case.atol)


if __name__ == "__main__":
    unittest.main()
