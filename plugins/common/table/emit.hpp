// SPDX-License-Identifier: Apache-2.0
// The data that a plugin passes about its devices and the libraries that it needs, in the structs of the interface.
#pragma once

#include <compute/plugin.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace compute::common {

// The name and value of each property; the result borrows them.
std::vector<compute_plugin_property> properties_of(std::span<const std::pair<std::string, std::string>> texts);

// Levels of support by dtype, for info.dtypes: all dtypes, without float64 and complex128 if the device lacks them.
std::array<uint32_t, COMPUTE_DTYPE_COMPLEX128 + 1> dtype_levels(bool has_float64);

// For the load report; see compute_plugin_requirement.
struct Requirement {
  std::string name;
  std::string tried;  // one a line
  std::string found;  // path and version
  std::string error;
  std::string effect;  // features that need it
  std::string remedy;  // shown unless it was found
  bool required = false;
  int32_t state = COMPUTE_PLUGIN_LIBRARY_NOT_SEARCHED;
};

void emit(const compute_plugin_sink& sink, const Requirement& requirement);

}  // namespace compute::common
