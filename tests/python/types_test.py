# SPDX-License-Identifier: Apache-2.0
"""What mypy says about programs that use the package, by its type stubs."""
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "bindings/python"
GOOD = """
import compute as cp
from compute import grad, graph, linalg, nn, optim, random
from compute.nn import functional as F

def loss(p: list[cp.Array]) -> cp.Array:
    return cp.mean(nn.relu(x @ p[0] + p[1]))

x: cp.Array = cp.asarray([[1.0, 2.0], [3.0, 4.0]], dtype=cp.float32, device="cpu")
parameters = [random.normal((2, 3)), cp.zeros(3)]
value, gradients = grad.value_and_gradients(loss)(parameters)
optim.Adam(parameters, rate=0.001).step(gradients, rate=0.01)
optim.SGD(parameters, momentum=0.9).step(gradients)
generator = random.Generator(7)
extents: tuple[int, ...] = x.size()
count: int = x.size + x.size(0)
total_loss: cp.Array = F.cross_entropy(F.relu(x), [0, 1])
number: float = float(cp.sum(generator.uniform(5)) + linalg.vector_norm(x))
gelu = cp.expression("0.5 * x * (1 + erf(x * s))")
total = gelu.reduce("sum", x=x, s=0.7071)
with cp.profile() as profile, cp.stream(x.device) as stream:
    x += 1
    stream.synchronize()
print(profile, profile.seconds["total"])
with graph.record(x.device) as step:
    y = cp.tanh(x)
step.run()
scale = cp.kernel("", "scale")
scale(x.size, cp.reads(x), y, (2.0, cp.float32))
try:
    cp.reshape(x, (7,))
except cp.Error as error:
    print(error.code, error.op)
"""
BAD = {"text: str = cp.tanh(x)": "assignment", "cp.tanh('x')": "arg-type", "cp.nosuch(x)": "attr-defined",
       "value.nosuch": "attr-defined", "random.normal((2,), dtype='float32')": "arg-type",
       "linalg.outer(x, 2)": "arg-type", "optim.Adam(parameters, speed=1.0)": "call-arg"}


@unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not installed")
class Types(unittest.TestCase):
    def check(self, text):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "program.py"
            program.write_text(text, encoding="utf-8")
            command = (sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", folder, program)
            result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder,
                                    env={**os.environ, "MYPYPATH": str(PACKAGE)})
        return [line for line in result.stdout.splitlines() if ": error: " in line], result

    def test_types(self):
        found, result = self.check(GOOD)
        self.assertEqual((found, result.returncode), ([], 0), result.stdout + result.stderr)
        first = GOOD.count("\n") + 1
        found, result = self.check(GOOD + "\n".join(BAD))
        self.assertEqual(len(found), len(BAD), result.stdout + result.stderr)
        for line, (at, kind) in zip(found, enumerate(BAD.values(), first)):
            self.assertRegex(line, rf"\b{at}: error: .*\[{kind}\]")
