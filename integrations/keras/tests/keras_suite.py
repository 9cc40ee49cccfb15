#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs Keras' own test files and prints a table: keras_suite.py FOLDER [PATH ...]

PATHs are folders or files below keras/src, such as `ops/numpy_test.py` or `layers`; all without any. FOLDER keeps the
outcomes, and tests that have one are not run again. A test that ends the process has failed, and the others go on in
a new one. The environment needs pytest and pytest-timeout, and what Keras' tests import: tensorflow-cpu, jax, torch,
grain, einops, scipy, scikit-learn, pandas, pillow, requests, onnxruntime and openvino. Triton, which torch brings, and
TensorFlow cannot be in one process.
"""
import argparse
import collections
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import time

import keras_report

# The files that keras-tinygrad counts.
SELECTION = (
    "activations/activations_test.py", "layers/core/dense_test.py", "layers/core/einsum_dense_test.py",
    "layers/core/embedding_test.py", "layers/normalization/batch_normalization_test.py",
    "layers/regularization/dropout_test.py", "layers/convolutional/conv_test.py", "layers/pooling",
    "layers/rnn/simple_rnn_test.py", "layers/attention/multi_head_attention_test.py", "losses/losses_test.py",
    "optimizers/adam_test.py", "optimizers/sgd_test.py", "metrics/accuracy_metrics_test.py", "ops/core_test.py",
    "ops/image_test.py", "ops/math_test.py", "ops/numpy_test.py", "layers/preprocessing")


def files_of(paths, root):
    found = {}
    for path in paths:
        one = root / path
        found.update(dict.fromkeys([one] if one.is_file() else sorted(one.rglob("*_test.py"))))
    return list(found)


def run(files, folder, seconds, more):
    """Runs the tests of files that have no outcome; False if the time was over before the end."""
    end, report = time.monotonic() + seconds, folder / "outcomes.jsonl"
    here = pathlib.Path(__file__).parent
    path = os.pathsep.join([str(here), str(here.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "KERAS_ROOMS_REPORT": str(report), "CUDA_VISIBLE_DEVICES": "",
                   "TF_CPP_MIN_LOG_LEVEL": "3", "JAX_PLATFORMS": "cpu", "JAX_DISABLE_JIT": "1",
                   "XLA_FLAGS": "--xla_backend_optimization_level=0"}
    command = [sys.executable, "-m", "pytest", "-p", "keras_rooms", "-p", "no:cacheprovider", "-q", "--timeout=600",
               "--continue-on-collection-errors", "--tb=short", "-W", "ignore", *more, *map(str, files)]
    running = keras_report.running(report)
    while (left := end - time.monotonic()) > 0:
        environment["KERAS_ROOMS_SECONDS"] = str(left)
        with open(folder / "output.txt", "a", encoding="utf-8") as output:
            done = subprocess.run(command, env=environment, cwd=folder, stdout=output, stderr=subprocess.STDOUT,
                                  stdin=subprocess.DEVNULL, check=False)
        if not running.exists():
            return done.returncode in (0, 1, 5)
        keras_report.note(report, running.read_text(encoding="utf-8"), "failed", "the process has ended")
        running.unlink()
    return False


def _room(test):
    parts = test.partition("::")[0].split("/")
    if parts[:2] == ["ops", "numpy_test.py"]:
        return "/".join(parts) + (" of dtypes" if "DtypeTest" in test else "")
    return "/".join(parts[:2]) if parts[0] == "layers" else parts[0]


def _is_selected(test):
    return any(test.startswith((f"{path}::", f"{path}/")) for path in SELECTION)


def print_table(found, least):
    """The counts of each room, of keras-tinygrad's selection and of all; the failures; and the reasons of skips."""
    rooms = collections.defaultdict(collections.Counter)
    for test, (outcome, _) in found.items():
        for room in (_room(test), "~ the files that keras-tinygrad counts" if _is_selected(test) else "~", "~~ all"):
            rooms[room][outcome] += 1
    print("| tests | passed | failed | skipped |\n| --- | --- | --- | --- |")
    for room, counts in sorted(rooms.items()):
        if room != "~":
            print(f"| {room.lstrip('~ ')} | {counts['passed']} | {counts['failed']} | {counts['skipped']} |")
    reasons = collections.defaultdict(lambda: [0, 0])
    for test, (outcome, text) in found.items():
        if outcome == "failed":
            print(f"failed: {test} # {text}")
        elif outcome == "skipped":
            reason = reasons[re.sub(r"\b\w*\d\w*\b", "N", text.removeprefix("Skipped: "))]
            reason[0] += 1
            reason[1] += _is_selected(test)
    print("\n| skipped | of these selected | reason |\n| --- | --- | --- |")
    for reason, (count, selected) in sorted(reasons.items(), key=lambda one: -one[1][0]):
        if count >= least:
            print(f"| {count} | {selected} | {reason} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("paths", nargs="*", default=["."])
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start no test later; 0: print the table")
    parser.add_argument("--least", type=int, default=1, help="print reasons that so many tests have")
    arguments, more = parser.parse_known_intermixed_args()
    root = pathlib.Path(importlib.util.find_spec("keras").submodule_search_locations[0]) / "src"
    folder = arguments.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    is_whole = run(files_of(arguments.paths, root), folder, 60 * arguments.minutes, more)
    print_table(keras_report.outcomes(folder / "outcomes.jsonl"), arguments.least)
    return 0 if is_whole else 3


if __name__ == "__main__":
    sys.exit(main())
