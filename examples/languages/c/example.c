/* SPDX-License-Identifier: Apache-2.0 */
#include <compute/compute.h>
#include <stdio.h>
#include <stdlib.h>

static void check(compute_error* error) {
  if (error == NULL) return;
  fprintf(stderr, "%s\n", compute_error_message(error));
  exit(1);
}

static compute_tensor* matrix(compute_device* device, int64_t rows, int64_t columns, const float* values) {
  compute_tensor* result = NULL;
  check(compute_tensor_from_host(device, COMPUTE_DTYPE_FLOAT32, 2, (int64_t[]){rows, columns}, values, &result));
  return result;
}

static void print(const char* label, const char* format, compute_tensor* tensor) {
  float values[4];
  check(compute_tensor_read(tensor, values, sizeof values)); /* waits and copies */
  printf("%s:", label);
  for (int i = 0; i < 4; ++i) printf(format, values[i]);
  printf("\n");
}

int main(void) {
  compute_device* device = NULL;
  check(compute_device_open(NULL, &device)); /* COMPUTE_DEVICE, or the best device */
  printf("device: %s\n", compute_device_name(device));
  compute_tensor* a = matrix(device, 2, 3, (float[]){1, 2, 3, 4, 5, 6});
  compute_tensor* b = matrix(device, 3, 2, (float[]){1, 2, 3, 4, 5, 6});
  compute_tensor *factor = NULL, *product = NULL, *scaled = NULL, *y = NULL, *none = NULL;
  check(compute_tensor_scalar(COMPUTE_DTYPE_FLOAT32, &(float){0.01f}, 1, &factor));
  check(compute_matmul(NULL, a, b, NULL, &product));
  check(compute_multiply(NULL, product, factor, &scaled));
  check(compute_tanh(NULL, scaled, &y));
  print("product", " %.0f", product);
  print("tanh", " %.4f", y);
  compute_error* error = compute_matmul(NULL, a, a, NULL, &none);
  printf("error: %s: %s\n", compute_error_code_name(compute_error_get_code(error)), compute_error_message(error));
  compute_error_free(error);
  compute_tensor* tensors[] = {a, b, factor, product, scaled, y};
  for (int i = 0; i < 6; ++i) compute_tensor_release(tensors[i]);
  compute_device_release(device);
  return 0;
}
