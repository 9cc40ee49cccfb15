#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernels of your own: one source text for every device, on whole arrays and on views with strides."""
import compute as cp

SOURCE = """
COMPUTE_KERNEL multiply(COMPUTE_GLOBAL const f32* x, COMPUTE_GLOBAL const f32* y, COMPUTE_GLOBAL f32* z,
                        const i64 rows, const i64 columns, const i64 x_row, const i64 x_column,
                        const i64 y_row, const i64 y_column) {
  const i64 i = COMPUTE_GLOBAL_ID(0), r = i / columns, c = i % columns;
  if (r < rows) z[i] = x[r * x_row + c * x_column] * y[r * y_row + c * y_column];
}
"""
multiply = cp.kernel(SOURCE, "multiply")


def product(x, y):
    """x * y for matrices of any strides. A kernel gets the address of the first element."""
    z = cp.empty(x.shape, device=x.device)
    multiply(x.size, cp.reads(x), cp.reads(y), z, *x.shape, *x.strides, *y.strides)
    return z


x = cp.reshape(cp.arange(200, dtype=cp.float32), (20, 10))
for name, a, b in (("rows", x, x), ("transposed", x.T, x.T), ("every other", x[::2, ::-1], x[1::2, :])):
    difference = cp.max(cp.abs(product(a, b) - a * b))
    print(f"{name:12} {a.shape}: greatest difference {float(difference)}")
