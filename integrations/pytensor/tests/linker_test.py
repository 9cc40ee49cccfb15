# SPDX-License-Identifier: Apache-2.0
"""Ops in the mode COMPUTE, against PyTensor's own interpreter."""
import copy
import pickle
import unittest

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile.io import In, Out
from pytensor.ifelse import ifelse
from pytensor.scalar import basic as ps
from pytensor.tensor.elemwise import CAReduce

import compute
import compute_pytensor
from case import REFERENCE, Case

m, n, v, w = pt.matrix("m", dtype="float32"), pt.matrix("n", dtype="float32"), pt.vector("v", dtype="float32"), pt.vector("w", dtype="float32")


class Elementwise(Case):
    def test_functions(self):
        x = self.values(3, 5)
        names = ("exp log1p sin cos tan arctan sinh cosh tanh arcsinh expm1 floor ceil trunc sign erf erfc sigmoid softplus "
                 "sqr neg reciprocal deg2rad exp2 abs round isnan isinf invert").split()
        for name in names:
            if name == "invert":
                continue
            with self.subTest(name=name):
                self.check([m], getattr(pt, name)(m), x)

    def test_functions_of_positive_numbers(self):
        x = np.abs(self.values(3, 5)) + np.float32(0.1)
        for name in ("log", "log2", "log10", "sqrt", "gamma", "gammaln", "psi", "tri_gamma", "erfcx", "arccosh"):
            with self.subTest(name=name):
                self.check([m], getattr(pt, name)(m + 1 if name == "arccosh" else m), x, tolerance=1e-4)
        self.check([m], [pt.arcsin(m / 9), pt.arccos(m / 9), pt.arctanh(m / 9), pt.erfinv(m / 9)], x)

    def test_composite_is_one_node(self):
        made = self.check([m, v], pt.exp(m * 2 + v) / (1 + m ** 2) - pt.maximum(m, 0), self.values(4, 3), self.values(3))
        names = [type(node.op).__name__ for node in made.maker.fgraph.toposort()]
        self.assertEqual(sorted(names), ["DimShuffle", "Elemwise"])

    def test_dtypes(self):
        for first in ("bool", "int8", "int32", "int64", "uint8", "float16", "float32", "float64", "complex64"):
            for second in ("int16", "float32", "float64", "complex128"):
                a, b = pt.vector("a", dtype=first), pt.vector("b", dtype=second)
                with self.subTest(first=first, second=second):
                    x, y = self.values(7, dtype=first), self.values(7, dtype=second)
                    self.check([a, b], [a + b, a * b, pt.eq(a, b)], x, y)

    def test_integers(self):
        a, b = pt.vector("a", dtype="int32"), pt.vector("b", dtype="int32")
        x, y = self.values(20, dtype="int32"), self.values(20, dtype="int32")
        y[y == 0] = 3
        self.check([a, b], [a // b, a % b, a & b, a | b, a ^ b, ~a, a / b, pt.lt(a, b), pt.switch(a > b, a, b), abs(a), a ** 2], x, y)

    def test_numbers_of_the_host(self):
        s, k = pt.scalar("s", dtype="float32"), pt.iscalar("k")
        self.check([m, s, k], [m * s + k, s * 2, pt.exp(s) * m], self.values(2, 3), np.float32(0.3), 4)

    def test_what_expressions_do_not_have(self):
        x = np.abs(self.values(4, 3, dtype="float64")) + 0.1
        a = pt.matrix("a", dtype="float64")
        self.check([a], pt.gammaincinv(a, 0.5), x, on_host=["Elemwise{GammaIncInv}"])
        self.check([a], pt.exp(pt.gammaincinv(a, 0.5) * 2 + a), x, on_host=["Elemwise{GammaIncInv}"])
        self.assertIn("GammaIncInv", compute_pytensor.placement_report())

    def test_special_functions(self):
        x = np.abs(self.values(4, 3, dtype="float64")) + 0.1
        a = pt.matrix("a", dtype="float64")
        self.check([a], [pt.gammainc(a, 0.5), pt.gammaincc(2.5, a), pt.betainc(a, 2.0, 0.25), pt.polygamma(2, a), pt.erfcinv(a * 0.1),
                         pt.i0(a), pt.i1(a), pt.j0(a), pt.j1(a), pt.exp(pt.gammainc(a, 0.5) * 2 + a)], x)
        flat = self.values(5, 7, dtype="float32")
        self.check([m], [pt.i0(m), pt.j1(m), pt.gammaincc(abs(m), 1.5)], flat)

    def test_reductions_of_bits(self):
        for dtype in ("bool", "uint8", "int32", "int64"):
            a = pt.matrix("a", dtype=dtype)
            with self.subTest(dtype=dtype):
                self.check([a], [CAReduce(kind, axis=axis)(a) for kind in (ps.and_, ps.or_, ps.xor) for axis in (None, 0, (1,))],
                           self.values(5, 21, dtype=dtype))

    def test_extents_that_are_not_known_to_be_1(self):
        made = pytensor.function([m, n], m + n, mode="COMPUTE")
        with self.assertRaisesRegex(ValueError, "Runtime broadcasting not allowed"):
            made(self.values(1, 3), self.values(2, 3))


class Arrays(Case):
    def test_reductions(self):
        x = self.values(3, 4)
        for name in ("sum", "prod", "max", "min", "mean", "var", "argmax", "argmin"):
            for axis in (None, 0, 1):
                with self.subTest(name=name, axis=axis):
                    self.check([m], getattr(pt, name)(m, axis=axis), x)
        b = pt.matrix("b", dtype="bool")
        self.check([b], [pt.all(b, axis=0), pt.any(b), pt.sum(b, axis=1)], self.values(3, 4, dtype="bool"))
        i = pt.matrix("i", dtype="int8")
        self.check([i], [i.sum(), i.prod(axis=0), i.max(axis=1), i.mean()], self.values(3, 4, dtype="int8"))

    def test_shapes(self):
        c = pt.tensor3("c", dtype="float32", shape=(None, None, 1))
        self.check([c], c.dimshuffle(1, 0), self.values(2, 3, 1))
        self.check([m], [m.T, m.dimshuffle(1, "x", 0), m.reshape((-1,)), m.reshape((m.shape[1], m.shape[0])), m.shape, m.flatten()[1:],
                         pt.specify_shape(m, (3, None)) * 2], self.values(3, 4))

    def test_new_arrays(self):
        k = pt.iscalar("k")
        self.check([k, v], [pt.zeros((k, 2)), pt.full((2, k), v[0]), pt.arange(k), pt.eye(k), pt.alloc(v, k, v.shape[0]), pt.ones_like(v)],
                   3, self.values(4))

    def test_joins(self):
        a, b = pt.split(v, [2, 3], n_splits=2)
        self.check([m, n, v], [pt.join(0, m, n), pt.join(1, m, n), pt.stack([m, n]), a, b, pt.repeat(m, 2, axis=1), pt.tile(v, 2),
                               pt.diag(v), pt.diagonal(m, 1), pt.tril(m), pt.concatenate([v, v.astype("float64")])],
                   self.values(3, 4), self.values(3, 4), self.values(5))

    def test_subtensors(self):
        i, j = pt.lvector("i"), pt.iscalar("j")
        index = np.array([2, 0, 2, -1])
        self.check([m, i, j], [m[0], m[j], m[1:, ::2], m[::-1], m[:, j], m[i], m[i, 1], m[:, i], m[i][:, i], m[i, i], m[m > 0], m[None, i]],
                   self.values(4, 4), index, 1)

    def test_writes(self):
        i, j = pt.lvector("i"), pt.iscalar("j")
        index = np.array([2, 0, 2, -1])
        self.check([m, v, i, j], [pt.set_subtensor(m[0], v), pt.inc_subtensor(m[:, 1:3], v[0]), pt.set_subtensor(m[j, 1], 9),
                                  pt.inc_subtensor(m[i], v), pt.inc_subtensor(m[:, i], v), pt.set_subtensor(m[m > 0], 0),
                                  pt.inc_subtensor(m[i, i], v), pt.inc_subtensor(v[i], v)],
                   self.values(4, 4), self.values(4), index, 1)

    def test_transforms(self):
        from pytensor.tensor.fft import irfft, rfft

        self.check([m], [rfft(m), irfft(rfft(m)), m.nonzero()[1]], self.values(3, 8))

    def test_sorting(self):
        self.check([m], [pt.sort(m), pt.argsort(m, axis=0), pt.cumsum(m, axis=1), pt.cumprod(m), pt.special.softmax(m, axis=-1),
                         pt.special.log_softmax(m, axis=0), pt.searchsorted(pt.sort(m[0]), m[1])], self.values(4, 5))

    def test_errors_are_those_of_numpy(self):
        j = pt.iscalar("j")
        for made in (pytensor.function([v, j], v[j], mode="COMPUTE"),
                     pytensor.function([v, j], v[pt.stack([j, j])], mode="COMPUTE")):
            with self.assertRaises(IndexError):
                made(self.values(3), 5)
        with self.assertRaises(ValueError):
            pytensor.function([m, n], m @ n, mode="COMPUTE")(self.values(2, 3), self.values(2, 3))


class Matrices(Case):
    def test_products(self):
        a, b = pt.tensor3("a", dtype="float32"), pt.tensor3("b", dtype="float32")
        i = pt.matrix("i", dtype="int32")
        self.check([m, n, v], [m @ n, m @ v, v @ n.T, v @ v, m.T @ m], self.values(4, 4), self.values(4, 4), self.values(4))
        self.check([a, b], [pt.matmul(a, b), pt.batched_dot(a, b)], self.values(2, 3, 4), self.values(2, 4, 5))
        self.check([i], i @ i.T, self.values(2, 3, dtype="int32"))

    def test_solvers(self):
        a, b = pt.matrix("a", dtype="float64"), pt.vector("b", dtype="float64")
        x = self.values(4, 4, dtype="float64")
        positive = x @ x.T + 4 * np.eye(4)
        inverse = pt.linalg.inv if hasattr(pt.linalg, "inv") else pt.nlinalg.matrix_inverse
        self.check([a, b], [pt.linalg.solve(a, b), pt.linalg.cholesky(a), pt.linalg.solve_triangular(a, b, lower=True),
                            inverse(a), pt.linalg.det(a), *pt.linalg.slogdet(a), pt.linalg.svd(a, compute_uv=False),
                            pt.linalg.cho_solve((pt.linalg.cholesky(a), True), b)],
                   positive, self.values(4, dtype="float64"))

    def test_results_that_do_not_exist(self):
        a = pt.matrix("a", dtype="float64")
        found = pytensor.function([a], pt.linalg.cholesky(a), mode="COMPUTE")(-np.eye(3))
        self.assertTrue(np.isnan(found).any())

    def test_batches(self):
        a = pt.tensor3("a", dtype="float64")
        x = self.values(3, 2, 2, dtype="float64")
        self.check([a], [pt.linalg.cholesky(a), pt.linalg.solve(a, pt.ones((3, 2)), b_ndim=1)], x @ x.transpose(0, 2, 1) + np.eye(2))


class Control(Case):
    def test_only_one_branch_runs(self):
        c, calls = pt.iscalar("c"), []

        class Seen(pytensor.graph.op.Op):
            __props__ = ("name",)

            def __init__(self, name):
                self.name = name

            def make_node(self, x):
                return pytensor.graph.basic.Apply(self, [x], [x.type()])

            def perform(self, node, inputs, outputs):
                calls.append(self.name)
                outputs[0][0] = inputs[0] + 1

        made = pytensor.function([c, v], ifelse(c, pt.exp(Seen("yes")(v)), Seen("no")(v * 2)), mode="COMPUTE")
        x = self.values(3)
        np.testing.assert_allclose(made(1, x), np.exp(x + 1), rtol=1e-5)
        np.testing.assert_allclose(made(0, x), x * 2 + 1, rtol=1e-5)
        self.assertEqual(calls, ["yes", "no"])

    def test_assertions(self):
        made = pytensor.function([v], pytensor.raise_op.Assert("not positive")(v, pt.all(v > 0)) * 2, mode="COMPUTE")
        made(np.ones(3, "float32"))
        with self.assertRaisesRegex(AssertionError, "not positive"):
            made(-np.ones(3, "float32"))

    def test_gradients(self):
        cost = pt.sum(pt.tanh(m @ v) ** 2)
        self.check([m, v], pytensor.grad(cost, [m, v]), self.values(4, 3), self.values(3))

    def test_scan(self):
        k = pt.iscalar("k")
        powers = pytensor.scan(lambda x, a: x * a, outputs_info=[pt.ones_like(v)], non_sequences=[v], n_steps=k, return_updates=False)
        self.check([v, k], [powers, powers[-1]], self.values(3), 4)
        fibonacci = pytensor.scan(lambda a, b: a + b, outputs_info=[{"initial": v[:2], "taps": [-2, -1]}], n_steps=k, return_updates=False)
        self.check([v, k], fibonacci, self.values(3), 5)
        rows = pytensor.scan(lambda row, i, total: [row.sum() * i, total + row], sequences=[m, pt.arange(3)],
                             outputs_info=[None, pt.zeros_like(m[0])], return_updates=False)
        self.check([m], rows, self.values(3, 4))
        self.check([m, v], pytensor.grad(pt.sum(pytensor.scan(lambda h, a: pt.tanh(a @ h), outputs_info=[v], non_sequences=[m], n_steps=4,
                                                              return_updates=False)), [m, v]), self.values(3, 3), self.values(3))

    def test_loops_are_recorded(self):
        hidden = pytensor.scan(lambda row, h, a: pt.tanh(row + a @ h), sequences=[m], outputs_info=[pt.zeros_like(m[0])], non_sequences=[n],
                               return_updates=False)
        made = pytensor.function([m, n], [hidden, *pytensor.grad(hidden.sum(), [m, n])], mode="COMPUTE")
        expected = pytensor.function([m, n], [hidden, *pytensor.grad(hidden.sum(), [m, n])], mode=REFERENCE)
        held = None
        for rows in (5, 5, 5, 5, 7, 7, 7, 5):
            x, w = self.values(rows, 3), self.values(3, 3)
            found = made(x, w)
            for one, other in zip(found, expected(x, w)):
                np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)
            if held is not None:
                np.testing.assert_array_equal(held[0], held[1])
            held = found[0], found[0].copy()
        loops = [one.function for one in made.vm.program.lowered.values() if hasattr(one.function, "graphs")]
        self.assertTrue(any(graph for loop in loops for graph in loop.graphs.values()))

    def test_scan_until(self):
        doubled = pytensor.scan(lambda x: (x * 2, pytensor.scan_until(x > 10) if hasattr(pytensor, "scan_until") else
                                           __import__("pytensor.scan.utils", fromlist=["until"]).until(x > 10)),
                                outputs_info=[v[0]], n_steps=20, return_updates=False)
        self.check([v], doubled, np.ones(2, "float32"))


class Shared(Case):
    def test_values_stay_on_the_device(self):
        x = pytensor.shared(self.values(3), "x")
        made = pytensor.function([], [], updates=[(x, x * 2)], mode="COMPUTE")
        before = x.get_value()
        made()
        self.assertIsInstance(x.get_value(borrow=True, return_internal_type=True), compute.Array)
        self.assertIsNone(list.__getitem__(x.container.storage, 0))  # no copy on the host
        made()
        self.assertIsInstance(x.get_value(), np.ndarray)
        np.testing.assert_allclose(x.get_value(), before * 4)

    def test_get_and_set(self):
        start = self.values(3)
        x = pytensor.shared(start, "x")
        start[0] = 9
        self.assertNotEqual(x.get_value()[0], 9)
        found = x.get_value()
        found[0] = 7
        self.assertNotEqual(x.get_value()[0], 7)
        made = pytensor.function([], x + 1, mode="COMPUTE")
        x.set_value(np.arange(3, dtype="float32"))
        np.testing.assert_array_equal(made(), [1, 2, 3])
        x.set_value(compute.asarray([4.0, 5.0]))
        np.testing.assert_array_equal(made(), [5, 6])
        x.zero()
        np.testing.assert_array_equal(made(), [1, 1])
        with self.assertRaises(TypeError):
            x.set_value(compute.asarray([[4.0]]))

    def test_other_modes_read_them(self):
        x = pytensor.shared(self.values(3), "x")
        before = x.get_value()
        pytensor.function([], [], updates=[(x, x + 1)], mode="COMPUTE")()
        np.testing.assert_allclose(pytensor.function([], x * 2, mode="FAST_COMPILE")(), (before + 1) * 2, rtol=1e-6)
        pytensor.function([], [], updates=[(x, x * 0)], mode="FAST_COMPILE")()
        np.testing.assert_array_equal(pytensor.function([], x + 1, mode="COMPUTE")(), [1, 1, 1])

    def test_results_are_never_overwritten(self):
        x = pytensor.shared(np.zeros((3, 2), "float32"), "x")
        made = pytensor.function([v], Out(x, borrow=True), updates=[(x, pt.set_subtensor(x[0], v))], mode="COMPUTE")
        made(np.ones(2, "float32"))
        held = made(np.full(2, 2, "float32"))
        made(np.full(2, 3, "float32"))
        np.testing.assert_array_equal(held, [[1, 1], [0, 0], [0, 0]])

    def test_inputs_are_not_changed(self):
        x = self.values(3)
        before = x.copy()
        made = pytensor.function([In(v, borrow=True)], pt.set_subtensor(v[0], 5), mode="COMPUTE")
        made(x)
        np.testing.assert_array_equal(x, before)

    def test_copies_of_functions(self):
        x, y = pytensor.shared(self.values(3), "x"), pytensor.shared(self.values(3), "y")
        made = pytensor.function([], x * 2, updates=[(x, x + 1)], mode="COMPUTE")
        other = made.copy(swap={x: y})
        np.testing.assert_allclose(other(), (y.get_value() - 1) * 2, rtol=1e-5)


    def test_functions_are_pickled(self):
        x = pytensor.shared(self.values(3), "x")
        made = pytensor.function([v], v * x, updates=[(x, x + 1)], mode="COMPUTE")
        made(np.ones(3, "float32"))
        other = pickle.loads(pickle.dumps(made))
        np.testing.assert_array_equal(other(np.ones(3, "float32")), x.get_value())
        np.testing.assert_array_equal(copy.deepcopy(x).get_value(), x.get_value())


class Random(Case):
    def draw(self, make, seed=1, **options):
        rng = pytensor.shared(np.random.default_rng(seed), "rng")
        made = pytensor.function([], make(rng), mode="COMPUTE", **options)
        return made()

    def test_moments(self):
        size = (200, 100)
        expected = {"normal": (lambda r: pt.random.normal(1, 2, size=size, rng=r), 1, 2), "uniform": (lambda r: pt.random.uniform(-1, 3, size=size, rng=r), 1, 4 / 12 ** 0.5),
                    "exponential": (lambda r: pt.random.exponential(2, size=size, rng=r), 2, 2), "gamma": (lambda r: pt.random.gamma(3, scale=2, size=size, rng=r), 6, 12 ** 0.5),
                    "beta": (lambda r: pt.random.beta(2, 2, size=size, rng=r), 0.5, 0.05 ** 0.5), "bernoulli": (lambda r: pt.random.bernoulli(0.3, size=size, rng=r), 0.3, 0.21 ** 0.5),
                    "integers": (lambda r: pt.random.integers(0, 10, size=size, rng=r), 4.5, 8.25 ** 0.5), "laplace": (lambda r: pt.random.laplace(0, 1, size=size, rng=r), 0, 2 ** 0.5),
                    "gumbel": (lambda r: pt.random.gumbel(0, 1, size=size, rng=r), 0.5772, 1.2825), "poisson": (lambda r: pt.random.poisson(3, size=size, rng=r), 3, 3 ** 0.5),
                    "binomial": (lambda r: pt.random.binomial(40, 0.75, size=size, rng=r), 30, 7.5 ** 0.5)}
        for name, (make, mean, deviation) in expected.items():
            with self.subTest(name=name):
                found = self.draw(make)
                self.assertEqual(found.shape, size)
                self.assertLess(abs(found.mean() - mean), 5 * deviation / 141)
                self.assertLess(abs(found.std() - deviation), 0.05 * deviation)

    def test_multinomial(self):
        found = self.draw(lambda rng: pt.random.multinomial(100, [0.2, 0.5, 0.3], size=(400,), rng=rng))
        self.assertEqual((found.shape, found.dtype), ((400, 3), "int64"))
        self.assertTrue((found.sum(axis=1) == 100).all())
        self.assertLess(np.abs(found.mean(axis=0) - [20, 50, 30]).max(), 1.5)

    def test_seeds(self):
        def make(rng):
            return pt.random.normal(size=3, rng=rng)
        np.testing.assert_array_equal(self.draw(make), self.draw(make))
        self.assertNotEqual(self.draw(make)[0], self.draw(make, seed=2)[0])

    def test_streams_advance(self):
        rng = pytensor.shared(np.random.default_rng(1), "rng")
        after, draw = pt.random.normal(size=3, rng=rng).owner.outputs
        made = pytensor.function([], draw, updates=[(rng, after)], mode="COMPUTE")
        self.assertNotEqual(made()[0], made()[0])


if __name__ == "__main__":
    unittest.main()
