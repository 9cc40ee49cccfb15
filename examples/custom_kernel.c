/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of your own: one source text that runs on every device that compiles, cuda0 and opencl0:0 alike.
 *
 * Usage: custom_kernel [DEVICE]      default: what COMPUTE_DEVICE says
 *
 * The text is in the portable dialect (docs/kernels.md): a kernel gets the address of a tensor's first element and
 * numbers, and goes through elements by itself. Strides are in elements, as the tensor has them. */
#include <compute/compute.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char* const kSource =
    "COMPUTE_KERNEL multiply_them(COMPUTE_GLOBAL const f32* x, COMPUTE_GLOBAL const f32* y, COMPUTE_GLOBAL f32* z, "
    "const i64 n) {\n"
    "  const i64 i = COMPUTE_GLOBAL_ID(0);\n"
    "  if (i < n) z[i] = x[i] * y[i];\n"
    "}\n"
    "COMPUTE_KERNEL multiply_strided(COMPUTE_GLOBAL const f32* x, COMPUTE_GLOBAL const f32* y, COMPUTE_GLOBAL f32* z, "
    "const i64 rows,\n"
    "                                const i64 columns, const i64 x_row, const i64 x_column, const i64 y_row, const "
    "i64 y_column) {\n"
    "  const i64 i = COMPUTE_GLOBAL_ID(0), r = i / columns, c = i % columns;\n"
    "  if (r < rows) z[i] = x[r * x_row + c * x_column] * y[r * y_row + c * y_column];\n"
    "}\n"
    "COMPUTE_KERNEL sum_and_difference(COMPUTE_GLOBAL const f32* x, COMPUTE_GLOBAL const f32* y, COMPUTE_GLOBAL f32* "
    "sum,\n"
    "                                  COMPUTE_GLOBAL f32* difference, const i64 n) {\n"
    "  const i64 i = COMPUTE_GLOBAL_ID(0);\n"
    "  if (i < n) {\n"
    "    sum[i] = x[i] + y[i];\n"
    "    difference[i] = x[i] - y[i];\n"
    "  }\n"
    "}\n";

enum { kRows = 20, kColumns = 10, kVector = 400, kGroup = 64 };

/* An example ends at the first error; a library would hand it on. */
static void check(compute_error* error) {
  if (error == NULL) return;
  fprintf(stderr, "custom_kernel: %s\n", compute_error_message(error));
  compute_error_free(error);
  exit(1);
}

static compute_kernel* compile(compute_device* device, const char* name) {
  compute_kernel* kernel = NULL;
  check(compute_kernel_compile(device, "portable", kSource, -1, name, NULL, &kernel));
  return kernel;
}

static compute_kernel_argument reads(compute_tensor* tensor) {
  compute_kernel_argument argument = {sizeof argument,
                                      COMPUTE_STRUCT_KERNEL_ARGUMENT,
                                      NULL,
                                      COMPUTE_ARGUMENT_TENSOR,
                                      COMPUTE_ACCESS_READ,
                                      tensor,
                                      NULL,
                                      0};
  return argument;
}

static compute_kernel_argument writes(compute_tensor* tensor) {
  compute_kernel_argument argument = reads(tensor);
  argument.access = COMPUTE_ACCESS_WRITE;
  return argument;
}

static compute_kernel_argument number(const int64_t* value) {
  compute_kernel_argument argument = {
      sizeof argument, COMPUTE_STRUCT_KERNEL_ARGUMENT, NULL, COMPUTE_ARGUMENT_VALUE, 0, NULL, value, sizeof *value};
  return argument;
}

/* One work-item per element of `n`. */
static void launch(compute_kernel* kernel, int64_t n, const compute_kernel_argument* arguments, int64_t count) {
  const compute_launch shape = {
      sizeof shape, COMPUTE_STRUCT_LAUNCH, NULL, {(n + kGroup - 1) / kGroup, 1, 1}, {kGroup, 1, 1}, 0};
  check(compute_kernel_launch(kernel, NULL, &shape, arguments, count));
}

static compute_tensor* upload(compute_device* device, int32_t rank, const int64_t* shape, const float* values) {
  compute_tensor* tensor = NULL;
  check(compute_tensor_from_host(device, COMPUTE_DTYPE_FLOAT32, rank, shape, values, &tensor));
  return tensor;
}

static compute_tensor* empty(compute_device* device, int32_t rank, const int64_t* shape) {
  compute_tensor* tensor = NULL;
  check(compute_tensor_empty(device, COMPUTE_DTYPE_FLOAT32, rank, shape, &tensor));
  return tensor;
}

/* Reads `tensor` and compares it with `expected`, which float32 arithmetic gives exactly. */
static void show(const char* what, compute_tensor* tensor, int64_t n, const float* expected) {
  float values[kVector];
  int64_t wrong = 0;
  check(compute_tensor_read(tensor, values, n * (int64_t)sizeof *values));
  for (int64_t i = 0; i < n; ++i) wrong += values[i] != expected[i];
  printf("%-36s %.6f %.6f … %.6f  %s\n", what, values[0], values[1], values[n - 1],
         wrong == 0 ? "as expected" : "WRONG");
  if (wrong != 0) exit(1);
}

/* Two vectors. */
static void multiply_vectors(compute_device* device, const float* a, const float* b) {
  float expected[kVector];
  const int64_t shape[] = {kVector}, n = kVector;
  compute_kernel* multiply = compile(device, "multiply_them");
  compute_tensor *x = upload(device, 1, shape, a), *y = upload(device, 1, shape, b), *z = empty(device, 1, shape);
  const compute_kernel_argument arguments[] = {reads(x), reads(y), writes(z), number(&n)};
  launch(multiply, n, arguments, 4);
  for (int i = 0; i < kVector; ++i) expected[i] = a[i] * b[i];
  show("multiply_them, two vectors:", z, n, expected);
  compute_tensor_release(x);
  compute_tensor_release(y);
  compute_tensor_release(z);

  /* A (20, 10) matrix lies row by row: to this kernel it is a vector of 200. */
  const int64_t matrix[] = {kRows, kColumns}, elements = kRows * kColumns;
  x = upload(device, 2, matrix, a), y = upload(device, 2, matrix, b), z = empty(device, 2, matrix);
  const compute_kernel_argument whole[] = {reads(x), reads(y), writes(z), number(&elements)};
  launch(multiply, elements, whole, 4);
  show("multiply_them, (20, 10) matrices:", z, elements, expected);
  compute_tensor_release(x);
  compute_tensor_release(y);
  compute_tensor_release(z);
  compute_kernel_release(multiply);
}

/* x times the transpose of a (10, 20) matrix: a view, whose strides the kernel is told. */
static void multiply_transposed(compute_device* device, const float* a, const float* b) {
  float expected[kVector];
  const int64_t shape[] = {kRows, kColumns}, turned[] = {kColumns, kRows}, rows = kRows, columns = kColumns;
  const int32_t axes[] = {1, 0};
  compute_kernel* multiply = compile(device, "multiply_strided");
  compute_tensor *x = upload(device, 2, shape, a), *base = upload(device, 2, turned, b), *y = NULL,
                 *z = empty(device, 2, shape);
  check(compute_tensor_permute(base, 2, axes, &y));
  int64_t x_strides[2], y_strides[2];
  memcpy(x_strides, compute_tensor_strides(x), sizeof x_strides);
  memcpy(y_strides, compute_tensor_strides(y), sizeof y_strides);
  const compute_kernel_argument arguments[] = {reads(x),
                                               reads(y),
                                               writes(z),
                                               number(&rows),
                                               number(&columns),
                                               number(&x_strides[0]),
                                               number(&x_strides[1]),
                                               number(&y_strides[0]),
                                               number(&y_strides[1])};
  launch(multiply, rows * columns, arguments, 9);
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c) expected[r * kColumns + c] = a[r * kColumns + c] * b[c * kRows + r];
  }
  show("multiply_strided, a transposed view:", z, rows * columns, expected);
  compute_tensor_release(x);
  compute_tensor_release(base);
  compute_tensor_release(y);
  compute_tensor_release(z);
  compute_kernel_release(multiply);
}

/* Two results of one kernel. */
static void add_and_subtract(compute_device* device, const float* a, const float* b) {
  float expected[kVector], other[kVector];
  const int64_t shape[] = {kVector}, n = kVector;
  compute_kernel* kernel = compile(device, "sum_and_difference");
  compute_tensor *x = upload(device, 1, shape, a), *y = upload(device, 1, shape, b), *sum = empty(device, 1, shape),
                 *difference = empty(device, 1, shape);
  const compute_kernel_argument arguments[] = {reads(x), reads(y), writes(sum), writes(difference), number(&n)};
  launch(kernel, n, arguments, 5);
  for (int i = 0; i < kVector; ++i) {
    expected[i] = a[i] + b[i];
    other[i] = a[i] - b[i];
  }
  show("sum_and_difference, x + y:", sum, n, expected);
  show("sum_and_difference, x - y:", difference, n, other);
  compute_tensor_release(x);
  compute_tensor_release(y);
  compute_tensor_release(sum);
  compute_tensor_release(difference);
  compute_kernel_release(kernel);
}

int main(int argc, char** argv) {
  if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
    const int wants_help = argc == 2 && strcmp(argv[1], "--help") == 0;
    fprintf(wants_help ? stdout : stderr, "usage: %s [DEVICE]\n", argv[0]);
    return wants_help ? 0 : 2;
  }
  compute_device* device = NULL;
  check(compute_device_open(argc > 1 ? argv[1] : NULL, &device));
  float a[kVector], b[kVector];
  for (int i = 0; i < kVector; ++i) {
    a[i] = sinf((float)i) + 2.0f;
    b[i] = 1.0f / (float)(i + 1);
  }
  multiply_vectors(device, a, b);
  multiply_transposed(device, a, b);
  add_and_subtract(device, a, b);
  printf("Used the %s\n", compute_device_name(device));
  compute_device_release(device);
  return 0;
}
