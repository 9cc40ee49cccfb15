#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times models with this provider and with ONNX Runtime's provider for CPUs, in alternating rounds."""
import argparse
import os
import statistics
import time

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--threads", type=int, default=os.cpu_count())
parser.add_argument("--rounds", type=int, default=7)
parser.add_argument("--seconds", type=float, default=0.5, help="of a round, at least")
parser.add_argument("--processor-time", action="store_true", help="for one thread, on a machine that others use")
parser.add_argument("names", nargs="*")
given = parser.parse_args()
os.environ["COMPUTE_CPU_THREADS"] = str(given.threads)
os.environ.setdefault("COMPUTE_LOG", "error")
os.environ.setdefault("COMPUTE_DEVICE", "cpu")

from case import helper, model_of, np, package_file, session_of, session_on_cpu, share_of_nodes  # noqa: E402

random = np.random.default_rng(0)


def floats(*shape):
    return random.normal(size=shape).astype(np.float32)


silero = {"input": floats(1, 576), "state": np.zeros((2, 1, 128), np.float32), "sr": np.array(16000)}
MODELS = {
    "detector 640x640": ("rapidocr", "models/PP-OCRv6_det_small.onnx", {"x": floats(1, 3, 640, 640)}),
    "recognizer 6x48x320": ("rapidocr", "models/PP-OCRv6_rec_small.onnx", {"x": floats(6, 3, 48, 320)}),
    "recognizer 1x48x320": ("rapidocr", "models/PP-OCRv6_rec_small.onnx", {"x": floats(1, 3, 48, 320)}),
    "classifier 6x48x192": ("rapidocr", "models/ch_ppocr_mobile_v2.0_cls_mobile.onnx", {"x": floats(6, 3, 48, 192)}),
    "magika": ("magika", "models/standard_v3_3/model.onnx",
               {"bytes": random.integers(0, 257, (1, 2048)).astype(np.int32)}),
    "silero": ("silero_vad", "data/silero_vad.onnx", silero),
    "silero 16k": ("silero_vad", "data/silero_vad_16k_op15.onnx", silero),
    "silero without If": ("silero_vad", "data/silero_vad_op18_ifless.onnx", silero),
}


def recurrent(op, time, batch, features, hidden, direction="forward"):
    """A model of one layer, and its input."""
    gates, directions = (4 if op == "LSTM" else 3) * hidden, 2 if direction == "bidirectional" else 1
    weights = {"w": floats(directions, gates, features) / features ** 0.5,
               "r": floats(directions, gates, hidden) / hidden ** 0.5, "b": floats(directions, 2 * gates)}
    more = {"linear_before_reset": 1} if op == "GRU" else {}
    node = helper.make_node(op, ["x", *weights], ["y"], hidden_size=hidden, direction=direction, **more)
    x = floats(time, batch, features)
    return model_of([node], {"x": (x.dtype, x.shape)}, {"y": (x.dtype, None)}, weights), {"x": x}


LAYERS = {
    "lstm 1x1 128 128": ("LSTM", 1, 1, 128, 128),
    "lstm 20x1 16 32": ("LSTM", 20, 1, 16, 32),
    "lstm 100x1 64 128": ("LSTM", 100, 1, 64, 128),
    "lstm 50x1 128 256 both": ("LSTM", 50, 1, 128, 256, "bidirectional"),
    "lstm 50x16 128 128": ("LSTM", 50, 16, 128, 128),
    "lstm 30x64 256 512": ("LSTM", 30, 64, 256, 512),
    "gru 100x1 64 128": ("GRU", 100, 1, 64, 128),
    "gru 50x16 128 128 both": ("GRU", 50, 16, 128, 128, "bidirectional"),
}


def seconds(session, feed):
    """Of one run, in a round."""
    clock = time.process_time if given.processor_time else time.perf_counter
    count, begin = 0, clock()
    while True:
        session.run(None, feed)
        count += 1
        passed = clock() - begin
        if passed > given.seconds:
            return passed / count


print(f"{given.threads} threads; times are medians of {given.rounds} alternating rounds")
for name in [*MODELS, *LAYERS]:
    if given.names and not any(word in name for word in given.names):
        continue
    if name in MODELS:
        package, path, feed = MODELS[name]
        file = package_file(package, path)
    else:
        file, feed = recurrent(*LAYERS[name])
    share, counts = share_of_nodes(file)
    sessions = [session_of(file, threads=given.threads), session_on_cpu(file, threads=given.threads)]
    results = [[session.run(None, feed) for _ in range(3)][-1] for session in sessions]
    error = max(float(np.max(np.abs(a.astype(np.float64) - b), initial=0)) for a, b in zip(*results))
    times = [[seconds(session, feed) for session in sessions] for _ in range(given.rounds)]
    ours, theirs = (statistics.median(column) for column in zip(*times))
    ratio = statistics.median(a / b for a, b in times)
    print(f"{name:22} {100 * share:5.1f} % of {sum(counts.values())} nodes; {1e3 * ours:9.3f} ms, "
          f"ONNX Runtime {1e3 * theirs:9.3f} ms, ratio {ratio:5.2f}; greatest difference {error:.1e}", flush=True)
