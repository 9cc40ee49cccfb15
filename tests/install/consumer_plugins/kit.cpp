// SPDX-License-Identifier: Apache-2.0
// The same with the plugin kit: entry, settings, errors, requirements, layouts.
#include <compute_kit/emit.hpp>
#include <compute_kit/entry.hpp>
#include <compute_kit/layout.hpp>
#include <compute_kit/mark_times.hpp>
#include <compute_kit/matrix_product.hpp>
#include <compute_kit/op.hpp>
#include <compute_kit/pooling.hpp>
#include <compute_kit/slots.hpp>
#include <compute_kit/windows.hpp>

namespace {

namespace kit = compute::common;

compute_error* enumerate(const compute_plugin_sink* sink) {
  return kit::guard([&] {
    const int64_t shape[] = {4, 5, 6}, strides[] = {30, 6, 1};
    const int64_t* const operands[] = {strides};
    kit::Requirement requirement;
    requirement.name = "kitrt";
    requirement.remedy = "install the package kitrt, " + kit::setting("COMPUTE_KIT_HINT").value_or("please") + ": " +
                         std::to_string(kit::collapse(shape, operands, 0).rank) + " loop";
    requirement.required = true;
    requirement.state = COMPUTE_PLUGIN_LIBRARY_MISSING;
    kit::emit(*sink, requirement);
  });
}

constexpr compute_plugin_table kTable = [] {
  compute_plugin_table table = {};
  table.table_size = sizeof table;
  table.enumerate = enumerate;
  table.device_open = [](uint64_t, const compute_plugin_device_options*, uint64_t*,
                         const compute_plugin_device_table**) -> compute_error* {
    return kit::make_error(COMPUTE_ERROR_UNSUPPORTED, "kit has no devices");
  };
  return table;
}();

}  // namespace

extern "C" COMPUTE_PLUGIN_EXPORT const compute_plugin_manifest* compute_plugin_query(void) {
  static const compute_plugin_manifest manifest = kit::make_manifest("kit", "0.1.0");
  return &manifest;
}

extern "C" COMPUTE_PLUGIN_EXPORT compute_error* compute_plugin_open(uint32_t version, const compute_plugin_core* core,
                                                                    const compute_plugin_table** out_table) {
  return kit::open_plugin("kit", version, core, kTable, out_table);
}
