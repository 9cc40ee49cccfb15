# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/ compared with the same programs with a peer: the loops of exp_loop and affine_loop, and training."""
import os
import re
import statistics
import subprocess

WORDS = {"each result read back": "read", "results left on the device": "left", "results written into one tensor": "same",
         "each result mapped": "mapped", "as one graph": "graph"}


def run(b, name, *arguments):
    folder = b.options.examples or os.path.join(os.path.dirname(os.path.abspath(b.options.library)), "..", "bin")
    done = subprocess.run([os.path.join(folder, name), *arguments], env={**os.environ, "COMPUTE_DEVICE": b.device}, capture_output=True,
                          text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{name}: {done.stdout}{done.stderr}")
    return done.stdout


def loops(b):
    turns, affine_turns = 1000, 100
    x, y, (m, w, c) = b.uniform("float32", 230400), b.empty(230400), (b.normal(1000, 1000) for _ in "mwc")

    def of(p):
        """The same loops, in seconds."""
        a, out, given = x.on(p), y.on(p), [t.on(p) for t in (m, w, c)]
        host, last = [p.to_host(t) for t in given], {}

        def resident():
            last[0] = p.add(p.matmul(given[0], given[1]), given[2])

        def moved():
            return p.to_host(p.add(p.matmul(p.to_device(host[0]), p.to_device(host[1])), p.to_device(host[2])))

        def read_last():
            if last:  # as affine_loop does
                p.to_host(last[0])
            p.synchronize()

        bodies = {"read": (lambda: p.to_host(p.exp(a)), p.synchronize, turns), "left": (lambda: p.exp(a), p.synchronize, turns),
                  "same": (lambda: p.exp(a, out=out), p.synchronize, turns), "explicit": (moved, p.synchronize, affine_turns),
                  "resident": (resident, read_last, affine_turns)}
        return {way: (b.python_stretch(body, end), count) for way, (body, end, count) in bodies.items()}

    peers = {one.name: of(one) for one in b.peers if hasattr(type(one), "to_host")}
    seconds = {}
    for _ in range(3 if b.quick else 7):
        text = run(b, "exp_loop", "--iterations", str(turns), "--read", "--keep", "--out", "--mapped", "--graph")
        found = [(WORDS[way], "ours", float(value)) for value, way in re.findall(r"took ([0-9.]+) seconds, (.*)", text) if way in WORDS]
        text = run(b, "affine_loop", "--rows", "1000", "--columns", "1000", "--iterations", str(affine_turns))
        found += [(way, "ours", float(value)) for way, value in re.findall(r"^(explicit|mirrors|resident) +([0-9.]+) s", text, re.M)]
        found += [(way, name, stretch(count)) for name, entry in peers.items() for way, (stretch, count) in entry.items()]
        for way, name, value in found:
            seconds.setdefault(way, {}).setdefault(name, []).append(value)
    for way, label, against in (
            ("read", f"exp_loop, {turns} turns, read into host memory", "read"), ("mapped", "exp_loop, mapped", "read"),
            ("left", "exp_loop, left on the device", "left"), ("same", "exp_loop, same output", "same"),
            ("graph", "exp_loop, as a graph", "same"), ("explicit", f"affine_loop, {affine_turns} turns, moved", "explicit"),
            ("mirrors", "affine_loop, host tensors mirrored", "explicit"), ("resident", "affine_loop, resident", "resident")):
        entry = b.entry(label) if "ours" in seconds.get(way, {}) else None
        if entry:
            for name, values in {**seconds[against], "ours": seconds[way]["ours"]}.items():
                middle = statistics.median(values)
                entry["times"][name] = {"seconds": middle, "spread": (max(values) - min(values)) / middle}


def epochs(b):
    """Training, in seconds: the fastest epoch, or all steps of the transformer. --mnist and --reviews name the data."""
    count, steps, options = 1 if b.quick else 2, 20 if b.is_cpu else 400, b.options
    for name, data, program, kind, arguments in (
            ("mnist_cnn", options.mnist, "mnist_cnn", "mnist", [f"--epochs={count}"]),
            ("mnist_cnn --pool=1", options.mnist, "mnist_cnn", "mnist_with_pooling", [f"--epochs={count}", "--pool=1", "--l2=0"]),
            ("imdb_cnn", options.reviews, "imdb_cnn", "imdb", [f"--epochs={count}"]),
            (f"transformer, {steps} steps", options.reviews, "transformer", "gpt", [f"--steps={steps}", "--generate=0"])):
        entry = b.entry(name) if data else None
        if entry is None:
            continue
        try:
            text = run(b, program, f"--data={data}", *arguments)
            found = re.findall(r"test accuracy ([\d.]+), ([\d.]+) s", text) or [
                re.search(r"steps in ([\d.]+) s, held-out loss ([\d.]+)", text).groups()[::-1]]
            times, notes = {"ours": [float(seconds) for _, seconds in found]}, [f"{float(found[-1][0]):.4f}"]
            for one in b.peers:
                if hasattr(type(one), "train"):
                    times[one.name], quality = one.train(kind, data, steps if kind == "gpt" else count)
                    notes.append(f"{one.name} {quality:.4f}")
        except Exception as reason:  # the table shows what there is
            entry["note"] = f"{type(reason).__name__}: {reason}"[:200]
            continue
        entry["times"] = {who: {"seconds": min(values), "spread": (max(values) - min(values)) / min(values)} for who, values in times.items()}
        entry["note"] = ("held-out loss " if kind == "gpt" else "accuracy ") + ", ".join(notes)
