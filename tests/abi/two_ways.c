/* SPDX-License-Identifier: Apache-2.0 */
/* exp(1) and the sum of [3, 4]: by the functions that this program is compiled against, by version 1, and by the newest
 * version. */
#include <compute/compute.h>
#include <stdio.h>
#include <stdlib.h>

static void check(compute_error* error) {
  if (error == NULL) return;
  fprintf(stderr, "%s\n", compute_error_message(error));
  exit(1);
}

static float value_of(compute_tensor* tensor) {
  float value = 0;
  check(compute_tensor_read(tensor, &value, sizeof value));
  compute_tensor_release(tensor);
  return value;
}

static float by_name(const char* name, compute_tensor* x, int32_t version) {
  const compute_op* op = NULL;
  compute_tensor* result = NULL;
  check(compute_op_find(name, version, &op));
  check(compute_op_run(op, NULL, NULL, 0, &x, 1, &result, 1));
  return value_of(result);
}

int main(void) {
  compute_device* device = NULL;
  compute_tensor *x = NULL, *y = NULL, *result = NULL;
  const float one = 1, pair[] = {3, 4};
  const int64_t shape[] = {1}, pair_shape[] = {2};
  check(compute_device_open("cpu", &device));
  check(compute_tensor_from_host(device, COMPUTE_DTYPE_FLOAT32, 1, shape, &one, &x));
  check(compute_tensor_from_host(device, COMPUTE_DTYPE_FLOAT32, 1, pair_shape, pair, &y));
  check(compute_exp(NULL, x, &result));
  printf("exp: typed %.4f, version 1 %.4f, newest %.4f\n", (double)value_of(result), (double)by_name("exp", x, 1),
         (double)by_name("exp", x, 0));
  check(compute_sum(NULL, y, NULL, &result));
  printf("sum: typed %.1f, version 1 %.1f, newest %.1f\n", (double)value_of(result), (double)by_name("sum", y, 1),
         (double)by_name("sum", y, 0));
  compute_tensor_release(x);
  compute_tensor_release(y);
  compute_device_release(device);
  return 0;
}
