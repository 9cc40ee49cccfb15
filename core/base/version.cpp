// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "compute/compute.h"

void compute_version(int32_t* out_major, int32_t* out_minor, int32_t* out_patch) {
  if (out_major != nullptr) *out_major = COMPUTE_VERSION_MAJOR;
  if (out_minor != nullptr) *out_minor = COMPUTE_VERSION_MINOR;
  if (out_patch != nullptr) *out_patch = COMPUTE_VERSION_PATCH;
}
