# SPDX-License-Identifier: Apache-2.0
"""What has a gradient: every op by every input, attribute and result; and gradients at points without a derivative."""
import functools
import math
import unittest

import compute as cp
import numpy as np
from compute import grad, nn

from case import NARROW, Case

OPS = cp._ops.TABLE


class F:
    """Floating-point numbers of a shape, from a range."""

    def __init__(self, *shape, low=0.1, high=0.9):
        self.shape, self.low, self.high = shape, low, high


# The ranges of elementwise ops that have no gradient by some input in [0.1, 0.9].
RANGES = {"acosh": [(1.1, 2.0)], "clip": [(0.0, 1.0), (0.2, 0.4), (0.6, 0.8)], "elu": [(-0.9, 0.9)] * 2, "leaky_relu": [(-0.9, 0.9)] * 2}
# Elementwise ops that are steps: their gradients are 0 by definition, of those with a number by that input alone.
STEPS = {("ceil", 0), ("copysign", 1), ("floor", 0), ("floor_divide", 0), ("floor_divide", 1), ("heaviside", 0), ("heaviside", 1),
         ("nextafter", 1), ("round", 0), ("sign", 0), ("trunc", 0)}
# Elementwise ops whose gradients by that input are refused.
REFUSED = {("betainc", 0), ("betainc", 1), ("gammainc", 0), ("gammaincc", 0), ("polygamma", 0)}

# Calls of all other ops. A letter for each input says what its gradient is: (g)iven, (r)efused with a TypeError, or that
# the result is (c)onstant by definition; - has no floating-point numbers.
PLACES, LABELS, LENGTHS = np.array([2, 0, 2]), np.array([1, 3]), np.array([3, 2])
WINDOW = {"window": [2, 2], "strides": [1, 1]}
X = F(3, 4)
SQUARE = np.array([[2.0, 0.3, 0.1], [0.4, 1.5, 0.2], [0.1, 0.5, 1.0]])
HERMITIAN = np.array([[2.0, 0.3, 0.1], [0.3, 1.5, 0.2], [0.1, 0.2, 1.0]])
CALLS = [
    ("adam", "rrrr", [X] * 4, {}), ("adamw", "rrrr", [X] * 4, {}),
    ("sgd", "rr", [X] * 2, {}), ("sgd_momentum", "rrr", [X] * 3, {}),
    *(("affine", "ggg", [F(3, 4), F(4, 2), F(2)], {"activation": name})
      for name in ("none", "relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh")),
    ("affine", "gg", [F(2, 3, 4), F(5, 4)], {"transpose_weight": 1}),
    ("all", "c", [X], {}), ("any", "c", [X], {}), ("argmax", "c", [X], {}), ("argmin", "c", [X], {}),
    ("argsort", "c", [X], {}), ("count_nonzero", "c", [X], {}),
    *((f"reduce_{name}", "-", [LABELS], {}) for name in ("and", "or", "xor")),
    ("arange", "", [], {"size": 3, "dtype": cp.float32}), ("eye", "", [], {"rows": 2, "columns": 2, "dtype": cp.float32}),
    ("fill", "", [], {"shape": [2], "dtype": cp.float32}),
    ("linspace", "", [], {"start": 0, "stop": 1, "size": 3, "dtype": cp.float32}),
    ("attention", "ggg", [F(1, 4, 3, 5), F(1, 2, 4, 5), F(1, 2, 4, 2)], {}),
    ("attention", "gggg", [F(2, 4, 3, 5), F(2, 2, 4, 5), F(2, 2, 4, 2), F(4, 3, 4)], {"causal": 1, "scale": 0.75}),
    ("attention", "gggg", [F(1, 2, 3, 5), F(1, 2, 4, 5), F(1, 2, 4, 2), F(1, 1, 4)], {}),
    ("attention", "ggg-", [F(1, 1, 2, 5), F(1, 1, 2, 5), F(1, 1, 2, 2), np.array([[True, False], [True, True]])], {}),
    ("attention_grad", "rrrrrr", [F(1, 1, 2, 3), F(1, 1, 2, 3), F(1, 1, 2, 3), F(1, 1, 2, 3), F(1, 1, 2, 3), F(1, 1, 2)], {}),
    ("average_pool", "g", [F(1, 2, 4, 4)], WINDOW), ("max_pool", "g", [F(1, 2, 4, 4)], WINDOW),
    ("average_pool_grad", "r", [F(1, 2, 3, 3)], {"shape": [4, 4], **WINDOW}),
    ("max_pool_grad", "rrr", [F(1, 2, 3, 3), F(1, 2, 4, 4), F(1, 2, 3, 3)], WINDOW),
    ("batch_norm", "ggg", [F(3, 2, 2), F(2), F(2)], {}), ("batch_norm", "g", [F(3, 2)], {"epsilon": 0.125}),
    ("batch_norm_grad", "rrrrr", [F(3, 2), F(3, 2), F(2), F(2), F(2)], {}),
    ("batch_norm_inference", "ggggg", [F(3, 2, 2), F(2), F(2), F(2), F(2)], {}),
    ("cast", "g", [X], {"dtype": cp.float64}), ("cast", "c", [X], {"dtype": cp.int32}), ("cast", "c", [X], {"dtype": cp.bool}),
    ("concat", "gg", [F(3, 4), F(3, 1)], {"axis": 1}), ("stack", "gg", [X, X], {"axis": 1}),
    ("convolution", "ggg", [F(2, 2, 5), F(4, 1, 3), F(4)], {"groups": 2, "strides": [2], "padding": "same"}),
    ("convolution_grad_input", "rr", [F(1, 2, 3), F(2, 2, 3)], {"shape": [5]}),
    ("convolution_grad_weight", "rr", [F(1, 2, 3), F(1, 2, 5)], {"kernel": [3]}),
    ("convolution_transpose", "ggg", [F(1, 2, 4), F(2, 3, 3), F(3)], {"strides": [2], "output_padding": [1]}),
    ("copy", "g", [X], {}),
    ("cross_entropy", "g-", [F(2, 4), LABELS], {"label_smoothing": 0.25}),
    ("cross_entropy_grad", "rr-r", [F(2), F(2, 4), LABELS, F(2)], {}),
    ("cross_entropy_soft", "gg", [F(2, 4), F(2, 4)], {}), ("cross_entropy_soft", "gg", [F(4, 2), F(4, 2)], {"axis": 0}),
    ("cross_entropy_soft_grad", "rrrr", [F(2), F(2, 4), F(2, 4), F(2)], {}),
    *((name, "g", [X], attributes) for name in ("cumulative_max", "cumulative_min", "cumulative_prod", "cumulative_sum")
      for attributes in ({}, {"axis": 0, "include_initial": 1})),
    *((name, "r", [X], {direction: 1}) for name in ("cumulative_max", "cumulative_min", "cumulative_prod", "cumulative_sum")
      for direction in ("exclusive", "reverse")),
    ("diff", "g", [X], {"n": 2}), ("dropout", "g", [X], {"p": 0.25, "seed": 3}),
    ("einsum", "gg", [F(3, 4), F(4, 2)], {"equation": "ij,jk->ik"}), ("einsum", "g", [F(3, 3)], {"equation": "ii->"}),
    ("gather_at", "g--", [X, np.array([[2], [1]]), np.array([0, 0, -1])], {}), ("gather_at", "g-", [X, np.array([1, 3, 1])], {"axis": 1}),
    ("gather_nd", "g-", [X, np.array([[2, 0], [2, 0], [1, 3]])], {}),
    *(("gemm", "gggg", [F(3, 2), F(3, 4), F(4, 2), F(2)], {"alpha": 0.5, "beta": beta, "activation": "tanh"}) for beta in (1, 0.25)),
    ("group_norm", "ggg", [F(2, 4, 3), F(4), F(4)], {"groups": 2}),
    ("group_norm_grad", "rrrrr", [F(2, 4, 3), F(2, 4, 3), F(2, 2), F(2, 2), F(4)], {"groups": 2}),
    *(("gru", "ggggg", [F(3, 2, 4), F(1, 9, 4), F(1, 9, 3), F(1, 9), F(1, 9)], {"linear_before_reset": linear}) for linear in (0, 1)),
    *(("gru", "gggggg-", [F(3, 2, 4), F(2, 9, 4), F(2, 9, 3), F(2, 9), F(2, 9), F(2, 2, 3), LENGTHS], {"direction": "bidirectional", "linear_before_reset": linear}) for linear in (0, 1)),
    ("histogram", "c", [F(5)], {"bins": 3, "minimum": 0, "maximum": 1}), ("isin", "cc", [F(5), F(2)], {}),
    ("layer_norm", "ggg", [F(3, 4), F(4), F(4)], {}), ("layer_norm_grad", "rrrrr", [F(3, 4), F(3, 4), F(3), F(3), F(4)], {}),
    ("rms_norm", "gg", [F(3, 4), F(4)], {}), ("rms_norm_grad", "rrrr", [F(3, 4), F(3, 4), F(3), F(4)], {}),
    *(("local_response_norm", "g", [F(2, 5, 3)], {"size": size, "alpha": 0.5, "beta": 0.75, "bias": 1.5}) for size in (3, 4)),
    ("local_response_norm", "g", [F(2, 5)], {"size": 5}),
    ("lstm", "ggg", [F(3, 2, 4), F(1, 12, 4), F(1, 12, 3)], {"direction": "reverse"}),
    ("lstm", "gggggggg-", [F(3, 2, 4), F(2, 12, 4), F(2, 12, 3), F(2, 12), F(2, 12), F(2, 2, 3), F(2, 2, 3), F(2, 9), LENGTHS], {"direction": "bidirectional"}),
    ("log_softmax", "g", [X], {"axis": 0}), ("log_softmax_grad", "rr", [X, X], {}),
    ("softmax", "g", [X], {"axis": 0}), ("softmax_grad", "rr", [X, X], {}),
    *((name, "g", [F(2, 3, 2)], attributes)
      for name in ("logsumexp", "max", "mean", "min", "prod", "std", "sum", "var")
      for attributes in ({}, {"axes": [1]}, {"axes": [2, 0], "keepdims": 1})),
    *((name, "g", [X], {"axes": [0], "correction": 1}) for name in ("std", "var")),
    ("quantize", "c", [X], {}), ("dequantize", "--", [np.zeros((2, 16), np.uint8), np.ones((2, 1), np.float32)], {}),
    ("quantized_matmul", "g--", [F(2, 20), np.arange(48, dtype=np.uint8).reshape(3, 16), np.ones((3, 2), np.float32)], {"group_size": 16}),
    ("matmul", "gg", [F(2, 3, 4), F(4, 2)], {}), ("tensordot", "gg", [F(2, 3, 4), F(4, 2)], {"axes_a": [0], "axes_b": [1]}),
    ("vecdot", "gg", [F(3, 4), F(4)], {}),
    ("nonzero", "c", [X], {}), ("one_hot", "-", [LABELS], {"depth": 4, "dtype": cp.float32}),
    ("pad", "g", [X], {"pads_begin": [1, 0], "pads_end": [0, 2]}),
    *((f"random_{name}", "", [], {"shape": [3], "dtype": cp.float32})
      for name in ("bernoulli", "normal", "truncated_normal", "uniform")),
    ("random_bits", "", [], {"shape": [3], "dtype": cp.uint32}),
    ("random_integers", "", [], {"shape": [3], "dtype": cp.int32, "maximum": 5}),
    ("random_permutation", "", [], {"size": 3, "dtype": cp.int32}),
    ("random_categorical", "c", [X], {}), ("random_gamma", "r", [X], {}), ("random_poisson", "r", [X], {}), ("random_binomial", "rr", [X, X], {}),
    *((name, "g", [F(3, 4)], attributes) for name in ("fft", "rfft") for attributes in ({}, {"axes": [0], "norm": "ortho"}, {"axes": [0, 1], "norm": "forward"})),
    ("irfft", "-", [np.array([1 + 2j, 3 - 1j, 2])], {}),  # fft_test.py has its gradient
    ("repeat", "g", [X], {"repeats": 2}), ("tile", "g", [X], {"repetitions": [2, 3]}), ("roll", "g", [X], {"shift": 1}),
    *((name, "g", [F(2, 5, 4)], {extents: [7, 3], "axes": [1, 2], **attributes}) for name, extents in (("resize", "sizes"), ("resize_grad", "shape"))
      for attributes in ({}, {"mode": "linear"}, {"mode": "cubic", "antialias": 1}, {"mode": "cubic", "exclude_outside": 1})),
    ("resize", "g", [F(2, 5, 4)], {"sizes": [7, 3], "axes": [1, 2], "mode": "cubic", "scales": [1.5, 0.75]}),
    ("resize_grad", "g", [F(2, 7, 3)], {"shape": [5, 4], "axes": [1, 2], "mode": "cubic", "scales": [1.5, 0.75]}),
    ("resize", "g", [F(4, 6)], {"sizes": [8, 3]}), ("resize", "g", [F(6, 5)], {"sizes": [4, 4], "mode": "linear", "extrapolation_value": 3,
                                "coordinate_transformation_mode": "tf_crop_and_resize", "roi": [-0.5, 0.25, 0.75, 1]}),
    ("rotary_embedding", "g-", [F(3, 4), PLACES], {}),
    *(("scatter", "g-g", [F(3, 2), np.array([[2, 0]]), F(1, 2)], {"reduction": how}) for how in ("set", "add")),
    *(("scatter", "r-r", [F(3, 2), np.array([[2, 0]]), F(1, 2)], {"reduction": how}) for how in ("mul", "min", "max")),
    *(("scatter_at", "gg--", [F(2, 3, 4), F(2, 2), np.array([2, 0]), np.array([-1, 3])], {"reduction": how, "axis": 1}) for how in ("set", "add")),
    *(("scatter_at", "rr--", [F(3, 4), F(2), np.array([2, 0]), np.array([-1, 3])], {"reduction": how}) for how in ("mul", "min", "max")),
    *(("scatter_nd", "g-g", [F(3, 2), np.array([[2], [0]]), F(2, 2)], {"reduction": how}) for how in ("set", "add")),
    *(("scatter_nd", "r-r", [F(3, 2), np.array([[2], [0]]), F(2, 2)], {"reduction": how}) for how in ("mul", "min", "max")),
    ("searchsorted", "cc", [F(4), F(2)], {}),
    *(("segment_reduce", kind, [F(5, 2), np.array([0, 2, 2, 5])], {"kind": how})
      for how, kind in (("sum", "g-"), ("max", "g-"), ("min", "g-"), ("prod", "r-"))),
    ("sort", "g", [X], {"descending": 1}), ("top_k", "g", [X], {"k": 2, "largest": 0}), ("unique", "r", [F(4)], {}),
    ("take", "g-", [X, PLACES], {"axis": 0}), ("take_along_axis", "g-", [X, np.array([[2], [0], [2]])], {"axis": 1}),
    ("take_grad", "r-", [F(3, 4), PLACES], {"size": 4}),
    ("tril", "g", [X], {"k": 1}), ("triu", "g", [X], {"k": 1}),
    *((name, "g", [HERMITIAN], {"upper": upper}) for name in ("cholesky", "eigh", "eigvalsh") for upper in (0, 1)),
    *((name, "g", [SQUARE], {}) for name in ("det", "expm", "inv")), ("slogdet", "c", [SQUARE], {}),
    ("eig", "g", [SQUARE], {}), ("eigvals", "g", [SQUARE], {}), ("eigvals", "g", [F(2, 4, 4)], {}), ("matrix_power", "r", [SQUARE], {"n": 2}),
    *(("lu", "g", [F(*shape)], {}) for shape in ((3, 3), (2, 4, 3), (2, 2, 3, 5))),
    *(("lstsq", "gg", [F(*a), F(*b)], {}) for a, b in (((4, 3), (4,)), ((2, 5, 3), (5, 2)), ((3, 5), (2, 3, 2)))), ("matrix_norm", "r", [X], {}), ("matrix_rank", "c", [X], {}),
    ("pinv", "g", [F(4, 3)], {}), ("pinv", "g", [F(2, 3, 4)], {}),
    *(("qr", "g", [F(*shape)], {"mode": mode}) for shape, mode in (((4, 3), "reduced"), ((2, 3, 4), "reduced"), ((3, 3), "complete"))),
    *(("solve", "gg", [SQUARE, F(*shape)], {}) for shape in ((3,), (3, 2), (2, 3, 2))),
    *(("svd", "g", [F(*shape)], {"full_matrices": full}) for shape, full in (((4, 3), 0), ((2, 3, 4), 0), ((3, 3), 1))),
    ("svdvals", "g", [F(4, 3)], {}),
    *(("triangular_solve", "gg", [SQUARE, F(3, 2)], {"upper": upper, "unit_diagonal": unit}) for upper in (0, 1) for unit in (0, 1)),
]
# Results other than the first one through which gradients pass.
OTHER_RESULTS = {("batch_norm", 1), ("batch_norm", 2), ("eigh", 1), ("gru", 1), ("lstm", 1), ("lstm", 2), ("lstsq", 1), ("lstsq", 3), ("qr", 1), ("slogdet", 1), ("svd", 1), ("svd", 2)}


@unittest.skipIf(NARROW, "the rules are the same on every device")
class EveryOp(Case):
    def numbers_of(self, given):
        if isinstance(given, F):
            return self.random.uniform(given.low, given.high, given.shape)
        return given

    def calls(self):
        """Each op with what is known of its gradients, inputs and attributes."""
        listed = {name for name, _, _, _ in CALLS}
        self.assertEqual(listed, {name for name, op in OPS.items() if op["row"] is None}, "each op needs a call")
        for name, kinds, given, attributes in CALLS:
            yield name, kinds, [self.numbers_of(one) for one in given], attributes
        for name, op in OPS.items():
            if op["row"] is None:
                continue
            ranges = RANGES.get(name, [(0.1, 0.9)] * len(op["inputs"].split()))
            inputs = [self.numbers_of(F(3, 4, low=low, high=high)) for low, high in ranges]
            if name == "where":
                inputs[0] = inputs[0] > 0.5
            if name == "polygamma":
                inputs[0] = np.round(inputs[0] * 3)
            try:
                result = op["run"](*map(self.device_array, inputs))
            except TypeError:  # of integers, bool or complex numbers
                self.assertIn(name.split("_")[0], ("bitwise", "logical", "imag", "real"))
                continue
            kind = "g" if result.dtype is cp.float64 else "c"
            yield name, "".join("-" if x.dtype == bool else "c" if (name, i) in STEPS else "r" if (name, i) in REFUSED else kind for i, x in enumerate(inputs)), inputs, {}

    def kind(self, op, inputs, attributes, place, result):
        """What the gradient of a result by an input is, after a comparison with differences along a direction."""
        arrays = [self.device_array(x) for x in inputs]
        weights = None

        def value(x):  # without the infinities of what has no elements
            nonlocal weights
            found = op["run"](*arrays[:place], x, *arrays[place + 1:], **attributes)
            found = found[result] if isinstance(found, tuple) else found
            if found.dtype is cp.complex128:
                found = cp.real(found) + 2 * cp.imag(found)
            if found.dtype is not cp.float64 or not isinstance(found, type(x)):
                return None
            if weights is None:
                weights = self.device_array(self.random.uniform(0.5, 1.5, found.shape))
            return cp.sum(cp.where(cp.isfinite(grad.constant(found)), found, 0.0) * weights)

        class Constant(Exception):
            pass

        def wanted(x):
            found = value(x)
            if found is None:
                raise Constant
            return found

        try:
            slope = np.asarray(grad.gradients(wanted)(arrays[place]))
        except Constant:
            return "c"
        except (TypeError, cp.UnsupportedError) as error:
            self.assertIn("is not known", str(error))
            return "r"
        direction = self.random.uniform(0.5, 1.5, slope.shape)
        ends = [float(value(self.device_array(inputs[place] + sign * 1e-6 * direction))) for sign in (1, -1)]
        np.testing.assert_allclose(np.sum(slope * direction), (ends[0] - ends[1]) / 2e-6, rtol=1e-6, atol=1e-7)
        return "g" if np.any(slope) else "c"

    def test_inputs_and_results(self):
        for name, kinds, inputs, attributes in self.calls():
            results = len(OPS[name]["outputs"].split()) or 1
            found = OPS[name]["run"](*map(self.device_array, inputs), **attributes) if results > 1 else None
            for place, kind in enumerate(kinds):
                for result in range(results):
                    with self.subTest(op=name, input=place, attributes=attributes, result=result):
                        if kind == "-" or (result > 0 and found[result].dtype is not cp.float64):
                            self.assertTrue(kind != "-" or inputs[place].dtype != np.float64)
                            continue
                        expected = kind
                        if result > 0 and (kind == "g" or (name, result) in OTHER_RESULTS):
                            if (name, result) in OTHER_RESULTS and place > 0:
                                continue  # statistics do not depend on the scale, nor singular values on the right side
                            expected = "g" if (name, result) in OTHER_RESULTS else "r"
                        self.assertEqual(self.kind(OPS[name], inputs, attributes, place, result), expected)

    def test_attributes(self):
        """There is no gradient by an attribute."""
        done = set()
        for name, _, inputs, attributes in self.calls():
            for text in OPS[name]["attributes"].split(";"):
                attribute, _, kind = text.strip().partition(": ")
                if (name, attribute) in done or not kind.startswith(("number", "float64")) or "[]" in kind:
                    continue
                done.add((name, attribute))
                variable = grad.Variable(cp.asarray(0.5))
                arrays = [self.device_array(x) for x in inputs]
                for first in (lambda x: x, grad.Variable):
                    with self.subTest(op=name, attribute=attribute), self.assertRaisesRegex(
                            TypeError, f"gradient with respect to {attribute}, .*compute.grad.constant"):
                        OPS[name]["run"](*map(first, arrays[:1]), *arrays[1:], **{**attributes, attribute: variable})


class Attributes(Case):
    def test_variables_as_arguments(self):
        """Arguments of functions that are attributes of ops are refused by the names that the functions have for them."""
        v, x = grad.Variable(cp.asarray(0.5)), cp.ones((2, 3))
        q = cp.ones((1, 1, 2, 2))
        for name, call in (
                ("scale", lambda: nn.attention(q, q, q, scale=v)), ("alpha", lambda: cp.linalg.gemm(x, cp.ones((2, 2)), x, alpha=v)),
                ("epsilon", lambda: nn.layer_norm(x, epsilon=v)), ("stop", lambda: cp.linspace(0, v, 5)),
                ("label_smoothing", lambda: nn.cross_entropy(x, cp.asarray([0, 1]), label_smoothing=v)),
                ("deviation", lambda: cp.random.normal((2,), 0.0, v)), ("correction", lambda: cp.var(x, correction=v)),
                ("p", lambda: nn.dropout(x, v)), ("ord", lambda: cp.linalg.vector_norm(x, ord=v)),
                ("rate", lambda: cp.optim.SGD([x], rate=v).step([x]))):
            with self.assertRaisesRegex(TypeError, f"gradient with respect to {name}, .*compute.grad.constant"):
                call()
        with self.assertRaisesRegex(TypeError, "^linspace: "):
            cp.linspace(0, v, 5)
        with self.assertRaisesRegex(TypeError, "compute.stack"):
            cp.asarray([v, 1.0])
        with self.assertRaises(TypeError):
            cp.asarray(v)
        with self.assertRaises(TypeError):
            x[0, 0] = v

    def test_arguments_with_gradients(self):
        def check(function, expected, argument=0.5):
            self.assertAlmostEqual(float(grad.gradients(function)(cp.asarray(argument))), expected, places=5)

        check(lambda v: cp.sum(cp.full((2, 3), v)), 6)
        check(lambda v: cp.sum(cp.full_like(cp.ones(4), v) ** 2.0), 4)
        check(lambda v: cp.trapezoid(cp.asarray([1.0, 3.0]), dx=v), 2)
        check(lambda v: cp.sum(cp.clip(cp.asarray([0.0, 1.0]), min=v)), 1)
        check(lambda v: cp.quantile(cp.asarray([1.0, 2.0, 4.0]), v), 4)
        check(lambda v: cp.percentile(cp.asarray([1.0, 2.0, 4.0]), v), 0.02, 25.0)
        check(lambda v: cp.interp(cp.asarray([-1.0, 0.5]), cp.asarray([0.0, 1.0]), cp.asarray([0.0, 1.0]), left=v)[0], 1)
        check(lambda v: cp.average(cp.asarray([1.0, 3.0]), weights=cp.stack([v, v * 0 + 1.0])), -8 / 9)

    def test_integers_beside_floats(self):
        counts = cp.asarray([1, 2])
        found = grad.gradients(lambda x, n: cp.sum(x * cp.astype(n, cp.float32)))(cp.ones(2), counts)
        self.assert_same(found[0], np.float32([1, 2]))
        self.assert_same(found[1], np.int64([0, 0]))


class Kinds(Case):
    def test_operands_of_several_kinds(self):
        """Integers and bool have no gradient; that of a real operand beside a complex one is real."""
        x, i, mask, z = cp.asarray([0.5, 1.5]), cp.asarray([2, 3]), cp.asarray([True, False]), cp.asarray([1 + 2j, 3 - 1j])

        def check(function, expected, argument=x):
            found = grad.gradients(function)(argument)
            self.assertIs(found.dtype, argument.dtype)
            np.testing.assert_allclose(np.asarray(found), expected, 1e-14 if found.dtype is cp.float64 else 1e-6)

        check(lambda v: cp.sum(v * i), [2, 3])
        check(lambda v: cp.sum(v * mask + i), [1, 0])
        check(lambda v: cp.sum(v / i - i / v), [1 / 2 + 2 / 0.25, 1 / 3 + 3 / 2.25])
        check(lambda v: cp.sum(cp.where(mask, v, i)), [1, 0])
        check(lambda v: cp.sum(cp.concat([i, v]) * 2), [2, 2])
        check(lambda v: v @ i, [2, 3])
        check(lambda v: cp.sum(cp.xlogy(i, v)), [4, 2])
        check(lambda v: cp.sum(cp.real(v * z)), [1, 3])
        check(lambda v: cp.sum(cp.imag(v * z)), [2, -1])
        check(lambda v: cp.sum(v * i), [2, 3], cp.astype(x, cp.float16))
        check(lambda v: cp.sum(cp.real(v * i)), [2, 3], z)
        if not NARROW:  # an integer that float32 does not have
            check(lambda v: cp.sum(cp.xlogy(cp.asarray([2 ** 24 + 1, 1]), v)), [(2 ** 24 + 1) / 0.5, 1 / 1.5], cp.astype(x, cp.float64))


@unittest.skipIf(NARROW, "the rules are the same on every device")
class Matrices(Case):
    def complex_numbers(self, *shape):
        return self.random.uniform(-1, 1, shape) + 1j * self.random.uniform(-1, 1, shape)

    def check(self, function, x):
        """Compares the gradient of a function of complex matrices with differences along a direction."""
        def value(x):
            results = function(x)
            results = results if isinstance(results, tuple) else (results,)
            return sum(cp.sum(cp.real(y * w)) for y, w in zip(results, weights))

        results = function(self.device_array(x))
        weights = [self.device_array(self.complex_numbers(*y.shape)) for y in (results if isinstance(results, tuple) else (results,))]
        slope = np.asarray(grad.gradients(value)(self.device_array(x)))
        direction = self.complex_numbers(*x.shape)
        ends = [float(value(self.device_array(x + sign * 1e-6 * direction))) for sign in (1, -1)]
        np.testing.assert_allclose(np.sum(np.conj(slope) * direction).real, (ends[0] - ends[1]) / 2e-6, rtol=1e-6, atol=1e-7)

    def test_complex(self):
        linalg, x, b = cp.linalg, self.complex_numbers(3, 3) + 2 * np.eye(3), self.device_array(self.complex_numbers(3, 2))
        tall, wide = self.complex_numbers(4, 3), self.complex_numbers(2, 3, 4)
        many, a = self.device_array(self.complex_numbers(4, 2)), self.device_array(tall)

        def positive(x):
            return x @ cp.conj(x.mT) + self.device_array(np.eye(3))

        def vectors(x):  # without their phases
            values, v = linalg.eigh(positive(x))
            return values, v * self.device_array(np.array([1.0, 2.0, -1.0])) @ cp.conj(v.mT)

        def factors(x):
            u, s, vh = linalg.svd(x, full_matrices=False)
            return u * cp.asarray([1.0, 2.0, -1.0], dtype=cp.float64) @ vh, s

        def any_vectors(x):
            values, v = linalg.eig(x)
            return values, cp.abs(v) ** 2.0

        def fitted(a, b):
            solution, residuals, _, values = linalg.lstsq(a, b)
            return solution, residuals, values

        for name, function, values in (
                ("lu", lambda x: linalg.lu(x).LU, x), ("tall lu", lambda x: linalg.lu(x).LU, tall), ("wide lu", lambda x: linalg.lu(x).LU, wide),
                ("eig", any_vectors, x), ("eig of real", lambda x: any_vectors(cp.real(x)), self.complex_numbers(2, 4, 4)),
                ("eigvals", linalg.eigvals, self.complex_numbers(2, 3, 3)), ("lstsq", lambda x: fitted(x, many), tall),
                ("wide lstsq", lambda x: fitted(x, b), wide), ("fitted", lambda x: fitted(a, x), self.complex_numbers(4, 2)),
                ("fitted vector", lambda x: fitted(a, x), self.complex_numbers(4)),
                ("cholesky", lambda x: linalg.cholesky(positive(x)), x), ("upper", lambda x: linalg.cholesky(positive(x), upper=True), x),
                ("det", linalg.det, x), ("expm", linalg.expm, x), ("inv", linalg.inv, x), ("slogdet", lambda x: tuple(linalg.slogdet(x)), x),
                ("solve", lambda x: linalg.solve(x, b), x), ("right side", lambda x: linalg.solve(self.device_array(x0), x), x),
                ("triangular", lambda x: linalg.triangular_solve(x, b, upper=True), x), ("pinv", linalg.pinv, tall), ("wide pinv", linalg.pinv, wide),
                ("qr", lambda x: tuple(linalg.qr(x)), tall), ("wide qr", lambda x: tuple(linalg.qr(x)), wide), ("eigh", vectors, x),
                ("eigvalsh", lambda x: linalg.eigvalsh(positive(x)), x), ("svd", factors, tall), ("wide svd", factors, wide[0]),
                ("svdvals", linalg.svdvals, wide)):
            with self.subTest(name):
                x0 = x
                self.check(function, values)

    def test_degenerate(self):
        """Rows of docs/gradients.md."""
        singular = np.diag([2.0, 3.0, 0.0])
        found = grad.gradients(cp.linalg.det)(self.device_array(singular))
        np.testing.assert_allclose(np.asarray(found), np.diag([0.0, 0.0, 6.0]), atol=1e-12)
        for function in (lambda x: cp.sum(cp.linalg.eigh(x).eigenvectors ** 2.0), lambda x: cp.sum(cp.linalg.svd(x).U ** 2.0),
                         lambda x: cp.sum(cp.abs(cp.linalg.eig(x).eigenvectors) ** 2.0)):
            found = np.asarray(grad.gradients(function)(self.device_array(np.eye(3))))
            np.testing.assert_allclose(found, np.zeros((3, 3)), atol=1e-12)
        self.assertFalse(np.all(np.isfinite(grad.gradients(lambda x: cp.sum(cp.linalg.lu(x).LU))(self.device_array(np.zeros((2, 2)))))))
        with self.assertRaises(cp.Error):
            np.asarray(grad.gradients(lambda x: cp.linalg.slogdet(x).logabsdet)(self.device_array(singular)))
        with self.assertRaisesRegex(TypeError, "is not known"):
            grad.gradients(lambda x: cp.sum(cp.linalg.svd(x).U))(self.device_array(np.ones((4, 3))))


class Points(Case):
    """Where there is no derivative, and at the ends of ranges. Rows of docs/gradients.md."""

    def check(self, function, values, expected, dtype="float32", tolerance=1e-6):
        found = grad.gradients(lambda x: cp.sum(function(x)))(self.device_array(np.array(values, dtype)))
        self.assertEqual(found.dtype.name, dtype)
        np.testing.assert_allclose(np.asarray(found).astype(float), expected, rtol=tolerance)

    def test_reductions(self):
        inf, nan = math.inf, math.nan
        norm = cp.linalg.vector_norm
        self.check(cp.std, [2, 2, 2], [0, 0, 0])
        self.check(lambda x: cp.std(x, axis=1), [[1, 1], [1, 3]], [[0, 0], [-0.5, 0.5]])
        self.check(lambda x: cp.nanstd(x, axis=1), [[1, 1, nan], [1, 3, nan]], [[0, 0, 0], [-0.5, 0.5, 0]])
        for order in (-1, 0.5, 1, 1.5, 2, 3, inf):
            self.check(lambda x, order=order: norm(x, ord=order), [0, 0], [0, 0])
        self.check(norm, [3, -4, 0], [0.6, -0.8, 0])
        self.check(lambda x: norm(x, axis=1), [[0, 0], [0, -2]], [[0, 0], [0, -1]])
        self.check(lambda x: norm(x, axis=0, keepdims=True, ord=3), [[1, 0], [-1, 2]], [[2 ** (-2 / 3), 0], [-2 ** (-2 / 3), 1]])
        self.check(lambda x: norm(x, ord=inf), [1, -2, 2], [0, -0.5, 0.5])
        self.check(lambda x: norm(x, ord=-inf), [1, -2, 2], [1, 0, 0])
        self.check(lambda x: norm(x, ord=1), [1, -2, 0], [1, -1, 0])
        self.check(cp.linalg.matrix_norm, [[0, 0], [0, 0]], [[0, 0], [0, 0]])
        self.check(nn.logsumexp, [-inf, -inf], [0, 0])
        self.check(lambda x: nn.logsumexp(x, axis=0), [[-inf, -inf], [-inf, 1]], [[0, 0], [0, 1]])
        self.check(nn.logsumexp, [10000, 10000], [0.5, 0.5])
        self.check(cp.max, [1, 3, 3, 2], [0, 0.5, 0.5, 0])
        self.check(cp.max, [1, nan, 3], [0, 1, 0])
        self.check(lambda x: cp.min(x, axis=1), [[1, 1], [2, 3]], [[0.5, 0.5], [1, 0]])
        self.check(cp.prod, [2, 0, 3], [0, 6, 0])

    def test_elementwise(self):
        self.check(nn.relu, [-1, 0, 1], [0, 0, 1])
        self.check(cp.abs, [-1, 0, 1], [-1, 0, 1])
        self.check(nn.sigmoid, [0, 100, -100], [0.25, 3.8e-44, 3.8e-44], tolerance=0.1)
        self.check(lambda x: nn.linear(x, cp.ones((1, 1)), activation="sigmoid"), [[0], [1]], [[0.25], [0.19661193]])
        self.check(lambda x: cp._ops.logit(x), [1e-8, 0.5], [1e8, 4])
        self.check(lambda x: cp._ops.fmod(x, 2.0), [0, 2, -3], [1, 1, 1])
        self.check(lambda x: cp._ops.xlogy(x, 2.5), [0, 1], [math.log(2.5)] * 2)
        logarithm = cp.expression("where(x > 0, log(x), 0)")
        self.check(lambda x: logarithm(x), [0, -1, 2], [0, 0, 0.5])
        self.check(lambda x: cp.expression("max(x, 0)")(x), [0, 1], [0.5, 1])

    def test_attention_masks(self):
        q = self.device_array(self.random.random((1, 2, 2, 3), np.float32))
        mask = np.zeros((1, 1, 2, 2), np.float32)
        mask[0, 0, 0] = -math.inf  # a query that sees no key
        self.check(lambda m: nn.attention(q, q, q, m)[:, :, :1], mask, np.zeros_like(mask))
        found = grad.gradients(lambda m: cp.sum(nn.attention(q, q, q, m)))(cp.asarray(mask))
        self.assertTrue(np.isfinite(np.asarray(found)).all())
        self.assertNotEqual(float(found[0, 0, 1, 0]), 0)

    def test_precision(self):
        """The gradients of a product are made with its precision."""
        x = cp.asarray(self.random.random((2, 2), np.float32))
        image = cp.asarray(self.random.random((1, 1, 3, 3), np.float32))
        for product, a, b in ((cp.matmul, x, x), (nn.linear, x, x), (functools.partial(cp.einsum, "ij,jk"), x, x),
                              (functools.partial(cp.linalg.gemm, x), x, x), (nn.convolution, image, image),
                              (functools.partial(nn.attention, image), image, image)):
            plain, found = (grad.gradients(lambda a, b: cp.sum(product(a, b, **known)))(a, b)
                            for known in ({}, {"precision": "highest"}))
            for one, other in zip(plain, found):
                np.testing.assert_allclose(np.asarray(one), np.asarray(other), 1e-6)

    def test_halves(self):
        """Counts, sums and products on the way do not have to fit in float16."""
        many = np.ones(70000)
        self.check(cp.max, many, many / 70000, "float16", 0.05)
        self.check(lambda x: cp.min(x) * 1000.0, many, many / 70, "float16", 2e-3)
        self.check(lambda x: cp.segment_reduce(x, cp.asarray([0, 70000]), kind="max") * 1000.0, many, many / 70, "float16", 2e-3)
        x = np.array([300, 300, 0.001, 300, 0.001], np.float16).astype(float)
        self.check(cp.prod, x, [np.prod(np.delete(x, i)) for i in range(5)], "float16", 2e-3)
        self.check(lambda x: cp.cumulative_prod(x)[-1:], x, [np.prod(np.delete(x, i)) for i in range(5)], "float16", 2e-3)
        self.check(lambda x: cp.linalg.vector_norm(x), [3, 4], [0.6, 0.8], "float16", 2e-3)
        self.check(lambda x: cp.cumulative_max(x), np.ones(5000), np.ones(5000), "float16", 2e-3)
        descending = np.concatenate([[2.0], np.ones(4999)])
        self.check(lambda x: cp.cumulative_max(x), descending, np.concatenate([[5000.0], np.zeros(4999)]), "float16", 2e-3)
        self.check(lambda x: cp.nextafter(x * 2.0, cp.ones_like(x)), [0.5, 3], [2, 2], "float16", 2e-3)  # made of bits
        self.check(nn.logsumexp, [1000.3, 1000.3], [0.5, 0.5], "float16", 2e-3)
        self.check(cp.std, [1000, 1001, 1002], np.array([-1, 0, 1]) / 3 / math.sqrt(2 / 3), "float16", 2e-3)


class Arguments(Case):
    def test_views_of_one_array(self):
        """Gradients of views of an array, which may cover it, overlap or leave gaps, and of the array beside them."""
        halves = [np.s_[:, :3], np.s_[:, 3:]]
        for keys in (halves, halves[::-1], halves * 2, [np.s_[:, :2], np.s_[:, 4:]], [np.s_[:, 1:4], np.s_[:, 2:]],
                     [0, 1, 2, 3], [-1, 2, 0, 1], [0, np.s_[1:3], 3], [np.s_[..., 0], np.s_[..., 1:]], [np.s_[::2], np.s_[1::2]],
                     [np.s_[1, 2]], [np.s_[:, ::-1]], [np.s_[None, :2], np.s_[2:]], [np.s_[:2, :3], np.s_[2:]], [np.s_[:0], np.s_[:]]):
            for beside in (False, True):
                with self.subTest(keys=keys, beside=beside):
                    x = self.random.normal(size=(4, 6))
                    weights = [self.random.normal(size=x[key].shape) for key in keys]
                    expected = np.full_like(x, 2.0) if beside else np.zeros_like(x)
                    for key, weight in zip(keys, weights):
                        expected[key] += weight

                    def f(x):
                        total = 2.0 * cp.sum(x) if beside else 0.0
                        for key, weight in zip(keys, weights):
                            total = total + cp.sum(x[key] * self.device_array(weight))
                        return total

                    np.testing.assert_allclose(np.asarray(grad.gradients(f)(self.device_array(x))), expected, rtol=1e-12, atol=1e-12)

    def test_indices_that_are_arrays(self):
        """Elements that are taken several times get several gradients, wherever the arrays stand in the index."""
        a, b, mask = np.array([1, -1, 1]), np.array([[0, 2], [-3, 2], [5, 2]]), np.arange(24).reshape(4, 6) % 5 < 2
        for key in ((a, b[:, 0]), (b[:, :1] % 4, a), (a, 0), (1, a), (np.s_[:], a), (np.s_[::-2], b), (a, np.s_[1:4]), (mask,), (mask[:, 1],),
                    (np.s_[1:], mask[0]), (..., b), (None, a, b[:, 1]), ([2, 0, 2],), ([0, 1], [3, 3]), (a[:0], a[:0])):
            for dtype, error in ((np.float64, 1e-12), (np.float16, 2e-3)):
                with self.subTest(key=key, dtype=dtype):
                    x = self.random.normal(size=(4, 6)).astype(dtype)
                    weight, expected = self.random.uniform(0.5, 1, x[key].shape).astype(dtype), np.zeros(x.shape)
                    np.add.at(expected, key, weight)
                    keys = tuple(self.device_array(one) if isinstance(one, np.ndarray) else one for one in key)
                    keys = keys if len(keys) > 1 else keys[0]
                    dx = grad.gradients(lambda x: cp.sum(x[keys] * self.device_array(weight)))(self.device_array(x))
                    self.assertEqual(dx.dtype, self.device_array(x).dtype)
                    np.testing.assert_allclose(np.asarray(dx), expected, rtol=error, atol=error)

    def test_steep_and_flat_places(self):
        x = np.array([-80, -30.5, -1.5, 0, 0.25, 3, 30, 80, math.inf, -math.inf])
        e = np.exp(-np.abs(x))
        slope = e / (1 + e) ** 2
        of_silu = np.where(x < 0, e, 1) / (1 + e) + np.clip(x, -2000, 2000) * slope
        for f, values, expected in ((cp.sigmoid, x, slope), (nn.silu, x, of_silu), (nn.elu, x, np.exp(np.minimum(x, 0))), (lambda x: x ** 2, x[:8], 2 * x[:8]), (lambda x: x ** 2.0, x[:8], 2 * x[:8])):
            for dtype, error in ((np.float64, 1e-14), (np.float32, 2e-6), (np.float16, 2e-3)):
                with self.subTest(dtype=dtype, expected=expected):
                    dx = grad.gradients(lambda x: cp.sum(f(x)))(self.device_array(values.astype(dtype)))
                    np.testing.assert_allclose(np.asarray(dx), expected, rtol=error, atol=6e-8 if dtype is np.float16 else 0)
        for f in (cp.sigmoid, nn.silu, nn.elu):
            np.testing.assert_array_equal(np.asarray(grad.gradients(lambda x: cp.sum(f(x)))(self.device_array([math.nan]))), [math.nan])

    def test_gather(self):
        for shape, places in (((4, 6), (4, 3)), ((4, 6), (2, 3)), ((4, 6), (4, 1)), ((2, 3, 6), (2, 3, 9))):
            with self.subTest(shape=shape, places=places):
                x, i = self.random.normal(size=shape), self.random.integers(0, 6, places)
                weight, expected = self.random.normal(size=places), np.zeros(shape)
                np.add.at(expected, (*np.indices(places)[:-1], i), weight)
                dx = grad.gradients(lambda x: cp.sum(cp.gather(x, -1, self.device_array(i)) * self.device_array(weight)))(self.device_array(x))
                np.testing.assert_allclose(np.asarray(dx), expected, rtol=1e-12, atol=1e-12)

    def test_rows_times_a_matrix(self):
        """The gradient of a matrix that multiplies several matrices, also without rows and in other orders."""
        for shape in ((2, 3, 4), (2, 1, 3, 4), (0, 3, 4), (2, 3, 0)):
            with self.subTest(shape=shape):
                x, w = self.random.normal(size=shape), self.random.normal(size=(shape[-1], 5))
                weight = self.random.normal(size=(*shape[:-1], 5))
                for order in (None, (1, 0, *range(2, len(shape)))):
                    def f(w):
                        rows, by = self.device_array(x), self.device_array(weight)
                        rows, by = (rows, by) if order is None else (cp.permute(rows, order), cp.permute(by, order))
                        return cp.sum((rows @ w) * by)
                    expected = x.reshape(-1, shape[-1]).T @ weight.reshape(-1, 5) if x.size else np.zeros(w.shape)
                    np.testing.assert_allclose(np.asarray(grad.gradients(f)(self.device_array(w))), expected, rtol=1e-12, atol=1e-12)

    def test_terms(self):
        """Sums and differences pass a gradient on, but no two gradients share memory."""
        x = [self.random.normal(size=shape) for shape in ((3, 4), (3, 4), (4,), (3, 1))]

        def f(a, b, c, d):
            return cp.sum(((a + b) - (c + a) + cp.positive(d - a) + 2.0 - b) * self.device_array(x[0]))

        found = grad.gradients(f)(*map(self.device_array, x))
        ones = np.ones((3, 4)) * x[0]
        expected = -ones, 0 * ones, -ones.sum(0), ones.sum(1, keepdims=True)
        for one, other in zip(found, expected):
            np.testing.assert_allclose(np.asarray(one), other, rtol=1e-12, atol=1e-12)
        for same in (lambda a, b: cp.sum(a + b), lambda a, b: cp.sum((a + b) + (a - b)), lambda a, b: cp.sum((a + b) + b)):
            one, other = grad.gradients(same)(*map(self.device_array, x[:2]))
            self.assertFalse(cp.may_share_memory(one, other))

    def test_sums_that_start_with_a_gradient_of_another_array(self):
        def loss(x, y):
            z = x + y  # both get the same gradient, to which more terms of x are added
            return cp.sum(z * 2 + x * 3 + x * 5 + x * 7)

        dx, dy = grad.gradients(loss)(cp.asarray([1.0, 2.0]), cp.asarray([3.0, 4.0]))
        self.assertEqual((dx.tolist(), dy.tolist()), ([17.0, 17.0], [2.0, 2.0]))

    def test_gradients_that_nobody_wants(self):
        x, w = cp.ones((1, 2, 6, 6)), cp.ones((3, 2, 2, 2))
        with cp.profile() as p:
            grad.gradients(lambda w: cp.sum(nn.conv2d(x, w)))(w)
        ran = {row["op"] for row in p.ops}
        self.assertIn("convolution_grad_weight", ran)
        self.assertNotIn("convolution_grad_input", ran)

    def test_argnums_and_other_outputs(self):
        x, y = cp.asarray([1.0, 2.0]), cp.asarray([3.0, 5.0])

        def product(x, y, factor=1.0):
            return cp.sum(x * y * factor)

        for argnums, expected in ((None, ([3, 5], [1, 2])), (0, [3, 5]), (1, [1, 2]), (-1, [1, 2]), ((0,), ([3, 5],)), ([1, 0], ([1, 2], [3, 5])), ((), ())):
            if argnums == ():
                with self.assertRaises((TypeError, ValueError)):
                    grad.gradients(product, argnums=argnums)(x, y)
                continue
            value, found = grad.value_and_gradients(product, argnums=argnums)(x, y)
            self.assertEqual(float(value), 13.0)
            self.assertEqual(tuple(one.tolist() for one in found) if isinstance(found, tuple) else found.tolist(), expected)
        self.assertEqual(grad.gradients(product, argnums=0)(x, y, factor=2.0).tolist(), [6, 10])
        self.assertEqual(grad.gradients(product, argnums=0)(x, np.float32([3, 5])).tolist(), [3, 5])
        self.assertEqual(grad.gradients(product)(np.float32([1, 2]), y)[0].tolist(), [3, 5])
        for argnums in (2, -3, (0, 5)):
            with self.assertRaisesRegex(ValueError, "argnums has .*; the call has 2"):
                grad.gradients(product, argnums=argnums)(x, y)

        def pair(x):
            return cp.sum(x * x), {"twice": 2 * x}

        (value, other), found = grad.value_and_gradients(pair, has_aux=True)(x)
        self.assertEqual((float(value), other["twice"].tolist(), found.tolist()), (5.0, [2, 4], [2, 4]))
        self.assertIsInstance(other["twice"], cp.Array)
        found, other = grad.gradients(pair, has_aux=True)(x)
        self.assertEqual((found.tolist(), other["twice"].tolist()), ([2, 4], [2, 4]))
        with self.assertRaisesRegex(TypeError, "has_aux"):
            grad.gradients(lambda x: cp.sum(x), has_aux=True)(x)
        for nested in (lambda v: grad.value_and_gradients(product, argnums=0)(x, v)[0], lambda v: grad.gradients(cp.sum)(v)[0]):
            with self.assertRaisesRegex(TypeError, "no gradients of gradients"):
                grad.gradients(nested)(y)
