#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures a GPU device of this library beside PyTorch and CuPy, in one run, and prints one table.

    tools/gpu_peers.py [--device cuda0] [--library PATH/libcompute.so.0] [--quick] [--only WORD] [--json FILE]

What runs more often is the median of interleaved rounds, so that clocks and neighbours touch everyone alike. A peer that is not
installed has no column. Every value is a time in microseconds, with what it means beside it where that is a rate. The rows of the exp and
affine programs are what the examples exp_loop and affine_loop print, run in turn with the peers' loops; the row of host time is what
launch_cost prints, which measures a small add and the bare cuLaunchKernel of the same kernel in turn; all others are driven from here,
through ctypes.
"""
import argparse
import ctypes
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "bench"))
from compute_bench.library import SIZES, Library  # noqa: E402


def per_call(call, synchronize, calls):
    synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    synchronize()
    return (time.perf_counter() - start) / calls


def compare(contestants, calls, rounds):
    """Medians of interleaved rounds, by name. contestants: name -> (call, synchronize)."""
    times = {name: [] for name in contestants}
    for name, (call, synchronize) in contestants.items():
        for _ in range(3):
            call()
        synchronize()
    for _ in range(rounds):
        for name, (call, synchronize) in contestants.items():
            times[name].append(per_call(call, synchronize, calls))
    return {name: statistics.median(values) for name, values in times.items()}


def host_time(call, synchronize, calls):
    """Seconds that a call keeps its caller; the GPU is waited for outside of that. As many calls as the driver's queue holds."""
    synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    spent = time.perf_counter() - start
    synchronize()
    return spent / calls


class Table:
    def __init__(self):
        self.rows = []
        print(f"{'what':<50}{'ours':>12}{'copy/torch':>12}{'cupy':>12}{'ratio':>8}{'target':>9}  note")

    def row(self, what, times, target="", note="", against="torch", **more):
        ours, peer, cupy = times.get("ours"), times.get(against), times.get("cupy")
        cell = lambda t: f"{t * 1e6:12.2f}" if t else f"{'-':>12}"
        ratio = f"{ours / peer:8.3f}" if ours and peer else f"{'-':>8}"
        print(f"{what:<50}{cell(ours)}{cell(peer)}{cell(cupy)}{ratio}{target:>9}  {note}", flush=True)
        self.rows.append({"row": what, "seconds": times, "against": against, "target": target, "note": note, **more})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda0")
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("--library", default=os.path.join(here, "..", "build", "lib", "libcompute.so.0"))
    parser.add_argument("--programs", help="folder of exp_loop, affine_loop and launch_cost (default: ../bin beside the library's folder)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller arrays")
    parser.add_argument("--only", default="", help="sections whose name has this word: exp layout reduce matmul transfer launch")
    parser.add_argument("--json", help="also write the rows to this file")
    options = parser.parse_args()
    try:
        library = Library(options.library, options.device)
    except (OSError, RuntimeError) as reason:
        sys.exit(f"gpu_peers: {reason}")
    try:
        import torch
        torch.backends.cuda.matmul.allow_tf32 = os.environ.get("COMPUTE_MATH") == "tf32"
        torch_sync = torch.cuda.synchronize
        print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name(0)}")
    except Exception as reason:  # the table shows what there is
        torch = None
        print(f"no PyTorch: {reason}")
    try:
        import cupy
        cupy_sync = cupy.cuda.runtime.deviceSynchronize
        print(f"CuPy {cupy.__version__}")
    except Exception as reason:
        cupy = None
        print(f"no CuPy: {reason}")
    rounds = 5 if options.quick else 15
    table = Table()
    wanted = lambda section: options.only in section

    def section(name, body):
        if not wanted(name):
            return
        try:
            body()
        except Exception as reason:
            print(f"{name}: {type(reason).__name__}: {reason}", flush=True)

    programs = options.programs or os.path.join(os.path.dirname(os.path.abspath(options.library)), "..", "bin")

    def run_example(name, *arguments):
        environment = {**os.environ, "COMPUTE_DEVICE": options.device}
        done = subprocess.run([os.path.join(programs, name), *arguments], env=environment, capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise RuntimeError(f"{name}: {done.stdout}{done.stderr}")
        return done.stdout

    def example_programs():
        count, turns = 10 * 30 * 768, 1000
        rows, columns, affine_turns = 1000, 1000, 100
        peers = {}  # way -> peer -> (loop body, what ends the loop, turns)
        last = {}

        def add_peer(peer, way, body, end, how_many):
            peers.setdefault(way, {})[peer] = (body, end, how_many)

        def keep_last(peer, make):
            last[peer] = make()

        if torch:
            a = torch.rand(count, device="cuda")
            b = torch.empty_like(a)
            add_peer("torch", "read", lambda: torch.exp(a).cpu(), torch_sync, turns)
            add_peer("torch", "left", lambda: torch.exp(a), torch_sync, turns)
            add_peer("torch", "same", lambda: torch.exp(a, out=b), torch_sync, turns)
            host = [torch.rand(rows, columns), torch.rand(columns, columns), torch.rand(rows, columns)]
            m, x, c = (t.cuda() for t in host)
            moved = lambda: torch.add(torch.mm(host[0].cuda(), host[1].cuda()), host[2].cuda()).cpu()
            add_peer("torch", "explicit", moved, torch_sync, affine_turns)
            # As affine_loop does, the last result is read.
            add_peer("torch", "resident", lambda: keep_last("torch", lambda: torch.add(torch.mm(m, x), c)),
                     lambda: last["torch"].cpu() if "torch" in last else None, affine_turns)
        if cupy:
            p = cupy.random.rand(count, dtype=cupy.float32)
            q = cupy.empty_like(p)
            add_peer("cupy", "read", lambda: cupy.asnumpy(cupy.exp(p)), cupy_sync, turns)
            add_peer("cupy", "left", lambda: cupy.exp(p), cupy_sync, turns)
            add_peer("cupy", "same", lambda: cupy.exp(p, out=q), cupy_sync, turns)
            device = [cupy.random.rand(*shape, dtype=cupy.float32) for shape in ((rows, columns), (columns, columns), (rows, columns))]
            arrays = [cupy.asnumpy(t) for t in device]
            moved_too = lambda: cupy.asnumpy(cupy.asarray(arrays[0]) @ cupy.asarray(arrays[1]) + cupy.asarray(arrays[2]))
            add_peer("cupy", "explicit", moved_too, cupy_sync, affine_turns)
            add_peer("cupy", "resident", lambda: keep_last("cupy", lambda: device[0] @ device[1] + device[2]),
                     lambda: cupy.asnumpy(last["cupy"]) if "cupy" in last else None, affine_turns)
        for entry in peers.values():
            for body, end, _ in entry.values():
                per_call(body, end, 10)
        seconds = {}
        note = lambda way, name, value: seconds.setdefault(way, {}).setdefault(name, []).append(value)
        words = {"each result read back": "read", "results left on the device": "left", "results written into one tensor": "same",
                 "each result mapped": "mapped", "as one graph": "graph"}
        for _ in range(3 if options.quick else 7):
            text = run_example("exp_loop", "--iterations", str(turns), "--read", "--keep", "--out", "--mapped", "--graph")
            for value, way in re.findall(r"took ([0-9.]+) seconds, (.*)", text):
                note(words[way], "ours", float(value))
            text = run_example("affine_loop", "--rows", str(rows), "--columns", str(columns), "--iterations", str(affine_turns))
            for way, value in re.findall(r"^(explicit|mirrors|resident) +([0-9.]+) s", text, re.MULTILINE):
                note(way, "ours", float(value))
            for way, entry in peers.items():
                for name, (body, end, how_many) in entry.items():
                    note(way, name, per_call(body, end, how_many) * how_many)
        for way, label, against, target in (
                ("read", f"exp_loop, {turns} turns, read into host memory", "read", "<=0.75"), ("mapped", "exp_loop, mapped", "read", "<=0.40"),
                ("left", "exp_loop, left on the device", "left", "<=0.55"), ("same", "exp_loop, same output", "same", "<=0.55"),
                ("graph", "exp_loop, as a graph", "same", "<=0.25"), ("explicit", f"affine_loop, {affine_turns} turns, moved", "explicit", ""),
                ("mirrors", "affine_loop, host tensors mirrored", "explicit", ""), ("resident", "affine_loop, resident", "resident", "")):
            times = {name: statistics.median(values) for name, values in seconds.get(against, {}).items() if name != "ours"}
            times["ours"] = statistics.median(seconds[way]["ours"])
            share = f"{times['ours'] / times['cupy']:.3f} of CuPy" if "cupy" in times else ""
            table.row(label, times, target, share)

    def exp_program():
        count, iterations = 10 * 30 * 768, 1000
        x = library.full("float32", [count])
        y = library.full("float32", [count])
        host = bytearray(4 * count)
        address = ctypes.addressof(ctypes.c_char.from_buffer(host))
        into = library.caller("exp", [x], y)
        fresh = library.caller("exp", [x], None)

        def read_back():
            into()
            library.read_in_order(y, address, 4 * count)

        def mapped():
            into()
            data, is_copy = ctypes.c_void_p(), ctypes.c_int32()
            library.check(library.c.compute_tensor_map(y, 1, ctypes.byref(data), ctypes.byref(is_copy)))
            library.check(library.c.compute_tensor_unmap(y, data))

        rows = [("read into host memory", read_back, "to_host", "0.75"), ("mapped", mapped, "to_host", "0.4"),
                ("left on the device", fresh, "left", "0.55"), ("same output", into, "same", "0.55")]
        peers = {}
        if torch:
            a = torch.rand(count, device="cuda")
            b = torch.empty_like(a)
            peers["torch"] = ({"to_host": lambda: torch.exp(a).cpu(), "left": lambda: torch.exp(a),
                               "same": lambda: torch.exp(a, out=b)}, torch_sync)
        if cupy:
            c = cupy.random.rand(count, dtype=cupy.float32)
            d = cupy.empty_like(c)
            peers["cupy"] = ({"to_host": lambda: cupy.asnumpy(cupy.exp(c)), "left": lambda: cupy.exp(c),
                              "same": lambda: cupy.exp(c, out=d)}, cupy_sync)
        same = None
        for label, call, key, target in rows:
            contestants = {"ours": (call, library.synchronize)}
            for name, (calls, synchronize) in peers.items():
                contestants[name] = (calls[key], synchronize)
            times = {k: v * iterations for k, v in compare(contestants, iterations, rounds).items()}
            same = times.get("torch") if key == "same" else same
            table.row(f"exp 230400 x{iterations}, {label} (ctypes)", times, "<=" + target)
        try:
            run = library.graph([into] * iterations)
            times = compare({"ours": (run, library.synchronize)}, 1, rounds)
            table.row(f"exp 230400 x{iterations}, as a graph (ctypes)", {**times, "torch": same}, "<=0.25")
        except RuntimeError as reason:
            print("graph:", reason)

    def layout():
        for power in ([24] if options.quick else [24, 26, 28]):
            n = 1 << power
            side = 1 << (power // 2)
            x, y, z = (library.full("float32", [side, side]) for _ in range(3))
            half = library.full("float16", [side, side])
            copy = library.caller("copy", [x], y)
            contestants = {"copy": copy, "add": library.caller("add", [x, y], z), "exp": library.caller("exp", [x], y),
                           "cast to float16": library.caller("cast", [x], half, {"dtype": "float16"}),
                           "transposed copy": library.caller("copy", [library.transposed(x)], y),
                           "add a transposed one": library.caller("add", [x, library.transposed(y)], z)}
            bytes_of = {"copy": 8 * n, "add": 12 * n, "exp": 8 * n, "cast to float16": 6 * n, "transposed copy": 8 * n,
                        "add a transposed one": 12 * n}
            peer = {}
            if torch:
                a, b, c = (torch.ones(side, side, device="cuda") for _ in range(3))
                h = torch.ones(side, side, device="cuda", dtype=torch.float16)
                raw = lambda: b.copy_(a)
                peer = {"copy": raw, "add": lambda: torch.add(a, b, out=c), "exp": lambda: torch.exp(a, out=b),
                        "cast to float16": lambda: h.copy_(a), "transposed copy": lambda: b.copy_(a.t()),
                        "add a transposed one": lambda: torch.add(a, b.t(), out=c)}
                base = compare({"torch": (raw, torch_sync)}, 20, rounds)["torch"] / (8 * n)
            else:
                base = compare({"ours": (copy, library.synchronize)}, 20, rounds)["ours"] / (8 * n)
            for name, call in contestants.items():
                entry = {"ours": (call, library.synchronize)}
                if name in peer:
                    entry["torch"] = (peer[name], torch_sync)
                times = compare(entry, 20, rounds)
                share = base * bytes_of[name] / times["ours"]
                target = ">=0.90" if "transposed" in name else ">=0.95"
                table.row(f"{name}, 2^{power} float32", times, target,
                          f"{bytes_of[name] / times['ours'] / 1e9:.0f} GB/s, {share:.3f} of a copy of equal bytes")

    def reductions():
        power = 24 if options.quick else 28
        side = 1 << (power // 2)
        x = library.full("float32", [side, side])
        copied = library.caller("copy", [x], library.full("float32", [side, side]))
        if torch:
            a = torch.ones(side, side, device="cuda")
            b = torch.empty_like(a)
            base = compare({"torch": (lambda: b.copy_(a), torch_sync)}, 10, rounds)["torch"] / 2
        else:
            base = compare({"ours": (copied, library.synchronize)}, 10, rounds)["ours"] / 2
        for name, op, axes, peer in (("sum of all", "sum", [0, 1], lambda: torch.sum(a)),
                                     ("sum over axis 0", "sum", [0], lambda: torch.sum(a, 0)),
                                     ("sum over axis 1", "sum", [1], lambda: torch.sum(a, 1)),
                                     ("max over axis 0", "max", [0], lambda: torch.amax(a, 0)),
                                     ("argmax over axis 1", "argmax", 1, lambda: torch.argmax(a, 1))):
            attributes = {"axis": axes} if op == "argmax" else {"axes": axes}
            entry = {"ours": (library.caller(op, [x], None, attributes), library.synchronize)}
            if torch:
                entry["torch"] = (peer, torch_sync)
            times = compare(entry, 10, rounds)
            table.row(f"{name}, 2^{power} float32", times, ">=0.95",
                      f"{4 * side * side / times['ours'] / 1e9:.0f} GB/s, {base / times['ours']:.3f} of a copy's rate")

    def matmul():
        is_tf32 = os.environ.get("COMPUTE_MATH") == "tf32"
        for dtype in ("float32",) if is_tf32 else ("float16", "bfloat16", "float32", "float64"):
            for n in ([512, 2048] if options.quick else [512, 2048, 8192]):
                a, b, c = (library.full(dtype, [n, n]) for _ in range(3))
                if torch:  # the same random numbers for both: power draw depends on the data
                    kind = getattr(torch, dtype)
                    p, q = (torch.randn(n, n, device="cuda", dtype=kind) for _ in range(2))
                    r = torch.empty_like(p)
                    for tensor, data in ((a, p), (b, q)):
                        host = data.cpu().contiguous()
                        library.write(tensor, host.data_ptr(), n * n * SIZES[dtype])
                calls = max(3, min(200, int(2e13 / n**3)))
                for label, x, torch_x in (("", a, "p"), ("^T", library.transposed(a), "p.t()")):
                    entry = {"ours": (library.caller("matmul", [x, b], c), library.synchronize)}
                    if torch:
                        left = p if label == "" else p.t()
                        entry["torch"] = (lambda left=left: torch.mm(left, q, out=r), torch_sync)
                    times = compare(entry, calls, rounds)
                    rate = 2 * n**3 / times["ours"] / 1e12
                    table.row(f"matmul{label} {n}, {'tf32' if is_tf32 else dtype}", times, "<=1.02", f"{rate:.1f} TFLOP/s")
                    if label == "" and torch:
                        result = torch.empty(n, n, dtype=kind)
                        library.read(c, result.data_ptr(), n * n * SIZES[dtype])
                        difference = (result.cuda().double() - torch.mm(p, q).double()).abs().max().item()
                        if not difference < 0.05 * n**0.5:
                            print(f"  !! differs from PyTorch by {difference}")

    def matmul_tf32():
        """In a process of its own: a device's precision is chosen when it is opened."""
        if "COMPUTE_MATH" in os.environ:
            return
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            command = [sys.executable, __file__, "--only", "matmul", "--device", options.device, "--library", options.library, "--json", file.name]
            subprocess.run(command + ["--quick"] * options.quick, env={**os.environ, "COMPUTE_MATH": "tf32"}, check=True,
                           capture_output=True, timeout=300)
            for row in json.load(file):
                table.row(row["row"], row["seconds"], row["target"], row["note"])

    def transfers():
        import mmap
        for mib in (1, 64, 512):
            size = mib << 20
            tensor = library.full("float32", [size // 4])
            area = mmap.mmap(-1, size)
            area.write(b"\1" * size)
            address = ctypes.addressof(ctypes.c_char.from_buffer(area))
            up = {"ours": (lambda: library.write(tensor, address, size), library.synchronize)}
            down = {"ours": (lambda: library.read(tensor, address, size), library.synchronize)}
            if torch:
                host = torch.ones(size // 4)
                device = torch.ones(size // 4, device="cuda")
                pinned = torch.ones(size // 4).pin_memory()
                up["torch"] = (lambda: device.copy_(host), torch_sync)
                down["torch"] = (lambda: host.copy_(device), torch_sync)
                up["pinned"] = (lambda: device.copy_(pinned, non_blocking=True), torch_sync)
                down["pinned"] = (lambda: pinned.copy_(device, non_blocking=True), torch_sync)
            for name, entry in (("host to device", up), ("device to host", down)):
                times = compare(entry, 3, rounds)
                note = f"{size / times['ours'] / 1e9:.1f} GB/s"
                if "pinned" in times:
                    note += f", {times['pinned'] / times['ours']:.2f} of pinned ({size / times['pinned'] / 1e9:.1f})"
                table.row(f"pageable {name}, {mib} MiB", times, "", note)

    def launches():
        x, y = library.full("float32", [16]), library.full("float32", [16])
        entry = {"ours": (library.caller("add", [x, x], y), library.synchronize)}
        if torch:
            a, b = torch.ones(16, device="cuda"), torch.ones(16, device="cuda")
            entry["torch"] = (lambda: torch.add(a, a, out=b), torch_sync)
        if cupy:
            c, d = cupy.ones(16, dtype=cupy.float32), cupy.ones(16, dtype=cupy.float32)
            entry["cupy"] = (lambda: cupy.add(c, c, out=d), cupy_sync)
        table.row("a small add, queued (through ctypes)", compare(entry, 2000, rounds))
        host_times(entry)

    def host_times(entry):
        calls = 256
        samples = {}
        for name, (call, synchronize) in entry.items():
            host_time(call, synchronize, calls)
        for _ in range(10 * rounds):
            for name, (call, synchronize) in entry.items():
                samples.setdefault(name, []).append(host_time(call, synchronize, calls))
        python = {name: statistics.median(values) for name, values in samples.items()}
        cost = json.loads(run_example("launch_cost", "--rounds", str(30 * rounds)))
        times = {"ours": cost["op_ns"] * 1e-9, "cuLaunchKernel": cost["cuLaunchKernel_ns"] * 1e-9}
        if "cupy" in python:
            times["cupy"] = python["cupy"]
        note = f"{cost['added_ns']:+.0f} ns to cuLaunchKernel, {cost['budget_ns']:.0f} allowed; {cost['added_to_ex_ns']:+.0f} to cuLaunchKernelEx"
        names = {"torch": "PyTorch", "cupy": "CuPy", "ours": "ours"}
        note += "; from Python " + ", ".join(f"{names[name]} {value * 1e9:.0f} ns" for name, value in python.items())
        table.row("a small add, host time beside cuLaunchKernel", times, f"<=+{cost['budget_ns']:.0f}ns", note, "cuLaunchKernel",
                  from_python=python, launch_cost=cost)

    section("exp", example_programs)
    section("exp", exp_program)
    section("layout", layout)
    section("reduce", reductions)
    section("matmul", matmul)
    section("matmul", matmul_tf32)
    section("transfer", transfers)
    section("launch", launches)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(table.rows, file, indent=1)


if __name__ == "__main__":
    sys.exit(main())
