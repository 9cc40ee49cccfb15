// SPDX-License-Identifier: Apache-2.0
// A device that does nothing, so that a call's time is core's own. For the overhead benchmark and the instruction
// count, not for results.
#include <compute/plugin.h>

#include <array>
#include <cstring>
#include <string_view>

namespace {

compute_string text(std::string_view value) { return {value.data(), static_cast<int64_t>(value.size())}; }

uint64_t next_handle = 1;
uint64_t new_handle() { return __atomic_fetch_add(&next_handle, 1, __ATOMIC_RELAXED); }

const compute_plugin_caps* caps(uint64_t) {
  static const compute_plugin_heap heap = [] {
    compute_plugin_heap value{};
    value.struct_size = sizeof value;
    value.struct_type = COMPUTE_PLUGIN_STRUCT_HEAP;
    value.suballocation = COMPUTE_PLUGIN_SUBALLOCATE_OFFSET;
    value.size_bytes = value.max_allocation_bytes = int64_t{1} << 40;
    value.offset_alignment = value.base_alignment = 64;
    return value;
  }();
  static const compute_plugin_caps value = [] {
    compute_plugin_caps made{};
    made.struct_size = sizeof made;
    made.struct_type = COMPUTE_PLUGIN_STRUCT_CAPS;
    made.flags = COMPUTE_PLUGIN_DEVICE_IMMEDIATE;
    made.heap_count = 1;
    made.heaps = &heap;
    return made;
  }();
  return &value;
}

compute_error* memory_allocate(uint64_t, const compute_plugin_allocation*, uint64_t* out_buffer, void**) {
  *out_buffer = new_handle();
  return nullptr;
}
compute_error* stream_create(uint64_t, const compute_plugin_stream_options*, uint64_t* out_stream) {
  *out_stream = new_handle();
  return nullptr;
}
compute_error* stream_sync(uint64_t, uint64_t number, int64_t, uint64_t* out_reached) {
  *out_reached = number;
  return nullptr;
}
compute_error* copy_to_host(uint64_t, const compute_plugin_operand*, void* dst, const compute_plugin_operand*,
                            int64_t size_bytes, uint32_t) {
  std::memset(dst, 0, static_cast<size_t>(size_bytes));
  return nullptr;
}
compute_error* op_query(uint64_t, const compute_plugin_op*, compute_plugin_query_info* out_info, compute_plugin_refuse,
                        void*) {
  out_info->supported = 1;
  return nullptr;
}
compute_error* op_prepare(uint64_t, const compute_plugin_op*, uint64_t* out_plan, compute_plugin_plan_info*,
                          compute_plugin_refuse, void*) {
  *out_plan = new_handle();
  return nullptr;
}

constexpr compute_plugin_device_table kDevice = {
    .table_size = sizeof kDevice,
    .caps = caps,
    .close = [](uint64_t) {},
    .memory_allocate = memory_allocate,
    .memory_free = [](uint64_t, int32_t, uint64_t) {},
    .memory_info = nullptr,
    .memory_map = nullptr,
    .memory_unmap = nullptr,
    .memory_import = nullptr,
    .stream_create = stream_create,
    .stream_destroy = [](uint64_t) {},
    .stream_mark = [](uint64_t, uint64_t, uint32_t) -> compute_error* { return nullptr; },
    .stream_wait = [](uint64_t, uint64_t, uint64_t, uint32_t) -> compute_error* { return nullptr; },
    .stream_wait_host = nullptr,
    .signal_host_wait = nullptr,
    .stream_cancel = nullptr,
    .stream_reached = [](uint64_t, uint64_t* out_reached) -> compute_error* {
      *out_reached = 0;
      return nullptr;
    },
    .stream_sync = stream_sync,
    .mark_time = nullptr,
    .clock = nullptr,
    .telemetry = nullptr,
    .copy_from_host = [](uint64_t, const void*, const compute_plugin_operand*, const compute_plugin_operand*, int64_t,
                         uint32_t) -> compute_error* { return nullptr; },
    .copy_to_host = copy_to_host,
    .fill = [](uint64_t, const compute_plugin_operand*, int64_t, const void*, int32_t, uint32_t) -> compute_error* {
      return nullptr;
    },
    .copy_peer = nullptr,
    .op_query = op_query,
    .op_prepare = op_prepare,
    .plan_warm = nullptr,
    .plan_run = [](uint64_t, const compute_plugin_run*) -> compute_error* { return nullptr; },
    .plan_release = [](uint64_t, uint64_t) {},
    .kernels = nullptr,
};

compute_error* enumerate(const compute_plugin_sink* sink) {
  compute_plugin_device_info info{};
  info.struct_size = sizeof info;
  info.struct_type = COMPUTE_PLUGIN_STRUCT_DEVICE_INFO;
  info.id = 1;
  info.description = text("does nothing");
  info.vendor = text("compute");
  info.memory_bytes = int64_t{1} << 40;
  info.kind = COMPUTE_DEVICE_KIND_ACCELERATOR;
  info.score = -1;
  static const std::array<uint32_t, 16> levels = [] {
    std::array<uint32_t, 16> all;
    all.fill(COMPUTE_DTYPE_LEVEL_STORAGE | COMPUTE_DTYPE_LEVEL_CONVERT | COMPUTE_DTYPE_LEVEL_ARITHMETIC |
             COMPUTE_DTYPE_LEVEL_MATMUL);
    all[0] = 0;
    return all;
  }();
  info.dtypes = levels.data();
  info.dtype_count = static_cast<int32_t>(levels.size());
  sink->device(sink->context, &info);
  return nullptr;
}

compute_error* device_open(uint64_t id, const compute_plugin_device_options*, uint64_t* out_device,
                           const compute_plugin_device_table** out_table) {
  *out_device = id;
  *out_table = &kDevice;
  return nullptr;
}

constexpr compute_plugin_table kPlugin = {
    .table_size = sizeof kPlugin,
    .enumerate = enumerate,
    .device_open = device_open,
    .on_fork_child = nullptr,
    .on_exit = nullptr,
    .close = nullptr,
    .get_extension = nullptr,
};

}  // namespace

extern "C" {

COMPUTE_PLUGIN_EXPORT const compute_plugin_manifest* compute_plugin_query(void) {
  static const compute_plugin_manifest manifest = [] {
    compute_plugin_manifest value{};
    value.struct_size = sizeof value;
    value.struct_type = COMPUTE_PLUGIN_STRUCT_MANIFEST;
    value.interface_min = value.interface_max = COMPUTE_PLUGIN_INTERFACE;
    value.draft = COMPUTE_PLUGIN_DRAFT;
    value.name = text("null");
    value.version = text("0.1.0");
    value.vendor = text("compute");
    value.license = text("Apache-2.0");
    value.build_id = text("null-1");
    return value;
  }();
  return &manifest;
}

COMPUTE_PLUGIN_EXPORT compute_error* compute_plugin_open(uint32_t, const compute_plugin_core*,
                                                         const compute_plugin_table** out_table) {
  *out_table = &kPlugin;
  return nullptr;
}

}  // extern "C"
