// SPDX-License-Identifier: Apache-2.0
// A plugin of the header alone: it has no device, and says what is missing.
#include <compute/plugin.h>

#include <string_view>

namespace {

compute_string text(std::string_view x) { return {x.data(), static_cast<int64_t>(x.size())}; }

compute_error* enumerate(const compute_plugin_sink* sink) {
  compute_plugin_requirement requirement = {};
  requirement.struct_size = sizeof requirement;
  requirement.struct_type = COMPUTE_PLUGIN_STRUCT_REQUIREMENT;
  requirement.name = text("headerrt");
  requirement.remedy = text("install the package headerrt");
  requirement.required = 1;
  requirement.state = COMPUTE_PLUGIN_LIBRARY_MISSING;
  sink->requirement(sink->context, &requirement);
  return nullptr;
}

}  // namespace

extern "C" COMPUTE_PLUGIN_EXPORT const compute_plugin_manifest* compute_plugin_query(void) {
  static compute_plugin_manifest manifest = {};
  manifest.struct_size = sizeof manifest;
  manifest.struct_type = COMPUTE_PLUGIN_STRUCT_MANIFEST;
  manifest.interface_min = manifest.interface_max = COMPUTE_PLUGIN_INTERFACE;
  manifest.draft = COMPUTE_PLUGIN_DRAFT;
  manifest.name = text("header");
  manifest.version = text("0.1.0");
  manifest.vendor = text("Acme");
  manifest.license = text("MIT");
  manifest.build_id = text("1");
  return &manifest;
}

extern "C" COMPUTE_PLUGIN_EXPORT compute_error* compute_plugin_open(uint32_t, const compute_plugin_core*,
                                                                    const compute_plugin_table** out_table) {
  static compute_plugin_table table = {};
  table.table_size = sizeof table;
  table.enumerate = enumerate;
  table.device_open = [](uint64_t, const compute_plugin_device_options*, uint64_t*,
                         const compute_plugin_device_table**) -> compute_error* { return nullptr; };
  *out_table = &table;
  return nullptr;
}
