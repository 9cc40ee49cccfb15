/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exp(x) a thousand times, on the device that COMPUTE_DEVICE names: with each result read back, with the results left
 * on the device, and with the results written into one tensor.
 *
 *   exp_loop [--dtype float32|float64] [--iterations N] [--read] [--keep] [--out]
 *            (all three ways if none is named)
 *            [--mapped] [--graph]
 *
 * Two further ways run only if they are named: with each result looked at where it lies, and with the whole loop
 * recorded once and replayed.
 *
 * x is what NumPy's RandomState(22).rand(10 * 30 * 768) gives.
 */
#include <compute/compute.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kLength = 10 * 30 * 768 };

/* ---- NumPy's RandomState: MT19937, 53 bits per number ------------------------------------------------------------ */

typedef struct {
  uint32_t words[624];
  int next;
} random_state;

static void random_seed(random_state* state, uint32_t seed) {
  state->words[0] = seed;
  for (uint32_t i = 1; i < 624; ++i) {
    state->words[i] = 1812433253u * (state->words[i - 1] ^ (state->words[i - 1] >> 30)) + i;
  }
  state->next = 624;
}

static uint32_t random_word(random_state* state) {
  if (state->next == 624) {
    for (int i = 0; i < 624; ++i) {
      const uint32_t y = (state->words[i] & 0x80000000u) | (state->words[(i + 1) % 624] & 0x7fffffffu);
      state->words[i] = state->words[(i + 397) % 624] ^ (y >> 1) ^ ((y & 1u) ? 0x9908b0dfu : 0u);
    }
    state->next = 0;
  }
  uint32_t y = state->words[state->next++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ (y >> 18);
}

static double random_double(random_state* state) {
  const uint32_t high = random_word(state) >> 5, low = random_word(state) >> 6;
  return (high * 67108864.0 + low) / 9007199254740992.0;
}

/* ---- The program ------------------------------------------------------------------------------------------------- */

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

static int64_t ops_run(compute_device* device) {
  compute_device_statistics statistics = {.struct_size = sizeof statistics};
  check(compute_device_get_statistics(device, &statistics));
  return statistics.ops_run;
}

static double element(const void* values, compute_dtype dtype, int i) {
  return dtype == COMPUTE_DTYPE_FLOAT32 ? (double)((const float*)values)[i] : ((const double*)values)[i];
}

/* Prints the first and last three values and compares every one with the C library's: at most one unit in the last
 * place off. */
static int print_and_check(const void* values, const void* x, compute_dtype dtype) {
  int wrong = 0;
  for (int i = 0; i < kLength; ++i) {
    const double wanted = exp(element(x, dtype, i));
    const double ulp = dtype == COMPUTE_DTYPE_FLOAT32 ? (double)(nextafterf((float)wanted, INFINITY) - (float)wanted)
                                                      : nextafter(wanted, INFINITY) - wanted;
    if (!(fabs(element(values, dtype, i) - wanted) <= 1.5 * ulp)) ++wrong;
  }
  printf("Result is [%.8f %.8f %.8f ... %.8f %.8f %.8f]%s\n", element(values, dtype, 0), element(values, dtype, 1),
         element(values, dtype, 2), element(values, dtype, kLength - 3), element(values, dtype, kLength - 2),
         element(values, dtype, kLength - 1), wrong ? "  WRONG" : "");
  return wrong;
}

/* What every way of looping works on. */
typedef struct {
  compute_device* device;
  compute_dtype dtype;
  int64_t size_bytes;
  void* numbers; /* x, on the host */
  void* result;  /* the last result, on the host */
  compute_tensor* x;
  compute_tensor* y;
} experiment;

static void read_each(experiment* e, int iterations) {
  for (int i = 0; i < iterations; ++i) {
    compute_tensor* each = NULL;
    check(compute_exp(NULL, e->x, &each));
    check(compute_tensor_read(each, e->result, e->size_bytes));
    compute_tensor_release(each);
  }
}

static void keep_each(experiment* e, int iterations) {
  for (int i = 0; i < iterations; ++i) {
    compute_tensor_release(e->y);
    check(compute_exp(NULL, e->x, &e->y));
  }
  check(compute_device_synchronize(e->device));
}

static void write_into_one(experiment* e, int iterations) {
  for (int i = 0; i < iterations; ++i) check(compute_exp_into(NULL, e->x, e->y));
  check(compute_device_synchronize(e->device));
}

static void map_each(experiment* e, int iterations) {
  for (int i = 0; i < iterations; ++i) {
    check(compute_exp_into(NULL, e->x, e->y));
    void* data = NULL;
    int32_t is_copy = 0;
    check(compute_tensor_map(e->y, COMPUTE_ACCESS_READ, &data, &is_copy));
    if (i == iterations - 1) memcpy(e->result, data, (size_t)e->size_bytes);
    check(compute_tensor_unmap(e->y, data));
  }
}

static double run_graph(experiment* e, int iterations) {
  compute_stream* stream = NULL;
  compute_graph* graph = NULL;
  check(compute_stream_create(e->device, NULL, &stream));
  check(compute_graph_begin(stream, NULL));
  for (int i = 0; i < iterations; ++i) check(compute_exp_into(stream, e->x, e->y));
  check(compute_graph_end(stream, &graph));
  check(compute_graph_run(graph, stream)); /* the first run is not part of the times, as the first call is not */
  check(compute_stream_synchronize(stream));
  const double start = seconds_now();
  check(compute_graph_run(graph, stream));
  check(compute_stream_synchronize(stream));
  const double seconds = seconds_now() - start;
  compute_graph_release(graph);
  compute_stream_release(stream);
  return seconds;
}

/* A way of looping. */
typedef struct {
  const char *flag, *text;
  void (*loop)(experiment*, int); /* NULL: the graph */
  int leaves_result_in_y;
  int is_default;
} way;

static const way kWays[] = {
    {"--read", "each result read back", read_each, 0, 1},
    {"--keep", "results left on the device", keep_each, 1, 1},
    {"--out", "results written into one tensor", write_into_one, 1, 1},
    {"--mapped", "each result mapped", map_each, 0, 0},
    {"--graph", "as one graph", NULL, 1, 0},
};
enum { kWayCount = sizeof kWays / sizeof kWays[0] };

/* 1 if a value is wrong. */
static int run_way(const way* w, experiment* e, int iterations) {
  const double start = seconds_now();
  double seconds = 0;
  if (w->loop != NULL) {
    w->loop(e, iterations);
    seconds = seconds_now() - start;
  } else {
    seconds = run_graph(e, iterations);
  }
  printf("Looping %d times took %.6f seconds, %s\n", iterations, seconds, w->text);
  if (w->leaves_result_in_y) check(compute_tensor_read(e->y, e->result, e->size_bytes));
  return print_and_check(e->result, e->numbers, e->dtype);
}

typedef struct {
  compute_dtype dtype;
  int iterations;
  int wanted[kWayCount];
} options;

/* 0 for arguments that it does not know. */
static int parse(int argc, char** argv, options* out) {
  int any = 0;
  for (int i = 1; i < argc; ++i) {
    int known = 0;
    for (int w = 0; w < kWayCount; ++w) {
      if (strcmp(argv[i], kWays[w].flag) == 0) known = out->wanted[w] = any = 1;
    }
    if (known) continue;
    if (i + 1 == argc) return 0;
    const char* value = argv[i + 1];
    if (strcmp(argv[i], "--iterations") == 0) {
      char* end = NULL;
      const long iterations = strtol(value, &end, 10);
      if (*end != '\0' || iterations < 1 || iterations > INT_MAX) return 0;
      out->iterations = (int)iterations;
    } else if (strcmp(argv[i], "--dtype") == 0 && strcmp(value, "float32") == 0) {
      out->dtype = COMPUTE_DTYPE_FLOAT32;
    } else if (strcmp(argv[i], "--dtype") == 0 && strcmp(value, "float64") == 0) {
      out->dtype = COMPUTE_DTYPE_FLOAT64;
    } else {
      return 0;
    }
    ++i;
  }
  for (int w = 0; w < kWayCount && !any; ++w) out->wanted[w] = kWays[w].is_default;
  return 1;
}

static void fill(void* numbers, compute_dtype dtype) {
  random_state state;
  random_seed(&state, 22);
  for (int i = 0; i < kLength; ++i) {
    const double value = random_double(&state);
    if (dtype == COMPUTE_DTYPE_FLOAT32) {
      ((float*)numbers)[i] = (float)value;
    } else {
      ((double*)numbers)[i] = value;
    }
  }
}

int main(int argc, char** argv) {
  options given = {COMPUTE_DTYPE_FLOAT32, 1000, {0}};
  check(compute_config_arguments(&argc, argv));
  const int wants_help = argc == 2 && strcmp(argv[1], "--help") == 0;
  if (wants_help || !parse(argc, argv, &given)) {
    fprintf(wants_help ? stdout : stderr,
            "usage: %s [--compute-device=DEVICE] [--dtype float32|float64] [--iterations N] [--read] [--keep] [--out]"
            " [--mapped] [--graph]\n",
            argv[0]);
    return wants_help ? 0 : 2;
  }

  experiment e = {.dtype = given.dtype};
  e.size_bytes = (int64_t)(given.dtype == COMPUTE_DTYPE_FLOAT32 ? sizeof(float) : sizeof(double)) * kLength;
  e.numbers = malloc((size_t)e.size_bytes);
  e.result = malloc((size_t)e.size_bytes);
  if (e.numbers == NULL || e.result == NULL) return 1;
  fill(e.numbers, e.dtype);

  compute_device* host = NULL;
  check(compute_device_open(NULL, &e.device));
  check(compute_device_open("cpu", &host));
  const int64_t device_ops = ops_run(e.device), host_ops = ops_run(host);
  const int64_t shape[1] = {kLength};
  check(compute_tensor_from_host(e.device, e.dtype, 1, shape, e.numbers, &e.x));

  /* The first call prepares the op; it is not part of the times. */
  check(compute_exp(NULL, e.x, &e.y));
  check(compute_device_synchronize(e.device));
  int wrong = 0;
  for (int w = 0; w < kWayCount; ++w) {
    if (given.wanted[w]) wrong |= run_way(&kWays[w], &e, given.iterations);
  }

  /* From counters of what ran, not from what was asked for. */
  const int used_host = host != e.device && ops_run(host) > host_ops;
  const int used_device = ops_run(e.device) > device_ops;
  printf("Used %s%s%s\n", strcmp(compute_device_name(e.device), "cpu") == 0 ? "the " : "",
         used_device ? compute_device_name(e.device) : "", used_host ? (used_device ? ", cpu" : "the cpu") : "");

  compute_tensor_release(e.y);
  compute_tensor_release(e.x);
  compute_device_release(host);
  compute_device_release(e.device);
  free(e.result);
  free(e.numbers);
  return wrong != 0;
}
