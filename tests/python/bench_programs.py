# SPDX-License-Identifier: Apache-2.0
"""Usage: bench_programs.py COMPUTE_BENCH LIBRARY

Runs compute-bench --suite programs with small sizes on cpu: all results are finite and agree with NumPy's. The test ignores the times.
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

program, library = sys.argv[1:]


def run(*arguments):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "results.json"
        done = subprocess.run([sys.executable, "-B", program, "--suite", "programs", "--library", library, "--threads", "1", "--quick",
                               "--peers", "numpy", "--json", str(path), *arguments], stdout=subprocess.PIPE, text=True)
        assert done.returncode == 0, done.stdout
        return done.stdout, json.loads(path.read_text())["runs"][0]["rows"]


printed, rows = run()
for row in rows:
    libraries = {"ours"} if row["section"] == "networks" else {"ours", "numpy"}
    assert row["note"] == "" and set(row["times"]) == libraries, row
    assert all(math.isfinite(x) for x in row["result"]) and any(row["result"]), row
assert len(rows) >= 30 and len({row["section"] for row in rows}) >= 10, rows
assert "\nnumpy, 1 threads: geometric mean " in printed and "\n  below 0.9: " in printed, printed

_, rows = run("--only", "games,text,life,edit")
assert [row["row"] for row in rows] == ["life", "edit distances"], rows
