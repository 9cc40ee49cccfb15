// SPDX-License-Identifier: Apache-2.0
// A program that opens the library at run time and closes it while work and a notification are pending: unloaded
// LIBRARY DEVICE. Exits with 0 if the notification came, 77 if there is no such device. Exit waits two seconds for it:
// where a busy machine let the threads wait as long, the program runs again.
#define _POSIX_C_SOURCE 200809L
#include <compute/compute.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum { kAgain = 10 };

static atomic_int notified;

static void notify(const compute_error* error, void* user_data) {
  (void)user_data;
  thrd_sleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
  atomic_store(&notified, error == NULL ? 1 : 2);
}

static struct timespec ended;

/* Registered before the library's own handler, which runs callbacks that are due. */
static void judge(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const double waited = difftime(now.tv_sec, ended.tv_sec) + 1e-9 * (double)(now.tv_nsec - ended.tv_nsec);
  if (atomic_load(&notified) != 1) _exit(waited < 2 ? 3 : kAgain);
}

/* Returns in a child process; this one ends as it does. */
static void go_on_in_child(void) {
  int status = 0;
  for (int i = 0; i < 5 && (i == 0 || (WIFEXITED(status) && WEXITSTATUS(status) == kAgain)); ++i) {
    const pid_t child = fork();
    if (child == 0) return;
    if (child < 0 || waitpid(child, &status, 0) != child) _exit(8);
  }
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 9);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  go_on_in_child();
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return 4;
#define FUNCTION(name) __typeof__(name)* const call_##name = (__typeof__(name)*)dlsym(library, #name)
  FUNCTION(compute_device_open);
  FUNCTION(compute_stream_create);
  FUNCTION(compute_stream_notify);
  FUNCTION(compute_tensor_full);
  FUNCTION(compute_exp);
  FUNCTION(compute_error_message);
  atexit(judge);
  compute_device* device = NULL;
  compute_stream* stream = NULL;
  compute_tensor *x = NULL, *y = NULL;
  const int64_t shape[] = {20000};
  const float value = 0.5f;
  compute_error* error = call_compute_device_open(argv[2], &device);
  if (error != NULL) {
    puts(call_compute_error_message(error));
    _exit(77);
  }
  error = call_compute_stream_create(device, NULL, &stream);
  if (error == NULL) error = call_compute_tensor_full(device, COMPUTE_DTYPE_FLOAT32, 1, shape, &value, &x);
  for (int i = 0; i < 20 && error == NULL; ++i) {
    y = NULL;
    error = call_compute_exp(stream, x, &y);
  }
  if (error == NULL) error = call_compute_stream_notify(stream, notify, NULL);
  if (error != NULL) {
    puts(call_compute_error_message(error));
    _exit(5);
  }
  clock_gettime(CLOCK_MONOTONIC, &ended);
  return dlclose(library) == 0 ? 0 : 6;
}
