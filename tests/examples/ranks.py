# SPDX-License-Identifier: Apache-2.0
"""Trains by two processes with half of each batch, and compares the losses with those of one process.

    ranks.py MPIEXEC MNIST_CNN
"""
import pathlib
import re
import subprocess
import sys
import tempfile

import run


def losses(ranks, options):
    done = subprocess.run([sys.argv[1], "-n", str(ranks), sys.argv[2], "--compute-device=cpu", "--ranks=1", *options], capture_output=True, text=True,
                          timeout=600, check=False)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return [float(loss) for loss in re.findall(r"^loss \d+: (\S+)$", done.stdout, re.M)]


with tempfile.TemporaryDirectory() as folder:
    arguments = run.make_digits(pathlib.Path(folder)) + ["--pool=1"]
    one, two = losses(1, arguments), losses(2, arguments)
print(*zip(one, two), sep="\n")
if len(one) != 20 or len(two) != 20 or any(not abs(a - b) <= 1e-4 * abs(a) for a, b in zip(one, two)):
    sys.exit("the losses differ")
