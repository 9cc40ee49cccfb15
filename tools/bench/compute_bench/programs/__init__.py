# SPDX-License-Identifier: Apache-2.0
"""Whole programs of several fields. Each is written once, for the namespaces of this library and of its peers."""
import functools
import math

from .namespaces import PEERS, Ours

FIELDS = {}  # name -> its programs


def field(name):
    """A decorator of the programs of a field: functions of a namespace, inputs and a size, which return the function that one run calls.
    Its result is a number or a small array; results of libraries differ by at most the tolerance, relative to the greatest element."""
    programs = FIELDS.setdefault(name, [])

    def program(name, quick, full, tolerance=1e-4):
        def add(make):
            programs.append((name, make, quick, full, tolerance))
            return make
        return add

    return program


from . import networks, simulation, signals, analysis, structures  # noqa: E402, F401


@functools.cache
def namespaces(b):
    ours = Ours()
    return [ours] + [PEERS[one.name](one, ours) for one in b.peers]


def numbers(result):
    if isinstance(result, list):
        return [x for part in result for x in numbers(part)]
    return numbers(result.tolist()) if hasattr(result, "tolist") else [float(result)]


def difference(ours, theirs):
    """The greatest one, relative to the greatest element of theirs; NaN if one is NaN."""
    if len(ours) != len(theirs):
        return math.inf
    apart = [abs(x - y) for x, y in zip(ours, theirs)]
    return max(apart, key=lambda x: (math.isnan(x), x)) / (max(map(abs, theirs)) or 1)


def measure(b, name, make, quick, full, tolerance):
    if not b.wants(name):
        return
    calls, results, notes = {}, {}, []
    for xp in namespaces(b):
        if b.section == "networks" and not hasattr(xp, "trained"):
            continue
        try:
            run = make(xp, xp.given(), quick if b.quick else full)
            results[xp.name] = numbers(run())
        except Exception as reason:  # the table shows what there is
            notes.append(f"{xp.name}: {type(reason).__name__}: {reason}".splitlines()[0][:120])
            continue
        calls[xp.name] = b.python_stretch(lambda run=run, xp=xp: (run(), xp.synchronize()))
        if "ours" in results:
            error = difference(results["ours"], results[xp.name])
            notes += [] if error <= tolerance else [f"differs from {xp.name} by {error:.2g}"]
    b.stretches(name, calls, least=0.005 if b.quick else 0.02)
    row = b.rows[-1]
    row["note"] = "; ".join(filter(None, [row["note"], *notes]))
    row["result"] = results.get("ours", [])[:4]


def measure_field(name, b):
    for program in FIELDS[name]:
        measure(b, *program)


SECTIONS = {name: functools.partial(measure_field, name) for name in FIELDS}
