// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include <fmt/format.h>

#include "compute/compute.h"
#include "core/base/error.hpp"
#include "core/base/library_file.hpp"

void compute_version(int32_t* out_major, int32_t* out_minor, int32_t* out_patch) {
  if (out_major != nullptr) *out_major = COMPUTE_VERSION_MAJOR;
  if (out_minor != nullptr) *out_minor = COMPUTE_VERSION_MINOR;
  if (out_patch != nullptr) *out_patch = COMPUTE_VERSION_PATCH;
}

compute_error* compute_require_interface(int32_t major, int32_t minor) {
  return compute::guard([&] {
    if (major == COMPUTE_INTERFACE_MAJOR && minor >= 0 && minor <= COMPUTE_INTERFACE_MINOR) return;
    throw compute::Error(
        COMPUTE_ERROR_UNSUPPORTED,
        fmt::format("the program needs version {}.{} of the interface; {} has {}.{}", major, minor,
                    compute::library_file().string(), COMPUTE_INTERFACE_MAJOR, COMPUTE_INTERFACE_MINOR));
  });
}
