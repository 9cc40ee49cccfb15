// SPDX-License-Identifier: Apache-2.0
// The two exported functions and the tables behind them.
#include <compute/plugin.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plugins/common/op/understood.hpp"
#include "plugins/common/table/emit.hpp"
#include "plugins/common/table/entry.hpp"
#include "plugins/common/table/slots.hpp"
#include "plugins/cpu/base/host.hpp"
#include "plugins/cpu/contract/onednn_primitives.hpp"
#include "plugins/cpu/device.hpp"
#include "plugins/cpu/isa/isa.hpp"
#include "plugins/cpu/linalg/lapack.hpp"
#include "plugins/cpu/primitives.hpp"
#include "plugins/cpu/stream.hpp"
#include "plugins/cpu/threads/spin.hpp"
#include "plugins/cpu/threads/threads.hpp"
#include "plugins/cpu/user_kernels/user_kernel.hpp"

#ifndef COMPUTE_PLUGIN_VERSION
#define COMPUTE_PLUGIN_VERSION "0.0.0"
#endif

namespace compute::cpu {
namespace {

using common::handle_of;
using common::object;
using common::require_understood;

constexpr uint64_t kDeviceId = 1;

// ---- Device table ---------------------------------------------------------------------------------------------------

const compute_plugin_caps* device_caps(uint64_t) {
  static const compute_plugin_heap heap = [] {
    compute_plugin_heap h{};
    h.struct_size = sizeof h;
    h.struct_type = COMPUTE_PLUGIN_STRUCT_HEAP;
    h.flags = COMPUTE_PLUGIN_HEAP_HOST_VISIBLE | COMPUTE_PLUGIN_HEAP_HOST_SPACE;
    h.suballocation = COMPUTE_PLUGIN_SUBALLOCATE_OFFSET;
    h.size_bytes = read_processor_info().memory_bytes;
    h.max_allocation_bytes = INT64_MAX;
    h.offset_alignment = 64;
    h.base_alignment = 64;
    h.role = COMPUTE_PLUGIN_HEAP_ROLE_SHARED;
    return h;
  }();
  static const compute_plugin_caps caps = [] {
    compute_plugin_caps c{};
    c.struct_size = sizeof c;
    c.struct_type = COMPUTE_PLUGIN_STRUCT_CAPS;
    c.flags = COMPUTE_PLUGIN_DEVICE_IMMEDIATE | COMPUTE_PLUGIN_DEVICE_IS_HOST;
    c.heap_count = 1;
    c.heaps = &heap;
    return c;
  }();
  return &caps;
}

void device_close(uint64_t device) { delete &object<Device>(device); }

// The heap is host memory: its buffers are addresses already.
compute_error* memory_map(uint64_t, const compute_plugin_mapping* mapping, void** out_data) {
  *out_data = nullptr;
  return guard([&] {
    require_understood(mapping, "the mapping");
    *out_data = address({mapping->buffer, mapping->offset_bytes});
  });
}

void memory_unmap(uint64_t, const compute_plugin_mapping*, void*) {}

compute_error* stream_create(uint64_t device, const compute_plugin_stream_options* options, uint64_t* out_stream) {
  *out_stream = 0;
  return guard([&] {
    require_understood(options, "the stream's options");
    const uint32_t flags = options != nullptr && COMPUTE_PLUGIN_HAS(options, flags) ? options->flags : 0;
    *out_stream = handle_of(object<Device>(device).create_stream(flags));
  });
}

void stream_destroy(uint64_t stream) { object<Stream>(stream).device()->destroy_stream(&object<Stream>(stream)); }

compute_error* stream_mark(uint64_t stream, uint64_t number, uint32_t flags) {
  return guard([&] {
    common::require_known_flags(flags, "the mark", COMPUTE_PLUGIN_MARK_TIMED);
    object<Stream>(stream).mark(number, (flags & COMPUTE_PLUGIN_MARK_TIMED) != 0);
  });
}

compute_error* mark_time(uint64_t stream, uint64_t number, int64_t* out_ns) {
  if (out_ns != nullptr) *out_ns = 0;
  return guard([&] {
    if (!object<Stream>(stream).take_time(number, out_ns))
      throw Error(COMPUTE_ERROR_INVALID_ARGUMENT, "mark " + std::to_string(number) + " was recorded without a time");
  });
}

// Marks are timed by the host's clock.
compute_error* device_clock(uint64_t, int64_t* out_device_ns, int64_t* out_host_ns, int64_t*) {
  *out_device_ns = *out_host_ns = now_ns();
  return nullptr;
}

compute_error* stream_wait(uint64_t stream, uint64_t other, uint64_t number, uint32_t flags) {
  return guard([&] {
    common::require_known_flags(flags, "the wait");
    object<Stream>(stream).wait(&object<Stream>(other), number);
  });
}

compute_error* stream_wait_host(uint64_t stream, uint64_t* out_wait) {
  *out_wait = 0;
  return guard([&] { *out_wait = handle_of(object<Stream>(stream).wait_for_host()); });
}

void signal_host_wait(uint64_t, uint64_t wait) { Stream::end_host_wait(&object<HostWait>(wait)); }

compute_error* stream_cancel(uint64_t stream) {
  object<Stream>(stream).cancel();
  return nullptr;
}

compute_error* stream_reached(uint64_t stream, uint64_t* out_reached) {
  compute_error* error = nullptr;
  *out_reached = object<Stream>(stream).reached(&error);
  return error;
}

compute_error* stream_sync(uint64_t stream, uint64_t number, int64_t timeout_ns, uint64_t* out_reached) {
  compute_error* error = nullptr;
  *out_reached = object<Stream>(stream).sync(number, timeout_ns, &error);
  return error;
}

compute_error* copy_from_host(uint64_t stream, const void* src, const compute_plugin_operand*,
                              const compute_plugin_operand* dst, int64_t size_bytes, uint32_t flags) {
  return guard([&] {
    common::require_known_flags(flags, "the copy");
    object<Stream>(stream).copy({src, address(*dst), size_bytes});
  });
}

compute_error* copy_to_host(uint64_t stream, const compute_plugin_operand* src, void* dst,
                            const compute_plugin_operand*, int64_t size_bytes, uint32_t flags) {
  return guard([&] {
    common::require_known_flags(flags, "the copy");
    object<Stream>(stream).copy({address(*src), dst, size_bytes});
  });
}

compute_error* fill(uint64_t stream, const compute_plugin_operand* dst, int64_t size_bytes, const void* pattern,
                    int32_t pattern_size, uint32_t flags) {
  return guard([&] {
    common::require_known_flags(flags, "the fill");
    FillWork work{address(*dst), size_bytes, pattern_size, {}};
    std::memcpy(work.pattern, pattern, static_cast<size_t>(pattern_size));
    object<Stream>(stream).fill(work);
  });
}

compute_error* op_query(uint64_t, const compute_plugin_op* op, compute_plugin_query_info* out_info,
                        compute_plugin_refuse refuse, void* context) {
  out_info->supported = 0;
  if (COMPUTE_PLUGIN_HAS(out_info, workspace_bytes)) out_info->workspace_bytes = -1;
  return guard([&] {
    require_understood(out_info, "the result");
    common::answer_query(cpu::refuse(Op(op)), out_info, {refuse, context});
  });
}

compute_error* op_prepare(uint64_t, const compute_plugin_op* op, uint64_t* out_plan, compute_plugin_plan_info* out_info,
                          compute_plugin_refuse refuse, void* context) {
  *out_plan = 0;
  return guard([&] {
    require_understood(out_info, "the plan's result");
    *out_plan = handle_of(common::answer_prepare<Plan>(prepare(Op(op)), out_info, {refuse, context}));
  });
}

compute_error* plan_run(uint64_t plan, const compute_plugin_run* run) {
  if (run->struct_size < sizeof *run) [[unlikely]] {
    const compute_plugin_run full = common::whole(*run);
    return plan_run(plan, &full);
  }
  return guard([&] {
    require_understood(run, "the run");
    object<Stream>(run->stream).run(object<const Plan>(plan), *run);
  });
}

void plan_release(uint64_t, uint64_t plan) { object<const Plan>(plan).release(); }

struct ForKernels {
  using Device = cpu::Device;
  using Stream = cpu::Stream;
  using Kernel = UserKernel;

  static int entering(Device&) { return 0; }
  static int submitting(Stream&) { return 0; }
  static std::unique_ptr<Kernel> compile(Device&, const compute_plugin_kernel_source& source) {
    return std::make_unique<Kernel>(source);
  }
  static common::KernelAnswer answer_of(const Kernel& kernel) {
    return {kernel.argument_count(), kernel.max_group_size()};
  }
  static void launch(const Kernel& kernel, Stream& stream, const compute_plugin_launch& launch) {
    struct Release {
      void operator()(const Plan* plan) const { plan->release(); }
    };
    const std::unique_ptr<const Plan, Release> plan(kernel.make_launch(launch));
    compute_plugin_run run{};
    run.struct_size = sizeof run;
    stream.run(*plan, run);
  }
};

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
  table.stream_wait_host = stream_wait_host;
  table.signal_host_wait = signal_host_wait;
  table.stream_cancel = stream_cancel;
  table.stream_reached = stream_reached;
  table.stream_sync = stream_sync;
  table.mark_time = mark_time;
  table.clock = device_clock;
  table.copy_from_host = copy_from_host;
  table.copy_to_host = copy_to_host;
  table.fill = fill;
  table.op_query = op_query;
  table.op_prepare = op_prepare;
  table.plan_run = plan_run;
  table.plan_release = plan_release;
  table.kernels = common::KernelSlots<ForKernels>::kernels;
  return table;
}

constexpr compute_plugin_device_table kDeviceTable = device_table();

// ---- Plugin table ---------------------------------------------------------------------------------------------------

compute_error* enumerate(const compute_plugin_sink* sink) {
  return guard([&] {
    const ProcessorInfo processor = read_processor_info();
    const std::vector<compute_plugin_property> properties = common::properties_of(processor.properties);
    const auto levels = common::dtype_levels(true);
    const common::Requirement onednn = report_onednn();
    const common::Requirement openblas = report_lapack();
    std::string libraries;
    for (const common::Requirement* library : {&onednn, &openblas}) {
      if (library->found.empty()) continue;
      libraries += (libraries.empty() ? "" : "; ") + library->name + ", " + library->found;
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
    info.property_count = static_cast<int32_t>(properties.size());
    info.properties = properties.data();
    info.dtypes = levels.data();
    info.dtype_count = static_cast<int32_t>(levels.size());
    info.unusable = borrow("");
    info.subnormals = COMPUTE_SUBNORMALS_KEPT;
    info.subgroup_size_min = info.subgroup_size_max = 1;
    info.local_memory_bytes = UserKernel::max_local_bytes();
    info.max_group_size = UserKernel::max_group_size();
    info.atomic_alignment = 1;
    sink->device(sink->context, &info);

    common::emit(*sink, onednn);
    common::emit(*sink, openblas);
    common::emit(*sink, report_compiler());
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

void on_exit() { threads_ending(); }

constexpr compute_plugin_table plugin_table() {
  compute_plugin_table table{};
  table.table_size = sizeof table;
  table.enumerate = enumerate;
  table.device_open = device_open;
  table.on_fork_child = on_fork_child;
  table.on_exit = on_exit;
  table.close = common::release_core;
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

COMPUTE_PLUGIN_EXPORT compute_error* compute_plugin_open(uint32_t interface_version, const compute_plugin_core* core,
                                                         const compute_plugin_table** out_table) {
  return compute::common::open_plugin("cpu", interface_version, core, compute::cpu::kPluginTable, out_table,
                                      [] { compute::cpu::choose_isa(); });
}

}  // extern "C"
