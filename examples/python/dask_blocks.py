# SPDX-License-Identifier: Apache-2.0
"""A Dask array whose blocks are arrays of this package, with one worker for each device.

    python dask_blocks.py [--devices cpu,opencl0] [--rows 4000]

Needs the packages dask and distributed. Blocks that move between workers are copied through the host, and arrive on
the device of the worker that asks for them.
"""
import argparse

import compute as cp
import dask.array as da
from distributed import Client, Nanny, Scheduler, SpecCluster

COLUMNS = 64


def make_block(first, rows):
    """Rows of the matrix of the numbers (row + column) % 7, on the default device of the worker."""
    row = cp.expand_dims(cp.arange(first, first + rows), 1)
    return cp.astype((row + cp.arange(COLUMNS)) % 7, cp.float32)


def device_of(block):
    return block.device.name


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--devices", default=cp.device().name, help="each gets a worker")
    parser.add_argument("--rows", type=int, default=4000)
    options = parser.parse_args()
    devices = options.devices.split(",")
    workers = {device: {"cls": Nanny, "options": {"nthreads": 1, "env": {"COMPUTE_DEVICE": device}}}
               for device in devices}
    scheduler = {"cls": Scheduler, "options": {"dashboard_address": None}}
    with SpecCluster(workers, scheduler, silence_logs="error") as cluster, Client(cluster) as client:
        size = options.rows // (2 * len(devices))
        blocks = [client.submit(make_block, i * size, size, workers=devices[i % len(devices)])
                  for i in range(2 * len(devices))]
        places = [client.submit(device_of, block, workers=devices[i % len(devices)]) for i, block in enumerate(blocks)]
        print("blocks on", ", ".join(client.gather(places)))

        meta = cp.zeros((0, 0), device="cpu")
        x = da.concatenate([da.from_delayed(block, (size, COLUMNS), meta=meta) for block in blocks])
        y = da.tanh(x * 0.5) + 1  # on the device of each block
        sums, greatest = client.gather(client.compute([y.sum(axis=0), y.max()]))
        print(f"sums {[round(number) for number in sums[:4].tolist()]}, greatest {float(greatest):.4f}")


if __name__ == "__main__":
    main()
