// SPDX-License-Identifier: Apache-2.0
// Calls whose instructions are counted: each kind is made a thousand times under callgrind, on a device that does
// nothing, once its plans and its memory are there. callgrind writes one file per kind, with the kind's name as its
// trigger.
#include <compute/compute.h>
#include <stdio.h>
#include <stdlib.h>
#include <valgrind/callgrind.h>

enum { kCalls = 1000 };

static compute_device* device;
static compute_tensor *x, *y, *into;
static const int64_t kShape[1] = {2};

static void check(compute_error* error) {
  if (error == NULL) return;
  fprintf(stderr, "%s\n", compute_error_message(error));
  exit(1);
}

static compute_tensor* empty(void) {
  compute_tensor* tensor = NULL;
  check(compute_tensor_empty(device, COMPUTE_DTYPE_FLOAT32, 1, kShape, &tensor));
  return tensor;
}

static void add_into(void) { check(compute_add_into(NULL, x, y, into)); }

static void add(void) {
  compute_tensor* result = NULL;
  check(compute_add(NULL, x, y, &result));
  compute_tensor_release(result);
}

static void sum(void) {
  compute_tensor* result = NULL;
  check(compute_sum(NULL, x, NULL, &result));
  compute_tensor_release(result);
}

static void tensor_empty(void) { compute_tensor_release(empty()); }

static void tensor_reshape(void) {
  static const int64_t kColumn[2] = {2, 1};
  compute_tensor* view = NULL;
  check(compute_tensor_reshape(x, 2, kColumn, &view));
  compute_tensor_release(view);
}

static void tensor_view(void) {
  compute_tensor* view = NULL;
  check(compute_tensor_view(x, COMPUTE_DTYPE_FLOAT32, 0, NULL, NULL, 4, &view));
  compute_tensor_release(view);
}

static void repeat(void (*call)(void), int count) {
  for (int i = 0; i < count; ++i) call();
}

#define COUNT(call)                 \
  do {                              \
    repeat(call, 10);               \
    CALLGRIND_ZERO_STATS;           \
    repeat(call, kCalls);           \
    CALLGRIND_DUMP_STATS_AT(#call); \
  } while (0)

int main(void) {
  check(compute_device_open("null", &device));
  x = empty();
  y = empty();
  into = empty();
  COUNT(add_into);
  COUNT(add);
  COUNT(sum);
  COUNT(tensor_empty);
  COUNT(tensor_reshape);
  COUNT(tensor_view);
  compute_tensor_release(into);
  compute_tensor_release(y);
  compute_tensor_release(x);
  compute_device_release(device);
  return 0;
}
