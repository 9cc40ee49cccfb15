// SPDX-License-Identifier: Apache-2.0
// The two exported functions and the tables behind them.
#include <array>
#include <compute/plugin.h>

#include <cstring>
#include <vector>

#include "plugins/common/entry.hpp"
#include "plugins/common/understood.hpp"
#include "plugins/cpu/contract/contraction.hpp"
#include "plugins/cpu/device.hpp"
#include "plugins/cpu/host.hpp"
#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/plan.hpp"
#include "plugins/cpu/stream.hpp"
#include "plugins/cpu/threads.hpp"

#ifndef COMPUTE_PLUGIN_VERSION
#define COMPUTE_PLUGIN_VERSION "0.0.0"
#endif

namespace compute::cpu {
namespace {

using common::require_understood;

// By dtype id: all of every dtype.
constexpr std::array<uint32_t, COMPUTE_DTYPE_COMPLEX128 + 1> kDtypeLevels = [] {
  std::array<uint32_t, COMPUTE_DTYPE_COMPLEX128 + 1> levels{};
  for (size_t dtype = COMPUTE_DTYPE_BOOL; dtype < levels.size(); ++dtype) {
    levels[dtype] = COMPUTE_DTYPE_STORAGE | COMPUTE_DTYPE_CONVERT | COMPUTE_DTYPE_ARITHMETIC | COMPUTE_DTYPE_MATMUL;
  }
  return levels;
}();

constexpr uint64_t kDeviceId = 1;

Device* device_of(uint64_t handle) { return reinterpret_cast<Device*>(static_cast<uintptr_t>(handle)); }
Stream* stream_of(uint64_t handle) { return reinterpret_cast<Stream*>(static_cast<uintptr_t>(handle)); }
const Plan* plan_of(uint64_t handle) { return reinterpret_cast<const Plan*>(static_cast<uintptr_t>(handle)); }

template <class T>
uint64_t handle_of(T* object) {
  return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(object));
}

// ---- Device table ---------------------------------------------------------------------------------------------------

const compute_plugin_caps* device_caps(uint64_t) {
  static const compute_plugin_heap heap = [] {
    compute_plugin_heap h{};
    h.struct_size = sizeof h;
    h.struct_type = COMPUTE_PLUGIN_STRUCT_HEAP;
    h.flags = COMPUTE_HEAP_DEVICE_LOCAL | COMPUTE_HEAP_HOST_VISIBLE | COMPUTE_HEAP_HOST_SPACE | COMPUTE_HEAP_COHERENT;
    h.suballocation = COMPUTE_SUBALLOCATE_OFFSET;
    h.size_bytes = read_processor_info().memory_bytes;
    h.max_allocation_bytes = INT64_MAX;
    h.offset_alignment = 64;
    h.base_alignment = 64;
    return h;
  }();
  static const compute_plugin_caps caps = [] {
    compute_plugin_caps c{};
    c.struct_size = sizeof c;
    c.struct_type = COMPUTE_PLUGIN_STRUCT_CAPS;
    c.flags = COMPUTE_DEVICE_IMMEDIATE | COMPUTE_DEVICE_IS_HOST;
    c.heap_count = 1;
    c.heaps = &heap;
    return c;
  }();
  return &caps;
}

void device_close(uint64_t device) { delete device_of(device); }

// The heap is host memory: its buffers are addresses already.
compute_error* memory_map(uint64_t, int32_t, uint64_t buffer, int64_t offset_bytes, int64_t, int32_t, void** out_data) {
  *out_data = reinterpret_cast<void*>(static_cast<uintptr_t>(buffer) + static_cast<uintptr_t>(offset_bytes));
  return nullptr;
}

void memory_unmap(uint64_t, int32_t, uint64_t, void*) {}

compute_error* stream_create(uint64_t device, const compute_plugin_stream_options* options, uint64_t* out_stream) {
  *out_stream = 0;
  return guard([&] {
    require_understood(options, "the stream's options");
    const uint32_t flags = options != nullptr && COMPUTE_PLUGIN_HAS(options, flags) ? options->flags : 0;
    *out_stream = handle_of(device_of(device)->create_stream(flags));
  });
}

void stream_destroy(uint64_t stream) { stream_of(stream)->device()->destroy_stream(stream_of(stream)); }

compute_error* stream_mark(uint64_t stream, uint64_t number, uint32_t flags) {
  return guard([&] {
    common::require_known_flags(flags, "the mark");
    stream_of(stream)->mark(number);
  });
}

compute_error* stream_wait(uint64_t stream, uint64_t other, uint64_t number) {
  return guard([&] { stream_of(stream)->wait(stream_of(other), number); });
}

compute_error* stream_reached(uint64_t stream, uint64_t* out_reached) {
  compute_error* error = nullptr;
  *out_reached = stream_of(stream)->reached(&error);
  return error;
}

compute_error* stream_sync(uint64_t stream, uint64_t number, int64_t timeout_ns, uint64_t* out_reached) {
  compute_error* error = nullptr;
  *out_reached = stream_of(stream)->sync(number, timeout_ns, &error);
  return error;
}

compute_error* copy_from_host(uint64_t stream, const void* src, const compute_plugin_operand* dst, int64_t size_bytes) {
  return guard([&] { stream_of(stream)->copy({src, address(*dst), size_bytes}); });
}

compute_error* copy_to_host(uint64_t stream, const compute_plugin_operand* src, void* dst, int64_t size_bytes) {
  return guard([&] { stream_of(stream)->copy({address(*src), dst, size_bytes}); });
}

compute_error* copy(uint64_t stream, const compute_plugin_operand* src, const compute_plugin_operand* dst, int64_t size_bytes) {
  return guard([&] { stream_of(stream)->copy({address(*src), address(*dst), size_bytes}); });
}

compute_error* fill(uint64_t stream, const compute_plugin_operand* dst, int64_t size_bytes, const void* pattern,
                    int32_t pattern_size) {
  return guard([&] {
    FillWork work{address(*dst), size_bytes, pattern_size, {}};
    std::memcpy(work.pattern, pattern, static_cast<size_t>(pattern_size));
    stream_of(stream)->fill(work);
  });
}

compute_error* op_query(uint64_t, const compute_plugin_op* op, compute_plugin_query_info* out_info, compute_plugin_refuse refuse,
                        void* context) {
  out_info->supported = 0;
  if (COMPUTE_PLUGIN_HAS(out_info, workspace_bytes)) out_info->workspace_bytes = -1;
  return guard([&] {
    require_understood(out_info, "the answer");
    Refusal refusal{};
    if (find_primitive(Op(op), &refusal) != nullptr) {
      out_info->supported = 1;
      return;
    }
    compute_plugin_refusal shown{};
    shown.struct_size = sizeof shown;
    shown.struct_type = COMPUTE_PLUGIN_STRUCT_REFUSAL;
    shown.reason = refusal.reason;
    shown.argument = refusal.argument;
    shown.text = borrow(refusal.text);
    shown.hint = borrow(refusal.hint);
    if (refuse != nullptr) refuse(context, &shown);
  });
}

compute_error* op_prepare(uint64_t, const compute_plugin_op* op, uint64_t* out_plan, compute_plugin_plan_info* out_info) {
  *out_plan = 0;
  return guard([&] {
    require_understood(out_info, "the plan's answer");
    std::unique_ptr<Plan> plan = prepare(Op(op));
    if (out_info != nullptr) {
      if (COMPUTE_PLUGIN_HAS(out_info, workspace_bytes)) out_info->workspace_bytes = plan->workspace_bytes;
      if (COMPUTE_PLUGIN_HAS(out_info, kernels_compiled)) out_info->kernels_compiled = 0;
      if (COMPUTE_PLUGIN_HAS(out_info, flags)) out_info->flags = 0;
      if (COMPUTE_PLUGIN_HAS(out_info, reports_faults)) out_info->reports_faults = plan->reports_faults;
    }
    *out_plan = handle_of(plan.release());
  });
}

compute_error* op_run(uint64_t plan, const compute_plugin_run* run) {
  return guard([&] {
    require_understood(run, "the run");
    if (run->struct_size >= sizeof *run) {
      stream_of(run->stream)->run(*plan_of(plan), *run);
    } else {
      compute_plugin_run full{};
      std::memcpy(static_cast<void*>(&full), run, run->struct_size);
      stream_of(full.stream)->run(*plan_of(plan), full);
    }
  });
}

void op_release(uint64_t, uint64_t plan) { plan_of(plan)->release(); }

constexpr compute_plugin_device_table device_table() {
  compute_plugin_device_table table{};
  table.table_size = sizeof table;
  table.caps = device_caps;
  table.close = device_close;
  table.memory_map = memory_map;
  table.memory_unmap = memory_unmap;
  table.stream_create = stream_create;
  table.stream_destroy = stream_destroy;
  table.stream_mark = stream_mark;
  table.stream_wait = stream_wait;
  table.stream_reached = stream_reached;
  table.stream_sync = stream_sync;
  table.copy_from_host = copy_from_host;
  table.copy_to_host = copy_to_host;
  table.copy = copy;
  table.fill = fill;
  table.op_query = op_query;
  table.op_prepare = op_prepare;
  table.op_run = op_run;
  table.op_release = op_release;
  return table;
}

constexpr compute_plugin_device_table kDeviceTable = device_table();

// ---- Plugin table ---------------------------------------------------------------------------------------------------

compute_error* enumerate(const compute_plugin_sink* sink) {
  return guard([&] {
    const ProcessorInfo processor = read_processor_info();
    std::vector<compute_plugin_property> properties;
    for (const auto& [name, value] : processor.properties) {
      compute_plugin_property property{};
      property.struct_size = sizeof property;
      property.struct_type = COMPUTE_PLUGIN_STRUCT_PROPERTY;
      property.name = borrow(name);
      property.value = borrow(value);
      properties.push_back(property);
    }
    const std::vector<EngineReport> engines = report_engines();
    std::string libraries;
    for (const EngineReport& engine : engines) {
      if (engine.state == 1) libraries += (libraries.empty() ? "" : "\n") + engine.name + ", " + engine.found;
    }
    compute_plugin_device_info info{};
    info.struct_size = sizeof info;
    info.struct_type = COMPUTE_PLUGIN_STRUCT_DEVICE_INFO;
    info.id = kDeviceId;
    info.description = borrow(processor.model);
    info.vendor = borrow(processor.vendor);
    info.driver_version = borrow(processor.kernel);
    info.pci_address = borrow("");
    info.uuid = borrow("");
    info.libraries = borrow(libraries);
    info.memory_bytes = processor.memory_bytes;
    info.kind = COMPUTE_DEVICE_KIND_CPU;
    info.platform_index = -1;
    info.property_count = static_cast<int32_t>(properties.size());
    info.properties = properties.data();
    info.dtypes = kDtypeLevels.data();
    info.dtype_count = static_cast<int32_t>(kDtypeLevels.size());
    info.unusable = borrow("");
    sink->device(sink->context, &info);

    for (const EngineReport& engine : engines) {
      compute_plugin_requirement requirement{};
      requirement.struct_size = sizeof requirement;
      requirement.struct_type = COMPUTE_PLUGIN_STRUCT_REQUIREMENT;
      requirement.name = borrow(engine.name);
      requirement.tried = borrow(engine.tried);
      requirement.found = borrow(engine.found);
      requirement.error = borrow(engine.error);
      requirement.effect = borrow(engine.effect);
      requirement.remedy = borrow(engine.remedy);
      requirement.required = 0;
      requirement.state = engine.state;
      sink->requirement(sink->context, &requirement);
    }
  });
}

compute_error* device_open(uint64_t id, const compute_plugin_device_options* options, uint64_t* out_device,
                           const compute_plugin_device_table** out_table) {
  *out_device = 0;
  *out_table = nullptr;
  return guard([&] {
    require_understood(options, "the device's options");
    if (id != kDeviceId) throw Error(COMPUTE_ERROR_NOT_FOUND, "the cpu plugin has no device " + std::to_string(id));
    threads_open();
    *out_device = handle_of(new Device);
    *out_table = &kDeviceTable;
  });
}

int32_t on_fork_child() {
  threads_forked();
  Device::forked();
  return 1;
}

void on_exit(int32_t) { threads_ending(); }

constexpr compute_plugin_table plugin_table() {
  compute_plugin_table table{};
  table.table_size = sizeof table;
  table.enumerate = enumerate;
  table.device_open = device_open;
  table.on_fork_child = on_fork_child;
  table.on_exit = on_exit;
  return table;
}

constexpr compute_plugin_table kPluginTable = plugin_table();

}  // namespace
}  // namespace compute::cpu

extern "C" {

COMPUTE_PLUGIN_EXPORT const compute_plugin_manifest* compute_plugin_query(void) {
  static const compute_plugin_manifest manifest = compute::common::make_manifest("cpu", COMPUTE_PLUGIN_VERSION);
  return &manifest;
}

COMPUTE_PLUGIN_EXPORT compute_error* compute_plugin_open(uint32_t interface_version, const compute_plugin_host* host,
                                                         const compute_plugin_table** out_table) {
  return compute::common::open_plugin("cpu", interface_version, host, compute::cpu::kPluginTable, out_table, [] {
    compute::cpu::choose_isa();
    compute::cpu::open_engines();
  });
}

}  // extern "C"
