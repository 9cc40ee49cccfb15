// SPDX-License-Identifier: Apache-2.0
#include "plugins/common/table/emit.hpp"

#include <string_view>

#include "plugins/common/op/core.hpp"

namespace compute::common {

std::vector<compute_plugin_property> properties_of(std::span<const std::pair<std::string, std::string>> texts) {
  std::vector<compute_plugin_property> properties;
  for (const auto& [name, value] : texts) {
    compute_plugin_property property{};
    property.struct_size = sizeof property;
    property.struct_type = COMPUTE_PLUGIN_STRUCT_PROPERTY;
    property.name = borrow(name);
    property.value = borrow(value);
    properties.push_back(property);
  }
  return properties;
}

std::array<uint32_t, COMPUTE_DTYPE_COMPLEX128 + 1> dtype_levels(bool has_float64) {
  std::array<uint32_t, COMPUTE_DTYPE_COMPLEX128 + 1> levels{};
  for (compute_dtype dtype = COMPUTE_DTYPE_BOOL; dtype <= COMPUTE_DTYPE_COMPLEX128; ++dtype) {
    const bool needs_float64 = dtype == COMPUTE_DTYPE_FLOAT64 || dtype == COMPUTE_DTYPE_COMPLEX128;
    if (needs_float64 && !has_float64) continue;
    levels[static_cast<size_t>(dtype)] = COMPUTE_DTYPE_LEVEL_STORAGE | COMPUTE_DTYPE_LEVEL_CONVERT |
                                         COMPUTE_DTYPE_LEVEL_ARITHMETIC | COMPUTE_DTYPE_LEVEL_MATMUL;
  }
  return levels;
}

void emit(const compute_plugin_sink& sink, const Requirement& of) {
  compute_plugin_requirement requirement{};
  requirement.struct_size = sizeof requirement;
  requirement.struct_type = COMPUTE_PLUGIN_STRUCT_REQUIREMENT;
  requirement.name = borrow(of.name);
  requirement.tried = borrow(of.tried);
  requirement.found = borrow(of.found);
  requirement.error = borrow(of.error);
  requirement.effect = borrow(of.effect);
  requirement.remedy =
      borrow(of.state == COMPUTE_PLUGIN_LIBRARY_FOUND ? std::string_view() : std::string_view(of.remedy));
  requirement.required = of.required ? 1 : 0;
  requirement.state = of.state;
  sink.requirement(sink.context, &requirement);
}

}  // namespace compute::common
