/* SPDX-License-Identifier: Apache-2.0 */
/* exp on the cpu device, through an installed library: found, linked, its plugin loaded. */
#include <compute/compute.h>
#include <math.h>
#include <stdio.h>

static int failed(compute_error* error) {
  if (error == NULL) return 0;
  fprintf(stderr, "%s\n", compute_error_message(error));
  compute_error_free(error);
  return 1;
}

int main(void) {
  int32_t major, minor, patch;
  compute_version(&major, &minor, &patch);
  printf("%d.%d.%d\n", (int)major, (int)minor, (int)patch);
  if (major != COMPUTE_VERSION_MAJOR || minor != COMPUTE_VERSION_MINOR) return 1;

  const float values[3] = {0, 1, 2};
  const int64_t shape[1] = {3};
  float results[3] = {0};
  compute_device* device;
  compute_tensor *x, *y;
  if (failed(compute_device_open("cpu", &device))) return 1;
  if (failed(compute_tensor_from_host(device, COMPUTE_DTYPE_FLOAT32, 1, shape, values, &x))) return 1;
  if (failed(compute_exp(NULL, x, &y))) return 1;
  if (failed(compute_tensor_read(y, results, sizeof results))) return 1;
  for (int i = 0; i < 3; ++i) {
    printf("%.7f\n", (double)results[i]);
    if (!(fabsf(results[i] - expf(values[i])) < 1e-5f)) return 1;
  }
  compute_tensor_release(y);
  compute_tensor_release(x);
  compute_device_release(device);
  return 0;
}
