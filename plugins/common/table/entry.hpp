// SPDX-License-Identifier: Apache-2.0
// The common part of the two functions that each plugin of this project exports.
#pragma once

#include <string>
#include <string_view>

#include "plugins/common/op/core.hpp"

namespace compute::common {

// The build id of the file that contains this code, as hexadecimal digits; empty if it was linked without one.
std::string own_build_id();

// `name` and `version` must live as long as the process.
compute_plugin_manifest make_manifest(std::string_view name, std::string_view version);

// compute_plugin_open: `prepare` is called once the versions match. If it does not throw, *out_table becomes `table`.
// The slot `close` of the table, if there is one, calls release_core.
template <class F = void (*)()>
compute_error* open_plugin(
    std::string_view name, uint32_t interface_version, const compute_plugin_core* core,
    const compute_plugin_table& table, const compute_plugin_table** out_table, F prepare = [] {}) noexcept {
  *out_table = nullptr;
  if (compute_error* error = refuse_second_core(core, name)) return error;
  set_core(core);
  compute_error* const error = guard([&] {
    if (interface_version != COMPUTE_PLUGIN_INTERFACE) {
      throw Error(COMPUTE_ERROR_UNSUPPORTED, "the " + std::string(name) + " plugin supports interface version " +
                                                 std::to_string(COMPUTE_PLUGIN_INTERFACE) + ", not " +
                                                 std::to_string(interface_version));
    }
    prepare();
    *out_table = &table;
  });
  if (error != nullptr) release_core();
  return error;
}

}  // namespace compute::common
