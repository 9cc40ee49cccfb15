// SPDX-License-Identifier: Apache-2.0
// The two exported functions and the tables behind them.
#include <compute/plugin.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugins/common/driver/polling.hpp"
#include "plugins/common/op/core.hpp"
#include "plugins/common/op/understood.hpp"
#include "plugins/common/table/emit.hpp"
#include "plugins/common/table/entry.hpp"
#include "plugins/common/table/native.hpp"
#include "plugins/common/table/slots.hpp"
#include "plugins/cuda/collective.hpp"
#include "plugins/cuda/copy.hpp"
#include "plugins/cuda/device.hpp"
#include "plugins/cuda/graph.hpp"
#include "plugins/cuda/plan.hpp"
#include "plugins/cuda/stream.hpp"
#include "plugins/cuda/telemetry.hpp"
#include "plugins/cuda/user_kernel.hpp"

#ifndef COMPUTE_PLUGIN_VERSION
#define COMPUTE_PLUGIN_VERSION "0.0.0"
#endif

namespace compute::cuda {
namespace {

using common::borrow;
using common::guard;
using common::handle_of;
using common::object;
using common::require_understood;

// How the slots that plugins fill alike come to this one's devices and streams.
struct Cuda {
  using Device = cuda::Device;
  using Stream = cuda::Stream;
  using Plan = cuda::Plan;
  using Kernel = UserKernel;

  static Current entering(const Device& device) { return device.current(); }
  static Current submitting(Stream& stream) {
    stream.require_good();
    return stream.device().current();
  }
  static std::optional<common::Refusal> refuse(Device& device, const common::Op& op) {
    return cuda::refuse(device, op);
  }
  static common::PlanOrRefusal<Plan> prepare(Device& device, const common::Op& op) { return cuda::prepare(device, op); }
  static std::unique_ptr<Kernel> compile(Device& device, const compute_plugin_kernel_source& source) {
    return std::make_unique<UserKernel>(device, source);
  }
  // Local memory is not a parameter in CUDA, so launch() counts the parameters, not core.
  static common::KernelAnswer answer_of(const Kernel& kernel) { return {-1, kernel.max_group_size()}; }
  static void launch(const Kernel& kernel, Stream&, const compute_plugin_launch& launch) { kernel.launch(launch); }
};

using Slots = common::Slots<Cuda>;

// ---- Devices and memory ---------------------------------------------------------------------------------------------

const compute_plugin_caps* device_caps(uint64_t device) { return &object<Device>(device).caps(); }

void device_close(uint64_t device) { delete &object<Device>(device); }

compute_error* memory_allocate(uint64_t device, const compute_plugin_allocation* request, uint64_t* out_buffer,
                               void** out_data) {
  *out_buffer = 0;
  return guard([&] {
    require_understood(request, "the allocation");
    *out_buffer = object<Device>(device).allocate(request->heap, request->size_bytes);
    if (request->heap == 1) *out_data = reinterpret_cast<void*>(static_cast<uintptr_t>(*out_buffer));
  });
}

void memory_free(uint64_t device, int32_t heap, uint64_t buffer) {
  common::core().error_free(guard([&] { object<Device>(device).free(heap, buffer); }));
}

compute_error* memory_info(uint64_t device, int32_t heap, int64_t* out_free, int64_t* out_total) {
  *out_free = *out_total = -1;
  if (heap != 0) return nullptr;  // what the system can lock is unknown
  return guard([&] {
    const Current current = object<Device>(device).current();
    size_t free = 0, total = 0;
    check(cu.mem_get_info(&free, &total), "querying free memory");
    *out_free = static_cast<int64_t>(free);
    *out_total = static_cast<int64_t>(total);
  });
}

compute_error* memory_map(uint64_t, const compute_plugin_mapping* mapping, void** out_data) {
  *out_data = nullptr;
  return guard([&] {
    require_understood(mapping, "the mapping");
    if (mapping->heap != 1) throw Error(COMPUTE_ERROR_UNSUPPORTED, "device memory is not accessible from the host");
    *out_data = reinterpret_cast<void*>(address({mapping->buffer, mapping->offset_bytes}));
  });
}

void memory_unmap(uint64_t, const compute_plugin_mapping*, void*) {}

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

compute_error* mark_time(uint64_t stream, uint64_t number, int64_t* out_ns) {
  if (out_ns != nullptr) *out_ns = 0;
  return guard([&] { object<Stream>(stream).take_time(number, out_ns); });
}

compute_error* device_clock(uint64_t device, int64_t* out_device_ns, int64_t* out_host_ns, int64_t*) {
  *out_device_ns = *out_host_ns = 0;
  return guard([&] { object<Device>(device).read_clock(out_device_ns, out_host_ns); });
}

compute_error* telemetry(uint64_t device, compute_plugin_telemetry* out_telemetry, compute_plugin_take_process take,
                         void* context) {
  return guard([&] {
    require_understood(out_telemetry, "the telemetry");
    const std::string& uuid = object<Device>(device).info().uuid;
    measure(uuid, *out_telemetry);
    compute_plugin_process shown{};
    shown.struct_size = sizeof shown;
    shown.struct_type = COMPUTE_PLUGIN_STRUCT_PROCESS;
    for (const ProcessOfDevice& process : processes_of(uuid)) {
      shown.process_id = process.id;
      shown.memory_bytes = process.bytes;
      take(context, &shown);
    }
  });
}

compute_error* copy_from_host(uint64_t stream, const void* src, const compute_plugin_operand*,
                              const compute_plugin_operand* dst, int64_t size_bytes, uint32_t flags) {
  return Slots::submit(stream, [&](Stream& s) {
    common::require_known_flags(flags, "the copy");
    cuda::copy_from_host(s, src, address(*dst), size_bytes);
  });
}

compute_error* copy_to_host(uint64_t stream, const compute_plugin_operand* src, void* dst,
                            const compute_plugin_operand*, int64_t size_bytes, uint32_t flags) {
  return Slots::submit(stream, [&](Stream& s) {
    common::require_known_flags(flags, "the copy");
    cuda::copy_to_host(s, address(*src), dst, size_bytes);
  });
}

compute_error* fill(uint64_t stream, const compute_plugin_operand* dst, int64_t size_bytes, const void* pattern,
                    int32_t pattern_size, uint32_t flags) {
  return Slots::submit(stream, [&](Stream& s) {
    common::require_known_flags(flags, "the fill");
    cuda::fill(s, address(*dst), size_bytes, pattern, pattern_size);
  });
}

compute_error* copy_peer(uint64_t stream, uint64_t src_device, const compute_plugin_operand* src,
                         const compute_plugin_operand* dst, int64_t size_bytes, uint32_t flags) {
  return Slots::submit(stream, [&](Stream& s) {
    common::require_known_flags(flags, "the copy");
    cuda::copy_peer(s, object<Device>(src_device), address(*src), address(*dst), size_bytes);
  });
}

// Libraries free the memory of their plans in the current context.
void plan_release(uint64_t device, uint64_t plan) {
  common::core().error_free(guard([&] {
    const Current current = object<Device>(device).current();
    delete &object<Plan>(plan);
  }));
}

// ---- The table ------------------------------------------------------------------------------------------------------

constexpr compute_plugin_device_table device_table() {
  compute_plugin_device_table table{};
  table.table_size = sizeof table;
  Slots::fill(table);
  table.caps = device_caps;
  table.close = device_close;
  table.memory_allocate = memory_allocate;
  table.memory_free = memory_free;
  table.memory_info = memory_info;
  table.memory_map = memory_map;
  table.memory_unmap = memory_unmap;
  table.memory_import = memory_import;
  table.stream_create = stream_create;
  table.mark_time = mark_time;
  table.clock = device_clock;
  table.telemetry = telemetry;
  table.copy_from_host = copy_from_host;
  table.copy_to_host = copy_to_host;
  table.fill = fill;
  table.copy_peer = copy_peer;
  table.plan_release = plan_release;
  return table;
}

constexpr compute_plugin_device_table kDeviceTable = device_table();

// ---- Extensions -----------------------------------------------------------------------------------------------------

compute_error* graph_create(uint64_t device, const compute_plugin_graph* graph, uint64_t* out_graph) {
  *out_graph = 0;
  return guard([&] {
    require_understood(graph, "the graph");
    for (int64_t i = 0; i < graph->node_count; ++i) {
      const compute_plugin_graph_node& node = *common::at_step(graph->nodes, i);
      require_understood(&node, "a node of the graph");
      require_understood(node.run, "a run of the graph");
    }
    Device& self = object<Device>(device);
    const Current current = self.current();
    *out_graph = handle_of(new Graph(self, *graph));
  });
}

compute_error* graph_run(uint64_t graph, const compute_plugin_graph_run* run) {
  return Slots::submit(run->stream, [&](Stream& s) {
    require_understood(run, "the run of a graph");
    object<Graph>(graph).run(s, run->slots);
  });
}

void graph_release(uint64_t device, uint64_t graph) {
  common::core().error_free(guard([&] {
    const Current current = object<Device>(device).current();
    delete &object<Graph>(graph);
  }));
}

// `stream` and `buffer` are 0 for a device.
compute_error* native_handle(const Device& device, uint32_t kind, void* out_handle, uint64_t stream, uint64_t buffer) {
  return guard([&] {
    if (kind == COMPUTE_NATIVE_CUDA) {
      compute_native_cuda handle{};
      handle.device = device.info().handle;
      handle.context = handle_of(device.context());
      handle.stream = stream;
      handle.address = buffer;
      common::give_handle(out_handle, handle);
    } else if (kind == COMPUTE_NATIVE_DLPACK) {
      compute_native_dlpack handle{};
      handle.device_type = kDlCuda;
      handle.device_id = device.info().ordinal;
      handle.data = buffer;
      handle.stream = stream;
      common::give_handle(out_handle, handle);
    } else {
      common::refuse_handle("cuda", kind);
    }
  });
}

compute_error* native_device(uint64_t device, uint32_t kind, void* out_handle) {
  return native_handle(object<Device>(device), kind, out_handle, 0, 0);
}

compute_error* native_stream(uint64_t stream, uint32_t kind, void* out_handle) {
  const Stream& self = object<Stream>(stream);
  return native_handle(self.device(), kind, out_handle, handle_of(self.handle()), 0);
}

compute_error* native_buffer(uint64_t device, const compute_plugin_operand* place, uint32_t kind, void* out_handle) {
  return native_handle(object<Device>(device), kind, out_handle, 0, address(*place));
}

compute_error* collective_make_id(uint64_t, void* id, int64_t capacity, int64_t* out_size) {
  *out_size = 0;
  return guard([&] { *out_size = make_group_id(id, capacity); });
}

compute_error* collective_join(uint64_t device, const compute_plugin_group_options* options, uint64_t* out_group) {
  *out_group = 0;
  return guard([&] {
    require_understood(options, "the group's options");
    *out_group = handle_of(new Group(object<Device>(device), *options));
  });
}

int32_t collective_supports(uint64_t, const compute_plugin_collective* collective) {
  return supports_collective(*collective) ? 1 : 0;
}

compute_error* collective_run(uint64_t group, uint64_t stream, const compute_plugin_collective* list, int32_t count) {
  return Slots::submit(stream, [&](Stream& s) {
    require_understood(list, count, "a collective");
    object<Group>(group).run(s, list, count);
  });
}

compute_error* collective_failure(uint64_t group) {
  return guard([&] { object<Group>(group).require_success(); });
}

void collective_abort(uint64_t group) {
  common::core().error_free(guard([&] { object<Group>(group).abort(); }));
}

void collective_leave(uint64_t group) { delete &object<Group>(group); }

void collective_describe(uint64_t group, compute_string* out_text) {
  *out_text = borrow(object<Group>(group).description());
}

const void* get_extension(uint64_t, const char* name, int64_t name_size) {
  const std::string_view wanted(name, static_cast<size_t>(name_size));
  static constexpr compute_plugin_graph_table kGraphs = {sizeof(compute_plugin_graph_table), graph_create, graph_run,
                                                         graph_release};
  static constexpr compute_plugin_native_table kNative = {sizeof(compute_plugin_native_table), native_device,
                                                          native_stream, native_buffer};
  static constexpr compute_plugin_collective_table kCollectives = {sizeof(compute_plugin_collective_table),
                                                                   collective_make_id,
                                                                   collective_join,
                                                                   collective_supports,
                                                                   collective_run,
                                                                   collective_failure,
                                                                   collective_abort,
                                                                   collective_leave,
                                                                   collective_describe};
  if (wanted == COMPUTE_PLUGIN_EXT_COLLECTIVE_V1) return &kCollectives;
  if (wanted == COMPUTE_PLUGIN_EXT_GRAPH_V1) return &kGraphs;
  if (wanted == COMPUTE_PLUGIN_EXT_NATIVE_V1) return &kNative;
  return nullptr;
}

// ---- Plugin table ---------------------------------------------------------------------------------------------------

// The id of a device is its place here, from 1. Devices do not come and go while a process runs.
const std::vector<DeviceInfo>& devices() {
  static const std::vector<DeviceInfo>& list = *new std::vector<DeviceInfo>(read_devices());
  return list;
}

constexpr int64_t kKernelParameterBytes = 4096;  // on every device
constexpr int32_t kAtomicBytes = 2;

void emit_device(const compute_plugin_sink& sink, const DeviceInfo& device, uint64_t id) {
  const std::vector<compute_plugin_property> properties = common::properties_of(device.properties);
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
  info.property_count = static_cast<int32_t>(properties.size());
  info.properties = properties.data();
  const auto levels = common::dtype_levels(true);
  info.dtypes = levels.data();
  info.dtype_count = static_cast<int32_t>(levels.size());
  info.unusable = borrow(device.unusable);
  info.subnormals = COMPUTE_SUBNORMALS_KEPT;
  info.subgroup_size_min = info.subgroup_size_max = device.warp_size;
  info.local_memory_bytes = device.shared_bytes_per_block_opt_in;
  info.argument_bytes = kKernelParameterBytes;
  info.max_group_size = device.threads_per_block;
  info.atomic_alignment = kAtomicBytes;
  sink.device(sink.context, &info);
}

compute_error* enumerate(const compute_plugin_sink* sink) {
  return guard([&] {
    if (open_driver()) {
      for (size_t i = 0; i < devices().size(); ++i) emit_device(*sink, devices()[i], i + 1);
    }
    for (const LibraryReport& report : {driver_report(), nvrtc_report(), cublas_lt_report(), cudnn_report(),
                                        cufft_report(), cusolver_report(), nccl_report(), nvml_report()})
      common::emit(*sink, report);
  });
}

compute_error* device_open(uint64_t id, const compute_plugin_device_options* options, uint64_t* out_device,
                           const compute_plugin_device_table** out_table) {
  *out_device = 0;
  *out_table = nullptr;
  return guard([&] {
    require_understood(options, "the device's options");
    if (!open_driver()) throw Error(COMPUTE_ERROR_NOT_FOUND, "NVIDIA driver: " + driver_report().error);
    if (id < 1 || id > devices().size()) {
      throw Error(COMPUTE_ERROR_NOT_FOUND, "the cuda plugin has no device " + std::to_string(id));
    }
    const DeviceInfo& info = devices()[id - 1];
    if (!info.unusable.empty()) throw Error(COMPUTE_ERROR_UNSUPPORTED, info.name + ": " + info.unusable);
    *out_device = handle_of(new Device(info));
    *out_table = &kDeviceTable;
  });
}

constexpr compute_plugin_table plugin_table() {
  compute_plugin_table table{};
  table.table_size = sizeof table;
  table.enumerate = enumerate;
  table.device_open = device_open;
  table.on_exit = [] {
    finish_groups();
    common::end_polling();
  };
  table.close = common::release_core;
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

COMPUTE_PLUGIN_EXPORT compute_error* compute_plugin_open(uint32_t interface_version, const compute_plugin_core* core,
                                                         const compute_plugin_table** out_table) {
  return compute::common::open_plugin("cuda", interface_version, core, compute::cuda::kPluginTable, out_table);
}

}  // extern "C"
