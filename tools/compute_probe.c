/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compute-probe [--run] FILE: uses one plugin as a program would, so that what crashes, exits or hangs does so in this
 * process and not in another.
 *
 * Loads and opens the plugin and lists its devices; --run opens each that can be used, runs one small op on it and
 * reads the result. libcompute starts it before it loads a plugin that is new to it, and reads descriptor 3 (stdout
 * where that is not open): `ready`, a line `at STEP` before each entry into the plugin, a line `library FILE` for each
 * loaded library, at last `passed`, `failed: REASON` or, where the plugin was never entered, `untried: REASON`. After
 * that it ends with status 0; any other end is the plugin's doing.
 */
#define _GNU_SOURCE
#include <compute/compute.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

/* A crash ends this process by its signal, which libcompute reports, under sanitizers too. */
#if defined(__SANITIZE_ADDRESS__)
__attribute__((visibility("default"))) const char* __asan_default_options(void);
const char* __asan_default_options(void) {
  return "handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0:detect_leaks=0";
}
#elif defined(__SANITIZE_THREAD__)
__attribute__((visibility("default"))) const char* __tsan_default_options(void);
const char* __tsan_default_options(void) {
  return "handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0:exitcode=0";
}
#endif

#define MAX_DEVICES 256
#define MAX_LINE 1024
#define REPORT_DESCRIPTOR 3

static int report_descriptor = STDOUT_FILENO;
static int has_entered = 0; /* core has entered the plugin */

/* Writes one line of the report atomically. A closed reader is not an error. */
static void report(const char* mark, const char* text) {
  char line[MAX_LINE];
  int size = snprintf(line, sizeof line, "%s%.*s\n", mark, (int)strcspn(text, "\n"), text);
  if (size >= (int)sizeof line) {
    size = (int)sizeof line;
    line[size - 1] = '\n';
  }
  if (write(report_descriptor, line, (size_t)size) != size) return;
}

static int report_library(struct dl_phdr_info* info, size_t size, void* user_data) {
  (void)size;
  (void)user_data;
  if (info->dlpi_name[0] == '/' && strlen(info->dlpi_name) + 16 < MAX_LINE) report("library ", info->dlpi_name);
  return 0;
}

static void take_log(compute_borrowed_log_record record, void* user_data) {
  static const char kEntering[] = "entering ";
  const char* const text = record->text;
  (void)user_data;
  if (record->level == COMPUTE_LOG_ERROR &&
      strncmp(text, "dlopen of ", 10) == 0) { /* the process cannot continue safely */
    report("at ", "dlopen, which threw an exception");
    abort();
  }
  if (strcmp(record->category, "load") == 0 && strncmp(text, kEntering, sizeof kEntering - 1) == 0) {
    char step[MAX_LINE];
    has_entered = 1;
    snprintf(step, sizeof step, "%s", text + sizeof kEntering - 1);
    char* const of = strstr(step, " of ");
    if (of != NULL) *of = '\0'; /* which file it is, the reader knows */
    report("at ", step);
    if (strcmp(step, "compute_plugin_query") == 0) (void)dl_iterate_phdr(report_library, NULL);
  }
}

/* Tells an error, and whether there was one. */
static int failed(compute_error* error, const char* doing) {
  if (error == NULL) return 0;
  /* the first line of a message is complete in itself; a load report may follow */
  const char* message = compute_error_message(error);
  char line[MAX_LINE];
  snprintf(line, sizeof line, "%s: %.*s", doing, (int)strcspn(message, "\n"), message);
  report("failed: ", line);
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
    if (bad) report("failed: wrong sum on ", name);
  }
  compute_tensor_release(y);
  compute_tensor_release(x);
  return bad;
}

static int try_device(const char* name) {
  char step[MAX_LINE];
  compute_device* device = NULL;
  snprintf(step, sizeof step, "the use of %s", name);
  report("at ", step);
  if (failed(compute_device_open(name, &device), name)) return 1;
  const int bad = add_on(device, name);
  compute_device_release(device);
  return bad;
}

/* A list of this one path: colons separate paths there. */
static char* list_of(const char* path) {
  char* const list = malloc(2 * strlen(path) + 1);
  char* at = list;
  if (list == NULL) return NULL;
  for (; *path != '\0'; *at++ = *path++) {
    if (*path == ':') *at++ = '\\';
  }
  *at = '\0';
  return list;
}

static int configure(const char* file) {
  const char* const settings[][2] = {
      {"COMPUTE_PROBE", "0"},      {"COMPUTE_TRUST_ALL", "1"}, /* judged by who started it */
      {"COMPUTE_PLUGIN_PATH", ""}, {"COMPUTE_DEVICES", ""},
      {"COMPUTE_PREALLOCATE", ""}, {"COMPUTE_PLUGIN_FILES", file}};
  for (size_t i = 0; i < sizeof settings / sizeof settings[0]; ++i) {
    if (failed(compute_config_set(settings[i][0], settings[i][1]), settings[i][0])) return 1;
  }
  return failed(compute_log_set_callback(take_log, NULL), "the log");
}

static int try_plugin(int runs) {
  static compute_device_info infos[MAX_DEVICES];
  infos[0].struct_size = sizeof infos[0];
  int64_t count = 0;
  if (failed(compute_device_list(infos, MAX_DEVICES, &count), "listing")) return 1;
  int bad = 0;
  for (int64_t i = 0; runs && i < count && i < MAX_DEVICES; ++i) {
    /* without the cpu plugin, cpu runs no ops: not a fault of the probed plugin */
    if (strcmp(infos[i].name, "cpu") != 0 || count == 1) bad |= try_device(infos[i].name);
  }
  int32_t drained = 0;
  (void)dl_iterate_phdr(report_library, NULL); /* with those that the plugin has opened itself */
  report("at ", "shutdown");
  return bad | failed(compute_shutdown(INT64_MAX, &drained), "shutting down");
}

int main(int argc, char** argv) {
  const int runs = argc == 3 && strcmp(argv[1], "--run") == 0;
  if (argc != 2 + runs || argv[1 + runs][0] == '-') {
    printf("usage: compute-probe [--run] FILE\n");
    return 2;
  }
  const struct rlimit no_core = {0, 0};
  (void)setrlimit(RLIMIT_CORE, &no_core);
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* ends the probe if its parent has ended */
  if (fcntl(REPORT_DESCRIPTOR, F_SETFD, FD_CLOEXEC) == 0) report_descriptor = REPORT_DESCRIPTOR;
  report("ready", "");
  char* const files = list_of(argv[1 + runs]);
  const int is_good = files != NULL && !configure(files) && !try_plugin(runs);
  free(files);
  if (!has_entered) {
    report("untried: ", "compute-probe did not load the plugin");
  } else if (is_good) {
    report("passed", "");
  }
  return 0;
}
