# SPDX-License-Identifier: Apache-2.0
"""compute.distributed: groups of threads, and of processes that mpiexec starts."""
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np

import compute
from compute import distributed

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = """
import numpy as np
import compute
group = compute.distributed.init("cpu")
x = compute.asarray(np.arange(5.0) + group.rank, device="cpu")
total = np.asarray(group.all_reduce(x))
assert np.array_equal(total, sum(np.arange(5.0) + rank for rank in range(group.size))), total
part = group.split(group.rank % 2)
assert part.size == (group.size + 1 - group.rank % 2) // 2
group.barrier()
print(f"rank {group.rank} of {group.size}\\n", end="", flush=True)  # one write, so that lines stay whole
"""


def on_all_ranks(groups, body):
    failures = []

    def run(group):
        try:
            body(group)
        except BaseException as failure:
            failures.append(failure)
            group.abort()

    threads = [threading.Thread(target=run, args=(group,)) for group in groups]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


class Groups(unittest.TestCase):
    def test_one_rank(self):
        group = distributed.init("cpu")
        self.assertEqual((group.rank, group.size, group.device.name), (0, 1, "cpu"))
        self.assertIn("rank 0 of 1 on cpu", repr(group))
        x = compute.asarray([1.0, 2.0], device="cpu")
        self.assertEqual(group.all_reduce(x, "mean").tolist(), [1.0, 2.0])
        self.assertIs(group.all_reduce(x, out=x), x)

    def test_every_call(self):
        def body(group):
            other = 1 - group.rank
            x = compute.asarray(np.arange(4.0) + group.rank, device="cpu")
            both = [np.arange(4.0), np.arange(4.0) + 1]
            for op, expected in (("sum", both[0] + both[1]), ("prod", both[0] * both[1]), ("min", both[0]),
                                 ("max", both[1]), ("mean", (both[0] + both[1]) / 2)):
                np.testing.assert_array_equal(group.all_reduce(x, op, deterministic=True), expected)
            half = slice(2 * group.rank, 2 * group.rank + 2)
            np.testing.assert_array_equal(group.reduce_scatter(x), (both[0] + both[1])[half])
            np.testing.assert_array_equal(group.all_gather(x), np.concatenate(both))
            np.testing.assert_array_equal(group.broadcast(x, 1), both[1])
            np.testing.assert_array_equal(group.all_to_all(x), np.concatenate([one[half] for one in both]))
            if group.rank == 0:
                group.send(x, other)
                y = compute.zeros(4, dtype=x.dtype, device="cpu")
                np.testing.assert_array_equal(group.recv_into(y, other), both[1])
            else:
                np.testing.assert_array_equal(group.recv(4, x.dtype, other), both[0])
                group.send(x, other)
            group.barrier()
            self.assertEqual(group.split(0, -group.rank).rank, other)

        on_all_ranks(distributed.groups(["cpu", "cpu"]), body)

    def test_gradients(self):
        weights = np.arange(1.0, 9.0)  # of each element of a result, twice as large on rank 1

        def gradient(group, call):
            def loss(x):
                y = call(group, x)
                return compute.sum(y * compute.asarray(weights[:y.shape[0]] * (group.rank + 1), device="cpu"))

            return np.asarray(compute.grad.gradients(loss)(compute.asarray(np.arange(4.0), device="cpu")))

        def body(group):
            half = slice(2 * group.rank, 2 * group.rank + 2)
            first, both = weights[:4], np.concatenate([weights[:2], 2 * weights[:2]])
            for call, expected in (
                    (lambda g, x: g.all_reduce(x), 3 * first), (lambda g, x: g.all_reduce(x, "mean"), 1.5 * first),
                    (lambda g, x: g.reduce_scatter(x), both), (lambda g, x: g.reduce_scatter(x, "mean"), both / 2),
                    (lambda g, x: g.all_gather(x), 3 * weights[4 * group.rank:4 * group.rank + 4]),
                    (lambda g, x: g.broadcast(x, 1), 3 * first * group.rank),
                    (lambda g, x: g.all_to_all(x), np.concatenate([first[half], 2 * first[half]]))):
                np.testing.assert_array_equal(gradient(group, call), expected)
            with self.assertRaisesRegex(TypeError, "the gradient of this all_reduce is not known"):
                gradient(group, lambda g, x: g.all_reduce(x, "max"))

        on_all_ranks(distributed.groups(["cpu", "cpu"]), body)

    def test_averages(self):
        """The value and gradients of two halves of a batch are those of the whole."""
        draw = np.random.default_rng(1)
        batch = draw.standard_normal((8, 5))
        parameters = {"w": [draw.standard_normal(shape) / 10 for shape in ((5, 700), (700, 600), (600, 3))],
                      "b": draw.standard_normal(600), "unused": np.ones(1), "viewed": draw.standard_normal(6)}

        def loss(p, x):
            h = compute.tanh(x @ p["w"][0])
            h = compute.tanh(h @ p["w"][1] + p["b"])
            return compute.mean(compute.square(h @ p["w"][2] + p["viewed"][:3] * p["viewed"][3:])), "aux"

        def arrays(tree):
            return compute.grad._map(lambda x: compute.asarray(x, device="cpu"), tree)

        function = compute.grad.value_and_gradients
        (value, _), whole = function(loss, argnums=0, has_aux=True)(arrays(parameters), arrays(batch))
        found = [None, None]

        def body(group):
            part = arrays(batch[group.rank::2])
            found[group.rank] = function(loss, argnums=0, has_aux=True, group=group)(arrays(parameters), part)

        on_all_ranks(distributed.groups(["cpu", "cpu"]), body)
        for (one, aux), gradients in found:
            self.assertEqual(aux, "aux")
            self.assertLess(abs(float(one) - float(value)), 1e-14 * abs(float(value)))
            flat, right = [], []
            compute.grad._map(lambda x: flat.append(np.asarray(x)), gradients)
            compute.grad._map(lambda x: right.append(np.asarray(x)), whole)
            for mine, other in zip(flat, right, strict=True):
                np.testing.assert_allclose(mine, other, rtol=1e-10, atol=1e-14)
        np.testing.assert_array_equal(found[0][1]["w"][1], found[1][1]["w"][1])

    def test_failures(self):
        x = compute.ones(3, device="cpu")
        with self.assertRaisesRegex(compute.InvalidArgumentError, "op is 'median'; it is one of sum"):
            distributed.init("cpu").all_reduce(x, "median")
        first, second = distributed.groups(["cpu", "cpu"])
        first.abort()
        with self.assertRaisesRegex(compute.PeerError, "all_reduce: call 1 of the group failed on rank 1 of 2: rank 0 has"):
            second.all_reduce(x)


def find_mpiexec():
    beside = pathlib.Path(sys.executable).parent / "mpiexec"
    return str(beside) if beside.exists() else os.environ.get("COMPUTE_TEST_MPIEXEC") or shutil.which("mpiexec")


@unittest.skipUnless(find_mpiexec(), "no mpiexec")
class Processes(unittest.TestCase):
    def test_two_processes(self):
        done = subprocess.run([find_mpiexec(), "-n", "2", sys.executable, "-c", PROGRAM], capture_output=True, text=True,
                              timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(re.findall(r"rank \d of 2", done.stdout)), ["rank 0 of 2", "rank 1 of 2"])  # which may share a line

    def test_training(self):
        """Two processes with half of each batch have the losses of one with all of it."""
        spec = importlib.util.spec_from_file_location("run", ROOT / "tests/examples/run.py")
        makers = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(makers)

        def losses(ranks, name, *arguments):
            command = [find_mpiexec(), "-n", str(ranks), sys.executable, ROOT / "examples/python" / name, *map(str, arguments)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=600)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            return [float(loss) for loss in re.findall(r"^loss \d+: (\S+)$", done.stdout, re.M)]

        with tempfile.TemporaryDirectory() as folder:
            makers.make_digits(pathlib.Path(folder))
            makers.make_text(pathlib.Path(folder))
            for name, *arguments in (
                    ("mnist_cnn.py", folder, "--steps", 6, "--batch", 4, "--rate", 3e-5, "--losses", 6, "--pool"),
                    ("transformer.py", f"{folder}/text.txt", "--steps", 8, "--batch", 4, "--context", 16, "--layers", 2, "--heads", 2,
                     "--width", 32, "--rate", 0.003, "--losses", 8, "--generate", 4)):
                one, two = losses(1, name, *arguments), losses(2, name, *arguments)
                for ours, other in zip(one, two, strict=True):
                    self.assertLessEqual(abs(ours - other), 1e-4 * abs(other), (name, one, two))


if __name__ == "__main__":
    unittest.main()
