# SPDX-License-Identifier: Apache-2.0
"""Calls of the Python package: their cost on small arrays, and the time of large ones."""

# In Python's syntax, over arrays x and y and a namespace xp.
CALLS = {
    "x + y": lambda xp, x, y: x + y,
    "x * 2.0": lambda xp, x, y: x * 2.0,
    "x += y": lambda xp, x, y: x.__iadd__(y),
    "x < y": lambda xp, x, y: x < y,
    "exp(x)": lambda xp, x, y: xp.exp(x),
    "sqrt(x)": lambda xp, x, y: xp.sqrt(x),
    "sum(x)": lambda xp, x, y: xp.sum(x),
    "x[1:3]": lambda xp, x, y: x[1:3],
    "x[1]": lambda xp, x, y: x[1],
    "float(x[0])": lambda xp, x, y: float(x[0]),
    "reshape(x, (2, -1))": lambda xp, x, y: xp.reshape(x, (2, -1)),
    "x.shape": lambda xp, x, y: x.shape,
}


def python(b):
    import compute
    device = compute.device()
    for size in (4, 1000, 1000000):
        values = [0.1 + 0.9 * i / size for i in range(size)]
        x = compute.asarray(values, dtype=compute.float32)
        y = x * 1e-9
        arrays = {}
        for one in b.peers:
            if one.module is not None:
                data = b.uniform("float32", size)
                first = one.abs(data.on(one))
                arrays[one] = (first, first * 1e-9)
        for text, call in CALLS.items():
            contestants = {"ours": b.python_stretch(lambda: call(compute, x, y), device.synchronize)}
            for one, given in arrays.items():
                contestants[one.name] = b.python_stretch(lambda one=one, given=given: call(one.module, *given), one.synchronize)
            b.stretches(f"{text}, {size} elements", contestants, best=min)
