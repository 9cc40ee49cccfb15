#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Multiplies two small matrices, and prints where each array is and where the ops ran."""
import compute as cp

a = cp.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
b = cp.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
c = a @ b
print("a:", a.device, a.shape, a.dtype)
print("b:", b.device, b.shape, b.dtype)
print("a @ b:", c.device, c.shape, c.dtype)
print(c)
for op in cp.placement_report()["ops"]:
    print(op)
