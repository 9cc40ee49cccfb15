// SPDX-License-Identifier: Apache-2.0
// The two exported functions, the manifest and the list of devices.
#include <compute_kit/emit.hpp>
#include <compute_kit/entry.hpp>

#include "device.hpp"

namespace acme {
namespace {

// TODO: ask the driver. A device that cannot be used is listed with the reason in `unusable`; a missing library is a
// requirement.
compute_error* enumerate(const compute_plugin_sink* sink) {
  return kit::guard([&] {
    const std::string compiler = find_compiler();
    kit::Requirement requirement;
    requirement.name = "C compiler";
    requirement.tried = "/usr/bin/cc\n/usr/local/bin/cc";
    requirement.found = compiler;
    requirement.effect = "all ops";
    requirement.remedy = "install gcc, or set COMPUTE_ACME_COMPILER";
    requirement.required = true;
    requirement.state = compiler.empty() ? COMPUTE_PLUGIN_LIBRARY_MISSING : COMPUTE_PLUGIN_LIBRARY_FOUND;
    kit::emit(*sink, requirement);
    if (compiler.empty()) return;
    const auto levels = kit::dtype_levels(/*has_float64=*/true);
    compute_plugin_device_info info = {};
    info.struct_size = sizeof info;
    info.struct_type = COMPUTE_PLUGIN_STRUCT_DEVICE_INFO;
    info.id = 1;
    info.description = kit::borrow("Acme's device");
    info.vendor = kit::borrow("Acme");
    info.kind = COMPUTE_DEVICE_KIND_ACCELERATOR;
    info.dtypes = levels.data();
    info.dtype_count = static_cast<int32_t>(levels.size());
    info.subnormals = COMPUTE_SUBNORMALS_KEPT;
    sink->device(sink->context, &info);
  });
}

compute_error* device_open(uint64_t id, const compute_plugin_device_options* options, uint64_t* out_device,
                           const compute_plugin_device_table** out_table) {
  *out_device = 0;
  *out_table = nullptr;
  return kit::guard([&] {
    kit::require_understood(options, "the device's options");
    static const compute_plugin_device_table table = [] {
      compute_plugin_device_table filled = {};
      filled.table_size = sizeof filled;
      fill_slots(filled);
      return filled;
    }();
    auto device = std::make_unique<Device>();
    device->id = id;
    *out_device = kit::handle_of(device.release());
    *out_table = &table;
  });
}

constexpr compute_plugin_table kTable = [] {
  compute_plugin_table table = {};
  table.table_size = sizeof table;
  table.enumerate = enumerate;
  table.device_open = device_open;
  table.close = kit::release_core;
  return table;
}();

}  // namespace
}  // namespace acme

extern "C" COMPUTE_PLUGIN_EXPORT const compute_plugin_manifest* compute_plugin_query(void) {
  static const compute_plugin_manifest manifest = [] {
    compute_plugin_manifest made = compute::common::make_manifest("acme", ACME_VERSION);
    made.vendor = compute::common::borrow("Acme");
    made.license = compute::common::borrow("Apache-2.0");
    return made;
  }();
  return &manifest;
}

extern "C" COMPUTE_PLUGIN_EXPORT compute_error* compute_plugin_open(uint32_t version, const compute_plugin_core* core,
                                                                    const compute_plugin_table** out_table) {
  return compute::common::open_plugin("acme", version, core, acme::kTable, out_table);
}
