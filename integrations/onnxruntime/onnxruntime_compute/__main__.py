# SPDX-License-Identifier: Apache-2.0
"""Runs a program of ONNX Runtime on a device: python -m onnxruntime_compute program.py arguments"""
from __future__ import annotations

import os
import runpy
import sys

USAGE = "usage: python -m onnxruntime_compute [-m module | program.py] [arguments ...]"


def main(arguments):
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, file=sys.stderr if not arguments else sys.stdout)
        return 2 if not arguments else 0
    if arguments[0] == "-m" and len(arguments) < 2:
        print(USAGE, file=sys.stderr)
        return 2
    from onnxruntime_compute import use_everywhere

    use_everywhere()
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path.insert(0, os.path.dirname(os.path.abspath(arguments[0])))
        runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.path[:] = [path for path in sys.path if path]  # not the working directory, which `-m` puts in front
    sys.exit(main(sys.argv[1:]))
