/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compute-probe FILE: uses one plugin as a program would, so that what crashes does so in this process and not in
 * another.
 *
 * Lists the plugin's devices, opens each that can be used, runs one small op on it and reads the result. The last line
 * says `passed` (status 0), or what went wrong (status 1). libcompute starts it for COMPUTE_PROBE=1; any other end is a
 * crash.
 */
#include <compute/compute.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* A crash ends this process by its signal, which libcompute reports, under sanitizers too. */
#if defined(__SANITIZE_ADDRESS__)
__attribute__((visibility("default"))) const char* __asan_default_options(void);
const char* __asan_default_options(void) { return "handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0"; }
#elif defined(__SANITIZE_THREAD__)
__attribute__((visibility("default"))) const char* __tsan_default_options(void);
const char* __tsan_default_options(void) { return "handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0"; }
#endif

#define MAX_DEVICES 256
#define STATUS_FAILED 3

/* Tells an error, and whether there was one. */
static int failed(compute_error* error, const char* doing) {
  if (error == NULL) return 0;
  /* the first line of a message is complete in itself; a load report may follow */
  const char* message = compute_error_message(error);
  printf("%s: %.*s\n", doing, (int)strcspn(message, "\n"), message);
  compute_error_free(error);
  return 1;
}

/* x + x where x = (1, 2, 3, 4): allocates, copies to the device, runs, copies back. */
static int add_on(compute_device* device, const char* name) {
  const float values[4] = {1, 2, 3, 4};
  const int64_t shape[1] = {4};
  float sums[4] = {0};
  const compute_op* add = NULL;
  compute_tensor *x = NULL, *y = NULL;
  int bad = failed(compute_op_find("add", 0, &add), name) ||
            failed(compute_tensor_from_host(device, COMPUTE_DTYPE_FLOAT32, 1, shape, values, &x), name);
  if (!bad) {
    compute_tensor* inputs[2] = {x, x};
    bad = failed(compute_op_run(add, NULL, NULL, 0, inputs, 2, &y, 1), name) ||
          failed(compute_tensor_read(y, sums, sizeof sums), name);
  }
  for (int i = 0; i < 4 && !bad; ++i) {
    bad = sums[i] != 2 * values[i];
    if (bad) printf("%s: %g + %g gave %g\n", name, values[i], values[i], sums[i]);
  }
  compute_tensor_release(y);
  compute_tensor_release(x);
  return bad;
}

static int try_device(const char* name) {
  compute_device* device = NULL;
  if (failed(compute_device_open(name, &device), name)) return 1;
  const int bad = add_on(device, name);
  compute_device_release(device);
  return bad;
}

static int configure(const char* file) {
  const char* const settings[][2] = {{"COMPUTE_PROBE", "0"},
                                     {"COMPUTE_PLUGIN_PATH", ""},
                                     {"COMPUTE_DEVICES", ""},
                                     {"COMPUTE_LOG", "off"},
                                     {"COMPUTE_PLUGIN_FILES", file}};
  for (size_t i = 0; i < sizeof settings / sizeof settings[0]; ++i) {
    if (failed(compute_config_set(settings[i][0], settings[i][1]), settings[i][0])) return 1;
  }
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    printf("usage: compute-probe FILE\n");
    return 2;
  }
  const struct rlimit no_core = {0, 0};
  (void)setrlimit(RLIMIT_CORE, &no_core);
  if (configure(argv[1])) return STATUS_FAILED;

  static compute_device_info infos[MAX_DEVICES];
  infos[0].struct_size = sizeof infos[0];
  int64_t count = 0;
  if (failed(compute_device_list(infos, MAX_DEVICES, &count), "listing")) return STATUS_FAILED;
  int bad = 0;
  for (int64_t i = 0; i < count && i < MAX_DEVICES; ++i) {
    /* without its plugin cpu runs nothing: that is no fault of the plugin that is tried */
    if (strcmp(infos[i].name, "cpu") != 0 || count == 1) bad |= try_device(infos[i].name);
  }
  int32_t drained = 0;
  bad |= failed(compute_shutdown(INT64_MAX, &drained), "shutting down");
  if (!bad) printf("passed\n");
  fflush(stdout);
  return bad ? STATUS_FAILED : 0;
}
