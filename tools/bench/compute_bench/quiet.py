# SPDX-License-Identifier: Apache-2.0
"""Waits for the threads of others."""
import time


def wait_until_quiet():
    """Returns when no other thread of the process runs any more, or after a third of a second: threads of OpenMP and OpenBLAS spin for
    long. The system adds up the time of a thread that runs on another processor once a tick, which can take 10 ms."""
    end = time.perf_counter() + 0.3
    while time.perf_counter() < end:
        used, start = time.process_time(), time.perf_counter()
        time.sleep(0.012)
        if time.process_time() - used < 0.1 * (time.perf_counter() - start):
            return
