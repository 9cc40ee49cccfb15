# SPDX-License-Identifier: Apache-2.0
"""Arrays through the object store of Ray: their elements travel beside the pickle, without a copy in between.

    python ray_store.py [--rows 4000]

Needs the package ray. An array arrives on the default device of the process that gets it.
"""
import argparse
import pickle

import compute as cp
import ray


@ray.remote
def scores(x, weights):
    return cp.tanh(x @ weights), cp.device().name


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=4000)
    options = parser.parse_args()
    x = cp.reshape(cp.astype(cp.arange(options.rows * 16) % 5, cp.float32), (options.rows, 16)) * 0.1
    weights = cp.linspace(-1, 1, 16)

    buffers = []
    data = pickle.dumps(x, protocol=5, buffer_callback=buffers.append)
    print(f"{x.nbytes} bytes out of band, pickle below 200 bytes: {len(data) < 200}")

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    stored = ray.put(x)  # once, for all tasks
    parts = ray.get([scores.remote(stored, weights * scale) for scale in (0.5, 1.0)])
    for y, device in parts:
        print(f"on {device}: sum {float(cp.sum(y)):.2f}, first {float(y[0]):.4f}")
    ray.shutdown()


if __name__ == "__main__":
    main()
