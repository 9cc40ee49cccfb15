// SPDX-License-Identifier: Apache-2.0
// What the two functions that a plugin exports do alike in every plugin of this project.
#pragma once

#include <string>
#include <string_view>

#include "plugins/common/core.hpp"

namespace compute::common {

// The linker's identification of the file that this code is in, as hexadecimal digits; empty where it was linked
// without one.
std::string own_build_id();

// `name` and `version` are borrowed for good.
compute_plugin_manifest make_manifest(std::string_view name, std::string_view version);

// compute_plugin_open: `prepare` is called once the versions agree, and *out_table becomes `table` if it does not
// throw.
template <class F>
compute_error* open_plugin(std::string_view name, uint32_t interface_version, const compute_plugin_core* core,
                           const compute_plugin_table& table, const compute_plugin_table** out_table,
                           F&& prepare) noexcept {
  *out_table = nullptr;
  set_core(core);
  return guard([&] {
    if (interface_version != COMPUTE_PLUGIN_INTERFACE) {
      throw Error(COMPUTE_ERROR_UNSUPPORTED, "the " + std::string(name) + " plugin supports interface version " +
                                                 std::to_string(COMPUTE_PLUGIN_INTERFACE) + ", not " +
                                                 std::to_string(interface_version));
    }
    prepare();
    *out_table = &table;
  });
}

}  // namespace compute::common
