# SPDX-License-Identifier: Apache-2.0
"""Compares the ops whose plain calls a device does not run natively with those that docs/ops.md names.

    native_ops.py COMPUTE DEVICE
"""
import json
import pathlib
import re
import subprocess
import sys

program, device = sys.argv[1:]
page = (pathlib.Path(__file__).resolve().parent.parent / "docs/ops.md").read_text(encoding="utf-8")
stated = re.findall(r"`(\w+)`", re.search(r"Plain calls of these ops are decomposed:([^.]*)\.", page)[1])
of_libraries = re.findall(r"`(\w+)`", re.search(r"unless a vendor's library has them:([^.]*)\.", page)[1])

listed = subprocess.run([program, "ops", "--device", device, "--json"], capture_output=True, text=True)
if listed.returncode != 0:
    print(listed.stderr)
    sys.exit(1 if device == "cpu" else 77)
answers = {}
for row in json.loads(listed.stdout):
    # float32, or the first dtype that the op takes.
    known = answers.get(row["op"])
    if known is None or known["support"] == "refused" or (row["dtype"] == "float32" and row["support"] != "refused"):
        answers[row["op"]] = row
found = sorted(name for name, row in answers.items() if row["support"] not in ("native", "host"))
hosted = [name for name, row in answers.items() if row["support"] == "host"]  # elsewhere, they may consist of several steps
stated = [name for name in stated if name not in hosted]
for name in found:
    print(f"{name}: {answers[name]['support']} for {answers[name]['dtype']}: {answers[name]['reason']}")
if device != "cpu":
    found = [name for name in found if name not in of_libraries]
if found != sorted(stated):
    sys.exit(f"{device} does not run {found} natively; in ops.def, {stated} have the flag DECOMPOSED")
