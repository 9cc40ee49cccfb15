#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs Keras' own test files, a process for each room, and prints a table: keras_suite.py FOLDER [ROOM ...]

FOLDER gets the output of pytest and the outcomes of each room, and keeps them: a room that is there is not run again. Rooms
are folders or files below keras/src, such as `ops/numpy_test.py` or `layers`. The environment needs pytest and
pytest-timeout, and what Keras' tests import: tensorflow-cpu, jax, torch, grain, einops, scipy, scikit-learn, pandas,
pillow, requests, onnxruntime and openvino. Triton, which torch brings, and TensorFlow cannot be in one process.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

ROOMS = ("ops/numpy_test.py", "ops", "backend", "random", "activations", "initializers", "regularizers", "constraints",
         "layers/activations", "layers/attention", "layers/convolutional", "layers/core", "layers/merging",
         "layers/normalization", "layers/pooling", "layers/preprocessing", "layers/regularization", "layers/reshaping",
         "layers/rnn", "layers", "losses", "metrics", "optimizers", "models", "trainers", "callbacks", "saving",
         "applications", "datasets", "distillation", "distribution", "dtype_policies", "export", "legacy", "quantizers",
         "testing", "tree", "utils", "visualization", "wrappers")


def files_of(room, root):
    """The test files of a room that no room before it in ROOMS has."""
    path = root / room
    found = {path} if path.is_file() else set(path.rglob("*_test.py"))
    for other in ROOMS[:ROOMS.index(room)] if room in ROOMS else ():
        found -= {root / other} if (root / other).is_file() else set((root / other).rglob("*_test.py"))
    return sorted(found)


def run(room, root, folder, more):
    name = room.replace("/", ".")
    report = folder / f"{name}.json"
    files = files_of(room, root)
    if not files or report.exists():
        return
    here = pathlib.Path(__file__).parent
    path = os.pathsep.join([str(here), str(here.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "KERAS_ROOMS_REPORT": str(report), "CUDA_VISIBLE_DEVICES": "",
                   "TF_CPP_MIN_LOG_LEVEL": "3", "JAX_PLATFORMS": "cpu",
                   "XLA_FLAGS": "--xla_backend_optimization_level=0"}
    command = [sys.executable, "-m", "pytest", "-p", "keras_rooms", "-p", "no:cacheprovider", "-q", "--timeout=600",
               "--continue-on-collection-errors", "--tb=short", "-W", "ignore", *more, *map(str, files)]
    with open(folder / f"{name}.txt", "w", encoding="utf-8") as output:
        subprocess.run(command, env=environment, cwd=folder, stdout=output, stderr=subprocess.STDOUT,
                       stdin=subprocess.DEVNULL, check=False)


def table(folder):
    """The counts of each room that has run."""
    total = [0, 0, 0]
    print(f"{'room':28}{'passed':>8}{'failed':>8}{'skipped':>8}")
    for report in sorted(folder.glob("*.json")):
        room = next((room for room in ROOMS if room.replace("/", ".") == report.stem), report.stem)
        found = json.loads(report.read_text(encoding="utf-8")).values()
        counts = [sum(one["passed"] for one in found), sum(len(one["failed"]) for one in found),
                  sum(len(one["skipped"]) for one in found)]
        total = [a + b for a, b in zip(total, counts)]
        print(f"{room:28}{counts[0]:8}{counts[1]:8}{counts[2]:8}")
    print(f"{'all':28}{total[0]:8}{total[1]:8}{total[2]:8}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("rooms", nargs="*", default=ROOMS)
    arguments, more = parser.parse_known_args()
    root = pathlib.Path(importlib.util.find_spec("keras").submodule_search_locations[0]) / "src"
    folder = arguments.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    for room in arguments.rooms:
        run(room, root, folder, more)
    table(folder)


if __name__ == "__main__":
    main()
