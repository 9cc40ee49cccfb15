# SPDX-License-Identifier: Apache-2.0
"""Programs of Theano, as they were written, by the launcher."""
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest

DEVICE = os.environ.get("COMPUTE_DEVICE", "cpu")
ON_CPU = DEVICE == "cpu"

EXP = """
    import numpy
    from theano import Out, config, function, sandbox, shared, tensor
    values = numpy.random.RandomState(22).rand(10 * 30 * 768)
    x = shared(numpy.asarray(values, config.floatX))
    for expression in (tensor.exp(x), tensor.exp(x).transfer(None), Out(sandbox.cuda.basic_ops.gpu_from_host(tensor.exp(x)), borrow=True)):
        f = function([], expression)
        nodes = f.maker.fgraph.toposort()
        print(nodes)
        first, copy = f(), None
        copy = numpy.array(first)
        r = f()
        assert numpy.array_equal(numpy.asarray(first), copy)  # which f() must not overwrite
        print(type(r).__module__.partition(".")[0], config.floatX, numpy.asarray(r)[:3], numpy.asarray(r)[-3:])
        print("Used the cpu" if any(isinstance(node.op, tensor.Elemwise) and "Gpu" not in type(node.op).__name__ for node in nodes)
              else "Used the gpu")
    r.sync()
"""

AFFINE = """
    import numpy, theano
    from theano import tensor
    rng = numpy.random.RandomState(0)
    m, x, b = (numpy.asarray(rng.rand(20, 20), theano.config.floatX) for _ in range(3))
    held = {"m": m, "x": x, "b": b}
    for shared in ("", "mb", "mxb"):
        v = {n: theano.shared(one, name=n) if n in shared else tensor.matrix(n) for n, one in held.items()}
        y, inputs = tensor.dot(v["m"], v["x"]) + v["b"], [v[n] for n in held if n not in shared]
        if shared == "mxb":
            out = theano.shared(b)
            f = theano.function([], [], updates=[(out, y)])
        else:
            f = theano.function(inputs, y)
        theano.printing.debugprint(f)
        found = f(*[held[n] for n in held if n not in shared])
        print("y", "%.4f" % (out.get_value() if shared == "mxb" else found)[0, 0])
"""

LOGISTIC = """
    import numpy, theano
    import theano.tensor as T
    from theano.tensor.nnet import softmax
    rng = numpy.random
    rng.seed(22)
    data = rng.randn(40, 8).astype(theano.config.floatX), rng.randint(size=40, low=0, high=2).astype(theano.config.floatX)
    x, y = theano.shared(data[0], name="x"), theano.shared((data[0][:, 0] > 0).astype(theano.config.floatX), name="y")
    w, b = theano.shared(rng.randn(8).astype(theano.config.floatX)), theano.shared(numpy.asarray(0, theano.config.floatX))
    p = 1 / (1 + T.exp(-T.dot(x, w) - b))
    cost = (-y * T.log(p) - (1 - y) * T.log(1 - p)).mean() + 0.01 * (w ** 2).sum()
    gw, gb = T.grad(cost, [w, b])
    train = theano.function([], cost, updates=[(w, w - 0.5 * gw), (b, b - 0.5 * gb)], name="train")
    for _ in range(300):
        train()
    print("right", (theano.function([], p > 0.5)() == y.get_value()).mean() > 0.9, theano.config.floatX)
    print("rows", theano.function([], softmax(x))().sum(axis=1).round(3).tolist() == [1.0] * 40)
"""


class Programs(unittest.TestCase):
    def run_program(self, text, flags=f"device={DEVICE},floatX=float32", file=None, **environment):
        with tempfile.TemporaryDirectory() as home:
            path = os.path.join(home, "program.py")
            with open(path, "w", encoding="utf-8") as program:
                program.write(textwrap.dedent(text))
            if file is not None:
                with open(os.path.join(home, ".theanorc"), "w", encoding="utf-8") as settings:
                    settings.write(textwrap.dedent(file))
            given = {**os.environ, "HOME": home, "PYTENSOR_FLAGS": "cxx=", "COMPUTE_LOG": "warn", **environment}
            if flags is not None:
                given["THEANO_FLAGS"] = flags
            if "COMPUTE_DEVICE" not in environment:
                given.pop("COMPUTE_DEVICE", None)
            done = subprocess.run([sys.executable, "-B", "-m", "compute_pytensor", path], capture_output=True, text=True, env=given, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_exp(self):
        done = self.run_program(EXP)
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 9)
        prefix = "" if ON_CPU else "Gpu"
        for i in range(3):
            self.assertRegex(lines[3 * i], rf"^\[{prefix}Elemwise\{{exp,no_inplace\}}")
            self.assertEqual("HostFromGpu" in lines[3 * i], i == 0 and not ON_CPU)
            self.assertRegex(lines[3 * i + 1], rf"^{'numpy' if i == 0 else 'compute'} float32 ")
            found = [float(one) for one in re.findall(r"\d\.\d+", lines[3 * i + 1])]
            for one, expected in zip(found, (1.23178029, 1.61879337, 1.52278066, 2.20771813, 2.29967761, 1.62323284), strict=True):
                self.assertAlmostEqual(one, expected, delta=5e-7)
            self.assertEqual(lines[3 * i + 2], "Used the cpu" if ON_CPU else "Used the gpu")
        if not ON_CPU:
            self.assertRegex(done.stderr, rf"^Mapped name None to device {DEVICE}: \S")

    def test_affine(self):
        done = self.run_program(AFFINE)
        graphs = re.split(r"^y (\S+)$", done.stdout, flags=re.M)
        self.assertEqual(len(set(graphs[1::2])), 1)
        for graph, moves in zip(graphs[::2], ((3, 1), (1, 1), (0, 0))):
            self.assertEqual(graph.count("Gemm"), 1)
            self.assertEqual((graph.count("GpuFromHost"), graph.count("HostFromGpu")), (0, 0) if ON_CPU else moves)

    def test_profile(self):
        done = self.run_program(LOGISTIC, flags=f"device={DEVICE},profile=True,floatX=float32")
        self.assertIn("right True float32\nrows True\n", done.stdout)
        self.assertIn("Message: train", done.stderr)
        self.assertRegex(done.stderr, r"(?s)<Apply name>.*\nSpent \d+\.\d+s\(\d+\.\d+%\) in cpu Op, \d+\.\d+s\(\d+\.\d+%\) in gpu Op and "
                                      r"\d+\.\d+s\(\d+\.\d+%\) in transfer Op\n$")
        if ON_CPU:
            self.assertIn("0.000s(0.00%) in gpu Op and 0.000s(0.00%) in transfer Op", done.stderr)

    def test_file_of_settings(self):
        done = self.run_program("import theano, compute\nprint(theano.config.floatX, compute.device().name)", flags=None, file=f"""
            [global]
            device = {DEVICE}
            floatX = float32
            [nvcc]
            fastmath = True
        """)
        self.assertEqual(done.stdout.split(), ["float32", DEVICE])
        done = self.run_program("import theano, compute\nprint(theano.config.floatX, compute.device().name)", flags="floatX=float64",
                                file=f"[global]\ndevice = cuda7\nfloatX = float32\n", COMPUTE_DEVICE=DEVICE)
        self.assertEqual(done.stdout.split(), ["float64", DEVICE])


class Settings(unittest.TestCase):
    def test_oldest_names_of_devices(self):
        from compute_pytensor import settings

        self.assertEqual([settings.selector(name) for name in ("gpu", "gpu0", "cuda", "cuda1", "opencl0:0", "cpu")],
                         ["cuda", "cuda0", "cuda", "cuda1", "opencl0:0", "cpu"])


if __name__ == "__main__":
    unittest.main()
