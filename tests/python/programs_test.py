# SPDX-License-Identifier: Apache-2.0
"""Gradients, networks, optimisers, random numbers, expressions, kernels and graphs."""
import collections
import math
import pickle
import struct

import compute as cp
import numpy as np
from compute import grad, nn

from case import NARROW, Case


class Gradients(Case):
    """Against differences of the function's own values."""

    STEP = 1e-6

    def differences(self, function, values):
        found = []
        for i, value in enumerate(values):
            slopes = np.zeros_like(value)
            for index in np.ndindex(value.shape):
                sides = []
                for sign in (1, -1):
                    moved = [x.copy() for x in values]
                    moved[i][index] += sign * self.STEP
                    sides.append(float(function(*map(self.device_array, moved))))
                slopes[index] = (sides[0] - sides[1]) / (2 * self.STEP)
            found.append(slopes)
        return found

    def check(self, function, *shapes):
        values = [np.asarray(self.random.random(shape) + 0.1) for shape in shapes]
        _, found = grad.value_and_gradients(function)(*map(self.device_array, values))
        for actual, expected in zip(found if len(values) > 1 else (found,), self.differences(function, values)):
            self.assertEqual(actual.shape, expected.shape)
            np.testing.assert_allclose(np.asarray(actual), expected, rtol=1e-5, atol=1e-6)

    def test_elementwise_and_products(self):
        self.check(lambda x, w, b: cp.mean(cp.square(x @ w + b)), (4, 3), (3, 2), (2,))
        self.check(lambda x, w: cp.sum(cp.tanh(x @ w)), (3,), (3,))
        self.check(lambda x, w: cp.sum(cp.tanh(x @ w)), (4, 3), (3,))
        self.check(lambda x, w: cp.sum(cp.exp(cp.matmul(x, w))), (2, 4, 3), (3, 2))
        self.check(lambda x: cp.sum(2 * x / (1 + x) - x ** 2.0 + 1 / x), (3, 2))
        self.check(lambda x: cp.sum(cp.where(x > 0.5, x * x, -x)), (2, 3))

    def test_reductions(self):
        self.check(lambda x: cp.sum(cp.max(x, axis=1) * 3), (3, 4))
        self.check(lambda x: cp.sum(cp.var(x, axis=0, correction=1)) + cp.sum(cp.std(x)), (3, 4))
        self.check(lambda x: cp.sum(cp.square(cp.cumulative_sum(x, axis=1))), (2, 3))
        self.check(lambda x: nn.logsumexp(x) + cp.sum(cp.square(nn.logsumexp(x, axis=0))), (3, 4))

    def test_views(self):
        self.check(lambda x: cp.sum(cp.square(cp.reshape(cp.permute_dims(x, (1, 0)), (6,))[1:4]
                                              * cp.concat([x[0], x[1]])[2:5])), (2, 3))
        self.check(lambda x, y: cp.sum(cp.exp(cp.stack([x, y], axis=1))) + cp.sum(cp.broadcast_to(x, (3, 2)) ** 2.0),
                   (2,), (2,))
        self.check(lambda x: cp.sum(cp.square(cp.expand_dims(x, 0) * cp.squeeze(cp.flip(x[None]), 0))), (2, 3))

    def test_networks(self):
        labels = cp.asarray([0, 2, 1])
        self.check(lambda x: cp.sum(cp.square(nn.softmax(x))) + cp.sum(cp.square(nn.log_softmax(x, axis=0))), (3, 4))
        self.check(lambda x: cp.mean(nn.cross_entropy(x, labels)), (3, 4))
        self.check(lambda x, w, b: cp.sum(cp.square(nn.max_pool(nn.relu(nn.convolution(x, w, b, padding=1)), 2))),
                   (1, 2, 4, 4), (3, 2, 3, 3), (3,))
        self.check(lambda x, w: cp.sum(cp.square(nn.average_pool(nn.convolution(x, w, padding="same"), 2))),
                   (1, 2, 4, 4), (2, 2, 3, 3))
        self.check(lambda x, s, b: cp.sum(cp.square(nn.layer_norm(x, s, b) + 0.3 * x)), (3, 5), (5,), (5,))
        self.check(lambda x, s: cp.sum(cp.square(nn.rms_norm(x, s) + 0.3 * x)), (3, 5), (5,))
        self.check(lambda x, s, b: cp.sum(cp.square(nn.group_norm(x, s, b, groups=2) + 0.3 * x)), (2, 4, 3), (4,), (4,))
        self.check(lambda x, s, b: cp.sum(cp.square(nn.batch_norm(x, s, b)[0] + 0.3 * x)), (3, 2, 2), (2,), (2,))
        self.check(lambda q, k, v: cp.sum(cp.square(nn.attention(q, k, v, causal=True))), *3 * ((1, 2, 3, 4),))
        self.check(lambda x, w, b: cp.sum(nn.gelu(nn.linear(x, w, b))), (2, 3), (3, 4), (4,))
        self.check(lambda table: cp.sum(cp.square(nn.embedding(table, labels))), (4, 2))

    def test_structures_and_faults(self):
        parameters = {"w": [cp.asarray([2.0])], "b": (cp.asarray([1.0]), cp.asarray([5.0]))}
        value, found = grad.value_and_gradients(lambda p: cp.sum(p["w"][0] * p["b"][0]))(parameters)
        self.assertEqual((float(value), float(found["w"][0]), float(found["b"][0]), float(found["b"][1])), (2, 1, 2, 0))
        with self.assertRaises(ValueError):
            grad.gradients(lambda x: x)(cp.zeros(2))
        with self.assertRaisesRegex(TypeError, "gradient of random_gamma is not known"):
            grad.gradients(lambda x: cp.sum(cp._ops.random_gamma(x)))(cp.zeros(2))
        self.assertEqual(float(grad.gradients(lambda x: x * grad.constant(x))(cp.asarray(3.0))), 3)
        pair = collections.namedtuple("Pair", "a b")
        found = grad.gradients(lambda p: cp.sum(p.a * p.b))(pair(cp.asarray([2.0]), cp.asarray([5.0])))
        self.assertEqual((float(found.a), float(found.b)), (5, 2))
        for error, message, function, argument in (
                (ValueError, r"not an array of the shape \(2,\)", lambda x: x * x, cp.ones(2)),
                (ValueError, "does not depend on its arguments", lambda x: cp.sum(cp.ones(2)), cp.ones(2)),
                (ValueError, "does not depend on its arguments", lambda x: float(cp.sum(x)), cp.ones(2)),
                (TypeError, "the arguments have int64", lambda x: cp.sum(x * x), cp.asarray([1, 2])),
                (TypeError, "the arguments have no array", lambda x: x * x, 3.0),
                (TypeError, "no gradients of gradients", grad.gradients(cp.sum), grad.Variable(cp.ones(2)))):
            with self.assertRaisesRegex(error, message):
                grad.gradients(function)(argument)

    def test_rearrangements(self):
        self.check(lambda x: cp.sum(cp.exp(cp.roll(x, 1, axis=1)) * x), (2, 3))
        self.check(lambda x: cp.sum(cp.exp(cp.roll(x, (1, -1), axis=(0, 1))) * x) + cp.sum(cp.roll(x, 2) * x), (2, 3))
        self.check(lambda x: cp.sum(cp.square(cp.cumulative_sum(cp.tile(x, (3, 1, 2)), axis=2))), (2, 3))
        self.check(lambda x: cp.sum(cp.square(cp.cumulative_sum(cp.repeat(x, 3, axis=0), axis=0))), (2, 3))
        self.check(lambda x: cp.sum(cp.square(cp.cumulative_sum(cp.repeat(x, cp.asarray([2, 0, 1]))))), (3,))
        self.check(lambda x: cp.sum(cp.square(cp.cumulative_sum(x, axis=0, include_initial=True))), (3, 2))
        self.check(lambda x: cp.sum(cp.cumulative_sum(cp.sort(x, axis=0, descending=True), axis=0) ** 2.0), (4, 3))
        self.check(lambda x: cp.sum(cp.exp(cp.diff(x, n=2, axis=0)) * x[1:-1]), (5, 2))
        self.check(lambda x: cp.sum(cp.exp(cp.diff(x, prepend=x[:, :1]))), (2, 3))
        self.check(lambda x: cp.sum(cp.square(cp.take_along_axis(x, cp.asarray([[2, 0, 2, 1]]), axis=1))), (2, 3))
        self.check(lambda x: cp.linalg.trace(x @ x) + cp.sum(cp.exp(cp.linalg.diagonal(x, offset=-1))), (3, 3))

    def test_products(self):
        self.check(lambda x: cp.sum(cp.prod(x, axis=1) * cp.sum(x, axis=1)), (3, 4))
        self.check(lambda x: cp.sum(cp.prod(x, axis=(0, 2), keepdims=True) * x) + cp.prod(x), (2, 3, 2))
        value = grad.gradients(cp.prod)(cp.asarray([2.0, 0.0, 3.0]))
        self.assert_same(value, np.float32([0, 6, 0]))  # with a zero among the factors
        self.check(lambda x, y: cp.sum(cp.exp(cp.vecdot(x, y))), (2, 3), (4, 1, 3))
        self.check(lambda x, y: cp.sum(cp.exp(cp.vecdot(x, y, axis=-2))), (3, 2), (3, 2))
        self.check(lambda x, y: cp.sum(cp.exp(cp.tensordot(x, y, axes=((2, 0), (0, 2))))), (2, 3, 4), (4, 2, 2))
        self.check(lambda x, y: cp.sum(cp.square(cp.tensordot(x, y, axes=0))), (2, 3), (2,))
        self.check(lambda x, y: cp.tensordot(x, y) * x[0, 0], (2, 3), (2, 3))
        for activation in ("relu", "gelu", "tanh", "sigmoid"):
            self.check(lambda x, w, b: cp.sum(cp.square(nn.linear(x, w, b, activation=activation))),
                       (2, 3), (3, 4), (4,))
        self.check(lambda x, m, v, s, b: cp.sum(cp.square(nn.batch_norm_inference(x, m, v, s, b))),
                   (2, 3, 2), (3,), (3,), (3,), (3,))
        self.check(lambda x, m, v: cp.sum(cp.exp(nn.batch_norm_inference(x, m, v))), (2, 3), (3,), (3,))

    def test_cumulative(self):
        self.check(lambda x: cp.sum(cp.exp(cp.cumulative_prod(x, axis=1)) * x), (2, 4))
        self.check(lambda x: cp.sum(cp.square(cp.cumulative_prod(x, axis=0, include_initial=True))), (4, 2))
        for zeros in ([1], [0], [1, 2], [3], [0, 3]):  # of a line of 4: with one zero or several
            mask = self.device_array(np.isin(np.arange(4), zeros, invert=True).astype(float))
            self.check(lambda x: cp.sum(cp.exp(cp.cumulative_prod(x * mask, axis=1))), (2, 4))
            line = [0.0 if i in zeros else 2.0 + i for i in range(4)]
            expected = np.zeros(4, np.float32)
            for k in range(4):
                expected[k] = sum(np.prod(np.delete(line[:i + 1], k)) for i in range(k, 4))
            self.assert_same(grad.gradients(lambda x: cp.sum(cp.cumulative_prod(x)))(cp.asarray(line)), expected)
        wide = grad.gradients(lambda x: cp.sum(cp.cumulative_prod(x, dtype=cp.float64)))(cp.asarray([2.0, 3.0]))
        self.assert_same(wide, np.float32([4, 2]))
        for function in (cp.cumulative_max, cp.cumulative_min):
            self.check(lambda x: cp.sum(cp.exp(function(x, axis=1)) * x), (3, 5))
            self.check(lambda x: cp.sum(cp.square(cp.clip(function(x, axis=0, include_initial=True), -9, 9))), (4, 3))
        # As PyTorch: of equal elements the last one.
        self.assert_same(grad.gradients(lambda x: cp.sum(cp.cumulative_max(x)))(cp.asarray([1.0, 3, 2, 3, 3])),
                         np.float32([1, 2, 0, 1, 1]))
        self.assertEqual(grad.gradients(lambda x: cp.sum(cp.cumulative_max(x)))(cp.asarray([1.0, np.nan,
                                                                                            2])).tolist()[0], 1)

    def test_distances(self):
        for shapes in (((5, 3), (4, 3)), ((2, 3, 1), (4, 1)), ((3, 2), (2, 1, 4, 2)), ((1, 2, 3, 2), (3, 1, 2, 2))):
            for p in (1, 2, 3):
                self.check(lambda x, y: cp.sum(cp.square(cp.cdist(x, y, p))), *shapes)
        self.check(lambda x: cp.sum(cp.exp(cp.cdist(x, x[1:] + 1))), (4, 3))
        # 0 between equal points.
        x = cp.asarray([[1.0, 2.0], [4.0, 6.0]])
        self.assert_same(grad.gradients(lambda x: cp.sum(cp.cdist(x, cp.asarray([[1.0, 2.0]]))))(x), np.float32([[0, 0], [0.6, 0.8]]))

    def test_moduli_of_complex_numbers(self):
        self.check(lambda x, y: cp.sum(cp.exp(cp.abs(x + 1j * y))), (3, 4), (3, 4))
        for dtype in (cp.complex64, cp.complex128):
            x = cp.asarray([0, 1e-300 if dtype is cp.complex128 else 1e-40, -3e38j], dtype=dtype)
            self.assert_same(grad.gradients(lambda x: cp.sum(cp.abs(x)))(x), np.asarray([0, 1, -1j], dtype.name))

    def test_order_statistics(self):
        self.check(lambda x: cp.sum(cp.exp(cp.sort(x, axis=0)) * cp.asarray([[1.0], [2.0], [5.0]])), (3, 4))
        self.check(lambda x: cp.sum(cp.exp(cp.sort(x, dim=-1, descending=True).values) * cp.asarray([1.0, 2.0, 5.0, 7.0])), (3, 4))
        for q in (0.0, 0.3, 0.5, 1.0):
            self.check(lambda x: cp.sum(cp.exp(cp.quantile(x, q, axis=1))) + cp.quantile(x, q), (3, 4))
        self.check(lambda x: cp.sum(cp.exp(cp.median(x, axis=0))) + cp.median(x), (3, 4))

    def test_scattered(self):
        at, few = cp.asarray([[2, 0, 3], [1, 3, 0]]), cp.asarray([[2, 0]])
        for reduction in ("set", "add"):
            self.check(lambda x, y: cp.sum(cp.exp(cp.scatter(x, at, y, reduction=reduction)) * x), (2, 4), (2, 3))
            self.check(lambda x, y: cp.sum(cp.exp(cp.scatter(x, few, y, axis=0, reduction=reduction))), (3, 4), (1, 2))
            for indices, shape in ((cp.asarray([[0], [2]]), (2, 4)), (cp.asarray([[0, 1], [2, -1], [1, 1]]), (3,))):
                self.check(lambda x, y: cp.sum(cp.square(cp.scatter_nd(x, indices, y, reduction=reduction)) * x),
                           (3, 4), shape)
                self.check(lambda x: cp.sum(cp.exp(cp.gather_nd(x, indices))), (3, 4))
        self.check(lambda x, y: cp.sum(cp.exp(cp.scatter(x, cp.asarray([0, 2, 0]), y, reduction="add"))), (4,), ())
        self.check(lambda x, y: cp.sum(cp.exp(cp.scatter(x, 1, at, y)) * x), (2, 4), (3, 4))  # as PyTorch's
        self.check(lambda x: cp.sum(cp.exp(cp.scatter(cp.zeros((2, 4), dtype=cp.float64), 1, at, x, reduce="add"))), (2, 3))
        self.check(lambda x: cp.sum(cp.exp(cp.scatter(x, 1, at, 2.0)) * x), (2, 4))
        self.check(lambda x: cp.sum(cp.exp(cp.gather_nd(x, cp.asarray([[1], [1], [0]])))), (3, 2))
        mask = cp.asarray([[True, False], [False, True]])
        self.check(lambda x, y: cp.sum(cp.exp(cp.masked_scatter(x, mask, y)) * x), (2, 2), (3,))
        self.check(lambda x: cp.sum(cp.exp(x.unfold(0, 2, 1)) * cp.asarray([1.0, 3.0])) + cp.sum(cp.square(x.unfold(-1, 3, 2))), (4, 5))
        for largest in (True, False):
            self.check(lambda x: cp.sum(cp.exp(cp.top_k(x, 2, axis=0, largest=largest).values) * x[:2]), (4, 3))
        for mode in ("constant", "edge", "reflect", "symmetric", "wrap"):
            self.check(lambda x: cp.sum(cp.square(cp.cumulative_sum(cp.pad(x, ((1, 2), (0, 2)), mode), axis=1))),
                       (3, 4))
        for offsets in ([0, 2, 2, 5], [1, 4], [0]):
            for kind in ("sum", "max", "min"):
                self.check(lambda x: cp.sum(cp.exp(cp.segment_reduce(x, cp.asarray(offsets), kind=kind)
                                                   if kind == "sum" else
                                                   cp.clip(cp.segment_reduce(x, cp.asarray(offsets), kind=kind), -1,
                                                           2))),
                           (5, 2))
        for wrong in (lambda x: cp.scatter(x, cp.asarray([0]), 2.0, reduction="mul"),
                      lambda x: cp.segment_reduce(x, cp.asarray([0, 2]), kind="prod")):
            with self.assertRaisesRegex(TypeError, "is not known"):
                grad.gradients(lambda x: cp.sum(wrong(x)))(cp.ones(2))

    def test_einsum(self):
        for equation, *shapes in (("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ij->", (2, 3)),
                                  ("ij->j", (2, 3)), ("ii->i", (3, 3)), ("ii", (3, 3)), ("iij->ji", (2, 2, 3)),
                                  ("...ij, ...jk -> ...ik", (2, 2, 3), (3, 2)), ("...j,j->...", (2, 1, 3), (3,)),
                                  ("...i,...i->...i", (2, 1, 3), (4, 3)), ("i,j,k->kji", (2,), (3,), (2,)),
                                  ("ij,kj,kl->il", (2, 3), (4, 3), (4, 2)), ("ij,k->i", (2, 3), (2,)),
                                  (",ij->ij", (), (2, 3)),
                                  ("bhqd,bhkd->bhqk", (1, 2, 3, 2), (1, 2, 4, 2)), ("ii,ij->j", (3, 3), (3, 2))):
            self.check(lambda *xs: cp.sum(cp.exp(cp.einsum(equation, *xs))), *shapes)

    def test_losses_and_layers(self):
        for options in ({}, {"strides": 2, "padding": 1, "output_padding": 1}, {"dilations": 2},
                        {"padding": "same", "strides": 2}):
            self.check(lambda x, w, b: cp.sum(cp.square(nn.convolution_transpose(x, w, b, **options))),
                       (2, 4, 3, 3), (4, 2, 3, 3), (2,))
        self.check(lambda x, w: cp.sum(cp.square(nn.convolution_transpose(x, w, groups=2, strides=3))), (1, 4, 3),
                   (4, 3, 2))
        self.check(lambda x, t: cp.sum(cp.square(nn.cross_entropy_soft(x, t))), (3, 4), (3, 4))
        self.check(lambda x, t: cp.sum(cp.square(nn.cross_entropy_soft(x, t, axis=0))), (3, 4), (3, 4))
        for activation in ("none", "gelu"):
            self.check(lambda c, a, b, v: cp.sum(cp.square(cp.linalg.gemm(c, a, b, v, alpha=2.0, beta=0.5,
                                                                          activation=activation))),
                       (2, 2, 4), (2, 2, 3), (3, 4), (4,))

    def test_indices(self):
        rows, columns = cp.asarray([0, 2, 2, -1]), cp.asarray([1, 0, 0, 1])
        mask = cp.asarray([True, False, True])
        for key in (rows, (rows, columns), (slice(None), columns), mask, (mask, 1), [0, 0], (None, rows, ..., 0),
                    (rows[:, None], columns), cp.asarray([[True, False], [True, True], [False, False]])):
            self.check(lambda x, key=key: cp.sum(cp.exp(x[key]) * 2), (3, 2))
        self.check(lambda x: cp.sum(cp.square(x[np.asarray([1, 1])])), (3,))

    def test_variables_are_like_arrays(self):
        self.check(lambda x: x.sum() * x.mean() + x.max() - x.min() + x.std() + x.var(axis=0).prod(), (3, 4))
        self.check(lambda x: (x.reshape(2, -1)[None].squeeze(0).T.astype(cp.float64) ** 2.0).sum(), (2, 3))
        self.check(lambda x: sum(row * row for row in x) / len(x), (3,))
        self.check(lambda x: cp.sum(x % 0.25 * x + x // 0.25), (3,))
        self.check(lambda x: cp.sum(np.float64(2) * x.to_device("cpu") * np.float64(3)), (3,))
        self.check(lambda x: cp.sum(cp.where(x == x[1], x * x, 0) + cp.where(x != x[1], 3 * x, 0)), (3,))
        x = grad.Variable(cp.asarray(0.0))
        self.assertFalse(x)
        self.assertEqual((float(x), int(x), complex(x), x.item(), x.tolist(), f"{x:.2f}"), (0, 0, 0, 0, 0, "0.00"))
        self.assertFalse(x == None)  # noqa: E711
        self.assertEqual(len({x, x}), 1)
        for wrong in (lambda: len(x), lambda: iter(x), lambda: bool(grad.Variable(cp.zeros(2))), lambda: grad.Variable(cp.zeros((2, 2, 2))).T):
            with self.assertRaises((TypeError, ValueError)):
                wrong()

    def test_expressions_of_variables(self):
        e = cp.expression("tanh(a * x + b)")
        self.check(lambda x, b: cp.sum(e(a=0.5, x=x, b=b)), (2, 3), (3,))
        self.check(lambda x: cp.sum(e(a=x, x=cp.asarray([1.0, 2.0], dtype=cp.float64), b=1) * x), (2,))
        self.check(lambda x: cp.expression("x * y").reduce("sum", x, x, after="sqrt(s)"), (3,))
        self.check(lambda x: cp.sum(cp.expression("x * y").reduce("max", x, 3.0, axis=0, keepdims=True)), (3, 2))
        with self.assertRaisesRegex(TypeError, "several results"):
            grad.gradients(lambda x: cp.sum(cp.expression("x + 1; x - 1")(x)[0]))(cp.ones(2))
        with self.assertRaises(TypeError):
            e(1.0, cp.ones(2), a=2.0)  # twice the same

    def test_products_of_complex_numbers(self):
        z = cp.asarray([1 + 1j, 2j, 3.0])
        for function, expected in ((lambda x: cp.real(cp.prod(x)), [-6j, 3 - 3j, -2 - 2j]),
                                   (lambda x: cp.real(cp.nanprod(x[:2])), [-2j, 1 - 1j, 0]),
                                   (lambda x: cp.real(x[0] * x[1]), [-2j, 1 - 1j, 0])):
            np.testing.assert_allclose(np.asarray(grad.gradients(function)(z)), expected, rtol=1e-6)

    def test_layouts_of_linear(self):
        for activation in ("none", "relu", "gelu", "tanh"):
            for transposed in (False, True):
                def loss(x, w, b):
                    x = cp.permute_dims(x, (1, 0, 2))
                    y = nn.linear(x, w, b, transpose_weight=transposed, activation=activation)
                    return cp.sum(cp.square(cp.permute_dims(y, (2, 1, 0))))

                self.check(loss, (2, 3, 4), (5, 4) if transposed else (4, 5), (5,))
        for x, w, total in (((0, 4), (4, 3), 0), ((2, 0), (0, 3), 6), ((2, 4), (4, 0), 0), ((4,), (4, 0), 0)):
            x, w, b = cp.ones(x), cp.ones(w), cp.ones(w[1])
            found = grad.gradients(lambda *operands: cp.sum(nn.linear(*operands)))(x, w, b)
            self.assertEqual([one.shape for one in found], [x.shape, w.shape, b.shape])
            self.assertEqual([float(cp.sum(one)) for one in found], [0, 0, total])

    def test_no_elements(self):
        for function in (cp.mean, cp.var, cp.std, cp.sum, cp.prod):
            self.assertEqual(grad.gradients(function)(cp.zeros(0)).shape, (0,))
        self.assertTrue(cp.isnan(grad.gradients(lambda x: cp.var(x, correction=1))(cp.ones(1)))[0])

    def test_arrays_that_change_in_place(self):
        x, weights = cp.asarray([1.0, 2.0, 3.0]), cp.asarray([1.0, 2.0, 3.0])
        scale, twice = cp.expression("a * b"), cp.expression("2.0 * b")

        def add_one(c):
            c += 1

        def through_a_view(c):
            c[1:][0] = 5

        def through_a_mask(c):
            c[c > 1] = 0

        def by_out(c):
            twice(x, out=c)

        def by_an_optimiser(c):
            cp.optim.SGD([c]).step([x])

        def late(use, change):
            def loss(x):
                c = cp.asarray(weights, copy=True)
                y = use(x, c)
                change(c)
                return cp.sum(y)
            return loss

        def early(use, change):
            def loss(x):
                c = cp.asarray(weights, copy=True)
                change(c)
                c[...] = weights
                return cp.sum(use(x, c))
            return loss

        for change in (add_one, through_a_view, through_a_mask, by_out, by_an_optimiser):
            for use in (lambda x, c: x * c, lambda x, c: scale(a=x, b=c), lambda x, c: x @ c):
                with self.assertRaisesRegex(RuntimeError, "changed in place"):
                    grad.gradients(late(use, change))(x)
                self.assertEqual(grad.gradients(early(use, change))(x).tolist(), [1, 2, 3])
            ones = grad.gradients(late(lambda x, c: x + c, change))(x)  # a sum needs no operand
            self.assertEqual(ones.tolist(), [1, 1, 1])
        places = cp.asarray([0, 2])

        def indexed(x):
            y = x[None][..., places]
            places[0] = 1
            return cp.sum(y)

        with self.assertRaisesRegex(RuntimeError, "changed in place"):
            grad.gradients(indexed)(x)

    def test_statistics_of_batches(self):
        self.check(lambda x: cp.sum(nn.batch_norm(x)[1] ** 2.0) + cp.sum(cp.exp(nn.batch_norm(x)[2])), (3, 2, 2))
        self.check(lambda x: cp.sum(cp.square(nn.batch_norm(x, axis=0)[0] * cp.sum(nn.batch_norm(x)[1]))), (3, 2))

        running = cp.zeros(2)

        def assigned(x):
            running[...] = nn.batch_norm(x)[1]

        with self.assertRaisesRegex(TypeError, "compute.grad.constant"):
            grad.gradients(assigned)(cp.ones((3, 2)))

        def kept(x):
            y, mean, _ = nn.batch_norm(x)
            running[...] = grad.constant(mean)
            return cp.sum(y)

        grad.gradients(kept)(cp.ones((3, 2)))
        self.assertEqual(running.tolist(), [1, 1])

    def test_gradients_have_the_dtype_of_their_input(self):
        def array(dtype, *shape):
            return cp.asarray(self.numbers(dtype, shape, 1, 5), copy=True)

        def total(y):
            return cp.sum(cp.real(y))

        for wide in ("float64", "complex64"):
            x, y, v = array("float32", 2, 3), array(wide, 3, 2), array(wide, 3)
            for function, operands in (
                    (cp.matmul, (x, y)), (cp.matmul, (y, x)), (cp.vecdot, (x, v)), (cp.vecdot, (v, x)),
                    (lambda a, b: cp.tensordot(a, b, axes=1), (x, y)), (lambda a, b: cp.einsum("ij,jk", a, b), (x, y)),
                    (lambda a, b: cp.concat([a, b]), (x[0], v)), (lambda a, b: cp.stack([a, b]), (x[0], v)),
                    (cp.multiply, (x, v)), (cp.convolve, (x[0], v)), (cp.kron, (x, y))):
                found = grad.gradients(lambda *inputs: total(function(*inputs)))(*operands)
                self.assertEqual([one.dtype for one in found], [one.dtype for one in operands])
            for function in (lambda x: cp.astype(x, wide), lambda x: cp.sum(x, dtype=wide), lambda x: cp.prod(x, dtype=wide),
                             lambda x: cp.cumulative_sum(x, axis=1, dtype=wide),
                             lambda x: cp.cumulative_prod(x, axis=1, dtype=wide)):
                self.assertEqual(grad.gradients(lambda x: total(function(x)))(x).dtype, cp.float32)
        x = cp.asarray([1.0, 1.0])
        self.assert_same(grad.gradients(lambda x: cp.real(x @ cp.asarray([1j, 2.0])))(x), np.float32([0, 2]))
        self.assert_same(grad.gradients(lambda x: cp.real(cp.astype(x, cp.complex64) @ x))(x), np.float32([2, 2]))
        mixed = array("float32", 1, 2, 5), array("float64", 3, 2, 2)
        found = grad.gradients(lambda x, w: cp.sum(nn.convolution(x, w)))(*mixed)
        self.assertEqual([one.dtype for one in found], [cp.float32, cp.float64])
        mixed = cp.astype(array("float32", 3, 2), cp.float16), array("float32", 2), array("float32", 2)
        found = grad.gradients(lambda x, m, v: cp.sum(nn.batch_norm_inference(x, m, v)))(*mixed)
        self.assertEqual([one.dtype for one in found], [cp.float16, cp.float32, cp.float32])

    def test_optimisers(self):
        x = self.random.standard_normal((20, 2)).astype(np.float32)
        inputs, target = self.device_array(x), self.device_array(x @ np.float32([[3], [-1]]))
        step = grad.value_and_gradients(lambda w: cp.mean(cp.square(inputs @ w - target)))
        for make in (lambda p: cp.optim.SGD(p, 0.1), lambda p: cp.optim.SGD(p, 0.05, momentum=0.9),
                     lambda p: cp.optim.Adam(p, 0.2), lambda p: cp.optim.AdamW(p, 0.2, decay=0)):
            w = cp.zeros((2, 1))
            optimiser = make([w])
            for _ in range(200):
                _, dw = step(w)
                optimiser.step([dw])
            np.testing.assert_allclose(np.asarray(w), [[3], [-1]], atol=0.02)

    def test_optimisers_of_structures(self):
        parameters = {"w": [cp.ones(2), cp.ones(())], "b": cp.ones(3)}
        optimiser = cp.optim.SGD(parameters, 0.5)
        optimiser.step(grad.gradients(lambda p: cp.sum(p["w"][0]) + 2 * p["w"][1] + 3 * cp.sum(p["b"]))(parameters))
        self.assertEqual([x.tolist() for x in (*parameters["w"], parameters["b"])], [[0.5, 0.5], 0, [-0.5] * 3])
        optimiser.step({"b": cp.zeros(3), "w": (cp.ones(2), cp.zeros(()))})  # in another order
        self.assertEqual([x.tolist() for x in (*parameters["w"], parameters["b"])], [[0, 0], 0, [-0.5] * 3])
        nested = [{"x": cp.ones(2), "y": cp.zeros(2)}, cp.ones(2)]
        cp.optim.SGD(nested, 1.0).step([{"y": cp.full(2, 2.0), "x": cp.ones(2)}, cp.zeros(2)])
        self.assertEqual([x.tolist() for x in (*nested[0].values(), nested[1])], [[0, 0], [-2, -2], [1, 1]])
        with self.assertRaisesRegex(ValueError, r"gradients \['w', 'c'\] for parameters \['w', 'b'\]"):
            optimiser.step({"w": [cp.ones(2), cp.ones(())], "c": cp.ones(3)})
        alone = cp.ones(3)
        cp.optim.SGD(alone, 1.0).step(x for x in [cp.ones(3)])
        self.assertEqual(alone.tolist(), [0, 0, 0])
        with self.assertRaisesRegex(ValueError, "1 gradients for 3 parameters"):
            optimiser.step([cp.ones(2)])
        with self.assertRaisesRegex(TypeError, "str is neither an array"):
            cp.optim.SGD(["w"])


class Programs(Case):
    def test_activations_with_a_number(self):
        x = np.float32([-2, 0, 3])
        a = self.device_array(x)
        self.assert_same(nn.elu(a), np.where(x < 0, np.expm1(x), x), 2e-6)
        self.assert_same(nn.elu(a, 0.5), np.where(x < 0, np.float32(0.5) * np.expm1(x), x), 2e-6)
        self.assert_same(nn.leaky_relu(a), np.float32([-0.02, 0, 3]))
        self.assert_same(nn.leaky_relu(a, a), np.float32([4, 0, 3]))
        for call in (lambda: nn.convolution(a[None, None], a[None, None], padding="full"),
                     lambda: nn.max_pool(a[None, None], 2, padding="same")):
            with self.assertRaisesRegex(ValueError, "padding is '(full|same)', but should be"):
                call()

    def test_pickles(self):
        e = pickle.loads(pickle.dumps(cp.expression("a * x", "x", "a")))
        self.assertEqual((e.text, e.names, float(e(3.0, cp.asarray(2.0)))), ("a * x", ("x", "a"), 6))
        kernel = cp.kernel("a text", "name", language="cuda-c", options="-x")
        kernel._compiled["cpu"] = object()
        copied = pickle.loads(pickle.dumps(kernel))
        self.assertEqual((copied.source, copied.name, copied.language, copied.options, copied._compiled),
                         ("a text", "name", "cuda-c", "-x", {}))
        generator = cp.random.Generator(5)
        generator.normal(3)
        copied = pickle.loads(pickle.dumps(generator))
        self.assertEqual(copied.normal(3).tolist(), generator.normal(3).tolist())

    def test_expressions(self):
        x = self.numbers("float32", (3, 4))
        a = self.device_array(x)
        e = cp.expression("tanh(a * x + b)")
        self.assertEqual(e.names, ("a", "x", "b"))
        np.testing.assert_allclose(np.asarray(e(a=0.5, x=a, b=a)), np.tanh(0.5 * x + x), rtol=1e-6)
        out = cp.empty((3, 4))
        self.assertIs(e(0.5, a, 1, out=out), out)
        first, second = cp.expression("h = x * x; h + 1")(a), cp.expression("x + 1; x - 1")(a)
        self.assert_same(first, x * x + 1)
        self.assert_same(second[1], x - 1)
        self.assert_same(cp.expression("x * y").reduce("max", a, a, axis=0), (x * x).max(0))
        self.assert_same(cp.expression("x").reduce("sum", a, after="s / 2"), x.sum() / np.float32(2))
        for kind in ("mean", "SUM", ""):
            with self.assertRaisesRegex(cp.InvalidArgumentError, f"^reduce: kind is '{kind}'; expected one of sum, prod"):
                cp.expression("x").reduce(kind, a)
        call = cp.expression("a * x + 1; x", "a", "x").evaluator("a")
        self.assert_same(call([a], [2], None)[0], x * 2 + 1)
        into = cp.empty((3, 4)), cp.empty((3, 4))
        self.assertIs(call((a,), (2,), into)[1], into[1])
        self.assert_same(into[1], x)
        call = cp.expression("x * y").reducer("sum", "s / 2")
        self.assert_same(call((a, cp.ones_like(a)), (), [1], True), x.sum(1, keepdims=True) / 2)
        with self.assertRaises(ValueError):
            cp.expression("x +")
        with self.assertRaises(TypeError):
            e(a)

    def test_kernels(self):
        source = ("COMPUTE_KERNEL scale(COMPUTE_GLOBAL const f32* x, COMPUTE_GLOBAL f32* y, const f32 f, const i64 n,\n"
                  "                     const i64 stride) {\n"
                  "  const i64 i = COMPUTE_GLOBAL_ID(0);\n"
                  "  if (i < n) y[i] = f * x[i * stride];\n"
                  "}\n")
        scale = cp.kernel(source, "scale")
        x = cp.arange(200, dtype=cp.float32)
        view, y = x[::2], cp.empty((100,))
        scale(100, cp.reads(view), y, (0.5, cp.float32), 100, view.strides[0])
        self.assert_same(y, np.arange(0, 200, 2, dtype=np.float32) / 2)
        with self.assertRaises(cp.CompileError):
            cp.kernel("COMPUTE_KERNEL f(COMPUTE_GLOBAL f32* x) { nonsense }", "f")(1, y)
        for group in (0, -1, (4, 0), 1 << 20):
            with self.assertRaises(ValueError, msg=group):
                scale((100, 1), cp.reads(view), y, (0.5, cp.float32), 100, view.strides[0], group=group)

    def test_graphs(self):
        x = cp.asarray([1.0, 2.0])
        slot = cp.graph.slot(cp.float32)
        with cp.graph.record(x.device) as recorded:
            y = x * slot + 1
        recorded.set(slot, 2.0)
        recorded.run()
        self.assert_same(y, np.float32([3, 5]))
        x[...] = cp.asarray([5.0, 6.0])
        recorded.set(slot, 3.0)
        recorded.run()
        self.assert_same(y, np.float32([16, 19]))
        self.assertGreater(recorded.info["nodes"], 0)
        with self.assertRaises(ZeroDivisionError):
            with cp.graph.record(x.device) as broken:
                1 / 0
        for use in (broken.run, lambda: broken.set(slot, 1), lambda: broken.info):
            with self.assertRaisesRegex(RuntimeError, "has not been recorded"):
                use()

    def test_slots_as_values(self):
        slot, number, x, w = cp.graph.slot(cp.float32), cp.graph.slot(cp.int32), cp.zeros((2, 3)), cp.zeros(3)
        with cp.graph.record() as recorded:
            x[0] = slot
            x[1, [0, 2]] = slot
            x[x > slot] = slot
            x[1, 1] = slot
            y = cp.full((2,), slot)
            z = cp.full((2,), number, dtype=cp.float32)
            w[...] = number
        for value in (2.0, 3.0):
            recorded.set(slot, value)
            recorded.set(number, int(value))
            recorded.run()
            self.assert_same(z, np.full(2, value, np.float32))
            self.assert_same(w, np.full(3, value, np.float32))
            self.assert_same(x, np.full((2, 3), value, np.float32))
            self.assert_same(y, np.full(2, value, np.float32))

    def test_slots_alone(self):
        """Ops of slots alone are recorded, on the device of the stream."""
        slot, device = cp.graph.slot(cp.float32), cp.device()
        with cp.graph.record() as recorded:
            y, z = slot * 2 + 1, cp.where(slot > 1, slot, -slot)
        self.assertEqual({y.device, z.device}, {device})
        for value in (3.0, 0.5):
            recorded.set(slot, value)
            recorded.run()
            self.assertEqual((float(y), float(z)), (2 * value + 1, value if value > 1 else -value))

    def test_slots_have_no_value(self):
        slot = cp.graph.slot(cp.int32)
        for use in (int, float, bool, complex, lambda x: x.item(), lambda x: x.tolist(), lambda x: range(x)):
            with self.assertRaisesRegex(TypeError, "slot of a graph has no value"):
                use(slot)
        self.assertEqual((repr(slot), str(slot)), ("Array(slot, dtype=int32)", "slot"))

    def test_full_of_recorded_values(self):
        x = cp.asarray([1.0, 2.0])
        with cp.graph.record() as recorded:
            y = cp.full((3,), cp.sum(x))
        for values in ([1.0, 2.0], [5.0, 6.0]):
            x[...] = cp.asarray(values)
            recorded.run()
            self.assert_same(y, np.full(3, sum(values), np.float32))

    def test_recorded_steps(self):
        """The number of the step is that of the recording unless it is a slot."""
        recorded, direct = ([cp.asarray([1.0, 2.0])] for _ in range(2))
        optimisers = [cp.optim.Adam(p, rate=0.1) for p in (recorded, direct)]
        slot, squares = cp.graph.slot(cp.int64), cp.grad.gradients(lambda x: cp.sum(x * x))
        with cp.graph.record() as step:
            optimisers[0].step([squares(recorded[0])], step=slot)
        for i in range(3):
            step.set(slot, i + 1)
            step.run()
            optimisers[1].step([squares(direct[0])])
        self.assert_same(recorded[0], np.asarray(direct[0]), 1e-6)

    def test_slots_of_all_dtypes(self):
        halves = [(1 + 2 ** -8, 1.0), (1 + 2 ** -8 + 2 ** -12, 1 + 2 ** -7), (1e39, math.inf), (-0.0, -0.0), (math.nan, math.nan)]
        values = {"bfloat16": [*halves, (np.float32(2.5), 2.5), (cp.asarray([2.5]), 2.5), (np.asarray(3), 3.0)],
                  "float16": [(1 / 3, float(np.float16(1 / 3))), (1e5, math.inf)],
                  "float32": [(0.1, float(np.float32(0.1))), (-1e300, -math.inf)], "int8": [(-128, -128), (np.int64(127), 127)],
                  "uint64": [(2 ** 64 - 1, 2 ** 64 - 1)], "bool": [(True, True), (False, False)],
                  "complex64": [(1 - 2j, 1 - 2j), (3, 3 + 0j)]}
        for dtype in [name for name in values if not NARROW or name in ("bfloat16", "float32")]:
            slot = cp.graph.slot(dtype)
            with cp.graph.record() as recorded:
                y = cp.where(cp.ones(2, dtype=cp.bool), slot, slot)
            for value, expected in values[dtype]:
                recorded.set(slot, value)
                recorded.run()
                self.assertEqual((str(y.tolist()), y.dtype.name), (str([expected] * 2), dtype), f"{dtype}: {value}")
        slot = cp.graph.slot("int8")
        with cp.graph.record() as recorded:
            cp.ones(2, dtype="int8") + slot
        for value, error in ((128, OverflowError), (2.5, TypeError), (1j, TypeError), (cp.ones(2), TypeError), ("2", TypeError)):
            with self.assertRaises(error):
                recorded.set(slot, value)

    def test_streams(self):
        x = cp.ones((1000,))
        with cp.stream(x.device) as stream:
            y = x + 1
            event = stream.record()
        event.synchronize()
        self.assertTrue(event.finished())
        stream.synchronize()
        self.assertTrue(stream.finished())
        self.assert_same(y * 2, np.full(1000, 4, np.float32))
        with cp.stream(x.device) as stream:
            start = stream.record(timed=True)
            x + 1
            end = stream.record(True)
        self.assertGreaterEqual(end.elapsed_since(start), 0)
        with self.assertRaises(ValueError):
            end.elapsed_since(event)
        # One element, while what computes it is queued, and of a result that has no values.
        with cp.stream(x.device):
            product = cp.ones((300, 300))
            for _ in range(8):
                product = product @ cp.full((300, 300), 1 / 300)
        self.assertAlmostEqual(float(product[7, 7]), 1, places=4)
        with cp.stream(x.device):
            taken = cp.take(x, cp.asarray([0, 1000]))
        for _ in range(2):
            with self.assertRaisesRegex(cp.KernelError, "index 1000 is out of range"):
                float(taken[0])

    def test_random_numbers(self):
        generator = cp.random.Generator(3)
        first, second = generator.uniform((100,)), generator.uniform((100,))
        self.assertFalse(np.array_equal(np.asarray(first), np.asarray(second)))
        generator.seed(3)
        self.assert_same(generator.uniform((100,)), np.asarray(first))
        x = np.asarray(cp.random.normal((10000,), 2.0, 3.0))
        self.assertLess(abs(x.mean() - 2), 0.2)
        self.assertLess(abs(x.std() - 3), 0.2)
        self.assertEqual(sorted(cp.random.permutation(20).tolist()), list(range(20)))
        integers = np.asarray(cp.random.integers((1000,), -2, 3))
        self.assertEqual((integers.min(), integers.max()), (-2, 2))
        with cp.device("cpu"):
            on_host = cp.random.Generator(9).bits((50,))
        self.assert_same(cp.random.Generator(9).bits((50,)), np.asarray(on_host))
        keys = np.asarray(cp.random.Generator(9).bits((100,), dtype=cp.uint64))
        self.assert_same(cp.random.Generator(9).permutation(100), np.argsort(keys))

    def test_draws_of_counts(self):
        generator = cp.random.Generator(3)
        for count, p in ((7, 0.5), (np.arange(1, 401, dtype=np.int32), 0.25), (100.0, np.full((3, 200), 0.75))):
            given = cp.asarray(count) if isinstance(count, np.ndarray) else count
            drawn = np.asarray(generator.binomial(given, cp.asarray(p) if isinstance(p, np.ndarray) else cp.full(2000, p)
                                                  if not isinstance(count, np.ndarray) else p))
            self.assertTrue(((drawn >= 0) & (drawn <= count) & (drawn == np.round(drawn))).all())
            self.assertLess(abs(drawn.mean() - np.mean(count * np.mean(p))), 1)
        drawn = np.asarray(generator.multinomial(cp.full(1000, 50.0), cp.asarray([0.5, 0.0, 0.2, 0.3])))
        self.assertEqual(drawn.shape, (1000, 4))
        self.assertTrue((drawn.sum(axis=1) == 50).all())
        self.assertLess(np.abs(drawn.mean(axis=0) - [25, 0, 10, 15]).max(), 0.7)

    def test_calls_of_a_generator_share_no_random_bits(self):
        generator, alpha = cp.random.Generator(3), cp.full((80,), 2.0)
        logits = cp.zeros((40, 5))
        self.assertEqual(len({tuple(np.asarray(generator.poisson(alpha)).tolist()) for _ in range(3)}), 3)
        for draw in (lambda: generator.gamma(alpha), lambda: generator.uniform((80,), dtype=cp.float32),
                     lambda: generator.integers((80,), 0, 2 ** 62), lambda: generator.bits((80,), dtype=cp.uint64),
                     lambda: generator.truncated_normal((80,))):
            self.assertEqual(len({value for _ in range(3) for value in np.asarray(draw()).tolist()}), 240)
        for draw in (lambda: generator.categorical(logits), lambda: generator.bernoulli((80,)),
                     lambda: generator.dropout(cp.ones((80,)))):
            self.assertFalse(np.array_equal(np.asarray(draw()), np.asarray(draw())))

    def test_arguments_of_random_numbers(self):
        self.assertEqual(cp.random.integers(4, 250, 256, dtype=cp.uint8).dtype, cp.uint8)
        for error, call in ((ValueError, lambda: cp.random.integers(3, 5, 5)),
                            (ValueError, lambda: cp.random.integers(3, 6)),
                            (OverflowError, lambda: cp.random.integers(3, 0, 257, dtype=cp.uint8)),
                            (OverflowError, lambda: cp.random.integers(3, -1, 5, dtype="uint8")),
                            (OverflowError, lambda: cp.random.integers(3, 0, np.int64(300), dtype=cp.int8)),
                            (ValueError, lambda: cp.random.integers(3, np.int64(5), np.int64(2))),
                            (ValueError, lambda: cp.random.choice(3, 2, p=cp.asarray([-1.0, 1.0, 1.0]))),
                            (ValueError, lambda: cp.random.choice(3, 2, p=cp.asarray([cp.nan, 1.0, 1.0]))),
                            (ValueError, lambda: cp.random.choice(3, 2, p=cp.asarray([cp.inf, 1.0, 1.0]))),
                            (ValueError, lambda: cp.random.choice(3, 2, p=cp.zeros(3))),
                            (ValueError, lambda: cp.random.choice(3, 1, p=-cp.ones(3), replace=False)),
                            (ValueError, lambda: nn.dropout(cp.ones(3), 1.5)),
                            (ValueError, lambda: nn.dropout(cp.ones(3), cp.nan)),
                            (ValueError, lambda: cp.random.bernoulli(3, -0.1)),
                            (ValueError, lambda: cp.random.bernoulli(3, np.float32(1.5))),
                            (ValueError, lambda: cp.random.bernoulli(3, cp.nan)),
                            (ValueError, lambda: cp.random.truncated_normal(3, lower=2.0, upper=-2.0)),
                            (ValueError, lambda: cp.random.normal(3, 0.0, -1.0)),
                            (ValueError, lambda: cp.random.truncated_normal(3, deviation=-1)),
                            (ValueError, lambda: cp.random.truncated_normal(3, lower=cp.nan)),
                            (OverflowError, lambda: cp.random.uniform(3, -3e38, 3e38)),
                            (OverflowError, lambda: cp.random.uniform(3, 0, cp.inf)),
                            (OverflowError, lambda: cp.random.uniform(3, cp.nan, 1)),
                            (OverflowError, lambda: cp.random.uniform(3, -1e308, 1e308, dtype=cp.float64)),
                            (OverflowError, lambda: cp.random.integers(3, 0, 2 ** 64 + 1, dtype=cp.uint64)),
                            (IndexError, lambda: cp.random.shuffle(cp.asarray(1.0))),
                            (ValueError, lambda: cp.random.Generator(-1)),
                            *((ValueError, lambda state=state: cp.random.Generator().__setstate__(state))
                              for state in ((-1, 0), (2 ** 63, 0), (0, -1), (0, 2 ** 63), (1,), (1, 2, 3), 5, ("a", 0), (1.5, 0), None)),
                            (ValueError, lambda: cp.random.seed(2 ** 63)),
                            (TypeError, lambda: cp.random.seed(0.5)),
                            (ValueError, lambda: cp.random.uniform(0, 1, 5)), (ValueError, lambda: cp.random.normal(0, 1, 5)),
                            (TypeError, lambda: cp.random.categorical({0.0, 1.0}))):
            with self.assertRaises(error):
                call()
        self.assertEqual(nn.dropout(cp.ones(3), 1).tolist(), [0, 0, 0])
        self.assertEqual(cp.random.choice(3, 4, p=cp.asarray([0.0, 0.0, 5.0])).tolist(), [2, 2, 2, 2])
        with self.assertRaisesRegex(ValueError, r"^uniform: \[1.0, 0.0\) is not a range"):
            cp.random.uniform(3, 1.0, 0.0)
        self.assertEqual(cp.random.uniform(2, 1.5, 1.5).tolist(), [1.5, 1.5])
        wide = np.asarray(cp.random.uniform(1000, -6e4, 6e4, dtype=cp.float16))
        self.assertTrue(wide.min() < -5e4 and wide.max() > 5e4)
        cp.set_default_dtype(cp.float64)
        try:
            made = [cp.random.uniform(2), cp.random.normal(2), cp.random.truncated_normal(2)]
        finally:
            cp.set_default_dtype(cp.float32)
        self.assertEqual([x.dtype for x in (*made, cp.random.normal(2))], [cp.float64] * 3 + [cp.float32])

    def test_numbers_as_arguments_of_kernels(self):
        for number, expected in ((np.int64(3), struct.pack("q", 3)), (np.float32(0.5), struct.pack("d", 0.5)),
                                 ((np.int16(3), cp.int8), struct.pack("b", 3)), ((3, cp.float32), struct.pack("f", 3))):
            self.assertEqual(cp.kernels._argument(number), expected)
        for number, expected in (((1.0, cp.bfloat16), b"\x80\x3f"), ((-0.0, cp.bfloat16), b"\x00\x80"),
                                 ((1, cp.complex64), struct.pack("2f", 1, 0)), ((1e5, cp.float16), struct.pack("e", math.inf)),
                                 ((2.5, "float32"), struct.pack("f", 2.5)), ((True, cp.int32), struct.pack("i", 1))):
            self.assertEqual(cp.kernels._argument(number), expected)
        for number in ((300, cp.int8), (np.int64(-1), cp.uint32), 2 ** 63):
            with self.assertRaises(OverflowError):
                cp.kernels._argument(number)
        for number in ((2.5, cp.int32), (1j, cp.float32), "2", (None, cp.int32)):
            with self.assertRaises(TypeError):
                cp.kernels._argument(number)

    def test_integers_at_the_ends_of_64_bits(self):
        for dtype, least, end in (("int64", -2 ** 63, 2 ** 63), ("uint64", 0, 2 ** 64)):
            for first in (end - 4, end - 1):
                found = cp.random.integers(200, first, end, dtype=dtype)
                self.assertEqual(found.dtype.name, dtype)
                self.assertEqual(set(found.tolist()), set(range(first, end)))
            for first in (least, least + 1, least + 2 ** 62):
                found = cp.random.integers(2000, first, end, dtype=dtype).tolist()
                self.assertEqual(len(set(found)), 2000)
                self.assertTrue(min(found) >= first)
                count = end - first  # each eighth is drawn from
                self.assertEqual({(one - first) * 8 // count for one in found}, set(range(8)))

    def test_process(self):
        with self.assertRaises(ValueError) as caught:
            with cp.scope("outer"):
                cp.zeros(2) + cp.zeros(3)
        self.assertIn("scope: outer", str(caught.exception))
        self.assertIn("ops", cp.placement_report())
        self.assertIn("COMPUTE_DEVICE", cp.config())
        self.assertIn("cpu", cp.load_report())
        self.assertIn("ops_run", cp.device("cpu").statistics())
        self.assertEqual(cp.device("cpu").info()["name"], "cpu")
        self.assertIn(cp.device("cpu"), cp.devices())

    def test_every_op_has_a_public_function(self):
        renamed = {"adam": cp.optim.Adam, "adamw": cp.optim.AdamW, "sgd": cp.optim.SGD, "sgd_momentum": cp.optim.SGD,
                   "affine": nn.linear, "cast": cp.astype, "copy": cp.asarray, "fill": cp.full, "unique": cp.unique_all}
        for name in cp._ops.TABLE:
            if "_grad" in name or name in renamed:  # gradients belong to compute.grad
                continue
            short = name.removeprefix("random_")
            self.assertTrue(any(hasattr(module, short) for module in (cp, nn, cp.linalg, cp.random, cp.fft)), name)
        for module in (cp, nn, cp.linalg):
            for name, function in vars(module).items():
                if name[0] != "_" and callable(function):
                    self.assertTrue(function.__doc__, name)
        self.assertIn("Dtypes: all but complex", cp.top_k.__doc__)

    def test_the_namespace(self):
        info = cp.__array_namespace_info__()
        self.assertEqual(info.capabilities()["max dimensions"], 32)
        self.assertIs(info.default_dtypes()["real floating"], cp.float32)
        self.assertIs(info.dtypes(kind="bool")["bool"], cp.bool)
        self.assertIs(cp.zeros(1).__array_namespace__(api_version="2025.12"), cp)
        with self.assertRaises(ValueError):
            cp.zeros(1).__array_namespace__(api_version="1999.12")
