/* SPDX-License-Identifier: Apache-2.0
 * A profiler for NVTX_INJECTION64_PATH: it writes the ranges that it receives to the file
 * FAKE_PROFILER_OUTPUT. With FAKE_PROFILER_REFUSES it does not attach. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef void (*function)(void);
struct callbacks {
  size_t struct_size;
  int (*function_table)(int32_t module, function*** out_table, unsigned* out_size);
};

static _Thread_local int depth;
static FILE* output;

static int push(const char* name) {
  fprintf(output, "push %s\n", name);
  fflush(output);
  return depth++;
}

static int pop(void) {
  fprintf(output, depth > 0 ? "pop\n" : "pop of nothing\n");
  fflush(output);
  return --depth;
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(const void* (*export_table)(uint32_t id));

int InitializeInjectionNvtx2(const void* (*export_table)(uint32_t id)) {
  const struct callbacks* callbacks = export_table(1);
  function** table = NULL;
  unsigned size = 0;
  const char* path = getenv("FAKE_PROFILER_OUTPUT");
  if (getenv("FAKE_PROFILER_REFUSES") != NULL || path == NULL) return 0;
  if (callbacks == NULL || callbacks->struct_size < sizeof *callbacks || export_table(99) != NULL) return 0;
  if (!callbacks->function_table(1, &table, &size) || size != 16 || table[size] != NULL) return 0;
  if (callbacks->function_table(99, &table, &size)) return 0;
  output = fopen(path, "we");
  if (output == NULL) return 0;
  *table[9] = (function)push;
  *table[11] = (function)pop;
  return 1;
}
