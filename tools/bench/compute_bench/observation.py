# SPDX-License-Identifier: Apache-2.0
"""What a profile costs, and how well a trace aligns the clocks of the device and of the host."""
import ctypes
import json
import os
import statistics
import tempfile
import time


def seconds_per_call(call, synchronize, count):
    start = time.perf_counter()
    for _ in range(count):
        call()
    synchronize()
    return (time.perf_counter() - start) / count


def profile_cost(bench):
    """Of small ops, and of ops of about a millisecond: seconds per op without a profile, and how many more with one."""
    lib, found = bench.lib, {}
    x, y = bench.normal(1000), bench.empty(1000)
    n = 256
    while True:
        a, b, c = bench.normal(n, n), bench.normal(n, n), bench.empty(n, n)
        product = lib.caller("matmul", [a.tensor, b.tensor], c.tensor)
        seconds_per_call(product, lib.synchronize, 1)
        seconds = seconds_per_call(product, lib.synchronize, 2)
        if seconds > 0.8e-3 or n >= 8192:
            break
        n = n * 5 // 4
    for name, call, count in (("small ops", lib.caller("add", [x.tensor, x.tensor], y.tensor), 2000),
                              ("ops of 1 ms", product, max(2, min(50, int(0.1 / seconds))))):
        seconds_per_call(call, lib.synchronize, count)
        off, on = [], []
        for _ in range(9):
            off.append(seconds_per_call(call, lib.synchronize, count))
            lib.check(lib.c.compute_profile_start())
            on.append(seconds_per_call(call, lib.synchronize, count))
            lib.check(lib.c.compute_profile_stop())
        without = statistics.median(off)
        found[name] = {"seconds": without, "more": statistics.median(a - b for a, b in zip(on, off))}
    return found


def clock_alignment(bench):
    """Seconds: the least time from the begin of a submission to that of its work on the device, and from the end of that work to the
    end of the wait for it. Neither can be negative but by an error of the relation of the clocks."""
    lib = bench.lib
    x, y = bench.normal(1000), bench.empty(1000)
    call = lib.caller("add", [x.tensor, x.tensor], y.tensor)
    call()
    lib.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        lib.check(lib.c.compute_trace_start(path.encode()))
        for _ in range(300):
            call()
            lib.synchronize()
            time.sleep(0.002)
        lib.check(lib.c.compute_trace_stop())
        with open(path, encoding="utf-8") as file:
            events = [event for event in json.load(file) if event.get("ph") == "X"]
    submits, works, waits = ([e for e in events if e["cat"] == cat] for cat in ("submit", "op", "wait"))
    if not submits or len(submits) != len(works):
        return {}
    for many in (submits, works, waits):
        many.sort(key=lambda e: e["ts"])
    before = [w["ts"] - s["ts"] for s, w in zip(submits, works)]
    after = []
    for submit, work in zip(submits, works):
        wait = next((e for e in waits if e["ts"] >= submit["ts"] + submit["dur"]), None)
        if wait:
            after.append(wait["ts"] + wait["dur"] - work["ts"] - work["dur"])
    return {"least before": min(before) * 1e-6, "least after": min(after) * 1e-6, "median before": statistics.median(before) * 1e-6,
            "median after": statistics.median(after) * 1e-6, "works": len(works)}


def observation(bench):
    for name in ("profile_start", "profile_stop", "trace_start", "trace_stop"):
        getattr(bench.lib.c, "compute_" + name).restype = ctypes.c_void_p
    return {"profile": profile_cost(bench), "clocks": clock_alignment(bench)}
