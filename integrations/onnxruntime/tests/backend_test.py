# SPDX-License-Identifier: Apache-2.0
"""ONNX's own tests of nodes, each with this provider alone: what it claims it must compute."""
import collections
import ctypes
import os
import warnings

from case import OURS, np, onnx, onnxruntime, onnxruntime_compute, session_of, unittest
from onnx.backend.test.loader import load_model_tests

# The expected results of attention in half types were rounded after every step, and ours are rounded once: the two
# differ by two units.
UNITS = {np.dtype(np.float16): 2.0 ** -10, np.dtype(onnx.helper.tensor_dtype_to_np_dtype(16)): 2.0 ** -7}
TWO_UNITS = {"test_attention_3d_causal_bf16", "test_attention_4d_causal_bf16", "test_attention_4d_causal_fp16",
             "test_attention_4d_attn_mask_causal_bf16", "test_attention_4d_padded_kv_bf16",
             "test_attention_4d_causal_padded_kv_bf16"}
# Sums of which some cancel: their errors are those of the terms.
TRANSFORMS = ("test_dft", "test_stft")
# Ops of the cases that the library has nothing for, with the reasons in README.md, and ops that ONNX Runtime replaces
# by others before it asks.
WITHOUT = set("""
    Bernoulli DeformConv ImageDecoder Loop MelWeightMatrix NonMaxSuppression RandomUniformLike RegexFullMatch RoiAlign
    Scan StringConcat StringNormalizer StringSplit TfIdfVectorizer
    Optional OptionalGetElement OptionalHasElement SequenceAt SequenceConstruct SequenceEmpty SequenceInsert
    SequenceLength SequenceMap SplitToSequence
    ArrayFeatureExtractor Binarizer LabelEncoder TreeEnsemble
    Adagrad Adam Momentum""".split())
REPLACED = set("""
    CausalConvWithState FlexAttention LinearAttention NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss SwiGLU""".split())
EXPECTED_CLAIMS = 1588  # at least so many cases run on this provider alone


# Their arrays have dtypes that ONNX Runtime does not take from NumPy.
OTHER_DTYPES = {onnx.TensorProto.BFLOAT16, onnx.TensorProto.FLOAT8E4M3FN, onnx.TensorProto.FLOAT8E5M2}


def value_of(array):
    bits = np.ascontiguousarray(array).view(f"uint{8 * array.dtype.itemsize}") if array.dtype.kind == "V" else array
    dtype = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits.reshape(array.shape), dtype)


def array_of(value):
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(value.element_type()))
    size = int(np.prod(value.shape())) * dtype.itemsize
    return np.frombuffer(ctypes.string_at(value.data_ptr(), size), dtype).reshape(value.shape())


def run(session, feed, by_values):
    if not by_values:
        return session.run(None, feed)
    names = [output.name for output in session.get_outputs()]
    results = session.run_with_ort_values(names, {name: value_of(array) for name, array in feed.items()})
    return [array_of(value) for value in results]


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
            if ops == {"Constant"}:
                continue
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
                        self.compare(run(session, feed, bool(dtypes & OTHER_DTYPES)), arrays(outputs), case)
                except Exception as error:  # noqa: BLE001
                    failures.append(f"{case.name}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
                    break
            if onnxruntime_compute.counters()["runs"] == runs:
                failures.append(f"{case.name}: nothing ran on the provider")
        print(f"{claimed} of {len(cases)} cases ran on {OURS}")
        for ops, names in sorted(left.items()):
            print(f"left, {ops}: {' '.join(names)}")
        self.assertFalse(failures, "\n" + "\n".join(failures))
        ops = {node.op_type for case in cases for node in case.model.graph.node}
        self.assertEqual(ops - known - WITHOUT - REPLACED, set(), "ops that are neither computed nor left for a reason")
        self.assertEqual(known & (WITHOUT | REPLACED), set())
        if not only:
            self.assertGreaterEqual(claimed, EXPECTED_CLAIMS)

    def compare(self, found, expected, case):
        self.assertEqual(len(found), len(expected))
        for one, other in zip(found, expected):
            one = np.asarray(one)
            self.assertEqual(one.shape, other.shape)
            self.assertEqual(one.dtype, other.dtype)
            unit = UNITS.get(one.dtype)
            if one.dtype.kind in "fV":
                one, other = one.astype(np.float64), other.astype(np.float64)
            if unit and case.name.removesuffix("_expanded") in TWO_UNITS:
                power = 2.0 ** np.floor(np.log2(np.maximum(np.abs(other), 1e-30)))
                self.assertTrue(np.all(np.abs(one - other) <= 2 * unit * power))
                continue
            if case.name.startswith(TRANSFORMS):
                self.assertLessEqual(np.max(np.abs(one - other)), np.finfo(np.float32).eps * np.max(np.abs(other)))
                continue
            np.testing.assert_allclose(one, other, rtol=case.rtol, atol=case.atol)


if __name__ == "__main__":
    unittest.main()
