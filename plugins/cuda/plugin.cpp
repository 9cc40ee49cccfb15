// SPDX-License-Identifier: Apache-2.0
// The two exported functions and the tables behind them.
#include <compute/plugin.h>

#include <array>
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "plugins/common/entry.hpp"
#include "plugins/common/host.hpp"
#include "plugins/common/op.hpp"
#include "plugins/common/understood.hpp"
#include "plugins/cuda/copy.hpp"
#include "plugins/cuda/device.hpp"
#include "plugins/cuda/graph.hpp"
#include "plugins/cuda/plan.hpp"
#include "plugins/cuda/stream.hpp"
#include "plugins/cuda/user_kernel.hpp"

#ifndef COMPUTE_PLUGIN_VERSION
#define COMPUTE_PLUGIN_VERSION "0.0.0"
#endif

namespace compute::cuda {
namespace {

using common::borrow;
using common::guard;
using common::require_understood;

template <class T>
T& object(uint64_t handle) {
  return *reinterpret_cast<T*>(static_cast<uintptr_t>(handle));
}

template <class T>
uint64_t handle_of(T* object) {
  return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(object));
}

// ---- Devices and memory ---------------------------------------------------------------------------------------------

const compute_plugin_caps* device_caps(uint64_t device) { return &object<Device>(device).caps(); }

void device_close(uint64_t device) { delete &object<Device>(device); }

compute_error* memory_allocate(uint64_t device, const compute_plugin_allocation* request, uint64_t* out_buffer) {
  *out_buffer = 0;
  return guard([&] {
    require_understood(request, "the allocation");
    *out_buffer = object<Device>(device).allocate(request->heap, request->size_bytes);
  });
}

void memory_free(uint64_t device, int32_t heap, uint64_t buffer) {
  common::host().error_free(guard([&] { object<Device>(device).free(heap, buffer); }));
}

compute_error* memory_info(uint64_t device, int64_t* out_free, int64_t* out_total) {
  *out_free = *out_total = 0;
  return guard([&] {
    const Current current = object<Device>(device).current();
    size_t free = 0, total = 0;
    check(cu.mem_get_info(&free, &total), "asking for free memory");
    *out_free = static_cast<int64_t>(free);
    *out_total = static_cast<int64_t>(total);
  });
}

compute_error* memory_map(uint64_t, int32_t heap, uint64_t buffer, int64_t offset_bytes, int64_t, int32_t, void** out_data) {
  *out_data = nullptr;
  return guard([&] {
    if (heap != 1) throw Error(COMPUTE_ERROR_UNSUPPORTED, "the host does not see device memory");
    *out_data = reinterpret_cast<void*>(static_cast<uintptr_t>(buffer + static_cast<uint64_t>(offset_bytes)));
  });
}

void memory_unmap(uint64_t, int32_t, uint64_t, void*) {}

compute_error* memory_import(uint64_t device, const compute_plugin_import* import, uint64_t* out_buffer) {
  *out_buffer = 0;
  return guard([&] {
    require_understood(import, "the import");
    *out_buffer = object<Device>(device).import(*import);
  });
}

// ---- Streams --------------------------------------------------------------------------------------------------------

compute_error* stream_create(uint64_t device, const compute_plugin_stream_options* options, uint64_t* out_stream) {
  *out_stream = 0;
  return guard([&] {
    require_understood(options, "the stream's options");
    const int32_t priority = options != nullptr && COMPUTE_PLUGIN_HAS(options, priority) ? options->priority : 0;
    *out_stream = handle_of(new Stream(object<Device>(device), priority));
  });
}

void stream_destroy(uint64_t stream) { delete &object<Stream>(stream); }

// Runs `f` with a stream that has not failed and with its device's context.
template <class F>
compute_error* submit(uint64_t handle, const F& f) noexcept {
  return guard([&] {
    Stream& stream = object<Stream>(handle);
    stream.require_good();
    const Current current = stream.device().current();
    f(stream);
  });
}

compute_error* stream_mark(uint64_t stream, uint64_t number, uint32_t flags) {
  return submit(stream, [&](Stream& s) {
    common::require_known_flags(flags, "the mark");
    s.mark(number);
  });
}

compute_error* stream_wait(uint64_t stream, uint64_t other, uint64_t number) {
  return submit(stream, [&](Stream& s) { s.wait(object<Stream>(other), number); });
}

compute_error* stream_reached(uint64_t stream, uint64_t* out_reached) {
  *out_reached = 0;
  compute_error* failure = nullptr;
  compute_error* error = guard([&] { *out_reached = object<Stream>(stream).reached(&failure); });
  return error != nullptr ? error : failure;
}

compute_error* stream_sync(uint64_t stream, uint64_t number, int64_t timeout_ns, uint64_t* out_reached) {
  *out_reached = 0;
  compute_error* failure = nullptr;
  compute_error* error = guard([&] { *out_reached = object<Stream>(stream).sync(number, timeout_ns, &failure); });
  return error != nullptr ? error : failure;
}

compute_error* copy_from_host(uint64_t stream, const void* src, const compute_plugin_operand* dst, int64_t size_bytes) {
  return submit(stream, [&](Stream& s) { cuda::copy_from_host(s, src, address(*dst), size_bytes); });
}

compute_error* copy_to_host(uint64_t stream, const compute_plugin_operand* src, void* dst, int64_t size_bytes) {
  return submit(stream, [&](Stream& s) { cuda::copy_to_host(s, address(*src), dst, size_bytes); });
}

compute_error* copy(uint64_t stream, const compute_plugin_operand* src, const compute_plugin_operand* dst, int64_t size_bytes) {
  return submit(stream, [&](Stream& s) { cuda::copy(s, address(*src), address(*dst), size_bytes); });
}

compute_error* fill(uint64_t stream, const compute_plugin_operand* dst, int64_t size_bytes, const void* pattern, int32_t pattern_size) {
  return submit(stream, [&](Stream& s) { cuda::fill(s, address(*dst), size_bytes, pattern, pattern_size); });
}

compute_error* copy_peer(uint64_t stream, uint64_t src_device, const compute_plugin_operand* src,
                         const compute_plugin_operand* dst, int64_t size_bytes) {
  return submit(stream, [&](Stream& s) {
    cuda::copy_peer(s, object<Device>(src_device), address(*src), address(*dst), size_bytes);
  });
}

// ---- Ops ------------------------------------------------------------------------------------------------------------

compute_error* op_query(uint64_t device, const compute_plugin_op* op, compute_plugin_query_info* out_info,
                        compute_plugin_refuse refuse_to, void* context) {
  out_info->supported = 0;
  if (COMPUTE_PLUGIN_HAS(out_info, workspace_bytes)) out_info->workspace_bytes = -1;
  return guard([&] {
    require_understood(out_info, "the answer");
    Device& self = object<Device>(device);
    const Current current = self.current();
    const std::optional<common::Refusal> refusal = refuse(self, common::Op(op));
    out_info->supported = refusal ? 0 : 1;
    if (!refusal || refuse_to == nullptr) return;
    compute_plugin_refusal shown{};
    shown.struct_size = sizeof shown;
    shown.struct_type = COMPUTE_PLUGIN_STRUCT_REFUSAL;
    shown.reason = refusal->reason;
    shown.argument = refusal->argument;
    shown.text = borrow(refusal->text);
    shown.hint = borrow(refusal->hint);
    refuse_to(context, &shown);
  });
}

compute_error* op_prepare(uint64_t device, const compute_plugin_op* op, uint64_t* out_plan, compute_plugin_plan_info* out_info) {
  *out_plan = 0;
  return guard([&] {
    require_understood(out_info, "the plan's answer");
    Device& self = object<Device>(device);
    const Current current = self.current();
    std::unique_ptr<Plan> plan = prepare(self, common::Op(op));
    if (out_info != nullptr) {
      if (COMPUTE_PLUGIN_HAS(out_info, workspace_bytes)) out_info->workspace_bytes = plan->workspace_bytes;
      if (COMPUTE_PLUGIN_HAS(out_info, kernels_compiled)) out_info->kernels_compiled = plan->kernels_compiled;
      if (COMPUTE_PLUGIN_HAS(out_info, flags)) out_info->flags = 0;
      if (COMPUTE_PLUGIN_HAS(out_info, reports_faults)) out_info->reports_faults = plan->reports_faults ? 1 : 0;
    }
    *out_plan = handle_of(plan.release());
  });
}

compute_error* op_run(uint64_t plan, const compute_plugin_run* run) {
  if (run->struct_size < sizeof *run) [[unlikely]] {
    compute_plugin_run full{};
    std::memcpy(static_cast<void*>(&full), run, run->struct_size);
    full.struct_size = sizeof full;
    return op_run(plan, &full);
  }
  return submit(run->stream, [&](Stream& s) {
    require_understood(run, "the run");
    object<const Plan>(plan).run(*run, s);
  });
}

void op_release(uint64_t, uint64_t plan) { delete &object<Plan>(plan); }

// ---- User kernels ---------------------------------------------------------------------------------------------------

compute_error* kernel_compile(uint64_t device, const compute_plugin_kernel_source* source, uint64_t* out_kernel,
                              compute_plugin_kernel_info* out_info) {
  *out_kernel = 0;
  return guard([&] {
    require_understood(source, "the kernel's source");
    require_understood(out_info, "the kernel's answer");
    Device& self = object<Device>(device);
    const Current current = self.current();
    auto kernel = std::make_unique<UserKernel>(self, *source);
    if (out_info != nullptr) {
      // Local memory is no parameter in CUDA, so core cannot count for us: launch() does.
      if (COMPUTE_PLUGIN_HAS(out_info, argument_count)) out_info->argument_count = -1;
      if (COMPUTE_PLUGIN_HAS(out_info, max_group_size)) out_info->max_group_size = kernel->max_group_size();
    }
    *out_kernel = handle_of(kernel.release());
  });
}

compute_error* kernel_launch(uint64_t kernel, const compute_plugin_launch* launch) {
  return submit(launch->stream, [&](Stream&) {
    require_understood(launch, "the launch");
    require_understood(launch->arguments, launch->argument_count, "an argument of the launch");
    object<UserKernel>(kernel).launch(*launch);
  });
}

void kernel_release(uint64_t, uint64_t kernel) { delete &object<UserKernel>(kernel); }

const compute_plugin_kernel_table* device_kernels(uint64_t) {
  static constexpr compute_plugin_kernel_table kTable = {sizeof(compute_plugin_kernel_table), kernel_compile, kernel_launch,
                                                         kernel_release};
  return &kTable;
}

constexpr compute_plugin_device_table device_table() {
  compute_plugin_device_table table{};
  table.table_size = sizeof table;
  table.caps = device_caps;
  table.close = device_close;
  table.memory_allocate = memory_allocate;
  table.memory_free = memory_free;
  table.memory_info = memory_info;
  table.memory_map = memory_map;
  table.memory_unmap = memory_unmap;
  table.memory_import = memory_import;
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
  table.copy_peer = copy_peer;
  table.op_query = op_query;
  table.op_prepare = op_prepare;
  table.op_run = op_run;
  table.op_release = op_release;
  table.kernels = device_kernels;
  return table;
}

constexpr compute_plugin_device_table kDeviceTable = device_table();

// ---- Extensions -----------------------------------------------------------------------------------------------------

compute_error* graph_create(uint64_t device, const compute_plugin_graph_node* nodes, int64_t node_count, int32_t slot_count,
                            uint64_t* out_graph) {
  *out_graph = 0;
  return guard([&] {
    for (int64_t i = 0; i < node_count; ++i) {
      const compute_plugin_graph_node& node = *common::at_step(nodes, i);
      require_understood(&node, "a node of the graph");
      require_understood(node.run, "a run of the graph");
    }
    Device& self = object<Device>(device);
    const Current current = self.current();
    *out_graph = handle_of(new Graph(self, nodes, node_count, slot_count));
  });
}

compute_error* graph_run(uint64_t graph, uint64_t stream, const compute_plugin_scalar* slots) {
  return submit(stream, [&](Stream& s) { object<Graph>(graph).run(s, slots); });
}

void graph_release(uint64_t device, uint64_t graph) {
  common::host().error_free(guard([&] {
    const Current current = object<Device>(device).current();
    delete &object<Graph>(graph);
  }));
}

compute_error* native_device(uint64_t device, uint64_t* out_handle) {
  *out_handle = handle_of(object<Device>(device).context());
  return nullptr;
}

compute_error* native_stream(uint64_t stream, uint64_t* out_handle) {
  *out_handle = handle_of(object<Stream>(stream).handle());
  return nullptr;
}

compute_error* native_buffer(uint64_t, uint64_t buffer, uint64_t* out_handle) {
  *out_handle = buffer;
  return nullptr;
}

compute_error* native_dlpack_device(uint64_t device, int32_t* out_type, int32_t* out_id) {
  constexpr int32_t kDlCuda = 2;
  *out_type = kDlCuda;
  *out_id = object<Device>(device).info().ordinal;
  return nullptr;
}

const void* get_extension(uint64_t, const char* name) {
  static constexpr compute_plugin_graph_table kGraphs = {sizeof(compute_plugin_graph_table), graph_create, graph_run, graph_release};
  static constexpr compute_plugin_native_table kNative = {sizeof(compute_plugin_native_table), native_device, native_stream,
                                                          native_buffer, nullptr, native_dlpack_device};
  if (std::strcmp(name, COMPUTE_EXT_GRAPH_V1) == 0) return &kGraphs;
  if (std::strcmp(name, COMPUTE_EXT_NATIVE_V1) == 0) return &kNative;
  return nullptr;
}

// ---- Plugin table ---------------------------------------------------------------------------------------------------

// The id of a device is its place here, from 1. Devices do not come and go while a process runs.
const std::vector<DeviceInfo>& devices() {
  static const std::vector<DeviceInfo>& list = *new std::vector<DeviceInfo>(read_devices());
  return list;
}

void emit_device(const compute_plugin_sink& sink, const DeviceInfo& device, uint64_t id) {
  std::vector<compute_plugin_property> properties;
  for (const auto& [name, value] : device.properties) {
    compute_plugin_property property{};
    property.struct_size = sizeof property;
    property.struct_type = COMPUTE_PLUGIN_STRUCT_PROPERTY;
    property.name = borrow(name);
    property.value = borrow(value);
    properties.push_back(property);
  }
  const std::string libraries = libraries_in_use();
  const std::string version = driver_version();
  compute_plugin_device_info info{};
  info.struct_size = sizeof info;
  info.struct_type = COMPUTE_PLUGIN_STRUCT_DEVICE_INFO;
  info.id = id;
  info.description = borrow(device.name);
  info.vendor = borrow("NVIDIA");
  info.driver_version = borrow(version);
  info.pci_address = borrow(device.pci_address);
  info.uuid = borrow(device.uuid);
  info.libraries = borrow(libraries);
  info.memory_bytes = device.memory_bytes;
  info.kind = device.is_integrated ? COMPUTE_DEVICE_KIND_INTEGRATED_GPU : COMPUTE_DEVICE_KIND_DISCRETE_GPU;
  info.score = device.multiprocessors;
  info.platform_index = -1;
  info.property_count = static_cast<int32_t>(properties.size());
  info.properties = properties.data();
  std::array<uint32_t, COMPUTE_DTYPE_COMPLEX128 + 1> levels{};
  info.dtypes = levels.data();
  info.dtype_count = static_cast<int32_t>(levels.size());
  for (compute_dtype dtype = COMPUTE_DTYPE_BOOL; dtype <= COMPUTE_DTYPE_COMPLEX128; ++dtype) {
    levels[static_cast<size_t>(dtype)] = COMPUTE_DTYPE_STORAGE | COMPUTE_DTYPE_CONVERT | COMPUTE_DTYPE_ARITHMETIC | COMPUTE_DTYPE_MATMUL;
  }
  info.unusable = borrow(device.unusable);
  sink.device(sink.context, &info);
}

void emit_requirement(const compute_plugin_sink& sink, const LibraryReport& report) {
  compute_plugin_requirement requirement{};
  requirement.struct_size = sizeof requirement;
  requirement.struct_type = COMPUTE_PLUGIN_STRUCT_REQUIREMENT;
  requirement.name = borrow(report.name);
  requirement.tried = borrow(report.tried);
  requirement.found = borrow(report.found);
  requirement.error = borrow(report.error);
  requirement.effect = borrow(report.effect);
  requirement.remedy = borrow(report.state == 1 ? std::string_view() : std::string_view(report.remedy));
  requirement.required = report.required ? 1 : 0;
  requirement.state = report.state;
  sink.requirement(sink.context, &requirement);
}

compute_error* enumerate(const compute_plugin_sink* sink) {
  return guard([&] {
    if (open_driver()) {
      for (size_t i = 0; i < devices().size(); ++i) emit_device(*sink, devices()[i], i + 1);
    }
    for (const LibraryReport& report : {driver_report(), nvrtc_report(), cublas_lt_report()}) emit_requirement(*sink, report);
  });
}

compute_error* device_open(uint64_t id, const compute_plugin_device_options* options, uint64_t* out_device,
                           const compute_plugin_device_table** out_table) {
  *out_device = 0;
  *out_table = nullptr;
  return guard([&] {
    require_understood(options, "the device's options");
    if (!open_driver()) throw Error(COMPUTE_ERROR_NOT_FOUND, driver_report().error);
    if (id < 1 || id > devices().size()) {
      throw Error(COMPUTE_ERROR_NOT_FOUND, "the cuda plugin has no device " + std::to_string(id));
    }
    const DeviceInfo& info = devices()[id - 1];
    if (!info.unusable.empty()) throw Error(COMPUTE_ERROR_UNSUPPORTED, info.name + ": " + info.unusable);
    const uint64_t host_device = options != nullptr && COMPUTE_PLUGIN_HAS(options, host_device) ? options->host_device : 0;
    *out_device = handle_of(new Device(info, host_device));
    *out_table = &kDeviceTable;
  });
}

constexpr compute_plugin_table plugin_table() {
  compute_plugin_table table{};
  table.table_size = sizeof table;
  table.enumerate = enumerate;
  table.device_open = device_open;
  table.get_extension = get_extension;
  return table;
}

constexpr compute_plugin_table kPluginTable = plugin_table();

}  // namespace
}  // namespace compute::cuda

extern "C" {

COMPUTE_PLUGIN_EXPORT const compute_plugin_manifest* compute_plugin_query(void) {
  static const compute_plugin_manifest manifest = compute::common::make_manifest("cuda", COMPUTE_PLUGIN_VERSION);
  return &manifest;
}

COMPUTE_PLUGIN_EXPORT compute_error* compute_plugin_open(uint32_t interface_version, const compute_plugin_host* host,
                                                         const compute_plugin_table** out_table) {
  return compute::common::open_plugin("cuda", interface_version, host, compute::cuda::kPluginTable, out_table, [] {});
}

}  // extern "C"
