/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exp(x) a thousand times, on the device that COMPUTE_DEVICE names: with each result read back, with the results left
 * on the device, and with the results written into one tensor.
 *
 *   exp_loop [--dtype float32|float64] [--iterations N] [--read] [--keep] [--out]      (all three ways if none is
 *   named)
 *            [--mapped] [--graph]
 *
 * Two further ways run only if they are named: with each result looked at where it lies, and with the whole loop
 * recorded once and replayed.
 *
 * x is what NumPy's RandomState(22).rand(10 * 30 * 768) gives.
 */
#include <compute/compute.h>
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

int main(int argc, char** argv) {
  compute_dtype dtype = COMPUTE_DTYPE_FLOAT32;
  int iterations = 1000, ways = 0;
  check(compute_config_arguments(&argc, argv));
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--dtype") == 0 && i + 1 < argc && strcmp(argv[i + 1], "float32") == 0) {
      ++i;
    } else if (strcmp(argv[i], "--dtype") == 0 && i + 1 < argc && strcmp(argv[i + 1], "float64") == 0) {
      dtype = COMPUTE_DTYPE_FLOAT64;
      ++i;
    } else if (strcmp(argv[i], "--iterations") == 0 && i + 1 < argc) {
      iterations = atoi(argv[++i]);
    } else if (strcmp(argv[i], "--read") == 0) {
      ways |= 1;
    } else if (strcmp(argv[i], "--keep") == 0) {
      ways |= 2;
    } else if (strcmp(argv[i], "--out") == 0) {
      ways |= 4;
    } else if (strcmp(argv[i], "--mapped") == 0) {
      ways |= 8;
    } else if (strcmp(argv[i], "--graph") == 0) {
      ways |= 16;
    } else {
      fprintf(stderr,
              "usage: %s [--dtype float32|float64] [--iterations N] [--read] [--keep] [--out] [--mapped] [--graph]\n",
              argv[0]);
      return 2;
    }
  }
  if (ways == 0) ways = 7;
  if (iterations < 1) iterations = 1;

  const size_t size = dtype == COMPUTE_DTYPE_FLOAT32 ? sizeof(float) : sizeof(double);
  const int64_t size_bytes = (int64_t)(size * kLength);
  void* numbers = malloc((size_t)size_bytes);
  void* result = malloc((size_t)size_bytes);
  if (numbers == NULL || result == NULL) return 1;
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

  compute_device* device = NULL;
  compute_device* host = NULL;
  check(compute_device_open(NULL, &device));
  check(compute_device_open("cpu", &host));
  const int64_t device_ops = ops_run(device), host_ops = ops_run(host);
  const int64_t shape[1] = {kLength};
  compute_tensor* x = NULL;
  compute_tensor* y = NULL;
  check(compute_tensor_from_host(device, dtype, 1, shape, numbers, &x));

  /* The first call prepares the op; it is not part of the times. */
  check(compute_exp(NULL, x, &y));
  check(compute_device_synchronize(device));
  int wrong = 0;

  if (ways & 1) {
    const double start = seconds_now();
    for (int i = 0; i < iterations; ++i) {
      compute_tensor* each = NULL;
      check(compute_exp(NULL, x, &each));
      check(compute_tensor_read(each, result, size_bytes));
      compute_tensor_release(each);
    }
    printf("Looping %d times took %.6f seconds, each result read back\n", iterations, seconds_now() - start);
    wrong |= print_and_check(result, numbers, dtype);
  }
  if (ways & 2) {
    const double start = seconds_now();
    for (int i = 0; i < iterations; ++i) {
      compute_tensor_release(y);
      check(compute_exp(NULL, x, &y));
    }
    check(compute_device_synchronize(device));
    printf("Looping %d times took %.6f seconds, results left on the device\n", iterations, seconds_now() - start);
    check(compute_tensor_read(y, result, size_bytes));
    wrong |= print_and_check(result, numbers, dtype);
  }
  if (ways & 4) {
    const double start = seconds_now();
    for (int i = 0; i < iterations; ++i) check(compute_exp_into(NULL, x, y));
    check(compute_device_synchronize(device));
    printf("Looping %d times took %.6f seconds, results written into one tensor\n", iterations, seconds_now() - start);
    check(compute_tensor_read(y, result, size_bytes));
    wrong |= print_and_check(result, numbers, dtype);
  }

  if (ways & 8) {
    const double start = seconds_now();
    for (int i = 0; i < iterations; ++i) {
      check(compute_exp_into(NULL, x, y));
      void* data = NULL;
      int32_t is_copy = 0;
      check(compute_tensor_map(y, COMPUTE_ACCESS_READ, &data, &is_copy));
      if (i == iterations - 1) memcpy(result, data, (size_t)size_bytes);
      check(compute_tensor_unmap(y, data));
    }
    printf("Looping %d times took %.6f seconds, each result mapped\n", iterations, seconds_now() - start);
    wrong |= print_and_check(result, numbers, dtype);
  }
  if (ways & 16) {
    compute_stream* stream = NULL;
    compute_graph* graph = NULL;
    check(compute_stream_create(device, NULL, &stream));
    check(compute_graph_begin(stream));
    for (int i = 0; i < iterations; ++i) check(compute_exp_into(stream, x, y));
    check(compute_graph_end(stream, &graph));
    check(compute_graph_run(graph, stream)); /* the first run is not part of the times, as the first call is not */
    check(compute_stream_synchronize(stream));
    const double start = seconds_now();
    check(compute_graph_run(graph, stream));
    check(compute_stream_synchronize(stream));
    printf("Looping %d times took %.6f seconds, as one graph\n", iterations, seconds_now() - start);
    check(compute_tensor_read(y, result, size_bytes));
    wrong |= print_and_check(result, numbers, dtype);
    compute_graph_release(graph);
    compute_stream_release(stream);
  }

  /* From counters of what ran, not from what was asked for. */
  const int used_host = host != device && ops_run(host) > host_ops;
  const int used_device = ops_run(device) > device_ops;
  printf("Used %s%s%s\n", strcmp(compute_device_name(device), "cpu") == 0 ? "the " : "",
         used_device ? compute_device_name(device) : "", used_host ? (used_device ? ", cpu" : "the cpu") : "");

  compute_tensor_release(y);
  compute_tensor_release(x);
  compute_device_release(host);
  compute_device_release(device);
  free(result);
  free(numbers);
  return wrong != 0;
}
