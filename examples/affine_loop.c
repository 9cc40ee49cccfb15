/* SPDX-License-Identifier: Apache-2.0 */
/*
 * y = m x + b in a tight loop, five ways: everything moved by hand at each turn (explicit), host tensors whose copies
 * on the device are kept for as long as they do not change (mirrors), transfers that overlap with ops of other turns
 * (streamed), m and b on the device while each turn brings its x and takes its y (model), and everything on the device
 * (resident).
 *
 *   affine_loop [--rows N] [--columns N] [--iterations N] [--mode explicit|mirrors|streamed|model|resident]
 *
 * Without a mode all run, one after the other. With COMPUTE_PROFILE=1 a table shows what each transfer costs.
 * examples/python/affine_loop.py also times NumPy, which a C program does not have.
 *
 * m and b are rows x columns, x is columns x columns.
 */
#include <compute/compute.h>
#include <limits.h>
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

/* y = m x + b in one op, on whatever device the operands are; `stream` decides where they are all of the host. */
static compute_tensor* affine(compute_stream* stream, compute_tensor* m, compute_tensor* x, compute_tensor* b) {
  compute_tensor* y = NULL;
  check(compute_gemm(stream, b, m, x, NULL, NULL, &y));
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

/* The operands, on the host and as tensors of one device. */
typedef struct {
  float *m, *x, *b;
  int64_t rows, columns;
} operands;

typedef struct {
  compute_tensor *m, *x, *b;
} tensors;

static tensors upload(const operands* o, compute_device* device) {
  const int64_t m_shape[2] = {o->rows, o->columns}, x_shape[2] = {o->columns, o->columns};
  tensors t = {NULL, NULL, NULL};
  check(compute_tensor_from_host(device, COMPUTE_DTYPE_FLOAT32, 2, m_shape, o->m, &t.m));
  check(compute_tensor_from_host(device, COMPUTE_DTYPE_FLOAT32, 2, x_shape, o->x, &t.x));
  check(compute_tensor_from_host(device, COMPUTE_DTYPE_FLOAT32, 2, m_shape, o->b, &t.b));
  check(compute_tensor_set_label(t.m, "m"));
  check(compute_tensor_set_label(t.x, "x"));
  check(compute_tensor_set_label(t.b, "b"));
  return t;
}

static void release(tensors t) {
  compute_tensor_release(t.b);
  compute_tensor_release(t.x);
  compute_tensor_release(t.m);
}

/* x goes to the device and the result comes back, at each turn; m and b go there too unless `model` has them. */
static void loop_explicitly(const char* way, const operands* o, tensors host, const tensors* model,
                            compute_stream* stream, int iterations, float* y_values) {
  compute_device* device = compute_stream_device(stream);
  const compute_device_statistics before = statistics_of(device);
  const double start = seconds_now();
  for (int i = 0; i < iterations; ++i) {
    tensors each = {NULL, NULL, NULL};
    if (model == NULL) check(compute_tensor_to_device(host.m, device, &each.m));
    check(compute_tensor_to_device(host.x, device, &each.x));
    if (model == NULL) check(compute_tensor_to_device(host.b, device, &each.b));
    compute_tensor* y = affine(stream, model ? model->m : each.m, each.x, model ? model->b : each.b);
    check(compute_tensor_read(y, y_values, o->rows * o->columns * (int64_t)sizeof(float)));
    compute_tensor_release(y);
    release(each);
  }
  report(way, seconds_now() - start, before, statistics_of(device));
}

/* The same, but the turns alternate between two streams: one transfers while the other one computes. */
static void loop_streamed(const operands* o, compute_device* device, int iterations, float* y_values) {
  enum { kStreams = 2 };
  const int64_t m_bytes = o->rows * o->columns * (int64_t)sizeof(float);
  const int64_t x_bytes = o->columns * o->columns * (int64_t)sizeof(float);
  compute_stream* streams[kStreams] = {NULL, NULL};
  tensors each[kStreams];
  float* results[kStreams] = {y_values, malloc((size_t)m_bytes)};
  if (results[1] == NULL) exit(1);
  for (int i = 0; i < kStreams; ++i) {
    check(compute_stream_create(device, NULL, &streams[i]));
    each[i] = upload(o, device);
  }
  check(compute_device_synchronize(device));
  const compute_device_statistics before = statistics_of(device);
  const double start = seconds_now();
  for (int i = 0; i < iterations; ++i) {
    compute_stream* stream = streams[i % kStreams];
    const tensors t = each[i % kStreams];
    check(compute_tensor_write_async(t.m, o->m, m_bytes, stream));
    check(compute_tensor_write_async(t.x, o->x, x_bytes, stream));
    check(compute_tensor_write_async(t.b, o->b, m_bytes, stream));
    compute_tensor* y = affine(stream, t.m, t.x, t.b);
    check(compute_tensor_read_async(y, results[i % kStreams], m_bytes, stream));
    compute_tensor_release(y);
  }
  for (int i = 0; i < kStreams; ++i) check(compute_stream_synchronize(streams[i]));
  report("streamed", seconds_now() - start, before, statistics_of(device));
  for (int i = 0; i < kStreams; ++i) {
    release(each[i]);
    compute_stream_release(streams[i]);
  }
  free(results[1]);
}

/* Tensors of the host go to the device at their first use and stay there while they do not change; tensors of the
 * device are there. */
static void loop_over_tensors(const char* way, tensors t, compute_stream* stream, int iterations, float* y_values,
                              int64_t y_bytes) {
  compute_device* device = compute_stream_device(stream);
  compute_tensor* y = NULL;
  const compute_device_statistics before = statistics_of(device);
  const double start = seconds_now();
  for (int i = 0; i < iterations; ++i) {
    compute_tensor_release(y);
    y = affine(stream, t.m, t.x, t.b);
  }
  check(compute_tensor_read(y, y_values, y_bytes));
  report(way, seconds_now() - start, before, statistics_of(device));
  if (strcmp(way, "resident") == 0) printf("Used %s\n", compute_device_name(compute_tensor_device(y)));
  compute_tensor_release(y);
}

static const char* const kModes[] = {"explicit", "mirrors", "streamed", "model", "resident"};
enum { kExplicit, kMirrors, kStreamed, kModel, kResident, kModeCount };

/* The number of a mode, or -1. */
static int mode_named(const char* name) {
  for (int i = 0; i < kModeCount; ++i) {
    if (strcmp(name, kModes[i]) == 0) return i;
  }
  return -1;
}

int main(int argc, char** argv) {
  operands o = {NULL, NULL, NULL, 1000, 1000};
  int iterations = 100;
  int only = kModeCount; /* all */
  check(compute_config_arguments(&argc, argv));
  int known = argc % 2 == 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    char* end = NULL;
    const long value = strtol(argv[i + 1], &end, 10);
    const int is_size = *end == '\0' && value >= 1 && value <= INT_MAX;
    if (strcmp(argv[i], "--mode") == 0) {
      only = mode_named(argv[i + 1]);
    } else if (is_size && strcmp(argv[i], "--rows") == 0) {
      o.rows = value;
    } else if (is_size && strcmp(argv[i], "--columns") == 0) {
      o.columns = value;
    } else if (is_size && strcmp(argv[i], "--iterations") == 0) {
      iterations = (int)value;
    } else {
      known = 0;
    }
  }
  if (!known || only < 0) {
    const int wants_help = argc == 2 && strcmp(argv[1], "--help") == 0;
    fprintf(wants_help ? stdout : stderr,
            "usage: %s [--compute-device=DEVICE] [--rows N] [--columns N] [--iterations N]"
            " [--mode explicit|mirrors|streamed|model|resident]\n",
            argv[0]);
    return wants_help ? 0 : 2;
  }
  const int64_t y_count = o.rows * o.columns, y_bytes = y_count * (int64_t)sizeof(float);
  o.m = numbers(y_count, 1);
  o.x = numbers(o.columns * o.columns, 2);
  o.b = numbers(y_count, 3);
  float* y_values[kModeCount];
  for (int i = 0; i < kModeCount; ++i) y_values[i] = numbers(y_count, 4);

  compute_device* device = NULL;
  compute_device* host = NULL;
  compute_stream* stream = NULL;
  check(compute_device_open(NULL, &device));
  check(compute_device_open("cpu", &host));
  check(compute_stream_create(device, NULL, &stream));

  const tensors resident = upload(&o, device), mirrored = upload(&o, host);
  compute_tensor_release(
      affine(stream, resident.m, resident.x, resident.b)); /* prepares the op, outside of the times */
  check(compute_device_synchronize(device));
  const int all = only == kModeCount;
  if (all || only == kExplicit)
    loop_explicitly(kModes[kExplicit], &o, mirrored, NULL, stream, iterations, y_values[kExplicit]);
  if (all || only == kMirrors)
    loop_over_tensors(kModes[kMirrors], mirrored, stream, iterations, y_values[kMirrors], y_bytes);
  if (all || only == kStreamed) loop_streamed(&o, device, iterations, y_values[kStreamed]);
  if (all || only == kModel)
    loop_explicitly(kModes[kModel], &o, mirrored, &resident, stream, iterations, y_values[kModel]);
  if (all || only == kResident)
    loop_over_tensors(kModes[kResident], resident, stream, iterations, y_values[kResident], y_bytes);

  /* The ways must agree bit for bit: they are the same work. */
  int wrong = 0;
  for (int mode = 1; all && mode < kModeCount; ++mode) {
    for (int64_t i = 0; i < y_count; ++i) wrong |= !(y_values[0][i] == y_values[mode][i]);
  }
  if (wrong) printf("The results differ.\n");

  release(resident);
  release(mirrored);
  compute_stream_release(stream);
  compute_device_release(host);
  compute_device_release(device);
  for (int i = 0; i < kModeCount; ++i) free(y_values[i]);
  free(o.m);
  free(o.x);
  free(o.b);
  return wrong;
}
