/* SPDX-License-Identifier: Apache-2.0 */
/* Faults for memcheck to find: what a program hands in, seen through the library. */
#include <compute/compute.h>
#include <compute/ops.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 1000 };

static int failed(compute_error* error) {
  if (error == NULL) return 0;
  fprintf(stderr, "%s\n", compute_error_message(error));
  compute_error_free(error);
  return 1;
}

int main(int argument_count, char** arguments) {
  const char* fault = argument_count > 1 ? arguments[1] : "";
  const int64_t shape = COUNT;
  const int64_t read = strcmp(fault, "outside") == 0 ? 10 * COUNT : COUNT;
  compute_device* device = NULL;
  compute_tensor *x = NULL, *y = NULL;
  float* numbers = malloc(COUNT * sizeof *numbers);
  float* results = malloc(COUNT * sizeof *results);
  if (strcmp(fault, "uninitialized") != 0) memset(numbers, 0, COUNT * sizeof *numbers);
  if (failed(compute_device_open("cpu", &device)) ||
      failed(compute_tensor_from_host(device, COMPUTE_DTYPE_FLOAT32, 1, &read, numbers, &x)))
    return 1;
  if (failed(compute_negative(NULL, x, &y)) ||
      failed(compute_tensor_read(y, results, shape * (int64_t)sizeof *results))) {
    if (strcmp(fault, "outside") != 0) return 1; /* there are more results than that */
  }
  if (results[COUNT - 1] > 1) puts("a number");
  compute_tensor_release(y);
  if (strcmp(fault, "lost") != 0) compute_tensor_release(x);
  x = NULL;
  compute_device_release(device);
  free(numbers);
  free(results);
  return 0;
}
