/* SPDX-License-Identifier: Apache-2.0 */
/*
 * y = m x + b in a tight loop, three ways: everything moved by hand at each turn, host tensors whose copies on the
 * device are kept for as long as they do not change, and everything resident on the device.
 *
 *   affine_loop [--rows N] [--columns N] [--iterations N]      m is rows x columns, x is columns x columns, b is rows x
 *   columns
 */
#include <compute/compute.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void check(compute_error* error) {
  if (error == NULL) return;
  fprintf(stderr, "%s: %s\n", compute_error_code_name(compute_error_get_code(error)), compute_error_message(error));
  compute_error_free(error);
  exit(1);
}

static double seconds_now(void) {
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static compute_device_statistics statistics_of(compute_device* device) {
  compute_device_statistics statistics = {.struct_size = sizeof statistics};
  check(compute_device_get_statistics(device, &statistics));
  return statistics;
}

/* y = m x + b on whatever device the operands are; `stream` decides where they are all of the host. */
static compute_tensor* affine(compute_stream* stream, compute_tensor* m, compute_tensor* x, compute_tensor* b) {
  compute_tensor* product = NULL;
  compute_tensor* y = NULL;
  check(compute_matmul(stream, m, x, NULL, &product));
  check(compute_add(stream, product, b, &y));
  compute_tensor_release(product);
  return y;
}

static void report(const char* way, double seconds, compute_device_statistics before, compute_device_statistics after) {
  printf("%-10s %10.6f s  %6lld transfers to the device, %12lld bytes;  %6lld from it, %12lld bytes\n", way, seconds,
         (long long)(after.transfers_to_device - before.transfers_to_device),
         (long long)(after.transfers_to_device_bytes - before.transfers_to_device_bytes),
         (long long)(after.transfers_from_device - before.transfers_from_device),
         (long long)(after.transfers_from_device_bytes - before.transfers_from_device_bytes));
}

static float* numbers(int64_t count, unsigned seed) {
  float* values = malloc((size_t)count * sizeof(float));
  if (values == NULL) exit(1);
  for (int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    values[i] = (float)(seed >> 8) / 16777216.0f - 0.5f;
  }
  return values;
}

int main(int argc, char** argv) {
  int64_t rows = 1000, columns = 1000;
  int iterations = 100;
  check(compute_config_arguments(&argc, argv));
  for (int i = 1; i + 1 < argc; i += 2) {
    const long value = atol(argv[i + 1]);
    if (strcmp(argv[i], "--rows") == 0) rows = value;
    if (strcmp(argv[i], "--columns") == 0) columns = value;
    if (strcmp(argv[i], "--iterations") == 0) iterations = (int)value;
  }
  if (argc % 2 == 0 || rows < 1 || columns < 1 || iterations < 1) {
    fprintf(stderr, "usage: %s [--rows N] [--columns N] [--iterations N]\n", argv[0]);
    return 2;
  }

  const int64_t m_shape[2] = {rows, columns}, x_shape[2] = {columns, columns};
  float* m_values = numbers(rows * columns, 1);
  float* x_values = numbers(columns * columns, 2);
  float* b_values = numbers(rows * columns, 3);
  const int64_t y_bytes = rows * columns * (int64_t)sizeof(float);
  float* y_values[3];
  for (int i = 0; i < 3; ++i) {
    y_values[i] = malloc((size_t)y_bytes);
    if (y_values[i] == NULL) return 1;
  }

  compute_device* device = NULL;
  compute_device* host = NULL;
  compute_stream* stream = NULL;
  check(compute_device_open(NULL, &device));
  check(compute_device_open("cpu", &host));
  check(compute_stream_create(device, NULL, &stream));

  compute_tensor *m = NULL, *x = NULL, *b = NULL, *y = NULL;
  /* Resident: made on the device once. */
  check(compute_tensor_from_host(device, COMPUTE_DTYPE_FLOAT32, 2, m_shape, m_values, &m));
  check(compute_tensor_from_host(device, COMPUTE_DTYPE_FLOAT32, 2, x_shape, x_values, &x));
  check(compute_tensor_from_host(device, COMPUTE_DTYPE_FLOAT32, 2, m_shape, b_values, &b));
  y = affine(stream, m, x, b); /* prepares both ops, outside of the times */
  check(compute_device_synchronize(device));

  /* Explicit: every operand goes to the device and every result comes back, at each turn. */
  compute_device_statistics before = statistics_of(device);
  double start = seconds_now();
  for (int i = 0; i < iterations; ++i) {
    compute_tensor *m_each = NULL, *x_each = NULL, *b_each = NULL;
    check(compute_tensor_from_host(device, COMPUTE_DTYPE_FLOAT32, 2, m_shape, m_values, &m_each));
    check(compute_tensor_from_host(device, COMPUTE_DTYPE_FLOAT32, 2, x_shape, x_values, &x_each));
    check(compute_tensor_from_host(device, COMPUTE_DTYPE_FLOAT32, 2, m_shape, b_values, &b_each));
    compute_tensor* y_each = affine(stream, m_each, x_each, b_each);
    check(compute_tensor_read(y_each, y_values[0], y_bytes));
    compute_tensor_release(y_each);
    compute_tensor_release(b_each);
    compute_tensor_release(x_each);
    compute_tensor_release(m_each);
  }
  report("explicit", seconds_now() - start, before, statistics_of(device));

  /* Mirrors: host tensors go to the device at their first use and stay there while they do not change. */
  compute_tensor *m_host = NULL, *x_host = NULL, *b_host = NULL;
  check(compute_tensor_from_host(host, COMPUTE_DTYPE_FLOAT32, 2, m_shape, m_values, &m_host));
  check(compute_tensor_from_host(host, COMPUTE_DTYPE_FLOAT32, 2, x_shape, x_values, &x_host));
  check(compute_tensor_from_host(host, COMPUTE_DTYPE_FLOAT32, 2, m_shape, b_values, &b_host));
  before = statistics_of(device);
  start = seconds_now();
  for (int i = 0; i < iterations; ++i) {
    compute_tensor_release(y);
    y = affine(stream, m_host, x_host, b_host);
  }
  check(compute_tensor_read(y, y_values[1], y_bytes));
  report("mirrors", seconds_now() - start, before, statistics_of(device));

  before = statistics_of(device);
  start = seconds_now();
  for (int i = 0; i < iterations; ++i) {
    compute_tensor_release(y);
    y = affine(stream, m, x, b);
  }
  check(compute_tensor_read(y, y_values[2], y_bytes));
  report("resident", seconds_now() - start, before, statistics_of(device));
  printf("Used %s\n", compute_device_name(compute_tensor_device(y)));

  /* The three ways must agree bit for bit: they are the same work. */
  int wrong = 0;
  for (int64_t i = 0; i < rows * columns; ++i) {
    wrong |= !(y_values[0][i] == y_values[1][i] && y_values[1][i] == y_values[2][i]);
  }
  if (wrong) printf("The results differ.\n");

  compute_tensor* all[] = {m, x, b, y, m_host, x_host, b_host};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) compute_tensor_release(all[i]);
  compute_stream_release(stream);
  compute_device_release(host);
  compute_device_release(device);
  for (int i = 0; i < 3; ++i) free(y_values[i]);
  free(m_values);
  free(x_values);
  free(b_values);
  return wrong;
}
