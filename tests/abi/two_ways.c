/* SPDX-License-Identifier: Apache-2.0 */
/* exp(1) by the function that this program is compiled against, by version 1, and by the newest version. */
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

static float by_name(compute_tensor* x, int32_t version) {
  const compute_op* op = NULL;
  compute_tensor* result = NULL;
  check(compute_op_find("exp", version, &op));
  check(compute_op_run(op, NULL, NULL, 0, &x, 1, &result, 1));
  return value_of(result);
}

int main(void) {
  compute_device* device = NULL;
  compute_tensor *x = NULL, *result = NULL;
  const float one = 1;
  const int64_t shape[] = {1};
  check(compute_device_open("cpu", &device));
  check(compute_tensor_from_host(device, COMPUTE_DTYPE_FLOAT32, 1, shape, &one, &x));
  check(compute_exp(NULL, x, &result));
  printf("typed %.4f, version 1 %.4f, newest %.4f\n", (double)value_of(result), (double)by_name(x, 1),
         (double)by_name(x, 0));
  compute_tensor_release(x);
  compute_device_release(device);
  return 0;
}
