// SPDX-License-Identifier: Apache-2.0
// compute-bench-start LIBRARY DEVICE: what a program waits for before it has its first result. Opens the device, runs
// one add, and prints the nanoseconds as JSON.
#define _POSIX_C_SOURCE 200809L
#include <compute/compute.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kCount = 1000 };

static void* library;

static void* function(const char* name) {
  void* const found = dlsym(library, name);
  if (found == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  return found;
}
#define CALL(name) ((__typeof__(&name))function(#name))

static void check(compute_error* error) {
  if (error == NULL) return;
  fprintf(stderr, "%s\n", CALL(compute_error_message)(error));
  exit(1);
}

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int64_t start = now();
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  compute_device* device = NULL;
  check(CALL(compute_device_open)(argv[2], &device));
  const int64_t opened = now();
  static float data[kCount], result[kCount];
  for (int i = 0; i < kCount; ++i) data[i] = (float)i;
  static const int64_t shape[1] = {kCount};
  compute_tensor *x = NULL, *y = NULL;
  check(CALL(compute_tensor_from_host)(device, COMPUTE_DTYPE_FLOAT32, 1, shape, data, &x));
  const int64_t given = now();
  check(CALL(compute_add)(NULL, x, x, &y));
  check(CALL(compute_tensor_read)(y, result, sizeof result));
  const int64_t done = now();
  for (int i = 0; i < kCount; ++i) {
    if (result[i] == 2 * data[i]) continue;
    fprintf(stderr, "the sum is wrong\n");
    return 1;
  }
  printf("{\"open\": %lld, \"first add\": %lld, \"whole start\": %lld}\n", (long long)(opened - start),
         (long long)(done - given), (long long)(done - start));
  CALL(compute_tensor_release)(y);
  CALL(compute_tensor_release)(x);
  CALL(compute_device_release)(device);
  return 0;
}
