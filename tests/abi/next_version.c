/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A later library in which every op has a version 2 that does something else: to be loaded before libcompute, whose
 * look-up of the newest version it replaces.
 */
#define _GNU_SOURCE
#include <dlfcn.h>

#include <compute/compute.h>

compute_error* compute_op_find(const char* name, int32_t version, const compute_op** out_op) {
  typedef compute_error* (*find_function)(const char* name, int32_t version, const compute_op** out_op);
  const find_function find = (find_function)dlsym(RTLD_NEXT, "compute_op_find");
  return version == 1 ? find(name, version, out_op) : find("negative", 1, out_op);
}
